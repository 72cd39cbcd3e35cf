"""Exact inference in linear time for series: a Kalman filter with regression on known functions.

A sum of walks, damped trends, Matern kernels, lines and seasons on one column is the kernel of a
few Markov states, some of which add up to the function, and of known functions with independent
coefficients. The filter takes the target and the known functions through the same gains, so that
what is left is least squares among innovations (de Jong 1991, Annals of Statistics 19). Rows may be
irregular, repeated, and of different noise.

Rows are taken in blocks, one step in all blocks at once. Each block begins with a state that is
zero; what the state before it changes is linear in the means, and adds to covariances as in
Saerkkae and Garcia-Fernandez (2021, IEEE Trans. Automatic Control 66).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, block_diag, cholesky, solve_triangular
from scipy.special import factorial, gammainc, ive

from autokernel.data import Inputs
from autokernel.data.noise import LOG_2PI
from autokernel.expression import IDENTITY, Expression, Leaf, View, slots_of
from autokernel.inference.base import Likelihood, Predictor, finite
from autokernel.inference.data import TrainingData
from autokernel.kernels import ADD, BaseKernel
from autokernel.kernels.built_in import Linear, Matern32, Periodic, Seasonal
from autokernel.kernels.pairs import log_derivatives
from autokernel.kernels.series import (
    DampedTrend,
    IntegratedWalk,
    Matern12,
    RandomWalk,
    mean_reversion,
)
from autokernel.typing import FloatArray

MAX_HARMONICS = 48  # of a season; what varies faster is left out of it
_SERIES = 3 + np.arange(16)  # powers of the noise of a level, where its closed form loses digits
_COEFFICIENTS = (-1.0) ** _SERIES * (4 - 2.0**_SERIES) / factorial(_SERIES)
_COLUMNS = 32  # functions of the joint distribution of new rows that are filtered at a time


class Markov(NamedTuple):
    """A Markov process whose first state is the function.

    Both are functions of the parameters (n_params,). For steps (n,) along the column there are
    ``transitions`` and covariances of noise, (2, n, n_states, n_states), and there is the
    covariance (n_states, n_states) at zero.
    """

    steps: Callable[[FloatArray, FloatArray], FloatArray]
    origin: Callable[[FloatArray], FloatArray]

    def start(self, params: FloatArray, x: float) -> FloatArray:
        """Compute the covariance (n_states, n_states) at a place."""
        [A], [Q] = self.steps(params, np.array([x]))
        return A @ self.origin(params) @ A.T + Q

    def changes(
        self, params: FloatArray, d: FloatArray, x: float
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Differentiate the steps and the covariance at x in the log of each parameter."""
        of_steps = log_derivatives(lambda at: self.steps(at, d), params)
        of_start = log_derivatives(lambda at: self.start(at, x), params)
        return zip(of_steps, of_start, strict=True)


def _matrices(rows: Sequence[Sequence[FloatArray]]) -> FloatArray:
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _walk_steps(variance: float, d: FloatArray) -> FloatArray:
    return np.stack([np.ones_like(d), variance * d])[..., None, None]


def _integrated_steps(params: FloatArray, d: FloatArray) -> FloatArray:
    variance, one, zero = 3 * params[0], np.ones_like(d), np.zeros_like(d)
    square = variance * d**2 / 2
    noise = _matrices([[variance * d**3 / 3, square], [square, variance * d]])
    return np.stack([_matrices([[one, d], [zero, one]]), noise])


def _damped_steps(params: FloatArray, d: FloatArray) -> FloatArray:
    """Return the steps of a level and of ``l`` times its slope."""
    lengthscale, variance, _ = params
    z = d / lengthscale
    moved, one, zero = -np.expm1(-z), np.ones_like(d), np.zeros_like(d)
    near = np.minimum(z, 0.5)
    series = near**3 * np.polynomial.polynomial.polyval(near, _COEFFICIENTS)
    of_level = np.where(z < 0.5, series, 2 * z - moved * (2 + moved))
    noise = _matrices([[of_level, moved**2], [moved**2, -np.expm1(-2 * z)]])
    noise *= variance / (2 * mean_reversion(1 / lengthscale))
    return np.stack([_matrices([[one, moved], [zero, 1 - moved]]), noise])


