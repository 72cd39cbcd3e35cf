"""What predictions lose by using the best parameters alone.

The evidence weighs all parameters of a kernel, a prediction uses one vector of them: those of the
maximum a posteriori. For the kernels that searches of 50 iterations have found (the last row of
each in results/searches.csv) this compares the test error of that with the mean over parameters
drawn from Laplace's normal approximation to their posterior: ``nll_mixture`` is that of the mixture
of the normal predictions, ``nll_normal`` that of a normal distribution with its mean and variance,
and ``rmse_mixture`` that of its mean. The protocol is that of runs.py.

Rows go to results/parameter_uncertainty.csv; those that the current commit has there are not
measured again.

    AUTOKERNEL_DATA=folder python benchmarks/parameter_uncertainty.py --jobs 2   # ten minutes
    python benchmarks/parameter_uncertainty.py --small
"""

import argparse
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
)
from runs import DATASETS, Prediction, Split, draw_split, mean_nll, pose, rmse  # isort: skip
from runs import NAME as SEARCHED  # isort: skip

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from autokernel import parse_expression
from autokernel.exceptions import EvaluationError

NAME = "parameter_uncertainty"  # of the CSV file
MEASURES = ("rmse", "rmse_mixture", "nll", "nll_mixture", "nll_normal")
N_DRAWS = 50
N_ITER = 50  # of the searches
_LEAST_CURVATURE = 1e-2  # of the posterior in any direction: that of a prior a factor of e^10 wide


@dataclass(frozen=True, slots=True)
class Refit:
    """What a row is measured for."""

    dataset: str
    strategy: str
    seed: int
    n_draws: int
    kernel: str  # that the search has found


def units_of(arguments: argparse.Namespace) -> list[Refit]:
    """Look up what the searches have found."""
    found = {
        (row["dataset"], row["strategy"], int(row["seed"])): row["kernel"]
        for row in read_rows(SEARCHED)
        if int(row["n_iter"]) == N_ITER
    }
    asked = [
        (dataset, strategy, seed)
        for seed in range(arguments.seeds)
        for dataset in arguments.datasets
        for strategy in arguments.strategies
    ]
    if lacking := [key for key in asked if key not in found]:
        raise SystemExit(f"results/{SEARCHED}.csv lacks {lacking}: run test_performance.py")
    return [Refit(*key, N_DRAWS, found[key]) for key in asked]


def measure(unit: Refit) -> Row:
    """Fit a kernel, draw parameters, and predict with each."""
    split = draw_split(unit.dataset, unit.seed)
    problem = pose(split.X_train, split.y_train, seed=unit.seed)
    fit = problem.evaluator(parse_expression(unit.kernel))
    curvatures, axes = np.linalg.eigh(fit.hessian)
    scales = axes / np.sqrt(np.maximum(curvatures, _LEAST_CURVATURE))
    rng = np.random.default_rng(unit.seed)

    def predict(theta: np.ndarray) -> Prediction:
        model = problem.fitted(replace(fit, theta=theta))
        return Prediction(*model.mean_and_std(split.X_test))

    best, draws = predict(fit.theta), []
    while len(draws) < unit.n_draws:
        try:
            draws.append(predict(fit.theta + scales @ rng.normal(size=len(fit.theta))))
        except EvaluationError as error:  # far out, where the noise is next to nothing
            warnings.warn(f"another draw, as {error}", stacklevel=1)
    return {
        "score_per_sample": rounded(fit.score / len(split.y_train)),
        **{name: rounded(value) for name, value in errors_of(best, draws, split).items()},
    }


def errors_of(best: Prediction, draws: Sequence[Prediction], split: Split) -> dict[str, float]:
    """Compute the test errors of one prediction and of the mean over others."""
    means = np.array([draw.mean for draw in draws])
    stds = np.array([draw.std for draw in draws])
    log_density = logsumexp(norm.logpdf(split.y_test, means, stds), axis=0) - np.log(len(draws))
    variance = np.mean(stds**2, axis=0) + means.var(axis=0)
    normal = Prediction(means.mean(axis=0), np.sqrt(variance))
    return {
        "rmse": rmse(best, split.y_test),
        "rmse_mixture": rmse(normal, split.y_test),
        "nll": mean_nll(best, split.y_test),
        "nll_mixture": -float(log_density.mean()),
        "nll_normal": mean_nll(normal, split.y_test),
    }


def summarise(rows: Sequence[Mapping[str, str]]) -> None:
    """Print medians over the splits, and on how many the mean over parameters is better."""
    print_table(
        [
            {
                "dataset": dataset,
                "strategy": strategy,
                "splits": len(found),
                **{name: float(np.median(numbers(found, name))) for name in MEASURES},
                "mixture better": int(
                    np.sum(numbers(found, "nll_mixture") < numbers(found, "nll"))
                ),
            }
            for (dataset, strategy), found in group(
                rows, lambda row: (row["dataset"], row["strategy"])
            ).items()
        ]
    )


def main() -> None:
    """Measure what is missing and print the table."""
    parser = make_parser(__doc__, datasets=list(DATASETS), seeds=5)
    parser.add_argument("--strategies", nargs="+", default=["sot"], help="with rows of a search")
    arguments = parse(parser, small={"datasets": ["airline"], "seeds": 2})
    print_environment()
    units, any_commit = units_of(arguments), arguments.any_commit
    summarise(run_missing(NAME, units, measure, n_jobs=arguments.jobs, any_commit=any_commit))


if __name__ == "__main__":
    main()
