"""The collapsed variational bound, against the exact likelihood."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autokernel.expression import parse_expression
from autokernel.inference import (
    ExactLikelihood,
    InducingLikelihood,
    TrainingData,
    choose_inducing,
    inducing,
)
from autokernel.inference import inducing as bounds
from autokernel.inference.inducing import upper_bound
from tests.batteries import Problem, covariance, numerical_gradient, problems

any_problem = st.one_of(problems(n_features=1), problems(n_features=3))


def size_of(problem: Problem) -> float:
    """Size of the terms that are added up."""
    noise = np.exp(problem.theta[-1])
    params = np.exp(problem.theta[:-1])
    K = covariance(problem.expression, params, problem.X)
    return float(len(problem.y) + (problem.y @ problem.y + np.trace(K)) / noise)


def bound(problem: Problem, points: np.ndarray) -> InducingLikelihood:
    return InducingLikelihood(problem.expression, TrainingData(problem.X, problem.y), points)


def exact(problem: Problem) -> float:
    data = TrainingData(problem.X, problem.y)
    return ExactLikelihood(problem.expression, data).value(problem.theta)


@settings(max_examples=300)
@given(any_problem, st.integers(1, 25))
def test_it_is_a_lower_bound(problem: Problem, n_points: int) -> None:
    found = bound(problem, problem.X[:n_points]).value(problem.theta)
    assert found <= exact(problem) + 1e-9 * size_of(problem)


@settings(max_examples=150)
@given(any_problem)
def test_with_all_rows_as_inducing_points_it_is_the_likelihood(problem: Problem) -> None:
    found = bound(problem, problem.X).value(problem.theta)
    # Q = K - jitter I to first order, which changes the trace over the noise and the data fit
    noise, n = np.exp(problem.theta[-1]), len(problem.y)
    K = covariance(problem.expression, np.exp(problem.theta[:-1]), problem.X)
    jitter = 1e-8 * np.trace(K) / n
    tolerance = jitter * (n / noise + problem.y @ problem.y / noise**2)
    assert found == pytest.approx(exact(problem), rel=0, abs=tolerance + 1e-9 * size_of(problem))


@settings(max_examples=100)
@given(any_problem, st.integers(1, 4))
def test_gradient_equals_finite_differences(problem: Problem, n_points: int) -> None:
    likelihood = bound(problem, problem.X[:n_points])
    found = likelihood.value_and_gradient(problem.theta)
    assert found.value == likelihood.value(problem.theta)
    expected = numerical_gradient(likelihood.value, problem.theta)
    # rounding: EPS / step, amplified by the condition number of at most 1e8 of the points
    atol = 1e-6 * size_of(problem)
    np.testing.assert_allclose(found.gradient, expected, rtol=1e-6, atol=atol)


@pytest.mark.parametrize("kept", [0, 2**22], ids=["computed twice", "kept"])
def test_blocks_of_rows_change_nothing(kept, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(70, 2)), rng.normal(size=70)
    expression, theta = parse_expression("SE[0] * PER[1] + LIN[0]"), np.log(np.full(8, 0.5))
    data, points = TrainingData(X, y), X[:6]
    whole = InducingLikelihood(expression, data, points).value_and_gradient(theta)
    monkeypatch.setattr(inducing, "_AT_ONCE", 60)
    monkeypatch.setattr(inducing, "_KEPT", kept)
    blocks = InducingLikelihood(expression, data, points).value_and_gradient(theta)
    assert blocks.value == pytest.approx(whole.value, rel=1e-12)
    np.testing.assert_allclose(blocks.gradient, whole.gradient, rtol=1e-9)


def test_inducing_points_are_those_of_the_largest_variance_given_those_before() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    expression, theta = parse_expression("SE[0] * SE[1] + LIN[0]"), np.log(np.full(7, 0.3))
    chosen = choose_inducing(expression, theta, X, 12)
    K = covariance(expression, np.exp(theta[:-1]), X)
    expected: list[int] = []
    for _ in range(12):
        given_those = K[:, expected] @ np.linalg.solve(K[np.ix_(expected, expected)], K[expected])
        expected.append(int(np.argmax(np.diag(K - given_those))))
    assert chosen.tolist() == expected


def test_no_more_inducing_points_are_chosen_than_there_is_to_explain() -> None:
    X = np.random.default_rng(0).uniform(size=(60, 1))
    chosen = choose_inducing(parse_expression("LIN[0]"), np.log([1.0, 0.5, 0.1]), X, 50)
    assert len(chosen) <= 2  # a straight line has two degrees of freedom


def test_equal_rows_are_chosen_once() -> None:
    X = np.repeat([[0.0], [0.5], [1.0]], 20, axis=0)
    chosen = choose_inducing(parse_expression("SE[0]"), np.log([0.1, 1.0, 0.1]), X, 50)
    assert sorted(X[chosen, 0]) == [0.0, 0.5, 1.0]


def test_a_matrix_without_a_factor_gives_minus_infinity() -> None:
    data = TrainingData(np.zeros((4, 1)), np.arange(4.0))
    likelihood = InducingLikelihood(parse_expression("SE[0]"), data, np.zeros((1, 1)))
    theta = np.array([0.0, 800.0, 0.0])  # the variance overflows
    with np.errstate(over="ignore", invalid="ignore"):
        assert likelihood.value(theta) == -np.inf
        found = likelihood.value_and_gradient(theta)
    assert found.value == -np.inf
    assert not found.gradient.any()


@settings(max_examples=300)
@given(any_problem, st.integers(1, 25), st.integers(1, 30))
def test_the_exact_likelihood_lies_between_the_bounds(
    problem: Problem, n_points: int, n_steps: int
) -> None:
    likelihood = bound(problem, problem.X[:n_points])
    rounding = 1e-9 * size_of(problem)
    value = exact(problem)
    assert likelihood.value(problem.theta) <= value + rounding
    assert value <= upper_bound(likelihood, problem.theta, n_steps=n_steps) + rounding


@pytest.mark.parametrize("kept", [0, 2**26], ids=["computed anew", "kept"])
def test_the_interval_closes_as_inducing_points_are_added(kept, monkeypatch) -> None:
    monkeypatch.setattr(bounds, "_KEPT", kept)
    monkeypatch.setattr(bounds, "_AT_ONCE", 1000)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(200, 1)), rng.normal(size=200)
    expression, theta = parse_expression("SE[0] + LIN[0]"), np.log([0.1, 1.0, 0.5, 0.5, 0.1])
    problem = Problem(expression, theta, X, y)
    chosen = choose_inducing(expression, theta, X, 40)
    widths = []
    for n in (2, 5, 10, 20, 40):
        likelihood = bound(problem, X[chosen[:n]])
        low, high = likelihood.value(theta), upper_bound(likelihood, theta)
        assert low <= exact(problem) + 1e-6
        assert exact(problem) <= high + 1e-6
        widths.append(high - low)
    assert np.all(np.diff(widths) < 0)
    assert widths[0] > 10
    assert widths[-1] < 0.05


def test_more_steps_give_a_tighter_upper_bound() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(200, 1)), rng.normal(size=200)
    expression, theta = parse_expression("SE[0]"), np.log([0.05, 1.0, 0.1])
    likelihood = bound(Problem(expression, theta, X, y), X[::20])
    found = [upper_bound(likelihood, theta, n_steps=n) for n in (1, 5, 60)]
    assert found[0] > found[1] > found[2]
