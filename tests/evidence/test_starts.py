import numpy as np
import pytest
from scipy.stats import gamma, ks_2samp, kstest, loguniform

from autokernel import parse_expression
from autokernel.evidence.posterior import LogPosterior
from autokernel.evidence.starts import (
    DataScales,
    draw_starts,
    periodogram_periods,
    take_from_noise,
)
from autokernel.evidence.warm_starts import WarmStart, with_warm_starts
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import Seasonal
from autokernel.kernels.parameters import check_priors

EVERY_KERNEL = "PER[0] * SE[1] + RQ[1] + LIN[0]"


def draw(text, X, y, n_starts, *, seed=0, base_kernels=()):
    data = TrainingData(X, y)
    expression = parse_expression(text, base_kernels=base_kernels)
    posterior = LogPosterior(ExactLikelihood(expression, data), priors=check_priors("paper"))
    theta = draw_starts(posterior, DataScales(data), n_starts, rng=np.random.default_rng(seed))
    return posterior, theta


def names_of(posterior):
    return np.array([parameter.name for parameter in posterior.likelihood.parameters])


@pytest.fixture
def two_waves():
    """Columns on different grids; the target has the period 0.1 in the first alone."""
    rng = np.random.default_rng(1)
    X = np.column_stack([np.linspace(0, 1, 100), 40 * rng.uniform(size=100)])
    return X, np.sin(2 * np.pi * X[:, 0] / 0.1) + 0.05 * rng.normal(size=100)


@pytest.mark.parametrize("n_starts", [1, 8, 24])
def test_starts_have_one_row_each_and_keep_the_bounds(n_starts, two_waves):
    posterior, theta = draw(EVERY_KERNEL, *two_waves, n_starts)
    assert theta.shape == (n_starts, len(posterior.likelihood.parameters))
    assert np.all((posterior.lower <= theta) & (theta <= posterior.upper))
    assert len(np.unique(theta, axis=0)) == n_starts


def test_starts_are_clipped_to_the_bounds_of_a_column_in_tiny_units(two_waves):
    X, y = two_waves
    posterior, theta = draw("SE[0]", X * 1e-9, y, 8)  # log-uniform between spacing and extent
    assert np.all(theta >= posterior.lower)
    assert np.any(theta == posterior.lower)


def test_starts_are_reproducible_and_differ_between_seeds(two_waves):
    _, first = draw(EVERY_KERNEL, *two_waves, 24, seed=5)
    _, again = draw(EVERY_KERNEL, *two_waves, 24, seed=5)
    _, other = draw(EVERY_KERNEL, *two_waves, 24, seed=6)
    np.testing.assert_array_equal(first, again)
    assert not np.any(np.isclose(first[:, 0], other[:, 0]))


def test_three_of_four_periods_are_peaks_of_their_column(two_waves):
    X, y = two_waves
    _, theta = draw("SE[1] * PER[0]", X, y, 1024)
    peaks = periodogram_periods(X[:, 0], y)
    hits = np.isclose(theta[:, 4, None], np.log(peaks))  # a period of the prior is never this near
    # three standard deviations of a binomial share of 1024 are 0.04
    assert hits.any(axis=1).mean() == pytest.approx(0.75, abs=0.04)
    shares = hits.sum(axis=0) / hits.sum()
    # weights 1 / rank; three standard deviations of a share of 768 are at most 0.05
    np.testing.assert_allclose(shares, 1 / np.arange(1, 7) / np.sum(1 / np.arange(1, 7)), atol=0.05)


def test_each_period_is_drawn_from_the_peaks_of_its_own_column(two_waves):
    X, y = two_waves
    _, theta = draw("PER[1] + PER[0]", X, y, 256)
    for index, column in ((2, 1), (5, 0)):
        hits = np.isclose(theta[:, index, None], np.log(periodogram_periods(X[:, column], y)))
        assert hits.any(axis=1).mean() > 0.5  # 0.75 where it is the right column, else 0


def test_without_peaks_periods_are_drawn_as_all_others(two_waves):
    X, y = two_waves
    posterior, theta = draw("PER[0]", X, np.zeros_like(y), 24)
    (period,) = np.flatnonzero(names_of(posterior) == "period")
    assert len(np.unique(theta[:, period])) == 24


