"""Scales of columns and of the target: exact identities with data that are transformed by hand."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import cumulative_trapezoid, quad
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.compose import TransformedTargetRegressor
from sklearn.gaussian_process import GaussianProcessRegressor

from autokernel import AutoKernelGPRegressor, evaluate_kernel
from autokernel.data import RowNoise, Target
from autokernel.data.scales import scales_of_column, scales_of_target
from autokernel.evidence import Evaluator
from autokernel.exceptions import ExpressionSyntaxError
from autokernel.export import from_dict, to_dict, to_latex
from autokernel.inference import ExactPredictor
from autokernel.kernels import PRESETS
from autokernel.many_rows.approximation import ByInducingPoints
from autokernel.many_rows.further import ManyRows
from autokernel.many_rows.left_out import left_out_density
from autokernel.model import MixtureComponent, MixturePredictor
from autokernel.model.errors import NORMAL, PRIOR_LAW, ErrorLaw
from tests.fits import PLAIN, normals_of, through_json

MAPS = {
    "log": (np.log, np.exp, lambda y: 1 / y),
    "sqrt": (np.sqrt, lambda t: np.maximum(t, 0) ** 2, lambda y: 0.5 / np.sqrt(y)),
    "logit": (logit, expit, lambda y: 1 / (y * (1 - y))),
}
N = 40


def drawn(target="log", column="log", n=N, seed=0):
    """Draw rows that are smooth on these scales of the target and of the first of two columns."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.exp(rng.uniform(0, 5, n)), rng.uniform(-1, 1, n)])
    x = {"log": np.log(X[:, 0]) / 5, "sqrt": np.sqrt(X[:, 0] / X[:, 0].max())}[column]
    t = np.sin(4 * x) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)
    return X, MAPS[target][1](t + (2.0 if target == "sqrt" else 0.0))


def small(**parameters):
    fixed = {"base_kernels": ["SE"], "n_iter": 0, **PLAIN}
    return AutoKernelGPRegressor(**{**fixed, **parameters})


def scale_of(name, seed=0):
    y = drawn(name, n=60, seed=seed)[1]
    return y, Target.of(y, RowNoise(np.ones(len(y)))).scales[name]


@pytest.fixture(scope="module", params=MAPS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def models(name):
    """Models of one kernel on a scale, and the same with several draws of its parameters."""
    X, y = drawn(name)
    kernel = f"{name}(y) ~ SE[0] + LIN[1]"
    point, mixture = (small(averaging=a).refit(X, y, kernel) for a in (None, "posterior"))
    return X, y, point, mixture


def test_moments_are_the_integrals(name):
    _, scale = scale_of(name)
    for mean, variance in ((0.3, 0.5), (-1.0, 0.02), (0.0, 0.99)):
        density = norm(mean, np.sqrt(variance)).pdf

        def integral(function, density=density, mean=mean):
            return quad(lambda t: function(t) * density(t), -9, 9, points=[mean], limit=500)[0]

        centre = integral(lambda t: float(scale.inverse(t)))
        spread = integral(lambda t, c=centre: (float(scale.inverse(t)) - c) ** 2)
        found = scale.moments(np.array([mean]), np.array([variance]))
        np.testing.assert_allclose(np.ravel(found), [centre, spread], rtol=1e-6, atol=1e-8)
    limited, wide = (scale.moments(np.zeros(1), np.array([one])) for one in (1.0, 7.0))
    np.testing.assert_array_equal(limited, wide)  # the variance of all targets, standardised


def test_covariances_are_those_of_many_draws(name, rng):
    _, scale = scale_of(name)
    mean, root = np.array([0.0, 0.5, -1.0]), 0.5 * rng.normal(size=(3, 3))
    covariance = root @ root.T + 0.1 * np.eye(3)
    draws = scale.inverse(rng.multivariate_normal(mean, covariance, 100_000))
    centred = draws - draws.mean(axis=0)
    products = centred[:, :, None] * centred[:, None]
    found = scale.covariance(mean, covariance)
    error = products.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(found - products.mean(axis=0)) < 5 * error)
    np.testing.assert_allclose(np.diag(found), scale.moments(mean, np.diag(covariance))[1], 1e-4)


