"""What the benchmarks share: where they ran, their data, their CSV files."""

import csv
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported

import joblib
import numpy as np
import scipy
import sklearn

import autokernel

RESULTS = Path(__file__).parent / "results"


def environment() -> dict[str, str]:
    """Commit, versions and machine of this run; they are columns of every CSV file."""
    return {
        "commit": _commit(),
        "autokernel": autokernel.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "sklearn": sklearn.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()} {_processor()}, {joblib.cpu_count()} cores",
        "blas_threads": os.environ["OPENBLAS_NUM_THREADS"],
    }


def print_environment() -> None:
    """Print the environment as one line."""
    print("  ".join(f"{name} {value}" for name, value in environment().items()))


def append_rows(name: str, rows: Iterable[Mapping[str, object]]) -> Path:
    """Append rows to ``results/NAME.csv``, with the environment, and return its path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.csv"
    full = [{**row, **environment()} for row in rows]
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(full[0]), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(full)
    return path


def read_rows(name: str) -> list[dict[str, str]]:
    """Rows of ``results/NAME.csv``, none where it does not exist."""
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def rows_of_this_commit(name: str) -> list[dict[str, str]]:
    """Rows of ``results/NAME.csv`` that the current commit has measured."""
    commit = _commit()
    return [row for row in read_rows(name) if row["commit"] == commit]


def keys_of_this_commit(name: str, fields: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Tell what the current commit has measured, by these columns: it need not run again."""
    return {tuple(row[field] for field in fields) for row in rows_of_this_commit(name)}


def read_data(dataset: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a CSV file of the benchmark folder: inputs scaled to the unit interval, and target."""
    path = Path(os.environ["AUTOKERNEL_DATA"]) / f"{dataset}.csv"
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1]
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), y


def print_table(rows: list[Mapping[str, object]]) -> None:
    """Print rows as aligned columns."""
    header = list(rows[0])
    cells = [header, *([_format(row[name]) for name in header] for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(header))]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def _format(value: object) -> str:
    """Numbers with four digits, anything else as it is."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _commit() -> str:
    """Short hash of the commit, with a plus where anything but results differs from it."""
    top = Path(__file__).parent.parent
    changed = _git("status", "--short", "--", str(top), f":(exclude){RESULTS}")
    return _git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def _git(*arguments: str) -> str:
    """Output of a git command in the project, empty where there is none."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip()


def _processor() -> str:
    """Model name of the processor, where the system tells."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
