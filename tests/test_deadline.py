import pickle
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import autokernel
from autokernel import deadline as deadline_module
from autokernel.deadline import NEVER, Deadline
from autokernel.exceptions import AutoKernelError, OutOfTimeError

ARRIVE_AND_PRINT = """
import pickle, sys
deadline = pickle.loads(bytes.fromhex(sys.argv[1]))
print(deadline.seconds_left, deadline.has_passed)
"""


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now=1000.0):
        self.now = now

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(deadline_module, "time", clock)
    return clock


def test_it_passes_after_its_seconds(clock):
    deadline = Deadline(5.0)
    left = []
    for now in (1000.0, 1004.5, 1005.0, 1007.0):
        clock.now = now
        left.append((deadline.seconds_left, deadline.has_passed))
    assert left == [(5.0, False), (0.5, False), (0.0, True), (-2.0, True)]


def test_checking_raises_once_it_has_passed(clock):
    deadline = Deadline(5.0)
    clock.now += 4.0
    deadline.check()
    clock.now += 1.0
    with pytest.raises(OutOfTimeError, match="the time for this evaluation is over"):
        deadline.check()


def test_its_error_is_a_timeout_and_one_of_the_package():
    assert issubclass(OutOfTimeError, TimeoutError)
    assert issubclass(OutOfTimeError, AutoKernelError)


def test_an_earlier_one_passes_so_much_earlier_and_leaves_the_first_alone(clock):
    deadline = Deadline(5.0)
    clock.now += 1.0
    earlier = deadline.earlier(3.0)
    assert (deadline.seconds_left, earlier.seconds_left) == (4.0, 1.0)
    assert deadline.earlier(4.0).has_passed
    assert not deadline.has_passed


def test_never_is_never():
    assert NEVER.seconds_left == float("inf")
    for deadline in (NEVER, NEVER.earlier(1e9), pickle.loads(pickle.dumps(NEVER))):
        assert deadline.seconds_left == float("inf")
        assert not deadline.has_passed
        deadline.check()


def test_time_on_the_way_counts_on_the_same_machine(clock):
    sent = pickle.dumps(Deadline(5.0))
    clock.now += 4.0
    assert pickle.loads(sent).seconds_left == 1.0
    clock.now += 1.5
    assert pickle.loads(sent).has_passed


@pytest.mark.parametrize("zero", [-500.0, 3.0, 9000.0])
def test_on_another_machine_it_allows_what_was_left_as_it_was_sent(clock, monkeypatch, zero):
    monkeypatch.setattr(platform, "node", lambda: "here")
    deadline = Deadline(5.0)
    clock.now += 1.0
    sent = pickle.dumps(deadline)
    monkeypatch.setattr(platform, "node", lambda: "there")
    clock.now = zero  # of a clock that tells nothing about ours
    arrived = pickle.loads(sent)
    assert arrived.seconds_left == 4.0
    clock.now += 4.0
    assert arrived.has_passed


def test_it_may_travel_on_from_another_machine(clock, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "here")
    sent = pickle.dumps(Deadline(5.0))
    monkeypatch.setattr(platform, "node", lambda: "there")
    clock.now = 0.0
    sent_on = pickle.dumps(pickle.loads(sent))
    clock.now += 2.0
    assert pickle.loads(sent_on).seconds_left == 3.0  # within that machine, the way counts


@pytest.mark.parametrize("seconds", [1000.0, -1000.0])
def test_it_keeps_its_moment_in_another_process(seconds):
    deadline = Deadline(seconds)
    sent = pickle.dumps(deadline).hex()
    before = deadline.seconds_left
    output = subprocess.run(
        [sys.executable, "-c", ARRIVE_AND_PRINT, sent],
        cwd=Path(autokernel.__file__).parent.parent,  # where it finds the package under test
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    left, has_passed = output.split()
    # looked at between our two looks; 1e-6 for rounding
    assert deadline.seconds_left - 1e-6 <= float(left)
    assert float(left) < before - 0.01  # no process starts and imports in less
    assert has_passed == str(seconds < 0)
