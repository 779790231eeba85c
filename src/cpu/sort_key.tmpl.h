/* Keys from elements of S: NAME, KEY, TO_KEY(x). */
static void NAME(const void *from, int64_t stride, int64_t n, KEY flip, KEY *out)
{
    const S *x = from;
    for (int64_t i = 0; i < n; i++) out[i] = TO_KEY(x[i * stride]) ^ flip;
}
