"""Bayesian optimisation for model search: Hellinger distances and an active set of candidates."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaincinv

from autokernel.deadline import NEVER, Deadline
from autokernel.evidence.importance import sobol_points
from autokernel.exceptions import CustomPartError, warn_of_part
from autokernel.expression import Expression, arranged
from autokernel.inference import TrainingData, paired_covariance
from autokernel.kernels import Priors
from autokernel.search.acquisition import Acquisition, Belief
from autokernel.search.history import History, Phase
from autokernel.search.methods.bayesian import BayesianStrategy, parents_of
from autokernel.search.strategy import AT_LEAST_ONE, Task
from autokernel.search.surrogate import LOG_BOUNDS, KernelKernel
from autokernel.typing import FloatArray, IntArray

N_INPUTS = 20  # inputs of the comparison, BOMS section 4.4
N_SOBOL_DIMENSIONS = 256  # further parameters reuse the first dimensions
MIN_DRAW = 1e-50  # of a parameter; the largest is 1 / this: products of a few draws stay finite
DISTANCE_OF_TARGETS = 0.1  # between kernels that differ only in the scale of the target
PAIRS_PER_CALL = 8  # whose matrices are factorised together; the CPU cache nearly holds them
N_SAMPLES = 100  # of the hyperparameters
MAX_COVARIANCE_BYTES = 2**27  # of cached covariances: some 800 expressions
MAX_CACHED_EXPRESSIONS = 2048  # in the distance table: at most 32 MB

NOISE_VARIANCE = 1e-2
"""Variance that is added to the diagonal of every covariance, for a target of variance one.

Most eigenvalues of a smooth kernel are of rounding size. With only the jitter of a factorisation,
almost all distances would be one. This is the prior mean of the noise variance in SOT: differences
too small to show in data do not count.
"""

JITTER = 1e-9
"""Fraction of the mean diagonal that is added, too: large covariances need it to be factorised."""


@dataclass(kw_only=True, eq=False, repr=False)  # for its __init__; the rest is of BaseEstimator
class BOMS(BayesianStrategy):
    """Bayesian optimisation with distances between the priors over functions.

    Parameters
    ----------
    acquisition : {"ei", "ucb", "thompson"} or Acquisition, default="ei"
        What to maximise, as for :class:`SOT`.
    n_walks : int, default=15
        Number of random walks that each batch of proposals adds to the candidates.
    n_neighbours : int, default=50
        Largest number of neighbours of the best kernel that each batch adds.
    n_candidates : int, default=600
        Largest number of candidates.
    initial_design : {"default", "paper"}, default="default"
        Initial design, as for :class:`SOT`.

    Notes
    -----
    Malkomes, Schaff and Garnett (2016), *Bayesian optimization for automated model selection*. The
    number of neighbours and the first candidates are as in SOT, appendix D; the first candidates
    include a walk of five steps from each base kernel. The squared Hellinger distance of two
    Gaussians on 20 of the inputs is averaged over 100 draws from the priors of the hyperparameters.
    If there are too many candidates, the oldest are dropped instead of those with the lowest
    expected improvement, so that the candidates depend only on the history.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **BayesianStrategy._parameter_constraints,
        "n_walks": AT_LEAST_ONE,
        "n_neighbours": AT_LEAST_ONE,
        "n_candidates": AT_LEAST_ONE,
    }

    acquisition: str | Acquisition = "ei"
    n_walks: int = 15
    n_neighbours: int = 50
    n_candidates: int = 600
    initial_design: str = "default"

    def _kernel_kernel(self, task: Task) -> "HellingerKernel":
        data, priors, deadline = task.evaluator.data, task.evaluator.priors, task.deadline
        make = partial(HellingerKernel, data, priors, deadline=deadline)
        return task.cached(HellingerKernel, make)

    def _highest(
        self, belief: Belief, known: Sequence[Expression], task: Task, history: History
    ) -> Expression | None:
        values, texts = self._values(belief), {expression.canonical for expression in known}
        unknown = [e for e in self._candidates(task, history) if e.canonical not in texts]
        return unknown[int(np.argmax(values(unknown)))] if unknown else None

    def _candidates(self, task: Task, history: History) -> list[Expression]:
        """Collect the candidates that this and earlier batches add, the latest first."""
        starts = {trial.start for trial in history if trial.phase == Phase.SEARCH}
        found: dict[str, Expression] = {}
        for n_searched in sorted({0, *starts, history.n_searched}, reverse=True):
            before = history.before(n_searched)
            texts = "\n".join(evaluation.expression.canonical for evaluation in before.evaluations)
            best, is_first = parents_of(task, before)[0], not n_searched
            seed = zlib.crc32(texts.encode())
            key = BOMS, best, seed, is_first, self.n_walks, self.n_neighbours
            add = partial(self._added, task, best, seed=seed, is_first=is_first)
            for expression in task.cached(key, add):
                found.setdefault(expression.canonical, expression)
            if len(found) >= self.n_candidates:
                break
        return list(found.values())[: self.n_candidates]

    def _added(
        self, task: Task, best: Expression, *, seed: int, is_first: bool
    ) -> list[Expression]:
        """Draw the candidates that a batch adds, given the best kernel before it."""
        rng = np.random.default_rng(seed)
        neighbours = task.grammar.neighbours(best)
        chosen = rng.permutation(len(neighbours))[: self.n_neighbours]
        added = [neighbours[number] for number in chosen]
        added += task.grammar.random_walks(self.n_walks, rng)
        if is_first:
            added += [task.grammar.random_walk(base, 5, rng) for base in task.grammar.bases]
        return added


