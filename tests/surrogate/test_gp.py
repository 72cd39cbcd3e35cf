import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal

from autokernel.surrogate.acquisition import expected_improvement
from autokernel.surrogate.gp import (
    SurrogateGP,
    _negative_log_likelihood,
    distance_weights,
)
from autokernel.surrogate.sot import sot_distances, sot_kernel

TRUE_WEIGHTS, TRUE_MEAN, TRUE_SCALE = np.array([0.5, 0.3, 0.2]), -0.4, 0.2


@pytest.fixture(scope="module")
def distances(random_expressions):
    """Between distinct expressions."""
    expressions = list(dict.fromkeys(random_expressions(220, n_features=2, seed=0)))[:120]
    return sot_distances(expressions, n_features=2)


@pytest.fixture(scope="module")
def prior_draws(distances):
    """Ten draws (n, 10) from the prior, in the size of scores per sample."""
    K = sot_kernel(distances, TRUE_WEIGHTS, lengthscale=1.0)
    L = np.linalg.cholesky(K + 1e-10 * np.eye(len(K)))
    return TRUE_MEAN + TRUE_SCALE * L @ np.random.default_rng(1).normal(size=(len(K), 10))


@pytest.fixture(scope="module")
def scores(prior_draws):
    return prior_draws[:, 0]


def covariance(theta, distances):
    """K_SOT from the definition: log variance, log squared lengthscale, three logits."""
    sigmoid = 1 / (1 + np.exp(-theta[2:5]))
    distance = sum(weight * D for weight, D in zip(sigmoid / sigmoid.sum(), distances, strict=True))
    return np.exp(theta[0]) * np.exp(-distance / np.exp(theta[1]))


@pytest.mark.parametrize("seed", range(3))
def test_objective_is_the_dense_negative_log_likelihood(seed, distances, scores):
    theta = np.random.default_rng(seed).normal(size=7)
    n = 30
    objective = _negative_log_likelihood(distances[:, :n, :n], scores[:n])
    K = covariance(theta, distances[:, :n, :n]) + np.exp(theta[5]) * np.eye(n)
    expected = -multivariate_normal.logpdf(scores[:n], np.full(n, theta[6]), K)
    assert objective(theta)[0] == pytest.approx(expected, rel=1e-10)  # condition 1e3, rounding


@pytest.mark.parametrize("seed", range(3))
def test_gradient_of_the_objective_is_that_of_finite_differences(seed, distances, scores):
    theta = np.random.default_rng(seed).normal(size=7)
    objective = _negative_log_likelihood(distances[:, :30, :30], scores[:30])
    error = check_grad(lambda t: objective(t)[0], lambda t: objective(t)[1], theta, epsilon=1e-6)
    # one-sided: the step times half the curvature, which is of the order of n, per entry
    assert error < 1e-3
    assert np.linalg.norm(objective(theta)[1]) > 1


def test_objective_is_large_and_flat_where_there_is_no_factor(scores):
    impossible = np.zeros((3, 4, 4)) + 4.0 * np.eye(4)  # larger off the diagonal than on it
    theta = np.array([0, 0, 0, 0, 0, -20.0, 0])
    value, gradient = _negative_log_likelihood(impossible, scores[:4])(theta)
    assert value == 1e12
    assert not gradient.any()


def test_prediction_is_that_of_the_dense_formulas(distances, scores):
    n = 80
    surrogate = SurrogateGP(distances[:, :n, :n], scores[:n])
    theta = surrogate._theta
    prediction = surrogate.predict(distances[:, n:, :n])
    shift, scale = scores[:n].mean(), scores[:n].std()
    K = covariance(theta, distances[:, :n, :n]) + np.exp(theta[5]) * np.eye(n)
    cross = covariance(theta, distances[:, n:, :n])
    gain = np.linalg.solve(K, cross.T).T
    mean = theta[6] + gain @ ((scores[:n] - shift) / scale - theta[6])
    variance = np.exp(theta[0]) - np.sum(gain * cross, axis=1)
    # rounding: a noise of at least 1e-5 keeps the condition number below 1e8
    np.testing.assert_allclose(prediction.mean, shift + scale * mean, atol=1e-7)
    np.testing.assert_allclose(prediction.std, scale * np.sqrt(variance), atol=1e-6)


