"""Leave-one-out and cross-validation against refits, one by one."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.model_selection import LeaveOneOut as OneByOne

from autokernel import CrossValidation, LeaveOneOut, evaluate_kernel, parse_expression
from autokernel.evidence import check_criterion
from autokernel.inference import ExactLikelihood
from tests.batteries import Problem, exported

# these tests are about numbers, of rows in no order
pytestmark = pytest.mark.filterwarnings("ignore:TimeSeriesSplit takes rows")

TEXTS = ["SE[0]", "LIN[1]", "PER[0] * SE[1] + LIN[0]"]

every_kernel = pytest.mark.parametrize("text", TEXTS)


def table_of(n_samples, *, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_samples, 2))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n_samples)
    return X, (y - y.mean()) / y.std()


TABLE = table_of(24)


def log_densities(text, theta, train, test):
    """Log predictive density of each target that is held out, by scikit-learn."""
    kernel = exported(Problem(parse_expression(text), theta, *train))
    gpr = GaussianProcessRegressor(kernel, optimizer=None, alpha=0).fit(*train)
    mean, std = gpr.predict(test[0], return_std=True)  # with the noise, which is in the kernel
    return norm.logpdf(test[1], mean, std)


@every_kernel
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_leave_one_out_is_the_sum_over_models_without_one_row_each(text, noise, dense_covariance):
    X, y = table_of(15, noise=noise)
    fit = evaluate_kernel(text, X, y, criterion="loo")
    K = dense_covariance(text, fit.theta, X)
    expected = 0.0
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        weights = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, i])
        variance = K[i, i] - weights @ K[rest, i]  # of a new observation: K holds the noise
        expected += norm.logpdf(y[i], weights @ y[rest], np.sqrt(variance))
    # rounding, by a condition number below 1e7
    assert fit.score == pytest.approx(expected, abs=1e-6)


@every_kernel
def test_leave_one_out_agrees_with_scikit_learn(text):
    X, y = TABLE
    fit = evaluate_kernel(text, X, y, criterion=LeaveOneOut())
    expected = [
        log_densities(text, fit.theta, (X[train], y[train]), (X[test], y[test]))
        for train, test in OneByOne().split(X)
    ]
    assert fit.score == pytest.approx(np.sum(expected), rel=1e-7)


def test_leave_one_out_takes_one_likelihood_call_and_leaves_the_fit_and_its_evidence():
    fit, plain = (evaluate_kernel("SE[0]", *TABLE, criterion=c) for c in ("loo", "laplace"))
    np.testing.assert_array_equal(fit.theta, plain.theta)
    assert fit.log_evidence == plain.score
    assert fit.n_evaluations == plain.n_evaluations + 1
    assert np.isnan([fit.standard_error, fit.pareto_k]).all()


def refitted(dense_log_posterior, text, theta, train):
    """Parameters for these rows alone, by another optimiser on the dense posterior."""
    height = dense_log_posterior(text, *train)
    found = minimize(lambda theta: -height(theta), theta, method="BFGS", options={"gtol": 1e-4})
    return found.x


@pytest.mark.parametrize(
    ("cv", "splitter"),
    [
        (3, KFold(3, shuffle=True, random_state=0)),
        (KFold(4), KFold(4)),
        (TimeSeriesSplit(2), TimeSeriesSplit(2)),
        (ShuffleSplit(2, random_state=1), ShuffleSplit(2, random_state=1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("text", TEXTS[:2])
def test_cross_validation_is_the_sum_over_refits_to_the_rest(
    text, cv, splitter, dense_log_posterior
):
    X, y = TABLE
    fit = evaluate_kernel(text, X, y, criterion=CrossValidation(cv=cv), priors="paper")
    expected = with_all_rows = 0.0
    for train, test in splitter.split(X):
        rest, out = (X[train], y[train]), (X[test], y[test])
        theta = refitted(dense_log_posterior, text, fit.theta, rest)
        expected += log_densities(text, theta, rest, out).sum()
        with_all_rows += log_densities(text, fit.theta, rest, out).sum()
    assert abs(with_all_rows - expected) > 0.05  # or the test shows nothing
    # both maximise until the slope is 1e-4 nats per log parameter
    assert fit.score == pytest.approx(expected, abs=2e-3)


@every_kernel
def test_cross_validation_without_refits_takes_the_parameters_for_all_rows(text):
    X, y = TABLE
    cv = TimeSeriesSplit(4)
    fit = evaluate_kernel(text, X, y, criterion=CrossValidation(cv=cv, refit=False))
    expected = [
        log_densities(text, fit.theta, (X[train], y[train]), (X[test], y[test])).sum()
        for train, test in cv.split(X)
    ]
    assert fit.score == pytest.approx(np.sum(expected), rel=1e-7)


def test_cross_validation_without_refits_takes_one_likelihood_call_for_each_fold():
    plain = evaluate_kernel("SE[0]", *TABLE)
    fit = evaluate_kernel("SE[0]", *TABLE, criterion=CrossValidation(cv=4, refit=False))
    assert fit.n_evaluations == plain.n_evaluations + 4


def test_one_row_at_a_time_without_refits_is_leave_one_out():
    one_by_one = CrossValidation(cv=OneByOne(), refit=False)
    fit, closed = (evaluate_kernel("SE[0]", *TABLE, criterion=c) for c in (one_by_one, "loo"))
    assert fit.score == pytest.approx(closed.score, rel=1e-7)


def test_cross_validation_by_name_makes_five_folds_in_random_order():
    by_name = evaluate_kernel("SE[0]", *TABLE, criterion="cv").score
    folds = KFold(5, shuffle=True, random_state=0)
    assert evaluate_kernel("SE[0]", *TABLE, criterion=CrossValidation(cv=folds)).score == by_name
    in_order = CrossValidation(cv=KFold(5))
    assert evaluate_kernel("SE[0]", *TABLE, criterion=in_order).score != by_name


def test_cross_validation_leaves_the_fit_and_its_evidence_and_counts_its_calls():
    fit, plain = (evaluate_kernel("SE[0]", *TABLE, criterion=c) for c in ("cv", "laplace"))
    np.testing.assert_array_equal(fit.theta, plain.theta)
    assert fit.log_evidence == plain.score
    assert np.isnan([fit.standard_error, fit.pareto_k]).all()
    n_more = fit.n_evaluations - plain.n_evaluations
    assert 5 * (1 + 1) < n_more < 5 * (1 + 40)  # a run and a prediction for each fold


def test_targets_held_out_in_the_only_fold_have_no_part_in_what_predicts_them(monkeypatch):
    X, y = TABLE
    used = []
    original = ExactLikelihood.held_out

    def held_out(self, theta, n_given):
        used.append(theta)
        return original(self, theta, n_given)

    monkeypatch.setattr(ExactLikelihood, "held_out", held_out)
    criterion = CrossValidation(cv=PredefinedSplit([-1] * 20 + [0] * 4))
    for factor in (1.0, 1.2):
        evaluate_kernel("SE[0]", X, np.append(y[:20], factor * y[20:]), criterion=criterion)
    # two runs to one point, from the modes for all rows, which do differ
    np.testing.assert_allclose(used[0], used[1], rtol=0, atol=1e-3)


@pytest.mark.parametrize("cv", [5, KFold(3), TimeSeriesSplit(3)], ids=str)
def test_a_prediction_that_is_worse_by_far_costs_what_the_normal_density_says(cv):
    X, y = TABLE
    fit = evaluate_kernel("SE[0]", X, y, criterion=CrossValidation(cv=cv))
    outlier = y.copy()
    outlier[-1] += 5
    worse = evaluate_kernel("SE[0]", X, outlier, criterion=CrossValidation(cv=cv))
    assert fit.score - worse.score > 5


def test_two_rows_can_be_cross_validated():
    fit = evaluate_kernel("SE[0]", TABLE[0][:2], [1.0, -1.0], criterion=CrossValidation(cv=2))
    assert fit.status == "ok"
    # the other row says little: about two densities of the marginal distribution
    assert -6 < fit.score < -2


def test_a_fold_without_a_factor_is_a_failure_with_its_reason(monkeypatch):
    nothing = lambda self, theta, n_given: np.array([-np.inf])  # noqa: E731 - replaces a method
    monkeypatch.setattr(ExactLikelihood, "held_out", nothing)
    fit = evaluate_kernel("SE[0]", *TABLE, criterion="cv")
    assert fit.score == -np.inf
    assert fit.status == "the covariance of a fold of cv has no Cholesky factor"
    assert np.isfinite(fit.log_evidence)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, r"'cv' .* of CrossValidation must be an int in the range \[2, inf\) or .* Got 1 inst"),
        (5.0, r"'cv' .* must be an int .* Got 5.0 instead"),
        (True, r"'cv' .* must be an int .* Got True instead"),
        (None, r"'cv' .* an object implementing 'split' and 'get_n_splits'\. Got None instead"),
        ("five", r"'cv' .* an object implementing .* Got 'five' instead"),
        ([([0, 1], [2])], r"'cv' .* an object implementing"),
    ],
)
def test_a_cv_that_is_neither_a_number_of_folds_nor_a_splitter_is_an_error(cv, message):
    criterion = CrossValidation(cv=cv)  # stores it as it is
    with pytest.raises(ValueError, match=message):
        check_criterion(criterion)
    with pytest.raises(ValueError, match=message):
        evaluate_kernel("SE[0]", *TABLE, criterion=criterion)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (25, r"cv must not be larger than the number of rows, got cv=25 and 24 rows: take fewer"),
        (KFold(25), r"cv=KFold\(.* cannot divide 24 rows: .*greater than the number of samples"),
        (TimeSeriesSplit(24), r"cv=TimeSeriesSplit\(.* cannot divide 24 rows: .*number of folds"),
        (GroupKFold(2), r"cv=GroupKFold\(.* cannot divide 24 rows: The 'groups' parameter"),
        (KFold, r"cv=<class .*KFold'> cannot divide 24 rows"),
        (PredefinedSplit([0] * 24), r"cv must leave rows to train on .* got PredefinedSplit"),
        (PredefinedSplit([-1] * 24), r"cv must leave rows to train on .* got PredefinedSplit"),
        (KFold(5, shuffle=True), r"cv must divide .* same way .* got KFold\(.*give it an int"),
        (ShuffleSplit(5), r"cv must divide .* same way .* got ShuffleSplit\("),
        (RepeatedKFold(random_state=None), r"cv must divide .* same way"),
        (ShuffleSplit(5, random_state=np.random.RandomState(0)), r"cv must divide .* same way"),
    ],
    ids=itertools.count(),  # a splitter may print an address, which differs among processes
)
def test_rows_that_cannot_be_divided_in_one_way_are_an_error_before_any_kernel(
    cv, message, monkeypatch
):
    criterion = check_criterion(CrossValidation(cv=cv))  # the rows are not known yet
    monkeypatch.setattr("autokernel.evidence.evaluator.Evaluator.run", None)
    with pytest.raises(ValueError, match=message):
        evaluate_kernel("SE[0]", *TABLE, criterion=criterion)


def test_as_many_folds_as_rows_can_be_made():
    X, y = TABLE
    fit = evaluate_kernel("LIN[1]", X[:5], y[:5], criterion="cv")
    assert fit.status == "ok"
    one_by_one = CrossValidation(cv=OneByOne())
    # the same folds in another order
    expected = evaluate_kernel("LIN[1]", X[:5], y[:5], criterion=one_by_one).score
    assert fit.score == pytest.approx(expected, rel=1e-12)


def test_a_clone_keeps_its_splitter_as_a_copy():
    criterion = CrossValidation(cv=TimeSeriesSplit(3))
    twin = clone(criterion)
    assert repr(twin) == repr(criterion)
    assert twin.cv is not criterion.cv
    assert twin.cv.n_splits == 3
    assert clone(CrossValidation(cv=7)).get_params() == {"cv": 7, "refit": True}
