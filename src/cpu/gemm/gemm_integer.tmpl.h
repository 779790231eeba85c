/* The product of integers that wrap. Included with T (an unsigned type of the element's width) and NAME defined. */

/* Columns [j, j + n) of row i of A B. */
static void NAME(row)(const tmi_gemm *g, const T *a, const T *b, int64_t j, int64_t n, uint64_t *acc)
{
    for (int64_t x = 0; x < n; x++) acc[x] = 0;
    for (int64_t k = 0; k < g->k; k++) {
        uint64_t f = a[k * g->a_cs];
        const T *p = b + k * g->b_rs + j * g->b_cs;
        if (g->b_cs == 1)
            for (int64_t x = 0; x < n; x++) acc[x] += f * p[x];
        else
            for (int64_t x = 0; x < n; x++) acc[x] += f * p[x * g->b_cs];
    }
}

static void NAME(rows)(void *ctx, int64_t begin, int64_t end)
{
    const tmi_gemm *g = ctx;
    uint64_t acc[ROW], alpha = (uint64_t)tmi_scalar_i64(g->alpha), beta = (uint64_t)tmi_scalar_i64(g->beta);
    for (int64_t r = begin; r < end; r++) {
        int64_t batch = r / g->m, i = r % g->m;
        const T *a = (const T *)g->a + batch * g->a_bs + i * g->a_rs, *b = (const T *)g->b + batch * g->b_bs;
        T *c = (T *)g->c + batch * g->c_bs + i * g->c_rs;
        for (int64_t j = 0; j < g->n; j += ROW) {
            int64_t n = tmi_min(ROW, g->n - j);
            NAME(row)(g, a, b, j, n, acc);
            for (int64_t x = 0; x < n; x++) {
                T *p = c + (j + x) * g->c_cs;
                *p = (T)(alpha * acc[x] + (beta ? beta * *p : 0));
            }
        }
    }
}

#undef T
#undef NAME
