"""Arguments of the estimator that take more than a range to check."""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Memory

from autokernel.criteria import CRITERIA
from autokernel.search import STRATEGIES, Strategy
from autokernel.surrogate import ACQUISITIONS, Acquisition
from autokernel.validation import resolve

_REGISTRIES: Mapping[str, Mapping[str, type]] = {
    "strategy": STRATEGIES,
    "criterion": CRITERIA,
    "acquisition": ACQUISITIONS,
}


def check_strategy(strategy: str | Strategy) -> Strategy:
    """Turn the ``strategy`` argument into a valid strategy."""
    return resolve("strategy", strategy, registry=STRATEGIES, kind=Strategy)


def check_acquisition(acquisition: str | Acquisition) -> Acquisition:
    """Turn the ``acquisition`` argument into a valid acquisition function."""
    return resolve("acquisition", acquisition, registry=ACQUISITIONS, kind=Acquisition)


def check_nested(params: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """Refuse parameters of what is given by its name: a name has none."""
    for key in params:
        argument, _, parameter = key.partition("__")
        name = params.get(argument, current.get(argument))
        if parameter and isinstance(name, str) and name in _REGISTRIES.get(argument, ()):
            example = f"{argument}={_REGISTRIES[argument][name].__name__}()"
            raise ValueError(
                f"{argument} must be an object for {key} to be set, got {name!r}: "
                f"set {example} first"
            )


def check_memory(memory: str | os.PathLike[str] | Memory | None) -> Memory | None:
    """Turn the ``memory`` argument into a ``joblib.Memory``."""
    if memory is None or isinstance(memory, Memory):
        return memory
    folder = Path(memory).expanduser().resolve()  # workers may stand in another one
    return Memory(folder, verbose=0)


def check_names(
    argument: str, names: str | Collection[str], *, known: Iterable[str]
) -> tuple[str, ...]:
    """Check that names are a non-empty selection of the known ones; return it in their order."""
    known = tuple(known)
    chosen = () if isinstance(names, str) else tuple(names)
    if not chosen or any(not isinstance(name, str) or name not in known for name in chosen):
        raise ValueError(
            f"{argument} must be a selection of {list(known)}, a list such as [{known[0]!r}], "
            f"got {names!r}"
        )
    return tuple(name for name in known if name in chosen)


def refuse_many_targets(y: npt.ArrayLike) -> None:
    """Say how to fit several targets."""
    try:
        shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    except ValueError:  # rows of different lengths: scikit-learn says so
        return
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array of one target, got an array of shape {tuple(shape)}: wrap the "
            "estimator in sklearn.multioutput.MultiOutputRegressor for several targets"
        )
