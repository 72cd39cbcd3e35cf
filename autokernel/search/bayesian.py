"""The common part of all strategies that use Bayesian optimisation (SOT, algorithm 1)."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, ClassVar

import numpy as np

from autokernel.expression import Expression, Grammar
from autokernel.search.acquisition import ACQUISITIONS, Acquisition, Belief, Values
from autokernel.search.history import History
from autokernel.search.strategy import DesignedStrategy, Task
from autokernel.search.surrogate import KernelKernel, SurrogateGP
from autokernel.typing import FloatArray
from autokernel.validation import resolve


def parents_of(task: Task, history: History) -> list[Expression]:
    """Sort the known kernels of the grammar, the best first; else return base kernels.

    A history may hold kernels of another grammar.
    """
    known = [one.expression for one in sorted(history.evaluations, key=lambda one: -one.score)]
    return [e for e in known if task.grammar.spans(e)] or list(task.grammar.bases)


class BayesianStrategy(DesignedStrategy):
    """A strategy that maximises an acquisition function under a surrogate of the scores."""

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **DesignedStrategy._parameter_constraints,
        "acquisition": "no_validation",  # resolve says more
    }

    acquisition: str | Acquisition

    def _validate_params(self) -> None:
        super()._validate_params()
        self._resolve_acquisition()

    def _resolve_acquisition(self) -> Acquisition:
        return resolve("acquisition", self.acquisition, registry=ACQUISITIONS, kind=Acquisition)

    def propose_by_surrogate(
        self,
        task: Task,
        history: History,
        kernel_kernel: KernelKernel,
        maximise: Callable[[Values, Sequence[Expression]], Expression | None],
        *,
        n_proposals: int,
        rng: np.random.Generator,
    ) -> list[Expression]:
        """Choose the kernels of highest acquisition value, fewer if no more are left.

        ``maximise`` searches the expression of highest value that is not known yet.

        Each kernel of a batch is chosen as if the earlier ones had their predicted scores (kriging
        believer). Little improvement is expected near these, so that the next kernel differs.
        """
        acquisition = self._resolve_acquisition()
        known = [evaluation.expression for evaluation in history.evaluations]
        scores = history.scores / history.n_samples
        finite = np.isfinite(scores)  # a failed kernel gets the lowest finite score
        scores = np.where(finite, scores, scores[finite].min() if finite.any() else 0.0)
        best = float(scores.max())

        def log_prior(expression: Expression) -> float:
            return task.structure_prior(expression) / history.n_samples

        def in_time(values: Values, expressions: Sequence[Expression]) -> FloatArray:
            task.deadline.check()
            return values(expressions)

        surrogate = SurrogateGP(kernel_kernel, known, scores, log_prior)
        proposals: list[Expression] = []
        while True:
            values = acquisition.values(Belief(surrogate, best, rng))
            proposal = maximise(partial(in_time, values), known) or task.any_unknown(known)
            if proposal is not None:
                proposals.append(proposal)
            if proposal is None or len(proposals) == n_proposals:
                return proposals
            known = [*known, proposal]
            believed, _ = surrogate.predict([proposal])
            best = max(best, float(believed[0]))
            surrogate = surrogate.believing([proposal])


def evolve(
    acquisition: Values,
    grammar: Grammar,
    population: Iterable[Expression],
    *,
    excluded: AbstractSet[str],
    n_survivors: int,
    n_offspring: int,
    n_generations: int,
    rng: np.random.Generator,
) -> Expression | None:
    """Search the expression with the highest acquisition value by evolution (SOT, algorithm 2).

    Offspring are one operation of the grammar away from their parent. Expressions with a canonical
    text in ``excluded`` may be parents but not the result, which is None if all that were found are
    excluded.
    """
    values: dict[str, float] = {}
    met: dict[str, Expression] = {}

    def judge(expressions: Iterable[Expression]) -> list[Expression]:
        """Compute the values of new expressions, one for each canonical text."""
        new = {e.canonical: e for e in expressions if e.canonical not in met}
        if new:
            met.update(new)
            values.update(zip(new, acquisition(list(new.values())).tolist(), strict=True))
        return list(new.values())

    generation = judge(population)
    for _ in range(n_generations):
        generation.sort(key=lambda e: (-values[e.canonical], e.canonical))
        survivors = generation[:n_survivors]
        parents = [one for one in survivors for _ in range(n_offspring)]
        generation = survivors + judge([grammar.random_neighbour(one, rng) for one in parents])
    allowed = [e for e in met.values() if e.canonical not in excluded]
    return min(allowed, key=lambda e: (-values[e.canonical], e.canonical), default=None)
