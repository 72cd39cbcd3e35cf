"""Checks and scaling of inputs and targets."""

from autokernel.data.checks import (
    check_fit_data,
    check_training_data,
    refuse_gaps,
    refuse_large,
    refuse_times,
)
from autokernel.data.dates import SINCE, dates_counted, days_since_1970
from autokernel.data.named import NamedColumns, validated
from autokernel.data.scaling import Scaling, TargetScaling, unit_scaling, varying_columns

__all__ = [
    "SINCE",
    "NamedColumns",
    "Scaling",
    "TargetScaling",
    "check_fit_data",
    "check_training_data",
    "dates_counted",
    "days_since_1970",
    "refuse_gaps",
    "refuse_large",
    "refuse_times",
    "unit_scaling",
    "validated",
    "varying_columns",
]
