from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import gamma

from autokernel import CallableKernel, evaluate_kernel, parse_expression
from autokernel.evidence import Evaluator
from autokernel.evidence import mode_search as modes_module
from autokernel.evidence.maximise import Point
from autokernel.evidence.posterior import NOISE_FLOOR, LogPosterior
from autokernel.expression import Leaf
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import SMOOTH, VARIANCE
from autokernel.kernels.parameters import check_priors
from tests.processes import outputs_under_two_hash_seeds

KERNELS = ["SE[0]", "LIN[0] * PER[0] + SE[1]", "RQ[0] * SE[1] + LIN[1]", "(SE[0] + LIN[1]) * RQ[1]"]

FIT_AND_PRINT = """
import numpy as np
from autokernel import evaluate_kernel
x = np.linspace(0, 1, 25)
fit = evaluate_kernel("LIN[0] * PER[0] + SE[0]", x[:, None], np.sin(20 * x) + x, random_state=0)
print(fit.theta.tobytes().hex(), fit.score.hex())
"""


@pytest.fixture(scope="module")
def table():
    """Two columns and a standardised target with a wave in one and a slope in the other."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 2))
    y = X[:, 0] * np.sin(12 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=30)
    return X, (y - y.mean()) / y.std()


@pytest.fixture(scope="module")
def fits(table):
    return {text: evaluate_kernel(text, *table, priors="paper") for text in KERNELS}


def second_differences(f, theta, steps):
    """Negative Hessian of f by central differences, one step per axis."""
    axes = np.diag(steps)
    corners = [
        [f(theta + a + b) - f(theta + a - b) - f(theta - a + b) + f(theta - a - b) for b in axes]
        for a in axes
    ]
    return -np.array(corners) / (4 * np.outer(steps, steps))


@pytest.mark.parametrize("text", KERNELS)
def test_log_posterior_is_that_of_the_dense_definition(text, table, fits, dense_log_posterior):
    fit = fits[text]
    assert fit.status == "ok"
    # rounding: condition number 1e3 of the covariance times 1e-16, on terms of a hundred nats
    assert fit.log_posterior == pytest.approx(
        dense_log_posterior(text, *table)(fit.theta), abs=1e-9
    )


@pytest.mark.parametrize("text", KERNELS)
def test_log_likelihood_and_log_prior_add_up(text, fits):
    fit = fits[text]
    # one subtraction and one addition: rounding
    assert fit.log_likelihood + fit.log_prior == pytest.approx(fit.log_posterior, rel=1e-14)


def test_log_prior_is_the_density_of_the_logarithms(fits):
    lengthscale, variance, noise = np.exp(fits["SE[0]"].theta)
    expected = (
        gamma.logpdf(lengthscale, 2, scale=1 / 2)
        + gamma.logpdf(variance, 2, scale=1 / 3)
        + gamma.logpdf(noise, 1, scale=1 / 100)
        + np.log(lengthscale * variance * noise)
    )
    assert fits["SE[0]"].log_prior == pytest.approx(expected, rel=1e-13)  # rounding


@pytest.mark.parametrize("text", KERNELS)
def test_the_gradient_vanishes_at_the_map_point(text, table, fits, dense_log_posterior):
    fit = fits[text]
    log_posterior = dense_log_posterior(text, *table)
    width = 1 / np.sqrt(np.diag(fit.hessian))
    step = 1e-3  # of the width: the difference is off by the square of it
    ends = fit.theta + np.stack([1, -1])[:, None, None] * np.diag(step * width)
    gradient = np.subtract(*log_posterior(ends)) / (2 * step)
    scaled_hessian = fit.hessian * np.outer(width, width)
    # what a Newton step would still gain, in nats: a run stops at 1e-11 by its estimate of the
    # Hessian, which may be off by a factor of ten; without the Jacobian it is above 0.1
    assert 0.5 * gradient @ np.linalg.solve(scaled_hessian, gradient) < 1e-9


@pytest.mark.parametrize("text", KERNELS)
def test_hessian_is_that_of_the_dense_definition(text, table, fits, dense_log_posterior):
    fit = fits[text]
    log_posterior = dense_log_posterior(text, *table)
    width = 1 / np.sqrt(np.diag(fit.hessian))
    # Richardson: errors of order h^2 cancel, those of h^4 are 1e-6
    fine, coarse = (second_differences(log_posterior, fit.theta, h * width) for h in (0.03, 0.06))
    expected = (4 * fine - coarse) / 3
    # in units of the widths; the package's own steps of at most 5e-2 widths leave a sixth of 2e-3
    # times a fourth derivative, which is small where the width is
    scale = np.outer(width, width)
    np.testing.assert_allclose(fit.hessian * scale, expected * scale, atol=1e-4)


def test_parameters_name_the_leaves_from_left_to_right_and_the_noise_last(table):
    fit = evaluate_kernel("(SE[0] + PER[1]) * LIN[0] + RQ[1]", *table)
    names = [(p.leaf, p.kernel, p.name) for p in fit.parameters]
    assert names == [
        (0, "SE[0]", "lengthscale"),
        (0, "SE[0]", "variance"),
        (1, "PER[1]", "lengthscale"),
        (1, "PER[1]", "variance"),
        (1, "PER[1]", "period"),
        (2, "LIN[0]", "variance"),
        (2, "LIN[0]", "offset"),
        (3, "RQ[1]", "lengthscale"),
        (3, "RQ[1]", "variance"),
        (3, "RQ[1]", "alpha"),
        (None, None, "noise_variance"),
    ]
    # exp and log are exact to one unit in the last place
    np.testing.assert_allclose(fit.theta, np.log([p.value for p in fit.parameters]), rtol=1e-14)
    assert fit.n_params == 11
    assert fit.hessian.shape == (11, 11)
    assert str(fit.expression) == "(SE[0] + PER[1]) * LIN[0] + RQ[1]"


def test_each_parameter_belongs_to_the_leaf_that_it_names(table):
    X, _ = table
    y = np.sin(12 * X[:, 0])  # column 1 says nothing
    fit = evaluate_kernel("LIN[1] + SE[0]", X, y, priors="paper")
    values = {(p.kernel, p.name): p.value for p in fit.parameters}
    assert values["SE[0]", "lengthscale"] < 0.5  # a wave of half a unit
    assert values["LIN[1]", "variance"] < values["SE[0]", "variance"]


def test_the_same_random_state_gives_the_same_result_whatever_came_before(table):
    expressions = [parse_expression(text) for text in ("SE[0] + PER[0]", "PER[0] * SE[1]")]
    alone = [
        Evaluator(*table, priors=check_priors("paper"), seed=3)(expression)
        for expression in expressions
    ]
    evaluator = Evaluator(*table, priors=check_priors("paper"), seed=3)
    for _ in range(2):
        for one, expression in zip(alone, expressions, strict=True):
            other = evaluator(expression)
            np.testing.assert_array_equal(one.theta, other.theta)
            assert one.score == other.score
            assert one.n_evaluations == other.n_evaluations


def test_another_random_state_starts_elsewhere_and_ends_at_the_same_evidence(table):
    one, other = (evaluate_kernel("SE[0]", *table, random_state=seed) for seed in (0, 1))
    assert not np.array_equal(one.theta, other.theta)
    assert one.score == pytest.approx(other.score, abs=1e-4)  # the optimiser's tolerance


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0), np.int64(3)])
def test_random_state_may_be_all_that_scikit_learn_takes(random_state, table):
    assert evaluate_kernel("LIN[1]", *table, random_state=random_state).status == "ok"


def test_the_result_does_not_depend_on_the_hash_seed():
    outputs = outputs_under_two_hash_seeds(FIT_AND_PRINT)
    assert len(outputs) == 1
    assert outputs != {""}


@pytest.mark.parametrize(
    ("text", "other", "order"),
    [
        ("SE[0] + LIN[1]", "LIN[1] + SE[0]", [2, 3, 0, 1, 4]),
        ("SE[0] * LIN[1]", "LIN[1] * SE[0]", [2, 3, 0, 1, 4]),
        ("SE[0] + (LIN[1] + LIN[0])", "LIN[0] + SE[0] + LIN[1]", [4, 5, 0, 1, 2, 3, 6]),
        ("RQ[1] + PER[0] + SE[0]", "PER[0] + SE[0] + RQ[1]", [3, 4, 5, 6, 7, 0, 1, 2, 8]),
        (
            "(SE[0] + RQ[1]) * LIN[0] + SE[1]",
            "SE[1] + LIN[0] * (RQ[1] + SE[0])",
            [7, 8, 5, 6, 2, 3, 4, 0, 1, 9],
        ),
    ],
)
def test_a_kernel_written_in_another_order_has_the_same_fit_in_that_order(
    text, other, order, table
):
    one, two = evaluate_kernel(text, *table), evaluate_kernel(other, *table)
    assert (str(one.expression), str(two.expression)) == (text, other)
    assert one.log_evidence == two.log_evidence  # the same computation, to the last bit
    assert (one.score, one.log_posterior, one.n_evaluations) == (
        two.score,
        two.log_posterior,
        two.n_evaluations,
    )
    np.testing.assert_array_equal(two.theta, one.theta[order])
    np.testing.assert_array_equal(two.hessian, one.hessian[np.ix_(order, order)])
    said = [(one.parameters[i].kernel, *one.parameters[i][2:]) for i in order]
    assert [(p.kernel, *p[2:]) for p in two.parameters] == said
    assert len(set(two.theta)) == len(order)  # or the test shows nothing


def test_inputs_and_targets_are_used_as_they_come(dense_log_posterior):
    rng = np.random.default_rng(0)
    X = 100 + 20 * rng.uniform(size=(25, 1))
    y = 4 + np.sin(X[:, 0]) + 0.1 * rng.normal(size=25)
    X_before, y_before = X.copy(), y.copy()
    fit = evaluate_kernel("SE[0] + LIN[0]", X, y, priors="paper")
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)
    # rounding: LIN makes a condition number of 1e6 here
    assert fit.log_posterior == pytest.approx(
        dense_log_posterior("SE[0] + LIN[0]", X, y)(fit.theta), abs=1e-6
    )


def test_lists_and_integers_are_taken_too():
    # on a line, four targets would leave the noise variance without a maximum
    fit = evaluate_kernel("LIN[0]", [[0], [1], [2], [4]], [0, 1, 3, 4])
    assert fit.status == "ok"


def test_given_priors_replace_those_of_their_name(table):
    free = evaluate_kernel("SE[0]", *table)
    narrow = evaluate_kernel("SE[0]", *table, priors={"lengthscale": (4e4, 2e4)})
    assert abs(free.parameters[0].value - 2.0) > 0.5
    assert narrow.parameters[0].value == pytest.approx(2.0, rel=0.05)  # ten deviations of 1/200


def test_the_cost_is_counted(table, monkeypatch):
    n_calls = 0
    original = LogPosterior.value_and_gradient

    def counting(self, theta):
        nonlocal n_calls
        n_calls += 1
        return original(self, theta)

    monkeypatch.setattr(LogPosterior, "value_and_gradient", counting)
    fit = evaluate_kernel("SE[0]", *table)
    assert fit.n_evaluations == n_calls > 24  # one at each start at least
    assert fit.seconds > 0


def test_score_is_the_log_evidence(fits):
    for fit in fits.values():
        assert fit.score == fit.log_evidence
        assert np.isfinite(fit.score)


def test_an_evaluation_is_frozen(fits):
    for field in fields(fits["SE[0]"]):
        with pytest.raises(FrozenInstanceError):
            setattr(fits["SE[0]"], field.name, None)


@pytest.mark.parametrize("text", ["SE[0]", "LIN[0]", "LIN[0] * LIN[0] * SE[0]"])
def test_noise_free_data_put_the_noise_at_its_floor(text):
    x = np.linspace(0, 1, 30)
    y = 2 * x if text == "LIN[0]" else np.sin(6 * x)
    fit = evaluate_kernel(text, x[:, None], y)
    assert fit.status == "ok"
    floor = NOISE_FLOOR * np.mean(y**2)
    assert fit.parameters[-1].value == pytest.approx(floor, rel=1e-9)  # a bound, not a fit
    numbers = [fit.log_likelihood, fit.log_prior, fit.log_posterior, fit.log_evidence, fit.score]
    assert np.all(np.isfinite(numbers))
    assert np.all(np.isfinite(fit.theta))
    assert np.all(np.isfinite(fit.hessian))


def test_a_kernel_without_any_factorisation_becomes_a_record_with_its_reason(table):
    negative = CallableKernel("NEG", lambda x, z, v: -1e6 - v + 0 * (x - z.T), (VARIANCE,))
    expression = parse_expression("SE[0] + LIN[1] + NEG[0]", base_kernels=(negative,))
    fit = evaluate_kernel(expression, *table)
    assert fit.score == fit.log_evidence == fit.log_posterior == -np.inf
    assert "no Cholesky factor" in fit.status
    assert fit.n_params == len(fit.theta) == len(fit.parameters) == 6
    assert np.all(np.isnan(fit.hessian))
    assert fit.n_evaluations > 0


def test_a_saddle_that_cannot_be_left_becomes_a_record_with_its_reason(table, monkeypatch):
    monkeypatch.setattr(LogPosterior, "hessian", lambda self, theta: -np.eye(len(theta)))
    fit = evaluate_kernel("SE[0]", *table)
    assert fit.score == -np.inf
    assert "saddle" in fit.status
    assert np.isfinite(fit.log_posterior)


def test_a_saddle_is_left_for_a_higher_point(monkeypatch):
    # Two SE share one effective lengthscale. Far below the prior's mode one of them does better
    # alone, so that the best point with equal parameters is a saddle.
    x = np.linspace(0, 1, 40)
    X, y = x[:, None], np.sin(40 * x) + 0.1 * np.random.default_rng(0).normal(size=40)
    expression = parse_expression("SE[0] * SE[0]")
    posterior = LogPosterior(
        ExactLikelihood(expression, TrainingData(X, y)), priors=check_priors("paper")
    )
    noise_and_variance = evaluate_kernel(expression, X, y, priors="paper").theta

    def equal(log_lengthscale):
        theta = noise_and_variance.copy()
        theta[[0, 2]] = log_lengthscale
        return theta

    best = minimize_scalar(
        lambda t: -posterior.value_and_gradient(equal(t))[0], bounds=(-4, 0), method="bounded"
    )
    saddle = Point(equal(best.x), -best.fun)
    assert np.linalg.eigvalsh(posterior.hessian(saddle.theta))[0] < 0  # or the test shows nothing
    monkeypatch.setattr(modes_module, "find_modes", lambda *arguments, **options: [saddle])
    fit = evaluate_kernel(expression, X, y, priors="paper")
    assert fit.status == "ok"
    assert fit.log_posterior > saddle.log_posterior + 0.1
    assert np.linalg.eigvalsh(fit.hessian)[0] > 0


@pytest.mark.parametrize("column", [2, 17])
def test_a_column_that_is_not_there_is_an_error(column, table):
    with pytest.raises(ValueError, match=r"columns below n_features=2, got SE\["):
        evaluate_kernel(Leaf(SMOOTH, 0) + Leaf(SMOOTH, column), *table)


def test_a_negative_column_is_an_error(table):
    with pytest.raises(ValueError, match=r"column.* got .*-1"):
        evaluate_kernel(Leaf(SMOOTH, 0) + Leaf(SMOOTH, -1), *table)


def test_bad_arguments_are_errors_that_say_what_is_expected(table):
    X, y = table
    with pytest.raises(ValueError, match=r"criterion must be one of \['laplace'.*got 'evidence'"):
        evaluate_kernel("SE[0]", X, y, criterion="evidence")
    with pytest.raises(ValueError, match=r"priors must be one of .*'paper'.*got 'flat'"):
        evaluate_kernel("SE[0]", X, y, priors="flat")
    with pytest.raises(ValueError, match="expected a base kernel"):
        evaluate_kernel("SE[0] +", X, y)
    with pytest.raises(TypeError, match="expression must be a str"):
        evaluate_kernel(7, X, y)


def test_bad_data_are_errors_in_the_words_of_scikit_learn(table):
    X, y = table
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        evaluate_kernel("SE[0]", X[:, 0], y)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        evaluate_kernel("SE[0]", X[:1], y[:1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        evaluate_kernel("SE[0]", X, y[:-1])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        evaluate_kernel("SE[0]", np.where(X > 0.9, np.nan, X), y)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        evaluate_kernel("SE[0]", X, np.where(y > 1, np.nan, y))


def test_cycles_are_found_on_more_rows_than_modes_are_searched_on():
    rng = np.random.default_rng(3)
    x = np.linspace(0, 1, 400)
    y = (0.5 + x) * np.sin(2 * np.pi * 20 * x) + 2 * x + 0.1 * rng.normal(size=400)
    y = (y - y.mean()) / y.std()
    found = [
        evaluate_kernel("LIN[0] + PER[0] + SE[0]", x[:, None], y, random_state=seed).log_posterior
        for seed in range(4)
    ]
    assert min(found) > max(found) - 10


def test_numbers_whose_squares_overflow_are_refused():
    x = np.linspace(0, 1, 10)[:, None]
    with pytest.raises(ValueError, match="y must not hold numbers above"):
        evaluate_kernel("SE[0]", x, 1e160 * x[:, 0])
    with pytest.raises(ValueError, match="X must not hold numbers above"):
        evaluate_kernel("PER[0]", 1e160 * x, x[:, 0])


def test_numbers_whose_differences_vanish_when_they_are_squared_are_refused():
    x = np.linspace(0, 1, 10)[:, None]
    with pytest.raises(ValueError, match="y must not vary by less than 1e-100, got 1e-158"):
        evaluate_kernel("SE[0]", x, 1e-158 * x[:, 0])
    with pytest.raises(ValueError, match="X must not vary by less than"):
        evaluate_kernel("SE[0]", 1e-158 * x, x[:, 0])
    assert evaluate_kernel("SE[0]", x, 1e-6 * x[:, 0]).status == "ok"
    # as far from the unit of the priors the Hessian may fail, but nothing underflows with a warning
    assert np.isfinite(evaluate_kernel("SE[0]", x, 1e-99 * x[:, 0]).log_posterior)
