"""Cost of one kernel evaluation with 5 leaves, alone and against scikit-learn's fit.

An evaluation is a fit from nothing: MAP search, Hessian and Laplace evidence, on fresh data, with
BLAS on one thread. Two questions, a CSV file each:

- cost: seconds of evaluations of 5-leaf kernels on series and tables at n = 100 to 500
  (results/evaluation_cost.csv);
- sklearn: ``GaussianProcessRegressor(n_restarts_optimizer=9).fit`` with the same kernel plus
  ``WhiteKernel`` on the same scaled data, in turn with ours: the ratio of CPU seconds, and our log
  posterior (log likelihood plus log prior) where each ends (results/evaluation_cost_sklearn.csv).

scikit-learn begins at the prior means and draws its restarts log-uniformly within the bounds of its
hyperparameters: as wide as ours, six decades to either side ("ours"), or the ranges that parameters
have on scaled data ("tight"), where its restarts are worth more. It maximises the likelihood alone,
so that far out the prior decides the comparison. A harder one is the maximum of the log posterior
that a run from scikit-learn's end reaches, ``climbed_log_posterior`` in the file: a mode found
there and missed by us shows.

Seconds are wall clock, CPU seconds those of this process, which suffer less from what else runs on
the machine. Rows that the current commit has already are not measured again.

    AUTOKERNEL_DATA=folder python benchmarks/evaluation_cost.py           # about an hour
    AUTOKERNEL_DATA=folder python benchmarks/evaluation_cost.py --small   # a minute and a half
"""

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from typing import Generic, TypeVar

from common import (  # isort: skip
    append_rows,
    print_environment,
    print_table,
    rows_of_this_commit,
)
from data import read_data  # isort: skip
from map_brute_force import WIDE  # isort: skip
from map_cases import Case, cases  # isort: skip

import numpy as np
from autokernel.data.scaling import Scaling
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel

from autokernel.evidence import Evaluation, Evaluator
from autokernel.evidence.maximise import maximise
from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import Expression, Grammar
from autokernel.inference import ExactLikelihood
from autokernel.kernels import ADD, FEW_COLUMNS, MANY_COLUMNS, MULTIPLY, check_priors
from autokernel.model import to_sklearn

T = TypeVar("T")
Fixed = dict[str, object]  # columns that tell how a row was measured
PRIORS = check_priors("default")
N_LEAVES = 5
N_KERNELS = 8  # of each data set, half of them with PER on series
N_COMPARED = 4  # the first of them, against scikit-learn
N_RESTARTS = 9
LOWER = 0.01  # nats: less is the tolerance of an optimiser
COST_SIZES = {
    "airline": (100,),
    "mauna": (100, 300, 500),
    "internet": (100, 300, 500),
    "births": (100, 300, 500),
    "concrete": (100, 300, 500),
    "airfoil": (100, 300, 500),
    "power_plant": (100, 300, 500),
}
SKLEARN_SIZES = {
    "airline": (100,),
    "mauna": (100, 300),
    "internet": (100, 300),
    "concrete": (100, 300),
    "airfoil": (100, 300),
    "power_plant": (100, 300),
}
SMALL_COST_SIZES = {"airline": (100,), "mauna": (300,), "concrete": (100, 500)}
SMALL_SKLEARN_SIZES = {"airline": (100,), "internet": (100,), "concrete": (300,)}
KEY = ("dataset", "n_samples", "kernel")


