"""The interface of search strategies: an initial design, and proposals given a history."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import chain, product
from numbers import Integral
from operator import add
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from autokernel.data import NO_SERIES, Series
from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Estimate, Evaluation, Evaluator
from autokernel.expression import (
    Expression,
    Grammar,
    Leaf,
    Tree,
    arranged,
    custom_parts,
    factorings,
    moves,
    numbered_like,
    parse_with_parts,
    simplifications,
    with_leaves,
    with_numbers,
)
from autokernel.kernels import ADD, LINEAR, MULTIPLY, SMOOTH
from autokernel.search.columns import MAX_COLUMNS
from autokernel.search.design import default_design, grown_kernels
from autokernel.search.history import History

Cached = TypeVar("Cached")

AT_LEAST_ONE = [Interval(Integral, 1, None, closed="left")]  # constraint of a parameter
CHOICE_OF_DESIGN: dict[str, list[Any] | str] = {
    "initial_design": [StrOptions({"default", "paper"})]
}
MAX_CHANGES = 800  # of one kernel whose results are estimated
MAX_LEAVES_OF_LINES = 4  # of a kernel of which a part moves while curves become lines
MAX_MOVED = 10  # leaves of a kernel of which a part moves


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: a field holds arrays
class Task:
    """The space of kernels, the evaluator with the data, and the settings of a search."""

    grammar: Grammar
    evaluator: Evaluator  # of the data of the search
    start: tuple[Expression, ...] = ()  # kernels that every design begins with
    tol: float = 0.05  # nats of score that are worth a longer search
    series: Series = NO_SERIES
    deadline: Deadline = NEVER  # slow strategies must check it
    shows_no_gain: Callable[[History], bool] | None = None  # whether other rows show no gain
    chosen: frozenset[int] = frozenset()  # columns that matter, of very many
    cache: dict[Hashable, Any] = field(init=False, default_factory=dict)  # values of :meth:`cached`

    def cached(self, key: Hashable, make: Callable[[], Cached]) -> Cached:
        """Return a cached value of a strategy, or make and cache it.

        The value may depend only on the task and a history, because a search that is repeated
        begins with an empty cache.
        """
        if key not in self.cache:
            self.cache[key] = make()
        return self.cache[key]

    @property
    def has_many_columns(self) -> bool:
        """Whether most kernels are over columns that are chosen during the search."""
        return len(self.grammar.columns) > MAX_COLUMNS and ADD in self.grammar.operators

    def focus(self, columns: AbstractSet[int] = frozenset()) -> Grammar:
        """Return the grammar, of the chosen and the given columns if there are many."""
        if not self.has_many_columns:
            return self.grammar
        kept = self.chosen | columns
        return self.cached(("focus", kept), lambda: self.grammar.on_columns(kept))

    @property
    def definition(self) -> tuple[object, ...]:
        """Texts and numbers that identify the task, except for structure prior and deadline."""
        start = tuple(map(str, self.start))
        return (self.evaluator.fingerprint(), *self.grammar.definition, start, float(self.tol))

    def parse(self, text: str) -> Expression:
        """Read the text of a kernel whose parts are in the grammar or in a kernel of the start."""
        grammar, others = self.grammar, custom_parts(self.start)
        return parse_with_parts(text, [*grammar.base_kernels, *grammar.operators, *others])

    def neighbours(self, fit: Evaluation, texts: AbstractSet[str]) -> list[Estimate]:
        """Estimate the scores of kernels one operation away from a fitted one, best first.

        These are those of :meth:`near` with canonical texts in ``texts``. An estimate depends on
        which others are made in the same call: a search that is repeated must make the same calls
        in the same order.
        """
        changes = self._changes_of(fit.expression)
        wanted = {text: changes[text] for text in changes if text in texts}
        return self._estimated(fit, wanted, kind="neighbours")

    def simplifications(self, fit: Evaluation) -> list[Estimate]:
        """Estimate the scores of the simpler forms of a fitted kernel."""
        near, forms = self._changes_of(fit.expression), dict[str, list[Expression]]()
        for one in simplifications(with_numbers(fit.expression)):
            forms[one.canonical] = near.get(one.canonical) or [arranged(one)]
        return self._estimated(fit, forms, kind="simpler forms")

    def on_other_scales(self, fit: Evaluation) -> list[Estimate]:
        """Estimate the scores of a fitted kernel on other scales of the target or of a column."""
        rescaled = self.rescalings(with_numbers(fit.expression))
        return self._estimated(fit, {one.canonical: [one] for one in rescaled}, kind="scales")

    def with_one_more_term(self, fit: Evaluation) -> list[Estimate]:
        """Estimate the scores of a kernel with one more term, on any column that it lacks."""
        terms = self._terms_of(with_numbers(fit.expression))
        return self._estimated(fit, {one.canonical: [arranged(one)] for one in terms}, kind="terms")

    def farther(
        self, fit: Evaluation, kernels: Iterable[Expression], history: History
    ) -> list[Estimate]:
        """Estimate the scores of kernels that may be several operations away from a fitted one."""
        parent = with_numbers(fit.expression)
        forms = {one.canonical: [numbered_like(arranged(one), parent)] for one in kernels}
        return self._estimated(fit, forms, kind=f"beyond {len(history)} trials")

    def _estimated(
        self, fit: Evaluation, changes: Mapping[str, Sequence[Expression]], *, kind: str
    ) -> list[Estimate]:
        """Estimate arranged kernels, to each of which some changes of a fitted one lead, once.

        Those of another kind, which a search that is repeated may not make, do not change them.
        """
        known = self._estimates_of(fit, kind)
        if new := [text for text in changes if text not in known]:
            changed = [one for text in new for one in changes[text]]
            estimates = self.evaluator.estimate_changes(fit, changed, self.deadline)
            known |= dict.fromkeys(new)  # those that fail have none
            known |= {one.expression.canonical: one for one in estimates}
        found = [one for one in map(known.get, changes) if one is not None]
        return sorted(found, key=lambda one: (-one.score, one.expression.canonical))

    def known_neighbours(self, fit: Evaluation) -> list[Estimate]:
        """Return the estimates of kernels near a fitted one that have already been made."""
        return [one for one in self._estimates_of(fit, "neighbours").values() if one is not None]

    def _estimates_of(self, fit: Evaluation, kind: str) -> dict[str, Estimate | None]:
        """Return the estimates of a kind so far, by canonical text; None for failures."""
        return self.cached((kind, fit.expression.canonical, fit.theta.tobytes()), dict)

    def near(self, expression: Expression) -> dict[str, Expression]:
        """Return the kernels one operation or scale away, by text; of very many only some."""
        return {text: ways[0] for text, ways in self._changes_of(expression).items()}

    def _changes_of(self, expression: Expression) -> dict[str, list[Expression]]:
        """Return the changes of a kernel, arranged, by text; those of one may keep other leaves."""

        def make() -> dict[str, list[Expression]]:
            parent, grammar = with_numbers(expression), self.grammar
            rescaled = {one.canonical: [one] for one in self.rescalings(parent)}
            if not expression.leaves:  # noise stands alone
                return rescaled
            focus, added = self.focus(parent.columns), self._terms_of(parent)
            changes: dict[str, dict[tuple[int | None, ...], Expression]] = {}
            tree = parent.tree
            brackets = chain(factorings(tree), self._moves(tree)) if grammar.reduces else ()
            others = map(grammar.tidy, map(parent.with_tree, brackets))
            for one in chain(focus.changes(parent, MAX_CHANGES), added, others):
                if one.canonical not in rescaled and one.canonical != parent.canonical:
                    form = arranged(one)
                    ways = changes.setdefault(one.canonical, {})
                    ways.setdefault(tuple(leaf.number for leaf in form.leaves), form)
            return {text: [*ways.values()] for text, ways in changes.items()} | rescaled

        return self.cached(("changes", expression.canonical), make)

    def _moves(self, tree: Tree) -> Iterator[Tree]:
        """Yield moves of parts; of few leaves also with lines in place of a curve, or of all."""
        if not {ADD, MULTIPLY} <= {*self.grammar.operators} or tree.n_leaves > MAX_MOVED:
            return
        curves = [one for one in tree.leaves if _line_of(one) in self.grammar.leaves]
        curves = [one for one in curves if one.kernel != LINEAR]
        straight: list[set[int | None]] = [set()]
        if tree.n_leaves <= MAX_LEAVES_OF_LINES:
            straight += [{one.number} for one in curves] + [{one.number for one in curves}]
        for moved, numbers in product(moves(tree), straight):
            yield with_leaves(moved, partial(_straightened, numbers=numbers)).tree

    def rescalings(self, expression: Expression) -> list[Expression]:
        """List the arranged kernels on other scales of the target or of a column."""
        rescalings = map(self.grammar.tidy, self.grammar.rescalings(expression))
        return [arranged(one) for one in rescalings]

    def _terms_of(self, expression: Expression) -> list[Expression]:
        """List sums of a kernel and of a smooth term, on each column that it lacks, if many."""
        columns = self.grammar.columns if self.has_many_columns else ()
        return [self.with_terms(expression, [c]) for c in columns if c not in expression.columns]

    def with_terms(self, expression: Expression, columns: Iterable[int]) -> Expression:
        """Return the sum of a kernel and of smooth terms on other columns."""
        smooth = self.cached("smooth", self._smooth_by_column)
        terms = [*expression.terms(ADD), *(smooth[column] for column in columns)]
        return expression.with_tree(reduce(add, terms))

    def _smooth_by_column(self) -> dict[int, Leaf]:
        """Return the first smooth base kernel of each column, or its first one."""
        leaves = [base.leaves[0] for base in reversed(self.grammar.bases)]
        leaves.sort(key=lambda leaf: leaf.kernel == SMOOTH)  # the last of a column counts
        return {leaf.column: leaf for leaf in leaves}

    def any_unknown(
        self, known: Sequence[Expression], *, max_depth: float = np.inf
    ) -> Expression | None:
        """Return the first unknown base kernel or neighbour of a known kernel, or None."""
        texts = frozenset(expression.canonical for expression in known)
        near = chain.from_iterable(map(self.grammar.neighbours, filter(self.grammar.spans, known)))
        every = chain(self.grammar.bases, (one for one in near if one.depth <= max_depth))
        return next((one for one in every if one.canonical not in texts), None)


def _line_of(leaf: Leaf) -> Leaf:
    return replace(leaf, kernel=LINEAR, number=None)


def _straightened(leaf: Leaf, numbers: AbstractSet[int | None]) -> Leaf:
    return _line_of(leaf) if leaf.number in numbers else leaf


class Strategy(ABC, BaseEstimator):
    """Proposes kernels; a strategy has scikit-learn parameters and no state.

    The proposals depend only on the arguments, so that a search can be repeated.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {}
    initial_design: str = "default"
    scores_by_bounds: ClassVar[bool] = False
    """Whether scores are lower bounds on many rows, next to upper bounds."""
    is_of_series: ClassVar[bool] = False
    """Whether a fit averages a few kernels that forecast a series, and searches no others."""

    def climbs(self, *, reduces: bool) -> bool:
        """Whether it goes from a good kernel to better ones, of normal forms if it ``reduces``."""
        return False

    def design(self, task: Task, *, rng: np.random.Generator) -> tuple[Expression, ...]:
        """Choose the kernels to evaluate first, without looking at the targets."""
        if self.initial_design == "paper":
            return grown_kernels(task.grammar, rng=rng)
        grammar = task.focus()
        return default_design(grammar) if grammar.columns else ()

    @abstractmethod
    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> Sequence[Expression | Estimate]:
        """Choose the next batch: distinct kernels that are not in the history.

        They must be what ``task.grammar.tidy`` makes of them.

        The list is shorter than ``n_proposals`` if no more are left for now, and empty if the
        search is over. The first proposals do not depend on ``n_proposals``.

        Raises
        ------
        OutOfTimeError
            If the deadline of the task has passed.
        """

    def propose_far(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> Sequence[Estimate]:
        """Choose kernels where :meth:`propose` has none left, each with its ``expected`` gain."""
        return ()


def draw_unknown(
    draw: Callable[[], Expression],
    task: Task,
    history: History,
    *,
    n_proposals: int,
    max_depth: float = np.inf,
) -> list[Expression]:
    """Draw new kernels within the limits; if draws find none, take unknown neighbours, if any."""
    known = [evaluation.expression for evaluation in history.evaluations]
    texts = {expression.canonical for expression in known}
    proposals: list[Expression] = []
    while len(proposals) < n_proposals:
        draws = (draw() for _ in range(200))
        small = (e for e in draws if e.n_leaves <= task.grammar.max_leaves and e.depth <= max_depth)
        proposal = next((e for e in small if e.canonical not in texts), None)
        proposal = proposal or task.any_unknown([*known, *proposals], max_depth=max_depth)
        if proposal is None:
            break
        proposals.append(proposal)
        texts.add(proposal.canonical)
    return proposals
