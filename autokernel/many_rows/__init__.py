"""Fits to more rows than exact inference can treat."""

__all__ = []
