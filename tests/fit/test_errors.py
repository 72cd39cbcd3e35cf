"""Errors injected where they are caught: what is said of each kind, and what ends the fit.

Numerical errors are a reason, or a fallback with a warning. Those of custom parts are a reason with
a warning that names the part. All others are raised as they are.
"""

import copy
import warnings
from functools import cache
from operator import attrgetter

import numpy as np
import pytest
from scipy.linalg import LinAlgError

import autokernel
from autokernel import EvaluationError, Laplace, evaluate_kernel
from autokernel.deadline import NEVER
from autokernel.evidence import Evaluator, Job, find_outliers, update_noise, update_outliers
from autokernel.exceptions import CustomPartError, NotAMaximumError
from autokernel.expression import parse_expression, uniform_prior
from autokernel.inference import TrainingData
from autokernel.kernels import PRESETS
from autokernel.many_rows import BoundedEvaluator, ManyRows, fit_all_rows
from autokernel.many_rows.approximation import ByNeighbours
from autokernel.model import posterior_over_kernels
from tests.fits import tiny

X = np.linspace(0, 1, 32)[:, None]
Y = X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=32)
PRIORS = dict(PRESETS["default"])
SETTINGS = {"priors": PRIORS, "seed": 0, "structure_prior": uniform_prior}
LINE = parse_expression("LIN[0]")


def fit(y=Y, **parameters):
    plain = {"base_kernels": ["LIN"], "averaging": None, "noise": "constant"}
    return tiny(**{**plain, **parameters}).fit(X, y)


DATA, EVALUATOR = TrainingData(X, Y), Evaluator(TrainingData(X, Y), **SETTINGS)


@cache
def line():
    return EVALUATOR(LINE)


def evaluate():
    return [evaluate_kernel(LINE, X, Y).status]


def evaluate_roughly():
    return [EVALUATOR.run_roughly(LINE).status]


def evaluate_by_bounds():
    evaluator = BoundedEvaluator(DATA, n_inducing=8, criterion=Laplace(), **SETTINGS)
    return [evaluator.run(Job(LINE)).status]


def search():
    return list(fit(n_iter=1, max_leaves=2).search_history_["status"])


def average():
    fit(averaging="posterior")


def draw():
    posterior_over_kernels(EVALUATOR, [line()])


def judge_rows_in_a_fit():
    fit(outliers="auto")


def judge_rows():
    y = np.where(np.arange(32) == 9, 9.0, Y)
    find_outliers(TrainingData(X, y), [LINE], [LINE], priors=PRIORS, seed=0)


def judge_rows_again():
    update_outliers(DATA, line(), np.array([9]), priors=PRIORS, seed=0)


def judge_noise():
    update_noise(DATA, (0,), line(), -np.inf, priors=PRIORS, deadline=NEVER, found={})


@cache
def known(noise=0.0, **parameters):
    return fit(Y + noise * np.random.default_rng(2).normal(size=32), **parameters)


@pytest.fixture(scope="module", autouse=True)
def _sound():
    """Make what is known before errors are injected."""
    line(), known(noise=1.0), known(outliers="auto"), known(averaging="posterior")


def update():  # a model of which a line and noise alone are both probable
    copy.deepcopy(known(noise=1.0)).update(X[-3:] + 0.1, np.array([0.8, 0.9, 1.0]))


def update_with_an_outlier():
    model = copy.deepcopy(known(outliers="auto"))
    model.update(X[-3:] + 0.1, np.array([0.8, 99.0, 1.0]))


def explain():
    copy.deepcopy(known(averaging="posterior")).decompose(X)


def fit_all():
    data = TrainingData(np.tile(X, (7, 1)), np.tile(Y, 7))
    fit_all_rows([line()], ManyRows(ByNeighbours(None), data, EVALUATOR))


