import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autokernel.likelihood.linalg import pack
from autokernel.likelihood.pairs import PackedPairs
from autokernel.typing import FloatArray
from tests.batteries import EPS, numerical_gradient, seeds

MONTHS = 1949 + np.arange(144) / 12
COLUMNS = {
    "unit interval": np.linspace(0, 1, 21),
    "both signs": np.random.default_rng(0).uniform(-3, 3, 20),
    "one sample": np.array([2.5]),
    "two samples": np.array([0.1, 0.7]),
    "ties": np.array([1.0, 1.0, 2.0, 1.0]),
    "months of years": MONTHS,
    "any days of years": np.random.default_rng(1).uniform(1949, 1961, 51),
    "a grid in any order": np.random.default_rng(2).permutation(np.linspace(-1, 2, 40)),
    "a grid with ties": np.repeat(np.arange(15) / 7, [1, 2, 3] * 5),
    "a grid with gaps": np.delete(MONTHS, [3, 4, 60, 99]),
    "ties alone": np.full(30, 1.3),
}
GRIDS = (
    "months of years",
    "a grid in any order",
    "a grid with ties",
    "a grid with gaps",
    "ties alone",
)
every_column = pytest.mark.parametrize("x", COLUMNS.values(), ids=COLUMNS)
every_period = pytest.mark.parametrize("period", [1.0, 0.01, 0.37, 40.0])


def differences(x: FloatArray) -> FloatArray:
    return x[:, None] - x[None, :]


def largest_phase(x: FloatArray, period: float) -> float:
    return 2 * np.pi * np.ptp(x) / period


def phase_between_equal_lags(x: FloatArray, period: float) -> float:
    """How much lags that differ by the rounding of x, their four ends by half a unit each, say."""
    few_values = len(np.unique(PackedPairs(x).periodic(0.3))) <= len(x)
    return 2 * np.pi * 2 * np.spacing(abs(x).max()) / period if few_values else 0.0


@pytest.mark.parametrize("name", GRIDS)
def test_equal_lags_on_a_grid_have_equal_values(name: str) -> None:
    x = COLUMNS[name]
    lags, places = np.unique(np.round(pack(abs(differences(x))), 9), return_inverse=True)
    assert len(lags) <= 144
    values = PackedPairs(x).periodic(0.37)
    np.testing.assert_array_equal(values, values[np.unique(places, return_index=True)[1]][places])


@every_column
def test_squared_distance_is_exact(x: FloatArray) -> None:
    np.testing.assert_array_equal(PackedPairs(x).squared_distance, pack(differences(x) ** 2))


@every_column
def test_product_is_exact(x: FloatArray) -> None:
    np.testing.assert_array_equal(PackedPairs(x).product, pack(np.outer(x, x)))


@every_period
@every_column
def test_periodic_equals_the_formula_to_the_precision_of_the_phase(
    x: FloatArray, period: float
) -> None:
    expected = pack(np.sin(np.pi * differences(x) / period) ** 2)
    # either way a phase is rounded to EPS times itself, not to EPS times the year, but for lags
    # that are looked up: they are as exact as the inputs
    tolerance = EPS * (4 + largest_phase(x, period)) + phase_between_equal_lags(x, period) / 2
    np.testing.assert_allclose(PackedPairs(x).periodic(period), expected, rtol=0, atol=tolerance)


@every_period
@every_column
def test_slope_equals_the_formula_to_the_precision_of_the_phase(
    x: FloatArray, period: float
) -> None:
    phases = 2 * np.pi * differences(x) / period
    expected = pack(-0.5 * phases * np.sin(phases))
    # the precision of the sine is as above, and the phase of the pair multiplies it
    tolerance = EPS * (4 + largest_phase(x, period)) + phase_between_equal_lags(x, period) / 2
    tolerance = tolerance * pack(1 + abs(phases))
    pairs = PackedPairs(x)
    for entry in range(0, len(expected), 1 + len(expected) // 250):
        weights = np.zeros(len(expected))
        weights[entry] = 1.0
        assert abs(pairs.periodic_slope(period, weights) - expected[entry]) <= tolerance[entry]


@pytest.mark.parametrize("grid", [False, True], ids=["any inputs", "grid"])
@given(seed=seeds, period=st.floats(0.2, 5), n_samples=st.integers(1, 8))
def test_slope_is_the_derivative_in_the_log_period(
    grid: bool, seed: int, period: float, n_samples: int
) -> None:
    rng = np.random.default_rng(seed)
    x = (
        rng.choice(np.linspace(-1, 1, 35), 30 + n_samples)
        if grid
        else rng.uniform(-1, 1, n_samples)
    )
    pairs, n_samples = PackedPairs(x), len(x)
    weights = rng.standard_normal(n_samples * (n_samples + 1) // 2)
    log_period = np.array([np.log(period)])
    expected = numerical_gradient(lambda t: weights @ pairs.periodic(np.exp(t[0])), log_period)
    # 1e-8 of truncation, of terms that may cancel: up to 741 slopes of at most 31
    assert pairs.periodic_slope(period, weights) == pytest.approx(
        expected[0], rel=1e-8, abs=3e-9 * len(weights)
    )


@every_column
def test_a_shift_by_whole_periods_changes_nothing_but_the_product(x: FloatArray) -> None:
    # a multiple of 2**-33 keeps its digits when 4096 is added
    x = np.round(x * 2**33) / 2**33
    here, there = PackedPairs(x), PackedPairs(x + 4096)
    np.testing.assert_array_equal(here.squared_distance, there.squared_distance)
    # the two means round differently, by EPS times the year at most; the phase has a factor 2 pi
    tolerance = 2 * np.pi * 6057 * EPS
    np.testing.assert_allclose(here.periodic(1.0), there.periodic(1.0), rtol=0, atol=tolerance)


def test_quantities_that_need_no_parameter_are_computed_once() -> None:
    pairs = PackedPairs(MONTHS)
    assert pairs.squared_distance is pairs.squared_distance
    assert pairs.product is pairs.product


def test_quantities_of_a_period_are_new_arrays_that_a_kernel_may_overwrite() -> None:
    pairs = PackedPairs(MONTHS)
    first = pairs.periodic(1.0)
    kept = first.copy()
    first *= 0
    np.testing.assert_array_equal(pairs.periodic(1.0), kept)


def test_the_column_is_not_changed() -> None:
    x = MONTHS.copy()
    pairs = PackedPairs(x)
    pairs.periodic(0.5)
    pairs.periodic_slope(0.5, np.ones(pairs.product.size))
    assert pairs.product.size == pairs.squared_distance.size
    np.testing.assert_array_equal(x, MONTHS)
