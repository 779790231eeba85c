"""Losses against numpy in double precision, with their gradients by differences."""
import numpy as np
import pytest
import taimatsu as torch

F = torch.nn.functional


def draw(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def log_softmax(x, axis):
    m = x.max(axis, keepdims=True)
    return x - m - np.log(np.exp(x - m).sum(axis, keepdims=True))


def check_gradient(f, *arrays, eps=1e-6):
    """backward() against central differences of the summed result, in double precision."""
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    f(*tensors).sum().backward()
    for k, a in enumerate(arrays):
        want = np.zeros_like(a)
        for i in np.ndindex(a.shape):
            hi, lo = ([b.copy() for b in arrays] for _ in range(2))
            hi[k][i] += eps
            lo[k][i] -= eps
            want[i] = (f(*map(torch.tensor, hi)).sum().item() - f(*map(torch.tensor, lo)).sum().item()) / (2 * eps)
        np.testing.assert_allclose(tensors[k].grad.numpy(), want, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy(reduction, weighted, smoothing):
    x, target = draw((6, 5)), np.array([0, 4, 2, -100, 1, 1])
    w = np.array([1.0, 2.0, 0.5, 3.0, 1.5]) if weighted else np.ones(5)
    logs, keep = log_softmax(x, 1), target != -100
    t = np.where(keep, target, 0)
    nll = np.where(keep, -logs[np.arange(6), t] * w[t], 0)
    smooth = np.where(keep, -(logs * w).sum(1), 0)
    total = (w[t] * keep).sum()
    if reduction == "mean":
        nll, smooth = nll.sum() / total, smooth.sum() / total
    elif reduction == "sum":
        nll, smooth = nll.sum(), smooth.sum()
    want = (1 - smoothing) * nll + smoothing / 5 * smooth
    weight = torch.tensor(w) if weighted else None

    def loss(v):
        return F.cross_entropy(v, torch.tensor(target), weight=weight, reduction=reduction, label_smoothing=smoothing)
    np.testing.assert_allclose(loss(torch.tensor(x)).numpy(), want, rtol=1e-10)
    check_gradient(loss, x)


def test_cross_entropy_of_probabilities_and_images():
    x = draw((2, 3, 4))
    p = np.exp(log_softmax(draw((2, 3, 4), 1), 1))
    got = F.cross_entropy(torch.tensor(x), torch.tensor(p)).item()
    np.testing.assert_allclose(got, -(log_softmax(x, 1) * p).sum() / 8)
    target = np.random.default_rng(2).integers(0, 3, (2, 4))
    want = -np.take_along_axis(log_softmax(x, 1), target[:, None], 1).mean()
    np.testing.assert_allclose(F.cross_entropy(torch.tensor(x), torch.tensor(target)).item(), want)


def test_cross_entropy_errors():
    x = torch.ones(2, 3)
    with pytest.raises(IndexError, match="Target 3 is out of bounds."):
        F.cross_entropy(x, torch.tensor([0, 3]))
    with pytest.raises(ValueError, match=r"Expected input batch_size \(2\) to match target batch_size \(1\)."):
        F.cross_entropy(x, torch.tensor([0]))
    with pytest.raises(RuntimeError, match="expected target dtype to be Long or Byte, but got Float"):
        F.cross_entropy(x, torch.tensor([0.0, 1.0]))


def test_all_ignored_mean_is_nan():
    assert np.isnan(F.cross_entropy(torch.ones(2, 3), torch.tensor([-100, -100])).item())
    assert F.cross_entropy(torch.ones(2, 3), torch.tensor([-100, -100]), reduction="sum").item() == 0


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_distances(reduction):
    x, y = draw((4, 3)), draw((4, 3), 1)
    d = x - y
    reduce = {"none": lambda v: v, "mean": np.mean, "sum": np.sum}[reduction]
    a = np.abs(d)
    cases = [(F.mse_loss, {}, d * d), (F.l1_loss, {}, a), (F.smooth_l1_loss, {"beta": 0.7}, np.where(a < 0.7, d * d / 1.4, a - 0.35)),
             (F.huber_loss, {"delta": 0.7}, np.where(a <= 0.7, d * d / 2, 0.7 * (a - 0.35)))]
    for f, options, want in cases:
        def loss(u, v, f=f, options=options):
            return f(u, v, reduction=reduction, **options)
        np.testing.assert_allclose(loss(torch.tensor(x), torch.tensor(y)).numpy(), reduce(want))
        check_gradient(loss, x, y)


def test_binary_cross_entropy():
    x, y, w = draw(7), np.random.default_rng(1).random(7), np.random.default_rng(2).random(7) + 0.5
    p = 1 / (1 + np.exp(-x))
    want = -(y * np.log(p) + (1 - y) * np.log(1 - p)) * w
    np.testing.assert_allclose(F.binary_cross_entropy(torch.tensor(p), torch.tensor(y), torch.tensor(w), reduction="none").numpy(), want)
    np.testing.assert_allclose(F.binary_cross_entropy_with_logits(torch.tensor(x), torch.tensor(y), torch.tensor(w), reduction="none").numpy(), want)
    check_gradient(lambda a, b: F.binary_cross_entropy(a, b), p, y)
    check_gradient(lambda a, b: F.binary_cross_entropy_with_logits(a, b, pos_weight=torch.tensor(w)), x, y)
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(torch.tensor([2.0]), torch.tensor([1.0]))


def test_other_losses_have_right_gradients():
    x, y = draw((5, 4)), draw((5, 4), 1)
    sign = torch.tensor(np.array([1.0, -1, 1, -1, 1]))
    check_gradient(lambda a: F.kl_div(F.log_softmax(a, 1), F.softmax(torch.tensor(y), 1), reduction="batchmean"), x)
    check_gradient(lambda a, b: F.cosine_similarity(a, b), x, y)
    check_gradient(lambda a, b: F.cosine_embedding_loss(a, b, sign), x, y)
    check_gradient(lambda a, b: F.triplet_margin_loss(a, b, torch.tensor(y + 1)), x, y)
    check_gradient(lambda a: F.soft_margin_loss(a, torch.tensor(np.sign(y))), x)
    check_gradient(lambda a: F.multi_margin_loss(a, torch.tensor([0, 1, 3, 2, 2])), x)
    check_gradient(lambda a: F.poisson_nll_loss(a, torch.tensor(np.abs(y))), x)
