"""Scales of the data, starting points drawn from them, and warm starts from similar kernels."""

import numpy as np
import pytest
from scipy.signal import find_peaks

from autokernel import parse_expression
from autokernel.data.periodogram import (
    MAX_PEAKS,
    columns_with_season,
    periodogram_periods,
)
from autokernel.evidence.evaluation import WarmStart
from autokernel.evidence.starts import (
    Magnitudes,
    draw_starts,
    taken_from_noise,
    warm_points,
    warm_starts_from_similar,
)
from autokernel.expression import View, n_kernel_params
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import Seasonal
from tests.fits import evaluation_of
from tests.maxima import posterior_of

EVERY_KERNEL = "PER[0] * SE[1] + RQ[1] + LIN[0]"


def grid(kind, rng, n=120):
    return np.linspace(0, 1, n) if kind == "regular" else np.sort(rng.uniform(size=n))


@pytest.mark.parametrize(
    ("kind", "period", "trend"),
    [("regular", 0.05, 10.0), ("irregular", 0.17, 10.0), ("irregular", 0.08, 0.0)],
)
def test_the_highest_peak_is_a_known_period_in_any_order_and_unit(kind, period, trend):
    rng = np.random.default_rng(3)
    x = grid(kind, rng)
    y = np.sin(2 * np.pi * x / period + 1) + trend * (x + x**2) + 0.2 * rng.normal(size=len(x))
    found = periodogram_periods(x, y)
    # frequencies are a quarter cycle apart: half of that by rounding, as much again by leakage
    assert 1 / found[0] == pytest.approx(1 / period, abs=0.25)
    shuffled = rng.permutation(len(x))
    # the same cycles, so the same grid of frequencies: rounding of the shifted years
    in_years = periodogram_periods(1950 + 60 * x[shuffled], y[shuffled])
    np.testing.assert_allclose(in_years, 60 * found, rtol=1e-9)


def test_with_a_covariance_the_best_period_is_that_of_generalised_least_squares():
    """A smooth function that wiggles as fast as the season takes the season for itself."""
    rng = np.random.default_rng(2)
    x = np.delete(np.linspace(0, 1, 120), slice(20, 45))  # with a gap, sine and cosine correlate
    K = np.exp(-((x[:, None] - x) ** 2) / (2 * 0.02**2)) + 1e-3 * np.eye(len(x))
    y = np.linalg.cholesky(K) @ rng.normal(size=len(x)) + np.sin(2 * np.pi * x / 0.08)
    precision = np.linalg.inv(K)
    cycles = np.arange(1.0, len(x) / 2, 0.25)
    gains = []
    for frequency in 2 * np.pi * cycles:
        sine = np.column_stack([np.cos(frequency * x), np.sin(frequency * x)])
        half = np.linalg.cholesky(precision)
        left = np.linalg.lstsq(half.T @ sine, half.T @ y, rcond=None)[0]
        rest = y - sine @ left
        gains.append(0.5 * (y @ precision @ y - rest @ precision @ rest))
    peaks = find_peaks(np.concatenate([[0.0], gains, [0.0]]))[0] - 1
    expected = cycles[peaks[np.argsort(-np.array(gains)[peaks])]][:MAX_PEAKS]
    found = 1 / periodogram_periods(x, y, precision=precision)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert found[0] == pytest.approx(1 / 0.08, abs=0.25)  # the spacing of the frequencies


def test_columns_with_a_season_are_found_next_to_others():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 300, size=(250, 4))
    wave = 3 * X[:, 0] + np.sin(2 * np.pi * X[:, 1] / 7) + 0.5 * rng.normal(size=250)
    equal = np.ones(250)
    assert columns_with_season(X, wave, equal) == [1]
    smooth = 0.1 * X[:, 0] + np.exp(X[:, 2] / 100) + rng.normal(size=250)
    assert columns_with_season(X, smooth, equal) == []
    assert columns_with_season(np.zeros((250, 2)), wave, equal) == []
    noise = rng.normal(size=(2, 250))
    assert [columns_with_season(X, one, equal) for one in noise] == [[]] * 2


