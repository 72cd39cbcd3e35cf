"""Exact and approximate likelihoods, against dense formulas and finite differences."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process import GaussianProcessRegressor

from autokernel.data import RowNoise
from autokernel.data.scales import Scale
from autokernel.expression import NOISE, Leaf, parse_expression
from autokernel.inference import (
    ExactLikelihood,
    InducingLikelihood,
    NeighbourLikelihood,
    TrainingData,
    choose_inducing,
    draw_neighbourhoods,
    upper_bound,
)
from autokernel.inference.neighbours import NearestRows
from autokernel.kernels import PRESETS, SMOOTH
from tests.batteries import (
    Problem,
    covariance,
    exported,
    inputs_of,
    numerical_gradient,
    problems,
    seeds,
    target_on,
)
from tests.high_precision import PreciseLogPosterior, mp
from tests.model.cases import dense_covariance

any_problem = st.one_of(
    problems(n_features=1), problems(n_features=3), problems(n_features=3, has_row_noise=True)
)


def neighbourhoods(n_rows, n_head, n_neighbours, *, step=1):
    """Some rows, each with the rows just before it as neighbours."""
    rows = np.arange(n_head, n_rows, step)
    return np.arange(n_head), rows[:, None] + np.arange(-n_neighbours, 1)


def exact(problem):
    return ExactLikelihood(problem.expression, problem.data)


def inducing(problem, n_points=4):
    return InducingLikelihood(problem.expression, problem.data, problem.inputs[:n_points])


def neighbours(problem, n_head=3, *, step=1):
    n = len(problem.y)
    n_head = min(n_head, n)
    rows = neighbourhoods(n, n_head, n_head, step=step)
    return NeighbourLikelihood(problem.expression, problem.data, *rows)


LIKELIHOODS = {"exact": exact, "inducing": inducing, "neighbours": neighbours}
every_likelihood = pytest.mark.parametrize("make", LIKELIHOODS.values(), ids=LIKELIHOODS)


def dense(problem):
    """Covariance of the targets, noise included."""
    params = np.exp(problem.theta)
    return covariance(problem.expression, params[:-1], problem.X) + np.diag(problem.noise)


def scatter(problem):
    """Log densities (n,) of the scatter of the readings of each row, whose targets are equal."""
    if problem.row_noise is None:
        return np.zeros(len(problem.y))
    own = problem.row_noise
    noise = np.exp(problem.theta[-1] + own.log_factors) + own.rounding
    return -0.5 * ((own.weights - 1) * np.log(2 * np.pi * noise) + np.log(own.weights))


def log_normal(y, K):
    """Log density of a normal vector of mean zero."""
    _, log_det = np.linalg.slogdet(K)
    return -0.5 * (y @ np.linalg.solve(K, y) + log_det + len(y) * np.log(2 * np.pi))


def more_noise(problem):
    """What the noise of each row (n,) has more than that of all rows, as scikit-learn takes it."""
    return problem.noise - np.exp(problem.theta[-1])


def size_of(problem):
    """Size of the terms that are added up, by which rounding is multiplied.

    Condition numbers are below 1e8, so that EPS times them is about 1e-8 of it.
    """
    noise = problem.noise.min()
    return float(len(problem.y) + (problem.y @ problem.y + np.trace(dense(problem))) / noise)


def dense_vecchia(problem, head, blocks):
    """The definition of Vecchia's likelihood, by densities of normal vectors."""
    y, K = problem.y, dense(problem)

    def log_density(rows):
        return log_normal(y[rows], K[np.ix_(rows, rows)]) + scatter(problem)[rows].sum()

    tail = [log_density(rows) - log_density(rows[:-1]) for rows in blocks]
    return log_density(head) + (len(y) - len(head)) / max(1, len(tail)) * sum(tail)


