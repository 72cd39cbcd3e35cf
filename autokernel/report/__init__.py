"""What a search and a fitted kernel say to a person."""

from autokernel.report.leaderboard import Leaderboard
from autokernel.report.progress import reporter
from autokernel.report.words import describe

__all__ = ["Leaderboard", "describe", "reporter"]
