"""From starting points to the highest mode, and from there to a maximum."""

import numpy as np
import pytest

from autokernel import NotAMaximumError
from autokernel.datasets import load_mauna_loa
from autokernel.evidence.laplace import log_evidence, log_evidence_or_nothing
from autokernel.evidence.maximise import (
    Point,
    expected_gain,
    find_best_maximum,
    find_maximum,
    maximise,
)
from autokernel.evidence.mode_search import find_modes
from tests.maxima import Toy, posterior_of

PRECISION = np.array([[3.0, 1.0], [1.0, 2.0]])
TOP = np.array([0.7, -1.2])
FAR = np.array([-1.5, 0.6])  # within one longest step of the top


def gaussian(top=TOP, **options):
    return Toy(
        lambda t: 5.0 - 0.5 * (t - top) @ PRECISION @ (t - top),
        lambda t: -PRECISION @ (t - top),
        **options,
    )


def ripples(slope=0.05):
    """Eight bumps near 0, 10, ..., 70, each half a nat higher than the one before, or lower."""
    return Toy(
        lambda t: 3 * np.cos(2 * np.pi * t[0] / 10) + slope * t[0],
        lambda t: -0.6 * np.pi * np.sin(2 * np.pi * t / 10) + slope,
        lower=[-5.0],
        upper=[75.0],
    )


def at(thetas):
    """Starts at points of which nothing is known."""
    return [Point(theta) for theta in np.asarray(thetas, dtype=float)]


@pytest.mark.parametrize("away", [0.2, 30.0])
def test_the_gain_that_is_expected_is_that_of_a_step_to_the_top_or_of_a_unit(away):
    hill, towards = gaussian(), np.array([1.0, -0.5])
    theta = TOP - away * towards
    end = theta + min(1.0, away) * towards
    gain = expected_gain(hill, Point(theta, hill.value(theta), PRECISION))
    assert gain == pytest.approx(hill.value(end) - hill.value(theta))
    assert expected_gain(hill, Point(theta)) == 0.0  # without a curvature nothing is expected
    held = gaussian(upper=theta)  # which the top lies beyond, along the first axis
    assert expected_gain(held, Point(theta, curvature=PRECISION)) < gain


@pytest.mark.parametrize(
    "curvature",
    [None, 100 * PRECISION, 0.01 * PRECISION, np.diag([1.0, -4.0]), np.zeros((2, 2))],
    ids=["unknown", "too stiff", "too soft", "of a saddle", "flat"],
)
@pytest.mark.parametrize("has_holes", [False, True])
def test_a_run_reaches_the_top_whatever_it_knows_and_goes_round_points_without_a_factor(
    curvature, has_holes
):
    def fails(theta):
        return has_holes and min(np.linalg.norm(theta - FAR), np.linalg.norm(theta - TOP)) > 1.2

    hill = gaussian(fails=fails)
    mode = maximise(hill, Point(FAR, curvature=curvature), max_iterations=300)
    # a Newton step would gain 1e-11 nats by an estimate of the curvature that may be off
    np.testing.assert_allclose(mode.theta, TOP, atol=1e-3)
    assert mode.log_posterior == pytest.approx(5.0, abs=1e-6)


@pytest.mark.parametrize("failing", [{4, 5, 6}, set(range(5, 40))])
def test_a_run_never_returns_less_than_the_best_point_that_it_met(failing):
    hill = gaussian(np.array([3.0, -2.0]), fails=lambda theta: hill.n_evaluations in failing)
    mode = maximise(hill, Point(np.array([-5.0, 5.0])), max_iterations=100)
    met = [hill.value(t) for n, t in enumerate(hill.points, start=1) if n not in failing]
    assert mode.log_posterior == max(met) == hill.value(mode.theta)


@pytest.mark.parametrize("begin", [0.0, 3.0, 9.0], ids=["held", "free", "beyond the bounds"])
def test_a_parameter_at_a_bound_is_held_only_while_the_slope_holds_it(begin):
    # the second parameter rises only once the first has passed 2
    hill = Toy(
        lambda t: -0.5 * (t[0] - 4) ** 2 + t[1] * (t[0] - 2) - 0.5 * t[1] ** 2,
        lambda t: np.array([4 - t[0] + t[1], t[0] - 2 - t[1]]),
        lower=[-5.0, 0.0],
        upper=[4.5, 5.0],
    )
    mode = maximise(hill, Point(np.array([begin, 0.0])), max_iterations=100)
    np.testing.assert_allclose(mode.theta, [4.5, 2.5], atol=1e-3)  # t0 at its bound, t1 = t0 - 2
    maximum = find_maximum(hill, Point(mode.theta, mode.log_posterior))
    np.testing.assert_array_equal(maximum.free, [False, True])
    assert maximum.outward[0] == pytest.approx(2.0, abs=1e-2)  # 4 - t0 + t1
    assert np.all((hill.lower <= hill.points) & (hill.points <= hill.upper))


