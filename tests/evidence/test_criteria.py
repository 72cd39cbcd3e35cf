"""All criteria: against a dense likelihood, of noise alone, in a search, as arguments."""

import itertools

import numpy as np
import pytest
from mpmath import mpf
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import multivariate_t, norm

from autokernel import BIC, LeaveOneOut, NotAMaximumError, evaluate_kernel
from autokernel.evidence import (
    CRITERIA,
    Criterion,
    Importance,
    KernelFit,
    Laplace,
    Score,
)
from autokernel.evidence.importance import FIRST_DRAWS, MAX_DRAWS
from autokernel.evidence.laplace import (
    boundary_log_mass,
    laplace_log_evidence,
    log_evidence,
)
from autokernel.evidence.maximise import Point, measure_maximum
from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import NOISE
from tests.fits import small, wave
from tests.high_precision import mp
from tests.maxima import posterior_of

# parameters, counted by hand, with the noise variance
N_PARAMS = {
    "SE[0]": 2 + 1,
    "LIN[1]": 2 + 1,
    "PER[0] * SE[1] + LIN[0]": 3 + 2 + 2 + 1,
}


def table_of(n_samples, *, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_samples, 2))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n_samples)
    return X, (y - y.mean()) / y.std()


def noisy_wave(frequency, noise, *, seed=0, n_samples=20):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(size=n_samples))
    y = np.sin(frequency * x) + noise * rng.normal(size=n_samples)
    return x[:, None], (y - y.mean()) / y.std()


SMOOTH = noisy_wave(6, 0.1)
AMBIGUOUS = noisy_wave(20, 0.4)  # a wave of this length, or noise alone


class Dense:
    """The likelihood of a kernel and what criteria are made of, by numpy alone."""

    def __init__(self, text, X, y, covariance, log_posterior):
        self.text, self.X, self.y = text, X, y
        self.covariance, self.log_posterior = covariance, log_posterior

    def log_density(self, theta, rows=slice(None)):
        """Log density of the targets of some rows."""
        K, y = self.covariance(self.text, theta, self.X[rows]), self.y[rows]
        log_det = np.linalg.slogdet(2 * np.pi * K).logabsdet
        return -0.5 * (y @ np.linalg.solve(K, y) + log_det)

    def hessian(self, theta, width):
        """Hessian of the negative log posterior, by central differences."""
        height = self.log_posterior(self.text, self.X, self.y)

        def differences(step):
            axes = np.diag(step * width)
            corners = [
                [height(theta + np.array([a + b, a - b, b - a, -a - b])) for b in axes]
                for a in axes
            ]
            return np.array(corners) @ [-1, 1, 1, -1] / (4 * step**2 * np.outer(width, width))

        # Richardson: errors of order h^2 cancel, those of h^4 are 1e-6
        return (4 * differences(0.03) - differences(0.06)) / 3


def laplace(dense, fit):
    width = 1 / np.sqrt(np.diag(fit.hessian))
    hessian, scale = dense.hessian(fit.theta, width), np.outer(width, width)
    # the steps of the package of at most 5e-2 widths leave a sixth of 2e-3 times a fourth
    # derivative, which is small where the width is
    np.testing.assert_allclose(fit.hessian * scale, hessian * scale, atol=1e-4)
    log_det = np.linalg.slogdet(hessian / (2 * np.pi)).logabsdet
    return dense.log_posterior(dense.text, dense.X, dense.y)(fit.theta) - 0.5 * log_det


def leave_one_out(dense, fit):
    every = np.arange(len(dense.y))
    of_others = [dense.log_density(fit.theta, np.delete(every, row)) for row in every]
    return len(every) * dense.log_density(fit.theta) - np.sum(of_others)


def penalised(penalty):
    def score(dense, fit):
        return dense.log_density(fit.theta) - penalty(N_PARAMS[dense.text], len(dense.y))

    return score


ROUNDING = 1e-6  # by a condition number below 1e7
ORACLES = {
    # the Hessian is off by 1e-4 in units of the widths
    "laplace": (Laplace(), laplace, 1e-3),
    "bic": (BIC(), penalised(lambda n_params, n: 0.5 * n_params * np.log(n)), ROUNDING),
    "loo": (LeaveOneOut(), leave_one_out, ROUNDING),
}
CASES = [
    *itertools.product(N_PARAMS, ORACLES, [0.3]),
    ("PER[0] * SE[1] + LIN[0]", "loo", 0.0),
]


