"""Vecchia's likelihood, against the exact one and brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autokernel.expression import NOISE, parse_expression
from autokernel.inference import (
    ExactLikelihood,
    Neighbourhoods,
    NeighbourLikelihood,
    TrainingData,
    draw_neighbourhoods,
)
from autokernel.inference import neighbours as nearest
from autokernel.inference.neighbours import NearestRows
from tests.batteries import Problem, covariance, numerical_gradient, problems

any_problem = st.one_of(problems(n_features=1), problems(n_features=3))


def all_before(n_rows: int, n_head: int, n_neighbours: int) -> Neighbourhoods:
    """Neighbourhoods in which each row has the rows just before it as neighbours."""
    rows = np.arange(n_head, n_rows)
    return Neighbourhoods(np.arange(n_head), rows[:, None] + np.arange(-n_neighbours, 1))


def dense_value(problem: Problem, neighbourhoods: Neighbourhoods) -> float:
    """The definition, by densities of normal distributions given others."""
    params = np.exp(problem.theta)
    K = covariance(problem.expression, params[:-1], problem.X) + params[-1] * np.eye(len(problem.y))

    def log_density(rows: np.ndarray) -> float:
        _, log_det = np.linalg.slogdet(K[np.ix_(rows, rows)])
        fit = problem.y[rows] @ np.linalg.solve(K[np.ix_(rows, rows)], problem.y[rows])
        return -0.5 * (fit + log_det + len(rows) * np.log(2 * np.pi))

    tail = [log_density(rows) - log_density(rows[:-1]) for rows in neighbourhoods.blocks]
    weight = (len(problem.y) - len(neighbourhoods.head)) / max(1, len(tail))
    return log_density(neighbourhoods.head) + weight * sum(tail)


@settings(max_examples=100)
@given(any_problem, st.integers(1, 4), st.integers(1, 4))
def test_value_is_that_of_the_definition(problem: Problem, n_head: int, step: int) -> None:
    n = len(problem.y)
    n_head = min(n_head, n)
    rows = all_before(n, n_head, n_head)
    some = Neighbourhoods(rows.head, rows.blocks[::step])
    data = TrainingData(problem.X, problem.y)
    likelihood = NeighbourLikelihood(problem.expression, data, some)
    # EPS times condition numbers below 1e7, times terms of the size of a data fit over the noise
    size = n * (1 + np.exp(-problem.theta[-1]) * np.max(problem.y**2))
    assert likelihood.value(problem.theta) == pytest.approx(
        dense_value(problem, some), rel=0, abs=1e-8 * size
    )


@settings(max_examples=100)
@given(any_problem)
def test_gradient_equals_finite_differences(problem: Problem) -> None:
    n_head = min(3, len(problem.y))
    data = TrainingData(problem.X, problem.y)
    rows = all_before(len(problem.y), n_head, n_head)
    likelihood = NeighbourLikelihood(problem.expression, data, rows)
    found = likelihood.value_and_gradient(problem.theta)
    assert found.value == pytest.approx(likelihood.value(problem.theta), rel=1e-12)
    expected = numerical_gradient(likelihood.value, problem.theta)
    size = len(problem.y) * (1 + np.exp(-problem.theta[-1]) * np.max(problem.y**2))
    np.testing.assert_allclose(found.gradient, expected, rtol=1e-7, atol=1e-7 * size)


@settings(max_examples=50)
@given(any_problem)
def test_with_all_rows_before_the_last_one_it_is_exact(problem: Problem) -> None:
    n = len(problem.y)
    data = TrainingData(problem.X, problem.y)
    exact = ExactLikelihood(problem.expression, data).value(problem.theta)
    rows = all_before(n, max(1, n - 1), max(1, n - 1)) if n > 1 else all_before(1, 1, 1)
    likelihood = NeighbourLikelihood(problem.expression, data, rows)
    size = n * (1 + np.exp(-problem.theta[-1]) * np.max(problem.y**2))
    assert likelihood.value(problem.theta) == pytest.approx(exact, rel=0, abs=1e-8 * size)


def test_some_rows_estimate_the_sum_over_all_of_them_without_bias() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(300, 2)), rng.normal(size=300)
    expression = parse_expression("SE[0] * SE[1] + LIN[0]")
    theta, data = np.log([0.4, 1.0, 0.6, 1.0, 0.5, 0.5, 0.3]), TrainingData(X, y)
    estimates, wholes = [], []
    for seed in range(40):
        sizes = {"n_head": 20, "n_neighbours": 5}
        some, every = (
            draw_neighbourhoods(
                expression, theta, X, n_blocks=n, rng=np.random.default_rng(seed), **sizes
            )
            for n in (30, 280)
        )
        assert np.array_equal(some.head, every.head)
        estimates.append(NeighbourLikelihood(expression, data, some).value(theta))
        wholes.append(NeighbourLikelihood(expression, data, every).value(theta))
    away = np.subtract(estimates, wholes)
    assert abs(away.mean()) < 3 * away.std(ddof=1) / np.sqrt(40)
    assert away.std() > 1  # so that the test could fail


def test_neighbours_are_earlier_rows_and_each_row_is_chosen_once() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 2))
    expression = parse_expression("SE[0] * SE[1]")
    drawn = draw_neighbourhoods(
        expression,
        np.log([0.1, 1, 0.1, 1, 0.1]),
        X,
        n_head=30,
        n_blocks=370,
        n_neighbours=8,
        rng=rng,
    )
    rows = drawn.blocks[:, -1]
    assert sorted([*drawn.head, *rows]) == list(range(400))
    place = {row: number for number, row in enumerate([*drawn.head, *rows])}
    for *neighbours, row in drawn.blocks.tolist():
        assert len(set(neighbours)) == 8
        assert all(place[neighbour] < place[row] for neighbour in neighbours)


@pytest.mark.parametrize("few", [0, 4096], ids=["tree", "all"])
def test_neighbours_are_the_rows_of_highest_correlation(few, monkeypatch) -> None:
    monkeypatch.setattr(nearest, "_FEW", few)
    rng = np.random.default_rng(0)
    X, points = rng.uniform(size=(2000, 2)), rng.uniform(size=(50, 2))
    expression = parse_expression("SE[0] * SE[1]")
    found = NearestRows(expression, np.log([0.05, 1, 0.5, 1, 0.1]), X, rng).of(points, 10)
    distance = ((points[:, None] - X) ** 2 / np.array([0.05, 0.5]) ** 2).sum(axis=-1)
    expected = np.sort(np.argsort(distance, axis=1)[:, :10], axis=1)
    np.testing.assert_array_equal(np.sort(found, axis=1), expected)


def test_rows_one_period_away_are_neighbours() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(5000, 1))
    expression, theta = parse_expression("PER[0]"), np.log([0.3, 1.0, 0.1, 0.1])
    named = [p.name for p in expression.parameters]
    period = np.exp(theta[named.index("period")])
    rows = NearestRows(expression, theta, X, rng).of(np.array([[0.5]]), 40)[0]
    cycles = (X[rows, 0] - 0.5) / period
    assert np.abs(cycles - np.round(cycles)).max() < 0.2
    assert len(set(np.round(cycles))) > 2


def test_a_row_far_from_all_others_has_neighbours_too() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(50, 1))
    nearest_rows = NearestRows(parse_expression("SE[0]"), np.log([0.01, 1, 0.1]), X, rng)
    assert len(set(nearest_rows.of(np.array([[1e6]]), 5)[0])) == 5


def test_a_matrix_that_is_not_positive_definite_gives_minus_infinity() -> None:
    X, y = np.zeros((6, 1)), np.arange(6.0)
    rows = all_before(6, 2, 2)
    likelihood = NeighbourLikelihood(parse_expression("SE[0]"), TrainingData(X, y), rows)
    theta = np.log([1.0, 1.0, 1e-300])
    assert likelihood.value(theta) == -np.inf
    found = likelihood.value_and_gradient(theta)
    assert found.value == -np.inf
    assert not found.gradient.any()


def test_predictive_criteria_say_that_they_need_exact_inference() -> None:
    X, y = np.zeros((6, 1)), np.arange(6.0)
    likelihood = NeighbourLikelihood(NOISE, TrainingData(X, y), all_before(6, 2, 2))
    with pytest.raises(NotImplementedError, match="approximation='exact'"):
        likelihood.leave_one_out(np.zeros(1))
    with pytest.raises(NotImplementedError, match="approximation='exact'"):
        likelihood.held_out(np.zeros(1), 3)