def test_fitting_raises_the_likelihood_above_that_of_the_true_hyperparameters(distances, scores):
    surrogate = SurrogateGP(distances, scores)
    y = (scores - scores.mean()) / scores.std()
    logits = np.log(TRUE_WEIGHTS / (1 - TRUE_WEIGHTS))  # their sigmoids are the weights
    log_variance = np.log(TRUE_SCALE**2 / scores.var())
    mean = (TRUE_MEAN - scores.mean()) / scores.std()
    objective = _negative_log_likelihood(distances, y)
    true = np.array([log_variance, 0, *logits, np.log(1e-5), mean])
    # no slack: a maximum is above any other point, by about half a nat per hyperparameter
    assert objective(surrogate._theta)[0] < objective(true)[0]


def test_it_interpolates_scores_without_noise(distances, scores):
    surrogate = SurrogateGP(distances, scores)
    prediction = surrogate.predict(distances)
    # the smallest noise is 1e-5 of the variance, a deviation of 0.3 percent, here at most tripled
    # where neighbours are close
    np.testing.assert_allclose(prediction.mean, scores, atol=0.01 * scores.std())
    assert prediction.std.max() < 0.02 * scores.std()


def test_it_smooths_scores_that_are_noise(distances):
    noise = np.random.default_rng(3).normal(size=len(distances[0]))
    prediction = SurrogateGP(distances, noise).predict(distances)
    assert prediction.mean.std() < 0.7 * noise.std()


def test_it_predicts_almost_as_well_as_with_the_true_hyperparameters(distances, prior_draws):
    n = 80
    K = sot_kernel(distances, TRUE_WEIGHTS, lengthscale=1.0)
    gain = np.linalg.solve(K[:n, :n], K[:n, n:]).T
    total, total_oracle, total_mean, standardised = 0.0, 0.0, 0.0, []
    for seen, unseen in zip(prior_draws[:n].T, prior_draws[n:].T, strict=True):
        prediction = SurrogateGP(distances[:, :n, :n], seen).predict(distances[:, n:, :n])
        error = prediction.mean - unseen
        total += np.mean(error**2)
        total_oracle += np.mean((TRUE_MEAN + gain @ (seen - TRUE_MEAN) - unseen) ** 2)
        total_mean += np.mean((seen.mean() - unseen) ** 2)
        standardised.append(np.mean((error / prediction.std) ** 2))
    # seven hyperparameters from 80 scores cost about 7 / 80 of the error
    assert total < 1.15 * total_oracle
    assert total < 0.8 * total_mean
    # one if the deviations are right; the mean of 400 correlated ones, to a third
    assert np.mean(standardised) == pytest.approx(1, abs=0.33)


def test_an_affine_change_of_the_scores_changes_the_prediction_alike(distances, scores):
    n = 40
    plain = SurrogateGP(distances[:, :n, :n], scores[:n]).predict(distances[:, n:, :n])
    other = SurrogateGP(distances[:, :n, :n], 300 * scores[:n] - 70)
    changed = other.predict(distances[:, n:, :n])
    # standardised scores are equal to rounding; the optimiser may end up to 1e-5 apart
    np.testing.assert_allclose(changed.mean, 300 * plain.mean - 70, rtol=1e-3)
    np.testing.assert_allclose(changed.std, 300 * plain.std, rtol=1e-3)


def test_equal_scores_are_predicted_as_they_are(distances):
    prediction = SurrogateGP(distances[:, :5, :5], np.full(5, 3.0)).predict(distances[:, 5:9, :5])
    np.testing.assert_allclose(prediction.mean, 3.0, atol=1e-6)  # the mean is fitted to 1e-7
    assert np.all(np.isfinite(prediction.std))


def test_one_score_is_enough(distances):
    prediction = SurrogateGP(distances[:, :1, :1], np.array([3.0])).predict(distances[:, 1:4, :1])
    assert np.all(np.isfinite(prediction.mean))


@pytest.mark.parametrize("logits", [[0.0, 0.0, 0.0], [-4.0, 1.0, 4.0]])
def test_weights_are_normalised_sigmoids(logits):
    weights = distance_weights(np.array(logits))
    sigmoid = 1 / (1 + np.exp(-np.array(logits)))
    np.testing.assert_allclose(weights, sigmoid / sigmoid.sum(), rtol=1e-12)  # rounding
    assert weights.sum() == pytest.approx(1, rel=1e-12)


def test_learned_weights_are_positive_and_sum_to_one(distances, scores):
    weights = SurrogateGP(distances, scores).weights
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    assert np.all(weights > 0)


def test_the_weight_goes_to_the_distance_that_matters(distances):
    K = sot_kernel(distances, np.array([1.0, 0.0, 0.0]), lengthscale=1.0)
    L = np.linalg.cholesky(K + 1e-6 * np.eye(len(K)))
    scores = L @ np.random.default_rng(2).normal(size=len(K))
    weights = SurrogateGP(distances, scores).weights
    assert weights[0] > 0.8  # sigmoids within [0.018, 0.982] allow up to 0.96


