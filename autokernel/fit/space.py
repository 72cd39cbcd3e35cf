"""The space of kernels of a search: base kernels by column, known periods, first kernels."""

import re
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain
from typing import TypeVar

import numpy as np

from autokernel.data import Columns, FitData, Target
from autokernel.data.periodogram import columns_with_season, seasons_of, shows_cycles
from autokernel.data.scales import (
    MIN_RATIO_OF_TARGET,
    check_possible,
    scales_of_column,
    scales_of_target,
)
from autokernel.deadline import Deadline
from autokernel.evidence import check_expression
from autokernel.exceptions import warn_user
from autokernel.expression import (
    COUNT_SCALES,
    IDENTITY,
    Expression,
    Grammar,
    Leaf,
    StructurePrior,
    changes_along,
    grammar_prior,
    uniform_prior,
    unit_prior,
    with_leaves,
)
from autokernel.fit.arguments import AUTO, Arguments
from autokernel.inference import TrainingData
from autokernel.kernels import (
    CATEGORICAL,
    EFFECTS,
    FEW_COLUMNS,
    GROWTH,
    MANY_COLUMNS,
    PERIODIC,
    SERIES,
    BaseKernel,
    Seasonal,
)
from autokernel.validation import index_of_column

MAX_FEW_COLUMNS = 2  # with which "auto" is FEW_COLUMNS, the first of SOT's two spaces
NO_CYCLES = "less than four values in each of two cycles; name PER in base_kernels to have it"

_LOG = re.compile(r"\[\s*log\(\s*([^\[\]]*?)\s*\)\s*\]")
_OFFSET = re.compile(r".*\+\s*(\d+(?:\.\d*)?(?:e[+-]?\d+)?)", re.DOTALL)

Entry = TypeVar("Entry")


