"""The evaluation of a kernel on a data set: fit it, score it, record it."""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import joblib
import numpy as np
from sklearn.utils.validation import _get_feature_names

from autokernel.data.checks import check_training_data
from autokernel.data.counts import FAMILIES
from autokernel.data.scales import check_possible, target_offset
from autokernel.deadline import NEVER, Deadline
from autokernel.evidence.criteria import CRITERIA, Criterion, KernelFit, Laplace, Score
from autokernel.evidence.evaluation import NO_SCORE, Estimate, Evaluation, WarmStart, record_fit
from autokernel.evidence.importance import ImportanceSample, importance_sample, sobol_points
from autokernel.evidence.laplace import log_evidence_or_nothing
from autokernel.evidence.maximise import (
    MIN_GAIN_OF_FAILURE,
    Maximum,
    Point,
    find_best_maximum,
    gain_left,
    measure_maximum,
    new_maxima,
)
from autokernel.evidence.mode_search import ModeSearch, modes_of_other_periods
from autokernel.evidence.posterior import LogPosterior
from autokernel.evidence.screening import FIRST_ROWS, MAX_ROWS, MIN_ROWS_OF_TWO_STAGES, Screening
from autokernel.evidence.starts import random_stream, warm_starts_from_similar
from autokernel.exceptions import (
    KERNEL_ERRORS,
    NotAMaximumError,
    custom_part,
    fallback,
    forget_parts,
    kernel_errors,
    reason_of,
    warn_of_part,
)
from autokernel.expression import (
    Expression,
    StructurePrior,
    Tree,
    arranged,
    parse_expression,
    uniform_prior,
)
from autokernel.inference import ExactLikelihood, LeafValues, TrainingData, one_blas_thread
from autokernel.kernels import (
    BASE_KERNELS,
    BaseKernel,
    KernelParameter,
    Operator,
    Priors,
    check_priors,
    definition,
)
from autokernel.typing import FloatArray
from autokernel.validation import check_seed, resolve

FAR_BELOW_BEST = 2.0  # nats below the best score at which an estimate of the Hessian suffices
_MAX_ARRIVED = 2  # evaluators that a process keeps


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: a warm start holds arrays
class Job:
    """A kernel with its warm starts and the score to compare it with.

    The score depends only on these, on the data and on the settings of the evaluator.
    """

    expression: Expression
    warm_starts: tuple[tuple[WarmStart, ...], ...] = ()
    best: float = -np.inf  # log evidence that equals the highest score of the warm starts, in nats


