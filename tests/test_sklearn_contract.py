"""The checks that scikit-learn makes of every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from autokernel import AutoKernelGPRegressor

SMALL = {"n_iter": 0, "base_kernels": ["LIN"], "operators": ["+"], "random_state": 0}


@parametrize_with_checks([AutoKernelGPRegressor(**SMALL)])
def test_small_search_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([AutoKernelGPRegressor(n_iter=1, max_leaves=3, random_state=0)])
def test_search_over_all_kernels_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
