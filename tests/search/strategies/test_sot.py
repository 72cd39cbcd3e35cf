from collections import Counter

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.expression import Grammar
from autokernel.search import SOT, Arc, bayesian
from autokernel.search.acquisition import ExpectedImprovement
from autokernel.search.design import grown_kernels
from autokernel.search.distances import sot_distances
from autokernel.search.surrogate import SurrogateGP

SMALL = {"population_size": 20, "n_generations": 2}
EVOLVING = (SOT, Arc)  # they differ in nothing but the kernel between expressions


def propose(strategy, task, history):
    return strategy.propose(task, history, n_proposals=1, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("n_features", "params", "expected"),
    [
        (1, {}, (20, 4, 6)),  # SOT appendix D: 6 generations for one column, else 10
        (3, {}, (20, 4, 10)),
        (3, {"n_generations": 2}, (20, 4, 2)),
        (1, {"population_size": 60, "n_offspring": 2}, (20, 2, 6)),
        (1, {"population_size": 3}, (1, 4, 6)),
    ],
)
@pytest.mark.parametrize("strategy", EVOLVING)
def test_evolution_has_the_sizes_asked_for(
    monkeypatch, make_task, make_history, strategy, n_features, params, expected
):
    sizes = []

    def evolve(acquisition, grammar, population, *, excluded, rng, **given):
        sizes.append((given["n_survivors"], given["n_offspring"], given["n_generations"]))
        assert len(population) == strategy(**params).population_size
        return population[0]

    monkeypatch.setattr(bayesian, "evolve", evolve)
    history = make_history(("SE[0]", -3.0), ("LIN[0]", -2.0))
    propose(strategy(**params), make_task(n_features), history)
    assert sizes == [expected]


@pytest.mark.parametrize("strategy", EVOLVING)
def test_the_first_generation_holds_neighbours_of_the_best_kernels(
    monkeypatch, make_task, make_history, strategy
):
    populations = []

    def evolve(acquisition, grammar, population, **given):
        populations.append(population)
        return population[0]

    monkeypatch.setattr(bayesian, "evolve", evolve)
    task, best = make_task(), "(SE[0] + LIN[0]) * (SE[0] + PER[0]) * RQ[0]"
    others = [(f"{' + '.join(['LIN[0]'] * n)}", -50.0 - n) for n in range(1, 8)]
    rows = [*others, (best, -1.0), ("SE[0]", -np.inf), ("RQ[0]", -70.0), ("PER[0]", -80.0)]
    history = make_history(*rows)
    propose(strategy(), task, history)
    beside_best = {e.canonical for e in task.grammar.neighbours(history.best.expression)}
    n_beside = sum(e.canonical in beside_best for e in populations[0])
    assert n_beside >= 5  # a tenth of the half that is not random walks


@pytest.mark.parametrize("strategy", EVOLVING)
def test_half_of_the_first_generation_is_walks_and_half_beside_the_ten_best(
    monkeypatch, make_task, make_history, strategy
):
    walks, parents = [], []
    random_walk, random_neighbour = Grammar.random_walk, Grammar.random_neighbour

    def walk(self, start, n_steps, rng):
        walks.append(start)
        with monkeypatch.context() as within:  # the steps of a walk are none of ours
            within.setattr(Grammar, "random_neighbour", random_neighbour)
            return random_walk(self, start, n_steps, rng)

    def neighbour(self, expression, rng):
        parents.append(str(expression))
        return random_neighbour(self, expression, rng)

    monkeypatch.setattr(Grammar, "random_walk", walk)
    monkeypatch.setattr(Grammar, "random_neighbour", neighbour)
    monkeypatch.setattr(
        bayesian, "evolve", lambda values, grammar, population, **given: population[0]
    )
    texts = [" * ".join(["LIN[0]"] * n) for n in range(1, 7)]
    texts += [" + ".join(["LIN[0]"] * n) for n in range(2, 8)]
    history = make_history(*((text, -float(number)) for number, text in enumerate(texts)))
    propose(strategy(), make_task(), history)
    assert len(walks) == 50
    assert Counter(parents) == dict.fromkeys(texts[:10], 5)


