"""Averages of a model's weights over training: stochastic weight averaging and exponential moving averages."""
import itertools
import math
import warnings
from copy import deepcopy

from .. import _core as core
from ..nn import Module
from ..nn.modules.batchnorm import _BatchNorm
from .lr_scheduler import LRScheduler, _format_param

__all__ = ["AveragedModel", "update_bn", "SWALR", "get_ema_multi_avg_fn", "get_swa_multi_avg_fn", "get_ema_avg_fn", "get_swa_avg_fn"]


def _check_decay(decay):
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay=0.999):
    """A function that moves a list of averages towards the current values by 1 - decay."""
    _check_decay(decay)

    def ema_update(ema_param_list, current_param_list, _):
        with core.no_grad():
            for average, now in zip(ema_param_list, current_param_list):
                if average.is_floating_point() or average.is_complex():
                    average.lerp_(now, 1 - decay)
                else:
                    average.copy_(average * decay + now * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn():
    """A function that takes one more value into a list of equal-weight averages."""
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        with core.no_grad():
            for average, now in zip(averaged_param_list, current_param_list):
                average.add_((now - average) / (num_averaged + 1))

    return swa_update


def get_ema_avg_fn(decay=0.999):
    """The exponential moving average of one parameter."""
    _check_decay(decay)

    def ema_update(ema_param, current_param, num_averaged):
        with core.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """The equal-weight average of one parameter."""
    def swa_update(averaged_param, current_param, num_averaged):
        with core.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of ``model`` whose parameters are averages; ``update_parameters`` takes the model's current values into them."""

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", core.tensor(0, dtype=core.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _averaged(self, model):
        return itertools.chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()

    def update_parameters(self, model):
        own = [p.detach() for p in self._averaged(self.module)]
        current = [p.detach().to(a.device) for a, p in zip(own, self._averaged(model))]
        if self.n_averaged == 0:
            for a, p in zip(own, current):
                a.copy_(p)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(own, current, self.n_averaged)
        else:
            average = self.avg_fn or get_swa_avg_fn()
            for a, p in zip(own, current):
                a.copy_(average(a, p, self.n_averaged))
        if not self.use_buffers:
            for a, b in zip(self.module.buffers(), model.buffers()):
                a.detach().copy_(b.detach().to(a.device))
        self.n_averaged += 1


def update_bn(loader, model, device=None):
    """Compute the running statistics of all batch norms afresh, over the data of ``loader``."""
    norms = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not norms:
        return
    was_training = model.training
    model.train()
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    with core.no_grad():
        for batch in loader:
            batch = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(batch if device is None else batch.to(device))
    for m, momentum in norms.items():
        m.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the rates to ``swa_lr`` and keeps them there."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for lr, group in zip(_format_param("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _set_anneal_func(self, anneal_strategy):
        self._anneal_strategy = anneal_strategy
        self.anneal_func = self._cosine_anneal if anneal_strategy == "cos" else self._linear_anneal

    @staticmethod
    def _linear_anneal(t):
        return t

    @staticmethod
    def _cosine_anneal(t):
        return (1 - math.cos(math.pi * t)) / 2

    @staticmethod
    def _get_initial_lr(lr, swa_lr, alpha):
        """The rate before annealing, from the current one."""
        return swa_lr if alpha == 1 else (lr - alpha * swa_lr) / (1 - alpha)

    def get_lr(self):
        if not self._get_lr_called_within_step:
            warnings.warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", UserWarning, stacklevel=2)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = (self.anneal_func(max(0, min(1, s / max(1, self.anneal_epochs)))) for s in (step - 1, step))
        return [group["swa_lr"] * now + self._get_initial_lr(group["lr"], group["swa_lr"], before) * (1 - now)
                for group in self.optimizer.param_groups]

    def state_dict(self):
        return {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "anneal_func")}

    def load_state_dict(self, state_dict):
        self.__dict__.update(state_dict)
        self._set_anneal_func(self._anneal_strategy)
