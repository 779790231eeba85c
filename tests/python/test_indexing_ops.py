"""gather, scatter, index_*, masks, sorting and joining against numpy."""
import numpy as np
import pytest
import taimatsu as torch


def draw(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def picks(limit, shape, seed=0):
    return np.random.default_rng(seed).integers(0, limit, shape)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gather_and_scatter(dim):
    x = draw((5, 6, 7))
    shape = [4, 5, 6]
    shape[dim] = 9
    index = picks(x.shape[dim], shape)
    view = x[tuple(slice(0, n) if d != dim else slice(None) for d, n in enumerate(shape))]
    np.testing.assert_array_equal(torch.tensor(x).gather(dim, torch.tensor(index)).numpy(), np.take_along_axis(view, index, dim))
    src = draw(shape, 1)
    want = x.astype(np.float64)
    places = list(np.indices(shape))
    places[dim] = index
    np.add.at(want, tuple(places), src)
    got = torch.tensor(x).scatter_add(dim, torch.tensor(index), torch.tensor(src))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)
    got = torch.tensor(x).scatter(dim, torch.tensor(index), 7.0)
    want = x.copy()
    want[tuple(places)] = 7
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce(reduce, include_self):
    x, src, index = draw(6), draw(20, 1), picks(4, 20)
    got = torch.tensor(x).scatter_reduce(0, torch.tensor(index), torch.tensor(src), reduce, include_self=include_self).numpy()
    f = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[reduce]
    for i in range(6):
        parts = list(src[index == i]) + ([x[i]] if include_self or not (index == i).any() else [])
        np.testing.assert_allclose(got[i], f(np.array(parts, dtype=np.float64)), rtol=1e-5)


def test_scatter_is_the_same_for_any_number_of_threads():
    index, src = torch.tensor(picks(50, (3000, 40))), torch.tensor(draw((3000, 40)))
    threads, results = torch.get_num_threads(), set()
    try:
        for n in (1, 2, 5):
            torch.set_num_threads(n)
            results.add(torch.zeros(50, 40).scatter_add(0, index, src).numpy().tobytes())
    finally:
        torch.set_num_threads(threads)
    assert len(results) == 1


def test_a_bad_index_changes_nothing():
    x = torch.zeros(2, 3)
    for call, error in ((lambda: x.scatter_(1, torch.tensor([[0, 5]]), 1.0), RuntimeError),
                        (lambda: x.index_add_(0, torch.tensor([0, 9]), torch.ones(2, 3)), IndexError),
                        (lambda: x.index_fill_(0, torch.tensor([0, 9]), 1.0), IndexError),
                        (lambda: x.index_copy_(0, torch.tensor([0, 9]), torch.ones(2, 3)), IndexError)):
        with pytest.raises(error):
            call()
        assert x.sum().item() == 0
    with pytest.raises(RuntimeError, match="index 5 is out of bounds for dimension 1 with size 3"):
        x.gather(1, torch.tensor([[5]]))


def test_index_family():
    x, index, src = draw((8, 5)), picks(8, 12), draw((12, 5), 1)
    t, i, s = torch.tensor(x), torch.tensor(index), torch.tensor(src)
    np.testing.assert_array_equal(t.index_select(0, i).numpy(), x[index])
    want = x.astype(np.float64)
    np.add.at(want, index, 2 * src.astype(np.float64))
    np.testing.assert_allclose(t.index_add(0, i, s, alpha=2).numpy(), want, rtol=1e-5, atol=1e-5)
    once = np.array([1, 4, 2])
    want = x.copy()
    want[once] = src[:3]
    np.testing.assert_array_equal(t.index_copy(0, torch.tensor(once), s[:3]).numpy(), want)
    want[:, [0, 3]] = -1
    np.testing.assert_array_equal(torch.tensor(want).index_fill(1, torch.tensor([0, -2]), -1).numpy(), want)


def test_advanced_indexing():
    x = draw((4, 5, 6))
    t = torch.tensor(x)
    a, b = np.array([[0], [2]]), np.array([1, -1, 3])
    np.testing.assert_array_equal(t[torch.tensor(a), torch.tensor(b)].numpy(), x[a, b])
    np.testing.assert_array_equal(t[torch.tensor(a), :, torch.tensor(b)].numpy(), x[a, :, b])
    np.testing.assert_array_equal(t[:, torch.tensor(b)].numpy(), x[:, b])
    np.testing.assert_array_equal(t[t > 0].numpy(), x[x > 0])
    y = t.clone()
    y[torch.tensor(b), 0] = 9.0
    want = x.copy()
    want[b, 0] = 9
    np.testing.assert_array_equal(y.numpy(), want)
    y = torch.zeros(3).index_put((torch.tensor([0, 0, 2]),), torch.tensor([1.0, 2.0, 3.0]), accumulate=True)
    np.testing.assert_array_equal(y.numpy(), [3, 0, 3])


def test_masks():
    x = draw((30, 31))
    t, m = torch.tensor(x), torch.tensor(x > 0.3)
    np.testing.assert_array_equal(t.masked_select(m).numpy(), x[x > 0.3])
    np.testing.assert_array_equal(m.nonzero().numpy(), np.argwhere(x > 0.3))
    want = x.copy()
    n = int((x > 0.3).sum())
    want[x > 0.3] = np.arange(n)
    np.testing.assert_array_equal(t.masked_scatter(m, torch.arange(n, dtype=torch.float32)).numpy(), want)


