"""The text notation of expressions, with Python's precedence and leaves ``NAME[column]``."""

import re
from collections.abc import Iterable, Sequence
from math import inf

from autokernel.exceptions import ExpressionSyntaxError
from autokernel.expression.tree import (
    COLUMN_SCALES,
    COUNT_SCALES,
    IDENTITY,
    NOISE,
    STANDS_ALONE,
    TARGET_SCALES,
    Expression,
    Leaf,
    Operation,
    Tree,
)
from autokernel.kernels import (
    KERNEL_ALIASES,
    BaseKernel,
    Operator,
    Seasonal,
    is_built_in,
    require_base_kernels,
    with_custom_kernels,
    with_custom_operators,
)
from autokernel.validation import did_you_mean

MAX_LEAVES = 1000  # of a text: the memory of a sum grows with the square of their number

_WORD = re.compile(r"[A-Za-z_]\w*")
_COLUMN = re.compile(  # no blank can match twice, so that long texts take linear time
    r"""\s*+\[\s*+
        (?P<view>
            (?:(?P<scale>[A-Za-z]\w*+)\(\s*+)?
            (?:"(?P<quoted>(?:[^"\\]|\\.)*+)"\s*+(?:\+[^\[\]")]*+)?|(?P<plain>[^\[\]"]*))
            (?(scale)\)\s*+)
        )
        \]""",
    re.VERBOSE | re.DOTALL,
)
_OFFSET = re.compile(r"(?P<plain>.*\S)\s*\+\s*\d[\d.e+-]*", re.DOTALL)
_TARGET = re.compile(r"\s*(?P<name>[A-Za-z]\w*)\(y\)\s*~\s*")


