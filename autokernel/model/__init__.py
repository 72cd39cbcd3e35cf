"""Fitted models: averages over kernels and parameters, and the exported scikit-learn kernel."""

from autokernel.model.averaging import (
    KernelPosterior,
    MixtureComponent,
    PosteriorAveraging,
    certain,
    posterior_over_kernels,
)
from autokernel.model.fitted import (
    NO_OUTCOMES,
    FittedModel,
    Outcomes,
    Outliers,
    condition,
    how_computed,
)
from autokernel.model.mixture import TAIL_SHARE, MixturePredictor, share_of_tails
from autokernel.model.sklearn_kernel import FeatureKernel, to_sklearn
