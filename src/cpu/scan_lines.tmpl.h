/* Running folds over lines of T, kept in A. Wants NAME(x), START and STEP(a, x). */
static void NAME(lines)(const T *x, T *out, tmk_lines l, int64_t begin, int64_t end)
{
    for (int64_t o = begin; o < end; o++) {
        const T *from = x + o * l.length;
        T *to = out + o * l.length;
        A a = START;
        for (int64_t i = 0; i < l.length; i++) to[i] = (T)(a = STEP(a, from[i]));
    }
}

static void NAME(columns)(const T *x, T *out, tmk_lines l, int64_t first, int64_t width)
{
    A a[SCAN_COLUMNS];
    for (int64_t b = 0; b < width; b++) a[b] = START;
    for (int64_t i = 0; i < l.length; i++) {
        const T *from = x + i * l.inner + first;
        T *to = out + i * l.inner + first;
        for (int64_t b = 0; b < width; b++) to[b] = (T)(a[b] = STEP(a[b], from[b]));
    }
}

static void NAME(run)(void *ctx, int64_t begin, int64_t end)
{
    const scan *s = ctx;
    if (s->l.inner == 1) {
        NAME(lines)(s->in, s->out, s->l, begin, end);
        return;
    }
    for (int64_t t = begin; t < end; t++) {
        int64_t first = t % s->n_blocks * SCAN_COLUMNS, base = t / s->n_blocks * s->l.length * s->l.inner;
        int64_t width = s->l.inner - first < SCAN_COLUMNS ? s->l.inner - first : SCAN_COLUMNS;
        NAME(columns)((const T *)s->in + base, (T *)s->out + base, s->l, first, width);
    }
}
