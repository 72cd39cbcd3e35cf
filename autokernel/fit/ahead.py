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
from autokernel.many_rows import rows_of_groups
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

MAX_ROWS = 300  # of whole groups, to which kernels are fitted
MAX_BEHIND = 15.0  # nats below the best kernel, beyond which one has no share
HOPELESS = 20.0  # nats below, beyond which no other kernel on the same scale is tried
MIN_WEIGHT = 0.01  # of a component
EQUAL_SHARE = 0.5  # for kinds of walks and scales; the rest is by evidence and the last block


def mixture_ahead(
    run: Run, best: Evaluation, mixture: MixturePredictor, deadline: Deadline
) -> MixturePredictor | None:
    """Return the mixture for rows that are later than all of their group, None without groups.

    The kernels of ``strategy="series"``, with the effects of other columns that the search has
    found, compete with the best kernel. The log density of the last block of each series, given the
    rows before, is added to their evidence, which holds it once already: a kernel that explains
    what lies between rows need not say how they go on.
    """
    arguments, stage, series = run.arguments, run.stage, run.given.series
    is_judged = series.groups and best.expression.leaves and arguments.averaging
    if arguments.strategy.is_of_series or not is_judged:
        return None
    data = stage.data
    if len(data.y) > MAX_ROWS:
        data = data.take(rows_of_groups(data.inputs, series.groups, MAX_ROWS, seed=run.seed))
    kept = [np.flatnonzero(out == 0) for out in folds_of(data, series)]
    if not kept:
        return None
    before, whole = (
        Evaluator(one, priors=arguments.priors, seed=run.seed)
        for one in (data.take(kept[0]), data)
    )
    fits: list[tuple[Evaluation, float]] = []
    for kernel in (best.expression, *_kernels(run, best.expression, data, deadline)):
        of_scale = [one for one in fits if one[0].expression.target == kernel.target]
        if of_scale and _best(of_scale) < _best(fits) - HOPELESS:
            continue
        fit = before.run(before.prepare(kernel, [best]), deadline=deadline)
        of_block = ExactLikelihood(fit.expression, data).value(fit.theta) - fit.log_likelihood
        if np.isfinite(fit.log_evidence + of_block):
            fits.append((fit, of_block))
    scored = []
    for fit, of_block in fits:
        if fit.log_evidence + 2 * of_block > _best(fits) - MAX_BEHIND:
            again = whole.run(whole.prepare(fit.expression, [fit]), deadline=deadline)
            scored.append(certain(replace(again, score=again.log_evidence + of_block)))
    if not scored:
        return None
    weights = probabilities_of(scored, EQUAL_SHARE, MAX_BEHIND)
    points = [(one.evaluation.expression, one.evaluation.theta) for one in scored]
    every = zip(points, weights.tolist(), strict=True)
    components = [MixtureComponent(*point, w) for point, w in every if w > MIN_WEIGHT]
    return MixturePredictor(components, mixture.data, mixture.make_predictor, law=SERIES_LAW)


def _best(fits: Sequence[tuple[Evaluation, float]]) -> float:
    """Return the highest expected evidence of all rows plus log density of the last block."""
    return max(fit.log_evidence + 2 * of_block for fit, of_block in fits)


def _kernels(
    run: Run, best: Expression, data: TrainingData, deadline: Deadline
) -> Iterator[Expression]:
    """Yield kernels of series with the effects of the best kernel, lines where time changes them."""
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
