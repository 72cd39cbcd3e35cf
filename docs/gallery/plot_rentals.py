"""
What do bike rentals depend on?
===============================

A table of bike rentals has dates, the kind of day and the weather in words, and some temperatures
were not recorded. Nothing of this needs a preparation: dates are counted in days, words are
categories, and a missing value is taken for another draw from its column. We ask what the rentals
depend on, and forecast four months.
"""

# %%
# The data
# --------
# We make two years of rentals, of which every third day was recorded. They rise over the years,
# are highest in summer, and lower at weekends and on rainy days.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from autokernel import AutoKernelGPRegressor

rng = np.random.default_rng(0)
date = pd.date_range("2023-01-01", "2024-12-31", freq="3D")
table = pd.DataFrame(
    {
        "date": date,
        "day": np.where(date.day_of_week >= 5, "weekend", "working day"),
        "weather": rng.choice(["clear", "cloudy", "rain"], size=len(date), p=[0.5, 0.3, 0.2]),
        "temperature": 12 - 10 * np.cos(2 * np.pi * (date.day_of_year - 20) / 365.25),
    }
)
table["temperature"] += rng.normal(0, 3, len(table))
rentals = (
    300
    + 0.15 * np.asarray((date - date[0]).days)
    + 12 * table["temperature"]
    - 80 * (table["day"] == "weekend")
    + table["weather"].map({"clear": 0, "cloudy": -20, "rain": -150})
    + rng.normal(0, 30, len(table))
)
table.loc[rng.uniform(size=len(table)) < 0.05, "temperature"] = np.nan
print(table.assign(rentals=rentals.round()).head())

# %%
# The fit
# -------
# We fit the first twenty months and predict the last four.

past = table["date"] < "2024-09-01"
model = AutoKernelGPRegressor(n_iter=10, random_state=0).fit(table[past], rentals[past])
print(model.describe(units={"temperature": "°C"}))

# %%
# Each effect that was put into the data is found, and the numbers are near to those above.

print(model.inclusion_probabilities_)

# %%
# The picture
# -----------
# Intervals are wider on days of which the temperature is not known.

future = table[~past]
low, high = model.predict_interval(future, coverage=0.9).T
inside = np.mean((low <= rentals[~past]) & (rentals[~past] <= high))
print(f"R² of the last four months: {model.score(future, rentals[~past]):.2f}")
print(f"90 % intervals hold {inside:.0%} of {len(future)} days")

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.fill_between(future["date"], low, high, alpha=0.2, label="90 % intervals")
ax.plot(future["date"], model.predict(future), label="predicted")
ax.plot(table["date"], rentals, "k.", markersize=3, label="recorded")
ax.set(ylabel="rentals per day", xlim=pd.to_datetime(["2024-05-01", "2025-01-01"]))
ax.legend(frameon=False, ncols=3, loc="lower left")
plt.show()
