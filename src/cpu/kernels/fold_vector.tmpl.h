/* row, rows and tree for one number type and one fold, with native vectors. Wants T, ITYPE (integer of the same size), NAME(x),
 * FOLD(a, b) on scalars, VFOLD(a, b) on vectors and IDENTITY; leaves them defined. */
typedef T NAME(vec) __attribute__((vector_size(TMK_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
typedef ITYPE NAME(mask) __attribute__((vector_size(TMK_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
enum { NAME(width) = TMK_VECTOR_BYTES / sizeof(T), NAME(count) = TMK_LANES / NAME(width) };

static inline NAME(vec) NAME(fold)(NAME(vec) a, NAME(vec) x)
{
#ifdef SELECT_IF   /* keep x where the condition holds, else a */
    NAME(mask) m = SELECT_IF(a, x);
    return (NAME(vec))((m & (NAME(mask))x) | (~m & (NAME(mask))a));
#else
    return FOLD(a, x);
#endif
}

static void NAME(row)(const void *src, int64_t n, void *into)
{
    const T *x = src;
    T *lanes = into;
    NAME(vec) acc[NAME(count)];
    memcpy(acc, lanes, sizeof acc);
    int64_t i = 0;
    for (; i + TMK_LANES <= n; i += TMK_LANES) {
#pragma GCC unroll 16
        for (int k = 0; k < NAME(count); k++)
            acc[k] = NAME(fold)(acc[k], *(const NAME(vec) *)(x + i + k * NAME(width)));
    }
    memcpy(lanes, acc, sizeof acc);
    for (int64_t k = i; k < n; k++) lanes[k - i] = FOLD_SCALAR(lanes[k - i], x[k]);
}

__attribute__((unused)) static void NAME(rows)(const void *src, int64_t stride, int64_t n_rows, int64_t width, void *into)
{
    const T *x = src;
    T *acc = into;
    int64_t whole = width - width % NAME(width), r = 0;
    for (; r + 4 <= n_rows; r += 4, x += 4 * stride) {
        for (int64_t b = 0; b < whole; b += NAME(width)) {
            NAME(vec) a = *(NAME(vec) *)(acc + b);
            a = NAME(fold)(a, *(const NAME(vec) *)(x + b));
            a = NAME(fold)(a, *(const NAME(vec) *)(x + stride + b));
            a = NAME(fold)(a, *(const NAME(vec) *)(x + 2 * stride + b));
            *(NAME(vec) *)(acc + b) = NAME(fold)(a, *(const NAME(vec) *)(x + 3 * stride + b));
        }
        for (int64_t b = whole; b < width; b++)
            for (int k = 0; k < 4; k++) acc[b] = FOLD_SCALAR(acc[b], x[k * stride + b]);
    }
    for (; r < n_rows; r++, x += stride) {
        for (int64_t b = 0; b < whole; b += NAME(width))
            *(NAME(vec) *)(acc + b) = NAME(fold)(*(NAME(vec) *)(acc + b), *(const NAME(vec) *)(x + b));
        for (int64_t b = whole; b < width; b++) acc[b] = FOLD_SCALAR(acc[b], x[b]);
    }
}

static void NAME(tree)(void *from, void *out)
{
    T *lanes = from;
    for (int h = TMK_LANES / 2; h >= 1; h /= 2)
        for (int j = 0; j < h; j++) lanes[j] = FOLD_SCALAR(lanes[j], lanes[j + h]);
    *(T *)out = lanes[0];
}
