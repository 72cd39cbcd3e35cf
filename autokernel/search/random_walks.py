"""Random search: the baseline of all others."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from autokernel.expression import Expression
from autokernel.search.design import DESIGNS, Design, initial_design
from autokernel.search.history import History
from autokernel.search.strategy import Strategy, Task

_TRIES = 100  # at a walk that ends at an unknown kernel


class RandomWalks(Strategy):
    """Random walks from the base kernels; learns nothing.

    Parameters
    ----------
    initial_design : {"default", "paper"}, default="default"
        As for :class:`SOT`.

    Notes
    -----
    The walks begin at each base kernel with the same probability; their lengths are geometric,
    three operations on average.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "initial_design": [StrOptions(set(DESIGNS))],
    }

    def __init__(self, *, initial_design: str = "default") -> None:
        self.initial_design = initial_design

    def design(self, task: Task, *, rng: np.random.Generator) -> Design:
        """Choose what is evaluated first, whatever the data are."""
        return initial_design(self.initial_design, task.grammar, task.base_kernels, rng=rng)

    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> list[Expression]:
        """Walk until enough unknown kernels are found, fewer where no more are left."""
        known = [evaluation.expression for evaluation in history.evaluations]
        proposals: list[Expression] = []
        while len(proposals) < n_proposals:
            proposal = self._walk_to_unknown(task, [*known, *proposals], rng)
            if proposal is None:
                break
            proposals.append(proposal)
        return proposals

    def _walk_to_unknown(
        self, task: Task, known: list[Expression], rng: np.random.Generator
    ) -> Expression | None:
        """Walk, again and again; at last look beside what is known."""
        texts = {expression.canonical for expression in known}
        for _ in range(_TRIES):
            [found] = task.grammar.random_walks(1, rng)
            if found.canonical not in texts:
                return found
        return task.any_unknown(known)
