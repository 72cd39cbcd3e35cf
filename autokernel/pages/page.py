"""A web page in one file, without anything from the network."""

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 144
_STYLE = """
:root { color-scheme: light; }
body {
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  color: #1d2327; background: #fff; margin: 0 auto; padding: 1.5rem 1.25rem 4rem;
  max-width: 56rem; overflow-wrap: break-word;
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; border-bottom: 1px solid #d8dee4;
     padding-bottom: .25rem; }
.lead { color: #57606a; margin-top: 0; }
.overview { font-size: 1.06rem; }
nav a { margin-right: 1rem; white-space: nowrap; }
a { color: #0061a4; }
code { font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; font-size: .9em; }
section { break-inside: auto; }
figure { margin: .6rem 0 1.6rem; break-inside: avoid; }
figure img { width: 100%; height: auto; display: block; }
.component { break-inside: avoid; }
.component p { margin: 1.2rem 0 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: .6rem 0; }
th, td { padding: .25rem .7rem; text-align: left; border-bottom: 1px solid #e6e9ec;
         vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.text:last-child { min-width: 24rem; }
td { overflow-wrap: normal; }
th { font-weight: 600; border-bottom: 2px solid #b9c1c9; }
.note { color: #57606a; font-size: .92rem; }
@media print {
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  nav { display: none; }
  .wide { overflow: visible; }
  table { font-size: 8pt; }
  h2 { break-after: avoid; }
}
"""


def page(title: str, body: str) -> str:
    """Put a title and the style around the body of a page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def section(name: str, title: str, parts: Sequence[str]) -> str:
    """Write a section with a heading that can be linked."""
    return f'<section id="{name}">\n<h2>{escape(title)}</h2>\n' + "\n".join(parts) + "\n</section>"


def paragraph(text: str, kind: str = "") -> str:
    """Write a paragraph."""
    name = f' class="{kind}"' if kind else ""
    return f"<p{name}>{escape(text)}</p>"


def picture(figure: "Figure", text: str, *, many_points: bool) -> str:
    """Write a figure with a text in its place; one with many points as pixels."""
    form, kind = ("png", "png") if many_points else ("svg", "svg+xml")
    file = io.BytesIO()
    figure.savefig(file, format=form, dpi=_DPI)
    data = base64.b64encode(file.getvalue()).decode()
    return f'<figure><img alt="{escape(text)}" src="data:image/{kind};base64,{data}"></figure>'


def wide(table: str) -> str:
    """Let a table scroll where it is wider than the page."""
    return f'<div class="wide">{table}</div>'
