"""Score one kernel that the user names."""

from collections.abc import Iterable, Sequence

import numpy as np
from sklearn.utils.validation import _get_feature_names

from autokernel.criteria import Criterion
from autokernel.data import check_training_data
from autokernel.evaluation.evaluator import Evaluator
from autokernel.evaluation.record import Evaluation
from autokernel.expression import Expression, parse_expression
from autokernel.kernels import BASE_KERNELS, BaseKernel, KernelParameter, Priors, check_priors
from autokernel.operators import Operator
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

    Nothing is scaled here, and the default priors are meant for columns in the unit interval and a
    target of zero mean and unit variance: scale the data first, or give other priors.

    Parameters
    ----------
    expression : str or Expression
        Such as ``"LIN[0] * PER[0] + SE[0]"``; a column is a zero-based index or, where ``X`` is a
        frame, a name.
    X : array-like of shape (n_samples, n_features)
        Inputs, used as they come.
    y : array-like of shape (n_samples,)
        Targets, used as they come. The model's mean is zero.
    criterion : {"laplace", "importance", "bic", "aic", "loo", "cv"} or Criterion
        What ``score`` is, in nats, larger is better: the log evidence by Laplace's method at the
        best mode, or by importance sampling around the best modes found, which takes some 200 to
        2000 likelihood calls more and gives ``standard_error`` and ``pareto_k``; the log likelihood
        at the best mode less a penalty (:class:`BIC`, :class:`AIC`); or the log predictive density
        of rows left out one by one (:class:`LeaveOneOut`) or fold by fold
        (:class:`CrossValidation`). An object such as ``CrossValidation(cv=10)`` has
        parameters of its own.
    priors : {"default", "paper"} or mapping of str to (shape, rate)
        Gamma priors of the parameters, by name; a mapping replaces entries of the default.
    base_kernels, operators : iterable
        Base kernels and operators of yours that the expression may name, as for
        :func:`parse_expression`.
    random_state : int, RandomState or None
        Source of the starting points.

    Returns
    -------
    Evaluation
        The fit, its score and what they cost. Never raises for a kernel that cannot be fitted:
        then ``score`` is ``-inf`` and ``status`` says why.

    Raises
    ------
    ExpressionSyntaxError
        If the text cannot be read.
    ValueError
        If the data, the criterion or the priors are not valid, the data cannot be split as the
        criterion asks, or a column is not in ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> fit = evaluate_kernel("SE[0]", X, np.sin(6 * X[:, 0]), random_state=0)
    >>> fit.status, fit.n_params
    ('ok', 3)
    """
    names = _get_feature_names(X)
    X, y = check_training_data(X, y)
    expression = check_expression(
        expression,
        names,
        n_features=X.shape[1],
        base_kernels=base_kernels,
        operators=operators,
    )
    known = {**parameters_of(BASE_KERNELS.values()), **parameters_of(expression.nodes)}
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
    """Read an expression, if it is a text, and check that its columns are there.

    Raises
    ------
    ExpressionSyntaxError
        If the text cannot be read.
    TypeError
        If it is neither a text nor an expression.
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
