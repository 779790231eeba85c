/* One run of a scatter for elements of type T: COMBINE(a, b) is stored. */
static void NAME(scatter_run)(const run *r)
{
    T *wide = (T *)r->wide;
    const T *slim = (const T *)r->slim;
    int64_t n = r->n, ws = r->wide_stride, ss = r->slim_stride, ls = r->line_stride, is = r->index_stride;
    if (is == 0) {   /* one place for the whole run: rows */
        T *row = wide + (r->narrow ? *(const int32_t *)r->index : *(const int64_t *)r->index) * ls;
        if (ws == 1 && ss == 1 && r->separate)
            for (int64_t i = 0; i < n; i++) row[i] = COMBINE(row[i], slim[i]);
        else
            for (int64_t i = 0; i < n; i++) row[i * ws] = COMBINE(row[i * ws], slim[i * ss]);
    } else if (r->narrow) {
        const int32_t *index = r->index;
        for (int64_t i = 0; i < n; i++) {
            T *at = wide + i * ws + (int64_t)index[i * is] * ls;
            *at = COMBINE(*at, slim[i * ss]);
        }
    } else {
        const int64_t *index = r->index;
        for (int64_t i = 0; i < n; i++) {
            T *at = wide + i * ws + index[i * is] * ls;
            *at = COMBINE(*at, slim[i * ss]);
        }
    }
}
