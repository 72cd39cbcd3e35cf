"""Kernel expressions: immutable binary trees of operators over base kernels on columns."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
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
    def depth(self) -> int:
        """Number of operators on the longest way from the root to a leaf."""

    @property
    @abstractmethod
    def leaves(self) -> "tuple[Leaf, ...]":
        """Leaves from left to right."""

    @abstractmethod
    def subtrees(self) -> "Iterator[Expression]":
        """Yield this tree and all trees below it, parents first, left before right."""

    @abstractmethod
    def subtree(self, index: int) -> "Expression":
        """Return the one at ``index`` of :meth:`subtrees`, without a look at the others."""

    @abstractmethod
    def leaf_index(self, place: int) -> int:
        """Where the leaf at ``place`` of :attr:`leaves` stands among :meth:`subtrees`."""

    @abstractmethod
    def operands(self, operator: str) -> "tuple[Expression, ...]":
        """Largest subtrees that are not joined by ``operator``, from left to right."""

    @abstractmethod
    def operand_texts(self, operator: str) -> tuple[str, ...]:
        """Canonical texts of the operands, in brackets where a product needs them, sorted."""

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
    def depth(self) -> int:
        """Zero."""
        return 0

    @property
    def leaves(self) -> "tuple[Leaf, ...]":
        """The leaf itself."""
        return (self,)

    def subtrees(self) -> Iterator[Expression]:
        """Yield the leaf itself."""
        yield self

    def subtree(self, index: int) -> Expression:
        """Return the leaf itself, the only subtree."""
        if index != 0:
            raise IndexError(f"index must be 0 for a leaf, got {index}")
        return self

    def leaf_index(self, place: int) -> int:
        """Return 0, the place of the only leaf."""
        if place != 0:
            raise IndexError(f"place must be 0 for a leaf, got {place}")
        return 0

    def operands(self, operator: str) -> tuple[Expression, ...]:  # noqa: ARG002 - leaves have none
        """Return the leaf itself, whatever the operator."""
        return (self,)

    def operand_texts(self, operator: str) -> tuple[str, ...]:  # noqa: ARG002 - leaves have one
        """Return the canonical text of the leaf, whatever the operator."""
        return (self.canonical,)

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
    leaves: tuple[Leaf, ...] = field(init=False, compare=False)
    # computed once for all trees above: a search makes some thousand trees for each proposal
    _operand_texts: tuple[str, ...] = field(init=False, compare=False)
    _hash: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"operator must be one of {OPERATORS}, got {self.operator!r}")
        operator, left, right, put = self.operator, self.left, self.right, object.__setattr__
        texts = sorted(left.operand_texts(operator) + right.operand_texts(operator))
        put(self, "canonical", f" {operator} ".join(texts))
        put(self, "n_leaves", left.n_leaves + right.n_leaves)
        put(self, "leaves", left.leaves + right.leaves)
        put(self, "_operand_texts", tuple(texts))
        put(self, "_hash", hash((operator, left, right)))

    @property
    def depth(self) -> int:
        """Number of operators on the longest way from the root to a leaf."""
        return 1 + max(self.left.depth, self.right.depth)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return Operation, (self.operator, self.left, self.right)  # hashes differ between processes

    def operand_texts(self, operator: str) -> tuple[str, ...]:
        """Canonical texts of the operands of ``operator``; sums inside products need brackets."""
        if operator == self.operator:
            return self._operand_texts
        return (f"({self.canonical})",) if operator == MULTIPLY else (self.canonical,)

    def subtrees(self) -> Iterator[Expression]:
        """Yield this tree and all trees below it, parents first, left before right."""
        yield self
        yield from self.left.subtrees()
        yield from self.right.subtrees()

    def subtree(self, index: int) -> Expression:
        """Return the one at ``index`` of :meth:`subtrees`, without a look at the others."""
        if index == 0:
            return self
        n_left = 2 * self.left.n_leaves - 1
        return (
            self.left.subtree(index - 1)
            if index <= n_left
            else self.right.subtree(index - 1 - n_left)
        )

    def leaf_index(self, place: int) -> int:
        """Where the leaf at ``place`` of :attr:`leaves` stands among :meth:`subtrees`."""
        n_left = self.left.n_leaves
        if place < n_left:
            return 1 + self.left.leaf_index(place)
        return 2 * n_left + self.right.leaf_index(place - n_left)

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


def _quote(name: str) -> str:
    """Write a feature name so that it can be read back: in quotes unless it is plain."""
    if _PLAIN_NAME.fullmatch(name) and not _INTEGER.fullmatch(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def require_expressions(items: Iterable[object]) -> None:
    """Raise a ``TypeError`` where one is no expression."""
    for item in items:
        if not isinstance(item, Expression):
            raise TypeError(
                f"expressions must be Expression objects, got {item!r}: "
                "parse_expression makes one of a text"
            )
