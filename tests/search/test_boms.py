from dataclasses import replace

import numpy as np
import pytest

from autokernel.expression import parse_expression
from autokernel.search import BOMS, Acquisition

FAR = "(RQ[0] * RQ[1] + RQ[2] * RQ[0]) * (RQ[1] + RQ[2] + RQ[0])"  # walks end elsewhere


class Alphabet(Acquisition):
    """The later a text in the alphabet, the better; remembers what it was asked for."""

    def __init__(self):
        self.asked = []

    def values(self, belief):
        def values(expressions):
            self.asked.append([e.canonical for e in expressions])
            return np.argsort(np.argsort(self.asked[-1])).astype(float)

        return values


@pytest.fixture
def wide(make_task):
    """A task in which the best kernel has many more than fifty neighbours."""
    return make_task(3)


@pytest.fixture
def history_of(make_history):
    """Build a history from texts; the later ones of a search are better."""

    def build(design, searched=()):
        texts = [*design, *searched]
        return make_history(*zip(texts, range(len(texts)), strict=True), n_design=len(design))

    return build


def candidates(task, history, *, seed=0, **params):
    """Texts of the candidates that are not known, for a task of which nothing is kept."""
    alphabet = Alphabet()
    rng = np.random.default_rng(seed)
    BOMS(acquisition=alphabet, **params).propose(task, history, n_proposals=1, rng=rng)
    [asked] = alphabet.asked
    assert len(set(asked)) == len(asked)
    assert not set(asked) & history.canonical_texts()
    return set(asked)


def beside(task, text):
    """Texts of the neighbours of a kernel."""
    return {e.canonical for e in task.grammar.neighbours(parse_expression(text))}


def test_fifty_neighbours_of_the_best_and_fifteen_walks_are_candidates(wide, history_of):
    design, neighbours = ["SE[0]", "LIN[0]", FAR], beside(wide, FAR)
    assert len(neighbours) > 200
    before = candidates(wide, history_of(design))
    assert len(before & neighbours) == 50
    # and a walk from each of twelve base kernels; some end at the same kernel, or a known one
    assert 20 <= len(before - neighbours) <= 27
    before = candidates(wide, history_of(design[:2]))
    added = candidates(wide, history_of(design[:2], [FAR])) - before
    assert len(added & neighbours) == 50
    assert 8 <= len(added - neighbours) <= 15


def test_candidates_of_one_task_are_those_that_a_fresh_task_would_have(wide, history_of):
    design, searched = ["SE[0]", "LIN[0]"], [FAR, "LIN[2]", "RQ[0] * RQ[1]"]
    histories = [history_of(design, searched[:n]) for n in (0, 1, 2, 3, 1)]
    settings = [{}, {"n_walks": 3}, {"n_neighbours": 7}]
    task, rng, alphabet = replace(wide), np.random.default_rng(0), Alphabet()
    for history in histories:
        for params in settings:
            boms = BOMS(acquisition=alphabet, **params)
            boms.propose(task, history, n_proposals=1, rng=rng)
            assert set(alphabet.asked[-1]) == candidates(wide, history, **params)


def test_candidates_stay_until_there_are_too_many(wide, history_of):
    design, searched = ["SE[0]", "LIN[0]"], [FAR, "LIN[2]", "RQ[0] * RQ[1]"]
    before = candidates(wide, history_of(design))
    for n_searched in (1, 2, 3):
        history = history_of(design, searched[:n_searched])
        now = candidates(wide, history)
        assert now >= before - history.canonical_texts()
        assert len(now) > len(before)
        before = now
    # those beside a kernel that was the best before are among them
    assert len(before & beside(wide, FAR)) >= 45


@pytest.mark.parametrize("n_candidates", [80, 100, 150])
def test_the_latest_stay_where_there_are_too_many(wide, history_of, n_candidates):
    design, searched = ["SE[0]", "LIN[0]"], [FAR, "LIN[2]", "RQ[0] * RQ[1]"]
    # a search that begins with all that is known: neighbours and walks come before all others
    # (some walks end alike)
    latest = candidates(wide, history_of([*design, *searched]), n_candidates=58)
    history = history_of(design, searched)
    assert len(candidates(wide, history)) > 150
    found = candidates(wide, history, n_candidates=n_candidates)
    assert found >= latest
    assert found <= candidates(wide, history)
    assert n_candidates - len(history) <= len(found) <= n_candidates  # known ones have places too


def test_the_candidate_of_highest_acquisition_is_proposed(wide, history_of):
    history = history_of(["SE[0]", FAR], ["SE[1]"])
    boms = BOMS(acquisition=Alphabet())
    batch = boms.propose(wide, history, n_proposals=3, rng=np.random.default_rng(0))
    assert [e.canonical for e in batch] == sorted(candidates(wide, history), reverse=True)[:3]