@pytest.mark.parametrize(("text", "name", "noise"), CASES)
def test_every_score_is_that_of_a_dense_likelihood(
    text, name, noise, dense_covariance, dense_log_posterior
):
    criterion, oracle, tolerance = ORACLES[name]
    X, y = table_of(24, noise=noise)
    fit = evaluate_kernel(text, X, y, criterion=criterion, priors="paper")
    dense = Dense(text, X, y, dense_covariance, dense_log_posterior)
    assert fit.status == "ok"
    # with the noise at its floor, the condition number is a hundred times as large
    tolerance = tolerance if noise else 100 * tolerance
    assert fit.score == pytest.approx(oracle(dense, fit), abs=tolerance)


def test_every_criterion_has_an_oracle():
    # importance sampling is compared with sums over grids below
    tested = {type(criterion) for criterion, *_ in ORACLES.values()}
    assert tested == set(CRITERIA.values()) - {Importance}


@pytest.mark.parametrize(
    ("criterion", "fewest", "most"),
    [
        ("bic", 0, 0),
        ("loo", 1, 1),
        ("importance", FIRST_DRAWS, MAX_DRAWS + 5 * (3 * 3 + 2)),  # and Hessians of other modes
    ],
    ids=str,
)
def test_a_criterion_leaves_the_fit_and_its_evidence_and_counts_its_calls(criterion, fewest, most):
    fit = evaluate_kernel("SE[0]", *AMBIGUOUS, criterion=criterion)
    plain = evaluate_kernel("SE[0]", *AMBIGUOUS)
    np.testing.assert_array_equal(fit.theta, plain.theta)
    assert fit.log_evidence == plain.log_evidence == plain.score
    assert fit.score != fit.log_evidence
    assert fewest <= fit.n_evaluations - plain.n_evaluations <= most
    assert np.isnan([plain.standard_error, plain.pareto_k]).all()
    assert np.isnan([fit.standard_error, fit.pareto_k]).all() == (criterion != "importance")


# ---- Laplace's method


@pytest.mark.parametrize(
    ("curvature", "message"),
    [
        (-2.0, r"smallest eigenvalue -2\.00e\+00.*saddle"),
        (0.0, "must be positive definite"),
        (np.nan, "must be finite"),
        (np.inf, "must be finite"),
    ],
)
def test_laplace_log_evidence_rejects_a_saddle_point_and_a_flat_direction(curvature, message):
    with pytest.raises(NotAMaximumError, match=message):
        laplace_log_evidence(0.0, np.diag([1.0, curvature]))


@pytest.mark.parametrize("curvature", [-3.0, 0.0, 1e-11, 1e-3, 0.5, 20.0])
@pytest.mark.parametrize("slope", [0.1, 1.0, 30.0])
def test_boundary_log_mass_is_the_integral_over_the_allowed_side(slope, curvature):
    used = max(curvature, 0.0)  # one that is not positive is left out
    mass, _ = quad(
        lambda t: np.exp(-slope * t - 0.5 * used * t**2), 0, np.inf, epsabs=0, epsrel=1e-11
    )
    # the quadrature's own error, with a margin
    assert boundary_log_mass(slope, curvature) == pytest.approx(np.log(mass), abs=1e-9)


def test_mass_at_a_bound_where_the_posterior_is_flat_is_refused():
    with pytest.raises(NotAMaximumError, match="flat at a bound"):
        boundary_log_mass(1e-6, -1e-3)


# ---- importance sampling


def log_sum(log_posterior, axes, log_weights=0.0):
    """Log of the sum of a posterior of three parameters over a grid."""
    slices = [
        log_posterior(np.stack(np.meshgrid([first], *axes[1:], indexing="ij"), axis=-1))
        for first in axes[0]
    ]
    return logsumexp(np.array(slices) + log_weights)


