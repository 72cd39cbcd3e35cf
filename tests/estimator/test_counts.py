"""Counts and shares through the estimator: which noise they have, predictions, words and files."""

import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict

from autokernel import AutoKernelGPRegressor, evaluate_kernel
from autokernel.cli import main
from autokernel.data.checks import check_inputs
from autokernel.export import from_dict, to_dict, write_report

N = 60
LEVELS = np.arange(200)


def table(seed=0):
    """Ages, sites, years of exposure and numbers of trials, and the log of a rate."""
    rng = np.random.default_rng([seed, 76])
    X = pd.DataFrame(
        {
            "age": rng.uniform(20, 70, N),
            "site": rng.choice(["north", "south"], N),
            "years": rng.uniform(1, 20, N).round(1),
            "trials": rng.integers(5, 40, N),
        }
    )
    return X, -0.5 + 0.05 * (X.age - 45) + 0.8 * (X.site == "south"), rng


def model_of(**parameters):
    plain = {"base_kernels": ["LIN"], "column_scales": None, "n_iter": 0, "random_state": 0}
    return AutoKernelGPRegressor(**plain | parameters)


@pytest.fixture(scope="module")
def events():
    """Visits of some years, Poisson."""
    X, f, rng = table()
    X, y = X.drop(columns="trials"), pd.Series(rng.poisson(np.exp(f) * X.years), name="visits")
    return model_of(exposure="years").fit(X, y), X, y, np.exp(f) * X.years


@pytest.fixture(scope="module")
def clumps():
    """Counts with more dispersion than Poisson's, without an exposure."""
    X, f, rng = table(1)
    X = X.drop(columns=["years", "trials"])
    y = rng.poisson(3 * np.exp(f) * rng.gamma(1.5, 1 / 1.5, N))
    return model_of().fit(X, y), X, y


@pytest.fixture(scope="module")
def shares():
    X, f, rng = table(2)
    X, p = X.drop(columns="years"), expit(f)
    y = pd.Series(rng.binomial(X.trials, p), name="cured")
    return model_of(n_trials="trials").fit(X, y), X, y, p


def test_evidence_chooses_the_noise(events, clumps, shares):
    assert events[0].best_expression_.startswith("poisson(y) ~")
    assert clumps[0].best_expression_.startswith("negative_binomial(y) ~")
    assert shares[0].best_expression_.startswith("binomial(y) ~")


def test_numbers_that_are_no_small_counts_have_normal_noise():
    X, f, rng = table(3)
    X = X[["age"]]
    for y in (f + rng.normal(size=N), 100 + rng.poisson(30, N), rng.poisson(5, N) / 2 - 1):
        model = model_of().fit(X, y)
        assert not {"poisson", "negative_binomial"} & {*model.scales_["scale"]}
        assert all("poisson" not in name for name in model.search_history_["kernel"])


def test_rates_are_those_of_the_simulation(events, shares):
    model, X, _, mean = events
    # 60 rows with 9 events each, so that rates are known to a few percent
    assert np.median(np.abs(np.log(model.predict(X) / mean))) < 0.1
    twice = X.assign(years=2 * X.years)
    np.testing.assert_allclose(model.predict(twice), 2 * model.predict(X), rtol=1e-6)
    model, X, _, p = shares
    assert np.median(np.abs(model.predict(X) / X.trials - p)) < 0.05
    assert (model.predict(X) < X.trials).all()


def test_new_counts_are_whole_numbers_with_probabilities(events, clumps, shares):
    for model, X, y, *_ in (events, clumps, shares):
        low, middle, high = model.predict_quantiles(X, [0.05, 0.5, 0.95]).T
        every = np.concatenate([low, middle, high, model.sample_y(X, 3, random_state=0).ravel()])
        np.testing.assert_array_equal(every, np.rint(every))
        assert every.min() >= 0
        held = np.mean((low <= y) & (y <= high))
        assert held > 0.9 - 3 * np.sqrt(0.09 / N)  # whole numbers hold more than 90 %
        row = X.iloc[:1]
        p = np.exp(model.log_predictive_density(row.loc[row.index.repeat(len(LEVELS))], LEVELS))
        assert p.sum() == pytest.approx(1, abs=1e-3)  # three in ten thousand may be anywhere
        at = np.searchsorted(p.cumsum(), 0.5)
        assert model.predict_quantiles(row, [0.5])[0, 0] == at