def test_the_variance_of_the_function_is_that_of_means_over_the_noise(name):
    _, scale = scale_of(name)
    rng, n = np.random.default_rng(1), 1000
    function = 0.2 + np.sqrt(0.3) * rng.normal(size=(n, 1))
    means = scale.inverse(function + np.sqrt(0.2) * rng.normal(size=(n, n))).mean(axis=1)
    found = scale.variance_of_function(np.array([0.2]), np.array([0.5]), 0.2)[0]
    error = ((means - means.mean()) ** 2).std() / np.sqrt(n)
    assert abs(found - means.var()) < 5 * error + 0.2 / n


def test_the_evidence_is_that_of_the_transformed_target_with_the_jacobian(name):
    X, y = drawn(name)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    jacobian = np.log(MAPS[name][2](y))
    criterion = {"log": "laplace", "sqrt": "bic", "logit": "loo"}[name]
    own = evaluate_kernel(f"{name}(y) ~ SE[0] + LIN[1]", X, y, criterion=criterion)
    by_hand = evaluate_kernel("SE[0] + LIN[1]", X, MAPS[name][0](y), criterion=criterion)
    # both are at the same mode, which is found to 1e-4 nats
    assert own.score == pytest.approx(by_hand.score + jacobian.sum(), abs=1e-2)


def test_the_median_is_that_of_scikit_learn_on_the_transformed_target(models, name):
    X, y, model, _ = models
    function, inverse, _ = MAPS[name]
    alone = GaussianProcessRegressor(
        kernel=model.best_kernel_, optimizer=None, normalize_y=True, alpha=0
    )
    twin = TransformedTargetRegressor(alone, func=function, inverse_func=inverse).fit(X, y)
    new = X[:20] * 1.01
    np.testing.assert_allclose(
        model.predict_quantiles(new, [0.5])[:, 0], twin.predict(new), rtol=1e-6
    )


def test_a_scaled_column_is_transformed_in_the_exported_kernel():
    X, y = drawn()
    model = small(averaging=None).refit(X, y, "SE[log(0)] + LIN[1]")
    twin = GaussianProcessRegressor(model.best_kernel_, optimizer=None, normalize_y=True, alpha=0)
    new = X[:20] * 1.01
    expected = twin.fit(X, y).predict(new)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-6, atol=1e-8)
    assert "log(x0)" in repr(model.best_kernel_)
    assert r"\log \mathrm{x0}" in to_latex(model)
    units = dict(zip(model.parameters_["parameter"], model.parameters_["unit"], strict=True))
    assert units["lengthscale"] in ("log(x0)", "x1")


@pytest.mark.parametrize(
    ("kernel", "rounded", "grid"),
    [
        ("log(y) ~ LIN[0]", lambda t: np.maximum(np.round(np.exp(1.5 + t)), 1), np.arange(400)),
        ("sqrt(y) ~ LIN[0]", lambda t: np.round((2 + t / 2) ** 2), np.arange(40)),
        (
            "logit(y) ~ LIN[0]",
            lambda t: np.clip(np.round(expit(t), 1), 0.1, 0.9),
            np.arange(11) / 10,
        ),
        ("LIN[0]", lambda t: np.round(3 * t), np.arange(-60, 60)),
    ],
)
def test_a_rounded_target_has_the_density_of_the_interval_that_is_rounded_to_it(
    kernel, rounded, grid, rng
):
    x = rng.uniform(-1, 1, (80, 1))
    model = small(averaging=None).refit(
        x, rounded(1.2 * x[:, 0] + 0.5 * rng.normal(size=80)), kernel
    )
    new, step = np.full((len(grid), 1), -0.4), grid[1] - grid[0]
    assert model.resolution_ == pytest.approx(step)
    density = np.exp(model.log_predictive_density(new, grid))
    assert np.all(density[[0, -1]] > 0)  # zero and one, which the scale does not have
    assert step * density.sum() == pytest.approx(1, abs=1e-3)  # but for tails beyond the grid
    if kernel == "LIN[0]":
        mean, std = (one[0] for one in model.predict(new[:1], return_std=True))
        std = np.sqrt(std**2 - step**2 / 12)  # before it is rounded
        ends = np.append(grid - step / 2, grid[-1] + step / 2)
        shares, stds = normals_of(model, std, width=model.y_train_.std())
        below = shares @ norm.cdf(ends, mean, stds[:, None])
        near = np.abs(grid - mean) < 8 * std
        np.testing.assert_allclose((step * density)[near], np.diff(below)[near], rtol=1e-6)
    if kernel.startswith("log("):
        model.set_params(outliers="auto")
        with pytest.warns(UserWarning, match="is not defined"):
            model.update(new[:1], grid[:1])
        np.testing.assert_allclose(np.exp(model.outcomes_["log_density"]), density[:1])


