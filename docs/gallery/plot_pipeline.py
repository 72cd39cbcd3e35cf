"""
How do categories and dates go into a Pipeline?
===============================================

The columns of a Gaussian process are numbers or dates. A table of bike rentals has dates, and the
kind of day and the weather in words. We turn the words into numbers in a ``Pipeline``, so that the
same steps are applied to new rows, and ask what the rentals depend on.
"""

# %%
# The data
# --------
# We make two years of rentals, of which every third day was recorded. They rise over the years,
# are highest in summer, and lower at weekends and on rainy days.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

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
print(table.assign(rentals=rentals.round()).head())

# %%
# The steps
# ---------
# Categories become columns of zeros and ones; ``drop="if_binary"`` keeps one column of a category
# with two values. The dates may stay as they are: the regressor counts them in days.
# ``set_output`` keeps the names of the columns, so that the description can name them.

to_numbers = ColumnTransformer(
    [("one_hot", OneHotEncoder(drop="if_binary", sparse_output=False), ["day", "weather"])],
    remainder="passthrough",
    verbose_feature_names_out=False,
).set_output(transform="pandas")
model = make_pipeline(to_numbers, AutoKernelGPRegressor(n_iter=10, random_state=0))

# %%
# The fit
# -------
# We fit the first twenty months and predict the last four.

past = table["date"] < "2024-09-01"
model.fit(table[past], rentals[past])
regressor = model[-1]
print(regressor.describe(units={"temperature": "°C"}))

# %%
# Each effect that was put into the data is found, and the numbers are near to those above. The
# weather has three columns of which two would do, as one of them is set on each day. So rain is
# certain to matter, and the small difference between clear and cloudy days may be explained by
# either of the others.

print(regressor.inclusion_probabilities_)

# %%
# The picture
# -----------
# New rows go through the same steps. A ``Pipeline`` does not pass ``predict_interval`` on, so that
# we apply its first steps and ask the regressor.

future = table[~past]
low, high = regressor.predict_interval(model[:-1].transform(future), coverage=0.9).T
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
