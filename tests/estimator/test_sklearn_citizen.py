"""The estimator inside the tools of scikit-learn."""

import copy
import inspect
import pickle
import re
import warnings

import joblib
import numpy as np
import pytest
import sklearn
import skops.io
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.inspection import PartialDependenceDisplay
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr, get_tags

from autokernel import (
    SOT,
    AutoKernelGPRegressor,
    Importance,
    UpperConfidenceBound,
    parse_expression,
)
from autokernel.expression import Leaf
from tests.fits import At, interrupt, rows, small, tiny, wave
from tests.own_kernels import BY_CALL, OU

X, Y = wave(20, n_features=2)
FOLDS = KFold(2)


def tiny_with_objects():
    """The same with objects in the place of names."""
    return tiny(strategy=SOT(population_size=7), criterion=Importance(max_draws=100))


@pytest.fixture(scope="module")
def fitted():
    """A fitted estimator, which no test may change."""
    return tiny().fit(X, Y)


def test_tags_are_those_of_a_regressor_of_one_target_from_dense_tables():
    tags = get_tags(tiny())
    assert is_regressor(tiny())
    assert tags.requires_fit
    assert tags.target_tags.required
    assert tags.target_tags.single_output
    assert not tags.target_tags.multi_output
    assert not tags.regressor_tags.poor_score
    assert not tags.non_deterministic
    assert not tags.no_validation
    inputs = tags.input_tags
    assert inputs.two_d_array
    assert inputs.categorical
    assert inputs.allow_nan
    assert not any([inputs.sparse, inputs.string])


def test_parameters_of_nested_objects_are_read_set_and_cloned(fitted):
    model = tiny_with_objects()
    params = model.get_params()
    assert (params["strategy__population_size"], params["criterion__max_draws"]) == (7, 100)
    assert "strategy__population_size" not in model.get_params(deep=False)
    twin = clone(model)
    assert repr(twin) == repr(model)
    twin.set_params(strategy__population_size=9, criterion__max_draws=150, n_iter=3)
    assert (twin.strategy.population_size, twin.criterion.max_draws, twin.n_iter) == (9, 150, 3)
    assert (model.strategy.population_size, model.criterion.max_draws, model.n_iter) == (7, 100, 0)
    twin.set_params(
        strategy=SOT(acquisition=UpperConfidenceBound()), strategy__acquisition__kappa=3
    )
    assert twin.strategy.acquisition.kappa == 3
    with pytest.raises(NotFittedError):
        clone(fitted).predict(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"strategy__population_size": 9}, r"population_size .* got 'sot': set strategy=SOT\(\)"),
        ({"criterion": "bic", "criterion__n": 3}, r"got 'bic': set criterion=BIC\(\)"),
        (
            {"strategy": SOT(acquisition="ucb"), "strategy__acquisition__kappa": 2.0},
            r"'ucb': set strategy__acquisition=UpperConfidenceBound\(\)",
        ),
        ({"averaging__n_draws": 3}, r"set averaging=PosteriorAveraging\(\)"),
        ({"strategy": SOT(), "strategy__n_generation": 1}, "Invalid parameter 'n_generation'"),
    ],
)
def test_a_name_has_no_parameters_and_the_error_says_what_to_set(params, message):
    with pytest.raises(ValueError, match=message):
        AutoKernelGPRegressor().set_params(**params)


def test_fit_neither_changes_nor_keeps_the_objects_that_are_its_parameters():
    model = tiny_with_objects()
    before = model.get_params(deep=False)
    text = repr(model)
    model.fit(X, Y)
    after = model.get_params(deep=False)
    assert all(after[name] is before[name] for name in before)
    assert repr(model) == text
    assert not [name for name in vars(model.strategy) if name.endswith("_")]


