"""The space of kernels of a search: base kernels by column, known periods, first kernels."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from autokernel.data.scaling import Scaling, varying_columns
from autokernel.evidence import check_expression
from autokernel.expression import Expression, Grammar, Leaf
from autokernel.fit.arguments import Arguments
from autokernel.kernels import FEW_COLUMNS, MANY_COLUMNS, PERIODIC, BaseKernel, Seasonal
from autokernel.typing import FloatArray
from autokernel.validation import did_you_mean

_FEW = 2  # with at most so many columns, "auto" is FEW_COLUMNS, the first of SOT's two spaces
_DEFAULT_MAX_LEAVES = 10
_MOST_EXTENTS = 2.0  # of a column, within which a known period shows

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Space:
    """The kernels that a search may reach, and those that it begins with."""

    grammar: Grammar
    base_kernels: tuple[BaseKernel, ...]  # kernels of the fixed design, including the grammar's
    start: tuple[Expression, ...]

    @classmethod
    def of(
        cls,
        X: FloatArray,
        arguments: Arguments,
        *,
        scaling: Scaling,
        feature_names: Sequence[str] | None,
    ) -> "Space":
        """Build the space over the columns that vary and that have base kernels.

        Raises
        ------
        ValueError
            If an argument names a column that X does not have, if no column is left, or if a
            kernel to begin with is not in the space.
        """
        names, n_features = feature_names, X.shape[1]
        chosen = _by_column("base_kernels", arguments.by_column, names=names, n_features=n_features)
        periods = _by_column("periods", arguments.periods, names=names, n_features=n_features)
        varying: list[int] = np.flatnonzero(varying_columns(X)).tolist()
        columns = [c for c in varying if chosen.get(c, arguments.base_kernels) != ()]
        _check_used(periods, {c: chosen.get(c, arguments.base_kernels) for c in periods})
        _warn_of_periods(periods, X, names)
        if varying and not columns:
            raise ValueError(
                "base_kernels must leave base kernels to a column of X that is not constant, but "
                f"columns {varying} have none"
            )
        auto = FEW_COLUMNS if len(columns) <= _FEW else MANY_COLUMNS
        selections = [chosen.get(column, arguments.base_kernels) for column in columns]
        by_column = [
            with_periods(
                selection or auto, periods.get(column, ()), scale=float(scaling.scale[column])
            )
            for column, selection in zip(columns, selections, strict=True)
        ]
        grammar = _grammar(columns, by_column or [arguments.base_kernels or auto], arguments)
        # the fixed design holds sums of LIN for "auto", whatever the number of columns
        space = cls(grammar, FEW_COLUMNS if None in selections else grammar.base_kernels, ())
        start = (
            space.kernel(one, arguments, argument="start_kernel", feature_names=names, X=X)
            for one in arguments.start_kernel
        )
        known = (space.with_known_periods(one) for one in start if one.n_leaves)  # not NOISE
        checked = tuple(space.checked(one, names) for one in known)
        return cls(grammar, space.base_kernels, checked)

    def kernel(
        self,
        kernel: str | Expression,
        arguments: Arguments,
        *,
        argument: str,
        feature_names: Sequence[str] | None,
        X: FloatArray,
    ) -> Expression:
        """Parse a kernel that the user names, and check its columns."""
        known = {one.name: one for one in (*arguments.named_kernels, *self.grammar.base_kernels)}
        expression = check_expression(
            kernel,
            feature_names,
            n_features=X.shape[1],
            argument=argument,
            base_kernels=tuple(known.values()),
            operators=arguments.operators,
        )
        return self.bound(expression)

    def bound(self, expression: Expression) -> Expression:
        """Return the expression with the base kernels that this space has under the same names.

        Kernels with known periods depend on the extent of their column, and so on the data.
        """
        own = {leaf.canonical: leaf for leaf in self.grammar.leaves}
        return _with_leaves(expression, lambda leaf: own.get(leaf.canonical, leaf))

    def with_known_periods(self, expression: Expression) -> Expression:
        """Return the expression with the known period of a column in the place of a free one.

        A column with several known periods leaves it open which one is meant.
        """

        def known(leaf: Leaf) -> Leaf:
            seasons = self.grammar.like(PERIODIC, leaf.column)
            is_known = len(seasons) == 1 and isinstance(seasons[0].kernel, Seasonal)
            return seasons[0] if leaf.kernel == PERIODIC and is_known else leaf

        return _with_leaves(expression, known)

    def checked(self, expression: Expression, names: Sequence[str] | None) -> Expression:
        """Return the form of a kernel in which the search evaluates it, if the space has it."""
        grammar = self.grammar
        tidy = grammar.tidy(expression)
        if tidy.n_leaves > grammar.max_leaves:
            raise ValueError(
                f"start_kernel must have at most max_leaves={grammar.max_leaves} base kernels, got "
                f"{tidy.n_leaves}: raise max_leaves"
            )
        for tree in tidy.subtrees():
            is_known = tree.n_leaves > 1 or grammar.spans(tree, self.base_kernels)
            if isinstance(tree, Leaf) and not is_known:
                own = [leaf.kernel.name for leaf in grammar.leaves if leaf.column == tree.column]
                raise ValueError(
                    "start_kernel must be made of the base kernels of the search, got "
                    f"{tree.to_text(names)}: its column has {own or 'none'}"
                )
        if not grammar.spans(tidy, self.base_kernels):
            raise ValueError(
                "start_kernel must be a kernel that the search can reach, made with the operators "
                f"{[operator.symbol for operator in grammar.operators]} on columns that vary, got "
                f"{expression.to_text(names)}"
            )
        return tidy


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


def _with_leaves(expression: Expression, choose: Callable[[Leaf], Leaf]) -> Expression:
    """Return an expression with its leaves exchanged, which leaves the numbers of subtrees."""
    for number, tree in enumerate(expression.subtrees()):
        if isinstance(tree, Leaf):
            expression = expression.replace(number, choose(tree))
    return expression


def _grammar(
    columns: Sequence[int], by_column: Sequence[tuple[BaseKernel, ...]], arguments: Arguments
) -> Grammar:
    """Build the grammar, whose number of leaves may depend on the number of columns."""
    differ = any(kernels != by_column[0] for kernels in by_column)
    union = {kernel.name: kernel for kernels in by_column for kernel in kernels}
    return Grammar(
        tuple(union.values()) if differ else by_column[0],
        arguments.operators,
        tuple(columns),
        arguments.max_leaves or max(_DEFAULT_MAX_LEAVES, 2 * len(columns) + 4),
        reduces=arguments.structure_prior is not None,
        by_column=tuple(by_column) if differ or arguments.periods else None,
    )


def _check_used(
    periods: Mapping[int, tuple[float, ...]],
    base_kernels: Mapping[int, tuple[BaseKernel, ...] | None],
) -> None:
    """Refuse known periods of a column that is not used."""
    unused = [column for column in periods if base_kernels[column] == ()]
    if unused:
        raise ValueError(
            f"periods must be of columns that are used, got one of column {unused[0]}, to which "
            "base_kernels gives none"
        )


def _warn_of_periods(
    periods: Mapping[int, tuple[float, ...]], X: FloatArray, names: Sequence[str] | None
) -> None:
    """Warn of known periods that the places of the data cannot show."""
    for column, known in periods.items():
        name = repr(column if names is None else names[column])
        places = np.unique(X[:, column])
        if len(places) == 1:
            _warn(f"periods of column {name} have no effect, because the column is constant")
            continue
        extent, spacing = float(places[-1] - places[0]), float(np.diff(places).min())
        for period in known:
            if period > _MOST_EXTENTS * extent:
                _warn(
                    f"the period {period:g} of column {name} is much longer than its extent of "
                    f"{extent:.3g}: is it in the unit of the column?"
                )
            elif period < spacing:
                _warn(
                    f"the period {period:g} of column {name} is shorter than its smallest spacing "
                    f"of {spacing:.3g}: is it in the unit of the column?"
                )


def _warn(text: str) -> None:
    """Warn the user of the estimator."""
    warnings.warn(text, UserWarning, stacklevel=9)


def _by_column(
    argument: str,
    given: Mapping[str | int, Entry],
    *,
    names: Sequence[str] | None,
    n_features: int,
) -> dict[int, Entry]:
    """Turn the keys of a mapping, names or zero-based indices of columns, into indices."""
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
