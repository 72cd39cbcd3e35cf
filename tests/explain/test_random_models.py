"""Models of data of all kinds are described without a crash, and without words for no number."""

import warnings

import pytest

from tests.explain.random_models import faults_of, random_model

SMALL = {"sizes": (5, 8, 12, 20, 40), "max_columns": 4, "max_time": 0.1}


def check(seeds, folder=None, **limits):
    """Describe random models, and some of them in a report if there is a folder."""
    n_described = 0
    for seed in seeds:
        model, X = random_model(seed, **limits)
        if hasattr(model, "best_kernel_"):
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                found = faults_of(model, X, folder if seed % 5 == 0 else None)
            assert not found, (seed, model.best_expression_)
            n_described += 1
    assert n_described >= 0.7 * len(seeds)


def test_small_models_of_all_kinds_are_described():
    check(range(8), **SMALL)


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(0, 300, 30))
def test_models_of_all_kinds_are_described(begin, tmp_path):
    check(range(begin, begin + 30), tmp_path)