def test_densities_integrate_to_one_and_agree_with_quantiles_and_moments(models, name):
    X, _, _, model = models
    new = X[:1]
    levels = np.linspace(1e-4, 1 - 1e-4, 4001)
    grid = model.predict_quantiles(new, levels)[0]
    density = np.exp(model.log_predictive_density(np.repeat(new, len(grid), axis=0), grid))
    below = levels[0] + cumulative_trapezoid(density, grid, initial=0.0)
    np.testing.assert_allclose(below, levels, atol=1e-3)
    mean, std = (float(part[0]) for part in model.predict(new, return_std=True))
    fitted, moments = model._fitted, []
    for law in (NORMAL, ErrorLaw(width=fitted.mixture.law.deviation)):  # without tails
        other = replace(fitted, mixture=fitted.mixture.with_law(law))
        grid = np.linspace(*other.quantiles(new, np.array([1e-7, 1 - 1e-7]))[0], 4001)
        plain = np.exp(other.log_density(np.repeat(new, len(grid), axis=0), grid))
        assert np.trapezoid(plain, grid) == pytest.approx(1, abs=1e-4)
        centre = np.trapezoid(grid * plain, grid)
        moments += [centre, np.sqrt(np.trapezoid((grid - centre) ** 2 * plain, grid))]
    assert (moments[0], moments[3]) == pytest.approx((mean, std), rel=1e-3)


def test_draws_have_the_moments_and_the_function_less_spread_than_observations(models):
    X, _, _, model = models
    new = X[:3]
    draws = model.sample_y(new, 4000, random_state=0)
    mean, covariance = model.predict(new, return_cov=True)
    std, of_function = (model.predict(new, return_std=which)[1] for which in (True, "function"))
    error = std / np.sqrt(4000)
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 5 * error)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-3)
    assert np.all((of_function > 0) & (of_function < std))


def test_left_out_rows_are_predicted_as_from_all_others(models, name):
    _, _, _, model = models
    mixture = model._fitted.mixture
    probability, error = mixture.leave_one_out()
    for row in (0, 17, 39):
        others = mixture.data.take(np.delete(np.arange(N), row))
        alone = MixturePredictor(mixture.components, others, mixture.make_predictor)
        X, y = mixture.data.X[[row]], mixture.data.y[[row]]
        assert error[row] == pytest.approx(float((y - alone.mean(X))[0]), abs=1e-6)
        # the probability of a smaller target is that of which the target is the quantile
        level = np.clip(probability[[row]], 1e-9, 1 - 1e-9)
        assert alone.quantiles(X, level)[0, 0] == pytest.approx(y[0], abs=1e-5)


def test_densities_of_held_out_rows_choose_predictors_in_the_units_of_the_target(models, name):
    _, _, model, _ = models
    evaluation, data = model._fitted.evaluation, model._fitted.mixture.data
    evaluator = Evaluator(data, priors=PRESETS["default"], seed=0)
    rows = ManyRows(ByInducingPoints(20), data, evaluator)
    point = [MixtureComponent(evaluation.expression, evaluation.theta, 1.0)]
    given, held_out = rows.given_and_held_out
    found = left_out_density(evaluation, given, held_out)
    law = replace(PRIOR_LAW, wild=0.0)
    mixture = MixturePredictor(point, given, ExactPredictor, law=law)
    expected = mixture.log_density(held_out.X, held_out.y).mean() + np.log(1 - PRIOR_LAW.wild)
    assert found == pytest.approx(expected, rel=1e-9)


