"""Random expressions for the tests of the surrogate."""

from collections.abc import Callable

import numpy as np
import pytest

from autokernel.expression import Expression, Grammar


@pytest.fixture(scope="session")
def random_expressions() -> Callable[..., list[Expression]]:
    """Build n expressions on ``n_features`` columns, walks of up to seven steps."""

    def build(n: int, *, n_features: int, seed: int) -> list[Expression]:
        columns = tuple(range(n_features))
        grammar = Grammar(("SE", "LIN", "PER", "RQ"), ("+", "*"), columns, max_leaves=8)
        rng = np.random.default_rng(seed)
        bases = grammar.leaves
        return [
            grammar.random_walk(bases[place % len(bases)], int(rng.integers(8)), rng)
            for place in range(n)
        ]

    return build
