"""Parallel evaluation of kernels, with a store of finished evaluations."""

import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np
from joblib import Memory, Parallel, delayed, effective_n_jobs

from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Estimate, Evaluation, Evaluator, Job
from autokernel.exceptions import OutOfTimeError, reason_of
from autokernel.expression import Expression
from autokernel.version import __version__


def evaluate_in_parallel(
    evaluator: Evaluator,
    kernels: Sequence[Expression | Estimate],
    known: Sequence[Evaluation] = (),
    deadline: Deadline = NEVER,
    *,
    n_jobs: int | None = None,
    memory: Memory | None = None,
) -> Generator[Evaluation | None, None, None]:
    """Yield the evaluations of kernels in order, with warm starts from similar known fits.

    ``joblib.Parallel`` and ``joblib.parallel_config`` set the number and kind of the workers. The
    evaluations do not depend on them. The fit of an estimate begins at its starting point. An
    evaluation that is found in ``memory`` is read instead of computed again. One that is stopped at
    the deadline yields None and is not stored.
    """
    store = None if memory is None or memory.store_backend is None else Store(memory)
    estimates = [one if isinstance(one, Estimate) else Estimate(one) for one in kernels]
    jobs = [evaluator.prepare(one.expression, known, one.start) for one in estimates]
    keys = ["" if store is None else evaluator.key(job) for job in jobs]
    calls = [
        delayed(_evaluate)(evaluator, job, key, deadline=deadline, store=store)
        for job, key in zip(jobs, keys, strict=True)
    ]
    n_done = 0
    while n_done < len(jobs):
        try:
            with _running(calls[n_done:], n_jobs) as outcomes:
                for outcome in outcomes:
                    n_done += 1
                    yield _of_this_process(outcome, jobs[n_done - 1])
        except Exception:  # evaluations do not raise: a worker died and stopped others
            for number in range(n_done, min(n_done + effective_n_jobs(n_jobs), len(jobs))):
                n_done += 1
                try:
                    with _running(calls[number : number + 1], n_jobs) as outcomes:
                        [outcome] = outcomes
                except Exception as error:
                    reason = f"the worker failed: {reason_of(error)}"
                    outcome = evaluator.without_fit(jobs[number].expression, reason)
                yield _of_this_process(outcome, jobs[number])


@contextmanager
def _running(calls: Sequence[Any], n_jobs: int | None) -> Iterator[Iterable[Evaluation | None]]:
    """Start as many calls as there are workers, and another one whenever one ends.

    On leaving, the workers are stopped without warnings about their unfinished work.
    """
    parallel = {"n_jobs": n_jobs, "pre_dispatch": "n_jobs", "batch_size": 1}
    try:
        run = Parallel(**parallel, return_as="generator")
    except ValueError:  # this backend returns all outcomes at once
        run = Parallel(**parallel)
    outcomes = run(calls)
    try:
        yield outcomes
    finally:
        if isinstance(outcomes, Generator):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                outcomes.close()


def _of_this_process(outcome: Evaluation | None, job: Job) -> Evaluation | None:
    """Replace the expression that a worker has sent back, whose base kernels may be copies."""
    if outcome is None or outcome.expression is job.expression:
        return outcome
    return replace(outcome, expression=job.expression)


class Store:
    """Finished evaluations by their keys, in a ``joblib.Memory``.

    An evaluation that cannot be read counts as missing.
    """

    def __init__(self, memory: Memory) -> None:
        self._backend = memory.store_backend

    def load(self, key: str, expression: Expression) -> Evaluation | None:
        """Return the stored evaluation of an expression, or None."""
        if not self._backend.contains_item(_path(key)):
            return None
        try:
            return Evaluation(expression=expression, **self._backend.load_item(_path(key)))
        except Exception:  # a damaged or foreign file may raise anything
            return None

    def save(self, key: str, evaluation: Evaluation) -> None:
        """Store an evaluation; the file gets its name only when it is complete.

        The expression is left out, because a worker may not be able to pickle a custom base kernel.
        """
        names = [field.name for field in fields(evaluation) if field.name != "expression"]
        self._backend.dump_item(_path(key), {name: getattr(evaluation, name) for name in names})


def _path(key: str) -> list[str]:
    """Return the path in the store, one for each version of the package."""
    return ["autokernel", __version__, key]


def _evaluate(
    evaluator: Evaluator, job: Job, key: str, *, deadline: Deadline, store: Store | None
) -> Evaluation | None:
    """Read an evaluation from the store or compute it; None if there was not enough time."""
    if store is not None and (found := store.load(key, job.expression)):
        return evaluator.priced(found)
    try:
        evaluation = evaluator.run(job, deadline=deadline)
    except OutOfTimeError:
        return None
    # A kernel without a fit may have failed for lack of memory: it is tried again next time.
    if store is not None and np.isfinite(evaluation.log_posterior):
        store.save(key, evaluation)
    return evaluation
