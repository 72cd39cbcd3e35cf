"""Compositional kernel search: the neighbours of the best kernel, then those of their best."""

from collections.abc import Sequence

import numpy as np

from autokernel.expression import Expression
from autokernel.search.design import Design
from autokernel.search.history import History
from autokernel.search.strategies.base import Strategy, Task


class Greedy(Strategy):
    """Compositional kernel search.

    First all base kernels; then, in random order, all kernels that are one operation away from the
    best of them; then those next to the best of these, and so on. The search ends where no
    neighbour is better. The original goes by the Bayesian information criterion:
    ``AutoKernelGPRegressor(strategy="greedy", criterion="bic")``.

    Notes
    -----
    Duvenaud et al. (2013), *Structure discovery in nonparametric regression through compositional
    kernel search*, with operations on any part of a kernel; Kim and Teh (2018), *Scaling up the
    Automatic Statistician*, algorithm 2, has them on the whole alone. The neighbours of one kernel
    are the last ones of a batch.

    A kernel of k leaves has up to ``5 k`` neighbours for each base kernel on each column: with SE
    and RQ on 8 columns 47 beside one of the 16 base kernels, then 94. Many columns ask for a large
    ``n_iter``.
    """

    def design(self, task: Task, *, rng: np.random.Generator) -> Design:  # noqa: ARG002 - all bases
        """Begin with the base kernels."""
        bases = task.grammar.leaves
        return Design(bases, (), len(bases))

    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> list[Expression]:
        """Choose among the neighbours that have not been evaluated; none at a local maximum."""
        scores = {e.expression.canonical: e.score for e in history.evaluations}
        candidates: Sequence[Expression] = task.grammar.leaves
        highest: float | None = None
        while True:
            missing = [e for e in candidates if e.canonical not in scores]
            if missing:
                return [missing[number] for number in rng.permutation(len(missing))[:n_proposals]]
            best = max(candidates, key=lambda e: scores[e.canonical], default=None)
            if best is None or (highest is not None and scores[best.canonical] <= highest):
                return []
            highest = scores[best.canonical]
            candidates = task.grammar.neighbours(best)
