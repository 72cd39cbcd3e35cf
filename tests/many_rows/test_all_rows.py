"""Fits of more rows than a search treats, through the estimator."""

import os
import pickle
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from autokernel import AutoKernelGPRegressor, Laplace, evaluate_kernel, parse_expression
from autokernel.deadline import Deadline
from autokernel.evidence import Evaluator
from autokernel.evidence.laplace import laplace_log_evidence
from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import NOISE, Grammar, Leaf
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import ADD, BASE_KERNELS, PRESETS
from autokernel.many_rows import ManyRows, approximation_for, fit_all_rows
from autokernel.many_rows.rough import with_rough_term
from tests.fits import At, interrupt, rows, small
from tests.own_kernels import OrnsteinUhlenbeck

N = 1010  # a few more than are fitted exactly
NOISE_STD = 0.1


def wave(X):
    return np.sin(9 * X[:, 0]) + X[:, 1] ** 2


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(N, 2))
    return X, wave(X) + NOISE_STD * rng.normal(size=N)


@pytest.fixture(scope="module")
def column(table):
    x = table[0][:, :1]
    return x, np.sin(9 * x[:, 0]) + NOISE_STD * np.random.default_rng(2).normal(size=N)


def error_of(model):
    """Root mean squared error of a model of the column, whose function is known."""
    x = np.linspace(0, 1, 50)
    return np.sqrt(np.mean((model.predict(x[:, None]) - np.sin(9 * x)) ** 2))


@pytest.fixture(scope="module")
def new():
    return np.random.default_rng(1).uniform(size=(300, 2))


def machine_with(patch, n_bytes):
    """Pretend that this machine has so much memory."""
    real = os.sysconf
    pages = n_bytes // real("SC_PAGE_SIZE")
    patch.setattr(os, "sysconf", lambda name: pages if name == "SC_PHYS_PAGES" else real(name))


def fit(table, **parameters):
    """Fit after a search of SE on each column, their sum, and noise alone."""
    few = {"base_kernels": ["SE"], "n_iter": 0, "max_leaves": table[0].shape[1], "n_inducing": 64}
    few |= {
        "strategy": "greedy",
        "start_kernel": "SE[0] + SE[1]" if table[0].shape[1] > 1 else None,
    }
    return small(**{**few, **parameters}).fit(*table)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder in which one fit finds what another one has searched."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def models(table, kept):
    found = {name: fit(table, approximation=name, memory=kept) for name in ("auto", "inducing")}
    names = {"neighbours": "neighbours", "rivals": "auto"}
    with pytest.MonkeyPatch.context() as patch:
        machine_with(patch, 10_000_000)  # too little for exact predictions
        for name, approximation in names.items():
            with pytest.warns(ConvergenceWarning, match=f"memory .* {N} rows: they are approx"):
                found[name] = fit(table, approximation=approximation, memory=kept)
    return found


ALL = ("auto", "inducing", "neighbours", "rivals")


@pytest.mark.parametrize("name", ALL)
def test_predictions_are_close_to_the_truth_and_deviations_right(name, models, new):
    mean, std = models[name].predict(new, return_std=True)
    of_function = models[name].predict(new, return_std="function")[1]
    # some thirty effective parameters: sqrt(30 / N) of the noise is 0.017
    assert np.sqrt(np.mean((mean - wave(new)) ** 2)) < 0.04
    np.testing.assert_allclose(std, NOISE_STD, rtol=0.15)
    assert np.all(of_function < std)


def test_the_kind_of_prediction_is_an_attribute(models):
    assert models["auto"].approximation_ == "exact"
    assert models["neighbours"].approximation_ in {f"{n} neighbours" for n in (32, 64, 128, 256)}
    n, *words = models["inducing"].approximation_.split()
    assert words == ["inducing", "points"]
    assert int(n) < 60  # no more are needed for a smooth function
    assert models["rivals"].approximation_ != "exact"


