"""A fitted function as a sum of effects, on the scale of the target of the best kernel."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError

from autokernel.data.scales import SCALES, Scale
from autokernel.explain.effects import MAX_BACKGROUND, AveragedFunction, products_of
from autokernel.explain.parts import Part, has_period, joined, parts_of, period_of
from autokernel.expression import IDENTITY, Expression, View
from autokernel.inference import (
    ExactPredictor,
    GlobalPredictor,
    InducingPredictor,
    Predictor,
    one_blas_thread,
)
from autokernel.kernels import Share
from autokernel.model import FittedModel
from autokernel.model.averaging import MixtureComponent, support_points
from autokernel.typing import FloatArray

LEAST_SHARE = -0.005  # below it a component works against another one, and is joined with it
INSEPARABLE = 0.5  # of the error of a part, below which that of its sum with another one counts
MAX_ROWS = 200  # over which errors of parts are averaged
MAX_MEASURED = 1000  # rows over which shares are computed
SMALL, LITTLE = 0.01, 0.1  # share, and part of the range of the fit, of parts that explain little
VISIBLE = 0.5  # deviations of the noise that a small interaction has
MIN_WAVE_SHARE = 0.9  # of the variance, from which a wave on a level is a season
POINTS_PER_PERIOD, MAX_POINTS = 16, 2000  # of a curve whose periods are averaged
MOST_DRAWS, LEAST_DRAWS = 32, 8  # of kernel and parameters, that stand for the posterior
MAX_NUMBERS = 3.2e7  # in the covariance matrices of all draws, if there are more than the least
N_INDUCING = 512  # points that stand for many rows
BLOCK = 500  # rows whose covariance is computed together
TEXT_OF_REST = (
    "What is left: averages over other kernels and parameters, and interactions that are small or "
    "of more than two columns."
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
        Posterior mean and standard deviation of the difference from the average over the training
        rows, in the units of the target, or on its scale if that is another one. On the log scale,
        ``mean`` is the median of a factor, and ``std`` the standard deviation of the log of the
        factor. The deviation of an interaction is not known, nan.
    share : float
        Share of the variance of the fitted function over the training rows, by the covariance of
        the component with the function, both on the scale of the target. The shares add up to one.
    columns : tuple of str
        The names of its columns, one or two; empty for the rest.
    """

    expression: str
    text: str
    mean: FloatArray
    std: FloatArray
    share: float
    columns: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The columns, as they are written, ``"rest"`` without any."""
        return " * ".join(self.columns) or "rest"


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
        interactions that are small or of more than two columns.
    scale : str
        Scale of the target on which the best kernel acts. On ``"identity"``, ``constant`` and the
        means add up to ``predict``. On ``"log"`` they multiply to the median of
        ``predict_quantiles``. On ``"sqrt"`` and ``"logit"`` they add up to the square root or the
        logit of this median.
    """

    constant: float
    noise_std: float
    components: list[Component]
    scale: str = IDENTITY

    @property
    def has_rest(self) -> bool:
        """Whether the last component is what the others leave."""
        return bool(self.components) and not self.components[-1].columns

    def __repr__(self) -> str:
        lines = {
            IDENTITY: [],
            "log": ["factors, whose product is the median"],
        }.get(self.scale, [f"terms, whose sum is the {self.scale} of the median"])
        lines = [*lines, f"constant {self.constant:.4g}"]
        lines += [
            f"{one.share:7.1%}  {one.expression}{': ' if one.expression else ''}{one.text}"
            for one in self.components
        ]
        on = "" if self.scale == IDENTITY else f" on the {self.scale} scale"
        return "\n".join([*lines, f"noise with standard deviation {self.noise_std:.3g}{on}"])


@dataclass(frozen=True, slots=True, eq=False)
class Interaction:
    """How the effect of a column depends on another one, besides the effects of both."""

    columns: tuple[int, int]
    share: float
    is_small: bool


