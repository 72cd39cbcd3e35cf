"""Lines that tell how a search goes."""

from collections.abc import Callable, Sequence

from autokernel.search.history import History


def _print_now(line: str) -> None:
    """Print a line that is seen at once, through a pipe too."""
    print(line, flush=True)


def reporter(
    verbose: int,
    feature_names: Sequence[str] | None,
    *,
    write: Callable[[str], object] = _print_now,
) -> Callable[[History], None] | None:
    """Build what writes a line per improvement (1) or per kernel (2), or None."""
    if verbose < 1:
        return None

    def observe(history: History) -> None:
        latest = history.trials[-1].evaluation
        improved = history.best is latest and latest.status == "ok"
        if not improved and verbose < 2:
            return
        write(
            f"{len(history):4d}  {history.trials[-1].elapsed:6.1f} s  "
            f"{latest.score:10.2f} {'*' if improved else ' '} "
            f"{latest.expression.to_text(feature_names)}"
            + ("" if latest.status == "ok" else f"  ({latest.status})")
        )

    return observe
