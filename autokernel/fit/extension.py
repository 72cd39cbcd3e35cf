"""The fit on all rows, after kernels have been searched on some of them.

The best kernels of the search race on all rows, by an approximate likelihood, and the best of these
is followed further. What predicts then, and with which of the parameters met on the way, is decided
by the predictive density of rows that are held out.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from autokernel.evaluation import Evaluation
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import NOISE, Expression
from autokernel.fit.choice import Choice
from autokernel.fit.climb import Climb, Fit
from autokernel.likelihood import TrainingData
from autokernel.model import ExactPredictor, MakePredictor, Predictor
from autokernel.typing import FloatArray

_N_BEST = 4  # best kernels of the search that race on all rows
_N_FLEXIBLE = 6  # best kernels that use all columns, for what few rows do not show
_ROUNDS = 2  # thorough runs of the best kernel, each with neighbours or points of its own
_STREAM = 2  # of the random numbers


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields hold arrays
class Extended:
    """A kernel fitted on all rows, and the way in which it predicts."""

    evaluation: Evaluation
    draws: FloatArray  # (n_draws, n_params), from Laplace's approximation to the posterior
    way: MakePredictor


def extend(
    best_first: Sequence[Evaluation],
    climb: Climb,
    choose: Choice,
    *,
    n_searched: int,
    races: bool,
    seed: int,
) -> Extended:
    """Fit the best kernels of a search on all rows, and choose how the best one predicts.

    Parameters
    ----------
    best_first : sequence of Evaluation
        Fits of the search, the best first.
    climb : Climb
        Fits kernels on all rows.
    choose : Choice
        Chooses among the fits of a kernel, and how it predicts.
    n_searched : int
        Number of rows of the search.
    races : bool
        Whether the best kernels race by their score on all rows; otherwise the best one stays the
        best.
    seed : int
        Seed of draws from the posterior of the parameters.
    """
    started = [Fit(one, n_searched) for one in (racers(best_first) if races else best_first[:1])]
    noise = [fit for fit in started if fit.evaluation.expression == NOISE]
    kernels = [fit for fit in started if fit.evaluation.expression != NOISE]
    fits = _follow(_race(kernels, climb) if races else kernels, climb) or started[:1]
    if noise:  # a weak signal that is not an accident has more evidence on all rows
        with suppress(OutOfTimeError):
            fits = _better(fits, climb(noise[0], thorough=True))
    if fits[0].evaluation.expression == NOISE:
        return _of_noise(fits[0], climb)
    fit, way = choose(fits)
    return Extended(fit.evaluation, fit.draw(np.random.default_rng([seed, _STREAM])), way)


def racers(best_first: Sequence[Evaluation]) -> Sequence[Evaluation]:
    """Return the kernels to fit on all rows, the best one of the search first.

    They are the best ones, the best that use all columns, and noise alone.
    """
    noise = [one for one in best_first if one.expression == NOISE]
    kernels = [one for one in best_first if one.expression != NOISE]
    n_columns = max((len(_columns_of(one)) for one in kernels), default=0)
    best, others = kernels[:_N_BEST], kernels[_N_BEST:]
    flexible = [one for one in others if len(_columns_of(one)) == n_columns]
    return [*best, *flexible[:_N_FLEXIBLE], *noise]


def _race(kernels: Sequence[Fit], climb: Climb) -> list[Fit]:
    """Return the fit of the kernel that is best on all rows, or the search's best if all fail.

    Kernels for which there is no time are left out. The list is empty if there are no kernels.
    """
    raced: list[Fit] = []
    with suppress(OutOfTimeError):
        for start in kernels:
            best = max((fit.evaluation.score for fit in raced), default=-np.inf)
            raced += filter(None, [climb(start, best=best)])
    return sorted(raced or kernels, key=lambda fit: -fit.evaluation.score)[:1]


def _follow(fits: list[Fit], climb: Climb) -> list[Fit]:
    """Fit a kernel further, and return all of its fits, the latest one first."""
    with suppress(OutOfTimeError):
        for _ in range(_ROUNDS if fits else 0):
            fits = [*filter(None, [climb(fits[0], thorough=True)]), *fits]
    return fits


def _better(fits: list[Fit], rival: Fit | None) -> list[Fit]:
    """Return the fits of a kernel, or its rival if that has a higher score than the first one."""
    if rival is not None and rival.evaluation.score > fits[0].evaluation.score:
        return [rival]
    return fits


def _columns_of(evaluation: Evaluation) -> set[int]:
    """Return the columns that a kernel uses."""
    return {leaf.column for leaf in evaluation.expression.leaves}


def _of_noise(fit: Fit, climb: Climb) -> Extended:
    """Fit noise alone exactly to all rows."""
    with suppress(OutOfTimeError):
        fit = climb.exactly(fit)
    return Extended(fit.evaluation, fit.evaluation.theta[None], _predict_noise)


def _predict_noise(expression: Expression, theta: FloatArray, data: TrainingData) -> Predictor:
    """Make the predictor of noise alone, which needs no more than one row."""
    return ExactPredictor(expression, theta, data.take(np.arange(1)))
