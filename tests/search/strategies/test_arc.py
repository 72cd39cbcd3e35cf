import numpy as np
import pytest

from autokernel.kernels import ADD
from autokernel.search import SOT, Arc
from autokernel.search.distances import level_distances


def test_expressions_are_compared_position_by_position(make_task):
    task = make_task(4, columns=(0, 2))
    expressions = task.grammar.random_walks(8, np.random.default_rng(0))
    np.testing.assert_array_equal(
        Arc().kernel_kernel(task).distances(expressions), level_distances(expressions, n_features=4)
    )


def test_all_but_the_kernel_between_expressions_is_as_in_sot():
    assert Arc().get_params() == SOT().get_params()
    assert Arc.propose is SOT.propose
    assert Arc.design is SOT.design


@pytest.mark.parametrize("seed", range(3))
def test_it_prefers_trees_that_resemble_the_best(make_task, make_history, seed):
    # what counts is the root: sums are good, products are bad
    rows = [("SE[0]", -30.0), ("LIN[0]", -31.0), ("PER[0]", -29.0), ("RQ[0]", -30.0)]
    for one, other in (("SE", "LIN"), ("SE", "PER"), ("LIN", "PER"), ("RQ", "SE"), ("RQ", "PER")):
        rows += [(f"{one}[0] + {other}[0]", -5.0), (f"{one}[0] * {other}[0]", -60.0)]
    history = make_history(*rows)
    proposals = Arc().propose(make_task(), history, n_proposals=4, rng=np.random.default_rng(seed))
    assert all(e.operator == ADD for e in proposals)
