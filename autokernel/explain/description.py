"""A fitted model in sentences, each of which states a fact about the fitted function.

A component is described by what its curve does, and named after its kernel only where it repeats.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np

from autokernel.explain.axes import Axis
from autokernel.explain.checks import FACTOR_FOR_LOG, can_leave_out, checked, of_outliers
from autokernel.explain.components import ComponentFacts
from autokernel.explain.decomposition import (
    SMALL,
    TEXT_OF_REST,
    Component,
    Decomposition,
    ExplainedFunction,
    Interaction,
)
from autokernel.explain.facts import Fact
from autokernel.explain.interactions import said_of
from autokernel.explain.overview import Overview
from autokernel.explain.parts import Part
from autokernel.explain.sentences import Said, Sentences
from autokernel.explain.tables import Table
from autokernel.explain.words import listing
from autokernel.expression import IDENTITY
from autokernel.model import FittedModel
from autokernel.typing import FloatArray

MAX_SHORT = 3  # components in a short description


class Description:
    """A fitted model in words: one explanation for sentences, tables and pictures.

    The ``axes`` are its columns with their units. The search was ``cut`` for a reason, if it was.
    """

    def __init__(
        self,
        model: FittedModel,
        axes: Sequence[Axis],
        unit: str = "",
        *,
        target_name: str | None = None,
        cut: str = "",
        has_tried_log: bool = False,
    ) -> None:
        self._model, self.axes, self._cut, self._has_tried_log = model, axes, cut, has_tried_log
        self.scale = model.scale.name
        self.explained, target = ExplainedFunction(model), target_name or "the target"
        self._say = Sentences(axes, target=target, unit=unit, scale=model.scale)
        self.names = self._say.names

    def decompose(self, X: FloatArray) -> Decomposition:
        """Compute the components at inputs (n, n_features)."""
        explained, inputs = self.explained, self._model.columns.scaled(self._model.scaled(X)).filled
        components = []
        for number, part in enumerate(self.parts):
            mean, std = explained.mean_and_std(part, inputs[:, part.column])
            kernel = part.expression.to_text(self._model.columns.feature_names)
            of, text = (self.names[part.column],), self.text(number)
            components.append(Component(kernel, text, mean, std, part.share, of))
        for number, pair in enumerate(self.interactions, start=len(self.parts)):
            mean = explained.interaction(pair.columns, inputs[:, pair.columns])
            own, unknown = tuple(self.names[one] for one in pair.columns), np.full(len(X), np.nan)
            text, kernel = self.text(number), " * ".join(own)
            components.append(Component(kernel, text, mean, unknown, pair.share, own))
        components.sort(key=lambda one: -one.share)
        if explained.is_averaged or explained.interactions:
            found = sum((one.mean for one in components), start=np.full(len(X), explained.constant))
            mean, std = explained.rest(inputs, found)
            share = 1 - sum(one.share for one in components)
            components.append(Component("", TEXT_OF_REST, mean, std, share))
        constant = self._model.scale.shift + explained.constant
        noise = self._model.noise_variance**0.5
        if self.scale == "log":
            constant = float(np.exp(constant))
            components = [replace(one, mean=np.exp(one.mean)) for one in components]
        return Decomposition(constant, noise, components, self.scale)

    @cached_property
    def interactions(self) -> list[Interaction]:
        """The pairs of columns whose effects depend on each other enough to be worth a sentence."""
        return [one for one in self.explained.interactions if one.share >= SMALL]

    def share(self, number: int) -> float:
        """Return the share of a component or, after these, of an interaction."""
        n = len(self.parts)
        one = self.parts[number] if number < n else self.interactions[number - n]
        return one.share

    @property
    def shown(self) -> list[int]:
        """The numbers of what is described, parts before interactions, the largest share first."""
        n = len(self.parts)
        every = [*range(self.explained.n_large), *range(n, n + len(self.interactions))]
        return sorted(every, key=lambda number: -self.share(number))

    @property
    def parts(self) -> list[Part]:
        """The components of the best kernel, as parts of it."""
        return self.explained.parts

    def text(self, number: int) -> str:
        """Describe a component of the best kernel in one sentence."""
        return self._component(number)[0][1]

    def along(self, number: int, n_points: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute a component on a grid of its column.

        Returns
        -------
        values : ndarray of shape (n_points,)
            Values of the column, in its unit, over the extent of the data, evenly spaced on the
            scale on which the component acts; of categories, the numbers of the levels.
        mean, std : ndarray of shape (n_points,)
            Mean on the scale of the target, and standard deviation, of the difference from the
            average over the rows.
        """
        part, explained = self.parts[number], self.explained
        steps = explained.steps(part, n_points)
        if part.is_of_levels:
            steps = np.unique(explained.X[:, part.column])
        axis = self.axes[part.column]
        return axis.shift + axis.scale * steps, *explained.mean_and_std(part, steps)

    def paragraphs(self) -> list[str]:
        """Describe each component, the largest share first, without those that explain little."""
        return [_in_one(self._component(number)) for number in self.shown]

    def remarks(self) -> list[str]:
        """Say what the components do not: how much small ones explain, and what does not fit."""
        small = [text for _, text in self._small()]
        return [text for text in (*small, _in_one(self._residuals)) if text]

    def overview(self) -> str:
        """Say how many components there are, how much noise, and which columns matter."""
        text = _in_one(self._overview.target())
        if not self._model.evaluation.expression.leaves:
            return text
        others = [_in_one(self._overview.columns())]
        others += [self._overview.averaging(), self._overview.best_kernel()]
        return " ".join(one for one in (text, *others, _in_one(self._search())) if one)

    def short(self) -> str:
        """Say what is largest, in at most five lines."""
        lines = [_in_one(self._overview.target())]
        for number in self.shown[:MAX_SHORT]:
            every = self._component(number)
            of_curve = takewhile(lambda one: one[0].predicate != "share", every)
            lines.append(" ".join([text for _, text in of_curve if text][:2]))
        checks = [text for _, text in self._residuals]
        return "\n".join([*lines, *checks[:1]])

    def __str__(self) -> str:
        parts = [f"{place}. {text}" for place, text in enumerate(self.paragraphs(), start=1)]
        return "\n\n".join([self.overview(), *parts, *self.remarks()])

    def table(self) -> Table:
        """Return all facts with the sentences that state them, a row for each."""
        said = [*self._overview.target(), *self._overview.columns(), *self._search()]
        for number in self.shown:
            said += self._component(number)
        said += [*self._small(), *self._residuals]
        columns: dict[str, Any] = {
            field.name: [getattr(fact, field.name) for fact, _ in said] for field in fields(Fact)
        }
        texts = [text for _, text in said]
        for number, text in enumerate(texts):
            texts[number] = text or texts[number - 1]  # several facts of one sentence
        columns["text"] = texts
        return Table(columns, shown=("predicate", "value", "low", "high", "probability", "text"))

    def _search(self) -> Iterator[Said]:
        if self._cut:
            text = f"The search was cut ({self._cut}): kernels that it has not tried may be better."
            yield Fact("search", "was cut", evidence=self._cut), text

    @cached_property
    def _held_out(self) -> tuple[FloatArray, FloatArray] | None:
        """Predictions of each row from all others, if they can be made."""
        return self._model.mixture.leave_one_out() if can_leave_out(self._model) else None

    @cached_property
    def _residuals(self) -> list[Said]:
        found, model = list(of_outliers(self._model)), self._model
        if model.target.is_constant:
            return found
        y, has_tried_log = model.target.inverse(model.mixture.data.y), self._has_tried_log
        has_tried_log |= any(one.evaluation.expression.target != IDENTITY for one in model.kernels)
        may_have_log = not has_tried_log and 0 < FACTOR_FOR_LOG * y.min() <= y.max()
        advice = f": try the log of {self._say.target}" if may_have_log else ""
        return found + list(checked(model, self._held_out, self.axes, advice))

    @cached_property
    def _components(self) -> dict[int, list[Said]]:
        """What is said of each component, filled as it is asked."""
        return {}

    def _component(self, number: int) -> list[Said]:
        if number >= len(self.parts):
            pair = self.interactions[number - len(self.parts)]
            self._components[number] = said_of(self.explained, pair, self._say)
        elif number not in self._components:
            warnings = [fact.predicate for fact, _ in self._residuals]
            part = self.parts[number]
            facts = ComponentFacts(self._model, self.explained, part, self._say, warnings)
            self._components[number] = list(facts.all())
        return self._components[number]

    def _small(self) -> Iterator[Said]:
        small = self.parts[self.explained.n_large :]
        if small:
            columns = sorted({part.column for part in small})
            names, share = [self.names[one] for one in columns], sum(part.share for part in small)
            fact = Fact(listing(names), "share", share, evidence="covariance with the fit")
            yield self._say.small(fact, len(small))

    @cached_property
    def _overview(self) -> Overview:
        has_outliers = any(fact.predicate.startswith("does not fit") for fact, _ in self._residuals)
        about = self._model, self.explained, self._say, self._held_out
        return Overview(*about, has_outliers=has_outliers)


def _in_one(said: Iterator[Said] | Sequence[Said]) -> str:
    return " ".join(text for _, text in said if text)
