"""What a fitted kernel says about the data: components, words, pictures."""

from autokernel.explanation.decomposition import Component, Decomposition
from autokernel.explanation.description import Description
from autokernel.explanation.parameters import Parameters

__all__ = ["Component", "Decomposition", "Description", "Parameters"]
