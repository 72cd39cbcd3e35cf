"""The covariance function of a model in LaTeX."""

import math
import re

import numpy as np

from autokernel.estimator import AutoKernelGPRegressor
from autokernel.expression import COUNT_SCALES, IDENTITY, Leaf, Operation, fold
from autokernel.kernels import ADD, MULTIPLY, BaseKernel, Role, Unit
from autokernel.model import FittedModel
from autokernel.typing import FloatArray

_DIGITS = 4
_ESCAPES = str.maketrans(
    {"\\": r"\backslash ", "^": r"\hat{}", "~": r"\sim ", " ": r"\ ", "\n": r"\ "}
    | {sign: f"\\{sign}" for sign in "_%&#${}"}
)


def to_latex(model: AutoKernelGPRegressor) -> str:
    r"""Write the covariance function of the best kernel in LaTeX, with its fitted values.

    Inputs and target are in the units of ``X`` and ``y``, or on their scales. ``\varsigma`` is the
    logistic function. The log of noise that varies has the function ``g`` of some columns.

    Parameters
    ----------
    model : AutoKernelGPRegressor
        A fitted estimator.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    ValueError
        If the kernel holds a custom operator.
    """
    fitted = model.explanation().model
    names = [_symbol(name) for name in fitted.columns.names]

    def of_leaf(leaf: Leaf, params: FloatArray) -> str:
        view = fitted.columns.scale(leaf.view)
        shift, scale = view.shift, view.width
        named = zip(leaf.parameters, params.tolist(), strict=True)
        numbers = {one: one.in_units(value, shift, scale) for one, value in named}
        places = {one for one in numbers if one.role == Role.LOCATION}
        lengths = [numbers[one] for one in numbers if one.unit == Unit.INPUT and one not in places]
        finest = min([scale, *lengths])
        values = {
            "x": _on_scale(names[leaf.column], leaf.scale, view.offset),
            "x'": _on_scale(f"{names[leaf.column]}'", leaf.scale, view.offset),
            "from": f" {'-' if shift > 0 else '+'} {_place(abs(shift), finest)}" if shift else "",
            "scale": _number(scale, digits=6),
        }
        for one, number in numbers.items():
            values[one.name] = _place(number, finest) if one in places else _number(number)
        return _filled(leaf.kernel, values)

    def join(operation: Operation, params: FloatArray, operands: list[str]) -> str:
        operator, column = operation.operator, operation.column
        if operator == ADD:
            return " + ".join(operands)
        factors = [
            rf"\left({text}\right)" if one.operands and one.declared != MULTIPLY else text
            for one, text in zip(operation.operands, operands, strict=True)
        ]
        if operator == MULTIPLY:
            return r"\,".join(factors)
        if not operator.shares or column is None:
            raise ValueError(f"{operator.symbol} is a custom operator, and has no formula")
        shares = [of_leaf(Leaf(share, column), params) for share in operator.shares]
        return " + ".join(map(r"{}\,{}".format, shares, factors))

    varies = dict.fromkeys(one.column for one in fitted.transformed.noise_function.terms)
    factor = rf"\,e^{{g({', '.join(names[column] for column in varies)})}}" if varies else ""
    noise = rf"{_number(fitted.noise_variance)}{factor}\,\delta_{{xx'}}"
    best = fitted.evaluation
    return _stated(fitted, fold(best.expression, np.exp(best.theta[:-1]), of_leaf, join), noise)


def _stated(fitted: FittedModel, text: str, noise: str) -> str:
    """Write the covariance of a target on its scale, or of the function of the rates of counts."""
    target, is_count = fitted.scale, fitted.evaluation.expression.target in COUNT_SCALES
    terms = [rf"{_number(target.width**2)} \left({text}\right)"] if text else []
    covariance = " + ".join(terms + [noise] * (not is_count)) or "0"
    if target.name == IDENTITY:
        return f"k(x, x') = {covariance}"
    both = [_on_scale(one, target.name, target.offset) for one in ("y", "y'")]
    y, other = ("f(x)", "f(x')") if is_count else both
    return rf"\operatorname{{cov}}({y}, {other}) = {covariance}"


def _on_scale(symbol: str, scale: str, offset: float = 0.0) -> str:
    if scale == IDENTITY:
        return symbol
    if scale == "sqrt":
        return rf"\sqrt{{{symbol}}}"
    symbol = rf"\left({symbol} + {_number(offset)}\right)" if offset else symbol
    name = r"\log" if scale == "log" else rf"\operatorname{{{scale}}}"
    return f"{name} {symbol}"


def _number(value: float, digits: int = _DIGITS) -> str:
    """Write a number with ``digits`` digits, in brackets if it has a power of ten or a sign."""
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    text = rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
    return f"({text})" if exponent or value < 0 else text


def _filled(kernel: BaseKernel, values: dict[str, str]) -> str:
    """Fill the values into the formula of a kernel, or write its name with them."""
    if not kernel.formula:
        own = ", ".join(f"{_symbol(p.name)} = {values[p.name]}" for p in kernel.parameters)
        x = ", ".join([values["x"], values["x'"]])
        return rf"\operatorname{{{kernel.name.translate(_ESCAPES)}}}({x}; {own})"
    return re.sub(r"<(x'|\w+)>", lambda match: values[match[1]], kernel.formula)


def _place(value: float, finest: float) -> str:
    """Write a place to a thousandth of the finest length that is measured from there."""
    return _number(value, math.ceil(math.log10(max(abs(value) / finest, 1.0))) + _DIGITS)


def _symbol(name: str) -> str:
    return rf"\mathrm{{{name.translate(_ESCAPES)}}}"
