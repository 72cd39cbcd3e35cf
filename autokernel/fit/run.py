"""One run of ``fit``: a search that may end early, and the model that results from it."""

import time
import warnings
from contextlib import suppress
from functools import partial

import numpy as np
from joblib import Memory
from sklearn.exceptions import ConvergenceWarning

from autokernel.deadline import Deadline
from autokernel.exceptions import EvaluationError
from autokernel.expression import NOISE
from autokernel.fit.arguments import Arguments
from autokernel.fit.problem import Past, Problem
from autokernel.inference import one_blas_thread
from autokernel.model import FittedModel
from autokernel.search import History, Observer, Search, StopReason, evaluate_in_parallel

_EARLY = (StopReason.MAX_TIME, StopReason.INTERRUPTED, StopReason.CALLBACK)
_SHARE_OF_AVERAGING = 0.1  # of the time, reserved for draws from the posterior
_SHARE_OF_ALL_ROWS = 0.4  # the same, for fits of the best kernels to all rows
_CALLS = 100  # likelihood calls on all rows for one kernel, about
_REFITS = 3.0  # reserve for conditioning the best kernel, in times of one rough fit


class Run:
    """A search on one problem.

    Parameters
    ----------
    problem : Problem
        Data and evaluator of the search.
    arguments : Arguments
        The strategy and the space of kernels.
    past : Past or None
        What an earlier search has left, which this one continues if it holds for it.
    n_iter, batch_size : int
        Numbers of kernels, as for :class:`Search`.
    tol : float
        Nats, as for :class:`Search`.
    deadline : Deadline
        Moment by which all must be done, including conditioning of the best kernel.
    """

    def __init__(
        self,
        problem: Problem,
        arguments: Arguments,
        past: Past | None,
        *,
        n_iter: int,
        batch_size: int,
        tol: float,
        deadline: Deadline,
    ) -> None:
        self.problem = problem
        task = problem.task(arguments)
        self.history = problem.history_to_continue(past, task)
        self._search = Search(
            arguments.strategy,
            task,
            self.history,
            n_iter=n_iter,
            seed=problem.seed,
            batch_size=batch_size,
            tol=tol,
        )
        self._deadline = deadline
        self._rough: FittedModel | None = None
        self._best: FittedModel | None = None
        self._conditioning = 0.0  # seconds to keep for the conditioning of the model

    @property
    def n_trials(self) -> int:
        """Largest number of trials to come; each of the two prunings counts as one."""
        return self._search.n_trials

    def expected_seconds(self) -> float:
        """Estimate the seconds of the search by one worker, from one likelihood call.

        It is right within a factor of three or so, as kernels differ in size. It is zero if the
        call fails.
        """
        design = self._search.design.fixed
        if not design:
            return 0.0
        try:
            seconds = self.problem.evaluator.seconds_of_call(design[0])
        except Exception:  # a base kernel of the user that fails: its evaluation will say so
            return 0.0
        return self.n_trials * _CALLS * seconds

    def search(
        self, observer: Observer, *, n_jobs: int | None = None, memory: Memory | None = None
    ) -> StopReason:
        """Search and return why it ended; the history keeps all trials, also after Ctrl-C."""
        if not self.problem.space.grammar.columns:
            warnings.warn(
                "every column of X is constant, so that the model is noise alone: predictions are "
                "the mean of y",
                UserWarning,
                stacklevel=5,
            )
        reserve = 0.0
        if np.isfinite(self._deadline.seconds_left):
            began = time.perf_counter()
            self._rough = self._fit_roughly()
            self._conditioning = _REFITS * (time.perf_counter() - began)
            share = _SHARE_OF_AVERAGING if self.problem.plan.is_plain else _SHARE_OF_ALL_ROWS
            reserve = self._conditioning + share * self._deadline.seconds_left
        deadline = self._deadline.earlier(reserve)
        evaluate_all = partial(
            evaluate_in_parallel,
            self.problem.evaluator,
            n_jobs=n_jobs,
            memory=memory,
            deadline=deadline,
        )
        try:
            with one_blas_thread():
                return self._search.run(evaluate_all, deadline=deadline, observer=observer)
        finally:
            deadline.cancel()  # nothing else stops threads that still work

    def best(self) -> FittedModel | None:
        """Build the model of the best kernel so far, or return None if there is none."""
        for evaluation in self.history.best_first():
            if self._best is not None and self._best.evaluation is evaluation:
                return self._best
            with suppress(EvaluationError):  # then try the next best kernel
                self._best = self.problem.fitted(evaluation)
                return self._best
        return None

    def result(self, reason: StopReason) -> FittedModel:
        """Build the final model, which is a rough fit if the search ended before any kernel.

        Raises
        ------
        EvaluationError
            If no kernel could be fitted.
        """
        best = self.best()
        if best is None and reason in _EARLY:
            best = self._rough or self._fit_roughly()
            if best is not None and reason is not StopReason.INTERRUPTED:
                n_failed = len(self.history)
                also = f", and {n_failed} could not be fitted" if n_failed else ""
                warnings.warn(
                    f"{reason} ended the search before any kernel had a score{also}: this model "
                    f"is a rough fit of {best.evaluation.expression}, allow more time",
                    ConvergenceWarning,
                    stacklevel=6,  # points at the call of fit, above its decorators
                )
        if best is not None and np.isfinite(best.evaluation.score):
            return self._averaged(best, reason)
        if best is None:
            failed = self.history.evaluations[:1]
            first = f"; the first, {failed[0].expression}: {failed[0].status}" if failed else ""
            raise EvaluationError(f"none of the {len(self.history)} kernels could be fitted{first}")
        return best

    def _averaged(self, best: FittedModel, reason: StopReason) -> FittedModel:
        """Average over the kernels of the history, unless the user has interrupted the search."""
        if reason is StopReason.INTERRUPTED:
            return best
        others = [one for one in self.history.best_first() if one is not best.evaluation]
        deadline = self._deadline.earlier(self._conditioning)
        return self.problem.averaged([best.evaluation, *others], deadline=deadline)

    def past(self) -> Past:
        """Return the present state of the search, which another search can continue."""
        history = History(self.history.n_samples, list(self.history.trials))
        return Past(history, self.problem.seed, self.problem.fingerprint)

    def _fit_roughly(self) -> FittedModel | None:
        """Fit the first kernel of the design quickly on a few rows, or the next one if it fails."""
        design = self._search.design
        for expression in [*design.fixed, *(one.expression for one in design.grown), NOISE]:
            with suppress(EvaluationError):
                return self.problem.fitted(self.problem.evaluator.run_roughly(expression))
        return None
