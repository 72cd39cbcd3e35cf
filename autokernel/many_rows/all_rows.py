"""The fit of the best kernels of a search to all rows: race, fit further, choose."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from autokernel.deadline import in_time
from autokernel.evidence import Evaluation
from autokernel.exceptions import KERNEL_ERRORS, OutOfTimeError, reason_of, warn_user
from autokernel.inference import (
    ExactLikelihood,
    ExactPredictor,
    MakePredictor,
    exact_work,
    lack_of_memory,
    one_blas_thread,
)
from autokernel.many_rows.approximation import MAX_EXACT_PREDICTION_ROWS, n_held_out
from autokernel.many_rows.further import ManyRows
from autokernel.many_rows.left_out import left_out_density
from autokernel.many_rows.terms import with_another_level, with_rough_term
from autokernel.search.strategy import Task
from autokernel.typing import FloatArray

N_BEST = 4  # best kernels of the search that race on all rows
MAX_BEHIND = 10.0  # nats on the rows of the search, from which no kernel comes back on all rows
WORTHWHILE_GAIN = 0.02  # nats per row for which a more expensive predictor is taken


def fit_all_rows(
    best_first: Sequence[Evaluation], rows: ManyRows, task: Task | None = None
) -> tuple[Evaluation, FloatArray, MakePredictor]:
    """Fit the best kernels of a search to all rows, and choose how the best one predicts.

    If the criterion scores approximate fits, the best kernels race on all rows; with the ``task``
    of the search, so does the first plus a term that the search could not see. Otherwise the best
    one stays. What fails is recorded in ``rows.history``, with a warning.

    Returns the best kernel, draws (n_draws, n_params) of its log parameters from Laplace's
    approximation to the posterior, and how it predicts.
    """
    rival = rows.approximation.rival
    with one_blas_thread():
        found = _race_fit_choose(best_first, rows, task)
        if not found[0].expression.leaves and rival is not None:
            again = _race_fit_choose(best_first, replace(rows, approximation=rival), task)
            found = found if rows.deadline.has_passed else again
    fit, make_predictor = found
    has_fit, how = fit.n_rows == rows.data.noise.n_readings, rows.approximation.text
    warn_of_failures(rows.history, how, n_rows=len(rows.data.y), has_fit=has_fit)
    draws = rows.draw(fit) if fit.expression.leaves else fit.theta[None]
    return fit, draws, make_predictor


def _race_fit_choose(
    best_first: Sequence[Evaluation], rows: ManyRows, task: Task | None
) -> tuple[Evaluation, MakePredictor]:
    noise, kernels = _entrants(best_first[:1] if rows.criterion is None else best_first)
    winner = kernels if rows.criterion is None else _race(kernels, rows, task)
    [fit, *_] = _fitted(winner, rows, thorough=True) or winner or noise
    if noise:
        fit = _against_noise(fit, noise[0], rows, was_best=not best_first[0].expression.leaves)
    if fit.expression.leaves:
        return fit, _best_predictor(fit, rows)
    with suppress(OutOfTimeError):
        fit = rows.fit_exactly(fit)
    return fit, ExactPredictor


def warn_of_failures(
    history: Sequence[Evaluation], how: str, *, n_rows: int, has_fit: bool
) -> None:
    """Warn if something has failed, or if there is no fit to all rows, for lack of time."""
    failed = [f"{one.expression}: {one.status}" for one in history if one.score == -np.inf]
    why = f"has failed ({'; '.join(dict.fromkeys(failed))})" if failed else "was ended by max_time"
    text = f"the fit to all {n_rows} rows, {how}, {why}"
    if not has_fit:
        what = "the parameters of the kernel, and best_score_, are those of the fewer rows"
        warn_user(f"{text}: {what} of the search", ConvergenceWarning)
    elif failed:
        warn_user(f"a part of {text}, and is left out", ConvergenceWarning)


def _entrants(best_first: Sequence[Evaluation]) -> tuple[list[Evaluation], list[Evaluation]]:
    """Return noise alone, and kernels near the best: the first ones, and some of all columns."""
    scores = [one.score for one in best_first if one.expression.leaves]
    near = [one for one in best_first if one.score >= max(scores, default=-np.inf) - MAX_BEHIND]
    noise = [one for one in near if not one.expression.leaves]
    kernels = [one for one in near if one.expression.leaves]
    widest = max((len(one.expression.columns) for one in kernels), default=0)
    flexible = [one for one in kernels[N_BEST:] if len(one.expression.columns) == widest]
    return noise, [*kernels[:N_BEST], *flexible[:3]]  # for what few rows do not show


def _race(kernels: Sequence[Evaluation], rows: ManyRows, task: Task | None) -> Sequence[Evaluation]:
    """Return the kernel that is best on all rows, the first one if none could be fitted."""
    if (raced := _fitted(kernels, rows)) and task is not None:
        with_term = with_another_level if rows.approximation.is_exact else with_rough_term
        raced += _fitted(with_term(raced[0], rows.data, task), rows)
    raced.sort(key=lambda fit: -fit.score)
    return _best_on_held_out(raced[:3], rows) or kernels[:1]


def _fitted(
    kernels: Sequence[Evaluation], rows: ManyRows, *, thorough: bool = False
) -> list[Evaluation]:
    """Fit kernels to all rows while there is time, and return what succeeds, the best first."""
    fits = in_time(rows.fit(kernel, thorough=thorough) for kernel in kernels)
    return sorted((fit for fit in fits if np.isfinite(fit.score)), key=lambda fit: -fit.score)


def _against_noise(
    fit: Evaluation, noise: Evaluation, rows: ManyRows, *, was_best: bool
) -> Evaluation:
    """Return noise alone if it is better on all rows; without time to see, if it was the best."""
    try:
        again = rows.fit(noise, thorough=True)
    except OutOfTimeError:
        return noise if was_best else fit
    return again if again.score > fit.score else fit


def _best_on_held_out(fits: Sequence[Evaluation], rows: ManyRows) -> Sequence[Evaluation]:
    """Choose the first fit or, if scores are inexact, a clearly better one on held-out rows."""
    if len(fits) <= 1 or rows.approximation.is_exact:
        return fits[:1]
    densities = [held_out_density(fit, rows.approximation.predictors[0], rows) for fit in fits]
    best = int(np.argmax(densities))
    return [fits[best if densities[best] > densities[0] + WORTHWHILE_GAIN else 0]]


def _best_predictor(fit: Evaluation, rows: ManyRows) -> MakePredictor:
    """Choose the exact predictor if memory and time suffice, another one by held-out rows."""
    made, *others = rows.approximation.predictors
    if _can_be_exact(rows):
        work = exact_work(len(rows.data.y), fit.expression.n_leaves)
        seconds = rows.deadline.expected_seconds(ExactLikelihood, work / 3)
        return ExactPredictor if seconds < rows.deadline.seconds_left else made
    best = held_out_density(fit, made, rows) if others else -np.inf
    for other in others:
        if not (density := held_out_density(fit, other, rows)) > best + WORTHWHILE_GAIN:
            break
        made, best = other, density
    rival = rows.approximation.rival
    if rival and held_out_density(fit, rival.predictors[0], rows) > best - 0.005:  # nats per row
        return rival.predictors[0]
    return made


def held_out_density(fit: Evaluation, make_predictor: MakePredictor, rows: ManyRows) -> float:
    """Compute the mean log density of held-out targets in nats.

    It is ``-inf`` on failure, without enough time, and with less than twenty such rows.
    """
    if n_held_out(len(rows.data.y)) < 20:
        return -np.inf
    given, held_out = rows.given_and_held_out
    try:
        with rows.deadline.timed(str(make_predictor), len(given.y)):
            return left_out_density(fit, given, held_out, make_predictor)
    except OutOfTimeError:
        return -np.inf
    except (*KERNEL_ERRORS, MemoryError) as error:
        rows.record_failure(fit, f"held-out rows could not be predicted ({reason_of(error)})")
        return -np.inf


def _can_be_exact(rows: ManyRows) -> bool:
    """Whether predictions may be exact, by the number of rows and the memory of this machine."""
    n_rows = len(rows.data.y)
    if not rows.approximation.predicts_exactly or n_rows > MAX_EXACT_PREDICTION_ROWS:
        return False
    has_memory = not lack_of_memory(n_rows, predicts_only=True)
    if not has_memory and not rows.approximation.is_exact:
        warn_user(
            f"the memory of this machine does not suffice for exact predictions given {n_rows} "
            "rows: they are approximated",
            ConvergenceWarning,
        )
    return has_memory
