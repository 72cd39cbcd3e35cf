"""Scores of kernels on many rows by intervals: a lower bound, and an upper bound beside it."""

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Criterion, Evaluation, Evaluator, Job
from autokernel.evidence.evaluator import digest, kernel_errors, seconds_of
from autokernel.exceptions import EvaluationError
from autokernel.expression import NOISE, Expression, StructurePrior
from autokernel.inference import InducingLikelihood, TrainingData, one_blas_thread
from autokernel.inference.inducing import upper_bound
from autokernel.kernels import Priors
from autokernel.many_rows.approximation import ByInducingPoints
from autokernel.many_rows.climb import Climb, Fit
from autokernel.typing import FloatArray

N_FEW = 500  # rows on which parameters are searched from nothing
_FEWEST = 128  # inducing points to begin with: with fewer, a rough function seems smooth
_CLOSED = 0.1  # nats between the bounds with which more points are not worth their time


class BoundedEvaluator(Evaluator):
    """Scores kernels by a lower bound of the log likelihood, with an upper bound beside it.

    A kernel is fitted exactly to some of the rows first, then by inducing points to all of them.
    The number of points is doubled until the interval closes, or lies below the best known score.
    The upper bound holds at the parameters of both fits; at others the score may be higher.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Inputs, used as they come.
    y : ndarray of shape (n_samples,)
        Targets, used as they come.
    n_inducing : int
        Most inducing points.
    criterion : Criterion
        Criterion for approximate likelihoods.
    priors, seed, structure_prior
        As for :class:`Evaluator`.
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        *,
        n_inducing: int,
        criterion: Criterion,
        priors: Priors,
        seed: int,
        structure_prior: StructurePrior,
    ) -> None:
        rows = np.sort(np.random.default_rng(seed).permutation(len(y))[:N_FEW])
        super().__init__(
            X[rows],
            y[rows],
            priors=priors,
            seed=seed,
            criterion=criterion,
            structure_prior=structure_prior,
        )
        self._many, self._n_inducing = TrainingData(X, y), n_inducing

    def run(self, job: Job, *, deadline: Deadline = NEVER) -> Evaluation:
        """Fit and score one kernel.

        Raises
        ------
        OutOfTimeError
            Once the deadline has passed.
        """
        began = time.perf_counter()
        times = len(self.data.y) / len(self._many.y)
        warm_starts = tuple(
            tuple(
                start if start.hessian is None else start._replace(hessian=times * start.hessian)
                for start in together
            )
            for together in job.warm_starts
        )
        of_few = super().run(Job(job.expression, warm_starts), deadline=deadline)
        if not np.isfinite(of_few.log_posterior):
            return of_few
        try:
            with kernel_errors(), one_blas_thread():
                found = self._enclose(of_few, job.best, deadline)
        except EvaluationError as error:
            found = replace(of_few, score=-np.inf, status=str(error))
        return replace(found, seconds=time.perf_counter() - began)

    def seconds_of_call(self, expression: Expression) -> float:
        """Estimate the seconds of a call on few rows and of half a call on all, as is usual."""
        n_points = min(2 * _FEWEST, self._n_inducing)
        points = self._many.X[:n_points]
        bound = InducingLikelihood(expression, self._many, points)
        return super().seconds_of_call(expression) + 0.5 * seconds_of(bound)

    def fingerprint(self) -> str:
        """Digest the data and the settings: all that a score depends on besides the job."""
        many = (self._many.X.tobytes(), self._many.y.tobytes())
        return digest(super().fingerprint(), *many, self._n_inducing)

    def _enclose(self, of_few: Evaluation, best: float, deadline: Deadline) -> Evaluation:
        """Fit a kernel with more and more inducing points, and compute both bounds of its score.

        A bound by few points is highest for smooth functions. Therefore, the fit to few rows is
        enclosed too, and the next climb begins where the bound by more points is higher.
        """
        first = Fit(of_few, len(self.data.y))
        if of_few.expression == NOISE:
            exact = self._climb(ByInducingPoints(1), deadline).exactly(first).evaluation
            return replace(exact, upper_bound=exact.score)
        starts, n_evaluations = [first], of_few.n_evaluations
        n_points = min(_FEWEST, self._n_inducing)
        while True:
            points = ByInducingPoints(n_points)
            intervals = [self._interval(points, fit.evaluation) for fit in starts]
            _, start = max(zip(intervals, starts, strict=True), key=lambda one: one[0].lower)
            found = self._climb(points, deadline)(start, thorough=True, best=best)
            if found is None:
                raise EvaluationError("the fit with inducing points failed")
            evaluation = found.evaluation
            n_evaluations += evaluation.n_evaluations
            here = self._interval(points, evaluation)
            above = max(here.upper, intervals[0].upper) - evaluation.log_posterior
            upper = evaluation.score + above
            if upper < best or above < _CLOSED or n_points >= self._n_inducing:
                return replace(evaluation, upper_bound=upper, n_evaluations=n_evaluations)
            starts, n_points = [first, found], min(2 * n_points, self._n_inducing)

    def _interval(self, points: ByInducingPoints, fit: Evaluation) -> "_Interval":
        """Enclose the log posterior of a kernel on all rows at the parameters of a fit."""
        bound = points.bound(fit.expression, fit.theta, self._many)
        lower, upper = bound.value(fit.theta), upper_bound(bound, fit.theta)
        return _Interval(lower + fit.log_prior, upper + fit.log_prior)

    def _climb(self, approximation: ByInducingPoints, deadline: Deadline) -> Climb:
        """Build the fit of kernels to all rows."""
        return Climb(
            approximation,
            self._many,
            priors=self._priors,
            structure_prior=self._structure_prior,
            criterion=self._criterion,
            seed=self._seed,
            deadline=deadline,
        )

    def _settings(self) -> dict[str, Any]:
        """Return the arguments from which another process rebuilds this evaluator."""
        settings = super()._settings()
        many = {"X": self._many.X, "y": self._many.y}
        return {**settings, **many, "n_inducing": self._n_inducing}


class _Interval(NamedTuple):
    """Bounds of a log posterior, in nats."""

    lower: float
    upper: float
