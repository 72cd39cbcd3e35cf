"""How well the evidence of a kernel is predicted from that of others (table 1 of the SOT paper).

1000 kernels on a data set (meta_kernels.py) are parted at random into halves, several times; what
is learned from one half predicts the log evidence per sample of the other:

- sot, hellinger, arc: the surrogate Gaussian process with one of three kernels between expressions;
- knn: the mean of the nearest kernels in the graph whose edges are the operations of the grammar;
  how many of them is chosen by leaving one out, neighbours at one distance come in random order;
- mean: the mean of the training half.

As a better fit of all kernels spreads their evidence in another way than the paper's, each RMSE
stands beside its ratio to that of the mean. ``median error`` and ``rank correlation`` do not depend
on a few kernels that predict nothing. Rows go to results/meta_kernels.csv and
results/meta_prediction.csv; those that the current commit has there are not measured again. Draws
docs/figures/meta_prediction.png.

    python benchmarks/meta_prediction.py --datasets airline --jobs 2        # some minutes
    AUTOKERNEL_DATA=folder python benchmarks/meta_prediction.py --jobs 2    # all, some hours
    python benchmarks/meta_prediction.py --small --jobs 2
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from common import (  # isort: skip
    Row,
    group,
    make_parser,
    numbers,
    parse,
    print_environment,
    print_table,
    rounded,
    run_missing,
    save_figure,
    standard_error,
)
from meta_kernels import Landscape, measure_landscape  # isort: skip
from published import META_RMSE  # isort: skip
from runs import DATASETS  # isort: skip

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from scipy.stats import spearmanr

from autokernel.expression import Expression
from autokernel.kernels import PRESETS
from autokernel.search.arc import ArcKernel
from autokernel.search.boms import HellingerKernel
from autokernel.search.sot import SOTKernel
from autokernel.search.surrogate import KernelKernel, SurrogateGP

NAME = "meta_prediction"  # of the CSV file
MOST_NEIGHBOURS = 10
Predict = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]
"""Predicts the scores of some kernels of a landscape from those of others, which come first.

Both are given by their numbers.
"""


@dataclass(frozen=True, slots=True)
class Halving:
    """What a row is measured for."""

    dataset: str
    data_seed: int
    n_kernels: int
    method: str
    split: int


class Tabulated(KernelKernel):
    """A kernel between the expressions of a set, whose distances are computed once."""

    def __init__(self, kernel_kernel: KernelKernel, expressions: Sequence[Expression]) -> None:
        self.bounds, self.start_noise = kernel_kernel.bounds, kernel_kernel.start_noise
        self._kernel_kernel = kernel_kernel
        self._distances = kernel_kernel.distances(expressions)
        self._numbers = {e.canonical: number for number, e in enumerate(expressions)}

    def distances(
        self, expressions: Sequence[Expression], others: Sequence[Expression] | None = None
    ) -> np.ndarray:
        """Look up the distances (n_distances, n, m)."""
        rows, columns = (
            [self._numbers[e.canonical] for e in some]
            for some in (expressions, others or expressions)
        )
        return self._distances[:, rows][:, :, columns]

    def weights(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the weights at parameters (n_params,)."""
        return self._kernel_kernel.weights(params)


