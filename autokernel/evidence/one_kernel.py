"""The evaluation of one kernel that the user names."""

from collections.abc import Iterable, Sequence

import numpy as np
from sklearn.utils.validation import _get_feature_names

from autokernel.data.checks import check_training_data
from autokernel.evidence.criteria import Criterion
from autokernel.evidence.evaluation import Evaluation
from autokernel.evidence.evaluator import Evaluator
from autokernel.expression import Expression, parse_expression
from autokernel.kernels import (
    BASE_KERNELS,
    BaseKernel,
    KernelParameter,
    Operator,
    Priors,
    check_priors,
)
from autokernel.typing import FloatArray
from autokernel.validation import check_seed


def evaluate_kernel(
    expression: str | Expression,
    X: FloatArray,
    y: FloatArray,
    *,
    criterion: str | Criterion = "laplace",
    priors: str | Priors = "default",
    base_kernels: Iterable[str | BaseKernel] = (),
    operators: Iterable[str | Operator] = (),
    random_state: int | np.random.RandomState | None = 0,
) -> Evaluation:
    """Fit the parameters of one kernel and score it.

    The data are not scaled. The default priors are meant for columns in the unit interval and a
    target of zero mean and unit variance: scale the data first, or pass other priors.

    Parameters
    ----------
    expression : str or Expression
        Kernel to fit, such as ``"LIN[0] * PER[0] + SE[0]"``, or ``"NOISE"`` for noise alone. A
        column is a zero-based index or, where ``X`` is a data frame, a name.
    X : array-like of shape (n_samples, n_features)
        Inputs, which are not scaled.
    y : array-like of shape (n_samples,)
        Targets, which are not scaled. The mean function of the model is zero.
    criterion : {"laplace", "importance", "bic", "aic", "loo", "cv"} or Criterion
        Definition of ``score``, which is in nats; larger is better. ``"laplace"`` is the log
        evidence by Laplace's method at the best mode; for noise alone it is exact. ``"importance"``
        is the log evidence by importance sampling around the best modes found; it takes some 200 to
        2000 likelihood calls more and gives ``standard_error`` and ``pareto_k``. ``"bic"`` and
        ``"aic"`` are the log likelihood at the best mode less a penalty (:class:`BIC`,
        :class:`AIC`). ``"loo"`` and ``"cv"`` are the log predictive density of rows left out one by
        one (:class:`LeaveOneOut`) or fold by fold (:class:`CrossValidation`). An object such as
        ``CrossValidation(cv=10)`` sets the parameters of its criterion.
    priors : {"default", "paper"} or mapping of str to (shape, rate)
        Gamma priors by parameter name. A mapping replaces entries of the default.
    base_kernels, operators : iterable
        Your own base kernels and operators that the expression may use, as for
        :func:`parse_expression`.
    random_state : int, RandomState or None
        Source of the random starting points.

    Returns
    -------
    Evaluation
        The fit, its score and their cost. A kernel that cannot be fitted raises no error: its
        ``score`` is ``-inf`` and ``status`` gives the reason.

    Raises
    ------
    ExpressionSyntaxError
        If the text cannot be read.
    ValueError
        If the data, the criterion or the priors are not valid, if the data cannot be split as the
        criterion requires, or if ``X`` lacks a column of the expression.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> fit = evaluate_kernel("SE[0]", X, np.sin(6 * X[:, 0]), random_state=0)
    >>> fit.status, fit.n_params
    ('ok', 3)
    """
    base_kernels, operators = tuple(base_kernels), tuple(operators)
    if not isinstance(expression, (str, Expression)):
        raise TypeError(
            f"expression must be a str such as 'SE[0]' or an Expression, got "
            f"{type(expression).__name__}: the order is evaluate_kernel(expression, X, y)"
        )
    names = _get_feature_names(X)
    X, y = check_training_data(X, y)
    expression = check_expression(
        expression,
        names,
        n_features=X.shape[1],
        base_kernels=base_kernels,
        operators=operators,
    )
    own = [one for one in (*base_kernels, *operators) if not isinstance(one, str)]
    known = parameters_of((*BASE_KERNELS.values(), *own, *expression.nodes))
    evaluator = Evaluator(
        X,
        y,
        priors=check_priors(priors, parameters=known.values()),
        seed=check_seed(random_state),
        criterion=criterion,
    )
    return evaluator(expression)


def parameters_of(
    declared: Iterable[BaseKernel | Operator | Expression],
) -> dict[str, KernelParameter]:
    """Return the parameters that kernels, operators or nodes declare, by name."""
    return {parameter.name: parameter for one in declared for parameter in one.parameters}


def check_expression(
    expression: str | Expression,
    feature_names: Sequence[str] | None,
    *,
    n_features: int,
    argument: str = "expression",
    base_kernels: Iterable[str | BaseKernel] = (),
    operators: Iterable[str | Operator] = (),
) -> Expression:
    """Parse an expression if it is a text, and check that the data have its columns.

    Raises
    ------
    ExpressionSyntaxError
        If the text cannot be read.
    TypeError
        If ``expression`` is neither a text nor an expression.
    ValueError
        If a column is not below ``n_features``.
    """
    if not isinstance(expression, (str, Expression)):
        raise TypeError(
            f"{argument} must be a str such as 'SE[0] + LIN[0]' or an Expression, "
            f"got {expression!r}"
        )
    if isinstance(expression, str):
        expression = parse_expression(
            expression, feature_names, base_kernels=base_kernels, operators=operators
        )
    beyond = [
        node
        for node in expression.subtrees()
        if node.column is not None and node.column >= n_features
    ]
    if beyond:
        raise ValueError(
            f"{argument} must use columns below n_features={n_features}, got {beyond[0]}"
        )
    return expression
