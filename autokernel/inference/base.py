"""What exact and approximate inference share: the data, the likelihood and the predictor."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import expit

from autokernel.expression import Expression, View, n_kernel_params
from autokernel.inference.covariance import cross_covariance, diagonal_covariance
from autokernel.inference.pairs import PackedPairs
from autokernel.kernels import ADD, NOISE_VARIANCE, OnScale
from autokernel.typing import FloatArray, IntArray

_LARGEST_LOG = 690.0  # so that its exponential does not overflow
_LOG_2PI = float(np.log(2 * np.pi))


RowNoise = tuple[FloatArray, FloatArray, FloatArray]
"""Weights, variances of known errors, and variances of rounding of rows, all (n_samples,)."""


class TrainingData:
    """Inputs X (n_samples, n_features), targets y (n_samples,), and the pairs of each view.

    The targets may be on another scale; ``log_slopes`` (n_samples,) then are the logs of the
    derivatives of this scale, which turn a density on it into one of the target as it was.

    A row with the weight w, the variance v of its known error and the variance r of rounding has
    noise of the variance ``(s + r) / w + v``, with one noise variance s of all rows: each of the
    readings that the row stands for is rounded. By default, weights are one and v and r are zero.
    The ``known_noise`` (n_samples,) is ``r / w + v``.
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        weights: FloatArray | float = 1.0,
        errors: FloatArray | float = 0.0,
        rounding: FloatArray | float = 0.0,
        log_slopes: FloatArray | None = None,
    ) -> None:
        self.X, self.y = X, y
        self.log_slopes = np.zeros(len(y)) if log_slopes is None else log_slopes
        self.weights, self.errors = _of_rows(weights, len(y)), _of_rows(errors, len(y))
        self.rounding = _of_rows(rounding, len(y))
        self.known_noise = self.rounding / self.weights + self.errors
        self.total_weight = float(self.weights.sum())
        self._has_weights = bool(np.any(self.weights != 1))
        self.mean_square = float(np.average(y**2, weights=self.influence)) if len(y) else 0.0
        scatter = (self.weights - 1) * _LOG_2PI + np.log(self.weights)
        self._factors = self.weights * self.log_slopes - 0.5 * scatter
        self._factor = float(self._factors.sum())
        with np.errstate(divide="ignore"):
            self._log_rounding = np.log(self.rounding)
        self._pairs: dict[View, PackedPairs] = {}
        self._target: OnScale | None = None
        self._plain: TrainingData | None = None  # with the target as it was, None for these data

    def on(self, target: OnScale | None) -> "TrainingData":
        """Return the data with the target on a scale, None for the target as it was."""
        plain = self._plain or self
        if target == self._target:
            return self
        if target is None:
            return plain
        y, log_slopes = target.scale.forward_and_log_slope(plain.y)
        slopes_squared = np.exp(np.minimum(2 * log_slopes, _LARGEST_LOG))  # the delta method
        errors, rounding = plain.errors * slopes_squared, plain.rounding * slopes_squared
        other = TrainingData(self.X, y, plain.weights, errors, rounding, log_slopes)
        other._pairs, other._target, other._plain = self._pairs, target, plain
        return other

    def take(self, rows: IntArray) -> "TrainingData":
        """Return the data of these rows."""
        plain = self._plain or self
        noise = plain.weights[rows], plain.errors[rows], plain.rounding[rows]
        return TrainingData(plain.X[rows], plain.y[rows], *noise).on(self._target)

    @property
    def row_noise(self) -> RowNoise | None:
        """Weights and variances of errors and rounding, None if all are the default."""
        differs = self._has_weights or np.any(self.known_noise)
        return (self.weights, self.errors, self.rounding) if differs else None

    @property
    def influence(self) -> FloatArray:
        """Weights (n_samples,) of the rows before any fit, for a target of unit variance."""
        return 1 / (1 / self.weights + self.known_noise)

    def noise(self, variance: float) -> FloatArray:
        """Compute the noise variance (n_samples,) of each row from that of all rows."""
        return variance / self.weights + self.known_noise

    @property
    def rounding_by_target(self) -> tuple[FloatArray, FloatArray]:
        """Targets in order, and the variances of their rounding; one of them where all agree.

        On another scale it depends on the slope at the target.
        """
        if not len(self.y) or self.rounding.min() == self.rounding.max():
            return np.zeros(1), self.rounding[:1] if len(self.y) else np.zeros(1)
        order = np.argsort(self.y, kind="stable")
        return self.y[order], self.rounding[order]

    def log_factors(self, log_noise: float) -> FloatArray:
        """Compute what turns the log density of each row into that of the target as it was.

        A row of the weight w is w readings of one target, and their mean has the noise variance
        ``s / w``. Their scatter has the density ``(2 pi s)^(-(w - 1) / 2) w^(-1 / 2)``. With
        rounding, s is that of a rounded reading.
        """
        with np.errstate(invalid="ignore"):  # of a noise that is no number
            log_noises = np.logaddexp(log_noise, self._log_rounding)
        return self._factors + 0.5 * (1 - self.weights) * log_noises

    def log_factor(self, log_noise: float) -> float:
        """Compute the sum of :meth:`log_factors`."""
        if not self._has_weights:
            return self._factor
        return float(self.log_factors(log_noise).sum())

    def slope_of_factor(self, log_noise: float) -> float:
        """Compute the derivative of :meth:`log_factor`."""
        if not self._has_weights:
            return 0.0
        shares = expit(log_noise - self._log_rounding)  # of the noise that is not rounding
        return float(0.5 * ((1 - self.weights) * shares).sum())

    def pairs(self, view: View) -> PackedPairs:
        """Return the pairs of one view of a column, computed once."""
        if view not in self._pairs:
            self._pairs[view] = PackedPairs(np.ascontiguousarray(view(self.X)))
        return self._pairs[view]


