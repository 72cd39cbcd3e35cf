"""The search for the modes of one kernel: its starting points, and the rows that it uses.

The highest mode of ``LIN + PER * SE + SE`` is hard to find among all its parameters, but easy to
find from the highest mode of ``LIN + PER * SE``. A kernel with a period has many modes. Its search
therefore starts from fits of two parts: the kernel without one of its terms, and that term alone.
Each part is fitted in the same way, from parts of its own. If warm starts from fits of similar
kernels are given, as in a kernel search, the search starts from them instead.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from autokernel.deadline import Deadline
from autokernel.expression import (
    Expression,
    Leaf,
    Split,
    arrange,
    seed_text,
    splits,
)
from autokernel.kernels import Priors, Role
from autokernel.likelihood import ExactLikelihood, MakeLikelihood, TrainingData
from autokernel.map.coordinate_scan import CoordinateScan
from autokernel.map.data_scales import DataScales
from autokernel.map.maximise import Mode, Start, maximise
from autokernel.map.multistart import LIGHT, OF_PARTS, THOROUGH, find_modes
from autokernel.map.posterior import LogPosterior
from autokernel.map.starts import StartingPoints
from autokernel.map.warm_start import WarmStart, curvature_from, with_warm_starts
from autokernel.operators import ADD
from autokernel.typing import FloatArray

_SUBSAMPLE_FROM = 250  # rows; with more, modes are searched on a subsample of the rows
_N_SUBSAMPLE = 150
_N_SUBSAMPLE_PERIODIC = 250  # with fewer rows there would be too few per cycle
_N_ROUGH = 100  # rows of a rough fit

_N_STARTS = 24  # enough for kernels without a period
_N_STARTS_PERIODIC = 12
_N_STARTS_BESIDE = 4  # starting points in addition to warm starts
_N_DRAWS = 2  # draws of the parameters that a warm start lacks
_N_MODES_OF_PART = 2
_HOPELESS = 8.0  # nats below the best mode of a part at which another mode is dropped
_MOST_LEAVES = 6  # kernels up to this size are split in two ways, larger ones in one way

WarmStarts = Sequence[Sequence[WarmStart]]
"""Alternatives, the best first; the warm starts in one alternative are combined."""


class Found(NamedTuple):
    """Distinct modes of one kernel, the best first, and the likelihood calls that they took."""

    modes: list[Mode]
    calls: Mapping[str, int]  # likelihood calls by kernel, including those for parts fitted earlier

    @property
    def n_evaluations(self) -> int:
        """Total number of likelihood calls."""
        return sum(self.calls.values())


class ModeSearch:
    """A search for the modes of kernels on one data set.

    A result depends on the structure of the kernel, the seed and the warm starts, but not on the
    order of the searches or on the process.

    Parameters
    ----------
    data : TrainingData
        Inputs and targets.
    priors : mapping
        Priors as returned by :func:`check_priors`.
    seed : int
        Seed of the random numbers, not negative.
    make_likelihood : callable
        Function that makes the likelihood of a kernel on some rows.
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
        self._parts: dict[Expression, Found] = {}
        n = len(data.y)
        if n > _SUBSAMPLE_FROM:
            rows = np.random.default_rng(seed).permutation(n)
            self._subsample = data.take(rows[:_N_SUBSAMPLE])
            self._subsample_periodic = data.take(rows[:_N_SUBSAMPLE_PERIODIC])

    def __call__(self, posterior: LogPosterior, warm_starts: WarmStarts = ()) -> Found:
        """Search for the modes of the log posterior of an arranged kernel on all rows.

        Parameters
        ----------
        posterior : LogPosterior
            Log posterior of an expression that :func:`arrange` has returned. Its deadline applies
            to the whole search.
        warm_starts : sequence of sequence of WarmStart
            Parameters of similar kernels. The search starts from those of the highest log
            posterior, and scans only nodes that the first of them does not have.

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
            nodes = [node for node in _nodes_to_scan(expression) if node not in taken]
        else:
            budget = THOROUGH
            warm_starts, calls = self._from_parts(expression, posterior.deadline)
            nodes = _nodes_to_scan(expression)
        starts = self._starting_points(posterior, warm_starts, purpose="whole")
        if budget is LIGHT:
            starts = [*starts, *self._taken_from_noise(posterior, warm_starts)]
        modes = find_modes(
            posterior,
            starts,
            CoordinateScan(
                subsample or posterior, self._scales, nodes, coarse=budget.scans_coarsely
            ),
            variants=partial(self._terms_as_noise, posterior) if budget is THOROUGH else None,
            subsample=subsample,
            budget=budget,
        )
        n_own = posterior.n_evaluations - before + (subsample.n_evaluations if subsample else 0)
        return Found(modes, {**calls, expression.canonical: n_own})

    def rough_mode(self, expression: Expression) -> Mode:
        """Find a point near a mode of an arranged kernel quickly, on few rows."""
        rows = np.random.default_rng(self._seed).permutation(len(self._data.y))[:_N_ROUGH]
        likelihood = self._make_likelihood(expression, self._data.take(rows))
        posterior = LogPosterior(likelihood, priors=self._priors)
        starts = self._starting_points(posterior, [], purpose="rough")
        thetas = sorted((start.theta for start in starts), key=posterior.value, reverse=True)
        ends = [maximise(posterior, theta, max_iterations=15) for theta in thetas[:2]]
        return max(ends, key=lambda mode: mode.log_posterior)

    def _fit_part(self, expression: Expression, deadline: Deadline) -> Found:
        """Search for the modes of an arranged part on the subsample, and store them."""
        if expression not in self._parts:
            posterior = self._on_subsample(expression, deadline)
            warm_starts, calls = self._from_parts(expression, deadline)
            nodes = [] if warm_starts else _nodes_to_scan(expression)
            modes = find_modes(
                posterior,
                self._starting_points(posterior, warm_starts, purpose="part"),
                CoordinateScan(posterior, self._scales, nodes),
                budget=OF_PARTS,
            )
            self._parts[expression] = Found(
                modes, {**calls, expression.canonical: posterior.n_evaluations}
            )
        return self._parts[expression]

    def _from_parts(
        self, expression: Expression, deadline: Deadline
    ) -> tuple[WarmStarts, Mapping[str, int]]:
        """Fit a kernel without its first and without its last term, and these terms alone."""
        warm_starts: list[list[WarmStart]] = []
        calls: dict[str, int] = {}
        if not expression.has_many_modes:
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
        """Return warm starts at the best modes of a part; ``nodes`` are its nodes in the whole."""
        arranged, order = arrange(part)
        found = self._fit_part(arranged, deadline)
        calls.update(found.calls)
        in_whole = [nodes[node] for node in order]
        least = found.modes[0].log_posterior - _HOPELESS
        return [
            WarmStart(in_whole, mode.theta, mode.curvature)
            for mode in found.modes[:_N_MODES_OF_PART]
            if mode.log_posterior >= least
        ]

    def _starting_points(
        self, posterior: LogPosterior, warm_starts: WarmStarts, *, purpose: str
    ) -> list[Start]:
        """Draw starting points, most of them with warm starts."""
        expression = posterior.expression
        sizes = [1 if _is_complete(fits, expression) else _N_DRAWS for fits in warm_starts]
        if warm_starts:
            n_own = _N_STARTS_BESIDE
        else:
            n_own = _N_STARTS_PERIODIC if expression.has_many_modes else _N_STARTS
        rng = random_stream(self._seed, expression, purpose)
        draws = self._starts.draw(posterior, n_own + sum(sizes), rng=rng)
        own, *others = np.split(rng.permutation(draws), n_own + np.cumsum([0, *sizes])[:-1])
        starts = [Start(theta) for theta in own]
        for some, fits in zip(others, warm_starts, strict=True):
            starts += _warm(posterior, with_warm_starts(expression, some, fits), fits)
        return starts

    def _taken_from_noise(
        self, posterior: LogPosterior, warm_starts: WarmStarts
    ) -> Iterator[Start]:
        """Yield starts at warm starts where new nodes explain some of the noise."""
        expression = posterior.expression
        mean = np.log(posterior.prior.shape / posterior.prior.rate)
        for fits in warm_starts:
            taken = {node for fit in fits for node in fit.nodes}
            new = [node for node in range(len(expression.nodes)) if node not in taken]
            if new:
                point = with_warm_starts(expression, mean[None], fits)
                self._starts.take_from_noise(point, expression, new)
                yield from _warm(posterior, point, fits)

    def _terms_as_noise(self, posterior: LogPosterior, mode: Mode) -> list[Start]:
        """List variants of a mode in which one leaf of the sum explains some of the noise."""
        starts = []
        for node in _leaf_terms(posterior.expression):
            point = mode.theta[None].copy()
            self._starts.take_from_noise(point, posterior.expression, [node])
            (theta,) = np.clip(point, posterior.lower, posterior.upper)
            starts.append(Start(theta, mode.curvature))
        return starts

    def _on_subsample(self, expression: Expression, deadline: Deadline) -> LogPosterior:
        """Build the log posterior on the subsample."""
        periodic = expression.has_many_modes
        rows = self._subsample_periodic if periodic else self._subsample
        likelihood = self._make_likelihood(expression, rows)
        return LogPosterior(likelihood, priors=self._priors, deadline=deadline)


def _splits_to_fit(expression: Expression) -> list[Split]:
    """Return the first and the last split, so that parts have few parts of their own."""
    ways = list(splits(expression))
    if len(ways) < 2:
        return ways
    return [ways[0], ways[-1]] if expression.n_leaves <= _MOST_LEAVES else ways[-1:]


def _leaf_terms(expression: Expression) -> Iterator[int]:
    """Yield the node indices of the terms of a sum that are leaves with a lengthscale."""
    terms, number = expression.terms(ADD), 0
    for term in terms:
        has_length = any(p.role == Role.LENGTHSCALE for p in term.parameters)
        if isinstance(term, Leaf) and has_length and len(terms) > 1:
            yield number
        number += len(term.nodes)


def _nodes_to_scan(expression: Expression) -> list[int]:
    """Return the nodes to scan: none without a period, as the starting points suffice."""
    return list(range(len(expression.nodes))) if expression.has_many_modes else []


def _warm(
    posterior: LogPosterior, thetas: FloatArray, fits: Sequence[WarmStart]
) -> Iterator[Start]:
    """Yield starts at points (n_points, n_params), with the curvature of their warm starts."""
    for theta in np.clip(thetas, posterior.lower, posterior.upper):
        scales = posterior.step_scales(theta)
        yield Start(theta, curvature_from(posterior.expression, fits, scales))


def _is_complete(fits: Sequence[WarmStart], expression: Expression) -> bool:
    """Return whether warm starts have every node."""
    return sum(len(fit.nodes) for fit in fits) >= len(expression.nodes)


def random_stream(seed: int, expression: Expression, purpose: str) -> np.random.Generator:
    """Return a generator for one kernel and purpose, the same in every process."""
    digest = hashlib.sha256(f"{purpose}: {seed_text(expression)}".encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8])])
