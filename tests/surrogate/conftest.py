"""Random expressions for the tests of the surrogate."""

from collections.abc import Callable

import numpy as np
import pytest

from autokernel.expression import Expression, Grammar
from autokernel.kernels import ADD, FEW_COLUMNS, MULTIPLY


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
