import zlib
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from autokernel import parse_expression
from autokernel.search import Greedy, Phase, StopReason

MANY = 10_000  # kernels, more than any of these searches meets


def rugged(seed):
    """Scores with local maxima: a random number for each kernel, and a reward for size."""

    def score(expression):
        text = f"{seed} {expression.canonical}"
        return np.random.default_rng(zlib.crc32(text.encode())).normal() + expression.n_leaves

    return score


@pytest.fixture
def evaluate(make_evaluation):
    """Turn a score into what scores kernels in a search."""
    return lambda score: lambda expression, known: make_evaluation(expression, score(expression))


def levels_by_hand(grammar, score):
    """Texts that are evaluated in each round (Kim and Teh, algorithm 2)."""
    levels, done = [], set()
    candidates, best = grammar.leaves, -np.inf
    while True:
        levels.append({e.canonical for e in candidates} - done)
        done |= levels[-1]
        top = max(candidates, key=score, default=None)
        if top is None or score(top) <= best:
            return [level for level in levels if level]
        best, candidates = score(top), grammar.neighbours(top)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("batch_size", [1, 3])
def test_it_evaluates_what_a_search_by_hand_does(run, make_task, evaluate, seed, batch_size):
    task, score = make_task(2, base_kernels=("SE", "LIN"), max_leaves=4), rugged(seed)
    levels = levels_by_hand(task.grammar, score)
    assert len(levels) > 2
    levels[0].add("NOISE")  # the end of the initial design
    result = run(evaluate(score), Greedy(), task, n_iter=MANY, batch_size=batch_size)
    texts = [e.expression.canonical for e in result.unpruned.evaluations]
    for level in levels:
        assert set(texts[: len(level)]) == level
        texts = texts[len(level) :]
    assert texts == []
    assert result.stop_reason is StopReason.EXHAUSTED


def next_of(task, history, n_proposals, *, seed=0):
    rng = np.random.default_rng(seed)
    return Greedy().propose(task, history, n_proposals=n_proposals, rng=rng)


def test_the_neighbours_come_in_an_order_that_is_drawn_uniformly(make_task, make_history):
    task = make_task(base_kernels=("SE", "LIN", "PER"))
    history = make_history(("SE[0]", -3.0), ("LIN[0]", -2.0), ("PER[0]", -1.0))
    expected = {e.canonical for e in task.grammar.neighbours(task.grammar.leaves[2])}
    expected -= history.canonical_texts()
    orders = [next_of(task, history, MANY, seed=seed) for seed in range(600)]
    assert all({e.canonical for e in order} == expected for order in orders)
    assert len(expected) == 6
    for number in (0, 5):
        counts = Counter(order[number].canonical for order in orders)
        # one seed in a thousand is below this; the seeds are fixed
        assert chisquare([counts[text] for text in expected]).pvalue > 1e-3


def test_what_others_have_evaluated_counts_and_is_not_evaluated_again(make_task, make_history):
    task = make_task(base_kernels=("SE", "LIN"), operators=("+",), max_leaves=3)
    rows = [("SE[0]", -1.0), ("LIN[0]", -2.0), ("LIN[0] + SE[0]", 3.0), ("LIN[0] + LIN[0]", 9.0)]
    # one neighbour of the best base kernel is left, and then those of the best neighbour
    [left] = next_of(task, make_history(*rows), MANY)
    assert str(left) == "SE[0] + SE[0]"
    history = make_history(*rows, ("SE[0] + SE[0]", 1.0))
    batch = next_of(task, history, MANY)
    beside = task.grammar.neighbours(parse_expression("SE[0] + LIN[0]"))
    assert {e.canonical for e in batch} == {e.canonical for e in beside} - history.canonical_texts()
    assert {e.n_leaves for e in batch} == {3}


@pytest.mark.parametrize(
    ("rows", "n_left"),
    [
        ([("SE[0]", -np.inf), ("LIN[0]", -np.inf)], 2),
        ([("SE[0]", -np.inf), ("LIN[0]", -5.0)], 2),
        ([("SE[0]", -1.0), ("LIN[0]", -2.0), ("SE[0] + SE[0]", -np.inf)], 1),
        (
            [("SE[0]", -1.0), ("LIN[0]", -2.0), ("SE[0] + SE[0]", -np.inf), ("SE[0] + LIN[0]", -3)],
            0,
        ),
        # no better is no improvement
        ([("SE[0]", -1.0), ("LIN[0]", -1.0), ("SE[0] + SE[0]", -1.0), ("SE[0] + LIN[0]", -1)], 0),
        ([("SE[0]", -1.0), ("LIN[0]", -2.0), ("SE[0] + SE[0]", 0.0), ("SE[0] + LIN[0]", -3)], 2),
    ],
)
def test_failures_are_no_improvement(make_task, make_history, rows, n_left):
    task = make_task(base_kernels=("SE", "LIN"), operators=("+",), max_leaves=3)
    assert len(next_of(task, make_history(*rows), MANY)) == n_left


@pytest.mark.parametrize("batch_size", [3, 5, 100])
def test_the_neighbours_of_one_kernel_are_the_last_ones_of_a_batch(
    run, make_task, evaluate, batch_size
):
    task, score = make_task(2, base_kernels=("SE", "LIN"), max_leaves=4), rugged(0)
    history = run(evaluate(score), Greedy(), task, n_iter=MANY, batch_size=batch_size).history
    starts = [trial.start for trial in history if trial.phase is Phase.SEARCH]
    expected, n_before = [], 0
    for level in levels_by_hand(task.grammar, score)[1:]:
        expected += [n_before + number // batch_size * batch_size for number in range(len(level))]
        n_before += len(level)
    assert starts == expected
