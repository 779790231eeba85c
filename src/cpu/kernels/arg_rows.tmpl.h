/* best[b], index[b]: the extreme of column b over n_rows >= 1 rows and the first row that has it. BETTER(v, best). */
static void NAME(arg_rows)(const void *from, int64_t stride, int64_t n_rows, int64_t width, void *best_v, void *index_v)
{
    const T *x = from;
    T *best = best_v;
    ITYPE *index = index_v;
    for (int64_t b = 0; b < width; b++) {
        best[b] = x[b];
        index[b] = 0;
    }
    for (int64_t r = 1; r < n_rows; r++) {
        x += stride;
        ITYPE row = (ITYPE)r;
        for (int64_t b = 0; b < width; b++) {
            T v = x[b], old = best[b];
            bool take = BETTER(v, old);
            best[b] = take ? v : old;
            index[b] = take ? row : index[b];
        }
    }
}
