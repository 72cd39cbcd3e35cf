"""Evaluations in other units, with names of columns, and beside saddles."""

import numpy as np
import pytest

from autokernel import NotAMaximumError, evaluate_kernel, parse_expression
from autokernel.evidence.posterior import LogPosterior
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels.parameters import PRESETS


@pytest.mark.parametrize(("x_unit", "y_unit"), [(1e9, 1.0), (1e-9, 1.0), (1.0, 1e4), (1.0, 1e-5)])
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
    plain = evaluate_kernel("SE[0] + SE[0]", X, y, priors="paper")
    scaled = evaluate_kernel("SE[0] + SE[0]", X * x_unit, y * y_unit, priors=priors)
    # the density of y changes by its unit; the optimiser stops within 1e-6 nats, and the Hessian's
    # error of 1e-5 a parameter moves the evidence as much
    assert scaled.log_evidence + 30 * np.log(y_unit) == pytest.approx(plain.log_evidence, abs=1e-3)


def test_a_column_of_a_frame_is_known_by_its_name():
    pandas = pytest.importorskip("pandas")
    X, y = np.random.default_rng(0).uniform(size=(2, 12))
    frame = pandas.DataFrame({"time": X})
    by_name = evaluate_kernel("SE[time]", frame, y)
    assert by_name.score == evaluate_kernel("SE[0]", X[:, None], y).score


def test_a_hessian_without_a_factor_next_to_the_point_is_a_failure_with_its_reason(monkeypatch):
    X, y = np.linspace(0, 1, 12)[:, None], np.sin(np.arange(12.0))
    monkeypatch.setattr(
        LogPosterior,
        "value_and_gradient",
        lambda self, theta: (-np.inf, np.zeros(len(theta))),
    )
    data = TrainingData(X, y)
    posterior = LogPosterior(
        ExactLikelihood(parse_expression("SE[0]"), data), priors=PRESETS["paper"]
    )
    with pytest.raises(NotAMaximumError, match="no Cholesky factor next to the point"):
        posterior.hessian(np.zeros(3))


def test_an_evaluation_prints_its_score_and_a_line_per_parameter():
    X, y = np.linspace(0, 1, 12)[:, None], np.sin(np.arange(12.0))
    fit = evaluate_kernel("SE[0] + LIN[0]", X, y)
    lines = repr(fit).splitlines()
    assert lines[0] == f"SE[0] + LIN[0]: score {fit.log_evidence:.2f} nats (ok)"
    assert len(lines) == 1 + fit.n_params
    assert lines[1].startswith("  SE[0] lengthscale = ")
    assert lines[-1].startswith("  noise_variance = ")


def test_a_parameter_that_the_data_press_to_its_upper_bound_is_integrated_from_there():
    x, y = np.linspace(0, 1, 30), 1e8 * (1 + np.sin(6 * np.linspace(0, 1, 30)))
    fit = evaluate_kernel("SE[0]", x[:, None], y, priors="paper")
    # a million times the prior mean of 2 / 3, far below what such a target asks for
    assert fit.parameters[1].value == pytest.approx(1e6 * 2 / 3, rel=1e-9)
    assert fit.status == "ok"
    data = TrainingData(x[:, None], y)
    posterior = LogPosterior(
        ExactLikelihood(parse_expression("SE[0]"), data), priors=PRESETS["paper"]
    )
    gradient = posterior.value_and_gradient(fit.theta)[1]
    assert gradient[1] > 0  # the variance is at its upper bound
    assert gradient[2] < 0  # the noise is at its floor
    laplace = fit.log_posterior + 0.5 * np.log(2 * np.pi / fit.hessian[0, 0])
    # int exp(-slope t) dt = 1 / slope; at slopes of 1e8 and more the curvature is of no account
    held = -np.log(gradient[1]) - np.log(-gradient[2])
    # a log posterior of -1e10 has an absolute rounding of 1e-6
    assert fit.log_evidence - laplace == pytest.approx(held, abs=1e-3)
