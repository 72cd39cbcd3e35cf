import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.expression import Grammar
from autokernel.kernels import ADD, FEW_COLUMNS, LINEAR, MULTIPLY, SMOOTH
from autokernel.search.distances import sot_distances
from autokernel.search.evolution import evolve

GRAMMAR = Grammar(FEW_COLUMNS, (ADD, MULTIPLY), (0, 1), max_leaves=6)
ONE_COLUMN = Grammar(FEW_COLUMNS, (ADD, MULTIPLY), (0,), max_leaves=6)
TARGETS = ["SE[0] * PER[0] + LIN[0]", "RQ[0] * (SE[0] + LIN[0])"]


class Nearness:
    """Minus the distance to a target, in shape and in size; remembers what it was asked."""

    def __init__(self, target):
        self.target = parse_expression(target)
        self.asked = []

    def __call__(self, expressions):
        self.asked.extend(expressions)
        in_shape = sot_distances(expressions, [self.target], n_features=2).sum(axis=(0, 2))
        in_size = np.array([abs(e.n_leaves - self.target.n_leaves) for e in expressions])
        return -in_shape - 0.3 * in_size


def run(acquisition, *, seed=0, excluded=frozenset(), population=GRAMMAR.leaves, **sizes):
    return evolve(
        acquisition,
        sizes.pop("grammar", GRAMMAR),
        population,
        excluded=excluded,
        rng=np.random.default_rng(seed),
        **{"n_survivors": 20, "n_offspring": 4, "n_generations": 12, **sizes},
    )


@pytest.mark.parametrize("target", TARGETS)
def test_it_finds_a_planted_maximum(target):
    found = [
        run(
            Nearness(target),
            seed=seed,
            grammar=ONE_COLUMN,
            population=ONE_COLUMN.leaves,
            n_survivors=40,
        ).canonical
        for seed in range(10)
    ]
    # no operation takes a leaf away, so that some runs end beside it: 2 of 60 with other seeds
    assert found.count(parse_expression(target).canonical) >= 8


def test_an_excluded_maximum_gives_way_to_the_best_of_the_rest():
    acquisition = Nearness("SE[0] + LIN[1]")
    target = acquisition.target.canonical
    found = run(acquisition, excluded={target})
    met = list(acquisition.asked)
    assert target in {e.canonical for e in met}  # or nothing gave way
    assert found.canonical != target
    assert acquisition([found]) == max(acquisition([e for e in met if e.canonical != target]))


def test_excluded_expressions_may_be_parents():
    excluded = {leaf.canonical for leaf in GRAMMAR.leaves}
    found = run(Nearness("SE[0]"), excluded=excluded)
    assert found.n_leaves == 2  # nearest to one that may not be the result


def test_it_returns_none_where_everything_is_excluded():
    tiny = Grammar((SMOOTH, LINEAR), (ADD,), (0,), max_leaves=2)
    every = {e.canonical for leaf in tiny.leaves for e in (leaf, *tiny.neighbours(leaf))}
    assert len(every) == 5
    found = run(Nearness("SE[0]"), population=tiny.leaves, excluded=every, grammar=tiny)
    assert found is None


def test_the_result_has_the_highest_value_of_all_that_was_asked():
    acquisition = Nearness("PER[0] * PER[1] * SE[0] + LIN[1] * LIN[0]")
    found = run(acquisition, n_generations=2)
    assert acquisition([found])[0] == acquisition(list(acquisition.asked)).max() < 0


def test_the_same_generator_gives_the_same_result():
    one, other = Nearness(TARGETS[0]), Nearness(TARGETS[0])
    assert run(one, seed=4, n_generations=3) == run(other, seed=4, n_generations=3)
    assert one.asked == other.asked
    third = Nearness(TARGETS[0])
    run(third, seed=5, n_generations=3)
    assert one.asked != third.asked


def test_no_canonical_text_is_asked_for_twice():
    acquisition = Nearness(TARGETS[0])
    commuted = [parse_expression("SE[0] + LIN[1]"), parse_expression("LIN[1] + SE[0]")]
    run(acquisition, population=[*GRAMMAR.leaves, *commuted])
    texts = [e.canonical for e in acquisition.asked]
    assert len(texts) == len(set(texts))


def test_without_generations_it_is_the_best_of_the_population():
    acquisition = Nearness("PER[1] + PER[1]")
    assert str(run(acquisition, n_generations=0)) == "PER[1]"
    assert acquisition.asked == list(GRAMMAR.leaves)


def test_equal_values_go_by_the_alphabet():
    found = run(lambda expressions: np.zeros(len(expressions)), n_generations=0)
    assert str(found) == "LIN[0]"


def test_offspring_come_from_the_best_alone():
    acquisition = Nearness("SE[0]")
    run(acquisition, n_survivors=1, n_offspring=50, n_generations=1)
    offspring = acquisition.asked[len(GRAMMAR.leaves) :]
    assert 0 < len(offspring) <= 50
    # a base kernel has two leaves after growing, and it is a part of what grew from it
    assert all("SE[0]" in map(str, child.leaves) for child in offspring)


def test_the_best_are_never_lost():
    # one survivor and one child, which is seldom better: the best so far stays a parent
    best = []
    for n_generations in range(8):
        acquisition = Nearness(TARGETS[0])
        found = run(acquisition, n_survivors=1, n_offspring=1, n_generations=n_generations)
        best.append(acquisition([found])[0])
    assert best == sorted(best)