def test_a_target_beyond_its_scale_is_impossible(models, name):
    X, _, model, _ = models
    beyond = {"logit": [-1.0, 1.5], "log": [-1.0, 0.0], "sqrt": [-1.0, -0.1]}[name]
    assert np.all(model.log_predictive_density(X[:2], beyond) == -np.inf)
    assert np.all(np.isfinite(model.predict(1e3 * X)))
    assert np.all(model.predict_interval(X, 0.999) >= 0)


def test_zero_has_a_probability_on_the_square_root_scale():
    _, scale = scale_of("sqrt")
    mean, variance = np.array([-2.5]), np.array([0.4])
    zero, top = -scale.origin, float(scale.inverse(mean + 8 * np.sqrt(variance))[0])

    def density(u):
        return float(np.exp(scale.log_density(np.array([u]), mean, variance))[0])

    above = quad(density, zero + 1e-12, top, points=[zero + 1e-6], limit=500)[0]
    assert density(zero) > 0.001
    assert density(zero) + above == pytest.approx(1, abs=1e-4)


def test_auto_finds_scales_and_their_probabilities():
    X, y = drawn(n=60)
    settings = {"column_scales": "auto", "target_scale": "auto", "max_leaves": 2}
    model = small(**settings, n_iter=1, averaging=None).fit(X, y)
    assert model.best_expression_.startswith("log(y) ~ ")
    assert "SE[log(0)]" in model.best_expression_
    columns = (list(column) for column in model.scales_.values())
    found = {(subject, scale): p for subject, scale, p in zip(*columns, strict=True)}
    assert found["target", "log"] > 0.9
    assert found["x0", "log"] > 0.8
    for subject in ("target", "x0", "x1"):
        assert sum(p for (of, _), p in found.items() if of == subject) == pytest.approx(1)


def test_a_column_may_have_the_name_of_the_target(rng):
    X = pd.DataFrame({"target": rng.uniform(size=20), "b": rng.uniform(size=20)})
    scales = AutoKernelGPRegressor(**PLAIN).refit(X, X["b"], "SE[target] + SE[b]").scales_
    assert scales["subject"].tolist() == ["target", "target", "b"]
    np.testing.assert_array_equal(scales["probability"], 1.0)


def test_scales_of_the_best_kernel_that_are_nearly_as_good_are_evaluated(rng):
    X = rng.uniform(1, 20, (60, 1))
    y = 5 + np.sin(X[:, 0] / 6) + 0.3 * rng.normal(size=60)
    model = small(column_scales="auto").fit(X, y)
    assert "SE[sqrt(0)]" in set(model.search_history_["kernel"])
    assert len(model.scales_["scale"]) > 2


def test_nothing_changes_for_data_that_have_no_other_scale():
    X, y = drawn()
    X, y = X - X.mean(axis=0), np.log(y)
    settings = {"n_iter": 1, "max_leaves": 2, "averaging": None}
    plain = small(**settings).fit(X, y)
    auto = small(column_scales="auto", target_scale="auto", **settings).fit(X, y)
    assert list(auto.search_history_["kernel"]) == list(plain.search_history_["kernel"])
    np.testing.assert_array_equal(auto.predict(X), plain.predict(X))
    assert set(auto.scales_["scale"]) == {"identity"}


@pytest.mark.parametrize("strategy", ["sot", "greedy", "skc", "tree_gep", "random"])
def test_strategies_of_every_family_search_on_other_scales(strategy):
    X = drawn(n=20)[0][:, :1]
    y = np.exp(np.sin(np.log(X[:, 0])) + 0.1 * np.cos(37 * X[:, 0]))
    settings = {"column_scales": "auto", "target_scale": "auto", "n_iter": 3, "max_leaves": 2}
    model = small(strategy=strategy, tol=0, averaging=None, **settings).fit(X, y)
    phases, kernels = (model.search_history_[name] for name in ("phase", "kernel"))
    assert any("log(" in text or "sqrt(" in text for text in kernels[phases == "search"])
    assert any("(y) ~ SE" in text for text in kernels)
    assert np.all(np.isfinite(model.predict(X)))


