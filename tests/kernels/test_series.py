"""Base kernels of time series: what processes they are the covariances of."""

import numpy as np
import pytest
from scipy.integrate import dblquad

from autokernel.expression import Leaf
from autokernel.kernels import BASE_KERNELS
from tests.batteries import covariance

X = np.array([-0.4, 0.0, 0.15, 0.7, 1.0])


def values(name, params, x=X):
    return covariance(Leaf(BASE_KERNELS[name], 0), np.array(params), x[:, None])


@pytest.mark.parametrize(("x", "z"), [(0.7, 0.3), (-0.4, 0.6)])
def test_the_damped_trend_is_the_integral_of_a_slope_that_is_forgotten(x, z):
    length, variance, offset = 0.3, 2.0, 0.1

    def way(a, b):  # the double integral of the covariance of the slope
        return dblquad(lambda u, w: np.exp(-abs(u - w) / length), 0, a, 0, b, epsabs=1e-9)[0]

    expected = variance * way(x, z) / way(1, 1) + offset
    found = values("IOU", [length, variance, offset], np.array([x, z]))[0, 1]
    assert found == pytest.approx(expected, rel=1e-6)  # the integrand has an edge


@pytest.mark.parametrize(("x", "z"), [(0.7, 0.3), (1.0, 1.0), (-0.4, 0.6), (-0.2, -0.9)])
def test_the_integrated_walk_is_the_integral_of_a_random_walk(x, z):
    def walk(u, w):
        return min(abs(u), abs(w)) if u * w > 0 else 0.0

    variance = dblquad(walk, 0, 1, 0, 1)[0]
    expected = dblquad(walk, 0, x, 0, z, epsabs=1e-9)[0] / variance
    found = values("IRW", [1.0, 1e-12, 1e-12], np.array([x, z]))[0, 1]
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_the_damped_trend_is_between_a_walk_and_a_line():
    np.testing.assert_allclose(
        values("IOU", [1e-6, 2.0, 0.5]), values("RW", [2.0, 0.5]), rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        values("IOU", [1e5, 2.0, 0.5]), values("LIN", [2.0, 0.5]), rtol=1e-4, atol=1e-4
    )


def test_growth_is_a_line_that_levels_off():
    np.testing.assert_allclose(
        values("SAT", [1e5, 2.0, 0.5]), values("LIN", [2.0, 0.5]), rtol=1e-4, atol=1e-4
    )
    late = np.diagonal(values("SAT", [0.1, 2.0, 1e-9], np.array([0.3, 1.0, 2.0])))
    np.testing.assert_allclose(late, 2.0, rtol=0.1)  # most of it has passed after 0.3
