"""Starting points from fits of other kernels."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from autokernel.expression import Expression, Slot, slots_of
from autokernel.typing import FloatArray, IntArray

_LESS_NOISE = np.log(4.0)  # log factor, as terms added to a kernel explain some of the noise


class WarmStart(NamedTuple):
    """Parameters of some nodes of a kernel, taken from the fit of another kernel."""

    nodes: Sequence[int]  # indices among the nodes of the kernel
    theta: FloatArray  # log parameters of these nodes in this order, the noise variance last
    hessian: FloatArray | None = None  # of the negative log posterior of the other kernel, in theta

    @property
    def definition(self) -> tuple[tuple[int, ...], bytes, bytes]:
        """What tells it from any other: nodes, theta and Hessian to the last bit."""
        hessian = b"" if self.hessian is None else self.hessian.tobytes()
        return tuple(self.nodes), self.theta.tobytes(), hessian


def with_warm_starts(
    expression: Expression, draws: FloatArray, fits: Iterable[WarmStart]
) -> FloatArray:
    """Return draws of theta (n_draws, n_params) with parameters replaced by those of fits.

    If several fits have a node, the last one counts. The noise variance is the lowest one of the
    fits, and is reduced further in every other draw.
    """
    draws = draws.copy()
    slots = slots_of(expression)
    noise = np.inf
    for fit in fits:
        draws[:, _entries(slots, fit)] = fit.theta
        noise = min(noise, fit.theta[-1])
    draws[:, -1] = noise
    draws[1::2, -1] -= _LESS_NOISE
    return draws


def curvature_from(
    expression: Expression, fits: Iterable[WarmStart], scales: FloatArray
) -> FloatArray | None:
    """Join the Hessians of fits to that (n_params, n_params) of a kernel, None if none is known.

    The parameters that no fit has are taken as independent, with the standard deviations
    ``scales`` (n_params,).
    """
    curvature = np.diag(scales**-2)
    slots, is_known = slots_of(expression), False
    for fit in fits:
        if fit.hessian is None or not np.all(np.isfinite(fit.hessian)):
            continue
        entries, is_known = _entries(slots, fit), True
        curvature[entries] = curvature[:, entries] = 0.0
        curvature[np.ix_(entries, entries)] = fit.hessian
    return curvature if is_known else None


def _entries(slots: Sequence[Slot], fit: WarmStart) -> IntArray:
    """Return the entries of theta that a fit has, the noise variance last."""
    numbers = np.arange(slots[-1].entries.stop + 1)
    return np.concatenate([*(numbers[slots[node].entries] for node in fit.nodes), numbers[-1:]])