class Evaluator:
    """Scores kernels on one data set.

    A score depends on the canonical text of the kernel, the seed and the warm starts. It does not
    depend on the order of evaluation or on the process. A pickled evaluator leaves out its caches;
    a process that unpickles it keeps one evaluator for all of its jobs.

    The data are used as they come. ``priors`` are as :func:`check_priors` returns them. The
    structure prior of an expression is added to the criterion.
    """

    def __init__(
        self,
        data: TrainingData,
        *,
        priors: Priors,
        seed: int,
        criterion: str | Criterion = "laplace",
        structure_prior: StructurePrior = uniform_prior,
    ) -> None:
        self.criterion = resolve("criterion", criterion, registry=CRITERIA, kind=Criterion)
        self.data = data
        self.n_samples = data.noise.n_readings  # of the score
        self.priors, self.seed = priors, seed
        self.structure_prior = structure_prior
        self._settings: dict[str, Any] = {"data": data}  # with which it is rebuilt, and others
        self._find_modes = ModeSearch(self.data, priors=priors, seed=seed)
        self._log_prior = cache(structure_prior)

    def __call__(self, expression: Expression, known: Iterable[Evaluation] = ()) -> Evaluation:
        """Fit and score one kernel, with warm starts from known fits of similar kernels."""
        return self.run(self.prepare(expression, known))

    def prepare(
        self,
        expression: Expression,
        known: Iterable[Evaluation] = (),
        start: WarmStart | None = None,
    ) -> Job:
        """Find the warm starts of a kernel among known fits, and what would equal the best one.

        ``start`` is one of all parameters of the arranged kernel, and a known fit of the kernel
        itself, such as one to other rows, leads to such a start. It then is the only one.
        """
        known, form = list(known), arranged(expression)
        same = (one for one in known if one.expression.canonical == expression.canonical)
        if start is None and (fit := next(same, None)) and np.isfinite(fit.score):
            start = WarmStart.of_fit(fit, times=self.n_samples / fit.n_rows)
        warm_starts = [[start]] if start else warm_starts_from_similar(form, known)
        if not warm_starts:
            return Job(expression)
        best = max((evaluation.score for evaluation in known), default=-np.inf)
        best -= self.structure_prior(expression)
        return Job(expression, tuple(map(tuple, warm_starts)), best)

    def run(self, job: Job, *, deadline: Deadline = NEVER) -> Evaluation:
        """Fit and score one kernel, or raise an ``OutOfTimeError``.

        A numerical error or one of a custom part becomes a record with its reason, because one
        kernel that fails must not end a long search.
        """
        began = time.perf_counter()
        try:
            with one_blas_thread():
                posterior = self._posterior(arranged(job.expression), deadline)
                modes, n_on_subsample = self._find_modes(posterior, job.warm_starts)
                maximum, score, status = self._score(posterior, modes, job.best)
                evidence = score.value
                if maximum is not None and not self.score_is_laplace:
                    evidence = log_evidence_or_nothing(posterior, maximum)
                    evidence += self._of_rounding(posterior, maximum.mode.theta)
                return record_fit(
                    job.expression,
                    posterior,
                    maximum or modes[0],
                    status=status,
                    score=score,
                    log_evidence=evidence,
                    n_other_evaluations=n_on_subsample,
                    seconds=time.perf_counter() - began,
                    log_structure_prior=self.structure_prior(job.expression),
                )
        except KERNEL_ERRORS as error:
            seconds = time.perf_counter() - began
            return self.without_fit(job.expression, reason_of(error), seconds=seconds)

    def estimate_changes(
        self, fit: Evaluation, changed: Sequence[Expression], deadline: Deadline = NEVER
    ) -> list[Estimate]:
        """Estimate the scores of kernels to which changes of a fitted one lead, best first.

        The kernels are arranged, and share the leaves of its expression :func:`with_numbers`. There
        are no estimates if the fit itself cannot be computed. Of many rows some are used.
        """
        deadline.check()
        text = f"no change of {fit.expression} is tried, as none could be estimated"
        with fallback(text), one_blas_thread():
            screening = Screening(
                fit,
                self._rows_of_screening,
                n_samples=self.n_samples,
                priors=self.priors,
                seed=self.seed,
                deadline=deadline,
            )
            return screening.estimates(changed, self._log_prior)
        return []

    @cached_property
    def _rows_of_screening(self) -> tuple[LeafValues, LeafValues]:
        """The rows on which new leaves are tried first, and all of a screening; the same if few."""
        more = LeafValues(self.data.drawn(MAX_ROWS, self.seed))
        if len(more.data.y) <= MIN_ROWS_OF_TWO_STAGES:
            return more, more
        return LeafValues(self.data.drawn(FIRST_ROWS, self.seed)), more

    def priced(self, evaluation: Evaluation) -> Evaluation:
        """Replace the log prior of the structure in the score by that of this evaluator."""
        log_prior = self.structure_prior(evaluation.expression)
        by = log_prior - evaluation.log_structure_prior
        return replace(
            evaluation,
            score=evaluation.score + by,
            upper_bound=evaluation.upper_bound + by,
            log_structure_prior=log_prior,
        )

    def run_roughly(self, expression: Expression, deadline: Deadline = NEVER) -> Evaluation:
        """Fit one kernel quickly, on a few rows; the record has no score."""
        status = "a rough fit on some of the rows"
        try:
            with one_blas_thread():
                posterior, mode = self._find_modes.rough_mode(arranged(expression), deadline)
                return record_fit(expression, posterior, mode, status=status)
        except KERNEL_ERRORS as error:
            return self.without_fit(expression, reason_of(error))

    def without_fit(
        self, expression: Expression, reason: str, *, seconds: float = 0.0
    ) -> Evaluation:
        """Record a kernel that was not fitted, at the prior mean."""
        of_one_row = ExactLikelihood(expression, self.data.take(np.arange(1)))
        posterior = LogPosterior(of_one_row, priors=self.priors)
        return record_fit(
            expression,
            posterior,
            Point(posterior.centre, -np.inf),
            status=reason,
            seconds=seconds,
            log_structure_prior=self.structure_prior(expression),
        )

    def sample(
        self, evaluation: Evaluation, *, max_draws: int, deadline: Deadline = NEVER
    ) -> ImportanceSample:
        """Draw from the posterior of a kernel's parameters.

        Draws are made around the best mode and, if the kernel has periods, around modes with other
        periods. After a batch with reliable weights no more are made. The points depend only on the
        posterior, and neither on the seed nor on orders.

        An ``EvaluationError`` is raised if the kernel has no Hessian, no draw has a finite density,
        or the kernel fails at one.
        """
        mode = Point(evaluation.theta, evaluation.log_posterior)
        with kernel_errors("no draws can be made"), one_blas_thread():
            posterior = self._posterior(evaluation.expression, deadline)
            maxima = [measure_maximum(posterior, mode, evaluation.hessian)]
            for one in new_maxima(posterior, maxima, modes_of_other_periods(posterior, mode)):
                maxima.append(one)
            rng = np.random.default_rng(0)  # always the same points
            sample = importance_sample(
                posterior,
                maxima,
                uniforms=lambda shape: sobol_points(*shape, rng),
                max_draws=max_draws,
                standard_error=np.inf,
            )
            more = self._of_rounding(posterior, evaluation.theta)
            return replace(sample, log_evidence=sample.log_evidence + more)

    def _of_rounding(self, posterior: LogPosterior, theta: FloatArray) -> float:
        """Return what turns the density of a kernel into a probability of counts, in nats.

        It is zero unless counts have distributions, with which other kernels must compare.
        """
        data, likelihood = posterior.data, posterior.likelihood
        compete = data.known_noise.resolution and any(one in FAMILIES for one in data.target.scales)
        if data.has_counts or not compete:
            return 0.0
        assert isinstance(likelihood, ExactLikelihood)  # others have no counts
        return likelihood.of_rounding(theta)

    @property
    def score_is_laplace(self) -> bool:
        """Whether scores hold Laplace's approximation, which draws can correct."""
        return isinstance(self.criterion, Laplace)

    def fingerprint(self) -> str:
        """Digest the data and the settings: all that a score depends on besides the job."""
        criterion = type(self.criterion)
        return digest(
            *self.data.definition,
            sorted(self.priors.items()),
            self.seed,
            (criterion.__module__, criterion.__qualname__),
            joblib.hash(sorted(self.criterion.get_params().items())),
        )

    def key(self, job: Job) -> str:
        """Digest all that the evaluation of a job depends on."""
        return digest(
            self.fingerprint(),
            float(job.best),
            *parts_of_kernel(job.expression),
            *((*start.definition, "and") for together in job.warm_starts for start in together),
            tuple(len(together) for together in job.warm_starts),
        )

    def _posterior(self, expression: Expression, deadline: Deadline = NEVER) -> LogPosterior:
        likelihood = ExactLikelihood(expression, self.data)
        return LogPosterior(likelihood, priors=self.priors, deadline=deadline)

    def _score(
        self, posterior: LogPosterior, modes: Sequence[Point], best: float
    ) -> tuple[Maximum | None, Score, str]:
        """Find the maximum near the best mode and score it; the status is the reason if not."""
        maximum = None
        try:
            if not np.isfinite(modes[0].log_posterior):
                raise NotAMaximumError(
                    "the covariance matrix has no Cholesky factor at any starting point"
                )
            maximum = self._far_below(best, posterior, modes[0])
            maximum = maximum or find_best_maximum(posterior, modes)
            rng = random_stream(self.seed, posterior.expression, "criterion")
            with custom_part(self.criterion, type(self.criterion).__name__):
                score = self.criterion(KernelFit(posterior, maximum, modes[1:], rng))
                more = self._of_rounding(posterior, maximum.mode.theta)
                score = replace(score, value=score.value + more)
                if not np.isfinite(score.value):
                    raise NotAMaximumError(f"the criterion is {score.value} at the best mode")
        except NotAMaximumError as error:
            return maximum, NO_SCORE, str(error)
        return maximum, score, "ok"

    def _far_below(self, best: float, posterior: LogPosterior, mode: Point) -> Maximum | None:
        """Return the maximum by the run's Hessian if far below: an exact one takes many calls."""
        is_known = mode.curvature is not None and np.isfinite(mode.curvature).all()
        if not (self.score_is_laplace and np.isfinite(best) and is_known):
            return None
        maximum = measure_maximum(posterior, mode, mode.curvature)
        evidence = log_evidence_or_nothing(posterior, maximum)
        is_far = np.isfinite(evidence) and evidence < best - FAR_BELOW_BEST
        return maximum if is_far and gain_left(maximum) <= MIN_GAIN_OF_FAILURE else None

    def __reduce__(self) -> tuple[object, ...]:
        name = f"{self.fingerprint()} {joblib.hash(self.structure_prior)}"
        others = ("priors", "seed", "criterion", "structure_prior")
        settings = self._settings | {one: getattr(self, one) for one in others}
        return _rebuilt_evaluator, (name, type(self), settings)


