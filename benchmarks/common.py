"""What the benchmarks share: where they ran, options, one loop of measurements, CSV files, tables.

A program is a list of units, a function that measures one of them, and one that prints tables. A
unit is a dict; its values are the first columns of a row, and the arguments of the function. Its
row is written as soon as it is there, with the commit, versions and machine, and is not measured
again: rows of the current commit count, those of any commit by ``--any-commit`` or where the
program says so. ``--finished`` only prints the tables of the rows that are there, ``--small`` takes
minutes, and ``--jobs`` is the number of processes.

Results go to the folder ``results`` and figures to ``docs/figures``; with the environment variable
``AUTOKERNEL_RESULTS`` both go to the folder that it names.
"""

import argparse
import csv
import io
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported

import joblib
import numpy as np
import scipy
import sklearn
from scipy.stats import norm

import autokernel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOP = Path(__file__).resolve().parents[1]
_ELSEWHERE = os.environ.get("AUTOKERNEL_RESULTS")
RESULTS = Path(_ELSEWHERE or TOP / "benchmarks" / "results")
FIGURES = Path(_ELSEWHERE or TOP / "docs" / "figures")

_LINE = 110  # characters that are printed of a row
_ONE = "--one"  # option of a process that measures one unit

Unit = Mapping[str, object]
Row = Mapping[str, Any]
Rows = Sequence[Mapping[str, str]]
Figure = Callable[[Rows], object]
"""What is computed of some rows."""


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Split:
    """Rows to train and to test on, a unit of errors, and what else ``fit`` takes."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    scale: float = 1.0
    of_rows: Mapping[str, np.ndarray] = field(default_factory=dict)


def rmse(mean: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((mean - y) ** 2)))


def normal_nll(mean: np.ndarray, std: np.ndarray, y: np.ndarray) -> float:
    """Compute the mean negative log density of normal distributions, in nats per target."""
    return -float(norm.logpdf(y, mean, std).mean())


@lru_cache(maxsize=1)  # what runs is the version that was there when the run began
def environment() -> Mapping[str, str]:
    """Commit of the package, versions and machine; they are columns of every CSV file."""
    return {
        "commit": commit_of(checkout()),
        "autokernel": autokernel.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "sklearn": sklearn.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()} {_processor()}, {joblib.cpu_count()} cores",
        "blas_threads": os.environ["OPENBLAS_NUM_THREADS"],
    }


def checkout() -> Path:
    """Return the checkout of the package that runs, or of this file if it is installed."""
    found = Path(autokernel.__file__).resolve().parents[1]
    return found if (found / ".git").exists() else TOP


def commit_of(folder: Path) -> str:
    """Short hash of the commit, with a plus where anything but results differs from it."""
    results = [f":(exclude){folder / path}" for path in ("benchmarks/results", "docs/figures")]
    changed = _git(folder, "status", "--short", "--", str(folder), *results)
    return _git(folder, "rev-parse", "--short", "HEAD") + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def print_environment() -> None:
    print("  ".join(f"{name} {value}" for name, value in environment().items()))


def options_of(
    doc: str, *, small: Mapping[str, object] | None = None, by_name: Iterable[str] = (), **more: Any
) -> argparse.Namespace:
    """Parse the options that benchmarks share, and more of them by their defaults.

    An option whose default is a list of texts is a choice among them; data sets ``by_name`` can be
    chosen too. ``small`` has the defaults of the small form, if there is one, and ``complete`` says
    that it is not that form, and nothing is left out.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    flags = ("finished", "any_commit", *(["small"] if small else []))
    for name, default in (more | {"jobs": 1} | dict.fromkeys(flags, False)).items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            parser.add_argument(option, action="store_true")
        elif isinstance(default, str | int | float):
            parser.add_argument(option, type=type(default), default=default)
        else:
            kind = type(next(iter(default), ""))
            choices = [*default, *(by_name if name == "datasets" else ())] or None
            choices = choices if kind is str else None
            parser.add_argument(option, nargs="*", type=kind, choices=choices, metavar="NAME")
            parser.set_defaults(**{name: list(default)})
    everything, arguments = parser.parse_args([]), parser.parse_args()
    if small and arguments.small:
        parser.set_defaults(**small)
        arguments = parser.parse_args()
    arguments.complete = not (small and arguments.small) and all(
        set(getattr(arguments, name)) == set(value)
        for name, value in vars(everything).items()
        if isinstance(value, list)
    )
    return arguments


def versions_of(folders: Iterable[Path]) -> tuple[dict[str, Path], bool]:
    """Return checkouts by their commits, and whether all of them are without changes."""
    checkouts = {commit_of(folder): folder for folder in map(Path.resolve, folders)}
    return checkouts, not any(version.endswith("+") for version in checkouts)


def crossed(**values: Iterable[object]) -> list[Unit]:
    """Return units with all combinations of values, of which the last one varies fastest."""
    return [dict(zip(values, one, strict=True)) for one in product(*values.values())]


