"""A posterior of posteriordb: draws and evidences compared with integrals on a grid.

make_posterior.py has written the integrals, which agree with the means that posteriordb publishes.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import expon, halfnorm

from autokernel import evaluate_kernel, parse_expression
from autokernel.evidence import Evaluator, Importance
from autokernel.inference import TrainingData

POSTERIOR = json.loads(Path(__file__).with_name("posterior.json").read_text())
X, Y = np.array(POSTERIOR["x"])[:, None], np.array(POSTERIOR["y"])
PRIORS = {name: tuple(entry) for name, entry in POSTERIOR["priors"].items()}
MAX_ERRORS = 4.0  # standard errors


@pytest.fixture(scope="module")
def sample():
    evaluator = Evaluator(TrainingData(X, Y), priors=PRIORS, seed=0)
    return evaluator.sample(evaluator(parse_expression("SE[0]")), max_draws=2000)


@pytest.mark.parametrize("prior", ["gamma", "half_normal"])
def test_draws_have_the_evidence_and_the_means_of_the_integrals(sample, prior):
    rho, variance, sigma = np.exp(sample.theta).T
    # of the noise variance, and at most 1.32: the draws serve for both
    ratio = halfnorm.pdf(sigma) / expon.pdf(sigma) if prior == "half_normal" else np.ones_like(rho)
    weights = sample.weights * ratio
    total = weights.sum()
    expected = POSTERIOR[prior]
    error = np.sqrt(np.sum((weights - total * sample.weights) ** 2)) / total
    error = np.hypot(sample.standard_error, error)
    found = sample.log_evidence + np.log(total)
    assert abs(found - expected["log_evidence"]) < MAX_ERRORS * error < 0.25

    weights /= total
    for name, values in zip(expected["mean"], (rho, np.sqrt(variance), sigma), strict=True):
        mean = weights @ values
        error = np.sqrt(np.sum((weights * (values - mean)) ** 2))
        assert abs(mean - expected["mean"][name]) < MAX_ERRORS * error, name


def test_the_criterion_is_the_log_evidence_to_a_hundredth_of_a_nat():
    criterion = Importance(max_draws=4000, standard_error=0.01)
    fit = evaluate_kernel("SE[0]", X, Y, criterion=criterion, priors=PRIORS)
    assert fit.standard_error < 0.01
    assert abs(fit.score - POSTERIOR["gamma"]["log_evidence"]) < MAX_ERRORS * fit.standard_error
