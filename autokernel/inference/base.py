"""What exact and approximate inference share: the likelihood and the predictor."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from autokernel.data import Inputs
from autokernel.data.noise import LOG_2PI
from autokernel.expression import Expression, n_kernel_params
from autokernel.inference.covariance import cross_covariance, diagonal_covariance
from autokernel.inference.data import TrainingData
from autokernel.kernels import ADD, NOISE_VARIANCE
from autokernel.typing import FloatArray

Moments = tuple[FloatArray, FloatArray]
"""Means (n,) and covariances (n, n)."""

MAX_KEPT_BYTES = 2**20  # of means and their inputs that a predictor keeps for its next call


def log_normal(residual: FloatArray, variance: FloatArray) -> FloatArray:
    """Compute the log densities of independent normal variables, in nats."""
    return -0.5 * (residual**2 / variance + np.log(2 * np.pi * variance))


def finite(value: float) -> float:
    """Return a log likelihood in nats; a ``LinAlgError`` is raised if it is not finite."""
    if not np.isfinite(value):
        raise LinAlgError("the log likelihood is not finite")
    return float(value)


class Likelihood(ABC):
    """Log likelihood of one kernel on one data set, as a function of theta.

    ``theta`` (n_params,) holds the logs of the parameters in the order of ``parameters``: first the
    parameters of the expression, then the noise variance. Values are densities of the target as it
    is given, also for a kernel on another scale of it, and of all readings that a row stands for.
    """

    rows_for_each: float = 1.0  # for which each row stands that enters the likelihood

    def __init__(self, expression: Expression, data: TrainingData) -> None:
        self.expression, self.data = expression, data.on(expression.target)
        own = (one for node in expression.nodes for one in data.parameters(node))
        self.parameters = (*own, NOISE_VARIANCE)

    @property
    def work(self) -> float:
        """How long a gradient takes, compared with others of the same class; a value, a third."""
        return float(len(self.data.y) * (1 + self.expression.n_leaves))

    def value(self, theta: FloatArray) -> float:
        """Compute the log likelihood in nats, ``-inf`` if that is not possible."""
        try:
            return self._value(theta)
        except LinAlgError:
            return -np.inf

    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Compute the log likelihood in nats and its gradient, ``-inf`` and zeros on failure."""
        try:
            return self._value_and_gradient(theta)
        except LinAlgError:
            return -np.inf, np.zeros(len(theta))

    @abstractmethod
    def _value(self, theta: FloatArray) -> float:
        """Compute the value; a ``LinAlgError`` is raised if it is not finite."""

    @abstractmethod
    def _value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Compute value and gradient; a ``LinAlgError`` is raised if the value is not finite."""


class Term:
    """A term of a function with its parameters, not their logs."""

    def __init__(self, expression: Expression, params: FloatArray) -> None:
        self.expression, self.params = expression, params
        self.columns = sorted(expression.columns)

    def cross(self, X: Inputs, Z: Inputs) -> FloatArray:
        """Compute the covariances (n, m) of the term at rows X with itself at rows Z."""
        return cross_covariance(self.expression, X, Z).forward(self.params)


class Predictor(ABC):
    """Predicts new observations, noise included, in the units of the search.

    Inputs X (n, n_features) must be in the unit intervals of the fit, NaN where values are missing.
    Predictions are of the standardised target, on the scale on which the kernel acts.
    Moments are computed for one block of rows after the other, so that memory does not grow with
    the number of rows. The ``noise_variance`` includes the jitter that the factorisation needed,
    and not the variance of rounding, which new observations have too.
    """

    text: str  # how predictions are computed, as the user reads it

    def __init__(
        self,
        expression: Expression,
        theta: FloatArray,
        data: TrainingData,
        *,
        jitter: float = 0.0,
        block: int,
    ) -> None:
        self._whole = Term(expression, np.exp(theta[:-1]))
        self._data, self._block = data.on(expression.target), max(1, block)
        noise = 0.0 if self._data.has_counts else float(np.exp(theta[-1]))  # of the function
        self.jitter, self.noise_variance = jitter, noise + jitter
        self._columns, self._rounding_by_target = data.inputs.columns, self._data.rounding_by_target

    @property
    def typical_noise(self) -> float:
        """The noise variance, or the median of what single counts leave open."""
        has_counts, known = self._data.has_counts, self._data.noise.known
        return float(np.median(known)) if has_counts else self.noise_variance

    def mean(self, X: FloatArray) -> FloatArray:
        """Compute the predictive mean (n,) at inputs (n, n_features)."""
        return self.mean_and_variance(X)[0]

    def noise_at(self, X: FloatArray, mean: FloatArray) -> FloatArray:
        """Compute the variance (n,) of the noise of new observations with these means (n,).

        It is the expected one where a level or a gap is new. Their rounding is that of training
        targets nearby.
        """
        factors = np.exp(self._data.noise_function.log_factors(self._columns.scaled(X)))
        return self.noise_variance * factors + self.rounding_at(mean)

    def rounding_at(self, mean: FloatArray) -> FloatArray:
        """Compute the variance (n,) of the rounding of new observations."""
        return np.interp(mean, *self._rounding_by_target)

    def cases(self, X: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what new observations with a variance (n,) may have, if noise is not known.

        These are weights (n_cases, n), and standard deviations.
        """
        weights, logs = self._data.noise_function.cases(self._columns.scaled(X))
        factors = np.exp(logs) - np.sum(weights * np.exp(logs), axis=0)
        return weights, np.sqrt(np.maximum(variance + self.noise_variance * factors, 0.0))

    def mean_and_variance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and variance (n,), noise included."""
        means, variances = zip(*map(self._moments_of_block, self._blocks(X)), strict=True)
        return np.concatenate(means), np.concatenate(variances)

    def samples(self, X: FloatArray, n_samples: int, rng: np.random.RandomState) -> FloatArray:
        """Draw new observations (n, n_samples), noise included."""
        mean, covariance = self.mean_and_covariance(X)
        # rounding may leave eigenvalues just below zero, of which the user need not hear
        return rng.multivariate_normal(mean, covariance, n_samples, check_valid="ignore").T

    @abstractmethod
    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and covariance (n, n), noise included."""

    def errors(self, rows: TrainingData, moments: Moments) -> Moments:
        """Compute the errors (n,) of the means of new rows, and the covariance (n, n) of errors.

        Given are the moments by :meth:`mean_and_covariance`.
        """
        (mean, covariance), rows = moments, rows.on(self._whole.expression.target)
        return rows.y - mean, covariance + np.diag(self.excess_noise(rows, mean))

    def excess_noise(self, rows: TrainingData, mean: FloatArray) -> FloatArray:
        """Compute the variance (n,) that is known of the noise of rows, less that of new ones."""
        noise = rows.noise.variance(self.noise_variance - self.jitter) + self.jitter
        return noise - self.noise_at(rows.X, mean)

    def innovations(self, rows: TrainingData, moments: Moments) -> tuple[FloatArray, FloatArray]:
        """Compute the errors (n,) of rows given those before, in their deviations, and these."""
        errors, K = self.errors(rows, moments)
        L = cholesky(K, lower=True)
        return solve_triangular(L, errors, lower=True), np.diag(L)

    def log_density(self, rows: TrainingData, moments: Moments) -> float:
        """Compute the joint log density of new rows with these moments, in nats.

        It is the density of all readings of their targets, ``-inf`` if the scale on which the
        kernel acts does not have one of these.
        """
        z, stds = self.innovations(rows, moments)
        value = -0.5 * (z @ z + len(z) * LOG_2PI) - np.log(stds).sum()
        noise = rows.on(self._whole.expression.target).noise
        return float(value) + noise.correction(np.log(self.noise_variance - self.jitter))

    @abstractmethod
    def _moments_of_block(self, X: Inputs) -> tuple[FloatArray, FloatArray]:
        """Compute mean and variance of one block of rows, noise included."""

    def _blocks(self, X: FloatArray) -> Iterator[Inputs]:
        inputs = self._columns.scaled(X)
        for start in range(0, len(X), self._block):
            yield inputs[start : start + self._block]


