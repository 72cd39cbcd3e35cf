"""The arguments of the command line, and whether the files that they name can be written."""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autokernel.evidence import CRITERIA
from autokernel.kernels import OPERATORS
from autokernel.search import STRATEGIES
from autokernel.version import __version__

_SEPARATORS = {"auto": None, "tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
_RESULTS = {  # the files to write, with their endings and the package that each needs
    "predictions": ("CSV file of predictions (default: they are printed)", {"": "pandas"}),
    "output": ("file of the model: .skops or .joblib", {".skops": "skops", ".joblib": "joblib"}),
    "plot": (
        "picture of the forecast for one column, of components for several: .png, .svg or .pdf",
        dict.fromkeys((".png", ".svg", ".pdf"), "matplotlib"),
    ),
    "report": ("HTML file for a report", {"": "matplotlib"}),
}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the arguments; ends the program with status 2 and a message if they are not valid."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for name in ("target", "decimal", "date_format", "category", "weights", "drop"):
        if options.file is None and getattr(options, name):
            parser.error(f"--{name.replace('_', '-')} needs a file: name it before the options")
    if options.predict is not None and options.horizon is not None:
        parser.error("--predict and --horizon exclude each other: give the rows, or their number")
    if options.predictions is not None and options.predict is None and options.horizon is None:
        parser.error("--predictions needs --predict FILE, the rows to predict, or --horizon N")
    if options.horizon is not None and options.horizon < 1:
        parser.error(f"--horizon must be at least 1, got {options.horizon}")
    return options


def check_outputs(options: argparse.Namespace) -> None:
    """Raise a ``ValueError`` if a result cannot be written, before the search and not after it."""
    taken = {path.resolve() for path in (options.file, options.predict) if path}
    for name, (_, endings) in _RESULTS.items():
        path = getattr(options, name)
        if path is None:
            continue
        packages = [endings[end] for end in endings if path.name.lower().endswith(end)]
        place = path if path.exists() else path.absolute().parent
        can_be_written = not path.is_dir() and os.access(place, os.W_OK)
        if not packages or not can_be_written or path.resolve() in taken:
            known = f", and that ends in {' or '.join(endings)}" if "" not in endings else ""
            raise ValueError(
                f"--{name} must be a file that can be written, that no other option names{known}, "
                f"got {path}"
            )
        taken.add(path.resolve())
        if find_spec(packages[0]) is None:
            extra = packages[0].replace("matplotlib", "plot")
            needed = f"{packages[0]}: install it by pip install 'autokernel-gp[{extra}]'"
            raise ValueError(f"--{name} {path} needs {needed}")


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
    text = "CSV file with a line of column names, and below it rows of numbers, dates and texts"
    add("file", nargs="?", type=Path, metavar="FILE", help=text)
    add("--target", metavar="NAME", help="column to predict (default: the last, without weights)")
    text = "what separates the columns, such as '|' or space (default: auto, for tab, ';' and ',')"
    add("--sep", type=_separator, help=text)
    text = "decimal mark, '.' or ',', of columns such as 1,234 that may hold thousands or decimals"
    add("--decimal", choices=[".", ","], metavar="MARK", help=text)
    text = "how dates are written, such as %%d/%%m/%%Y (default: decided by the values of a column)"
    add("--date-format", metavar="FORMAT", help=text)
    text = "column of categories, as a column of text always is; may be given several times"
    add("--category", action="append", default=[], metavar="NAME", help=text)
    text = "column of weights of the rows, which is no input; only their ratios count"
    add("--weights", metavar="NAME", help=text)
    text = "rows with missing values: keep them, leave them out, or name them and end "
    text += "(default: keep); rows without a target are left out"
    add("--missing", choices=["keep", "drop", "error"], default="keep", help=text)
    text = "column to leave out; may be given several times"
    add("--drop", action="append", default=[], metavar="NAME", help=text)
    text = "unit of a column or of the target, such as time=years; may be given several times"
    add("--unit", action="append", default=[], metavar="NAME=TEXT", help=text)


def _add_search(add: Callable[..., Any]) -> None:
    text = "kernels to evaluate after the first dozen or so (default: %(default)s)"
    add("--n-iter", type=int, default=20, metavar="N", help=text)
    add("--max-time", type=float, metavar="SECONDS", help="longest time of the search")
    add("--strategy", choices=STRATEGIES, default="sot", help="how to search (default: sot)")
    add("--criterion", choices=CRITERIA, default="laplace", help="score (default: laplace)")
    text = f"how kernels may be joined, out of {','.join(OPERATORS)} (default: +,*)"
    add("--operators", type=lambda text: text.split(","), default="+,*", metavar="LIST", help=text)
    text = "workers for the first kernels, -1 for one on each core (default: 1)"
    add("--n-jobs", type=int, metavar="N", help=text)
    text = "seed of the search and of the rows for the test (default: %(default)s)"
    add("--random-state", type=int, default=0, metavar="N", help=text)


def _add_results(add: Callable[..., Any]) -> None:
    text = "CSV file with rows to predict, whose columns are found by their names"
    add("--predict", type=Path, metavar="FILE", help=text)
    text = "number of rows to forecast after the last one, of a single column of dates or numbers"
    add("--horizon", type=int, metavar="N", help=text)
    for name, (text, _) in _RESULTS.items():
        add(f"--{name}", type=Path, metavar="FILE", help=text)


def _separator(text: str) -> str | None:
    sep = _SEPARATORS.get(text, text)
    if sep is None or (len(sep) == 1 and not sep.isalnum() and sep not in "\"'.\r\n"):
        return sep
    raise argparse.ArgumentTypeError(
        f"must be auto, ',', ';', tab or another single character, got {text!r}"
    )
