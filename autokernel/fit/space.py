"""The space of kernels of a search: base kernels by column, known periods, first kernels."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from autokernel.data import FitData
from autokernel.data.scales import (
    IDENTITY,
    MIN_RATIO_OF_TARGET,
    Scale,
    check_possible,
    column_scale,
    scales_of_column,
    scales_of_target,
    target_scale,
)
from autokernel.data.scaling import Scaling, TargetScaling, varying_columns
from autokernel.data.steps import seasons_of, shows_cycles
from autokernel.evidence import check_expression
from autokernel.exceptions import warn_user
from autokernel.expression import Expression, Grammar, Leaf, changes_along, with_gaps, with_leaves
from autokernel.fit.arguments import AUTO, Arguments
from autokernel.kernels import (
    CATEGORICAL,
    FEW_COLUMNS,
    MANY_COLUMNS,
    PERIODIC,
    SERIES,
    BaseKernel,
    OnScale,
    Seasonal,
    WithGaps,
    of_known,
    possible_values,
)
from autokernel.typing import FloatArray, IntArray
from autokernel.validation import did_you_mean

MAX_FEW_COLUMNS = 2  # with which "auto" is FEW_COLUMNS, the first of SOT's two spaces
DEFAULT_MAX_LEAVES = 10
NO_CYCLES = (
    ", as it has less than four values in each of two cycles; name PER in base_kernels to have it"
)
MAX_EXTENTS = 2.0  # of a column, within which a known period shows

Entry = TypeVar("Entry")


class Space:
    """The kernels that a search may reach, and those that it begins with.

    The data are in the units of the user. On dates and on categories there is no scale but by name,
    as their zero has no meaning. Categories have a kernel of their levels, and those with an order
    also kernels of numbers. ``find_seasons`` returns the columns to which ``"auto"`` gives a
    periodic kernel where there are many columns, and ``weights`` standardise the target. Columns
    with ``gaps`` may have missing values, also in rows that are excluded. The ``grammar`` has the
    columns that vary and that have base kernels, and the search begins with the kernels ``start``.

    Raises
    ------
    ValueError
        If an argument names a column that X does not have, if no column is left, if a kernel to
        begin with is not in the space, or if a scale does not have all numbers of its column.
    """

    def __init__(
        self,
        given: FitData,
        arguments: Arguments,
        *,
        scaling: Scaling,
        target_scaling: TargetScaling,
        find_seasons: Callable[[], Collection[int]],
        weights: FloatArray,
        gaps: Collection[int],
    ) -> None:
        X, names = given.X, given.feature_names
        self._arguments, self._names, self._n_features = arguments, names, X.shape[1]
        self._without_scales = {*given.date_columns, *given.categories}
        self._X, self._y, self._scaling, self._target_scaling = X, given.y, scaling, target_scaling
        self._weights, self._rows = weights, given.rows
        chosen = self._by_column("base_kernels", arguments.by_column)
        periods = self._by_column("periods", arguments.periods)
        varying: list[int] = np.flatnonzero(varying_columns(X)).tolist()
        columns = [c for c in varying if chosen.get(c, arguments.base_kernels) != ()]
        unused = [c for c in periods if chosen.get(c, arguments.base_kernels) == ()]
        if unused:
            raise ValueError(
                f"periods must be of columns that are used, got one of column {unused[0]}, to "
                "which base_kernels gives none"
            )
        _warn_of_periods(periods, X, names)
        if varying and not columns:
            raise ValueError(
                "base_kernels must leave base kernels to a column of X that is not constant, but "
                f"columns {varying} have none"
            )
        self._places = {
            column: possible_values(x)
            for column, x in enumerate(scaling.apply(X).T)
            if column in columns and column in gaps
        }
        unordered = (c for c, levels in given.categories.items() if not levels.is_ordered)
        self._without_order = {*self._places, *unordered}
        by_column = self._base_kernels(columns, chosen, periods, given, find_seasons)
        nothing = [arguments.base_kernels or FEW_COLUMNS]
        targets = targets_of(
            arguments.target_scale,
            given.y,
            given.rows,
            target_scaling,
            weights,
            min_ratio=MIN_RATIO_OF_TARGET if arguments.strategy.searches else 1.0,
        )
        self.grammar = _grammar(
            columns, by_column or nothing, arguments, self._scales(columns), targets
        )
        start = (self.kernel(one, argument="start_kernel") for one in arguments.start_kernel)
        known = (self.with_known_periods(one) for one in start if one.n_leaves)  # not NOISE
        self.start = tuple(self.checked(one) for one in known)

    def _base_kernels(
        self,
        columns: Sequence[int],
        chosen: Mapping[int, tuple[BaseKernel, ...] | None],
        periods: Mapping[int, tuple[float, ...]],
        given: FitData,
        find_seasons: Callable[[], Collection[int]],
    ) -> list[tuple[BaseKernel, ...]]:
        """Return the base kernels of each column, with its known periods, which know its gaps."""
        categories, strategy = given.categories, self._arguments.strategy
        numeric = [column for column in columns if column not in categories]
        few = len(numeric) <= MAX_FEW_COLUMNS
        periodic = [c for c in (numeric if few else find_seasons()) if shows_cycles(given.X[:, c])]
        found = []
        for column in columns:
            selection = chosen.get(column, self._arguments.base_kernels)
            kernels = selection or (FEW_COLUMNS if column in periodic else MANY_COLUMNS)
            has_dates, scale = column in given.date_columns, float(self._scaling.scale[column])
            if not selection and (has_dates or not strategy.searches):
                kernels = tuple(dict.fromkeys((*kernels, *SERIES)))
            if column in categories and column not in chosen:
                others = (selection or MANY_COLUMNS) if categories[column].is_ordered else ()
                kernels = tuple(dict.fromkeys((CATEGORICAL, *others)))
            kernels = with_periods(kernels, periods.get(column, ()), scale=scale)
            if has_dates and not selection and column not in periods:
                known = seasons_of(given.X[:, column])
                kernels += tuple(Seasonal(one, scale=scale) for one in known)
            if column in self._places:
                kernels = tuple(WithGaps(one, self._places[column]) for one in kernels)
            found.append(kernels)
        return found

    def kernel(self, kernel: str | Expression, *, argument: str) -> Expression:
        """Parse a kernel that the user names, and check its columns."""
        named = (*self._arguments.named_kernels, *map(of_known, self.grammar.base_kernels))
        expression = check_expression(
            kernel,
            self._names,
            n_features=self._n_features,
            argument=argument,
            base_kernels=tuple({one.name: one for one in named}.values()),
            operators=self._arguments.operators,
        )
        for column in changes_along(expression) & self._without_order:
            raise ValueError(
                f"{argument} must have change-points on columns of numbers that are all known, got "
                f"{expression.to_text(self._names)}: column {column} has missing values or "
                "categories"
            )
        return self.bound(expression)

    def bound(self, expression: Expression) -> Expression:
        """Return the expression with the base kernels and scales that this space has.

        Kernels with known periods, and scales, depend on the data.
        """
        expression = with_gaps(expression, self._places)
        own = {leaf.canonical: leaf for leaf in self.grammar.leaves}

        def bound(leaf: Leaf) -> Leaf:
            known = own.get(leaf.canonical, leaf)
            if known is leaf and leaf.scale is not None:
                scale = self._column_scale(leaf.scale.name, leaf.column, argument="kernel")
                return replace(leaf, scale=scale)
            return known

        target = expression.target
        if target is not None:
            name, scaling = target.scale.name, self._target_scaling
            given = self._y, self._rows, scaling, self._weights
            target = _scaled_target(name, *given, argument="kernel")
        return with_leaves(expression.body, bound).on(target)

    def with_known_periods(self, expression: Expression) -> Expression:
        """Return the expression with the known period of a column in the place of a free one.

        A column with several known periods leaves it open which one is meant.
        """

        def known(leaf: Leaf) -> Leaf:
            seasons = self.grammar.like(PERIODIC, leaf.column)
            is_known = len(seasons) == 1 and isinstance(seasons[0].kernel, Seasonal)
            return seasons[0] if leaf.kernel == PERIODIC and is_known else leaf

        return with_leaves(expression, known)

    def checked(self, expression: Expression) -> Expression:
        """Return the form of a kernel in which the search evaluates it, if the space has it."""
        grammar, names = self.grammar, self._names
        tidy = grammar.tidy(expression)
        if tidy.n_leaves > grammar.max_leaves:
            raise ValueError(
                f"start_kernel must have at most max_leaves={grammar.max_leaves} base kernels, got "
                f"{tidy.n_leaves}: raise max_leaves"
            )
        for tree in tidy.leaves:
            if not grammar.spans(tree.on(grammar.targets[0])):
                own = [leaf.kernel.name for leaf in grammar.leaves if leaf.column == tree.column]
                is_short = tree.kernel == PERIODIC and not shows_cycles(self._X[:, tree.column])
                raise ValueError(
                    "start_kernel must be made of the base kernels of the search, got "
                    f"{tree.to_text(names)}: its column has {own or 'none'}"
                    f"{NO_CYCLES if is_short else ''}"
                )
        if not grammar.spans(tidy if tidy.target else tidy.on(grammar.targets[0])):
            raise ValueError(
                "start_kernel must be a kernel that the search can reach, made with the operators "
                f"{[operator.symbol for operator in grammar.operators]} on columns that vary, and "
                f"on a scale of the target out of {list(map(_name_of, grammar.targets))}, got "
                f"{expression.to_text(names)}"
            )
        return tidy

    def _scales(self, columns: Sequence[int]) -> list[tuple[Scale | None, ...]]:
        """Return the scales of each column: those that a user chooses, or that are possible."""
        chosen, others = self._arguments.column_scales
        by_column = self._by_column("column_scales", chosen)
        found: list[tuple[Scale | None, ...]] = []
        for column in columns:
            name = by_column.get(column, others)
            if name == AUTO:
                names = scales_of_column(self._known(column))
                names = [] if column in self._without_scales else names
                found.append((None, *(self._column_scale(one, column) for one in names)))
            elif name == IDENTITY:
                found.append((None,))
            else:
                found.append((self._column_scale(name, column, argument="column_scales"),))
        return found

    def _column_scale(self, name: str, column: int, *, argument: str = "auto") -> Scale:
        x, label = self._X[:, column], column if self._names is None else self._names[column]
        check_possible(name, x, self._rows, argument=argument, what=f"column {label!r}")
        shift, scale = self._scaling.of_column(column)
        return column_scale(name, self._known(column), shift=shift, scale=scale)

    def _known(self, column: int) -> FloatArray:
        """Return the values of a column that are not missing, in the units of the user."""
        x = self._X[:, column]
        return x[~np.isnan(x)]

    def _by_column(self, argument: str, given: Mapping[str | int, Entry]) -> dict[int, Entry]:
        """Turn the keys of a mapping, names or zero-based indices of columns, into indices."""
        names, n_features = self._names, self._n_features
        entries: dict[int, Entry] = {}
        for key, entry in given.items():
            is_index = not isinstance(key, str) or key.isdecimal()
            if isinstance(key, str) and names is not None and key in names:
                column = list(names).index(key)
            elif is_index and 0 <= int(key) < n_features:
                column = int(key)
            else:
                known = list(names) if names is not None else f"indices below {n_features}"
                raise ValueError(
                    f"{argument} must have columns of X as keys, out of {known}, got {key!r}"
                    f"{did_you_mean(key, names or ())}"
                )
            if column in entries:
                raise ValueError(f"{argument} must name each column once, got {list(given)}")
            entries[column] = entry
        return entries


def targets_of(
    name: str,
    y: FloatArray,
    rows: IntArray | None,
    scaling: TargetScaling,
    weights: FloatArray,
    *,
    min_ratio: float = MIN_RATIO_OF_TARGET,
) -> tuple[OnScale | None, ...]:
    """Return the scales of the target: the one that a user chooses, or those possible.

    A message counts the targets by ``rows`` (n_samples,).
    """
    if name == IDENTITY or scaling.is_constant:
        return (None,)
    if name == AUTO:
        possible, given = scales_of_target(y, min_ratio), (y, rows, scaling, weights)
        return (None, *(_scaled_target(one, *given, argument=AUTO) for one in possible))
    return (_scaled_target(name, y, rows, scaling, weights, argument="target_scale"),)


def _scaled_target(
    name: str,
    y: FloatArray,
    rows: IntArray | None,
    scaling: TargetScaling,
    weights: FloatArray,
    *,
    argument: str,
) -> OnScale:
    check_possible(name, y, rows, argument=argument, what="the target", is_target=True)
    return OnScale(target_scale(name, y, weights, shift=scaling.shift, scale=scaling.scale))


def with_periods(
    kernels: Sequence[BaseKernel], periods: Sequence[float], *, scale: float
) -> tuple[BaseKernel, ...]:
    """Put a periodic kernel for each known period in the place of the one with a free period."""
    seasons = tuple(Seasonal(period, scale=scale) for period in periods)
    if not seasons:
        return tuple(kernels)
    if PERIODIC not in kernels:
        return (*kernels, *seasons)
    place = list(kernels).index(PERIODIC)
    return (*kernels[:place], *seasons, *kernels[place + 1 :])


def _name_of(target: OnScale | None) -> str:
    return IDENTITY if target is None else target.scale.name


def _grammar(
    columns: Sequence[int],
    by_column: Sequence[tuple[BaseKernel, ...]],
    arguments: Arguments,
    scales: Sequence[tuple[Scale | None, ...]],
    targets: tuple[OnScale | None, ...],
) -> Grammar:
    """Build the grammar, whose number of leaves may depend on the number of columns."""
    differ = any(kernels != by_column[0] for kernels in by_column)
    has_gaps = any(isinstance(one, WithGaps) for kernels in by_column for one in kernels)
    union = {kernel.name: of_known(kernel) for kernels in by_column for kernel in kernels}
    return Grammar(
        tuple(union.values()) if differ else by_column[0],
        arguments.operators,
        tuple(columns),
        arguments.max_leaves or max(DEFAULT_MAX_LEAVES, 2 * len(columns) + 4),
        reduces=arguments.structure_prior is not None,
        by_column=tuple(by_column) if differ or has_gaps or arguments.periods else None,
        scales=tuple(scales) if any(one != (None,) for one in scales) else None,
        targets=targets,
    )


def _warn_of_periods(
    periods: Mapping[int, tuple[float, ...]], X: FloatArray, names: Sequence[str] | None
) -> None:
    """Warn of known periods that the locations of the data cannot show."""
    for column, known in periods.items():
        name = repr(column if names is None else names[column])
        places = np.unique(X[~np.isnan(X[:, column]), column])
        if len(places) == 1:
            warn_user(f"periods of column {name} have no effect, because the column is constant")
            continue
        extent, spacing = float(places[-1] - places[0]), float(np.diff(places).min())
        for period in known:
            if period > MAX_EXTENTS * extent:
                warn_user(
                    f"the period {period:g} of column {name} is much longer than its extent of "
                    f"{extent:.3g}: is it in the unit of the column?"
                )
            elif period < spacing:
                warn_user(
                    f"the period {period:g} of column {name} is shorter than its smallest spacing "
                    f"of {spacing:.3g}: is it in the unit of the column?"
                )
