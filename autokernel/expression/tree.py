"""Expressions: trees of base kernels and operators."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from zlib import crc32

from autokernel.kernels import (
    ADD,
    MULTIPLY,
    NULL_KERNEL,
    BaseKernel,
    KernelParameter,
    NullKernel,
    Operator,
)

STANDS_ALONE = f"{NULL_KERNEL.name} stands alone, as every kernel has noise"
"""The reason for which the null model is refused as an operand."""


def checked_operation(
    operator: Operator, n_leaves: Sequence[int], column: int | None
) -> int | None:
    """Check an operator and the numbers of leaves of its operands, and return its column."""
    # isinstance takes long with an abstract class
    if operator is not ADD and operator is not MULTIPLY and not isinstance(operator, Operator):
        raise TypeError(f"operator must be an Operator object, got {operator!r}")
    if len(n_leaves) != operator.n_operands:
        raise ValueError(
            f"{operator.symbol} must have {operator.n_operands} operands, got {len(n_leaves)}"
        )
    if 0 in n_leaves:
        raise ValueError(f"{operator.symbol} must join kernels that have leaves: {STANDS_ALONE}")
    if operator.acts_on_column:
        return checked_column(column)
    if column is not None:
        raise ValueError(f"{operator.symbol} acts on no column, got column={column!r}")
    return None


def checked_column(column: object) -> int:
    """Check a zero-based column and return it as an int."""
    if isinstance(column, bool) or not isinstance(column, Integral):
        raise ValueError(f"column must be a zero-based index, got {column!r}")
    if column < 0:
        raise ValueError(f"column must not be negative, got {column}")
    return int(column)


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


class Expression(ABC):
    """A leaf, an operation on expressions, or the null model; structure only, no numbers.

    Two expressions are equal if their trees are equal. ``canonical`` has the operands flattened and
    sorted, and so is the same for all trees that differ only by commutativity and associativity.

    Attributes
    ----------
    canonical : str
        Text that identifies the kernel.
    n_leaves : int
        Number of leaves.
    n_subtrees : int
        Number of subtrees, this one included.
    leaves : tuple of Leaf
        Leaves from left to right.
    nodes : tuple of Expression
        Subtrees that may have parameters of their own: leaves, and operations whose operator has
        any. An operation precedes its operands, which are in order from left to right.
    parameters : tuple of KernelParameter
        Parameters of the root itself, without those of its operands.
    column : int or None
        Column on which the root itself acts, None if it acts on none.
    last_column : int
        Highest column on which the root or a subtree acts, -1 if none acts on a column.
    """

    __slots__ = ()

    canonical: str
    n_leaves: int
    n_subtrees: int
    column: int | None
    last_column: int
    has_parameters: bool = False  # whether some operator here or below has any

    @property
    @abstractmethod
    def depth(self) -> int:
        """Number of operators on the longest path from the root to a leaf."""

    @property
    @abstractmethod
    def leaves(self) -> "tuple[Leaf, ...]":
        """Leaves from left to right."""

    @property
    @abstractmethod
    def nodes(self) -> "tuple[Expression, ...]":
        """Subtrees that may have parameters of their own, operations before their operands."""

    @property
    @abstractmethod
    def declared(self) -> BaseKernel | Operator | NullKernel:
        """The base kernel of a leaf, the operator of an operation, or the kernel that is zero."""

    @property
    def parameters(self) -> tuple[KernelParameter, ...]:
        """Parameters of the root itself, without those of its operands."""
        return self.declared.parameters

    @property
    def has_many_modes(self) -> bool:
        """Whether the posterior tends to have many modes."""
        return any(node.declared.has_many_modes for node in self.nodes)

    @abstractmethod
    def subtrees(self) -> "Iterator[Expression]":
        """Yield this tree and all trees below it, parents first, left before right."""

    @abstractmethod
    def subtree(self, index: int) -> "Expression":
        """Return the subtree at ``index`` of :meth:`subtrees`, without visiting the others."""

    @abstractmethod
    def leaf_index(self, leaf: int) -> int:
        """Return the index in :meth:`subtrees` of a leaf, given its index in :attr:`leaves`."""

    @abstractmethod
    def terms(self, operator: Operator) -> "tuple[Expression, ...]":
        """Return the largest subtrees that are not joined by ``operator``, from left to right."""

    @abstractmethod
    def term_texts(self, operator: Operator) -> tuple[str, ...]:
        """Return the canonical texts of the terms, sorted, in brackets where necessary."""

    @abstractmethod
    def replace(self, index: int, new: "Expression") -> "Expression":
        """Return a copy in which the subtree at ``index`` of :meth:`subtrees` is ``new``."""

    @abstractmethod
    def to_text(self, feature_names: Sequence[str] | None = None) -> str:
        """Write the expression in Python's precedence, with column names if they are given."""

    def __str__(self) -> str:
        return self.to_text()

    def __add__(self, other: "Expression") -> "Operation":
        return Operation(ADD, self, other)

    def __mul__(self, other: "Expression") -> "Operation":
        return Operation(MULTIPLY, self, other)