# where errors are injected, in what, and the warning or the row that a numerical one leads to
ROW, RAISED = "a row with the reason", "an EvaluationError"
AVERAGED = "explain.decomposition.AveragedFunction"  # whose first call succeeds
PLACES = [
    ("evidence.mode_search.ModeSearch.__call__", evaluate, ROW),
    ("evidence.criteria.Laplace.__call__", evaluate, ROW),
    ("inference.exact.ExactLikelihood.value_of", evaluate, ROW),
    ("evidence.mode_search.ModeSearch.__call__", search, RAISED),
    ("evidence.mode_search.ModeSearch.rough_mode", evaluate_roughly, ROW),
    ("many_rows.bounds.BoundedEvaluator._enclose", evaluate_by_bounds, ROW),
    ("evidence.screening.Screening.estimates", search, "no change of LIN.* is tried, as none"),
    ("evidence.screening.Screening.screened", search, "no change of LIN.* is tried, as none"),
    ("evidence.outliers._Pursuit.first", judge_rows_in_a_fit, "outliers are not judged by SE"),
    ("evidence.outliers._Pursuit.first", judge_rows, "outliers are not judged by LIN"),
    ("evidence.outliers._Pursuit.thorough", judge_rows, "outliers are not judged by LIN"),
    ("evidence.outliers._Pursuit.at", judge_rows_again, "outliers are not judged again"),
    ("evidence.outliers._Pursuit.at", update_with_an_outlier, "all new rows join, as they are not"),
    ("evidence.varying_noise._Search.best", judge_noise, "how the noise varies is not judged"),
    ("evidence.evaluator.importance_sample", draw, "only its best parameters in the average"),
    ("model.averaging.PosteriorAveraging.components", average, "at its best parameters, not by"),
    ("model.mixture.MixturePredictor.outcomes", average, "how well new rows are predicted is not"),
    ("model.mixture.MixturePredictor.__init__", search, RAISED),
    ("model.mixture.MixturePredictor.log_densities", update, RAISED),
    ("inference.exact.ExactPredictor.log_density", update, RAISED),
    ("model.fitted.condition", update, "does not explain the new rows"),
    (AVERAGED, explain, "deviations of the components are"),
    ("many_rows.further.ManyRows._further", fit_all, "the fit to all 224 rows, .* has failed"),
]
WITH_MEMORY = {  # where something else is done if memory is short
    "model.averaging.PosteriorAveraging.components",
    "model.mixture.MixturePredictor.outcomes",
    "model.mixture.MixturePredictor.__init__",
    "many_rows.further.ManyRows._further",
}
NUMERICAL = [one("no Cholesky factor") for one in (LinAlgError, NotAMaximumError)]


def inject(monkeypatch, place, error):
    """Let a function raise an error."""
    path, _, name = place.rpartition(".")
    owner = attrgetter(path)(autokernel)
    real, left = getattr(owner, name), [place] * (place == AVERAGED)

    def failing(*arguments, **options):
        if left:
            left.pop()
            return real(*arguments, **options)
        raise error

    monkeypatch.setattr(owner, name, failing)


def assert_expected(run, expected, text):
    """A reason of a kernel that fails, an error, or a warning at the line that has called us."""
    if expected == RAISED:
        with pytest.raises(EvaluationError, match=text):
            run()
    elif expected == ROW:
        assert any(text in status for status in run())
    else:
        with pytest.warns(UserWarning, match=rf"(?s){expected}.*{text}") as caught:
            run()
        assert {one.filename for one in caught} == {__file__}


every_place = pytest.mark.parametrize(("place", "run", "expected"), PLACES)


@pytest.mark.parametrize("error", NUMERICAL, ids=lambda one: type(one).__name__)
@every_place
def test_a_numerical_error_is_a_reason_or_a_fallback_that_warns(
    place, run, expected, error, monkeypatch
):
    inject(monkeypatch, place, error)
    assert_expected(run, expected, "no Cholesky factor")


@every_place
def test_any_other_error_is_raised_as_it_is(place, run, expected, monkeypatch):
    error = ValueError("a bug")
    inject(monkeypatch, place, error)
    with pytest.raises(ValueError, match="a bug") as caught:
        run()
    assert caught.value is error


@every_place
def test_too_little_memory_is_an_error_unless_something_else_can_be_done(
    place, run, expected, monkeypatch
):
    inject(monkeypatch, place, MemoryError("9 GiB"))
    if place in WITH_MEMORY:
        assert_expected(run, expected, "9 GiB")
    else:
        with pytest.raises(MemoryError, match="9 GiB"):
            run()


@every_place
def test_an_error_of_a_custom_part_is_said_with_its_name(place, run, expected, monkeypatch):
    text = "custom part OWN failed: ValueError: odd"
    inject(monkeypatch, place, CustomPartError(text))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if expected in (RAISED, ROW):
            assert_expected(run, expected, text)
        else:
            run()
    said = [str(one.message) for one in caught]
    assert expected in (RAISED, ROW) or any(text in one for one in said)
    assert sum(one.startswith(text) for one in said) <= 1
