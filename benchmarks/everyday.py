"""How well the default does on groups, doses, noise that varies, and days that do not fit.

Each row is one fit of one method to one split. Seven questions:

- ``groups``: eight tables of people, animals, trees, machines, rails and firms, each with several
  rows. The earlier rows of each group are for training, 50 to 80 % of them by the split, less one
  row in ten at random; the later rows are the test. Machines and rails have no time: rows of each
  cell are drawn at random.
- ``doses``: eight dose-response experiments, two thirds of their rows to train.
- ``noise``: 40 simulated sets of 150 rows and three columns, 16 of them with constant noise. In the
  others, the standard deviation depends on a column or on the mean. The test has 10,000 rows.
- ``riders``: two years of daily riders of a station in Chicago; the last 28 days are the test.
- ``motorcycle``: head accelerations in crashes, four fifths of the rows to train.
- ``unseen``: the tables of ``groups`` again. A random quarter of the groups is the test.
- ``levels``: 120 simulated tables of 3 to 12 levels with 20 rows each, in which level, slope and
  season are common or differ. The test has the rows of four more levels.

Four methods:

- ``default``: the estimator with its defaults;
- ``catboost``: CatBoost with its defaults, if it is installed; it has no predictive density;
- ``mixed``: a linear mixed model by REML, if statsmodels is installed. It has a fixed effect of
  each column but the group, a natural cubic spline of time for curves, and for each group a random
  intercept and slope in time, or random effects of the three machines. Without convergence, the
  intercept is the only random effect, and ``note`` says so, as it does for a singular covariance;
- ``loglogistic``: the log-logistic curve of four parameters by least squares, one for each
  herbicide, formulation or assay, with constant normal noise.

RMSE, NLL and coverage of 95 % intervals are for new observations. Errors are in standard deviations
of the target over the whole table, and the NLL is for the target in this unit; ``rmse_raw`` and
``nll_raw`` are for the unit of the table. For simulated sets, ``worst_third`` is the coverage
furthest from 0.95 in a third of ``x`` or ``z``, or in a level of ``c``, and ``mean_coverage`` the
mean over these parts. ``found`` is what the model says of its noise or, of ``levels``, what
differs by its kernel: an addend with ``PER`` beside ``CAT`` is a season that differs, one with
another kernel of time beside it a slope, and all of them levels. ``nll_of_truth`` is the NLL of
the law that the data were drawn from. ``true_gain`` is what the training rows can say about the
noise: the gain in log likelihood, in nats, of the true form of its standard deviation over a
constant, both fitted, with the true mean.

The data sets were chosen before the first fit of the default. Constants of the package were chosen
on ``oxboys`` and ``firms``, among others, and the kernel of groups in the design on the first half
of ``levels``, but nothing on the other sets.

Rows go to results/everyday.csv; rows of any commit count. ``--label`` names the version that runs,
which is compared with ``--against``; rows of other packages have no label.

    python benchmarks/everyday.py                                  # half an hour of CPU time
    python benchmarks/everyday.py --small                          # one split of each, 4 minutes
    python benchmarks/everyday.py --questions noise --label mine --against before54
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from common import (  # isort: skip
    Row,
    collect,
    group,
    make_parser,
    numbers,
    parse,
    print_table,
    read_rows,
    rounded,
)
from accuracy import (  # isort: skip
    Split,
    assess,
    assess_normal,
    can_measure,
    compare,
    errors,
    predict_by_catboost,
)
from tables import of_r  # isort: skip

import numpy as np
import pandas as pd
from scipy import special
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import OptimizeResult, approx_fprime, least_squares, minimize

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.expression import IDENTITY
from autokernel.expression.parts import addends

NAME = "everyday"  # of the CSV file
Table = Callable[[], tuple[pd.DataFrame, np.ndarray]]

SHARES = np.linspace(0.5, 0.8, 10)  # of the rows of a group that are earlier, one for each split
SHARE_DROPPED = 0.1  # of the earlier rows
SHARE_UNSEEN = 0.25  # of the groups
SHARE_OF_DOSES = 2 / 3  # of the rows to train on
SHARE_OF_CRASHES = 0.8
N_DAYS, N_DAYS_AHEAD = 730, 28
N_TRAIN, N_TEST = 150, 10_000  # rows of a simulated set
MIN_PART = 200  # test rows of a part whose coverage counts
LEVELS = "abcd"  # of the simulated category
BOUNDS = {  # of the parameters of noise that are fitted; a narrow bump could hold one row
    "bump": [(None, None), (0, None), (0, 1), (0.05, 0.5)],
}
N_SPLITS_FIRST = 3  # splits of all questions that are measured before any other
OPTIMIZERS = ("powell", "bfgs")  # of mixed models; by gradients, some stop far from the maximum
MIN_RELATIVE_DEVIATION = 1e-4  # of a random effect, in deviations of the noise, as in lme4
SINGULAR, ONLY_INTERCEPT, NO_EFFECTS = "singular", "random intercept only", "no random effects"


@dataclass(frozen=True, slots=True)
class Fit:
    """What a row is measured for; ``label`` is empty for other packages."""

    label: str
    question: str
    dataset: str
    split: int
    method: str


@dataclass(frozen=True, slots=True)
class Grouped:
    """A table with groups, and the formulas of its mixed model."""

    table: Table
    group: str
    time: str | None
    fixed: str
    random: str


@dataclass(frozen=True, slots=True)
class Dosed:
    """A table of responses to doses; ``level`` is the column of what has its own curve."""

    table: Table
    dose: str
    level: str | None = None


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Law:
    """The law of a simulated set: its columns, its mean, and its kind of noise."""

    kind: str
    column: str  # that a linear log standard deviation depends on
    X: pd.DataFrame
    mean: np.ndarray
    params: np.ndarray  # of the noise

    def log_std(self, theta: np.ndarray) -> np.ndarray:
        """Compute the log standard deviation of the noise of all rows."""
        match self.kind:
            case "constant":
                return np.full(len(self.X), theta[0])
            case "linear":
                return theta[0] + theta[1] * self.X[self.column].to_numpy()
            case "bump":
                distance = (self.X["x"].to_numpy() - theta[2]) / theta[3]
                return theta[0] + theta[1] * np.exp(-(distance**2) / 2)
            case "level":
                return theta[self.X["c"].cat.codes]
            case _:
                return theta[0] + np.log(self.mean - self.mean.min() + np.exp(theta[1]))


def curve_of(name: str) -> str:
    """Return the formula of a natural cubic spline of one column."""
    return f"cr({name}, df=3, constraints='center')"


GROUPED: Mapping[str, Grouped] = {
    "sleepstudy": Grouped(
        of_r("lme4", "sleepstudy", "Reaction", groups=["Subject"]),
        *("Subject", "Days", "Days", "Days"),
    ),
    "oranges": Grouped(
        of_r("datasets", "Orange", "circumference", groups=["Tree"]),
        *("Tree", "age", curve_of("age"), "age"),
    ),
    "chicks": Grouped(
        of_r("datasets", "ChickWeight", "weight", groups=["Chick", "Diet"]),
        *("Chick", "Time", f"{curve_of('Time')} + Diet", "Time"),
    ),
    "theophylline": Grouped(
        of_r("datasets", "Theoph", "conc", groups=["Subject"]),
        *("Subject", "Time", f"{curve_of('Time')} + Wt + Dose", "Time"),
    ),
    "oxboys": Grouped(
        of_r("nlme", "Oxboys", "height", ["Subject", "age"], groups=["Subject"]),
        *("Subject", "age", "age", "age"),
    ),
    "machines": Grouped(
        of_r("nlme", "Machines", "score", groups=["Worker", "Machine"]),
        *("Worker", None, "Machine", "Machine"),
    ),
    "rails": Grouped(
        of_r("nlme", "Rail", "travel", groups=["Rail"]),
        *("Rail", None, "1", "1"),
    ),
    "firms": Grouped(
        of_r("plm", "Grunfeld", "inv", groups=["firm"]),
        *("firm", "year", "year + value + capital", "year"),
    ),
}

DOSED: Mapping[str, Dosed] = {  # rows, curves
    "ryegrass": Dosed(of_r("drc", "ryegrass", "rootl"), "conc"),  # 24, 1
    "mustard": Dosed(  # 68, 2
        of_r("drc", "S.alba", "DryMatter", groups=["Herbicide"]), "Dose", "Herbicide"
    ),
    "cleavers": Dosed(  # 240, 2; the rows without herbicide belong to the first
        of_r("drc", "G.aparine", "drymatter", groups=["treatment"]), "dose", "treatment"
    ),
    "spinach": Dosed(  # 105, 5
        of_r("drc", "spinach", "SLOPE", ["DOSE", "CURVE"], groups=["CURVE"]), "DOSE", "CURVE"
    ),
    "growth": Dosed(of_r("drc", "etmotc", "rgr1", ["dose1"]), "dose1"),  # 57, 1
    "algae": Dosed(of_r("drc", "S.capricornutum", "count"), "conc"),  # 18, 1
    "trout": Dosed(of_r("drc", "O.mykiss", "weight"), "conc"),  # 61, 1
    "leaves": Dosed(of_r("drc", "leaflength", "DW"), "Dose"),  # 42, 1; it rises before it falls
}

PARTS = ("level", "slope", "season")  # that differ in simulated tables
TRUTHS = ("nothing", "level", "level_slope", "level_season", "level_slope_season")
N_OF_TRUTH, N_OF_LEVEL, N_NEW_LEVELS = 24, 20, 4  # tables of each, rows, and levels of the test

KINDS = {"constant": 16, "linear": 6, "bump": 6, "level": 6, "mean": 6}  # sets of a kind of noise
RIDERS = ("date", "date-weekday")
DATASETS: Mapping[str, Sequence[str]] = {
    "groups": list(GROUPED),
    "doses": list(DOSED),
    "noise": [f"{kind}-{number}" for kind, n in KINDS.items() for number in range(n)],
    "riders": RIDERS,
    "motorcycle": ["mcycle"],
    "unseen": list(GROUPED),
    "levels": [f"{truth}-{number}" for number in range(N_OF_TRUTH) for truth in TRUTHS],
}
METHODS = {
    "groups": ("default", "catboost", "mixed"),
    "doses": ("default", "loglogistic"),
    "noise": ("default",),
    "riders": ("default",),
    "motorcycle": ("default",),
    "unseen": ("default", "catboost", "mixed"),
    "levels": ("default",),
}
N_SPLITS = {"noise": 1, "riders": 1, "levels": 1}  # of questions that have fewer than others
OF_OTHERS = {"catboost": "catboost", "mixed": "statsmodels"}  # methods and their packages
SMALL = [  # data sets of the small form
    *(name for question in ("groups", "doses", "motorcycle") for name in DATASETS[question]),
    *(f"{kind}-0" for kind in KINDS),
    *RIDERS,
]


def parted(X: pd.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> Split:
    """Take the rows of a split; training rows know no other levels than theirs."""
    X_train = X.iloc[train]
    for name in X_train.select_dtypes("category"):
        X_train = X_train.assign(**{name: X_train[name].cat.remove_unused_categories()})
    return Split(X_train, y[train], X.iloc[test], y[test], float(y.std()))


def cells_of(X: pd.DataFrame, names: Sequence[str]) -> list[np.ndarray]:
    """Return the positions of the rows that agree in the named columns."""
    return [np.asarray(rows) for rows in X.groupby(list(names), observed=True).indices.values()]


def one_of_each(cells: Iterable[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Draw a row of each cell."""
    return np.array([rng.choice(rows) for rows in cells], dtype=int)