def test_memory_and_warm_starts_know_that_another_origin_is_another_logarithm(tmp_path):
    X, y = drawn()
    X = np.round(64 * X) / 64  # so that the scaled columns are equal to the last bit
    fits = {}
    for shift in (0.0, 64.0):
        model = small(column_scales="log", memory=tmp_path).fit(X[:, :1] + shift, y)
        fits[shift] = model.best_score_
        assert model.best_score_ == small(column_scales="log").fit(X[:, :1] + shift, y).best_score_
    assert abs(fits[0.0] - fits[64.0]) > 1


def test_start_kernels_may_have_scales():
    X, y = drawn()
    start = "log(y) ~ SE[1] + SE[log(0)]"
    settings = {"column_scales": {0: "auto"}, "target_scale": "auto", "averaging": None}
    model = small(start_kernel=start, max_leaves=2, **settings).fit(X, y)
    assert model.search_history_["kernel"][0] == start
    with pytest.raises(ValueError, match=r"start_kernel must .* scale of the target out of"):
        small(start_kernel="log(y) ~ SE[0]").fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"column_scales": {"age": "log"}}, "column_scales has 'log' for column 'age'.* row 3"),
        ({"target_scale": "logit"}, "target_scale has 'logit' for the target.* and below 1"),
        ({"column_scales": {"age": "logit"}}, r"column_scales\['age'\] must be one of"),
        ({"column_scales": {"aeg": "log"}}, "did you mean 'age'"),
        ({"target_scale": "ln"}, "target_scale"),
    ],
)
def test_a_scale_that_the_data_do_not_allow_is_refused(settings, message):
    pd = pytest.importorskip("pandas")
    X, y = drawn()
    X[3, 0] = -1.0
    with pytest.raises(ValueError, match=message):
        small(**settings).fit(pd.DataFrame(X, columns=["age", "size"]), y)


def test_a_kernel_by_hand_on_a_scale_that_the_data_do_not_allow_is_refused():
    X, y = drawn()
    X[3, 0] = -2.0
    with pytest.raises(
        ValueError, match="column 0, whose numbers must not be below 0, got -2 in row 3"
    ):
        evaluate_kernel("SE[log(0)]", X, y)
    with pytest.raises(ValueError, match="the target, whose numbers must be above 0"):
        evaluate_kernel("sqrt(y) ~ SE[1]", X, y - y.min())
    with pytest.raises(ExpressionSyntaxError, match="unknown scale 'lg'"):
        evaluate_kernel("SE[lg(0)]", X, y)


def with_zeros(n=60, n_zeros=3):
    """Data on the log scale whose smallest targets are zero, as below a limit of detection."""
    rng = np.random.default_rng(0)
    X = np.linspace(0, 3, n)[:, None]
    y = np.round(np.exp(2 * np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)), 2)
    y[np.argsort(y)[:n_zeros]] = 0.0
    return X, y


def test_a_target_with_few_zeros_is_on_the_scale_of_the_logarithm_of_a_sum():
    X, y = with_zeros()
    c = float(f"{y[y > 0].min() / 2:.0e}")
    by_hand = evaluate_kernel("SE[0]", X, np.log(y + c)).score - np.log(y + c).sum()
    assert evaluate_kernel("log(y) ~ SE[0]", X, y).score == pytest.approx(by_hand, abs=1e-6)
    frame, target = pd.DataFrame(X, columns=["depth"]), pd.Series(y, name="rain")
    model = small(target_scale="auto", max_leaves=1).fit(frame, target)
    assert model.best_expression_.startswith("log(y) ~ ")
    assert f"rain + {c:g} " in model.describe()
    found = model.decompose(frame)
    product = found.constant * np.prod([one.mean for one in found.components], axis=0)
    medians = model.predict_quantiles(frame, [0.5])[:, 0]
    is_above = medians > 0
    np.testing.assert_allclose(product[is_above] - c, medians[is_above], rtol=0.02, atol=0.02)
    assert f"median + {c:g}" in str(model.explain(frame[:1]))
    again = through_json(model)
    np.testing.assert_allclose(again.predict(frame), model.predict(frame), rtol=1e-9)


