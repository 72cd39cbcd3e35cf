"""Searches that go on after their pruning, and end early."""

import pytest

from autokernel.deadline import Deadline
from tests.search.test_pruning import LATE, Diary, laboratory, signature

__all__ = ["laboratory"]  # a fixture


@pytest.mark.parametrize("ended_by", ["deadline", "observer"])
def test_a_search_that_goes_on_and_ends_early_keeps_what_pruning_had_found(laboratory, ended_by):
    """The best kernel of the pruning is not lost where the next search proposes nothing in time."""
    proposals = [LATE, "LIN[0] * PER[0]"]
    subject = laboratory({LATE: 1.0, "PER[0]": 2.0}, fixed=["SE[0]"], proposals=proposals)
    subject.search(n_iter=1)
    assert subject.history.best.expression.canonical == "PER[0]"
    before = signature(subject.history)
    if ended_by == "deadline":
        subject.search(n_iter=2, deadline=Deadline(0.0))
        assert signature(subject.history) == before
    else:
        subject.search(n_iter=2, observer=Diary(3, lambda: True))
        assert {text for text, _ in before} <= {text for text, _ in signature(subject.history)}
    assert subject.history.best.expression.canonical == "PER[0]"


def test_an_exhausted_search_does_not_prune_again(laboratory):
    subject = laboratory({LATE: 1.0, "PER[0]": 2.0}, fixed=["SE[0]"], proposals=[LATE])
    subject.search(n_iter=5)
    n_rounds = len(subject.rounds)
    subject.search(n_iter=5)
    assert len(subject.rounds) == n_rounds
