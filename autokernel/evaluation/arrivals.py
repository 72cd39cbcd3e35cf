"""Objects that travel to other processes, which keep them between jobs."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any


class Arrivals:
    """The objects that one process has unpickled, with the caches that they filled there.

    Parameters
    ----------
    most : int
        Number of objects to keep. The latest ones stay.
    """

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._objects: dict[str, Any] = {}  # by name

    def get(self, name: str) -> Any | None:
        """Return the object of this name, or None."""
        return self._objects.get(name)

    def keep(self, name: str, arrived: Any) -> None:
        """Keep an object, and drop the oldest where there are too many."""
        for oldest in list(self._objects)[: 1 - self._most]:
            self._objects.pop(oldest, None)  # another thread may have dropped it
        self._objects[name] = arrived


OF_THIS_PROCESS = Arrivals(most=2)
"""The evaluators of this process: a joblib worker has no other place to keep them between jobs."""


def arrive(name: str, make: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """Rebuild a pickled object, or return the one that was rebuilt before."""
    arrived = OF_THIS_PROCESS.get(name)
    if arrived is None:
        arrived = make(**settings)
        OF_THIS_PROCESS.keep(name, arrived)
    return arrived


def digest(*parts: object) -> str:
    """Compute the SHA-256 digest of bytes, texts, numbers and tuples of them."""
    sha = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        sha.update(len(data).to_bytes(8))
        sha.update(data)
    return sha.hexdigest()
