"""Base kernels from outside that are wrong, fail, or are easily mistaken for one another."""

import re
from contextlib import nullcontext

import numpy as np
import pytest
from scipy.linalg import LinAlgError
from sklearn.exceptions import ConvergenceWarning

from autokernel import (
    BaseKernel,
    CallableKernel,
    KernelParameter,
    Laplace,
    Operator,
    evaluate_kernel,
    parse_expression,
)
from autokernel.evidence import Evaluator
from autokernel.expression import Leaf
from autokernel.inference import TrainingData
from autokernel.kernels import LENGTHSCALE, VARIANCE
from autokernel.kernels.built_in import SquaredExponential
from autokernel.model import PosteriorAveraging, posterior_over_kernels
from tests.fits import SEARCHES
from tests.own_kernels import OU, ByDifferences, OrnsteinUhlenbeck, fitted, rough
from tests.search.stand_ins import QUICK


def wrong(**declared):
    """A kernel with another declaration."""
    return type("Wrong", (OrnsteinUhlenbeck,), declared)()


RESERVED = (LENGTHSCALE, KernelParameter("noise_variance", (1, 1)))


@pytest.mark.parametrize(
    ("base_kernels", "error", "message"),
    [
        ((OrnsteinUhlenbeck,), TypeError, "got a class: call OrnsteinUhlenbeck()"),
        ((OU, ByDifferences("OU")), ValueError, "base_kernels must have different names"),
        ((OrnsteinUhlenbeck("SE"),), ValueError, "give it another name"),
        ((wrong(name="no name"),), ValueError, "Wrong.name must be made of letters, digits"),
        (
            (wrong(parameters=("lengthscale",)),),
            ValueError,
            "must be a tuple of KernelParameter objects",
        ),
        (
            (wrong(parameters=(LENGTHSCALE, LENGTHSCALE)),),
            ValueError,
            "none of them 'noise_variance', got ['lengthscale', 'lengthscale']",
        ),
        ((wrong(parameters=RESERVED),), ValueError, "none of them 'noise_variance'"),
    ],
)
def test_what_is_no_base_kernel_is_refused(base_kernels, error, message):
    with pytest.raises(error, match=re.escape(message)):
        fitted(base_kernels=base_kernels)


class FailsLater(OrnsteinUhlenbeck):
    """Fails away from its best parameters once ``only`` is set."""

    name = "LATER"
    only = None

    def value(self, params, pairs):
        if self.only is not None and not np.allclose(params, self.only):
            raise ZeroDivisionError("of mine")
        return super().value(params, pairs)


def test_a_kernel_that_fails_at_a_draw_counts_at_its_best_parameters():
    kernel = FailsLater()
    evaluator = Evaluator(TrainingData(*rough()), priors={}, seed=0)
    later, same = (evaluator(Leaf(one, 0)) for one in (kernel, OU))
    kernel.only = np.exp(later.theta[:2])
    with pytest.warns(ConvergenceWarning, match="custom part LATER failed: ZeroDivisionError"):
        kernels = posterior_over_kernels(evaluator, [later, same])
    drawn = {one.evaluation: one for one in kernels}
    assert len(drawn[same].draws) == 100
    np.testing.assert_array_equal(drawn[later].draws, [later.theta])
    assert drawn[later].log_score == later.score
    assert PosteriorAveraging().components(kernels)  # conditioned on the data later on


class Power(BaseKernel):
    """``v exp(-(|x - x'| / l)^power)``: one class, many kernels of one name."""

    name = "POW"
    parameters = (LENGTHSCALE, VARIANCE)

    def __init__(self, power):
        super().__init__()
        self.power = power

    def value(self, params, pairs):
        return params[1] * np.exp(-((pairs.difference / params[0]) ** self.power))


def test_a_warm_start_forgets_what_was_found_with_another_kernel_of_the_same_name():
    settings = {"n_iter": 0, "max_leaves": 1, "warm_start": True}
    model = fitted(base_kernels=(Power(1.0),), **settings)
    model.set_params(base_kernels=(Power(2.0),)).fit(*rough())
    fresh = fitted(base_kernels=(Power(2.0),), **settings)
    assert model.best_score_ == fresh.best_score_
    assert model._fitted.evaluation.expression.leaves[0].kernel == Power(2.0)


def test_one_evaluator_distinguishes_kernels_of_one_name():
    X, y = rough(10)
    shared, alone = (Evaluator(TrainingData(X, y), priors={}, seed=0) for _ in range(2))
    # with a period, parts are fitted and kept
    one, other = (
        parse_expression("POW[0] * PER[0] + LIN[0]", base_kernels=[Power(power)])
        for power in (1.0, 1.5)
    )
    shared(one)
    np.testing.assert_array_equal(shared(other).theta, alone(other).theta)


def test_memory_says_that_it_cannot_distinguish_lambdas(tmp_path):
    local = CallableKernel("LOCAL", lambda X, Y, v: v * (X == Y.T), (VARIANCE,))
    with pytest.raises(ValueError, match="memory needs base kernels and operators that can be"):
        fitted(base_kernels=("SE", local), memory=tmp_path)


