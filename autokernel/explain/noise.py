"""How the noise varies with the columns, in sentences."""

from collections.abc import Iterator, Sequence

import numpy as np

from autokernel.data import NoiseTerm
from autokernel.data.noise import GAP, LEVELS
from autokernel.explain.axes import Axis
from autokernel.explain.facts import N_GRID, Fact
from autokernel.explain.sentences import SCALE_WORDS, Said
from autokernel.explain.words import number
from autokernel.expression import IDENTITY
from autokernel.model import FittedModel

HOW = "terms of the log of the noise variance"


def of_varying_noise(model: FittedModel, axes: Sequence[Axis]) -> Iterator[Said]:
    """Say how the noise of the best kernel varies, with a sentence for each term."""
    scale = model.scale.name
    noise = "The noise" if scale == IDENTITY else f"The noise on the {SCALE_WORDS[scale]} scale"
    for term in model.transformed.noise_function.terms:
        yield _of_term(term, axes[term.column], noise)


def _of_term(term: NoiseTerm, axis: Axis, noise: str) -> Said:
    """Compare the noise where it is largest with that where it is smallest."""
    values, name = term.knots, axis.name
    if term.form == GAP:
        values = np.array([np.nan, axis.low])
    elif term.form == "smooth":
        values = np.linspace(values[0], values[-1], N_GRID)
    log_noise = term.basis(values) @ term.coefficients
    most, least = values[[np.argmax(log_noise), np.argmin(log_noise)]].tolist()
    ratio = term.ratio(most, least)
    times, low, high = (number(one, 2) for one in ratio)
    it_is, does = f"it is {times} times as large", "varies"
    if term.form == GAP:
        has, others = ("no", "have one") if np.isnan(most) else ("a", "have none")
        text = f"{noise} is {times} times as large in rows that have {has} value of {name} as in"
        text = f"{text} those that {others}"
    elif term.form == "linear":
        does, at, other = ("grows", "highest", "lowest")
        if most < least:
            does, at, other = "shrinks", other, at
        text = f"{noise} {does} with {name}: {it_is} where {name} is {at} as where it is {other}"
    else:
        at, other = (axis.place((one - axis.low) / axis.extent) for one in (most, least))
        text = f"{noise} changes along {name}: {it_is} at {at} as at {other}"
        if term.form == LEVELS:
            text = f"{noise} differs between levels of {name}: {it_is} for {at} as for {other}"
    return Fact("noise", f"{does} with {name}", *ratio, evidence=HOW), f"{text} ({low} to {high})."
