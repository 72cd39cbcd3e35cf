"""The order in which pruning tries the simpler forms of the best kernel."""

from collections import Counter

import numpy as np

from autokernel.expression import Expression, simplifications
from autokernel.search.history import History, Phase
from autokernel.search.strategies.base import Task

_UNKNOWN = 1.0  # nats of loss that are expected of a change that has not been tried

Change = frozenset[tuple[str, int]]
"""Texts of the leaves whose numbers differ, with how many more of them there are."""


def simpler_than_best(history: History, task: Task) -> list[Expression]:
    """List the simpler forms of the best kernel that have not been evaluated.

    The loss of score by the removal of a leaf hardly depends on what else has been removed. So the
    changes come in the order of the losses that they caused in earlier best kernels, the smallest
    loss first.
    """
    best = history.best
    if best is None or not np.isfinite(best.score):
        return []
    known = _losses_of_changes(history)
    simpler = history.without_known(filter(task.allows, simplifications(best.expression)))
    return sorted(simpler, key=lambda one: known.get(_change(best.expression, one), _UNKNOWN))


def _losses_of_changes(history: History) -> dict[Change, float]:
    """Compute the loss of score, in nats, by each change that pruning has tried."""
    losses: dict[Change, float] = {}
    for trial in history:
        if trial.phase == Phase.PRUNING and trial.start:
            evaluation = trial.evaluation
            before = History(history.n_samples, history.trials[: trial.start]).best
            assert before is not None  # it was pruned
            change = _change(before.expression, evaluation.expression)
            losses[change] = before.score - evaluation.score
    return losses


def _change(before: Expression, after: Expression) -> Change:
    """Compare the leaves of two expressions."""
    counts = Counter(leaf.canonical for leaf in after.leaves)
    counts.subtract(leaf.canonical for leaf in before.leaves)
    return frozenset((text, count) for text, count in counts.items() if count)
