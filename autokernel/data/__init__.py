"""Checks and scaling of inputs and targets."""

from autokernel.data.checks import (
    check_fit_data,
    check_training_data,
    refuse_large,
    refuse_times,
)
from autokernel.data.scaling import (
    Scaling,
    TargetScaling,
    unit_scaling,
    varying_columns,
)

__all__ = [
    "Scaling",
    "TargetScaling",
    "check_fit_data",
    "check_training_data",
    "refuse_large",
    "refuse_times",
    "unit_scaling",
    "varying_columns",
]
