"""Python programs that predict as a fitted kernel does, with GPyTorch or GPflow."""

import textwrap
from typing import NamedTuple

from autokernel.export.latex import write
from autokernel.expression import NOISE
from autokernel.kernels import BaseKernel
from autokernel.model import FittedModel
from autokernel.typing import FloatArray
from autokernel.version import __version__


class _Library(NamedTuple):
    """How a library writes kernels, and the program around them."""

    name: str
    key: str  # its field in the sources of kernels
    program: str


_GPYTORCH = _Library(
    "GPyTorch",
    "gpytorch",
    '''\
import gpytorch
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import (
    ConstantKernel,
    Kernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)



def tensor(value):
    """Keep all digits."""
    return torch.as_tensor(value, dtype=torch.float64)


# Inputs are scaled to the unit interval, and the target is standardised.
SHIFT, SCALE = tensor({shift}), tensor({scale})
Y_MEAN, Y_STD = {y_mean}, {y_std}
NOISE_VARIANCE = tensor({noise})


def valued(kernel, **values):
    """Set the parameters of a kernel."""
    kernel = kernel.double()
    kernel.initialize(**{name: tensor(value) for name, value in values.items()})
    return kernel


def scaled(variance, kernel, **values):
    """Set the parameters of a kernel and multiply it by a variance."""
    return valued(ScaleKernel(valued(kernel, **values)), outputscale=variance)


class Linear(LinearKernel):
    """The linear kernel as a full matrix, as a sum with one of low rank factorises the others."""

    def forward(self, x1, x2, diag=False, **params):
        values = super().forward(x1, x2, diag=diag, **params)
        return values if diag else values.to_dense()


class Part(Kernel):
    """f(x) f(x') for a function f of one column."""

    def __init__(self, column, function):
        super().__init__(active_dims=[column])
        self.function = function

    def forward(self, x1, x2, diag=False, **params):
        left, right = self.function(x1), self.function(x2)
        return (left * right)[..., 0] if diag else left @ right.transpose(-1, -2)


class Zero(Kernel):
    """The kernel of noise alone."""

    def forward(self, x1, x2, diag=False, **params):
        values = x1.new_zeros(*x1.shape[:-1], x2.shape[-2])
        return values[..., 0] if diag else values


def window(x, centre, length, width):
    """About one in a window around a centre, zero elsewhere."""
    rising = torch.sigmoid((x - centre + length / 2) / width)
    return rising * torch.sigmoid((centre + length / 2 - x) / width)


def make_kernel():
    """Make the kernel with the values that were found."""
    return {kernel}


class Model(gpytorch.models.ExactGP):
    """An exact Gaussian process without a mean."""

    def __init__(self, X, y, likelihood):
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = make_kernel()

    def forward(self, X):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))


def make_model(X, y):
    """Make the model for rows X (n_samples, n_features) and y (n_samples,), and its likelihood."""
    X = (tensor(X) - SHIFT) / SCALE
    y = (tensor(y) - Y_MEAN) / Y_STD
    likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=GreaterThan(1e-10))
    likelihood = likelihood.double()
    likelihood.noise = NOISE_VARIANCE
    return Model(X, y, likelihood).double(), likelihood


def predict(model, likelihood, X):
    """Predict mean and standard deviation of new observations, in the units of y."""
    X = (tensor(X) - SHIFT) / SCALE
    model.eval()
    likelihood.eval()
    exact = gpytorch.settings.fast_computations(False, False, False)
    with torch.no_grad(), exact, gpytorch.settings.max_cholesky_size(10**9):
        found = likelihood(model(X))
        return Y_MEAN + Y_STD * found.mean, Y_STD * found.variance.sqrt()
''',
)

_GPFLOW = _Library(
    "GPflow",
    "gpflow",
    '''\
import gpflow
import numpy as np
import tensorflow as tf
from gpflow import kernels

# Inputs are scaled to the unit interval, and the target is standardised.
SHIFT = np.array({shift})
SCALE = np.array({scale})
Y_MEAN, Y_STD = {y_mean}, {y_std}
NOISE_VARIANCE = {noise}


class Part(kernels.Kernel):
    """f(x) f(x') for a function f of one column."""

    def __init__(self, column, function):
        super().__init__(active_dims=[column])
        self.function = function

    def K(self, X, X2=None):
        other = X if X2 is None else X2
        return self.function(X) * tf.transpose(self.function(other))

    def K_diag(self, X):
        return self.function(X)[:, 0] ** 2


class Zero(kernels.Kernel):
    """The kernel of noise alone."""

    def K(self, X, X2=None):
        other = X if X2 is None else X2
        return tf.zeros((tf.shape(X)[0], tf.shape(other)[0]), dtype=X.dtype)

    def K_diag(self, X):
        return tf.zeros(tf.shape(X)[0], dtype=X.dtype)


def window(x, centre, length, width):
    """About one in a window around a centre, zero elsewhere."""
    rising = tf.sigmoid((x - centre + length / 2) / width)
    return rising * tf.sigmoid((centre + length / 2 - x) / width)


def make_kernel():
    """Make the kernel with the values that were found."""
    return {kernel}


def make_model(X, y):
    """Make the model for rows X (n_samples, n_features) and y (n_samples,)."""
    X = (np.asarray(X, dtype=float) - SHIFT) / SCALE
    y = (np.asarray(y, dtype=float)[:, None] - Y_MEAN) / Y_STD
    noise = gpflow.likelihoods.Gaussian(NOISE_VARIANCE, variance_lower_bound=1e-12)
    return gpflow.models.GPR((X, y), make_kernel(), likelihood=noise)


def predict(model, X):
    """Predict mean and standard deviation of new observations, in the units of y."""
    mean, variance = model.predict_y((np.asarray(X, dtype=float) - SHIFT) / SCALE)
    return Y_MEAN + Y_STD * mean.numpy()[:, 0], Y_STD * np.sqrt(variance.numpy()[:, 0])
''',
)


def gpytorch_source(model: FittedModel) -> str:
    """Write a program for GPyTorch."""
    return _source(model, _GPYTORCH)


def gpflow_source(model: FittedModel) -> str:
    """Write a program for GPflow."""
    return _source(model, _GPFLOW)


def _source(model: FittedModel, library: _Library) -> str:
    """Fill the best kernel with its values into the program of a library."""

    def leaf(kernel: BaseKernel, column: int, params: FloatArray) -> str:
        pairs = zip(kernel.parameters, params.tolist(), strict=True)
        values = {parameter.name: repr(value) for parameter, value in pairs}
        template: str = getattr(kernel.sources, library.key)
        if not template:
            raise ValueError(
                f"{kernel!r} must say in its sources what it is in {library.name}, as the base "
                "kernels that ship do"
            )
        return template.format(column=column, **values)

    expression = model.evaluation.expression
    kernel = "Zero()"
    if expression != NOISE:
        terms = write(expression, model.evaluation.theta[:-1], leaf)
        kernel = f"(\n        {terms}\n    )"
    values = {
        "shift": repr(model.scaling.shift.tolist()),
        "scale": repr(model.scaling.scale.tolist()),
        "y_mean": repr(model.target_scaling.shift),
        "y_std": repr(model.target_scaling.scale),
        "noise": repr(model.scaled_noise_variance),
        "kernel": kernel,
    }
    program = library.program
    for name, value in values.items():
        program = program.replace(f"{{{name}}}", value)
    title = f"The kernel {expression.to_text(model.feature_names)} of autokernel {__version__}."
    comment = textwrap.fill(title, 95, initial_indent="# ", subsequent_indent="# ")
    return f"{comment}\n\n{program}"
