"""The clock that a fit with a limited time looks at."""

import math
import platform
import time

from autokernel.exceptions import OutOfTimeError


class Deadline:
    """A moment after which no work is begun.

    It keeps its moment when it travels to another process. On another machine, whose clock tells
    nothing about ours, it allows what was left as it was sent.

    Parameters
    ----------
    seconds : float
        From now on; ``inf`` never ends.
    """

    def __init__(self, seconds: float) -> None:
        self._moment = time.monotonic() + seconds

    @property
    def seconds_left(self) -> float:
        """Seconds from now on, negative once it has passed."""
        return self._moment - time.monotonic()

    @property
    def has_passed(self) -> bool:
        """Whether time is over."""
        return self.seconds_left <= 0

    def cancel(self) -> None:
        """Let time be over now, for all who hold this very object, such as other threads."""
        self._moment = -math.inf

    def earlier(self, seconds: float) -> "Deadline":
        """Return a deadline that ends by so much earlier."""
        return Deadline(self.seconds_left - seconds)

    def check(self) -> None:
        """Raise an ``OutOfTimeError`` once time is over."""
        if self.has_passed:
            raise OutOfTimeError("the time for this evaluation is over")

    def __reduce__(self) -> tuple[object, ...]:
        return _arrive, (self._moment, self.seconds_left, platform.node())


def _arrive(moment: float, seconds_left: float, node: str) -> Deadline:
    """Rebuild a deadline in another process; machines differ in the zero of their clocks."""
    if platform.node() == node:
        seconds_left = moment - time.monotonic()
    return Deadline(seconds_left)


NEVER = Deadline(float("inf"))
