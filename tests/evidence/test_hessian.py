"""Differences of gradients that are known in closed form."""

import numpy as np
import pytest

from autokernel.evidence.posterior import difference_hessian

NONE = np.zeros(6, dtype=bool)


class Counted:
    """A gradient that counts its calls."""

    def __init__(self, gradient):
        self.gradient, self.n_calls = gradient, 0

    def __call__(self, theta):
        self.n_calls += 1
        return self.gradient(theta)


def log_det_error(found, exact):
    return abs(np.linalg.slogdet(found)[1] - np.linalg.slogdet(exact)[1]) / 2


def quadratic(n_params):
    factor = np.random.default_rng(0).normal(size=(n_params, 2 * n_params))
    return factor @ factor.T


def test_the_hessian_of_a_quadratic_is_exact_and_costs_a_call_for_each_parameter():
    matrix = quadratic(6)
    gradient = Counted(lambda theta: matrix @ theta)
    hessian = difference_hessian(gradient, np.zeros(6), oscillates=NONE[:6])
    np.testing.assert_allclose(hessian, matrix, rtol=1e-12)  # rounding
    np.testing.assert_array_equal(hessian, hessian.T)
    assert gradient.n_calls == 6 + 1


@pytest.mark.parametrize("sharpness", [1e2, 1e5, 1e8])
def test_an_axis_may_be_far_sharper_than_the_others(sharpness):
    # 1 - cos along a turned axis, as the log posterior of a period: far off its slope says nothing
    axis = np.array([0.01, 1.0, 0.0])
    gradient = Counted(lambda t: sharpness * np.sin(sharpness * (axis @ t)) * axis + 3 * t)
    exact = sharpness**2 * np.outer(axis, axis) + 3 * np.eye(3)
    hessian = difference_hessian(gradient, np.zeros(3), oscillates=NONE[:3])
    # steps of up to 5e-2 widths: sin(h) / h is 1 - h^2 / 6
    np.testing.assert_allclose(np.diag(hessian), np.diag(exact), rtol=5e-4)
    assert gradient.n_calls <= 3 + 1 + 2 * 6  # three central tries for each of two sharp axes


def test_the_error_of_a_skew_function_is_small():
    # the gradient of sum(exp(t)) - t, which is skew as log posteriors are: widths and third
    # derivatives are one, so that a one-sided step of 3e-5 is off by half of that in each entry
    hessian = difference_hessian(lambda theta: np.exp(theta) - 1, np.zeros(4), oscillates=NONE[:4])
    np.testing.assert_allclose(np.diag(hessian), 1 + 1.5e-5, rtol=1e-8)
    assert log_det_error(hessian, np.eye(4)) < 5e-5


def test_an_oscillation_is_differenced_over_shorter_steps():
    gradient = Counted(lambda theta: 10 * np.sin(10 * theta))
    hessian = difference_hessian(gradient, np.zeros(2), oscillates=np.array([False, True]))
    relative = np.abs(np.diag(hessian) / 100 - 1)
    # 1 - sin(h) / h with a one-sided step of 3e-4 widths and a central one of 5e-3
    np.testing.assert_allclose(relative, [1.5e-8, 4.2e-6], rtol=0.02)


def test_a_side_on_which_the_gradient_vanishes_far_off_does_not_mislead():
    gradient = Counted(lambda theta: np.where(theta > 1e-3, 0.0, 1e4 * theta))
    hessian = difference_hessian(gradient, np.zeros(1), oscillates=NONE[:1])
    np.testing.assert_allclose(hessian, 1e4, rtol=1e-12)  # rounding


def test_a_point_on_a_bound_has_a_slope_that_does_not_shorten_the_step():
    matrix, slope = quadratic(4), np.array([0.0, 0.0, 0.0, 1e4])
    gradient = Counted(lambda theta: matrix @ theta + slope)
    # rounding of the slope of 1e4 over a step of 3e-5: 6e-8
    np.testing.assert_allclose(
        difference_hessian(gradient, np.zeros(4), oscillates=NONE[:4]), matrix, atol=1e-7
    )
    assert gradient.n_calls == 4 + 1


def test_a_gradient_that_has_lost_digits_is_differenced_over_longer_steps():
    matrix, rng = quadratic(5), np.random.default_rng(1)
    noise = 3e-4
    gradient = Counted(lambda theta: matrix @ theta + noise * rng.normal(size=5))
    error = log_det_error(difference_hessian(gradient, np.zeros(5), oscillates=NONE[:5]), matrix)
    # the noise over steps of 3e-2, ten entries of widths 1/3: a tenth of that over the first steps
    assert error < 1e-2
    assert gradient.n_calls == 5 + 2 * (2 * 5) + 1  # one-sided, then central with both steps
