"""
Of which parts does the carbon dioxide on Mauna Loa consist?
============================================================

The concentration of carbon dioxide on Mauna Loa rises, and it rises and falls with the vegetation
of each year. We let the search find these parts and describe each of them in words, with its share
of the variance and its parameters.
"""

# %%
# The data
# --------
# The series comes with the package. We take the means of the months from 1980 to 2001.

import matplotlib.pyplot as plt
import pandas as pd

from autokernel import AutoKernelGPRegressor
from autokernel.datasets import load_mauna_loa
from autokernel.displays import EffectsDisplay

X, y = load_mauna_loa(return_X_y=True, as_frame=True)
X, y = X[X["time"] > 1980], y[X["time"] > 1980]

# %%
# The search
# ----------
# The search evaluates an initial design, proposes 15 more kernels and prunes the best one. What
# remains is a sum of three base kernels.

model = AutoKernelGPRegressor(n_iter=15, random_state=0).fit(X, y)
print(model.best_expression_)

# %%
# In words
# --------
# Products are distributed over sums. Each addend of the kernel is then the covariance of one part,
# and the parts add up to the fitted function. Parts that the data do not tell apart are one
# component: here the line and a drift of some years, which make the trend. The other component is
# a season, which repeats every year within a thousandth.

units = {"time": "years", "y": "ppm"}
print(model.describe(units))

# %%
# The parameters
# --------------
# The parameters of each component make a table, with intervals of 90 %.

print(pd.DataFrame(model.parameters_).round(3).to_string(index=False))

# %%
# The components as numbers
# -------------------------
# ``decompose`` returns each component at any inputs. With the constant they add up to the
# prediction; the last one is what averaging over other kernels adds.

parts = model.decompose(X)
for component in parts.components:
    print(f"{component.share:6.1%}  {component.expression:10s}  {component.mean[:3].round(2)} ...")
total = parts.constant + sum(component.mean for component in parts.components)
print(f"the sum of all: {total[:3].round(2)} ..., observed: {y[:3].round(2).tolist()} ...")

# %%
# The picture
# -----------
# Each panel is the difference from the average over the rows, with its band. The rise of the trend
# dwarfs the season, and its waves are years in which the concentration rose faster or more slowly
# than a line.

EffectsDisplay.from_estimator(model, units=units, y_name="CO$_2$ in ppm")
plt.show()
