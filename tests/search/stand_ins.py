"""Cheap stand-ins for evaluated kernels, tasks, and searches that note what happens in them."""

from zlib import crc32

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.deadline import NEVER
from autokernel.evidence import Estimate, Evaluator
from autokernel.expression import Grammar
from autokernel.inference import TrainingData
from autokernel.kernels import ADD, BASE_KERNELS, FEW_COLUMNS, MULTIPLY, OPERATORS, PRESETS
from autokernel.search import (
    BOMS,
    SKC,
    SOT,
    Arc,
    ExpectedImprovement,
    Greedy,
    History,
    Phase,
    RandomWalks,
    Search,
    Strategy,
    Task,
    TreeGEP,
    Trial,
)
from autokernel.search.distances import SOTKernel
from autokernel.search.methods.arc import ArcKernel
from autokernel.search.methods.boms import HellingerKernel
from tests.batteries import every_tree
from tests.fits import evaluation_of

EVERY_BASE = ("SE", "LIN", "PER", "RQ")
BAYESIAN = ("sot", "boms", "arc")

# each strategy at sizes at which a search takes a moment
QUICK = {
    "sot": SOT(population_size=20),
    "boms": BOMS(n_walks=2, n_neighbours=4, n_candidates=10),
    "greedy": Greedy(),
    "skc": SKC(),
    "tree_gep": TreeGEP(population_size=6, reproduction=0.4, tournament=0.5),
    "random": RandomWalks(),
    "arc": Arc(population_size=20),
}
every_strategy = pytest.mark.parametrize("strategy", QUICK.values(), ids=QUICK)
every_bayesian = pytest.mark.parametrize("name", BAYESIAN)


class Script(Strategy):
    """Follows a script; notes what it was given."""

    def __init__(self, *, fixed=(), proposals=(), n_draws=()):
        self.fixed = fixed
        self.proposals = proposals
        self.n_draws = n_draws
        self.first_draws = []
        self.shown = []  # texts of the kernels in the history of each proposal

    def design(self, task, *, rng):
        return tuple(map(parse_expression, self.fixed))

    def propose(self, task, history, *, n_proposals, rng):
        number = len(self.first_draws)
        self.first_draws.append(rng.uniform())
        self.shown.append(texts(one.expression for one in history.evaluations))
        rng.uniform(size=self.n_draws[number] if self.n_draws else 0)
        start = history.n_searched
        return [parse_expression(text) for text in self.proposals[start : start + n_proposals]]


class Diary:
    """An observer that writes down what it hears, and may do something after some trials."""

    def __init__(self, n_trials=None, act=lambda: True):
        self.n_trials, self.act = n_trials, act
        self.lines = []

    def begin(self, phase):
        self.lines.append(f"begin {phase}")

    def end(self, history):
        self.lines.append(f"end {len(history)}")
        return bool(len(history) == self.n_trials and self.act())

    def abandon(self):
        self.lines.append("abandon")


class Noting(ExpectedImprovement):
    """Expected improvement that remembers what it was given, and the values that it gave."""

    def __init__(self):
        self.beliefs, self.found = [], []

    def values(self, belief):
        self.beliefs.append(belief)
        improvement = super().values(belief)

        def values(expressions):
            found = improvement(expressions)
            self.found.extend(zip(expressions, found, strict=True))
            return found

        return values


def planted(expression):
    """Score a kernel by what its text holds, in the size of nats for ten samples."""
    text = expression.canonical
    return 3.0 * ("PER" in text) + 2.0 * ("+" in text) - 0.7 * expression.n_leaves


def rough(expression, what=""):
    """Return a normal random number that is always the same for a kernel."""
    return np.random.default_rng(crc32(f"{what}{expression.canonical}".encode())).normal()


def landscape(heights, *, sea=-1.0):
    """Score some kernels by their texts, and the others lower the larger they are."""
    return lambda expression: heights.get(expression.canonical, sea - expression.n_leaves)


