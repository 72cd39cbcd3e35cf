"""
What makes concrete strong?
===========================

The strength of concrete depends on what it is mixed from and on its age. We fit 250 mixtures and
ask on which of the eight columns the strength depends, how sure this is, and in which direction it
goes.

The data do not come with the package (I.-C. Yeh 1998, UCI Machine Learning Repository, id 165).
We read them as ``concrete.csv`` from the folder that the environment variable ``AUTOKERNEL_DATA``
names. ``sklearn.datasets.fetch_openml(data_id=44959)`` downloads the same rows.
"""

# %%
# The data
# --------
# One step comes first, as in any analysis. Some rows repeat an earlier row exactly, target
# included. They are no second measurements, and would suggest to the model that there is no noise.
# The age runs from one day to a year, with most of the change in the first weeks. We leave it in
# days: the search takes the logarithm if that is better.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.inspection import PartialDependenceDisplay

from autokernel import AutoKernelGPRegressor

table = pd.read_csv(Path(os.environ["AUTOKERNEL_DATA"]) / "concrete.csv")
table = table.rename(columns={"compressive_strength": "strength"})
print(f"{table.duplicated().sum()} of {len(table)} rows repeat an earlier one")
table = table.drop_duplicates().sample(frac=1, random_state=0)
X, y = table.drop(columns="strength").astype(float), table["strength"]
X_train, X_test, y_train, y_test = X[:250], X[250:], y[:250], y[250:]

# %%
# The fit
# -------
# Smooth kernels suffice for a first look. The other 755 mixtures show how good the fit is.

model = AutoKernelGPRegressor(base_kernels=("SE",), n_iter=10, random_state=0).fit(X_train, y_train)
error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
print(model.best_expression_)
print(f"RMSE of {len(X_test)} other mixtures: {error:.1f} MPa, of the mean: {y_test.std():.1f} MPa")

# %%
# The best kernel adds effects of single columns to one product of all: the effect of each
# ingredient depends on the others. It acts on the logarithm of the age, as those who make concrete
# draw it, and describes the square root of the strength.
#
# Which columns matter?
# ---------------------
# ``inclusion_probabilities_`` adds the probabilities of all kernels in which a column appears.

print(model.inclusion_probabilities_)

# %%
# All columns matter, as all probable kernels have the product; the pictures below show how much.
# This is no statement on causes: the amounts in a cubic metre add up, so that one of them is nearly
# known from the others.
#
# In which direction?
# -------------------
# The partial dependence of scikit-learn averages the predictions over the rows while one column is
# changed. The curves run over the middle nine tenths of the rows, and the marks are the deciles.
# The strength rises with the age, the cement, the slag and the ash, and falls with the water. That
# it falls no further for the wettest mixtures rests on few rows. The age has a logarithmic axis:
# each doubling adds about the same strength, and less after three months.

fig, axes = plt.subplots(2, 4, figsize=(11, 5.5), layout="constrained")
PartialDependenceDisplay.from_estimator(
    model, X_train, X_train.columns, ax=axes, grid_resolution=30, percentiles=(0.05, 0.95)
)
probability = model.inclusion_probabilities_["depends"]
for ax, name, depends in zip(axes.flat, X_train.columns, probability, strict=True):
    ax.set_title(f"matters: {depends:.2f}", fontsize="medium")
    ax.set(xlabel=name, ylabel="")
    ax.grid(color="0.92")
axes.flat[-1].set_xscale("log")
axes.flat[-1].set_xticks([3, 7, 28, 90, 365], ["3", "7", "28", "90", "365"])
axes.flat[-1].minorticks_off()
fig.supylabel("strength in MPa")
plt.show()
