"""Components, sentences and tables about a fitted model."""

from autokernel.explain.axes import Y_NAME, axes_of
from autokernel.explain.decomposition import Component, Decomposition
from autokernel.explain.description import Description
from autokernel.explain.tables import (
    Table,
    forecast_table,
    history_table,
    inclusion_table,
    leaderboard,
    parameter_table,
    posterior_table,
    scale_table,
)

__all__ = [
    "Y_NAME",
    "Component",
    "Decomposition",
    "Description",
    "Table",
    "axes_of",
    "forecast_table",
    "history_table",
    "inclusion_table",
    "leaderboard",
    "parameter_table",
    "posterior_table",
    "scale_table",
]
