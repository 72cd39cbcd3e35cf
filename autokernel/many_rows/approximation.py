"""Approximations for many rows: how kernels are fitted to them, and how they predict then."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from autokernel.data import Inputs
from autokernel.evidence import Evaluation
from autokernel.inference import (
    ExactLikelihood,
    InducingLikelihood,
    InducingPredictor,
    Likelihood,
    MakePredictor,
    NeighbourLikelihood,
    NeighbourPredictor,
    StateSpaceLikelihood,
    StateSpacePredictor,
    TrainingData,
    choose_inducing,
    draw_neighbourhoods,
    has_state_space,
    lack_of_memory,
)
from autokernel.typing import IntArray

EXACT, INDUCING, NEIGHBOURS, AUTO = "exact", "inducing", "neighbours", "auto"
APPROXIMATIONS = frozenset({AUTO, EXACT, INDUCING, NEIGHBOURS})

MAX_EXACT_ROWS = 1000  # up to which "auto" fits exactly: with 2000 it takes five times as long
MAX_SEARCHED_ROWS = 600  # up to which kernels are searched on all rows, in the end
N_SEARCHED_ROWS = 500  # on which a search that does not climb is otherwise
N_CLIMBED_ROWS, MIN_ROWS_OF_TWO_CLIMBS = 250, 320  # of the first of two climbs; of all rows
MAX_EXACT_PREDICTION_ROWS = 2**13

N_HEAD_ROWS = 500  # whose joint density is exact in a likelihood of neighbours
N_NEIGHBOURS, N_FINAL_NEIGHBOURS = 30, 45  # in such a likelihood, in the race and after it
RACE_BLOCKS, FINAL_BLOCKS = 1000, 2000  # rows that stand for all others, in the race and after it
RACE_ROWS, FINAL_ROWS = 2**11, 2**13  # rows of a bound, in the race and after it
LATEST_ROWS = 2**12  # of a series, in the race


class Approximation(ABC):
    """A likelihood that treats many rows, and the predictors that may go with it."""

    text: ClassVar[str]  # in a sentence
    predicts_exactly: ClassVar[bool] = True  # if memory suffices
    is_exact: ClassVar[bool] = False  # whether its likelihood is the exact one
    predictors: Sequence[MakePredictor]  # approximate ones, the cheapest first
    rival: "Approximation | None" = None  # which may show a signal if this one does not

    @abstractmethod
    def likelihood(
        self, fit: Evaluation, data: TrainingData, *, thorough: bool, rng: np.random.Generator
    ) -> Likelihood:
        """Build a likelihood near the parameters of a fit, of more rows if ``thorough``.

        Its ``data`` are the rows that it approximates.
        """


class ByInducingPoints(Approximation):
    """All rows depend on the function at a few points."""

    text: ClassVar[str] = "with inducing points"
    predicts_exactly: ClassVar[bool] = False

    def __init__(self, n_inducing: int) -> None:
        self.n_inducing = n_inducing
        self.predictors = [partial(InducingPredictor, n_inducing=n_inducing)]

    def likelihood(
        self, fit: Evaluation, data: TrainingData, *, thorough: bool, rng: np.random.Generator
    ) -> Likelihood:
        """Build the collapsed variational bound on some of the rows."""
        n = min(FINAL_ROWS if thorough else RACE_ROWS, len(data.y))
        some = data if n == len(data.y) else data.take(rng.permutation(len(data.y))[:n])
        leaves = fit.expression.leaves
        return self.bound(fit, some) if leaves else ExactLikelihood(fit.expression, some)

    def bound(self, fit: Evaluation, data: TrainingData) -> InducingLikelihood:
        """Build the bound on all of these rows, with points for the parameters of a fit."""
        points = choose_inducing(fit.expression, fit.theta, data.inputs, self.n_inducing)
        return InducingLikelihood(fit.expression, data, data.inputs[points])


class ByNeighbours(Approximation):
    """Every row depends on the rows with which it is most correlated.

    Inducing points as the rival gather weak signals, and predict smoothly at less cost.
    """

    text: ClassVar[str] = "each row given its nearest neighbours"

    def __init__(self, rival: ByInducingPoints | None) -> None:
        self.rival = rival
        self.predictors = [partial(NeighbourPredictor, n_neighbours=n) for n in (32, 64, 128, 256)]

    def likelihood(
        self, fit: Evaluation, data: TrainingData, *, thorough: bool, rng: np.random.Generator
    ) -> Likelihood:
        """Build Vecchia's likelihood with the neighbours of some rows; it is of all rows."""
        n_head = min(N_HEAD_ROWS, len(data.y))
        n_neighbours = min(N_FINAL_NEIGHBOURS if thorough else N_NEIGHBOURS, n_head)
        head, blocks = draw_neighbourhoods(
            fit.expression,
            fit.theta,
            data.inputs,
            n_head=n_head,
            n_blocks=FINAL_BLOCKS if thorough else RACE_BLOCKS,
            n_neighbours=n_neighbours if fit.expression.leaves else 0,
            rng=rng,
        )
        return NeighbourLikelihood(fit.expression, data, head, blocks)


