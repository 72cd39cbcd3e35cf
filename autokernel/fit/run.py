"""The search of one fit, on the rows that are not outliers."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from numbers import Integral
from types import MappingProxyType

import numpy as np

from autokernel.data import FitData, NoiseFunction
from autokernel.data.steps import time_and_groups
from autokernel.deadline import NEVER, Deadline, in_time
from autokernel.evidence import Criterion, Evaluation, Evaluator, update_noise
from autokernel.exceptions import EvaluationError, warn_user
from autokernel.expression import Expression
from autokernel.fit.arguments import AUTO, Arguments
from autokernel.fit.rows import (
    SHARE_OF_TIME,
    outliers_after_search,
    outliers_before_search,
    training_data,
)
from autokernel.fit.space import Space
from autokernel.inference import TrainingData, one_blas_thread
from autokernel.kernels import ADD
from autokernel.many_rows import (
    BoundedEvaluator,
    ByStateSpace,
    approximation_for,
    latest_rows,
    n_rows_to_search,
    rows_of_groups,
    shuffled_rows,
)
from autokernel.model import MixturePredictor, condition
from autokernel.search import (
    MEANINGS,
    History,
    LeftOut,
    Observer,
    Search,
    StopReason,
    Store,
    Task,
    evaluate_in_parallel,
)
from autokernel.typing import IntArray
from autokernel.validation import check_seed

EARLY = (StopReason.MAX_TIME, StopReason.INTERRUPTED, StopReason.CALLBACK)
AVERAGING_SHARE = 0.1  # of the time, reserved for draws from the posterior
ALL_ROWS_SHARE = 0.4  # the same, for fits of the best kernels to all rows
MAX_TIMED_ROWS = 1000  # of a conditioning that is timed, to know how long that of more rows takes
RESERVED_REFITS = 3.0  # times to condition a kernel that are reserved for the best one
N_STARTS_AGAIN = 3  # best kernels with which a search on other rows begins
MAX_REVISIONS = 2  # in one fit, if the best kernel changes which rows fit or how noise varies
MIN_AHEAD = 3.0  # nats of a simple kernel whose noise varies, above the best one: strong evidence
MAX_BEHIND = 3.0  # nats of a kernel whose noise varies at gaps, below one that uses the column

Point = tuple[Evaluation, MixturePredictor]
"""A kernel at its best parameters, and the mixture of only this kernel."""


class Run:
    """A search on the given rows without outliers, which are indices of rows.

    On the scales of the target of ``varying``, the noise varies with the columns. What the
    ``store`` has is not computed again. Kernels of ``start`` are evaluated first, and then
    ``n_iter`` after the initial design. The ``evaluator`` has the ``n_searched`` rows of the
    search, and ``data`` all of them, which are then fitted by the ``approximation``, or exactly if
    it is None.
    """

    def __init__(
        self,
        given: FitData,
        outliers: IntArray,
        arguments: Arguments,
        store: Store,
        *,
        seed: int,
        n_iter: int,
        start: Sequence[Expression] = (),
        deadline: Deadline = NEVER,
        data: TrainingData | None = None,
        varying: Mapping[str, NoiseFunction] = MappingProxyType({}),
    ) -> None:
        self.given, self.outliers, self.arguments, self.seed = given, outliers, arguments, seed
        self.store, self._n_iter = store, n_iter
        kept = given.without(outliers)
        self.rows = kept.rows  # as the user counts them
        n, by_bounds = len(kept.y), arguments.strategy.scores_by_bounds
        self.approximation = approximation_for(arguments.approximation, n, arguments.n_inducing)
        self.n_searched = n_rows_to_search(arguments.approximation, n, by_bounds=by_bounds)
        data = training_data(kept) if data is None else data
        self.data = searched = data.with_varying(varying)
        self.columns = searched.inputs.columns
        if self.n_searched < n:
            searched = searched.take(self._searched_rows())
        until = deadline.share(SHARE_OF_TIME)
        self.space = Space(kept, searched, arguments, deadline=until)
        self.evaluator = self.evaluator_of(searched, by_bounds=by_bounds)
        self.task = Task(
            self.space.grammar,
            self.evaluator.data,
            self.evaluator.estimate_changes,
            priors=arguments.priors,
            structure_prior=self.space.structure_prior,
            start=(*self.space.start, *self._possible(start)),
            tol=arguments.tol,
            series=given.series,
            fingerprint=self.evaluator.fingerprint(),
        )
        self.history = History(self.evaluator.n_samples)
        self.was_cut = False  # before it could leave out columns of the best kernel
        self._timed = 0, 0.0  # rows on which a kernel was conditioned, and the seconds
        self._best: Point | None = None
        self._rough: Point | None = None
        self.failure = ""  # of a kernel that has a score

    @property
    def searches_all_exactly(self) -> bool:
        """Whether the whole fit is exact and on all rows."""
        by_bounds = self.arguments.strategy.scores_by_bounds
        return self.approximation is None and self.n_searched == len(self.rows) and not by_bounds

    def _searched_rows(self) -> IntArray:
        """Choose the rows to search on: at random, the latest of a series, or whole groups."""
        n, inputs, (_, groups) = self.n_searched, self.data.inputs, self.given.series
        if self._column_of_series is not None:
            return latest_rows(inputs, self._column_of_series, n)
        if groups and self.arguments.strategy.is_of_series:
            return rows_of_groups(inputs, groups, n, seed=self.seed)
        return np.sort(shuffled_rows(len(inputs), self.seed)[:n])

    def _left_out(self) -> LeftOut | None:
        """Return the rows that the search does not have, in random order, None if it has all."""
        order = shuffled_rows(len(self.rows), self.seed)
        if self.n_searched == len(order):
            return None
        others = order[~np.isin(order, self._searched_rows())]
        return LeftOut(self.evaluator.data, self.data.take(others))

    @property
    def _column_of_series(self) -> int | None:
        """The only column that varies, along which the rows are a series, None if they are not."""
        arguments, (time, _) = self.arguments, self.given.series
        n_varying = sum(column.varies for column in self.columns.every)
        is_series = time is not None and n_varying == 1 and not self.columns[time].n_gaps
        is_series = is_series and arguments.strategy.is_of_series
        return time if is_series and arguments.approximation == AUTO else None

    @property
    def is_long_series(self) -> bool:
        """Whether the rows are a series that is fitted by state space."""
        return self.approximation is not None and self._column_of_series is not None

    @property
    def text(self) -> str:
        """How all rows are fitted, in one line."""
        how = "exactly" if self.approximation is None else self.approximation.text
        how = ByStateSpace.text if self.is_long_series else how
        by_bounds = ", by bounds" if self.arguments.strategy.scores_by_bounds else ""
        return (
            f"{len(self.rows)} rows: kernels are searched on {self.n_searched} of them{by_bounds}, "
            f"and the best are fitted to all, {how}"
        )

    @cached_property
    def loop(self) -> Search:
        """The search, whose task has its deadline, and the estimates that it has made."""
        return Search(
            self.arguments.strategy,
            self.task,
            self.history,
            n_iter=self._n_iter,
            seed=self.seed,
            batch_size=self.arguments.batch_size,
            tol=self.arguments.tol,
            store=self.store,
            left_out=self._left_out(),
        )

    def search(self, observer: Observer, *, deadline: Deadline = NEVER) -> StopReason:
        """Search and return why it ended; the history keeps all trials, also after Ctrl-C.

        The deadline is that of the model, for which time is reserved.
        """
        if not self.task.grammar.columns:
            warn_user(
                "every column of X is constant, so that the model is noise alone: predictions are "
                "the mean of y"
            )
        self.was_cut = True  # by Ctrl-C, unless it ends
        until = deadline.earlier(self._reserved_seconds(deadline))
        latest = deadline.earlier(self.reserved_seconds)
        n_jobs, store = self.arguments.n_jobs, self.store
        evaluate = partial(evaluate_in_parallel, self.evaluator, n_jobs=n_jobs, store=store)
        try:
            with one_blas_thread():
                rough = self._rough and self._rough[0]
                reason = self.loop.run(
                    evaluate, deadline=until, observer=observer, rough=rough, latest=latest
                )
            self.was_cut = reason in EARLY
            return reason
        finally:
            until.cancel()  # nothing else stops threads that still work
            latest.cancel()

    def end_of_search(self, reason: StopReason) -> str:
        """Say in words why the search has ended."""
        what = MEANINGS[reason]
        best = self.history.best
        if reason is StopReason.LOCAL_MAXIMUM and best is not None and best.expression.leaves:
            n = len(self.loop.task.neighbour_texts(best.expression) - {best.expression.canonical})
            what = f"of {n} kernels one operation away from the best, none is expected to be better"
        return f"the search ended: {what}"

    @property
    def text_of_interruption(self) -> str:
        """Say what is fitted after Ctrl-C, and how to go on."""
        found, n = self.best() or self.rough(), len(self.history.best_first())
        text = self.columns.text_of(found[0].expression) if found else ""
        what = f"the best of {n} kernels so far" if n else "a rough fit, as no kernel was finished"
        return f"interrupted: the model is {what}, {text}; warm_start=True continues the search"

    def best(self) -> Point | None:
        """Condition the best kernel so far on the rows of the search; None if there is none."""
        for evaluation in self.history.best_first():
            if self._best is not None and self._best[0] is evaluation:
                return self._best
            try:
                self._best = evaluation, condition(evaluation, self.evaluator.data)
                return self._best
            except EvaluationError as error:  # then try the next best kernel
                self.failure = str(error)
        return None

    def rough(self, deadline: Deadline = NEVER) -> Point | None:
        """Fit the first kernel of the design or a quick one roughly, the next one if both fail.

        It is conditioned on the rows of the search, or on a few of them if that would take long.
        """
        if self._rough is None:
            first, *others = self.loop.design
            kernels = dict.fromkeys((first, *self.loop.quick[:1]))
            fits = [self.evaluator.run_roughly(one, deadline) for one in kernels]
            fits.sort(key=lambda fit: -fit.log_posterior)
            for evaluation in chain(fits, map(self.evaluator.run_roughly, others)):
                with suppress(EvaluationError):
                    self._rough = evaluation, self._conditioned(evaluation, deadline)
                    break
        return self._rough

    def _conditioned(self, evaluation: Evaluation, deadline: Deadline) -> MixturePredictor:
        data, began = self.evaluator.data, time.perf_counter()
        n = min(len(data.y), MAX_TIMED_ROWS)
        few = data.take(np.sort(shuffled_rows(len(data.y), self.seed)[:n]))
        mixture = condition(evaluation, few)
        self._timed = n, time.perf_counter() - began
        is_quick = self.conditioning_seconds(len(data.y)) < max(0.0, deadline.seconds_left)
        return condition(evaluation, data) if is_quick and n < len(data.y) else mixture

    def conditioning_seconds(self, n_rows: int) -> float:
        """Expect how long a kernel is conditioned on rows, if time is limited."""
        n, seconds = self._timed
        return seconds * (n_rows / n) ** 3 if n else 0.0

    def revised(self, *, deadline: Deadline, best: Evaluation | None = None) -> "Run | None":
        """Return the run that goes on without the rows that do not fit the best kernel.

        Its noise varies as the residuals of the best kernels do. It has the iterations that are
        left. None if these rows are excluded already, and the noise varies so. Of rows that are
        excluded now the noise is judged by the run without them.
        """
        scored = self.history.best_first() if best is None else [best]
        if not scored:
            return None
        best, known = scored[0], self.outliers
        outliers = outliers_after_search(
            training_data(self.given, like=self.data),
            best,
            known,
            self.arguments,
            self.store,
            seed=self.seed,
            deadline=deadline,
        )
        n_starts = 1 if self.arguments.strategy.is_of_series else N_STARTS_AGAIN
        starts, varying = scored[:n_starts], self.data.varying
        if np.array_equal(outliers, known):  # else the residuals are those of outliers too
            varying, around = self._varying(scored, deadline)
            if varying == self.data.varying:
                return None
            starts = [*around, *starts]
        return Run(
            self.given,
            outliers,
            self.arguments,
            self.store,
            seed=self.seed,
            n_iter=self._n_iter - self.history.n_searched,
            start=list(dict.fromkeys(one.expression for one in starts)),
            deadline=deadline,
            varying=varying,
        )

    def _varying(
        self, best_first: Sequence[Evaluation], deadline: Deadline
    ) -> tuple[Mapping[str, NoiseFunction], list[Evaluation]]:
        """Find how the noise varies on each scale of the target, and the kernels that show it.

        A product that follows each row has absorbed the noise, and a kernel may have a variance at
        gaps that is noise of such rows. So simple kernels are tried as well: noise by itself, the
        best base kernel, the best sum, and the best kernel without each column that has gaps.
        """
        varying, around = dict(self.data.varying), list[Evaluation]()
        if self.arguments.noise != AUTO:
            return varying, around
        for fit, found in in_time(self._noise_around(best_first, deadline)):
            varying[fit.expression.target] = found
            around.append(fit)
        return varying, around

    def _noise_around(
        self, best_first: Sequence[Evaluation], deadline: Deadline
    ) -> Iterator[tuple[Evaluation, NoiseFunction]]:
        """Yield kernels, on each scale of the target, with a better noise than those before."""
        update = partial(
            update_noise, self.evaluator.data, priors=self.arguments.priors, deadline=deadline
        )
        for scale in dict.fromkeys(one.expression.target for one in best_first):
            of_scale = [one for one in best_first if one.expression.target == scale]
            every = [(one, one.expression.terms(ADD)) for one in of_scale]
            sums = [one for one, terms in every if all(t.n_leaves <= 1 for t in terms)]
            simple = ([o for o in sums if o.expression.n_leaves <= n] for n in (0, 1, np.inf))
            gaps = (c for c in sorted(of_scale[0].expression.columns) if self.columns[c].n_gaps)
            without = ([o for o in of_scale if c not in o.expression.columns] for c in gaps)
            ahead = {some[0]: MIN_AHEAD for some in simple if some}
            ahead |= {some[0]: -MAX_BEHIND for some in without if some} | {of_scale[0]: 0.0}
            best = best_first[0].score
            for fit in dict.fromkeys([of_scale[0], *ahead]):
                found, score = update(fit, best + ahead[fit])
                if score > best + ahead[fit]:
                    best = score - min(ahead[fit], 0.0)
                    yield fit, found

    def evaluator_of(self, data: TrainingData, *, by_bounds: bool = False) -> Evaluator:
        """Build the evaluator of exact fits to data, or that of a search by bounds."""
        arguments = self.arguments
        make: Callable[..., Evaluator] = Evaluator
        criterion: Criterion | None = arguments.criterion
        if by_bounds:
            make = partial(BoundedEvaluator, n_inducing=arguments.n_inducing)
            criterion = arguments.criterion.for_approximations()
        if criterion is None:
            raise ValueError(
                f"strategy={arguments.strategy!r} bounds the log likelihood, and needs "
                f"criterion='laplace', 'importance' or 'bic', got {arguments.criterion!r}"
            )
        return make(
            data,
            priors=arguments.priors,
            seed=self.seed,
            criterion=criterion,
            structure_prior=self.space.structure_prior,
        )

    def _possible(self, kernels: Sequence[Expression]) -> Iterator[Expression]:
        """Yield the kernels that the search can reach, on the scales that these rows have."""
        for kernel in kernels:
            with suppress(ValueError):
                self.space.check_scales(kernel)
                yield self.space.checked(kernel)

    def _reserved_seconds(self, deadline: Deadline) -> float:
        """Fit roughly and return the seconds to keep for the model, none without a deadline."""
        if deadline.seconds_left == np.inf:
            return 0.0
        self.rough(deadline.share(SHARE_OF_TIME))
        share = AVERAGING_SHARE if self.searches_all_exactly else ALL_ROWS_SHARE
        return self.reserved_seconds + share * max(0.0, deadline.seconds_left)

    @property
    def reserved_seconds(self) -> float:
        """Seconds to keep for predictions of the best kernel, if time is limited."""
        return RESERVED_REFITS * self.conditioning_seconds(self.n_searched)


def first_run(
    given: FitData, arguments: Arguments, known: Store | None, *, deadline: Deadline
) -> Run:
    """Exclude the rows that do not fit a smooth function, and pose the search on the others.

    A warm start has the seed and the results of the store that is ``known``.
    """
    store = Store(known, folder=arguments.memory, parts=arguments.parts)
    if store.seed is None or isinstance(arguments.random_state, Integral):
        store.seed = check_seed(arguments.random_state)
    seed = store.seed
    data, until = training_data(given), deadline.share(SHARE_OF_TIME)
    given = replace(given, series=time_and_groups(data.inputs.columns, given.X, until))
    outliers = outliers_before_search(given, data, arguments, store, seed=seed, deadline=deadline)
    return Run(
        given,
        outliers,
        arguments,
        store,
        seed=seed,
        n_iter=arguments.n_iter,
        deadline=deadline,
        data=None if len(outliers) else data,
    )


def last_with_kernel(runs: Sequence[Run]) -> Run:
    """Return the last run that has evaluated a kernel, or the first one."""
    return next((run for run in reversed(runs) if run.history.best is not None), runs[0])
