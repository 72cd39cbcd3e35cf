"""Every kind of data meets every consumer: one table of kinds, and one test for each consumer.

All kinds hold the same rows, a wave in t and three levels in z, in another form each. So each must
have the kernels of the plain kind, explain what it explains, and lose nothing on the way.
"""

import json
import pickle
import re
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pandas as pd
import pytest

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.export import from_dict, to_dict

N, N_AHEAD, PERIOD = 48, 4, 12
rng = np.random.default_rng(0)
T = np.arange(1.0, N + N_AHEAD + 1)
DAYS = pd.date_range("2020-01-01", periods=N + N_AHEAD, name="t")
LEVELS = {0.5: "Aachen", 1.0: "Bonn", 2.0: "Celle"}
Z = rng.permutation(np.repeat([*LEVELS], N // 3))
SHOPS = [LEVELS[z] for z in Z]
F = 5 + np.sin(2 * np.pi * T[:N] / PERIOD) + 0.5 * Z
NOISE = 0.1  # standard deviation
E = NOISE * rng.normal(size=N)
LOUD = 0.6 * rng.normal(size=N)  # so that an effect of z is uncertain
PLAIN = pd.DataFrame({"t": T[:N], "z": Z})


QUICK = {"max_leaves": 1, "averaging": None, "outliers": None}


@dataclass(frozen=True, eq=False)  # eq=False: frames have no truth value
class Kind:
    """The rows in one form, and how kernels of it are written."""

    X: pd.DataFrame = field(default_factory=PLAIN.copy)
    y: np.ndarray = field(default_factory=lambda: F + E)
    settings: dict = field(default_factory=dict)
    of_rows: dict = field(default_factory=dict)  # weights and known errors
    writes: dict = field(default_factory=dict)  # by what stands for it in the plain kind
    target: str = ""  # with which kernels begin
    says: str = "t and z matter"  # in the description
    ahead: np.ndarray = field(default_factory=T[N:].copy)  # t of the rows that follow

    def model(self, **settings):
        fixed = {"n_iter": 0, "base_kernels": ("SE", "LIN"), "max_leaves": 2, "random_state": 0}
        fixed |= {"outliers": None, "column_scales": None, "target_scale": None}
        return AutoKernelGPRegressor(**{**fixed, **self.settings, **settings})

    def fitted(self, **settings):
        return self.model(**settings).fit(self.X, self.y, **self.of_rows)

    def refitted(self, kernel="SE[t] + SE[z]", **settings):
        model = self.model(averaging=None, **settings)
        return model.refit(self.X, self.y, self.text(kernel), **self.of_rows)

    def text(self, kernel):
        """A kernel of the plain kind, as this kind writes it."""
        for plain, own in self.writes.items():
            kernel = kernel.replace(plain, own)
        return self.target + kernel

    @property
    def is_known(self):
        """Where a row counts, and its value of t is known."""
        known = self.X["t"].notna().to_numpy() if "t" in self.X else np.ones(N, dtype=bool)
        return known & (self.of_rows.get("sample_weight", np.ones(N)) > 0)


def frame(**columns):
    return PLAIN.assign(**columns)


def indexed(X):
    return X.set_axis(DAYS[:N])


DATES = {"ahead": DAYS[N:].to_numpy(), "says": "2020"}
CATEGORIES = {"writes": {"SE[z]": "CAT[z]", "LIN[z]": "CAT[z]"}, "says": "Celle"}
GAPS = frame(t=np.where(T[:N] % PERIOD == 5, np.nan, T[:N]))
ORDERED = pd.Categorical(SHOPS, categories=[*LEVELS.values()], ordered=True)
OUTLIER = {"settings": {"outliers": "auto"}, "says": "Row 17 is excluded"}
OFF = 9.0 * (np.arange(N) == 17)
LOG = {"settings": {"target_scale": "log"}, "target": "log(y) ~ "}
W = rng.uniform(0.5, 2, N)
W /= W.mean()  # rows that stand for several readings which agree have no noise
WEIGHTS = {"sample_weight": W}
ERRORS = {"noise_std": np.where(T[:N] % 7, 0.0, 0.2)}
E_OF_ROWS = E * np.sqrt(1 + (ERRORS["noise_std"] / NOISE) ** 2)

KINDS = {
    "numbers": Kind(),
    "dates in an index": Kind(indexed(PLAIN[["z"]]), **DATES),
    "dates in a column": Kind(frame(t=DAYS[:N]), **DATES),
    "texts": Kind(frame(z=SHOPS), **CATEGORIES),
    "ordered categories": Kind(frame(z=ORDERED)),
    "gaps": Kind(GAPS),
    "a scale of a column": Kind(
        settings={"column_scales": {"t": "sqrt"}},
        writes={"SE[t]": "SE[sqrt(t)]", "LIN[t]": "LIN[sqrt(t)]"},
    ),
    "a scale of the target": Kind(**LOG),
    "weights": Kind(y=F + E / np.sqrt(W), of_rows=WEIGHTS),
    "known errors": Kind(y=F + E_OF_ROWS, of_rows=ERRORS),
    "an outlier": Kind(y=F + E + OFF, **OUTLIER),
    # kinds together
    "dates in an index, and texts": Kind(indexed(frame(z=SHOPS)[["z"]]), **DATES | CATEGORIES),
    "a scale of all columns, and texts": Kind(
        frame(z=SHOPS),
        settings={"column_scales": "log"},
        writes={**CATEGORIES["writes"], "SE[t]": "SE[log(t)]", "LIN[t]": "LIN[log(t)]"},
    ),
    "gaps, a scale of the target, and weights": Kind(
        GAPS, F + E / np.sqrt(W), of_rows=WEIGHTS, **LOG
    ),
    "an outlier, known errors, and texts": Kind(
        frame(z=SHOPS), F + E_OF_ROWS + OFF, of_rows=ERRORS, **CATEGORIES | OUTLIER
    ),
    "weights of zero": Kind(of_rows={"sample_weight": 1.0 * (T[:N] < N - 1)}),
}


@cache
def fit_of(name):
    """The fit of a kind, which no test may change."""
    return KINDS[name].fitted()


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def fitted(request, kind):
    return fit_of(request.node.callspec.params["kind"])


def design(model):
    """The normal forms of the kernels that a search begins with."""
    texts = model.search_history_["kernel"]
    return {parsed(text, model).canonical for text in texts}


def parsed(text, model):
    return parse_expression(text, model.feature_names_in_)


def rmse(found, expected):
    return np.sqrt(np.mean((found - expected) ** 2))


def test_the_design_has_the_kernels_of_the_plain_kind(kind, fitted):
    plain = fit_of("numbers").search_history_["kernel"]
    assert {parsed(kind.text(text), fitted).canonical for text in plain} <= design(fitted)


def test_what_the_plain_kind_explains_is_explained(kind, fitted):
    assert sorted(fitted.feature_names_in_) == ["t", "z"]
    assert fitted.inclusion_probabilities_["depends"].min() > 0.95
    assert kind.says in fitted.describe()
    # a wave and three levels have some twelve degrees of freedom, of 48 rows
    assert rmse(fitted.predict(kind.X)[kind.is_known], F[kind.is_known]) < NOISE


def test_texts_are_read_as_equal_trees(kind, fitted):
    assert parsed(fitted.best_expression_, fitted) == fitted._fitted.evaluation.expression


def test_predictions_are_of_one_distribution(kind, fitted):
    X = kind.X[:10]
    mean, std = fitted.predict(X, return_std=True)
    _, cov = fitted.predict(X, return_cov=True)
    of_function = fitted.predict(X, return_std="function")[1]
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-3)
    assert np.all((of_function > 0) & (of_function < std))
    low, median, high = fitted.predict_quantiles(X, [0.025, 0.5, 0.975]).T
    assert np.all((low < median) & (median < high))
    np.testing.assert_allclose(fitted.predict_interval(X).T, [low, high])
    # a density is the derivative of the levels of quantiles
    near = fitted.predict_quantiles(X, [0.499, 0.501])
    density = np.exp(fitted.log_predictive_density(X, median))
    np.testing.assert_allclose(density, 0.002 / np.diff(near)[:, 0], rtol=1e-3)
    # rows in another order change nothing
    np.testing.assert_allclose(fitted.predict(kind.X[::-1])[::-1][:10], mean, rtol=1e-9)
    # of draws, the expected shares lie below quantiles
    draws = fitted.sample_y(X, 400, random_state=0)
    for level, quantile in ((0.025, low), (0.5, median), (0.975, high)):
        error = np.sqrt(level * (1 - level) / 400)
        assert abs(np.mean(draws < quantile[:, None]) - level) < 4 * error


def test_components_add_up(kind, fitted):
    parts = fitted.decompose(kind.X)
    total = parts.constant + sum(part.mean for part in parts.components)
    if kind.target:  # then they are factors of the geometric mean
        assert np.corrcoef(total, fitted.predict(kind.X))[0, 1] > 0.99
    else:
        np.testing.assert_allclose(total, fitted.predict(kind.X), rtol=1e-9)


COPIES = {
    "json": lambda model: from_dict(json.loads(json.dumps(to_dict(model)))),
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_copies_are_equal(copy, kind, fitted):
    twin = copy(fitted)
    for method in ("predict", "predict_interval"):
        expected = getattr(fitted, method)(kind.X)
        np.testing.assert_array_equal(getattr(twin, method)(kind.X), expected)
    for name in ("X_train_", "y_train_", "outliers_"):
        np.testing.assert_array_equal(getattr(twin, name), getattr(fitted, name))
    for name in ("parameters_", "posterior_", "inclusion_probabilities_", "claims_", "scales_"):
        assert repr(getattr(twin, name)) == repr(getattr(fitted, name))
    for name in ("best_expression_", "best_kernel_", "date_columns_", "categories_"):
        assert getattr(twin, name) == getattr(fitted, name)
    assert repr(twin) == repr(fitted)


def test_claims_are_as_probable_as_that_their_columns_matter():
    wrong = {}
    for name in [*KINDS][:5]:
        kind = KINDS[name]
        model = kind.model(outliers=None, base_kernels=("SE",))
        model.fit(kind.X, kind.y + LOUD, **kind.of_rows)
        depends = pd.DataFrame(model.inclusion_probabilities_).set_index("column")["depends"]
        claims = pd.DataFrame(model.claims_).query("predicate == 'is possible'")
        for subject, probability in zip(claims["subject"], claims["probability"], strict=True):
            (column,) = re.findall(r"[tz](?=[\])])", subject)
            if probability != pytest.approx(depends[column], abs=0.01):  # said with two digits
                wrong[name, subject] = probability, depends[column]
    assert not wrong


def test_approximations_for_many_rows_predict_nearly_the_same(kind):
    exact, *others = (
        kind.refitted(outliers=None, approximation=how, n_inducing=N).predict(kind.X)
        for how in ("exact", "inducing", "neighbours")
    )
    # as many inducing points or neighbours as there are rows
    assert max(rmse(other, exact) for other in others) < 0.1 * NOISE


def test_a_refit_to_other_rows_keeps_the_kernel(kind, fitted):
    some = slice(10, None)
    model = pickle.loads(pickle.dumps(fitted))
    model.refit(kind.X[some], kind.y[some], **{n: v[some] for n, v in kind.of_rows.items()})
    assert model.best_expression_ == fitted.best_expression_
    # 38 rows of 48: both are nearer to each other than to the targets
    assert rmse(model.predict(kind.X[some]), fitted.predict(kind.X[some])) < NOISE


def test_a_series_goes_on(kind):
    X = kind.X.drop(columns="z")
    settings = {"base_kernels": "auto", "outliers": None, "averaging": None, "column_scales": None}
    model = kind.model(strategy="series", **settings).fit(X, kind.y, **kind.of_rows)
    table = model.forecast(N_AHEAD)
    np.testing.assert_array_equal(table["t"], kind.ahead)
    rows = pd.DataFrame({"t": kind.ahead})
    rows = rows if "t" in X else rows.set_index("t")
    np.testing.assert_allclose(table["mean"], model.predict(rows))
    for copy in COPIES.values():
        assert repr(copy(model).forecast(N_AHEAD)) == repr(table)


def test_integer_keys_are_indices_of_the_columns_of_the_user(kind):
    kernel = "CAT" if kind.writes.get("SE[z]") == "CAT[z]" else "SE"
    by_name, by_index = (
        design(kind.fitted(base_kernels={"*": ["LIN"], z: [kernel]}, **QUICK))
        for z in ("z", list(kind.X).index("z"))
    )
    assert by_index == by_name


def test_a_known_period_is_in_the_design_and_in_start_kernels(kind):
    settings = {"base_kernels": {"t": ["LIN", "PER"], "z": ()}} | QUICK | {"max_leaves": 2}
    plain = KINDS["numbers"].fitted(**settings).search_history_["kernel"]
    start = kind.text("LIN[t] + PER[t]")
    model = kind.fitted(**settings, periods={"t": PERIOD}, start_kernel=start)
    start, *named = (
        text.replace("PER[", f"PER{PERIOD}[") for text in (start, *map(kind.text, plain))
    )
    kernels = model.search_history_["kernel"].tolist()
    assert kernels[0] == start
    assert set(named) <= set(kernels)
    periods = model.parameters_["value"][model.parameters_["parameter"] == "period"]
    assert periods == pytest.approx(PERIOD, rel=0.05)


def test_copies_keep_integer_keys():
    settings = {"base_kernels": {0: ("PER", "LIN"), 1: ("LIN",)}, "periods": {0: PERIOD}}
    model = Kind().fitted(**settings, max_leaves=1, averaging=None)
    for copy in COPIES.values():
        assert {name: copy(model).get_params()[name] for name in settings} == settings


def test_categories_have_no_periods():
    with pytest.raises(ValueError, match="periods"):
        KINDS["texts"].fitted(periods={"z": PERIOD})


def test_weights_that_sum_to_one_are_refused():
    with pytest.raises(ValueError, match=r"sample_weight must add up to .*by their mean"):
        Kind(of_rows={"sample_weight": W / W.sum()}).refitted()


@pytest.mark.parametrize("name", ["dates in an index", "dates in a column"])
def test_dates_are_in_days_and_no_other_unit(name):
    kind = KINDS[name]
    model = kind.model(periods={"t": PERIOD}).refit(kind.X, kind.y, f"PER{PERIOD}[t] + SE[z]")
    assert re.search(r"every 1[\d.]+ days", model.describe())
    with pytest.raises(ValueError, match="their unit is days, got 'years'"):
        model.describe(units={"t": "years"})
