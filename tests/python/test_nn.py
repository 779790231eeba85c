"""torch.nn: layers give PyTorch's numbers for a seed; modules keep PyTorch's rules, texts and keys."""
import copy
import pickle

import pytest
import taimatsu as torch
from taimatsu import nn

# constructor, [sum, largest magnitude, element 5] of the output under seed 0 as PyTorch 2.13 gives them, state_dict
LAYERS = [
    ("nn.Linear(4, 3)", [-12.27139, 1.22511, -0.03334], [("weight", (3, 4)), ("bias", (3,))]),
    ("nn.Linear(4, 3, bias=False)", [-0.09227, 0.74744, 0.17277], [("weight", (3, 4))]),
    ("nn.Bilinear(4, 4, 2)", [-13.36188, 2.93546, 0.29523], [("weight", (2, 4, 4)), ("bias", (2,))]),
    ("nn.LayerNorm(4)", [0.0, 1.34027, -0.44676], [("weight", (4,)), ("bias", (4,))]),
    ("nn.RMSNorm(4)", [-0.4747, 1.60356, -1.02516], [("weight", (4,))]),
    ("nn.GroupNorm(2, 4)", [0.0, 1.52715, 0.65449], [("weight", (4,)), ("bias", (4,))]),
    ("nn.BatchNorm1d(4)", [-0.0, 1.33468, -1.25841],
      [("weight", (4,)), ("bias", (4,)), ("running_mean", (4,)), ("running_var", (4,)), ("num_batches_tracked", ())]),
    ("nn.InstanceNorm1d(4)", [0.0, 1.34027, -0.44676], []),
    ("nn.Dropout(0.5)", [0.625, 2.875, -0.0], []),
    ("nn.GELU()", [11.02881, 1.32927, -0.13955], []),
    ("nn.GELU(approximate='tanh')", [11.0242, 1.32904, -0.13976], []),
    ("nn.SiLU()", [7.38155, 1.1616, -0.27753], []),
    ("nn.Mish()", [8.92102, 1.33535, -0.30884], []),
    ("nn.ELU()", [5.29553, 1.4375, -0.69502], []),
    ("nn.SELU()", [-2.89255, 1.51038, -1.22191], []),
    ("nn.CELU()", [5.29553, 1.4375, -0.69502], []),
    ("nn.Softplus()", [36.79523, 1.65061, 0.26619], []),
    ("nn.Softsign()", [-0.6, 0.6, -0.54286], []),
    ("nn.Hardswish()", [5.25521, 1.06315, -0.35872], []),
    ("nn.LeakyReLU(0.1)", [15.375, 1.4375, -0.11875], []),
    ("nn.PReLU()", [12.5625, 1.4375, -0.29688], [("weight", (1,))]),
    ("nn.LogSigmoid()", [-38.29523, 1.70141, -1.45369], []),
    ("nn.Softmax(dim=-1)", [12.0, 0.2739, 0.24172], []),
    ("nn.LogSoftmax(dim=-1)", [-66.65925, 1.48248, -1.41998], []),
    ("nn.GLU()", [2.90399, 1.06059, -0.28815], []),
    ("nn.Hardtanh()", [-1.0, 1.0, -1.0], []),
    ("nn.Threshold(0.1, 2.0)", [69.1875, 2.0, 2.0], []),
    ("nn.Tanhshrink()", [-0.59485, 0.59485, -0.3577], []),
    ("nn.Softshrink()", [-1.0, 1.0, -0.6875], []),
    ("nn.Conv1d(4, 2, 3)", [2.34465, 0.48678, 0.00927], [("weight", (2, 4, 3)), ("bias", (2,))]),
    ("nn.ConvTranspose1d(4, 2, 3, stride=2)", [1.91847, 1.16363, -0.3834], [("weight", (4, 2, 3)), ("bias", (2,))]),
    ("nn.AvgPool1d(2)", [-0.75, 1.46875, -0.84375], []),
    ("nn.MaxPool1d(2)", [0.0, 1.4375, -0.8125], []),
    ("nn.AdaptiveAvgPool1d(2)", [-0.75, 1.46875, -0.84375], []),
    ("nn.LPPool1d(2, 2)", [25.50859, 2.0776, 1.19406], []),
    ("nn.ConstantPad1d(1, 3.5)", [82.5, 3.5, 3.5], []),
    ("nn.ReflectionPad1d(1)", [-2.25, 1.5, -1.375], []),
    ("nn.ReplicationPad1d((2, 1))", [-3.75, 1.5, -1.3125], []),
    ("nn.Flatten()", [-1.5, 1.5, -1.1875], []),
    ("nn.Upsample(scale_factor=2)", [-3.0, 1.5, -1.375], []),
    ("nn.RNN(4, 3)", [11.45375, 0.83394, 0.81918],
      [("weight_ih_l0", (3, 4)), ("weight_hh_l0", (3, 3)), ("bias_ih_l0", (3,)), ("bias_hh_l0", (3,))]),
    ("nn.LSTM(4, 3, 2)", [-4.28308, 0.21452, -0.09359],
      [("weight_ih_l0", (12, 4)), ("weight_hh_l0", (12, 3)), ("bias_ih_l0", (12,)), ("bias_hh_l0", (12,)), ("weight_ih_l1", (12, 3)),
      ("weight_hh_l1", (12, 3)), ("bias_ih_l1", (12,)), ("bias_hh_l1", (12,))]),
    ("nn.GRU(4, 3, bidirectional=True)", [-13.47599, 0.7652, -0.47162],
      [("weight_ih_l0", (9, 4)), ("weight_hh_l0", (9, 3)), ("bias_ih_l0", (9,)), ("bias_hh_l0", (9,)),
      ("weight_ih_l0_reverse", (9, 4)), ("weight_hh_l0_reverse", (9, 3)), ("bias_ih_l0_reverse", (9,)), ("bias_hh_l0_reverse", (9,))]),
    ("nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)", [0.0, 1.66368, 1.5952],
      [('self_attn.in_proj_weight', (12, 4)), ('self_attn.in_proj_bias', (12,)), ('self_attn.out_proj.weight', (4, 4)),
      ('self_attn.out_proj.bias', (4,)), ('linear1.weight', (8, 4)), ('linear1.bias', (8,)), ('linear2.weight', (4, 8)),
      ('linear2.bias', (4,)), ('norm1.weight', (4,)), ('norm1.bias', (4,)), ('norm2.weight', (4,)), ('norm2.bias', (4,))]),
]


