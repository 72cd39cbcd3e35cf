"""Fitted kernels as formulas."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from autokernel.export import to_latex
from autokernel.expression import parse_expression
from autokernel.inference import cross_covariance
from tests.explain.models import refitted, with_kernel
from tests.export.models import KERNELS, given, table
from tests.kernels.gate import GATE
from tests.own_kernels import OrnsteinUhlenbeck


def evaluated(formula, names, x, z):
    """Compute a formula in LaTeX for single rows x and z."""
    text = formula.removeprefix("k(x, x') = ").split(r"\,\delta")[0]
    text, _, _ = text.rpartition(" + ")
    for name, one, other in zip(names, x, z, strict=True):
        symbol = rf"\mathrm{{{name}}}"
        text = text.replace(f"{symbol}'", f"({other!r})").replace(symbol, f"({one!r})")
    pattern = re.compile(r"\\frac\{([^{}]*)\}\{([^{}]*)\}")
    text = re.sub(r"10\^\{(-?\d+)\}", r"10^(\1)", text).replace(r"\left", "").replace(r"\right", "")
    text = text.replace(r"\cdot", "*").replace(r"\pi", "np.pi *").replace(r"\sin^2", "sine_squared")
    text = re.sub(r"\\sqrt\{(\d)\}", r"np.sqrt(\1)", text)
    text = re.sub(r"\|([^|]*)\|", r"abs(\1)", text)
    text = re.sub(r"\^\{([^{}]*)\}", r"^(\1)", text)
    while pattern.search(text):
        text = pattern.sub(r"((\1) / (\2))", text)
    text = text.replace(r"\exp", "np.exp").replace(r"\varsigma", "expit").replace("^", "**")
    text = text.replace(r"\,", " * ")
    # what stands side by side is multiplied
    text = re.sub(r"(?<=[\d)])\s*(?=\()", " * ", text)
    text = re.sub(r"(?<=\))\s*(?=(np|expit|sine_squared))", " * ", text)
    return eval(text, {"np": np, "expit": expit, "sine_squared": lambda v: np.sin(v) ** 2})


def covariance(model, Z):
    """The covariance matrix of the best kernel without noise, in squared units of the target."""
    best, scaled = model._fitted.evaluation, model._fitted.columns.inputs(Z)
    K = cross_covariance(best.expression, scaled, scaled).forward(np.exp(best.theta[:-1]))
    return K * model._fitted.target.width**2


@pytest.mark.parametrize("kernel", KERNELS[:-1])
def test_the_formula_is_the_covariance_in_the_units_of_the_user(kernel):
    _, _, Z = table()
    model = given(kernel)
    K = covariance(model, Z[:2])
    for i, j in ((0, 0), (0, 1)):
        found = evaluated(to_latex(model), ["x0", "x1"], Z[i].tolist(), Z[j].tolist())
        # values have four digits, and the sigmoids of changes are steep
        assert found == pytest.approx(K[i, j], rel=2e-2)


@pytest.mark.parametrize(("shift", "scale"), [(1.7e9, 1000.0), (2000.0, 1e-3), (-3.0, 1e-9)])
def test_places_have_the_digits_that_their_lengths_need(shift, scale):
    x = np.linspace(0, 1, 30)
    y = np.where(x < 0.5, np.sin(9 * x), 3 * x)
    kernel, theta = parse_expression("CP[0](SE[0], LIN[0])"), np.log([0.5, 0.02, 0.1, 1.0, 1, 0.1])
    model = with_kernel(shift + scale * x[:, None], y, kernel, theta)
    Z = shift + scale * np.array([[0.2], [0.49], [0.7]])
    K = covariance(model, Z)
    formula = to_latex(model)
    assert not re.search(r"\de[+-]\d", formula)
    for i, j in ((0, 0), (1, 1), (2, 2)):
        found = evaluated(formula, ["x0"], Z[i].tolist(), Z[j].tolist())
        assert found == pytest.approx(K[i, j], rel=1e-2)


def test_the_other_row_is_inside_of_scales():
    x = np.arange(20.0)
    y = np.where(x == 3, 0.0, np.exp(np.sin(x)))
    text = to_latex(refitted("log(y) ~ SE[log(0)]", x[:, None], y))
    x_text = r"\log \left(\mathrm{x0}%s + 0.5\right)"
    assert f"({x_text % ''} - {x_text % chr(39)})^2" in text
    assert r"cov}(\log \left(y + 0.2\right), \log \left(y' + 0.2\right)) = " in text
    assert r"\sqrt{\mathrm{x0}'}" in to_latex(refitted("SE[sqrt(0)]", x[:, None], y))


def test_noise_alone_is_a_variance():
    text = to_latex(refitted("NOISE", *table()[:2], noise="constant"))
    assert re.fullmatch(r"k\(x, x'\) = [\d.]+\\,\\delta_\{xx'\}", text)


def test_names_of_columns_cannot_break_out_of_a_text():
    for name, text in (
        ("time_of day", r"\mathrm{time\_of\ day}"),
        ("{b}^2~", r"\mathrm{\{b\}\hat{}2\sim }"),
        ('a"""\nimport os\\', r"\backslash "),
    ):
        X = pd.DataFrame({name: np.linspace(0, 1, 20)})
        theta = np.zeros(2)
        model = with_kernel(X, np.arange(20.0), parse_expression("LIN[0]"), theta)
        assert text in to_latex(model)


def test_a_custom_kernel_is_named_and_a_custom_operator_refused():
    X, y, _ = table()
    own = refitted("OU[0]", X, y, base_kernels=["SE", OrnsteinUhlenbeck()])
    assert r"\operatorname{OU}" in to_latex(own)
    gated = refitted("GATE[0](LIN[0], LIN[0])", X, y, operators=["+", GATE])
    with pytest.raises(ValueError, match="GATE is a custom operator, and has no formula"):
        to_latex(gated)
