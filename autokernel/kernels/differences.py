"""Derivatives by differences, for kernels and operators that have none of their own."""

from collections.abc import Callable

import numpy as np

from autokernel.typing import FloatArray

_STEP = 1e-4  # of a log parameter


def log_derivatives(
    value: Callable[[FloatArray], FloatArray], params: FloatArray
) -> list[FloatArray]:
    """Differentiate an array in the log of each parameter.

    Notes
    -----
    Central differences of the fourth order, with four calls for each parameter. With this step the
    truncation is below 1e-8 of the value for a period that repeats thirty times, and the rounding
    is some 1e-12 of it.
    """
    derivatives = []
    for axis in np.eye(len(params)):
        one, two = np.exp(_STEP * axis), np.exp(2 * _STEP * axis)
        near = value(params * one) - value(params / one)
        far = value(params * two) - value(params / two)
        derivatives.append((8 * near - far) / (12 * _STEP))
    return derivatives


def difference_gradient(
    value: Callable[[FloatArray], FloatArray], params: FloatArray, adjoint: FloatArray
) -> FloatArray:
    """Gradient (n_params,) of ``sum(adjoint * value)`` in the logs of the parameters."""
    return np.array([(adjoint * slope).sum() for slope in log_derivatives(value, params)])
