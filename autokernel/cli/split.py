"""Rows to train on, and rows to test on."""

from dataclasses import dataclass

import numpy as np

from autokernel.cli.table import Table
from autokernel.typing import IntArray

_TEST_SHARE = 0.1


@dataclass(frozen=True, slots=True, eq=False)  # eq=False: the fields are arrays
class Split:
    """Rows to train on, and rows to test on."""

    train: IntArray
    test: IntArray
    words: str  # description of the split for the user


def split_rows(table: Table, random_state: int) -> Split:
    """Keep back a tenth for testing: the last rows of a series, random rows of several columns."""
    n_samples = len(table.y)
    n_test = max(1, round(_TEST_SHARE * n_samples))
    if len(table.feature_names) == 1:
        order = np.argsort(table.X.values[:, 0], kind="stable")
        how = f"the last {n_test} to predict"
    else:
        order = np.random.default_rng(random_state).permutation(n_samples)
        how = f"{n_test} drawn at random to predict"
    train, test = np.split(order, [n_samples - n_test])
    return Split(train, test, f"{len(train)} rows to train on, {how}: {table.target_name}.")
