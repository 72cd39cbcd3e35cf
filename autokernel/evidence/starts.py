"""Starting points of runs: drawn by magnitudes of the data, or taken from fits of other kernels."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from autokernel.data.periodogram import (
    distinct_values,
    periodogram_periods,
    precision_beside_walk,
    proportional_to,
)
from autokernel.evidence.evaluation import Evaluation, WarmStart, WarmStarts
from autokernel.evidence.importance import sobol_points
from autokernel.evidence.maximise import Point
from autokernel.evidence.posterior import LogPosterior
from autokernel.expression import Expression, Leaf, View, align, slots_of, theta_order
from autokernel.inference import TrainingData
from autokernel.kernels import ADD, KernelParameter, Role, Unit, role_index
from autokernel.typing import FloatArray

NOISE_LEFT = 0.25  # fraction of the noise variance that is still noise where a new term explains it


class Magnitudes:
    """The lengthscales and periods of the data, estimated before any fit.

    With a ``covariance`` (n_samples, n_samples) of the target, and the variance ``noise`` in it,
    they are those of what it takes for noise, and the periods those that would explain most.
    """

    def __init__(
        self, data: TrainingData, covariance: FloatArray | None = None, noise: float = 1.0
    ) -> None:
        unexplained, precision = data.y, None
        if covariance is not None:
            precision = np.linalg.inv(covariance).astype(float)
            unexplained = (data.noise.variance(noise)[:, None] * precision) @ data.y
        self.spacing_and_extent = cache(partial(_spacing_and_extent, data))
        self.periods = cache(partial(_periods, data, precision))
        self.mean_square = float(np.average(unexplained**2, weights=data.noise.influence)) or 1.0
        self.largest_mean_square = max(self.mean_square, data.mean_square)
        self.n_samples = len(data.y)


def _spacing_and_extent(data: TrainingData, view: View) -> tuple[float, float]:
    """Return the median spacing and the extent of the distinct values of a view of a column."""
    if len(distinct := distinct_values(data.inputs.known(view))) < 2:
        return 0.1, 1.0
    return float(np.median(np.diff(distinct))), float(distinct[-1] - distinct[0])


def _periods(
    data: TrainingData, precision: FloatArray | None, view: View, within: tuple[float, float] | None
) -> FloatArray:
    """Return the periods (n_peaks,) of the target along a column, the strongest first."""
    x = data.inputs.view(view)
    known = np.flatnonzero(~np.isnan(x))
    x, y, weights = (one[known] for one in (x, data.y, data.noise.influence))
    if precision is None:
        precision = precision_beside_walk(x, y, weights)
    elif len(known) < len(precision):
        precision = precision[np.ix_(known, known)]
    amplitudes = [None, *proportional_to(np.delete(data.inputs.filled[known], view.column, axis=1))]
    return periodogram_periods(
        x, y, within, weights=weights, precision=precision, amplitudes=amplitudes
    )


def draw_starts(
    posterior: LogPosterior, magnitudes: Magnitudes, n_starts: int, *, rng: np.random.Generator
) -> FloatArray:
    """Draw starting points of shape (n_starts, n_params), within the bounds of theta.

    One half is drawn from the priors, by their inverse CDFs of a scrambled Sobol sequence. The
    other half is log-uniform over the ranges that the parameters declare: lengthscales from the
    median spacing of a column to its extent, and the noise over several decades. In both halves
    three of four periods are peaks of the periodogram of their column, if it has any, within the
    range that the period declares.
    """
    nodes, parameters = posterior.expression.nodes, posterior.likelihood.parameters
    views = [*(node.view for node in nodes for _ in node.parameters), None]  # of the noise
    quantiles = posterior.prior.quantile(np.tile([[0.05], [0.95]], len(parameters)))
    ranges = [
        _range(parameter, view, tails, magnitudes)
        for parameter, view, tails in zip(parameters, views, np.exp(quantiles.T), strict=True)
    ]
    low, high = np.clip(np.log(ranges).T, posterior.lower, posterior.upper)
    n_prior = (n_starts + 1) // 2
    # Each half has its own sequence: every other point of one lies in the same half of an axis.
    of_prior = sobol_points(n_prior, len(parameters), rng)
    of_range = sobol_points(n_starts - n_prior, len(parameters), rng)
    of_prior = posterior.prior.quantile(of_prior, posterior.upper)
    theta = np.concatenate([of_prior, low + of_range * (high - low)])
    for entry, (parameter, view) in enumerate(zip(parameters, views, strict=True)):
        if parameter.role == Role.PERIOD and view is not None:
            periods = magnitudes.periods(view, parameter.start)
            weights = 1.0 / np.arange(1, len(periods) + 1)  # high peaks more often
            if len(periods):
                drawn = rng.choice(np.log(periods), size=n_starts, p=weights / weights.sum())
                replaced = rng.uniform(size=n_starts) < 0.75
                theta[replaced, entry] = drawn[replaced]
    return np.clip(theta, posterior.lower, posterior.upper)


def _range(
    parameter: KernelParameter, view: View | None, tails: FloatArray, magnitudes: Magnitudes
) -> tuple[float, float]:
    """Return the range of a parameter's log-uniform draws, given the tails of its prior."""
    low, high = parameter.start or (0.0, 0.0)
    if parameter.unit == Unit.INPUT and view is not None:
        spacing, extent = magnitudes.spacing_and_extent(view)
        return (low * extent, high * extent) if parameter.start else (spacing, extent)
    if parameter.unit == Unit.SQUARED_TARGET:
        low, high = parameter.start or (0.01, 3.0)
        return (low * magnitudes.mean_square, high * magnitudes.largest_mean_square)
    return parameter.start or (float(tails[0]), float(tails[1]))


