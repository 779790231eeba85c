"""The matrix product family against numpy in double precision: values, gradients by their formulas, broadcasting, error texts."""
import numpy as np
import pytest

import taimatsu as torch

rng = np.random.default_rng(7)
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 5e-2, "float16": 5e-3}


def pair(*shape, dtype="float64"):
    """A tensor and the same numbers for numpy."""
    x = rng.standard_normal(shape)
    t = torch.tensor(x.tolist(), dtype=getattr(torch, dtype)).reshape(shape)
    return t, t.double().numpy()


def close(tensor, want, dtype="float64"):
    got = tensor.detach().double().numpy()
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * 4)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("a, b", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)),
                                  ((5, 2, 3), (5, 3, 4)), ((2, 1, 2, 3), (4, 3, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((17, 65), (65, 33))])
def test_matmul_by_rank(a, b, dtype):
    x, nx = pair(*a, dtype=dtype)
    y, ny = pair(*b, dtype=dtype)
    close(x @ y, nx @ ny, dtype)


def test_transposed_and_strided_operands():
    x, nx = pair(20, 31)
    y, ny = pair(20, 17)
    close(x.t() @ y, nx.T @ ny)
    close(y.t() @ x, ny.T @ nx)
    close(x[::2, ::3].t() @ y[::2], nx[::2, ::3].T @ ny[::2])
    close(x[:1].expand(4, 31) @ x.t(), np.broadcast_to(nx[:1], (4, 31)) @ nx.T)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
def test_integers_wrap(dtype):
    a = rng.integers(0, 100, (5, 70))
    b = rng.integers(0, 100, (70, 6))
    got = torch.tensor(a.tolist(), dtype=getattr(torch, dtype)) @ torch.tensor(b.tolist(), dtype=getattr(torch, dtype))
    assert got.tolist() == (a @ b).astype(dtype).tolist()


def test_complex():
    a = rng.standard_normal((4, 5)) + 1j * rng.standard_normal((4, 5))
    b = rng.standard_normal((5, 3)) + 1j * rng.standard_normal((5, 3))
    got = (torch.from_numpy(a) @ torch.from_numpy(b)).numpy()
    np.testing.assert_allclose(got, a @ b, rtol=1e-12)


def test_added_products():
    s, ns = pair(3, 5)
    row, nrow = pair(5)
    a, na = pair(3, 4)
    b, nb = pair(4, 5)
    close(torch.addmm(row, a, b, beta=0.5, alpha=2), 0.5 * nrow + 2 * (na @ nb))
    close(torch.addmm(s, a, b, beta=0), na @ nb)
    nan = torch.full((3, 5), float("nan"), dtype=torch.float64)
    close(torch.addmm(nan, a, b, beta=0), na @ nb)
    close(s.clone().addmm_(a, b, alpha=3), ns + 3 * (na @ nb))
    v, nv = pair(4)
    c, nc = pair(3)
    close(torch.addmv(c, a, v, alpha=2), nc + 2 * (na @ nv))
    close(torch.addr(s, c, row, beta=2, alpha=3), 2 * ns + 3 * np.outer(nc, nrow))
    p, np_ = pair(6, 3, 4)
    q, nq = pair(6, 4, 5)
    close(torch.baddbmm(s, p, q, beta=2), 2 * ns + np_ @ nq)
    close(torch.addbmm(s, p, q, alpha=2), ns + 2 * (np_ @ nq).sum(0))
    out = torch.empty(3, 5, dtype=torch.float64)
    assert torch.addmm(row, a, b, out=out) is out
    close(out, nrow + na @ nb)


def test_gradients_of_addmm_and_bmm():
    bias, nbias = pair(5)
    a, na = pair(3, 4)
    b, nb = pair(4, 5)
    for t in (bias, a, b):
        t.requires_grad_()
    w, nw = pair(3, 5)
    (torch.addmm(bias, a, b, beta=2, alpha=3) * w).sum().backward()
    close(bias.grad, 2 * nw.sum(0))
    close(a.grad, 3 * nw @ nb.T)
    close(b.grad, 3 * na.T @ nw)
    p, np_ = pair(2, 3, 4)
    q, nq = pair(2, 4, 5)
    p.requires_grad_(), q.requires_grad_()
    g, ng = pair(2, 3, 5)
    (torch.bmm(p, q) * g).sum().backward()
    close(p.grad, ng @ nq.transpose(0, 2, 1))
    close(q.grad, np_.transpose(0, 2, 1) @ ng)


