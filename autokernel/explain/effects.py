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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import combinations
from typing import NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from autokernel.data import Inputs
from autokernel.expression import Expression, Tree, addends, n_kernel_params
from autokernel.inference import ExactPredictor, GlobalPredictor, Term, one_blas_thread
from autokernel.kernels import MULTIPLY
from autokernel.typing import FloatArray, IntArray

MAX_BACKGROUND = 200  # rows over which a function is averaged
MAX_JOINT = 128  # points whose covariances are computed together, if only variances are needed
NUMBERS_OF_BLOCK = 2**18  # in a matrix of points with knots

Subset = frozenset[int]
Factors = frozenset[Term]


class Factor(NamedTuple):
    """All factors of a product that share columns."""

    number: int  #: of the product in the kernel
    expression: Tree
    entries: IntArray  #: (n_params,), of its parameters among those of the whole kernel


@lru_cache(maxsize=32)
def products_of(expression: Expression) -> list[list[Factor]]:
    """Write a kernel as a sum of products of factors that have no column in common."""
    products = []
    for number, (addend, left) in enumerate(addends(expression)):
        found: list[Factor] = []
        for term in addend.terms(MULTIPLY):
            own, left = np.split(left, [n_kernel_params(term)])
            factor = Factor(number, term, own)
            for other in [one for one in found if one.expression.columns & term.columns]:
                found.remove(other)
                entries = np.append(other.entries, factor.entries)
                factor = Factor(number, other.expression * factor.expression, entries)
            found.append(factor)
        products.append(found)
    return products


class Effect(NamedTuple):
    """A sum of averages of a function with signs, or of some of the products of its kernel."""

    columns: tuple[int, ...]  #: on which it depends
    signs: Mapping[Subset, int]  #: by the columns that are fixed
    numbers: Collection[int] | None = None  #: of the products, None for all

    @property
    def effect(self) -> "Effect":
        """Itself, as parts and interactions have one."""
        return self


AVERAGE = Effect((), {frozenset(): 1})


def effect_of(columns: Iterable[int], numbers: Collection[int] | None = None) -> Effect:
    """Return the common effect of columns, the difference from the average."""
    columns = tuple(columns)
    return Effect(columns, {frozenset(columns): 1, frozenset(): -1}, numbers)


def interaction_of(columns: Collection[int]) -> Effect:
    """Return what the common effect of columns has besides the effects of fewer of them."""
    signs = {
        frozenset(some): (-1) ** (len(columns) - size)
        for size in range(len(columns), -1, -1)
        for some in combinations(columns, size)
    }
    return Effect(tuple(columns), signs)


class _Points:
    """Points, and the covariances of factors between them and other rows, each computed once."""

    def __init__(self, X: FloatArray, background: Inputs, knots: Inputs) -> None:
        # twice, as rows whose missing values are those of no other row
        numbers = -1 - len(background) - np.arange(2 * len(X)).reshape(2, -1)
        self.first, second = (Inputs(background.columns, X, own) for own in numbers)
        self._sides = {
            "knots": (self.first, knots),
            "rows": (self.first, background),
            "points": (self.first, second),
            "rows and points": (background, second),
            "rows and rows": (background, background),
        }
        self._known: dict[tuple[Term, str], FloatArray] = {}

    def cross(self, term: Term, name: str) -> FloatArray:
        """Return the covariances of a factor between two sides."""
        if (term, name) not in self._known:
            self._known[term, name] = term.cross(*self._sides[name])
        return self._known[term, name]


