"""Score kernels on one data set; here, and only here, a failure becomes a score of ``-inf``."""

import hashlib
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

import joblib
import numpy as np

from autokernel.criteria import Criterion, KernelFit, Score, check_criterion
from autokernel.criteria.laplace import log_evidence_at
from autokernel.deadline import NEVER, Deadline
from autokernel.evaluation.record import Evaluation, as_written
from autokernel.evaluation.similar import warm_starts_from_similar
from autokernel.exceptions import NotAMaximumError, OutOfTimeError
from autokernel.expression import Expression, Leaf, Operation, arrange
from autokernel.kernels import Priors
from autokernel.likelihood import (
    ExactLikelihood,
    MakeLikelihood,
    TrainingData,
    one_blas_thread,
)
from autokernel.map.maximise import Mode
from autokernel.map.maximum import Maximum, find_maximum
from autokernel.map.mode_search import ModeSearch, random_stream
from autokernel.map.posterior import LogPosterior
from autokernel.map.warm_start import WarmStart
from autokernel.typing import FloatArray

_NO_SCORE = Score(-np.inf)


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: a warm start holds arrays
class Job:
    """A kernel and the fits that it begins at: beside the data all that its score depends on."""

    expression: Expression
    warm_starts: tuple[tuple[WarmStart, ...], ...] = ()


