"""Bounds of exported hyperparameters."""


def around(value: float) -> tuple[float, float]:
    """Return bounds five decades to either side, like scikit-learn's default bounds around 1."""
    return (value * 1e-5, value * 1e5)