@every_likelihood
@settings(max_examples=10)
@given(problem=any_problem)
def test_the_gradient_is_that_of_finite_differences(make, problem):
    likelihood = make(problem)
    value, theta = likelihood.value(problem.theta), problem.theta.copy()
    moved = problem.theta.copy()
    moved[0] += 0.3
    likelihood.value_and_gradient(moved)  # nothing is left of another call
    found, gradient = likelihood.value_and_gradient(problem.theta)
    np.testing.assert_array_equal(gradient, make(problem).value_and_gradient(problem.theta)[1])
    assert found == pytest.approx(value, rel=1e-12)
    assert likelihood.value(problem.theta) == value  # the reverse sweep changes nothing
    np.testing.assert_array_equal(problem.theta, theta)
    expected = numerical_gradient(likelihood.value, problem.theta)
    # rounding: EPS / step, 2e-13, amplified by a condition number of up to 1e8
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7 * size_of(problem))


OVERFLOW = [[0, 800, 0], [-400, 0, 0], [np.nan, 0, 0], [0, 0, 800]]
SINGULAR = [0, 0, -80]  # without noise, as exp(-80) added to 1 is 1


@pytest.mark.parametrize(
    ("make", "theta"),
    [
        *((make, theta) for make in LIKELIHOODS.values() for theta in OVERFLOW),
        (exact, SINGULAR),
        (neighbours, SINGULAR),
    ],
)
def test_without_a_factor_there_is_no_likelihood_and_no_gradient(make, theta):
    theta = np.array(theta, dtype=float)
    likelihood = make(Problem(Leaf(SMOOTH, 0), theta, np.eye(6)[:, :1], np.ones(6)))
    with np.errstate(all="ignore"):
        value, gradient = likelihood.value_and_gradient(theta)
        assert likelihood.value(theta) == value == -np.inf
    np.testing.assert_array_equal(gradient, np.zeros(3))
    if make is exact and theta[-1] == -80:
        np.testing.assert_array_equal(likelihood.leave_one_out(theta), np.full(6, -np.inf))


# Exact


@settings(max_examples=20)
@given(any_problem)
def test_the_exact_value_is_that_of_the_definition_and_of_scikit_learn(problem):
    found = exact(problem).value(problem.theta)
    tolerance = 1e-8 * size_of(problem)
    of_scatter = scatter(problem).sum()
    expected = log_normal(problem.y, dense(problem)) + of_scatter
    assert found == pytest.approx(expected, rel=0, abs=tolerance)
    gpr = GaussianProcessRegressor(exported(problem), optimizer=None, alpha=more_noise(problem))
    expected = gpr.fit(problem.X, problem.y).log_marginal_likelihood_value_ + of_scatter
    assert found == pytest.approx(expected, rel=0, abs=tolerance)


@settings(max_examples=10)
@given(any_problem)
def test_leave_one_out_in_closed_form_is_what_scikit_learn_predicts_of_one_row_after_the_other(
    problem,
):
    X, y, more, expected = problem.X, problem.y, more_noise(problem), []
    for i in range(len(y)):
        others = np.delete(np.arange(len(y)), i)
        gpr = GaussianProcessRegressor(exported(problem), optimizer=None, alpha=more[others])
        if len(others):  # without any it predicts from the prior
            gpr.fit(X[others], y[others])
        mean, std = gpr.predict(X[[i]], return_std=True)
        expected += norm.logpdf(y[[i]], mean, np.sqrt(std**2 + more[i])).tolist()
    np.testing.assert_allclose(
        exact(problem).leave_one_out(problem.theta),
        expected + scatter(problem),
        rtol=0,
        atol=1e-8 * size_of(problem),
    )


@pytest.mark.parametrize("noise_variance", [1e-8, 1e-2])
def test_predictive_densities_agree_with_sixty_digits_with_the_noise_at_its_floor(noise_variance):
    X = np.random.default_rng(0).uniform(size=(15, 1))
    y, theta, every = np.sin(6 * X[:, 0]), np.log([0.3, 2.0, noise_variance]), np.arange(15)

    def log_density(rows):
        of_rows = PreciseLogPosterior("SE[0]", X[rows], y[rows], priors=PRESETS["paper"])
        return of_rows([mp.mpf(t) for t in theta])

    whole = log_density(every)  # the prior is the same and drops out of the differences
    expected = [float(whole - log_density(np.delete(every, i))) for i in every]
    likelihood = ExactLikelihood(Leaf(SMOOTH, 0), TrainingData(X, y))
    # EPS times a condition number of 3e9
    np.testing.assert_allclose(likelihood.leave_one_out(theta), expected, rtol=0, atol=1e-6)


