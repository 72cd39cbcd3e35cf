"""Searches by intervals of the score."""

import pickle

import numpy as np
import pytest

from autokernel import SKC, AutoKernelGPRegressor, Greedy
from autokernel.deadline import Deadline
from autokernel.evidence import Evaluator, Job, Laplace
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import parse_expression, uniform_prior
from autokernel.inference import TrainingData
from autokernel.kernels import PRESETS
from autokernel.many_rows import BoundedEvaluator
from tests.fits import small

N = 140  # a few more than the points to begin with
SETTINGS = {"priors": dict(PRESETS["default"]), "seed": 0, "structure_prior": uniform_prior}


def table(n=N):
    """A rough function, of which few inducing points show a part."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 2))
    return X, np.sin(40 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


def evaluator(n_inducing):
    data = TrainingData(*table())
    return BoundedEvaluator(data, n_inducing=n_inducing, criterion=Laplace(), **SETTINGS)


@pytest.mark.parametrize("text", ["SE[0]", "SE[0] + LIN[1]", "NOISE"])
def test_the_interval_closes_around_the_exact_score_with_enough_points(text):
    found = evaluator(N)(parse_expression(text))
    expected = Evaluator(TrainingData(*table()), **SETTINGS)(parse_expression(text)).score
    assert found.score <= found.upper_bound
    # a climb ends within a thousandth of a nat, and the bounds within a tenth
    assert found.score == pytest.approx(expected, abs=0.11)
    assert found.upper_bound == pytest.approx(expected, abs=0.11)
    assert found.status == "ok"
    if text == "SE[0]":
        made = evaluator(8)
        travelled = pickle.loads(pickle.dumps(made))
        few, again = (one(parse_expression(text)) for one in (made, travelled))
        assert few.score < expected - 20
        assert few.upper_bound > few.score + 20
        assert again.score == few.score
        assert made.fingerprint() != evaluator(9).fingerprint()


def test_a_kernel_that_cannot_win_is_dropped_with_fewer_points():
    """128 points leave the interval of a rough function of two columns open."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 2))
    y = np.sin(30 * X[:, 0]) * np.sin(30 * X[:, 1])
    data = TrainingData(X, y / y.std())
    made = BoundedEvaluator(data, n_inducing=200, criterion=Laplace(), **SETTINGS)
    expression = parse_expression("SE[0] * SE[1]")
    whole, dropped = made.run(Job(expression)), made.run(Job(expression, best=1e6))
    assert dropped.score < whole.score - 20
    assert dropped.score <= dropped.upper_bound < 1e6
    assert dropped.n_evaluations < whole.n_evaluations


def test_no_evaluation_ends_after_the_deadline():
    with pytest.raises(OutOfTimeError):
        evaluator(16).run(Job(parse_expression("SE[0]")), deadline=Deadline(0.0))


def test_a_search_by_bounds_finds_what_the_exact_one_finds():
    X, y = table(60)
    bounded = small(strategy=SKC(), n_iter=1).fit(X, y)
    whole = small(strategy=Greedy(), n_iter=1).fit(X, y)
    assert bounded.best_expression_ == whole.best_expression_
    assert bounded.best_score_ == pytest.approx(whole.best_score_, abs=0.01)
    history = bounded.search_history_
    by_bounds = history["row_set"] == 0  # and exactly then
    assert np.all(history["upper_bound"][by_bounds] >= history["score"][by_bounds])
    assert np.isnan(whole.search_history_["upper_bound"]).all()


def test_many_rows_are_searched_by_bounds_and_fitted_by_the_approximation(capsys):
    X, y = table(1001)
    settings = {"base_kernels": ["SE"], "n_iter": 0, "max_leaves": 1, "verbose": 1}
    model = small(strategy="skc", averaging=None, **settings).fit(X[:, :1], y - X[:, 1])
    out = capsys.readouterr().out
    assert "searched on 801 of them, by bounds, and the best are fitted to all, each row" in out
    assert model.approximation_ == "exact"
    scores = model.search_history_["score"]
    np.testing.assert_array_equal(model.search_history_["score_per_sample"], scores / 801)
    assert np.std(y - X[:, 1] - model.predict(X[:, :1])) == pytest.approx(0.3, rel=0.1)


def test_a_criterion_without_bounds_is_refused():
    with pytest.raises(ValueError, match=r"SKC\(\) bounds .* needs criterion='laplace', .*got"):
        AutoKernelGPRegressor(strategy="skc", criterion="loo").fit(*table())
