"""The best kernels of a search as tables: by score, and by size."""

import textwrap
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from autokernel.report.table import Table
from autokernel.typing import BoolArray

_COLUMNS = ("score", "score_per_sample", "n_leaves", "n_params", "phase", "status")
_WIDTH = 100  # characters per line
MARK = "*"
_WORTH = 2.0  # nats, less than which no larger kernel is suggested


class Leaderboard(Table):
    """A table of kernels, the best first, that prints as text.

    It is a dict of arrays with one entry per kernel, and ``pandas.DataFrame`` accepts it. The keys
    are ``rank``, ``chosen``, ``kernel``, ``score``, ``score_per_sample``, ``n_leaves``,
    ``n_params``, ``phase`` and ``status``.
    """

    formats: ClassVar[Mapping[str, str]] = {"score": ".2f"}

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
        lines = [f"{head}   ({MARK} chosen; score in nats)"]
        rows = (self[name] for name in ("rank", "chosen", "score", "n_leaves", "kernel", "status"))
        for rank, chosen, score, n_leaves, kernel, status in zip(*rows, strict=True):
            start = f"{rank:4d} {MARK if chosen else ' '} {score:9.2f}  {n_leaves:6d}  "
            text = kernel if status == "ok" else f"{kernel}  ({status})"
            lines.append(
                textwrap.fill(
                    text,
                    _WIDTH,
                    initial_indent=start,
                    subsequent_indent=" " * len(start),
                )
            )
        if self.note:
            lines.append(textwrap.fill(self.note, _WIDTH))
        return "\n".join(lines)


class SizeFront(Table):
    """The best kernel of each size, the smallest first.

    It is a dict of arrays with one entry per size. The keys are ``n_leaves``, ``score``, ``gain``
    (nats above the best smaller kernel), ``chosen``, ``suggested`` (the smallest kernel within two
    nats of the best score) and ``kernel``.
    """

    title: ClassVar[str] = "best kernel of each size; score in nats, gain over the best smaller one"
    formats: ClassVar[Mapping[str, str]] = {"score": ".2f", "gain": ".2f"}

    @classmethod
    def of(
        cls, history: Mapping[str, npt.NDArray[Any]], *, k: int, is_chosen: BoolArray
    ) -> "SizeFront":
        """Take the best row of each size from a history, up to the k smallest sizes."""
        order = np.argsort(-history["score"], kind="stable")
        order = order[np.isfinite(history["score"][order])]
        sizes, first = np.unique(history["n_leaves"][order], return_index=True)
        rows = order[first][:k]
        scores = history["score"][rows]
        best_so_far = np.maximum.accumulate(scores)
        before = np.concatenate([[np.nan], best_so_far])[: len(scores)]
        near = np.flatnonzero(scores >= history["score"].max(initial=-np.inf) - _WORTH)
        return cls(
            n_leaves=sizes[:k],
            score=scores,
            gain=scores - before,
            chosen=is_chosen[rows],
            suggested=np.arange(len(rows)) == (near[0] if len(near) else -1),
            kernel=history["kernel"][rows],
        )
