"""Progress lines of a search."""

import textwrap
from collections.abc import Callable, Sequence

from autokernel.search import History

_INDENT, _WIDTH = 28, 72  # characters before and in the kernel of a progress line


def print_now(line: str) -> None:
    """Print a line and flush, so that it appears at once even in a pipe."""
    print(line, flush=True)


def reporter(
    verbose: int,
    feature_names: Sequence[str] | None,
    *,
    write: Callable[[str], object] = print_now,
) -> Callable[[History], None] | None:
    """Build a function that writes a line per improvement (1) or per kernel (2), or None (0)."""
    if verbose < 1:
        return None

    def observe(history: History) -> None:
        latest = history.trials[-1].evaluation
        improved = history.best is latest and latest.status == "ok"
        if not improved and verbose < 2:
            return
        elapsed, mark = history.trials[-1].elapsed, "*" if improved else " "
        numbers = f"{len(history):4d}  {elapsed:6.1f} s  {latest.score:10.2f} {mark} "
        reason = "" if latest.status == "ok" else f"  ({latest.status})"
        lines = textwrap.wrap(latest.expression.to_text(feature_names), _WIDTH)
        write(numbers + ("\n" + " " * _INDENT).join(lines) + reason)

    return observe