def known_groups(dataset: str, split: int) -> Split:
    """Part the earlier rows of each group, less a few, from the later ones."""
    design = GROUPED[dataset]
    X, y = design.table()
    rng = np.random.default_rng(split)
    share = SHARES[7 * split % len(SHARES)]  # so that the first splits are not alike
    cells = cells_of(X, [design.group] if design.time else list(X.columns))
    earlier = []
    for rows in cells:
        order = X[design.time].to_numpy()[rows].argsort(kind="stable") if design.time else None
        ordered = rng.permutation(rows) if order is None else rows[order]
        n = max(min(round(share * len(rows)), len(rows) - 1), 1)
        earlier.append(ordered[:n])
    begun = np.concatenate(earlier)
    free = np.setdiff1d(begun, one_of_each(earlier, rng))
    dropped = rng.choice(free, min(round(SHARE_DROPPED * len(begun)), len(free)), replace=False)
    return parted(X, y, np.setdiff1d(begun, dropped), np.setdiff1d(np.arange(len(y)), begun))


def unseen_groups(dataset: str, split: int) -> Split:
    """Part a random quarter of the groups from the others."""
    design = GROUPED[dataset]
    X, y = design.table()
    names = X[design.group].astype(str)
    levels = sorted(set(names))
    n = max(round(SHARE_UNSEEN * len(levels)), 1)
    is_test = names.isin(np.random.default_rng(split).choice(levels, n, replace=False)).to_numpy()
    return parted(X, y, np.flatnonzero(~is_test), np.flatnonzero(is_test))


