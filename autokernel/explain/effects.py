"""Effects of columns: the fitted function on average over rows, for any kernel.

The main effect of a column j at a value v is ``mean_i f(v, x_i without j) - mean_i f(x_i)``, over
background rows x_i, on the scale of the target of the best kernel. An average of values of a
Gaussian process has a normal distribution that follows from its covariances with the data. Each
kernel is a sum of products of kernels on one column each, so that averages over rows need no grid
of all columns.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np

from autokernel.data import Inputs
from autokernel.expression import Addend, Expression, addends, n_kernel_params
from autokernel.inference import GlobalPredictor, cross_covariance
from autokernel.kernels import MULTIPLY
from autokernel.typing import FloatArray, IntArray

MAX_BACKGROUND = 200  # rows over which a function is averaged


class Factor(NamedTuple):
    """All factors of a product that share columns."""

    expression: Expression
    entries: IntArray  #: (n_params,), of its parameters among those of the whole kernel

    @property
    def columns(self) -> frozenset[int]:
        """The columns on which it depends."""
        return self.expression.columns

    def cross(self, theta: FloatArray, X: Inputs, Z: Inputs) -> FloatArray:
        """Compute the covariances (n, m) between rows X and rows Z."""
        return cross_covariance(self.expression, X, Z).forward(np.exp(theta[self.entries]))


def products_of(expression: Expression) -> list[list[Factor]]:
    """Write a kernel as a sum of products of factors that have no column in common."""
    return [_factors_of(addend) for addend in addends(expression)]


def _factors_of(addend: Addend) -> list[Factor]:
    found: list[Factor] = []
    left = addend.entries
    for expression in addend.expression.terms(MULTIPLY):
        own, left = np.split(left, [n_kernel_params(expression)])
        factor = Factor(expression, own)
        for other in [one for one in found if one.columns & factor.columns]:
            found.remove(other)
            entries = np.append(other.entries, factor.entries)
            factor = Factor(other.expression * factor.expression, entries)
        found.append(factor)
    return found


class Sums(NamedTuple):
    """What the average over the background makes of all factors of a product but some.

    The factors that are left out have a covariance k with knots z and rows b of the background.
    """

    of_knots: FloatArray  #: (n_knots,), by which k(., z) is multiplied
    of_rows: FloatArray  #: (n_background,), with which k(., b) is summed
    total: float  #: by which k itself is multiplied
    average_at_knots: FloatArray  #: (n_knots,), covariance of the whole average with the knots
    average: float  #: variance of the whole average


class AveragedFunction:
    """A kernel with parameters, conditioned on data, as a function to average over rows.

    Parameters
    ----------
    expression : Expression
        The kernel.
    theta : ndarray of shape (n_params,)
        Logs of its parameters, the noise variance last.
    predictor : GlobalPredictor
        The kernel, conditioned on data.
    background : Inputs
        Rows over which the function is averaged; their missing values are draws of their columns.
    weights : ndarray of shape (n_background,)
        Weights of these rows, which sum to one.

    Notes
    -----
    Construction takes O(n_factors n_background n_knots), and the effect of a column at n points
    O(n n_knots^2).
    """

    def __init__(
        self,
        expression: Expression,
        theta: FloatArray,
        predictor: GlobalPredictor,
        *,
        background: Inputs,
        weights: FloatArray,
    ) -> None:
        self.products = products_of(expression)
        self._theta, self._predictor = theta, predictor
        self._background, self._weights = background, weights
        knots = predictor.knots
        self._sums: dict[tuple[int, int], Sums] = {}
        for number, product in enumerate(self.products):
            crosses = [one.cross(theta, background, knots) for one in product]
            covariances = [one.cross(theta, background, background) for one in product]
            for place in range(len(product)):
                self._sums[number, place] = self._sums_of(crosses, covariances, [place])

    def average(self) -> float:
        """Compute the mean of the average over the background."""
        every = [self._sums[number, 0].average_at_knots for number in range(len(self.products))]
        cross = sum(every, start=np.zeros(len(self._predictor.knots)))
        return float(cross @ self._predictor.weights)

    def total(self, number: int, column: int) -> float:
        """Return by what the factor for a column is multiplied, on average, in a product."""
        return next(
            self._sums[number, place].total
            for place, one in enumerate(self.products[number])
            if column in one.columns
        )

    def mean(
        self, columns: Sequence[int], points: FloatArray, numbers: Collection[int] | None = None
    ) -> FloatArray:
        """Compute only the mean (n,) of an effect, which takes O(n_knots) for each point."""
        return self._sum(columns, points, numbers, with_prior=False)[0] @ self._predictor.weights

    def effect(
        self,
        columns: Sequence[int],
        points: FloatArray,
        numbers: Collection[int] | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the effect of columns at points (n, n_columns), in the unit interval.

        It is the average over the background with these values of the columns, less that with the
        values of the background. With ``numbers`` it is that of some of the products.

        Returns
        -------
        mean : ndarray of shape (n,)
        covariance : ndarray of shape (n, n)
        """
        return self._predictor.conditioned(*self._sum(columns, points, numbers, with_prior=True))

    def _sum(
        self,
        columns: Sequence[int],
        points: FloatArray,
        numbers: Collection[int] | None,
        *,
        with_prior: bool,
    ) -> tuple[FloatArray, FloatArray]:
        """Add up the covariances of an effect with the knots and with itself over products.

        Products without the columns are the same at all points, and on average.
        """
        n = len(points)
        cross = np.zeros((n, len(self._predictor.knots)))
        prior = np.zeros((n, n) if with_prior else 0)
        for number, product in enumerate(self.products):
            own = [place for place, one in enumerate(product) if one.columns & {*columns}]
            if own and (numbers is None or number in numbers):
                of_knots, of_points = self._covariances(
                    number, own, columns, points, with_prior=with_prior
                )
                cross += of_knots
                prior += of_points
        return cross, prior

    def _covariances(
        self,
        number: int,
        own: Sequence[int],
        columns: Sequence[int],
        points: FloatArray,
        *,
        with_prior: bool,
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the covariances of an effect in one product with the knots and with itself."""
        product, background, knots = self.products[number], self._background, self._predictor.knots
        factors = [product[place] for place in own]
        if any(one.columns - {*columns} for one in factors):
            return self._entangled(product, columns, points, with_prior=with_prior)
        if len(own) == 1:
            sums = self._sums[number, own[0]]
        else:
            crosses = [one.cross(self._theta, background, knots) for one in product]
            covariances = [one.cross(self._theta, background, background) for one in product]
            sums = self._sums_of(crosses, covariances, own)
        values = np.zeros((len(points), background.values.shape[1]))
        values[:, list(columns)] = points
        rows = background.columns.scaled(values)
        cross = self._product(factors, rows, knots) * sums.of_knots - sums.average_at_knots
        if not with_prior:
            return cross, np.zeros(0)
        prior = self._product(factors, rows, rows) * sums.total
        with_average = self._product(factors, rows, background) @ sums.of_rows
        return cross, prior - with_average[:, None] - with_average + sums.average

    def _sums_of(
        self,
        crosses: Sequence[FloatArray],
        covariances: Sequence[FloatArray],
        own: Sequence[int],
    ) -> Sums:
        """Average all factors but some over the background."""
        with_knots = np.broadcast_to(self._weights[:, None], crosses[0].shape)
        with_rows = np.outer(self._weights, self._weights)
        for place in range(len(crosses)):
            if place not in own:
                with_knots = with_knots * crosses[place]
                with_rows = with_rows * covariances[place]
        at_knots, at_rows = with_knots, with_rows
        for place in own:
            at_knots, at_rows = at_knots * crosses[place], at_rows * covariances[place]
        return Sums(
            with_knots.sum(axis=0),
            with_rows.sum(axis=0),
            float(with_rows.sum()),
            at_knots.sum(axis=0),
            float(at_rows.sum()),
        )

    def _entangled(
        self,
        product: Sequence[Factor],
        columns: Sequence[int],
        points: FloatArray,
        *,
        with_prior: bool,
    ) -> tuple[FloatArray, FloatArray]:
        """Do the same where a factor has other columns too, by all rows of the background."""
        background, knots, n = self._background, self._predictor.knots, len(points)
        values = np.tile(background.values, (n + 1, 1, 1))  # the last block is the background
        values[:n, :, list(columns)] = points[:, None]
        rows = replace(background, values=values, rows=np.tile(background.rows, (n + 1, 1))).flat
        averages = np.kron(np.eye(n + 1), self._weights)
        contrasts = averages[:n] - averages[n]
        cross = contrasts @ self._product(product, rows, knots)
        if not with_prior:
            return cross, np.zeros(0)
        return cross, contrasts @ self._product(product, rows, rows) @ contrasts.T

    def _product(self, factors: Sequence[Factor], X: Inputs, Z: Inputs) -> FloatArray:
        """Compute the product of factors between rows X and rows Z."""
        first, *others = (one.cross(self._theta, X, Z) for one in factors)
        return reduce(np.multiply, others, first)
