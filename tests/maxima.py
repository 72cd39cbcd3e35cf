"""Log posteriors of kernels, and maxima of densities that are none."""

import numpy as np
import numpy.typing as npt

from autokernel.evidence.maximise import Maximum, Point
from autokernel.evidence.posterior import LogPosterior, difference_hessian
from autokernel.expression import parse_expression
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import check_priors


def posterior_of(kernel, X, y, *, priors="paper", base_kernels=(), kind=LogPosterior, **options):
    """Build the log posterior of a kernel, which may be a text."""
    if isinstance(kernel, str):
        kernel = parse_expression(kernel, base_kernels=base_kernels)
    likelihood = ExactLikelihood(kernel, TrainingData(X, y))
    return kind(likelihood, priors=check_priors(priors), **options)


def maximum_of(
    theta: npt.ArrayLike,
    log_density: float,
    hessian: npt.ArrayLike,
    outward: npt.ArrayLike | None = None,
) -> Maximum:
    """Build a maximum that has no slopes but those beyond its bounds, none by default."""
    theta, hessian = np.array(theta, dtype=float), np.array(hessian, dtype=float)
    slopes = np.zeros(len(theta)) if outward is None else np.array(outward, dtype=float)
    return Maximum(Point(theta, log_density), hessian, slopes, slopes)


class Toy:
    """A log posterior given by two functions, which has no value where it ``fails``.

    ``points`` are those at which it was evaluated, by themselves and not for a Hessian.
    """

    def __init__(self, value, gradient, *, lower=(-60, -60), upper=(60, 60), fails=lambda t: False):
        self.value, self.gradient, self.fails = value, gradient, fails
        self.lower, self.upper = np.array(lower, float), np.array(upper, float)
        self.points = []

    @property
    def n_evaluations(self):
        return len(self.points)

    def step_units(self, theta):
        return np.ones(len(theta))

    def value_and_gradient(self, theta):
        self.points.append(theta)
        if self.fails(theta):
            return -np.inf, np.zeros(len(theta))
        return float(self.value(theta)), self.gradient(theta)

    def hessian(self, theta, guess=None):
        never = np.zeros(len(theta), dtype=bool)
        return difference_hessian(lambda point: -self.gradient(point), theta, oscillates=never)