@pytest.mark.parametrize("column", [0, 1])
def test_lengthscales_come_from_the_prior_and_the_scales_of_the_column_in_halves(two_waves, column):
    X, y = two_waves
    posterior, theta = draw(f"RQ[{column}] * SE[{column}] + SE[{column}]", X, y, 1024)
    spacing, extent = np.median(np.diff(np.sort(X[:, column]))), np.ptp(X[:, column])

    def distribution(lengthscale):
        prior = gamma(2, scale=1 / 2).cdf(lengthscale)
        return (prior + loguniform(spacing, extent).cdf(lengthscale)) / 2

    for index in np.flatnonzero(names_of(posterior) == "lengthscale"):
        # 1024 random draws would be further off in one case of a hundred, Sobol points are not
        assert kstest(np.exp(theta[:, index]), distribution).statistic < 0.05


def test_like_parameters_of_like_leaves_are_drawn_alike(two_waves):
    posterior, theta = draw("SE[1] + SE[1] + SE[1]", *two_waves, 1024)
    names = names_of(posterior)
    for name in ("lengthscale", "variance"):
        first, *others = theta[:, names == name].T
        for other in others:
            # two samples of 1024 random draws differ by more in one case of a hundred
            assert ks_2samp(first, other, method="asymp").statistic < 0.07


def test_the_noise_is_tried_across_decades(two_waves):
    _, theta = draw("SE[0]", *two_waves, 24)
    noise = np.exp(theta[:, -1])
    # draws from the prior alone, Gamma(1, 100), would seldom be below 1e-4 or above 0.1
    assert noise.min() < 1e-3
    assert noise.max() > 0.05


def test_a_constant_column_has_starts(two_waves):
    X, y = two_waves
    _, theta = draw("SE[0] + PER[0]", np.ones_like(X), y, 8)
    assert np.all(np.isfinite(theta))


def test_variances_are_tried_around_the_mean_square_of_the_target(two_waves):
    X, y = two_waves
    posterior, plain = draw("SE[0] + LIN[1]", X, y, 32)
    _, scaled = draw("SE[0] + LIN[1]", X, 10.0 * y, 32)
    names = names_of(posterior)
    for name in ("variance", "offset", "noise_variance"):
        # the second half of the draws; a sum of logs is rounded
        shift = scaled[16:, names == name] - plain[16:, names == name]
        np.testing.assert_allclose(shift, np.log(100.0), rtol=1e-12)


def test_half_of_the_shapes_of_a_period_are_log_uniform(two_waves):
    posterior, theta = draw("PER[0]", *two_waves, 1024)

    def distribution(lengthscale):
        return (gamma(2, scale=1 / 2).cdf(lengthscale) + loguniform(0.02, 3).cdf(lengthscale)) / 2

    (index,) = np.flatnonzero(names_of(posterior) == "lengthscale")
    # 1024 random draws would be further off in one case of a hundred, Sobol points are not
    assert kstest(np.exp(theta[:, index]), distribution).statistic < 0.05


def test_a_node_that_takes_from_the_noise_leaves_the_covariance_nearly_as_it_was():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 2))
    data = TrainingData(X, rng.normal(size=30))
    parent, child = parse_expression("SE[0]"), parse_expression("SE[0] + SE[1]")
    theta = np.log([0.3, 1.0, 0.4])
    points = with_warm_starts(child, np.zeros((1, 5)), [WarmStart([0], theta)])
    take_from_noise(points, child, [1], scales=DataScales(data))
    before = ExactLikelihood(parent, data).value(theta)
    # a tenth of the spacing is short against most distances
    assert ExactLikelihood(child, data).value(points[0]) == pytest.approx(before, abs=0.5)
    assert np.exp(points[0, -1]) == pytest.approx(0.1)  # a quarter of the noise


def test_starts_of_a_known_period_are_near_it_whatever_the_periodogram_shows(two_waves):
    season = Seasonal(0.4, scale=1.0)
    posterior, theta = draw(f"{season.name}[0]", *two_waves, 24, base_kernels=[season])
    (periods,) = np.exp(theta[:, names_of(posterior) == "period"]).T
    assert np.all(np.abs(periods / 0.4 - 1) < 0.25)  # five prior deviations
