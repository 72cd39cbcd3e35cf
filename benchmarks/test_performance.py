"""Test error of searches and of models without one (tables 2 and 5 of the SOT paper).

The protocol is in runs.py; all searches evaluate as many kernels. Errors are on the standardised
scale: RMSE, and negative log predictive density (NLL) in nats per test point. Medians over the
seeds stand with quartiles and the standard error of the mean, beside the paper's means: at 50
iterations, and (NLL, "at equal time") at the end of the shortest run of SOT. ``less sot`` and
``less best`` tell how far the mean is above that of SOT and of the best one, over the splits that
both have, with the standard error. The best one has run on at least half the splits.

Runs are appended to results/searches.csv, which search_comparison.py reads as well; those that the
current commit has there are not run again. Draws docs/figures/test_performance.png.

    python benchmarks/test_performance.py --datasets airline --seeds 10 --jobs 2
    AUTOKERNEL_DATA=folder python benchmarks/test_performance.py --jobs 2   # all, many hours
    python benchmarks/test_performance.py --datasets airline --strategies sot sot-loo sot-ucb
    python benchmarks/test_performance.py --small --jobs 2                  # some minutes
"""

from collections.abc import Mapping, Sequence

from common import (  # isort: skip
    group,
    numbers,
    print_environment,
    print_table,
    save_figure,
    standard_error,
)
from published import TEST_NLL, TEST_NLL_AT_EQUAL_TIME, TEST_RMSE  # isort: skip
from runs import BASELINES, SEARCHES, SOT_BY, ask, collect, without_rare  # isort: skip

import numpy as np

MEASURES = {"rmse": TEST_RMSE, "nll": TEST_NLL}
Rows = Sequence[Mapping[str, str]]


def summarise(dataset: str, rows: Rows) -> None:
    """Print the tables of a data set, the best strategy by its median first."""
    by_strategy = group(rows, lambda row: row["strategy"])
    often = group(without_rare(rows), lambda row: row["strategy"])
    print(f"\n{dataset}")
    for name, paper in MEASURES.items():
        best = best_of(often, name)
        order = sorted(by_strategy, key=lambda key: np.median(numbers(by_strategy[key], name)))
        table = []
        for strategy in order:
            values = numbers(by_strategy[strategy], name)
            low, median, high = np.percentile(values, [25, 50, 75])
            table.append(
                {
                    name: strategy,
                    "runs": len(values),
                    "median": median,
                    "quartiles": f"{low:.4f} to {high:.4f}",
                    "mean": values.mean(),
                    "standard error": standard_error(values),
                    "less sot": behind(by_strategy[strategy], by_strategy.get("sot", []), name),
                    "less best": behind(by_strategy[strategy], by_strategy[best], name),
                    "paper": _published(paper, dataset, strategy),
                    **_at_equal_time(name, dataset, strategy),
                }
            )
        print_table(table)
        print(f"FKL in the paper: {paper[dataset]['fkl']}")
        print(verdict(by_strategy, best, name))


def best_of(by_strategy: Mapping[str, Rows], name: str) -> str:
    """Return the strategy of lowest mean, each compared over the splits that it shares with SOT."""
    reference = by_strategy.get("sot") or max(by_strategy.values(), key=len)
    shared = {key: paired(rows, reference, name) for key, rows in by_strategy.items()}
    return min(shared, key=lambda key: shared[key].mean() if len(shared[key]) else np.inf)


def verdict(by_strategy: Mapping[str, Rows], best: str, name: str) -> str:
    """Say whether SOT is the best, or within one standard error of it."""
    if "sot" not in by_strategy or best == "sot":
        return f"best mean {name}: {best}"
    differences = paired(by_strategy["sot"], by_strategy[best], name)
    is_close = differences.mean() <= standard_error(differences)
    return f"best mean {name}: {best}; sot is {'' if is_close else 'not '}within one standard error"


def behind(rows: Rows, others: Rows, name: str) -> str:
    """Write by how much a strategy is above another, nothing where they share no split."""
    differences = paired(rows, others, name)
    if not len(differences):
        return ""
    return f"{differences.mean():.4f} ± {standard_error(differences):.4f}"


def paired(rows: Rows, others: Rows, name: str) -> np.ndarray:
    """Differences on the same splits."""
    theirs = {row["seed"]: float(row[name]) for row in others}
    return np.array([float(r[name]) - theirs[r["seed"]] for r in rows if r["seed"] in theirs])


def _at_equal_time(name: str, dataset: str, strategy: str) -> dict[str, object]:
    """Fill the column of table 2, which has no RMSE."""
    if name != "nll":
        return {}
    return {"paper, equal time": _published(TEST_NLL_AT_EQUAL_TIME, dataset, strategy)}


def _published(table: Mapping[str, Mapping[str, float]], dataset: str, strategy: str) -> object:
    """Look up a published number; empty where there is none."""
    return table[dataset].get(strategy, "")


def draw(rows: Rows, *, complete: bool) -> None:
    """Draw box plots by strategy, with the paper's numbers as crosses."""
    from matplotlib.figure import Figure

    by_dataset = group(rows, lambda row: row["dataset"])
    figure = Figure(figsize=(3.2 * len(by_dataset) + 1, 6), layout="constrained")
    panels = figure.subplots(len(MEASURES), len(by_dataset), squeeze=False, sharey="row")
    strategies = list(group(rows, lambda row: row["strategy"]))[::-1]
    heights = range(1, len(strategies) + 1)
    for line, (name, paper) in zip(panels, MEASURES.items(), strict=True):
        for axes, (dataset, of_dataset) in zip(line, by_dataset.items(), strict=True):
            found = group(of_dataset, lambda row: row["strategy"])
            values = [numbers(found.get(strategy, []), name) for strategy in strategies]
            axes.boxplot(values, orientation="horizontal", widths=0.6, showfliers=True)
            theirs = [paper[dataset].get(strategy, np.nan) for strategy in strategies]
            axes.plot(theirs, heights, "x", color="C3", label="the paper's mean")
            axes.set_yticks(heights, strategies)
            axes.set_xlabel(f"test {name.upper()}")
            axes.grid(axis="x", alpha=0.3)
            if name == "rmse":
                axes.set_title(dataset)
    panels[0, 0].legend(fontsize="small")
    save_figure(figure, "test_performance", complete=complete)


def main() -> None:
    """Run what is missing, print the tables and draw the figure."""
    arguments = ask(__doc__, [*SEARCHES, *BASELINES], list(SOT_BY))
    print_environment()
    rows = collect(arguments)
    for dataset, of_dataset in group(rows, lambda row: row["dataset"]).items():
        summarise(dataset, of_dataset)
    draw(without_rare(rows), complete=arguments.complete)


if __name__ == "__main__":
    main()
