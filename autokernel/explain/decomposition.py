"""A fitted function as a sum of components, on the scale of the target of the best kernel."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
from scipy.linalg import LinAlgError

from autokernel.data.scales import Scale
from autokernel.explain.parts import Part, has_period, joined, only_switches, parts_of, period_of
from autokernel.expression import IDENTITY, Addend, Expression, View
from autokernel.inference import one_blas_thread
from autokernel.inference.base import Predictor
from autokernel.inference.exact import ExactPredictor
from autokernel.model import FittedModel
from autokernel.model.averaging import MixtureComponent, support_points
from autokernel.typing import FloatArray

LEAST_SHARE = -0.005  # below it a component works against another one, and is joined with it
INSEPARABLE = 0.5  # of the error of a part, below which that of its sum with another one counts
MAX_ROWS = 200  # over which errors of parts are averaged
SMALL, LITTLE = 0.01, 0.1  # share, and part of the range of the fit, of parts that explain little
MIN_WAVE_SHARE = 0.9  # of the variance, from which a wave on a level is a season
POINTS_PER_PERIOD, MAX_POINTS = 16, 2000  # of a curve whose periods are averaged
MOST_DRAWS, LEAST_DRAWS = 32, 8  # of kernel and parameters, that stand for the posterior
MAX_NUMBERS = 3.2e7  # in the covariance matrices of all draws, if there are more than the least
TEXT_OF_AVERAGING = "What the average over other kernels and parameters adds."


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Component:
    """One summand of a fitted function.

    Attributes
    ----------
    expression : str
        Its kernel, a product of base kernels; empty for the contribution of averaging.
    text : str
        The component in words.
    mean, std : ndarray of shape (n_samples,)
        Posterior mean and standard deviation, in the units of the target, or on its scale if that
        is another one. On the log scale, ``mean`` is the median of a factor, and ``std`` the
        standard deviation of the log of the factor. Components are correlated: their variances do
        not add up to that of the function.
    share : float
        Share of the variance of the fitted function over the training rows, by the covariance of
        the component with the function, both on the scale of the target. The shares add up to one.
    """

    expression: str
    text: str
    mean: FloatArray
    std: FloatArray
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """A fitted function: a constant, components and noise.

    Attributes
    ----------
    constant : float
        Mean of the training targets on the scale; on the log scale, their geometric mean.
    noise_std : float
        Standard deviation of the noise, in the units of the target, or on its scale if that is
        another one.
    components : list of Component
        Those of the best kernel, the one of the largest share first. If predictions average over
        kernels or parameters, the last one is the difference between the average and the best
        kernel at its best parameters, or the factor between the two.
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


