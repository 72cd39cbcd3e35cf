"""The posterior over kernels, and mixtures of a few draws that stand for it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from autokernel.deadline import NEVER, Deadline, in_time
from autokernel.evidence import Evaluation, Evaluator
from autokernel.exceptions import EvaluationError, warn_user
from autokernel.expression import IDENTITY, Expression
from autokernel.kernels import WANDERING, BaseKernel
from autokernel.typing import FloatArray, IntArray

# Conventions: of the eight components of a mixture, a kernel with a tenth of the probability has at
# most one, and with a hundredth none.
_SCORE_WINDOW = 5.0  # nats below the best score beyond which a kernel is left out
_MAX_KERNELS = 12
_MIN_PROBABILITY = 1e-3
_SHARES, _RATES = ("logit", "binomial", "beta_binomial"), ("log", "poisson", "negative_binomial")
_BENDS = (IDENTITY, *_SHARES, "sqrt", *_RATES)  # scales, as growth accelerates more and more
_PROBABLE = 0.1  # a kernel; others are taken at their best parameters


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: draws is an array
class KernelPosterior:
    """A kernel with its posterior probability, and draws from the posterior of its parameters."""

    evaluation: Evaluation
    probability: float  # given the kernels that were evaluated, or a weight with an equal share
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
    evaluator: Evaluator,
    best_first: Iterable[Evaluation],
    *,
    equal_share: float = 0.0,
    deadline: Deadline = NEVER,
) -> list[KernelPosterior]:
    """Compute the posterior over the kernels that a search has evaluated, the most probable first.

    The evaluations ``best_first`` have finite scores. Kernels that are not reached before the
    deadline are left out, except for the first one. An ``equal_share`` of the probability is the
    same for kinds of kernels, see :func:`probabilities_of`.
    """
    best, *others = map(certain, best_first)
    shares = probabilities_of([best, *others], equal_share)
    near = shares[1:] > shares[0] * np.exp(-_SCORE_WINDOW)
    by_share = (others[n] for n in np.argsort(-shares[1:], kind="stable") if near[n])
    at_modes = [best, *islice(by_share, _MAX_KERNELS - 1)]
    shares = probabilities_of(at_modes, equal_share)
    every_drawn = (
        _drawn(evaluator, one, deadline=deadline) if one is best or share > _PROBABLE else one
        for one, share in zip(at_modes, shares, strict=True)
    )
    drawn = list(in_time(every_drawn)) or [best]
    shares = probabilities_of(drawn, equal_share)
    kept = [n for n, share in enumerate(shares) if share > _MIN_PROBABILITY or n == 0]
    total = shares[kept].sum()
    kernels = [replace(drawn[n], probability=float(shares[n] / total)) for n in kept]
    return sorted(kernels, key=lambda one: -one.probability)


def certain(evaluation: Evaluation) -> KernelPosterior:
    """Return the posterior in which one kernel at its best parameters is certain."""
    return KernelPosterior(evaluation, 1.0, evaluation.score, evaluation.theta[None])


def _drawn(
    evaluator: Evaluator, at_mode: KernelPosterior, *, deadline: Deadline
) -> KernelPosterior:
    one = at_mode.evaluation
    try:
        sample = evaluator.sample(one, max_draws=256, deadline=deadline)
    except EvaluationError as error:
        if np.isfinite(one.log_evidence):  # else it is a rough fit or a saddle
            text = f"{one.expression} has only its best parameters in the average ({error})"
            warn_user(text, ConvergenceWarning)
        return at_mode
    log_score = one.score
    if evaluator.score_is_laplace and len(one.theta) > 1:  # that of noise alone is exact
        log_score += sample.log_evidence - one.log_evidence
    draws = sample.theta[systematic(sample.weights, 100)]
    return replace(at_mode, log_score=log_score, draws=draws, pareto_k=sample.pareto_k)


def probabilities_of(
    kernels: Sequence[KernelPosterior], equal_share: float, within: float = _SCORE_WINDOW
) -> FloatArray:
    """Return the probabilities (n,) of kernels by their scores, and by kinds in the equal share.

    Kernels that wander in the same way on the same scale of the target are of one kind. If growth
    accelerates more on it than on that of the best, it must be ``within`` some nats of the best.
    """
    log_p = np.nan_to_num([one.log_score for one in kernels])  # -inf after a refit
    kinds: dict[tuple[str, frozenset[BaseKernel]], list[int]] = {}
    for n, expression in enumerate(one.evaluation.expression for one in kernels):
        walks = frozenset(leaf.kernel for leaf in expression.leaves).intersection(WANDERING)
        if walks and equal_share and np.isfinite(kernels[n].log_score):
            kinds.setdefault((expression.target, walks), []).append(n)
    bends = np.array([_BENDS.index(one.evaluation.expression.target) for one in kernels])
    is_near = (log_p > log_p.max() - within) | (bends <= bends[log_p.argmax()])
    near = [own for own in kinds.values() if is_near[own].any()]
    equal, by_score = np.zeros(len(log_p)), np.asarray(softmax(log_p))
    for own in near:
        equal[own] = softmax(log_p[own]) / len(near)
    return (1 - equal_share) * by_score + equal_share * equal if near else by_score


class PosteriorAveraging(BaseEstimator):
    """A mixture of draws from the posterior over kernels and their parameters.

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

    def components(self, kernels: Sequence[KernelPosterior]) -> list[MixtureComponent]:
        """Choose the draws of the mixture, of each kernel in proportion to its probability."""
        n = self.n_components
        chosen_kernels = systematic(np.array([kernel.probability for kernel in kernels]), n)
        components: list[MixtureComponent] = []
        for number, count in zip(*np.unique(chosen_kernels, return_counts=True), strict=True):
            expression, draws = kernels[number].evaluation.expression, kernels[number].draws
            chosen = draws[support_points(draws, count)]
            for theta, times in zip(*np.unique(chosen, axis=0, return_counts=True), strict=True):
                components.append(MixtureComponent(expression, theta, times / n))
        return components


def systematic(weights: FloatArray, n: int) -> FloatArray:
    """Choose ``n`` indices by systematic resampling, those of large weights several times."""
    edges = np.cumsum(weights) / np.sum(weights)
    points = (np.arange(n) + 0.5) / n  # not random, as draws are in random order already
    return np.minimum(np.searchsorted(edges, points), len(weights) - 1)


def support_points(draws: FloatArray, n: int) -> IntArray:
    """Return indices (n,) of draws (n_draws, n_params) whose distribution is close to that of all.

    The energy distance between the chosen draws, perhaps with repetitions, and all is minimised,
    greedily and then by exchanging one at a time (Mak & Joseph 2018, *Support points*). It is that
    of draws with unit covariance, so that scales and correlations have no influence.
    """
    left, spreads, _ = np.linalg.svd(draws - draws.mean(axis=0), full_matrices=False)
    varying = spreads > 1e-9 * max(1.0, spreads[0])
    distances = cdist(left[:, varying], left[:, varying])
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
    for _ in range(20):  # sweeps, most of which end before
        before = list(chosen)
        for position, old in enumerate(before):
            to_chosen -= distances[old]
            chosen[position] = nearest(n)
            to_chosen += distances[chosen[position]]
        if chosen == before:
            break
    return np.sort(chosen)
