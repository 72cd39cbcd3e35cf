"""The common part of all strategies that use Bayesian optimisation (SOT, algorithm 1)."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from scipy.stats import median_abs_deviation, norm

from autokernel.evidence import Estimate, Evaluation
from autokernel.expression import Expression, Grammar
from autokernel.search.acquisition import (
    ACQUISITIONS,
    Acquisition,
    Belief,
    Values,
    expected_improvement,
    fit_cost,
)
from autokernel.search.history import History, Phase
from autokernel.search.strategy import DesignedStrategy, Task
from autokernel.search.surrogate import KernelKernel, SurrogateGP
from autokernel.typing import FloatArray
from autokernel.validation import resolve

MIN_TIMED_SEARCHES = 5  # search evaluations to which the cost is fitted
MAX_NATS_AFTER_JUMP = 20.0  # nats below the best kernel, within which a jump is climbed from
MAX_GROWTH_BY_JUMP = 2  # leaves more than the best kernel has, with which it is climbed from
N_CLIMBED_ALONE = 2  # base kernels of the design from which the search climbs too
N_CLIMBED = 3  # best kernels whose neighbours are estimated
MIN_GAIN_AFTER_JUMP = 1.0  # nats that a step of such a climb is expected to gain
MIN_GAIN_OF_SCALE = 2.0  # nats that another scale must be expected to gain to be taken at once
MIN_EXPECTED_GAIN = 0.2  # of tol, with which a neighbour is evaluated
SMALLEST_TOL = 0.01  # nats, which stand for a tol of zero
ERROR_OF_ESTIMATES, N_ERRORS = 1.0, 4  # standard deviation in nats before any is known; weight

Maximise = Callable[[Values, Sequence[Expression]], Expression | None]
"""Function that searches the expression of highest value that is not known yet."""


def _cost(history: History) -> Values:
    """Fit the cost of evaluations, to search trials only if there are enough of them.

    Many kernels of the design are fitted without warm starts, which takes longer.
    """
    fitted = [trial for trial in history if np.isfinite(trial.evaluation.log_posterior)]
    searched = [trial for trial in fitted if trial.phase == Phase.SEARCH]
    like = searched if len(searched) >= MIN_TIMED_SEARCHES else fitted
    evaluations = [trial.evaluation for trial in like or history]
    seconds = np.array([evaluation.seconds for evaluation in evaluations])
    return fit_cost([evaluation.expression for evaluation in evaluations], seconds)


def parents_of(task: Task, history: History) -> list[Expression]:
    """Sort the known kernels of the grammar, the best first; else return base kernels.

    A history may hold kernels of another grammar.
    """
    order = np.argsort(-history.scores, kind="stable")
    known = [history.evaluations[number].expression for number in order]
    return [e for e in known if task.grammar.spans(e)] or list(task.grammar.bases)


def _in_time(values: Values, task: Task) -> Values:
    """Wrap a function so that it checks the deadline before each call."""

    def compute(expressions: Sequence[Expression]) -> FloatArray:
        task.deadline.check()
        return values(expressions)

    return compute


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
        maximise: Maximise,
        *,
        n_proposals: int,
        rng: np.random.Generator,
    ) -> list[Expression]:
        """Choose the kernels of highest acquisition value, fewer if no more are left.

        Each kernel of a batch is chosen as if the earlier ones had their predicted scores (kriging
        believer). Little improvement is expected near these, so that the next kernel differs.
        """
        acquisition = self._resolve_acquisition()
        known = [evaluation.expression for evaluation in history.evaluations]
        scores = history.scores / history.n_samples
        finite = np.isfinite(scores)  # a failed kernel gets the lowest finite score
        scores = np.where(finite, scores, scores[finite].min() if finite.any() else 0.0)
        best = float(scores.max())
        cost = _cost(history)

        def log_prior(expression: Expression) -> float:
            return task.structure_prior(expression) / history.n_samples

        surrogate = SurrogateGP(kernel_kernel, known, scores, log_prior)
        proposals: list[Expression] = []
        while True:
            values = acquisition.values(Belief(surrogate, best, cost, rng))
            proposal = maximise(_in_time(values, task), known) or task.any_unknown(known)
            if proposal is not None:
                proposals.append(proposal)
            if proposal is None or len(proposals) == n_proposals:
                return proposals
            known = [*known, proposal]
            believed, _ = surrogate.predict([proposal])
            best = max(best, float(believed[0]))
            surrogate = surrogate.believing([proposal])


def top_of_climb(task: Task, history: History, start: Evaluation) -> Evaluation:
    """Follow the best neighbours in the search, as long as each is better than the last."""
    known = {fit.expression.canonical: fit for fit in history.best_first(Phase.SEARCH)}
    while True:
        near = (known[text] for text in task.neighbour_texts(start.expression) if text in known)
        best = max(near, key=lambda fit: fit.score, default=start)
        if best.score <= start.score:
            return start
        start = best


def _errors_to_expect(errors: FloatArray) -> tuple[float, float]:
    """Estimate bias and standard deviation of estimates, robustly, from those that were checked.

    Few errors are very large, where a fit has found another mode. Some errors that are normally
    distributed stand for what is expected before any is known.
    """
    before = ERROR_OF_ESTIMATES * norm.ppf((np.arange(N_ERRORS) + 0.5) / N_ERRORS)
    known = np.append(before, errors)
    return float(np.median(known)), float(median_abs_deviation(known, scale="normal"))


def promising_neighbours(task: Task, history: History) -> list[Estimate]:
    """List new neighbours of the best kernel by their expected improvement, highest first.

    Other scales that gain much come before all others. If there are no neighbours, the search
    climbs from the best base kernels of the design, then from where the last jump has landed; the
    improvement is then that of the kernel that it climbs from. At last come the neighbours of the
    next best kernels.
    """
    fits = [fit for fit in history.best_first() if task.grammar.spans(fit.expression)]
    if not fits:
        return []
    best, least = fits[0], MIN_EXPECTED_GAIN * (task.tol or SMALLEST_TOL)
    known, errors = history.canonical_texts(), _errors_to_expect(history.errors_of_estimates)
    promising = partial(_promising, known=known, errors=errors)
    if steps := promising(task.rescalings(best), best, MIN_GAIN_OF_SCALE):
        return steps[:1]
    if steps := promising(task.neighbours(best), best, least):
        return steps
    designed = history.best_first(Phase.INITIAL)
    for base in [fit for fit in designed if fit.expression.n_leaves == 1][:N_CLIMBED_ALONE]:
        top = top_of_climb(task, history, base)
        of_top = () if top is best else task.neighbours(top)
        if steps := promising(of_top, top, MIN_GAIN_AFTER_JUMP):
            return steps[:1]
    if (landed := _landing(history, best, task)) and (
        steps := promising(task.neighbours(landed), landed, MIN_GAIN_AFTER_JUMP)
    ):
        return steps
    return promising(chain.from_iterable(map(task.neighbours, fits[:N_CLIMBED])), best, least)


def _landing(history: History, best: Evaluation, task: Task) -> Evaluation | None:
    """Return where the last jump has landed, None if it is not worth a climb."""
    landed = history.best_since_jump
    if landed is None or landed is best or not task.grammar.spans(landed.expression):
        return None
    is_near = landed.score > best.score - MAX_NATS_AFTER_JUMP
    n_more = landed.expression.n_leaves - best.expression.n_leaves
    return landed if is_near and n_more <= MAX_GROWTH_BY_JUMP else None


def _promising(
    near: Iterable[Estimate],
    start: Evaluation,
    least: float,
    *,
    known: AbstractSet[str],
    errors: tuple[float, float],
) -> list[Estimate]:
    """Sort new kernels with an expected gain over a fitted one of more than ``least`` nats."""
    (bias, std), found = errors, dict[str, Estimate]()
    for one in near:
        text = one.expression.canonical
        lowest = found[text].score if text in found else -np.inf
        if text not in known and lowest < one.score < np.inf:
            found[text] = one
    scores = np.array([one.score for one in found.values()]) + bias
    gains = expected_improvement(scores, np.array(std), best=start.score)
    listed, order = list(found.values()), np.argsort(-gains, kind="stable")
    return [listed[number] for number in order if gains[number] > least]


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
        offspring = [
            grammar.random_neighbour(parent, rng)
            for parent in survivors
            for _ in range(n_offspring)
        ]
        generation = survivors + judge(offspring)
    allowed = [e for e in met.values() if e.canonical not in excluded]
    return min(allowed, key=lambda e: (-values[e.canonical], e.canonical), default=None)
