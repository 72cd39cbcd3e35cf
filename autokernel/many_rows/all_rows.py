"""The fit of the best kernels of a search to all rows, and the choice of their predictor."""

import time
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import reduce
from operator import mul

import numpy as np
from scipy.linalg import block_diag
from scipy.spatial import KDTree
from sklearn.exceptions import ConvergenceWarning

from autokernel.deadline import Deadline
from autokernel.evidence import Evaluation, Evaluator, name_parameters
from autokernel.exceptions import EvaluationError, OutOfTimeError, kernel_errors, warn_user
from autokernel.expression import IDENTITY, Grammar, Leaf, View, normal_form
from autokernel.inference import (
    ExactPredictor,
    MakePredictor,
    TrainingData,
    has_memory_for_exact,
    log_normal,
    one_blas_thread,
)
from autokernel.kernels import ADD, MULTIPLY, BaseKernel, Role
from autokernel.many_rows.approximation import MAX_EXACT_PREDICTION_ROWS, n_held_out
from autokernel.many_rows.climb import ManyRows, RowsFit
from autokernel.typing import FloatArray

N_BEST = 4  # best kernels of the search that race on all rows
N_FLEXIBLE = 6  # best kernels that use all columns, for what few rows do not show
N_COMPARED = 3  # best fits of the race that are compared on held-out rows
N_ROUNDS = 2  # thorough fits of the best kernel, each with its own neighbours or points

MIN_HELD_OUT_ROWS = 20  # with fewer, nothing is chosen by them
WORTHWHILE_GAIN = 0.02  # nats per row for which a more expensive predictor is taken
ALLOWED_LOSS = 0.005  # nats per row by which the predictor of the rival may be worse
N_TIMED_ROWS = 1000  # whose exact conditioning is timed, to know how long that of all takes

ROUGH_SHARE_OF_NOISE = 0.5  # of the variance, which a rough term explains at first
N_PROBES = 200  # rows whose nearest neighbours are looked for
MAX_ROWS_OF_DISTANCES = 2**17  # among which these are looked for


def fit_all_rows(
    best_first: Sequence[Evaluation], rows: ManyRows, *, n_searched: int, grammar: Grammar | None
) -> tuple[Evaluation, FloatArray, MakePredictor]:
    """Fit the best kernels of a search to all rows, and choose how the best one predicts.

    With a criterion for approximations, the best kernels race by their score on all rows;
    otherwise the best one stays the best. A kernel of the grammar may win although the search, on
    ``n_searched`` rows, has not met it. What fails is left out, with a warning.

    Returns the best kernel, draws (n_draws, n_params) of its log parameters from Laplace's
    approximation to the posterior, and how it predicts.
    """
    with one_blas_thread():
        fit, make_predictor = _fit_and_choose(best_first, rows, n_searched, grammar)
        rival = rows.approximation.rival
        if rival is not None and not fit.evaluation.expression.leaves:
            other = copy(rows)
            other.approximation = rival
            again = _fit_and_choose(best_first, other, n_searched, grammar)
            if not rows.deadline.has_passed:
                fit, make_predictor = again
    n_rows, how = len(rows.data.y), rows.approximation.text
    _warn(rows.failures, how, n_rows=n_rows, has_fit=fit.n_rows == rows.data.noise.total_weight)
    noise = not fit.evaluation.expression.leaves
    return fit.evaluation, fit.evaluation.theta[None] if noise else rows.draw(fit), make_predictor


