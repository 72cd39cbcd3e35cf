"""Runs of a search on a split of a data set: what they find, how well it predicts, what they cost.

The protocol is that of the SOT paper (section 4, appendix D): inputs scaled to the unit interval
and target standardised over the whole set, a random part to train on, the rest to test. It departs
from it in three ways: priors and initial design are the defaults of this package, and the model
scales its training part anew, so that scores per sample are on another scale than the paper's, as
near to it as the part is to the whole. A run is a
row of results/searches.csv. Its column ``trajectory`` holds every improvement of the best score as
``number:score:seconds``, the number counted from 1 over all evaluations, the score in nats per
sample, the time that of the CPU since the fit began. CPU seconds do not count what else the machine
does; ``fit_seconds`` alone is wall clock.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from common import (  # isort: skip
    Row,
    group,
    make_parser,
    parse,
    rounded,
    run_missing,
    with_rows,
)
from data import load  # isort: skip

import numpy as np
from scipy.stats import norm
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.data import FitData
from autokernel.fit import Arguments
from autokernel.fit import Run as RunOfFit
from autokernel.search import SOT, STRATEGIES, History, Search, Strategy

DATASETS = ("airline", "power_plant", "airfoil", "concrete")
N_TRAIN = {"airline": 100, "power_plant": 500, "airfoil": 500, "concrete": 500}
SEARCHES: Mapping[str, Mapping[str, str | Strategy]] = {
    **{name: {"strategy": name} for name in ("sot", "boms", "arc", "greedy", "tree_gep", "random")},
    "greedy-bic": {"strategy": "greedy", "criterion": "bic"},
}
SOT_BY: Mapping[str, Mapping[str, str | Strategy]] = {
    **{
        f"sot-{name}": {"strategy": SOT(acquisition=name)}
        for name in ("ei_per_second", "ucb", "thompson")
    },
    **{f"sot-{name}": {"criterion": name} for name in ("bic", "aic", "loo", "cv")},
}
"""SOT, by another acquisition function or criterion than by default."""
ALL_SEARCHES = {**SEARCHES, **{name: {"strategy": "sot", **SOT_BY[name]} for name in SOT_BY}}
NAME = "searches"  # of the CSV file
N_RESTARTS = 5
GRID = {"n_estimators": [100, 400], "max_depth": [2, 3, 5], "learning_rate": [0.03, 0.1]}
FOLDS = KFold(5, shuffle=True, random_state=0)


@dataclass(frozen=True, slots=True)
class Run:
    """What a row is measured for."""

    dataset: str
    strategy: str  # or the name of a baseline
    seed: int
    n_iter: int  # kernels after the initial design of SOT, 0 for baselines


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Split:
    """A data set, scaled, and parted at random."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Prediction(NamedTuple):
    """A normal distribution at each test point."""

    mean: np.ndarray
    std: np.ndarray


class Improvement(NamedTuple):
    """One step of a trajectory."""

    number: int  # of the evaluation, from 1
    score: float  # nats per sample
    seconds: float  # of CPU


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: a prediction holds arrays
class Found:
    """What was fitted; the defaults are those of models that are no search."""

    predict: Callable[[np.ndarray], Prediction]
    score_per_sample: float = np.nan
    evaluation_seconds: float = np.nan  # of CPU, after the initial design
    proposal_seconds: float = np.nan  # of CPU, after the initial design
    n_evaluations: int = 0
    n_initial: int = 0
    n_leaves: int = 0
    kernel: str = ""
    trajectory: str = ""


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

    def proposing(self, first: int) -> float:
        """Sum up the seconds before each evaluation from the ``first`` one on, counted from 0."""
        return sum(map(float.__sub__, self.begun[first:], self.ended[first - 1 :]))

    def evaluating(self, first: int) -> float:
        """Sum up the seconds of the evaluations from the ``first`` one on, counted from 0."""
        return sum(map(float.__sub__, self.ended[first:], self.begun[first:]))


def draw_split(dataset: str, seed: int, *, n_train: int | None = None) -> Split:
    """Scale a data set and draw the rows to train on."""
    X, y = load(dataset)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    y = (y - y.mean()) / y.std()
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [n_train or N_TRAIN[dataset]])
    return Split(X[train], y[train], X[test], y[test])


