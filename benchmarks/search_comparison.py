"""How soon searches find kernels of high evidence at equal CPU time, and how well these predict.

All strategies search the same rows for ``--cpu-seconds``, with constant noise and no row excluded,
so that scores of a data set are comparable. ``sot`` is the default of this package, and may end
earlier. The others have ``tol=0``, and end earlier only if no kernel is left or, for ``greedy`` and
``skc``, none is better. ``sot_climb``, which is the default but for its design, ``sot_paper`` and
``arc``, both without local steps, ``boms``, ``tree_gep`` and ``random`` begin with the same random
design for one seed, ``greedy`` and ``skc`` with the base kernels. A score of ``skc`` is a lower
bound. The tables show medians over the seeds: the best score in nats per row after numbers of
kernels, if all runs have reached them, and after a quarter, half and all of the CPU time; CPU
seconds of the fit; RMSE and NLL of the test rows on the standardised scale. The last table holds
means over 30 seeds by Bitzer, Meister and Zimmer (2022): NLL of table 2, RMSE of table 5.

A run is a row of results/searches.csv. Its column ``trajectory`` holds every improvement of the
best score as ``number:score:seconds``: the number is counted over all evaluations, the score is in
nats per row, and the seconds are those of the CPU since the fit began. Draws medians and quartiles
to docs/figures/search_comparison_kernels.png, each line up to the end of the shortest run that was
out of time, and search_comparison_cpu.png. A line continues flat if the search ended by itself.

    AUTOKERNEL_DATA=folder python benchmarks/search_comparison.py   # an hour and a half of one core
    python benchmarks/search_comparison.py --small
    python benchmarks/search_comparison.py --finished --any-commit
"""

import time
from collections.abc import Mapping
from typing import Any

import common
import numpy as np
from common import Row, Rows, group, numbers
from data import draw_split

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.search import BOMS, SOT, Arc, RandomWalks, Strategy, TreeGEP

NAME = "searches"  # of the CSV file
N_TRAIN = {"airline": 100, "power_plant": 500, "airfoil": 500, "concrete": 500}  # of the paper
STRATEGIES: Mapping[str, str | Strategy] = {
    "sot": "sot",
    "sot_climb": SOT(initial_design="paper"),
    "sot_paper": SOT(local_steps=False, initial_design="paper"),
    "arc": Arc(local_steps=False, initial_design="paper"),
    "boms": BOMS(initial_design="paper"),
    "random": RandomWalks(initial_design="paper"),
    "greedy": "greedy",
    "skc": "skc",
    "tree_gep": TreeGEP(initial_design="paper"),
}
PAPER = {  # in the order of N_TRAIN; boms is its Hellinger kernel
    "NLL: sot": (-0.7015, -0.0661, 0.1006, 0.2872),
    "boms": (0.3368, 0.0580, 0.9080, 0.6633),
    "greedy": (-0.4042, -0.0053, 0.0837, 0.3254),
    "tree_gep": (-0.5594, -0.0241, 0.1826, 0.2812),
    "RMSE: sot": (0.1335, 0.2362, 0.3334, 0.2980),
}
MAX_ITER = 10_000  # more kernels than any search evaluates in time
COUNTS = (25, 50, 100)  # kernels, of the table
MAX_COUNT = 200  # kernels, of the figure
N_MOMENTS = 240  # of the lines over time


class CpuClock:
    """A callback that notes when evaluations begin and end, and ends a fit after CPU seconds."""

    def __init__(self, limit: float) -> None:
        self.begun: list[float] = []
        self.ended: list[float] = []
        self._limit, self._start = limit, time.process_time()

    @property
    def seconds(self) -> float:
        return time.process_time() - self._start

    def setup(self, estimator: object, context: object) -> None:
        """Begin nothing: the clock runs from when it was made."""

    def teardown(self, estimator: object, context: object) -> None:
        """End nothing."""

    def on_fit_task_begin(self, estimator: object, context: Any) -> None:  # noqa: ARG002 - of others
        """Note that an evaluation begins: what was before it was a proposal."""
        if context.task_name == "kernel":
            self.begun.append(self.seconds)

    def on_fit_task_end(self, estimator: object, context: Any) -> bool:  # noqa: ARG002 - of others
        """Note that an evaluation has ended, and end the search if the time is over."""
        if context.task_name == "kernel":
            self.ended.append(self.seconds)
        return self.seconds > self._limit


def measure(dataset: str, strategy: str, seed: int, n_train: int, cpu_limit: float) -> Row:
    split = draw_split(dataset, seed, n_train=n_train)
    model = AutoKernelGPRegressor(
        strategy=STRATEGIES[strategy], noise="constant", outliers=None, random_state=seed
    )
    if strategy != "sot":
        model.set_params(n_iter=MAX_ITER, tol=0.0)
    clock = CpuClock(cpu_limit)
    model.set_callbacks(clock).fit(split.X, split.y)
    cpu_seconds = clock.seconds
    mean, std = model.predict(split.X_test, return_std=True)
    history = model.search_history_
    first = int(np.sum(history["phase"] == "initial"))
    begun, ended = np.array(clock.begun), np.array(clock.ended)
    scores = history["score"] / n_train
    scores[~np.isclose(scores, history["score_per_sample"])] = -np.inf  # of some of the rows
    steps = np.flatnonzero(np.diff(np.maximum.accumulate([-np.inf, *scores])) > 0)
    return {
        "rmse": common.rmse(mean, split.y_test),
        "nll": common.normal_nll(mean, std, split.y_test),
        "score_per_sample": model.best_score_ / n_train,
        "cpu_seconds": cpu_seconds,
        "evaluation_seconds": float(np.sum(ended[first:] - begun[first:])),
        "proposal_seconds": float(np.sum(begun[first:] - ended[first - 1 : -1])),
        "n_evaluations": len(history["score"]),
        "n_initial": first,
        "stop_reason": model.stop_reason_,
        "n_leaves": parse_expression(model.best_expression_).n_leaves,
        "kernel": model.best_expression_,
        "trajectory": " ".join(f"{i + 1}:{scores[i]:.5g}:{ended[i]:.4g}" for i in steps),
    }


