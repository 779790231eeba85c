"""Adaptive softmax (Grave et al., 2016): frequent classes are cheap, rare ones go through smaller projections."""
import itertools
from collections import namedtuple

from ... import _core as core
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Classes 0 .. cutoffs[0]-1 in the head, each later interval in a cluster of its own."""

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (cutoffs != sorted(cutoffs) or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1 or len(set(cutoffs)) != len(cutoffs)
                or any(int(c) != c for c in cutoffs)):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is "
                             "between 1 and n_classes-1")
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = cutoffs + [n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(itertools.pairwise(self.cutoffs)):
            hidden = int(in_features // div_value ** (i + 1))
            self.tail.append(Sequential(Linear(in_features, hidden, bias=False, device=device, dtype=dtype),
                                        Linear(hidden, high - low, bias=False, device=device, dtype=dtype)))

    def reset_parameters(self):
        self.head.reset_parameters()
        for projection, out in self.tail:
            projection.reset_parameters()
            out.reset_parameters()

    @staticmethod
    def _check(input, target):
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.dim() == 1 and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != target.dim() + 1:
            raise RuntimeError(f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with size "
                               f"{input.size()}")

    def forward(self, input_, target_):
        self._check(input_, target_)
        batched = target_.dim() > 0
        input, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        found = 0
        output = input.new_zeros(target.size(0))
        in_head = target.new_empty(target.size(0))      # which entry of the head each row needs
        for i, (low, high) in enumerate(itertools.pairwise([0, *self.cutoffs])):
            mask = (target >= low) & (target < high)
            rows = mask.nonzero().squeeze()
            if rows.numel() == 0:
                continue
            if i == 0:
                in_head.index_copy_(0, rows, target[mask])
            else:
                in_head.index_fill_(0, rows, self.shortlist_size + i - 1)
                log_p = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
                output.index_copy_(0, rows, log_p.gather(1, (target[mask] - low).unsqueeze(1)).squeeze(1))
            found += rows.numel()
        if found != target.size(0):
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                               f"{target.max().item()}] were found. ")
        output += F.log_softmax(self.head(input), dim=1).gather(1, in_head.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input, head_output):
        """Log-probabilities of all classes."""
        out = input.new_empty((head_output.size(0), self.n_classes))
        head = F.log_softmax(head_output, dim=1)
        out[:, :self.shortlist_size] = head[:, :self.shortlist_size]
        for i, (low, high) in enumerate(itertools.pairwise(self.cutoffs)):
            cluster = F.log_softmax(self.tail[i](input), dim=1)
            out[:, low:high] = cluster + head[:, self.shortlist_size + i].unsqueeze(1)
        return out

    def log_prob(self, input):
        """Log-probabilities of all classes for every row."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """The most probable class of every row; full probabilities only where the head points to a cluster."""
        head = self.head(input)
        output = core.argmax(head, dim=1)
        elsewhere = output >= self.shortlist_size
        if not elsewhere.any():
            return output
        if elsewhere.all():
            return core.argmax(self._get_full_log_prob(input, head), dim=1)
        output[elsewhere] = core.argmax(self._get_full_log_prob(input[elsewhere], head[elsewhere]), dim=1)
        return output
