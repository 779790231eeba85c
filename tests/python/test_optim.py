"""Optimisers and learning-rate schedules give PyTorch's numbers; groups, states and errors follow its rules."""
import pytest
import taimatsu as torch
from taimatsu import nn

# constructor, parameters after six steps on a fixed problem as PyTorch 2.13 gives them, names of a parameter's state
OPTIMIZERS = [
    ("SGD(p, lr=0.1)", [0.26214, 0.86003, 2.53144, -0.99386], []),
    ("SGD(p, lr=0.1, momentum=0.9)", [-0.70897, 2.0935, 1.74339, -0.41155], ["momentum_buffer"]),
    ("SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)", [-0.38473, 0.93319, 1.46057, -0.88623], ["momentum_buffer"]),
    ("SGD(p, lr=0.1, momentum=0.5, dampening=0.1, maximize=True)", [4.20025, -33.76258, 4.22225, 38.22013], ["momentum_buffer"]),
    ("Adam(p, lr=0.1)", [0.41424, -1.40306, 2.41424, -0.09236], ["exp_avg", "exp_avg_sq", "step"]),
    ("Adam(p, lr=0.1, amsgrad=True, weight_decay=0.1)", [0.41424, -1.40309, 2.4109, -0.09224], ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"]),
    ("AdamW(p, lr=0.1)", [0.40994, -1.39266, 2.39845, -0.09383], ["exp_avg", "exp_avg_sq", "step"]),
    ("AdamW(p, lr=0.1, betas=(0.5, 0.9), eps=1e-3, weight_decay=0.2)", [0.37034, -1.21803, 2.17247, -0.09882], ["exp_avg", "exp_avg_sq", "step"]),
    ("RMSprop(p, lr=0.1)", [-0.0, 0.54563, 2.0, -0.99689], ["square_avg", "step"]),
    ("RMSprop(p, lr=0.1, centered=True, momentum=0.9)", [0.76934, 3.40894, 2.76934, -1.02478], ["grad_avg", "momentum_buffer", "square_avg", "step"]),
    ("Adagrad(p, lr=0.1)", [0.66343, -1.64451, 2.66343, 0.15365], ["step", "sum"]),
    ("Adadelta(p, lr=1.0)", [0.98026, -1.98019, 2.98026, 0.48022], ["acc_delta", "square_avg", "step"]),
    ("Adamax(p, lr=0.1)", [0.47719, -1.42564, 2.47719, -0.04814], ["exp_avg", "exp_inf", "step"]),
    ("NAdam(p, lr=0.1)", [0.56044, -1.53113, 2.56044, 0.04511], ["exp_avg", "exp_avg_sq", "mu_product", "step"]),
    ("RAdam(p, lr=0.1)", [0.19952, 1.76039, 2.54992, -1.66887], ["exp_avg", "exp_avg_sq", "step"]),
    ("Rprop(p, lr=0.1)", [0.00701, -1.00701, 2.00701, -0.49299], ["prev", "step", "step_size"]),
    ("ASGD(p, lr=0.1)", [0.26213, 0.86001, 2.53132, -0.99384], ["ax", "eta", "mu", "step"]),
    ("Adafactor(p, lr=0.1)", [0.21372, -1.09862, 2.33358, -0.3359], ["col_var", "row_var", "step"]),
    ("Muon(p, lr=0.1)", [0.67795, -1.56485, 2.5092, 0.20772], ["momentum_buffer"]),
    ("LBFGS(p, lr=0.5, max_iter=3)", [0.00029, 1.00099, 2.00965, -1.00014], ["H_diag", "al", "d", "func_evals", "n_iter", "old_dirs", "old_stps", "prev_flat_grad", "prev_loss", "ro", "t"]),
]
# constructor, the rate at each of eight steps
SCHEDULES = [
    ("StepLR(o, 3, 0.5)", [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25]),
    ("MultiStepLR(o, [2, 5], 0.1)", [1.0, 1.0, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01]),
    ("ConstantLR(o, 0.5, 4)", [0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0]),
    ("LinearLR(o, 0.25, 1.0, 4)", [0.25, 0.4375, 0.625, 0.8125, 1.0, 1.0, 1.0, 1.0]),
    ("ExponentialLR(o, 0.8)", [1.0, 0.8, 0.64, 0.512, 0.4096, 0.32768, 0.262144, 0.209715]),
    ("CosineAnnealingLR(o, 5, 0.1)", [1.0, 0.914058, 0.689058, 0.410942, 0.185942, 0.1, 0.185942, 0.410942]),
    ("PolynomialLR(o, 5, 2.0)", [1.0, 0.64, 0.36, 0.16, 0.04, 0.0, 0.0, 0.0]),
    ("CosineAnnealingWarmRestarts(o, 3, 2)", [1.0, 0.75, 0.25, 1.0, 0.933013, 0.75, 0.5, 0.25]),
    ("OneCycleLR(o, 2.0, total_steps=10)", [0.08, 1.04, 2.0, 1.900969, 1.623491, 1.222524, 0.777484, 0.376517]),
    ("CyclicLR(o, 0.1, 1.0, step_size_up=3, cycle_momentum=False)", [0.1, 0.4, 0.7, 1.0, 0.7, 0.4, 0.1, 0.4]),
    ("LambdaLR(o, lambda n: 1 / (n + 1))", [1.0, 0.5, 0.333333, 0.25, 0.2, 0.166667, 0.142857, 0.125]),
    ("MultiplicativeLR(o, lambda n: 0.9)", [1.0, 0.9, 0.81, 0.729, 0.6561, 0.59049, 0.531441, 0.478297]),
    ("SequentialLR(o, [L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.9)], [3])", [0.1, 0.1, 1.0, 1.0, 0.9, 0.81, 0.729, 0.6561]),
    ("ChainedScheduler([L.ConstantLR(o, 0.1, 3), L.ExponentialLR(o, 0.9)])", [0.1, 0.09, 0.081, 0.729, 0.6561, 0.59049, 0.531441, 0.478297]),
]
WEIGHTS = [[1.0, -2.0], [3.0, 0.5]]


def run(text, steps=6, reload_at=None, **options):
    w = torch.tensor(WEIGHTS, requires_grad=True)
    target, scale = torch.tensor([[0.0, 1.0], [2.0, -1.0]]), torch.tensor([[1.0, 2.0], [0.5, 3.0]])

    def make():
        return eval("torch.optim." + text, {"torch": torch, "p": [w]})

    optimizer = make()
    for group in optimizer.param_groups:
        group.update(options)

    def closure():
        optimizer.zero_grad()
        loss = ((w - target) ** 2 * scale).sum()
        loss.backward()
        return loss

    for step in range(steps):
        if step == reload_at:
            state = optimizer.state_dict()
            optimizer = make()
            optimizer.load_state_dict(state)
        optimizer.step(closure)
    return w.detach().flatten().tolist(), optimizer


@pytest.mark.parametrize(("text", "numbers", "state"), OPTIMIZERS, ids=[row[0] for row in OPTIMIZERS])
def test_optimizer_gives_pytorchs_numbers(text, numbers, state):
    values, optimizer = run(text)
    assert values == pytest.approx(numbers, rel=2e-5, abs=2e-5)
    assert sorted(optimizer.state_dict()["state"].get(0, ())) == state


@pytest.mark.parametrize("text", [row[0] for row in OPTIMIZERS if "LBFGS" not in row[0]])
def test_a_loaded_state_continues_exactly(text):
    assert run(text, reload_at=3)[0] == run(text)[0]


@pytest.mark.parametrize("form", ["foreach", "fused"])
@pytest.mark.parametrize("text", ["SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1)", "Adam(p, lr=0.1, amsgrad=True)", "AdamW(p, lr=0.1)"])
def test_forms_agree(text, form):
    assert run(text, **{form: True})[0] == pytest.approx(run(text)[0], rel=1e-5)


@pytest.mark.parametrize(("text", "rates"), SCHEDULES, ids=[row[0] for row in SCHEDULES])
def test_schedule(text, rates):
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    schedule = eval("L." + text, {"L": torch.optim.lr_scheduler, "o": optimizer})
    seen = []
    for _ in range(8):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert seen == pytest.approx(rates, abs=1e-6)


def test_plateau_schedule_waits_for_no_progress():
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    rates = []
    for loss in (1.0, 1.0, 1.0, 0.5, 0.5, 0.5):
        schedule.step(loss)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == [1.0, 1.0, 0.5, 0.5, 0.5, 0.25]


def test_groups_and_repr():
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([{"params": [a], "lr": 0.5}, {"params": [b]}], lr=0.1)
    assert [g["lr"] for g in optimizer.param_groups] == [0.5, 0.1]
    assert repr(torch.optim.SGD([a], lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n    lr: 0.1\n"
        "    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n)")
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optimizer.add_param_group({"params": [a]})


def test_errors():
    with pytest.raises(ValueError, match="optimizer got an empty parameter list"):
        torch.optim.AdamW([])
    with pytest.raises(TypeError, match="params argument given to the optimizer should be an iterable of Tensors or dicts, but got torch.FloatTensor"):
        torch.optim.SGD(torch.ones(1), lr=0.1)
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        torch.optim.Adam([nn.Parameter(torch.ones(1))], lr=-1)
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        torch.optim.SGD([nn.Parameter(torch.ones(1)) * 2], lr=0.1)
    with pytest.raises(ValueError, match="loaded state dict has a different number of parameter groups"):
        p = nn.Parameter(torch.ones(1))
        two = torch.optim.SGD([{"params": [p]}, {"params": [nn.Parameter(torch.ones(1))]}], lr=0.1)
        torch.optim.SGD([p], lr=0.1).load_state_dict(two.state_dict())


def test_step_hooks():
    p = nn.Parameter(torch.ones(1))
    p.grad = torch.ones(1)
    optimizer, seen = torch.optim.SGD([p], lr=0.1), []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("before"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))
    optimizer.step()
    assert seen == ["before", "after"]


def test_averaged_model():
    layer = nn.Linear(1, 1, bias=False)
    averaged = torch.optim.swa_utils.AveragedModel(layer)
    for value in (1.0, 2.0, 6.0):
        nn.init.constant_(layer.weight, value)
        averaged.update_parameters(layer)
    assert averaged.module.weight.item() == pytest.approx(3.0)
