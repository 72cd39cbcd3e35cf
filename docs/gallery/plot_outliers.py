"""
What if some readings are wrong?
================================

Someone has mistyped six of the 144 monthly numbers of airline passengers. A model with normal
noise follows them: its noise is too large, its bands are too wide, and the season may be lost. The
search finds such rows by their evidence, and leaves them out.
"""

# %%
# The data
# --------
# In six months a digit is missing, or one is doubled.

import matplotlib.pyplot as plt
import numpy as np

from autokernel import AutoKernelGPRegressor
from autokernel.datasets import load_airline

X, y = load_airline(return_X_y=True)
wrong = np.array([14, 40, 63, 88, 101, 126])
typed = y.copy()
typed[wrong] = [15, 1993, 26, 3115, 34, 4722]

# %%
# The fit
# -------
# There is nothing to set. ``outliers_`` has the rows that do not fit, and ``describe`` says how far
# they are off.

model = AutoKernelGPRegressor(n_iter=20, random_state=0).fit(X, typed)
print(model.outliers_)
print(model.describe(units={"x0": "years", "y": "thousand passengers"}))

# %%
# Without it
# ----------
# ``outliers=None`` fits all rows alike. The standard deviation of the noise shows the difference.

alike = AutoKernelGPRegressor(n_iter=20, outliers=None, random_state=0).fit(X, typed)
print(alike.best_expression_)
for name, one in {"outliers excluded": model, "all rows alike": alike}.items():
    low, high = one.predict_interval(X, coverage=0.9).T
    print(f"{name}: 90 % intervals are {np.mean(high - low):.0f} thousand wide on average")

# %%
# The picture
# -----------
# Crosses are the rows that were excluded. On the right, the same numbers as a normal model sees
# them.

fig, axes = plt.subplots(ncols=2, figsize=(10, 4), sharex=True, layout="constrained")
for ax, (name, one) in zip(axes, {"excluded": model, "all alike": alike}.items(), strict=True):
    low, high = one.predict_interval(X, coverage=0.9).T
    ax.fill_between(X[:, 0], low, high, alpha=0.3, label="90 % intervals")
    ax.plot(X[:, 0], one.predict(X), label="predicted")
    ax.plot(X[:, 0], typed, "k.", markersize=3, label="as typed")
    ax.plot(X[one.outliers_, 0], typed[one.outliers_], "rx", label="excluded")
    ax.set(title=name, ylim=(-100, 1200), xlabel="year", ylabel="thousand passengers")
axes[0].legend(frameon=False, loc="upper left")
plt.show()
