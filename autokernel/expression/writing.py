"""The text form of expressions: brackets, columns and signs of operators."""

import re
from collections.abc import Sequence

from autokernel.operators import Operator

_PLAIN_NAME = re.compile(r"[^\s\[\]\"\\](?:[^\[\]\"\\\n\r\t]*[^\s\[\]\"\\])?")
_INTEGER = re.compile(r"[+-]?\d+")


def joined(operator: Operator, texts: Sequence[str], where: str = "") -> str:
    """Join the texts of operands; ``where`` is the column of an operator that is a word."""
    if not operator.is_word:
        return f" {operator.symbol} ".join(texts)
    return f"{operator.symbol}{where}({', '.join(texts)})"


def bracketed(
    operator: Operator, texts: Sequence[str], inner: Sequence[Operator | None]
) -> list[str]:
    """Put operands in brackets if their operators do not bind tightly enough.

    Signs group to the left, so later operands must bind more tightly than the first one. ``inner``
    holds the operators of the operands, None for a base kernel.
    """
    return [
        f"({text})" if _needs_brackets(own, operator, is_first=number == 0) else text
        for number, (text, own) in enumerate(zip(texts, inner, strict=True))
    ]


def _needs_brackets(inner: Operator | None, outer: Operator, *, is_first: bool) -> bool:
    """Return whether an operand with the operator ``inner`` needs brackets in ``outer``."""
    if inner is None or inner.is_word or outer.is_word:
        return False
    if inner.precedence == outer.precedence:
        return not is_first or inner != outer
    return inner.precedence < outer.precedence


def column_text(column: int, feature_names: Sequence[str] | None, what: str) -> str:
    """Write a column in square brackets, by its name if no other column has that name.

    Raises
    ------
    ValueError
        If there is no name for the column of ``what``.
    """
    if feature_names is None:
        return f"[{column}]"
    if column >= len(feature_names):
        raise ValueError(
            f"feature_names must name column {column} of {what}, got {len(feature_names)} names"
        )
    names = [str(name) for name in feature_names]
    name = names[column]
    return f"[{_quote(name) if names.count(name) == 1 else column}]"


def _quote(name: str) -> str:
    """Write a feature name so that it can be parsed, in quotes unless it is plain."""
    if _PLAIN_NAME.fullmatch(name) and not _INTEGER.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