def doses(dataset: str, split: int) -> Split:
    """Draw two thirds of the rows, with each dose that has two rows or more."""
    design = DOSED[dataset]
    X, y = design.table()
    rng = np.random.default_rng(split)
    cells = [*cells_of(X, [design.dose]), *cells_of(X, list(X.columns))]
    kept = np.unique(one_of_each([rows for rows in cells if len(rows) > 1], rng))
    others = rng.permutation(np.setdiff1d(np.arange(len(y)), kept))
    n_more = max(round(SHARE_OF_DOSES * len(y)) - len(kept), 0)
    train = np.concatenate([kept, others[:n_more]])
    return parted(X, y, np.sort(train), np.sort(others[n_more:]))


def riders(dataset: str, _: int) -> Split:
    """Part the last four weeks of two years; the day of the week is a column or is not."""
    X, y = of_r("modeldata", "Chicago", "ridership", ["date"])()
    X = X.assign(date=pd.to_datetime(X["date"])).iloc[-N_DAYS:]
    if dataset == "date-weekday":
        X = X.assign(weekday=X["date"].dt.day_name().astype("category"))
    train, test = np.split(np.arange(N_DAYS), [N_DAYS - N_DAYS_AHEAD])
    return parted(X, y[-N_DAYS:], train, test)


