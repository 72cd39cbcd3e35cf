"""The loop of a search: initial design, proposals, and the pruning of the best kernel."""

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from typing import NamedTuple
from uuid import uuid4

import numpy as np

from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Estimate, Evaluation
from autokernel.evidence.evaluation import WarmStart
from autokernel.evidence.evaluator import digest
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import (
    COUNT_SCALES,
    NOISE,
    Expression,
    normal_form,
    simplifications,
    without_leaves,
)
from autokernel.kernels import hash_of
from autokernel.search.climb import known_gains
from autokernel.search.columns import MAX_COLUMNS, columns_by_effect, columns_of_products
from autokernel.search.history import History, Phase, StopReason, Trial
from autokernel.search.store import Store
from autokernel.search.strategy import Strategy, Task

DESIGN_STREAM, PROPOSAL_STREAM = 0, 1  # streams of random numbers
N_CHOICES = 2  # of columns, of very many
MAX_NEW_COLUMNS = 15  # that are chosen together
MAX_DESIGNED_LATER = 8  # kernels over the columns that are chosen
MAX_VAIN_FORMS = 5  # estimated simpler forms in a row that are not better, the last of a pruning
MAX_LOSS = 1.0  # nats below the best score by its estimate, at which a simpler kernel is fitted
MAX_LOSS_OF_TARGET = 6.0  # the same of a kernel on another scale of the target
MAX_LOSS_AT_END, MAX_AT_END = 3.0, 8  # the same in the end, for the posterior, and how many


class Observer:
    """Receives the events of a search, and ignores them."""

    verbose: int = 0

    def begin(self, phase: Phase) -> None:
        """React to the begin of a trial."""

    def end(self, history: History) -> bool:
        """React to the end of the last trial in the history; return True to end the search."""
        return False

    def abandon(self) -> None:
        """React to a begun trial for which there was not enough time."""

    def say(self, line: str) -> None:
        """React to what is said of the search, if it is ``verbose``."""

    def finish(self) -> None:
        """React to the end of the search."""