class ExplainedFunction:
    """The best kernel as a sum of parts, with the posterior over kernels and parameters.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Scaled inputs of the training rows; missing values are medians.
    typical : ndarray of shape (n_features,)
        Medians of the columns, and the most frequent levels of categories.
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
        self._predictor = self._conditioned(best.expression, best.theta)
        self.X, self._spread = mixture.data.inputs.filled, model.scale.width
        self.typical = _typical_inputs(self.X, [one.evaluation.expression for one in model.kernels])
        self._found: dict[tuple[Part, MixtureComponent], Part | None] = {}
        parts = joined([self._with_season(one) for one in parts_of(best.expression, best.theta)])
        parts = self._separable(parts)
        means = [self.mean(part, self.X) for part in parts]
        self.parts, self.n_large = _by_share(*_without_opponents(parts, means))

    def _conditioned(self, expression: Expression, theta: FloatArray) -> Predictor:
        mixture = self._model.mixture
        if mixture.is_of(expression, theta):
            return mixture.predictors[0]
        with one_blas_thread():
            return mixture.make_predictor(expression, theta, mixture.data)

    def mean(self, part: Part, X: FloatArray) -> FloatArray:
        """Compute the mean (n,) of a part at scaled inputs (n, n_features)."""
        with one_blas_thread():
            return self._spread * self._predictor.part_mean(*part.kernel, X)

    def mean_and_std(
        self, part: Part, X: FloatArray, *, about: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Compute mean and standard deviation (n,) of a part at scaled inputs (n, n_features).

        With rows ``about`` the deviation is that of the difference from the average over them.
        """
        with one_blas_thread():
            mean, variance = self._predictor.part(*part.kernel, X, about=about)
        return self._spread * mean, self._spread * np.sqrt(variance)

    def curve(self, part: Part, column: int, places: FloatArray) -> FloatArray:
        """Compute the mean (n,) along a column, the others at typical values."""
        return self.mean(part, self.inputs_along({column: places}))

    def inputs_along(self, values: Mapping[int, FloatArray | float]) -> FloatArray:
        """Build inputs (n, n_features): some columns have given values, the others typical ones."""
        inputs = np.tile(self.typical, (max(np.size(one) for one in values.values()), 1))
        for column, given in values.items():
            inputs[:, column] = given
        return inputs

    def ends(self, column: int) -> tuple[float, float]:
        """Return the smallest and the largest value of a column, scaled."""
        return float(self.X[:, column].min()), float(self.X[:, column].max())

    def view(self, part: Part, column: int) -> Scale:
        """Return the scale of a column on which a part acts."""
        return self._model.columns.scale(View(column, part.scale(column)))

    def places(self, part: Part, column: int, values: FloatArray) -> FloatArray:
        """Return values (n,) of a column on the scale on which a part acts."""
        return self.view(part, column).forward(values)

    def steps(
        self, part: Part, column: int, n: int, ends: tuple[float, float] | None = None
    ) -> FloatArray:
        """Return places (n,) along a column, evenly spaced on the scale on which a part acts."""
        view = self.view(part, column)
        low, high = view.forward(np.array(ends or self.ends(column))).tolist()
        return view.inverse(np.linspace(low, high, n))

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
        n = 1
        if isinstance(self._predictor, ExactPredictor):
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
    def _predictors(self) -> dict[MixtureComponent, Predictor]:
        """The predictors of draws on the scale of the target of the best kernel.

        Others are no sum of the same things. A draw without a Cholesky factor has none.
        """
        found: dict[MixtureComponent, Predictor] = {}
        for one in self.posterior:
            if one.expression.target == self._best.expression.target:
                with suppress(LinAlgError):
                    found[one] = self._conditioned(one.expression, one.theta)
        return found

    @cached_property
    def _parts_of_draws(self) -> dict[MixtureComponent, list[Part]]:
        return {one: parts_of(one.expression, one.theta) for one in self.posterior}

    def probability(self, part: Part, column: int | None = None) -> float:
        """Compute the probability that a part is there, or that it depends on a column.

        A part of several columns is there if an effect of any of them is.
        """
        columns = part.columns if column is None else (column,)
        likes = [(one.weight, self._like(part, one)) for one in self.posterior]
        found = [sum(p for p, like in likes if like and c in like.columns) for c in columns]
        return max(found, default=1.0)

    def probability_of_interaction(
        self, part: Part, columns: Sequence[int], first: int | None = None
    ) -> float:
        """Compute the probability of the kernels in which the effects of columns interact.

        With a ``first`` column, it is one of those that interact.
        """
        needed = set() if first is None else {first}

        def interact(like: Part | None) -> bool:
            used = [one.expression.columns & set(columns) for one in like.group] if like else []
            return any(len(one) > 1 and needed <= one for one in used)

        return sum(one.weight for one in self.posterior if interact(self._like(part, one)))

    def _like(self, part: Part, draw: MixtureComponent) -> Part | None:
        """Find what a part is in a draw, None if it has no such part."""
        if (part, draw) not in self._found:
            group = self._counterpart(part, draw)
            like = replace(part, group=group, theta_of_all=draw.theta) if group else None
            self._found[part, draw] = like
        return self._found[part, draw]

    def _counterpart(self, part: Part, draw: MixtureComponent) -> Sequence[Addend]:
        """Return the addends of a draw that stand for a part.

        A season has those with its period. What is confined to a region, or varies with a season,
        has those of the same columns and regions. All else has every other addend on its columns,
        so that its probability is that of the columns.
        """
        if not part.is_season and draw.expression == self._best.expression:
            return part.group
        return [
            one.group[0] for one in self._parts_of_draws[draw] if part.stands_for(one, self.parts)
        ]

    def _known(self, part: Part, column: int) -> list[tuple[float, Part, Predictor]]:
        """List what a part is in each draw that has it, with weights that sum to one."""
        likes = [(one, self._like(part, one), own) for one, own in self._predictors.items()]
        found = [(one.weight, x, own) for one, x, own in likes if x and column in x.columns]
        total = sum(weight for weight, *_ in found)
        return [(p / total, like, own) for p, like, own in found] or [(1.0, part, self._predictor)]

    def means_of_draws(
        self, part: Part, column: int, values: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Compute weights (n_draws,) and means (n_draws, n) of a part in the draws that have it."""
        weights, likes, predictors = zip(*self._known(part, column), strict=True)
        X = self.inputs_along({column: values})
        with one_blas_thread():
            means = [p.part_mean(*one.kernel, X) for one, p in zip(likes, predictors, strict=True)]
        return np.array(weights), self._spread * np.array(means)

    def draws(self, part: Part, column: int, X: FloatArray, n_draws: int) -> FloatArray:
        """Draw a part (n_draws, n): a kernel that has it, its parameters, then the function."""
        rng, known = np.random.default_rng(0), self._known(part, column)
        ends = np.cumsum([weight for weight, *_ in known])
        counts = np.diff(np.floor(n_draws * ends / ends[-1] + 0.5).astype(int), prepend=0)
        with one_blas_thread():
            drawn = [
                predictor.part_samples(*like.kernel, X, count, rng)
                for count, (_, like, predictor) in zip(counts.tolist(), known, strict=True)
                if count
            ]
        return self._spread * np.concatenate(drawn)

    def shares(self) -> list[float]:
        """Compute shares of the variance over the rows, of each part and of what averaging adds."""
        added, _ = self.added_by_averaging(self.X)
        return variance_shares([*(self.mean(part, self.X) for part in self.parts), added])

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
        mixture, scale = self._model.mixture, self._model.scale
        with one_blas_thread():
            best = self._predictor.mean(X)
            if scale.is_linear:
                whole = mixture.mean(X)
            else:
                whole = scale.forward(mixture.quantiles(X, np.array([0.5]))[:, 0])
            every = zip(mixture.components, mixture.predictors, strict=True)
            on = self._model.target.on
            centres = [_centre(on(one.expression.target), p, X, scale) for one, p in every]
        mean, differences = whole - best, np.array(centres) - whole
        return self._spread * mean, self._spread * np.sqrt(mixture.weights @ differences**2)

    def _separable(self, parts: list[Part]) -> list[Part]:
        """Join a season with the rest along its column if the data show only the sum of both."""
        for season in filter(lambda one: one.is_season, [*parts]):
            rest = next((p for p in parts if p.is_free and p.columns == season.columns), None)
            if rest is not None and not self._are_separable(season, rest):
                both = replace(rest, group=[*rest.group, *season.group], period=season.period)
                parts = [*(part for part in parts if part not in (season, rest)), both]
        return parts

    def _are_separable(self, season: Part, rest: Part) -> bool:
        """Whether each is not uncertain by half of what it varies while their sum is known well."""
        about = self.X[:: max(1, len(self.X) // MAX_ROWS)]
        both = replace(rest, group=[*rest.group, *season.group])
        stds = [self.mean_and_std(one, about, about=about)[1] for one in (season, rest, both)]
        *errors, error = [float(np.sqrt(np.mean(std**2))) for std in stds]
        varies = min(float(self.mean(part, about).std()) for part in (season, rest))
        return error >= INSEPARABLE * min(errors) or min(errors) <= INSEPARABLE * varies

    def _with_season(self, part: Part) -> Part:
        if np.isnan(part.period):
            return part
        leaves = [one for one in part.leaves if not only_switches(one.kernel)]
        column = next(leaf.column for leaf in leaves if has_period(leaf.kernel))
        low, high = self.ends(column)
        if low == high:
            return replace(part, period=np.nan)
        _, is_known = period_of(part.group[0], part.theta_of_all)
        if is_known or all(has_period(leaf.kernel) for leaf in leaves):
            return replace(part, is_season=True)
        n_periods = (high - low) / part.period
        places = np.linspace(low, high, int(min(POINTS_PER_PERIOD * n_periods, MAX_POINTS)))
        share = wave_share(self.curve(part, column, places), n_periods)
        return replace(part, is_season=share > MIN_WAVE_SHARE)


def _centre(own: Scale, predictor: Predictor, X: FloatArray, scale: Scale) -> FloatArray:
    """Compute the mean (n,) of a kernel on its own scale, or its median on another one."""
    if scale.is_linear and not own.is_linear:
        return own.moments(*predictor.mean_and_variance(X))[0]
    centre = predictor.mean(X)
    return centre if own == scale else scale.forward(own.inverse(centre))


def _typical_inputs(X: FloatArray, expressions: Sequence[Expression]) -> FloatArray:
    typical: FloatArray = np.median(X, axis=0)
    for leaf in chain.from_iterable(one.leaves for one in expressions):
        if leaf.kernel.is_categorical:
            levels, counts = np.unique(X[:, leaf.column], return_counts=True)
            typical[leaf.column] = levels[np.argmax(counts)]
    return typical


def wave_share(curve: FloatArray, n_periods: float) -> float:
    """Compute the share of the variance of a curve around its averages over a period."""
    window = max(2, round(len(curve) / n_periods))
    level = np.convolve(curve, np.full(window, 1 / window), mode="valid")
    within = curve[(window - 1) // 2 :][: len(level)]  # where there are averages
    return float((within - level).var() / within.var()) if within.var() > 0 else 1.0


def _by_share(parts: Sequence[Part], means: Sequence[FloatArray]) -> tuple[list[Part], int]:
    """Return parts with their shares, those that explain much first, and the number of these."""
    pairs = zip(parts, variance_shares(means), map(np.ptp, means), strict=True)
    measured = [replace(part, share=share, span=float(span)) for part, share, span in pairs]
    measured.sort(key=lambda part: -part.share)
    least = LITTLE * float(np.ptp(sum(means))) if means else 0.0
    small = [part for part in measured if part.share < SMALL and part.span < least]
    large = [part for part in measured if part not in small]
    return [*large, *small], len(large)


def _without_opponents(
    parts: Sequence[Part], means: Sequence[FloatArray]
) -> tuple[list[Part], list[FloatArray]]:
    """Join each part that works against the others with the one that it counteracts most."""
    parts, means = [*parts], [*means]
    while len(parts) > 1 and min(shares := variance_shares(means)) < LEAST_SHARE:
        first = int(np.argmin(shares))
        centred = np.array(means) - np.mean(means, axis=1, keepdims=True)
        products = np.delete(centred @ centred[first], first)
        part, mean = parts.pop(first), means.pop(first)
        second = int(np.argmin(products))
        group = [*parts[second].group, *part.group]
        parts.append(replace(parts.pop(second), group=group, is_season=False))
        means.append(mean + means.pop(second))
    return parts, means


def variance_shares(means: Sequence[FloatArray]) -> list[float]:
    """Compute the covariances of means (n,) with their sum, as fractions of its variance."""
    if not means:
        return []
    centred = np.array(means) - np.mean(means, axis=1, keepdims=True)
    whole = centred.sum(axis=0)
    total = whole @ whole
    shares: FloatArray = centred @ whole / total if total > 0 else np.zeros(len(means))
    return shares.tolist()
