/* The maps of one real number type T: NAME(x), ABS(x), POW(a, b), EXP(x). */
static void NAME(abs)(const void *src, int64_t n, void *dst, const void *param, int64_t step)
{
    const T *x = src;
    for (int64_t i = 0; i < n; i++) ((T *)dst)[i] = ABS(x[i]);
}
static void NAME(square)(const void *src, int64_t n, void *dst, const void *param, int64_t step)
{
    const T *x = src;
    for (int64_t i = 0; i < n; i++) ((T *)dst)[i] = x[i] * x[i];
}
static void NAME(nonzero)(const void *src, int64_t n, void *dst, const void *param, int64_t step)
{
    const T *x = src;
    for (int64_t i = 0; i < n; i++) ((T *)dst)[i] = x[i] != 0 ? 1 : 0;
}
static void NAME(nan_zero)(const void *src, int64_t n, void *dst, const void *param, int64_t step)
{
    const T *x = src;
    for (int64_t i = 0; i < n; i++) { T v = x[i], w = x[i]; ((T *)dst)[i] = v == w ? v : 0; }
}
static void NAME(not_nan)(const void *src, int64_t n, void *dst, const void *param, int64_t step)
{
    const T *x = src;
    for (int64_t i = 0; i < n; i++) { T v = x[i], w = x[i]; ((T *)dst)[i] = v == w ? 1 : 0; }
}
#ifdef EXP
static void NAME(pow)(const void *src, int64_t n, void *dst, const void *param, int64_t step)
{
    const T *x = src;
    T p = *(const T *)param;
    for (int64_t i = 0; i < n; i++) ((T *)dst)[i] = POW(ABS(x[i]), p);
}
static void NAME(dev_sq)(const void *src, int64_t n, void *dst, const void *param, int64_t step)
{
    const T *x = src, *m = param;
    if (step == 0) {
        T c = m[0];
        for (int64_t i = 0; i < n; i++) ((T *)dst)[i] = (x[i] - c) * (x[i] - c);
    } else {
        for (int64_t i = 0; i < n; i++) ((T *)dst)[i] = (x[i] - m[i]) * (x[i] - m[i]);
    }
}
/* An infinite centre counts as 0, so that a row of -inf sums to 0 and its logarithm is -inf again. */
static void NAME(exp_dev)(const void *src, int64_t n, void *dst, const void *param, int64_t step)
{
    const T *x = src, *m = param;
    if (step == 0) {
        T c = isinf(m[0]) ? 0 : m[0];
        for (int64_t i = 0; i < n; i++) ((T *)dst)[i] = EXP(x[i] - c);
    } else {
        for (int64_t i = 0; i < n; i++) ((T *)dst)[i] = EXP(x[i] - (isinf(m[i]) ? 0 : m[i]));
    }
}
#endif