class AveragedFunction:
    """A kernel with parameters, conditioned on data, as a function to average over rows.

    Points are rows (n, n_features) in the unit interval, of which an effect reads its columns. A
    value that is missing stands for the known ones, as in the kernels; those of the background are
    draws of their columns. All main effects take O(n_factors n_background n_knots) once, all
    interactions of two columns O(n_factors^2 n_background n_knots), and then a mean O(n_knots) and
    a variance O(n_knots^2) for each point.
    """

    def __init__(
        self,
        expression: Expression,
        theta: FloatArray,  # (n_params,), logs of its parameters, the noise variance last
        predictor: GlobalPredictor,  # which is conditioned on data
        *,
        background: Inputs,  # rows over which the function is averaged
        weights: FloatArray,  # (n_background,), of these rows, which sum to one
    ) -> None:
        self.products = [
            [Term(one.expression, np.exp(theta[one.entries])) for one in product]
            for product in products_of(expression)
        ]
        self.predictor, self._knots = predictor, predictor.knots
        self._background, self._weights = background, weights
        self._averages: dict[tuple[int, Factors], tuple[FloatArray, FloatArray]] = {}

    def total(self, number: int, column: int) -> float:
        """Return by what the factor for a column is multiplied, on average, in a product."""
        own = frozenset(one for one in self.products[number] if column in one.columns)
        return float(self._average(number, own)[1].sum())

    def mean(self, effect: Effect, X: FloatArray) -> FloatArray:
        """Compute the mean (n,) of an effect at points."""
        return self.means([effect], X)[0]

    @one_blas_thread()
    def means(self, effects: Sequence[Effect], X: FloatArray) -> FloatArray:
        """Compute the means (n_effects, n) of effects at points, each average once."""
        every = [one for effect in effects for one in self._signed(effect)]
        for number in range(len(self.products)):
            inside = (self._inside(number, own) for at, own, _ in every if at == number)
            self._find_averages(number, filter(None, inside))
        found = np.zeros((len(effects), len(X)))
        for rows in gen_batches(len(X), max(1, NUMBERS_OF_BLOCK // len(self._knots))):
            points = _Points(X[rows], self._background, self._knots)
            known: dict[tuple[int, Subset], FloatArray] = {}
            for effect, mean in zip(effects, found, strict=True):
                for number, own, sign in self._signed(effect):
                    if (number, own) not in known:
                        cross = self._with_knots(number, own, points)
                        known[number, own] = cross @ self.predictor.weights
                    mean[rows] += sign * known[number, own]
        return found

    @one_blas_thread()
    def joint(self, effect: Effect, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the mean (n,) and the covariance (n, n) of an effect at points."""
        points, every = _Points(X, self._background, self._knots), self._signed(effect)
        with_knots, prior = self._crosses(every, points), np.zeros((len(X), len(X)))
        for place, (number, own, sign) in enumerate(every):
            for _, other, other_sign in (one for one in every[place:] if one[0] == number):
                between = self._between(number, own, other, points)
                if other != own:  # the covariance of the other with this one
                    between = between + between.T
                prior += sign * other_sign * between
        return self.predictor.conditioned(with_knots, prior)

    @one_blas_thread()
    def without_each(self, effect: Effect, X: FloatArray) -> FloatArray:
        """Compute the means (n, n_knots) at points if each row of the data is left out in turn.

        The predictor is exact, and its parameters are those of all rows. O(n_knots^3).
        """
        assert isinstance(self.predictor, ExactPredictor)
        P, weights = self.predictor.precision(), self.predictor.weights
        with_knots = self._crosses(self._signed(effect), _Points(X, self._background, self._knots))
        return (with_knots @ weights)[:, None] - with_knots @ P * (weights / np.diag(P))

    def _crosses(self, every: Iterable[tuple[int, Subset, int]], points: _Points) -> FloatArray:
        """Compute the covariances (n, n_knots) of a sum of averages with the knots."""
        found = (sign * self._with_knots(number, own, points) for number, own, sign in every)
        return sum(found, start=np.zeros((len(points.first), len(self._knots))))

    def moments(self, effect: Effect, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the mean (n,) and the variance (n,) of an effect at points."""
        every = (self._inside(number, own) for number, own, _ in self._signed(effect))
        blocks = gen_batches(len(X), 1 if None in every else MAX_JOINT)
        means, covariances = zip(*(self.joint(effect, X[rows]) for rows in blocks), strict=True)
        variances = np.concatenate([np.diag(one) for one in covariances])
        return np.concatenate(means), np.maximum(variances, 0.0)

    def _signed(self, effect: Effect) -> list[tuple[int, Subset, int]]:
        """List the averages of an effect in each product that do not cancel, the largest first."""
        found = []
        for number, product in enumerate(self.products):
            if effect.numbers is None or number in effect.numbers:
                columns = frozenset(column for one in product for column in one.columns)
                signs = Counter[Subset]()
                for own, sign in effect.signs.items():
                    signs[own & columns] += sign
                every = sorted(signs.items(), key=lambda one: -len(one[0]))
                found += [(number, own, sign) for own, sign in every if sign]
        return found

    def _inside(self, number: int, own: Subset) -> Factors | None:
        """Return the factors of columns, None if one has other columns too."""
        inside = frozenset(one for one in self.products[number] if not own.isdisjoint(one.columns))
        return inside if all(own.issuperset(one.columns) for one in inside) else None

    def _average(self, number: int, inside: Factors) -> tuple[FloatArray, FloatArray]:
        """Average all factors but some: with the knots (n_knots,), and with the background."""
        if (number, inside) not in self._averages:
            self._find_averages(number, [inside])
        return self._averages[number, inside]

    def _find_averages(self, number: int, wanted: Iterable[Factors]) -> None:
        """Compute the averages of all factors but some, of all, and of all but each one."""
        product, knots, w = self.products[number], self._knots, self._weights
        every = dict.fromkeys([frozenset(), *(frozenset([one]) for one in product), *wanted])
        found: dict[Factors, list[FloatArray]] = {
            inside: [] for inside in every if (number, inside) not in self._averages
        }
        slices = gen_batches(len(knots), max(1, NUMBERS_OF_BLOCK // len(w)))
        for rows in (*map(knots.__getitem__, slices), self._background) if found else ():
            matrices = [one.cross(self._background, rows) for one in product]
            ones = np.ones((len(w), len(rows)))
            before, after = ones * w[:, None], [ones]  # products of the matrices on either side
            for matrix in matrices[::-1]:
                after.insert(0, matrix * after[0])
            for start in range(len(product)):
                for inside, parts in found.items():
                    places = [place for place, one in enumerate(product) if one in inside]
                    first, last = (places[0], places[-1]) if places else (0, -1)
                    if first == start:
                        between = [matrices[n] for n in range(first, last) if n not in places]
                        others = reduce(np.multiply, between, before)
                        parts.append(np.einsum("ij,ij->j", others, after[last + 1]))
                before *= matrices[start]
        for inside, (*parts, of_rows) in found.items():
            self._averages[number, inside] = np.concatenate(parts), w * of_rows

    def _with_knots(self, number: int, own: Subset, points: _Points) -> FloatArray:
        """Compute the covariances (n, n_knots) of an average, (1, n_knots) if nothing is fixed."""
        if (inside := self._inside(number, own)) is not None:
            average = self._average(number, inside)[0][None]
            return self._product(number, inside, points, "knots", average)
        return self._by_rows(number, self._moved(own, points), self._knots, np.ones(1))

    def _between(self, number: int, own: Subset, other: Subset, points: _Points) -> FloatArray:
        """Compute the covariances (n, n) of two averages, or fewer that broadcast to them."""
        first, second, w = self._inside(number, own), self._inside(number, other), self._weights
        if first is None or second is None:
            right = self._moved(other, points).flat
            return self._by_rows(number, self._moved(own, points), right, w)
        C = self._product(number, first & second, points, "points", np.ones(1))
        L = self._product(number, first - second, points, "rows", np.ones((1, len(w))))
        if second <= first:
            return C * (L @ self._average(number, first)[1][:, None])
        outside = frozenset(self.products[number]) - first - second
        M = self._product(number, outside, points, "rows and rows", np.outer(w, w))
        R = self._product(number, second - first, points, "rows and points", np.ones((len(w), 1)))
        return C * (L @ (M @ R))

    def _product(
        self, number: int, some: Factors, points: _Points, name: str, start: FloatArray
    ) -> FloatArray:
        """Multiply a start by the covariances of some factors between two sides."""
        factors = (points.cross(one, name) for one in self.products[number] if one in some)
        return reduce(np.multiply, factors, start)

    def _moved(self, own: Subset, points: _Points) -> Inputs:
        """Return the background with the fixed columns of each point, (n, n_background)."""
        background, first = self._background, points.first if own else points.first[:1]
        values = np.tile(background.values, (len(first), 1, 1))
        values[..., sorted(own)] = first.values[:, None, sorted(own)]
        return replace(background, values=values, rows=np.tile(background.rows, (len(first), 1)))

    def _by_rows(self, number: int, X: Inputs, Z: Inputs, weights: FloatArray) -> FloatArray:
        """Compute the covariances (n, m) of averages over rows X (n, n_background) and Z (m k).

        The ``weights`` (k,) are those of the rows of Z in each of the m averages.
        """
        found = []
        for rows in map(X.__getitem__, range(len(X))):
            K = reduce(np.multiply, (one.cross(rows, Z) for one in self.products[number]))
            found.append((self._weights @ K).reshape(-1, len(weights)) @ weights)
        return np.array(found)
