"""The order in which simpler forms of the best kernel are tried."""

from tests.search.test_pruning import laboratory

__all__ = ["laboratory"]  # a fixture


def test_a_change_that_was_cheap_before_is_tried_first_and_a_dear_one_last(laboratory):
    """Losses of factors: 9, 5, 0.3, 0.2, and then a gain, with which pruning goes on."""
    big = "SE[0] * SE[1] * SE[2] * SE[3] * SE[4]"
    losses = {0: 9.0, 1: 5.0, 2: 0.3, 3: 0.2, 4: -1.0}
    subject = laboratory({}, fixed=[big], n_features=5)

    def score(expression):
        gone = set(losses) - {leaf.column for leaf in expression.leaves}
        return -sum(losses[column] for column in gone) if expression.n_leaves > 2 else -50.0

    subject.score = score
    subject.search()
    removals = [set(range(5)) - {int(c) for c in text if c.isdigit()} for text in subject.pruned()]
    assert removals == [{0}, {1}, {2}, {3}, {4}, {3, 4}, {2, 4}, {1, 4}, {0, 4}]
