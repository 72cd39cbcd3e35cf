"""The formula of a fitted kernel in LaTeX, with the values of its parameters."""

import re

from autokernel.expression import NOISE
from autokernel.kernels import BaseKernel, Role, Unit
from autokernel.model import FittedModel
from autokernel.transfer.writing import write
from autokernel.typing import FloatArray

_DIGITS = 4
_SPECIAL = re.compile(r"[_%&#${}]")
_WORDS = {"\\": r"\backslash ", "^": r"\hat{}", "~": r"\sim ", " ": r"\ ", "\n": r"\ "}


def latex_of(model: FittedModel) -> str:
    """Write the covariance function of the best kernel in the units of the user."""
    names = [_symbol(name) for name in model.column_names]

    def leaf(kernel: BaseKernel, column: int, params: FloatArray) -> str:
        shift, scale = model.scaling.of_column(column)
        values = {"x": names[column], "from": _minus(shift), "scale": f"{scale:.6g}"}
        for parameter, value in zip(kernel.parameters, params.tolist(), strict=True):
            if parameter.unit == Unit.INPUT:
                value *= scale
            is_place = parameter.role == Role.LOCATION
            values[parameter.name] = f"{value + shift:.6g}" if is_place else number(value)
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


def number(value: float) -> str:
    """Write a number with four digits, powers of ten as such."""
    text = f"{value:.{_DIGITS}g}"
    mantissa, _, exponent = text.partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def _filled(kernel: BaseKernel, values: dict[str, str]) -> str:
    """Fill the values into the formula of a kernel, or write its name with them."""
    if not kernel.formula:
        own = ", ".join(f"{_symbol(p.name)} = {values[p.name]}" for p in kernel.parameters)
        x = values["x"]
        return rf"\operatorname{{{_escaped(kernel.name)}}}({x}, {x}'; {own})"
    return re.sub(r"<(\w+)>", lambda match: values[match[1]], kernel.formula)


def _minus(shift: float) -> str:
    """Write the subtraction of a number, empty for zero."""
    if shift == 0:
        return ""
    return f" {'-' if shift > 0 else '+'} {abs(shift):.6g}"


def _symbol(name: str) -> str:
    """Write a name as a symbol."""
    return rf"\mathrm{{{_escaped(name)}}}"


def _escaped(name: str) -> str:
    """Escape the characters that mean something in LaTeX."""
    return "".join(_WORDS.get(one) or _SPECIAL.sub(r"\\\g<0>", one) for one in name)
