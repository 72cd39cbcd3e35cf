"""The mixture for rows beyond the time of a fit, which the last block of each series confirms."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from warnings import catch_warnings

import numpy as np

from autokernel.deadline import Deadline
from autokernel.evidence import Evaluation, Evaluator
from autokernel.expression import Expression
from autokernel.fit.run import Run
from autokernel.fit.space import Space
from autokernel.inference import ExactLikelihood, TrainingData
from autokernel.kernels import ADD, LINEAR
from autokernel.many_rows import latest_rows, rows_of_groups
from autokernel.model import (
    SERIES_LAW,
    MixturePredictor,
    folds_of,
    posterior_over_kernels,
)
from autokernel.search import STRATEGIES
from autokernel.search.design import kernels_of_series

MAX_ROWS = 400  # of whole groups, or the latest of a series, to which kernels are fitted
MAX_BEHIND = 10.0  # nats below the best kernel, beyond which one has no share
HOPELESS = 40.0  # nats below, beyond which no other kernel on the same scale is tried
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
    kept = [np.flatnonzero(out == 0) for out in folds_of(data, series)]
    if not kept:
        return None
    before, whole = (
        Evaluator(one, priors=arguments.priors, seed=run.seed, criterion=arguments.criterion)
        for one in (data.take(kept[0]), data)
    )
    fits: list[tuple[Evaluation, float]] = []
    for kernel in (best.expression, *_kernels(run, best.expression, data, deadline)):
        of_scale = [one for one in fits if one[0].expression.target == kernel.target]
        if of_scale and _best(of_scale) < _best(fits) - HOPELESS:
            continue
        fit = before.run(before.prepare(kernel, [best]), deadline=deadline)
        of_block = ExactLikelihood(fit.expression, data).value(fit.theta) - fit.log_likelihood
        if np.isfinite(fit.score + of_block):
            fits.append((fit, of_block))
    scored = []
    for fit, of_block in fits:
        if fit.score + 2 * of_block > _best(fits) - MAX_BEHIND:
            again = whole.run(whole.prepare(fit.expression, [fit]), deadline=deadline)
            scored.append(replace(again, score=again.score + of_block))
    if not scored:
        return None
    kernels = posterior_over_kernels(
        whole,
        sorted(scored, key=lambda one: -one.score),
        equal_share=EQUAL_SHARE,
        equal_within=MAX_BEHIND,
        deadline=deadline,
    )
    components = arguments.averaging.components(kernels)
    return MixturePredictor(components, mixture.data, mixture.make_predictor, law=SERIES_LAW)


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
    for one in kernels_of_series(grammar.on_columns(frozenset(series.columns)), *series):
        yield reduce(add, [*one.terms(ADD), *effects]).on(one.target)
