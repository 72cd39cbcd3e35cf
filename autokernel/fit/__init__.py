"""One fit: its arguments, rows, search and model."""

from autokernel.fit.arguments import Arguments
from autokernel.fit.finish import finished, model_of, refitted
from autokernel.fit.progress import Monitor
from autokernel.fit.rows import RowJudge, text_of_outliers
from autokernel.fit.run import EARLY, MAX_CHANGES_OF_ROWS, Run

__all__ = [
    "EARLY",
    "MAX_CHANGES_OF_ROWS",
    "Arguments",
    "Monitor",
    "RowJudge",
    "Run",
    "finished",
    "model_of",
    "refitted",
    "text_of_outliers",
]
