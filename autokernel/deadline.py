"""The deadline of a fit with limited time, and the clock that expects how long steps take."""

import math
import platform
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from autokernel.exceptions import OutOfTimeError


class Deadline:
    """A moment some seconds from now, ``inf`` for never, after which no work is begun.

    A pickled deadline keeps its moment in other processes of this machine. On another machine,
    whose clock has another zero, it allows the seconds that were left when it was pickled.
    ``on_check``, which is not pickled, is called at each check, also of earlier deadlines that are
    made once it is set. Deadlines made from each other share what the largest steps took.
    """

    def __init__(self, seconds: float) -> None:
        self.began = time.monotonic()
        self._moment = self.began + seconds
        self.on_check: Callable[[], object] | None = None
        self._latest: Deadline | None = None  # it passes with this one, which may be cancelled
        self._largest: dict[Hashable, tuple[float, float]] = {}  # work and seconds by kind of step

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, negative once it has passed."""
        return self._end - time.monotonic()

    @property
    def _end(self) -> float:
        return self._moment if self._latest is None else min(self._moment, self._latest._end)

    @property
    def has_passed(self) -> bool:
        """Whether the deadline has passed."""
        return self.seconds_left <= 0

    def cancel(self) -> None:
        """Let the deadline pass now, for all that share this object, such as other threads."""
        self._moment = -math.inf

    def earlier(self, seconds: float) -> "Deadline":
        """Return a deadline that is this many seconds earlier, and cancelled with this one."""
        earlier = Deadline(math.inf)
        earlier._moment = self._end - seconds
        earlier._latest, earlier.on_check = self, self.on_check
        earlier._largest = self._largest
        return earlier

    def share(self, fraction: float) -> "Deadline":
        """Return the deadline after a fraction of the time that is left, itself without a limit."""
        if self.seconds_left == math.inf:
            return self
        return self.earlier((1 - fraction) * max(0.0, self.seconds_left))

    def check(self, seconds: float = 0.0) -> None:
        """Raise an ``OutOfTimeError`` if less than the seconds of the next step are left."""
        if self.on_check is not None:
            self.on_check()
        if self.seconds_left <= seconds:
            raise OutOfTimeError("the time is over")

    def expected_seconds(self, kind: Hashable, work: float) -> float:
        """Expect the time of a step, proportional to its work, from the largest of its kind."""
        known, seconds = self._largest.get(kind, (1.0, 0.0))
        return seconds * work / known

    @contextmanager
    def timed(self, kind: Hashable, work: float) -> Iterator[None]:
        """Time a step, or raise an ``OutOfTimeError`` if it is expected to miss the deadline."""
        self.check(self.expected_seconds(kind, work))
        began = time.perf_counter()
        yield
        seconds = time.perf_counter() - began
        known, longest = self._largest.get(kind, (0.0, 0.0))
        if work >= known:
            self._largest[kind] = work, seconds if work > known else max(longest, seconds)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt_deadline, (self._moment, self.seconds_left, platform.node())


def _rebuilt_deadline(moment: float, seconds_left: float, node: str) -> Deadline:
    """Rebuild a pickled deadline; on another machine only the seconds left are valid."""
    if platform.node() == node:
        seconds_left = moment - time.monotonic()
    return Deadline(seconds_left)


NEVER = Deadline(float("inf"))


def in_time(steps: Iterable[Any]) -> Iterator[Any]:
    """Yield the results of steps, until one of them raises an ``OutOfTimeError``."""
    with suppress(OutOfTimeError):
        yield from steps