def race_exactly(
    best_first: Sequence[Evaluation], evaluator: Evaluator, *, deadline: Deadline
) -> list[Evaluation]:
    """Fit the best kernels of a search exactly to all rows, which ``evaluator`` has.

    The fits are returned, the best first. If there is not one, the list is empty, with a warning.
    """
    fits: list[Evaluation] = []
    with suppress(OutOfTimeError):
        for one in _racers(best_first):
            job = evaluator.prepare(one.expression, [one, *fits])
            # scores of fewer rows are no measure
            job = replace(job, best=max((fit.score for fit in fits), default=-np.inf))
            fits.append(evaluator.run(job, deadline=deadline))
    found = [fit for fit in fits if np.isfinite(fit.score)]
    if best_first[0].expression.leaves and not any(fit.expression.leaves for fit in found):
        found = []  # noise wins against kernels, not against failures
    failures = [f"{fit.expression}: {fit.status}" for fit in fits if not np.isfinite(fit.score)]
    _warn(failures, "exactly", n_rows=len(evaluator.data.y), has_fit=bool(found))
    return sorted(found, key=lambda fit: -fit.score)


def _warn(failures: Sequence[str], how: str, *, n_rows: int, has_fit: bool) -> None:
    """Warn if something has failed, or if there is no fit to all rows, for lack of time."""
    if has_fit and not failures:
        return
    more = f"; and {len(failures) - 1} more" if len(failures) > 1 else ""
    why = f"has failed ({failures[0]}{more})" if failures else "was ended by max_time"
    text = f"a part of the fit to all {n_rows} rows, {how}, {why}, and is left out"
    if not has_fit:
        text = (
            f"the fit to all {n_rows} rows, {how}, {why}: the parameters of the kernel, and "
            "best_score_, are those of the fewer rows of the search"
        )
    warn_user(text, ConvergenceWarning)


def _fit_and_choose(
    best_first: Sequence[Evaluation], rows: ManyRows, n_searched: int, grammar: Grammar | None
) -> tuple[RowsFit, MakePredictor]:
    """Fit the best kernels of a search to all rows, and choose one and its predictor."""
    races = rows.criterion is not None
    racers, weight = _racers(best_first) if races else best_first[:1], rows.evaluator.n_samples
    started = [RowsFit(one, weight) for one in racers]
    noise = [fit for fit in started if not fit.evaluation.expression.leaves]
    kernels = [fit for fit in started if fit.evaluation.expression.leaves]
    if races and kernels:
        raced = _race(kernels, rows)
        if raced and grammar is not None:
            best = raced[0]
            rough = with_rough_term(
                best.evaluation, rows.data, n_searched=n_searched, grammar=grammar
            )
            raced += _race([] if rough is None else [replace(best, evaluation=rough)], rows)
        kernels = [_best_of(_best_first(raced)[:N_COMPARED], rows)] if raced else kernels[:1]
    fits = _follow(kernels, rows) or started[:1]
    if noise:  # a weak signal that is not an accident has more evidence on all rows
        try:
            again = rows.fit_if_possible(noise[0], thorough=True)
            better = [one for one in again if one.evaluation.score > fits[0].evaluation.score]
            fits = better or fits
        except OutOfTimeError:  # the result of the search stands
            fits = fits if best_first[0].expression.leaves else noise
    if fits[0].evaluation.expression.leaves:
        return _choose(fits, rows)
    with suppress(OutOfTimeError):
        return rows.fit_exactly(fits[0]), ExactPredictor
    return fits[0], ExactPredictor


def _racers(best_first: Sequence[Evaluation]) -> list[Evaluation]:
    """Return noise alone, the best kernels, and the best ones that use all columns."""
    noise = [one for one in best_first if not one.expression.leaves]
    kernels = [one for one in best_first if one.expression.leaves]
    n_columns = max((len(_columns_of(one)) for one in kernels), default=0)
    best, others = kernels[:N_BEST], kernels[N_BEST:]
    flexible = [one for one in others if len(_columns_of(one)) == n_columns]
    return [*noise, *best, *flexible[:N_FLEXIBLE]]


def _columns_of(evaluation: Evaluation) -> set[int]:
    return {leaf.column for leaf in evaluation.expression.leaves}


def _race(kernels: Sequence[RowsFit], rows: ManyRows) -> list[RowsFit]:
    """Fit kernels to all rows, and return the fits for which there is time, the best first."""
    raced: list[RowsFit] = []
    with suppress(OutOfTimeError):
        for start in kernels:
            best = max((fit.evaluation.score for fit in raced), default=-np.inf)
            raced += rows.fit_if_possible(start, best=best)
    return _best_first(raced)


