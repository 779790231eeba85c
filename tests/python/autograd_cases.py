"""Small programs about differentiation. Each takes the module under test (PyTorch or Taimatsu) and returns plain values.

    python autograd_cases.py       prints {name: result} of PyTorch as JSON; autograd_expected.json is that, written down
"""
import gc
import json
import warnings
import weakref

CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


def attempt(f, *args):
    """What f returns, or 'Class: message'."""
    try:
        return f(*args)
    except Exception as e:  # noqa: BLE001 (the class is what is looked at)
        return f"{type(e).__name__}: {e}"


def run(name, t):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return attempt(CASES[name], t)


def leaf(t, *values):
    return t.tensor([float(v) for v in values], requires_grad=True)


def fn(x):
    return None if x.grad_fn is None else type(x.grad_fn).__name__


# ---- recording

@case
def names_of_nodes(t):
    x = t.ones(2, 2, requires_grad=True)
    values = [x + 1, x - x, x * 2, x / x, -x, x ** 2, x @ x, x.exp(), x.sum(), x.sum(0), x.mean(), x.t(), x.view(4), x.reshape(4), x[0], x[:, 1:],
              x.transpose(0, 1), x.permute(1, 0), x.unsqueeze(0), x.expand(3, 2, 2), x.relu(), x.softmax(0), x.log_softmax(1), x.clone(), x.sqrt(),
              x.max(), x.max(0).values, x.tanh(), x.sigmoid(), t.cat([x, x]), t.stack([x, x]), t.where(x > 0, x, x), x.masked_fill(x > 0, 1.0),
              t.nn.functional.gelu(x), t.nn.functional.layer_norm(x, (2,)), t.nn.functional.linear(x, x, x[0]), x.double(), x.cumsum(0), x.norm(),
              x.split(1)[1], x.unbind()[0], x.chunk(2)[0]]
    return [fn(v) for v in values]


@case
def requires_grad_rules(t):
    x = leaf(t, 1, 2)
    y = x * 2
    with t.no_grad():
        z = x * 2
        with t.enable_grad():
            w = x * 2
    d = x.detach()
    return [x.requires_grad, x.is_leaf, y.requires_grad, y.is_leaf, z.requires_grad, z.is_leaf, w.requires_grad, d.requires_grad, d.is_leaf,
            (x > 1).requires_grad, x.argmax().requires_grad, (d * 2).requires_grad, x.data.requires_grad]


@case
def next_functions(t):
    x, c = leaf(t, 1, 2), t.ones(2)
    return [[type(f).__name__ if f else None for f, _ in v.grad_fn.next_functions]
            for v in (x - c, x * c, t.cat([x, c, x]), t.where(x > 1, x, c), (x * 2).exp())]


@case
def grad_mode_is_restored(t):
    seen = [t.is_grad_enabled()]
    try:
        with t.no_grad():
            seen.append(t.is_grad_enabled())
            raise ValueError
    except ValueError:
        seen.append(t.is_grad_enabled())

    @t.no_grad()
    def f():
        return t.is_grad_enabled()

    with t.set_grad_enabled(False):
        seen.append(t.is_grad_enabled())
    return seen + [f(), t.is_grad_enabled()]


# ---- backward

@case
def accumulates(t):
    x = leaf(t, 1, 2)
    (x * x).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    return [x.grad.tolist(), x.grad is first]


@case
def broadcast(t):
    x, b = t.ones(2, 3, requires_grad=True), leaf(t, 1, 2, 3)
    s = t.tensor(2.0, requires_grad=True)
    ((x * b + s) * b).sum().backward()
    return [x.grad.tolist(), b.grad.tolist(), s.grad.tolist()]


@case
def mixed_dtypes(t):
    x = leaf(t, 1, 2)
    (x.double() * t.tensor([3.0, 4.0], dtype=t.float64)).sum().backward()
    return [x.grad.tolist(), str(x.grad.dtype).split(".")[-1]]


@case
def given_gradient(t):
    x = leaf(t, 1, 2)
    (x * x).backward(t.tensor([1.0, 10.0]))
    return x.grad.tolist()


@case
def grad_of_inner(t):
    x = leaf(t, 3)
    y = x * x
    z = y * y
    gy, gx = t.autograd.grad(z.sum(), (y, x))
    return [gy.tolist(), gx.tolist(), x.grad]


@case
def grad_unused(t):
    x, y = leaf(t, 1), leaf(t, 1)
    return [attempt(t.autograd.grad, x.sum(), y), t.autograd.grad(x.sum(), [x, y], allow_unused=True)[1],
            attempt(t.autograd.grad, x.sum(), t.ones(1))]