def five_leaf_kernels(dataset: str) -> list[str]:
    """Kernels of a data set: those of the MAP cases first, then drawn from the grammar."""
    n_columns = read_data(dataset)[0].shape[1]
    is_series = n_columns == 1
    drawn = _random_kernels(
        Grammar(
            FEW_COLUMNS if is_series else MANY_COLUMNS,
            (ADD, MULTIPLY),
            tuple(range(n_columns)),
            N_LEAVES,
        )
    )
    known = (c.expression for c in cases(["airline" if is_series else "concrete"]))
    candidates = chain((e for e in known if e.n_leaves == N_LEAVES), drawn)
    with_period: dict[str, str] = {}  # texts by canonical text
    without: dict[str, str] = {}
    wanted = N_KERNELS // 2 if is_series else N_KERNELS
    while len(without) < wanted or (is_series and len(with_period) < wanted):
        expression = next(candidates)
        group = with_period if _has_period(str(expression)) else without
        if len(group) < wanted:
            group.setdefault(expression.canonical, str(expression))
    turns = zip_longest(with_period.values(), without.values())
    return [text for turn in turns for text in turn if text is not None]


def _random_kernels(grammar: Grammar) -> Iterator[Expression]:
    """Yield random expressions with ``N_LEAVES`` leaves, the same ones every time."""
    rng = np.random.default_rng(0)
    while True:
        expression: Expression = grammar.leaves[rng.integers(len(grammar.leaves))]
        while expression.n_leaves < N_LEAVES:
            expression = grammar.random_neighbour(expression, rng)
        yield expression


def _has_period(kernel: str) -> bool:
    """Whether a kernel has a periodic part, whose MAP search is the hard one."""
    return "PER" in kernel


@dataclass(frozen=True, slots=True)
class Timed(Generic[T]):
    """What a call returned and what it cost."""

    result: T
    seconds: float
    cpu_seconds: float


def timed(call: Callable[[], T]) -> Timed[T]:
    """Call and measure."""
    began, cpu_began = time.perf_counter(), time.process_time()
    result = call()
    return Timed(result, time.perf_counter() - began, time.process_time() - cpu_began)


def evaluate(case: Case) -> Timed[Evaluation]:
    """Evaluate once on fresh data, so that the first kernel of a data set costs what others do."""
    data = case.data()
    return timed(lambda: Evaluator(data, priors=PRIORS, seed=0)(case.expression))


def cost(case: Case, repeats: int) -> dict[str, object]:
    """Measure one row of the first question."""
    runs = [evaluate(case) for _ in range(repeats)]
    fit = runs[0].result
    return {
        **dict(zip(KEY, case.key, strict=True)),
        "repeats": repeats,
        "n_params": fit.n_params,
        "seconds": float(np.median([run.seconds for run in runs])),
        "cpu_seconds": float(np.median([run.cpu_seconds for run in runs])),
        "n_evaluations": fit.n_evaluations,
        "log_posterior": fit.log_posterior,
        "log_evidence": fit.log_evidence,
        "status": fit.status,
    }


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Twin:
    """The same kernel in scikit-learn, whose theta is ``matrix @ theta + origin`` in ours."""

    kernel: Kernel
    matrix: np.ndarray  # (n_params, n_params)
    origin: np.ndarray  # (n_params,)

    @classmethod
    def of(cls, case: Case, posterior: LogPosterior, *, bounds: str) -> "Twin":
        """Build it at the prior means, with bounds that are the image of ours or of tight ones."""
        n_features = read_data(case.dataset)[0].shape[1]
        scaling = Scaling(np.zeros(n_features), np.ones(n_features))

        def kernel_at(theta: np.ndarray) -> Kernel:
            return to_sklearn(case.expression, theta, scaling=scaling)

        # a log of scikit-learn's is a weighted sum of logs of ours, such as (log c - log v) / 2
        names = [parameter.name for parameter in posterior.likelihood.parameters]
        origin = kernel_at(np.zeros(len(names))).theta
        matrix = np.stack([kernel_at(axis).theta - origin for axis in np.eye(len(names))], axis=1)
        low, high = posterior.lower, posterior.upper
        if bounds == "tight":
            low, high = np.log([WIDE[name] for name in names]).T
        centre = matrix @ (low + high) / 2 + origin
        reach = np.abs(matrix) @ (high - low) / 2
        kernel = kernel_at(np.log(posterior.prior.shape / posterior.prior.rate))
        for parameter, *limits in zip(
            kernel.hyperparameters, *np.exp([centre - reach, centre + reach]), strict=True
        ):
            kernel.set_params(**{f"{parameter.name}_bounds": tuple(limits)})
        return cls(kernel, matrix, origin)

    def ours(self, theta: np.ndarray) -> np.ndarray:
        """Our theta at one of scikit-learn's."""
        return np.linalg.solve(self.matrix, theta - self.origin)


