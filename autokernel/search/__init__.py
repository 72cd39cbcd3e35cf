"""The search over expressions."""

from collections.abc import Mapping
from types import MappingProxyType

from autokernel.search.design import Design
from autokernel.search.history import History, Phase, StopReason, Trial
from autokernel.search.loop import Observer, design_of, search
from autokernel.search.sot import SOT
from autokernel.search.strategy import Space, Strategy
from autokernel.search.workers import Workers

STRATEGIES: Mapping[str, type[Strategy]] = MappingProxyType({"sot": SOT})

__all__ = [
    "SOT",
    "STRATEGIES",
    "Design",
    "History",
    "Observer",
    "Phase",
    "Space",
    "StopReason",
    "Strategy",
    "Trial",
    "Workers",
    "design_of",
    "search",
]
