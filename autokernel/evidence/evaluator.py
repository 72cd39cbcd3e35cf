"""The evaluation of a kernel on a data set: fit it, score it, record it."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np

from autokernel.deadline import NEVER, Deadline
from autokernel.evidence.criteria import Criterion, KernelFit
from autokernel.evidence.evaluation import NO_SCORE, Evaluation, as_written, record_mode
from autokernel.evidence.importance import ImportanceSample, importance_sample
from autokernel.evidence.laplace import Laplace, log_evidence_at, log_evidence_or_nothing
from autokernel.evidence.maximise import Mode
from autokernel.evidence.maximum import (
    Maximum,
    estimate_maximum,
    find_best_maximum,
    measure_maximum,
)
from autokernel.evidence.mode_search import ModeSearch, random_stream
from autokernel.evidence.posterior import LogPosterior
from autokernel.evidence.registry import check_criterion
from autokernel.evidence.starts import WarmStart
from autokernel.exceptions import EvaluationError, NotAMaximumError, OutOfTimeError
from autokernel.expression import Expression, StructurePrior, UniformPrior, align, arrange, slots_of
from autokernel.inference import (
    ExactLikelihood,
    Likelihood,
    TrainingData,
    one_blas_thread,
)
from autokernel.kernels import Priors
from autokernel.typing import FloatArray


class Arrivals:
    """The objects that one process has unpickled, with the caches that they filled there.

    Parameters
    ----------
    most : int
        Number of objects to keep. The latest ones stay.
    """

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._objects: dict[str, Any] = {}  # by name

    def get(self, name: str) -> Any | None:
        """Return the object of this name, or None."""
        return self._objects.get(name)

    def keep(self, name: str, arrived: Any) -> None:
        """Keep an object, and drop the oldest where there are too many."""
        for oldest in list(self._objects)[: 1 - self._most]:
            self._objects.pop(oldest, None)  # another thread may have dropped it
        self._objects[name] = arrived


OF_THIS_PROCESS = Arrivals(most=2)
"""The evaluators of this process: a joblib worker has no other place to keep them between jobs."""


def arrive(name: str, make: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """Rebuild a pickled object, or return the one that was rebuilt before."""
    arrived = OF_THIS_PROCESS.get(name)
    if arrived is None:
        arrived = make(**settings)
        OF_THIS_PROCESS.keep(name, arrived)
    return arrived


def digest(*parts: object) -> str:
    """Compute the SHA-256 digest of bytes, texts, numbers and tuples of them."""
    sha = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        sha.update(len(data).to_bytes(8))
        sha.update(data)
    return sha.hexdigest()


_UNIFORM = UniformPrior()
FAR = 5.0
"""Nats below the best score from which an estimate of the Hessian suffices."""
_N_TIMED = 600  # most rows on which a call is timed
_ENOUGH = 0.1  # standard error of the log evidence, in nats, with which draws suffice


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: a warm start holds arrays
class Job:
    """A kernel with its warm starts and the score to compare it with.

    The score depends on these, on the data and on the settings of the evaluator alone.
    """

    expression: Expression
    warm_starts: tuple[tuple[WarmStart, ...], ...] = ()
    best: float = -np.inf  # highest score of a known fit, in nats, if there are warm starts


class Evaluator:
    """Scores kernels on one data set.

    A score depends on the canonical text of the kernel, the seed and the warm starts. It does not
    depend on the order of evaluation or on the process. A pickled evaluator leaves out its caches;
    a process that unpickles it keeps one evaluator for all of its jobs.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Inputs, used as they come.
    y : ndarray of shape (n_samples,)
        Targets, used as they come.
    priors : mapping
        Gamma priors by parameter name, as :func:`check_priors` returns them.
    seed : int
        Seed of the random numbers, not negative.
    criterion : str or Criterion
        Name from :data:`CRITERIA`, or a criterion object.
    structure_prior : StructurePrior
        Log prior of each expression, which is added to the criterion.
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        *,
        priors: Priors,
        seed: int,
        criterion: str | Criterion = "laplace",
        structure_prior: StructurePrior = _UNIFORM,
    ) -> None:
        self._criterion = check_criterion(criterion)
        self._criterion.check_data(X, y)
        self.data = TrainingData(X, y)
        self._priors, self._seed = priors, seed
        self._structure_prior = structure_prior
        self._find_modes = ModeSearch(self.data, priors=priors, seed=seed)

    def __call__(self, expression: Expression, known: Iterable[Evaluation] = ()) -> Evaluation:
        """Fit and score one kernel, with warm starts from known fits of similar kernels."""
        return self.run(self.prepare(expression, known))

    def prepare(self, expression: Expression, known: Iterable[Evaluation] = ()) -> Job:
        """Find the warm starts of a kernel among known fits, and the best score of these fits."""
        known = list(known)
        warm_starts = warm_starts_from_similar(arrange(expression).expression, known)
        if not warm_starts:
            return Job(expression)
        best = max(evaluation.score for evaluation in known)
        return Job(expression, tuple(tuple(together) for together in warm_starts), best)

    def run(self, job: Job, *, deadline: Deadline = NEVER) -> Evaluation:
        """Fit and score one kernel.

        Any other error becomes a record with its reason, because one kernel that fails must not
        end a long search.

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
            evaluation = self._without_mode(arranged.expression, reason_of(error))
        evaluation = as_written(evaluation, job.expression, arranged.nodes)
        return self.priced(replace(evaluation, seconds=time.perf_counter() - began))

    def priced(self, evaluation: Evaluation) -> Evaluation:
        """Replace the log prior of the structure in the score by that of this evaluator."""
        log_prior = self._structure_prior(evaluation.expression)
        if log_prior == evaluation.log_structure_prior:
            return evaluation  # to the last bit
        by = log_prior - evaluation.log_structure_prior
        return replace(
            evaluation,
            score=evaluation.score + by,
            upper_bound=evaluation.upper_bound + by,
            log_structure_prior=log_prior,
        )

    def run_roughly(self, expression: Expression) -> Evaluation:
        """Fit one kernel quickly, on a few rows; the record has no score."""
        arranged = arrange(expression)
        try:
            with one_blas_thread():
                posterior = self._posterior(arranged.expression, NEVER)
                mode = self._find_modes.rough_mode(arranged.expression)
                rough = record_mode(posterior, mode, status="a rough fit on some of the rows")
        except Exception as error:
            rough = self._without_mode(arranged.expression, reason_of(error))
        return as_written(rough, expression, arranged.nodes)

    def without_fit(self, expression: Expression, reason: str) -> Evaluation:
        """Record a kernel whose fit could not even begin."""
        record = self._without_mode(expression, reason)
        return as_written(record, expression, range(len(expression.nodes)))

    def sample(
        self, evaluation: Evaluation, *, max_draws: int, deadline: Deadline = NEVER
    ) -> ImportanceSample:
        """Draw from the posterior of a kernel's parameters around its best mode.

        Raises
        ------
        EvaluationError
            If the kernel has no Hessian, no draw has a finite density, or the kernel fails at one.
        OutOfTimeError
            Once the deadline has passed.
        """
        mode = Mode(evaluation.theta, evaluation.log_posterior)
        with _failing_as_evaluation_error(), one_blas_thread():
            posterior = self._posterior(evaluation.expression, deadline)
            return importance_sample(
                posterior.value,
                [measure_maximum(posterior, mode, evaluation.hessian)],
                lower=posterior.lower,
                upper=posterior.upper,
                rng=random_stream(self._seed, evaluation.expression, "draws"),
                max_draws=max_draws,
                enough=_ENOUGH,
            )

    def seconds_of_call(self, expression: Expression) -> float:
        """Estimate the seconds of a likelihood call with its gradient, from one on some rows."""
        n = min(len(self.data.y), _N_TIMED)
        some = self.data if n == len(self.data.y) else self.data.take(np.arange(n))
        times = (len(self.data.y) / n) ** 3
        return times * seconds_of(ExactLikelihood(expression, some))

    def leave_one_out(
        self, expression: Expression, draws: FloatArray, *, deadline: Deadline = NEVER
    ) -> FloatArray:
        """Compute log densities (n_draws, n_samples) of each row given all others.

        Raises
        ------
        EvaluationError
            If the kernel fails at a draw.
        OutOfTimeError
            Once the deadline has passed.
        """
        with _failing_as_evaluation_error(), one_blas_thread():
            posterior = self._posterior(expression, deadline)
            return np.array([posterior.leave_one_out(theta) for theta in draws])

    @property
    def score_is_laplace(self) -> bool:
        """Whether scores hold Laplace's approximation, which draws can correct."""
        return isinstance(self._criterion, Laplace)

    def fingerprint(self) -> str:
        """Digest the data and the settings: all that a score depends on besides the job."""
        criterion = type(self._criterion)
        return digest(
            self.data.X.tobytes(),
            self.data.y.tobytes(),
            sorted(self._priors.items()),
            self._seed,
            (criterion.__module__, criterion.__qualname__),
            joblib.hash(sorted(self._criterion.get_params().items())),
        )

    def key(self, job: Job) -> str:
        """Digest all that the evaluation of a job depends on."""
        return digest(
            self.fingerprint(),
            str(job.expression),
            job.best,
            *((*tree.declared.definition, tree.parameters) for tree in job.expression.subtrees()),
            *((*start.definition, "and") for together in job.warm_starts for start in together),
            tuple(len(together) for together in job.warm_starts),
        )

    def _without_mode(self, expression: Expression, reason: str) -> Evaluation:
        """Record a kernel that was not fitted, at the prior mean."""
        likelihood = ExactLikelihood(expression, self.data.take(np.arange(1)))
        posterior = LogPosterior(likelihood, priors=self._priors)
        mode = Mode(np.log(posterior.prior.shape / posterior.prior.rate), -np.inf)
        return record_mode(posterior, mode, status=reason)

    def _posterior(self, expression: Expression, deadline: Deadline) -> LogPosterior:
        """Build the log posterior of an arranged kernel on all rows."""
        likelihood = ExactLikelihood(expression, self.data)
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
            maximum = self._far_maximum(posterior, mode, job.best)
            if maximum is None:
                maximum = find_best_maximum(posterior, found.modes)
            rng = random_stream(self._seed, posterior.expression, "criterion")
            evaluation = self._score(KernelFit(posterior, maximum, others, rng))
        except NotAMaximumError as error:
            evaluation = record_mode(posterior, mode, status=str(error))
        n_evaluations = found.n_evaluations + posterior.n_evaluations - before
        return replace(evaluation, n_evaluations=n_evaluations)

    def _far_maximum(self, posterior: LogPosterior, mode: Mode, best: float) -> Maximum | None:
        """Estimate the Hessian where the score is far below the best one, None elsewhere.

        Such a kernel is not averaged, and the search needs no exact score of it. The estimate of
        the last run of the BFGS method saves the calls for an exact Hessian.
        """
        if not self.score_is_laplace or not np.isfinite(best):
            return None
        least = best - FAR - self._structure_prior(posterior.expression)
        with suppress(NotAMaximumError):
            maximum = estimate_maximum(posterior, mode)
            if log_evidence_at(maximum) < least:
                return maximum
        return None

    def _score(self, fit: KernelFit) -> Evaluation:
        """Score a fitted kernel."""
        score, status = NO_SCORE, "ok"
        try:
            score = self._criterion(fit)
            if not np.isfinite(score.value):
                raise NotAMaximumError(f"the criterion is {score.value} at the best mode")
        except NotAMaximumError as error:
            score, status = NO_SCORE, str(error)
        return record_mode(
            fit.posterior,
            fit.maximum.mode,
            hessian=fit.maximum.hessian,
            log_evidence=log_evidence_or_nothing(fit),
            score=score,
            status=status,
        )

    def _settings(self) -> dict[str, Any]:
        """Return the arguments from which another process rebuilds this evaluator."""
        return {
            "X": self.data.X,
            "y": self.data.y,
            "priors": self._priors,
            "seed": self._seed,
            "criterion": self._criterion,
            "structure_prior": self._structure_prior,
        }

    def __reduce__(self) -> tuple[object, ...]:
        name = f"{self.fingerprint()} {self._structure_prior!r}"
        return arrive, (name, type(self), self._settings())


