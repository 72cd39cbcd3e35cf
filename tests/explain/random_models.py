"""Random models of data of all kinds, and what their words must not hold."""

import re
import warnings
from contextlib import suppress
from html import unescape

import numpy as np
import pandas as pd

from autokernel import AutoKernelGPRegressor, EvaluationError
from autokernel.export import to_latex, write_report
from autokernel.expression import Grammar
from autokernel.kernels import BASE_KERNELS, OPERATORS
from autokernel.search import STRATEGIES
from tests.fits import SEARCHES, At, interrupt

NO_WORDS = re.compile(r"(?<![\w\[])(nan|-?inf|NaN|NaT|None|nat)(?!\w)")
NO_SENTENCES = re.compile(r"(^|[.:;,(]) ?[.:;,)]|\( |  |by \.| (is|are|and|of|to|by)\.|\{|\}|^$")
SIZES = 5, 8, 12, 20, 40, 60, 100, 200, 500, 1000, 1200, 3000
LETTERS = np.array([*"abcdefghijklmnopqrstuvwxyz"])
MAX_REFITTED = 60  # rows, with which an odd kernel is fitted in a second or two
MANY_ROWS = 200  # from which not all is said, as each text takes seconds


def _levels(rng, n, k):
    return pd.Series(rng.choice(LETTERS[:k], n)).astype(object)


def _rare(rng, n):
    found = _levels(rng, n, 2)
    found.iloc[rng.integers(n)] = "rare"
    return found


def _gaps(rng, n, values, share):
    found = pd.Series(values).copy()
    found[rng.uniform(size=n) < share] = np.nan
    return found


