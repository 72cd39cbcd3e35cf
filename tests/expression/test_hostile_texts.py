"""Texts of kernels that are long, deep or wrong: an error in time, or the kernel."""

import pickle
import time
import tracemalloc
from copy import deepcopy

import numpy as np
import pytest

from autokernel import AutoKernelGPRegressor, ExpressionSyntaxError, parse_expression
from autokernel.expression.notation import MAX_LEAVES

N, N_SIGNS = 50_000, 500_000  # signs of texts with leaves or brackets, and of others
MAX_SECONDS, MAX_BYTES = 30.0, 100e6  # of one text; N_SIGNS in quadratic time take minutes

PIECES = (
    "SE", "PER12", "PER0_5", "LIN", "CAT", "NOISE", "CP", "CW", "log(y) ~ ", "log(", "sqrt(", "XY",
    "[0]", "[1]", "[7]", "[-1]", "[ 0 ]", '["a"]', "[log(0)]", "[", "]", "(", ")", "+", "*", "~",
    ",", '"', "\\", '\\"', " ", "\n", "\t", "9", "0", "_", "é", "\0", "\u2028", "SE[0]",
    "(SE[0]+LIN[1])", "CP[0](SE[0], LIN[0])",
)  # fmt: skip


def drawn(rng, n):
    return [PIECES[number] for number in rng.integers(len(PIECES), size=rng.integers(1, n))]


def hostile_text(rng):
    """Join pieces, of which some are repeated up to some 100 kB, or put one into a kernel."""
    if rng.random() < 0.5:
        n = int(10 ** rng.uniform(0, 4))
        text = str(rng.choice([" + ", "*", " * CP[1](LIN[0], SE[1]) + "])).join(
            ["SE[0]", "LIN[1]"] * n
        )
        place = rng.integers(len(text))
        return text[:place] + "".join(drawn(rng, 2) * rng.integers(2)) + text[place:]
    chosen = drawn(rng, 8)
    for number in np.flatnonzero(rng.random(len(chosen)) < 0.4):
        piece = "".join(drawn(rng, 4))
        chosen[number] = piece * int(10 ** rng.uniform(1, 5) / len(piece))
    return "".join(chosen)


def read(text):
    """Return the kernel of a text or the ``ValueError``, which does not take for ever."""
    began = time.process_time()
    try:
        found = parse_expression(text)
    except ValueError as error:
        found = error
    assert time.process_time() - began < MAX_SECONDS
    return found


def n_bytes_of(text):
    tracemalloc.start()
    try:
        read(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LONG = {
    "blanks of a scale": "SE[log(" + " " * N_SIGNS,
    "blanks of a column": "SE[" + " " * N_SIGNS + "0",
    "blanks of a name": "SE[a" + " b" * (N_SIGNS // 2) + " " * N_SIGNS,
    "blanks of a quoted name": 'SE["a"' + " " * N_SIGNS,
    "backslashes": 'SE["' + "\\" * N_SIGNS,
    "brackets of a scale": "SE[log(" + ") " * (N_SIGNS // 2),
    "a word": "S" * N_SIGNS + "[0]",
    "digits of a period": "PER" + "9" * N_SIGNS + "[0]",
    "digits of a column": "SE[" + "9" * N_SIGNS + "]",
    "brackets": "(" * N + "SE[0]" + ")" * N,
    "change points": "CP[0](" * (N // 6),
    "a sum": "+".join(["SE[0]"] * (N // 6)),
    "a product": "*".join(["LIN[1]"] * (N // 7)),
    "sums in brackets": "(SE[0]+" * 150 + "+".join(["SE[0]"] * MAX_LEAVES) + ")" * 150,
    "a scale of the target": "l" * N_SIGNS + "(y) ~ SE[0]",
    "blanks before a tilde": "log(y)" + " " * N_SIGNS + "SE[0]",
}


@pytest.mark.parametrize("name", LONG)
def test_long_texts_are_refused_in_time(name):
    found = read(LONG[name])
    assert isinstance(found, ExpressionSyntaxError)
    assert ("nested too deeply" in str(found)) == (name in ("brackets", "change points"))
    assert len(str(found).split("\n", 1)[1]) < 1000  # the place, not the whole text


@pytest.mark.parametrize("name", ["a sum", "a product", "a word", "brackets"])
def test_long_texts_take_little_memory(name):
    assert n_bytes_of(LONG[name]) < MAX_BYTES


@pytest.mark.parametrize(
    "text",
    [
        " + ".join(["SE[0]"] * MAX_LEAVES),
        " * ".join(["SE[0]", "LIN[1]"] * (MAX_LEAVES // 2)),
        "(" * 100 + "SE[0]" + " + PER[0])" * 100 + " * LIN[0]" * (MAX_LEAVES - 101),
        "CP[0](SE[0], " * 60 + "LIN[0]" + ")" * 60,
    ],
)
def test_the_largest_kernels_can_be_used(text):
    expression = read(text)
    assert parse_expression(str(expression)) == expression
    assert expression.replace(0, expression) == expression
    deepest = max(range(0, expression.n_subtrees, 97), key=lambda n: -expression.subtree(n).depth)
    assert expression.replace(deepest, expression.subtree(deepest)) == expression
    assert len(expression.nodes) >= expression.n_leaves > expression.depth
    assert pickle.loads(pickle.dumps(expression)) == deepcopy(expression) == expression


def check(seeds):
    """Read random texts, and fit some of those that are kernels of few parameters."""
    X = np.random.default_rng(0).uniform(size=(8, 2))
    y = X[:, 0] + X[:, 1] ** 2
    n_read = 0
    for seed in seeds:
        text = hostile_text(np.random.default_rng(seed))
        found = read(text)
        if not isinstance(found, ValueError):
            n_read += 1
            assert parse_expression(str(found)) == found
            if found.n_leaves > 2:  # it may be fitted, which takes its time
                continue
        settings = {"random_state": 0, "n_iter": 0, "max_time": 0.3, "outliers": None}
        for way in ("refit", "start_kernel"):
            model, began = AutoKernelGPRegressor(**settings), time.process_time()
            try:
                if way == "refit":
                    model.refit(X, y, text)
                else:
                    model.set_params(start_kernel=[text, "LIN[0]"]).fit(X, y)
            except ValueError:
                assert time.process_time() - began < MAX_SECONDS, (seed, way)
                assert not hasattr(model, "best_kernel_")
    return n_read


def test_random_texts_are_kernels_or_refused():
    assert check(range(12)) > 0


@pytest.mark.slow
def test_many_random_texts_are_kernels_or_refused():
    assert check(range(12, 212)) > 20
