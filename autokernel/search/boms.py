"""Bayesian optimisation for model search: Hellinger distances and an active set of candidates."""

import zlib
from collections.abc import Hashable, Sequence
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from autokernel.expression import Expression
from autokernel.search.acquisition import Acquisition, Values
from autokernel.search.bayesian import BayesianStrategy, parents_of
from autokernel.search.distances import HellingerKernel
from autokernel.search.history import History, Phase
from autokernel.search.strategy import Task

_FIRST_STEPS = 5  # steps of the walk from each base kernel before the first proposal


class BOMS(BayesianStrategy):
    """Bayesian optimisation with distances between the priors over functions.

    Parameters
    ----------
    acquisition : {"ei", "ei_per_second", "ucb", "thompson"} or Acquisition, default="ei"
        What to maximise, as for :class:`SOT`.
    n_walks : int, default=15
        Number of random walks that each batch of proposals adds to the candidates.
    n_neighbours : int, default=50
        Largest number of neighbours of the best kernel that each batch adds.
    n_candidates : int, default=600
        Largest number of candidates.
    initial_design : {"default", "paper"}, default="default"
        Initial design, as for :class:`SOT`.

    Notes
    -----
    Malkomes, Schaff and Garnett (2016), *Bayesian optimization for automated model selection*. The
    number of neighbours and the first candidates are as in SOT, appendix D; the first candidates
    include a walk of five steps from each base kernel. The squared Hellinger distance of two
    Gaussians on 20 of the inputs is averaged over 100 draws from the priors of the hyperparameters.
    If there are too many candidates, the oldest are dropped instead of those with the lowest
    expected improvement, so that the candidates depend on the history alone.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **BayesianStrategy._parameter_constraints,
        "n_walks": [Interval(Integral, 1, None, closed="left")],
        "n_neighbours": [Interval(Integral, 1, None, closed="left")],
        "n_candidates": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        acquisition: str | Acquisition = "ei",
        n_walks: int = 15,
        n_neighbours: int = 50,
        n_candidates: int = 600,
        initial_design: str = "default",
    ) -> None:
        self.acquisition = acquisition
        self.n_walks = n_walks
        self.n_neighbours = n_neighbours
        self.n_candidates = n_candidates
        self.initial_design = initial_design

    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> list[Expression]:
        """Choose the candidates of highest acquisition value, fewer where none are left."""
        candidates = self._candidates(task, history)

        def maximise(values: Values, known: Sequence[Expression]) -> Expression | None:
            texts = {expression.canonical for expression in known}
            unknown = [e for e in candidates if e.canonical not in texts]
            return unknown[int(np.argmax(values(unknown)))] if unknown else None

        return self.propose_by_surrogate(
            task, history, _kept(task).kernel_kernel, maximise, n_proposals=n_proposals, rng=rng
        )

    def _candidates(self, task: Task, history: History) -> list[Expression]:
        """Collect the candidates that this and earlier batches add, the latest first."""
        starts = {trial.start for trial in history if trial.phase == Phase.SEARCH}
        found: dict[str, Expression] = {}
        kept: dict[Hashable, list[Expression]] = {}
        for n_searched in sorted({0, *starts, history.n_searched}, reverse=True):
            moment = _moment(task, history.before(n_searched))
            key = (moment, self.n_walks, self.n_neighbours)
            kept[key] = _kept(task).added.get(key) or self._added(task, moment)
            for expression in kept[key]:
                found.setdefault(expression.canonical, expression)
            if len(found) >= self.n_candidates:
                break
        _kept(task).added = kept
        return list(found.values())[: self.n_candidates]

    def _added(self, task: Task, moment: "_Moment") -> list[Expression]:
        """Draw the candidates that a batch adds."""
        rng = np.random.default_rng(moment.seed)
        neighbours = task.grammar.neighbours(moment.best)
        chosen = rng.permutation(len(neighbours))[: self.n_neighbours]
        added = [neighbours[number] for number in chosen]
        added += task.grammar.random_walks(self.n_walks, rng)
        if moment.is_first:
            bases = task.grammar.leaves
            added += [task.grammar.random_walk(base, _FIRST_STEPS, rng) for base in bases]
        return added


class _Moment(NamedTuple):
    """All that the candidates added by a batch depend on."""

    best: Expression  # kernel with the highest score
    is_first: bool  # whether this is the first batch
    seed: int  # checksum of the known kernels


def _moment(task: Task, history: History) -> _Moment:
    """Compute the moment of the batch that is proposed for a history."""
    texts = "\n".join(evaluation.expression.canonical for evaluation in history.evaluations)
    best = parents_of(task, history)[0]
    return _Moment(best, history.n_searched == 0, zlib.crc32(texts.encode()))


class _Kept:
    """Cached values of a task, which depend on the task and a history alone."""

    def __init__(self, task: Task) -> None:
        self.kernel_kernel = HellingerKernel(task.X, priors=task.priors, deadline=task.deadline)
        self.added: dict[Hashable, list[Expression]] = {}  # candidates added by recent batches


def _kept(task: Task) -> _Kept:
    """Return the cached values of a task."""
    return task.cached(BOMS, lambda: _Kept(task))