class HellingerKernel(KernelKernel):
    """The kernel ``exp(-d / (2 l^2))``, d the expected squared Hellinger distance (BOMS eq. 8).

    The parameter is the log of the squared lengthscale.

    The distances are BOMS eqs. 6 and 7 with zero means, for the latent function plus noise of
    variance 0.01 at the inputs, or a random 20 of more. The expectation is taken over a hundred
    Sobol points that all expressions share: parameter i of an expression, with sums and products in
    canonical order, is the quantile of its prior at dimension i of the points. For one sample, the
    distance is half the squared L2 distance between the square roots of two densities; so the mean
    over shared samples is a squared Hilbert distance as well. Hence it is symmetric, it is zero
    between equal expressions, and the kernel is positive semi-definite. Different scales of the
    target add :data:`DISTANCE_OF_TARGETS`.

    A distance takes O(n_samples n_inputs^3). Distances and covariances are cached in at most some
    170 MB; those that are dropped are computed again when needed. After the deadline, calls that
    have distances to compute raise an ``OutOfTimeError``. An instance must not be shared between
    threads.
    """

    bounds = (LOG_BOUNDS,)

    def __init__(self, data: TrainingData, priors: Priors, *, deadline: Deadline = NEVER) -> None:
        rng = np.random.default_rng(0)  # of the choice of inputs, and that scrambles Sobol points
        n = len(data.y)
        self._data = data if n <= N_INPUTS else data.take(rng.choice(n, N_INPUTS, replace=False))
        self._columns, self._rows = np.triu_indices(len(self._data.y))
        self._priors, self._points = priors, sobol_points(N_SAMPLES, N_SOBOL_DIMENSIONS, rng)
        self._max_kept = MAX_COVARIANCE_BYTES // (8 * len(self._rows) * N_SAMPLES)
        self._covariances_of = lru_cache(self._max_kept)(self._prior_covariances)
        self._draws_of = cache(self._draws)
        self._deadline = deadline
        self._known: dict[str, int] = {}  # indices by canonical texts
        self._trees: list[Expression] = []  # arranged
        self._table = np.empty((0, 0))  # distances between indices, NaN where unknown

    def distances(self, items: Sequence[Expression], others: Sequence[Expression]) -> FloatArray:
        """Compute distances (1, n, m) between 0 and 1, or little more on different targets."""
        rows, columns = np.split(self._indices([*items, *others]), [len(items)])
        i, j = np.nonzero(np.isnan(self._table[np.ix_(rows, columns)]))
        low, high = np.minimum(rows[i], columns[j]), np.maximum(rows[i], columns[j])
        block = high // (self._max_kept // 2)  # whose covariances fit into the cache
        pairs = np.unique(np.stack([block, low, high], axis=1), axis=0)[:, 1:]
        targets = np.array([tree.target for tree in self._trees])
        for start in range(0, len(pairs), PAIRS_PER_CALL):
            self._deadline.check()
            some = pairs[start : start + PAIRS_PER_CALL]
            low, high = some.T
            found = self._compute(some) + DISTANCE_OF_TARGETS * (targets[low] != targets[high])
            self._table[low, high] = self._table[high, low] = found
        return self._table[np.ix_(rows, columns)][None]

    def weights(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = 0.5 * np.exp(-params)
        return values, -values[:, None]

    def _indices(self, expressions: Sequence[Expression]) -> IntArray:
        """Return indices in the table; new ones are added, and it begins again if it is full."""
        if len(self._known.keys() | {e.canonical for e in expressions}) > MAX_CACHED_EXPRESSIONS:
            self._known, self._trees, self._table = {}, [], np.empty((0, 0))
        new = {e.canonical: arranged(e) for e in expressions if e.canonical not in self._known}
        if new:
            self._known |= {text: len(self._trees) + number for number, text in enumerate(new)}
            self._trees += new.values()
            self._table = np.pad(self._table, (0, len(new)), constant_values=np.nan)
            np.fill_diagonal(self._table, 0.0)
        return np.array([self._known[e.canonical] for e in expressions], dtype=np.intp)

    def _compute(self, pairs: IntArray) -> FloatArray:
        """Compute the distances (n_pairs,) of pairs (n_pairs, 2) of indices."""
        of = [[self._covariances_of(self._trees[index]) for index in pair] for pair in pairs]
        means = np.stack([half + other for (half, _), (other, _) in of], axis=1)
        log_affinity = 0.25 * np.stack([log_det + other for (_, log_det), (_, other) in of])
        packed = means.reshape(len(means), -1)
        with np.errstate(invalid="ignore", divide="ignore"):
            log_affinity -= 0.5 * log_determinants(packed).reshape(log_affinity.shape)
        # Rounding may give a distance just below zero.
        distances = np.maximum(-np.expm1(log_affinity).mean(axis=1), 0.0)
        # A kernel whose covariances cannot be computed is far from all others.
        return np.where(np.isfinite(distances), distances, 1.0)

    def _prior_covariances(self, expression: Expression) -> tuple[FloatArray, FloatArray]:
        """Compute ``K / 2`` at all draws, packed by columns, and the log determinants of K."""
        with np.errstate(all="ignore"):
            try:
                K = self._covariances(expression)
            except CustomPartError as error:
                warn_of_part(error)
                K = np.full((len(self._rows), N_SAMPLES), np.nan)
            diagonal = self._rows == self._columns
            K[diagonal] += NOISE_VARIANCE + JITTER * K[diagonal].mean(axis=0)
            return 0.5 * K, log_determinants(K)

    def _covariances(self, expression: Expression) -> FloatArray:
        """Compute covariances (n_entries, n_samples), in one sweep if every node broadcasts."""
        broadcasts = all(tree.declared.broadcasts for tree in expression.subtrees())
        broadcasts &= not np.isnan(self._data.X[:, sorted(expression.columns)]).any()
        of_x, of_z = self._rows, self._columns
        if broadcasts:
            of_x, of_z = of_x[:, None], of_z[:, None]
        covariance = paired_covariance(expression, self._data.inputs, self._data.inputs, of_x, of_z)
        own = (one for node in expression.nodes for one in self._data.parameters(node))
        priors = enumerate(one.prior_in(self._priors) for one in own)
        params = np.array([self._draws_of(*prior, i % N_SOBOL_DIMENSIONS) for i, prior in priors])
        if broadcasts:
            return covariance.forward(params[:, None])
        return np.stack([covariance.forward(sample).copy() for sample in params.T], axis=1)

    def _draws(self, shape: float, rate: float, dimension: int) -> FloatArray:
        """Draw a parameter (n_samples,) by inverse transform sampling."""
        draws = gammaincinv(shape, self._points[:, dimension]) / rate
        return np.clip(draws, MIN_DRAW, 1 / MIN_DRAW)


def log_determinants(packed: FloatArray) -> FloatArray:
    """Compute log determinants (n_matrices,) of packed matrices (n_entries, n_matrices).

    The matrices are overwritten. The Cholesky factorisation proceeds by columns for all matrices at
    once; with 20 rows it takes three fifths of the time of numpy's, which treats the matrices one
    by one.
    """
    n = int(np.sqrt(2 * len(packed)))  # number of rows: there are n (n + 1) / 2 entries
    L = np.empty((n, n, packed.shape[1]))  # transposed: the first index is the column
    pivots = np.empty((n, packed.shape[1]))
    for j, column in enumerate(np.split(packed, np.cumsum(np.arange(n, 1, -1)))):
        column -= np.einsum("kib,kb->ib", L[:j, j:], L[:j, j])
        pivots[j] = column[0]
        np.multiply(column, 1.0 / np.sqrt(column[0]), out=L[j, j:])
    return np.log(pivots).sum(axis=0)
