"""A small GPT over bytes, in plain PyTorch: the usual decoder (pre-norm blocks, causal attention, tied embedding and head)."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    layers: int = 4
    heads: int = 4
    dim: int = 128
    context: int = 128
    vocabulary: int = 256
    dropout: float = 0.0


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.dropout = config.heads, config.dropout
        self.qkv = nn.Linear(config.dim, 3 * config.dim)
        self.out = nn.Linear(config.dim, config.dim)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(x).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(b, t, c))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(config.dim), Attention(config)
        self.norm2 = nn.LayerNorm(config.dim)
        self.mlp = nn.Sequential(nn.Linear(config.dim, 4 * config.dim), nn.GELU(), nn.Linear(4 * config.dim, config.dim))
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.mlp(self.norm2(x)))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.dim)
        self.positions = nn.Embedding(config.context, config.dim)
        self.drop = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim)
        self.head = nn.Linear(config.dim, config.vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(self._init)
        for block in self.blocks:   # each block adds to the stream twice: keep its variance near one
            for linear in (block.attention.out, block.mlp[2]):
                nn.init.normal_(linear.weight, std=0.02 / math.sqrt(2 * config.layers))

    @staticmethod
    def _init(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, ids, targets=None):
        """Logits [batch, time, vocabulary]; with targets the mean cross entropy in nats instead."""
        x = self.drop(self.tokens(ids) + self.positions(torch.arange(ids.shape[1])))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        if targets is None:
            return logits
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))

    @torch.no_grad()
    def generate(self, ids, count, temperature=0.8, top_k=40):
        """Appends `count` sampled tokens to ids [batch, time]."""
        for _ in range(count):
            logits = self(ids[:, -self.config.context:])[:, -1, :] / temperature
            if top_k:
                least = torch.topk(logits, min(top_k, logits.shape[-1])).values[:, -1:]
                logits = logits.masked_fill(logits < least, float("-inf"))
            ids = torch.cat([ids, torch.multinomial(F.softmax(logits, dim=-1), 1)], dim=1)
        return ids


def save_checkpoint(path, model, **more):
    """Writes beside the old file and renames, so that an interrupted write leaves the old file whole."""
    import os
    from dataclasses import asdict
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    partial = f"{path}.partial"
    with open(partial, "wb") as f:
        torch.save({"model": model.state_dict(), "config": asdict(model.config), **more}, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(partial, path)


def load_checkpoint(path):
    """The model of a checkpoint, in evaluation mode, and everything else that was saved with it."""
    saved = torch.load(path, weights_only=True)
    model = GPT(Config(**saved.pop("config")))
    model.load_state_dict(saved.pop("model"))
    model.eval()
    return model, saved
