"""Posteriors over kernels and their parameters, and the mixtures that predict with them."""

from autokernel.averaging.average import AVERAGES, Averaging, PosteriorAveraging, Stacking
from autokernel.averaging.components import Component
from autokernel.averaging.posterior import KernelPosterior, posterior_over_kernels

__all__ = [
    "AVERAGES",
    "Averaging",
    "Component",
    "KernelPosterior",
    "PosteriorAveraging",
    "Stacking",
    "posterior_over_kernels",
]
