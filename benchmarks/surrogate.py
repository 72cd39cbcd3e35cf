"""How well the surrogate of the search predicts estimates that it has not seen.

Before each batch of estimates that it learns in a default fit, it predicts their gains. The batch
has the neighbours of one kernel; the first batch is not predicted. A row has means over batches:
the rank correlation of predictions and gains; the error in nats, of gains that count by their
logarithm beyond two nats, as a share of that of the mean of the batch; how many gains are within
intervals of 90 %; and the rank of the best one, as a share of the batch.

Rows go to results/surrogate.csv.

    AUTOKERNEL_DATA=folder python benchmarks/surrogate.py          # ten minutes of CPU time
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from unittest.mock import patch

from common import Row, collect, group, make_parser, numbers, parse, print_table, rounded  # isort: skip
from seeds import SETS  # isort: skip

import numpy as np
import pandas as pd
from scipy.stats import norm, spearmanr

from autokernel import AutoKernelGPRegressor
from autokernel.search.surrogate import Edge, GainGP

NAME = "surrogate"  # of the CSV file
SCALE = 2.0  # nats, up to which gains count nearly in full
MIN_BATCH = 10  # estimates


@dataclass(frozen=True, slots=True)
class Fit:
    """What a row is measured for."""

    dataset: str
    seed: int


def measure(unit: Fit) -> Row:
    """Fit by the defaults, and compare each batch with what is predicted before."""
    found: list[dict[str, float]] = []
    learn = GainGP.learn

    def predict_and_learn(
        self: GainGP, changes: Sequence[Edge], gains: np.ndarray, errors: np.ndarray
    ) -> None:
        if self.n_batches and len(gains) >= MIN_BATCH:
            median, std = self.predict(changes)
            truth, guess = np.arcsinh(gains / SCALE), np.arcsinh(median / SCALE)
            order = np.argsort(-median, kind="stable")
            found.append(
                {
                    "rank_correlation": float(spearmanr(median, gains).statistic),
                    "error": float(np.sqrt(np.mean((truth - guess) ** 2)) / truth.std()),
                    "coverage": float(np.mean(np.abs(gains - median) <= norm.ppf(0.95) * std)),
                    "rank_of_best": float(np.argmax(order == np.argmax(gains)) / len(gains)),
                }
            )
        learn(self, changes, gains, errors)

    X, y, _ = SETS[unit.dataset]()
    with patch.object(GainGP, "learn", predict_and_learn):
        AutoKernelGPRegressor(random_state=unit.seed).fit(X, y)
    means = pd.DataFrame(found).mean()
    return {"n_batches": len(found), **{name: rounded(value) for name, value in means.items()}}


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print the means by set."""
    names = ("n_batches", "rank_correlation", "error", "coverage", "rank_of_best")
    by_set = {**group(rows, lambda row: row["dataset"]), "all sets": rows}
    print_table(
        [
            {"set": name, **{column: float(np.nanmean(numbers(own, column))) for column in names}}
            for name, own in by_set.items()
        ]
    )


def main() -> None:
    """Measure what is missing and print the table."""
    parser = make_parser(__doc__, datasets=SETS, seeds=2)
    arguments = parse(parser, small={"datasets": ["concrete 120"], "seeds": 1})
    units = [Fit(name, seed) for seed in range(arguments.seeds) for name in arguments.datasets]
    summarise(collect(NAME, units, measure, arguments))


if __name__ == "__main__":
    main()