@pytest.mark.parametrize("routing", [False, True])
def test_a_pipeline_predicts_with_deviation_or_covariance(routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        last = tiny()
        if routing:
            last.set_predict_request(return_std=True, return_cov=True)
        pipeline = make_pipeline(StandardScaler(), last).fit(X, Y)
        _, std = pipeline.predict(X, return_std=True)
        mean, covariance = pipeline.predict(X, return_cov=True)
        if routing:
            without_request = make_pipeline(tiny().fit(X, Y))
            with pytest.raises(UnsetMetadataPassedError, match="return_std"):
                without_request.predict(X, return_std=True)
    scaled = pipeline[0].transform(X)
    np.testing.assert_array_equal(std, pipeline[-1].predict(scaled, return_std=True)[1])
    np.testing.assert_array_equal(covariance, pipeline[-1].predict(scaled, return_cov=True)[1])
    np.testing.assert_array_equal(mean, pipeline.predict(X))


def test_grid_search_scores_each_candidate_as_cross_validation_does():
    names = {"strategy": ["sot"], "base_kernels": [("LIN",)], "criterion__max_draws": [100]}
    grid = [names, {"strategy": [SOT(initial_design="paper")], "base_kernels": [(OU,)]}]
    model = tiny_with_objects()
    x = X[:, :1]
    search = GridSearchCV(model, grid, cv=FOLDS, error_score="raise").fit(x, Y)
    expected = []
    for candidate in search.cv_results_["params"]:
        own = {name: clone(value, safe=False) for name, value in candidate.items()}
        expected.append(cross_val_score(clone(model).set_params(**own), x, Y, cv=FOLDS).mean())
    assert len(expected) == 2
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected)
    chosen = search.best_estimator_.get_params()
    assert all(repr(chosen[name]) == repr(value) for name, value in search.best_params_.items())
    assert repr(model) == repr(tiny_with_objects())


def test_several_targets_are_fitted_one_by_one():
    targets = np.c_[Y, X[:, 1]]
    model = MultiOutputRegressor(tiny()).fit(X, targets)
    alone = [tiny().fit(X, target).predict(X) for target in targets.T]
    np.testing.assert_array_equal(model.predict(X), np.transpose(alone))
    assert [m.best_expression_ for m in model.estimators_] == ["SE[0]", "LIN[1]"]


def test_partial_dependence_plot_shows_averages_of_predictions(fitted):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plot = PartialDependenceDisplay.from_estimator(fitted, X, [0, 1], grid_resolution=3)
    (result, _) = plot.pd_results
    for value, average in zip(result["grid_values"][0], result["average"][0], strict=True):
        at_value = np.c_[np.full(len(X), value), X[:, 1]]
        # sums of the same numbers in another order
        assert average == pytest.approx(fitted.predict(at_value).mean(), rel=1e-9)
    assert len(plot.lines_.ravel()) == 2
    matplotlib.pyplot.close(plot.figure_)


@pytest.fixture(scope="module", params=["LIN", OU, BY_CALL], ids=str)
def model(request):
    """A fitted estimator with another base kernel besides SE, which no test may change."""
    settings = {"base_kernels": ["SE", request.param], "strategy": "greedy", "max_leaves": 2}
    return tiny(**settings).fit(X, Y)


def through_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib", compress=True)
    return joblib.load(folder / "model.joblib")


def through_skops(model, folder):
    file = folder / "model.skops"
    skops.io.dump(model, file)
    return skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file))


