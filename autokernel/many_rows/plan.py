"""What a fit of so many rows will do, and whether it can, before it begins."""

from dataclasses import dataclass

import numpy as np

from autokernel.inference import check_memory_of_exact
from autokernel.many_rows.approximation import Approximation, ByInducingPoints, ByNeighbours
from autokernel.typing import IntArray

EXACT, INDUCING, NEIGHBOURS, AUTO = "exact", "inducing", "neighbours", "auto"
APPROXIMATIONS = frozenset({AUTO, EXACT, INDUCING, NEIGHBOURS})

_MOST_EXACT = 1000  # rows up to which "auto" fits exactly: with 2000 it takes five times as long
_MOST_SEARCHED = 600  # rows up to which "auto" searches on all of them
_N_SEARCHED = 500  # rows on which kernels are searched otherwise
_N_BOUNDED = 2**12  # most rows on which they are searched by bounds
_MOST_HELD_OUT = 500


@dataclass(frozen=True, slots=True)
class Plan:
    """How many rows are searched on, and how all rows are fitted."""

    n_samples: int
    n_searched: int
    approximation: Approximation | None  # None for an exact fit
    by_bounds: bool = False  # whether the search encloses scores in intervals

    @property
    def searches_all(self) -> bool:
        """Whether kernels are searched on all rows."""
        return self.n_searched == self.n_samples

    @property
    def is_plain(self) -> bool:
        """Whether the whole fit is exact and on all rows."""
        return self.searches_all and self.approximation is None and not self.by_bounds

    def order(self, seed: int) -> IntArray:
        """Put the rows (n_samples,) in random order.

        Kernels are searched on the first ones. The last ones are held out for the choice of a way
        to predict.
        """
        return np.random.default_rng(seed).permutation(self.n_samples)

    def rows(self, seed: int) -> IntArray:
        """Return the rows (n_searched,) on which kernels are searched."""
        return np.sort(self.order(seed)[: self.n_searched])

    @property
    def text(self) -> str:
        """Say what will be done, in one line."""
        if self.is_plain:
            return f"{self.n_samples} rows, exact inference"
        how = "exactly" if self.approximation is None else self.approximation.text
        return (
            f"{self.n_samples} rows: kernels are searched on {self.n_searched} of them"
            f"{', by bounds' if self.by_bounds else ''}, and the best are fitted to all, {how}"
        )


def n_held_out(n_samples: int) -> int:
    """Return the number of rows that are held out for the choice of a way to predict."""
    return min(_MOST_HELD_OUT, n_samples // 5)


def make_plan(
    n_samples: int, *, approximation: str, n_inducing: int, by_bounds: bool = False
) -> Plan:
    """Choose what a fit will do.

    Raises
    ------
    ValueError
        If exact inference is asked for and needs more memory than there is.
    """
    is_exact = approximation == EXACT or (approximation == AUTO and n_samples <= _MOST_EXACT)
    if is_exact:
        check_memory_of_exact(n_samples)
    if by_bounds:
        few = n_samples <= _MOST_EXACT
        n_searched = n_samples if few else min(_N_BOUNDED, n_samples - n_held_out(n_samples))
    else:
        searches_all = approximation == EXACT or n_samples <= _MOST_SEARCHED
        n_searched = n_samples if searches_all else _N_SEARCHED
    how: Approximation | None = ByNeighbours(n_inducing if approximation == AUTO else None)
    if approximation == INDUCING:
        how = ByInducingPoints(n_inducing)
    return Plan(n_samples, n_searched, None if is_exact else how, by_bounds)
