"""torch.amp.GradScaler."""
import pytest
import taimatsu as torch


def test_scaling_steps_and_skips():
    w = torch.tensor([1.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    for factor, scale, value in ((1.0, 8.0, 0.5), (1.0, 16.0, 0.0), (float("inf"), 8.0, 0.0), (2.0, 8.0, -1.0)):
        optimizer.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert (scaler.get_scale(), w.item()) == (scale, value)
    assert scaler.state_dict() == {"scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 1}


def test_disabled_scaler_does_nothing():
    with pytest.warns(FutureWarning, match="is deprecated"):
        scaler = torch.cuda.amp.GradScaler(enabled=False)
    w = torch.tensor([1.0], requires_grad=True)
    assert scaler.scale(w) is w
    assert scaler.state_dict() == {}
    assert not scaler.is_enabled()


def test_order_of_calls():
    w = torch.tensor([1.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.5)
    scaler = torch.amp.GradScaler("cpu")
    with pytest.raises(AssertionError, match="Attempted step but _scale is None"):
        scaler.step(optimizer)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    assert w.grad.item() == 1.0
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        scaler.step(optimizer, closure=None)
