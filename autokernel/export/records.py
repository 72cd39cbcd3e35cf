"""Fitted models as plain data, which JSON can hold."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from autokernel.data.scaling import Scaling, TargetScaling
from autokernel.evidence import Evaluation
from autokernel.evidence.evaluation import name_parameters
from autokernel.expression import Expression, parse_expression
from autokernel.inference import TrainingData, one_blas_thread
from autokernel.inference.exact import ExactPredictor
from autokernel.inference.inducing import InducingPredictor
from autokernel.inference.neighbours import NeighbourPredictor
from autokernel.inference.predictor import MakePredictor
from autokernel.kernels import BASE_KERNELS, OPERATORS, Seasonal
from autokernel.model import Component, FittedModel, KernelPosterior, MixturePredictor, to_sklearn
from autokernel.typing import FloatArray

FORMAT_VERSION = 1
"""Version of the records; it changes whenever an older reader would misread one."""

_PREDICTORS = {
    "exact": ExactPredictor,
    "inducing": InducingPredictor,
    "neighbours": NeighbourPredictor,
}
_ARRAYS = ("theta", "hessian")  # of an evaluation
_DERIVED = ("expression", "parameters")


def record_of(model: FittedModel) -> dict[str, Any]:
    """Write a fitted model as a dict of numbers, texts, lists and dicts.

    Raises
    ------
    ValueError
        If a base kernel or an operator of the user is in a kernel.
    """
    best = next(n for n, one in enumerate(model.kernels) if one.evaluation is model.evaluation)
    mixture = model.mixture
    return {
        "scaling": {"shift": plain(model.scaling.shift), "scale": plain(model.scaling.scale)},
        "target_scaling": {
            "shift": plain(model.target_scaling.shift),
            "scale": plain(model.target_scaling.scale),
        },
        "feature_names": model.feature_names,
        "noise": plain(model.scaled_noise_variance),
        "way": model.way,
        "seasons": _seasons(model),
        "kernels": [_kernel_record(one) for one in model.kernels],
        "best": best,
        "predictor": _predictor_record(mixture.make_predictor),
        "components": [
            {
                "expression": _text(one.expression),
                "theta": plain(one.theta),
                "weight": plain(one.weight),
            }
            for one in mixture.components
        ],
        "X": plain(mixture.data.X),
        "y": plain(mixture.data.y),
    }


def model_of(record: Mapping[str, Any]) -> FittedModel:
    """Build a fitted model from what :func:`record_of` has written.

    Raises
    ------
    KeyError
        If an entry is missing.
    """
    scaling = Scaling(*(numbers(record["scaling"][name]) for name in ("shift", "scale")))
    target = record["target_scaling"]
    target_scaling = TargetScaling(number(target["shift"]), number(target["scale"]))
    seasons = [Seasonal.from_record(one) for one in record["seasons"]]
    kernels = [_kernel(one, seasons) for one in record["kernels"]]
    evaluation = kernels[record["best"]].evaluation
    components = [
        Component(
            parse_expression(one["expression"], base_kernels=seasons),
            numbers(one["theta"]),
            number(one["weight"]),
        )
        for one in record["components"]
    ]
    n_features = len(scaling.shift)
    data = TrainingData(numbers(record["X"]).reshape(-1, n_features), numbers(record["y"]))
    with one_blas_thread():  # as in the fit, for bit-identical results
        mixture = MixturePredictor(components, data, _make_predictor(record["predictor"]))
    noise = number(record["noise"])
    names = record["feature_names"]
    kernel = to_sklearn(
        evaluation.expression,
        evaluation.theta,
        scaling=scaling,
        noise_variance=noise,
        feature_names=names,
    )
    return FittedModel(
        evaluation, noise, mixture, kernel, scaling, target_scaling, names, kernels, record["way"]
    )


def plain(value: Any) -> Any:
    """Write numbers and arrays as JSON holds them; numbers that are not finite become texts."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else str(float(value))
    return value


def number(value: float | str) -> float:
    """Read a number that :func:`plain` has written."""
    return float(value)


def numbers(values: Sequence[Any]) -> FloatArray:
    """Read an array that :func:`plain` has written."""
    return np.array(values, dtype=float)


def _kernel_record(kernel: KernelPosterior) -> dict[str, Any]:
    """Write a kernel with its probability and its draws."""
    evaluation = kernel.evaluation
    entries = {
        field.name: plain(getattr(evaluation, field.name))
        for field in fields(Evaluation)
        if field.name not in _DERIVED
    }
    return {
        "expression": _text(evaluation.expression),
        "evaluation": entries,
        "probability": plain(kernel.probability),
        "log_score": plain(kernel.log_score),
        "draws": plain(kernel.draws),
        "pareto_k": plain(kernel.pareto_k),
    }


def _seasons(model: FittedModel) -> list[dict[str, float]]:
    """Write the known periods of the kernels, one of each name."""
    expressions = [one.expression for one in model.mixture.components]
    expressions += [one.evaluation.expression for one in model.kernels]
    seasons = {
        leaf.kernel.name: leaf.kernel
        for expression in expressions
        for leaf in expression.leaves
        if isinstance(leaf.kernel, Seasonal)
    }
    return [one.record for one in seasons.values()]


def _kernel(record: Mapping[str, Any], seasons: Sequence[Seasonal]) -> KernelPosterior:
    """Read a kernel with its probability and its draws."""
    expression = parse_expression(record["expression"], base_kernels=seasons)
    entries = dict(record["evaluation"])
    for name, value in entries.items():
        if name in _ARRAYS:
            entries[name] = numbers(value)
        elif name not in ("status", "n_params", "n_evaluations"):
            entries[name] = number(value)
    parameters = name_parameters(expression, entries["theta"])
    evaluation = Evaluation(expression=expression, parameters=parameters, **entries)
    return KernelPosterior(
        evaluation,
        number(record["probability"]),
        number(record["log_score"]),
        numbers(record["draws"]),
        number(record["pareto_k"]),
    )


def _text(expression: Expression) -> str:
    """Write an expression that can be read without objects of the user."""
    known = {*BASE_KERNELS.values(), *OPERATORS.values()}
    for tree in expression.subtrees():
        is_known = tree.declared in known or isinstance(tree.declared, Seasonal)
        if tree.n_leaves and not is_known:
            raise ValueError(
                f"to_dict can hold the base kernels and operators that ship, got "
                f"{tree.declared!r} in {expression}: pickle the model, as joblib.dump does"
            )
    return str(expression)


def _predictor_record(make: MakePredictor) -> dict[str, Any]:
    """Write how predictions are computed."""
    function, settings = (make.func, make.keywords) if isinstance(make, partial) else (make, {})
    (name,) = (name for name, known in _PREDICTORS.items() if known is function)
    return {"name": name, **settings}


def _make_predictor(record: Mapping[str, Any]) -> MakePredictor:
    """Read how predictions are computed."""
    settings = {name: value for name, value in record.items() if name != "name"}
    known = _PREDICTORS[record["name"]]
    return partial(known, **settings) if settings else known
