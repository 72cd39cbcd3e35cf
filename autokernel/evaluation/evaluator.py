"""Score one kernel; here, and only here, a failure becomes a score of ``-inf`` with a reason."""

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import joblib
import numpy as np

from autokernel.criteria import Criterion, Score, check_criterion
from autokernel.criteria.laplace import log_evidence_at
from autokernel.deadline import NEVER, Deadline
from autokernel.evaluation.record import Evaluation, as_written
from autokernel.exceptions import NotAMaximumError, OutOfTimeError
from autokernel.expression import Expression, arrange
from autokernel.kernels.priors import Priors
from autokernel.likelihood import TrainingData, one_blas_thread
from autokernel.map.maximise import Mode
from autokernel.map.maximum import Maximum, find_maximum
from autokernel.map.mode_search import ModeSearch, random_stream
from autokernel.map.posterior import LogPosterior
from autokernel.map.warm_start import Known, WarmStart, warm_starts_from_similar
from autokernel.typing import FloatArray

_NO_SCORE = Score(-np.inf)
_MOST_EVALUATORS = 2  # kept in a worker: they hold what they have computed


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: an inheritance holds arrays
class Job:
    """A kernel, with what it inherits from similar ones: beside the data all that counts."""

    expression: Expression
    inherited: tuple[tuple[WarmStart, ...], ...] = ()


class Evaluator:
    """Scores kernels on one data set.

    A score depends on the canonical text of the kernel, the seed and what it inherits, neither on
    the order of evaluation nor on the process. An evaluator travels to other processes without what
    it has computed; there, each process keeps one for all the jobs that it gets.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Inputs, used as they come.
    y : ndarray of shape (n_samples,)
        Targets, used as they come.
    priors : mapping
        Complete, as :func:`check_priors` returns it.
    seed : int
        Not negative.
    criterion : str or Criterion
        A name out of :data:`CRITERIA`, or an object.
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        *,
        priors: Priors,
        seed: int,
        criterion: str | Criterion = "laplace",
    ) -> None:
        self._criterion = check_criterion(criterion)
        self._criterion.check_data(X, y)
        self._data = TrainingData(X, y)
        self._priors, self._seed = priors, seed
        self._find_modes = ModeSearch(self._data, priors=priors, seed=seed)

    def __call__(self, expression: Expression, known: Sequence[Evaluation] = ()) -> Evaluation:
        """Fit and score one kernel, beginning at the known fits that are similar to it."""
        return self.run(self.prepare(expression, known))

    def prepare(self, expression: Expression, known: Iterable[Evaluation] = ()) -> Job:
        """Find what a kernel inherits from known fits."""
        fits = [Known(fit.expression, fit.theta, fit.score) for fit in known]
        inherited = warm_starts_from_similar(arrange(expression)[0], fits)
        return Job(expression, tuple(tuple(together) for together in inherited))

    def run(self, job: Job, *, deadline: Deadline = NEVER) -> Evaluation:
        """Fit and score one kernel.

        Whatever goes wrong becomes a record with its reason.

        Raises
        ------
        OutOfTimeError
            Once the deadline has passed.
        """
        began = time.perf_counter()
        arranged, order = arrange(job.expression)
        posterior = LogPosterior(arranged, self._data, priors=self._priors, deadline=deadline)
        evaluation = _guarded(posterior, lambda: self._evaluate(posterior, job.inherited))
        evaluation = as_written(evaluation, job.expression, order)
        return replace(evaluation, seconds=time.perf_counter() - began)

    def run_roughly(self, expression: Expression) -> Evaluation:
        """Fit one kernel in a moment, on a few rows; it has no score."""
        arranged, order = arrange(expression)
        posterior = LogPosterior(arranged, self._data, priors=self._priors)

        def roughly() -> Evaluation:
            mode = self._find_modes.rough_mode(arranged)
            return _record(posterior, mode, status="a rough fit on some of the rows")

        return as_written(_guarded(posterior, roughly), expression, order)

    def without_fit(self, expression: Expression, reason: str) -> Evaluation:
        """Record a kernel that could not even be tried."""
        posterior = LogPosterior(expression, self._data, priors=self._priors)
        record = _record(posterior, _nowhere(posterior), status=reason)
        return as_written(record, expression, range(expression.n_leaves))

    def fingerprint(self) -> str:
        """Digest of all that a score depends on beside the job."""
        criterion = type(self._criterion)
        parameters = sorted(self._criterion.get_params().items())
        return _digest(
            self._data.X.tobytes(),
            self._data.y.tobytes(),
            sorted(self._priors.items()),
            self._seed,
            (criterion.__module__, criterion.__qualname__),
            joblib.hash(parameters),
        )

    def key(self, job: Job) -> str:
        """Digest of all that the evaluation of a job depends on."""
        return _digest(
            self.fingerprint(),
            str(job.expression),
            *(
                (tuple(fit.leaves), fit.theta.tobytes(), "and")
                for together in job.inherited
                for fit in together
            ),
            tuple(len(together) for together in job.inherited),
        )

    def _evaluate(
        self, posterior: LogPosterior, inherited: Sequence[Sequence[WarmStart]]
    ) -> Evaluation:
        """Fit and score an arranged kernel."""
        found = self._find_modes(posterior.expression, posterior, inherited)
        before = posterior.n_evaluations
        rng = random_stream(self._seed, posterior.expression, "criterion")
        try:
            evaluation = _at_a_maximum(posterior, found.modes, criterion=self._criterion, rng=rng)
        except NotAMaximumError as error:
            evaluation = _record(posterior, found.modes[0], status=str(error))
        n_evaluations = found.n_evaluations + posterior.n_evaluations - before
        return replace(evaluation, n_evaluations=n_evaluations)

    def __reduce__(self) -> tuple[object, ...]:
        made_from = (self._data.X, self._data.y, self._priors, self._seed, self._criterion)
        return _evaluator_of_this_process, (self.fingerprint(), *made_from)


_evaluators: dict[str, Evaluator] = {}  # those that have travelled to this process, by fingerprint


def _evaluator_of_this_process(
    fingerprint: str,
    X: FloatArray,
    y: FloatArray,
    priors: Priors,
    seed: int,
    criterion: Criterion,
) -> Evaluator:
    """Rebuild an evaluator, or return the one that has been rebuilt before."""
    evaluator = _evaluators.get(fingerprint)
    if evaluator is None:
        for oldest in list(_evaluators)[: 1 - _MOST_EVALUATORS]:
            _evaluators.pop(oldest, None)  # another thread may have done so
        evaluator = Evaluator(X, y, priors=priors, seed=seed, criterion=criterion)
        _evaluators[fingerprint] = evaluator
    return evaluator


def _digest(*parts: object) -> str:
    """Digest of bytes, texts, numbers and tuples of them."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return digest.hexdigest()