# Noise alone


def noise(n_samples=12, variance=0.7):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(n_samples, 2)), rng.normal(size=n_samples)
    return Problem(NOISE, np.log([variance]), X, y)


@pytest.mark.parametrize("has_row_noise", [False, True])
def test_targets_of_noise_alone_are_independent_normal_numbers(has_row_noise):
    problem, rng = noise(), np.random.default_rng(1)
    if has_row_noise:
        weights, errors = rng.uniform(0.5, 3, 12), rng.uniform(0, 2, 12)
        row_noise = RowNoise(weights, errors, 0.2, log_factors=rng.normal(size=12))
        problem = replace(problem, row_noise=row_noise)
    likelihood = exact(problem)
    expected = norm.logpdf(problem.y, scale=np.sqrt(problem.noise)) + scatter(problem)
    # sums of a dozen terms of size one: rounding
    assert likelihood.value(problem.theta) == pytest.approx(expected.sum(), rel=1e-13)
    np.testing.assert_allclose(likelihood.leave_one_out(problem.theta), expected, rtol=1e-13)
    gradient = likelihood.value_and_gradient(problem.theta)[1]
    slope = numerical_gradient(likelihood.value, problem.theta)
    np.testing.assert_allclose(gradient, slope, rtol=1e-8)


@pytest.mark.parametrize("theta", [-800.0, 800.0, np.nan])
def test_a_variance_of_noise_that_is_not_positive_and_finite_is_minus_infinity(theta):
    likelihood, theta = exact(noise()), np.array([theta])
    with np.errstate(over="ignore"):
        value, gradient = likelihood.value_and_gradient(theta)
        values = [likelihood.value(theta), value]
        values += likelihood.leave_one_out(theta).tolist()
    assert set(values) == {-np.inf}
    np.testing.assert_array_equal(gradient, [0.0])


def test_noise_alone_takes_memory_in_proportion_to_the_rows():
    problem = noise(10**5)
    likelihood = exact(problem)
    tracemalloc.start()
    try:
        likelihood.value_and_gradient(problem.theta)
        likelihood.leave_one_out(problem.theta)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50 * problem.y.nbytes


# Inducing points


@settings(max_examples=30)
@given(any_problem, st.integers(1, 25), st.integers(1, 30))
def test_the_exact_likelihood_lies_between_the_bounds(problem, n_points, n_steps):
    likelihood, rounding = inducing(problem, n_points), 1e-9 * size_of(problem)
    value = exact(problem).value(problem.theta)
    assert likelihood.value(problem.theta) <= value + rounding
    assert value <= upper_bound(likelihood, problem.theta, n_steps=n_steps) + rounding


@settings(max_examples=20)
@given(any_problem)
def test_with_all_rows_as_inducing_points_the_bound_is_the_likelihood(problem):
    found = inducing(problem, len(problem.y)).value(problem.theta)
    # Q = K - jitter I to first order, which changes the trace over the noise and the data fit
    noise_variance, n = problem.noise.min(), len(problem.y)
    jitter = 1e-8 * np.trace(dense(problem)) / n
    tolerance = jitter * (n / noise_variance + problem.y @ problem.y / noise_variance**2)
    expected = exact(problem).value(problem.theta)
    assert found == pytest.approx(expected, rel=0, abs=tolerance + 1e-9 * size_of(problem))