def test_a_target_with_many_zeros_has_no_logarithm():
    X, y = with_zeros(n_zeros=4)
    assert scales_of_target(y) == []
    with pytest.raises(ValueError, match=r"above 0, or zero in at most 5 % of the rows, got 0 in"):
        small(target_scale="log").fit(X, y)


def test_whether_zeros_are_few_depends_on_all_rows_that_are_given():
    X, y = with_zeros()
    y[np.argmax(y)] = 1e6  # an outlier, without which more than 5 % are zero
    model = small(target_scale="log", outliers="auto").fit(X, y)
    assert np.argmax(y) in model.outliers_
    four = with_zeros(n_zeros=4)[1]
    every = np.concatenate([np.arange(60), np.flatnonzero(four > 0)[:30]])
    model = small(target_scale="log").fit(X[every], four[every])  # 4 of 90
    assert model.best_expression_.startswith("log(y) ~ ")
    with pytest.raises(ValueError, match="zero in at most 5 %"):
        small(target_scale="log").fit(X, four)


def test_no_ratio_is_said_where_a_prediction_may_be_zero():
    X, y = with_zeros()
    model = small(target_scale="log", max_leaves=1).fit(X, y)
    assert "A / B" not in list(model.compare(X[:5], X[5:9])["quantity"])
    assert "A / B" in list(model.refit(X[y > 0], y[y > 0]).compare(X[:5], X[5:9])["quantity"])
    low = AutoKernelGPRegressor(**PLAIN).refit(X, y, "log(y) ~ LIN[0]")
    assert low.predict_quantiles([[-90.0], [90.0]], [0.001]).min() == 0.0


@pytest.mark.parametrize(("mean", "variance"), [(-1.9, 0.3), (0.0, 0.05), (1.5, 0.9)])
def test_no_draw_on_the_scale_of_a_sum_is_below_zero(mean, variance):
    _, y = with_zeros()
    target = Target.of(y, RowNoise(np.ones(len(y))), log_offset=0.05)
    scale, std = target.scales["log"], np.sqrt(variance)
    zero, mean_, variance_ = target.forward(np.zeros(1)), np.array([mean]), np.array([variance])
    assert scale.inverse(np.array([-50.0])) == pytest.approx(zero)
    mass = np.exp(scale.log_density(zero, mean_, variance_))[0]
    assert mass == pytest.approx(norm.cdf(scale.forward(zero)[0], mean, std))
    assert scale.log_density(zero - 1e-6, mean_, variance_) == -np.inf
    centre, spread = scale.moments(mean_, variance_)
    t = np.linspace(mean - 10 * std, mean + 10 * std, 200_001)
    draws, weights = scale.inverse(t), norm.pdf(t, mean, std) * (t[1] - t[0])
    assert centre[0] == pytest.approx(weights @ draws, abs=2e-3 * np.sqrt(spread[0]))
    assert spread[0] == pytest.approx(weights @ (draws - centre) ** 2, rel=5e-3)
    high = scale.inverse(np.array([mean + 9 * std]))[0]
    ends = np.concatenate([np.geomspace(1e-9, high - zero[0], 4001)]) + zero[0]
    density = np.exp(scale.log_density(ends, np.full(4001, mean), np.full(4001, variance)))
    assert mass + np.trapezoid(density, ends) == pytest.approx(1.0, abs=1e-4)