def motorcycle(_: str, split: int) -> Split:
    """Draw four fifths of the rows."""
    X, y = of_r("MASS", "mcycle", "accel")()
    order = np.random.default_rng(split).permutation(len(y))
    return parted(X, y, *np.split(order, [round(SHARE_OF_CRASHES * len(y))]))


def several_levels(dataset: str, _: int) -> Split:
    """Draw a line and a wave for each of several levels, the last four of them for the test."""
    truth, number = dataset.split("-")
    rng = np.random.default_rng(TRUTHS.index(truth) + len(TRUTHS) * int(number))
    n_levels = int(rng.integers(3, 13))
    n_all, differs, period = n_levels + N_NEW_LEVELS, truth.split("_"), rng.uniform(0.1, 0.25)

    def draw(part: str, mean: float, std: float) -> np.ndarray:
        each = rng.normal(mean, std, n_all if part in differs else 1)
        return np.broadcast_to(each, n_all)

    level, slope = draw("level", 0.0, 1.5), draw("slope", 1.0, 2.0)
    wave = np.stack([draw("season", 0.0, 1.0), draw("season", 1.0, 1.0)])
    which = np.repeat(np.arange(n_all), N_OF_LEVEL)
    t = rng.uniform(0, 1, len(which))
    angle = 2 * np.pi * t / period
    y = level[which] + slope[which] * t + wave[0, which] * np.cos(angle)
    y += wave[1, which] * np.sin(angle) + rng.normal(0, 0.3, len(which))
    X = pd.DataFrame({"time": t, "shop": pd.Categorical([f"s{one}" for one in which])})
    return parted(X, y, *np.split(np.arange(len(y)), [N_OF_LEVEL * n_levels]))


def differing(model: AutoKernelGPRegressor) -> str:
    """Say which parts differ between levels in the functions of the best kernel."""
    found: set[str] = set()
    expression = parse_expression(model.best_expression_, feature_names=["time", "shop"])
    for addend in addends(expression.on(IDENTITY)):
        names = {leaf.kernel.name for leaf in addend.expression.leaves}
        if "CAT" in names:
            found |= {"level"} | ({"season"} if "PER" in names else set())
            found |= {"slope"} if names - {"CAT"} and "PER" not in names else set()
    return "_".join(part for part in PARTS if part in found) or "nothing"


def noisy(dataset: str, _: int) -> Split:
    """Part the training rows of a simulated set from the others."""
    law, y = simulate(dataset)
    train, test = np.split(np.arange(N_TRAIN + N_TEST), [N_TRAIN])
    return parted(law.X, y, train, test)