@pytest.mark.parametrize("n_leaves", [1, 17], ids=["kept", "computed twice"])
def test_the_bound_does_not_depend_on_the_order_of_the_rows(n_leaves):
    """Rows are summed in several blocks, whose values are kept only if there are few of them."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(4200, 1)), rng.normal(size=4200)
    expression = parse_expression(" * ".join(["SE[0]"] * n_leaves))
    theta = np.append(np.zeros(2 * n_leaves), -1.0)
    order, points = rng.permutation(4200), inputs_of(np.linspace(0, 1, 100)[:, None])
    first, second = (
        InducingLikelihood(expression, TrainingData(X[rows], y[rows]), points)
        for rows in (slice(None), order)
    )
    (one, gradient), (other, slopes) = (at.value_and_gradient(theta) for at in (first, second))
    assert other == pytest.approx(one, rel=1e-9)
    np.testing.assert_allclose(slopes, gradient, rtol=1e-6, atol=1e-6 * 4200)


def test_inducing_points_have_the_largest_variance_given_those_before_up_to_what_is_explained():
    X = np.random.default_rng(0).uniform(size=(60, 2))
    expression, theta = parse_expression("SE[0] * SE[1] + LIN[0]"), np.log(np.full(7, 0.3))
    K, expected = covariance(expression, np.exp(theta[:-1]), X), []
    for _ in range(12):
        given_those = K[:, expected] @ np.linalg.solve(K[np.ix_(expected, expected)], K[expected])
        expected.append(int(np.argmax(np.diag(K - given_those))))
    assert choose_inducing(expression, theta, inputs_of(X), 12).tolist() == expected
    X = np.random.default_rng(0).uniform(size=(60, 1))
    chosen = choose_inducing(parse_expression("LIN[0]"), np.log([1.0, 0.5, 0.1]), inputs_of(X), 50)
    assert len(chosen) <= 2  # a straight line has two degrees of freedom
    X = np.repeat([[0.0], [0.5], [1.0]], 20, axis=0)
    chosen = choose_inducing(parse_expression("SE[0]"), np.log([0.1, 1.0, 0.1]), inputs_of(X), 50)
    assert sorted(X[chosen, 0]) == [0.0, 0.5, 1.0]
    # until all variances are below a millionth of the noise, and no further
    X, line = np.linspace(0, 1, 60)[:, None], parse_expression("SE[0]")
    for noise in (1e-2, 1e4):
        params = np.array([0.2, 1.0])
        rows = choose_inducing(line, np.log([*params, noise]), inputs_of(X), 50)
        K = covariance(line, params, X)
        for some, is_enough in ((rows, True), (rows[:-1], False)):
            left = np.diag(K - K[:, some] @ np.linalg.solve(K[np.ix_(some, some)], K[some]))
            assert (left.max() <= 1e-6 * noise) == is_enough


# Neighbours


@settings(max_examples=30)
@given(any_problem, st.integers(1, 4), st.integers(1, 4))
def test_vecchias_value_is_that_of_the_definition(problem, n_head, step):
    n_head = min(n_head, len(problem.y))
    rows = neighbourhoods(len(problem.y), n_head, n_head, step=step)
    expected = dense_vecchia(problem, *rows)
    found = neighbours(problem, n_head, step=step).value(problem.theta)
    assert found == pytest.approx(expected, rel=0, abs=1e-8 * size_of(problem))


def test_neighbours_are_earlier_rows_and_each_row_is_chosen_once():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 2))
    head, blocks = draw_neighbourhoods(
        parse_expression("SE[0] * SE[1]"),
        np.log([0.1, 1, 0.1, 1, 0.1]),
        inputs_of(X),
        n_head=30,
        n_blocks=370,
        n_neighbours=8,
        rng=rng,
    )
    order = [*head, *blocks[:, -1]]
    assert sorted(order) == list(range(400))
    position = {row: number for number, row in enumerate(order)}
    for *chosen, row in blocks.tolist():
        assert len(set(chosen)) == 8
        assert all(position[one] < position[row] for one in chosen)


def test_fewer_blocks_stand_for_as_many_rows():
    """A third of the rows outside of the head shows the likelihood of all to a few hundredths."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(1210, 1))
    data = TrainingData(x, np.sin(6 * x[:, 0]) + 0.3 * rng.normal(size=1210))
    expression, theta = parse_expression("SE[0]"), np.log([0.2, 0.5, 0.09])
    rows = draw_neighbourhoods(
        expression, theta, data.inputs, n_head=10, n_blocks=1200, n_neighbours=5, rng=rng
    )
    every = NeighbourLikelihood(expression, data, *rows)
    assert every.with_fewer_blocks(1200) is every
    few = every.with_fewer_blocks(500)
    assert few.rows_for_each == 3.0  # of 400 blocks
    assert few.work < every.work / 2.5
    by_hand = NeighbourLikelihood(expression, data, rows[0], rows[1][::3])
    assert few.value(theta) == by_hand.value(theta)
    # a log density has a standard deviation of 0.7
    assert few.value(theta) == pytest.approx(every.value(theta), abs=3 * 3 * 0.7 * np.sqrt(400))


