"""The posterior over kernels, and draws from the posterior over the parameters of each."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from autokernel.deadline import NEVER, Deadline
from autokernel.evaluation import Evaluation, Evaluator
from autokernel.exceptions import NotAMaximumError, OutOfTimeError
from autokernel.typing import FloatArray

_WINDOW = 5.0  # nats below the best score at which a kernel is left out
_MOST_KERNELS = 12
_LEAST_PROBABILITY = 1e-3
_MOST_DRAWS = 400  # for each kernel
_N_KEPT = 100  # draws of each kernel that the model keeps


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: draws is an array
class KernelPosterior:
    """A kernel with its posterior probability, and draws from that of its parameters."""

    evaluation: Evaluation
    probability: float  # given the kernels that the search has evaluated
    log_score: float  # nats, the score after the correction by importance sampling
    draws: FloatArray  # (n_draws, n_params), equally probable
    pareto_k: float = np.nan  # above 0.7 the correction cannot be trusted


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
            found.append(_draw(evaluator, evaluation, deadline=deadline))
    found = found or [KernelPosterior(best, 1.0, best.score, best.theta[None])]
    probabilities = softmax(np.nan_to_num([one.log_score for one in found]))  # -inf after a refit
    found = [replace(one, probability=p) for one, p in zip(found, probabilities, strict=True)]
    kept = [one for one in found if one.probability > _LEAST_PROBABILITY or one.evaluation is best]
    total = sum(one.probability for one in kept)
    kept = [replace(one, probability=float(one.probability / total)) for one in kept]
    return sorted(kept, key=lambda one: -one.probability)


def _draw(evaluator: Evaluator, evaluation: Evaluation, *, deadline: Deadline) -> KernelPosterior:
    """Draw the parameters of one kernel; the probability is left to the caller."""
    try:
        sample = evaluator.sample(evaluation, max_draws=_MOST_DRAWS, deadline=deadline)
    except NotAMaximumError:  # a rough fit, or a saddle
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