def parse_expression(
    text: str,
    feature_names: Sequence[str] | None = None,
    *,
    base_kernels: Iterable[str | BaseKernel] = (),
    operators: Iterable[str | Operator] = (),
) -> Expression:
    """Read a kernel expression.

    Parameters
    ----------
    text : str
        Base kernels ``NAME[column]`` joined by ``+`` and ``*`` with brackets, in Python's
        precedence, such as ``"SE[0] * (PER[1] + LIN[0])"``. A column is a zero-based index or,
        where ``feature_names`` are given, a feature name. A name that looks like an index or
        contains brackets, quotes or outer blanks is written in double quotes. A column that shares
        its name with another column is given by its index. ``SE[log(0)]`` acts on the logarithm of
        a column; a number that is added to it, as in ``SE[log(0 + 0.5)]``, is not read, as it
        follows from the data. A text that begins with ``log(y) ~`` is a kernel of the logarithm of
        the target; the scales are ``log``, ``sqrt`` and, of the target, ``logit``. The text
        ``"NOISE"`` is the null model.
    feature_names : sequence of str, optional
        Names of the columns.
    base_kernels : iterable of BaseKernel, optional
        Custom base kernels that the text may contain, besides the built-in ones. Names of built-in
        ones are ignored, so that the argument of the estimator can be passed on.
    operators : iterable of Operator, optional
        Custom operators, in the same way.

    Returns
    -------
    Expression
        The tree; ``str()`` and :meth:`Expression.to_text` are the inverse.

    Raises
    ------
    ExpressionSyntaxError
        A ``ValueError`` whose message shows the position in the text.

    Examples
    --------
    >>> parse_expression("LIN[time] * PER[time] + SE[time]", feature_names=["time"])
    <Expression LIN[0] * PER[0] + SE[0]>
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str such as 'SE[0] + LIN[0]', got {type(text).__name__}")
    for argument, given in (("base_kernels", base_kernels), ("operators", operators)):
        if not isinstance(given, Iterable) or isinstance(given, str):
            raise TypeError(f"{argument} must be a sequence of objects, got {given!r}")
    own = [kernel for kernel in base_kernels if not isinstance(kernel, str)]
    ours = [operator for operator in operators if not isinstance(operator, str)]
    return _Parser(text, feature_names, own, ours, MAX_LEAVES).parse()


def custom_parts(expressions: Iterable[Expression]) -> list[BaseKernel | Operator]:
    """List the base kernels and operators for which texts do not stand."""
    trees = (tree for one in expressions for tree in one.subtrees() if tree.n_leaves)  # not NOISE
    return list(dict.fromkeys(one for tree in trees if not is_built_in(one := tree.declared)))


def parse_with_parts(text: str, parts: Iterable[BaseKernel | Operator]) -> Expression:
    """Read a text of any length that a search has written, with these parts and built-in ones."""
    custom = [one for one in dict.fromkeys(parts) if not is_built_in(one)]
    kernels = [one for one in custom if isinstance(one, BaseKernel)]
    operators = [one for one in custom if isinstance(one, Operator)]
    return _Parser(text, None, kernels, operators, inf).parse()


class _Parser:
    """A parser by precedence climbing; ``position`` is the index of the next character."""

    def __init__(
        self,
        text: str,
        feature_names: Sequence[str] | None,
        base_kernels: Sequence[BaseKernel],
        operators: Sequence[Operator],
        max_leaves: float,
    ) -> None:
        self.text, self.max_leaves = text, max_leaves
        self.feature_names = None if feature_names is None else [str(n) for n in feature_names]
        self.base_kernels = with_custom_kernels(require_base_kernels("base_kernels", base_kernels))
        every = with_custom_operators(operators, base_kernels=self.base_kernels).values()
        self.words = {o.symbol: o for o in every if o.is_word}
        self.signs = sorted((o for o in every if not o.is_word), key=lambda o: o.precedence)
        self.position = 0
        self.null_position: int | None = None  # where the text names the null model

    def parse(self) -> Expression:
        target = self._target()
        try:
            tree = self._chain()
        except RecursionError:
            raise self._error("nested too deeply") from None
        if self.position < len(self.text):
            signs = ", ".join(repr(o.symbol) for o in self.signs)
            raise self._error(f"expected {signs} or the end, got {self.text[self.position]!r}")
        return tree.on(target)

    def _target(self) -> str:
        """Read the name of the scale of the target, if the text begins with one."""
        if (target := _TARGET.match(self.text)) is None:
            return IDENTITY
        if target["name"] not in (known := (*TARGET_SCALES, *COUNT_SCALES)):
            raise self._unknown_scale("target", target["name"], known, target.start("name"))
        self.position = target.end()
        return target["name"]

    def _chain(self, above: float = -inf) -> Tree:
        """Read operands joined by operators above a precedence, equal ones grouped to the left."""
        tree = self._atom()
        while (operator := self._next_sign()) and operator.precedence > above:
            self._accept(operator.symbol)
            tree = self._join(operator, [tree, self._chain(operator.precedence)])
        return tree

    def _join(
        self, operator: Operator, operands: Sequence[Tree], column: int | None = None
    ) -> Operation:
        """Join operands, none of which may be the null model."""
        if self.null_position is not None:
            raise self._error(STANDS_ALONE, self.null_position)
        if sum(one.n_leaves for one in operands) > self.max_leaves:
            raise self._error(f"expected at most {self.max_leaves} base kernels, got more")
        return Operation(operator, *operands, column=column)

    def _atom(self) -> Tree:
        """Read a leaf, a word operator with its operands, or an expression in brackets."""
        if self._accept("("):
            tree = self._chain()
            if not self._accept(")"):
                raise self._error("expected ')'")
            return tree
        if (match := _WORD.match(self.text, self.position)) is None:
            raise self._error("expected a base kernel such as SE[0], or '('")
        word, column = match[0], _COLUMN.match(self.text, match.end())
        if word in self.words:
            return self._call(self.words[word])
        if word == NOISE.canonical:
            self.null_position = self.position
            self._accept(word)
            if self._is_next("["):
                raise self._error(f"{NOISE} acts on no column: {STANDS_ALONE}")
            return NOISE
        kernel = self.base_kernels.get(word) or Seasonal.of_name(word)
        if column is None:
            what = "a base kernel such as SE[0], or '('"
            what = what if kernel is None else f"{word} with a column in brackets: {word}[0]"
            raise self._error(f"expected {what}")
        if kernel is None:
            known = ", ".join(self.base_kernels)
            hint = did_you_mean(word, self.base_kernels, aliases=KERNEL_ALIASES)
            raise self._error(f"unknown base kernel {word!r}, the known ones are {known}{hint}")
        if (scale := self._scale(column)) is not None and scale not in COLUMN_SCALES:
            raise self._unknown_scale("column", scale, COLUMN_SCALES, column.start("scale"))
        leaf = Leaf(kernel, self._column(column), scale or IDENTITY)
        self.position = column.end()
        self._skip_space()
        return leaf

    def _scale(self, match: re.Match[str]) -> str | None:
        """Return the name of a scale, None for a column whose name may look like one."""
        return None if match["view"].rstrip() in (self.feature_names or ()) else match["scale"]

    def _unknown_scale(
        self, what: str, name: str, known: Sequence[str], position: int
    ) -> ExpressionSyntaxError:
        hint = did_you_mean(name, known)
        text = f"unknown scale {name!r} of a {what}, the known ones are {', '.join(known)}{hint}"
        return self._error(text, position)

    def _call(self, operator: Operator) -> Tree:
        """Read the column and the operands of an operator that is a word."""
        self.position += len(operator.symbol)
        column = None
        if operator.acts_on_column:
            if (match := _COLUMN.match(self.text, self.position)) is None:
                raise self._error(f"expected the column of {operator.symbol} in square brackets")
            if self._scale(match) is not None:
                raise self._error(
                    f"{operator.symbol} acts on a column as it is, got {match['view'].rstrip()!r}",
                    match.start("scale"),
                )
            column, self.position = self._column(match), match.end()
        operands: list[Tree] = []
        for number in range(operator.n_operands):
            sign = "," if number else "("
            if not self._accept(sign):
                raise self._error(f"expected {sign!r}: {operator.symbol} has {operator.n_operands}")
            operands.append(self._chain())
        if not self._accept(")"):
            raise self._error("expected ')'")
        return self._join(operator, operands, column)

    def _column(self, match: re.Match[str]) -> int:
        names, scale, plain = self.feature_names, self._scale(match), match["plain"]
        if scale != match["scale"]:
            plain = match["view"]  # a name such as "log(age)"
        plain = None if plain is None else plain.rstrip()
        if plain and scale == "log" and plain not in (names or ()):
            found = _OFFSET.fullmatch(plain)
            plain = found["plain"] if found else plain  # the data say what is added
        begins = match.start("quoted" if match["plain"] is None else "plain")
        if plain is not None and re.fullmatch(r"\d{1,9}", plain, re.ASCII):
            column = int(plain)
            if names is not None and column >= len(names):
                text = f"column must be below the number of columns {len(names)}, got {column}"
                raise self._error(text, begins)
            return column
        name = plain if plain is not None else re.sub(r"\\(.)", r"\1", match["quoted"], flags=re.S)
        if names is None:
            raise self._error(
                f"column must be a zero-based index where no feature_names are given, got {name!r}",
                begins,
            )
        if name not in names:
            known, hint = ", ".join(map(repr, names)), did_you_mean(name, names)
            raise self._error(f"unknown column {name!r}, the known ones are {known}{hint}", begins)
        if names.count(name) > 1:
            raise self._error(f"several columns are named {name!r}, give the index", begins)
        return names.index(name)

    def _next_sign(self) -> Operator | None:
        """Return the operator that is next, if any; of two signs the longer one counts."""
        self._skip_space()
        signs = [o for o in self.signs if self._is_next(o.symbol)]
        return max(signs, key=lambda o: len(o.symbol), default=None)

    def _is_next(self, symbol: str) -> bool:
        return self.text.startswith(symbol, self.position)

    def _accept(self, symbol: str) -> bool:
        """Read ``symbol`` and the space around it, if it is next."""
        self._skip_space()
        if not self._is_next(symbol):
            return False
        self.position += len(symbol)
        self._skip_space()
        return True

    def _skip_space(self) -> None:
        while self.text[self.position : self.position + 1].isspace():
            self.position += 1

    def _error(self, message: str, position: int | None = None) -> ExpressionSyntaxError:
        place = self.position if position is None else position
        return ExpressionSyntaxError(message, self.text, place)
