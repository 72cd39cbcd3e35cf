import numpy as np
import pytest

from autokernel.search.arc import ArcKernel
from autokernel.search.boms import HellingerKernel
from autokernel.search.sot import SOTKernel
from tests.batteries import reshuffled

X = np.random.default_rng(0).uniform(size=(5, 2))
BUILDERS = {
    "sot": lambda: SOTKernel(),
    "hellinger": lambda: HellingerKernel(X, {}),
    "arc": lambda: ArcKernel(),
}


@pytest.fixture(scope="module", params=BUILDERS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def kernel_kernel(name):
    return BUILDERS[name]()


@pytest.fixture(scope="module")
def expressions(random_expressions):
    """Two hundred, some of them equal, on both columns."""
    return random_expressions(200, n_features=2, seed=0)


@pytest.fixture(scope="module")
def distances(kernel_kernel, expressions):
    return kernel_kernel.distances(expressions)


def random_params(kernel_kernel, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(*np.transpose(kernel_kernel.bounds))


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits))


def test_weights_of_sot_are_shares_over_the_squared_lengthscale():
    params = np.array([0.8, -2.0, 0.5, 3.0])
    # SOT appendix A.5: sigmoids, normalised
    shares = [sigmoid(logit) / sum(map(sigmoid, params[1:])) for logit in params[1:]]
    computed, _ = SOTKernel().weights(params)
    np.testing.assert_allclose(computed, np.array(shares) / np.exp(0.8), rtol=1e-12)  # rounding
    assert computed.sum() == pytest.approx(np.exp(-0.8), rel=1e-12)


def test_weight_of_hellinger_is_half_the_inverse_of_the_squared_lengthscale():
    lengthscale = 0.3
    computed, _ = HellingerKernel(X, {}).weights(np.array([2 * np.log(lengthscale)]))
    assert computed == pytest.approx([1 / (2 * lengthscale**2)], rel=1e-12)  # BOMS eq. 8


def test_weights_of_arc_are_products_of_squared_gammas_down_to_the_level():
    params = random_params(ArcKernel(), 0)
    gammas = [np.exp(-params[0] / 2), *sigmoid(params[1:])]  # the root's one over the lengthscale
    expected = [np.prod(gammas[: level + 1]) ** 2 for level in range(10)]
    computed, _ = ArcKernel().weights(params)
    np.testing.assert_allclose(computed, expected, rtol=1e-12)  # rounding of ten factors


@pytest.mark.parametrize("seed", range(5))
def test_jacobian_of_the_weights_is_that_of_finite_differences(seed, kernel_kernel):
    params = random_params(kernel_kernel, seed)
    values, jacobian = kernel_kernel.weights(params)
    assert jacobian.shape == (len(values), len(kernel_kernel.bounds))
    step = 1e-5
    differences = [
        (kernel_kernel.weights(params + e)[0] - kernel_kernel.weights(params - e)[0]) / (2 * step)
        for e in step * np.eye(len(kernel_kernel.bounds))
    ]
    # relative to the weight, rounding over the step, 1e-11, and the squared step times a sixth of
    # the third derivative, which is at most eight weights
    error = np.abs(jacobian - np.transpose(differences)) / values[:, None]
    assert error.max() < 1e-9


def test_weights_are_positive_and_finite_up_to_the_bounds(kernel_kernel):
    lower, upper = np.transpose(kernel_kernel.bounds)
    assert np.all((lower < 0) & (upper > 0))  # where a fit starts
    for params in (lower, upper, *(random_params(kernel_kernel, seed) for seed in range(20))):
        values, jacobian = kernel_kernel.weights(params)
        assert np.all(values > 0)
        assert np.all(np.isfinite(values))
        assert np.all(np.isfinite(jacobian))


def test_distances_are_symmetric_and_not_negative(distances):
    # sums of some dozen frequencies in another order, in SOT
    np.testing.assert_allclose(distances, distances.swapaxes(1, 2), rtol=0, atol=1e-14)
    assert distances.min() >= 0
    assert distances.max() > 0.5  # or the test shows nothing


def test_the_distance_of_an_expression_to_itself_is_exactly_zero(kernel_kernel, expressions):
    few = expressions[:50]
    for columns in (None, list(few)):
        diagonal = np.diagonal(kernel_kernel.distances(few, columns), axis1=1, axis2=2)
        np.testing.assert_array_equal(diagonal, 0.0)


def test_distances_to_others_are_a_part_of_the_square_matrix(kernel_kernel, expressions, distances):
    part = kernel_kernel.distances(expressions[:7], expressions[150:])
    assert part.shape == (len(distances), 7, 50)
    np.testing.assert_allclose(part, distances[:, :7, 150:], rtol=0, atol=1e-14)  # as above


@pytest.mark.parametrize("name", ["hellinger", "arc"], indirect=True)
def test_reordered_and_regrouped_trees_are_one_expression(kernel_kernel, expressions):
    rng = np.random.default_rng(0)
    few = expressions[:50]
    others = [reshuffled(expression, rng) for expression in few]
    assert sum(a != b for a, b in zip(few, others, strict=True)) > 10  # or the test shows nothing
    # one canonical text: everything is computed from the same tree
    to_others = kernel_kernel.distances(few, others)
    np.testing.assert_array_equal(np.diagonal(to_others, axis1=1, axis2=2), 0.0)
    np.testing.assert_array_equal(to_others, kernel_kernel.distances(few))


@pytest.mark.parametrize("seed", range(4))
def test_the_kernel_is_positive_semi_definite(seed, kernel_kernel, distances):
    weights, _ = kernel_kernel.weights(random_params(kernel_kernel, seed))
    K = np.exp(-np.tensordot(weights, distances, axes=1))
    # some are equal: the smallest eigenvalue is 0, and its computed value off by a small multiple
    # of eps times the norm, at most 200; distances are off by 1e-14, times weights of at most 55
    assert np.linalg.eigvalsh(K)[0] > -200 * (200 * np.finfo(float).eps + 55e-14)