class Search:
    """Evaluates the initial design of a strategy and its proposals, and prunes the best after each.

    The ``design`` is that of the task, that of the strategy, and noise alone on each scale of the
    target. ``n_iter`` kernels follow, as long as the last ``PATIENCE`` ones have gained the ``tol``
    of the task together. Those of a batch are proposed together, from a random stream that the
    trials before it number, and can be evaluated in parallel. Proposals that are in the ``store``
    are read instead of made again. After the design and at its end, the search may :meth:`go_on`
    with other data.
    """

    def __init__(
        self,
        strategy: Strategy,
        task: Task,
        history: History,
        *,
        n_iter: int,
        seed: int,
        batch_size: int = 1,
        store: Store | None = None,
    ) -> None:
        self._strategy, self.task, self._history = strategy, task, history
        self._store, self._n_iter = store or Store(), n_iter
        self._seed, self._batch_size = seed, batch_size
        self._noise = [NOISE.on(target) for target in task.grammar.targets]
        self.expected_improvement = self._left = np.nan  # nats that a kernel may gain at a maximum
        self._began, self._reason = time.perf_counter(), StopReason.EXHAUSTED  # of before
        self._was_short = False  # of time for a kernel
        self._is_designed = self._lacks_designed = False
        self._pruned: Evaluation | None = None  # the best one, whose simpler forms are not better
        self._rescored: list[Estimate] = []  # the best kernels on other data
        design = self._designed()
        start = map(self._plain, map(task.grammar.placed, task.start))
        self.design = (*start, *design, *self._noise)
        self._chooses = not strategy.is_of_series and task.has_many_columns and not design
        self._max_steps = 10 if self._chooses else np.inf  # in vain, after which a climb ends
        self.climbs = strategy.climbs(reduces=task.grammar.reduces)
        self._goes_on = self.climbs or strategy.is_of_series  # from kernels that are known

    def _designed(self, target: str | None = None) -> list[Expression]:
        """Return the design of the strategy, on the scale of new kernels or on this one."""
        grammar = self.task.grammar
        if not grammar.columns:
            return []
        rng = np.random.default_rng([self._seed, DESIGN_STREAM])
        design = self._strategy.design(self.task, rng=rng)
        return [self._plain(grammar.placed(one, target)) for one in design]

    @property
    def n_trials(self) -> int:
        """Largest number of trials; each pruning, and a search on other rows, is one."""
        n_designed = len({one.canonical for one in self.design})
        n_designed += MAX_DESIGNED_LATER * self._chooses
        return n_designed + (1 if self._strategy.is_of_series else self._n_iter + 2)

    def run(
        self,
        evaluate_all: Callable[..., Generator[Evaluation | None, None, None]],
        *,
        deadline: Deadline = NEVER,
        observer: Observer | None = None,
        rough: Evaluation | None = None,
        latest: Deadline | None = None,
        after_design: Callable[[], object] = lambda: None,
    ) -> StopReason:
        """Search until there is a reason to stop, and return it.

        ``evaluate_all`` takes kernels, known fits for warm starts, and a deadline. It yields the
        evaluations in order, also of kernels that cannot be fitted, and None if the time is over.

        Kernels are evaluated given the evaluations on which their proposal was based; those of the
        initial design are given none, and a part of the time. After the deadline nothing is
        proposed; evaluations check the time themselves. If the time does not suffice for the
        design, the kernel of a ``rough`` fit is fitted from its parameters, by the ``latest``
        deadline, and then single base kernels. What is called ``after_design`` may let the search
        go on with other data.
        """
        safe: list[Estimate] = []
        if rough is not None and rough.expression.leaves:
            safe = [Estimate(rough.expression, start=WarmStart.of_fit(rough))]
        deadline = deadline.earlier(0.0)  # which this search may cancel
        self.task = replace(self.task, deadline=deadline)
        observer = observer or Observer()
        with closing(self._batches(safe, latest, after_design)) as batches:
            for batch in batches:
                until = batch.until or deadline
                with closing(evaluate_all(batch.kernels, batch.known, until)) as evaluations:
                    for kernel in batch.kernels:
                        observer.begin(batch.phase)
                        if (evaluation := next(evaluations)) is None:
                            observer.abandon()
                            self._was_short = True
                            if until is deadline or deadline.has_passed:
                                return StopReason.MAX_TIME
                            break  # what is known can still be pruned
                        elapsed = time.perf_counter() - self._began
                        shared = batch.phase, batch.proposal_seconds, elapsed, batch.start
                        proposal = replace(kernel, start=None)
                        self._history.trials.append(Trial(evaluation, proposal, *shared))
                        if observer.end(self._history):
                            return StopReason.CALLBACK
        self._reason = self._reason_to_stop()
        if self._reason is StopReason.LOCAL_MAXIMUM:
            self.expected_improvement = self._left
        return self._reason

    def go_on(self, task: Task, history: History, fits: Sequence[Evaluation]) -> None:
        """Go on with other data, on which the kernels of these fits come first."""
        before = self._history
        times = history.n_samples / before.n_samples

        def again() -> Iterator[Estimate]:
            gains = known_gains(self.task, before)
            for number, fit in enumerate(fits):
                start, known = WarmStart.of_fit(fit, times=times), () if number else gains
                yield Estimate(fit.expression, start=start, gains=known)

        whose = digest(*((one.expression.canonical, one.theta.tobytes()) for one in fits))
        self._rescored = self._remembered(f"kernels of other data {whose}", before, again)
        self._lacks_designed |= bool(self._left_of_design())
        self.expected_improvement = np.nan
        self._n_iter -= before.n_searched
        self.design = ()
        chosen, deadline = self.task.chosen, self.task.deadline
        self.task, self._history = replace(task, chosen=chosen, deadline=deadline), history

    def _reason_to_stop(self) -> StopReason:
        if self._lacks_designed or self._left_of_design():  # for which there was no time
            return StopReason.MAX_TIME
        if self._rescored and not self._goes_on:  # and so has proposed nothing
            return self._reason
        if self._strategy.is_of_series:
            return StopReason.EXHAUSTED
        if self._history.n_searched >= self._n_iter:
            return StopReason.N_ITER
        if self.task.deadline.has_passed:
            return StopReason.MAX_TIME
        if self._has_converged():
            return StopReason.CONVERGED
        kernels = [one.expression for one in self._history.evaluations if one.expression.leaves]
        return StopReason.LOCAL_MAXIMUM if self.task.any_unknown(kernels) else StopReason.EXHAUSTED

    def _has_converged(self) -> bool:
        if self._history.has_converged(self.task.tol, max_steps=self._max_steps):
            return True
        return self.task.shows_no_gain is not None and self.task.shows_no_gain(self._history)

    def _batches(
        self, safe: Sequence[Estimate], latest: Deadline | None, after_design: Callable[[], object]
    ) -> Generator["_KernelBatch", None, None]:
        """Yield the kernels to evaluate next, ``safe`` ones if there is no time for others."""
        try:
            if not self._is_designed:
                yield from self._first_kernels(safe, latest)
                self._is_designed = True
                after_design()
            history = self._history
            if self._rescored:
                yield _KernelBatch(self._rescored[:1], [], Phase.RESCORING, until=latest)
                yield _KernelBatch(self._rescored[1:], history.evaluations, Phase.RESCORING)
            proposes = self._goes_on or not self._rescored
            while True:
                yield from self._pruning()
                n_known = len(history)
                while proposes and (batch := self._proposed()):
                    yield batch
                proposes = self._goes_on
                if left := self._left_of_design():
                    yield _KernelBatch(left, [], Phase.INITIAL)
                if len(history) > n_known:  # then there may be more to prune
                    continue
                if far := self._proposed(is_far=True) if proposes else None:
                    yield far
                    continue
                best = history.best
                yield from self._forms_at_end()
                if history.best is best:
                    return
        except OutOfTimeError:  # in a proposal, whose next step takes longer than what is left
            self.task.deadline.cancel()

    def _forms_at_end(self) -> Iterator["_KernelBatch"]:
        """Yield simpler forms for the posterior over kernels, which rows that are not all lack."""
        others = [] if self.task.shows_no_gain else self._simpler(MAX_LOSS_AT_END)[:MAX_AT_END]
        for begin in range(0, len(others), self._batch_size):
            some = others[begin : begin + self._batch_size]
            yield _KernelBatch(some, self._history.evaluations, Phase.PRUNING)

    def _first_kernels(
        self, safe: Sequence[Estimate], latest: Deadline | None
    ) -> Iterator["_KernelBatch"]:
        """Yield the design, and quick kernels if there is no time for it."""
        history = self._history
        fraction = 1.0 if self._strategy.is_of_series else 0.5  # the rest is for pruning and search
        share = partial(self.task.deadline.share, fraction)
        yield _KernelBatch(self._left_of_design(), [], Phase.INITIAL, until=share())
        try:
            yield from self._choices(share())
        except OutOfTimeError:
            self._was_short = True
        is_known = any(one.expression.leaves for one in history.evaluations)
        if (self._left_of_design() or not is_known) and not self.task.deadline.has_passed:
            quick = history.without_known([*(safe if self._was_short else ()), *self._noise])
            yield _KernelBatch(quick, [], Phase.INITIAL, until=latest)
            if not any(one.expression.leaves for one in history.best_first()):
                others = history.without_known(self.quick)
                yield _KernelBatch(others, [], Phase.INITIAL, until=share())

    def _choices(self, until: Deadline) -> Iterator["_KernelBatch"]:
        """Choose columns of very many, and yield the design over them.

        These are columns of which one more term is estimated to be better than the best kernel,
        first than noise, then than the sum over the first columns, and columns whose products are
        correlated with what that leaves.
        """
        history, task = self._history, self.task
        timed = replace(task, deadline=until)
        for number in range(N_CHOICES if self._chooses else 0):
            if (best := history.best) is None:
                return
            terms = self._remembered("terms", history, partial(timed.with_one_more_term, best))
            used = best.expression.columns
            gaining = [one.expression.columns - used for one in terms if one.score > best.score]
            chosen = used.union(*gaining[:MAX_NEW_COLUMNS])
            target = best.expression.target
            design = [task.with_terms(NOISE.on(target), sorted(chosen))] if chosen else []
            if number == N_CHOICES - 1:
                chosen |= columns_of_products(task.evaluator.data, best, task.grammar.columns)
                self.task = replace(task, chosen=chosen)
                design = self._designed(target)
                design = [one for one in design if one.n_leaves <= max(len(chosen), MAX_COLUMNS)]
                self.design += tuple(design)
            kernels = history.without_known([one for one in design if task.grammar.spans(one)])
            yield _KernelBatch(kernels, [], Phase.INITIAL, until=until)

    def _left_of_design(self) -> list[Estimate]:
        return self._history.without_known(self.design)

    @cached_property
    def quick(self) -> list[Expression]:
        """List single base kernels, those of columns along which a parabola explains most first."""
        columns = columns_by_effect(self.task.evaluator.data, self.task.grammar.columns)
        return sorted(self.task.grammar.bases, key=lambda one: columns.index(min(one.columns)))

    def _proposed(self, *, is_far: bool = False) -> "_KernelBatch | None":
        """Let the strategy propose the next batch; far kernels must promise more than ``tol``."""
        history, strategy, start = self._history, self._strategy, self._history.n_searched
        kernels = [one for one in history if one.evaluation.expression.leaves]
        is_over = start >= self._n_iter or self.task.deadline.has_passed or self._has_converged()
        if is_over or not kernels:
            return None
        began = time.perf_counter()
        before = History(history.n_samples, kernels)  # nothing is learned from noise alone

        def propose() -> Iterator[Estimate]:
            rng = np.random.default_rng([self._seed, PROPOSAL_STREAM, start])
            choose = strategy.propose_far if is_far else strategy.propose
            for one in choose(self.task, before, n_proposals=self._batch_size, rng=rng):
                yield one if isinstance(one, Estimate) else Estimate(self._plain(one))

        what = "far proposals" if is_far else "proposals"
        proposed = self._remembered(what, before, propose)[: self._n_iter - start]
        expected = max((one.expected for one in proposed), default=np.nan)
        if is_far and expected <= self.task.tol:
            self._left, proposed = expected, []
        new = history.without_known(proposed)
        seconds = (time.perf_counter() - began) / max(1, len(new))
        return _KernelBatch(new, before.evaluations, Phase.SEARCH, start, seconds) if new else None

    def _pruning(self) -> Iterator["_KernelBatch"]:
        """Yield simpler forms of what is best after each batch, until several are not better."""
        history, n_vain = self._history, 0
        while history.best is not self._pruned and (
            simpler := self._simpler(MAX_LOSS)[: self._batch_size]
        ):
            best = history.best
            yield _KernelBatch(simpler, history.evaluations, Phase.PRUNING)
            n_estimated = sum(np.isfinite(one.score) for one in simpler)
            n_vain = n_vain + n_estimated if history.best is best else 0
            if n_vain >= MAX_VAIN_FORMS:
                self._pruned = best

    def _simpler(self, max_loss: float) -> list[Estimate]:
        if self._strategy.is_of_series or self.task.deadline.has_passed:
            return []
        find = partial(simpler_than_best, self._history, self.task, max_loss=max_loss)
        return self._remembered(f"kernels that lose {max_loss} nats", self._history, find)

    def _remembered(
        self, what: str, before: History, make: Callable[[], Iterable[Estimate]]
    ) -> list[Estimate]:
        """Read from the store which kernels followed these trials, or make and keep them."""
        key = digest(self._definition, what, *before.definition)
        if (found := self._store.get(key, tuple[Estimate, ...], parse=self.task.parse)) is None:
            found = tuple(make())
            self._store.put(key, found)
        return list(found)

    @cached_property
    def _definition(self) -> str:
        """Digest of all that proposals depend on, besides the history."""
        own = type(self._strategy)
        objects = sorted(self._strategy.get_params().items()), self.task.evaluator.structure_prior
        settings = hash_of(objects) or uuid4().hex  # then they are made again
        strategy = (own.__module__, own.__qualname__, settings)
        return digest(*self.task.definition, strategy, self._seed, self._batch_size)

    def _plain(self, expression: Expression) -> Expression:
        return normal_form(expression) if self.task.grammar.reduces else expression


