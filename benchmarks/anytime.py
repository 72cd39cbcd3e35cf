"""What a fit has found after so many CPU seconds: the one figure by which its cost is judged.

Airline, power plant, airfoil and concrete, 120 rows, and 500 of the last three, to train on. Each
row is one default fit. Its column ``trajectory`` holds every improvement of the best score as
``seconds:score:nll``: CPU seconds since the fit began, the score in nats, and the negative log
predictive density per test row of this kernel at its best parameters. ``nll`` is that of the model
that the fit leaves. ``--label`` names the version that is imported: rows of another version are
made by the same file in a checkout of that version, with ``AUTOKERNEL_RESULTS`` naming the folder
of these results.

Rows go to results/anytime.csv, and rows of any commit count. Draws docs/figures/anytime.png:
medians over the seeds of what is missing to the best score that any version has found on a split.

    AUTOKERNEL_DATA=folder python benchmarks/anytime.py --label now --jobs 2   # an hour of CPU time
    python benchmarks/anytime.py --small
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common import (  # isort: skip
    Row,
    group,
    make_parser,
    numbers,
    parse,
    print_environment,
    print_table,
    read_rows,
    rounded,
    run_missing,
    save_figure,
)
from runs import DATASETS, N_TRAIN, CpuClock, Prediction, Split, draw_split, mean_nll, pose  # isort: skip

import numpy as np

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.evidence import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "anytime"  # of the CSV file
FEW = 120
CLOSE = 1.0  # nats below the best score that count as having found it


@dataclass(frozen=True, slots=True)
class Fit:
    """What a row is measured for."""

    label: str
    dataset: str
    n_train: int
    seed: int


def measure(unit: Fit) -> Row:
    """Fit one split, and follow the best kernel."""
    split = draw_split(unit.dataset, unit.seed, n_train=unit.n_train)
    clock = CpuClock()
    began = time.process_time()
    model = AutoKernelGPRegressor(random_state=unit.seed).set_callbacks(clock)
    model.fit(split.X_train, split.y_train)
    seconds = time.process_time() - began
    evaluations = model._past.history.evaluations
    log_density = model.log_predictive_density(split.X_test, split.y_test)
    return {
        "cpu_seconds": rounded(seconds),
        "score": rounded(model.best_score_),
        "nll": rounded(-float(np.mean(log_density))),
        "n_leaves": parse_expression(model.best_expression_).n_leaves,
        "n_evaluations": len(evaluations),
        "n_calls": sum(evaluation.n_evaluations for evaluation in evaluations),
        "stop_reason": model.stop_reason_,
        "kernel": model.best_expression_,
        "trajectory": " ".join(trajectory_of(evaluations, clock.ended, split, seed=unit.seed)),
    }


def trajectory_of(
    evaluations: Sequence[Evaluation], ended: Sequence[float], split: Split, *, seed: int
) -> list[str]:
    """Write every improvement of the best score, with the NLL of the kernel."""
    problem = pose(split.X_train, split.y_train, seed=seed)
    best, steps = -np.inf, []
    for evaluation, seconds in zip(evaluations, ended, strict=True):
        if evaluation.score > best:
            best = evaluation.score
            predicted = Prediction(*problem._conditioned(evaluation).mean_and_std(split.X_test))
            nll = mean_nll(predicted, split.y_test)
            steps.append(f"{seconds:.3f}:{best:.4f}:{nll:.5f}")
    return steps


def read_trajectory(row: Mapping[str, str]) -> np.ndarray:
    """Read a trajectory as seconds, scores and NLL (n_steps, 3)."""
    return np.array(
        [[float(part) for part in step.split(":")] for step in row["trajectory"].split()]
    )


def missing_after(row: Mapping[str, str], seconds: np.ndarray, best: float) -> np.ndarray:
    """Compute the nats missing to the best score after so many CPU seconds, inf before any."""
    steps = read_trajectory(row)
    reached = np.searchsorted(steps[:, 0], seconds, side="right")
    return best - np.append(-np.inf, steps[:, 1])[reached]


def seconds_to(row: Mapping[str, str], best: float) -> float:
    """Find the CPU seconds after which the best score is close, inf if it never is."""
    steps = read_trajectory(row)
    close = steps[steps[:, 1] > best - CLOSE]
    return float(close[0, 0]) if len(close) else np.inf


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print medians by set and version."""
    table = []
    for (dataset, n), of_set in group(rows, lambda row: (row["dataset"], row["n_train"])).items():
        best = {
            seed: float(np.max(numbers(found, "score")))
            for seed, found in group(of_set, lambda row: row["seed"]).items()
        }
        for label, found in group(of_set, lambda row: row["label"]).items():
            missing = [best[row["seed"]] - float(row["score"]) for row in found]
            table.append(
                {
                    "set": f"{dataset}, {n}",
                    "version": label,
                    "splits": len(found),
                    "CPU s": float(np.median(numbers(found, "cpu_seconds"))),
                    "calls": int(np.median(numbers(found, "n_calls"))),
                    "kernels": int(np.median(numbers(found, "n_evaluations"))),
                    "score missing": float(np.median(missing)),
                    "CPU s to within a nat": float(
                        np.median([seconds_to(row, best[row["seed"]]) for row in found])
                    ),
                    "NLL": float(np.mean(numbers(found, "nll"))),
                    "leaves": float(np.median(numbers(found, "n_leaves"))),
                }
            )
    print_table(table)