class Space:
    """The ``grammar`` of a search, and the kernels that it begins with, ``start``.

    Dates and categories are not rescaled unless the user names a scale, as their zero has no
    meaning. Categories have a kernel of their levels, and those with an order also kernels of
    numbers. Where there are many columns, ``"auto"`` gives a periodic kernel to the ``periodic``
    ones, and to those along which the ``searched`` rows show a season, as far as the deadline
    allows.

    A ``ValueError`` is raised if an argument names a column that X does not have, if no column is
    left, if a kernel to begin with is not in the space, or if a scale does not have all numbers.
    """

    def __init__(
        self,
        given: FitData,
        searched: TrainingData,
        arguments: Arguments,
        *,
        periodic: AbstractSet[int] = frozenset(),
        deadline: Deadline,
    ) -> None:
        self._given, self._searched, self._arguments = given, searched, arguments
        self._columns = searched.inputs.columns
        self._chosen = _by_column(self._columns, "base_kernels", arguments.by_column)
        periods = _by_column(self._columns, "periods", arguments.periods)
        self._check_periods(periods)
        used = searched_columns(self._columns, arguments)
        self._unchanging = frozenset(  # along these no kernel can change
            number
            for number, one in enumerate(self._columns.every)
            if one.n_gaps or (one.levels is not None and not one.levels.is_ordered)
        )
        self.periodic = periodic | self._periodic_columns(used, deadline)
        by_column = [self._base_kernels(c, periods.get(c)) for c in used]
        self.grammar = self._grammar(used, by_column or [arguments.base_kernels or FEW_COLUMNS])
        prior = _structure_prior(self.grammar, arguments)
        of_noise = {scale: one.log_prior for scale, one in searched.varying.items()}
        self.structure_prior = partial(_with_noise, prior, of_noise) if of_noise else prior
        start = (self.kernel(one, argument="start_kernel") for one in arguments.start_kernel)
        known = (self._with_known_periods(one) for one in start if one.n_leaves)  # not NOISE
        self.start = tuple(self.checked(one) for one in known)

    def _selection(self, number: int) -> tuple[BaseKernel, ...] | None:
        return self._chosen.get(number, self._arguments.base_kernels)

    def _periodic_columns(self, used: Sequence[int], deadline: Deadline) -> set[int]:
        found: Collection[int] = [c for c in used if not self._columns[c].levels]
        if len(found) > MAX_FEW_COLUMNS:
            data = self._searched
            X, weights = data.inputs.filled, data.noise.influence
            found = columns_with_season(X, data.y, weights, deadline)
        return {c for c in found if shows_cycles(self._given.X[:, c])}

    def _check_periods(self, periods: Mapping[int, tuple[float, ...]]) -> None:
        for number, known in periods.items():
            column, x = self._columns[number], self._given.X[:, number]
            if self._selection(number) == ():
                raise ValueError(
                    f"periods must be of columns that are used, got one of column {number}, to "
                    "which base_kernels gives none"
                )
            if column.levels:
                raise ValueError(
                    "periods must be of columns of numbers or dates, got one of column "
                    f"{column.name!r}, which holds categories"
                )
            name, places = self._text_of(number), np.unique(x[~np.isnan(x)])
            if len(places) < 2:
                warn_user(f"periods of {name} have no effect, because the column is constant")
                continue
            extent, spacing = float(places[-1] - places[0]), float(np.diff(places).min())
            too_long = f"much longer than its extent of {extent:.3g}"
            too_short = f"shorter than its smallest spacing of {spacing:.3g}"
            for period in known:
                if period > 2 * extent or period < spacing:
                    how = too_short if period < spacing else too_long
                    unit = "is it in the unit of the column?"
                    warn_user(f"the period {period:g} of {name} is {how}: {unit}")

    def _text_of(self, number: int) -> str:
        column = self._columns[number]
        return f"column {column.name!r}" if self._columns.has_names else f"column {number}"

    def _base_kernels(
        self, number: int, periods: tuple[float, ...] | None
    ) -> tuple[BaseKernel, ...]:
        column, selection = self._columns[number], self._selection(number)
        if column.levels is not None and self._chosen.get(number) is None:
            others = (selection or MANY_COLUMNS) if column.levels.is_ordered else ()
            return tuple(dict.fromkeys((CATEGORICAL, *others)))
        if selection:
            return with_periods(selection, periods or ())
        (time, groups), is_of_series = self._given.series, self._arguments.strategy.is_of_series
        if is_of_series and number != time:
            return with_periods(EFFECTS, periods or ())
        kernels: tuple[BaseKernel, ...] = FEW_COLUMNS if number in self.periodic else MANY_COLUMNS
        if column.is_date or (number == time and (is_of_series or groups)):
            kernels = tuple(dict.fromkeys((*kernels, *SERIES)))
        if is_of_series and groups:
            kernels = (*kernels, GROWTH)
        if self._may_hold_levels(number):
            kernels = (*kernels, CATEGORICAL)
        kernels = with_periods(kernels, periods or ())
        if column.is_date and periods is None:
            kernels += tuple(map(Seasonal, seasons_of(self._given.X[:, number])))
        return kernels

    def _may_hold_levels(self, number: int) -> bool:
        """Whether a column has 3 to 12 distinct whole numbers, in three rows each on average."""
        x = self._given.X[:, number]
        x = x[~np.isnan(x)]
        n, most = len(np.unique(x)), min(12, len(x) / 3)
        return not self._columns[number].is_date and 3 <= n <= most and bool(np.all(x % 1 == 0))

    def kernel(self, kernel: str | Expression, *, argument: str) -> Expression:
        """Parse a kernel that the user names, and check its columns and scales."""
        named = (*self._arguments.named_kernels, *self.grammar.base_kernels)
        custom = {one.name: one for one in named if not isinstance(one, Seasonal)}
        expression = check_expression(
            kernel,
            self._columns.feature_names,
            n_features=len(self._columns),
            argument=argument,
            base_kernels=tuple(custom.values()),
            operators=self._arguments.operators,
        )
        for column in changes_along(expression) & self._unchanging:
            raise ValueError(
                f"{argument} must have change-points on columns of numbers that are all known, got "
                f"{self._columns.text_of(expression)}: column {column} has missing "
                "values or categories"
            )
        for leaf in expression.leaves:
            levels = self._columns[leaf.column].levels
            is_meant = leaf.kernel.is_categorical or self._chosen.get(leaf.column) is not None
            if levels is not None and not levels.is_ordered and not is_meant:
                text = self._columns.text_of(leaf)
                raise ValueError(
                    f"{argument} must have CAT on columns of categories, got {text}: its levels "
                    "have no order; convert numbers that are texts, as by astype(float)"
                )
        expression = self.grammar.placed(expression) if self._given.is_count else expression
        self.check_scales(expression)
        self._check_offsets(kernel, expression, argument=argument)
        return expression

    def _check_offsets(self, given: str | Expression, kernel: Expression, *, argument: str) -> None:
        """Warn of a text in which another number is added to a column than the data say."""
        offsets, names = self._columns.log_offsets.values(), self._columns.names
        for text in _LOG.findall(given) if isinstance(given, str) else ():
            found = None if text in names else _OFFSET.fullmatch(text)
            if found and float(found[1]) not in offsets:
                warn_user(
                    f"{argument}={given!r} is taken for {self._columns.text_of(kernel)}: what is "
                    "added to a column before its logarithm is taken follows from the data"
                )

    def check_scales(self, expression: Expression) -> None:
        """Raise a ``ValueError`` if a scale of a kernel does not have all numbers."""
        for leaf in expression.leaves:
            self._check_scale(leaf.scale, leaf.column, argument="kernel")
        _check_target(expression.target, self._given, argument="kernel")

    def _with_known_periods(self, expression: Expression) -> Expression:
        """Put the known period of a column in the place of a free one, if there is only one."""

        def known(leaf: Leaf) -> Leaf:
            seasons = self.grammar.like(PERIODIC, leaf.column)
            is_known = len(seasons) == 1 and isinstance(seasons[0].kernel, Seasonal)
            return seasons[0] if leaf.kernel == PERIODIC and is_known else leaf

        return with_leaves(expression, known)

    def has(self, expression: Expression) -> bool:
        """Return whether the search can reach a kernel, in its tidy form."""
        return self.grammar.spans(self.grammar.placed(self.grammar.tidy(expression)))

    def checked(self, expression: Expression) -> Expression:
        """Return the form of a kernel in which the search evaluates it, if the space has it."""
        grammar = self.grammar
        if (tidy := grammar.tidy(expression)).n_leaves > grammar.max_leaves:
            raise ValueError(
                f"start_kernel must have at most max_leaves={grammar.max_leaves} base kernels, got "
                f"{tidy.n_leaves}: raise max_leaves"
            )
        for leaf in tidy.leaves:
            if grammar.spans(grammar.placed(leaf)):
                continue
            own = [one.kernel.name for one in grammar.leaves if one.column == leaf.column]
            is_short = leaf.kernel == PERIODIC and leaf.column not in self.periodic
            raise ValueError(
                "start_kernel must be made of the base kernels of the search, got "
                f"{self._columns.text_of(leaf)}: its column has {own or 'none'}"
                f"{f', as it has {NO_CYCLES}' if is_short else ''}"
            )
        if not self.has(tidy):
            raise ValueError(
                "start_kernel must be a kernel that the search can reach, made with the operators "
                f"{[operator.symbol for operator in grammar.operators]} on columns that vary, and "
                f"on a scale of the target out of {list(grammar.targets)}, got "
                f"{self._columns.text_of(expression)}"
            )
        return tidy

    def _scales(self, used: Sequence[int]) -> list[tuple[str, ...]]:
        """Return the scales of each column: those that a user chooses, or that are possible."""
        others, chosen = self._arguments.column_scales
        by_column = _by_column(self._columns, "column_scales", chosen)
        found: list[tuple[str, ...]] = []
        for number in used:
            column = self._columns[number]
            name = by_column.get(number, IDENTITY if column.levels else others)
            if name == AUTO:
                x = self._given.X[:, number]
                is_number = not (column.is_date or column.levels)
                names = scales_of_column(x[~np.isnan(x)]) if is_number else []
                found.append((IDENTITY, *names))
            else:
                self._check_scale(name, number, argument="column_scales")
                found.append((name,))
        return found

    def _check_scale(self, name: str, number: int, *, argument: str) -> None:
        given, what = self._given, self._text_of(number)
        if self._columns[number].levels and name != IDENTITY:
            raise ValueError(
                f"{argument} has {name!r} for {what}, which holds categories: only numbers have a "
                "scale"
            )
        check_possible(name, given.X[:, number], given.rows, argument=argument, what=what)

    def _grammar(self, used: Sequence[int], by_column: Sequence[tuple[BaseKernel, ...]]) -> Grammar:
        """Build the grammar, whose number of leaves may depend on the number of columns."""
        arguments, scales = self._arguments, self._scales(used)
        limit, target = arguments.max_leaves, self._searched.target
        min_ratio = 1.0 if arguments.strategy.is_of_series else MIN_RATIO_OF_TARGET
        return Grammar(
            tuple(dict.fromkeys(chain(*by_column))),
            arguments.operators,
            tuple(used),
            max(10, 2 * len(used) + 4) if limit == AUTO else int(limit),
            reduces=arguments.structure_prior is not None,
            by_column=tuple(by_column) if len(set(by_column)) > 1 or arguments.periods else None,
            scales=tuple(scales) if any(one != (IDENTITY,) for one in scales) else None,
            targets=targets_of(self._given, target, arguments.target_scale, min_ratio=min_ratio),
            unchanging=self._unchanging,
        )


