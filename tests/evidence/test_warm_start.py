import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.evidence.warm_starts import WarmStart, curvature_from, with_warm_starts


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


def test_curvatures_of_fits_are_joined_and_what_none_knows_is_independent():
    expression = parse_expression("SE[0] + LIN[0] + SE[0]")
    one, other = np.arange(9.0).reshape(3, 3), 10 + np.arange(9.0).reshape(3, 3)
    theta, scales = np.zeros(3), np.array([1.0, 1.0, 0.5, 0.25, 1.0, 1.0, 1.0])
    fits = [WarmStart([0], theta, one), WarmStart([2], theta, other), WarmStart([1], theta)]
    expected = np.diag([0, 0, 4.0, 16.0, 0, 0, 18.0])  # the noise is that of the last fit
    expected[:2, :2] = one[:2, :2]
    expected[4:6, 4:6] = other[:2, :2]
    expected[4:6, 6], expected[6, 4:6] = other[:2, 2], other[2, :2]
    np.testing.assert_array_equal(curvature_from(expression, fits, scales), expected)


def test_without_a_finite_hessian_no_curvature_is_known():
    fits = [WarmStart([0], np.zeros(3)), WarmStart([0], np.zeros(3), np.full((3, 3), np.nan))]
    assert curvature_from(parse_expression("SE[0]"), fits, np.ones(3)) is None
