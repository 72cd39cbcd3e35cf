"""Likelihoods and predictions beside those of other programs; make.py has written them."""

import json
from pathlib import Path

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.inference import ExactLikelihood, ExactPredictor, TrainingData

REFERENCES = json.loads(Path(__file__).with_name("references.json").read_text())
X, Y = np.array(REFERENCES["table"]), np.array(REFERENCES["y"])


@pytest.mark.parametrize(
    "case", REFERENCES["cases"], ids=lambda one: f"{one['program']}: {one['expression']}"
)
def test_digits_are_those_of_another_program(case):
    expression = parse_expression(case["expression"], base_kernels=["RW", "MAT12"])
    theta, data = np.log(case["params"]), TrainingData(X[: len(Y)], Y)
    value = ExactLikelihood(expression, data).value(theta)
    assert value == pytest.approx(case["log_likelihood"], rel=1e-9)
    mean, variance = ExactPredictor(expression, theta, data).function(X[len(Y) :])
    np.testing.assert_allclose(mean, case["mean"], rtol=1e-8)
    np.testing.assert_allclose(variance, case["variance"], rtol=1e-8)
