import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import kstest, multivariate_t
from scipy.stats import t as student

from autokernel.evidence.importance import FoldedT, Mixture
from autokernel.evidence.laplace import boundary_log_mass, laplace_log_evidence
from autokernel.exceptions import NotAMaximumError
from tests.maxima import maximum_of

ANYWHERE = np.full(3, np.inf)
HESSIAN = np.array([[2.0, 0.7, -0.3], [0.7, 1.0, 0.1], [-0.3, 0.1, 5.0]])
TOP = np.array([0.5, -1.0, 2.0])


def free(theta=TOP, hessian=HESSIAN, log_density=0.0):
    return maximum_of(theta, log_density, hessian)


def around(maximum, lower=-ANYWHERE, upper=ANYWHERE):
    return FoldedT.around(maximum, lower=lower, upper=upper)


@pytest.fixture
def held():
    """The first parameter on its upper bound, the second free, the third on its lower bound."""
    lower, upper = np.array([-9.0, -9.0, 2.0]), np.array([0.5, 9.0, 9.0])
    return around(maximum_of(TOP, 0.0, HESSIAN, np.array([3.0, 0.0, 0.2])), lower, upper)


def test_a_free_maximum_has_the_t_density_of_its_inverse_hessian():
    theta = np.random.default_rng(0).normal(size=(20, 3))
    expected = multivariate_t(TOP, np.linalg.inv(HESSIAN), df=5).logpdf(theta)
    # another factorisation of the same matrix: rounding
    np.testing.assert_allclose(around(free()).log_density(theta), expected, rtol=1e-12)


def test_the_density_on_the_inner_side_integrates_to_one():
    lower, upper = np.array([0.0, -np.inf]), np.array([np.inf, np.inf])
    hessian = np.array([[1.0, 0.4], [0.4, 2.0]])
    part = FoldedT.around(
        maximum_of(np.zeros(2), 0.0, hessian, [2.0, 0.0]), lower=lower, upper=upper
    )
    mass, _ = dblquad(
        lambda y, x: np.exp(part.log_density(np.array([[x, y]]))[0]), 0, 60, -60, 60, epsabs=1e-6
    )
    # beyond 60 widths a t of five degrees of freedom has 1e-7
    assert mass == pytest.approx(1.0, abs=1e-5)


def test_draws_follow_the_density(held):
    draws = held.draw(4000, np.random.default_rng(0))
    # the marginals of a t are t
    for index, sign in ((0, -1.0), (2, 1.0)):
        distance = sign * (draws[:, index] - TOP[index])
        assert np.all(distance >= 0)
        standard = distance / np.abs(held.factor[index, index])
        assert kstest(standard, lambda t: 2 * student(5).cdf(t) - 1).pvalue > 0.01
    standard = (draws[:, 1] - TOP[1]) * np.sqrt(HESSIAN[1, 1])
    assert kstest(standard, student(5).cdf).pvalue > 0.01


def test_a_held_parameter_begins_at_its_bound_with_the_width_of_its_mass(held):
    np.testing.assert_array_equal(held.centre, TOP)
    np.testing.assert_array_equal(held.held, [True, False, True])
    widths = np.diag(held.factor)
    assert widths[0] == pytest.approx(-np.exp(boundary_log_mass(3.0, 2.0)), rel=1e-12)
    assert widths[2] == pytest.approx(np.exp(boundary_log_mass(0.2, 5.0)), rel=1e-12)
    assert np.count_nonzero(held.factor - np.diag(widths)) == 0


def test_a_point_next_to_its_bound_is_moved_onto_it():
    beside = maximum_of(TOP + 1e-10, 0.0, HESSIAN, np.array([3.0, 0.0, 0.0]))
    part = around(beside, lower=np.array([0.5, -9, -9]))
    assert part.centre[0] == 0.5
    assert part.centre[1] == beside.mode.theta[1]


def test_directions_that_do_not_curve_down_get_a_finite_width():
    part = around(free(hessian=np.diag([4.0, -9.0, 0.0])))
    widths = np.sqrt(np.diag(part.factor @ part.factor.T))
    # 1 / sqrt |curvature|, of at least 0.1
    np.testing.assert_allclose(widths, [1 / 2, 1 / 3, 1 / np.sqrt(0.1)], rtol=1e-12)


