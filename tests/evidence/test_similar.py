"""Fits of similar kernels at which a kernel begins."""

from dataclasses import replace

import numpy as np

from autokernel import parse_expression
from autokernel.evidence.warm_starts import warm_starts_from_similar
from autokernel.expression import n_kernel_params
from tests.fits import evaluation_of


def known(text, score=0.0, *, first=100.0):
    """Build a fit with parameters numbered from ``first`` and with the noise minus ``first``."""
    expression = parse_expression(text)
    theta = np.append(first + np.arange(n_kernel_params(expression)), -first)
    status = "ok" if np.isfinite(score) else "a saddle"
    return evaluation_of(expression, theta, score=score, status=status)


def taken(text, *fits):
    """Nodes and parameters of the warm starts of a kernel, the most similar first."""
    return [
        [(list(start.nodes), start.theta.tolist()) for start in together]
        for together in warm_starts_from_similar(parse_expression(text), fits)
    ]


def test_each_leaf_begins_at_its_partner():
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
    fits = [
        known(f"SE[0] + {last}", first=number) for number, last in enumerate(("RQ[0]", "LIN[0]"))
    ]
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


def test_a_kernel_with_less_than_a_quarter_of_its_leaves_in_a_fit_has_no_warm_start():
    assert taken("SE[0] + LIN[0]", known("SE[1]"), known("PER[0] * RQ[0]")) == []
    quarter, less = "SE[0] + LIN[0] * RQ[0] * PER[0]", "SE[0] + LIN[0] * RQ[0] * PER[0] * LIN[1]"
    assert taken(quarter, known("SE[0]")) == [[([0], [100, 101, -100])]]
    assert taken(less, known("SE[0]")) == []


def test_the_hessian_comes_along_in_the_order_of_the_parameters():
    fit = known("PER[0] * SE[0]")
    fit = replace(fit, hessian=np.add.outer(10 * fit.theta, fit.theta))
    ((start,),) = warm_starts_from_similar(parse_expression("SE[0] * PER[0] + RQ[0]"), [fit])
    np.testing.assert_array_equal(start.hessian, np.add.outer(10 * start.theta, start.theta))