def simulate(dataset: str) -> tuple[Law, np.ndarray]:
    """Draw a smooth function of ``x`` plus an effect of each level of ``c``, and the noise.

    The typical standard deviation of the noise is 0.15 to 0.5 of the standard deviation of the
    mean.
    """
    kind, number = dataset.split("-")
    rng = np.random.default_rng([list(KINDS).index(kind), int(number)])
    x, z = rng.uniform(size=(2, N_TRAIN + N_TEST))
    codes = rng.integers(len(LEVELS), size=len(x))
    frequencies, phases = rng.uniform(0.2, 1.5, size=4), rng.uniform(0, 2 * np.pi, size=4)
    waves = np.cos(2 * np.pi * np.outer(x, frequencies) + phases)
    mean = waves @ rng.normal(size=4) + rng.normal(0, 0.7, size=len(LEVELS))[codes]
    mean /= mean.std()
    params = draw_params(kind, np.ptp(mean), rng)
    if kind == "mean":  # the standard deviation is about proportional to the mean
        mean += np.exp(params[1]) * rng.uniform(0.5, 1.5) - mean.min()
    X = pd.DataFrame({"x": x, "z": z, "c": pd.Categorical(np.array(list(LEVELS))[codes])})
    law = Law(kind, "xz"[int(number) % 2], X, mean, params)
    shift = np.log(rng.uniform(0.15, 0.5)) - law.log_std(params).mean()
    params[: len(LEVELS) if kind == "level" else 1] += shift
    return law, mean + np.exp(law.log_std(params)) * rng.normal(size=len(x))


def draw_params(kind: str, span: float, rng: np.random.Generator) -> np.ndarray:
    """Draw the parameters of the noise, up to its typical size, for a mean of a given span."""
    ratio = rng.uniform(*((2, 4) if kind == "level" else (3, 6)))  # of the largest to the least
    match kind:
        case "constant":
            return np.zeros(1)
        case "linear":
            return np.array([0, np.log(ratio) * rng.choice([-1, 1])])
        case "bump":
            return np.array([0, np.log(ratio), rng.uniform(0.25, 0.75), rng.uniform(0.1, 0.2)])
        case "level":
            between = rng.uniform(size=len(LEVELS) - 2)
            return np.log(ratio) * rng.permutation([0, 1, *between])
        case _:
            return np.array([0, np.log(span / (ratio - 1))])


def true_gain(law: Law, y: np.ndarray) -> float:
    """Compute what the true form of the noise gains over a constant on the training rows."""
    residuals = (y - law.mean)[:N_TRAIN]

    def loss(theta: np.ndarray) -> float:
        log_std = law.log_std(theta)[:N_TRAIN]
        return float(np.sum(log_std + (residuals / np.exp(log_std)) ** 2 / 2))

    constant = N_TRAIN * (np.log(np.mean(residuals**2)) + 1) / 2
    varied = float(minimize(loss, law.params, bounds=BOUNDS.get(law.kind)).fun)
    return max(constant - varied, 0.0)


def about_noise(model: AutoKernelGPRegressor, split: Split, dataset: str) -> dict[str, object]:
    """Compute the coverage of the parts of a simulated set, and what its truth reaches."""
    low, high = model.predict_interval(split.X_test).T
    is_inside = (low <= split.y_test) & (split.y_test <= high)
    X = split.X_test
    thirds = [np.minimum((3 * X[name].to_numpy()).astype(int), 2) for name in ("x", "z")]
    parts = [of == one for of in (*thirds, X["c"].cat.codes.to_numpy()) for one in np.unique(of)]
    inside = np.array([is_inside[part].mean() for part in parts if part.sum() >= MIN_PART])
    law, y = simulate(dataset)
    std = np.exp(law.log_std(law.params))[N_TRAIN:]
    return {
        "worst_third": rounded(inside[np.abs(inside - 0.95).argmax()]),
        "mean_coverage": rounded(inside.mean()),
        "nll_of_truth": assess_normal(split, law.mean[N_TRAIN:], std)["nll"],
        "true_gain": round(true_gain(law, y), 4),
    }


