"""
When did the cycle of the sun pause?
====================================

The irradiance of the sun follows a cycle of about eleven years. From about 1645 to 1715 there were
hardly any sunspots, and the cycle is missing: this is the Maunder minimum. The
model does not know about it. We allow kernels that differ inside and outside a window, and look at
its edges.

The data do not come with the package. They are the reconstruction by the Laboratory for
Atmospheric and Space Physics (Wang, Lean and Sheeley 2005; Kopp and Lean 2011).
We read the columns ``time`` and ``value`` of ``solar.csv`` in the folder that the environment
variable ``AUTOKERNEL_DATA`` names. They are ``X`` and ``y`` of ``02-solar.mat`` in
https://github.com/jamesrobertlloyd/gpss-research.
"""

# %%
# The data
# --------
# We take every other year, which keeps five points of each cycle and shortens the search.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from autokernel import AutoKernelGPRegressor
from autokernel.displays import EffectsDisplay

table = pd.read_csv(Path(os.environ["AUTOKERNEL_DATA"]) / "solar.csv")[::2]
X, y = table[["time"]], table["value"]

# %%
# The search
# ----------
# The operator ``"cw"`` (change window) joins two kernels: ``CW[time](A, B)`` is A outside a window
# and B inside it. Change-points and windows have many parameters, so that searches with them take
# longer. We help the search by two base kernels, at most four of them in an expression, and
# ``"greedy"``, which extends the best kernel step by step.

settings = {"base_kernels": ("SE", "PER"), "strategy": "greedy", "max_leaves": 4, "n_iter": 30}
model = AutoKernelGPRegressor(operators=("+", "*", "cw"), random_state=0, **settings).fit(X, y)
print(model.leaderboard(5))

# %%
# How sure is the window?
# -----------------------
# We repeat the search without windows. Scores are in nats, and a kernel that is 5 nats ahead is
# about 150 times as probable. The best kernel without a window is tens of nats behind.

plain = AutoKernelGPRegressor(operators=("+", "*"), random_state=0, **settings).fit(X, y)
for fitted in (model, plain):
    print(f"{fitted.best_score_:7.1f}  {fitted.best_expression_}")

# %%
# In words
# --------

units = {"time": "years", "y": "W/m²"}
print(model.describe(units))

# %%
# Inside the window there is hardly any variation, and outside it the cycle of about eleven years.
# The parameters of the window are its centre and its length, here with intervals of 90 %.

table = pd.DataFrame(model.parameters_)
window = table[table["parameter"].isin(["centre", "length"])].drop_duplicates("parameter")
print(window[["parameter", "value", "low", "high", "unit"]].round(1).to_string(index=False))
centre, length = window["value"]
print(f"The window is open from {centre - length / 2:.0f} to {centre + length / 2:.0f}.")

# %%
# The picture
# -----------
# The first panel is the series with the window, and the others are the components. The window that
# was found agrees with the years that historians of astronomy give, 1645 to 1715.

parts = [one for one in model.decompose(X).components if one.expression]  # without the averaging
fig, axes = plt.subplots(
    len(parts) + 1, 1, figsize=(8, 2.8 * (len(parts) + 1)), sharex=True, layout="constrained"
)
axes[0].plot(X["time"], y, "k.", markersize=4)
axes[0].axvspan(centre - length / 2, centre + length / 2, color="tab:orange", alpha=0.2)
axes[0].set(ylabel="irradiance in W/m²")
axes[0].set_title("The series, and the window that was found", loc="left", fontsize="medium")
EffectsDisplay.from_estimator(model, units=units, y_name="W/m²", axes=axes[1:])
for ax in axes:
    ax.label_outer()
plt.show()
