"""Which rows are fitted: those that are no outliers, as found before and after a search."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import mul
from typing import Any
from warnings import catch_warnings

import numpy as np

from autokernel.data import Columns, FitData, Target
from autokernel.data.checks import text_of_rows
from autokernel.data.scales import MIN_SHARE, fill_rows
from autokernel.deadline import Deadline
from autokernel.evidence import Evaluation, find_outliers, update_outliers
from autokernel.evidence.evaluator import digest, parts_of_kernel
from autokernel.evidence.outliers import MAX_ROWS, MAX_SHARE
from autokernel.exceptions import OutOfTimeError, warn_user
from autokernel.expression import COUNT_SCALES, IDENTITY, NOISE, Expression, Leaf
from autokernel.fit.arguments import AUTO, Arguments
from autokernel.fit.space import MAX_FEW_COLUMNS, Space, searched_columns, targets_of
from autokernel.inference import TrainingData
from autokernel.kernels import CATEGORICAL, PERIODIC, SMOOTH, Priors
from autokernel.many_rows.approximation import fits_exactly
from autokernel.search import Store
from autokernel.search.columns import MAX_COLUMNS, columns_by_effect
from autokernel.search.design import kernels_of_series
from autokernel.typing import IntArray

N_COLUMNS, N_ROWS = 5, 200  # of very many columns, of which rows that fit are a smooth function
SHARE_OF_TIME = 0.3  # of what is left, at most for each step before the search


def training_data(
    given: FitData, like: TrainingData | None = None, columns: Columns | None = None
) -> TrainingData:
    """Return data in the units of the search or of others, with ``columns`` of more levels."""
    if like is None:
        columns = given.columns.of_rows(given.X)
        options: dict[str, Any] = {"families": given.families, "exposure": given.exposure}
        target = Target.of(given.y, given.noise, given.X, log_offset=given.log_offset, **options)
    else:
        columns, target = columns or like.inputs.columns, like.target
    inputs, noise = columns.inputs(given.X, first_row=0), given.noise.multiplied(target.width**-2)
    varying = {} if like is None else like.varying
    return TrainingData(inputs, target.forward(given.y), noise, target, varying=varying)


def with_counts_if_exact(given: FitData, arguments: Arguments) -> FitData:
    """Return the data with normal noise only, or refuse counts, unless they are fitted exactly."""
    is_exact = fits_exactly(arguments.approximation, len(given.y))
    if is_exact and not arguments.strategy.scores_by_bounds:
        return given
    if given.is_count:
        raise ValueError(
            f"noise of counts must be fitted exactly, got {len(given.y)} rows: give approximation="
            "'exact' and another strategy than 'skc'"
        )
    return replace(given, families=())


def outliers_before_search(
    given: FitData, arguments: Arguments, store: Store, *, deadline: Deadline
) -> IntArray:
    """Find rows that stand for missing values, or do not fit a smooth function, if in time."""
    fills = fill_rows(given.y)
    if len(fills) and (arguments.outliers is None or len(fills) > MAX_SHARE * len(given.y)):
        warn_user(
            f"y has {given.y[fills[0]]:g} in {text_of_rows(given.rows[fills])}, which is far from "
            "all other values: leave out such rows if it stands for a missing value"
        )
        fills = fills[:0]
    if arguments.outliers is None:
        return fills
    if given.families:  # of which many are rare
        return fills
    kept, given = np.delete(np.arange(len(given.y)), fills), given.without(fills)
    data, n_rows = training_data(given), MAX_ROWS
    columns = data.inputs.columns
    if len(used := searched_columns(columns, arguments)) > MAX_COLUMNS:
        used, n_rows = sorted(columns_by_effect(data, used)[:N_COLUMNS]), N_ROWS
    leaves = [Leaf(CATEGORICAL if columns[c].levels else SMOOTH, c) for c in used]
    smooth: Expression = reduce(mul, leaves) if leaves else NOISE
    kernels = [smooth.on(one) for one in _targets_of_most(given, data.target, arguments)]
    rivals = _rivals(smooth, given, data, arguments)
    until = deadline.share(SHARE_OF_TIME)
    find = partial(find_outliers, data, kernels, rivals, n_rows=n_rows, deadline=until)
    parts, none = (*data.definition, len(kernels)), np.empty(0, dtype=int)
    found = _read_or_find(find, parts, (*kernels, *rivals), none, arguments.priors, store)
    return np.sort(np.concatenate([kept[found], fills]))


def outliers_after_search(
    data: TrainingData,
    best: Evaluation,
    known: IntArray,
    arguments: Arguments,
    store: Store,
    *,
    deadline: Deadline,
) -> IntArray:
    """Find the rows that do not fit the best kernel, which was fitted without known ones."""
    is_count = best.expression.target in COUNT_SCALES
    if arguments.outliers is None or is_count or not np.isfinite(best.score):
        return known
    find = partial(update_outliers, data, best, known, deadline=deadline)
    parts = *data.definition, best.theta.tobytes(), known.tolist()
    return _read_or_find(find, parts, [best.expression], known, arguments.priors, store)


def _targets_of_most(given: FitData, target: Target, arguments: Arguments) -> tuple[str, ...]:
    """Return the scales of the target, of most rows where a few are beyond or far below them."""
    y, name, of_most = given.y, arguments.target_scale, given
    is_low = y <= max(0.0, MIN_SHARE * y.max())
    if name == AUTO and np.mean(is_low) <= MAX_SHARE:
        of_most = of_most.without(np.flatnonzero(is_low))  # which may be outliers
    return targets_of(of_most, target, name)


def _rivals(
    smooth: Expression, given: FitData, data: TrainingData, arguments: Arguments
) -> list[Expression]:
    """Return kernels that may explain what a smooth function does not."""
    if arguments.strategy.is_of_series:
        with catch_warnings(action="ignore"):  # the space without outliers repeats them
            plain = replace(arguments, target_scale=IDENTITY, start_kernel=())
            space = Space(given, data, plain, deadline=Deadline(0))  # without looking for seasons
            return kernels_of_series(space.grammar, *given.series)
    if smooth.n_leaves > MAX_FEW_COLUMNS:
        return []
    numeric = (leaf.column for leaf in smooth.leaves if leaf.kernel == SMOOTH)
    return [Leaf(PERIODIC, c) + smooth for c in numeric if not data.inputs.columns[c].n_gaps]


def _read_or_find(
    find: Callable[..., IntArray],
    parts: Sequence[object],
    kernels: Sequence[Expression],
    known: IntArray,
    priors: Priors,
    store: Store,
) -> IntArray:
    """Return the outliers that the store has, or find them; if the time is over, ``known`` ones."""
    of_kernels = (part for kernel in kernels for part in parts_of_kernel(kernel))
    key = digest("outliers", *parts, *of_kernels, sorted(priors.items()), store.seed)
    rows: IntArray | None = store.get(key, IntArray)
    if rows is None:
        try:
            rows = find(priors=priors, seed=store.seed)
        except OutOfTimeError:
            return known
        store.put(key, rows)
    return rows
