"""Scores of earlier searches under the prior over structures of a later one."""

import numpy as np
import pytest

from tests.fits import count_evaluations, small, wave

FEW, MORE = {"base_kernels": ["SE"]}, {"base_kernels": ["SE", "LIN"]}


def scores(model):
    """Scores and log priors by kernel."""
    history = model.search_history_
    columns = (history[name].tolist() for name in ("kernel", "score", "log_prior"))
    return {kernel: pair for kernel, *pair in zip(*columns, strict=True)}


def test_a_warm_start_with_more_base_kernels_prices_what_it_has_anew():
    model = small(n_iter=0, warm_start=True, **FEW).fit(*wave())
    before = scores(model)
    evaluated = count_evaluations()
    after = scores(model.set_params(**MORE).fit(*wave()))
    assert not set(evaluated) & set(before)  # the fits themselves hold
    assert set(before) < set(after)
    for kernel, (score, log_prior) in before.items():
        # each unit is one of two base kernels now, at half the strength of the grammar's prior
        n_units = kernel.count("SE[")
        assert after[kernel][1] == pytest.approx(log_prior - 0.5 * n_units * np.log(2), abs=1e-12)
        assert after[kernel][0] - after[kernel][1] == pytest.approx(score - log_prior, abs=1e-9)
    assert model.best_score_ == max(score for score, _ in after.values())


def test_memory_serves_fits_under_another_prior(tmp_path):
    settings = {"n_iter": 0, "memory": tmp_path, **FEW}
    first = scores(small(structure_prior=1.0, **settings).fit(*wave()))
    evaluated = count_evaluations()
    second = scores(small(structure_prior=3.0, **settings).fit(*wave()))
    alone = {"SE[0]", "NOISE"}  # whether others need an exact Hessian depends on the prior
    assert alone <= set(first)
    assert not set(evaluated) & alone
    for kernel in alone & set(second):
        assert second[kernel][1] == pytest.approx(3 * first[kernel][1], abs=1e-12)
        change = second[kernel][0] - first[kernel][0]
        assert change == pytest.approx(2 * first[kernel][1], abs=1e-9)


def test_a_warm_start_with_another_prior_begins_anew():
    model = small(n_iter=0, warm_start=True, **FEW).fit(*wave())
    kernels = set(scores(model))
    evaluated = count_evaluations()
    model.set_params(structure_prior=None).fit(*wave())
    assert kernels & set(evaluated)


def test_a_truth_value_is_no_number_of_nats():
    with pytest.raises(ValueError, match=r"structure_prior must be .*, got True"):
        small(structure_prior=True).fit(*wave())
