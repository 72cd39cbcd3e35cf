"""Several kernels that are proposed together."""

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.search import SOT, bayesian
from autokernel.search.acquisition import UpperConfidenceBound, expected_improvement
from autokernel.search.distances import SOTKernel, sot_distances
from autokernel.search.surrogate import Prediction, SurrogateGP

SMALL = {"population_size": 20, "n_offspring": 4, "n_generations": 2}
TARGET = parse_expression("LIN[0] * PER[0] + SE[0]")
N_TOGETHER = 6


def score(expression):
    """Nats for ten samples, fewer the farther a kernel is from the target."""
    away = sot_distances([expression], [TARGET], n_features=1).sum()
    return -20.0 * away - 2.0 * abs(expression.n_leaves - TARGET.n_leaves)


def mean_distance(expressions):
    """Mean SOT distance between two of several kernels."""
    n = len(expressions)
    return sot_distances(expressions, n_features=1).sum() / (n * (n - 1))


@pytest.fixture
def history_of(make_history):
    def build(expressions):
        rows = [(expression, score(expression)) for expression in expressions]
        return make_history(*rows, n_design=len(rows))

    return build


@pytest.fixture(scope="module")
def pool(make_task):
    """All kernels of up to three leaves on one column."""
    grammar = make_task(max_leaves=3).grammar
    met = {leaf.canonical: leaf for leaf in grammar.leaves}
    for _ in range(2):
        grown = [e for parent in met.values() for e in grammar.neighbours(parent)]
        met.update({e.canonical: e for e in grown if e.canonical not in met})
    return list(met.values())


def test_where_fewer_kernels_are_left_the_batch_is_what_is_left(make_task, history_of):
    task = make_task(base_kernels=("SE", "LIN"), max_leaves=2)  # of eight kernels
    known = ("SE[0]", "LIN[0]", "SE[0] + LIN[0]", "SE[0] * LIN[0]", "LIN[0] + LIN[0]")
    history = history_of([parse_expression(text) for text in known])
    batch = SOT(**SMALL).propose(task, history, n_proposals=7, rng=np.random.default_rng(0))
    assert {str(e) for e in batch} == {"SE[0] + SE[0]", "SE[0] * SE[0]", "LIN[0] * LIN[0]"}
    assert len(batch) == 3


def highest_improvement(history, pool):
    """Kernels of a pool, but for those that are known, in the order of expected improvement."""
    known = [evaluation.expression for evaluation in history.evaluations]
    rest = [e for e in pool if e.canonical not in history.canonical_texts()]
    scores = bayesian.finite_scores(history)
    surrogate = SurrogateGP(SOTKernel(n_features=1), known, scores)
    improvement = expected_improvement(surrogate.predict(rest), best=scores.max())
    return [rest[number] for number in np.argsort(-improvement, kind="stable")]


def test_a_batch_is_more_varied_than_the_kernels_of_highest_improvement(
    monkeypatch, make_task, history_of, pool
):
    def best_of_pool(acquisition, grammar, population, *, excluded, **sizes):
        allowed = [e for e in pool if e.canonical not in excluded]
        return allowed[np.argmax(acquisition(allowed))]

    monkeypatch.setattr(bayesian, "evolve", best_of_pool)  # no chance: the maximum itself
    ratios = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        drawn = [pool[number] for number in rng.choice(len(pool), 40, replace=False)]
        history = history_of({e.canonical: e for e in (TARGET, *drawn)}.values())
        batch = SOT().propose(make_task(), history, n_proposals=N_TOGETHER, rng=rng)
        highest = highest_improvement(history, pool)[:N_TOGETHER]
        assert batch[0] == highest[0]
        ratios.append(mean_distance(batch) / mean_distance(highest))
    # from 1 to 1.5, and 1.14 on the average; without belief the two are the same
    assert np.mean(ratios) > 1.05


def test_each_next_one_is_sought_where_those_before_it_are_believed(
    monkeypatch, make_task, history_of
):
    """The improvement over a proposal all but vanishes once it is believed."""
    acquisitions, proposals = [], [parse_expression("PER[0] * SE[0]"), parse_expression("RQ[0]")]

    def evolve(acquisition, grammar, population, *, excluded, **sizes):
        acquisitions.append(acquisition)
        proposal = proposals[len(acquisitions) - 1]
        assert proposal.canonical not in excluded
        assert excluded >= {e.canonical for e in proposals[: len(acquisitions) - 1]}
        return proposal

    monkeypatch.setattr(bayesian, "evolve", evolve)
    texts = ("LIN[0] * PER[0] + SE[0]", "SE[0]", "PER[0] + SE[0]", "LIN[0] * SE[0]", "LIN[0]")
    history = history_of([parse_expression(text) for text in texts])
    rng = np.random.default_rng(0)
    assert SOT().propose(make_task(), history, n_proposals=2, rng=rng) == proposals
    before, after = (acquisition(proposals) for acquisition in acquisitions)
    assert after[0] < 0.1 * before[0]
    assert after[1] > 0.5 * before[1]  # elsewhere little changes


def test_what_is_believed_is_the_best_to_improve_on_where_it_is_better(
    monkeypatch, make_task, history_of
):
    best = []

    class Noting(UpperConfidenceBound):
        def values(self, belief):
            best.append(belief.best)
            return super().values(belief)

    def hopeful(self, expressions):
        return Prediction(np.full(len(expressions), 7.0), np.ones(len(expressions)))

    monkeypatch.setattr(SurrogateGP, "predict", hopeful)
    history = history_of([parse_expression(text) for text in ("SE[0]", "LIN[0]")])
    strategy = SOT(**SMALL, acquisition=Noting())
    strategy.propose(make_task(), history, n_proposals=3, rng=np.random.default_rng(0))
    assert best == [history.scores.max() / 10, 7.0, 7.0]


@pytest.mark.parametrize("n_iter", [6, 7, 8])
def test_a_search_evaluates_whole_batches_and_what_is_left_of_the_last(
    run, planted, make_task, n_iter
):
    given = []

    def evaluate(expression, known):
        given.append(len(known))
        return planted(expression, known)

    history = run(evaluate, SOT(**SMALL), make_task(), n_iter=n_iter, batch_size=3).history
    assert history.n_searched == n_iter
    n_design = len(history) - n_iter
    n_known = n_design - 1  # noise alone is the end of the design, and is not shown
    # those of a batch begin at what was known when it was proposed
    assert given[n_design:] == [n_known + number // 3 * 3 for number in range(n_iter)]


def test_a_batch_of_a_search_is_what_the_strategy_proposes_for_its_history(run, planted, make_task):
    class Noting(SOT):
        def propose(self, task, history, *, n_proposals, rng):
            asked.append((len(history), n_proposals))
            batches.append(super().propose(task, history, n_proposals=n_proposals, rng=rng))
            return batches[-1]

    asked, batches = [], []
    history = run(planted, Noting(**SMALL), make_task(), n_iter=8, batch_size=3).history
    n_design = len(history) - 8
    n_known = n_design - 1  # noise alone is the end of the design, and is not shown
    assert asked == [(n_known, 3), (n_known + 3, 3), (n_known + 6, 3)]
    evaluated = [trial.evaluation.expression for trial in history.trials[n_design:]]
    assert evaluated == [e for batch in batches for e in batch][:8]
