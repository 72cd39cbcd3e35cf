"""Kernels and operators of this package as kernels of scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from autokernel.data.scaling import Scaling
from autokernel.expression import Leaf, Operation
from autokernel.inference import cross_covariance, diagonal_covariance
from autokernel.kernels import BASE_KERNELS
from autokernel.model import FeatureKernel, WrappedKernel, WrappedOperation, to_sklearn
from tests.model.cases import ChangePoint, Constant, Exponential

CP = ChangePoint()


def make_kernels():
    """Wrapped kernels and operations, made anew."""
    rough = FeatureKernel(WrappedKernel(Exponential(), (0.4, 1.5), 2.0), 1)
    return {
        "kernel": WrappedKernel(Exponential(), (0.4, 1.5), 2.0),
        "kernel of the package": WrappedKernel(BASE_KERNELS["PER"], (0.7, 1.2, 0.4), 3.0),
        "kernel with one parameter": WrappedKernel(Constant(), (0.6,)),
        "operation": WrappedOperation(
            CP,
            [2.0 * FeatureKernel(RBF(0.5), 0), FeatureKernel(DotProduct(0.8), 1)],
            (0.6,),
            feature=0,
            shift=0.1,
            scale=2.0,
        ),
        "operation on wrapped kernels": WrappedOperation(
            CP, [rough, WrappedOperation(CP, [rough, ConstantKernel(0.3)], (0.2,), 0)], (0.5,), 1
        ),
    }


@pytest.fixture(params=make_kernels())
def kernel(request):
    return make_kernels()[request.param]


def points(n_rows, *, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, 2))


def test_copies_are_equal_and_of_their_own(kernel):
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


def test_kernels_that_differ_in_anything_are_not_equal():
    several = list(make_kernels().values())
    first = WrappedKernel(Exponential(), (0.4, 1.5), 2.0)
    assert [first == other for other in several] == [True, False, False, False, False]
    assert first != WrappedKernel(Exponential(), (0.4, 1.6), 2.0)
    assert first != WrappedKernel(Exponential(), (0.4, 1.5), 2.1)
    assert first != WrappedKernel(Exponential(name="OTHER"), (0.4, 1.5), 2.0)
    assert first != WrappedKernel(BASE_KERNELS["SE"], (0.4, 1.5), 2.0)
    operation = several[3]
    settings = operation.get_params(deep=False)
    others = {
        "operands": operation.operands[::-1],  # it is not symmetric
        "params": (0.7,),
        "feature": 1,
        "shift": 0.0,
        "scale": 1.0,
    }
    for name, value in others.items():
        assert WrappedOperation(**{**settings, name: value}) != operation


def test_theta_goes_in_as_it_comes_out(kernel):
    theta = kernel.theta + np.linspace(-0.3, 0.3, kernel.n_dims)
    other = kernel.clone_with_theta(theta)
    # exponentials of logs are rounded
    np.testing.assert_allclose(other.theta, theta, rtol=1e-13, atol=1e-15)
    assert sum(h.n_elements for h in kernel.hyperparameters) == kernel.n_dims == len(kernel.bounds)
    assert np.all(kernel.bounds[:, 0] < kernel.theta)
    assert np.all(kernel.theta < kernel.bounds[:, 1])


def test_gradient_equals_finite_differences(kernel):
    X, step = points(6), 1e-6
    values, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_array_equal(values, kernel(X))
    assert gradient.shape == (6, 6, kernel.n_dims)
    for place, direction in enumerate(step * np.eye(kernel.n_dims)):
        above = kernel.clone_with_theta(kernel.theta + direction)(X)
        below = kernel.clone_with_theta(kernel.theta - direction)(X)
        # central differences: truncation step^2, rounding 1e-16 * |K| / step, |K| up to 20
        np.testing.assert_allclose(gradient[..., place], (above - below) / (2 * step), atol=1e-8)


def test_diagonal_and_blocks_are_those_of_the_matrix(kernel):
    X = points(7)
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    # sums of the same products in another order
    np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-14)
    np.testing.assert_allclose(kernel(X[:3], X[3:]), K[:3, 3:], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(kernel(X, X), K, rtol=1e-13, atol=1e-15)


# scikit-learn tells of a bound that holds; that this may happen is no concern of the wrapper
@pytest.mark.filterwarnings("ignore:The optimal value found:sklearn.exceptions.ConvergenceWarning")
def test_a_regressor_optimises_it(kernel):
    X = points(25)
    y = np.sin(3 * X[:, 0]) + 0.3 * X[:, 1]
    y -= y.mean()
    noisy = kernel + WhiteKernel(0.1)
    fixed = GaussianProcessRegressor(noisy, optimizer=None).fit(X, y)
    free = GaussianProcessRegressor(noisy).fit(X, y)
    before, after = fixed.log_marginal_likelihood_value_, free.log_marginal_likelihood_value_
    assert after > before + 0.1
    assert np.isfinite(free.predict(X, return_std=True)).all()
    np.testing.assert_array_equal(noisy.theta, fixed.kernel_.theta)  # the one given is not touched
    # it has stopped at a maximum: a second run gains next to nothing
    again = GaussianProcessRegressor(free.kernel_).fit(X, y).log_marginal_likelihood_value_
    assert after <= again + 1e-9
    assert again - after < 0.01


def test_bounds_stay_where_they_are_as_parameters_move(kernel):
    before = kernel.bounds.copy()
    kernel.theta = kernel.theta + 0.5
    np.testing.assert_array_equal(kernel.bounds, before)


def test_the_export_of_an_operator_is_the_covariance_of_the_engine():
    leaves = Leaf(Exponential(), 1), Leaf(BASE_KERNELS["LIN"], 0), Leaf(BASE_KERNELS["SE"], 0)
    expression = Operation(CP, Operation(CP, *leaves[:2], column=1), leaves[2], column=0)
    # in the order of the nodes: CP, CP, OU, LIN, SE, and the noise
    theta = np.log([0.4, 0.6, 0.5, 1.2, 0.7, 0.3, 0.2, 0.9, 0.01])
    scaling = Scaling(np.array([1949.0, -3.0]), np.array([12.0, 0.5]))
    kernel = to_sklearn(expression, theta, scaling=scaling)
    rng = np.random.default_rng(0)
    X, Z = rng.uniform(size=(7, 2)), rng.uniform(size=(5, 2))
    there, here = (rows * scaling.scale + scaling.shift for rows in (X, Z))
    expected = cross_covariance(expression, X, Z).forward(np.exp(theta[:-1]))
    # the shift costs 1949 / 12 * 1e-16 of an input
    np.testing.assert_allclose(kernel(there, here), expected, rtol=1e-11)
    variances = diagonal_covariance(expression, X).forward(np.exp(theta[:-1])) + 0.01
    np.testing.assert_allclose(kernel.diag(there), variances, rtol=1e-11)
    # there are as many free parameters as the model has
    assert kernel.n_dims == len(theta)


def test_it_prints_short():
    kernels = make_kernels()
    assert repr(kernels["kernel"]) == "OU(lengthscale=0.4, variance=1.5)"
    rough = "[OU(lengthscale=0.4, variance=1.5)](x1)"
    inner = f"CP[x0]({rough}, 0.548**2, location=0.2)"
    assert (
        repr(kernels["operation on wrapped kernels"]) == f"CP[x1]({rough}, {inner}, location=0.5)"
    )
