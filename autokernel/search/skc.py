"""Scalable kernel composition, the greedy search on intervals of the evidence."""

from typing import ClassVar

from autokernel.search.greedy import Greedy


class SKC(Greedy):
    """Scalable kernel composition: compositional kernel search with bounds instead of scores.

    Kernels are evaluated on up to 4096 rows, where an exact search would take hours. The score of a
    kernel is a lower bound by few inducing points, and ``search_history_["upper_bound"]`` has an
    upper bound. As long as the two enclose the best score so far, the number of inducing points is
    doubled, up to ``n_inducing``; a kernel that cannot win is dropped earlier. The best kernels are
    then fitted to all rows as after any other search.

    Notes
    -----
    Kim and Teh (2018), *Scaling up the Automatic Statistician: scalable structure discovery using
    Gaussian processes*. The paper scores by the Bayesian information criterion:
    ``AutoKernelGPRegressor(strategy="skc", criterion="bic")``. It refines all kernels of a round
    together; here they are refined one after the other, against the best one before the round or
    the batch. Operations apply to any part of a kernel, as in :class:`Greedy`.
    """

    scores_by_bounds: ClassVar[bool] = True