def test_a_held_parameter_without_slope_and_curvature_gets_a_finite_width():
    maximum = maximum_of(np.zeros(1), 0.0, np.array([[-2.0]]), np.array([1e-12]))
    part = FoldedT.around(maximum, lower=np.zeros(1), upper=np.ones(1))
    # half of a Gaussian with the curvature 0.1
    assert part.factor[0, 0] == pytest.approx(np.sqrt(np.pi / 0.2), rel=1e-6)


def test_log_volume_is_that_of_laplace(held):
    expected = laplace_log_evidence(0.0, HESSIAN)
    assert around(free()).log_volume == pytest.approx(expected, rel=1e-12)
    expected = (
        boundary_log_mass(3.0, 2.0) + 0.5 * np.log(2 * np.pi / 1.0) + boundary_log_mass(0.2, 5.0)
    )
    assert held.log_volume == pytest.approx(expected, rel=1e-12)


def test_shares_are_those_of_the_laplace_masses():
    narrow, wide = np.diag([16.0, 1, 1]), np.diag([1.0, 1, 1])
    maxima = [free(hessian=narrow, log_density=np.log(2)), free(hessian=wide)]
    mixture = Mixture.around(maxima, lower=-ANYWHERE, upper=ANYWHERE)
    # a quarter of the width, twice as high
    np.testing.assert_allclose(mixture.shares, [1 / 3, 2 / 3], rtol=1e-12)


def test_no_mode_has_less_than_a_twentieth_of_the_draws():
    maxima = [free(), free(log_density=-700.0)]
    mixture = Mixture.around(maxima, lower=-ANYWHERE, upper=ANYWHERE)
    np.testing.assert_allclose(mixture.shares, [1 / 1.05, 0.05 / 1.05], rtol=1e-12)
    refitted = mixture.refit(np.tile(TOP, (9, 1)), np.full(9, 1 / 9))
    assert refitted.shares.min() > 0.04


def test_many_low_modes_have_no_more_than_a_fifth_of_the_draws():
    maxima = [free(), *[free(log_density=-700.0)] * 50]
    mixture = Mixture.around(maxima, lower=-ANYWHERE, upper=ANYWHERE)
    np.testing.assert_allclose(mixture.shares[1:], mixture.shares[1], rtol=1e-12)
    assert 0.1 < mixture.shares[1:].sum() < 0.2


def test_the_density_of_a_mixture_is_the_sum_of_its_parts():
    away = free(theta=TOP + 4)
    mixture = Mixture.around([free(), away], lower=-ANYWHERE, upper=ANYWHERE)
    third = mixture.with_part_of(
        Mixture.around([free(hessian=np.eye(3))], lower=-ANYWHERE, upper=ANYWHERE), share=0.1
    )
    np.testing.assert_allclose(third.shares, [0.45, 0.45, 0.1], rtol=1e-12)
    theta = np.random.default_rng(0).normal(1, 3, size=(20, 3))
    covariance = np.linalg.inv(HESSIAN)
    expected = (
        0.45 * multivariate_t(TOP, covariance, df=5).pdf(theta)
        + 0.45 * multivariate_t(TOP + 4, covariance, df=5).pdf(theta)
        + 0.1 * multivariate_t(TOP, np.eye(3), df=5).pdf(theta)
    )
    np.testing.assert_allclose(np.exp(third.log_density(theta)), expected, rtol=1e-11)


def test_a_mixture_draws_from_its_parts_by_their_shares():
    maxima = [free(), free(theta=TOP + 100, log_density=np.log(3))]
    draws = Mixture.around(maxima, lower=-ANYWHERE, upper=ANYWHERE).draw(
        4000, np.random.default_rng(0)
    )
    assert draws.shape == (4000, 3)
    # four deviations of a binomial share
    assert np.mean(draws[:, 0] > 50) == pytest.approx(0.75, abs=4 * np.sqrt(0.1875 / 4000))