@pytest.mark.parametrize(("text", "numbers", "state"), LAYERS, ids=[row[0] for row in LAYERS])
def test_layer_gives_pytorchs_numbers(text, numbers, state):
    torch.manual_seed(0)
    layer = eval(text)
    x = torch.arange(48.0).reshape(3, 4, 4) / 16 - 1.5
    y = layer(x, x) if "Bilinear" in text else layer(x)
    y = (y[0] if isinstance(y, tuple) else y).detach().flatten()
    assert [y.sum().item(), y.abs().max().item(), y[5].item()] == pytest.approx(numbers, rel=2e-5, abs=2e-5)
    assert [(k, tuple(v.shape)) for k, v in layer.state_dict().items()] == state


def test_repr():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, bias=False), nn.BatchNorm2d(2)))
    assert repr(model) == """Sequential(
  (0): Linear(in_features=4, out_features=8, bias=True)
  (1): ReLU(inplace=True)
  (2): Sequential(
    (0): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)
    (1): BatchNorm2d(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
  )
)"""
    assert repr(nn.ModuleList([nn.Linear(1, 1) for _ in range(3)])) == (
        "ModuleList(\n  (0-2): 3 x Linear(in_features=1, out_features=1, bias=True)\n)")
    assert repr(nn.LSTM(3, 4, 2, batch_first=True)) == "LSTM(3, 4, num_layers=2, batch_first=True)"
    assert repr(nn.Identity()) == "Identity()"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.register_buffer("kept", torch.ones(2))
        self.register_buffer("passing", torch.zeros(1), persistent=False)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        return self.fc(x) * self.scale + self.kept


def test_names_of_parameters_buffers_and_modules():
    net = Net()
    assert list(net.state_dict()) == ["scale", "kept", "fc.weight", "fc.bias"]
    assert [n for n, _ in net.named_parameters()] == ["scale", "fc.weight", "fc.bias"]
    assert [n for n, _ in net.named_buffers()] == ["kept", "passing"]
    assert [n for n, _ in net.named_modules()] == ["", "fc"]
    assert net.get_submodule("fc") is net.fc
    assert net.get_parameter("fc.weight") is net.fc.weight
    assert net.get_buffer("kept") is net.kept
    with pytest.raises(AttributeError, match="Net has no attribute `fd`"):
        net.get_submodule("fd")


def test_load_state_dict_reports_what_does_not_fit():
    net = Net()
    state = net.state_dict()
    del state["scale"]
    state["more"] = torch.ones(1)
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(state)
    assert str(error.value) == ('Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "scale". '
                                '\n\tUnexpected key(s) in state_dict: "more". ')
    report = net.load_state_dict(state, strict=False)
    assert report.missing_keys == ["scale"]
    assert report.unexpected_keys == ["more"]
    state = net.state_dict()
    state["fc.bias"] = torch.ones(3)
    with pytest.raises(RuntimeError, match=r"size mismatch for fc\.bias: copying a param with shape torch\.Size\(\[3\]\) from checkpoint, "
                       r"the shape in current model is torch\.Size\(\[2\]\)\."):
        net.load_state_dict(state)


def test_load_state_dict_copies_or_assigns():
    net, other = Net(), Net()
    weight = net.fc.weight
    net.load_state_dict(other.state_dict())
    assert net.fc.weight is weight
    assert torch.equal(weight, other.fc.weight)
    net.load_state_dict(other.state_dict(), assign=True)
    assert net.fc.weight.data_ptr() == other.fc.weight.data_ptr()
    assert isinstance(net.fc.weight, nn.Parameter)


