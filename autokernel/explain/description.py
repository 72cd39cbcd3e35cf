"""A fitted model in sentences, each of which is a claim about the fitted function.

A component is described by what its curve does, and named after its kernel only where it repeats.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from itertools import chain, takewhile
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from autokernel.data.resolution import resolution_with
from autokernel.data.scales import LARGEST_LOG, Scale
from autokernel.data.steps import YEAR
from autokernel.explain.checks import can_leave_out, checked, of_outliers
from autokernel.explain.claims import (
    MIN_GROWTH,
    N_GRID,
    NEAR_BEYOND,
    OPEN,
    Claim,
    beyond_of,
    curve_of,
    direction,
    half_way,
    jump,
    level_of,
    levels_of,
    nearly_line,
    season,
)
from autokernel.explain.decomposition import (
    MAX_PERIOD,
    MAX_ROWS,
    SMALL,
    TEXT_OF_AVERAGING,
    Component,
    Decomposition,
    ExplainedFunction,
    Part,
    inputs_along,
    leaves_of,
)
from autokernel.explain.numbers import (
    between,
    calendar_word,
    counted,
    factor_text,
    interval,
    level_text,
    listing,
    percent,
    readable,
    singular,
    with_unit,
)
from autokernel.explain.regions import WHOLE_COLUMN, Axis, Region
from autokernel.explain.tables import Table
from autokernel.expression import IDENTITY
from autokernel.kernels import Role, Share, role_index
from autokernel.model import FittedModel
from autokernel.typing import FloatArray, IntArray

TARGET = "y"  # name of the target among the units
STILL = 1e-9  # largest span of a component that does not vary, in deviations of the target
CERTAIN, EXCLUDED = 0.95, 0.05  # probabilities from which a column matters, and does not
MIN_AVERAGING_SHARE = 0.01  # of the variance, from which averaging is worth a sentence
ALIKE, SAME_COLUMN = 0.95, 1 - 1e-9  # correlations from which two columns are hardly distinct
LEVELS = (0.1, 0.9)  # quantiles of a column at which the effect of another one is shown
MAX_VALUES = 20  # of a column, up to which a curve is followed from one to the next
MISSED = 1.5  # deviations of the noise, from which it is said how far rows are missed
ROUNDED = 0.1  # of the variance of the noise, from which rounding is worth a sentence
MIN_LEVEL = 0.2  # of its swing, from which a change of the average of a cycle is mentioned
MAX_GAP = 2.5  # median gaps, up to which rows are regular
MAX_BLUR = 0.25  # of a column, up to which the place of a jump is named
MAX_LEVELS = 6  # of a category whose differences are listed
MAX_NAMED = 4  # columns of a component of many whose effects are described
MIN_YEARS = 2  # of a column of dates, from which a line is measured per year
MAX_LOG_STEP = np.log(100.0)  # of a factor per unit of a column, above which it is per less
_SCALE_WORDS = {"log": "log", "sqrt": "square root", "logit": "logit"}
_LINES = {  # on a scale of a column, of the log of the target or not: what is said of a line
    (IDENTITY, False): ("linearly", "by"),
    (IDENTITY, True): ("exponentially", "exponentially, by"),
    ("log", False): ("with the logarithm", "in proportion to the logarithm of {}, by"),
    ("log", True): ("as a power", "as a power of {}, by"),
    ("sqrt", False): ("with the square root", "in proportion to the square root of {}, by"),
    ("sqrt", True): ("exponentially with the root", "exponentially with the square root of {}, by"),
}


class Description:
    """A fitted model in words.

    Parameters
    ----------
    model : FittedModel
        The model.
    units : mapping of str to str
        Units of the columns by name, and of the target under ``"y"``.
    target_name : str or None, default=None
        Name of the target.
    cut : str, default=""
        Why the search ended before it was done, if it did.
    has_tried_log : bool, default=False
        Whether the search has tried the log of the target.
    """

    def __init__(
        self,
        model: FittedModel,
        units: Mapping[str, str],
        target_name: str | None = None,
        cut: str = "",
        *,
        has_tried_log: bool = False,
    ) -> None:
        self._model, self._target_unit = model, units.get(TARGET, "")
        self._target = target_name or "the target"
        self._explained, self._cut = ExplainedFunction(model), cut
        self._has_tried_log = has_tried_log
        self.scale = model.scale.name
        self._location, self._spread = model.scale.shift, model.scale.width
        self._unit = self._target_unit  # of amounts on the scale of the target
        if self.scale != IDENTITY:
            self._unit = f"on the {_SCALE_WORDS[self.scale]} scale"
        self._X = self._explained.X
        self.names = model.columns.names
        self.axes = [
            Axis.of(one.name, units.get(one.name, ""), one.low, one.extent, one.level_texts)
            for one in model.columns.every
        ]
        (self._best,) = (k for k in model.kernels if k.evaluation is model.evaluation)
        self._said: dict[int, list[tuple[Claim, str]]] = {}

    def decompose(self, X: FloatArray) -> Decomposition:
        """Compute the components at inputs (n, n_features)."""
        components, inputs = [], self._model.scaled(X)
        *shares, of_averaging = self._explained.shares
        for number, (part, share) in enumerate(zip(self._explained.parts, shares, strict=True)):
            mean, std = self._explained.mean_and_std(part, inputs)
            where = part.expression.to_text(self._model.columns.feature_names)
            components.append(Component(where, self._text(number), mean, std, share))
        if self._explained.is_averaged:
            mean, std = self._explained.added_by_averaging(inputs)
            components.append(Component("", TEXT_OF_AVERAGING, mean, std, of_averaging))
        constant, noise = self._location, float(np.sqrt(self._model.noise_variance))
        if self.scale == "log":
            constant = float(np.exp(constant))
            components = [replace(one, mean=np.exp(one.mean)) for one in components]
        return Decomposition(constant, noise, components, self.scale)

    def texts(self) -> list[tuple[float, str]]:
        """Return the share and the text of each component of the best kernel."""
        shares = self._explained.shares
        return [(shares[number], self._text(number)) for number in range(len(shares) - 1)]

    def columns_of(self, number: int) -> tuple[list[int], list[int]]:
        """Return the columns along which a component is a curve, and those of its categories."""
        part = self._explained.parts[number]
        return list(part.along), list(part.groups)

    def frequent_levels(self, column: int, n_most: int) -> IntArray:
        """Return which levels of a category are most frequent, in the order of the levels."""
        _, counts = np.unique(self._X[:, column], return_counts=True)
        return np.sort(np.argsort(-counts, kind="stable")[:n_most])

    def level_name(self, column: int, value: float) -> str:
        """Write a level of a category by the number that stands for it."""
        levels = self.axes[column].levels
        return levels[round(value)] if levels else f"{value:.6g}"

    def is_over_logs(self, number: int, column: int) -> bool:
        """Whether a component acts on the logarithm of a column, which is no date."""
        scale = self._explained.parts[number].scale(column)
        return scale == "log" and self.axes[column].origin is None

    def along(
        self, number: int, columns: Sequence[int], n_points: int
    ) -> tuple[list[FloatArray], FloatArray, FloatArray]:
        """Compute a component on a grid of its columns, the others at typical values.

        Returns
        -------
        axes : list of ndarray of shape (n_points,)
            Values along each column, in its units, over the extent of the data, evenly spaced on
            the scale on which the component acts; of categories, the numbers of the levels.
        mean, std : ndarray of shape (n_points,) for each column
            Mean on the scale of the target, and standard deviation of the difference from the
            average over the grid, because components can exchange a constant.
        """
        part = self._explained.parts[number]
        steps = [
            np.unique(self._X[:, column])
            if column in part.groups
            else self._explained.steps(part, column, n_points)
            for column in columns
        ]
        grid = np.meshgrid(*steps, indexing="ij")
        values = {column: one.ravel() for column, one in zip(columns, grid, strict=True)}
        inputs = inputs_along(self._explained.typical, values)
        about = inputs[:: max(1, len(inputs) // 200)]
        mean, std = self._explained.mean_and_std(part, inputs, about=about)
        axes = [
            self.axes[column].shift + self.axes[column].scale * values
            for column, values in zip(columns, steps, strict=True)
        ]
        return axes, mean.reshape(grid[0].shape), std.reshape(grid[0].shape)

    def paragraphs(self) -> list[str]:
        """Describe each component, the largest share first, without those that explain little."""
        return [
            " ".join(text for _, text in self._sentences(number) if text)
            for number in range(self._explained.n_large)
        ]

    def remarks(self) -> list[str]:
        """Say what the components do not: how much small ones explain, and what does not fit."""
        checks = " ".join(text for _, text in self._of_residuals)
        return [*(text for _, text in self._of_small()), *([checks] if checks else [])]

    @property
    def claims(self) -> list[tuple[Claim, str]]:
        """All that is said, with the sentences that say it."""
        of_parts = [
            said for number in range(self._explained.n_large) for said in self._sentences(number)
        ]
        of_whole = [*self._of_target(), *self._of_columns(), *self._of_search()]
        return [*of_whole, *of_parts, *self._of_small(), *self._of_residuals]

    def __str__(self) -> str:
        parts = [f"{place}. {text}" for place, text in enumerate(self.paragraphs(), start=1)]
        return "\n\n".join([self.overview(), *parts, *self.remarks()])

    def _of_small(self) -> Iterator[tuple[Claim, str]]:
        """Say in one line how much the components explain that are not described one by one."""
        small = self._explained.parts[self._explained.n_large :]
        if small:
            columns = sorted({column for part in small for column in part.columns})
            names = listing([self.names[column] for column in columns])
            share, n = sum(part.share for part in small), len(small)
            claim = Claim(names, "share", share, evidence="covariance with the fit")
            verb = "explains" if n == 1 else "together explain"
            what = _capital(counted(n, "smaller component"))
            yield claim, f"{what} of {names} {verb} {percent(share)} of the variance of the fit."

    def _of_search(self) -> Iterator[tuple[Claim, str]]:
        """Say why the search was cut, if it was."""
        if self._cut:
            claim = Claim("search", "was cut", evidence=self._cut)
            text = f"The search was cut ({self._cut}): kernels that it has not tried may be better."
            yield claim, text

    def short(self) -> str:
        """Say what is largest, in at most five lines."""
        lines = [" ".join(text for _, text in self._of_target())]
        for number in range(min(self._explained.n_large, 3)):
            of_curve = takewhile(lambda one: one[0].predicate != "share", self._sentences(number))
            lines.append(" ".join([text for _, text in of_curve if text][:2]))
        checks = [text for _, text in self._of_residuals]
        return "\n".join([*lines, *checks[:1]])

    def table(self) -> Table:
        """Return all that is said, a row for each claim."""
        claims = self.claims
        columns: dict[str, Any] = {
            field.name: [getattr(claim, field.name) for claim, _ in claims]
            for field in fields(Claim)
        }
        texts = [text for _, text in claims]
        for number, text in enumerate(texts):
            texts[number] = text or texts[number - 1]  # several claims of one sentence
        columns["text"] = texts
        return Table(columns, shown=("predicate", "value", "low", "high", "probability", "text"))

    def overview(self) -> str:
        """Say how many components there are, how much noise, and which columns matter."""
        model = self._model
        sentences = [text for _, text in self._of_target()]
        if not model.evaluation.expression.leaves:
            return " ".join(sentences)
        sentences += [text for _, text in self._of_columns() if text]
        if self._explained.is_averaged:
            added = self._explained.std_of_averaging
            if added > np.sqrt(MIN_AVERAGING_SHARE) * self._spread:
                sentences.append(
                    "Predictions average over other kernels and parameters too, which changes them "
                    f"by {self._amount(added)} (root mean square over the data)."
                )
        if len(model.kernels) > 1:
            kernel = model.evaluation.expression.to_text(model.columns.feature_names)
            text = (
                f"What follows is the best kernel, {kernel}; its probability among those that were "
                f"evaluated is {self._best.probability:.2f}"
            )
            first = model.kernels[0]  # by draws, while the best one has the highest score
            if first.probability > self._best.probability:
                other = first.evaluation.expression.to_text(model.columns.feature_names)
                text += f", and that of {other} is {first.probability:.2f}"
            sentences.append(f"{text}.")
        return " ".join([*sentences, *(text for _, text in self._of_search())])

    def _of_target(self) -> list[tuple[Claim, str]]:
        """Say what the target is on average, how much is explained, and how much is noise."""
        model, unit, average = self._model, self._target_unit, self._model.target.shift
        if model.target.is_constant:
            constant = Claim(TARGET, "is constant", average, unit=unit, evidence="training targets")
            text = f"{_capital(self._target)} is constant, {with_unit(average, unit)}: the data do "
            return [(constant, f"{text}not show how it would vary.")]
        kind, what, has = "mean", "average", "has a standard deviation of"
        if self.scale == "log":
            kind = what = "geometric mean"
            average, has = float(np.exp(self._location)), "is typically"
        mean = Claim(TARGET, kind, average, unit=unit, evidence=f"{kind} of the training targets")
        noise, deviation = self._noise()
        average_text = level_text(average, model.target.scale, unit)
        if not model.evaluation.expression.leaves:
            has = "that " + has if self.scale == "log" else has.replace("has", "with", 1)
            text = f"{self._target} is noise {has} {deviation} around its {kind}"
            return [(noise, f"No structure was found: {text}, {average_text}.")]
        left, more = "The noise", ""
        if self._is_warned("does not fit"):
            noise = replace(noise, predicate="noise with outliers")
            left, more = "What is left", ", widened by rows that do not fit"
        return [
            *self._of_scale(),
            (mean, f"The {what} of {self._target} is {average_text}."),
            *self._how_much(),
            (noise, f"{left} {has} {deviation}{more}."),
            *self._of_resolution(),
        ]

    def _of_scale(self) -> Iterator[tuple[Claim, str]]:
        """Say on which scale of the target effects add up, unless it is surely the identity."""
        target, kernels = self._model.evaluation.expression.target, self._model.kernels
        on_it = [one.probability for one in kernels if one.evaluation.expression.target == target]
        probability, how = sum(on_it), "kernels on this scale of the target"
        is_sum, what = len(self._explained.parts) > 1, "effects add up"
        if self.scale != IDENTITY:
            what = f"{what} {self._unit}"
            text = f"{self._target} is described {self._unit}"
            if is_sum:
                text = f"{self._unit}, {self._target} is the sum of its components"
        elif probability >= CERTAIN:
            return
        else:
            text = f"{self._target} is described as it is, and not on another scale"
        if self.scale == "log":
            what = "effects multiply"
            text += f": {what if is_sum else 'effects are factors'}"
        claim = Claim(TARGET, what, probability=probability, evidence=how)
        yield claim, f"{_capital(text)}{_perhaps(probability)}."

    def _noise(self) -> tuple[Claim, str]:
        """Return the standard deviation of the noise, and its text."""
        deviation, how = float(np.sqrt(self._model.noise_variance)), "parameter of the best kernel"
        variances = np.exp(self._best.draws[:, -1]) + self._model.typical_rounding
        low, high = (self._spread * np.sqrt(interval(variances))).tolist()
        claim = Claim(TARGET, "noise", deviation, low, high, evidence=how)
        return self._measured(claim), self._amount(deviation, low, high)

    def _of_resolution(self) -> Iterator[tuple[Claim, str]]:
        """Say to what the target is rounded, if rounding is a part of the noise that matters."""
        model = self._model
        rounding = model.typical_rounding
        share = rounding / max(rounding + model.scaled_noise_variance, np.finfo(float).tiny)
        if share < ROUNDED:
            return
        variance = model.mixture.data.noise.rounding[0] * model.target.scale**2
        step, unit = resolution_with(variance), self._target_unit
        claim = Claim(TARGET, "is rounded to", step, unit=unit, evidence="training targets")
        nearest = f"{step:g} {unit}".rstrip()
        text = f"{_capital(self._target)} is recorded to the nearest {nearest}"
        yield claim, f"{text}: rounding is {percent(share)} of the variance of the noise."

    def _how_much(self) -> Iterator[tuple[Claim, str]]:
        """Say how much of the variance is explained, and how far rows are missed if it is far."""
        model, rows = self._model, self._model.mixture.data
        y, how = rows.y, "variance of the fit to the rows"
        errors, where = y - model.mixture.mean(rows.X), ""
        if self._left_out is not None:
            errors, where = self._left_out[1], " in rows that are left out"
            how = "errors of predictions of each row from all others"
        explained = max(0.0, 1 - float(np.mean(errors**2) / np.var(y)))
        n = counted(len(self._explained.parts), "component")
        verb = "explains" if len(self._explained.parts) == 1 else "explain"
        text = f"{_capital(n)} {verb} {percent(explained)} of its variance{where}."
        yield Claim(TARGET, "explained", explained, evidence=how), text
        data = model.mixture.data.on(model.evaluation.expression.target)
        size = float(np.sqrt(np.mean(errors**2)))
        noise = data.noise.variance(model.scaled_noise_variance)
        _, noise = model.scale.moments(data.y, noise)
        if self._left_out is not None and size > MISSED * np.sqrt(noise.mean()):
            missed, unit = model.target.scale * size, self._target_unit
            claim = Claim(TARGET, "is missed", missed, unit=unit, evidence=how)
            yield claim, f"Rows that are left out are missed by {with_unit(missed, unit)}."

    def _of_columns(self) -> Iterator[tuple[Claim, str]]:
        """Say which columns matter, with which probability, and which are nearly the same."""
        if len(self.names) == 1:
            return
        found = np.round(self._explained.inclusion, 2).tolist()  # as they are written
        rows = list(zip(self.names, found, strict=True))
        clearly = [name for name, p in rows if p >= CERTAIN]
        perhaps = [(name, p) for name, p in rows if EXCLUDED < p < CERTAIN]
        not_at_all = [name for name, p in rows if p <= EXCLUDED]
        how = "kernels that use the column"
        if clearly:
            verb = "matters" if len(clearly) == 1 else "matter"
            claim = Claim(listing(clearly), "matters", probability=CERTAIN, evidence=how)
            yield claim, f"{listing(clearly)} {verb}, with a probability of at least {CERTAIN}."
        verb = "matters" if len(perhaps) == 1 else "matter"
        names = listing([f"{name} ({p:.2f})" for name, p in perhaps] or [""])
        said = [f"Whether {names} {verb} is open.", *[""] * len(perhaps)]  # by the first of them
        for (name, p), text in zip(perhaps, said, strict=False):
            yield Claim(name, "may matter", probability=p, evidence=how), text
        if not_at_all:
            verb = "does" if len(not_at_all) == 1 else "do"
            names = listing(not_at_all)
            claim = Claim(names, "does not matter", probability=CERTAIN, evidence=how)
            yield claim, f"{names} {verb} not matter, with a probability of at least {CERTAIN}."
        yield from self._alike()

    def _alike(self) -> Iterator[tuple[Claim, str]]:
        """Name groups of columns that can hardly be distinguished in these data."""
        extents = np.ptp(self._X, axis=0) * [not axis.levels for axis in self.axes]
        varying = np.flatnonzero(extents).tolist()
        if len(varying) < 2:
            return
        r = np.abs(np.corrcoef(self._X[:, varying], rowvar=False))
        for level, what in (
            (SAME_COLUMN, "are one column in different units"),
            (ALIKE, "can hardly be distinguished in these data"),
        ):
            n_groups, group = connected_components(r > level, directed=False)
            for number in range(n_groups):
                of_group = np.flatnonzero(group == number)
                least = float(r[np.ix_(of_group, of_group)].min())
                if len(of_group) > 1 and not (level == ALIKE and least > SAME_COLUMN):
                    names = listing([self.names[varying[column]] for column in of_group])
                    how = "least correlation of the columns"
                    claim = Claim(names, "are alike", least, evidence=how)
                    size = "above 0.99" if least > 0.995 else f"{least:.2f}"
                    text = f"{names} {what} (their correlation is {size}"
                    text += " or more)" if len(of_group) > 2 else ")"
                    yield claim, f"{text}: what is said of one may be due to another."

    @cached_property
    def _left_out(self) -> tuple[FloatArray, FloatArray] | None:
        """Predictions of each row from all others, if they can be made."""
        model = self._model
        return model.mixture.leave_one_out() if can_leave_out(model) else None

    @cached_property
    def _of_residuals(self) -> list[tuple[Claim, str]]:
        """What the model does not fit."""
        found = list(of_outliers(self._model))
        if self._model.target.is_constant:
            return found
        about = self._model, self._left_out, self._target, self.axes
        return found + list(checked(*about, has_tried_log=self._has_tried_log))

    def _text(self, number: int) -> str:
        """Describe a component in one sentence."""
        return self._sentences(number)[0][1]

    def _sentences(self, number: int) -> list[tuple[Claim, str]]:
        if number not in self._said:
            self._said[number] = list(self._of_part(self._explained.parts[number]))
        return self._said[number]

    def _of_part(self, part: Part) -> Iterator[tuple[Claim, str]]:
        """Describe a component: what it does, how much it explains, how it goes on."""
        subject = part.expression.to_text(self._model.columns.feature_names)
        regions = self._regions(part)
        begin = self._begin(regions)
        if part.span <= STILL * self._spread:
            claim = Claim(subject, "does not vary", 0.0, evidence="its range over the rows")
            yield claim, f"{begin}component that does not vary over the data."
            return
        ahead: list[tuple[Claim, str]] = []
        whole = self._with_cycles(part, regions)
        probability = self._explained.probability(whole)
        if self._is_warned("is hidden") or probability < OPEN:
            yield self._possible(part, probability, subject, begin)
        else:
            said, ahead = self._curve(part, whole, regions, subject, begin)
            yield from said
        if len(self._explained.parts) > 1:
            yield self._share(part, subject)
        if any(region.has_ended for region in regions.values()):
            ended = Claim(subject, "ends", evidence="place of its change-point")
            yield ended, "It ends before the data do."
        yield from ahead

    def _possible(
        self, part: Part, probability: float, subject: str, begin: str
    ) -> tuple[Claim, str]:
        """Name a component of which nothing else is known."""
        how = "kernels that have such a component"
        claim = Claim(subject, "is possible", probability=probability, evidence=how)
        names = listing([self.names[column] for column in part.columns])
        noun = "cycle in" if part.is_season else "effect of"
        perhaps = _perhaps(probability)
        if self._is_warned("is hidden"):
            perhaps = ", which rows that do not fit hide"
        return claim, f"{begin}possible {noun} {names}{perhaps}."

    def _with_cycles(self, part: Part, regions: Mapping[int, Region]) -> Part:
        """Add to a trend the cycles along its column, of which it has the averages.

        The data do not show whether an average belongs to the trend or to a cycle.
        """
        cycles = [p for p in self._explained.parts if p.is_season and p.columns == part.columns]
        cycles = [one for one in cycles if self._shows_period(one, None)]
        if regions or not cycles or not part.is_free:
            return part
        group = [addend for one in (part, *cycles) for addend in one.group]
        period = float(np.nanmax([one.period for one in (part, *cycles)]))
        return replace(part, group=group, period=period, is_whole=True)

    def _is_warned(self, predicate: str) -> bool:
        """Whether a check of the residuals has said something that begins like this."""
        return any(claim.predicate.startswith(predicate) for claim, _ in self._of_residuals)

    def _curve(
        self, part: Part, whole: Part, regions: Mapping[int, Region], subject: str, begin: str
    ) -> tuple[list[tuple[Claim, str]], list[tuple[Claim, str]]]:
        """Describe what a component does within the data, and beyond them.

        It is a part of a ``whole`` of which averages are known.
        """
        if not part.along:
            return list(self._of_levels(part, subject, begin)), []
        if part.groups:
            begin = f"{self._at_typical(part.groups)}, {begin[:1].lower()}{begin[1:]}"
        said, ahead = self._curve_along(part, whole, regions, subject, begin)
        return [*said, *self._between_levels(part, subject)], ahead

    def _curve_along(
        self, part: Part, whole: Part, regions: Mapping[int, Region], subject: str, begin: str
    ) -> tuple[list[tuple[Claim, str]], list[tuple[Claim, str]]]:
        """Describe what a component does along its columns, and beyond the data."""
        free = [column for column in part.along if column not in regions] or list(part.along)
        (region,) = regions.values() if len(regions) == 1 else (None,)
        if len(part.along) == 1 and self._shows_period(part, region):
            return self._repeating(part, whole, region, subject, begin)
        if len(free) > 1:
            return list(self._joint(part, free, subject, begin)), []
        (column,) = free
        if whole is not part:
            said = [self._level_along(whole, column, subject, begin)]
            said += self._drift(part, column, subject)
            return said, self._beyond(whole, column, subject)
        ends = regions[column].inner if column in regions else None
        said = self._along(part, column, ends or WHOLE_COLUMN, subject, begin)
        if regions or self._is_two_valued(column) or self.axes[column].levels:
            return said, []
        return [*said, *self._drift(part, column, subject)], self._beyond(part, column, subject)

    def _drift(self, part: Part, column: int, subject: str) -> Iterator[tuple[Claim, str]]:
        """Say how far a level wanders from one row to the next, if it is a random walk."""
        gap = self._regular_gap(column)
        drift = self._spread * part.drift(gap)
        if drift > SMALL * part.span:
            claim = Claim(subject, "drifts", drift, evidence="parameters of the best kernel")
            how_far = self._amount(drift)
            text = f"Its level drifts by about {how_far} from one row to the next."
            yield self._measured(claim), text

    def _share(self, part: Part, subject: str) -> tuple[Claim, str]:
        """Say how much a component explains."""
        share = Claim(subject, "share", part.share, evidence="covariance with the fit")
        return share, f"It explains {percent(part.share)} of the variance of the fit."

    def _begin(self, regions: Mapping[int, Region]) -> str:
        """Begin a sentence about a component with where it plays a part."""
        is_only = len(self.names) == 1
        where = [one.text(self.axes[column], is_only=is_only) for column, one in regions.items()]
        where = [text for text in where if text]
        return _capital(f"{listing(where)}, a " if where else "a ")

    def _shows_period(self, part: Part, region: Region | None) -> bool:
        """Whether a component repeats at least twice where it plays a part."""
        if region is None:
            return bool(part.period <= np.ptp(self._X[:, part.along[0]]))  # not if it is nan
        begin, end = region.longest
        return part.is_season and part.period <= MAX_PERIOD * (end - begin)

    def _repeating(
        self, part: Part, whole: Part, region: Region | None, subject: str, begin: str
    ) -> tuple[list[tuple[Claim, str]], list[tuple[Claim, str]]]:
        """Describe a season, or a curve with a season around it, and how it goes on."""
        (column,) = part.along
        ends = self._explained.ends(column)
        if region is not None:
            own = region.inner or region.longest
            ends = max(ends[0], own[0]), min(ends[1], own[1])
        if part.is_season and part.period < 2 * self._regular_gap(column):
            fast = Claim(subject, "is faster than the rows", evidence="two gaps between rows")
            text = f"cycle in {self.names[column]} that is faster than the rows, or seems so"
            return [(fast, f"{begin}{text}.")], []
        (swing, *extremes), grows, lasts = season(self._explained, part, ends, subject)
        said, ahead = [], []
        if not part.is_season:
            said = [self._level_along(whole, column, subject, begin)]
            ahead, begin = self._beyond(whole, column, subject), "Around it there is a "
            if swing.probability < OPEN:
                return said, ahead
        said += self._season(part, swing, extremes[:2], begin)
        if part.is_season and region is None:
            most = swing.value * max(1.0, 1 / grows.value)
            said += self._level_of_cycle(part, MIN_LEVEL * most, subject)
        changes = max(grows.value, 1 / grows.value) >= MIN_GROWTH and grows.probability >= OPEN
        if changes:
            said.append((grows, self._growth(swing, grows, extremes[2:])))
            if self.scale == "log":
                said += [(self._measured(one), "") for one in extremes[2:]]
        if not (changes and grows.value < 1 and lasts.predicate == "repeats beyond"):
            noun = "it" if part.is_season else "the cycle"
            ahead.append(self._season_beyond(lasts, column, noun))
        has_ended = region is not None and region.has_ended
        return said, [] if has_ended else ahead

    def _level_along(self, part: Part, column: int, subject: str, begin: str) -> tuple[Claim, str]:
        """Describe the averages of a curve with a cycle."""
        scale = self._explained.scale(part, column)
        level = level_of(self._explained, part, subject, scale)
        return self._direction(level, column, begin, scale)

    def _regular_gap(self, column: int) -> float:
        """Return the gap between rows along a column if it is nearly regular, else zero."""
        gaps = np.diff(np.unique(self._X[:, column]))
        middle = float(np.median(gaps))
        return middle if gaps.max() < MAX_GAP * middle else 0.0

    def _season(
        self, part: Part, swing: Claim, extremes: Sequence[Claim], begin: str
    ) -> list[tuple[Claim, str]]:
        """Say with which period a component repeats, and how large it is."""
        (column,) = part.along
        axis, period = self.axes[column], part.period * self.axes[column].scale
        low, high = (self._period_interval(part) * axis.scale).tolist()
        word = calendar_word(period, low, high, axis.unit)
        every = between(*readable(period, low, high, axis.unit))
        how = "parameter of the best kernel"
        repeats = replace(
            swing, predicate="repeats", value=period, low=low, high=high, unit=axis.unit
        )
        noun = f"{word}season in {self.names[column]}"
        if not word:
            noun = f"cycle in {self.names[column]} that repeats every {every}"
        size = f"{'' if word else ','} with a swing of {self._amount(swing.value)}"
        amounts = [swing]
        if self.scale == "log":
            factors = self._range(*(one.value for one in extremes))
            size = f" {'that' if word else 'and'} changes {self._target} by {factors}"
            amounts += extremes
        text = f"{begin}{noun}{size} in its last cycle{_perhaps(swing.probability)}."
        return [
            (replace(repeats, evidence=how), text),
            *((self._measured(one), "") for one in amounts),
        ]

    def _level_of_cycle(self, part: Part, least: float, subject: str) -> list[tuple[Claim, str]]:
        """Say where the averages of a cycle lead, if they certainly lead as far as this."""
        (column,) = part.along
        if any(one.columns == part.columns and one is not part for one in self._explained.parts):
            return []  # which has the trend
        level = level_of(self._explained, part, subject)
        word, *linearly = level.predicate.split()
        extent = float(np.ptp(self._X[:, column])) if linearly else 1.0
        is_far = abs(level.value) * extent >= least
        if word not in ("rises", "falls") or "then" in linearly or not is_far:
            return []
        if level.probability < CERTAIN:
            return []
        claim, text = self._direction(level, column, "")
        return [(claim, f"Its average {text.removeprefix('it ')}")]

    def _growth(self, swing: Claim, grows: Claim, extremes: Sequence[Claim]) -> str:
        text = f" from {self._amount(swing.value / grows.value)} in the first cycle"
        if self.scale == "log":
            first = self._range(*(one.value for one in extremes))
            text = f": in the first cycle it was {first}"
        word = "grown" if grows.value > 1 else "shrunk"
        return f"Its swing has {word}{text}{_perhaps(grows.probability)}."

    def _period_interval(self, part: Part) -> FloatArray:
        """Return a 90 % interval of the period in the unit interval."""
        for leaf, entries in chain.from_iterable(map(leaves_of, part.group)):
            index = role_index(leaf.kernel.parameters, Role.PERIOD)
            if index is not None:
                entry = entries[index]
                if np.isclose(np.exp(part.theta_of_all[entry]), part.period):
                    return interval(np.exp(self._best.draws[:, entry]))
        return np.full(2, np.nan)

    def _along(
        self,
        part: Part,
        column: int,
        ends: tuple[float, float],
        subject: str,
        begin: str = "",
        fixed: dict[int, float] | None = None,
    ) -> list[tuple[Claim, str]]:
        """Describe the curve along a column, the others at given values or at their medians."""
        low, high = self._explained.ends(column)
        low, high = max(low, ends[0]), min(high, ends[1])
        scale, is_two_valued = self._explained.scale(part, column), self._is_two_valued(column)
        values = np.unique(self._X[:, column])
        inside = values[(values >= low) & (values <= high)]
        if len(values) > MAX_VALUES or len(inside) < 2:
            inside = self._explained.steps(part, column, N_GRID, (low, high))
        places = inside if scale is None else scale.forward(inside)  # nothing is known between them
        curve = curve_of(self._explained, part, column, places, fixed, scale)
        claim = direction(curve, subject)
        if is_two_valued and claim.probability >= OPEN:
            return [self._difference(claim, column, begin, scale)]
        said = self._direction(claim, column, begin, scale)
        if said[0].predicate not in ("rises", "falls"):
            return [said]
        (claim, text), more, how = said, jump(curve, subject), ""
        if more is not None and more.probability >= OPEN and more.high - more.low <= MAX_BLUR:
            more, place = self._place(more, column, scale)
            how = f"most of it around {place}{_perhaps(more.probability)}"
        elif scale is not None:
            near, more = nearly_line(curve, subject), half_way(curve, subject)
            if near is not None and near.probability >= OPEN:
                like = _LINES[scale.name, self.scale == "log"][1].format(self.names[column])
                more, how = near, f"nearly {like.removesuffix(', by')}"
            elif more is not None:
                more, place = self._place(more, column, scale)
                how = f"half of it until {place}"
        if more is None or not how:
            return [said]
        return [(claim, f"{text.removesuffix('.')}, {how}."), (more, "")]

    def _place(self, claim: Claim, column: int, scale: Scale | None) -> tuple[Claim, str]:
        """Return a place on a scale of a column in the units of the column, and its text."""
        axis = self.axes[column]
        ends = np.array([claim.value, claim.low, claim.high])
        value, low, high = (ends if scale is None else scale.inverse(ends)).tolist()
        claim = _in_units(replace(claim, value=value, low=low, high=high), axis.scale, axis.shift)
        return replace(claim, unit=axis.unit), axis.place_between(value, low, high)

    def _direction(
        self, claim: Claim, column: int, begin: str, scale: Scale | None = None
    ) -> tuple[Claim, str]:
        """Describe a line, a rise or fall, a turn, or many, along a column on a scale."""
        name = self.names[column]
        perhaps, word = _perhaps(claim.probability), claim.predicate
        if claim.probability < OPEN:
            open_claim = Claim(claim.subject, "is open", evidence=claim.evidence)
            noun = f"{begin}curve in {name} that" if begin else "it"
            return open_claim, f"{noun} may rise or fall: the data leave it open."
        noun = f"{begin}curve in {name} that " if begin else "it "
        if word.endswith("linearly"):
            claim, text = self._line(claim, column, scale)
            if begin and claim.predicate.endswith("linearly"):
                noun = f"{begin}straight line in {name} that "
            return claim, f"{noun}{text}{perhaps}."
        if " then " in word:
            first, then = word.split(" then ")
            claim, place = self._place(claim, column, scale)
            return claim, f"{noun}{first} until {place} and {then} from there on{perhaps}."
        ends = (claim.low, claim.high) if word in ("rises", "falls") else ()
        by = f" by {self._amount(claim.value, *ends)}" if claim.value else ""
        return self._measured(claim), f"{noun}{word}{by}{perhaps}."

    def _line(self, claim: Claim, column: int, scale: Scale | None) -> tuple[Claim, str]:
        """Describe a straight line on the scales of a column and of the target."""
        axis, name, way = self.axes[column], self.names[column], claim.predicate.split()[0]
        step, unit, per, where = 1 / axis.scale, axis.unit, singular(axis.unit) or "unit", ""
        per = "level" if axis.levels else per
        if scale is None and axis.origin is not None and axis.scale > MIN_YEARS * YEAR:
            step, unit, per = step * YEAR, "years", "year"
        if scale is None and self.scale == "log":
            most = abs(claim.value) * step / MAX_LOG_STEP
            if most > 1:  # a factor of 1e9 says nothing
                part = 10.0 ** -np.ceil(np.log10(most))
                step, unit = step * part, f"{part:g} {unit}".rstrip()
                per = unit
        elif scale is not None and scale.name == "log":
            unit, where = "doubling", f"with each doubling of {name}"
            step = np.log(2.0) / scale.width
        elif scale is not None:
            step, unit, where = 1 / scale.width, f"{scale.name}({name})", "per unit of this root"
        claim = _in_units(claim, float(step))
        ends = claim.value, claim.low, claim.high
        amount = f"{self._amount(*ends)} {where}" if where else self._amount(*ends, f" per {per}")
        view = IDENTITY if scale is None else scale.name
        predicate, words = _LINES[view, self.scale == "log"]
        claim = self._measured(replace(claim, predicate=f"{way} {predicate}"), f"/{unit}")
        return claim, f"{way} {words.format(name)} {amount}"

    def _difference(
        self, claim: Claim, column: int, begin: str, scale: Scale | None
    ) -> tuple[Claim, str]:
        """Describe the effect of a column of two values."""
        values = np.unique(self._X[:, column])
        ends = values if scale is None else scale.forward(values)
        change = _in_units(claim, float(np.ptp(ends)))
        change = replace(change, predicate="is higher" if change.value > 0 else "is lower")
        low, high = (self._level(column, one) for one in values.tolist())
        name, measured = self.names[column], self._measured(change)
        noun = f"{begin}difference of {name}: " if begin else ""
        word = change.predicate.removeprefix("is ")
        than = f"{word} by {self._amount(change.value, change.low, change.high)} than"
        if self.scale == "log":
            times = factor_text(measured.value, measured.low, measured.high)
            factor, bracket, interval_text = times.removeprefix("a factor of ").partition(" (")
            than = f"{factor} times as high{bracket}{interval_text} as"
        text = f"{noun}where {name} is {high}, {self._target} is {than} where it is {low}"
        return measured, f"{text}{_perhaps(claim.probability)}."

    def _level(self, column: int, value: float) -> str:
        """Write a value of a column in the unit interval."""
        axis = self.axes[column]
        if self._is_two_valued(column) and axis.origin is None and not axis.levels:
            return f"{axis.shift + axis.scale * value:.6g}"
        return axis.place(value)

    def _joint(
        self, part: Part, columns: list[int], subject: str, begin: str
    ) -> Iterator[tuple[Claim, str]]:
        """Describe effects of several columns that belong together, the largest first.

        Of two columns, one is followed at two levels of the other; of more, each is followed with
        the others at their medians.
        """
        reach = {column: self._reach(part, column) for column in columns}
        ordered = sorted(columns, key=lambda column: -reach[column])
        names = listing([self.names[column] for column in ordered])
        interact = self._explained.probability_of_interaction(part, columns)
        what = f"sum of effects of {names}, which the data do not separate"
        if any(map(self._is_warned, ("does not fit", "grows", "shrinks"))):
            interact = 0.0  # which may come from them
        if interact >= OPEN:
            what = f"joint effect of {names}{_perhaps(interact)}"
        elif part.is_joint:
            what = f"sum of effects of {names}, and it is open whether one changes another"
        if interact >= OPEN and len(columns) == 2:
            said = self._at_levels(part, ordered, subject)
        else:
            said = [
                (claim, f"along {self.names[column]}, {text}" if text else "")
                for column in ordered[:MAX_NAMED]
                for claim, text in self._along(part, column, WHOLE_COLUMN, self.names[column])
            ]
            if len(ordered) > MAX_NAMED:
                rest = listing([self.names[column] for column in ordered[MAX_NAMED:]])
                said.append((Claim(rest, "has less effect"), f"the effect of {rest} is smaller"))
        (first, _), *others = said
        texts = [text.removesuffix(".") for _, text in said if text]
        yield (
            replace(first, evidence=f"{first.evidence}, others at their medians"),
            f"{begin}{what}: {'; '.join(texts)}.",
        )
        if interact >= OPEN:
            how = "kernels in which the columns are multiplied"
            yield Claim(subject, "interact", probability=interact, evidence=how), ""
        yield from ((claim, "") for claim, _ in others)  # the sentence is that of the first

    def _reach(self, part: Part, column: int) -> float:
        places = self._explained.steps(part, column, N_GRID)
        return float(np.ptp(self._explained.curve(part, column, places)))

    def _at_levels(
        self, part: Part, ordered: Sequence[int], subject: str
    ) -> list[tuple[Claim, str]]:
        """Describe the effect of one column at two levels of the other."""
        two_valued = [column for column in ordered if self._is_two_valued(column)]
        other = two_valued[0] if two_valued else ordered[1]
        (column,) = (one for one in ordered if one != other)
        values = self._X[:, other]
        levels = np.unique(values) if two_valued else np.quantile(values, LEVELS)
        said: list[tuple[Claim, str]] = []
        for level in levels.tolist():
            own = self._along(part, column, WHOLE_COLUMN, subject, fixed={other: level})
            (claim, text), *others = own
            where = f"where {self.names[other]} is {self._level(other, level)}"
            along = "" if said else f"along {self.names[column]}, "
            said += [(claim, f"{along}{where}, {text}"), *others]
        return said

    def _of_levels(self, part: Part, subject: str, begin: str) -> Iterator[tuple[Claim, str]]:
        """Describe an effect of the levels of categories, each at typical levels of the others."""
        interact = self._explained.probability_of_interaction(part, part.groups)
        if len(part.groups) > 1 and interact >= OPEN:
            names = listing([self.names[column] for column in part.groups])
            how = "kernels in which the columns are multiplied"
            claim = Claim(subject, "interact", probability=interact, evidence=how)
            yield claim, f"{begin}joint effect of {names}{_perhaps(interact)}."
        for column in part.groups:
            if len(part.groups) > 1:
                begin = f"{self._at_typical([one for one in part.groups if one != column])}, a "
            values, name = np.unique(self._X[:, column]), self.names[column]
            if self._is_two_valued(column):
                yield from self._along(part, column, WHOLE_COLUMN, subject, begin)
                continue
            said = [
                (value, replace(one, subject=f"{name}={self._level(column, value)}"))
                for value, one in levels_of(curve_of(self._explained, part, column, values), name)
            ]
            (_, first), *others = said
            if first.probability < OPEN:
                is_open = replace(first, predicate="is open", probability=1.0)
                yield is_open, f"{begin}difference between levels of {name} that is open."
                continue
            texts = [self._of_level(column, *one) for one in said]
            if len(texts) > MAX_LEVELS:
                most = [*texts[: MAX_LEVELS // 2], *texts[-(MAX_LEVELS // 2) :]]
                name, texts = f"{name}, the highest and lowest of {len(texts)}", most
            average = "as factors of" if self.scale == "log" else "around"
            text = f"{begin}difference between levels of {name}, {average} their average: "
            yield (
                self._measured(first),
                f"{text}{listing(texts)}{_perhaps(first.probability)}.",
            )
            yield from ((self._measured(claim), "") for _, claim in others)

    def _at_typical(self, columns: Sequence[int]) -> str:
        """Say which levels categories have, where they have the most frequent ones."""
        typical = self._explained.typical
        where = [f"{self.names[one]} is {self._level(one, typical[one])}" for one in columns]
        return f"Where {listing(where)}"

    def _of_level(self, column: int, value: float, claim: Claim) -> str:
        """Write how far a level is from the average of all, as a factor on the log scale."""
        level, measured = self._level(column, value), self._measured(claim)
        if self.scale == "log":
            return f"{level} {factor_text(measured.value).removeprefix('a factor of ')}"
        return f"{level} {'+' if claim.value >= 0 else '-'}{self._amount(claim.value)}"

    def _between_levels(self, part: Part, subject: str) -> Iterator[tuple[Claim, str]]:
        """Say how a curve differs between the levels of categories."""
        rows = self._X[:: max(1, len(self._X) // MAX_ROWS)]
        for column in part.groups:
            name, levels = self.names[column], np.unique(self._X[:, column])
            sure = self._explained.probability_of_interaction(part, part.columns, column)
            how = "kernels in which the levels are multiplied"
            if sure < OPEN:
                claim = Claim(subject, "may differ", probability=sure, evidence=how)
                yield claim, f"Whether it differs between levels of {name} is open."
                continue
            curves = []
            for level in levels:
                inputs = rows.copy()
                inputs[:, column] = level
                curves.append(self._explained.mean(part, inputs))
            averages = np.mean(curves, axis=1, keepdims=True)
            shapes = curves - averages
            of_shapes = float(np.sqrt(np.mean((shapes - shapes.mean(axis=0)) ** 2)))
            of_averages = float(averages.std())
            said = [("in shape", of_shapes), ("on average", of_averages)]
            said = [one for one in said if one[1] > MIN_LEVEL * max(of_shapes, of_averages)]
            texts = [f"{what} by {self._amount(size)}" for what, size in said]
            of_all = counted(len(levels), "level")
            text = f"It differs between the {of_all} of {name}, {listing(texts)}"
            first, *others = (
                self._measured(
                    Claim(subject, f"differs {what}", size, probability=sure, evidence=how)
                )
                for what, size in said
            )
            yield first, f"{text} (standard deviations){_perhaps(sure)}."
            yield from ((claim, "") for claim in others)

    def _beyond(self, part: Part, column: int, subject: str) -> list[tuple[Claim, str]]:
        """Say how a curve goes on beyond the data; among other columns, only if it goes on."""
        claim, axis = beyond_of(self._explained, part, column, subject), self.axes[column]
        is_on = claim.predicate == "continues beyond" and claim.probability >= OPEN
        if len(self.names) > 1 and axis.origin is None and not is_on:
            return []
        _, end = self._explained.ends(column)
        measured, far = self._measured(claim), end + NEAR_BEYOND * float(np.ptp(self._X[:, column]))
        until = f"until {axis.place(far)}"
        if axis.origin is None and not axis.unit:
            until = f"until {self.names[column]} is {axis.place(far)}"
        if claim.probability < OPEN:
            change = self._range(claim.low, claim.high)
            text = f"How it goes on is open: {until} it changes by {change}."
            return [(replace(measured, predicate="is open beyond", probability=1.0), text)]
        if claim.predicate == "is open beyond":
            text = "How it goes on is open: the data do not show twice what its kernel repeats."
            return [(claim, text)]
        known = {
            "continues beyond": "goes on, and ",
            "returns beyond": "returns to its average, and ",
        }
        way = "rises" if claim.value > 0 else "falls"
        amount = self._amount(claim.value, claim.low, claim.high)
        how = f"{known.get(claim.predicate, '')}{way} by {amount}"
        text = f"Beyond the data it {how} {until}{_perhaps(claim.probability)}."
        return [(measured, text)]

    def _season_beyond(self, claim: Claim, column: int, noun: str) -> tuple[Claim, str]:
        """Say how a season goes on beyond the data."""
        axis, perhaps = self.axes[column], _perhaps(claim.probability)
        if claim.probability < OPEN:
            claim = replace(claim, predicate="is open beyond", probability=1.0)
            return claim, f"Whether {noun} repeats beyond the data is open."
        if claim.predicate == "repeats beyond":
            return claim, f"{_capital(noun)} repeats beyond the data{perhaps}."
        claim = replace(_in_units(claim, axis.scale), unit=axis.unit)
        value, _, _, unit = readable(claim.value, np.nan, np.nan, axis.unit)
        after = with_unit(value, unit)
        return claim, f"Beyond the data half of its swing is left after {after}{perhaps}."

    def _measured(self, claim: Claim, per: str = "") -> Claim:
        """Return a claim about an amount on the scale of the target with its unit.

        On the log scale, amounts are factors.
        """
        if self.scale == "log":
            value, low, high = _exp([claim.value, claim.low, claim.high])
            return replace(claim, value=value, low=low, high=high, unit=f"factor{per}".strip("/"))
        unit = self._target_unit if self.scale == IDENTITY else f"{self.scale}(y)"
        return replace(claim, unit=f"{unit}{per}".strip("/"))

    def _amount(
        self, value: float, low: float = np.nan, high: float = np.nan, per: str = ""
    ) -> str:
        """Write the size of a change on the scale of the target, without its sign."""
        sign = 1.0 if value >= 0 else -1.0
        low, high = sorted((sign * low, sign * high))
        if self.scale == "log":
            text = factor_text(*_exp([sign * value, low, high]))
        else:
            text = between(sign * value, low, high, "")
        number, bracket, ends = text.partition(" (")
        if self.scale == IDENTITY:
            number = f"{number} {self._unit}".rstrip()
        elif self.scale != "log":
            per = f"{per} {self._unit}"
        return f"{number}{per}{bracket}{ends}"

    def _range(self, low: float, high: float) -> str:
        """Write a range of changes on the scale of the target."""
        if self.scale == "log":
            first, last = map(factor_text, _exp([low, high]))
            return f"{first} to {last.removeprefix('a factor of ')}"
        return f"{with_unit(low, '')} to {with_unit(high, self._unit)}"

    def _regions(self, part: Part) -> dict[int, Region]:
        """Return where a component plays a part, by the columns of its change-points."""
        regions: dict[int, Region] = {}
        if len(part.group) > 1:
            return regions
        for leaf, entries in leaves_of(part.group[0]):
            if isinstance(leaf.kernel, Share):
                theta = np.exp(part.theta_of_all[entries])
                drawn = np.exp(self._best.draws[:, entries])
                _, highest = self._explained.ends(leaf.column)
                region = Region.of(leaf.column, leaf.kernel, theta, drawn, highest)
                known = regions.get(leaf.column)
                regions[leaf.column] = region if known is None else known.intersect(region)
        return regions

    def _is_two_valued(self, column: int) -> bool:
        return len(np.unique(self._X[:, column])) == 2


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _in_units(claim: Claim, factor: float, shift: float = 0.0) -> Claim:
    value, low, high = (shift + factor * one for one in (claim.value, claim.low, claim.high))
    return replace(claim, value=value, low=low, high=high)


def _exp(values: Sequence[float]) -> list[float]:
    """Compute factors from their logs."""
    return np.exp(np.clip(values, -LARGEST_LOG, LARGEST_LOG)).tolist()


def _perhaps(probability: float) -> str:
    """Say how probable a claim is, if it is not nearly certain."""
    return "" if probability >= CERTAIN else f", with a probability of {probability:.2f}"
