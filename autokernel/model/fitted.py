"""A fitted kernel with the mixture that predicts, in the units of the user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, softmax
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from autokernel.data import Columns, FitData, Series, Target
from autokernel.data.counts import FAMILIES
from autokernel.data.plain import as_text, read_text
from autokernel.data.scales import CountScale, Scale
from autokernel.evidence import Evaluation
from autokernel.exceptions import EvaluationError, fallback, kernel_errors, warn_user
from autokernel.expression import COUNT_SCALES, IDENTITY, View, changes_along
from autokernel.inference import (
    ExactPredictor,
    MakePredictor,
    Moments,
    TrainingData,
    at_mode,
    one_blas_thread,
)
from autokernel.model.averaging import KernelPosterior, MixtureComponent
from autokernel.model.folds import LeftOut, share_explained
from autokernel.model.mixture import MIN_WEIGHT, MixturePredictor
from autokernel.model.sklearn_kernel import to_sklearn
from autokernel.typing import FloatArray, IntArray

Outcomes = Mapping[str, npt.NDArray[Any]]
"""Rows of updates with what was predicted of them, see ``AutoKernelGPRegressor.outcomes_``."""

NO_OUTCOMES: Outcomes = {"row": np.empty(0, dtype=int)} | dict.fromkeys(
    ("y", "mean", "low", "high", "log_density", "weight", "noise_std"), np.empty(0)
)


def condition(
    evaluation: Evaluation, data: TrainingData, make_predictor: MakePredictor = ExactPredictor
) -> MixturePredictor:
    """Return the mixture of one kernel at its parameters, or raise an ``EvaluationError``."""
    expression, n = evaluation.expression, len(data.y)
    if not np.isfinite(evaluation.log_posterior):
        raise EvaluationError(f"{expression} could not be fitted because: {evaluation.status}")
    point = [MixtureComponent(expression, evaluation.theta, 1.0)]
    what = f"{expression} cannot be conditioned on {n} rows"
    with kernel_errors(what, MemoryError), one_blas_thread():  # as in the search, to the last bit
        return MixturePredictor(point, data, make_predictor)


def how_computed(mixture: MixturePredictor, n_rows: int) -> str:
    """Say how predictions are computed that should be given some number of rows."""
    n = len(mixture.data.y)
    of_rows = "" if n == n_rows else f", given {n} rows"
    return f"{mixture.predictors[0].text}{of_rows}"


class Outliers(NamedTuple):
    """Rows that are excluded."""

    rows: IntArray  #: (n_outliers,), as they are counted in ``X``
    deviations: FloatArray  #: from predictions, infinite where the scale of the target ends
    X: FloatArray  #: (n_outliers, n_features)
    y: FloatArray


@dataclass(frozen=True, eq=False)  # eq=False: the fields hold arrays
class FittedModel:
    """The kernels that are believed, the mixture that predicts, and the rows that both are of.

    Rows that are later than all of their group are predicted by the mixture ``ahead``, if any.
    """

    best: int  # the index of the best kernel
    scaled_noise_variance: float  # of the best kernel and the standardised target, not rounded
    mixture: MixturePredictor
    ahead: MixturePredictor | None
    kernels: Sequence[KernelPosterior]  # the most probable first
    approximation: str  # how predictions are computed, as the user reads it
    unjudged: tuple[int, ...]  # columns that a cut search has neither dropped nor added
    series: Series
    resolution: float  # of y, in its unit
    n_given: int  # rows of the fit and of updates, by which all rows are counted
    outliers: Outliers
    weightless: FloatArray  # (n_weightless, n_features), inputs of rows of weight zero
    rows: IntArray  # (n_samples,), the other rows, of equal ones the first
    given_rows: IntArray  # those of them that predictions are given
    X: FloatArray  # (n_fitted, n_features), the same rows with all equal ones, in the user's units
    y: FloatArray  # (n_fitted,)
    outcomes: Outcomes
    left_out: LeftOut | None  # None if no rows could be left out

    def __getstate__(self) -> dict[str, Any]:
        packed = as_text(self.kernels, (one.evaluation.expression for one in self.kernels))
        return {**vars(self), "kernels": packed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kernels = read_text(tuple[KernelPosterior, ...], state["kernels"])
        vars(self).update(state, kernels=kernels)

    @property
    def evaluation(self) -> Evaluation:
        """The fit of the best kernel."""
        return self.kernels[self.best].evaluation

    def at_best(self, evaluation: Evaluation) -> MixturePredictor:
        """Return the mixture of one kernel at its best parameters, given the same rows."""
        mixture = self.mixture
        if mixture.is_of(evaluation.expression, evaluation.theta):
            return mixture
        return condition(evaluation, mixture.data, mixture.make_predictor)

    def by_time(self, X: FloatArray) -> list[tuple[IntArray, MixturePredictor]]:
        """Part rows (n, n_features) into those of the mixture, and those later than their group.

        Rows of a new group are later if they are later than all.
        """
        if self.ahead is None:
            return [(np.arange(len(X)), self.mixture)] if len(X) else []
        (time, *groups), n = self.series.columns, len(self.X)
        both = np.concatenate([self.X, X])[:, groups]
        group = np.unique(both, axis=0, return_inverse=True)[1].ravel()  # flat in any numpy
        last = np.full(len(both), -np.inf)  # of each group, if it is known
        np.fmax.at(last, group[:n], self.X[:, time])
        last[np.isinf(last)] = np.nanmax(self.X[:, time])
        is_later = X[:, time] > last[group[n:]]
        parts = (np.flatnonzero(~is_later), self.mixture), (np.flatnonzero(is_later), self.ahead)
        return [part for part in parts if len(part[0])]

    def with_rows(
        self, rows: TrainingData, given: FitData, joint: Sequence[Moments], of_best: float
    ) -> "FittedModel":
        """Return the model that is also given new rows, which are no outliers.

        ``AutoKernelGPRegressor.update`` says what changes. The ``rows`` are those ``given`` in the
        units of the model, the components of the mixture predict their moments ``joint``, and their
        log density at the best parameters of the best kernel is ``of_best``. An ``EvaluationError``
        is raised if the components cannot be conditioned on them. Without rows, only the levels of
        columns are added.
        """
        mixture = self.mixture
        with kernel_errors("the rows cannot join the model"):
            log_densities = mixture.log_densities(rows, joint)
            updated, ahead = mixture.with_rows(rows, joint, log_densities), self.ahead
            if ahead is not None:
                of_ahead = ahead.joint(rows.X)
                found = ahead.log_densities(rows, of_ahead)
                ahead = ahead.with_rows(rows, of_ahead, found) if np.isfinite(found).any() else None
        gains = [self._log_density(one, rows, log_densities) for one in self.kernels]
        with np.errstate(divide="ignore"):
            log_prior = np.log([one.probability for one in self.kernels])
        probabilities = softmax(log_prior + gains)
        order = np.argsort(-probabilities, kind="stable").tolist()
        order = [n for n in order if n == self.best or probabilities[n] > MIN_WEIGHT]
        kernels, joined = [], dict[str, Any]()
        for number in order:
            one, gain = self.kernels[number], gains[number]
            of_fit = of_best if number == self.best else gain
            fit = one.evaluation.with_rows(of_fit, rows.known_noise.n_readings)
            log_score, sure = one.log_score + gain, float(probabilities[number])
            kernels.append(replace(one, evaluation=fit, probability=sure, log_score=log_score))
        for name in ("X", "y", "rows", "weightless"):
            joined[name] = np.concatenate([getattr(self, name), getattr(given, name)])
        return replace(
            self,
            best=order.index(self.best),
            mixture=updated,
            ahead=ahead,
            kernels=kernels,
            approximation=how_computed(updated, len(joined["rows"])),
            n_given=self.n_given + len(given.first_equal),
            given_rows=np.concatenate([self.given_rows, given.rows]),
            **joined,
        )

    def _log_density(
        self, kernel: KernelPosterior, rows: TrainingData, of_components: FloatArray
    ) -> float:
        """Compute the joint log density of new rows by a kernel; if that fails, warn: ``-inf``."""
        every, expression = self.mixture.components, kernel.evaluation.expression
        is_own = np.array([one.expression == expression for one in every])
        if is_own.any():
            weights = self.mixture.weights[is_own]
            return float(logsumexp(of_components[is_own], b=weights / weights.sum()))
        with fallback(f"{expression} does not explain the new rows, and is no longer probable"):
            at_best = self.at_best(kernel.evaluation)
            return float(at_best.log_densities(rows, at_best.joint(rows.X))[0])
        return -np.inf

    @property
    def left_out_score(self) -> float:
        """R^2 of predictions of the rows that were left out, nan if there are none."""
        if self.left_out is None:
            return np.nan
        u = self.mixture.data.u[self.left_out.rows]
        return share_explained(u - self.left_out.mean, u, self.left_out.weights)

    @property
    def columns(self) -> Columns:
        """The columns of X."""
        return self.mixture.data.inputs.columns

    @property
    def target(self) -> Target:
        """The target, its standardisation and its scales."""
        return self.mixture.data.target

    @property
    def scale(self) -> Scale:
        """The scale of the target on which effects of the best kernel add up."""
        return self.target.scales[self.evaluation.expression.target].link

    @property
    def transformed(self) -> TrainingData:
        """The rows of the fit, with the target, or what counts show, on that scale."""
        best = self.evaluation
        return at_mode(best.expression, best.theta, self.mixture.data.on(best.expression.target))

    def of_one(self, scaled: FloatArray) -> FloatArray:
        """Return scaled inputs (n, n_features) with an exposure, or a trial, of one."""
        if (column := self.target.exposure) is None:
            return scaled
        known, found = self.columns[column], scaled.copy()
        found[:, column] = (1 - known.low) / known.extent
        return found

    def residuals(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Compute the deviations (n,) of targets from predictions, on the scale of effects."""
        scale = self.target.scales[self.evaluation.expression.target]
        fit = self.mean(X) if self.has_mean else self.quantiles(X, np.array([0.5]))[:, 0]
        if isinstance(scale, CountScale):
            e = self.target.exposures(self.columns.inputs(X))
            of_y, of_fit = (scale.family.of_each(one, e)[0] for one in (y, fit))
            return of_y - of_fit
        of_y, of_fit = (scale.forward(self.target.forward(one)) for one in (y, fit))
        return np.asarray(scale.width * (of_y - of_fit))

    @property
    def has_mean(self) -> bool:
        """Whether means, and not medians, are what effects add up to."""
        return self.evaluation.expression.target in (IDENTITY, *COUNT_SCALES)

    @property
    def kernel(self) -> Kernel:
        """The scikit-learn kernel on inputs before scaling, noise included."""
        expression, params = self.evaluation.expression, np.exp(self.evaluation.theta[:-1])
        noise = self.scaled_noise_variance
        if expression.target == IDENTITY:  # all rows are rounded in the same way
            noise += float(self.mixture.data.noise.rounding[0])
        return to_sklearn(expression, params, columns=self.columns, noise_variance=noise)

    @property
    def typical_rounding(self) -> float:
        """The median variance of rounding, for the standardised target on its scale."""
        return float(np.median(self.transformed.noise.rounding))

    @property
    def noise_variance(self) -> float:
        """Variance of the noise, with a typical rounding, in squared units of ``scale``."""
        return (self.scaled_noise_variance + self.typical_rounding) * self.scale.width**2

    @property
    def used_columns(self) -> frozenset[int]:
        """The columns on which predictions depend."""
        kernels = [one.expression for one in self.mixture.components]
        of_noise = (self.mixture.data.varying.get(one.target) for one in kernels)
        terms = chain.from_iterable(one.terms for one in of_noise if one is not None)
        exposures = [one for one in [self.target.exposure] if one is not None]
        of_terms = (one.column for one in terms)
        return frozenset(chain(*(one.columns for one in kernels), of_terms, exposures))

    def warn_beyond_scales(self, X: FloatArray) -> None:
        """Warn of numbers in X (n, n_features) that the scale of a column does not have."""
        leaves = (leaf for one in self.mixture.components for leaf in one.expression.leaves)
        views = {(leaf.column, leaf.scale) for leaf in leaves if leaf.scale != IDENTITY}
        for column, scale in sorted(views):
            x, has = X[:, column], self.columns.scale(View(column, scale)).has
            if len(beyond := np.flatnonzero(~has(x) & ~np.isnan(x))):
                value, name = x[beyond[0]], self.columns[column].name
                warn_user(
                    f"column {name!r} is modelled on the {scale} scale, which is undefined at "
                    f"{value:g} (row {beyond[0]}): such a number counts as the smallest one of fit"
                )

    def warn_of_levels(self, X: FloatArray) -> None:
        """Warn of rows in X (n, n_features) with levels that no row of the fit has."""
        for column in sorted(self.used_columns):
            levels = self.columns[column].levels
            new = np.flatnonzero(X[:, column] >= (np.inf if levels is None else len(levels.values)))
            if len(new):
                warn_user(
                    f"{len(new)} of {len(X)} rows have levels of column "
                    f"{self.columns[column].name!r} that no row of fit has, row {new[0]} first: "
                    "they are predicted as an average level; update or fit with rows of them"
                )

    def scaled(self, X: FloatArray) -> FloatArray:
        """Scale new inputs (n, n_features), in which each NaN is another draw of its column."""
        changes = set().union(*(changes_along(one.expression) for one in self.mixture.components))
        if (exposure := self.target.exposure) is not None:
            changes = changes | {exposure}
        has_trials = any(FAMILIES[one].is_share for one in self.target.scales if one in FAMILIES)
        for column in sorted(changes):
            x, what, why = X[:, column], "no missing values", "the kernel changes along it"
            is_right = ~np.isnan(x)
            if column == exposure:
                is_right = (x > 0) & ((x == np.rint(x)) | (not has_trials))
                what, why = "positive numbers", "it holds exposures"
                if has_trials:
                    what, why = "whole numbers from one on", "it holds numbers of trials"
            if len(wrong := np.flatnonzero(~is_right)):
                raise ValueError(
                    f"column {self.columns[column].name!r} must have {what}, as {why}, got "
                    f"{X[wrong[0], column]:g} in row {wrong[0]}: leave out such rows"
                )
        return self.columns.inputs(X).values

    def filled(self, X: FloatArray) -> FloatArray:
        """Return inputs (n, n_features) with medians of the columns where values are missing."""
        medians = [c.low + c.extent * float(np.median(c.places)) for c in self.columns.every]
        return np.where(np.isnan(X), medians, X)

    def mean(self, X: FloatArray) -> FloatArray:
        """Compute the predictive mean (n,) at inputs (n, n_features)."""
        scaled, found = self.scaled(X), np.empty(len(X))
        for rows, mixture in self.by_time(X):
            found[rows] = mixture.mean(scaled[rows])
        return self.target.inverse(found)

    def mean_and_std(self, X: FloatArray, *, noise: bool = True) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and standard deviation (n,), with or without noise."""
        scaled, mean, variance = self.scaled(X), np.empty(len(X)), np.empty(len(X))
        for rows, mixture in self.by_time(X):
            mean[rows], variance[rows] = mixture.moments(scaled[rows], noise=noise)
        return self.target.inverse(mean), self.target.width * np.sqrt(variance)

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the predictive mean (n,) and covariance (n, n), noise included.

        Rows ``ahead`` are independent of others, given those of the fit.
        """
        scaled, mean, covariance = self.scaled(X), np.empty(len(X)), np.zeros((len(X), len(X)))
        for rows, mixture in self.by_time(X):
            mean[rows], covariance[np.ix_(rows, rows)] = mixture.mean_and_covariance(scaled[rows])
        return self.target.inverse(mean), self.target.width**2 * covariance

    def quantiles(self, X: FloatArray, probabilities: FloatArray) -> FloatArray:
        """Compute the quantiles (n, n_probabilities) of new observations."""
        scaled, found = self.scaled(X), np.empty((len(X), len(probabilities)))
        for rows, mixture in self.by_time(X):
            found[rows] = mixture.quantiles(scaled[rows], probabilities)
        return self._observed(found)

    def _observed(self, u: FloatArray) -> FloatArray:
        """Convert new observations to the units of the user; counts are whole numbers."""
        y = self.target.inverse(u)
        return np.maximum(np.rint(y), 0.0) if self.mixture.has_counts else y

    def below(self, X: FloatArray, counts: FloatArray) -> FloatArray:
        """Compute the probabilities (n,) that new observations are at most some counts (n,)."""
        scaled, found = self.scaled(X), np.empty(len(X))
        for rows, mixture in self.by_time(X):
            found[rows] = mixture.below(scaled[rows], counts[rows])
        return found

    def log_density(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Compute the log density (n,) of new observations (n,), in nats."""
        scaled, u, found = self.scaled(X), self.target.forward(y), np.empty(len(X))
        for rows, mixture in self.by_time(X):
            found[rows] = mixture.log_density(scaled[rows], u[rows])
        return found - np.log(self.target.width)

    def draws_of_mean(self, X: FloatArray, n_draws: int) -> FloatArray:
        """Draw what ``mean`` would be with another function of the posterior, (n_draws, n)."""
        scaled, found = self.scaled(X), np.empty((n_draws, len(X)))
        for rows, mixture in self.by_time(X):
            found[:, rows] = mixture.draws_of_mean(scaled[rows], n_draws)
        return self.target.inverse(found)

    def samples(
        self, X: FloatArray, n_samples: int, random_state: int | np.random.RandomState | None
    ) -> FloatArray:
        """Draw new observations (n, n_samples), noise included."""
        scaled, found = self.scaled(X), np.empty((len(X), n_samples))
        rng = check_random_state(random_state)
        for rows, mixture in self.by_time(X):
            found[rows] = mixture.samples(scaled[rows], n_samples, rng)
        return self._observed(found)
