"""Noise alone in words."""

from types import SimpleNamespace

import numpy as np
import pytest

from autokernel.data.scaling import Scaling
from autokernel.explain import describe
from autokernel.explain.summary import summary
from autokernel.explain.words import caption, describe_model
from autokernel.expression import NOISE

NOISE_IN_WORDS = "noise with standard deviation 12.5"


@pytest.fixture
def model():
    """What is read of a fitted model to describe it."""
    return SimpleNamespace(
        evaluation=SimpleNamespace(expression=NOISE, theta=np.zeros(1)),
        scaling=SimpleNamespace(scale=np.ones(2)),
        noise_variance=12.5**2,
        feature_names=None,
    )


def test_noise_alone_is_described_as_no_structure():
    assert describe(NOISE, np.zeros(1), scaling=Scaling(np.zeros(1), np.ones(1))) == [
        "no structure was found"
    ]


def test_a_model_of_noise_alone_is_described_by_its_noise(model):
    assert describe_model(model) == ["no structure was found", NOISE_IN_WORDS]
    assert caption(model) == f"no structure was found, only {NOISE_IN_WORDS}"


def test_the_summary_of_noise_alone_speaks_of_no_sum():
    history = {
        "score": np.array([-20.0, -30.0]),
        "kernel": np.array(["NOISE", "SE[time]"], dtype=object),
        "n_leaves": np.array([0, 1]),
    }
    words = "No structure was found.\n\nNothing else."
    text = summary("NOISE", history, words=words, target_name="level")
    assert text.splitlines()[1:9] == [
        "Best kernel",
        "",
        "    NOISE",
        "",
        "What it says about level",
        "",
        "    No structure was found.",
        "",
    ]
    assert text.splitlines()[-2:] == [
        "       -20.00    0  NOISE",
        "       -30.00    1  SE[time]",
    ]
