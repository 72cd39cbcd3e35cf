"""What a fitted kernel says."""

from autokernel.inspection.description import describe

__all__ = ["describe"]
