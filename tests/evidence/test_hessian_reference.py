"""The Hessian of the log posterior against one of sixty digits, at MAP points."""

import numpy as np
import pytest

from autokernel import evaluate_kernel
from autokernel.evidence.laplace import boundary_log_mass
from autokernel.evidence.posterior import LogPosterior
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels.parameters import PRESETS
from tests.high_precision import PreciseLogPosterior

PRIORS = PRESETS["paper"]

# kernel, rows, target, noise
SMALL = [
    ("LIN[0]", 12, "smooth", 0.1),
    ("RQ[0]", 12, "smooth", 0.1),
    ("LIN[0] * PER[0] + SE[1]", 15, "wave", 0.1),
    ("SE[0] * SE[1]", 15, "plane", 3e-4),
    ("SE[0]", 20, "smooth", 0.0),  # the noise is held by its bound
]
LARGE = [
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
    posterior = LogPosterior(ExactLikelihood(fit.expression, TrainingData(X, y)), priors=PRIORS)
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
        # rounding errors depend on the machine: what they change is the mass beyond the bound
        slope = -posterior.value_and_gradient(fit.theta)[1][~free].item()
        mass = boundary_log_mass(slope, expected[~free].item())
        assert boundary_log_mass(slope, found[~free].item()) == pytest.approx(mass, abs=1e-3)