def collect(
    name: str,
    units: Sequence[Unit],
    measure: Callable[..., Row],
    arguments: argparse.Namespace,
    *,
    any_commit: bool = False,
) -> list[dict[str, str]]:
    """Measure what ``results/NAME.csv`` has not, and return the rows of all units, in their order.

    Units are begun in order, by several processes. Of several rows the last one counts; those of a
    checkout with changes never do.
    """
    print_environment()
    any_commit = any_commit or arguments.any_commit
    fields, commit = list(units[0]), environment()["commit"]
    rows = {
        tuple(row[field] for field in fields): row
        for row in read_rows(name)
        if any_commit or (row["commit"] == commit and not commit.endswith("+"))
    }
    if arguments.finished:
        units = [unit for unit in units if _key(unit) in rows]
        if not units:
            where = "" if any_commit else " by this commit: add --any-commit"
            raise SystemExit(f"results/{name}.csv has no row of these runs{where}")
    missing = [unit for unit in units if _key(unit) not in rows]
    run = joblib.Parallel(arguments.jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
    tasks = (joblib.delayed(_measured)(measure, unit) for unit in missing)
    for number, row in enumerate(run(tasks), 1):
        (found,) = append_rows(name, [row])
        rows[tuple(found[field] for field in fields)] = found
        text = " ".join(_format(value) for value in row.values())
        print(f"{number} of {len(missing)}: {text[:_LINE]}", flush=True)
    return [rows[_key(unit)] for unit in units]


def _measured(measure: Callable[..., Row], unit: Unit) -> Row:
    return {**unit, **measure(**unit)}


def _key(unit: Unit) -> tuple[str, ...]:
    """Values of a unit, as they stand in a CSV file."""
    return tuple(map(str, unit.values()))


def measured_afresh(
    file: str, unit: Unit, *, folder: Path | None = None, limit: int | None = None
) -> Row | None:
    """Measure a unit by a program in a process of its own, which takes the package from a checkout.

    It answers by :func:`answers`; there is nothing if it was ended after CPU seconds.
    """
    folder = folder or checkout()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", file, _ONE, json.dumps([unit, limit])],
        env={**os.environ, "PYTHONPATH": str(folder)}, cwd=folder, check=False,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    if limit and done.returncode == -signal.SIGXCPU:
        return None
    done.check_returncode()
    found = json.loads(done.stdout.splitlines()[-1])
    if not Path(found.pop("package")).is_relative_to(folder):
        raise RuntimeError(f"the package was not taken from {folder}")
    return found


def answers(measure: Callable[..., Row]) -> bool:
    """Measure and print a unit if :func:`measured_afresh` has started this process."""
    if sys.argv[1:2] != [_ONE]:
        return False
    unit, limit = json.loads(sys.argv[2])
    if limit:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
    print(json.dumps({**measure(**unit), "package": autokernel.__file__}))
    return True


def append_rows(name: str, rows: Iterable[Row]) -> list[dict[str, str]]:
    """Append rows to ``results/NAME.csv``, with the environment, and return them as they are there.

    Numbers have six digits, so that files stay small. The order of columns is that of the file. One
    with other columns is an error: rename or delete it.
    """
    RESULTS.mkdir(exist_ok=True, parents=True)
    path = RESULTS / f"{name}.csv"
    full = [
        {
            column: f"{float(f'{value:.6g}')}" if isinstance(value, float) else str(value)
            for column, value in {**row, **environment()}.items()
        }
        for row in rows
    ]
    header = list(full[0])
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            header = next(csv.reader(file))
    if set(header) != set(full[0]):
        raise ValueError(f"{path} must have the columns {list(full[0])}, got {header}")
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=header, lineterminator="\n")
    if not path.exists():
        writer.writeheader()
    writer.writerows(full)
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(text.getvalue())  # at once: whoever interrupts leaves whole rows
    return full


def read_rows(name: str) -> list[dict[str, str]]:
    """Rows of ``results/NAME.csv``, none where it does not exist."""
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def save_figure(figure: "Figure", name: str, *, complete: bool) -> None:
    """Write a figure to ``docs/figures``, that of a part to a folder for such files."""
    folder = FIGURES if complete else Path(_ELSEWHERE or tempfile.gettempdir())
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=110, metadata={"Software": None})  # the same rows make the same file
    print(f"drawn: {path}")


def group(rows: Iterable[Row], *names: str) -> dict[Any, list[Any]]:
    """Rows by the values of columns, a tuple of several ones, in the order in which these come."""
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        key = row[names[0]] if len(names) == 1 else tuple(row[name] for name in names)
        groups.setdefault(key, []).append(row)
    return groups


def numbers(rows: Iterable[Row], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])


def of(function: Callable[[np.ndarray], Any], name: str) -> Figure:
    """Return what computes a figure of one column, NaN without rows."""
    return lambda rows: float(function(numbers(rows, name))) if rows else float("nan")


def print_groups(groups: Mapping[Any, Rows], header: str, figures: Mapping[str, Figure]) -> None:
    lines = []
    for key, rows in groups.items():
        name = " ".join(key) if isinstance(key, tuple) else key
        lines.append({header: name} | {what: of_rows(rows) for what, of_rows in figures.items()})
    print_table(lines)


def print_table(rows: Sequence[Row]) -> None:
    header = list(rows[0]) if rows else ["no rows"]
    cells = [header, *([_format(row[name]) for name in header] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def _format(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def geometric_mean(values: Sequence[float] | np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(values))))


def standard_error(values: np.ndarray) -> float:
    """Compute the standard error of the mean, NaN for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def cpu_seconds() -> float:
    """CPU seconds of this process and of the workers that have ended."""
    own, workers = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + workers.ru_utime + workers.ru_stime


def seconds_of(call: Callable[[], object], *, at_least: float = 0.02) -> float:
    """Mean CPU seconds of a call over as many as fill the time."""
    began, n_calls = cpu_seconds(), 0
    while (elapsed := cpu_seconds() - began) < at_least or n_calls == 0:
        call()
        n_calls += 1
    return elapsed / n_calls
