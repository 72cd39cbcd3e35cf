"""Every kind of data meets every consumer: one table of kinds, and one test for each consumer.

All kinds hold the same rows, a line with a wave in t and three levels in z, in another form each.
So each must have the kernels of the plain kind, explain what it explains, and lose nothing on the
way. The consumers share a fit of each kind.
"""

import pickle
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pandas as pd
import pytest

from autokernel import AutoKernelGPRegressor, parse_expression
from tests.fits import through_json

N, N_AHEAD, PERIOD = 36, 4, 12
rng = np.random.default_rng(0)
T = 20.0 + np.arange(N + N_AHEAD)
DAYS = pd.date_range("2020-01-01", periods=N + N_AHEAD, name="t")
LEVELS = {0.5: "Aachen", 1.0: "Bonn", 2.0: "Celle"}
Z = rng.permutation(np.repeat([*LEVELS], N // 3))
SHOPS = [LEVELS[z] for z in Z]
# a line on the scales of log and of sqrt too, up to a small part of the noise
F = 5 + np.sin(2 * np.pi * T[:N] / PERIOD) + T[:N] / 24 + 0.5 * Z
NOISE = 0.1  # standard deviation
E = NOISE * rng.normal(size=N)
PLAIN = pd.DataFrame({"t": T[:N], "z": Z})


@dataclass(frozen=True, eq=False)  # eq=False: frames have no truth value
class Kind:
    """The rows in one form, and how kernels of it are written."""

    X: pd.DataFrame = field(default_factory=PLAIN.copy)
    y: np.ndarray = field(default_factory=lambda: F + E)
    settings: dict = field(default_factory=dict)
    of_rows: dict = field(default_factory=dict)  # weights and known errors
    writes: dict = field(default_factory=dict)  # by what stands for it in the plain kind
    target: str = ""  # with which kernels begin
    says: str = "z explains"  # in the description
    ahead: np.ndarray = field(default_factory=T[N:].copy)  # t of the rows that follow

    def model(self, **settings):
        fixed = {"n_iter": 0, "max_leaves": 3, "random_state": 0, "periods": {"t": PERIOD}}
        fixed |= {"outliers": None, "column_scales": None, "target_scale": None}
        z = list(self.X).index("z")  # in X of the user, whose dates may be in its index
        kernel = "CAT" if "LIN[z]" in self.writes else "LIN"
        fixed["base_kernels"] = {"*": ("LIN", "PER"), z: (kernel,)}
        return AutoKernelGPRegressor(**{**fixed, **self.settings, **settings})

    def fitted(self):
        model = self.model(start_kernel=self.text("LIN[t] + PER[t] + LIN[z]"))
        return model.fit(self.X, self.y, **self.of_rows)

    def refitted(self, kernel, **settings):
        model = self.model(averaging=None, outliers=None, **settings)
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
CATEGORIES = {"writes": {"LIN[z]": "CAT[z]"}, "says": "Celle"}
GAPS = frame(t=np.where(T[:N] % PERIOD == 5, np.nan, T[:N]))
ORDERED = pd.Categorical(SHOPS, categories=[*LEVELS.values()], ordered=True)
OUTLIER = {"settings": {"outliers": "auto"}, "says": "Row 17 is excluded"}
OFF = 9.0 * (np.arange(N) == 17)
LOG = {"settings": {"target_scale": "log"}, "target": "log(y) ~ "}
W = rng.uniform(0.5, 2, N)
W[-1] = 0
W /= W.mean()  # rows that stand for several readings which agree have no noise
WEIGHTS = {"sample_weight": W}
E_OF_WEIGHTS = E / np.sqrt(np.where(W, W, 1.0))
ERRORS = {"noise_std": np.where(T[:N] % 7, 0.0, 0.2)}
E_OF_ROWS = E * np.sqrt(1 + (ERRORS["noise_std"] / NOISE) ** 2)

KINDS = {
    "numbers": Kind(),
    "texts": Kind(frame(z=SHOPS), **CATEGORIES),
    "gaps": Kind(GAPS),
    "a scale of a column": Kind(
        settings={"column_scales": {"t": "sqrt"}}, writes={"LIN[t]": "LIN[sqrt(t)]"}
    ),
    "a scale of the target": Kind(**LOG),
    "weights": Kind(y=F + E_OF_WEIGHTS, of_rows=WEIGHTS),
    "known errors": Kind(y=F + E_OF_ROWS, of_rows=ERRORS),
    "an outlier": Kind(y=F + E + OFF, **OUTLIER),
    # kinds together
    "dates in a column, and ordered categories": Kind(frame(t=DAYS[:N], z=ORDERED), **DATES),
    "dates in an index, and texts": Kind(indexed(frame(z=SHOPS)[["z"]]), **DATES | CATEGORIES),
    "a scale of all columns, and texts": Kind(
        frame(z=SHOPS),
        settings={"column_scales": "log"},
        writes={**CATEGORIES["writes"], "LIN[t]": "LIN[log(t)]"},
    ),
    "gaps, a scale of the target, and weights": Kind(
        GAPS, F + E_OF_WEIGHTS, of_rows=WEIGHTS, **LOG
    ),
    "an outlier, known errors, and texts": Kind(
        frame(z=SHOPS), F + E_OF_ROWS + OFF, of_rows=ERRORS, **CATEGORIES | OUTLIER
    ),
}


@cache
def fit_of(name):
    """The fit of a kind, which no test may change."""
    return KINDS[name].fitted()


@cache
def description_of(name):
    return fit_of(name).describe()


# each of these is also in the kinds together, which always run
ONE_BY_ONE = {"numbers", "texts", "gaps", "a scale of a column", "a scale of the target", "weights"}
ONE_BY_ONE |= {"known errors", "an outlier"}


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.slow] if name in ONE_BY_ONE else []) for name in KINDS
    ]
)
def name(request):
    return request.param


