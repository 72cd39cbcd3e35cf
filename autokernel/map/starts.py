"""Starting points of the MAP search: from the priors and from the structure of the data."""

from collections.abc import Mapping

import numpy as np
from scipy.stats import qmc

from autokernel.expression import Expression, Leaf, leaf_slots
from autokernel.map.data_scales import DataScales
from autokernel.map.posterior import LogPosterior
from autokernel.typing import FloatArray

_SPREAD: Mapping[str, tuple[float, float]] = {  # of log-uniform draws
    "alpha": (0.01, 5.0),
    "phase": (0.02, 3.0),  # lengthscale of PER: it has no unit
}
_SPREAD_OF_SQUARE: Mapping[str, tuple[float, float]] = {  # as parts of the target's mean square
    "variance": (0.01, 3.0),
    "offset": (0.03, 3.0),
    "noise_variance": (1e-4, 0.5),
}


class StartingPoints:
    """Draws of theta for the kernels of one data set.

    One half comes from the priors, as a scrambled Sobol sequence through their inverse CDFs. The
    other is log-uniform between the scales of the data: lengthscales from the median spacing of a
    column to its extent, noise across decades. In both halves three of four periods are peaks of
    the periodogram of their column, where it has any.
    """

    def __init__(self, scales: DataScales) -> None:
        self._scales = scales

    def draw(
        self,
        expression: Expression,
        posterior: LogPosterior,
        n_starts: int,
        *,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Draw starting points of shape (n_starts, n_params), within the bounds of theta."""
        names = posterior.parameter_names
        leaves = [leaf for leaf, place in leaf_slots(expression) for _ in names[place]]
        ranges = [self._range(name, leaf) for name, leaf in zip(names, leaves, strict=False)]
        low, high = np.log([*ranges, self._part_of_square("noise_variance")]).T
        n_prior = (n_starts + 1) // 2
        # a sequence for each half: every other point of one sequence lies in half of an axis
        theta = np.concatenate(
            [
                posterior.prior.quantile(_spread(n_prior, len(names), rng)),
                low + _spread(n_starts - n_prior, len(names), rng) * (high - low),
            ]
        )
        for place, leaf in enumerate(leaves):
            if names[place] == "period":
                self._draw_periods(theta[:, place], leaf.column, rng)
        return np.clip(theta, posterior.lower, posterior.upper)

    def _draw_periods(self, theta: FloatArray, column: int, rng: np.random.Generator) -> None:
        """Replace three of four log periods by those of peaks, high peaks more often."""
        periods = self._scales.periods(column)
        if len(periods) == 0:
            return
        weights = 1.0 / np.arange(1, len(periods) + 1)
        drawn = rng.choice(np.log(periods), size=len(theta), p=weights / weights.sum())
        replaced = rng.uniform(size=len(theta)) < 0.75
        theta[replaced] = drawn[replaced]

    def _range(self, name: str, leaf: Leaf) -> tuple[float, float]:
        """Range of the log-uniform draws of a leaf's parameter."""
        if name == "lengthscale" and leaf.kernel == "PER":
            return _SPREAD["phase"]
        if name in ("lengthscale", "period"):
            return self._scales.spacing_and_extent(leaf.column)
        return _SPREAD[name] if name in _SPREAD else self._part_of_square(name)

    def _part_of_square(self, name: str) -> tuple[float, float]:
        """Range of a parameter in the unit of the target squared."""
        low, high = _SPREAD_OF_SQUARE[name]
        return (low * self._scales.mean_square, high * self._scales.mean_square)


def _spread(n_points: int, n_axes: int, rng: np.random.Generator) -> FloatArray:
    """Draw points (n_points, n_axes) spread evenly over the open unit cube."""
    sequence = qmc.Sobol(n_axes, rng=rng)
    points = sequence.random_base2(max(n_points - 1, 0).bit_length())[:n_points]
    return np.clip(points, 1e-6, 1 - 1e-6)
