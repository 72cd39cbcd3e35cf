"""Kernels, operators and whole models as kernels of scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
)

from autokernel.data import Column, Columns
from autokernel.expression import Leaf, Operation
from autokernel.inference import cross_covariance, diagonal_covariance
from autokernel.kernels import BASE_KERNELS, OPERATORS
from autokernel.model.sklearn_kernel import FeatureKernel, WrappedKernel, to_sklearn
from tests.kernels.gate import GATE
from tests.model.cases import BUILT_IN, Constant, dense_predictions, random_case
from tests.own_kernels import BY_CALL, OU


def make_kernels():
    """New kernels of every class."""
    rough = FeatureKernel(WrappedKernel(OU, (0.4, 1.5), 2.0), 1)
    return {
        "column": FeatureKernel(ExpSineSquared(0.8, 0.3), 1, shift=0.5),
        "column of a sum": FeatureKernel(2.0 * RBF(0.2) + DotProduct(1.1), 0, shift=-1.0),
        "kernel": WrappedKernel(OU, (0.4, 1.5), 2.0),
        "kernel of the package": WrappedKernel(BASE_KERNELS["PER"], (0.7, 1.2, 0.4), 3.0),
        "kernel with one parameter": WrappedKernel(Constant(), (0.6,)),
        "operation": WrappedKernel(
            GATE,
            (0.6,),
            operands=[2.0 * FeatureKernel(RBF(0.5), 0), FeatureKernel(DotProduct(0.8), 1)],
            shift=0.1,
            scale=2.0,
        ),
        "operation on wrapped kernels": WrappedKernel(
            GATE,
            (0.5,),
            operands=[rough, WrappedKernel(GATE, (0.2,), operands=[rough, ConstantKernel(0.3)])],
            feature=1,
        ),
        "change point": WrappedKernel(
            OPERATORS["CP"], (0.4, 0.2), operands=[rough, FeatureKernel(CATEGORIES, 0)]
        ),
        "change window of a sum": 0.5
        + WrappedKernel(
            OPERATORS["CW"],
            (0.4, 0.5, 0.1),
            operands=[FeatureKernel(WALK, 0), FeatureKernel(2.0 * RBF([0.5]), 1)],
        ),
        "product of trends": FeatureKernel(WrappedKernel(BASE_KERNELS["IRW"], (0.3, 0.6, 0.2)), 0)
        * FeatureKernel(WrappedKernel(BASE_KERNELS["IOU"], (0.5, 0.6, 0.2)), 1),
        "function of a user": WrappedKernel(BY_CALL, (0.4, 1.5)),
    }


WALK = WrappedKernel(BASE_KERNELS["RW"], (0.3, 1.0))
CATEGORIES = WrappedKernel(BASE_KERNELS["CAT"], (0.3, 0.2))
WRAPPED = ("kernel", "kernel of the package", "kernel with one parameter", "operation")


@pytest.fixture(params=make_kernels())
def kernel(request):
    return make_kernels()[request.param]


def points(n_rows, *, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, 2))


def test_copies_are_equal_and_share_nothing(kernel):
    X = points(6)
    before = kernel(X)
    for twin in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert twin == kernel
        assert twin is not kernel
        assert repr(twin) == repr(kernel)
        np.testing.assert_array_equal(twin.theta, kernel.theta)
        np.testing.assert_array_equal(twin.bounds, kernel.bounds)
        np.testing.assert_array_equal(twin(X), before)
        twin.theta = twin.theta + 0.1
        assert twin != kernel
        np.testing.assert_array_equal(kernel(X), before)
        np.testing.assert_array_equal(twin.bounds, kernel.bounds)  # these do not move with theta


def test_kernels_that_differ_in_anything_are_not_equal():
    several = make_kernels()
    equal = [[one == other for other in several.values()] for one in several.values()]
    assert equal == np.eye(len(several)).tolist()
    for one in map(several.__getitem__, WRAPPED):
        settings = one.get_params(deep=False)
        others = {
            "part": BASE_KERNELS["SE"],
            "scale": 2.1,
            "params": tuple(np.add(one.params, 0.1)),
            "params_bounds": "fixed",
            "operands": settings["operands"][::-1] or [RBF()],  # an operation is not symmetric
            "feature": 7,
            "shift": 3.0,
        }
        for name in others:
            assert type(one)(**{**settings, name: others[name]}) != one


def test_a_fixed_hyperparameter_is_none_of_theta_nor_of_the_gradient(kernel):
    X = points(6)
    K, whole = kernel(X, eval_gradient=True)
    start, names = 0, [h.name for h in kernel.hyperparameters]
    for h in kernel.hyperparameters:
        own = np.arange(start, start := start + h.n_elements)
        fixed = clone(kernel).set_params(**{f"{h.name}_bounds": "fixed"})
        for one in (fixed, clone(fixed), pickle.loads(pickle.dumps(fixed))):
            assert one == fixed
            assert one != kernel
            assert [each.name for each in one.hyperparameters] == names
            np.testing.assert_array_equal(one.theta, np.delete(kernel.theta, own))
            bounds = one.bounds.reshape(-1, 2)  # without any, scikit-learn's have one axis
            np.testing.assert_array_equal(bounds, np.delete(kernel.bounds, own, axis=0))
            values, gradient = one(X, eval_gradient=True)
            np.testing.assert_array_equal(values, K)
            np.testing.assert_array_equal(gradient, np.delete(whole, own, axis=2))
        moved = fixed.clone_with_theta(fixed.theta + 0.1)
        np.testing.assert_array_equal(moved.get_params()[h.name], kernel.get_params()[h.name])
        # exponentials of logs are rounded
        np.testing.assert_allclose(moved.theta, fixed.theta + 0.1, rtol=1e-13, atol=1e-15)
    every = clone(kernel).set_params(**{f"{name}_bounds": "fixed" for name in names})
    assert every.n_dims == len(every.bounds) == every(X, eval_gradient=True)[1].shape[2] == 0


def test_each_hyperparameter_is_a_parameter_that_can_be_set(kernel):
    start = 0
    for h in kernel.hyperparameters:
        own = slice(start, start := start + h.n_elements)
        found = kernel.get_params()[h.name]
        np.testing.assert_allclose(np.exp(kernel.theta[own]), found, rtol=1e-14)
        value = 10.0 if h.n_elements == 1 else [10.0] * h.n_elements
        other = clone(kernel).set_params(**{h.name: value})
        assert other != kernel
        expected = kernel.theta
        expected[own] = np.log(10.0)
        np.testing.assert_array_equal(other.theta, expected)
        np.testing.assert_allclose(other(points(4)), kernel.clone_with_theta(expected)(points(4)))
    with pytest.raises(ValueError, match="Invalid parameter"):
        kernel.set_params(lenghtscale=1.0)


def test_gradient_equals_finite_differences(kernel):
    X, step = points(6), 1e-6
    values, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_array_equal(values, kernel(X))
    assert gradient.shape == (6, 6, kernel.n_dims)
    for entry, direction in enumerate(step * np.eye(kernel.n_dims)):
        above = kernel.clone_with_theta(kernel.theta + direction)(X)
        below = kernel.clone_with_theta(kernel.theta - direction)(X)
        # central differences: truncation step^2, rounding 1e-16 * |K| / step, |K| up to 20
        np.testing.assert_allclose(gradient[..., entry], (above - below) / (2 * step), atol=1e-8)


def test_diagonal_and_blocks_are_those_of_the_matrix(kernel):
    X = points(7)
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    # sums of the same products in another order
    np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-14)
    np.testing.assert_allclose(kernel(X[:3], X[3:]), K[:3, 3:], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(kernel(X, X), K, rtol=1e-13, atol=1e-15)


# scikit-learn warns of a bound that holds, and of a line search that rounding has spoilt; that this
# may happen is no concern of the wrapper


@pytest.mark.parametrize("inner", [RBF(0.7), DotProduct(0.4)], ids=str)
def test_a_feature_kernel_is_the_inner_kernel_on_one_shifted_column(inner):
    X, Y = points(7), points(4, seed=1)
    kernel = FeatureKernel(inner, 1, shift=0.5)
    column, other = X[:, [1]] - 0.5, Y[:, [1]] - 0.5
    np.testing.assert_array_equal(kernel(X), inner(column))
    np.testing.assert_array_equal(kernel(X, Y), inner(column, other))
    np.testing.assert_array_equal(kernel.diag(X), inner.diag(column))
    assert kernel.is_stationary() == inner.is_stationary()


def test_it_prints_short():
    kernels = make_kernels()
    assert repr(FeatureKernel(RBF(2.0), 0, 1949.0)) == "[RBF(length_scale=2)](x0 - 1949)"
    assert repr(FeatureKernel(RBF(2.0), 1, name="day")) == "[RBF(length_scale=2)](day)"
    assert repr(kernels["kernel"]) == "OU(lengthscale=0.4, variance=1.5)"
    rough = "[OU(lengthscale=0.4, variance=1.5)](x1)"
    inner = f"GATE[x0]({rough}, 0.548**2, location=0.2)"
    found = repr(kernels["operation on wrapped kernels"])
    assert found == f"GATE[x1]({rough}, {inner}, location=0.5)"


# Whole models


def columns_of(*shifts_and_scales):
    every = (Column("", low=shift, extent=scale) for shift, scale in shifts_and_scales)
    return Columns(tuple(every))


@pytest.mark.parametrize(
    ("seed", "kernels", "shift", "scale", "n_features"),
    [
        (0, BUILT_IN, 0.0, 1.0, 1),
        (1, BUILT_IN, 1949.0, 12.0, 3),
        (2, BUILT_IN, -5e9, 1e9, 1),
        (3, BUILT_IN, 0.0, 1e-9, 3),
        (3, (OU, *BUILT_IN), 0.0, 1.0, 3),
        (2, (OU, *BUILT_IN), 1949.0, 12.0, 1),
        (1, (OU, *BUILT_IN), -5e9, 1e9, 3),
        (0, (OU, *BUILT_IN), 0.0, 1e-9, 1),
    ],
)
def test_the_exported_kernel_in_other_units_is_the_scaled_one(
    seed, kernels, shift, scale, n_features
):
    expression, theta, X, y, likelihood = random_case(seed, n_features=n_features, kernels=kernels)
    X_new = np.random.default_rng(seed + 100).uniform(-0.2, 1.2, size=(9, n_features))
    expected_mean, expected_covariance = dense_predictions(expression, theta, X, y, X_new)
    columns, noise = columns_of(*[(shift, scale)] * n_features), np.exp(theta[-1])
    kernel = to_sklearn(expression, np.exp(theta[:-1]), columns=columns, noise_variance=noise)
    gpr = GaussianProcessRegressor(kernel=kernel, optimizer=None, normalize_y=True, alpha=0)
    gpr.fit(X * scale + shift, 3e4 * y - 1e6)
    # adding and taking off the shift loses shift / scale * 1e-16 of x; noise 0.01 amplifies it
    assert gpr.log_marginal_likelihood_value_ == pytest.approx(likelihood.value(theta), rel=1e-8)
    mean, std = gpr.predict(X_new * scale + shift, return_std=True)
    # the contract of design 2.4, on the scale of the target
    np.testing.assert_allclose((mean + 1e6) / 3e4, expected_mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(std / 3e4, np.sqrt(np.diag(expected_covariance)), rtol=1e-6)


def test_the_export_of_an_operator_is_the_covariance_of_the_engine():
    leaves = Leaf(OU, 1), Leaf(BASE_KERNELS["LIN"], 0), Leaf(BASE_KERNELS["SE"], 0)
    expression = Operation(GATE, Operation(GATE, *leaves[:2], column=1), leaves[2], column=0)
    # in the order of the nodes: GATE, GATE, OU, LIN, SE, and the noise
    theta = np.log([0.4, 0.6, 0.5, 1.2, 0.7, 0.3, 0.2, 0.9, 0.01])
    columns = columns_of((1949.0, 12.0), (-3.0, 0.5))
    kernel = to_sklearn(expression, np.exp(theta[:-1]), columns=columns, noise_variance=0.01)
    rng = np.random.default_rng(0)
    X, Z = rng.uniform(size=(7, 2)), rng.uniform(size=(5, 2))
    there, here = (rows * [12.0, 0.5] + [1949.0, -3.0] for rows in (X, Z))
    X, Z = columns.scaled(X), columns.scaled(Z)
    expected = cross_covariance(expression, X, Z).forward(np.exp(theta[:-1]))
    # the shift costs 1949 / 12 * 1e-16 of an input
    np.testing.assert_allclose(kernel(there, here), expected, rtol=1e-11)
    variances = diagonal_covariance(expression, X).forward(np.exp(theta[:-1])) + 0.01
    np.testing.assert_allclose(kernel.diag(there), variances, rtol=1e-11)
    assert kernel.n_dims == len(theta)  # there are as many free parameters as the model has
