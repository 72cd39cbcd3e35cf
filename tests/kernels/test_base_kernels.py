"""One suite of properties of all base kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autokernel import parse_expression
from autokernel.expression import Leaf
from autokernel.inference.covariance import Covariance
from autokernel.inference.pairs import PackedPairs
from autokernel.kernels import (
    BASE_KERNELS,
    BroadcastPairs,
    ExponentialKernel,
    LagPairs,
    Role,
    role_index,
)
from tests.batteries import covariance, numerical_gradient, random_params, seeds
from tests.fits import tiny
from tests.model.cases import FORMULAS


@pytest.mark.parametrize("kernel", BASE_KERNELS.values(), ids=BASE_KERNELS)
class TestEveryBaseKernel:
    def test_is_registered_under_a_name_that_the_notation_reads(self, kernel):
        assert BASE_KERNELS[kernel.name] is kernel
        assert parse_expression(f"{kernel.name}[0]") == Leaf(kernel, 0)
        index = role_index(kernel.parameters, Role.VARIANCE)
        assert kernel.parameters[index].name == "variance"
        if isinstance(kernel, ExponentialKernel):
            assert kernel.variance_index == index

    @settings(max_examples=8)
    @given(seed=seeds)
    def test_value_is_that_of_the_published_formula(self, kernel, seed):
        rng = np.random.default_rng(seed)
        params, x = random_params(kernel, rng), rng.uniform(-1, 1, 7)
        formula = FORMULAS[kernel.name]
        expected = np.array([[formula(a, b, *params) for b in x] for a in x])
        # a phase of up to 60 in PER, divided by 2 l^2 >= 0.1, loses up to 600 EPS
        np.testing.assert_allclose(
            covariance(Leaf(kernel, 0), params, x[:, None]), expected, rtol=1e-12, atol=1e-14
        )

    @settings(max_examples=8)
    @given(seed=seeds)
    def test_values_follow_its_declarations(self, kernel, seed):
        rng = np.random.default_rng(seed)
        params, (x, z) = random_params(kernel, rng), rng.integers(-(2**20), 2**20, (2, 6)) / 2**20
        pairs = BroadcastPairs(x, z)
        shifted = kernel.value(params, BroadcastPairs(x + 8, z + 8))  # exact sums of 25 bits
        is_the_same = np.allclose(shifted, kernel.value(params, pairs), rtol=1e-12, atol=0)
        assert is_the_same == kernel.is_stationary
        if kernel.is_stationary:
            lags = kernel.value(params, LagPairs(abs(x - z)))
            np.testing.assert_allclose(lags, kernel.value(params, pairs), rtol=1e-12)
        if kernel.is_linear:  # k(x, z) is of first degree in x
            beyond = kernel.value(params, BroadcastPairs(2 * x, z))
            origin = kernel.value(params, BroadcastPairs(0 * x, z))
            np.testing.assert_allclose(beyond - origin, 2 * (kernel.value(params, pairs) - origin))
        assert kernel.broadcasts  # as a kernel of the user need not
        many = np.stack([params, 2 * params], axis=1)[:, :, None]
        single = [kernel.value(one, pairs) for one in (params, 2 * params)]
        np.testing.assert_allclose(kernel.value(many, pairs), single, rtol=1e-12)
        for limit in kernel.limits:
            assert len(limit.parameters) < len(kernel.parameters)

    def test_wins_a_short_fit_if_there_is_no_other(self, kernel):
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 50, size=(16, 1))
        if kernel.is_categorical:
            X = X // 10
        # a wave on a trend: each kernel explains more of it than only noise does, or of waves alone
        x = X[:, 0]
        y = np.sin(x / 3) if kernel.name == "PER" else np.sin(x / 5) + x / 10
        y = y + 0.1 * rng.normal(size=16)
        model = tiny(base_kernels=(kernel.name,), averaging=None).fit(X, y)
        assert set(model.search_history_["status"]) == {"ok"}
        assert model.best_expression_ == f"{kernel.name}[0]"
        assert np.isfinite(model.predict(X, return_std=True)).all()

    @settings(max_examples=8)
    @given(seed=seeds, scale=st.sampled_from([1.0, 12.0, 0.01, 1e4]))
    def test_the_exported_kernel_has_its_values_on_scaled_inputs_and_room_within_its_bounds(
        self, kernel, seed, scale
    ):
        rng = np.random.default_rng(seed)
        params, X = random_params(kernel, rng), rng.uniform(-1, 1, (9, 1))
        K = covariance(Leaf(kernel, 0), params, X)
        exported = kernel.to_sklearn(params, scale=scale)
        if kernel.name in ("CAT", "RW", "IRW", "IOU", "SAT"):
            assert exported is None  # scikit-learn has no such kernel, and the export wraps ours
            return
        # as wide as scikit-learn's own bounds around one
        room = np.log(np.broadcast_to([1e-5, 1e5], exported.bounds.shape))
        np.testing.assert_allclose(exported.bounds - exported.theta[:, None], room, rtol=1e-12)
        expected = exported(scale * X)
        # a phase of up to 60 in PER, divided by 2 l^2 >= 0.1, loses up to 600 EPS
        np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-13 * abs(expected).max())

    @settings(max_examples=8)
    @given(seed=seeds, n_samples=st.integers(1, 9))
    def test_gradient_in_the_log_parameters_equals_finite_differences(
        self, kernel, seed, n_samples
    ):
        rng = np.random.default_rng(seed)
        theta = np.log(random_params(kernel, rng))
        pairs = PackedPairs(rng.uniform(-1, 1, n_samples))
        weights = rng.standard_normal(n_samples * (n_samples + 1) // 2)
        packed = Covariance(Leaf(kernel, 0), lambda column: pairs)

        def weighted_sum(theta):
            return weights @ packed.forward(np.exp(theta))

        expected = numerical_gradient(weighted_sum, theta)
        before = packed.forward(np.exp(theta)).copy()
        found = packed.backward(weights)
        # phases of 60, amplified by 1 / (2 l^2), make PER vary within 0.002: truncation below 1e-8
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7 * abs(expected).max())
        # neither sweep overwrites the values or the pairs
        np.testing.assert_array_equal(packed.forward(np.exp(theta)), before)
        again = Covariance(Leaf(kernel, 0), lambda column: pairs).forward(np.exp(theta))
        np.testing.assert_array_equal(again, before)

    @settings(max_examples=8)
    @given(seed=seeds)
    def test_is_positive_semidefinite(self, kernel, seed):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-3, 3, (20, 1))
        eigenvalues = np.linalg.eigvalsh(covariance(Leaf(kernel, 0), random_params(kernel, rng), X))
        # entries are off by up to 1e-13 (the phases of PER), eigenvalues by n times as much
        assert eigenvalues.min() >= -20 * 1e-13 * eigenvalues.max()


def test_the_mapping_of_base_kernels_is_read_only():
    with pytest.raises(TypeError, match="does not support item assignment"):
        BASE_KERNELS["NEW"] = BASE_KERNELS["SE"]
