"""Predictions of a mixture of Gaussian processes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import elementwise
from scipy.special import logsumexp, ndtr, ndtri, softmax
from sklearn.exceptions import ConvergenceWarning

from autokernel.data.counts import MAX_COUNT
from autokernel.data.plain import as_text, read_text
from autokernel.data.scales import CountScale, Identity, Scale
from autokernel.exceptions import KERNEL_ERRORS, reason_of, warn_user
from autokernel.expression import COUNT_SCALES, IDENTITY, Expression
from autokernel.inference import (
    ExactLikelihood,
    ExactPredictor,
    MakePredictor,
    Moments,
    Predictor,
    TrainingData,
    one_blas_thread,
)
from autokernel.model.averaging import MixtureComponent, systematic
from autokernel.model.errors import NORMAL, WILD, ErrorLaw
from autokernel.typing import BoolArray, FloatArray, IntArray

MIN_WEIGHT = 1e-100  # of a component, below which new rows exclude it for good
MAX_LOST = 0.01  # of all weights, that fail without a warning
EDGE = 40.0  # of a normal distribution: the least probability that is not zero lies at -38.5
ROUGHNESS = 1e-6  # of quantiles of large counts, relative
SEED_OF_COUNTS = [1985, 76]  # of probabilities; data that users simulate have others
Made = TypeVar("Made")
_Normals = tuple[FloatArray, Sequence[Scale], FloatArray, FloatArray]
"""Weights (n_normals, n), scales of the target, and means and deviations (n_normals, n) on them."""
_Marginal = Sequence[tuple[FloatArray, FloatArray]]
"""Means (n,) and variances (n,) of new rows by each component."""


def made_for_each(
    components: Sequence[MixtureComponent], make: Callable[[MixtureComponent], Made]
) -> dict[MixtureComponent, Made]:
    """Make something for each component but those that fail; warn if much of the weight is lost.

    If all components fail, the last error is raised.
    """
    found: dict[MixtureComponent, Made] = {}
    last: Exception | None = None
    for one in components:
        try:
            found[one] = make(one)
        except KERNEL_ERRORS as error:
            last = error
    if last is None:
        return found
    if not found:
        raise last
    lost = 1 - sum(one.weight for one in found) / sum(one.weight for one in components)
    if lost > MAX_LOST:
        text = f"components with the weight {lost:.2g} could not be computed ({reason_of(last)})"
        warn_user(f"{text}: the others have their weight", ConvergenceWarning)
    return found


def random_within(low: FloatArray, high: FloatArray, order: IntArray) -> FloatArray:
    """Draw numbers (n,) between the probabilities of smaller counts and of counts up to each.

    They are uniform if predictions are right (Smith 1985). The ``order`` of the rows, which should
    not depend on how they are given, says which drawn number each of them has.
    """
    drawn = np.empty(len(low))
    drawn[order] = np.random.default_rng(SEED_OF_COUNTS).uniform(size=len(low))
    return low + drawn * (high - low)


class MixturePredictor:
    """A mixture of predictive distributions, one for each kernel with its parameters.

    Quantiles, densities and draws have errors by the ``law``, with rare large deviations. Moments
    have its ``deviation``, as rare errors would dominate them on the log scale.

    A component whose covariance matrix has no Cholesky factor, or whose custom kernel fails, is
    left out of ``components`` and of their ``weights`` (n_components,), which sum to one. If that
    is more than :data:`MAX_LOST`, a warning says why.

    Raises
    ------
    scipy.linalg.LinAlgError, CustomPartError
        If all components are left out.

    Notes
    -----
    A pickle holds the components and the data: the factorisations are repeated at the first
    prediction, O(n_components n_samples^3 / 3).
    """

    def __init__(
        self,
        components: Sequence[MixtureComponent],
        data: TrainingData,
        make_predictor: MakePredictor,
        *,
        law: ErrorLaw = NORMAL,
    ) -> None:
        self.make_predictor, self.data, self.law = make_predictor, data, law
        self._predictors: list[Predictor] | None
        self._set(made_for_each(components, self._made))

    def _made(self, one: MixtureComponent) -> Predictor:
        return self.make_predictor(one.expression, one.theta, self.data)

    def _set(self, predictors: Mapping[MixtureComponent, Predictor]) -> None:
        self.components = tuple(predictors)
        self.weights = np.array([one.weight for one in predictors])
        self.weights /= self.weights.sum()
        self._predictors = list(predictors.values())

    @property
    def predictors(self) -> list[Predictor]:
        """The predictors of the components."""
        if self._predictors is None:
            with one_blas_thread():  # as in the fit, for bit-identical results
                self._predictors = [self._made(one) for one in self.components]
        return self._predictors

    def with_law(self, law: ErrorLaw) -> "MixturePredictor":
        """Return the same mixture with another law of the errors."""
        return self._with(law=law)

    def _with(self, **changes: Any) -> "MixturePredictor":
        other = object.__new__(type(self))  # with the factorisations, which a copy would not have
        vars(other).update(vars(self), **changes)
        return other

    def joint(self, X: FloatArray) -> list[Moments]:
        """Compute the moments of new observations by each component, on its scale of the target."""
        return [one.mean_and_covariance(X) for one in self.predictors]

    def log_densities(self, rows: TrainingData, joint: Sequence[Moments]) -> FloatArray:
        """Compute the joint log density (n_components,) of new rows by each component, in nats."""
        every = zip(self.predictors, joint, strict=True)
        return np.array([one.log_density(rows, moments) for one, moments in every])

    def with_rows(
        self, rows: TrainingData, joint: Sequence[Moments], log_densities: FloatArray
    ) -> "MixturePredictor":
        """Return the mixture that is also given new rows, with these moments and densities.

        Weights are multiplied by the densities, a component whose weight vanishes is left out, and
        the law of errors learns from the rows.
        Exact predictors take O(n_samples^2) for each row, and others are made again for all rows.
        """
        weights, data = softmax(np.log(self.weights) + log_densities), self.data.joined(rows)
        predictors: dict[MixtureComponent, Predictor] = {}
        every = zip(self.components, weights.tolist(), self.predictors, strict=True)
        with one_blas_thread():
            for one, weight, first in every:
                make = self.make_predictor
                if isinstance(first, ExactPredictor):
                    make = partial(ExactPredictor, first=first)
                if weight > MIN_WEIGHT:
                    predictors[replace(one, weight=weight)] = make(one.expression, one.theta, data)
        both = zip(self.predictors, joint, strict=True)
        below = np.array([ndtr(one.innovations(rows, moments)[0]) for one, moments in both])
        has_rows = self.weights * np.isfinite(log_densities)  # the others' scales lack a target
        errors = ndtri(has_rows @ below / has_rows.sum())
        other = self._with(data=data, law=self.law.after(errors))
        other._set(predictors)
        return other

    def is_of(self, expression: Expression, theta: FloatArray) -> bool:
        """Return whether one kernel with these parameters makes up the whole mixture."""
        first, *others = self.components
        same = first.expression == expression and np.array_equal(first.theta, theta)
        return same and not others

    def __getstate__(self) -> dict[str, Any]:
        packed = as_text(self.components, (one.expression for one in self.components))
        return {**vars(self), "_predictors": None, "components": packed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.components = read_text(tuple[MixtureComponent, ...], state["components"])

    def mean(self, X: FloatArray) -> FloatArray:
        """Compute the mean (n,) at inputs (n, n_features)."""
        means = [
            scale.inverse(one.mean(X))
            if scale.is_linear
            else scale.moments(*one.mean_and_variance(X))[0]
            for scale, one in self._on_scales(X)
        ]
        return self.weights @ np.array(means)

    def moments(
        self, X: FloatArray, marginal: _Marginal | None = None, *, noise: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the mean (n,) and the variance (n,), without ``noise`` those of the function."""
        both, marginal, factor = [], marginal or self._marginal(X), self.law.deviation**2
        for (scale, one), (mean, variance) in zip(self._on_scales(X), marginal, strict=True):
            centre, spread = scale.moments(mean, variance)
            if not noise:
                own = factor * one.noise_at(X, mean)
                spread = scale.variance_of_function(mean, factor * variance, own)
            elif factor != 1:
                spread = scale.moments(mean, factor * variance)[1]
            both.append((centre, spread))
        means, variances = (np.array(part) for part in zip(*both, strict=True))
        variances = np.maximum(variances, 0.0)
        mean = self.weights @ means
        return mean, self.weights @ (variances + factor * (means - mean) ** 2)

    def outcomes(self, rows: TrainingData) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Predict new rows with what is known of their noise.

        Returns means, variances, and probabilities (n,) of smaller targets by normal components.
        """
        marginal, probability = [], np.zeros(len(rows.y))
        every = zip(self.weights, self.components, self._on_scales(rows.X), strict=True)
        for weight, component, (scale, one) in every:
            mean, variance = one.mean_and_variance(rows.X)
            on_scale = rows.on(component.expression.target)
            if not on_scale.has_counts:
                variance = variance + one.excess_noise(on_scale, mean)
            marginal.append((mean, variance))
            probability += weight * self._probability(scale, on_scale, mean, variance)
        return *self.moments(rows.X, marginal), probability

    def _probability(
        self, scale: Scale, rows: TrainingData, mean: FloatArray, variance: FloatArray
    ) -> FloatArray:
        """Compute the probabilities (n,) of smaller targets, random ones for counts."""
        if not rows.has_counts:
            return np.asarray(ndtr((rows.y - mean) / np.sqrt(variance)))
        u, step = rows.u, 1 / rows.target.width
        low, high = (scale.below(one, mean, variance) for one in (u - step, u))
        return random_within(low, high, np.lexsort((mean.round(9), u)))

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the mean (n,) and covariance (n, n), noise included."""
        both, factor = [], self.law.deviation**2
        for scale, one in self._on_scales(X):
            of_mean, K = one.mean_and_covariance(X)
            covariance = scale.covariance(of_mean, factor * K)
            both.append((scale.moments(of_mean, np.diag(K))[0], covariance))
        means = np.array([mean for mean, _ in both])
        mean = self.weights @ means
        between = factor * (means - mean).T @ ((means - mean) * self.weights[:, None])
        within = sum(w * cov for w, (_, cov) in zip(self.weights, both, strict=True))
        return mean, within + between

    @property
    def has_counts(self) -> bool:
        """Whether some kernels are of counts, so that observations are."""
        return any(one.expression.target in COUNT_SCALES for one in self.components)

    def samples(self, X: FloatArray, n_samples: int, rng: np.random.RandomState) -> FloatArray:
        """Draw new observations (n, n_samples), each from one component."""
        n_each = rng.multinomial(n_samples, self.weights) if len(self.weights) > 1 else [n_samples]
        draws = []
        for (scale, one), number in zip(self._on_scales(X), n_each, strict=True):
            if number or not n_samples:
                drawn = one.samples(X, int(number), rng)
                if self.law != NORMAL:
                    shares, factors = zip(*self.law.normals, strict=True)
                    mean, p = one.mean(X)[:, None], np.array(shares) / sum(shares)
                    drawn = mean + rng.choice(factors, int(number), p=p) * (drawn - mean)
                if self._is_new(X).any():  # a draw has the same case at all rows
                    mean, variance = one.mean_and_variance(X)
                    weights, stds = one.cases(X, variance)
                    below = weights.cumsum(axis=0)[:-1, :, None] < rng.uniform(size=int(number))
                    std = stds[below.sum(axis=0), np.arange(len(X))[:, None]]
                    ratio = std / np.sqrt(variance)[:, None]
                    drawn = mean[:, None] + ratio * (drawn - mean[:, None])
                if self.law.wild:
                    is_wild = rng.uniform(size=drawn.shape) < self.law.wild
                    wild = one.mean(X)[:, None] + WILD * rng.normal(size=drawn.shape)
                    drawn = np.where(is_wild, wild, drawn)
                draws.append(scale.drawn(drawn, rng))
        if len(draws) == 1:
            return draws[0]
        return np.concatenate(draws, axis=1)[:, rng.permutation(n_samples)]

    def draws_of_mean(self, X: FloatArray, n_draws: int) -> FloatArray:
        """Draw the mean of the target given the function (n_draws, n), each from one component."""
        rng, draws = np.random.default_rng(0), []
        counts = np.bincount(systematic(self.weights, n_draws), minlength=len(self.weights))
        for (scale, one), count in zip(self._on_scales(X), counts, strict=True):
            mean, covariance = one.mean_and_covariance(X)
            noise = one.noise_at(X, mean)
            covariance[np.diag_indices(len(X))] -= noise
            # rounding may leave eigenvalues just below zero
            how: dict[str, Any] = {"check_valid": "ignore", "method": "eigh"}
            function = rng.multivariate_normal(mean, covariance, count, **how)
            draws.append(scale.means(mean + self.law.deviation * (function - mean), noise))
        return np.concatenate(draws)

    def quantiles(
        self, X: FloatArray, probabilities: FloatArray, marginal: _Marginal | None = None
    ) -> FloatArray:
        """Compute the quantiles (n, n_probabilities) of new observations."""
        found = np.empty((len(X), len(probabilities)))
        for rows, normals in self._normals(X, marginal):
            found[rows] = self._quantiles(normals, probabilities)
        return found

    def _quantiles(self, normals: _Normals, probabilities: FloatArray) -> FloatArray:
        weights, scales, means, stds = normals
        if self.has_counts:
            return np.column_stack([self._count_quantile(normals, one) for one in probabilities])
        scale = scales[0]
        are_on_one = all(other == scale for other in scales)  # where quantiles are found, then
        maps = [Identity(IDENTITY)] * len(scales) if are_on_one else scales
        ends = means[..., None] + stds[..., None] * ndtri(probabilities)  # of each component
        ends = np.array([own.inverse(one) for own, one in zip(maps, ends, strict=True)])
        low = ends.min(axis=0)
        if len(weights) > 1:
            width = ends.max(axis=0) - low

            def excess(
                value: FloatArray, probability: FloatArray, row: FloatArray, start: FloatArray
            ) -> FloatArray:
                index = row.astype(int)
                below = np.zeros(value.shape)
                for weight, own, mean, std in zip(weights, maps, means, stds, strict=True):
                    z = (own.end(value + start) - mean[index]) / std[index]
                    below += weight[index] * ndtr(z)
                return below - probability

            rows = np.arange(means.shape[1], dtype=float)[:, None]
            args = tuple(np.broadcast_arrays(probabilities, rows, low))
            margin = 1e-9 * np.maximum(width, 1e-9)  # rounding must not hide the change of sign
            found = elementwise.find_root(excess, (-margin, width + margin), args=args)
            low = low + np.where(found.success, found.x, width / 2)  # equal ends, but for rounding
        return scale.inverse(low) if are_on_one else low

    def below(self, X: FloatArray, counts: FloatArray) -> FloatArray:
        """Compute the probabilities (n,) of new observations up to counts (n,)."""
        found = np.empty(len(X))
        for rows, normals in self._normals(X, None):
            found[rows] = self._count_below(normals, counts[rows])
        return found

    def _count_below(self, normals: _Normals, k: FloatArray) -> FloatArray:
        found = np.zeros(len(k))
        for weight, scale, mean, std in zip(*normals, strict=True):
            rounded = k if isinstance(scale, CountScale) else k + 0.5
            found += weight * scale.below(self.data.target.forward(rounded), mean, std**2)
        return np.minimum(found, 1.0)  # but for rounding

    def _count_quantile(self, normals: _Normals, probability: float) -> FloatArray:
        """Find the smallest counts (n,) up to which targets are with at least a probability."""
        weights, scales, means, stds = normals
        heaviest, z = int(np.argmax(weights.sum(axis=1))), ndtri(probability)
        centre, variance = scales[heaviest].moments(means[heaviest], stds[heaviest] ** 2)
        k = np.clip(self.data.target.inverse(centre + z * np.sqrt(variance)), 0, MAX_COUNT - 1)
        low, high = np.full(k.shape, -1.0), np.full(k.shape, MAX_COUNT)
        below, above, was_low = np.full(k.shape, -EDGE), np.full(k.shape, EDGE), np.zeros(k.shape)
        while (high - low > 1 + ROUGHNESS * high).any():
            k = np.clip(np.rint(k), low + 1, high - 1)
            error = np.clip(ndtri(self._count_below(normals, k)), -EDGE, EDGE) - z
            is_low = error < 0
            # an end that stays twice counts half (Illinois), so that both come near
            factor = np.where(is_low == was_low, 0.5, 1.0)
            low, below = np.where(is_low, [k, error], [low, factor * below])
            high, above = np.where(is_low, [high, factor * above], [k, error])
            was_low, ends = is_low, np.log([low + 2, high + 2])
            k = np.exp(ends[0] + below / (below - above) * (ends[1] - ends[0])) - 2
        return self.data.target.forward(high)

    def log_density(
        self, X: FloatArray, y: FloatArray, marginal: _Marginal | None = None
    ) -> FloatArray:
        """Compute the log density (n,) of targets (n,), in nats.

        Where targets are rounded, it is the mean density of the interval that is rounded to each.
        """
        found, step = np.empty(len(y)), self.data.known_noise.resolution
        for rows, (weights, scales, means, stds) in self._normals(X, marginal, rounded=not step):
            densities = np.empty(means.shape)
            for number, scale in enumerate(scales):
                moments = means[number], stds[number] ** 2
                densities[number] = scale.log_density(y[rows], *moments, step=step)
            with np.errstate(divide="ignore"):  # of a case that other rows have
                found[rows] = logsumexp(densities + np.log(weights), axis=0)
        return found

    @one_blas_thread()
    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Predict each row of the data from all others, with the parameters of all rows.

        Returns the probabilities (n,) of a smaller target, without heavy tails, which they are to
        show, and the errors (n,) of the means. O(n_components n_samples^3).
        """
        data = self.data
        probability, error = np.zeros(len(data.y)), np.zeros(len(data.y))
        every = zip(self.weights, self.components, self._on_scales(data.X), strict=True)
        for weight, component, (scale, one) in every:
            likelihood = ExactLikelihood(component.expression, data)
            residual, variance = likelihood.leave_one_out_errors(component.theta, jitter=one.jitter)
            mean, rows = likelihood.data.y - residual, likelihood.data
            if rows.has_counts:
                variance = np.maximum(variance - rows.noise.known, 0.0)
            probability += weight * self._probability(scale, rows, mean, variance)
            error += weight * (data.u - scale.moments(mean, variance)[0])
        return probability, error

    def _on_scales(self, X: FloatArray) -> list[tuple[Scale, Predictor]]:
        """Return the predictors, each with its scale of the target at inputs (n, n_features)."""
        data = self.data
        exposures = data.target.exposures(data.inputs.columns.scaled(X))
        own = (
            (data.target.scales[one.expression.target], one.theta[-1]) for one in self.components
        )
        scales = (scale.of_rows(exposures, log_noise) for scale, log_noise in own)
        return list(zip(scales, self.predictors, strict=True))

    def _marginal(self, X: FloatArray) -> _Marginal:
        return [one.mean_and_variance(X) for one in self.predictors]

    def _normals(
        self, X: FloatArray, marginal: _Marginal | None, *, rounded: bool = True
    ) -> Iterator[tuple[IntArray, _Normals]]:
        """Yield rows with the normal distributions of which the mixture consists for them.

        Each component has some by the law of errors, and as many for each case of unknown noise.
        """
        is_new, marginal = self._is_new(X), marginal or self._marginal(X)
        for rows in filter(len, (np.flatnonzero(~is_new), np.flatnonzero(is_new))):
            found, ones = [], np.ones(len(rows))
            every = zip(self.weights, self._on_scales(X[rows]), marginal, strict=True)
            for weight, (scale, one), (of_all, variance) in every:
                mean = of_all[rows]
                own = variance[rows] - (0.0 if rounded else one.rounding_at(mean))
                cases = ones[None], np.sqrt(own)[None]
                cases = one.cases(X[rows], own) if is_new[rows[0]] else cases
                for of_case, std in zip(*cases, strict=True):
                    for share, factor in self.law.normals:
                        found.append((share * weight * of_case, scale, mean, factor * std))
                if self.law.wild:
                    found.append((self.law.wild * weight * ones, scale, mean, WILD * ones))
            weights, scales, means, stds = zip(*found, strict=True)
            yield rows, (np.array(weights), scales, np.array(means), np.array(stds))

    def _is_new(self, X: FloatArray) -> BoolArray:
        """Return the rows (n,) whose noise is not known on some scale of the target."""
        inputs = self.data.inputs.columns.scaled(X)
        every = (one.is_new(inputs) for one in self.data.varying.values())
        return sum(every, start=np.zeros(len(X), dtype=bool))