class GlobalPredictor(Predictor):
    """A predictor whose function everywhere follows from the function at the same rows, ``knots``.

    Prior covariances of anything with the function there, times the ``weights`` (n_knots,), are its
    posterior mean.
    """

    knots: Inputs
    weights: FloatArray

    @cached_property
    def _terms(self) -> list[Term]:
        terms = self._whole.expression.terms(ADD)
        ends = np.cumsum([n_kernel_params(term) for term in terms])
        return list(map(Term, terms, np.split(self._whole.params, ends[:-1])))

    @cached_property
    def _last_means(self) -> dict[Term, tuple[FloatArray, FloatArray]]:
        return {}

    @abstractmethod
    def _projected(self, cross: FloatArray) -> tuple[FloatArray, ...]:
        """Project covariances with the knots (n, n_knots), which may be overwritten.

        The squares of the first projection (n_knots, n) are what the data explain, and those of a
        second one what they leave uncertain at the knots.
        """

    def conditioned(self, cross: FloatArray, prior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute mean (n,) and covariance (n, n) of linear functionals of the function.

        Their prior covariances are ``prior`` (n, n) and, with the function at the knots, ``cross``
        (n, n_knots), which is overwritten.
        """
        mean = cross @ self.weights
        explained, *left = self._projected(cross)
        return mean, sum((V.T @ V for V in left), start=prior - explained.T @ explained)

    def mean(self, X: FloatArray) -> FloatArray:
        """Compute the predictive mean (n,) at inputs (n, n_features).

        Terms of the sum whose columns are as in the last call, as those of partial dependence that
        do not depend on the columns of its grid, keep their means unless there are many rows. A
        term whose columns are the same in all rows is computed for one of them.
        """
        return sum((self._mean_of_term(term, X) for term in self._terms), start=np.zeros(len(X)))

    def _mean_of_term(self, term: Term, X: FloatArray) -> FloatArray:
        inputs = X[:, term.columns]
        known, mean = self._last_means.get(term, (None, inputs))
        if known is not None and np.array_equal(known, inputs):
            return mean
        rows = X[:1] if (inputs == inputs[:1]).all() else X
        parts = [term.cross(block, self.knots) @ self.weights for block in self._blocks(rows)]
        mean = np.concatenate(parts) if len(rows) == len(X) else np.repeat(parts[0], len(X))
        if (inputs.nbytes + mean.nbytes) * len(self._terms) <= MAX_KEPT_BYTES:
            self._last_means[term] = inputs, mean
        return mean

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        inputs = self._columns.scaled(X)
        cross, prior = self._whole.cross(inputs, self.knots), self._whole.cross(inputs, inputs)
        mean, covariance = self.conditioned(cross, prior)
        covariance[np.diag_indices(len(X))] += self.noise_at(X, mean)
        return mean, covariance

    def function(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute mean (n,) and variance (n,) of the function, without noise."""
        means, variances = zip(*map(self._function_of_block, self._blocks(X)), strict=True)
        return np.concatenate(means), np.concatenate(variances)

    def _function_of_block(self, X: Inputs) -> tuple[FloatArray, FloatArray]:
        cross = self._whole.cross(X, self.knots)
        mean = cross @ self.weights
        prior = diagonal_covariance(self._whole.expression, X).forward(self._whole.params)
        explained, *left = (np.einsum("ij,ij->j", V, V) for V in self._projected(cross))
        return mean, sum(left, start=np.maximum(prior - explained, 0.0))

    def _moments_of_block(self, X: Inputs) -> tuple[FloatArray, FloatArray]:
        mean, variance = self._function_of_block(X)
        return mean, variance + self.noise_at(X.values, mean)


MakePredictor = Callable[[Expression, FloatArray, TrainingData], Predictor]
"""Function that makes the predictor of a kernel with parameters theta, conditioned on data.

It raises a ``scipy.linalg.LinAlgError`` if the covariance matrix has no Cholesky factor.
"""
