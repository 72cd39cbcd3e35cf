"""Likelihoods and predictions of one kernel: exact, with inducing points, from neighbours."""

from autokernel.inference.base import (
    GlobalPredictor,
    Likelihood,
    MakePredictor,
    Moments,
    Predictor,
    Term,
    log_normal,
)
from autokernel.inference.covariance import cross_covariance, diagonal_covariance, paired_covariance
from autokernel.inference.data import TrainingData
from autokernel.inference.exact import (
    ExactLikelihood,
    ExactPredictor,
    at_mode,
    exact_work,
    lack_of_memory,
)
from autokernel.inference.inducing import (
    InducingLikelihood,
    InducingPredictor,
    choose_inducing,
    upper_bound,
)
from autokernel.inference.leaf_values import LeafValues
from autokernel.inference.neighbours import (
    NeighbourLikelihood,
    NeighbourPredictor,
    draw_neighbourhoods,
)
from autokernel.inference.state_space import (
    StateSpaceLikelihood,
    StateSpacePredictor,
    has_state_space,
)
from autokernel.inference.threads import one_blas_thread