@case
def inputs_only(t):
    x, y = leaf(t, 1, 2), leaf(t, 3, 4)
    z = x * y
    t.autograd.backward([(z * z).sum()], inputs=[x, z])
    return [x.grad.tolist(), y.grad, z.grad.tolist()]


@case
def second_derivative(t):
    x = leaf(t, 1, 2)
    g, = t.autograd.grad((x ** 3).sum(), x, create_graph=True)
    h, = t.autograd.grad(g.sum(), x)
    return [g.tolist(), h.tolist(), g.requires_grad, h.requires_grad]


@case
def third_derivative_of_exp(t):
    x = t.tensor(0.0, requires_grad=True)
    y = x.exp()
    for _ in range(3):
        y, = t.autograd.grad(y, x, create_graph=True)
    return y.item()


@case
def backward_through_grad(t):
    x = leaf(t, 1, 2)
    (x * x * x).sum().backward(create_graph=True)
    g = x.grad
    x.grad = None
    (g * g).sum().backward()
    return [g.tolist(), x.grad.tolist()]


@case
def backward_twice(t):
    x = leaf(t, 1, 2)
    y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    s = (x + 1).sum()
    s.backward()
    s.backward()   # nothing was saved: allowed
    return [[round(v, 4) for v in x.grad.tolist()], attempt(y.backward)]


@case
def backward_errors(t):
    x = leaf(t, 1, 2)
    return [attempt((x * 2).backward), attempt(t.ones(1).backward), attempt((x * 2).backward, t.ones(3)),
            attempt(t.autograd.backward, [x.sum(), x.sum()], [None]), attempt(lambda: t.autograd.backward([x.sum()], inputs=[]))]


@case
def flags_errors(t):
    x = leaf(t, 1, 2)
    y = x * 2

    def set_flag(v, on):
        v.requires_grad = on

    def set_grad(g):
        x.grad = g

    return [attempt(t.ones(2, dtype=t.int64).requires_grad_), attempt(set_flag, y, False), attempt(set_grad, t.ones(3)), attempt(set_grad, 1),
            attempt(set_grad, t.ones(2, dtype=t.float64)), attempt(t.ones(2).retain_grad), attempt(t.ones(2).register_hook, print),
            attempt(y.register_post_accumulate_grad_hook, print), attempt(x[0].detach_), attempt(x.numpy)]


@case
def retain_grad(t):
    x = leaf(t, 1, 2)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    return [y.grad.tolist(), x.grad.tolist(), y.retains_grad, x.retains_grad]


@case
def detach_inplace(t):
    x = leaf(t, 1, 2)
    y = x * 2
    s = y.sum()
    y.detach_()
    s.backward()
    return [y.requires_grad, fn(y), x.grad.tolist()]


@case
def data_and_versions(t):
    x = t.ones(2)
    d, e = x.data, x.detach()
    d.add_(1)
    before = x._version
    e.add_(1)
    return [before, x._version, x.tolist(), x[0]._version]


# ---- in-place and views

def view_case(t, leaf_base, before, on_base):
    c1, c2 = t.tensor([[1.0, 2], [3, 4]]), t.tensor([10.0, 20])
    x = t.tensor([[1.0, 2], [3, 4]], requires_grad=True)
    b = t.tensor([[1.0, 2], [3, 4]]) if leaf_base else x * 2
    w = t.tensor([[0.5, 1], [1.5, 2]] if on_base else [0.5, 3.0], requires_grad=True)
    v = b[1] if before else None
    if on_base:
        b.mul_(w)
    else:
        (b[1] if v is None else v).mul_(w)
    v = b[1] if v is None else v
    loss = (b * c1).sum() + (v * c2).sum()
    names = [fn(b), fn(v)]
    loss.backward()
    return [loss.item(), names, w.grad.tolist(), None if x.grad is None else x.grad.tolist()]


@case
def views_and_inplace(t):
    return [view_case(t, a, b, c) for a in (True, False) for b in (True, False) for c in (True, False)]


@case
def chain_of_views(t):
    x = t.arange(12.0).reshape(3, 4).requires_grad_()
    b = x * 1
    v = b.t()[1:3].unsqueeze(0)
    v[0, :, 1].mul_(t.tensor([2.0, 3.0]))
    b[0].zero_()
    (v * v).sum().backward()
    return [v.tolist(), x.grad.tolist(), fn(v)]


