"""Rows that are predicted without them: what is said of new rows is measured on such rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from autokernel.data import Series
from autokernel.deadline import Deadline, in_time
from autokernel.evidence import Evaluation, Evaluator
from autokernel.evidence.laplace import laplace_log_evidence
from autokernel.evidence.maximise import maximise
from autokernel.evidence.posterior import LogPosterior
from autokernel.exceptions import NotAMaximumError
from autokernel.inference import ExactPredictor, TrainingData
from autokernel.model.averaging import MixtureComponent
from autokernel.model.mixture import MixturePredictor
from autokernel.typing import FloatArray, IntArray

N_FOLDS = 5
MAX_OF_FOLD = 1000  # rows
MIN_ROWS = 10  # of which some are left out
MAX_RANKED = 30  # kernels of the search, by the rows of a fold
MAX_FITTED = 3  # of these, those of the largest weight
MAX_BEHIND = 6.0  # nats behind the best kernel of a fold, with less than a weight of .003
MAX_STEPS = 8  # of a fit, from the parameters of all rows


class LeftOut(NamedTuple):
    """Predictions of rows by models that are fitted without them, of the standardised target."""

    rows: IntArray  #: (n,), of those that predictions are given
    folds: IntArray  #: (n,), rows of one fold are left out together
    mean: FloatArray
    deviation: FloatArray
    probability: FloatArray  #: of a smaller target


def share_explained(errors: FloatArray, targets: FloatArray) -> float:
    """Compute which share of the variance of targets (n,) is explained, below zero for none."""
    return 1 - float(np.mean(errors**2) / max(targets.var(), np.finfo(float).tiny))


Refit = Callable[[TrainingData], MixturePredictor]
"""Function that fits a model to some of the rows."""


def folds_of(data: TrainingData, series: Series, n_folds: int = N_FOLDS) -> list[IntArray]:
    """Choose the rows to leave out together: the last fifth of each series, or fifths of all rows.

    These depend neither on the order of the rows nor on a seed: each has rows from the smallest to
    the largest target. Of very many rows they are smaller.
    """
    X, n = data.inputs.filled, len(data.y)
    if n < MIN_ROWS:
        return []
    if series.time is not None:
        _, groups = np.unique(X[:, series.groups], axis=0, return_inverse=True)
        order = np.lexsort((X[:, series.time], groups))
        sizes = np.bincount(groups)
        places = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        is_last = places >= (1 - 1 / N_FOLDS) * np.repeat(sizes, sizes)
        return [np.sort(order[is_last])] if is_last.any() else []
    order = np.lexsort((X.sum(axis=1).round(9), data.u.round(9)))
    some = order[:: -(-n // (N_FOLDS * MAX_OF_FOLD))]
    return [np.sort(some[number::N_FOLDS]) for number in range(n_folds)]


def leave_out(
    data: TrainingData, folds: Sequence[IntArray], refit: Refit, deadline: Deadline
) -> LeftOut | None:
    """Predict the rows of each fold from all others, None if there is no time for any fold."""
    every = in_time(_predicted(data, folds, refit, deadline))
    found = [np.concatenate(one) for one in zip(*every, strict=True)]
    return LeftOut(*(one[np.argsort(found[0])] for one in found)) if found else None


def _predicted(
    data: TrainingData, folds: Sequence[IntArray], refit: Refit, deadline: Deadline
) -> Iterator[LeftOut]:
    for number, rows in enumerate(folds):
        with deadline.timed(leave_out, 1.0):
            mixture = refit(data.take(np.setdiff1d(np.arange(len(data.y)), rows)))
            mean, variance, probability = mixture.outcomes(data.take(rows))
        of_fold = np.full(len(rows), number)
        yield LeftOut(rows, of_fold, mean, np.sqrt(variance), probability)


def refit_by(best_first: Sequence[Evaluation], evaluator: Evaluator) -> Refit:
    """Return how kernels are fitted to some of the rows of an evaluator, and weighed by these.

    Those that are probable at the parameters of all rows are fitted from there, by a few steps. So
    a structure that only all rows like loses. The volume of a posterior is that by all rows.
    """

    def refit(data: TrainingData) -> MixturePredictor:
        times = data.noise.n_readings / evaluator.n_samples

        def score_of(one: Evaluation, log_posterior: float) -> float:
            try:
                log_evidence = laplace_log_evidence(log_posterior, times * one.hessian)
            except NotAMaximumError:
                return -np.inf
            return log_evidence + one.log_structure_prior

        exact = partial(LogPosterior.exact, data=data, priors=evaluator.priors)
        ranked = [(score_of(one, exact(one.expression).value(one.theta)), one) for one in known]
        ranked.sort(key=lambda pair: -pair[0])
        least, fits = ranked[0][0] - MAX_BEHIND, list[tuple[float, Evaluation]]()
        for _, one in [pair for pair in ranked if pair[0] > least][:MAX_FITTED]:
            curvature = times * one.hessian
            run = partial(maximise, exact(one.expression), max_iterations=MAX_STEPS)
            end = run(one.theta, curvature=curvature)
            fits.append((score_of(one, end.log_posterior), replace(one, theta=end.theta)))
        fits = fits or [(0.0, known[0])]
        weights = softmax([score for score, _ in fits]).tolist()
        components = [
            MixtureComponent(one.expression, one.theta, weight)
            for weight, (_, one) in zip(weights, fits, strict=True)
        ]
        return MixturePredictor(components, data, ExactPredictor)

    known = best_first[:MAX_RANKED]
    return refit
