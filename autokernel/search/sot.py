"""Bayesian optimisation with symbolical optimal transport."""

from collections import Counter
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import Interval, StrOptions

from autokernel.evidence import Estimate
from autokernel.expression import IDENTITY, Expression, Grammar, Operation
from autokernel.search.acquisition import Acquisition, Values
from autokernel.search.bayesian import BayesianStrategy, evolve, parents_of
from autokernel.search.climb import Climb
from autokernel.search.history import History
from autokernel.search.strategy import Task
from autokernel.search.surrogate import (
    LOG_BOUNDS,
    Edge,
    Frequencies,
    FrequencyKernel,
    KernelKernel,
)
from autokernel.typing import FloatArray

N_PARENTS = 10  # best kernels with neighbours in the first generation


class SOTKernel(FrequencyKernel[Expression]):
    """The kernel ``exp(-d / l^2)``, d a weighted mean of the three SOT distances (SOT eq. 4, A.5).

    The parameters are the log of the squared lengthscale and the logits of the weights.

    The distances are SOT eqs. 2 and 3, with the symmetries of appendix A.1. With the discrete
    ground metric, optimal transport is total variation. Two trees with the same canonical text may
    differ in their subtrees, as in the paper. The scale of the target counts as one more column,
    with one base kernel for each scale.
    """

    bounds = (LOG_BOUNDS,) * 4

    def frequencies(self, expression: Expression) -> tuple[Frequencies, Frequencies, Frequencies]:
        """Compute the frequencies of the base kernels by column, the paths and the subtrees."""
        paths: list[str] = []
        keys: list[str] = []
        plain = expression.on(IDENTITY)
        _list_paths(plain, "", paths)
        _list_subtrees(plain, keys)
        return (
            _base_frequencies(expression),
            _relative_frequencies(paths),
            _relative_frequencies(keys),
        )

    def weights(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        sigmoid = expit(params[1:])
        shares = sigmoid / sigmoid.sum()
        values = shares * np.exp(-params[0])
        by_logit = values[:, None] * (np.eye(3) - shares) * (1 - sigmoid)
        return values, np.column_stack([-values, by_logit])


class EdgeKernel(FrequencyKernel[Edge]):
    """The kernel ``exp(-sum_i w_i d_i)`` between changes, by leaves and paths that come or go.

    The elements are those of the SOT distances, but counted: a leaf that joins two sums as a term
    is the same change of both. The parameters are the logs of the two weights.
    """

    bounds = (LOG_BOUNDS,) * 2

    def frequencies(self, change: Edge) -> tuple[Frequencies, Frequencies]:
        """Count the leaves and the paths that a change adds, and subtract those it removes."""
        (leaves, paths), (before, paths_before) = _counts(change.child), _counts(change.parent)
        leaves.subtract(before)
        paths.subtract(paths_before)
        return leaves, paths

    def weights(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = np.exp(params)
        return values, np.diag(values)


class SOT(BayesianStrategy):
    """Bayesian optimisation over expressions with the SOT kernel.

    Parameters
    ----------
    acquisition : {"ei", "ei_per_second", "ucb", "thompson"} or Acquisition, default="ei"
        What to maximise: the expected improvement, the same per second of evaluation, an upper
        confidence bound, or a draw from the posterior; or an object such as
        ``UpperConfidenceBound(kappa=3)``.
    population_size : int, default=100
        Number of expressions in a generation of the evolution that maximises the acquisition
        function.
    n_offspring : int, default=4
        Number of offspring of each survivor; ``population_size / (n_offspring + 1)`` survive.
    n_generations : int or "auto", default="auto"
        Number of generations; ``"auto"`` is 6 for one column and 10 for more.
    local_steps : bool or "auto", default="auto"
        Whether the search climbs: the scores of all kernels one operation away from the best ones
        are estimated from the data, and those with the highest expected improvement are proposed.
        A Gaussian process over changes of kernels learns from fits by how much estimates are wrong.
        The search ends when none is promising. With ``tol=0`` it then goes on by the acquisition
        function. ``"auto"`` is True unless the estimator has
        ``structure_prior=None``.
    initial_design : {"default", "paper"}, default="default"
        Initial design. ``"default"`` is what a person would try first, about five kernels, and for
        one or two columns every base kernel. ``"paper"`` is every base kernel on every column, and
        two random operations from each.

    Notes
    -----
    Bitzer, Meister and Zimmer (2022), *Structural kernel search via Bayesian optimization and
    symbolical optimal transport*, algorithms 1 and 2. The first generation holds random walks from
    the base kernels and neighbours of the best kernels so far.
    """

    _kernel_kernel: ClassVar[type[KernelKernel]] = SOTKernel
    """The kernel between expressions."""

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        **BayesianStrategy._parameter_constraints,
        "population_size": [Interval(Integral, 1, None, closed="left")],
        "n_offspring": [Interval(Integral, 1, None, closed="left")],
        "n_generations": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "local_steps": [StrOptions({"auto"}), "boolean"],
    }

    def __init__(
        self,
        *,
        acquisition: str | Acquisition = "ei",
        population_size: int = 100,
        n_offspring: int = 4,
        n_generations: int | str = "auto",
        local_steps: bool | str = "auto",
        initial_design: str = "default",
    ) -> None:
        self.acquisition = acquisition
        self.population_size = population_size
        self.n_offspring = n_offspring
        self.n_generations = n_generations
        self.local_steps = local_steps
        self.initial_design = initial_design

    def propose(
        self, task: Task, history: History, *, n_proposals: int, rng: np.random.Generator
    ) -> Sequence[Expression | Estimate]:
        """Choose the kernels of highest acquisition value, fewer where no more are left."""
        parents = parents_of(task, history)[:N_PARENTS]
        takes_local_steps, n_generations = self.local_steps, self.n_generations
        if takes_local_steps == "auto":  # the algorithm of the paper has none
            takes_local_steps = task.grammar.reduces
        if takes_local_steps:
            steps = Climb(task, history, task.cached(EdgeKernel, EdgeKernel)).steps()
            if steps or (task.tol and history.best_first()):
                return steps[:n_proposals]
        if isinstance(n_generations, str):
            n_generations = 6 if len(task.grammar.columns) == 1 else 10  # SOT, appendix D

        def maximise(values: Values, known: Sequence[Expression]) -> Expression | None:
            excluded = frozenset(expression.canonical for expression in known)
            return evolve(
                values,
                task.grammar,
                self._first_generation(task.grammar, parents, rng),
                excluded=excluded,
                n_survivors=max(1, self.population_size // (self.n_offspring + 1)),
                n_offspring=self.n_offspring,
                n_generations=n_generations,
                rng=rng,
            )

        kernel_kernel = task.cached(self._kernel_kernel, self._kernel_kernel)
        return self.propose_by_surrogate(
            task, history, kernel_kernel, maximise, n_proposals=n_proposals, rng=rng
        )

    def _first_generation(
        self, grammar: Grammar, parents: Sequence[Expression], rng: np.random.Generator
    ) -> list[Expression]:
        """Draw half by random walks from base kernels, half from neighbours of the best kernels."""
        n_walks = self.population_size // 2
        neighbours = [
            grammar.random_neighbour(parents[number % len(parents)], rng)
            for number in range(self.population_size - n_walks)
        ]
        return [*grammar.random_walks(n_walks, rng), *neighbours]


def _list_paths(expression: Expression, above: str, found: list[str]) -> None:
    """Append the paths to the leaves (SOT, appendix A.1).

    A run of the same commuting operator counts once. An operator that does not commute is written
    with the number of the operand.
    """
    if not isinstance(expression, Operation):
        found.append(above + expression.canonical)
        return
    label = operator_text(expression)
    if expression.operator.commutes:
        here = above if above.endswith(label) else above + label
        for operand in expression.operands:
            _list_paths(operand, here, found)
    else:
        for number, operand in enumerate(expression.operands):
            _list_paths(operand, f"{above}{label}{number}:", found)


def _list_subtrees(expression: Expression, found: list[str]) -> str:
    """Append the keys of all subtrees, and return that of the whole tree.

    The keys do not depend on the order of the operands of a commuting operator.
    """
    if not isinstance(expression, Operation):
        key = expression.canonical
    else:
        keys = [_list_subtrees(operand, found) for operand in expression.operands]
        if expression.operator.commutes:
            keys.sort()
        key = f"({operator_text(expression).join(keys)})"
    found.append(key)
    return key


def operator_text(operation: Operation) -> str:
    """Return the symbol of an operator, with its column if it has one."""
    column = operation.column
    return operation.operator.symbol + ("" if column is None else f"[{column}]")


def _base_frequencies(expression: Expression) -> Frequencies:
    """Compute the shares of the base kernels on each column, and mark the columns in use.

    A column that is not in use holds the symbol NULL in the paper. If only one of two expressions
    uses a column, its mark counts as much as that symbol.
    """
    per_column = Counter(leaf.column for leaf in expression.leaves)
    counts = Counter((leaf.canonical, leaf.column) for leaf in expression.leaves)
    shares = {element: count / per_column[element[1]] for element, count in counts.items()}
    target = {} if expression.target == IDENTITY else {f"{expression.target}(y) ~": 1.0}
    return {**shares, **dict.fromkeys(per_column, 1.0), **target}


def _counts(expression: Expression) -> tuple[Counter[str], Counter[str]]:
    """Count leaves and paths; the scale of the target counts as a leaf."""
    paths: list[str] = []
    _list_paths(expression.on(IDENTITY), "", paths)
    leaves = Counter(leaf.canonical for leaf in expression.leaves)
    if expression.target != IDENTITY:
        leaves[f"{expression.target}(y) ~"] += 1
    return leaves, Counter(paths)


def _relative_frequencies(elements: Sequence[str]) -> Frequencies:
    return {element: count / len(elements) for element, count in Counter(elements).items()}