def quartiles(rows: Rows, limits: np.ndarray, *, by: int) -> np.ndarray:
    """Quartiles (3, n) of best scores after n kernels (``by=0``) or seconds (``by=2``), or NaN."""
    found = []
    for row in rows:
        steps = [list(map(float, step.split(":"))) for step in row["trajectory"].split()]
        reached = np.searchsorted([step[by] for step in steps], limits, side="right")
        found.append(np.array([np.nan, *(step[1] for step in steps)])[reached])
    return np.percentile(found, [25, 50, 75], axis=0)


def summarise(dataset: str, rows: Rows) -> None:

    def best(limit: float, *, by: int) -> common.Figure:
        def figure(runs: Rows) -> object:
            is_reached = by == 2 or numbers(runs, "n_evaluations").min() >= limit
            return float(quartiles(runs, np.array([limit]), by=by)[1, 0]) if is_reached else ""

        return figure

    seconds = float(rows[0]["cpu_limit"]) * np.array([0.25, 0.5, 1.0])
    figures = {
        "runs": len,
        "kernels": common.of(np.median, "n_evaluations"),
        **{f"after {n}": best(n, by=0) for n in COUNTS},
        **{f"{limit:.3g} s": best(limit, by=2) for limit in seconds},
        "CPU s": common.of(np.median, "cpu_seconds"),
        "RMSE": common.of(np.median, "rmse"),
        "NLL": common.of(np.median, "nll"),
        "commit": lambda runs: " ".join(group(runs, "commit")),
    }
    print(f"\n{dataset}, {rows[0]['n_train']} rows")
    common.print_groups(group(rows, "strategy"), "strategy", figures)


def draw(rows: Rows, name: str, *, by: int, complete: bool) -> None:
    """Draw the best score over numbers of kernels (``by=0``) or over CPU seconds (``by=2``)."""
    from matplotlib.figure import Figure

    by_dataset = group(rows, "dataset")
    n_lines, n_columns = (len(by_dataset) + 1) // 2, min(2, len(by_dataset))
    figure = Figure(figsize=(4.6 * n_columns, 3.2 * n_lines + 0.6), layout="constrained")
    panels = figure.subplots(n_lines, n_columns, squeeze=False)
    for axes, (dataset, found) in zip(panels.flat, by_dataset.items(), strict=False):
        edges = []
        for strategy, runs in group(found, "strategy").items():
            cut = [int(row["n_evaluations"]) for row in runs if row["stop_reason"] == "callback"]
            end = float(runs[0]["cpu_limit"]) if by else min([MAX_COUNT, *cut])
            limits = np.linspace(0, end, N_MOMENTS) if by else np.arange(1.0, end + 1)
            low, median, high = quartiles(runs, limits, by=by)
            colour = f"C{list(STRATEGIES).index(strategy)}"
            axes.fill_between(limits, low, high, color=colour, alpha=0.15, lw=0, step="post")
            axes.step(limits, median, where="post", color=colour, label=strategy)
            edges += [median[len(median) // 8], median[-1]]  # the first kernels are far below
        low, high = np.nanmin(edges), np.nanmax(edges)
        axes.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
        axis = "CPU seconds" if by else "kernels evaluated"
        axes.set(title=dataset, xlabel=axis, ylabel="best score, nats per row")
        axes.grid(alpha=0.3)
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4 * n_columns
    )
    common.save_figure(figure, name, complete=complete)


def main() -> None:
    arguments = common.options_of(
        __doc__, datasets=N_TRAIN, seeds=3, rows=200, cpu_seconds=40.0, strategies=list(STRATEGIES),
        small={"datasets": ["airline"], "seeds": 2, "cpu_seconds": 3.0},
    )  # fmt: skip
    units = [
        unit | {"n_train": min(arguments.rows, N_TRAIN[unit["dataset"]])}
        for unit in common.crossed(
            seed=range(arguments.seeds),
            dataset=arguments.datasets,
            strategy=arguments.strategies,
            cpu_limit=[arguments.cpu_seconds],
        )
    ]
    rows = common.collect(NAME, units, measure, arguments)
    for dataset, found in group(rows, "dataset").items():
        summarise(dataset, found)
    print("\nThe paper, on 500 rows (airline: 100); its evidence is only drawn, with other priors")
    lines = [{"set": s, **{k: v[n] for k, v in PAPER.items()}} for n, s in enumerate(N_TRAIN)]
    common.print_table(lines)
    draw(rows, "search_comparison_kernels", by=0, complete=arguments.complete)
    draw(rows, "search_comparison_cpu", by=2, complete=arguments.complete)


if __name__ == "__main__":
    main()
