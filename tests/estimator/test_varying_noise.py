"""Noise whose variance changes with the columns, from ``fit`` to predictions, copies and words."""

import json
import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from autokernel import AutoKernelGPRegressor
from autokernel.export import from_dict, to_dict
from tests.fits import PLAIN, normals_of, small, through_json

N = 120
KERNEL = "SE[x] + CAT[c]"


def table(form, seed=0, n=N):
    """A smooth function and levels, with noise that varies; also its standard deviation (n,)."""
    rng = np.random.default_rng(seed)
    x, z, c = rng.uniform(0, 10, n), rng.uniform(size=n), rng.integers(0, 4, n)
    factor = {
        "constant": np.ones(n),
        "linear": 5.0 ** (z - 0.5),
        "smooth": 1 + 3 * np.exp(-0.5 * (x - 5) ** 2),
        "levels": np.array([1.0, 4.0, 1.0, 1.0])[c],
        "gap": np.where(z < 0.4, 3.0, 1.0),
    }[form]
    std = 0.2 * factor
    y = np.sin(x) + np.array([0.0, 1.0, -1.0, 0.5])[c] + std * rng.normal(size=n)
    X = pd.DataFrame({"x": x, "z": z, "c": pd.Categorical(np.array(list("abcd"))[c])})
    if form == "gap":
        X.loc[z < 0.4, "z"] = np.nan
    return X, y, std


def fitted(X, y, kernel=KERNEL, **settings):
    settings = {**PLAIN, "noise": "auto", "averaging": None, **settings}
    return AutoKernelGPRegressor(**settings).refit(X, y, kernel)


@cache
def fit_of(form):
    """The fit to a table, which no test may change."""
    return fitted(*table(form)[:2])


def said(model):
    """What is said of how the noise varies, a dict for each sentence."""
    claims = model.claims_
    rows = (dict(zip(claims, row, strict=True)) for row in zip(*claims.values(), strict=True))
    return [row for row in rows if row["evidence"].startswith("terms")]


def noise_of(model, X):
    """Standard deviations of the noise of each row."""
    _, with_noise = model.predict(X, return_std=True)
    _, of_function = model.predict(X, return_std="function")
    return np.sqrt(with_noise**2 - of_function**2)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("linear", "The noise grows with z: it is {} times as large where z is highest as where"),
        ("smooth", "The noise changes along x: it is {} times as large at {} as at"),
        ("levels", "The noise differs between levels of c: it is {} times as large for b as for"),
        ("gap", "The noise is {} times as large in rows that have no value of z as in those"),
    ],
)
def test_noise_that_varies_is_found_said_and_predicted(form, text):
    X, y, std = table(form)
    model = fit_of(form)
    (fact,) = said(model)
    ratio = std.max() / std.min()
    assert fact["low"] < ratio < 1.5 * fact["high"]  # the largest of a few is shrunk
    start, *rest = text.split("{}")
    assert fact["text"].startswith(start)
    assert all(one in fact["text"] for one in rest)
    assert fact["text"] in model.describe()
    found = noise_of(model, X)
    # a standard deviation of 30 rows has an error of 13 %; a bump is smoothed
    np.testing.assert_allclose(np.log(found / std), 0, atol=0.8)
    assert np.std(np.log(found / std)) < 0.7 * np.std(np.log(std))
    new, y_new, _ = table(form, seed=1, n=2000)
    constant = fitted(X, y, noise="constant")
    assert said(constant) == []
    gain = model.log_predictive_density(new, y_new) - constant.log_predictive_density(new, y_new)
    assert gain.mean() > 0.03  # nats a row


@pytest.mark.parametrize("degrees", [np.inf, 4])
@pytest.mark.parametrize(
    ("n_tables", "at_most"), [(2, 0), pytest.param(8, 1, marks=pytest.mark.slow)]
)
def test_neither_constant_noise_nor_heavy_tails_are_noise_that_varies(degrees, n_tables, at_most):
    n_found = 0
    for seed in range(n_tables):
        X, y, std = table("constant", seed=seed)
        rng = np.random.default_rng(seed)
        if np.isfinite(degrees):
            y += std * (rng.standard_t(degrees, size=N) - rng.normal(size=N))
        n_found += len(said(fitted(X, y)))
    assert n_found <= at_most  # with normal noise 2 %, which the prior of a term allows


