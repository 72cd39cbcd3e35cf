"""The checks that scikit-learn makes of every estimator, of the default one."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from autokernel import AutoKernelGPRegressor, Importance
from tests.fits import SEARCHES

QUICK = Importance(max_draws=100)
# fits to many rows or to ten columns; with the default each week
LONG = {"check_regressors_train", "check_regressors_int", "check_dtype_object"}
LONG |= {"check_sample_weight_equivalence_on_dense_data", "check_positive_only_tag_during_fit"}
AGAIN = {"check_regressor_data_not_an_array"}  # the rows of another check, as another container


def checks_of(model, *, long):
    """The checks that take long, or the others, without those that repeat one of them."""
    for estimator, check in estimator_checks_generator(model, mark="skip"):
        name = check.func.__name__
        if name not in AGAIN and (name in LONG) == long:
            yield pytest.param(estimator, check, id=name)


# all defaults but the number and the size of the kernels
SMALL = AutoKernelGPRegressor(n_iter=0, max_leaves=1, random_state=0)
LINES = AutoKernelGPRegressor(n_iter=0, max_leaves=1, random_state=0, base_kernels=["LIN"])


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder of evaluations: several checks fit the same rows."""
    return str(tmp_path_factory.mktemp("kept"))


@pytest.mark.parametrize(
    ("estimator", "check"), [*checks_of(SMALL, long=False), *checks_of(LINES, long=True)]
)
def test_the_default_passes_the_checks_of_scikit_learn(estimator, check, kept):
    check(estimator.set_params(memory=kept))


@pytest.mark.slow
@parametrize_with_checks(
    [
        AutoKernelGPRegressor(random_state=0),
        *(
            AutoKernelGPRegressor(
                n_iter=1, max_leaves=2, strategy=search(), criterion=criterion, base_kernels=["LIN"]
            )
            for search, criterion in zip(
                SEARCHES.values(),
                ["laplace", QUICK, "bic", "bic", "loo", "laplace", "laplace"],
                strict=True,
            )
        ),
    ]
)
def test_the_whole_default_and_every_strategy_and_criterion_pass_them(estimator, check, kept):
    check(estimator.set_params(memory=kept, random_state=0))