@pytest.fixture(scope="module")
def conditioned(distances, scores):
    """A surrogate of 60 scores."""
    return SurrogateGP(distances[:, :60, :60], scores[:60])


def test_believing_is_conditioning_on_its_own_predictions(conditioned, distances, scores):
    n, m = 60, 65
    theta = conditioned._theta
    believing = conditioned.believing(distances[:, :m, :m])
    believed = conditioned.predict(distances[:, n:m, :n]).mean
    shift, scale = scores[:n].mean(), scores[:n].std()
    y = (np.append(scores[:n], believed) - shift) / scale
    K = covariance(theta, distances[:, :m, :m]) + np.exp(theta[5]) * np.eye(m)
    cross = covariance(theta, distances[:, m:, :m])
    gain = np.linalg.solve(K, cross.T).T
    mean = theta[6] + gain @ (y - theta[6])
    variance = np.exp(theta[0]) - np.sum(gain * cross, axis=1)
    prediction = believing.predict(distances[:, m:, :m])
    # as for the prediction above: a condition number below 1e8
    np.testing.assert_allclose(prediction.mean, shift + scale * mean, atol=1e-7)
    np.testing.assert_allclose(prediction.std, scale * np.sqrt(variance), atol=1e-6)


def test_believing_leaves_the_mean_where_it_was_everywhere(conditioned, distances, scores):
    n, m = 60, 65
    before = conditioned.predict(distances[:, n:, :n]).mean
    after = conditioned.believing(distances[:, :m, :m]).predict(distances[:, n:, :m]).mean
    # what was expected tells nothing new (Ginsbourger et al. 2010, kriging believer)
    np.testing.assert_allclose(after, before, atol=1e-7)
    assert before.std() > 0.1 * scores.std()  # or the test shows nothing


def test_believing_leaves_of_the_uncertainty_at_the_new_ones_that_of_the_noise(distances):
    n, m = 60, 63
    noisy = np.random.default_rng(3).normal(size=n)
    surrogate = SurrogateGP(distances[:, :n, :n], noisy)
    before = surrogate.predict(distances[:, n:, :n]).std
    after = surrogate.believing(distances[:, :m, :m]).predict(distances[:, n:, :m]).std
    # one more observation: the variances add up as their inverses do (R&W eq. A.7)
    noise = noisy.std() * np.exp(0.5 * surrogate._theta[5])
    assert noise > 0.05  # or the test shows nothing
    one = surrogate.believing(distances[:, : n + 1, : n + 1])
    at_it = one.predict(distances[:, n : n + 1, : n + 1]).std[0]
    assert at_it**-2 == pytest.approx(before[0] ** -2 + noise**-2, rel=1e-6)
    assert np.all(after[:3] < noise)
    assert np.all(after <= before + 1e-9)  # rounding: nowhere is less known than before


def test_believing_one_after_the_other_is_believing_all_at_once(conditioned, distances):
    n, m = 60, 64
    step_by_step = conditioned
    for size in range(n + 1, m + 1):
        step_by_step = step_by_step.believing(distances[:, :size, :size])
    at_once = conditioned.believing(distances[:, :m, :m])
    one, other = (s.predict(distances[:, m:, :m]) for s in (step_by_step, at_once))
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-7)  # rounding, as above
    np.testing.assert_allclose(one.std, other.std, atol=1e-6)


def test_who_believes_is_another_and_the_first_stays_as_it_was(conditioned, distances):
    before = conditioned.predict(distances[:, 60:, :60])
    believing = conditioned.believing(distances[:, :63, :63])
    after = conditioned.predict(distances[:, 60:, :60])
    np.testing.assert_array_equal(after.mean, before.mean)
    np.testing.assert_array_equal(after.std, before.std)
    np.testing.assert_array_equal(believing.weights, conditioned.weights)


def test_little_improvement_is_expected_of_what_is_believed(conditioned, distances, scores):
    n, m = 60, 63
    best = scores[:n].max()
    before = expected_improvement(conditioned.predict(distances[:, n:, :n]), best=best)
    order = [*range(n), *(n + np.argsort(-before))]  # the three most promising come next
    before, ordered = np.sort(before)[::-1], distances[:, order][:, :, order]
    believing = conditioned.believing(ordered[:, :m, :m])
    after = expected_improvement(believing.predict(ordered[:, n:, :m]), best=best)
    assert np.all(after[:3] < 0.1 * before[:3])
    assert np.median(after[3:] / before[3:]) > 0.9  # elsewhere little changes
