"""Expressions: trees of base kernels and operators, and the entries of theta of their nodes."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate, chain, count, pairwise
from numbers import Integral
from typing import NamedTuple, TypeVar
from zlib import crc32

import numpy as np

from autokernel.kernels import (
    ADD,
    MULTIPLY,
    NOISE_NAME,
    BaseKernel,
    KernelParameter,
    Operator,
    Role,
    check_base_kernel,
    role_index,
)
from autokernel.typing import FloatArray, IntArray

IDENTITY = "identity"
"""Name of the scale of a column or a target as it is."""

COLUMN_SCALES = ("log", "sqrt")
TARGET_SCALES = ("log", "sqrt", "logit")
"""Names of the other scales that expressions may have."""

COUNT_SCALES = ("poisson", "negative_binomial", "binomial", "beta_binomial")
"""Names of distributions of whole numbers, which take the place of a scale of the target."""

Offsets = Mapping[int, float]
"""Numbers that are added to columns before their logarithm is taken, by the index of the column."""

STANDS_ALONE = f"{NOISE_NAME} stands alone, as every kernel has noise"
"""The reason for which the null model is refused as an operand."""

Result = TypeVar("Result")
Params = TypeVar("Params", FloatArray, IntArray)


@dataclass(frozen=True, slots=True)
class View:
    """A column as a kernel sees it: as it is, or on another scale, by its name."""

    column: int
    scale: str = IDENTITY

    def to_text(
        self, feature_names: Sequence[str] | None, what: str, offsets: Offsets | None = None
    ) -> str:
        """Write the view in square brackets, by the name of its column if no other has it."""
        name = str(self.column)
        names = [] if feature_names is None else [str(one) for one in feature_names]
        if feature_names is not None and self.column >= len(names):
            raise ValueError(
                f"feature_names must name column {name} of {what}, got {len(names)} names"
            )
        if names and names.count(names[self.column]) == 1:
            name = names[self.column]
            if not _PLAIN_NAME.fullmatch(name) or _INTEGER.fullmatch(name):
                escaped = name.replace("\\", "\\\\").replace('"', '\\"')
                name = f'"{escaped}"'
        if self.scale == IDENTITY:
            return f"[{name}]"
        offset = (offsets or {}).get(self.column) if self.scale == "log" else None
        more = f" + {offset:g}" if offset else ""
        text = f"{self.scale}({name}{more})"
        if text in names or f"{name}{more}" in {*names} - {name}:  # that is another column
            text = f"{self.scale}({self.column}{more})"
        return f"[{text}]"


_PLAIN_NAME = re.compile(r"[^\s\[\]\"\\](?:[^\[\]\"\\\n\r\t]*[^\s\[\]\"\\])?")
_INTEGER = re.compile(r"[+-]?\d+")


class Expression(ABC):
    """A kernel: a tree of base kernels and operators, which may be on a scale of the target.

    It is structure only, without numbers. Two expressions are equal if their trees and their scales
    of the target are. ``canonical`` has the operands flattened and sorted, and so is the same for
    all trees that differ only by commutativity and associativity.

    Attributes
    ----------
    canonical : str
        Text that identifies the kernel.
    target : str
        Name of the scale of the target on which the kernel acts.
    tree : Expression
        The kernel without that scale, as its parts are.
    leaves : tuple of Expression
        Leaves from left to right.
    n_leaves : int
        Number of leaves.
    n_subtrees : int
        Number of subtrees, the whole tree included.
    """

    __slots__ = ()

    canonical: str
    target: str

    @property
    @abstractmethod
    def tree(self) -> "Tree":
        """The kernel without a scale of the target."""

    @property
    def leaves(self) -> "tuple[Leaf, ...]":
        return self.tree.leaves

    @property
    def n_leaves(self) -> int:
        return self.tree.n_leaves

    @property
    def n_subtrees(self) -> int:
        return self.tree.n_subtrees

    @property
    def nodes(self) -> "tuple[Tree, ...]":
        """Subtrees that may have parameters, in the order of their entries in theta.

        These are the leaves, and operations whose operator has parameters. An operation precedes
        its operands, which are in order from left to right.
        """
        if not self.tree._has_parameters:
            return self.leaves
        return tuple(one for one in self.subtrees() if isinstance(one, Leaf) or one.parameters)

    @property
    def has_many_modes(self) -> bool:
        """Whether the posterior tends to have many modes."""
        return any(node.declared.has_many_modes for node in self.nodes)

    @property
    def has_few_modes(self) -> bool:
        """Whether a few runs find the highest mode of the posterior."""
        return all(isinstance(node, Leaf) and node.kernel.has_few_modes for node in self.nodes)

    @property
    def depth(self) -> int:
        """Number of operators on the longest path from the root to a leaf."""
        return fold_nodes(
            self, lambda *_: 0, lambda *given: max((1 + one for one in given[-1]), default=0)
        )

    @property
    def columns(self) -> frozenset[int]:
        """The columns on which it depends."""
        return frozenset(one.column for one in self.subtrees() if one.column is not None)

    @property
    def prefix(self) -> str:
        """The scale of the target as texts begin with it, ``log(y) ~``; empty if it has none."""
        return "" if self.target == IDENTITY else f"{self.target}(y) ~"

    def on(self, target: str) -> "Expression":
        """Return this kernel on a scale of the target."""
        return self.tree if target == IDENTITY else OnScale(target, self.tree)

    def with_tree(self, tree: "Tree") -> "Expression":
        """Return another kernel on the same scale of the target."""
        return tree.on(self.target)

    def subtrees(self) -> "Iterator[Tree]":
        """Yield the tree and all trees below it, parents first, left before right."""
        above = [self.tree]
        while above:  # without recursion, as in all that follows: a sum is as deep as it is long
            yield (tree := above.pop())
            above += reversed(tree.operands)

    def subtree(self, index: int) -> "Tree":
        """Return the subtree at ``index`` of :meth:`subtrees`, without visiting the others."""
        return self._path(index)[0]

    def replace(self, index: int, new: "Tree") -> "Expression":
        """Return a copy in which the subtree at ``index`` of :meth:`subtrees` is ``new``."""
        for above, which in reversed(self._path(index)[1]):
            operands = [*above.operands[:which], new, *above.operands[which + 1 :]]
            new = Operation(above.operator, *operands, column=above.column)
        return self.with_tree(new)

    def terms(self, operator: Operator) -> "tuple[Tree, ...]":
        """Return the largest subtrees that are not joined by ``operator``, from left to right."""
        own = self.tree.declared
        is_joined = operator.commutes and (own is operator or own == operator)
        return self.tree.children if is_joined else (self.tree,)

    def to_text(
        self, feature_names: Sequence[str] | None = None, offsets: Offsets | None = None
    ) -> str:
        """Write the expression in Python's precedence, with column names if they are given.

        The ``offsets`` are what is added to columns before their logarithm is taken.
        """

        def where(tree: Tree) -> str:
            view = tree.view
            return "" if view is None else view.to_text(feature_names, tree.canonical, offsets)

        text: str = fold_nodes(
            self,
            lambda leaf, _: leaf.kernel.name + where(leaf),
            lambda tree, _, below: _joined(tree.operator, tree.operands, below, where(tree)),
        )
        return f"{self.prefix} {text}" if self.prefix else text

    def _path(self, index: int) -> "tuple[Tree, list[tuple[Operation, int]]]":
        """Return the subtree at an index, and all above it with the numbers of their operands."""
        if not 0 <= index < self.n_subtrees:
            raise IndexError(f"index must be in [0, {self.n_subtrees}) for {self}, got {index}")
        tree = self.tree
        path: list[tuple[Operation, int]] = []
        while index:
            assert isinstance(tree, Operation)  # the only trees with operands
            index, which = index - 1, 0
            while index >= (size := tree.operands[which].n_subtrees):
                index, which = index - size, which + 1
            path.append((tree, which))
            tree = tree.operands[which]
        return tree, path

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Expression {self}>"

    def __deepcopy__(self, memo: object) -> "Expression":
        return self  # it is never modified

    def __add__(self, other: "Expression") -> "Operation":
        return Operation(ADD, self, other)

    def __mul__(self, other: "Expression") -> "Operation":
        return Operation(MULTIPLY, self, other)


@dataclass(frozen=True, slots=True, repr=False)
class OnScale(Expression):
    """A tree that acts on the target on another scale."""

    target: str
    tree: "Tree" = field()
    canonical: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        known = IDENTITY, *TARGET_SCALES, *COUNT_SCALES  # IDENTITY is that of trees
        _check_scale("target", self.target, known)
        object.__setattr__(self, "canonical", f"{self.prefix} {self.tree.canonical}")


class Tree(Expression):
    """A leaf, or an operation on trees, on no scale of the target."""

    __slots__ = ()

    target = IDENTITY
    operands: "tuple[Tree, ...]" = ()  # that the operator at the root joins; none for a leaf
    children: "tuple[Tree, ...]" = ()  # its terms if it commutes, otherwise the operands
    column: int | None  # on which the root itself acts, None if it acts on none
    _child_texts: tuple[str, ...] = ()
    _has_parameters: bool = False  # whether an operator here or below has any

    @property
    def tree(self) -> "Tree":
        return self

    @property
    @abstractmethod
    def declared(self) -> BaseKernel | Operator:
        """The base kernel or the operator at the root."""

    @property
    def view(self) -> View | None:
        """The column on the scale on which the root itself acts, None if it acts on none."""
        return None if self.column is None else View(self.column)

    @property
    def parameters(self) -> tuple[KernelParameter, ...]:
        """Parameters of the root itself, without those of its operands."""
        return self.declared.parameters

    def _term_texts(self, operator: Operator) -> tuple[str, ...]:
        """Return the canonical texts of the terms, sorted, in brackets if necessary."""
        if self.terms(operator) is self.children:
            return self._child_texts
        return (_in_brackets(self.canonical, self, operator),)


@dataclass(frozen=True, slots=True, repr=False)
class Leaf(Tree):
    """A base kernel on one zero-based column, or on this column on another scale.

    A ``number`` tells equal leaves apart, see :func:`with_numbers`; it is not pickled.
    """

    kernel: BaseKernel
    column: int
    scale: str = IDENTITY
    number: int | None = field(compare=False, default=None, kw_only=True)
    view: View = field(init=False, compare=False)
    canonical: str = field(init=False, compare=False)
    n_leaves: int = field(init=False, compare=False, default=1)
    n_subtrees: int = field(init=False, compare=False, default=1)

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, BaseKernel):
            raise TypeError(f"kernel must be a BaseKernel object, got {self.kernel!r}")
        check_base_kernel(self.kernel)
        column = _checked_column(self.column)
        _check_scale("scale", self.scale, (IDENTITY, *COLUMN_SCALES))
        put = object.__setattr__
        put(self, "column", column)
        put(self, "view", View(column, self.scale))
        put(self, "canonical", self.kernel.name + self.view.to_text(None, ""))

    @property
    def leaves(self) -> "tuple[Leaf, ...]":
        return (self,)

    @property
    def declared(self) -> BaseKernel:
        return self.kernel

    @property
    def has_period(self) -> bool:
        """Whether the base kernel repeats itself, which it does on the column as it is."""
        return role_index(self.kernel.parameters, Role.PERIOD) is not None

    def __reduce__(self) -> tuple[object, ...]:
        return Leaf, (self.kernel, self.column, self.scale)


@dataclass(frozen=True, slots=True, repr=False, init=False)
class Operation(Tree):
    """Trees joined by an operator, which may act on one zero-based column.

    ``Operation(ADD)``, the sum of no kernels, is the null model: its covariance is that of the
    noise. It cannot be an operand, as every kernel has noise. A scale of the target is that of a
    whole kernel, and so cannot be in an operand.
    """

    operator: Operator
    operands: tuple[Tree, ...]
    column: int | None
    canonical: str = field(compare=False)
    n_leaves: int = field(compare=False)
    n_subtrees: int = field(compare=False)
    leaves: tuple[Leaf, ...] = field(compare=False)
    # Larger trees reuse these: a search makes some thousand trees for each proposal.
    children: tuple[Tree, ...] = field(compare=False)
    _child_texts: tuple[str, ...] = field(compare=False)  # sorted, if the operator commutes
    _has_parameters: bool = field(compare=False)
    _hash: int = field(compare=False)

    def __init__(
        self, operator: Operator, *operands: Expression, column: int | None = None
    ) -> None:
        column, trees = _checked_operation(operator, operands, column)
        leaves = tuple(chain.from_iterable(operand.leaves for operand in trees))
        if operator.commutes:
            children = tuple(one for operand in trees for one in operand.terms(operator))
            texts = tuple(sorted(t for one in trees for t in one._term_texts(operator)))
            text = f" {operator.symbol} ".join(texts) or NOISE_NAME
        else:
            children, texts = trees, tuple(operand.canonical for operand in trees)
            text = _joined(operator, trees, texts, "" if column is None else f"[{column}]")
        put = object.__setattr__
        put(self, "operator", operator)
        put(self, "operands", trees)
        put(self, "column", column)
        put(self, "canonical", text)
        put(self, "n_leaves", len(leaves))
        put(self, "n_subtrees", 1 + sum(operand.n_subtrees for operand in trees))
        put(self, "leaves", leaves)
        put(self, "children", children)
        put(self, "_child_texts", texts)
        parameters = operator.parameters or any(one._has_parameters for one in trees)
        put(self, "_has_parameters", bool(parameters))
        # Equal trees have equal texts; unlike hash(), crc32 is the same in every process.
        put(self, "_hash", crc32(text.encode()))

    @property
    def declared(self) -> Operator:
        return self.operator

    def join(self, terms: Sequence[Tree]) -> Tree:
        """Join one or more terms by the same operator, from the left if it commutes."""
        if not self.operator.commutes:
            return Operation(self.operator, *terms, column=self.column)
        return reduce(lambda left, right: Operation(self.operator, left, right), terms)

    def with_child(self, number: int, *new: Tree) -> Tree:
        """Return the operation with others in the place of one of its children."""
        return self.join([*self.children[:number], *new, *self.children[number + 1 :]])

    @property
    def _parts(self) -> "list[Leaf | tuple[BaseKernel | Operator, int, int | None]]":
        """Its subtrees in order, each a leaf, or an operator with its number of operands."""
        return [
            one if isinstance(one, Leaf) else (one.declared, len(one.operands), one.column)
            for one in self.subtrees()
        ]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Operation) or self._hash != other._hash:
            return False
        return self is other or self._parts == other._parts

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return _assembled, (self._parts,)  # the rest is computed


def _assembled(parts: Sequence[Leaf | tuple[Operator, int, int | None]]) -> Tree:
    """Make a tree of its subtrees, each a leaf or an operator that joins some operands."""
    made: list[Tree] = []
    for part in reversed(parts):
        if isinstance(part, Leaf):
            made.append(part)
        else:
            operator, n_operands, column = part
            operands = [made.pop() for _ in range(n_operands)]
            made.append(Operation(operator, *operands, column=column))
    return made[0]


def _checked_operation(
    operator: Operator, operands: Sequence[Expression], column: int | None
) -> tuple[int | None, tuple[Tree, ...]]:
    """Check an operator and its operands, and return its column and these trees."""
    # isinstance takes long with an abstract class
    if operator is not ADD and operator is not MULTIPLY and not isinstance(operator, Operator):
        raise TypeError(f"operator must be an Operator object, got {operator!r}")
    if len(operands) != operator.n_operands and (operands or operator != ADD):
        raise ValueError(
            f"{operator.symbol} must have {operator.n_operands} operands, got {len(operands)}"
        )
    trees: list[Tree] = []
    for operand in operands:
        if isinstance(operand, OnScale):
            raise ValueError(
                f"{operator.symbol} must join kernels without a scale of the target, which is that "
                f"of a whole kernel, got {operand}"
            )
        if not isinstance(operand, (Leaf, Operation)):
            raise TypeError(f"{operator.symbol} must join Expression objects, got {operand!r}")
        if not operand.n_leaves:
            raise ValueError(
                f"{operator.symbol} must join kernels that have leaves: {STANDS_ALONE}"
            )
        trees.append(operand)
    if operator.acts_on_column:
        return _checked_column(column), tuple(trees)
    if column is not None:
        raise ValueError(f"{operator.symbol} acts on no column, got column={column!r}")
    return None, tuple(trees)


def _checked_column(column: object) -> int:
    if isinstance(column, bool) or not isinstance(column, Integral):
        raise ValueError(f"column must be a zero-based index, got {column!r}")
    if column < 0:
        raise ValueError(f"column must not be negative, got {column}")
    return int(column)


def _joined(operator: Operator, operands: Sequence[Tree], texts: Sequence[str], where: str) -> str:
    """Join texts of operands; as signs group to the left, later ones must bind more tightly."""
    if operator.is_word:
        return f"{operator.symbol}{where}({', '.join(texts)})"
    bracketed = [
        _in_brackets(text, operand, operator, is_first=number == 0)
        for number, (text, operand) in enumerate(zip(texts, operands, strict=True))
    ]
    return f" {operator.symbol} ".join(bracketed) or NOISE_NAME


def _check_scale(argument: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise ValueError(f"{argument} must be one of {[*known]}, got {name!r}")


def _in_brackets(text: str, operand: Tree, outer: Operator, *, is_first: bool = True) -> str:
    """Put the text of an operand in brackets if its operator does not bind tightly enough."""
    if not isinstance(operand, Operation) or operand.operator.is_word:
        return text
    inner = operand.operator
    is_tight = inner.precedence > outer.precedence or (is_first and inner == outer)
    return text if is_tight else f"({text})"


NOISE = Operation(ADD)
"""The null model, which has no structure but noise."""


class Slot(NamedTuple):
    """A node of an expression and the entries of theta that hold its parameters."""

    node: Tree
    entries: slice


def slots_of(expression: Expression) -> list[Slot]:
    """List the nodes with their entries of theta, in the order of ``Expression.nodes``."""
    nodes = expression.nodes
    bounds = pairwise(accumulate((len(node.parameters) for node in nodes), initial=0))
    return [Slot(node, slice(*ends)) for node, ends in zip(nodes, bounds, strict=True)]


def n_kernel_params(expression: Expression) -> int:
    """Count the parameters of an expression, without the noise variance."""
    return sum(len(node.parameters) for node in expression.nodes)


def theta_order(expression: Expression, nodes: Sequence[int]) -> IntArray:
    """Return the order of theta's entries for an order of the nodes, noise variance last."""
    entries = [np.arange(one.start, one.stop) for _, one in slots_of(expression)]
    return np.concatenate([*(entries[node] for node in nodes), [n_kernel_params(expression)]])