@pytest.mark.parametrize("n_samples", [2000, 6000], ids=["all are candidates", "tree"])
def test_neighbours_are_the_rows_of_highest_correlation(n_samples):
    rng = np.random.default_rng(0)
    X, points = rng.uniform(size=(n_samples, 2)), rng.uniform(size=(50, 2))
    expression = parse_expression("SE[0] * SE[1]")
    theta = np.log([0.05, 1, 0.5, 1, 0.1])
    found = NearestRows(expression, theta, inputs_of(X), rng).of(inputs_of(points), 10)
    distance = ((points[:, None] - X) ** 2 / np.array([0.05, 0.5]) ** 2).sum(axis=-1)
    expected = np.sort(np.argsort(distance, axis=1)[:, :10], axis=1)
    np.testing.assert_array_equal(np.sort(found, axis=1), expected)
    (far,) = NearestRows(expression, theta, inputs_of(X), rng).of(inputs_of(points[:1] + 1e6), 5)
    assert len(set(far)) == 5
    # rows one period away are neighbours too
    expression, theta = parse_expression("PER[0]"), np.log([0.3, 1.0, 0.1, 0.1])
    (rows,) = NearestRows(expression, theta, inputs_of(X), rng).of(inputs_of(points[:1]), 40)
    cycles = (X[rows, 0] - points[0, 0]) / 0.1
    assert np.abs(cycles - np.round(cycles)).max() < 0.2
    assert len(set(np.round(cycles))) > 2


def test_neighbours_among_many_rows_are_of_the_same_level_where_levels_differ():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=5000), rng.integers(0, 3, 5000)]).astype(float)
    points = X[:40] + np.array([3e-5, 0.0])
    expression = parse_expression("SE[0] * CAT[1]")
    for own, common in ((1.0, 1e-3), (1e-6, 1.0)):  # variances of a level and of all levels
        theta = np.log([0.05, 1.0, own, common, 0.1])
        found = NearestRows(expression, theta, inputs_of(X), rng).of(inputs_of(points), 10)
        correlation = dense_covariance(expression, np.exp(theta[:-1]), points, X)
        best = np.sort(correlation, axis=1)[:, -10:]
        chosen = np.sort(np.take_along_axis(correlation, found, axis=1), axis=1)
        # a neighbour in the metric of small steps is not always one in correlation
        np.testing.assert_allclose(chosen, best, rtol=1e-3)
        is_own = X[found, 1] == points[:, 1:]
        assert is_own.all() if own > common else 0.2 < is_own.mean() < 0.7


@every_likelihood
@given(any_problem)
@settings(max_examples=12)
def test_a_likelihood_on_a_scale_is_that_of_the_transformed_target_with_its_slopes(make, problem):
    scale = Scale("log", origin=6.0, unit=0.5, shift=0.8, width=0.3)
    y = np.clip(problem.y, -5, 5)
    t, log_slopes = scale.forward_and_log_slope(y)
    expression, target = problem.expression.on("log"), target_on(scale)
    own = make(replace(problem, expression=expression, y=y, target=target))
    row_noise = problem.row_noise
    if row_noise is not None:  # the delta method
        row_noise = row_noise.multiplied(np.exp(2 * log_slopes))
        log_slopes = row_noise.weights * log_slopes  # once for each reading
    by_hand = make(replace(problem, y=t, row_noise=row_noise))
    # with all rows in neighbourhoods, each row stands for itself in every likelihood
    difference = own.value(problem.theta) - by_hand.value(problem.theta)
    assert difference == pytest.approx(float(np.sum(log_slopes)), rel=1e-9, abs=1e-9)
    value, gradient = own.value_and_gradient(problem.theta)
    assert value == pytest.approx(own.value(problem.theta), rel=1e-12)
    np.testing.assert_array_equal(gradient, by_hand.value_and_gradient(problem.theta)[1])
    if make is inducing:
        bounds = [upper_bound(one, problem.theta) for one in (own, by_hand)]
        assert bounds[0] - bounds[1] == pytest.approx(float(np.sum(log_slopes)), abs=1e-6)


