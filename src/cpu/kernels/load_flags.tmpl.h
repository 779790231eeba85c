/* dst[i] = src[i * stride] is not zero, named NAME; TEST(x). NaN counts as not zero. */
static void NAME(const void *from, int64_t stride, int64_t n, void *to)
{
    const S *src = from;
    uint8_t *dst = to;
    if (stride == 1) {
        for (int64_t i = 0; i < n; i++) dst[i] = TEST(src[i]);
    } else {
        for (int64_t i = 0; i < n; i++) dst[i] = TEST(src[i * stride]);
    }
}
