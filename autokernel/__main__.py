"""The entry of ``python -m autokernel``, and of the console script ``autokernel``."""

import sys

from autokernel.cli import main

if __name__ == "__main__":
    sys.exit(main())
