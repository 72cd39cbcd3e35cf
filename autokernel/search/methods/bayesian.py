"""The common part of all strategies that use Bayesian optimisation (SOT, algorithm 1)."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from autokernel.evidence import Estimate
from autokernel.expression import Expression
from autokernel.search.acquisition import ACQUISITIONS, Acquisition, Belief, Values
from autokernel.search.history import History
from autokernel.search.strategy import CHOICE_OF_DESIGN, Strategy, Task
from autokernel.search.surrogate import KernelKernel, SurrogateGP
from autokernel.validation import resolve


def parents_of(task: Task, history: History) -> list[Expression]:
    """Sort the known kernels that the grammar has, the best first; else return base kernels."""
    known = [one.expression for one in sorted(history.evaluations, key=lambda one: -one.score)]
    return [e for e in known if task.grammar.spans(e)] or list(task.grammar.bases)


class BayesianStrategy(Strategy):
    """A strategy that maximises an acquisition function under a surrogate of the scores."""

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **CHOICE_OF_DESIGN,
        "acquisition": "no_validation",  # resolve says more
    }

    acquisition: str | Acquisition

    def _validate_params(self) -> None:
        super()._validate_params()
        self._resolve_acquisition()

    def _resolve_acquisition(self) -> Acquisition:
        return resolve("acquisition", self.acquisition, registry=ACQUISITIONS, kind=Acquisition)

    def _values(self, belief: Belief) -> Values:
        return self._resolve_acquisition().values(belief)

    @abstractmethod
    def _kernel_kernel(self, task: Task) -> KernelKernel:
        """Return the kernel between expressions, one for each task."""

    @abstractmethod
    def _highest(
        self, belief: Belief, known: Sequence[Expression], task: Task, history: History
    ) -> Expression | None:
        """Search the expression of highest acquisition value that is not known, None if none is."""

    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> Sequence[Expression | Estimate]:
        """Choose the kernels of highest acquisition value, fewer if no more are left.

        Each kernel of a batch is chosen as if the earlier ones had their predicted scores (kriging
        believer). Little improvement is expected near these, so that the next kernel differs.
        """
        known = [evaluation.expression for evaluation in history.evaluations]
        scores = history.scores / history.n_samples
        finite = np.isfinite(scores)  # a failed kernel gets the lowest finite score
        scores = np.where(finite, scores, scores[finite].min() if finite.any() else 0.0)
        best = float(scores.max())

        def log_prior(expression: Expression) -> float:
            return task.evaluator.structure_prior(expression) / history.n_samples

        surrogate = SurrogateGP(self._kernel_kernel(task), known, scores, log_prior)
        proposals: list[Expression] = []
        while True:
            belief = Belief(surrogate, best, rng)
            proposal = self._highest(belief, known, task, history) or task.any_unknown(known)
            if proposal is not None:
                proposals.append(proposal)
            if proposal is None or len(proposals) == n_proposals:
                return proposals
            known = [*known, proposal]
            believed, _ = surrogate.predict([proposal])
            best = max(best, float(believed[0]))
            surrogate = surrogate.given([proposal], believed)