class _KernelBatch(NamedTuple):
    """Kernels that are evaluated together, with warm starts from the same known fits."""

    kernels: list[Estimate]
    known: list[Evaluation]
    phase: Phase
    start: int = 0  # number of search trials on which the proposal is based
    proposal_seconds: float = 0.0  # of each kernel
    until: Deadline | None = None  # instead of that of the search


def simpler_than_best(history: History, task: Task, *, max_loss: float) -> list[Estimate]:
    """List the simpler forms of the best kernel that are worth a fit, and have had none.

    Those with the highest estimates come first, those without one after others that are estimated
    to be better, and those whose estimate is farther below the best score are left out. Before them
    comes a kernel without all leaves whose removal alone raises the evidence, or without half of
    them if that one is known. The best kernel on other scales counts as one of them, because the
    probabilities of scales need its score. If noise is best, the best kernel is tried on its scale
    and, of counts, on all that they may have: noise with more dispersion hides structures.
    """
    if (best := history.best) is None or not np.isfinite(best.score):
        return []
    if not best.expression.leaves:  # perhaps only because no other kernel is on its scale
        kernels = (one.expression for one in history.best_first() if one.expression.leaves)
        targets = [t for t in task.grammar.targets if t in (best.expression.target, *COUNT_SCALES)]
        on_scale = [one.on(target) for one in islice(kernels, 1) for target in targets]
        return history.without_known([one for one in on_scale if task.grammar.spans(one)])
    forms = [*simplifications(best.expression), *task.grammar.rescalings(best.expression)]
    if not (simpler := history.without_known([one for one in forms if task.grammar.spans(one)])):
        return []
    forms_of_best = [*task.simplifications(best), *task.on_other_scales(best)]
    known = {one.expression.canonical: one for one in forms_of_best}
    found = [known.get(one.expression.canonical, one) for one in simpler]
    losses = np.nan_to_num(best.score - np.array([one.score for one in found]), nan=0.0)
    other = np.array([one.expression.target != best.expression.target for one in found])
    order = np.argsort(losses, kind="stable")
    most = np.where(other, MAX_LOSS_OF_TARGET, max_loss)
    single = [found[number] for number in order if losses[number] <= most[number]]
    return [*_without_useless(best, task, history)[:1], *single]


def _without_useless(best: Evaluation, task: Task, history: History) -> list[Estimate]:
    """List kernels without all leaves whose removal alone raises the evidence, or half of them."""
    least, log_prior = best.score - best.log_structure_prior, task.evaluator.structure_prior
    useless = [
        one.expression
        for one in task.simplifications(best)
        if np.isfinite(one.score) and one.score - log_prior(one.expression) > least
    ]
    leaves = Counter(leaf.canonical for leaf in best.expression.leaves)
    lacking = [leaves - Counter(leaf.canonical for leaf in one.leaves) for one in useless]
    texts = list(dict.fromkeys(text for gone in lacking for text in gone if leaves[text] == 1))
    joint: list[Expression] = []
    while len(texts) > 1:
        if (left := without_leaves(best.expression.tree, frozenset(texts))) is not None:
            joint.append(normal_form(best.expression.with_tree(left)))
        texts = texts[: len(texts) // 2]
    return history.without_known(joint)
