"""Tables and texts for a person, in a console or in a notebook."""

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from autokernel.data import Column, Columns
from autokernel.data.columns import EXPOSURE, NO_VALUE
from autokernel.data.dates import dates_of
from autokernel.data.scales import LARGEST_LOG, Scale
from autokernel.explain.words import interval
from autokernel.expression import IDENTITY, Expression, Leaf, Tree, View, addends, slots_of
from autokernel.fit import COVERAGE, is_inside
from autokernel.kernels import ADD, NOISE_VARIANCE, BaseKernel, KernelParameter, Role, Unit
from autokernel.model import FittedModel, KernelPosterior, LeftOut, Outcomes
from autokernel.typing import FloatArray, IntArray

MAX_PRINTED_ROWS = 20
MAX_LEVELS = 5  # of a category, in the table of columns
LINE_WIDTH = 100  # characters
MAX_WRITTEN = 1e9  # below which numbers are written without an exponent

_FORMATS = dict.fromkeys(("score", "log_evidence", "log_prior", "pareto_k"), ".2f")
_FORMATS |= dict.fromkeys(("probability", "depends", "repeats", "linear"), ".3f")
_FORMATS |= dict.fromkeys(("value", "estimate", "contribution", "low", "high"), ".5g")
_FORMATS |= {"elapsed": ".1f", "share (%)": ".1f"}
_MARKUP = re.compile(r"([\\`*_\[\]<>$|~&#])")  # characters with a meaning in Markdown


class Text(str):
    """A text of paragraphs that reads as such without ``print``; a notebook shows it too."""

    def __repr__(self) -> str:
        return "\n".join(textwrap.fill(line, LINE_WIDTH) for line in self.split("\n"))

    def _repr_markdown_(self) -> str:
        return _MARKUP.sub(r"\\\1", self).replace("\n", "  \n")  # which is a line break


