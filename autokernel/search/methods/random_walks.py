"""Random search, the baseline of all other strategies."""

import numpy as np

from autokernel.expression import Expression
from autokernel.search.history import History
from autokernel.search.strategy import CHOICE_OF_DESIGN, Strategy, Task, draw_unknown


class RandomWalks(Strategy):
    """Random walks from the base kernels, which do not depend on any score.

    Parameters
    ----------
    initial_design : {"default", "paper"}, default="default"
        Initial design, as for :class:`SOT`.

    Notes
    -----
    The walks begin at each base kernel with the same probability. Their lengths have a geometric
    distribution with a mean of three operations.
    """

    _parameter_constraints = CHOICE_OF_DESIGN

    def __init__(self, *, initial_design: str = "default") -> None:
        self.initial_design = initial_design

    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> list[Expression]:
        """Draw walks until enough unknown kernels are found, fewer where no more are left."""
        return draw_unknown(
            lambda: task.grammar.random_walks(1, rng)[0], task, history, n_proposals=n_proposals
        )