def by_surrogate(make: Callable[[Landscape], KernelKernel], landscape: Landscape) -> Predict:
    """Predict by the surrogate of a search."""
    kernel_kernel = Tabulated(make(landscape), landscape.expressions)

    def predict(train: np.ndarray, test: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG001 - of knn
        known, unknown = ([landscape.expressions[p] for p in some] for some in (train, test))
        mean, _ = SurrogateGP(kernel_kernel, known, landscape.scores[train]).predict(unknown)
        return mean

    return predict


def by_neighbours(landscape: Landscape) -> Predict:
    """Predict by the nearest kernels in the graph of the grammar."""
    lengths = path_lengths(landscape)

    def predict(train: np.ndarray, test: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        among = lengths[np.ix_(train, train)]
        np.fill_diagonal(among, np.inf)
        scores = landscape.scores[train]
        left_out = running_means(among, scores, rng) - scores[:, None]
        best = int(np.argmin(np.mean(left_out**2, axis=0)))
        return running_means(lengths[np.ix_(test, train)], scores, rng)[:, best]

    return predict


def running_means(lengths: np.ndarray, scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Means (n, 10) of the scores of the 1 to 10 nearest; ties are broken at random."""
    order = np.argsort(lengths + rng.uniform(0, 0.5, size=lengths.shape), axis=1)
    nearest = scores[order[:, :MOST_NEIGHBOURS]]
    return np.cumsum(nearest, axis=1) / np.arange(1, nearest.shape[1] + 1)


def path_lengths(landscape: Landscape) -> np.ndarray:
    """Count the operations (n, n) on the shortest way from one kernel to another in the set."""
    numbers_of = {e.canonical: number for number, e in enumerate(landscape.expressions)}
    edges = [
        (number, numbers_of[neighbour.canonical])
        for number, expression in enumerate(landscape.expressions)
        for neighbour in landscape.grammar.neighbours(expression)
        if neighbour.canonical in numbers_of
    ]
    rows, columns = np.array(edges).T
    shape = (len(numbers_of), len(numbers_of))
    graph = csr_array((np.ones(len(edges)), (rows, columns)), shape=shape)
    return shortest_path(graph, directed=False, unweighted=True)


def by_mean(landscape: Landscape) -> Predict:
    """Predict the same everywhere."""
    return lambda train, test, rng: np.full(len(test), landscape.scores[train].mean())  # noqa: ARG005 - of others


METHODS: Mapping[str, Callable[[Landscape], Predict]] = {
    "sot": partial(by_surrogate, lambda _: SOTKernel()),
    "hellinger": partial(by_surrogate, lambda of: HellingerKernel(of.X, PRESETS["default"])),
    "arc": partial(by_surrogate, lambda _: ArcKernel()),
    "knn": by_neighbours,
    "mean": by_mean,
}


@lru_cache(maxsize=1)  # what a method computes serves for all halvings
def predictor(method: str, landscape: Landscape) -> Predict:
    """Build what predicts the scores of a landscape."""
    return METHODS[method](landscape)


def measure(landscape: Landscape, unit: Halving) -> Row:
    """Predict one half from the other."""
    predict = predictor(unit.method, landscape)
    rng = np.random.default_rng(unit.split)
    train, test = np.array_split(rng.permutation(landscape.scored), 2)
    began = time.perf_counter()
    predicted = predict(train, test, rng)
    errors = predicted - landscape.scores[test]
    return {
        "n_train": len(train),
        "n_test": len(test),
        "rmse": rounded(np.sqrt(np.mean(errors**2))),
        "median_error": rounded(np.median(np.abs(errors))),
        "rank_correlation": rounded(_rank_correlation(predicted, landscape.scores[test])),
        "seconds": rounded(time.perf_counter() - began),
    }


def _rank_correlation(predicted: np.ndarray, scores: np.ndarray) -> float:
    """Compute Spearman's coefficient, NaN where the prediction is the same everywhere."""
    return float("nan") if np.ptp(predicted) == 0 else float(spearmanr(predicted, scores)[0])


def run(dataset: str, arguments: argparse.Namespace) -> list[dict[str, str]]:
    """Measure what is missing of a data set, and print its table."""
    seed, n_kernels, any_commit = arguments.data_seed, arguments.n_kernels, arguments.any_commit
    landscape = measure_landscape(
        dataset, seed, n_kernels, n_jobs=arguments.jobs, any_commit=any_commit
    )
    units = [
        Halving(dataset, seed, n_kernels, method, split)
        for method in dict.fromkeys([*arguments.methods, "mean"])
        for split in range(arguments.seeds)
    ]
    rows = run_missing(NAME, units, partial(measure, landscape), any_commit=any_commit)
    summarise(dataset, rows)
    return rows


def summarise(dataset: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Print the table of a data set."""
    paper = META_RMSE[dataset]
    by_method = group(rows, lambda row: row["method"])
    of_mean = numbers(by_method["mean"], "rmse").mean()
    table = []
    for method, found in by_method.items():
        rmse = numbers(found, "rmse")
        theirs = paper.get(method, float("nan"))
        table.append(
            {
                dataset: method,
                "splits": len(found),
                "RMSE": rmse.mean(),
                "standard error": standard_error(rmse),
                "paper": theirs,
                "to mean": rmse.mean() / of_mean,
                "paper, to mean": theirs / paper["mean"],
                "median error": numbers(found, "median_error").mean(),
                "rank correlation": numbers(found, "rank_correlation").mean(),
            }
        )
    print()
    print_table(table)


def draw(rows: Sequence[Mapping[str, str]], *, complete: bool) -> None:
    """Draw the ratios to the mean, ours and the paper's."""
    from matplotlib.figure import Figure

    by_dataset = group(rows, lambda row: row["dataset"])
    figure = Figure(figsize=(2.6 * len(by_dataset) + 1.2, 3), layout="constrained")
    panels = figure.subplots(1, len(by_dataset), squeeze=False, sharey=True)[0]
    for axes, (dataset, of_dataset) in zip(panels, by_dataset.items(), strict=True):
        found = group(of_dataset, lambda row: row["method"])
        baseline = numbers(found["mean"], "rmse")
        paper = META_RMSE[dataset]
        for height, (method, of_method) in enumerate(reversed(found.items())):
            ratios = numbers(of_method, "rmse") / baseline
            axes.plot(ratios, np.full(len(ratios), height), "|", color="C0", markersize=9)
            axes.plot(ratios.mean(), height, "o", color="C0", label="measured")
            theirs = paper.get(method, np.nan) / paper["mean"]
            axes.plot(theirs, height, "x", color="C3", label="the paper")
        axes.set(title=dataset, xlabel="RMSE / RMSE of the mean")
        axes.set_xlim(0, max(1.1, axes.get_xlim()[1]))
        axes.set_yticks(range(len(found)), reversed(found))
        axes.grid(axis="x", alpha=0.3)
    handles = dict(zip(*panels[0].get_legend_handles_labels()[::-1], strict=True))
    panels[0].legend(handles.values(), handles, fontsize="small", loc="lower left")
    save_figure(figure, NAME, complete=complete)


def main() -> None:
    """Measure what is missing, print the tables and draw the figure."""
    parser = make_parser(__doc__, datasets=list(DATASETS), seeds=10, what="splits")
    parser.add_argument("--n-kernels", type=int, default=1000)
    parser.add_argument("--data-seed", type=int, default=0, help="draws the rows of the data set")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    arguments = parse(parser, small={"datasets": ["airline"], "seeds": 3, "n_kernels": 100})
    print_environment()
    rows = [row for dataset in arguments.datasets for row in run(dataset, arguments)]
    draw(rows, complete=arguments.complete)


if __name__ == "__main__":
    main()
