import numpy as np
import pytest

from autokernel.inference.packed import pack
from autokernel.inference.pairs import PackedPairs
from autokernel.kernels import BroadcastPairs
from tests.batteries import EPS

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
every_period = pytest.mark.parametrize("period", [1.0, 0.01, 40.0])


def differences(x):
    return x[:, None] - x[None, :]


def largest_phase(x, period):
    return 2 * np.pi * np.ptp(x) / period


def phase_between_equal_lags(x, period):
    """How much lags that differ by the rounding of x, their four ends by half a unit each, say."""
    few_values = len(np.unique(PackedPairs(x).periodic(0.3))) <= len(x)
    return 2 * np.pi * 2 * np.spacing(abs(x).max()) / period if few_values else 0.0


@pytest.mark.parametrize("name", GRIDS)
def test_equal_lags_on_a_grid_have_equal_values(name):
    x = COLUMNS[name]
    lags, places = np.unique(np.round(pack(abs(differences(x))), 9), return_inverse=True)
    assert len(lags) <= 144
    values = PackedPairs(x).periodic(0.37)
    np.testing.assert_array_equal(values, values[np.unique(places, return_index=True)[1]][places])


def tolerance_of(x, period):
    """The precision of the phase.

    A phase is rounded to EPS times itself, not to EPS times the year, but for lags that are looked
    up: they are as exact as the inputs.
    """
    return EPS * (4 + largest_phase(x, period)) + phase_between_equal_lags(x, period) / 2


def lower_pairs(x):
    """The pairs of the lower triangle, row by row."""
    rows, columns = np.tril_indices(len(x))
    return BroadcastPairs(x[rows], x[columns])


def sigmoid(x):
    return 1 / (1 + np.exp(0.3 - x))


def exponential(X, Y):
    """Values (n, m) at columns X (n, 1) and Y (m, 1), as kernels of scikit-learn are called."""
    assert X.shape[1] == Y.shape[1] == 1
    return np.exp(-np.abs(X - Y.T)) + X * Y.T


# each storage of all pairs of a column, and how it stores a symmetric matrix
STORAGES = {
    "packed": (PackedPairs, pack),
    "matrix": (lambda x: BroadcastPairs(x[:, None], x[None, :]), lambda matrix: matrix),
    "entry by entry": (lower_pairs, lambda matrix: matrix[np.tril_indices(len(matrix))]),
}
every_storage = pytest.mark.parametrize(("make", "stored"), STORAGES.values(), ids=STORAGES)


@every_storage
@every_column
def test_quantities_without_parameters_are_those_of_the_formulas(x, make, stored):
    pairs = make(x)
    assert pairs.shape == pairs.difference.shape
    np.testing.assert_array_equal(pairs.difference, stored(abs(differences(x))))
    np.testing.assert_array_equal(pairs.squared_distance, stored(differences(x) ** 2))
    np.testing.assert_array_equal(pairs.product, stored(np.outer(x, x)))
    # the exponential of an array may depend on where in it a number stands, by its last digit
    expected = stored(np.outer(sigmoid(x), sigmoid(x)))
    np.testing.assert_allclose(pairs.outer(sigmoid), expected, rtol=4 * EPS)
    # entry by entry, these are up to ten thousand pairs: more than one block of them
    expected = stored(exponential(x[:, None], x[:, None]))
    np.testing.assert_allclose(pairs.matrix(exponential), expected, rtol=4 * EPS)


@every_storage
@every_period
@every_column
def test_periodic_quantities_equal_the_formulas_to_the_precision_of_the_phase(
    x, period, make, stored
):
    pairs, tolerance = make(x), tolerance_of(x, period)
    expected = stored(np.sin(np.pi * differences(x) / period) ** 2)
    np.testing.assert_allclose(pairs.periodic(period), expected, rtol=0, atol=tolerance)
    # the precision of the sine is the same, and the phase of the pair multiplies it
    phases = stored(2 * np.pi * differences(x) / period)
    expected, tolerances = -0.5 * phases * np.sin(phases), tolerance * (1 + abs(phases))
    weights = np.zeros(expected.shape)
    for entry in range(0, expected.size, 1 + expected.size // 30):
        weights.flat[entry] = 1.0
        found = pairs.periodic_slope(period, weights)
        assert abs(found - expected.flat[entry]) <= tolerances.flat[entry]
        weights.flat[entry] = 0.0


@pytest.mark.parametrize("shape", [(0,), (7,), (1, 7), (4, 100)])
def test_the_matrix_of_elementwise_pairs_has_their_shape(shape):
    rng = np.random.default_rng(0)
    x, other = rng.choice(np.linspace(-1, 1, 50), (2, *shape))
    values = BroadcastPairs(x, other).matrix(exponential)
    assert values.shape == shape
    expected = np.exp(-abs(x - other)) + x * other
    # terms that may cancel, of at most 1 each
    np.testing.assert_allclose(values, expected, rtol=0, atol=4 * EPS)
