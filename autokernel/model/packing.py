"""Records of kernels as columns: formats of files such as skops need much room for each object."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

import numpy as np

from autokernel.expression import Expression, custom_parts, parse_with_parts

PLAIN = "plain"  # the columns of numbers and texts, as JSON

Record = TypeVar("Record")


def as_columns(records: Sequence[Any]) -> dict[str, Any]:
    """Write one or more data classes of one kind as a column for each field."""
    names = [field.name for field in fields(records[0])]
    columns = {name: [getattr(one, name) for one in records] for name in names}
    plain = {n: c for n, c in columns.items() if isinstance(c[0], (str, float, int, np.generic))}
    others = {name: _packed(column) for name, column in columns.items() if name not in plain}
    return {PLAIN: json.dumps(plain, default=np.generic.item), **others}


def from_columns(kind: type[Record], packed: Mapping[str, Any]) -> list[Record]:
    """Read the records that :func:`as_columns` has written."""
    hints = get_type_hints(kind)
    columns = json.loads(packed[PLAIN])
    columns |= {n: _unpacked(hints[n], column) for n, column in packed.items() if n != PLAIN}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [kind(**row) for row in rows]


def _packed(values: Sequence[Any]) -> dict[str, Any]:
    if isinstance(values[0], np.ndarray):
        joined = np.concatenate([np.ravel(one) for one in values])
        return {"joined": joined, "shapes": json.dumps([one.shape for one in values])}
    if not isinstance(values[0], Expression):
        return as_columns(values)
    return {"texts": json.dumps([str(one) for one in values]), "custom": custom_parts(values)}


def _unpacked(kind: Any, packed: Mapping[str, Any]) -> Sequence[Any]:
    if PLAIN in packed:
        return from_columns(kind, packed)
    if kind is Expression:
        return [parse_with_parts(text, packed["custom"]) for text in json.loads(packed["texts"])]
    shapes = json.loads(packed["shapes"])
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    parts = np.split(np.asarray(packed["joined"], dtype=float), ends)
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
