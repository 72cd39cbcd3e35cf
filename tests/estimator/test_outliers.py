"""Rows that do not fit: which are excluded, which are not, and what is said of them."""

import json
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone

from autokernel import AutoKernelGPRegressor
from autokernel.datasets import load_airline
from autokernel.export import from_dict, to_dict
from tests.fits import small, tiny, wave


def example(seed=0, *, rows=None, by=15.0, n=120):
    """A smooth function with a noise of 0.1, and rows that are off; also the function."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0, 10, size=(n, 1)), axis=0)
    f = 2 * np.sin(X[:, 0]) + 0.3 * X[:, 0]
    y = f + 0.1 * rng.normal(size=n)
    rows = np.sort(rng.choice(n, 6, replace=False)) if rows is None else np.array(rows, dtype=int)
    y[rows] += by * rng.choice([-1, 1], len(rows))
    return X, y, rows, f


def refitted(X, y, kernel="SE[0]", **settings):
    settings = {"averaging": None, "random_state": 0, **settings}
    return AutoKernelGPRegressor(**settings).refit(X, y, kernel)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_six_rows_of_an_example_are_named_and_do_not_matter(seed):
    X, y, rows, f = example(seed)
    model = small(n_iter=1).fit(X, y)
    np.testing.assert_array_equal(model.outliers_, rows)
    assert model.outliers_.dtype.kind == "i"
    assert np.sqrt(np.mean((model.predict(X) - f) ** 2)) < 0.1  # without their exclusion about 1
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.1, rel=0.25)  # n = 114
    assert len(model.X_train_) == len(model.y_train_) == 114


def test_a_fit_without_outliers_is_that_of_the_other_rows():
    X, y, rows, _ = example()
    others = np.delete(X, rows, axis=0), np.delete(y, rows)
    with_them, without = small(n_iter=1).fit(X, y), small(n_iter=1, outliers=None).fit(*others)
    assert with_them.best_expression_ == without.best_expression_
    assert with_them.best_score_ == without.best_score_
    np.testing.assert_array_equal(with_them.predict(X), without.predict(X))


@pytest.mark.parametrize("rows", [[50, 51], [20, 21, 22, 70, 90], [0, 1, 119]])
def test_neighbours_that_are_off_together_do_not_hide_each_other(rows):
    X, y, _, _ = example(rows=[])
    y[rows] += 12
    np.testing.assert_array_equal(refitted(X, y).outliers_, rows)


def test_deviations_are_those_of_the_weight_of_a_row():
    X, y, rows, _ = example(rows=[50])
    off = []
    for weight in (1.0, 4.0):  # of four readings, with half of the noise
        weights = np.ones(len(y))
        weights[rows] = weight
        model = AutoKernelGPRegressor(averaging=None, random_state=0)
        text = model.refit(X, y, "SE[0]", sample_weight=weights).describe()
        off.append(float(re.search(r"it is (\d+) standard deviations off", text)[1]))
    # about nine parameters of 114 rows: the function has a variance of .08 of that of the noise
    factor = np.sqrt((1 + 0.08) / (1 / 4 + 0.08))
    assert off[1] == pytest.approx(factor * off[0], rel=0.08)  # texts have two digits


def test_none_leaves_all_rows():
    X, y, _, _ = example()
    model = refitted(X, y, outliers=None)
    assert len(model.outliers_) == 0
    assert len(model.y_train_) == 120
    assert np.sqrt(model.noise_variance_) > 1


@pytest.mark.parametrize("noise", ["normal", "t3", "t5", "exponential", "none"])
@pytest.mark.parametrize("seed", [0, 2])
def test_nothing_is_excluded_from_clean_data_also_with_heavy_tails(noise, seed):
    rng = np.random.default_rng(seed)
    X, _, _, f = example(seed, rows=[])
    e = {
        "normal": lambda: rng.normal(size=120),
        "t3": lambda: rng.standard_t(3, 120),
        "t5": lambda: rng.standard_t(5, 120),
        "exponential": lambda: rng.exponential(size=120),
        "none": lambda: np.zeros(120),
    }[noise]()
    assert len(refitted(X, f + 0.3 * e).outliers_) == 0


def test_nothing_is_excluded_from_an_airline_a_jump_counts_and_zeros():
    rng = np.random.default_rng(0)
    x = np.arange(120.0)[:, None]
    assert len(refitted(*load_airline(return_X_y=True), "SE[0]").outliers_) == 0
    noise = 0.1 * rng.normal(size=120)
    assert len(refitted(x, 2.0 * (x[:, 0] >= 100) + noise).outliers_) == 0
    assert len(refitted(x, rng.poisson(0.1, 120)).outliers_) == 0
    rain = np.where(rng.uniform(size=120) < 0.85, 0.0, rng.exponential(size=120))
    assert len(refitted(x, rain).outliers_) == 0


def test_a_skewed_target_is_judged_on_its_logarithm():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 1))
    y = np.exp(np.sin(6 * X[:, 0]) + 0.5 * rng.normal(size=120))
    assert len(small(n_iter=0).fit(X, y).outliers_) == 0
    y[[3, 40, 77]] = [-30.0, 900.0, 600.0]  # one is not on that scale
    np.testing.assert_array_equal(small(n_iter=0).fit(X, y).outliers_, [3, 40, 77])


@pytest.mark.parametrize(
    "y",
    [np.full(20, 3.0), np.arange(20) % 2, np.append(np.zeros(19), 50.0), np.arange(5.0)],
    ids=["constant", "two values", "one that differs", "five rows"],
)
def test_few_rows_or_values_are_all_kept(y):
    X = np.linspace(0, 1, len(y))[:, None]
    assert len(tiny().fit(X, y).outliers_) == 0


def test_constant_columns_leave_noise_with_outliers():
    rng = np.random.default_rng(0)
    y = np.append(rng.normal(size=60), [40.0, -50.0])
    with pytest.warns(UserWarning, match="every column of X is constant"):
        model = tiny().fit(np.ones((62, 1)), y)
    np.testing.assert_array_equal(model.outliers_, [60, 61])


def test_indices_are_those_of_the_given_rows():
    X, y, rows, _ = example()
    weights = np.ones(120)
    weights[[0, 5, 60]] = 0
    weights[rows[:1]] = 0
    model = AutoKernelGPRegressor(random_state=0).refit(X, y, "SE[0]", sample_weight=weights)
    np.testing.assert_array_equal(model.outliers_, rows[1:])
    expected = np.setdiff1d(np.flatnonzero(weights), rows)
    np.testing.assert_array_equal(model.X_train_, X[expected])


def test_weights_and_known_errors_count():
    X, y, rows, _ = example()
    weights = np.random.default_rng(0).uniform(0.5, 2, 120)
    model = AutoKernelGPRegressor(random_state=0).refit(X, y, "SE[0]", sample_weight=weights)
    np.testing.assert_array_equal(model.outliers_, rows)
    errors = np.zeros(120)
    errors[rows[0]] = 15.0  # which explains this row
    model.refit(X, y, "SE[0]", noise_std=errors)
    np.testing.assert_array_equal(model.outliers_, rows[1:])


def test_rows_that_a_kernel_explains_come_back():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(120.0), rng.uniform(size=(120, 2))])
    y = np.sin(X[:, 0] / 20) + 0.1 * rng.normal(size=120)
    y[::12] += 5
    model = refitted(X, y, "SE[0]")
    np.testing.assert_array_equal(model.outliers_, np.arange(0, 120, 12))
    assert len(model.refit(X, y, "PER[0] + SE[0]").outliers_) == 0
    assert len(model.y_train_) == 120


def test_a_period_that_explains_spikes_is_found():
    x = np.arange(96.0)[:, None]
    y = np.sin(x[:, 0] / 20) + 0.1 * np.random.default_rng(0).normal(size=96)
    y[::12] += 5
    model = AutoKernelGPRegressor(
        base_kernels=["SE", "PER"], max_leaves=2, n_iter=1, random_state=0
    ).fit(x, y)
    assert len(model.outliers_) == 0
    assert "PER" in model.best_expression_


@pytest.mark.parametrize("approximation", ["auto", "inducing"])
def test_outliers_among_many_rows_are_found_by_the_fit_to_some(approximation):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1100, 1))
    f = np.sin(9 * X[:, 0])
    y = f + 0.1 * rng.normal(size=1100)
    rows = np.sort(rng.choice(1100, 25, replace=False))
    y[rows] += rng.choice([-5, 5], 25)
    model = small(n_iter=0, approximation=approximation, n_inducing=40).fit(X, y)
    np.testing.assert_array_equal(model.outliers_, rows)
    assert np.sqrt(np.mean((model.predict(X) - f) ** 2)) < 0.05


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([17], r"^Row 17 does not fit: it is \d+ standard deviations off, and is excluded"),
        (
            [17, 70],
            r"^Rows 17 and 70 do not fit: they are \d+ and \d+ standard deviations off, and",
        ),
        ([1, 17, 40, 55, 70, 80, 99], r"^7 rows, of which the first are 1, .*80, do not fit: they"),
    ],
)
def test_outliers_are_said_with_a_claim(rows, sentence):
    X, y, _, _ = example(rows=[])
    y[rows] += np.linspace(3, 5, len(rows))
    model = refitted(X, y)
    said = model.describe().split("\n\n")[-1]
    assert re.search(sentence, said), said
    claims = model.claims_
    (place,) = np.flatnonzero(claims["predicate"] == "excluded")
    assert claims["value"][place] > 20
    assert claims["text"][place] in said


def test_rows_without_a_density_on_the_scale_are_said_to_be_at_its_end():
    x = np.linspace(0, 1, 60)[:, None]
    y = (2 + np.sin(9 * x[:, 0]) + 0.05 * np.random.default_rng(0).normal(size=60)) ** 2
    y[[7, 30]] = 0.0, 400.0
    said = refitted(x, y, "sqrt(y) ~ SE[0]").describe()
    assert "Row 7 has a value where the target's scale ends, and is excluded" in said
    assert re.search(r"Row 30 does not fit: it is \d+ standard deviations off", said)


@pytest.mark.parametrize(
    "duplicate",
    [
        lambda model: pickle.loads(pickle.dumps(model)),
        lambda model: from_dict(json.loads(json.dumps(to_dict(model)))),
    ],
    ids=["pickle", "json"],
)
def test_copies_keep_outliers(duplicate):
    X, y, rows, _ = example()
    model = small(n_iter=0).fit(X, y)
    twin = duplicate(model)
    np.testing.assert_array_equal(twin.outliers_, rows)
    assert twin.describe() == model.describe()
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    np.testing.assert_array_equal(twin.y_train_, model.y_train_)


def test_a_clone_has_the_parameter_and_another_value_is_refused():
    model = small(outliers=None)
    assert clone(model).outliers is None
    X, y = wave()
    with pytest.raises(ValueError, match=r"'outliers' parameter .* must be a str among"):
        model.set_params(outliers="all").fit(X, y)
    assert len(model.set_params(outliers="auto").fit(X, y).outliers_) == 0


def test_a_warm_start_goes_on_without_the_same_rows():
    X, y, rows, _ = example()
    model = small(n_iter=1, warm_start=True).fit(X, y)
    elapsed = model.search_history_["elapsed"][0]
    model.set_params(n_iter=2).fit(X, y)
    assert model.search_history_["elapsed"][0] == elapsed
    np.testing.assert_array_equal(model.outliers_, rows)
    model.set_params(outliers=None).fit(X, y)
    assert model.search_history_["elapsed"][0] != elapsed
    assert len(model.outliers_) == 0


def test_too_little_time_excludes_nothing_but_fits():
    X, y, _, _ = example()
    with pytest.warns(UserWarning, match="before any kernel had a score"):
        model = small(max_time=1e-6).fit(X, y)
    assert len(model.outliers_) == 0
    assert np.isfinite(model.predict(X)).all()


def test_progress_names_outliers(capsys):
    X, y, rows, _ = example()
    small(n_iter=0, verbose=1).fit(X, y)
    first = ", ".join(map(str, rows[:5]))
    assert f"rows {first} and 1 more do not fit, and are excluded" in capsys.readouterr().out
