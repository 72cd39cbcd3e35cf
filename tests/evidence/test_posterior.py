"""The log posterior: its value, its scales, its parts, and its Hessian."""

import numpy as np
import pytest

from autokernel import evaluate_kernel
from autokernel.deadline import NEVER, Deadline
from autokernel.evidence.laplace import boundary_log_mass
from autokernel.evidence.posterior import difference_hessian
from autokernel.expression import Leaf
from autokernel.kernels.parameters import PRESETS
from tests.high_precision import PreciseLogPosterior
from tests.maxima import posterior_of
from tests.own_kernels import OrnsteinUhlenbeck

PRIORS = PRESETS["paper"]


@pytest.mark.parametrize("unit", [1.0, 1e-8, 1e3])
def test_bounds_are_a_million_from_the_prior_means_two_cycles_and_the_floor_of_the_noise(unit):
    months = unit * np.linspace(0, 1, 24)[:, None]
    y = np.sin(np.arange(24.0))
    posterior = posterior_of("PER[0] + SE[0]", months, y)
    centre = np.log([1, 2 / 3, 1, 1, 2 / 3, 1 / 100])  # of the priors of the paper
    lower, upper = centre - np.log(1e6), centre + np.log(1e6)
    longest = np.log(unit * 12 / 23)
    assert longest <= posterior.upper[2] < longest + 0.1  # cycles may be a little unequal
    upper[2] = min(upper[2], posterior.upper[2])
    lower[2] = min(lower[2], upper[2] - np.log(1e6))
    lower[-1] = np.log(1e-8 * np.mean(y**2))
    np.testing.assert_allclose(posterior.upper, upper, rtol=1e-12)
    np.testing.assert_allclose(posterior.lower, lower, rtol=1e-12)
    np.testing.assert_allclose(posterior.centre, np.clip(centre, lower, upper), atol=1e-12)
    constant = posterior_of("PER[0]", np.ones((24, 1)), y)  # shows no cycle of any length
    np.testing.assert_allclose(constant.upper, constant.centre + np.log(1e6))


class Noting(OrnsteinUhlenbeck):
    """Notes of how many pairs its values are computed."""

    def __init__(self):
        self._sizes = []

    def value(self, params, pairs):
        self._sizes.append(pairs.shape[-1])
        return super().value(params, pairs)


@pytest.mark.parametrize(
    ("n", "deadline", "n_timed"),
    [(1001, NEVER, None), (1001, Deadline(1e6), 500), (1000, Deadline(1e6), None)],
    ids=["no deadline", "many rows", "few rows"],
)
def test_the_first_call_is_timed_on_few_of_many_rows_if_there_is_a_deadline(n, deadline, n_timed):
    kernel, x = Noting(), np.linspace(0, 1, n)
    late = posterior_of(Leaf(kernel, 0), x[:, None], np.sin(9 * x), deadline=deadline)
    late.value(np.log([0.5, 1.0, 0.1]))
    late.value(np.log([0.6, 1.0, 0.1]))
    rows = [n, n] if n_timed is None else [n_timed, n, n]
    assert sorted(set(kernel._sizes)) == sorted({m * (m + 1) // 2 for m in rows})
    assert late.n_evaluations == 2


# ---- the Hessian against gradients that are known in closed form

NONE = np.zeros(6, dtype=bool)


class Counted:
    """A gradient that counts its calls."""

    def __init__(self, gradient):
        self.gradient, self.n_calls = gradient, 0

    def __call__(self, theta):
        self.n_calls += 1
        return self.gradient(theta)


def log_det_error(found, exact):
    return abs(np.linalg.slogdet(found)[1] - np.linalg.slogdet(exact)[1]) / 2


def quadratic(n_params):
    factor = np.random.default_rng(0).normal(size=(n_params, 2 * n_params))
    return factor @ factor.T


def test_the_hessian_of_a_quadratic_is_exact_and_costs_a_call_for_each_parameter():
    matrix = quadratic(6)
    gradient = Counted(lambda theta: matrix @ theta)
    hessian = difference_hessian(gradient, np.zeros(6), oscillates=NONE[:6])
    np.testing.assert_allclose(hessian, matrix, rtol=1e-12)  # rounding
    np.testing.assert_array_equal(hessian, hessian.T)
    assert gradient.n_calls == 6 + 1


@pytest.mark.parametrize("sharpness", [1e2, 1e8])
def test_an_axis_may_be_far_sharper_than_the_others(sharpness):
    # 1 - cos along a turned axis, as the log posterior of a period: far off its slope says nothing
    axis = np.array([0.01, 1.0, 0.0])
    gradient = Counted(lambda t: sharpness * np.sin(sharpness * (axis @ t)) * axis + 3 * t)
    exact = sharpness**2 * np.outer(axis, axis) + 3 * np.eye(3)
    hessian = difference_hessian(gradient, np.zeros(3), oscillates=NONE[:3])
    # steps of up to 5e-2 widths: sin(h) / h is 1 - h^2 / 6
    np.testing.assert_allclose(np.diag(hessian), np.diag(exact), rtol=5e-4)
    assert gradient.n_calls <= 3 + 1 + 2 * 6  # three central tries for each of two sharp axes


def test_an_oscillation_is_differenced_over_shorter_steps():
    gradient = Counted(lambda theta: 10 * np.sin(10 * theta))
    hessian = difference_hessian(gradient, np.zeros(2), oscillates=np.array([False, True]))
    relative = np.abs(np.diag(hessian) / 100 - 1)
    # 1 - sin(h) / h with a one-sided step of 3e-4 widths and a central one of 5e-3
    np.testing.assert_allclose(relative, [1.5e-8, 4.2e-6], rtol=0.02)


def test_a_gradient_that_has_lost_digits_is_differenced_over_longer_steps():
    matrix, rng = quadratic(5), np.random.default_rng(1)
    noise = 3e-4
    gradient = Counted(lambda theta: matrix @ theta + noise * rng.normal(size=5))
    error = log_det_error(difference_hessian(gradient, np.zeros(5), oscillates=NONE[:5]), matrix)
    # the noise over steps of 3e-2, ten entries of widths 1/3: a tenth of that over the first steps
    assert error < 1e-2
    assert gradient.n_calls == 5 + 2 * (2 * 5) + 1  # one-sided, then central with both steps


# ---- the Hessian against one of sixty digits, at MAP points

# kernel, rows, target, noise
SMALL = [
    ("LIN[0]", 12, "smooth", 0.1),
    ("RQ[0]", 12, "smooth", 0.1),
    ("PER[0]", 10, "wave", 0.1),
    ("SE[0] * SE[1]", 15, "plane", 3e-4),
    ("SE[0]", 20, "smooth", 0.0),  # the noise is held by its bound
]
LARGE = [
    ("LIN[0] * PER[0] + SE[1]", 15, "wave", 0.1),
    ("PER[0]", 20, "wave", 1e-3),
    ("PER[0] * SE[0]", 24, "steps", 0.1),
    ("LIN[0] + PER[0]", 20, "wave", 0.0),
    ("SE[0] + SE[0]", 20, "smooth", 0.1),
    ("RQ[0] + LIN[0]", 20, "smooth", 3e-4),
    ("SE[0] + SE[1]", 20, "plane", 3e-4),
    ("(SE[0] + PER[0]) * RQ[1]", 20, "wave", 0.1),
    ("(RQ[0] + PER[0]) * LIN[0] + SE[1]", 20, "wave", 0.1),
    ("SE[0] * SE[0] * LIN[0] * RQ[0]", 20, "smooth", 0.1),
    ("LIN[0] * LIN[0] * LIN[0] + SE[0]", 20, "smooth", 3e-4),
    ("SE[0] + SE[0]", 60, "smooth", 1e-4),
    ("LIN[0] + PER[0]", 60, "fast wave", 1e-4),  # a period known to a millionth
    ("(SE[0] + PER[0] * LIN[0]) * (RQ[0] + LIN[1]) + SE[1]", 20, "wave", 0.1),  # 15 parameters
    ("(RQ[0] + PER[0]) * (RQ[1] + PER[1]) + SE[0] * RQ[1]", 20, "plane", 0.1),  # 18
]
CASES = [*SMALL, *(pytest.param(*case, marks=pytest.mark.slow) for case in LARGE)]


def table(n_samples, target, noise):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_samples, 2))
    x = X[:, 0]
    clean = {
        "smooth": np.sin(6 * x) + x,
        "plane": np.sin(6 * x) + X[:, 1] ** 2,
        "wave": np.sin(30 * x) + x,
        "fast wave": np.sin(250 * x) + x,
        "steps": np.sign(np.sin(40 * x)),
    }
    return X, clean[target] + noise * rng.normal(size=n_samples)


