"""A fitted model in other forms: JSON, LaTeX, a report."""

from autokernel.export.latex import latex_of
from autokernel.export.records import FORMAT_VERSION, model_of, record_of
from autokernel.export.report import write_report
from autokernel.export.sources import gpflow_source, gpytorch_source

__all__ = [
    "FORMAT_VERSION",
    "gpflow_source",
    "gpytorch_source",
    "latex_of",
    "model_of",
    "record_of",
    "write_report",
]
