from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.search.sot import SOTKernel

FIRST = "LIN[0] * (PER[0] * SE[0] + SE[0])"
SECOND = "(LIN[0] + SE[0]) * (PER[0] * LIN[0] + SE[0])"


def distances(first, second):
    return SOTKernel().distances([parse_expression(first)], [parse_expression(second)])[:, 0, 0]


# A second implementation, in exact fractions and without any text as a key.


def frequencies(elements):
    counts = Counter(elements)
    return {element: Fraction(count, counts.total()) for element, count in counts.items()}


def total_variation(one, other):
    return sum(abs(one.get(e, 0) - other.get(e, 0)) for e in one.keys() | other.keys()) / 2


def bases(expression, column):
    kernels = [leaf.kernel for leaf in expression.leaves if leaf.column == column]
    return frequencies(kernels or ["none"])


def paths(expression, above=()):
    if expression.n_leaves == 1:
        return [(*above, expression)]
    if above[-1:] != (expression.operator,):
        above = (*above, expression.operator)
    return [path for operand in expression.operands for path in paths(operand, above)]


def shape(expression):
    """A value that is equal for trees that differ by swaps of left and right."""
    if expression.n_leaves == 1:
        return expression
    sides = Counter(map(shape, expression.operands))
    return (expression.operator, frozenset(sides.items()))


def exact_distances(one, other, n_features):
    return [
        sum(total_variation(bases(one, c), bases(other, c)) for c in range(n_features)),
        total_variation(frequencies(paths(one)), frequencies(paths(other))),
        total_variation(
            frequencies(map(shape, one.subtrees())), frequencies(map(shape, other.subtrees()))
        ),
    ]


def test_distances_of_appendix_b():
    # sums of a few fractions, to rounding
    assert distances(FIRST, SECOND) == pytest.approx([3 / 20, 11 / 20, 11 / 21], rel=1e-12)


@pytest.mark.parametrize(
    ("text", "paths", "subtrees"),
    [
        # the tree, the sum, the product, LIN and PER once each, SE twice
        (FIRST, {"*+*PER[0]": 1, "*+*SE[0]": 1, "*+SE[0]": 1, "*LIN[0]": 1}, [1, 1, 1, 1, 1, 2]),
        # the tree, the two sums, the product and PER once each, LIN and SE twice
        (
            SECOND,
            {"*+*PER[0]": 1, "*+*LIN[0]": 1, "*+SE[0]": 2, "*+LIN[0]": 1},
            [1, 1, 1, 1, 1, 2, 2],
        ),
    ],
)
def test_paths_and_subtrees_are_those_of_appendix_b(text, paths, subtrees):
    expression = parse_expression(text)
    _, found, keys = SOTKernel().frequencies(expression)
    n, n_trees = expression.n_leaves, expression.n_subtrees
    assert found == pytest.approx({path: count / n for path, count in paths.items()})
    assert sorted(keys.values()) == pytest.approx([count / n_trees for count in subtrees])


def test_kernel_of_appendix_b():
    shares, lengthscale = np.array([0.5, 0.2, 0.3]), 0.7
    logits = np.log(shares / (1 - shares))  # their sigmoids are the shares, the sum is one
    kernel = SOTKernel()
    weights, _ = kernel.weights(np.array([2 * np.log(lengthscale), *logits]))
    D = kernel.distances([parse_expression(FIRST)], [parse_expression(SECOND)])
    distance = 0.5 * 3 / 20 + 0.2 * 11 / 20 + 0.3 * 11 / 21
    # SOT eq. 4, to rounding
    assert np.exp(-weights @ D[:, 0, 0]) == pytest.approx(np.exp(-distance / 0.49), rel=1e-12)


@pytest.mark.parametrize("n_features", [1, 3])
def test_distances_agree_with_exact_fractions(n_features, random_expressions):
    expressions = random_expressions(40, n_features=n_features, seed=n_features)
    expected = np.array(
        [[exact_distances(e, f, n_features) for f in expressions] for e in expressions], float
    )
    computed = SOTKernel().distances(expressions)
    # at most a few dozen terms of size one
    np.testing.assert_allclose(computed, np.moveaxis(expected, -1, 0), atol=1e-14)


def test_an_unused_column_counts_as_null():
    # column 0: SE against nothing, column 1: nothing against SE
    assert list(distances("SE[0]", "SE[1]")) == [2, 1, 1]
    # column 0: the same, column 1: nothing against SE
    assert distances("SE[0]", "SE[0] + SE[1]")[0] == 1
