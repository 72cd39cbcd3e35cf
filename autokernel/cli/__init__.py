"""The command line: files are read, a kernel is searched for, and what is found is told and written.

``options.py`` reads the arguments. ``sheet.py`` splits a file into cells, ``cells.py`` and
``dates.py`` read numbers and dates in them, and ``table.py`` makes the data set. ``search.py`` fits
the estimator, ``comparison.py`` tests it, ``outputs.py`` writes files, and ``run.py`` calls them in
order.
"""

from autokernel.cli.run import main

__all__ = ["main"]