def test_quantiles_of_rare_and_of_very_many_events_are_the_smallest_counts(events, shares):
    model, X, *_ = shares
    assert (model.predict_quantiles(X, [0.999])[:, 0] <= X.trials).all()
    model, X, *_ = events
    X = X.iloc[:10].assign(years=np.geomspace(1e-3, 1e12, 10))
    inputs = check_inputs(model, X, model.explanation().model.columns)
    levels = (1e-40, 1e-4, 0.05, 0.5, 0.95, 1 - 1e-4)
    for level, k in zip(levels, model.predict_quantiles(X, levels).T, strict=True):
        np.testing.assert_array_equal(k, np.rint(k))
        assert (model._fitted.below(inputs, k) >= level).all()
        less = np.where(k < 1e5, k - 1, k * (1 - 1e-5))  # those of many are not exact
        assert (model._fitted.below(inputs, less) < level).all()
    far = X.assign(age=[-1e6, 1e6] * 5)  # warnings are errors
    for found in (*model.predict(far, return_std=True), model.predict_quantiles(far, levels)):
        assert np.isfinite(found).all()


def test_observations_are_whole_where_normal_noise_has_a_share():
    X = np.linspace(0, 1, N)[:, None]
    y = np.random.default_rng(2).poisson(16 * np.exp(X[:, 0]))
    model = model_of().fit(X, y)
    targets = {one.expression.target for one in model._fitted.mixture.components}
    assert {"poisson"} < targets - {"negative_binomial"}
    for found in (model.sample_y(X, 40, random_state=0), model.predict_quantiles(X, [0.05, 0.9])):
        np.testing.assert_array_equal(found, np.rint(found))


def test_probabilities_of_held_out_counts_are_uniform(events):
    X, f, rng = table(5)
    rare = model_of(noise="poisson").fit(X[["age"]], rng.poisson(np.exp(f - 1)))
    for model in (events[0], rare):
        p = np.sort(model.left_out_["probability"])
        distance = np.abs(p - (np.arange(len(p)) + 0.5) / len(p)).max()
        assert distance < 1.63 / np.sqrt(len(p))  # Kolmogorov's at a level of 1 %


def test_words_are_of_counts(events, clumps, shares):
    text = events[0].describe()
    assert "The effects multiply" in text
    assert "The noise is that of Poisson counts." in text
    assert f"{events[2].sum() / events[1].years.sum():.3g} per unit of years" in text
    assert re.search(r"visits rises (exponentially, )?by a factor of", text.replace("\n", " "))
    assert "years is constant" not in text
    assert "times the variance of Poisson counts" in clumps[0].describe()
    text = shares[0].describe()
    assert "On average, cured / trials is" in text
    assert "The noise is that of independent trials." in text
    table = events[0].explain(events[1].iloc[:1])
    rate = events[0].predict(events[1].iloc[:1].assign(years=1.0))
    assert table["effect"][-1] == "rate"
    assert table["contribution"][-1] == pytest.approx(rate[0], rel=1e-6)


def test_comparisons_of_counts_have_new_counts(events):
    model, X, *_ = events
    found = model.compare(X.iloc[:1], X.iloc[1:2])
    new = np.array([found["new_low"][:2], found["new_high"][:2]])
    np.testing.assert_array_equal(new, np.rint(new))
    assert new.min() >= 0


def test_slopes_along_an_exposure_are_those_of_predictions(events):
    model, X, *_ = events
    steeper = model.predict(X.assign(years=X.years + 1)) - model.predict(X)
    assert model.slopes("years", X)["estimate"][0] == pytest.approx(steeper.mean(), rel=1e-5)


def test_calibration_of_new_counts_is_random_within_their_probability(events):
    pytest.importorskip("matplotlib")
    from autokernel.displays import CalibrationDisplay

    model, X, *_ = events
    y = model.sample_y(X, 1, random_state=3)[:, 0]
    pit = np.sort(CalibrationDisplay.from_estimator(model, X, y).pit)
    assert np.abs(pit - (np.arange(N) + 0.5) / N).max() < 1.63 / np.sqrt(N)


def test_nearly_all_successes():
    X, trials = np.linspace(0, 1, 40)[:, None], np.arange(40) % 4 + 1
    y = np.append(0, trials[1:])
    X = np.column_stack([X, trials])
    model = model_of(noise="beta_binomial", n_trials=1).fit(X, y)
    np.testing.assert_array_equal(model.predict_quantiles(X[:4], [0.5])[:, 0], trials[:4])


def test_files_and_pickles_predict_the_same(events, shares):
    for model, X, *_ in (events, shares):
        for other in (
            pickle.loads(pickle.dumps(model)),
            from_dict(json.loads(json.dumps(to_dict(model)))),
        ):
            np.testing.assert_allclose(other.predict(X), model.predict(X), rtol=1e-9)


def test_updates_join_counts(events):
    model, X, y, _ = events
    later = clone(model).fit(X[:45], y[:45]).update(X[45:], y[45:])
    assert later.outcomes_["inside"].mean() > 0.8
    np.testing.assert_allclose(later.predict(X), model.predict(X), rtol=0.4)
    with pytest.warns(UserWarning, match="such rows are excluded"):
        later.update(X[:1], [-1])
    assert later.outliers_.tolist() == [N]
    with pytest.raises(ValueError, match="is not defined"):
        clone(model).set_params(outliers=None).fit(X[:45], y[:45]).update(X[45:], y[45:] + 0.5)