@dataclass(frozen=True, slots=True, repr=False)
class Leaf(Expression):
    """A base kernel on one zero-based column."""

    kernel: BaseKernel
    column: int
    canonical: str = field(init=False, compare=False)
    n_leaves: int = field(init=False, compare=False)
    n_subtrees: int = field(init=False, compare=False)
    last_column: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, BaseKernel):
            raise TypeError(f"kernel must be a BaseKernel object, got {self.kernel!r}")
        self.kernel.check()
        column = checked_column(self.column)
        put = object.__setattr__
        put(self, "column", column)
        put(self, "canonical", f"{self.kernel.name}[{column}]")
        put(self, "n_leaves", 1)
        put(self, "n_subtrees", 1)
        put(self, "last_column", column)

    @property
    def depth(self) -> int:
        """Zero, as a leaf contains no operator."""
        return 0

    @property
    def leaves(self) -> "tuple[Leaf, ...]":
        """The leaf itself."""
        return (self,)

    @property
    def nodes(self) -> tuple[Expression, ...]:
        """The leaf itself."""
        return (self,)

    @property
    def declared(self) -> BaseKernel:
        """The base kernel."""
        return self.kernel

    def subtrees(self) -> Iterator[Expression]:
        """Yield the leaf itself."""
        yield self

    def subtree(self, index: int) -> Expression:
        """Return the leaf itself, the only subtree."""
        if index != 0:
            raise IndexError(f"index must be 0 for a leaf, got {index}")
        return self

    def leaf_index(self, leaf: int) -> int:
        """Return 0, the index of the only leaf."""
        if leaf != 0:
            raise IndexError(f"leaf must be 0 for a leaf, got {leaf}")
        return 0

    def terms(self, operator: Operator) -> tuple[Expression, ...]:  # noqa: ARG002 - no operator joins a leaf
        """Return the leaf itself, whatever the operator."""
        return (self,)

    def term_texts(self, operator: Operator) -> tuple[str, ...]:  # noqa: ARG002 - no operator joins a leaf
        """Return the canonical text of the leaf, whatever the operator."""
        return (self.canonical,)

    def replace(self, index: int, new: Expression) -> Expression:
        """Return ``new``, as the only subtree is the leaf itself."""
        if index != 0:
            raise IndexError(f"index must be 0 for a leaf, got {index}")
        return new

    def to_text(self, feature_names: Sequence[str] | None = None) -> str:
        """Write the leaf as ``NAME[column]``."""
        return self.kernel.name + column_text(self.column, feature_names, self.canonical)

    def __repr__(self) -> str:
        return f"<Expression {self}>"


