"""The search of one fit: its stages, on more and more rows and with what fits them."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain
from numbers import Integral
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from autokernel.data import FitData, NoiseFunction
from autokernel.deadline import NEVER, Deadline, in_time
from autokernel.evidence import Evaluation, FittedNoise, update_noise
from autokernel.exceptions import EvaluationError, warn_user
from autokernel.expression import COUNT_SCALES
from autokernel.fit.arguments import AUTO, Arguments
from autokernel.fit.rows import (
    SHARE_OF_TIME,
    outliers_after_search,
    outliers_before_search,
    training_data,
    with_counts_if_exact,
)
from autokernel.fit.stage import Stage
from autokernel.inference import one_blas_thread
from autokernel.kernels import ADD
from autokernel.many_rows import with_rough_term
from autokernel.model import MixturePredictor, condition
from autokernel.search import (
    EARLY,
    Observer,
    Phase,
    Search,
    StopReason,
    Store,
    evaluate_in_parallel,
    words_of,
)
from autokernel.typing import IntArray
from autokernel.validation import check_seed

MAX_REVISIONS = 2  # after the last stage, if its best kernel changes which rows fit, or the noise
MIN_AHEAD = 3.0  # nats of a simple kernel whose noise varies, above the best one: strong evidence
MORE_NOISE = 2.0  # in the logarithm of its variance, that a better kernel may have absorbed
MAX_AT_GAPS = 3.0  # nats of a kernel whose noise varies at gaps, below one that uses the column

Point = tuple[Evaluation, MixturePredictor]
"""A kernel at its best parameters, and the mixture of only this kernel."""


class Run:
    """The search of a fit, in stages on more rows, without other outliers, or with other noise."""

    def __init__(
        self, given: FitData, arguments: Arguments, known: Store | None, *, deadline: Deadline
    ) -> None:
        self.arguments, self.deadline = arguments, deadline
        self.store = Store(known, folder=arguments.memory, parts=arguments.parts)
        if self.store.seed is None or isinstance(arguments.random_state, Integral):
            self.store.seed = check_seed(arguments.random_state)
        self.seed = self.store.seed
        self.given, self.stages = with_counts_if_exact(given, arguments), list[Stage]()
        outliers = outliers_before_search(self.given, arguments, self.store, deadline=deadline)
        self.stages.append(self.new_stage(outliers=outliers, deadline=deadline))
        self._judged: set[bytes] = set()  # outliers for which kernels were fitted
        self._noises: dict[tuple[int, bytes], dict[str, FittedNoise]] = {}  # for rows, by kernels
        self.was_cut = False  # before it could leave out columns of the best kernel
        self._clock = Deadline(np.inf)  # of conditionings, also after the deadline
        self._best: Point | None = None
        self._rough: Point | None = None
        self.failure = ""  # of a kernel that has a score

    @cached_property
    def loop(self) -> Search:
        """The search, which begins in the first stage."""
        arguments, first = self.arguments, self.stages[0]
        return Search(
            arguments.strategy,
            first.task,
            first.history,
            n_iter=arguments.n_iter,
            seed=self.seed,
            batch_size=arguments.batch_size,
            store=self.store,
        )

    def new_stage(self, **options: Any) -> Stage:
        """Make a stage; only the first one warns of what the data show."""
        with catch_warnings():
            if self.stages:
                simplefilter("ignore")
                options["periodic"] = self.stages[-1].space.periodic
            return Stage(self.given, self.arguments, self.seed, **options)

    @property
    def stage(self) -> Stage:
        """The last stage in which a kernel has a score, or noise alone, or the first one.

        Noise wins against kernels, not against failures.
        """
        scored = [one for one in self.stages if one.history.best_first()]
        for stage in reversed(scored):
            if any(one.expression.leaves for one in stage.history.best_first()):
                return stage
        return [*self.stages[:1], *scored][-1]

    def search(self, observer: Observer) -> StopReason:
        """Search and return why it ended; the stages keep all trials, also after Ctrl-C."""
        if not self.stage.space.grammar.columns:
            warn_user(
                "every column of X is constant, so that the model is noise alone: predictions are "
                f"the mean of y{' for each unit of exposure' * (self.given.exposure is not None)}"
            )
        self.was_cut = True  # by Ctrl-C, unless it ends
        observer.say(self.stage.text_of_changes(None))
        reason, n_left = self._search_stage(observer), MAX_REVISIONS
        while n_left and not (reason in EARLY and self.stages[-1].is_last):
            n_left -= self.stages[-1].is_last
            if not self._go_on(observer, self.deadline, ends=True, is_cut=reason in EARLY):
                break
            is_cut = reason is StopReason.CALLBACK
            later = self._search_stage(observer, is_cut=is_cut)
            reason = reason if is_cut else later
        self.was_cut = reason in EARLY
        if observer.verbose:  # which neighbours there are takes time
            observer.say(self.end_of_search(reason))
        observer.finish()
        return reason

    def _search_stage(self, observer: Observer, *, is_cut: bool = False) -> StopReason:
        """Search on the rows of the last stage, or only score the best kernel on them."""
        until = self.deadline.earlier(self._seconds_for_model())
        latest = self.deadline.earlier(self.reserved_seconds)
        if is_cut:
            until.cancel()
        try:
            with one_blas_thread():
                return self.loop.run(
                    self._evaluate_all,
                    deadline=until,
                    observer=observer,
                    rough=self._rough and self._rough[0],
                    latest=latest,
                    after_design=partial(self._go_on, observer, until),
                )
        finally:
            until.cancel()  # nothing else stops threads that still work
            latest.cancel()

    def _evaluate_all(self, *batch: Any) -> Generator[Evaluation | None, None, None]:
        evaluator, n_jobs = self.stages[-1].evaluator, self.arguments.n_jobs
        return evaluate_in_parallel(evaluator, *batch, n_jobs=n_jobs, store=self.store)

    def _go_on(
        self, observer: Observer, deadline: Deadline, *, ends: bool = False, is_cut: bool = False
    ) -> bool:
        """Continue the search on more rows, without other outliers, or with another noise.

        After the design, the noise is judged by simple kernels, as later ones of several columns
        may absorb it. Where the search of a stage ends, rows are judged too, unless it ``is_cut``.
        """
        stage, grammar = self.stages[-1], self.stages[-1].space.grammar
        scored, is_auto = stage.history.best_first(), self.arguments.noise == AUTO
        may_absorb = is_auto and len(grammar.columns) > 1 and len(grammar.targets) == 1
        if not (scored and (ends or (may_absorb and self.loop.climbs))):
            return False
        following, fits = self.following(scored, deadline, ends=ends, is_cut=is_cut)
        if following is None:
            return False
        self.stages.append(following)
        self.loop.go_on(following.task, following.history, fits)
        observer.say(following.text_of_changes(stage))
        return True

    def following(
        self, best_first: Sequence[Evaluation], deadline: Deadline, *, ends: bool, is_cut: bool
    ) -> tuple[Stage | None, list[Evaluation]]:
        """Return the stage that follows, None if nothing changes, and the fits to begin it with."""
        stage, around = self.stages[-1], list[Evaluation]()
        varying = dict(stage.data.varying)
        outliers = stage.outliers if is_cut else self._outliers_of(best_first[0], deadline)
        is_same = np.array_equal(outliers, stage.outliers)
        if not is_cut and is_same and self.arguments.noise == AUTO:
            # otherwise the residuals are those of outliers too
            for fit, found in in_time(self._noise_around(best_first, deadline, ends=ends)):
                varying[fit.expression.target] = found
                around.append(fit)
        changes = not is_same or varying != stage.data.varying
        if not (changes or not stage.is_last if ends else around):
            return None, []
        following = self.new_stage(
            outliers=outliers, number=stage.number + ends, varying=varying, deadline=deadline
        )
        fits = [*best_first[: 1 if is_cut else None]]
        if not (is_cut or self.arguments.strategy.is_of_series):
            fits = [*around, *best_first[:3], *self._designed(best_first[0], following, ends)]
        kernels: dict[str, Evaluation] = {}
        for one in fits:
            kernels.setdefault(one.expression.canonical, one)
        # some may be on scales that other rows do not have
        return following, [one for one in kernels.values() if following.space.has(one.expression)]

    def _outliers_of(self, best: Evaluation, deadline: Deadline) -> IntArray:
        """Judge all rows by a kernel; those that come and go stay away."""
        before = self.stages[-1].outliers
        data = training_data(self.given, like=self.stages[-1].data)
        found = outliers_after_search(
            data, best, before, self.arguments, self.store, deadline=deadline
        )
        self._judged.add(before.tobytes())
        return before if len(found) < len(before) and found.tobytes() in self._judged else found

    def _designed(self, best: Evaluation, following: Stage, ends: bool) -> Iterator[Evaluation]:
        """Yield kernels of the design that more rows may show to be good, and with rough terms."""
        stage = self.stages[-1]
        has_more_rows = following.number > stage.number
        phases = (Phase.INITIAL, Phase.RESCORING) if has_more_rows or not ends else ()
        designed = chain.from_iterable(map(stage.history.best_first, phases))
        near = [one for one in designed if one.score > best.score - 10]
        yield from near
        for one in [best, *near[:2]] if has_more_rows else ():
            yield from with_rough_term(one, following.evaluator.data, stage.task)

    def _noise_around(
        self, best_first: Sequence[Evaluation], deadline: Deadline, *, ends: bool
    ) -> Iterator[tuple[Evaluation, NoiseFunction]]:
        """Yield kernels, on each scale of the target, with a better noise than those before."""
        stage = self.stages[-1]
        data, columns = stage.evaluator.data, stage.space.grammar.columns
        if self.arguments.strategy.is_of_series:  # larger steps of a group would count as noise
            columns = tuple(c for c in columns if c not in self.given.series.groups)
        priors = self.arguments.priors
        known = self._noises.setdefault((stage.number, stage.outliers.tobytes()), {})
        update = partial(update_noise, data, columns, priors=priors, deadline=deadline, found=known)
        scales = dict.fromkeys(one.expression.target for one in best_first)
        for scale in (one for one in scales if one not in COUNT_SCALES):
            of_scale = [one for one in best_first if one.expression.target == scale]
            ahead = _needed_ahead(of_scale, stage, ends=ends)
            best = best_first[0].score
            for fit in sorted(ahead, key=lambda fit: fit is not of_scale[0]):
                found, score = update(fit, best + ahead[fit])
                if score > best + ahead[fit]:
                    best = score - min(ahead[fit], 0.0)
                    yield fit, found

    def end_of_search(self, reason: StopReason) -> str:
        """Say in words why the search has ended."""
        best, n_near = self.stage.history.best, None
        if reason is StopReason.LOCAL_MAXIMUM and best is not None and best.expression.leaves:
            n_near = len(self.loop.task.near(best.expression))
        expected, tol = self.loop.expected_improvement, self.arguments.tol
        return f"the search ended: {words_of(reason, expected, tol, n_near=n_near)}"

    @property
    def text_of_interruption(self) -> str:
        """Say what is fitted after Ctrl-C, and how to go on."""
        found, n = self.best() or self._rough, len(self.stage.history.best_first())
        text = self.stage.columns.text_of(found[0].expression) if found else ""
        what = f"the best of {n} kernels so far" if n else "a rough fit, as no kernel was finished"
        return f"interrupted: the model is {what}, {text}; warm_start=True continues the search"

    def best(self) -> Point | None:
        """Condition the best kernel on the rows of the last stage or, if that fails, its score."""
        for evaluation in self.stage.history.best_first():
            if self._best is not None and self._best[0] is evaluation:
                return self._best
            for data in dict.fromkeys((self.stage.last, self.stage.evaluator.data)):
                try:
                    self._best = evaluation, condition(evaluation, data)
                    return self._best
                except EvaluationError as error:  # then try the next best kernel
                    self.failure = str(error)
        return None

    def rough(self, deadline: Deadline = NEVER) -> Point | None:
        """Fit a kernel of the design or a quick one roughly, and time how few rows condition it."""
        if self._rough is None:
            evaluator, data = self.stages[0].evaluator, self.stages[0].last
            few = data.drawn(1000, self.seed)
            first, *others = self.loop.design
            kernels = dict.fromkeys((first, *self.loop.quick[:1]))
            fits = [evaluator.run_roughly(one, deadline) for one in kernels]
            fits.sort(key=lambda fit: -fit.log_posterior)
            for evaluation in chain(fits, map(evaluator.run_roughly, others)):
                with suppress(EvaluationError), self._clock.timed(condition, len(few.y) ** 3):
                    self._rough = evaluation, condition(evaluation, few)
                    break
        return self._rough

    def conditioning_seconds(self, n_rows: int) -> float:
        """Expect how long a kernel is conditioned on rows, 0 if that was not timed."""
        return self._clock.expected_seconds(condition, n_rows**3)

    def _seconds_for_model(self) -> float:
        """Fit roughly and return the seconds to keep for the model, none without a deadline."""
        if self.deadline.seconds_left == np.inf:
            return 0.0
        self.rough(self.deadline.share(SHARE_OF_TIME))
        stage = self.stages[-1]
        is_exact = stage.is_last and stage.approximation is None
        share = 0.1 if is_exact else 0.4  # for draws from the posterior, or fits to all rows
        return self.reserved_seconds + share * max(0.0, self.deadline.seconds_left)

    @property
    def reserved_seconds(self) -> float:
        """Seconds to keep for predictions of the best kernel, if time is limited."""
        return 3 * self.conditioning_seconds(len(self.stages[0].last.y))  # to be safe


def _needed_ahead(
    best_first: Sequence[Evaluation], stage: Stage, *, ends: bool
) -> dict[Evaluation, float]:
    """Return by which kernels the noise is judged, and how far ahead of the best one they must be.

    The best kernel may have absorbed noise, as a product that follows each row, or as a variance at
    gaps. So simple ones are tried as well: noise by itself, the best base kernel, the best sum,
    and, where the search ``ends``, the best kernel without each column that has gaps, and the best
    one with much more noise.
    """
    best = best_first[0]
    every = [(one, one.expression.terms(ADD)) for one in best_first]
    sums = [one for one, terms in every if all(t.n_leaves <= 1 for t in terms)]
    simple = ([o for o in sums if o.expression.n_leaves <= n] for n in (0, 1, np.inf))
    ahead = {some[0]: MIN_AHEAD for some in simple if some}
    if not ends:  # less noise does not show how it varies
        return {one: nats for one, nats in ahead.items() if one.theta[-1] > np.log(1e-3)}
    gaps = [c for c in sorted(best.expression.columns) if stage.columns[c].n_gaps]
    without = ([one for one in best_first if c not in one.expression.columns] for c in gaps)
    ahead |= {some[0]: -MAX_AT_GAPS for some in without if some} | {best: 0.0}
    noisy = [one for one in best_first if one.theta[-1] > best.theta[-1] + MORE_NOISE]
    return dict.fromkeys(noisy[:1], 0.0) | ahead
