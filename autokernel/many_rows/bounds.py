"""Scores of kernels on many rows by intervals: a lower and an upper bound."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Evaluation, Evaluator, Job
from autokernel.evidence.evaluator import digest
from autokernel.exceptions import KERNEL_ERRORS, reason_of
from autokernel.inference import TrainingData, one_blas_thread, upper_bound
from autokernel.many_rows.approximation import ByInducingPoints
from autokernel.many_rows.further import ManyRows


class BoundedEvaluator(Evaluator):
    """Scores kernels by a lower bound of the log likelihood, with an upper bound.

    A kernel is fitted exactly to some of the rows first, then by inducing points to all of them.
    The number of points is doubled until the interval closes, or lies below the best known score,
    or they are ``n_inducing``. The upper bound holds at the parameters of both fits; at others the
    score may be higher. The criterion is one for approximate likelihoods.
    """

    def __init__(self, data: TrainingData, *, n_inducing: int, seed: int, **settings: Any) -> None:
        self._many, self._n_inducing = data, n_inducing
        super().__init__(data.drawn(500, seed), seed=seed, **settings)
        self.n_samples = data.noise.n_readings
        self._settings |= {"data": data, "n_inducing": n_inducing}

    def run(self, job: Job, *, deadline: Deadline = NEVER) -> Evaluation:
        began = time.perf_counter()
        times = self.data.noise.n_readings / self._many.noise.n_readings
        starts = tuple(tuple(one.for_rows(times) for one in each) for each in job.warm_starts)
        of_few = super().run(Job(job.expression, starts), deadline=deadline)
        if not np.isfinite(of_few.log_posterior):
            return of_few
        try:
            with one_blas_thread():
                found = self._enclose(of_few, job.best, deadline)
        except KERNEL_ERRORS as error:
            found = replace(of_few, score=-np.inf, status=reason_of(error))
        return replace(found, seconds=time.perf_counter() - began)

    def fingerprint(self) -> str:
        return digest(super().fingerprint(), *self._many.definition, self._n_inducing)

    def _enclose(self, of_few: Evaluation, best: float, deadline: Deadline) -> Evaluation:
        """Fit a kernel with more and more inducing points, and compute both bounds of its score.

        A bound by few points is highest for smooth functions. Therefore, the fit to few rows is
        enclosed too, and the next fit begins where the bound by more points is higher.
        """
        if not of_few.expression.leaves:
            rows = ManyRows(ByInducingPoints(1), self._many, self, deadline=deadline)
            exact = rows.fit_exactly(of_few)
            return replace(exact, upper_bound=exact.score)
        starts, n_evaluations = [of_few], of_few.n_evaluations
        n_points = min(128, self._n_inducing)  # with fewer, a rough function seems smooth
        while True:
            points = ByInducingPoints(n_points)
            bounds = [self._bounds(points, fit) for fit in starts]
            highest = int(np.argmax([lower for lower, _ in bounds]))
            rows = ManyRows(points, self._many, self, deadline=deadline)
            found = rows.fit(starts[highest], thorough=True, best=best)
            n_evaluations += found.n_evaluations
            if not np.isfinite(found.score):
                return found
            _, upper = self._bounds(points, found)
            above = max(upper, bounds[0][1]) - found.log_posterior
            upper = found.score + above
            is_closed = above < 0.1  # nats, for which more points are not worth their time
            if upper < best or is_closed or n_points >= self._n_inducing:
                return replace(found, upper_bound=upper, n_evaluations=n_evaluations)
            starts, n_points = [of_few, found], min(2 * n_points, self._n_inducing)

    def _bounds(self, points: ByInducingPoints, fit: Evaluation) -> tuple[float, float]:
        """Enclose the log posterior of a kernel on all rows at the parameters of a fit, in nats."""
        bound = points.bound(fit, self._many)
        lower, upper = bound.value(fit.theta), upper_bound(bound, fit.theta)
        return lower + fit.log_prior, upper + fit.log_prior
