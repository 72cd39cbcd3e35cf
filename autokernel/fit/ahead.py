"""The mixture for rows beyond the time of a fit, which the last block of each series confirms."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from warnings import catch_warnings

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from autokernel.data import Series
from autokernel.deadline import Deadline
from autokernel.evidence import Evaluation, Evaluator
from autokernel.expression import Expression
from autokernel.fit.run import Run
from autokernel.fit.space import Space
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.inference.base import log_normal
from autokernel.inference.packed import unpack
from autokernel.kernels import ADD, LINEAR
from autokernel.many_rows import latest_rows, rows_of_groups
from autokernel.model import (
    SERIES_LAW,
    MixtureComponent,
    MixturePredictor,
    certain,
    folds_of,
    probabilities_of,
)
from autokernel.search import STRATEGIES
from autokernel.search.design import kernels_of_series
from autokernel.typing import BoolArray

MAX_ROWS = 300  # of whole groups, or the latest of a series, to which kernels are fitted
MAX_BEHIND = 10.0  # nats below the best kernel, beyond which one has no share
HOPELESS = 20.0  # nats below, beyond which no other kernel on the same scale is tried
MIN_WEIGHT = 0.01  # of a component
EQUAL_SHARE = 0.5  # for kinds of walks and scales; the rest is by evidence and the last block


def mixture_ahead(
    run: Run, best: Evaluation, mixture: MixturePredictor, deadline: Deadline
) -> MixturePredictor | None:
    """Return the mixture for rows that are later than all of their group, None if none are series.

    The kernels of ``strategy="series"``, with the effects of other columns that the search has
    found, compete with the best kernel. The log densities of the last block of each series, given
    the rows before, are added to their scores, which hold them once already: a kernel that explains
    what lies between rows need not say how they go on.
    """
    arguments, stage, series = run.arguments, run.stage, run.given.series
    is_judged = series.time is not None and best.expression.leaves and arguments.averaging
    if arguments.strategy.is_of_series or not is_judged:
        return None
    data = _some_rows(run)
    folds = folds_of(data, series)
    if not folds:
        return None
    out = folds[0] > 0
    before, whole = (
        Evaluator(one, priors=arguments.priors, seed=run.seed, criterion=arguments.criterion)
        for one in (data.take(np.flatnonzero(~out)), data)
    )
    fits: list[tuple[Evaluation, float]] = []
    for kernel in (best.expression, *_kernels(run, best.expression, data, deadline)):
        of_scale = [one for one in fits if one[0].expression.target == kernel.target]
        if of_scale and _best(of_scale) < _best(fits) - HOPELESS:
            continue
        fit = before.run(before.prepare(kernel, [best]), deadline=deadline)
        of_block = _log_density_ahead(fit, data, out, series)
        if np.isfinite(fit.score + of_block):
            fits.append((fit, of_block))
    scored = []
    for fit, of_block in fits:
        if fit.score + 2 * of_block > _best(fits) - MAX_BEHIND:
            again = whole.run(whole.prepare(fit.expression, [fit]), deadline=deadline)
            scored.append(certain(replace(again, score=again.score + of_block)))
    if not scored:
        return None
    weights = probabilities_of(scored, EQUAL_SHARE, MAX_BEHIND)
    points = [(one.evaluation.expression, one.evaluation.theta) for one in scored]
    every = zip(points, weights.tolist(), strict=True)
    components = [MixtureComponent(*point, w) for point, w in every if w > MIN_WEIGHT]
    return MixturePredictor(components, mixture.data, mixture.make_predictor, law=SERIES_LAW)


def _log_density_ahead(
    fit: Evaluation, data: TrainingData, is_block: BoolArray, series: Series
) -> float:
    """Compute the log density of the rows of a block, given all rows that are earlier.

    Without groups, it is the mean of what rows some steps before say, up to the steps of the block:
    one step of a single series says little of many. The factor of all rows, in the order of time,
    holds what each row depends on.
    """
    x = data.inputs.filled[:, series.time]
    order = np.argsort(x, kind="stable")
    times, place = np.unique(x[order], return_inverse=True)
    likelihood = ExactLikelihood(fit.expression, data.take(order))
    rows, y = np.flatnonzero(is_block[order]), likelihood.data.y
    try:
        L = cholesky(unpack(likelihood.matrix(fit.theta), len(y)), lower=True)
    except LinAlgError:
        return -np.inf
    parts = L[rows] * solve_triangular(L, y, lower=True)
    means = np.cumsum(np.pad(parts, ((0, 0), (1, 0))), axis=1)  # given some first rows
    variances = np.cumsum(L[rows, ::-1] ** 2, axis=1)[:, ::-1]
    begins = np.searchsorted(place, np.arange(len(times)))
    n_steps = 1 if series.groups else len(np.unique(place[rows]))
    first = begins[np.maximum(place[rows] - np.arange(n_steps)[:, None], 0)]
    at = np.arange(len(rows)), first
    of_rows = log_normal(y[rows] - means[at], variances[at])
    return float((of_rows + likelihood.noise.corrections(fit.theta[-1])[rows]).sum() / n_steps)


def _best(fits: Sequence[tuple[Evaluation, float]]) -> float:
    """Return the highest expected score on all rows, to which the log density of blocks is added."""
    return max(fit.score + 2 * of_block for fit, of_block in fits)


def _some_rows(run: Run) -> TrainingData:
    data, (time, groups) = run.stage.data, run.given.series
    if len(data.y) <= MAX_ROWS:
        return data
    if groups:
        return data.take(rows_of_groups(data.inputs, groups, MAX_ROWS, seed=run.seed))
    return data.take(latest_rows(data.inputs, time, MAX_ROWS))


def _kernels(
    run: Run, best: Expression, data: TrainingData, deadline: Deadline
) -> Iterator[Expression]:
    """Yield kernels of series with the effects of a kernel, straight lines where time changes them."""
    series, given = run.given.series, run.given.without(run.stage.outliers)
    settings = replace(run.arguments, strategy=STRATEGIES["series"](), start_kernel=())
    with catch_warnings(action="ignore"):  # the space of the search repeats them
        grammar = Space(given, data, settings, deadline=deadline).grammar
    effects = [
        term
        for term in best.terms(ADD)
        if series.time not in term.columns and not term.columns <= {*series.groups}
    ]
    known = {*series.columns}.union(*(term.columns for term in effects))
    effects += [grammar.like(LINEAR, column)[0] for column in sorted(best.columns - known)]
    sums = kernels_of_series(grammar.on_columns(frozenset(series.columns)), *series)
    has_season = any(leaf.has_period and leaf.column == series.time for leaf in best.leaves)
    similar = [one for one in sums if any(leaf.has_period for leaf in one.leaves) == has_season]
    for one in similar or sums:
        yield reduce(add, [*one.terms(ADD), *effects]).on(one.target)
