"""What is said of a fitted function as a whole: its scale, its noise, and which columns matter."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse.csgraph import connected_components

from autokernel.data.resolution import resolution_with
from autokernel.explain.axes import TARGET
from autokernel.explain.decomposition import ExplainedFunction
from autokernel.explain.facts import Fact
from autokernel.explain.sentences import SCALE_WORDS, Said, Sentences
from autokernel.explain.tables import inclusion_table
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
from autokernel.typing import FloatArray

EXCLUDED = 0.05  # probability up to which a column does not matter
MIN_AVERAGING_SHARE = 0.01  # of the variance, from which averaging is worth a sentence
ALIKE, SAME_COLUMN = 0.95, 1 - 1e-9  # correlations from which two columns are hardly distinct
LARGE_ERROR = 1.5  # deviations of the noise, from which the error is worth a sentence
LARGE_ROUNDING = 0.1  # of the variance of the noise, from which rounding is worth a sentence

Errors = tuple[FloatArray, FloatArray]
"""Predicted probabilities (n,) of a smaller target, and errors (n,), for held-out rows."""


class Overview:
    """Describes a fitted function as a whole.

    Parameters
    ----------
    model : FittedModel
        The model.
    explained : ExplainedFunction
        Its components.
    say : Sentences
        Words for facts.
    held_out : tuple of two ndarray of shape (n_samples,) or None
        Probabilities of smaller targets and errors, for each row predicted from all others.
    has_outliers : bool
        Whether rows far off widen the noise.
    """

    def __init__(
        self,
        model: FittedModel,
        explained: ExplainedFunction,
        say: Sentences,
        *,
        held_out: Errors | None,
        has_outliers: bool,
    ) -> None:
        self._model, self._explained, self._say = model, explained, say
        self._held_out, self._has_outliers = held_out, has_outliers

    def target(self) -> list[Said]:
        """Say what the target is on average, how much is explained, and how much is noise."""
        model, say = self._model, self._say
        average, spread, target = model.target.shift, model.target.scale, say.target
        if model.target.is_constant:
            constant = Fact(
                TARGET, "is constant", average, unit=say.unit, evidence="training targets"
            )
            text = (
                f"{capital(target)} is constant, {with_unit(average, say.unit)}: the data do not "
            )
            return [(constant, f"{text}show how it would vary.")]
        kind, what, has = "mean", "average", "has a standard deviation of"
        if say.scale == "log":
            kind = what = "geometric mean"
            average, has = float(np.exp(model.scale.shift)), "is typically"
        written = level_text(average, spread, say.unit)
        noise, deviation = self._noise()
        if not model.evaluation.expression.leaves:
            has = "that " + has if say.scale == "log" else has.replace("has", "with", 1)
            text = f"{target} is noise {has} {deviation} around its {kind}, {written}"
            return [(noise, f"No structure was found: {text}.")]
        mean = Fact(
            TARGET, kind, average, unit=say.unit, evidence=f"{kind} of the training targets"
        )
        text = f"{'What is left' if self._has_outliers else 'The noise'} {has} {deviation}"
        return [
            *self._scale(),
            (mean, f"The {what} of {target} is {written}."),
            *self._how_much(),
            (noise, f"{text}{', widened by outliers' if self._has_outliers else ''}."),
            *self._resolution(),
        ]

    def columns(self) -> Iterator[Said]:
        """Say which columns matter, with which probability, and which are nearly the same."""
        names, how = self._say.names, "kernels that use the column"
        if len(names) == 1:
            return
        found = np.round(inclusion_table(self._model)["depends"], 2).tolist()  # as it is written
        rows = list(zip(names, found, strict=True))
        clearly = [name for name, p in rows if p >= CERTAIN]
        if clearly:
            fact = Fact(listing(clearly), "matters", probability=CERTAIN, evidence=how)
            yield fact, self._matter(clearly, "matters", "matter")
        perhaps_ = [(name, p) for name, p in rows if EXCLUDED < p < CERTAIN]
        texts = listing([f"{name} ({p:.2f})" for name, p in perhaps_] or [""])
        verb = "matters" if len(perhaps_) == 1 else "matter"
        text = f"It is uncertain whether {texts} {verb}."
        for name, p in perhaps_:
            yield Fact(name, "may matter", probability=p, evidence=how), text
            text = ""  # which the first of them has
        without = [name for name, p in rows if p <= EXCLUDED]
        if without:
            fact = Fact(listing(without), "does not matter", probability=CERTAIN, evidence=how)
            yield fact, self._matter(without, "does not matter", "do not matter")
        yield from self._alike()

    def averaging(self) -> str:
        """Say how much averaging changes the predictions, if it is worth a sentence."""
        added = float(self._explained.added_by_averaging(self._explained.X)[0].std())
        if added <= np.sqrt(MIN_AVERAGING_SHARE) * self._model.scale.width:
            return ""
        by = f"{self._say.amount(added)} (root mean square over the data)"
        return f"Predictions average over other kernels and parameters too, which changes them by {by}."

    def best_kernel(self) -> str:
        """Say which kernel is described, and how probable it is, if there are others."""
        kernels, names = self._model.kernels, self._model.columns.feature_names
        if len(kernels) == 1:
            return ""
        (best,) = (one for one in kernels if one.evaluation is self._model.evaluation)
        text = (
            f"What follows is the best kernel, {best.evaluation.expression.to_text(names)}; its "
            f"probability among those that were evaluated is {best.probability:.2f}"
        )
        first = kernels[0]  # by draws, while the best one has the highest score
        if first.probability > best.probability:
            other = first.evaluation.expression.to_text(names)
            text += f", and that of {other} is {first.probability:.2f}"
        return f"{text}."

    def _scale(self) -> Iterator[Said]:
        """Say on which scale of the target effects add up, unless it is surely the original one."""
        target, kernels, scale = (
            self._model.evaluation.expression.target,
            self._model.kernels,
            self._say.scale,
        )
        sure = sum(one.probability for one in kernels if one.evaluation.expression.target == target)
        if scale == IDENTITY and sure >= CERTAIN:
            return
        what = "effects multiply" if scale == "log" else "effects add up"
        text = perhaps(f"Effects add up on the {SCALE_WORDS[scale]} scale", sure)
        if scale == "log":
            text = perhaps("The effects multiply (log scale)", sure)
        how = "kernels on this scale of the target"
        yield Fact(TARGET, what, probability=sure, evidence=how), f"{text}."

    def _noise(self) -> Said:
        """Return the standard deviation of the noise, and its text."""
        model = self._model
        (best,) = (one for one in model.kernels if one.evaluation is model.evaluation)
        variances = np.exp(best.draws[:, -1]) + model.typical_rounding
        low, high = (model.scale.width * np.sqrt(interval(variances))).tolist()
        deviation, how = float(np.sqrt(model.noise_variance)), "parameter of the best kernel"
        predicate = "noise with outliers" if self._has_outliers else "noise"
        fact = Fact(TARGET, predicate, deviation, low, high, evidence=how)
        return self._say.measured(fact), self._say.amount(deviation, low, high)

    def _resolution(self) -> Iterator[Said]:
        """Say to what the target is rounded, if rounding is a part of the noise that matters."""
        model, unit = self._model, self._say.unit
        rounding = model.typical_rounding
        share = rounding / max(rounding + model.scaled_noise_variance, np.finfo(float).tiny)
        if share < LARGE_ROUNDING:
            return
        variance = model.mixture.data.noise.rounding[0] * model.target.scale**2
        step = resolution_with(variance)
        nearest = f"{step:g} {unit}".rstrip()
        text = f"{capital(self._say.target)} is recorded to the nearest {nearest}"
        fact = Fact(TARGET, "is rounded to", step, unit=unit, evidence="training targets")
        yield fact, f"{text}: rounding is {percent(share)} of the variance of the noise."

    def _how_much(self) -> Iterator[Said]:
        """Say how much of the variance is explained, and how large errors are if they are large."""
        model, rows, unit = self._model, self._model.mixture.data, self._say.unit
        errors, of, how = rows.y - model.mixture.mean(rows.X), "its variance", "variance of the fit"
        if self._held_out is not None:
            errors, of = self._held_out[1], "the variance of held-out rows"
            how = "errors of predictions of each row from all others"
        explained = max(0.0, 1 - float(np.mean(errors**2) / np.var(rows.y)))
        n = len(self._explained.parts)
        verb = "explains" if n == 1 else "explain"
        text = f"{capital(counted(n, 'component'))} {verb} {percent(explained)} of {of}."
        yield Fact(TARGET, "explained", explained, evidence=how), text
        data = rows.on(model.evaluation.expression.target)
        noise = data.noise.variance(model.scaled_noise_variance)
        _, noise = model.scale.moments(data.y, noise)
        size = float(np.sqrt(np.mean(errors**2)))
        if self._held_out is not None and size > LARGE_ERROR * np.sqrt(noise.mean()):
            error = model.target.scale * size
            fact = Fact(TARGET, "is missed", error, unit=unit, evidence=how)
            yield fact, f"The leave-one-out error is {with_unit(error, unit)}."

    def _matter(self, names: Sequence[str], one: str, several: str) -> str:
        verb = one if len(names) == 1 else several
        return f"{listing(names)} {verb} (probability at least {CERTAIN})."

    def _alike(self) -> Iterator[Said]:
        """Name groups of columns that can hardly be distinguished in these data."""
        X, axes = self._explained.X, self._say.axes
        varying = [c for c, axis in enumerate(axes) if np.ptp(X[:, c]) > 0 and not axis.levels]
        if len(varying) < 2:
            return
        r = np.abs(np.corrcoef(X[:, varying], rowvar=False))
        for group, least in _groups(r, SAME_COLUMN):
            what = "are one column in different units"
            yield self._are_alike([varying[one] for one in group], least, what)
        for group, least in _groups(r, ALIKE):
            if least <= SAME_COLUMN:
                what = "can hardly be distinguished in these data"
                yield self._are_alike([varying[one] for one in group], least, what)

    def _are_alike(self, columns: Sequence[int], least: float, what: str) -> Said:
        names, or_more = listing([self._say.names[one] for one in columns]), " or more"
        fact = Fact(names, "are alike", least, evidence="least correlation of the columns")
        size = f"{'above 0.99' if least > 0.995 else f'{least:.2f}'}{or_more * (len(columns) > 2)}"
        text = f"{names} {what} (their correlation is {size})"
        return fact, f"{text}: what is said of one may be due to another."


def _groups(r: FloatArray, level: float) -> Iterator[tuple[list[int], float]]:
    """Yield groups of columns that are linked by correlations, with the least within each."""
    n_groups, group = connected_components(r > level, directed=False)
    for number in range(n_groups):
        columns = np.flatnonzero(group == number)
        if len(columns) > 1:
            yield columns.tolist(), float(r[np.ix_(columns, columns)].min())
