"""Autograd functions that modules use internally."""
from ...autograd import Function


class BackwardHookFunction(Function):
    """Identity: one node through which several tensors pass, so that a hook can watch their gradients together."""

    @staticmethod
    def forward(ctx, *args):
        ctx.mark_non_differentiable(*[a for a in args if not a.requires_grad])
        return args

    @staticmethod
    def backward(ctx, *args):
        return args
