"""The estimator: parameters, fit, refit, predictions, descriptions."""

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from joblib import Memory
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import Tags, check_array, check_consistent_length, check_scalar, column_or_1d
from sklearn.utils.validation import check_is_fitted

from autokernel.data import Columns, check_fit_data, check_inputs, check_new_rows
from autokernel.data.checks import check_future, check_index
from autokernel.data.tables import in_memory, series_with_dates
from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Criterion
from autokernel.exceptions import EvaluationError, forget_parts, warn_user
from autokernel.explain import ExplainMixin, Table
from autokernel.explain.forecasts import forecast_table
from autokernel.explain.tables import (
    column_table,
    history_table,
    inclusion_table,
    left_out_table,
    outcome_table,
    posterior_table,
    scale_table,
)
from autokernel.expression import Expression
from autokernel.fit import HEADER, Arguments, Monitor, Run, finished, model_of, refitted, updated
from autokernel.fit.arguments import CONSTRAINTS, check_nested
from autokernel.fit.rows import SHARE_OF_TIME
from autokernel.kernels import BaseKernel, Operator, Priors
from autokernel.model import FittedModel, PosteriorAveraging
from autokernel.search import EARLY, StopReason, Strategy, columns_of
from autokernel.typing import FloatArray
from autokernel.validation import check_probabilities, ends_of_interval

Selection = str | Collection[str | BaseKernel]
"""Base kernels: ``"auto"``, or names and objects."""


