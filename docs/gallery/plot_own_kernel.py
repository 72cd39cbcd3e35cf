"""
Is the function smooth, or a random walk that is drawn back?
============================================================

The Ornstein-Uhlenbeck process is the model of a quantity that is pushed at random and drawn back
to its mean: the velocity of a particle, an interest rate. Its kernel is built in as ``MAT12``. To
show how a base kernel is written, we write it again, and let the search decide between it and
smoother kernels.
"""

# %%
# The kernel
# ----------
# A base kernel declares its name and parameters and computes values from the differences between
# rows. Without a method ``gradient``, derivatives are central differences.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from autokernel import AutoKernelGPRegressor, BaseKernel
from autokernel.displays import ForecastDisplay
from autokernel.kernels import LENGTHSCALE, VARIANCE


class OrnsteinUhlenbeck(BaseKernel):
    """The kernel ``variance * exp(-|x - x'| / lengthscale)``."""

    name = "OU"
    parameters = (LENGTHSCALE, VARIANCE)

    def value(self, params, pairs):
        lengthscale, variance = params
        return variance * np.exp(-pairs.difference / lengthscale)


# %%
# The data
# --------
# Such a process, which is drawn back over two hours, at 120 random times of two days, and a little
# noise.

rng = np.random.default_rng(0)
hours = np.sort(rng.uniform(0, 48, 120))
K = np.exp(-np.abs(hours[:, None] - hours) / 2.0)
y = 20 + rng.multivariate_normal(np.zeros(120), K) + 0.1 * rng.normal(size=120)
X = pd.DataFrame({"hour": hours})

# %%
# The search
# ----------
# An instance stands next to the names of built-in kernels. The search finds that our kernel alone
# explains the data. The interval of its lengthscale should hold two hours, from which the data were
# made.

kernels = ("SE", "RQ", "MAT32", "LIN", OrnsteinUhlenbeck())
model = AutoKernelGPRegressor(base_kernels=kernels, n_iter=10, random_state=0).fit(X, y)
print(model.leaderboard())
print(model.describe(units={"hour": "hours"}))
print(model.parameters_)

# %%
# The same search without our kernel
# ----------------------------------
# The scores are log evidences with a prior, in nats: a kernel that is 4 nats ahead is about 50
# times as probable. The best without our kernel is MAT32, the roughest of the others.

built_in = AutoKernelGPRegressor(base_kernels=kernels[:-1], n_iter=10, random_state=0).fit(X, y)
print(f"{model.best_score_:6.1f}  {model.best_expression_}")
print(f"{built_in.best_score_:6.1f}  {built_in.best_expression_}")

# %%
# The picture
# -----------
# The last day and a forecast. With our kernel the mean bends sharply at the rows, as it does for a
# process without a derivative. Beyond the data both models are drawn back to the mean of the
# process.

fig, axes = plt.subplots(2, 1, figsize=(8, 7), sharex=True, sharey=True, layout="constrained")
for ax, name, fitted in zip(axes, ("with OU", "without OU"), (model, built_in), strict=True):
    ForecastDisplay.from_estimator(fitted, beyond=0.15, ax=ax)
    ax.set_title(f"{name}: {fitted.best_expression_}", loc="left", fontsize="medium")
    ax.label_outer()
axes[0].legend(frameon=False, loc="lower left", ncols=5)
axes[1].get_legend().remove()
axes[1].set(xlim=(24, None), ylim=(17, None))
plt.show()
