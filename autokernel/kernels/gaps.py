"""A base kernel on a column with missing values."""

from functools import cached_property

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from autokernel.data.scales import Scale
from autokernel.kernels.base import BaseKernel
from autokernel.kernels.pairs import BroadcastPairs, Pairs
from autokernel.typing import FloatArray

_N_PLACES = 16  # values for which a missing one may stand


def possible_values(x: FloatArray) -> tuple[float, ...]:
    """Return quantiles of a column (n_samples,) with NaN, for which a missing value may stand."""
    levels = (np.arange(_N_PLACES) + 0.5) / _N_PLACES
    return tuple(np.nanquantile(x, levels).tolist())


def of_known(kernel: BaseKernel) -> BaseKernel:
    """Return the base kernel of values that are known."""
    return kernel.kernel if isinstance(kernel, WithGaps) else kernel


class WithGaps(BaseKernel):
    """A base kernel for a column of which some values are missing, completely at random.

    A missing value ``x*`` is another independent draw from the known ones: ``k(x, x*) = E k(x, X)``
    and ``k(x*, x**) = E k(X, X')``, and the variance of the function there is ``E k(X, X)``. These
    are the second moments of ``f(X)``, so that the kernel is positive definite.

    Parameters
    ----------
    kernel : BaseKernel
        The kernel of two values that are known, whose name and parameters it has.
    places : tuple of float
        Values of X that are equally probable, in the unit interval of the column.
    scale : Scale, optional
        Scale of the column on which the kernel acts.
    """

    def __init__(
        self, kernel: BaseKernel, places: tuple[float, ...], scale: Scale | None = None
    ) -> None:
        super().__init__(kernel.name)
        self.kernel, self.places, self.scale = kernel, places, scale
        self.parameters, self.formula = kernel.parameters, kernel.formula
        self.is_linear, self.is_categorical = kernel.is_linear, kernel.is_categorical
        self.has_few_modes = kernel.has_few_modes
        self.closed_under_sums = kernel.closed_under_sums
        self.closed_under_products = kernel.closed_under_products

    def on(self, scale: Scale | None) -> "WithGaps":
        """Return the same kernel on another scale of the column."""
        return WithGaps(self.kernel, self.places, scale)

    @property
    def limits(self) -> tuple[BaseKernel, ...]:
        """The limits of the kernel of known values."""
        return tuple(WithGaps(one, self.places, self.scale) for one in self.kernel.limits)

    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Compute the kernel values, elementwise over the pairs."""
        value, gaps, kernel = self.kernel.value(params, pairs), pairs.gaps, self.kernel
        if gaps.n_known:
            tables = kernel.value(params, gaps.with_places(self._places))
            value[gaps.one] = tables.reshape(gaps.n_known, -1).mean(axis=1)[gaps.indices]
        value[gaps.apart] = kernel.value(params, self._pairs_of_places).mean()
        value[gaps.same] = kernel.value(params, self._same_places).mean()
        return value

    def gradient(self, params: FloatArray, pairs: Pairs, adjoint: FloatArray) -> FloatArray:
        """Compute the gradient (n_params,) of ``sum(adjoint * value)`` in the log parameters."""
        gaps, gradient_of, n = pairs.gaps, self.kernel.gradient, len(self.places)
        of_known = np.where(gaps.one | gaps.apart | gaps.same, 0.0, adjoint)
        gradient = gradient_of(params, pairs, of_known)
        if gaps.n_known:
            of_one = np.bincount(gaps.indices, adjoint[gaps.one], gaps.n_known) / n
            gradient += gradient_of(params, gaps.with_places(self._places), np.repeat(of_one, n))
        for mask, of_mask in (
            (gaps.apart, self._pairs_of_places),
            (gaps.same, self._same_places),
        ):
            (size,) = of_mask.shape
            gradient += gradient_of(params, of_mask, np.full(size, adjoint[mask].sum() / size))
        return gradient

    def to_sklearn(self, params: FloatArray, *, scale: float) -> Kernel | None:
        """Build the scikit-learn kernel of known values."""
        return self.kernel.to_sklearn(params, scale=scale)

    @cached_property
    def _places(self) -> tuple[float, ...]:
        """The values for which a missing one may stand, on the scale of the kernel."""
        if self.scale is None:
            return self.places
        return tuple(self.scale.forward(np.array(self.places)).tolist())

    @cached_property
    def _pairs_of_places(self) -> BroadcastPairs:
        n = len(self.places)
        return BroadcastPairs(np.repeat(self._places, n), np.tile(self._places, n))

    @cached_property
    def _same_places(self) -> BroadcastPairs:
        return BroadcastPairs(np.array(self._places), np.array(self._places))
