"""Which rows are fitted: those that are no outliers, as judged before and after a search."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial, reduce
from operator import mul
from warnings import catch_warnings

import numpy as np

from autokernel.data import Columns, FitData, Kind, Target
from autokernel.data.checks import MAX_ROWS_NAMED
from autokernel.deadline import Deadline
from autokernel.evidence import Evaluation, find_outliers, update_outliers
from autokernel.evidence.evaluator import digest, parts_of_kernel
from autokernel.evidence.outliers import MAX_SHARE
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import IDENTITY, NOISE, Expression, Leaf
from autokernel.fit.arguments import AUTO, Arguments
from autokernel.fit.space import MAX_FEW_COLUMNS, Space, targets_of
from autokernel.inference import TrainingData
from autokernel.kernels import CATEGORICAL, PERIODIC, SMOOTH
from autokernel.search import Store
from autokernel.search.design import kernels_of_series
from autokernel.typing import IntArray

SHARE_OF_TIME = 0.1  # of max_time, before the search


def training_data(given: FitData, columns: Columns, target: Target) -> TrainingData:
    """Return data on the scales of the search."""
    inputs, noise = columns.inputs(given.X, first_row=0), given.noise.multiplied(target.scale**-2)
    return TrainingData(inputs, target.forward(given.y), noise, target)


class RowJudge:
    """Judges which of the given rows are outliers: they do not fit a kernel that explains others.

    What the store knows is not computed again. Without time, the answer is what was known before.
    """

    def __init__(self, given: FitData, arguments: Arguments, store: Store, *, seed: int) -> None:
        self._given, self._arguments, self._store, self._seed = given, arguments, store, seed

    def before_search(self, deadline: Deadline) -> IntArray:
        """Find the rows that do not fit a smooth function of all columns."""
        nothing = np.empty(0, dtype=int)
        if not self._arguments.excludes_outliers:
            return nothing
        given, seconds = self._given, deadline.seconds_left
        if np.isfinite(seconds):
            deadline = deadline.earlier((1 - SHARE_OF_TIME) * seconds)
        columns, target = given.columns.of_rows(given.X), Target.of(given.y, given.noise)
        leaves = [
            Leaf(CATEGORICAL if column.kind == Kind.CATEGORY else SMOOTH, number)
            for number, column in enumerate(columns.every)
            if column.varies
        ]
        smooth: Expression = reduce(mul, leaves) if leaves else NOISE
        kernels = [smooth.on(one) for one in self._targets(target)]
        rivals = self._rivals(smooth, columns, target)
        data = training_data(given, columns, target)
        with suppress(OutOfTimeError):
            return self._read_or_find(
                partial(find_outliers, data, kernels, rivals),
                (*data.definition, len(kernels)),
                (*kernels, *rivals),
                deadline,
            )
        return nothing

    def after_search(
        self,
        best: Evaluation,
        known: IntArray,
        columns: Columns,
        target: Target,
        deadline: Deadline,
    ) -> IntArray:
        """Find the rows that do not fit the best kernel, which was fitted without known ones."""
        if not self._arguments.excludes_outliers or not np.isfinite(best.score):
            return known
        data = training_data(self._given, columns, target)
        with suppress(OutOfTimeError):
            return self._read_or_find(
                partial(update_outliers, data, best, known),
                (*data.definition, best.theta.tobytes(), known.tolist()),
                [best.expression],
                deadline,
            )
        return known

    def _targets(self, target: Target) -> tuple[str, ...]:
        """Return the scales of the target, of most rows where a few are beyond them."""
        y, name, of_most = self._given.y, self._arguments.target_scale, self._given
        if name == AUTO and np.mean(y > 0) >= 1 - MAX_SHARE:
            of_most = of_most.without(np.flatnonzero(y <= 0))  # which may be outliers
        return targets_of(of_most, target, name)

    def _rivals(self, smooth: Expression, columns: Columns, target: Target) -> list[Expression]:
        """Return kernels that may explain what a smooth function does not."""
        if self._arguments.strategy.preset.judges_outliers_by_series:
            with catch_warnings(action="ignore"):  # the space without outliers repeats them
                plain = replace(self._arguments, target_scale=IDENTITY, start_kernel=())
                space = Space(self._given, columns, target, plain, find_seasons=tuple)
            return kernels_of_series(space.grammar)
        if smooth.n_leaves > MAX_FEW_COLUMNS:
            return []
        numeric = (leaf.column for leaf in smooth.leaves if leaf.kernel == SMOOTH)
        return [Leaf(PERIODIC, c) + smooth for c in numeric if not columns[c].has_gaps]

    def _read_or_find(
        self,
        find: Callable[..., IntArray],
        parts: Sequence[object],
        kernels: Sequence[Expression],
        deadline: Deadline,
    ) -> IntArray:
        """Return the outliers that the store has for these parts and kernels, or find them."""
        priors, seed = self._arguments.priors, self._seed
        of_kernels = (part for kernel in kernels for part in parts_of_kernel(kernel))
        key = digest("outliers", *parts, *of_kernels, sorted(priors.items()), seed)
        rows = self._store.get(key, list)
        if rows is None:
            rows = find(priors=priors, seed=seed, deadline=deadline).tolist()
            self._store.put(key, rows)
        return np.array(rows, dtype=int)


def text_of_outliers(rows: IntArray) -> str:
    """Say which rows are excluded, in one line."""
    named = ", ".join(map(str, rows[:MAX_ROWS_NAMED].tolist()))
    more = f" and {len(rows) - MAX_ROWS_NAMED} more" if len(rows) > MAX_ROWS_NAMED else ""
    if len(rows) == 1:
        return f"row {named} does not fit, and is excluded"
    return f"rows {named}{more} do not fit, and are excluded"