class Evaluator:
    """Scores kernels on one data set.

    A score depends on the canonical text of the kernel, the seed and the warm starts, neither on
    the order of evaluation nor on the process. An evaluator travels to other processes without what
    it has computed; there, each process keeps one for all the jobs that it gets.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Inputs, used as they come.
    y : ndarray of shape (n_samples,)
        Targets, used as they come.
    priors : mapping
        What :func:`check_priors` returns.
    seed : int
        Not negative.
    criterion : str or Criterion
        A name out of :data:`CRITERIA`, or an object.
    make_likelihood : callable
        Makes the likelihood of a kernel on some rows; a function or class that can be imported.
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        *,
        priors: Priors,
        seed: int,
        criterion: str | Criterion = "laplace",
        make_likelihood: MakeLikelihood = ExactLikelihood,
    ) -> None:
        self._criterion = check_criterion(criterion)
        self._criterion.check_data(X, y)
        self._data = TrainingData(X, y)
        self._priors, self._seed, self._make_likelihood = priors, seed, make_likelihood
        self._find_modes = ModeSearch(
            self._data, priors=priors, seed=seed, make_likelihood=make_likelihood
        )

    def __call__(self, expression: Expression, known: Iterable[Evaluation] = ()) -> Evaluation:
        """Fit and score one kernel, beginning at the known fits that are similar to it."""
        return self.run(self.prepare(expression, known))

    def prepare(self, expression: Expression, known: Iterable[Evaluation] = ()) -> Job:
        """Find where the fit of a kernel begins, given known fits."""
        warm_starts = warm_starts_from_similar(arrange(expression).expression, known)
        return Job(expression, tuple(tuple(together) for together in warm_starts))

    def run(self, job: Job, *, deadline: Deadline = NEVER) -> Evaluation:
        """Fit and score one kernel.

        Whatever goes wrong becomes a record with its reason: one kernel that fails must not end a
        long search.

        Raises
        ------
        OutOfTimeError
            Once the deadline has passed.
        """
        began = time.perf_counter()
        arranged = arrange(job.expression)
        try:
            with one_blas_thread():
                posterior = self._posterior(arranged.expression, deadline)
                evaluation = self._fit_and_score(posterior, job)
        except OutOfTimeError:
            raise
        except Exception as error:
            evaluation = self._without_mode(arranged.expression, _reason(error))
        evaluation = as_written(evaluation, job.expression, arranged.nodes)
        return replace(evaluation, seconds=time.perf_counter() - began)

    def run_roughly(self, expression: Expression) -> Evaluation:
        """Fit one kernel in a moment, on a few rows; it has no score."""
        arranged = arrange(expression)
        try:
            with one_blas_thread():
                posterior = self._posterior(arranged.expression, NEVER)
                mode = self._find_modes.rough_mode(arranged.expression)
                rough = _record(posterior, mode, status="a rough fit on some of the rows")
        except Exception as error:
            rough = self._without_mode(arranged.expression, _reason(error))
        return as_written(rough, expression, arranged.nodes)

    def without_fit(self, expression: Expression, reason: str) -> Evaluation:
        """Record a kernel that could not even be tried."""
        record = self._without_mode(expression, reason)
        return as_written(record, expression, range(len(expression.nodes)))

    def fingerprint(self) -> str:
        """Digest of all that a score depends on beside the job."""
        criterion = type(self._criterion)
        return _digest(
            self._data.X.tobytes(),
            self._data.y.tobytes(),
            sorted(self._priors.items()),
            self._seed,
            (criterion.__module__, criterion.__qualname__),
            joblib.hash(sorted(self._criterion.get_params().items())),
            joblib.hash(self._make_likelihood),
        )

    def key(self, job: Job) -> str:
        """Digest of all that the evaluation of a job depends on."""
        return _digest(
            self.fingerprint(),
            str(job.expression),
            *map(_definition, job.expression.subtrees()),
            *(
                (tuple(start.nodes), start.theta.tobytes(), "and")
                for together in job.warm_starts
                for start in together
            ),
            tuple(len(together) for together in job.warm_starts),
        )

    def _without_mode(self, expression: Expression, reason: str) -> Evaluation:
        """Record a kernel that was not fitted, at the prior mean."""
        likelihood = ExactLikelihood(expression, self._data.take(np.arange(1)))
        posterior = LogPosterior(likelihood, priors=self._priors)
        mode = Mode(np.log(posterior.prior.shape / posterior.prior.rate), -np.inf)
        return _record(posterior, mode, status=reason)

    def _posterior(self, expression: Expression, deadline: Deadline) -> LogPosterior:
        """Build the log posterior of an arranged kernel on all rows."""
        likelihood = self._make_likelihood(expression, self._data)
        return LogPosterior(likelihood, priors=self._priors, deadline=deadline)

    def _fit_and_score(self, posterior: LogPosterior, job: Job) -> Evaluation:
        """Fit and score an arranged kernel."""
        found = self._find_modes(posterior, job.warm_starts)
        before = posterior.n_evaluations
        mode, *others = found.modes
        try:
            if not np.isfinite(mode.log_posterior):
                raise NotAMaximumError(
                    "the covariance matrix has no Cholesky factor at any starting point"
                )
            maximum = find_maximum(posterior, mode)
            rng = random_stream(self._seed, posterior.expression, "criterion")
            evaluation = self._score(KernelFit(posterior, maximum, others, rng))
        except NotAMaximumError as error:
            evaluation = _record(posterior, mode, status=str(error))
        n_evaluations = found.n_evaluations + posterior.n_evaluations - before
        return replace(evaluation, n_evaluations=n_evaluations)

    def _score(self, fit: KernelFit) -> Evaluation:
        """Score a fitted kernel."""
        score, status = _NO_SCORE, "ok"
        try:
            score = self._criterion(fit)
            if not np.isfinite(score.value):
                raise NotAMaximumError(f"the criterion is {score.value} at the best mode")
        except NotAMaximumError as error:
            score, status = _NO_SCORE, str(error)
        return _record(
            fit.posterior,
            fit.maximum.mode,
            hessian=fit.maximum.hessian,
            log_evidence=_laplace_or_nothing(fit.maximum),
            score=score,
            status=status,
        )

    def __reduce__(self) -> tuple[object, ...]:
        made_from = (self._data.X, self._data.y, self._priors, self._seed)
        return _arrive, (self.fingerprint(), *made_from, self._criterion, self._make_likelihood)


class Arrivals:
    """The evaluators that have travelled to one process: they hold what they have computed there.

    Parameters
    ----------
    most : int
        How many are kept, the latest ones.
    """

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._evaluators: dict[str, Evaluator] = {}  # by fingerprint

    def get(self, fingerprint: str) -> Evaluator | None:
        """Return the evaluator with this fingerprint, None where there is none."""
        return self._evaluators.get(fingerprint)

    def keep(self, fingerprint: str, evaluator: Evaluator) -> None:
        """Keep an evaluator, and drop the oldest."""
        for oldest in list(self._evaluators)[: 1 - self._most]:
            self._evaluators.pop(oldest, None)  # another thread may have done so
        self._evaluators[fingerprint] = evaluator


OF_THIS_PROCESS = Arrivals(most=2)
"""A worker of joblib has no owner but its process, so that this object belongs to the process."""


def _arrive(
    fingerprint: str,
    X: FloatArray,
    y: FloatArray,
    priors: Priors,
    seed: int,
    criterion: Criterion,
    make_likelihood: MakeLikelihood,
) -> Evaluator:
    """Rebuild an evaluator, or return the one that has been rebuilt before."""
    evaluator = OF_THIS_PROCESS.get(fingerprint)
    if evaluator is None:
        evaluator = Evaluator(
            X, y, priors=priors, seed=seed, criterion=criterion, make_likelihood=make_likelihood
        )
        OF_THIS_PROCESS.keep(fingerprint, evaluator)
    return evaluator


def _definition(node: Expression) -> tuple[object, ...]:
    """Return what tells the kernel or the operator of a node from others of the same name."""
    if isinstance(node, Leaf):
        return (*node.kernel.definition, node.parameters)
    assert isinstance(node, Operation)
    operator = type(node.operator)
    return (operator.__module__, operator.__qualname__, node.parameters)


def _digest(*parts: object) -> str:
    """Digest of bytes, texts, numbers and tuples of them."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return digest.hexdigest()


def _reason(error: Exception) -> str:
    """Say in one line why an evaluation has failed."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def _laplace_or_nothing(maximum: Maximum) -> float:
    """Laplace approximation at a maximum, ``-inf`` at a saddle that could not be left."""
    try:
        return log_evidence_at(maximum)
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
