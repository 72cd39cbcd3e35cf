"""A few draws that stand for many."""

import numpy as np
from scipy.spatial.distance import cdist

from autokernel.typing import FloatArray, IntArray

_MOST_SWEEPS = 20


def support_points(draws: FloatArray, n: int) -> IntArray:
    """Choose ``n`` draws whose distribution is close to that of all.

    Parameters
    ----------
    draws : ndarray of shape (n_draws, n_params)
        Equally probable draws.
    n : int
        Number of draws to choose; a draw can be chosen several times.

    Returns
    -------
    ndarray of shape (n,)
        Indices of the chosen draws.

    Notes
    -----
    The energy distance between the chosen draws and all is minimised, greedily and then by
    exchanging one at a time (Mak & Joseph 2018, *Support points*). It is taken where the draws have
    unit covariance, so that the scales of the parameters and their correlations have no influence.
    """
    distances = _distances(draws)
    to_all = distances.mean(axis=1)
    to_chosen = np.zeros(len(draws))
    chosen: list[int] = []

    def nearest(n_chosen: int) -> int:
        """Find the draw that makes the energy distance least if it joins the chosen ones."""
        excess = n_chosen * to_all - to_chosen
        return int(np.argmin(np.round(excess, 10)))  # in one dimension there are ties

    for number in range(1, n + 1):
        chosen.append(nearest(number))
        to_chosen += distances[chosen[-1]]
    for _ in range(_MOST_SWEEPS):
        before = list(chosen)
        for place, old in enumerate(before):
            to_chosen -= distances[old]
            chosen[place] = nearest(n)
            to_chosen += distances[chosen[place]]
        if chosen == before:
            break
    return np.sort(chosen)


def _distances(draws: FloatArray) -> FloatArray:
    """Compute the distances between draws after a map that makes their covariance the identity."""
    left, scales, _ = np.linalg.svd(draws - draws.mean(axis=0), full_matrices=False)
    varying = scales > 1e-9 * max(1.0, scales[0])
    return cdist(left[:, varying], left[:, varying])
