"""The published distances between expressions, as functions."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from autokernel.expression import Expression
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
    TypeError
        If one of the expressions is a text.
    ValueError
        If an expression uses a column beyond ``n_features``.

    Notes
    -----
    SOT eqs. 2 and 3, with the symmetries of appendix A.1.
    """
    _require_columns([*expressions, *(others or ())], n_features)
    return SOTKernel().distances(expressions, others)


def arc_distances(
    expressions: Sequence[Expression],
    others: Sequence[Expression] | None = None,
    *,
    n_features: int,
) -> FloatArray:
    """Compute squared distances between the trees of expressions, summed over all positions.

    Parameters
    ----------
    expressions, others, n_features
        As for :func:`sot_distances`.

    Returns
    -------
    ndarray of shape (n, m)
        Whole numbers.

    Raises
    ------
    TypeError, ValueError
        As :func:`sot_distances`.

    Notes
    -----
    The squared pseudo-metric of Hutter and Osborne (2013), section 3, with ``omega = 1`` for all
    positions.
    """
    _require_columns([*expressions, *(others or ())], n_features)
    # by their definition, a position counts twice its total variation
    return 2 * ArcKernel().distances(expressions, others).sum(axis=0)


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
    expressions, others
        As for :func:`sot_distances`.
    X : array-like of shape (n_inputs, n_features)
        Inputs at which the priors are compared. Of more than 20, a random 20 are used.
    priors : {"default", "paper"} or mapping of str to (shape, rate)
        Gamma priors of the parameters.
    n_samples : int
        Number of Sobol points over which the expectation is taken.
    rng : int, numpy.random.Generator or None
        Source of the choice of inputs and the scrambling of the Sobol points; None is a fixed
        seed.

    Returns
    -------
    ndarray of shape (n, m)
        Distances between 0 and 1. Expressions with the same canonical text have distance 0, and
        one whose covariances overflow has distance 1 to all others.

    Raises
    ------
    TypeError, ValueError
        As :func:`sot_distances`, or if ``X``, ``priors`` or ``n_samples`` are invalid.

    Notes
    -----
    BOMS eqs. 6 and 7; :class:`~autokernel.search.boms.HellingerKernel` has the details.
    """
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples}")
    inputs: FloatArray = check_array(X, dtype=np.float64, input_name="X")
    everything = [*expressions, *(others or ())]
    _require_columns(everything, inputs.shape[1])
    parameters = [p for kernel in BASE_KERNELS.values() for p in kernel.parameters]
    parameters += [p for one in everything for node in one.nodes for p in node.parameters]
    kernel = HellingerKernel(
        inputs, check_priors(priors, parameters=parameters), n_samples=n_samples, rng=rng
    )
    return kernel.distances(expressions, others)[0]


def _require_columns(expressions: Sequence[object], n_features: int) -> None:
    for one in expressions:
        if not isinstance(one, Expression):
            raise TypeError(
                f"expressions must be Expression objects, got {one!r}: "
                "parse_expression makes one of a text"
            )
        if one.last_column >= n_features:
            raise ValueError(f"{one} uses column {one.last_column}, but there are {n_features}")
