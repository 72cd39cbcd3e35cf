"""Whether a search finds kernels as good as the structures that drew the data.

Each kind is a structure of two to four columns, of which ``g`` and ``h`` are categories of two to
four levels. A table of 150 rows is drawn from it: the size of each term, the lengthscales, periods
and offsets, and the noise are drawn as well. ``lost`` is what the best kernel lacks of the score of
the structure, in nats; less than zero if it is better. The program prints the share of tables with
at most half a nat, those that lost more, and seconds.

Rows go to results/drawn_structures.csv.

    python benchmarks/drawn_structures.py --seeds 5     # 30 kinds, a quarter of an hour of CPU time
    python benchmarks/drawn_structures.py --finished --any-commit
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common import Row, collect, group, make_parser, numbers, parse, print_table, rounded  # isort: skip

import numpy as np
import pandas as pd

from autokernel import AutoKernelGPRegressor

NAME = "drawn_structures"  # of the CSV file
N_ROWS = 150
CLOSE = 0.5  # nats
KINDS = (
    "CAT[g] * LIN[a] + LIN[b]",
    "CAT[g] * LIN[a] + SE[b]",
    "CAT[g] * SE[a] + LIN[b]",
    "CAT[g] + LIN[a]",
    "CAT[g] * LIN[a] + LIN[b] + SE[c]",
    "CAT[g] * SE[a] + SE[b]",
    "CAT[g] * LIN[a] + CAT[h]",
    "CAT[g] * LIN[a] + CAT[h] * LIN[b]",
    "LIN[a] * SE[b] + LIN[c]",
    "SE[a] * SE[b] + LIN[c]",
    "LIN[a] * LIN[b] + SE[c]",
    "SE[a] + SE[b] + SE[c]",
    "SE[a] * SE[b] + SE[c]",
    "LIN[a] * SE[b] + SE[a]",
    "PER[a] + LIN[a]",
    "CAT[g] * PER[a] + LIN[a]",
    "CAT[g] * PER[a] + LIN[b]",
    "PER[a] * SE[a] + LIN[b]",
    "LIN[a] + SE[a] * CAT[g]",
    "LIN[a] + LIN[b] + LIN[c]",
    "CAT[g] + SE[a] * SE[b]",
    "CAT[g] * CAT[h] + LIN[a]",
    "SE[a] + CAT[g] + CAT[h]",
    "LIN[a] * LIN[b] + LIN[c] * LIN[d]",
    "SE[a] * SE[b] + SE[c] * SE[d]",
    "LIN[a] * SE[b] + LIN[c] * SE[d]",
    "LIN[a] * PER[b] + SE[c]",
    "LIN[a] * PER[b] + LIN[c]",
    "CAT[g] * LIN[a] + LIN[b] + LIN[c] + SE[d]",
    "SE[a] + LIN[b] * LIN[c]",
)


@dataclass(frozen=True, slots=True)
class Table:
    """What a row is measured for."""

    kind: str
    seed: int


def drawn(kind: str, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw inputs, and a target from the structure."""
    rng, n = np.random.default_rng([seed, KINDS.index(kind)]), N_ROWS
    names = sorted({part[part.index("[") + 1] for part in kind.replace("*", "+").split("+")})
    X = pd.DataFrame(
        {
            name: rng.choice([*"pqrs"][: 2 + rng.integers(3)], n)
            if name in "gh"
            else rng.uniform(size=n)
            for name in names
        }
    )
    f = np.zeros(n)
    for term in kind.split(" + "):
        K = np.prod([covariance(leaf, X, rng) for leaf in term.split(" * ")], axis=0)
        values, vectors = np.linalg.eigh(K)
        part = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.normal(size=n))
        f += rng.uniform(0.6, 1.5) * (part - part.mean()) / part.std()
    y = f + rng.uniform(0.1, 0.4) * f.std() * rng.normal(size=n)
    return X.map(lambda one: one if isinstance(one, str) else 10 * one), y


def covariance(leaf: str, X: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """Compute the covariance of a leaf, whose parameters are drawn."""
    kernel, x = leaf[:-3], X[leaf[-2]].to_numpy()
    if kernel == "CAT":
        return 0.3 + (x[:, None] == x)
    distance = np.abs(x[:, None] - x)
    if kernel == "LIN":
        return np.multiply.outer(*[x - rng.uniform(0.2, 0.8)] * 2)
    if kernel == "SE":
        return np.exp(-0.5 * (distance / rng.uniform(0.15, 0.35)) ** 2)
    return np.exp(-2 * np.sin(np.pi * distance / rng.uniform(0.1, 0.25)) ** 2)


def measure(table: Table) -> Row:
    """Fit a table, and score the structure that drew it."""
    X, y = drawn(table.kind, table.seed)
    began = time.process_time()
    model = AutoKernelGPRegressor(random_state=table.seed).fit(X, y)
    seconds = time.process_time() - began
    truth = AutoKernelGPRegressor(random_state=table.seed).refit(X, y, kernel=table.kind)
    return {
        "lost": rounded(truth.best_score_ - model.best_score_),
        "cpu_seconds": rounded(seconds),
        "n_kernels": len(model.search_history_["score"]),
        "kernel": model.best_expression_,
        "stop_reason": model.stop_reason_,
        "expected_improvement": rounded(model.expected_improvement_),
    }


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print how many tables lost how much, by commit."""
    for commit, found in group(rows, lambda row: row["commit"]).items():
        lost, seconds = numbers(found, "lost"), numbers(found, "cpu_seconds")
        print(
            f"\n{commit}: {np.sum(lost <= CLOSE)} of {len(found)} tables lost at most {CLOSE} "
            f"nats, {np.sum(lost > 2.0)} more than two; CPU s: median {np.median(seconds):.1f}, "
            f"90 % {np.quantile(seconds, 0.9):.1f}"
        )
        shown = ("kind", "seed", "lost", "cpu_seconds", "kernel")
        far = [row for row, nats in zip(found, lost, strict=True) if nats > CLOSE]
        print_table([{name: row[name] for name in shown} for row in far] or [{"lost more": "none"}])


def main() -> None:
    """Measure what is missing and print the tables."""
    parser = make_parser(__doc__, datasets=KINDS, seeds=5)
    arguments = parse(parser, small={"datasets": KINDS[:2], "seeds": 1})
    tables = [Table(kind, seed) for seed in range(arguments.seeds) for kind in arguments.datasets]
    summarise(collect(NAME, tables, measure, arguments))


if __name__ == "__main__":
    main()
