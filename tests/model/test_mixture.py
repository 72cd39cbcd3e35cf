"""Predictions of a mixture of Gaussian processes."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import LinAlgError
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from autokernel import parse_expression
from autokernel.data.scales import Scale
from autokernel.inference import TrainingData, one_blas_thread
from autokernel.inference.exact import ExactPredictor
from autokernel.model import MixtureComponent
from autokernel.model.errors import FACTORS, NORMAL, PRIOR_LAW, SERIES_LAW, STEP, WILD, ErrorLaw
from autokernel.model.mixture import MixturePredictor
from tests.batteries import target_on
from tests.fits import wave
from tests.model.cases import random_case

TEXTS = ("SE[0]", "LIN[0] + PER[0]", "RQ[0]")
THETAS = (
    np.log([0.2, 1.0, 0.02]),
    np.log([0.5, 0.5, 0.8, 1.0, 0.3, 0.3]),
    np.log([0.1, 0.7, 1.0, 0.005]),
)
WEIGHTS = (0.5, 0.375, 0.125)
X_NEW = np.linspace(-0.3, 1.6, 7)[:, None]


def data(n_samples=15):
    return TrainingData(*wave(n_samples))


def components(weights=WEIGHTS):
    return [
        MixtureComponent(parse_expression(text), theta, weight)
        for text, theta, weight in zip(TEXTS, THETAS, weights, strict=False)
    ]


@pytest.fixture(scope="module")
def mixture():
    """A mixture of three kernels that disagree."""
    return MixturePredictor(components(), data(), ExactPredictor)


@pytest.fixture(scope="module")
def parts():
    """Moments of the components, from the predictors of each."""
    predictors = [ExactPredictor(one.expression, one.theta, data()) for one in components()]
    both = [one.mean_and_covariance(X_NEW) for one in predictors]
    means, covariances = (np.array(part) for part in zip(*both, strict=True))
    return means, covariances, np.array([one.noise_variance for one in predictors])


@dataclass(frozen=True, eq=False)
class Fixed:
    """A predictor with given moments, the same at all rows."""

    mean_: float
    variance: float
    noise_variance: float = 0.0

    def noise_at(self, X, mean):
        return self.noise_variance

    def mean(self, X):
        return np.full(len(X), self.mean_)

    def mean_and_variance(self, X):
        return self.mean(X), np.full(len(X), self.variance)


def of_fixed(*moments, weights):
    """A mixture of normal distributions."""
    given = iter(moments)
    expression = parse_expression("SE[0]")
    made = [MixtureComponent(expression, np.zeros(3), weight) for weight in weights]
    return MixturePredictor(made, data(3), lambda *_: Fixed(*next(given)))


def distribution_function(value, means, stds, weights):
    """The probability of a new observation below a value."""
    return sum(
        w * norm.cdf(value, mean, std) for w, mean, std in zip(weights, means, stds, strict=True)
    )


HEAVY = ErrorLaw(1.2, (0.85, 0.13, 0.02), 1e-3, 1.4)


@pytest.mark.parametrize(("width", "shares"), [(1.0, (1.0, 0.0, 0.0)), (1.3, (0.8, 0.2, 0.0))])
def test_the_law_of_errors_is_that_of_the_rows_left_out(width, shares):
    rng, n = np.random.default_rng(0), 20_000
    z = rng.normal(size=n) * width * rng.choice(FACTORS, n, p=shares)
    found = ErrorLaw.learned(z, np.ones(n))
    # what is farther than eight deviations counts as eight
    np.testing.assert_allclose(found.shares, shares, atol=0.04)
    assert found.width == pytest.approx(width, abs=0.04)
    # 95 % of the errors are within 1.96 deviations; the error of the share is .0015
    assert np.mean(np.abs(z) < 1.96 * found.deviation) == pytest.approx(0.95, abs=0.005)


def test_few_rows_leave_the_law_near_its_prior():
    few = ErrorLaw.learned(np.empty(0), np.empty(0))
    np.testing.assert_allclose(few.shares, PRIOR_LAW.shares)
    assert few.width == 1
    far = ErrorLaw.learned(np.array([1.0, np.inf]), np.ones(2))  # an outlier without a density
    assert far.shares[-1] > few.shares[-1]
    fixed = ErrorLaw.learned(np.array([2.0, -2.0]), np.ones(2), has_width=False)
    assert fixed.width == 1


@pytest.mark.parametrize("law", [PRIOR_LAW, SERIES_LAW, HEAVY])
@pytest.mark.parametrize("factor", [0.3, 1.0, 3.0])
def test_a_law_follows_errors_and_forgets_older_ones(law, factor):
    rng, n, widths = np.random.default_rng(0), 200, []
    shares, factors = np.array(law.normals).T
    for _ in range(16):
        own = rng.choice(factors, n, p=shares / shares.sum())
        found = law.after(10 * rng.normal(size=5)).after(factor * own * rng.normal(size=n))
        assert found.deviation / law.deviation == pytest.approx(found.width / law.width)
        widths.append(found.width / law.width)
    assert np.median(widths) == pytest.approx(factor, rel=0.09)  # three errors
    assert np.std(np.log(widths)) < 1.5 * np.sqrt(STEP / 2)  # the variance of slopes is two
    assert np.isfinite(law.after(np.array([np.inf, -np.inf, 0.0])).width)


def test_no_observation_within_the_range_of_targets_costs_much(mixture):
    at = np.full(len(X_NEW), 4.0)  # four deviations of the target
    assert mixture.with_law(PRIOR_LAW).log_density(X_NEW, at).min() > -12


def test_quantiles_far_from_the_data_do_not_depend_on_one_another():
    scale = Scale("log", width=3.0)
    X, y = np.linspace(0, 1, 20)[:, None], np.exp(np.linspace(-6, 6, 20))
    kernel = parse_expression("LIN[0] * LIN[0]").on("log")
    given = TrainingData(X, y, target=target_on(scale))
    component = MixtureComponent(kernel, np.log([4, 0.1, 4, 0.1, 0.01]), 1.0)
    for law in (NORMAL, HEAVY):
        mixture = MixturePredictor([component], given, ExactPredictor, law=law)
        far, levels = np.array([[2.5], [4.0]]), np.array([0.01, 0.5, 0.99])
        together = mixture.quantiles(far, levels)
        for number, level in enumerate(levels):
            alone = mixture.quantiles(far, np.array([level]))[:, 0]
            np.testing.assert_allclose(together[:, number], alone, rtol=1e-6)
        mean, _ = mixture.predictors[0].mean_and_variance(far)
        np.testing.assert_allclose(together[:, 1], scale.inverse(mean), rtol=1e-6)


def test_tails_are_given_without_another_factorisation():
    made = []

    def counting(*args):
        made.append(ExactPredictor(*args))
        return made[-1]

    one = MixturePredictor(components(), data(), counting)
    other, n = one.with_law(HEAVY), len(made)
    other.quantiles(X_NEW, np.array([0.9]))
    assert len(made) == n
    assert (one.law, other.law) == (NORMAL, HEAVY)


def test_draws_have_heavy_tails_and_moments_have_not(mixture):
    n, levels, heavy = 20_000, np.array([0.005, 0.5, 0.995]), mixture.with_law(HEAVY)
    (mean, variance), (plain_mean, plain_variance) = (o.moments(X_NEW) for o in (heavy, mixture))
    np.testing.assert_array_equal(mean, plain_mean)
    np.testing.assert_allclose(variance, 1.4**2 * plain_variance, rtol=1e-12)
    draws = heavy.samples(X_NEW, n, np.random.RandomState(0))
    for level, end in zip(levels, heavy.quantiles(X_NEW, levels).T, strict=True):
        share = (draws < end[:, None]).mean(axis=1)
        np.testing.assert_allclose(share, level, rtol=0, atol=5 * np.sqrt(level * (1 - level) / n))


@pytest.mark.parametrize(("seed", "n_features"), [(0, 1), (1, 3), (2, 3)])
def test_a_mixture_of_one_component_is_its_predictor_bit_for_bit(seed, n_features):
    expression, theta, X, y, _ = random_case(seed, n_features=n_features)
    given = TrainingData(X, y)
    one = MixturePredictor([MixtureComponent(expression, theta, 1.0)], given, ExactPredictor)
    predictor = ExactPredictor(expression, theta, given)
    rows = np.random.default_rng(1).uniform(-0.2, 1.2, size=(9, n_features))
    mean, variance = predictor.mean_and_variance(rows)
    np.testing.assert_array_equal(one.mean(rows), predictor.mean(rows))
    np.testing.assert_array_equal(one.moments(rows), (mean, variance))
    for found, expected in zip(
        one.mean_and_covariance(rows), predictor.mean_and_covariance(rows), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        one.samples(rows, 5, np.random.RandomState(3)),
        predictor.samples(rows, 5, np.random.RandomState(3)),
    )
    levels = np.array([0.025, 0.5, 0.9])
    expected = mean[:, None] + np.sqrt(variance)[:, None] * norm.ppf(levels)
    np.testing.assert_allclose(one.quantiles(rows, levels), expected, rtol=1e-12, atol=1e-12)
    expected = norm.logpdf(y[:9], mean, np.sqrt(variance))
    np.testing.assert_allclose(one.log_density(rows, y[:9]), expected, rtol=1e-12, atol=1e-12)


def test_moments_of_processes_are_those_of_the_formulas(mixture, parts):
    means, covariances, noise = parts
    weights = np.array(WEIGHTS)
    mean = weights @ means
    # E[f f'] - E[f] E[f]', where E[f f'] of a component is its covariance and the outer product
    second = sum(
        w * (C + np.outer(m, m)) for w, C, m in zip(weights, covariances, means, strict=True)
    )
    covariance = second - np.outer(mean, mean)
    np.testing.assert_allclose(mixture.mean(X_NEW), mean, rtol=1e-12, atol=1e-12)
    found_mean, found = mixture.mean_and_covariance(X_NEW)
    np.testing.assert_allclose(found_mean, mean, rtol=1e-12, atol=1e-12)
    # differences of numbers up to 10
    np.testing.assert_allclose(found, covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found, found.T, rtol=1e-12, atol=1e-12)
    found_mean, variance = mixture.moments(X_NEW)
    np.testing.assert_allclose(found_mean, mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(variance, np.diag(covariance), rtol=1e-9)
    _, of_function = mixture.moments(X_NEW, noise=False)
    np.testing.assert_allclose(of_function, np.diag(covariance) - weights @ noise, rtol=1e-9)
    # the components add up to the mixture, as those who explain it rely on
    by_component = [one.mean(X_NEW) for one in mixture.predictors]
    np.testing.assert_allclose(mixture.weights @ by_component, mean, rtol=1e-12, atol=1e-12)
    assert [one.weight for one in mixture.components] == mixture.weights.tolist() == list(WEIGHTS)
    # kernels disagree, and this counts: far from the data more than the variances themselves
    assert np.all(variance > weights @ np.array([np.diag(C) for C in covariances]))


def test_the_variance_of_the_function_is_never_negative():
    mixture = of_fixed((0.0, 0.3, 0.3 * (1 + 1e-15)), (0.0, 0.1, 0.1), weights=(0.5, 0.5))
    np.testing.assert_array_equal(mixture.moments(np.zeros((1, 1)), noise=False)[1], 0.0)


def test_samples_have_the_mean_and_the_covariance_of_the_mixture(mixture):
    n = 20_000
    draws = mixture.samples(X_NEW, n, np.random.RandomState(0))
    assert draws.shape == (len(X_NEW), n)
    mean, covariance = mixture.mean_and_covariance(X_NEW)
    std = np.sqrt(np.diag(covariance))
    # four standard errors of a mean
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 4 * std / np.sqrt(n))
    # of a covariance: at most sqrt(2 / n) for normal draws, and a mixture has heavier tails by far
    # less than a factor of two
    error = np.abs(np.cov(draws) - covariance) / np.outer(std, std)
    assert error.max() < 8 / np.sqrt(n)


def test_a_sample_is_of_one_component_at_all_rows():
    """The means of two components differ by far, and signs at two rows are always the same."""
    expression = parse_expression("SE[0]")
    given = TrainingData(np.array([[0.0], [1.0]]), np.array([5.0, 5.0]))
    made = [
        MixtureComponent(expression, np.log([9.0, 25.0, 1e-4]), 0.5),  # 5 everywhere
        MixtureComponent(expression, np.log([9.0, 1e-6, 1e-4]), 0.5),  # zero everywhere
    ]
    mixture = MixturePredictor(made, given, ExactPredictor)
    draws = mixture.samples(np.array([[0.2], [0.7]]), 400, np.random.RandomState(0)) > 2.5
    np.testing.assert_array_equal(draws[0], draws[1])
    # in random order: neither all of the first one first, nor all of the other
    n_changes = np.count_nonzero(draws[0, 1:] != draws[0, :-1])
    assert abs(n_changes - 200) < 4 * np.sqrt(100)
    assert abs(draws[0].sum() - 200) < 4 * np.sqrt(100)


@pytest.fixture(params=[NORMAL, HEAVY], ids=["normal", "heavy tails"])
def with_tails(request, mixture, parts):
    """The mixture with tails, and the normal distributions of which it consists."""
    means, covariances, _ = parts
    stds, law = np.sqrt([np.diag(C) for C in covariances]), request.param
    shares, factors = zip(*law.normals, strict=True)
    weights = np.outer([*shares, law.wild], WEIGHTS).ravel()
    every_std = np.concatenate([*(factor * stds for factor in factors), np.full_like(stds, WILD)])
    return mixture.with_law(law), np.tile(means, (len(shares) + 1, 1)), every_std, weights


LEVELS = np.array([1e-6, 0.01, 0.025, 0.3, 0.5, 0.77, 0.975, 0.999, 1 - 1e-6])


def test_quantiles_invert_the_distribution_function(with_tails):
    mixture, means, stds, weights = with_tails
    found = mixture.quantiles(X_NEW, LEVELS)
    assert found.shape == (len(X_NEW), len(LEVELS))
    assert np.all(np.diff(found, axis=1) > 0)
    for row in range(len(X_NEW)):
        probabilities = distribution_function(found[row], means[:, row], stds[:, row], weights)
        np.testing.assert_allclose(probabilities, LEVELS, atol=1e-8)
        # the slope is small in the tails: probabilities there, of either side, to many digits
        np.testing.assert_allclose(probabilities[:2], LEVELS[:2], rtol=1e-8)
        np.testing.assert_allclose(1 - probabilities[-2:], 1 - LEVELS[-2:], rtol=1e-8)


def test_log_densities_are_those_of_the_sum(with_tails):
    mixture, means, stds, weights = with_tails
    y = np.linspace(-2, 3, len(X_NEW))
    expected = np.log(weights @ norm.pdf(y, means, stds))
    np.testing.assert_allclose(mixture.log_density(X_NEW, y), expected, rtol=1e-9)
    far = mixture.log_density(X_NEW, np.full(len(X_NEW), 1e4))
    assert np.isfinite(far).all()
    assert far.max() < -1e5


@pytest.mark.parametrize(
    ("moments", "weights"),
    [
        (((0.0, 1.0), (0.0, 1.0)), (0.5, 0.5)),
        (((0.0, 1.0), (1e-13, 1.0), (0.0, 1.0 + 1e-13)), (0.5, 0.25, 0.25)),
        (((0.0, 1.0), (1e-13, 1.0)), (1 - 1e-9, 1e-9)),
        (((1e6, 1e-6), (1e6, 1e-6)), (0.3, 0.7)),
        (((-5.0, 1e-8), (5.0, 1e-8)), (0.25, 0.75)),
        (((0.0, 1.0), (0.0, 1e6)), (0.875, 0.125)),
    ],
    ids=["equal", "nearly equal", "one has no weight", "far", "apart", "of two scales"],
)
def test_extreme_quantiles_of_all_kinds_of_mixtures(moments, weights):
    mixture = of_fixed(*moments, weights=weights)
    levels = np.array([1e-12, 1e-9, 0.1, 0.5, 0.9, 1 - 1e-9, 1 - 1e-12])
    found = mixture.quantiles(np.zeros((1, 1)), levels)[0]
    means, variances = np.array(moments).T
    # the nearest numbers to the quantiles, in the unit of the narrowest component
    steps = 4e-16 * np.maximum(abs(found), 1e-300)
    below, above = (
        distribution_function(places, means, np.sqrt(variances), np.array(weights))
        for places in (found - steps, found + steps)
    )
    errors = 1e-8 * levels + 2e-15
    assert np.all((below - errors <= levels) & (levels <= above + errors))


def test_a_pickle_predicts_the_same_bit_for_bit_and_holds_no_factor():
    n_samples = 300
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(n_samples, 1)), rng.normal(size=n_samples)
    with one_blas_thread():  # as in a fit; several threads would round in another way
        mixture = MixturePredictor(components(), TrainingData(X, y), ExactPredictor)
    before = mixture.mean(X_NEW), *mixture.moments(X_NEW)
    for _ in range(2):  # also after it has predicted
        kept = pickle.dumps(mixture)
        assert len(kept) < n_samples**2 * 8 / 2
        assert len(kept) < 3 * (X.nbytes + y.nbytes)
        twin = pickle.loads(kept)
        np.testing.assert_array_equal((twin.mean(X_NEW), *twin.moments(X_NEW)), before)
        # numpy may write the type of numbers once more, in some 30 bytes
        assert len(pickle.dumps(twin)) < len(kept) + 100


def without_factor(*texts):
    """Make predictors, but none for some kernels."""

    def make(expression, theta, data):
        if str(expression) in texts:
            raise LinAlgError("not positive definite")
        return ExactPredictor(expression, theta, data)

    return make


def test_a_component_without_a_factor_is_left_out_and_others_get_its_weight():
    lost = f"components with the weight {WEIGHTS[0]} could not"
    with pytest.warns(ConvergenceWarning, match=lost):
        mixture = MixturePredictor(components(), data(), without_factor(TEXTS[0]))
    first, _, third = WEIGHTS
    others = components((0.0, 1 - third / (1 - first), third / (1 - first)))[1:]
    expected = MixturePredictor(others, data(), ExactPredictor)
    for one in (mixture, pickle.loads(pickle.dumps(expected))):
        assert len(one.predictors) == 2
        np.testing.assert_allclose(one.moments(X_NEW), expected.moments(X_NEW), rtol=1e-9)
        levels = np.array([0.1, 0.9])
        np.testing.assert_allclose(
            one.quantiles(X_NEW, levels), expected.quantiles(X_NEW, levels), rtol=1e-9
        )
    with pytest.raises(LinAlgError, match="not positive definite"):
        MixturePredictor(components(), data(), without_factor(*TEXTS))


def test_a_scale_that_lacks_a_target_teaches_no_width():
    X = np.linspace(0, 1, 20)[:, None]
    given = TrainingData(X, np.exp(X[:, 0]), target=target_on(Scale("log")))
    kernels = [parse_expression("LIN[0]"), parse_expression("LIN[0]").on("log")]
    theta = np.log([1.0, 1.0, 0.04])
    every = [MixtureComponent(one, theta, 0.5) for one in kernels]
    mixture = MixturePredictor(every, given, ExactPredictor, law=PRIOR_LAW)
    rows = TrainingData(X[:1] + 0.01, np.array([-1.0]), target=given.target)
    joint = mixture.joint(rows.X)
    found = mixture.with_rows(rows, joint, mixture.log_densities(rows, joint))
    assert [str(one.expression) for one in found.components] == ["LIN[0]"]
    assert found.law.width > PRIOR_LAW.width  # the row is far below both
