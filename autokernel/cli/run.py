"""One run of the command line: read, search, describe, test, write."""

import argparse
import os
import sys
import textwrap
import time
import warnings
from collections.abc import Sequence
from typing import Any

import joblib
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from autokernel.cli.options import check_outputs, parse
from autokernel.cli.reading import PREDICTED, FitRows, NewRows, airline, read_new_rows, read_table
from autokernel.displays import DecompositionDisplay, ForecastDisplay
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.exceptions import AutoKernelError
from autokernel.export import write_report
from autokernel.typing import IntArray
from autokernel.version import __version__

_REFUSED, _INTERRUPTED = 2, 130  # exit statuses; the second is that of the shell for Ctrl-C
_TEST_SHARE = 0.1  # of the rows
_MAX_RBF_ROWS = 200  # so that the fit of the RBF kernel takes seconds
_PARAMETERS = ("strategy", "criterion", "operators", "n_iter", "max_time", "n_jobs", "random_state")
_ENDS = {
    "n_iter": "the limit of --n-iter",
    "converged": "the last 30 of which have gained nothing",
    "max_time": "the end of --max-time",
    "exhausted": "with no other left to try",
    "interrupted": "interrupted",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with some arguments, or with those of the program.

    Returns
    -------
    int
        Exit status: 0 if there is a model, even if Ctrl-C ended its search; 2 if the arguments or
        a file cannot be used; 130 after Ctrl-C before there was a model, or while files were
        written.
    """
    options = parse(arguments)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="max_time ended the search before")
            warnings.showwarning = _show_warning
            return _run(options)
    except KeyboardInterrupt:
        print("\nautokernel: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # whoever reads has seen enough, as head has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, ValueError, AutoKernelError) as error:
        text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        print(_paragraph(f"autokernel: {text}"), file=sys.stderr)
        return _REFUSED


def _run(options: argparse.Namespace) -> int:
    check_outputs(options)
    table = read_table(options.file, options) if options.file else airline()
    _add_units(table, options.unit)
    new = read_new_rows(options.predict, table, options) if options.predict else None
    train, test, how = _split(table, options.random_state)
    limit = f", --max-time after {options.max_time:g} s" if options.max_time else ""
    _say(f"autokernel {__version__}: {table.title}")
    for note in [*table.notes, *(new.notes if new else []), how]:
        _say(_paragraph(note))
    _say(f"Ctrl-C ends the search with the best kernel so far{limit}.")
    model = AutoKernelGPRegressor(
        verbose=1, **{name: getattr(options, name) for name in _PARAMETERS}
    )
    _run_search(model, _rows(table.X, train), table.y[train])
    for name, step in (("description", _describe), ("test", _test), ("RBF kernel", _test_rbf)):
        try:
            step(model, table, train, test)
        except KeyboardInterrupt:
            _say(f"\nInterrupted: the {name} is left out.")
    if not (new or options.output or options.plot or options.report):
        return 0
    try:
        n = len(table.y)
        _say(f"\nFitting the kernel to all {n} rows, for what follows. Ctrl-C leaves this out.")
        model.refit(table.X, table.y)
    except KeyboardInterrupt:
        _say("Interrupted: what follows is by the model of the rows to train on.")
    try:
        if new:
            _write_predictions(model, new, options)
        _write(model, table, options)
    except KeyboardInterrupt:
        _say("Interrupted: what is not named above has not been written.")
        return _INTERRUPTED
    return 0


def _add_units(table: FitRows, given: Sequence[str]) -> None:
    """Add the units that the user gives, and check them before the search."""
    names = [*getattr(table.X, "columns", ["x0"]), table.target]
    for text in given:
        name, sign, unit = text.partition("=")
        if not sign or name not in names:
            raise ValueError(f"--unit must be NAME=TEXT with one of {names}, got {text!r}")
        if name in table.formats:
            raise ValueError(f"--unit must not be given for {name!r}, which holds dates")
        table.units["y" if name == table.target else name] = unit
    few = np.arange(min(len(table.y), 20))  # describe checks the units of a model of noise as well
    model = AutoKernelGPRegressor().refit(_rows(table.X, few), table.y[few], "NOISE")
    model.describe(table.units)


def _split(table: FitRows, random_state: int) -> tuple[IntArray, IntArray, str]:
    """Keep back a tenth for the test: the last rows of a series, random rows of several columns."""
    n_samples, n_columns = table.X.shape
    n_test = max(1, round(_TEST_SHARE * n_samples))
    if n_columns == 1:
        order = np.argsort(np.asarray(table.X)[:, 0], kind="stable")
        how = f"the last {n_test} to predict"
    else:
        order = np.random.default_rng(random_state).permutation(n_samples)
        how = f"{n_test} drawn at random to predict"
    train, test = np.split(order, [n_samples - n_test])
    return train, test, f"{len(train)} rows to train on, {how}: {table.target}."


def _rows(X: Any, indices: IntArray) -> Any:
    return X.iloc[indices] if hasattr(X, "iloc") else X[indices]


def _run_search(model: AutoKernelGPRegressor, X: Any, y: Any) -> None:
    """Fit the estimator, which prints each better kernel; Ctrl-C before there is one is raised."""
    _say("\n no.      time       score   best kernel so far; scores are in nats\n")
    began = time.monotonic()
    try:
        model.fit(X, y)
    except KeyboardInterrupt:
        if not hasattr(model, "stop_reason_"):
            raise
    seconds, n = time.monotonic() - began, len(model.search_history_["score"])
    long = f"{seconds / 60:.0f} minutes" if seconds > 90 else f"{seconds:.1f} seconds"
    text = f"{n} kernel{'s' * (n != 1)} in {long}, {_ENDS[model.stop_reason_]}"
    if not np.isfinite(model.best_score_):
        text += ", before any kernel had a score. This model is a rough fit of a simple kernel"
    elif model.stop_reason_ == "interrupted":
        text += ": this is the best so far"
    _say(f"\n{_paragraph(text)}.")


def _describe(model: AutoKernelGPRegressor, table: FitRows, *_: IntArray) -> None:
    words = [_paragraph(text, 4) for text in model.describe(table.units).split("\n\n")]
    _say(f"\nBest kernel\n\n{_paragraph(model.best_expression_, 4)}")
    _say("\n\n".join([f"\nWhat it says about {table.target}", *words]))
    if n := len(model.search_history_["score"]):
        best = model.leaderboard(5)
        _say(f"\nBest {len(best['score'])} of {n} kernels; scores are in nats\n\n{best}")


def _test(model: AutoKernelGPRegressor, table: FitRows, train: IntArray, test: IntArray) -> None:
    X_test, y_test = _rows(table.X, test), table.y[test]
    low, high = model.predict_interval(X_test, 0.95).T
    n_inside = np.sum((low <= y_test) & (y_test <= high))
    _say(f"\nIntervals of 95 % hold {n_inside} of {len(y_test)} test values.")
    _say(f"\nTest RMSE of {table.target}\n")
    _print_error("this model", model.predict(X_test) - y_test)
    _print_error("the mean", table.y[train].mean() - y_test)


def _test_rbf(_: object, table: FitRows, train: IntArray, test: IntArray) -> None:
    """Test scikit-learn's regressor with the usual kernel."""
    columns = [table.X[name] for name in table.X] if hasattr(table.X, "columns") else table.X.T
    X = np.column_stack([np.asarray(column, dtype=float) for column in columns])
    few = train[np.random.default_rng(0).permutation(len(train))[:_MAX_RBF_ROWS]]
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    options = {"normalize_y": True, "n_restarts_optimizer": 2, "random_state": 0}
    regressor = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, **options))
    with warnings.catch_warnings():  # its optimiser warns of bounds that the user did not set
        warnings.simplefilter("ignore")
        errors = regressor.fit(X[few], table.y[few]).predict(X[test]) - table.y[test]
    some = f" on {len(few)} of these rows" if len(few) < len(train) else ""
    _print_error(f"an RBF kernel{some}", errors)


