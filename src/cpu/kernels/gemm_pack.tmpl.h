/* Packing from element type S into D. Included with S, D, CONVERT(x), LOAD4(p) (four neighbours as a v4) and NAME defined. */

static void NAME(plain)(D *dst, int64_t width, int64_t pad, int64_t kc, const S *src, int64_t sw, int64_t sk)
{
    for (int64_t k = 0; k < kc; k++)
        for (int64_t i = 0; i < width; i++) dst[k * pad + i] = CONVERT(src[i * sw + k * sk]);
}

/* Elements of one k step lie side by side: rows are copied. Constant widths let the compiler unroll. */
static void NAME(rows)(D *restrict dst, int64_t width, int64_t pad, int64_t kc, const S *restrict src, int64_t sk)
{
    for (int64_t k = 0; k < kc; k++, src += sk, dst += pad) {
        if (width == 16)
            for (int i = 0; i < 16; i++) dst[i] = CONVERT(src[i]);
        else if (width == 8)
            for (int i = 0; i < 8; i++) dst[i] = CONVERT(src[i]);
        else if (width == 32)
            for (int i = 0; i < 32; i++) dst[i] = CONVERT(src[i]);
        else
            for (int64_t i = 0; i < width; i++) dst[i] = CONVERT(src[i]);
    }
}

/* k steps lie side by side: 4 x 4 blocks are turned in registers. */
static void NAME(turn4)(D *restrict dst, int64_t pad, const S *restrict src, int64_t sw)
{
    typedef D v4 __attribute__((vector_size(4 * sizeof(D))));
    typedef D near4 __attribute__((vector_size(4 * sizeof(D)), aligned(4), may_alias, unused));
    v4 r[4] = {LOAD4(src), LOAD4(src + sw), LOAD4(src + 2 * sw), LOAD4(src + 3 * sw)};
    v4 a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5), b = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
    v4 c = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7), d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
    v4 out[4] = {__builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
                 __builtin_shufflevector(c, d, 0, 1, 4, 5), __builtin_shufflevector(c, d, 2, 3, 6, 7)};
    for (int i = 0; i < 4; i++) memcpy(dst + i * pad, &out[i], sizeof(v4));
}

static void NAME(columns)(D *dst, int64_t width, int64_t pad, int64_t kc, const S *src, int64_t sw)
{
    int64_t w4 = width & ~(int64_t)3, k4 = kc & ~(int64_t)3;
    for (int64_t k = 0; k < k4; k += 4) {
        for (int64_t i = 0; i < w4; i += 4) NAME(turn4)(dst + k * pad + i, pad, src + i * sw + k, sw);
        if (w4 < width) NAME(plain)(dst + k * pad + w4, width - w4, pad, 4, src + w4 * sw + k, sw, 1);
    }
    if (k4 < kc) NAME(plain)(dst + k4 * pad, width, pad, kc - k4, src + k4, sw, 1);
}

static void NAME(pack)(void *dst_, int64_t width, int64_t pad, int64_t kc, const void *src_, int64_t sw, int64_t sk)
{
    D *dst = dst_;
    const S *src = src_;
    if (sw == 1)
        NAME(rows)(dst, width, pad, kc, src, sk);
    else if (sk == 1)
        NAME(columns)(dst, width, pad, kc, src, sw);
    else
        NAME(plain)(dst, width, pad, kc, src, sw, sk);
    if (width < pad)
        for (int64_t k = 0; k < kc; k++) memset(dst + k * pad + width, 0, (size_t)(pad - width) * sizeof(D));
}

#undef S
#undef D
#undef CONVERT
#undef LOAD4
#undef NAME