class AutoKernelGPRegressor(ExplainMixin, CallbackSupportMixin, RegressorMixin, BaseEstimator):
    """Gaussian-process regression that discovers its own kernel.

    ``fit`` searches sums and products of simple kernels, each on one column, for the structure with
    the highest posterior probability, or with the best score by another criterion. Predictions
    average over the best kernel and those that are nearly as probable.

    Parameters
    ----------
    base_kernels : "auto", sequence of str or BaseKernel, or mapping, default="auto"
        Base kernels of the search: any of ``"SE"``, ``"LIN"``, ``"PER"``, ``"RQ"``, ``"MAT12"``,
        ``"MAT32"``, ``"MAT52"``, ``"RW"``, ``"IRW"``, ``"IOU"``, ``"SAT"``, and custom
        :class:`BaseKernel` objects. ``"auto"`` is SE, LIN and RQ, PER where a column and, of more
        than two, the target show a period, and RW, IOU and MAT12 along dates. ``{"month": ("PER",
        "SE"), "*": "auto"}`` chooses by column: by name or zero-based index, and ``"*"`` for all
        others. A column with ``()`` is not used. Categories without an entry have ``"CAT"``.
    categorical_features : "auto", array-like of str, int or bool, or None, default="auto"
        Columns of categories, by names, zero-based indices or a mask. ``"auto"`` is those of a
        category type, of truth values in a data frame, and of texts that are neither dates nor
        decimal numbers: whole numbers that are written as text are levels.
    column_scales : "auto", {"identity", "log", "sqrt"}, mapping or None, default="auto"
        Scales on which base kernels act on a column. With ``"auto"`` the search may take the
        logarithm or the square root of a positive column whose largest value is at least three
        times the smallest, as in ``SE[log(age)]``. To a column with zeros, none negative, the
        logarithm adds half of the smallest positive value, as in ``SE[log(dose + 0.02)]``. A name
        is the scale of all columns, ``{"age": "log", "*": None}`` of some. None is ``"identity"``.
    target_scale : "auto", {"identity", "log", "sqrt", "logit"} or None, default="auto"
        Scale of the target on which kernels act. With ``"auto"`` the search also tries the
        logarithm and the square root of a positive target, and the logit of one between 0 and 1,
        as in ``log(y) ~ SE[age]``. If at most 5 % of the rows are zero, and none negative, the
        logarithm adds half of the smallest positive value. Predictions are in the units of ``y``
        and average over scales. None is ``"identity"``.
    outliers : "auto" or None, default="auto"
        Whether outliers are excluded: rows whose own noise variance would raise the evidence, and
        which stand apart from all others. None fits all rows.
    noise : {"auto", "constant", "poisson", "negative_binomial", "binomial", "beta_binomial"}, \
            default="auto"
        The distribution of ``y`` given the function. With ``"auto"`` and ``"constant"`` it is
        normal. With ``"auto"``, the log of its variance is a constant plus at most two terms, each
        of one column, where the evidence gains more than their price: a line or a smooth function
        of its ranks, a value for each level or for gaps. Small whole numbers from zero on may then
        also be counts, ``"poisson"`` or ``"negative_binomial"``, whichever has most evidence.
        Kernels describe the logarithm of the rate of counts, and the logit of the chance of a
        success. Counts are fitted exactly and have no outliers; quantiles are whole numbers.
    exposure : str, int or None, default=None
        Column of ``X`` with the exposure of each count, such as a population or a time. Kernels
        describe the rate for an exposure of one; predictions are counts for that of their row.
    n_trials : str, int or None, default=None
        Column of ``X`` with the number of trials, if ``y`` counts successes. The noise is then
        ``"binomial"`` or, if chances differ for no known reason, ``"beta_binomial"``.
    periods : mapping or None, default=None
        Known periods by column, in the unit of the column, such as ``{"month": 12}`` or
        ``{"day": [7, 365.25]}``. Each becomes a periodic kernel such as ``PER12[month]``, and
        together they replace ``PER[month]``. A column of dates without an entry has year, quarter,
        week and day, as far as its rows can show them; an empty list leaves them out.
    start_kernel : str, Expression, list of them or None, default=None
        Kernels to evaluate first, such as ``"LIN[time] + PER[time]"``.
    operators : sequence of str or Operator, default=("+", "*")
        Operators that combine kernels: any of ``"+"``, ``"*"``, ``"cp"`` (a change point), ``"cw"``
        (a change window), and custom :class:`Operator` objects.
    strategy : {"sot", "boms", "arc", "greedy", "skc", "tree_gep", "random", "series"} or \
            Strategy
        Search strategy, by default Bayesian optimisation that climbs by estimates of the kernels
        near the best ones. An object such as ``SOT(initial_design="paper")`` sets its parameters.
        ``"series"`` fits only a few kernels that forecast series well, see :class:`SeriesKernels`.
    criterion : {"laplace", "importance", "bic", "loo"} or Criterion, default="laplace"
        Score to maximise. ``"laplace"`` and ``"importance"`` estimate the log evidence, by
        Laplace's method and by importance sampling; ``"bic"`` is the log likelihood minus a penalty
        for parameters; ``"loo"`` is the log predictive density of each row given all others. An
        object such as ``Importance(max_draws=1000)`` sets its parameters.
    n_iter : int, default=50
        Largest number of kernels to evaluate after the initial design. Simpler forms of the best
        kernel, and kernels that are scored again on other rows or with another noise, do not count.
    tol : float, default=0.05
        ``"sot"`` and ``"arc"`` end when no kernel, near the best ones or further away, is expected
        to gain ``tol`` nats, searches without such estimates when their last 30 kernels have gained
        less, and a climb on some of the rows when its last ten kernels predict others better by
        less than 0.01 nats a row. With 0, no search ends for these reasons.
    max_time : float or None, default=None
        Limit on the wall-clock time of ``fit``, in seconds. If no evaluation finishes in time, the
        model is a rough fit, with a warning.
    max_leaves : int or "auto", default="auto"
        Largest number of base kernels in an expression. ``"auto"`` is the larger of 10 and
        ``2 * n_features + 4``, counting columns that vary and have base kernels.
    batch_size : int, default=1
        Number of kernels to evaluate at a time; ``n_jobs`` or more of them keep all workers busy.
    priors : {"default", "paper"} or mapping, default="default"
        Gamma priors of the hyperparameters, for inputs that are scaled to the unit interval and a
        standardised target. A mapping such as ``{"lengthscale": (2, 2)}`` sets shape and rate.
    structure_prior : "default", float or None, default="default"
        Log prior of an expression, in nats, which is added to the criterion. A float is a penalty
        for each base kernel, a product of one over all columns counting once. None is uniform.
    averaging : "posterior", PosteriorAveraging or None, default="posterior"
        How predictions average over kernels and parameters: by posterior probability. An object
        such as ``PosteriorAveraging(n_components=16)`` sets the number of draws. None predicts with
        ``best_kernel_`` only, as all approximations do.
    approximation : {"auto", "exact", "inducing", "neighbours"}, default="auto"
        Treatment of many rows. With ``"exact"``, a search ends on all rows. With the others, it
        ends on at most 600 rows (4096 with ``strategy="skc"``), and then the best kernels are
        fitted to all. ``"auto"`` is exact up to 1000 rows and for sums of kernels of series on one
        column, otherwise ``"neighbours"``. In any case, the default search of 2 to 25 columns
        begins on 250 of 320 rows or more.
    n_inducing : int, default=512
        Largest number of inducing points.
    memory : str, path, joblib.Memory or None, default=None
        Folder for evaluations and proposals, where the same fit finds them after a crash, or with
        a larger ``n_iter``. A kernel that failed is tried again. Use another folder if the code of
        a custom kernel, criterion or strategy changes. The files are pickles, which run code when
        they are loaded: nobody else should have write access.
    n_jobs : int or None, default=None
        Number of parallel workers, as in :class:`joblib.Parallel`. The result does not depend on
        it. ``joblib.parallel_config`` chooses processes, threads or Dask.
    warm_start : bool, default=False
        Whether ``fit`` continues the last search, also an interrupted one. It repeats that search
        but reads what has been computed. ``n_iter`` is the total.
    random_state : int, RandomState instance or None, default=None
        An int makes the search reproducible.
    verbose : int or "auto", default="auto"
        In a terminal or notebook, a fit of more than 5 seconds without callbacks shows how far it
        is, in one line that is erased in the end. 0 shows nothing. 1 also prints how columns were
        read, which rows are searched, and a line for each improvement, 2 one for each kernel.

    Attributes
    ----------
    best_kernel_ : sklearn.gaussian_process.kernels.Kernel
        The best kernel with its noise, for inputs in the units of ``X`` and a standardised target.
        ``GaussianProcessRegressor(kernel=best_kernel_, optimizer=None, normalize_y=True, alpha=0)``
        fitted to the same data predicts as this estimator with ``averaging=None``. For weights w or
        known errors d, ``alpha`` is ``(noise_variance_ * (1 / w - 1) + d**2) / std**2``, with
        ``normalize_y=False`` and a target that is standardised by its weighted mean and standard
        deviation. On a scale of the target, it predicts the median in a
        ``TransformedTargetRegressor``. It has one noise variance, also where the noise varies.
    best_expression_ : str
        Structure of the best kernel, such as ``"LIN[time] * PER[time]"``, or ``"NOISE"`` alone.
    best_score_ : float
        Score of the best kernel on all rows, in nats: the value of ``criterion``, by default the
        log evidence for the standardised target, plus the log prior of the structure; with an
        approximation, ``"importance"`` is Laplace's method. It is that on the rows of the search
        after Ctrl-C, for ``"loo"`` with an approximation, and, with a warning, if the fit to all
        rows fails or ``max_time`` ends it. ``-inf`` for a rough fit.
    posterior_ : dict of ndarray of shape (n_kernels,)
        The most probable kernels, with ``probability``, ``log_evidence``, ``log_prior``,
        ``n_leaves``, ``pareto_k`` and ``kernel``. With ``strategy="series"`` these and the
        probabilities of ``scales_`` are weights of forecasts: one half is by evidence, the other
        equal for walks and returning levels on each scale. Prints as a table.
    inclusion_probabilities_ : dict of ndarray of shape (n_features,)
        For each ``column`` the probability that the target ``depends`` on it, ``repeats`` along it
        within the data, and is ``linear`` in it, plus a function of the others. Prints as a table.
    scales_ : dict of ndarray of shape (n_scales,)
        The ``probability`` of each ``scale`` of a ``subject``, which is ``"target"`` or a column,
        for a column given that the target depends on it. Prints as a table.
    noise_variance_ : float
        Variance of the noise, in squared units of y, or of y on the scale of the best kernel, of a
        row of weight one without a known error, with the rounding of a typical row; zero up to
        rounding for a constant target. If it varies, its geometric mean over the searched rows. Of
        counts, the variance with which a typical row determines the log of its rate or the logit
        of its chance.
    resolution_ : float
        The largest round step of which all targets are multiples, such as 0.5 or 20, in the unit of
        y, or zero. Its rounding is a known error of every row, and of new observations.
    outliers_ : ndarray of shape (n_outliers,)
        Zero-based indices of the rows of ``X`` that do not fit and are excluded, sorted.
    approximation_ : str
        How predictions are computed, such as ``"exact"``, ``"state space"`` or ``"64 neighbours"``.
    search_history_ : dict of ndarray of shape (n_kernels,)
        Table of the kernels in order, with the keys ``kernel``, ``score``, ``log_prior``,
        ``score_per_sample``, ``best_score``, ``n_leaves``, ``n_params``, ``phase``, ``status``,
        ``fit_seconds``, ``proposal_seconds``, ``elapsed``, ``estimate`` (what the score was
        expected to be), ``expected_improvement`` (over the best score before), ``standard_error``
        and ``pareto_k`` (of ``criterion="importance"``), ``upper_bound`` (of ``strategy="skc"``,
        for which ``score`` is a lower bound) and ``row_set``, a number that grows when the search
        continues on more rows, with other outliers or another noise: scores of different ones
        cannot be compared. ``phase`` is ``"initial"``, ``"search"``, ``"pruning"`` for simpler
        forms of the best kernel, or ``"rescoring"`` for the best ones of the smaller ``row_set``.
    n_iter_ : int
        Number of kernels evaluated after the initial design, as ``n_iter`` counts them.
    stop_reason_ : str
        ``"n_iter"``; ``"converged"``, see ``tol``; ``"max_time"``; ``"interrupted"`` by Ctrl-C;
        ``"callback"``; ``"local_maximum"``, if no kernel near the best is better or expected to be,
        and none further away is expected to gain ``tol``; ``"exhausted"``, if no kernel was left;
        or ``"refit"`` if the estimator has never searched.
    expected_improvement_ : float
        Nats by which the most promising kernel that is left is expected to exceed the best score;
        nan if the search did not end because of that.
    columns_ : dict of ndarray of shape (n_features,)
        How each ``column`` was read: its ``kind``, which is number, date or category; its
        ``values``, from the least to the largest, or its levels; the ``scale`` of the kernels that
        use it; its ``gaps``, the number of rows without a value; whether a kernel of the posterior
        has ``used`` it; and ``why``: from what it was read, and why it is not used. A table.
    date_columns_ : list of int
        Zero-based indices of the columns of dates. ``X_train_`` has their days since 1970-01-01.
    categories_ : dict of int to Levels
        For each column of categories, by its index, the ``values`` of the levels in the order of
        their numbers 0, 1, 2 in ``X_train_``, None for missing ones; and whether it ``is_ordered``.
    target_name_ : str or None
        Name of ``y`` where it is a Series, unless a column has the same.
    outcomes_ : dict of ndarray of shape (n_new,)
        The rows that :meth:`update` has added since the fit, with what was predicted before any row
        of the call joined: the number ``row``, ``y``, the predictive ``mean``, the central 95 %
        interval from ``low`` to ``high`` and the ``log_density`` at y in nats, as for a row of
        weight one without a known error; whether y is ``inside`` the interval and the row an
        ``outlier``; and its ``weight`` and ``noise_std``. Prints as a table.
    left_out_ : dict of ndarray of shape (n_left_out,)
        The rows that were left out after the search, with what was predicted of them: in five
        folds, or the last fifth of each series with ``strategy="series"``. The ``row`` is counted
        as in ``X``, and stands for equal ones too, of which those of the ``weight`` are in the
        ``fold``. For it the best kernels of the search were ranked and fitted again without these
        rows; approximate predictions have one fold, of at most 1000 rows, and keep the parameters.
        ``mean`` and ``std`` are in units of y, before intervals are widened by what such rows show;
        ``probability`` is that of a smaller target. Empty without time, or for fewer than ten rows.
    left_out_score_ : float
        R^2 of these means; nan without any.
    X_train_ : ndarray of shape (n_samples, n_features)
        Training inputs, equal rows too, without outliers and weights of zero; rows of updates last.
    y_train_ : ndarray of shape (n_samples,)
        Training targets, of the same rows.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if ``X`` has names.

    Notes
    -----
    The guides say more of each parameter. The evaluation of a kernel takes O(n_samples^3)
    operations. Callbacks of :mod:`sklearn.callback` receive one task per kernel. The grammar, and
    the search without local steps, are those of Bitzer, Meister and Zimmer (2022), *Structural
    kernel search via Bayesian optimization and symbolical optimal transport*.

    Examples
    --------
    >>> import numpy as np
    >>> from autokernel import AutoKernelGPRegressor
    >>> X = np.linspace(0, 10, 40)[:, None]
    >>> model = AutoKernelGPRegressor(n_iter=0, random_state=0).fit(X, 3 * X[:, 0] + 1)
    >>> model.predict([[20.0]]).round(1)
    array([61.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    def __init__(
        self,
        *,
        base_kernels: Selection | Mapping[str | int, Selection] = "auto",
        categorical_features: npt.ArrayLike | None = "auto",
        column_scales: str | Mapping[str | int, str | None] | None = "auto",
        target_scale: str | None = "auto",
        outliers: str | None = "auto",
        noise: str = "auto",
        exposure: str | int | None = None,
        n_trials: str | int | None = None,
        periods: Mapping[str | int, float | Sequence[float]] | None = None,
        start_kernel: str | Expression | Sequence[str | Expression] | None = None,
        operators: Collection[str | Operator] = ("+", "*"),
        strategy: str | Strategy = "sot",
        criterion: str | Criterion = "laplace",
        n_iter: int = 50,
        tol: float = 0.05,
        max_time: float | None = None,
        max_leaves: int | str = "auto",
        batch_size: int = 1,
        priors: str | Priors = "default",
        structure_prior: str | float | None = "default",
        averaging: str | PosteriorAveraging | None = "posterior",
        approximation: str = "auto",
        n_inducing: int = 512,
        memory: str | os.PathLike[str] | Memory | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | str = "auto",
    ) -> None:
        self.base_kernels, self.operators = base_kernels, operators
        self.categorical_features = categorical_features
        self.column_scales, self.target_scale = column_scales, target_scale
        self.outliers, self.noise = outliers, noise
        self.exposure, self.n_trials = exposure, n_trials
        self.periods, self.start_kernel = periods, start_kernel
        self.strategy, self.criterion = strategy, criterion
        self.max_leaves, self.batch_size = max_leaves, batch_size
        self.n_iter, self.tol, self.max_time = n_iter, tol, max_time
        self.priors, self.structure_prior, self.averaging = priors, structure_prior, averaging
        self.approximation, self.n_inducing = approximation, n_inducing
        self.memory, self.n_jobs, self.warm_start = memory, n_jobs, warm_start
        self.random_state, self.verbose = random_state, verbose

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, and those of nested objects as ``strategy__initial_design``.

        Raises
        ------
        ValueError
            If a name is unknown, or that of a parameter of a string instead of an object.
        """
        check_nested(params, self)
        return super().set_params(**params)

    # scikit-learn has no types
    @with_callbacks  # type: ignore[untyped-decorator]
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        sample_weight: npt.ArrayLike | None = None,
        noise_std: npt.ArrayLike | None = None,
    ) -> Self:
        """Search for a kernel and fit it; returns the estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs in any units. Constant columns are not used, nor, with a warning, are columns
            without a value. Dates (datetime64, period, or texts such as ``"2020-01-31"``,
            ``"2020-W05"``, ``"2020Q1"`` or ``"Jan 2020"``) become days since 1970-01-01. Texts of
            decimal numbers are numbers. The dates of a DatetimeIndex or PeriodIndex are the last
            column, unless another one has dates. Gaps are draws from the known values of a column.
        y : array-like of shape (n_samples,)
            Target in any unit. It may be left out if X is a series of pandas with dates in its
            index: then X is the target, and the dates are the inputs.
        sample_weight : array-like of shape (n_samples,) or float, default=None
            How many readings each row stands for, as if it were repeated: its noise variance is
            that of a single reading over the weight. Zero leaves the row out. Equal readings are
            evidence of little noise only if rows have three or more on average, if targets are
            coarse, or if the same inputs have others too: else they are copies, or have a mean.
        noise_std : array-like of shape (n_samples,) or float, default=None
            Known standard deviation of the error of each target, in the unit of ``y``, whose square
            is added to the noise variance. On another scale of the target, it is multiplied by the
            slope of the scale at the target, which is the delta method.

        Raises
        ------
        ValueError
            If the data or a parameter are not valid. The estimator stays as it was.
        EvaluationError
            If no kernel could be fitted.
        KeyboardInterrupt
            After Ctrl-C; the estimator is fitted with the best kernel so far.
        """
        X, y = series_with_dates(X, y)
        deadline = Deadline(np.inf if self.max_time is None else self.max_time)
        run = self._begin(X, y, sample_weight, noise_std, deadline=deadline)
        self._store = run.store
        context = self._init_callback_context(max_subtasks=run.loop.n_trials)
        given = {"estimator": self, "X": X, "y": y}
        context.call_on_fit_task_begin(**given)
        monitor = Monitor(context, run, given, partial(self._attributes_so_far, run))
        if monitor.verbose:
            leaves, why = run.stage.space.grammar.leaves, "base_kernels has none for it"
            monitor.say(f"{column_table(run.stage.columns, leaves, otherwise=why)}\n\n{HEADER}\n")
        with monitor.line():
            try:
                reason = run.search(monitor)
                self._set(run, finished(run, reason), reason)
                if not run.stage.is_exact_on_all:
                    monitor.say(f"predictions: {self.approximation_}")
            except KeyboardInterrupt:
                with suppress(EvaluationError, Warning):  # Ctrl-C comes first
                    self._set(run, finished(run, StopReason.INTERRUPTED), StopReason.INTERRUPTED)
                    warn_user(run.text_of_interruption)
                raise
        if reason not in EARLY:  # otherwise the store may hold more than this search has reached
            self._store.forget_unused()
        context.call_on_fit_task_end(**given, reconstruction_attributes={})
        return self

    def refit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        kernel: str | Expression | None = None,
        *,
        sample_weight: npt.ArrayLike | None = None,
        noise_std: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit a known structure instead of a search; changes the estimator and returns it.

        The last model is replaced; ``clone(model).refit(X, y, kernel)`` leaves ``model`` as it is.
        ``search_history_`` and ``stop_reason_`` stay those of the last search.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, with the columns of the last fit if there was one.
        y : array-like of shape (n_samples,)
            Target; may be left out as for :meth:`fit`.
        kernel : str, Expression or None, default=None
            The structure, such as ``"LIN[0] + SE[0]"``; None for that of ``best_expression_``.
        sample_weight, noise_std : array-like of shape (n_samples,) or float, default=None
            Weights and known errors of the rows, as for :meth:`fit`.

        Raises
        ------
        NotFittedError
            If ``kernel`` is None before any fit.
        ValueError
            If the data, a parameter or the kernel are not valid. The estimator stays as it was.
        EvaluationError
            If the kernel cannot be fitted. The estimator stays as it was.
        """
        self._validate_params()
        X, y = series_with_dates(X, y)
        if kernel is None:
            check_is_fitted(self, "best_kernel_")
        known = self._fitted.columns if hasattr(self, "_fitted") else None
        run = self._begin(X, y, sample_weight, noise_std, known=known, deadline=NEVER)
        self._set(run, refitted(run, self._fitted.evaluation if kernel is None else kernel))
        return self

    def update(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        sample_weight: npt.ArrayLike | None = None,
        noise_std: npt.ArrayLike | None = None,
    ) -> Self:
        """Add rows to the fitted model without a search; changes the estimator and returns it.

        The model is conditioned on all rows at the parameters of the fit, in a small part of the
        time of :meth:`refit`. Scales and resolution also stay. The width of intervals follows the
        errors of the rows in their order, unless ``averaging`` is None. The weight of each draw of
        the average is multiplied by the joint predictive density of the new rows, the
        probability of a kernel by the mean of these densities, or by that at its best parameters
        if it has no draw. ``best_kernel_`` stays, for a target that is standardised by the rows of
        the fit, and ``best_score_`` grows by the log predictive density at its parameters. An
        approximation is made again for all rows.

        With ``outliers="auto"``, new outliers are added to ``outliers_`` by the rule of the fit,
        and judged again with the rows of later updates. All rows of a new level of the target join
        if more of them are next to each other, in time or along a column, than chance allows, or if
        they are more than 15 % of all rows. Outliers of the fit stay excluded, and so do rows apart
        from the new level that still do not fit.

        There is a warning when the intervals of ``outcomes_`` have held less than half of 20 rows,
        outliers included: :meth:`refit` or :meth:`fit` with all rows mends such a lasting change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs of one row or more, with the columns of the fit, as for :meth:`predict`. Rows are
            counted on from those given to the fit and to earlier updates.
        y : array-like of shape (n_samples,)
            Target; may be left out as for :meth:`fit`.
        sample_weight, noise_std : array-like of shape (n_samples,) or float, default=None
            Weights and known errors of the rows, as for :meth:`fit`. Weights are numbers of
            readings and are never taken for relative.

        Raises
        ------
        NotFittedError
            If there was no fit.
        ValueError
            If the data or a parameter are not valid, or if the scale of the target does not have a
            row and ``outliers`` is None. The estimator stays as it was.
        EvaluationError
            If the model cannot be conditioned on the rows. The estimator stays as it was.

        Notes
        -----
        O(n_samples^2) for each new row and draw, and O(n_samples^3 / 3) for each kernel of
        ``posterior_`` without draws in the average.
        """
        self._validate_params()
        check_is_fitted(self, "best_kernel_")
        X, y = series_with_dates(X, y)
        model = self._fitted
        rows = X, y, sample_weight, noise_std
        given = check_new_rows(
            self, *rows, first_row=model.n_given, known=model.columns, resolution=model.resolution
        )
        model.warn_beyond_scales(given.X)
        self._set_fitted(updated(model, given, excludes=self.outliers is not None))
        return self

    def _begin(self, *given: Any, known: Columns | None = None, deadline: Deadline) -> Run:
        forget_parts()
        arguments = Arguments.of(self)
        data = check_fit_data(self, *given, known=known, deadline=deadline.share(SHARE_OF_TIME))
        store = getattr(self, "_store", None) if self.warm_start else None
        return Run(data, arguments, store, deadline=deadline)

    def _set(self, run: Run, model: FittedModel, reason: StopReason | None = None) -> None:
        """Set the attributes of a fit, and those of its search if that had a reason to end."""
        new: dict[str, Any] = {"target_name_": run.given.target_name}
        if reason is not None:
            histories = [stage.history for stage in run.stages]
            new |= {
                "_tried": [
                    one.expression.canonical for own in histories for one in own.evaluations
                ],
                "search_history_": history_table(columns_of(histories, run.stage.columns.text_of)),
                "n_iter_": sum(history.n_searched for history in histories),
                "stop_reason_": reason,
                "expected_improvement_": run.loop.expected_improvement,
                "_found": model.evaluation.expression.canonical,  # perhaps none of these
                "_n_searched": run.stage.n_searched,
            }
        self._set_fitted(model, **new)

    def _set_fitted(self, model: FittedModel, **more: Any) -> None:
        """Set all attributes of a fit at once: Ctrl-C finds the old ones or the new ones."""
        dropped = ("feature_names_in_", "_described")
        old = {name: one for name, one in vars(self).items() if name not in dropped}
        new = {**old, **_attributes_of(model), **more}
        if "search_history_" not in new:
            new |= {"n_iter_": 0, "stop_reason_": "refit", "expected_improvement_": np.nan}
        self.__dict__ = new

    def _attributes_so_far(self, run: Run) -> dict[str, Any] | None:
        """Return what is set if a callback ends the search now, None if no kernel is fitted."""
        if (best := run.best()) is None:
            return None
        other = copy(self)
        other._set(run, model_of(run, best), StopReason.CALLBACK)
        return {n: value for n, value in vars(other).items() if vars(self).get(n) is not value}

    def predict(
        self, X: npt.ArrayLike, return_std: bool | str = False, return_cov: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict the target, by averaging over kernels and their parameters.

        On a scale of the target, means and standard deviations are those of distributions at most
        as wide as the training targets, as the upper tail would dominate a mean of exponentials.
        Quantiles, densities and draws have the full width, and tails as heavy as those of the rows
        of ``left_out_``. Standard deviations are such that 1.96 of them hold 95 % of such rows,
        unless ``averaging`` is None or there are none.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        return_std : bool or "function", default=False
            Whether to return also the standard deviation of a new observation, which includes the
            noise of a row of weight one without a known error. ``"function"`` is the standard
            deviation of the function, without the noise.
        return_cov : bool, default=False
            Whether to return also the covariance matrix of new observations, with the same noise.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Predictive mean.
        std : ndarray of shape (n_samples,)
            Only with ``return_std``. It is zero up to rounding for a constant target of ``fit``.
        cov : ndarray of shape (n_samples, n_samples)
            Only with ``return_cov``.
        """
        X = self._check_inputs(X)
        if isinstance(return_std, str) and return_std != "function":
            raise ValueError(f"return_std must be True, False or 'function', got {return_std!r}")
        if return_std and return_cov:
            raise RuntimeError("predict takes at most one of return_std and return_cov, got both")
        if return_std:
            return self._fitted.mean_and_std(X, noise=return_std != "function")
        return self._fitted.mean_and_covariance(X) if return_cov else self._fitted.mean(X)

    def predict_quantiles(self, X: npt.ArrayLike, quantiles: Sequence[float]) -> FloatArray:
        """Predict quantiles of new observations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        quantiles : array-like of shape (n_quantiles,)
            Levels between 0 and 1, both excluded.

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles)
            Quantiles of the mixture, which need not be symmetric about its mean.
        """
        probabilities, inputs = check_probabilities(quantiles), self._check_inputs(X)
        return self._fitted.quantiles(inputs, probabilities)

    def forecast(
        self,
        horizon: int,
        quantiles: Sequence[float] = (0.025, 0.25, 0.5, 0.75, 0.975),
        *,
        X: npt.ArrayLike | None = None,
    ) -> Table:
        """Forecast the next rows of a series, or of the series of each group.

        Time is the column of dates, or of numbers at equal steps. Categories with one row each at a
        time are groups, such as shops with a row a week. Each series continues after its own last
        row, by equal steps or on days of the month or the week, on the clock of their zone.

        Parameters
        ----------
        horizon : int
            Number of rows of each series, at least one.
        quantiles : sequence of float of shape (n_quantiles,), default=(.025, .25, .5, .75, .975)
            Levels between 0 and 1, both excluded.
        X : array-like of shape (n_rows, n_columns), default=None
            The next rows of the other columns, such as prices: a frame with ``horizon`` rows, which
            hold for every group, or with ``horizon`` rows for each and the columns of groups. Times
            may be left out. An array has all columns in the order of the fit, or all but the
            times. None is enough if the forecast depends only on time and groups.

        Returns
        -------
        Table
            The rows with their dates (datetime64, in UTC if they had a zone) or numbers and their
            groups, under the names of the columns, the predictive ``mean``, and a column for each
            quantile, named after its level. ``pandas.DataFrame`` accepts it.

        Raises
        ------
        ValueError
            If there is no column of time, if fewer than half of the rows are equally spaced, or if
            the next rows of a column are needed and are not in ``X``.
        """
        check_is_fitted(self, "best_kernel_")
        check_scalar(horizon, "horizon", Integral, min_val=1)
        levels, model = check_probabilities(quantiles), self._fitted
        past = np.concatenate([model.X, model.outliers.X, model.weightless])
        future = None
        if X is not None:
            future = check_future(X, model.columns, model.series.time)
            model.warn_beyond_scales(future[0])
        return forecast_table(model, past, horizon, levels, future)

    def predict_interval(self, X: npt.ArrayLike, coverage: float = 0.95) -> FloatArray:
        """Predict the central interval that holds a new observation with a given probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        coverage : float, default=0.95
            Probability of the interval, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends.
        """
        return self.predict_quantiles(X, ends_of_interval(coverage).tolist())

    def log_predictive_density(self, X: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
        """Compute the marginal log predictive density of each observation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Observations.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log density in nats, with y in its own unit; larger is better. For rounded targets, it
            is the mean density of the interval of the width ``resolution_`` around ``y``, so that a
            zero on the logarithmic scale has one. For others, it is ``-inf`` where no scale of the
            average has ``y``, and the log of a probability at zero on the square root scale.
        """
        inputs = self._check_inputs(X)
        check_index("y", y, X)
        values = column_or_1d(in_memory(y))
        target = check_array(values, ensure_2d=False, dtype=np.float64, input_name="y")
        check_consistent_length(inputs, target)
        return self._fitted.log_density(inputs, target)

    def sample_y(
        self,
        X: npt.ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = 0,
    ) -> FloatArray:
        """Draw new observations, which include the noise.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            Number of draws. Each begins with a draw of a kernel and its parameters, and of whether
            its deviation from the mean is a large one, which is rare.
        random_state : int, RandomState instance or None, default=0
            Source of the draws.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples)
            A draw in each column.
        """
        inputs = self._check_inputs(X)
        check_scalar(n_samples, "n_samples", Integral, min_val=1)
        return self._fitted.samples(inputs, n_samples, random_state)

    def _check_inputs(self, X: npt.ArrayLike) -> FloatArray:
        check_is_fitted(self, "best_kernel_")
        inputs = check_inputs(self, X, self._fitted.columns)
        self._fitted.warn_beyond_scales(inputs)
        self._fitted.warn_of_levels(inputs)
        return inputs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        made = ("best_kernel_", "X_train_", "y_train_", "_described")  # made again of the others
        return {name: value for name, value in state.items() if name not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_fitted" in state:
            model = self._fitted
            self.best_kernel_, self.X_train_, self.y_train_ = model.kernel, model.X, model.y

    def _sk_visual_block_(self) -> Any:
        from sklearn.utils._repr_html.estimator import _VisualBlock  # noqa: PLC0415 - private

        words = getattr(self, "best_expression_", None)
        details = {"name_details": str(self), "name_caption": words}
        return _VisualBlock("single", self, names=type(self).__name__, **details)


def _attributes_of(model: FittedModel) -> dict[str, Any]:
    columns, kernels = model.columns, [one.evaluation.expression for one in model.kernels]
    names = {"feature_names_in_": np.array(columns.names, dtype=object)}
    return {
        "_fitted": model,
        "X_train_": model.X,
        "y_train_": model.y,
        "n_features_in_": model.X.shape[1],
        **(names if columns.has_names else {}),
        "columns_": column_table(columns, kernels, otherwise="no kernel of the posterior has it"),
        "date_columns_": columns.dates,
        "categories_": {n: one.levels for n, one in enumerate(columns.every) if one.levels},
        "resolution_": model.resolution,
        "outliers_": model.outliers.rows,
        "outcomes_": outcome_table(model.outcomes, model.outliers.rows),
        "best_kernel_": model.kernel,
        "best_expression_": columns.text_of(model.evaluation.expression),
        "best_score_": model.evaluation.score,
        "noise_variance_": model.noise_variance,
        "approximation_": model.approximation,
        "posterior_": posterior_table(model),
        "inclusion_probabilities_": inclusion_table(model),
        "scales_": scale_table(model),
        "left_out_": left_out_table(model),
        "left_out_score_": model.left_out_score,
    }
