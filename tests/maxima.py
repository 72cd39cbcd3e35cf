"""Maxima of densities that are no log posterior."""

import numpy as np
import numpy.typing as npt

from autokernel.evidence.maximise import Point
from autokernel.evidence.maximum import Maximum


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
    """A log posterior given by two functions."""

    def __init__(self, value, gradient, *, lower, upper):
        self.value, self.gradient = value, gradient
        self.lower, self.upper = np.array(lower, float), np.array(upper, float)
        self.n_evaluations = 0

    def step_scales(self, theta):
        return np.ones(len(theta))

    def value_and_gradient(self, theta):
        self.n_evaluations += 1
        return float(self.value(theta)), self.gradient(theta)
