"""The end of a search whose gains are not seen in predictions of other rows."""

from dataclasses import replace

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.evidence import Estimate, Evaluator
from autokernel.inference import TrainingData
from autokernel.kernels import PRESETS
from autokernel.many_rows.left_out import MAX_INVISIBLE_STEPS, no_gain_seen_by
from autokernel.search import History
from autokernel.search.history import Phase, Trial


@pytest.fixture(scope="module")
def rows():
    """Rows of a function without noise: forty for the fits of two kernels, and others."""
    X = np.random.default_rng(0).uniform(size=(240, 1))
    data = TrainingData(X, np.sin(6 * X[:, 0]))
    given, left_out = data.take(np.arange(40)), data.take(np.arange(40, 240))
    evaluator = Evaluator(given, priors=PRESETS["default"], seed=0)
    return given, left_out, *(evaluator(parse_expression(text)) for text in ("LIN[0]", "SE[0]"))


def climb(*fits):
    """A history in which the first kernel is of the design; the score rises by a nat each step."""
    history = History(40.0)
    for n, one in enumerate(fits):
        fit, phase = replace(one, score=one.score + n), Phase.SEARCH if n else Phase.INITIAL
        history.trials.append(Trial(fit, Estimate(fit.expression), phase, 0.0, 0.0))
    return history


def test_a_climb_ends_when_its_last_steps_predict_other_rows_no_better(rows):
    given, left_out, line, curve = rows
    shows_no_gain, n = no_gain_seen_by(left_out, given=given), MAX_INVISIBLE_STEPS
    assert not shows_no_gain(History(40.0))
    assert not shows_no_gain(climb(line, *(n - 1) * [line]))  # too few steps
    assert shows_no_gain(climb(line, *n * [line]))  # although the score has risen by ten nats
    assert not shows_no_gain(climb(line, *(n - 1) * [line], curve))
    assert not shows_no_gain(climb(line, curve, *(n - 1) * [curve]))
    assert shows_no_gain(climb(line, curve, *n * [curve]))  # the curve was known before them
    assert not no_gain_seen_by(left_out.take(np.arange(99)), given=given)(climb(line, *n * [line]))


def test_a_climb_does_not_end_by_rows_that_cannot_be_predicted(rows):
    given, left_out, line, _ = rows
    broken = replace(line, theta=np.full(len(line.theta), np.nan))
    shows_no_gain = no_gain_seen_by(left_out, given=given)
    assert not shows_no_gain(climb(line, *MAX_INVISIBLE_STEPS * [broken]))
