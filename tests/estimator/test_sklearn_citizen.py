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
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
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
from autokernel.cli import main
from autokernel.expression import Leaf
from tests.cli.files import QUICK
from tests.cli.files import wave as time_series
from tests.fits import At, interrupt, rows, tiny, wave
from tests.own_kernels import BY_CALL, OU

X, Y = wave(20, n_features=2)
FOLDS = KFold(2)
SMOOTH = {"base_kernels": ["SE"], "averaging": None}


def tiny_with_objects():
    """The same with objects in the place of names."""
    return tiny(strategy=SOT(population_size=7), criterion=Importance(max_draws=100))


@pytest.fixture(scope="module")
def fitted():
    """A fitted estimator, which no test may change."""
    return tiny().fit(X, Y)


def test_tags_are_those_of_a_regressor_of_one_target_from_dense_tables():
    tags = get_tags(tiny())
    inputs, target = tags.input_tags, tags.target_tags
    assert is_regressor(tiny())
    assert all([tags.requires_fit, target.required, target.single_output])
    assert all([inputs.two_d_array, inputs.categorical, inputs.allow_nan])
    assert not any([inputs.sparse, inputs.string, target.multi_output])
    assert not any([tags.regressor_tags.poor_score, tags.non_deterministic, tags.no_validation])


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


@pytest.mark.parametrize("routing", [False, True])
def test_a_pipeline_predicts_with_deviation_or_covariance(routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        last = tiny(**SMOOTH)
        if routing:
            last.set_predict_request(return_std=True, return_cov=True)
        pipeline = make_pipeline(StandardScaler(), last).fit(X, Y)
        _, std = pipeline.predict(X, return_std=True)
        mean, covariance = pipeline.predict(X, return_cov=True)
        if routing:
            without_request = make_pipeline(tiny(**SMOOTH).fit(X, Y))
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
    x, objects = X[:, :1], model.get_params(deep=False)
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
    after = model.fit(x, Y).get_params(deep=False)  # which neither changes nor keeps its objects
    assert all(after[name] is value for name, value in objects.items())
    assert not [name for name in vars(model.strategy) if name.endswith("_")]


@pytest.fixture(scope="module")
def model():
    """A fitted estimator with kernels and operators of all kinds, which no test may change."""
    settings = {"base_kernels": {0: ["SE", OU, BY_CALL], 1: ["LIN"]}, "operators": ["+", "cp"]}
    return tiny(strategy="greedy", max_leaves=2, **settings).fit(X, Y)


def through_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib", compress=True)
    return joblib.load(folder / "model.joblib")


def from_skops(file):
    from skops.io import get_untrusted_types, load  # which imports all of scikit-learn

    return load(file, trusted=get_untrusted_types(file=file))


def through_skops(model, folder):
    from skops.io import dump

    dump(model, folder / "model.skops")
    return from_skops(folder / "model.skops")


COPIES = {
    "joblib": through_joblib,
    "skops": through_skops,
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, _: copy.deepcopy(model),
}


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
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


@pytest.mark.filterwarnings("default:max_time ended the search before")
def test_the_command_line_writes_a_file_of_skops(tmp_path):
    file = tmp_path / "model.skops"
    assert main([str(time_series(tmp_path)), "--target=level", *QUICK, "--output", str(file)]) == 0
    assert from_skops(file).feature_names_in_.tolist() == ["time", "junk"]


def test_a_kernel_adds_to_a_file_of_skops_about_as_much_as_to_one_of_joblib(tmp_path):
    from skops.io import get_untrusted_types

    settings = {"base_kernels": ["LIN"], "max_leaves": 2, "operators": ["+", "*", "cp"]}
    settings |= {"strategy": "random", "structure_prior": None, "averaging": None}
    sizes = []
    for n_iter in (0, 4):
        joblib.dump(tiny(n_iter=n_iter, **settings).fit(X[:, :1], Y), tmp_path / "model.joblib")
        through_skops(joblib.load(tmp_path / "model.joblib"), tmp_path)
        sizes.append([(tmp_path / f"model.{kind}").stat().st_size for kind in ("skops", "joblib")])
    added = np.diff(sizes, axis=0)[0]
    assert 0 < added[0] < 2 * added[1]
    assert len(get_untrusted_types(file=tmp_path / "model.skops")) < 12


def test_a_copy_keeps_custom_kernels_and_an_interrupted_search(tmp_path):
    settings = {"base_kernels": {0: [OU], 1: ["LIN"]}, "periods": {0: 0.4}, "max_leaves": 2}
    fitted = tiny(**settings).fit(X, Y).refit(X, Y, Leaf(OU, 0) * parse_expression("LIN[1]"))
    interrupted = tiny(base_kernels=["LIN"]).set_callbacks(At(interrupt, begun=1))
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(X, Y)
    interrupted.set_callbacks()
    for duplicate in (through_skops, through_joblib):
        twin = duplicate(fitted, tmp_path)
        np.testing.assert_array_equal(twin.predict(X), fitted.predict(X))
        assert twin.describe() == fitted.describe()
        assert str(twin.parameters_) == str(fitted.parameters_)
        again = [copy.deepcopy(one).set_params(warm_start=True) for one in (twin, fitted)]
        assert rows(again[0].fit(X, Y)) == rows(again[1].fit(X, Y))
        np.testing.assert_array_equal(duplicate(interrupted, tmp_path).fit(X, Y).y_train_, Y)


def captions(estimator):
    """Captions of all boxes in the HTML of an estimator."""
    return re.findall(r'<div class="caption">(.*?)</div>', estimator_html_repr(estimator))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_of_a_frame_are_kept_shown_and_asked_for_again(library, fitted):
    library = pytest.importorskip(library)
    frame = library.DataFrame({"<b>time</b>": X[:, 0], "wind speed": X[:, 1]})
    model = tiny().fit(frame, Y)
    assert list(model.feature_names_in_) == ["<b>time</b>", "wind speed"]
    assert model.best_expression_ == "SE[<b>time</b>]"
    assert "LIN[wind speed]" in model.search_history_["kernel"]
    assert "wind speed" in repr(model.leaderboard())
    assert captions(model) == ["SE[&lt;b&gt;time&lt;/b&gt;]"]
    np.testing.assert_array_equal(model.predict(frame), fitted.predict(X))
    for ask in (model.predict, model.sample_y, lambda frame: model.refit(frame, Y)):
        with pytest.raises(ValueError, match=r"names unseen at fit time:\n- place"):
            ask(library.DataFrame({"place": X[:, 0], "wind speed": X[:, 1]}))
        with pytest.raises(ValueError, match="must be in the same order"):
            ask(frame[["wind speed", "<b>time</b>"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


@pytest.mark.parametrize(
    "shown",
    [
        tiny(**SMOOTH),
        make_pipeline(StandardScaler(), tiny(**SMOOTH)),
        GridSearchCV(tiny(**SMOOTH), {"max_leaves": [1]}, cv=FOLDS),
    ],
    ids=lambda shown: type(shown).__name__,
)
def test_html_shows_the_kernel_once_there_is_one(shown):
    assert "SE[0]" not in captions(shown)
    assert captions(shown.fit(X[:, :1], Y)).count("SE[0]") == 1
    assert "AutoKernelGPRegressor" in shown._repr_mimebundle_()["text/html"]


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
