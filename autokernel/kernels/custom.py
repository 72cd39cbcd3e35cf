"""A base kernel defined by a function of two sets of points."""

from collections.abc import Callable, Sequence

import numpy as np

from autokernel.kernels.base import BaseKernel
from autokernel.kernels.pairs import Pairs
from autokernel.kernels.parameters import KernelParameter
from autokernel.typing import FloatArray


class CallableKernel(BaseKernel):
    """A base kernel defined by a function that is called like a kernel of scikit-learn.

    Its derivatives are central differences: each gradient takes four calls for each parameter.

    Parameters
    ----------
    name : str
        Name in expressions.
    function : callable
        ``function(X, Y, *params)`` returns the values (n, m) at columns X (n, 1) and Y (m, 1),
        symmetric and positive definite. It must be importable by worker processes.
    parameters : sequence of KernelParameter
        The parameters, in the order in which the function takes them.

    Examples
    --------
    >>> import numpy as np
    >>> from autokernel.kernels.parameters import LENGTHSCALE, VARIANCE
    >>> def exponential(X, Y, lengthscale, variance):
    ...     return variance * np.exp(-np.abs(X - Y.T) / lengthscale)
    >>> CallableKernel("EXP", exponential, (LENGTHSCALE, VARIANCE))
    CallableKernel(name='EXP')
    """

    name = "CALLABLE"

    def __init__(
        self,
        name: str,
        function: Callable[..., FloatArray],
        parameters: Sequence[KernelParameter],
    ) -> None:
        super().__init__(name)
        self.function = function
        self.parameters = tuple(parameters)

    def value(self, params: FloatArray, pairs: Pairs) -> FloatArray:
        """Compute the kernel values at parameters (n_params,), elementwise over the pairs."""
        return pairs.matrix(lambda X, Y: np.asarray(self.function(X, Y, *params), dtype=float))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"