def test_a_search_finds_it_and_a_column_of_noise_whose_gaps_are_noisier_does_not_matter():
    rng = np.random.default_rng(2)
    a, b, is_missing = rng.uniform(0, 10, 83), rng.normal(size=83), rng.random(83) < 0.6
    y = 0.5 * a + np.where(is_missing, 1.25, 0.5) * rng.normal(size=83)
    X = pd.DataFrame({"a": a, "b": np.where(is_missing, np.nan, b)})
    model = small(averaging="posterior", n_iter=4, noise="auto").fit(X, y)
    assert model.inclusion_probabilities_["depends"][1] < 0.5  # above .99 with constant noise
    assert "rows that have no value of b" in model.describe()


def test_a_column_without_base_kernels_has_no_noise_either_and_is_not_counted():
    """With two columns, a search of 320 rows begins on 250 of them."""
    X, y, _ = table("linear", n=320)
    settings = {"base_kernels": {"x": "auto", "*": ()}, "n_iter": 0, "noise": "auto"}
    model = small(**settings).fit(X, y)
    assert not np.any(model.search_history_["row_set"])
    assert list(model.columns_["used"]) == [True, False, False]
    assert np.ptp(noise_of(model, X.assign(x=5.0))) < 1e-9


def test_predictions_are_those_of_the_definition():
    X, model = table("linear")[0], fit_of("linear")
    new = table("linear", seed=3, n=5)[0]
    new.loc[:1, "z"] = -3.0, 9.0  # constant beyond the data
    (term,) = model._fitted.transformed.noise_function.terms
    low, high = term.knots[0], term.knots[-1]
    rank = np.interp(X["z"], term.knots, np.linspace(0, 1, len(term.knots)))
    of_new = np.interp(new["z"], term.knots, np.linspace(0, 1, len(term.knots)))
    assert (low, high) == (X["z"].min(), X["z"].max())
    factors = np.exp(2.4 * term.coefficients[0] * (of_new - rank.mean()))
    _, std = model.predict(new, return_std=True)
    _, of_function = model.predict(new, return_std="function")
    noise = model.noise_variance_ * factors
    np.testing.assert_allclose(std**2, of_function**2 + noise, rtol=1e-9)
    mean, covariance = model.predict(new, return_cov=True)
    np.testing.assert_allclose(np.diag(covariance), std**2, rtol=1e-9)
    draws = model.sample_y(new, 4000, random_state=0)
    # large deviations are rare, and widen draws beyond the moments; the error of a deviation is 1 %
    inner = np.quantile(draws, [0.25, 0.75], axis=1)
    expected = model.predict_quantiles(new, [0.25, 0.75]).T
    np.testing.assert_allclose(inner, expected, atol=0.06 * std.max())
    density = model.log_predictive_density(new, mean)
    shares, stds = normals_of(model, std, width=model.y_train_.std())
    by_hand = np.log(shares @ norm.pdf(0, scale=stds))
    np.testing.assert_allclose(density, by_hand, rtol=1e-9)


def with_new(form):
    """A fit, and three rows of which the second has a level or a gap that the fit has not."""
    new = table(form)[0].iloc[:3].astype({"c": object})
    new.loc[1, "c" if form == "levels" else "z"] = "new" if form == "levels" else np.nan
    return fit_of(form), new


