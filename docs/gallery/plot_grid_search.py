"""
Which strategy and which criterion?
===================================

A search has a strategy, which chooses the kernels to try, and a criterion, which scores them. Both
are parameters of the estimator, so that ``GridSearchCV`` can compare them on data of ours, by the
density that each model gives to rows it has not seen.
"""

# %%
# The data
# --------
# The height of a tide, measured at 70 random times of a week: two periods and noise.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, KFold

from autokernel import AutoKernelGPRegressor, log_predictive_density_score

rng = np.random.default_rng(0)
days = np.sort(rng.uniform(0, 7, 70))
X = pd.DataFrame({"day": days})
y = (
    np.sin(2 * np.pi * days / 0.5175)
    + 0.5 * np.sin(2 * np.pi * days / 0.9973)
    + 0.2 * rng.normal(size=70)
)

# %%
# The grid
# --------
# ``log_predictive_density_score`` is a scorer: the mean log predictive density of a row, in nats. A
# larger value is better. It rewards an honest width of the predictions as well as a small error.

grid = GridSearchCV(
    AutoKernelGPRegressor(n_iter=8, random_state=0),
    {"strategy": ["sot", "greedy", "random"], "criterion": ["laplace", "bic"]},
    scoring={"density": log_predictive_density_score, "r2": "r2"},
    refit="density",
    cv=KFold(3, shuffle=True, random_state=0),
).fit(X, y)
table = pd.DataFrame(grid.cv_results_)
columns = ["param_strategy", "param_criterion", "mean_test_density", "mean_fit_time"]
print(table[columns].sort_values("mean_test_density", ascending=False).round(3).to_string())

# %%
# Is the difference larger than chance?
# -------------------------------------
# All candidates were scored on the same folds. The standard error of a difference between two of
# them is that of their differences on each fold. With three folds, a difference must exceed about
# four of its standard errors before chance is an unlikely explanation (t distribution, 2 degrees
# of freedom).

folds = table[[f"split{fold}_test_density" for fold in range(3)]].to_numpy()
behind = folds[grid.best_index_] - folds
mean, error = behind.mean(axis=1), behind.std(axis=1, ddof=1) / np.sqrt(3)
table["label"] = table["param_strategy"] + ", " + table["param_criterion"]
for label, m, e in zip(table["label"], mean, error, strict=True):
    print(f"{label:16s} is {m:6.3f} ± {e:.3f} nats a row behind the best")

# %%
# The default search and the greedy one, both with the default criterion, do not differ by that
# much: either may be the better one. The random kernels, and both searches by BIC, are behind by
# more, which is hardly chance, though 0.06 nats a row are little. Their own order may be chance.
#
# The picture
# -----------
# A point on the left is as good as the best. The bars are single standard errors.

order = np.argsort(mean)[::-1]
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.errorbar(mean[order], np.arange(len(order)), xerr=error[order], fmt="o", capsize=3)
ax.axvline(0, color="0.5", linewidth=1)
ax.set_yticks(np.arange(len(order)), table["label"].iloc[order])
ax.set_xlabel("nats a row behind the best, with the standard error of the difference")
ax.grid(axis="x", color="0.92")
plt.show()
