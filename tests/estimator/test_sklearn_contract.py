"""The checks that scikit-learn makes of every estimator, of the default one."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from autokernel import AutoKernelGPRegressor, Importance
from tests.fits import SEARCHES

QUICK = Importance(max_draws=100)


@parametrize_with_checks([AutoKernelGPRegressor(n_iter=0, base_kernels=["LIN"], max_leaves=1)])
def test_a_small_search_passes_the_checks_of_scikit_learn(estimator, check, kept):
    # what one check has evaluated is known to the next
    check(estimator.set_params(memory=str(kept)))


@pytest.mark.slow
@parametrize_with_checks([AutoKernelGPRegressor()])
def test_the_default_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        AutoKernelGPRegressor(
            n_iter=1, max_leaves=2, strategy=search(), criterion=criterion, base_kernels=["LIN"]
        )
        for search, criterion in zip(
            SEARCHES.values(),
            ["laplace", QUICK, "bic", "bic", "loo", "laplace", "laplace"],
            strict=True,
        )
    ]
)
def test_every_strategy_and_criterion_passes_them(estimator, check, kept):
    check(estimator.set_params(memory=str(kept), random_state=0))
