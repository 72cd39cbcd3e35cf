import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.search import Greedy, Phase, StopReason
from tests.search.stand_ins import Laboratory, history_of, proposed, rough, task_of

MANY = 10_000  # kernels, more than any of these searches meets


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


@pytest.mark.parametrize(("seed", "batch_size"), [(0, 1), (1, 3), (2, 100), (3, 3)])
def test_it_evaluates_what_a_search_by_hand_does(seed, batch_size):
    task = task_of(2, base_kernels=("SE", "LIN"), max_leaves=4, tol=0.0)

    def score(expression):  # with local maxima, and a reward for size
        return rough(expression, f"{seed} ") + expression.n_leaves

    levels = levels_by_hand(task.grammar, score)
    assert len(levels) > 2
    levels[0].add("NOISE")  # the end of the initial design
    found = Laboratory(Greedy(), task, score).search(n_iter=MANY, batch_size=batch_size)
    trials = [trial for trial in found.history if trial.phase is not Phase.PRUNING]
    texts = [trial.evaluation.expression.canonical for trial in trials]
    starts = [trial.start for trial in trials if trial.phase is Phase.SEARCH]
    for level in levels:
        assert set(texts[: len(level)]) == level
        texts = texts[len(level) :]
    assert texts == []
    # the last batch of the neighbours of a kernel holds nothing else
    for level in levels[1:]:
        batches = [number // batch_size * batch_size for number in range(len(level))]
        assert [start - starts[0] for start in starts[: len(level)]] == batches
        starts = starts[len(level) :]
    assert found.reason is StopReason.LOCAL_MAXIMUM


def test_what_others_have_evaluated_counts_and_is_not_evaluated_again():
    task = task_of(base_kernels=("SE", "LIN"), operators=("+",), max_leaves=3)
    rows = [("SE[0]", -1.0), ("LIN[0]", -2.0), ("LIN[0] + SE[0]", 3.0), ("LIN[0] + LIN[0]", 9.0)]
    # one neighbour of the best base kernel is left, and then those of the best neighbour
    [left] = proposed(Greedy(), task, history_of(*rows), MANY)
    assert str(left) == "SE[0] + SE[0]"
    history = history_of(*rows, ("SE[0] + SE[0]", 1.0))
    batch = proposed(Greedy(), task, history, MANY)
    near = task.grammar.neighbours(parse_expression("SE[0] + LIN[0]"))
    assert {e.canonical for e in batch} == {e.canonical for e in near} - history.canonical_texts()
    assert {e.n_leaves for e in batch} == {3}


@pytest.mark.parametrize(
    ("rows", "n_left"),
    [
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
def test_failures_are_no_improvement(rows, n_left):
    task = task_of(base_kernels=("SE", "LIN"), operators=("+",), max_leaves=3)
    assert len(proposed(Greedy(), task, history_of(*rows), MANY)) == n_left
