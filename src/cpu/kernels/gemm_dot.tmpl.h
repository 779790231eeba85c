/* Dot products of rows of W (element type S) with x, and sums of scaled rows. Included with S, D (accumulation type), V, LANES, LOADW, LOADX, FMA, SUM, CONVERT and
 * NAME defined. Four rows at a time share the loads of x; two chains per row hide the latency of the multiply-add. */

static void NAME(dot4)(D *out, int64_t k, const S *w, int64_t ws, const D *x)
{
    V a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, b0 = {0}, b1 = {0}, b2 = {0}, b3 = {0};
    const S *w1 = w + ws, *w2 = w1 + ws, *w3 = w2 + ws;
    int64_t i = 0;
    for (; i + 2 * LANES <= k; i += 2 * LANES) {
        V p = LOADX(x + i), q = LOADX(x + i + LANES);
        a0 = FMA(LOADW(w + i), p, a0);
        a1 = FMA(LOADW(w1 + i), p, a1);
        a2 = FMA(LOADW(w2 + i), p, a2);
        a3 = FMA(LOADW(w3 + i), p, a3);
        b0 = FMA(LOADW(w + i + LANES), q, b0);
        b1 = FMA(LOADW(w1 + i + LANES), q, b1);
        b2 = FMA(LOADW(w2 + i + LANES), q, b2);
        b3 = FMA(LOADW(w3 + i + LANES), q, b3);
    }
    D s0 = SUM(a0 + b0), s1 = SUM(a1 + b1), s2 = SUM(a2 + b2), s3 = SUM(a3 + b3);
    for (; i < k; i++) {
        s0 += CONVERT(w[i]) * x[i];
        s1 += CONVERT(w1[i]) * x[i];
        s2 += CONVERT(w2[i]) * x[i];
        s3 += CONVERT(w3[i]) * x[i];
    }
    out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3;
}

/* One row in the same order of additions as above, so that a result does not depend on how rows are grouped. */
static D NAME(dot1)(int64_t k, const S *w, const D *x)
{
    V a = {0}, b = {0};
    int64_t i = 0;
    for (; i + 2 * LANES <= k; i += 2 * LANES) {
        a = FMA(LOADW(w + i), LOADX(x + i), a);
        b = FMA(LOADW(w + i + LANES), LOADX(x + i + LANES), b);
    }
    D s = SUM(a + b);
    for (; i < k; i++) s += CONVERT(w[i]) * x[i];
    return s;
}

static void NAME(dot_rows)(void *out_, int64_t out_s, int64_t rows, int64_t k, const void *w_, int64_t w_s, const void *x)
{
    D *out = out_, four[4];
    const S *w = w_;
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) {
        NAME(dot4)(four, k, w + i * w_s, w_s, x);
        for (int j = 0; j < 4; j++) out[(i + j) * out_s] = four[j];
    }
    for (; i < rows; i++) out[i * out_s] = NAME(dot1)(k, w + i * w_s, x);
}

/* y += x[0] w[0] + ... + x[7] w[7]: eight streams are read, y stays in the first cache. */
static void NAME(axpy8)(D *restrict y, int64_t n, const S *w, int64_t ws, const D *x)
{
    V x0 = SET(x[0]), x1 = SET(x[1]), x2 = SET(x[2]), x3 = SET(x[3]), x4 = SET(x[4]), x5 = SET(x[5]), x6 = SET(x[6]), x7 = SET(x[7]);
    const S *w4 = w + 4 * ws;
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        V a = FMA(LOADW(w + j), x0, LOADX(y + j)), b = LOADW(w4 + j) * x4;
        a = FMA(LOADW(w + ws + j), x1, a);
        b = FMA(LOADW(w4 + ws + j), x5, b);
        a = FMA(LOADW(w + 2 * ws + j), x2, a);
        b = FMA(LOADW(w4 + 2 * ws + j), x6, b);
        a = FMA(LOADW(w + 3 * ws + j), x3, a);
        b = FMA(LOADW(w4 + 3 * ws + j), x7, b);
        STORE(y + j, a + b);
    }
    for (; j < n; j++) {
        D a = y[j], b = 0;
        for (int i = 0; i < 4; i++) a += CONVERT(w[i * ws + j]) * x[i], b += CONVERT(w4[i * ws + j]) * x[4 + i];
        y[j] = a + b;
    }
}

static void NAME(axpy_rows)(void *y_, int64_t n, int64_t k, const void *w_, int64_t w_s, const void *x_)
{
    D *y = y_;
    const S *w = w_;
    const D *x = x_;
    int64_t i = 0;
    for (; i + 8 <= k; i += 8) NAME(axpy8)(y, n, w + i * w_s, w_s, x + i);
    for (; i < k; i++)
        for (int64_t j = 0; j < n; j++) y[j] += CONVERT(w[i * w_s + j]) * x[i];
}

#undef S
#undef SET
#undef STORE
#undef D
#undef V
#undef LANES
#undef LOADW
#undef LOADX
#undef FMA
#undef SUM
#undef CONVERT
#undef NAME
