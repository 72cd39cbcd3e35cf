"""Errors that callers of the package may catch, and its warnings."""

import contextlib
import functools
import sys
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

import sklearn
from numpy.linalg import LinAlgError
from sklearn.exceptions import ConvergenceWarning

_FOLDERS = (str(Path(file).parent) for file in (__file__, sklearn.__file__))
_INNER = (*_FOLDERS, contextlib.__file__, functools.__file__)  # none of them is code of the user

_SHOWN = 80  # characters of a text on both sides of an error


class AutoKernelError(Exception):
    """Base class of the errors that this package defines."""


class ExpressionSyntaxError(AutoKernelError, ValueError):
    """A kernel expression cannot be parsed; the message points at the position of the error."""

    def __init__(self, message: str, text: str, position: int) -> None:
        before, after = text[:position], text[position:]
        start = before.rpartition("\n")[2][-_SHOWN:]
        line = start + after.partition("\n")[0][:_SHOWN]
        super().__init__(f"{message}\n    {line}\n    {' ' * len(start)}^")
        self.message, self.text, self.position = message, text, position

    def __reduce__(self) -> tuple[type, tuple[str, str, int]]:
        return type(self), (self.message, self.text, self.position)


class NotAMaximumError(AutoKernelError, ArithmeticError):
    """A point is not a maximum of the posterior, so that a MAP estimate cannot be scored."""


class OutOfTimeError(AutoKernelError, TimeoutError):
    """An evaluation was stopped because the time for the whole fit is over."""


class EvaluationError(AutoKernelError, RuntimeError):
    """No kernel could be fitted, or one could not be sampled; the message says why."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that has called this package, however deep inside it the reason lies.

    Frames of scikit-learn, whose decorators and pipelines lie between, are skipped too.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INNER):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


class CustomPartError(EvaluationError):
    """A custom kernel, operator or criterion has failed; the message begins with its name."""


_NUMERICAL = (LinAlgError, FloatingPointError, ZeroDivisionError, OverflowError, NotAMaximumError)
KERNEL_ERRORS = (EvaluationError, *_NUMERICAL)
"""What may be raised for one kernel, which then has failed with a reason; all else is a bug.

A ``MemoryError`` is caught too where less memory suffices for what is done instead.
"""
_named: ContextVar[frozenset[str]] = ContextVar("custom parts of which this fit has warned")


@contextlib.contextmanager
def kernel_errors(what: str, *others: type[Exception]) -> Iterator[None]:
    """Turn errors of a kernel, and others, into an ``EvaluationError``: ``what``, and why."""
    try:
        yield
    except KERNEL_ERRORS + others as error:
        raise EvaluationError(f"{what} ({reason_of(error)})") from error


@contextlib.contextmanager
def fallback(what: str, *others: type[Exception]) -> Iterator[None]:
    """Warn of errors of a kernel, and of others: ``what`` is done instead, and why."""
    try:
        yield
    except KERNEL_ERRORS + others as error:
        warn_user(f"{what} ({reason_of(error)})", ConvergenceWarning)


def is_custom(part: object) -> bool:
    """Return whether code of the user defines a part: its class or, if it has one, a function."""
    return not type(part).__module__.startswith("autokernel.") or hasattr(part, "function")


@contextlib.contextmanager
def custom_part(part: object, name: str) -> Iterator[None]:
    """Turn whatever a custom part raises, except for our errors, into one that names it."""
    try:
        yield
    except Exception as error:  # it may raise anything
        if isinstance(error, AutoKernelError) or not is_custom(part):
            raise
        raise CustomPartError(f"custom part {name} failed: {reason_of(error)}") from error


def warn_of_part(failure: Exception | str) -> str:
    """Return the reason for a failure; if it is a custom part, warn, once for each in a fit."""
    reason = failure if isinstance(failure, str) else reason_of(failure)
    part, named = reason.partition(" failed: ")[0], _named.get(frozenset())
    if part.startswith("custom part ") and part not in named:
        _named.set(named | {part})
        warn_user(f"{reason}; kernels with it have no score or estimate where it fails")
    return reason


def forget_parts() -> None:
    """Forget of which custom parts the user was warned, as another fit begins."""
    _named.set(frozenset())


def reason_of(error: Exception) -> str:
    """State in one line why an evaluation failed."""
    kind = "" if isinstance(error, AutoKernelError) else f"{type(error).__name__}: "
    return " ".join(f"{kind}{error}".split())
