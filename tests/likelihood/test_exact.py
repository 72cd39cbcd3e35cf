import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf
from scipy.linalg import LinAlgError
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process import GaussianProcessRegressor

from autokernel.expression import Leaf, parse_expression
from autokernel.inference import Covariance, ExactLikelihood, TrainingData
from autokernel.kernels import LINEAR, PRESETS, SMOOTH
from autokernel.typing import FloatArray, IntArray
from tests.batteries import EPS, Problem, covariance, exported, numerical_gradient, problems
from tests.high_precision import PreciseLogPosterior, mp

one_column, three_columns = problems(n_features=1), problems(n_features=3)
any_problem = st.one_of(one_column, three_columns)


def log_likelihood(problem: Problem) -> ExactLikelihood:
    return ExactLikelihood(problem.expression, TrainingData(problem.X, problem.y))


def size_of_terms(problem: Problem) -> float:
    """Size of what is added up: the data fit may cancel against the log determinant."""
    K = exported(problem)(problem.X)
    fit = problem.y @ np.linalg.solve(K, problem.y)
    return fit + np.abs(np.log(np.linalg.eigvalsh(K))).sum() + len(problem.y)


@settings(max_examples=150)
@given(any_problem)
def test_value_equals_that_of_scikit_learn(problem: Problem) -> None:
    gpr = GaussianProcessRegressor(exported(problem), optimizer=None, alpha=0)
    expected = gpr.fit(problem.X, problem.y).log_marginal_likelihood_value_
    # EPS times a condition number below 1e7, relative to the terms of the sum
    assert log_likelihood(problem).value(problem.theta) == pytest.approx(
        expected, rel=0, abs=1e-8 * size_of_terms(problem)
    )


@settings(max_examples=150)
@given(any_problem)
def test_covariance_equals_that_of_the_exported_kernel(problem: Problem) -> None:
    params, n_samples = np.exp(problem.theta), len(problem.y)
    K = covariance(problem.expression, params[:-1], problem.X)
    expected = exported(problem)(problem.X)
    np.testing.assert_allclose(
        K + params[-1] * np.eye(n_samples),
        expected,
        # six factors, PER among them off by 100 EPS each; zeros of LIN relative to the largest
        rtol=1e-12,
        atol=1e-12 * abs(expected).max(),
    )


@settings(max_examples=150)
@given(any_problem)
def test_gradient_equals_finite_differences(problem: Problem) -> None:
    likelihood = log_likelihood(problem)
    result = likelihood.value_and_gradient(problem.theta)
    expected = numerical_gradient(likelihood.value, problem.theta)
    # rounding: EPS / step, 2e-13, amplified by a condition number; 1e-9 is the most seen in 1500
    # random examples
    scale = size_of_terms(problem)
    np.testing.assert_allclose(result.gradient, expected, rtol=1e-7, atol=1e-7 * scale)


@given(any_problem)
def test_value_with_and_without_the_gradient_is_the_same(problem: Problem) -> None:
    likelihood = log_likelihood(problem)
    value = likelihood.value(problem.theta)
    assert likelihood.value_and_gradient(problem.theta).value == value
    assert likelihood.value(problem.theta) == value


@given(any_problem)
def test_predictions_of_each_target_from_those_before_multiply_to_the_likelihood(
    problem: Problem,
) -> None:
    likelihood = log_likelihood(problem)
    steps = [likelihood.held_out(problem.theta, k)[0] for k in range(len(problem.y))]
    assert sum(steps) == pytest.approx(
        likelihood.value(problem.theta), rel=0, abs=1e-8 * size_of_terms(problem)
    )


@given(any_problem)
def test_targets_held_out_one_by_one_are_those_left_out_in_closed_form(problem: Problem) -> None:
    found = log_likelihood(problem).leave_one_out(problem.theta)
    n_samples = len(problem.y)
    expected = []
    for i in range(n_samples):
        rows = np.append(np.delete(np.arange(n_samples), i), i)
        data = TrainingData(problem.X, problem.y).take(rows)
        likelihood = ExactLikelihood(problem.expression, data)
        expected += likelihood.held_out(problem.theta, n_samples - 1).tolist()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * size_of_terms(problem))


