"""The fit on all rows, after kernels have been searched on some of them.

The best kernels of the search race on all rows, by an approximate likelihood, and the best of these
is followed further. What predicts then, and with which of the parameters met on the way, is decided
by the predictive density of rows that are held out.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from autokernel.criteria.laplace import laplace_log_evidence
from autokernel.deadline import NEVER, Deadline
from autokernel.evaluation import Evaluation, name_parameters
from autokernel.exceptions import NotAMaximumError, OutOfTimeError
from autokernel.expression import NOISE, Expression, StructurePrior
from autokernel.fit.approximation import Approximation, Way
from autokernel.kernels import Priors
from autokernel.likelihood import ExactLikelihood, Likelihood, TrainingData
from autokernel.map.maximise import maximise
from autokernel.map.posterior import LogPosterior
from autokernel.model import ExactPredictor, Predictor
from autokernel.typing import FloatArray

_N_BEST = 4  # best kernels of the search that race on all rows
_N_FLEXIBLE = 6  # best kernels that use all columns, for what few rows do not show
_STEPS = 25  # most steps of a run
_ROUNDS = 2  # thorough runs of the best kernel, each with neighbours or points of its own
_N_HELD_OUT = 500
_WORTH_IT = 0.02  # nats per row for which a dearer way to predict is taken
_AS_GOOD = 0.005  # nats per row that the rival of a ladder may lack
_FOR_COMPARISON = 2**15  # most rows to condition on, before the choice
_N_DRAWS = 100


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Extended:
    """A kernel fitted on all rows, and the way in which it predicts."""

    evaluation: Evaluation
    draws: FloatArray  # (n_draws, n_params), from Laplace's approximation to the posterior
    way: Way


def racers(best_first: Sequence[Evaluation]) -> Sequence[Evaluation]:
    """Return the kernels to fit on all rows: the best ones, and the best that use all columns."""
    n_columns = max(len(_columns_of(one)) for one in best_first)
    best, others = best_first[:_N_BEST], best_first[_N_BEST:]
    flexible = [one for one in others if len(_columns_of(one)) == n_columns]
    return [*best, *flexible[:_N_FLEXIBLE]]


class Extension:
    """The fit of kernels on all rows.

    Parameters
    ----------
    approximation : Approximation
        Likelihood and predictions.
    data : TrainingData
        All rows, in the units of the search.
    n_searched : int
        Number of rows of the search.
    priors : mapping
        Priors of the parameters.
    structure_prior : StructurePrior
        Log prior of each expression.
    seed : int
        Seed of the random numbers.
    races : bool
        Whether the best kernels of the search race by their evidence on all rows. Otherwise, the
        best one stays the best, with the score that it has.
    deadline : Deadline
        Moment after which the best fit so far is taken.
    """

    def __init__(
        self,
        approximation: Approximation,
        data: TrainingData,
        *,
        n_searched: int,
        priors: Priors,
        structure_prior: StructurePrior,
        seed: int,
        races: bool = True,
        deadline: Deadline = NEVER,
    ) -> None:
        self._races, self._n_searched = races, n_searched
        self._approximation, self._data = approximation, data
        self._priors, self._structure_prior = priors, structure_prior
        self._seed, self._deadline = seed, deadline

    def __call__(self, best_first: Sequence[Evaluation]) -> Extended:
        """Fit the best kernels of a search on all rows, and choose how the best one predicts."""
        if best_first[0].expression == NOISE:  # O(n_samples), and rows do not tell of other rows
            fit = self._climb(best_first[0], ExactLikelihood(NOISE, self._data), 1.0, None)
            return Extended(fit.evaluation, fit.evaluation.theta[None], Way("exact", _of_noise))
        fits = self._race([one for one in best_first if one.expression != NOISE])
        fit, way = self._choose(fits)
        return Extended(fit.evaluation, fit.draw(np.random.default_rng(self._seed)), way)

    def _race(self, best_first: Sequence[Evaluation]) -> list["_Fit"]:
        """Return the fits of the kernel that is best on all rows, the latest one first.

        It is the search's own fit if there was no time for another.
        """
        raced: list[_Fit] = []
        with suppress(OutOfTimeError):
            for start in racers(best_first) if self._races else best_first[:1]:
                raced.append(self._approximate(start, thorough=False))
        if not raced:
            return [_Fit(best_first[0], 1.0)]
        best = max(raced, key=lambda fit: fit.evaluation.score)
        fits = [best]
        with suppress(OutOfTimeError):
            for _ in range(_ROUNDS):
                fits.insert(0, self._approximate(fits[0].evaluation, thorough=True))
        return fits

    def _approximate(self, start: Evaluation, *, thorough: bool) -> "_Fit":
        """Fit a kernel by the approximation, built for the parameters of an earlier fit."""
        likelihood, rows_for_each = self._approximation.likelihood(
            start.expression,
            start.theta,
            self._data,
            thorough=thorough,
            rng=np.random.default_rng(self._seed),  # the same rows for every kernel
        )
        # a fit of few rows leaves a Hessian that grows with the rows; a later one its estimate
        more = 1.0 if thorough else len(self._data.y) / self._n_searched
        curvature = start.hessian * more if np.all(np.isfinite(start.hessian)) else None
        return self._climb(start, likelihood, rows_for_each, curvature)

    def _climb(
        self,
        start: Evaluation,
        likelihood: Likelihood,
        rows_for_each: float,
        curvature: FloatArray | None,
    ) -> "_Fit":
        """Fit a kernel from the parameters of an earlier fit, and a guess of the Hessian there."""
        posterior = LogPosterior(likelihood, priors=self._priors, deadline=self._deadline)
        mode = maximise(posterior, start.theta, max_iterations=_STEPS, curvature=curvature)
        log_prior = float(posterior.prior.log_density(mode.theta))
        log_evidence = -np.inf
        if mode.curvature is not None:
            with suppress(NotAMaximumError):
                log_evidence = laplace_log_evidence(mode.log_posterior, mode.curvature)
        log_structure_prior = self._structure_prior(start.expression)
        evaluation = replace(
            start,
            parameters=name_parameters(start.expression, mode.theta),
            theta=mode.theta,
            log_likelihood=mode.log_posterior - log_prior,
            log_prior=log_prior,
            log_posterior=mode.log_posterior,
            log_evidence=log_evidence,
            score=log_evidence + log_structure_prior if self._races else start.score,
            hessian=start.hessian if mode.curvature is None else mode.curvature,
            n_evaluations=posterior.n_evaluations,
            log_structure_prior=log_structure_prior,
        )
        return _Fit(evaluation, rows_for_each)

    def _choose(self, fits: Sequence["_Fit"]) -> tuple["_Fit", Way]:
        """Choose parameters and a way to predict by the density of rows that are held out."""
        n = len(self._data.y)
        order = np.random.default_rng(self._seed).permutation(n)
        n_held_out = min(_N_HELD_OUT, n // 5)
        held_out = self._data.take(order[:n_held_out])
        others = self._data.take(order[n_held_out:][:_FOR_COMPARISON])

        def density(fit: _Fit, way: Way) -> float:
            return _held_out_density(fit, way, others, held_out)

        fit, *earlier = fits
        if earlier:
            densities = [density(one, self._approximation.probe) for one in fits]
            better = int(np.argmax(densities))
            if densities[better] > densities[0] + _WORTH_IT:
                fit = fits[better]
        way, *dearer = self._approximation.ladder(n)
        rival = self._approximation.rival(n)
        if not dearer and rival is None:
            return fit, way
        best = density(fit, way)
        for other in dearer:
            found = density(fit, other)
            if found < best + _WORTH_IT:
                break
            way, best = other, found
        if rival is not None and density(fit, rival) > best - _AS_GOOD:
            way = rival
        return fit, way


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the evaluation holds arrays
class _Fit:
    """Parameters of a kernel fitted to some rows, and the rows for each of these."""

    evaluation: Evaluation
    rows_for_each: float

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Draw log parameters (n_draws, n_params) from Laplace's approximation.

        The likelihood of some rows, counted several times each, is not as sharp as it seems.
        """
        theta, hessian = self.evaluation.theta, self.evaluation.hessian / self.rows_for_each
        try:
            L = cholesky(hessian, lower=True)
        except (LinAlgError, ValueError):
            return theta[None]
        white = rng.normal(size=(len(theta), _N_DRAWS))
        return theta + np.linalg.solve(L.T, white).T


def _columns_of(evaluation: Evaluation) -> set[int]:
    """Return the columns that a kernel uses."""
    return {leaf.column for leaf in evaluation.expression.leaves}


def _of_noise(expression: Expression, theta: FloatArray, data: TrainingData) -> Predictor:
    """Make the predictor of noise alone, which needs no more than one row."""
    return ExactPredictor(expression, theta, data.take(np.arange(1)))


def _held_out_density(fit: _Fit, way: Way, data: TrainingData, held_out: TrainingData) -> float:
    """Compute the mean log density of held-out targets in nats, ``-inf`` on failure."""
    expression, theta = fit.evaluation.expression, fit.evaluation.theta
    try:
        predictor: Predictor = way.make_predictor(expression, theta, data)
        mean, variance = predictor.mean_and_variance(held_out.X)
    except (LinAlgError, MemoryError):
        return -np.inf
    logs = -0.5 * ((held_out.y - mean) ** 2 / variance + np.log(2 * np.pi * variance))
    return float(logs.mean())
