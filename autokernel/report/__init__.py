"""Tables and texts about a search and a fitted kernel, for a person to read."""

from autokernel.report.beliefs import Inclusion, Intervals, Posterior
from autokernel.report.leaderboard import MARK, Leaderboard, SizeFront
from autokernel.report.progress import Improvements, print_now, reporter
from autokernel.report.summary import fill, summary
from autokernel.report.trials import Trials
from autokernel.report.words import caption, describe, describe_model

__all__ = [
    "MARK",
    "Improvements",
    "Inclusion",
    "Intervals",
    "Leaderboard",
    "Posterior",
    "SizeFront",
    "Trials",
    "caption",
    "describe",
    "describe_model",
    "fill",
    "print_now",
    "reporter",
    "summary",
]
