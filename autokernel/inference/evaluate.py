"""Score one kernel; here, and only here, a failure becomes a score of ``-inf`` with a reason."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import _get_feature_names
from threadpoolctl import ThreadpoolController  # a requirement of scikit-learn

from autokernel.exceptions import NotAMaximumError
from autokernel.expression import Expression, arrange, leaf_slots, parse_expression, theta_order
from autokernel.inference.criteria import CRITERIA, Criterion, Score, check_criterion
from autokernel.inference.inheritance import Known
from autokernel.inference.laplace import summit_log_evidence
from autokernel.inference.map import Mode
from autokernel.inference.modes import ModeSearch, random_stream
from autokernel.inference.posterior import LogPosterior
from autokernel.inference.summit import Summit, find_summit
from autokernel.kernels import BASE_KERNELS
from autokernel.kernels.priors import Priors, check_priors
from autokernel.likelihood import TrainingData
from autokernel.typing import FloatArray
from autokernel.validation import check_seed, check_training_data

_NO_SCORE = Score(-np.inf)


class Parameter(NamedTuple):
    """One fitted parameter in its own unit."""

    leaf: int | None  # from left to right, None for the noise variance
    kernel: str | None  # such as "SE[0]"
    name: str
    value: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # eq=False: theta is an array
class Evaluation:
    """One scored kernel; a failed fit has ``score == -inf`` and says why in ``status``."""

    expression: Expression
    parameters: tuple[Parameter, ...]  # leaves from left to right, noise variance last
    theta: FloatArray  # (n_params,), logs of the parameters
    log_likelihood: float  # nats
    log_prior: float  # nats, density of theta
    log_posterior: float  # nats
    log_evidence: float  # nats, by Laplace's method; -inf where that fails
    score: float  # larger is better; nats
    hessian: FloatArray  # (n_params, n_params), of the negative log posterior in theta
    n_params: int
    n_evaluations: int  # likelihood calls
    seconds: float  # wall clock, fit and criterion together
    status: str  # "ok" or the reason of the failure
    standard_error: float = np.nan  # nats, of score; nan where no random numbers are drawn for it
    pareto_k: float = np.nan  # above 0.7 the standard error is not to be trusted

    def __repr__(self) -> str:
        error = "" if np.isnan(self.standard_error) else f" ± {self.standard_error:.2f}"
        lines = [f"{self.expression}: log evidence {self.score:.2f}{error} nats ({self.status})"]
        lines += [
            f"  {'' if p.kernel is None else p.kernel + ' '}{p.name} = {p.value:.4g}"
            for p in self.parameters
        ]
        return "\n".join(lines)


class Evaluator:
    """Scores kernels on one data set.

    A score depends on the canonical text of the kernel, the seed and the known fits, neither on
    the order of evaluation nor on the process.

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
    criterion : str
        One of :data:`CRITERIA`.
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        *,
        priors: Priors,
        seed: int,
        criterion: str = "laplace",
    ) -> None:
        check_criterion(criterion)
        self._criterion = CRITERIA[criterion]
        self._data = TrainingData(X, y)
        self._priors, self._seed = priors, seed
        self._find_modes = ModeSearch(self._data, priors=priors, seed=seed)

    def __call__(self, expression: Expression, known: Sequence[Evaluation] = ()) -> Evaluation:
        """Fit and score one kernel, beginning at the known fits that are similar to it."""
        began = time.perf_counter()
        arranged, order = arrange(expression)
        # Small matrices gain nothing from threads, and sums over threads depend on their number.
        with _blas().limit(limits=1, user_api="blas"):
            evaluation = self._evaluate(arranged, known)
        evaluation = _as_written(evaluation, expression, order)
        return replace(evaluation, seconds=time.perf_counter() - began)

    def _evaluate(self, expression: Expression, known: Sequence[Evaluation]) -> Evaluation:
        """Fit and score; every failure that can be named ends here."""
        posterior = LogPosterior(expression, self._data, priors=self._priors)
        fits = [Known(fit.expression, fit.theta, fit.score) for fit in known]
        found = self._find_modes(expression, posterior, fits)
        before = posterior.n_evaluations
        rng = random_stream(self._seed, expression, "criterion")
        try:
            evaluation = _at_a_maximum(posterior, found.modes, criterion=self._criterion, rng=rng)
        except NotAMaximumError as error:
            evaluation = _record(posterior, found.modes[0], status=str(error))
        n_evaluations = found.n_evaluations + posterior.n_evaluations - before
        return replace(evaluation, n_evaluations=n_evaluations)


