"""How many threads BLAS takes while kernels are evaluated."""

import threading
from contextlib import suppress

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from autokernel.inference import one_blas_thread
from tests.fits import At, interrupt, small, wave

SOON = 30.0  # seconds: a thread that waits longer for another one is taken for one that hangs


def n_blas_threads():
    """Threads of each BLAS library."""
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


@pytest.fixture(autouse=True)
def two_threads():
    """Begin with two threads, whatever the machine has."""
    limits = threadpool_limits(2, user_api="blas")
    _release()
    if n_blas_threads() != {2}:
        pytest.skip("the threads of this BLAS cannot be set")
    yield
    limits.restore_original_limits()
    _release()


def _release():
    """Let other threads set the number too: the one that has done so keeps the right to it."""
    with threadpool_limits():
        pass


class Guest(threading.Thread):
    """Enters on its start and leaves when it may, and lives on as those of a pool do."""

    def __init__(self):
        super().__init__(daemon=True)
        self.entered, self.may_leave, self.has_left, self.may_end = (
            threading.Event() for _ in range(4)
        )

    def run(self):
        with one_blas_thread():
            self.entered.set()
            self.may_leave.wait(SOON)
        self.has_left.set()
        self.may_end.wait(SOON)

    def enter(self):
        self.start()
        assert self.entered.wait(SOON)

    def leave(self):
        self.may_leave.set()
        assert self.has_left.wait(SOON)


@pytest.fixture
def guests():
    """Two threads that are yet to start."""
    pair = [Guest(), Guest()]
    yield pair
    for guest in pair:
        guest.may_leave.set()
        guest.may_end.set()
        if guest.ident is not None:
            guest.join(SOON)


def test_blas_has_one_thread_inside_and_its_own_number_again_after():
    for _ in range(2):
        with one_blas_thread():
            with one_blas_thread():
                assert n_blas_threads() == {1}
            assert n_blas_threads() == {1}
        assert n_blas_threads() == {2}
    with threadpool_limits(3, user_api="blas"):
        with suppress(KeyboardInterrupt), one_blas_thread():
            raise KeyboardInterrupt
        assert n_blas_threads() == {3}


@pytest.mark.parametrize("first_out", [0, 1])
def test_of_two_threads_that_overlap_the_last_to_leave_gives_the_threads_back(guests, first_out):
    for guest in guests:
        guest.enter()
        assert n_blas_threads() == {1}
    guests[first_out].leave()
    assert n_blas_threads() == {1}
    guests[1 - first_out].leave()
    assert n_blas_threads() == {2}


def test_others_may_set_their_number_in_any_thread_afterwards(guests):
    with one_blas_thread():
        pass
    guests[0].enter()
    guests[0].leave()
    seen = []

    def ask_for_three():
        with threadpool_limits(3, user_api="blas"):
            seen.append(n_blas_threads())

    other = threading.Thread(target=ask_for_three)
    other.start()
    other.join(SOON)
    assert seen == [{3}]
    assert n_blas_threads() == {2}


# the seventh kernel is the first one that is proposed
@pytest.mark.parametrize("place", [{"begun": 1}, {"begun": 7}])
def test_a_fit_takes_one_thread_and_gives_the_others_back_if_it_is_interrupted(place):
    seen = []

    def look_and_interrupt():
        seen.append(n_blas_threads())
        interrupt()

    model = small(tol=0.0).set_callbacks(At(look_and_interrupt, **place))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*wave())
    assert seen == [{1}]
    assert n_blas_threads() == {2}
