"""Kernel expressions: immutable binary trees of operators over base kernels on columns."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral

from autokernel.kernels import BASE_KERNELS

ADD = "+"
MULTIPLY = "*"
OPERATORS = (ADD, MULTIPLY)

_PLAIN_NAME = re.compile(r"[^\s\[\]\"\\](?:[^\[\]\"\\\n\r\t]*[^\s\[\]\"\\])?")
_INTEGER = re.compile(r"[+-]?\d+")


class Expression(ABC):
    """A leaf or an operation on two expressions; structure only, no numbers.

    Equality is that of the trees. ``canonical`` is a text that is the same for all trees that
    differ only by commutativity and associativity: operands flattened and sorted.
    """

    __slots__ = ()

    canonical: str
    n_leaves: int

    @property
    @abstractmethod
    def leaves(self) -> "tuple[Leaf, ...]":
        """Leaves from left to right."""

    @abstractmethod
    def subtrees(self) -> "Iterator[Expression]":
        """Yield this tree and all trees below it, parents first, left before right."""

    @abstractmethod
    def operands(self, operator: str) -> "tuple[Expression, ...]":
        """Largest subtrees that are not joined by ``operator``, from left to right."""

    @abstractmethod
    def replace(self, index: int, new: "Expression") -> "Expression":
        """Return a copy in which the subtree at ``index`` of :meth:`subtrees` is ``new``."""

    @abstractmethod
    def to_text(self, feature_names: Sequence[str] | None = None) -> str:
        """Write in Python's precedence, columns by name where names are given."""

    def __str__(self) -> str:
        return self.to_text()

    def __add__(self, other: "Expression") -> "Operation":
        return Operation(ADD, self, other)

    def __mul__(self, other: "Expression") -> "Operation":
        return Operation(MULTIPLY, self, other)


@dataclass(frozen=True, slots=True, repr=False)
class Leaf(Expression):
    """A base kernel, by name, on one zero-based column."""

    kernel: str
    column: int
    canonical: str = field(init=False, compare=False)
    n_leaves: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if self.kernel not in BASE_KERNELS:
            raise ValueError(f"kernel must be one of {list(BASE_KERNELS)}, got {self.kernel!r}")
        if isinstance(self.column, bool) or not isinstance(self.column, Integral):
            raise ValueError(f"column must be a zero-based index, got {self.column!r}")
        if self.column < 0:
            raise ValueError(f"column must not be negative, got {self.column}")
        object.__setattr__(self, "column", int(self.column))
        object.__setattr__(self, "canonical", f"{self.kernel}[{self.column}]")
        object.__setattr__(self, "n_leaves", 1)

    @property
    def leaves(self) -> "tuple[Leaf, ...]":
        """The leaf itself."""
        return (self,)

    def subtrees(self) -> Iterator[Expression]:
        """Yield the leaf itself."""
        yield self

    def operands(self, operator: str) -> tuple[Expression, ...]:  # noqa: ARG002 - leaves have none
        """Return the leaf itself, whatever the operator."""
        return (self,)

    def replace(self, index: int, new: Expression) -> Expression:
        """Return ``new``, the only subtree being the leaf itself."""
        if index != 0:
            raise IndexError(f"index must be 0 for a leaf, got {index}")
        return new

    def to_text(self, feature_names: Sequence[str] | None = None) -> str:
        """Write as ``NAME[column]``."""
        if feature_names is None:
            return self.canonical
        if self.column >= len(feature_names):
            raise ValueError(
                f"feature_names must name column {self.column} of {self.canonical}, "
                f"got {len(feature_names)} names"
            )
        names = [str(name) for name in feature_names]
        name = names[self.column]
        unique = names.count(name) == 1
        return f"{self.kernel}[{_quote(name) if unique else self.column}]"

    def __repr__(self) -> str:
        return f"<Expression {self}>"


@dataclass(frozen=True, slots=True, repr=False)
class Operation(Expression):
    """Two expressions joined by an operator."""

    operator: str
    left: Expression
    right: Expression
    canonical: str = field(init=False, compare=False)
    n_leaves: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"operator must be one of {OPERATORS}, got {self.operator!r}")
        texts = sorted(_operand_text(e, self.operator) for e in self.operands(self.operator))
        object.__setattr__(self, "canonical", f" {self.operator} ".join(texts))
        object.__setattr__(self, "n_leaves", self.left.n_leaves + self.right.n_leaves)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Leaves from left to right."""
        return self.left.leaves + self.right.leaves

    def subtrees(self) -> Iterator[Expression]:
        """Yield this tree and all trees below it, parents first, left before right."""
        yield self
        yield from self.left.subtrees()
        yield from self.right.subtrees()

    def operands(self, operator: str) -> tuple[Expression, ...]:
        """Largest subtrees that are not joined by ``operator``, from left to right."""
        if operator != self.operator:
            return (self,)
        return self.left.operands(operator) + self.right.operands(operator)

    def replace(self, index: int, new: Expression) -> Expression:
        """Return a copy in which the subtree at ``index`` of :meth:`subtrees` is ``new``."""
        if index == 0:
            return new
        n_left = 2 * self.left.n_leaves - 1
        if index <= n_left:
            return Operation(self.operator, self.left.replace(index - 1, new), self.right)
        return Operation(self.operator, self.left, self.right.replace(index - 1 - n_left, new))

    def to_text(self, feature_names: Sequence[str] | None = None) -> str:
        """Write in Python's precedence, with brackets only where the tree needs them."""
        left, right = self.left.to_text(feature_names), self.right.to_text(feature_names)
        if self.operator == MULTIPLY and self.left.operands(ADD) != (self.left,):
            left = f"({left})"
        # Both operators group to the left, so a right operand that is an operation needs brackets
        # unless it binds tighter.
        if self.right.n_leaves > 1 and not (
            self.operator == ADD and self.right.operands(MULTIPLY) != (self.right,)
        ):
            right = f"({right})"
        return f"{left} {self.operator} {right}"

    def __repr__(self) -> str:
        return f"<Expression {self}>"


def _operand_text(expression: Expression, operator: str) -> str:
    """Canonical text as an operand; sums inside products need brackets."""
    if operator == MULTIPLY and expression.operands(ADD) != (expression,):
        return f"({expression.canonical})"
    return expression.canonical


def _quote(name: str) -> str:
    """Write a feature name so that it can be read back: in quotes unless it is plain."""
    if _PLAIN_NAME.fullmatch(name) and not _INTEGER.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
