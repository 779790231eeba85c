"""Anomaly detection: where a failing backward came from, and NaN checks."""
import warnings

from .. import _core as core

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Switch anomaly detection on or off, at once; as a context manager it comes back afterwards."""

    def __init__(self, mode, check_nan=True):
        self.prev = core.is_anomaly_enabled()
        self.prev_check_nan = core.is_anomaly_check_nan_enabled()
        core.set_anomaly_enabled(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *args):
        core.set_anomaly_enabled(self.prev, self.prev_check_nan)


class detect_anomaly:
    """Anomaly detection for a while: backward names the forward call that failed, and NaN gradients raise."""

    def __init__(self, check_nan=True):
        self.prev = core.is_anomaly_enabled()
        self.check_nan = check_nan
        self.prev_check_nan = core.is_anomaly_check_nan_enabled()
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
                      stacklevel=2)

    def __enter__(self):
        core.set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *args):
        core.set_anomaly_enabled(self.prev, self.prev_check_nan)
