"""Errors that callers of the package may catch, and its warnings."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sklearn

_INNER_FOLDERS = tuple(str(Path(file).parent) for file in (__file__, sklearn.__file__))

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
        self.message = message
        self.text = text
        self.position = position

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
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INNER_FOLDERS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def kernel_errors() -> Iterator[None]:
    """Turn whatever one kernel raises into an ``EvaluationError`` with the reason in one line.

    An ``OutOfTimeError`` is left as it is: it concerns the whole fit.
    """
    try:
        yield
    except OutOfTimeError:
        raise
    except Exception as error:  # a custom base kernel may raise anything
        raise EvaluationError(reason_of(error)) from error


def reason_of(error: Exception) -> str:
    """State in one line why an evaluation failed."""
    return " ".join(f"{type(error).__name__}: {error}".split())
