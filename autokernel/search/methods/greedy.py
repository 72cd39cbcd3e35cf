"""Compositional kernel search, which evaluates all neighbours of the best kernel in turn."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from autokernel.expression import Expression
from autokernel.search.history import History
from autokernel.search.strategy import Strategy, Task


class Greedy(Strategy):
    """Compositional kernel search.

    The search evaluates all base kernels first. Then it evaluates, in random order, all kernels
    that are one operation away from the best base kernel, or from ``start_kernel`` if that is
    better. It repeats this step with the best of the new kernels, and ends when no neighbour is
    better. The original uses the Bayesian information criterion:
    ``AutoKernelGPRegressor(strategy="greedy", criterion="bic")``.

    Notes
    -----
    Duvenaud et al. (2013), *Structure discovery in nonparametric regression through compositional
    kernel search*, apply operations to any part of a kernel, as is done here; Kim and Teh (2018),
    *Scaling up the Automatic Statistician*, algorithm 2, apply them only to the whole kernel. A
    batch holds neighbours of only one kernel, and may therefore be shorter than ``batch_size``.

    A kernel of k leaves has up to ``5 k`` neighbours for each base kernel on each column. With SE
    and RQ on 8 columns, one of the 16 base kernels has 47 neighbours, and the best of these has up
    to 94. Many columns need a large ``n_iter``.
    """

    def design(self, task: Task, *, rng: np.random.Generator) -> tuple[Expression, ...]:
        return task.grammar.bases

    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> list[Expression]:
        """Choose neighbours that have not been evaluated; none at a local maximum."""
        scores = {e.expression.canonical: e.score for e in history.evaluations}
        candidates: Sequence[Expression] = (*task.start, *task.grammar.bases)
        highest: float | None = None
        while True:
            if unknown := [e for e in candidates if e.canonical not in scores]:
                return [unknown[number] for number in rng.permutation(len(unknown))[:n_proposals]]
            best = max(candidates, key=lambda e: scores[e.canonical], default=None)
            if best is None or (highest is not None and scores[best.canonical] <= highest):
                return []
            highest = scores[best.canonical]
            candidates = task.grammar.neighbours(best)


class SKC(Greedy):
    """Scalable kernel composition: compositional kernel search with bounds instead of scores.

    Kernels are evaluated on up to 4096 rows, where an exact search would take hours. The score of a
    kernel is a lower bound by few inducing points, and ``search_history_["upper_bound"]`` has an
    upper bound. As long as the two enclose the best score so far, the number of inducing points is
    doubled, up to ``n_inducing``; a kernel that cannot win is dropped earlier. The best kernels are
    then fitted to all rows as after any other search.

    Notes
    -----
    Kim and Teh (2018), *Scaling up the Automatic Statistician: scalable structure discovery using
    Gaussian processes*. The paper scores by the Bayesian information criterion:
    ``AutoKernelGPRegressor(strategy="skc", criterion="bic")``. It refines all kernels of a round
    together; here they are refined one after the other, against the best one before the round or
    the batch. Operations apply to any part of a kernel, as in :class:`Greedy`.
    """

    scores_by_bounds: ClassVar[bool] = True