def searched_columns(columns: Columns, arguments: Arguments) -> list[int]:
    """Return the columns that vary and have base kernels: no kernel or noise depends on others.

    A ``ValueError`` is raised if those that vary have none.
    """
    chosen = _by_column(columns, "base_kernels", arguments.by_column)
    varying = [number for number, column in enumerate(columns.every) if column.varies]
    if arguments.exposure is not None:
        chosen |= {columns.index_of(arguments.exposure, argument="exposure"): ()}
    used = [number for number in varying if chosen.get(number, arguments.base_kernels) != ()]
    if varying and not used and arguments.exposure is None:
        raise ValueError(
            "base_kernels must leave base kernels to a column of X that is not constant, but "
            f"columns {varying} have none"
        )
    return used


def _by_column(
    columns: Columns, argument: str, given: Mapping[str | int, Entry]
) -> dict[int, Entry]:
    """Turn the keys of a mapping, names or zero-based indices of columns, into indices."""
    expected = f"{argument} must have columns of X as keys"
    entries: dict[int, Entry] = {}
    names = columns.feature_names or []
    for key, entry in given.items():
        is_index = isinstance(key, str) and key.isdecimal() and key not in names
        given_key = int(key) if is_index else key
        column = index_of_column(given_key, names, len(columns), expected=expected)
        if column in entries:
            raise ValueError(f"{argument} must name each column once, got {list(given)}")
        entries[column] = entry
    return entries


