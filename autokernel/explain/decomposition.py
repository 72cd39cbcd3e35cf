"""A fitted function as a sum of effects, on the scale of the target of the best kernel."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import combinations

import numpy as np
import numpy.typing as npt

from autokernel.data.scales import SCALES, Scale
from autokernel.exceptions import fallback
from autokernel.explain.effects import (
    AVERAGE,
    MAX_BACKGROUND,
    AveragedFunction,
    Effect,
    Factor,
    effect_of,
    interaction_of,
    products_of,
)
from autokernel.explain.parts import Part, joined, parts_of
from autokernel.expression import IDENTITY, Expression, Leaf, View
from autokernel.inference import (
    ExactPredictor,
    GlobalPredictor,
    InducingPredictor,
    Predictor,
    one_blas_thread,
)
from autokernel.kernels import WANDERING, BroadcastPairs
from autokernel.model import FittedModel
from autokernel.model.averaging import MixtureComponent, support_points, systematic
from autokernel.model.mixture import made_for_each
from autokernel.typing import FloatArray, IntArray

INSEPARABLE = 0.5  # of the error of a part, below which that of its sum with another one counts
SMALL = 0.01  # share of parts that explain little
MAX_EXACT, N_INDUCING = 2000, 512  # rows for draws without inducing points, and such points
SEEN = 0.03  # geometric mean of two ratios of a variance: to that of the fit, to that of the noise
FOLDED = 0.2  # of the variance of a product of cycles, which the shorter one does not explain
DRAWS_OF_STD, MAX_PLACES = 8, 128  # of deviations, between whose places they are interpolated
N_DRAWS, MAX_DRAWN = 200, 500  # of a function, and the rows at which predictions are drawn
TEXT_OF_REST = (
    "What is left: averages over other kernels and parameters, and interactions without a sentence."
)


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Component:
    """One summand of a fitted function.

    Attributes
    ----------
    expression : str
        Its kernel along its column; of an interaction the names of both columns; empty for the
        rest.
    text : str
        The component in words.
    mean, std : ndarray of shape (n_samples,)
        Mean at the best parameters, of the difference from the average over the training rows, and
        standard deviation from it, over the posterior of kernels that have the component, their
        parameters and functions; in the units of the target, or on its scale if that is another
        one. On the log scale, ``mean`` is the median of a factor, and ``std`` the standard
        deviation of the log of the factor. That of the rest is the deviation between the
        predictions of the kernels that are averaged.
    share : float
        Share of the variance of the fitted function over the training rows, by the covariance of
        the component with the function, both on the scale of the target. The shares add up to one.
    columns : tuple of str
        The names of its columns, one or two; empty for the rest.
    name : str
        Its columns and, if the column has several components, which one it is, such as
        ``"month (yearly season)"``.
    """

    expression: str
    text: str
    mean: FloatArray
    std: FloatArray
    share: float
    columns: tuple[str, ...] = ()
    name: str = "rest"


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """A fitted function: a constant, components and noise.

    Attributes
    ----------
    constant : float
        Average of the fitted function of the best kernel over the training rows, or over 200 of
        them, on the scale of the target; on the log scale, the exponential of this average.
    noise_std : float
        Standard deviation of the noise, in the units of the target, or on its scale if that is
        another one.
    components : list of Component
        Effects of the best kernel on average over the rows, the one of the largest share first. The
        last one may be the rest: what averages over other kernels and parameters add, and
        all interactions but the five largest.
    scale : str
        Scale of the target on which the best kernel acts. On ``"identity"``, ``constant`` and the
        means add up to ``predict``. On ``"log"`` they multiply to the median of
        ``predict_quantiles``. On ``"sqrt"`` and ``"logit"`` they add up to the square root or the
        logit of this median.
    offset : float
        What is added to a target with a few zeros before its logarithm is taken, in its unit. The
        product is that of the median and the offset together.
    centre : str
        What means make up on another scale: ``"median"`` or, for counts, the ``"mean"``, the
        ``"rate"`` for an exposure or a trial of one.
    """

    constant: float
    noise_std: float
    components: list[Component]
    scale: str = IDENTITY
    offset: float = 0.0
    centre: str = "median"

    @property
    def has_rest(self) -> bool:
        """Whether the last component is what the others leave."""
        return bool(self.components) and not self.components[-1].columns

    @property
    def median(self) -> str:
        """Name what the factors multiply to on the log scale."""
        return f"{self.centre} + {self.offset:g}" if self.offset else self.centre

    def __repr__(self) -> str:
        lines = [f"constant {self.constant:.4g}"]
        if self.scale == "log":
            lines.insert(0, f"factors, whose product is the {self.median}")
        elif self.scale != IDENTITY:
            lines.insert(0, f"terms, whose sum is the {self.scale} of the {self.centre}")
        for one in self.components:
            kernel = f": {one.expression}" if one.expression not in ("", one.name) else ""
            lines.append(f"{one.share:7.1%}  {one.name}{kernel}")
        on = "" if self.scale == IDENTITY else f" on the {self.scale} scale"
        return "\n".join([*lines, f"noise with standard deviation {self.noise_std:.3g}{on}"])


@dataclass(frozen=True, slots=True, eq=False)
class Interaction:
    """How the effect of a column depends on another one, besides the effects of both."""

    columns: tuple[int, int]
    share: float
    size: float  # standard deviation over the training rows

    @property
    def effect(self) -> Effect:
        """What both columns do together besides their own effects."""
        return interaction_of(self.columns)


Explained = Part | Interaction | Effect
"""What is computed of a function: an effect is in each draw of it, and others may not be."""


class ExplainedFunction:
    """The best kernel as a sum of effects of columns, with the posterior over kernels.

    The effect of a column is the average over rows of the data, see :mod:`.effects`. Along a column
    it is split into ``parts``: its seasons, what is confined to a region, and all else; first the
    ``n_large`` ones that explain much, by their shares of the variance. ``X`` (n_samples,
    n_features) are the scaled training rows, in which missing values are medians. The ``constant``
    is the average of the function, from that of the target, and ``parameters`` (n_draws, n_params)
    are draws of the logs of its parameters.
    """

    def __init__(self, model: FittedModel) -> None:
        self.model, mixture, best = model, model.mixture, model.evaluation
        self._best, is_of_best = best, mixture.is_of(best.expression, best.theta)
        self.is_averaged = not is_of_best and any(
            one.expression.leaves for one in mixture.components
        )
        self.parameters = model.kernels[model.best].draws
        self.X, self._spread = model.of_one(mixture.data.inputs.filled), model.scale.width
        self._every = range(self.X.shape[1])
        every = np.sort(np.random.default_rng(0).permutation(len(self.X))[:1000])
        self._measured = self.X[every]  # rows on which shares are measured
        some = np.arange(len(every))
        if len(some) > MAX_BACKGROUND:  # averages over them are close to those over all
            some = support_points(self._measured, MAX_BACKGROUND)
        rows, counts = np.unique(every[some], return_counts=True)
        self._background = model.columns.scaled(mixture.data.inputs.values[rows])
        weights = mixture.data.noise.weights[rows] * counts
        self._weights = weights / weights.sum()
        self._function = self._averaged(best.expression, best.theta, is_best=True)
        self._numbers_like = cache(self._like)
        parts, means = [], []
        for column in sorted(best.expression.columns):
            own = [self._with_season(one) for one in parts_of(best.expression, best.theta, column)]
            own = self._separable(joined(own))
            found = [self.mean(part, self._measured[:, column]) for part in own]
            _join_opponents(own, found)
            parts += own
            means += found
        self.constant = float(self.mean(AVERAGE, np.empty((1, 0)))[0])
        self._fit = self.mean(effect_of(self._every), self._measured)
        for n, mean in enumerate(means):
            share, span = share_of_variance(mean, self._fit), float(np.ptp(mean))
            parts[n] = replace(parts[n], share=share, span=span, size=float(np.std(mean)))
        self.parts = sorted(parts, key=lambda part: (self._is_small(part), -part.share))
        self.n_large = sum(not self._is_small(part) for part in self.parts)

    def _averaged(
        self, expression: Expression, theta: FloatArray, *, is_best: bool = False
    ) -> AveragedFunction:
        mixture, predictor = self.model.mixture, None
        with one_blas_thread():
            if is_best and mixture.is_of(expression, theta):
                predictor = mixture.predictors[0]
            elif is_best or len(self.X) <= MAX_EXACT:
                predictor = mixture.make_predictor(expression, theta, mixture.data)
            if not isinstance(predictor, GlobalPredictor):
                predictor = InducingPredictor(expression, theta, mixture.data, N_INDUCING)
        return AveragedFunction(
            expression, theta, predictor, background=self._background, weights=self._weights
        )

    def _points(self, columns: Sequence[int], values: FloatArray) -> FloatArray:
        """Return points (n, n_features) with values (n, n_columns) of some columns."""
        points = np.zeros((len(values), len(self._every)))
        points[:, columns] = values.reshape(len(values), len(columns))
        return points

    def mean(self, one: Explained, values: FloatArray) -> FloatArray:
        """Compute the mean (n,) at values (n, n_columns), or (n,), of its columns, scaled."""
        return self._spread * self._function.mean(one.effect, self._points(one.columns, values))

    def mean_and_std(
        self, part: Part | Interaction, values: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Compute mean and standard deviation (n,) of a part at values (n, n_columns).

        It is the difference from the average over the rows. The deviation is that of the draws of
        kernel and parameters that have the part, and of their functions, from the mean.
        """
        known = np.nan_to_num(values, nan=np.inf)  # a missing value is the last one
        _, first, rank = np.unique(known, axis=0, return_index=True, return_inverse=True)
        places, some = values[first], np.arange(len(first))
        if len(part.columns) == 1 and len(some) > MAX_PLACES:
            some = np.append(np.linspace(0, some[-2], MAX_PLACES - 1).astype(int), some[-1])
        mean = self.mean(part, places)
        return mean[rank], np.interp(rank, some, self._std_of(part, places[some], mean[some]))

    def left_without(self, part: Part) -> FloatArray:
        """Compute which part (n_samples,) of the deviation of a part is left without each row.

        That is at the places of the other rows. It is empty without an exact predictor.
        """
        if not isinstance(self._function.predictor, ExactPredictor):
            return np.empty(0)
        x = self.X[:, part.column]
        values, place, counts = np.unique(x, return_inverse=True, return_counts=True)
        means = self._function.without_each(part.effect, self._points(part.columns, values))
        n_at = counts[:, None] - (np.arange(len(values))[:, None] == place)
        centred = means - (n_at * means).sum(axis=0) / (len(x) - 1)
        stds = self._spread * np.sqrt((n_at * centred**2).sum(axis=0) / (len(x) - 1))
        return stds / self.mean(part, x).std()

    def std_of_constant(self) -> float:
        """Compute the standard deviation of the average of the function."""
        return float(self._std_of(AVERAGE, np.empty((1, 0)), np.array([self.constant]))[0])

    @one_blas_thread()
    def std_of_fit(self, X: FloatArray) -> FloatArray:
        """Compute the standard deviations (n,) of predictions without noise, on the scale."""
        every = self._functions.items()
        moments = [(draw.weight, *one.predictor.function(X)) for draw, one in every]
        return self._std(moments, self._spread * self._predicted(X)[0])

    def _std_of(self, one: Explained, values: FloatArray, stated: FloatArray) -> FloatArray:
        """Compute the deviations (n,) from stated means in some of the draws."""
        points, drawn = self._points(one.columns, values), self._drawn(one, DRAWS_OF_STD)
        moments = [(n, *function.moments(effect, points)) for _, n, function, effect in drawn]
        return self._std(moments, stated)

    def _std(
        self, moments: Sequence[tuple[float, FloatArray, FloatArray]], stated: FloatArray
    ) -> FloatArray:
        """Compute deviations (n,) from stated means, given moments of draws with weights."""
        weights, means, variances = (np.array(one) for one in zip(*moments, strict=True))
        squares = variances + (means - stated / self._spread) ** 2
        return self._spread * np.sqrt(np.average(squares, axis=0, weights=weights))

    def in_unit(self, changes: npt.ArrayLike) -> FloatArray:
        """Convert changes from the average on the scale of the target to those that are said.

        On the log scale these are logs of factors, on all others changes of the target from its
        average, in its unit.
        """
        changes, scale = np.asarray(changes, dtype=float), self.model.scale
        if scale.name in (IDENTITY, "log"):
            return changes
        inverse = SCALES[scale.name].inverse
        return inverse(scale.shift + changes) - inverse(np.array(scale.shift))

    def along(self, column: int) -> list[Part]:
        """Return the parts of the effect of a column, in the order of all."""
        return [one for one in self.parts if one.column == column]

    def ends(self, column: int) -> tuple[float, float]:
        """Return the smallest and the largest value of a column, scaled."""
        return float(self.X[:, column].min()), float(self.X[:, column].max())

    def view(self, part: Part) -> Scale:
        """Return the scale of the column on which a part acts."""
        return self.model.columns.scale(View(part.column, part.scale))

    def steps(self, part: Part, n: int, ends: tuple[float, float]) -> FloatArray:
        """Return places (n,) along its column, evenly spaced on the scale on which a part acts."""
        view = self.view(part)
        low, high = view.forward(np.array(ends)).tolist()
        return view.inverse(np.linspace(low, high, n))

    def drift(self, part: Part, step: float) -> float:
        """Compute the standard deviation of what the levels of a part wander over a step.

        The step is in the unit interval of the column. It is zero without a level that wanders.
        """
        x = np.array([1 - step, 1.0])
        pairs, variance = BroadcastPairs(x[:, None], x[None]), 0.0
        for one in part.group:
            leaf = one.expression
            if isinstance(leaf, Leaf) and leaf.kernel in WANDERING and leaf.scale == IDENTITY:
                K = leaf.kernel.value(np.exp(part.theta_of_all[one.entries]), pairs)
                total = self._function.total(one.number, part.column)
                variance += total * (K[0, 0] + K[1, 1] - 2 * K[0, 1])
        return self._spread * float(np.sqrt(variance))

    @cached_property
    def posterior(self) -> list[MixtureComponent]:
        """Draws of kernel and parameters for the posterior; all of a kernel have its probability.

        Approximate predictions, which have many rows, are explained at the best parameters of each
        kernel.
        """
        n, mixture = 1, self.model.mixture
        if isinstance(mixture.predictors[0], ExactPredictor):
            n = int(np.clip(3.2e7 / len(self.X) ** 2, 8, 32))  # draws; memory is limited
        found = []
        for kernel in self.model.kernels:
            count, draws = max(1, round(n * kernel.probability)), kernel.evaluation.theta[None]
            if n > 1:
                draws = kernel.draws[support_points(kernel.draws, count)]
            share, expression = kernel.probability / len(draws), kernel.evaluation.expression
            found += [
                MixtureComponent(expression, theta, share * times)
                for theta, times in zip(*np.unique(draws, axis=0, return_counts=True), strict=True)
            ]
        return found

    @cached_property
    def _functions(self) -> dict[MixtureComponent, AveragedFunction]:
        """The functions of draws on the scale of the target of the best kernel.

        Others are no sum of the same things. A draw without a Cholesky factor has none.
        """
        best = self._best

        def function(one: MixtureComponent) -> AveragedFunction:
            if one.expression == best.expression and np.all(one.theta == best.theta):
                return self._function
            return self._averaged(one.expression, one.theta)

        every = self.posterior if len(self.X) <= MAX_EXACT else self.model.mixture.components
        on_scale = [one for one in every if one.expression.target == best.expression.target]
        with fallback("deviations of the components are those of the best kernel"):
            return made_for_each(on_scale, function)
        return {}

    def probability(self, part: Part | Interaction) -> float:
        """Compute the probability that a part is there."""
        return sum(one.weight for one in self.posterior if self._effect_in(one, part))

    def _effect_in(self, draw: MixtureComponent, one: Explained) -> Effect | None:
        """Return the effect that a part is in a draw, None if it has no such part."""
        if isinstance(one, Part):
            numbers = self._numbers_like(one, draw)
            return effect_of(one.columns, numbers) if numbers else None
        is_there = isinstance(one, Effect) or _products_with(draw.expression, one.columns)
        return one.effect if is_there else None

    def _like(self, part: Part, draw: MixtureComponent) -> list[int]:
        """List the products of a draw that stand for a part.

        A season has those with its period, and what is confined to a region those of the same
        region. All else has every other product with its column, so that its probability is that
        of the column.
        """
        if draw.expression == self._best.expression and not part.is_season:
            return part.numbers
        own, every = self.along(part.column), parts_of(draw.expression, draw.theta, part.column)
        return [one.group[0].number for one in every if part.stands_for(one, own)]

    def _known(self, one: Explained) -> list[tuple[float, AveragedFunction, Effect]]:
        """List the draws that have a part, with weights that sum to one; without any, the best."""
        found = {draw: own for draw in self._functions if (own := self._effect_in(draw, one))}
        total = sum(draw.weight for draw in found)
        if not total:  # also if new rows exclude all of them
            return [(1.0, self._function, one.effect)]
        every = found.items()
        return [(draw.weight / total, self._functions[draw], effect) for draw, effect in every]

    def means_of_draws(self, part: Part, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute weights (n_draws,) and means (n_draws, n) of a part in the draws that have it."""
        known, points = self._known(part), self._points(part.columns, values)
        means = [function.mean(effect, points) for _, function, effect in known]
        return np.array([weight for weight, *_ in known]), self._spread * np.array(means)

    @one_blas_thread()
    def draws(self, one: Explained, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Draw a part (n_draws, n): a kernel that has it, its parameters, then the function.

        Its average (n,) over the kernels and parameters comes first.
        """
        rng, points = np.random.default_rng(0), self._points(one.columns, values)
        # rounding may leave eigenvalues just below zero
        draw = partial(rng.multivariate_normal, check_valid="ignore", method="eigh")
        every = [*self._drawn(one, N_DRAWS)]
        moments = [function.joint(effect, points) for *_, function, effect in every]
        found = [draw(*own, n) for own, (_, n, *_) in zip(moments, every, strict=True)]
        weights = [weight for weight, *_ in every]
        average = np.average([mean for mean, _ in moments], axis=0, weights=weights)
        return self._spread * average, self._spread * np.concatenate(found)

    def _drawn(
        self, one: Explained, n_draws: int
    ) -> Iterator[tuple[float, int, AveragedFunction, Effect]]:
        """Yield the functions of draws that have a part, their weights, and how many are drawn."""
        known = self._known(one)
        chosen = systematic(np.array([weight for weight, *_ in known]), n_draws)
        for number, count in Counter(chosen.tolist()).items():
            weight, function, effect = known[number]
            yield weight, count, function, effect

    @cached_property
    def interactions(self) -> list[Interaction]:
        """The pairs of columns that the best kernel multiplies, the largest deviation first."""
        every, expression = combinations(self._every, 2), self._best.expression
        pairs = [pair for pair in every if _products_with(expression, pair)]
        means = self._function.means([interaction_of(pair) for pair in pairs], self._measured)
        found = [
            Interaction(columns, share_of_variance(mean, self._fit), float(np.std(mean)))
            for columns, mean in zip(pairs, self._spread * means, strict=True)
        ]
        return sorted(found, key=lambda one: -one.size)

    def is_seen(self, size: float) -> bool:
        """Whether an effect with this deviation over the rows is seen in fit and noise."""
        return size**2 > SEEN * np.std(self._fit) * self.model.noise_variance**0.5

    def _is_small(self, part: Part) -> bool:
        """Whether a part explains little, works little against the others, and is hardly seen."""
        least = SMALL**0.5
        is_wide = part.size > least * np.std(self._fit) or part.span > least * np.ptp(self._fit)
        return abs(part.share) < SMALL and not (is_wide or self.is_seen(part.size))

    def levels_probability(self, column: int) -> float:
        """Compute the probability of the kernels for which a column has levels without an order."""
        every = ((one.probability, one.evaluation.expression.leaves) for one in self.model.kernels)
        return sum(
            probability
            for probability, leaves in every
            if any(leaf.column == column and leaf.kernel.is_categorical for leaf in leaves)
        )

    def has_levels(self, column: int, pair: Interaction) -> bool:
        """Whether only equal values of a column matter in the products of a pair of columns."""
        own = _products_with(self._best.expression, pair.columns)
        leaves = (leaf for product in own for one in product for leaf in one.expression.leaves)
        return all(leaf.kernel.is_categorical for leaf in leaves if leaf.column == column)

    def added_by_averaging(self) -> float:
        """Compute the standard deviation over the rows of what averaging adds to the best kernel.

        On another scale of the target, these are differences between medians, on this scale.
        """
        if not self.is_averaged:
            return 0.0
        function = Effect(tuple(self._every), {frozenset(self._every): 1})
        return float(self.rest(self.X, self.mean(function, self.X))[0].std())

    def rest(self, X: FloatArray, explained: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute what predictions have besides what is explained (n,), and its deviation (n,)."""
        whole, std = self._predicted(X)
        return self._spread * whole - explained, std

    @cached_property
    def predictions(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """The numbers of some rows, predictions of all (n,), and draws (n_draws, n_some) at some.

        They are of the target, or of its log if effects multiply.
        """
        mixture, inverse = self.model.mixture, self.model.target.inverse
        some = np.linspace(0, len(self.X) - 1, min(len(self.X), MAX_DRAWN)).astype(int)
        with one_blas_thread():
            y = inverse(mixture.mean(self.X))
            draws = inverse(mixture.draws_of_mean(self.X[some], N_DRAWS))
        is_log = self.model.scale.name == "log"
        return (some, np.log(y), np.log(draws)) if is_log else (some, y, draws)

    def _predicted(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute predictions on the scale (n,), and their deviation between kernels (n,)."""
        model, half, X = self.model, np.array([0.5]), self.model.of_one(X)
        mixture, scale = model.mixture, model.scale
        with one_blas_thread():
            centre = mixture.mean(X) if model.has_mean else mixture.quantiles(X, half)[:, 0]
            whole = scale.forward(centre)
            every = zip(mixture.components, mixture.predictors, strict=True)
            scales = model.target.scales
            centres = [_centre(scales[one.expression.target], p, X, scale) for one, p in every]
        return whole, self._spread * np.sqrt(mixture.weights @ (np.array(centres) - whole) ** 2)

    def _separable(self, parts: list[Part]) -> list[Part]:
        """Join a season with the rest along its column if the data show only the sum of both."""
        for season in [one for one in parts if one.is_season]:
            rest = next((part for part in parts if part.is_free), None)
            if rest is not None and not self._are_separable(season, rest):
                parts = [part for part in parts if part not in (season, rest)]
                parts.append(rest.joined_with(season))
        return parts

    def _are_separable(self, season: Part, rest: Part) -> bool:
        """Whether each is not uncertain by half of what it varies while their sum is known well."""
        about = self.X[:: max(1, len(self.X) // 200), season.column]
        points = self._points([season.column], about[:, None])
        effects = (one.effect for one in (season, rest, rest.joined_with(season)))
        variances = [self._function.moments(one, points)[1].mean() for one in effects]
        *errors, error = (self._spread * np.sqrt(variances)).tolist()
        varies = min(float(self.mean(part, about).std()) for part in (season, rest))
        return error >= INSEPARABLE * min(errors) or min(errors) <= INSEPARABLE * varies

    def _with_season(self, part: Part) -> Part:
        """Return a part of one factor as a season, if its mean is hardly more than a wave."""
        low, high = self.ends(part.column)
        if low == high:
            return replace(part, period=np.nan, is_season=False)
        if np.isnan(part.period):
            return part
        if region := part.region(high):
            low, high = region.longest
        for period in (one for one in part.every_period if one < part.period):
            cycles = low + period * np.arange(min(int((high - low) / period), 100))  # are enough
            if len(cycles) > 1:
                values = self.mean(part, np.add.outer(cycles, period * np.arange(16) / 16).ravel())
                waves = values.reshape(len(cycles), -1)
                if (waves - waves.mean(axis=0)).var() < FOLDED * waves.var():
                    return replace(part, period=period, is_season=True)
        if part.is_season:
            return part
        n_periods = (high - low) / part.period
        if n_periods < 1:  # no average over a period
            return part
        places = np.linspace(low, high, int(min(16 * n_periods, 2000)))  # 16 a period
        share = wave_share(self.mean(part, places), n_periods)
        return replace(part, is_season=share > 0.9)  # of its variance


def _products_with(expression: Expression, columns: Sequence[int]) -> list[list[Factor]]:
    """Return the products of a kernel that depend on all of some columns."""
    every, some = products_of(expression), {*columns}
    return [own for own in every if some <= {c for one in own for c in one.expression.columns}]


def _centre(own: Scale, predictor: Predictor, X: FloatArray, scale: Scale) -> FloatArray:
    """Compute the mean (n,) of a kernel on its own scale, or its median on another one."""
    if scale.is_linear and not own.is_linear:
        return scale.forward(own.moments(*predictor.mean_and_variance(X))[0])
    centre = predictor.mean(X)
    return centre if own == scale else scale.forward(own.inverse(centre))


def wave_share(curve: FloatArray, n_periods: float) -> float:
    """Compute the share of the variance of a curve around its averages over a period."""
    window = max(2, round(len(curve) / n_periods))
    level = np.convolve(curve, np.full(window, 1 / window), mode="valid")
    within = curve[(window - 1) // 2 :][: len(level)]  # where there are averages
    return float((within - level).var() / within.var()) if within.var() > 0 else 1.0


def _join_opponents(parts: list[Part], means: list[FloatArray]) -> None:
    """Join each part that works against the others with the one that it counteracts most."""
    while len(parts) > 1:
        covariances = np.cov(means, bias=True)
        first = int(np.argmin(covariances.sum(axis=0)))
        if covariances[first].sum() >= -0.005 * covariances.sum():  # none works against the others
            break
        covariances[first, first] = np.inf
        second = int(np.argmin(covariances[first]))
        parts[second] = parts[second].joined_with(parts[first])
        means[second] = means[second] + means[first]
        del parts[first], means[first]


def share_of_variance(mean: FloatArray, whole: FloatArray) -> float:
    """Compute the covariance of a mean (n,) with a whole (n,), as a fraction of its variance."""
    centred = whole - whole.mean()
    total = float(centred @ centred)
    return float(mean @ centred) / total if total > 0 else 0.0
