"""The arguments of the command line."""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autokernel.evidence import CRITERIA
from autokernel.kernels import OPERATORS
from autokernel.search import STRATEGIES
from autokernel.version import __version__

AUTO, ERROR, DROP = "auto", "error", "drop"
_SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asks for."""

    file: Path | None
    target: str | None
    sep: str  # one character, or AUTO
    date_format: str | None  # as for strptime
    missing: str  # ERROR or DROP
    drop: list[str]
    unit: list[str]
    n_iter: int
    max_time: float | None
    strategy: str
    criterion: str
    operators: list[str]
    n_jobs: int | None
    random_state: int
    predict: Path | None
    predictions: Path | None
    output: Path | None
    plot: Path | None
    report: Path | None


def parse(arguments: Sequence[str] | None) -> Options:
    """Read the arguments; ends the program with status 2 and a message if they are not valid."""
    parser = _parser()
    options = Options(**vars(parser.parse_args(arguments)))
    of_file = {
        "--target": options.target,
        "--date-format": options.date_format,
        "--drop": options.drop,
    }
    for name, value in of_file.items():
        if options.file is None and value:
            parser.error(f"{name} needs a file: name it before the options")
    if options.predictions is not None and options.predict is None:
        parser.error("--predictions needs --predict FILE, the rows to predict")
    return options


def _parser() -> argparse.ArgumentParser:
    """Build the parser."""
    is_module = Path(sys.argv[0]).name == "__main__.py"
    parser = argparse.ArgumentParser(
        prog="python -m autokernel" if is_module else "autokernel",
        usage="%(prog)s [FILE] [options]",
        description="Find the kernel of a Gaussian process for the columns of a file, tell what it "
        "says about them, test it on rows that were kept back, and predict with it.",
        epilog="Without a file, the data are monthly airline passengers, 1949 to 1960. "
        "Ctrl-C ends the search early: the best kernel so far is told and tested.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"autokernel {__version__}")
    _add_data(parser.add_argument_group("data"))
    _add_search(parser.add_argument_group("search"))
    _add_results(parser.add_argument_group("results"))
    return parser


def _add_data(group: argparse._ArgumentGroup) -> None:
    """Add the options that say how to read the file."""
    group.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="CSV file, also one compressed by gzip: a line of column names, and below it lines of "
        "numbers and dates",
    )
    group.add_argument("--target", metavar="NAME", help="column to predict (default: the last)")
    group.add_argument(
        "--sep",
        type=_separator,
        default=AUTO,
        help="what separates the columns: ',' or ';' or tab or another character "
        "(default: auto, which tells the first three apart)",
    )
    group.add_argument(
        "--date-format",
        metavar="FORMAT",
        help="how dates are written, such as %%d/%%m/%%Y for day/month/year "
        "(default: decided by the values of each column)",
    )
    group.add_argument(
        "--missing",
        choices=[ERROR, DROP],
        default=ERROR,
        help="what to do about missing values: tell where they are and end, or drop their rows "
        "(default: %(default)s)",
    )
    _add_many(group, "--drop", "NAME", "column to leave out")
    _add_many(group, "--unit", "NAME=TEXT", "unit of a column or of the target, as time=years")


def _add_many(group: argparse._ArgumentGroup, name: str, metavar: str, text: str) -> None:
    """Add an option that may be given several times."""
    several = f"{text}; may be given several times"
    group.add_argument(name, action="append", default=[], metavar=metavar, help=several)


def _add_search(group: argparse._ArgumentGroup) -> None:
    """Add the options of the search."""
    group.add_argument(
        "--n-iter",
        type=_natural,
        default=20,
        metavar="N",
        help="kernels to evaluate after the first dozen or so (default: %(default)s)",
    )
    group.add_argument(
        "--max-time",
        type=_seconds,
        metavar="SECONDS",
        help="longest time of the search (default: no limit)",
    )
    _add_names(group)
    group.add_argument(
        "--operators",
        type=_operators,
        default=["+", "*"],
        metavar="LIST",
        help="how kernels may be joined, with commas between: cp is a change-point, cw a window "
        "(default: +,*)",
    )
    group.add_argument(
        "--n-jobs",
        type=_workers,
        metavar="N",
        help="workers for the first kernels, -1 for one on each core (default: 1)",
    )
    group.add_argument(
        "--random-state",
        type=_natural,
        default=0,
        metavar="N",
        help="seed of the search and of the rows for the test (default: %(default)s)",
    )


def _add_names(group: argparse._ArgumentGroup) -> None:
    """Add the options that take the name of a part of the search."""
    for name, known, default, text in (
        ("--strategy", STRATEGIES, "sot", "how to search"),
        ("--criterion", CRITERIA, "laplace", "what to maximise"),
    ):
        group.add_argument(
            name,
            choices=list(known),
            default=default,
            metavar="NAME",
            help=f"{text}: {', '.join(known)} (default: %(default)s)",
        )


def _add_results(group: argparse._ArgumentGroup) -> None:
    """Add the options that say what is written."""
    group.add_argument(
        "--predict",
        type=Path,
        metavar="FILE",
        help="CSV file with rows to predict, whose columns are found by their names",
    )
    group.add_argument(
        "--predictions",
        type=Path,
        metavar="FILE",
        help="CSV file to write the predictions to (default: they are printed)",
    )
    group.add_argument(
        "--output", type=Path, metavar="FILE", help="file for the model: .skops or .joblib"
    )
    group.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="picture of the forecast for one column, of the components for several: "
        ".png, .svg or .pdf",
    )
    group.add_argument("--report", type=Path, metavar="FILE", help="HTML file for a report")


def _separator(text: str) -> str:
    """Read a separator: a character or its name."""
    one = _SEPARATORS.get(text, text)
    if one != AUTO and (len(one) != 1 or one.isalnum() or one in "\"'.\r\n"):
        raise argparse.ArgumentTypeError(
            f"must be auto, ',', ';', tab or another single character, got {text!r}"
        )
    return one


def _natural(text: str) -> int:
    """Read a whole number that is not negative."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a whole number such as 20, got {text!r}"
        ) from None
    if number < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, got {number}")
    return number


def _workers(text: str) -> int:
    """Read a number of workers."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number == 0:
        raise argparse.ArgumentTypeError(
            f"must be a whole number such as 2, or -1 for one on each core, got {text!r}"
        )
    return number


def _seconds(text: str) -> float:
    """Read a positive time."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(
            f"must be a positive number of seconds such as 60, got {text!r}"
        )
    return seconds


def _operators(text: str) -> list[str]:
    """Read names of operators with commas between."""
    names = [name.strip().lower() for name in text.split(",")]
    known = [name.lower() for name in OPERATORS]
    if not set(names) <= set(known):
        raise argparse.ArgumentTypeError(
            f"must be out of {','.join(known)} with commas between, got {text!r}"
        )
    return names
