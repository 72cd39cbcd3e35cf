"""The command line: ``options.py`` has its arguments, ``reading.py`` files, ``run.py`` the rest."""
