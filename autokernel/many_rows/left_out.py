"""How well kernels predict rows that a search does not have, and what that says of its gains."""

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.special import logsumexp

from autokernel.evidence import Evaluation
from autokernel.exceptions import KERNEL_ERRORS
from autokernel.inference import ExactPredictor, MakePredictor, TrainingData, log_normal
from autokernel.model import PRIOR_LAW
from autokernel.search.history import History, Phase

MAX_INVISIBLE_STEPS = 10  # of a climb, after which it ends


def left_out_density(
    fit: Evaluation,
    given: TrainingData,
    left_out: TrainingData,
    make_predictor: MakePredictor = ExactPredictor,
) -> float:
    """Compute the mean log density of left-out targets given other rows, in nats per reading.

    Tails are heavy, so that a few rows that no kernel predicts do not decide.
    """
    predictor = make_predictor(fit.expression, fit.theta, given)
    mean, variance = predictor.mean_and_variance(left_out.X)
    left_out = left_out.on(fit.expression.target)
    variance += predictor.excess_noise(left_out, mean)
    shares, factors = np.array(PRIOR_LAW.normals).T
    densities = log_normal(left_out.y - mean, factors[:, None] ** 2 * variance)
    density = logsumexp(densities, axis=0, b=shares[:, None])
    density += left_out.noise.corrections(fit.theta[-1])
    return float(density.sum() / left_out.noise.n_readings)


def no_gain_seen_by(left_out: TrainingData, *, given: TrainingData) -> Callable[[History], bool]:
    """Make a function of a history: whether a climb gains nothing that rows it lacks would show.

    Without noise, almost every change of a kernel raises the evidence of the ``given`` rows, and
    less and less of that is seen in predictions of other rows. The last steps must have gained less
    than 0.01 nats a row, which without noise is one per cent of the errors. With fewer than a
    hundred rows the answer is no, as their mean is too uncertain.
    """
    rows = left_out.take(np.arange(min(len(left_out.y), 500)))

    @cache
    def density(fit: Evaluation) -> float:
        try:
            return left_out_density(fit, given, rows)
        except KERNEL_ERRORS:  # then the search goes on
            return -np.inf

    def shows_no_gain(history: History) -> bool:
        numbers = [n for n, one in enumerate(history.trials) if one.phase == Phase.SEARCH]
        if len(rows.y) < 100 or len(numbers) < MAX_INVISIBLE_STEPS:
            return False
        before = History(history.n_samples, history.trials[: numbers[-MAX_INVISIBLE_STEPS]]).best
        if before is None or history.best is None:
            return False
        densities = [density(one) for one in (before, history.best)]
        return bool(np.isfinite(densities).all() and np.diff(densities)[0] < 0.01)

    return shows_no_gain
