"""A fitted model in sentences, each of which states a fact about the fitted function.

A component is described by what its curve does, and named after its kernel only where it repeats.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from autokernel.data.columns import NO_VALUE
from autokernel.data.resolution import resolution_with
from autokernel.explain.axes import Y_NAME, axes_of
from autokernel.explain.checks import FACTOR_FOR_LOG, can_leave_out, checked, of_outliers
from autokernel.explain.components import ComponentFacts
from autokernel.explain.decomposition import (
    SMALL,
    TEXT_OF_REST,
    Component,
    Decomposition,
    ExplainedFunction,
    Interaction,
)
from autokernel.explain.facts import Fact
from autokernel.explain.interactions import InteractionFacts
from autokernel.explain.noise import of_varying_noise
from autokernel.explain.parts import Part
from autokernel.explain.sentences import SCALE_WORDS, UNNAMED, Said, Sentences
from autokernel.explain.tables import Table, inclusion_table, scale_table
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

MAX_SHORT, MAX_PAIRS = 3, 5  # components in a short description
EXCLUDED = 0.05  # probability up to which the kernels of weight do not use a column
MIN_AVERAGING_SHARE = 0.01  # of the variance, from which averaging is worth a sentence
ALIKE, SAME_COLUMN = 0.95, 1 - 1e-9  # correlations from which two columns are hardly distinct
LARGE_ERROR = 1.5  # deviations of the noise, from which the error is worth a sentence
LARGE_ROUNDING = 0.1  # of the variance of the noise, from which rounding is worth a sentence
TINY = np.finfo(float).tiny
USED = "kernels that use the column"


class Description:
    """A fitted model in words: one explanation for sentences, tables and pictures.

    The ``axes`` are its columns with their units. The search was ``cut`` for a reason, if it was,
    and had ``n_searched`` rows. Without a search of this kernel, these are none.
    """

    def __init__(
        self,
        model: FittedModel,
        units: Mapping[str, str] | None = None,
        *,
        target_name: str | None = None,
        cut: str = "",
        n_searched: int = 0,
        has_tried_log: bool = False,
    ) -> None:
        self._model, self._cut, self._has_tried_log = model, cut, has_tried_log
        self._n_searched = n_searched
        self.axes, unit = axes_of(model.columns, units, target_name)
        self.scale, self.explained = model.scale.name, ExplainedFunction(model)
        self.parts = self.explained.parts  # the components of the best kernel
        offset = model.scale.offset  # on a scale of logs, all amounts are those of this sum
        y_name = (target_name or UNNAMED) + (f" + {offset:g}" if offset else "")
        self._say = Sentences(self.axes, y_name=y_name, unit=unit, scale=self.scale)
        self.names = self._say.names
        self._component = cache(self._described)
        self._is_rough = not np.isfinite(model.evaluation.score)  # nothing is known

    def decompose(self, X: FloatArray, *, has_words: bool = True) -> Decomposition:
        """Compute the components at inputs (n, n_features), without words if it has to be fast."""
        explained, inputs = self.explained, self._model.scaled(X)
        components = []
        for number, part in enumerate(self.effects):
            mean, std = explained.mean_and_std(part, inputs[:, part.columns])
            own = tuple(self.names[one] for one in part.columns)
            text, kernel = self.text(number) if has_words else "", " * ".join(own)
            name = kernel
            if isinstance(part, Part):
                kernel = self._model.columns.text_of(part.expression)
                name = self._say.name(part, self.parts)
            components.append(Component(kernel, text, mean, std, part.share, own, name))
        components.sort(key=lambda one: -one.share)
        if explained.is_averaged or explained.interactions:
            found = sum((one.mean for one in components), start=np.full(len(X), explained.constant))
            mean, std = explained.rest(inputs, found)
            share = 1 - sum(one.share for one in components)
            components.append(Component("", TEXT_OF_REST, mean, std, share))
        constant = self._model.scale.shift + explained.constant
        noise = self._model.noise_variance**0.5
        if self.scale == "log":
            constant = float(np.exp(constant))
            components = [replace(one, mean=np.exp(one.mean)) for one in components]
        return Decomposition(constant, noise, components, self.scale, self._model.scale.offset)

    @cached_property
    def interactions(self) -> list[Interaction]:
        """The pairs of columns whose effects depend on each other enough to be worth a sentence."""
        every = (one for one in self.explained.interactions if not one.is_small)
        return [one for one in every if not self._is_nested(one)][:MAX_PAIRS]

    def _is_nested(self, pair: Interaction) -> bool:
        """Whether each level of a category has one value of the other column only."""
        values = self.explained.X[:, pair.columns]
        n_pairs = len(np.unique(values, axis=0))
        every = zip(pair.columns, values.T, strict=True)
        return any(self.axes[one].levels and len(np.unique(x)) == n_pairs for one, x in every)

    @property
    def effects(self) -> list[Part | Interaction]:
        """The components of the best kernel and, after these, the interactions."""
        return [*self.parts, *self.interactions]

    @property
    def shown(self) -> list[int]:
        """The numbers of the effects that are described, the largest share first."""
        effects, is_small = self.effects, range(self.explained.n_large, len(self.parts))
        every = [number for number in range(len(effects)) if number not in is_small]
        return [] if self._is_rough else sorted(every, key=lambda number: -effects[number].share)

    def text(self, number: int) -> str:
        """Describe a component of the best kernel in one sentence."""
        return self._component(number)[0][1]

    def paragraphs(self) -> list[str]:
        """Describe each component, the largest share first, without those that explain little."""
        return [_in_one(self._component(number)) for number in self.shown]

    def facts(self, number: int) -> list[Fact]:
        """Return what is said of a component, the main fact first."""
        return [fact for fact, _ in self._component(number)]

    def remarks(self) -> list[str]:
        """Say what the components do not, and of which columns and which kernel they are."""
        small = [text for _, text in self._small()]
        kernel = [_in_one(self._columns()), self._averaging(), self._best_kernel()]
        return [*filter(None, [*small, " ".join(filter(None, kernel)), _in_one(self._residuals)])]

    def overview(self) -> str:
        """Say what limits the search, what the target is on average, and how much is noise."""
        return _in_one([*self._search(), *self._target()])

    def short(self) -> str:
        """Say what is largest, in at most three lines."""
        first = (self._component(number)[0][1] for number in self.shown[:MAX_SHORT])
        checks = [*self._search(), *self._residuals]
        lines = [_in_one(self._target()), " ".join(first), _in_one(checks[:1])]
        return "\n".join(line for line in lines if line)

    def __str__(self) -> str:
        parts = [f"{place}. {text}" for place, text in enumerate(self.paragraphs(), start=1)]
        return "\n\n".join([self.overview(), *parts, *self.remarks()])

    def table(self) -> Table:
        """Return all facts with the sentences that state them, a row for each."""
        said = [*self._search(), *self._target()]
        for number in self.shown:
            said += self._component(number)
        said += [*self._small(), *self._columns(), *self._residuals]
        columns: dict[str, Any] = {
            field.name: [getattr(fact, field.name) for fact, _ in said] for field in fields(Fact)
        }
        texts = [text for _, text in said]
        for number, text in enumerate(texts):
            texts[number] = text or texts[number - 1]  # several facts of one sentence
        columns["text"] = texts
        return Table(columns, shown=("predicate", "value", "low", "high", "probability", "text"))

    def _search(self) -> Iterator[Said]:
        n = len(self._model.rows)
        if self._model.target.is_constant:
            return  # no kernel would be better
        if self._is_rough:
            fact = Fact("search", "has no score", evidence="search_history_")
            why = "The search was cut before any kernel had a score: the model is a rough fit of"
            yield fact, f"{why} one kernel to some rows, and what matters is not known."
            return
        if 0 < self._n_searched < n:
            text = f"Kernels were searched on {self._n_searched} of the {n} rows."
            how = "search_history_"
            yield Fact("search", "is of some rows", self._n_searched, evidence=how), text
        if self._cut:
            text = f"The search was cut ({self._cut}): kernels that it has not tried may be better."
            yield Fact("search", "was cut", evidence=self._cut), text

    @cached_property
    def _held_out(self) -> tuple[FloatArray, FloatArray] | None:
        """Predictions of each row from all others, if they can be made."""
        return self._model.mixture.leave_one_out() if can_leave_out(self._model) else None

    @cached_property
    def _residuals(self) -> list[Said]:
        found, model = list(of_outliers(self._model)), self._model
        if self._is_rough:
            return []
        if model.target.is_constant:
            return found
        y, has_tried_log = model.target.inverse(model.mixture.data.u), self._has_tried_log
        has_tried_log |= any(one.evaluation.expression.target != IDENTITY for one in model.kernels)
        may_have_log = not has_tried_log and 0 < FACTOR_FOR_LOG * y.min() <= y.max()
        advice = f": try the log of {self._say.y_name}" if may_have_log else ""
        return found + list(checked(model, self._held_out, self.axes, advice))

    def _described(self, number: int) -> list[Said]:
        """Return what is said of an effect."""
        part = self.effects[number]
        if isinstance(part, Interaction):
            return InteractionFacts(self.explained, part, self._say).all()
        is_hidden = any(fact.predicate == "is hidden" for fact, _ in self._residuals)
        facts = ComponentFacts(self.explained, part, self._say, is_hidden=is_hidden)
        first = next(one for one in self.parts if one.column == part.column)
        is_judged = part.column not in self._model.unjudged and len(self.names) > 1
        matters = [self._matters(part.column)] if part is first and is_judged else []
        return [*facts.all(), *matters]

    @cached_property
    def _used(self) -> list[float]:
        """For each column, the probability of the kernels that use it, as it is written."""
        return np.round(inclusion_table(self._model)["depends"], 2).tolist()

    def _matters(self, column: int) -> Said:
        """Return that a column matters, a fact that the sentence about its effect states."""
        sure = self._used[column]
        predicate = "matters" if sure >= CERTAIN else "may matter"
        return Fact(self.names[column], predicate, probability=sure, evidence=USED), ""

    def _small(self) -> Iterator[Said]:
        small = self.parts[self.explained.n_large :]
        if self._is_rough:
            return
        if small:
            columns = sorted({part.column for part in small})
            names, share = [self.names[one] for one in columns], sum(part.share for part in small)
            fact = Fact(listing(names), "share", share, evidence="covariance with the fit")
            verb = "explains" if len(small) == 1 else "together explain"
            which = f"{capital(counted(len(small), 'smaller component'))} of {fact.subject}"
            yield fact, f"{which} {verb} {percent(share)} of the variance of the fit."
            large = {part.column for part in self.parts[: self.explained.n_large]}
            sure = [one for one in columns if one not in large and self._used[one] >= CERTAIN]
            yield from map(self._matters, sure if len(self.names) > 1 else [])
        more = 1 - sum(one.share for one in self.effects)
        if self.explained.interactions and more >= SMALL:
            fact = Fact("the rest", "share", more, evidence="covariance with the fit")
            which = "Other interactions explain" if self.interactions else "Interactions explain"
            yield fact, f"{which} {percent(more)} of the variance of the fit."

    @cached_property
    def _has_outliers(self) -> bool:
        return any(fact.predicate.startswith("does not fit") for fact, _ in self._residuals)

    def _target(self) -> list[Said]:
        """Say what the target is on average, how much is explained, and how much is noise."""
        target, name, unit = self._model.target, self._say.y_name, self._say.unit
        if target.is_constant:
            how, value, name = "training targets", target.shift, self._say.begun("", f"{name} ")
            text = f"{name}is constant, {with_unit(value, unit)}: the data do not show"
            fact = Fact(Y_NAME, "is constant", value, unit=unit, evidence=how)
            return [(fact, f"{text} how it would vary.")]
        kind, average, has = "mean", target.on(IDENTITY).shift, "has a standard deviation of"
        if self.scale == "log":
            kind, average = "geometric mean", float(np.exp(self._model.scale.shift))
            has = "is typically"
        written = level_text(average, target.width, unit)
        noise, deviation = self._noise()
        if not self._model.evaluation.expression.leaves:
            has = "that is typically" if self.scale == "log" else "with a standard deviation of"
            text = f"{name} is noise {has} {deviation} around its {kind}, {written}"
            return [(noise, f"No structure was found: {text}.")]
        mean = Fact(Y_NAME, kind, average, unit=unit, evidence=f"{kind} of the training targets")
        if self._is_rough:
            return [(mean, f"The {kind} of {name} is {written}.")]
        what, more = "The noise", ""
        if self._has_outliers:
            what, more = "What is left", ", widened by outliers"
        return [
            *self._scale(),
            (mean, f"The {kind} of {name} is {written}."),
            *self._how_much(),
            (noise, f"{what} {has} {deviation}{more}."),
            *of_varying_noise(self._model, self.axes),
            *self._resolution(),
        ]

    def _columns(self) -> Iterator[Said]:
        """Say which columns may matter, which are not used, and which are nearly the same."""
        if len(self.names) == 1 or self._is_rough or not self._model.evaluation.expression.leaves:
            return
        if unjudged := [self.names[one] for one in self._model.unjudged]:
            matter = "matters" if len(unjudged) == 1 else "matter"
            text = f"Whether {listing(unjudged)} {matter} is not known, as the search was cut."
            yield Fact(listing(unjudged), "is not judged", evidence=USED), text
        is_fixed = np.ptp(self.explained.X, axis=0) == 0
        every = [*zip(self._model.columns.every, self._used, is_fixed, strict=True)]
        rows = [(one.name, p) for one, p, fixed in every if not fixed]
        doubted = {  # as the sentences about their effects have a probability
            self.names[self.parts[number].column]
            for number in range(self.explained.n_large)
            if any(fact.probability < CERTAIN for fact, text in self._component(number) if text)
        }
        unsure = [(name, p) for name, p in rows if EXCLUDED < p < CERTAIN]
        yield from _may_matter([one for one in unsure if one[0] not in doubted])
        unused = [name for name, p in rows if p <= EXCLUDED]
        yield from _are(unused, "not used by the kernels of weight")
        n, empty = len(self.explained.X), [one for one, *_ in every if one.origin == NO_VALUE]
        what = f"constant in the {n} rows of the fit" if n < len(self._model.rows) else "constant"
        yield from _are([one.name for one, _, fixed in every if fixed and one not in empty], what)
        yield from _are([one.name for one in empty], "without a value")
        yield from self._alike()

    def _averaging(self) -> str:
        """Say how much averaging changes the predictions, if it is worth a sentence."""
        added = self.explained.added_by_averaging()
        if added <= np.sqrt(MIN_AVERAGING_SHARE) * self._model.scale.width:
            return ""
        amount = self._say.amount(float(self.explained.in_unit(added)))
        text = "Predictions average over other kernels and parameters too, which changes them by"
        return f"{text} {amount} (root mean square over the data)."

    def _best_kernel(self) -> str:
        """Say which kernel is described, and how probable it is, if there are others."""
        best = self._model.evaluation
        p = {one.evaluation.expression: one.probability for one in self._model.kernels}
        text = self._model.columns.text_of(best.expression)
        sure = f"its probability among those that were evaluated is {p[best.expression]:.2f}"
        has_others = len(p) > 1 and best.expression.leaves
        return f"This describes the best kernel, {text}; {sure}." if has_others else ""

    def _scale(self) -> Iterator[Said]:
        table = scale_table(self._model)
        own = (table["subject"] == "target") & (table["scale"] == self.scale)
        sure = float(table["probability"][own].sum())
        what, text = "effects add up", f"Effects add up on the {SCALE_WORDS[self.scale]} scale"
        if self.scale == "log":
            what, text = "effects multiply", "The effects multiply (log scale)"
        if sure < CERTAIN or self.scale != IDENTITY:
            how = "kernels on this scale of the target"
            fact = Fact(Y_NAME, what, probability=sure, evidence=how)
            yield fact, f"{perhaps(text, sure)}."

    def _noise(self) -> Said:
        model = self._model
        variances = np.exp(self.explained.parameters[:, -1]) + model.typical_rounding
        stds = np.append(
            np.sqrt(model.noise_variance), model.scale.width * np.sqrt(interval(variances))
        )
        deviation, low, high = self.explained.in_unit(stds).tolist()
        how = "parameter of the best kernel"
        predicate = "noise with outliers" if self._has_outliers else "noise"
        fact = Fact(Y_NAME, predicate, deviation, low, high, evidence=how)
        return self._say.measured(fact), self._say.amount(deviation, low, high)

    def _resolution(self) -> Iterator[Said]:
        model, unit, name = self._model, self._say.unit, self._say.begun("", self._say.y_name)
        rounding = model.typical_rounding
        share = rounding / max(rounding + model.scaled_noise_variance, TINY)
        if share >= LARGE_ROUNDING:
            step = resolution_with(model.mixture.data.noise.rounding[0] * model.target.width**2)
            fact = Fact(Y_NAME, "is rounded to", step, unit=unit, evidence="training targets")
            text = f"{name} is recorded to the nearest {f'{step:g} {unit}'.rstrip()}"
            yield fact, f"{text}: rounding is {percent(share)} of the variance of the noise."

    def _how_much(self) -> Iterator[Said]:
        """Say how much of the variance is explained, and how large errors are if they are large."""
        model, rows, unit = self._model, self._model.mixture.data, self._say.unit
        of = "the variance of held-out rows"
        how = "errors of predictions of each row from all others"
        if self._held_out is None:
            of = "the variance of the rows that it was fitted to, and may explain less of others"
            how = "variance of the fit to the rows"
        errors = self._held_out[1] if self._held_out else rows.u - model.mixture.mean(rows.X)
        explained, excluded = _share_explained(errors, rows.u), model.outliers
        text = f"The fit explains {percent(explained)} of {of}."
        if len(excluded.y):
            inputs, u = model.columns.inputs(excluded.X), model.target.forward(excluded.y)
            of_excluded = u - model.mixture.mean(inputs.values)
            without = f"{percent(explained)} without the excluded rows"
            every = np.concatenate([errors, of_excluded]), np.concatenate([rows.u, u])
            explained = _share_explained(*every)
            text = f"The fit explains {percent(explained)} of {of}; {without}."
        yield Fact(Y_NAME, "explained", explained, evidence=how), text
        data = model.transformed
        _, noise = model.scale.moments(data.y, data.noise.variance(model.scaled_noise_variance))
        size = float(np.sqrt(np.mean(errors**2)))
        if self._held_out and size > LARGE_ERROR * np.sqrt(noise.mean()):
            error = model.target.width * size
            fact = Fact(Y_NAME, "is missed", error, unit=unit, evidence=how)
            yield fact, f"The leave-one-out error is {with_unit(error, unit)}."

    def _alike(self) -> Iterator[Said]:
        every = zip(self.axes, self.explained.X.T, strict=True)
        varying = {axis.name: x for axis, x in every if np.ptp(x) > 0 and axis.is_numeric}
        if len(varying) < 2:
            return
        r, names = np.abs(np.corrcoef([*varying.values()])), np.array([*varying])
        for group, least in _groups(r, SAME_COLUMN):
            yield _are_alike(names[group].tolist(), least, "are one column in different units")
        for group, least in _groups(r, ALIKE):
            if least <= SAME_COLUMN:
                what = "can hardly be distinguished in these data"
                yield _are_alike(names[group].tolist(), least, what)


def _in_one(said: Iterator[Said] | Sequence[Said]) -> str:
    return " ".join(text for _, text in said if text)


def _are(names: Sequence[str], what: str) -> Iterator[Said]:
    if names:
        predicate = f"is {what.split(' by ')[0]}"
        fact = Fact(listing(names), predicate, probability=CERTAIN, evidence=USED)
        yield fact, f"{listing(names)} {'is' if len(names) == 1 else 'are'} {what}."


def _may_matter(found: Sequence[tuple[str, float]]) -> Iterator[Said]:
    names = listing([f"{name} ({p:.2f})" for name, p in found] or [""])
    text = f"It is uncertain whether {names} {'matters' if len(found) == 1 else 'matter'}."
    for name, p in found:
        yield Fact(name, "may matter", probability=p, evidence=USED), text
        text = ""  # which the first of them has


def _share_explained(errors: FloatArray, u: FloatArray) -> float:
    return max(0.0, 1 - float(np.mean(errors**2) / max(u.var(), TINY)))


def _groups(r: FloatArray, least: float) -> Iterator[tuple[IntArray, float]]:
    """Yield groups of columns that are linked by correlations, with the least within each."""
    n_groups, group = connected_components(r > least, directed=False)
    for columns in (np.flatnonzero(group == number) for number in range(n_groups)):
        if len(columns) > 1:
            yield columns, float(r[np.ix_(columns, columns)].min())


def _are_alike(names: Sequence[str], least: float, what: str) -> Said:
    fact = Fact(listing(names), "are alike", least, evidence="least correlation of the columns")
    size = f"{least:.2f}{' or more' * (len(names) > 2)}" if least <= 0.995 else "above 0.99"
    text = f"{listing(names)} {what} (their correlation is {size})"
    return fact, f"{text}: what is said of one may be due to another."
