"""The search over expressions."""

from collections.abc import Mapping
from types import MappingProxyType

from autokernel.search.history import History, Phase, StopReason, Trial
from autokernel.search.loop import SearchResult, search
from autokernel.search.sot import SOT
from autokernel.search.strategy import Space, Strategy

STRATEGIES: Mapping[str, type[Strategy]] = MappingProxyType({"sot": SOT})

__all__ = [
    "SOT",
    "STRATEGIES",
    "History",
    "Phase",
    "SearchResult",
    "Space",
    "StopReason",
    "Strategy",
    "Trial",
    "search",
]