def _with_noise(
    prior: StructurePrior, of_noise: Mapping[str, float], expression: Expression
) -> float:
    """Return the log prior of a structure and of how the noise varies on its scale."""
    return prior(expression) + of_noise.get(expression.target, 0.0)


def _structure_prior(grammar: Grammar, arguments: Arguments) -> StructurePrior:
    n_columns, chosen = len(grammar.columns), arguments.structure_prior
    if chosen is None or (isinstance(chosen, str) and arguments.strategy.is_of_series):
        return uniform_prior
    if not isinstance(chosen, str):
        return partial(unit_prior, nats=float(chosen), n_columns=n_columns)
    by_column = grammar.by_column or [grammar.base_kernels]
    of_numbers = [ks for ks in by_column if not all(k.is_categorical for k in ks)] or by_column
    scales = zip(grammar.columns, grammar.scales or (), strict=bool(grammar.scales))
    return partial(
        grammar_prior,
        n_kernels=sum(map(len, of_numbers)) / len(of_numbers),
        n_operators=len(grammar.operators),
        n_columns=n_columns,
        n_scales={column: len(of_column) for column, of_column in scales},
        n_targets=len(grammar.targets),
    )


def targets_of(
    given: FitData, target: Target, name: str, *, min_ratio: float = MIN_RATIO_OF_TARGET
) -> tuple[str, ...]:
    """Return the scales of the target: the one that a user chooses, or those possible."""
    if given.is_count:
        return given.families
    if name == IDENTITY or target.is_constant:
        return (IDENTITY,)
    if name == AUTO:
        scales = scales_of_target(given.y, min_ratio, offset=given.log_offset)
        return (IDENTITY, *scales, *given.families)
    _check_target(name, given, argument="target_scale")
    return (name,)


def _check_target(name: str, given: FitData, *, argument: str) -> None:
    if name in COUNT_SCALES or given.is_count:
        if name not in given.families:
            known = [one.replace("_", " ") for one in given.families]
            raise ValueError(
                f"{argument} must have a distribution of y, by noise, exposure and n_trials one "
                f"of {known or ['normal']}, got {name.replace('_', ' ')}"
            )
        return
    y, rows, offset = given.y, given.rows, given.log_offset
    check_possible(name, y, rows, argument=argument, what="the target", offset_of_target=offset)


def with_periods(kernels: Sequence[BaseKernel], periods: Sequence[float]) -> tuple[BaseKernel, ...]:
    """Put a periodic kernel for each known period in the place of the one with a free period."""
    place = [*kernels, PERIODIC].index(PERIODIC) if periods else len(kernels)
    return (*kernels[:place], *map(Seasonal, periods), *kernels[place + 1 :])
