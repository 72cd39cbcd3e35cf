"""The log posterior of the parameters of a kernel, its gradient and Hessian."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from math import sqrt

import numpy as np

from autokernel.data.periodogram import longest_period
from autokernel.deadline import NEVER, Deadline
from autokernel.exceptions import NotAMaximumError
from autokernel.inference import ExactLikelihood, Likelihood
from autokernel.kernels import LogGammaPrior, Priors, Role
from autokernel.typing import BoolArray, FloatArray

N_TIMED_ROWS = 500  # of a call that is made to know how long one of many rows takes
_ONE_SIDED = 3e-5  # one-sided step in a log parameter
_STEP = 5e-3  # central step in standard deviations along an axis, if the first step is too long


def difference_hessian(
    gradient: Callable[[FloatArray], FloatArray],
    theta: FloatArray,
    *,
    oscillates: BoolArray,
    guess: FloatArray | None = None,
) -> FloatArray:
    """Compute the Hessian H of a function of log parameters from its exact gradient.

    The mask ``oscillates`` (n_params,) is true for parameters along which the function oscillates,
    as it does along a period. Its fourth derivative is then larger, and the steps are shorter. A
    ``guess`` (n_params,) of the diagonal of H saves calls for steps that are too long.

    One-sided differences take n_params + 1 calls. A parameter along which the function oscillates,
    or that is determined sharply, has central differences instead, with two to seven calls. Their
    step is short compared with ``1 / sqrt(H_ii)``, the conditional standard deviation along the
    axis, which may be a millionth for a period. Differences along axis i and along axis j both give
    ``H_ij``, with different truncation and rounding errors. Their disagreement, in units of the
    standard deviations, estimates the error of the log determinant, except for errors of the
    diagonal alone. Above 1e-3 nats the gradient has lost digits: central differences are tried
    along all axes, then with steps ten times as long. The most symmetric result is returned.
    """
    here = gradient(theta)
    longest = np.where(oscillates, 1e-2, 5e-2)  # central step in standard deviations
    axes = np.eye(len(theta))
    curvatures = np.zeros(len(theta)) if guess is None else np.abs(guess)
    first = np.minimum(3e-3, _STEP / np.sqrt(np.maximum(curvatures, 1.0)))

    @cache
    def central_row(number: int, factor: float) -> FloatArray:
        """Compute one row; the step shrinks until it is short in the standard deviation found."""
        axis, step = axes[number], factor * first[number]
        for _ in range(8):
            above, below = gradient(theta + step * axis), gradient(theta - step * axis)
            # The larger of both sides counts: far from the point, one may vanish by chance.
            curvature = float(max(abs(axis @ (above - here)), abs(axis @ (here - below))) / step)
            row = (above - below) / (2 * step)
            if step * sqrt(curvature) <= factor * longest[number]:
                break
            step = factor * _STEP / sqrt(curvature)
        return row

    def quick_row(number: int) -> FloatArray:
        """Compute one row by a one-sided difference, if its step is not too long."""
        if oscillates[number]:
            return central_row(number, 1.0)
        row = (gradient(theta + _ONE_SIDED * axes[number]) - here) / _ONE_SIDED
        is_too_long = _ONE_SIDED * sqrt(abs(axes[number] @ row)) > 1e-3
        return central_row(number, 1.0) if is_too_long else row

    answers = []
    for make_row in (quick_row, lambda n: central_row(n, 1.0), lambda n: central_row(n, 10.0)):
        answers.append(np.array([make_row(number) for number in range(len(theta))]))
        if _disagreement(answers[-1]) < 1e-3:
            break
    best = min(answers, key=_disagreement)
    return (best + best.T) / 2


def _disagreement(rows: FloatArray) -> float:
    """Estimate the error, in nats, from the asymmetry of the rows."""
    std = 1 / np.sqrt(np.maximum(np.abs(np.diag(rows)), 1.0))
    return float(np.linalg.norm((rows - rows.T) * np.outer(std, std)) / 2)


NOISE_FLOOR = 1e-8
"""Smallest noise variance, as a fraction of the mean square of the target.

