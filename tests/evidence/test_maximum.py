"""From saddles, ridges and points short of the top to a maximum."""

import numpy as np
import pytest

from autokernel import NotAMaximumError, parse_expression
from autokernel.datasets import load_mauna_loa
from autokernel.evidence import maximum as maximum_module
from autokernel.evidence.maximise import Point, maximise
from autokernel.evidence.maximum import find_best_maximum, find_maximum, measure_maximum
from autokernel.evidence.posterior import LogPosterior, difference_hessian
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels.parameters import PRESETS, check_priors
from tests.maxima import maximum_of

MAXIMUM = maximum_of([1.0, 2.0], -3.0, [[4.0, 1.0], [1.0, 9.0]], [0.0, 5.0])


class Landscape:
    """A posterior given by a function and its gradient."""

    def __init__(self, value, gradient, *, bound=10.0, n_params=2):
        self.value, self.gradient = value, gradient
        self.lower, self.upper = -bound * np.ones(n_params), bound * np.ones(n_params)

    def step_scales(self, theta):
        return np.ones(len(theta))

    def value_and_gradient(self, theta):
        return float(self.value(theta)), self.gradient(theta)

    def hessian(self, theta):
        never = np.zeros(len(theta), dtype=bool)
        return difference_hessian(lambda point: -self.gradient(point), theta, oscillates=never)

    def maximum_from(self, *theta):
        return find_maximum(self, Point(np.array(theta), float(self.value(np.array(theta)))))


def two_hills(sharpness):
    """Hills at ``s t = pi / 2 + 2 pi k`` of a sharp first axis, under a wide parabola."""
    return Landscape(
        lambda t: np.sin(sharpness * t[0]) - 0.5 * t @ t,
        lambda t: np.array([sharpness * np.cos(sharpness * t[0]), 0.0]) - t,
    )


@pytest.mark.parametrize("sharpness", [2.0, 1e2, 1e6])
def test_a_saddle_is_left_for_a_hill(sharpness):
    hills = two_hills(sharpness)
    maximum = hills.maximum_from(-np.pi / 2 / sharpness, 0.0)
    assert maximum.mode.log_posterior > 0.4  # a hill is 1 high, less the parabola at its top
    assert np.linalg.eigvalsh(maximum.hessian)[0] > 0
    # a Newton step may gain what is let be
    slope, sharp = hills.gradient(maximum.mode.theta), np.diag(maximum.hessian)
    assert 0.5 * (slope**2 / sharp).sum() < 1e-3


def test_a_sharp_saddle_is_left_by_a_step_of_its_width(monkeypatch):
    starts = []

    def look(posterior, theta, **options):
        starts.append(theta)
        return maximise(posterior, theta, **options)

    monkeypatch.setattr(maximum_module, "maximise", look)
    valley = -np.pi / 2 / 1e6
    two_hills(1e6).maximum_from(valley, 0.0)
    offsets = np.array(starts[:2]) - [valley, 0.0]
    # the curvature is -1e12, known to the truncation of a step of 5e-2 widths
    np.testing.assert_allclose(np.abs(offsets), [[1e-6, 0.0]] * 2, rtol=1e-3, atol=1e-15)


def test_a_saddle_is_left_even_at_the_last_round(monkeypatch):
    hill, rounds = two_hills(1.0), []

    def saddle_five_times(theta):
        rounds.append(theta)
        return -np.eye(2) if len(rounds) <= 5 else np.eye(2)

    def half_way(posterior, theta, **options):
        theta = 0.5 * rounds[-1] + 0.5 * np.array([0.7390851332151607, 0.0])
        return Point(theta, float(posterior.value(theta)))

    monkeypatch.setattr(hill, "hessian", saddle_five_times)
    monkeypatch.setattr(maximum_module, "maximise", half_way)
    maximum = hill.maximum_from(0.1, 1.0)
    assert len(rounds) == 6
    np.testing.assert_array_equal(maximum.mode.theta, rounds[-1])
    np.testing.assert_array_equal(maximum.hessian, np.eye(2))


