"""Parallel evaluation of kernels."""

import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Estimate, Evaluation, Evaluator, Job
from autokernel.exceptions import OutOfTimeError, reason_of, warn_of_part
from autokernel.search.store import Store

SECONDS_TO_START = 5.0  # of worker processes, which import the package


def evaluate_in_parallel(
    evaluator: Evaluator,
    kernels: Sequence[Estimate],
    known: Sequence[Evaluation] = (),
    deadline: Deadline = NEVER,
    *,
    n_jobs: int | None = None,
    store: Store | None = None,
) -> Generator[Evaluation | None, None, None]:
    """Yield the evaluations of kernels in order, with warm starts from similar known fits.

    ``joblib.Parallel`` and ``joblib.parallel_config`` set the number and kind of the workers. The
    evaluations do not depend on them. The fit of an estimate begins at its starting point. An
    evaluation that is in the ``store`` is read instead of computed again. One that is stopped at
    the deadline yields None and is not stored. If less than the time is left in which workers
    start, this process evaluates all.
    """
    store = store or Store()
    jobs = [evaluator.prepare(one.expression, known, one.start) for one in kernels]
    keys = [evaluator.key(job) for job in jobs]
    done: dict[int, Evaluation | None] = {}
    for number, (job, key) in enumerate(zip(jobs, keys, strict=True)):
        parse = partial(lambda own, _: own, job.expression)  # its text is known
        if (one := store.get(key, Evaluation, parse=parse)) is not None:
            done[number] = evaluator.priced(one)
    left = [number for number in range(len(jobs)) if number not in done]
    with closing(_outcomes(evaluator, jobs, left, deadline, n_jobs)) as outcomes:
        for number in range(len(jobs)):
            while number not in done:
                ended, outcome = next(outcomes)
                done[ended] = outcome
                # one without a fit is tried again, as memory may have been short
                if outcome is not None and np.isfinite(outcome.log_posterior):
                    store.put(keys[ended], outcome)
            yield done.pop(number)


def _outcomes(
    evaluator: Evaluator,
    jobs: Sequence[Job],
    left: list[int],
    deadline: Deadline,
    n_jobs: int | None,
) -> Generator[tuple[int, Evaluation | None], None, None]:
    """Yield the numbers and evaluations of the jobs that are left, as they end."""

    def running(numbers: Sequence[int]) -> Any:
        calls = [delayed(_evaluate)(evaluator, n, jobs[n], deadline=deadline) for n in numbers]
        return _running(calls, n_jobs, deadline.seconds_left)

    def ended(number: int, outcome: Evaluation | None) -> tuple[int, Evaluation | None]:
        left.remove(number)
        if outcome is not None:  # a worker may have sent copies of base kernels
            outcome = replace(outcome, expression=jobs[number].expression)
            warn_of_part(outcome.status)  # here, as nobody sees warnings of workers
        return number, outcome

    while left:
        try:
            with running(left) as outcomes:
                for number, outcome in outcomes:
                    yield ended(number, outcome)
        except TimeoutError:  # of workers that have not started
            yield from [ended(number, None) for number in list(left)]
        except BrokenExecutor:  # a worker died and stopped others
            for number in left[: effective_n_jobs(n_jobs)]:
                try:
                    with running([number]) as outcomes:
                        [(_, outcome)] = outcomes
                except BrokenExecutor as error:
                    reason = f"the worker failed: {reason_of(error)}"
                    outcome = evaluator.without_fit(jobs[number].expression, reason)
                yield ended(number, outcome)


@contextmanager
def _running(
    calls: Sequence[Any], n_jobs: int | None, seconds: float
) -> Iterator[Iterable[tuple[int, Evaluation | None]]]:
    """Start a call per worker, and another when one ends; ``TimeoutError`` if none ends in time."""
    parallel: dict[str, Any] = {"n_jobs": n_jobs, "pre_dispatch": "n_jobs", "batch_size": 1}
    if seconds < SECONDS_TO_START:
        parallel |= {"n_jobs": 1, "backend": "sequential"}
    elif seconds < np.inf and effective_n_jobs(n_jobs) > 1:
        parallel |= {"timeout": seconds}
    try:
        run = Parallel(**parallel, return_as="generator_unordered")
    except ValueError:  # this backend returns all outcomes at once
        run = Parallel(**parallel)
    outcomes = run(calls)
    try:
        yield outcomes
    finally:
        if isinstance(outcomes, Generator):
            with warnings.catch_warnings(action="ignore"):
                outcomes.close()


def _evaluate(
    evaluator: Evaluator, number: int, job: Job, *, deadline: Deadline
) -> tuple[int, Evaluation | None]:
    try:
        deadline.check()
        return number, evaluator.run(job, deadline=deadline)
    except OutOfTimeError:
        return number, None
