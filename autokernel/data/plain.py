"""Plain data, which JSON can hold: how objects are written, and read as their annotations say."""

import json
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator

from autokernel.data.checks import MAX_MAGNITUDE
from autokernel.expression import Expression, custom_parts, parse_expression, parse_with_parts
from autokernel.typing import FloatArray, IntArray

_MAX, _MIN = 1e150, 1e-150  # whose squares are finite
_NAMES: dict[tuple[float, float], str] = {
    (-MAX_MAGNITUDE, MAX_MAGNITUDE): "X y weightless",
    (-_MAX, _MAX): "low origin shift places knots centre coefficients covariance",
    (_MIN, _MAX): "extent unit width weight weights deviation",
    (0.0, _MAX**2): "offset errors noise_std rounding scaled_noise_variance resolution",
    (-700.0, 700.0): "theta draws log_slopes",
    (0.0, 1.0): "probability shares wild",
}
_RANGES = {name: ends for ends, names in _NAMES.items() for name in names.split()}
"""The ranges of numbers by the names of their fields; others may be infinite or nan."""
_FINITE = 2.0**53  # up to which numbers count whole ones


def as_plain(value: Any) -> Any:
    """Write an object as JSON holds it; numbers that are not finite become texts.

    A ``TypeError`` says that it is none of data classes, mappings, sequences, sets, arrays,
    expressions and scalars.
    """
    value = value.tolist() if hasattr(value, "tolist") else value
    if is_dataclass(value) and not isinstance(value, (type, Expression, BaseEstimator)):
        value = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    if isinstance(value, Mapping):
        return {str(name): as_plain(one) for name, one in value.items()}
    if isinstance(value, (set, frozenset)):
        value = sorted(value)
    if isinstance(value, (list, tuple)):
        return [as_plain(one) for one in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, (str, Expression)):
        return str(value)  # not that of an enumeration
    if value is None or isinstance(value, (bool, int)):
        return value
    raise TypeError(f"{value!r} is no plain data")


Parse = Callable[[str], Expression]


def read(kind: Any, given: Any, key: str, *, parse: Parse = parse_expression) -> Any:
    """Read what :func:`as_plain` has written, and check all types and numbers.

    A kind is a scalar, an array of :mod:`autokernel.typing`, an :class:`Expression`, ``Any`` for
    any scalar, a data class, named tuple, mapping or tuple of them, or a dict of the kinds of its
    values. ``kind | None``, or ``(kind, None)``, may be missing. A ``ValueError`` says the key,
    what is expected, and what is got.
    """
    origin, args = get_origin(kind), get_args(kind)
    if NoneType in args or isinstance(kind, tuple):
        first, *_ = args or kind
        return None if given is None else read(first, given, key, parse=parse)
    if kind in (FloatArray, IntArray):
        return _array(given, key, is_whole=kind == IntArray)
    if kind is Expression:
        try:
            return parse(_scalar(str, given, key))
        except ValueError as error:
            raise ValueError(f"{key} must be a kernel: {error}") from error
    if origin is tuple:
        items = _of_type(list, given, key, "a list")
        return tuple(read(args[0], one, f"{key}[{n}]", parse=parse) for n, one in enumerate(items))
    if origin is Mapping:
        items = _of_type(Mapping, given, key, "an object")
        return {name: read(args[1], items[name], f"{key}.{name}", parse=parse) for name in items}
    if is_dataclass(kind) or hasattr(kind, "_fields") or isinstance(kind, dict):
        return _record(kind, given, key, parse)
    return _scalar(kind, given, key)


def as_text(value: Any, expressions: Iterable[Expression] = ()) -> dict[str, Any]:
    """Write an object and its expressions: files such as skops need much room for each object."""
    return {"text": json.dumps(as_plain(value)), "custom": custom_parts(expressions)}


def read_text(kind: Any, written: Mapping[str, Any]) -> Any:
    """Read what :func:`as_text` has written."""
    parse = partial(parse_with_parts, parts=written["custom"])
    return read(kind, json.loads(written["text"]), "state", parse=parse)


def refusal(key: str, expected: str, got: object) -> ValueError:
    """Return the error of a value that is not what a key must have."""
    is_short = isinstance(got, (str, int, float, tuple, NoneType))
    is_short &= not isinstance(got, int) or abs(got) < _FINITE
    shown = reprlib.repr(got) if is_short else type(got).__name__
    return ValueError(f"{key} must be {expected}, got {shown}")


def _of_type(kind: Any, given: Any, key: str, expected: str) -> Any:
    if not isinstance(given, kind):
        raise refusal(key, expected, given)
    return given


def _record(kind: Any, given: Any, key: str, parse: Parse) -> Any:
    """Read an object that has just the fields of a class; named tuples are lists."""
    hints = kind if isinstance(kind, dict) else get_type_hints(kind)
    if hasattr(kind, "_fields"):
        if len(items := _of_type(list, given, key, "a list")) != len(hints):
            raise refusal(key, f"a list of {', '.join(hints)}", given)
        given = dict(zip(hints, items, strict=True))
    elif is_dataclass(kind):
        hints = {field.name: hints[field.name] for field in fields(kind)}
    for name in [*hints, *_of_type(Mapping, given, key, "an object")]:
        if name not in given or name not in hints:
            fault = "has no" if name in hints else "has an unknown"
            raise ValueError(f"{key} must have the keys {', '.join(hints)}, but {fault} {name!r}")
    values = {n: read(hint, given[n], f"{key}.{n}", parse=parse) for n, hint in hints.items()}
    return values if isinstance(kind, dict) else getattr(kind, "of_fields", kind)(**values)


def _scalar(kind: Any, given: Any, key: str) -> Any:
    if kind is float:
        if isinstance(given, str) and given in ("nan", "inf", "-inf"):
            given = float(given)
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            raise refusal(key, "a number", given)
        return float(_array(given, key))
    if kind is int:
        is_whole = isinstance(given, int) and not isinstance(given, bool)
        if not is_whole or abs(given) > _FINITE:
            raise refusal(key, "a whole number", given)
        return given
    if kind is Any:
        return _of_type((str, int, float, NoneType), given, key, "a text, a number or null")
    return _of_type(kind, given, key, "true or false" if kind is bool else "a text")


def _array(given: Any, key: str, *, is_whole: bool = False) -> Any:
    """Read numbers in lists of one length, in the range of the field."""
    try:
        values = np.array(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise refusal(key, "numbers in lists of one length", given) from None
    name = key.rpartition(".")[2].partition("[")[0]
    low, high = (0.0, _FINITE) if is_whole else _RANGES.get(name, (-np.inf, np.inf))
    is_valid = (values >= low) & (values <= high)
    if is_whole:
        is_valid &= values == np.round(values)
    elif name in ("X", "weightless") or name not in _RANGES:  # which may have gaps
        is_valid |= np.isnan(values)
    if not np.all(is_valid):
        what = "whole numbers" if is_whole else "numbers"
        raise refusal(key, f"{what} from {low:g} to {high:g}", float(values[~is_valid][0]))
    return values.astype(np.intp) if is_whole else values
