"""
What is lost when a search crashes?
===================================

A search of kernels for many rows may take hours, and machines fail. With ``memory="folder"`` each
finished evaluation is kept in a folder. We let a search crash, fit again, and count how many
kernels have to be evaluated a second time.
"""

# %%
# The data
# --------

import tempfile

import matplotlib.pyplot as plt
import numpy as np

from autokernel import AutoKernelGPRegressor
from autokernel.datasets import load_airline

X, y = load_airline(return_X_y=True, as_frame=True)

# %%
# A crash
# -------
# A callback is called at the beginning and at the end of each kernel. Ours ends the 15th kernel by
# an error, in the place of a machine that fails.


class PowerCut:
    """Raises an error after n kernels."""

    def __init__(self, n_kernels):
        self.n_kernels = n_kernels

    def setup(self, estimator, context):
        self.n_done = 0

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.n_done += context.task_name == "kernel"
        if self.n_done == self.n_kernels:
            raise RuntimeError(f"the power went off after {self.n_done} kernels")


# %%
# ``memory`` may be any folder that outlives the process. A temporary one does for this example.
# The folder holds pickles, so that only you should be able to write to it.

folder = tempfile.TemporaryDirectory()
settings = {"n_iter": 30, "memory": folder.name, "random_state": 0}
crashed = AutoKernelGPRegressor(**settings).set_callbacks(PowerCut(15))
try:
    crashed.fit(X, y)
except RuntimeError as error:
    print(f"RuntimeError: {error}")

# %%
# The same fit again
# ------------------
# A new estimator with the same parameters and the same data finds the finished evaluations in the
# folder. It reads those 15 and computes the others. ``fit_seconds`` says how long a kernel took
# when it was evaluated, and ``elapsed`` how long the present fit has been running.

model = AutoKernelGPRegressor(**settings).fit(X, y)
history = model.search_history_
alone = np.cumsum(history["fit_seconds"] + history["proposal_seconds"])
print(f"kernels of the whole search: {len(history['score'])}")
print(f"the first 15 took {alone[14]:.1f} seconds at first, {history['elapsed'][14]:.1f} when read")
print(f"kernels after these: {len(history['score']) - 15}")

# %%
# An interrupted search loses nothing but the kernel that was under way. The result is the same, to
# the last bit, as that of a fit that has not crashed.

undisturbed = AutoKernelGPRegressor(n_iter=30, random_state=0).fit(X, y)
print(f"the same predictions: {np.array_equal(model.predict(X), undisturbed.predict(X))}")
folder.cleanup()

# %%
# The progress
# ------------
# The shaded part was read from the folder.

plt.plot(history["best_score"], label="the best score so far")
plt.axvspan(0, 14.5, color="tab:orange", alpha=0.15, label="read from the folder")
plt.xlabel("kernels evaluated")
plt.ylabel("score in nats")
plt.legend(loc="lower right")
plt.show()
