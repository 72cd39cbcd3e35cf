"""Data sets of scales.py, in their own units; they were chosen before the first fit.

Files of the folder that ``AUTOKERNEL_DATA`` names, as data.py describes them, and data that come
with scikit-learn and statsmodels, which ``pip install statsmodels`` adds; and data that are drawn
from processes on known scales.
"""

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import NamedTuple

from data import load, path_of  # isort: skip
from runs import N_TRAIN  # isort: skip

import numpy as np
import pandas as pd
from scipy.linalg import cholesky
from scipy.spatial.distance import cdist
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

FEW = 120
N_SIMULATED = 100  # rows
KINDS: Mapping[str, tuple[Callable, Callable, Callable]] = {  # scale, inverse, log of its slope
    "identity": (lambda y: y, lambda t: t, np.zeros_like),
    "log": (np.log, np.exp, lambda y: -np.log(y)),
    "sqrt": (np.sqrt, np.square, lambda y: -np.log(2 * np.sqrt(y))),
}
SCHOOLS = [
    "LOWINC",
    "PERASIAN",
    "PERBLACK",
    "PERHISP",
    "PERMINTE",
    "AVYRSEXP",
    "AVSALK",
    "PERSPENK",
    "PTRATIO",
]


class Table(NamedTuple):
    """A data set in its own units."""

    X: pd.DataFrame
    y: np.ndarray


def of_file(name: str) -> Table:
    """Read a file of the folder of the data, with its names of columns."""
    if name == "airline":
        X, y = load(name)
        return Table(pd.DataFrame(X, columns=["time"]), y)
    frame = pd.read_csv(path_of(f"{name}.csv"))
    return Table(frame.iloc[:, :-1].astype(float), frame.iloc[:, -1].to_numpy(float))


def of_statsmodels(name: str, target: str, *columns: str) -> Table:
    """Take columns of a data set that comes with statsmodels."""
    frame = importlib.import_module(f"statsmodels.datasets.{name}").load_pandas().data
    return Table(frame[list(columns)].astype(float), frame[target].to_numpy(float))


def of_quarters(target: str) -> Table:
    """Take a series of the macroeconomic data of statsmodels, over decimal years."""
    X, y = of_statsmodels("macrodata", target, "year", "quarter")
    return Table(pd.DataFrame({"time": X["year"] + (X["quarter"] - 0.5) / 4}), y)


def load_schools() -> Table:
    """Take the share of pupils above the national median, in (0, 1)."""
    X, above = of_statsmodels("star98", "NABOVE", *SCHOOLS)
    return Table(X, above / (above + of_statsmodels("star98", "NBELOW").y))


def load_equipment() -> Table:
    """Take a monthly index of the turnover of electrical equipment."""
    y = of_statsmodels("elec_equip", "STS.M.I7.W.TOVT.NS0016.4.000").y
    return Table(pd.DataFrame({"time": 1995 + np.arange(0.5, len(y)) / 12}), y)


def load_progression() -> Table:
    """Take the progression of diabetes; columns are in their own units."""
    return Table(*load_diabetes(scaled=False, return_X_y=True, as_frame=True))


SETS: Mapping[str, tuple[Callable[[], Table], tuple[int, ...]]] = {  # with rows to train on
    **{name: (lambda name=name: of_file(name), (n, FEW)) for name, n in N_TRAIN.items()},
    # tables
    "boston": (lambda: of_file("boston_housing"), (FEW,)),
    "diabetes": (load_progression, (200,)),
    "engel": (lambda: of_statsmodels("engel", "foodexp", "income"), (100,)),
    "grunfeld": (lambda: of_statsmodels("grunfeld", "invest", "value", "capital", "year"), (FEW,)),
    "cancer": (lambda: of_statsmodels("cancer", "cancer", "population"), (150,)),
    "schools": (load_schools, (150,)),
    # series
    "investment": (lambda: of_quarters("realinv"), (100,)),
    "inflation": (lambda: of_quarters("infl"), (100,)),
    "sunspots": (lambda: of_statsmodels("sunspots", "SUNACTIVITY", "YEAR"), (150,)),
    "equipment": (load_equipment, (FEW,)),
    "gas_production": (lambda: of_file("gas_production"), (200,)),
    "wages": (lambda: of_file("wages"), (200,)),
    "call_centre": (lambda: of_file("call_centre"), (100,)),
    "unemployment": (lambda: of_file("unemployment"), (200,)),
    "wheat": (lambda: of_file("wheat"), (150,)),
}


def draw(target: str, column: str, *, seed: int) -> Table:
    """Draw rows from a smooth process on these scales of the target and of the first column."""
    rng = np.random.default_rng(seed)
    U = rng.uniform(size=(N_SIMULATED, rng.integers(1, 3)))
    U[:2, 0] = 0.0, 1.0
    V = U / rng.uniform(0.3, 1.0, size=U.shape[1])
    distances = cdist(V, V, "sqeuclidean")
    K = np.exp(-0.5 * distances) + rng.uniform(0.1, 0.3) ** 2 * np.eye(N_SIMULATED)
    t = cholesky(K, lower=True) @ rng.standard_normal(N_SIMULATED)
    t = (t - t.min()) / np.ptp(t)
    if target == "log":
        t *= rng.uniform(0.5, 1.0) / t.std()
    else:
        t += rng.uniform(0.1, 0.3)
    X = pd.DataFrame(2 * U - 1, columns=[f"x{index}" for index in range(U.shape[1])])
    scale, inverse, _ = KINDS[column]
    low, high = scale(1.0), scale(10 ** rng.uniform(1.05, 3.0))
    X["x0"] = inverse(low + (high - low) * U[:, 0])
    return Table(X, KINDS[target][1](t))


def smooth_evidence(table: Table, target: str, column: str) -> float:
    """Maximise the log evidence of a smooth process on these scales, as a density of y."""
    X, y = table.X.to_numpy(copy=True), table.y
    X[:, 0] = KINDS[column][0](X[:, 0])
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    t = KINDS[target][0](y)
    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * RBF(np.full(X.shape[1], 0.5), (0.03, 30.0))
    model = GaussianProcessRegressor(
        kernel + WhiteKernel(0.05, (1e-5, 1.0)), n_restarts_optimizer=2, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, (t - t.mean()) / t.std())
    jacobian = KINDS[target][2](y).sum() - len(y) * np.log(t.std())
    return float(model.log_marginal_likelihood_value_ + jacobian)