A factorisation with less noise has no correct digits.
"""

_WIDEST = np.log(1e6)  # largest distance of theta from the logs of the prior means


class LogPosterior:
    """The unnormalised log posterior: the log likelihood plus the log density of the priors.

    A call that cannot end before the deadline raises an ``OutOfTimeError``. ``n_evaluations``
    counts the likelihood calls so far, failed ones included. A gradient is computed once for each
    point, as a run often starts where another one has ended. ``centre`` (n_params,) are the logs of
    the prior means, which lie between the bounds ``lower`` and ``upper`` of theta, and ``best`` is
    the best theta so far, with its ``best_value``. A period without a declared range is at most the
    longest one of which the column shows two cycles.
    """

    def __init__(
        self, likelihood: Likelihood, *, priors: Priors, deadline: Deadline = NEVER
    ) -> None:
        self.likelihood, self.deadline = likelihood, deadline
        self.expression, self.data = likelihood.expression, likelihood.data
        self._priors = priors
        self.n_evaluations = 0
        self._gradients: dict[bytes, tuple[float, FloatArray]] = {}  # with the value, by point
        self.prior = LogGammaPrior.of(likelihood.parameters, priors=priors)
        self.centre = np.log(self.prior.shape / self.prior.rate)
        self.best, self.best_value = self.centre, -np.inf
        self.lower, self.upper = self.centre - _WIDEST, self.centre + _WIDEST
        mean_square = self.data.mean_square
        if NOISE_FLOOR * mean_square > 0:
            self.lower[-1] = np.log(NOISE_FLOOR * mean_square)
            self.upper[-1] = max(self.upper[-1], np.log(mean_square))
        self.is_period = np.array([p.role == Role.PERIOD for p in likelihood.parameters])
        places = [
            self.data.inputs.known(node.view)
            for node in self.expression.nodes
            for parameter in node.parameters
            if parameter.role == Role.PERIOD and node.view is not None
        ]
        self._extents = np.array([np.ptp(x) for x in places])
        for entry, x in zip(np.flatnonzero(self.is_period), places, strict=True):
            if likelihood.parameters[entry].start is None and np.ptp(x) > 0:
                self.upper[entry] = min(self.upper[entry], np.log(longest_period(x)))
                self.lower[entry] = min(self.lower[entry], self.upper[entry] - _WIDEST)
        self.centre = np.clip(self.centre, self.lower, self.upper)

    def step_units(self, theta: FloatArray) -> FloatArray:
        """Guess the extent (n_params,) of the posterior along each parameter around a point.

        The data determine a period to some hundredths of a cycle over the extent of its column.
        With steps measured in these units, a run needs half as many of them.
        """
        units = np.ones(len(theta))
        fractions = 0.03 * np.exp(theta[self.is_period]) / np.maximum(self._extents, 1e-9)
        units[self.is_period] = np.clip(fractions, 1e-4, 1.0)
        return units

    def value(self, theta: FloatArray) -> float:
        """Compute the log posterior in nats, ``-inf`` if K has no Cholesky factor.

        This is a third of the work of :meth:`value_and_gradient`.
        """
        with self._call(self.likelihood.work / 3):
            value = self.likelihood.value(theta) + float(self.prior.log_density(theta))
        self._remember(theta, value)
        return value

    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Compute the log posterior in nats, ``-inf`` if K has no factor, and its gradient."""
        if (known := self._gradients.get(theta.tobytes())) is None:
            with self._call(self.likelihood.work):
                value, gradient = self.likelihood.value_and_gradient(theta)
            value += float(self.prior.log_density(theta))
            self._remember(theta, value)
            known = value, gradient + self.prior.gradient(theta)
            self._gradients[theta.tobytes()] = known
        return known

    def leave_one_out(self, theta: FloatArray) -> FloatArray:
        """Compute the log predictive density (n_samples,) of each target given all others."""
        assert isinstance(self.likelihood, ExactLikelihood)  # other fits have no such criterion
        with self._call(self.likelihood.work):
            return self.likelihood.leave_one_out(theta)

    def _remember(self, theta: FloatArray, value: float) -> None:
        if value > self.best_value:
            self.best, self.best_value = theta.copy(), value

    @contextmanager
    def _call(self, work: float) -> Iterator[None]:
        """Count a call, and time it, unless it is expected to miss the deadline.

        The first exact one of many rows comes after one of few, from which its time is expected.
        """
        is_many = len(self.data.y) > 2 * N_TIMED_ROWS and self.deadline.seconds_left < np.inf
        if is_many and self.n_evaluations == 0 and isinstance(self.likelihood, ExactLikelihood):
            few = ExactLikelihood(self.expression, self.data.take(np.arange(N_TIMED_ROWS)))
            timed = LogPosterior(few, priors=self._priors, deadline=self.deadline)
            timed.value_and_gradient(self.centre)
        with self.deadline.timed(type(self.likelihood), work):
            self.n_evaluations += 1
            yield

    def hessian(self, theta: FloatArray, guess: FloatArray | None = None) -> FloatArray:
        """Compute the Hessian (n_params, n_params) of the *negative* log posterior.

        It takes about n_params likelihood calls, fewer with a ``guess`` (n_params, n_params) of its
        diagonal, see :func:`difference_hessian`. Its log determinant agrees with a computation in
        sixty digits to 1e-3 nats, even with the noise at its floor, and mostly to 1e-4. A
        ``NotAMaximumError`` is raised if the covariance has no Cholesky factor next to the point.
        """

        def gradient(point: FloatArray) -> FloatArray:
            value, slopes = self.value_and_gradient(point)
            if not np.isfinite(value):
                raise NotAMaximumError("the covariance has no Cholesky factor next to the point")
            return -slopes

        diagonal = None if guess is None else np.diag(guess)
        return difference_hessian(gradient, theta, oscillates=self.is_period, guess=diagonal)
