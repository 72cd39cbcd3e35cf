"""Fitted models: averages over kernels and parameters, and the exported scikit-learn kernel."""

from autokernel.model.averaging import (
    KernelPosterior,
    MixtureComponent,
    PosteriorAveraging,
    certain,
    posterior_over_kernels,
    probabilities_of,
)
from autokernel.model.errors import FACTORS, NORMAL, PRIOR_LAW, SERIES_LAW, ErrorLaw
from autokernel.model.fitted import (
    NO_OUTCOMES,
    FittedModel,
    Outcomes,
    Outliers,
    condition,
    how_computed,
)
from autokernel.model.folds import (
    N_FOLDS,
    LeftOut,
    folds_of,
    leave_out,
    refit_by,
    share_explained,
    whole_counts,
)
from autokernel.model.mixture import MixturePredictor
from autokernel.model.sklearn_kernel import FeatureKernel, to_sklearn
