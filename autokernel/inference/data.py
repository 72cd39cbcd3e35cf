"""The rows of a fit as inference sees them: inputs, targets, and pairs of inputs."""

from typing import Any

import numpy as np

from autokernel.data import RowNoise
from autokernel.expression import View
from autokernel.inference.pairs import PackedPairs
from autokernel.kernels import OnScale
from autokernel.typing import FloatArray, IntArray


class TrainingData:
    """Inputs X (n_samples, n_features), targets y (n_samples,), their noise, and pairs of views."""

    def __init__(self, X: FloatArray, y: FloatArray, noise: RowNoise | None = None) -> None:
        self.X, self.y = X, y
        self.noise = RowNoise.equal(len(y)) if noise is None else noise
        self.mean_square = float(np.average(y**2, weights=self.noise.influence)) if len(y) else 0.0
        self._pairs: dict[View, PackedPairs] = {}
        self._target: OnScale | None = None
        self._plain: TrainingData | None = None  # with the target as it was, None for these data

    def on(self, target: OnScale | None) -> "TrainingData":
        """Return the data with the target on a scale, None for the target as it was."""
        plain = self._plain or self
        if target == self._target:
            return self
        if target is None:
            return plain
        y, log_slopes = target.scale.forward_and_log_slope(plain.y)
        other = TrainingData(self.X, y, plain.noise.on_scale(log_slopes))
        other._pairs, other._target, other._plain = self._pairs, target, plain
        return other

    def take(self, rows: IntArray) -> "TrainingData":
        """Return the data of these rows."""
        plain = self._plain or self
        taken = TrainingData(plain.X[rows], plain.y[rows], plain.noise.take(rows))
        return taken.on(self._target)

    @property
    def definition(self) -> tuple[bytes, ...]:
        """All numbers that a fit depends on."""
        noise = self.noise
        every = self.X, self.y, noise.weights, noise.errors, noise.rounding
        return tuple(values.tobytes() for values in every)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_pairs": {}}  # which are computed again

    @property
    def rounding_by_target(self) -> tuple[FloatArray, FloatArray]:
        """Targets in order, and the variances of their rounding; one of them where all agree.

        On another scale it depends on the slope at the target.
        """
        rounding = self.noise.rounding
        if not len(rounding) or rounding.min() == rounding.max():
            return np.zeros(1), rounding[:1] if len(rounding) else np.zeros(1)
        order = np.argsort(self.y, kind="stable")
        return self.y[order], rounding[order]

    def pairs(self, view: View) -> PackedPairs:
        """Return the pairs of one view of a column, computed once."""
        if view not in self._pairs:
            self._pairs[view] = PackedPairs(np.ascontiguousarray(view(self.X)))
        return self._pairs[view]
