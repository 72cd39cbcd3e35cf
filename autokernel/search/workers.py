"""Parallel evaluation of kernels, with a store of finished evaluations."""

import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
from joblib import Memory, Parallel, delayed, effective_n_jobs

from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Evaluation, Evaluator, Job
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import Expression
from autokernel.version import __version__

Outcomes = Generator[Evaluation | None, None, None]


class Workers:
    """Evaluates several kernels in parallel.

    ``joblib.Parallel`` and ``joblib.parallel_config`` set the number and kind of the workers. The
    evaluations do not depend on them.

    Parameters
    ----------
    evaluator : Evaluator
        Scores one kernel.
    n_jobs : int or None
        Number of workers, as for ``joblib.Parallel``.
    memory : joblib.Memory or None
        Store of finished evaluations, which are read instead of computed again.
    deadline : Deadline
        Moment at which evaluations are stopped. A stopped evaluation yields None and is not stored.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        *,
        n_jobs: int | None = None,
        memory: Memory | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        self._evaluator, self._n_jobs, self._deadline = evaluator, n_jobs, deadline
        self._store = None if memory is None or memory.store_backend is None else Store(memory)

    def __call__(self, expressions: Sequence[Expression], known: Sequence[Evaluation]) -> Outcomes:
        """Yield the evaluations in order, with warm starts from similar known fits."""
        jobs = [self._task(self._evaluator.prepare(e, known)) for e in expressions]
        while jobs:
            try:
                with _closing(self._run(jobs)) as outcomes:
                    for outcome in outcomes:
                        (job, _), *jobs = jobs
                        yield _of_this_process(outcome, job)
            except Exception:  # evaluations do not raise: a worker died and stopped others
                n_suspects = effective_n_jobs(self._n_jobs)
                for task in jobs[:n_suspects]:
                    jobs = jobs[1:]
                    yield self._run_alone(task)

    def _task(self, job: Job) -> "_Task":
        """Return a job with the key under which it is stored."""
        return _Task(job, "" if self._store is None else self._evaluator.key(job))

    def _run(self, jobs: Sequence["_Task"]) -> Outcomes:
        """Start as many jobs as there are workers, and another one whenever one ends."""
        parallel = {"n_jobs": self._n_jobs, "pre_dispatch": "n_jobs", "batch_size": 1}
        try:
            run = Parallel(**parallel, return_as="generator")
        except ValueError:  # this backend returns all outcomes at once
            run = Parallel(**parallel)
        yield from run(
            delayed(_evaluate)(self._evaluator, task, deadline=self._deadline, store=self._store)
            for task in jobs
        )

    def _run_alone(self, task: "_Task") -> Evaluation | None:
        """Run a job in its own worker, and record a failure if that worker dies."""
        try:
            with _closing(self._run([task])) as outcomes:
                [outcome] = outcomes
                return _of_this_process(outcome, task.job)
        except Exception as error:
            reason = f"the worker failed: {type(error).__name__}: {error}"
            return self._evaluator.without_fit(task.job.expression, " ".join(reason.split()))


class _Task(NamedTuple):
    """A job for a worker."""

    job: Job
    key: str  # under which its evaluation is stored


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

        The expression is left out, because a worker may not be able to pickle a user's base kernel.
        """
        names = [field.name for field in fields(evaluation) if field.name != "expression"]
        self._backend.dump_item(_path(key), {name: getattr(evaluation, name) for name in names})


def _path(key: str) -> list[str]:
    """Return the path in the store, one for each version of the package."""
    return ["autokernel", __version__, key]


def _evaluate(
    evaluator: Evaluator, task: _Task, *, deadline: Deadline, store: Store | None
) -> Evaluation | None:
    """Read an evaluation from the store or compute it; None if there was not enough time."""
    if store is not None and (found := store.load(task.key, task.job.expression)):
        return evaluator.priced(found)
    try:
        evaluation = evaluator.run(task.job, deadline=deadline)
    except OutOfTimeError:
        return None
    # A kernel without a fit may have failed for lack of memory: it is tried again next time.
    if store is not None and np.isfinite(evaluation.log_posterior):
        store.save(task.key, evaluation)
    return evaluation


@contextmanager
def _closing(outcomes: Outcomes) -> Iterator[Outcomes]:
    """Stop the workers on leaving, without warnings about their unfinished work."""
    try:
        yield outcomes
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcomes.close()
