"""Rows that do not fit: which are excluded, which are not, and what is said of them."""

import re

import numpy as np
import pandas as pd
import pytest

from autokernel import AutoKernelGPRegressor
from autokernel.datasets import load_airline
from tests.fits import PLAIN, Recording, count_evaluations, tiny
from tests.fits import small as without_outliers


def small(**settings):
    """A small fit with a search for outliers, of few kernels."""
    return without_outliers(**{"outliers": "auto", "n_iter": 0, "averaging": None, **settings})


def example(seed=0, *, rows=None, by=15.0, n=60):
    """A smooth function with a noise of 0.1, and rows that are off; also the function."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0, 10, size=(n, 1)), axis=0)
    f = 2 * np.sin(X[:, 0]) + 0.3 * X[:, 0]
    y = f + 0.1 * rng.normal(size=n)
    rows = np.sort(rng.choice(n, 4, replace=False)) if rows is None else np.array(rows, dtype=int)
    y[rows] += by * rng.choice([-1, 1], len(rows))
    return X, y, rows, f


def refitted(X, y, kernel="SE[0]", **settings):
    settings = {**PLAIN, "outliers": "auto", "averaging": None, **settings}
    return AutoKernelGPRegressor(**settings).refit(X, y, kernel)


def test_four_rows_of_an_example_are_named_and_the_fit_is_that_of_the_others(kept, capsys):
    X, y, rows, f = example()
    model = small(max_leaves=1, verbose=1, memory=kept).fit(X, y)
    np.testing.assert_array_equal(model.outliers_, rows)
    assert model.outliers_.dtype.kind == "i"
    names = ", ".join(map(str, rows))
    assert f"rows {names} do not fit, and are excluded" in capsys.readouterr().out
    assert np.sqrt(np.mean((model.predict(X) - f) ** 2)) < 0.1  # without their exclusion about 1
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.1, rel=0.3)  # n = 56
    X, y = np.delete(X, rows, axis=0), np.delete(y, rows)
    others = small(outliers=None, max_leaves=1).fit(X, y)
    np.testing.assert_array_equal(model.X_train_, X)
    np.testing.assert_array_equal(model.y_train_, y)
    assert model.best_expression_ == others.best_expression_
    assert model.best_score_ == others.best_score_
    np.testing.assert_array_equal(model.predict(X), others.predict(X))


@pytest.mark.parametrize("rows", [[10, 11, 35, 45], [0, 1, 59]])
def test_neighbours_that_are_off_together_do_not_hide_each_other(rows):
    X, y, _, _ = example(rows=[])
    y[rows] += 12
    np.testing.assert_array_equal(refitted(X, y).outliers_, rows)


def test_deviations_are_those_of_the_weight_of_a_row():
    X, y, rows, _ = example(rows=[25])
    off = []
    for weight in (1.0, 4.0):  # of four readings, with half of the noise
        weights = np.ones(len(y))
        weights[rows] = weight
        model = small().refit(X, y, "SE[0]", sample_weight=weights)
        off += [*model._fitted.outliers.deviations]
    # about nine parameters of 59 rows: the function has a variance of .15 of that of the noise
    factor = np.sqrt((1 + 0.15) / (1 / 4 + 0.15))
    assert off[1] == pytest.approx(factor * off[0], rel=0.05)


X, _, _, F = example(rows=[])
TIME, FRESH = np.arange(120.0)[:, None], np.random.default_rng
CLEAN = {  # data of which no row is off, but that are not normal
    "heavy tails": lambda: (X, F + 0.3 * FRESH(1).standard_t(3, 60)),
    "skewed": lambda: (X, F + 0.3 * FRESH(0).exponential(size=60)),
    "one heavy tail": lambda: (X, F + 0.3 * FRESH(9).lognormal(size=60)),
    "a Pareto tail": lambda: (TIME[:100], TIME[:100, 0] / 2 + FRESH(17).pareto(1.5, size=100)),
    "no noise": lambda: (X, F),
    "a jump": lambda: (TIME[:60], 2.0 * (TIME[:60, 0] >= 50) + 0.02 * FRESH(0).normal(size=60)),
    "counts": lambda: (TIME[:60], FRESH(0).poisson(0.1, 60)),
    "rain": lambda: (TIME, rain(FRESH(0))),
    "airline": lambda: [part[:72] for part in load_airline(return_X_y=True)],
}


def test_deviations_are_those_on_the_scale_of_the_target():
    X, y, _, f = example(rows=[])
    y[[20, 40]] = f[[20, 40]] + [3.0, -3.0]
    model = refitted(X, np.exp(y), "log(y) ~ SE[0]")
    np.testing.assert_array_equal(model.outliers_, [20, 40])
    above, below = model._fitted.outliers.deviations
    assert above == pytest.approx(-below, rel=0.15)  # factors of 20 and of 1/20
    assert 20 < above < 40  # 3 / 0.1, with the noise known by 58 rows


def rain(rng):
    return np.where(rng.uniform(size=120) < 0.85, 0, rng.exponential(size=120))


@pytest.mark.parametrize("kind", CLEAN)
def test_nothing_is_excluded_from_clean_data(kind):
    assert len(refitted(*CLEAN[kind]()).outliers_) == 0


def test_a_skewed_target_is_judged_on_its_logarithm(rng):
    X = rng.uniform(size=(48, 1))
    y = np.exp(np.sin(6 * X[:, 0]) + 0.5 * rng.normal(size=48))
    settings = {"target_scale": "auto", "base_kernels": ["SE"], "max_leaves": 1}
    assert len(small(**settings).fit(X, y).outliers_) == 0
    y[[3, 40, 47]] = [-30.0, 900.0, 600.0]  # one is not on that scale
    np.testing.assert_array_equal(small(**settings).fit(X, y).outliers_, [3, 40, 47])


@pytest.mark.parametrize(
    "y",
    [np.full(20, 3.0), np.arange(20) % 2, np.append(np.zeros(19), 50.0), np.arange(5.0)],
    ids=["constant", "two values", "one that differs", "five rows"],
)
def test_few_rows_or_values_are_all_kept(y):
    X = np.linspace(0, 1, len(y))[:, None]
    assert len(tiny(outliers="auto").fit(X, y).outliers_) == 0


@pytest.mark.parametrize(
    ("rows", "value"), [([7], -9.96921e36), ([20, 21, 22], -9999.0), ([0, 1], 99999.0)]
)
def test_numbers_that_stand_for_missing_ones_are_excluded_also_side_by_side(rows, value):
    X, y, _, f = example(rows=[])
    y[rows] = value
    model = small(base_kernels=["SE"], max_leaves=1).fit(X, y)
    np.testing.assert_array_equal(model.outliers_, rows)
    assert np.sqrt(np.mean((model.predict(X) - f) ** 2)) < 0.2
    with pytest.warns(
        UserWarning, match=rf"y has {value:g} in rows? {rows[0]}".replace("+", r"\+")
    ):
        kept = small(outliers=None, base_kernels=["SE"]).refit(X, y, "SE[0]")
    assert len(kept.outliers_) == 0
    y[:20] = value  # too many to be left out
    with pytest.warns(UserWarning, match="far from all other values: leave out such rows"):
        small(base_kernels=["SE"]).refit(X, y, "SE[0]")


def test_constant_columns_leave_noise_with_outliers(rng):
    y = np.append(rng.normal(size=60), [40.0, -50.0])
    with pytest.warns(UserWarning, match="every column of X is constant"):
        model = tiny(outliers="auto").fit(np.ones((62, 1)), y)
    np.testing.assert_array_equal(model.outliers_, [60, 61])


def test_weights_and_known_errors_count_and_indices_are_those_of_the_given_rows():
    X, y, rows, _ = example()
    weights = np.random.default_rng(0).uniform(0.5, 1.5, 60)
    weights[[0, 5, 30]] = 0
    errors = np.zeros(60)
    errors[rows[0]] = 15.0  # which explains this row
    model = small().refit(X, y, "SE[0]", sample_weight=weights, noise_std=errors)
    np.testing.assert_array_equal(model.outliers_, rows[1:])
    expected = np.setdiff1d(np.flatnonzero(weights), rows[1:])
    np.testing.assert_array_equal(model.X_train_, X[expected])


def test_spikes_that_a_period_explains_are_no_outliers_or_come_back(rng):
    X = np.column_stack([np.arange(64.0), rng.uniform(size=(64, 2))])
    y = np.sin(X[:, 0] / 20) + 0.1 * rng.normal(size=64)
    y[::8] += 5
    assert len(refitted(X[:, :1], y).outliers_) == 0
    model = refitted(X, y)  # of three columns, whose periods are not tried
    np.testing.assert_array_equal(model.outliers_, np.arange(0, 64, 8))
    said = "8 rows, of which the first are 0, 8, 16, 24, 32 and 40, are excluded as outliers"
    assert said in model.describe()
    assert len(model.refit(X, y, "PER[0] + SE[0]").outliers_) == 0
    assert len(model.y_train_) == 64


@pytest.mark.slow
@pytest.mark.parametrize("approximation", ["inducing", "auto"])
def test_outliers_among_many_rows_are_found_by_the_fit_to_some(approximation, rng):
    X = rng.uniform(size=(620, 1))
    f = np.sin(9 * X[:, 0])
    y = f + 0.1 * rng.normal(size=620)
    rows = np.sort(rng.choice(620, 12, replace=False))
    y[rows] += rng.choice([-5, 5], 12)
    settings = {"base_kernels": ["SE"], "max_leaves": 1, "n_inducing": 40}
    model = small(approximation=approximation, **settings).fit(X, y)
    np.testing.assert_array_equal(model.outliers_, rows)
    assert np.sqrt(np.mean((model.predict(X) - f) ** 2)) < 0.05


def test_outliers_are_said_with_a_claim():
    X, y, _, _ = example(rows=[])
    y[[17, 40]] += 3, 5
    model = refitted(X, y)
    said = model.describe().split("\n\n")[-1]
    sentence = r"^Rows 17 and 40 are excluded as outliers: they are \d+ and \d+ standard deviations"
    assert re.search(sentence, said), said
    claims = model.claims_
    (place,) = np.flatnonzero(claims["predicate"] == "excluded")
    assert claims["value"][place] > 20
    assert claims["text"][place] in said


def test_what_is_excluded_is_not_explained():
    X, y, rows, f = example()
    model = refitted(X, y)
    assert list(model.outliers_) == list(rows)
    claims = model.claims_
    (place,) = np.flatnonzero(claims["predicate"] == "explained")
    errors = y - f  # nearly those of predictions
    assert claims["value"][place] == pytest.approx(1 - np.mean(errors**2) / y.var(), abs=0.01)
    without = np.delete(errors, rows).var() / np.delete(y, rows).var()
    said = re.search(r"(\S+) % of the variance of held-out rows; (\S+) % without", model.describe())
    assert float(said[1]) / 100 == pytest.approx(claims["value"][place], abs=0.01)
    assert float(said[2]) / 100 == pytest.approx(1 - without, abs=0.01)


DAYS = pd.date_range("2021-01-01", "2022-02-28")
DAYS = DAYS[DAYS.month <= 2]


@pytest.mark.parametrize("shared", ["level", "weekday", "day"])
def test_rows_that_have_something_in_common_come_again_and_are_kept(shared):
    rng = np.random.default_rng(1)
    n = len(DAYS)
    level = pd.Series(rng.choice(list("abcdefgh"), n), dtype="category")
    y = np.sin(np.arange(n) / 20) + 0.1 * rng.normal(size=n)
    X = pd.DataFrame({"day": DAYS})
    if shared == "level":
        X = pd.DataFrame({"x": np.arange(n) / 20, "level": level})
    groups = {
        "level": level == "c",
        "weekday": DAYS.day_name() == "Monday",
        "day": np.isin(DAYS.strftime("%m-%d"), ["01-08", "01-27", "02-11", "02-23"]),
    }
    possible = np.flatnonzero(groups[shared])
    rows = possible[:: len(possible) // 8][:8]
    assert len(rows) == 8
    scattered = rng.choice(n, len(rows), replace=False)
    kernel = "SE[x]" if shared == "level" else "SE[day]"
    said = {
        "level": "that are far off are of level c.",
        "weekday": "that are far off are on a Monday.",
        "day": "that are farthest off are on 8 January, 27 January, 11 February and 23 February.",
    }
    every = [(rows, [])] + [(scattered, np.sort(scattered))] * (shared == "day")
    for chosen, excluded in every:
        off = y.copy()
        off[chosen] += 4 * rng.choice([-1, 1], len(rows))
        model = refitted(X, off, kernel)
        np.testing.assert_array_equal(model.outliers_, excluded)
        text = model.describe()
        found = re.search(rf"\d+ of the \d+ rows {said[shared]}", text)
        assert found if chosen is rows else "rows that are far" not in text


def test_far_rows_without_a_date_share_no_date(rng):
    n, days = 400, pd.date_range("2021-01-01", periods=400)
    monday = np.flatnonzero(days.day_name() == "Monday")[:6]
    unknown = np.setdiff1d(np.arange(n), monday)[:20]
    z = rng.uniform(size=n)
    y = z + 0.1 * rng.normal(size=n)
    y[[*monday, *unknown[:7]]] += 4
    X = pd.DataFrame({"day": days, "z": z})
    X.loc[unknown, "day"] = pd.NaT
    settings = {"outliers": None, "noise": "constant"}
    text = refitted(X, y, "LIN[z]", **settings).describe()
    assert "6 of the 13 rows that are far off are on a Monday" in text


def test_rows_without_a_density_on_the_scale_are_said_to_be_at_its_end():
    x = np.linspace(0, 1, 60)[:, None]
    y = (2 + np.sin(9 * x[:, 0]) + 0.05 * np.random.default_rng(0).normal(size=60)) ** 2
    y[[7, 30]] = 0.0, 400.0
    said = refitted(x, y, "sqrt(y) ~ SE[0]").describe()
    assert "Row 7 has a value where the target's scale ends, and is excluded" in said
    assert re.search(r"Row 30 is excluded as an outlier: it is \d+ standard deviations off", said)


def test_a_warm_start_goes_on_without_the_same_rows(kept):
    X, y, rows, _ = example()
    evaluated = count_evaluations()
    settings = {"base_kernels": ["SE"], "strategy": "random", "structure_prior": None}
    model = small(warm_start=True, memory=kept, criterion=Recording(), **settings).fit(X, y)
    n_first = len(evaluated)
    model.set_params(n_iter=1).fit(X, y)
    assert len(evaluated) == n_first + 1
    np.testing.assert_array_equal(model.outliers_, rows)
    model.set_params(outliers=None).fit(X, y)
    assert len(evaluated) > 2 * n_first
    assert len(model.outliers_) == 0


def test_outliers_of_very_many_columns_are_found_by_those_with_the_largest_effects(rng):
    X = rng.uniform(size=(200, 30))
    y = 8 * X[:, 7] + 3 * np.sin(6 * X[:, 20]) + 0.1 * rng.normal(size=200)
    y[[20, 90, 170]] += 4  # which one column cannot show
    np.testing.assert_array_equal(refitted(X, y, "LIN[7] + SE[20]").outliers_, [20, 90, 170])