def evaluate_kernel(
    expression: str | Expression,
    X: FloatArray,
    y: FloatArray,
    *,
    criterion: str = "laplace",
    priors: str | Priors = "default",
    random_state: int | np.random.RandomState | None = 0,
) -> Evaluation:
    """Fit the parameters of one kernel and score it.

    Nothing is scaled here, and the default priors are meant for columns in the unit interval and a
    target of zero mean and unit variance: scale the data first, or give other priors.

    Parameters
    ----------
    expression : str or Expression
        Such as ``"LIN[0] * PER[0] + SE[0]"``; a column is a zero-based index or, where ``X`` is a
        frame, a name.
    X : array-like of shape (n_samples, n_features)
        Inputs, used as they come.
    y : array-like of shape (n_samples,)
        Targets, used as they come. The model's mean is zero.
    criterion : {"laplace", "importance"}
        How ``score``, the log evidence in nats, is found: by Laplace's method at the best mode, or
        by importance sampling around the best modes found. The latter takes some 200 to 2000
        likelihood calls more and gives ``standard_error`` and ``pareto_k``.
    priors : {"default", "paper"} or mapping of str to (shape, rate)
        Gamma priors of the parameters, by name; a mapping replaces entries of the default.
    random_state : int, RandomState or None
        Source of the starting points.

    Returns
    -------
    Evaluation
        The fit, its evidence and what they cost. Never raises for a kernel that cannot be fitted:
        then ``score`` is ``-inf`` and ``status`` says why.

    Raises
    ------
    ExpressionSyntaxError
        If the text cannot be read.
    ValueError
        If the data, the criterion or the priors are not valid, or a column is not in ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> fit = evaluate_kernel("SE[0]", X, np.sin(6 * X[:, 0]), random_state=0)
    >>> fit.status, fit.n_params
    ('ok', 3)
    """
    if not isinstance(expression, Expression):
        expression = parse_expression(expression, _get_feature_names(X))
    X, y = check_training_data(X, y)
    beyond = [leaf for leaf in expression.leaves if not 0 <= leaf.column < X.shape[1]]
    if beyond:
        raise ValueError(
            f"expression must use columns below n_features={X.shape[1]}, got {beyond[0]}"
        )
    evaluator = Evaluator(
        X, y, priors=check_priors(priors), seed=check_seed(random_state), criterion=criterion
    )
    return evaluator(expression)


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
    summit = find_summit(posterior, mode)
    score, status = _NO_SCORE, "ok"
    try:
        score = criterion(posterior, summit, others=others, rng=rng)
    except NotAMaximumError as error:
        status = str(error)
    return _record(
        posterior,
        summit.mode,
        hessian=summit.hessian,
        log_evidence=_laplace_or_nothing(summit),
        score=score,
        status=status,
    )


def _laplace_or_nothing(summit: Summit) -> float:
    """Laplace approximation at a summit, ``-inf`` at a saddle that could not be left."""
    try:
        return summit_log_evidence(summit)
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


def _as_written(evaluation: Evaluation, expression: Expression, order: Sequence[int]) -> Evaluation:
    """Put the fit of an arranged kernel into the order in which it was written, with names."""
    back = np.argsort(theta_order(expression, order))
    theta = evaluation.theta[back]
    return replace(
        evaluation,
        expression=expression,
        parameters=name_parameters(expression, theta),
        theta=theta,
        hessian=evaluation.hessian[np.ix_(back, back)],
    )


def name_parameters(expression: Expression, theta: FloatArray) -> tuple[Parameter, ...]:
    """Name the entries of theta, from the leaves' parameters to the noise variance."""
    values = np.exp(theta).tolist()
    return (
        *(
            Parameter(number, str(leaf), name, value)
            for number, (leaf, place) in enumerate(leaf_slots(expression))
            for name, value in zip(
                BASE_KERNELS[leaf.kernel].parameter_names, values[place], strict=True
            )
        ),
        Parameter(None, None, "noise_variance", values[-1]),
    )


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    """Find the BLAS libraries in use, once: that takes longer than a small likelihood."""
    return ThreadpoolController()
