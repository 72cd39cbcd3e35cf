import numpy as np
import pytest
from sklearn.base import clone

from autokernel import parse_expression
from autokernel.search import SOT, STRATEGIES
from autokernel.search import sot as sot_module
from autokernel.search.design import DESIGNS, grown_kernels, initial_design
from autokernel.surrogate.acquisition import expected_improvement
from autokernel.surrogate.gp import SurrogateGP
from autokernel.surrogate.sot import sot_distances

SMALL = {"population_size": 20, "n_generations": 2}


def propose(strategy, space, history):
    return strategy.propose(space, history, n_proposals=1, rng=np.random.default_rng(0))


@pytest.mark.parametrize("name", ["population_size", "n_offspring", "n_generations"])
@pytest.mark.parametrize("value", [0, -3, 2.0, "many", None])
def test_sizes_that_are_no_positive_integers_are_errors(name, value):
    expected = rf"'{name}' parameter of SOT must be .*an int in the range \[1, inf\).*{value!r}"
    with pytest.raises(ValueError, match=expected):
        SOT(**{name: value})._validate_params()


@pytest.mark.parametrize("name", ["large", None, 3])
def test_an_unknown_initial_design_is_an_error_that_lists_the_known_ones(name):
    known = r"\{('default', 'paper'|'paper', 'default')\}"
    with pytest.raises(ValueError, match=rf"'initial_design' .* among {known}. Got {name!r}"):
        SOT(initial_design=name)._validate_params()


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"population_size": 1, "n_offspring": 1, "n_generations": 1},
        {"n_generations": "auto", "initial_design": "paper"},
        {"population_size": np.int64(7)},
    ],
)
def test_valid_parameters_are_stored_as_given_and_accepted(params):
    strategy = SOT(**params)
    strategy._validate_params()
    assert strategy.get_params().items() >= params.items()


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_can_be_made_by_name_and_cloned(name):
    strategy = STRATEGIES[name]()
    strategy._validate_params()
    copy = clone(strategy)
    assert copy is not strategy
    assert copy.get_params() == strategy.get_params()


def test_a_clone_keeps_parameters_that_were_set():
    strategy = SOT().set_params(population_size=33, initial_design="paper")
    assert (
        clone(strategy).get_params() == SOT(population_size=33, initial_design="paper").get_params()
    )


@pytest.mark.parametrize("name", DESIGNS)
def test_its_design_is_that_of_the_name(make_space, name):
    space, rng = make_space(2), np.random.default_rng
    assert SOT(initial_design=name).design(space, rng=rng(3)) == initial_design(
        name, space.grammar, space.base_kernels, rng=rng(3)
    )


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
def test_evolution_has_the_sizes_asked_for(
    monkeypatch, make_space, make_history, n_features, params, expected
):
    sizes = []

    def evolve(acquisition, grammar, population, *, excluded, rng, **given):
        sizes.append((given["n_survivors"], given["n_offspring"], given["n_generations"]))
        assert len(population) == SOT(**params).population_size
        return population[0]

    monkeypatch.setattr(sot_module, "evolve", evolve)
    history = make_history(("SE[0]", -3.0), ("LIN[0]", -2.0))
    propose(SOT(**params), make_space(n_features), history)
    assert sizes == [expected]


def test_the_first_generation_holds_neighbours_of_the_best_kernels(
    monkeypatch, make_space, make_history
):
    populations = []

    def evolve(acquisition, grammar, population, **given):
        populations.append(population)
        return population[0]

    monkeypatch.setattr(sot_module, "evolve", evolve)
    space, best = make_space(), "(SE[0] + LIN[0]) * (SE[0] + PER[0]) * RQ[0]"
    others = [(f"{' + '.join(['LIN[0]'] * n)}", -50.0 - n) for n in range(1, 8)]
    rows = [*others, (best, -1.0), ("SE[0]", -np.inf), ("RQ[0]", -70.0), ("PER[0]", -80.0)]
    history = make_history(*rows)
    propose(SOT(), space, history)
    beside_best = {e.canonical for e in space.grammar.neighbours(history.best.expression)}
    n_beside = sum(e.canonical in beside_best for e in populations[0])
    assert n_beside >= 5  # a tenth of the half that is not random walks


def test_the_acquisition_is_larger_near_good_kernels_than_near_bad_ones(
    monkeypatch, make_space, make_history
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
    grammar = make_space().grammar
    good = history.evaluations[0].expression + grammar.leaves[2]  # SE + PER + PER
    bad = history.evaluations[4].expression * grammar.leaves[1]  # LIN * RQ * LIN
    monkeypatch.setattr(sot_module, "evolve", evolve)
    propose(SOT(), make_space(), history)
    assert values[0][0] > 10 * values[0][1] >= 0


def test_improvement_is_over_the_best_score_and_failures_count_as_the_worst(
    monkeypatch, make_space, make_history
):
    targets, bests = [], []

    class Surrogate(SurrogateGP):
        def __init__(self, distances, scores):
            targets.append(list(scores))
            super().__init__(distances, scores)

    def improvement(prediction, *, best):
        bests.append(best)
        return expected_improvement(prediction, best=best)

    monkeypatch.setattr(sot_module, "SurrogateGP", Surrogate)
    monkeypatch.setattr(sot_module, "expected_improvement", improvement)
    history = make_history(("SE[0]", -30.0), ("LIN[0]", -np.inf), ("PER[0]", -10.0), n_samples=10)
    propose(SOT(**SMALL), make_space(), history)
    assert targets == [[-3, -3, -1]]  # per sample
    assert set(bests) == {-1}


def test_base_kernels_come_before_neighbours_where_evolution_finds_nothing(
    monkeypatch, make_space, make_history
):
    monkeypatch.setattr(sot_module, "evolve", lambda *args, **given: None)
    history = make_history(("SE[0]", -3.0), ("RQ[0]", -2.0), ("LIN[0]", -4.0))
    (proposal,) = propose(SOT(), make_space(), history)
    assert str(proposal) == "PER[0]"


def test_it_comes_nearer_to_a_planted_kernel_than_random_walks_do(run, make_space, make_evaluation):
    target, grammar = parse_expression("LIN[0] * PER[0] + SE[0]"), make_space().grammar

    def score(expression):
        distance = sot_distances([expression], [target], n_features=1).sum()
        return -20.0 * distance - 2.0 * abs(expression.n_leaves - target.n_leaves)

    searched, walked = [], []
    for seed in range(4):
        result = run(
            lambda expression, known: make_evaluation(expression, score(expression)),
            SOT(population_size=50, n_generations=4, initial_design="paper"),
            make_space(),
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
