"""How well the surrogate of the search predicts by how much estimates are wrong.

In a default fit, every kernel that was fitted after an estimate has an error: its score less the
estimate, at most four nats. Each is predicted from the errors before it. A row has root mean
squares, in nats: of the errors; of what is left after the median of those before, which knows
nothing of kernels; and of what is left after the surrogate. It also says how many errors are within
intervals of 90 %, and the rank correlation of predicted and actual errors.

Rows go to results/surrogate.csv.

    AUTOKERNEL_DATA=folder python benchmarks/surrogate.py          # fifteen minutes of CPU time
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from unittest.mock import patch

from common import Row, collect, group, make_parser, numbers, parse, print_table, rounded  # isort: skip
from fit_cost import SETS as TABLES  # isort: skip
from seeds import SETS  # isort: skip

import numpy as np
from scipy.stats import norm, spearmanr

from autokernel import AutoKernelGPRegressor
from autokernel.search.climb import MAX_ERROR, Climb, learn_errors
from autokernel.search.distances import EdgeKernel
from autokernel.search.history import History

NAME = "surrogate"  # of the CSV file
MIN_KNOWN = 3  # errors, before one is predicted
MEASURES = ("error", "after_median", "after_surrogate", "coverage", "rank_correlation")
WITH_CATEGORIES = ("nations", "grades", "glass", "votes", "pupils", "cars")


@dataclass(frozen=True, slots=True)
class Fit:
    """What a row is measured for."""

    dataset: str
    seed: int


def measure(unit: Fit) -> Row:
    """Fit by the defaults, and predict each error from those before."""
    histories: list[History] = []
    steps = Climb.steps

    def steps_and_history(self: Climb) -> object:
        histories.append(self._history)
        return steps(self)

    if unit.dataset in SETS:
        X, y, _ = SETS[unit.dataset]()
    else:
        split = TABLES[unit.dataset](0)
        X, y = split.X, split.y
    with patch.object(Climb, "steps", steps_and_history):
        AutoKernelGPRegressor(random_state=unit.seed).fit(X, y)
    known, changes = histories[-1].errors_of_estimates, EdgeKernel()
    errors = np.clip([error for _, error in known], -MAX_ERROR, MAX_ERROR)
    median, mean, std = (np.full(len(known), np.nan) for _ in range(3))
    for number in range(MIN_KNOWN, len(known)):
        surrogate = learn_errors(known[:number], changes)
        assert surrogate is not None
        median[number] = np.median(errors[:number])
        (mean[number],), (spread,) = surrogate.predict([known[number][0]])
        std[number] = np.hypot(spread, surrogate.noise)
    later = slice(MIN_KNOWN, None)
    errors, median, mean, std = errors[later], median[later], mean[later], std[later]
    few = len(errors) < MIN_KNOWN
    row = (
        dict.fromkeys(MEASURES, np.nan)
        if few
        else {
            "error": np.sqrt(np.mean(errors**2)),
            "after_median": np.sqrt(np.mean((errors - median) ** 2)),
            "after_surrogate": np.sqrt(np.mean((errors - mean) ** 2)),
            "coverage": np.mean(np.abs(errors - mean) <= norm.ppf(0.95) * std),
            "rank_correlation": spearmanr(mean, errors).statistic,
        }
    )
    return {"n_errors": len(errors), **{name: rounded(float(value)) for name, value in row.items()}}


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print the means by set."""
    names = ("n_errors", *MEASURES)
    by_set = {**group(rows, lambda row: row["dataset"]), "all sets": rows}
    print_table(
        [
            {"set": name, **{column: float(np.nanmean(numbers(own, column))) for column in names}}
            for name, own in by_set.items()
            if not np.isnan(numbers(own, "error")).all()
        ]
    )


def main() -> None:
    """Measure what is missing and print the table."""
    parser = make_parser(__doc__, datasets=(*SETS, *WITH_CATEGORIES), seeds=2)
    arguments = parse(parser, small={"datasets": ["concrete 120"], "seeds": 1})
    units = [Fit(name, seed) for seed in range(arguments.seeds) for name in arguments.datasets]
    summarise(collect(NAME, units, measure, arguments))


if __name__ == "__main__":
    main()
