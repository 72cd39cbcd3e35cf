"""A fitted model in other forms: JSON, LaTeX, a report."""

from autokernel.export.latex import to_latex
from autokernel.export.records import from_dict, to_dict
from autokernel.export.report import write_report

__all__ = ["from_dict", "to_dict", "to_latex", "write_report"]
