"""Fits to more rows than a search or exact inference can treat."""

from autokernel.many_rows.all_rows import fit_all_rows
from autokernel.many_rows.approximation import (
    APPROXIMATIONS,
    AUTO,
    ByStateSpace,
    approximation_for,
    approximation_of_kernels,
    latest_rows,
    n_held_out,
    rows_of_groups,
    rows_of_stages,
    shuffled_rows,
)
from autokernel.many_rows.bounds import BoundedEvaluator
from autokernel.many_rows.further import ManyRows
from autokernel.many_rows.left_out import no_gain_seen_by
from autokernel.many_rows.terms import with_rough_term
