"""The formula of a fitted kernel in LaTeX, with the values of its parameters."""

import math
import re

from autokernel.expression import NOISE
from autokernel.kernels import BaseKernel, Role, Unit
from autokernel.model import FittedModel
from autokernel.transfer.writing import write
from autokernel.typing import FloatArray

_DIGITS = 4
_MANY = 6  # digits of an extent
_SPECIAL = re.compile(r"[_%&#${}]")
_WORDS = {"\\": r"\backslash ", "^": r"\hat{}", "~": r"\sim ", " ": r"\ ", "\n": r"\ "}


def latex_of(model: FittedModel) -> str:
    """Write the covariance function of the best kernel in the units of the user."""
    names = [_symbol(name) for name in model.column_names]

    def leaf(kernel: BaseKernel, column: int, params: FloatArray) -> str:
        shift, scale = model.scaling.of_column(column)
        named = dict(zip(kernel.parameters, params.tolist(), strict=True))
        lengths = [
            scale * value
            for parameter, value in named.items()
            if parameter.unit == Unit.INPUT and parameter.role != Role.LOCATION
        ]
        finest = min([scale, *lengths])
        values = {
            "x": names[column],
            "from": _minus(shift, finest),
            "scale": number(scale, _MANY),
        }
        for parameter, value in named.items():
            if parameter.role == Role.LOCATION:
                values[parameter.name] = _place(shift + scale * value, finest)
            else:
                values[parameter.name] = number(
                    value * (scale if parameter.unit == Unit.INPUT else 1.0)
                )
        return _filled(kernel, values)

    whole = number(model.target_scaling.scale**2)
    noise = rf"{number(model.noise_variance)}\,\delta_{{xx'}}"
    expression = model.evaluation.expression
    if expression == NOISE:
        return f"k(x, x') = {noise}"
    text = write(
        expression,
        model.evaluation.theta[:-1],
        leaf,
        times=r"\,",
        brackets=(r"\left(", r"\right)"),
    )
    return rf"k(x, x') = {whole} \left({text}\right) + {noise}"


def number(value: float, digits: int = _DIGITS) -> str:
    """Write a number with so many digits, in brackets if it has a power of ten or a sign."""
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    text = rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
    return f"({text})" if exponent or value < 0 else text


def _filled(kernel: BaseKernel, values: dict[str, str]) -> str:
    """Fill the values into the formula of a kernel, or write its name with them."""
    if not kernel.formula:
        own = ", ".join(f"{_symbol(p.name)} = {values[p.name]}" for p in kernel.parameters)
        x = values["x"]
        return rf"\operatorname{{{_escaped(kernel.name)}}}({x}, {x}'; {own})"
    return re.sub(r"<(\w+)>", lambda match: values[match[1]], kernel.formula)


def _place(value: float, finest: float) -> str:
    """Write a place to a thousandth of the finest length that is measured from there."""
    digits = math.ceil(math.log10(max(abs(value) / finest, 1.0))) + _DIGITS
    return number(value, digits)


def _minus(shift: float, finest: float) -> str:
    """Write the subtraction of a place, empty for zero."""
    if shift == 0:
        return ""
    return f" {'-' if shift > 0 else '+'} {_place(abs(shift), finest)}"


def _symbol(name: str) -> str:
    """Write a name as a symbol."""
    return rf"\mathrm{{{_escaped(name)}}}"


def _escaped(name: str) -> str:
    """Escape the characters that mean something in LaTeX."""
    return "".join(_WORDS.get(one) or _SPECIAL.sub(r"\\\g<0>", one) for one in name)