def test_the_evidence_agrees_with_a_sum_over_a_grid_where_laplace_is_off(dense_log_posterior):
    X, y = AMBIGUOUS  # with two modes
    axes = [np.linspace(-7, 3, 41), np.linspace(-8, 3, 30), np.linspace(-12, 2, 35)]
    cell = sum(np.log(axis[1] - axis[0]) for axis in axes)
    exact = log_sum(dense_log_posterior("SE[0]", X, y), axes) + cell
    fit = evaluate_kernel("SE[0]", X, y, criterion="importance", priors="paper")
    assert -1.0 < fit.log_evidence - exact < -0.5  # or the test shows nothing
    assert fit.standard_error < 0.05
    assert fit.pareto_k < 0.7
    # half as fine a grid moves the sum by 0.08: this fine, the trapezoidal rule is off by far less
    assert fit.score == pytest.approx(exact, abs=4 * fit.standard_error)


def test_the_mirror_images_of_a_mode_count(dense_log_posterior):
    # two waves: each of the leaves may be the slow one
    x = np.linspace(0, 1, 20)
    y = np.sin(5 * x) + np.sin(30 * x) + 0.1 * np.random.default_rng(1).normal(size=20)
    X, y = x[:, None], (y - y.mean()) / y.std()
    fit = evaluate_kernel("SE[0] + SE[0]", X, y, priors="paper")
    posterior = posterior_of("SE[0] + SE[0]", X, y)
    maximum = measure_maximum(posterior, Point(fit.theta, fit.log_posterior))
    scores = [
        Importance()(KernelFit(posterior, maximum, [], np.random.default_rng(seed)))
        for seed in range(3)
    ]
    mirror = np.array([2, 3, 0, 1, 4])
    assert np.abs(fit.theta - fit.theta[mirror]).max() > 1  # or the test shows nothing
    # an independent sample, from tails heavier and wider than those of the modes
    covariance = 2 * np.linalg.inv(fit.hessian)
    parts = [
        multivariate_t(fit.theta, covariance, df=4, seed=0),
        multivariate_t(fit.theta[mirror], covariance[np.ix_(mirror, mirror)], df=4, seed=1),
    ]
    draws = np.concatenate([part.rvs(10_000) for part in parts])
    log_proposal = logsumexp([part.logpdf(draws) for part in parts], axis=0) - np.log(2)
    inside = draws[:, -1] > np.log(1e-8)  # the floor of the noise
    log_weights = dense_log_posterior("SE[0] + SE[0]", X, y)(draws[inside]) - log_proposal[inside]
    expected = logsumexp(log_weights) - np.log(len(draws))
    error = max(score.standard_error for score in scores)
    assert error < 0.1
    # log 2 = 0.69 is missed without the other image; a single sample may miss some of the mass
    # between the images, and not know it. 1.25 is the error of a median over that of a mean, 0.05
    # the errors of ``expected`` and of stopping, which is half of the standard error, each
    score = np.median([score.value for score in scores])
    assert score == pytest.approx(expected, abs=4 * 1.25 * error / np.sqrt(3) + 0.05)


def best_of_smooth(posterior):
    fit = evaluate_kernel("SE[0]", *SMOOTH, priors="paper")
    return measure_maximum(posterior, Point(fit.theta, fit.log_posterior)), fit


class WithoutHessian(LogPosterior):
    """A posterior that counts the Hessians that it should have computed."""

    n_hessians = 0

    def hessian(self, theta, guess=None):
        self.n_hessians += 1
        raise NotAMaximumError("the covariance has no Cholesky factor next to the point")


@pytest.mark.parametrize(
    ("away", "below", "copies", "n_hessians"),
    [(3.0, 5.0, 1, 1), (3.0, 5.0, 9, 5), (3.0, 11.0, 1, 0), (1e-3, 0.0, 9, 0)],
    ids=["another mode", "many", "far below", "the same mode"],
)
def test_only_some_other_modes_of_some_height_are_sampled_and_one_may_fail(
    away, below, copies, n_hessians
):
    posterior = posterior_of("SE[0]", *SMOOTH)
    maximum, fit = best_of_smooth(posterior)
    failing = posterior_of("SE[0]", *SMOOTH, kind=WithoutHessian)
    other = Point(fit.theta + np.array([away, 0, 0]), fit.log_posterior - below)
    others = [maximum.mode] * 9 + [other] * copies  # points of one ridge do not crowd out others
    score = Importance()(KernelFit(failing, maximum, others, np.random.default_rng(0)))
    assert failing.n_hessians == n_hessians
    assert score.value == pytest.approx(fit.log_evidence, abs=0.5)  # Laplace is off by 0.3


# ---- noise alone

DEFAULT = (1.0, 2.0)


