"""Checks of arguments that several layers share."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from autokernel.typing import FloatArray

Named = TypeVar("Named", bound=BaseEstimator)


def check_seed(random_state: int | np.random.RandomState | None) -> int:
    """Turn ``random_state`` into a seed; a seed is kept, and otherwise one is drawn."""
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def resolve(
    argument: str, chosen: str | Named, *, registry: Mapping[str, type[Named]], kind: type[Any]
) -> Named:
    """Turn a registered name or an object into an object, and check its parameters."""
    found = registry[chosen]() if isinstance(chosen, str) and chosen in registry else chosen
    if not isinstance(found, kind):
        if isinstance(chosen, type) and issubclass(chosen, kind):
            raise ValueError(
                f"{argument} must be an object, got the class {chosen.__name__}: call it, "
                f"{argument}={chosen.__name__}()"
            )
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise ValueError(
            f"{argument} must be one of {list(registry)} or {article} {kind.__name__}, "
            f"got {chosen!r}{did_you_mean(chosen, registry)}"
        )
    found._validate_params()
    return found


def index_of_column(given: object, names: Sequence[str], n_features: int, *, expected: str) -> int:
    """Return the index of a column by its name or index; errors begin with what is expected."""
    if isinstance(given, str) and given in names:
        return names.index(given)
    if isinstance(given, Integral) and not isinstance(given, bool) and 0 <= int(given) < n_features:
        return int(given)
    known = f"{[*names]} or the indices" if names else "the indices"
    meant = did_you_mean(given, names)
    raise ValueError(f"{expected}, out of {known} below {n_features}, got {given!r}{meant}")


def check_probabilities(quantiles: Sequence[float]) -> FloatArray:
    """Return levels of quantiles (n_quantiles,), which must be between 0 and 1."""
    given = np.atleast_1d(np.asarray(quantiles, dtype=float))
    if given.ndim != 1 or not np.all((given > 0) & (given < 1)):
        what = "probabilities between 0 and 1, such as [0.05, 0.95]"
        raise ValueError(f"quantiles must be {what}, got {quantiles!r}")
    return given


def ends_of_interval(coverage: float) -> FloatArray:
    """Return the levels (2,) of the ends of a central interval of this probability."""
    if not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
        kind = ValueError if isinstance(coverage, Real) else TypeError
        what = "a probability between 0 and 1, such as 0.95"
        raise kind(f"coverage must be {what}, got {coverage!r}")
    tail = (1 - float(coverage)) / 2
    return np.array([tail, 1 - tail])


def did_you_mean(
    given: object, known: Iterable[str], *, aliases: Mapping[str, str] | None = None
) -> str:
    """Ask whether a similar known name, or one of ``aliases`` in lower case, was meant, if any."""
    by_case = {name.casefold(): name for name in known}
    wrong = given.casefold() if isinstance(given, str) else ""
    alias = (aliases or {}).get(wrong, "").casefold()
    near = [alias] if alias in by_case else get_close_matches(wrong, by_case, n=1)
    return f"; did you mean {by_case[near[0]]!r}?" if near else ""
