"""The files that are written after the search, and whether they can be."""

import csv
import os
import sys
from copy import copy
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

import joblib
import numpy as np

from autokernel.cli.cells import POINT
from autokernel.cli.options import Options
from autokernel.cli.table import NewRows, Table
from autokernel.displays._style import close, literal
from autokernel.displays.decomposition import DecompositionDisplay
from autokernel.displays.forecast import ForecastDisplay
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.explain.description import TARGET
from autokernel.export import write_report
from autokernel.expression import NOISE
from autokernel.fit.progress import print_now

_PICTURES = (".png", ".svg", ".pdf")
_MODELS = (".skops", ".joblib")
_DISTRIBUTION = "autokernel-gp"
_NAMES = ("mean", "std", "lower_95", "upper_95")
_N_DIGITS = 8
_DPI = 150


def check_outputs(options: Options) -> None:
    """Raise a ``ValueError`` if a file cannot be written, before the search and not after it."""
    outputs = {
        "--predictions": options.predictions,
        "--output": options.output,
        "--plot": options.plot,
        "--report": options.report,
    }
    inputs = {one.resolve() for one in (options.file, options.predict) if one is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise ValueError(f"{name} must be a file in a folder that exists, got {path}")
        if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
            raise ValueError(f"{name} must be a file that can be written, got {path}")
        if path.resolve() in inputs:
            raise ValueError(f"{name} must not be a file that is read, got {path}")
        same = [other for other, one in outputs.items() if one and one.resolve() == path.resolve()]
        if same[0] != name:
            raise ValueError(f"{name} must be another file than that of {same[0]}, got {path}")
    _check_ending("--plot", options.plot, _PICTURES)
    _check_ending("--output", options.output, _MODELS)
    for name, path in (("--plot", options.plot), ("--report", options.report)):
        if path is not None and find_spec("matplotlib") is None:
            raise ValueError(
                f"{name} needs matplotlib: install it by pip install '{_DISTRIBUTION}[plot]'"
            )
    is_skops = options.output is not None and options.output.suffix.lower() == ".skops"
    if is_skops and find_spec("skops") is None:
        raise ValueError(
            "--output with .skops needs skops: install it by pip install "
            f"'{_DISTRIBUTION}[skops]', or give a file that ends in .joblib"
        )


def check_new_rows(new: NewRows) -> None:
    """Raise a ``ValueError`` if predictions would have the name of a column."""
    same = [name for name in _NAMES if name in new.sheet.header]
    if same:
        raise ValueError(
            f"--predict {new.sheet.file} must not have a column {same[0]!r}: a column of the "
            "predictions is called so"
        )


def write_predictions(model: AutoKernelGPRegressor, new: NewRows, path: Path | None) -> None:
    """Write the rows with mean, standard deviation and interval to a file, or print them.

    The separator and the decimal mark are those of the rows.
    """
    mean, std = model.predict(new.X, return_std=True)
    values = np.column_stack([mean, std, model.predict_interval(new.X, 0.95)])
    if path is None:
        print("Predictions\n")
        _write_rows(sys.stdout, new, values.tolist())
        print_now("")
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        _write_rows(file, new, values.tolist())
    print_now(f"Predictions: {path}")


def write_files(model: AutoKernelGPRegressor, table: Table, options: Options) -> None:
    """Write the model, the picture and the report that were asked for, and say so for each."""
    if options.output is not None:
        _write_model(model, options.output)
        print_now(f"Model: {options.output}")
    if options.plot is not None:
        if len(table.feature_names) > 1 and model.best_expression_ == str(NOISE):
            print_now("Picture: none, because there is no component to draw: noise alone is best.")
        else:
            _write_plot(model, table, options.plot)
            print_now(f"Picture: {options.plot}")
    if options.report is not None:
        title = f"{table.title}: {table.target_name}"
        write_report(model, options.report, units=table.units, title=title)
        print_now(f"Report: {options.report}")


def _write_model(model: AutoKernelGPRegressor, path: Path) -> None:
    """Write the model by skops or joblib, without what a warm start needs."""
    model = copy(model).set_callbacks()
    model.__dict__.pop("_past", None)
    if path.suffix.lower() == ".joblib":
        joblib.dump(model, path)
        return
    import skops.io

    skops.io.dump(model, path)


def _write_plot(model: AutoKernelGPRegressor, table: Table, path: Path) -> None:
    """Draw the forecast along the only column, or the components of several."""
    unit = table.units.get(TARGET)
    y_name = literal(f"{table.target_name} ({unit})" if unit else table.target_name)
    display: DecompositionDisplay | ForecastDisplay
    if len(table.feature_names) > 1:
        display = DecompositionDisplay.from_estimator(model, units=table.units, y_name=y_name)
    else:
        display = ForecastDisplay.from_estimator(model, units=table.units, y_name=y_name)
    display.figure_.savefig(path, dpi=_DPI)
    close(display.figure_)


def _check_ending(name: str, path: Path | None, known: tuple[str, ...]) -> None:
    """Raise a ``ValueError`` if the name of a file has another ending."""
    if path is not None and path.suffix.lower() not in known:
        raise ValueError(f"{name} must be a file that ends in {' or '.join(known)}, got {path}")


def _write_rows(file: TextIO, new: NewRows, values: list[list[float]]) -> None:
    """Write the cells of the rows and the predictions."""
    writer = csv.writer(file, delimiter=new.sheet.separator, lineterminator="\n")
    writer.writerow([*new.sheet.header, *_NAMES])
    for cells, numbers in zip(new.sheet.rows, values, strict=True):
        texts = [f"{one:.{_N_DIGITS}g}".replace(POINT, new.decimal_mark) for one in numbers]
        writer.writerow([*cells, *texts])
