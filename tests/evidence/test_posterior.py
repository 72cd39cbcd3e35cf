import numpy as np
import pytest
from scipy.linalg import LinAlgError

from autokernel.deadline import Deadline
from autokernel.evidence.maximise import maximise
from autokernel.evidence.posterior import LogPosterior
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import parse_expression
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels.parameters import check_priors


@pytest.fixture
def posterior():
    x = np.linspace(0, 1, 15)
    data = TrainingData(x[:, None], np.sin(6 * x))
    return LogPosterior(
        ExactLikelihood(parse_expression("SE[0] + LIN[0]"), data), priors=check_priors("paper")
    )


def test_value_is_that_of_value_and_gradient_for_one_call(posterior):
    for theta in np.random.default_rng(0).normal(-1, 1, size=(5, 5)):
        expected = posterior.value_and_gradient(theta)[0]
        before = posterior.n_evaluations
        # the same numbers in the same order
        assert posterior.value(theta) == expected
        assert posterior.n_evaluations == before + 1


class Singular(ExactLikelihood):
    """A likelihood whose covariance has no factor anywhere."""

    def matrix(self, theta, jitter=0.0):
        raise LinAlgError("not positive definite")


def test_value_is_minus_infinity_where_the_covariance_has_no_factor(posterior):
    likelihood = Singular(posterior.expression, posterior.data)
    assert LogPosterior(likelihood, priors=check_priors("paper")).value(np.zeros(5)) == -np.inf


def test_the_step_scale_of_a_period_is_a_part_of_a_cycle_over_the_extent_of_its_column():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 2)) * [1.0, 40.0]
    expression = parse_expression("SE[0] + PER[1] * PER[0]")
    posterior = LogPosterior(
        ExactLikelihood(expression, TrainingData(X, X[:, 0])), priors=check_priors("paper")
    )
    theta = np.log([0.1, 1.0, 0.5, 1.0, 8.0, 0.5, 1.0, 0.2, 0.01])
    one, other = np.ptp(X[:, 1]), np.ptp(X[:, 0])
    expected = [1, 1, 1, 1, 0.03 * 8 / one, 1, 1, 0.03 * 0.2 / other, 1]
    np.testing.assert_allclose(posterior.step_scales(theta), expected, rtol=1e-12)


def test_steps_in_their_scales_need_fewer_calls_to_find_a_season(monkeypatch):
    x = np.linspace(0, 1, 80)[:, None]
    y = np.sin(2 * np.pi * 11.3 * x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=80)
    posterior = LogPosterior(
        ExactLikelihood(parse_expression("LIN[0] + PER[0]"), TrainingData(x, y)),
        priors=check_priors("paper"),
    )
    start = np.log([1.0, 1.0, 0.7, 0.5, 1 / 11.1, 0.05])
    calls = []
    for scales in (posterior.step_scales(start), np.ones(6)):
        monkeypatch.setattr(posterior, "step_scales", lambda theta, scales=scales: scales)
        before = posterior.n_evaluations
        top = maximise(posterior, start, max_iterations=300)
        calls.append(posterior.n_evaluations - before)
        assert np.exp(top.theta[4]) == pytest.approx(1 / 11.3, rel=1e-2)
    assert calls[0] < 0.7 * calls[1]


def test_the_posterior_on_some_rows_is_that_of_these_rows(posterior):
    rows = np.array([3, 0, 7, 11])
    part = posterior.on_rows(rows)
    alone = LogPosterior(
        ExactLikelihood(posterior.expression, posterior.data.take(rows)),
        priors=check_priors("paper"),
    )
    theta = np.full(5, -1.0)
    assert part.value(theta) == alone.value(theta)
    np.testing.assert_array_equal(part.lower, alone.lower)
    assert (part.n_evaluations, posterior.n_evaluations) == (1, 0)


def test_after_the_deadline_nothing_is_predicted(posterior):
    part = LogPosterior(
        ExactLikelihood(posterior.expression, posterior.data),
        priors=check_priors("paper"),
        deadline=Deadline(-1),
    ).on_rows(np.arange(10))
    theta = np.zeros(5)
    for call in (part.value, part.leave_one_out, lambda theta: part.held_out(theta, 3)):
        with pytest.raises(OutOfTimeError):
            call(theta)
    assert part.n_evaluations == 0
