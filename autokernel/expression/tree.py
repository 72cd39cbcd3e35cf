"""Kernel expressions: immutable trees of operators over base kernels on columns."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from zlib import crc32

from autokernel.expression.writing import bracketed, column_text, joined
from autokernel.kernels import BaseKernel, KernelParameter
from autokernel.operators import ADD, MULTIPLY, Operator


class Expression(ABC):
    """A leaf or an operation on expressions; structure only, no numbers.

    Equality is that of the trees. ``canonical`` is a text that is the same for all trees that
    differ only by commutativity and associativity: operands flattened and sorted.

    Attributes
    ----------
    canonical : str
        The text that tells kernels apart.
    n_leaves : int
        Number of leaves.
    n_subtrees : int
        Number of subtrees, this one included.
    leaves : tuple of Leaf
        Leaves from left to right.
    nodes : tuple of Expression
        Subtrees that may have parameters of their own: leaves, and operations whose operator has
        any. Operations stand before their operands, operands from left to right.
    parameters : tuple of KernelParameter
        Its own parameters, without those of its operands.
    column : int or None
        The column that it acts on itself.
    last_column : int
        The highest column that it or a subtree acts on.
    """

    __slots__ = ()

    canonical: str
    n_leaves: int
    n_subtrees: int
    column: int | None
    last_column: int

    @property
    @abstractmethod
    def depth(self) -> int:
        """Number of operators on the longest way from the root to a leaf."""

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
    def parameters(self) -> tuple[KernelParameter, ...]:
        """Its own parameters, without those of its operands."""

    @property
    @abstractmethod
    def has_many_modes(self) -> bool:
        """Whether its own parameters let one mode of the posterior hide many others."""

    @property
    @abstractmethod
    def broadcasts(self) -> bool:
        """Whether its own values can be computed for arrays of parameters."""

    @abstractmethod
    def subtrees(self) -> "Iterator[Expression]":
        """Yield this tree and all trees below it, parents first, left before right."""

    @abstractmethod
    def subtree(self, index: int) -> "Expression":
        """Return the one at ``index`` of :meth:`subtrees`, without a look at the others."""

    @abstractmethod
    def leaf_index(self, leaf: int) -> int:
        """Index among :meth:`subtrees` of a leaf, given by its index among :attr:`leaves`."""

    @abstractmethod
    def terms(self, operator: Operator) -> "tuple[Expression, ...]":
        """Largest subtrees that are not joined by ``operator``, from left to right."""

    @abstractmethod
    def term_texts(self, operator: Operator) -> tuple[str, ...]:
        """Canonical texts of the terms, in brackets where ``operator`` needs them, sorted."""

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
        column = _checked_column(self.column)
        put = object.__setattr__
        put(self, "column", column)
        put(self, "canonical", f"{self.kernel.name}[{column}]")
        put(self, "n_leaves", 1)
        put(self, "n_subtrees", 1)
        put(self, "last_column", column)

    @property
    def depth(self) -> int:
        """Zero."""
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
    def parameters(self) -> tuple[KernelParameter, ...]:
        """The parameters of the base kernel."""
        return self.kernel.parameters

    @property
    def has_many_modes(self) -> bool:
        """As the base kernel declares."""
        return self.kernel.has_many_modes

    @property
    def broadcasts(self) -> bool:
        """As the base kernel declares."""
        return self.kernel.broadcasts

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

    def terms(self, operator: Operator) -> tuple[Expression, ...]:  # noqa: ARG002 - none joins it
        """Return the leaf itself, whatever the operator."""
        return (self,)

    def term_texts(self, operator: Operator) -> tuple[str, ...]:  # noqa: ARG002 - none joins it
        """Return the canonical text of the leaf, whatever the operator."""
        return (self.canonical,)

    def replace(self, index: int, new: Expression) -> Expression:
        """Return ``new``, the only subtree being the leaf itself."""
        if index != 0:
            raise IndexError(f"index must be 0 for a leaf, got {index}")
        return new

    def to_text(self, feature_names: Sequence[str] | None = None) -> str:
        """Write as ``NAME[column]``."""
        return self.kernel.name + column_text(self.column, feature_names, self.canonical)

    def __repr__(self) -> str:
        return f"<Expression {self}>"


@dataclass(frozen=True, slots=True, repr=False, init=False)
class Operation(Expression):
    """Expressions joined by an operator, maybe on one zero-based column.

    Raises
    ------
    TypeError
        If ``operator`` is no operator.
    ValueError
        If the number of operands, or the column, does not suit the operator.
    """

    operator: Operator
    operands: tuple[Expression, ...]
    column: int | None
    canonical: str = field(compare=False)
    n_leaves: int = field(compare=False)
    n_subtrees: int = field(compare=False)
    last_column: int = field(compare=False)
    leaves: tuple[Leaf, ...] = field(compare=False)
    # computed once for all trees above: a search makes some thousand trees for each proposal
    _term_texts: tuple[str, ...] = field(compare=False)
    _nodes_below: tuple[Expression, ...] = field(compare=False)
    _hash: int = field(compare=False)

    def __init__(
        self, operator: Operator, *operands: Expression, column: int | None = None
    ) -> None:
        if not isinstance(operator, Operator):
            raise TypeError(f"operator must be an Operator object, got {operator!r}")
        if len(operands) != operator.n_operands:
            raise ValueError(
                f"{operator.symbol} must have {operator.n_operands} operands, got {len(operands)}"
            )
        if operator.acts_on_column:
            column = _checked_column(column)
        elif column is not None:
            raise ValueError(f"{operator.symbol} acts on no column, got column={column!r}")
        put = object.__setattr__
        put(self, "operator", operator)
        put(self, "operands", operands)
        put(self, "column", column)
        if operator.commutes:
            texts = sorted(text for operand in operands for text in operand.term_texts(operator))
        else:
            texts = bracketed(operator, [e.canonical for e in operands], _operators(operands))
        where = "" if column is None else f"[{column}]"
        put(self, "canonical", joined(operator, texts, where))
        put(self, "n_leaves", sum(operand.n_leaves for operand in operands))
        put(self, "n_subtrees", 1 + sum(operand.n_subtrees for operand in operands))
        columns = [operand.last_column for operand in operands]
        put(self, "last_column", max(columns) if column is None else max(column, *columns))
        put(self, "leaves", tuple(leaf for operand in operands for leaf in operand.leaves))
        put(self, "_term_texts", tuple(texts))
        below = tuple(node for operand in operands for node in operand.nodes)
        put(self, "_nodes_below", below)
        # equal trees have equal texts; unlike hash() this is the same in every process
        put(self, "_hash", crc32(self.canonical.encode()))

    @property
    def depth(self) -> int:
        """Number of operators on the longest way from the root to a leaf."""
        return 1 + max(operand.depth for operand in self.operands)

    @property
    def nodes(self) -> tuple[Expression, ...]:
        """Subtrees that may have parameters of their own, this one first if it has any."""
        return (self, *self._nodes_below) if self.operator.parameters else self._nodes_below

    @property
    def parameters(self) -> tuple[KernelParameter, ...]:
        """The parameters of the operator."""
        return self.operator.parameters

    @property
    def has_many_modes(self) -> bool:
        """As the operator declares."""
        return self.operator.has_many_modes

    @property
    def broadcasts(self) -> bool:
        """As the operator declares."""
        return self.operator.broadcasts

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        # small: what follows from these is computed anew
        return _make_operation, (self.operator, self.operands, self.column)

    def term_texts(self, operator: Operator) -> tuple[str, ...]:
        """Canonical texts of the terms of ``operator``; what binds less tight needs brackets."""
        if operator == self.operator and operator.commutes:
            return self._term_texts
        return tuple(bracketed(operator, [self.canonical], [self.operator]))

    def subtrees(self) -> Iterator[Expression]:
        """Yield this tree and all trees below it, parents first, left before right."""
        yield self
        for operand in self.operands:
            yield from operand.subtrees()

    def subtree(self, index: int) -> Expression:
        """Return the one at ``index`` of :meth:`subtrees`, without a look at the others."""
        if index == 0:
            return self
        which, below = self._below(index)
        return self.operands[which].subtree(below)

    def leaf_index(self, leaf: int) -> int:
        """Index among :meth:`subtrees` of a leaf, given by its index among :attr:`leaves`."""
        before = 1
        for operand in self.operands[:-1]:
            if leaf < operand.n_leaves:
                return before + operand.leaf_index(leaf)
            leaf, before = leaf - operand.n_leaves, before + operand.n_subtrees
        return before + self.operands[-1].leaf_index(leaf)

    def terms(self, operator: Operator) -> tuple[Expression, ...]:
        """Largest subtrees that are not joined by ``operator``, from left to right."""
        if operator != self.operator or not operator.commutes:
            return (self,)
        return tuple(term for operand in self.operands for term in operand.terms(operator))

    def replace(self, index: int, new: Expression) -> Expression:
        """Return a copy in which the subtree at ``index`` of :meth:`subtrees` is ``new``."""
        if index == 0:
            return new
        which, below = self._below(index)
        operands = list(self.operands)
        operands[which] = operands[which].replace(below, new)
        return self.with_operands(operands)

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
        """Which operand holds the subtree at a positive ``index``, and its index there."""
        index -= 1
        last = len(self.operands) - 1
        for which, operand in enumerate(self.operands):
            if index < operand.n_subtrees or which == last:
                return which, index
            index -= operand.n_subtrees
        raise AssertionError("an operation has operands")

    def __repr__(self) -> str:
        return f"<Expression {self}>"


def _make_operation(
    operator: Operator, operands: tuple[Expression, ...], column: int | None
) -> Operation:
    """Make an operation anew, as in another process."""
    return Operation(operator, *operands, column=column)


def _operators(operands: Iterable[Expression]) -> list[Operator | None]:
    """Operators at the roots of expressions, None for leaves."""
    return [operand.operator if isinstance(operand, Operation) else None for operand in operands]


def _checked_column(column: object) -> int:
    """Check a zero-based column."""
    if isinstance(column, bool) or not isinstance(column, Integral):
        raise ValueError(f"column must be a zero-based index, got {column!r}")
    if column < 0:
        raise ValueError(f"column must not be negative, got {column}")
    return int(column)


def require_expressions(items: Iterable[object]) -> None:
    """Raise a ``TypeError`` where one is no expression."""
    for item in items:
        if not isinstance(item, Expression):
            raise TypeError(
                f"expressions must be Expression objects, got {item!r}: "
                "parse_expression makes one of a text"
            )