def test_where_no_start_has_a_factor_the_log_posterior_is_minus_infinity():
    nowhere = gaussian(fails=lambda theta: True)
    assert maximise(nowhere, Point(np.zeros(2)), max_iterations=10).log_posterior == -np.inf
    assert find_modes(nowhere, at(np.zeros((3, 2))))[0].log_posterior == -np.inf


@pytest.mark.parametrize(("options", "others"), [({}, [1, 0]), ({"n_refined": (2, 1)}, [1])])
def test_modes_that_a_subsample_ranks_wrongly_are_ranked_again(options, others):
    starts = at([[0.0], [10.0], [20.0]])
    best, *rest = find_modes(ripples(), starts, subsample=ripples(-0.05), **options)
    assert best.theta[0] == pytest.approx(20, abs=0.5)  # the last of the three by the subsample
    assert [round(mode.theta[0] / 10) for mode in rest] == others


def test_a_mode_that_the_subsample_lacks_is_found_from_a_start_of_known_curvature():
    near_ten = Toy(lambda t: -0.5 * (t[0] - 10) ** 2, lambda t: 10 - t, lower=[-5.0], upper=[75.0])
    plain = [Point(np.array([9.0])), Point(np.array([71.0]))]
    known = [*plain[:1], Point(np.array([71.0]), curvature=np.array([[1.2]]))]
    found = [
        find_modes(ripples(), starts, subsample=near_ten, patience=1)[0].theta[0]
        for starts in (plain, known)
    ]
    assert found == pytest.approx([10, 70], abs=0.5)


def maximum_from(hill, *theta):
    return find_maximum(hill, Point(np.array(theta), float(hill.value(np.array(theta)))))


def two_hills(sharpness):
    """Hills at ``s t = pi / 2 + 2 pi k`` of a sharp first axis, under a wide parabola."""
    return Toy(
        lambda t: np.sin(sharpness * t[0]) - 0.5 * t @ t,
        lambda t: np.array([sharpness * np.cos(sharpness * t[0]), 0.0]) - t,
    )


@pytest.mark.parametrize("sharpness", [2.0, 1e2, 1e6])
def test_a_saddle_is_left_for_a_hill_by_a_step_of_its_width(sharpness):
    hills, valley = two_hills(sharpness), np.array([-np.pi / 2 / sharpness, 0.0])
    maximum = maximum_from(hills, *valley)
    assert maximum.mode.log_posterior > 0.4  # a hill is 1 high, less the parabola at its top
    assert np.linalg.eigvalsh(maximum.hessian)[0] > 0
    # a Newton step may gain what is let be
    slope, sharp = hills.gradient(maximum.mode.theta), np.diag(maximum.hessian)
    assert 0.5 * (slope**2 / sharp).sum() < 1e-3
    # the curvature -c is known to the truncation of a step of 5e-2 widths, and 1 / sqrt(c) is tried
    width = 1 / np.sqrt(sharpness**2 - 1)
    for step in (width, -width):
        away = np.abs(np.array(hills.points) - valley - np.array([step, 0.0]))
        assert np.any(away.max(axis=1) < 1e-3 * width)


def test_a_run_that_ends_below_the_saddle_is_tried_from_nearer():
    # a shallow valley between two hills at 0.126, and far below outside of 0.3
    def value(t):
        near, beyond = np.exp(-((t[0] / 0.15) ** 4)), np.exp(-((t[0] / 0.4) ** 16))
        return t[0] ** 2 * near - 5 * (1 - beyond) - 0.5 * t[1] ** 2

    def gradient(t):
        near, beyond = np.exp(-((t[0] / 0.15) ** 4)), np.exp(-((t[0] / 0.4) ** 16))
        rise = (2 * t[0] - 4 * t[0] ** 5 / 0.15**4) * near
        return np.array([rise - 80 * t[0] ** 15 / 0.4**16 * beyond, -t[1]])

    hill = Toy(value, gradient)
    maximum = maximum_from(hill, 0.0, 0.0)
    # 4 t^4 = 2 * 0.15^4, and the drop is 5e-8 there
    assert abs(maximum.mode.theta[0]) == pytest.approx(0.15 / 2**0.25, rel=1e-2)
    assert any(hill.value(point) < -4 for point in hill.points)  # or the test shows nothing


