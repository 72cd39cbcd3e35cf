"""The posterior over kernels, and mixtures of a few draws that stand for it.

Each kernel of the search has a posterior probability and draws from the posterior of its
parameters. An :class:`Averaging` weighs the kernels, and chooses draws of each by its weight.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Evaluation, Evaluator
from autokernel.evidence.importance import pareto_smoothed
from autokernel.exceptions import EvaluationError, OutOfTimeError
from autokernel.expression import Expression
from autokernel.typing import FloatArray, IntArray

_SCORE_WINDOW = 5.0  # nats below the best score beyond which a kernel is left out
_MAX_KERNELS = 12
_MIN_PROBABILITY = 1e-3
_N_DRAWS = 200  # for each kernel
_N_MORE_DRAWS = 800  # at most, for a kernel whose weights are not reliable
_MIN_PROBABILITY_FOR_MORE = 0.05
_MAX_RELIABLE_PARETO_K = 0.7  # Vehtari et al. 2024, JMLR 25
_N_KEPT_DRAWS = 100  # of each kernel
_MAX_EXCHANGES = 20  # sweeps over the chosen draws
_MAX_EM_STEPS = 1000
_EM_TOLERANCE = 1e-7  # nats per row that a step gains at the end
_LOG_DENSITY_OF_FAILURE = -1e6  # of each row under a kernel without any density


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: draws is an array
class KernelPosterior:
    """A kernel with its posterior probability, and draws from the posterior of its parameters."""

    evaluation: Evaluation
    probability: float  # given the kernels that the search has evaluated
    log_score: float  # nats, the score after the correction by importance sampling
    draws: FloatArray  # (n_draws, n_params), equally probable
    pareto_k: float = np.nan  # above 0.7 the correction is not reliable


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: theta is an array
class MixtureComponent:
    """A kernel with parameters, and its weight in a mixture."""

    expression: Expression
    theta: FloatArray  # (n_params,)
    weight: float


def posterior_over_kernels(
    evaluator: Evaluator, best_first: Iterable[Evaluation], *, deadline: Deadline = NEVER
) -> list[KernelPosterior]:
    """Compute the posterior over the kernels that a search has evaluated, the most probable first.

    The evaluations ``best_first`` have finite scores. Kernels that are not reached before the
    deadline are left out, except for the first one, which then is taken at its best parameters.
    Probabilities sum to one.
    """
    best, *others = best_first
    near = [other for other in others if other.score > best.score - _SCORE_WINDOW]
    candidates = [best, *near[: _MAX_KERNELS - 1]]
    drawn: list[_Drawn] = []
    with suppress(OutOfTimeError):
        for evaluation in candidates:
            drawn.append(_draw(evaluator, evaluation, _N_DRAWS, deadline=deadline))
        for number, probability in enumerate(_probabilities(drawn)):
            _, _, pareto_k = drawn[number]
            if pareto_k > _MAX_RELIABLE_PARETO_K and probability > _MIN_PROBABILITY_FOR_MORE:
                again = candidates[number]
                drawn[number] = _draw(evaluator, again, _N_MORE_DRAWS, deadline=deadline)
    drawn = drawn or [_at_mode(best)]
    probabilities = _probabilities(drawn)
    kept = [n for n, p in enumerate(probabilities) if p > _MIN_PROBABILITY or n == 0]
    total = sum(probabilities[n] for n in kept)
    kernels = [KernelPosterior(candidates[n], probabilities[n] / total, *drawn[n]) for n in kept]
    return sorted(kernels, key=lambda one: -one.probability)


_Drawn = tuple[float, FloatArray, float]  # log_score, draws and pareto_k of a kernel


def _draw(evaluator: Evaluator, one: Evaluation, n_draws: int, *, deadline: Deadline) -> _Drawn:
    try:
        sample = evaluator.sample(one, max_draws=n_draws, deadline=deadline)
    except EvaluationError:  # a rough fit, a saddle, or a kernel that fails elsewhere
        return _at_mode(one)
    log_score = one.score
    if evaluator.score_is_laplace and len(one.theta) > 1:  # that of noise alone is exact
        log_score += sample.log_evidence - one.log_evidence
    draws = sample.theta[systematic(sample.weights, _N_KEPT_DRAWS)]
    return log_score, draws, sample.pareto_k


def _at_mode(one: Evaluation) -> _Drawn:
    return one.score, one.theta[None], np.nan


def _probabilities(drawn: Sequence[_Drawn]) -> list[float]:
    scores = np.nan_to_num([log_score for log_score, _, _ in drawn])  # -inf after a refit
    return [float(p) for p in softmax(scores)]


class Averaging(ABC, BaseEstimator):
    """How a mixture is made of the posterior over kernels.

    Parameters
    ----------
    n_components : int, default=8
        Number of draws of a kernel with its parameters. The time of ``predict`` grows with it.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, *, n_components: int = 8) -> None:
        self.n_components = n_components

    @abstractmethod
    def weights(
        self,
        evaluator: Evaluator,
        kernels: Sequence[KernelPosterior],
        *,
        deadline: Deadline = NEVER,
    ) -> FloatArray:
        """Compute the weights (n_kernels,) of the kernels, which sum to one.

        Raises
        ------
        OutOfTimeError
            Once the deadline has passed.
        """

    def components(
        self,
        evaluator: Evaluator,
        kernels: Sequence[KernelPosterior],
        *,
        deadline: Deadline = NEVER,
    ) -> list[MixtureComponent]:
        """Choose the draws of the mixture, of each kernel in proportion to its weight.

        Equal draws become one component. The components of one kernel stand together.
        """
        weights, n = self.weights(evaluator, kernels, deadline=deadline), self.n_components
        components: list[MixtureComponent] = []
        for number, count in sorted(Counter(systematic(weights, n).tolist()).items()):
            kernel = kernels[number]
            chosen = kernel.draws[support_points(kernel.draws, count)]
            components += [
                MixtureComponent(kernel.evaluation.expression, theta, times / n)
                for theta, times in zip(*np.unique(chosen, axis=0, return_counts=True), strict=True)
            ]
        return components


