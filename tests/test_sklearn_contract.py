"""The checks that scikit-learn makes of every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from autokernel import AutoKernelGPRegressor


@parametrize_with_checks([AutoKernelGPRegressor(n_iter=1, max_leaves=3, random_state=0)])
def test_estimator_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
