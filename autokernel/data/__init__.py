"""Checks and scaling of inputs and targets."""

from autokernel.data.checks import (
    check_fit_data,
    check_training_data,
    refuse_gaps,
    refuse_large,
    refuse_times,
)
from autokernel.data.dates import SINCE, dates_counted
from autokernel.data.scaling import (
    Scaling,
    TargetScaling,
    unit_scaling,
    varying_columns,
)

__all__ = [
    "SINCE",
    "Scaling",
    "TargetScaling",
    "check_fit_data",
    "check_training_data",
    "dates_counted",
    "refuse_gaps",
    "refuse_large",
    "refuse_times",
    "unit_scaling",
    "varying_columns",
]
