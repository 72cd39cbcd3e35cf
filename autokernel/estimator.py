"""The estimator: validate, search, refit, predict, expose."""

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from joblib import Memory
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from autokernel.arguments import (
    check_acquisition,
    check_memory,
    check_names,
    check_nested,
    check_strategy,
    refuse_many_targets,
)
from autokernel.criteria import CRITERIA, Criterion, check_criterion
from autokernel.data import check_range, check_target, refuse_times
from autokernel.deadline import Deadline
from autokernel.evaluation import Evaluation, check_expression
from autokernel.exceptions import EvaluationError
from autokernel.exposure import attributes, progress, so_far
from autokernel.expression import OPERATORS, Expression
from autokernel.fit.callbacks import Monitor
from autokernel.fit.problem import Problem
from autokernel.fit.run import Past, Run
from autokernel.kernels import BASE_KERNELS
from autokernel.kernels.priors import Priors, check_priors
from autokernel.prediction import PredictionMixin
from autokernel.report import reporter
from autokernel.search import STRATEGIES, History, StopReason, Strategy
from autokernel.surrogate import ACQUISITIONS, Acquisition
from autokernel.validation import check_seed


class AutoKernelGPRegressor(CallbackSupportMixin, PredictionMixin, RegressorMixin, BaseEstimator):
    """Gaussian-process regression that discovers its own kernel.

    ``fit`` searches sums and products of simple kernels, each on one column, for the structure with
    the highest model evidence, or the best by another criterion, and predicts with it.

    Parameters
    ----------
    base_kernels : "auto" or sequence of str, default="auto"
        Out of ``"SE"`` (smooth), ``"LIN"`` (linear), ``"PER"`` (periodic) and ``"RQ"`` (smooth on
        several scales). ``"auto"`` is all four for one or two columns, SE and RQ for more.
    operators : sequence of str, default=("+", "*")
        How kernels may be joined.
    strategy : {"sot", "boms", "greedy", "tree_gep", "random", "arc"} or Strategy, default="sot"
        How to search: by Bayesian optimisation with symbolical optimal transport, with Hellinger
        distances or with a kernel for hierarchical spaces (``"arc"``); greedily, genetically, or at
        random; or an object such as ``SOT(population_size=200)``, as grids over parameters need.
    criterion : {"laplace", "importance", "bic", "aic", "loo", "cv"} or Criterion, default="laplace"
        What to maximise: the log evidence by Laplace's method, or by importance sampling, which
        takes some 200 to 2000 likelihood calls more; the log likelihood less a penalty on
        parameters; the log predictive density of rows left out one by one, or in folds; or an
        object such as ``CrossValidation(cv=10)``.
    acquisition : {"ei", "ei_per_second", "ucb", "thompson"} or Acquisition, default="ei"
        What Bayesian optimisation maximises to choose a kernel: expected improvement, that per
        second, an upper confidence bound, or a draw from the posterior; or an object such as
        ``UpperConfidenceBound(kappa=3)``. Other strategies do without.
    n_iter : int, default=50
        Kernels to evaluate after the initial design.
    max_time : float or None, default=None
        Seconds of wall clock for the whole of ``fit``. An evaluation that is under way when they
        are over is cut short and left out. Where they suffice for none, the model is a rough fit of
        a simple kernel, with a warning.
    max_leaves : int or "auto", default="auto"
        Largest number of base kernels in an expression; ``"auto"`` is 10, or twice the number
        of columns plus 4 where that is more.
    batch_size : int, default=1
        Kernels that are proposed and evaluated together: no fewer than ``n_jobs`` keeps all workers
        busy. It changes what is proposed, ``n_jobs`` never does.
    priors : {"default", "paper"} or mapping, default="default"
        Gamma priors of the hyperparameters, for inputs scaled to the unit interval and a
        standardised target. A mapping such as ``{"lengthscale": (2, 2)}`` gives shape and rate and
        replaces entries of the default.
    memory : str, path, joblib.Memory or None, default=None
        A folder that keeps finished evaluations: the same fit run again, after a crash or with more
        iterations, takes them from there. Fits may share it. A kernel that failed outright is tried
        again. After changes to the code of a criterion of your own, take another folder.
    n_jobs : int or None, default=None
        Workers that evaluate the kernels of the initial design, and of a batch, in parallel, as for
        :class:`joblib.Parallel`; ``joblib.parallel_config`` sets the kind of worker, or Dask.
        With ``batch_size=1`` only the initial design gains from it.
    warm_start : bool, default=False
        Whether ``fit`` on the same data continues the last search, also one that was interrupted,
        instead of beginning a new one. It begins anew where the data, ``priors``, ``criterion`` or
        an int as ``random_state`` have changed, as old scores say nothing then.
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
        The value of ``criterion`` in nats, for the whole data set: by default its log evidence, the
        density of the standardised target. ``-inf`` where ``max_time`` ended before it was known.
    noise_variance_ : float
        In units of y squared.
    search_history_ : dict of ndarray
        One entry per evaluated kernel, in order; goes straight into ``pandas.DataFrame``. Keys are
        ``kernel``, ``score``, ``score_per_sample``, ``best_score``, ``n_leaves``, ``n_params``,
        ``phase``, ``status``, ``fit_seconds``, ``proposal_seconds``, ``elapsed``, and what is known
        of the error of the score, ``standard_error`` and ``pareto_k``; both are nan but for
        ``criterion="importance"``.
    n_iter_ : int
        Kernels evaluated after the initial design.
    stop_reason_ : str
        ``"n_iter"``, ``"max_time"``, ``"interrupted"`` by Ctrl-C, ``"callback"`` where one asked to
        stop, or ``"exhausted"`` where no kernel was left to try, or none better for ``"greedy"``.
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
    A kernel costs O(n_samples^3) to evaluate. Callbacks of :mod:`sklearn.callback`, set by
    ``set_callbacks``, get one task for each kernel. The default search is that of Bitzer, Meister
    and Zimmer (2022), *Structural kernel search via Bayesian optimization and symbolical optimal
    transport*.

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
        "criterion": [StrOptions(set(CRITERIA)), Criterion],
        "acquisition": [StrOptions(set(ACQUISITIONS)), Acquisition],
        "n_iter": [Interval(Integral, 0, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "max_leaves": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "priors": [str, Mapping],
        "memory": [str, os.PathLike, Memory, None],
        "n_jobs": [
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        base_kernels: str | Collection[str] = "auto",
        operators: Collection[str] = ("+", "*"),
        strategy: str | Strategy = "sot",
        criterion: str | Criterion = "laplace",
        acquisition: str | Acquisition = "ei",
        n_iter: int = 50,
        max_time: float | None = None,
        max_leaves: int | str = "auto",
        batch_size: int = 1,
        priors: str | Priors = "default",
        memory: str | os.PathLike[str] | Memory | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.base_kernels = base_kernels
        self.operators = operators
        self.strategy = strategy
        self.criterion = criterion
        self.acquisition = acquisition
        self.n_iter = n_iter
        self.max_time = max_time
        self.max_leaves = max_leaves
        self.batch_size = batch_size
        self.priors = priors
        self.memory = memory
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def set_params(self, **params: Any) -> Self:
        """Set parameters, and return the estimator.

        Parameters
        ----------
        **params
            By name; those of a ``strategy``, ``criterion`` or ``acquisition`` that is an object as
            ``strategy__population_size``.

        Raises
        ------
        ValueError
            If a name is unknown, or a parameter of what is given by its name is set.
        """
        check_nested(params, self.get_params(deep=False))
        return super().set_params(**params)

    # scikit-learn has no type hints
    @with_callbacks  # type: ignore[untyped-decorator]
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
        KeyboardInterrupt
            After Ctrl-C; the estimator is fitted with the best kernel so far.
        """
        deadline = Deadline(np.inf if self.max_time is None else self.max_time)
        memory = check_memory(self.memory)
        fitting = self._begin(X, y, deadline)
        context = self._init_callback_context(max_subtasks=fitting.n_trials)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        monitor = Monitor(
            self,
            context,
            X=X,
            y=y,
            attributes=lambda: so_far(fitting),
            report=reporter(self.verbose, fitting.problem.feature_names),
        )
        try:
            reason = fitting.run(monitor, n_jobs=self.n_jobs, memory=memory)
            self._end(fitting, reason)
        except KeyboardInterrupt:
            with suppress(EvaluationError):  # nothing can be fitted: what was asked comes first
                self._end(fitting, StopReason.INTERRUPTED)
            raise
        except Exception:  # of a callback, say: a warm start goes on from here
            self._past = fitting.past()
            raise
        context.call_on_fit_task_end(estimator=self, X=X, y=y, reconstruction_attributes={})
        return self

    def refit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, kernel: str | Expression | None = None
    ) -> Self:
        """Fit the parameters of a structure that is known, without a search.

        ``search_history_`` stays that of the last search. ``max_time``, ``memory``, ``n_jobs`` and
        callbacks are those of searches, and play no part.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, with the columns of the last fit if there was one.
        y : array-like of shape (n_samples,)
            Target.
        kernel : str, Expression or None, default=None
            The structure, such as ``"LIN[0] + SE[0]"``; None for that of ``best_expression_``.

        Returns
        -------
        self : AutoKernelGPRegressor
            The fitted estimator.

        Raises
        ------
        NotFittedError
            If ``kernel`` is None before any fit.
        ValueError
            If the data, a parameter or the kernel are not valid.
        EvaluationError
            If the kernel cannot be fitted; the estimator stays as it was.
        """
        self._validate_params()
        if kernel is None:
            check_is_fitted(self, "best_kernel_")
        problem = self._pose(X, y, reset=not hasattr(self, "_fitted"))
        if kernel is None:
            before = self._fitted.evaluation
            # from nothing, and from the parameters that suited the data before
            starts: list[list[Evaluation]] = [[], [before]]
            expression = before.expression
        else:
            starts = [[]]
            n_features = problem.X.shape[1]
            names = problem.feature_names
            expression = check_expression(kernel, names, n_features=n_features, argument="kernel")
        fits = [problem.evaluator(expression, known) for known in starts]
        best = max(fits, key=lambda fit: fit.log_posterior)
        self.__dict__.update(attributes(problem.fitted(best), problem))
        return self

    def _begin(self, X: npt.ArrayLike, y: npt.ArrayLike, deadline: Deadline) -> Run:
        """Check all arguments and set up a search, or the rest of one."""
        strategy = check_strategy(self.strategy)
        acquisition = check_acquisition(self.acquisition)
        is_auto = isinstance(self.base_kernels, str) and self.base_kernels == "auto"
        base_kernels = (
            None if is_auto else check_names("base_kernels", self.base_kernels, known=BASE_KERNELS)
        )
        operators = check_names("operators", self.operators, known=OPERATORS)
        problem = self._pose(X, y, reset=True)
        max_leaves = None if isinstance(self.max_leaves, str) else int(self.max_leaves)
        return Run(
            problem,
            strategy,
            problem.task(base_kernels, operators, max_leaves, acquisition=acquisition),
            self._past_of(problem),
            n_iter=self.n_iter,
            batch_size=self.batch_size,
            deadline=deadline,
        )

    def _pose(self, X: npt.ArrayLike, y: npt.ArrayLike, *, reset: bool) -> Problem:
        """Check data, priors and criterion; the columns may be others with ``reset``."""
        priors = check_priors(self.priors)
        criterion = check_criterion(self.criterion)
        refuse_times(X, y)
        refuse_many_targets(y)
        inputs, target = validate_data(
            self,
            X,
            y,
            reset=reset,
            dtype=np.float64,
            y_numeric=True,
            ensure_min_samples=2,
            copy=True,
        )
        target = check_target(target)
        check_range(inputs, target)
        goes_on = self.warm_start and hasattr(self, "_past")
        draws_seed = not isinstance(self.random_state, Integral)
        seed = self._past.seed if goes_on and draws_seed else check_seed(self.random_state)
        return Problem.of(
            inputs,
            target,
            priors=priors,
            criterion=criterion,
            seed=seed,
            feature_names=self._names(),
        )

    def _past_of(self, problem: Problem) -> History:
        """Return what an earlier fit to the same data has found, if that is to go on."""
        history = History(len(problem.y))
        past: Past | None = getattr(self, "_past", None) if self.warm_start else None
        if past is not None and past.fingerprint == problem.evaluator.fingerprint():
            history.trials.extend(past.history.trials)
        return history

    def _end(self, fitting: Run, reason: StopReason) -> None:
        """Expose the best kernel and the history."""
        fitted = fitting.result(reason)
        self.__dict__.update(attributes(fitted, fitting.problem))
        self.__dict__.update(progress(fitting))
        self.stop_reason_ = reason
