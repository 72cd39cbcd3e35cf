"""A few draws that stand for many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import energy_distance

from autokernel.model.averaging import support_points
from tests.batteries import seeds

NORMAL = ndtri((np.arange(100) + 0.5) / 100)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 30])
def test_draws_of_one_parameter_are_nearer_to_all_than_chosen_evenly(n):
    chosen = NORMAL[support_points(NORMAL[:, None], n)]
    assert len(chosen) == n
    evenly = NORMAL[((np.arange(n) + 0.5) * 100 / n).astype(int)]
    random = [np.random.default_rng(seed).choice(NORMAL, n) for seed in range(200)]
    distance = energy_distance(chosen, NORMAL)
    assert distance <= energy_distance(evenly, NORMAL) + 1e-12
    assert distance <= min(energy_distance(one, NORMAL) for one in random) + 1e-12


def test_one_draw_is_the_median():
    assert NORMAL[support_points(NORMAL[:, None], 1)] == pytest.approx([0.0], abs=0.02)


@given(seed=seeds, n=st.integers(1, 12), n_params=st.integers(1, 30))
def test_neither_scales_nor_correlations_have_an_influence(seed, n, n_params):
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=(60, n_params))
    mixing = rng.normal(size=(n_params, n_params)) + 3 * np.eye(n_params)
    other = 5.0 + draws @ mixing
    np.testing.assert_array_equal(support_points(draws, n), support_points(other, n))


@given(seed=seeds, n=st.integers(8, 20))
def test_mean_and_spread_are_kept(seed, n):
    draws = np.random.default_rng(seed).normal(size=(100, 3))
    chosen = draws[support_points(draws, n)]
    # the standard error of n random draws is 1 / sqrt(n): at least .22
    assert np.abs(chosen.mean(axis=0) - draws.mean(axis=0)).max() < 0.22
    assert np.all(chosen.std(axis=0) > 0.6 * draws.std(axis=0))


@pytest.mark.parametrize("shape", [(1, 3), (7, 2)])
def test_equal_draws_may_be_chosen_several_times(shape):
    chosen = support_points(np.full(shape, 4.2), 8)
    assert len(chosen) == 8
    assert np.all(chosen < shape[0])
