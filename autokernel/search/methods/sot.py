"""Bayesian optimisation with symbolical optimal transport."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr
from sklearn.utils._param_validation import StrOptions

from autokernel.evidence import Estimate, Evaluation
from autokernel.expression import Expression
from autokernel.search.acquisition import Acquisition, Belief
from autokernel.search.climb import SMALLEST_TOL, Climb
from autokernel.search.distances import SOTKernel
from autokernel.search.history import History
from autokernel.search.methods.bayesian import BayesianStrategy, parents_of
from autokernel.search.strategy import AT_LEAST_ONE, Task
from autokernel.search.surrogate import KernelKernel, SurrogateGP
from autokernel.typing import FloatArray

N_PARENTS = 10  # best kernels with neighbours in the first generation
N_OFFSPRING = 4  # of each survivor of a generation
N_GENERATIONS = 3  # after a climb
MAX_ROUNDS, N_ESTIMATED = 3, 10  # kernels of high acquisition value that are estimated in each
MAX_JUDGED = 60  # kernels of high acquisition value
MAX_KNOWN = 200  # scores and estimates of a surrogate
UNIT = 0.5  # nats, the unit of warped scores
STD_OF_ESTIMATES = 0.25  # of the errors of warped estimates
LOG_VARIANCE, LOG_NOISE, MEAN = 2.2, -1.8, -5.3  # of warped scores, in the mean of fifty searches


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
        estimated, and the best of them are fitted. ``"auto"`` is True unless the estimator has
        ``structure_prior=None``.
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
    kernel; in the end all changes of the best kernel are. Where the climb ends, a Gaussian process
    with their kernel has all scores and estimates near the best kernel, and says by how much a
    kernel anywhere is expected to be better. Evolution finds where that is most; such kernels are
    estimated and, if they still promise ``tol``, fitted. Otherwise the search ends.
    """

    _kernel_type: ClassVar[type[KernelKernel]] = SOTKernel

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
        """Climb, or choose the kernels of highest acquisition value; fewer if no more are left."""
        if self.climbs(reduces=task.grammar.reduces) and history.best_first():
            return Climb(task, history).steps()[:n_proposals]
        return super().propose(task, history, n_proposals=n_proposals, rng=rng)

    def _kernel_kernel(self, task: Task) -> KernelKernel:
        return task.cached(self._kernel_type, self._kernel_type)

    def _highest(
        self, belief: Belief, known: Sequence[Expression], task: Task, history: History
    ) -> Expression | None:
        excluded = frozenset(expression.canonical for expression in known)
        n_generations = 6 if len(task.grammar.columns) == 1 else 10  # SOT, appendix D
        found = self._evolved(belief, task, history, n_generations)
        return next((one for one in found if one.canonical not in excluded), None)

    def _evolved(
        self, belief: Belief, task: Task, history: History, n_generations: int
    ) -> list[Expression]:
        """Search kernels of high acquisition value by evolution (SOT, algorithm 2), best first."""
        acquisition, rng = self._values(belief), belief.rng
        values: dict[str, float] = {}
        met: dict[str, Expression] = {}

        def judge(expressions: Iterable[Expression]) -> list[Expression]:
            task.deadline.check()
            if new := {e.canonical: e for e in expressions if e.canonical not in met}:
                met.update(new)
                values.update(zip(new, acquisition(list(new.values())).tolist(), strict=True))
            return list(new.values())

        def best_first(expressions: Iterable[Expression]) -> list[Expression]:
            return sorted(expressions, key=lambda e: (-values[e.canonical], e.canonical))

        n_walks = self.population_size // 2  # the others are neighbours of the best kernels
        parents = cycle(parents_of(task, history)[:N_PARENTS])
        some = islice(parents, self.population_size - n_walks)
        neighbours = [task.grammar.random_neighbour(parent, rng) for parent in some]
        generation = judge([*task.grammar.random_walks(n_walks, rng), *neighbours])
        for _ in range(n_generations):
            survivors = best_first(generation)[: max(1, self.population_size // (N_OFFSPRING + 1))]
            offspring = [one for one in survivors for _ in range(N_OFFSPRING)]
            new = judge([task.grammar.random_neighbour(one, rng) for one in offspring])
            generation = survivors + new
        return best_first(met.values())

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
        if not fits:
            return []
        best, known, least = fits[0], history.canonical_texts(), task.tol or SMALLEST_TOL
        near = task.neighbours(best, {*task.near(best.expression)} - known)
        near = [one for one in near if np.isfinite(one.score)]
        estimates = {one.expression.canonical: one for one in near}
        surrogate = surrogate_below(best.score, [*fits, *near], self._kernel_kernel(task))
        focused = replace(task, grammar=task.focus(best.expression.columns))
        found = self._evolved(Belief(surrogate, 0.0, rng), focused, history, N_GENERATIONS)
        if not (found := [one for one in found if one.canonical not in known][:MAX_JUDGED]):
            return []
        for _ in range(MAX_ROUNDS):
            gains = nats_to_gain(*surrogate.predict(found))
            promising = [one for one, gain in zip(found, gains, strict=True) if gain > least]
            unknown = [one for one in promising if one.canonical not in estimates][:N_ESTIMATED]
            new = [one for one in task.farther(best, unknown, history) if np.isfinite(one.score)]
            if not new:
                break
            estimates |= {one.expression.canonical: one for one in new}
            scores = warped(best.score, [one.score for one in new])
            kernels = [one.expression for one in new]
            surrogate = surrogate.given(kernels, scores, STD_OF_ESTIMATES**2)
        gains = nats_to_gain(*surrogate.predict(found))
        order = np.argsort(-self._values(Belief(surrogate, 0.0, rng))(found), kind="stable")
        steps = [n for n in order if gains[n] > least] or [int(np.argmax(gains))]
        return [
            replace(estimates.get(found[n].canonical, Estimate(found[n])), expected=float(gains[n]))
            for n in steps[:n_proposals]
        ]


def warped(best: float, scores: Sequence[float]) -> FloatArray:
    """Take signed logs of distances from the best score, so that estimates have similar errors."""
    behind = (best - np.asarray(scores)) / UNIT
    return -np.sign(behind) * np.log1p(np.abs(behind))


def nats_to_gain(mean: FloatArray, std: FloatArray) -> FloatArray:
    """Compute the expected improvements (n,) over the best score from those of warped scores."""
    z, std = mean / np.maximum(std, 1e-12), np.maximum(std, 1e-12)
    return UNIT * (np.exp(mean + 0.5 * std**2) * ndtr(z + std) - ndtr(z))


def surrogate_below(
    best: float, known: Sequence[Evaluation | Estimate], kernel: KernelKernel
) -> SurrogateGP:
    """Fit a Gaussian process to :func:`warped` scores and estimates, of many to some of them."""
    kept = sorted(known, key=lambda one: -one.score)
    n_best = MAX_KNOWN // 2
    others = np.linspace(n_best, len(kept) - 1, MAX_KNOWN - n_best).astype(int)
    kept = kept if len(kept) <= MAX_KNOWN else kept[:n_best] + [kept[n] for n in others]
    means = np.array([LOG_VARIANCE, *np.zeros(len(kernel.bounds)), LOG_NOISE, MEAN])
    return SurrogateGP(
        kernel,
        [one.expression for one in kept],
        warped(best, [one.score for one in kept]),
        prior=(means, np.array([0.5, *np.ones(len(kernel.bounds)), 0.5, 0.5])),
        variances=np.square([STD_OF_ESTIMATES * isinstance(one, Estimate) for one in kept]),
    )
