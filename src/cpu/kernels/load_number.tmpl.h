/* dst[i] = CONVERT(src[i * stride]) from S to D, named NAME. */
static void NAME(const void *from, int64_t stride, int64_t n, void *to)
{
    const S *src = from;
    D *dst = to;
    if (stride == 1) {
        for (int64_t i = 0; i < n; i++) dst[i] = CONVERT(src[i]);
    } else {
        for (int64_t i = 0; i < n; i++) dst[i] = CONVERT(src[i * stride]);
    }
}
