"""The errors on the rows that were kept back, of the model and of two simple ones."""

import warnings

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from autokernel.cli.split import Split
from autokernel.cli.table import Table
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.explain import fill
from autokernel.fit.progress import print_now
from autokernel.typing import FloatArray

_MOST_ROWS = 200  # of the RBF kernel, so that its fit takes seconds
_MOST_LENGTHSCALES = 20  # columns above which the RBF kernel has one lengthscale for all
_COVERAGE = 0.95


def print_comparison(model: AutoKernelGPRegressor, table: Table, split: Split) -> None:
    """Print the test errors, that of the model first; Ctrl-C leaves out the RBF kernel."""
    X, y = table.X.values[split.train], table.y[split.train]
    X_test, y_test = table.X.rows(split.test), table.y[split.test]
    print_now(f"\nTest RMSE of {table.target_name}\n")
    _print_error("this model", np.asarray(model.predict(X_test)), y_test)
    low, high = model.predict_interval(X_test, _COVERAGE).T
    n_inside = int(np.sum((low <= y_test) & (y_test <= high)))
    _print_error("the mean", np.full(len(y_test), y.mean()), y_test)
    try:
        n_rows = min(len(y), _MOST_ROWS)
        few = np.random.default_rng(0).permutation(len(y))[:n_rows]
        predicted = _rbf(X[few], y[few]).predict(X_test.values)
        name = "an RBF kernel" if n_rows == len(y) else f"an RBF kernel on {n_rows} of these rows"
        _print_error(name, predicted, y_test)
    except KeyboardInterrupt:
        print_now("                an RBF kernel: interrupted")
    told = f"Intervals of {100 * _COVERAGE:.0f} % hold {n_inside} of {len(y_test)} test values."
    print_now("\n" + fill(told))


def _rbf(X: FloatArray, y: FloatArray) -> Pipeline:
    """Fit an RBF kernel by scikit-learn."""
    n_lengthscales = X.shape[1] if X.shape[1] <= _MOST_LENGTHSCALES else 1
    kernel = ConstantKernel() * RBF(np.ones(n_lengthscales)) + WhiteKernel()
    regressor = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0
    )
    pipeline = make_pipeline(StandardScaler(), regressor)
    with warnings.catch_warnings():  # its optimiser warns of bounds that the user did not set
        warnings.simplefilter("ignore")
        return pipeline.fit(X, y)


def _print_error(name: str, predicted: FloatArray, y: FloatArray) -> None:
    """Print the root mean squared error of some predictions."""
    error = float(np.sqrt(np.mean((predicted - y) ** 2)))
    print_now(f"    {error:10.4g}  {name}")
