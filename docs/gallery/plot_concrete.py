"""
What makes concrete strong?
===========================

The strength of concrete depends on what it is mixed from and on its age. We fit 250 mixtures and ask
on which of the eight columns the strength depends, how sure this is, and in which direction it goes.

The data do not come with the package (I.-C. Yeh 1998, UCI Machine Learning Repository, id 165).
:func:`autokernel.datasets.fetch_concrete` reads ``concrete.csv`` from the folder that the environment
variable ``AUTOKERNEL_DATA`` names, and downloads the data from OpenML where there is no such file.
"""

# %%
# The data
# --------
# Two steps come first, as in any analysis. Some rows repeat an earlier row exactly, target included.
# They are no second measurements, and would tell the model that there is no noise. And the age runs
# from one day to a year, with most of the change in the first weeks, so that we take its logarithm.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.inspection import PartialDependenceDisplay

from autokernel import AutoKernelGPRegressor
from autokernel.datasets import fetch_concrete

table = fetch_concrete(as_frame=True).frame
print(f"{table.duplicated().sum()} of {len(table)} rows repeat an earlier one")
table = table.drop_duplicates().sample(frac=1, random_state=0)
X, y = table.drop(columns="strength"), table["strength"]
X["age"] = np.log10(X["age"])
X = X.rename(columns={"age": "log_age"})
X_train, X_test, y_train, y_test = X[:250], X[250:], y[:250], y[250:]

# %%
# The fit
# -------

model = AutoKernelGPRegressor(base_kernels=("SE",), n_iter=10, random_state=0).fit(X_train, y_train)
error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
print(model.best_expression_)
print(f"RMSE of {len(X_test)} other mixtures: {error:.1f} MPa; standard deviation: {y_test.std():.1f}")

# %%
# Which columns matter?
# ---------------------
# ``inclusion_probabilities_`` adds the probabilities of all kernels in which a column appears.

print(model.inclusion_probabilities_)
print(model.describe({"log_age": "powers of ten of days", "y": "MPa"}))