class PosteriorAveraging(Averaging):
    """Bayesian model averaging: every kernel has its posterior probability as weight.

    Parameters
    ----------
    n_components : int, default=8
        Number of draws of a kernel with its parameters. The time of ``predict`` grows with it.
    """

    def weights(
        self,
        evaluator: Evaluator,  # noqa: ARG002 - stacking uses it
        kernels: Sequence[KernelPosterior],
        *,
        deadline: Deadline = NEVER,  # noqa: ARG002 - stacking uses it
    ) -> FloatArray:
        """Return the posterior probabilities."""
        return np.array([kernel.probability for kernel in kernels])


class Stacking(Averaging):
    """Weights that maximise the leave-one-out log predictive density of the mixture.

    Parameters
    ----------
    n_components : int, default=8
        Number of draws of a kernel with its parameters. The time of ``predict`` grows with it.

    Notes
    -----
    Yao, Vehtari, Simpson and Gelman (2018), *Using stacking to average Bayesian predictive
    distributions*. The densities integrate over the parameters by Pareto-smoothed importance
    sampling. Held-out rows are predicted from rows on both sides: for forecasts, prefer
    :class:`PosteriorAveraging`.
    """

    def weights(
        self,
        evaluator: Evaluator,
        kernels: Sequence[KernelPosterior],
        *,
        deadline: Deadline = NEVER,
    ) -> FloatArray:
        """Compute the weights from leave-one-out densities."""
        log_densities = [
            loo_log_densities(
                evaluator, kernel.evaluation.expression, kernel.draws, deadline=deadline
            )
            for kernel in kernels
        ]
        return stacking_weights(np.array(log_densities))


AVERAGES: Mapping[str, type[Averaging]] = MappingProxyType(
    {"posterior": PosteriorAveraging, "stacking": Stacking}
)


