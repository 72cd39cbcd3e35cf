"""Series of which the components are known: the words name what is there, and nothing else."""

import re
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from autokernel import AutoKernelGPRegressor

T = np.linspace(2000, 2010, 120)
U = (T - 2000) / 10
CHANGES = ("+", "*", "cp")


class Case(NamedTuple):
    """A series, and what must be said of each of its components, the largest first."""

    signal: np.ndarray
    noise: float
    components: list[str]
    operators: tuple[str, ...] = ("+", "*")


def season(period: float, phase: float = 0.0) -> np.ndarray:
    return np.sin(2 * np.pi * T / period + phase)


def smooth(lengthscale: float, seed: int) -> np.ndarray:
    """Draw a smooth function."""
    K = np.exp(-0.5 * (np.subtract.outer(T, T) / lengthscale) ** 2) + 1e-9 * np.eye(len(T))
    return np.linalg.cholesky(K) @ np.random.default_rng(seed).normal(size=len(T))


def period(value: str) -> str:
    return rf"^A cycle in time that repeats every {value}\d* years"


YEARLY = "^A yearly season in time with"


CASES = {
    "noise": Case(0 * T, 1.0, []),
    "line": Case(3 * U, 0.3, [r"^A straight line in time that rises by 0\.[23]\d* per year"]),
    "season": Case(2 * season(1), 0.4, [YEARLY]),
    "line and season": Case(
        4 * U + season(1), 0.3, ["^A straight line in time that rises", YEARLY]
    ),
    "two seasons": Case(season(1) + 1.5 * season(2.7, 1), 0.3, [period(r"2\.[67]"), YEARLY]),
    "growing amplitude": Case((0.2 + 2 * U) * season(1), 0.2, [YEARLY]),
    "smooth": Case(smooth(1.5, 7), 0.2, ["^A curve in time that"]),
    "smooth and season": Case(
        smooth(2.5, 8) + 0.8 * season(0.5),
        0.2,
        ["^A curve in time that falls until 2002", period(r"0\.(5|499)")],
    ),
    "break": Case(
        np.where(T < 2006, 2 * U, -1.0),
        0.15,
        [
            r"^From (2005\.9|2006\.0)\d* \(.*\) onwards, a (curve|straight)",
            r"^Until (2005\.9|2006\.0)\d* \(.*\), a (curve|straight) .*rises",
        ],
        CHANGES,
    ),
    "a season that ends": Case(
        np.where(T < 2005, season(1), 0.4 * smooth(2, 9)),
        0.15,
        [
            r"^Until (2004\.9|2005\.[01])\d* \(.*\), a yearly season in time",
            r"^From (2004\.9|2005\.[01])\d* \(.*\) onwards, a curve",
        ],
        CHANGES,
    ),
}
QUICK = {"n_iter": 0, "base_kernels": ("SE", "LIN", "PER")}  # with every second row


@pytest.mark.parametrize(
    ("name", "step", "settings"),
    [
        ("noise", 2, QUICK),
        ("line and season", 2, QUICK),
        ("a season that ends", 2, QUICK | {"n_iter": 10, "base_kernels": ("SE", "PER")}),
        *(pytest.param(name, 1, {}, marks=pytest.mark.slow) for name in CASES),
    ],
)
def test_the_words_name_what_is_there_and_nothing_else(name, step, settings):
    case = CASES[name]
    rng = np.random.default_rng(list(CASES).index(name))
    y = case.signal + case.noise * rng.normal(size=len(T))
    model = AutoKernelGPRegressor(
        operators=case.operators, outliers=None, random_state=0, **settings
    )
    model.fit(pd.DataFrame({"time": T[::step]}), y[::step])
    components = model.decompose(units={"time": "years"}).components
    texts = [one.text for one in components if one.expression and one.share > 0.01]
    assert len(texts) == len(case.components), texts
    for text, expected in zip(texts, case.components, strict=True):
        assert re.search(expected, text), text
    # of sixty rows, a standard deviation is known to a tenth
    assert np.sqrt(model.noise_variance_) == pytest.approx(case.noise, rel=0.25 * step**0.5)
