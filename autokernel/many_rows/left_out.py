"""How well kernels predict rows that a search does not have, and what that says of its gains."""

from functools import cache

import numpy as np

from autokernel.evidence import Evaluation
from autokernel.exceptions import KERNEL_ERRORS
from autokernel.inference import ExactPredictor, MakePredictor, TrainingData, log_normal
from autokernel.search.history import History, Phase

MAX_INVISIBLE_STEPS = 10  # of a climb, after which it ends


def left_out_density(
    fit: Evaluation,
    given: TrainingData,
    left_out: TrainingData,
    make_predictor: MakePredictor = ExactPredictor,
) -> float:
    """Compute the mean log density of left-out targets given other rows, in nats per reading."""
    predictor = make_predictor(fit.expression, fit.theta, given)
    mean, variance = predictor.mean_and_variance(left_out.X)
    left_out, noise = left_out.seen_by(fit.expression), float(np.exp(fit.theta[-1]))
    of_rows = left_out.noise.variance(noise + predictor.jitter)
    variance += of_rows - predictor.noise_at(left_out.X, mean)  # that of these rows
    density = log_normal(left_out.y - mean, variance) + left_out.noise.corrections(fit.theta[-1])
    return float(density.sum() / left_out.noise.n_readings)


class LeftOut:
    """Rows that a search does not have, by which it ends although its score still rises.

    Without noise, almost every change of a kernel raises the evidence of the ``given`` rows, and
    less and less of that is seen in predictions of other rows.
    """

    def __init__(self, given: TrainingData, rows: TrainingData) -> None:
        self.given, self.rows = given, rows.take(np.arange(min(len(rows.y), 500)))
        self._density = cache(self._density_of)

    def show_no_gain(self, history: History) -> bool:
        """Return whether the last steps of a climb have gained less than 0.01 nats a row.

        Without noise, that is one per cent of the errors. With fewer than a hundred rows the answer
        is no, as their mean is too uncertain.
        """
        numbers = [n for n, one in enumerate(history.trials) if one.phase == Phase.SEARCH]
        if len(self.rows.y) < 100 or len(numbers) < MAX_INVISIBLE_STEPS:
            return False
        before = History(history.n_samples, history.trials[: numbers[-MAX_INVISIBLE_STEPS]]).best
        if before is None or history.best is None:
            return False
        densities = [self._density(one) for one in (before, history.best)]
        return bool(np.isfinite(densities).all() and np.diff(densities)[0] < 0.01)

    def _density_of(self, fit: Evaluation) -> float:
        try:
            return left_out_density(fit, self.given, self.rows)
        except KERNEL_ERRORS:  # then the search goes on
            return -np.inf
