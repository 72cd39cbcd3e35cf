"""What is said of a fitted function as a whole: its scale, its noise, and which columns matter."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse.csgraph import connected_components

from autokernel.data.resolution import resolution_with
from autokernel.explain.axes import TARGET
from autokernel.explain.decomposition import ExplainedFunction
from autokernel.explain.facts import Fact
from autokernel.explain.sentences import SCALE_WORDS, Said, Sentences
from autokernel.explain.tables import inclusion_table, scale_table
from autokernel.explain.words import (
    CERTAIN,
    capital,
    counted,
    interval,
    level_text,
    listing,
    percent,
    perhaps,
    with_unit,
)
from autokernel.expression import IDENTITY
from autokernel.model import FittedModel
from autokernel.typing import FloatArray, IntArray

EXCLUDED = 0.05  # probability up to which a column does not matter
MIN_AVERAGING_SHARE = 0.01  # of the variance, from which averaging is worth a sentence
ALIKE, SAME_COLUMN = 0.95, 1 - 1e-9  # correlations from which two columns are hardly distinct
LARGE_ERROR = 1.5  # deviations of the noise, from which the error is worth a sentence
LARGE_ROUNDING = 0.1  # of the variance of the noise, from which rounding is worth a sentence
USED = "kernels that use the column"

Errors = tuple[FloatArray, FloatArray]
"""Predicted probabilities (n,) of a smaller target, and errors (n,), for held-out rows."""


class Overview:
    """What is said of a fitted function as a whole.

    Errors are those of each row predicted from all others, if that is possible. With outliers
    among the rows, they widen the noise.
    """

    def __init__(
        self,
        model: FittedModel,
        explained: ExplainedFunction,
        say: Sentences,
        held_out: Errors | None,
        *,
        has_outliers: bool,
    ) -> None:
        self._model, self._explained, self._say = model, explained, say
        self._held_out, self._has_outliers = held_out, has_outliers
        self._is_log, self._width = say.scale == "log", model.scale.width

    def target(self) -> list[Said]:
        """Say what the target is on average, how much is explained, and how much is noise."""
        target, name, unit = self._model.target, self._say.target, self._say.unit
        if target.is_constant:
            how, value = "training targets", target.shift
            text = f"{capital(name)} is constant, {with_unit(value, unit)}: the data do not show"
            fact = Fact(TARGET, "is constant", value, unit=unit, evidence=how)
            return [(fact, f"{text} how it would vary.")]
        kind, average, has = "mean", target.shift, "has a standard deviation of"
        if self._is_log:
            kind, average = "geometric mean", float(np.exp(self._model.scale.shift))
            has = "is typically"
        written = level_text(average, target.scale, unit)
        noise, deviation = self._noise()
        if not self._model.evaluation.expression.leaves:
            has = "that is typically" if self._is_log else "with a standard deviation of"
            text = f"{name} is noise {has} {deviation} around its {kind}, {written}"
            return [(noise, f"No structure was found: {text}.")]
        mean = Fact(TARGET, kind, average, unit=unit, evidence=f"{kind} of the training targets")
        what, more = "The noise", ""
        if self._has_outliers:
            what, more = "What is left", ", widened by outliers"
        return [
            *self._scale(),
            (mean, f"The {kind} of {name} is {written}."),
            *self._how_much(),
            (noise, f"{what} {has} {deviation}{more}."),
            *self._resolution(),
        ]

    def columns(self) -> Iterator[Said]:
        """Say which columns matter, with which probability, and which are nearly the same."""
        if len(self._say.names) == 1:
            return
        found = np.round(inclusion_table(self._model)["depends"], 2).tolist()  # as it is written
        rows = list(zip(self._say.names, found, strict=True))
        yield from _matter([name for name, p in rows if p >= CERTAIN], "matters", "matter")
        yield from _may_matter([(name, p) for name, p in rows if EXCLUDED < p < CERTAIN])
        without = [name for name, p in rows if p <= EXCLUDED]
        yield from _matter(without, "does not matter", "do not matter")
        yield from self._alike()

    def averaging(self) -> str:
        """Say how much averaging changes the predictions, if it is worth a sentence."""
        added = float(self._explained.added_by_averaging(self._explained.X)[0].std())
        if added <= np.sqrt(MIN_AVERAGING_SHARE) * self._width:
            return ""
        by = f"{self._say.amount(added)} (root mean square over the data)"
        text = "Predictions average over other kernels and parameters too, which changes them by"
        return f"{text} {by}."

    def best_kernel(self) -> str:
        """Say which kernel is described, and how probable it is, if there are others."""
        names, best = self._model.columns.feature_names, self._model.evaluation
        p = {
            one.evaluation.expression.to_text(names): one.probability for one in self._model.kernels
        }
        text, (first, *others) = best.expression.to_text(names), p
        if not others:
            return ""
        sure = f"its probability among those that were evaluated is {p[text]:.2f}"
        if p[first] > p[text]:  # by draws, while the best one has the highest score
            sure += f", and that of {first} is {p[first]:.2f}"
        return f"What follows is the best kernel, {text}; {sure}."

    def _scale(self) -> Iterator[Said]:
        table = scale_table(self._model)
        own = (table["subject"] == "target") & (table["scale"] == self._say.scale)
        sure = float(table["probability"][own].sum())
        what, text = "effects add up", f"Effects add up on the {SCALE_WORDS[self._say.scale]} scale"
        if self._is_log:
            what, text = "effects multiply", "The effects multiply (log scale)"
        if sure < CERTAIN or self._say.scale != IDENTITY:
            fact = Fact(
                TARGET, what, probability=sure, evidence="kernels on this scale of the target"
            )
            yield fact, f"{perhaps(text, sure)}."

    def _noise(self) -> Said:
        model = self._model
        variances = np.exp(self._explained.parameters[:, -1]) + model.typical_rounding
        low, high = (self._width * np.sqrt(interval(variances))).tolist()
        deviation, how = float(np.sqrt(model.noise_variance)), "parameter of the best kernel"
        predicate = "noise with outliers" if self._has_outliers else "noise"
        fact = Fact(TARGET, predicate, deviation, low, high, evidence=how)
        return self._say.measured(fact), self._say.amount(deviation, low, high)

    def _resolution(self) -> Iterator[Said]:
        model, unit, name = self._model, self._say.unit, capital(self._say.target)
        rounding = model.typical_rounding
        share = rounding / max(rounding + model.scaled_noise_variance, np.finfo(float).tiny)
        if share >= LARGE_ROUNDING:
            step = resolution_with(model.mixture.data.noise.rounding[0] * model.target.scale**2)
            fact = Fact(TARGET, "is rounded to", step, unit=unit, evidence="training targets")
            text = f"{name} is recorded to the nearest {f'{step:g} {unit}'.rstrip()}"
            yield fact, f"{text}: rounding is {percent(share)} of the variance of the noise."

    def _how_much(self) -> Iterator[Said]:
        """Say how much of the variance is explained, and how large errors are if they are large."""
        model, rows, unit = self._model, self._model.mixture.data, self._say.unit
        of, how = (
            "the variance of held-out rows",
            "errors of predictions of each row from all others",
        )
        if self._held_out is None:
            of, how = "its variance", "variance of the fit to the rows"
        errors = self._held_out[1] if self._held_out else rows.y - model.mixture.mean(rows.X)
        explained = max(0.0, 1 - float(np.mean(errors**2) / np.var(rows.y)))
        n = len(self._explained.parts)
        text = f"{capital(counted(n, 'component'))} {'explains' if n == 1 else 'explain'}"
        if self._say.is_table:
            text = "The fit explains"
        fact = Fact(TARGET, "explained", explained, evidence=how)
        yield fact, f"{text} {percent(explained)} of {of}."
        data = rows.on(model.evaluation.expression.target)
        _, noise = model.scale.moments(data.y, data.noise.variance(model.scaled_noise_variance))
        size = float(np.sqrt(np.mean(errors**2)))
        if self._held_out and size > LARGE_ERROR * np.sqrt(noise.mean()):
            error = model.target.scale * size
            fact = Fact(TARGET, "is missed", error, unit=unit, evidence=how)
            yield fact, f"The leave-one-out error is {with_unit(error, unit)}."

    def _alike(self) -> Iterator[Said]:
        every = zip(self._say.axes, self._explained.X.T, strict=True)
        varying = {axis.name: x for axis, x in every if np.ptp(x) > 0 and not axis.levels}
        if len(varying) < 2:
            return
        r, names = np.abs(np.corrcoef([*varying.values()])), np.array([*varying])
        for group, least in _groups(r, SAME_COLUMN):
            yield _are_alike(names[group].tolist(), least, "are one column in different units")
        for group, least in _groups(r, ALIKE):
            if least <= SAME_COLUMN:
                what = "can hardly be distinguished in these data"
                yield _are_alike(names[group].tolist(), least, what)


def _matter(names: Sequence[str], one: str, several: str) -> Iterator[Said]:
    if names:
        verb = one if len(names) == 1 else several
        text = f"{listing(names)} {verb} (probability at least {CERTAIN})."
        yield Fact(listing(names), one, probability=CERTAIN, evidence=USED), text


def _may_matter(found: Sequence[tuple[str, float]]) -> Iterator[Said]:
    names = listing([f"{name} ({p:.2f})" for name, p in found] or [""])
    text = f"It is uncertain whether {names} {'matters' if len(found) == 1 else 'matter'}."
    for name, p in found:
        yield Fact(name, "may matter", probability=p, evidence=USED), text
        text = ""  # which the first of them has


def _groups(r: FloatArray, level: float) -> Iterator[tuple[IntArray, float]]:
    """Yield groups of columns that are linked by correlations, with the least within each."""
    n_groups, group = connected_components(r > level, directed=False)
    for columns in (np.flatnonzero(group == number) for number in range(n_groups)):
        if len(columns) > 1:
            yield columns, float(r[np.ix_(columns, columns)].min())


def _are_alike(names: Sequence[str], least: float, what: str) -> Said:
    fact = Fact(listing(names), "are alike", least, evidence="least correlation of the columns")
    size = "above 0.99" if least > 0.995 else f"{least:.2f}"
    text = f"{listing(names)} {what} (their correlation is {size}{' or more' * (len(names) > 2)})"
    return fact, f"{text}: what is said of one may be due to another."
