"""What the user knows before the search: base kernels by column, periods, kernels to begin with."""

import re

import numpy as np
import pandas as pd
import pytest

from autokernel import parse_expression
from tests.fits import (
    SEARCHES,
    At,
    assert_predicts_as_its_kernel,
    interrupt,
    rows,
    small,
    through_json,
)

FEW = {"month": ("LIN", "PER"), "other": ()}  # base kernels
SOME = {"month": ("LIN", "PER"), "other": ("LIN",)}


def seasonal(n_samples=60, *, period=12.0, noise=0.2, seed=0):
    """A season over months, and a column that does not matter."""
    rng = np.random.default_rng(seed)
    month = np.arange(n_samples, dtype=float)
    y = np.sin(2 * np.pi * month / period) + noise * rng.normal(size=n_samples)
    return pd.DataFrame({"month": month, "other": rng.uniform(size=n_samples)}), y


def design_of(model):
    history = model.search_history_
    return set(history["kernel"][history["phase"] == "initial"])


def search(**parameters):
    settings = {"n_iter": 2, "averaging": None, "base_kernels": "auto"}
    return small(**{**settings, **parameters})


def leaves_of(model):
    """Every base kernel that a search has tried, with its column."""
    texts = " ".join(model.search_history_["kernel"])
    return {f"{name}[{column}]" for name, column in re.findall(r"(\w+)\[(\w+)\]", texts)}


@pytest.mark.parametrize("strategy", SEARCHES)
def test_every_strategy_keeps_to_what_is_known(strategy, kept):
    X, y = seasonal(12)
    X["unused"] = X["other"] ** 2
    start = ["LIN[other] + PER12[month]", parse_expression("SE[0] * LIN[1]")]
    model = search(
        strategy=strategy,
        memory=kept,
        base_kernels={"month": ("PER", "SE"), "*": ("LIN",), "unused": ()},
        periods={"month": [12, 4]},
        start_kernel=start,
        max_leaves=2,
    ).fit(X, y)
    assert leaves_of(model) == {"PER12[month]", "PER4[month]", "SE[month]", "LIN[other]"}
    kernels = model.search_history_["kernel"].tolist()
    assert kernels[:2] == ["LIN[other] + PER12[month]", "LIN[other] * SE[month]"]
    once = set(zip(kernels, model.search_history_["row_set"].tolist(), strict=True))
    assert len(once) == len(kernels)
    assert model.predict(X).shape == y.shape


def test_a_column_that_is_not_used_changes_nothing():
    X, y = seasonal(15)
    settings = {"n_iter": 1, "max_leaves": 1, "operators": ("+", "cp")}
    without = search(base_kernels=("LIN", "SE"), **settings).fit(X[["month"]], y)
    model = search(base_kernels={"month": ("LIN", "SE"), "other": ()}, **settings).fit(X, y)
    assert rows(model) == rows(without)
    np.testing.assert_array_equal(model.predict(X), without.predict(X[["month"]]))


@pytest.mark.parametrize(
    "alike",
    [
        [("SE", "LIN"), {"*": ("SE", "LIN")}, {"month": ("SE", "LIN"), 1: ("SE", "LIN")}],
        [{m: ("LIN",), o: ("SE",)} for m in ("month", 0) for o in ("other", 1)],
    ],
    ids=["all columns", "names and indices"],
)
def test_selections_by_column_mean_the_same_however_they_are_written(alike, kept):
    X, y = seasonal(10)
    settings = {"n_iter": 0, "max_leaves": 1, "memory": kept}
    first, *others = (
        rows(search(base_kernels=selection, **settings).fit(X, y)) for selection in alike
    )
    assert all(other == first for other in others)


def period_of(model):
    return model.parameters_["value"][model.parameters_["parameter"] == "period"]


def test_a_known_period_is_found_and_described_where_the_data_do_not_show_it():
    # sixteen months of noisy data say little of a year; the user knows it
    X, y = seasonal(16, noise=0.6, seed=3)
    model = search(periods={"month": 12}).refit(X, y, "PER12[month]")
    free = search().refit(X, y, "PER[month]")
    assert period_of(model) == pytest.approx(12, rel=0.1)  # two prior deviations
    assert period_of(free) != pytest.approx(12, rel=0.1)
    assert "cycle in month" in model.describe()
    assert not re.search(r"repeats every 1\d", free.describe())


