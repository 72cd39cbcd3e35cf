"""Fitted kernels as formulas and as programs of other libraries."""

import re
import types

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from autokernel import AutoKernelGPRegressor
from autokernel.inference import cross_covariance
from tests.operators.gate import GATE
from tests.own_kernels import OrnsteinUhlenbeck
from tests.transfer.models import KERNELS, refitted, table


def run(source):
    """Run a program and return it as a module."""
    module = types.ModuleType("program")
    exec(compile(source, "program", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("library", ["gpytorch", "gpflow"])
def test_programs_predict_the_same(kernel, library):
    pytest.importorskip(library)
    X, y, Z = table()
    model = refitted(kernel)
    program = run(getattr(model, f"to_{library}")())
    made = program.make_model(X, y)  # with GPyTorch a model and its likelihood
    found = program.predict(*(made if isinstance(made, tuple) else (made,)), Z)
    for one, expected in zip(found, model.predict(Z, return_std=True), strict=True):
        np.testing.assert_allclose(np.asarray(one), expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("library", ["gpytorch", "gpflow"])
def test_programs_hold_every_value_in_full(kernel, library):
    model = refitted(kernel)
    source = getattr(model, f"to_{library}")()
    compile(source, "program", "exec")
    for parameter in model._fitted.evaluation.parameters:
        assert repr(parameter.value) in source
    assert not re.search(r"\{\w+\}", source.replace("{name: tensor(value)", ""))


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


@pytest.mark.parametrize("kernel", KERNELS[:-1])
def test_the_formula_is_the_covariance_in_the_units_of_the_user(kernel):
    _, _, Z = table()
    model = refitted(kernel)
    fitted = model._fitted
    params = np.exp(fitted.evaluation.theta[:-1])
    scaled = fitted.scaling.apply(Z[:2])
    K = cross_covariance(fitted.evaluation.expression, scaled, scaled).forward(params)
    K *= fitted.target_scaling.scale**2
    for i, j in ((0, 0), (0, 1)):
        found = evaluated(model.to_latex(), ["x0", "x1"], Z[i].tolist(), Z[j].tolist())
        # values have four digits, and the sigmoids of changes are steep
        assert found == pytest.approx(K[i, j], rel=2e-2)


@pytest.mark.parametrize(("shift", "scale"), [(1.7e9, 1000.0), (2000.0, 1e-3), (-3.0, 1e-9)])
def test_places_have_the_digits_that_their_lengths_need(shift, scale):
    x = np.linspace(0, 1, 30)
    y = np.where(x < 0.5, np.sin(9 * x), 3 * x)
    model = AutoKernelGPRegressor(random_state=0)
    model.refit(shift + scale * x[:, None], y, "CP[0](SE[0], LIN[0])")
    fitted = model._fitted
    params = np.exp(fitted.evaluation.theta[:-1])
    Z = shift + scale * np.array([[0.2], [0.49], [0.7]])
    scaled = fitted.scaling.apply(Z)
    K = cross_covariance(fitted.evaluation.expression, scaled, scaled).forward(params)
    K *= fitted.target_scaling.scale**2
    formula = model.to_latex()
    assert not re.search(r"\de[+-]\d", formula)
    for i, j in ((0, 0), (1, 1), (2, 2)):
        found = evaluated(formula, ["x0"], Z[i].tolist(), Z[j].tolist())
        assert found == pytest.approx(K[i, j], rel=1e-2)


def test_a_formula_has_the_names_of_columns_and_the_noise():
    X = pd.DataFrame({"time_of day": np.linspace(0, 1, 30)})
    model = AutoKernelGPRegressor(random_state=0).refit(X, np.arange(30.0), "LIN[0]")
    assert r"\mathrm{time\_of\ day}" in model.to_latex()
    assert refitted("NOISE").to_latex() == r"k(x, x') = 26.37\,\delta_{xx'}"


def test_names_of_columns_cannot_break_out_of_a_text():
    X = pd.DataFrame(
        {'a"""\nimport os\\': np.linspace(0, 1, 20), "{b}^2~": np.linspace(0, 1, 20) ** 2}
    )
    model = AutoKernelGPRegressor(random_state=0).refit(X, np.arange(20.0), "LIN[0] + SE[1]")
    for source in (model.to_gpytorch(), model.to_gpflow()):
        compile(source, "program", "exec")
        code = [line for line in source.splitlines() if not line.startswith("#")]
        assert not any("import os" in line for line in code)
    assert r"\mathrm{\{b\}\hat{}2\sim }" in model.to_latex()
    assert r"\backslash " in model.to_latex()


def test_what_other_libraries_do_not_know_is_refused():
    X, y, _ = table()
    own = AutoKernelGPRegressor(base_kernels=["SE", OrnsteinUhlenbeck()], random_state=0)
    own.refit(X, y, f"{OrnsteinUhlenbeck().name}[0]")
    with pytest.raises(ValueError, match="must say in its sources what it is in GPyTorch"):
        own.to_gpytorch()
    assert rf"\operatorname{{{OrnsteinUhlenbeck().name}}}" in own.to_latex()
    gated = AutoKernelGPRegressor(operators=["+", GATE], random_state=0)
    gated.refit(X, y, "GATE[0](SE[0], LIN[0])")
    for write in (gated.to_gpytorch, gated.to_gpflow, gated.to_latex):
        with pytest.raises(ValueError, match="GATE is an operator of yours, and has no text"):
            write()
