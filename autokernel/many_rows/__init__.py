"""Fits to more rows than a search or exact inference can treat."""

from autokernel.many_rows.all_rows import fit_all_rows, race_exactly
from autokernel.many_rows.approximation import (
    APPROXIMATIONS,
    Approximation,
    ByStateSpace,
    approximation_for,
    approximation_of_kernels,
    latest_rows,
    n_rows_to_search,
    rows_of_groups,
    shuffled_rows,
)
from autokernel.many_rows.bounds import BoundedEvaluator
from autokernel.many_rows.climb import ManyRows