@pytest.mark.parametrize("name", ALL)
def test_the_whole_contract_holds(name, models, new):
    model = models[name]
    assert model.X_train_.shape == (N, 2)
    assert model.sample_y(new[:5], 3, random_state=0).shape == (5, 3)
    _, covariance = model.predict(new[:5], return_cov=True)
    _, std = model.predict(new[:5], return_std=True)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-6)
    assert model.posterior_["probability"].sum() == pytest.approx(1.0)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.predict(new), model.predict(new), rtol=1e-10)
    assert model.best_kernel_(new[:4]).shape == (4, 4)


@pytest.mark.parametrize("name", ALL)
def test_the_score_is_that_of_all_rows(name, models):
    """Likelihood and evidence are close to the exact ones at the same parameters."""
    model = models[name]
    evaluation, data = model._fitted.evaluation, model._fitted.mixture.data
    exact = LogPosterior(ExactLikelihood(evaluation.expression, data), priors=PRESETS["default"])
    away = (evaluation.log_posterior - exact.value(evaluation.theta)) / N
    # a bound lies below; thirty neighbours show less of a smooth function than all rows do
    assert -0.001 < away < 1e-6 if name == "inducing" else abs(away) < 0.05
    expected = laplace_log_evidence(evaluation.log_posterior, exact.hessian(evaluation.theta))
    assert evaluation.log_evidence == pytest.approx(expected, abs=2.0)  # of 670
    assert model.best_score_ == evaluation.log_evidence + evaluation.log_structure_prior
    history = model.search_history_
    np.testing.assert_array_equal(history["score_per_sample"], history["score"] / 500)


def test_the_same_seed_gives_the_same_model(table, models, new):
    again = clone(models["inducing"]).fit(*table)
    np.testing.assert_array_equal(again.predict(new), models["inducing"].predict(new))
    assert again.best_score_ == models["inducing"].best_score_


def test_refit_uses_all_rows(models, table, new):
    model = clone(models["inducing"]).refit(*table, kernel="SE[0] + SE[1]")
    assert model.approximation_.endswith(" inducing points")
    assert model.best_expression_ == "SE[0] + SE[1]"  # nothing is added to a kernel that is named
    assert np.sqrt(np.mean((model.predict(new) - wave(new)) ** 2)) < 0.03


