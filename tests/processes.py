"""Scripts in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import autokernel


def outputs_under_two_hash_seeds(script: str) -> set[str]:
    """Collect what a script prints in two processes that hash texts differently."""
    return {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=Path(autokernel.__file__).parent.parent,  # where it finds the package under test
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