def fit_default(split: Split, unit: Fit) -> dict[str, object]:
    """Fit the estimator with its defaults."""
    model = AutoKernelGPRegressor(random_state=0).fit(split.X, split.y)
    more = about_noise(model, split, unit.dataset) if unit.question == "noise" else {}
    return {
        **assess(model, split),
        **more,
        "is_periodic": "PER" in model.best_expression_,
        "n_outliers": len(model.outliers_),
        "found": differing(model)
        if unit.question == "levels"
        else "; ".join(words_about_noise(model)),
    }


def words_about_noise(model: AutoKernelGPRegressor) -> list[str]:
    """Return what is said of how the noise varies."""
    claims = model.claims_
    every = zip(claims["subject"], claims["evidence"], claims["predicate"], strict=True)
    return [what for subject, how, what in every if subject == "noise" and how.startswith("terms")]


def fit_catboost(split: Split, _: Fit) -> dict[str, object]:
    """Fit CatBoost."""
    return errors(split, predict_by_catboost(split))


def fit_mixed(split: Split, unit: Fit) -> dict[str, object]:
    """Fit a mixed model, and predict by its fixed effects and, of known groups, its random ones.

    The covariances are those of REML. The variance of a prediction is that of the noise, of the
    random effects given the training rows, and of the fixed effects.
    """
    design = GROUPED[unit.dataset]
    numeric = split.X.select_dtypes("number")
    frames = [
        one.assign(**(one[numeric.columns] - numeric.mean()) / numeric.std())
        for one in (split.X, split.X_test)
    ]
    groups, groups_test = (one[design.group].astype(str).to_numpy() for one in frames)
    X, X_test = matrices(design.fixed, *frames)
    formula, G, variance, note = covariances(split.y / split.scale, X, groups, frames[0], design)
    Z, Z_test = matrices(formula, *frames)
    K_test = Z_test @ G @ Z.T * (groups_test[:, None] == groups)
    L = cho_factor(Z @ G @ Z.T * (groups[:, None] == groups) + variance * np.eye(len(Z)))
    precision = X.T @ cho_solve(L, X)  # of the fixed effects
    beta = np.linalg.solve(precision, X.T @ cho_solve(L, split.y))
    rest = X_test - K_test @ cho_solve(L, X)
    var = (
        variance
        + np.sum(Z_test @ G * Z_test, axis=1)
        - np.sum(K_test * cho_solve(L, K_test.T).T, axis=1)
        + np.sum(rest * np.linalg.solve(precision, rest.T).T, axis=1)
    )
    mean = X_test @ beta + K_test @ cho_solve(L, split.y - X @ beta)
    return {**assess_normal(split, mean, split.scale * np.sqrt(var)), "note": note}


def covariances(
    y: np.ndarray, X: np.ndarray, groups: np.ndarray, frame: pd.DataFrame, design: Grouped
) -> tuple[str, np.ndarray, float, str]:
    """Fit by REML the covariance of the random effects and the variance of the noise.

    Returns the formula of the random effects before them, and a note after them.
    """
    from statsmodels.regression.mixed_linear_model import MixedLM

    for formula in dict.fromkeys([design.random, "1"]):
        Z, _ = matrices(formula, frame, frame)
        for method in OPTIMIZERS:
            with warnings.catch_warnings(action="ignore"):
                try:
                    fitted = MixedLM(y, X, groups=groups, exog_re=Z).fit(reml=True, method=method)
                except np.linalg.LinAlgError:
                    continue
            G, variance = np.asarray(fitted.cov_re), float(fitted.scale)
            if fitted.converged and np.isfinite(fitted.llf):
                least = np.linalg.eigvalsh(G).min() / variance
                notes = ["" if formula == design.random else ONLY_INTERCEPT]
                notes += [SINGULAR if least < MIN_RELATIVE_DEVIATION**2 else ""]
                return formula, G, variance, ", ".join(filter(None, notes))
    residuals = y - X @ np.linalg.lstsq(X, y)[0]
    return "1", np.zeros((1, 1)), float(residuals @ residuals) / (len(y) - X.shape[1]), NO_EFFECTS


def matrices(
    formula: str, train: pd.DataFrame, test: pd.DataFrame
) -> tuple[np.ndarray, np.ndarray]:
    """Build the matrices of a formula, with what was learnt from the training rows."""
    from patsy import build_design_matrices, dmatrix

    X = dmatrix(formula, train)
    (X_test,) = build_design_matrices([X.design_info], test)
    return np.asarray(X), np.asarray(X_test)


