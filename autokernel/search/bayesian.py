"""The common part of all strategies that use Bayesian optimisation (SOT, algorithm 1)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from autokernel.evidence import Estimate, Evaluation
from autokernel.expression import Expression
from autokernel.search.acquisition import ACQUISITIONS, Acquisition, Belief, Values
from autokernel.search.history import History
from autokernel.search.strategy import DesignedStrategy, Task
from autokernel.search.surrogate import KernelKernel, SurrogateGP
from autokernel.typing import FloatArray
from autokernel.validation import resolve

MAX_KNOWN = 200  # scores and estimates of a surrogate
UNIT = 0.5  # nats, the unit of warped scores
STD_OF_ESTIMATES = 0.25  # of the errors of warped estimates
LOG_VARIANCE, LOG_NOISE, MEAN = 2.2, -1.8, -5.3  # of warped scores, in the mean of fifty searches


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

        surrogate = SurrogateGP(kernel_kernel, known, scores, log_prior)
        proposals: list[Expression] = []
        while True:
            values = acquisition.values(Belief(surrogate, best, rng))
            proposal = maximise(values, known) or task.any_unknown(known)
            if proposal is not None:
                proposals.append(proposal)
            if proposal is None or len(proposals) == n_proposals:
                return proposals
            known = [*known, proposal]
            believed, _ = surrogate.predict([proposal])
            best = max(best, float(believed[0]))
            surrogate = surrogate.given([proposal], believed)


def evolve(
    acquisition: Values,
    task: Task,
    population: Iterable[Expression],
    *,
    n_survivors: int,
    n_offspring: int,
    n_generations: int,
    rng: np.random.Generator,
) -> list[Expression]:
    """Search expressions of high acquisition value by evolution (SOT, algorithm 2), best first.

    Offspring are one operation of the grammar away from their parent. There is one expression for
    each canonical text.
    """
    values: dict[str, float] = {}
    met: dict[str, Expression] = {}

    def judge(expressions: Iterable[Expression]) -> list[Expression]:
        """Compute the values of new expressions, one for each canonical text."""
        task.deadline.check()
        new = {e.canonical: e for e in expressions if e.canonical not in met}
        if new:
            met.update(new)
            values.update(zip(new, acquisition(list(new.values())).tolist(), strict=True))
        return list(new.values())

    def best_first(expressions: Iterable[Expression]) -> list[Expression]:
        return sorted(expressions, key=lambda e: (-values[e.canonical], e.canonical))

    generation = judge(population)
    for _ in range(n_generations):
        survivors = best_first(generation)[:n_survivors]
        parents = [one for one in survivors for _ in range(n_offspring)]
        new = judge([task.grammar.random_neighbour(one, rng) for one in parents])
        generation = survivors + new
    return best_first(met.values())


def warped(best: float, scores: Sequence[float]) -> FloatArray:
    """Take the logs of distances (n,) from the best score, with their signs.

    So kernels far below the best one differ little, and all estimates have similar errors.
    """
    behind = (best - np.asarray(scores)) / UNIT
    return -np.sign(behind) * np.log1p(np.abs(behind))


def nats_to_gain(mean: FloatArray, std: FloatArray) -> FloatArray:
    """Compute the expected improvements (n,) over the best score from those of warped scores."""
    z, std = mean / np.maximum(std, 1e-12), np.maximum(std, 1e-12)
    return UNIT * (np.exp(mean + 0.5 * std**2) * ndtr(z + std) - ndtr(z))


def surrogate_below(
    best: float, known: Sequence[Evaluation | Estimate], kernel: KernelKernel
) -> SurrogateGP[Expression]:
    """Fit a Gaussian process to scores and estimates, warped by :func:`warped`.

    Of very many kernels the best ones are used, and some of the others.
    """
    kept = sorted(known, key=lambda one: -one.score)
    n_best = MAX_KNOWN // 2
    others = np.linspace(n_best, len(kept) - 1, MAX_KNOWN - n_best).astype(int)
    kept = kept if len(kept) <= MAX_KNOWN else kept[:n_best] + [kept[n] for n in others]
    means = np.array([LOG_VARIANCE, *np.zeros(len(kernel.bounds)), LOG_NOISE, MEAN])
    stds = np.array([0.5, *np.ones(len(kernel.bounds)), 0.5, 0.5])
    errors = [STD_OF_ESTIMATES * isinstance(one, Estimate) for one in kept]
    return SurrogateGP(
        kernel,
        [one.expression for one in kept],
        warped(best, [one.score for one in kept]),
        prior=(means, stds),
        variances=np.square(errors),
    )
