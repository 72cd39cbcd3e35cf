"""Components, sentences and tables about a fitted model."""

from autokernel.explain.axes import TARGET, Axis, axes_of
from autokernel.explain.decomposition import Component, Decomposition, Interaction
from autokernel.explain.description import Description
from autokernel.explain.questions import average_slopes, compared, contributions
from autokernel.explain.tables import (
    Table,
    history_table,
    inclusion_table,
    leaderboard,
    parameter_table,
    posterior_table,
    scale_table,
)

__all__ = [
    "TARGET",
    "Axis",
    "Component",
    "Decomposition",
    "Description",
    "Interaction",
    "Table",
    "average_slopes",
    "axes_of",
    "compared",
    "contributions",
    "history_table",
    "inclusion_table",
    "leaderboard",
    "parameter_table",
    "posterior_table",
    "scale_table",
]
