"""The number of threads that BLAS uses."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

from threadpoolctl import OpenBLASController, ThreadpoolController

_lock = Lock()
_users = 0
_limits: list[Any] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread until the last concurrent user has left the context.

    Small matrices gain nothing from threads, sums over threads depend on their number, and workers
    with threads of their own would outnumber the cores. The limit belongs to the process: if one
    thread restored it on leaving, the sums of another thread still inside would change.
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
                _take_control()  # leave no thread in control


def _take_control() -> None:
    """Allow any thread to set the limit next.

    In recent versions of threadpoolctl, the first thread that sets a limit of OpenBLAS controls it.
    Limits set by other threads are ignored while that thread lives, unless it gives up control.
    """
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    """Find the BLAS libraries once, as this takes longer than a small likelihood."""
    return ThreadpoolController()
