"""A likelihood and a predictor that no module knows carry a whole search."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from autokernel import AutoKernelGPRegressor, parse_expression
from autokernel.deadline import NEVER
from autokernel.evidence import CRITERIA, Evaluator
from autokernel.expression import Expression
from autokernel.fit import Arguments, Problem, Run
from autokernel.inference import (
    Covariance,
    TrainingData,
    ValueAndGradient,
    cross_covariance,
    diagonal_covariance,
)
from autokernel.inference.exact import Inference
from autokernel.kernels import NOISE_VARIANCE
from autokernel.search import StopReason
from autokernel.search.loop import Silent
from autokernel.typing import FloatArray, IntArray
from tests.fits import small, wave


class DenseLikelihood:
    """The same log likelihood from dense matrices, with derivatives by differences."""

    def __init__(self, expression: Expression, data: TrainingData) -> None:
        self.expression, self.data = expression, data
        self._covariance = cross_covariance(expression, data.X, data.X)
        self.parameters = (*self._covariance.parameters, NOISE_VARIANCE)
        self.n_evaluations = 0

    def on_rows(self, rows: IntArray) -> "DenseLikelihood":
        return DenseLikelihood(self.expression, self.data.take(rows))

    def value(self, theta: FloatArray) -> float:
        self.n_evaluations += 1
        try:
            L = np.linalg.cholesky(self._dense(theta))
        except np.linalg.LinAlgError:
            return -np.inf
        z = np.linalg.solve(L, self.data.y)
        return float(-0.5 * (z @ z + len(z) * np.log(2 * np.pi)) - np.log(np.diag(L)).sum())

    def value_and_gradient(self, theta: FloatArray) -> ValueAndGradient:
        steps = 1e-5 * np.eye(len(theta))
        slopes = [(self.value(theta + s) - self.value(theta - s)) / 2e-5 for s in steps]
        value = self.value(theta)
        is_usable = np.isfinite([value, *slopes]).all()
        return ValueAndGradient(value if is_usable else -np.inf, np.nan_to_num(slopes))

    def leave_one_out(self, theta: FloatArray) -> FloatArray:
        precision = np.linalg.inv(self._dense(theta))
        variance = 1 / np.diag(precision)
        residual = (precision @ self.data.y) * variance
        return -0.5 * (residual**2 / variance + np.log(2 * np.pi * variance))

    def held_out(self, theta: FloatArray, n_given: int) -> FloatArray:
        K = self._dense(theta)
        A = np.linalg.solve(K[:n_given, :n_given], K[:n_given, n_given:]).T
        mean = A @ self.data.y[:n_given]
        variance = np.diag(K[n_given:, n_given:] - A @ K[:n_given, n_given:])
        residual = self.data.y[n_given:] - mean
        return -0.5 * (residual**2 / variance + np.log(2 * np.pi * variance))

    def _dense(self, theta: FloatArray) -> FloatArray:
        params = np.exp(theta)
        return self._covariance.forward(params[:-1]) + params[-1] * np.eye(len(self.data.y))


class IndependentLikelihood(DenseLikelihood):
    """All rows independent, with the variances of the kernel: O(n) in time and memory."""

    def __init__(self, expression: Expression, data: TrainingData) -> None:
        self.expression, self.data = expression, data
        self._covariance: Covariance = diagonal_covariance(expression, data.X)
        self.parameters = (*self._covariance.parameters, NOISE_VARIANCE)
        self.n_evaluations = 0

    def on_rows(self, rows: IntArray) -> "IndependentLikelihood":
        return IndependentLikelihood(self.expression, self.data.take(rows))

    def value(self, theta: FloatArray) -> float:
        self.n_evaluations += 1
        params = np.exp(theta)
        variance = self._covariance.forward(params[:-1]) + params[-1]
        return float(-0.5 * (self.data.y**2 / variance + np.log(2 * np.pi * variance)).sum())


class IndependentPredictor:
    """The mean, and the variances of the kernel."""

    jitter = 0.0
    n_bytes = 0
    text = "independent"

    def __init__(self, expression: Expression, theta: FloatArray, data: TrainingData) -> None:
        self._expression, self._params = expression, np.exp(theta[:-1])
        self.noise_variance = float(np.exp(theta[-1]))

    def mean(self, X: FloatArray) -> FloatArray:
        return np.zeros(len(X))

    def mean_and_variance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        prior = diagonal_covariance(self._expression, X).forward(self._params)
        return np.zeros(len(X)), prior + self.noise_variance

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, variance = self.mean_and_variance(X)
        return mean, np.diag(variance)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("text", ["SE[0] + LIN[0]", "PER[0]"])
def test_another_likelihood_gives_the_same_score_by_every_criterion(
    text: str, criterion: str
) -> None:
    X, y = wave(15)
    settings = {"priors": {}, "seed": 0, "criterion": criterion}
    exact = Evaluator(X, y, **settings)(parse_expression(text))
    dense = Evaluator(X, y, **settings, make_likelihood=DenseLikelihood)(parse_expression(text))
    assert exact.status == dense.status == "ok"
    # importance sampling has a standard error of 0.05, and draws with another last bit
    assert dense.score == pytest.approx(exact.score, abs=0.2 if criterion == "importance" else 1e-3)


def test_a_likelihood_is_part_of_what_an_evaluation_is_kept_under() -> None:
    X, y = wave(10)
    fingerprints = {
        Evaluator(X, y, priors={}, seed=0, make_likelihood=make).fingerprint()
        for make in (DenseLikelihood, IndependentLikelihood)
    }
    assert len(fingerprints) == 2


def test_nothing_of_size_n_by_n_is_allocated_outside_the_exact_likelihood_and_predictor() -> None:
    n_samples = 6000  # n x n doubles are 288 MB
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(n_samples, 2)), rng.normal(size=n_samples)
    estimator = small(n_iter=1, base_kernels=["SE"], max_leaves=2, approximation="exact")
    tracemalloc.start()
    try:
        inference = Inference(IndependentLikelihood, IndependentPredictor)
        arguments = replace(Arguments.of(estimator), inference=inference)
        problem = Problem.of(X, y, arguments, seed=0, feature_names=None)
        run = Run(problem, arguments, None, n_iter=1, batch_size=1, tol=0.0, deadline=NEVER)
        assert run.search(Silent()) is StopReason.N_ITER
        model = run.result(StopReason.N_ITER)
        mean, std = model.mean_and_std(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert all(evaluation.status == "ok" for evaluation in run.history.evaluations)
    assert mean.shape == std.shape == (n_samples,)
    assert std.min() > 0
    assert peak < n_samples**2 * 8 / 10  # some hundreds of arrays of the size of the data


def test_the_predictor_of_a_fitted_model_tells_its_memory() -> None:
    X, y = wave(50)
    settings = {"n_iter": 0, "base_kernels": ("SE",), "random_state": 0}
    for averaging in (None, "posterior"):
        model = AutoKernelGPRegressor(**settings, averaging=averaging).fit(X, y)
        predictors = model._fitted.mixture.predictors
        assert len(predictors) == (1 if averaging is None else 8)
        assert {one.n_bytes for one in predictors} == {8 * (50 * 51 // 2 + 50)}
