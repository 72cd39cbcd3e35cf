import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.expression import Operation
from autokernel.inference import Evaluator
from autokernel.kernels.priors import check_priors
from autokernel.search import SOT, History, Phase, StopReason, Strategy, Trial, search
from tests.processes import outputs_under_two_hash_seeds

SMALL = {"population_size": 20, "n_offspring": 4, "n_generations": 2}

SEARCH_AND_PRINT = """
import numpy as np
from autokernel.expression import Grammar
from autokernel.inference import Evaluator
from autokernel.kernels.priors import check_priors
from autokernel.search import SOT, Space, search
x = np.linspace(0, 1, 10)
evaluate = Evaluator(x[:, None], np.sin(9 * x), priors=check_priors("paper"), seed=0)
bases = ("SE", "LIN")
space = Space(Grammar(bases, ("+", "*"), (0,), 5), 1, bases)
result = search(evaluate, SOT(population_size=20), space, n_samples=10, n_iter=4, seed=0)
print([str(trial.evaluation.expression) for trial in result.history])
"""


class Script(Strategy):
    """Follows a script; notes what it was given."""

    def __init__(self, *, fixed=(), random=(), proposals=(), n_draws=()):
        self.fixed = fixed
        self.random = random
        self.proposals = proposals
        self.n_draws = n_draws
        self.first_draws = []
        self.lengths = []

    def check_parameters(self):
        pass

    def fixed_design(self, space):
        return [parse_expression(text) for text in self.fixed]

    def random_design(self, space, history, *, rng):
        self.lengths.append(len(history))
        return [parse_expression(text) for text in self.random]

    def propose(self, space, history, *, rng):
        place = len(self.first_draws)
        self.first_draws.append(rng.uniform())
        self.lengths.append(len(history))
        rng.uniform(size=self.n_draws[place] if self.n_draws else 0)
        return parse_expression(self.proposals[place]) if place < len(self.proposals) else None


def run(evaluate, strategy, space, *, n_iter, seed=0, observe=None):
    return search(
        evaluate, strategy, space, n_samples=10, n_iter=n_iter, seed=seed, observe=observe
    )


def texts(result):
    return [str(evaluation.expression) for evaluation in result.history.evaluations]


def all_trees(leaves, operators, n_leaves):
    if n_leaves == 1:
        return list(leaves)
    return [
        Operation(operator, left, right)
        for n_left in range(1, n_leaves)
        for left in all_trees(leaves, operators, n_left)
        for right in all_trees(leaves, operators, n_leaves - n_left)
        for operator in operators
    ]


def test_the_fixed_design_comes_first_then_the_random_one_then_proposals(planted, make_space):
    script = Script(
        fixed=["SE[0]", "LIN[0]"], random=["PER[0]"], proposals=["RQ[0]", "SE[0] + LIN[0]"]
    )
    result = run(planted, script, make_space(), n_iter=2)
    assert texts(result) == ["SE[0]", "LIN[0]", "PER[0]", "RQ[0]", "SE[0] + LIN[0]"]
    phases = [trial.phase for trial in result.history]
    assert phases == [Phase.INITIAL] * 3 + [Phase.SEARCH] * 2
    # the random design sees how the fixed part went, each proposal all before it
    assert script.lengths == [2, 3, 4]


def test_what_was_known_helps_to_score_proposals_and_not_the_design(planted, make_space):
    given = []

    def evaluate(expression, known):
        given.append(known)
        return planted(expression, known)

    script = Script(fixed=["SE[0]", "LIN[0]"], random=["PER[0]"], proposals=["RQ[0]", "LIN[0]"])
    trials = run(evaluate, script, make_space(), n_iter=2).history.trials
    evaluations = [trial.evaluation for trial in trials]
    assert [list(known) for known in given] == [[], [], [], evaluations[:3], evaluations[:4]]