def _best_first(fits: Sequence[RowsFit]) -> list[RowsFit]:
    return sorted(fits, key=lambda fit: -fit.evaluation.score)


def _follow(fits: list[RowsFit], rows: ManyRows) -> list[RowsFit]:
    """Fit a kernel further, and return all of its fits, the latest one first."""
    with suppress(OutOfTimeError):
        for _ in range(N_ROUNDS if fits else 0):
            fits = [*rows.fit_if_possible(fits[0], thorough=True), *fits]
    return fits


def _choose(fits: Sequence[RowsFit], rows: ManyRows) -> tuple[RowsFit, MakePredictor]:
    """Choose one of the fits of a kernel, the latest one first, and a predictor."""
    fit, n_rows = _best_of(fits, rows), len(rows.data.y)
    made, *others = rows.approximation.predictors
    if rows.approximation.predicts_exactly and n_rows <= MAX_EXACT_PREDICTION_ROWS:
        if not has_memory_for_exact(n_rows, predicts_only=True):
            warn_user(
                f"the memory of this machine does not suffice for exact predictions given {n_rows} "
                "rows: they are approximated",
                ConvergenceWarning,
            )
        else:
            return fit, ExactPredictor if _has_time_for_exact(fit, rows) else made
    rival = rows.approximation.rival
    if (not others and rival is None) or not _can_choose(rows):
        return fit, made
    best = _held_out_density(fit, made, rows)
    for other in others:
        found = _held_out_density(fit, other, rows) if _can_choose(rows) else -np.inf
        if found < best + WORTHWHILE_GAIN:
            break
        made, best = other, found
    if rival is not None and _can_choose(rows):
        smooth = rival.predictors[0]
        if _held_out_density(fit, smooth, rows) > best - ALLOWED_LOSS:
            made = smooth
    return fit, made


def _can_choose(rows: ManyRows) -> bool:
    """Whether there are enough held-out rows, and time."""
    return n_held_out(len(rows.data.y)) >= MIN_HELD_OUT_ROWS and not rows.deadline.has_passed


def _best_of(fits: Sequence[RowsFit], rows: ManyRows) -> RowsFit:
    """Choose the first fit, unless another one predicts held-out rows clearly better."""
    if len(fits) == 1 or not _can_choose(rows):
        return fits[0]
    cheapest = rows.approximation.predictors[0]
    densities = [_held_out_density(fit, cheapest, rows) for fit in fits]
    best = int(np.argmax(densities))
    return fits[best] if densities[best] > densities[0] + WORTHWHILE_GAIN else fits[0]


def _held_out_density(fit: RowsFit, make_predictor: MakePredictor, rows: ManyRows) -> float:
    """Compute the mean log density of the held-out targets in nats, ``-inf`` on failure."""
    expression, theta, held_out = fit.evaluation.expression, fit.evaluation.theta, rows.held_out
    try:
        with kernel_errors():
            predictor = make_predictor(expression, theta, rows.given)
            mean, variance = predictor.mean_and_variance(held_out.X)
    except EvaluationError as error:
        rows.failures.append(f"prediction of held-out rows by {expression}: {error}")
        return -np.inf
    held_out, noise = held_out.on(expression.target), float(np.exp(theta[-1]))
    of_rows = held_out.noise.variance(noise + predictor.jitter)
    variance = variance - predictor.noise_at(mean) + of_rows  # of these rows, not of new ones
    density = log_normal(held_out.y - mean, variance) + held_out.noise.log_factors(theta[-1])
    return float(density.sum() / held_out.noise.total_weight)


