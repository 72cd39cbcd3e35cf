"""One run of ``fit`` or ``refit``: the data, the search, and the model that results."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial, reduce
from numbers import Integral
from operator import mul
from warnings import catch_warnings

import numpy as np
from scipy.linalg import LinAlgError
from sklearn.exceptions import ConvergenceWarning

from autokernel.data import Columns, FitData, Kind, RowNoise, Target
from autokernel.data.checks import MAX_ROWS_NAMED
from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import (
    Criterion,
    Evaluation,
    Evaluator,
    columns_with_season,
    find_outliers,
    update_outliers,
)
from autokernel.evidence.evaluator import digest, parts_of_kernel
from autokernel.evidence.outliers import MAX_SHARE
from autokernel.exceptions import (
    EvaluationError,
    OutOfTimeError,
    kernel_errors,
    reason_of,
    warn_user,
)
from autokernel.expression import (
    IDENTITY,
    NOISE,
    Expression,
    Grammar,
    Leaf,
    StructurePrior,
    grammar_prior,
    uniform_prior,
    unit_prior,
)
from autokernel.fit.arguments import AUTO, Arguments
from autokernel.fit.space import MAX_FEW_COLUMNS, Space, targets_of
from autokernel.inference import ExactPredictor, MakePredictor, TrainingData, one_blas_thread
from autokernel.kernels import (
    CATEGORICAL,
    PERIODIC,
    SMOOTH,
)
from autokernel.many_rows import (
    Approximation,
    BoundedEvaluator,
    ManyRows,
    approximation_for,
    fit_all_rows,
    n_rows_to_search,
    race_exactly,
    shuffled_rows,
)
from autokernel.model import (
    TAIL_SHARE,
    FittedModel,
    KernelPosterior,
    MixtureComponent,
    MixturePredictor,
    posterior_over_kernels,
    share_of_tails,
)
from autokernel.search import (
    MEANINGS,
    History,
    Observer,
    Search,
    StopReason,
    Store,
    Task,
    evaluate_in_parallel,
)
from autokernel.search.design import kernels_of_series
from autokernel.typing import FloatArray, IntArray
from autokernel.validation import check_seed

EARLY = (StopReason.MAX_TIME, StopReason.INTERRUPTED, StopReason.CALLBACK)
AVERAGING_SHARE = 0.1  # of the time, reserved for draws from the posterior
ALL_ROWS_SHARE = 0.4  # the same, for fits of the best kernels to all rows
N_STARTS_AGAIN = 3  # best kernels with which a search on other rows begins
MAX_RUNS_AGAIN = 2  # on other rows, if the best kernel changes which of them fit
SHARE_FOR_OUTLIERS = 0.1  # of max_time, before the search
RESERVED_REFITS = 3.0  # times to condition a kernel that are reserved for the best one
TIMES_TO_LEAVE_OUT = 2.0  # of these, for the rows of one component


class Run:
    """One run of ``fit`` or ``refit``, in the units of the user and of the search.

    The data are checked already. What the ``store`` has is not computed again. Rows that do not fit
    are excluded first, or those of ``outliers`` if they are given. Kernels of ``start`` are
    evaluated first. The ``evaluator`` has the ``n_searched`` rows of the search; all
    rows are then fitted by the ``approximation``, or exactly if it is None.

    Raises
    ------
    ValueError
        If an argument does not fit the data.
    """

    def __init__(
        self,
        given: FitData,
        arguments: Arguments,
        *,
        store: Store | None = None,
        outliers: IntArray | None = None,
        start: Sequence[Expression] = (),
        deadline: Deadline = NEVER,
    ) -> None:
        self.arguments = arguments
        self.store = store or Store()
        if self.store.seed is None or isinstance(arguments.random_state, Integral):
            self.store.seed = check_seed(arguments.random_state)
        self.seed = self.store.seed
        self._given = given
        self.outliers = self._find_outliers(deadline) if outliers is None else outliers
        given = given.without(self.outliers)
        X, y = self.X, self.y = given.X, given.y
        self._rows = given.rows
        self.columns, self._target = given.columns.of_rows(X), Target.of(y, given.noise)
        n, by_bounds = len(y), arguments.strategy.scores_by_bounds
        self.approximation = approximation_for(arguments.approximation, n, arguments.n_inducing)
        self.n_searched = n_rows_to_search(arguments.approximation, n, by_bounds=by_bounds)
        data = _training_data(given, self.columns, self._target)
        searched = data
        if self.n_searched < n:
            searched = data.take(np.sort(shuffled_rows(n, self.seed)[: self.n_searched]))
        self.space = Space(
            given,
            self.columns,
            self._target,
            arguments,
            find_seasons=partial(columns_with_season, searched),
        )
        self._structure_prior = _structure_prior(self.space.grammar, arguments)
        self.evaluator = self._evaluator(searched, by_bounds=by_bounds)
        self._data = self.evaluator.data if self.searches_all_exactly else data
        self.task = Task(
            self.space.grammar,
            self.evaluator.data,
            self.evaluator.estimate_changes,
            priors=arguments.priors,
            structure_prior=self._structure_prior,
            start=(*self.space.start, *self._possible(start)),
            tol=arguments.tol,
            fingerprint=self.evaluator.fingerprint(),
        )
        self.history = History(self.evaluator.n_samples)
        self._deadline, self._conditioning_seconds = NEVER, 0.0
        self._best: FittedModel | None = None
        self._rough: FittedModel | None = None

    @property
    def searches_all_exactly(self) -> bool:
        """Whether the whole fit is exact and on all rows."""
        by_bounds = self.arguments.strategy.scores_by_bounds
        return self.approximation is None and self.n_searched == len(self.y) and not by_bounds

    @property
    def text(self) -> str:
        """How all rows are fitted, in one line."""
        how = "exactly" if self.approximation is None else self.approximation.text
        by_bounds = ", by bounds" if self.arguments.strategy.scores_by_bounds else ""
        return (
            f"{len(self.y)} rows: kernels are searched on {self.n_searched} of them{by_bounds}, "
            f"and the best are fitted to all, {how}"
        )

    @cached_property
    def _search(self) -> Search:
        arguments = self.arguments
        return Search(
            arguments.strategy,
            self.task,
            self.history,
            n_iter=arguments.n_iter,
            seed=self.seed,
            batch_size=arguments.batch_size,
            tol=arguments.tol,
            store=self.store,
        )

    @property
    def n_trials(self) -> int:
        """Largest number of trials; each of the two prunings counts as one."""
        return self._search.n_trials

    def search(self, observer: Observer, *, deadline: Deadline = NEVER) -> StopReason:
        """Search and return why it ended; the history keeps all trials, also after Ctrl-C.

        The deadline is that of the model, for which time is reserved.
        """
        arguments, self._deadline = self.arguments, deadline
        if not self.task.grammar.columns:
            warn_user(
                "every column of X is constant, so that the model is noise alone: predictions are "
                "the mean of y"
            )
        until = deadline.earlier(self._reserved_seconds())
        evaluate_all = partial(
            evaluate_in_parallel,
            self.evaluator,
            n_jobs=arguments.n_jobs,
            store=self.store,
        )
        try:
            with one_blas_thread():
                return self._search.run(evaluate_all, deadline=until, observer=observer)
        finally:
            until.cancel()  # nothing else stops threads that still work

    def end_of_search(self, reason: StopReason) -> str:
        """Say in words why the search has ended."""
        what = MEANINGS[reason]
        best = self.history.best
        if reason is StopReason.LOCAL_MAXIMUM and best is not None:
            n = len(self.task.neighbour_texts(best.expression) - {best.expression.canonical})
            what = f"of {n} kernels one operation away from the best, none is expected to be better"
        return f"the search ended: {what}"

    def best(self) -> FittedModel | None:
        """Build the model of the best kernel so far, from the rows of the search; None if none."""
        for evaluation in self.history.best_first():
            if self._best is not None and self._best.evaluation is evaluation:
                return self._best
            with suppress(EvaluationError):  # then try the next best kernel
                self._best = self._conditioned(evaluation)
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
        if best is not None:
            scored = self.history.best_first()
            if best.evaluation is not scored[0]:
                warn_user(
                    f"{scored[0].expression} has the highest score, but cannot be conditioned on "
                    f"the data: this model has {best.evaluation.expression}",
                    ConvergenceWarning,
                )
            if reason is StopReason.INTERRUPTED:
                return best
            others = [one for one in scored if one is not best.evaluation]
            deadline = self._deadline.earlier(self._conditioning_seconds)
            found = self._completed(best, others, self.space.grammar, deadline)
            return self._with_tails(found, best, deadline)
        rough = (self._rough or self._fit_roughly()) if reason in EARLY else None
        if rough is None:
            failed = self.history.evaluations[:1]
            first = f"; the first, {failed[0].expression}: {failed[0].status}" if failed else ""
            raise EvaluationError(f"none of the {len(self.history)} kernels could be fitted{first}")
        if reason is not StopReason.INTERRUPTED:
            n_failed = len(self.history)
            also = f", and {n_failed} could not be fitted" if n_failed else ""
            warn_user(
                f"{reason} ended the search before any kernel had a score{also}: this model is a "
                f"rough fit of {rough.evaluation.expression}, allow more time",
                ConvergenceWarning,
            )
        return rough

    def refit(
        self, kernel: str | Expression | Evaluation, *, n_left: int = MAX_RUNS_AGAIN
    ) -> FittedModel:
        """Fit one kernel without a search, also from the parameters of an earlier fit.

        Rows that do not fit this kernel are excluded, and those that do come back: ``n_left`` times
        it is then fitted again.

        Raises
        ------
        ValueError
            If the kernel does not fit the data.
        EvaluationError
            If it cannot be fitted.
        """
        if isinstance(kernel, Evaluation):
            expression = kernel.expression
            self.space.check_scales(expression)
            fits = [self.evaluator(expression, known) for known in ([], [kernel])]
            best = max(fits, key=lambda fit: fit.log_posterior)
        else:
            best = self.evaluator(self.space.kernel(kernel, argument="kernel"))
        other = self.on_other_rows(best) if n_left else None
        if other is not None:
            return other.refit(best, n_left=n_left - 1)
        searched = self._conditioned(best)
        return self._with_tails(self._completed(searched, [], None, NEVER), searched, NEVER)

    def _find_outliers(self, deadline: Deadline) -> IntArray:
        """Find the rows that do not fit a smooth function of all columns, before the search."""
        nothing = np.empty(0, dtype=int)
        if not self.arguments.excludes_outliers:
            return nothing
        given = self._given
        X, y = given.X, given.y
        columns, target = given.columns.of_rows(X), Target.of(y, given.noise)
        leaves = [
            Leaf(CATEGORICAL if column.kind == Kind.CATEGORY else SMOOTH, number)
            for number, column in enumerate(columns.every)
            if column.varies
        ]
        kernel: Expression = reduce(mul, leaves) if leaves else NOISE
        gaps = columns.with_gaps
        if np.isfinite(deadline.seconds_left):
            deadline = deadline.earlier((1 - SHARE_FOR_OUTLIERS) * deadline.seconds_left)
        some, name = np.arange(len(y)), self.arguments.target_scale
        if name == AUTO and np.mean(y > 0) >= 1 - MAX_SHARE:
            some = np.flatnonzero(y > 0)  # as the others may be outliers
        numeric = [leaf.column for leaf in leaves if leaf.kernel == SMOOTH]
        rivals: list[Expression] = [
            Leaf(PERIODIC, column) + kernel for column in numeric if column not in gaps
        ]
        if self.arguments.strategy.preset.judges_outliers_by_series:
            with catch_warnings(action="ignore"):  # the space without outliers repeats them
                plain = replace(self.arguments, target_scale=IDENTITY, start_kernel=())
                space = Space(given, columns, target, plain, find_seasons=tuple)
            rivals = kernels_of_series(space.grammar)
        elif len(leaves) > MAX_FEW_COLUMNS:
            rivals = []
        of_some = given.without(np.setdiff1d(np.arange(len(y)), some))
        data = _training_data(given, columns, target)
        kernels = [kernel.on(one) for one in targets_of(of_some, target, name)]
        try:
            return self._read_or_find(
                partial(find_outliers, data, kernels, rivals),
                (*data.definition, len(kernels)),
                (*kernels, *rivals),
                deadline,
            )
        except OutOfTimeError:
            return nothing

    def _read_or_find(
        self,
        find: Callable[..., IntArray],
        parts: Sequence[object],
        kernels: Sequence[Expression],
        deadline: Deadline,
    ) -> IntArray:
        """Return the outliers that the store has for these parts and kernels, or find them."""
        priors, seed = self.arguments.priors, self.seed
        of_kernels = (part for kernel in kernels for part in parts_of_kernel(kernel))
        key = digest("outliers", *parts, *of_kernels, sorted(priors.items()), seed)
        rows = self.store.get(key, list)
        if rows is None:
            rows = find(priors=priors, seed=seed, deadline=deadline).tolist()
            self.store.put(key, rows)
        return np.array(rows, dtype=int)

    def on_other_rows(self, fit: Evaluation | None = None) -> "Run | None":
        """Return the run without the rows that do not fit a kernel, by default the best.

        None if these are the rows that are excluded already, or if there is no time to find out.
        The fit is one of this run.
        """
        best = fit or self.history.best
        if not self.arguments.excludes_outliers or best is None or not np.isfinite(best.score):
            return None
        outliers = self.outliers
        with suppress(OutOfTimeError):
            data = _training_data(self._given, self.columns, self._target)
            outliers = self._read_or_find(
                partial(update_outliers, data, best, self.outliers),
                (*data.definition, best.theta.tobytes(), self.outliers.tolist()),
                [best.expression],
                self._deadline,
            )
        if np.array_equal(outliers, self.outliers):
            return None
        return Run(
            self._given,
            replace(self.arguments, random_state=self.seed),
            store=self.store,
            outliers=outliers,
            start=[one.expression for one in self.history.best_first()[:N_STARTS_AGAIN]],
        )

    def _possible(self, kernels: Sequence[Expression]) -> Iterator[Expression]:
        """Yield the kernels that the search can reach, on the scales that these rows have."""
        for kernel in kernels:
            with suppress(ValueError):
                self.space.check_scales(kernel)
                yield self.space.checked(kernel)

    @property
    def text_of_outliers(self) -> str:
        """Which rows are excluded, in one line."""
        n = len(self.outliers)
        numbers = self._given.rows[self.outliers]
        named = ", ".join(map(str, numbers[:MAX_ROWS_NAMED].tolist()))
        more = f" and {n - MAX_ROWS_NAMED} more" if n > MAX_ROWS_NAMED else ""
        subject, verbs = ("row", ("does", "is")) if n == 1 else ("rows", ("do", "are"))
        return f"{subject} {named}{more} {verbs[0]} not fit, and {verbs[1]} excluded"

    def _reserved_seconds(self) -> float:
        """Fit roughly and return the seconds to keep for the model, none without a deadline."""
        if self._deadline.seconds_left == np.inf:
            return 0.0
        self._rough = self._fit_roughly()
        began = time.perf_counter()
        if self._rough is not None:
            self._conditioned(self._rough.evaluation)
        self._conditioning_seconds = RESERVED_REFITS * (time.perf_counter() - began)
        share = AVERAGING_SHARE if self.searches_all_exactly else ALL_ROWS_SHARE
        return self._conditioning_seconds + share * self._deadline.seconds_left

    def _fit_roughly(self) -> FittedModel | None:
        """Fit the first kernel of the design quickly on a few rows, or the next one if it fails."""
        for expression in self._search.design:
            with suppress(EvaluationError):
                return self._conditioned(self.evaluator.run_roughly(expression))
        return None

    def _completed(
        self,
        best: FittedModel,
        others: Sequence[Evaluation],
        grammar: Grammar | None,
        deadline: Deadline,
    ) -> FittedModel:
        """Fit the best kernels to all rows, and average over kernels and parameters.

        The best kernel may be one of ``grammar`` that is not among these.
        """
        if self.searches_all_exactly:
            return self._averaged(best, others, self.evaluator, deadline)
        best_first = [best.evaluation, *others]
        try:
            if self.approximation is not None:
                more = grammar if self.arguments.strategy.preset.explores else None
                return self._approximated(self.approximation, best_first, more, deadline)
            evaluator = self._evaluator(self._data)
            first, *others = race_exactly(best_first, evaluator, deadline=deadline) or best_first
            point = self._conditioned(first, self._data)
            if first is best.evaluation:  # there is no fit to all rows
                return point
            return self._averaged(point, others, evaluator, deadline)
        except EvaluationError as error:
            warn_user(
                f"{error}: predictions are given the {self.n_searched} rows of the search only",
                ConvergenceWarning,
            )
            return best

    def _with_tails(
        self, model: FittedModel, searched: FittedModel, deadline: Deadline
    ) -> FittedModel:
        """Estimate how heavy tails are from rows left out, those of the search if there are more.

        Rows of a series do not show it, as those on both sides of a row know whether a level
        breaks. Without the time to leave rows out, tails are those of the prior.
        """
        mixture, share = model.mixture, TAIL_SHARE
        rows = mixture if self.searches_all_exactly else searched.mixture
        needed = TIMES_TO_LEAVE_OUT * len(rows.components) * self._conditioning_seconds
        if self.arguments.strategy.preset.learns_tails and deadline.seconds_left > needed:
            with suppress(LinAlgError, MemoryError), one_blas_thread():
                probabilities, _ = rows.leave_one_out()
                n_outliers = len(self.outliers) * len(probabilities) / len(self.y)
                share = share_of_tails(probabilities, n_outliers)
        return replace(model, mixture=mixture.with_tails(share))

    def _averaged(
        self,
        best: FittedModel,
        others: Sequence[Evaluation],
        evaluator: Evaluator,
        deadline: Deadline,
    ) -> FittedModel:
        """Average over kernels and parameters, both fitted to the rows of the evaluator."""
        evaluation, averaging = best.evaluation, self.arguments.averaging
        kernels = posterior_over_kernels(evaluator, [evaluation, *others], deadline=deadline)
        model = replace(best, kernels=kernels)
        if averaging is None:
            return model
        if not evaluation.expression.leaves:  # if nothing is found, nothing is predicted
            kernels = [one for one in kernels if one.evaluation is evaluation]
        try:
            with one_blas_thread():
                components = averaging.components(evaluator, kernels, deadline=deadline)
                mixture = MixturePredictor(components, evaluator.data, ExactPredictor)
        except (LinAlgError, OutOfTimeError, MemoryError) as error:
            warn_user(
                f"averaging has failed ({reason_of(error)}): this model predicts by "
                f"{evaluation.expression} at its best parameters",
                ConvergenceWarning,
            )
            return model
        return replace(model, mixture=mixture)

    def _approximated(
        self,
        approximation: Approximation,
        best_first: Sequence[Evaluation],
        grammar: Grammar | None,
        deadline: Deadline,
    ) -> FittedModel:
        """Build the model that predicts with the kernel that is best on all rows."""
        rows = ManyRows(approximation, self._data, self.evaluator, deadline=deadline)
        evaluation, draws, make_predictor = fit_all_rows(
            best_first, rows, n_searched=self.n_searched, grammar=grammar
        )
        try:
            model = self._conditioned(evaluation, self._data, make_predictor)
        except EvaluationError as error:
            warn_user(f"{error}: predictions are approximated", ConvergenceWarning)
            model = self._conditioned(evaluation, self._data, approximation.predictors[0])
        (only,) = model.kernels
        return replace(model, kernels=(replace(only, draws=draws),))

    def _conditioned(
        self,
        evaluation: Evaluation,
        data: TrainingData | None = None,
        make_predictor: MakePredictor = ExactPredictor,
    ) -> FittedModel:
        """Build the model that predicts with one kernel, by default from the rows of the search.

        Raises
        ------
        EvaluationError
            If the kernel could not be fitted, or if it cannot be conditioned on the data.
        """
        data = self.evaluator.data if data is None else data
        expression, theta, n = evaluation.expression, evaluation.theta, len(data.y)
        if not np.isfinite(evaluation.log_posterior):
            raise EvaluationError(f"{expression} could not be fitted because: {evaluation.status}")
        point = [MixtureComponent(expression, theta, 1.0)]
        try:
            with kernel_errors(), one_blas_thread():  # as in the search, for bit-identical results
                mixture = MixturePredictor(point, data, make_predictor, tail_share=TAIL_SHARE)
        except EvaluationError as error:
            raise EvaluationError(
                f"{expression} cannot be conditioned on {n} rows ({error})"
            ) from error
        (predictor,) = mixture.predictors
        only = KernelPosterior(evaluation, 1.0, evaluation.score, theta[None])
        deviations = self._deviations(mixture, expression.target)
        outliers = self._given.rows[self.outliers], deviations
        return FittedModel(
            evaluation,
            predictor.noise_variance,
            mixture,
            (only,),
            predictor.text if n == len(self.y) else f"{predictor.text}, given {n} rows",
            outliers,
            self._rows,
        )

    def _deviations(self, mixture: MixturePredictor, target: str) -> FloatArray:
        """Compute how far the excluded rows are from predictions, in deviations.

        Those without a density on the scale of the target are infinitely far.
        """
        if not len(self.outliers):
            return np.empty(0)
        X, y = (values[self.outliers] for values in (self._given.X, self._given.y))
        inputs = self.columns.inputs(X).values
        mean, variance = mixture.moments(inputs)
        of_function = mixture.moments(inputs, noise=False)[1]
        noise = self._given.noise.take(self.outliers).multiplied(self._target.scale**-2)
        of_rows = RowNoise(noise.weights, noise.errors)  # as new observations are rounded already
        variance = of_function + of_rows.variance(variance - of_function)
        u = self._target.forward(y)
        deviations = (u - mean) / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
        _, log_slopes = self._target.on(target).forward_and_log_slope(u)
        return np.where(np.isfinite(log_slopes), deviations, np.inf)

    def _evaluator(self, data: TrainingData, *, by_bounds: bool = False) -> Evaluator:
        """Build the evaluator of exact fits, or that of a search by bounds."""
        arguments = self.arguments
        make: Callable[..., Evaluator] = Evaluator
        criterion: Criterion | None = arguments.criterion
        if by_bounds:
            make = partial(BoundedEvaluator, n_inducing=arguments.n_inducing)
            criterion = arguments.criterion.for_approximations()
        if criterion is None:
            raise ValueError(
                f"strategy={arguments.strategy!r} bounds the log likelihood, and needs "
                f"criterion='laplace', 'importance', 'bic' or 'aic', got {arguments.criterion!r}"
            )
        return make(
            data,
            priors=arguments.priors,
            seed=self.seed,
            criterion=criterion,
            structure_prior=self._structure_prior,
        )


def _training_data(given: FitData, columns: Columns, target: Target) -> TrainingData:
    """Return data on the scales of the search."""
    inputs, noise = columns.inputs(given.X, first_row=0), given.noise.multiplied(target.scale**-2)
    return TrainingData(inputs, target.forward(given.y), noise, target)


def _structure_prior(grammar: Grammar, arguments: Arguments) -> StructurePrior:
    n_columns, chosen = len(grammar.columns), arguments.structure_prior
    prices = arguments.strategy.preset.prices_structure
    if chosen is None or (isinstance(chosen, str) and not prices):
        return uniform_prior
    if isinstance(chosen, str):
        by_column = grammar.by_column or [grammar.base_kernels]
        of_numbers = [ks for ks in by_column if not all(k.is_categorical for k in ks)] or by_column
        scales = zip(grammar.columns, grammar.scales or (), strict=bool(grammar.scales))
        return partial(
            grammar_prior,
            n_kernels=sum(map(len, of_numbers)) / len(of_numbers),
            n_operators=len(grammar.operators),
            n_columns=n_columns,
            n_scales={column: len(of_column) for column, of_column in scales},
            n_targets=len(grammar.targets),
        )
    return partial(unit_prior, nats=float(chosen), n_columns=n_columns)
