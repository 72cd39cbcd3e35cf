"""Random search: the baseline of all others."""

import numpy as np

from autokernel.expression import Expression
from autokernel.search.history import History
from autokernel.search.strategies.base import DesignedStrategy, Task, draw_unknown


class RandomWalks(DesignedStrategy):
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

    def __init__(self, *, initial_design: str = "default") -> None:
        self.initial_design = initial_design

    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> list[Expression]:
        """Walk until enough unknown kernels are found, fewer where no more are left."""

        def walk() -> Expression:
            return task.grammar.random_walks(1, rng)[0]

        return draw_unknown(walk, task, history, n_proposals=n_proposals)
