"""The fit of one kernel to many rows, from the parameters of a fit to fewer ones."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Criterion, Evaluation, KernelFit, Score
from autokernel.evidence.evaluation import record_fit
from autokernel.evidence.evaluator import FAR_BELOW_BEST
from autokernel.evidence.laplace import log_evidence_or_nothing
from autokernel.evidence.maximise import Point, maximise
from autokernel.evidence.maximum import Maximum, measure_maximum
from autokernel.evidence.posterior import LogPosterior
from autokernel.exceptions import NotAMaximumError, OutOfTimeError
from autokernel.expression import StructurePrior
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.inference.base import MakePredictor, Predictor
from autokernel.inference.exact import ExactPredictor
from autokernel.kernels import Priors
from autokernel.many_rows.approximation import Approximation, Likelihoods
from autokernel.many_rows.plan import n_held_out
from autokernel.typing import FloatArray, IntArray

_STEPS = 25  # most steps of a run
_N_DRAWS = 100
_STREAM = 1  # of the random numbers, beside that of the rows of the search


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the evaluation holds arrays
class Fit:
    """A kernel fitted to some rows."""

    evaluation: Evaluation
    n_rows: int  # rows of which score and Hessian speak
    rows_for_each: float = 1.0  # of these, for each one that has entered the likelihood

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


class Climb:
    """The fit of kernels by an approximation, each from the parameters of an earlier fit.

    Parameters
    ----------
    approximation : Approximation
        Makes the likelihoods.
    data : TrainingData
        All rows, in the units of the search.
    priors : mapping
        Priors of the parameters.
    structure_prior : StructurePrior
        Log prior of each expression.
    criterion : Criterion or None
        Gives the scores. With None, a kernel keeps the score that it has.
    seed : int
        Seed of the choice of rows, which are the same for all kernels.
    deadline : Deadline
        Moment after which no fit ends.
    """

    def __init__(
        self,
        approximation: Approximation,
        data: TrainingData,
        *,
        priors: Priors,
        structure_prior: StructurePrior,
        criterion: Criterion | None,
        seed: int,
        deadline: Deadline = NEVER,
    ) -> None:
        self._approximation, self._data = approximation, data
        self._priors, self._structure_prior = priors, structure_prior
        self._criterion, self._seed, self._deadline = criterion, seed, deadline

    def __call__(self, before: Fit, *, thorough: bool = False, best: float = -np.inf) -> Fit | None:
        """Fit a kernel further, None if that fails: one kernel must not end a long fit.

        Parameters
        ----------
        before : Fit
            The earlier fit. Neighbours and inducing points are chosen for its parameters.
        thorough : bool
            Whether more rows enter the likelihood, and the score is that of all rows.
        best : float
            Highest score of other kernels, in nats.

        Raises
        ------
        OutOfTimeError
            Once the deadline has passed.
        """
        try:
            made = self._approximation.likelihoods(
                before.evaluation.expression,
                before.evaluation.theta,
                self._data,
                thorough=thorough,
                rng=np.random.default_rng([self._seed, _STREAM]),
            )
            found = self._climb(before, made, completes=thorough, best=best)
        except OutOfTimeError:
            raise
        except Exception:  # as in the evaluations of a search, whatever a kernel raises
            return None
        return found if np.isfinite(found.evaluation.log_posterior) else None

    def exactly(self, before: Fit) -> Fit:
        """Fit a kernel further by its exact likelihood on all rows, O(n_samples) for noise alone.

        Raises
        ------
        OutOfTimeError
            Once the deadline has passed.
        """
        exact = ExactLikelihood(before.evaluation.expression, self._data)
        made = Likelihoods(exact, len(self._data.y), exact)
        return self._climb(before, made, completes=True, best=-np.inf)

    def _climb(self, before: Fit, made: Likelihoods, *, completes: bool, best: float) -> Fit:
        """Fit a kernel from the parameters of an earlier fit; ``completes`` asks for all rows."""
        began, start = time.perf_counter(), before.evaluation
        posterior = LogPosterior(made.of_some, priors=self._priors, deadline=self._deadline)
        curvature = _scaled(start.hessian, made.n_rows / before.n_rows, posterior, start.theta)
        mode = maximise(posterior, start.theta, max_iterations=_STEPS, curvature=curvature)
        log_structure_prior = self._structure_prior(start.expression)
        fitted = posterior
        maximum = _measured(posterior, mode, best - FAR_BELOW_BEST - log_structure_prior)
        n_rows = made.n_rows
        if completes and n_rows < len(self._data.y):
            fitted = LogPosterior(made.of_all, priors=self._priors, deadline=self._deadline)
            maximum = _on_more_rows(maximum, fitted, len(self._data.y) / n_rows)
            n_rows = len(self._data.y)
        # rows that have not entered are as likely as those that have, less one nat a parameter
        # for which these were fitted (Akaike); each of these stands for rows_for_each rows
        optimism = (made.rows_for_each - 1) * len(mode.theta)
        score = start.score - log_structure_prior
        if self._criterion is not None:  # those for approximations draw no random numbers
            fit = KernelFit(fitted, maximum, [], np.random.default_rng(0))
            score = self._criterion(fit).value - optimism
        evaluation = record_fit(
            start.expression,
            fitted,
            maximum,
            status="ok",
            score=Score(score),
            log_evidence=log_evidence_or_nothing(fitted, maximum) - optimism,
            n_other_evaluations=0 if fitted is posterior else posterior.n_evaluations,
            seconds=time.perf_counter() - began,
            log_structure_prior=log_structure_prior,
        )
        return Fit(evaluation, n_rows, made.rows_for_each)


def _measured(posterior: LogPosterior, mode: Point, least: float) -> Maximum:
    """Compute the Hessian, or take the run's estimate where the evidence is less than that."""
    estimate = measure_maximum(posterior, mode, mode.curvature)
    if log_evidence_or_nothing(posterior, estimate) >= least:
        with suppress(NotAMaximumError):
            measured = measure_maximum(posterior, mode)
            if np.isfinite(log_evidence_or_nothing(posterior, measured)):
                return measured
    return estimate


