"""Priors over structures: how probable an expression is before any data are seen."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from math import comb, log

from autokernel.expression.tree import NOISE, Expression, Leaf, Operation
from autokernel.kernels import ADD, MULTIPLY, Operator

_GROUPING = (ADD, MULTIPLY)


class StructurePrior(ABC):
    """The log prior of an expression, in nats."""

    @abstractmethod
    def __call__(self, expression: Expression) -> float:
        """Compute the log prior of an expression."""


@dataclass(frozen=True, slots=True)
class UniformPrior(StructurePrior):
    """All expressions are equally probable."""

    def __call__(self, expression: Expression) -> float:  # noqa: ARG002 - the same for all
        """Return zero."""
        return 0.0


@dataclass(frozen=True, slots=True)
class UnitPrior(StructurePrior):
    """Every unit has a price: a product of one base kernel over all columns, or any other leaf."""

    nats: float  # price of a unit
    n_columns: int

    def __call__(self, expression: Expression) -> float:
        """Compute minus the price of all units."""
        sizes = units_of(expression, (MULTIPLY,))
        n_units = sum(1 if size == self.n_columns else size for size in sizes)
        return -self.nats * n_units


@dataclass(frozen=True, slots=True)
class GrammarPrior(StructurePrior):
    """The probability under a grammar that generates expressions, to the power of ``strength``.

    A target is noise alone with probability 1/2. Otherwise an expression is generated: it is a unit
    with probability 1/2, and else two expressions joined by an operator, each operator being
    equally probable. A unit is one base kernel over a set of columns: the product, or the sum, over
    these columns, each with probability 1/2. The base kernel, the number of columns, and the
    columns given their number are uniformly distributed. The probability is that of one derivation:
    the orders of the operands are not added up.
    """

    n_kernels: float  # for a column, on average where columns differ
    n_operators: int
    n_columns: int
    strength: float = 0.5  # chosen with benchmarks/structure_prior.py, see docs/theory.md

    def __call__(self, expression: Expression) -> float:
        """Compute the log prior of an expression."""
        if expression == NOISE:
            return -self.strength * log(2)
        sizes, n_choices = _units_and_choices(expression, _GROUPING)
        price = log(2) + (2 * len(sizes) - 1) * log(2)  # not noise; a unit or an operation
        price += (len(sizes) - 1) * log(max(1, self.n_operators))
        for size in sizes:
            n_columns = max(self.n_columns, size)  # a kernel by hand may use constant columns too
            price += log(self.n_kernels) + log(n_columns) + log(comb(n_columns, size))
            price += log(2) if size > 1 else 0.0  # a product or a sum
        return -self.strength * (price + n_choices * log(max(1, self.n_columns)))


def units_of(expression: Expression, grouping: Collection[Operator] = _GROUPING) -> list[int]:
    """List the units of an expression by their numbers of columns.

    Leaves that an operator in ``grouping`` joins, and that are one base kernel on different
    columns, form one unit. If a column occurs twice, its second leaf belongs to another unit.
    """
    return _units_and_choices(expression, grouping)[0]


def _units_and_choices(
    expression: Expression, grouping: Collection[Operator]
) -> tuple[list[int], int]:
    """List the units of an expression, and count the operators that act on a column."""
    if isinstance(expression, Leaf):
        return [1], 0
    if not isinstance(expression, Operation):
        return [], 0
    operator = expression.operator
    groups = operator in grouping
    units: list[int] = []
    n_choices = 0 if expression.column is None else 1
    columns: dict[str, list[int]] = {}  # of the leaves that are terms, by base kernel
    waiting = list(expression.operands)
    while waiting:
        term = waiting.pop()
        if groups and isinstance(term, Leaf):
            columns.setdefault(term.kernel.name, []).append(term.column)
        elif groups and isinstance(term, Operation) and term.operator == operator:
            waiting += term.operands
        else:
            of_term = _units_and_choices(term, grouping)
            units += of_term[0]
            n_choices += of_term[1]
    for of_kernel in columns.values():
        while of_kernel:
            unit = set(of_kernel)
            units.append(len(unit))
            for column in unit:
                of_kernel.remove(column)
    return units, n_choices
