"""The fitted function as a sum of components."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from autokernel.expression import n_kernel_params, parse_expression
from tests.explain.models import refitted, sum_of, with_kernel
from tests.fits import small, wave


def table(n=60):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(n, 2))
    y = 50 + 3 * X[:, 0] + 5 * np.sin(2 * np.pi * X[:, 0] / 2) * X[:, 1] + rng.normal(size=n)
    return X, y


@cache
def fit_of_seasons():
    return refitted("LIN[0] + PER2[0] * LIN[1]", *table(80), periods={0: 2.0})


def test_shares_add_up_to_one_and_the_largest_comes_first():
    model = fit_of_seasons()
    found = model.decompose()
    assert found.noise_std == pytest.approx(np.sqrt(model.noise_variance_))
    *shares, rest = [one.share for one in found.components]
    assert sum(shares) + rest == pytest.approx(1.0)
    assert shares == sorted(shares, reverse=True)
    assert rest == pytest.approx(0, abs=1e-9)  # the kernel multiplies no more than two columns
    # the wave has an amplitude of 5 times the second column, whose mean is 5 and variance 8.3
    by_name = {one.expression: one.share for one in found.components}
    total = 75 + 12.5 * 25 + 12.5 * 8.3
    assert by_name["LIN[0]"] == pytest.approx(75 / total, abs=0.1)
    assert by_name["PER2[0]"] == pytest.approx(12.5 * 25 / total, abs=0.1)
    assert by_name["x0 * x1"] == pytest.approx(12.5 * 8.3 / total, abs=0.1)


def test_effects_are_those_that_made_the_data():
    X, _ = table(80)
    by_name = {one.expression: one for one in fit_of_seasons().decompose().components}
    wave = 5 * np.sin(2 * np.pi * X[:, 0] / 2)
    average = np.mean(wave * X[:, 1])
    truth = {"LIN[0]": 3 * (X[:, 0] - X[:, 0].mean()), "PER2[0]": wave * X[:, 1].mean() - average}
    for name, effect in truth.items():
        away = by_name[name].mean - effect
        assert np.sqrt(np.mean(away**2)) < 0.7
        assert np.mean(np.abs(away) < 3 * by_name[name].std) > 0.95
    interaction = wave * (X[:, 1] - X[:, 1].mean())
    assert np.corrcoef(by_name["x0 * x1"].mean, interaction)[0, 1] > 0.99


def of_draws(text, X, y):
    """Return a model with four draws of its parameters, three equal, and models at each of them."""
    expression = parse_expression(text)
    n = n_kernel_params(expression)
    thetas = np.log([np.resize([0.5, 2.0], n), np.resize([0.8, 1.0, 0.3], n)])
    model, *two = (with_kernel(X, y, expression, one) for one in (thetas[0], *thetas))
    at_draws = [two[0], two[1], two[1], two[1]]
    draws = [one._fitted.evaluation.theta for one in at_draws]
    (kernel,) = model._fitted.kernels
    kernels = (replace(kernel, draws=np.array(draws)),)
    model._fitted = replace(model._fitted, kernels=kernels)
    return model, at_draws


def std_of_draws(contrasts, X, stated, at_draws):
    """Compute the deviations of linear combinations of predictions from means that are stated."""
    squares = []
    for one in at_draws:
        mean, covariance = one.predict(X, return_cov=True)
        covariance -= one._fitted.noise_variance * np.eye(len(X))
        away = contrasts @ mean - stated
        squares.append(np.einsum("ij,jk,ik->i", contrasts, covariance, contrasts) + away**2)
    return np.sqrt(np.mean(squares, axis=0))


def test_the_deviation_of_an_effect_is_that_of_draws_from_the_stated_mean():
    X, y = table()
    X = X[:, :1]
    model, at_draws = of_draws("SE[0]", X, y)
    (only,) = model.decompose().components
    contrasts = np.eye(len(X)) - 1 / len(X)
    expected = std_of_draws(contrasts, X, contrasts @ model.predict(X), at_draws)
    np.testing.assert_allclose(only.std, expected, rtol=1e-6)
    within = std_of_draws(contrasts, X, contrasts @ model.predict(X), at_draws[:1])
    assert np.all(np.abs(only.std / within - 1) > 1e-3)


def test_interactions_and_predictions_have_deviations_too():
    X, y = table(20)
    model, at_draws = of_draws("SE[0] * SE[1]", X, y)
    by_name = {one.name: one for one in model.decompose().components}
    grid = np.array([(first, second) for first in X[:, 0] for second in X[:, 1]])
    rows, average = np.eye(20), np.eye(20) / 20  # at the points of the grid that are rows
    effects = {
        "x0": np.einsum("ri,j->rij", rows, np.full(20, 1 / 20)) - average,
        "x1": np.einsum("rj,i->rij", rows, np.full(20, 1 / 20)) - average,
    }
    both = np.einsum("ri,rj->rij", rows, rows)
    effects["x0 * x1"] = both - average - effects["x0"] - effects["x1"]
    for name, contrasts in effects.items():
        contrasts, found = contrasts.reshape(20, 400), by_name[name]
        np.testing.assert_allclose(found.mean, contrasts @ model.predict(grid), atol=1e-8)
        expected = std_of_draws(contrasts, grid, found.mean, at_draws)
        np.testing.assert_allclose(found.std, expected, rtol=1e-5)
    row = X[[3]] + 0.5
    table_of_row = model.explain(row)
    low, value, high = (table_of_row[name][-1] for name in ("low", "contribution", "high"))
    (std,) = std_of_draws(np.eye(1), row, model.predict(row), at_draws)
    assert value == pytest.approx(model.predict(row)[0])
    assert (high - value, value - low) == pytest.approx((norm.ppf(0.95) * std,) * 2)


def test_between_many_values_deviations_are_interpolated():
    x = np.linspace(0, 10, 300)
    y = np.sin(x) + 0.1 * np.random.default_rng(0).normal(size=300)
    model, at_draws = of_draws("SE[0]", x[::5, None], y[::5])
    (only,) = model.decompose(x[:, None]).components
    rows = np.concatenate([x, x[::5]])[:, None]
    contrasts = np.hstack([np.eye(300), np.full((300, 60), -1 / 60)])
    expected = std_of_draws(contrasts, rows, only.mean, at_draws)
    # linear between 128 places, two for each training row
    np.testing.assert_allclose(only.std, expected, rtol=0.05)


def test_approximate_fits_have_components_too():
    X, y = table(80)
    model = refitted("LIN[0] + LIN[0] * LIN[1]", X, y, approximation="inducing", n_inducing=60)
    found, exact = model.decompose(), refitted("LIN[0] + LIN[0] * LIN[1]", X, y).decompose()
    np.testing.assert_allclose(sum_of(found), model.predict(X), atol=1e-8 * y.std())
    for one, other in zip(found.components, exact.components, strict=True):
        assert one.expression == other.expression
        assert one.share == pytest.approx(other.share, abs=0.05)
        np.testing.assert_allclose(one.std.mean(), other.std.mean(), rtol=0.5)


def test_with_averaging_the_last_component_completes_the_prediction():
    X, y = wave(40)
    X_new = np.random.default_rng(1).uniform(X.min() - 1, X.max() + 1, size=(30, 1))
    model = small(averaging="posterior", n_iter=0).fit(X, y)
    found = model.decompose(X_new)
    np.testing.assert_allclose(sum_of(found), model.predict(X_new), atol=1e-8 * y.std())
    *of_best, added = found.components
    assert added.expression == ""
    assert np.all(added.std >= 0)
    assert sum(one.share for one in found.components) == pytest.approx(1.0)
    only_best = refitted(model.best_expression_, X, y)
    best = found.constant + sum(one.mean for one in of_best)
    assert np.abs(best - only_best.predict(X_new)).max() < 0.05


@pytest.mark.parametrize("n", [6, 40])
def test_averaging_is_mentioned_if_it_changes_the_predictions(n):
    X, y = wave(n)
    model = refitted("SE[0] + LIN[0]", X, y, averaging="posterior")
    added = model.decompose().components[-1]
    assert added.expression == ""
    is_large = added.mean.std() > 0.1 * y.std()
    assert ("average over other kernels" in model.describe()) == is_large


@pytest.mark.parametrize(
    ("text", "own", "expected"),
    [
        ("SE[0] + SE[0] + LIN[0]", [0.5, 1.0, 0.5, 2.0, 1.0, 1.0], ["LIN[0] + SE[0]"]),
        ("LIN[0] + SE[1]", [1.0, 1.0, 0.3, 1.0], ["LIN[0]", "SE[1]"]),
        ("SE[0] + SE[0] * SE[1]", [0.5, 1.0] * 3, ["SE[0]", "SE[1]", "x0 * x1", ""]),
        # two seasons of one period, and another
        (
            "PER[0] + LIN[0] * PER[0] + PER[0]",
            [0.5, 1.0, 0.2, 1.0, 1.0, 0.5, 1.0, 0.2001, 0.5, 1.0, 0.07],
            ["LIN[0] * PER[0] + PER[0]", "PER[0]"],
        ),
    ],
)
def test_what_a_reader_takes_for_one_thing_is_one_component(text, own, expected):
    X, y = table()
    model = with_kernel(X, y, parse_expression(text), np.log(own))
    found = model.decompose()
    assert sorted(one.expression for one in found.components) == sorted(expected)
    np.testing.assert_allclose(sum_of(found), model.predict(X), atol=1e-8 * y.std())


def test_effects_that_work_against_each_other_are_said_to_do_so(rng):
    """Two columns that are nearly the same: one kernel takes back what another one gives."""
    x = rng.uniform(size=60)
    X = np.column_stack([x, x + 0.01 * rng.normal(size=60)])
    kernel = parse_expression("LIN[0] + LIN[1]")
    y = X[:, 0] + 30 * (X[:, 0] - X[:, 1])
    model = with_kernel(X, y, kernel, np.log([9.0] * 4), noise=1e-4)
    first, second = model.decompose().components
    assert first.share > 0 > second.share
    assert first.share + second.share == pytest.approx(1)
    text = model.describe()
    assert "in part offset by other effects: " in text
    assert "which other effects offset: " in text
    assert not re.search(r"-\S+ %", text)


@pytest.mark.parametrize(
    ("scale", "kernel", "averaging"),
    [
        ("log", "LIN[0] + SE[1]", None),
        ("log", "SE[log(0)] * SE[1]", "posterior"),
        ("log", "NOISE", None),
        ("sqrt", "LIN[0] + SE[1]", "posterior"),
        ("sqrt", "SE[log(0)] * SE[1]", None),
        ("logit", "LIN[0] + SE[1]", None),
        ("logit", "NOISE", "posterior"),
    ],
)
def test_on_another_scale_components_make_up_the_median(scale, kernel, averaging, rng):
    X = rng.uniform(0.1, 10, size=(40, 2))
    y = np.exp(0.2 * X[:, 0] + 0.3 * np.sin(X[:, 1]) + 0.1 * rng.normal(size=40))
    y = y / (1 + y) if scale == "logit" else y
    X_new = np.random.default_rng(1).uniform(0.1, 12, size=(30, 2))
    settings = {"averaging": averaging, "noise": "constant"}  # rows count alike
    model = refitted(f"{scale}(y) ~ {kernel}", X, y, **settings)
    found = model.decompose(X_new)
    assert found.scale == scale
    assert f"on the {scale} scale" in repr(found)
    means, median = [one.mean for one in found.components], model.predict_quantiles(X_new, [0.5])
    if scale == "log":
        whole = found.constant * np.prod(means, axis=0)
    else:
        whole = {"sqrt": np.square, "logit": expit}[scale](sum_of(found))
    np.testing.assert_allclose(np.broadcast_to(whole, 30), median[:, 0], rtol=1e-8)
    assert found.noise_std == pytest.approx(np.sqrt(model.noise_variance_))
    # the average of the fit on the scale is nearly that of the target
    known = {"log": np.log, "sqrt": np.sqrt, "logit": logit}[scale](y)
    constant = np.log(found.constant) if scale == "log" else found.constant
    assert constant == pytest.approx(known.mean(), abs=0.01 * known.std())


@pytest.mark.parametrize(("power", "spread"), [(1, 0.5), (4, 1.2)])
def test_kernels_on_several_scales_are_averaged_in_the_units_of_the_target(power, spread, rng):
    X = rng.uniform(0.1, 10, size=(40, 1))
    level = 5 + 0.6 * X[:, 0]
    y = (level + spread * np.sqrt(level) / 2 * rng.normal(size=40)) ** power
    settings = {"target_scale": "auto", "averaging": "posterior", "max_leaves": 2, "n_iter": 2}
    model = small(**settings).fit(X, y)
    table = pd.DataFrame(model.scales_)
    table = table[table["subject"] == "target"]
    scales = dict(zip(table["scale"], table["probability"], strict=True))
    assert len({one.expression.target for one in model._fitted.mixture.components}) > 1
    found, median = model.decompose(), model.predict_quantiles(X, [0.5])[:, 0]
    whole = {
        "identity": sum_of,
        "log": lambda found: found.constant * np.prod([c.mean for c in found.components], axis=0),
        "sqrt": lambda found: sum_of(found) ** 2,
    }[found.scale](found)
    expected = model.predict(X) if found.scale == "identity" else median
    np.testing.assert_allclose(whole, expected, rtol=1e-8)
    (claim,) = (
        row for row in pd.DataFrame(model.claims_).itertuples() if "effects" in row.predicate
    )
    assert claim.probability == pytest.approx(scales[found.scale])
    assert claim.text in model.describe()
