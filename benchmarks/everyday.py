"""How well the default does on groups, doses, noise that varies, and days that do not fit.

Each row is one fit of one method to one split. Six questions:

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

The method is ``default``, the estimator with its defaults. The tables also show ``catboost``, whose
rows a program of 4eef7427 measured, ``mixed``, linear mixed models by REML with splines of time,
and ``loglogistic``, log-logistic curves of four parameters; programs of 03b29bbd measured theirs.

RMSE, NLL and coverage of 95 % intervals are for new observations. Errors are in standard deviations
of the target over the whole table; ``rmse_raw`` and ``nll_raw`` are for the unit of the table. For
simulated sets, ``worst_third`` is the coverage furthest from 0.95 in a third of ``x`` or ``z``, or
in a level of ``c``, and ``mean_coverage`` the mean over these parts. ``found`` is what the model
says of its noise. Columns that are empty now, and the question ``levels``, are of 03b29bbd.

The data sets were chosen before the first fit of the default. Constants of the package were chosen
on ``oxboys`` and ``firms``, among others, but nothing on the other sets.

Rows go to results/everyday.csv; rows of any commit count. ``--label`` names the version that runs,
which is compared with ``--against``; rows of other packages have no label.

    python benchmarks/everyday.py                                  # half an hour of CPU time
    python benchmarks/everyday.py --small                          # one split of each, 4 minutes
    python benchmarks/everyday.py --questions noise --label mine --against before54
"""

import argparse
import time
from collections.abc import Iterable, Mapping, Sequence

import common
import numpy as np
import pandas as pd
from accuracy import assess, compare
from common import Row, Rows, Split, Unit, group
from data import Loader
from tables import of_r

from autokernel import AutoKernelGPRegressor

NAME = "everyday"  # of the CSV file

SHARES = np.linspace(0.5, 0.8, 10)  # of the rows of a group that are earlier, one for each split
SHARE_DROPPED = 0.1  # of the earlier rows
SHARE_UNSEEN = 0.25  # of the groups
SHARE_OF_DOSES = 2 / 3  # of the rows to train on
SHARE_OF_CRASHES = 0.8
N_DAYS, N_DAYS_AHEAD = 730, 28
N_TRAIN, N_TEST = 150, 10_000  # rows of a simulated set
MIN_PART = 200  # test rows of a part whose coverage counts
LEVELS = "abcd"  # of the simulated category
N_SPLITS_FIRST = 3  # splits of all questions that are measured before any other

GROUPED: Mapping[str, tuple[Loader, str, str | None]] = {  # a table, its groups, and its time
    "sleepstudy": (of_r("lme4", "sleepstudy", "Reaction", groups=["Subject"]), "Subject", "Days"),
    "oranges": (of_r("datasets", "Orange", "circumference", groups=["Tree"]), "Tree", "age"),
    "chicks": (
        of_r("datasets", "ChickWeight", "weight", groups=["Chick", "Diet"]), "Chick", "Time"
    ),
    "theophylline": (of_r("datasets", "Theoph", "conc", groups=["Subject"]), "Subject", "Time"),
    "oxboys": (
        of_r("nlme", "Oxboys", "height", ["Subject", "age"], groups=["Subject"]), "Subject", "age"
    ),
    "machines": (of_r("nlme", "Machines", "score", groups=["Worker", "Machine"]), "Worker", None),
    "rails": (of_r("nlme", "Rail", "travel", groups=["Rail"]), "Rail", None),
    "firms": (of_r("plm", "Grunfeld", "inv", groups=["firm"]), "firm", "year"),
}  # fmt: skip
DOSED: Mapping[str, tuple[Loader, str]] = {  # a table, and its dose; rows, curves
    "ryegrass": (of_r("drc", "ryegrass", "rootl"), "conc"),  # 24, 1
    "mustard": (of_r("drc", "S.alba", "DryMatter", groups=["Herbicide"]), "Dose"),  # 68, 2
    "cleavers": (of_r("drc", "G.aparine", "drymatter", groups=["treatment"]), "dose"),  # 240, 2
    "spinach": (of_r("drc", "spinach", "SLOPE", ["DOSE", "CURVE"], groups=["CURVE"]), "DOSE"),
    "growth": (of_r("drc", "etmotc", "rgr1", ["dose1"]), "dose1"),  # 57, 1
    "algae": (of_r("drc", "S.capricornutum", "count"), "conc"),  # 18, 1
    "trout": (of_r("drc", "O.mykiss", "weight"), "conc"),  # 61, 1
    "leaves": (of_r("drc", "leaflength", "DW"), "Dose"),  # 42, 1; it rises before it falls
}