class ExplainedFunction:
    """The best kernel as a sum of effects of columns, with the posterior over kernels.

    The effect of a column is the average over rows of the data, see :mod:`.effects`. Along a column
    it is split into parts: its seasons, what is confined to a region, and all else.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Scaled inputs of the training rows; missing values are medians.
    parts : list of Part
        First the ``n_large`` ones that explain much, each by its share of the variance.
    is_averaged : bool
        Whether predictions average over kernels or parameters.
    """

    def __init__(self, model: FittedModel) -> None:
        self._model, mixture, best = model, model.mixture, model.evaluation
        self._best, is_of_best = best, mixture.is_of(best.expression, best.theta)
        self.is_averaged = not is_of_best and any(
            one.expression.leaves for one in mixture.components
        )
        self.X, self._spread = mixture.data.inputs.filled, model.scale.width
        rng = np.random.default_rng(0)
        self._measured = np.sort(rng.permutation(len(self.X))[:MAX_MEASURED])
        some = np.sort(rng.permutation(len(self.X))[:MAX_BACKGROUND])
        self._background = model.columns.scaled(mixture.data.inputs.values[some])
        weights = mixture.data.noise.weights[some]
        self._weights = weights / weights.sum()
        self._function = self._averaged(best.expression, best.theta)
        self._found: dict[tuple[Part, MixtureComponent], list[int]] = {}
        parts, means = [], []
        for column in sorted(best.expression.columns):
            own = [self._with_season(one) for one in parts_of(best.expression, best.theta, column)]
            own = self._separable(joined(own))
            found = [self.mean(part, self.X[self._measured, column]) for part in own]
            own, found = _without_opponents(own, found)
            parts += own
            means += found
        self.parts, self.n_large = _by_share(parts, means, self._whole(means))

    def _whole(self, means: Sequence[FloatArray]) -> FloatArray:
        """Compute the fit (n,) of the best kernel at some rows; that of one column is the sum."""
        if len(self._best.expression.columns) < 2:
            return sum(means, start=np.zeros(len(self._measured)))
        every = sorted(self._best.expression.columns)
        points = self.X[self._measured][:, every]
        with one_blas_thread():
            return self._spread * self._function.mean(every, points)

    def _averaged(self, expression: Expression, theta: FloatArray) -> AveragedFunction:
        mixture = self._model.mixture
        with one_blas_thread():
            predictor: Predictor
            if mixture.is_of(expression, theta):
                predictor = mixture.predictors[0]
            else:
                predictor = mixture.make_predictor(expression, theta, mixture.data)
            if not isinstance(predictor, GlobalPredictor):
                predictor = InducingPredictor(expression, theta, mixture.data, N_INDUCING)
            return AveragedFunction(
                expression, theta, predictor, background=self._background, weights=self._weights
            )

    @property
    def constant(self) -> float:
        """The average of the function of the best kernel, on its scale, from that of the target."""
        return self._spread * self._function.average()

    def mean(self, part: Part, values: FloatArray) -> FloatArray:
        """Compute the mean (n,) of a part at values (n,) of its column in the unit interval.

        A missing value stands for the places of its column, all of which are as probable.
        """
        missing = np.isnan(values)
        if missing.any():
            mean = np.full(len(values), self.mean(part, self._places(part.column)).mean())
            mean[~missing] = self.mean(part, values[~missing])
            return mean
        with one_blas_thread():
            own = self._function.mean([part.column], values[:, None], part.numbers)
        return self._spread * own

    def mean_and_std(self, part: Part, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute mean and standard deviation (n,) of a part at values (n,) of its column.

        The deviation is that of the difference from the average over the rows.
        """
        variances = np.empty(len(values))
        missing = np.isnan(values)
        known = np.flatnonzero(~missing)
        with one_blas_thread():
            for start in range(0, len(known), BLOCK):
                rows = known[start : start + BLOCK]
                _, K = self._function.effect([part.column], values[rows, None], part.numbers)
                variances[rows] = np.diag(K)
            if missing.any():
                places = self._places(part.column)[:, None]
                variances[missing] = self._function.effect([part.column], places, part.numbers)[
                    1
                ].mean()
        return self.mean(part, values), self._spread * np.sqrt(np.maximum(variances, 0.0))

    def _places(self, column: int) -> FloatArray:
        """Return the values in the unit interval for which a missing one stands."""
        return np.array(self._model.columns[column].places)

    def in_unit(self, changes: npt.ArrayLike) -> FloatArray:
        """Convert changes from the average on the scale of the target to those that are said.

        On the log scale these are logs of factors, on all others changes of the target from its
        average, in its unit.
        """
        changes, scale = np.asarray(changes, dtype=float), self._model.scale
        if scale.name in (IDENTITY, "log"):
            return changes
        inverse = SCALES[scale.name].inverse
        return inverse(scale.shift + changes) - inverse(np.array(scale.shift))

    def ends(self, column: int) -> tuple[float, float]:
        """Return the smallest and the largest value of a column, scaled."""
        return float(self.X[:, column].min()), float(self.X[:, column].max())

    def view(self, part: Part) -> Scale:
        """Return the scale of the column on which a part acts."""
        return self._model.columns.scale(View(part.column, part.scale))

    def steps(self, part: Part, n: int, ends: tuple[float, float] | None = None) -> FloatArray:
        """Return places (n,) along its column, evenly spaced on the scale on which a part acts."""
        view = self.view(part)
        low, high = view.forward(np.array(ends or self.ends(part.column))).tolist()
        return view.inverse(np.linspace(low, high, n))

    def totals(self, part: Part) -> dict[int, float]:
        """Return by what the other columns multiply each product of a part, on average."""
        return {number: self._function.total(number, part.column) for number in part.numbers}

    @property
    def parameters(self) -> FloatArray:
        """Draws (n_draws, n_params) of the logs of the parameters of the best kernel."""
        every, best = self._model.kernels, self._model.evaluation
        return next(one.draws for one in every if one.evaluation is best)

    @cached_property
    def posterior(self) -> list[MixtureComponent]:
        """Draws of kernel and parameters for the posterior; all of a kernel have its probability.

        Approximate predictions, which have many rows, are explained at the best parameters.
        """
        n, mixture = 1, self._model.mixture
        if isinstance(mixture.predictors[0], ExactPredictor):
            n = int(np.clip(MAX_NUMBERS / len(self.X) ** 2, LEAST_DRAWS, MOST_DRAWS))
        found = []
        for kernel in self._model.kernels:
            count, draws = max(1, round(n * kernel.probability)), kernel.evaluation.theta[None]
            if n > 1:
                draws = kernel.draws[support_points(kernel.draws, count)]
            share, expression = kernel.probability / len(draws), kernel.evaluation.expression
            found += [MixtureComponent(expression, theta, share) for theta in draws]
        return found

    @cached_property
    def _functions(self) -> dict[MixtureComponent, AveragedFunction]:
        """The functions of draws on the scale of the target of the best kernel.

        Others are no sum of the same things. A draw without a Cholesky factor has none.
        """
        found: dict[MixtureComponent, AveragedFunction] = {}
        for one in self.posterior:
            if one.expression.target == self._best.expression.target:
                with suppress(LinAlgError):
                    found[one] = self._averaged(one.expression, one.theta)
        return found

    def probability(self, part: Part) -> float:
        """Compute the probability that a part is there."""
        return sum(one.weight for one in self.posterior if self._like(part, one))

    def probability_of_interaction(self, columns: Sequence[int]) -> float:
        """Compute the probability of the kernels in which the effects of columns interact."""
        return sum(one.weight for one in self.posterior if _has_product(one.expression, columns))

    def _like(self, part: Part, draw: MixtureComponent) -> list[int]:
        """List the products of a draw that stand for a part.

        A season has those with its period, and what is confined to a region those of the same
        region. All else has every other product with its column, so that its probability is that
        of the column.
        """
        if (part, draw) not in self._found:
            is_same = draw.expression == self._best.expression and not part.is_season
            if is_same:
                numbers = sorted(part.numbers)
            else:
                own = [one for one in self.parts if one.column == part.column]
                every = parts_of(draw.expression, draw.theta, part.column)
                numbers = [one.group[0].number for one in every if part.stands_for(one, own)]
            self._found[part, draw] = numbers
        return self._found[part, draw]

    def _known(self, part: Part) -> list[tuple[float, list[int], AveragedFunction]]:
        """List the products that a part has in each draw, with weights that sum to one."""
        likes = [(one.weight, self._like(part, one), f) for one, f in self._functions.items()]
        found = [one for one in likes if one[1]]
        total = sum(weight for weight, *_ in found)
        return [(p / total, numbers, own) for p, numbers, own in found] or [
            (1.0, sorted(part.numbers), self._function)
        ]

    def means_of_draws(self, part: Part, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute weights (n_draws,) and means (n_draws, n) of a part in the draws that have it."""
        weights, means = [], []
        with one_blas_thread():
            for weight, numbers, function in self._known(part):
                weights.append(weight)
                means.append(function.mean([part.column], values[:, None], numbers))
        return np.array(weights), self._spread * np.array(means)

    def draws(self, part: Part, values: FloatArray, n_draws: int) -> FloatArray:
        """Draw a part (n_draws, n): a kernel that has it, its parameters, then the function."""
        return self._drawn([part.column], values[:, None], n_draws, self._known(part))

    def draws_of_both(
        self, columns: tuple[int, int], points: FloatArray, n_draws: int
    ) -> FloatArray:
        """Draw the common effect (n_draws, n) of two columns at points (n, 2)."""
        known = [(one.weight, None, own) for one, own in self._functions.items()]
        return self._drawn(columns, points, n_draws, known)

    def _drawn(
        self,
        columns: Sequence[int],
        points: FloatArray,
        n_draws: int,
        known: Sequence[tuple[float, list[int] | None, AveragedFunction]],
    ) -> FloatArray:
        rng = np.random.default_rng(0)
        ends = np.cumsum([weight for weight, *_ in known])
        counts = np.diff(np.floor(n_draws * ends / ends[-1] + 0.5).astype(int), prepend=0)
        drawn = []
        with one_blas_thread():
            for count, (_, numbers, function) in zip(counts.tolist(), known, strict=True):
                if count:
                    mean, covariance = function.effect(columns, points, numbers)
                    # rounding may leave eigenvalues just below zero
                    drawn.append(
                        rng.multivariate_normal(
                            mean, covariance, count, check_valid="ignore", method="eigh"
                        )
                    )
        return self._spread * np.concatenate(drawn)

    def both(self, columns: Sequence[int], points: FloatArray) -> FloatArray:
        """Compute the mean (n,) of the common effect of two columns at points (n, 2)."""
        with one_blas_thread():
            return self._spread * self._function.mean(columns, points)

    def interaction(self, columns: tuple[int, int], points: FloatArray) -> FloatArray:
        """Compute what the common effect (n,) of two columns has besides the effects of each."""
        missing = np.isnan(points)
        if missing.any():
            return np.array([self._interaction_of_gap(columns, one) for one in points])
        with one_blas_thread():
            each = [
                self._spread * self._function.mean([column], values[:, None])
                for column, values in zip(columns, points.T, strict=True)
            ]
        return self.both(columns, points) - each[0] - each[1]

    def _interaction_of_gap(self, columns: tuple[int, int], point: FloatArray) -> float:
        values = [
            self._places(column) if np.isnan(value) else np.array([value])
            for column, value in zip(columns, point.tolist(), strict=True)
        ]
        grid = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, 2)
        return float(self.interaction(columns, grid).mean())

    @cached_property
    def share_of_more(self) -> float:
        """The share of what depends on more than two columns together."""
        rows, whole = self.X[self._measured], self._whole([])
        found = np.zeros(len(whole))
        for part in self.parts:
            found += self.mean(part, rows[:, part.column])
        for pair in self.interactions:
            found += self.interaction(pair.columns, rows[:, pair.columns])
        return share_of_variance(whole - found, whole)

    @cached_property
    def interactions(self) -> list[Interaction]:
        """The pairs of columns that the best kernel multiplies, the largest share first."""
        found, rows = [], self.X[self._measured]
        whole = self._whole([])
        for columns in combinations(sorted(self._best.expression.columns), 2):
            if _has_product(self._best.expression, columns):
                mean = self.interaction(columns, rows[:, columns])
                share = share_of_variance(mean, whole)
                own, noise = float(np.std(mean)), self._model.noise_variance**0.5
                is_seen = own > np.sqrt(SMALL) * np.std(whole) and own > VISIBLE * noise
                found.append(Interaction(columns, share, share < SMALL and not is_seen))
        return sorted(found, key=lambda one: -one.share)

    def added_by_averaging(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute what averaging adds to the best kernel at scaled inputs (n, n_features).

        Returns
        -------
        mean, std : ndarray of shape (n,)
            Difference between the mean of the mixture and that of the best kernel, and its standard
            deviation over the components of the mixture. On another scale of the target, these are
            differences between medians, on this scale.
        """
        if not self.is_averaged:
            return np.zeros(len(X)), np.zeros(len(X))
        whole, std = self._predicted(X)
        every = sorted(self._best.expression.columns)
        with one_blas_thread():
            best = self._function.average() + self._function.mean(every, X[:, every])
        return self._spread * (whole - best), std

    def rest(self, X: FloatArray, explained: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute what predictions have besides what is explained (n,), and its deviation (n,)."""
        whole, std = self._predicted(X)
        return self._spread * whole - explained, std

    def _predicted(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute predictions on the scale (n,), and their deviation between kernels (n,)."""
        mixture, scale = self._model.mixture, self._model.scale
        with one_blas_thread():
            if scale.is_linear:
                whole = mixture.mean(X)
            else:
                whole = scale.forward(mixture.quantiles(X, np.array([0.5]))[:, 0])
            every = zip(mixture.components, mixture.predictors, strict=True)
            on = self._model.target.on
            centres = [_centre(on(one.expression.target), p, X, scale) for one, p in every]
        return whole, self._spread * np.sqrt(mixture.weights @ (np.array(centres) - whole) ** 2)

    def _separable(self, parts: list[Part]) -> list[Part]:
        """Join a season with the rest along its column if the data show only the sum of both."""
        for season in filter(lambda one: one.is_season, [*parts]):
            rest = next((part for part in parts if part.is_free), None)
            if rest is not None and not self._are_separable(season, rest):
                both = replace(rest, group=[*rest.group, *season.group], period=season.period)
                parts = [*(part for part in parts if part not in (season, rest)), both]
        return parts

    def _are_separable(self, season: Part, rest: Part) -> bool:
        """Whether each is not uncertain by half of what it varies while their sum is known well."""
        about = self.X[:: max(1, len(self.X) // MAX_ROWS), season.column]
        both = replace(rest, group=[*rest.group, *season.group])
        stds = [self.mean_and_std(one, about)[1] for one in (season, rest, both)]
        *errors, error = [float(np.sqrt(np.mean(std**2))) for std in stds]
        varies = min(float(self.mean(part, about).std()) for part in (season, rest))
        return error >= INSEPARABLE * min(errors) or min(errors) <= INSEPARABLE * varies

    def _with_season(self, part: Part) -> Part:
        if np.isnan(part.period):
            return part
        leaves = [one for one in part.leaves if not isinstance(one.kernel, Share)]
        low, high = self.ends(part.column)
        if low == high:
            return replace(part, period=np.nan)
        _, is_known = period_of(part.group[0], part.theta_of_all)
        if is_known or all(has_period(leaf.kernel) for leaf in leaves):
            return replace(part, is_season=True)
        n_periods = (high - low) / part.period
        places = np.linspace(low, high, int(min(POINTS_PER_PERIOD * n_periods, MAX_POINTS)))
        share = wave_share(self.mean(part, places), n_periods)
        return replace(part, is_season=share > MIN_WAVE_SHARE)


def _has_product(expression: Expression, columns: Sequence[int]) -> bool:
    """Return whether a kernel has a product that depends on all of some columns."""
    products = (
        frozenset[int]().union(*(one.columns for one in product))
        for product in products_of(expression)
    )
    return any(one >= {*columns} for one in products)


def _centre(own: Scale, predictor: Predictor, X: FloatArray, scale: Scale) -> FloatArray:
    """Compute the mean (n,) of a kernel on its own scale, or its median on another one."""
    if scale.is_linear and not own.is_linear:
        return own.moments(*predictor.mean_and_variance(X))[0]
    centre = predictor.mean(X)
    return centre if own == scale else scale.forward(own.inverse(centre))


def wave_share(curve: FloatArray, n_periods: float) -> float:
    """Compute the share of the variance of a curve around its averages over a period."""
    window = max(2, round(len(curve) / n_periods))
    level = np.convolve(curve, np.full(window, 1 / window), mode="valid")
    within = curve[(window - 1) // 2 :][: len(level)]  # where there are averages
    return float((within - level).var() / within.var()) if within.var() > 0 else 1.0


def _by_share(
    parts: Sequence[Part], means: Sequence[FloatArray], whole: FloatArray
) -> tuple[list[Part], int]:
    """Return parts with their shares, those that explain much first, and the number of these."""
    measured = [
        replace(part, share=share_of_variance(mean, whole), span=float(np.ptp(mean)))
        for part, mean in zip(parts, means, strict=True)
    ]
    measured.sort(key=lambda part: -part.share)
    small = [part for part in measured if _is_small(part.share, part.span, whole)]
    large = [part for part in measured if part not in small]
    return [*large, *small], len(large)


def _is_small(share: float, span: float, whole: FloatArray) -> bool:
    """Return whether an effect explains little, and works little against the others."""
    return abs(share) < SMALL and span <= LITTLE * float(np.ptp(whole))


def _without_opponents(
    parts: Sequence[Part], means: Sequence[FloatArray]
) -> tuple[list[Part], list[FloatArray]]:
    """Join each part that works against the others with the one that it counteracts most."""
    parts, means = [*parts], [*means]
    while len(parts) > 1 and min(shares := _shares_of_sum(means)) < LEAST_SHARE:
        first = int(np.argmin(shares))
        centred = np.array(means) - np.mean(means, axis=1, keepdims=True)
        products = np.delete(centred @ centred[first], first)
        part, mean = parts.pop(first), means.pop(first)
        second = int(np.argmin(products))
        group = [*parts[second].group, *part.group]
        parts.append(replace(parts.pop(second), group=group, is_season=False))
        means.append(mean + means.pop(second))
    return parts, means


def _shares_of_sum(means: Sequence[FloatArray]) -> list[float]:
    whole = np.sum(means, axis=0)
    return [share_of_variance(mean, whole) for mean in means]


def share_of_variance(mean: FloatArray, whole: FloatArray) -> float:
    """Compute the covariance of a mean (n,) with a whole (n,), as a fraction of its variance."""
    centred = whole - whole.mean()
    total = float(centred @ centred)
    return float(mean @ centred) / total if total > 0 else 0.0