@dataclass(frozen=True, slots=True, repr=False, init=False)
class Operation(Expression):
    """Expressions joined by an operator, which may act on one zero-based column.

    Raises
    ------
    TypeError
        If ``operator`` is not an operator.
    ValueError
        If the number of operands, or the column, does not match the operator, or if an operand is
        the null model, which has no leaves.
    """

    operator: Operator
    operands: tuple[Expression, ...]
    column: int | None
    canonical: str = field(compare=False)
    n_leaves: int = field(compare=False)
    n_subtrees: int = field(compare=False)
    last_column: int = field(compare=False)
    leaves: tuple[Leaf, ...] = field(compare=False)
    # Larger trees reuse these: a search makes some thousand trees for each proposal.
    _terms: tuple[Expression, ...] = field(compare=False)  # empty if the operator does not commute
    _term_texts: tuple[str, ...] = field(compare=False)
    has_parameters: bool = field(compare=False)
    _hash: int = field(compare=False)

    def __init__(
        self, operator: Operator, *operands: Expression, column: int | None = None
    ) -> None:
        column = checked_operation(operator, [e.n_leaves for e in operands], column)
        first, *others = operands
        leaves, n_subtrees, last = first.leaves, 1 + first.n_subtrees, first.last_column
        has_parameters = first.has_parameters or bool(operator.parameters)
        for operand in others:
            leaves += operand.leaves
            n_subtrees += operand.n_subtrees
            last = operand.last_column if operand.last_column > last else last
            has_parameters = has_parameters or operand.has_parameters
        texts: Sequence[str]
        terms: tuple[Expression, ...] = ()
        if operator.commutes:
            terms = first.terms(operator) + others[0].terms(operator)
            texts = sorted(first.term_texts(operator) + others[0].term_texts(operator))
            canonical = f" {operator.symbol} ".join(texts)
        else:
            texts = bracketed(operator, [e.canonical for e in operands], _operators(operands))
            canonical = joined(operator, texts, "" if column is None else f"[{column}]")
        put = object.__setattr__
        put(self, "operator", operator)
        put(self, "operands", operands)
        put(self, "column", column)
        put(self, "canonical", canonical)
        put(self, "n_leaves", len(leaves))
        put(self, "n_subtrees", n_subtrees)
        put(self, "last_column", last if column is None else max(column, last))
        put(self, "leaves", leaves)
        put(self, "has_parameters", has_parameters)
        put(self, "_terms", terms)
        put(self, "_term_texts", tuple(texts))
        # Equal trees have equal texts; unlike hash(), crc32 is the same in every process.
        put(self, "_hash", crc32(canonical.encode()))

    @property
    def depth(self) -> int:
        """Number of operators on the longest path from the root to a leaf."""
        return 1 + max(operand.depth for operand in self.operands)

    @property
    def nodes(self) -> tuple[Expression, ...]:
        """Subtrees that may have parameters of their own, this one first if it has any."""
        if not self.has_parameters:
            return self.leaves
        below = tuple(node for operand in self.operands for node in operand.nodes)
        return (self, *below) if self.operator.parameters else below

    @property
    def declared(self) -> Operator:
        """The operator."""
        return self.operator

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        # A pickle holds only these three fields, as all others are computed from them.
        return _make_operation, (self.operator, self.operands, self.column)

    def term_texts(self, operator: Operator) -> tuple[str, ...]:
        """Return the canonical texts of the terms of ``operator``, in brackets if necessary."""
        own = self.operator
        if own is operator or own == operator:
            return self._term_texts
        if own.is_word or operator.is_word or own.precedence > operator.precedence:
            return (self.canonical,)
        return (f"({self.canonical})",)

    def subtrees(self) -> Iterator[Expression]:
        """Yield this tree and all trees below it, parents first, left before right."""
        yield self
        for operand in self.operands:
            yield from operand.subtrees()

    def subtree(self, index: int) -> Expression:
        """Return the subtree at ``index`` of :meth:`subtrees`, without visiting the others."""
        if index == 0:
            return self
        which, below = self._below(index)
        return self.operands[which].subtree(below)

    def leaf_index(self, leaf: int) -> int:
        """Return the index in :meth:`subtrees` of a leaf, given its index in :attr:`leaves`."""
        before = 1
        for operand in self.operands[:-1]:
            if leaf < operand.n_leaves:
                return before + operand.leaf_index(leaf)
            leaf, before = leaf - operand.n_leaves, before + operand.n_subtrees
        return before + self.operands[-1].leaf_index(leaf)

    def terms(self, operator: Operator) -> tuple[Expression, ...]:
        """Return the largest subtrees that are not joined by ``operator``, from left to right."""
        own = self.operator
        if own is operator or own == operator:
            return self._terms or (self,)
        return (self,)

    def replace(self, index: int, new: Expression) -> Expression:
        """Return a copy in which the subtree at ``index`` of :meth:`subtrees` is ``new``."""
        if index == 0:
            return new
        which, below = self._below(index)
        operands = list(self.operands)
        operands[which] = operands[which].replace(below, new)
        return Operation(self.operator, *operands, column=self.column)

    def with_operands(self, operands: Iterable[Expression]) -> "Operation":
        """Return the same operation on other operands."""
        return Operation(self.operator, *operands, column=self.column)

    def to_text(self, feature_names: Sequence[str] | None = None) -> str:
        """Write in Python's precedence, with brackets only where the tree needs them."""
        texts = [operand.to_text(feature_names) for operand in self.operands]
        texts = bracketed(self.operator, texts, _operators(self.operands))
        if self.column is None:
            return joined(self.operator, texts)
        where = column_text(self.column, feature_names, self.canonical)
        return joined(self.operator, texts, where)

    def _below(self, index: int) -> tuple[int, int]:
        """Return which operand contains the subtree at ``index`` > 0, and the index in it."""
        which, index, size = 0, index - 1, self.operands[0].n_subtrees
        while index >= size and which < len(self.operands) - 1:
            index -= size
            which += 1
            size = self.operands[which].n_subtrees
        return which, index

    def __repr__(self) -> str:
        return f"<Expression {self}>"


