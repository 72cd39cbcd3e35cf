from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given

from autokernel.expression import Leaf
from autokernel.kernels import BASE_KERNELS, BaseKernel
from tests.batteries import BaseKernelBattery, covariance, random_params, seeds


def squared_exponential(x: float, z: float, length: float, v: float) -> float:
    return v * np.exp(-((x - z) ** 2) / (2 * length**2))


def linear(x: float, z: float, v: float, c: float) -> float:
    return v * x * z + c


def periodic(x: float, z: float, length: float, v: float, p: float) -> float:
    return v * np.exp(-(np.sin(np.pi * (x - z) / p) ** 2) / (2 * length**2))


def rational_quadratic(x: float, z: float, length: float, v: float, a: float) -> float:
    return v * (1 + (x - z) ** 2 / (2 * a * length**2)) ** -a


def once_differentiable(x: float, z: float, length: float, v: float) -> float:
    distance = np.sqrt(3) * abs(x - z) / length
    return v * (1 + distance) * np.exp(-distance)


def twice_differentiable(x: float, z: float, length: float, v: float) -> float:
    distance = np.sqrt(5) * abs(x - z) / length
    return v * (1 + distance + distance**2 / 3) * np.exp(-distance)


FORMULAS = {
    "SE": squared_exponential,
    "LIN": linear,
    "PER": periodic,
    "RQ": rational_quadratic,
    "MAT32": once_differentiable,
    "MAT52": twice_differentiable,
}
PARAMETER_NAMES = {
    "SE": ("lengthscale", "variance"),
    "LIN": ("variance", "offset"),
    "PER": ("lengthscale", "variance", "period"),
    "RQ": ("lengthscale", "variance", "alpha"),
    "MAT32": ("lengthscale", "variance"),
    "MAT52": ("lengthscale", "variance"),
}


@pytest.mark.parametrize("kernel", BASE_KERNELS.values(), ids=BASE_KERNELS)
class TestEveryBaseKernel(BaseKernelBattery):
    pass


@pytest.mark.parametrize(("name", "formula"), FORMULAS.items(), ids=FORMULAS)
@given(seed=seeds)
def test_value_equals_the_published_formula(
    name: str, formula: Callable[..., float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    params, x = random_params(BASE_KERNELS[name], rng), rng.uniform(-1, 1, 7)
    expected = np.array([[formula(a, b, *params) for b in x] for a in x])
    # a phase of up to 60 in PER, divided by 2 l^2 >= 0.1, loses up to 600 EPS
    np.testing.assert_allclose(
        covariance(Leaf(BASE_KERNELS[name], 0), params, x[:, None]),
        expected,
        rtol=1e-12,
        atol=1e-14,
    )


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("SE", [0.5, 1]),
        ("RQ", [0.5, 1, 1]),
        ("PER", [1, 1, 0.5]),
        ("MAT32", [0.5, 1]),
        ("MAT52", [0.5, 1]),
    ],
)
def test_a_length_is_described_in_the_units_of_the_scaled_inputs(
    name: str, params: list[float]
) -> None:
    assert "6" in BASE_KERNELS[name].describe(np.array(params), scale=12.0).split()


@pytest.mark.parametrize(("name", "expected"), PARAMETER_NAMES.items(), ids=PARAMETER_NAMES)
def test_parameters_stand_in_the_order_of_the_formula(name: str, expected: tuple[str, ...]) -> None:
    assert tuple(p.name for p in BASE_KERNELS[name].parameters) == expected


def test_every_base_kernel_is_compared_with_its_published_formula() -> None:
    assert set(FORMULAS) == set(PARAMETER_NAMES) == set(BASE_KERNELS)


def test_the_mapping_of_base_kernels_is_read_only() -> None:
    with pytest.raises(TypeError, match="does not support item assignment"):
        BASE_KERNELS["NEW"] = BASE_KERNELS["SE"]


def test_base_kernel_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        BaseKernel()