def half_log_det(hessian, free):
    return 0.5 * np.linalg.slogdet(hessian[np.ix_(free, free)])[1]


@pytest.mark.parametrize(("text", "n_samples", "target", "noise"), CASES)
def test_the_log_determinant_is_that_of_sixty_digits(text, n_samples, target, noise):
    X, y = table(n_samples, target, noise)
    fit = evaluate_kernel(text, X, y, priors=PRIORS)
    assert fit.status == "ok"
    posterior = posterior_of(fit.expression, X, y)
    calls_before = posterior.n_evaluations
    hessian = posterior.hessian(fit.theta)
    np.testing.assert_array_equal(hessian, hessian.T)
    calls = posterior.n_evaluations - calls_before
    # one for each parameter and three more for a period; with little noise all may be central
    usual = fit.n_params + 1 + 3 * text.count("PER")
    assert calls <= (usual if noise > 2e-4 else 4 * fit.n_params + 1)

    precise = PreciseLogPosterior(text, X, y, priors=PRIORS)
    exact = precise.negative_hessian(fit.theta)
    free = fit.theta > posterior.lower + 1e-9
    # rounding of the gradient over the step is at most 1e-4 for each parameter where the noise is
    # 1e-8, else 1e-6; truncation is half the step of 3e-5 times the skewness, which is one or two
    tolerance = 1e-3 if noise < 1e-2 else 1e-4
    assert half_log_det(hessian, free) == pytest.approx(half_log_det(exact, free), abs=tolerance)
    if free.all():
        expected = float(precise(fit.theta.tolist())) - half_log_det(exact, free)
        expected += 0.5 * fit.n_params * np.log(2 * np.pi)
        assert fit.log_evidence == pytest.approx(expected, abs=1e-3)
    else:
        found, expected = np.diag(hessian), np.diag(exact)
        np.testing.assert_allclose(found[free], expected[free], rtol=0.02)
        # the slope from the bound, half the rows, squared is a thousand times the curvature, whose
        # rounding errors depend on the machine: what they change is the mass beyond the bound, by
        # up to 1.7e-3 at points 1e-6 apart
        slope = -posterior.value_and_gradient(fit.theta)[1][~free].item()
        mass = boundary_log_mass(slope, expected[~free].item())
        assert boundary_log_mass(slope, found[~free].item()) == pytest.approx(mass, abs=3e-3)