def test_the_acquisition_is_larger_near_good_kernels_than_near_bad_ones(
    monkeypatch, make_task, make_history
):
    values = []

    def evolve(acquisition, grammar, population, **given):
        values.append(acquisition([good, bad]))
        return good

    rows = [
        ("SE[0] + PER[0]", -1.0),
        ("SE[0] * PER[0]", -1.2),
        ("PER[0]", -2.0),
        ("LIN[0]", -60.0),
        ("LIN[0] * RQ[0]", -59.0),
        ("LIN[0] + RQ[0]", -61.0),
        ("RQ[0] * RQ[0]", -58.0),
        ("RQ[0] * SE[0]", -np.inf),
    ]
    history = make_history(*rows)
    grammar = make_task().grammar
    good = history.evaluations[0].expression + grammar.leaves[2]  # SE + PER + PER
    bad = history.evaluations[4].expression * grammar.leaves[1]  # LIN * RQ * LIN
    monkeypatch.setattr(bayesian, "evolve", evolve)
    propose(SOT(), make_task(), history)
    assert values[0][0] > 10 * values[0][1] >= 0


@pytest.mark.parametrize("strategy", EVOLVING)
def test_improvement_is_over_the_best_score_and_failures_count_as_the_worst(
    monkeypatch, make_task, make_history, strategy
):
    targets, bests = [], []

    class Surrogate(SurrogateGP):
        def __init__(self, kernel_kernel, expressions, scores, offset):
            targets.append(list(scores))
            super().__init__(kernel_kernel, expressions, scores, offset)

    class Improvement(ExpectedImprovement):
        def values(self, belief):
            bests.append(belief.best)
            return super().values(belief)

    monkeypatch.setattr(bayesian, "SurrogateGP", Surrogate)
    history = make_history(("SE[0]", -30.0), ("LIN[0]", -np.inf), ("PER[0]", -10.0), n_samples=10)
    propose(strategy(**SMALL, acquisition=Improvement()), make_task(), history)
    assert targets == [[-3, -3, -1]]  # per sample
    assert set(bests) == {-1}


@pytest.mark.parametrize("strategy", EVOLVING)
def test_the_kernel_between_expressions_is_kept_in_the_task(
    monkeypatch, make_task, make_history, strategy
):
    used = []

    class Noting(SurrogateGP):
        def __init__(self, kernel_kernel, expressions, scores, offset):
            used.append(kernel_kernel)
            super().__init__(kernel_kernel, expressions, scores, offset)

    monkeypatch.setattr(bayesian, "SurrogateGP", Noting)
    task, history = make_task(), make_history(("SE[0]", -3.0), ("RQ[0]", -2.0))
    own = strategy(**SMALL)
    for of_task in (task, task, make_task()):  # another task has one of its own
        propose(own, of_task, history)
    propose(strategy(**SMALL), task, history)  # and so has another strategy
    assert used[0] is used[1] is task.cache[own]
    assert used[2] is not used[0]
    assert used[3] is not used[0]


def test_base_kernels_come_before_neighbours_where_evolution_finds_nothing(
    monkeypatch, make_task, make_history
):
    monkeypatch.setattr(bayesian, "evolve", lambda *args, **given: None)
    history = make_history(("SE[0]", -3.0), ("RQ[0]", -2.0), ("LIN[0]", -4.0))
    (proposal,) = propose(SOT(), make_task(), history)
    assert str(proposal) == "PER[0]"


def test_it_comes_nearer_to_a_planted_kernel_than_random_walks_do(run, make_task, make_evaluation):
    target, grammar = parse_expression("LIN[0] * PER[0] + SE[0]"), make_task().grammar

    def score(expression):
        distance = sot_distances([expression], [target], n_features=1).sum()
        return -20.0 * distance - 2.0 * abs(expression.n_leaves - target.n_leaves)

    searched, walked = [], []
    for seed in range(4):
        result = run(
            lambda expression, known: make_evaluation(expression, score(expression)),
            SOT(population_size=50, n_generations=4, initial_design="paper"),
            make_task(),
            n_iter=25,
            seed=seed,
        )
        searched.append(result.history.best.score)
        rng = np.random.default_rng(seed)
        starts = [one.expression for one in grown_kernels(grammar, rng=rng)]
        walks = [
            grammar.random_walk(starts[i % 4], int(rng.geometric(1 / 3)), rng) for i in range(25)
        ]
        walked.append(max(map(score, [*starts, *walks])))
    # in eight runs of each the means were -5 and -26, the standard deviations 7 and 5
    assert np.mean(searched) > np.mean(walked) + 5
