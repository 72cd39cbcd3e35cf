"""How fast searches find kernels of high evidence, and how well these predict.

The protocol is that of the SOT paper, see runs.py; priors and initial design are the defaults of
this package. Every strategy evaluates ``--n-iter`` kernels after its initial design, and
``initial_design`` is the best kernel of that of SOT. The tables show

- the best score in nats per row after as many CPU seconds as the shortest run of SOT has taken,
  and at the end: medians over the seeds;
- RMSE and NLL of the test rows on the standardised scale, with the mean differences to SOT on the
  same splits and their standard errors;
- CPU seconds of proposing kernels over those of evaluating them, after the initial design.

A run is a row of results/searches.csv. Its column ``trajectory`` holds every improvement of the
best score as ``number:score:seconds``: the number is counted over all evaluations, the score is in
nats per row, and the seconds are those of the CPU since the fit began. Draws
docs/figures/search_comparison.png: medians and quartiles, each line up to the end of its shortest
run.

    AUTOKERNEL_DATA=folder python benchmarks/search_comparison.py --seeds 3 --jobs 2   # hours
    python benchmarks/search_comparison.py --small
    python benchmarks/search_comparison.py --finished --any-commit
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    save_figure,
    standard_error,
)
from runs import draw_split, normal_nll, rmse  # isort: skip

import numpy as np

from autokernel import AutoKernelGPRegressor, parse_expression

NAME = "searches"  # of the CSV file
N_TRAIN = {"airline": 100, "power_plant": 500, "airfoil": 500, "concrete": 500}
STRATEGIES = ("sot", "boms", "arc", "greedy", "tree_gep", "random", "initial_design")
N_MOMENTS = 120  # of the lines over time
Rows = Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Run:
    """What a row is measured for."""

    dataset: str
    strategy: str
    seed: int
    n_iter: int  # kernels after the initial design


class CpuClock:
    """A callback of a fit that notes the CPU seconds at which evaluations begin and end."""

    def __init__(self) -> None:
        self.begun: list[float] = []
        self.ended: list[float] = []
        self._start = time.process_time()

    def setup(self, estimator: object, context: object) -> None:
        """Begin nothing: the clock runs from when it was made."""

    def teardown(self, estimator: object, context: object) -> None:
        """End nothing."""

    def on_fit_task_begin(self, estimator: object, context: Any) -> None:  # noqa: ARG002 - of others
        """Note that an evaluation begins: what was before it was a proposal."""
        if context.task_name == "kernel":
            self.begun.append(time.process_time() - self._start)

    def on_fit_task_end(self, estimator: object, context: Any) -> bool:  # noqa: ARG002 - of others
        """Note that an evaluation has ended, and go on."""
        if context.task_name == "kernel":
            self.ended.append(time.process_time() - self._start)
        return False


def measure(run: Run) -> Row:
    """Search on one split, and measure time and test error."""
    split = draw_split(run.dataset, run.seed, n_train=N_TRAIN[run.dataset])
    strategy = "sot" if run.strategy == "initial_design" else run.strategy
    clock, began = CpuClock(), time.perf_counter()
    model = AutoKernelGPRegressor(strategy=strategy, n_iter=run.n_iter, random_state=run.seed)
    model.set_callbacks(clock).fit(split.X_train, split.y_train)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - clock._start
    mean, std = model.predict(split.X_test, return_std=True)
    history = model.search_history_
    first = int(np.sum(history["phase"] == "initial"))
    begun, ended = np.array(clock.begun), np.array(clock.ended)
    steps = np.flatnonzero(history["score"] >= history["best_score"])
    per_row = history["score_per_sample"]
    return {
        "rmse": rounded(rmse(mean, split.y_test)),
        "nll": rounded(normal_nll(mean, std, split.y_test)),
        "score_per_sample": rounded(model.best_score_ / len(split.y_train)),
        "fit_seconds": rounded(seconds),
        "cpu_seconds": rounded(cpu_seconds),
        "evaluation_seconds": rounded(float(np.sum(ended[first:] - begun[first:]))),
        "proposal_seconds": rounded(float(np.sum(begun[first:] - ended[first - 1 : -1]))),
        "n_evaluations": len(history["score"]),
        "n_initial": first,
        "n_leaves": parse_expression(model.best_expression_).n_leaves,
        "kernel": model.best_expression_,
        "trajectory": " ".join(f"{i + 1}:{per_row[i]:.5g}:{ended[i]:.4g}" for i in steps),
    }


def best_after(row: Mapping[str, str], limits: np.ndarray, *, by: int) -> np.ndarray:
    """Best scores after numbers of evaluations (``by=0``) or seconds (``by=2``), or NaN."""
    steps = [list(map(float, step.split(":"))) for step in row["trajectory"].split()]
    reached = np.searchsorted([step[by] for step in steps], limits, side="right")
    return np.array([np.nan, *(step[1] for step in steps)])[reached]


def quartiles(rows: Rows, limits: np.ndarray, *, by: int) -> np.ndarray:
    """Quartiles (3, n) over runs of the best scores at n limits; NaN where a run has none yet."""
    return np.percentile([best_after(row, limits, by=by) for row in rows], [25, 50, 75], axis=0)


def less(rows: Rows, others: Rows, name: str) -> str:
    """Write how far a strategy is above another one on the splits that both have."""
    theirs = {row["seed"]: float(row[name]) for row in others}
    both = np.array([float(r[name]) - theirs[r["seed"]] for r in rows if r["seed"] in theirs])
    return f"{both.mean():.4f} ± {standard_error(both):.4f}" if len(both) else ""


def summarise(title: str, rows: Rows) -> None:
    """Print the table of a data set."""
    by_strategy = group(rows, lambda row: row["strategy"])
    sot = by_strategy.get("sot", [])
    limit = np.array([numbers(sot or rows, "cpu_seconds").min()])
    table = []
    for strategy, found in by_strategy.items():
        searched = any(row["trajectory"] for row in found)
        evaluating = numbers(found, "evaluation_seconds")
        table.append(
            {
                "strategy": strategy,
                "runs": len(found),
                f"after {limit[0]:.0f} s": quartiles(found, limit, by=2)[1, 0] if searched else "",
                "at the end": float(np.median(numbers(found, "score_per_sample"))),
                "CPU s": float(np.median(numbers(found, "cpu_seconds"))),
                "proposing : evaluating": float(
                    np.median(
                        numbers(found, "proposal_seconds") / np.where(evaluating, evaluating, 1)
                    )
                ),
                "leaves": float(np.median(numbers(found, "n_leaves"))),
                "RMSE": float(np.median(numbers(found, "rmse"))),
                "less sot": less(found, sot, "rmse"),
                "NLL": float(np.median(numbers(found, "nll"))),
                "NLL less sot": less(found, sot, "nll"),
            }
        )
    print(f"\n{title}")
    print_table(table)


def draw(rows: Rows, *, complete: bool) -> None:
    """Draw the best score over evaluations and over CPU seconds."""
    from matplotlib.figure import Figure

    by_dataset = group(rows, lambda row: row["dataset"])
    figure = Figure(figsize=(3.6 * len(by_dataset) + 1.5, 6), layout="constrained")
    panels = figure.subplots(2, len(by_dataset), squeeze=False, sharey="col")
    for (above, below), (dataset, found) in zip(panels.T, by_dataset.items(), strict=True):
        middles = []
        for strategy, runs in group(found, lambda row: row["strategy"]).items():
            if not all(row["trajectory"] for row in runs) or strategy == "initial_design":
                continue
            counts = np.arange(1, numbers(runs, "n_evaluations").min() + 1)
            seconds = np.linspace(0, numbers(runs, "cpu_seconds").min(), N_MOMENTS)
            style = {"color": f"C{STRATEGIES.index(strategy)}", "label": strategy}
            for axes, limits, by in ((above, counts, 0), (below, seconds, 2)):
                low, median, high = quartiles(runs, limits, by=by)
                colour = style["color"]
                axes.fill_between(limits, low, high, color=colour, alpha=0.15, lw=0, step="post")
                axes.step(limits, median, where="post", **style)
                axes.grid(alpha=0.3)
            middles.append(quartiles(runs, counts, by=0)[1])
        n_initial = int(numbers(found, "n_initial").max())
        lowest = min(middle[: n_initial + 1][-1] for middle in middles)
        highest = max(middle[-1] for middle in middles)
        above.set_ylim(lowest - 0.1 * (highest - lowest), highest + 0.1 * (highest - lowest))
        above.set(title=dataset, xlabel="evaluations")
        below.set_xlabel("CPU seconds")
    for line in panels:
        line[0].set_ylabel("best score, nats per row")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    save_figure(figure, "search_comparison", complete=complete)


def main() -> None:
    """Run what is missing, print the tables and draw the figure."""
    parser = make_parser(__doc__, datasets=N_TRAIN, seeds=10)
    parser.add_argument("--n-iter", type=int, default=50, help="kernels after the initial design")
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES), choices=STRATEGIES)
    arguments = parse(parser, small={"datasets": ["airline"], "seeds": 2, "n_iter": 5})
    units = [
        Run(dataset, name, seed, 0 if name == "initial_design" else arguments.n_iter)
        for seed in range(arguments.seeds)
        for dataset in arguments.datasets
        for name in arguments.strategies
    ]
    rows: Rows = collect(NAME, units, measure, arguments)
    if arguments.finished and arguments.any_commit:  # tables of each version
        rows = [row for row in read_rows(NAME) if row["strategy"] in arguments.strategies]
    for (commit, dataset), found in group(rows, lambda r: (r["commit"], r["dataset"])).items():
        summarise(f"{dataset}, {commit}", found)
    last = [row for row in rows if row["commit"] == rows[-1]["commit"]]
    draw(last, complete=arguments.complete)


if __name__ == "__main__":
    main()
