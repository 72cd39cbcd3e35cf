"""What a fit says before it begins."""

import warnings

from autokernel.fit.run import Run

_SHORT = 60.0  # seconds of an exact fit below which nothing need be said
_LONG = 1800.0  # seconds from which the user is warned even without ``verbose``


def announcement(run: Run, *, has_deadline: bool) -> str | None:
    """Say what will be done and how long it may take, None for a short exact fit.

    Warn of a fit that will take long and that no deadline ends.
    """
    seconds, plan = run.expected_seconds(), run.problem.plan
    if seconds > _LONG and not has_deadline:
        warnings.warn(
            f"the search on {plan.n_searched} rows will take about {duration(seconds)} by one "
            "worker: max_time ends it early, and approximation='neighbours' makes it shorter",
            UserWarning,
            stacklevel=5,
        )
    if plan.is_plain and seconds < _SHORT:
        return None
    return f"{plan.text}; the search takes about {duration(seconds)} by one worker"


def duration(seconds: float) -> str:
    """Write a time in the unit in which it is readable."""
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1.0, seconds):.0f} seconds"