def draw(n_samples, *, scale=1.0):
    rng = np.random.default_rng(n_samples)
    return rng.uniform(size=(n_samples, 1)), scale * rng.normal(size=n_samples)


def exact_log_evidence(y, shape, rate):
    """Log of the integral over all s of N(y; 0, s I) Gamma(s; shape, rate).

    With ``nu = shape - n/2`` and ``S = y'y``, the integral of ``s^(nu-1) exp(-S/(2s) - rate s)`` is
    ``2 (S / (2 rate))^(nu/2) K_nu(sqrt(2 rate S))`` (Gradshteyn & Ryzhik, 3.471.9).
    """
    n, a, b = mpf(len(y)), mpf(shape), mpf(rate)
    S = mp.fsum(mpf(value) ** 2 for value in y.tolist())
    nu = a - n / 2
    constant = a * mp.log(b) - mp.loggamma(a) - n / 2 * mp.log(2 * mp.pi)
    bessel = mp.besselk(nu, mp.sqrt(2 * b * S))
    return float(constant + mp.log(2) + nu / 2 * mp.log(S / (2 * b)) + mp.log(bessel))


def highest_variance(y, shape, rate):
    """Where ``-n/2 log s - S / (2 s) + shape log s - rate s`` is largest: a quadratic equation."""
    half = len(y) / 2 - shape
    return (-half + np.sqrt(half**2 + 2 * rate * (y @ y))) / (2 * rate)


@pytest.mark.parametrize(
    ("n_samples", "prior", "scale"),
    [
        (2, DEFAULT, 1e-3),
        (2, (4.0, 0.3), 30.0),
        (40, (1.0, 100.0), 1e-3),
        (40, DEFAULT, 30.0),
        (160, DEFAULT, 1.0),  # modes are searched on a subsample
    ],
)
def test_laplace_is_the_exact_evidence_of_noise_in_closed_form(n_samples, prior, scale):
    X, y = draw(n_samples, scale=scale)
    fit = evaluate_kernel(NOISE, X, y, priors={"noise_variance": prior})
    assert (fit.status, fit.n_params) == ("ok", 1)
    # the tolerance of the quadrature, and the rounding of a log posterior of this size; the floor
    # of the noise, 1e-8 mean squares, cuts off nothing that matters
    assert fit.score == pytest.approx(exact_log_evidence(y, *prior), rel=1e-12, abs=1e-8)
    # the search ends within 1e-8 nats of the maximum, whose curvature is half or more
    variance = highest_variance(y, *prior)
    assert fit.theta == pytest.approx([np.log(variance)], abs=2e-4)
    curvature = y @ y / (2 * variance) + prior[1] * variance
    assert fit.hessian[0, 0] == pytest.approx(curvature, rel=1e-3)  # a finite difference


@pytest.mark.parametrize("away", [-0.4, 0.0, 0.3])
def test_the_exact_evidence_does_not_depend_on_how_well_the_mode_was_found(away):
    X, y = draw(5)
    posterior = posterior_of(NOISE, X, y, priors={})
    theta = np.log([highest_variance(y, *DEFAULT)]) + away
    maximum = measure_maximum(posterior, Point(theta, posterior.value(theta)))
    exact = exact_log_evidence(y, *DEFAULT)
    assert log_evidence(posterior, maximum) == pytest.approx(exact, abs=1e-8)
    by_laplace = laplace_log_evidence(maximum.mode.log_posterior, maximum.hessian)
    assert abs(by_laplace - exact) > 1e-2  # or the test shows nothing


@pytest.mark.parametrize("n_samples", [3, 60, 40_000])
def test_the_evidence_is_exact_where_a_bound_holds_the_noise(n_samples):
    # without a target, the density falls from the lower bound of the noise as a power of it
    X, y = draw(n_samples)[0], np.zeros(n_samples)
    shape, rate = (mpf(number) for number in DEFAULT)
    lower, upper = shape / rate / 10**6, shape / rate * 10**6  # as the log posterior has them
    power = shape - mpf(n_samples) / 2
    mass = mp.gammainc(power, rate * lower, rate * upper) * rate ** (shape - power)
    exact = float(mp.log(mass) - n_samples * mp.log(2 * mp.pi) / 2)
    fit = evaluate_kernel(NOISE, X, y, priors={"noise_variance": DEFAULT})
    assert fit.theta[0] == pytest.approx(float(mp.log(lower)), abs=1e-9)  # a bound, not a fit
    assert fit.score == pytest.approx(exact, rel=1e-12, abs=1e-8)