def _has_time_for_exact(fit: RowsFit, rows: ManyRows) -> bool:
    """Whether exact predictions can be made before the deadline, by the time of some rows."""
    if rows.deadline.seconds_left == np.inf:
        return True
    expression, theta, n_rows = fit.evaluation.expression, fit.evaluation.theta, len(rows.data.y)
    some = rows.data.take(np.arange(min(N_TIMED_ROWS, n_rows)))
    began = time.perf_counter()
    try:
        with kernel_errors():
            ExactPredictor(expression, theta, some)
    except EvaluationError as error:
        rows.failures.append(f"exact predictions by {expression}: {error}")
        return False
    seconds = time.perf_counter() - began
    return seconds * (n_rows / len(some.y)) ** 3 < rows.deadline.seconds_left


def with_rough_term(
    fit: Evaluation, data: TrainingData, *, n_searched: int, grammar: Grammar
) -> Evaluation | None:
    """Add a rough function of all its columns to a kernel, as the start of a fit to all rows.

    Rows of a search are far from each other, and what varies between them is noise to the search.
    The lengthscale lies between the distance of nearest rows among those of the search and that
    among all rows. The result is None if the grammar does not allow for it.
    """
    by_column = {leaf.column: leaf.view for leaf in fit.expression.leaves}
    views = [by_column[column] for column in sorted(by_column)]
    kernel = _smooth_kernel(grammar, views)
    joins = {ADD} if len(views) == 1 else {ADD, MULTIPLY}
    too_large = fit.expression.n_leaves + len(views) > grammar.max_leaves
    if kernel is None or not joins <= set(grammar.operators) or too_large:
        return None
    term = reduce(mul, [Leaf(kernel, view.column, view.scale) for view in views])
    target = fit.expression.target
    expression = (fit.expression.on(IDENTITY) + term).on(target)
    if grammar.reduces and normal_form(expression).n_leaves < expression.n_leaves:
        return None
    known = data.inputs.columns.scaled(data.inputs.filled)
    X = np.column_stack([known.view(view) for view in views])
    noise, distance = fit.theta[-1], _distance_between(X, n_searched)
    starts = {
        Role.VARIANCE: (noise + np.log(ROUGH_SHARE_OF_NOISE)) / len(views),
        Role.LENGTHSCALE: np.log(distance),
    }
    of_leaf = [starts.get(p.role, 0.0) if p.role else 0.0 for p in kernel.parameters]
    of_term = of_leaf * len(views)
    theta = np.concatenate([fit.theta[:-1], of_term, [noise + np.log(1 - ROUGH_SHARE_OF_NOISE)]])
    return replace(
        fit,
        expression=expression,
        parameters=name_parameters(expression, theta),
        theta=theta,
        hessian=_extended_hessian(fit.hessian, len(of_term)),
        n_params=len(theta),
    )


def _smooth_kernel(grammar: Grammar, views: Sequence[View]) -> BaseKernel | None:
    """Return the first stationary kernel of all views with a lengthscale and a variance."""
    for kernel in grammar.base_kernels:
        roles = {parameter.role for parameter in kernel.parameters}
        leaves = {Leaf(kernel, view.column, view.scale) for view in views}
        is_of_all = leaves <= set(grammar.leaves)
        if is_of_all and kernel.is_stationary and {Role.LENGTHSCALE, Role.VARIANCE} <= roles:
            return kernel
    return None


def _distance_between(X: FloatArray, n_searched: int) -> float:
    """Return the geometric mean of the distances of nearest rows among few rows and all of them."""
    n = min(len(X), MAX_ROWS_OF_DISTANCES)
    distances = []
    for some in (X[:: max(1, len(X) // n_searched)], X[:: max(1, len(X) // n)]):
        found, _ = KDTree(some).query(some[:: max(1, len(some) // N_PROBES)], k=2)
        apart = found[:, 1][found[:, 1] > 0]
        distances.append(float(np.median(apart)) if len(apart) else 1.0)
    return float(np.sqrt(np.prod(distances)))


def _extended_hessian(hessian: FloatArray, n_more: int) -> FloatArray:
    """Add independent parameters of unit deviation before the last one of a Hessian."""
    n = len(hessian) - 1
    order = [*range(n), *range(n + 1, n + 1 + n_more), n]
    return block_diag(hessian, np.eye(n_more))[np.ix_(order, order)]
