"""A fitted model in other forms: formulas, other libraries, JSON."""

from autokernel.transfer.latex import latex_of
from autokernel.transfer.records import FORMAT_VERSION, model_of, record_of
from autokernel.transfer.sources import gpflow_source, gpytorch_source

__all__ = [
    "FORMAT_VERSION",
    "gpflow_source",
    "gpytorch_source",
    "latex_of",
    "model_of",
    "record_of",
]
