"""Write posterior.json: a posterior of posteriordb, integrated on a grid.

    pip install numpy==2.4.6 scipy==1.16.3
    python tests/reference/make_posterior.py

The model is ``gp_pois_regr-gp_regr`` of https://github.com/stan-dev/posteriordb (gp_regr.stan, with
the data of gp_pois_regr): an SE kernel with lengthscale rho, variance alpha^2 and noise variance
sigma. In posteriordb rho ~ Gamma(25, 4), alpha ~ half-normal(0, 2), which is alpha^2 ~
Gamma(1/2, 1/8), and sigma ~ half-normal(0, 1). The last one is no Gamma distribution, so that the
same is computed for sigma ~ Gamma(1, 1), too.

The integrands decay at all ends, where the trapezoidal rule converges faster than any power.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.special import logsumexp
from scipy.stats import gamma, halfnorm

X = np.arange(-10.0, 11.0, 2.0)
Y = [4.75906, 1.59423, 2.99548, 5.27501, 1.66472, 2.24347]
Y = np.array([*Y, 2.8914, 4.08681, 4.60588, 0.802364, 3.92136])
N_NODES = 100  # in one direction, more in the others; 150 give the same thirteen digits
LOG_RHO = np.linspace(np.log(0.8), np.log(25), N_NODES)
LOG_ALPHA = np.linspace(-30, np.log(40), 4 * N_NODES)
LOG_SIGMA = np.linspace(-30, np.log(30), 3 * N_NODES)
PRIORS = {"lengthscale": [25, 4], "variance": [0.5, 0.125], "noise_variance": [1, 1]}
# of posteriordb's own draws, with the standard errors of these means
PUBLISHED = {
    "mean": {"rho": 6.87434817782581, "alpha": 2.4423998398757, "sigma": 1.82873106572797},
    "mcse": {"rho": 0.0127649184133038, "alpha": 0.00775729060630055, "sigma": 0.00502769102294288},
}


def log_likelihoods():
    """Of all (rho, alpha, sigma), by the eigenvalues of the matrix of each rho."""
    difference = X[:, None] - X
    alpha, sigma = np.exp(LOG_ALPHA)[:, None, None], np.exp(LOG_SIGMA)[None, :, None]
    for rho in np.exp(LOG_RHO):
        values, vectors = np.linalg.eigh(np.exp(-(difference**2) / (2 * rho**2)))
        variances = alpha**2 * np.maximum(values, 0) + sigma
        squares = (vectors.T @ Y) ** 2
        yield -0.5 * (squares / variances + np.log(2 * np.pi * variances)).sum(axis=-1)


def integrals(log_likelihood, prior_of_sigma):
    rho, alpha, sigma = np.exp(LOG_RHO), np.exp(LOG_ALPHA), np.exp(LOG_SIGMA)
    joint = log_likelihood + (gamma(25, scale=1 / 4).logpdf(rho) + LOG_RHO)[:, None, None]
    joint += (halfnorm(scale=2).logpdf(alpha) + LOG_ALPHA)[:, None]
    joint += prior_of_sigma.logpdf(sigma) + LOG_SIGMA
    total = logsumexp(joint)
    weights = np.exp(joint - total)
    cell = np.prod([nodes[1] - nodes[0] for nodes in (LOG_RHO, LOG_ALPHA, LOG_SIGMA)])
    means = {
        "rho": weights.sum(axis=(1, 2)) @ rho,
        "alpha": weights.sum(axis=(0, 2)) @ alpha,
        "sigma": weights.sum(axis=(0, 1)) @ sigma,
    }
    return {"log_evidence": total + np.log(cell), "mean": means}


if __name__ == "__main__":
    log_likelihood = np.array(list(log_likelihoods()))
    found = {
        "model": "posteriordb gp_pois_regr-gp_regr",
        "versions": {name: version(name) for name in ("numpy", "scipy")},
        "x": X.tolist(),
        "y": Y.tolist(),
        "priors": PRIORS,
        "gamma": integrals(log_likelihood, gamma(1)),
        "half_normal": integrals(log_likelihood, halfnorm),
        "published": PUBLISHED,
    }
    for name, mean in PUBLISHED["mean"].items():  # of Monte Carlo
        assert abs(found["half_normal"]["mean"][name] - mean) < 4 * PUBLISHED["mcse"][name]
    text = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
    Path(__file__).with_name("posterior.json").write_text(f"{{\n{text}\n}}\n")
