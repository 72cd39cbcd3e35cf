"""Components, sentences and tables about a fitted model."""

from autokernel.explain.decomposition import Component, Decomposition
from autokernel.explain.description import TARGET, Description
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
    "Component",
    "Decomposition",
    "Description",
    "Table",
    "history_table",
    "inclusion_table",
    "leaderboard",
    "parameter_table",
    "posterior_table",
    "scale_table",
]
