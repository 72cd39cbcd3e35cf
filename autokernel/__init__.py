"""Gaussian-process regression that discovers its own kernel."""

__version__ = "0.1.0.dev0"
