"""The evaluations of a search, in order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from autokernel.evidence import Estimate, Evaluation
from autokernel.expression import Expression
from autokernel.typing import FloatArray

PATIENCE = 30  # kernels without a gain after which a search has converged


class Phase(StrEnum):
    """The part of the search in which a kernel was proposed."""

    INITIAL = "initial"
    SEARCH = "search"
    PRUNING = "pruning"
    RESCORING = "rescoring"  # on other rows, or with another noise


class StopReason(StrEnum):
    """The reason why a search ended."""

    N_ITER = "n_iter"
    MAX_TIME = "max_time"
    INTERRUPTED = "interrupted"
    CALLBACK = "callback"
    EXHAUSTED = "exhausted"
    LOCAL_MAXIMUM = "local_maximum"
    CONVERGED = "converged"


MEANINGS = {
    StopReason.N_ITER: "as many kernels as n_iter allows were evaluated",
    StopReason.MAX_TIME: "the time was over",
    StopReason.INTERRUPTED: "it was interrupted",
    StopReason.CALLBACK: "a callback ended it",
    StopReason.EXHAUSTED: "no kernel was left to try",
    StopReason.LOCAL_MAXIMUM: "no kernel one operation away from the best is expected to be better",
    StopReason.CONVERGED: "the last kernels gained less than tol, or nothing on other rows",
    "refit": "there was none",
}
"""What the reasons to end a search mean, after "the search ended: "."""
EARLY = (StopReason.MAX_TIME, StopReason.INTERRUPTED, StopReason.CALLBACK)
CUT = (StopReason.N_ITER, *EARLY)
"""Reasons that leave open whether a kernel near the best one is better."""


def words_of(reason: str, expected: float, tol: float, *, n_near: int | None = None) -> str:
    """Say why a search ended, which left kernels that are ``expected`` to gain some nats."""
    words = MEANINGS[reason]
    if n_near is not None:
        near = f"of {n_near} kernels one operation away from the best"
        words = f"{near}, none is expected to be better"
    if np.isfinite(expected):
        words += f",\nand none further away to gain {tol:g} nats (largest: {expected:.2g})"
    return words


@dataclass(frozen=True, slots=True)
class Trial:
    """One evaluated kernel, with its phase and times."""

    evaluation: Evaluation
    proposal: Estimate  # without the start of the fit
    phase: Phase
    proposal_seconds: float  # seconds of its proposal, a share of those of the batch
    elapsed: float  # seconds from the start of the search to the end of the evaluation
    start: int = 0  # number of search trials on which its proposal was based


@dataclass
class History:
    """The trials of one search, in order; no canonical text occurs twice."""

    n_samples: float  # rows of the score, or the sum of their weights
    trials: list[Trial] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    @property
    def n_searched(self) -> int:
        """Number of trials after the initial design."""
        return sum(trial.phase == Phase.SEARCH for trial in self.trials)

    def has_converged(self, tol: float, *, max_steps: float) -> bool:
        """Return whether the last kernels searched have gained less than ``tol`` nats together.

        They are ``PATIENCE`` kernels without an estimate, or ``max_steps`` with one: these usually
        end with a local maximum. With a ``tol`` of zero the answer is no.
        """
        if not (tol and self.trials):
            return False
        best = int(np.argmax(self.scores > self.scores.max() - tol))
        later = [one for one in self.trials[best + 1 :] if one.phase == Phase.SEARCH]
        n_guesses = int(np.isnan([trial.proposal.score for trial in later]).sum())
        return n_guesses >= PATIENCE or len(later) - n_guesses >= max_steps

    def before(self, n_searched: int) -> "History":
        """Return the initial design, its pruning and the first ``n_searched`` trials after them."""
        searched = [trial for trial in self.trials if trial.phase == Phase.SEARCH]
        first = self.trials.index(searched[0]) if searched else len(self.trials)
        return History(self.n_samples, [*self.trials[:first], *searched[:n_searched]])

    @property
    def definition(self) -> tuple[tuple[object, ...], ...]:
        """All that a proposal can depend on, except for times, to the last bit."""
        return tuple(
            (
                str(trial.evaluation.expression),
                str(trial.phase),
                trial.start,
                *(float(nats).hex() for nats in (trial.proposal.score, trial.evaluation.score)),
                trial.evaluation.theta.tobytes(),
                trial.proposal.gains,
            )
            for trial in self.trials
        )

    @property
    def evaluations(self) -> list[Evaluation]:
        return [trial.evaluation for trial in self.trials]

    @property
    def scores(self) -> FloatArray:
        """Scores in nats, ``-inf`` for kernels that could not be fitted."""
        return np.array([evaluation.score for evaluation in self.evaluations])

    @property
    def best(self) -> Evaluation | None:
        """The first evaluation with the highest score, None while there is none."""
        return max(self.evaluations, key=lambda evaluation: evaluation.score, default=None)

    def best_first(self, phase: Phase | None = None) -> list[Evaluation]:
        """Sort the evaluations with a finite score, or those of one phase, the best first."""
        of_phase = [trial.evaluation for trial in self.trials if phase in (None, trial.phase)]
        scored = [evaluation for evaluation in of_phase if np.isfinite(evaluation.score)]
        return sorted(scored, key=lambda evaluation: -evaluation.score)

    def canonical_texts(self) -> frozenset[str]:
        """Collect the canonical texts of all evaluated kernels."""
        return frozenset(evaluation.expression.canonical for evaluation in self.evaluations)

    def without_known(self, kernels: Iterable[Expression | Estimate]) -> list[Estimate]:
        """Return the kernels that have not been evaluated, one for each canonical text."""
        every = (one if isinstance(one, Estimate) else Estimate(one) for one in kernels)
        known, new = self.canonical_texts(), {one.expression.canonical: one for one in every}
        return [one for text, one in new.items() if text not in known]

    def to_columns(self, text_of: Callable[[Expression], str] = str) -> dict[str, npt.NDArray[Any]]:
        """Build a dict of arrays (n_trials,), ready for ``pandas.DataFrame``."""
        fits, scores = self.evaluations, self.scores
        proposals = [trial.proposal for trial in self.trials]
        return {
            "kernel": np.array([text_of(fit.expression) for fit in fits], dtype=object),
            "score": scores,
            "log_prior": _column(fits, "log_structure_prior"),
            "score_per_sample": scores / self.n_samples,
            "best_score": np.maximum.accumulate(scores),
            "n_leaves": np.array([fit.expression.n_leaves for fit in fits], dtype=int),
            "n_params": _column(fits, "n_params").astype(int),
            "phase": np.array([str(trial.phase) for trial in self.trials], dtype=object),
            "status": np.array([fit.status for fit in fits], dtype=object),
            "fit_seconds": _column(fits, "seconds"),
            "proposal_seconds": _column(self.trials, "proposal_seconds"),
            "elapsed": _column(self.trials, "elapsed"),
            "estimate": _column(proposals, "score"),
            "expected_improvement": _column(proposals, "expected"),
            "standard_error": _column(fits, "standard_error"),
            "pareto_k": _column(fits, "pareto_k"),
            "upper_bound": _column(fits, "upper_bound"),
        }


def _column(records: Sequence[Evaluation | Estimate | Trial], name: str) -> npt.NDArray[Any]:
    return np.array([getattr(record, name) for record in records])


def columns_of(
    histories: Sequence[History], text_of: Callable[[Expression], str]
) -> dict[str, npt.NDArray[Any]]:
    """Join the columns of searches on other rows, with their numbers in the column ``row_set``."""
    columns = [history.to_columns(text_of) for history in histories]
    for number, own in enumerate(columns):
        own["row_set"] = np.full(len(own["score"]), number)
    return {name: np.concatenate([own[name] for own in columns]) for name in columns[0]}
