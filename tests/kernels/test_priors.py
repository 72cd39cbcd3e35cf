import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gamma

from autokernel.kernels import (
    ALPHA,
    BASE_KERNELS,
    LENGTHSCALE,
    NOISE_VARIANCE,
    OFFSET,
    OPERATORS,
    PERIOD,
    PRESETS,
    VARIANCE,
    LogGammaPrior,
    check_priors,
)
from tests.batteries import numerical_gradient, seeds

PARAMETERS = (LENGTHSCALE, VARIANCE, PERIOD, OFFSET, ALPHA, NOISE_VARIANCE)
NAMES = tuple(parameter.name for parameter in PARAMETERS)
PUBLISHED = {
    "lengthscale": (2, 2),
    "variance": (2, 3),
    "period": (2, 2),
    "offset": (2, 3),
    "alpha": (2, 2),
    "noise_variance": (1, 100),
}
shapes_and_rates = st.tuples(st.floats(0.5, 20), st.floats(0.1, 100))


def every_prior(priors):
    """Priors of all parameters of the package by name."""
    found: dict[str, set[tuple[float, float]]] = {}
    own = [parameter for kernel in BASE_KERNELS.values() for parameter in kernel.parameters]
    for parameter in (*own, NOISE_VARIANCE):
        if parameter.name == "slope_variance":  # of IRW, which is not in the papers
            continue
        found.setdefault(parameter.name, set()).add(parameter.prior_in(priors))
    return found


def test_the_preset_paper_gives_the_published_values():
    expected = {name: {prior} for name, prior in PUBLISHED.items()}
    assert every_prior(PRESETS["paper"]) == expected


@pytest.mark.parametrize("priors", PRESETS.values(), ids=PRESETS)
def test_priors_and_places_of_changes_are_those_of_the_page_on_theory(priors):
    """The papers have none for them."""
    (location, _), (centre, _, _) = (OPERATORS[name].parameters for name in ("CP", "CW"))
    np.testing.assert_allclose(location.grid, np.linspace(0, 1, 21)[1:-1])
    np.testing.assert_allclose(centre.grid, np.linspace(0, 1, 11)[1:-1])
    place, length, width = (2, 3), (2, 6), (1, 50)
    found = {p.name: p.prior_in(priors) for p in OPERATORS["CP"].parameters}
    assert found == {"location": place, "width": width}
    found = {p.name: p.prior_in(priors) for p in OPERATORS["CW"].parameters}
    assert found == {"centre": place, "length": length, "width": width}


def test_default_differs_from_paper_by_wider_priors_of_the_noise_and_of_slopes():
    published = every_prior(PRESETS["paper"])
    slope, others = {(1, 0.25)}, published["variance"]
    expected = {**published, "noise_variance": {(1, 2)}, "variance": others | slope}
    assert every_prior(PRESETS["default"]) == expected
    (variance, _) = BASE_KERNELS["LIN"].parameters
    assert variance.prior_in(PRESETS["default"]) == (1, 0.25)


@given(entries=st.lists(shapes_and_rates, min_size=1, max_size=6), seed=seeds)
def test_log_density_is_that_of_the_gamma_distribution_with_the_jacobian(entries, seed):
    shape, rate = np.array(entries).T
    theta = np.random.default_rng(seed).uniform(-5, 3, (2, 5, len(entries)))
    expected = (gamma.logpdf(np.exp(theta), shape, scale=1 / rate) + theta).sum(axis=-1)
    # terms of size up to rate * exp(3) = 2000 are summed in another order
    for at, density in ((theta, expected), (theta[1, 2], expected[1, 2])):
        found = LogGammaPrior(shape, rate).log_density(at)
        np.testing.assert_allclose(found, density, rtol=1e-13, atol=1e-11)


@given(entries=st.lists(shapes_and_rates, min_size=1, max_size=4), seed=seeds)
def test_gradient_equals_finite_differences(entries, seed):
    prior = LogGammaPrior(*np.array(entries).T)
    theta = np.random.default_rng(seed).uniform(-5, 2, len(entries))
    # rounding: values up to 740 * 4 entries times EPS / step
    np.testing.assert_allclose(
        prior.gradient(theta), numerical_gradient(prior.log_density, theta), rtol=1e-10, atol=1e-9
    )


@given(entry=shapes_and_rates, probability=st.floats(1e-6, 1 - 1e-6))
def test_quantile_is_the_inverse_of_the_cumulative_distribution(entry, probability):
    shape, rate = np.array([entry]).T
    quantile = LogGammaPrior(shape, rate).quantile(np.array([[probability], [0.5]]))
    assert quantile.shape == (2, 1)
    # accuracy of the incomplete gamma function and its inverse
    np.testing.assert_allclose(
        gamma.cdf(np.exp(quantile[:, 0]), shape[0], scale=1 / rate[0]),
        [probability, 0.5],
        rtol=1e-10,
    )


def test_a_mapping_replaces_entries_of_the_default():
    default = every_prior(PRESETS["default"])
    priors = {"period": (np.float32(5.0), 0.5), "alpha": [1, 2]}
    checked = check_priors(priors)
    assert checked == {"period": (5.0, 0.5), "alpha": (1.0, 2.0)}
    assert every_prior(checked) == {**default, "period": {(5.0, 0.5)}, "alpha": {(1.0, 2.0)}}
    assert every_prior(check_priors({})) == every_prior(check_priors("default")) == default
    with pytest.raises(TypeError, match="does not support item assignment"):
        PRESETS["default"]["variance"] = (1, 1)
    # names are checked only against parameters that are given
    wrong = {"lenghtscale": (2, 2), "noise_variance": (1, 2)}
    assert check_priors(wrong) == wrong
    with pytest.raises(ValueError, match=r"keys out of \['noise_variance'\], got 'lenghtscale'"):
        check_priors(wrong, parameters=())


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ("papre", "a mapping such as {'noise_variance': (2, 2)}, got 'papre'"),
        (None, "priors must be one of ['default', 'paper'] or a mapping such as"),
        (
            {"lenghtscale": (2, 2)},
            f"priors must have keys out of {sorted(NAMES)}, got 'lenghtscale'",
        ),
        ({"variance": 2.0}, "priors['variance'] must be a pair (shape, rate)"),
        ({"variance": (2, 3, 4)}, "priors['variance'] must be a pair (shape, rate)"),
        ({"variance": (0, 3)}, "of positive numbers, got (0, 3)"),
        ({"variance": (2, np.inf)}, "of positive numbers, got (2, inf)"),
        ({"variance": (np.nan, 3)}, "of positive numbers, got (nan, 3)"),
        ({"variance": ("2", 3)}, "of positive numbers, got ('2', 3)"),
        ({"period": (2, 2), "alpha": "22"}, "priors['alpha'] must be a pair (shape, rate)"),
    ],
)
def test_wrong_priors_are_refused_by_a_message_that_names_them(priors, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        check_priors(priors, parameters=PARAMETERS)
