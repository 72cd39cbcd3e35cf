"""The mixture for rows beyond the time of a fit, which the last block of each series confirms."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from warnings import catch_warnings

import numpy as np
from scipy.special import ndtri

from autokernel.deadline import Deadline
from autokernel.evidence import Evaluation, Evaluator
from autokernel.expression import Expression
from autokernel.fit.run import Run
from autokernel.fit.space import Space
from autokernel.inference import ExactLikelihood, ExactPredictor, TrainingData
from autokernel.kernels import ADD, LINEAR
from autokernel.many_rows import rows_of_groups
from autokernel.model import (
    ErrorLaw,
    KernelPosterior,
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
    what lies between rows need not say how they go on. The block also shows the law of errors.
    """
    arguments, data, series = run.arguments, run.stage.data, run.given.series
    is_judged = series.groups and best.expression.leaves and arguments.averaging
    if arguments.strategy.is_of_series or not is_judged:
        return None
    if len(data.y) > MAX_ROWS:
        data = data.take(rows_of_groups(data.inputs, series.groups, MAX_ROWS, seed=run.seed))
    if not (folds := folds_of(data, series)):
        return None
    block, before = np.flatnonzero(folds[0]), data.take(np.flatnonzero(folds[0] == 0))
    kernels = _kernels(run, best.expression, data, deadline)
    if not (fits := _fits([best.expression, *kernels], best, before, data, run, deadline)):
        return None
    whole, scored = Evaluator(data, priors=arguments.priors, seed=run.seed), list[KernelPosterior]()
    for fit, of_block in fits:
        again = whole.run(whole.prepare(fit.expression, [fit]), deadline=deadline)
        scored.append(certain(replace(again, score=again.log_evidence + of_block)))
    weights = probabilities_of(scored, EQUAL_SHARE, MAX_BEHIND).tolist()

    def mixed(every: Sequence[Evaluation]) -> list[MixtureComponent]:
        pairs = [(one, w) for one, w in zip(every, weights, strict=True) if w > MIN_WEIGHT]
        return [MixtureComponent(one.expression, one.theta, w) for one, w in pairs]

    of_before = MixturePredictor(mixed([fit for fit, _ in fits]), before, ExactPredictor)
    errors = ndtri(of_before.outcomes(data.take(block))[2])
    names = np.unique(data.inputs.filled[block][:, series.groups], axis=0)
    law = ErrorLaw.learned(errors, np.full(len(block), len(names) / len(block)))
    components = mixed([one.evaluation for one in scored])
    return MixturePredictor(components, mixture.data, mixture.make_predictor, law=law)


def _fits(
    kernels: Iterable[Expression],
    best: Evaluation,
    before: TrainingData,
    data: TrainingData,
    run: Run,
    deadline: Deadline,
) -> list[tuple[Evaluation, float]]:
    """Fit kernels to the rows before the block, and return those that may have a share.

    Each comes with the log density of the block, which is expected to be in the evidence of all
    rows once, and is added once more.
    """
    evaluator = Evaluator(before, priors=run.arguments.priors, seed=run.seed)
    fits: list[tuple[float, Evaluation, float]] = []
    highest: dict[str, float] = {}  # on each scale
    for kernel in kernels:
        if highest.get(kernel.target, np.inf) < max(highest.values(), default=0.0) - HOPELESS:
            continue
        fit = evaluator.run(evaluator.prepare(kernel, [best]), deadline=deadline)
        of_block = ExactLikelihood(fit.expression, data).value(fit.theta) - fit.log_likelihood
        if np.isfinite(total := fit.log_evidence + 2 * of_block):
            fits.append((total, fit, of_block))
            highest[kernel.target] = max(total, highest.get(kernel.target, -np.inf))
    least = max(highest.values(), default=0.0) - MAX_BEHIND
    return [(fit, of_block) for total, fit, of_block in fits if total > least]


def _kernels(
    run: Run, best: Expression, data: TrainingData, deadline: Deadline
) -> Iterator[Expression]:
    """Yield kernels of series with the effects of the best one, lines where time changes them."""
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
