"""What is claimed of data with a known truth is true, and what is true is claimed."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from autokernel import AutoKernelGPRegressor
from tests.fits import tiny
from tests.stories.confirming import unconfirmed
from tests.stories.generators import STORIES, agrees, facts_of, story
from tests.stories.reading import Reader

QUICK = {  # by a small search, or with a kernel that is given
    "a_line": None,
    "noise_only": None,
    "a_trend_with_a_season": "LIN[month] + PER[month]",
    "a_change_point": "CP[x](LIN[x], PER[x])",
    "subjects_with_slopes": "CAT[subject] * LIN[day]",
}


@cache
def fitted(name, seed, *, is_quick):
    found = story(name, seed)
    if not is_quick:
        model = AutoKernelGPRegressor(operators=found.operators, random_state=seed)
        return found, model.fit(found.X, found.y)
    found, kernel = replace(found, X=found.X[::2], y=found.y[::2]), QUICK[name]
    model = tiny(max_leaves=2, operators=found.operators)
    if kernel is None:
        return found, model.fit(found.X, found.y)
    return found, model.set_params(base_kernels="auto").refit(found.X, found.y, kernel)


@pytest.mark.parametrize(
    ("name", "seed", "is_quick"),
    [
        *((name, 0, True) for name in QUICK),
        *(
            pytest.param(name, seed, False, marks=pytest.mark.slow)
            for name in STORIES
            for seed in (0, 7)
        ),
    ],
)
def test_claims_are_true_and_what_is_true_is_claimed(name, seed, is_quick):
    found, model = fitted(name, seed, is_quick=is_quick)
    facts = dict(facts_of(pd.DataFrame(model.claims_)))
    false = {fact: p for fact, p in facts.items() if not agrees(fact, found.true | found.optional)}
    assert not {fact for fact, p in false.items() if p > 0.9}
    made = frozenset(facts)
    assert not {fact for fact in found.true if not agrees(fact, made)}
    assert not list(Reader(model, found.X, found.y).wrong())
    assert unconfirmed(model, found.X)[1] == []


def on_scales(seed=0, n=40):
    """Data whose columns and targets are simple on other scales, by kernels that have them."""
    rng = np.random.default_rng(seed)
    e, years = rng.normal(size=n), np.linspace(0, 10, n)
    time = pd.DataFrame({"time": 2000 + years})
    age = np.exp(rng.uniform(0, np.log(365), n))
    X = pd.DataFrame({"age": age, "group": rng.integers(0, 2, n), "water": rng.uniform(1, 2, n)})
    wave, log_age, group = np.sin(2 * np.pi * years), np.log(age), X["group"]
    return {
        "log(y) ~ LIN[time] + PER[time]": (time, np.exp(2 + 0.1 * years + 0.3 * wave + 0.05 * e)),
        "log(y) ~ LIN[time] + PER[time] * LIN[time]": (
            time,
            np.exp(2 - 0.1 * years + 0.04 * years * wave + 0.02 * e),
        ),
        "log(y) ~ SE[time]": (time, np.exp(np.sin(years) + 0.05 * e)),
        "LIN[log(age)] + PER[age]": (
            pd.DataFrame({"age": 1 + 3 * years}),
            3 * np.log(1 + 3 * years) + np.sin(3 * years) + 0.05 * e,
        ),
        "log(y) ~ NOISE": (time, np.exp(e)),
        "LIN[log(age)] * LIN[water]": (X, 7 * log_age * X["water"] + 0.3 * e),
        "SE[log(age)] + SE[water]": (X, (age > 20) - (X["water"] - 1.4) ** 2 + 0.02 * e),
        "log(y) ~ LIN[log(age)] + LIN[group]": (X, np.exp(0.4 * log_age - 0.5 * group + 0.1 * e)),
        "log(y) ~ SE[log(age)]": (X[["age"]], np.exp(-((log_age - 3) ** 2) / 2 + 0.05 * e)),
        "sqrt(y) ~ LIN[sqrt(age)] + LIN[group]": (
            X,
            (3 + 0.4 * np.sqrt(age) - 0.5 * group + 0.1 * e) ** 2,
        ),
        "log(y) ~ LIN[sqrt(age)]": (X, np.exp(0.2 * np.sqrt(age) + 0.1 * e)),
        "logit(y) ~ SE[time]": (time, 1 / (1 + np.exp(-np.sin(years) + 0.1 * e))),
        "log(y) ~ LIN[x]": (pd.DataFrame({"x": 1e-3 * years}), np.exp(years + 0.1 * e)),
    }


def in_tables(seed=0, n=60):
    """Tables with levels, dates, interactions and effects that oppose, by kernels that fit them."""
    rng = np.random.default_rng(seed)
    e, noise = rng.normal(size=n), 0.05 * rng.normal(size=n)
    X = pd.DataFrame(rng.uniform(size=(n, 3)), columns=list("abc"))
    shop, old = rng.integers(0, 8, n), rng.integers(0, 2, n)
    X = X.assign(shop=[f"s{level}" for level in shop], kind=np.where(old, "old one", "new one"))
    X = X.assign(copy=X["a"] + 0.1 * e, date=pd.date_range("2015-01-04", periods=n, freq="30D"))
    (a, b, c), height, years = X[["a", "b", "c"]].to_numpy().T, rng.normal(size=8)[shop], 0.08
    t = years * np.arange(n)
    data = {
        "log(y) ~ CAT[shop] + CAT[shop] * LIN[a] + SE[b]": np.exp(height * (1 + a) + np.sin(6 * b)),
        "CAT[shop] * CAT[kind]": 100 + height * (1 + 2 * old),
        "LIN[a] + CAT[shop]": 100 + 3 * height + a,
        "LIN[date] + PER[date] + LIN[a]": 3 * t + 2 * np.sin(2 * np.pi * t) + 2 * a,
        "SE[date] * LIN[a] + CAT[kind]": 3 * t * a + 2 * old,
        "sqrt(y) ~ LIN[a] + LIN[a] * LIN[b]": (3 - 2 * a + 2 * a * b) ** 2,
        "logit(y) ~ SE[a] + LIN[b] + CAT[kind]": 1 / (1 + np.exp(b - old - 8 * (a - 0.5) ** 2)),
        "SE[a] * CAT[kind] + SE[a]": 5 + np.sin(7 * a) * (1 + old),
        "SE[a] * SE[b]": 5 + np.sin(7 * a) * b,
        "LIN[a] + LIN[copy]": 5 + 2 * a - X["copy"].to_numpy(),
        "log(y) ~ LIN[a] * LIN[b] + SE[c]": np.exp(2 * a * b - 3 * (c - 0.5) ** 2),
        "log(y) ~ CAT[shop] * SE[a] * LIN[b]": np.exp(height * np.sin(4 * a) * (0.3 + b)),
    }
    return {
        kernel: (X[[name for name in X if f"[{name}]" in kernel]], y * (1 + noise))
        for kernel, y in data.items()
    }


ALWAYS = (
    "SE[log(age)] + SE[water]",
    "log(y) ~ NOISE",
    "LIN[log(age)] * LIN[water]",
    "logit(y) ~ SE[time]",
    "sqrt(y) ~ LIN[sqrt(age)] + LIN[group]",
    "log(y) ~ CAT[shop] + CAT[shop] * LIN[a] + SE[b]",
    "logit(y) ~ SE[a] + LIN[b] + CAT[kind]",
    "CAT[shop] * CAT[kind]",
    "SE[a] * CAT[kind] + SE[a]",
    "LIN[a] + LIN[copy]",
)
WITH_KERNELS = on_scales() | in_tables()
MARKED = [
    pytest.param(kernel, marks=[] if kernel in ALWAYS else [pytest.mark.slow])
    for kernel in WITH_KERNELS
]


@pytest.mark.parametrize("kernel", MARKED)
def test_sentences_about_given_kernels_are_true(kernel):
    X, y = WITH_KERNELS[kernel]
    model = AutoKernelGPRegressor(outliers=None, random_state=0).refit(X, y, kernel)
    assert not list(Reader(model, X, pd.Series(y)).wrong())
    assert unconfirmed(model, X)[1] == []