def _print_error(name: str, errors: Any) -> None:
    _say(f"    {np.sqrt(np.mean(errors**2)):10.4g}  {name}")


def _write_predictions(
    model: AutoKernelGPRegressor, new: NewRows, options: argparse.Namespace
) -> None:
    """Write the cells and the predictions with the separator and the decimal mark of the file."""
    mean, std = model.predict(new.X, return_std=True)
    low, high = model.predict_interval(new.X, 0.95).T
    cells = new.cells.assign(**dict(zip(PREDICTED, (mean, std, low, high), strict=True)))
    how = {"sep": new.sep, "decimal": new.decimal, "float_format": "%.8g", "index": False}
    if options.predictions is None:
        _say(f"Predictions\n\n{cells.to_csv(**how)}")
    else:
        cells.to_csv(options.predictions, **how)
        _say(f"Predictions: {options.predictions}")


def _write(model: AutoKernelGPRegressor, table: FitRows, options: argparse.Namespace) -> None:
    """Write the model, the picture and the report, and say so."""
    model.set_params(verbose=0)
    if path := options.output:
        if path.suffix.lower() == ".joblib":
            joblib.dump(model, path)
        else:
            import skops.io

            skops.io.dump(model, path)
        _say(f"Model: {path}")
    is_series, unit = table.X.shape[1] == 1, table.units.get("y")
    if options.plot and not is_series and model.best_expression_ == "NOISE":
        _say("Picture: none, because there is no component to draw: noise alone is best.")
    elif options.plot:
        name = f"{table.target} ({unit})" if unit else table.target
        make = (ForecastDisplay if is_series else DecompositionDisplay).from_estimator
        display = make(model, units=table.units, y_name=name.replace("$", r"\$"))
        display.figure_.savefig(options.plot, dpi=150)
        _say(f"Picture: {options.plot}")
    if path := options.report:
        write_report(model, path, units=table.units, title=f"{table.title}: {table.target}")
        _say(f"Report: {path}")


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as a sentence, without the line of code that it comes from."""
    print("\n" + _paragraph(f"Note: {message}") + "\n", file=sys.stderr, flush=True)


def _say(text: str) -> None:
    print(text, flush=True)  # also into a pipe


def _paragraph(text: str, indent: int = 0) -> str:
    whole = textwrap.fill(text, 100 - indent, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent(whole, " " * indent)