def pose(X: np.ndarray, y: np.ndarray, *, seed: int) -> RunOfFit:
    """Pose the problem that the estimator poses itself by default."""
    return RunOfFit(FitData(X, y), Arguments.of(AutoKernelGPRegressor(random_state=seed)))


def n_iter_of(run: Run, X: np.ndarray, y: np.ndarray) -> int:
    """Count the kernels after the initial design of a strategy, so that all evaluate as many."""
    chosen = ALL_SEARCHES[run.strategy]["strategy"]
    strategy = STRATEGIES[chosen]() if isinstance(chosen, str) else chosen
    task = pose(X, y, seed=run.seed).task
    sizes = [
        len(Search(one, task, History(len(y)), n_iter=0, seed=run.seed).design)
        for one in (SOT(), strategy)
    ]
    return max(0, run.n_iter + sizes[0] - sizes[1])


def search(run: Run, X: np.ndarray, y: np.ndarray) -> Found:
    """Fit the estimator."""
    options = ALL_SEARCHES[run.strategy]
    n_iter = n_iter_of(run, X, y)
    return follow(AutoKernelGPRegressor(n_iter=n_iter, random_state=run.seed, **options), X, y)


def fit_initial_design(run: Run, X: np.ndarray, y: np.ndarray) -> Found:
    """Choose among the kernels with which SOT and most others begin."""
    return follow(AutoKernelGPRegressor(n_iter=0, random_state=run.seed), X, y)


def follow(model: AutoKernelGPRegressor, X: np.ndarray, y: np.ndarray) -> Found:
    """Fit an estimator and note what it does."""
    clock = CpuClock()
    model.set_callbacks(clock).fit(X, y)
    history = model.search_history_
    n_initial = int(np.sum(history["phase"] == "initial"))
    return Found(
        predict=lambda X: Prediction(*model.predict(X, return_std=True)),
        score_per_sample=model.best_score_ / len(y),
        evaluation_seconds=clock.evaluating(n_initial),
        proposal_seconds=clock.proposing(n_initial),
        n_evaluations=len(history["score"]),
        n_initial=n_initial,
        n_leaves=parse_expression(model.best_expression_).n_leaves,
        kernel=model.best_expression_,
        trajectory=write_trajectory(history["score_per_sample"], clock.ended),
    )


def fit_se_ard(run: Run, X: np.ndarray, y: np.ndarray) -> Found:
    """Fit the product of SE over all columns as the estimator would."""
    kernel = " * ".join(f"SE[{column}]" for column in range(X.shape[1]))
    model = AutoKernelGPRegressor(random_state=run.seed).refit(X, y, kernel=kernel)
    return Found(
        predict=lambda X: Prediction(*model.predict(X, return_std=True)),
        score_per_sample=model.best_score_ / len(y),
        n_evaluations=1,
        n_leaves=X.shape[1],
        kernel=kernel,
    )


def fit_rbf(run: Run, X: np.ndarray, y: np.ndarray) -> Found:
    """Fit scikit-learn's Gaussian process with one lengthscale for all columns."""
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(1.0, (1e-3, 1e3)) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=N_RESTARTS, random_state=run.seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return Found(predict=lambda X: Prediction(*model.predict(X, return_std=True)))


def fit_gradient_boosting(run: Run, X: np.ndarray, y: np.ndarray) -> Found:
    """Choose boosted trees by cross-validation; the same standard deviation everywhere."""
    trees = GradientBoostingRegressor(random_state=run.seed, subsample=0.7)
    grid = GridSearchCV(trees, GRID, cv=FOLDS, scoring="neg_root_mean_squared_error").fit(X, y)
    residuals = y - cross_val_predict(grid.best_estimator_, X, y, cv=FOLDS)
    std = np.sqrt(np.mean(residuals**2))
    return Found(predict=lambda X: Prediction(grid.predict(X), np.full(len(X), std)))


