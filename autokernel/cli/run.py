"""One run of the command line: read, search, describe, test, write."""

import argparse
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import _safe_indexing

from autokernel.cli.options import check_outputs, parse
from autokernel.cli.reading import PREDICTED, FitRows, airline, read_new_rows, read_table
from autokernel.data import check_inputs
from autokernel.data.dates import dates_of, days_since_1970
from autokernel.data.steps import YEAR, rows_ahead, seasons_of
from autokernel.data.tables import to_numbers
from autokernel.displays import DecompositionDisplay, ForecastDisplay
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.exceptions import AutoKernelError
from autokernel.export import write_report
from autokernel.fit.progress import print_now
from autokernel.kernels import Seasonal
from autokernel.typing import FloatArray, IntArray
from autokernel.version import __version__

_REFUSED, _INTERRUPTED = 2, 130  # exit statuses; the second is that of the shell for Ctrl-C
_TEST_SHARE = 0.1  # of the rows
_DAYS = {"hours": 1 / 24, "days": 1.0, "years": YEAR}  # in units of time
_SEASONS = (("day", 1.0, 0.5), ("week", 7.0, 1.5), ("year", YEAR, 100.0))
"""Seasons with their length and the longest spacing of rows that has them, in days."""
_MAX_RBF_ROWS = 200  # so that the fit of the RBF kernel takes seconds
_MAX_SMOOTHED_ROWS = 300  # the last ones, for the same reason
_MAX_RBF_LEVELS = 10  # of a category, as columns for the RBF kernel
_PARAMETERS = ("strategy", "criterion", "operators", "n_iter", "max_time", "n_jobs", "random_state")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with some arguments, or with those of the program.

    The exit status is 0 if there is a model, even if Ctrl-C ended its search; 2 if the arguments or
    a file cannot be used; 130 after Ctrl-C before there was a model, or while files were written.
    """
    options = parse(arguments)
    try:
        with warnings.catch_warnings(), redirect_stdout(sys.stdout):  # restores both
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
        text = re.sub(
            r"The '(\w+)' parameter of \w+", lambda m: f"--{m[1].replace('_', '-')}", text
        )
        for line in text.splitlines():
            print(_paragraph(f"autokernel: {line}"), file=sys.stderr)
        return _REFUSED


def _run(options: argparse.Namespace) -> int:
    check_outputs(options)
    table = read_table(options.file, options) if options.file else airline()
    given = {one: getattr(options, one) for one in _PARAMETERS}
    model = AutoKernelGPRegressor(
        categorical_features=table.categories or "auto", verbose=1, **given
    )
    if not hasattr(table.X, "columns"):
        sys.stdout = _NamesTime(sys.stdout)
    _add_units(table, options.unit, clone(model))
    new = read_new_rows(options.predict, table, options) if options.predict else None
    if options.horizon and (len(table.names) > 1 or table.categories):
        raise ValueError(
            f"--horizon needs a single column of dates or numbers, got {table.names}: leave others "
            "out by --drop, or give rows by --predict FILE"
        )
    if options.horizon and (time := _time(table)) is not None:
        rows_ahead(time, 1, are_dates=bool(table.dates))  # refuses unequal steps before the search
    train, test = _split(table, options.random_state)
    print_now(f"autokernel {__version__}: {table.title}")
    for note in table.notes:
        print_now(_paragraph(note))
    print_now("Ctrl-C ends the search with the best kernel so far.")
    _find_kernel(model, table, train)
    steps: dict[str, Callable[[], None]] = {
        "description": lambda: _describe(model, table),
        "test": lambda: _test(model, table, train, test),
        "RBF kernel": lambda: _test_rbf(model, table, train, test),
    }
    if new or options.horizon or options.output or options.plot or options.report:
        steps["fit to all rows"] = lambda: _fit_all_rows(model, table)
        steps["rest of the files"] = lambda: _write(model, table, new, options)
    status = 0
    for name, step in steps.items():
        try:
            step()
        except KeyboardInterrupt:
            print_now(f"\nInterrupted: the {name} is left out.")
            status = _INTERRUPTED if name == "rest of the files" else 0
    return status


def _add_units(table: FitRows, given: Sequence[str], model: AutoKernelGPRegressor) -> None:
    """Add the units that the user gives, and check them and all parameters before the search."""
    names = [*table.names, table.target]
    names = [name for name in names if name not in (*table.dates, *table.categories)]
    for text in given:
        name, sign, unit = text.partition("=")
        if not sign or name not in names:
            raise ValueError(f"--unit must be NAME=TEXT with one of {names}, got {text!r}")
        column = name if hasattr(table.X, "columns") else "x0"
        table.units["y" if name == table.target else column] = unit
    X = table.X.bfill() if hasattr(table.X, "bfill") else table.X  # each column has a value
    model.refit(X[:20], table.y[:20], "NOISE").describe(table.units)


def _split(table: FitRows, random_state: int) -> list[IntArray]:
    """Keep back a tenth for the test: the last rows if there is a time, random rows otherwise."""
    rows, time = np.arange(len(table.y)), _time(table)
    if time is None:
        n_test = max(1, round(_TEST_SHARE * len(rows)))
        rows = np.random.default_rng(random_state).permutation(rows)
        how = f"{n_test} drawn at random to predict"
    else:
        n_test = max(1, round(_TEST_SHARE * np.isfinite(time).sum()))
        rows = np.argsort(np.nan_to_num(time, nan=-np.inf), kind="stable")  # without a time: first
        of = f" by {table.dates[0]}" if table.X.shape[1] > 1 else ""
        how = f"the last {n_test}{of} to predict"
    n_train = len(rows) - n_test
    table.notes.append(f"{n_train} rows to train on, {how}: {table.target}.")
    return np.split(rows, [n_train])


def _time(table: FitRows) -> FloatArray | None:
    """Return the first column of dates, in days, or the only column in its unit."""
    if not table.dates and (len(table.names) > 1 or table.categories):
        return None
    column = table.names.index(table.dates[0]) if table.dates else 0
    time, _, _ = to_numbers(_safe_indexing(table.X, [column], axis=1))
    return np.asarray(time, dtype=float)[:, 0]


def _find_kernel(model: AutoKernelGPRegressor, table: FitRows, train: IntArray) -> None:
    """Fit the estimator, which prints each better kernel; Ctrl-C before there is one is raised."""
    print_now("\n no.      time       score   best kernel so far; scores are in nats\n")
    try:
        X, weights = _safe_indexing(table.X, train), table.weights[train]
        model.fit(X, table.y[train], sample_weight=weights)
    except KeyboardInterrupt:
        if not hasattr(model, "stop_reason_"):
            raise
        print_now("the search ended: it was interrupted")


def _describe(model: AutoKernelGPRegressor, table: FitRows) -> None:
    words = [_paragraph(text, 4) for text in model.describe(table.units).split("\n\n")]
    print_now(f"\nBest kernel\n\n{_paragraph(model.best_expression_, 4)}")
    print_now("\n\n".join([f"\nWhat it says about {table.target}", *words]))
    if n := len(model.search_history_["score"]):
        best = model.leaderboard(5)
        print_now(f"\nBest {len(best['score'])} of {n} kernels; scores are in nats\n\n{best}")


def _test(model: AutoKernelGPRegressor, table: FitRows, train: IntArray, test: IntArray) -> None:
    X_test, y_test = _safe_indexing(table.X, test), table.y[test]
    low, high = model.predict_interval(X_test, 0.95).T
    n_inside = np.sum((low <= y_test) & (y_test <= high))
    print_now(f"\nIntervals of 95 % hold {n_inside} of {len(y_test)} test values.")
    weighted = ", weighted" * bool(np.ptp(table.weights))
    print_now(f"\nTest RMSE of {table.target}{weighted}\n")
    mean = np.average(table.y[train], weights=table.weights[train])
    forecasts = {"this model": model.predict(X_test), "the mean": mean}
    if (time := _time(table)) is not None:
        forecasts["the last value"] = table.y[train[-1]]
        unit = "days" if table.dates else table.units.get(table.names[0], table.units.get("x0"))
        days = time * _DAYS.get(str(unit), 0.0)
        dated = train[np.isfinite(days[train])]
        forecasts |= _last_season(days[dated], table.y[dated], days[test])
        when = dates_of(days) if days.any() else time
        forecasts |= _smoothed(when[dated], table.y[dated], when[test])
    for name, forecast in forecasts.items():
        _print_error(name, forecast - y_test, table.weights[test])


def _last_season(days: FloatArray, y: FloatArray, ahead: FloatArray) -> dict[str, FloatArray]:
    """Forecast by the values of the last season, whose length follows from the spacing of rows."""
    if len(days) < 2:
        return {}
    spacing = np.median(np.diff(days))
    name, season, _ = next((one for one in _SEASONS if spacing <= one[2]), ("", np.inf, 0.0))
    if spacing == 0 or season > np.ptp(days):
        return {}
    n_seasons = np.maximum(1, np.ceil((ahead - days[-1] - spacing / 2) / season))
    rows = np.interp(ahead - n_seasons * season, days, np.arange(len(days)))
    return {f"the last {name} repeated (seasonal-naive)": y[np.rint(rows).astype(int)]}


def _smoothed(time: Any, y: FloatArray, ahead: Any) -> dict[str, FloatArray]:
    """Forecast with the model of exponential smoothing: a wandering level and slope, and seasons.

    The times are dates, which have known seasons, or numbers, which have none.
    """
    time, y = time[-_MAX_SMOOTHED_ROWS:], y[-_MAX_SMOOTHED_ROWS:]
    if len(np.unique(time)) < max(3, len(time) / 2):  # most rows share their times with others
        return {}
    are_dates = np.issubdtype(time.dtype, np.datetime64)
    seasons = seasons_of(days_since_1970(time)) if are_dates else ()
    kernels = ["RW", "IRW", *(Seasonal(one).name for one in seasons)]
    model = AutoKernelGPRegressor(outliers=None, random_state=0)
    model.refit(time[:, None], y, " + ".join(f"{one}[0]" for one in kernels))
    forecast: FloatArray = np.asarray(model.predict(ahead[:, None]))
    return {"exponential smoothing, as a kernel": forecast}


def _test_rbf(
    model: AutoKernelGPRegressor, table: FitRows, train: IntArray, test: IntArray
) -> None:
    few = train[np.random.default_rng(0).permutation(len(train))[:_MAX_RBF_ROWS]]
    numbers = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )
    levels = OneHotEncoder(
        max_categories=_MAX_RBF_LEVELS, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    is_category = np.isin(table.names, table.categories)
    encoder = make_column_transformer((numbers, ~is_category), (levels, is_category))
    X, X_test = (check_inputs(model, _safe_indexing(table.X, rows)) for rows in (few, test))
    with warnings.catch_warnings():  # of bounds that the user did not set, and of new levels
        warnings.simplefilter("ignore")
        X, X_test = encoder.fit_transform(X), encoder.transform(X_test)
        kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
        regressor = GaussianProcessRegressor(
            kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0
        )
        errors = regressor.fit(X, table.y[few]).predict(X_test) - table.y[test]
    some = f" on {len(few)} of these rows" if len(few) < len(train) else ""
    _print_error(f"an RBF kernel{some}", errors, table.weights[test])


def _print_error(name: str, errors: FloatArray, weights: FloatArray) -> None:
    print_now(f"    {np.sqrt(np.average(errors**2, weights=weights)):10.4g}  {name}")


def _fit_all_rows(model: AutoKernelGPRegressor, table: FitRows) -> None:
    print_now(f"\nFitting the kernel to all {len(table.y)} rows. Ctrl-C leaves this out.")
    fit = model.fit if model.strategy == "series" else model.refit  # a series averages kernels
    fit(table.X, table.y, sample_weight=table.weights)


def _predict(model: AutoKernelGPRegressor, new: Any, options: argparse.Namespace) -> None:
    """Predict the rows of a file, or those that follow, and write or print them."""
    if new:
        X, cells, how = new
        mean, std = model.predict(X, return_std=True)
        columns = (mean, std, *model.predict_interval(X, 0.95).T)
        cells = cells.assign(**dict(zip(PREDICTED, columns, strict=True)))
        path = options.predictions
        text = cells.to_csv(path, float_format="%.8g", index=False, **how)
        print_now(f"Predictions: {path}" if path else f"Predictions\n\n{text}")
    if options.horizon:
        forecast = model.forecast(options.horizon, (0.025, 0.5, 0.975))
        if path := options.predictions:
            frame = import_module("pandas").DataFrame(forecast)
            frame.to_csv(path, float_format="%.8g", index=False)
            print_now(f"Forecast: {path}")
        else:
            print_now(f"Forecast\n\n{forecast}")


def _write(
    model: AutoKernelGPRegressor, table: FitRows, new: Any, options: argparse.Namespace
) -> None:
    _predict(model, new, options)
    model.set_params(verbose=0)
    if path := options.output:
        library = "joblib" if path.suffix.lower() == ".joblib" else "skops.io"
        import_module(library).dump(model, path)
        print_now(f"Model: {path}")
    is_series, unit = len(table.names) == 1 and not table.categories, table.units.get("y")
    if options.plot and not is_series and model.best_expression_ == "NOISE":
        print_now("Picture: none, because there is no component to draw: noise alone is best.")
    elif options.plot:
        name = f"{table.target} ({unit})" if unit else table.target
        make = (ForecastDisplay if is_series else DecompositionDisplay).from_estimator
        display = make(model, units=table.units, y_name=name.replace("$", r"\$"))
        display.figure_.savefig(options.plot, dpi=150)
        print_now(f"Picture: {options.plot}")
    if path := options.report:
        write_report(model, path, units=table.units, title=f"{table.title}: {table.target}")
        print_now(f"Report: {path}")


class _NamesTime:
    """Standard output that names the time of the bundled series, as arrays do without pandas."""

    def __init__(self, stream: Any) -> None:
        self._stream, self.flush = stream, stream.flush

    def write(self, text: str) -> int:
        return int(self._stream.write(text.replace("[0]", "[time]").replace("x0", "time")))


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print("\n" + _paragraph(f"Note: {message}") + "\n", file=sys.stderr, flush=True)


def _paragraph(text: str, indent: int = 0) -> str:
    whole = textwrap.fill(text, 100 - indent, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent(whole, " " * indent)
