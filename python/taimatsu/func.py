"""torch.func: modules as functions of their parameters."""
from .nn import Module
from .nn.utils.stateless import functional_call

__all__ = ["functional_call", "stack_module_state"]


def stack_module_state(models):
    """(parameters, buffers) of several models of one kind, stacked along a new first dimension."""
    from . import _core as core
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not all(isinstance(m, Module) and type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(dicts):
        return {k: core.stack([d[k] for d in dicts]).detach().requires_grad_(dicts[0][k].requires_grad) for k in dicts[0]}

    return stacked([dict(m.named_parameters()) for m in models]), stacked([dict(m.named_buffers()) for m in models])
