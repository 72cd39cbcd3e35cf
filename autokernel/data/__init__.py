"""The table of the user: its columns, its target, and the noise of its rows."""

from autokernel.data.checks import FitData, check_fit_data, check_inputs, check_new_rows
from autokernel.data.columns import Column, Columns, Inputs, Levels
from autokernel.data.dates import SINCE
from autokernel.data.noise import CONSTANT, NoiseFunction, NoiseTerm, RowNoise
from autokernel.data.series import NO_SERIES, Series
from autokernel.data.target import Target
