"""The registry of criteria."""

from collections.abc import Mapping
from types import MappingProxyType

from autokernel.evidence.criteria import AIC, BIC, Criterion
from autokernel.evidence.importance import Importance
from autokernel.evidence.laplace import Laplace
from autokernel.evidence.predictive import CrossValidation, LeaveOneOut
from autokernel.validation import resolve

CRITERIA: Mapping[str, type[Criterion]] = MappingProxyType(
    {
        "laplace": Laplace,
        "importance": Importance,
        "bic": BIC,
        "aic": AIC,
        "loo": LeaveOneOut,
        "cv": CrossValidation,
    }
)


def check_criterion(criterion: str | Criterion) -> Criterion:
    """Turn the ``criterion`` argument into a valid criterion.

    Raises
    ------
    ValueError
        If the name is unknown (the message lists the known ones) or a parameter is not valid.
    """
    return resolve("criterion", criterion, registry=CRITERIA, kind=Criterion)
