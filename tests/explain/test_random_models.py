"""Models of data of all kinds are described without a crash, and without words for no number."""

import warnings

import pytest

from tests.explain.random_models import faults_of, random_model

SMALL = {"sizes": (5, 8, 12, 20, 40), "max_columns": 4, "max_time": 0.05}


def check(seeds, folder, *, is_reported, **limits):
    """Describe random models, and some of them in a report."""
    n_described = 0
    for seed in seeds:
        model, X = random_model(seed, **limits)
        if hasattr(model, "best_kernel_"):
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                found = faults_of(model, X, folder if is_reported(seed) else None)
            assert not found, (seed, model.best_expression_)
            n_described += 1
    assert n_described >= 0.7 * len(seeds)


def test_small_models_of_all_kinds_are_described(tmp_path):
    check(range(12), tmp_path, is_reported=lambda seed: seed == 3, **SMALL)


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(0, 300, 30))
def test_models_of_all_kinds_are_described(begin, tmp_path):
    check(range(begin, begin + 30), tmp_path, is_reported=lambda seed: seed % 5 == 0)
