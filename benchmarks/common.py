"""What the benchmarks share: where they ran, their data, options, CSV files and figures.

Results go to the folder ``results`` and figures to ``docs/figures``; with the environment variable
``AUTOKERNEL_RESULTS`` both go to the folder that it names.
"""

import argparse
import csv
import io
import os
import platform
import resource
import subprocess
import tempfile
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported

import joblib
import numpy as np
import scipy
import sklearn

import autokernel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TOP = Path(__file__).parent.parent
_ELSEWHERE = os.environ.get("AUTOKERNEL_RESULTS")
RESULTS = Path(_ELSEWHERE or _TOP / "benchmarks" / "results")
FIGURES = Path(_ELSEWHERE or _TOP / "docs" / "figures")

_LINE = 110  # characters that are printed of a row

Unit = Any
"""A frozen dataclass that says what to measure; its fields are the first columns of a CSV file."""
Row = Mapping[str, object]
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


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
    return found if (found / ".git").exists() else _TOP


def print_environment() -> None:
    """Print the environment as one line."""
    print("  ".join(f"{name} {value}" for name, value in environment().items()))


def append_rows(name: str, rows: Iterable[Mapping[str, object]]) -> Path:
    """Append rows to ``results/NAME.csv``, with the environment, and return its path.

    A file with other columns is an error: rename or delete it.
    """
    RESULTS.mkdir(exist_ok=True, parents=True)
    path = RESULTS / f"{name}.csv"
    full = [{**row, **environment()} for row in rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(full[0]), lineterminator="\n")
    if not path.exists():
        writer.writeheader()
    elif (header := path.read_text(encoding="utf-8").split("\n", 1)[0].split(",")) != list(full[0]):
        raise ValueError(f"{path} must have the columns {list(full[0])}, got {header}")
    writer.writerows(full)
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write(text.getvalue())  # at once: whoever interrupts leaves whole rows
    return path


def read_rows(name: str) -> list[dict[str, str]]:
    """Rows of ``results/NAME.csv``, none where it does not exist."""
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def collect(
    name: str,
    units: Sequence[Unit],
    measure: Callable[[Any], Row],
    arguments: argparse.Namespace,
    *,
    any_commit: bool = False,
) -> list[dict[str, str]]:
    """Measure what ``results/NAME.csv`` has not, and return the rows of all units, in their order.

    With ``--finished`` nothing is measured. Rows of earlier commits count with ``any_commit`` or
    ``--any-commit``, the last one of several. Each row is written as soon as it is there; units are
    begun in order, by several processes.
    """
    print_environment()
    any_commit = any_commit or arguments.any_commit
    rows = _finished(name, units, any_commit=any_commit)
    if arguments.finished:
        units = [unit for unit in units if _key(asdict(unit)) in rows]
        if not units:
            where = "" if any_commit else " by this commit: add --any-commit"
            raise SystemExit(f"results/{name}.csv has no row of these runs{where}")
    missing = [unit for unit in units if _key(asdict(unit)) not in rows]
    run = joblib.Parallel(arguments.jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
    tasks = (joblib.delayed(_measured)(measure, unit) for unit in missing)
    for number, row in enumerate(run(tasks), 1):
        append_rows(name, [row])
        found = {column: str(value) for column, value in {**row, **environment()}.items()}
        rows[_key({field.name: found[field.name] for field in fields(units[0])})] = found
        told = " ".join(_format(value) for value in row.values())
        print(f"{number} of {len(missing)}: {told[:_LINE]}", flush=True)
    return [rows[_key(asdict(unit))] for unit in units]


def _measured(measure: Callable[[Any], Row], unit: Unit) -> Row:
    """Measure, in a worker, and put the unit in front."""
    return {**asdict(unit), **measure(unit)}


def _finished(
    name: str, units: Sequence[Unit], *, any_commit: bool
) -> dict[tuple[str, ...], dict[str, str]]:
    """Rows of a CSV file by the key of their unit, the last one of each.

    Unless those of any commit count, they are those of the current one, none if it is changed.
    """
    commit = environment()["commit"]
    names = [field.name for field in fields(units[0])]
    return {
        _key({field: row[field] for field in names}): row
        for row in read_rows(name)
        if any_commit or (row["commit"] == commit and not commit.endswith("+"))
    }


def _key(values: Mapping[str, object]) -> tuple[str, ...]:
    """Values of the fields of a unit, as they stand in a CSV file."""
    return tuple(map(str, values.values()))


def make_parser(
    doc: str, *, datasets: Iterable[str], seeds: int, what: str = "seeds"
) -> argparse.ArgumentParser:
    """Build a parser of the options that benchmarks share."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    names = list(datasets)
    parser.add_argument("--datasets", nargs="+", default=names, choices=names, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=seeds, help=f"{what} 0 to SEEDS - 1")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--small", action="store_true", help="a form that takes minutes")
    parser.add_argument("--finished", action="store_true", help="what has rows, and no new runs")
    parser.add_argument(
        "--any-commit", action="store_true", help="take rows of earlier commits as well"
    )
    return parser


def parse(parser: argparse.ArgumentParser, *, small: Mapping[str, object]) -> argparse.Namespace:
    """Parse the command line; the small form changes what is not given there.

    ``complete`` tells that it is not that form, and no choice among data sets or methods.
    """
    everything = parser.parse_args([])
    if parser.parse_args().small:
        parser.set_defaults(**small)
    arguments = parser.parse_args()
    arguments.complete = not arguments.small and all(
        set(getattr(arguments, name)) == set(value)
        for name, value in vars(everything).items()
        if isinstance(value, list)
    )
    return arguments


def save_figure(figure: "Figure", name: str, *, complete: bool) -> None:
    """Write a figure to ``docs/figures``, that of a part to a folder for such files."""
    folder = FIGURES if complete else Path(_ELSEWHERE or tempfile.gettempdir())
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=110, metadata={"Software": None})  # the same rows make the same file
    print(f"drawn: {path}")


def group(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Items by key, in the order in which the keys come."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


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


def rounded(value: float) -> float:
    """Round to six digits, so that files stay small."""
    return float(f"{value:.6g}")


def numbers(rows: Iterable[Mapping[str, str]], name: str) -> np.ndarray:
    """One column."""
    return np.array([float(row[name]) for row in rows])


def standard_error(values: np.ndarray) -> float:
    """Compute the standard error of the mean, NaN for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def print_table(rows: list[Mapping[str, object]]) -> None:
    """Print rows as aligned columns."""
    header = list(rows[0])
    cells = [header, *([_format(row[name]) for name in header] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def _format(value: object) -> str:
    """Numbers with four digits, anything else as it is."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def commit_of(checkout: Path) -> str:
    """Short hash of the commit, with a plus where anything but results differs from it."""
    results = [f":(exclude){checkout / path}" for path in ("benchmarks/results", "docs/figures")]
    changed = _git(checkout, "status", "--short", "--", str(checkout), *results)
    return _git(checkout, "rev-parse", "--short", "HEAD") + ("+" if changed else "")


def _git(checkout: Path, *arguments: str) -> str:
    """Output of a git command in a checkout, empty where there is none."""
    command = ["git", "-C", str(checkout), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip()


def _processor() -> str:
    """Model name of the processor, where the system tells."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
