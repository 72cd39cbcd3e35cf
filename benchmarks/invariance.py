"""How far predictions move with what must not matter: the seed, orders, repeated rows.

Twelve tables of accuracy.py, 60 rows of each to fit one kernel, by ``refit``, and up to 200 others
to predict. The fit with seed 0 is compared with those of nine other seeds, of five orders of the
columns and of the rows, and a fit to weights of one or two with one to repeated rows. ``mean`` is
the largest movement of a mean, in standard deviations of the target, ``std`` that of a standard
deviation, as a share of it, and ``score`` that of the score in nats.

Rows go to results/invariance.csv; rows of any commit count. ``--label`` names the version.

    python benchmarks/invariance.py                 # three minutes of CPU time
    python benchmarks/invariance.py --finished      # the tables of all versions that have rows
"""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from common import Row, collect, group, make_parser, numbers, parse, print_table, read_rows, rounded
from tables import load_table

from autokernel import AutoKernelGPRegressor

NAME = "invariance"  # of the CSV file
N_TRAIN, N_TEST = 60, 200
CHANGES = {"seed": 9, "columns": 5, "rows": 5, "weights": 3}  # how often each is made
KERNELS = {  # which a short search has found
    "airfoil": "SE[free_stream_velocity_m_s] * SE[log(frequency_hz)] * SE[log(chord_length_m)]"
    " * SE[sqrt(displacement_thickness_m)]",
    "carseats": "CAT[ShelveLoc] + LIN[CompPrice] + LIN[Income] + LIN[Advertising] + LIN[Price]"
    " + LIN[Age]",
    "airline": "sqrt(y) ~ LIN[time] + LIN[time] * PER[time] + PER[time]",
    "penguins": "CAT[species] + CAT[sex] + LIN[bill_depth_mm] + LIN[flipper_length_mm]",
    "sleepstudy": "CAT[Subject] * LIN[Days]",
    "salaries": "log(y) ~ CAT[rank] * CAT[discipline] * LIN[yrs.since.phd]",
    "diabetes": "sqrt(y) ~ LIN[bmi] + LIN[bp] + LIN[s3] + LIN[s5]",
    "cpus": "sqrt(y) ~ LIN[mmin] + LIN[mmax] + LIN[cach] + RQ[cach] * RQ[chmax]",
    "power_plant": "LIN[sqrt(AT)] + LIN[V]",
    "auto": "log(y) ~ CAT[origin] * RQ[acceleration] * RQ[year] + LIN[weight]",
    "prestige": "CAT[type] + LIN[education] + LIN[sqrt(income)] + LIN[women]",
    "hawaii": "LIN[t] * LIN[t] + PER[t] + RQ[t]",
}


@dataclass(frozen=True, slots=True)
class Fit:
    """What a row is measured for."""

    label: str
    dataset: str
    change: str
    number: int


Data = tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray | None]


def changed(unit: Fit, X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame) -> Iterator[Data]:
    """Yield the data of two fits that must agree, rows to predict, and weights."""
    rng = np.random.default_rng(unit.number)
    weights = rng.integers(1, 3, len(y))
    columns, rows = rng.permutation(X.shape[1]), rng.permutation(len(y))
    yield X, y, X_new, weights if unit.change == "weights" else None
    match unit.change:
        case "columns":
            yield X.iloc[:, columns], y, X_new.iloc[:, columns], None
        case "rows":
            yield X.iloc[rows], y[rows], X_new, None
        case "weights":
            every = np.repeat(np.arange(len(y)), weights)
            yield X.iloc[every], y[every], X_new, None
        case _:
            yield X, y, X_new, None


def measure(unit: Fit) -> Row:
    """Fit twice, and compare the predictions."""
    X, y = load_table(unit.dataset)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:N_TRAIN], order[N_TRAIN : N_TRAIN + N_TEST]
    found, scores, seconds = [], [], []
    seeds = (0, 1 + unit.number if unit.change == "seed" else 0)
    for seed, data in zip(seeds, changed(unit, X.iloc[train], y[train], X.iloc[test]), strict=True):
        X_fit, y_fit, X_new, weights = data
        model = AutoKernelGPRegressor(random_state=seed)
        with warnings.catch_warnings(action="ignore"):
            model.refit(X_fit, y_fit, KERNELS[unit.dataset], sample_weight=weights)
            began = time.process_time()
            found.append(model.predict(X_new, return_std=True))
        seconds.append(time.process_time() - began)
        scores.append(model.best_score_)
    (mean, std), (other, of_other) = found
    return {
        "mean": rounded(np.abs(other - mean).max() / y.std()),
        "std": rounded(np.abs(of_other / std - 1).max()),
        "score": rounded(abs(scores[1] - scores[0])),
        "cpu_of_predict": rounded(np.median(seconds)),
    }


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print the median and the largest movement of each change, by version."""
    for label, of_label in group(rows, lambda row: row["label"]).items():
        print(f"\n{label}")
        lines = []
        for change, found in group(of_label, lambda row: row["change"]).items():
            line: dict[str, object] = {"change": change, "pairs": len(found)}
            for name in ("mean", "std", "score"):
                values = numbers(found, name)
                line[f"{name} median"] = float(np.median(values))
                line[f"{name} most"] = float(values.max())
            line["ms of predict"] = 1e3 * float(np.median(numbers(found, "cpu_of_predict")))
            lines.append(line)
        print_table(lines)


def main() -> None:
    """Measure what is missing and print the tables."""
    parser = make_parser(__doc__, datasets=KERNELS, seeds=max(CHANGES.values()))
    parser.add_argument("--label", default="now", help="name of the version that runs")
    arguments = parse(parser, small={"datasets": ["airfoil", "prestige"], "seeds": 2})
    units = [
        Fit(arguments.label, dataset, change, number)
        for dataset in arguments.datasets
        for change, n in CHANGES.items()
        for number in range(min(n, arguments.seeds))
    ]
    collect(NAME, units, measure, arguments, any_commit=True)
    summarise(read_rows(NAME))


if __name__ == "__main__":
    main()
