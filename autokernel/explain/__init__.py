"""Components, sentences and tables about a fitted model."""

from autokernel.explain.axes import Y_NAME, axes_of
from autokernel.explain.decomposition import Decomposition
from autokernel.explain.description import Description
from autokernel.explain.forecasts import forecast_table
from autokernel.explain.mixin import ExplainMixin
from autokernel.explain.tables import (
    Table,
    column_table,
    history_table,
    inclusion_table,
    left_out_table,
    outcome_table,
    posterior_table,
    scale_table,
)