def test_fewer_than_six_distinct_inputs_or_a_target_without_residual_have_no_periods():
    x, y = np.linspace(0, 1, 50), np.random.default_rng(0).normal(size=50)
    assert len(periodogram_periods(np.repeat(np.arange(10.0), 5), y)) > 0
    rounded = np.append(np.resize(0.3 + 5.6e-17 * np.arange(8), 49), 1.0)
    for few in (np.repeat(np.arange(5.0), 10), np.zeros(50), rounded):
        assert len(periodogram_periods(few, y)) == 0
    for smooth in (np.full(50, 3.3), 1 + 2 * x**2):
        assert len(periodogram_periods(x, smooth)) == 0


def test_a_week_is_seen_in_days_taken_here_and_there():
    rng = np.random.default_rng(0)
    days = np.sort(rng.choice(1500, size=150, replace=False)).astype(float)  # ten days apart
    y = np.cos(2 * np.pi * days / 7) + 0.5 * rng.normal(size=150)
    assert periodogram_periods(days, y)[0] == pytest.approx(7, rel=2e-3)


# ---- draws


def draw(text, X, y, n_starts, *, seed=0, base_kernels=()):
    posterior = posterior_of(text, X, y, base_kernels=base_kernels)
    rng = np.random.default_rng(seed)
    return posterior, draw_starts(posterior, Magnitudes(posterior.data), n_starts, rng=rng)


def names_of(posterior):
    return np.array([parameter.name for parameter in posterior.likelihood.parameters])


@pytest.fixture
def two_waves():
    """Columns on different grids; the target has the period 0.1 in the first alone."""
    rng = np.random.default_rng(1)
    X = np.column_stack([np.linspace(0, 1, 100), 40 * rng.uniform(size=100)])
    return X, np.sin(2 * np.pi * X[:, 0] / 0.1) + 0.05 * rng.normal(size=100)


@pytest.mark.parametrize("n_starts", [1, 8, 24])
@pytest.mark.parametrize("unit", [1.0, 1e-9, 0.0], ids=["unit", "tiny", "constant"])
def test_starts_have_one_row_each_and_keep_the_bounds(n_starts, unit, two_waves):
    X, y = two_waves
    posterior, theta = draw(EVERY_KERNEL, X * unit, y, n_starts)
    assert theta.shape == (n_starts, len(posterior.likelihood.parameters))
    np.testing.assert_array_equal(theta, draw(EVERY_KERNEL, X * unit, y, n_starts)[1])
    assert not np.any(theta[:, 0] == draw(EVERY_KERNEL, X * unit, y, n_starts, seed=1)[1][:, 0])
    assert np.all((posterior.lower <= theta) & (theta <= posterior.upper))
    assert len(np.unique(theta, axis=0)) == n_starts
    # log-uniform between spacing and extent, which are below the bounds
    assert n_starts == 1 or np.any(theta == posterior.lower) == (unit == 1e-9)


def test_periods_come_from_what_is_known_of_them(two_waves):
    X, y = two_waves
    season = Seasonal(0.4)  # whatever the periodogram shows, and within five prior deviations
    posterior, theta = draw(f"{season.name}[0]", X, y, 24, base_kernels=[season])
    (periods,) = np.exp(theta[:, names_of(posterior) == "period"]).T
    assert np.all(np.abs(periods / 0.4 - 1) < 0.25)
    posterior, theta = draw("PER[0]", X, np.zeros_like(y), 24)  # which has no peaks
    (periods,) = theta[:, names_of(posterior) == "period"].T
    assert len(np.unique(periods)) == 24


def test_a_node_that_takes_from_the_noise_leaves_the_covariance_nearly_as_it_was():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 2))
    child = posterior_of("SE[0] + SE[1]", X, rng.normal(size=30))
    theta = np.log([0.3, 1.0, 0.4])
    (begin,) = warm_points(child, np.zeros((1, 5)), [WarmStart([0], theta)])
    point = taken_from_noise(child, begin, [1], magnitudes=Magnitudes(child.data))
    before = ExactLikelihood(parse_expression("SE[0]"), child.data).value(theta)
    # a tenth of the spacing is short against most distances
    assert child.likelihood.value(point.theta) == pytest.approx(before, abs=0.5)
    assert np.exp(point.theta[-1]) == pytest.approx(0.1)  # a quarter of the noise


# ---- warm starts


