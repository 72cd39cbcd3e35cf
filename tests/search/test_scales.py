"""Searches on a scale of the target: they climb as on the numbers of that scale."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.data import Columns, RowNoise, Target
from autokernel.evidence import Evaluator
from autokernel.expression import IDENTITY, Grammar
from autokernel.inference import TrainingData
from autokernel.kernels import BASE_KERNELS, OPERATORS, PRESETS
from autokernel.search import Task
from tests.fits import small

INVERSES = {
    "log": np.exp,
    "sqrt": lambda z: (z + 9) ** 2,
    "logit": lambda z: 1 / (1 + np.exp(-z)),
}
"""By scale, targets that are ``z`` or ``z + 9`` on it, and so equal once standardised."""

OPERATIONS = {"sums": ["+"], "products": ["*"], "both": ["+", "*"], "CP": ["CP"], "CW": ["CW"]}
KERNELS = ["SE", "LIN"]


def table(n_columns, *, n=16):
    """A trend and a wave along the first column, and a line along each of the others."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(n), *rng.uniform(size=(n_columns - 1, n))])
    z = X[:, 0] / n + 0.5 * np.sin(X[:, 0]) + X[:, 1:].sum(axis=1)
    return X, z + 0.02 * rng.normal(size=n)


def plain(kernel):
    """The text of a kernel without its scale of the target."""
    return str(kernel).rpartition(" ~ ")[2]


@cache
def fitted(scale, n_columns, kernel):
    """Standardise the table, and fit a kernel to it."""
    X, z = table(n_columns)
    y, noise = INVERSES.get(scale, np.array)(z), RowNoise(np.ones(len(z)))
    columns, target = Columns.of_names(None, n_columns).of_rows(X), Target.of(y, noise)
    data = TrainingData(columns.inputs(X, first_row=0), target.forward(y), noise, target)
    evaluator = Evaluator(data, priors=PRESETS["default"], seed=0)
    return evaluator, evaluator(parse_expression(kernel).on(scale))


@cache
def gains(scale, n_columns, operations, kernel):
    """Estimate by how many nats each kernel one operation away is better."""
    evaluator, fit = fitted(scale, n_columns, kernel)
    base_kernels = tuple(BASE_KERNELS[name] for name in KERNELS)
    operators = tuple(OPERATORS[symbol] for symbol in OPERATIONS[operations])
    columns = tuple(range(n_columns))
    grammar = Grammar(base_kernels, operators, columns, 4, reduces=True, targets=(scale,))
    task = Task(grammar, evaluator)
    found = task.neighbours(fit, task.near(fit.expression).keys())
    return {plain(one.expression): one.score - fit.score for one in found}


SLOW = pytest.mark.slow
PARENTS = ["SE[0]", "LIN[0]", "LIN[0] * SE[0] + SE[0]"]
QUICK_PARENTS = [("log", name, 2, "SE[0]") for name in OPERATIONS]
QUICK_PARENTS += [(scale, "both", 1, "SE[0]") for scale in INVERSES]


@pytest.mark.parametrize(
    ("scale", "operations", "n_columns", "kernel"),
    [
        pytest.param(*one, marks=() if one in QUICK_PARENTS else SLOW)
        for one in product(INVERSES, OPERATIONS, (1, 2, 3), PARENTS)
    ],
)
def test_neighbours_gain_what_they_gain_on_the_numbers_of_the_scale(
    scale, operations, n_columns, kernel
):
    found = gains(scale, n_columns, operations, kernel)
    expected = gains(IDENTITY, n_columns, operations, kernel)
    assert found.keys() == expected.keys()
    # mostly to 1e-5 nats, but the twelve steps of a window of which the rows know little may differ
    assert found == pytest.approx(expected, abs=0.5)


STRATEGIES = ("sot", "arc", "greedy", "skc", "series")
QUICK_CLIMBS = {("sot", 2, "sums"), ("greedy", 1, "both"), ("series", 2, "sums")}


@cache
def climbed(strategy, scale, n_columns, operations):
    """Search as long as there are steps; return their number and the gain over noise."""
    X, z = table(n_columns)
    is_series = strategy == "series"
    model = small(
        strategy=strategy,
        target_scale=None if scale == IDENTITY else scale,
        operators=["+", *set(operations) - {"+"}] if is_series else list(operations),
        base_kernels="auto" if is_series else KERNELS,
        max_leaves=6 if is_series else 2,
        structure_prior=0.0,
        noise="constant",
        averaging=None,
        n_iter=60,
    ).fit(X, INVERSES.get(scale, np.array)(z))
    scores = dict(
        zip(
            map(plain, model.search_history_["kernel"]), model.search_history_["score"], strict=True
        )
    )
    return model.n_iter_, max(scores.values()) - scores["NOISE"]


@pytest.mark.parametrize(
    "scale", ["log", *(pytest.param(o, marks=SLOW) for o in ("sqrt", "logit"))]
)
@pytest.mark.parametrize(
    ("strategy", "n_columns", "operations"),
    [
        pytest.param(*climb, marks=() if climb in QUICK_CLIMBS else SLOW)
        for climb in product(STRATEGIES, (1, 2, 3), OPERATIONS)
        if climb[:2] != ("series", 1)  # whose kernels of time are all in the design
    ],
)
def test_a_search_climbs_as_high_as_on_the_numbers_of_the_scale(
    strategy, n_columns, operations, scale
):
    operations = tuple(OPERATIONS[operations])
    n_steps, gain = climbed(strategy, scale, n_columns, operations)
    n_expected, expected = climbed(strategy, IDENTITY, n_columns, operations)
    assert (n_steps > 0) == (n_expected > 0)
    # two climbs may part where two steps gain the same, and meet again; the random starts of a
    # window depend on the text of the kernel, which has the scale, and may find a higher mode
    most = np.inf if "CW" in operations else expected + 0.5
    assert expected - 0.5 < gain < most