KINDS = {"constant": 16, "linear": 6, "bump": 6, "level": 6, "mean": 6}  # sets of a kind of noise


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
    return np.array([rng.choice(rows) for rows in cells], dtype=int)


def known_groups(dataset: str, split: int) -> Split:
    """Part the earlier rows of each group, less a few, from the later ones."""
    load, name, time_ = GROUPED[dataset]
    X, y = load()
    rng = np.random.default_rng(split)
    share = SHARES[7 * split % len(SHARES)]  # so that the first splits are not alike
    earlier = []
    for rows in cells_of(X, [name] if time_ else list(X.columns)):
        if time_:
            ordered = rows[X[time_].to_numpy()[rows].argsort(kind="stable")]
        else:
            ordered = rng.permutation(rows)
        earlier.append(ordered[: max(min(round(share * len(rows)), len(rows) - 1), 1)])
    begun = np.concatenate(earlier)
    free = np.setdiff1d(begun, one_of_each(earlier, rng))
    dropped = rng.choice(free, min(round(SHARE_DROPPED * len(begun)), len(free)), replace=False)
    return parted(X, y, np.setdiff1d(begun, dropped), np.setdiff1d(np.arange(len(y)), begun))


def unseen_groups(dataset: str, split: int) -> Split:
    """Part a random quarter of the groups from the others."""
    load, name, _ = GROUPED[dataset]
    X, y = load()
    names = X[name].astype(str)
    levels = sorted(set(names))
    n = max(round(SHARE_UNSEEN * len(levels)), 1)
    is_test = names.isin(np.random.default_rng(split).choice(levels, n, replace=False)).to_numpy()
    return parted(X, y, np.flatnonzero(~is_test), np.flatnonzero(is_test))


def doses(dataset: str, split: int) -> Split:
    """Draw two thirds of the rows, with each dose that has two rows or more."""
    load, dose = DOSED[dataset]
    X, y = load()
    rng = np.random.default_rng(split)
    cells = [*cells_of(X, [dose]), *cells_of(X, list(X.columns))]
    kept = np.unique(one_of_each([rows for rows in cells if len(rows) > 1], rng))
    others = rng.permutation(np.setdiff1d(np.arange(len(y)), kept))
    n_more = max(round(SHARE_OF_DOSES * len(y)) - len(kept), 0)
    train = np.concatenate([kept, others[:n_more]])
    return parted(X, y, np.sort(train), np.sort(others[n_more:]))


def riders(dataset: str, split: int) -> Split:
    """Part the last four weeks of two years; the day of the week is a column or is not."""
    X, y = of_r("modeldata", "Chicago", "ridership", ["date"])()
    X = X.assign(date=pd.to_datetime(X["date"])).iloc[-N_DAYS:]
    if dataset == "date-weekday":
        X = X.assign(weekday=X["date"].dt.day_name().astype("category"))
    return parted(X, y[-N_DAYS:], *np.split(np.arange(N_DAYS), [N_DAYS - N_DAYS_AHEAD]))


