"""The search of the estimator: history, reproducibility, every strategy."""

import numpy as np
import pytest
from joblib import parallel_config

from autokernel import parse_expression
from autokernel.datasets import load_airline
from autokernel.search import UpperConfidenceBound
from tests.fits import SEARCHES, At, interrupt, rows, small, tiny, wave
from tests.processes import outputs_under_two_hash_seeds

KEYS = {"kernel", "score", "log_prior", "score_per_sample", "best_score", "n_leaves", "n_params"}
KEYS |= {"phase", "status", "fit_seconds", "proposal_seconds", "elapsed"}
KEYS |= {"estimate", "expected_improvement", "standard_error", "pareto_k", "upper_bound", "row_set"}


def test_fit_on_the_airline_series_extrapolates_far_better_than_an_rbf_kernel():
    X, y = load_airline(return_X_y=True)
    model = tiny(base_kernels=["SE", "LIN", "PER"], max_leaves=4, averaging=None)
    model.fit(X[:129:2], y[:129:2])
    rmse = np.sqrt(np.mean((model.predict(X[129:]) - y[129:]) ** 2))
    # a hand-made trend + season kernel reaches 25, a straight line 72, an RBF kernel 200
    assert rmse < 40
    assert model.score(X[1:129:2], y[1:129:2]) > 0.95  # a straight line reaches 0.84
    history = model.search_history_
    assert model.best_score_ - history["log_prior"][np.argmax(history["score"])] > 10


def test_history_is_one_row_per_kernel_in_the_order_of_evaluation():
    X, y = wave(n_features=2)
    model = small(n_iter=2, averaging=None, tol=0.0).fit(X, y)
    history = model.search_history_
    assert len({len(column) for column in history.values()}) == 1
    assert list(history["phase"]).count("search") == model.n_iter_ == 2
    assert model.stop_reason_ == "n_iter"
    np.testing.assert_array_equal(history["best_score"], np.maximum.accumulate(history["score"]))
    np.testing.assert_array_equal(history["score_per_sample"], history["score"] / 20)
    assert set(history) == KEYS
    for name in ("standard_error", "pareto_k", "upper_bound"):  # of other criteria and strategies
        assert np.isnan(history[name]).all()
    texts = [parse_expression(text).canonical for text in history["kernel"]]
    assert len(set(texts)) == len(texts)
    assert list(history["n_leaves"]) == [parse_expression(t).n_leaves for t in history["kernel"]]
    best = int(np.argmax(history["score"]))
    assert model.best_expression_ == history["kernel"][best]
    assert np.all(np.diff(history["elapsed"]) > 0)


_HISTORY_SCRIPT = """
from tempfile import TemporaryDirectory
import numpy as np
from autokernel import AutoKernelGPRegressor
from autokernel.search import STRATEGIES
rng = np.random.default_rng(0)
X = rng.uniform(size=(10, 1))
settings = {"base_kernels": ["SE", "LIN"], "max_leaves": 2, "n_iter": 1, "random_state": 7}
settings |= {"outliers": None, "averaging": None, "column_scales": None, "target_scale": None}
with TemporaryDirectory() as folder:
    for name in (name for name, one in STRATEGIES.items() if not one.is_of_series):
        model = AutoKernelGPRegressor(strategy=name, memory=folder, **settings)
        model.fit(X, np.sin(6 * X[:, 0]))
        for kernel, score in zip(model.search_history_["kernel"], model.search_history_["score"]):
            print(name, kernel, float(score).hex())
        print(model.predict(X[:3]).tolist())
"""


def test_no_search_depends_on_the_process_or_on_the_hash_seed():
    (output,) = outputs_under_two_hash_seeds(_HISTORY_SCRIPT)
    assert {line.split()[0] for line in output.splitlines()} >= set(SEARCHES)


def test_another_random_state_searches_elsewhere():
    """A search by estimates finds the same with every seed, in so small a space."""
    settings = {"strategy": "random", "n_iter": 3, "averaging": None}
    first, second = (small(random_state=seed, **settings).fit(*wave(12)) for seed in (0, 1))
    assert list(first.search_history_["kernel"]) != list(second.search_history_["kernel"])


@pytest.mark.parametrize("name", SEARCHES)
def test_every_strategy_finds_a_kernel_and_the_same_one_with_workers_and_in_steps(name, kept):
    settings = {"n_iter": 2, "batch_size": 2, "memory": kept, "averaging": None, "tol": 0.0}
    whole = small(strategy=name, **settings).fit(*wave())
    assert whole.stop_reason_ == "n_iter"
    assert whole.n_iter_ == 2
    assert whole.score(*wave()) > 0.9
    # SE and LIN, then noise alone; no kernel of one leaf has a simpler form to try
    phases = list(whole.search_history_["phase"])
    assert phases[:5] == 3 * ["initial"] + 2 * ["search"]
    assert set(phases[5:]) <= {"pruning", "rescoring"}  # exactly, after bounds
    assert whole.search_history_["kernel"][2] == "NOISE"
    model = small(strategy=SEARCHES[name](), n_jobs=2, warm_start=True, **settings)
    with parallel_config(backend="threading"):
        for n_iter in (0, 1, 2):
            model.set_params(n_iter=n_iter).fit(*wave())
    assert rows(model) == rows(whole)
    assert model.best_expression_ == whole.best_expression_


@pytest.mark.parametrize("name", ["sot", "arc"])
def test_an_acquisition_function_is_given_by_name_or_as_an_object(kept, name):
    settings = {"memory": kept, "n_iter": 1, "averaging": None}
    make = SEARCHES[name]
    by_name = small(strategy=make(acquisition="ucb"), **settings).fit(*wave())
    ucb = UpperConfidenceBound(kappa=2.0)
    as_object = small(strategy=make(acquisition=ucb), **settings).fit(*wave())
    assert rows(as_object) == rows(by_name)
    as_object.set_params(strategy__acquisition__kappa=-1.0)
    with pytest.raises(ValueError, match=r"'kappa' .*of UpperConfidenceBound .*\[0.0, inf\)"):
        as_object.fit(*wave())


@pytest.mark.parametrize(("n_features", "limit"), [(1, 10), (3, 10), (4, 12), (6, 16)])
def test_the_more_columns_the_larger_kernels_may_be_by_default(n_features, limit):
    X, y = wave(8, n_features=n_features)
    for n_leaves in (limit, limit + 1):
        kernel = " + ".join(["LIN[0]"] * n_leaves)
        settings = {"structure_prior": None, "base_kernels": ["LIN"], "max_leaves": "auto"}
        model = small(start_kernel=kernel, **settings).set_callbacks(At(interrupt, begun=1))
        too_many = pytest.raises(ValueError, match=f"at most max_leaves={limit} base kernels")
        with too_many if n_leaves > limit else pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
