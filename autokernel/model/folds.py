"""Held-out rows, on which every statement about new rows is measured."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from autokernel.data import Series
from autokernel.deadline import Deadline, in_time
from autokernel.evidence import Evaluation, Evaluator
from autokernel.evidence.maximise import Point, maximise
from autokernel.evidence.posterior import LogPosterior
from autokernel.inference import ExactLikelihood, ExactPredictor, TrainingData
from autokernel.model.averaging import MixtureComponent
from autokernel.model.mixture import MixturePredictor
from autokernel.typing import FloatArray, IntArray

N_FOLDS = 5
MAX_OF_FOLD = 1000  # rows
MIN_ROWS = 10  # with fewer, none are held out
MAX_RANKED = 30  # kernels of the search that are ranked without the rows of a fold
MAX_FITTED = 3  # kernels that are fitted without them
MAX_BEHIND = 6.0  # nats: a kernel further behind the best one would have a weight below .003
MAX_STEPS = 8  # iterations of such a fit, which begins at the parameters of all rows


class LeftOut(NamedTuple):
    """Predictions of rows by models that are fitted without them, of the standardised target."""

    rows: IntArray  #: (n,), of those that predictions are given
    weights: FloatArray  #: (n,), of the readings that are left out together
    folds: IntArray  #: (n,), rows of one fold are left out together
    mean: FloatArray
    deviation: FloatArray
    probability: FloatArray  #: of a smaller target


def share_explained(errors: FloatArray, targets: FloatArray, weights: FloatArray) -> float:
    """Compute which share of the variance of targets (n,) is explained, below zero for none."""
    spread = np.average((targets - np.average(targets, weights=weights)) ** 2, weights=weights)
    with np.errstate(over="ignore"):  # of a constant
        left = np.average(errors**2, weights=weights) / max(spread, np.finfo(float).tiny)
    return 1 - float(left)


Refit = Callable[[TrainingData], MixturePredictor]
"""Function that fits a model to some of the rows."""


def whole_counts(weights: FloatArray) -> IntArray:
    """Round weights (n,) to numbers of readings, at least one each."""
    return np.maximum(np.rint(weights), 1).astype(int)


def folds_of(data: TrainingData, series: Series, n_folds: int = N_FOLDS) -> list[IntArray]:
    """Choose how many of the readings that each row stands for are left out together.

    Each fold is an array (n_samples,): the last fifth of each series, or every fifth row in the
    order of targets, whatever the order of the rows. Of very many rows it is smaller.
    """
    X, n, counts = data.inputs.filled, len(data.y), whole_counts(data.noise.counts)
    if counts.sum() < MIN_ROWS:
        return []
    if series.time is not None:
        groups = np.unique(X[:, series.groups], axis=0, return_inverse=True)[1].ravel()
        order = np.lexsort((data.u, X[:, series.time], groups))
        sizes = np.bincount(groups)
        places = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        n_kept = np.minimum(np.ceil((1 - 1 / N_FOLDS) * sizes), np.maximum(sizes - 1, 1))
        is_last = np.zeros(n, dtype=bool)
        is_last[order] = places >= np.repeat(n_kept, sizes)
        return [counts * is_last] if is_last.any() else []
    order = np.lexsort((*X.T.round(9), X.sum(axis=1).round(9), data.u.round(9)))
    some = order[:: -(-n // (N_FOLDS * MAX_OF_FOLD))]
    ends, folds = np.cumsum(counts[some]), []
    for number in range(n_folds):
        out = np.zeros(n, dtype=int)
        out[some] = np.diff((ends + N_FOLDS - 1 - number) // N_FOLDS, prepend=0)
        folds.append(out)
    return folds


def leave_out(
    mixture: MixturePredictor, folds: Sequence[IntArray], refit: Refit | None, deadline: Deadline
) -> LeftOut | None:
    """Predict the readings of each fold from all others, None if there is no time for any fold.

    Without a function that fits again, the parameters are those of the mixture.
    """
    keep = partial(MixturePredictor, mixture.components, make_predictor=mixture.make_predictor)
    every = in_time(_fold_by_fold(mixture.data, folds, refit or keep, deadline))
    found = [np.concatenate(one) for one in zip(*every, strict=True)]
    if not found:
        return None
    order = np.lexsort((found[2], found[0]))  # by fold within rows
    return LeftOut(*(one[order] for one in found))


def _fold_by_fold(
    data: TrainingData, folds: Sequence[IntArray], refit: Refit, deadline: Deadline
) -> Iterator[LeftOut]:
    counts = whole_counts(data.noise.counts)
    for number, out in enumerate(folds):
        with deadline.timed(leave_out, 1.0):
            rows, kept = np.flatnonzero(out), np.flatnonzero(counts > out)
            mixture = refit(data.take(kept, 1 - out[kept] / counts[kept]))
            left = data.take(rows, 1 / counts[rows])
            mean, variance, probability = mixture.outcomes(left)
        of_fold, weights = np.full(len(rows), number), out[rows] * left.noise.counts
        yield LeftOut(rows, weights, of_fold, mean, np.sqrt(variance), probability)


def refit_by(best_first: Sequence[Evaluation], evaluator: Evaluator) -> Refit:
    """Return how kernels are fitted to some of the rows of an evaluator, and weighed by these.

    Kernels are ranked at the parameters of all rows, and the best ones are fitted from there by a
    few steps. A structure that only the held-out rows support loses. The volume of a posterior is
    scaled from all rows.
    """

    def refit(data: TrainingData) -> MixturePredictor:
        times = data.noise.n_readings / evaluator.n_samples

        def score_of(one: Evaluation, log_posterior: float) -> float:
            log_volume = one.log_evidence - one.log_posterior - 0.5 * one.n_params * np.log(times)
            return log_posterior + log_volume + one.log_structure_prior

        def exact(one: Evaluation) -> LogPosterior:
            return LogPosterior(ExactLikelihood(one.expression, data), priors=evaluator.priors)

        ranked = [(score_of(one, exact(one).value(one.theta)), one) for one in known]
        ranked.sort(key=lambda pair: -pair[0])
        least, fits = ranked[0][0] - MAX_BEHIND, list[tuple[float, Evaluation]]()
        for _, one in [pair for pair in ranked if pair[0] > least][:MAX_FITTED]:
            start = Point(one.theta, curvature=times * one.hessian)
            end = maximise(exact(one), start, max_iterations=MAX_STEPS)
            fits.append((score_of(one, end.log_posterior), replace(one, theta=end.theta)))
        fits = fits or [(0.0, known[0])]
        weights = softmax([score for score, _ in fits]).tolist()
        pairs = zip(weights, (one for _, one in fits), strict=True)
        components = [MixtureComponent(one.expression, one.theta, w) for w, one in pairs]
        return MixturePredictor(components, data, ExactPredictor)

    finite = (one for one in best_first if np.isfinite(one.log_evidence))
    known = [*islice(finite, MAX_RANKED)] or best_first[:1]
    return refit
