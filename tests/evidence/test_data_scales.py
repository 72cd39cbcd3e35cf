import numpy as np
import pytest

from autokernel.evidence.starts import MAX_PEAKS, DataScales, periodogram_periods
from autokernel.inference import TrainingData


def grid(kind, rng, n=120):
    return np.linspace(0, 1, n) if kind == "regular" else np.sort(rng.uniform(size=n))


@pytest.mark.parametrize("trend", [0.0, 10.0])
@pytest.mark.parametrize("period", [0.05, 0.08, 0.17])
@pytest.mark.parametrize("kind", ["regular", "irregular"])
def test_the_highest_peak_is_a_known_period(kind, period, trend):
    rng = np.random.default_rng(3)
    x = grid(kind, rng)
    y = np.sin(2 * np.pi * x / period + 1) + trend * (x + x**2) + 0.2 * rng.normal(size=len(x))
    # frequencies are a quarter cycle apart: half of that by rounding, as much again by leakage
    assert 1 / periodogram_periods(x, y)[0] == pytest.approx(1 / period, abs=0.25)


def test_periods_are_in_the_unit_of_the_column():
    x = np.linspace(0, 1, 120)
    y = np.sin(2 * np.pi * x / 0.08)
    # the same cycles, so the same grid of frequencies: equal to rounding of the shifted years
    np.testing.assert_allclose(
        periodogram_periods(1950 + 60 * x, y), 60 * periodogram_periods(x, y), rtol=1e-9
    )


def test_periods_do_not_depend_on_the_order_of_the_samples():
    rng = np.random.default_rng(3)
    x = grid("irregular", rng)
    y = np.sin(2 * np.pi * x / 0.08) + 0.2 * rng.normal(size=len(x))
    shuffled = rng.permutation(len(x))
    # sums in another order
    np.testing.assert_allclose(
        periodogram_periods(x[shuffled], y[shuffled]), periodogram_periods(x, y), rtol=1e-12
    )


def test_two_periods_are_both_found_the_stronger_first():
    x = np.linspace(0, 1, 200)
    y = 2 * np.sin(2 * np.pi * x / 0.04) + np.sin(2 * np.pi * x / 0.15)
    cycles = 1 / periodogram_periods(x, y)
    assert len(cycles) <= MAX_PEAKS
    assert cycles[0] == pytest.approx(1 / 0.04, abs=0.25)  # the spacing of the frequencies
    assert np.abs(cycles[1:] - 1 / 0.15).min() < 0.25


@pytest.mark.parametrize(
    "y",
    [
        pytest.param(np.full(50, 3.3), id="constant"),
        pytest.param(1 + 2 * np.linspace(0, 1, 50) ** 2, id="parabola"),
    ],
)
def test_a_target_without_residual_has_no_periods(y):
    assert len(periodogram_periods(np.linspace(0, 1, 50), y)) == 0


def test_fewer_than_six_distinct_inputs_have_no_periods():
    y = np.random.default_rng(0).normal(size=50)
    assert len(periodogram_periods(np.repeat(np.arange(5.0), 10), y)) == 0
    assert len(periodogram_periods(np.repeat(np.arange(10.0), 5), y)) > 0
    assert len(periodogram_periods(np.zeros(50), y)) == 0


def test_scales_are_those_of_each_column_and_constant_columns_have_some():
    X = np.column_stack([[0.0, 1, 2, 4, 4], [10.0, 10, 10, 10, 10], [0, 0.5, 3, 3, 9]])
    scales = DataScales(TrainingData(X, np.arange(5.0)))
    assert scales.spacing_and_extent(0) == (1.0, 4.0)
    assert scales.spacing_and_extent(2) == (2.5, 9.0)
    assert min(scales.spacing_and_extent(1)) > 0


def test_a_week_is_seen_in_days_taken_here_and_there():
    rng = np.random.default_rng(0)
    days = np.sort(rng.choice(1500, size=150, replace=False)).astype(float)  # ten days apart
    y = np.cos(2 * np.pi * days / 7) + 0.5 * rng.normal(size=150)
    assert periodogram_periods(days, y)[0] == pytest.approx(7, rel=2e-3)


def test_a_week_is_seen_in_500_days_of_14_years():
    rng = np.random.default_rng(0)
    days = np.sort(rng.permutation(5113)[:500])
    y = np.sin(2 * np.pi * days / 7) + 0.5 * rng.normal(size=500)
    assert periodogram_periods(days / 365.25, y)[0] * 365.25 == pytest.approx(7, rel=1e-3)


def test_chance_below_the_mean_spacing_takes_no_place_of_slow_periods():
    rng = np.random.default_rng(0)
    spurious = 0
    for _ in range(30):
        x = np.sort(rng.uniform(size=100))
        found = periodogram_periods(x, rng.normal(size=100))
        fast = found < np.ptp(x) / 50
        assert np.count_nonzero(~fast) == MAX_PEAKS
        assert not fast[1:].any()
        spurious += fast[0]
    assert spurious <= 15


def test_inputs_that_differ_by_rounding_are_one():
    x = np.append(0.3 + 5.6e-17 * np.arange(8), 1.0)
    scales = DataScales(TrainingData(x[:, None], np.arange(9.0)))
    assert scales.spacing_and_extent(0) == pytest.approx((0.7, 0.7))
    assert len(scales.periods(0)) == 0