@pytest.mark.parametrize("start", [(0.0, 1.0), (0.5, 2.0), (-0.5, 0.5)])
def test_refitting_to_draws_of_a_t_ends_at_that_t(start):
    target = around(free())
    draws = target.draw(20_000, np.random.default_rng(1))
    shift, scale = start
    part = FoldedT(target.centre + shift, scale * target.factor, target.held)
    for _ in range(20):
        part = part.refit(draws, np.full(20_000, 1 / 20_000))
    # four deviations of means of 20000, widths of about one
    np.testing.assert_allclose(part.centre, TOP, atol=0.05)
    np.testing.assert_allclose(
        part.factor @ part.factor.T, np.linalg.inv(HESSIAN), rtol=0.05, atol=0.03
    )


def test_refitting_counts_weights_as_multiplicities():
    target = around(free())
    draws = target.draw(300, np.random.default_rng(1))
    times = np.random.default_rng(2).integers(1, 4, size=300)
    once = target.refit(draws, times / times.sum())
    again = target.refit(np.repeat(draws, times, axis=0), np.full(times.sum(), 1 / times.sum()))
    # the two lean differently on what was before, as repeated points seem to be more
    np.testing.assert_allclose(once.centre, again.centre, atol=5e-3)
    np.testing.assert_allclose(once.factor, again.factor, atol=2e-2)


def test_refitting_leaves_a_held_parameter_at_its_bound_and_finds_its_width(held):
    draws = held.draw(20_000, np.random.default_rng(1))
    start = FoldedT(held.centre, held.factor @ np.diag([2.0, 1.0, 0.5]), held.held)
    part = start
    for _ in range(20):
        part = part.refit(draws, np.full(20_000, 1 / 20_000))
    np.testing.assert_array_equal(part.centre[[0, 2]], TOP[[0, 2]])
    # four deviations of a width that is estimated from 20000
    np.testing.assert_allclose(part.factor, held.factor, rtol=0.04, atol=0.02)
    assert np.all(part.factor[[0, 0, 2, 2], [1, 2, 0, 1]] == 0)


def test_refitting_to_few_points_hardly_moves():
    part = around(free())
    once = part.refit(TOP[None] + 3.0, np.ones(1))
    # one point against the nine numbers of a centre and a covariance
    np.testing.assert_allclose(once.centre - TOP, 0.1 * 3.0, rtol=1e-9)


def test_refitting_to_nothing_leaves_the_part_as_it_is():
    part = around(free())
    assert part.refit(np.full((5, 3), 1e9), np.zeros(5)) is part


def test_refitting_a_mixture_gives_each_point_to_the_mode_it_is_near():
    maxima = [free(), free(theta=TOP + 50)]
    mixture = Mixture.around(maxima, lower=-ANYWHERE, upper=ANYWHERE)
    rng = np.random.default_rng(0)
    draws = np.concatenate([mixture.components[i].draw(2000, rng) for i in (0, 1, 1, 1)])
    for _ in range(5):
        mixture = mixture.refit(draws, np.full(8000, 1 / 8000))
    np.testing.assert_allclose(mixture.shares, [0.25, 0.75], atol=1e-3)  # tails alone are shared
    # four deviations of means of 2000
    np.testing.assert_allclose(mixture.components[0].centre, TOP, atol=0.15)
    np.testing.assert_allclose(mixture.components[1].centre, TOP + 50, atol=0.15)


def test_no_maxima_are_refused():
    with pytest.raises(NotAMaximumError, match="must hold a mode"):
        Mixture.around([], lower=-ANYWHERE, upper=ANYWHERE)


@pytest.mark.parametrize(
    "maximum",
    [
        free(hessian=np.full((3, 3), np.nan)),
        free(log_density=-np.inf),
        free(theta=np.array([np.nan, 0, 0])),
    ],
    ids=["hessian", "log density", "theta"],
)
def test_a_maximum_that_is_not_finite_is_refused(maximum):
    with pytest.raises(NotAMaximumError, match="a maximum must be finite"):
        around(maximum)
