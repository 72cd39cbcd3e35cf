"""Bayesian optimisation with a kernel for hierarchical spaces."""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from autokernel.expression import Expression, Operation, arrange
from autokernel.search.distances import operator_text
from autokernel.search.methods.sot import SOT
from autokernel.search.surrogate import LOG_BOUNDS, Frequencies, FrequencyKernel
from autokernel.typing import FloatArray

N_DEPTHS = 10  # levels of a tree with a distance each; deeper positions count in the last


class ArcKernel(FrequencyKernel):
    """The kernel ``exp(-sum_i omega_i^2 d_i / 2)``, d_i the distances at level i of a tree.

    ``omega_i`` is the product of the ``gamma`` of all levels from the root down to level i. The
    parameters are the log of the squared lengthscale, which replaces the ``gamma`` of the root, and
    the logits of the other ``gamma``.

    The space is that of :class:`Arc`, with sums and products in canonical order. The squared
    pseudo-metric of Hutter and Osborne (2013), section 3, is 0 for a position that is equal, or
    inactive in both trees; 1 for one that is active in one tree; 2 for one whose values differ. It
    is the L1 distance, twice the total variation, of indicators of positions with their values.
    With ``omega_i`` by their eq. 6 this is their product kernel (eq. 3), which is positive
    semi-definite.
    """

    # large lengthscales, as some forty positions may differ
    bounds = ((-4.0, 8.0), *(LOG_BOUNDS,) * (N_DEPTHS - 1))
    start_noise = 0.3  # fits from less noise end at short lengthscales or at pure noise

    def frequencies(self, expression: Expression) -> Sequence[Frequencies]:
        """Mark the values of the active positions of the arranged tree, level by level."""
        by_depth: list[dict[str, float]] = [{} for _ in range(N_DEPTHS)]
        positions = [("", 0, arrange(expression.tree)[0])]
        for path, depth, tree in positions:  # which grow by the operands of each
            value = operator_text(tree) if isinstance(tree, Operation) else tree.canonical
            by_depth[min(depth, N_DEPTHS - 1)][f"{path} {value}"] = 1.0
            below = enumerate(tree.operands)
            positions += [(f"{path}.{number}", depth + 1, operand) for number, operand in below]
        if expression.prefix:
            by_depth[0][expression.prefix] = 1.0
        return by_depth

    def weights(self, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        gamma = expit(params[1:])
        values = np.exp(-params[0]) * np.cumprod(np.append(1.0, gamma**2))
        above = np.tri(N_DEPTHS, N_DEPTHS - 1, -1)  # 1 where a level depends on a gamma
        return values, np.column_stack([-values, 2 * values[:, None] * above * (1 - gamma)])


class Arc(SOT):
    """Bayesian optimisation in a hierarchical space, which climbs as :class:`SOT` does.

    Each position of a tree is a categorical variable whose value is an operator, or a base kernel
    with its column. A position is active if the position above holds an operator.

    Parameters
    ----------
    acquisition, population_size, local_steps, initial_design
        As for :class:`SOT`.

    Notes
    -----
    Hutter and Osborne (2013), *A kernel for hierarchical parameter spaces*, section 3, with one
    weight for each level of the tree. All but the kernel between expressions is as in
    :class:`SOT`, also the priors with which that is fitted after a climb.
    """

    _kernel_type = ArcKernel
