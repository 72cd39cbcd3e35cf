"""Bayesian optimisation with symbolical optimal transport."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from autokernel.evidence import Estimate
from autokernel.expression import Expression
from autokernel.search.acquisition import Acquisition, Belief, Values
from autokernel.search.bayesian import (
    STD_OF_ESTIMATES,
    BayesianStrategy,
    evolve,
    nats_to_gain,
    parents_of,
    surrogate_below,
    warped,
)
from autokernel.search.climb import SMALLEST_TOL, Climb
from autokernel.search.distances import SOTKernel
from autokernel.search.history import History
from autokernel.search.strategy import AT_LEAST_ONE, Task
from autokernel.search.surrogate import KernelKernel

N_PARENTS = 10  # best kernels with neighbours in the first generation
N_OFFSPRING = 4  # of each survivor of a generation
N_GENERATIONS = 3  # after a climb
MAX_ROUNDS, N_ESTIMATED = 3, 10  # kernels of high acquisition value that are estimated in each
MAX_JUDGED = 60  # kernels of high acquisition value


@dataclass(kw_only=True, eq=False, repr=False)  # for its __init__; the rest is of BaseEstimator
class SOT(BayesianStrategy):
    """Bayesian optimisation over expressions with the SOT kernel, which climbs between its jumps.

    Parameters
    ----------
    acquisition : {"ei", "ucb", "thompson"} or Acquisition, default="ei"
        What to maximise: the expected improvement, an upper confidence bound, or a draw from the
        posterior; or an object such as ``UpperConfidenceBound(kappa=3)``.
    population_size : int, default=100
        Number of expressions in the first generation of the evolution, which maximises
        ``acquisition``. A fifth of a generation survives, with four offspring each.
    local_steps : bool or "auto", default="auto"
        Whether the search climbs: the scores of kernels one operation away from the best ones are
        estimated, and those with the highest acquisition values are proposed. ``"auto"`` is True
        unless the estimator has ``structure_prior=None``.
    initial_design : {"default", "paper"}, default="default"
        ``"default"`` is what a person would try first, about five kernels, and for one or two
        columns every base kernel. ``"paper"`` is every base kernel on every column, and two random
        operations from each.

    Notes
    -----
    With ``local_steps=False`` and ``initial_design="paper"``: Bitzer, Meister and Zimmer (2022),
    *Structural kernel search via Bayesian optimization and symbolical optimal transport*,
    algorithms 1 and 2, with six generations for one column and ten for more. The first generation
    holds random walks from the base kernels and neighbours of the best kernels so far.

    The climb is not theirs. The last gain of a change says whether it is estimated for the next
    kernel; in the end all changes of the best kernel are. A Gaussian process over changes of
    kernels learns the errors of estimates. Where the climb ends, another one with their kernel has
    all scores and estimates near the best kernel, and says by how much a kernel anywhere is
    expected to be better. Evolution finds where that is most; such kernels are estimated and, if
    they still promise ``tol``, fitted. Otherwise the search ends.
    """

    _kernel_kernel: ClassVar[type[KernelKernel]] = SOTKernel
    """The kernel between expressions."""

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **BayesianStrategy._parameter_constraints,
        "population_size": AT_LEAST_ONE,
        "local_steps": [StrOptions({"auto"}), "boolean"],
    }

    acquisition: str | Acquisition = "ei"
    population_size: int = 100
    local_steps: bool | str = "auto"
    initial_design: str = "default"

    def climbs(self, *, reduces: bool) -> bool:
        """Whether it takes local steps; the algorithm of the paper has none."""
        return reduces if self.local_steps == "auto" else bool(self.local_steps)

    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> Sequence[Expression | Estimate]:
        """Choose the kernels of highest acquisition value, fewer where no more are left."""
        if self.climbs(reduces=task.grammar.reduces) and history.best_first():
            climb = Climb(task, history, self._resolve_acquisition(), rng)
            return climb.steps()[:n_proposals]

        def maximise(values: Values, known: Sequence[Expression]) -> Expression | None:
            excluded = frozenset(expression.canonical for expression in known)
            found = self._evolved(values, task, history, rng)
            return next((one for one in found if one.canonical not in excluded), None)

        kernel_kernel = task.cached(self._kernel_kernel, self._kernel_kernel)
        return self.propose_by_surrogate(
            task, history, kernel_kernel, maximise, n_proposals=n_proposals, rng=rng
        )

    def _evolved(
        self, values: Values, task: Task, history: History, rng: np.random.Generator
    ) -> list[Expression]:
        """Search kernels of high acquisition value by evolution, the best first."""
        n_generations = 6 if len(task.grammar.columns) == 1 else 10  # SOT, appendix D
        if self.climbs(reduces=task.grammar.reduces):
            n_generations = N_GENERATIONS
        parents = parents_of(task, history)[:N_PARENTS]
        n_walks = self.population_size // 2  # the others are neighbours of the best kernels
        some = islice(cycle(parents), self.population_size - n_walks)
        neighbours = [task.grammar.random_neighbour(parent, rng) for parent in some]
        return evolve(
            values,
            task,
            [*task.grammar.random_walks(n_walks, rng), *neighbours],
            n_survivors=max(1, self.population_size // (N_OFFSPRING + 1)),
            n_offspring=N_OFFSPRING,
            n_generations=n_generations,
            rng=rng,
        )

    def propose_far(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> list[Estimate]:
        """Choose the kernels of highest acquisition value of those that are expected to gain tol.

        A Gaussian process has the scores so far, and estimates: those near the best kernel, and
        those of promising kernels among the ones that evolution finds. If none is left, the one
        that is expected to gain most is the only one. Gains are those over the best kernel that is
        not noise alone; the kernels of a batch may be similar.
        """
        fits = [one for one in history.best_first() if task.grammar.spans(one.expression)]
        if not (fits and self.climbs(reduces=task.grammar.reduces)):
            return []
        best, known, least = fits[0], history.canonical_texts(), task.tol or SMALLEST_TOL
        near = task.neighbours(best, {*task.near(best.expression)} - known)
        near = [one for one in near if np.isfinite(one.score)]
        estimates = {one.expression.canonical: one for one in near}
        kernel = task.cached(self._kernel_kernel, self._kernel_kernel)
        acquisition = self._resolve_acquisition()
        surrogate = surrogate_below(best.score, [*fits, *near], kernel)
        values = acquisition.values(Belief(surrogate, 0.0, rng))
        focused = replace(task, grammar=task.focus(best.expression.columns))
        found = self._evolved(values, focused, history, rng)
        found = [one for one in found if one.canonical not in known][:MAX_JUDGED]
        if not found:
            return []
        for _ in range(MAX_ROUNDS):
            gains = nats_to_gain(*surrogate.predict(found))
            promising = [one for one, gain in zip(found, gains, strict=True) if gain > least]
            new = [one for one in promising if one.canonical not in estimates][:N_ESTIMATED]
            others = [one for one in task.farther(best, new, history) if np.isfinite(one.score)]
            if not others:
                break
            estimates |= {one.expression.canonical: one for one in others}
            surrogate = surrogate.given(
                [one.expression for one in others],
                warped(best.score, [one.score for one in others]),
                STD_OF_ESTIMATES**2,
            )
        gains = nats_to_gain(*surrogate.predict(found))
        order = np.argsort(-acquisition.values(Belief(surrogate, 0.0, rng))(found), kind="stable")
        steps = [n for n in order if gains[n] > least] or [int(np.argmax(gains))]
        return [
            replace(estimates.get(found[n].canonical, Estimate(found[n])), expected=float(gains[n]))
            for n in steps[:n_proposals]
        ]
