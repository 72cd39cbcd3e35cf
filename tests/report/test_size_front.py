"""The best kernel of each size, from histories that are made up."""

import numpy as np
import pytest

from autokernel.explain import SizeFront


def front(*rows, k=10, chosen=None):
    """The front of a history of kernels of some sizes with some scores."""
    sizes, scores = (np.array(part) for part in zip(*rows, strict=True))
    history = {
        "kernel": np.array([f"kernel {number}" for number in range(len(rows))], dtype=object),
        "n_leaves": sizes,
        "score": scores,
    }
    is_chosen = np.arange(len(rows)) == (np.argmax(scores) if chosen is None else chosen)
    return SizeFront.of(history, k=k, is_chosen=is_chosen)


def test_the_front_is_the_best_kernel_of_each_size_in_order():
    table = front((2, -5.0), (1, -9.0), (0, -30.0), (2, -3.0), (1, -8.0), (5, -4.0))
    assert list(table) == ["n_leaves", "score", "gain", "chosen", "suggested", "kernel"]
    assert table["n_leaves"].tolist() == [0, 1, 2, 5]
    assert table["score"].tolist() == [-30.0, -8.0, -3.0, -4.0]
    assert table["kernel"].tolist() == ["kernel 2", "kernel 4", "kernel 3", "kernel 5"]
    np.testing.assert_array_equal(table["gain"], [np.nan, 22.0, 5.0, -1.0])
    assert table["chosen"].tolist() == [False, False, True, False]


def test_the_gain_is_over_the_best_smaller_kernel_not_over_the_last():
    table = front((1, 0.0), (2, -7.0), (3, -2.0), (4, 1.0))
    np.testing.assert_array_equal(table["gain"], [np.nan, -7.0, -2.0, 1.0])


def test_of_equal_kernels_the_first_is_listed():
    assert front((1, 0.0), (1, 0.0))["kernel"].tolist() == ["kernel 0"]


@pytest.mark.parametrize(
    ("rows", "suggested"),
    [
        ([(1, -10.0), (2, -2.0), (3, 0.0)], 2),  # two nats are not worth a leaf
        ([(1, -10.0), (2, -2.01), (3, 0.0)], 3),
        ([(1, -1.0), (2, -2.0), (3, 0.0)], 1),
        ([(1, 0.0), (2, -0.1)], 1),
        ([(0, -1.5), (1, 0.0)], 0),
        ([(1, -3.0), (2, -1.5), (3, 0.0)], 2),  # not step by step
    ],
)
def test_the_smallest_kernel_within_two_nats_of_the_best_is_suggested(rows, suggested):
    table = front(*rows)
    assert table["n_leaves"][table["suggested"]].tolist() == [suggested]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_front_ends_after_the_smallest_sizes(k):
    table = front((1, -10.0), (2, -5.0), (3, 0.0), k=k)
    assert table["n_leaves"].tolist() == [1, 2, 3][:k]
    assert table["suggested"].tolist() == [False, False, True][:k]


def test_kernels_that_failed_are_not_in_the_front():
    table = front((1, -np.inf), (2, -5.0), (2, -np.inf), (3, -np.inf))
    assert table["n_leaves"].tolist() == [2]
    assert table["suggested"].tolist() == [True]
    nothing = front((1, -np.inf), (2, -np.inf))
    assert nothing["n_leaves"].tolist() == []
    assert nothing["n_leaves"].tolist() == nothing["suggested"].tolist() == []