def highest(posterior: LogPosterior, starts: Sequence[Point], n: int) -> Sequence[Point]:
    """Return the ``n`` points of the highest log posterior with their values, the highest first."""
    found = [replace(start, log_posterior=posterior.value(start.theta)) for start in starts]
    return sorted(found, key=lambda point: -point.log_posterior)[:n]


def random_stream(seed: int, expression: Expression, purpose: str) -> np.random.Generator:
    """Return a generator for one kernel and purpose, the same in every process."""
    digest = hashlib.sha256(f"{purpose}: {expression.canonical}".encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8])])


def warm_starts_from_similar(
    expression: Expression, known: Iterable[Evaluation]
) -> list[list[WarmStart]]:
    """Find the three known fits that share most nodes with a kernel, the most similar first.

    Nodes that a fit lacks are also taken from fits of single leaves, where all of them are known.
    A fit that has less than a quarter of the kernel's nodes gives no warm start.
    """
    fitted = [other for other in known if np.isfinite(other.score)]
    alone = {one.expression: one for one in fitted if one.expression.n_leaves == 1}
    ours = Counter(expression.leaves)

    def dissimilarity(other: Evaluation) -> tuple[int, int, float, str]:
        shared = (ours & Counter(other.expression.leaves)).total()
        return -shared, other.expression.n_leaves, -other.score, other.expression.canonical

    near = sorted(fitted, key=dissimilarity)[:12]
    aligned = ((align(expression, other.expression), other) for other in near)
    similar = [one for one in aligned if one[0] and 4 * len(one[0]) >= len(expression.nodes)]
    similar.sort(key=lambda one: (-len(one[0]), -one[1].score))
    starts = []
    for pairs, other in similar[:3]:
        start = WarmStart.taken(other, pairs)
        starts.append([start])
        absent = [one for one in enumerate(expression.nodes) if one[0] not in start.nodes]
        if absent and all(node in alone for _, node in absent):
            of_leaves = (WarmStart.taken(alone[node], [(place, 0)]) for place, node in absent)
            starts.append([start, *of_leaves])
    return starts


def curvature_from(
    expression: Expression, fits: Iterable[WarmStart], units: FloatArray
) -> FloatArray | None:
    """Join the Hessians of fits to that (n_params, n_params) of a kernel, None if none is known.

    The parameters that no fit has are taken as independent, with the standard deviations
    ``units`` (n_params,).
    """
    curvature, is_known = np.diag(units**-2), False
    for fit in fits:
        if fit.hessian is None or not np.all(np.isfinite(fit.hessian)):
            continue
        entries, is_known = theta_order(expression, fit.nodes), True
        curvature[entries] = curvature[:, entries] = 0.0
        curvature[np.ix_(entries, entries)] = fit.hessian
    return curvature if is_known else None


def with_curvature(posterior: LogPosterior, point: Point, fits: Iterable[WarmStart]) -> Point:
    """Return a point with the curvature that is known from warm starts."""
    units = posterior.step_units(point.theta)
    return replace(point, curvature=curvature_from(posterior.expression, fits, units))


def warm_points(
    posterior: LogPosterior, thetas: FloatArray, fits: Sequence[WarmStart]
) -> list[Point]:
    """Return starts at points (n_points, n_params) with parameters replaced by those of fits.

    If several fits have a node, the last one counts. The noise variance is the lowest one of the
    fits, and is reduced further in every other point. The curvature is that of the fits.
    """
    thetas = thetas.copy()
    for fit in fits:
        thetas[:, theta_order(posterior.expression, fit.nodes)] = fit.theta
    thetas[:, -1] = min(fit.theta[-1] for fit in fits)
    thetas[1::2, -1] -= np.log(4.0)  # as new terms explain some of the noise
    within = np.clip(thetas, posterior.lower, posterior.upper)
    return [with_curvature(posterior, Point(theta), fits) for theta in within]