class CountingRegressor(GaussianProcessRegressor):
    """scikit-learn's own, which also counts the calls of its likelihood."""

    n_evaluations = 0

    def log_marginal_likelihood(self, *args: object, **kwargs: object) -> object:
        """Count and pass on."""
        self.n_evaluations += 1
        return super().log_marginal_likelihood(*args, **kwargs)


def fit_sklearn(kernel: Kernel, case: Case, seed: int) -> CountingRegressor:
    """Fit with restarts; parameters that end at bounds or do not converge are no surprise here."""
    data = case.data()
    gpr = CountingRegressor(
        kernel=kernel, alpha=0.0, n_restarts_optimizer=N_RESTARTS, random_state=seed
    )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        return gpr.fit(data.X, data.y)


def against_sklearn(case: Case, repeats: int, bounds: str, seed: int) -> dict[str, object]:
    """Measure one row of the second question; our runs stand before and after the other."""
    posterior = LogPosterior(ExactLikelihood(case.expression, case.data()), priors=PRIORS)
    twin = Twin.of(case, posterior, bounds=bounds)
    runs = [evaluate(case)]
    other = timed(lambda: fit_sklearn(twin.kernel, case, seed))
    runs += [evaluate(case) for _ in range(max(1, repeats - 1))]
    fit, gpr = runs[0].result, other.result
    cpu_seconds = float(np.median([run.cpu_seconds for run in runs]))
    theta = twin.ours(gpr.kernel_.theta)
    likelihood = posterior.likelihood.value(theta)
    start = np.clip(theta, posterior.lower, posterior.upper)
    return {
        **dict(zip(KEY, case.key, strict=True)),
        "bounds": bounds,
        "seed": seed,
        "repeats": repeats,
        "seconds": float(np.median([run.seconds for run in runs])),
        "cpu_seconds": cpu_seconds,
        "sklearn_seconds": other.seconds,
        "sklearn_cpu_seconds": other.cpu_seconds,
        "speed_up": other.cpu_seconds / cpu_seconds,
        "n_evaluations": fit.n_evaluations,
        "sklearn_n_evaluations": gpr.n_evaluations,
        "log_posterior": fit.log_posterior,
        "sklearn_log_posterior": likelihood + float(posterior.prior.log_density(theta)),
        "climbed_log_posterior": maximise(posterior, start, max_iterations=1000).log_posterior,
        "log_likelihood": fit.log_likelihood,
        "sklearn_log_likelihood": likelihood,
        # of the two codes at the same point: tells that it is the same point
        "disagreement": abs(likelihood - float(gpr.log_marginal_likelihood_value_)),
        "status": fit.status,
    }


def summarise_cost(fixed: Fixed) -> None:
    """Print medians by size and kind of kernel."""
    groups = defaultdict(list)
    for row in rows_of("evaluation_cost", fixed):
        kind = "with PER" if _has_period(row["kernel"]) else "without"
        for name in ("all", kind):
            groups[int(row["n_samples"]), name].append(row)
    print_table(
        [
            {
                "n_samples": n,
                "kernels": f"{name} ({len(rows)})",
                "median_seconds": float(np.median(_numbers(rows, "seconds"))),
                "median_cpu": float(np.median(_numbers(rows, "cpu_seconds"))),
                "worst_cpu": float(np.max(_numbers(rows, "cpu_seconds"))),
                "median_calls": float(np.median(_numbers(rows, "n_evaluations"))),
                "failed": sum(row["status"] != "ok" for row in rows),
            }
            for (n, name), rows in sorted(groups.items())
        ]
    )