def fit_loglogistic(split: Split, unit: Fit) -> dict[str, object]:
    """Fit a log-logistic curve to each level, with one variance of the noise."""
    design = DOSED[unit.dataset]
    levels, levels_test = (levels_of(X, design.level) for X in (split.X, split.X_test))
    dose, dose_test = (X[design.dose].to_numpy() for X in (split.X, split.X_test))
    mean, of_mean = np.full((2, len(split.y_test)), np.nan)
    squares, n_params = 0.0, 0
    for level in np.unique(levels):
        rows, rows_test = levels == level, levels_test == level
        fitted = fit_curve(dose[rows], split.y[rows])
        squares, n_params = squares + 2 * fitted.cost, n_params + len(fitted.x)
        if rows_test.any():
            mean[rows_test] = loglogistic(fitted.x, dose_test[rows_test])
            slopes = approx_fprime(fitted.x, loglogistic, 1e-6, dose_test[rows_test])
            root = np.atleast_2d(slopes) @ np.linalg.pinv(fitted.jac, rcond=1e-6)
            of_mean[rows_test] = np.sum(root**2, axis=1)
    variance = squares / (len(split.y) - n_params)
    return assess_normal(split, mean, np.sqrt(variance * (1 + of_mean)))


def levels_of(X: pd.DataFrame, name: str | None) -> np.ndarray:
    """Return the level of each row, an empty one without a column of levels."""
    return np.full(len(X), "") if name is None else X[name].astype(str).to_numpy()


def loglogistic(theta: np.ndarray, dose: np.ndarray) -> np.ndarray:
    """Compute c + (d - c) / (1 + exp(b (log x - log e))) for log b, c, d and log e."""
    log_b, c, d, log_e = theta
    with np.errstate(divide="ignore"):
        return c + (d - c) * special.expit(-np.exp(log_b) * (np.log(dose) - log_e))


def fit_curve(dose: np.ndarray, y: np.ndarray) -> OptimizeResult:
    """Fit the curve from several starts; ``b`` is positive, for ``c`` and ``d`` can be swapped."""
    logs = np.log(np.unique(dose[dose > 0]))
    ends = [float(y[dose == at].mean()) for at in (dose.max(), dose.min())]
    margin = np.log(10)
    bounds = (
        [np.log(0.1), -np.inf, -np.inf, logs[0] - margin],
        [np.log(20), np.inf, np.inf, logs[-1] + margin],
    )
    fits = [
        least_squares(
            lambda theta: loglogistic(theta, dose) - y,
            [np.log(b), *ends, middle],
            bounds=bounds,
            x_scale="jac",
        )
        for b in (1, 3)
        for middle in np.quantile(logs, [0.25, 0.5, 0.75])
    ]
    return min(fits, key=lambda fitted: fitted.cost)


SPLITS = {
    "groups": known_groups,
    "doses": doses,
    "noise": noisy,
    "riders": riders,
    "motorcycle": motorcycle,
    "unseen": unseen_groups,
    "levels": several_levels,
}
FITS = {
    "default": fit_default,
    "catboost": fit_catboost,
    "mixed": fit_mixed,
    "loglogistic": fit_loglogistic,
}
NUMBERS = ("rmse", "nll", "coverage", "score", "rmse_of_medians")
OF_NOISE = ("worst_third", "mean_coverage", "nll_of_truth", "true_gain")
TEXTS = ("kernel", "is_periodic", "n_outliers", "found", "note")


def measure(unit: Fit) -> Row:
    """Fit one method to one split."""
    split = SPLITS[unit.question](unit.dataset, unit.split)
    began = time.process_time()
    found = dict.fromkeys((*NUMBERS, *OF_NOISE), np.nan) | dict.fromkeys(TEXTS, "")
    found |= FITS[unit.method](split, unit)
    seconds = time.process_time() - began
    return {
        "n_train": len(split.y),
        "n_test": len(split.y_test),
        **found,
        "rmse_raw": rounded(found["rmse"] * split.scale),
        "nll_raw": rounded(found["nll"] + np.log(split.scale)),
        "cpu_seconds": rounded(seconds),
    }