def _make_operation(
    operator: Operator, operands: tuple[Expression, ...], column: int | None
) -> Operation:
    """Rebuild an operation from a pickle."""
    return Operation(operator, *operands, column=column)


def _operators(operands: Iterable[Expression]) -> list[Operator | None]:
    """Return the operators at the roots of expressions, None for leaves."""
    return [operand.operator if isinstance(operand, Operation) else None for operand in operands]


def require_expressions(items: Iterable[object]) -> None:
    """Raise a ``TypeError`` if an item is not an expression."""
    for item in items:
        if not isinstance(item, Expression):
            raise TypeError(
                f"expressions must be Expression objects, got {item!r}: "
                "parse_expression makes one of a text"
            )


@dataclass(frozen=True, slots=True, repr=False)
class Null(Expression):
    """The kernel that is zero: its covariance is that of the noise.

    It has no leaves and no parameters, so theta holds the noise variance only. It cannot be an
    operand, as every kernel has noise already.
    """

    canonical = NULL_KERNEL.name
    n_leaves = 0
    n_subtrees = 1
    column = None
    last_column = -1

    @property
    def depth(self) -> int:
        """Zero, as there is no operator."""
        return 0

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """No leaves."""
        return ()

    @property
    def nodes(self) -> tuple[Expression, ...]:
        """No nodes, as nothing in it can have parameters."""
        return ()

    @property
    def declared(self) -> NullKernel:
        """The kernel that is zero."""
        return NULL_KERNEL

    def subtrees(self) -> Iterator[Expression]:
        """Yield the expression itself."""
        yield self

    def subtree(self, index: int) -> Expression:
        """Return the expression itself, the only subtree."""
        return self.replace(index, self)

    def leaf_index(self, leaf: int) -> int:
        """Raise an ``IndexError``, as there are no leaves."""
        raise IndexError(f"leaf must be that of an expression with leaves, got {leaf} for {self}")

    def terms(self, operator: Operator) -> tuple[Expression, ...]:  # noqa: ARG002 - it joins nothing
        """Return the expression itself, whatever the operator."""
        return (self,)

    def term_texts(self, operator: Operator) -> tuple[str, ...]:  # noqa: ARG002 - it joins nothing
        """Return the text of the expression, whatever the operator."""
        return (self.canonical,)

    def replace(self, index: int, new: Expression) -> Expression:
        """Return ``new``, as the only subtree is the expression itself."""
        if index != 0:
            raise IndexError(f"index must be 0 for {self}, got {index}")
        return new

    def to_text(self, feature_names: Sequence[str] | None = None) -> str:  # noqa: ARG002 - no columns
        """Write the name of the null model."""
        return self.canonical

    def __repr__(self) -> str:
        return f"<Expression {self}>"


NOISE = Null()
"""The null model, which has no structure but noise."""
