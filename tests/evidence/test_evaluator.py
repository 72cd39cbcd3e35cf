"""The fit of one kernel: against its definition, in other units, as a record, with bad data."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from autokernel import CallableKernel, NotAMaximumError, evaluate_kernel, parse_expression
from autokernel.evidence import BIC, Evaluator
from autokernel.evidence.evaluation import WarmStart
from autokernel.evidence.posterior import NOISE_FLOOR
from autokernel.expression import Leaf, arrange, unit_prior
from autokernel.inference import TrainingData
from autokernel.kernels import SMOOTH, VARIANCE
from autokernel.kernels.parameters import check_priors
from tests.maxima import posterior_of

KERNELS = ["SE[0]", "LIN[0] * PER[0] + SE[1]", "RQ[0] * SE[1] + LIN[1]", "(SE[0] + LIN[1]) * RQ[1]"]
NEGATIVE = CallableKernel("NEG", lambda x, z, v: -1e6 - v + 0 * (x - z.T), (VARIANCE,))


@pytest.fixture(scope="module")
def table():
    """Two columns and a standardised target with a wave in one and a slope in the other."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 2))
    y = X[:, 0] * np.sin(14 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=30)
    return X, (y - y.mean()) / y.std()


@pytest.fixture(scope="module")
def fits(table):
    return {text: evaluate_kernel(text, *table, priors="paper") for text in KERNELS}


@pytest.mark.parametrize("text", KERNELS)
def test_a_fit_is_a_maximum_of_the_dense_log_posterior(text, table, fits, dense_log_posterior):
    fit, log_posterior = fits[text], dense_log_posterior(text, *table)
    assert fit.status == "ok"
    # rounding: condition number 1e3 of the covariance times 1e-16, on terms of a hundred nats
    assert fit.log_posterior == pytest.approx(log_posterior(fit.theta), abs=1e-9)
    # one subtraction and one addition: rounding
    assert fit.log_likelihood + fit.log_prior == pytest.approx(fit.log_posterior, rel=1e-14)
    assert fit.score == fit.log_evidence
    assert fit.seconds > 0
    width = 1 / np.sqrt(np.diag(fit.hessian))
    step = 1e-3  # of the width: the difference is off by the square of it
    ends = fit.theta + np.stack([1, -1])[:, None, None] * np.diag(step * width)
    gradient = np.subtract(*log_posterior(ends)) / (2 * step)
    scaled_hessian = fit.hessian * np.outer(width, width)
    # what a Newton step would still gain, in nats: a run stops at 1e-11 by its estimate of the
    # Hessian, which may be off by a factor of ten; without the Jacobian it is above 0.1
    assert 0.5 * gradient @ np.linalg.solve(scaled_hessian, gradient) < 1e-9


def test_parameters_name_the_leaves_from_left_to_right_and_the_noise_last(fits):
    fit = fits["(SE[0] + LIN[1]) * RQ[1]"]
    names = [(p.leaf, p.kernel, p.name) for p in fit.parameters]
    assert names == [
        (0, "SE[0]", "lengthscale"),
        (0, "SE[0]", "variance"),
        (1, "LIN[1]", "variance"),
        (1, "LIN[1]", "offset"),
        (2, "RQ[1]", "lengthscale"),
        (2, "RQ[1]", "variance"),
        (2, "RQ[1]", "alpha"),
        (None, None, "noise_variance"),
    ]
    # exp and log are exact to one unit in the last place; that of exp is absolute in theta
    logs = np.log([p.value for p in fit.parameters])
    np.testing.assert_allclose(fit.theta, logs, rtol=1e-14, atol=1e-15)
    assert fit.n_params == 8
    assert fit.hessian.shape == (8, 8)
    assert str(fit.expression) == "(SE[0] + LIN[1]) * RQ[1]"


def test_another_random_state_starts_elsewhere_and_ends_at_the_same_evidence(table):
    one, other = (evaluate_kernel("PER[0]", *table, random_state=seed) for seed in (0, 1))
    assert not np.array_equal(one.theta, other.theta)
    same = evaluate_kernel("PER[0]", *table, random_state=np.int64(1))
    np.testing.assert_array_equal(same.theta, other.theta)
    assert one.score == pytest.approx(other.score, abs=1e-4)  # the optimiser's tolerance


