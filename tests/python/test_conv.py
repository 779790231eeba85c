"""Convolutions and pooling against plain loops in numpy's double precision, gradients by finite differences of the loops' linearity."""
import itertools

import numpy as np
import pytest

import taimatsu as torch

F = torch.nn.functional
rng = np.random.default_rng(11)


def pair(*shape, dtype="float64"):
    x = rng.standard_normal(shape)
    t = torch.tensor(x.tolist(), dtype=getattr(torch, dtype)).reshape(shape)
    return t, t.double().numpy()


def close(tensor, want, tolerance=1e-11):
    got = tensor.detach().double().numpy()
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def conv(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlation, tap by tap."""
    dims = x.ndim - 2
    s, p, d = [(v,) * dims if isinstance(v, int) else v for v in (stride, padding, dilation)]
    x = np.pad(x, [(0, 0), (0, 0)] + [(q, q) for q in p])
    out = [(x.shape[i + 2] - d[i] * (w.shape[i + 2] - 1) - 1) // s[i] + 1 for i in range(dims)]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    og, ig = w.shape[0] // groups, x.shape[1] // groups
    for g in range(groups):
        for tap in itertools.product(*[range(k) for k in w.shape[2:]]):
            part = x[(slice(None), slice(g * ig, (g + 1) * ig)) + tuple(slice(t * d[i], t * d[i] + (out[i] - 1) * s[i] + 1, s[i]) for i, t in enumerate(tap))]
            y[:, g * og:(g + 1) * og] += np.einsum("nc...,oc->no...", part, w[(slice(g * og, (g + 1) * og), slice(None)) + tap])
    return y if b is None else y + b.reshape((1, -1) + (1,) * dims)


CASES = [((2, 3, 9), (4, 3, 3), dict()), ((1, 3, 8, 7), (4, 3, 3, 2), dict(stride=2, padding=1)), ((2, 4, 9, 9), (6, 2, 3, 3), dict(groups=2, dilation=2)),
         ((2, 6, 7, 8), (6, 1, 3, 3), dict(groups=6, padding=1)), ((1, 2, 5, 6, 7), (3, 2, 2, 3, 2), dict(padding=(1, 0, 1), stride=(1, 2, 1))),
         ((2, 5, 6, 6), (7, 5, 1, 1), dict()), ((1, 16, 20, 20), (20, 16, 3, 3), dict(padding=1)), ((3, 4, 10), (8, 2, 5), dict(groups=2, stride=3, padding=2))]
FUNCTIONS = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}
TRANSPOSED = {3: F.conv_transpose1d, 4: F.conv_transpose2d, 5: F.conv_transpose3d}


@pytest.mark.parametrize("shape, kernel, options", CASES)
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-11), ("float32", 2e-4), ("bfloat16", 0.2), ("float16", 3e-2)])
def test_values(shape, kernel, options, dtype, tolerance):
    x, nx = pair(*shape, dtype=dtype)
    w, nw = pair(*kernel, dtype=dtype)
    b, nb = pair(kernel[0], dtype=dtype)
    f = FUNCTIONS[len(shape)]
    close(f(x, w, b, **options), conv(nx, nw, nb, **options), tolerance)
    close(f(x[0], w, **options), conv(nx[:1], nw, **options)[0], tolerance)


@pytest.mark.parametrize("shape, kernel, options", CASES)
def test_gradients(shape, kernel, options):
    """The result is linear in input and weight: <g, conv(dx, w)> = <dx, grad> for every dx."""
    x, nx = pair(*shape)
    w, nw = pair(*kernel)
    b, _ = pair(kernel[0])
    for t in (x, w, b):
        t.requires_grad_()
    y = FUNCTIONS[len(shape)](x, w, b, **options)
    g, ng = pair(*y.shape)
    y.backward(g)
    for _ in range(3):
        dx, dw = rng.standard_normal(shape), rng.standard_normal(kernel)
        np.testing.assert_allclose((conv(dx, nw, **options) * ng).sum(), (dx * x.grad.numpy()).sum(), rtol=1e-9)
        np.testing.assert_allclose((conv(nx, dw, **options) * ng).sum(), (dw * w.grad.numpy()).sum(), rtol=1e-9)
    close(b.grad, ng.sum(tuple(i for i in range(ng.ndim) if i != 1)))


@pytest.mark.parametrize("shape, kernel, options", CASES)
def test_transposed_is_the_adjoint(shape, kernel, options):
    """<conv(x, w), y> = <x, conv_transpose(y, w)>, and its own gradients by linearity."""
    w, nw = pair(*kernel)
    x = rng.standard_normal(shape)
    want = conv(x, nw, **options)
    y, ny = pair(*want.shape)
    dims = len(shape) - 2
    opts = {k: (v,) * dims if isinstance(v, int) and k != "groups" else v for k, v in options.items()}
    s, p, d = opts.get("stride", (1,) * dims), opts.get("padding", (0,) * dims), opts.get("dilation", (1,) * dims)
    extra = [shape[i + 2] - ((want.shape[i + 2] - 1) * s[i] - 2 * p[i] + d[i] * (kernel[i + 2] - 1) + 1) for i in range(dims)]
    y.requires_grad_(), w.requires_grad_()
    back = TRANSPOSED[len(shape)](y, w, output_padding=tuple(extra), **opts)
    np.testing.assert_allclose((want * ny).sum(), (x * back.detach().numpy()).sum(), rtol=1e-9)
    back.backward(torch.from_numpy(x))
    close(y.grad, want)
    dw = rng.standard_normal(kernel)
    np.testing.assert_allclose((conv(x, dw, **options) * ny).sum(), (dw * w.grad.numpy()).sum(), rtol=1e-9)


def test_channels_last():
    x, nx = pair(2, 8, 9, 7)
    w, nw = pair(5, 8, 3, 3)
    y = F.conv2d(x.to(memory_format=torch.channels_last), w, padding=1)
    assert y.is_contiguous(memory_format=torch.channels_last)
    close(y, conv(nx, nw, padding=1))
    xl = x.to(memory_format=torch.channels_last).requires_grad_()
    g, ng = pair(*y.shape)
    F.conv2d(xl, w, padding=1).backward(g)
    dx = rng.standard_normal(nx.shape)
    np.testing.assert_allclose((conv(dx, nw, padding=1) * ng).sum(), (dx * xl.grad.numpy()).sum(), rtol=1e-9)


def test_padding_by_name_and_integers():
    x, nx = pair(1, 2, 7, 7)
    w, nw = pair(3, 2, 3, 4)
    close(F.conv2d(x, w, padding="valid"), conv(nx, nw))
    padded = np.pad(nx, [(0, 0), (0, 0), (1, 1), (1, 2)])
    close(F.conv2d(x, w, padding="same"), conv(padded, nw))
    i = torch.arange(50).reshape(1, 2, 5, 5)
    k = torch.arange(18).reshape(1, 2, 3, 3)
    assert F.conv2d(i, k).tolist() == conv(i.numpy().astype(float), k.numpy().astype(float)).astype(int).tolist()


def windows(n, k, s, p, d=1, ceil=False):
    out = (n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil else 0)) // s + 1
    if ceil and (out - 1) * s >= n + p:
        out -= 1
    return [[i for i in range(o * s - p, o * s - p + d * (k - 1) + 1, d) if 0 <= i < n] for o in range(out)]


@pytest.mark.parametrize("k, s, p, d, ceil", [(2, 2, 0, 1, False), (3, 2, 1, 1, False), (3, 1, 1, 2, False), (3, 2, 1, 1, True), (2, 3, 1, 1, True)])
def test_max_pool(k, s, p, d, ceil):
    x, nx = pair(2, 3, 7, 8)
    rows, cols = windows(7, k, s, p, d, ceil), windows(8, k, s, p, d, ceil)
    want = np.array([[[[nx[n, c][np.ix_(r, q)].max() for q in cols] for r in rows] for c in range(3)] for n in range(2)])
    x.requires_grad_()
    y, indices = F.max_pool2d(x, k, s, p, d, ceil_mode=ceil, return_indices=True)
    close(y, want)
    flat = nx.reshape(2, 3, -1)
    close(y, np.take_along_axis(flat, indices.numpy().reshape(2, 3, -1), 2).reshape(want.shape))
    g, ng = pair(*want.shape)
    y.backward(g)
    grad = np.zeros_like(flat)
    for n, c in itertools.product(range(2), range(3)):
        np.add.at(grad[n, c], indices.numpy()[n, c].ravel(), ng[n, c].ravel())
    close(x.grad, grad.reshape(nx.shape))


def test_average_and_adaptive_pools():
    x, nx = pair(2, 3, 7, 8)
    close(F.avg_pool2d(x, 2), nx[:, :, :6].reshape(2, 3, 3, 2, 4, 2).mean((3, 5)))
    padded = np.pad(nx, [(0, 0), (0, 0), (1, 1), (1, 1)])
    want = np.array([[[[padded[n, c, 2 * i:2 * i + 3, 2 * j:2 * j + 3].sum() / 9 for j in range(4)] for i in range(4)] for c in range(3)] for n in range(2)])
    close(F.avg_pool2d(x, 3, 2, 1), want)
    close(F.adaptive_avg_pool2d(x, 1), nx.mean((2, 3), keepdims=True))
    cut = lambda n, o: [(i * n // o, -((-(i + 1) * n) // o)) for i in range(o)]  # noqa: E731
    want = np.array([[[[nx[n, c, a:b, e:f].mean() for e, f in cut(8, 5)] for a, b in cut(7, 3)] for c in range(3)] for n in range(2)])
    x.requires_grad_()
    y = F.adaptive_avg_pool2d(x, (3, 5))
    close(y, want)
    y.sum().backward()
    grad = np.zeros_like(nx)
    for a, b in cut(7, 3):
        for e, f in cut(8, 5):
            grad[:, :, a:b, e:f] += 1 / ((b - a) * (f - e))
    close(x.grad, grad)
    top = F.adaptive_max_pool2d(x, (3, 5))
    close(top, np.array([[[[nx[n, c, a:b, e:f].max() for e, f in cut(8, 5)] for a, b in cut(7, 3)] for c in range(3)] for n in range(2)]))
    close(F.max_pool1d(x[0], 3), nx[0][:, :, :6].reshape(3, 7, 2, 3).max(-1))


def test_patches_and_resizing():
    x, nx = pair(1, 2, 4, 5)
    cols = F.unfold(x, 2)
    want = np.stack([nx[0, c, i:i + 3, j:j + 4].ravel() for c in range(2) for i in range(2) for j in range(2)])[None]
    close(cols, want)
    ones = F.fold(torch.ones(1, 8, 12, dtype=torch.float64), (4, 5), 2)
    close(ones[0, 0], np.outer([1, 2, 2, 1], [1, 2, 2, 2, 1]))
    close(F.interpolate(x, scale_factor=2), nx.repeat(2, 2).repeat(2, 3))
    y = F.interpolate(x, size=(4, 9), mode="bilinear", align_corners=True)
    at = np.linspace(0, 4, 9)
    lo = np.minimum(at.astype(int), 3)
    close(y, nx[..., lo] * (1 - (at - lo)) + nx[..., lo + 1] * (at - lo))


@pytest.mark.parametrize("call, text", [
    (lambda: F.conv2d(torch.ones(1, 2, 5, 5), torch.ones(4, 3, 3, 3)),
     "Given groups=1, weight of size [4, 3, 3, 3], expected input[1, 2, 5, 5] to have 3 channels, but got 2 channels instead"),
    (lambda: F.conv2d(torch.ones(5, 5), torch.ones(4, 3, 3, 3)), "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [5, 5]"),
    (lambda: F.conv2d(torch.ones(1, 3, 2, 2), torch.ones(4, 3, 3, 3)),
     "Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 3). Kernel size can't be greater than actual input size"),
    (lambda: F.max_pool2d(torch.ones(1, 1, 2, 2), 3), "Given input size: (1x2x2). Calculated output size: (1x0x0). Output size is too small")])
def test_error_texts(call, text):
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value) == text
