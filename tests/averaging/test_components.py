"""The components of a mixture."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autokernel import PosteriorAveraging, Stacking
from autokernel.model import AVERAGES
from autokernel.model.averaging import choose_components
from tests.averaging.kernels import believed, text_of
from tests.batteries import seeds


def weights_by_kernel(components):
    found = {}
    for component in components:
        text = str(component.expression)
        found[text] = found.get(text, 0.0) + component.weight
    return found


@given(
    seed=seeds,
    n=st.integers(1, 40),
    n_kernels=st.integers(1, 6),
    n_draws=st.sampled_from([1, 3, 100]),
)
def test_weights_sum_to_one_and_kernels_have_theirs(seed, n, n_kernels, n_draws):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(n_kernels, 0.7))
    kernels = [
        believed(number, weight, rng.normal(size=n_draws)) for number, weight in enumerate(weights)
    ]
    components = choose_components(kernels, weights, n)
    assert sum(one.weight for one in components) == pytest.approx(1.0, rel=1e-12)
    assert 1 <= len(components) <= n
    found = weights_by_kernel(components)
    for number, weight in enumerate(weights):
        # less than one draw too many or too few; weights are summed in another order
        assert abs(found.get(text_of(number), 0.0) - weight) < (1 + 1e-9) / n
    # each component is a draw of its kernel
    draws = {str(kernel.evaluation.expression): kernel.draws for kernel in kernels}
    for one in components:
        assert (draws[str(one.expression)] == one.theta).all(axis=1).any()


def test_draws_of_a_kernel_are_taken_evenly():
    (first, *_), components = _one_kernel(n=4)
    assert [one.weight for one in components] == [0.25] * 4
    assert [one.theta[0] for one in components] == [12.0, 37.0, 62.0, 87.0]
    assert first == 0.0


def _one_kernel(*, n):
    draws = np.arange(100.0)
    return draws, choose_components([believed(0, 1.0, draws)], np.ones(1), n)


def test_equal_draws_become_one_component_with_the_weight_of_all():
    kernels = [believed(0, 0.5, [1.0, 1.0, 1.0, 2.0]), believed(1, 0.5, [1.0])]
    components = choose_components(kernels, np.array([0.5, 0.5]), 8)
    assert [(str(one.expression), one.theta[0], one.weight) for one in components] == [
        (text_of(0), 1.0, 3 / 8),
        (text_of(0), 2.0, 1 / 8),
        (text_of(1), 1.0, 1 / 2),  # the same numbers for another kernel
    ]


def test_components_of_one_kernel_stand_together():
    draws = np.random.default_rng(0).integers(0, 3, size=50)
    kernels = [believed(number, 1 / 3, draws) for number in range(3)]
    components = choose_components(kernels, np.full(3, 1 / 3), 30)
    texts = [str(one.expression) for one in components]
    assert texts == sorted(texts, key=[text_of(number) for number in range(3)].index)
    assert len({(text, one.theta[0]) for text, one in zip(texts, components, strict=True)}) == 9


def test_weights_that_differ_from_the_probabilities_are_followed():
    kernels = [believed(0, 0.9, [1.0, 2.0]), believed(1, 0.1, [3.0])]
    components = choose_components(kernels, np.array([0.25, 0.75]), 8)
    assert weights_by_kernel(components) == {text_of(0): 0.25, text_of(1): 0.75}


def test_kernels_may_have_different_numbers_of_draws():
    kernels = [believed(0, 0.5, np.arange(100.0)), believed(1, 0.5, [7.0])]
    components = choose_components(kernels, np.array([0.5, 0.5]), 8)
    assert [one.weight for one in components] == [1 / 8] * 4 + [1 / 2]


def test_a_kernel_without_weight_is_left_out():
    kernels = [believed(number, 1 / 3, [1.0, 2.0]) for number in range(3)]
    components = choose_components(kernels, np.array([0.5, 0.0, 0.5]), 16)
    assert set(weights_by_kernel(components)) == {text_of(0), text_of(2)}


@pytest.mark.parametrize("n_components", [1, 3, 8, 20])
def test_averaging_by_the_posterior_takes_so_many_draws_by_probability(n_components):
    kernels = [believed(0, 0.75, np.arange(60.0)), believed(1, 0.25, np.arange(60.0))]
    averaging = PosteriorAveraging(n_components=n_components)
    np.testing.assert_array_equal(averaging.weights(None, kernels), [0.75, 0.25])
    components = averaging.components(None, kernels)
    assert len(components) == n_components
    found = weights_by_kernel(components)
    assert abs(found.get(text_of(1), 0.0) - 0.25) < 1 / n_components


@pytest.mark.parametrize("kind", [PosteriorAveraging, Stacking])
def test_averages_have_names_and_parameters(kind):
    assert kind in AVERAGES.values()
    assert kind().get_params() == {"n_components": 8}
    assert kind(n_components=3).set_params(n_components=5).n_components == 5
