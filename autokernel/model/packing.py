"""Records of kernels as one text: files such as skops need much room for each object."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from autokernel.data.plain import as_plain, read
from autokernel.expression import Expression, custom_parts, parse_with_parts

Record = TypeVar("Record")


def pack(records: Sequence[Any], expressions: Iterable[Expression]) -> dict[str, Any]:
    """Write data classes that hold these expressions."""
    return {"text": json.dumps(as_plain(records)), "custom": custom_parts(expressions)}


def unpack(kind: type[Record], packed: Mapping[str, Any]) -> tuple[Record, ...]:
    """Read the records that :func:`pack` has written."""
    parse = partial(parse_with_parts, parts=packed["custom"])
    return read(tuple[kind, ...], json.loads(packed["text"]), "records", parse=parse)  # type: ignore[valid-type]
