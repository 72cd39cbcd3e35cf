"""Parameters of the strategies: what is valid, and what is said of the rest."""

import pytest
from sklearn.base import clone

from autokernel.search import BOMS, SOT, STRATEGIES, Arc, TreeGEP

WITH_DESIGN = [name for name in STRATEGIES if name not in {"greedy", "skc"}]  # with their own


@pytest.mark.parametrize("name", STRATEGIES)
def test_it_can_be_made_by_name_and_cloned(name):
    strategy = STRATEGIES[name]()
    strategy._validate_params()
    copy = clone(strategy)
    assert copy is not strategy
    assert copy.get_params() == strategy.get_params()
    # nothing goes unchecked
    assert set(strategy._parameter_constraints) == set(strategy.get_params())


@pytest.mark.parametrize(
    ("strategy", "names"),
    [
        (SOT, ["population_size", "n_offspring", "n_generations"]),
        (Arc, ["population_size", "n_offspring", "n_generations"]),
        (BOMS, ["n_walks", "n_neighbours", "n_candidates"]),
        (TreeGEP, ["max_depth"]),
    ],
)
@pytest.mark.parametrize("value", [0, -3, 2.0, "many", None])
def test_sizes_that_are_no_positive_integers_are_errors(strategy, names, value):
    for name in names:
        expected = (
            rf"'{name}' parameter of {strategy.__name__} must be "
            rf".*an int in the range \[1, inf\).*{value!r}"
        )
        with pytest.raises(ValueError, match=expected):
            strategy(**{name: value})._validate_params()


@pytest.mark.parametrize(
    ("name", "value", "interval"),
    [
        ("population_size", 1, r"int in the range \[2, inf\)"),
        ("reproduction", 1.0, r"float in the range \[0.0, 1.0\)"),
        ("reproduction", -0.1, r"float in the range \[0.0, 1.0\)"),
        ("mutation", 1.1, r"float in the range \[0.0, 1.0\]"),
        ("mutation", "often", r"float in the range \[0.0, 1.0\]"),
        ("tournament", 0, r"float in the range \(0.0, 1.0\]"),
        ("tournament", None, r"float in the range \(0.0, 1.0\]"),
    ],
)
def test_parts_of_a_population_have_their_ranges(name, value, interval):
    expected = rf"'{name}' parameter of TreeGEP must be an? {interval}. Got {value!r}"
    with pytest.raises(ValueError, match=expected):
        TreeGEP(**{name: value})._validate_params()


@pytest.mark.parametrize("name", WITH_DESIGN)
@pytest.mark.parametrize("design", ["large", None, 3])
def test_an_unknown_initial_design_is_an_error_that_lists_the_known_ones(name, design):
    known = r"\{('default', 'paper'|'paper', 'default')\}"
    with pytest.raises(ValueError, match=rf"'initial_design' .* among {known}. Got {design!r}"):
        STRATEGIES[name](initial_design=design)._validate_params()
