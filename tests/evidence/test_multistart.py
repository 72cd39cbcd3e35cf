import numpy as np
import pytest

from autokernel import evaluate_kernel, parse_expression
from autokernel.evidence import mode_search as map_module
from autokernel.evidence.maximise import Point, maximise
from autokernel.evidence.mode_search import LIGHT, find_modes
from autokernel.evidence.posterior import LogPosterior
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels.parameters import check_priors
from tests.maxima import Toy

FAILED = -np.inf


def gaussian(top, *, lower=(-10, -10), upper=(10, 10)):
    precision = np.array([[3.0, 1.0], [1.0, 2.0]])
    return Toy(
        lambda t: 5.0 - 0.5 * (t - top) @ precision @ (t - top),
        lambda t: -precision @ (t - top),
        lower=lower,
        upper=upper,
    )


def ripples():
    """Eight bumps near 0, 10, ..., 70, each half a nat higher than the one before."""
    return Toy(
        lambda t: 3 * np.cos(2 * np.pi * t[0] / 10) + 0.05 * t[0],
        lambda t: -0.6 * np.pi * np.sin(2 * np.pi * t / 10) + 0.05,
        lower=[-5.0],
        upper=[75.0],
    )


def at(thetas):
    """Starts at points of which nothing is known."""
    return [Point(theta) for theta in np.asarray(thetas, dtype=float)]


def nowhere():
    return Toy(lambda t: FAILED, np.zeros_like, lower=[-1, -1], upper=[1, 1])


@pytest.fixture
def smooth_series():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(size=40))
    return x[:, None], np.sin(7 * x) + 0.1 * rng.normal(size=40)


@pytest.fixture
def posterior(smooth_series):
    data = TrainingData(*smooth_series)
    return LogPosterior(
        ExactLikelihood(parse_expression("SE[0]"), data), priors=check_priors("paper")
    )


def test_a_run_reaches_the_top_of_a_gaussian():
    top = np.array([0.7, -1.2])
    mode = maximise(gaussian(top), np.zeros(2), max_iterations=100)
    # the gradient ends below 1e-4 per unit curvature, so that theta is this near
    np.testing.assert_allclose(mode.theta, top, atol=1e-4)
    assert mode.log_posterior == pytest.approx(5.0, abs=1e-7)  # gradient^2 / 2


def test_a_run_reaches_the_map_of_a_kernel_from_a_nearby_point(smooth_series, posterior):
    fit = evaluate_kernel("SE[0]", *smooth_series, priors="paper")
    mode = maximise(posterior, fit.theta + np.array([0.3, -0.4, 0.5]), max_iterations=300)
    # two runs to the same top differ by the optimiser's tolerance, 1e-10 relative in the value
    np.testing.assert_allclose(mode.theta, fit.theta, atol=1e-4)
    assert mode.log_posterior == pytest.approx(fit.log_posterior, abs=1e-6)


def test_a_run_stays_within_the_bounds():
    mode = maximise(
        gaussian(np.array([0.7, -1.2]), lower=(1.5, -10)), np.array([2.0, 0.0]), max_iterations=100
    )
    assert mode.theta[0] == 1.5
    # d/dt_1 vanishes at 1.2 = -(t_1) - 0.8 / 2, to the gradient's tolerance
    assert mode.theta[1] == pytest.approx(-1.6, abs=1e-4)


def test_a_run_takes_no_more_than_max_iterations():
    short, long = gaussian(np.array([0.7, -1.2])), gaussian(np.array([0.7, -1.2]))
    low = maximise(short, np.array([9.0, 9.0]), max_iterations=1)
    high = maximise(long, np.array([9.0, 9.0]), max_iterations=100)
    assert low.log_posterior < high.log_posterior - 1
    assert short.n_evaluations < long.n_evaluations


def test_a_failed_factorisation_shortens_the_step_and_does_not_end_the_run(posterior, monkeypatch):
    start = np.array([0.0, 0.0, -1.0])
    unhindered = maximise(posterior, start, max_iterations=300)
    original, n_failures = posterior.value_and_gradient, 0
    low = np.minimum(start, unhindered.theta) - 1.0
    high = np.maximum(start, unhindered.theta) + 1.0

    def fail_outside_a_box(theta):
        nonlocal n_failures
        if np.any(theta < low) or np.any(theta > high):
            n_failures += 1
            return FAILED, np.zeros(3)
        return original(theta)

    monkeypatch.setattr(posterior, "value_and_gradient", fail_outside_a_box)
    hindered = maximise(posterior, start, max_iterations=300)
    assert n_failures > 0  # or the test shows nothing
    # another path to the same top: the optimiser's tolerance
    np.testing.assert_allclose(hindered.theta, unhindered.theta, atol=1e-4)


def test_a_run_from_a_point_without_factor_says_minus_infinity():
    assert maximise(nowhere(), np.zeros(2), max_iterations=10).log_posterior == FAILED


def test_find_modes_returns_the_higher_of_two_modes():
    mode = find_modes(ripples(), at([[62.0], [68.0]]))[0]
    # the gradient vanishes where sin(2 pi t / 10) = 0.05 / (0.6 pi)
    top = 70 + np.arcsin(0.05 / (0.6 * np.pi)) * 10 / (2 * np.pi)
    assert mode.theta[0] == pytest.approx(top, abs=1e-3)  # gradient below 1e-4, curvature 1.2


def test_find_modes_follows_the_best_ends_where_there_are_more_than_it_polishes():
    starts = at(np.arange(0.0, 80.0, 10.0)[:, None] + 2.0)
    for order in (starts, starts[::-1]):
        mode = find_modes(ripples(), order)[0]
        assert mode.theta[0] == pytest.approx(70.0, abs=1.0)  # the bumps are ten apart


