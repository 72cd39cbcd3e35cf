"""Priors over structures: how probable an expression is before any data are seen."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from math import comb, log
from types import MappingProxyType

from autokernel.expression.tree import IDENTITY, Expression, Leaf, Tree
from autokernel.kernels import ADD, LINEAR, MULTIPLY, Operator

PROBABILITY_OF_IDENTITY = 0.8  # of a column or a target that has other scales
PROBABILITY_OF_LINES = 0.01  # of a product of functions of several columns: that one is a line

StructurePrior = Callable[[Expression], float]
"""The log prior of an expression, in nats; it must be importable by worker processes."""


def uniform_prior(expression: Expression) -> float:  # noqa: ARG001 - the same for all
    """Return zero for every expression."""
    return 0.0


def unit_prior(expression: Expression, *, nats: float, n_columns: int) -> float:
    """Return minus ``nats`` for each unit.

    A unit is a product of one base kernel over all columns, but not of lines, or any other leaf.
    """
    units = _units(expression.tree, (MULTIPLY,))
    return -nats * sum(1 if size == n_columns else size for size, *_ in units)


def grammar_prior(
    expression: Expression,
    *,
    n_kernels: float,
    n_operators: int,
    n_columns: int,
    n_scales: Mapping[int, int] = MappingProxyType({}),
    n_targets: int = 1,
    strength: float = 0.5,
) -> float:
    """Return the log probability under a grammar that generates expressions, times ``strength``.

    A target is only noise with probability 1/2. Otherwise an expression is generated: it is a unit
    with probability 1/2, and else two expressions joined by an operator, each operator being
    equally probable. A unit is one base kernel over a set of columns: the product, or the sum, over
    these columns, each with probability 1/2. Lines on several columns are always a sum: their
    product is a polynomial, each line of which is a unit. Where functions of several columns are
    multiplied, one of them is a line with probability :data:`PROBABILITY_OF_LINES`, since beyond
    the data such products grow without bound. The base kernel, the number of columns, and the
    columns given their number are uniformly distributed; on a category, the kernel of its levels
    stands for any base kernel. The probability is that of one derivation: the orders of the
    operands are not added up. ``n_kernels`` is the number of base kernels on a column of numbers,
    the average if columns differ. Scales are as probable as :func:`scale_prior` says. The power
    ``strength`` of the probability and the price of lines were chosen by measurements, see
    docs/theory.md.
    """
    of_scales = strength * scale_prior(expression, n_scales, n_targets)
    if not expression.leaves:
        return of_scales - strength * log(2)
    units = _units(expression.tree, (ADD, MULTIPLY))
    n_choices = sum(one.column is not None for one in expression.subtrees()) - expression.n_leaves
    price = log(2) + (2 * len(units) - 1) * log(2)  # not noise; a unit or an operation
    price += (len(units) - 1) * log(max(1, n_operators))
    for size, is_of_numbers, n_lines in units:
        n_possible = max(n_columns, size)  # a kernel by hand may use constant columns too
        price += log(n_kernels) if is_of_numbers else 0.0
        price += log(n_possible) + log(comb(n_possible, size))
        price += log(2) if size > 1 and n_lines < 2 else 0.0  # a product or a sum
    price -= _products_with_lines(expression.tree) * log(PROBABILITY_OF_LINES)
    return of_scales - strength * (price + n_choices * log(max(1, n_columns)))


def scale_prior(expression: Expression, n_scales: Mapping[int, int], n_targets: int) -> float:
    """Return the log probability of the scales of an expression, given its columns.

    ``n_scales`` has the number of scales of each column that has several, and ``n_targets`` is that
    of the target. A column, or the target, is as it is with probability
    :data:`PROBABILITY_OF_IDENTITY`; the other scales share the rest. A column on several scales has
    each of them.
    """

    def price(scale: str, n: int) -> float:
        if n < 2:
            return 0.0
        rest = 1 - PROBABILITY_OF_IDENTITY
        return log(PROBABILITY_OF_IDENTITY if scale == IDENTITY else rest / (n - 1))

    views = {leaf.view for leaf in expression.leaves if not leaf.has_period}
    prices = [price(view.scale, n_scales.get(view.column, 1)) for view in views]
    return price(expression.target, n_targets) + sum(sorted(prices))


def _products_with_lines(tree: Tree) -> int:
    """Count the products in which a line is multiplied with a function of another column."""
    factors = tree.children
    count = sum(map(_products_with_lines, factors))
    if tree.declared != MULTIPLY:
        return count
    numeric = [{leaf.column for leaf in _numeric_leaves(one)} for one in factors]
    lines = [set().union(*map(_columns_of_lines, one.terms(ADD))) for one in factors]
    is_with_others = any(
        i != j and of_lines and columns and len(of_lines | columns) > 1
        for i, of_lines in enumerate(lines)
        for j, columns in enumerate(numeric)
    )
    return count + is_with_others


def _numeric_leaves(tree: Tree) -> list[Leaf]:
    return [leaf for leaf in tree.leaves if not leaf.kernel.is_categorical]


def _columns_of_lines(term: Tree) -> set[int]:
    """Return the columns of a term that is made of lines, also if they differ between levels."""
    leaves = _numeric_leaves(term)
    return {leaf.column for leaf in leaves} if all(map(_is_line, leaves)) else set()


def _is_line(leaf: Leaf) -> bool:
    return leaf.kernel.name == LINEAR.name


_Unit = tuple[int, bool, int]
"""Its number of columns, whether any has numbers, and the number of columns on which it is LIN."""


def _units(tree: Tree, grouping: Collection[Operator]) -> list[_Unit]:
    """List the units.

    Leaves that an operator in ``grouping`` joins, and that are one base kernel on different
    columns, form one unit, but for lines that are multiplied. If a column occurs twice, its second
    leaf belongs to another unit. A leaf on a category belongs to the largest unit without its
    column.
    """
    if isinstance(tree, Leaf):
        return [(1, not tree.kernel.is_categorical, int(_is_line(tree)))]
    terms = tree.children if tree.declared in grouping else ()
    grouped = [term for term in terms if isinstance(term, Leaf)]
    units = [one for t in tree.children if t not in grouped for one in _units(t, grouping)]
    return units + _units_of_leaves(grouped, are_factors=tree.declared == MULTIPLY)


def _units_of_leaves(leaves: Sequence[Leaf], *, are_factors: bool) -> list[_Unit]:
    numeric = [leaf for leaf in leaves if not leaf.kernel.is_categorical]
    columns: dict[tuple[str, int], list[int]] = {}
    for leaf in numeric:
        group = leaf.kernel.name, leaf.column if are_factors and _is_line(leaf) else -1
        columns.setdefault(group, []).append(leaf.column)
    names = sorted(columns, key=lambda group: (-len(columns[group]), group))
    groups = [columns[group] for group in names] or [[]]
    n_lines = [len(columns[group]) if group[0] == LINEAR.name else 0 for group in names] or [0]
    for column in sorted(leaf.column for leaf in leaves if leaf.kernel.is_categorical):
        next((one for one in groups if column not in one), groups[0]).append(column)
    units: list[_Unit] = []
    for own_columns, n_own in zip(groups, n_lines, strict=True):
        counts, of_lines = Counter(own_columns).values(), Counter(own_columns[:n_own]).values()
        for number in range(max(counts, default=0)):
            size, lines = (sum(times > number for times in own) for own in (counts, of_lines))
            units.append((size, bool(numeric), lines))
    return units
