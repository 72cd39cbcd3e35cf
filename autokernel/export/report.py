"""A web page in one file, without anything from the network."""

import base64
import hashlib
import io
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy
import sklearn

from autokernel.displays._style import literal
from autokernel.displays.calibration import CalibrationDisplay
from autokernel.displays.effects import EffectsDisplay, panels_of
from autokernel.displays.forecast import ForecastDisplay
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.explain import Y_NAME, Description, Table
from autokernel.explain.words import at_colon, listing, number
from autokernel.expression import IDENTITY
from autokernel.search import words_of
from autokernel.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EFFECTS = (
    "The effect of a column is the average of the fitted function over the rows, with one value of "
    "the column in all of them."
)
BANDS = (
    "Each is the difference from the average over the rows, and the bands of 95 % are those of "
    "this difference. Dots are partial residuals: the effect plus the residual of a row. Crosses "
    "are rows that are excluded as outliers, at the edge if they are far off."
)

PARAMETERS = "Values of the best kernel with 90 % intervals. Component 0 is the noise."


def page(title: str, content: str) -> str:
    """Put a title, the style and the script around the content of a page."""
    every = (files("autokernel") / "export" / f"report.{kind}" for kind in ("css", "js"))
    style, script = (one.read_text(encoding="utf-8") for one in every)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{content}\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def paragraph(text: str, kind: str = "") -> str:
    """Write a paragraph."""
    name = f' class="{kind}"' if kind else ""
    return f"<p{name}>{escape(text)}</p>"


def table(rows: Table, kind: str = "wide") -> str:
    """Write a table that scrolls where it is too wide; a sortable one sorts on a click."""
    return f'<div class="{kind}">{rows.to_html()}</div>'


def write_report(
    model: AutoKernelGPRegressor,
    path: str | os.PathLike[str],
    *,
    units: Mapping[str, str] | None = None,
    title: str | None = None,
    results: Mapping[str, Sequence[str | Table]] | None = None,
) -> Path:
    """Write a report about a fitted estimator into one HTML file that needs no network.

    It describes and shows each component, the kernels and columns with their probabilities, the
    parameters, the search, calibration by leave-one-out, settings and versions. It needs
    matplotlib: ``pip install 'autokernel-gp[plot]'``.

    Parameters
    ----------
    model : AutoKernelGPRegressor
        A fitted estimator.
    path : str or path-like
        File to write.
    units : mapping of str to str, default=None
        Units, as for :meth:`AutoKernelGPRegressor.describe`.
    title : str, default=None
        Title of the page.
    results : mapping of str to sequence of str and Table, default=None
        Further sections by their headings, such as ``{"Forecast": [model.forecast(12)]}``.

    Returns
    -------
    pathlib.Path
        The path of the file.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    ValueError
        If the file is a folder, or its folder does not exist.
    """
    path = Path(path)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ValueError(f"path must be a file in a folder that exists, got {str(path)!r}")
    units = units or {}
    explanation = model.explanation(units)
    y_name = model.target_name_ or units.get(Y_NAME) or "the target"
    parts = {
        "overview": ("Overview", _overview(model, explanation, units, y_name)),
        **{
            f"result-{place}": (head, map(_result, every))
            for place, (head, every) in enumerate((results or {}).items(), start=1)
        },
        "effects": ("Effects", _effects(model, explanation, y_name)),
        "kernels": ("Kernels and columns", _kernels(model)),
        "parameters": ("Parameters", [paragraph(PARAMETERS), table(model.parameters_)]),
        "search": ("Search", _last_search(model)),
        "calibration": ("Calibration", _calibration(model)),
        "settings": ("Settings", _settings(model)),
    }
    links, sections = [], []
    for name, (head, texts) in parts.items():
        if content := "\n".join(texts):
            links.append(f'<a href="#{name}">{escape(head)}</a>')
            begin = f'<section id="{name}">\n<h2>{escape(head)}</h2>'
            sections.append(f"{begin}\n{content}\n</section>")
    title = title or f"What explains {y_name}"
    n, n_columns = model.X_train_.shape
    lead = f"A Gaussian process found by autokernel {__version__} in {n} rows of {n_columns}"
    lead = paragraph(f"{lead} {'column' if n_columns == 1 else 'columns'}.", "lead")
    top = [f"<h1>{escape(title)}</h1>", lead, f"<nav>{''.join(links)}</nav>"]
    path.write_text(page(title, "\n".join([*top, *sections])), encoding="utf-8")
    return path


def _result(one: str | Table) -> str:
    return paragraph(one) if isinstance(one, str) else table(one)


def _overview(
    model: AutoKernelGPRegressor, explanation: Description, units: Mapping[str, str], y_name: str
) -> Iterator[str]:
    yield paragraph(explanation.overview(), "overview")
    if len(explanation.axes) == 1 and not explanation.axes[0].levels:
        display = ForecastDisplay.from_estimator(model, units=units, y_name=literal(y_name))
        yield _picture(model, display.figure_, "Data, mean and bands of 50 and 95 %")


