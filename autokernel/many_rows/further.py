"""The fit of one kernel to many rows, from the parameters of a fit to fewer ones."""

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Criterion, Evaluation, Evaluator, KernelFit, Score
from autokernel.evidence.evaluation import record_fit
from autokernel.evidence.evaluator import FAR_BELOW_BEST
from autokernel.evidence.laplace import log_evidence_or_nothing
from autokernel.evidence.maximise import Maximum, Point, maximise, measure_maximum
from autokernel.evidence.posterior import LogPosterior
from autokernel.exceptions import KERNEL_ERRORS, NotAMaximumError, custom_part, reason_of
from autokernel.inference import (
    ExactLikelihood,
    InducingLikelihood,
    Likelihood,
    NeighbourLikelihood,
    TrainingData,
)
from autokernel.many_rows.approximation import Approximation, n_held_out, shuffled_rows
from autokernel.typing import FloatArray

MAX_MEASURED_ROWS = 2**15  # of a likelihood whose Hessian is not only that of its run
_FIT_STREAM, _DRAW_STREAM = 1, 2  # of the random numbers; the rows of the search have the seed


@dataclass(frozen=True, eq=False)
class ManyRows:
    """Fits kernels to many rows, each from the parameters of an earlier fit to fewer ones.

    The seed of the evaluator, which scores on fewer rows, chooses rows for all kernels. A fit that
    cannot end before the deadline, as far as earlier ones show, raises an ``OutOfTimeError``. The
    ``history`` has every fit that was tried, with the score ``-inf`` and the reason if it failed.
    """

    approximation: Approximation
    data: TrainingData
    evaluator: Evaluator
    deadline: Deadline = field(default=NEVER, kw_only=True)
    history: list[Evaluation] = field(default_factory=list, kw_only=True, repr=False)

    @cached_property
    def criterion(self) -> Criterion | None:
        """The criterion of approximate fits; without one, a kernel keeps the score that it has."""
        return self.evaluator.criterion.for_approximations()

    @cached_property
    def given_and_held_out(self) -> tuple[TrainingData, TrainingData]:
        """Rows for the choice of a predictor; the search has seen few of those held out."""
        order = shuffled_rows(len(self.data.y), self.evaluator.seed)
        given, held_out = np.split(order, [len(order) - n_held_out(len(order))])
        return self.data.take(given[: 2**15]), self.data.take(held_out)

    def fit(
        self, before: Evaluation, *, thorough: bool = False, best: float = -np.inf
    ) -> Evaluation:
        """Fit a kernel further and record the fit, also if it fails.

        With ``thorough``, more rows enter the likelihood, and the score is that of all rows.
        ``best`` is the highest score of other kernels, in nats.
        """
        rng = np.random.default_rng([self.evaluator.seed, _FIT_STREAM])
        try:
            work = 4.0 if thorough else 1.0  # to build the likelihood
            with self.deadline.timed(type(self.approximation), work):
                likelihood = self.approximation.likelihood(
                    before, self.data, thorough=thorough, rng=rng
                )
            found = self._further(before, likelihood, completes=thorough, best=best)
        except (*KERNEL_ERRORS, MemoryError) as error:
            return self.record_failure(before, reason_of(error))
        if not np.isfinite(found.log_posterior):
            return self.record_failure(before, "the likelihood is not finite")
        self.history.append(found)
        return found

    def record_failure(self, fit: Evaluation, reason: str) -> Evaluation:
        """Record that a further step of a fit has failed."""
        failed = replace(fit, score=-np.inf, status=reason)
        self.history.append(failed)
        return failed

    def fit_exactly(self, before: Evaluation) -> Evaluation:
        """Fit a kernel further by its exact likelihood on all rows; O(n_samples) for noise."""
        return self._further(before, ExactLikelihood(before.expression, self.data), completes=True)

    def draw(self, fit: Evaluation) -> FloatArray:
        """Draw log parameters (n_draws, n_params) from Laplace's approximation.

        The likelihood of some rows, counted several times each, is not as sharp as it seems. What
        the data hardly determine stays within the bounds of a fit.
        """
        theta = fit.theta
        try:
            L = cholesky(fit.hessian / fit.rows_for_each, lower=True)
        except (LinAlgError, ValueError):  # a saddle, or not finite
            return theta[None]
        white = np.random.default_rng(_DRAW_STREAM).normal(size=(len(theta), 100))
        within = self._posterior(ExactLikelihood(fit.expression, self.evaluator.data))
        return np.clip(theta + np.linalg.solve(L.T, white).T, within.lower, within.upper)

    def _further(
        self, start: Evaluation, likelihood: Likelihood, *, completes: bool, best: float = -np.inf
    ) -> Evaluation:
        """Maximise a likelihood from the parameters of an earlier fit, and score the maximum.

        With ``completes``, the score is that of all rows at the maximum, with the Hessian there;
        otherwise the run's estimate of the Hessian serves.
        """
        began = time.perf_counter()
        log_structure_prior = self.evaluator.structure_prior(start.expression)
        posterior, n_rows = self._posterior(likelihood), likelihood.data.noise.n_readings
        times = np.full(len(start.theta), n_rows / start.n_rows)
        if self.approximation.is_exact:  # of a longer series
            times[posterior.is_period] **= 3
        curvature = _scaled_hessian(start.hessian, times, posterior, start.theta)
        theta, keeps = start.theta, np.array([one.keeps_prior for one in likelihood.parameters])
        known = np.where(posterior.is_period & keeps, posterior.centre, theta)  # known periods
        if not np.array_equal(theta, known):
            theta = max((theta, known), key=posterior.value)
        begin = Point(theta, curvature=curvature)
        mode = maximise(posterior, begin, max_iterations=25, tolerance=1e-2)
        maximum, fitted = measure_maximum(posterior, mode, mode.curvature), posterior
        least = best - FAR_BELOW_BEST - log_structure_prior
        n_entered = len(likelihood.data.y) / likelihood.rows_for_each
        is_worth_it = completes and n_entered <= MAX_MEASURED_ROWS
        if is_worth_it and log_evidence_or_nothing(posterior, maximum) >= least:
            maximum = self._measured(posterior, maximum)
        if completes and n_rows < self.data.noise.n_readings:
            fitted, maximum = self._completed(likelihood, maximum)
        # rows that have not entered are as likely as those that have, less one nat a parameter
        # for which these were fitted (Akaike); each of these stands for rows_for_each
        optimism = (likelihood.rows_for_each - 1) * len(mode.theta)
        score = start.score - log_structure_prior
        if self.criterion is not None:  # those for approximations draw no random numbers
            fit = KernelFit(fitted, maximum, [], np.random.default_rng(0))
            with custom_part(self.criterion, type(self.criterion).__name__):
                score = self.criterion(fit).value - optimism
        return record_fit(
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

    def _posterior(self, likelihood: Likelihood) -> LogPosterior:
        return LogPosterior(likelihood, priors=self.evaluator.priors, deadline=self.deadline)

    def _measured(self, posterior: LogPosterior, maximum: Maximum) -> Maximum:
        """Compute the Hessian if it is that of a maximum; by 500 blocks, to a few hundredths."""
        likelihood, few = posterior.likelihood, posterior
        if isinstance(likelihood, NeighbourLikelihood):
            few = self._posterior(likelihood.with_fewer_blocks(500))
        with suppress(NotAMaximumError):
            measured = replace(maximum, hessian=few.hessian(maximum.mode.theta, maximum.hessian))
            if np.isfinite(log_evidence_or_nothing(posterior, measured)):
                return measured
        return maximum

    def _completed(self, of_some: Likelihood, maximum: Maximum) -> tuple[LogPosterior, Maximum]:
        """Take the maximum on some rows, with the same inducing points, as that on all rows."""
        kernel, data, theta = of_some.expression, self.data, maximum.mode.theta
        if isinstance(of_some, InducingLikelihood):
            posterior = self._posterior(InducingLikelihood(kernel, data, of_some.points))
        else:
            posterior = self._posterior(ExactLikelihood(kernel, data))
        times = data.noise.n_readings / of_some.data.noise.n_readings
        hessian = _scaled_hessian(maximum.hessian, times, posterior, theta)
        hessian = maximum.hessian if hessian is None else hessian
        mode = Point(theta, posterior.value(theta))
        return posterior, replace(maximum, mode=mode, hessian=hessian)


def _scaled_hessian(
    hessian: FloatArray, times: float | FloatArray, posterior: LogPosterior, theta: FloatArray
) -> FloatArray | None:
    """Guess the Hessian for ``times`` as many rows, None if it is not finite.

    ``times`` may differ by parameter. The part of the prior stays as it is. That of the rows cannot
    curve upwards at a maximum.
    """
    if not np.all(np.isfinite(hessian)):
        return None
    of_prior = np.diag(posterior.prior.curvature(theta))
    curvatures, axes = np.linalg.eigh(hessian - of_prior)
    roots = np.sqrt(np.broadcast_to(times, len(theta)))
    return (axes * np.maximum(curvatures, 0.0)) @ axes.T * np.outer(roots, roots) + of_prior
