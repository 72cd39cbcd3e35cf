"""One suite of properties of all base kernels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autokernel import AutoKernelGPRegressor, evaluate_kernel, parse_expression
from autokernel.expression import Leaf
from autokernel.inference.covariance import Covariance
from autokernel.inference.pairs import PackedPairs
from autokernel.kernels import (
    BASE_KERNELS,
    PRESETS,
    BaseKernel,
    BroadcastPairs,
    ExponentialKernel,
    LagPairs,
    Role,
    role_index,
)
from autokernel.typing import FloatArray
from tests.batteries import covariance, numerical_gradient, random_params, seeds


def squared_exponential(x: float, z: float, length: float, v: float) -> float:
    return v * np.exp(-((x - z) ** 2) / (2 * length**2))


def linear(x: float, z: float, v: float, c: float) -> float:
    return v * x * z + c


def periodic(x: float, z: float, length: float, v: float, p: float) -> float:
    return v * np.exp(-(np.sin(np.pi * (x - z) / p) ** 2) / (2 * length**2))


def rational_quadratic(x: float, z: float, length: float, v: float, a: float) -> float:
    return v * (1 + (x - z) ** 2 / (2 * a * length**2)) ** -a


def once_differentiable(x: float, z: float, length: float, v: float) -> float:
    distance = np.sqrt(3) * abs(x - z) / length
    return v * (1 + distance) * np.exp(-distance)


def twice_differentiable(x: float, z: float, length: float, v: float) -> float:
    distance = np.sqrt(5) * abs(x - z) / length
    return v * (1 + distance + distance**2 / 3) * np.exp(-distance)


FORMULAS = {
    "SE": squared_exponential,
    "LIN": linear,
    "PER": periodic,
    "RQ": rational_quadratic,
    "MAT32": once_differentiable,
    "MAT52": twice_differentiable,
}


@pytest.mark.parametrize("kernel", BASE_KERNELS.values(), ids=BASE_KERNELS)
class TestEveryBaseKernel:
    def test_is_registered_under_a_name_that_the_notation_reads(self, kernel: BaseKernel) -> None:
        assert BASE_KERNELS[kernel.name] is kernel
        assert parse_expression(f"{kernel.name}[0]") == Leaf(kernel, 0)

    def test_every_parameter_has_a_prior_in_every_preset(self, kernel: BaseKernel) -> None:
        for priors in PRESETS.values():
            for parameter in kernel.parameters:
                shape, rate = parameter.prior_in(priors)
                assert 0 < shape < np.inf
                assert 0 < rate < np.inf

    def test_one_parameter_is_its_variance(self, kernel: BaseKernel) -> None:
        index = role_index(kernel.parameters, Role.VARIANCE)
        assert kernel.parameters[index].name == "variance"
        if isinstance(kernel, ExponentialKernel):
            assert kernel.variance_index == index

    @given(seed=seeds)
    def test_value_is_that_of_the_published_formula(self, kernel: BaseKernel, seed: int) -> None:
        rng = np.random.default_rng(seed)
        params, x = random_params(kernel, rng), rng.uniform(-1, 1, 7)
        formula = FORMULAS[kernel.name]
        expected = np.array([[formula(a, b, *params) for b in x] for a in x])
        # a phase of up to 60 in PER, divided by 2 l^2 >= 0.1, loses up to 600 EPS
        np.testing.assert_allclose(
            covariance(Leaf(kernel, 0), params, x[:, None]), expected, rtol=1e-12, atol=1e-14
        )

    @given(seed=seeds)
    def test_values_follow_its_declarations(self, kernel: BaseKernel, seed: int) -> None:
        rng = np.random.default_rng(seed)
        params, (x, z) = random_params(kernel, rng), rng.uniform(-1, 1, (2, 6))
        pairs = BroadcastPairs(x, z)
        if kernel.is_stationary:
            lags = kernel.value(params, LagPairs(abs(x - z)))
            np.testing.assert_allclose(lags, kernel.value(params, pairs), rtol=1e-12)
        if kernel.is_linear:  # k(x, z) is of first degree in x
            beyond = kernel.value(params, BroadcastPairs(2 * x, z))
            origin = kernel.value(params, BroadcastPairs(0 * x, z))
            np.testing.assert_allclose(beyond - origin, 2 * (kernel.value(params, pairs) - origin))
        if kernel.broadcasts:
            many = np.stack([params, 2 * params], axis=1)[:, :, None]
            single = [kernel.value(one, pairs) for one in (params, 2 * params)]
            np.testing.assert_allclose(kernel.value(many, pairs), single, rtol=1e-12)
        for limit in kernel.limits:
            assert len(limit.parameters) < len(kernel.parameters)

    def test_evaluates_by_itself_and_with_another_kernel(self, kernel: BaseKernel) -> None:
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(20, 1))
        y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=20)
        for text in (f"{kernel.name}[0]", f"LIN[0] * {kernel.name}[0] + SE[0]"):
            fit = evaluate_kernel(text, X, y)
            assert fit.status == "ok"
            assert np.isfinite(fit.score)

    def test_wins_a_short_fit_if_there_is_no_other(self, kernel: BaseKernel) -> None:
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 50, size=(20, 1))
        # a wave on a trend: each kernel explains more of it than only noise does
        y = np.sin(X[:, 0] / 5) + X[:, 0] / 10 + 0.1 * rng.normal(size=20)
        model = AutoKernelGPRegressor(base_kernels=(kernel.name,), n_iter=1, max_leaves=2)
        model.fit(X, y)
        assert set(model.search_history_["status"]) == {"ok"}
        assert f"{kernel.name}[0]" in model.best_expression_
        assert np.isfinite(model.predict(X, return_std=True)).all()

    @given(seed=seeds, scale=st.sampled_from([1.0, 12.0, 0.01]))
    def test_value_equals_that_of_the_exported_kernel_on_scaled_inputs(
        self, kernel: BaseKernel, seed: int, scale: float
    ) -> None:
        rng = np.random.default_rng(seed)
        params, X = random_params(kernel, rng), rng.uniform(-1, 1, (9, 1))
        K = covariance(Leaf(kernel, 0), params, X)
        expected = kernel.to_sklearn(params, scale=scale)(scale * X)
        # a phase of up to 60 in PER, divided by 2 l^2 >= 0.1, loses up to 600 EPS
        np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-13 * abs(expected).max())

    @given(seed=seeds)
    def test_exported_hyperparameters_lie_strictly_within_their_bounds(
        self, kernel: BaseKernel, seed: int
    ) -> None:
        params = random_params(kernel, np.random.default_rng(seed))
        sklearn_kernel = kernel.to_sklearn(params, scale=1e4)
        lower, upper = sklearn_kernel.bounds.T
        assert (lower < sklearn_kernel.theta).all()
        assert (sklearn_kernel.theta < upper).all()

    @given(seed=seeds, n_samples=st.integers(1, 9))
    def test_gradient_in_the_log_parameters_equals_finite_differences(
        self, kernel: BaseKernel, seed: int, n_samples: int
    ) -> None:
        rng = np.random.default_rng(seed)
        theta = np.log(random_params(kernel, rng))
        pairs = PackedPairs(rng.uniform(-1, 1, n_samples))
        weights = rng.standard_normal(n_samples * (n_samples + 1) // 2)
        packed = Covariance(Leaf(kernel, 0), lambda column: pairs)

        def weighted_sum(theta: FloatArray) -> float:
            return weights @ packed.forward(np.exp(theta))

        expected = numerical_gradient(weighted_sum, theta)
        packed.forward(np.exp(theta))
        # phases of 60, amplified by 1 / (2 l^2), make PER vary within 0.002: truncation below 1e-8
        np.testing.assert_allclose(
            packed.backward(weights), expected, rtol=1e-7, atol=1e-7 * abs(expected).max()
        )

    @given(seed=seeds)
    def test_is_symmetric_in_its_two_inputs(self, kernel: BaseKernel, seed: int) -> None:
        rng = np.random.default_rng(seed)
        params, X = random_params(kernel, rng), rng.uniform(-1, 1, (8, 1))
        leaf = Leaf(kernel, 0)
        forwards, backwards = covariance(leaf, params, X), covariance(leaf, params, X[::-1])
        # the mean that PER takes off rounds differently; amplified as in the test of the values
        np.testing.assert_allclose(forwards, backwards[::-1, ::-1], rtol=1e-12, atol=1e-14)

    @given(seed=seeds)
    def test_is_positive_semidefinite(self, kernel: BaseKernel, seed: int) -> None:
        rng = np.random.default_rng(seed)
        X = rng.uniform(-3, 3, (20, 1))
        eigenvalues = np.linalg.eigvalsh(covariance(Leaf(kernel, 0), random_params(kernel, rng), X))
        # entries are off by up to 1e-13 (the phases of PER), eigenvalues by n times as much
        assert eigenvalues.min() >= -20 * 1e-13 * eigenvalues.max()

    @given(seed=seeds)
    def test_computing_it_leaves_the_pairs_as_they_are(self, kernel: BaseKernel, seed: int) -> None:
        rng = np.random.default_rng(seed)
        params, pairs = random_params(kernel, rng), PackedPairs(rng.uniform(-1, 1, 6))
        packed = Covariance(Leaf(kernel, 0), lambda column: pairs)
        before = packed.forward(params).copy()
        packed.backward(np.ones_like(before))
        np.testing.assert_array_equal(packed.forward(params), before)


def test_every_base_kernel_is_compared_with_its_published_formula() -> None:
    assert set(FORMULAS) == set(BASE_KERNELS)


def test_the_mapping_of_base_kernels_is_read_only() -> None:
    with pytest.raises(TypeError, match="does not support item assignment"):
        BASE_KERNELS["NEW"] = BASE_KERNELS["SE"]


def test_base_kernel_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        BaseKernel()
