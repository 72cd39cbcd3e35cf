"""
What do several shops have in common?
=====================================

Six shops record their sales each month. Do they share a trend? Is the season the same for all? And
what should a new shop expect? We give the table to the search as it is, with the names of the
shops and with gaps.
"""

# %%
# The data
# --------
# We make five years of sales. All shops grow alike, and each has its own level. They also have a
# season in common, but two shops near the sea have another one. The price is not always known.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from autokernel import AutoKernelGPRegressor
from autokernel.displays import EffectsDisplay

rng = np.random.default_rng(1)
shops = ["airport", "beach", "centre", "harbour", "mall", "station"]
level = pd.Series([55.0, 30.0, 60.0, 25.0, 45.0, 40.0], index=shops)
months = np.arange(60)
table = pd.DataFrame(
    [(shop, 2020 + month / 12) for shop in shops for month in months], columns=["shop", "year"]
)
table["price"] = rng.normal(10, 1, len(table))
angle = 2 * np.pi * (table["year"] - 2020)
by_the_sea = table["shop"].isin(["beach", "harbour"])
sales = (
    table["shop"].map(level)
    + 2.0 * (table["year"] - 2020)
    + np.where(by_the_sea, -8 * np.cos(angle), 4 * np.cos(angle) + 2 * np.sin(2 * angle))
    - 3.0 * (table["price"] - 10)
    + rng.normal(0, 1.5, len(table))
)
table.loc[rng.uniform(size=len(table)) < 0.1, "price"] = np.nan
rows = rng.permutation(len(table))[:240]
known, sales_known = table.iloc[rows], sales.iloc[rows]
print(known.head())

# %%
# The search
# ----------
# Columns of texts become categories by themselves, and missing prices need no care.

model = AutoKernelGPRegressor(n_iter=20, random_state=0).fit(known, sales_known)
print(model.best_expression_)
print(model.describe(units={"year": "years"}))

# %%
# The kernel says what is common: a term without ``CAT[shop]`` is the same for all shops, and a
# factor ``CAT[shop]`` lets a term differ. Each claim has a probability.

print(model.inclusion_probabilities_)

# %%
# A new shop
# ----------
# A shop that is not in the table is another draw from what shops are like. Its band is as wide as
# the shops differ, whereas the band of a known shop only has the noise. A price that is not known
# widens the band too.

new = pd.DataFrame(
    {
        "shop": ["mall", "mall", "zoo"],
        "year": [2025.0, 2025.0, 2025.0],
        "price": [10.0, np.nan, 10.0],
    }
)
mean, std = model.predict(new, return_std=True)
print(new.assign(mean=mean.round(1), std=std.round(1)))

# %%
# The picture
# -----------
# One panel for each effect, on average over the rows: a point for each shop, a curve along the year
# and the price, and a curve for each shop where these differ.

EffectsDisplay.from_estimator(model, units={"year": "years"}, y_name="sales", least_share=0.01)
plt.show()