def fold(
    expression: Expression,
    params: Params,
    leaf: Callable[[Leaf, Params], Result],
    join: Callable[[Operation, Params, list[Result]], Result],
) -> Result:
    """Compute a result for an expression from the results of its operands.

    ``params`` (n_params,), or indices of them, are without the noise variance. ``leaf`` gets the
    parameters of a leaf, and ``join`` those of an operator and the results of its operands.
    """
    own = [params[entries] for _, entries in slots_of(expression)]
    return fold_nodes(
        expression,
        lambda tree, node: leaf(tree, own[node]),
        lambda tree, node, below: join(tree, params[:0] if node is None else own[node], below),
    )


def fold_nodes(
    expression: Expression,
    leaf: Callable[[Leaf, int], Result],
    join: Callable[[Operation, int | None, list[Result]], Result],
) -> Result:
    """Compute a result for an expression from the results of its operands.

    ``leaf`` and ``join`` get the index of a tree among ``Expression.nodes``, None for an operator
    without parameters.
    """
    nodes, results = count(), list[Result]()
    above: list[tuple[Operation, int | None, int]] = []  # with the number of results before each
    for tree in expression.subtrees():
        if isinstance(tree, Leaf):
            results.append(leaf(tree, next(nodes)))
        elif isinstance(tree, Operation):
            above.append((tree, next(nodes) if tree.parameters else None, len(results)))
        while above and len(results) == above[-1][2] + len(above[-1][0].operands):
            operation, node, start = above.pop()
            results[start:] = [join(operation, node, results[start:])]
    return results[0]