@pytest.mark.filterwarnings("ignore:.* rows have levels of column")
@pytest.mark.parametrize("form", ["levels", "linear"])
def test_a_level_or_a_gap_that_is_new_mixes_over_those_of_the_fit(form):
    X, (model, new) = table(form)[0], with_new(form)
    (term,) = model._fitted.transformed.noise_function.terms
    column = X["c"].cat.codes if form == "levels" else X["z"]
    basis = term.basis(column.to_numpy(float))
    variances = np.einsum("ij,jk,ik->i", basis, term.covariance, basis)
    if form == "levels":  # Silverman's rule, with the levels as the sample
        of_levels = term.basis(term.knots) @ term.coefficients
        variances += np.var(of_levels) * (1.06 * len(of_levels) ** -0.2) ** 2
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    factors = np.exp(basis @ term.coefficients + nodes[:, None] * np.sqrt(variances))
    shares = np.outer(weights / weights.sum(), np.full(N, 1 / N))  # each row of the fit
    mean, std = (one[1] for one in model.predict(new, return_std=True))
    of_function = model.predict(new, return_std="function")[1][1]
    # the mean of an exponential by three nodes of a Gauss-Hermite rule is this near
    expected = model.noise_variance_ * np.sum(shares * factors)
    assert std**2 - of_function**2 == pytest.approx(expected, rel=0.1)
    y = mean + std * np.linspace(-5, 5, 41)
    stds = np.sqrt(of_function**2 + model.noise_variance_ * factors)
    of_law, stds = normals_of(model, stds, width=model.y_train_.std())
    of_cases = norm.pdf(y[:, None, None, None], mean, stds)
    density = np.sum(of_law * np.sum(shares * of_cases, axis=(2, 3)), axis=1)
    found = model.log_predictive_density(new.iloc[np.ones(41, dtype=int)], y)
    np.testing.assert_allclose(found, np.log(density), atol=0.1)  # nine cases for all values