def test_the_order_in_which_kernels_are_given_does_not_matter():
    one, *others = (
        fitted(base_kernels=kernels, max_leaves=1, n_iter=0, averaging=None).search_history_
        for kernels in (("LIN", OU), np.array([OU, "LIN"]), {OU, "LIN"})
    )
    for other in others:
        assert list(other["kernel"]) == list(one["kernel"])


def fails(X, Y, v):
    raise ZeroDivisionError("of mine")


def is_negative(X, Y, v):
    return -5.0 * v * (X == Y.T)


@pytest.mark.parametrize(
    ("name", "function"), [*((name, fails) for name in SEARCHES), ("sot", is_negative)]
)
def test_every_strategy_searches_with_a_custom_kernel_and_one_that_fails(name, function):
    bad = CallableKernel("BAD", function, (VARIANCE,))
    settings = {"strategy": QUICK[name], "n_iter": 1, "max_leaves": 2, "averaging": None}
    warns = pytest.warns(UserWarning, match="custom part BAD failed: ZeroDivisionError")
    with warns if function is fails else nullcontext():
        model = fitted(base_kernels=("LIN", OU, bad), **settings)
    history = model.search_history_
    is_sound = np.array(["BAD" not in kernel for kernel in history["kernel"]])
    assert any("OU" in kernel for kernel in history["kernel"][is_sound])
    assert set(history["status"][is_sound]) == {"ok"}
    assert "BAD" not in model.best_expression_


class Weighted(Operator):
    """A sum with a weight, as a word."""

    symbol = "BAD"
    parameters = (VARIANCE,)

    def value(self, at):
        return at.params[0] * (at.values[0] + at.values[1])

    def adjoints(self, at, adjoint):
        yield from (at.params[0] * adjoint, at.params[0] * adjoint)


PARTS = [
    *((OrnsteinUhlenbeck, method) for method in ("value", "gradient")),
    *((SquaredExponential, method) for method in ("exponent", "exponent_gradient")),
    *((Weighted, method) for method in ("value", "adjoints", "gradient")),
    (Laplace, "__call__"),
]
every_part = pytest.mark.parametrize(("base", "method"), PARTS)


def with_part(base, method, result):
    """Evaluate a kernel with a custom part of which one method calls a function."""
    bad = type("BAD", (base,), {"name": "BAD", method: lambda *_: result()})()
    X, y = rough(15)
    if base is Laplace:
        return evaluate_kernel("LIN[0]", X, y, criterion=bad)
    if base is Weighted:
        return evaluate_kernel("BAD(LIN[0], SE[0])", X, y, operators=[bad])
    return evaluate_kernel("BAD[0] * LIN[0]", X, y, base_kernels=[bad])


def raising(error):
    def fail():
        raise error

    return fail


@pytest.mark.parametrize("error", [AttributeError, MemoryError, LinAlgError, IndexError])
@every_part
def test_whatever_a_custom_part_raises_is_a_reason_and_a_warning_with_its_name(base, method, error):
    reason = f"custom part BAD failed: {error.__name__}: odd"
    with pytest.warns(UserWarning, match=reason) as caught:
        fit = with_part(base, method, raising(error("odd")))
    assert fit.status == reason
    assert fit.score == -np.inf
    assert len(caught) == 1


@every_part
def test_ctrl_c_in_a_custom_part_is_no_failure(base, method):
    with pytest.raises(KeyboardInterrupt):
        with_part(base, method, raising(KeyboardInterrupt))


@pytest.mark.parametrize("result", [None, "text", np.zeros(3), np.zeros((2, 2)), [1.0, "x"]])
@every_part
def test_a_custom_part_that_returns_something_else_is_named(base, method, result):
    with pytest.warns(UserWarning, match="custom part BAD failed: "):
        fit = with_part(base, method, lambda: result)
    assert fit.status.startswith("custom part BAD failed: ")


@pytest.mark.parametrize(("method", "shape"), [("value", "(120,)"), ("gradient", "(2,)")])
def test_an_array_of_the_wrong_shape_is_reported(method, shape):
    reason = f"ValueError: {method} must return an array of shape {shape}, got (3,)"
    with pytest.warns(UserWarning, match=re.escape(f"custom part BAD failed: {reason}")):
        fit = with_part(OrnsteinUhlenbeck, method, lambda: np.zeros(3))
    assert fit.status == f"custom part BAD failed: {reason}"
    assert fit.score == -np.inf


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior": (2.0,)}, "prior of p must be a pair (shape, rate) of positive numbers"),
        ({"prior": (-2, 1)}, "prior of p must be a pair"),
        ({"prior": (2, 1), "start": (3, 0)}, "start of p must be a pair of positive numbers that"),
        ({"prior": (2, 1), "grid": (0.0,)}, "grid of p must hold positive numbers"),
        ({"prior": (2, 1), "grid": (0.5, np.inf)}, "grid of p must hold positive numbers"),
    ],
)
def test_an_impossible_parameter_is_refused_where_it_is_declared(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        KernelParameter("p", **settings)
