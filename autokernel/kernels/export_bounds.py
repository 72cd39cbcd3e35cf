"""Bounds of exported hyperparameters."""


def around(value: float) -> tuple[float, float]:
    """Five decades to either side, as scikit-learn's own default bounds are around 1."""
    return (value * 1e-5, value * 1e5)
