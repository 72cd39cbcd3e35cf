"""How much the result of a default fit depends on its seed, and on rounding.

Twelve sets of 100 to 200 rows, each fitted by several seeds; the rows are chosen once. The same
seed rounds otherwise with ``OPENBLAS_CORETYPE=Haswell``, which is a column of the file. A run
agrees if its score is within half a nat of the best that any row has for its set. ``--tables``
fits four tables with categories of tables.py, of 123 to 180 rows. Rows with a limit of time, or
with ``right``, are of six cases by a program of 03b29bbd; tests/stories has data like theirs.

Rows go to results/seeds.csv; the tables are of all versions that have rows.

    AUTOKERNEL_DATA=folder python benchmarks/seeds.py              # an hour of CPU time
    python benchmarks/seeds.py --tables
    python benchmarks/seeds.py --finished --any-commit
"""

import math
import os
import time
from collections.abc import Callable, Mapping
from functools import partial

import common
import numpy as np
import numpy.typing as npt
from common import Row, Rows, group, numbers
from data import draw_split
from drawn_structures import draw_kernel
from tables import CATEGORICAL, load_table

from autokernel import AutoKernelGPRegressor

NAME = "seeds"  # of the CSV file
CLOSE, NEAR, FAR = 0.5, 1.0, 2.0  # nats below the best score known


Data = tuple[npt.ArrayLike, np.ndarray]


def rows_of(dataset: str, n_rows: int) -> Data:
    split = draw_split(dataset, 0, n_train=n_rows)
    return split.X, split.y


N_OF_SET = {
    "airline": (100, 144), "mauna": (200,), "solar": (200,), "call_centre": (180,),
    "gas_production": (150,), "power_plant": (150,), "airfoil": (150,), "concrete": (120,),
    "boston_housing": (120,),
}  # fmt: skip
SEED_OF_KERNEL = {"LIN[0] + PER[0] * SE[1]": 4, "LIN[0] * PER[1] + SE[0] * SE[1]": 3}
"""Draws on which a search has found less than the truth."""
SETS: Mapping[str, Callable[[], Data]] = {
    **{f"{name} {n}": partial(rows_of, name, n) for name, ns in N_OF_SET.items() for n in ns},
    **{kernel: partial(draw_kernel, kernel, seed) for kernel, seed in SEED_OF_KERNEL.items()},
}
TABLES: Mapping[str, Callable[[], Data]] = {name: partial(load_table, name) for name in CATEGORICAL}


def measure(dataset: str, seed: int, max_time: float, coretype: str) -> Row:
    X, y = {**SETS, **TABLES}[dataset]()
    began = time.process_time()
    model = AutoKernelGPRegressor(random_state=seed).fit(X, y)
    return {
        "cpu_seconds": time.process_time() - began,
        "score": model.best_score_,
        "kernel": model.best_expression_,
        "n_kernels": len(model.search_history_["score"]),
        "stop_reason": model.stop_reason_,
        "right": "",
    }


def summarise(rows: Rows) -> None:
    best = {name: numbers(found, "score").max() for name, found in group(rows, "dataset").items()}

    def below(found: Rows) -> np.ndarray:
        return np.array([best[row["dataset"]] - float(row["score"]) for row in found])

    def best_known(found: Rows) -> object:
        names = list(group(found, "dataset"))
        return float(best[names[0]]) if len(names) == 1 else ""

    figures = {
        "runs": len,
        "best known": best_known,
        **{
            f"within {nats}": lambda found, nats=nats: float(np.mean(below(found) <= nats))
            for nats in (CLOSE, NEAR, FAR)
        },
        "most below": lambda found: float(below(found).max()),
        "CPU s": common.of(np.median, "cpu_seconds"),
    }
    for (commit, coretype), own in group(rows, "commit", "coretype").items():
        print(f"\n{commit}, {coretype}")
        lines = group(own, "dataset")
        for name, sets in (("all sets", SETS), ("all tables", TABLES)):
            lines[name] = [row for row in own if row["dataset"] in sets]
        common.print_groups({k: found for k, found in lines.items() if found}, "set", figures)


def main() -> None:
    arguments = common.options_of(
        __doc__, datasets=SETS, by_name=TABLES, seeds=10, tables=False,
        small={"datasets": ["concrete 120"], "seeds": 2},
    )  # fmt: skip
    coretype = os.environ.get("OPENBLAS_CORETYPE", "native")
    chosen = list(TABLES) if arguments.tables else arguments.datasets
    units = common.crossed(
        seed=range(arguments.seeds), dataset=chosen, max_time=[math.inf], coretype=[coretype]
    )
    common.collect(NAME, units, measure, arguments)
    summarise([row for row in common.read_rows(NAME) if row["dataset"] in chosen])


if __name__ == "__main__":
    main()
