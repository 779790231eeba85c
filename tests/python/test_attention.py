"""scaled_dot_product_attention against its formula in numpy's double precision: masks, causal, grouped heads, gradients, dropout."""
import numpy as np
import pytest

import taimatsu as torch

attention = torch.nn.functional.scaled_dot_product_attention
rng = np.random.default_rng(13)


def pair(*shape, dtype="float64"):
    x = rng.standard_normal(shape)
    t = torch.tensor(x.tolist(), dtype=getattr(torch, dtype)).reshape(shape)
    return t, t.double().numpy()


def weights(q, k, mask=None, causal=False, scale=None):
    s = q @ np.swapaxes(k, -1, -2) * (scale or 1 / np.sqrt(q.shape[-1]))
    if causal:
        mask = np.tril(np.ones(s.shape[-2:], bool))
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isinf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 1e-5), ("bfloat16", 3e-2), ("float16", 4e-3)])
@pytest.mark.parametrize("sq, sk, d, causal", [(5, 5, 4, False), (7, 7, 8, True), (130, 300, 16, False), (97, 97, 5, True), (1, 33, 8, False)])
def test_values(sq, sk, d, causal, dtype, tolerance):
    q, nq = pair(2, 3, sq, d, dtype=dtype)
    k, nk = pair(2, 3, sk, d, dtype=dtype)
    v, nv = pair(2, 3, sk, d, dtype=dtype)
    got = attention(q, k, v, is_causal=causal).double().numpy()
    np.testing.assert_allclose(got, weights(nq, nk, causal=causal) @ nv, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("kind", ["bool", "float", "broadcast"])
def test_masks(kind):
    q, nq = pair(2, 3, 6, 4)
    k, nk = pair(2, 3, 9, 4)
    v, nv = pair(2, 3, 9, 4)
    mask = rng.standard_normal((6, 9)) > 0.3 if kind != "float" else rng.standard_normal((2, 3, 6, 9))
    if kind == "broadcast":
        mask = mask[None, None, :1]
    if kind == "bool":
        mask[2] = False                       # a row that sees nothing gives zeros
    got = attention(q, k, v, attn_mask=torch.tensor(mask.tolist()) if mask.dtype == bool else torch.from_numpy(mask)).numpy()
    np.testing.assert_allclose(got, weights(nq, nk, mask) @ nv, atol=1e-12)


def test_grouped_heads_scale_and_layout():
    q, nq = pair(2, 6, 5, 4)
    k, nk = pair(2, 2, 7, 4)
    v, nv = pair(2, 2, 7, 4)
    got = attention(q, k, v, scale=0.3, enable_gqa=True).numpy()
    np.testing.assert_allclose(got, weights(nq, nk.repeat(3, 1), scale=0.3) @ nv.repeat(3, 1), atol=1e-12)
    rows = torch.randn(2, 5, 3, 4)            # batch, row, head: the usual view of a projection
    out = attention(rows.transpose(1, 2), rows.transpose(1, 2), rows.transpose(1, 2))
    assert out.stride() == rows.transpose(1, 2).stride()


@pytest.mark.parametrize("heads, sq, sk, causal", [(1, 300, 520, False), (3, 40, 40, True), (5, 100, 30, False)])
def test_gradients(heads, sq, sk, causal):
    q, nq = pair(1, heads, sq, 8)
    k, nk = pair(1, heads, sk, 8)
    v, nv = pair(1, heads, sk, 8)
    g, ng = pair(1, heads, sq, 8)
    for t in (q, k, v):
        t.requires_grad_()
    out = attention(q, k, v, is_causal=causal)
    assert type(out.grad_fn).__name__ == "ScaledDotProductFlashAttentionForCpuBackward0"
    out.backward(g)
    p = weights(nq, nk, causal=causal)
    dp = ng @ np.swapaxes(nv, -1, -2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / np.sqrt(8)
    np.testing.assert_allclose(v.grad.numpy(), np.swapaxes(p, -1, -2) @ ng, atol=1e-11)
    np.testing.assert_allclose(q.grad.numpy(), ds @ nk, atol=1e-11)
    np.testing.assert_allclose(k.grad.numpy(), np.swapaxes(ds, -1, -2) @ nq, atol=1e-11)


def test_gradient_of_a_mask():
    q, _ = pair(1, 2, 3, 4)
    mask = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    attention(q, q, q, attn_mask=mask).sum().backward()
    assert mask.grad.shape == (3, 3)


def test_dropout_follows_the_generator():
    q, _ = pair(1, 2, 16, 4)
    torch.manual_seed(3)
    a = attention(q, q, q, dropout_p=0.5)
    torch.manual_seed(3)
    b = attention(q, q, q, dropout_p=0.5)
    assert torch.equal(a, b) and not torch.equal(a, attention(q, q, q))


def test_errors():
    x = torch.ones(1, 2, 3, 4)
    with pytest.raises(RuntimeError, match="Expected query, key, and value to have the same dtype"):
        attention(x, x.double(), x)
    with pytest.raises(RuntimeError, match=r"Expected size for first two dimensions of batch2 tensor to be: \[2, 4\] but got: \[2, 5\]."):
        attention(x, torch.ones(1, 2, 3, 5), x)
