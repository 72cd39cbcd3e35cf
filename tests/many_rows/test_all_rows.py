"""Fits of more rows than a search treats, through the estimator."""

import os
import pickle
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from autokernel import AutoKernelGPRegressor, Laplace, parse_expression
from autokernel.deadline import Deadline
from autokernel.evidence import Evaluator
from autokernel.evidence.laplace import laplace_log_evidence
from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import NOISE, Grammar, Leaf
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import ADD, BASE_KERNELS, PRESETS
from autokernel.many_rows import ManyRows, approximation_for, fit_all_rows
from autokernel.many_rows.terms import with_rough_term
from autokernel.search import Task
from tests.fits import At, interrupt, rows, small
from tests.own_kernels import OrnsteinUhlenbeck

N = 1010  # a few more than are fitted exactly
NOISE_STD = 0.1
OF_EXP = "custom part EXP failed: "


def wave(X):
    return np.sin(9 * X[:, 0])


@pytest.fixture(scope="module")
def column():
    X = np.random.default_rng(0).uniform(size=(N, 1))
    return X, wave(X) + NOISE_STD * np.random.default_rng(2).normal(size=N)


def error_of(model):
    """Root mean squared error of a model of the column, whose function is known."""
    X = np.linspace(0, 1, 50)[:, None]
    return np.sqrt(np.mean((model.predict(X) - wave(X)) ** 2))


def fit(table, **parameters):
    """Fit after a search of SE and noise alone."""
    few = {"base_kernels": ["SE"], "n_iter": 0, "max_leaves": 1, "n_inducing": 64}
    return small(**{**few, "strategy": "greedy", **parameters}).fit(*table)


def machine_with(patch, n_bytes):
    """Pretend that this machine has so much memory."""
    real = os.sysconf
    pages = n_bytes // real("SC_PAGE_SIZE")
    patch.setattr(os, "sysconf", lambda name: pages if name == "SC_PHYS_PAGES" else real(name))


@pytest.fixture(scope="module")
def models(column, tmp_path_factory):
    """One fit finds in the folder what another one has searched."""
    kept = tmp_path_factory.mktemp("kept")
    found = {name: fit(column, approximation=name, memory=kept) for name in ("auto", "inducing")}
    found["601 rows"] = fit([part[:601] for part in column])
    with pytest.MonkeyPatch.context() as patch:
        machine_with(patch, 10_000_000)  # too little for exact predictions
        with pytest.warns(ConvergenceWarning, match=f"memory .* {N} rows: they are approximated"):
            found["little memory"] = fit(column, memory=kept)
    return found


every_model = pytest.mark.parametrize("name", ["auto", "inducing", "601 rows", "little memory"])


@every_model
def test_the_whole_contract_holds(name, models):
    model, new = models[name], np.linspace(0, 1, 50)[:, None]
    assert model.X_train_.shape == (601 if name == "601 rows" else N, 1)
    if name in ("auto", "601 rows"):
        assert model.approximation_ == "exact"
    else:
        n, *words = model.approximation_.split()
        assert words == ["inducing", "points"]
        assert int(n) < 60  # no more are needed for a smooth function
    mean, std = model.predict(new, return_std=True)
    # a dozen effective parameters: sqrt(12 / 601) of the noise is 0.014
    assert np.sqrt(np.mean((mean - wave(new)) ** 2)) < 0.03
    np.testing.assert_allclose(std, NOISE_STD, rtol=0.15)
    assert np.all(model.predict(new, return_std="function")[1] < std)
    assert model.sample_y(new[:5], 3, random_state=0).shape == (5, 3)
    _, covariance = model.predict(new[:5], return_cov=True)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std[:5], rtol=1e-6)
    assert model.posterior_["probability"].sum() == pytest.approx(1.0)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.predict(new), mean, rtol=1e-10)
    assert model.best_kernel_(new[:4]).shape == (4, 4)


