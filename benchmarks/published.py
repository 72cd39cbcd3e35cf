"""What others have published on the same data and protocol.

SOT is Bitzer, Meister and Zimmer (2022), whose means are over 30 seeds on the standardised scale;
ABCD is Lloyd, Duvenaud, Grosse, Tenenbaum and Ghahramani (2014), in the units of each series.
Methods have the names that they have in our CSV files where we have them too: ``boms`` is what SOT
calls Hellinger.
"""

from collections.abc import Mapping

Table = Mapping[str, Mapping[str, float]]
"""A value by data set and method."""


def _table(methods: str, rows: Mapping[str, tuple[float, ...]]) -> Table:
    """Put names to the columns of a table."""
    names = methods.split()
    return {name: dict(zip(names, row, strict=True)) for name, row in rows.items()}


TEST_RMSE = _table(  # SOT, table 5, after 50 iterations
    "sot fkl rbf",
    {
        "airline": (0.1335, 0.3614, 0.3598),
        "power_plant": (0.2362, 0.2532, 0.2507),
        "airfoil": (0.3334, 0.4356, 0.4075),
        "concrete": (0.2980, 0.3230, 0.3617),
    },
)
TEST_NLL = _table(  # SOT, table 5, after 50 iterations
    "sot fkl rbf",
    {
        "airline": (-0.7069, 0.4712, 0.3978),
        "power_plant": (-0.0693, 0.1755, 0.0419),
        "airfoil": (0.0855, 0.6469, 0.2985),
        "concrete": (0.2787, 4.2150, 0.2743),
    },
)
TEST_NLL_AT_EQUAL_TIME = _table(  # SOT, table 2, at the end of the shortest run of SOT
    "greedy boms tree_gep sot",
    {
        "airline": (-0.4042, 0.3368, -0.5594, -0.7015),
        "power_plant": (-0.0053, 0.0580, -0.0241, -0.0661),
        "airfoil": (0.0837, 0.9080, 0.1826, 0.1006),
        "concrete": (0.3254, 0.6633, 0.2812, 0.2872),
    },
)
PROPOSING_TO_EVALUATING = _table(  # SOT, table 3, CPU seconds
    "boms sot",
    {
        "airline": (54.21, 0.825),
        "power_plant": (16.51, 0.278),
        "airfoil": (18.77, 0.25),
        "concrete": (16.81, 0.213),
    },
)
META_RMSE = _table(  # SOT, table 1, nats per sample, 500 kernels from 500
    "sot hellinger knn mean",
    {
        "airline": (0.3464, 0.3569, 0.3813, 0.4013),
        "power_plant": (0.0137, 0.1912, 0.2236, 0.2925),
        "airfoil": (0.0936, 0.1773, 0.2231, 0.3769),
        "concrete": (0.0451, 0.2489, 0.1806, 0.2912),
    },
)
EXTRAPOLATION_RMSE = _table(  # ABCD, first 90 % of each series to train, in time order
    "abcd_accuracy abcd_interpretability spectral_kernels trend_cyclical_irregular "
    "multiple_kernel_learning change_point se linear eureqa",
    {
        "airline": (16.7, 30.7, 14.6, 21.1, 69.2, 70.1, 471, 72.2, 47.3),
        "solar": (0.383, 0.482, 0.460, 0.394, 0.382, 0.395, 0.614, 0.409, 1.01),
        "mauna": (1.93, 1.37, 1.81, 1.77, 2.39, 2.39, 2.54, 4.37, 3.49),
        "wheat": (45.6, 50.5, 128, 128, 128, 42.8, 130, 43.6, 56.0),
        "temperature": (2.76, 2.76, 2.83, 2.75, 3.71, 3.71, 7.48, 4.16, 3.53),
        "internet": (5160, 10450, 17450, 11040, 21090, 21520, 21330, 25440, 32280),
        "call_centre": (40.7, 13.7, 151, 24.5, 24.5, 48.3, 309, 393, 6732),
        "radio": (1.99, 1.21, 0.641, 1.48, 2.01, 2.01, 5.43, 2.76, 0.903),
        "gas_production": (3036, 6217, 4894, 4601, 8795, 9544, 8657, 8025, 8277),
        "sulphuric": (29.1, 42.0, 41.5, 52.4, 46.9, 65.5, 31.5, 102, 57.4),
        "unemployment": (268, 251, 442, 277, 212, 205, 234, 124, 276),
        "births": (29.1, 27.5, 42.4, 42.8, 50.8, 50.7, 45.7, 53.8, 53.1),
        "wages": (14.9, 19.7, 17.9, 15.3, 15.5, 28.7, 26.3, 20.9, 4.92),
    },
)
EXTRAPOLATION_N_TRAIN = {
    "airline": 129,
    "solar": 361,
    "mauna": 490,
    "wheat": 333,
    "temperature": 899,
    "internet": 909,
    "call_centre": 162,
    "radio": 216,
    "gas_production": 428,
    "sulphuric": 415,
    "unemployment": 367,
    "births": 893,
    "wages": 661,
}


def best_extrapolation(series: str, *, with_eureqa: bool) -> float:
    """Lowest published RMSE on a series; Eureqa, no Gaussian process, apart."""
    methods = EXTRAPOLATION_RMSE[series]
    return min(rmse for name, rmse in methods.items() if with_eureqa or name != "eureqa")
