"""The search: what it will do, its progress, and the model that it leaves."""

import time
from dataclasses import dataclass

import numpy as np

from autokernel.cli.options import Options
from autokernel.cli.split import Split
from autokernel.cli.table import Table
from autokernel.deadline import NEVER
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.explain import fill
from autokernel.fit import Problem, Run
from autokernel.fit.announcement import duration
from autokernel.fit.arguments import Arguments
from autokernel.fit.progress import Improvements, print_now
from autokernel.search import StopReason

_SHORT = 20.0  # seconds, with room for an estimate that is too low by a factor of three
_SECONDS = 90.0  # up to which a time is told with a decimal
_LONG = 1800.0  # seconds from which an end is proposed
_ENDS = {
    StopReason.N_ITER: "as many as --n-iter asks for",
    StopReason.CONVERGED: "the last 30 of which have gained nothing",
    StopReason.MAX_TIME: "the end of --max-time",
    StopReason.EXHAUSTED: "with no other left to try",
    StopReason.INTERRUPTED: "interrupted",
}


@dataclass(frozen=True, slots=True)
class Found:
    """A fitted estimator and the time that its search took."""

    model: AutoKernelGPRegressor
    seconds: float  # of the search

    @property
    def is_rough(self) -> bool:
        """Whether the search ended before any kernel had a score."""
        return not np.isfinite(self.model.best_score_)

    @property
    def ending(self) -> str:
        """Tell how the search ended."""
        n = len(self.model.search_history_["score"])
        long = duration(self.seconds) if self.seconds > _SECONDS else f"{self.seconds:.1f} seconds"
        text = f"{n} kernel{'s' * (n != 1)} in {long}, {_ENDS[StopReason(self.model.stop_reason_)]}"
        if self.is_rough:
            return (
                f"{text}, before any kernel had a score. This model is a rough fit of a simple "
                "kernel to a few rows."
            )
        is_early = self.model.stop_reason_ == StopReason.INTERRUPTED
        return f"{text}{': this is the best so far' * is_early}."


def make_estimator(options: Options) -> AutoKernelGPRegressor:
    """Build the estimator that the options ask for."""
    return AutoKernelGPRegressor(
        strategy=options.strategy,
        criterion=options.criterion,
        operators=options.operators,
        n_iter=options.n_iter,
        max_time=options.max_time,
        n_jobs=options.n_jobs,
        random_state=options.random_state,
    )


def announce(model: AutoKernelGPRegressor, table: Table, split: Split, options: Options) -> None:
    """Print what the search will do and about how long it takes."""
    problem = Problem.of(
        table.X.values[split.train],
        table.y[split.train],
        Arguments.of(model),
        seed=options.random_state,
        feature_names=table.feature_names,
    )
    run = Run(
        problem,
        Arguments.of(model),
        None,
        n_iter=model.n_iter,
        batch_size=model.batch_size,
        tol=model.tol,
        deadline=NEVER,
    )
    seconds, limit = run.expected_seconds(), options.max_time
    long = "less than a minute" if seconds < _SHORT else f"about {duration(seconds)}"
    takes = "takes" if limit is None or seconds < limit else "would take"
    text = f"{problem.plan.text}. The search {takes} {long}"
    if problem.plan.approximation is not None:
        text += ", and the fits to all rows may take as long again"
    if limit is not None:
        text += f"; --max-time ends it after {limit:g} s"
    elif seconds > _LONG:
        text += ": --max-time SECONDS ends it early"
    print_now(fill(f"{text}. Ctrl-C ends it with the best kernel so far."))


def search(model: AutoKernelGPRegressor, table: Table, split: Split) -> Found:
    """Fit the estimator, and print each kernel that is better than those before.

    Raises
    ------
    KeyboardInterrupt
        If the user ends the search before there is any model.
    """
    print_now("\n  no.      time       score  best kernel so far; scores are in nats\n")
    model.set_callbacks(Improvements(table.feature_names))
    began = time.monotonic()
    try:
        model.fit(table.X.rows(split.train), table.y[split.train])
    except KeyboardInterrupt:
        if not hasattr(model, "stop_reason_"):
            raise
    return Found(model, time.monotonic() - began)


def fit_all(model: AutoKernelGPRegressor, table: Table) -> None:
    """Fit the kernel to all rows, also those of the test; after Ctrl-C the model stays as it is."""
    n = len(table.y)
    print_now(f"\nFitting the kernel to all {n} rows, for what follows. Ctrl-C leaves this out.")
    try:
        model.refit(table.X, table.y)
    except KeyboardInterrupt:
        print_now("Interrupted: what follows is by the model of the rows to train on.")