class ByStateSpace(Approximation):
    """No approximation: the states of a series are filtered, exactly, in O(n_samples)."""

    text: ClassVar[str] = "exactly, by state space"
    is_exact: ClassVar[bool] = True
    predictors = (StateSpacePredictor,)

    def __init__(self, column: int) -> None:
        self.column = column

    def likelihood(
        self, fit: Evaluation, data: TrainingData, *, thorough: bool, rng: np.random.Generator
    ) -> Likelihood:
        """Build the exact likelihood of the latest rows, of all of them if ``thorough``."""
        if not thorough and len(data.y) > LATEST_ROWS:
            data = data.take(latest_rows(data.inputs, self.column, LATEST_ROWS))
        leaves = fit.expression.leaves
        return (StateSpaceLikelihood if leaves else ExactLikelihood)(fit.expression, data)


def approximation_of_kernels(
    name: str, kernels: Sequence[Evaluation], data: TrainingData
) -> ByStateSpace | None:
    """Return the state space if all kernels have one, on one column, and it may be chosen."""
    expressions = [one.expression for one in kernels if one.expression.leaves]
    columns = sorted({column for one in expressions for column in one.columns})
    if name != AUTO or len(columns) != 1:
        return None
    can_be = all(has_state_space(one, data.inputs) for one in expressions)
    return ByStateSpace(columns[0]) if can_be else None


def fits_exactly(name: str, n_samples: int) -> bool:
    """Whether kernels are fitted to all rows exactly."""
    return name == EXACT or (name == AUTO and n_samples <= MAX_EXACT_ROWS)


def approximation_for(name: str, n_samples: int, n_inducing: int) -> Approximation | None:
    """Choose how kernels are fitted to all rows, None for exactly, if memory suffices for that."""
    if fits_exactly(name, n_samples):
        if lack := lack_of_memory(n_samples):
            raise ValueError(
                f"approximation='exact' with {n_samples} rows needs about {lack}: use "
                "approximation='auto', or fewer rows"
            )
        return None
    by_points = ByInducingPoints(n_inducing)
    return by_points if name == INDUCING else ByNeighbours(by_points if name == AUTO else None)


def rows_of_stages(name: str, n_samples: int, *, by_bounds: bool, climbs: bool) -> tuple[int, ...]:
    """Choose the numbers of rows on which kernels are searched, one after the other.

    The last one is that of all rows if they are fitted exactly.
    """
    n, ends_on_all = n_samples, fits_exactly(name, n_samples)
    n_not_held_out = n - n_held_out(n)
    if by_bounds:
        n_bounded = n if n <= MAX_EXACT_ROWS else min(2**12, n_not_held_out)
        return (n_bounded, n) if ends_on_all else (n_bounded,)
    first, last = n, n if ends_on_all or n <= MAX_SEARCHED_ROWS else n_not_held_out
    if climbs:
        first = N_CLIMBED_ROWS if n >= MIN_ROWS_OF_TWO_CLIMBS else n
        last = last if ends_on_all else min(MAX_SEARCHED_ROWS, last)
    elif name != EXACT and n > MAX_SEARCHED_ROWS:
        first, last = N_SEARCHED_ROWS, n if ends_on_all else N_SEARCHED_ROWS
    return (first, last) if first < last else (last,)


def shuffled_rows(n_samples: int, seed: int) -> IntArray:
    """Put the rows (n_samples,) in random order: the first are searched, the last held out."""
    return np.random.default_rng(seed).permutation(n_samples)


def latest_rows(inputs: Inputs, column: int, n_rows: int) -> IntArray:
    """Return the rows (n_rows,) with the largest values of a column, in ascending order."""
    return np.sort(np.argsort(inputs.values[:, column], kind="stable")[-n_rows:])


def rows_of_groups(inputs: Inputs, groups: Sequence[int], n_rows: int, *, seed: int) -> IntArray:
    """Return rows (n_rows,) of groups in random order, all of each but the last, ascending."""
    names = np.unique(inputs.values[:, groups], axis=0, return_inverse=True)[1].ravel()
    order = np.random.default_rng(seed).permutation(names.max() + 1)[names]
    return np.sort(np.argsort(order, kind="stable")[:n_rows])


def n_held_out(n_samples: int) -> int:
    """Return the number of rows that are held out for the choice of a predictor."""
    return min(500, n_samples // 5)
