"""The modes of one kernel: where the search begins, and on which rows.

The highest mode of ``LIN + PER * SE + SE`` is hard to find among all its parameters, and easy to
find from that of ``LIN + PER * SE``. So a kernel with a period, where one mode hides many others,
begins at the fits of its parts: the kernel without one of its terms, and that term alone. Each part
begins at parts of its own. A kernel in a search begins at the fits of similar kernels instead.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from autokernel.deadline import Deadline
from autokernel.expression import Expression, Split, arrange, seed_text, splits
from autokernel.kernels import Priors
from autokernel.likelihood import ExactLikelihood, MakeLikelihood, TrainingData
from autokernel.map.coordinate_scan import CoordinateScan
from autokernel.map.data_scales import DataScales
from autokernel.map.maximise import Mode, maximise
from autokernel.map.multistart import LIGHT, OF_PARTS, THOROUGH, find_modes
from autokernel.map.posterior import LogPosterior
from autokernel.map.starts import StartingPoints
from autokernel.map.warm_start import WarmStart, with_warm_starts
from autokernel.typing import FloatArray

_SUBSAMPLE_FROM = 250  # rows: from here on modes are searched on a subsample of the rows
_N_SUBSAMPLE = 150
_N_SUBSAMPLE_PERIODIC = 250  # fewer leave too few rows to a cycle
_N_ROUGH = 100  # rows of a rough fit

_N_STARTS = 24  # without a period they suffice
_N_STARTS_PERIODIC = 12
_N_STARTS_BESIDE = 4  # beside warm starts
_N_DRAWS = 2  # of what a warm start does not have
_N_MODES_OF_PART = 2
_HOPELESS = 8.0  # nats below the best mode of a part
_MOST_LEAVES = 6  # up to here two ways to take a term away are tried, beyond one

WarmStarts = Sequence[Sequence[WarmStart]]
"""Alternatives, the best first; the warm starts of one are combined in one starting point."""


class Found(NamedTuple):
    """Distinct modes of one kernel, the best first, and the likelihood calls that they took."""

    modes: list[Mode]
    calls: Mapping[str, int]  # by kernel; those for a part count, even if it was known

    @property
    def n_evaluations(self) -> int:
        """Likelihood calls in all."""
        return sum(self.calls.values())


class ModeSearch:
    """Searches the modes of kernels on one data set.

    A result depends on the structure of the kernel, the seed and the warm starts, neither on the
    order of the searches nor on the process.

    Parameters
    ----------
    data : TrainingData
        Inputs and targets.
    priors : mapping
        What :func:`check_priors` returns.
    seed : int
        Not negative.
    make_likelihood : callable
        Makes the likelihood of a kernel on some rows.
    """

    def __init__(
        self,
        data: TrainingData,
        *,
        priors: Priors,
        seed: int,
        make_likelihood: MakeLikelihood = ExactLikelihood,
    ) -> None:
        self._data = self._subsample = self._subsample_periodic = data
        self._priors, self._seed, self._make_likelihood = priors, seed, make_likelihood
        self._scales = DataScales(data)
        self._starts = StartingPoints(self._scales)
        self._parts: dict[str, Found] = {}
        n = len(data.y)
        if n > _SUBSAMPLE_FROM:
            rows = np.random.default_rng(seed).permutation(n)
            self._subsample = data.take(rows[:_N_SUBSAMPLE])
            self._subsample_periodic = data.take(rows[:_N_SUBSAMPLE_PERIODIC])

    def __call__(self, posterior: LogPosterior, warm_starts: WarmStarts = ()) -> Found:
        """Search the modes of the log posterior of an arranged kernel on all rows.

        Parameters
        ----------
        posterior : LogPosterior
            Of an expression that :func:`arrange` has returned. Its deadline is that of the search.
        warm_starts : sequence of sequence of WarmStart
            Parameters of similar kernels. The search begins at them, and scans only the nodes that
            the first of them does not have.

        Raises
        ------
        OutOfTimeError
            Once the deadline of the posterior has passed.
        """
        expression, before = posterior.expression, posterior.n_evaluations
        is_sampled = self._subsample is not self._data
        subsample = self._on_subsample(expression, posterior.deadline) if is_sampled else None
        calls: Mapping[str, int] = {}
        if warm_starts:
            budget = LIGHT
            taken = warm_starts[0][0].nodes
            nodes = [node for node in range(len(expression.nodes)) if node not in taken]
        else:
            budget = THOROUGH
            warm_starts, calls = self._from_parts(expression, posterior.deadline)
            nodes = _nodes_to_scan(expression)
        modes = find_modes(
            posterior,
            self._starting_points(posterior, warm_starts, purpose="whole"),
            CoordinateScan(subsample or posterior, self._scales, nodes),
            subsample=subsample,
            budget=budget,
        )
        n_own = posterior.n_evaluations - before + (subsample.n_evaluations if subsample else 0)
        return Found(modes, {**calls, expression.canonical: n_own})

    def rough_mode(self, expression: Expression) -> Mode:
        """Look for a point near a mode of an arranged kernel on few rows, in a moment."""
        rows = np.random.default_rng(self._seed).permutation(len(self._data.y))[:_N_ROUGH]
        likelihood = self._make_likelihood(expression, self._data.take(rows))
        posterior = LogPosterior(likelihood, priors=self._priors)
        starts = self._starting_points(posterior, [], purpose="rough")
        best_first = sorted(starts, key=posterior.value, reverse=True)
        ends = [maximise(posterior, start, max_iterations=15) for start in best_first[:2]]
        return max(ends, key=lambda mode: mode.log_posterior)

    def _fit_part(self, expression: Expression, deadline: Deadline) -> Found:
        """Search the modes of an arranged part on the subsample, and keep them."""
        key = expression.canonical
        if key not in self._parts:
            posterior = self._on_subsample(expression, deadline)
            warm_starts, calls = self._from_parts(expression, deadline)
            nodes = [] if warm_starts else _nodes_to_scan(expression)
            modes = find_modes(
                posterior,
                self._starting_points(posterior, warm_starts, purpose="part"),
                CoordinateScan(posterior, self._scales, nodes),
                budget=OF_PARTS,
            )
            self._parts[key] = Found(modes, {**calls, key: posterior.n_evaluations})
        return self._parts[key]

    def _from_parts(
        self, expression: Expression, deadline: Deadline
    ) -> tuple[WarmStarts, Mapping[str, int]]:
        """Fit a kernel without its first term and without its last, and these terms alone."""
        warm_starts: list[list[WarmStart]] = []
        calls: dict[str, int] = {}
        if not _has_many_modes(expression):
            return warm_starts, calls
        for split in _splits_to_fit(expression):
            of_rest, of_term = (
                self._modes_of_part(part, nodes, calls, deadline=deadline)
                for part, nodes in (
                    (split.rest, split.rest_nodes),
                    (split.term, split.term_nodes),
                )
            )
            for start in of_rest:
                warm_starts += [[start], *([start, other] for other in of_term)]
        return warm_starts, calls

    def _modes_of_part(
        self,
        part: Expression,
        nodes: Sequence[int],
        calls: dict[str, int],
        *,
        deadline: Deadline,
    ) -> list[WarmStart]:
        """Return the best modes of a part, whose nodes have these indices in the whole."""
        arranged, order = arrange(part)
        found = self._fit_part(arranged, deadline)
        calls.update(found.calls)
        in_whole = [nodes[node] for node in order]
        least = found.modes[0].log_posterior - _HOPELESS
        return [
            WarmStart(in_whole, mode.theta)
            for mode in found.modes[:_N_MODES_OF_PART]
            if mode.log_posterior >= least
        ]

    def _starting_points(
        self, posterior: LogPosterior, warm_starts: WarmStarts, *, purpose: str
    ) -> FloatArray:
        """Draw where to begin (n_starts, n_params), most of it with what warm starts have."""
        expression = posterior.expression
        sizes = [1 if _is_complete(fits, expression) else _N_DRAWS for fits in warm_starts]
        if warm_starts:
            n_own = _N_STARTS_BESIDE
        else:
            n_own = _N_STARTS_PERIODIC if _has_many_modes(expression) else _N_STARTS
        rng = random_stream(self._seed, expression, purpose)
        draws = self._starts.draw(posterior, n_own + sum(sizes), rng=rng)
        own, *others = np.split(rng.permutation(draws), n_own + np.cumsum([0, *sizes])[:-1])
        warm = [
            with_warm_starts(expression, some, fits)
            for some, fits in zip(others, warm_starts, strict=True)
        ]
        return np.clip(np.concatenate([own, *warm]), posterior.lower, posterior.upper)

    def _on_subsample(self, expression: Expression, deadline: Deadline) -> LogPosterior:
        """Build the log posterior on the subsample."""
        periodic = _has_many_modes(expression)
        rows = self._subsample_periodic if periodic else self._subsample
        likelihood = self._make_likelihood(expression, rows)
        return LogPosterior(likelihood, priors=self._priors, deadline=deadline)


def _splits_to_fit(expression: Expression) -> list[Split]:
    """Without the first term and without the last: so few parts have few parts of their own."""
    ways = list(splits(expression))
    if len(ways) < 2:
        return ways
    return [ways[0], ways[-1]] if expression.n_leaves <= _MOST_LEAVES else ways[-1:]


def _has_many_modes(expression: Expression) -> bool:
    """Whether one mode may hide many others."""
    return any(node.has_many_modes for node in expression.nodes)


def _nodes_to_scan(expression: Expression) -> list[int]:
    """Nodes that a scan visits: none without a period, as the starting points suffice then."""
    return list(range(len(expression.nodes))) if _has_many_modes(expression) else []


def _is_complete(fits: Sequence[WarmStart], expression: Expression) -> bool:
    """Whether warm starts have every node."""
    return sum(len(fit.nodes) for fit in fits) >= len(expression.nodes)


def random_stream(seed: int, expression: Expression, purpose: str) -> np.random.Generator:
    """Random numbers of one kernel for one purpose, the same in every process."""
    digest = hashlib.sha256(f"{purpose}: {seed_text(expression)}".encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8])])
