"""The posterior over kernels, and draws from the posterior over the parameters of each."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from autokernel.deadline import NEVER, Deadline
from autokernel.evaluation import Evaluation, Evaluator
from autokernel.exceptions import EvaluationError, OutOfTimeError
from autokernel.typing import FloatArray

_WINDOW = 5.0  # nats below the best score at which a kernel is left out
_MOST_KERNELS = 12
_LEAST_PROBABILITY = 1e-3
_N_DRAWS = 200  # for each kernel
_MORE_DRAWS = 800  # at most, for a probable kernel whose weights are not reliable
_MATTERS = 0.05  # probability from which such a kernel is drawn from again
_UNRELIABLE = 0.7  # Pareto k (Vehtari et al. 2024, JMLR 25)
_N_KEPT = 100  # draws of each kernel that the model keeps


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: draws is an array
class KernelPosterior:
    """A kernel with its posterior probability, and draws from that of its parameters."""

    evaluation: Evaluation
    probability: float  # given the kernels that the search has evaluated
    log_score: float  # nats, the score after the correction by importance sampling
    draws: FloatArray  # (n_draws, n_params), equally probable
    pareto_k: float = np.nan  # above 0.7 the correction is not reliable


def posterior_over_kernels(
    evaluator: Evaluator, best_first: Iterable[Evaluation], *, deadline: Deadline = NEVER
) -> list[KernelPosterior]:
    """Compute the posterior over the kernels that a search has evaluated.

    Parameters
    ----------
    evaluator : Evaluator
        Evaluator of the search.
    best_first : iterable of Evaluation
        Evaluations with a finite score, the best first.
    deadline : Deadline
        Moment after which the remaining kernels are left out.

    Returns
    -------
    list of KernelPosterior
        The most probable kernel first. Probabilities sum to one. The first evaluation is always
        among them, if only at its best parameters.
    """
    found: list[KernelPosterior] = []
    best, *others = best_first
    near = [other for other in others if other.score > best.score - _WINDOW]
    with suppress(OutOfTimeError):
        for evaluation in [best, *near[: _MOST_KERNELS - 1]]:
            found.append(_draw(evaluator, evaluation, _N_DRAWS, deadline=deadline))
        for number, one in enumerate(_with_probabilities(found)):
            if one.pareto_k > _UNRELIABLE and one.probability > _MATTERS:
                found[number] = _draw(evaluator, one.evaluation, _MORE_DRAWS, deadline=deadline)
    found = found or [KernelPosterior(best, 1.0, best.score, best.theta[None])]
    kept = [
        one
        for one in _with_probabilities(found)
        if one.probability > _LEAST_PROBABILITY or one.evaluation is best
    ]
    total = sum(one.probability for one in kept)
    kept = [replace(one, probability=one.probability / total) for one in kept]
    return sorted(kept, key=lambda one: -one.probability)


def _with_probabilities(kernels: Sequence[KernelPosterior]) -> list[KernelPosterior]:
    """Compute the probabilities of kernels from their scores."""
    scores = np.nan_to_num([one.log_score for one in kernels])  # -inf after a refit
    return [
        replace(one, probability=float(p)) for one, p in zip(kernels, softmax(scores), strict=True)
    ]


def _draw(
    evaluator: Evaluator, evaluation: Evaluation, n_draws: int, *, deadline: Deadline
) -> KernelPosterior:
    """Draw the parameters of one kernel; the probability is left to the caller."""
    try:
        sample = evaluator.sample(evaluation, max_draws=n_draws, deadline=deadline)
    except EvaluationError:  # a rough fit, a saddle, or a kernel that fails elsewhere
        return KernelPosterior(evaluation, 1.0, evaluation.score, evaluation.theta[None])
    chosen = systematic(sample.weights, _N_KEPT)
    log_score = evaluation.score
    if evaluator.score_is_laplace and len(evaluation.theta) > 1:  # noise alone is exact
        log_score += sample.log_evidence.value - evaluation.log_evidence
    k = sample.log_evidence.pareto_k
    return KernelPosterior(evaluation, 1.0, log_score, sample.theta[chosen], k)


def systematic(weights: FloatArray, n: int) -> FloatArray:
    """Choose ``n`` indices by systematic resampling, those of large weights several times.

    The points lie in the middle of ``n`` equal parts, so that no random number is needed: draws are
    in random order already.
    """
    edges = np.cumsum(weights) / np.sum(weights)
    points = (np.arange(n) + 0.5) / n
    return np.minimum(np.searchsorted(edges, points), len(weights) - 1)
