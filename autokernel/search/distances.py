"""The distances between expressions by which SOT, BOMS and Arc compare kernels."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from autokernel.expression import Expression, require_expressions
from autokernel.kernels import BASE_KERNELS, Priors, check_priors
from autokernel.search.arc import ArcKernel
from autokernel.search.boms import HellingerKernel
from autokernel.search.sot import SOTKernel
from autokernel.typing import FloatArray


def sot_distances(
    expressions: Sequence[Expression],
    others: Sequence[Expression] | None = None,
    *,
    n_features: int,
) -> FloatArray:
    """Compute total-variation distances between the building blocks of expressions.

    Parameters
    ----------
    expressions : sequence of n Expression
        Expressions of the rows.
    others : sequence of m Expression, optional
        Expressions of the columns, by default those of the rows.
    n_features : int
        Number of input columns. A column that an expression does not use holds the symbol NULL.

    Returns
    -------
    ndarray of shape (3, n, m)
        Unweighted distances of the base kernels (summed over columns), paths and subtrees.

    Raises
    ------
    ValueError
        If an expression uses a column beyond ``n_features``.
    TypeError
        If one of the expressions is a text.

    Notes
    -----
    This is SOT eqs. 2 and 3, with the symmetries of appendix A.1. With the discrete ground metric,
    optimal transport is total variation: half the L1 distance of the frequencies. Two trees with
    the same canonical text may differ in their subtrees, as in the paper.
    """
    return SOTKernel(n_features=n_features).distances(expressions, others)


def arc_distances(
    expressions: Sequence[Expression],
    others: Sequence[Expression] | None = None,
    *,
    n_features: int,
) -> FloatArray:
    """Compute squared distances between the trees of expressions, position by position.

    Parameters
    ----------
    expressions : sequence of n Expression
        Expressions of the rows.
    others : sequence of m Expression, optional
        Expressions of the columns, by default those of the rows.
    n_features : int
        Number of input columns.

    Returns
    -------
    ndarray of shape (n, m)
        Sums over all positions, which are whole numbers.

    Raises
    ------
    ValueError
        If an expression uses a column beyond ``n_features``.
    TypeError
        If one of the expressions is a text.

    Notes
    -----
    This is the squared pseudo-metric of Hutter and Osborne (2013), section 3, with ``omega = 1``
    for all positions; :class:`~autokernel.search.arc.ArcKernel` weighs them by level.
    """
    return ArcKernel(n_features=n_features).distances(expressions, others).sum(axis=0)


def hellinger_distances(
    expressions: Sequence[Expression],
    others: Sequence[Expression] | None = None,
    *,
    X: npt.ArrayLike,
    priors: str | Priors = "default",
    n_samples: int = 100,
    rng: int | np.random.Generator | None = None,
) -> FloatArray:
    """Compute the expected squared Hellinger distances between the GP priors of expressions.

    Parameters
    ----------
    expressions : sequence of n Expression
        Expressions of the rows.
    others : sequence of m Expression, optional
        Expressions of the columns, by default those of the rows.
    X : array-like of shape (n_inputs, n_features)
        Inputs at which the priors are compared. Of more than 20, a random 20 are used.
    priors : {"default", "paper"} or mapping of str to (shape, rate)
        Gamma priors of the hyperparameters.
    n_samples : int
        Number of Sobol points over which the expectation is taken.
    rng : int, numpy.random.Generator or None
        Source of the choice of inputs and the scrambling of the Sobol points; None is a fixed
        seed.

    Returns
    -------
    ndarray of shape (n, m)
        Distances between 0 and 1. Expressions with the same canonical text have distance 0.

    Raises
    ------
    ValueError
        If an expression uses a column that ``X`` does not have, if its covariances overflow, if
        ``n_samples`` is not positive, or if ``X`` or ``priors`` are invalid.
    TypeError
        If one of the expressions is a text.

    Notes
    -----
    This is BOMS eqs. 6 and 7 with zero means, for the latent function plus noise of variance 0.01.
    Parameter i of an expression, with sums and products in canonical order, is the quantile of its
    prior at dimension i of the Sobol points. All expressions share these points. For one sample,
    the distance is half the squared L2 distance between the square roots of two densities; so the
    mean over shared samples is a squared Hilbert distance as well. Hence it is symmetric, it is
    zero between equal expressions, and ``exp(-d / (2 l^2))`` is positive semi-definite.
    """
    require_expressions((*expressions, *(others or ())))
    parameters = [p for kernel in BASE_KERNELS.values() for p in kernel.parameters]
    for expression in (*expressions, *(others or ())):
        parameters += [p for node in expression.nodes for p in node.parameters]
    checked = check_priors(priors, parameters=parameters)
    kernel = HellingerKernel(X, checked, n_samples=n_samples, rng=rng)
    return kernel.distances(expressions, others)[0]