def mean_of(rows: Sequence[Mapping[str, str]], name: str) -> float:
    """Compute the mean of a column, NaN without rows."""
    return float(numbers(rows, name).mean()) if rows else float("nan")


def summarise(question: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Print the means of each data set, or of each kind of simulated ones."""
    lines = []
    for name, found in group(rows, lambda row: key_of(question, row)).items():
        by_method = group(found, lambda row: row["method"])
        own = by_method.get("default", [])
        line: dict[str, object] = {"set": name, "fits": len(own)}
        for column in ("rmse", "nll", "coverage"):
            for method in METHODS[question]:
                if (column, method) not in {("nll", "catboost"), ("coverage", "catboost")}:
                    line[f"{column} {method}"] = mean_of(by_method.get(method, []), column)
        lines.append(line | more_of(question, by_method) | {"CPU s": mean_of(own, "cpu_seconds")})
    print(f"\n{question}:")
    print_table(lines)


def key_of(question: str, row: Mapping[str, str]) -> str:
    """Return the name of a line: the data set, or its kind."""
    return row["dataset"].split("-")[0] if question in ("noise", "levels") else row["dataset"]


def more_of(question: str, rows: Mapping[str, Sequence[Mapping[str, str]]]) -> dict[str, object]:
    """Compute what only the table of one question has."""
    own = rows.get("default", [])
    match question:
        case "groups" | "unseen":
            mixed = rows.get("mixed", [])
            return {"simpler mixed": sum(row["note"] not in {"", SINGULAR} for row in mixed)}
        case "doses":
            return {"periodic": sum(row["is_periodic"] == "True" for row in own)}
        case "noise":
            worst = numbers(own, "worst_third")
            return {
                "worst third off": float(np.abs(worst - 0.95).mean()),
                "least third": float(worst.min(initial=1.0)),
                "NLL above truth": mean_of(own, "nll") - mean_of(own, "nll_of_truth"),
                "true gain": mean_of(own, "true_gain"),
                "found": sum(bool(row["found"]) for row in own),
            }
        case "levels":
            return {"right": sum(row["found"] == row["dataset"].split("-")[0] for row in own)}
        case "riders":
            return {"outliers": mean_of(own, "n_outliers")}
        case _:
            return {f"{name} raw": mean_of(own, f"{name}_raw") for name in ("rmse", "nll")}


def units_of(arguments: argparse.Namespace) -> list[Fit]:
    """List what to measure: some splits of all questions first, and the others after them."""
    methods = {
        question: [
            one for one in names if one not in OF_OTHERS or can_measure(OF_OTHERS[one], arguments)
        ]
        for question, names in METHODS.items()
    }
    return [
        Fit(arguments.label if method == "default" else "", question, dataset, split, method)
        for is_first in (True, False)
        for question in arguments.questions
        for split in range(min(arguments.seeds, N_SPLITS.get(question, arguments.seeds)))
        if (split < N_SPLITS_FIRST) is is_first
        for dataset in DATASETS[question]
        if dataset in arguments.datasets
        for method in methods[question]
    ]


def main() -> None:
    """Measure what is missing and print the tables."""
    names = dict.fromkeys(name for some in DATASETS.values() for name in some)
    parser = make_parser(__doc__, datasets=names, seeds=10, what="splits")
    parser.add_argument("--questions", nargs="+", default=list(DATASETS), choices=list(DATASETS))
    parser.add_argument("--label", default="now", help="name of the version that runs")
    parser.add_argument("--against", default="before54", help="version to compare with")
    arguments = parse(parser, small={"datasets": SMALL, "seeds": 1})
    collect(NAME, units_of(arguments), measure, arguments, any_commit=True)
    labels = list(dict.fromkeys([arguments.against, arguments.label]))
    for question in arguments.questions:
        datasets = [one for one in DATASETS[question] if one in arguments.datasets]
        rows = [
            row
            for row in read_rows(NAME)
            if row["question"] == question
            and row["dataset"] in datasets
            and int(row["split"]) < arguments.seeds
        ]
        rows.sort(key=lambda row: datasets.index(row["dataset"]))
        summarise(question, [row for row in rows if row["label"] in (arguments.label, "")])
        if len(labels) == 2 and all(any(row["label"] == one for row in rows) for one in labels):
            compare(rows, *labels)


if __name__ == "__main__":
    main()
