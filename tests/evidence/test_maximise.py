"""One run: what it knows of the curvature, and how long its steps are."""

import numpy as np
import pytest

from autokernel.evidence.maximise import maximise
from tests.maxima import Toy

PRECISION = np.array([[3.0, 1.0], [1.0, 2.0]])
TOP = np.array([0.7, -1.2])
FAR = np.array([-1.5, 0.6])  # within one longest step of the top


def hill_of(value, gradient, *, n_params=2, bound=60.0):
    """Build a log posterior from its value and gradient, within wide bounds."""
    bounds = bound * np.ones(n_params)
    return Toy(value, gradient, lower=-bounds, upper=bounds)


def gaussian():
    return hill_of(
        lambda t: -0.5 * (t - TOP) @ PRECISION @ (t - TOP), lambda t: -PRECISION @ (t - TOP)
    )


def test_with_the_true_curvature_one_step_reaches_the_top_of_a_gaussian():
    hill = gaussian()
    mode = maximise(hill, FAR, max_iterations=100, curvature=PRECISION)
    np.testing.assert_allclose(mode.theta, TOP, atol=1e-12)
    assert hill.n_evaluations == 2  # the start and the top
    plain = gaussian()
    maximise(plain, FAR, max_iterations=100)
    assert plain.n_evaluations > 2 * hill.n_evaluations  # or the test shows nothing


def test_a_curvature_of_the_wrong_sign_still_says_how_long_a_step_is():
    hill = gaussian()
    maximise(hill, FAR, max_iterations=100, curvature=-PRECISION)
    assert hill.n_evaluations == 2


def test_the_curvature_at_the_end_is_learnt_along_the_way():
    mode = maximise(gaussian(), FAR, max_iterations=100)
    # two independent steps determine both curvatures of a parabola, in exact arithmetic
    np.testing.assert_allclose(mode.curvature, PRECISION, atol=0.05)


@pytest.mark.parametrize(
    "curvature",
    [1e3 * PRECISION, 1e-3 * PRECISION, -PRECISION, np.diag([1.0, -4.0]), np.zeros((2, 2))],
    ids=["too stiff", "too soft", "of a valley", "of a saddle", "flat"],
)
def test_a_wrong_curvature_leads_to_the_same_top(curvature):
    mode = maximise(gaussian(), FAR, max_iterations=300, curvature=curvature)
    np.testing.assert_allclose(mode.theta, TOP, atol=1e-3)


def test_a_step_is_doubled_where_the_slope_hardly_falls():
    hill = hill_of(lambda t: -np.sqrt(1 + t @ t), lambda t: -t / np.sqrt(1 + t @ t), n_params=1)
    mode = maximise(hill, np.array([50.0]), max_iterations=6)
    # six steps of three at most, the first of one, would end at 34 at best
    assert abs(mode.theta[0]) < 20


@pytest.mark.parametrize(
    ("start", "most"),
    [((-4.0,) * 6, 30), ((-8.0, -1.0, -3.0, 0.0, -6.0, -2.0), 28)],
    ids=["along all axes", "far along some axes"],
)
def test_curvatures_that_fall_by_orders_of_magnitude_on_the_way_cost_few_calls(start, most):
    # a likelihood far below the best noise variance looks like this; the axes are mixed
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    hill = hill_of(
        lambda t: -np.sum(np.exp(-axes @ t) + axes @ t),
        lambda t: axes.T @ (np.exp(-axes @ t) - 1),
        n_params=6,
    )
    mode = maximise(hill, axes.T @ np.array(start), max_iterations=300)
    assert mode.log_posterior == pytest.approx(-6.0, abs=1e-9)
    # 23 and 21; with a curvature that only its own direction corrects, 84 and 80, and without the
    # first estimate of its size, 35 from the second start
    assert hill.n_evaluations < most


def test_the_estimate_stays_positive_definite_where_the_posterior_curves_upwards():
    hill = hill_of(lambda t: -np.log1p(t**2).sum(), lambda t: -2 * t / (1 + t**2))
    mode = maximise(hill, np.array([6.0, -9.0]), max_iterations=1, curvature=np.eye(2))
    assert np.all(2 * (mode.theta**2 - 1) > 0)  # or the test shows nothing: the second derivatives
    assert np.linalg.eigvalsh(mode.curvature)[0] > 0


@pytest.mark.parametrize("begin", [0.0, 3.0, 9.0], ids=["held at first", "free", "beyond a bound"])
def test_a_parameter_at_a_bound_is_held_only_while_the_slope_holds_it(begin):
    met = []
    # the second parameter rises only once the first has passed 2
    hill = hill_of(
        lambda t: met.append(t) or -0.5 * (t[0] - 4) ** 2 + t[1] * (t[0] - 2) - 0.5 * t[1] ** 2,
        lambda t: np.array([4 - t[0] + t[1], t[0] - 2 - t[1]]),
        bound=5.0,
    )
    hill.lower = np.array([-5.0, 0.0])
    hill.upper = np.array([4.5, 5.0])
    mode = maximise(hill, np.array([begin, 0.0]), max_iterations=100)
    np.testing.assert_allclose(mode.theta, [4.5, 2.5], atol=1e-3)  # t0 at its bound, t1 = t0 - 2
    assert np.all((hill.lower <= met) & (met <= hill.upper))


def test_a_run_that_goes_on_with_the_curvature_of_its_end_takes_fewer_calls():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, 12))
    precision = A @ A.T + np.eye(12)
    n_calls = []
    for keeps in (True, False):
        hill = hill_of(lambda t: -0.5 * t @ precision @ t, lambda t: -precision @ t, n_params=12)
        half = maximise(hill, np.ones(12), max_iterations=10)
        curvature = half.curvature if keeps else None
        end = maximise(hill, half.theta, max_iterations=300, curvature=curvature)
        np.testing.assert_allclose(end.theta, 0.0, atol=1e-4)
        n_calls.append(hill.n_evaluations)
    assert n_calls[0] < 0.8 * n_calls[1]


def test_a_soft_parameter_beside_a_stiff_one_is_not_taken_for_converged():
    precision = np.diag([1e4, 1.0])
    hill = hill_of(lambda t: -0.5 * t @ precision @ t, lambda t: -precision @ t)
    mode = maximise(hill, np.array([1.0, 1.3]), max_iterations=100, tolerance=1e-4)
    assert mode.log_posterior > -1e-3


def test_a_run_with_a_known_curvature_goes_round_points_without_a_factor():
    hill = gaussian()
    true_value = hill.value_and_gradient

    def value_and_gradient(theta):
        if np.linalg.norm(theta - FAR) > 1.2 and np.linalg.norm(theta - TOP) > 1.2:
            return -np.inf, np.zeros(2)
        return true_value(theta)

    hill.value_and_gradient = value_and_gradient
    mode = maximise(hill, FAR, max_iterations=100, curvature=PRECISION / 9)
    np.testing.assert_allclose(mode.theta, TOP, atol=1e-4)
