"""A term for what few rows cannot tell from noise: a rough function of all columns of a kernel."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import mul

import numpy as np
from scipy.spatial import KDTree

from autokernel.evaluation import Evaluation, name_parameters
from autokernel.expression import Expression, Grammar, Leaf, normal_form
from autokernel.kernels import BaseKernel, Role
from autokernel.likelihood import TrainingData
from autokernel.operators import ADD, MULTIPLY
from autokernel.typing import FloatArray

_SHARE = 0.5  # of the noise variance, which the term explains at first
_N_PROBES = 200  # rows whose nearest neighbours are looked for
_MOST_ROWS = 2**17  # among which these are looked for


def with_rough_term(
    fit: Evaluation, data: TrainingData, *, n_searched: int, grammar: Grammar
) -> Evaluation | None:
    """Add a rough function of all its columns to a kernel, as the start of a fit to all rows.

    Rows of a search are far from each other, and what varies between them is noise to the search.
    The lengthscale lies between the distance of nearest rows among those of the search and that
    among all rows.

    Returns
    -------
    Evaluation or None
        None if the grammar does not allow for it.
    """
    columns = sorted({leaf.column for leaf in fit.expression.leaves})
    kernel = _smooth_kernel(grammar, columns)
    joins = {ADD} if len(columns) == 1 else {ADD, MULTIPLY}
    too_large = fit.expression.n_leaves + len(columns) > grammar.max_leaves
    if kernel is None or not joins <= set(grammar.operators) or too_large:
        return None
    term: Expression = reduce(mul, [Leaf(kernel, column) for column in columns])
    expression = fit.expression + term
    if grammar.reduces and normal_form(expression).n_leaves < expression.n_leaves:
        return None
    noise, distance = fit.theta[-1], _distance_between(data.X[:, columns], n_searched)
    starts = {
        Role.VARIANCE: (noise + np.log(_SHARE)) / len(columns),
        Role.LENGTHSCALE: np.log(distance),
    }
    of_leaf = [starts.get(p.role, 0.0) if p.role else 0.0 for p in kernel.parameters]
    of_term = of_leaf * len(columns)
    theta = np.concatenate([fit.theta[:-1], of_term, [noise + np.log(1 - _SHARE)]])
    return replace(
        fit,
        expression=expression,
        parameters=name_parameters(expression, theta),
        theta=theta,
        hessian=_joined(fit.hessian, len(of_term)),
        n_params=len(theta),
    )


def _smooth_kernel(grammar: Grammar, columns: Sequence[int]) -> BaseKernel | None:
    """Return the first base kernel of all columns with a lengthscale, a variance and stationarity.

    It is None if there is none.
    """
    for kernel in grammar.base_kernels:
        roles = {parameter.role for parameter in kernel.parameters}
        is_of_all = all(grammar.spans(Leaf(kernel, column), (kernel,)) for column in columns)
        if is_of_all and kernel.is_stationary and {Role.LENGTHSCALE, Role.VARIANCE} <= roles:
            return kernel
    return None


def _distance_between(X: FloatArray, n_searched: int) -> float:
    """Return the geometric mean of the distances of nearest rows among few rows and all of them."""
    n = min(len(X), _MOST_ROWS)
    distances = []
    for some in (X[:: max(1, len(X) // n_searched)], X[:: max(1, len(X) // n)]):
        found, _ = KDTree(some).query(some[:: max(1, len(some) // _N_PROBES)], k=2)
        apart = found[:, 1][found[:, 1] > 0]
        distances.append(float(np.median(apart)) if len(apart) else 1.0)
    return float(np.sqrt(np.prod(distances)))


def _joined(hessian: FloatArray, n_more: int) -> FloatArray:
    """Add independent parameters of unit deviation before the last one of a Hessian."""
    n = len(hessian) - 1
    joined = np.eye(n + n_more + 1)
    kept = np.append(np.arange(n), n + n_more)
    joined[np.ix_(kept, kept)] = hessian
    return joined
