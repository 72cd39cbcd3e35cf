"""A fitted expression in words, in the units of the user."""

import textwrap
from collections.abc import Iterator, Sequence

import numpy as np

from autokernel.data.scaling import Scaling
from autokernel.expression import NOISE, Expression, Leaf, Operation, slots_of
from autokernel.kernels import ADD, MULTIPLY
from autokernel.model import FittedModel
from autokernel.typing import FloatArray

_CAPTION_WIDTH = 160  # largest number of characters


def describe(
    expression: Expression,
    theta: FloatArray,
    *,
    scaling: Scaling,
    feature_names: Sequence[str] | None = None,
) -> list[str]:
    """Describe each addend of a kernel in words.

    Parameters
    ----------
    expression : Expression
        Expression of the kernel.
    theta : ndarray of shape (n_params,)
        Logs of the parameters on scaled inputs.
    scaling : Scaling
        Scaling of the inputs before the fit.
    feature_names : sequence of str, optional
        Names of the columns.

    Returns
    -------
    list of str
        One phrase for each addend, such as ``"repeating every 1 x smooth over 9"``. With more than
        one column, each factor has the name of its column. For the null model, the statement that
        no structure was found.
    """
    if expression == NOISE:
        return ["no structure was found"]
    params = np.exp(theta)
    own = iter([params[entries] for _, entries in slots_of(expression)])
    writer = _Writer(own, scaling, feature_names)
    return [writer.phrase(addend) for addend in expression.terms(ADD)]


class _Writer:
    """Writes phrases for expressions, whose nodes take their parameters in order."""

    def __init__(
        self,
        params: Iterator[FloatArray],
        scaling: Scaling,
        feature_names: Sequence[str] | None,
    ) -> None:
        self._params, self._scaling, self._names = params, scaling, feature_names

    def phrase(self, expression: Expression) -> str:
        """Write the phrase of an expression that is not at the root of a sum."""
        if isinstance(expression, Leaf):
            _, scale = self._scaling.of_column(expression.column)
            words = expression.kernel.describe(next(self._params), scale=scale)
            return self._with_column(words, expression.column)
        assert isinstance(expression, Operation)  # there are these two kinds
        operator, column = expression.operator, expression.column
        if operator.commutes:
            phrases = [self.phrase(term) for term in expression.terms(operator)]
            if operator == MULTIPLY:
                return " x ".join(phrases)
            return "(" + f" {operator.symbol} ".join(phrases) + ")"
        own = next(self._params) if operator.parameters else np.empty(0)
        shift, scale = (0.0, 1.0) if column is None else self._scaling.of_column(column)
        phrases = [self.phrase(operand) for operand in expression.operands]
        words = operator.describe(own, phrases, scale=scale, shift=shift)
        return words if column is None else self._with_column(words, column)

    def _with_column(self, words: str, column: int) -> str:
        """Add the name of the column where there is more than one."""
        if len(self._scaling.scale) == 1:
            return words
        return f"{words} in {f'x{column}' if self._names is None else self._names[column]}"


def describe_model(fitted: FittedModel, feature_names: Sequence[str] | None = None) -> list[str]:
    """Describe each addend of a fitted kernel in words, the noise last.

    Columns have the names in ``feature_names``, or else those of the model.
    """
    phrases = describe(
        fitted.evaluation.expression,
        fitted.evaluation.theta,
        scaling=fitted.scaling,
        feature_names=feature_names or fitted.feature_names,
    )
    deviation = np.sqrt(fitted.noise_variance)
    return [*phrases, f"noise with standard deviation {deviation:.3g}"]


def caption(fitted: FittedModel) -> str:
    """Describe a fitted kernel in one line that fits below the name of an estimator."""
    sign = ", only " if fitted.evaluation.expression == NOISE else " + "
    return textwrap.shorten(sign.join(describe_model(fitted)), _CAPTION_WIDTH, placeholder=" …")