def _matern12_steps(params: FloatArray, d: FloatArray) -> FloatArray:
    z = d / params[0]
    return np.stack([np.exp(-z), -params[1] * np.expm1(-2 * z)])[..., None, None]


def _matern32_steps(params: FloatArray, d: FloatArray) -> FloatArray:
    """Return the steps of a function and of its slope, in multiples of the lengthscale."""
    z = np.sqrt(3.0) * d / params[0]
    transition = np.exp(-z)[:, None, None] * _matrices([[1 + z, z], [-z, 1 - z]])
    both = 2 * z**2 * np.exp(-2 * z)
    of_slope = -np.expm1(-2 * z) + np.exp(-2 * z) * 2 * z * (1 - z)
    noise = params[1] * _matrices([[gammainc(3, 2 * z), both], [both, of_slope]])
    return np.stack([transition, noise])


MARKOV: Mapping[type[BaseKernel], Markov] = {
    RandomWalk: Markov(lambda at, d: _walk_steps(at[0], d), lambda _: np.zeros((1, 1))),
    IntegratedWalk: Markov(_integrated_steps, lambda _: np.zeros((2, 2))),
    DampedTrend: Markov(
        _damped_steps, lambda at: np.diag([0.0, at[1] / (2 * mean_reversion(1 / at[0]))])
    ),
    Matern12: Markov(_matern12_steps, lambda at: at[1] * np.eye(1)),
    Matern32: Markov(_matern32_steps, lambda at: at[1] * np.eye(2)),
}
"""The Markov processes of base kernels, without their offsets and lines."""

_NOTHING = Markov(lambda _, d: _walk_steps(0.0, d), MARKOV[RandomWalk].origin)


def has_state_space(expression: Expression, inputs: Inputs) -> bool:
    """Whether a kernel is a sum of known terms on one column, without gaps or another scale."""
    terms = expression.terms(ADD)
    known = {*MARKOV, Linear, Periodic, Seasonal}
    are_known = all(isinstance(one, Leaf) and type(one.kernel) in known for one in terms)
    views = {leaf.view for leaf in expression.leaves}
    if not (are_known and len(views) == 1):
        return False
    [view] = views
    x = inputs.values[..., view.column]
    return view.scale == IDENTITY and bool(np.all(x >= 0))  # which is false for a gap