@case
def inplace_through_a_view_twice(t):
    x = leaf(t, 1, 2, 3)
    y = x * 1
    y[0] = 5
    y[1] *= x[2]
    y[1:].exp_()
    g, = t.autograd.grad(y.sum(), x, create_graph=True)
    h, = t.autograd.grad(g.sum(), x)
    return [[round(v, 3) for v in g.tolist()], [round(v, 3) for v in h.tolist()]]


@case
def view_of_plain_base(t):
    b = t.zeros(3)
    v = b[1:]
    v.copy_(leaf(t, 1, 2))
    return [b.requires_grad, fn(b), fn(v), v.requires_grad, v._base is b, v.is_leaf]


@case
def inplace_errors(t):
    x = leaf(t, 1, 2)

    def exp_changed():
        z = (x * 1).exp()
        z.add_(1)
        z.sum().backward()

    def input_changed():
        y = x * 1
        z = y * y
        y.add_(1)
        z.sum().backward()

    def leaf_changed():
        w = leaf(t, 1, 2)
        z = w * x
        with t.no_grad():
            w.add_(1)
        z.sum().backward()

    def base_of_split():
        y = x * 1
        a, _ = y.chunk(2)
        y.add_(1)
        return a.grad_fn

    def no_grad_view(how):
        y = x * 1
        with t.no_grad():
            v = y[0]
        if how == "base":
            y.add_(1)
            return v.grad_fn
        v.add_(1)

    return [attempt(x.add_, 1), attempt(x[0].add_, 1), attempt((x * 1).chunk(2)[0].add_, 1), attempt((x * 1).unbind()[1].add_, 1),
            attempt((x * 1).chunk(2)[1][0].add_, 1), attempt(exp_changed), attempt(input_changed), attempt(leaf_changed), attempt(base_of_split),
            attempt(no_grad_view, "view"), attempt(no_grad_view, "base"), attempt(lambda: t.add(x, x, out=t.ones(2))),
            attempt(lambda: t.add(t.ones(2), 1, out=x))]


@case
def anomaly_text(t):
    x = leaf(t, 1, 2)
    z = (x * 1).exp()
    z.add_(1)
    out = []
    with t.autograd.detect_anomaly():
        out.append(attempt(z.sum().backward))
        out.append(attempt((t.sqrt(x * 0) * 0).sum().backward))
    return out


@case
def inference_mode(t):
    x = leaf(t, 1, 2)
    y = x * 1
    with t.inference_mode():
        a = t.ones(2)
        b = x * 2
        v = y[0]
        inside = [t.is_inference_mode_enabled(), t.is_grad_enabled()]
        a.add_(1)
    return inside + [a.is_inference(), b.requires_grad, b.is_inference(), v.is_inference(), a[0].is_inference(), (a * 1).is_inference(), fn(a + x),
                     attempt(lambda: a * x), attempt(a.add_, 1), attempt(a.requires_grad_), attempt(v.add_, 1), attempt(lambda: a._version),
                     a.clone().requires_grad]


# ---- hooks

@case
def tensor_hooks(t):
    x = leaf(t, 1, 2)
    y = x * 2
    seen = []
    h = x.register_hook(lambda g: seen.append(("x", g.tolist())))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(("y", g.tolist())))
    y.sum().backward(retain_graph=True)
    h.remove()
    y.sum().backward()
    return [seen, x.grad.tolist()]


@case
def hooks_keep_their_place(t):
    x, seen = leaf(t, 1, 2), []
    y = x * 1
    y.register_hook(lambda g: seen.append(["before", g.tolist()]))
    y.mul_(2)
    y.register_hook(lambda g: seen.append(["after", g.tolist()]))
    y.sum().backward()
    return seen


@case
def node_hooks(t):
    x, seen = leaf(t, 1, 2), []
    y = x * t.full((2,), 2.0)
    y.register_hook(lambda g: seen.append("tensor"))
    y.grad_fn.register_prehook(lambda g: seen.append(["pre", [v.tolist() for v in g]]))
    y.grad_fn.register_hook(lambda i, o: seen.append(["post", [v if v is None else v.tolist() for v in i], [v.tolist() for v in o]]))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(["done", p.grad.tolist()]))
    x.register_hook(lambda g: g * 3)
    y.sum().backward()
    return seen


@case
def hook_errors(t):
    class Mine(Exception):
        pass

    def raises(g):
        raise Mine("mine")

    def go(hook):
        y = leaf(t, 1, 2) * 2
        y.register_hook(hook)
        y.sum().backward()

    return [attempt(go, raises), attempt(go, lambda g: 3)]


