"""Bayesian optimisation for model search: Hellinger distances and an active set of candidates."""

import zlib
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from autokernel.expression import Expression
from autokernel.search.bayesian import parents_of, propose_by_surrogate
from autokernel.search.design import DESIGNS, Design, initial_design
from autokernel.search.history import History
from autokernel.search.strategy import Strategy, Task
from autokernel.surrogate.acquisition import Values
from autokernel.surrogate.kernel_kernels import HellingerKernel

_FIRST_STEPS = 5  # of a walk from each base kernel before the first proposal


class BOMS(Strategy):
    """Bayesian optimisation with distances between the priors over functions.

    Parameters
    ----------
    n_walks : int, default=15
        Random walks that each proposal adds to the candidates.
    n_neighbours : int, default=50
        Most neighbours of the best kernel that it adds.
    n_candidates : int, default=600
        Most candidates.
    initial_design : {"default", "paper"}, default="default"
        As for :class:`SOT`.

    Notes
    -----
    Malkomes, Schaff and Garnett (2016), *Bayesian optimization for automated model selection*. The
    number of neighbours is that of SOT, appendix D, and so are the first candidates, which hold a
    walk of five steps from each base kernel. The squared Hellinger distance of two Gaussians on 20
    of the inputs is averaged over 100 draws from the priors of the hyperparameters. Where there
    would be too many candidates, the oldest are dropped and not those of the lowest expected
    improvement: so the candidates depend on nothing but the history.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_walks": [Interval(Integral, 1, None, closed="left")],
        "n_neighbours": [Interval(Integral, 1, None, closed="left")],
        "n_candidates": [Interval(Integral, 1, None, closed="left")],
        "initial_design": [StrOptions(set(DESIGNS))],
    }

    def __init__(
        self,
        *,
        n_walks: int = 15,
        n_neighbours: int = 50,
        n_candidates: int = 600,
        initial_design: str = "default",
    ) -> None:
        self.n_walks = n_walks
        self.n_neighbours = n_neighbours
        self.n_candidates = n_candidates
        self.initial_design = initial_design

    def design(self, task: Task, *, rng: np.random.Generator) -> Design:
        """Choose what is evaluated first, whatever the data are."""
        return initial_design(self.initial_design, task.grammar, task.base_kernels, rng=rng)

    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> list[Expression]:
        """Choose the candidates of highest acquisition value, fewer where none are left."""
        candidates = self._candidates(task, history)

        def maximise(values: Values, known: Sequence[Expression]) -> Expression | None:
            texts = {expression.canonical for expression in known}
            unknown = [e for e in candidates if e.canonical not in texts]
            return unknown[int(np.argmax(values(unknown)))] if unknown else None

        return propose_by_surrogate(
            task, history, _kernel_kernel(task), maximise, n_proposals=n_proposals, rng=rng
        )

    def _candidates(self, task: Task, history: History) -> list[Expression]:
        """Gather what this proposal and those before have added, the latest first."""
        found: dict[str, Expression] = {}
        for n_searched in range(history.n_searched, -1, -1):
            before = history.before(n_searched)
            rng = _stream(before)
            best = parents_of(task, before)[0]
            neighbours = task.grammar.neighbours(best)
            chosen = rng.permutation(len(neighbours))[: self.n_neighbours]
            added = [
                *(neighbours[place] for place in chosen),
                *task.grammar.random_walks(self.n_walks, rng),
            ]
            if n_searched == 0:
                bases = task.grammar.leaves
                added += [task.grammar.random_walk(base, _FIRST_STEPS, rng) for base in bases]
            for expression in added:
                found.setdefault(expression.canonical, expression)
            if len(found) >= self.n_candidates:
                break
        return list(found.values())[: self.n_candidates]


def _stream(history: History) -> np.random.Generator:
    """Random numbers that depend on the kernels of a history alone."""
    texts = "\n".join(evaluation.expression.canonical for evaluation in history.evaluations)
    return np.random.default_rng(zlib.crc32(texts.encode()))


_kernel_kernels: WeakKeyDictionary[Task, HellingerKernel] = WeakKeyDictionary()


def _kernel_kernel(task: Task) -> HellingerKernel:
    """Return the kernel between expressions of a task; it keeps distances while the task lives."""
    if task not in _kernel_kernels:
        _kernel_kernels[task] = HellingerKernel(
            task.X, priors=task.priors, rng=None, deadline=task.deadline
        )
    return _kernel_kernels[task]
