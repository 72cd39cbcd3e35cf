"""Export to scikit-learn kernels."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct, ExpSineSquared, WhiteKernel

from autokernel.data.scaling import Scaling
from autokernel.expression import Leaf
from autokernel.inference import TrainingData
from autokernel.inference.exact import ExactPredictor
from autokernel.kernels import BASE_KERNELS
from autokernel.model import FeatureKernel, WrappedKernel, to_sklearn
from tests.model.cases import Exponential, dense_predictions, random_case

N_FEATURES = 3
INNER = [RBF(0.7), ExpSineSquared(0.8, 0.3), DotProduct(0.4), 2.0 * RBF(0.2) + DotProduct(1.1)]


@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (1949.0, 12.0), (-5e9, 1e9), (0.0, 1e-9)])
@pytest.mark.parametrize("seed", range(6))
def test_exported_kernel_in_other_units_has_the_likelihood_of_the_scaled_one(
    seed, shift, scale, n_features
):
    expression, theta, X, y, likelihood = random_case(seed, n_features=n_features)
    scaling = Scaling(np.full(n_features, shift), np.full(n_features, scale))
    kernel = to_sklearn(expression, theta, scaling=scaling)
    gpr = GaussianProcessRegressor(kernel=kernel, optimizer=None, normalize_y=True, alpha=0)
    gpr.fit(X * scale + shift, 3e4 * y - 1e6)
    # adding and taking off the shift loses shift / scale * 1e-16 of x; noise 0.01 amplifies it
    assert gpr.log_marginal_likelihood_value_ == pytest.approx(likelihood.value(theta), rel=1e-8)


@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (1949.0, 12.0), (-5e9, 1e9), (0.0, 1e-9)])
@pytest.mark.parametrize("seed", range(6))
def test_exported_kernel_in_other_units_predicts_what_the_scaled_one_does(
    seed, shift, scale, n_features
):
    expression, theta, X, y, _ = random_case(seed, n_features=n_features)
    X_new = np.random.default_rng(seed + 100).uniform(-0.2, 1.2, size=(9, n_features))
    expected_mean, expected_covariance = dense_predictions(expression, theta, X, y, X_new)
    scaling = Scaling(np.full(n_features, shift), np.full(n_features, scale))
    kernel = to_sklearn(expression, theta, scaling=scaling)
    gpr = GaussianProcessRegressor(kernel=kernel, optimizer=None, normalize_y=True, alpha=0)
    gpr.fit(X * scale + shift, 3e4 * y - 1e6)
    mean, std = gpr.predict(X_new * scale + shift, return_std=True)
    # the contract of design 2.4, on the scale of the target
    np.testing.assert_allclose((mean + 1e6) / 3e4, expected_mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(std / 3e4, np.sqrt(np.diag(expected_covariance)), rtol=1e-6)


@pytest.mark.parametrize(
    "kernels",
    [
        tuple(BASE_KERNELS.values()),
        (BASE_KERNELS["MAT32"],),
        (BASE_KERNELS["MAT52"],),
        (Exponential(),),
        (Exponential(), *BASE_KERNELS.values()),
    ],
    ids=lambda kernels: "+".join(kernel.name for kernel in kernels),
)
@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_exported_kernel_predicts_what_the_predictor_does(seed, n_features, kernels):
    expression, theta, X, y, _ = random_case(seed, n_features=n_features, kernels=kernels)
    X_new = np.random.default_rng(seed + 100).uniform(-0.2, 1.2, size=(9, n_features))
    predictor = ExactPredictor(expression, theta, TrainingData(X, y))
    scaling = Scaling(np.full(n_features, 1949.0), np.full(n_features, 12.0))
    kernel = to_sklearn(expression, theta, scaling=scaling, noise_variance=predictor.noise_variance)
    gpr = GaussianProcessRegressor(kernel=kernel, optimizer=None, normalize_y=True, alpha=0)
    gpr.fit(X * 12.0 + 1949.0, y)
    mean, std = gpr.predict(X_new * 12.0 + 1949.0, return_std=True)
    _, covariance = gpr.predict(X_new * 12.0 + 1949.0, return_cov=True)
    found_mean, variance = predictor.mean_and_variance(X_new)
    _, found_covariance = predictor.mean_and_covariance(X_new)
    # the contract of design 2.4; covariances, which may be zero, as correlations
    np.testing.assert_allclose(found_mean, mean, rtol=1e-6)
    np.testing.assert_allclose(np.sqrt(variance), std, rtol=1e-6)
    assert np.all(np.abs(found_covariance - covariance) <= 1e-6 * np.outer(std, std))


def test_a_kernel_that_scikit_learn_does_not_have_is_wrapped():
    scaling = Scaling(np.array([1949.0]), np.array([12.0]))
    kernel = to_sklearn(Leaf(Exponential(), 0), np.log([0.5, 2.0, 0.1]), scaling=scaling)
    inner = WrappedKernel(Exponential(), (0.5, 2.0), 12.0)
    # exponentials of logs are rounded
    np.testing.assert_allclose(kernel.k1.kernel.params, inner.params, rtol=1e-14)
    X = 1949 + 12 * np.random.default_rng(0).uniform(size=(6, 1))
    distances = np.abs(X - X.T) / 12
    np.testing.assert_allclose(kernel.k1(X), 2.0 * np.exp(-distances / 0.5), rtol=1e-12)


def test_exported_kernel_can_be_optimised_further_and_does_not_get_worse():
    expression, theta, X, y, _ = random_case(3, n_features=1)
    scaling = Scaling(np.zeros(1), np.full(1, 1e6))
    kernel = to_sklearn(expression, theta, scaling=scaling)
    fixed = GaussianProcessRegressor(kernel=kernel, optimizer=None, alpha=0).fit(1e6 * X, y)
    free = GaussianProcessRegressor(kernel=kernel, alpha=0).fit(1e6 * X, y)
    assert free.log_marginal_likelihood_value_ > fixed.log_marginal_likelihood_value_


def test_jitter_is_counted_in_the_exported_noise():
    expression, theta, _, _, _ = random_case(0, n_features=1)
    scaling = Scaling(np.zeros(1), np.ones(1))
    kernel = to_sklearn(expression, theta, scaling=scaling, noise_variance=np.exp(theta[-1]) + 0.25)
    assert isinstance(kernel.k2, WhiteKernel)
    # one addition and one exponential are rounded
    assert kernel.k2.noise_level == pytest.approx(np.exp(theta[-1]) + 0.25, rel=1e-14)


@pytest.mark.parametrize("inner", INNER, ids=str)
def test_feature_kernel_is_the_inner_kernel_on_one_shifted_column(inner):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(7, N_FEATURES)), rng.normal(size=(4, N_FEATURES))
    kernel = FeatureKernel(inner, 1, shift=0.5)
    column, other = X[:, [1]] - 0.5, Y[:, [1]] - 0.5
    np.testing.assert_array_equal(kernel(X), inner(column))
    np.testing.assert_array_equal(kernel(X, Y), inner(column, other))
    np.testing.assert_array_equal(kernel.diag(X), inner.diag(column))
    assert kernel.is_stationary() == inner.is_stationary()


@pytest.mark.parametrize("inner", INNER, ids=str)
def test_feature_kernel_gradient_equals_finite_differences(inner):
    X = np.random.default_rng(1).normal(size=(6, N_FEATURES))
    kernel = FeatureKernel(inner, 2, shift=-1.0)
    _, gradient = kernel(X, eval_gradient=True)
    step = 1e-6
    for place in range(kernel.n_dims):
        direction = step * np.eye(kernel.n_dims)[place]
        above = kernel.clone_with_theta(kernel.theta + direction)(X)
        below = kernel.clone_with_theta(kernel.theta - direction)(X)
        # central differences: truncation step^2, rounding 1e-16 * |K| / step, |K| up to 20
        np.testing.assert_allclose(gradient[..., place], (above - below) / (2 * step), atol=1e-8)


@pytest.mark.parametrize("inner", INNER, ids=str)
def test_feature_kernel_clones_pickles_and_compares_by_value(inner):
    kernel = FeatureKernel(inner, 1, shift=0.5) + WhiteKernel(0.1)
    for copy in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert copy == kernel
        np.testing.assert_array_equal(copy.theta, kernel.theta)
        np.testing.assert_array_equal(copy.bounds, kernel.bounds)
    assert FeatureKernel(inner, 1) != FeatureKernel(inner, 2)
    assert FeatureKernel(inner, 1, 0.1) != FeatureKernel(inner, 1)


def test_feature_kernel_parameters_reach_the_inner_kernel():
    kernel = FeatureKernel(2.0 * RBF(0.3), 0)
    assert kernel.get_params()["kernel__k2__length_scale"] == 0.3
    kernel.set_params(kernel__k2__length_scale=0.9)
    assert kernel.kernel.k2.length_scale == 0.9
    kernel.theta = np.log([4.0, 0.5])
    # exponentials of logs are rounded
    assert kernel.kernel.k1.constant_value == pytest.approx(4.0, rel=1e-14)


def test_feature_kernel_prints_short():
    assert repr(FeatureKernel(RBF(2.0), 1)) == "[RBF(length_scale=2)](x1)"
    assert repr(FeatureKernel(RBF(2.0), 0, 1949.0)) == "[RBF(length_scale=2)](x0 - 1949)"
