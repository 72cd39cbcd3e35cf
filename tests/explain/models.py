"""Fitted models with given kernels and parameters, and random kernels."""

from dataclasses import replace

import numpy as np

from autokernel import AutoKernelGPRegressor
from autokernel.expression import Grammar, n_kernel_params
from autokernel.inference.exact import ExactPredictor
from autokernel.kernels import BASE_KERNELS, OPERATORS
from autokernel.model import KernelPosterior, MixtureComponent, MixturePredictor


def refitted(kernel, X, y, **settings):
    """Return an estimator with this kernel at its best parameters."""
    defaults = {"averaging": None, "outliers": None, "noise": "constant", "random_state": 0}
    return AutoKernelGPRegressor(**defaults | settings).refit(X, y, kernel)


def with_kernel(X, y, expression, theta, *, noise=0.1, spread=0.1):
    """Return a fitted estimator with this kernel, its log parameters and draws around them."""
    model = refitted("NOISE", X, y)
    fitted, whole = model._fitted, np.append(theta, np.log(noise))
    unknown = np.full((len(whole), len(whole)), np.nan)
    evaluation = replace(fitted.evaluation, expression=expression, theta=whole, hessian=unknown)
    only = [MixtureComponent(expression, whole, 1.0)]
    mixture = MixturePredictor(only, fitted.mixture.data, ExactPredictor)
    draws = whole + spread * np.random.default_rng(0).normal(size=(20, len(whole)))
    model._fitted = replace(
        fitted,
        best=0,
        mixture=mixture,
        kernels=(KernelPosterior(evaluation, 1.0, 0.0, draws),),
        scaled_noise_variance=noise,
    )
    return model


def random_expressions(n, *, max_leaves=6):
    """Yield random kernels of two columns with all operators, and log parameters of them."""
    rng = np.random.default_rng(0)
    grammar = Grammar(
        tuple(BASE_KERNELS.values())[:4], tuple(OPERATORS.values()), (0, 1), max_leaves
    )
    for _ in range(n):
        expression = grammar.leaves[rng.integers(len(grammar.leaves))]
        for _ in range(rng.integers(max_leaves)):
            neighbours = grammar.neighbours(expression)
            expression = neighbours[rng.integers(len(neighbours))]
        yield expression, rng.normal(size=n_kernel_params(expression))


def sum_of(found):
    """Add up the constant and the means of a decomposition."""
    return found.constant + sum(one.mean for one in found.components)