class Laboratory:
    """Searches in which a function scores kernels, with None where time does not suffice."""

    def __init__(self, strategy, task, score=planted):
        self.strategy, self.task, self.score = strategy, task, score
        self.history = History(10)
        self.reason = self.expected_improvement = None
        self.fits = []  # the text of each kernel, and the texts of what was known
        self.seconds = []  # until the deadline of each round
        self.rounds = []  # texts of the kernels that were evaluated together
        self.generators = []

    def search(self, *, deadline=NEVER, observer=None, **settings):
        """Search from the beginning."""
        given = {"n_iter": 0, "seed": 0, **settings}
        search = Search(self.strategy, self.task, self.history, **given)
        self.reason = search.run(self._evaluate_all, deadline=deadline, observer=observer)
        self.expected_improvement = search.expected_improvement
        return self

    def _evaluate_all(self, kernels, known, deadline):
        expressions = [one.expression for one in kernels]
        self.seconds.append(deadline.seconds_left)
        self.rounds.append(texts(expressions))
        self.generators.append(self._evaluate(expressions, known))
        return self.generators[-1]

    def _evaluate(self, expressions, known):
        for expression in expressions:
            self.fits.append((str(expression), texts(one.expression for one in known)))
            score = self.score(expression)
            yield None if score is None else fit_of(expression, score)

    @property
    def trials(self):
        """What was evaluated, in order, and in which phase."""
        return [(str(trial.evaluation.expression), trial.phase) for trial in self.history]

    def texts_of(self, *phases):
        """Texts of the kernels of some phases, by default of all."""
        return [text for text, phase in self.trials if not phases or phase in phases]


def texts(expressions):
    """Texts of expressions."""
    return [str(expression) for expression in expressions]


def fit_of(kernel, score):
    """Build an evaluation with a score."""
    expression = parse_expression(kernel) if isinstance(kernel, str) else kernel
    theta = np.zeros(1 + sum(len(leaf.parameters) for leaf in expression.leaves))
    theta[-1] = -5.0
    status = "ok" if np.isfinite(score) else "no factor"
    return evaluation_of(expression, theta, score=score, status=status, seconds=0.25)


def history_of(*rows, n_design=2):
    """Build the history, of ten samples, of pairs of a kernel and a score; the design first."""
    trials = [
        Trial(
            fit := fit_of(kernel, score),
            Estimate(fit.expression),
            Phase.INITIAL if number < n_design else Phase.SEARCH,
            proposal_seconds=0.5 * number,
            elapsed=1.0 + number,
            start=max(0, number - n_design),
        )
        for number, (kernel, score) in enumerate(rows)
    ]
    return History(10, trials)


class Guesses(Evaluator):
    """An evaluator with a function that estimates the scores of neighbours, if there is one."""

    def __init__(self, X, estimate):
        super().__init__(TrainingData(X, np.zeros(len(X))), priors=PRESETS["default"], seed=0)
        self.estimate = estimate

    def estimate_changes(self, fit, changed, deadline):
        deadline.check()
        near = {e.canonical: e for e in changed if self.estimate}
        near.pop(fit.expression.canonical, None)
        found = (Estimate(one, self.estimate(one)) for one in near.values())
        return sorted(found, key=lambda one: -one.score)


def task_of(
    n_features=1,
    *,
    base_kernels=EVERY_BASE,
    operators=("+", "*"),
    max_leaves=8,
    columns=None,
    reduces=False,
    estimate=None,
    tol=0.05,
):
    """Build a task on a number of columns; a function estimates the scores of neighbours."""
    grammar = Grammar(
        tuple(BASE_KERNELS[name] for name in base_kernels),
        tuple(OPERATORS[symbol] for symbol in operators),
        tuple(range(n_features)) if columns is None else columns,
        max_leaves,
        reduces=reduces,
    )
    X = np.random.default_rng(0).uniform(size=(12, n_features))
    return Task(grammar, Guesses(X, estimate), tol=tol)


def proposed(strategy, task, history, n_proposals=1, *, seed=0):
    """Let a strategy propose."""
    rng = np.random.default_rng(seed)
    found = strategy.propose(task, history, n_proposals=n_proposals, rng=rng)
    return [one.expression if isinstance(one, Estimate) else one for one in found]


def walks_of(n, *, n_features, seed):
    """Build n expressions, walks of up to seven steps."""
    columns = tuple(range(n_features))
    grammar = Grammar(FEW_COLUMNS, (ADD, MULTIPLY), columns, max_leaves=8)
    rng = np.random.default_rng(seed)
    bases = grammar.leaves
    return [
        grammar.random_walk(bases[number % len(bases)], int(rng.integers(8)), rng)
        for number in range(n)
    ]


def distinct_walks(n, *, n_walks, n_features=2):
    """Build n expressions that differ, out of so many walks."""
    return list(dict.fromkeys(walks_of(n_walks, n_features=n_features, seed=0)))[:n]


def kernel_kernels(X):
    """Build the kernel between expressions of each strategy that has one."""
    hellinger = HellingerKernel(TrainingData(X, np.zeros(len(X))), {})
    return {"sot": SOTKernel(), "hellinger": hellinger, "arc": ArcKernel()}


def every_kernel(grammar):
    """List all kernels of a small grammar, one for each canonical text."""
    sizes = range(1, grammar.max_leaves + 1)
    return list({e.canonical: e for n in sizes for e in every_tree(grammar, n)}.values())
