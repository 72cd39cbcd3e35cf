"""A fitted estimator as a web page."""

from autokernel.pages.report import write_report

__all__ = ["write_report"]
