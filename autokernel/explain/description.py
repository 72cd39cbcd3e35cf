"""A fitted model in sentences, each of which states a fact about the fitted function.

A component is described by what its curve does, and named after its kernel only where it repeats.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, cached_property
from itertools import chain, filterfalse

import numpy as np
from scipy.sparse.csgraph import connected_components

from autokernel.data.columns import EXPOSURE, NO_VALUE
from autokernel.data.counts import FAMILIES
from autokernel.data.scales import CountScale
from autokernel.explain.axes import Y_NAME, axes_of
from autokernel.explain.checks import FACTOR_FOR_LOG, checked, of_outliers, of_varying_noise
from autokernel.explain.decomposition import (
    SMALL,
    TEXT_OF_REST,
    Component,
    Decomposition,
    ExplainedFunction,
    Interaction,
)
from autokernel.explain.facts import HALF, LIKELY, SURE, Fact
from autokernel.explain.parts import Part
from autokernel.explain.sentences import (
    SCALE_WORDS,
    UNNAMED,
    ComponentFacts,
    InteractionFacts,
    Sentences,
)
from autokernel.explain.tables import Table, inclusion_table
from autokernel.explain.words import (
    CERTAIN,
    between,
    capital,
    counted,
    interval,
    level_text,
    listing,
    number,
    percent,
    perhaps,
    with_unit,
)
from autokernel.expression import IDENTITY
from autokernel.model import PRIOR_LAW, SERIES_LAW, FittedModel, share_explained
from autokernel.typing import FloatArray, IntArray

EXCLUDED = 0.05  # probability up to which the kernels of weight do not use a column
SAME_COLUMN = 1 - 1e-9  # correlation of two columns that differ in their units
OPEN_SHARE = 0.1  # of the variance, below which an effect without a direction has no sentence
TINY = np.finfo(float).tiny
MUCH_OF_ONE = 0.1  # of the share that is explained, if one row is left out
USED = "kernels that use the column"


class Description:
    """A fitted model in words: the record that sentences, tables, pictures and reports read.

    The ``axes`` are its columns with their units. The search was ``cut`` for a reason, if it was,
    and had ``n_searched`` rows. Without a search of this kernel, these are none. Nothing is
    computed before it is asked for.
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
        self.model, self.scale = model, model.scale.name
        self._cut, self._has_tried_log, self._n_searched = cut, has_tried_log, n_searched
        self.axes, unit = axes_of(model.columns, units, target_name)
        offset = model.scale.offset  # on a scale of logs, all amounts are those of this sum
        y_name = (target_name or UNNAMED) + (f" + {offset:g}" if offset else "")
        if model.scale.name == "logit" and model.target.exposure is not None:
            y_name = f"{y_name} / {model.columns.names[model.target.exposure]}"
        self._say = Sentences(self.axes, y_name=y_name, unit=unit, scale=self.scale)
        self.names = self._say.names
        self.facts = cache(self._facts)  # what is said of an effect, the main fact first
        self._is_rough = not np.isfinite(model.evaluation.score)  # nothing is known

    @cached_property
    def explained(self) -> ExplainedFunction:
        """The best kernel as a sum of effects."""
        return ExplainedFunction(self.model)

    def decompose(self, X: FloatArray, *, has_words: bool = True) -> Decomposition:
        """Compute the components at inputs (n, n_features), without words if it has to be fast."""
        explained, inputs = self.explained, self.model.scaled(X)
        every: list[Part | Interaction] = [*explained.parts, *self.interactions]
        components = []
        for effect in every:
            mean, std = explained.mean_and_std(effect, inputs[:, effect.columns])
            own = tuple(self.names[one] for one in effect.columns)
            text, name = self.text(effect) if has_words else "", " * ".join(own)
            kernel = name
            if isinstance(effect, Part):
                kernel = self.model.columns.text_of(effect.expression)
                name = self._say.name(effect, explained.parts)
            components.append(Component(kernel, text, mean, std, effect.share, own, name))
        components.sort(key=lambda one: -one.share)
        if explained.is_averaged or explained.interactions:
            found = sum((one.mean for one in components), start=np.full(len(X), explained.constant))
            mean, std = explained.rest(inputs, found)
            share = 1 - sum(one.share for one in components)
            components.append(Component("", TEXT_OF_REST, mean, std, share))
        constant = self.model.scale.shift + explained.constant
        noise = self.model.noise_variance**0.5
        if self.scale == "log":
            constant = float(np.exp(constant))
            components = [replace(one, mean=np.exp(one.mean)) for one in components]
        centre, has_exposure = "median", self.model.target.exposure is not None
        if self.model.transformed.has_counts:
            centre = "rate" if has_exposure else "mean"
        more = self.scale, self.model.scale.offset, centre
        return Decomposition(constant, noise, components, *more)

    @cached_property
    def interactions(self) -> list[Interaction]:
        """The pairs of columns whose effects depend on each other enough to be worth a sentence."""
        own, is_seen = self.explained.interactions, self.explained.is_seen
        every = (one for one in own if one.share >= SMALL or is_seen(one.size))
        return [one for one in every if not self._is_nested(one)][:5]

    def _is_nested(self, pair: Interaction) -> bool:
        """Whether each level of a category has one value of the other column only."""
        values = self.explained.X[:, pair.columns]
        n_pairs = len(np.unique(values, axis=0))
        every = zip(pair.columns, values.T, strict=True)
        return any(self.axes[one].levels and len(np.unique(x)) == n_pairs for one, x in every)

    @property
    def shown(self) -> list[Part | Interaction]:
        """The effects that are drawn, in the order of what their columns change.

        That is the deviation over the rows of an effect with the interactions of its column.
        """
        if self._is_rough:
            return []
        large = filterfalse(self._is_open, self.explained.parts[: self.explained.n_large])

        def changes(effect: Part | Interaction) -> float:
            own = (isinstance(effect, Part) and self.interactions) or []
            with_it = (one.size for one in own if effect.columns[0] in one.columns)
            return float(np.linalg.norm([effect.size, *with_it]))

        return sorted([*large, *self.interactions], key=changes, reverse=True)

    @property
    def described(self) -> list[Part | Interaction]:
        """The effects that have a sentence: all shown but interactions that are all uncertain."""
        return [e for e in self.shown if isinstance(e, Part) or len(self.facts(e)) > 1]

    def _is_open(self, part: Part) -> bool:
        """Whether a part that explains little has no direction that is likely."""
        first = self.facts(part)[0]
        least = SURE if abs(part.share) < SMALL else LIKELY
        is_partly = abs(part.share) < SMALL and first.predicate.endswith("between")
        is_unlikely = first.predicate == "is open" or is_partly or first.probability < least
        return part.share < OPEN_SHARE and len(self.names) > 1 and is_unlikely

    def text(self, effect: Part | Interaction) -> str:
        """Describe an effect in one sentence."""
        return self.facts(effect)[0].text

    def paragraphs(self) -> list[str]:
        """Describe each component, without those that explain little."""
        return [_in_one(self.facts(effect)) for effect in self.described]

    def remarks(self) -> list[str]:
        """Say what the components do not, and of which columns and which kernel they are."""
        return [*filter(None, map(_in_one, self._remarks))]

    @cached_property
    def _remarks(self) -> list[list[Fact]]:
        kernel = [*self._columns(), *self._averaging(), *self._best_kernel(), *self._ahead()]
        return [*([one] for one in self._small()), kernel, self._residuals]

    def overview(self) -> str:
        """Say what limits the search, what the target is on average, and how much is noise."""
        return _in_one([*self._search(), *self._target()])

    def short(self) -> str:
        """Say what is largest, in at most three lines."""
        first = " ".join(map(self.text, self.described[:3]))
        checks = [*self._search(), *self._residuals]
        lines = [_in_one(self._target()), first, _in_one(checks[:1])]
        return "\n".join(line for line in lines if line)

    def __str__(self) -> str:
        parts = [f"{place}. {text}" for place, text in enumerate(self.paragraphs(), start=1)]
        return "\n\n".join([self.overview(), *parts, *self.remarks()])

    def table(self) -> Table:
        """Return all facts with the sentences that state them, a row for each."""
        groups = chain(map(self.facts, self.described), self._remarks)
        every = [*self._search(), *self._target(), *chain.from_iterable(groups)]
        for n, fact in enumerate(every):
            every[n] = fact.said(fact.text or every[n - 1].text)  # several facts of one sentence
        columns = {one.name: [getattr(fact, one.name) for fact in every] for one in fields(Fact)}
        return Table(columns, shown=("predicate", "value", "low", "high", "probability", "text"))

    def _search(self) -> Iterator[Fact]:
        n, how = len(self.model.rows), "search_history_"
        if self.model.target.is_constant:
            return  # no kernel would be better
        if self._is_rough:
            text = (
                "The search was cut before any kernel had a score: the model is a rough fit of one "
                "kernel to some rows, and what matters is not known."
            )
            yield Fact("search", "has no score", evidence=how, text=text)
            return
        if 0 < self._n_searched < n:
            text = f"Kernels were searched on {self._n_searched} of the {n} rows."
            yield Fact("search", "is of some rows", self._n_searched, evidence=how, text=text)
        if self._cut:
            text = f"The search was cut ({self._cut}): kernels that it has not tried may be better."
            yield Fact("search", "was cut", evidence=self._cut, text=text)

    @cached_property
    def _residuals(self) -> list[Fact]:
        found, model = list(of_outliers(self.model)), self.model
        if self._is_rough:
            return []
        if model.target.is_constant:
            return found
        y, has_tried_log = model.target.inverse(model.mixture.data.u), self._has_tried_log
        has_tried_log |= any(one.evaluation.expression.target != IDENTITY for one in model.kernels)
        may_have_log = not has_tried_log and 0 < FACTOR_FOR_LOG * y.min() <= y.max()
        advice = f": try the log of {self._say.y_name}" if may_have_log else ""
        return found + list(checked(model, self.axes, advice))

    def _facts(self, effect: Part | Interaction) -> list[Fact]:
        if isinstance(effect, Interaction):
            return InteractionFacts(self.explained, effect, self._say).all()
        is_hidden = any(one.predicate == "is hidden" for one in self._residuals)
        facts = [*ComponentFacts(self.explained, effect, self._say, is_hidden=is_hidden).all()]
        first, *_ = self.explained.along(effect.column)
        is_judged = effect.column not in self.model.unjudged and len(self.names) > 1
        return [*facts, self._matters(effect.column)] if effect is first and is_judged else facts

    @cached_property
    def _used(self) -> list[float]:
        """For each column, the probability of the kernels that use it, as it is written."""
        return np.round(inclusion_table(self.model)["depends"], 2).tolist()

    def _matters(self, column: int) -> Fact:
        """Return that a column matters, a fact that the sentence about its effect states."""
        sure = self._used[column]
        predicate = "matters" if sure >= CERTAIN else "may matter"
        return Fact(self.names[column], predicate, probability=sure, evidence=USED)

    def _small(self) -> Iterator[Fact]:
        if self._is_rough:
            return
        parts, n_large = self.explained.parts, self.explained.n_large
        every = [*filter(self._is_open, parts[:n_large]), *parts[n_large:]]
        uncertain = self._uncertain()  # which have a sentence
        small = [one for one in every if self.names[one.column] not in uncertain]
        how, of = "covariance with the fit", "of the variance of the fit."
        if small:
            columns = sorted({part.column for part in small})
            names = listing([self.names[c] for c in columns])
            share = sum(part.share for part in small)
            which = f"{capital(counted(len(small), 'smaller component'))} of {names}"
            verb = "explains" if len(small) == 1 else "together explain"
            text = f"{which} {verb} {percent(max(share, 0.0))} {of}"
            if abs(share) < HALF * sum(abs(part.share) for part in small):
                text = f"{text.removesuffix('.')}, as they offset each other."
            yield Fact(names, "share", share, evidence=how, text=text)
            large = {part.column for part in self.shown if isinstance(part, Part)}
            sure = [one for one in columns if one not in large and self._used[one] >= CERTAIN]
            yield from map(self._matters, sure if len(self.names) > 1 else [])
        pairs = [one for one in self.described if isinstance(one, Interaction)]
        more = 1 - sum(one.share for one in self.explained.parts) - sum(one.share for one in pairs)
        if self.explained.interactions and more >= SMALL:
            which = "Other interactions explain" if pairs else "Interactions explain"
            most = max(self.explained.interactions, key=lambda one: (one not in pairs) * one.share)
            if most not in pairs and most.share > HALF * more:
                own = listing([self.names[one] for one in most.columns])
                of = f"{of.removesuffix('.')}, most of it that of {own}."
            text = f"{which} {percent(more)} {of}"
            yield Fact("the rest", "share", more, evidence=how, text=text)

    def _target(self) -> list[Fact]:
        """Say what the target is on average, how much is explained, and how much is noise."""
        target, name, unit = self.model.target, self._say.y_name, self._say.unit
        if target.is_constant:
            what = f"is constant, {with_unit(target.shift, unit)}"
            text = self._say.begun("", f"{name} {what}: the data do not show how it would vary.")
            fact = Fact(Y_NAME, "is constant", target.shift, unit=unit, evidence="training targets")
            return [fact.said(text)]
        kind, average, has = "mean", target.scales[IDENTITY].shift, "has a standard deviation of"
        if self.scale == "log":
            kind, average = "geometric mean", float(np.exp(self.model.scale.shift))
            has = "is typically"
        if self.model.transformed.has_counts:
            return [*self._scale(), *self._of_counts(), *self._how_much()]
        written = level_text(average, target.width, unit)
        has_outliers = any(fact.predicate == "does not fit" for fact in self._residuals)
        noise, deviation = self._noise("noise with outliers" if has_outliers else "noise")
        if not self.model.evaluation.expression.leaves:
            has = "that is typically" if self.scale == "log" else "with a standard deviation of"
            text = f"{name} is noise {has} {deviation} around its {kind}, {written}"
            return [noise.said(f"No structure was found: {text}.")]
        how, text = f"{kind} of the training targets", f"The {kind} of {name} is {written}."
        mean = Fact(Y_NAME, kind, average, unit=unit, evidence=how, text=text)
        if self._is_rough:
            return [mean]
        what, more = "The noise", ""
        if has_outliers:
            what, more = "What is left", ", widened by outliers"
        noise = noise.said(f"{what} {has} {deviation}{more}.")
        varying = of_varying_noise(self.model, self.axes)
        return [*self._scale(), mean, *self._how_much(), noise, *varying, *self._resolution()]

    def _columns(self) -> Iterator[Fact]:
        """Say which columns may matter, which are not used, and which are nearly the same."""
        if len(self.names) == 1 or self._is_rough or not self.model.evaluation.expression.leaves:
            return
        described = {column for one in self.described for column in one.columns}
        unknown = [self.names[one] for one in self.model.unjudged if one not in described]
        if unjudged := listing(unknown or [""]):
            matter = "matters" if len(unknown) == 1 else "matter"
            text = f"Whether {unjudged} {matter} is not known, as the search was cut."
            yield Fact(unjudged, "is not judged", evidence=USED, text=text)
        unsure = [*self._uncertain().items()]
        names = listing([f"{name} ({p:.2f})" for name, p in unsure] or [""])
        text = f"It is uncertain whether {names} {'matters' if len(unsure) == 1 else 'matter'}."
        for name, p in unsure:
            yield Fact(name, "may matter", probability=p, evidence=USED, text=text)
            text = ""  # which the first of them has
        missed = {f.subject for f in self._residuals if f.predicate == "is not used but missed"}
        varying = self._varying()
        unused = [name for name, p in varying.items() if p <= EXCLUDED and name not in missed]
        yield from _are(unused, "not used by the kernels of weight")
        yield from self._codes()
        origins = {one.name: one.origin for one in self.model.columns.every}
        empty = [name for name, origin in origins.items() if origin == NO_VALUE]
        exposures = {name for name, origin in origins.items() if origin == EXPOSURE}
        n, known = len(self.explained.X), {*varying, *empty, *exposures}
        what = f"constant in the {n} rows of the fit" if n < len(self.model.rows) else "constant"
        yield from _are([name for name in self.names if name not in known], what)
        yield from _are(empty, "without a value")
        yield from self._alike()

    def _varying(self) -> dict[str, float]:
        """Return the columns that vary, with the probabilities of the kernels that use them."""
        every = zip(self.names, self._used, np.ptp(self.explained.X, axis=0), strict=True)
        return {name: p for name, p, extent in every if extent}

    def _uncertain(self) -> dict[str, float]:
        """Return columns that may matter, with probabilities, that no other sentence has."""
        doubted = {  # as the sentences about their effects have a probability
            self.names[part.column]
            for part in self.shown
            if isinstance(part, Part)
            and any(fact.probability < CERTAIN for fact in self.facts(part) if fact.text)
        }
        every = [one for one in self._varying().items() if one[0] not in doubted]
        return {name: p for name, p in every if EXCLUDED < p < CERTAIN}

    def _codes(self) -> Iterator[Fact]:
        """Say which whole numbers are taken for levels, and how to have them so always."""
        for column, (axis, name) in enumerate(zip(self.axes, self.names, strict=True)):
            sure = self.explained.levels_probability(column)
            if sure > EXCLUDED and not axis.levels:
                text = f"{name} has whole numbers that are taken for levels without an order"
                text = f"{perhaps(text, sure)}; categorical_features=[{name!r}] always does so."
                how = "kernels that have CAT on the column"
                yield Fact(name, "has levels", probability=sure, evidence=how, text=text)

    def _averaging(self) -> Iterator[Fact]:
        """Say how much averaging changes the predictions, if it is worth a sentence."""
        added = self.explained.added_by_averaging()
        if added > 0.1 * self.model.scale.width:  # a hundredth of the variance
            change, how = float(self.explained.in_unit(added)), "root mean square over the data"
            text = "Predictions average over other kernels and parameters too, which changes them"
            text = f"{text} by {self._say.amount(change)} ({how})."
            yield self._say.measured(Fact(Y_NAME, "is averaged", change, evidence=how, text=text))

    def _best_kernel(self) -> Iterator[Fact]:
        """Say which kernel is described, and how probable it is, if there are others."""
        best = self.model.evaluation.expression
        p = {one.evaluation.expression: one.probability for one in self.model.kernels}
        if len(p) > 1 and best.leaves:
            kernel, how = self.model.columns.text_of(best), "kernels that were evaluated"
            sure = f"its probability among those that were evaluated is {p[best]:.2f}"
            text = f"This describes the best kernel, {kernel}; {sure}."
            yield Fact(kernel, "is the best kernel", probability=p[best], evidence=how, text=text)

    def _ahead(self) -> Iterator[Fact]:
        """Say which kernels predict rows beyond the time of the fit, unless it is the best one."""
        model, shares = self.model, dict[str, float]()
        if (ahead := model.ahead) is None:
            return
        for one, weight in zip(ahead.components, ahead.weights.tolist(), strict=True):
            name = model.columns.text_of(one.expression)
            shares[name] = shares.get(name, 0.0) + weight
        name, *others = sorted(shares, key=shares.__getitem__, reverse=True)
        if shares[name] < CERTAIN or name != model.columns.text_of(model.evaluation.expression):
            time, sure = model.columns.names[model.series.columns[0]], shares[name]
            some = f"{name} ({percent(sure)})" if others else name
            more = f" and {counted(len(others), 'other kernel')}" if others else ""
            text = f"Rows later in {time} than all of their group are predicted by {some}{more}"
            text = f"{text}, which the last rows of each group confirm."
            how = "evidence and the last block of each group"
            yield Fact(name, "predicts later rows", probability=sure, evidence=how, text=text)

    def _of_counts(self) -> Iterator[Fact]:
        """Say what a count is on average, and how its variance compares with independent events."""
        model, name, best = self.model, self._say.y_name, self.model.evaluation
        scale = model.target.scales[best.expression.target]
        assert isinstance(scale, CountScale)
        family, mean = scale.family, float(scale.family.rate(np.array(scale.shift)))
        column = model.target.exposure
        per = "" if column is None else f" per unit of {self.names[column]}"
        text = f"The mean of {name} is {with_unit(mean, self._say.unit)}{per}."
        if family.is_share and column is not None:
            text = f"On average, {name} is {percent(mean)}."
        if not best.expression.leaves:
            text = f"No structure was found. {text}"
        how, of = "training targets", "independent trials" if family.is_share else "Poisson counts"
        yield Fact(Y_NAME, "mean", mean, evidence=how, text=text)
        if self._is_rough:
            return
        means = model.target.inverse(model.mixture.mean(model.mixture.data.X))
        exposure = model.target.exposures(model.mixture.data.inputs)
        alone, ratios = FAMILIES["binomial" if family.is_share else "poisson"], list[float]()
        for theta in (best.theta, *self.explained.parameters):
            rates = scale.of_rows(exposure, theta[-1]).rates
            both = (one.law(means, rates).var().mean() for one in (family, alone))
            ratios.append(float(np.divide(*both)))
        ratio, (low, high) = ratios[0], interval(np.array(ratios[1:]))
        text = f"The noise is that of {of}."
        if family.has_dispersion:
            times = between(ratio, float(low), float(high), "")
            text = f"The noise has {times} times the variance of {of}."
        how = "parameter of the best kernel"
        yield Fact(Y_NAME, "noise", ratio, float(low), float(high), evidence=how, text=text)

    def _scale(self) -> Iterator[Fact]:
        every = ((one.evaluation.expression.target, one.probability) for one in self.model.kernels)
        scales = self.model.target.scales
        sure = sum(p for scale, p in every if scales[scale].link.name == self.scale)
        what, text = "effects add up", f"Effects add up on the {SCALE_WORDS[self.scale]} scale"
        if self.scale == "log":
            what, text = "effects multiply", "The effects multiply (log scale)"
        if sure < CERTAIN or self.scale != IDENTITY:
            text, how = f"{perhaps(text, sure)}.", "kernels on this scale of the target"
            yield Fact(Y_NAME, what, probability=sure, evidence=how, text=text)

    def _noise(self, predicate: str) -> tuple[Fact, str]:
        """Return the deviation of the noise as a fact, and as it is written."""
        model = self.model
        variances = np.exp(self.explained.parameters[:, -1]) + model.typical_rounding
        ends = model.scale.width * np.sqrt(interval(variances))
        stds = np.append(np.sqrt(model.noise_variance), ends)
        deviation, low, high = self.explained.in_unit(stds).tolist()
        how = "parameter of the best kernel"
        fact = Fact(Y_NAME, predicate, deviation, low, high, evidence=how)
        return self._say.measured(fact), self._say.amount(deviation, low, high)

    def _resolution(self) -> Iterator[Fact]:
        model, unit, name = self.model, self._say.unit, self._say.begun("", self._say.y_name)
        rounding = model.typical_rounding
        share = rounding / max(rounding + model.scaled_noise_variance, TINY)
        if share >= 0.1:  # of the variance of the noise
            step = model.mixture.data.noise.multiplied(model.target.width**2).resolution
            fact = Fact(Y_NAME, "is rounded to", step, unit=unit, evidence="training targets")
            text = f"{name} is recorded to the nearest {f'{step:g} {unit}'.rstrip()}"
            yield fact.said(f"{text}: rounding is {percent(share)} of the variance of the noise.")

    def _how_much(self) -> Iterator[Fact]:
        """Say how much of the variance is explained, and how large errors are if they are large."""
        model, data, left_out = self.model, self.model.mixture.data, self.model.left_out
        if left_out is None:
            of = "the variance of the rows that it was fitted to, and may explain less of others"
            how, errors = "variance of the fit to the rows", data.u - model.mixture.mean(data.X)
            yield self._explained(errors, data.u, np.ones_like(data.u), of, how)
            return
        u, weights, how = data.u[left_out.rows], left_out.weights, "left_out_"
        errors, n = u - left_out.mean, weights.sum()
        some = f"{n:.0f} " * bool(n < data.noise.counts.sum() - 0.5)
        yield self._explained(errors, u, weights, f"the variance of {some}held-out rows", how)
        known = model.transformed.noise
        of_all = (known.variance(model.scaled_noise_variance) - known.errors) * known.weights
        _, noise = model.scale.moments(model.transformed.y, of_all + known.errors)
        if model.transformed.has_counts:
            both = (model.mixture.moments(data.X, noise=one)[1] for one in (True, False))
            noise = np.subtract(*both)
        size = float(np.sqrt(np.average(errors**2, weights=weights)))
        if size > 1.5 * np.sqrt(noise.mean()):  # deviations of the noise
            error = model.target.width * size
            text = f"The error of held-out rows is {with_unit(error, self._say.unit)}."
            yield Fact(Y_NAME, "is missed", error, unit=self._say.unit, evidence=how, text=text)
        law = model.mixture.law
        if law != SERIES_LAW and law.deviation > PRIOR_LAW.deviation:
            text = f"Intervals are {number(law.deviation)} times as wide as the fit alone says"
            text = f"{text}, as held-out rows show."
            yield Fact("intervals", "are wider", law.deviation, evidence=how, text=text)

    def _explained(
        self, errors: FloatArray, u: FloatArray, weights: FloatArray, of: str, how: str
    ) -> Fact:
        """Say which share of the variance is explained, with excluded rows and without them."""
        explained, excluded = max(0.0, share_explained(errors, u, weights)), self.model.outliers
        left_out = self.model.left_out
        text = f"The fit explains {percent(explained)} of {of}."
        if len(excluded.y):
            X = self.model.columns.inputs(excluded.X).values
            outside = self.model.target.forward(excluded.y)
            without = f"{percent(explained)} without the excluded rows"
            errors = np.append(errors, outside - self.model.mixture.mean(X))
            share = weights.sum() / self.model.mixture.data.noise.counts.sum()
            weights = np.append(weights, np.full(len(outside), share))  # of all rows
            explained = max(0.0, share_explained(errors, np.append(u, outside), weights))
            text = f"The fit explains {percent(explained)} of {of}; {without}."
        elif left_out is not None:
            others = np.arange(len(u)) != np.argmax(weights * errors**2)
            of_others = share_explained(errors[others], u[others], weights[others])
            if of_others > explained + MUCH_OF_ONE:
                row = self.model.given_rows[left_out.rows[np.argmin(others)]]
                text = f"{text[:-1]}; {percent(of_others)} without row {row}."
        return Fact(Y_NAME, "explained", explained, evidence=how, text=text)

    def _alike(self) -> Iterator[Fact]:
        every = zip(self.axes, self.explained.X.T, strict=True)
        varying = {axis.name: x for axis, x in every if np.ptp(x) > 0 and not axis.levels}
        if len(varying) < 2:
            return
        signed, names = np.corrcoef([*varying.values()]), np.array([*varying])
        used = dict(zip(self.names, np.nan_to_num(self._used).tolist(), strict=True))
        r = np.abs(signed)
        how = "least correlation of the columns"
        for group, least in _groups(r, SAME_COLUMN):
            main, *others = sorted(names[group].tolist(), key=used.__getitem__, reverse=True)
            own = [varying[name] for name in names[group]]
            what = "are one column in different units"
            if all(len(np.unique(x)) == 2 for x in own):
                what = "separate the rows in the same way"
            if all(np.array_equal(x, own[0]) for x in own):
                what = "have the same values"
            text = f"{listing(names[group].tolist())} {what}: leave out {listing(others)}."
            yield Fact(listing([main, *others]), "are alike", least, evidence=how, text=text)
        for group, least in _groups(r, 0.95):
            own = names[group].tolist()
            is_used = any(used[one] > EXCLUDED for one in own)
            if is_used and least <= SAME_COLUMN:
                size = f"{least:.2f}{' or more' * (len(group) > 2)}"
                size = size if least <= 0.995 else "above 0.99"
                if len(group) == 2 and signed[tuple(group)] < 0:
                    size = f"-{least:.2f}" if least <= 0.995 else "below -0.99"
                what = f"can hardly be distinguished in these data (their correlation is {size})"
                text = f"{listing(own)} {what}: what is said of one may be due to another."
                yield Fact(listing(own), "are alike", least, evidence=how, text=text)


def _in_one(facts: Iterable[Fact]) -> str:
    return " ".join(one.text for one in facts if one.text)


def _are(names: Sequence[str], what: str) -> Iterator[Fact]:
    if names:
        subject, predicate = listing(names), f"is {what.split(' by ')[0]}"
        text = f"{subject} {'is' if len(names) == 1 else 'are'} {what}."
        yield Fact(subject, predicate, probability=CERTAIN, evidence=USED, text=text)


def _groups(r: FloatArray, least: float) -> Iterator[tuple[IntArray, float]]:
    """Yield groups of columns that are linked by correlations, with the least within each."""
    n_groups, group = connected_components(r > least, directed=False)
    for columns in (np.flatnonzero(group == n) for n in range(n_groups)):
        if len(columns) > 1:
            yield columns, float(r[np.ix_(columns, columns)].min())
