"""The arguments of the command line, and whether the files that they name can be written."""

import argparse
import math
import os
import platform
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autokernel.evidence import CRITERIA
from autokernel.kernels import OPERATORS
from autokernel.search import STRATEGIES
from autokernel.version import __version__

_SEPARATORS = {"auto": None, "tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
_OPERATORS = {name.lower(): name for name in OPERATORS}
_ENDINGS: dict[
    str, dict[str, str | None]
] = {  # of the files of an option, each with the package that it needs
    "--plot": {".png": "matplotlib", ".svg": "matplotlib", ".pdf": "matplotlib"},
    "--output": {".skops": "skops", ".joblib": None},
}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the arguments; ends the program with status 2 and a message if they are not valid."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for name in ("target", "date_format", "drop"):
        if options.file is None and getattr(options, name):
            parser.error(f"--{name.replace('_', '-')} needs a file: name it before the options")
    if options.predictions is not None and options.predict is None:
        parser.error("--predictions needs --predict FILE, the rows to predict")
    return options


def check_outputs(options: argparse.Namespace) -> None:
    """Raise a ``ValueError`` if a result cannot be written, before the search and not after it."""
    taken = {one.resolve(): "that is read" for one in (options.file, options.predict) if one}
    for name in ("--predictions", "--output", "--plot", "--report"):
        path = getattr(options, name[2:])
        if path is None:
            continue
        endings = _ENDINGS.get(name, {path.suffix.lower(): None})
        if path.suffix.lower() not in endings:
            known = " or ".join(endings)
            raise ValueError(f"{name} must be a file that ends in {known}, got {path}")
        folder = path.absolute().parent
        if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
            raise ValueError(f"{name} must be a file that can be written, got {path}")
        if path.resolve() in taken:
            raise ValueError(f"{name} must not be the file {taken[path.resolve()]}, got {path}")
        taken[path.resolve()] = f"of {name}"
        needed = "matplotlib" if name == "--report" else endings[path.suffix.lower()]
        if needed and find_spec(needed) is None:
            extra = needed.replace("matplotlib", "plot")
            raise ValueError(
                f"{name} {path} needs {needed}: install it by pip install 'autokernel-gp[{extra}]'"
            )


def _parser() -> argparse.ArgumentParser:
    is_module = Path(sys.argv[0]).name == "__main__.py"
    parser = argparse.ArgumentParser(
        prog="python -m autokernel" if is_module else "autokernel",
        usage="%(prog)s [FILE] [options]",
        description="Find the kernel of a Gaussian process for the columns of a file, describe it "
        "in words, test it on rows that were kept back, and predict with it.",
        epilog="Without a file, the data are monthly airline passengers, 1949 to 1960. "
        "Ctrl-C ends the search early: the best kernel so far is described and tested.",
        allow_abbrev=False,
    )
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    versions = f"autokernel {__version__} (Python {platform.python_version()}, {libraries})"
    parser.add_argument("--version", action="version", version=versions)
    _add_data(parser.add_argument_group("data").add_argument)
    _add_search(parser.add_argument_group("search").add_argument)
    _add_results(parser.add_argument_group("results").add_argument)
    return parser


def _add_data(add: Callable[..., Any]) -> None:
    text = "CSV file with a line of column names, and below it rows of numbers and dates"
    add("file", nargs="?", type=Path, metavar="FILE", help=text)
    add("--target", metavar="NAME", help="column to predict (default: the last)")
    text = "what separates the columns: ',' or ';' or tab or another character (default: auto, the "
    text += "one of these three in the line of names)"
    one = "auto, ',', ';', tab or another single character"
    sep = _valid(lambda text: _SEPARATORS.get(text, text), _is_separator, one)
    add("--sep", type=sep, help=text)
    text = "how dates are written, such as %%d/%%m/%%Y for day/month/year (default: decided by the "
    add("--date-format", metavar="FORMAT", help=text + "values of each column)")
    text = "what to do about missing values: name them and end, or drop their rows (default: error)"
    add("--missing", choices=["error", "drop"], default="error", help=text)
    text = "column to leave out; may be given several times"
    add("--drop", action="append", default=[], metavar="NAME", help=text)
    text = "unit of a column or of the target, such as time=years; may be given several times"
    add("--unit", action="append", default=[], metavar="NAME=TEXT", help=text)


def _add_search(add: Callable[..., Any]) -> None:
    natural = _valid(int, lambda n: n >= 0, "a whole number such as 20, not a negative one")
    text = "kernels to evaluate after the first dozen or so (default: %(default)s)"
    add("--n-iter", type=natural, default=20, metavar="N", help=text)
    seconds = _valid(float, lambda s: 0 < s < math.inf, "a positive number of seconds such as 60")
    text = "longest time of the search (default: no limit)"
    add("--max-time", type=seconds, metavar="SECONDS", help=text)
    text = f"how to search: {', '.join(STRATEGIES)} (default: %(default)s)"
    add("--strategy", choices=list(STRATEGIES), default="sot", metavar="NAME", help=text)
    text = f"what to maximise: {', '.join(CRITERIA)} (default: %(default)s)"
    add("--criterion", choices=list(CRITERIA), default="laplace", metavar="NAME", help=text)
    operators = _valid(
        lambda text: [name.strip().lower() for name in text.split(",")],
        lambda names: set(names) <= set(_OPERATORS),
        f"out of {','.join(_OPERATORS)} with commas between",
    )
    text = "how kernels may be joined, with commas between: cp is a change-point, cw a window "
    text += "(default: +,*)"
    add("--operators", type=operators, default=["+", "*"], metavar="LIST", help=text)
    workers = _valid(int, bool, "a whole number such as 2, or -1 for one on each core")
    text = "workers for the first kernels, -1 for one on each core (default: 1)"
    add("--n-jobs", type=workers, metavar="N", help=text)
    text = "seed of the search and of the rows for the test (default: %(default)s)"
    add("--random-state", type=natural, default=0, metavar="N", help=text)


def _add_results(add: Callable[..., Any]) -> None:
    for name, text in {
        "--predict": "CSV file with rows to predict, whose columns are found by their names",
        "--predictions": "CSV file to write the predictions to (default: they are printed)",
        "--output": "file for the model: .skops or .joblib",
        "--plot": "picture of the forecast for one column, of the components for several: .png, "
        ".svg or .pdf",
        "--report": "HTML file for a report",
    }.items():
        add(name, type=Path, metavar="FILE", help=text)


def _is_separator(text: str | None) -> bool:
    return text is None or (len(text) == 1 and not text.isalnum() and text not in "\"'.\r\n")


def _valid(
    convert: Callable[[str], Any], is_valid: Callable[[Any], bool], expected: str
) -> Callable[[str], Any]:
    """Build the function that reads an argument or says what was expected."""

    def read(text: str) -> Any:
        with suppress(ValueError):
            value = convert(text)
            if is_valid(value):
                return value
        raise argparse.ArgumentTypeError(f"must be {expected}, got {text!r}")

    return read