def test_embedding_gradient():
    w, index, g = draw((10, 4)), np.array([[1, 3], [3, 9]]), draw((2, 2, 4), 1)
    t = torch.tensor(w, requires_grad=True)
    y = torch.nn.functional.embedding(torch.tensor(index), t)
    np.testing.assert_array_equal(y.detach().numpy(), w[index])
    y.backward(torch.tensor(g))
    want = np.zeros_like(w)
    np.add.at(want, index, g)
    np.testing.assert_allclose(t.grad.numpy(), want, rtol=1e-6)
    with pytest.raises(IndexError, match="index out of range in self"):
        torch.nn.functional.embedding(torch.tensor([10]), t)


@pytest.mark.parametrize("n", [0, 1, 5, 100, 600, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.int16, np.uint8])
def test_sort(n, dtype):
    x = (draw(n, n) * 50).astype(dtype)
    values, indices = torch.tensor(x).sort(stable=True)
    order = np.argsort(x, kind="stable")
    np.testing.assert_array_equal(values.numpy(), x[order])
    np.testing.assert_array_equal(indices.numpy(), order)
    values, indices = torch.tensor(x).sort(descending=True, stable=True)
    order = n - 1 - np.argsort(x[::-1], kind="stable")[::-1]
    np.testing.assert_array_equal(values.numpy(), x[order])
    np.testing.assert_array_equal(indices.numpy(), order)


def test_sort_puts_nan_last():
    nan = float("nan")
    values, indices = torch.tensor([nan, 1.0, -nan, -1.0]).sort()
    assert indices.tolist() == [3, 1, 0, 2] and np.isnan(values[2:].numpy()).all()


def test_topk_and_order_statistics():
    x = draw((7, 3000))
    t = torch.tensor(x)
    for k in (1, 5, 200, 3000):
        values, indices = t.topk(k, 1)
        np.testing.assert_array_equal(values.numpy(), -np.sort(-x, 1)[:, :k])
        np.testing.assert_array_equal(np.take_along_axis(x, indices.numpy(), 1), values.numpy())
    np.testing.assert_array_equal(t.kthvalue(10, 1)[0].numpy(), np.sort(x, 1)[:, 9])
    np.testing.assert_array_equal(t.median(1)[0].numpy(), np.sort(x, 1)[:, 1499])
    np.testing.assert_allclose(t.double().quantile(0.3, 1).numpy(), np.quantile(x.astype(np.float64), 0.3, axis=1))
    assert torch.tensor([3, 1, 3, 1, 2]).mode()[0].item() == 1


def test_unique_search_count():
    x = picks(20, (13, 17))
    t = torch.tensor(x)
    got = torch.unique(t, return_inverse=True, return_counts=True)
    for a, b in zip(got, np.unique(x, return_inverse=True, return_counts=True)):
        np.testing.assert_array_equal(a.numpy().reshape(-1), b.reshape(-1))
    np.testing.assert_array_equal(t.reshape(-1).bincount(minlength=25).numpy(), np.bincount(x.reshape(-1), minlength=25))
    edges = np.sort(draw(15))
    values = draw(40, 1)
    for right in (False, True):
        np.testing.assert_array_equal(torch.searchsorted(torch.tensor(edges), torch.tensor(values), right=right).numpy(),
                                      np.searchsorted(edges, values, "right" if right else "left"))
    np.testing.assert_array_equal(torch.isin(t, torch.tensor([3, 5])).numpy(), np.isin(x, [3, 5]))


def test_joining():
    a, b = draw((2, 3, 4)), draw((2, 5, 4), 1)
    np.testing.assert_array_equal(torch.cat([torch.tensor(a), torch.tensor(b)], 1).numpy(), np.concatenate([a, b], 1))
    c = draw((2, 3, 4), 2)
    for dim in (0, 1, 2, 3, -1):
        np.testing.assert_array_equal(torch.stack([torch.tensor(a), torch.tensor(c)], dim).numpy(), np.stack([a, c], dim))
    x, y = (torch.tensor(v, requires_grad=True) for v in (a, b))
    (torch.cat([x, y], 1) * torch.arange(4.0)).sum().backward()
    np.testing.assert_array_equal(y.grad.numpy(), np.broadcast_to(np.arange(4.0), b.shape))
    assert torch.cat([torch.tensor([1]), torch.tensor([0.5])]).dtype == torch.float32
    with pytest.raises(RuntimeError, match="Sizes of tensors must match except in dimension 0. Expected size 3 but got size 5"):
        torch.cat([torch.tensor(a), torch.tensor(b)], 0)


def test_rearranging():
    x = draw((4, 6, 5))
    t = torch.tensor(x)
    np.testing.assert_array_equal(t.flip(0, 2).numpy(), x[::-1, :, ::-1])
    np.testing.assert_array_equal(t.roll((1, -2), (0, 2)).numpy(), np.roll(x, (1, -2), (0, 2)))
    np.testing.assert_array_equal(t.roll(3).numpy(), np.roll(x, 3))
    np.testing.assert_array_equal(t.repeat(2, 1, 3).numpy(), np.tile(x, (2, 1, 3)))
    np.testing.assert_array_equal(t.repeat_interleave(2, 1).numpy(), np.repeat(x, 2, 1))
    for k in (-2, 0, 1):
        np.testing.assert_array_equal(t.tril(k).numpy(), np.tril(x, k))
        np.testing.assert_array_equal(t.triu(k).numpy(), np.triu(x, k))
    pads = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    for mode, name in pads.items():
        got = torch.nn.functional.pad(t[None], (1, 2, 2, 1), mode=mode).numpy()
        np.testing.assert_array_equal(got[0], np.pad(x, ((0, 0), (2, 1), (1, 2)), mode=name))