def test_assignment_rules():
    net = Net()
    with pytest.raises(TypeError, match=r"cannot assign 'torch\.FloatTensor' as parameter 'scale' \(torch\.nn\.Parameter or None expected\)"):
        net.scale = torch.ones(1)
    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module\.__init__\(\) call"):
        class Early(nn.Module):
            def __init__(self):
                self.w = nn.Parameter(torch.ones(1))
        Early()
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'absent'"):
        net.absent  # noqa: B018
    with pytest.raises(KeyError, match="attribute 'fc' already exists"):
        net.register_buffer("fc", torch.ones(1))
    del net.scale
    assert "scale" not in dict(net.named_parameters())


def test_hooks_run_in_order():
    seen = []
    net = Net()
    handles = [net.register_forward_pre_hook(lambda m, args: seen.append("before")),
               net.register_forward_hook(lambda m, args, out: seen.append("after")),
               net.register_full_backward_pre_hook(lambda m, g: seen.append("backward before")),
               net.register_full_backward_hook(lambda m, gi, go: seen.append("backward"))]
    net(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == ["before", "after", "backward before", "backward"]
    for handle in handles:
        handle.remove()
    net(torch.ones(1, 2))
    assert len(seen) == 4
    net.register_forward_hook(lambda m, args, out: out * 0)
    assert net(torch.ones(1, 2)).abs().sum() == 0
    doubled = nn.Identity()
    doubled.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    assert doubled(torch.ones(1)).item() == 2


def test_modes_types_and_gradients():
    net = nn.Sequential(Net(), nn.Dropout(0.5))
    assert not net.eval()[1].training
    assert torch.equal(net(torch.ones(1, 2)), net(torch.ones(1, 2)))
    weight = net[0].fc.weight
    assert net.double()[0].fc.weight is weight
    assert weight.dtype == torch.float64
    assert net[0].kept.dtype == torch.float64
    net(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
    assert weight.grad is not None
    net.zero_grad()
    assert weight.grad is None
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_copies_and_pickles_are_independent():
    net = Net()
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(twin.fc.weight, net.fc.weight)
        assert isinstance(twin.scale, nn.Parameter)
        with torch.no_grad():
            twin.fc.weight.add_(1)
        assert not torch.equal(twin.fc.weight, net.fc.weight)


def test_containers():
    seq = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
    assert len(seq[1:]) == 2
    assert seq[-1] is seq[2]
    seq.append(nn.Tanh())
    del seq[0]
    assert [type(m).__name__ for m in seq] == ["ReLU", "Linear", "Tanh"]
    table = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.ReLU()})
    assert list(table) == ["a", "b"]
    assert "a" in table
    values = nn.ParameterList([torch.ones(1), nn.Parameter(torch.ones(2))])
    assert len(list(values.parameters())) == 2
    with pytest.raises(IndexError, match="index 9 is out of range"):
        nn.ModuleList([nn.ReLU()])[9]


def test_padded_sequences():
    rows = [torch.arange(float(n)).reshape(n, 1) for n in (3, 1, 2)]
    packed = nn.utils.rnn.pack_sequence(rows, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    back, lengths = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    assert lengths.tolist() == [3, 1, 2]
    assert back[..., 0].tolist() == [[0, 1, 2], [0, 0, 0], [0, 1, 0]]
    out, _ = nn.GRU(1, 2)(packed)
    assert out.data.shape == (6, 2)


def test_gradient_clipping():
    w = nn.Parameter(torch.ones(4))
    w.grad = torch.full((4,), 3.0)
    assert nn.utils.clip_grad_norm_([w], 1.5).item() == 6.0
    assert torch.allclose(w.grad, torch.full((4,), 0.75))
    nn.utils.clip_grad_value_([w], 0.5)
    assert w.grad.tolist() == [0.5] * 4


def test_losses():
    logits = torch.tensor([[2.0, 1.0, 0.1], [0.5, 2.5, 0.3]])
    target = torch.tensor([0, 1])
    assert nn.CrossEntropyLoss()(logits, target).item() == pytest.approx(0.319, abs=2e-3)
    assert nn.CrossEntropyLoss(ignore_index=1)(logits, target).item() == pytest.approx(0.41703, abs=1e-4)
    x, y = torch.tensor([0.0, 1.0, 4.0]), torch.tensor([1.0, 1.0, 1.0])
    assert nn.MSELoss()(x, y).item() == pytest.approx(10 / 3)
    assert nn.L1Loss(reduction="sum")(x, y).item() == 4
    assert nn.HuberLoss()(x, y).item() == pytest.approx(1.0)
    assert nn.BCEWithLogitsLoss()(torch.zeros(2), torch.tensor([0.0, 1.0])).item() == pytest.approx(0.6931472)


def test_lazy_layer_takes_shape_at_the_first_call():
    with pytest.warns(UserWarning, match="Lazy modules are a new feature"):
        layer = nn.LazyLinear(3)
    assert layer(torch.ones(2, 5)).shape == (2, 3)
    assert type(layer) is nn.Linear
    assert layer.in_features == 5


def test_unknown_names_raise():
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchLayer'"):
        nn.NoSuchLayer  # noqa: B018
    assert not hasattr(nn.functional, "no_such_function")
