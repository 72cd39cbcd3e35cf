"""The checks that scikit-learn makes of every estimator, of the default one."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from autokernel import AutoKernelGPRegressor, Importance
from tests.fits import SEARCHES

QUICK = Importance(max_draws=100)
LONG = {"check_regressor_data_not_an_array"}  # the rows of another check, as another container


def checks_of_the_default():
    """All defaults but the number of kernels after the initial design."""
    default = AutoKernelGPRegressor(n_iter=0, random_state=0)
    for estimator, check in estimator_checks_generator(default, mark="skip"):
        name = check.func.__name__
        marks = [pytest.mark.slow] if name in LONG else []
        yield pytest.param(estimator, check, id=name, marks=marks)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder of evaluations: several checks fit the same rows."""
    return str(tmp_path_factory.mktemp("kept"))


@pytest.mark.parametrize(("estimator", "check"), list(checks_of_the_default()))
def test_the_default_passes_the_checks_of_scikit_learn(estimator, check, kept):
    check(estimator.set_params(memory=kept))


@pytest.mark.slow
@parametrize_with_checks(
    [
        AutoKernelGPRegressor(n_iter=1, max_leaves=2, strategy=search(), criterion=criterion)
        for search, criterion in zip(
            SEARCHES.values(),
            ["laplace", QUICK, "bic", "bic", "loo", "laplace", "laplace"],
            strict=True,
        )
    ]
)
def test_every_strategy_and_criterion_passes_the_checks_of_scikit_learn(estimator, check, kept):
    check(estimator.set_params(memory=kept, base_kernels=["LIN"], random_state=0))