def _effects(model: AutoKernelGPRegressor, explanation: Description, y_name: str) -> Iterator[str]:
    texts, y_name = explanation.paragraphs(), literal(y_name)
    if not texts:
        return
    if model.n_features_in_ > 1:
        yield paragraph(EFFECTS, "note")
    yield table(_table_of_effects(explanation), "wide sortable")
    has_text = (one in explanation.described for one in explanation.shown)
    panels = compress(panels_of(model, explanation), has_text)
    for place, (panel, text) in enumerate(zip(panels, texts, strict=True), start=1):
        only, scale = [replace(panel, title="")], explanation.scale  # the text is above
        display = EffectsDisplay(only, y_name=y_name, scale=scale).plot()
        words, shown = paragraph(f"{place}. {text}"), _picture(model, display.figure_, text)
        yield f'<div class="effect">{words}\n{shown}</div>'
    yield from map(paragraph, explanation.remarks())
    yield paragraph(BANDS, "note")


def _kernels(model: AutoKernelGPRegressor) -> Iterator[str]:
    yield paragraph("Probabilities are those among the evaluated kernels; logs are in nats.")
    yield table(model.posterior_)
    yield paragraph("Probability that the target depends on, repeats along, is linear in a column:")
    yield table(model.inclusion_probabilities_)
    yield paragraph("How each column was read:")
    yield table(model.columns_)
    scales = model.scales_
    if any(one != IDENTITY for one in scales["scale"]):
        yield paragraph("Probabilities of the scales, those of columns among kernels with them:")
        yield table(scales)


def _last_search(model: AutoKernelGPRegressor) -> Iterator[str]:
    history = getattr(model, "search_history_", {"score": ()})
    if np.isfinite(history["score"]).any():
        n, seconds = len(history["score"]), history["elapsed"].max()
        yield paragraph(f"{n} kernels were evaluated in {seconds:.1f} seconds. The best ones:")
        yield table(model.leaderboard())


def _calibration(model: AutoKernelGPRegressor) -> Iterator[str]:
    if not (n := len(model.left_out_["row"])):
        yield paragraph(
            "The fit has left out no rows. CalibrationDisplay.from_estimator(model, X, y) shows "
            "calibration on rows that were not fitted."
        )
        return
    how = "The line and the bars should lie in the grey bands."
    yield paragraph(f"{n} rows are predicted by models that were fitted without them. {how}")
    display = CalibrationDisplay.from_estimator(model)
    inside = float(display.coverage(np.array([0.95]))[0])
    yield _picture(model, display.figure_, "Coverage of central intervals")
    yield paragraph(f"Intervals of 95 % hold {100 * inside:.1f} % of the rows.")


def _settings(model: AutoKernelGPRegressor) -> Iterator[str]:
    digest = hashlib.sha256()
    for array in (model.X_train_, model.y_train_):
        digest.update(np.ascontiguousarray(array, dtype=float).tobytes())
    rows = {name: repr(value) for name, value in model.get_params(deep=False).items()}
    rows |= {
        "predictions": model.approximation_,
        "end of the search": words_of(model.stop_reason_, model.expected_improvement_, model.tol),
        "autokernel": __version__,
        "Python": platform.python_version(),
        **{module.__name__: module.__version__ for module in (np, scipy, sklearn)},
        "SHA-256 of X and y": digest.hexdigest(),
    }
    yield table(Table({"setting": list(rows), "value": list(rows.values())}))


def _table_of_effects(explanation: Description) -> Table:
    """List the effects; the interval is that of an amount in ``claims_``, not of a place."""
    rows = []
    for effect in explanation.shown:
        main = explanation.facts(effect)[0]
        name = listing([explanation.names[column] for column in effect.columns])
        share = round(100 * effect.share, 1) + 0.0  # not -0.0
        is_amount = np.isfinite(main.low) and " then " not in main.predicate
        ends = f"{main.subject}, {main.predicate}: {number(main.low)} to {number(main.high)}"
        what = at_colon(main.text)[1] or main.text
        rows.append((name, share, what, ends * bool(is_amount), main.probability))
    names = ("effect", "share (%)", "what it does", "90 % interval", "probability")
    return Table.of_rows(names, rows)


def _picture(model: AutoKernelGPRegressor, figure: "Figure", text: str) -> str:
    """Write a figure with a text in its place, and close it; one of many rows as pixels."""
    import matplotlib.pyplot as plt

    form, kind = ("png", "png") if len(model.X_train_) > 3000 else ("svg", "svg+xml")
    file = io.BytesIO()
    figure.savefig(file, format=form, dpi=144)
    plt.close(figure)
    data = base64.b64encode(file.getvalue()).decode()
    return f'<figure><img alt="{escape(text)}" src="data:image/{kind};base64,{data}"></figure>'