def known(text, score=0.0, *, first=100.0):
    """Build a fit with parameters numbered from ``first`` and with the noise minus ``first``."""
    expression = parse_expression(text)
    theta = np.append(first + np.arange(n_kernel_params(expression)), -first)
    status = "ok" if np.isfinite(score) else "a saddle"
    return evaluation_of(expression, theta, score=score, status=status)


def taken(text, *fits):
    """Nodes and parameters of the warm starts of a kernel, the most similar first."""
    return [
        [(list(start.nodes), start.theta.tolist()) for start in together]
        for together in warm_starts_from_similar(parse_expression(text), fits)
    ]


SE = ([0], [200, 201, -200])  # of FAILED and SOUND
PAIR = ([0, 1], [100, 101, 102, 103, 104, -100])
FAILED, SOUND = known("SE[0] + PER[0]", -np.inf), known("SE[0]", -9.0, first=200)
LEAVES = (known("SE[0]", -9, first=300), known("LIN[0]", -8, first=400))
PRODUCT = known("SE[0] * PER[0]")
WARM_STARTS = {
    # SE with 103 and 104, PER with 100 to 102, whatever the order in which the fit was written
    "each leaf begins at its partner": (
        "SE[0] * PER[0] + RQ[0]",
        [known("PER[0] * SE[0]")],
        [[([0, 1], [103, 104, 100, 101, 102, -100])]],
    ),
    "in any place": (
        "RQ[0] + PER[0] * SE[0]",
        [known("LIN[0] + PER[0] * SE[0]")],
        [[([1, 2], [102, 103, 104, 105, 106, -100])]],
    ),
    "what a fit lacks comes from single leaves": (
        "SE[0] * PER[0] + LIN[0]",
        [*LEAVES, PRODUCT],
        [[PAIR], [PAIR, ([2], [400, 401, -400])]],
    ),
    "if all of it is known": ("SE[0] * PER[0] + RQ[0]", [*LEAVES, PRODUCT], [[PAIR]]),
    "a failed fit gives nothing": ("SE[0] + PER[0] + LIN[0]", [FAILED, SOUND], [[SE]]),
    "nor what another one lacks": ("SE[0] + LIN[0]", [SOUND, known("LIN[0]", -np.inf)], [[SE]]),
    "a quarter of the leaves suffices": ("SE[0] + LIN[0] * RQ[0] * PER[0]", [SOUND], [[SE]]),
    "less does not": ("SE[0] + LIN[0] * RQ[0] * PER[0] * LIN[1]", [SOUND], []),
    "nothing in common": ("SE[0] + LIN[0]", [known("SE[1]"), known("PER[0] * RQ[0]")], []),
    "noise alone": ("NOISE", [SOUND], []),
}


@pytest.mark.parametrize(("text", "fits", "expected"), WARM_STARTS.values(), ids=WARM_STARTS)
def test_warm_starts_are_the_parameters_of_nodes_in_common(text, fits, expected):
    assert taken(text, *fits)[: max(1, len(expected))] == expected


def test_the_fit_that_shares_most_comes_first_then_the_better_one():
    fits = (
        known("SE[0] + LIN[0]", -1.0, first=10),
        known("SE[0] + PER[0] + RQ[0]", -9.0, first=20),
        known("SE[0] + PER[0]", -5.0, first=30),
    )
    for order in (fits, fits[::-1]):
        found = taken("SE[0] + PER[0]", *order)
        assert [together[0][1][-1] for together in found] == [-30, -20, -10]
    # those that are alike in all else come in the order of their texts
    many = [known(f"SE[0] * LIN[{column}]", first=column) for column in range(10, 30)]
    assert taken("SE[0]", *many) == taken("SE[0]", *many[::-1])


def test_a_season_is_seen_whose_amplitude_is_proportional_to_another_column():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(150, 3))
    wave = np.sin(2 * np.pi * X[:, 1] / 0.13)
    y = (X[:, 0] - 0.5) * wave + 0.3 * X[:, 2] + 0.05 * rng.normal(size=150)
    data = TrainingData(X, (y - y.mean()) / y.std())
    assert columns_with_season(X, data.y, np.ones(150)) == [1]
    period = Magnitudes(data).periods(View(1), None)[0]
    assert period == pytest.approx(0.13, rel=0.02)
