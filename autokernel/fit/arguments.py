"""The arguments of the estimator: their allowed values and the objects that these name."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from pickle import PicklingError
from typing import Any

from joblib import Memory
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from autokernel.averaging import AVERAGES, Averaging
from autokernel.criteria import CRITERIA, Criterion, check_criterion
from autokernel.evaluation import parameters_of
from autokernel.fit.plan import APPROXIMATIONS
from autokernel.kernels import (
    BASE_KERNELS,
    BaseKernel,
    Priors,
    check_priors,
    require_base_kernels,
    with_own_kernels,
)
from autokernel.model import EXACT, Inference
from autokernel.operators import OPERATORS, Operator, require_operators
from autokernel.search import STRATEGIES, Strategy
from autokernel.surrogate import ACQUISITIONS, Acquisition
from autokernel.validation import resolve

CONSTRAINTS: dict[str, list[Any]] = {
    "base_kernels": [str, set, "array-like"],
    "operators": [str, set, "array-like"],
    "strategy": [StrOptions(set(STRATEGIES)), Strategy],
    "criterion": [StrOptions(set(CRITERIA)), Criterion],
    "acquisition": [StrOptions(set(ACQUISITIONS)), Acquisition],
    "n_iter": [Interval(Integral, 0, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
    "max_leaves": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "priors": [str, Mapping],
    "structure_prior": [StrOptions({"default"}), Interval(Real, 0, None, closed="left"), None],
    "averaging": [StrOptions(set(AVERAGES)), Averaging, None],
    "approximation": [StrOptions(APPROXIMATIONS)],
    "n_inducing": [Interval(Integral, 1, None, closed="left")],
    "memory": [str, os.PathLike, Memory, None],
    "n_jobs": [
        Interval(Integral, None, -1, closed="right"),
        Interval(Integral, 1, None, closed="left"),
        None,
    ],
    "warm_start": ["boolean"],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
"""Types and ranges of the parameters, in the format of scikit-learn."""

_REGISTRIES: Mapping[str, Mapping[str, type]] = {
    "strategy": STRATEGIES,
    "criterion": CRITERIA,
    "acquisition": ACQUISITIONS,
    "averaging": AVERAGES,
}


@dataclass(frozen=True, slots=True)
class Arguments:
    """The parameters of an estimator as objects."""

    base_kernels: tuple[BaseKernel, ...] | None  # None for "auto"
    operators: tuple[Operator, ...]
    strategy: Strategy
    criterion: Criterion
    acquisition: Acquisition
    max_leaves: int | None  # None for "auto"
    priors: Priors
    structure_prior: float | str | None  # nats per unit, or "default"
    averaging: Averaging | None
    approximation: str
    n_inducing: int
    inference: Inference = EXACT

    @classmethod
    def of(cls, estimator: BaseEstimator) -> "Arguments":
        """Check the parameters of an estimator, and replace names by objects.

        Raises
        ------
        ValueError
            If a parameter is not valid; the message names it.
        """
        given = estimator.get_params(deep=False)
        base_kernels = check_base_kernels(given["base_kernels"])
        names = {*BASE_KERNELS, *(kernel.name for kernel in base_kernels or ())}
        operators = check_operators(given["operators"], base_kernels=names)
        known = parameters_of((*BASE_KERNELS.values(), *(base_kernels or ()), *operators))
        max_leaves = given["max_leaves"]
        if isinstance(given["structure_prior"], bool):
            raise ValueError(
                "structure_prior must be 'default', None or a number of nats, got "
                f"{given['structure_prior']!r}"
            )
        return cls(
            base_kernels,
            operators,
            resolve("strategy", given["strategy"], registry=STRATEGIES, kind=Strategy),
            check_criterion(given["criterion"]),
            resolve("acquisition", given["acquisition"], registry=ACQUISITIONS, kind=Acquisition),
            None if isinstance(max_leaves, str) else int(max_leaves),
            check_priors(given["priors"], parameters=known.values()),
            given["structure_prior"],
            check_averaging(given["averaging"]),
            given["approximation"],
            int(given["n_inducing"]),
        )


def check_averaging(averaging: str | Averaging | None) -> Averaging | None:
    """Turn the ``averaging`` argument into an object, or None."""
    if averaging is None:
        return None
    return resolve("averaging", averaging, registry=AVERAGES, kind=Averaging)


def check_nested(params: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """Refuse nested parameters of an argument that is a name instead of an object."""
    for key in params:
        argument, _, parameter = key.partition("__")
        name = params.get(argument, current.get(argument))
        if parameter and isinstance(name, str) and name in _REGISTRIES.get(argument, ()):
            example = f"{argument}={_REGISTRIES[argument][name].__name__}()"
            raise ValueError(
                f"{argument} must be an object for {key} to be set, got {name!r}: "
                f"set {example} first"
            )


def check_memory(
    memory: str | os.PathLike[str] | Memory | None, arguments: Arguments
) -> Memory | None:
    """Turn the ``memory`` argument into a ``joblib.Memory``.

    Raises
    ------
    ValueError
        If a base kernel or an operator cannot be told from others, as one with a lambda.
    """
    if memory is None:
        return None
    for own in (*(arguments.base_kernels or ()), *arguments.operators):
        try:
            _ = own.definition
        except (PicklingError, AttributeError, TypeError) as error:
            raise ValueError(
                f"memory asks for base kernels and operators that can be pickled, got {own!r}: "
                "give it functions that can be imported instead of lambdas"
            ) from error
    if isinstance(memory, Memory):
        return memory
    folder = Path(memory).expanduser().resolve()  # workers may have another working folder
    return Memory(folder, verbose=0)


def check_base_kernels(
    base_kernels: str | Collection[str | BaseKernel],
) -> tuple[BaseKernel, ...] | None:
    """Turn the ``base_kernels`` argument into base kernels, shipped ones first.

    The result is None for ``"auto"``.
    """
    if isinstance(base_kernels, str) and base_kernels == "auto":
        return None
    given = () if isinstance(base_kernels, str) else tuple(base_kernels)
    own = require_base_kernels(
        "base_kernels", [kernel for kernel in given if not isinstance(kernel, str)]
    )
    # a set has no order of its own
    known = with_own_kernels(sorted(own, key=lambda kernel: kernel.name))
    _check_selection("base_kernels", base_kernels, given, known=BASE_KERNELS, kind=BaseKernel)
    names = {kernel if isinstance(kernel, str) else kernel.name for kernel in given}
    return tuple(kernel for name, kernel in known.items() if name in names)


def check_operators(
    operators: str | Collection[str | Operator], *, base_kernels: Collection[str]
) -> tuple[Operator, ...]:
    """Turn the ``operators`` argument into operators, shipped ones first."""
    given = () if isinstance(operators, str) else tuple(operators)
    given = tuple(one.upper() if isinstance(one, str) else one for one in given)
    own = require_operators(
        [operator for operator in given if not isinstance(operator, str)],
        base_kernels=base_kernels,
    )
    _check_selection("operators", operators, given, known=OPERATORS, kind=Operator)
    own.sort(key=lambda operator: operator.symbol)  # a set has no order of its own
    known = {**OPERATORS, **{operator.symbol: operator for operator in own}}
    symbols = {one if isinstance(one, str) else one.symbol for one in given}
    return tuple(operator for symbol, operator in known.items() if symbol in symbols)


def _check_selection(
    argument: str, got: object, given: Collection[object], *, known: Mapping[str, Any], kind: type
) -> None:
    """Check that a selection is not empty and holds only registered names or objects."""
    is_valid = all(
        isinstance(one, kind) or (isinstance(one, str) and one in known) for one in given
    )
    if not given or not is_valid:
        raise ValueError(
            f"{argument} must be a selection of {list(known)} or {kind.__name__} objects, a list "
            f"such as [{next(iter(known))!r}], got {got!r}"
        )
