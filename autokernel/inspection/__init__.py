"""What a fitted kernel says, and how it compares with others."""

from autokernel.inspection.description import describe
from autokernel.inspection.leaderboard import Leaderboard

__all__ = ["Leaderboard", "describe"]
