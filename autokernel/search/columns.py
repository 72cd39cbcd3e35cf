"""Which of very many columns matter, by statistics that need no fit."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from autokernel.evidence import Evaluation
from autokernel.inference import ExactLikelihood, TrainingData

MAX_COLUMNS = 25  # all of which the kernels of a design, and what they may change to, can have
MAX_PAIRS = 3  # whose columns are chosen for their product


def columns_by_effect(data: TrainingData, columns: Sequence[int]) -> list[int]:
    """Sort columns by how much of the ranks of the target a parabola, or levels, explain."""
    left, ranks = {}, rankdata(data.y)
    for column in columns:
        x, levels = data.inputs.filled[:, column], data.inputs.columns[column].levels
        basis = np.vander(x - 0.5, 3) if levels is None else 1.0 * (x[:, None] == np.unique(x))
        errors = ranks - basis @ np.linalg.lstsq(basis, ranks)[0]
        left[column] = errors @ errors / max(1, len(x) - basis.shape[1])
    return sorted(columns, key=lambda column: left[column])


def columns_of_products(
    data: TrainingData, fit: Evaluation, columns: Sequence[int]
) -> frozenset[int]:
    """Find columns whose products with others are correlated with what a fit leaves unexplained.

    They are those of the most correlated pairs, out of pairs with a larger correlation than pairs
    of independent columns have. O(n_columns^2 n_samples), after leave-one-out errors in O(n^3).
    """
    errors = rankdata(ExactLikelihood(fit.expression, data).leave_one_out_errors(fit.theta)[0])
    U = rankdata(data.inputs.filled[:, list(columns)], axis=0)
    errors, U = errors - errors.mean(), U - U.mean(axis=0)
    means, squares = U.T @ U / len(U), U**2
    variances = squares.T @ squares / len(U) - means**2
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.abs((U.T * errors) @ U) / np.sqrt(variances * len(U)) / errors.std()
    upper = np.nan_to_num(np.triu(found, 1)).ravel()
    n_pairs = len(columns) * (len(columns) - 1) / 2
    largest = np.argsort(-upper)[:MAX_PAIRS]
    pairs = largest[upper[largest] ** 2 > 2 * np.log(n_pairs)]
    return frozenset(columns[number] for pair in pairs for number in divmod(pair, len(columns)))
