"""Starting points of the MAP search: from the priors and from the structure of the data."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import qmc

from autokernel.expression import Expression, slots_of
from autokernel.kernels import KernelParameter, Role, Unit
from autokernel.map.data_scales import DataScales
from autokernel.map.posterior import LogPosterior
from autokernel.typing import FloatArray

_TAILS = np.array([0.05, 0.95])  # prior quantiles that bound a parameter without a declared range
_FRACTIONS = (0.01, 3.0)  # default range of a squared-target parameter, in mean squares
_OF_SPACING = 0.1  # lengthscale of what was noise
_NOISE_LEFT = 0.25  # part of the noise variance that is still noise then
_FROM_PEAKS = 0.75  # fraction of the starting values of a period that are peaks


class StartingPoints:
    """Random starting points for the kernels of one data set.

    One half is drawn from the priors, by their inverse CDFs of a scrambled Sobol sequence. The
    other half is log-uniform over the ranges that the parameters declare: lengthscales from the
    median spacing of a column to its extent, and the noise over several decades. In both halves
    three of four periods are peaks of the periodogram of their column, if it has any, within the
    range that the period declares.
    """

    def __init__(self, scales: DataScales) -> None:
        self._scales = scales

    def draw(
        self, posterior: LogPosterior, n_starts: int, *, rng: np.random.Generator
    ) -> FloatArray:
        """Draw starting points of shape (n_starts, n_params), within the bounds of theta."""
        columns = [node.column for node in posterior.expression.nodes for _ in node.parameters]
        parameters = posterior.likelihood.parameters
        columns += [None] * (len(parameters) - len(columns))  # the likelihood's parameters
        quantiles = posterior.prior.quantile(np.tile(_TAILS[:, None], len(parameters)))
        ranges = [
            self._range(parameter, column, tails)
            for parameter, column, tails in zip(
                parameters, columns, np.exp(quantiles.T), strict=True
            )
        ]
        low, high = np.log(ranges).T
        n_prior = (n_starts + 1) // 2
        # Each half has its own sequence: every other point of one lies in the same half of an axis.
        theta = np.concatenate(
            [
                posterior.prior.quantile(_spread(n_prior, len(parameters), rng)),
                low + _spread(n_starts - n_prior, len(parameters), rng) * (high - low),
            ]
        )
        for entry, (parameter, column) in enumerate(zip(parameters, columns, strict=True)):
            if parameter.role == Role.PERIOD and column is not None:
                self._draw_periods(theta[:, entry], column, parameter.start, rng)
        return np.clip(theta, posterior.lower, posterior.upper)

    def take_from_noise(
        self, theta: FloatArray, expression: Expression, nodes: Sequence[int]
    ) -> None:
        """Let some nodes explain what was noise, in points (n_points, n_params) that are changed.

        Their lengthscale becomes a tenth of the spacing of the data, and their variance three
        quarters of that of the noise. What they add to the covariance is nearly diagonal, except
        between rows that have the same value in a column.
        """
        slots = slots_of(expression)
        for node, entries in (slots[number] for number in nodes):
            for entry, parameter in enumerate(node.parameters, start=entries.start):
                if parameter.role == Role.VARIANCE:
                    theta[:, entry] = theta[:, -1] + np.log1p(-_NOISE_LEFT)
                elif parameter.role == Role.LENGTHSCALE and node.column is not None:
                    spacing, _ = self._scales.spacing_and_extent(node.column)
                    theta[:, entry] = np.log(_OF_SPACING * spacing)
        theta[:, -1] += np.log(_NOISE_LEFT)

    def _draw_periods(
        self,
        theta: FloatArray,
        column: int,
        within: tuple[float, float] | None,
        rng: np.random.Generator,
    ) -> None:
        """Replace three of four log periods by those of peaks, with high peaks more often.

        ``within`` is the declared range, in extents of the column.
        """
        if within is None:
            periods = self._scales.periods(column)
        else:
            extent = self._scales.spacing_and_extent(column)[1]
            periods = self._scales.periods_within(column, *(extent * end for end in within))
        if len(periods) == 0:
            return
        weights = 1.0 / np.arange(1, len(periods) + 1)
        drawn = rng.choice(np.log(periods), size=len(theta), p=weights / weights.sum())
        replaced = rng.uniform(size=len(theta)) < _FROM_PEAKS
        theta[replaced] = drawn[replaced]

    def _range(
        self, parameter: KernelParameter, column: int | None, tails: FloatArray
    ) -> tuple[float, float]:
        """Return the range of a parameter's log-uniform draws, given the tails of its prior."""
        low, high = parameter.start or (0.0, 0.0)
        if parameter.unit == Unit.INPUT and column is not None:
            spacing, extent = self._scales.spacing_and_extent(column)
            return (low * extent, high * extent) if parameter.start else (spacing, extent)
        if parameter.unit == Unit.SQUARED_TARGET:
            low, high = parameter.start or _FRACTIONS
            return (low * self._scales.mean_square, high * self._scales.mean_square)
        return parameter.start or (float(tails[0]), float(tails[1]))


def _spread(n_points: int, n_axes: int, rng: np.random.Generator) -> FloatArray:
    """Draw points (n_points, n_axes) spread evenly over the open unit cube."""
    sequence = qmc.Sobol(n_axes, rng=rng)
    points = sequence.random_base2(max(n_points - 1, 0).bit_length())[:n_points]
    return np.clip(points, 1e-6, 1 - 1e-6)
