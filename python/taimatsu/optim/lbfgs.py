"""L-BFGS, with the step length fixed or found by a strong Wolfe line search (Nocedal and Wright, chapters 3 and 7)."""
from .. import _core as core
from .optimizer import Optimizer, _check_at_least, _check_tensor_lr, _to_scalar

__all__ = ["LBFGS"]


def _copied(g):
    return g.clone(memory_format=core.contiguous_format)


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None):
    """The minimum of the cubic through two values and two slopes, kept within bounds."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    if x1 <= x2:
        at = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        at = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(at, low), high)


class _Point:
    """A step length with loss, gradient and slope there."""

    __slots__ = ("t", "f", "g", "slope")

    def __init__(self, t, f, g, slope):
        self.t, self.f, self.g, self.slope = t, f, g, slope


def _bracket(probe, start, point, c1, c2, max_ls):
    """Widen until a minimum lies between two points: (list of one or two points, whether the one is good, evaluations)."""
    before, n, evaluations = start, 0, 1
    while n < max_ls:
        if point.f > start.f + c1 * point.t * start.slope or (n > 1 and point.f >= before.f):
            return [before, point], False, n, evaluations
        if abs(point.slope) <= -c2 * start.slope:
            return [point], True, n, evaluations
        if point.slope >= 0:
            return [before, point], False, n, evaluations
        bounds = (point.t + 0.01 * (point.t - before.t), point.t * 10)
        t = _cubic_interpolate(before.t, before.f, before.slope, point.t, point.f, point.slope, bounds=bounds)
        before, point = point, probe(t)
        n += 1
        evaluations += 1
    return [start, point], False, n, evaluations


def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=0.0001, c2=0.9, tolerance_change=1e-09, max_ls=25):
    """A step length with enough decrease and a small enough slope: (loss, gradient, length, evaluations)."""
    largest = d.abs().max()

    def probe(t):
        f_new, g_new = obj_func(x, t, d)
        return _Point(t, f_new, _copied(g_new), g_new.dot(d))

    start = _Point(0, f, _copied(g), gtd)
    ends, done, n, evaluations = _bracket(probe, start, probe(t), c1, c2, max_ls)
    stuck = False
    low, high = (0, 1) if ends[0].f <= ends[-1].f else (1, 0)
    while not done and n < max_ls:
        a, b = ends
        if abs(b.t - a.t) * largest < tolerance_change:
            break
        t = _cubic_interpolate(a.t, a.f, a.slope, b.t, b.f, b.slope)
        left, right = min(a.t, b.t), max(a.t, b.t)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:           # too close to an end: once is allowed
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = probe(t)
        evaluations += 1
        n += 1
        if point.f > f + c1 * t * gtd or point.f >= ends[low].f:
            ends[high] = point
            low, high = (0, 1) if ends[0].f <= ends[1].f else (1, 0)
        else:
            if abs(point.slope) <= -c2 * gtd:
                done = True
            elif point.slope * (ends[high].t - ends[low].t) >= 0:
                ends[high] = ends[low]
            ends[low] = point
    best = ends[low if len(ends) > 1 else 0]
    return best.f, best.g, best.t, evaluations


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last ``history_size`` gradients; ``step`` needs a closure and calls it several times."""

    def __init__(self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-07, tolerance_change=1e-09, history_size=100,
                 line_search_fn=None):
        _check_tensor_lr(lr)
        _check_at_least(((lr, "Invalid learning rate"),))
        super().__init__(params, dict(lr=lr, max_iter=max_iter, max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
                                      tolerance_grad=tolerance_grad, tolerance_change=tolerance_change, history_size=history_size,
                                      line_search_fn=line_search_fn))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]
        self._numel_cache = None

    @staticmethod
    def _flat(t):
        return core.view_as_real(t).view(-1) if t.is_complex() else t.view(-1)

    def _gather_flat_grad(self):
        return core.cat([self._flat(core.zeros_like(p) if p.grad is None else p.grad) for p in self._params], 0)

    def _add_grad(self, step_size, update):
        start = 0
        for p in self._params:
            p = core.view_as_real(p) if p.is_complex() else p
            p.add_(update[start:start + p.numel()].view_as(p), alpha=step_size)
            start += p.numel()

    def _directional_evaluate(self, closure, x, t, d):
        self._add_grad(t, d)
        loss = float(closure())
        flat = self._gather_flat_grad()
        for p, before in zip(self._params, x):
            p.copy_(before)
        return loss, flat

    @staticmethod
    def _direction(state, flat_grad, history_size):
        """The quasi-Newton direction; updates the history of steps and gradient differences."""
        d, old_dirs, old_stps, ro = state["d"], state["old_dirs"], state["old_stps"], state["ro"]
        y, s = flat_grad.sub(state["prev_flat_grad"]), d.mul(state["t"])
        ys = y.dot(s)
        if ys > 1e-10:
            if len(old_dirs) == history_size:
                for history in (old_dirs, old_stps, ro):
                    history.pop(0)
            old_dirs.append(y)
            old_stps.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        al = state.setdefault("al", [None] * history_size)
        q = flat_grad.neg()
        for i in reversed(range(len(old_dirs))):
            al[i] = old_stps[i].dot(q) * ro[i]
            q.add_(old_dirs[i], alpha=-al[i])
        r = core.mul(q, state["H_diag"])
        for i in range(len(old_dirs)):
            r.add_(old_stps[i], alpha=al[i] - old_dirs[i].dot(r) * ro[i])
        return r

    def step(self, closure):
        with core.no_grad():
            return self._step(closure)

    def _step(self, closure):
        group, state = self.param_groups[0], self.state[self._params[0]]
        lr, tolerance = _to_scalar(group["lr"]), group["tolerance_change"]

        def evaluate():
            with core.enable_grad():
                return closure()

        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = evaluate()
        loss, evaluations = float(first_loss), 1
        state["func_evals"] += 1
        flat_grad = self._gather_flat_grad()
        if flat_grad.abs().max() <= group["tolerance_grad"]:
            return first_loss
        n_iter = 0
        while n_iter < group["max_iter"]:
            n_iter += 1
            state["n_iter"] += 1
            begin = state["n_iter"] == 1
            if begin:
                state.update(d=flat_grad.neg(), t=None, old_dirs=[], old_stps=[], ro=[], H_diag=1, prev_flat_grad=None)
            else:
                state["d"] = self._direction(state, flat_grad, group["history_size"])
            d = state["d"]
            if state["prev_flat_grad"] is None:
                state["prev_flat_grad"] = _copied(flat_grad)
            else:
                state["prev_flat_grad"].copy_(flat_grad)
            state["prev_loss"] = before = loss
            t = state["t"] = min(1.0, 1.0 / flat_grad.abs().sum()) * lr if begin else lr
            slope = flat_grad.dot(d)
            if slope > -tolerance:
                break
            used = 0
            converged = False
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                x = [_copied(p) for p in self._params]
                loss, flat_grad, t, used = _strong_wolfe(lambda x, t, d: self._directional_evaluate(evaluate, x, t, d), x, t, d, loss, flat_grad,
                                                         slope, max_ls=group["max_eval"] - evaluations)
                state["t"] = t
                self._add_grad(t, d)
                converged = flat_grad.abs().max() <= group["tolerance_grad"]
            else:
                self._add_grad(t, d)
                if n_iter != group["max_iter"]:         # in a stochastic setting the last evaluation would be thrown away
                    loss, used = float(evaluate()), 1
                    flat_grad = self._gather_flat_grad()
                    converged = flat_grad.abs().max() <= group["tolerance_grad"]
            evaluations += used
            state["func_evals"] += used
            if (n_iter == group["max_iter"] or evaluations >= group["max_eval"] or converged
                    or d.mul(t).abs().max() <= tolerance or abs(loss - before) < tolerance):
                break
        return first_loss
