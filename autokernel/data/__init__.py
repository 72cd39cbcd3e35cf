"""Checks and scaling of inputs and targets."""

from autokernel.data.checks import FitData, check_fit_data, check_inputs
from autokernel.data.dates import SINCE

__all__ = ["SINCE", "FitData", "check_fit_data", "check_inputs"]