@pytest.mark.parametrize(
    ("text", "other", "order", "criterion"),
    [
        ("SE[0] + (LIN[1] + LIN[0])", "LIN[0] + SE[0] + LIN[1]", [4, 5, 0, 1, 2, 3, 6], "loo"),
        ("LIN[0] * SE[1]", "SE[1] * LIN[0]", [2, 3, 0, 1, 4], "importance"),
        (
            "(SE[0] + RQ[1]) * LIN[0] + SE[1]",
            "SE[1] + LIN[0] * (RQ[1] + SE[0])",
            [7, 8, 5, 6, 2, 3, 4, 0, 1, 9],
            "laplace",
        ),
    ],
)
def test_a_kernel_written_in_another_order_has_the_same_fit_in_that_order(
    text, other, order, criterion, table
):
    one, two = (evaluate_kernel(one, *table, criterion=criterion) for one in (text, other))
    assert (str(one.expression), str(two.expression)) == (text, other)
    assert one.log_evidence == two.log_evidence  # the same computation, to the last bit
    assert (one.score, one.log_posterior, one.n_evaluations) == (
        two.score,
        two.log_posterior,
        two.n_evaluations,
    )
    np.testing.assert_array_equal(two.theta, one.theta[order])
    np.testing.assert_array_equal(two.hessian, one.hessian[np.ix_(order, order)])
    names = [(one.parameters[i].kernel, *one.parameters[i][2:]) for i in order]
    assert [(p.kernel, *p[2:]) for p in two.parameters] == names
    assert len(set(two.theta)) == len(order)  # or the test shows nothing


def test_given_priors_replace_those_of_their_name(table):
    free = evaluate_kernel("SE[0]", *table)
    narrow = evaluate_kernel("SE[0]", *table, priors={"lengthscale": (4e4, 2e4)})
    assert abs(free.parameters[0].value - 2.0) > 0.5
    assert narrow.parameters[0].value == pytest.approx(2.0, rel=0.05)  # ten deviations of 1/200


@pytest.mark.parametrize("criterion", ["laplace", "importance"])
def test_an_evaluation_prints_its_score_and_a_line_per_parameter(criterion):
    X, y = np.linspace(0, 1, 12)[:, None], np.sin(np.arange(12.0))
    fit = evaluate_kernel("LIN[0]", X, y, criterion=criterion)
    error = f" ± {fit.standard_error:.2f}" if criterion == "importance" else ""
    first, *lines = repr(fit).splitlines()
    assert first == f"LIN[0]: score {fit.score:.2f}{error} nats (ok)"
    names = [line.partition(" = ")[0] for line in lines]
    assert names == ["  LIN[0] variance", "  LIN[0] offset", "  noise_variance"]


@pytest.mark.parametrize(("x_unit", "y_unit"), [(1e9, 1e-5), (1e-9, 1e4)])
def test_priors_in_the_units_of_the_data_make_the_fit_free_of_units(x_unit, y_unit):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 1))
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=30)
    square = y_unit**2
    priors = {
        "lengthscale": (2.0, 2.0 / x_unit),
        "variance": (2.0, 3.0 / square),
        "noise_variance": (1.0, 100.0 / square),
    }
    plain = evaluate_kernel("SE[0]", X, y, priors="paper")
    scaled = evaluate_kernel("SE[0]", X * x_unit, y * y_unit, priors=priors)
    # the density of y changes by its unit; the optimiser stops within 1e-6 nats, and the Hessian's
    # error of 1e-5 a parameter moves the evidence as much
    assert scaled.log_evidence + 30 * np.log(y_unit) == pytest.approx(plain.log_evidence, abs=1e-3)


def test_a_parameter_that_the_data_press_to_its_upper_bound_is_integrated_from_there():
    x, y = np.linspace(0, 1, 30), 1e8 * (1 + np.sin(6 * np.linspace(0, 1, 30)))
    fit = evaluate_kernel("SE[0]", x[:, None], y, priors="paper")
    # a million times the prior mean of 2 / 3, far below the variance of such a target
    assert fit.parameters[1].value == pytest.approx(1e6 * 2 / 3, rel=1e-9)
    assert fit.status == "ok"
    _, gradient = posterior_of("SE[0]", x[:, None], y).value_and_gradient(fit.theta)
    assert gradient[1] > 0  # the variance is at its upper bound
    assert gradient[2] < 0  # the noise is at its floor
    laplace = fit.log_posterior + 0.5 * np.log(2 * np.pi / fit.hessian[0, 0])
    # int exp(-slope t) dt = 1 / slope; at slopes of 1e8 and more the curvature is of no account
    held = -np.log(gradient[1]) - np.log(-gradient[2])
    # a log posterior of -1e10 has an absolute rounding of 1e-6
    assert fit.log_evidence - laplace == pytest.approx(held, abs=1e-3)


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
    expression = parse_expression("SE[0] + LIN[1] + NEG[0]", base_kernels=(NEGATIVE,))
    fit = evaluate_kernel(expression, *table)
    assert fit.score == fit.log_evidence == fit.log_posterior == -np.inf
    assert "no Cholesky factor" in fit.status
    assert fit.n_params == len(fit.theta) == len(fit.parameters) == 6
    assert np.all(np.isnan(fit.hessian))
    assert fit.n_evaluations > 0
    with pytest.raises(NotAMaximumError, match="no Cholesky factor next to the point"):
        posterior_of(expression, *table).hessian(np.zeros(6))


