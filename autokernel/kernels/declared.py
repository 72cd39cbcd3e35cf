"""The common base of base kernels and operators: declared parameters, equality by attributes."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import joblib

from autokernel.kernels.parameters import NOISE_VARIANCE, KernelParameter, Role, Unit
from autokernel.typing import FloatArray


class Declared(ABC):
    """An object that declares parameters, and does not change once it is made.

    Two such objects are equal if their classes and their attributes are. Attributes whose names
    begin with an underscore do not count: they may hold what has been computed.
    """

    parameters: tuple[KernelParameter, ...] = ()

    @property
    @abstractmethod
    def label(self) -> str:
        """What it is called in expressions."""

    def index(self, role: Role) -> int | None:
        """Return the index of the first parameter with a role, or None if there is none."""
        roles = [parameter.role for parameter in self.parameters]
        return roles.index(role) if role in roles else None

    def texts_of(
        self, params: FloatArray, *, scale: float, shift: float = 0.0
    ) -> Mapping[str, str]:
        """Write parameters (n_params,) by name, for inputs ``scale * x + shift``."""
        texts = {}
        for parameter, value in zip(self.parameters, params, strict=True):
            if parameter.role == Role.LOCATION:
                texts[parameter.name] = place(value, scale=scale, shift=shift)
            else:
                factor = scale if parameter.unit == Unit.INPUT else 1.0
                texts[parameter.name] = f"{value * factor:.3g}"
        return texts

    def lengths_of(self, params: FloatArray, *, scale: float, shift: float = 0.0) -> str:
        """Write the parameters in the unit of the column in one phrase, empty if there are none."""
        texts = self.texts_of(params, scale=scale, shift=shift)
        return " and ".join(
            f"{parameter.name} {texts[parameter.name]}"
            for parameter in self.parameters
            if parameter.unit == Unit.INPUT
        )

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the object itself that tell it from others of its class."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    @property
    def definition(self) -> tuple[str, ...]:
        """Texts that tell this object from all others, beside the code of its class."""
        return (type(self).__module__, type(self).__qualname__, joblib.hash(self.attributes))

    def check_parameters(self) -> None:
        """Raise a ``ValueError`` where the parameters are not valid."""
        own, parameters = type(self).__name__, self.parameters
        if not isinstance(parameters, tuple) or not all(
            isinstance(parameter, KernelParameter) for parameter in parameters
        ):
            raise ValueError(
                f"{own}.parameters must be a tuple of KernelParameter objects, got {parameters!r}"
            )
        names = [parameter.name for parameter in parameters]
        if len(set(names)) < len(names) or NOISE_VARIANCE.name in names:
            raise ValueError(
                f"{own}.parameters must have different names, none of them "
                f"{NOISE_VARIANCE.name!r}, got {names}"
            )
        try:
            hash(self)
        except TypeError as error:
            raise ValueError(
                f"{own} objects must be hashable: a dataclass is with frozen=True"
            ) from error

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Declared) or type(self) is not type(other):
            return self is other
        ours, theirs = self.attributes, other.attributes
        try:
            return ours == theirs
        except ValueError:  # arrays have no single answer
            return joblib.hash(ours) == joblib.hash(theirs)

    def __hash__(self) -> int:
        return hash(type(self).__qualname__)


def place(value: float, *, scale: float, shift: float) -> str:
    """Write the place ``scale * value + shift`` to about a hundredth of ``scale``."""
    decimals = max(0, -math.floor(math.log10(scale / 100)))
    return f"{scale * value + shift:.{decimals}f}"
