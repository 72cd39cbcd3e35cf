"""What a search strategy is: an initial design, and a next kernel for a history."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from autokernel.expression import Expression, Grammar
from autokernel.search.history import History


@dataclass(frozen=True, slots=True)
class Space:
    """What a search may look at.

    ``base_kernels`` are those of the fixed part of the design, no fewer than the grammar's.
    """

    grammar: Grammar
    n_features: int
    base_kernels: tuple[str, ...]


class Strategy(ABC, BaseEstimator):
    """Proposes kernels; holds parameters, as scikit-learn has them, and no state.

    What it proposes is a function of its arguments alone, so that a search can be continued from
    its history.
    """

    @abstractmethod
    def check_parameters(self) -> None:
        """Raise a ``ValueError`` that names the first parameter that is not valid."""

    @abstractmethod
    def fixed_design(self, space: Space) -> list[Expression]:
        """Kernels to evaluate first, whatever the data are."""

    @abstractmethod
    def random_design(
        self, space: Space, history: History, *, rng: np.random.Generator
    ) -> list[Expression]:
        """Kernels to evaluate next; those already in the history are skipped."""

    @abstractmethod
    def propose(
        self, space: Space, history: History, *, rng: np.random.Generator
    ) -> Expression | None:
        """Choose the next kernel, None where none is left."""
