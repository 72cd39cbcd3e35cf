"""Cheap stand-ins for evaluated kernels, and tasks."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.deadline import NEVER, Deadline
from autokernel.evidence import Evaluation
from autokernel.expression import Expression, Grammar, Operation
from autokernel.kernels import ADD, BASE_KERNELS, FEW_COLUMNS, MULTIPLY, OPERATORS
from autokernel.search import (
    BOMS,
    SKC,
    SOT,
    STRATEGIES,
    Arc,
    Design,
    Greedy,
    History,
    Phase,
    RandomWalks,
    Search,
    StopReason,
    Strategy,
    Task,
    TreeGEP,
    Trial,
)
from autokernel.search.design import Grown
from tests.fits import evaluation_of

EVERY_BASE = ("SE", "LIN", "PER", "RQ")

QUICK: Mapping[str, Strategy] = {
    "sot": SOT(population_size=20, n_generations=2),
    "boms": BOMS(n_walks=3, n_neighbours=6, n_candidates=20),
    "greedy": Greedy(),
    "skc": SKC(),
    "tree_gep": TreeGEP(population_size=6, reproduction=0.4, tournament=0.5),
    "random": RandomWalks(),
    "arc": Arc(population_size=20, n_generations=2),
}

Evaluate = Callable[[Expression, Sequence[Evaluation]], Evaluation | None]


class Script(Strategy):
    """Follows a script; notes what it was given."""

    def __init__(self, *, fixed=(), grown=(), size=None, proposals=(), n_draws=()):
        self.fixed = fixed
        self.grown = grown
        self.size = size
        self.proposals = proposals
        self.n_draws = n_draws
        self.first_draws = []
        self.lengths = []

    def design(self, task, *, rng):
        fixed = tuple(parse_expression(text) for text in self.fixed)
        grown = [parse_expression(text) for text in self.grown]
        columns = tuple(Grown(expression, expression.leaves[0].column) for expression in grown)
        size = len(fixed) + len(grown) if self.size is None else self.size
        return Design(fixed, columns, size, fixed[0] if fixed else None)

    def propose(self, task, history, *, n_proposals, rng):
        number = len(self.first_draws)
        self.first_draws.append(rng.uniform())
        self.lengths.append(len(history))
        rng.uniform(size=self.n_draws[number] if self.n_draws else 0)
        start = history.n_searched
        return [parse_expression(text) for text in self.proposals[start : start + n_proposals]]


class Finished(NamedTuple):
    """What a search leaves."""

    history: History
    stop_reason: StopReason

    @property
    def texts(self) -> list[str]:
        """Kernels in the order of their evaluation."""
        return [str(evaluation.expression) for evaluation in self.history.evaluations]

    @property
    def unpruned(self) -> History:
        """The history without the trials of pruning."""
        trials = [trial for trial in self.history if trial.phase is not Phase.PRUNING]
        return History(self.history.n_samples, trials)


def _make_evaluation(
    expression: str | Expression,
    score: float,
    *,
    status: str = "ok",
    lengthscales: Mapping[int, float] | None = None,
) -> Evaluation:
    if isinstance(expression, str):
        expression = parse_expression(expression)
    theta = [
        np.log((lengthscales or {}).get(leaf.column, 1.0))
        if parameter.name == "lengthscale"
        else 0.0
        for leaf in expression.leaves
        for parameter in leaf.parameters
    ]
    theta = np.array([*theta, -5.0])
    return evaluation_of(expression, theta, score=score, status=status, seconds=0.25)


@pytest.fixture(scope="session")
def make_evaluation() -> Callable[..., Evaluation]:
    """Build an evaluation with a given score and, per column, lengthscales."""
    return _make_evaluation


@pytest.fixture(scope="session")
def make_history() -> Callable[..., History]:
    """Build the history of pairs of a kernel, maybe as a text, and a score; design first."""

    def build(
        *rows: tuple[str | Expression, float], n_design: int = 2, n_samples: int = 10
    ) -> History:
        trials = [
            Trial(
                _make_evaluation(kernel, score, status="ok" if np.isfinite(score) else "no factor"),
                Phase.INITIAL if number < n_design else Phase.SEARCH,
                proposal_seconds=0.5 * number,
                elapsed=1.0 + number,
                start=max(0, number - n_design),
            )
            for number, (kernel, score) in enumerate(rows)
        ]
        return History(n_samples, trials)

    return build


@pytest.fixture(scope="session")
def make_task() -> Callable[..., Task]:
    """Build a task on a number of columns."""

    def build(
        n_features: int = 1,
        *,
        base_kernels: tuple[str, ...] = EVERY_BASE,
        operators: tuple[str, ...] = ("+", "*"),
        max_leaves: int = 8,
        columns: tuple[int, ...] | None = None,
        allowed: tuple[str, ...] | None = None,
    ) -> Task:
        columns = tuple(range(n_features)) if columns is None else columns
        kernels = tuple(BASE_KERNELS[name] for name in base_kernels)
        joining = tuple(OPERATORS[symbol] for symbol in operators)
        grammar = Grammar(kernels, joining, columns, max_leaves)
        X = np.random.default_rng(0).uniform(size=(25, n_features))
        return Task(grammar, tuple(BASE_KERNELS[name] for name in allowed or base_kernels), X)

    return build


@pytest.fixture(scope="session")
def random_expressions() -> Callable[..., list[Expression]]:
    """Build n expressions on ``n_features`` columns, walks of up to seven steps."""

    def build(n: int, *, n_features: int, seed: int) -> list[Expression]:
        columns = tuple(range(n_features))
        grammar = Grammar(FEW_COLUMNS, (ADD, MULTIPLY), columns, max_leaves=8)
        rng = np.random.default_rng(seed)
        bases = grammar.leaves
        return [
            grammar.random_walk(bases[number % len(bases)], int(rng.integers(8)), rng)
            for number in range(n)
        ]

    return build


@pytest.fixture(scope="session")
def quick() -> Mapping[str, Strategy]:
    """Each strategy by name, at sizes at which a search takes a moment."""
    return QUICK


@pytest.fixture(scope="session", params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> Strategy:
    """Each strategy in turn."""
    return QUICK[request.param]


@pytest.fixture(
    scope="session", params=[name for name in STRATEGIES if name not in {"greedy", "skc"}]
)
def tireless(request: pytest.FixtureRequest) -> Strategy:
    """Each strategy that goes on while there is a kernel left."""
    return QUICK[request.param]


@pytest.fixture(scope="session")
def every_kernel() -> Callable[[Grammar], list[str]]:
    """List the canonical texts of all kernels of a small grammar."""

    def trees(grammar: Grammar, n_leaves: int) -> list[Expression]:
        if n_leaves == 1:
            return list(grammar.leaves)
        return [
            Operation(operator, left, right)
            for n_left in range(1, n_leaves)
            for left in trees(grammar, n_left)
            for right in trees(grammar, n_leaves - n_left)
            for operator in grammar.operators
        ]

    def texts(grammar: Grammar) -> list[str]:
        sizes = range(1, grammar.max_leaves + 1)
        return list(dict.fromkeys(e.canonical for n in sizes for e in trees(grammar, n)))

    return texts


@pytest.fixture(scope="session")
def planted() -> Callable[[Expression, Sequence[Evaluation]], Evaluation]:
    """Score kernels by what their text holds, in the size of nats for ten samples."""

    def evaluate(expression: Expression, known: Sequence[Evaluation]) -> Evaluation:
        text = expression.canonical
        score = 3.0 * ("PER" in text) + 2.0 * ("+" in text) - 0.7 * expression.n_leaves
        return _make_evaluation(expression, score)

    return evaluate


@pytest.fixture(scope="session")
def make_script() -> type[Script]:
    """Build a strategy that proposes what it was told to."""
    return Script


@pytest.fixture(scope="session")
def run() -> Callable[..., Finished]:
    """Search with what scores one kernel, from a history on."""

    def search(
        evaluate: Evaluate,
        strategy: Strategy,
        task: Task,
        *,
        n_iter: int,
        history: History | None = None,
        seed: int = 0,
        deadline: Deadline = NEVER,
        **settings: object,
    ) -> Finished:
        def evaluate_all(expressions, known):
            for expression in expressions:
                yield evaluate(expression, known)

        history = History(10) if history is None else history
        observer = settings.pop("observer", None)
        one = Search(strategy, task, history, n_iter=n_iter, seed=seed, **settings)
        return Finished(history, one.run(evaluate_all, deadline=deadline, observer=observer))

    return search