def seconds_of(likelihood: Likelihood) -> float:
    """Measure the seconds of a likelihood call with its gradient."""
    theta = np.zeros(len(likelihood.parameters))
    with one_blas_thread():
        likelihood.value_and_gradient(theta)  # computes the distances, which are kept
        began = time.perf_counter()
        likelihood.value_and_gradient(theta)
    return time.perf_counter() - began


def reason_of(error: Exception) -> str:
    """State in one line why an evaluation failed."""
    return " ".join(f"{type(error).__name__}: {error}".split())


@contextmanager
def _failing_as_evaluation_error() -> Iterator[None]:
    """Turn the errors of one kernel into one that callers expect."""
    try:
        yield
    except OutOfTimeError:
        raise
    except Exception as error:
        raise EvaluationError(reason_of(error)) from error


_N_ALIKE, _N_SIMILAR = 12, 3


def warm_starts_from_similar(
    expression: Expression, known: Iterable[Evaluation]
) -> list[list[WarmStart]]:
    """Find the known fits that share most nodes with a kernel, the most similar first.

    Nodes that a fit lacks are also taken from fits of single leaves, where all of them are known.
    A fit that has less than a quarter of the kernel's nodes gives no warm start.
    """
    ours = Counter(expression.leaves)

    def dissimilarity(other: Evaluation) -> tuple[int, int, float, str]:
        shared = (ours & Counter(other.expression.leaves)).total()
        text = other.expression.canonical
        return (-shared, other.expression.n_leaves, -other.score, text)

    fitted = [other for other in known if np.isfinite(other.score)]
    found = []
    for other in sorted(fitted, key=dissimilarity)[:_N_ALIKE]:
        pairs = align(expression, other.expression)
        if pairs and 4 * len(pairs) >= len(expression.nodes):
            found.append((pairs, other))
    found.sort(key=lambda one: (-len(one[0]), -one[1].score))
    alone = {other.expression: other for other in fitted if other.expression.n_leaves == 1}
    nodes = expression.nodes
    starts = []
    for pairs, other in found[:_N_SIMILAR]:
        start = _take(pairs, other)
        starts.append([start])
        missing = [node for node in range(len(nodes)) if node not in start.nodes]
        if missing and all(nodes[node] in alone for node in missing):
            others = ((node, alone[nodes[node]]) for node in missing)
            of_leaves = [WarmStart([node], fit.theta, fit.hessian) for node, fit in others]
            starts.append([start, *of_leaves])
    return starts


def _take(pairs: Sequence[tuple[int, int]], other: Evaluation) -> WarmStart:
    """Make a warm start from the parameters of paired nodes."""
    slots = slots_of(other.expression)
    numbers = np.arange(len(other.theta))
    taken = np.concatenate([*(numbers[slots[theirs].entries] for _, theirs in pairs), numbers[-1:]])
    hessian = other.hessian[np.ix_(taken, taken)]
    return WarmStart([ours for ours, _ in pairs], other.theta[taken], hessian)
