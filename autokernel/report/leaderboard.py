"""The best kernels of a search as a table."""

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from autokernel.typing import BoolArray

_COLUMNS = ("score", "score_per_sample", "n_leaves", "n_params", "phase", "status")
_WIDTH = 100  # characters per line
_MARK = "*"


class Leaderboard(dict[str, npt.NDArray[Any]]):
    """A table of kernels, the best first, that prints as text.

    It is a dict of arrays with one entry per kernel, and ``pandas.DataFrame`` accepts it. The keys
    are ``rank``, ``chosen``, ``kernel``, ``score``, ``score_per_sample``, ``n_leaves``,
    ``n_params``, ``phase`` and ``status``.
    """

    @classmethod
    def of(
        cls, history: Mapping[str, npt.NDArray[Any]], *, k: int, is_chosen: BoolArray
    ) -> "Leaderboard":
        """Take the k best rows of a history, and mark the chosen ones."""
        order = np.argsort(-history["score"], kind="stable")[:k]
        return cls(
            rank=np.arange(1, len(order) + 1),
            chosen=is_chosen[order],
            kernel=history["kernel"][order],
            **{name: history[name][order] for name in _COLUMNS},
        )

    def __repr__(self) -> str:
        if not len(self["kernel"]):
            return "no kernel has been evaluated"
        head = f"{'rank':>4}   {'score':>9}  {'leaves':>6}  kernel"
        lines = [f"{head}   ({_MARK} chosen; score in nats)"]
        rows = (self[name] for name in ("rank", "chosen", "score", "n_leaves", "kernel", "status"))
        for rank, chosen, score, n_leaves, kernel, status in zip(*rows, strict=True):
            start = f"{rank:4d} {_MARK if chosen else ' '} {score:9.2f}  {n_leaves:6d}  "
            text = kernel if status == "ok" else f"{kernel}  ({status})"
            lines.append(
                textwrap.fill(
                    text,
                    _WIDTH,
                    initial_indent=start,
                    subsequent_indent=" " * len(start),
                )
            )
        return "\n".join(lines)
