"""The text notation of expressions: Python's precedence, leaves as ``NAME[column]``."""

import re
from collections.abc import Callable, Sequence

from autokernel.exceptions import ExpressionSyntaxError
from autokernel.expression.tree import ADD, MULTIPLY, Expression, Leaf, Operation
from autokernel.kernels import BASE_KERNELS

_LEAF = re.compile(
    r"""(?P<kernel>[A-Za-z_]\w*)\s*\[\s*
        (?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\[\]"]*?))
        \s*\]""",
    re.VERBOSE | re.DOTALL,
)
_SPACE = re.compile(r"\s*")


def parse_expression(text: str, feature_names: Sequence[str] | None = None) -> Expression:
    """Read a kernel expression.

    Parameters
    ----------
    text : str
        Base kernels ``NAME[column]`` joined by ``+`` and ``*`` with brackets, in Python's
        precedence, such as ``"SE[0] * (PER[1] + LIN[0])"``. A column is a zero-based index or,
        where ``feature_names`` are given, a feature name; a name that looks like an index or holds
        brackets, quotes or outer blanks is written in double quotes. A column whose name is not
        its own alone is given by its index.
    feature_names : sequence of str, optional
        Names of the columns.

    Returns
    -------
    Expression
        The tree; ``str()`` and :meth:`Expression.to_text` are the inverse.

    Raises
    ------
    ExpressionSyntaxError
        A ``ValueError`` whose message points at the place.

    Examples
    --------
    >>> parse_expression("LIN[time] * PER[time] + SE[time]", feature_names=["time"])
    <Expression LIN[0] * PER[0] + SE[0]>
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str such as 'SE[0] + LIN[0]', got {type(text).__name__}")
    parser = _Parser(text, feature_names)
    try:
        return parser.parse()
    except RecursionError:
        raise ExpressionSyntaxError("nested too deeply", text, parser.position) from None


class _Parser:
    """Recursive descent over the text; ``position`` is the place of the next character."""

    def __init__(self, text: str, feature_names: Sequence[str] | None) -> None:
        self.text = text
        self.feature_names = None if feature_names is None else [str(n) for n in feature_names]
        self.position = 0

    def parse(self) -> Expression:
        """Read the whole text."""
        expression = self._sum()
        if self.position < len(self.text):
            raise self._error(f"expected '+', '*' or the end, got {self.text[self.position]!r}")
        return expression

    def _sum(self) -> Expression:
        """Read products joined by ``+``."""
        return self._chain(ADD, self._product)

    def _product(self) -> Expression:
        """Read atoms joined by ``*``."""
        return self._chain(MULTIPLY, self._atom)

    def _chain(self, operator: str, operand: Callable[[], Expression]) -> Expression:
        """Read operands joined by one operator, grouped to the left."""
        expression = operand()
        while self._accept(operator):
            expression = Operation(operator, expression, operand())
        return expression

    def _atom(self) -> Expression:
        """Read a leaf or a bracket."""
        if self._accept("("):
            expression = self._sum()
            if not self._accept(")"):
                raise self._error("expected ')'")
            return expression
        match = _LEAF.match(self.text, self.position)
        if match is None:
            raise self._error("expected a base kernel such as SE[0], or '('")
        leaf = self._leaf(match)
        self.position = match.end()
        self._skip_space()
        return leaf

    def _leaf(self, match: re.Match[str]) -> Leaf:
        """Check the name and the column of a leaf."""
        kernel = match["kernel"]
        if kernel not in BASE_KERNELS:
            known = ", ".join(BASE_KERNELS)
            raise self._error(f"unknown base kernel {kernel!r}, the known ones are {known}")
        return Leaf(kernel, self._column(match))

    def _column(self, match: re.Match[str]) -> int:
        """Turn the text of a column into its index."""
        plain = match["plain"]
        place = match.start("plain") if plain is not None else match.start("quoted")
        if plain is not None and re.fullmatch(r"\d{1,9}", plain, re.ASCII):
            column = int(plain)
            if self.feature_names is not None and column >= len(self.feature_names):
                raise self._error(
                    f"column must be below the number of columns {len(self.feature_names)}, "
                    f"got {column}",
                    place,
                )
            return column
        name = plain if plain is not None else re.sub(r"\\(.)", r"\1", match["quoted"], flags=re.S)
        if self.feature_names is None:
            raise self._error(
                f"column must be a zero-based index where no feature_names are given, got {name!r}",
                place,
            )
        if name not in self.feature_names:
            known = ", ".join(map(repr, self.feature_names))
            raise self._error(f"unknown column {name!r}, the known ones are {known}", place)
        if self.feature_names.count(name) > 1:
            raise self._error(f"several columns are named {name!r}, give the index", place)
        return self.feature_names.index(name)

    def _accept(self, symbol: str) -> bool:
        """Read ``symbol`` and the space around it, if it is next."""
        self._skip_space()
        if not self.text.startswith(symbol, self.position):
            return False
        self.position += len(symbol)
        self._skip_space()
        return True

    def _skip_space(self) -> None:
        """Move to the next character that is not a space."""
        match = _SPACE.match(self.text, self.position)
        assert match is not None  # the pattern matches the empty text
        self.position = match.end()

    def _error(self, message: str, position: int | None = None) -> ExpressionSyntaxError:
        """Build an error that points at the place."""
        return ExpressionSyntaxError(
            message, self.text, self.position if position is None else position
        )
