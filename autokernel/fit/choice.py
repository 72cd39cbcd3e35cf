"""The choice of parameters and of a way to predict, by the density of rows that are held out."""

import time
from collections.abc import Sequence

import numpy as np

from autokernel.deadline import Deadline
from autokernel.fit.approximation import Approximation
from autokernel.fit.climb import Fit
from autokernel.fit.plan import n_held_out
from autokernel.likelihood import TrainingData
from autokernel.model import ExactPredictor, MakePredictor, Predictor
from autokernel.typing import IntArray

_FEWEST_HELD_OUT = 20  # with fewer, nothing is chosen
_WORTH_IT = 0.02  # nats per row for which a dearer way to predict is taken
_AS_GOOD = 0.005  # nats per row that the rival of a ladder may lack
_FOR_COMPARISON = 2**15  # most rows to condition on, before the choice
_N_TIMED = 1000  # rows whose exact conditioning is timed, to know how long that of all takes


class Choice:
    """Chooses parameters, and how they predict.

    Parameters
    ----------
    approximation : Approximation
        Lists ways to predict.
    data : TrainingData
        All rows, in the units of the search.
    order : ndarray of shape (n_samples,)
        Numbers of the rows in random order. The last ones are held out.
    deadline : Deadline
        Moment after which the cheapest way is taken.
    """

    def __init__(
        self, approximation: Approximation, data: TrainingData, order: IntArray, deadline: Deadline
    ) -> None:
        n_others = len(order) - n_held_out(len(order))
        self._held_out, self._given = order[n_others:], order[:n_others][:_FOR_COMPARISON]
        self._approximation, self._deadline = approximation, deadline
        self.data = data

    def __call__(self, fits: Sequence[Fit]) -> tuple[Fit, MakePredictor]:
        """Choose one of the fits of a kernel, the latest one first, and a way to predict."""
        fit = self.best_of(fits)
        way, *dearer = self._approximation.ladder(len(self.data.y))
        rival = self._approximation.rival(len(self.data.y))
        if way is ExactPredictor and not self._has_time_for_exact(fit):
            return fit, self._approximation.probe
        if (not dearer and rival is None) or not self._can_choose:
            return fit, way
        best = self._density(fit, way)
        for other in dearer:
            found = self._density(fit, other) if self._can_choose else -np.inf
            if found < best + _WORTH_IT:
                break
            way, best = other, found
        if rival and self._can_choose and self._density(fit, rival) > best - _AS_GOOD:
            way = rival
        return fit, way

    @property
    def _can_choose(self) -> bool:
        """Whether there are enough rows, and time."""
        return len(self._held_out) >= _FEWEST_HELD_OUT and not self._deadline.has_passed

    def best_of(self, fits: Sequence[Fit]) -> Fit:
        """Choose the first fit, unless another one predicts rows held out clearly better."""
        if len(fits) == 1 or not self._can_choose:
            return fits[0]
        densities = [self._density(fit, self._approximation.probe) for fit in fits]
        best = int(np.argmax(densities))
        return fits[best] if densities[best] > densities[0] + _WORTH_IT else fits[0]

    def _density(self, fit: Fit, way: MakePredictor) -> float:
        """Compute the mean log density of the held-out targets in nats, ``-inf`` on failure."""
        held_out = self.data.take(self._held_out)
        try:
            predictor = _make(way, fit, self.data.take(self._given))
            mean, variance = predictor.mean_and_variance(held_out.X)
        except Exception:  # whatever a kernel raises, another way may predict
            return -np.inf
        logs = (held_out.y - mean) ** 2 / variance + np.log(2 * np.pi * variance)
        return float(-0.5 * logs.mean())

    def _has_time_for_exact(self, fit: Fit) -> bool:
        """Whether exact predictions can be made before the deadline, by the time of some rows."""
        if self._deadline.seconds_left == np.inf:
            return True
        some = self.data.take(np.arange(min(_N_TIMED, len(self.data.y))))
        began = time.perf_counter()
        try:
            _make(ExactPredictor, fit, some)
        except Exception:  # as above
            return False
        seconds = time.perf_counter() - began
        return seconds * (len(self.data.y) / len(some.y)) ** 3 < self._deadline.seconds_left


def _make(way: MakePredictor, fit: Fit, data: TrainingData) -> Predictor:
    """Condition the kernel of a fit on data."""
    return way(fit.evaluation.expression, fit.evaluation.theta, data)