def test_numbers_beyond_a_scale_count_as_the_smallest_with_one_warning():
    X, y = drawn()
    model = small().refit(X, y, "SE[log(0)] + LIN[1]")
    new = np.tile(X[:1], (3, 1))
    new[:, 0] = 0.0, -5.0, X[:, 0].min()
    with pytest.warns(
        UserWarning, match=r"column 'x0' .* the log scale, which is undefined at 0 \(row 0\)"
    ) as w:
        predicted = model.predict(new)
    assert len(w) == 1
    np.testing.assert_allclose(predicted, predicted[2])


def test_scales_are_offered_where_they_can_matter(rng):
    wide, narrow = np.geomspace(1, 100, 30), np.linspace(2, 5, 30)
    assert scales_of_column(wide) == ["log", "sqrt"]
    assert scales_of_column(narrow) == scales_of_column(wide - 1.1) == []
    assert scales_of_column(np.linspace(1, 3.1, 30)) == ["log", "sqrt"]
    assert scales_of_column(wide - 1) == scales_of_column(np.arange(5.0)) == ["log", "sqrt"]
    assert scales_of_column(np.repeat([1.0, 100.0], 15)) == []
    assert scales_of_target(wide) == ["log", "sqrt"]
    assert scales_of_target(420 + 70 * rng.uniform(size=30)) == scales_of_target(-wide) == []
    assert scales_of_target(wide / 101) == ["log", "sqrt", "logit"]
    for decades in (8.5, 12, 20, 40):
        assert scales_of_target(10 ** (decades * rng.uniform(-0.5, 0.5, 40))) == ["log", "sqrt"]
    for far in (1e-16 * rng.uniform(size=4), np.full(2, 1e-30), np.array([1e25])):
        # zeros that are rounded, and a number that stands for a missing one
        assert scales_of_target(np.append(rng.uniform(1, 9, 30), far)) == []


@pytest.mark.parametrize("decades", [9.5, 14, 30])
def test_targets_over_many_decades_keep_all_digits_on_their_scale(decades):
    rng = np.random.default_rng(int(decades))
    x = np.linspace(0, 1, 30)[:, None]
    log_y = decades * (x[:, 0] - 0.5) + 0.05 * rng.normal(size=30)
    for name in ("auto", "log"):
        model = small(target_scale=name, base_kernels=["LIN"]).refit(
            x, 10**log_y, "log(y) ~ LIN[0]"
        )
        low, median = np.log10(model.predict_quantiles(x, [0.05, 0.5])).T
        assert np.sqrt(np.mean((median - log_y) ** 2)) < 0.08
        assert np.all(median - low < 0.3)
    density = model.log_predictive_density(x, 10**log_y) + np.log(np.log(10)) + log_y * np.log(10)
    assert np.mean(density) > 0.5  # of the logarithm, whose deviation is a twentieth
    as_it_is = small(target_scale=None).refit(x, 10**log_y, "NOISE")
    np.testing.assert_allclose(as_it_is.predict(x[:2]), np.mean(10**log_y), rtol=1e-9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(x), model.predict(x))
    np.testing.assert_array_equal(from_dict(to_dict(model)).predict(x), model.predict(x))


@pytest.mark.parametrize("limit", [1e-20, 3e-10])
def test_a_reading_at_the_limit_of_detection_leaves_the_log_scale(limit):
    rng = np.random.default_rng(5)
    x = np.sort(rng.uniform(0, 10, 50))[:, None]
    y = np.exp(0.3 * x[:, 0] + 0.1 * rng.normal(size=50))
    y[[9, 31]] = limit, 2 * limit
    model = small(outliers="auto", target_scale="auto", base_kernels=["LIN"]).fit(x, y)
    np.testing.assert_array_equal(model.outliers_, [9, 31])
    assert "log" in model._fitted.kernels[0].evaluation.expression.target