def starting_points(
    posterior: LogPosterior,
    magnitudes: Magnitudes,
    warm_starts: WarmStarts,
    *,
    rng: np.random.Generator,
) -> list[Point]:
    """List drawn points, then warm starts: what these lack is drawn, twice, or explains noise."""
    expression = posterior.expression
    n_nodes, has_few = len(expression.nodes), expression.has_few_modes
    n_own = 4 if warm_starts else 8 if has_few else 12
    sizes = [1 if sum(len(fit.nodes) for fit in fits) >= n_nodes else 2 for fits in warm_starts]
    draws = draw_starts(posterior, magnitudes, n_own + sum(sizes), rng=rng)
    if has_few:  # no other than those of periods that are known
        draws[:, posterior.is_period] = posterior.centre[posterior.is_period]
    own, *others = np.split(rng.permutation(draws), n_own + np.cumsum([0, *sizes])[:-1])
    starts = [Point(theta) for theta in own]
    for thetas, fits in zip(others, warm_starts, strict=True):
        starts += warm_points(posterior, thetas, fits)
    for fits in warm_starts:
        if new := set(range(n_nodes)).difference(*(fit.nodes for fit in fits)):
            [point] = warm_points(posterior, posterior.centre[None], fits)
            starts.append(taken_from_noise(posterior, point, new, magnitudes=magnitudes))
    return starts


def even_starts(posterior: LogPosterior, magnitudes: Magnitudes) -> Iterator[Point]:
    """Yield starts at which all columns are as rough, from rough to smooth.

    Several leaves on one column have different lengthscales. Of functions that vary fast in
    several columns, random starts rarely show anything but noise.
    """
    expression = posterior.expression
    if expression.has_many_modes or expression.has_few_modes:
        return
    lengthscales = (0.015, 0.08, 0.4)  # in extents of the column
    share_of_noise = 0.2 if len(expression.columns) > 1 else 0.005
    for first in range(len(lengthscales)):
        theta, n_before = posterior.centre.copy(), Counter[View | None]()
        theta[-1] = np.log(share_of_noise * magnitudes.mean_square)
        for node, entries in slots_of(expression):
            entry = role_index(node.parameters, Role.LENGTHSCALE)
            if entry is not None and node.view is not None:
                level = (first + n_before[node.view]) % len(lengthscales)
                extent = magnitudes.spacing_and_extent(node.view)[1]
                theta[entries.start + entry] = np.log(lengthscales[level] * extent)
                n_before[node.view] += 1
        yield Point(np.clip(theta, posterior.lower, posterior.upper))


def terms_as_noise(
    posterior: LogPosterior, mode: Point, *, magnitudes: Magnitudes
) -> Iterator[Point]:
    """Yield variants of a mode in which one leaf of the sum explains some of the noise.

    These are the leaves that have a lengthscale.
    """
    terms, node = posterior.expression.terms(ADD), 0
    for term in terms if len(terms) > 1 else ():
        if isinstance(term, Leaf) and any(p.role == Role.LENGTHSCALE for p in term.parameters):
            yield taken_from_noise(posterior, mode, [node], magnitudes=magnitudes)
        node += len(term.nodes)


def taken_from_noise(
    posterior: LogPosterior, point: Point, nodes: Iterable[int], *, magnitudes: Magnitudes
) -> Point:
    """Return the start, of the same curvature, at which some nodes explain what was noise.

    Their lengthscale becomes a tenth of the spacing of the data, and their variance three quarters
    of that of the noise. What they add to the covariance is nearly diagonal, except between rows
    that have the same value in a column.
    """
    slots, theta = slots_of(posterior.expression), point.theta.copy()
    for node, entries in (slots[number] for number in nodes):
        for entry, parameter in enumerate(node.parameters, start=entries.start):
            if parameter.role == Role.VARIANCE:
                theta[entry] = theta[-1] + np.log1p(-NOISE_LEFT)
            elif parameter.role == Role.LENGTHSCALE and node.view is not None:
                spacing, _ = magnitudes.spacing_and_extent(node.view)
                theta[entry] = np.log(0.1 * spacing)
    theta[-1] += np.log(NOISE_LEFT)
    return Point(np.clip(theta, posterior.lower, posterior.upper), curvature=point.curvature)