def test_find_modes_polishes_the_best_modes_once_each_and_few_others(monkeypatch):
    long_runs = []

    def counting(posterior, theta, *, max_iterations, **options):
        if max_iterations > 15 and "tolerance" in options:  # the last run, of the best, is exact
            long_runs.append(round(float(theta[0]), -1))
        return maximise(posterior, theta, max_iterations=max_iterations, **options)

    monkeypatch.setattr(map_module, "maximise", counting)
    starts = np.repeat(np.arange(0.0, 80.0, 10.0), 3)[:, None] + 2.0  # three in each basin
    find_modes(ripples(), at(starts))
    assert len(long_runs) == len(set(long_runs))
    assert set(long_runs) == {40, 50, 60, 70}


def test_find_modes_says_minus_infinity_where_no_start_has_a_factor():
    assert find_modes(nowhere(), at(np.zeros((3, 2))))[0].log_posterior == FAILED


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_period_of_a_growing_seasonal_series_is_recovered(seed):
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, 120)  # ten years by month
    year = 12 / 119
    season = np.sin(2 * np.pi * x / year) + 0.5 * np.cos(4 * np.pi * x / year)
    y = 2 * x + (0.3 + x) * season + 0.1 * rng.normal(size=120)
    y = (y - y.mean()) / y.std()
    fit = evaluate_kernel("LIN[0] + PER[0] * SE[0]", x[:, None], y, random_state=seed)
    (period,) = [p.value for p in fit.parameters if p.name == "period"]
    # ten cycles with a phase known to a fiftieth of a cycle: 0.2 percent, times a margin of five;
    # the neighbouring modes, half and two thirds of a year, are far off
    assert period == pytest.approx(year, rel=0.01)


@pytest.mark.parametrize("failing", [{4, 5, 6}, {3, 4, 5, 6, 7, 8}, set(range(5, 40))])
def test_a_run_never_returns_less_than_the_best_point_that_it_met(failing):
    posterior = gaussian(np.array([3.0, -2.0]))
    met = []
    true_value = posterior.value_and_gradient

    def value_and_gradient(theta):
        point = true_value(theta)
        if posterior.n_evaluations in failing:
            return -np.inf, np.zeros(2)
        met.append(point[0])
        return point

    posterior.value_and_gradient = value_and_gradient
    mode = maximise(posterior, np.array([-5.0, 5.0]), max_iterations=100)
    assert mode.log_posterior == max(met)
    assert true_value(mode.theta)[0] == mode.log_posterior


def test_what_a_subsample_finds_is_followed_on_the_posterior_itself():
    top, elsewhere = np.array([0.7, -1.2]), np.array([0.2, -0.9])
    (mode,) = find_modes(gaussian(top), at(np.zeros((3, 2))), subsample=gaussian(elsewhere))
    np.testing.assert_allclose(mode.theta, top, atol=1e-4)  # as where it is searched alone
    assert mode.log_posterior == pytest.approx(5.0, abs=1e-7)


def test_modes_that_a_subsample_ranks_wrongly_are_ranked_anew():
    falling = ripples()
    falling.value = lambda t: 3 * np.cos(2 * np.pi * t[0] / 10) - 0.05 * t[0]
    falling.gradient = lambda t: -0.6 * np.pi * np.sin(2 * np.pi * t / 10) - 0.05
    starts = at([[0.0], [10.0], [20.0]])
    best, *others = find_modes(ripples(), starts, subsample=falling)
    assert best.theta[0] == pytest.approx(20, abs=0.5)  # the last of the three by the subsample
    assert [round(mode.theta[0] / 10) for mode in others] == [1, 0]


def test_a_light_search_of_a_subsample_follows_one_end_and_keeps_another():
    falling = ripples()
    falling.value = lambda t: 3 * np.cos(2 * np.pi * t[0] / 10) - 0.05 * t[0]
    falling.gradient = lambda t: -0.6 * np.pi * np.sin(2 * np.pi * t / 10) - 0.05
    starts = at([[0.0], [10.0], [20.0]])
    best, *others = find_modes(ripples(), starts, subsample=falling, budget=LIGHT)
    assert best.theta[0] == pytest.approx(20, abs=0.5)
    assert [round(mode.theta[0] / 10) for mode in others] == [1]


def test_a_mode_that_the_subsample_lacks_is_found_from_a_start_of_known_curvature():
    near_ten = Toy(lambda t: -0.5 * (t[0] - 10) ** 2, lambda t: 10 - t, lower=[-5.0], upper=[75.0])
    plain = [Point(np.array([9.0])), Point(np.array([71.0]))]
    known = [*plain[:1], Point(np.array([71.0]), curvature=np.array([[1.2]]))]
    found = [
        find_modes(ripples(), starts, subsample=near_ten, budget=LIGHT)[0].theta[0]
        for starts in (plain, known)
    ]
    assert found == pytest.approx([10, 70], abs=0.5)


def test_variants_of_the_best_mode_are_followed_on_all_rows():
    given = []

    def variants(mode):
        given.append(mode.theta[0])
        return at([[31.0], [49.0], [11.0]])

    best, *others = find_modes(ripples(), at([[22.0]]), variants=variants)
    assert given == pytest.approx([20], abs=0.5)
    assert best.theta[0] == pytest.approx(50, abs=0.5)
    assert [round(mode.theta[0] / 10) for mode in others] == [3, 2]  # the lowest is not followed