def test_gradient_sums_over_broadcast_batches():
    a, na = pair(1, 2, 3)
    b, nb = pair(4, 3, 5)
    a.requires_grad_(), b.requires_grad_()
    (a @ b).sum().backward()
    close(a.grad, (np.ones((4, 2, 5)) @ nb.transpose(0, 2, 1)).sum(0, keepdims=True))
    close(b.grad, np.broadcast_to(na.transpose(0, 2, 1), (4, 3, 2)) @ np.ones((4, 2, 5)))


def test_linear():
    x, nx = pair(2, 3, 4)
    w, nw = pair(5, 4)
    b, nb = pair(5)
    close(torch.nn.functional.linear(x, w, b), nx @ nw.T + nb)
    close(torch.nn.functional.linear(x, w), nx @ nw.T)
    close(torch.nn.functional.linear(x[0, 0], w, b), nx[0, 0] @ nw.T + nb)
    y = torch.nn.functional.linear(x[0].clone().requires_grad_(), w, b)
    assert type(y.grad_fn).__name__ == "AddmmBackward0"


@pytest.mark.parametrize("equation, shapes", [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("ii->i", [(4, 4)]), ("ii", [(4, 4)]),
    ("i,j->ij", [(3,), (4,)]), ("ijk->kji", [(2, 3, 4)]), ("...ij,...jk->...ik", [(2, 5, 2, 3), (5, 3, 4)]), ("ij,ij->", [(3, 4), (3, 4)]),
    ("ijk,jl,kl->il", [(2, 3, 4), (3, 5), (4, 5)]), ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("aab,b->a", [(3, 3, 2), (2,)]), ("ij->", [(2, 3)])])
def test_einsum(equation, shapes):
    tensors, arrays = zip(*[pair(*s) for s in shapes])
    close(torch.einsum(equation, *tensors), np.einsum(equation, *arrays))


@pytest.mark.filterwarnings("ignore:torch.chain_matmul")
def test_other_products():
    a, na = pair(3, 4)
    b, nb = pair(5, 4)
    close(torch.inner(a, b), np.inner(na, nb))
    close(torch.kron(a, b), np.kron(na, nb))
    close(torch.outer(a[0], b[0]), np.outer(na[0], nb[0]))
    close(torch.tensordot(a, b, dims=([1], [1])), np.tensordot(na, nb, ([1], [1])))
    close(torch.chain_matmul(a, b.t(), b), na @ nb.T @ nb)
    s, ns = pair(4, 4)
    close(torch.matrix_power(s, 5), np.linalg.matrix_power(ns, 5))
    close(torch.matrix_power(s, 0), np.eye(4))
    d = torch.block_diag(a, b)
    assert d.shape == (8, 8)
    close(d[:3, :4], na)
    close(d[3:, 4:], nb)
    assert d[:3, 4:].abs().sum() == 0
    x, nx = pair(4, 3)
    y, ny = pair(4, 3)
    close(torch.cross(x, y, dim=1), np.cross(nx, ny))
    close(torch.vdot(a[0], b[0]), np.vdot(na[0], nb[0]))


@pytest.mark.parametrize("call, text", [
    (lambda: torch.ones(2, 3) @ torch.ones(4, 5), "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    (lambda: torch.ones(2, 3) @ torch.ones(4), "size mismatch, got input (2), mat (2x3), vec (4)"),
    (lambda: torch.bmm(torch.ones(2, 2, 3), torch.ones(3, 3, 2)),
     "Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [3, 3]."),
    (lambda: torch.ones(2, 3) @ torch.ones(3, 2).double(), "expected m1 and m2 to have the same dtype, but got: float != double"),
    (lambda: torch.mm(torch.ones(3), torch.ones(3, 2)), "self must be a matrix"),
    (lambda: torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(4, 5)),
     "einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3")])
def test_error_texts(call, text):
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value) == text


def test_same_bits_for_any_number_of_threads():
    a, _ = pair(130, 300, dtype="float32")
    b, _ = pair(300, 140, dtype="float32")
    before = torch.get_num_threads()
    results = []
    for n in (1, 2, 3, 7):
        torch.set_num_threads(n)
        results.append((a @ b).numpy().tobytes())
    torch.set_num_threads(before)
    assert len(set(results)) == 1
