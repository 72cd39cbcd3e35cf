"""A scikit-learn kernel that acts on one column."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from autokernel.typing import FloatArray


class FeatureKernel(Kernel):
    """Apply a kernel to one shifted column: ``k(X[:, feature] - shift, Y[:, feature] - shift)``.

    Parameters
    ----------
    kernel : Kernel
        Scikit-learn kernel on vectors.
    feature : int
        Zero-based index of the column.
    shift : float, default=0.0
        Number subtracted from the column first. It changes the values of kernels that are not
        stationary, and reduces rounding errors of stationary ones if the column is far from zero.
    name : str, optional
        Name of the column, for the text of the kernel.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> FeatureKernel(RBF(2.0), feature=1)([[0.0, 1.0], [5.0, 1.0]])
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(
        self, kernel: Kernel, feature: int, shift: float = 0.0, name: str | None = None
    ) -> None:
        self.kernel = kernel
        self.feature = feature
        self.shift = shift
        self.name = name

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this kernel and, with a prefix, of the inner kernel."""
        own = ("kernel", "feature", "shift", "name")
        params: dict[str, Any] = {parameter: getattr(self, parameter) for parameter in own}
        if deep:
            inner = self.kernel.get_params()
            params.update({f"kernel__{name}": value for name, value in inner.items()})
        return params

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Hyperparameters of the inner kernel."""
        return [
            Hyperparameter(f"kernel__{h.name}", h.value_type, h.bounds, h.n_elements)
            for h in self.kernel.hyperparameters
        ]

    @property
    def theta(self) -> FloatArray:
        """Logs of the free hyperparameters of the inner kernel."""
        return self.kernel.theta

    @theta.setter
    def theta(self, theta: FloatArray) -> None:
        self.kernel.theta = theta

    @property
    def bounds(self) -> FloatArray:
        """Bounds of theta."""
        return self.kernel.bounds

    @property
    def requires_vector_input(self) -> bool:
        """True, because only vectors have columns."""
        return True

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FeatureKernel)
            and self.feature == other.feature
            and self.shift == other.shift
            and bool(self.kernel == other.kernel)
        )

    def __call__(
        self,
        X: FloatArray,
        Y: FloatArray | None = None,
        eval_gradient: bool = False,
    ) -> Any:
        """Compute the kernel matrix of the column, and its gradient in theta if requested.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs of the rows.
        Y : array-like of shape (n_samples_Y, n_features), optional
            Inputs of the columns, by default X.
        eval_gradient : bool, default=False
            Whether to return the gradient as well, which requires that Y is None.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples_Y), or a pair of it and its gradient
            The values of the inner kernel.
        """
        right = None if Y is None else self._column(Y)
        return self.kernel(self._column(X), right, eval_gradient=eval_gradient)

    def diag(self, X: FloatArray) -> FloatArray:
        """Compute the diagonal (n_samples_X,) of the kernel matrix."""
        return self.kernel.diag(self._column(X))

    def is_stationary(self) -> bool:
        """Whether the inner kernel is stationary."""
        return bool(self.kernel.is_stationary())

    def __repr__(self) -> str:
        sign = "-" if self.shift > 0 else "+"
        shift = "" if self.shift == 0 else f" {sign} {abs(self.shift):.6g}"
        return f"[{self.kernel!r}]({self.name or f'x{self.feature}'}{shift})"

    def _column(self, X: FloatArray) -> FloatArray:
        """Return the shifted column as an array of shape (n_samples, 1)."""
        return np.asarray(X)[:, [self.feature]] - self.shift
