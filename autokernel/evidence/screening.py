"""Estimates of the scores of kernels that are like a fitted one, most one operation away.

All parameters of the fitted kernel are kept. A new leaf gets some starting points, at which only
the value of the likelihood is computed, on some of the rows. The best estimates are refined by a
few steps of the maximiser.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property, lru_cache, partial
from heapq import nlargest
from itertools import product
from typing import NamedTuple

import numpy as np

from autokernel.deadline import NEVER, Deadline
from autokernel.evidence.evaluation import Estimate, Evaluation
from autokernel.evidence.laplace import laplace_log_evidence
from autokernel.evidence.maximise import Point, expected_gain, maximise
from autokernel.evidence.posterior import LogPosterior
from autokernel.evidence.starts import (
    NOISE_LEFT,
    Magnitudes,
    WarmStart,
    curvature_from,
    draw_starts,
    highest,
    random_stream,
    with_curvature,
)
from autokernel.exceptions import KERNEL_ERRORS, EvaluationError, NotAMaximumError, warn_of_part
from autokernel.expression import (
    Expression,
    Leaf,
    Slot,
    StructurePrior,
    Tree,
    meeting_operator,
    slots_of,
    theta_order,
    with_numbers,
)
from autokernel.inference import ExactLikelihood, LeafValues, cross_covariance, diagonal_covariance
from autokernel.inference.packed import unpack
from autokernel.kernels import (
    MULTIPLY,
    NOISE_VARIANCE,
    KernelParameter,
    LogGammaPrior,
    Priors,
    Role,
    Unit,
    role_index,
)
from autokernel.typing import FloatArray, IntArray

MAX_ROWS = 250  # on which neighbours are screened
FIRST_ROWS = 80  # on which the starting points of a new leaf are compared
MIN_ROWS_OF_TWO_STAGES = 100  # with which all points are compared on all rows of a screening
_N_PERIODIC_STARTS = 16  # of a new leaf with a period; most are at peaks of the periodogram
_SIZES = np.log([1.0, 0.4, 2.5])  # factors of lengthscales, or of the noise, on another scale
_SLOWER = (4.0, 8.0)  # what a new period multiplies, in lengthscales of before
_STEPS = (0, 1, 1, 4, 12)  # of the maximiser, as long as a kernel may be among the best
_COST_OF_PARAMETER = 1.0  # nats of evidence, where no Hessian is known


class Screened(NamedTuple):
    """A kernel with the best point that is known on the rows of a screening."""

    expression: Expression
    point: Point  # with its log posterior and a guess of the curvature
    log_prior: float  # of the point
    log_volume: float | None  # of the posterior by the curvature, None if that is not known


class Screening:
    """Estimates for the neighbours of one fitted kernel.

    Neighbours that a grammar makes of the ``parent``, the fitted kernel :func:`with_numbers`, keep
    the numbers of leaves, by which their parameters are known. New leaves are tried on the first of
    two sets of ``rows``, which may be fewer, and all kernels are screened on the second. These are
    some of the rows of the score, whose weights sum to ``n_samples``.
    """

    def __init__(
        self,
        fit: Evaluation,
        rows: tuple[LeafValues, LeafValues],
        *,
        n_samples: float,
        priors: Priors,
        seed: int,
        deadline: Deadline = NEVER,
    ) -> None:
        self._few, self._values = rows
        self._fit, self._data, self._seed = fit, self._values.data, seed
        self._deadline, self._priors = deadline, priors
        make = partial(LogPosterior, priors=priors, deadline=deadline)
        self._posterior = lru_cache(maxsize=1)(lambda e: make(ExactLikelihood(e, self._data)))
        self._rows_for_each = n_samples / self._data.noise.n_readings  # of the screening
        self._starts: dict[tuple[str, bytes], tuple[FloatArray, FloatArray]] = {}
        self._posterior_of = cache(self._posterior)  # of single leaves
        self._of_parent = cache(lambda rows: ExactLikelihood(self.parent, rows).value(fit.theta))
        self._diagonal_of = cache(partial(diagonal_covariance, X=self._data.inputs))
        self.parent = with_numbers(fit.expression)
        self._nodes = [(node, set(map(_origin, node.leaves))) for node in self.parent.nodes]

    def estimates(
        self, changed: Sequence[Expression], structure_prior: StructurePrior
    ) -> list[Estimate]:
        """Estimate the scores of arranged kernels, to which changes of the parent lead, best first.

        Where several changes lead to one kernel, the best one counts. Kernels that cannot be
        computed are left out, and those that lose much are not refined. An ``EvaluationError`` is
        raised if all of them fail.
        """
        if not changed:
            return []
        fit, posterior = self._fit, self._posterior(self.parent)
        start = Point(fit.theta, posterior.value(fit.theta))
        own = self._known({node: node for node in range(len(self.parent.nodes))})
        before = _screened(self.parent, posterior.prior, with_curvature(posterior, start, [own]))
        if self._rows_for_each > 1:  # the others adapt to these rows too
            before, _ = self._refined(before, sum(_STEPS))
        own_prior = structure_prior(fit.expression)

        def gain_of(one: Screened) -> float:
            return self._gain(one, before) + structure_prior(one.expression) - own_prior

        found = self._screen_all(changed, gain_of)
        self._refine_best(found, gain_of)
        estimates = []
        for gain, (expression, point, *_) in found.values():
            nodes = tuple(range(len(expression.nodes)))
            begin = WarmStart(nodes, point.theta, point.curvature).for_rows(self._rows_for_each)
            estimates.append(Estimate(expression, fit.score + gain, start=begin))
        return sorted(estimates, key=lambda one: (-one.score, one.expression.canonical))

    def _screen_all(
        self, changed: Sequence[Expression], gain_of: Callable[[Screened], float]
    ) -> dict[str, tuple[float, Screened]]:
        """Screen all changed kernels, and keep the best one of each text."""
        reason = ""
        found: dict[str, tuple[float, Screened]] = {}
        for neighbour in changed:
            if (text := neighbour.canonical) == self._fit.expression.canonical:
                continue
            self._deadline.check()
            try:
                one = self.screened(neighbour)
                gain = gain_of(one)
            except KERNEL_ERRORS as error:
                reason = warn_of_part(error) or reason
                continue
            if text not in found or gain > found[text][0]:
                found[text] = gain, one
        if reason and not found:
            raise EvaluationError(reason)
        return found

    def screened(self, neighbour: Expression) -> Screened:
        """Find the best starting point of an arranged neighbour by values only."""
        shared, slots = self._shared_nodes(neighbour), slots_of(neighbour)
        known = self._known(shared)
        theta = np.full(slots[-1].entries.stop + 1, np.nan)
        theta[theta_order(neighbour, known.nodes)] = known.theta
        new = [node for node in range(len(slots)) if node not in known.nodes]
        has_other_target = neighbour.target != self._fit.expression.target
        if len(new) == 1 and isinstance(slots[new[0]].node, Leaf) and not has_other_target:
            return self._with_leaf(neighbour, theta, new[0], shared)
        posterior = self._posterior(neighbour)
        thetas = theta[None]
        if new or has_other_target:
            thetas = self._in_place(theta, [slots[node] for node in new], shared)
        if np.isnan(thetas).any():
            rng = random_stream(self._seed, neighbour.tree, "new nodes")
            drawn = draw_starts(posterior, self._magnitudes, 14, rng=rng)
            thetas = np.where(np.isnan(theta), drawn, theta)
        best, *_ = highest(posterior, [Point(one) for one in thetas], 1)
        found = _screened(neighbour, posterior.prior, with_curvature(posterior, best, [known]))
        return self._refined(found, 4)[0] if has_other_target else found

    def _in_place(
        self, theta: FloatArray, new: Sequence[Slot], shared: Mapping[int, int]
    ) -> FloatArray:
        """Return starting points of new leaves with the parameters of those that they replace.

        These are on the same column, of the same base kernel if possible, and give the parameters
        of the same name. There are several sizes of what is new or, where the target is new,
        several variances of the noise. Some steps should follow. What no leaf gives is nan.
        """
        before = slots_of(self._fit.expression)
        gone = [before[n] for n in range(len(before)) if n not in shared.values()]
        lengths = list[int]()
        for node, entries in new:
            if not (same := [one for one in gone if one.node.column == node.column]):
                continue
            twin = min(same, key=lambda one: one.node.declared != node.declared)
            gone.remove(twin)
            names = (parameter.name for parameter in twin.node.parameters)
            values = dict(zip(names, self._fit.theta[twin.entries], strict=True))
            for entry, parameter in enumerate(node.parameters, start=entries.start):
                theta[entry] = values.get(parameter.name, np.nan)
                lengths += [entry] * (parameter.role == Role.LENGTHSCALE)
        thetas = np.tile(theta, (len(_SIZES), 1))
        thetas[:, lengths or [-1]] += _SIZES[:, None]
        return thetas

    def _with_leaf(
        self, neighbour: Expression, theta: FloatArray, node: int, shared: Mapping[int, int]
    ) -> Screened:
        """Find the best starting point of a new leaf, of a period on all rows: few show others."""
        slots = slots_of(neighbour)
        groups = self._points_with_leaf(neighbour, theta, node, shared)
        own = [one for each in neighbour.nodes for one in self._data.parameters(each)]
        prior = LogGammaPrior.of([*own, NOISE_VARIANCE], priors=self._priors)
        rows = self._values if slots[node].node.has_many_modes else self._few
        likelihoods = [rows.log_likelihoods(neighbour, node, one) for one in groups]
        times = self._data.noise.n_readings / rows.data.noise.n_readings
        gains = np.concatenate(likelihoods) - self._of_parent(rows.data)
        thetas = np.concatenate(groups)
        values = self._of_parent(self._data) + times * gains + prior.log_density(thetas)
        best = int(np.argmax(values))
        theta, (leaf, entries) = thetas[best], slots[node]
        units, of_leaf = np.ones(len(theta)), np.append(theta[entries], theta[-1])
        units[entries] = self._posterior_of(leaf).step_units(of_leaf)[:-1]
        curvature = curvature_from(neighbour, [self._known(shared)], units)
        return _screened(neighbour, prior, Point(theta, float(values[best]), curvature))

    def _points_with_leaf(
        self, neighbour: Expression, theta: FloatArray, node: int, shared: Mapping[int, int]
    ) -> list[FloatArray]:
        """Return starting points of one new leaf, in arrays with the same parameters of the others.

        Where a leaf with a period is a factor, what it multiplies may be as before, or vary more
        slowly, since the period explains what was fast.
        """
        slots = slots_of(neighbour)
        new, kept = slots[node], set(shared.values())
        factors = [
            slot
            for number, slot in enumerate(slots)
            if isinstance(slot.node, Leaf) and number != node
            if meeting_operator(neighbour.tree, node, number) == MULTIPLY
        ]
        before = enumerate(slots_of(self._fit.expression))
        removed = [slot for n, slot in before if n not in kept and isinstance(slot.node, Leaf)]
        variance = 1.0 if factors else None  # None for a new term of a sum
        if len(removed) == 1:  # in whose place the leaf comes
            [(leaf, entries)] = removed
            variance = self._variance(leaf, self._fit.theta[entries])
        found = [self._with_starts(neighbour, theta, new, variance)]
        lengths = [
            entries.start + index
            for factor, entries in factors
            if (index := role_index(factor.parameters, Role.LENGTHSCALE)) is not None
        ]
        for times in _SLOWER if new.node.has_many_modes and lengths else ():
            slow = theta.copy()
            slow[lengths] += np.log(times)
            starts = self._with_starts(neighbour, slow, new, variance)
            found.append(starts[: _N_PERIODIC_STARTS // len(_SLOWER)])
        return found

    def _with_starts(
        self, neighbour: Expression, theta: FloatArray, new: Slot, variance: float | None
    ) -> FloatArray:
        """Combine the starting points of a new leaf with given parameters of the others.

        The leaf has a mean variance, unless that is None: then it explains some of the noise in
        every other point, unless the points are periods to compare.
        """
        leaf, entries = new
        assert isinstance(leaf, Leaf)
        starts, variances = self._starts_of(leaf, self._others(neighbour, theta, new))
        thetas = np.tile(theta, (len(starts), 1))
        thetas[:, entries] = starts
        if variance is None:
            thetas[1::2, -1] += 0.0 if leaf.has_many_modes else np.log(NOISE_LEFT)
        else:
            with np.errstate(all="ignore"):
                log_ratios = np.log(variance / variances)
            log_ratios[~np.isfinite(log_ratios)] = 0.0  # a variance may be zero
            thetas[:, entries] += np.outer(log_ratios, _is_variance(leaf))
        return thetas

    def _others(self, neighbour: Expression, theta: FloatArray, new: Slot) -> FloatArray | None:
        """Compute the packed covariance without a new leaf, None if nothing depends on it."""
        if not new.node.has_many_modes or not _is_variance(new.node).any():
            return None
        node, n = slots_of(neighbour).index(new), len(self._data.y)
        affine = self._values.without_leaf(neighbour, node, theta)
        return None if affine is None else np.broadcast_to(affine[0], (n * (n + 1) // 2,))

    def _starts_of(self, leaf: Leaf, others: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Return starting points of a leaf, at periods that the others leave, and variances."""
        key = leaf.canonical, b"" if others is None else others.tobytes()
        if key not in self._starts:
            if others is None:
                n_starts = _N_PERIODIC_STARTS if leaf.has_many_modes else 6
                rng = random_stream(self._seed, leaf, "new leaf")
                posterior = self._posterior_of(leaf)
                starts = draw_starts(posterior, self._magnitudes, n_starts, rng=rng)[:, :-1]
            else:
                starts = self._starts_of(leaf, None)[0].copy()
                beside = self._magnitudes_beside(unpack(others, len(self._data.y)))
                _place_at_peaks(starts, leaf, self._data.parameters(leaf), beside)
            self._starts[key] = starts, np.array([self._variance(leaf, one) for one in starts])
        return self._starts[key]

    def _variance(self, expression: Expression, theta: FloatArray) -> float:
        """Compute the mean prior variance of the rows, without noise."""
        return float(self._diagonal_of(expression).forward(np.exp(theta)).mean())

    def _known(self, shared: Mapping[int, int]) -> WarmStart:
        """Return the parameters of nodes that are shared with the fitted kernel."""
        return WarmStart.taken(self._fit, [*shared.items()]).for_rows(1 / self._rows_for_each)

    def _shared_nodes(self, neighbour: Expression) -> dict[int, int]:
        """Map nodes of a neighbour to those from which they come, operators by common leaves."""
        shared: dict[int, int] = {}
        for number, node in enumerate(neighbour.nodes):
            leaves = set(map(_origin, node.leaves))
            n_common = {
                place: n
                for place, (other, known) in enumerate(self._nodes)
                if (n := len(leaves & known)) and place not in shared.values()
                if (other.declared, other.column) == (node.declared, node.column)
            }
            if n_common:
                shared[number] = max(n_common, key=n_common.__getitem__)
        return shared

    @cached_property
    def _magnitudes(self) -> Magnitudes:
        """The magnitudes of what the fitted kernel leaves unexplained."""
        X = self._data.inputs
        K = cross_covariance(self.parent, X, X).forward(np.exp(self._fit.theta[:-1]))
        return self._magnitudes_beside(K)

    def _magnitudes_beside(self, K: FloatArray) -> Magnitudes:
        """Compute the magnitudes of what a covariance without noise leaves unexplained."""
        noise, data = np.exp(self._fit.theta[-1]), self._data.on(self._fit.expression.target)
        return Magnitudes(data, K + np.diag(data.noise.variance(noise)), noise)

    def _gain(self, one: Screened, before: Screened) -> float:
        """Estimate the gain of log evidence, in nats, on the rows of the score."""
        times, n_more = self._rows_for_each, len(one.point.theta) - len(before.point.theta)
        gain_of_prior = one.log_prior - before.log_prior
        gain = one.point.log_posterior - before.point.log_posterior - gain_of_prior
        of_volume = -_COST_OF_PARAMETER * n_more
        if one.log_volume is not None and before.log_volume is not None:
            of_volume = one.log_volume - before.log_volume
        return times * gain + gain_of_prior + of_volume - 0.5 * n_more * np.log(times)

    def _refined(self, one: Screened, n_steps: int) -> tuple[Screened, float]:
        """Take steps on all rows of the screening, and expect what the next one gains."""
        posterior = self._posterior(one.expression)
        end = maximise(posterior, one.point, max_iterations=n_steps, tolerance=1e-2)
        return _screened(one.expression, posterior.prior, end), expected_gain(posterior, end)

    def _refine_best(
        self, found: dict[str, tuple[float, Screened]], gain_of: Callable[[Screened], float]
    ) -> None:
        """Refine kernels that may be among the best five, until far below or forty in vain."""
        n_poor = 0
        for text in sorted(found, key=lambda text: -found[text][0]):
            least = max(nlargest(5, [0.0, *(gain for gain, _ in found.values())])[-1], -2.0)
            gain, one = found[text]
            if n_poor == 40 or gain < least - 12.0:
                break
            n_poor += 1
            try:
                for n_steps in _STEPS:
                    one, more = self._refined(one, n_steps)
                    found[text] = gain, one = gain_of(one), one
                    if gain + more < least - 1.0:
                        break
                    n_poor = 0
            except KERNEL_ERRORS as error:  # then the estimate is that of before
                warn_of_part(error)