class StateSpace:
    """A kernel at its parameters (n_params,): Markov states, and known functions with weights.

    The functions are a constant, the column itself, and for each season cosines and sines. What
    varies faster than rows show, which are one ``step`` apart, or than :data:`MAX_HARMONICS` times
    in a period, is left out: at a lengthscale of 0.06, this is 1e-8 of the variance of a season.
    """

    def __init__(self, expression: Expression, params: FloatArray, *, step: float) -> None:
        self.params = params
        slots = zip(expression.leaves, slots_of(expression), strict=True)
        self._leaves = [(leaf.kernel, np.r_[entries]) for leaf, (_, entries) in slots]
        found = [(MARKOV[type(one)], at) for one, at in self._leaves if type(one) in MARKOV]
        self.processes = found or [(_NOTHING, np.arange(0))]
        ends = np.cumsum([0, *(len(one.origin(params[at])) for one, at in self.processes)])
        self.own = [slice(*both) for both in pairwise(ends)]  # states of each process
        self.level = np.zeros(ends[-1])  # by which states add up to the function
        self.level[ends[:-1]] = 1.0
        self.seasons = [at for one, at in self._leaves if isinstance(one, Periodic)]
        self.n_harmonics = [
            _n_harmonics(params[at[0]], params[at[2]] / (2 * step) if step else np.inf)
            for at in self.seasons
        ]
        every = self.weights_at(params)
        self.has = every > 0
        self.weights = every[self.has]

    def weights_at(self, params: FloatArray) -> FloatArray:
        """Compute the variances (n_functions,) of the coefficients, zero for unused functions."""
        constant = line = 0.0
        harmonics: list[FloatArray] = []
        for kernel, at in self._leaves:
            values = params[at]
            if isinstance(kernel, Periodic):
                number = np.arange(self.n_harmonics[len(harmonics)] + 1)
                first, *others = values[1] * ive(number, 1 / (4 * values[0] ** 2))
                constant += first
                harmonics.append(2 * np.repeat(others, 2))
            elif not kernel.is_stationary:
                constant += values[-1]
                if isinstance(kernel, Linear | IntegratedWalk):
                    line += values[-2]
        return np.concatenate([[constant, line], *harmonics])

    def functions(self, x: FloatArray) -> FloatArray:
        """Compute the known functions (..., n_functions) at places (...)."""
        parts = [np.ones((*x.shape, 1)), x[..., None]]
        for at, n in zip(self.seasons, self.n_harmonics, strict=True):
            wave = np.exp((2j * np.pi / self.params[at[2]]) * x)[..., None]
            waves = np.cumprod(np.broadcast_to(wave, (*x.shape, n)), axis=-1)
            parts.append(waves.view(float))  # a cosine and a sine in turn
        return np.concatenate(parts, axis=-1)[..., self.has]

    def steps(self, d: FloatArray) -> FloatArray:
        """Compute transitions and noises (2, n, n_states, n_states) of all states for steps."""
        found = np.zeros((2, len(d), len(self.level), len(self.level)))
        for own, (process, at) in zip(self.own, self.processes, strict=True):
            found[:, :, own, own] = process.steps(self.params[at], d)
        return found

    def changes(
        self, d: FloatArray, x: float
    ) -> Iterator[tuple[int, slice, FloatArray, FloatArray]]:
        """Differentiate steps of lengths d, and the covariance at x, in the log parameters.

        Yields the number of a parameter, the states that it changes, and their derivatives.
        """
        for own, (process, entries) in zip(self.own, self.processes, strict=True):
            changes = process.changes(self.params[entries], d, x)
            for entry, (of_steps, of_start) in zip(entries, changes, strict=True):
                yield entry, own, of_steps, of_start

    def start(self, x: float) -> FloatArray:
        """Compute the covariance (n_states, n_states) of the states at a place."""
        return block_diag(*(process.start(self.params[at], x) for process, at in self.processes))


def _n_harmonics(lengthscale: float, most: float) -> int:
    shown = round(np.clip(most, 1, MAX_HARMONICS))
    weights = ive(np.arange(shown + 1), 1 / (4 * lengthscale**2))
    return int(np.count_nonzero(weights >= 1e-14)) - 1  # of the variance, which rounding hides


class Rows:
    """The rows of a series in blocks, arrays (n_steps, n_blocks, ...).

    In ascending order of the column, row ``step + n_steps * block`` is at (step, block). Entries at
    the end may be no rows.
    """

    def __init__(self, data: TrainingData, view: View) -> None:
        x, n = data.inputs.view(view), len(data.y)
        order = np.argsort(x, kind="stable")
        self.view, self.n_steps, self.in_order = view, ceil(sqrt(n)), x[order]
        place = np.arange(self.n_steps)[:, None] + self.n_steps * np.arange(ceil(n / self.n_steps))
        self.is_row, place = place < n, np.minimum(place, n - 1)
        self.rows = order[place]
        self.x, self.y = x[self.rows] * self.is_row, data.y[self.rows] * self.is_row
        self.noise = data.noise.take(self.rows)
        # most series have a few lengths of steps, as rounding makes several of one
        lengths = np.diff(self.in_order, prepend=self.in_order[0])
        self.lengths, which = np.unique(lengths, return_inverse=True)
        self.which = which[place]
        apart = lengths[lengths > 0]  # the shortest of them may be an exception
        self.short_step = float(np.quantile(apart, 0.01)) if len(apart) else 0.0

    def sum_by_length(self, of_next: FloatArray) -> FloatArray:
        """Sum over the rows after which the step is of one length, for each of them."""
        found = np.empty((len(self.lengths), *of_next.shape[2:]))
        which = _next(self.which, np.zeros((), dtype=int)).ravel()
        for entry in np.ndindex(found.shape[1:]):
            found[:, *entry] = np.bincount(which, of_next[..., *entry].ravel(), len(found))
        return found