def test_the_prior_of_a_known_period_is_narrow_in_the_unit_of_the_column():
    X, y = seasonal()
    model = search(periods={"month": 12}, priors={"period": (2, 50)}).refit(X, y, "PER12[month]")
    (leaf,) = (
        leaf for leaf in model._fitted.evaluation.expression.leaves if leaf.kernel.name == "PER12"
    )
    extent = X["month"].max()
    own = leaf.kernel.parameters_on(extent, is_of_dates=False)
    shape, rate = own[-1].prior_in({"period": (2, 50)})
    assert model._fitted.mixture.data.parameters(leaf) == own
    assert extent * shape / rate == pytest.approx(12)
    assert extent * np.sqrt(shape) / rate == pytest.approx(0.05 * 12)
    model.refit(X[:40], y[:40])  # rows of another extent
    assert period_of(model) == pytest.approx(12, rel=0.02)


def test_a_model_with_known_periods_predicts_as_its_kernel_and_travels():
    X, y = seasonal(30)
    model = search(periods={"month": 12}, base_kernels=FEW, n_iter=0, max_leaves=1).fit(X, y)
    assert model.best_expression_ == "PER12[month]"
    assert_predicts_as_its_kernel(model, X, y, X + 0.3)
    expected = model.predict(X)
    again = through_json(model)
    np.testing.assert_array_equal(again.predict(X), expected)
    assert again.best_expression_ == model.best_expression_
    assert "repeats every 1" in model.describe()


def test_a_greedy_search_goes_on_from_the_start_kernel():
    X, y = seasonal(30)
    settings = {"strategy": "greedy", "base_kernels": ["LIN", "PER"], "n_iter": 3}
    model = search(start_kernel="LIN[month] + PER[month]", **settings)
    model.fit(X[["month"]], y + 0.2 * X["month"])
    history = model.search_history_
    assert history["n_leaves"][history["phase"] == "search"].max() >= 3  # base kernels grow to two


@pytest.mark.parametrize(
    ("start", "evaluated"),
    [
        ("LIN[month] + LIN[month] * LIN[other]", "LIN[month] + LIN[month] * LIN[other]"),
        ("LIN[month]", "LIN[month]"),  # it is in the design, and costs nothing
        ("NOISE", "NOISE"),
        ("PER[month] + LIN[other]", "PER12[month] + LIN[other]"),  # of the known period
    ],
)
def test_a_start_kernel_is_evaluated_besides_the_whole_design(start, evaluated, kept):
    X, y = seasonal(20)
    settings = {"n_iter": 0, "structure_prior": None, "base_kernels": SOME, "memory": kept}
    settings |= {"periods": {"month": 12}}
    plain = search(**settings).fit(X, y)
    model = search(**settings, start_kernel=start).fit(X, y)
    assert design_of(model) == {*design_of(plain), evaluated}


@pytest.mark.parametrize(
    ("other", "gone"),
    [
        ({"base_kernels": {"month": ("PER",), "other": ("SE",)}}, "LIN["),
        ({"base_kernels": {"other": ()}}, "other"),
        ({"operators": ["+"]}, " * "),
        ({"max_leaves": 1}, " + "),
        ({"periods": {"month": 4}}, "PER12"),
    ],
)
def test_a_warm_start_begins_again_in_another_space(other, gone, kept):
    X, y = seasonal(15)
    settings = {"base_kernels": SOME, "periods": {"month": 12}, "memory": kept}
    settings |= {"max_leaves": 2, "n_iter": 2, "strategy": "random"}
    model = search(**settings, warm_start=True).fit(X, y)
    assert any(gone in text for text in model.search_history_["kernel"])
    model.set_params(**other).fit(X, y)
    assert rows(model) == rows(search(**{**settings, **other}).fit(X, y))


