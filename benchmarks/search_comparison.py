"""How fast searches find kernels of high evidence (figure 1 and table 3 of the SOT paper).

The protocol is in runs.py; all searches evaluate as many kernels. The tables show

- the best log evidence in nats per sample after so many evaluations, and after so many CPU seconds
  as the shortest run of SOT has taken: medians over the seeds, with quartiles;
- CPU seconds of proposing kernels over those of evaluating them, after the initial design.

Runs are appended to results/searches.csv, which test_performance.py reads as well; those that the
current commit has there are not run again. A search by another criterion than the evidence has no
place here. Draws docs/figures/search_comparison.png: medians and quartiles, each line up to the end
of its shortest run; a strategy that ends below what is drawn is written there with where it ends.

    python benchmarks/search_comparison.py --datasets airline --seeds 10 --jobs 2
    AUTOKERNEL_DATA=folder python benchmarks/search_comparison.py --jobs 2   # all, many hours
    python benchmarks/search_comparison.py --small --jobs 2                  # some minutes
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from common import group, numbers, print_environment, print_table, save_figure  # isort: skip
from published import PROPOSING_TO_EVALUATING  # isort: skip
from runs import (  # isort: skip
    ALL_SEARCHES,
    SEARCHES,
    Improvement,
    ask,
    collect,
    read_trajectory,
    without_rare,
)

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = Sequence[Mapping[str, str]]
BY_EVIDENCE = [name for name, options in ALL_SEARCHES.items() if "criterion" not in options]
STRATEGIES = [name for name in BY_EVIDENCE if name in SEARCHES]
OTHERS = [name for name in BY_EVIDENCE if name not in SEARCHES]
COLOURS = {
    **{name: f"C{digit}" for name, digit in zip(BY_EVIDENCE, "012345689", strict=True)},
    "random": "0.45",  # C7 is a grey as well
}
N_MOMENTS = 120  # of the lines over time


def best_after(
    row: Mapping[str, str], limits: np.ndarray, key: Callable[[Improvement], float]
) -> np.ndarray:
    """Best scores of a run at numbers of evaluations or times, NaN before the first one."""
    steps = read_trajectory(row)
    reached = np.searchsorted([key(step) for step in steps], limits, side="right")
    return np.array([np.nan, *(step.score for step in steps)])[reached]


def by_number(step: Improvement) -> float:
    """Measure a run in evaluations."""
    return step.number


def by_seconds(step: Improvement) -> float:
    """Measure a run in CPU seconds."""
    return step.seconds


def quartiles(rows: Rows, limits: np.ndarray, key: Callable[[Improvement], float]) -> np.ndarray:
    """Quartiles (3, n) over runs of the best scores at n limits; NaN where a run has none yet."""
    return np.percentile([best_after(row, limits, key) for row in rows], [25, 50, 75], axis=0)


def summarise(dataset: str, rows: Rows) -> None:
    """Print the table of a data set, the best strategy first."""
    by_strategy = group(rows, lambda row: row["strategy"])
    reference = by_strategy.get("sot", rows)
    n_initial = int(numbers(reference, "n_initial").min())
    n_last = int(numbers(reference, "n_evaluations").min())
    counts = np.unique([n_initial, *np.linspace(n_initial, n_last, 4).astype(int)])
    seconds = np.array([numbers(reference, "cpu_seconds").min()])
    table = []
    for strategy, of_strategy in by_strategy.items():
        low, median, high = quartiles(of_strategy, counts, by_number)
        in_time = quartiles(of_strategy, seconds, by_seconds)
        table.append(
            {
                "strategy": strategy,
                "runs": len(of_strategy),
                **{f"after {n}": m for n, m in zip(counts, median.tolist(), strict=True)},
                "quartiles": f"{low[-1]:.4f} to {high[-1]:.4f}",
                f"after {seconds[0]:.0f} s": float(in_time[1, 0]),
                "quartiles in time": f"{in_time[0, 0]:.4f} to {in_time[2, 0]:.4f}",
                "CPU seconds": float(np.median(numbers(of_strategy, "cpu_seconds"))),
            }
        )
    print(f"\n{dataset}")
    print_table(sorted(table, key=lambda row: -row[f"after {counts[-1]}"]))


def print_ratios(rows: Rows) -> None:
    """Print what proposing costs, in parts of what evaluating costs."""
    table = []
    for (dataset, strategy), found in group(rows, _of_dataset_and_strategy).items():
        ratios = numbers(found, "proposal_seconds") / numbers(found, "evaluation_seconds")
        low, median, high = np.percentile(ratios, [25, 50, 75])
        table.append(
            {
                "dataset": dataset,
                "strategy": strategy,
                "runs": len(ratios),
                "proposing : evaluating": median,
                "quartiles": f"{low:.3g} to {high:.3g}",
                "paper": PROPOSING_TO_EVALUATING[dataset].get(strategy, ""),
            }
        )
    print()
    print_table(table)


def draw(rows: Rows, *, complete: bool) -> None:
    """Draw the best evidence over evaluations and over CPU seconds."""
    from matplotlib.figure import Figure

    by_dataset = group(rows, lambda row: row["dataset"])
    figure = Figure(figsize=(3.6 * len(by_dataset) + 1.5, 6), layout="constrained")
    panels = figure.subplots(2, len(by_dataset), squeeze=False, sharey="col")
    for (above, below), (dataset, found) in zip(panels.T, by_dataset.items(), strict=True):
        n_initial = int(numbers(found, "n_initial").max())
        after_design, at_end = [], {}
        for strategy, of_strategy in group(found, lambda row: row["strategy"]).items():
            n_last = numbers(of_strategy, "n_evaluations").min()
            seconds = numbers(of_strategy, "cpu_seconds").min()
            first = max(read_trajectory(row)[0].seconds for row in of_strategy)
            moments = np.linspace(first, max(first, seconds), N_MOMENTS)
            middle = draw_line(above, of_strategy, np.arange(1, n_last + 1), by_number, strategy)
            draw_line(below, of_strategy, moments, by_seconds, strategy)
            after_design.append(middle[:n_initial][-1])
            at_end[strategy] = middle[-1]
        above.axvline(n_initial, color="grey", linewidth=0.8, linestyle=":")
        lowest, highest = np.median(after_design), above.get_ylim()[1]
        above.set_ylim(lowest - 0.3 * (highest - lowest), highest)
        hidden = [f"{s}: {v:.2f}" for s, v in at_end.items() if v < above.get_ylim()[0]]
        style = {"ha": "right", "color": "0.3", "fontsize": "small"}
        above.text(0.97, 0.04, "\n".join(hidden), transform=above.transAxes, **style)
        above.set(title=dataset, xlabel="evaluations (dotted: end of the initial design)")
        below.set_xlabel("CPU seconds")
    for line in panels:
        line[0].set_ylabel("best log evidence, nats per sample")
    handles = panels[0, 0].get_legend_handles_labels()
    n_columns = min(len(COLOURS), 3 * panels.shape[1])
    figure.legend(*handles, loc="outside lower center", ncols=n_columns)
    save_figure(figure, "search_comparison", complete=complete)


def draw_line(
    axes: "Axes",
    rows: Rows,
    limits: np.ndarray,
    key: Callable[[Improvement], float],
    strategy: str,
) -> np.ndarray:
    """Draw the median of a strategy over its quartiles, and return it."""
    low, median, high = quartiles(rows, limits, key)
    colour = COLOURS[strategy]
    axes.fill_between(limits, low, high, color=colour, alpha=0.15, linewidth=0, step="post")
    front = strategy == "sot"
    style = {"linewidth": 2.2 if front else 1.3, "zorder": 3 if front else 2}
    axes.step(limits, median, color=colour, label=strategy, where="post", **style)
    axes.grid(alpha=0.3)
    return median


def _of_dataset_and_strategy(row: Mapping[str, str]) -> tuple[str, str]:
    """Key to the rows of a table."""
    return row["dataset"], row["strategy"]


def main() -> None:
    """Run what is missing, print the tables and draw the figure."""
    arguments = ask(__doc__, STRATEGIES, OTHERS)
    print_environment()
    rows = collect(arguments)
    for dataset, of_dataset in group(rows, lambda row: row["dataset"]).items():
        summarise(dataset, of_dataset)
    print_ratios(rows)
    draw(without_rare(rows), complete=arguments.complete)


if __name__ == "__main__":
    main()
