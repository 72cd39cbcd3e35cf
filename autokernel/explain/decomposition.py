"""A fitted function as a sum of components, on the scale of the target of the best kernel."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np

from autokernel.data.scales import Scale
from autokernel.explain.tables import inclusion_table
from autokernel.expression import (
    IDENTITY,
    Addend,
    Expression,
    Leaf,
    addends,
    arrange,
    slots_of,
)
from autokernel.inference import one_blas_thread
from autokernel.inference.base import Predictor
from autokernel.inference.exact import ExactPredictor
from autokernel.kernels import (
    MULTIPLY,
    WANDERING,
    BaseKernel,
    BroadcastPairs,
    LagPairs,
    Role,
    Share,
    role_index,
)
from autokernel.model import FittedModel
from autokernel.typing import FloatArray, IntArray

SAME_PARAMETERS = 1e-6  # relative difference up to which addends are one component
SAME_PERIOD = 0.02  # relative difference up to which two seasons of a kernel are one
SAME_SEASON = 0.05  # the same of two kernels
LEAST_SHARE = -0.005  # below it a component works against another one, and is joined with it
MAX_PERIOD = 0.5  # extents of the column; the data show a longer one less than twice
MIN_CORRELATION = 0.1  # after one period, for a function that is said to repeat
INSEPARABLE = 0.5  # of the error of a part, below which that of its sum with another one counts
MAX_ROWS = 200  # over which errors of parts are averaged
SMALL, LITTLE = 0.01, 0.1  # share, and part of the range of the fit, of parts that explain little
MIN_WAVE_SHARE = 0.9  # of the variance, from which a wave on a level is a season
POINTS_PER_PERIOD, MAX_POINTS = 16, 2000  # of a curve whose periods are averaged
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


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A component of a kernel, before it is put into words.

    It holds the addends that a reader takes for one thing: all that have a column in common and no
    season, those with the same season, and what works against each other.
    """

    group: Sequence[Addend]
    theta_of_all: FloatArray  # logs of all parameters of the kernel that is explained
    period: float = np.nan  # with which it repeats, in the unit interval
    is_season: bool = False  # whether it repeats, and does little else
    is_whole: bool = False  # whether it has all that repeats along its column
    share: float = np.nan
    span: float = np.nan  # of its mean over the training rows, on the scale of the target

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns on which it depends."""
        return tuple(sorted(frozenset.union(*(one.expression.columns for one in self.group))))

    @property
    def groups(self) -> tuple[int, ...]:
        """The columns of which it only matters whether two values are equal."""
        acting = {leaf.column for leaf in self._leaves if not leaf.kernel.is_categorical}
        return tuple(column for column in self.columns if column not in acting)

    @property
    def along(self) -> tuple[int, ...]:
        """The columns along which it is a curve, one for each level of its groups."""
        return tuple(column for column in self.columns if column not in self.groups)

    @property
    def _leaves(self) -> list[Leaf]:
        return [leaf for one in self.group for leaf in one.expression.leaves]

    @property
    def expression(self) -> Expression:
        """The kernel, in which equal addends occur once."""
        first, *others = {one.expression.canonical: one.expression for one in self.group}.values()
        return arrange(sum(others, start=first))[0]

    @property
    def kernel(self) -> tuple[Expression, FloatArray]:
        """The sum of the addends, and its parameters (n_params,), not their logs."""
        first, *others = self.group
        kernel = sum((one.expression for one in others), start=first.expression)
        entries = np.concatenate([one.entries for one in self.group])
        return kernel, np.exp(self.theta_of_all[entries])

    def drift(self, gap: float) -> float:
        """Compute the standard deviation of what its levels wander over a gap, by their kernels.

        The gap is in the unit interval of the column. It is zero without a level that wanders.
        """
        x = np.array([1 - gap, 1.0])
        pairs, variance = BroadcastPairs(x[:, None], x[None]), 0.0
        for one in self.group:
            leaf = one.expression
            if isinstance(leaf, Leaf) and leaf.kernel in WANDERING and leaf.scale == IDENTITY:
                params = np.exp(self.theta_of_all[one.entries])
                K = leaf.kernel.value(params, pairs)
                variance += K[0, 0] + K[1, 1] - 2 * K[0, 1]
        return float(np.sqrt(variance))

    @property
    def is_joint(self) -> bool:
        """Whether the effect of a column depends on another one, and is not only added to it."""
        return any(len(replace(self, group=[one]).columns) > 1 for one in self.group)

    def scale(self, column: int) -> str:
        """Return the scale of a column on which all its kernels without a period act."""
        scales = {
            leaf.scale
            for leaf in self._leaves
            if leaf.column == column
            and not (_has_period(leaf.kernel) or isinstance(leaf.kernel, Share))
        }
        return scales.pop() if len(scales) == 1 else IDENTITY

    @property
    def is_free(self) -> bool:
        """Whether it may be joined with others that have a column in common."""
        is_periodic = any(_has_period(leaf.kernel) for leaf in self._leaves)
        varies_with_season = len(self.along) > 1 and self.is_joint and is_periodic
        return not (self.is_season or _regions(self) or varies_with_season)


class ExplainedKernel:
    """A kernel with parameters as a sum of parts, on its scale of the target.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Scaled inputs of the training rows; missing values are medians.
    typical : ndarray of shape (n_features,)
        Medians of the columns, and the most frequent levels of categories.
    parts : list of Part
        The parts, the largest share of the variance first, and after them those that explain
        little.
    n_large : int
        How many explain more than that.
    """

    def __init__(
        self, expression: Expression, theta: FloatArray, predictor: Predictor, model: FittedModel
    ) -> None:
        self._predictor, self._model = predictor, model
        self.X = model.mixture.data.inputs.filled
        self.typical = _typical_inputs(model)
        self._spread = model.scale.width
        self.theta = theta
        with one_blas_thread():
            parts = [self._with_period(part) for part in _equal_addends(expression, theta)]
            parts = self._separable(_joined_parts(parts))
            means = [self.mean(part, self.X) for part in parts]
        parts, means = _without_opponents(parts, means)
        measured = [
            replace(part, share=share, span=float(np.ptp(mean)))
            for part, share, mean in zip(parts, variance_shares(means), means, strict=True)
        ]
        least = LITTLE * float(np.ptp(sum(means))) if means else 0.0
        self.n_large = sum(not _is_small(part, least) for part in measured)
        self.parts = sorted(measured, key=lambda part: (_is_small(part, least), -part.share))

    def mean(self, part: Part, X: FloatArray) -> FloatArray:
        """Compute the mean (n,) of a part at scaled inputs (n, n_features)."""
        with one_blas_thread():
            mean = self._predictor.part_mean(*part.kernel, X)
        return self._spread * mean

    def mean_and_std(
        self, part: Part, X: FloatArray, *, about: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Compute mean and standard deviation (n,) of a part at scaled inputs (n, n_features).

        With rows ``about`` the deviation is that of the difference from the average over them.
        """
        with one_blas_thread():
            mean, variance = self._predictor.part(*part.kernel, X, about=about)
        return self._spread * mean, self._spread * np.sqrt(variance)

    def samples(
        self, part: Part, X: FloatArray, n_samples: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw a part (n_samples, n) at scaled inputs (n, n_features)."""
        with one_blas_thread():
            drawn = self._predictor.part_samples(*part.kernel, X, n_samples, rng)
        return self._spread * drawn

    def curve(self, part: Part, column: int, places: FloatArray) -> FloatArray:
        """Compute the mean (n,) along a column, the others at typical values."""
        return self.mean(part, inputs_along(self.typical, {column: places}))

    def scale(self, part: Part, column: int) -> Scale | None:
        """Return the scale of a column on which a part acts, None for the column as it is."""
        name = part.scale(column)
        return None if name == IDENTITY else self._model.columns[column].scale(name)

    def ends(self, column: int) -> tuple[float, float]:
        """Return the smallest and the largest value of a column, scaled."""
        return float(self.X[:, column].min()), float(self.X[:, column].max())

    def steps(
        self, part: Part, column: int, n: int, ends: tuple[float, float] | None = None
    ) -> FloatArray:
        """Return places (n,) along a column, evenly spaced on the scale on which a part acts."""
        scale, (low, high) = self.scale(part, column), ends or self.ends(column)
        if scale is None:
            return np.linspace(low, high, n)
        low, high = scale.forward(np.array([low, high])).tolist()
        return scale.inverse(np.linspace(low, high, n))

    def _separable(self, parts: Sequence[Part]) -> list[Part]:
        """Join a season with the rest along its column if the data show only the sum of both.

        Each of them then is uncertain by half of what it varies, and their sum by much less.
        """
        parts = [*parts]
        about = self.X[:: max(1, len(self.X) // MAX_ROWS)]
        for season in [part for part in parts if part.is_season]:
            rest = next((p for p in parts if p.is_free and p.columns == season.columns), None)
            if rest is None:
                continue
            both = replace(rest, group=[*rest.group, *season.group], period=season.period)
            *errors, error = (self._error(part, about) for part in (season, rest, both))
            varies = min(float(self.mean(part, about).std()) for part in (season, rest))
            if error < INSEPARABLE * min(errors) and min(errors) > INSEPARABLE * varies:
                parts = [part for part in parts if part is not season and part is not rest]
                parts.append(both)
        return parts

    def _error(self, part: Part, about: FloatArray) -> float:
        """Compute the root mean square standard deviation of a part around its average."""
        _, std = self.mean_and_std(part, about, about=about)
        return float(np.sqrt(np.mean(std**2)))

    def _with_period(self, part: Part) -> Part:
        """Note the period of a part that repeats itself, and does little else."""
        (addend, *_) = part.group
        leaves = [one for one in addend.expression.leaves if not _only_switches(one.kernel)]
        period, is_known = _period_of(addend, part.theta_of_all)
        if not np.isfinite(period):
            return part
        column = next(leaf.column for leaf in leaves if _has_period(leaf.kernel))
        if np.ptp(self.X[:, column]) == 0:
            return part
        alone = all(_has_period(leaf.kernel) for leaf in leaves)
        if not (alone or is_known):
            ends = self.ends(column)
            n_periods = (ends[1] - ends[0]) / period
            places = np.linspace(*ends, int(min(POINTS_PER_PERIOD * n_periods, MAX_POINTS)))
            if wave_share(self.curve(part, column, places), n_periods) <= MIN_WAVE_SHARE:
                return replace(part, period=period)
        return replace(part, period=period, is_season=True)


class ExplainedFunction(ExplainedKernel):
    """The fitted function: the parts of the best kernel, and the contribution of averaging.

    Attributes
    ----------
    is_averaged : bool
        Whether predictions average over kernels or parameters.
    shares : list of float
        Shares of the variance over the training rows of each part, and of what averaging adds.
    std_of_averaging : float
        Standard deviation over the training rows of what averaging adds.
    """

    def __init__(self, model: FittedModel) -> None:
        evaluation, mixture = model.evaluation, model.mixture
        is_of_best = mixture.is_of(evaluation.expression, evaluation.theta)
        has_signal = any(one.expression.n_leaves for one in mixture.components)
        self.is_averaged = has_signal and not is_of_best
        if is_of_best:
            (predictor,) = mixture.predictors
        else:
            with one_blas_thread():
                predictor = ExactPredictor(evaluation.expression, evaluation.theta, mixture.data)
        super().__init__(evaluation.expression, evaluation.theta, predictor, model)
        added = self.added_by_averaging(self.X)[0]
        self.shares = variance_shares([*(self.mean(part, self.X) for part in self.parts), added])
        self.std_of_averaging = float(added.std())

    @cached_property
    def members(self) -> list[tuple[float, ExplainedKernel]]:
        """The kernels and parameters over which predictions average, with their weights.

        Only those on the scale of the target of the best kernel, as others are no sum of the same
        things.
        """
        mixture, target = self._model.mixture, self._model.evaluation.expression.target
        every = zip(mixture.weights.tolist(), mixture.components, mixture.predictors, strict=True)
        found = [one for one in every if self.is_averaged and one[1].expression.target == target]
        total = sum(weight for weight, *_ in found)
        members = [
            (weight / total, ExplainedKernel(one.expression, one.theta, predictor, self._model))
            for weight, one, predictor in found
        ]
        return members or [(1.0, self)]

    @cached_property
    def inclusion(self) -> FloatArray:
        """Probabilities (n_features,) that the columns matter."""
        return inclusion_table(self._model)["depends"]

    def probability(self, part: Part) -> float:
        """Compute the probability that a part, or an effect of one of its columns, is there."""

        def along(column: int) -> float:
            has_it = self._weight(lambda member: _like(part, member, column) is not None)
            return min(has_it, float(self.inclusion[column]))

        return max(map(along, part.columns), default=1.0)

    def _weight(self, has_it: Callable[[ExplainedKernel], bool]) -> float:
        return float(sum(weight for weight, member in self.members if has_it(member)))

    def probability_of_interaction(
        self, part: Part, columns: Sequence[int], first: int | None = None
    ) -> float:
        """Compute the probability of the kernels in which the effects of columns interact.

        With a ``first`` column, it is one of those that interact.
        """
        likes = ((weight, _like(part, member, columns[0])) for weight, member in self.members)
        needed = set() if first is None else {first}

        def has_it(addend: Addend) -> bool:
            used = addend.expression.columns & set(columns)
            return len(used) > 1 and needed <= used

        found = sum(
            weight for weight, like in likes if like is not None and any(map(has_it, like.group))
        )
        return min(float(found), *self.inclusion[list(columns)].tolist())

    def probability_of_period(self, part: Part) -> float:
        """Compute the probability of the kernels that have the period of a part."""
        found = self._weight(lambda member: bool(_addends_of_season(part, member)))
        return min(found, *self.inclusion[list(part.along)].tolist())

    def means_of_members(self, part: Part, column: int, X: FloatArray) -> FloatArray:
        """Compute means (n_members, n) of a part; nan for members with none along a column."""
        found = [(member, _like(part, member, column)) for _, member in self.members]
        return np.array(
            [np.full(len(X), np.nan) if one is None else m.mean(one, X) for m, one in found]
        )

    def draws(self, part: Part, column: int, X: FloatArray, n_draws: int) -> FloatArray:
        """Draw a part (n_draws, n): a kernel with its parameters first, then the function.

        The draws are nan where the kernel has no part like this along a column.
        """
        rng = np.random.default_rng(0)
        ends = np.cumsum([weight for weight, _ in self.members])
        counts = np.diff(np.floor(n_draws * ends / ends[-1] + 0.5).astype(int), prepend=0)
        drawn = []
        for count, (_, member) in zip(counts.tolist(), self.members, strict=True):
            like = _like(part, member, column)
            if like is None:
                drawn.append(np.full((count, len(X)), np.nan))
            elif count:
                drawn.append(member.samples(like, X, count, rng))
        return np.concatenate(drawn)

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
            of_target = self._model.target.on
            centres = [_centre(of_target(c.expression.target), p, X, scale) for c, p in every]
        mean, differences = whole - best, np.array(centres) - whole
        return self._spread * mean, self._spread * np.sqrt(mixture.weights @ differences**2)


def _centre(own: Scale, predictor: Predictor, X: FloatArray, scale: Scale) -> FloatArray:
    """Compute the mean (n,) of a kernel on its own scale, or its median on another one."""
    if scale.is_linear and not own.is_linear:
        return own.moments(*predictor.mean_and_variance(X))[0]
    centre = predictor.mean(X)
    return centre if own == scale else scale.forward(own.inverse(centre))


def inputs_along(typical: FloatArray, values: Mapping[int, FloatArray | float]) -> FloatArray:
    """Build inputs (n, n_features): some columns have given values, the others typical ones."""
    n = max(np.size(one) for one in values.values())
    inputs = np.tile(typical, (n, 1))
    for column, given in values.items():
        inputs[:, column] = given
    return inputs


def _typical_inputs(model: FittedModel) -> FloatArray:
    """Compute the medians (n_features,) of the columns, and the modes of categories."""
    X, expressions = model.mixture.data.inputs.filled, [model.evaluation.expression]
    expressions += [one.expression for one in model.mixture.components]
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


def _is_small(part: Part, least: float) -> bool:
    return part.share < SMALL and part.span < least


def _regions(part: Part) -> list[str]:
    """Return the names of the shares that keep a part of a column."""
    return sorted(leaf.canonical for leaf in part._leaves if isinstance(leaf.kernel, Share))


def _has_period(kernel: BaseKernel) -> bool:
    return role_index(kernel.parameters, Role.PERIOD) is not None


def _only_switches(kernel: BaseKernel) -> bool:
    """Whether a factor only says where, or for which levels, the others count."""
    return isinstance(kernel, Share) or kernel.is_categorical


def _period_of(addend: Addend, theta: FloatArray) -> tuple[float, bool]:
    """Return the longest period of a product along one column, and whether the user has given it.

    The product may have factors for the levels of categories.

    It is nan without a period that the data show twice before it is forgotten.
    """
    if not all(isinstance(one, Leaf) for one in addend.expression.terms(MULTIPLY)):
        return np.nan, False
    factors = [
        (leaf, np.exp(theta[entries]))
        for leaf, entries in leaves_of(addend)
        if not leaf.kernel.is_categorical
    ]
    periodic = [one for one in factors if _has_period(one[0].kernel)]
    if not periodic or len({leaf.column for leaf, _ in factors}) > 1:
        return np.nan, False
    found = []
    for leaf, params in periodic:
        (index,) = (n for n, p in enumerate(leaf.kernel.parameters) if p.role == Role.PERIOD)
        is_known = leaf.kernel.parameters[index].keeps_prior
        period, kept = float(params[index]), 1.0
        lags = LagPairs(np.array([0.0, period]))
        for other, own in factors:
            kernel = other.kernel
            has_lags = kernel.is_stationary and other.scale == IDENTITY
            if has_lags and not _has_period(kernel) and not isinstance(kernel, Share):
                now, later = kernel.value(own, lags)
                kept *= float(later / now)
        if kept > MIN_CORRELATION and (period <= MAX_PERIOD or is_known):
            found.append((period, is_known))
    return max(found, default=(np.nan, False))


def unseen_period(part: Part, longest: float) -> bool:
    """Whether a part repeats with a period below ``longest`` that the data do not show twice."""
    return any(
        parameter.role == Role.PERIOD
        and not parameter.keeps_prior
        and MAX_PERIOD < np.exp(part.theta_of_all[entry]) < longest
        for leaf, entries in chain.from_iterable(map(leaves_of, part.group))
        for parameter, entry in zip(leaf.kernel.parameters, entries, strict=True)
    )


def leaves_of(addend: Addend) -> list[tuple[Leaf, IntArray]]:
    """List the leaves of an addend, with the entries of their parameters in those of the whole."""
    slots = slots_of(addend.expression)
    return [(node, addend.entries[own]) for node, own in slots if isinstance(node, Leaf)]


def _equal_addends(expression: Expression, theta: FloatArray) -> list[Part]:
    """Group the addends of a kernel that are equal but for their variances."""
    groups: list[list[Addend]] = []
    for addend in addends(expression):
        for group in groups:
            if _are_equal(group[0], addend, theta):
                group.append(addend)
                break
        else:
            groups.append([addend])
    return [Part(group, theta) for group in groups]


def _joined_parts(parts: Sequence[Part]) -> list[Part]:
    """Join parts that have a column in common, and those of one column with the same period."""
    joined: list[Part] = []
    for part in parts:
        same = [one for one in joined if _are_one(part, one)]
        for one in same:
            period = max(part.period, one.period, key=lambda value: np.nan_to_num(value))
            is_season = one.is_season and part.is_season
            group = [*one.group, *part.group]
            part = replace(part, group=group, period=period, is_season=is_season)
        joined = [one for one in joined if not any(one is other for other in same)] + [part]
    return joined


def _are_one(one: Part, other: Part) -> bool:
    if one.is_free and other.is_free:
        return bool(set(one.columns) & set(other.columns))
    has_region = _regions(one) or _regions(other)
    is_same = one.columns == other.columns and len(one.along) == 1
    return bool(is_same and not has_region and abs(one.period / other.period - 1) < SAME_PERIOD)


def _like(part: Part, member: ExplainedKernel, column: int) -> Part | None:
    """Find what a part is in another kernel: its season, or all that acts through its columns.

    There is none if the kernel does not depend on the ``column`` along which it is followed.
    """
    theta, of_season = member.theta, _addends_of_season(part, member)
    if part.is_season:
        return Part(of_season, theta) if of_season else None
    if not part.is_free:
        others = (one for one in member.parts if not (one.is_free or one.is_season))
        same = (one for one in others if one.columns == part.columns)
        return next((one for one in same if _regions(one) == _regions(part)), None)
    within = [one for one in member.parts if one.is_free and set(one.columns) & set(part.columns)]
    if part.is_whole:
        within += [one for one in member.parts if one.is_season and one.columns == part.columns]
    group = [addend for one in within for addend in one.group]
    group += [one for one in of_season if not any(one is other for other in group)]
    has_column = any(column in addend.expression.columns for addend in group)
    return Part(group, theta) if has_column else None


def _addends_of_season(part: Part, member: ExplainedKernel) -> list[Addend]:
    """Return the addends of a kernel that have the period of a part, along the same column."""
    return [
        addend
        for one in member.parts
        for addend in one.group
        if one.columns == part.columns
        and abs(_period_of(addend, member.theta)[0] / part.period - 1) < SAME_SEASON
    ]


def _without_opponents(
    parts: Sequence[Part], means: Sequence[FloatArray]
) -> tuple[list[Part], list[FloatArray]]:
    """Join each part that works against the others with the one that it counteracts most."""
    parts, means = [*parts], [*means]
    while len(parts) > 1 and min(shares := variance_shares(means)) < LEAST_SHARE:
        first = int(np.argmin(shares))
        centred = [mean - mean.mean() for mean in means]
        products = [
            np.inf if number == first else float(mean @ centred[first])
            for number, mean in enumerate(centred)
        ]
        second = int(np.argmin(products))
        both = [*parts[second].group, *parts[first].group]
        joined = replace(parts[second], group=both, is_season=False)
        mean = means[first] + means[second]
        left = [number for number in range(len(parts)) if number not in (first, second)]
        parts = [*(parts[number] for number in left), joined]
        means = [*(means[number] for number in left), mean]
    return parts, means


def _are_equal(one: Addend, other: Addend, theta: FloatArray) -> bool:
    """Return whether two addends are one kernel but for its variances."""
    if one.expression != other.expression:
        return False
    ours, theirs = theta[one.entries], theta[other.entries]
    is_free = np.array(
        [p.role != Role.VARIANCE for node in one.expression.nodes for p in node.parameters]
    )
    return bool(np.all(np.abs(ours - theirs)[is_free] < SAME_PARAMETERS))


def variance_shares(means: Sequence[FloatArray]) -> list[float]:
    """Compute the covariances of means (n,) with their sum, as fractions of its variance."""
    if not means:
        return []
    centred = np.array(means) - np.mean(means, axis=1, keepdims=True)
    whole = centred.sum(axis=0)
    total = whole @ whole
    shares: FloatArray = centred @ whole / total if total > 0 else np.zeros(len(means))
    return shares.tolist()