class Table(dict[str, npt.NDArray[Any]]):
    """A dict of arrays of one length that prints as a table; ``pandas.DataFrame`` accepts it.

    Parameters
    ----------
    columns : mapping of str to array-like of shape (n_rows,) or None, default=None
        The columns by name.
    shown : sequence of str, default=()
        Names of the columns that are printed, all of them if it is empty.
    note : str, default=""
        A line below the table.
    forms : mapping of str to str, default=None
        Formats of columns that need other digits than the usual ones.
    """

    def __init__(
        self,
        columns: Mapping[str, npt.ArrayLike] | None = None,  # skops fills an empty table
        *,
        shown: Sequence[str] = (),
        note: str = "",
        forms: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__({name: _as_column(column) for name, column in (columns or {}).items()})
        self.shown, self.note = tuple(shown) or tuple(self), note
        self.forms = {**_FORMATS, **(forms or {})}

    @classmethod
    def of_rows(cls, names: Sequence[str], rows: Iterable[Iterable[Any]]) -> "Table":
        """Build a table of rows (n_rows, n_columns), of which there is one or more."""
        return cls(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))

    def __getitem__(self, name: Any) -> Any:
        """Return a column by its name, or the table of some rows by a slice."""
        if not isinstance(name, slice):
            return super().__getitem__(name)
        rows = {key: column[name] for key, column in self.items()}
        return Table(rows, shown=self.shown, note=self.note, forms=self.forms)

    def to_html(self) -> str:
        """Write all rows as an HTML table."""
        kinds = ["text" if self[name].dtype == object else "number" for name in self.shown]
        head = "".join(f"<th>{escape(name)}</th>" for name in self.shown)
        body = ""
        for cells in self._cells():
            pairs = zip(kinds, cells, strict=True)
            row = "".join(f'<td class="{kind}">{escape(cell)}</td>' for kind, cell in pairs)
            body += f"<tr>{row}</tr>\n"
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>{note}"

    _repr_html_ = to_html

    def __repr__(self) -> str:
        rows = [list(self.shown), *self._cells(MAX_PRINTED_ROWS)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        is_text = [self[name].dtype == object for name in self.shown]
        lines = []
        for row in rows:
            cells = zip(row, widths, is_text, strict=True)
            *first, last = [c.ljust(width) if left else c.rjust(width) for c, width, left in cells]
            begin = "".join(f"{cell}  " for cell in first)
            wrapped = textwrap.wrap(last, max(LINE_WIDTH - len(begin), 20)) or [""]
            lines.append(f"{begin}{wrapped[0]}".rstrip())
            lines += [" " * len(begin) + line for line in wrapped[1:]]
        n_more = len(self[self.shown[0]]) - MAX_PRINTED_ROWS
        lines += [f"... and {n_more} more"] if n_more > 0 else []
        return "\n".join([*lines, *textwrap.wrap(self.note, LINE_WIDTH)])

    def _cells(self, max_rows: int | None = None) -> list[list[str]]:
        columns = [
            [_cell(value, self.forms.get(name, ".4g")) for value in self[name][:max_rows]]
            for name in self.shown
        ]
        return [list(row) for row in zip(*columns, strict=True)]


def _as_column(column: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asarray(column)
    return array.astype(object) if array.dtype.kind == "U" else array


def _cell(value: object, form: str) -> str:
    if isinstance(value, (float, np.floating)):
        number = float(value)
        text = format(number, form) if np.isfinite(number) else ""
        return format(number, ".0f") if "e+" in text and abs(number) < MAX_WRITTEN else text
    if isinstance(value, (bool, np.bool_)):
        return "*" if value else ""
    return str(value)


def history_table(columns: Mapping[str, npt.ArrayLike]) -> Table:
    """Return all kernels of a search in order; the main columns are printed."""
    return Table(
        columns,
        shown=("score", "n_leaves", "phase", "status", "elapsed", "kernel"),
        note="main columns; pandas.DataFrame(model.search_history_) has all",
    )


def leaderboard(
    history: Mapping[str, npt.NDArray[Any]],
    tried: Sequence[str],
    model: FittedModel,
    *,
    k: int,
    n_added: int,
) -> Table:
    """Return the k best rows of a history, the best first, with the kernel of the model marked.

    They are those of the last set of rows that was searched, as scores of others are of other data.
    The canonical texts of the kernels that were ``tried`` are in the order of the history.
    """
    is_chosen = np.array([text == model.evaluation.expression.canonical for text in tried], bool)
    row_sets, is_scored = history["row_set"], np.isfinite(history["score"])
    last = np.flatnonzero(row_sets == row_sets[is_scored].max(initial=0))
    order = last[np.argsort(-history["score"][last], kind="stable")[:k]]
    names = ("score", "score_per_sample", "n_leaves", "n_params", "phase", "status", "kernel")
    columns = {name: history[name][order] for name in names}
    has_failures = bool(np.any(columns["status"] != "ok"))
    return Table(
        {"rank": np.arange(1, len(order) + 1), "chosen": is_chosen[order], **columns},
        shown=("rank", "chosen", "score", "n_leaves", *(["status"] * has_failures), "kernel"),
        note=_text_of_refit(model, history["score"][is_chosen], n_added),
    )


def _text_of_refit(model: FittedModel, scores: FloatArray, n_added: int) -> str:
    """Say what was fitted after the search, which gave the present kernel these scores."""
    score = model.evaluation.score
    if not np.isfinite(score) or np.isclose(scores, score, rtol=1e-9, atol=1e-9).any():
        return ""
    how = f"to {len(model.rows)} rows, with score {score:.2f}"
    if len(scores) and n_added:
        rows = "1 row has" if n_added == 1 else f"{n_added} rows have"
        return f"* {rows} been added to this kernel, {how}"
    if len(scores):
        return f"* this kernel was fitted again after the search, {how}"
    text = model.columns.text_of(model.evaluation.expression)
    return f"another kernel was fitted after the search, {how}: {text}"


def outcome_table(outcomes: Outcomes, outliers: IntArray) -> Table:
    """Return rows that have joined a model or are among its outliers, and their predictions."""
    row, inside = outcomes["row"], is_inside(outcomes)
    judged = {"inside": inside, "outlier": np.isin(row, outliers)}
    text = f"{inside.sum()} of {len(row)} within {100 * COVERAGE:.0f} %"
    note = text if len(row) else "update has added no row"
    shown = ("row", "y", "mean", "low", "high", "log_density", *judged)
    forms = {"y": ".5g", "mean": ".5g", "log_density": ".2f"}
    return Table({**outcomes, **judged}, shown=shown, note=note, forms=forms)


def left_out_table(model: FittedModel) -> Table:
    """Return the rows that were left out, and what models without them predict."""
    whole, real = np.empty(0, dtype=int), np.empty(0)
    found, target = model.left_out or LeftOut(whole, real, whole, real, real, real), model.target
    columns = {
        "row": model.given_rows[found.rows],
        "weight": found.weights,
        "fold": found.folds,
        "mean": target.inverse(found.mean),
        "std": target.width * found.deviation,
        "probability": found.probability,
    }
    note = "" if len(found.rows) else "no row was left out"
    return Table(columns, note=note, forms={"mean": ".5g", "std": ".3g"})


def column_table(columns: Columns, kernels: Iterable[Expression], *, otherwise: str) -> Table:
    """Return how each column was read and is used; ``otherwise`` is why one that varies is not."""
    views = {node.view for kernel in kernels for node in kernel.nodes if node.view is not None}
    rows = []
    for number, column in enumerate(columns.every):
        scales = sorted({view.scale for view in views if view.column == number})
        unused = (otherwise if column.varies else "constant") * (not scales)
        has_reason = not unused or column.origin in (NO_VALUE, EXPOSURE)
        why = [column.origin, *[unused] * (not has_reason)]
        scale = ", ".join(scales) if column.levels is None else ""
        ends = column.name, column.kind, _range_of(column)
        rows.append((*ends, scale, column.n_gaps, bool(scales), ", ".join(why)))
    return Table.of_rows(("column", "kind", "values", "scale", "gaps", "used", "why"), rows)


def _range_of(column: Column) -> str:
    """Write the levels of a category, or the least and the largest value of another column."""
    if column.levels is not None:
        texts = column.level_texts
        n_more = len(texts) - MAX_LEVELS
        more = f" and {n_more} more" * (n_more > 0)
        return (" < " if column.levels.is_ordered else ", ").join(texts[:MAX_LEVELS]) + more
    if column.origin == NO_VALUE:
        return ""
    ends = np.unique([column.low, column.low + column.extent * column.varies])
    return " to ".join(map(str, dates_of(ends)) if column.is_date else [f"{x:.6g}" for x in ends])


def posterior_table(model: FittedModel) -> Table:
    """Return the kernels in the posterior; ``log_evidence`` is the criterion if there is none."""
    evaluations = [kernel.evaluation for kernel in model.kernels]
    log_prior = np.array([one.log_structure_prior for one in evaluations])
    return Table(
        {
            "probability": [kernel.probability for kernel in model.kernels],
            "log_evidence": np.array([kernel.log_score for kernel in model.kernels]) - log_prior,
            "log_prior": log_prior,
            "n_leaves": [one.expression.n_leaves for one in evaluations],
            "pareto_k": [kernel.pareto_k for kernel in model.kernels],
            "kernel": [model.columns.text_of(one.expression) for one in evaluations],
        }
    )


def inclusion_table(model: FittedModel) -> Table:
    """Return probabilities for each column, nan if they are not known.

    A kernel depends on a column that it uses, even with a lengthscale so wide that it hardly
    matters. It repeats with a period that is shorter than the extent of the data.
    """
    names = ("depends", "repeats", "linear")
    found = dict(zip(names, np.zeros((3, len(model.columns))), strict=True))
    for kernel in model.kernels:
        terms = kernel.evaluation.expression.terms(ADD)
        bent = {c for term in terms if not _is_straight(term) for c in term.columns}
        for column in kernel.evaluation.expression.columns:
            found["depends"][column] += kernel.probability
            found["repeats"][column] += kernel.probability * _repeats(kernel, column)
            found["linear"][column] += kernel.probability * (column not in bent)
    for probabilities in found.values():
        probabilities[list(model.unjudged)] = np.nan
    return Table({"column": model.columns.names, **found})


def scale_table(model: FittedModel) -> Table:
    """Return the probabilities of the scales of the target and of the columns."""
    found, used = defaultdict[tuple[int, str], float](float), defaultdict[int, float](float)
    for kernel in [one for one in model.kernels if one.probability]:  # that of the best may vanish
        one = kernel.evaluation.expression
        views = {(-1, one.target), *((leaf.column, leaf.scale) for leaf in one.leaves)}
        n_scales = Counter(column for column, _ in views)
        for column, scale in sorted(views):
            share = kernel.probability / n_scales[column]
            found[column, scale] += share
            used[column] += share
    names = {-1: "target", **dict(enumerate(model.columns.names))}
    by_column = sorted(found.items(), key=lambda one: one[0][0])
    rows = ((names[of], scale, share / used[of]) for (of, scale), share in by_column)
    return Table.of_rows(("subject", "scale", "probability"), rows)


def _is_straight(term: Tree) -> bool:
    return isinstance(term, Leaf) and term.kernel.is_linear and term.scale == IDENTITY


def _repeats(kernel: KernelPosterior, column: int) -> float:
    """Compute the share of draws with a period shorter than the extent of a column."""
    are_short = [
        kernel.draws[:, entries.start + number] < 0.0  # columns are scaled to unit extent
        for node, entries in slots_of(kernel.evaluation.expression)
        for number, parameter in enumerate(node.parameters)
        if node.column == column and parameter.role == Role.PERIOD
    ]
    return float(np.mean(np.any(are_short, axis=0)))


def parameter_table(model: FittedModel) -> Table:
    """Return the parameters of the best kernel, in each component that has them."""
    names = ("component", "leaf", "column", "parameter", "value", "low", "high", "unit")
    values = np.exp(model.evaluation.theta)
    low, high = interval(np.exp(np.minimum(model.kernels[model.best].draws, LARGEST_LOG)))
    target = model.evaluation.expression.prefix.removesuffix(" ~") or "y"
    columns, rows = model.columns, list[tuple[object, ...]]()
    every: list[tuple[int, str, View | None, KernelParameter, int]] = [
        (number, _root_name(node), node.view, parameter, entry)
        for number, (addend, own) in enumerate(addends(model.evaluation.expression), start=1)
        for node, slots in slots_of(addend)
        for parameter, entry in zip(node.parameters, own[slots].tolist(), strict=True)
    ]
    every.append((0, "noise", None, NOISE_VARIANCE, len(values) - 1))
    for number, label, view, parameter, entry in every:
        name = "" if view is None else view.to_text(columns.names, label, columns.log_offsets)[1:-1]
        unit = {Unit.INPUT: name, Unit.SQUARED_TARGET: f"variance of {target}"}
        scale = Scale(IDENTITY) if view is None else columns.scale(view)
        found = (float(one[entry]) for one in (values, low, high))
        numbers = (parameter.in_units(one, scale.shift, scale.width) for one in found)
        rows.append((number, label, name, parameter.name, *numbers, unit.get(parameter.unit, "")))
    return Table.of_rows(names, rows)


def _root_name(node: Tree) -> str:
    declared = node.declared
    return declared.name if isinstance(declared, BaseKernel) else declared.symbol
