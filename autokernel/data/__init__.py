"""Checks and scaling of inputs and targets."""

from autokernel.data.checks import (
    check_range,
    check_target,
    check_training_data,
    refuse_large,
    refuse_times,
)
from autokernel.data.scaling import (
    Scaling,
    standardise,
    target_scale,
    unit_scaling,
    varying_columns,
)

__all__ = [
    "Scaling",
    "check_range",
    "check_target",
    "check_training_data",
    "refuse_large",
    "refuse_times",
    "standardise",
    "target_scale",
    "unit_scaling",
    "varying_columns",
]
