import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.map.warm_start import WarmStart, with_warm_starts


def test_parameters_are_written_at_their_nodes_and_the_noise_is_lowered_in_every_other_draw():
    draws = np.arange(36.0).reshape(4, 9)
    before = draws.copy()
    fit = WarmStart([2, 0], np.array([1.0, 2.0, 3.0, 4.0, 5.0, -6.0]))
    warm = with_warm_starts(parse_expression("SE[0] + RQ[0] + PER[0]"), draws, [fit])
    np.testing.assert_array_equal(warm[:, 5:8], np.tile([1.0, 2.0, 3.0], (4, 1)))  # PER
    np.testing.assert_array_equal(warm[:, :2], np.tile([4.0, 5.0], (4, 1)))  # SE
    np.testing.assert_array_equal(warm[:, 2:5], before[:, 2:5])  # RQ has no warm start
    np.testing.assert_array_equal(warm[:, -1], [-6.0, -6 - np.log(4), -6.0, -6 - np.log(4)])
    np.testing.assert_array_equal(draws, before)  # the draws themselves stay as they are


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_fits_the_last_gives_the_node_and_the_quieter_the_noise(order):
    fits = [WarmStart([0], np.array([1.0, 2.0, -3.0])), WarmStart([0], np.array([4.0, 5, -7]))]
    warm = with_warm_starts(parse_expression("SE[0] + SE[0]"), np.zeros((1, 5)), fits[::order])
    assert warm.tolist() == [[*fits[::order][-1].theta[:2], 0, 0, -7]]