# ---- criteria as arguments and in a search


class OfTheLikelihood(Criterion):
    """A custom criterion: a fit without a penalty, if there is one."""

    def __init__(self, *, reason=None):
        self.reason = reason

    def __call__(self, fit):
        if self.reason is not None:
            raise NotAMaximumError(self.reason)
        return Score(fit.log_likelihood)


class ByDenseMatrices(Criterion):
    """A custom criterion of densities of ``fit.y``: leave-one-out by the inverse of a matrix."""

    def __init__(self, covariance):
        self.covariance = covariance

    def __call__(self, fit):
        inverse = np.linalg.inv(
            self.covariance(str(fit.expression.on("identity")), fit.theta, fit.X)
        )
        errors, variances = inverse @ fit.y / np.diag(inverse), 1 / np.diag(inverse)
        log_densities = norm.logpdf(errors, scale=np.sqrt(variances)) + fit.log_slopes
        return Score(log_densities.sum())


@pytest.mark.parametrize("target", ["", "log(y) ~ ", "sqrt(y) ~ "])
def test_a_custom_criterion_compares_scales_of_the_target(target, dense_covariance):
    X, y = SMOOTH[0], np.exp(0.5 * SMOOTH[1])
    text = f"{target}SE[0]"
    custom = evaluate_kernel(text, X, y, criterion=ByDenseMatrices(dense_covariance))
    built_in = evaluate_kernel(text, X, y, criterion="loo")
    np.testing.assert_array_equal(custom.theta, built_in.theta)
    assert custom.score == pytest.approx(built_in.score, abs=1e-6)  # rounding by the inverse
    if target:  # or the test shows nothing
        assert custom.score != pytest.approx(evaluate_kernel("SE[0]", X, y, criterion="loo").score)


def test_a_criterion_may_be_custom_and_may_fail_with_its_reason():
    fit = evaluate_kernel("SE[0]", *SMOOTH, criterion=OfTheLikelihood())
    assert fit.score == pytest.approx(fit.log_likelihood, rel=1e-12)  # rounding
    assert fit.score != fit.log_evidence
    assert fit.status == "ok"
    failed = evaluate_kernel("SE[0]", *SMOOTH, criterion=OfTheLikelihood(reason="not liked"))
    assert (failed.score, failed.status) == (-np.inf, "not liked")
    assert np.isnan([failed.standard_error, failed.pareto_k]).all()
    assert failed.log_evidence == fit.log_evidence


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        (
            Importance(max_draws=99),
            r"'max_draws' .* of Importance must be an int in the range \[100, inf\)",
        ),
        (Importance(max_draws=200.0), r"'max_draws' .* must be an int .* Got 200.0 instead"),
        (
            Importance(standard_error=0.0),
            r"'standard_error' .* must be a float in the range \(0.0, inf\)",
        ),
        (
            "bik",
            r"criterion must be one of \['laplace', 'importance', 'bic', 'loo'\] or a Criterion, "
            r"got 'bik'; did you mean 'bic'\?",
        ),
        (None, r"criterion must be one of \['laplace', .* or a Crit"),
        (Importance, r"criterion must be an object, got the class"),
    ],
)
def test_what_is_no_valid_criterion_is_an_error(criterion, message):
    with pytest.raises(ValueError, match=message):
        evaluate_kernel("SE[0]", *SMOOTH, criterion=criterion)


X, Y = wave(12)


def scaled(X, y):
    """Columns in the unit interval, and a standardised target, as a search sees them."""
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), (y - y.mean()) / y.std()


@pytest.mark.parametrize("name", CRITERIA)
def test_a_search_maximises_its_criterion(name):
    model = small(criterion=name, n_iter=1).fit(X, Y)
    history = model.search_history_
    assert set(history["status"]) == {"ok"}
    assert model.best_score_ == history["score"].max()
    assert model.best_expression_ == history["kernel"][np.argmax(history["score"])]
    assert np.isnan(history["standard_error"]).all() == (name != "importance")
    first = evaluate_kernel(history["kernel"][0], *scaled(X, Y), criterion=name)
    assert history["log_prior"][0] < 0
    assert history["score"][0] == first.score + history["log_prior"][0]
    assert model.score(X, Y) > 0.9
