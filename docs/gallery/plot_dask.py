"""
How does a search use the workers of a Dask cluster?
====================================================

The kernels of a batch do not depend on each other, so that several workers can evaluate them at
the same time. joblib hands them to a Dask cluster, and the estimator needs no other arguments than
those for parallel work on one machine. We ask whether the result is the same as without a cluster.
"""

# %%
# The data
# --------
# A function of three columns, of which the last does not matter.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from dask.distributed import Client, LocalCluster
from joblib import parallel_config

from autokernel import AutoKernelGPRegressor

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(size=(100, 3)), columns=["a", "b", "c"])
y = np.sin(6 * X["a"]) + 2 * X["b"] ** 2 + 0.1 * rng.normal(size=100)

# %%
# The search on the cluster
# -------------------------
# ``batch_size=4`` proposes four kernels at a time, so that up to four workers are busy. ``n_jobs``
# is the number of workers. A ``LocalCluster`` of two threads stands for a real cluster here; for
# that one, pass the address of its scheduler to ``Client``.
#
# Without ``processes=False`` the workers are processes, which do not wait for each other's Python
# code. They start by importing the script, so that all of it must then stand below the line
#
# ``if __name__ == "__main__":``

settings = {"n_iter": 12, "batch_size": 4, "random_state": 0}
workers = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
with (
    LocalCluster(**workers, dashboard_address=None) as cluster,
    Client(cluster),
    parallel_config(backend="dask"),
):
    model = AutoKernelGPRegressor(n_jobs=2, **settings).fit(X, y)
print(model.leaderboard(5))

# %%
# The same search alone
# ---------------------
# Workers change the time of a search and nothing else: the same kernels are evaluated in the same
# order, and the predictions are equal to the last bit.

alone = AutoKernelGPRegressor(**settings).fit(X, y)
same_kernels = np.array_equal(model.search_history_["kernel"], alone.search_history_["kernel"])
print(f"the same kernels: {same_kernels}")
print(f"the same predictions: {np.array_equal(model.predict(X), alone.predict(X))}")

# %%
# The progress
# ------------
# The best kernel has one base kernel for each of the two columns that matter. The curve ends at its
# score: larger kernels, which are tried later, have lower scores.

plt.plot(model.search_history_["best_score"])
plt.xlabel("kernels evaluated")
plt.ylabel("best score in nats")
plt.show()