@every_model
def test_the_score_is_that_of_all_rows(name, models):
    """Likelihood and evidence are close to the exact ones at the same parameters."""
    model = models[name]
    evaluation, data = model._fitted.evaluation, model._fitted.mixture.data
    exact = LogPosterior(ExactLikelihood(evaluation.expression, data), priors=PRESETS["default"])
    away = (evaluation.log_posterior - exact.value(evaluation.theta)) / len(data.y)
    # a bound lies below; thirty neighbours show less of a smooth function than all rows do
    low, high = {"inducing": (-1e-3, 1e-6), "601 rows": (-1e-9, 1e-9)}.get(name, (-0.05, 0.05))
    assert low < away < high
    expected = laplace_log_evidence(evaluation.log_posterior, exact.hessian(evaluation.theta))
    tolerance = 0.01 if name == "601 rows" else 2.0  # of 400 and 670
    assert evaluation.log_evidence == pytest.approx(expected, abs=tolerance)
    assert model.best_score_ == evaluation.log_evidence + evaluation.log_structure_prior
    history, is_exact = model.search_history_, name == "601 rows"
    assert (history["score"].max() == model.best_score_) == is_exact
    n_rows = np.where(history["row_set"] == 0, 500, 601)
    np.testing.assert_allclose(history["score_per_sample"], history["score"] / n_rows)


def test_the_same_seed_gives_the_same_model_and_refit_uses_all_rows(models, column):
    model = clone(models["inducing"]).fit(*column)
    np.testing.assert_array_equal(model.predict(column[0]), models["inducing"].predict(column[0]))
    model.refit(*column, kernel="SE[0]")
    assert model.approximation_.endswith(" inducing points")
    assert model.best_expression_ == "SE[0]"  # nothing is added to a kernel that is named
    assert error_of(model) < 0.03