@case
def saved_tensor_hooks(t):
    log = []

    def pack(x):
        log.append(["pack", x.tolist()])
        return x.tolist()

    def unpack(v):
        log.append(["unpack", v])
        return t.tensor(v)

    x = leaf(t, 1, 2)
    with t.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    g, = t.autograd.grad(y.sum(), x, create_graph=True)
    h, = t.autograd.grad(g.sum(), x)
    return [log[:2], g.tolist(), h.tolist()]


# ---- custom functions

def functions(t):
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return 2 * x * g

    class Same(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    class Dirty(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    return Square, Same, Dirty


@case
def custom_function(t):
    square, _, _ = functions(t)
    x = leaf(t, 1, 2)
    y = square.apply(x)
    name, needs = type(y.grad_fn).__name__, y.grad_fn.name()
    g, = t.autograd.grad((y * y).sum(), x, create_graph=True)
    h, = t.autograd.grad(g.sum(), x)
    return [name, needs, y.tolist(), g.tolist(), h.tolist(), square.apply(t.ones(2)).requires_grad]


@case
def custom_function_twice(t):
    square, _, _ = functions(t)
    y = square.apply(leaf(t, 1, 2)).sum()
    y.backward()
    return attempt(y.backward)


@case
def custom_function_that_returns_its_input(t):
    _, same, _ = functions(t)
    x = leaf(t, 1, 2)
    y = same.apply(x)
    y.sum().backward()
    return [y is x, x.grad.tolist(), attempt(same.apply(x * 1).add_, 1)]


@case
def custom_function_in_place(t):
    _, _, dirty = functions(t)
    x = leaf(t, 1, 2)
    y = x * 2
    z = dirty.apply(y)
    z.sum().backward()
    w = x * 2
    v = dirty.apply(w[0])
    names = [fn(w), fn(v)]
    return [z is y, x.grad.tolist(), names, attempt(dirty.apply, x)]


@case
def custom_function_results(t):
    class Two(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            i = x.argmax()
            ctx.mark_non_differentiable(i)
            ctx.k = k
            return x * k, i, x + 1

        @staticmethod
        def backward(ctx, g, gi, h):
            return g * ctx.k + h * 100, None

    class Wrong(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return (g, g) if g.shape[0] == 2 else t.ones(7)

    x = leaf(t, 1, 2)
    a, i, b = Two.apply(x, 3)
    a.sum().backward(retain_graph=True)
    first = x.grad.tolist()
    b.sum().backward()
    return [first, x.grad.tolist(), [a.requires_grad, i.requires_grad, b.requires_grad], attempt(Wrong.apply(x).sum().backward),
            attempt(Wrong.apply(leaf(t, 1, 2, 3)).sum().backward)]


@case
def custom_function_setup_context(t):
    class Scale(t.autograd.Function):
        @staticmethod
        def forward(x, k):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    x = leaf(t, 1, 2)
    Scale.apply(x, 4).sum().backward()
    return [x.grad.tolist()]


@case
def needs_input_grad(t):
    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            seen.append(list(ctx.needs_input_grad))
            return g, g

    seen = []
    F.apply(leaf(t, 1), t.ones(1)).sum().backward()
    F.apply(t.ones(1), leaf(t, 1)).sum().backward()
    return seen


# ---- memory

@case
def graphs_are_freed(t):
    class Mark:
        pass

    out = []
    x = leaf(t, 1, 2)
    y = x * 2
    y.tag = Mark()
    ref = weakref.ref(y.tag)
    z = y * y
    del y
    gc.collect()
    out.append(ref() is None)   # z's graph keeps y, and with it what was set on it
    z.sum().backward()
    gc.collect()
    out.append(ref() is None)
    return out


@case
def cycles_are_collected(t):
    class Mark:
        pass

    out = []
    x = leaf(t, 1, 2)
    m = Mark()
    m.x = x
    x.register_hook((lambda mark: lambda g: mark and None)(m))
    ref = weakref.ref(m)
    del x, m
    gc.collect()
    out.append(ref() is None)
    return out


@case
def long_chain(t):
    x = leaf(t, 1)
    y = x
    for _ in range(20000):
        y = y + 1
    y.sum().backward()
    return [y.item(), x.grad.tolist()]


if __name__ == "__main__":
    import torch
    print(json.dumps({name: run(name, torch) for name in CASES}, indent=1))
