"""What a fitted kernel says about the data: components, words, pictures."""

from autokernel.explanation.decomposition import Component, Decomposition
from autokernel.explanation.description import Description

__all__ = ["Component", "Decomposition", "Description"]
