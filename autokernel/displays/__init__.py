"""Pictures in the manner of scikit-learn's displays; they need matplotlib."""

from autokernel.displays.calibration import CalibrationDisplay
from autokernel.displays.effects import EffectsDisplay
from autokernel.displays.forecast import ForecastDisplay

__all__ = ["CalibrationDisplay", "EffectsDisplay", "ForecastDisplay"]