def test_what_is_known_is_left_out_of_the_random_design(planted, make_space):
    script = Script(
        fixed=["SE[0]", "SE[0] + LIN[0]"],
        random=["SE[0]", "LIN[0] + SE[0]", "RQ[0]", "PER[0]", "RQ[0]"],
    )
    result = run(planted, script, make_space(), n_iter=0)
    assert texts(result) == ["SE[0]", "SE[0] + LIN[0]", "RQ[0]", "PER[0]"]


@pytest.mark.parametrize("n_iter", [0, 1, 3])
def test_n_iter_counts_what_comes_after_the_design(planted, make_space, n_iter):
    script = Script(fixed=["SE[0]"], proposals=["RQ[0]", "LIN[0]", "PER[0]", "SE[0] * SE[0]"])
    result = run(planted, script, make_space(), n_iter=n_iter)
    assert len(result.history) == 1 + n_iter
    assert result.n_iter == n_iter
    assert result.stop_reason == "n_iter"


def test_a_strategy_without_proposal_ends_the_search(planted, make_space):
    script = Script(fixed=["SE[0]"], proposals=["RQ[0]"])
    result = run(planted, script, make_space(), n_iter=5)
    assert texts(result) == ["SE[0]", "RQ[0]"]
    assert result.n_iter == 1
    assert result.stop_reason is StopReason.EXHAUSTED
    assert result.stop_reason == "exhausted"


def test_failures_are_rows_and_do_not_end_the_search(make_evaluation, make_space):
    def fail_on_lin(expression, known):
        if "LIN" in expression.canonical:
            return make_evaluation(expression, -np.inf, status="no factor")
        return make_evaluation(expression, -float(expression.n_leaves))

    result = run(fail_on_lin, SOT(**SMALL), make_space(), n_iter=12)
    table = result.history.to_columns()
    assert len(result.history) == len(table["kernel"]) > 12
    assert result.stop_reason == "n_iter"
    failed = np.array(["LIN" in text for text in table["kernel"]])
    assert np.array_equal(np.isneginf(table["score"]), failed)
    assert failed.any()
    assert not failed.all()
    assert np.isfinite(result.history.best.score)


def test_a_search_in_which_everything_fails_goes_on(make_evaluation, make_space):
    result = run(
        lambda expression, known: make_evaluation(expression, -np.inf, status="no factor"),
        SOT(**SMALL),
        make_space(),
        n_iter=3,
    )
    assert result.n_iter == 3
    assert result.history.best.status == "no factor"


def test_the_observer_sees_every_trial_as_it_ends(planted, make_space):
    seen = []
    script = Script(fixed=["SE[0]"], random=["PER[0]"], proposals=["RQ[0]"])
    run(
        planted,
        script,
        make_space(),
        n_iter=1,
        observe=lambda history: seen.append(
            (len(history), str(history.evaluations[-1].expression))
        ),
    )
    assert seen == [(1, "SE[0]"), (2, "PER[0]"), (3, "RQ[0]")]


def test_seconds_add_up(planted, make_space):
    script = Script(fixed=["SE[0]"], random=["PER[0]"], proposals=["RQ[0]", "LIN[0]"])
    table = run(planted, script, make_space(), n_iter=2).history.to_columns()
    assert list(table["proposal_seconds"][:2]) == [0, 0]
    assert np.all(table["proposal_seconds"][2:] > 0)
    assert np.all(np.diff(table["elapsed"]) > 0)
    assert table["elapsed"][-1] > table["proposal_seconds"].sum()


def test_each_proposal_has_random_numbers_of_its_own(planted, make_space):
    proposals = ["RQ[0]", "LIN[0]", "PER[0]"]
    few = Script(fixed=["SE[0]"], proposals=proposals, n_draws=[0, 0, 0])
    many = Script(fixed=["SE[0]"], proposals=proposals, n_draws=[5, 1000, 1])
    run(planted, few, make_space(), n_iter=3)
    run(planted, many, make_space(), n_iter=3)
    # what one proposal draws does not shift the next
    assert few.first_draws == many.first_draws
    assert len(set(few.first_draws)) == 3
    other = Script(fixed=["SE[0]"], proposals=proposals)
    run(planted, other, make_space(), n_iter=3, seed=1)
    assert not set(other.first_draws) & set(few.first_draws)