def rough_rows(n, n_searched, n_missing):
    """A rough function under a smooth one, some rows, and the fit of a smooth kernel to them.

    Its lengthscale is below the spacing of the rows that are searched.
    """
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(size=(n, 1)), axis=0)
    K = np.exp(-0.5 * (n * np.subtract.outer(x[:, 0], x[:, 0])) ** 2) + 1e-6 * np.eye(n)
    y = np.sin(6 * x[:, 0]) + np.linalg.cholesky(0.25 * K) @ rng.normal(size=n)
    y += 0.1 * rng.normal(size=n)
    x[:: max(1, n // 5)][:n_missing] = np.nan
    data = TrainingData(x, (y - y.mean()) / y.std())
    some = data.take(np.random.default_rng(0).permutation(n)[:n_searched])
    evaluator = Evaluator(some, priors=PRESETS["default"], seed=0)
    return data, evaluator, evaluator(parse_expression("SE[0]"))


ROUGH = Grammar((BASE_KERNELS["SE"],), (ADD,), (0,), max_leaves=2)


@pytest.mark.parametrize("n_missing", [0, 5])
def test_a_rough_term_may_win_that_the_search_has_not_met(n_missing):
    data, evaluator, fit = rough_rows(300, 100, n_missing)
    task = Task(ROUGH, evaluator)
    (added,) = with_rough_term(fit, data, task)
    assert added.expression == fit.expression + fit.expression
    assert 0.5 / 300 < np.exp(added.theta[2]) < 0.5 / 100  # the mean distances of nearest rows
    assert np.exp(added.theta[[3, -1]]).sum() == pytest.approx(np.exp(fit.theta[-1]), rel=1e-12)
    all_rows = ManyRows(approximation_for("neighbours", 300, 64), data, evaluator)
    found, _, _ = fit_all_rows([fit], all_rows, task)
    assert str(found.expression) == "SE[0] + SE[0]"
    plain = [one.score for one in all_rows.history if one.expression == fit.expression]
    assert found.score > max(plain) + 10


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


@pytest.mark.parametrize(
    ("n", "name"), [(2, "neighbours"), (3, "inducing"), (7, "neighbours"), (40, "inducing")]
)
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


@pytest.mark.parametrize(("criterion", "on_all_rows"), [("bic", True), ("loo", False)])
def test_a_criterion_without_approximations_chooses_the_kernel_on_some_rows(
    column, criterion, on_all_rows
):
    model = fit(column, criterion=criterion, averaging=None)
    history = model.search_history_
    if on_all_rows:
        assert model.best_score_ > 2 * history["score"].max()
    else:
        assert model.best_score_ == history["score"].max()
        assert model.best_expression_ == history["kernel"][np.argmax(history["score"])]
    assert error_of(model) < 0.04


def test_ctrl_c_leaves_a_model_that_says_from_how_many_rows_it_predicts(column, models):
    undisturbed = models["auto"]
    model = clone(undisturbed).set_callbacks(At(interrupt, ended=1))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*column)
    assert model.stop_reason_ == "interrupted"
    assert model.approximation_ == "exact, given 500 rows"
    assert rows(model) == rows(undisturbed)[: len(rows(model))]
    again = model.set_params(warm_start=True).set_callbacks().fit(*column)
    assert rows(again) == rows(undisturbed)
    np.testing.assert_array_equal(again.predict(column[0]), undisturbed.predict(column[0]))


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

    def fit(self, table):
        """Fit an estimator, and break the kernel at the end of the search, with noise alone."""
        model = small(base_kernels=[self], max_leaves=1, n_iter=0, averaging=None)
        return model.set_callbacks(At(self.break_, ended=2)).fit(*table)

    def break_(self):
        self._is_broken = self._largest == np.inf


@pytest.mark.parametrize("n", [700, N])
def test_a_fit_to_all_rows_that_fails_says_why_and_what_the_score_is_of(column, n):
    X, y = (part[:n] for part in column)
    fragile = Fragile(ZeroDivisionError("once too often"))
    with pytest.warns(UserWarning, match="once too often") as caught:
        model = fragile.fit((X, y))
    said = [str(one.message) for one in caught if one.category is ConvergenceWarning]
    first, *others = said
    assert f"the fit to all {n} rows" in first
    assert f"has failed (EXP[0]: {OF_EXP}ZeroDivisionError: once too often" in first
    assert "best_score_, are those of the fewer rows of the search" in first
    assert any("predictions are given the 500 rows of the search only" in one for one in others)
    assert "how well new rows are predicted is not known" in others[-1]
    assert model.best_expression_ == "EXP[0]"
    assert model.best_score_ == model.search_history_["score"].max()
    assert model.approximation_ == "exact, given 500 rows"
    fragile._is_broken = False
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 2 * NOISE_STD


def test_predictions_that_need_too_much_memory_are_approximated(column):
    fragile = Fragile(MemoryError("11 MiB"), largest=N * N // 2)
    why = rf"EXP.* on {N} rows \({OF_EXP}MemoryError: 11 MiB\)"
    with pytest.warns(ConvergenceWarning, match=why):
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
    fits = [evaluator(kernel) for kernel in (*kernels, parse_expression("RQ[0]"))]
    best_first = [replace(fit, score=-float(n)) for n, fit in enumerate(fits[:3])]
    best_first.append(replace(fits[3], score=-11.0))  # too far behind to be fitted to all rows
    all_rows = ManyRows(approximation_for("neighbours", 300, 64), data, evaluator)
    with pytest.warns(ConvergenceWarning, match="a part of the fit to all 300 rows") as caught:
        found, _, _ = fit_all_rows(best_first, all_rows)
    assert str(found.expression) == "SE[0]"
    failed = [one for one in all_rows.history if not np.isfinite(one.score)]
    assert {one.expression for one in failed} == set(kernels[1:])
    assert {str(one.expression) for one in all_rows.history} == set(map(str, kernels))
    assert {one.status for one in failed} == {f"{OF_EXP}MemoryError: 11 MiB"}
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

    X, y = (part[:300] for part in column)
    y = signal * y + np.random.default_rng(1).normal(size=300)
    data = TrainingData(X, (y - y.mean()) / y.std())
    settings = {"priors": PRESETS["default"], "seed": 0, "criterion": EndingOnAllRows()}
    evaluator = Evaluator(data.take(np.arange(100)), **settings)
    fits = [evaluator(parse_expression(text)) for text in ("SE[0]", "NOISE")]
    best_first = sorted(fits, key=lambda one: -one.score)
    all_rows = ManyRows(approximation_for("auto", N, 64), data, evaluator, deadline=deadline)
    with (
        nullcontext() if signal else pytest.warns(ConvergenceWarning, match="was ended by max_time")
    ):
        found, _, make_predictor = fit_all_rows(best_first, all_rows)
    assert ended == ["SE[0]"]
    assert found.expression == best_first[0].expression
    assert (found.expression == NOISE) == (signal == 0.0)
    assert np.isfinite(found.score)
    if signal:
        assert make_predictor(found.expression, found.theta, data).text == "32 neighbours"
