from fractions import Fraction

import pytest

from autokernel import parse_expression
from autokernel.search.distances import tree_features

# SOT appendix B: MULT(LIN, ADD(MULT(PER, SE), SE)) and MULT(ADD(LIN, SE), ADD(MULT(PER, LIN), SE))
FIRST = "LIN[0] * (PER[0] * SE[0] + SE[0])"
SECOND = "(LIN[0] + SE[0]) * (PER[0] * LIN[0] + SE[0])"


def features_of(expression):
    """Read the features with a reader that has kept nothing."""
    return tree_features(expression)


def multiset(frequencies, size):
    """Whole counts of a multiset of known size."""
    counts = {element: value * size for element, value in frequencies.items()}
    assert all(count == round(count) for count in counts.values())  # sevenths and ninths round back
    return {element: round(count) for element, count in counts.items()}


@pytest.mark.parametrize(
    ("text", "n_leaves", "base"),
    [
        (FIRST, 4, {("LIN[0]", 0): 1, ("SE[0]", 0): 2, ("PER[0]", 0): 1}),
        (SECOND, 5, {("LIN[0]", 0): 2, ("SE[0]", 0): 2, ("PER[0]", 0): 1}),
    ],
)
def test_base_kernels_are_those_of_appendix_b(text, n_leaves, base):
    assert multiset(features_of(parse_expression(text)).base, n_leaves) == base


@pytest.mark.parametrize(
    ("text", "n_leaves", "paths"),
    [
        (FIRST, 4, {"*+*PER[0]": 1, "*+*SE[0]": 1, "*+SE[0]": 1, "*LIN[0]": 1}),
        (SECOND, 5, {"*+*PER[0]": 1, "*+*LIN[0]": 1, "*+SE[0]": 2, "*+LIN[0]": 1}),
    ],
)
def test_paths_are_those_of_appendix_b(text, n_leaves, paths):
    assert multiset(features_of(parse_expression(text)).paths, n_leaves) == paths


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        # the tree, the sum, the product, LIN and PER once each, SE twice
        (FIRST, [1, 1, 1, 1, 1, 2]),
        # the tree, the two sums, the product and PER once each, LIN and SE twice
        (SECOND, [1, 1, 1, 1, 1, 2, 2]),
    ],
)
def test_subtrees_are_those_of_appendix_b(text, counts):
    expression = parse_expression(text)
    found = multiset(features_of(expression).subtrees, expression.n_subtrees)
    assert sorted(found.values()) == counts
    assert found["SE[0]"] == 2
    assert found["PER[0]"] == 1


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("SE[0]", {"SE[0]": 1}),
        ("SE[0] + LIN[0]", {"+SE[0]": 1, "+LIN[0]": 1}),
        ("SE[0] + LIN[0] + PER[0]", {"+SE[0]": 1, "+LIN[0]": 1, "+PER[0]": 1}),
        ("SE[0] + (LIN[0] + PER[0])", {"+SE[0]": 1, "+LIN[0]": 1, "+PER[0]": 1}),
        (
            "SE[0] * (LIN[0] * (PER[0] + (RQ[0] + SE[1])))",
            {"*SE[0]": 1, "*LIN[0]": 1, "*+PER[0]": 1, "*+RQ[0]": 1, "*+SE[1]": 1},
        ),
    ],
)
def test_runs_of_one_operator_count_once_in_a_path(text, paths):
    expression = parse_expression(text)
    assert multiset(features_of(expression).paths, expression.n_leaves) == paths


def test_operators_that_alternate_are_all_kept():
    features = features_of(parse_expression("((SE[0] * LIN[0] + PER[0]) * RQ[0] + SE[0]) * SE[1]"))
    assert "*+*+*LIN[0]" in features.paths


@pytest.mark.parametrize(
    ("text", "commuted"),
    [
        ("SE[0] + LIN[0]", "LIN[0] + SE[0]"),
        (FIRST, "(SE[0] + SE[0] * PER[0]) * LIN[0]"),
        (SECOND, "(LIN[0] * PER[0] + SE[0]) * (SE[0] + LIN[0])"),
    ],
)
def test_left_and_right_may_swap(text, commuted):
    assert features_of(parse_expression(text)) == features_of(parse_expression(commuted))


def test_operators_are_told_apart_in_paths_and_subtrees():
    added, multiplied = (features_of(parse_expression(f"SE[0] {op} LIN[0]")) for op in "+*")
    assert added.base == multiplied.base
    assert not added.paths.keys() & multiplied.paths.keys()
    assert added.subtrees.keys() & multiplied.subtrees.keys() == {"SE[0]", "LIN[0]"}


def test_frequencies_of_base_kernels_sum_to_one_in_every_used_column():
    base = features_of(parse_expression("SE[0] + SE[0] + LIN[0] + RQ[2]")).base
    assert {e: Fraction(v).limit_denominator(100) for e, v in base.items()} == {
        ("SE[0]", 0): Fraction(2, 3),
        ("LIN[0]", 0): Fraction(1, 3),
        ("RQ[2]", 2): Fraction(1),
    }