def test_a_longer_search_begins_as_a_shorter_one(planted, make_space):
    short, long = (run(planted, SOT(**SMALL), make_space(2), n_iter=n, seed=4) for n in (3, 7))
    assert texts(long)[: len(short.history)] == texts(short)
    assert len(long.history) == len(short.history) + 4


def test_a_search_is_reproducible_and_differs_between_seeds(planted, make_space):
    first, again, other = (
        run(planted, SOT(**SMALL), make_space(2), n_iter=4, seed=seed) for seed in (4, 4, 5)
    )
    assert texts(first) == texts(again)
    assert texts(first) != texts(other)


def test_a_proposal_depends_on_the_history_alone(planted, make_evaluation, make_space):
    space, strategy = make_space(2), SOT(**SMALL)
    history = run(planted, strategy, space, n_iter=3).history
    rebuilt = History(
        history.n_samples,
        [
            Trial(
                make_evaluation(str(evaluation.expression), evaluation.score),
                Phase.INITIAL,
                proposal_seconds=9.0,
                elapsed=99.0,
            )
            for evaluation in history.evaluations
        ],
    )
    proposals = [
        s.propose(space, h, rng=np.random.default_rng(8))
        for s, h in ((strategy, history), (SOT(**SMALL), rebuilt), (strategy, history))
    ]
    assert proposals[0] == proposals[1] == proposals[2]


@pytest.mark.parametrize(
    ("base_kernels", "operators", "max_leaves", "n_expected"),
    [
        (("SE",), ("+",), 1, 1),
        (("SE", "LIN"), ("+", "*"), 2, 8),
        (("SE", "LIN"), ("+", "*"), 3, 28),
        (("SE", "PER"), ("*",), 4, 14),
    ],
)
def test_a_tiny_space_is_evaluated_exactly_once_and_then_exhausted(
    planted, make_space, base_kernels, operators, max_leaves, n_expected
):
    space = make_space(1, base_kernels=base_kernels, operators=operators, max_leaves=max_leaves)
    everything = {
        tree.canonical
        for n_leaves in range(1, max_leaves + 1)
        for tree in all_trees(space.grammar.leaves, operators, n_leaves)
    }
    assert len(everything) == n_expected
    result = run(planted, SOT(**SMALL), space, n_iter=100)
    canonical = [e.expression.canonical for e in result.history.evaluations]
    assert sorted(canonical) == sorted(everything)
    assert result.stop_reason == "exhausted"
    assert result.n_iter < 100


def test_no_canonical_text_is_evaluated_twice(planted, make_space):
    result = run(planted, SOT(**SMALL), make_space(1, base_kernels=("SE", "PER")), n_iter=40)
    canonical = [e.expression.canonical for e in result.history.evaluations]
    assert len(canonical) == len(set(canonical)) > 40


def test_a_real_search_finds_a_wave_on_a_trend(make_space):
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 30)
    y = np.sin(2 * np.pi * x / 0.16) + 2 * x + 0.1 * rng.normal(size=30)
    y = (y - y.mean()) / y.std()
    evaluate = Evaluator(x[:, None], y, priors=check_priors("paper"), seed=0)
    strategy = SOT(population_size=20, initial_design="paper")
    result = run(evaluate, strategy, make_space(max_leaves=4), n_iter=3)
    assert "PER[0]" in str(result.history.best.expression)
    alone = {e.expression.canonical: e.score for e in result.history.evaluations}
    # no base kernel explains both: tens of nats, far beyond the optimiser's tolerance
    assert result.history.best.score > max(alone["SE[0]"], alone["PER[0]"], alone["LIN[0]"]) + 10
    assert {e.status for e in result.history.evaluations} == {"ok"}


def test_the_search_does_not_depend_on_the_hash_seed():
    outputs = outputs_under_two_hash_seeds(SEARCH_AND_PRINT)
    assert len(outputs) == 1
    assert "SE[0]" in outputs.pop()