def test_a_run_that_ends_below_the_saddle_is_tried_from_nearer(monkeypatch):
    hill, starts = two_hills(2.0), []

    def far_is_low(posterior, theta, **options):
        starts.append(np.linalg.norm(theta - [-np.pi / 4, 0.0]))
        return maximise(posterior, theta, **options) if starts[-1] < 0.3 else Point(theta, -50.0)

    monkeypatch.setattr(maximum_module, "maximise", far_is_low)
    assert hill.maximum_from(-np.pi / 4, 0.0).mode.log_posterior > 0.4
    np.testing.assert_allclose(starts[2:4], np.multiply(starts[:2], 0.1))


def test_a_run_begins_at_a_point_short_of_the_top():
    maximum = two_hills(1.0).maximum_from(0.1, 2.0)
    # cos t = t
    np.testing.assert_allclose(maximum.mode.theta, [0.739085, 0.0], atol=1e-3)


@pytest.mark.parametrize("below", [[-1.0, 0.0, 0.0, 0.0], [-1.5, -0.4, 0.0, -0.5]])
def test_a_sharp_ridge_is_followed_to_its_top(below):
    """Of narrow pulses the period is known to 1e-5: plain steps end far below the top."""
    X, y = load_mauna_loa(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:150]
    X, y = X[rows], y[rows]
    x, y = (X - X.min()) / np.ptp(X), (y - y.mean()) / y.std()
    posterior = LogPosterior(
        ExactLikelihood(parse_expression("PER[0]"), TrainingData(x, y)),
        priors=check_priors("paper"),
    )
    stalled = np.array([-2.17452888, 0.90699752, -7.68671806, -4.29908054]) + below
    value = posterior.value(stalled)
    maximum = find_maximum(posterior, Point(stalled, value))
    assert maximum.mode.log_posterior > value + 1
    assert 0.5 * maximum.gradient @ np.linalg.solve(maximum.hessian, maximum.gradient) < 1e-3


def test_a_maximum_stays_where_it_is():
    maximum = two_hills(1.0).maximum_from(0.7390851332151607, 0.0)
    np.testing.assert_array_equal(maximum.mode.theta, [0.7390851332151607, 0.0])
    assert maximum.free.all()


def test_a_run_that_does_not_converge_is_a_failure_with_its_reason(monkeypatch):
    hill = two_hills(1.0)
    stuck = Point(np.array([0.1, 2.0]), -2.0)
    monkeypatch.setattr(maximum_module, "maximise", lambda *arguments, **options: stuck)
    with pytest.raises(NotAMaximumError, match=r"has not converged.*would still gain"):
        hill.maximum_from(0.1, 2.0)


def test_parameters_held_by_their_bounds_are_not_moved():
    plane = Landscape(lambda t: 3 * t[0] - 2 * t[1], lambda t: np.array([3.0, -2.0]), bound=1.0)
    maximum = plane.maximum_from(1.0, -1.0)
    np.testing.assert_array_equal(maximum.outward, [3.0, 2.0])
    assert not maximum.free.any()


@pytest.fixture
def noiseless():
    """A posterior of a line without noise, which presses the noise to its floor."""
    x = np.linspace(0, 1, 20)
    return LogPosterior(
        ExactLikelihood(parse_expression("LIN[0]"), TrainingData(x[:, None], 2 * x - 1)),
        priors=check_priors("paper"),
    )


def test_slopes_beyond_a_bound_are_those_that_rise(noiseless):
    top = maximise(noiseless, np.array([0.0, 0.0, -9.0]), max_iterations=300)
    maximum = measure_maximum(noiseless, top)
    assert top.theta[2] == noiseless.lower[2]
    gradient = noiseless.value_and_gradient(top.theta)[1]
    np.testing.assert_array_equal(maximum.outward, [0, 0, -gradient[2]])
    assert maximum.outward[2] > 1


def test_slopes_at_a_bound_from_which_the_density_rises_inwards_are_zero(noiseless):
    theta = np.array([0.0, noiseless.lower[1], -9.0])
    maximum = measure_maximum(noiseless, Point(theta, noiseless.value(theta)))
    assert maximum.gradient[1] > 0  # or the test shows nothing
    np.testing.assert_array_equal(maximum.outward, np.zeros(3))


