"""The command line: it reads files, searches for a kernel, tells what it found and writes files.

``options.py`` reads the arguments. ``sheet.py`` splits a file into cells, ``cells.py`` and
``dates.py`` read numbers and dates in them, and ``table.py`` makes the data set. ``search.py`` fits
the estimator, ``comparison.py`` tests it, ``outputs.py`` writes files, and ``run.py`` calls them in
order.
"""

from autokernel.cli.run import main

__all__ = ["main"]
