"""Base of the optimisers that are written as one update per parameter.

``foreach`` is accepted and takes the same path: the numbers are the same, the operators are called one by one.
"""
from .. import _core as core
from .optimizer import Optimizer, _check_capturable, _evaluate, _real, _restore_steps, _step_counter, _use_grad_for_differentiable


class PerTensorOptimizer(Optimizer):
    """Subclasses give ``_group_defaults`` (options that old files lack), ``_init_state`` and ``_update``."""

    _group_defaults = {}
    _real_state = ()        # names of state tensors that complex parameters see as real views

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._group_defaults.items():
                group.setdefault(name, value)
        _restore_steps(self)

    def _init_state(self, p, group):
        """The state of a parameter at its first step."""
        raise NotImplementedError

    def _update(self, p, grad, state, group):
        """Change ``p``; everything complex has been made real."""
        raise NotImplementedError

    @_use_grad_for_differentiable
    def step(self, closure=None):
        loss = _evaluate(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._step_one(p, p.grad, group)
        return loss

    def _step_one(self, p, grad, group):
        if grad.is_sparse:
            raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")
        if len(self.state[p]) == 0:
            self.state[p].update(self._init_state(p, group))
        state = self.state[p]
        _check_capturable(group.get("capturable", False), p, state["step"])
        state["step"] += 1
        grad = -grad if group.get("maximize") else grad
        grad = self._decay(p, grad, group)
        if p.is_complex():
            state = dict(state, **dict(zip(self._real_state, _real(*(state.get(n) for n in self._real_state)))))
            p, grad = _real(p, grad)
        self._update(p, grad, state, group)

    @staticmethod
    def _decay(p, grad, group):
        """Weight decay: into the gradient, or straight into the parameter where it is decoupled."""
        decay = group.get("weight_decay", 0)
        if decay == 0:
            return grad
        if group.get("decoupled_weight_decay"):
            p.mul_(1 - group["lr"] * decay)
            return grad
        return grad.add(p, alpha=decay)


def zeros(p):
    return core.zeros_like(p, memory_format=core.preserve_format)


step_counter = _step_counter
