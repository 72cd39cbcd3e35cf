"""The command line, which searches a kernel for a data set and prints the result."""

import argparse
import csv
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from autokernel import AutoKernelGPRegressor, __version__
from autokernel.datasets import load_airline
from autokernel.exceptions import AutoKernelError
from autokernel.explanation.description import TARGET
from autokernel.explanation.places import Axis
from autokernel.report import Improvements, fill, summary
from autokernel.typing import FloatArray, IntArray

_TEST_SHARE = 0.1


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Table:
    """A data set with its title and column names."""

    title: str
    X: FloatArray  # (n_samples, n_features)
    y: FloatArray  # (n_samples,)
    feature_names: list[str]
    target_name: str
    units: Mapping[str, str]  # of columns, and of the target under "y"


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Split:
    """Rows to train on and rows to test on."""

    train: IntArray
    test: IntArray
    words: str  # description of the split for the user


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.file is None and options.target is not None:
        parser.error("--target needs a file")
    try:
        table = _airline() if options.file is None else _read(options.file, options.target)
        table = replace(table, units={**table.units, **_units(options.unit, table)})
        _search(table, options.n_iter, options.random_state, report=options.report)
    except (OSError, ValueError, AutoKernelError) as error:
        print(f"autokernel: {error}", file=sys.stderr)
        return 2
    return 0


def _search(table: Table, n_iter: int, random_state: int, *, report: Path | None) -> None:
    """Search a kernel, print the result and its test errors, and write the report if asked to."""
    if report is not None:
        _check_report(report)
    split = _split(table, random_state)
    print(f"autokernel {__version__}: {table.title}")
    print(fill(split.words))
    print("\nEvaluated, time, score (log evidence plus log prior, in nats), kernel;")
    print("each line is the best so far:\n")
    sys.stdout.flush()
    model = AutoKernelGPRegressor(n_iter=n_iter, random_state=random_state)
    model.set_callbacks(Improvements(table.feature_names))
    try:
        model.fit(table.X[split.train], table.y[split.train])
    except KeyboardInterrupt:
        if not hasattr(model, "best_kernel_"):
            raise
        print("\nInterrupted: this is the best so far.")
    model._fitted = replace(model._fitted, feature_names=table.feature_names)
    words = model.describe(table.units)
    name = table.target_name
    print(summary(model._fitted, model.search_history_, words=words, target_name=name))
    if report is not None:
        model.report(report, units=table.units, title=f"{table.title}: {name}")
        print(f"\nReport: {report}")
    _report_errors(model, table, split)


def _parser() -> argparse.ArgumentParser:
    """Build the parser of the arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m autokernel",
        description="Search the kernel of a Gaussian process for a data set, and predict with it.",
        epilog="Without a file: monthly airline passengers, 1949 to 1960.",
    )
    parser.add_argument("file", nargs="?", type=Path, help="CSV file with a header line")
    parser.add_argument("--target", help="column to predict, by default the last")
    parser.add_argument(
        "--n-iter",
        type=_natural,
        default=20,
        help="kernels to evaluate after the initial design (default: %(default)s)",
    )
    parser.add_argument(
        "--random-state", type=_natural, default=0, help="seed of the search (default: %(default)s)"
    )
    parser.add_argument(
        "--unit",
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help="unit of a column or of the target, such as time=years; may be given several times",
    )
    parser.add_argument("--report", type=Path, help="HTML file to write a report to")
    return parser


def _units(given: Sequence[str], table: Table) -> dict[str, str]:
    """Read the units of columns by name, and of the target."""
    units = {}
    for text in given:
        name, sign, unit = text.partition("=")
        known = [*table.feature_names, table.target_name]
        if not sign or name not in known:
            raise ValueError(f"--unit must be NAME=TEXT with one of {known}, got {text!r}")
        if name == table.target_name:
            units[TARGET] = unit
        else:
            Axis.of(name, unit, 0.0, 1.0)  # raises the error that the description would raise
            units[name] = unit
    if TARGET in units and TARGET in table.feature_names:
        raise ValueError(
            f"--unit cannot tell the column {TARGET!r} from the target: give it another name"
        )
    return units


def _check_report(path: Path) -> None:
    """Raise a ``ValueError`` if a report cannot be written, before the search and not after it."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ValueError(f"--report must be a file in a folder that exists, got {path}")
    if find_spec("matplotlib") is None:
        raise ValueError(
            "--report needs matplotlib: install it by pip install 'autokernel-gp[plot]'"
        )


