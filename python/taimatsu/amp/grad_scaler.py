"""GradScaler: losses are scaled up so that small gradients survive half precision; steps with infinite gradients are skipped."""
import warnings
from collections import abc, defaultdict
from enum import Enum

from .. import _core as core
from .._core import Tensor

__all__ = ["OptState", "GradScaler"]


class OptState(Enum):
    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh():
    return {"stage": OptState.READY, "found_inf": 0.0}


class GradScaler:
    """Scales losses; the scale halves after a step with infinite gradients and doubles after enough good ones."""

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled:
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale = None
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker = None
        self._per_optimizer_states = defaultdict(_fresh)

    def _need_scale(self, function):
        if self._scale is None:
            raise AssertionError(f"Attempted {function} but _scale is None.  This may indicate your script did not use "
                                 "scaler.scale(loss or outputs) earlier in the iteration.")

    def scale(self, outputs):
        """``outputs``, a tensor or nested iterables of tensors, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._scale = core.full((), self._init_scale, dtype=core.float32)
                self._growth_tracker = core.full((), self._init_growth_tracker, dtype=core.int32)
            return outputs * self._scale
        if isinstance(outputs, abc.Iterable):
            parts = map(self.scale, outputs)
            return type(outputs)(parts) if isinstance(outputs, (list, tuple)) else parts
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer):
        """Divide the gradients of ``optimizer`` by the scale; step does it where this was not called."""
        if not self._enabled:
            return
        self._need_scale("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = self._scale.double().reciprocal().float()
        finite = True
        with core.no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if param.grad is None:
                        continue
                    if param.grad.dtype == core.float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    finite = finite and bool(core.isfinite(param.grad).all())
                    param.grad.mul_(inverse)
        state["found_inf"] = 0.0 if finite else 1.0
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """The optimizer's step, unless a gradient is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._need_scale("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        result = None if state["found_inf"] else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale=None):
        """Adapt the scale to what the steps since the last update found, or set it."""
        if not self._enabled:
            return
        self._need_scale("update")
        states = self._per_optimizer_states.values()
        if new_scale is not None:
            self._scale.copy_(core.as_tensor(new_scale, dtype=core.float32))
        elif not any(s["stage"] is not OptState.READY for s in states):
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(s["found_inf"] for s in states):
            self._scale.mul_(self._backoff_factor)
            self._growth_tracker.fill_(0)
        else:
            good = int(self._growth_tracker) + 1
            if good == self._growth_interval:
                grown = self._scale * self._growth_factor
                if bool(core.isfinite(grown)):
                    self._scale.copy_(grown)
                good = 0
            self._growth_tracker.fill_(good)
        self._per_optimizer_states = defaultdict(_fresh)

    def get_scale(self):
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def is_enabled(self):
        return self._enabled

    def state_dict(self):
        if not self._enabled:
            return {}
        tracker = self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker)
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": tracker}

    def load_state_dict(self, state_dict):
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.")
        self._init_scale = state_dict["scale"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._init_growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)
