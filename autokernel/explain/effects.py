"""Effects of columns: the fitted function on average over rows, for any kernel.

Fix the columns U at values v, and average the function over background rows x_i with weights w_i
in all other columns: ``A_U(v) = sum_i w_i f(v in U, x_i elsewhere)``, on the scale of the target of
the best kernel. Effects are sums of such averages with signs: the main effect of a column a is
``A_a(v) - A``, where A fixes nothing, and the interaction of two columns is
``A_ab(v) - A_a(v) - A_b(v) + A``.

Averages of a Gaussian process are normal, and follow from their covariances. A kernel is a sum of
products of factors that have no column in common. In each product

``cov(A_U(v), A_W(v')) = C(v, v') sum_ij L(v, x_j) w_j M(x_j, x_i) w_i R(x_i, v')``,
``cov(A_U(v), f(z)) = K(v, z) sum_i w_i N(x_i, z)``,

where C has the factors of columns in both U and W, L those in U only, R those in W only, and M
those in neither; K has the factors in U, and N all others. A factor with columns inside and outside
of U needs all rows of the background for each point.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, reduce
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np

from autokernel.data import Inputs
from autokernel.expression import Addend, Expression, addends, n_kernel_params
from autokernel.inference import GlobalPredictor, Term, one_blas_thread, paired_covariance
from autokernel.kernels import MULTIPLY
from autokernel.typing import FloatArray, IntArray

MAX_BACKGROUND = 200  # rows over which a function is averaged
MAX_ALONE = 4  # choices of factors that are averaged one by one, before all of them are
NUMBERS_OF_BLOCK = 2**18  # in a matrix of points with knots
NUMBERS_BY_ROWS = 2**20  # in an array of points with all rows of the background

Subset = frozenset[int]


class Factor(NamedTuple):
    """All factors of a product that share columns."""

    expression: Expression
    entries: IntArray  #: (n_params,), of its parameters among those of the whole kernel

    @property
    def columns(self) -> Subset:
        """The columns on which it depends."""
        return self.expression.columns


@lru_cache(maxsize=32)
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


class Effect(NamedTuple):
    """A sum of averages of a function with signs, or of some of the products of its kernel."""

    signs: Mapping[Subset, int]  #: by the columns that are fixed
    numbers: Collection[int] | None = None  #: of the products, None for all


AVERAGE = Effect({frozenset(): 1})


def effect_of(columns: Iterable[int], numbers: Collection[int] | None = None) -> Effect:
    """Return the common effect of columns, the difference from the average."""
    return Effect({frozenset(columns): 1, frozenset(): -1}, numbers)


def interaction_of(columns: Collection[int]) -> Effect:
    """Return what the common effect of columns has besides the effects of fewer of them."""
    signs = {
        frozenset(some): (-1) ** (len(columns) - size)
        for size in range(len(columns), -1, -1)
        for some in combinations(columns, size)
    }
    return Effect(signs)


Cross = Callable[[int, int, str], FloatArray]
"""Covariances of a factor, by the numbers of its product and of itself, with named rows."""


class AveragedFunction:
    """A kernel with parameters, conditioned on data, as a function to average over rows.

    Points are rows (n, n_features) in the unit interval, of which an effect reads its columns. A
    value that is missing stands for the known ones, as in the kernels.

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
    All main effects take O(n_factors n_background n_knots) once, all interactions of two columns
    O(n_factors^2 n_background n_knots), and then a mean O(n_knots) and a variance O(n_knots^2) for
    each point.
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
        self.products = [
            [Term(one.expression, np.exp(theta[one.entries])) for one in product]
            for product in products_of(expression)
        ]
        self._columns = [
            frozenset(chain.from_iterable(one.columns for one in product))
            for product in self.products
        ]
        self._predictor, self._background, self._weights = predictor, background, weights
        self._knots, self._n_asked = predictor.knots, Counter[tuple[int, int]]()
        self._averages: dict[tuple[int, Subset], tuple[FloatArray, FloatArray]] = {}

    def total(self, number: int, column: int) -> float:
        """Return by what the factor for a column is multiplied, on average, in a product."""
        product = self.products[number]
        own = next(place for place, one in enumerate(product) if column in one.columns)
        return float(self._average(number, frozenset([own]))[1].sum())

    def mean(self, effect: Effect, X: FloatArray) -> FloatArray:
        """Compute the mean (n,) of an effect at points."""
        return self.means([effect], X)[0]

    @one_blas_thread()
    def means(self, effects: Sequence[Effect], X: FloatArray) -> FloatArray:
        """Compute the means (n_effects, n) of effects at points, each average once."""
        step = NUMBERS_OF_BLOCK // len(self._knots)
        blocks = [self._means_of_block(effects, X[rows]) for rows in _blocks(len(X), step)]
        return np.concatenate(blocks, axis=1)

    def _means_of_block(self, effects: Sequence[Effect], X: FloatArray) -> FloatArray:
        points, others = self._points(X)
        cross = self._crosses(points, others)

        @cache
        def mean(number: int, own: Subset) -> FloatArray:
            return self._with_knots(number, own, points, cross) @ self._predictor.weights

        found = np.zeros((len(effects), len(X)))
        for place, effect in enumerate(effects):
            for number, signs in self._signed(effect):
                for own, sign in signs:
                    found[place] += sign * mean(number, own)
        return found

    @one_blas_thread()
    def joint(self, effect: Effect, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the mean (n,) and the covariance (n, n) of an effect at points."""
        return self._predictor.conditioned(*self._prior(effect, X, is_joint=True))

    @one_blas_thread()
    def at(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the mean (n,) and the variance (n,) of the function itself at points."""
        return self._predictor.function(X)

    @one_blas_thread()
    def moments(self, effect: Effect, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the mean (n,) and the variance (n,) of an effect at points."""
        mean, variance = np.empty(len(X)), np.empty(len(X))
        for rows in _blocks(len(X), NUMBERS_OF_BLOCK // len(self._knots)):
            cross, prior = self._prior(effect, X[rows], is_joint=False)
            mean[rows] = cross @ self._predictor.weights
            variance[rows] = self._predictor.variance_of_function(cross, prior)
        return mean, variance

    def _prior(
        self, effect: Effect, X: FloatArray, *, is_joint: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Compute prior covariances with the knots (n, n_knots), and (n, n) or variances (n,)."""
        points, others = self._points(X)
        cross = self._crosses(points, others)
        with_knots = np.zeros((len(X), len(self._knots)))
        prior = np.zeros((len(X), len(X)) if is_joint else len(X))
        for number, signs in self._signed(effect):
            for place, (own, sign) in enumerate(signs):
                with_knots += sign * self._with_knots(number, own, points, cross)
                for other, other_sign in signs[place:]:
                    between = self._between(number, own, other, points, cross, is_joint=is_joint)
                    if other != own:  # the covariance of the other with this one
                        between = between + between.T
                    prior += sign * other_sign * between
        return with_knots, prior

    def _signed(self, effect: Effect) -> Iterator[tuple[int, list[tuple[Subset, int]]]]:
        """Yield the averages of an effect in each product that do not cancel, the largest first."""
        for number, columns in enumerate(self._columns):
            if effect.numbers is None or number in effect.numbers:
                signs = Counter[Subset]()
                for own, sign in effect.signs.items():
                    signs[own & columns] += sign
                left = [(own, sign) for own, sign in signs.items() if sign]
                yield number, sorted(left, key=lambda one: -len(one[0]))

    def _points(self, X: FloatArray) -> tuple[Inputs, Inputs]:
        """Return points twice, as rows whose missing values are those of no other row."""
        background, n = self._background, len(self._background)
        rows = -1 - n - np.arange(2 * len(X)).reshape(2, -1)
        first, second = (Inputs(background.columns, X, own) for own in rows)
        return first, second

    def _crosses(self, points: Inputs, others: Inputs) -> Cross:
        background = self._background
        sides = {
            "knots": (points, self._knots),
            "rows": (points, background),
            "points": (points, others),
            "rows and points": (background, others),
            "rows and rows": (background, background),
        }

        @cache
        def cross(number: int, place: int, name: str) -> FloatArray:
            term = self.products[number][place]
            if name == "same points":
                return paired_covariance(term.expression, points, others).forward(term.params)
            return term.cross(*sides[name])

        return cross

    def _inside(self, number: int, own: Subset) -> Subset | None:
        """Return the places of the factors of columns, None if one has other columns too."""
        every = enumerate(self.products[number])
        places = {place: one for place, one in every if not own.isdisjoint(one.columns)}
        if not all(own.issuperset(one.columns) for one in places.values()):
            return None
        return frozenset(places)

    def _average(self, number: int, inside: Subset) -> tuple[FloatArray, FloatArray]:
        """Average the product of all factors but some over the background.

        Returns their sums with the knots (n_knots,), and with the rows of the background
        (n_background,). If many choices of as many factors are asked for, all are computed.
        """
        if (number, inside) not in self._averages:
            n, (background, knots, w) = len(inside), (self._background, self._knots, self._weights)
            self._n_asked[number, n] += 1
            has_all = n < 2 or self._n_asked[number, n] > MAX_ALONE
            found: dict[Subset, list[FloatArray]] = {}
            blocks = [knots[rows] for rows in _blocks(len(knots), NUMBERS_OF_BLOCK // len(w))]
            for rows in (*blocks, background):
                matrices = [one.cross(background, rows) for one in self.products[number]]
                before = np.broadcast_to(w[:, None], (len(w), len(rows)))
                if not has_all:
                    others = [one for place, one in enumerate(matrices) if place not in inside]
                    average = reduce(np.multiply, others, before).sum(axis=0)
                    found.setdefault(inside, []).append(average)
                    continue
                after = [np.ones(before.shape)]
                for matrix in matrices[::-1]:
                    after.insert(0, matrix * after[0])
                for size in {0, 1} if n < 2 else {n}:
                    for places, average in _leave_out(matrices, size, before, after):
                        found.setdefault(places, []).append(average)
            for places, (*parts, of_rows) in found.items():
                self._averages[number, places] = np.concatenate(parts), w * of_rows
        return self._averages[number, inside]

    def _with_knots(self, number: int, own: Subset, points: Inputs, cross: Cross) -> FloatArray:
        """Compute the covariances (n, n_knots) of an average, (1, n_knots) if nothing is fixed."""
        inside = self._inside(number, own)
        if inside is not None:
            factors = (cross(number, place, "knots") for place in sorted(inside))
            return reduce(np.multiply, factors, self._average(number, inside)[0][None])
        rows, knots, w = self._moved(own, points), self._knots, self._weights
        found = [
            w @ self._product(number, rows[some], knots, np.s_[..., None], ...)
            for some in _blocks(len(rows), NUMBERS_BY_ROWS // (len(knots) * len(w)))
        ]
        return np.concatenate(found)

    def _between(
        self,
        number: int,
        own: Subset,
        other: Subset,
        points: Inputs,
        cross: Cross,
        *,
        is_joint: bool,
    ) -> FloatArray:
        """Compute the covariances of two averages at points, or at the same points only."""
        first, second = self._inside(number, own), self._inside(number, other)
        if first is None or second is None:
            return self._by_rows(number, own, other, points, is_joint=is_joint)

        def product(places: Subset, name: str, ones: FloatArray) -> FloatArray:
            return reduce(np.multiply, (cross(number, one, name) for one in sorted(places)), ones)

        w = self._weights
        C = product(first & second, "points" if is_joint else "same points", np.ones(1))
        L = product(first - second, "rows", np.ones((1, len(w))))
        if second <= first:
            MR = self._average(number, first)[1][:, None]
        else:
            outside = frozenset(range(len(self.products[number]))) - first - second
            M = product(outside, "rows and rows", np.outer(w, w))
            MR = M @ product(second - first, "rows and points", np.ones((len(w), 1)))
        return C * (L @ MR if is_joint else np.sum(L * MR.T, axis=1))

    def _by_rows(
        self, number: int, own: Subset, other: Subset, points: Inputs, *, is_joint: bool
    ) -> FloatArray:
        """Compute the covariances of two averages by all rows of the background of each point."""
        left, right, w = self._moved(own, points), self._moved(other, points), self._weights
        n, m = len(left), len(right)
        i, j = np.divmod(np.arange(n * m), m) if is_joint else (np.arange(n), np.arange(n) % m)
        found = [
            self._product(number, left[i[some]], right[j[some]], np.s_[:, :, None], np.s_[:, None])
            @ w
            @ w
            for some in _blocks(len(i), NUMBERS_BY_ROWS // len(w) ** 2)
        ]
        return np.concatenate(found).reshape((n, m) if is_joint else n)

    def _moved(self, own: Subset, points: Inputs) -> Inputs:
        """Return the background with the fixed columns of each point, (n, n_background)."""
        background, points = self._background, points if own else points[:1]
        values = np.tile(background.values, (len(points), 1, 1))
        values[..., sorted(own)] = points.values[:, None, sorted(own)]
        return replace(background, values=values, rows=np.tile(background.rows, (len(points), 1)))

    def _product(self, number: int, X: Inputs, Z: Inputs, of_x: object, of_z: object) -> FloatArray:
        every = (
            paired_covariance(one.expression, X, Z, of_x, of_z).forward(one.params)
            for one in self.products[number]
        )
        return reduce(np.multiply, every)


def _blocks(n: int, step: int) -> list[slice]:
    step = max(1, step)
    return [slice(start, start + step) for start in range(0, n, step)]


def _leave_out(
    matrices: Sequence[FloatArray],
    n: int,
    before: FloatArray,
    after: Sequence[FloatArray],
    first: int = 0,
) -> Iterator[tuple[Subset, FloatArray]]:
    """Yield all choices of n matrices with the sum over rows of the product of the others.

    Each is multiplied by ``before`` and taken from the ``first`` one on; ``after`` holds the
    products of all matrices from each on.
    """
    if n == 0:
        yield frozenset(), np.einsum("ij,ij->j", before, after[first])
        return
    for place in range(first, len(matrices) - n + 1):
        for chosen, average in _leave_out(matrices, n - 1, before, after, place + 1):
            yield chosen | {place}, average
        before = before * matrices[place]
