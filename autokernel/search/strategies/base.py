"""What a search strategy is: an initial design, and the next kernels for a history."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

from autokernel.deadline import NEVER, Deadline
from autokernel.expression import Expression, Grammar
from autokernel.kernels import PRESETS, BaseKernel, Priors
from autokernel.search.design import DESIGNS, Design, initial_design
from autokernel.search.history import History
from autokernel.surrogate.acquisition import Acquisition, ExpectedImprovement
from autokernel.typing import FloatArray

Cached = TypeVar("Cached")

_TRIES = 200  # at drawing a kernel that is unknown


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: a task is itself, and holds arrays
class Task:
    """What a search may look at, and what it is to go by."""

    grammar: Grammar
    base_kernels: tuple[BaseKernel, ...]  # of the fixed design, no fewer than the grammar's
    X: FloatArray  # (n_samples, n_features), inputs in the unit interval
    priors: Priors = field(default_factory=lambda: PRESETS["default"])
    acquisition: Acquisition = field(default_factory=ExpectedImprovement)
    deadline: Deadline = NEVER  # a strategy that takes long looks at it
    cache: dict[Hashable, Any] = field(init=False, default_factory=dict)  # of what is computed

    @property
    def n_features(self) -> int:
        """Number of columns, those included that the grammar leaves out."""
        return self.X.shape[1]

    def cached(self, key: Hashable, make: Callable[[], Cached]) -> Cached:
        """Return what a strategy has computed for this task, made where it is not there.

        It must follow from the task, and maybe a history, alone: a search that is continued begins
        with an empty cache.
        """
        if key not in self.cache:
            self.cache[key] = make()
        found: Cached = self.cache[key]
        return found

    def allows(self, expression: Expression) -> bool:
        """Whether an expression may be a parent; a history may hold others, of another grammar."""
        return self.grammar.spans(expression, self.base_kernels)

    def any_unknown(
        self, known: Sequence[Expression], *, max_depth: float = np.inf
    ) -> Expression | None:
        """First base kernel, or kernel next to a known one, that is not known; None if none is."""
        texts = frozenset(expression.canonical for expression in known)
        for base in self.grammar.leaves:
            if base.canonical not in texts:
                return base
        for expression in filter(self.allows, known):
            for neighbour in self.grammar.neighbours(expression):
                if neighbour.canonical not in texts and neighbour.depth <= max_depth:
                    return neighbour
        return None


class Strategy(ABC, BaseEstimator):
    """Proposes kernels; holds parameters, as scikit-learn has them, and no state.

    What it proposes is a function of its arguments alone, so that a search can be continued from
    its history.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @abstractmethod
    def design(self, task: Task, *, rng: np.random.Generator) -> Design:
        """Choose what is evaluated first, whatever the data are."""

    @abstractmethod
    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> list[Expression]:
        """Choose what is evaluated next, together: distinct kernels that the history has not.

        Fewer than ``n_proposals`` where there are no more for now, none where the search is over.
        The first ones do not depend on the number.

        Raises
        ------
        OutOfTimeError
            Once the deadline of the task has passed.
        """


class DesignedStrategy(Strategy):
    """A strategy whose first kernels are a design that the user may choose."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "initial_design": [StrOptions(set(DESIGNS))],
    }

    initial_design: str

    def design(self, task: Task, *, rng: np.random.Generator) -> Design:
        """Choose what is evaluated first, whatever the data are."""
        return initial_design(self.initial_design, task.grammar, task.base_kernels, rng=rng)


def draw_unknown(
    draw: Callable[[], Expression],
    task: Task,
    history: History,
    *,
    n_proposals: int,
    max_depth: float = np.inf,
) -> list[Expression]:
    """Draw until enough kernels are new and within the limits; at last look beside what is known.

    Fewer where no more are left.
    """
    known = [evaluation.expression for evaluation in history.evaluations]
    texts = {expression.canonical for expression in known}
    proposals: list[Expression] = []

    def is_wanted(e: Expression) -> bool:
        fits = e.n_leaves <= task.grammar.max_leaves and e.depth <= max_depth
        return fits and e.canonical not in texts

    while len(proposals) < n_proposals:
        draws = (draw() for _ in range(_TRIES))
        proposal = next(filter(is_wanted, draws), None)
        proposal = proposal or task.any_unknown([*known, *proposals], max_depth=max_depth)
        if proposal is None:
            break
        proposals.append(proposal)
        texts.add(proposal.canonical)
    return proposals
