from dataclasses import replace

import numpy as np

from autokernel.expression import parse_expression
from autokernel.search import BOMS, Acquisition
from tests.search.stand_ins import history_of, proposed, task_of

FAR = "(RQ[0] * RQ[1] + RQ[2] * RQ[0]) * (RQ[1] + RQ[2] + RQ[0])"  # walks end elsewhere


class Alphabet(Acquisition):
    """The later a text in the alphabet, the better; remembers what it was given."""

    def __init__(self):
        self.asked = []

    def values(self, belief):
        def values(expressions):
            self.asked.append([e.canonical for e in expressions])
            return np.argsort(np.argsort(self.asked[-1])).astype(float)

        return values


# a task in which the best kernel has many more than fifty neighbours
WIDE = task_of(3)
DESIGN, SEARCHED = ["SE[0]", "LIN[0]"], [FAR, "LIN[2]", "RQ[0] * RQ[1]"]


def improving(design, searched=()):
    """Build a history from texts; the later ones of a search are better."""
    rows = [*design, *searched]
    return history_of(*zip(rows, range(len(rows)), strict=True), n_design=len(design))


def candidates(history, **params):
    """Texts of the candidates that are not known, for a task of which nothing is kept."""
    alphabet = Alphabet()
    proposed(BOMS(acquisition=alphabet, **params), replace(WIDE), history)
    [asked] = alphabet.asked
    assert len(set(asked)) == len(asked)
    assert not set(asked) & history.canonical_texts()
    return set(asked)


def near(text):
    """Texts of the neighbours of a kernel."""
    return {e.canonical for e in WIDE.grammar.neighbours(parse_expression(text))}


def test_fifty_neighbours_of_the_best_and_fifteen_walks_are_candidates():
    neighbours = near(FAR)
    assert len(neighbours) > 200
    before = candidates(improving([*DESIGN, FAR]))
    assert len(before & neighbours) == 50
    # and a walk from each of twelve base kernels; some end at the same kernel, or a known one
    assert 20 <= len(before - neighbours) <= 27
    before = candidates(improving(DESIGN))
    added = candidates(improving(DESIGN, [FAR])) - before
    assert len(added & neighbours) == 50
    assert 8 <= len(added - neighbours) <= 15


def test_candidates_stay_until_there_are_too_many():
    before = candidates(improving(DESIGN))
    for n_searched in (1, 2, 3):
        history = improving(DESIGN, SEARCHED[:n_searched])
        now = candidates(history)
        assert now >= before - history.canonical_texts()
        assert len(now) > len(before)
        before = now
    # those near a kernel that was the best before are among them
    assert len(before & near(FAR)) >= 45


def test_the_latest_stay_where_there_are_too_many():
    # a search that begins with all that is known: neighbours and walks come before all others
    # (some walks end alike)
    latest = candidates(improving([*DESIGN, *SEARCHED]), n_candidates=58)
    history = improving(DESIGN, SEARCHED)
    assert len(candidates(history)) > 150
    found = candidates(history, n_candidates=100)
    assert found >= latest
    assert found <= candidates(history)
    assert 100 - len(history) <= len(found) <= 100  # known ones have places too
