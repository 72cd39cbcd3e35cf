"""How kernels are fitted to many rows, and how they predict then."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from autokernel.expression import NOISE, Expression
from autokernel.inference import (
    ExactLikelihood,
    InducingLikelihood,
    Likelihood,
    NeighbourLikelihood,
    TrainingData,
    choose_inducing,
    draw_neighbourhoods,
)
from autokernel.inference.base import MakePredictor
from autokernel.inference.exact import ExactPredictor
from autokernel.inference.inducing import InducingPredictor
from autokernel.inference.neighbours import NeighbourPredictor
from autokernel.typing import FloatArray

_N_HEAD = 500  # rows whose joint density is exact in a likelihood of neighbours
_N_NEIGHBOURS = 30  # in such a likelihood
_FEW_BLOCKS, _MANY_BLOCKS = 1000, 4000  # rows that stand for all others, in the race and after it
_FEW_ROWS, _MANY_ROWS = 2**11, 2**13  # rows of a bound, in the race and after it
_LADDER = (32, 64, 128, 256)  # numbers of neighbours of a prediction
_MOST_EXACT = 2**13  # rows up to which predictions are exact


class Likelihoods(NamedTuple):
    """An approximate likelihood to climb, and that of all rows."""

    of_some: Likelihood
    n_rows: int  # of which it speaks
    of_all: Likelihood
    rows_for_each: float = 1.0  # of these, for each one that enters it


class Approximation(ABC):
    """How kernels are fitted to many rows, and how they may predict."""

    text: ClassVar[str]  # in a sentence

    @abstractmethod
    def likelihoods(
        self,
        expression: Expression,
        theta: FloatArray,
        data: TrainingData,
        *,
        thorough: bool,
        rng: np.random.Generator,
    ) -> Likelihoods:
        """Build likelihoods near the log parameters ``theta``, of more rows if ``thorough``."""

    @property
    @abstractmethod
    def probe(self) -> MakePredictor:
        """A cheap way to predict, by which parameters are compared."""

    @abstractmethod
    def ladder(self, n_samples: int) -> Sequence[MakePredictor]:
        """List ways to predict, each dearer than the one before it."""

    @property
    def for_weak_signals(self) -> "Approximation | None":
        """Return what may show a signal where this approximation shows noise alone."""
        return None

    def rival(self, n_samples: int) -> MakePredictor | None:  # noqa: ARG002 - neighbours use it
        """Return a way that is to be preferred to the ladder where it predicts as well."""
        return None


@dataclass(frozen=True, slots=True)
class ByNeighbours(Approximation):
    """Every row depends on the rows with which it is most correlated."""

    text: ClassVar[str] = "each row given its nearest neighbours"
    n_inducing: int | None = None  # of the rival, None for no rival

    def likelihoods(
        self,
        expression: Expression,
        theta: FloatArray,
        data: TrainingData,
        *,
        thorough: bool,
        rng: np.random.Generator,
    ) -> Likelihoods:
        """Build Vecchia's likelihood with neighbours of some rows; it speaks of all rows."""
        n_head = min(_N_HEAD, len(data.y))
        head, blocks = draw_neighbourhoods(
            expression,
            theta,
            data.X,
            n_head=n_head,
            n_blocks=_MANY_BLOCKS if thorough else _FEW_BLOCKS,
            n_neighbours=0 if expression == NOISE else min(_N_NEIGHBOURS, n_head),
            rng=rng,
        )
        likelihood = NeighbourLikelihood(expression, data, head, blocks)
        rows_for_each = max(1.0, likelihood.rows_for_each)
        return Likelihoods(likelihood, len(data.y), likelihood, rows_for_each)

    @property
    def probe(self) -> MakePredictor:
        """The fewest neighbours."""
        return _by_neighbours(_LADDER[0])

    def ladder(self, n_samples: int) -> Sequence[MakePredictor]:
        """List numbers of neighbours; exact predictions where there are few rows."""
        if n_samples <= _MOST_EXACT:
            return [ExactPredictor]
        return [_by_neighbours(n) for n in _LADDER]

    @property
    def for_weak_signals(self) -> "Approximation | None":
        """Return inducing points, which gather what many rows tell together."""
        return None if self.n_inducing is None else ByInducingPoints(self.n_inducing)

    def rival(self, n_samples: int) -> MakePredictor | None:
        """Return inducing points, whose predictions are smooth and cheaper."""
        if self.n_inducing is None or n_samples <= _MOST_EXACT:
            return None
        return _by_points(self.n_inducing)


@dataclass(frozen=True, slots=True)
class ByInducingPoints(Approximation):
    """All rows depend on the function at a few points."""

    text: ClassVar[str] = "with inducing points"
    n_inducing: int

    def likelihoods(
        self,
        expression: Expression,
        theta: FloatArray,
        data: TrainingData,
        *,
        thorough: bool,
        rng: np.random.Generator,
    ) -> Likelihoods:
        """Build the collapsed variational bound on some of the rows."""
        n = min(_MANY_ROWS if thorough else _FEW_ROWS, len(data.y))
        some = data if n == len(data.y) else data.take(rng.permutation(len(data.y))[:n])
        if expression == NOISE:
            return Likelihoods(ExactLikelihood(NOISE, some), n, ExactLikelihood(NOISE, data))
        of_some = self.bound(expression, theta, some)
        of_all = of_some if some is data else InducingLikelihood(expression, data, of_some.points)
        return Likelihoods(of_some, n, of_all)

    def bound(
        self, expression: Expression, theta: FloatArray, data: TrainingData
    ) -> InducingLikelihood:
        """Build the bound on all of these rows, with points for the log parameters ``theta``."""
        points = data.X[choose_inducing(expression, theta, data.X, self.n_inducing)]
        return InducingLikelihood(expression, data, points)

    @property
    def probe(self) -> MakePredictor:
        """The only way."""
        return _by_points(self.n_inducing)

    def ladder(self, n_samples: int) -> Sequence[MakePredictor]:  # noqa: ARG002 - the same for any number
        """Return the only way."""
        return [_by_points(self.n_inducing)]


def _by_neighbours(n: int) -> MakePredictor:
    """Return the predictions from so many neighbours."""
    return partial(NeighbourPredictor, n_neighbours=n)


def _by_points(n: int) -> MakePredictor:
    """Return the predictions from at most so many inducing points."""
    return partial(InducingPredictor, n_inducing=n)