@pytest.fixture
def kind(name):
    return KINDS[name]


@pytest.fixture
def fitted(name):
    return fit_of(name)


@pytest.fixture
def description(name):
    return description_of(name)


def parsed(text, model):
    return parse_expression(text, model.feature_names_in_)


def rmse(found, expected):
    return np.sqrt(np.mean((found - expected) ** 2))


def test_the_search_begins_with_the_kernels_of_the_plain_kind(kind, fitted):
    """Which have the known period, first of them the start kernel; an index is the user's."""
    plain = ["LIN[t] * LIN[z]", "LIN[t] + LIN[z]", "LIN[t]", "PER[t]", "LIN[z]", "NOISE"]
    texts = [kind.text(text) for text in ("LIN[t] + PER[t] + LIN[z]", *plain)]
    start, *others = (text.replace("PER", f"PER{PERIOD}") for text in texts)
    found = fitted.search_history_["kernel"][fitted.search_history_["phase"] == "initial"]
    assert parsed(found[0], fitted).canonical == parsed(start, fitted).canonical
    assert {parsed(text, fitted).canonical for text in found[1:]} == {
        parsed(text, fitted).canonical for text in others
    }


def test_what_the_plain_kind_explains_is_explained(kind, fitted, description):
    assert sorted(fitted.feature_names_in_) == ["t", "z"]
    assert fitted.inclusion_probabilities_["depends"].min() > 0.95
    periods = fitted.parameters_["value"][fitted.parameters_["parameter"] == "period"]
    assert periods == pytest.approx(PERIOD, rel=0.05)
    assert kind.says in description
    # a line, a wave and three levels have some twelve degrees of freedom, of 36 rows
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
    X = kind.X[:10]
    parts = fitted.decompose(X)
    total = parts.constant + sum(part.mean for part in parts.components)
    if kind.target:  # then they are factors of the geometric mean
        assert np.corrcoef(total, fitted.predict(X))[0, 1] > 0.99
    else:
        np.testing.assert_allclose(total, fitted.predict(X), rtol=1e-9)


