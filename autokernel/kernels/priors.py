"""Priors of the hyperparameters, as densities of their logarithms."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.special import gammaincinv, gammaln

from autokernel.kernels.parameters import (
    NOISE_VARIANCE,
    VARIANCE,
    KernelParameter,
    Priors,
    is_shape_and_rate,
)
from autokernel.typing import FloatArray
from autokernel.validation import did_you_mean

PRESETS: Mapping[str, Priors] = MappingProxyType(
    {
        "default": MappingProxyType({}),
        "paper": MappingProxyType(
            {NOISE_VARIANCE.name: (1.0, 100.0), VARIANCE.name: VARIANCE.prior}
        ),
    }
)
"""For each preset, the priors that replace those that the parameters declare."""


def check_priors(
    priors: str | Priors, *, parameters: Iterable[KernelParameter] | None = None
) -> Priors:
    """Turn the ``priors`` argument into a mapping of the priors that replace declared ones.

    Parameters
    ----------
    priors : {"default", "paper"} or mapping of str to (shape, rate)
        A preset, or entries that replace those of the default preset.
    parameters : iterable of KernelParameter, optional
        Known parameters besides the noise variance. If None, names are not checked.

    Raises
    ------
    ValueError
        If the preset or a parameter name is unknown, or a shape or rate is not a positive number.
    """
    if isinstance(priors, str):
        if priors not in PRESETS:
            raise ValueError(
                f"priors must be one of {sorted(PRESETS)} or a mapping, got {priors!r}"
            )
        return dict(PRESETS[priors])  # a dict can be sent to other processes
    if not isinstance(priors, Mapping):
        raise ValueError(
            f"priors must be one of {sorted(PRESETS)} or a mapping such as "
            f"{{'{NOISE_VARIANCE.name}': (2, 2)}}, got {priors!r}"
        )
    known = {parameter.name for parameter in (*(parameters or ()), NOISE_VARIANCE)}
    for name, entry in priors.items():
        if parameters is not None and name not in known:
            raise ValueError(
                f"priors must have keys out of {sorted(known)}, got {name!r}"
                f"{did_you_mean(name, known)}"
            )
        if not is_shape_and_rate(entry):
            raise ValueError(
                f"priors[{name!r}] must be a pair (shape, rate) of positive numbers, got {entry!r}"
            )
    return {name: (float(shape), float(rate)) for name, (shape, rate) in priors.items()}


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class LogGammaPrior:
    """Independent Gamma priors of ``exp(theta_i)``, as a density of theta with the Jacobian."""

    shape: FloatArray  # (n_params,)
    rate: FloatArray  # (n_params,)

    @classmethod
    def of(cls, parameters: Sequence[KernelParameter], *, priors: Priors) -> "LogGammaPrior":
        """Build the prior of these parameters."""
        entries = [parameter.prior_in(priors) for parameter in parameters]
        shape, rate = np.array(entries, dtype=float).T
        return cls(shape, rate)

    def log_density(self, theta: FloatArray) -> FloatArray:
        """Compute the log density at theta, summed over the last axis: (..., n_params) to (...)."""
        constant = self.shape @ np.log(self.rate) - gammaln(self.shape).sum()
        return constant + theta @ self.shape - np.exp(theta) @ self.rate

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Compute the gradient (n_params,) of the log density."""
        return self.shape - self.rate * np.exp(theta)

    def curvature(self, theta: FloatArray) -> FloatArray:
        """Compute the diagonal (n_params,) of the Hessian of the negative log density."""
        return self.rate * np.exp(theta)

    def quantile(self, probability: FloatArray) -> FloatArray:
        """Return the log parameters at cumulative probabilities of shape (..., n_params)."""
        return np.log(gammaincinv(self.shape, probability) / self.rate)
