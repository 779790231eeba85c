/* Steps for one number type T: NAME(x), SQRT(x). */
static void NAME(scale)(T *restrict g, int64_t n, double by)
{
    T scale = (T)by;
    for (int64_t i = 0; i < n; i++) g[i] /= scale;
}

static void NAME(adam)(void *p_v, void *g_v, void *m_v, void *v_v, void *top_v, int64_t n, const tmk_adam *a)
{
    T *restrict p = p_v, *restrict g = g_v, *restrict m = m_v, *restrict v = v_v, *restrict top = top_v;
    if (a->grad_scale != 1) NAME(scale)(g, n, a->grad_scale);
    T sign = a->maximize ? -1 : 1, coupled = a->decoupled ? 0 : (T)a->weight_decay, keep = a->decoupled ? (T)(1 - a->lr * a->weight_decay) : 1;
    T move1 = (T)(1 - a->beta1), beta2 = (T)a->beta2, move2 = (T)(1 - a->beta2), step = (T)(a->lr / a->correction1), root = (T)a->root_correction2;
    T eps = (T)a->eps;
    if (a->amsgrad) {
        for (int64_t i = 0; i < n; i++) {
            T x = p[i] * keep, d = g[i] * sign + x * coupled;
            m[i] = m[i] + move1 * (d - m[i]);
            v[i] = beta2 * v[i] + move2 * d * d;
            top[i] = top[i] > v[i] ? top[i] : v[i];
            p[i] = x - step * m[i] / (SQRT(top[i]) / root + eps);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        T x = p[i] * keep, d = g[i] * sign + x * coupled;
        T mean = m[i] + move1 * (d - m[i]), square = beta2 * v[i] + move2 * d * d;
        m[i] = mean;
        v[i] = square;
        p[i] = x - step * mean / (SQRT(square) / root + eps);
    }
}

static void NAME(sgd)(void *p_v, void *g_v, void *m_v, int64_t n, const tmk_sgd *s)
{
    T *restrict p = p_v, *restrict g = g_v, *restrict m = m_v;
    if (s->grad_scale != 1) NAME(scale)(g, n, s->grad_scale);
    T sign = s->maximize ? -1 : 1, decay = (T)s->weight_decay, lr = (T)s->lr, keep = (T)s->momentum, add = (T)(1 - s->dampening);
    if (!m) {
        for (int64_t i = 0; i < n; i++) p[i] -= lr * (g[i] * sign + p[i] * decay);
        return;
    }
    if (s->first) {
        keep = 0;
        add = 1;
    }
    T ahead = (T)s->momentum;
    for (int64_t i = 0; i < n; i++) {
        T d = g[i] * sign + p[i] * decay, b = s->first ? d : keep * m[i] + add * d;
        m[i] = b;
        p[i] -= lr * (s->nesterov ? d + ahead * b : b);
    }
}

static void NAME(adagrad)(void *p_v, void *g_v, void *sum_v, int64_t n, const tmk_adagrad *a)
{
    T *restrict p = p_v, *restrict g = g_v, *restrict sum = sum_v;
    if (a->grad_scale != 1) NAME(scale)(g, n, a->grad_scale);
    T sign = a->maximize ? -1 : 1, decay = (T)a->weight_decay, rate = (T)a->rate, eps = (T)a->eps;
    for (int64_t i = 0; i < n; i++) {
        T d = g[i] * sign + p[i] * decay;
        sum[i] += d * d;
        p[i] -= rate * d / (SQRT(sum[i]) + eps);
    }
}