def test_a_mean_far_from_the_data_is_near_its_median():
    x = np.linspace(0, 1, 40)[:, None]
    y = np.exp(6 * np.sin(3 * x[:, 0]) + 0.3 * np.random.default_rng(0).normal(size=40))
    model = small(averaging=None).refit(x, y, "log(y) ~ LIN[0] * LIN[0] * SE[0]")
    w = np.log(y).std()
    near, far = np.array([[0.5]]), np.array([[2.0], [5.0]])
    largest = np.exp(w**2 / 2)
    for rows, factor in ((near, 1.2), (far, largest)):
        mean, std = model.predict(rows, return_std=True)
        median = model.predict_quantiles(rows, [0.5])[:, 0]
        assert np.all((mean / median > 1) & (mean / median < factor * (1 + 1e-9)))
        # of a lognormal distribution with the limited variance
        np.testing.assert_allclose(std / mean, np.sqrt((mean / median) ** 2 - 1), rtol=1e-6)
        _, covariance = model.predict(rows, return_cov=True)
        np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-6)
        _, of_function = model.predict(rows, return_std="function")
        assert np.all((of_function > 0) & (of_function < std))
    assert np.all(model.predict_interval(far)[:, 1] > np.exp(2 * w) * median)  # of the full width


def doses(seed=0):
    """A response that falls along the log of a dose, with controls of dose zero."""
    rng = np.random.default_rng(seed)
    dose = np.repeat([0.0, 0.04, 0.2, 1.0, 5.0, 25.0, 125.0], 6)
    return pd.DataFrame({"Dose": dose}), 5 / (1 + dose) + 0.1 * rng.normal(size=len(dose))


def test_doses_with_a_zero_have_a_logarithm():
    X, y = doses()
    model = small(column_scales="auto", start_kernel="SE[log(Dose)]").fit(X, y)
    assert model.best_expression_ == "SE[log(Dose + 0.02)]"  # half of the smallest, to one digit
    assert "SE[log(Dose + 0.02)]" in list(model.search_history_["kernel"])
    assert {"log(Dose + 0.02)"} <= set(model.parameters_["unit"])
    assert r"\log \left(\mathrm{Dose} + 0.02\right)" in to_latex(model)
    # predictions are those of the same kernel on a column that the user has transformed
    by_hand = pd.DataFrame({"Dose": np.log(X["Dose"] + 0.02)})
    plain = small(averaging=None).refit(by_hand, y, "SE[Dose]")
    own = small(averaging=None).refit(X, y, "SE[log(Dose + 0.02)]")
    assert own.best_score_ == pytest.approx(plain.best_score_, abs=1e-6)
    new = pd.DataFrame({"Dose": [0.0, 0.01, 2.0, 20.0]})
    expected = plain.predict(np.log(new + 0.02), return_std=True)
    np.testing.assert_allclose(own.predict(new, return_std=True), expected, rtol=1e-6)
    gp = GaussianProcessRegressor(own.best_kernel_, optimizer=None, normalize_y=True, alpha=0)
    np.testing.assert_allclose(gp.fit(X, y).predict(new), own.predict(new), rtol=1e-6)
    copy = through_json(own)
    np.testing.assert_array_equal(copy.predict(new), own.predict(new))
    assert copy.best_expression_ == own.best_expression_
    with pytest.warns(UserWarning, match=r"the log scale, which is undefined at -1 \(row 0\)"):
        own.predict(pd.DataFrame({"Dose": [-1.0]}))


def test_another_number_in_a_logarithm_than_that_of_the_data_warns():
    X, y = doses()
    with pytest.warns(UserWarning, match=r"Dose \+ 5\)\]' is taken for SE\[log\(Dose \+ 0\.02\)\]"):
        model = small().refit(X, y, "SE[log(Dose + 5)]")
    assert model.best_expression_ == "SE[log(Dose + 0.02)]"
    named = X.rename(columns={"Dose": "a + 5"})
    assert small().refit(named, y, "SE[a + 5]").best_expression_ == "SE[a + 5]"
    model = small().refit(named, y, "SE[log(a + 5)]")
    assert model.best_expression_ == "SE[log(a + 5 + 0.02)]"
    assert small().refit(named, y, model.best_expression_).best_score_ == model.best_score_
    # the name of one column may be what is written of another
    both = named.assign(a=X["Dose"] * 250)
    model = small().refit(both, y, "SE[log(1)]")
    assert model.best_expression_ == "SE[log(1 + 5)]"
    assert small().refit(both, y, model.best_expression_).best_score_ == model.best_score_