_arrived: dict[str, Evaluator] = {}  # of this process: a joblib worker keeps nothing between jobs


def _rebuilt_evaluator(
    name: str, make: Callable[..., Evaluator], settings: Mapping[str, Any]
) -> Evaluator:
    """Rebuild a pickled evaluator, or return the one that was rebuilt before, with its caches."""
    if (evaluator := _arrived.get(name)) is None:
        evaluator = make(**settings)
        for oldest in list(_arrived)[: 1 - _MAX_ARRIVED]:
            _arrived.pop(oldest, None)  # another thread may have dropped it
        _arrived[name] = evaluator
    return evaluator


def parts_of_kernel(expression: Expression) -> tuple[object, ...]:
    """Return what identifies a kernel, as parts of a digest."""
    defined = cache(definition)  # once, as it takes long
    parts = ((*defined(one.declared), repr(one.view)) for one in expression.subtrees())
    return str(expression), *parts


def digest(*parts: object) -> str:
    """Compute the SHA-256 digest of bytes, texts, numbers and tuples of them."""
    sha = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        sha.update(len(data).to_bytes(8))
        sha.update(data)
    return sha.hexdigest()


def evaluate_kernel(
    expression: str | Expression,
    X: FloatArray,
    y: FloatArray,
    *,
    criterion: str | Criterion = "laplace",
    priors: str | Priors = "default",
    base_kernels: Iterable[str | BaseKernel] = (),
    operators: Iterable[str | Operator] = (),
    random_state: int | np.random.RandomState | None = 0,
) -> Evaluation:
    """Fit the parameters of one kernel and score it.

    The data are not scaled. The default priors are meant for columns in the unit interval and a
    target of zero mean and unit variance: scale the data first, or pass other priors.

    Parameters
    ----------
    expression : str or Expression
        Kernel to fit, such as ``"LIN[0] * PER[0] + SE[0]"``, or ``"NOISE"`` for noise alone. A
        column is a zero-based index or, where ``X`` is a data frame, a name.
    X : array-like of shape (n_samples, n_features)
        Inputs, which are not scaled.
    y : array-like of shape (n_samples,)
        Targets, which are not scaled. The mean function of the model is zero.
    criterion : {"laplace", "importance", "bic", "loo"} or Criterion
        Definition of ``score``, which is in nats; larger is better: :class:`Laplace`,
        :class:`Importance`, :class:`BIC` or :class:`LeaveOneOut`. An object such as
        ``Importance(max_draws=1000)`` sets its parameters.
    priors : {"default", "paper"} or mapping of str to (shape, rate)
        Gamma priors by parameter name. A mapping replaces entries of the default.
    base_kernels, operators : iterable
        Custom base kernels and operators that the expression may use, as for
        :func:`parse_expression`.
    random_state : int, RandomState or None
        Source of the random starting points.

    Returns
    -------
    Evaluation
        The fit, its score and their cost. A kernel that cannot be fitted raises no error: its
        ``score`` is ``-inf`` and ``status`` gives the reason.

    Raises
    ------
    ExpressionSyntaxError
        If the text cannot be read.
    ValueError
        If the data, the criterion or the priors are not valid, or if ``X`` lacks a column of the
        expression.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> fit = evaluate_kernel("SE[0]", X, np.sin(6 * X[:, 0]), random_state=0)
    >>> fit.status, fit.n_params
    ('ok', 3)
    """
    base_kernels, operators = tuple(base_kernels), tuple(operators)
    if not isinstance(expression, (str, Expression)):
        raise TypeError(
            f"expression must be a str such as 'SE[0]' or an Expression, got "
            f"{type(expression).__name__}: the order is evaluate_kernel(expression, X, y)"
        )
    names = _get_feature_names(X)
    X, y = check_training_data(X, y)
    expression = check_expression(
        expression, names, n_features=X.shape[1], base_kernels=base_kernels, operators=operators
    )
    for leaf in expression.leaves:
        x, label = X[:, leaf.column], leaf.column if names is None else names[leaf.column]
        check_possible(leaf.scale, x, argument="expression", what=f"column {label!r}")
    target, offset = expression.target, target_offset(y)
    check_possible(target, y, argument="expression", what="the target", offset_of_target=offset)
    own = [one for one in (*base_kernels, *operators) if not isinstance(one, str)]
    known = parameters_of((*BASE_KERNELS.values(), *own, *expression.nodes))
    evaluator = Evaluator(
        TrainingData(X, y),
        priors=check_priors(priors, parameters=known.values()),
        seed=check_seed(random_state),
        criterion=criterion,
    )
    forget_parts()
    evaluation = evaluator(expression)
    warn_of_part(evaluation.status)
    return evaluation


def parameters_of(declared: Iterable[BaseKernel | Operator | Tree]) -> dict[str, KernelParameter]:
    """Return the parameters that kernels, operators or nodes declare, by name."""
    return {parameter.name: parameter for one in declared for parameter in one.parameters}


def check_expression(
    expression: str | Expression,
    feature_names: Sequence[str] | None,
    *,
    n_features: int,
    argument: str = "expression",
    base_kernels: Iterable[str | BaseKernel],
    operators: Iterable[str | Operator],
) -> Expression:
    """Parse an expression if it is a text, and check that the data have its columns."""
    if not isinstance(expression, (str, Expression)):
        raise TypeError(
            f"{argument} must be a str such as 'SE[0] + LIN[0]' or an Expression, "
            f"got {expression!r}"
        )
    if isinstance(expression, str):
        expression = parse_expression(
            expression, feature_names, base_kernels=base_kernels, operators=operators
        )
    for node in expression.subtrees():
        if node.column is not None and node.column >= n_features:
            raise ValueError(
                f"{argument} must use columns below n_features={n_features}, got {node}"
            )
    return expression
