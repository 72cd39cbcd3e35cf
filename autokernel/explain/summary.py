"""The result of a search as text for the terminal."""

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

_WIDTH = 100
_INDENT = "    "


def summary(
    kernel: str,
    history: Mapping[str, npt.NDArray[Any]],
    *,
    words: str,
    target_name: str,
) -> str:
    """Describe the best kernel, and list the five best kernels.

    Parameters
    ----------
    kernel : str
        The ``best_expression_`` of the estimator.
    history : mapping of str to ndarray
        Its ``search_history_``.
    words : str
        The best kernel in words, a paragraph for each component.
    target_name : str
        Name of the target.
    """
    order = np.argsort(-history["score"], kind="stable")[:5]
    best = [
        f"{_INDENT}{history['score'][row]:9.2f} {history['n_leaves'][row]:4d}  "
        + fill(history["kernel"][row], indent=" " * 20).lstrip()
        for row in order
    ]
    paragraphs = [fill(paragraph, indent=_INDENT) for paragraph in words.split("\n\n")]
    table = [
        f"\nBest {len(best)} of {len(history['score'])}: score in nats, base kernels, kernel\n"
    ]
    return "\n".join(
        [
            "\nBest kernel\n",
            fill(kernel, indent=_INDENT),
            f"\nWhat it says about {target_name}\n",
            "\n\n".join(paragraphs),
            *(table + best if best else []),
        ]
    )


def fill(text: str, *, indent: str = "") -> str:
    """Wrap a text into indented lines."""
    return textwrap.fill(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False
    )