def draw(rows: Sequence[Mapping[str, str]]) -> None:
    """Draw what is missing over CPU seconds, a panel for each set."""
    import matplotlib.pyplot as plt

    by_set = group(rows, lambda row: (row["dataset"], row["n_train"]))
    n_rows = -(-len(by_set) // 4)
    size = (13, 3 * n_rows)
    figure, axes = plt.subplots(n_rows, 4, figsize=size, layout="constrained", squeeze=False)
    for axis in axes.ravel()[len(by_set) :]:
        axis.set_visible(False)
    labels = group(rows, lambda row: row["label"])
    colours = {label: f"C{number}" for number, label in enumerate(labels)}
    for axis, ((dataset, n), of_set) in zip(axes.ravel(), by_set.items(), strict=False):
        draw_set(axis, of_set, colours)
        axis.set_title(f"{dataset.replace('_', ' ')}, {n} rows")
    for axis in axes[:, 0]:
        axis.set_ylabel("nats below the best score known")
    save_figure(figure, NAME, complete=len(by_set) == 7)


def draw_set(axis: "Axes", rows: Sequence[Mapping[str, str]], colours: Mapping[str, str]) -> None:
    """Draw the medians over the seeds of each version on one set."""
    by_seed = group(rows, lambda row: row["seed"])
    best = {seed: np.max(numbers(found, "score")) for seed, found in by_seed.items()}
    seconds = np.geomspace(0.1, np.max(numbers(rows, "cpu_seconds")), 200)
    for label, found in group(rows, lambda row: row["label"]).items():
        lines = [missing_after(row, seconds, best[row["seed"]]) for row in found]
        ended = seconds <= np.max(numbers(found, "cpu_seconds"))
        axis.plot(
            seconds[ended], np.median(lines, axis=0)[ended], color=colours[label], label=label
        )
    axis.set(xscale="log", yscale="symlog", xlabel="CPU seconds")
    axis.xaxis.set_minor_formatter("")
    axis.set_ylim(0, None)
    axis.legend()


def main() -> None:
    """Measure what is missing, print the table and draw the figure."""
    parser = make_parser(__doc__, datasets=list(DATASETS), seeds=5)
    parser.add_argument("--label", default="now", help="name of the version that runs")
    parser.add_argument("--sizes", nargs="+", default=["few", "many"], choices=["few", "many"])
    arguments = parse(parser, small={"datasets": ["airline"], "seeds": 1, "sizes": ["few"]})
    print_environment()
    units = [
        Fit(arguments.label, dataset, FEW if size == "few" else N_TRAIN[dataset], seed)
        for size in arguments.sizes
        for seed in range(arguments.seeds)
        for dataset in arguments.datasets
        if size == "few" or N_TRAIN[dataset] > FEW
    ]
    run_missing(NAME, units, measure, n_jobs=arguments.jobs, any_commit=True)
    rows = read_rows(NAME)
    summarise(rows)
    draw(rows)


if __name__ == "__main__":
    main()
