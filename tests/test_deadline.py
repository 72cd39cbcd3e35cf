"""The deadline of a fit, which travels to other processes and machines."""

import math
import pickle
import time

import pytest

from autokernel.deadline import NEVER, Deadline
from autokernel.exceptions import AutoKernelError, OutOfTimeError

ROUNDING = 1e-6  # of differences of clocks that show days


def sent_away(deadline, *, to="another machine", zero=0.0):
    """Arrive at a machine with this name, if the sender had another one and another clock."""
    rebuild, (moment, seconds_left, _) = deadline.__reduce__()
    return rebuild(moment + zero, seconds_left, to)


def test_it_passes_after_its_seconds():
    deadline = Deadline(0.05)
    assert 0 < Deadline(50.0).seconds_left <= 50.0
    later, sooner = deadline.earlier(-50.0), Deadline(50.0).earlier(30.0)
    assert later.seconds_left <= 0.05  # none is later than that which it was made from
    assert 0 < sooner.seconds_left <= 20.0
    while not deadline.has_passed:
        assert deadline.seconds_left <= 0.05
        time.sleep(0.01)
    assert deadline.seconds_left <= 0
    assert Deadline(0.0).has_passed
    with pytest.raises(OutOfTimeError, match="the time is over") as info:
        deadline.check()
    assert isinstance(info.value, TimeoutError)
    assert isinstance(info.value, AutoKernelError)


@pytest.mark.parametrize("zero", [-5000.0, 3.0, 9000.0])
@pytest.mark.parametrize("seconds", [1000.0, -1000.0])
def test_on_another_machine_it_allows_what_was_left_as_it_was_sent(seconds, zero):
    deadline = Deadline(seconds)
    for arrived in (sent_away(deadline, zero=zero), sent_away(sent_away(deadline), zero=zero)):
        # what the way takes is not known: no more is left than at first
        left = arrived.seconds_left  # read first, as time goes on
        assert deadline.seconds_left - ROUNDING <= left <= seconds
        assert arrived.has_passed == (seconds < 0)


def test_time_on_the_way_counts_on_the_same_machine():
    for deadline in (Deadline(1000.0), sent_away(Deadline(1000.0))):
        sent = pickle.dumps(deadline)
        time.sleep(0.05)
        before = deadline.seconds_left
        arrived = pickle.loads(sent)
        assert deadline.seconds_left - ROUNDING <= arrived.seconds_left <= before + ROUNDING


def test_an_earlier_one_passes_earlier_and_leaves_the_first_as_it_was():
    deadline = Deadline(1000.0)
    earlier = deadline.earlier(300.0)
    before, left, after = deadline.seconds_left, earlier.seconds_left, deadline.seconds_left
    assert after - 300 - ROUNDING <= left <= before - 300 + ROUNDING
    assert deadline.earlier(1000.0).has_passed
    assert not deadline.has_passed


def test_it_can_be_cancelled_but_never_is_never():
    deadline = Deadline(1000.0)
    deadline.cancel()
    assert deadline.has_passed
    for other in (NEVER, NEVER.earlier(1e9), pickle.loads(pickle.dumps(NEVER)), sent_away(NEVER)):
        assert other.seconds_left == math.inf
        assert not other.has_passed
        other.check()


def test_the_time_of_a_step_is_expected_from_the_largest_one_of_its_kind():
    deadline = Deadline(1000.0)
    assert deadline.expected_seconds("step", 5.0) == 0.0  # nothing is known
    with deadline.timed("step", 2.0):
        time.sleep(0.05)
    expected = deadline.expected_seconds("step", 2.0)
    assert expected >= 0.05
    assert deadline.expected_seconds("step", 6.0) == pytest.approx(3 * expected)
    assert deadline.expected_seconds("other", 2.0) == 0.0
    for quick in (2.0, 1.0):  # the longest one of the largest counts, on one clock for all
        with deadline.earlier(1.0).timed("step", quick):
            pass
        assert deadline.expected_seconds("step", 2.0) == expected
    with pytest.raises(OutOfTimeError), deadline.timed("step", 1e9):
        pytest.fail("a step begins that takes years")
    with deadline.share(0.5).timed("step", 4.0):  # a larger one is known better
        pass
    assert deadline.expected_seconds("step", 2.0) < 0.05