def _airline() -> Table:
    """Load the bundled airline series."""
    data = load_airline()
    title = "monthly airline passengers, 1949 to 1960"
    units = {"time": "years", "y": "thousand passengers"}
    return Table(title, data.data, data.target, list(data.feature_names), "passengers", units)


def _natural(text: str) -> int:
    """Read a whole number that is not negative."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, got {number}")
    return number


def _read(path: Path, target: str | None) -> Table:
    """Read a CSV file of numbers with a header line."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = [line for line in csv.reader(file, skipinitialspace=True) if line]
    if len(lines) < 5 or len(lines[0]) < 2:
        raise ValueError(f"{path} must have a line of column names, two columns and four rows")
    header = [name.strip() for name in lines[0]]
    if all(_is_number(name) for name in header):
        raise ValueError(f"{path} must begin with a line of column names, got {lines[0]}")
    if len(set(header)) < len(header):
        raise ValueError(f"{path} must have column names that differ, got {header}")
    try:
        rows = np.array(lines[1:], dtype=float)
    except ValueError as error:
        raise ValueError(
            f"{path} must hold a number for each of {header} in every line below: {error}"
        ) from error
    if rows.shape[1] != len(header) or not np.isfinite(rows).all():
        raise ValueError(f"{path} must hold a finite number for each of {header} in every line")
    target = header[-1] if target is None else target
    if target not in header:
        raise ValueError(f"--target must be one of {header}, got {target!r}")
    index = header.index(target)
    names = header[:index] + header[index + 1 :]
    return Table(path.name, np.delete(rows, index, axis=1), rows[:, index], names, target, {})


def _is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _split(table: Table, random_state: int) -> Split:
    """Reserve a tenth for testing: the last rows of a series, random rows of several columns."""
    n_samples = len(table.y)
    n_test = max(1, round(_TEST_SHARE * n_samples))
    if table.X.shape[1] == 1:
        order = np.argsort(table.X[:, 0], kind="stable")
        how = f"the last {n_test} to predict"
    else:
        order = np.random.default_rng(random_state).permutation(n_samples)
        how = f"{n_test} drawn at random to predict"
    train, test = np.split(order, [n_samples - n_test])
    return Split(train, test, f"{len(train)} rows to train on, {how}: {table.target_name}.")


def _report_errors(model: AutoKernelGPRegressor, table: Table, split: Split) -> None:
    """Print the test errors of the best kernel, an RBF kernel and the mean."""
    X, y = table.X[split.train], table.y[split.train]
    X_test, y_test = table.X[split.test], table.y[split.test]
    rbf = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    plain = make_pipeline(
        StandardScaler(),
        GaussianProcessRegressor(rbf, normalize_y=True, n_restarts_optimizer=5, random_state=0),
    )
    with warnings.catch_warnings():  # its optimiser warns of bounds that the user did not set
        warnings.simplefilter("ignore")
        plain.fit(X, y)
    predictions = {
        "this model": model.predict(X_test),
        "an RBF kernel": plain.predict(X_test),
        "the mean": np.full(len(y_test), y.mean()),
    }
    print(f"\nTest RMSE of {table.target_name}\n")
    for name, predicted in predictions.items():
        error = float(np.sqrt(np.mean((predicted - y_test) ** 2)))
        print(f"    {error:10.4g}  {name}")


if __name__ == "__main__":
    sys.exit(main())