def test_a_saddle_that_cannot_be_left_has_no_evidence():
    flat = Toy(lambda t: 0.0, lambda t: t)  # whose slopes promise a gain that is not there
    maximum = maximum_from(flat, 0.0, 0.0)
    np.testing.assert_allclose(maximum.hessian, -np.eye(2), rtol=1e-9)  # rounding
    with pytest.raises(NotAMaximumError, match="saddle"):
        log_evidence(flat, maximum)
    assert log_evidence_or_nothing(flat, maximum) == -np.inf


def test_a_run_that_does_not_converge_is_a_failure_with_its_reason():
    flat = Toy(lambda t: 0.0, lambda t: 5 - t)
    with pytest.raises(NotAMaximumError, match=r"has not converged.*would still gain 25 nats"):
        maximum_from(flat, 0.0, 0.0)


@pytest.mark.parametrize("below", [[-1.0, 0.0, 0.0, 0.0], [-1.5, -0.4, 0.0, -0.5]])
def test_a_sharp_ridge_is_followed_to_its_top(below):
    """Of narrow pulses the period is known to 1e-5: plain steps end far below the top."""
    X, y = load_mauna_loa(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:150]
    X, y = X[rows], y[rows]
    x, y = (X - X.min()) / np.ptp(X), (y - y.mean()) / y.std()
    posterior = posterior_of("PER[0]", x, y)
    stalled = np.array([-2.17452888, 0.90699752, -7.68671806, -4.29908054]) + below
    value = posterior.value(stalled)
    maximum = find_maximum(posterior, Point(stalled, value))
    assert maximum.mode.log_posterior > value + 1
    assert 0.5 * maximum.gradient @ np.linalg.solve(maximum.hessian, maximum.gradient) < 1e-3


TWINS = ["LIN[0] * LIN[0]", "SE[0] + SE[0] + SE[0]", "RQ[0] * RQ[0]", "PER[0] + PER[0]"]


FLAT = {"variance": (1e-3, 1e-3), "offset": (1e-3, 1e-3), "lengthscale": (1e-2, 1e-2)}


@pytest.mark.parametrize(("priors", "noise"), [({}, 0.1), (FLAT, 0.0)], ids=["default", "flat"])
@pytest.mark.parametrize("text", TWINS)
def test_leaves_that_start_as_twins_end_at_a_maximum(text, noise, priors):
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(size=30))
    y = np.sin(9 * x) + x + noise * rng.normal(size=30)
    posterior = posterior_of(text, x[:, None], y, priors=priors)
    n_leaves = posterior.expression.n_leaves
    one = (len(posterior.likelihood.parameters) - 1) // n_leaves
    start = np.tile(np.log([0.3, 0.5, 0.4])[:one], n_leaves)
    # the gradient is the same for twins: the run stays between them
    twins = maximise(posterior, Point(np.append(start, np.log(0.05))), max_iterations=300)
    theta = np.append(np.tile(twins.theta[:one], n_leaves), twins.theta[-1])
    maximum = find_maximum(posterior, Point(theta, posterior.value(theta)))
    free = maximum.free
    np.linalg.cholesky(maximum.hessian[np.ix_(free, free)])  # raises at a saddle
    assert maximum.mode.log_posterior >= posterior.value(theta)


def test_a_mode_without_a_factor_next_to_it_gives_way_to_one_almost_as_high():
    class Cliff(Toy):
        def hessian(self, theta, guess=None):
            if theta[0] > 0.5:
                raise NotAMaximumError("no factor")
            return super().hessian(theta, guess)

    hill = Cliff(lambda t: -0.5 * t @ t, lambda t: -t)
    cliff, top = Point(np.array([1.0, 0.0]), 0.3), Point(np.zeros(2), 0.0)
    np.testing.assert_array_equal(find_best_maximum(hill, [cliff, top]).mode.theta, top.theta)
    far_below = Point(np.zeros(2), -3.0)
    for modes in ([cliff], [cliff, far_below]):
        with pytest.raises(NotAMaximumError, match="no factor"):
            find_best_maximum(hill, modes)