# Rows that stand for several readings


@settings(max_examples=10)
@given(problems(n_features=2, has_row_noise=True))
def test_a_row_with_a_mean_is_one_observation_of_it(problem):
    K, is_mean = dense(problem), np.arange(len(problem.y)) % 2 == 0
    counts = np.where(is_mean, 1.0, problem.row_noise.weights)
    of_means = exact(replace(problem, row_noise=problem.row_noise.changed(counts=counts)))
    expected = multivariate_normal.logpdf(problem.y, np.zeros(len(K)), K)
    expected += scatter(problem)[~is_mean].sum()
    tolerance = 1e-8 * size_of(problem)
    value, gradient = of_means.value_and_gradient(problem.theta)
    assert value == pytest.approx(expected, rel=0, abs=tolerance)
    step = 1e-5 * np.eye(len(gradient))[-1]  # of the log of the noise
    ends = [of_means.value(problem.theta + sign * step) for sign in (1, -1)]
    slope = (ends[0] - ends[1]) / 2e-5
    assert gradient[-1] == pytest.approx(slope, rel=1e-4, abs=1e5 * tolerance + 1e-4)


@settings(max_examples=10)
@given(st.one_of(problems(n_features=1), problems(n_features=3)), seeds)
def test_a_row_with_a_weight_is_as_many_rows(problem, seed):
    n, rng = len(problem.y), np.random.default_rng(seed)
    weights, rounding = rng.integers(1, 5, n), rng.choice([0.0, 0.3], n)
    others = {"rounding": rounding, "log_factors": rng.normal(size=n)}
    weighted = replace(problem, row_noise=RowNoise(weights.astype(float), **others))
    single = replace(problem, row_noise=RowNoise(np.ones(n), **others))
    copies = single.take(np.repeat(np.arange(n), weights))
    first = np.cumsum(weights) - weights
    order = np.concatenate([first, np.delete(np.arange(len(copies.y)), first)])
    shuffled = copies.take(order)
    every = np.arange(n - 1), np.arange(n)[None]  # the last row given all others
    all_copies = np.arange(weights[:-1].sum())
    pairs = [(exact(weighted), exact(copies)), (inducing(weighted), inducing(shuffled))]
    tolerance = 1e-8 * size_of(copies)
    for one, other in pairs:
        value, gradient = one.value_and_gradient(problem.theta)
        expected, slopes = other.value_and_gradient(problem.theta)
        assert value == pytest.approx(expected, rel=0, abs=tolerance)
        np.testing.assert_allclose(gradient, slopes, rtol=0, atol=10 * tolerance)
    bounds = [upper_bound(one, problem.theta) for one in pairs[1]]
    assert bounds[0] == pytest.approx(bounds[1], rel=0, abs=tolerance + 1e-4)
    if n > 1:  # the last row, given all others, is all of its copies one after the other
        of_last = NeighbourLikelihood(problem.expression, weighted.data, *every)
        assert of_last.value(problem.theta) == pytest.approx(
            exact(copies).value(problem.theta), rel=0, abs=tolerance
        )
        last = exact(weighted).leave_one_out(problem.theta)[-1]
        of_others = exact(copies.take(all_copies)).value(problem.theta)
        of_copies = exact(copies).value(problem.theta) - of_others
        assert last == pytest.approx(of_copies, rel=0, abs=2 * tolerance)