X, Y = np.random.default_rng(0).uniform(size=(12, 2)), np.arange(12.0)
REFUSED = {
    "notation": (("SE[0] +", X, Y), "expected a base kernel"),
    "no kernel": ((7, X, Y), "expression must be a str"),
    "column": ((Leaf(SMOOTH, 2), X, Y), r"columns below n_features=2, got SE\["),
    "one dimension": (("SE[0]", X[:, 0], Y), "Expected 2D array, got 1D array"),
    "one row": (("SE[0]", X[:1], Y[:1]), "minimum of 2 is required"),
    "one target less": (("SE[0]", X, Y[:-1]), "inconsistent numbers of samples"),
    "nan in X": (("SE[0]", np.where(X > 0.9, np.nan, X), Y), "Input X contains NaN"),
    "nan in y": (("SE[0]", X, np.where(Y > 1, np.nan, Y)), "Input y contains NaN"),
    "huge y": (("SE[0]", X, 1e160 * Y), "y must not hold numbers above"),
    "huge X": (("PER[0]", 1e160 * X, Y), "X must not hold numbers above"),
    "tiny y": (("SE[0]", X, 1e-158 * Y), "y must not vary by less than 1e-100, got 1.1e-157"),
    "tiny X": (("SE[0]", 1e-158 * X, Y), "X must not vary by less than"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_wrong_arguments_and_data_are_errors_that_say_what_is_expected(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        evaluate_kernel(*arguments)


# Kernels far below the best one are scored with an estimate of the Hessian.

NEAR, FAR = 4.9 - 3.0, 5.1 + 3.0  # nats below the best score; the estimate may be off by three nats


@pytest.fixture(scope="module")
def smooth_table():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    y = np.sin(6 * X[:, 0]) + X[:, 1] * np.cos(4 * X[:, 0]) + 0.2 * rng.normal(size=60)
    return X, (y - y.mean()) / y.std()


def make_evaluator(table, **settings):
    return Evaluator(TrainingData(*table), priors=check_priors({}), seed=0, **settings)


@pytest.fixture(scope="module")
def known(smooth_table):
    evaluator = make_evaluator(smooth_table)
    return [evaluator(parse_expression(text)) for text in ("SE[0] + SE[1]", "LIN[1]")]


# a kernel that is as good in evidence is far below the best by this prior
PRIOR = partial(unit_prior, nats=4.0, n_columns=2)


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("RQ[0] * SE[1]", {}),
        ("SE[0] + LIN[1]", {"structure_prior": PRIOR}),
        ("SE[0] + LIN[1]", {"criterion": BIC()}),
    ],
    ids=["product", "prior", "another criterion"],
)
def test_far_below_the_best_the_calls_for_the_hessian_are_saved(
    text, settings, smooth_table, known
):
    evaluator = make_evaluator(smooth_table, **settings)
    expression = parse_expression(text)
    job = evaluator.prepare(expression, known)
    # the key of a job has all that its fit depends on, and so the prior of its structure
    log_prior = evaluator.structure_prior(expression)
    assert job.best == max(evaluation.score for evaluation in known) - log_prior
    exact = evaluator.run(replace(job, best=-np.inf))
    far = 99.0 if "criterion" in settings else FAR  # however that score differs from the evidence
    near, rough = (
        evaluator.run(replace(job, best=exact.score - log_prior + nats)) for nats in (NEAR, far)
    )
    assert (exact.log_structure_prior < -5) == ("structure_prior" in settings)
    assert near.score == exact.score
    assert np.array_equal(near.hessian, exact.hessian)
    if "criterion" in settings:
        assert np.array_equal(rough.hessian, exact.hessian)
        return
    assert rough.n_evaluations <= exact.n_evaluations - exact.n_params
    assert np.array_equal(rough.theta, exact.theta)
    assert rough.log_posterior == exact.log_posterior
    assert rough.status == "ok"
    # the largest error on 60 kernels of recorded searches was 2.8 nats
    assert rough.score == pytest.approx(exact.score, abs=3.0)
    assert rough.score != exact.score
    assert np.linalg.eigvalsh(rough.hessian)[0] > 0


@pytest.mark.parametrize("text", ["SE[0] * SE[1]", "LIN[1] + SE[0]"])
def test_a_fit_that_begins_at_a_rough_one_of_the_same_kernel_has_its_score(smooth_table, text):
    evaluator, expression = make_evaluator(smooth_table), parse_expression(text)
    rough = evaluator.run_roughly(expression)
    start = WarmStart.taken(rough, list(enumerate(arrange(expression)[1])))
    fit = evaluator.run(evaluator.prepare(expression, [], start))
    assert fit.status == "ok"
    assert fit.score == pytest.approx(evaluator(expression).score, abs=1e-4)
