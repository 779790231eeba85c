"""Reductions, softmax and scans against numpy in double precision; the same bits for any number of threads and any layout."""
import itertools

import numpy as np
import pytest
import taimatsu as torch

SHAPES = [(), (1,), (7,), (33,), (5000,), (3, 1), (40, 9), (2, 4099), (4099, 3), (6, 5, 4), (3, 0, 2), (130, 70)]


def draw(shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def layouts(x):
    """The same numbers in several memory layouts."""
    t = torch.tensor(x)
    yield "plain", t
    if x.ndim >= 2:
        yield "transposed", torch.tensor(np.ascontiguousarray(x.T)).permute(*reversed(range(x.ndim)))
        yield "strided", torch.tensor(np.repeat(x, 2, axis=-1))[..., ::2]


def dims_of(ndim):
    yield None
    for n in range(1, ndim + 1):
        yield from itertools.combinations(range(ndim), n)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sum_and_mean(shape):
    x = draw(shape)
    for dim in dims_of(x.ndim):
        axis = None if dim is None else dim
        want = x.astype(np.float64).sum(axis=axis)
        count = x.size / max(want.size, 1) if want.size else 1
        first = None
        for name, t in layouts(x):
            got = t.sum() if dim is None else t.sum(dim)
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5 * max(count, 1) ** 0.5, err_msg=name)
            if first is None:
                first = got.numpy().tobytes()
            assert got.numpy().tobytes() == first, f"{name}: other bits"
            if x.size:
                mean = t.mean() if dim is None else t.mean(dim)
                np.testing.assert_allclose(mean.numpy(), want / count, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(20000,), (300, 700), (5000, 40), (3, 50, 400)], ids=str)
def test_threads_do_not_change_bits(shape):
    x = torch.tensor(draw(shape))
    functions = [lambda t: t.sum(), lambda t: t.sum(0), lambda t: t.sum(-1), lambda t: t.var(), lambda t: t.var(0), lambda t: t.norm(),
                 lambda t: t.softmax(-1), lambda t: t.softmax(0), lambda t: t.log_softmax(-1), lambda t: t.logsumexp(0), lambda t: t.cumsum(0),
                 lambda t: t.argmax(), lambda t: torch.nn.functional.layer_norm(t, t.shape[-1:])]
    threads = torch.get_num_threads()
    try:
        for i, f in enumerate(functions):
            results = []
            for n in (1, 2, 3, 7):
                torch.set_num_threads(n)
                results.append(f(x).numpy().tobytes())
            assert len(set(results)) == 1, f"function {i}"
    finally:
        torch.set_num_threads(threads)


def test_integer_sums_are_int64():
    x = torch.tensor([[200, 100], [3, 4]], dtype=torch.uint8)
    assert x.sum().dtype == torch.int64 and x.sum().item() == 307
    assert torch.tensor([True, True, False]).sum().item() == 2
    assert x.prod().item() == 200 * 100 * 12
    with pytest.raises(RuntimeError, match="could not infer output dtype"):
        x.mean()


def test_half_accumulates_in_float():
    x = torch.ones(4096, dtype=torch.float16) * 1.001
    assert abs(x.sum().item() - float(np.float16(1.001)) * 4096) <= 2
    b = torch.ones(100000, dtype=torch.bfloat16)
    assert b.sum().item() == float(torch.tensor(100000.0).to(torch.bfloat16))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.uint8])
def test_extremes(dtype):
    x = (draw((50, 37), 1) * 40).astype(dtype)
    t = torch.tensor(x)
    assert t.max().item() == x.max() and t.min().item() == x.min()
    for dim in (0, 1):
        values, indices = t.max(dim)
        np.testing.assert_array_equal(values.numpy(), x.max(dim))
        np.testing.assert_array_equal(indices.numpy(), x.argmax(dim))
        np.testing.assert_array_equal(t.argmin(dim).numpy(), x.argmin(dim))
        np.testing.assert_array_equal(t.amin(dim).numpy(), x.min(dim))
    assert t.argmax().item() == x.argmax()


def test_nan_and_ties():
    nan = float("nan")
    t = torch.tensor([1.0, nan, 3.0, nan])
    assert np.isnan(t.max().item()) and t.argmax().item() == 1 and np.isnan(t.min().item())
    assert torch.tensor([2.0, 5.0, 5.0]).argmax().item() == 1
    assert t.nansum().item() == 4.0
    x = torch.tensor([1.0, 4.0, 4.0], requires_grad=True)
    x.amax().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0.5, 0.5])
    x.grad = None
    x.max(0)[0].backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 1, 0])


def test_empty_reductions():
    t = torch.zeros(0, 3)
    np.testing.assert_array_equal(t.sum(0).numpy(), [0, 0, 0])
    np.testing.assert_array_equal(t.prod(0).numpy(), [1, 1, 1])
    assert t.any().item() is False and t.all().item() is True
    with pytest.raises(IndexError):
        t.max(0)
    with pytest.raises(RuntimeError):
        t.max()


