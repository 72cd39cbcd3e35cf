"""Parts of a kernel that are computed once for each distinct lag of a column."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from autokernel.exceptions import CustomPartError
from autokernel.expression import Leaf, n_kernel_params, parse_expression
from autokernel.inference import TrainingData
from autokernel.inference.covariance import Covariance
from autokernel.inference.pairs import PackedPairs
from autokernel.kernels import BASE_KERNELS, BaseKernel
from autokernel.kernels.built_in import SquaredExponential
from tests.batteries import EVERY_OPERATOR, expressions, seeds

GRAMMAR = replace(EVERY_OPERATOR, columns=(0, 1, 2, 3), max_leaves=7)


class AllPairs(PackedPairs):
    """The pairs of a column that are all computed one by one."""

    distinct = None


class CountedLags(BaseKernel):
    """A stationary kernel that remembers of how many pairs it has computed the values."""

    name = "COUNTED"
    parameters = BASE_KERNELS["SE"].parameters
    is_stationary = True
    _sizes: list[int]

    def __init__(self):
        self._sizes = []

    def value(self, params, pairs):
        self._sizes.append(pairs.difference.size)
        return params[1] / (1 + pairs.difference / params[0])


def inputs(rng):
    """A grid in any order, another one with ties, a column without equal lags, and a constant."""
    grid = rng.permutation(np.linspace(-1, 2, 60))
    return np.stack(
        [grid, rng.integers(0, 9, 60) / 7, rng.uniform(size=60), np.full(60, 0.4)], axis=1
    )


@settings(max_examples=12)
@given(expression=expressions(GRAMMAR), seed=seeds)
def test_values_and_gradients_are_those_of_all_pairs(expression, seed):
    rng = np.random.default_rng(seed)
    X = inputs(rng)
    params = np.exp(rng.uniform(-1, 1, n_kernel_params(expression)))
    data = TrainingData(X, X[:, 0])
    by_lags = Covariance(expression, data.pairs)
    one_by_one = Covariance(expression, lambda view: AllPairs(data.inputs.view(view)))
    expected = one_by_one.forward(params)
    # the phases of PER, up to some hundred, are rounded differently, and so are lags themselves
    np.testing.assert_allclose(
        by_lags.forward(params), expected, rtol=1e-10, atol=1e-11 * abs(expected).max()
    )
    adjoint = rng.normal(size=expected.shape)
    scale = (abs(adjoint) @ abs(expected)) * (1 + 1e3)  # of a derivative along a period
    np.testing.assert_allclose(
        by_lags.backward(adjoint), one_by_one.backward(adjoint), rtol=1e-7, atol=1e-12 * scale
    )


@pytest.mark.parametrize(("column", "size"), [(0, 60), (1, 9), (2, 60 * 61 // 2)])
def test_a_kernel_is_computed_once_for_each_distinct_lag(column, size):
    kernel = CountedLags()
    X = inputs(np.random.default_rng(0))
    values = Covariance(Leaf(kernel, column), TrainingData(X, X[:, 0]).pairs).forward(np.ones(2))
    assert kernel._sizes == [size]
    assert len(values) == 60 * 61 // 2
    for other in ("LIN[0]", "LIN[0] + SE[2]"):  # next to factors that are not computed so, too
        product = Leaf(kernel, column) * parse_expression(other)
        params = np.ones(n_kernel_params(product))
        Covariance(product, TrainingData(X, X[:, 0]).pairs).forward(params)
        assert kernel._sizes[-1] == size


class Warped(SquaredExponential):
    """A kernel that is not stationary and forgets to say so."""

    name = "WARPED"
    closed_under_products = False

    def __init__(self, quantity):
        self._quantity = quantity

    def exponent(self, params, pairs):
        return super().exponent(params, pairs) - 0.3 * self._quantity(pairs)


@pytest.mark.parametrize("quantity", [lambda p: p.product, lambda p: p.outer(np.sin)])
def test_a_kernel_that_is_wrongly_declared_stationary_is_an_error_not_a_wrong_matrix(quantity):
    X = inputs(np.random.default_rng(0))
    covariance = Covariance(Leaf(Warped(quantity), 0), TrainingData(X, X[:, 0]).pairs)
    with pytest.raises(CustomPartError, match="set is_stationary = False"):
        covariance.forward(np.ones(2))