def _guarded(posterior: LogPosterior, evaluate: Callable[[], Evaluation]) -> Evaluation:
    """Evaluate with one BLAS thread; one kernel that fails must not end a long search."""
    try:
        with one_blas_thread():
            return evaluate()
    except OutOfTimeError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return _record(posterior, _nowhere(posterior), status=reason)


def _at_a_maximum(
    posterior: LogPosterior,
    modes: Sequence[Mode],
    *,
    criterion: Criterion,
    rng: np.random.Generator,
) -> Evaluation:
    """Climb to the summit of the best mode and score there."""
    mode, *others = modes
    if not np.isfinite(mode.log_posterior):
        raise NotAMaximumError("the covariance matrix has no Cholesky factor at any starting point")
    summit = find_maximum(posterior, mode)
    score, status = _NO_SCORE, "ok"
    try:
        score = criterion(posterior, summit, others=others, rng=rng)
        if not np.isfinite(score.value):
            raise NotAMaximumError(f"the criterion is {score.value} at the best mode")
    except NotAMaximumError as error:
        score, status = _NO_SCORE, str(error)
    return _record(
        posterior,
        summit.mode,
        hessian=summit.hessian,
        log_evidence=_laplace_or_nothing(summit),
        score=score,
        status=status,
    )


def _nowhere(posterior: LogPosterior) -> Mode:
    """Stand for the mode of a kernel that was not fitted, at the prior mean."""
    return Mode(np.log(posterior.prior.shape / posterior.prior.rate), -np.inf)


def _laplace_or_nothing(summit: Maximum) -> float:
    """Laplace approximation at a summit, ``-inf`` at a saddle that could not be left."""
    try:
        return log_evidence_at(summit)
    except NotAMaximumError:
        return -np.inf


def _record(
    posterior: LogPosterior,
    mode: Mode,
    *,
    hessian: FloatArray | None = None,
    log_evidence: float = -np.inf,
    score: Score = _NO_SCORE,
    status: str,
) -> Evaluation:
    """Gather what is known of a mode; the callers fill in names, calls and seconds."""
    n_params = len(mode.theta)
    log_prior = float(posterior.prior.log_density(mode.theta))
    return Evaluation(
        expression=posterior.expression,
        parameters=(),
        theta=mode.theta,
        log_likelihood=mode.log_posterior - log_prior,
        log_prior=log_prior,
        log_posterior=mode.log_posterior,
        log_evidence=log_evidence,
        score=score.value,
        hessian=np.full((n_params, n_params), np.nan) if hessian is None else hessian,
        n_params=n_params,
        n_evaluations=0,
        seconds=0.0,
        status=status,
        standard_error=score.standard_error,
        pareto_k=score.pareto_k,
    )