@pytest.mark.filterwarnings("ignore:.* rows have levels of column")
@pytest.mark.parametrize("form", ["levels", "linear"])
def test_what_is_predicted_of_a_new_level_or_a_gap_agrees(form):
    model, new = with_new(form)
    ends = model.predict_quantiles(new, [0.05, 0.95])[1]
    y = np.linspace(*(ends @ [[6, -5], [-5, 6]]), 4001)
    density = np.exp(model.log_predictive_density(new.iloc[np.ones(4001, dtype=int)], y))
    below = np.cumsum(density) * (y[1] - y[0])
    assert below[-1] == pytest.approx(1, abs=5e-3)  # but for tails of three times the deviation
    np.testing.assert_allclose(np.interp(ends, y, below), [0.05, 0.95], atol=5e-3)
    draws = model.sample_y(new, 4000, random_state=0)
    quartiles = model.predict_quantiles(new, [0.25, 0.75])[1]
    outside = [np.mean(draws[1] < quartiles[0]), np.mean(draws[1] > quartiles[1])]
    np.testing.assert_allclose(outside, 0.25, atol=0.028)  # four standard errors
    known = [0, 2]  # which do not depend on the others
    of_known = model.predict_quantiles(new.iloc[known], [0.1, 0.9])
    np.testing.assert_allclose(model.predict_quantiles(new, [0.1, 0.9])[known], of_known, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.* rows have levels of column")
def test_new_levels_that_join_were_predicted_with_the_noise_that_they_may_have():
    X, y, _ = table("levels")
    model = fitted(X, y)
    new = X.iloc[:3].assign(c="new")
    expected = model.log_predictive_density(new, y[:3] + 1)
    model.update(new, y[:3] + 1)
    np.testing.assert_allclose(model.outcomes_["log_density"], expected, rtol=1e-8)


def test_a_step_is_no_noise_that_varies():
    """A smooth function that passes by a step has residuals of one sign on each side."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"x": rng.uniform(size=60)})
    y = 5.0 * (X["x"] > 0.6) + 0.1 * rng.normal(size=60)
    for kernel in ("SE[x]", "LIN[x]"):
        assert said(fitted(X, y, kernel)) == []


def test_it_is_found_around_simple_kernels_if_a_product_has_absorbed_it(rng):
    X = pd.DataFrame({"x": rng.uniform(0, 10, 70), "z": rng.uniform(size=70)})
    y = np.sin(X["x"]) + 0.05 * np.exp(4 * X["z"]) * rng.normal(size=70)
    follow = ["LIN[z] * LIN[z] * LIN[z] * SE[z] + SE[x]", "LIN[z] * LIN[z] * SE[x] * SE[z] + SE[x]"]
    settings = {"max_leaves": 6, "n_iter": 3, "averaging": None, "start_kernel": follow}
    model = small(noise="auto", **settings).fit(X, y)
    assert model.best_expression_ == "SE[x]"
    assert [one["predicate"] for one in said(model)] == ["grows with z"]


def test_copies_predict_the_same():
    X, model = table("levels")[0], fit_of("levels")
    expected = model.predict_quantiles(X, [0.1, 0.9])
    for copy in (through_json(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.predict_quantiles(X, [0.1, 0.9]), expected)
        assert said(copy) == said(model)


@pytest.mark.parametrize(
    "approximation", ["inducing", pytest.param("neighbours", marks=pytest.mark.slow)]
)
def test_many_rows_have_it_too(approximation):
    X, y, std = table("linear", n=600)
    model = fitted(X, y, approximation=approximation, n_inducing=40)
    assert len(said(model)) == 1
    # five of its standard errors at the ends
    np.testing.assert_allclose(noise_of(model, X), std, rtol=0.3)


def test_it_is_on_the_scale_of_the_target_that_has_it():
    X, y, _ = table("constant")
    assert said(fitted(X, np.exp(y), f"log(y) ~ {KERNEL}")) == []
    assert said(fitted(X, np.exp(y))) != []  # grows with the levels


def test_weights_that_go_with_a_column_are_no_noise_that_varies():
    X, _, _ = table("constant")
    weights = np.round(1 + 9 * X["z"])
    y = np.sin(X["x"]) + 0.6 * np.random.default_rng(1).normal(size=N) / np.sqrt(weights)
    model = small(averaging=None, noise="auto")
    assert said(model.refit(X, y, KERNEL, sample_weight=weights / weights.mean())) == []


@pytest.mark.parametrize(
    ("n_tables", "at_most"), [(4, 1), pytest.param(20, 3, marks=pytest.mark.slow)]
)
def test_random_gaps_are_no_noise_that_varies(n_tables, at_most):
    n_found = 0
    for seed in range(n_tables):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(100, 4))
        y = np.sin(6 * X[:, 0]) + 0.3 * rng.normal(size=100)
        X[:, 1:][rng.random((100, 3)) < 0.25] = np.nan
        n_found += len(said(fitted(X, y, "SE[0]"))) > 0
    assert n_found <= at_most  # each with about 5 %: more than 3 of 20 with 2 %, 1 of 4 with 1 %


@pytest.mark.parametrize(
    ("by", "n_iter"), [(16.0, None), pytest.param(8.0, 20, marks=pytest.mark.slow)]
)
def test_outliers_that_are_excluded_are_no_noise_that_varies(by, n_iter, rng):
    x, z = rng.uniform(0, 10, 100), rng.uniform(size=100)
    y = np.sin(x) + 0.2 * 8 ** (z - 0.5) * rng.normal(size=100)
    y[[3, 50]] += by, -by - 1
    X = pd.DataFrame({"x": x, "z": z})
    if n_iter is None:
        model = fitted(X, y, "SE[x]", outliers="auto")
    else:
        model = AutoKernelGPRegressor(n_iter=n_iter, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.outliers_, [3, 50])
    assert [one["predicate"] for one in said(model)] == ["grows with z"]


SMALL = {"base_kernels": ["MAT32"], "max_leaves": 1, "n_iter": 0}


@pytest.mark.parametrize(
    "settings", [SMALL, pytest.param({"n_iter": 3}, marks=pytest.mark.slow, id="default")]
)
def test_where_there_is_no_noise_it_does_not_vary(settings):
    z = np.random.default_rng(0).uniform(size=100)
    X = pd.DataFrame({"x": np.linspace(0, 10, 100), "z": z})
    model = AutoKernelGPRegressor(**settings, random_state=0)
    assert said(model.fit(X, np.abs(X["x"] - 3.3))) == []


@pytest.mark.parametrize(
    ("field", "value", "key"),
    [
        ("column", 99, "column must be the index of a column"),
        ("column", 2, "form must be levels of a category"),
        ("form", "foo", "form must be one of linear, smooth"),
        ("knots", [3.0, 2.0, 1.0], "knots must be none of a gap"),
        ("coefficients", [1.0, 2.0], "coefficients must be an array of the shape"),
        ("covariance", [1.0], "covariance must be an array of the shape"),
        ("centre", ["nan"], "centre must be numbers from"),
    ],
)
def test_terms_of_a_record_are_checked(field, value, key):
    record = json.loads(json.dumps(to_dict(fit_of("linear"))))
    record["model"]["varying"]["identity"]["terms"][0][field] = value
    with pytest.raises(ValueError, match=rf"record\.model\.varying\.identity\.terms\[0\]\.{key}"):
        from_dict(record)
