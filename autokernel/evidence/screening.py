"""Estimates of the scores of kernels that are one operation away from a fitted kernel.

All parameters of the fitted kernel are kept. A new leaf gets some starting points, at which only
the value of the likelihood is computed, on some of the rows. The covariance of the changed kernel
is linear in the values of the new leaf, ``K = G + M * B`` entry by entry, so that a starting point
costs little more than one Cholesky factor. The best estimates are refined by a few steps of the
maximiser.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from scipy.linalg import LinAlgError

from autokernel.deadline import NEVER, Deadline
from autokernel.evidence.evaluation import Evaluation
from autokernel.evidence.laplace import laplace_log_evidence
from autokernel.evidence.maximise import maximise
from autokernel.evidence.posterior import LogPosterior
from autokernel.evidence.starts import NOISE_LEFT, DataScales, draw_starts, random_stream
from autokernel.evidence.warm_starts import WarmStart, curvature_from
from autokernel.exceptions import EvaluationError, NotAMaximumError, kernel_errors
from autokernel.expression import (
    Expression,
    Leaf,
    Operation,
    Slot,
    StructurePrior,
    View,
    fold,
    n_kernel_params,
    slots_of,
)
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.inference.covariance import Covariance
from autokernel.inference.packed import unpack
from autokernel.kernels import (
    ADD,
    MULTIPLY,
    KernelParameter,
    Operands,
    Priors,
    Role,
    Unit,
)
from autokernel.typing import FloatArray, IntArray

MAX_ROWS = 150  # on which neighbours are screened
_N_STARTS = 14  # of several new nodes
_STARTS_PER_PARAMETER = 4  # of a new leaf
_N_PERIODIC_STARTS = 28  # of a new leaf with a period; most are at peaks of the periodogram
_SHAPES_OF_CYCLE = ((0.5, 0.6), (1.2, 0.6), (0.5, 0.3), (1.2, 0.3))
"""Lengthscales in the cycle, and variances between those of the noise and of the target."""
_SIZES = (1.0, 0.4, 2.5)  # of lengthscales, or of the noise, on another scale
_SLOWER = (4.0, 8.0)  # what a new period multiplies, in lengthscales of before
_FLAT_EXTENTS, _FLAT_IN_CYCLE = 3.0, 3.0  # lengthscales with which a leaf hardly varies
_FLAT_LINE = 0.3  # variance of the slope of a line that hardly varies, whose offset is one
_STEPS = (2, 4, 12)  # of the maximiser, in rounds for fewer and fewer kernels
_FAR_BELOW = (14.0, 5.0, 3.5)  # nats below the best one, beyond which a kernel is not in a round
_MAX_POOR = 12  # kernels in a row that fall below the next limit, with which a round ends
_TOLERANCE = 1e-2  # nats that a further step may gain
_COST_OF_PARAMETER = 1.0  # nats of evidence, where no Hessian is known


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: a warm start holds arrays
class Estimate:
    """A kernel to evaluate, with an estimate of its score and a starting point for its fit."""

    expression: Expression
    score: float = np.nan  # nats; nan for a kernel of which nothing is known
    start: WarmStart | None = None  # of all parameters of the arranged kernel


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class ScreenedKernel:
    """The best point that is known of a kernel on the rows of a screening."""

    posterior: LogPosterior
    theta: FloatArray  # (n_params,)
    log_likelihood: float  # nats
    curvature: FloatArray | None = None  # estimate of the Hessian of the negative log posterior


class Screening:
    """Estimates for the neighbours of one fitted kernel.

    They are screened on ``data``, some of the rows of the score, whose weights sum to
    ``n_samples``. The ``parent`` is the fitted kernel, in leaves that are objects of no other
    expression. Neighbours that a grammar makes of it keep these objects, by which their parameters
    are known.
    """

    def __init__(
        self,
        fit: Evaluation,
        data: TrainingData,
        *,
        n_samples: float,
        priors: Priors,
        seed: int,
        deadline: Deadline = NEVER,
    ) -> None:
        self._fit, self._data, self._priors, self._seed = fit, data, priors, seed
        self._n_samples, self._deadline = n_samples, deadline
        self._slots = slots_of(fit.expression)
        self._likelihood = ExactLikelihood(fit.expression, data)
        self._starts: dict[
            tuple[Leaf, bytes], tuple[FloatArray, list[FloatArray], list[float]]
        ] = {}
        self.parent = fit.expression
        for place, tree in enumerate(fit.expression.subtrees()):
            if isinstance(tree, Leaf):
                self.parent = self.parent.replace(place, replace(tree))

    def estimates(
        self, changes: Iterable[Expression], structure_prior: StructurePrior
    ) -> list[Estimate]:
        """Estimate the scores of the arranged results of changes of ``parent``, best first.

        Where several changes lead to one kernel, the best one counts. Kernels that cannot be
        computed are left out.
        """
        fit = self._fit
        before = self._screened_at(
            self._posterior(self.parent), fit.theta, self._likelihood.value(fit.theta)
        )
        if self._data.noise.total_weight < self._n_samples:  # the others adapt to these rows too
            for n_steps in _STEPS:
                before = self._refined(before, n_steps)
        own_prior = structure_prior(fit.expression)

        def gain_of(one: ScreenedKernel) -> float:
            return self._gain(one, before) + structure_prior(one.posterior.expression) - own_prior

        known: set[tuple[str, tuple[tuple[int, int], ...]]] = set()
        found: dict[str, tuple[float, ScreenedKernel]] = {}
        for neighbour in changes:
            text, origin = neighbour.canonical, tuple(self._shared_nodes(neighbour))
            if text == fit.expression.canonical or (text, origin) in known:
                continue
            known.add((text, origin))
            with suppress(EvaluationError), kernel_errors():
                one = self.screened(neighbour)
                gain = gain_of(one)
                if text not in found or gain > found[text][0]:
                    found[text] = gain, one
        for n_steps, far, poor in zip(_STEPS, _FAR_BELOW, (*_FAR_BELOW[1:], np.inf), strict=True):
            best, n_poor = max([0.0, *(gain for gain, _ in found.values())]), 0
            for text, (gain, one) in sorted(found.items(), key=lambda item: -item[1][0]):
                if gain < best - far or n_poor == _MAX_POOR:
                    break
                with suppress(EvaluationError), kernel_errors():
                    refined = self._refined(one, n_steps)
                    gain = gain_of(refined)
                    found[text] = gain, refined
                n_poor = n_poor + 1 if gain < best - poor else 0
        estimates = [
            Estimate(
                expression := one.posterior.expression,
                fit.score + gain,
                WarmStart(range(len(expression.nodes)), one.theta, one.curvature),
            )
            for gain, one in found.values()
        ]
        return sorted(estimates, key=lambda one: (-one.score, one.expression.canonical))

    def screened(self, neighbour: Expression) -> ScreenedKernel:
        """Find the best starting point of an arranged neighbour by values only."""
        slots, posterior = slots_of(neighbour), self._posterior(neighbour)
        theta = np.full(slots[-1].entries.stop + 1, np.nan)
        theta[-1] = self._fit.theta[-1]
        sources: dict[int, int] = {}  # first entry of a shared node: that in the fitted kernel
        for ours, theirs in self._shared_nodes(neighbour):
            mine, its = slots[ours].entries, self._slots[theirs].entries
            theta[mine] = self._fit.theta[its]
            sources[mine.start] = its.start
        new = [slot for slot in slots if slot.entries.start not in sources]
        are_leaves = all(isinstance(slot.node, Leaf) for slot in new)
        if neighbour.target != self._fit.expression.target or (len(new) > 1 and are_leaves):
            return self._rescaled(posterior, theta, new)
        if not new:
            thetas, values = self._without_leaf(neighbour, theta, sources)
        elif len(new) == 1 and isinstance(new[0].node, Leaf) and _is_multilinear(neighbour):
            thetas, values = self._with_leaf(neighbour, theta, sources, new[0])
        else:
            rng = random_stream(self._seed, neighbour, "new nodes")
            drawn = draw_starts(posterior, self._scales, _N_STARTS, rng=rng)
            thetas = np.where(np.isnan(theta), drawn, theta)
            values = np.array([posterior.likelihood.value(one) for one in thetas])
        heights = values + posterior.prior.log_density(thetas)
        best = int(np.argmax(np.where(np.isnan(heights), -np.inf, heights)))
        return self._screened_at(posterior, thetas[best], float(values[best]))

    def _rescaled(
        self, posterior: LogPosterior, theta: FloatArray, new: Sequence[Slot]
    ) -> ScreenedKernel:
        """Screen a kernel on another scale of the target, or of a column of several leaves.

        The parameters are those on the scale of before, at several sizes of what is new or, where
        the target is new, at several variances of the noise. Some steps follow, as a kernel on
        another scale needs other parameters.
        """
        taken: set[int] = set()
        lengths: list[int] = []
        for node, entries in new:
            twins = (
                slot
                for slot in self._slots
                if slot.entries.start not in taken
                and (slot.node.declared, slot.node.column) == (node.declared, node.column)
                and slot.node.view != node.view
            )
            twin = next(twins, None)
            if twin is None:
                raise EvaluationError("several nodes are new, and only a fit can judge them")
            taken.add(twin.entries.start)
            theta[entries] = self._fit.theta[twin.entries]
            roles = [parameter.role for parameter in node.parameters]
            lengths += [entries.start + n for n, r in enumerate(roles) if r == Role.LENGTHSCALE]
        thetas = np.tile(theta, (len(_SIZES), 1))
        for start, size in zip(thetas, np.log(_SIZES), strict=True):
            start[lengths or [-1]] += size
        values = np.array([posterior.likelihood.value(one) for one in thetas])
        heights = values + posterior.prior.log_density(thetas)
        best = int(np.argmax(np.where(np.isnan(heights), -np.inf, heights)))
        return self._refined(self._screened_at(posterior, thetas[best], values[best]), _STEPS[1])

    def _screened_at(
        self, posterior: LogPosterior, theta: FloatArray, log_likelihood: float
    ) -> ScreenedKernel:
        """Record a point, with the curvature that is known from the fitted kernel."""
        shared = self._shared_nodes(posterior.expression)
        entries = [np.r_[self._slots[theirs].entries] for _, theirs in shared]
        taken = np.concatenate([*entries, [len(self._fit.theta) - 1]]).astype(int)
        share_of_rows = self._data.noise.total_weight / self._n_samples
        hessian = share_of_rows * self._fit.hessian[np.ix_(taken, taken)]
        known = WarmStart([ours for ours, _ in shared], self._fit.theta[taken], hessian)
        scales = posterior.step_scales(theta)
        curvature = curvature_from(posterior.expression, [known], scales)
        return ScreenedKernel(posterior, theta, log_likelihood, curvature)

    def _shared_nodes(self, neighbour: Expression) -> list[tuple[int, int]]:
        """Pair the nodes of a neighbour with those of the fitted kernel from which they come.

        Operators with parameters come from the same operator on the most leaves in common.
        """
        own = self.parent.nodes
        places = {id(node): place for place, node in enumerate(own)}
        pairs: list[tuple[int, int]] = []
        for number, node in enumerate(neighbour.nodes):
            if isinstance(node, Leaf):
                if id(node) in places:
                    pairs.append((number, places[id(node)]))
                continue
            leaves, taken = set(map(id, node.leaves)), {place for _, place in pairs}
            shared = {
                place: len(leaves & set(map(id, other.leaves)))
                for place, other in enumerate(own)
                if place not in taken
                and (other.declared, other.column) == (node.declared, node.column)
            }
            best = max(shared, key=lambda place: shared[place], default=None)
            if best is not None and shared[best]:
                pairs.append((number, best))
        return pairs

    def _without_leaf(
        self, neighbour: Expression, theta: FloatArray, sources: Mapping[int, int]
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the log likelihood without some leaves, as it is and at the variance of before.

        A factor that has gone may have scaled the others.
        """
        values = self._fold(neighbour, theta, sources, {})
        diagonal = self._likelihood.diagonal
        noise = np.exp(theta[-1])
        more_noise = float(np.mean(self._likelihood.diagonal_noise(noise) - noise))
        with_noise = self._likelihood.matrix(self._fit.theta)[diagonal].mean()
        variance = with_noise - (noise + more_noise)
        slots = slots_of(neighbour)
        chosen = [slots[number] for number in _leaves_of_scale(neighbour)]
        scale = _ratio_or_one(variance, values[diagonal].mean())
        if not all(_has_scale(node).any() for node, _ in chosen):
            scale = 1.0
        scaled = theta.copy()
        for node, entries in chosen:
            scaled[entries] += np.log(scale) * _has_scale(node)
        return np.stack([theta, scaled]), np.array(
            [self._log_likelihood(factor * values, noise) for factor in (1.0, scale)]
        )

    def _with_leaf(
        self, neighbour: Expression, theta: FloatArray, sources: Mapping[int, int], new: Slot
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the log likelihood at the starting points of one new leaf.

        Where a leaf with a period is a factor, what it multiplies may be as before, or vary more
        slowly, since the period explains what was fast.
        """
        factors = _factors_with(neighbour, new.entries.start)
        variance = self._variance_to_keep(sources, is_factor=bool(factors))
        found = [self._at_starts(neighbour, theta, sources, new, variance, {})]
        for times in _SLOWER if new.node.has_many_modes else ():
            slow, changed = theta.copy(), dict[int, FloatArray]()
            for number, (node, entries) in enumerate(slots_of(neighbour)):
                roles = [parameter.role for parameter in node.parameters]
                if number in factors and isinstance(node, Leaf) and Role.LENGTHSCALE in roles:
                    slow[entries.start + roles.index(Role.LENGTHSCALE)] += np.log(times)
                    changed[entries.start] = self._values(node, np.exp(slow[entries]))
            if changed:
                found.append(self._at_starts(neighbour, slow, sources, new, variance, changed))
        thetas, values = zip(*found, strict=True)
        return np.concatenate(thetas), np.concatenate(values)

    def _at_starts(
        self,
        neighbour: Expression,
        theta: FloatArray,
        sources: Mapping[int, int],
        new: Slot,
        variance: float | None,
        changed: Mapping[int, FloatArray],
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the log likelihood at the starting points of one new leaf with given others.

        The leaf has a mean variance, unless that is None. With leaves that have ``changed``, whose
        values are given by first entry, only some of the points are tried.
        """
        leaf, entries = new
        assert isinstance(leaf, Leaf)
        given: dict[int, float | FloatArray] = {**changed, entries.start: 0.0}
        constant = self._fold(neighbour, theta, sources, given)
        given[entries.start] = 1.0
        slope = self._fold(neighbour, theta, sources, given) - constant
        starts, matrices, variances = self._starts_of(leaf, constant)
        if changed:
            starts = starts[: _N_PERIODIC_STARTS // len(_SLOWER)]
        n_starts, has_scale = len(starts), _has_scale(leaf)
        thetas, scales = np.tile(theta, (n_starts, 1)), np.ones(n_starts)
        if variance is None:
            thetas[1::2, -1] += np.log(NOISE_LEFT)
        elif has_scale.any():
            scales = np.array([_ratio_or_one(variance, one) for one in variances[:n_starts]])
        thetas[:, entries] = starts + np.log(scales)[:, None] * has_scale
        noises, values = np.exp(thetas[:, -1]), np.empty(n_starts)
        self._deadline.check()
        for number, (matrix, scale) in enumerate(zip(matrices[:n_starts], scales, strict=True)):
            K = matrix * (scale * slope)
            K += constant
            values[number] = self._log_likelihood(K, noises[number])
        return thetas, values

    def _variance_to_keep(self, sources: Mapping[int, int], *, is_factor: bool) -> float | None:
        """Return the mean variance that a new leaf should have; None for a new term of a sum.

        It is that of the leaf in whose place it comes, and one for a new factor.
        """
        removed = self._leaf_values.keys() - set(sources.values())
        if len(removed) == 1:
            return float(self._leaf_values[removed.pop()][self._likelihood.diagonal].mean())
        return 1.0 if is_factor else None

    def _starts_of(
        self, leaf: Leaf, others: FloatArray
    ) -> tuple[FloatArray, list[FloatArray], list[float]]:
        """Return starting points (n_starts, n_params) of a leaf, its values and mean variances.

        Periods are those that the covariance of the other leaves does not explain. The last point
        is nearly constant: as a factor it changes little.
        """
        has_period = leaf.has_many_modes
        key = leaf, others.tobytes() if has_period else b""
        if key not in self._starts:
            scales = self._scales_beside(others) if has_period else self._scales
            n_starts = _STARTS_PER_PARAMETER * len(leaf.parameters)
            n_starts = _N_PERIODIC_STARTS if has_period else n_starts
            rng = random_stream(self._seed, leaf, "new leaf")
            drawn = draw_starts(self._posterior(leaf), scales, n_starts, rng=rng)[:, :-1]
            if has_period:
                _place_at_peaks(drawn, leaf, self._data.parameters(leaf), scales)
            extent = self._scales.spacing_and_extent(leaf.view)[1]
            flat = {
                Role.LENGTHSCALE: _FLAT_EXTENTS * extent,
                Role.CYCLE_LENGTHSCALE: _FLAT_IN_CYCLE,
            }
            if leaf.kernel.is_linear or leaf.kernel.is_categorical:
                flat = {Role.VARIANCE: _FLAT_LINE}
                drawn[-1] = 0.0
            for entry, parameter in enumerate(leaf.parameters):
                if parameter.role in flat:
                    drawn[-1, entry] = np.log(flat[parameter.role])
            matrices = [self._values(leaf, one) for one in np.exp(drawn)]
            variances = [float(matrix[self._likelihood.diagonal].mean()) for matrix in matrices]
            self._starts[key] = drawn, matrices, variances
        return self._starts[key]

    def _fold(
        self,
        neighbour: Expression,
        theta: FloatArray,
        sources: Mapping[int, int],
        given: Mapping[int, float | FloatArray],
    ) -> FloatArray:
        """Compute the values of a neighbour; some leaves have given values, by first entry."""

        def leaf(_: Leaf, entries: FloatArray) -> FloatArray:
            start = int(entries[0])
            if start in given:
                return np.full(self._data.pairs(View(0)).shape, given[start])
            return self._leaf_values[sources[start]]

        def join(node: Operation, entries: FloatArray, values: list[FloatArray]) -> FloatArray:
            pairs = None if node.view is None else self._data.pairs(node.view)
            return node.operator.value(Operands(values, np.exp(theta[entries.astype(int)]), pairs))

        return fold(neighbour, np.arange(len(theta) - 1.0), leaf, join)

    @cached_property
    def _leaf_values(self) -> dict[int, FloatArray]:
        """The values of each leaf of the fitted kernel, by its first entry of theta."""
        return {
            entries.start: self._values(node, np.exp(self._fit.theta[entries]))
            for node, entries in self._slots
            if isinstance(node, Leaf)
        }

    def _values(self, leaf: Leaf, params: FloatArray) -> FloatArray:
        return Covariance(leaf, self._data.pairs).forward(params)

    @cached_property
    def _scales(self) -> DataScales:
        """The scales of what the kernel leaves unexplained."""
        K = self._likelihood.matrix(np.append(self._fit.theta[:-1], -np.inf))
        K[self._likelihood.diagonal] -= self._likelihood.diagonal_noise(0.0)  # what is known
        return self._scales_beside(K)

    def _scales_beside(self, K: FloatArray) -> DataScales:
        """Compute the scales of what a packed covariance without noise leaves unexplained."""
        noise, data = np.exp(self._fit.theta[-1]), self._likelihood.data
        return DataScales(data, unpack(K, len(data.y)) + np.diag(data.noise.variance(noise)), noise)

    def _log_likelihood(self, K: FloatArray, noise: float) -> float:
        """Compute the log likelihood in nats of a covariance, to which noise is added in place."""
        K[self._likelihood.diagonal] += self._likelihood.diagonal_noise(noise)
        try:
            return self._likelihood.value_of(K, np.log(noise))
        except LinAlgError:
            return -np.inf

    def _refined(self, one: ScreenedKernel, n_steps: int) -> ScreenedKernel:
        posterior = one.posterior
        end = maximise(
            posterior,
            one.theta,
            max_iterations=n_steps,
            tolerance=_TOLERANCE,
            curvature=one.curvature,
        )
        value = end.log_posterior - float(posterior.prior.log_density(end.theta))
        return ScreenedKernel(posterior, end.theta, value, end.curvature)

    def _gain(self, one: ScreenedKernel, before: ScreenedKernel) -> float:
        """Estimate the gain of log evidence, in nats, on the rows of the score."""
        scale = self._n_samples / self._data.noise.total_weight
        n_more = len(one.theta) - len(before.theta)
        gain = scale * (one.log_likelihood - before.log_likelihood)
        gain += float(
            one.posterior.prior.log_density(one.theta)
            - before.posterior.prior.log_density(before.theta)
        )
        of_volume = -_COST_OF_PARAMETER * n_more
        if one.curvature is not None and before.curvature is not None:
            with suppress(NotAMaximumError, ValueError):
                volume_before = laplace_log_evidence(0.0, before.curvature)
                of_volume = laplace_log_evidence(0.0, one.curvature) - volume_before
        return gain + of_volume - 0.5 * n_more * np.log(scale)

    def _posterior(self, expression: Expression) -> LogPosterior:
        likelihood = ExactLikelihood(expression, self._data)
        return LogPosterior(likelihood, priors=self._priors, deadline=self._deadline)


def _place_at_peaks(
    starts: FloatArray, leaf: Leaf, parameters: Sequence[KernelParameter], scales: DataScales
) -> None:
    """Move the first starting points of a periodic leaf to the peaks of the periodogram."""
    roles = [parameter.role for parameter in parameters]
    if Role.PERIOD not in roles:
        return
    within = parameters[roles.index(Role.PERIOD)].start
    points = list(product(_SHAPES_OF_CYCLE, scales.periods(leaf.view, within)))
    low, high = np.log([scales.mean_square, scales.largest_mean_square])
    for start, ((lengthscale, share), period) in zip(starts, points, strict=False):
        known: dict[Role | None, float] = {
            Role.PERIOD: np.log(period),
            Role.CYCLE_LENGTHSCALE: np.log(lengthscale),
            Role.VARIANCE: low + share * (high - low),
        }
        for entry, role in enumerate(roles):
            start[entry] = known.get(role, start[entry])


def _ratio_or_one(wanted: float, present: float) -> float:
    """Divide two variances; return one if one of them is not positive."""
    if not (wanted > 0 and present > 0 and np.isfinite(wanted / present)):
        return 1.0
    return float(wanted / present)


def _is_multilinear(expression: Expression) -> bool:
    """Return whether the values are linear in those of each leaf."""
    trees = (tree for tree in expression.subtrees() if isinstance(tree, Operation))
    return all(tree.operator in (ADD, MULTIPLY) or tree.operator.shares for tree in trees)


def _has_scale(node: Expression) -> IntArray:
    """Return for each parameter of a node whether it scales with the variance."""
    return np.array([int(one.unit == Unit.SQUARED_TARGET) for one in node.parameters], dtype=int)


def _leaves_of_scale(expression: Expression) -> set[int]:
    """Return the numbers of leaves, one of each product, whose variances scale the whole."""
    numbers = {slot.entries.start: number for number, slot in enumerate(slots_of(expression))}

    def join(node: Operation, _: FloatArray, below: list[set[int]]) -> set[int]:
        return below[0] if node.operator == MULTIPLY else set().union(*below)

    numbers_of_params = np.arange(float(n_kernel_params(expression)))
    return fold(expression, numbers_of_params, lambda _, own: {numbers[int(own[0])]}, join)


def _factors_with(expression: Expression, entry: int) -> set[int]:
    """Return the numbers of the nodes that the leaf with an entry of theta multiplies."""
    numbers = {slot.entries.start: number for number, slot in enumerate(slots_of(expression))}
    own, found = numbers[entry], set[int]()

    def join(node: Operation, _: FloatArray, below: list[set[int]]) -> set[int]:
        if node.operator == MULTIPLY:
            others = [one for one in below if own not in one]
            found.update(*(others if len(others) < len(below) else []))
        return set().union(*below)

    first = np.arange(float(n_kernel_params(expression)))
    fold(expression, first, lambda _, one: {numbers[int(one[0])]}, join)
    return found
