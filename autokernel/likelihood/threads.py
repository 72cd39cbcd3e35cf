"""How many threads BLAS takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

from threadpoolctl import (  # a requirement of scikit-learn
    OpenBLASController,
    ThreadpoolController,
)

_lock = Lock()
_users = 0
_limits: list[Any] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS on one thread until the last of those who asked for it has left.

    Small matrices gain nothing from threads, sums over threads depend on their number, and workers
    with threads of their own would outnumber the cores. The number belongs to the process: what one
    thread restores on leaving would change the sums of another that is still inside.
    """
    global _users
    with _lock:
        if _users == 0:
            _take_control()
            _limits.append(_blas().limit(limits=1, user_api="blas"))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _take_control()
                _limits.pop().restore_original_limits()
                _take_control()  # and leave none


def _take_control() -> None:
    """Let whichever thread comes next set the number.

    Recent versions of threadpoolctl ignore what other threads than the first one ask of OpenBLAS
    for as long as that one lives, unless it gives up control.
    """
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    """Find the BLAS libraries in use, once: that takes longer than a small likelihood."""
    return ThreadpoolController()
