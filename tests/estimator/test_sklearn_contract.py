"""The checks that scikit-learn makes of every estimator."""

import pytest
from sklearn.utils.estimator_checks import check_regressors_train, parametrize_with_checks

from autokernel import SOT, AutoKernelGPRegressor, Importance, Laplace
from autokernel.evidence import CRITERIA
from tests.fits import SEARCHES

# the space ends with the base kernels: what is left to the search finds out that it has nothing
SMALL = {"base_kernels": ["LIN"], "max_leaves": 1, "n_iter": 1, "random_state": 0}
LARGER = {"max_leaves": 3, "n_iter": 1, "random_state": 0}
QUICK = Importance(max_draws=100)


def models(fixed, pairs):
    """An estimator for each pair of strategy and criterion."""
    return [
        AutoKernelGPRegressor(**fixed, strategy=strategy, criterion=criterion)
        for strategy, criterion in pairs
    ]


NAMES = [(name, "laplace") for name in SEARCHES]
OBJECTS = [(strategy(), QUICK) for strategy in SEARCHES.values()]
CROSSED = [
    *(("sot", criterion) for criterion in CRITERIA if criterion != "laplace"),
    *((strategy(), Laplace()) for strategy in SEARCHES.values()),
]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder of evaluations: several checks fit the same 200 rows of ten columns."""
    return str(tmp_path_factory.mktemp("kept"))


@parametrize_with_checks(models(SMALL, [(SOT(), Laplace())]))
def test_small_search_passes_the_checks_of_scikit_learn(estimator, check, kept):
    # one column will do; the fifth is the one that matters where a score is checked
    column = 4 if check.func is check_regressors_train else 0
    check(estimator.set_params(memory=kept, base_kernels={column: ["LIN"], "*": []}))


@pytest.mark.slow
@parametrize_with_checks(models(LARGER, NAMES) + models(SMALL, OBJECTS + CROSSED))
def test_search_over_all_kernels_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
