"""The modes of one kernel: where to begin, and on which rows.

The highest mode of ``LIN + PER * SE + SE`` is hard to find among all its parameters, and easy to
find from that of ``LIN + PER * SE``. So a kernel with a period, where one mode hides many others,
begins at what is left of it without a term and at that term alone, which are fitted first, each
from its own parts. A kernel in a search begins at the fits of similar kernels instead.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from autokernel.deadline import Deadline
from autokernel.expression import Expression, Split, arrange, splits
from autokernel.kernels.priors import Priors
from autokernel.likelihood import TrainingData
from autokernel.map.coordinate_scan import CoordinateScan
from autokernel.map.data_scales import DataScales
from autokernel.map.maximise import Mode, maximise
from autokernel.map.multistart import LIGHT, OF_PARTS, THOROUGH, find_modes
from autokernel.map.posterior import LogPosterior
from autokernel.map.starts import StartingPoints
from autokernel.map.warm_start import WarmStart, inherit
from autokernel.typing import FloatArray

_SAMPLE_FROM = 250  # rows: from here on modes are searched on a sample of the rows
_N_SAMPLE = 150
_N_SAMPLE_PERIODIC = 250  # fewer leave too few rows to a cycle
_N_ROUGH = 100  # rows of a rough fit

_N_STARTS = 24  # without a period they suffice
_N_STARTS_PERIODIC = 12
_N_STARTS_BESIDE = 4  # beside those that inherit
_N_DRAWS = 2  # of what a fit does not have
_N_MODES_OF_PART = 2
_HOPELESS = 8.0  # nats below the best mode of a part
_MOST_LEAVES = 6  # up to here two ways to take a term away are tried, beyond one


class Found(NamedTuple):
    """Distinct modes of one kernel, the best first, and what they took."""

    modes: list[Mode]
    calls: Mapping[str, int]  # of the likelihood, for each part too, even if it was known

    @property
    def n_evaluations(self) -> int:
        """Likelihood calls in all."""
        return sum(self.calls.values())


class ModeSearch:
    """Searches the modes of kernels on one data set.

    A result depends on the canonical text of the kernel, the seed and what it inherits, neither on
    the order of the searches nor on the process.

    Parameters
    ----------
    data : TrainingData
        Inputs and targets.
    priors : mapping
        Complete, as :func:`check_priors` returns it.
    seed : int
        Not negative.
    """

    def __init__(self, data: TrainingData, *, priors: Priors, seed: int) -> None:
        self._data = self._sample = self._sample_periodic = data
        self._priors, self._seed = priors, seed
        self._scales = DataScales(data)
        self._starts = StartingPoints(self._scales)
        self._parts: dict[str, Found] = {}
        n = len(data.y)
        if n > _SAMPLE_FROM:
            rows = np.random.default_rng(seed).permutation(n)
            self._sample = data.take(rows[:_N_SAMPLE])
            self._sample_periodic = data.take(rows[:_N_SAMPLE_PERIODIC])

    def __call__(
        self,
        expression: Expression,
        posterior: LogPosterior,
        inherited: Sequence[Sequence[WarmStart]] = (),
    ) -> Found:
        """Search the modes of an arranged kernel.

        Parameters
        ----------
        expression : Expression
            As :func:`arrange` returns it.
        posterior : LogPosterior
            Its log posterior on all rows. Its deadline is that of the search.
        inherited : sequence of sequence of WarmStart
            Fits of similar kernels, as :func:`warm_starts_from_similar` finds them. The search begins
            at them, and looks for alternatives only to what the most similar does not have.

        Raises
        ------
        OutOfTimeError
            Once the deadline of the posterior has passed.
        """
        before = posterior.n_evaluations
        is_sampled = self._sample is not self._data
        scout = self._posterior(expression, posterior.deadline) if is_sampled else None
        calls: Mapping[str, int] = {}
        if inherited:
            effort = LIGHT
            taken = inherited[0][0].leaves
            leaves = [leaf for leaf in range(expression.n_leaves) if leaf not in taken]
        else:
            effort = THOROUGH
            inherited, calls = self._inherit_from_parts(expression, posterior.deadline)
            leaves = _with_alternatives(expression)
        modes = find_modes(
            posterior,
            self._starting_points(expression, posterior, inherited, purpose="whole"),
            CoordinateScan(expression, scout or posterior, self._scales, leaves),
            scout=scout,
            effort=effort,
        )
        n_own = posterior.n_evaluations - before + (0 if scout is None else scout.n_evaluations)
        return Found(modes, {**calls, expression.canonical: n_own})

    def rough_mode(self, expression: Expression) -> Mode:
        """Look for a point near a mode of an arranged kernel on few rows, in a moment."""
        rows = np.random.default_rng(self._seed).permutation(len(self._data.y))[:_N_ROUGH]
        posterior = LogPosterior(expression, self._data.take(rows), priors=self._priors)
        starts = self._starting_points(expression, posterior, [], purpose="rough")
        best_first = sorted(starts, key=posterior.value, reverse=True)
        ends = [maximise(posterior, start, max_iterations=15) for start in best_first[:2]]
        return max(ends, key=lambda mode: mode.log_posterior)

    def _fit_part(self, expression: Expression, deadline: Deadline) -> Found:
        """Search the modes of an arranged kernel on the sample, with less effort, and keep them."""
        key = expression.canonical
        if key not in self._parts:
            posterior = self._posterior(expression, deadline)
            inherited, calls = self._inherit_from_parts(expression, deadline)
            leaves = [] if inherited else _with_alternatives(expression)
            modes = find_modes(
                posterior,
                self._starting_points(expression, posterior, inherited, purpose="part"),
                CoordinateScan(expression, posterior, self._scales, leaves),
                effort=OF_PARTS,
            )
            self._parts[key] = Found(modes, {**calls, key: posterior.n_evaluations})
        return self._parts[key]

    def _inherit_from_parts(
        self, expression: Expression, deadline: Deadline
    ) -> tuple[list[list[WarmStart]], Mapping[str, int]]:
        """Fit a kernel without its first term and without its last, and these terms alone."""
        inherited: list[list[WarmStart]] = []
        calls: dict[str, int] = {}
        if not _is_periodic(expression):
            return inherited, calls
        for split in _ways_apart(expression):
            of_rest, of_term = (
                self._modes_of_part(part, leaves, calls, deadline=deadline)
                for part, leaves in (
                    (split.rest, split.rest_leaves),
                    (split.term, split.term_leaves),
                )
            )
            for fit in of_rest:
                inherited += [[fit], *([fit, other] for other in of_term)]
        return inherited, calls

    def _modes_of_part(
        self,
        part: Expression,
        leaves: Sequence[int],
        calls: dict[str, int],
        *,
        deadline: Deadline,
    ) -> list[WarmStart]:
        """Return the best modes of a part, whose leaves stand in the whole at these places."""
        arranged, order = arrange(part)
        found = self._fit_part(arranged, deadline)
        calls.update(found.calls)
        places = [leaves[leaf] for leaf in order]
        least = found.modes[0].log_posterior - _HOPELESS
        return [
            WarmStart(places, mode.theta)
            for mode in found.modes[:_N_MODES_OF_PART]
            if mode.log_posterior >= least
        ]

    def _starting_points(
        self,
        expression: Expression,
        posterior: LogPosterior,
        inherited: Sequence[Sequence[WarmStart]],
        *,
        purpose: str,
    ) -> FloatArray:
        """Draw where to begin (n_starts, n_params), most of it with what is inherited."""
        sizes = [1 if _is_complete(fits, expression) else _N_DRAWS for fits in inherited]
        if inherited:
            n_own = _N_STARTS_BESIDE
        else:
            n_own = _N_STARTS_PERIODIC if _is_periodic(expression) else _N_STARTS
        rng = random_stream(self._seed, expression, purpose)
        draws = self._starts.draw(expression, posterior, n_own + sum(sizes), rng=rng)
        draws = rng.permutation(draws)
        stop = n_own
        for fits, size in zip(inherited, sizes, strict=True):
            inherit(expression, draws[stop : stop + size], fits)
            stop += size
        return np.clip(draws, posterior.lower, posterior.upper)

    def _posterior(self, expression: Expression, deadline: Deadline) -> LogPosterior:
        """Build the log posterior on the sample."""
        sample = self._sample_periodic if _is_periodic(expression) else self._sample
        return LogPosterior(expression, sample, priors=self._priors, deadline=deadline)


def _ways_apart(expression: Expression) -> list[Split]:
    """Without the first term and without the last: so few parts have few parts of their own."""
    ways = list(splits(expression))
    if len(ways) < 2:
        return ways
    return [ways[0], ways[-1]] if expression.n_leaves <= _MOST_LEAVES else ways[-1:]


def _is_periodic(expression: Expression) -> bool:
    """Whether one mode may hide many others."""
    return any(leaf.kernel == "PER" for leaf in expression.leaves)


def _with_alternatives(expression: Expression) -> list[int]:
    """Leaves to look for alternatives to: without a period the starting points suffice."""
    return list(range(expression.n_leaves)) if _is_periodic(expression) else []


def _is_complete(fits: Sequence[WarmStart], expression: Expression) -> bool:
    """Whether every leaf is inherited."""
    return sum(len(fit.leaves) for fit in fits) >= expression.n_leaves


def random_stream(seed: int, expression: Expression, purpose: str) -> np.random.Generator:
    """Random numbers of one kernel for one purpose, the same in every process."""
    digest = hashlib.sha256(f"{purpose}: {expression.canonical}".encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8])])
