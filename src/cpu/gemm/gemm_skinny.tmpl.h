/* Products with few rows, which are bound by reading B: no packing, each element of B is read once. Included with T and NAME defined.
 * Tasks take chunks of columns; a row's sums do not depend on the chunk. */

enum { NAME(CHUNK) = 64, NAME(FEW) = 8, NAME(WIDE) = 512 };

/* Row i of A as adjacent Ts. */
static void NAME(gather_rows)(const tmi_gemm_job *w, T *x)
{
    for (int64_t i = 0; i < w->m; i++) w->pack(x + i * w->k, 1, 1, w->k, w->a + i * w->a_rs * w->es, w->a_rs, w->a_cs);
}

/* B^T has adjacent k: dot products, four rows of B^T at a time against every row of A. */
static void NAME(dot_task)(void *ctx, int64_t begin, int64_t end)
{
    const tmi_gemm_job *w = ctx;
    uint64_t mode = tmi_denormals_flush();
    for (int64_t j0 = begin; j0 < end; j0 += NAME(CHUNK)) {
        T tile[NAME(FEW) * NAME(CHUNK)];
        int64_t cols = tmi_min(NAME(CHUNK), end - j0);
        for (int64_t j = 0; j < cols; j += 4)
            for (int64_t i = 0; i < w->m; i++)
                w->dot_rows(tile + i * NAME(CHUNK) + j, 1, tmi_min(4, cols - j), w->k, w->b + (j0 + j) * w->b_cs * w->es, w->b_cs,
                            (const T *)w->packed_a + i * w->k);
        NAME(finish_tile)(w, tile, NAME(CHUNK), 0, w->m, j0, cols);
    }
    tmi_denormals_restore(mode);
}

/* B has adjacent columns: C chunk = sum of scaled rows of B, eight rows of B at a time against every row of A. */
static void NAME(axpy_task)(void *ctx, int64_t begin, int64_t end)
{
    const tmi_gemm_job *w = ctx;
    uint64_t mode = tmi_denormals_flush();
    for (int64_t j0 = begin; j0 < end; j0 += NAME(WIDE)) {
        T tile[4 * NAME(WIDE)];
        int64_t cols = tmi_min(NAME(WIDE), end - j0);
        memset(tile, 0, sizeof(T) * (size_t)(w->m * NAME(WIDE)));
        for (int64_t k = 0; k < w->k; k += 8)
            for (int64_t i = 0; i < w->m; i++)
                w->axpy_rows(tile + i * NAME(WIDE), cols, tmi_min(8, w->k - k), w->b + (k * w->b_rs + j0) * w->es, w->b_rs,
                             (const T *)w->packed_a + i * w->k + k);
        NAME(finish_tile)(w, tile, NAME(WIDE), 0, w->m, j0, cols);
    }
    tmi_denormals_restore(mode);
}

static void NAME(skinny)(tmi_gemm_job *w)
{
    NAME(gather_rows)(w, w->packed_a);
    if (w->way == TMI_GEMM_DOT) {
        /* at least 64 KiB of B per task, whole groups of four */
        int64_t grain = (65536 / (w->k * w->es) + 4) & ~(int64_t)3;
        tmi_parallel_for(w->n, grain, NAME(dot_task), w);
    } else {
        int64_t groups = 65536 / (w->k * w->es * NAME(WIDE)) + 1;
        tmi_parallel_for(w->n, groups * NAME(WIDE), NAME(axpy_task), w);
    }
}
