import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autokernel.inference.packed import pack, unpack
from autokernel.inference.pairs import PackedPairs
from autokernel.kernels import BroadcastPairs
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
    "only ties": np.full(30, 1.3),
}
GRIDS = (
    "months of years",
    "a grid in any order",
    "a grid with ties",
    "a grid with gaps",
    "only ties",
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


def rectangle(x: FloatArray) -> BroadcastPairs:
    """All pairs of the entries of a column, as a matrix."""
    return BroadcastPairs(x[:, None], x[None, :])


def lower_pairs(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both ends of the pairs of the lower triangle, row by row."""
    rows, columns = np.tril_indices(len(x))
    return x[rows], x[columns]


@every_column
def test_packed_and_broadcast_pairs_have_the_same_distances_and_products(x: FloatArray) -> None:
    packed, broadcast, elementwise = PackedPairs(x), rectangle(x), BroadcastPairs(*lower_pairs(x))
    for name in ("difference", "squared_distance", "product"):
        matrix = getattr(broadcast, name)
        np.testing.assert_array_equal(getattr(packed, name), pack(matrix))
        np.testing.assert_array_equal(getattr(elementwise, name), matrix[np.tril_indices(len(x))])
    np.testing.assert_array_equal(broadcast.difference, abs(differences(x)))
    np.testing.assert_array_equal(packed.squared_distance, pack(differences(x) ** 2))
    np.testing.assert_array_equal(packed.product, pack(np.outer(x, x)))


@every_period
@every_column
def test_packed_and_broadcast_pairs_agree_on_what_is_periodic(x: FloatArray, period: float) -> None:
    packed, broadcast, elementwise = PackedPairs(x), rectangle(x), BroadcastPairs(*lower_pairs(x))
    # as in the tests of the formulas: the precision of the phase
    tolerance = EPS * (4 + largest_phase(x, period)) + phase_between_equal_lags(x, period) / 2
    np.testing.assert_allclose(
        packed.periodic(period), pack(broadcast.periodic(period)), rtol=0, atol=tolerance
    )
    np.testing.assert_array_equal(
        elementwise.periodic(period), broadcast.periodic(period)[np.tril_indices(len(x))]
    )

    n_samples = len(x)
    weights = np.random.default_rng(0).standard_normal(n_samples * (n_samples + 1) // 2)
    lower = np.tril(unpack(weights, n_samples))
    slope = packed.periodic_slope(period, weights)
    phases = abs(2 * np.pi * differences(x) / period)
    tolerance *= (abs(lower) * (1 + phases)).sum()
    assert abs(slope - broadcast.periodic_slope(period, lower)) <= tolerance
    by_row = lower[np.tril_indices(n_samples)]
    assert abs(slope - elementwise.periodic_slope(period, by_row)) <= tolerance


@every_column
def test_packed_and_broadcast_pairs_agree_on_products_of_a_function(x: FloatArray) -> None:
    def sigmoid(x: FloatArray) -> FloatArray:
        return 1 / (1 + np.exp(0.3 - x))

    matrix = rectangle(x).outer(sigmoid)
    # the exponential of an array may depend on where in it a number stands, by its last digit
    np.testing.assert_allclose(PackedPairs(x).outer(sigmoid), pack(matrix), rtol=4 * EPS)
    np.testing.assert_allclose(matrix, np.outer(sigmoid(x), sigmoid(x)), rtol=4 * EPS)
    np.testing.assert_allclose(
        BroadcastPairs(*lower_pairs(x)).outer(sigmoid),
        matrix[np.tril_indices(len(x))],
        rtol=4 * EPS,
    )


def exponential(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Values (n, m) at columns X (n, 1) and Y (m, 1), as kernels of scikit-learn are called."""
    assert X.shape[1] == Y.shape[1] == 1
    return np.exp(-np.abs(X - Y.T)) + X * Y.T


@every_column
def test_packed_and_broadcast_pairs_agree_on_the_matrix_of_a_function(x: FloatArray) -> None:
    expected = exponential(x[:, None], x[:, None])
    np.testing.assert_array_equal(rectangle(x).matrix(exponential), expected)
    np.testing.assert_array_equal(PackedPairs(x).matrix(exponential), pack(expected))
    # up to ten thousand pairs: more than one block of them; rounding as above
    np.testing.assert_allclose(
        BroadcastPairs(*lower_pairs(x)).matrix(exponential),
        expected[np.tril_indices(len(x))],
        rtol=4 * EPS,
    )


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (1, 1), (7, 1), (1, 7), (3, 5), (4, 100)])
def test_the_matrix_of_elementwise_pairs_has_their_shape(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, other = rng.choice(np.linspace(-1, 1, 50), (2, *shape))
    values = BroadcastPairs(x, other).matrix(exponential)
    assert values.shape == shape
    expected = np.exp(-abs(x - other)) + x * other
    # terms that may cancel, of at most 1 each
    np.testing.assert_allclose(values, expected, rtol=0, atol=4 * EPS)


def test_what_needs_no_parameter_is_computed_once_and_periodic_values_may_be_overwritten() -> None:
    x = MONTHS.copy()
    pairs = PackedPairs(x)
    for name in ("difference", "squared_distance", "product"):
        assert getattr(pairs, name) is getattr(pairs, name)
    first = pairs.periodic(1.0)
    kept = first.copy()
    first *= 0
    np.testing.assert_array_equal(pairs.periodic(1.0), kept)
    pairs.periodic_slope(0.5, np.ones(pairs.product.size))
    np.testing.assert_array_equal(x, MONTHS)
