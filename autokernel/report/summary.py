"""The result of a search as text for the terminal."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from autokernel.expression import NOISE, parse_expression
from autokernel.model import FittedModel
from autokernel.report.words import describe_model

_WIDTH = 100
_INDENT = "    "


def summary(
    fitted: FittedModel,
    history: Mapping[str, npt.NDArray[Any]],
    *,
    feature_names: Sequence[str],
    target_name: str,
) -> str:
    """Describe the best kernel, and list the five best kernels.

    Parameters
    ----------
    fitted : FittedModel
        Model that was fitted to columns without names.
    history : mapping of str to ndarray
        The ``search_history_`` of the estimator.
    feature_names : sequence of str
        Names of the columns.
    target_name : str
        Name of the target.
    """

    def named(text: str) -> str:
        return parse_expression(text).to_text(feature_names)

    phrases = describe_model(fitted, feature_names)
    is_what = "noise alone" if fitted.evaluation.expression == NOISE else "a sum of"
    order = np.argsort(-history["score"], kind="stable")[:5]
    best = [
        f"{_INDENT}{history['score'][row]:9.2f} {history['n_leaves'][row]:4d}  "
        + fill(named(history["kernel"][row]), indent=" " * 20).lstrip()
        for row in order
    ]
    return "\n".join(
        [
            "\nBest kernel\n",
            fill(named(str(fitted.evaluation.expression)), indent=_INDENT),
            f"\nIn words, {target_name} is {is_what}\n",
            *(fill(f"- {phrase}", indent=_INDENT) for phrase in phrases),
            f"\nBest five of {len(history['score'])} (score in nats, base kernels, kernel)\n",
            *best,
        ]
    )


def fill(text: str, *, indent: str = "") -> str:
    """Wrap a text into indented lines."""
    return textwrap.fill(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False
    )