def _on_more_rows(maximum: Maximum, posterior: LogPosterior, times: float) -> Maximum:
    """Take the log posterior of more rows, and the Hessian that these will have."""
    mode = Point(maximum.mode.theta, posterior.value(maximum.mode.theta))
    hessian = _scaled(maximum.hessian, times, posterior, mode.theta)
    hessian = maximum.hessian if hessian is None else hessian
    return replace(maximum, mode=mode, hessian=hessian)


def _scaled(
    hessian: FloatArray, times: float, posterior: LogPosterior, theta: FloatArray
) -> FloatArray | None:
    """Guess the Hessian for so many times as many rows, None if it is not known.

    The part of the prior stays as it is. That of the rows cannot curve upwards at a maximum.
    """
    if not np.all(np.isfinite(hessian)):
        return None
    of_prior = np.diag(posterior.prior.curvature(theta))
    curvatures, axes = np.linalg.eigh(hessian - of_prior)
    return (axes * np.maximum(curvatures, 0.0)) @ axes.T * times + of_prior


_FEWEST_HELD_OUT = 20  # with fewer, nothing is chosen
_WORTH_IT = 0.02  # nats per row for which a dearer way to predict is taken
_AS_GOOD = 0.005  # nats per row that the rival of a ladder may lack
_FOR_COMPARISON = 2**15  # most rows to condition on, before the choice
_N_TIMED = 1000  # rows whose exact conditioning is timed, to know how long that of all takes


class Choice:
    """Chooses parameters, and how they predict.

    Parameters
    ----------
    approximation : Approximation
        Lists ways to predict.
    data : TrainingData
        All rows, in the units of the search.
    order : ndarray of shape (n_samples,)
        Numbers of the rows in random order. The last ones are held out.
    deadline : Deadline
        Moment after which the cheapest way is taken.
    """

    def __init__(
        self, approximation: Approximation, data: TrainingData, order: IntArray, deadline: Deadline
    ) -> None:
        n_others = len(order) - n_held_out(len(order))
        self._held_out, self._given = order[n_others:], order[:n_others][:_FOR_COMPARISON]
        self._approximation, self._deadline = approximation, deadline
        self.data = data

    def __call__(self, fits: Sequence[Fit]) -> tuple[Fit, MakePredictor]:
        """Choose one of the fits of a kernel, the latest one first, and a way to predict."""
        fit = self.best_of(fits)
        way, *dearer = self._approximation.ladder(len(self.data.y))
        rival = self._approximation.rival(len(self.data.y))
        if way is ExactPredictor and not self._has_time_for_exact(fit):
            return fit, self._approximation.probe
        if (not dearer and rival is None) or not self._can_choose:
            return fit, way
        best = self._density(fit, way)
        for other in dearer:
            found = self._density(fit, other) if self._can_choose else -np.inf
            if found < best + _WORTH_IT:
                break
            way, best = other, found
        if rival and self._can_choose and self._density(fit, rival) > best - _AS_GOOD:
            way = rival
        return fit, way

    @property
    def _can_choose(self) -> bool:
        """Whether there are enough rows, and time."""
        return len(self._held_out) >= _FEWEST_HELD_OUT and not self._deadline.has_passed

    def best_of(self, fits: Sequence[Fit]) -> Fit:
        """Choose the first fit, unless another one predicts rows held out clearly better."""
        if len(fits) == 1 or not self._can_choose:
            return fits[0]
        densities = [self._density(fit, self._approximation.probe) for fit in fits]
        best = int(np.argmax(densities))
        return fits[best] if densities[best] > densities[0] + _WORTH_IT else fits[0]

    def _density(self, fit: Fit, way: MakePredictor) -> float:
        """Compute the mean log density of the held-out targets in nats, ``-inf`` on failure."""
        held_out = self.data.take(self._held_out)
        try:
            predictor = _make(way, fit, self.data.take(self._given))
            mean, variance = predictor.mean_and_variance(held_out.X)
        except Exception:  # whatever a kernel raises, another way may predict
            return -np.inf
        logs = (held_out.y - mean) ** 2 / variance + np.log(2 * np.pi * variance)
        return float(-0.5 * logs.mean())

    def _has_time_for_exact(self, fit: Fit) -> bool:
        """Whether exact predictions can be made before the deadline, by the time of some rows."""
        if self._deadline.seconds_left == np.inf:
            return True
        some = self.data.take(np.arange(min(_N_TIMED, len(self.data.y))))
        began = time.perf_counter()
        try:
            _make(ExactPredictor, fit, some)
        except Exception:  # as above
            return False
        seconds = time.perf_counter() - began
        return seconds * (len(self.data.y) / len(some.y)) ** 3 < self._deadline.seconds_left


def _make(way: MakePredictor, fit: Fit, data: TrainingData) -> Predictor:
    """Condition the kernel of a fit on data."""
    return way(fit.evaluation.expression, fit.evaluation.theta, data)
