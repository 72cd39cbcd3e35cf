"""The checks that scikit-learn makes of every estimator, of the default one."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from autokernel import AutoKernelGPRegressor, Importance
from tests.fits import SEARCHES

QUICK = Importance(max_draws=100)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder of evaluations: several checks fit the same rows."""
    return str(tmp_path_factory.mktemp("kept"))


@parametrize_with_checks([AutoKernelGPRegressor(n_iter=0, random_state=0)])
def test_the_default_passes_the_checks_of_scikit_learn(estimator, check, kept):
    """All defaults but the number of kernels after the initial design."""
    check(estimator.set_params(memory=kept))


@pytest.mark.slow
@parametrize_with_checks(
    [
        AutoKernelGPRegressor(n_iter=1, max_leaves=2, strategy=search(), criterion=criterion)
        for search, criterion in zip(
            SEARCHES.values(), ["laplace", QUICK, "bic", "aic", "loo", "cv", "laplace"], strict=True
        )
    ]
)
def test_every_strategy_and_criterion_passes_the_checks_of_scikit_learn(estimator, check, kept):
    check(estimator.set_params(memory=kept, base_kernels=["LIN"], random_state=0))