def motorcycle(dataset: str, split: int) -> Split:
    X, y = of_r("MASS", "mcycle", "accel")()
    order = np.random.default_rng(split).permutation(len(y))
    return parted(X, y, *np.split(order, [round(SHARE_OF_CRASHES * len(y))]))


def noisy(dataset: str, split: int) -> Split:
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
    ratio = rng.uniform(*((2, 4) if kind == "level" else (3, 6)))  # of the largest to the least
    match kind:
        case "constant":
            log_std = np.zeros(len(x))
        case "linear":
            log_std = np.log(ratio) * rng.choice([-1, 1]) * (z if int(number) % 2 else x)
        case "bump":
            distance = (x - rng.uniform(0.25, 0.75)) / rng.uniform(0.1, 0.2)
            log_std = np.log(ratio) * np.exp(-(distance**2) / 2)
        case "level":
            between = rng.uniform(size=len(LEVELS) - 2)
            log_std = np.log(ratio) * rng.permutation([0, 1, *between])[codes]
        case _:  # about proportional to the mean
            least = np.ptp(mean) / (ratio - 1)
            mean += least * rng.uniform(0.5, 1.5) - mean.min()
            log_std = np.log(mean - mean.min() + least)
    log_std += np.log(rng.uniform(0.15, 0.5)) - log_std.mean()
    X = pd.DataFrame({"x": x, "z": z, "c": pd.Categorical(np.array(list(LEVELS))[codes])})
    y = mean + np.exp(log_std) * rng.normal(size=len(x))
    return parted(X, y, *np.split(np.arange(len(y)), [N_TRAIN]))


def coverage_of_parts(model: AutoKernelGPRegressor, split: Split) -> dict[str, object]:
    """Compute the coverage of thirds and levels of a simulated set."""
    low, high = model.predict_interval(split.X_test).T
    is_inside = (low <= split.y_test) & (split.y_test <= high)
    X = split.X_test
    thirds = [np.minimum((3 * X[name].to_numpy()).astype(int), 2) for name in ("x", "z")]
    parts = [of == one for of in (*thirds, X["c"].cat.codes.to_numpy()) for one in np.unique(of)]
    inside = np.array([is_inside[part].mean() for part in parts if part.sum() >= MIN_PART])
    return {"worst_third": inside[np.abs(inside - 0.95).argmax()], "mean_coverage": inside.mean()}


def of_noise(model: AutoKernelGPRegressor) -> str:
    claims = model.claims_
    every = zip(claims["subject"], claims["evidence"], claims["predicate"], strict=True)
    said = [what for subject, how, what in every if subject == "noise" and how.startswith("terms")]
    return "; ".join(said)


QUESTIONS = {  # splits, data sets, and methods
    "groups": (known_groups, list(GROUPED), ("default", "catboost", "mixed")),
    "doses": (doses, list(DOSED), ("default", "loglogistic")),
    "noise": (noisy, [f"{kind}-{n}" for kind in KINDS for n in range(KINDS[kind])], ("default",)),
    "riders": (riders, ["date", "date-weekday"], ("default",)),
    "motorcycle": (motorcycle, ["mcycle"], ("default",)),
    "unseen": (unseen_groups, list(GROUPED), ("default", "catboost", "mixed")),
}
ONCE = ("noise", "riders")  # questions with one split
NUMBERS = ("rmse", "nll", "coverage", "score", "rmse_of_medians", "worst_third", "mean_coverage")
NUMBERS += ("nll_of_truth", "true_gain")
TEXTS = ("kernel", "is_periodic", "n_outliers", "found", "note")


