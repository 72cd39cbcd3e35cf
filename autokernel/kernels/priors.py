"""Priors of the hyperparameters, as densities of their logarithms."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType

import numpy as np
from scipy.special import gammaincinv, gammaln

from autokernel.kernels.parameters import NOISE_VARIANCE, KernelParameter, Priors
from autokernel.typing import FloatArray

PRESETS: Mapping[str, Priors] = MappingProxyType(
    {
        "default": MappingProxyType({}),
        "paper": MappingProxyType({NOISE_VARIANCE.name: (1.0, 100.0)}),
    }
)
"""What each preset says of the priors that differ from those that the parameters declare."""


def check_priors(
    priors: str | Priors, *, parameters: Iterable[KernelParameter] | None = None
) -> Priors:
    """Turn the ``priors`` argument into a mapping of what differs from the declared priors.

    Parameters
    ----------
    priors : {"default", "paper"} or mapping of str to (shape, rate)
        A preset, or entries that replace those of the default.
    parameters : iterable of KernelParameter, optional
        Those that are known beside the noise variance. Without them names are not checked.

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
        return dict(PRESETS[priors])  # that other processes can be sent
    if not isinstance(priors, Mapping):
        raise ValueError(
            f"priors must be one of {sorted(PRESETS)} or a mapping such as "
            f"{{'{NOISE_VARIANCE.name}': (2, 2)}}, got {priors!r}"
        )
    known = {parameter.name for parameter in (*(parameters or ()), NOISE_VARIANCE)}
    for name, entry in priors.items():
        if parameters is not None and name not in known:
            raise ValueError(f"priors has keys out of {sorted(known)}, got {name!r}")
        if not _is_shape_and_rate(entry):
            raise ValueError(
                f"priors[{name!r}] must be a pair (shape, rate) of positive numbers, got {entry!r}"
            )
    return {name: (float(shape), float(rate)) for name, (shape, rate) in priors.items()}


def _is_shape_and_rate(entry: object) -> bool:
    """Whether ``entry`` is a pair of positive finite numbers."""
    return (
        isinstance(entry, (tuple, list, np.ndarray))
        and len(entry) == 2
        and all(isinstance(v, Real) and not isinstance(v, bool) for v in entry)
        and all(0 < float(v) < np.inf for v in entry)
    )


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class LogGammaPrior:
    """Independent Gamma priors of ``exp(theta_i)``, as a density of theta, Jacobian included."""

    shape: FloatArray  # (n_params,)
    rate: FloatArray  # (n_params,)

    @classmethod
    def of(cls, parameters: Sequence[KernelParameter], *, priors: Priors) -> "LogGammaPrior":
        """Build the prior of these parameters."""
        entries = [parameter.prior_in(priors) for parameter in parameters]
        shape, rate = np.array(entries, dtype=float).T
        return cls(shape, rate)

    def log_density(self, theta: FloatArray) -> FloatArray:
        """Log density at theta, summed over the last axis: (..., n_params) to (...)."""
        constant = self.shape @ np.log(self.rate) - gammaln(self.shape).sum()
        return constant + theta @ self.shape - np.exp(theta) @ self.rate

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Gradient of the log density (n_params,)."""
        return self.shape - self.rate * np.exp(theta)

    def quantile(self, probability: FloatArray) -> FloatArray:
        """Log parameters at cumulative probabilities of shape (..., n_params)."""
        return np.log(gammaincinv(self.shape, probability) / self.rate)
