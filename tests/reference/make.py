"""Write references.json: likelihoods and predictions of GPy, george and celerite2.

It runs in an environment of its own, as autokernel needs none of these packages:

    pip install GPy==1.15.0 george==0.4.4 celerite2==0.3.3
    python tests/reference/make.py

Each case has an expression, its parameters in the order of ``theta``, the noise variance last, and
what the other program says of 25 rows, to be compared with digits of their own.
"""

import json
from importlib.metadata import version
from pathlib import Path

import celerite2
import george
import GPy
import numpy as np
from celerite2 import terms
from george import kernels

N, N_NEW, NOISE = 25, 6, 0.03
rng = np.random.default_rng(0)
X = np.round(np.column_stack([rng.uniform(size=N + N_NEW), rng.uniform(size=N + N_NEW)]), 6)
LEVEL = rng.integers(3, size=N + N_NEW)  # of a third column, as indicators for GPy
y = np.round(np.sin(5 * X[:, 0]) + X[:, 1] + 0.3 * LEVEL + 0.2 * rng.normal(size=N + N_NEW), 6)[:N]
TABLE = np.column_stack([X, LEVEL])
WIDE = np.column_stack([X, np.eye(3)[LEVEL]])


def of_gpy(expression, params, kernel):
    # GPy adds 1e-8 to the noise
    model = GPy.models.GPRegression(WIDE[:N], y[:, None], kernel, noise_var=NOISE - 1e-8)
    model.inference_method = GPy.inference.latent_function_inference.ExactGaussianInference()
    mean, variance = model.predict_noiseless(WIDE[N:])
    return case("GPy", expression, params, model.log_likelihood(), mean[:, 0], variance[:, 0])


def of_george(expression, params, kernel):
    model = george.GP(kernel, white_noise=np.log(1e-300), fit_white_noise=False)
    model.compute(X[:N], yerr=np.sqrt(NOISE))
    mean, variance = model.predict(y, X[N:], return_var=True)
    return case("george", expression, params, model.log_likelihood(y), mean, variance)


def of_celerite(expression, params, term):
    order, of_new = np.argsort(X[:N, 0]), np.argsort(X[N:, 0])  # it takes rows in order
    model = celerite2.GaussianProcess(term)
    model.compute(X[order, 0], diag=np.full(N, NOISE))
    found = np.array(model.predict(y[order], X[N:, 0][of_new], return_var=True))
    mean, variance = found[:, np.argsort(of_new)]
    return case("celerite2", expression, params, model.log_likelihood(y[order]), mean, variance)


def case(program, expression, params, log_likelihood, mean, variance):
    return {
        "program": f"{program} {version(program)}",
        "expression": expression,
        "params": [*params, NOISE],
        "log_likelihood": float(log_likelihood),
        "mean": np.asarray(mean).tolist(),
        "variance": np.asarray(variance).tolist(),
    }


def se(column, length, v):
    return GPy.kern.RBF(1, variance=v, lengthscale=length, active_dims=[column])


def rq(column, length, v, alpha):  # whose lengthscale has the root of alpha in it
    return GPy.kern.RatQuad(
        1, variance=v, lengthscale=length * np.sqrt(alpha), power=alpha, active_dims=[column]
    )


def per(column, length, v, p):
    return GPy.kern.StdPeriodic(1, variance=v, lengthscale=length, period=p, active_dims=[column])


def lin(column, v, c):
    return GPy.kern.Linear(1, variances=v, active_dims=[column]) + constant(c)


def cat(v, c):
    return GPy.kern.Linear(3, variances=v, active_dims=[2, 3, 4]) + constant(c)


def constant(c):
    return GPy.kern.Bias(5, variance=c, active_dims=[0, 1, 2, 3, 4])


def matern(kind, column, length, v):
    return kind(1, variance=v, lengthscale=length, active_dims=[column])


def cases():
    kern = GPy.kern
    yield of_gpy("SE[0]", [0.3, 1.2], se(0, 0.3, 1.2))
    yield of_gpy("RQ[0]", [0.4, 0.9, 1.7], rq(0, 0.4, 0.9, 1.7))
    yield of_gpy("PER[0]", [0.8, 1.1, 0.6], per(0, 0.8, 1.1, 0.6))
    yield of_gpy("LIN[1]", [2.0, 0.5], lin(1, 2.0, 0.5))
    yield of_gpy("CAT[2]", [0.4, 0.7], cat(0.4, 0.7))
    yield of_gpy("MAT12[0]", [0.5, 1.3], matern(kern.Exponential, 0, 0.5, 1.3))
    yield of_gpy("MAT32[0]", [0.5, 1.3], matern(kern.Matern32, 0, 0.5, 1.3))
    yield of_gpy("MAT52[0]", [0.5, 1.3], matern(kern.Matern52, 0, 0.5, 1.3))
    walk = kern.Brownian(1, variance=1.5, active_dims=[0]) + constant(0.2)
    yield of_gpy("RW[0]", [1.5, 0.2], walk)
    yield of_gpy("SE[0] + LIN[1]", [0.3, 1.2, 2.0, 0.5], se(0, 0.3, 1.2) + lin(1, 2.0, 0.5))
    yield of_gpy("SE[0] * SE[1]", [0.3, 1.2, 0.7, 0.8], se(0, 0.3, 1.2) * se(1, 0.7, 0.8))
    yield of_gpy(
        "CAT[2] * LIN[0] + PER[1] * SE[1]",
        [0.4, 0.7, 2.0, 0.5, 0.8, 1.1, 0.6, 0.9, 1.0],
        cat(0.4, 0.7) * lin(0, 2.0, 0.5) + per(1, 0.8, 1.1, 0.6) * se(1, 0.9, 1.0),
    )
    yield of_george(
        "MAT32[0] + SE[1]",
        [0.5, 1.3, 0.7, 0.8],
        1.3 * kernels.Matern32Kernel(0.25, ndim=2, axes=0)
        + 0.8 * kernels.ExpSquaredKernel(0.49, ndim=2, axes=1),
    )
    yield of_george(
        "RQ[1] * PER[0]",
        [0.4, 0.9, 1.7, 0.8, 1.1, 0.6],
        0.99
        * kernels.RationalQuadraticKernel(np.log(1.7), 0.16, ndim=2, axes=1)
        * kernels.ExpSine2Kernel(1 / (2 * 0.64), np.log(0.6), ndim=2, axes=0),
    )
    yield of_celerite("MAT12[0]", [0.5, 1.3], terms.RealTerm(a=1.3, c=2.0))
    # the sum of two
    both = terms.RealTerm(a=1.3, c=2.0) + terms.RealTerm(a=0.4, c=9.0)
    yield of_celerite("MAT12[0] + MAT12[0]", [0.5, 1.3, 1 / 9.0, 0.4], both)


if __name__ == "__main__":
    every = ",\n".join(map(json.dumps, cases()))
    text = f'{{"table": {TABLE.tolist()},\n"y": {y.tolist()},\n"cases": [\n{every}\n]}}\n'
    Path(__file__).with_name("references.json").write_text(text)