def rough(n, lengthscale):
    """Draw a rough function of one column, whose lengthscale is below the spacing of 500 rows."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(size=(n, 1)), axis=0)
    K = np.exp(-0.5 * (np.subtract.outer(x[:, 0], x[:, 0]) / lengthscale) ** 2)
    return x, np.linalg.cholesky(K + 1e-6 * np.eye(n)) @ rng.normal(size=n), rng.normal(size=n)


@pytest.mark.parametrize("n_missing", [pytest.param(0, marks=pytest.mark.slow), 5])
def test_a_rough_term_may_win_that_the_search_has_not_met(n_missing):
    x, function, noise = rough(N, 1e-3)
    y = np.sin(6 * x[:, 0]) + 0.5 * function + 0.1 * noise
    x[:: N // 5][:n_missing] = np.nan
    model = small(n_iter=0, base_kernels=("SE",), strategy="greedy", averaging=None).fit(x, y)
    assert model.best_expression_ == "SE[0] + SE[0]"
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.1, rel=0.15)
    assert len(model.leaderboard()["kernel"]) == 2  # of the search, noise alone included


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_a_rough_term_is_tried_whether_or_not_values_are_missing(share):
    x, function, noise = rough(200, 1e-2)
    x[np.random.default_rng(1).uniform(size=x.shape) < share] = np.nan
    data, smooth = TrainingData(x, function + 0.1 * noise), parse_expression("SE[0]")
    fit = Evaluator(data, priors=PRESETS["default"], seed=0)(smooth)
    grammar = Grammar((BASE_KERNELS["SE"],), (ADD,), (0,), max_leaves=2)
    (found,) = with_rough_term(fit, data, 50, grammar)
    assert found.expression == smooth + smooth
    assert 1 / 200 < np.exp(found.theta[2]) < 1 / 50  # between the distances of nearest rows
    assert np.exp(found.theta[[3, -1]]).sum() == pytest.approx(np.exp(fit.theta[-1]), rel=1e-12)


@pytest.mark.slow
def test_a_rough_function_that_is_noise_to_the_search_is_found():
    x, function, noise = rough(N, 9e-4)
    model = small(n_iter=0, base_kernels=("SE",), strategy="greedy").fit(x, function + 0.3 * noise)
    assert model.best_expression_ == "SE[0]"
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.3, rel=0.3)


@pytest.mark.slow
def test_a_signal_that_only_many_rows_show_is_found():
    """The correlation of 0.087 has 2 nats of evidence in 500 rows, less than its price, and 11."""
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(3000, 2))
    model = small(n_iter=0, base_kernels=["LIN"], max_leaves=1, n_inducing=64).fit(
        X, 0.3 * X[:, 0] + rng.normal(size=3000)
    )
    history = model.search_history_
    assert history["kernel"][np.argmax(history["score"])] == "NOISE"
    assert model.best_expression_ == "LIN[0]"
    rise = np.diff(model.predict([[0.0, 0.5], [1.0, 0.5]]))
    assert rise == pytest.approx(0.3, abs=3 * np.sqrt(12 / 3000))


def test_pure_noise_is_noise_with_many_rows_too(column):
    y = 3 + np.random.default_rng(0).normal(size=N)
    model = fit((column[0], y), approximation="inducing")
    assert model.best_expression_ == "NOISE"
    mean, std = model.predict([[0.2], [0.7]], return_std=True)
    np.testing.assert_allclose(mean, y.mean())
    np.testing.assert_allclose(std, y.std(), rtol=0.01)


def test_between_600_and_1000_rows_the_best_kernels_are_fitted_to_all_rows(column):
    X, y = (part[:650] for part in column)
    model = fit((X, y))
    assert model.approximation_ == "exact"
    assert error_of(model) < 0.04
    inputs = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    exact = evaluate_kernel(model.best_expression_, inputs, (y - y.mean()) / y.std())
    evaluation = model._fitted.evaluation
    assert evaluation.log_evidence == pytest.approx(exact.log_evidence, abs=0.2)
    assert model.best_score_ == evaluation.log_evidence + evaluation.log_structure_prior
    assert model.search_history_["score"].max() < 0.9 * model.best_score_


@pytest.mark.parametrize("n", [2, 3, 7, 40])
@pytest.mark.parametrize("name", ["neighbours", "inducing"])
def test_few_rows_can_be_approximated_too(n, name):
    rng = np.random.default_rng(n)
    X = rng.uniform(size=(n, 1))
    model = fit((X, X[:, 0] + 0.1 * rng.normal(size=n)), approximation=name)
    mean, std = model.predict(X, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)


def test_exact_inference_that_does_not_fit_into_memory_is_refused_with_the_numbers(monkeypatch):
    machine_with(monkeypatch, 16 * 2**30)
    X, y = np.random.default_rng(0).uniform(size=(100_000, 1)), np.zeros(100_000)
    y[0] = 1.0
    with pytest.raises(ValueError, match=r"100000 rows needs about 447 GiB .* 16.0 GiB"):
        AutoKernelGPRegressor(approximation="exact").fit(X, y)


@pytest.mark.parametrize(
    ("parameter", "value"), [("approximation", "sparse"), ("n_inducing", 0), ("n_inducing", 1.5)]
)
def test_bad_parameters_are_refused_by_name(parameter, value):
    with pytest.raises(ValueError, match=parameter):
        AutoKernelGPRegressor(**{parameter: value}).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize(("criterion", "on_all_rows"), [("bic", True), ("loo", False)])
def test_a_criterion_without_approximations_chooses_the_kernel_on_some_rows(
    column, criterion, on_all_rows
):
    model = fit(column, criterion=criterion)
    history = model.search_history_
    if on_all_rows:
        assert model.best_score_ > 2 * history["score"].max()
    else:
        assert model.best_score_ == history["score"].max()
        assert model.best_expression_ == history["kernel"][np.argmax(history["score"])]
    assert error_of(model) < 0.04


def test_ctrl_c_leaves_a_model_that_says_from_how_many_rows_it_predicts(table, models):
    undisturbed = models["auto"]
    model = clone(undisturbed).set_callbacks(At(interrupt, ended=2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*table)
    assert model.stop_reason_ == "interrupted"
    assert model.approximation_ == "exact, given 500 rows"
    assert rows(model) == rows(undisturbed)[: len(rows(model))]
    again = model.set_params(warm_start=True).set_callbacks().fit(*table)
    assert rows(again) == rows(undisturbed)
    np.testing.assert_array_equal(again.predict(table[0]), undisturbed.predict(table[0]))


class Fragile(OrnsteinUhlenbeck):
    """An exponential kernel that fails for more pairs than ``largest``.

    After the search it fails for all but the covariances, or variances, of the rows of the search.
    """

    def __init__(self, error, *, largest=np.inf):
        super().__init__("EXP")
        # an attribute with an underscore does not enter comparisons with other kernels
        self._error, self._largest, self._is_broken = error, largest, False

    def value(self, params, pairs):
        n_pairs = pairs.difference.size
        if n_pairs > self._largest or (self._is_broken and n_pairs not in (500, 500 * 501 // 2)):
            raise self._error
        return super().value(params, pairs)

    def fit(self, table, base_kernels=()):
        """Fit an estimator, and break the kernel at the end of the search."""
        n_kernels = 2 + len(base_kernels)  # with noise alone
        model = small(base_kernels=[self, *base_kernels], max_leaves=1, n_iter=0)
        return model.set_callbacks(At(self.break_, ended=n_kernels)).fit(*table)

    def break_(self):
        self._is_broken = self._largest == np.inf


@pytest.mark.parametrize("n", [700, N])
def test_a_fit_to_all_rows_that_fails_says_why_and_what_the_score_is_of(column, n):
    X, y = (part[:n] for part in column)
    fragile = Fragile(ZeroDivisionError("once too often"))
    with pytest.warns(ConvergenceWarning) as caught:
        model = fragile.fit((X, y))
    first, *_, last = [str(warning.message) for warning in caught]
    assert f"the fit to all {n} rows" in first
    assert "has failed (EXP[0]: ZeroDivisionError: once too often" in first
    assert "best_score_, are those of the fewer rows of the search" in first
    assert "predictions are given the 500 rows of the search only" in last
    assert model.best_expression_ == "EXP[0]"
    assert model.best_score_ == model.search_history_["score"].max()
    assert model.approximation_ == "exact, given 500 rows"
    fragile._is_broken = False
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 2 * NOISE_STD


def test_a_kernel_that_fails_on_all_rows_leaves_its_place_to_others(column):
    with pytest.warns(ConvergenceWarning, match=r"a part of the fit to all .* \(EXP\[0\]: Zero"):
        model = Fragile(ZeroDivisionError()).fit(column, ["SE"])
    assert model.best_expression_ == "SE[0]"
    assert model.best_score_ > 2 * model.search_history_["score"].max()


def test_predictions_that_need_too_much_memory_are_approximated(column):
    fragile = Fragile(MemoryError("11 MiB"), largest=N * N // 2)
    with pytest.warns(ConvergenceWarning, match=rf"EXP.* on {N} rows \(MemoryError: 11 MiB\)"):
        model = fragile.fit(column)
    assert model.approximation_ == "32 neighbours"
    assert model.best_score_ > 2 * model.search_history_["score"].max()


def test_the_history_says_of_every_kernel_that_failed_why(column):
    """Two kernels that fail for more pairs than those of the 100 rows of the search."""
    X, y = (part[:300] for part in column)
    data = TrainingData(X, (y - y.mean()) / y.std())
    evaluator = Evaluator(data.take(np.arange(100)), priors=PRESETS["default"], seed=0)
    fragile = Leaf(Fragile(MemoryError("11 MiB"), largest=100 * 101 // 2), 0)
    kernels = [parse_expression("SE[0]"), fragile, fragile + parse_expression("LIN[0]")]
    best_first = sorted(map(evaluator, kernels), key=lambda one: -one.score)
    all_rows = ManyRows(approximation_for("neighbours", 300, 64), data, evaluator)
    with pytest.warns(ConvergenceWarning, match="a part of the fit to all 300 rows") as caught:
        found, _, _ = fit_all_rows(best_first, all_rows, n_searched=100, grammar=None)
    assert str(found.expression) == "SE[0]"
    failed = [one for one in all_rows.history if not np.isfinite(one.score)]
    assert {one.expression for one in failed} == set(kernels[1:])
    assert {one.status for one in failed} == {"MemoryError: 11 MiB"}
    assert found in [one for one in all_rows.history if one.status == "ok"]
    [warning] = caught
    assert all(f"{one.expression}: {one.status}" in str(warning.message) for one in failed)


@pytest.mark.parametrize("signal", [0.0, 1.0])
def test_no_fit_to_all_rows_begins_after_the_deadline(column, signal):
    """One kernel has ended its race, there is no thorough fit, and noise alone stays the best."""
    deadline, ended = Deadline(np.inf), []

    class Ending(Laplace):
        """Ends the time with the first fit to all rows."""

        def __call__(self, fit):
            deadline.cancel()
            ended.append(str(fit.expression))
            return super().__call__(fit)

    class EndingOnAllRows(Laplace):
        def for_approximations(self):
            return Ending()

    X, y = column
    y = signal * y + np.random.default_rng(1).normal(size=N)
    data = TrainingData(X, (y - y.mean()) / y.std())
    settings = {"priors": PRESETS["default"], "seed": 0, "criterion": EndingOnAllRows()}
    evaluator = Evaluator(data.take(np.arange(500)), **settings)
    fits = [evaluator(parse_expression(text)) for text in ("SE[0]", "NOISE")]
    best_first = sorted(fits, key=lambda one: -one.score)
    all_rows = ManyRows(approximation_for("auto", N, 64), data, evaluator, deadline=deadline)
    with (
        nullcontext() if signal else pytest.warns(ConvergenceWarning, match="was ended by max_time")
    ):
        found, _, make_predictor = fit_all_rows(best_first, all_rows, n_searched=500, grammar=None)
    assert ended == ["SE[0]"]
    assert found.expression == best_first[0].expression
    assert (found.expression == NOISE) == (signal == 0.0)
    assert np.isfinite(found.score)
    if signal:
        assert make_predictor(found.expression, found.theta, data).text == "32 neighbours"


def test_a_fit_without_time_predicts_all_the_same(table, new):
    with pytest.warns(ConvergenceWarning, match="max_time") as caught:
        model = fit(table, max_time=0.01)
    assert {warning.filename for warning in caught} == {__file__}  # where fit is called
    assert np.isfinite(model.predict(new)).all()


@pytest.mark.parametrize("method", ["fit", "refit"])
def test_warnings_point_at_the_line_of_the_call(method):
    model = small(n_iter=0, base_kernels=["PER"], max_leaves=1, periods={0: 1e9})
    X = np.linspace(0, 1, 10)[:, None]
    arguments = {"fit": (), "refit": ("NOISE",)}[method]
    with pytest.warns(UserWarning, match="much longer than its extent") as caught:
        getattr(model, method)(X, np.sin(9 * X[:, 0]), *arguments)
    here, line = __file__, test_warnings_point_at_the_line_of_the_call.__code__.co_firstlineno
    assert [(w.filename, w.lineno - line) for w in caught] == [(here, 6)]
