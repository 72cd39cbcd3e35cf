"""Priors of the hyperparameters, as densities of their logarithms."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.special import gammaincinv, gammaln

from autokernel.typing import FloatArray

Priors = Mapping[str, tuple[float, float]]
"""Shape and rate of the Gamma prior of each parameter name."""

_PAPER: Priors = {
    "lengthscale": (2.0, 2.0),
    "variance": (2.0, 3.0),
    "period": (2.0, 2.0),
    "offset": (2.0, 3.0),
    "alpha": (2.0, 2.0),
    "noise_variance": (1.0, 100.0),
}
PRESETS: Mapping[str, Priors] = {
    # an expected noise variance of half the target's instead of a hundredth: chosen by
    # benchmarks/noise_prior.py, see docs/theory.md
    "default": {**_PAPER, "noise_variance": (1.0, 2.0)},
    "paper": _PAPER,
}


def check_priors(priors: str | Priors) -> Priors:
    """Turn the ``priors`` argument into a complete mapping.

    Parameters
    ----------
    priors : {"default", "paper"} or mapping of str to (shape, rate)
        A preset, or entries that replace those of the default.

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
        return PRESETS[priors]
    if not isinstance(priors, Mapping):
        raise ValueError(
            f"priors must be one of {sorted(PRESETS)} or a mapping such as "
            f"{{'lengthscale': (2, 2)}}, got {priors!r}"
        )
    default = PRESETS["default"]
    for name, entry in priors.items():
        if name not in default:
            raise ValueError(f"priors has keys out of {sorted(default)}, got {name!r}")
        if not _is_shape_and_rate(entry):
            raise ValueError(
                f"priors[{name!r}] must be a pair (shape, rate) of positive numbers, got {entry!r}"
            )
    given = {name: (float(shape), float(rate)) for name, (shape, rate) in priors.items()}
    return {**default, **given}


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
    def of(cls, names: tuple[str, ...], *, priors: Priors) -> "LogGammaPrior":
        """Build the prior of the parameters with these names."""
        shape, rate = np.array([priors[name] for name in names], dtype=float).T
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
