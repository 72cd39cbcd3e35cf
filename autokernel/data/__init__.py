"""Checks and scaling of inputs and targets."""

from autokernel.data.checks import FitData, check_fit_data, check_inputs
from autokernel.data.dates import SINCE
from autokernel.data.noise import RowNoise

__all__ = ["SINCE", "FitData", "RowNoise", "check_fit_data", "check_inputs"]
