"""The order in which pruning tries the simpler forms of the best kernel."""

from collections import Counter

import numpy as np

from autokernel.expression import Expression, simplifications
from autokernel.search.history import History, Phase
from autokernel.search.strategies.base import Task

_UNKNOWN = 1.0  # nats that a change is expected to cost before it has been tried

Change = frozenset[tuple[str, int]]
"""Texts of the leaves whose numbers differ, with how many more of them there are."""


def simpler_than_best(history: History, task: Task) -> list[Expression]:
    """List the simpler forms of the best kernel that have not been evaluated.

    The loss of score by the removal of a leaf hardly depends on what else has been removed. What
    was cheap from an earlier best kernel therefore comes first, and what was dear comes last.
    """
    best = history.best
    if best is None or not np.isfinite(best.score):
        return []
    known = _costs_of_changes(history)
    simpler = history.without_known(filter(task.allows, simplifications(best.expression)))
    return sorted(simpler, key=lambda one: known.get(_change(best.expression, one), _UNKNOWN))


def _costs_of_changes(history: History) -> dict[Change, float]:
    """Compute the nats that each change has cost when pruning tried it last."""
    costs: dict[Change, float] = {}
    for trial in history:
        if trial.phase == Phase.PRUNING and trial.start:
            evaluation = trial.evaluation
            before = History(history.n_samples, history.trials[: trial.start]).best
            assert before is not None  # it was pruned
            change = _change(before.expression, evaluation.expression)
            costs[change] = before.score - evaluation.score
    return costs


def _change(before: Expression, after: Expression) -> Change:
    """Compare the leaves of two expressions."""
    counts = Counter(leaf.canonical for leaf in after.leaves)
    counts.subtract(leaf.canonical for leaf in before.leaves)
    return frozenset((text, count) for text, count in counts.items() if count)