@pytest.mark.parametrize("correction", [0, 1, 2])
def test_var(correction):
    x = draw((12, 333), 2) * 3 + 100
    t = torch.tensor(x, requires_grad=True)
    np.testing.assert_allclose(t.var(1, correction=correction).detach().numpy(), x.astype(np.float64).var(1, ddof=correction), rtol=2e-5)
    np.testing.assert_allclose(t.std(0, correction=correction).detach().numpy(), x.astype(np.float64).std(0, ddof=correction), rtol=2e-5)
    t.var(1, correction=correction).sum().backward()
    d = x.astype(np.float64)
    np.testing.assert_allclose(t.grad.numpy(), 2 * (d - d.mean(1, keepdims=True)) / (333 - correction), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3, float("inf"), float("-inf")])
def test_norms(p):
    x = draw((9, 400), 3).astype(np.float64)
    got = torch.tensor(x).norm(p, dim=1).numpy()
    want = np.array([np.linalg.norm(row, p) for row in x])
    np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_softmax_and_gradient(dim):
    x = draw((4, 300, 5), 4).astype(np.float64) * 10
    e = np.exp(x - x.max(dim, keepdims=True))
    want = e / e.sum(dim, keepdims=True)
    for dtype, tol in ((torch.float32, 2e-6), (torch.float64, 1e-13)):
        t = torch.tensor(x, dtype=dtype, requires_grad=True)
        y = t.softmax(dim)
        np.testing.assert_allclose(y.detach().numpy(), want, rtol=tol * 5, atol=tol)
        np.testing.assert_allclose(t.log_softmax(dim).detach().numpy(), np.log(want), rtol=tol * 5, atol=tol * 20)
        g = draw(x.shape, 5).astype(np.float64)
        y.backward(torch.tensor(g, dtype=dtype))
        np.testing.assert_allclose(t.grad.numpy(), want * (g - (g * want).sum(dim, keepdims=True)), rtol=tol * 20, atol=tol * 20)


def test_softmax_of_masked_rows():
    inf = float("inf")
    t = torch.tensor([[0.0, -inf, 0.0], [-inf, -inf, -inf]])
    y = t.softmax(1)
    np.testing.assert_allclose(y[0].numpy(), [0.5, 0, 0.5])
    assert np.isnan(y[1].numpy()).all()
    assert t.logsumexp(1)[1].item() == -inf


def test_scans():
    x = draw((30, 41), 6).astype(np.float64)
    t = torch.tensor(x)
    for dim in (0, 1):
        np.testing.assert_allclose(t.cumsum(dim).numpy(), x.cumsum(dim))
        np.testing.assert_allclose(t.cumprod(dim).numpy(), x.cumprod(dim))
        np.testing.assert_array_equal(t.cummax(dim)[0].numpy(), np.maximum.accumulate(x, dim))
        np.testing.assert_allclose(t.logcumsumexp(dim).numpy(), np.logaddexp.accumulate(x, dim))


def test_product_gradient_with_zeros():
    for values in ([2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 0.0, 4.0]):
        t = torch.tensor(values, requires_grad=True)
        t.prod().backward()
        want = [np.prod(values[:i] + values[i + 1:]) for i in range(3)]
        np.testing.assert_allclose(t.grad.numpy(), want)
        t = torch.tensor(values, requires_grad=True)
        t.cumprod(0).sum().backward()
        a, b, c = values
        np.testing.assert_allclose(t.grad.numpy(), [1 + b + b * c, a + a * c, a * b])


def test_layer_norm_and_gradients():
    F = torch.nn.functional
    x, w, b, g = draw((20, 96), 7), draw((96,), 8), draw((96,), 9), draw((20, 96), 10)
    t, wt, bt = (torch.tensor(v, requires_grad=True) for v in (x, w, b))
    y = F.layer_norm(t, (96,), wt, bt, 1e-5)
    d = x.astype(np.float64)
    rstd = 1 / np.sqrt(d.var(1, keepdims=True) + 1e-5)
    xhat = (d - d.mean(1, keepdims=True)) * rstd
    np.testing.assert_allclose(y.detach().numpy(), xhat * w + b, rtol=1e-5, atol=1e-5)
    y.backward(torch.tensor(g))
    h = g.astype(np.float64) * w
    want = rstd * (h - h.mean(1, keepdims=True) - xhat * (h * xhat).mean(1, keepdims=True))
    np.testing.assert_allclose(t.grad.numpy(), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(wt.grad.numpy(), (g * xhat).sum(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(bt.grad.numpy(), g.astype(np.float64).sum(0), rtol=1e-4, atol=1e-5)
