"""Scripts in two processes."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import autokernel


def outputs_under_two_hash_seeds(script: str) -> set[str]:
    """Collect what a script prints here and in a process that hashes texts differently."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(script, {"__name__": "__main__"})
    other = subprocess.run(
        [sys.executable, "-c", script],
        env={
            **os.environ,
            "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1",
        },
        cwd=Path(autokernel.__file__).parent.parent,  # where it finds the package under test
        capture_output=True,
        text=True,
        check=True,
    )
    return {printed.getvalue(), other.stdout}
