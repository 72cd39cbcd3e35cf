"""The arguments of the estimator: their allowed values and the objects that these name."""

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Memory
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from autokernel.evidence import CRITERIA, Criterion, parameters_of
from autokernel.exceptions import warn_user
from autokernel.expression import COLUMN_SCALES, COUNT_SCALES, IDENTITY, TARGET_SCALES, Expression
from autokernel.kernels import (
    BASE_KERNELS,
    KERNEL_ALIASES,
    OPERATORS,
    BaseKernel,
    Operator,
    Priors,
    check_priors,
    has_lambda,
    name_of_period,
    require_base_kernels,
    with_custom_kernels,
    with_custom_operators,
)
from autokernel.kernels.parameters import is_positive
from autokernel.many_rows import APPROXIMATIONS, AUTO
from autokernel.model import PosteriorAveraging
from autokernel.search import ACQUISITIONS, STRATEGIES, Strategy
from autokernel.search.strategy import AT_LEAST_ONE
from autokernel.validation import did_you_mean, resolve

CONSTRAINTS: dict[str, list[Any]] = {
    "base_kernels": [str, set, "array-like", Mapping],
    "categorical_features": [StrOptions({AUTO}), "array-like", None],
    "column_scales": [StrOptions({AUTO, IDENTITY, *COLUMN_SCALES}), Mapping, None],
    "target_scale": [StrOptions({AUTO, IDENTITY, *TARGET_SCALES}), None],
    "operators": [str, set, "array-like"],
    "outliers": [StrOptions({AUTO}), None],
    "noise": [StrOptions({AUTO, "constant", *COUNT_SCALES})],
    "exposure": [str, Integral, None],
    "n_trials": [str, Integral, None],
    "start_kernel": [str, Expression, "array-like", None],
    "n_iter": [Interval(Integral, 0, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
    "max_leaves": [StrOptions({AUTO}), *AT_LEAST_ONE],
    "batch_size": AT_LEAST_ONE,
    "priors": [str, Mapping],
    "structure_prior": [StrOptions({"default"}), Interval(Real, 0, None, closed="left"), None],
    "approximation": [StrOptions(APPROXIMATIONS)],
    "n_inducing": AT_LEAST_ONE,
    "memory": [str, os.PathLike, Memory, None],
    "n_jobs": [Interval(Integral, None, -1, closed="right"), *AT_LEAST_ONE, None],
    "warm_start": ["boolean"],
    "random_state": ["random_state"],
    "verbose": [StrOptions({AUTO}), "verbose"],
}
"""Types and ranges in the format of scikit-learn, of parameters whose check does not say more."""

OTHERS = "*"
"""The key of ``base_kernels`` for the columns without an entry."""

_REGISTRIES: Mapping[str, Mapping[str, type]] = {
    "strategy": STRATEGIES,
    "acquisition": ACQUISITIONS,
    "criterion": CRITERIA,
    "averaging": {"posterior": PosteriorAveraging},
}
_KINDS = {"strategy": Strategy, "criterion": Criterion, "averaging": PosteriorAveraging}


@dataclass(frozen=True, slots=True)
class Arguments:
    """The parameters of an estimator as objects."""

    base_kernels: tuple[BaseKernel, ...] | None  # of columns without an entry; None for "auto"
    by_column: Mapping[str | int, tuple[BaseKernel, ...] | None]
    named_kernels: tuple[BaseKernel, ...]  # of any column, those of "auto" left out
    column_scales: tuple[str, Mapping[str | int, str]]  # that of all columns, and of single ones
    target_scale: str  # the name of a scale
    outliers: str | None  # None to keep them
    noise: str  # "auto", "constant" or a distribution of counts
    exposure: str | int | None  # the column of it, or of the numbers of trials
    periods: Mapping[str | int, tuple[float, ...]]
    start_kernel: tuple[str | Expression, ...]
    operators: tuple[Operator, ...]
    strategy: Strategy
    criterion: Criterion
    max_leaves: int | str  # or "auto"
    priors: Priors
    structure_prior: float | str | None  # nats per unit, or "default"
    averaging: PosteriorAveraging | None
    approximation: str
    n_inducing: int
    n_iter: int
    tol: float
    batch_size: int
    memory: Memory | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None

    @property
    def parts(self) -> list[BaseKernel | Operator]:
        """Base kernels and operators that the user has named, or has written into a kernel."""
        starts = (one for one in self.start_kernel if isinstance(one, Expression))
        of_starts = (tree.declared for one in starts for tree in one.subtrees())
        return [*self.named_kernels, *self.operators, *of_starts]

    @classmethod
    def of(cls, estimator: BaseEstimator) -> "Arguments":
        """Check the parameters of an estimator, and replace names by objects."""
        given = estimator.get_params(deep=False)
        base_kernels, by_column = check_base_kernels_by_column(given["base_kernels"])
        selections = [base_kernels, *by_column.values()]
        named = [kernel for selection in selections for kernel in selection or ()]
        names = with_custom_kernels(named)  # refuses two kernels of one name
        operators = check_operators(given["operators"], base_kernels=names)
        known = parameters_of((*BASE_KERNELS.values(), *named, *operators))
        if isinstance(given["structure_prior"], bool):
            raise ValueError(
                "structure_prior must be 'default', None or a number of nats, got "
                f"{given['structure_prior']!r}"
            )
        converted = {
            "base_kernels": base_kernels,
            "by_column": by_column,
            "named_kernels": tuple(dict.fromkeys(named)),
            "column_scales": check_column_scales(given["column_scales"]),
            "target_scale": given["target_scale"] or IDENTITY,
            "periods": check_periods(given["periods"]),
            "start_kernel": check_start_kernel(given["start_kernel"]),
            "operators": operators,
            "priors": check_priors(given["priors"], parameters=known.values()),
            "n_inducing": int(given["n_inducing"]),
            "exposure": given["n_trials"] if given["exposure"] is None else given["exposure"],
            "memory": check_memory(given["memory"], (*named, *operators)),
        }
        for name, kind in _KINDS.items():
            if name != "averaging" or given[name] is not None:
                converted[name] = resolve(name, given[name], registry=_REGISTRIES[name], kind=kind)
        return cls(**{one.name: (given | converted)[one.name] for one in fields(cls)})


def check_nested(params: Mapping[str, Any], estimator: BaseEstimator) -> None:
    """Refuse nested parameters of an argument that is a name instead of an object."""
    for key in params:
        path, owner = key.split("__"), estimator
        for depth, argument in enumerate(path[:-1], start=1):
            prefix = "__".join(path[:depth])
            owner = params.get(prefix, getattr(owner, argument, None))
            if isinstance(owner, str) and owner in _REGISTRIES.get(argument, ()):
                example = f"{prefix}={_REGISTRIES[argument][owner].__name__}()"
                raise ValueError(
                    f"{prefix} must be an object for {key} to be set, got {owner!r}: "
                    f"set {example} first"
                )


def check_memory(
    memory: str | os.PathLike[str] | Memory | None, parts: Iterable[BaseKernel | Operator]
) -> Memory | None:
    """Turn the ``memory`` argument into a ``joblib.Memory``."""
    if memory is None:
        return None
    for part in filter(has_lambda, parts):
        raise ValueError(
            f"memory needs base kernels and operators that can be pickled, got {part!r}: "
            "give it functions that can be imported instead of lambdas"
        )
    if isinstance(memory, Memory):
        return memory
    folder = Path(memory).expanduser().resolve()  # workers may have another working folder
    try:
        return Memory(folder, verbose=0)
    except OSError as error:
        warn_user(f"memory must be a folder that can be made ({error}): no result is kept")
        return None


def check_base_kernels_by_column(
    base_kernels: Any,
) -> tuple[tuple[BaseKernel, ...] | None, Mapping[str | int, tuple[BaseKernel, ...] | None]]:
    """Split the ``base_kernels`` argument into those of all columns and those of single ones."""
    if not isinstance(base_kernels, Mapping):
        return check_base_kernels(base_kernels), {}
    by_column = {}
    for key, chosen in base_kernels.items():
        check_key("base_kernels", key)
        if not isinstance(chosen, (str, Collection)):
            raise ValueError(
                f"base_kernels[{key!r}] must be 'auto' or a list such as ['SE'], or () for a "
                f"column that is not used, got {chosen!r}"
            )
        is_empty = not isinstance(chosen, str) and not len(chosen)
        by_column[key] = () if is_empty else check_base_kernels(chosen, f"base_kernels[{key!r}]")
    return by_column.pop(OTHERS, None), by_column


def check_key(argument: str, key: object) -> None:
    """Check that a key can be a column: a name or a zero-based index."""
    if isinstance(key, bool) or not isinstance(key, (str, Integral)):
        raise ValueError(
            f"{argument} must have names or zero-based indices of columns as keys, got {key!r}"
        )


def check_column_scales(given: Any) -> tuple[str, Mapping[str | int, str]]:
    """Split the ``column_scales`` argument into that of all columns and those of single ones."""
    if not isinstance(given, Mapping):
        return given or IDENTITY, {}
    known = (AUTO, IDENTITY, *COLUMN_SCALES)
    for key, name in given.items():
        check_key("column_scales", key)
        if name is not None and name not in known:
            raise ValueError(
                f"column_scales[{key!r}] must be one of {list(known)} or None, got {name!r}"
                f"{did_you_mean(name, known) if isinstance(name, str) else ''}"
            )
    by_column = {key: name or IDENTITY for key, name in given.items()}
    return by_column.pop(OTHERS, AUTO), by_column


def check_periods(periods: Any) -> Mapping[str | int, tuple[float, ...]]:
    """Turn the ``periods`` argument into tuples of numbers by column."""
    checked: dict[str | int, tuple[float, ...]] = {}
    if periods is not None and not isinstance(periods, Mapping):
        raise ValueError(
            "periods must be a mapping such as {'month': 12}, with names or indices of columns, "
            f"got {periods!r}"
        )
    for key, given in (periods or {}).items():
        check_key("periods", key)
        several = given if isinstance(given, Collection) and not isinstance(given, str) else [given]
        if not all(map(is_positive, several)):
            raise ValueError(
                f"periods[{key!r}] must be a positive number, or a list of them, in the unit of "
                f"the column, which is days for dates, got {given!r}"
            )
        checked[key] = tuple(float(one) for one in several)
        if len({name_of_period(one) for one in checked[key]}) < len(checked[key]):
            raise ValueError(f"periods[{key!r}] must hold periods that differ, got {given!r}")
    return checked


def check_start_kernel(start_kernel: Any) -> tuple[str | Expression, ...]:
    """Turn the ``start_kernel`` argument into a tuple; its texts are read with the data."""
    if start_kernel is None:
        return ()
    given = start_kernel if isinstance(start_kernel, (list, tuple)) else [start_kernel]
    if not all(isinstance(one, (str, Expression)) for one in given):
        raise ValueError(
            "start_kernel must be a kernel such as 'LIN[0] + PER[0]', or a list of kernels, got "
            f"{start_kernel!r}"
        )
    return tuple(given)


def check_base_kernels(
    base_kernels: str | Collection[str | BaseKernel], argument: str = "base_kernels"
) -> tuple[BaseKernel, ...] | None:
    """Turn the ``base_kernels`` argument, or an entry, into base kernels; None for ``"auto"``."""
    if isinstance(base_kernels, str) and base_kernels == AUTO:
        return None
    given = () if isinstance(base_kernels, str) else tuple(base_kernels)
    own = require_base_kernels(argument, [one for one in given if not isinstance(one, str)])
    known = with_custom_kernels(sorted(own, key=lambda one: one.name))  # a set has no order
    _check_selection(argument, base_kernels, given, known=BASE_KERNELS, kind=BaseKernel)
    return tuple(kernel for name, kernel in known.items() if name in given or kernel in given)


def check_operators(
    operators: str | Collection[str | Operator], *, base_kernels: Collection[str]
) -> tuple[Operator, ...]:
    """Turn the ``operators`` argument into operators, built-in ones first."""
    given = () if isinstance(operators, str) else tuple(operators)
    given = tuple(one.upper() if isinstance(one, str) else one for one in given)
    objects = [one for one in given if not isinstance(one, str)]
    known = with_custom_operators(objects, base_kernels=base_kernels)
    _check_selection("operators", operators, given, known=OPERATORS, kind=Operator)
    return tuple(one for symbol, one in known.items() if symbol in given or one in given)


def _check_selection(
    argument: str, got: object, given: Collection[object], *, known: Mapping[str, Any], kind: type
) -> None:
    wrong = [one for one in given if isinstance(one, str) and one not in known]
    if wrong or not given:  # objects are checked
        hint = did_you_mean(wrong[0], known, aliases=KERNEL_ALIASES) if wrong else ""
        raise ValueError(
            f"{argument} must be a selection of {list(known)} or {kind.__name__} objects, a list "
            f"such as [{next(iter(known))!r}], got {got!r}{hint}"
        )