def systematic(weights: FloatArray, n: int) -> FloatArray:
    """Choose ``n`` indices by systematic resampling, those of large weights several times.

    The points lie in the middle of ``n`` equal parts, so that no random number is needed: draws are
    in random order already.
    """
    edges = np.cumsum(weights) / np.sum(weights)
    points = (np.arange(n) + 0.5) / n
    return np.minimum(np.searchsorted(edges, points), len(weights) - 1)


def support_points(draws: FloatArray, n: int) -> IntArray:
    """Choose ``n`` of the draws (n_draws, n_params) whose distribution is close to that of all.

    Returns their indices (n,); a draw can be chosen several times.

    Notes
    -----
    The energy distance between the chosen draws and all is minimised, greedily and then by
    exchanging one at a time (Mak & Joseph 2018, *Support points*). It is that of draws with
    unit covariance, so that scales and correlations of the parameters have no influence.
    """
    distances = _distances(draws)
    to_all = distances.mean(axis=1)
    to_chosen = np.zeros(len(draws))
    chosen: list[int] = []

    def nearest(n_chosen: int) -> int:
        """Find the draw that makes the energy distance least if it joins the chosen ones."""
        excess = n_chosen * to_all - to_chosen
        return int(np.argmin(np.round(excess, 10)))  # in one dimension there are ties

    for number in range(1, n + 1):
        chosen.append(nearest(number))
        to_chosen += distances[chosen[-1]]
    for _ in range(_MAX_EXCHANGES):
        before = list(chosen)
        for position, old in enumerate(before):
            to_chosen -= distances[old]
            chosen[position] = nearest(n)
            to_chosen += distances[chosen[position]]
        if chosen == before:
            break
    return np.sort(chosen)


def _distances(draws: FloatArray) -> FloatArray:
    """Compute the distances between draws after a map that makes their covariance the identity."""
    left, spreads, _ = np.linalg.svd(draws - draws.mean(axis=0), full_matrices=False)
    varying = spreads > 1e-9 * max(1.0, spreads[0])
    return cdist(left[:, varying], left[:, varying])


def loo_log_densities(
    evaluator: Evaluator, expression: Expression, draws: FloatArray, *, deadline: Deadline = NEVER
) -> FloatArray:
    """Compute the log density (n_samples,) of each row given all others, parameters integrated out.

    ``draws`` (n_draws, n_params) are from the posterior of the parameters given all rows.

    Notes
    -----
    Given parameters, a held-out row has its density in closed form (R&W eq. 5.10-5.12). A draw has
    the importance weight of one over this density, as its posterior had seen the row (Vehtari et
    al. 2017, *Practical Bayesian model evaluation using leave-one-out cross-validation*).
    """
    try:
        densities = evaluator.leave_one_out(expression, draws, deadline=deadline)
    except EvaluationError:  # a kernel that fails at one of the draws
        densities = np.full((1, len(evaluator.data.y)), np.nan)
    possible = np.isfinite(densities).all(axis=1)
    if not possible.any():
        return np.full(densities.shape[1], _LOG_DENSITY_OF_FAILURE)
    densities = densities[possible]
    logs = [np.log(np.maximum(pareto_smoothed(-row), 1e-300)) + row for row in densities.T]
    return logsumexp(np.array(logs), axis=1)


def stacking_weights(log_densities: FloatArray) -> FloatArray:
    """Maximise the log density of a mixture over its weights (n_kernels,), which sum to one.

    ``log_densities`` (n_kernels, n_samples) are those of each row under each kernel. The problem is
    concave, and expectation maximisation converges to its solution.
    """
    n_kernels, n_samples = log_densities.shape
    log_weights = np.full(n_kernels, -np.log(n_kernels))
    last = -np.inf
    for _ in range(_MAX_EM_STEPS):
        joint = log_densities + log_weights[:, None]
        value = float(logsumexp(joint, axis=0).mean())
        log_weights = logsumexp(joint - logsumexp(joint, axis=0), axis=1) - np.log(n_samples)
        if value - last < _EM_TOLERANCE:
            break
        last = value
    return softmax(log_weights)
