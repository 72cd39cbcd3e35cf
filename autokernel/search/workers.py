"""Evaluate kernels together, in workers, and remember what has been evaluated."""

import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields

import numpy as np
from joblib import Memory, Parallel, delayed, effective_n_jobs

from autokernel.deadline import NEVER, Deadline
from autokernel.evaluation import Evaluation, Evaluator, Job
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import Expression
from autokernel.version import __version__

Outcomes = Generator[Evaluation | None, None, None]


class Workers:
    """Evaluates several kernels at once.

    What an evaluation yields does not depend on the workers: their number and kind are those of
    ``joblib.Parallel`` and of ``joblib.parallel_config``.

    Parameters
    ----------
    evaluator : Evaluator
        Scores one kernel.
    n_jobs : int or None
        As for ``joblib.Parallel``.
    memory : joblib.Memory or None
        Where finished evaluations are kept, and found again.
    deadline : Deadline
        When evaluations are cut short; those that are yield None, and are not kept.
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
        """Yield the evaluations in order, each beginning at the known fits that are similar."""
        jobs = [self._evaluator.prepare(expression, known) for expression in expressions]
        while jobs:
            try:
                with _closing(self._run(jobs)) as outcomes:
                    for outcome in outcomes:
                        jobs = jobs[1:]
                        yield outcome
            except Exception:  # evaluations do not raise: a worker died, and took others with it
                n_suspects = effective_n_jobs(self._n_jobs)
                for job in jobs[:n_suspects]:
                    jobs = jobs[1:]
                    yield self._run_alone(job)

    def _run(self, jobs: Sequence[Job]) -> Outcomes:
        """Begin as many jobs as there are workers, and another one whenever one ends."""
        parallel = {"n_jobs": self._n_jobs, "pre_dispatch": "n_jobs", "batch_size": 1}
        try:
            run = Parallel(**parallel, return_as="generator")
        except ValueError:  # a backend that cannot: all outcomes at once
            run = Parallel(**parallel)
        yield from run(
            delayed(_evaluate)(self._evaluator, job, deadline=self._deadline, store=self._store)
            for job in jobs
        )

    def _run_alone(self, job: Job) -> Evaluation | None:
        """Run a job in a worker of its own, which may die."""
        try:
            with _closing(self._run([job])) as outcomes:
                [outcome] = outcomes
                return outcome
        except Exception as error:
            reason = f"the worker failed: {type(error).__name__}: {error}"
            return self._evaluator.without_fit(job.expression, " ".join(reason.split()))


class Store:
    """Finished evaluations by their keys, in a ``joblib.Memory``.

    One that cannot be read counts as missing.
    """

    def __init__(self, memory: Memory) -> None:
        self._backend = memory.store_backend

    def load(self, key: str, expression: Expression) -> Evaluation | None:
        """Return the evaluation of an expression, None where there is none to be read."""
        if not self._backend.contains_item(_path(key)):
            return None
        try:
            return Evaluation(expression=expression, **self._backend.load_item(_path(key)))
        except Exception:  # whatever a half-written or foreign file may cause
            return None

    def save(self, key: str, evaluation: Evaluation) -> None:
        """Keep an evaluation; the file takes its name once it is whole.

        The expression is left out, as a worker may not be able to pickle a base kernel of the user.
        """
        names = [field.name for field in fields(evaluation) if field.name != "expression"]
        self._backend.dump_item(_path(key), {name: getattr(evaluation, name) for name in names})


def _path(key: str) -> list[str]:
    """Place in the store; versions may differ in what they compute."""
    return ["autokernel", __version__, key]


def _evaluate(
    evaluator: Evaluator, job: Job, *, deadline: Deadline, store: Store | None
) -> Evaluation | None:
    """Evaluate in a worker, or remember; None where time did not suffice."""
    key = "" if store is None else evaluator.key(job)
    if store is not None and (found := store.load(key, job.expression)):
        return found
    try:
        evaluation = evaluator.run(job, deadline=deadline)
    except OutOfTimeError:
        return None
    # what failed outright may have failed for want of memory: another time it may not
    if store is not None and np.isfinite(evaluation.log_posterior):
        store.save(key, evaluation)
    return evaluation


@contextmanager
def _closing(outcomes: Outcomes) -> Iterator[Outcomes]:
    """Stop the workers on leaving, without a word on what they were doing."""
    try:
        yield outcomes
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcomes.close()