def test_a_column_of_exposures_goes_through_scikit_learn(events):
    model, X, y, mean = events
    found = cross_val_predict(clone(model), X, y, cv=2)
    assert np.corrcoef(np.log(found), np.log(mean))[0, 1] > 0.9


def test_one_kernel_and_a_report(events, tmp_path):
    model, X, y, _ = events
    other = clone(model).refit(X, y, "LIN[age] + CAT[site]")
    assert other.best_expression_ == "poisson(y) ~ LIN[age] + CAT[site]"
    write_report(other, tmp_path / "counts.html")
    assert "Poisson counts" in (tmp_path / "counts.html").read_text()
    fit = evaluate_kernel("poisson(y) ~ SE[0]", X[["age"]] / 50, y)
    assert fit.status == "ok"


def test_a_series_of_rare_events_has_whole_bands():
    rng = np.random.default_rng([4, 76])
    month = np.arange(96)
    dates = pd.date_range("2015-01-01", periods=96, freq="MS")
    rate = np.exp(-0.5 + np.sin(2 * np.pi * month / 12))
    y = pd.Series(rng.poisson(rate), index=dates, name="events")
    model = model_of(strategy="series", base_kernels="auto").fit(y)
    forecast = model.forecast(12, (0.05, 0.5, 0.95))
    ends = np.array([forecast[name] for name in ("0.05", "0.5", "0.95")])
    np.testing.assert_array_equal(ends, np.rint(ends))
    assert ends.min() >= 0
    assert np.corrcoef(forecast["mean"], rate[:12])[0, 1] > 0.8


@pytest.mark.parametrize(
    ("parameters", "change", "message"),
    [
        ({"noise": "binomial"}, {}, "'beta_binomial' with n_trials"),
        ({"noise": "poisson", "n_trials": "trials"}, {}, "'beta_binomial' with n_trials"),
        ({"noise": "poisson", "target_scale": "log"}, {}, "without noise_std and a target_scale"),
        ({"noise": "constant", "exposure": "years"}, {}, "perhaps with exposure"),
        ({"exposure": "years", "n_trials": "trials"}, {}, "got noise='auto'"),
        ({"exposure": "area"}, {}, "exposure must be a column of X"),
        ({"exposure": "years"}, {"years": 0.0}, "exposure must hold positive numbers, got 0"),
        ({"n_trials": "trials"}, {"trials": 2.5}, "n_trials must hold whole numbers"),
        ({"n_trials": "trials"}, {"trials": 1}, "at most the 1 of n_trials"),
        ({"exposure": "site"}, {}, "exposure must be a column of numbers, got a category"),
        ({"noise": "poisson"}, {"y": 0.5}, "y must hold counts, whole numbers from zero on, got"),
        ({"noise": "poisson"}, {"y": -1.0}, "y must hold counts"),
        ({"noise": "poisson", "approximation": "inducing"}, {}, "must be fitted exactly"),
        ({"noise": "poisson", "strategy": "skc"}, {}, "must be fitted exactly"),
    ],
)
def test_what_cannot_be_is_said(parameters, change, message):
    X, f, rng = table()
    y = pd.Series(rng.poisson(np.exp(f) + 2).astype(float))
    for name, value in change.items():
        if name == "y":
            y.iloc[3] = value
        else:
            X[name] = X[name].astype(float)
            X.loc[3, name] = value
    with pytest.raises(ValueError, match=message):
        model_of(**parameters).fit(X, y)


def test_new_rows_must_have_an_exposure(events, shares):
    model, X, *_ = shares
    with pytest.raises(ValueError, match="'trials' must have whole numbers from one on"):
        model.predict(X.iloc[:2].assign(trials=[2.5, 3]))
    model, X, *_ = events
    for value in (np.nan, 0.0):
        with pytest.raises(
            ValueError, match=f"'years' must have positive numbers.* got {value:g} "
        ):
            model.predict(X.iloc[:2].assign(years=[1.0, value]))


def test_the_command_line_takes_exposures_and_trials(events, tmp_path, capsys):
    _, X, y, _ = events
    path = tmp_path / "visits.csv"
    X[["age", "years"]].assign(visits=y)[:25].to_csv(path, index=False)
    assert main([str(path), "--exposure=years", "--n-iter=0"]) == 0
    assert "exposure or trials of counts" in capsys.readouterr().out
    assert main([str(path), "--trials=size"]) == 2
    assert "n_trials must be a column of X" in capsys.readouterr().err
