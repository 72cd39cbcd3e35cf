"""Records of fitted models with random faults, as a hostile file may have them."""

from copy import deepcopy
from functools import cache

import numpy as np
import pandas as pd
from sklearn.base import clone

from autokernel import AutoKernelGPRegressor
from autokernel.export import to_dict
from tests.fits import small, wave


def nested(depth, kind=list):
    found = 0
    for _ in range(depth):
        found = [found] if kind is list else {"items": found}
    return found


def values():
    """Values that may be in a file, by accident or not."""
    return [
        None, True, "text", "", "nan", "inf", "SE[0]", "SE[99]", "log(y) ~ SE[log(0)]", "NOISE",
        "../../etc/passwd", "__import__('os').system('true')", "x" * 100_000, "CP[0](", "(" * 5000,
        "+".join(["LIN[0]"] * 5000), 0, -1, 1, 7, 10**9, 2**62, 10**400, 0.5, -0.5, 1e-310, 1e100,
        1e308, -1e308, float("nan"), float("inf"), -float("inf"), [], {}, [[]], [None], ["a", 1],
        [1e308] * 3, {"items": [[0, 1]]}, {"items": [[[0], 1]]}, {"items": 3},
        {"__reduce__": ["os.system", "true"]}, nested(5), nested(3000), nested(3000, dict),
        [nested(40)],
    ]  # fmt: skip


@cache
def records():
    """Records with the data of their models: an average over scales, dates, an approximation."""
    rng = np.random.default_rng(0)
    shop = rng.choice(["u", "v", "w"], 30)
    x = np.append(np.nan, rng.uniform(1, 20, 29))
    frame = pd.DataFrame({"a": x, "shop": shop})
    y = np.exp(np.sin(np.nan_to_num(x))) + (shop == "u") + 0.1 * rng.normal(size=30)
    y[5] += 40
    settings = {"base_kernels": {"a": ("SE", "LIN"), "*": "auto"}, "periods": {"a": [7.0]}}
    series = pd.Series(y[:24], pd.date_range("2020-01-31", periods=24, freq="ME"), name="sales")
    given = [(frame, y), (series, None), wave(300)]
    known = AutoKernelGPRegressor(random_state=0, averaging=None, n_inducing=20, n_iter=0)
    models = [
        small(**settings, n_iter=1).fit(*given[0]),
        clone(known).refit(*given[1], kernel="PER[0] + LIN[0]"),
        clone(known).set_params(approximation="inducing").refit(*given[2], kernel="LIN[0]"),
    ]
    return [(to_dict(model), *data) for model, data in zip(models, given, strict=True)]


def paths(value, path=()):
    """Yield the paths to all values, of long lists only the first and the last."""
    yield path
    if len(path) > 12:  # deeper than any record
        return
    if isinstance(value, dict):
        for key, one in value.items():
            yield from paths(one, (*path, key))
    elif isinstance(value, list):
        for number in sorted({0, len(value) - 1} if value else ()):
            yield from paths(value[number], (*path, number))


def set_at(record, path, value):
    """Put a value into a record."""
    for key in path[:-1]:
        record = record[key]
    record[path[-1]] = value


def mutant(seed):
    """Return a record with one or two faults, the data of its model, and the faults."""
    rng = np.random.default_rng(seed)
    record, X, y = records()[seed % len(records())]
    record, faults = deepcopy(record), []
    for _ in range(rng.integers(1, 3)):
        known = list(paths(record))[1:]
        path = known[rng.integers(len(known))]
        above = record
        for key in path[:-1]:
            above = above[key]
        fault = FAULTS[rng.integers(len(FAULTS))]
        fault(above, path[-1], rng)
        faults.append((path, fault.__name__))
    return record, X, y, faults


def put_another(above, key, rng):
    every = pool = values()
    if rng.random() < 0.5:  # one that may pass the check of types
        pool = [one for one in every if type(one) is type(above[key])] or every
    above[key] = pool[rng.integers(len(pool))]


def remove(above, key, rng):
    del above[key]


def double(above, key, rng):
    if isinstance(above, dict):
        above[f"{key}2"] = above[key]
    else:
        above.append(above[key])


def exchange(above, key, rng):
    others = list(above) if isinstance(above, dict) else range(len(above))
    other = others[rng.integers(len(others))]
    above[key], above[other] = above[other], above[key]


def change_number_or_length(above, key, rng):
    value = above[key]
    if isinstance(value, list):
        above[key] = [value[:-1], value * 2, [value], value[::-1]][rng.integers(4)]
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        above[key] = value * float(rng.choice([-1, 1e-8, 1e8, 1e200, 1.5, 0.5]))
    elif isinstance(value, str):
        above[key] = value[::-1] + "0"


FAULTS = (put_another, remove, double, exchange, *3 * (change_number_or_length,))