@pytest.mark.parametrize(
    "duplicate",
    [
        through_joblib,
        through_skops,
        lambda model, _: pickle.loads(pickle.dumps(model)),
        lambda model, _: copy.deepcopy(model),
    ],
    ids=["joblib", "skops", "pickle", "deepcopy"],
)
def test_copy_of_a_fitted_model_predicts_the_same_and_goes_on_alike(model, duplicate, tmp_path):
    twin = duplicate(model, tmp_path)
    for kind in ("return_std", "return_cov"):
        for ours, theirs in zip(
            twin.predict(X, **{kind: True}), model.predict(X, **{kind: True}), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
    assert repr(twin.leaderboard()) == repr(model.leaderboard())
    assert twin.best_kernel_ == model.best_kernel_
    # a copy that knows the search goes on with it
    twin.set_params(warm_start=True, n_iter=1).fit(X, Y)
    before, after = (one.search_history_["fit_seconds"] for one in (model, twin))
    np.testing.assert_array_equal(after[: len(before)], before)  # they were read
    assert len(after) > len(before)


def test_a_file_of_skops_is_about_as_small_as_one_of_joblib(tmp_path):
    inputs, target = wave(40, n_features=2)
    fitted = small(n_iter=6, max_leaves=4, operators=["+", "*", "cp"]).fit(inputs, target)
    joblib.dump(fitted, tmp_path / "model.joblib")
    through_skops(fitted, tmp_path)
    sizes = [(tmp_path / f"model.{kind}").stat().st_size for kind in ("skops", "joblib")]
    assert sizes[0] < 3 * sizes[1]
    assert len(skops.io.get_untrusted_types(file=tmp_path / "model.skops")) < 12


@pytest.mark.parametrize("duplicate", [through_skops, through_joblib])
def test_a_copy_keeps_custom_kernels_and_an_interrupted_search(duplicate, tmp_path):
    fitted = tiny(base_kernels=["SE", OU], periods={0: 0.4}, max_leaves=2, n_iter=1).fit(X, Y)
    fitted.refit(X, Y, Leaf(OU, 0) * parse_expression("LIN[1]"))
    twin = duplicate(fitted, tmp_path)
    np.testing.assert_array_equal(twin.predict(X), fitted.predict(X))
    assert twin.describe() == fitted.describe()
    assert str(twin.parameters_) == str(fitted.parameters_)
    assert rows(twin.set_params(warm_start=True).fit(X, Y)) == rows(
        fitted.set_params(warm_start=True).fit(X, Y)
    )
    interrupted = tiny().set_callbacks(At(interrupt, begun=1))
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(X, Y)
    interrupted.set_callbacks()
    np.testing.assert_array_equal(duplicate(interrupted, tmp_path).fit(X, Y).y_train_, Y)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_of_a_frame_are_kept_shown_and_asked_for_again(library):
    library = pytest.importorskip(library)
    frame = library.DataFrame({"time": X[:, 0], "wind speed": X[:, 1]})
    model = tiny().fit(frame, Y)
    assert list(model.feature_names_in_) == ["time", "wind speed"]
    assert model.best_expression_ == "SE[time]"
    assert "LIN[wind speed]" in model.search_history_["kernel"]
    assert "wind speed" in repr(model.leaderboard())
    assert "SE[time]" in estimator_html_repr(model)
    np.testing.assert_array_equal(model.predict(frame), tiny().fit(X, Y).predict(X))
    for ask in (model.predict, model.sample_y, lambda frame: model.refit(frame, Y)):
        with pytest.raises(ValueError, match=r"names unseen at fit time:\n- place"):
            ask(library.DataFrame({"place": X[:, 0], "wind speed": X[:, 1]}))
        with pytest.raises(ValueError, match="must be in the same order"):
            ask(frame[["wind speed", "time"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


def captions(estimator):
    """Captions of all boxes in the HTML of an estimator."""
    return re.findall(r'<div class="caption">(.*?)</div>', estimator_html_repr(estimator))


@pytest.mark.parametrize(
    "shown",
    [
        tiny(),
        make_pipeline(StandardScaler(), tiny()),
        GridSearchCV(tiny(base_kernels=["SE"]), {"max_leaves": [1]}, cv=FOLDS),
    ],
    ids=lambda shown: type(shown).__name__,
)
def test_html_shows_the_kernel_once_there_is_one(shown):
    assert "SE[0]" not in captions(shown)
    assert captions(shown.fit(X, Y)).count("SE[0]") == 1
    assert "AutoKernelGPRegressor" in shown._repr_mimebundle_()["text/html"]


def test_html_escapes_the_names_of_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["<b>x</b>", "y"])
    (shown,) = captions(tiny().refit(frame, Y, "SE[0] * LIN[1]"))
    assert "&lt;b&gt;x&lt;/b&gt;" in shown


def test_no_attribute_raises_or_warns_when_a_notebook_looks_at_all_of_them(fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (tiny(), fitted):
            public = {name for name in dir(model) if name[0] != "_"}
            # getmembers leaves out what raises an AttributeError
            assert public == {name for name, _ in inspect.getmembers(model) if name[0] != "_"}
            assert {"predict", "refit", "leaderboard"} <= public
            estimator_html_repr(model)
    assert {"best_kernel_", "search_history_", "stop_reason_"} <= public