@pytest.mark.parametrize(("step", "inside"), [(0.49, True), (0.51, False), (-0.51, False)])
def test_a_maximum_stands_at_what_is_within_a_width_of_it(step, inside):
    assert MAXIMUM.stands_at(MAXIMUM.mode.theta + np.array([step, 0])) == inside


def test_a_saddle_does_not_stand_at_what_is_far_down_its_slopes():
    saddle = maximum_of(np.zeros(2), 0.0, np.diag([-1.0, 1.0]))
    assert not saddle.stands_at(np.array([5.0, 1.0]))


def test_a_reordered_maximum_is_that_of_the_reordered_density():
    other = MAXIMUM.reordered(np.array([1, 0]))
    np.testing.assert_array_equal(other.mode.theta, [2, 1])
    np.testing.assert_array_equal(other.hessian, [[9, 1], [1, 4]])
    np.testing.assert_array_equal(other.gradient, [5, 0])
    np.testing.assert_array_equal(other.outward, [5, 0])
    assert other.mode.log_posterior == -3.0


TWINS = [
    "LIN[0] + LIN[0]",
    "LIN[0] * LIN[0]",
    "SE[0] + SE[0]",
    "SE[0] * SE[0]",
    "SE[0] + SE[0] + SE[0]",
    "RQ[0] * RQ[0]",
    "PER[0] + PER[0]",
    "PER[0] * PER[0]",
]
FLAT = {"variance": (1e-3, 1e-3), "offset": (1e-3, 1e-3), "lengthscale": (1e-2, 1e-2)}


@pytest.mark.parametrize("priors", [{}, FLAT], ids=["default", "flat"])
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("text", TWINS)
def test_leaves_that_start_as_twins_end_at_a_maximum(text, noise, priors):
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(size=30))
    data = TrainingData(x[:, None], np.sin(9 * x) + x + noise * rng.normal(size=30))
    expression = parse_expression(text)
    posterior = LogPosterior(ExactLikelihood(expression, data), priors=check_priors(priors))
    one = (len(posterior.likelihood.parameters) - 1) // expression.n_leaves
    start = np.tile(np.log([0.3, 0.5, 0.4])[:one], expression.n_leaves)
    # the gradient is the same for twins: the run stays between them
    twins = maximise(posterior, np.append(start, np.log(0.05)), max_iterations=300)
    theta = np.append(np.tile(twins.theta[:one], expression.n_leaves), twins.theta[-1])
    maximum = find_maximum(posterior, Point(theta, posterior.value(theta)))
    free = maximum.free
    np.linalg.cholesky(maximum.hessian[np.ix_(free, free)])  # raises at a saddle
    assert maximum.mode.log_posterior >= posterior.value(theta)


def test_twins_at_a_saddle_end_higher():
    x = np.linspace(0, 1, 40)
    y = np.sin(3 * x) + 0.3 * np.sin(40 * x) + 0.1 * np.random.default_rng(0).normal(size=40)
    expression = parse_expression("SE[0] + SE[0]")
    posterior = LogPosterior(
        ExactLikelihood(expression, TrainingData(x[:, None], y)), priors=PRESETS["paper"]
    )
    twins = maximise(posterior, np.log([0.1, 0.5, 0.1, 0.5, 0.05]), max_iterations=300)
    assert np.linalg.eigvalsh(posterior.hessian(twins.theta))[0] < 0  # or the test shows nothing
    assert find_maximum(posterior, twins).mode.log_posterior > twins.log_posterior + 1


def test_a_mode_without_a_factor_next_to_it_gives_way_to_one_almost_as_high():
    hill = Landscape(lambda t: -0.5 * t @ t, lambda t: -t)

    def hessian(theta):
        if theta[0] > 0.5:
            raise NotAMaximumError("no factor")
        return np.eye(2)

    hill.hessian = hessian
    cliff, top = Point(np.array([1.0, 0.0]), 0.3), Point(np.zeros(2), 0.0)
    np.testing.assert_array_equal(find_best_maximum(hill, [cliff, top]).mode.theta, top.theta)
    far_below = Point(np.zeros(2), -3.0)
    for modes in ([cliff], [cliff, far_below]):
        with pytest.raises(NotAMaximumError, match="no factor"):
            find_best_maximum(hill, modes)