def pickled(model):
    return pickle.loads(pickle.dumps(model))


def test_copies_are_equal(kind, fitted, description):
    X = kind.X[:10]
    twin = pickled(fitted)
    np.testing.assert_array_equal(twin.predict(X), fitted.predict(X))
    twin = through_json(twin)  # which has lost what either of them loses
    for method in ("predict", "predict_interval"):
        expected = getattr(fitted, method)(X)
        np.testing.assert_array_equal(getattr(twin, method)(X), expected)
    for name in ("X_train_", "y_train_", "outliers_"):
        np.testing.assert_array_equal(getattr(twin, name), getattr(fitted, name))
    for name in ("parameters_", "posterior_", "inclusion_probabilities_", "scales_"):
        assert repr(getattr(twin, name)) == repr(getattr(fitted, name))
    for name in ("best_expression_", "best_kernel_", "date_columns_", "categories_"):
        assert getattr(twin, name) == getattr(fitted, name)
    assert twin.describe() == description
    assert repr(twin) == repr(fitted)  # with integer keys of columns
    assert twin.get_params()["base_kernels"] == fitted.get_params()["base_kernels"]


def test_approximations_for_many_rows_predict_nearly_the_same(kind):
    exact, *others = (
        kind.refitted("LIN[t] + LIN[z]", approximation=how, n_inducing=N).predict(kind.X)
        for how in ("exact", "inducing", "neighbours")
    )
    # as many inducing points or neighbours as there are rows
    assert max(rmse(other, exact) for other in others) < 0.1 * NOISE


def test_a_refit_to_other_rows_keeps_the_kernel(kind, fitted):
    some = slice(6, None)
    model = pickled(fitted)
    model.refit(kind.X[some], kind.y[some], **{n: v[some] for n, v in kind.of_rows.items()})
    assert model.best_expression_ == fitted.best_expression_
    # 30 rows of 36: both are nearer to each other than to the targets
    assert rmse(model.predict(kind.X[some]), fitted.predict(kind.X[some])) < NOISE


def test_a_series_goes_on(kind):
    X = kind.X.drop(columns="z")
    settings = dict.fromkeys(("outliers", "averaging", "column_scales"))
    settings |= {"base_kernels": "auto", "periods": None}
    model = kind.model(strategy="series", **settings).fit(X, kind.y, **kind.of_rows)
    table = model.forecast(N_AHEAD)
    np.testing.assert_array_equal(table["t"], kind.ahead)
    rows = pd.DataFrame({"t": kind.ahead})
    rows = rows if "t" in X else rows.set_index("t")
    np.testing.assert_allclose(table["mean"], model.predict(rows))
    assert repr(through_json(pickled(model)).forecast(N_AHEAD)) == repr(table)


LOUD = 0.8 * np.random.default_rng(2).normal(size=N)  # so that an effect of t is uncertain


@pytest.mark.parametrize("name", ["numbers", "dates in an index, and texts"])
def test_claims_are_as_probable_as_that_their_columns_matter(name):
    kind = KINDS[name]
    model = kind.model(base_kernels=("LIN",), max_leaves=2, periods=None)
    model.fit(kind.X, kind.y + LOUD)
    depends = pd.DataFrame(model.inclusion_probabilities_).set_index("column")["depends"]
    claims = pd.DataFrame(model.claims_)
    matter = claims[(claims["predicate"] == "may matter") & (claims["subject"] == "t")]
    assert matter["probability"].item() == pytest.approx(depends["t"], abs=0.01)  # of two digits
    of_t = claims[claims["subject"].str.contains("LIN[t]", regex=False)]
    ways = of_t[of_t["predicate"].str.startswith(("rises", "falls", "is open"))]
    assert len(ways)
    known = ways[~ways["predicate"].str.startswith("is open")]
    assert (known["probability"] <= depends["t"] + 0.01).all()
