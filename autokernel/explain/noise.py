"""How the noise varies with the columns, in sentences."""

from collections.abc import Iterator, Sequence

import numpy as np

from autokernel.data import NoiseTerm
from autokernel.data.noise import GAP
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
    if term.form == GAP:
        ends = np.array([np.nan, axis.low])
        where = ["have no value", "have a value"]
    else:
        is_smooth = term.form == "smooth"
        grid = np.linspace(term.knots[0], term.knots[-1], N_GRID) if is_smooth else term.knots
        log_noise = term.basis(grid) @ term.coefficients
        ends = grid[[np.argmax(log_noise), np.argmin(log_noise)]]
        where = [axis.place((one - axis.low) / axis.extent) for one in ends.tolist()]
    ratio = term.ratio(*ends)
    if ratio[0] < 1:  # only of a gap, whose ends have an order
        ratio, where = term.ratio(*ends[::-1]), where[::-1]
    fact = Fact("noise", f"varies with {axis.name}", *ratio, evidence=HOW)
    times, low, high = (number(one, 2) for one in ratio)
    name, times = axis.name, f"is {times} times as large"
    if term.form == GAP:
        text = f"{times} in rows that {where[0]} of {name} as in those that {where[1]}"
    elif term.form == "linear":
        rises = ends[0] > ends[1]
        word, most, least = (
            ("grows", "highest", "lowest") if rises else ("shrinks", "lowest", "highest")
        )
        fact = Fact("noise", f"{word} with {name}", *ratio, evidence=HOW)
        text = f"{word} with {name}: it {times} where {name} is {most} as where it is {least}"
    elif term.form == "levels":
        text = f"differs between levels of {name}: it {times} for {where[0]} as for {where[1]}"
    else:
        text = f"changes along {name}: it {times} at {where[0]} as at {where[1]}"
    return fact, f"{noise} {text} ({low} to {high})."