class Filter:
    """Gains of a Kalman filter on rows in blocks, see :class:`Rows`, with the noise variance s."""

    def __init__(self, space: StateSpace, rows: Rows, s: float) -> None:
        self.level, self.observed, level = space.level, rows.is_row, space.level
        V = np.where(self.observed, rows.noise.variance(s), 0.0)
        n_steps, n_blocks = V.shape
        eye = np.eye(len(level))
        transitions, noises = space.steps(rows.lengths)[:, rows.which]  # that lead to each row
        self.next = A = _next(transitions, eye)
        Q = _next(noises, 0 * eye)
        # from a state that is known to be zero at the beginning of each block
        P0 = np.zeros((n_steps + 1, n_blocks, *eye.shape))
        Phi, J = P0.copy(), P0.copy()
        Phi[0] = eye
        for n in range(n_steps):
            f = np.where(self.observed[n], P0[n] @ level @ level + V[n], np.inf)
            k, at_level = P0[n] @ level / f[:, None], level @ Phi[n]
            kept = eye - k[:, :, None] * level
            J[n + 1] = J[n] + at_level[:, :, None] * (at_level / f[:, None])[:, None]
            Phi[n + 1] = A[n] @ (kept @ Phi[n])
            P = kept @ P0[n] @ kept.mT + (V[n][:, None] * k)[:, :, None] * k[:, None]
            P0[n + 1] = A[n] @ P @ A[n].mT + Q[n]
        starts = [space.start(rows.in_order[0])]
        for block in range(n_blocks - 1):
            more = Phi[-1, block] @ _given_rows(starts[-1], J[-1, block]) @ Phi[-1, block].T
            starts.append(P0[-1, block] + more)
        self.P = P0[:-1] + Phi[:-1] @ _given_rows(np.array(starts), J[:-1]) @ Phi[:-1].mT
        self.f = np.where(self.observed, self.P @ level @ level + V, 1.0)
        if not (np.all(np.isfinite(self.f)) and np.all(self.f > 0)):
            raise LinAlgError("the variance of an innovation is not positive and finite")
        self.k = np.where(self.observed[..., None], self.P @ level / self.f[..., None], 0.0)
        self.kept = eye - self.k[..., None] * level
        self.M, self.gain = A @ self.kept, (A @ self.k[..., None])[..., 0]
        self.filtered = self.kept @ self.P @ self.kept.mT
        self.filtered += (V[..., None] * self.k)[..., None] * self.k[..., None, :]

    def forward(self, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Filter columns Y (n_steps, n_blocks, n_columns), which are zero where there is no row.

        Returns predicted states (n_steps, n_blocks, n_states, n_columns) and innovations like Y.
        """
        added = (gain[..., None] * row[:, None] for gain, row in zip(self.gain, Y, strict=True))
        states, _ = _scanned(self.M, added, n_columns=Y.shape[-1])
        innovations = Y - np.einsum("q,nbqc->nbc", self.level, states)
        innovations[~self.observed] = 0.0
        return states, innovations

    def backward(self, innovations: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Differentiate ``-e^T e / (2 f)`` in the state after each row, for columns of innovations.

        Returns these slopes (n_steps, n_blocks, n_states, n_columns), and (n_states, n_columns)
        those in the state of the first row.
        """
        scaled = _reversed(innovations / self.f[..., None])
        added = (self.level[:, None] * row[:, None] for row in scaled)
        slopes, first = _scanned(_reversed(self.M.mT), added, n_columns=scaled.shape[-1])
        return _reversed(slopes), first

    def whitened(self, innovations: FloatArray) -> FloatArray:
        """Return innovations with variance one, one row after another (n, n_columns)."""
        white = innovations / np.sqrt(self.f)[..., None]
        return white.reshape(-1, white.shape[-1])

    @cached_property
    def information(self) -> tuple[FloatArray, FloatArray]:
        """The information of later rows on the state after each row, and of all on the first one.

        They are (n_steps, n_blocks, n_states, n_states) and (n_states, n_states).
        """
        of_row = np.where(self.observed, 1 / self.f, 0.0)[..., None, None]
        added = _reversed(of_row * np.outer(self.level, self.level))
        moves, n_states = _reversed(self.M.mT), len(self.level)
        found, first = _scanned(moves, added, n_columns=n_states, both_sides=True)
        return _reversed(found), first


def _reversed(of_rows: FloatArray) -> FloatArray:
    """Return what belongs to rows in blocks from the last row to the first one."""
    return of_rows[::-1, ::-1]


def _scanned(
    moves: FloatArray, added: Iterable[FloatArray], *, n_columns: int, both_sides: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return states before all steps in blocks of rows, and the one after the last step.

    The first state is zero. A step multiplies by its move, for ``both_sides`` also by its transpose
    from the right, and adds something.
    """

    def moved(move: FloatArray, state: FloatArray) -> FloatArray:
        return move @ state @ move.mT if both_sides else move @ state

    n_steps, n_blocks, n_states, _ = moves.shape
    states = np.zeros((n_steps + 1, n_blocks, n_states, n_columns))
    products = np.empty((n_steps + 1, *moves.shape[1:]))  # of the moves since a block began
    products[0] = np.eye(n_states)
    for n, (move, more) in enumerate(zip(moves, added, strict=True)):
        np.matmul(move, products[n], out=products[n + 1])
        states[n + 1] = moved(move, states[n]) + more
    starts = [np.zeros((n_states, n_columns))]
    for state, product in zip(states[-1], products[-1], strict=True):
        starts.append(state + moved(product, starts[-1]))
    states = states[:-1]
    states += moved(products[:-1], np.array(starts[:-1]))
    return states, starts[-1]


def _next(of_rows: NDArray[Any], last: NDArray[Any]) -> NDArray[Any]:
    """Return for each row what belongs to the next one."""
    of_last_step = np.concatenate([of_rows[0, 1:], last[None]])
    return np.concatenate([of_rows[1:], of_last_step[None]])


def _given_rows(P: FloatArray, J: FloatArray) -> FloatArray:
    """Compute the covariance ``(P^-1 + J)^-1``, also of a singular P."""
    values, axes = np.linalg.eigh(P)
    root = axes * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return root @ np.linalg.solve(np.eye(P.shape[-1]) + root.mT @ J @ root, root.mT)


class Filtered:
    """Rows of a series that are filtered with a kernel at its parameters theta.

    Columns are mixed: the first is the target less the known functions, the others are these
    functions, and the sum over their squares is what their coefficients add to a variance.
    """

    def __init__(self, expression: Expression, theta: FloatArray, data: TrainingData) -> None:
        self.rows = rows = Rows(data, expression.leaves[0].view)
        self.space = space = StateSpace(expression, np.exp(theta[:-1]), step=rows.short_step)
        self.filter = Filter(space, rows, float(np.exp(theta[-1])))
        self.F = space.functions(rows.x) * rows.is_row[..., None]
        columns = np.concatenate([rows.y[..., None], self.F], axis=-1)
        self.states, innovations = self.filter.forward(columns)
        white, self.roots = self.filter.whitened(innovations), np.sqrt(space.weights)
        scaled = white[:, 1:] * self.roots
        S = np.eye(len(self.roots)) + scaled.T @ scaled
        if not np.all(np.isfinite(S)):
            raise LinAlgError("the covariance has entries that are not finite")
        L = cholesky(S, lower=True)
        self.inverse_L = solve_triangular(L, np.eye(len(L)), lower=True)
        self.beta = self.inverse_L.T @ (self.inverse_L @ (scaled.T @ white[:, 0]))
        self.mix = block_diag(1.0, self.roots[:, None] * self.inverse_L.T)
        self.mix[1:, 0] = -self.roots * self.beta
        self.innovations = innovations @ self.mix
        residual = self.filter.whitened(self.innovations[..., :1])
        quadratic = float((residual**2).sum() + self.beta @ self.beta)
        log_determinant = float(np.log(self.filter.f).sum() + 2 * np.log(np.diag(L)).sum())
        value = -0.5 * (quadratic + log_determinant + len(data.y) * LOG_2PI)
        self.value, self.noise = value + data.noise.correction(theta[-1]), data.noise

    def after(self, row: Any, states: Any) -> FloatArray:
        """Return some states after some rows (..., n_states, n_columns), for mixed columns."""
        before = self.states[row][..., states, :] @ self.mix
        return before + self.filter.k[row][..., states, None] * self.innovations[row][..., None, :]

    @cached_property
    def slopes(self) -> tuple[FloatArray, FloatArray]:
        """The slopes of :meth:`Filter.backward` for mixed columns."""
        return self.filter.backward(self.innovations)

    def gradient(self, log_noise: float) -> FloatArray:
        """Differentiate the value in the logs of the parameters and of the noise variance.

        With ``G = alpha alpha^T - K^-1``, the derivative along a change D of the covariance is
        ``tr(G D) / 2``.
        """
        at, rows, (slopes, _) = self.filter, self.rows, self.slopes
        solved = self.innovations / at.f[..., None] - np.einsum(
            "nbq,nbqc->nbc", at.gain, slopes
        )  # K^-1 y, and what is K^-1 less its part without known functions if it is squared
        alpha, others = solved[..., 0], solved[..., 1:]
        precision = 1 / at.f - (others**2).sum(axis=-1)
        precision += np.einsum("nbq,nbqr,nbr->nb", at.gain, at.information[0], at.gain)
        of_rows = np.where(rows.is_row, rows.noise.slope, 0.0) * (alpha**2 - precision)
        of_F = (alpha[..., None] * self.beta - others @ self.inverse_L) * self.roots
        of_kernel = self._of_states() + self._of_weights() + self._of_periods(of_F)
        of_noise = 0.5 * float(np.exp(log_noise)) * of_rows.sum()
        return np.append(of_kernel, of_noise + self.noise.slope_of_correction(log_noise))

    def _of_states(self) -> FloatArray:
        """Differentiate in what the states depend on, backwards through the filter."""
        at, space, rows = self.filter, self.space, self.rows
        (slopes, first), (information, of_first) = self.slopes, at.information
        of_noise = slopes @ slopes.mT - information
        of_transition = of_noise @ (at.next @ at.filtered)
        changes = list(space.changes(rows.lengths, rows.in_order[0]))
        moving = np.zeros(len(space.level), dtype=bool)  # states that move others as parameters say
        for _, own, (dA, _), _ in changes:
            moving[own] |= np.any(dA != 0, axis=(0, 1))
        of_transition[..., moving] += slopes @ self.after(np.s_[:, :], moving).mT
        of_A, of_Q = map(rows.sum_by_length, (of_transition, of_noise))
        of_start, gradient = first @ first.T - of_first, np.zeros(len(space.params))
        for entry, own, (dA, dQ), d_start in changes:
            of_noises = np.vdot(of_Q[:, own, own], dQ) + np.vdot(of_start[own, own], d_start)
            gradient[entry] += np.vdot(of_A[:, own, own], dA) + 0.5 * of_noises
        return gradient

    def _of_weights(self) -> FloatArray:
        """Differentiate in the variances of the coefficients of known functions."""
        space = self.space
        of_logs = 0.5 * (self.beta**2 - 1 + (self.inverse_L**2).sum(axis=0))
        changes = log_derivatives(space.weights_at, space.params)
        return np.array([of_logs @ (change[space.has] / space.weights) for change in changes])

    def _of_periods(self, of_F: FloatArray) -> FloatArray:
        """Differentiate in the periods of known functions, from the derivative in these."""
        space, gradient = self.space, np.zeros(len(self.space.params))
        begin = int(space.has[:2].sum())
        for entries, n in zip(space.seasons, space.n_harmonics, strict=True):
            end = begin + 2 * n
            cosines, sines = np.s_[..., begin:end:2], np.s_[..., begin + 1 : end : 2]
            turned = of_F[cosines] * self.F[sines] - of_F[sines] * self.F[cosines]
            angles = 2 * np.pi * np.arange(1, n + 1) / space.params[entries[2]]
            gradient[entries[2]] = np.einsum("nb,nbk,k->", self.rows.x, turned, angles)
            begin = end
        return gradient


class StateSpaceLikelihood(Likelihood):
    """The exact log likelihood of a series in O(n_samples), for kernels with a state space.

    One call takes O(n_samples n_functions (n_states + n_functions)).
    """

    def _value(self, theta: FloatArray) -> float:
        return finite(Filtered(self.expression, theta, self.data).value)

    def _value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        found = Filtered(self.expression, theta, self.data)
        return finite(found.value), found.gradient(theta[-1])


class StateSpacePredictor(Predictor):
    """The exact predictive distribution of a series with a kernel that has a state space.

    Construction takes O(n_samples), and each new row O(n_functions^2) for its mean and variance.
    Covariances of new rows, and new rows before the column begins or without a value, take
    O(n_samples) each.
    """

    text = "state space"

    def __init__(self, expression: Expression, theta: FloatArray, data: TrainingData) -> None:
        if not has_state_space(expression, data.inputs):
            raise LinAlgError(
                "a state space needs rows with a time, from the first of the fit on: call fit "
                "with all rows"
            )
        super().__init__(expression, theta, data, block=2**12)
        self._at = Filtered(expression, theta, self._data)

    def mean_and_covariance(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, covariance = self._conditioned(self._columns.scaled(X))
        covariance[np.diag_indices(len(X))] += self.noise_at(X, mean)
        return mean, covariance

    def _moments_of_block(self, X: Inputs) -> tuple[FloatArray, FloatArray]:
        x = X.view(self._at.rows.view)
        mean, variance = np.empty(len(x)), np.empty(len(x))
        is_within = x >= 0  # neither before the column begins nor a gap
        if is_within.any():
            mean[is_within], variance[is_within] = self._smoothed(x[is_within])
        if not is_within.all():
            mean[~is_within], covariance = self._conditioned(X[~is_within])
            variance[~is_within] = np.diag(covariance)
        return mean, np.maximum(variance, 0.0) + self.noise_at(X.values, mean)

    def _smoothed(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute mean and variance (n,) of the function from the states of rows next to it."""
        at, space, rows = self._at, self._at.space, self._at.rows
        known, end = rows.in_order, len(rows.in_order) - 1
        last = np.searchsorted(known, x, side="right") - 1
        row = np.divmod(np.maximum(last, 0), rows.n_steps)[::-1]
        is_first = last < 0
        states, P = at.after(row, slice(None)), at.filter.filtered[row]
        states[is_first], P[is_first] = 0.0, space.start(0.0)
        A, Q = space.steps(x - np.where(is_first, 0.0, known[last]))
        states, P = A @ states, A @ P @ A.mT + Q
        if not np.all(last == end):
            (slopes, first), (information, of_first) = at.slopes, at.filter.information
            slopes, information = slopes[row], information[row]
            slopes[is_first], information[is_first] = first, of_first
            A, _ = space.steps(np.maximum(known[np.minimum(last + 1, end)] - x, 0.0))
            to_next = P @ A.mT
            states, P = states + to_next @ slopes, P - to_next @ information @ to_next.mT
        mixed = np.einsum("q,nqc->nc", space.level, states) - space.functions(x) @ at.mix[1:]
        return mixed[:, 0], P @ space.level @ space.level + (mixed[:, 1:] ** 2).sum(axis=1)

    def _conditioned(self, X: Inputs) -> tuple[FloatArray, FloatArray]:
        """Compute mean (n,) and covariance (n, n) of the function from prior covariances."""
        gains, rows, of_new = self._at.filter, self._at.rows, []
        for begin in range(0, len(X), _COLUMNS):
            cross = self._whole.cross(X[begin : begin + _COLUMNS], self._data.inputs).T
            _, innovations = gains.forward(cross[rows.rows] * rows.is_row[..., None])
            of_new.append(gains.whitened(innovations))
        white = np.concatenate(of_new, axis=1)
        mixed = white.T @ gains.whitened(self._at.innovations)
        prior = self._whole.cross(X, X)
        return mixed[:, 0], prior - white.T @ white + mixed[:, 1:] @ mixed[:, 1:].T
