import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.expression import leaf_slots
from autokernel.map.warm_start import Known, WarmStart, inherit, warm_starts_from_similar


def known(text, score=0.0, *, first=100.0):
    """A fit whose parameters are numbered from ``first`` and whose noise is minus ``first``."""
    expression = parse_expression(text)
    n_params = leaf_slots(expression)[-1].place.stop
    return Known(expression, np.append(first + np.arange(n_params), -first), score)


def taken(text, *fits):
    """Leaves and parameters of what a kernel inherits, most similar first."""
    return [
        [(list(fit.leaves), fit.theta.tolist()) for fit in together]
        for together in warm_starts_from_similar(parse_expression(text), fits)
    ]


def test_parameters_are_written_at_their_leaves_and_the_noise_is_lowered_in_every_other_draw():
    draws = np.arange(36.0).reshape(4, 9)
    before = draws.copy()
    fit = WarmStart([2, 0], np.array([1.0, 2.0, 3.0, 4.0, 5.0, -6.0]))
    inherit(parse_expression("SE[0] + RQ[0] + PER[0]"), draws, [fit])
    np.testing.assert_array_equal(draws[:, 5:8], np.tile([1.0, 2.0, 3.0], (4, 1)))  # PER
    np.testing.assert_array_equal(draws[:, :2], np.tile([4.0, 5.0], (4, 1)))  # SE
    np.testing.assert_array_equal(draws[:, 2:5], before[:, 2:5])  # RQ was not inherited
    np.testing.assert_array_equal(draws[:, -1], [-6.0, -6 - np.log(4), -6.0, -6 - np.log(4)])


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_fits_the_last_gives_the_leaf_and_the_quieter_the_noise(order):
    draws = np.zeros((1, 5))
    fits = [WarmStart([0], np.array([1.0, 2.0, -3.0])), WarmStart([0], np.array([4.0, 5, -7]))]
    inherit(parse_expression("SE[0] + SE[0]"), draws, fits[::order])
    assert draws.tolist() == [[*fits[::order][-1].theta[:2], 0, 0, -7]]


def test_each_leaf_inherits_from_its_partner():
    # SE with 103 and 104, PER with 100 to 102, whatever the order in which the fit was written
    (together,) = taken("SE[0] * PER[0] + RQ[0]", known("PER[0] * SE[0]"))
    assert together == [([0, 1], [103, 104, 100, 101, 102, -100])]
    (together,) = taken("RQ[0] + PER[0] * SE[0]", known("LIN[0] + PER[0] * SE[0]"))
    assert together == [([1, 2], [102, 103, 104, 105, 106, -100])]


def test_what_a_fit_does_not_have_comes_from_fits_of_single_leaves_as_well():
    fits = (known("SE[0]", -9, first=200), known("LIN[0]", -8, first=300), known("SE[0] * PER[0]"))
    found = taken("SE[0] * PER[0] + LIN[0]", *fits)
    pair = ([0, 1], [100, 101, 102, 103, 104, -100])
    assert found[:2] == [[pair], [pair, ([2], [300, 301, -300])]]
    assert taken("SE[0] * PER[0] + RQ[0]", *fits)[:1] == [[pair]]
    assert not any(len(together) > 1 for together in taken("SE[0] * PER[0] + RQ[0]", *fits)[:2])


def test_the_fit_that_shares_most_comes_first_then_the_better_one():
    fits = (
        known("SE[0] + LIN[0]", -1.0, first=10),
        known("SE[0] + PER[0] + RQ[0]", -9.0, first=20),
        known("SE[0] + PER[0]", -5.0, first=30),
    )
    for order in (fits, fits[::-1]):
        found = taken("SE[0] + PER[0]", *order)
        assert [together[0][1][-1] for together in found] == [-30, -20, -10]


def test_fits_that_are_alike_in_all_else_come_in_the_order_of_their_texts():
    fits = [known(f"SE[0] + {last}", first=place) for place, last in enumerate(("RQ[0]", "LIN[0]"))]
    for order in (fits, fits[::-1]):
        found = taken("SE[0] + PER[0]", *order)
        assert [together[0][1][-1] for together in found] == [-1, 0]
    # where only some of many are looked at, too
    many = [known(f"SE[0] * LIN[{column}]", first=column) for column in range(10, 30)]
    assert taken("SE[0]", *many) == taken("SE[0]", *many[::-1])


def test_a_failed_fit_gives_nothing():
    assert taken("SE[0] + LIN[0]", known("SE[0]", -np.inf)) == []
    failed, sound = known("SE[0] + PER[0]", -np.inf), known("SE[0]", -9.0, first=200)
    assert taken("SE[0] + PER[0] + LIN[0]", failed, sound) == [[([0], [200, 201, -200])]]
    # nor what the best fit lacks
    lone = known("LIN[0]", -np.inf, first=300)
    assert taken("SE[0] + LIN[0]", sound, lone) == [[([0], [200, 201, -200])]]


def test_a_kernel_with_less_than_a_quarter_of_its_leaves_in_a_fit_inherits_nothing():
    assert taken("SE[0] + LIN[0]", known("SE[1]"), known("PER[0] * RQ[0]")) == []
    quarter, less = "SE[0] + LIN[0] * RQ[0] * PER[0]", "SE[0] + LIN[0] * RQ[0] * PER[0] * LIN[1]"
    assert taken(quarter, known("SE[0]")) == [[([0], [100, 101, -100])]]
    assert taken(less, known("SE[0]")) == []
