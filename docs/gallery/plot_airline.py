"""
Does the kernel that is found forecast the next fifteen months?
===============================================================

The airline series of Box and Jenkins counts the passengers of each month from 1949 to 1960. It has
a trend, and a season whose amplitude grows with the trend. We search for a kernel on the first 129
months, forecast the 15 months that follow, and count how many of them lie within the bands.
"""

# %%
# The data
# --------
# The series comes with the package. A row is a month, and the only column is the time in years.

import matplotlib.pyplot as plt
import numpy as np

from autokernel import AutoKernelGPRegressor
from autokernel.datasets import load_airline
from autokernel.displays import ForecastDisplay

X, y = load_airline(return_X_y=True, as_frame=True)
X_train, y_train = X[:129], y[:129]
X_test, y_test = X[129:], y[129:]

# %%
# The search
# ----------
# ``fit`` tries sums and products of base kernels. It does not know that the series has a trend or
# a season. The score of a kernel is its log evidence plus the log prior of its structure.

model = AutoKernelGPRegressor(n_iter=20, random_state=0).fit(X_train, y_train)
print(model.leaderboard())

# %%
# The best kernels describe the square root of the passengers. They multiply a periodic kernel (PER)
# by a linear one (LIN), so that the season grows with time on this scale too. The description says
# the same in sentences. Each addend of the best kernel is a component of the function.

print(model.describe(units={"time": "years", "y": "thousand passengers"}))

# %%
# The forecast
# ------------
# We compare the error with that of a simple rule, which repeats the last twelve months.

repeated = np.resize(y_train[-12:], 15)
for name, forecast in (("the fitted model", model.predict(X_test)), ("the rule", repeated)):
    error = np.sqrt(np.mean((forecast - y_test) ** 2))
    print(f"RMSE of {name}: {error:.1f} thousand passengers")

# %%
# The error is less than a fifth of that of the rule. Predictions are in thousands of passengers,
# whatever the scale of the kernel.
#
# How wide must the bands be?
# ---------------------------
# ``predict_interval`` returns intervals for new observations, noise included. Fifteen months are
# too few to measure a coverage well: with intervals of 80 %, anything from 9 to 15 months would be
# within chance. The counts below agree with the probabilities that were asked for.

for coverage in (0.5, 0.8, 0.95):
    low, high = model.predict_interval(X_test, coverage=coverage).T
    inside = np.count_nonzero((low <= y_test) & (y_test <= high))
    print(f"{coverage:.0%} intervals hold {inside} of 15 months; {15 * coverage:.1f} are expected")

# %%
# The picture
# -----------
# The bands widen with the distance from the last month that was fitted.

display = ForecastDisplay.from_estimator(model, beyond=0.2, y_name="thousand passengers")
display.ax_.plot(X_test["time"], y_test, ".", color="tab:orange", label="months that followed")
display.ax_.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
