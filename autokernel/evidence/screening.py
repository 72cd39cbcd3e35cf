"""Estimates of the scores of kernels that are one operation away from a fitted kernel.

All parameters of the fitted kernel are kept. A new leaf gets some starting points, at which only
the value of the likelihood is computed, on some of the rows. The covariance of the changed kernel
is linear in the values of the new leaf, ``K = G + M * B`` entry by entry, so that a starting point
costs little more than one Cholesky factor. The best estimates are refined by a few steps of the
maximiser.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

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
    fold,
    n_kernel_params,
    slots_of,
)
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.inference.covariance import Covariance
from autokernel.kernels import (
    ADD,
    MULTIPLY,
    NOISE_VARIANCE,
    LogGammaPrior,
    Operands,
    Priors,
    Role,
    Unit,
)
from autokernel.typing import FloatArray, IntArray

MAX_ROWS = 150  # on which neighbours are screened
_N_STARTS = 14  # of a new leaf
_FLAT_EXTENTS, _FLAT_IN_CYCLE = 3.0, 3.0  # lengthscales with which a leaf hardly varies
_FLAT_LINE = 0.3  # variance of the slope of a line that hardly varies, whose offset is one
_FEW_STEPS, _MORE_STEPS = 6, 12  # of the maximiser; the latter unless the former ended far below
_FAR_BELOW = 8.0  # nats below the fitted kernel
_MAX_POOR, _POOR = 12, 4.0  # number in a row, and nats below the fit, that end refinement
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

    expression: Expression
    theta: FloatArray  # (n_params,)
    log_likelihood: float  # nats
    curvature: FloatArray | None = None  # estimate of the Hessian of the negative log posterior


class Screening:
    """Estimates for the neighbours of one fitted kernel.

    Parameters
    ----------
    fit : Evaluation
        The fitted kernel.
    data : TrainingData
        The rows on which its neighbours are screened.
    n_samples : int
        Number of rows of the score.
    priors : mapping
        Priors, as :func:`check_priors` returns them.
    seed : int
        Seed of the starting points.
    deadline : Deadline
        Moment after which an ``OutOfTimeError`` is raised.

    Attributes
    ----------
    parent : Expression
        The fitted kernel, in leaves that are objects of no other expression. Neighbours that a
        grammar makes of it keep these objects, by which their parameters are known.
    """

    def __init__(
        self,
        fit: Evaluation,
        data: TrainingData,
        *,
        n_samples: int,
        priors: Priors,
        seed: int,
        deadline: Deadline = NEVER,
    ) -> None:
        self._fit, self._data, self._priors, self._seed = fit, data, priors, seed
        self._n_samples, self._deadline = n_samples, deadline
        self._slots = slots_of(fit.expression)
        self._likelihood = ExactLikelihood(fit.expression, data)
        self._starts: dict[Leaf, tuple[FloatArray, list[FloatArray]]] = {}
        self.parent = fit.expression
        for place, tree in enumerate(fit.expression.subtrees()):
            if isinstance(tree, Leaf):
                self.parent = self.parent.replace(place, Leaf(tree.kernel, tree.column))

    def estimates(
        self, changes: Iterable[Expression], structure_prior: StructurePrior
    ) -> list[Estimate]:
        """Estimate the scores of the arranged results of changes of ``parent``, best first.

        Where several changes lead to one kernel, the best one counts. Kernels that cannot be
        computed are left out.
        """
        fit = self._fit
        value = self._likelihood.value(fit.theta)
        before = ScreenedKernel(fit.expression, fit.theta, value, fit.hessian)
        if len(self._data.y) < self._n_samples:  # the others adapt to these rows too
            before = self._refined(self._refined(before, _FEW_STEPS), _MORE_STEPS)
        own_prior = structure_prior(fit.expression)
        known: set[tuple[str, tuple[tuple[int, int], ...]]] = set()
        found: dict[str, tuple[float, ScreenedKernel]] = {}
        for neighbour in changes:
            text, origin = neighbour.canonical, tuple(self._shared_nodes(neighbour))
            if text == fit.expression.canonical or (text, origin) in known:
                continue
            known.add((text, origin))
            with suppress(EvaluationError), kernel_errors():
                one = self.screened(neighbour)
                gain = self._gain(one, before) + structure_prior(neighbour) - own_prior
                if text not in found or gain > found[text][0]:
                    found[text] = gain, one
        estimates, n_poor = [], 0
        for _, (gain, one) in sorted(found.items(), key=lambda item: (-item[1][0], item[0])):
            if np.isfinite(gain) and n_poor < _MAX_POOR:
                log_prior = structure_prior(one.expression) - own_prior
                with suppress(EvaluationError), kernel_errors():
                    one = self._refined(one, _FEW_STEPS)
                    if (gain := self._gain(one, before) + log_prior) > -_FAR_BELOW:
                        one = self._refined(one, _MORE_STEPS)
                        gain = self._gain(one, before) + log_prior
                n_poor = 0 if gain > -_POOR else n_poor + 1
            start = WarmStart(range(len(one.expression.nodes)), one.theta, one.curvature)
            estimates.append(Estimate(one.expression, fit.score + gain, start))
        return sorted(estimates, key=lambda one: (-one.score, one.expression.canonical))

    def screened(self, neighbour: Expression) -> ScreenedKernel:
        """Find the best starting point of an arranged neighbour by values only."""
        slots = slots_of(neighbour)
        theta = np.full(slots[-1].entries.stop + 1, np.nan)
        theta[-1] = self._fit.theta[-1]
        sources: dict[int, int] = {}  # first entry of a shared node: that in the fitted kernel
        for ours, theirs in self._shared_nodes(neighbour):
            mine, its = slots[ours].entries, self._slots[theirs].entries
            theta[mine] = self._fit.theta[its]
            sources[mine.start] = its.start
        new = [slot for slot in slots if slot.entries.start not in sources]
        if not new:
            thetas, values = self._without_leaf(neighbour, theta, sources)
        elif len(new) == 1 and isinstance(new[0].node, Leaf) and _is_multilinear(neighbour):
            thetas, values = self._with_leaf(neighbour, theta, sources, new[0])
        elif len(new) > 1 and all(isinstance(slot.node, Leaf) for slot in new):
            raise EvaluationError("several leaves are new, and only a fit can judge them")
        else:
            posterior = self._posterior(neighbour)
            rng = random_stream(self._seed, neighbour, "new nodes")
            drawn = draw_starts(posterior, self._scales, _N_STARTS, rng=rng)
            thetas = np.where(np.isnan(theta), drawn, theta)
            values = np.array([posterior.likelihood.value(one) for one in thetas])
        heights = values + self._prior_of(neighbour).log_density(thetas)
        best = int(np.argmax(np.where(np.isnan(heights), -np.inf, heights)))
        return ScreenedKernel(neighbour, thetas[best], float(values[best]))

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
        variance = self._likelihood.matrix(self._fit.theta)[diagonal].mean() - noise
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
        """Compute the log likelihood at the starting points of one new leaf."""
        leaf, entries = new
        assert isinstance(leaf, Leaf)
        starts, matrices = self._starts_of(leaf)
        constant = self._fold(neighbour, theta, sources, {entries.start: 0.0})
        slope = self._fold(neighbour, theta, sources, {entries.start: 1.0}) - constant
        variance = self._variance_to_keep(neighbour, entries.start, sources)
        thetas, values = np.tile(theta, (len(starts), 1)), np.empty(len(starts))
        for number, (start, matrix) in enumerate(zip(starts, matrices, strict=True)):
            self._deadline.check()
            scale = 1.0
            if variance is not None and _has_scale(leaf).any():
                scale = _ratio_or_one(variance, matrix[self._likelihood.diagonal].mean())
            elif number % 2:
                thetas[number, -1] += np.log(NOISE_LEFT)
            thetas[number, entries] = start + np.log(scale) * _has_scale(leaf)
            K = matrix * (scale * slope)
            K += constant
            values[number] = self._log_likelihood(K, np.exp(thetas[number, -1]))
        return thetas, values

    def _variance_to_keep(
        self, neighbour: Expression, entry: int, sources: Mapping[int, int]
    ) -> float | None:
        """Return the mean variance that a new leaf should have; None for a new term of a sum.

        It is that of the leaf in whose place it comes, and one for a new factor.
        """
        removed = self._leaf_values.keys() - set(sources.values())
        if len(removed) == 1:
            return float(self._leaf_values[removed.pop()][self._likelihood.diagonal].mean())
        return 1.0 if _is_factor(neighbour, entry) else None

    def _starts_of(self, leaf: Leaf) -> tuple[FloatArray, list[FloatArray]]:
        """Return starting points (n_starts, n_params) of a leaf, and its values there.

        The last one is nearly constant: as a factor it changes little.
        """
        if leaf not in self._starts:
            rng = random_stream(self._seed, leaf, "new leaf")
            drawn = draw_starts(self._posterior(leaf), self._scales, _N_STARTS, rng=rng)[:, :-1]
            extent = self._scales.spacing_and_extent(leaf.column)[1]
            flat = {
                Role.LENGTHSCALE: _FLAT_EXTENTS * extent,
                Role.CYCLE_LENGTHSCALE: _FLAT_IN_CYCLE,
            }
            if leaf.kernel.is_linear:
                flat = {Role.VARIANCE: _FLAT_LINE}
                drawn[-1] = 0.0
            for entry, parameter in enumerate(leaf.parameters):
                if parameter.role in flat:
                    drawn[-1, entry] = np.log(flat[parameter.role])
            self._starts[leaf] = drawn, [self._values(leaf, one) for one in np.exp(drawn)]
        return self._starts[leaf]

    def _fold(
        self,
        neighbour: Expression,
        theta: FloatArray,
        sources: Mapping[int, int],
        given: Mapping[int, float],
    ) -> FloatArray:
        """Compute the values of a neighbour; a new leaf has a given value, by its first entry."""

        def leaf(_: Leaf, entries: FloatArray) -> FloatArray:
            start = int(entries[0])
            if start in given:
                return np.full(self._data.pairs(0).shape, given[start])
            return self._leaf_values[sources[start]]

        def join(node: Operation, entries: FloatArray, values: list[FloatArray]) -> FloatArray:
            pairs = None if node.column is None else self._data.pairs(node.column)
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
        theta = self._fit.theta
        try:
            cholesky = self._likelihood.factorise(self._likelihood.matrix(theta))
        except LinAlgError:
            return DataScales(self._data)
        unexplained = np.exp(theta[-1]) * cholesky.solve(self._data.y)
        return DataScales(TrainingData(self._data.X, unexplained))

    def _log_likelihood(self, K: FloatArray, noise: float) -> float:
        """Compute the log likelihood in nats of a covariance, to which noise is added in place."""
        K[self._likelihood.diagonal] += noise
        try:
            return self._likelihood.value_of(K)
        except LinAlgError:
            return -np.inf

    def _refined(self, one: ScreenedKernel, n_steps: int) -> ScreenedKernel:
        """Take some steps of the maximiser."""
        posterior = self._posterior(one.expression)
        curvature = one.curvature if one.expression is not self._fit.expression else None
        if curvature is None:
            curvature = self._known_curvature(one.expression, posterior.step_scales(one.theta))
        end = maximise(
            posterior,
            one.theta,
            max_iterations=n_steps,
            tolerance=_TOLERANCE,
            curvature=curvature,
        )
        value = end.log_posterior - float(posterior.prior.log_density(end.theta))
        return ScreenedKernel(one.expression, end.theta, value, end.curvature)

    def _known_curvature(self, expression: Expression, scales: FloatArray) -> FloatArray | None:
        """Take the Hessian of the shared parameters from the fitted kernel."""
        shared = self._shared_nodes(expression)
        entries = [np.r_[self._slots[theirs].entries] for _, theirs in shared]
        taken = np.concatenate([*entries, [len(self._fit.theta) - 1]]).astype(int)
        share_of_rows = len(self._data.y) / self._n_samples
        hessian = share_of_rows * self._fit.hessian[np.ix_(taken, taken)]
        known = WarmStart([ours for ours, _ in shared], self._fit.theta[taken], hessian)
        return curvature_from(expression, [known], scales)

    def _gain(self, one: ScreenedKernel, before: ScreenedKernel) -> float:
        """Estimate the gain of log evidence, in nats, on the rows of the score."""
        scale = self._n_samples / len(self._data.y)
        n_more = len(one.theta) - len(before.theta)
        gain = scale * (one.log_likelihood - before.log_likelihood)
        gain += float(
            self._prior_of(one.expression).log_density(one.theta)
            - self._prior_of(before.expression).log_density(before.theta)
        )
        of_volume = -_COST_OF_PARAMETER * n_more
        if one.curvature is not None and before.curvature is not None:
            with suppress(NotAMaximumError, ValueError):
                volume_before = laplace_log_evidence(0.0, before.curvature)
                of_volume = laplace_log_evidence(0.0, one.curvature) - volume_before
        return gain + of_volume - 0.5 * n_more * np.log(scale)

    def _prior_of(self, expression: Expression) -> LogGammaPrior:
        own = [parameter for node in expression.nodes for parameter in node.parameters]
        return LogGammaPrior.of((*own, NOISE_VARIANCE), priors=self._priors)

    def _posterior(self, expression: Expression) -> LogPosterior:
        likelihood = ExactLikelihood(expression, self._data)
        return LogPosterior(likelihood, priors=self._priors, deadline=self._deadline)


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


def _is_factor(expression: Expression, entry: int) -> bool:
    """Return whether the leaf with an entry of theta is a factor of a product."""
    is_factor = False

    def join(node: Operation, _: FloatArray, below: list[bool]) -> bool:
        nonlocal is_factor
        is_factor |= any(below) and node.operator == MULTIPLY
        return False

    numbers = np.arange(float(n_kernel_params(expression)))
    fold(expression, numbers, lambda _, own: own[0] == entry, join)
    return is_factor