@given(any_problem, st.data())
def test_held_out_targets_have_the_densities_that_scikit_learn_predicts(
    problem: Problem, data: st.DataObject
) -> None:
    X, y = problem.X, problem.y
    n_given = data.draw(st.integers(0, len(y) - 1))
    gpr = GaussianProcessRegressor(exported(problem), optimizer=None, alpha=0)
    if n_given:  # without any it predicts from the prior
        gpr.fit(X[:n_given], y[:n_given])
    mean, std = gpr.predict(X[n_given:], return_std=True)
    np.testing.assert_allclose(
        log_likelihood(problem).held_out(problem.theta, n_given),
        norm.logpdf(y[n_given:], mean, std),
        rtol=0,
        atol=1e-8 * size_of_terms(problem),
    )


@pytest.mark.parametrize("n_samples", [1, 2, 3, 24, 25])
def test_value_equals_the_density_of_the_normal_distribution(n_samples: int) -> None:
    rng = np.random.default_rng(n_samples)
    X, y = rng.uniform(-1, 1, (n_samples, 1)), rng.standard_normal(n_samples)
    lengthscale, variance, noise_variance = 0.5, 2.0, 0.1
    K = variance * np.exp(-((X - X.T) ** 2) / (2 * lengthscale**2))
    K += noise_variance * np.eye(n_samples)
    theta = np.log([lengthscale, variance, noise_variance])
    likelihood = ExactLikelihood(Leaf(SMOOTH, 0), TrainingData(X, y))
    # EPS times a condition number of 2 n / 0.1
    assert likelihood.value(theta) == pytest.approx(multivariate_normal.logpdf(y, cov=K), rel=1e-11)


def test_one_sample_has_the_density_of_one_number() -> None:
    likelihood = ExactLikelihood(Leaf(LINEAR, 0), TrainingData(np.array([[2.0]]), np.array([3.0])))
    variance = 0.5 * 2.0**2 + 0.25 + 0.75  # slope, offset, noise
    result = likelihood.value_and_gradient(np.log([0.5, 0.25, 0.75]))
    value = -0.5 * (9 / variance + np.log(2 * np.pi * variance))
    in_variance = 0.5 * (9 / variance**2 - 1 / variance)
    # a handful of operations
    assert result.value == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(
        result.gradient, in_variance * np.array([2.0, 0.25, 0.75]), rtol=1e-14
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SE[0]", ("lengthscale", "variance")),
        ("SE[0] * SE[0]", ("lengthscale", "variance") * 2),
        (
            "PER[0] * (LIN[1] + SE[0])",
            ("lengthscale", "variance", "period", "variance", "offset", "lengthscale", "variance"),
        ),
    ],
)
def test_parameters_stand_in_the_order_of_the_nodes_with_the_noise_variance_last(
    text: str, expected: tuple[str, ...]
) -> None:
    data = TrainingData(np.zeros((3, 2)), np.zeros(3))
    likelihood = ExactLikelihood(parse_expression(text), data)
    assert [p.name for p in likelihood.parameters] == [*expected, "noise_variance"]


@pytest.mark.parametrize("operator", ["+", "*"])
@pytest.mark.parametrize("leaf", ["SE[0]", "LIN[0]", "PER[0]", "RQ[0]", "MAT32[0]", "MAT52[0]"])
def test_repeated_leaves_have_parameters_of_their_own(leaf: str, operator: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6, 1))
    single, twice = parse_expression(leaf), parse_expression(f"{leaf} {operator} {leaf}")
    n_params = len(Covariance(single, TrainingData(X, X[:, 0]).pairs).parameters)
    first, second = np.exp(rng.uniform(-1, 1, (2, n_params)))
    combine = np.add if operator == "+" else np.multiply
    expected = combine(covariance(single, first, X), covariance(single, second, X))
    # exponents are added before or values multiplied after the exponential
    np.testing.assert_allclose(
        covariance(twice, np.append(first, second), X), expected, rtol=1e-13, atol=1e-15
    )


@pytest.mark.parametrize("noise_variance", [1e-8, 1e-2])
def test_predictions_agree_with_sixty_digits_where_the_noise_is_at_its_floor(
    noise_variance: float,
) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(15, 1))
    y = np.sin(6 * X[:, 0])
    theta = np.log([0.3, 2.0, noise_variance])

    def log_density(rows: IntArray) -> mpf:
        of_rows = PreciseLogPosterior("SE[0]", X[rows], y[rows], priors=PRESETS["paper"])
        return of_rows([mp.mpf(t) for t in theta])

    all_rows = np.arange(15)
    whole = log_density(all_rows)  # the prior is the same and drops out of the differences
    expected = [float(whole - log_density(np.delete(all_rows, i))) for i in all_rows]
    likelihood = ExactLikelihood(Leaf(SMOOTH, 0), TrainingData(X, y))
    # EPS times a condition number of 3e9
    np.testing.assert_allclose(likelihood.leave_one_out(theta), expected, rtol=0, atol=1e-6)
    assert likelihood.held_out(theta, 14)[0] == pytest.approx(expected[-1], abs=1e-6)


