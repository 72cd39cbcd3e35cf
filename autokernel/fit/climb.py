"""The fit of one kernel to many rows, from the parameters of a fit to fewer ones."""

import time
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from autokernel.criteria import Criterion, KernelFit, Score
from autokernel.criteria.laplace import log_evidence_or_nothing
from autokernel.deadline import NEVER, Deadline
from autokernel.evaluation import Evaluation, name_parameters
from autokernel.evaluation.evaluator import FAR
from autokernel.evaluation.record import record_mode
from autokernel.exceptions import NotAMaximumError, OutOfTimeError
from autokernel.expression import StructurePrior
from autokernel.fit.approximation import Approximation, Likelihoods
from autokernel.kernels import Priors
from autokernel.likelihood import ExactLikelihood, TrainingData
from autokernel.map.maximise import Mode, maximise
from autokernel.map.maximum import Maximum, measure_maximum
from autokernel.map.posterior import LogPosterior
from autokernel.typing import FloatArray

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
        fit = _measured(posterior, mode, best - FAR - log_structure_prior)
        n_rows = made.n_rows
        if completes and n_rows < len(self._data.y):
            whole = LogPosterior(made.of_all, priors=self._priors, deadline=self._deadline)
            fit, n_rows = _on_more_rows(fit, whole, len(self._data.y) / n_rows), len(self._data.y)
        # rows that have not entered are as likely as those that have, less one nat a parameter
        # for which these were fitted (Akaike); each of these stands for rows_for_each rows
        optimism = (made.rows_for_each - 1) * len(mode.theta)
        score = start.score
        if self._criterion is not None:
            score = self._criterion(fit).value - optimism + log_structure_prior
        record = record_mode(
            fit.posterior,
            fit.maximum.mode,
            hessian=fit.maximum.hessian,
            log_evidence=log_evidence_or_nothing(fit) - optimism,
            score=Score(score),
            status="ok",
        )
        evaluation = replace(
            record,
            parameters=name_parameters(start.expression, mode.theta),
            n_evaluations=posterior.n_evaluations,
            seconds=time.perf_counter() - began,
            log_structure_prior=log_structure_prior,
        )
        return Fit(evaluation, n_rows, made.rows_for_each)


def _measured(posterior: LogPosterior, mode: Mode, least: float) -> KernelFit:
    """Compute the Hessian, or take the run's estimate where the evidence is less than that."""
    estimate = _kernel_fit(posterior, measure_maximum(posterior, mode, mode.curvature))
    if log_evidence_or_nothing(estimate) >= least:
        with suppress(NotAMaximumError):
            measured = _kernel_fit(posterior, measure_maximum(posterior, mode))
            if np.isfinite(log_evidence_or_nothing(measured)):
                return measured
    return estimate


def _on_more_rows(fit: KernelFit, posterior: LogPosterior, times: float) -> KernelFit:
    """Take the log posterior of more rows, and the Hessian that these will have."""
    maximum = fit.maximum
    mode = Mode(maximum.mode.theta, posterior.value(maximum.mode.theta))
    hessian = _scaled(maximum.hessian, times, posterior, mode.theta)
    hessian = maximum.hessian if hessian is None else hessian
    return _kernel_fit(posterior, replace(maximum, mode=mode, hessian=hessian))


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


def _kernel_fit(posterior: LogPosterior, maximum: Maximum) -> KernelFit:
    """Describe a fit as criteria want it; those for approximations draw no random numbers."""
    return KernelFit(posterior, maximum, [], np.random.default_rng(0))
