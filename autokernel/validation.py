"""Checks of arguments that several layers share."""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

Named = TypeVar("Named", bound=BaseEstimator)


def check_seed(random_state: int | np.random.RandomState | None) -> int:
    """Turn ``random_state`` into a seed; a seed is kept, and otherwise one is drawn."""
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def resolve(
    argument: str, chosen: str | Named, *, registry: Mapping[str, type[Named]], kind: type[Any]
) -> Named:
    """Turn a registered name or an object into an object, and check its parameters.

    Raises
    ------
    ValueError
        If ``chosen`` is neither (the message lists the names), or if a parameter is not valid.
    """
    found = registry[chosen]() if isinstance(chosen, str) and chosen in registry else chosen
    if not isinstance(found, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise ValueError(
            f"{argument} must be one of {list(registry)} or {article} {kind.__name__}, "
            f"got {chosen!r}"
        )
    found._validate_params()
    return found
