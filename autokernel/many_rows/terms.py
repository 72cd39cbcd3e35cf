"""Terms of a kernel that few rows of a search take for noise."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import mul

import numpy as np
from scipy.spatial import KDTree

from autokernel.evidence import Evaluation
from autokernel.expression import Expression, Grammar, Leaf, View, normal_form
from autokernel.inference import TrainingData
from autokernel.kernels import ADD, MULTIPLY, RETURNING, Role
from autokernel.search.strategy import Task
from autokernel.typing import FloatArray

SHARE_OF_NOISE = 0.5  # of the variance, which a rough term explains at first
TIME_SCALES = 10.0  # ratio of the lengthscales of two levels of a series


def with_rough_term(fit: Evaluation, data: TrainingData, task: Task) -> list[Evaluation]:
    """Add a rough function of all its columns to a kernel, as the start of a fit to all rows.

    Rows of a search are far from each other, and what varies between them is noise to the search.
    The lengthscale lies between the distance of nearest rows among those of the search and that
    among all rows. The list is empty if the grammar does not have it.
    """
    grammar, n_searched = task.grammar, len(task.evaluator.data.y)
    by_column = {leaf.column: leaf.view for leaf in fit.expression.leaves}
    views = [by_column[column] for column in sorted(by_column)]
    factors = _smooth_leaves(views, grammar)
    if not factors or fit.expression.n_leaves + len(factors) > grammar.max_leaves:
        return []
    expression = fit.expression.with_tree(fit.expression.tree + reduce(mul, factors))
    if grammar.reduces and normal_form(expression).n_leaves < expression.n_leaves:
        return []
    known = data.inputs.columns.scaled(data.inputs.filled)
    distance = _distance_between(np.column_stack([known.view(view) for view in views]), n_searched)
    return [_with_leaves_of_noise(fit, expression, factors, lengthscale=distance)]


def with_another_level(fit: Evaluation, data: TrainingData, task: Task) -> list[Evaluation]:
    """Add a level that returns, on another time scale, to the kernel of a series.

    Few rows show either how fast errors are forgotten or how slowly the level wanders. The new
    lengthscale is a tenth of the one that the kernel has, or ten times as long if that is short.
    The list is empty if the grammar does not have it.
    """
    [column] = fit.expression.columns
    level = Leaf(RETURNING, column)
    if level not in task.grammar.leaves or fit.expression.n_leaves >= task.grammar.max_leaves:
        return []
    known = [p.value for p in fit.parameters if p.kernel == str(level) and p.name == "lengthscale"]
    shortest = 3 * float(np.ptp(data.X[:, column])) / len(data.y)  # three steps
    lengthscale = min(known, default=TIME_SCALES * shortest) / TIME_SCALES
    if lengthscale < shortest:
        lengthscale *= TIME_SCALES**2 if known else 1.0
    expression = fit.expression.with_tree(fit.expression.tree + level)
    return [_with_leaves_of_noise(fit, expression, [level], lengthscale=lengthscale)]


def _with_leaves_of_noise(
    fit: Evaluation, expression: Expression, factors: Sequence[Leaf], *, lengthscale: float
) -> Evaluation:
    """Return a start of a kernel with a product more, which explains a part of the noise."""
    starts: dict[Role | None, float] = {
        Role.VARIANCE: (fit.theta[-1] + np.log(SHARE_OF_NOISE)) / len(factors),
        Role.LENGTHSCALE: np.log(lengthscale),
    }
    new = [starts.get(p.role, 0.0) for leaf in factors for p in leaf.parameters]
    noise = fit.theta[-1:] + np.log(1 - SHARE_OF_NOISE)
    theta, hessian = np.concatenate([fit.theta[:-1], new, noise]), np.eye(len(fit.theta) + len(new))
    old = [*range(len(fit.theta) - 1), -1]
    hessian[np.ix_(old, old)] = fit.hessian
    return replace(fit, expression=expression, theta=theta, hessian=hessian)


def _smooth_leaves(views: Sequence[View], grammar: Grammar) -> list[Leaf]:
    """Return the leaves of the first stationary kernel of all views, none if they cannot join."""
    joins = {ADD} if len(views) == 1 else {ADD, MULTIPLY}
    for kernel in grammar.base_kernels if joins <= set(grammar.operators) else ():
        roles = {parameter.role for parameter in kernel.parameters}
        leaves = [Leaf(kernel, view.column, view.scale) for view in views]
        is_of_all = set(leaves) <= set(grammar.leaves)
        if is_of_all and kernel.is_stationary and {Role.LENGTHSCALE, Role.VARIANCE} <= roles:
            return leaves
    return []


def _distance_between(X: FloatArray, n_searched: int) -> float:
    """Return the geometric mean of the distances of nearest rows among few rows and all of them."""
    distances = []
    for n in (n_searched, min(len(X), 2**17)):
        some = X[:: max(1, len(X) // n)]
        found, _ = KDTree(some).query(some[:: max(1, len(some) // 200)], k=2)  # of 200 rows or so
        apart = found[:, 1][found[:, 1] > 0]
        distances.append(np.median(apart) if len(apart) else 1.0)
    return float(np.sqrt(np.prod(distances)))
