"""The command line: ``options.py`` has its arguments, ``reading.py`` files, ``run.py`` the rest."""

from autokernel.cli.run import main

__all__ = ["main"]
