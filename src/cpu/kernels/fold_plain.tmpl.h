/* row, rows and tree for types that have no native vector arithmetic (complex numbers) or need none (flags). Wants T, NAME(x) and
 * FOLD_SCALAR(a, b). */
static void NAME(row)(const void *src, int64_t n, void *into)
{
    const T *x = src;
    T *lanes = into;
    int64_t i = 0;
    for (; i + TMK_LANES <= n; i += TMK_LANES)
        for (int k = 0; k < TMK_LANES; k++) lanes[k] = FOLD_SCALAR(lanes[k], x[i + k]);
    for (int64_t k = i; k < n; k++) lanes[k - i] = FOLD_SCALAR(lanes[k - i], x[k]);
}

static void NAME(rows)(const void *src, int64_t stride, int64_t n_rows, int64_t width, void *into)
{
    const T *x = src;
    T *acc = into;
    for (int64_t r = 0; r < n_rows; r++, x += stride)
        for (int64_t b = 0; b < width; b++) acc[b] = FOLD_SCALAR(acc[b], x[b]);
}

static void NAME(tree)(void *from, void *out)
{
    T *lanes = from;
    for (int h = TMK_LANES / 2; h >= 1; h /= 2)
        for (int j = 0; j < h; j++) lanes[j] = FOLD_SCALAR(lanes[j], lanes[j + h]);
    *(T *)out = lanes[0];
}
