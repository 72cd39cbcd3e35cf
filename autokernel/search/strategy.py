"""What a search strategy is: an initial design, and the next kernels for a history."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from autokernel.expression import Expression, Grammar
from autokernel.search.design import Design
from autokernel.search.history import History


@dataclass(frozen=True, slots=True)
class Space:
    """What a search may look at.

    ``base_kernels`` are those of the fixed part of the design, no fewer than the grammar's.
    """

    grammar: Grammar
    n_features: int
    base_kernels: tuple[str, ...]

    def allows(self, expression: Expression) -> bool:
        """Whether an expression may be a parent; a history may hold others, of another space."""
        return self.grammar.spans(expression, self.base_kernels)


class Strategy(ABC, BaseEstimator):
    """Proposes kernels; holds parameters, as scikit-learn has them, and no state.

    What it proposes is a function of its arguments alone, so that a search can be continued from
    its history.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @abstractmethod
    def design(self, space: Space, *, rng: np.random.Generator) -> Design:
        """Choose what is evaluated first, whatever the data are."""

    @abstractmethod
    def propose(
        self, space: Space, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> list[Expression]:
        """Choose what is evaluated next, together: distinct kernels that the history has not.

        Fewer than ``n_proposals`` where no more are left. The first ones do not depend on the
        number.
        """
