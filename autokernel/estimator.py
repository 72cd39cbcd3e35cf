"""The estimator: validate, search, refit, predict, expose."""

from collections.abc import Collection, Iterable, Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from autokernel.exceptions import EvaluationError
from autokernel.export import Scaling, to_sklearn
from autokernel.expression import OPERATORS, Grammar
from autokernel.inference import CRITERIA, Evaluation, Evaluator
from autokernel.kernels import BASE_KERNELS
from autokernel.kernels.priors import Priors, check_priors
from autokernel.likelihood import smallest_jitter
from autokernel.search import STRATEGIES, SearchResult, Space, Strategy, search
from autokernel.search.report import reporter
from autokernel.typing import BoolArray, FloatArray
from autokernel.validation import check_range, check_seed

_FEW_COLUMNS = 2  # up to here "auto" takes all base kernels (the first of SOT's two spaces)
_MANY_COLUMNS_BASES = ("SE", "RQ")
_DEFAULT_MAX_LEAVES = 10


class AutoKernelGPRegressor(RegressorMixin, BaseEstimator):
    """Gaussian-process regression that discovers its own kernel.

    ``fit`` searches sums and products of simple kernels, each on one column, for the structure with
    the highest model evidence, and predicts with it.

    Parameters
    ----------
    base_kernels : "auto" or sequence of str, default="auto"
        Out of ``"SE"`` (smooth), ``"LIN"`` (linear), ``"PER"`` (periodic) and ``"RQ"`` (smooth on
        several scales). ``"auto"`` is all four for one or two columns, SE and RQ for more.
    operators : sequence of str, default=("+", "*")
        How kernels may be joined.
    strategy : "sot" or Strategy, default="sot"
        How to search: Bayesian optimisation with symbolical optimal transport, or an object such as
        ``SOT(population_size=200)``.
    criterion : {"laplace", "importance"}, default="laplace"
        What to maximise: the log evidence by Laplace's method at the best mode, or by importance
        sampling around the best modes found, which takes some 200 to 2000 likelihood calls more.
    n_iter : int, default=50
        Kernels to evaluate after the initial design.
    max_leaves : int or "auto", default="auto"
        Largest number of base kernels in an expression; ``"auto"`` is 10, or the number of columns
        plus 4 where that is more.
    priors : {"default", "paper"} or mapping, default="default"
        Gamma priors of the hyperparameters, for inputs scaled to the unit interval and a
        standardised target. A mapping such as ``{"lengthscale": (2, 2)}`` gives shape and rate and
        replaces entries of the default.
    random_state : int, RandomState instance or None, default=None
        An int makes the search reproducible.
    verbose : int, default=0
        1 prints a line for each improvement, 2 a line for each kernel.

    Attributes
    ----------
    best_kernel_ : sklearn.gaussian_process.kernels.Kernel
        The kernel found, with its noise, in the units of ``X`` and for a standardised target:
        ``GaussianProcessRegressor(kernel=best_kernel_, optimizer=None, normalize_y=True, alpha=0)``
        fitted to the same data predicts the same.
    best_expression_ : str
        Its structure, such as ``"LIN[time] * PER[time] + SE[time]"``.
    best_score_ : float
        Its log evidence in nats, for the whole data set: the density of the standardised target.
    noise_variance_ : float
        In units of y squared.
    search_history_ : dict of ndarray
        One entry per evaluated kernel, in order; goes straight into ``pandas.DataFrame``. Keys are
        ``kernel``, ``score``, ``score_per_sample``, ``best_score``, ``n_leaves``, ``n_params``,
        ``phase``, ``status``, ``fit_seconds``, ``proposal_seconds``, ``elapsed``, and what is known
        of the error of the score, ``standard_error`` and ``pareto_k``; both are nan for
        ``criterion="laplace"``.
    n_iter_ : int
        Kernels evaluated after the initial design.
    stop_reason_ : str
        ``"n_iter"``, or ``"exhausted"`` where no kernel was left to try.
    X_train_ : ndarray of shape (n_samples, n_features)
        Training inputs.
    y_train_ : ndarray of shape (n_samples,)
        Training targets.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where ``X`` had any.

    Notes
    -----
    A kernel costs O(n_samples^3) to evaluate. The search is that of Bitzer, Meister and Zimmer
    (2022), *Structural kernel search via Bayesian optimization and symbolical optimal transport*.

    Examples
    --------
    >>> import numpy as np
    >>> from autokernel import AutoKernelGPRegressor
    >>> X = np.linspace(0, 10, 40)[:, None]
    >>> model = AutoKernelGPRegressor(n_iter=0, random_state=0).fit(X, 3 * X[:, 0] + 1)
    >>> model.predict([[20.0]]).round(1)
    array([61.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "base_kernels": [str, set, "array-like"],
        "operators": [str, set, "array-like"],
        "strategy": [StrOptions(set(STRATEGIES)), Strategy],
        "criterion": [StrOptions(set(CRITERIA))],
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "max_leaves": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "priors": [str, Mapping],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        base_kernels: str | Collection[str] = "auto",
        operators: Collection[str] = ("+", "*"),
        strategy: str | Strategy = "sot",
        criterion: str = "laplace",
        n_iter: int = 50,
        max_leaves: int | str = "auto",
        priors: str | Priors = "default",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.base_kernels = base_kernels
        self.operators = operators
        self.strategy = strategy
        self.criterion = criterion
        self.n_iter = n_iter
        self.max_leaves = max_leaves
        self.priors = priors
        self.random_state = random_state
        self.verbose = verbose

    # scikit-learn has no type hints
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Search a kernel and fit it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs in any units: each column is scaled to the unit interval inside. A constant
            column is left out of the search.
        y : array-like of shape (n_samples,)
            Target in any unit: it is standardised inside.

        Returns
        -------
        self : AutoKernelGPRegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            If the data or a parameter are not valid.
        EvaluationError
            If no kernel at all could be fitted.
        """
        strategy = self._check_strategy()
        priors = check_priors(self.priors)
        base_kernels = self._check_base_kernels()
        operators = _select("operators", self.operators, known=OPERATORS)
        inputs, target = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2, copy=True
        )
        target = target.astype(np.float64)
        check_range(inputs, target)
        varies = _varies(inputs)
        scaling = _unit_scaling(inputs, varies)
        space = self._space(varies, base_kernels, operators)
        seed = check_seed(self.random_state)
        evaluator = Evaluator(
            (inputs - scaling.shift) / scaling.scale,
            _standardise(target),
            priors=priors,
            seed=seed,
            criterion=self.criterion,
        )
        result = search(
            evaluator,
            strategy,
            space,
            n_samples=len(target),
            n_iter=self.n_iter,
            seed=seed,
            observe=reporter(self.verbose, self._names()),
        )
        self._keep_best(inputs, target, result.history.best, scaling)
        self._expose(result)
        return self

    def predict(
        self,
        X: npt.ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
    ) -> Any:
        """Predict the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        return_std : bool, default=False
            Whether to return the standard deviation of a new observation too, noise included.
        return_cov : bool, default=False
            Whether to return the covariance matrix of new observations too.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predictive mean.
        std : ndarray of shape (n_samples,)
            Only with ``return_std``.
        cov : ndarray of shape (n_samples, n_samples)
            Only with ``return_cov``.
        """
        check_is_fitted(self, "best_kernel_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._regressor.predict(X, return_std=return_std, return_cov=return_cov)

    def sample_y(
        self,
        X: npt.ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = 0,
    ) -> FloatArray:
        """Draw new observations from the predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            Number of draws.
        random_state : int, RandomState instance or None, default=0
            Source of the draws.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples)
            Draws, noise included.
        """
        check_is_fitted(self, "best_kernel_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        mean, covariance = self._regressor.predict(X, return_cov=True)
        rng = check_random_state(random_state)
        # rounding may leave eigenvalues just below zero, of which the user need not hear
        draws = rng.multivariate_normal(mean, covariance, n_samples, check_valid="ignore")
        return draws.T

    def _check_strategy(self) -> Strategy:
        """Turn the ``strategy`` argument into a valid strategy."""
        strategy = STRATEGIES[self.strategy]() if isinstance(self.strategy, str) else self.strategy
        strategy.check_parameters()
        return strategy

    def _check_base_kernels(self) -> tuple[str, ...] | None:
        """Turn the ``base_kernels`` argument into names, None for ``"auto"``."""
        if isinstance(self.base_kernels, str) and self.base_kernels == "auto":
            return None
        return _select("base_kernels", self.base_kernels, known=BASE_KERNELS)

    def _space(
        self, varies: BoolArray, base_kernels: tuple[str, ...] | None, operators: tuple[str, ...]
    ) -> Space:
        """Build the space that the parameters and the columns that vary span."""
        columns = tuple(np.flatnonzero(varies).tolist()) or (0,)
        allowed = tuple(BASE_KERNELS) if base_kernels is None else base_kernels
        if base_kernels is None:
            base_kernels = allowed if len(columns) <= _FEW_COLUMNS else _MANY_COLUMNS_BASES
        max_leaves = (
            max(_DEFAULT_MAX_LEAVES, len(columns) + 4)
            if isinstance(self.max_leaves, str)
            else int(self.max_leaves)
        )
        grammar = Grammar(base_kernels, operators, columns, max_leaves)
        return Space(grammar, n_features=len(varies), base_kernels=allowed)

    def _names(self) -> list[str] | None:
        """Names of the columns, where there are any."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _keep_best(self, X: FloatArray, y: FloatArray, best: Evaluation, scaling: Scaling) -> None:
        """Export the best kernel and condition it on the data, in the units of the user."""
        if not np.isfinite(best.score):
            raise EvaluationError(
                f"none of the kernels could be fitted; that of {best.expression} failed because: "
                f"{best.status}"
            )
        bare = to_sklearn(best.expression, best.theta, scaling=scaling)
        jitter = smallest_jitter(bare(X))
        self.best_kernel_ = to_sklearn(best.expression, best.theta, scaling=scaling, jitter=jitter)
        self._regressor = GaussianProcessRegressor(
            kernel=self.best_kernel_, optimizer=None, normalize_y=True, alpha=0.0
        ).fit(X, y)
        self._best, self._scaling = best, scaling
        self.best_expression_ = best.expression.to_text(self._names())
        self.best_score_ = best.score
        self.noise_variance_ = (np.exp(best.theta[-1]) + jitter) * _target_scale(y) ** 2
        self.X_train_, self.y_train_ = X, y

    def _expose(self, result: SearchResult) -> None:
        """Keep what the search has seen."""
        self.search_history_ = result.history.to_columns(self._names())
        self.n_iter_ = result.n_iter
        self.stop_reason_ = result.stop_reason


def _varies(X: FloatArray) -> BoolArray:
    """Tell which columns vary by more than rounding."""
    rounding = 10 * np.finfo(float).eps * np.abs(X).max(axis=0)
    return np.ptp(X, axis=0) > rounding


def _unit_scaling(X: FloatArray, varies: BoolArray) -> Scaling:
    """Scaling of each column to the unit interval; one that does not vary is only shifted."""
    return Scaling(shift=X.min(axis=0), scale=np.where(varies, np.ptp(X, axis=0), 1.0))


def _target_scale(y: FloatArray) -> float:
    """Return the standard deviation of the target, 1 where it is constant."""
    return float(np.std(y)) or 1.0


def _standardise(y: FloatArray) -> FloatArray:
    """Shift and scale the target as ``GaussianProcessRegressor(normalize_y=True)`` does."""
    return (y - np.mean(y)) / _target_scale(y)


def _select(
    argument: str, names: str | Collection[str], *, known: Iterable[str]
) -> tuple[str, ...]:
    """Check that names are a non-empty selection of the known ones; return it in their order."""
    known = tuple(known)
    chosen = () if isinstance(names, str) else tuple(names)
    if not chosen or any(not isinstance(name, str) or name not in known for name in chosen):
        raise ValueError(f"{argument} must be a selection of {list(known)}, got {names!r}")
    return tuple(name for name in known if name in chosen)
