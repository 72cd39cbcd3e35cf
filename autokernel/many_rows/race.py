"""A term for what few rows cannot tell from noise: a rough function of all columns of a kernel."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from operator import mul

import numpy as np
from scipy.spatial import KDTree

from autokernel.evidence import Evaluation, name_parameters
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import NOISE, Expression, Grammar, Leaf, normal_form
from autokernel.inference import TrainingData
from autokernel.inference.base import MakePredictor, Predictor
from autokernel.inference.exact import ExactPredictor
from autokernel.kernels import ADD, MULTIPLY, BaseKernel, Role
from autokernel.many_rows.climb import Choice, Climb, Fit
from autokernel.typing import FloatArray

_SHARE = 0.5  # of the noise variance, which the term explains at first
_N_PROBES = 200  # rows whose nearest neighbours are looked for
_MOST_ROWS = 2**17  # among which these are looked for


def with_rough_term(
    fit: Evaluation, data: TrainingData, *, n_searched: int, grammar: Grammar
) -> Evaluation | None:
    """Add a rough function of all its columns to a kernel, as the start of a fit to all rows.

    Rows of a search are far from each other, and what varies between them is noise to the search.
    The lengthscale lies between the distance of nearest rows among those of the search and that
    among all rows.

    Returns
    -------
    Evaluation or None
        None if the grammar does not allow for it.
    """
    columns = sorted({leaf.column for leaf in fit.expression.leaves})
    kernel = _smooth_kernel(grammar, columns)
    joins = {ADD} if len(columns) == 1 else {ADD, MULTIPLY}
    too_large = fit.expression.n_leaves + len(columns) > grammar.max_leaves
    if kernel is None or not joins <= set(grammar.operators) or too_large:
        return None
    term: Expression = reduce(mul, [Leaf(kernel, column) for column in columns])
    expression = fit.expression + term
    if grammar.reduces and normal_form(expression).n_leaves < expression.n_leaves:
        return None
    noise, distance = fit.theta[-1], _distance_between(data.X[:, columns], n_searched)
    starts = {
        Role.VARIANCE: (noise + np.log(_SHARE)) / len(columns),
        Role.LENGTHSCALE: np.log(distance),
    }
    of_leaf = [starts.get(p.role, 0.0) if p.role else 0.0 for p in kernel.parameters]
    of_term = of_leaf * len(columns)
    theta = np.concatenate([fit.theta[:-1], of_term, [noise + np.log(1 - _SHARE)]])
    return replace(
        fit,
        expression=expression,
        parameters=name_parameters(expression, theta),
        theta=theta,
        hessian=_joined(fit.hessian, len(of_term)),
        n_params=len(theta),
    )


def _smooth_kernel(grammar: Grammar, columns: Sequence[int]) -> BaseKernel | None:
    """Return the first base kernel of all columns with a lengthscale, a variance and stationarity.

    It is None if there is none.
    """
    for kernel in grammar.base_kernels:
        roles = {parameter.role for parameter in kernel.parameters}
        is_of_all = all(grammar.spans(Leaf(kernel, column), (kernel,)) for column in columns)
        if is_of_all and kernel.is_stationary and {Role.LENGTHSCALE, Role.VARIANCE} <= roles:
            return kernel
    return None


def _distance_between(X: FloatArray, n_searched: int) -> float:
    """Return the geometric mean of the distances of nearest rows among few rows and all of them."""
    n = min(len(X), _MOST_ROWS)
    distances = []
    for some in (X[:: max(1, len(X) // n_searched)], X[:: max(1, len(X) // n)]):
        found, _ = KDTree(some).query(some[:: max(1, len(some) // _N_PROBES)], k=2)
        apart = found[:, 1][found[:, 1] > 0]
        distances.append(float(np.median(apart)) if len(apart) else 1.0)
    return float(np.sqrt(np.prod(distances)))


def _joined(hessian: FloatArray, n_more: int) -> FloatArray:
    """Add independent parameters of unit deviation before the last one of a Hessian."""
    n = len(hessian) - 1
    joined = np.eye(n + n_more + 1)
    kept = np.append(np.arange(n), n + n_more)
    joined[np.ix_(kept, kept)] = hessian
    return joined


_N_BEST = 4  # best kernels of the search that race on all rows
_N_FLEXIBLE = 6  # best kernels that use all columns, for what few rows do not show
_N_COMPARED = 3  # best fits of the race that are compared on rows held out
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
    grammar: Grammar | None,
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
    grammar : Grammar or None
        Grammar of kernels that may win although the search has not met them; None for no others.
    seed : int
        Seed of draws from the posterior of the parameters.
    """
    started = [Fit(one, n_searched) for one in (racers(best_first) if races else best_first[:1])]
    noise = [fit for fit in started if fit.evaluation.expression == NOISE]
    kernels = [fit for fit in started if fit.evaluation.expression != NOISE]
    if races and kernels:
        raced = _race(kernels, climb)
        if raced and grammar is not None:
            raced += _roughened(raced[0], climb, choose.data, n_searched, grammar)
        kernels = [choose.best_of(_best_first(raced)[:_N_COMPARED])] if raced else kernels[:1]
    fits = _follow(kernels, climb) or started[:1]
    if noise:  # a weak signal that is not an accident has more evidence on all rows
        try:
            fits = _better(fits, climb(noise[0], thorough=True))
        except OutOfTimeError:  # what the search believes stands
            fits = noise if best_first[0].expression == NOISE else fits
    if fits[0].evaluation.expression == NOISE:
        return _of_noise(fits[0], climb)
    fit, way = choose(fits)
    return Extended(fit.evaluation, fit.draw(np.random.default_rng([seed, _STREAM])), way)


def racers(best_first: Sequence[Evaluation]) -> Sequence[Evaluation]:
    """Return the kernels to fit on all rows.

    They are noise alone, the best ones, and the best that use all columns.
    """
    noise = [one for one in best_first if one.expression == NOISE]
    kernels = [one for one in best_first if one.expression != NOISE]
    n_columns = max((len(_columns_of(one)) for one in kernels), default=0)
    best, others = kernels[:_N_BEST], kernels[_N_BEST:]
    flexible = [one for one in others if len(_columns_of(one)) == n_columns]
    return [*noise, *best, *flexible[:_N_FLEXIBLE]]


def _race(kernels: Sequence[Fit], climb: Climb) -> list[Fit]:
    """Fit kernels to all rows, and return the fits for which there is time, the best first."""
    raced: list[Fit] = []
    with suppress(OutOfTimeError):
        for start in kernels:
            best = max((fit.evaluation.score for fit in raced), default=-np.inf)
            raced += filter(None, [climb(start, best=best)])
    return _best_first(raced)


def _roughened(
    fit: Fit, climb: Climb, data: TrainingData, n_searched: int, grammar: Grammar
) -> list[Fit]:
    """Fit a kernel with a rough term more, if the grammar and the time allow for it."""
    rough = with_rough_term(fit.evaluation, data, n_searched=n_searched, grammar=grammar)
    if rough is None:
        return []
    with suppress(OutOfTimeError):
        return [*filter(None, [climb(replace(fit, evaluation=rough))])]
    return []


def _best_first(fits: Sequence[Fit]) -> list[Fit]:
    """Sort fits by their scores."""
    return sorted(fits, key=lambda fit: -fit.evaluation.score)


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