def _of_rows(values: FloatArray | float, n_rows: int) -> FloatArray:
    """Return the values, or one value for all rows, as an array (n_rows,)."""
    return np.full(n_rows, values) if np.ndim(values) == 0 else np.asarray(values)


def log_normal(residual: FloatArray, variance: FloatArray) -> FloatArray:
    """Compute the log densities of independent normal variables, in nats."""
    return -0.5 * (residual**2 / variance + np.log(2 * np.pi * variance))


class Likelihood(ABC):
    """Log likelihood of one kernel on one data set, as a function of theta.

    ``theta`` (n_params,) holds the logs of the parameters in the order of ``parameters``: first the
    parameters of the expression, then the noise variance. Values are densities of the target as it
    is given, also for a kernel on another scale of it, and of all readings that a row stands for.
    """

    rows_for_each: float = 1.0  # for which each row stands that enters the likelihood

    def __init__(self, expression: Expression, data: TrainingData) -> None:
        self.expression, self.data = expression, data.on(expression.target)
        own = (parameter for node in expression.nodes for parameter in node.parameters)
        self.parameters = (*own, NOISE_VARIANCE)

    @abstractmethod
    def value(self, theta: FloatArray) -> float:
        """Compute the log likelihood in nats, ``-inf`` if that is not possible."""

    @abstractmethod
    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Compute the log likelihood in nats and its gradient, ``-inf`` and zeros on failure."""


class Term:
    """A term of a function, with parameters (not their logs) and rows to average it over, if any.

    The variance of a term that has such rows (m, n_features) is that of its difference from the
    average over them.
    """

    def __init__(
        self, expression: Expression, params: FloatArray, about: FloatArray | None = None
    ) -> None:
        self.expression, self.params, self.about = expression, params, about
        self.columns = sorted(expression.columns)

    def cross(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        """Compute the covariances (n, m) of the term at rows X with itself at rows Z."""
        return cross_covariance(self.expression, X, Z).forward(self.params)

    def variance(self, X: FloatArray) -> FloatArray:
        """Compute the prior variance (n,) of the term at rows X."""
        variance = diagonal_covariance(self.expression, X).forward(self.params)
        if self.about is None:
            return variance
        with_average = self.cross(X, self.about).mean(axis=1)
        return variance - 2 * with_average + self.cross(self.about, self.about).mean()

    def deviation(self, cross: FloatArray, Z: FloatArray) -> FloatArray:
        """Return the covariances (n, m) with rows Z of the term less its average."""
        return cross if self.about is None else cross - self.cross(self.about, Z).mean(axis=0)


class Predictor(ABC):
    """Predicts new observations, noise included, in the units of the search.

    Inputs must be scaled like the inputs of the fit. Predictions are of the standardised target, on
    the scale on which the kernel acts.
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
        self.jitter, self.noise_variance = jitter, float(np.exp(theta[-1])) + jitter
        self._rounding_by_target = data.on(expression.target).rounding_by_target
        self._whole, self._block = Term(expression, np.exp(theta[:-1])), max(1, block)
        self._terms: list[Term] = []
        self._last_means: dict[Term, tuple[FloatArray, FloatArray]] = {}
        left = self._whole.params
        for term in expression.body.terms(ADD):
            own, left = np.split(left, [n_kernel_params(term)])
            self._terms.append(Term(term, own))

    def mean(self, X: FloatArray) -> FloatArray:
        """Compute the predictive mean (n,) at inputs (n, n_features).

        Terms of the sum whose columns are as in the last call, as those of partial dependence that
        do not depend on the columns of its grid, keep their means. A term whose columns are the
        same in all rows is computed for one of them.
        """
        return sum((self._mean_of_term(term, X) for term in self._terms), start=np.zeros(len(X)))

    def _mean_of_term(self, term: Term, X: FloatArray) -> FloatArray:
        inputs = X[:, term.columns]
        known, mean = self._last_means.get(term, (None, inputs))
        if known is not None and np.array_equal(known, inputs):
            return mean
        rows = X[:1] if (inputs == inputs[:1]).all() else X
        parts = [self._part_mean_of_block(term, block) for block in self._blocks(rows)]
        mean = np.concatenate(parts) if len(rows) == len(X) else np.repeat(parts[0], len(X))
        self._last_means[term] = inputs, mean
        return mean

    def noise_at(self, mean: FloatArray) -> FloatArray:
        """Compute the variance (n,) of the noise of new observations with these means (n,).

        Their rounding is that of training targets nearby.
        """
        return self.noise_variance + np.interp(mean, *self._rounding_by_target)

    def mean_and_variance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and variance (n,), noise included."""
        means, variances = zip(*map(self._moments_of_block, self._blocks(X)), strict=True)
        return np.concatenate(means), np.concatenate(variances)

    def part(
        self,
        expression: Expression,
        params: FloatArray,
        X: FloatArray,
        *,
        about: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Compute mean (n,) and variance (n,) of a term of the function, without noise.

        The kernel of the function is the sum of the kernels of its terms, one of which is this
        expression with its parameters (n_params,), not their logs. The variance is that of the
        difference from the average of the term over the rows ``about`` (m, n_features), if they
        are given and the predictor knows it.
        """
        term = Term(expression, params, about)
        parts = [self._part_of_block(term, rows) for rows in self._blocks(X)]
        means, variances = zip(*parts, strict=True)
        return np.concatenate(means), np.concatenate(variances)

    def part_mean(self, expression: Expression, params: FloatArray, X: FloatArray) -> FloatArray:
        """Compute only the mean (n,) of a term of the function, which may take far less time."""
        term = Term(expression, params)
        return np.concatenate([self._part_mean_of_block(term, rows) for rows in self._blocks(X)])

    def samples(self, X: FloatArray, n_samples: int, rng: np.random.RandomState) -> FloatArray:
        """Draw new observations (n, n_samples), noise included."""
        mean, covariance = self.mean_and_covariance(X)
        # rounding may leave eigenvalues just below zero, of which the user need not hear
        return rng.multivariate_normal(mean, covariance, n_samples, check_valid="ignore").T

    def part_samples(
        self,
        expression: Expression,
        params: FloatArray,
        X: FloatArray,
        n_samples: int,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Draw a term of the function (n_samples, n)."""
        mean, covariance = self._joint(Term(expression, params), X)
        # rounding may leave eigenvalues just below zero
        return rng.multivariate_normal(
            mean, covariance, n_samples, check_valid="ignore", method="eigh"
        )

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and covariance (n, n), noise included."""
        mean, covariance = self._joint(self._whole, X)
        covariance[np.diag_indices(len(X))] += self.noise_at(mean)
        return mean, covariance

    @abstractmethod
    def _joint(self, term: Term, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute mean (n,) and covariance (n, n) of a term of the function."""

    @abstractmethod
    def _part_of_block(self, term: Term, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute mean and variance of a term of the function for one block of rows."""

    @abstractmethod
    def _part_mean_of_block(self, term: Term, X: FloatArray) -> FloatArray:
        """Compute the mean of a term for one block of rows."""

    def _moments_of_block(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, variance = self._part_of_block(self._whole, X)
        return mean, variance + self.noise_at(mean)

    def _blocks(self, X: FloatArray) -> Iterator[FloatArray]:
        for start in range(0, len(X), self._block):
            yield X[start : start + self._block]


MakePredictor = Callable[[Expression, FloatArray, TrainingData], Predictor]
"""Function that makes the predictor of a kernel with parameters theta, conditioned on data.

It raises a ``scipy.linalg.LinAlgError`` if the covariance matrix has no Cholesky factor.
"""