def summarise_sklearn(fixed: Fixed) -> None:
    """Print the ratio of times by size, and how often we end lower."""
    groups = defaultdict(list)
    for row in rows_of("evaluation_cost_sklearn", fixed):
        groups[int(row["n_samples"])].append(row)
    table = []
    for n, rows in sorted(groups.items()):
        ours, speed_up = _numbers(rows, "log_posterior"), _numbers(rows, "speed_up")
        gain = ours - _numbers(rows, "sklearn_log_posterior")
        gain_on_run = ours - _numbers(rows, "climbed_log_posterior")
        table.append(
            {
                "n_samples": n,
                "bounds": fixed["bounds"],
                "cases": len(rows),
                "speed_up": float(np.median(speed_up)),
                "worst": float(np.min(speed_up)),
                "calls": float(np.median(_numbers(rows, "n_evaluations"))),
                "sklearn_calls": float(np.median(_numbers(rows, "sklearn_n_evaluations"))),
                "lower": int(np.sum(gain < -LOWER)),
                "least_gain": float(np.min(gain)),
                "lower_than_run": int(np.sum(gain_on_run < -LOWER)),
                "least_gain_on_run": float(np.min(gain_on_run)),
                "disagreement": float(np.max(_numbers(rows, "disagreement"))),
            }
        )
    print_table(table)


def rows_of(name: str, fixed: Fixed) -> list[dict[str, str]]:
    """Rows of the current commit that were measured in this way."""
    texts = {field: str(value) for field, value in fixed.items()}
    return [row for row in rows_of_this_commit(name) if texts.items() <= row.items()]


def _numbers(rows: list[dict[str, str]], name: str) -> np.ndarray:
    """One column."""
    return np.array([float(row[name]) for row in rows])


def measure(
    name: str, todo: list[Case], fixed: Fixed, row_of: Callable[[Case], dict[str, object]]
) -> None:
    """Measure and keep the cases that the current commit has not, row by row."""
    done = {tuple(row[field] for field in KEY) for row in rows_of(name, fixed)}
    for case in todo:
        if case.key in done:
            continue
        row = row_of(case)
        append_rows(name, [row])
        numbers = {k: round(v, 3) for k, v in row.items() if isinstance(v, float)}
        print(*case.key, numbers, sep="  ", flush=True)


def select(sizes: dict[str, tuple[int, ...]], n_kernels: int) -> list[Case]:
    """List the cases, short ones first."""
    listed = [
        Case(dataset, n, kernel)
        for dataset, of_dataset in sizes.items()
        for kernel in five_leaf_kernels(dataset)[:n_kernels]
        for n in of_dataset
    ]
    return sorted(listed, key=lambda case: case.n_samples)


def main() -> None:
    """Run what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option, choices in (("--parts", ["cost", "sklearn"]), ("--bounds", ["ours", "tight"])):
        parser.add_argument(option, nargs="+", default=choices, choices=choices)
    parser.add_argument("--seed", type=int, default=0, help="of scikit-learn's restarts")
    parser.add_argument("--small", action="store_true", help="a few cases, measured once")
    arguments = parser.parse_args()
    print_environment()
    small, seed, repeats = arguments.small, arguments.seed, 1 if arguments.small else 3
    if "cost" in arguments.parts:
        todo = select(SMALL_COST_SIZES, 2) if small else select(COST_SIZES, N_KERNELS)
        fixed: Fixed = {"repeats": repeats}
        measure("evaluation_cost", todo, fixed, partial(cost, repeats=repeats))
        summarise_cost(fixed)
    for bounds in arguments.bounds if "sklearn" in arguments.parts else []:
        todo = select(SMALL_SKLEARN_SIZES, 1) if small else select(SKLEARN_SIZES, N_COMPARED)
        fixed = {"bounds": bounds, "seed": seed, "repeats": repeats}
        measure("evaluation_cost_sklearn", todo, fixed, partial(against_sklearn, **fixed))
        summarise_sklearn(fixed)


if __name__ == "__main__":
    main()
