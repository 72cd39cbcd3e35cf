"""One run of the command line, from the arguments to the exit status."""

import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Sequence

from autokernel.cli.comparison import print_comparison
from autokernel.cli.options import Options, parse
from autokernel.cli.outputs import check_new_rows, check_outputs, write_files, write_predictions
from autokernel.cli.search import announce, fit_all, make_estimator, search
from autokernel.cli.split import split_rows
from autokernel.cli.table import NewRows, Table, airline, read_new_rows, read_table, with_units
from autokernel.estimator import AutoKernelGPRegressor
from autokernel.exceptions import AutoKernelError
from autokernel.explain import fill, summary
from autokernel.fit.progress import print_now
from autokernel.version import __version__

_REFUSED, _INTERRUPTED = 2, 130  # exit statuses; the second is that of the shell for Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, default=None
        Arguments; None for those of the program.

    Returns
    -------
    int
        Exit status: 0, also where Ctrl-C has ended a search with a kernel; 2 if the arguments or
        a file cannot be used; 130 after Ctrl-C before there was a kernel, or while files were
        written.
    """
    options = parse(arguments)
    try:
        with warnings.catch_warnings():
            for told in ("the search on .* will take", "max_time ended the search before"):
                warnings.filterwarnings("ignore", message=told)  # what is printed says so too
            warnings.showwarning = _show_warning
            return _run(options)
    except KeyboardInterrupt:
        print("\nautokernel: interrupted before any kernel was fitted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # whoever reads has seen enough, as head has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, ValueError, AutoKernelError) as error:
        text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        print(
            textwrap.fill(
                f"autokernel: {text}", 100, break_long_words=False, break_on_hyphens=False
            ),
            file=sys.stderr,
        )
        return _REFUSED


def _run(options: Options) -> int:
    """Read, check, search, tell, test and write, in this order."""
    check_outputs(options)
    table = airline() if options.file is None else read_table(options.file, options)
    table = with_units(table, options.unit)
    new = None if options.predict is None else read_new_rows(options.predict, table, options)
    if new is not None:
        check_new_rows(new)
    split = split_rows(table, options.random_state)
    model = make_estimator(options)
    print_now(f"autokernel {__version__}: {table.title}")
    notes = [] if new is None else [f"{new.sheet.file}: {note}" for note in new.sheet.notes]
    for note in [*table.notes, *notes, split.words]:
        print_now(fill(note))
    announce(model, table, split, options)
    found = search(model, table, split)
    print_now("\n" + fill(found.ending))
    _unless_interrupted("description", lambda: _print_words(model, table))
    _unless_interrupted("test", lambda: print_comparison(model, table, split))
    return _write(model, table, new, options)


def _unless_interrupted(name: str, step: Callable[[], None]) -> None:
    """Take a step; Ctrl-C ends it, and the next one follows."""
    try:
        step()
    except KeyboardInterrupt:
        print_now(f"\nInterrupted: the {name} is left out.")


def _print_words(model: AutoKernelGPRegressor, table: Table) -> None:
    """Print the best kernel in words, and the best five."""
    words, name = model.describe(table.units), table.target_name
    kernel, history = model.best_expression_, model.search_history_
    print_now(summary(kernel, history, words=words, target_name=name))


def _write(
    model: AutoKernelGPRegressor, table: Table, new: NewRows | None, options: Options
) -> int:
    """Fit the kernel to all rows and write what was asked for; returns the exit status."""
    if new is None and not any((options.output, options.plot, options.report)):
        return 0
    fit_all(model, table)
    try:
        if new is not None:
            write_predictions(model, new, options.predictions)
        write_files(model, table, options)
    except KeyboardInterrupt:
        print_now("Interrupted: what is not named above has not been written.")
        return _INTERRUPTED
    return 0


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as a sentence, without the line of code that it comes from."""
    print("\n" + fill(f"Note: {message}") + "\n", file=sys.stderr, flush=True)