Method = Callable[[Run, np.ndarray, np.ndarray], Found]
BASELINES: Mapping[str, Method] = {
    "initial_design": fit_initial_design,
    "se_ard": fit_se_ard,
    "rbf": fit_rbf,
    "gradient_boosting": fit_gradient_boosting,
}


def measure(run: Run) -> Row:
    """Fit one split and measure its test error: RMSE, and NLL in nats per test point."""
    split = draw_split(run.dataset, run.seed)
    method = BASELINES.get(run.strategy, search)
    began, cpu_began = time.perf_counter(), time.process_time()
    found = method(run, split.X_train, split.y_train)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    predicted = found.predict(split.X_test)
    return {
        "rmse": rounded(rmse(predicted, split.y_test)),
        "nll": rounded(mean_nll(predicted, split.y_test)),
        "score_per_sample": rounded(found.score_per_sample),
        "fit_seconds": rounded(seconds),
        "cpu_seconds": rounded(cpu_seconds),
        "evaluation_seconds": rounded(found.evaluation_seconds),
        "proposal_seconds": rounded(found.proposal_seconds),
        "n_evaluations": found.n_evaluations,
        "n_initial": found.n_initial,
        "n_leaves": found.n_leaves,
        "kernel": found.kernel,
        "trajectory": found.trajectory,
    }


def rmse(predicted: Prediction, y: np.ndarray) -> float:
    """Compute the root of the mean square error."""
    return float(np.sqrt(np.mean((predicted.mean - y) ** 2)))


def mean_nll(predicted: Prediction, y: np.ndarray) -> float:
    """Compute the mean negative log density, in nats per target."""
    return -float(norm.logpdf(y, predicted.mean, predicted.std).mean())


def write_trajectory(scores: np.ndarray, seconds: list[float]) -> str:
    """Write the improvements of the best score."""
    steps, best = [], -np.inf
    for number, (score, moment) in enumerate(zip(scores, seconds, strict=True), 1):
        if score > best:
            best = score
            steps.append(f"{number}:{score:.5g}:{moment:.4g}")
    return " ".join(steps)


def read_trajectory(row: Mapping[str, str]) -> list[Improvement]:
    """Read the improvements of the best score."""
    parts = (step.split(":") for step in row["trajectory"].split())
    return [
        Improvement(int(number), float(score), float(seconds)) for number, score, seconds in parts
    ]


def without_rare(rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Leave out strategies that ran on fewer than half the splits of a data set that another did.

    Their medians are of other splits than those beside them.
    """
    found = group(rows, lambda row: (row["dataset"], row["strategy"]))
    most: dict[str, int] = {}
    for (dataset, _), of_strategy in found.items():
        most[dataset] = max(most.get(dataset, 0), len(of_strategy))
    return [
        row
        for row in rows
        if 2 * len(found[row["dataset"], row["strategy"]]) >= most[row["dataset"]]
    ]


def ask(doc: str, methods: Sequence[str], others: Sequence[str]) -> argparse.Namespace:
    """Parse the options of the benchmarks of searches; others are run where they are named."""
    parser = make_parser(doc, datasets=list(DATASETS), seeds=10)
    parser.add_argument("--n-iter", type=int, default=50, help="kernels after the design of SOT")
    parser.add_argument(
        "--strategies", nargs="+", default=list(methods), choices=[*methods, *others]
    )
    parser.add_argument("--finished", action="store_true", help="what has rows, and no new runs")
    return parse(parser, small={"datasets": ["airline"], "seeds": 2, "n_iter": 5})


def collect(arguments: argparse.Namespace) -> list[dict[str, str]]:
    """Run what is missing, seed by seed, and return the rows."""
    units = [
        Run(dataset, name, seed, arguments.n_iter if name in ALL_SEARCHES else 0)
        for seed in range(arguments.seeds)
        for dataset in arguments.datasets
        for name in arguments.strategies
    ]
    if arguments.finished:
        units = with_rows(NAME, units, any_commit=arguments.any_commit)
        if not units:
            raise SystemExit(
                f"results/{NAME}.csv has no row of these runs"
                + ("" if arguments.any_commit else " by this commit: add --any-commit")
            )
    return run_missing(NAME, units, measure, n_jobs=arguments.jobs, any_commit=arguments.any_commit)