SINGULAR = TrainingData(np.zeros((2, 1)), np.array([1.0, 2.0]))  # equal inputs
NO_NOISE = np.array([0.0, 0.0, -80.0])  # exp(-80) added to 1 is 1


def test_a_matrix_that_cannot_be_factorised_is_minus_infinity_with_a_zero_gradient() -> None:
    likelihood = ExactLikelihood(Leaf(SMOOTH, 0), SINGULAR)
    assert likelihood.value(NO_NOISE) == -np.inf
    result = likelihood.value_and_gradient(NO_NOISE)
    assert result.value == -np.inf
    np.testing.assert_array_equal(result.gradient, np.zeros(3))


def test_a_failed_factorisation_leaves_the_covariance_as_it_is() -> None:
    likelihood = ExactLikelihood(Leaf(SMOOTH, 0), SINGULAR)
    with pytest.raises(LinAlgError, match="not positive definite"):
        likelihood.factorise(NO_NOISE)
    jitter = 1e-3
    expected = np.linalg.cholesky(np.ones((2, 2)) + jitter * np.eye(2))
    # EPS times a condition number of 2000
    np.testing.assert_allclose(
        likelihood.factorise(NO_NOISE, jitter=jitter).lower(), expected, rtol=0, atol=2000 * EPS
    )


def test_predictions_from_a_matrix_that_cannot_be_factorised_are_minus_infinity() -> None:
    likelihood = ExactLikelihood(Leaf(SMOOTH, 0), SINGULAR)
    np.testing.assert_array_equal(likelihood.leave_one_out(NO_NOISE), [-np.inf, -np.inf])
    np.testing.assert_array_equal(likelihood.held_out(NO_NOISE, 1), [-np.inf])


@given(three_columns)
def test_nothing_that_is_given_is_changed(problem: Problem) -> None:
    theta, X, y = problem.theta.copy(), problem.X.copy(), problem.y.copy()
    log_likelihood(problem).value_and_gradient(problem.theta)
    np.testing.assert_array_equal(problem.theta, theta)
    np.testing.assert_array_equal(problem.X, X)
    np.testing.assert_array_equal(problem.y, y)


@given(any_problem, st.data())
def test_nothing_is_left_of_the_parameters_of_the_last_call(
    problem: Problem, data: st.DataObject
) -> None:
    used, moved = log_likelihood(problem), problem.theta.copy()
    moved[data.draw(st.integers(0, len(moved) - 1))] += 0.3  # the other leaves keep their values
    used.value_and_gradient(problem.theta)
    again, fresh = used.value_and_gradient(moved), log_likelihood(problem).value_and_gradient(moved)
    assert again.value == fresh.value
    np.testing.assert_array_equal(again.gradient, fresh.gradient)


def test_kernels_on_the_same_data_share_the_pairs_of_a_column() -> None:
    data = TrainingData(np.random.default_rng(0).uniform(size=(5, 2)), np.zeros(5))
    assert data.pairs(1) is data.pairs(1)
    assert data.pairs(0) is not data.pairs(1)
    theta: FloatArray = np.zeros(5)
    texts = ("SE[0] + SE[1]", "SE[1] + SE[0]")
    one, other = (ExactLikelihood(parse_expression(text), data) for text in texts)
    # the sum runs in the other order
    assert one.value(theta) == pytest.approx(other.value(theta), rel=1e-14)


@pytest.mark.parametrize("theta", [[0, 800, 0], [-400, 0, 0], [np.nan, 0, 0], [0, 0, 800]])
def test_parameters_that_overflow_have_no_likelihood_and_no_gradient(theta: list[float]) -> None:
    likelihood = ExactLikelihood(
        parse_expression("SE[0]"), TrainingData(np.eye(4)[:, :1], np.ones(4))
    )
    with np.errstate(all="ignore"):
        point = likelihood.value_and_gradient(np.array(theta, dtype=float))
    assert point.value == -np.inf
    np.testing.assert_array_equal(point.gradient, 0.0)
