"""The noise of each row: what is known of it, and how it varies with the columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular
from scipy.special import expit, logsumexp
from scipy.stats import norm

from autokernel.data.columns import Inputs
from autokernel.data.scales import LARGEST_LOG
from autokernel.typing import BoolArray, FloatArray, IntArray

N_KNOTS = 7  # quantiles of a column, at which a smooth term has its values
LENGTHSCALE = 0.3  # of a smooth term, in the ranks of a column from 0 to 1
SLOPE = 2.4  # prior standard deviation of a linear term, from the lowest rank to the highest
MAX_TERMS = 2
N_CASES = 9  # of noise that is not known
COARSE = 0.3  # deviations of the target to which it is rounded
MIN_REPEATED = 3.0  # readings a row, from which a table has been planned to repeat them
SILVERMAN = 1.06  # n^(-1/5) standard deviations, the width of a kernel of a density
LOG_2PI = float(np.log(2 * np.pi))
GAP, LEVELS = "gap", "levels"  # forms of a term: of rows without a value, and of a category

_JITTER = 1e-6  # of the covariance of a smooth term at its knots


class RowNoise:
    """What is known of the noise of each row, besides the noise variance s of all rows.

    A row with the weight w, the variance v of its known error and the variance r of rounding has
    noise of the variance ``(s f + r) / w + v``: each of the w readings that the row stands for is
    rounded. The factors f are one unless the noise varies with the columns. On another scale of the
    target, ``log_slopes`` are the logs of the slopes of the scale at the targets, which turn a
    density on the scale into one of the target as it was.

    All are arrays (n_samples,), by default zero but for the weights. ``log_factors`` are the logs
    of f. ``counts`` are the numbers of readings that are known to agree, by default the weights; a
    target that is a mean counts as one.
    """

    def __init__(
        self,
        weights: FloatArray,
        errors: FloatArray | float = 0.0,
        rounding: FloatArray | float = 0.0,
        log_slopes: FloatArray | float = 0.0,
        log_factors: FloatArray | float = 0.0,
        counts: FloatArray | None = None,
    ) -> None:
        self.weights, self.counts = weights, weights if counts is None else counts
        self.errors, self.rounding, self.log_slopes, self.log_factors = (
            np.broadcast_to(one, weights.shape)
            for one in (errors, rounding, log_slopes, log_factors)
        )
        self.known = self.rounding / weights + self.errors
        self.slope = np.exp(self.log_factors) / weights  # of the variance, by that of all rows
        self._has_counts = bool(np.any(self.counts != 1))
        self._sum_of_log_slopes = float(self.log_slopes.sum())
        self.differs = bool(np.any(self.slope != 1) or np.any(self.known))

    @classmethod
    def of_rows(
        cls, X: FloatArray, y: FloatArray, weights: FloatArray, stds: FloatArray, resolution: float
    ) -> "RowNoise":
        """Return the noise of targets with known errors, rounded to a resolution.

        Readings that agree are evidence of little noise if rows are repeated often, if targets are
        coarse, or if the same inputs have other targets too. Others are copies, or have a mean.
        """
        counts = weights
        if np.any(weights != 1) and weights.mean() < MIN_REPEATED and resolution < COARSE * y.std():
            _, numbers, n_equal = np.unique(X, axis=0, return_inverse=True, return_counts=True)
            counts = np.where(n_equal[numbers] > 1, weights, 1.0)
        rounding = resolution**2 / 12  # errors of rounding are uniform
        return cls(weights, stds**2, rounding, counts=counts)

    @property
    def resolution(self) -> float:
        """The resolution to which all targets are rounded, zero if there is none."""
        return float(np.sqrt(12 * self.rounding[0]))

    @property
    def record(self) -> dict[str, FloatArray]:
        """What is known, each as one number where all rows agree, for :meth:`of_record`."""
        return {
            name: np.array(one.flat[0]) if one.size and np.ptp(one) == 0 else one
            for name, one in self._every.items()
            if name != "log_factors"
        }

    @classmethod
    def of_record(cls, shape: tuple[int, ...], record: Mapping[str, npt.ArrayLike]) -> "RowNoise":
        """Make the noise of a record."""
        every = {n: np.broadcast_to(np.asarray(one, float), shape) for n, one in record.items()}
        return cls(**every)

    def variance(self, s: float | FloatArray) -> FloatArray:
        """Compute the noise variance of each row from that of all rows, or of single readings."""
        return s * self.slope + self.known

    def take(self, rows: IntArray, shares: FloatArray | float = 1.0) -> "RowNoise":
        """Return the noise of some rows, in the shape of their indices, with shares of weights."""
        taken = {name: one[rows] for name, one in self._every.items()}
        return RowNoise(**taken | {name: taken[name] * shares for name in ("weights", "counts")})

    def joined(self, other: "RowNoise") -> "RowNoise":
        """Return the noise of these rows and of others after them."""
        every = self._every.items()
        return RowNoise(**{name: np.append(one, other._every[name]) for name, one in every})

    def with_new(self) -> "RowNoise":
        """Return the noise of blocks of rows (n_blocks, n_rows) with a new row at the end."""
        ends = {"weights": 1.0, "counts": 1.0}  # others are zero
        every = {
            name: np.pad(one, ((0, 0), (0, 1)), constant_values=ends.get(name, 0.0))
            for name, one in self._every.items()
        }
        return RowNoise(**every)

    def multiplied(self, factor: FloatArray | float) -> "RowNoise":
        """Return the noise of targets that are multiplied by the root of a factor."""
        return self.changed(errors=self.errors * factor, rounding=self.rounding * factor)

    def on_scale(self, log_slopes: FloatArray) -> "RowNoise":
        """Return the noise on a scale of the target with these slopes, by the delta method."""
        noise = self.multiplied(np.exp(np.minimum(2 * log_slopes, LARGEST_LOG)))
        return noise.changed(log_slopes=log_slopes)

    def changed(self, **changes: FloatArray) -> "RowNoise":
        """Return the noise with other arrays in place of some."""
        return RowNoise(**self._every | changes)

    @property
    def has_density(self) -> BoolArray:
        """Whether the target (n_samples,) of each row has a density on the scale of the target."""
        return np.isfinite(self.log_slopes)

    @property
    def _every(self) -> dict[str, FloatArray]:
        names = "weights", "errors", "rounding", "log_slopes", "log_factors", "counts"
        return {name: getattr(self, name) for name in names}

    @property
    def influence(self) -> FloatArray:
        """Weights (n_samples,) of the rows before any fit, for a target of unit variance."""
        return 1 / self.variance(1.0)

    @property
    def n_readings(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    def corrections(self, log_noise: float) -> FloatArray:
        """Compute what turns the log density of each row into that of the target as it was.

        A row of w readings that agree is one of their mean, of the noise variance ``s / w``. Their
        scatter has the density ``(2 pi s)^(-(w - 1) / 2) w^(-1 / 2)``. With rounding, s is that of
        a rounded reading.
        """
        w = self.counts
        with np.errstate(invalid="ignore"):  # of a noise that is no number
            log_noises = np.logaddexp(log_noise + self.log_factors, self._log_rounding)
        scatter = (w - 1) * LOG_2PI + np.log(w)
        return w * self.log_slopes - 0.5 * scatter + 0.5 * (1 - w) * log_noises

    def correction(self, log_noise: float) -> float:
        """Compute the sum of :meth:`corrections`."""
        if not self._has_counts:
            return self._sum_of_log_slopes
        return float(self.corrections(log_noise).sum())

    def slope_of_correction(self, log_noise: float) -> float:
        """Compute the derivative of :meth:`correction`."""
        if not self._has_counts:
            return 0.0
        return float(self.slopes_of_corrections(log_noise).sum())

    def slopes_of_corrections(self, log_noise: float) -> FloatArray:
        """Compute the derivatives (n_samples,) of :meth:`corrections` in the log of the noise."""
        logs = log_noise + self.log_factors
        shares = expit(logs - self._log_rounding)  # of the noise that is not rounding
        return 0.5 * (1 - self.counts) * shares

    @property
    def _log_rounding(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self.rounding)


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class NoiseTerm:
    """How the log of the noise variance changes with one column.

    It is a weighted sum of functions of the column, ``basis``, whose coefficients have standard
    normal priors and the posterior N(coefficients, covariance). Each function has mean zero over
    the rows of the fit. Except for the form of a gap, it is zero where the column has no value.
    """

    column: int
    form: str  # one of FORMS
    knots: FloatArray  # (n_knots,), ascending values in the unit of the column
    centre: FloatArray  # (n_functions,), means over the rows of the fit
    coefficients: FloatArray  # (n_functions,)
    covariance: FloatArray  # (n_functions, n_functions)

    def basis(self, x: FloatArray) -> FloatArray:
        """Compute the functions (n, n_functions) at values (n,) of the column."""
        return np.nan_to_num(FORMS[self.form](x, self.knots) - self.centre)

    def is_new(self, inputs: Inputs) -> BoolArray:
        """Return which rows (n,) have a new level, or a gap where no row of the fit has one."""
        x, has_gaps = inputs.raw(self.column), inputs.columns[self.column].n_gaps > 0
        is_known = ~np.isnan(FORMS[self.form](x, self.knots)).any(axis=1)
        return ~(is_known | (np.isnan(x) & has_gaps))

    def cases(self, inputs: Inputs) -> tuple[FloatArray, FloatArray]:
        """Return what the log of the noise variance of rows may have more, see NoiseFunction.

        A new row may have the noise of any value of the column, or one like that of any level, by
        their frequencies in the fit. Each has its posterior, which is wider for levels (Silverman's
        rule of densities), in three points of a Gauss-Hermite rule. They are merged in bins.
        """
        column, is_level = inputs.columns[self.column], self.form == LEVELS
        is_new = self.is_new(inputs)
        known = (self.basis(inputs.raw(self.column)) @ self.coefficients)[None]
        if not is_new.any():
            return np.ones(known.shape), known
        values = column.low + column.extent * np.array(column.places)
        basis = self.basis(self.knots if is_level else values)
        logs, n = basis @ self.coefficients, len(basis)
        weights = self.centre if is_level else np.full(n, 1 / n)
        variances = np.einsum("ij,jk,ik->i", basis, self.covariance, basis)
        variances += (SILVERMAN * n**-0.2) ** 2 * np.var(logs) if is_level else 0.0
        logs = (logs + np.sqrt(3) * np.outer((-1, 0, 1), np.sqrt(variances))).ravel()
        weights = np.outer((1 / 6, 2 / 3, 1 / 6), weights).ravel()
        number = np.digitize(logs, np.linspace(logs.min(), logs.max(), N_CASES + 1)[1:-1])
        of_bins = np.bincount(number, weights, N_CASES)
        factors = np.bincount(number, weights * np.exp(logs), N_CASES)
        of_bins, logs = of_bins[of_bins > 0], np.log(factors[of_bins > 0] / of_bins[of_bins > 0])
        is_first = (np.arange(len(logs)) == 0)[:, None]  # the only case of other rows
        return np.where(is_new, of_bins[:, None], is_first), np.where(is_new, logs[:, None], known)

    def ratio(self, x: float, other: float) -> tuple[float, float, float]:
        """Compute how many times as large the deviation of the noise is at x as at another value.

        The second and third result are the ends of the central 90 % interval.
        """
        at_x, at_other = self.basis(np.array([x, other]))
        change = 0.5 * (at_x - at_other)
        mean, std = change @ self.coefficients, np.sqrt(change @ self.covariance @ change)
        low, middle, high = np.exp(mean + std * norm.ppf([0.05, 0.5, 0.95])).tolist()
        return middle, low, high


@dataclass(frozen=True, slots=True)
class NoiseFunction:
    """What the log of the noise variance has more than a constant: a sum of terms."""

    terms: tuple[NoiseTerm, ...] = ()
    log_prior: float = 0.0  # nats, that the score of each kernel has more

    def is_new(self, inputs: Inputs) -> BoolArray:
        """Return the rows (n,) whose noise is not known, as a level or a gap is new."""
        return sum((one.is_new(inputs) for one in self.terms), start=np.zeros(len(inputs), bool))

    def log_factors(self, inputs: Inputs) -> FloatArray:
        """Compute the logs (n,) of the factors of the noise variance, expected where it is new."""
        weights, logs = self.cases(inputs)
        return logs[0] if len(logs) == 1 else logsumexp(logs, b=weights, axis=0)

    def cases(self, inputs: Inputs) -> tuple[FloatArray, FloatArray]:
        """Compute the factors that rows may have: weights (n_cases, n), and logs of factors.

        There is one case if no row is new.
        """
        n = len(inputs)
        weights, logs = np.ones((1, n)), np.zeros((1, n))
        for own, more in (one.cases(inputs) for one in self.terms):
            weights = np.concatenate(weights[:, None] * own)
            logs = np.concatenate(logs[:, None] + more)
        return weights, logs


CONSTANT = NoiseFunction()


def _smooth(x: FloatArray, knots: FloatArray) -> FloatArray:
    """Compute functions whose sums have the squared exponential covariance between the knots."""
    at = np.linspace(0, 1, len(knots))
    L = cholesky(_covariance(at, at) + _JITTER * np.eye(len(at)), lower=True)
    return solve_triangular(L, _covariance(at, _ranks(x, knots)), lower=True, check_finite=False).T


def _levels(x: FloatArray, knots: FloatArray) -> FloatArray:
    is_level = np.round(x)[:, None] == knots  # numbers that were scaled and back
    return np.where(is_level.any(axis=1, keepdims=True), is_level.astype(float), np.nan)


def _ranks(x: FloatArray, knots: FloatArray) -> FloatArray:
    """Return the ranks (n,) from 0 to 1 of values among knots, constant beyond the last ones."""
    return np.interp(x, knots, np.linspace(0, 1, len(knots)))


def _covariance(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.exp(-0.5 * ((a[:, None] - b) / LENGTHSCALE) ** 2)


FORMS: Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "linear": lambda x, knots: SLOPE * _ranks(x, knots)[:, None],
    "smooth": _smooth,
    LEVELS: _levels,
    GAP: lambda x, _: np.isnan(x)[:, None].astype(float),
}
"""Functions (n, n_functions) of a column (n,) with knots."""
