"""The table of the parameters."""

import numpy as np
import pandas as pd
import pytest

from autokernel.expression import parse_expression
from tests.explain.models import with_kernel


def test_a_row_for_each_parameter_of_each_component():
    X = pd.DataFrame({"time": np.linspace(0, 10, 30), "depth": np.linspace(5, 0, 30) ** 2})
    kernel = parse_expression("(PER[time] + LIN[depth]) * SE[depth]", ["time", "depth"])
    params = [0.5, 1.0, 0.2, 1.0, 2.0, 0.4, 3.0]
    table = with_kernel(X, np.sin(X["time"]), kernel, np.log(params)).parameters_
    rows = list(zip(*(table[name].tolist() for name in table), strict=True))
    assert list(table)[:5] == ["component", "leaf", "column", "parameter", "value"]
    told = [(*row[:4], round(row[4], 6), row[7]) for row in rows]
    assert told == [
        (1, "PER", "time", "lengthscale", 0.5, ""),
        (1, "PER", "time", "variance", 1.0, "variance of y"),
        (1, "PER", "time", "period", 2.0, "time"),
        (1, "SE", "depth", "lengthscale", 10.0, "depth"),
        (1, "SE", "depth", "variance", 3.0, "variance of y"),
        (2, "LIN", "depth", "variance", 1.0, "variance of y"),
        (2, "LIN", "depth", "offset", 2.0, "variance of y"),
        (2, "SE", "depth", "lengthscale", 10.0, "depth"),
        (2, "SE", "depth", "variance", 3.0, "variance of y"),
        (0, "noise", "", "noise_variance", 0.1, "variance of y"),
    ]
    assert np.all(table["low"] < table["value"])
    assert np.all(table["value"] < table["high"])
    # draws with a log standard deviation of 0.1
    np.testing.assert_allclose(table["high"] / table["low"], np.exp(0.329), rtol=0.15)
    assert pd.DataFrame(table).shape == (10, 8)
    assert "period" in repr(table)


def test_noise_alone_has_one_parameter():
    X = np.linspace(0, 1, 20)[:, None]
    model = with_kernel(X, np.arange(20.0), parse_expression("NOISE"), np.empty(0))
    assert model.parameters_["parameter"].tolist() == ["noise_variance"]
    assert model.parameters_["value"][0] == pytest.approx(0.1)
