"""
How far is a forecast to be trusted?
====================================

A series of pandas is one call: ``strategy="series"`` averages a few kernels that forecast well.
We forecast the last two years of a monthly series, and compare with exponential smoothing and the
Theta method of ``statsforecast``.
"""

# %%
# The data
# --------
# Monthly passengers of an airline from 1949 to 1960. The dates are in the index.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from statsforecast.models import AutoETS, AutoTheta

from autokernel import AutoKernelGPRegressor
from autokernel.datasets import load_airline

counts = load_airline().target
months = pd.date_range("1949-01", periods=len(counts), freq="MS")
passengers = pd.Series(counts, months, name="passengers")
known, later = passengers[:120], passengers[120:]

# %%
# The forecast
# ------------
# The yearly season is offered because the index holds months of ten years. The table has the mean
# and quantiles.

model = AutoKernelGPRegressor(strategy="series", random_state=0).fit(known)
forecast = pd.DataFrame(model.forecast(24, quantiles=(0.025, 0.5, 0.975))).set_index("time")
print(forecast.head())

# %%
# What it is made of
# ------------------
# These kernels were fitted, and the forecast is their average. The logarithm of the passengers has
# far more evidence than the passengers themselves.

print(model.leaderboard(6))
print(model.describe())

# %%
# Comparison with other methods
# -----------------------------
# Each method forecasts two years from five origins, half a year apart. The error is relative to
# that of repeating the last year.


def errors(origin):
    """Errors of each method for the two years after the first ``origin`` months."""
    past, future = passengers[:origin], passengers[origin : origin + 24].to_numpy()
    ours = AutoKernelGPRegressor(strategy="series", random_state=0).fit(past)
    found = {"the last year repeated": np.resize(past.to_numpy()[-12:], 24)}
    found["autokernel"] = ours.forecast(24)["0.5"]
    for name, method in (("AutoETS", AutoETS), ("AutoTheta", AutoTheta)):
        found[name] = method(season_length=12).forecast(past.to_numpy(), h=24)["mean"]
    return {name: np.abs(one - future).mean() for name, one in found.items()}


table = pd.DataFrame([errors(origin) for origin in (96, 102, 108, 114, 120)]).mean()
print((table / table["the last year repeated"]).round(2))

# %%
# The picture
# -----------
# The band holds 95 % of new months by the model. It widens as it should: the level may drift.

_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(known[-48:], ".", color="0.3", label="passengers")
ax.plot(later, ".", color="tab:orange", label="months that followed")
ax.plot(forecast["0.5"], color="tab:blue", label="median")
ax.fill_between(
    forecast.index, forecast["0.025"], forecast["0.975"], alpha=0.2, linewidth=0, label="95 %"
)
ax.set_ylabel("thousand passengers")
ax.legend(frameon=False, loc="upper left")
plt.show()
