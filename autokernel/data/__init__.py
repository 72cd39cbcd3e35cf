"""Checks and scaling of inputs and targets."""

from autokernel.data.checks import FitData, check_fit_data, check_inputs, check_training_data
from autokernel.data.dates import SINCE, days_since_1970
from autokernel.data.scaling import Scaling, TargetScaling, unit_scaling, varying_columns

__all__ = [
    "SINCE",
    "FitData",
    "Scaling",
    "TargetScaling",
    "check_fit_data",
    "check_inputs",
    "check_training_data",
    "days_since_1970",
    "unit_scaling",
    "varying_columns",
]