def _origin(leaf: Leaf) -> tuple[int | None, str]:
    """Return what a leaf has in common only with the leaf of the fitted kernel that it is."""
    return leaf.number, leaf.canonical


def _screened(expression: Expression, prior: LogGammaPrior, point: Point) -> Screened:
    log_volume = None
    if point.curvature is not None:
        with suppress(NotAMaximumError):
            log_volume = laplace_log_evidence(0.0, point.curvature)
    return Screened(expression, point, float(prior.log_density(point.theta)), log_volume)


def _place_at_peaks(
    starts: FloatArray, leaf: Leaf, parameters: Sequence[KernelParameter], magnitudes: Magnitudes
) -> None:
    """Move the first starting points of a periodic leaf to the peaks of the periodogram."""
    if (index := role_index(parameters, Role.PERIOD)) is None:
        return
    periods = magnitudes.periods(leaf.view, parameters[index].start)
    low, high = np.log([magnitudes.mean_square, magnitudes.largest_mean_square])
    # lengthscales in the cycle, and variances between those of the noise and of the target
    shapes = [(0.5, 0.6), (1.2, 0.6), (0.5, 0.3), (1.2, 0.3)]
    places = product(shapes, periods)
    for start, ((lengthscale, share), period) in zip(starts, places, strict=False):
        known: dict[Role | None, float] = {
            Role.PERIOD: np.log(period),
            Role.CYCLE_LENGTHSCALE: np.log(lengthscale),
            Role.VARIANCE: low + share * (high - low),
        }
        start[:] = [known.get(p.role, at) for p, at in zip(leaf.parameters, start, strict=True)]


def _is_variance(node: Tree) -> IntArray:
    """Return for each parameter of a node whether it scales with the variance."""
    return np.array([int(one.unit == Unit.SQUARED_TARGET) for one in node.parameters], dtype=int)