WRONG = [
    ({"base_kernels": {"month": None}}, r"base_kernels\['month'\] must be 'auto' or a list.*None"),
    ({"base_kernels": {"month": ()}, "periods": {"month": 12}}, r"that are used.* column 0"),
    ({"periods": {"moth": 12}}, r"periods .*columns.*'month'.*got 'moth'"),
    ({"periods": {"month": -1}}, r"periods\['month'\] must be a positive number.*got -1"),
    ({"periods": {"month": "12"}}, r"periods\['month'\] must be a positive number.*got '12'"),
    ({"periods": {"month": [12, 12.0]}}, r"periods\['month'\] must hold periods that differ"),
    ({"periods": {2: 12}}, r"periods must have columns of X as keys.*got 2"),
    ({"periods": {"month": 12, 0: 4}}, r"periods must name each column once"),
    ({"periods": {True: 4}}, r"periods must have names or zero-based indices"),
    ({"periods": 12}, r"periods must be a mapping such as \{'month': 12\}.*got 12"),
    ({"base_kernels": {"day": ("SE",)}}, r"base_kernels must have columns of X.*got 'day'"),
    ({"base_kernels": {"month": ("SEE",)}}, r"base_kernels\['month'\] must be a selection.*'SEE'"),
    ({"base_kernels": {"*": ()}}, r"must leave base kernels to .*columns \[0, 1\] have"),
    ({"periods": {"month": np.timedelta64(7, "D")}}, r"days for dates, got np.timedelta64"),
    ({"start_kernel": "SE[day]"}, r"unknown column 'day'"),
    ({"start_kernel": "SE[month"}, r"expected"),
    ({"start_kernel": 3}, r"'start_kernel' parameter"),
    ({"start_kernel": [3]}, r"start_kernel must be a kernel such as"),
    ({"start_kernel": "MAT32[month]"}, r"start_kernel must be made of .*MAT32\[month\].*'PER'"),
    ({"start_kernel": "PER[month]", "periods": {"month": [12, 4]}}, r"made of .*'PER12', 'PER4'"),
    ({"start_kernel": "SE[0] + LIN[0] + PER[0] + RQ[1]"}, r"max_leaves=3 .*got 4: raise"),
    ({"start_kernel": "CP[month](SE[month], LIN[month])"}, r"a kernel that the search can reach"),
    ({"start_kernel": "SE[other]", "base_kernels": {"other": ()}}, r"its column has none"),
]


@pytest.mark.parametrize(("parameters", "message"), WRONG)
def test_wrong_knowledge_is_refused_before_the_search(parameters, message):
    X, y = seasonal(20)
    with pytest.raises((ValueError, TypeError), match=message):
        search(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("periods", "message"),
    [
        ({"t": 365.25}, r"period 365.25 of column 't' is much longer than its extent of 59"),
        ({"t": [12, 0.5]}, r"period 0.5 of column 't' is shorter than its smallest spacing of 1"),
        ({"c": 12}, r"periods of column 'c' have no effect, because the column is constant"),
    ],
)
def test_periods_that_the_data_cannot_show_are_warned_of_where_fit_is_called(periods, message):
    X = pd.DataFrame({"t": np.arange(60.0), "c": 1.0})
    model = search(periods=periods, base_kernels=("PER",), max_leaves=1, n_iter=0)
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit(X, np.sin(X["t"]))
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("values", "has_periods"),
    [
        ([0, 10, 20, 40, 80, 160, 320, 640], False),  # doses, of which one is in the upper half
        ([1, 2, 3, 4, 5], False),  # numbered trees
        ([1, 2, 3, 4, 5, 6, 7, 8], True),
        ([1, 2, 3, 4, 5, 6, 7, np.nan], False),
        (np.linspace(0, 1, 10), True),
    ],
)
def test_the_default_has_periods_if_two_cycles_of_four_values_can_be_seen(values, has_periods):
    x, y = np.asarray(values, dtype=float)[:, None], np.arange(len(values))

    def begin(**settings):
        model = search(start_kernel="PER[0]", **settings)
        with pytest.raises(KeyboardInterrupt):
            model.set_callbacks(At(interrupt, begun=1)).fit(x, y)

    begin(base_kernels=["SE", "PER"])
    if has_periods:
        begin()
    else:
        with pytest.raises(ValueError, match="four values in each of two cycles; name PER in base"):
            begin()