KINDS = {
    "uniform": lambda rng, n, x: x,
    "spaced": lambda rng, n, x: np.linspace(0, 10, n),
    "tiny": lambda rng, n, x: 1e-12 * x,
    "huge": lambda rng, n, x: 1e15 * x - 5e14,
    "far": lambda rng, n, x: 1e9 + x,
    "skewed": lambda rng, n, x: np.exp(rng.normal(0, 3, n)),
    "counts": lambda rng, n, x: rng.poisson(1.0, n),
    "two values": lambda rng, n, x: np.round(x),
    "one differs": lambda rng, n, x: (np.arange(n) == n // 2).astype(float),
    "constant": lambda rng, n, x: np.full(n, 3.0),
    "days": lambda rng, n, x: pd.date_range("2000-01-01", periods=n),
    "months": lambda rng, n, x: pd.date_range("1900-01-01", periods=n, freq="MS"),
    "same days": lambda rng, n, x: (
        pd.Timestamp("2020-02-29") + pd.to_timedelta(np.sort(rng.integers(0, 1 + n // 3, n)), "D")
    ),
    "seconds": lambda rng, n, x: pd.Timestamp("2020-02-29") + pd.to_timedelta(np.sort(60 * x), "s"),
    "levels": lambda rng, n, x: _levels(rng, n, 3),
    "a rare level": lambda rng, n, x: _rare(rng, n),
    "many levels": lambda rng, n, x: _levels(rng, n, 26) + _levels(rng, n, 2),
    "ordered": lambda rng, n, x: pd.Categorical(
        rng.choice(LETTERS[:4], n), [*"abcdef"], ordered=True
    ),
    "bool": lambda rng, n, x: x > 0.5,
    "some gaps": lambda rng, n, x: _gaps(rng, n, x, 0.1),
    "many gaps": lambda rng, n, x: _gaps(rng, n, 100 * x, 0.7),
    "levels with gaps": lambda rng, n, x: _gaps(rng, n, _levels(rng, n, 3), 0.2),
}


TARGETS = {
    "plain": lambda rng, f: f,
    "noise": lambda rng, f: rng.normal(size=len(f)),
    "cauchy": lambda rng, f: f + 0.1 * rng.standard_cauchy(len(f)),
    "constant": lambda rng, f: np.full(len(f), 7.0),
    "no noise": lambda rng, f: np.round(f, 12),
    "rounded": lambda rng, f: np.round(2 * f) / 2,
    "integers": lambda rng, f: np.round(f),
    "zeros": lambda rng, f: np.where(f < np.median(f), 0.0, f),
    "huge with zeros": lambda rng, f: np.where(rng.uniform(size=len(f)) < 0.3, 0.0, 1e6 + f),
    "million": lambda rng, f: 1e6 * (1 + f),
    "tiny": lambda rng, f: 1e-12 * f,
    "giant": lambda rng, f: 1e18 * f,
    "far": lambda rng, f: 1e9 + f,
    "positive": lambda rng, f: np.exp(f),
    "decades": lambda rng, f: np.exp(np.clip(4 * f, -30, 30)),
    "shares": lambda rng, f: 1 / (1 + np.exp(-2 * f)),
    "ends of shares": lambda rng, f: np.clip(0.5 + 0.4 * f, 0, 1),
    "counts": lambda rng, f: rng.poisson(np.exp(np.clip(f, -5, 5))).astype(float),
    "two values": lambda rng, f: (f > 0).astype(float),
    "one differs": lambda rng, f: (np.arange(len(f)) == 1).astype(float),
    "outlier": lambda rng, f: np.where(np.arange(len(f)) == 2, 1e4, f),
}


def effect_of(rng, column):
    """Return a random function of a column, with a standard deviation of about one."""
    series = pd.Series(column)
    if series.dtype.kind in "OU" or series.dtype.name in ("category", "str"):
        codes = pd.factorize(series)[0]
        return rng.normal(size=codes.max() + 2)[codes]
    x = series.astype("int64") if series.dtype.kind == "M" else series.astype(float)
    x = x.fillna(x.median()).fillna(0.0).to_numpy(dtype=float)
    x = (x - x.min()) / (np.ptp(x) or 1.0)
    n_waves, phase = rng.uniform(0.2, 8), rng.uniform(0, 6)
    curves = 3 * x, np.sin(6 * n_waves * x + phase), 2.0 * (x > 0.6), 4 * x**2
    return curves[rng.integers(4)]


def random_data(rng, *, sizes=SIZES, max_columns=12):
    """Return a frame, a target, and weights or errors of the rows."""
    n, n_columns = int(rng.choice(sizes)), int(rng.integers(1, max_columns + 1))
    columns = {}
    for number in range(1 if rng.uniform() < 0.25 else n_columns):
        kind = rng.choice([*KINDS])
        columns[f"{kind} {number}"] = KINDS[kind](rng, n, rng.uniform(size=n))
    if rng.uniform() < 0.15:
        columns["twin"] = next(iter(columns.values()))
    X = pd.DataFrame(columns)
    if rng.uniform() < 0.1:
        X = X.iloc[rng.permutation(n)].reset_index(drop=True)
    used = rng.permutation(X.shape[1])[: rng.integers(0, 4)]
    effects = [rng.exponential() * effect_of(rng, X.iloc[:, one]) for one in used]
    f = sum(effects, np.zeros(n)) + rng.choice([0.0, 1e-3, 0.1, 1.0]) * rng.normal(size=n)
    if len(used) > 1 and rng.uniform() < 0.4:
        f = f + 2 * effects[0] * effects[1]
    kind = rng.choice([*TARGETS])
    y = pd.Series(TARGETS[kind](rng, f), name=rng.choice(["y", "sales", kind]))
    rows = {}
    if rng.uniform() < 0.15:
        rows["sample_weight"] = rng.integers(0, 4, n) + (np.arange(n) < 5)
    elif rng.uniform() < 0.15:
        rows["noise_std"] = 0.1 * float(y.std() or 1) * rng.uniform(0.5, 2, n)
    return X, y, rows


def random_settings(rng, X, y, *, max_time):
    """Return random settings of an estimator that the data allow."""

    def choice(*values):
        return values[rng.integers(len(values))]

    scales = ["sqrt", "log"] * bool(y.min() > 0) + ["logit"] * bool(0 < y.min() <= y.max() < 1)
    seconds = float(max_time * 10 ** -rng.uniform(0, 3))
    return {
        **choice({"max_time": seconds}, {"max_time": 5 * max_time, "n_iter": int(rng.integers(4))}),
        "strategy": choice(*STRATEGIES) if X.shape[1] == 1 else choice(*SEARCHES),
        "approximation": choice("auto", "auto", "exact", "inducing", "neighbours"),
        "operators": choice(("+", "*"), ("+", "*"), ("+", "*", "cp", "cw")),
        "criterion": choice("laplace", "laplace", "bic", "loo", "importance"),
        "averaging": choice("posterior", "posterior", None),
        "target_scale": choice("auto", "auto", "auto", "identity", *scales),
        "outliers": choice("auto", None),
        "base_kernels": choice(
            "auto", "auto", ("SE", "LIN"), ("SE", "LIN", "PER"), ("RW", "IRW", "IOU", "SE")
        ),
        "n_inducing": choice(512, 20),
        "random_state": int(rng.integers(1000)),
    }


def random_kernel(rng, model):
    """Return an odd kernel of the columns of a model."""
    kernels = [BASE_KERNELS[name] for name in ("SE", "LIN", "PER", "CAT", "RW", "IOU")]
    columns = tuple(range(model.n_features_in_))
    grammar = Grammar(tuple(kernels), tuple(OPERATORS.values()), columns, 4)
    expression = grammar.leaves[rng.integers(len(grammar.leaves))]
    for _ in range(rng.integers(4)):
        neighbours = grammar.neighbours(expression)
        expression = neighbours[rng.integers(len(neighbours))]
    return expression


def random_model(seed, *, max_time=1.0, **limits):
    """Fit a model to random data, with odd ends; returns it with its inputs."""
    rng = np.random.default_rng(seed)
    X, y, rows = random_data(rng, **limits)
    settings, how = random_settings(rng, X, y, max_time=max_time), rng.uniform()
    if len(y) > 1200 and settings["approximation"] == "exact":
        settings["approximation"] = "auto"
    model = AutoKernelGPRegressor(**settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(KeyboardInterrupt, EvaluationError, ValueError):  # data may be refused
            if how < 0.2:
                model.set_callbacks(At(interrupt, begun=int(rng.integers(1, 6))))
            model.fit(X, y, **rows)
        if hasattr(model, "best_kernel_") and how > 0.7 and len(y) <= MAX_REFITTED:
            with suppress(EvaluationError, ValueError):
                model.refit(X, y, random_kernel(rng, model), **rows)
    return model, X


def words_of(model, X, folder=None):
    """Yield all that is said of a model, by where it is said."""
    yield "describe", str(model.describe())
    if len(X) < MANY_ROWS:
        yield "short", str(model.describe(short=True))
        claims = model.claims_
        yield from (("claim", text) for text in claims["text"])
        yield "claims_", repr(claims)
    found = model.decompose()
    numbers = [found.constant, found.noise_std]
    for one in found.components:
        numbers += [one.share, *one.mean, *one.std]
        yield "component", one.text
    assert np.isfinite(numbers).all()
    yield "decompose", repr(found)
    row = X.iloc[[0]]
    table = model.explain(row)
    own = slice(0, -1 - found.has_rest)
    assert np.isfinite([*table["contribution"], *table["low"][own], *table["high"][own]]).all()
    yield "explain", repr(table)
    for name in ("inclusion_probabilities_", "posterior_", "scales_", "parameters_"):
        yield name, repr(getattr(model, name))
    for name in ("depends", "repeats", "linear"):
        p, is_open = model.inclusion_probabilities_[name], np.zeros(X.shape[1], bool)
        is_open[list(model._fitted.unjudged)] = True
        assert np.all(np.where(is_open, np.isnan(p), (p >= 0) & (p <= 1 + 1e-9)))
    if hasattr(model, "search_history_"):
        yield "leaderboard", repr(model.leaderboard())
    yield "latex", to_latex(model)
    if folder is not None:
        page = write_report(model, folder / "report.html").read_text(encoding="utf-8")
        for kind in ("style", "script", "svg", "pre"):
            page = re.sub(rf"<{kind}.*?</{kind}>", "", page, flags=re.DOTALL)
        texts = re.findall(r">([^<>]+)<", page)
        yield from (
            ("report", unescape(text).strip()) for text in texts if text.strip() not in ("", "None")
        )


SENTENCES = "describe", "short", "claim", "component"


def faults_of(model, X, folder=None):
    """List what is wrong with the words of a model."""
    found = []
    for where, text in words_of(model, X, folder):
        if where != "latex":
            found += [f"{where}: {text!r}"] if NO_WORDS.search(text) else []
        elif re.search("nan|inf(?!ty)|None", text):
            found.append(f"{where}: {text!r}")
        if where in SENTENCES:
            for line in text.split("\n"):
                if (line or where != "describe") and NO_SENTENCES.search(line):
                    found.append(f"{where}: {line!r}")
    return found
