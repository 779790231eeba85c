/* One run of a gather for elements of type T. */
static void NAME(gather_run)(const run *r)
{
    const T *wide = (const T *)r->wide;
    T *slim = (T *)r->slim;
    int64_t n = r->n, ws = r->wide_stride, ss = r->slim_stride, ls = r->line_stride, is = r->index_stride;
    if (r->narrow) {
        const int32_t *index = r->index;
        for (int64_t i = 0; i < n; i++) slim[i * ss] = wide[i * ws + (int64_t)index[i * is] * ls];
    } else {
        const int64_t *index = r->index;
        for (int64_t i = 0; i < n; i++) slim[i * ss] = wide[i * ws + index[i * is] * ls];
    }
}
