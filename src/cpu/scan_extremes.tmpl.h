/* Running extremes of T with their place: the last of equals, as PyTorch. KEEPS(new, old): the new one is taken; NaN (IS_NAN) stays. */
static void NAME(run)(void *ctx, int64_t begin, int64_t end)
{
    const scan *s = ctx;
    for (int64_t t = begin; t < end; t++) {
        int64_t at = t / s->l.inner * s->l.length * s->l.inner + t % s->l.inner;
        const T *x = (const T *)s->in + at;
        T *out = (T *)s->out + at, best = x[0];
        int64_t *index = s->index + at, place = 0;
        for (int64_t i = 0; i < s->l.length; i++) {
            T v = x[i * s->l.inner];
            if (IS_NAN(v) || (!IS_NAN(best) && KEEPS(v, best))) {
                best = v;
                place = i;
            }
            out[i * s->l.inner] = best;
            index[i * s->l.inner] = place;
        }
    }
}
