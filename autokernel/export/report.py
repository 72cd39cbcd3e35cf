"""A web page in one file, without anything from the network."""

import base64
import hashlib
import io
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy
import sklearn

from autokernel.displays._style import literal
from autokernel.displays.calibration import MOST_LEFT_OUT, CalibrationDisplay
from autokernel.displays.effects import EffectsDisplay, panels_of
from autokernel.displays.forecast import ForecastDisplay
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.explain import Y_NAME, Table
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
    report = _Report(model, units or {}, results or {})
    title = title or f"What explains {report.y_name}"
    path.write_text(page(title, report.content(title)), encoding="utf-8")
    return path


class _Report:
    """The sections of a report, all of which read one explanation."""

    def __init__(
        self,
        estimator: AutoKernelGPRegressor,
        units: Mapping[str, str],
        results: Mapping[str, Sequence[str | Table]],
    ) -> None:
        self.estimator, self.units, self.results = estimator, units, results
        self.explanation = estimator.explanation(units)
        self.y_name = estimator.target_name_ or units.get(Y_NAME) or "the target"

    def content(self, title: str) -> str:
        n, n_columns = self.estimator.X_train_.shape
        columns = "column" if n_columns == 1 else "columns"
        lead = f"A Gaussian process found by autokernel {__version__} in {n} rows of {n_columns}"
        links, sections = [], []
        for name, head, parts in self.sections():
            if content := "\n".join(parts):
                links.append(f'<a href="#{name}">{escape(head)}</a>')
                begin = f'<section id="{name}">\n<h2>{escape(head)}</h2>'
                sections.append(f"{begin}\n{content}\n</section>")
        top = [f"<h1>{escape(title)}</h1>", paragraph(f"{lead} {columns}.", "lead")]
        return "\n".join([*top, f"<nav>{''.join(links)}</nav>", *sections])

    def sections(self) -> Iterator[tuple[str, str, Iterable[str]]]:
        yield "overview", "Overview", self.overview()
        for place, (head, parts) in enumerate(self.results.items(), start=1):
            every = (paragraph(one) if isinstance(one, str) else table(one) for one in parts)
            yield f"result-{place}", head, every
        yield "effects", "Effects", self.effects()
        yield "kernels", "Kernels and columns", self.kernels()
        yield "parameters", "Parameters", self.parameters()
        yield "search", "Search", self.search()
        yield "calibration", "Calibration", self.calibration()
        yield "settings", "Settings", self.settings()

    def overview(self) -> Iterator[str]:
        yield paragraph(self.explanation.overview(), "overview")
        if [axis.is_numeric for axis in self.explanation.axes] == [True]:
            y_name, units = literal(self.y_name), self.units
            display = ForecastDisplay.from_estimator(self.estimator, units=units, y_name=y_name)
            yield self._picture(display.figure_, "Data, mean and bands of 50 and 95 %")

    def effects(self) -> Iterator[str]:
        texts, y_name = self.explanation.paragraphs(), literal(self.y_name)
        if not texts:
            return
        if self.estimator.n_features_in_ > 1:
            yield paragraph(EFFECTS, "note")
        yield table(self._effects(), "wide sortable")
        panels = panels_of(self.estimator, self.explanation)
        for place, (panel, text) in enumerate(zip(panels, texts, strict=True), start=1):
            only, scale = [replace(panel, title="")], self.explanation.scale  # the text is above
            display = EffectsDisplay(only, y_name=y_name, scale=scale).plot()
            words, shown = paragraph(f"{place}. {text}"), self._picture(display.figure_, text)
            yield f'<div class="effect">{words}\n{shown}</div>'
        yield from map(paragraph, self.explanation.remarks())
        yield paragraph(BANDS, "note")

    def kernels(self) -> Iterator[str]:
        yield paragraph(
            "Probabilities are those among the kernels that the search has evaluated. Log evidence "
            "and log prior are in nats."
        )
        yield table(self.estimator.posterior_)
        yield paragraph(
            "For each column, the probability that the target depends on it, repeats along it, and "
            "is linear in it:"
        )
        yield table(self.estimator.inclusion_probabilities_)
        yield paragraph("How each column was read:")
        yield table(self.estimator.columns_)
        scales = self.estimator.scales_
        if any(one != IDENTITY for one in scales["scale"]):
            yield paragraph(
                "The probabilities of the scales of the target and, among kernels that use it, of "
                "each column:"
            )
            yield table(scales)

    def parameters(self) -> Iterator[str]:
        yield paragraph(
            "Values of the best kernel with central 90 % intervals. Component 0 is the noise; the "
            "others are numbered as in the kernel."
        )
        yield table(self.estimator.parameters_)

    def search(self) -> Iterator[str]:
        history = getattr(self.estimator, "search_history_", {"score": ()})
        if np.isfinite(history["score"]).any():
            n, seconds = len(history["score"]), history["elapsed"].max()
            yield paragraph(f"{n} kernels were evaluated in {seconds:.1f} seconds. The best ones:")
            yield table(self.estimator.leaderboard())

    def calibration(self) -> Iterator[str]:
        n = len(self.explanation.model.rows)
        if n > MOST_LEFT_OUT or self.estimator.approximation_ != "exact":
            yield paragraph(
                "Leaving rows out one by one needs exact predictions and at most "
                f"{MOST_LEFT_OUT} rows. CalibrationDisplay.from_estimator(model, X, y) shows "
                "calibration on rows that were not fitted."
            )
            return
        yield paragraph(
            "Each row is predicted from all others, with the parameters of all rows. The line on "
            "the left should lie in the grey band, and so should the bars on the right."
        )
        display = CalibrationDisplay.from_estimator(self.estimator)
        inside = float(display.coverage(np.array([0.95]))[0])
        yield self._picture(display.figure_, "Coverage of central intervals")
        yield paragraph(f"Intervals of 95 % hold {100 * inside:.1f} % of the rows.")

    def settings(self) -> Iterator[str]:
        estimator, digest = self.estimator, hashlib.sha256()
        for array in (estimator.X_train_, estimator.y_train_):
            digest.update(np.ascontiguousarray(array, dtype=float).tobytes())
        rows = {name: repr(value) for name, value in estimator.get_params(deep=False).items()}
        rows |= {
            "predictions": estimator.approximation_,
            "end of the search": words_of(
                estimator.stop_reason_, estimator.expected_improvement_, estimator.tol
            ),
            "autokernel": __version__,
            "Python": platform.python_version(),
            **{module.__name__: module.__version__ for module in (np, scipy, sklearn)},
            "SHA-256 of X and y": digest.hexdigest(),
        }
        yield table(Table({"setting": list(rows), "value": list(rows.values())}))

    def _effects(self) -> Table:
        """List the effects; the interval is that of an amount in ``claims_``, not of a place."""
        explanation, rows = self.explanation, []
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

    def _picture(self, figure: "Figure", text: str) -> str:
        """Write a figure with a text in its place, and close it; one of many rows as pixels."""
        import matplotlib.pyplot as plt

        has_many = len(self.estimator.X_train_) > 3000
        form, kind = ("png", "png") if has_many else ("svg", "svg+xml")
        file = io.BytesIO()
        figure.savefig(file, format=form, dpi=144)
        plt.close(figure)
        data = base64.b64encode(file.getvalue()).decode()
        return f'<figure><img alt="{escape(text)}" src="data:image/{kind};base64,{data}"></figure>'