def measure(label: str, question: str, dataset: str, split: int, method: str) -> Row:
    data = QUESTIONS[question][0](dataset, split)
    began = time.process_time()
    model = AutoKernelGPRegressor(random_state=0).fit(data.X, data.y)
    found = dict.fromkeys(NUMBERS, np.nan) | dict.fromkeys(TEXTS, "") | assess(model, data)
    if question == "noise":
        found |= coverage_of_parts(model, data)
    return {
        "n_train": len(data.y),
        "n_test": len(data.y_test),
        **found,
        "is_periodic": "PER" in model.best_expression_,
        "n_outliers": len(model.outliers_),
        "found": of_noise(model),
        "rmse_raw": found["rmse"] * data.scale,
        "nll_raw": found["nll"] + np.log(data.scale),
        "cpu_seconds": time.process_time() - began,
    }


def more_of(question: str) -> Mapping[str, common.Figure]:
    """Return the figures of the default that only the table of one question has."""
    match question:
        case "doses":
            return {"periodic": lambda own: sum(row["is_periodic"] == "True" for row in own)}
        case "noise":
            return {
                "worst third off": common.of(lambda v: np.abs(v - 0.95).mean(), "worst_third"),
                "least third": common.of(np.min, "worst_third"),
                "found": lambda own: sum(bool(row["found"]) for row in own),
            }
        case "riders":
            return {"outliers": common.of(np.mean, "n_outliers")}
        case "motorcycle":
            return {f"{name} raw": common.of(np.mean, f"{name}_raw") for name in ("rmse", "nll")}
        case _:
            return {}


def kind_of(row: Mapping[str, str]) -> str:
    """Return the kind of a simulated set, or the name of another one."""
    return row["dataset"].split("-")[0] if row["question"] == "noise" else row["dataset"]


def summarise(question: str, rows: Rows) -> None:

    def of_method(method: str, figure: common.Figure) -> common.Figure:
        return lambda found: figure([row for row in found if row["method"] == method])

    figures = {"fits": of_method("default", len)} | {
        f"{column} {method}": of_method(method, common.of(np.mean, column))
        for column in ("rmse", "nll", "coverage")
        for method in QUESTIONS[question][2]
        if column == "rmse" or method != "catboost"
    }
    more = {**more_of(question), "CPU s": common.of(np.mean, "cpu_seconds")}
    figures |= {name: of_method("default", figure) for name, figure in more.items()}
    print(f"\n{question}:")
    named = [{**row, "set": kind_of(row)} for row in rows]
    common.print_groups(group(named, "set"), "set", figures)


def units_of(arguments: argparse.Namespace) -> list[Unit]:
    """List what to measure: some splits of all questions first, and the others after them."""
    return [
        {
            "label": arguments.label,
            "question": question,
            "dataset": dataset,
            "split": split,
            "method": "default",
        }
        for splits in (range(N_SPLITS_FIRST), range(N_SPLITS_FIRST, arguments.seeds))
        for question in arguments.questions
        for split in splits
        if split < (1 if question in ONCE else arguments.seeds)
        for dataset in QUESTIONS[question][1]
        if dataset in arguments.datasets
    ]


def main() -> None:
    names = dict.fromkeys(name for _, datasets, _ in QUESTIONS.values() for name in datasets)
    once = [f"{kind}-0" for kind in KINDS]  # of the simulated sets
    small = [name for name in names if name in once or not name[-1].isdigit()]
    arguments = common.options_of(
        __doc__, datasets=names, seeds=10, questions=list(QUESTIONS), label="now",
        against="before54", small={"datasets": small, "seeds": 1},
    )  # fmt: skip
    common.collect(NAME, units_of(arguments), measure, arguments, any_commit=True)
    for question in arguments.questions:
        datasets = [one for one in QUESTIONS[question][1] if one in arguments.datasets]
        rows = [
            row
            for row in common.read_rows(NAME)
            if row["question"] == question
            and row["dataset"] in datasets
            and int(row["split"]) < arguments.seeds
        ]
        rows.sort(key=lambda row: datasets.index(row["dataset"]))
        summarise(question, [row for row in rows if row["label"] in (arguments.label, "")])
        compare(rows, arguments.against, arguments.label)


if __name__ == "__main__":
    main()
