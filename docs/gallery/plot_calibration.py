"""
Do nine of ten observations lie in a 90 % interval?
===================================================

With few rows several kernels explain the data, and their parameters are uncertain. A model that
takes the best kernel at its best parameters for the truth predicts intervals that are too narrow.
By default predictions are averaged over both. We measure what this is worth.
"""

# %%
# The data
# --------
# One data set is not enough to measure a coverage, because the errors of a model on one data set
# go together. We draw eight functions of two columns, and of each 30 rows to fit and 200 to test.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from autokernel import AutoKernelGPRegressor
from autokernel.displays import CalibrationDisplay


def draw(seed):
    """Return inputs and targets of 230 rows of a random smooth function."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(230, 2))
    frequency, phase = rng.uniform(2, 6, size=2), rng.uniform(0, 6, size=2)
    waves = np.sin(frequency * X + phase)
    return X, waves.sum(axis=1) + waves.prod(axis=1) + 0.2 * rng.normal(size=230)


# %%
# Two ways to predict
# -------------------
# ``averaging="posterior"`` is the default. ``averaging=None`` predicts with the best kernel alone.
# As the search is the same, ``warm_start=True`` lets the second fit continue the first one, which
# is already finished. For each test row we note its PIT value, the predicted probability of a
# smaller observation: if predictions are calibrated, all values between 0 and 1 are equally
# frequent.

levels = np.linspace(0.005, 0.995, 199)
rows, pit = [], {"posterior": [], None: []}
for seed in range(8):
    X, y = draw(seed)
    model = AutoKernelGPRegressor(n_iter=0, warm_start=True, random_state=0)
    for averaging in ("posterior", None):
        model.set_params(averaging=averaging).fit(X[:30], y[:30])
        X_test, y_test = X[30:], y[30:]
        low, high = model.predict_interval(X_test, coverage=0.9).T
        rows.append(
            {
                "function": seed,
                "averaging": str(averaging),
                "coverage of 90 %": np.mean((low <= y_test) & (y_test <= high)),
                "mean width": np.mean(high - low),
                "NLPD": -model.log_predictive_density(X_test, y_test).mean(),
            }
        )
        below = model.predict_quantiles(X_test, levels) < y_test[:, None]
        pit[averaging].append(below.mean(axis=1))
table = pd.DataFrame(rows)
print(table.groupby("averaging").mean().drop(columns="function").round(3))

# %%
# The averaged intervals are wider and hold more of the observations, nearly nine of ten. The
# negative log predictive density (NLPD) judges width and error together. How sure are we after
# eight functions?

wide = table.pivot(index="function", columns="averaging")
for name in ("coverage of 90 %", "NLPD"):
    difference = wide[name]["posterior"] - wide[name]["None"]
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    print(f"{name}: {difference.mean():+.3f} ± {error:.3f} by averaging")

# %%
# The coverage has risen by four standard errors. The density is better on average too, but by
# little more than one standard error.

# %%
# The picture
# -----------
# On the left, the observed fraction of rows within central intervals of each probability. On the
# right, the PIT values. High bars at both ends are observations outside of intervals that are too
# narrow. The grey bands are those of chance for independent rows; rows of one function are not
# quite independent.

fig, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
for pair, (averaging, values) in zip(axes, pit.items(), strict=True):
    CalibrationDisplay(pit=np.concatenate(values)).plot(axes=pair)
    pair[0].set_title(f"averaging={averaging!r}", loc="left", fontsize="medium")
plt.show()
