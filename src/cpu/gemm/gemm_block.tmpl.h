/* The blocked product. Included with T and NAME defined.
 *
 *   for each block of nc columns of B, for each block of kc steps of K:   pack B (kc x nc) into panels of 2 vectors
 *     for each block of mc rows of A:                                     pack A (mc x kc) into panels of at most `rows` rows
 *       tasks of task_rows x task_cols panels: each C tile adds up its product in registers, once per kc
 *
 * A panel of B stays in the first cache while the panels of a task's A pass from the second. Small operands are read in place.
 * K blocks follow each other in order and one task owns a tile, so the bits do not depend on the number of threads. */

/* Rows [i, i + rows) x columns [j, j + cols) of the finished tile: C = alpha tile + beta C, epilogue, store. */
static void NAME(finish_tile)(const tmi_gemm_job *w, T *tile, int64_t ld, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
    T alpha = (T)w->alpha, beta = (T)w->beta;
    for (int64_t r = 0; r < rows; r++) {
        T *t = tile + r * ld;
        const char *c = w->c + ((i + r) * w->c_rs + j * w->c_cs) * w->es;
        if (alpha != 1)
            for (int64_t x = 0; x < cols; x++) t[x] *= alpha;
        if (beta != 0)
            for (int64_t x = 0; x < cols; x++) t[x] += beta * NAME(read)(w, c + x * w->c_cs * w->es);
    }
    NAME(epilogue)(w, tile, ld, i, rows, j, cols);
    for (int64_t r = 0; r < rows; r++) NAME(write_row)(w, w->c + ((i + r) * w->c_rs + j * w->c_cs) * w->es, tile + r * ld, cols);
}

/* A tile narrower than its vectors goes through a buffer. */
static void NAME(narrow_tile)(tmi_ukr *kernel, tmi_ukr_args *g, int64_t rows, int64_t cols, int64_t width)
{
    T tile[TMI_UKR_MAX_ROWS * 32];
    tmi_ukr_args t = *g;
    t.c = tile;
    t.c_rs = width * (int64_t)sizeof(T);
    t.accumulate = 0;
    kernel(&t);
    for (int64_t r = 0; r < rows; r++) {
        T *c = (T *)((char *)g->c + r * g->c_rs);
        for (int64_t x = 0; x < cols; x++) c[x] = g->accumulate ? c[x] + tile[r * width + x] : tile[r * width + x];
    }
}

/* Row panels [p0, p1) of a block of m rows of A against one panel of B. `width`: columns the panel holds, `cols` of them real. */
static void NAME(panel)(const tmi_ukr_table *u, tmi_ukr_args *g, bool packed_a, bool dense, int64_t m, int64_t p0, int64_t p1, const T *a,
                        int64_t rs, int64_t cs, int64_t cols, int64_t width, T *c, int64_t ld)
{
    int64_t panels = tmi_ceil_div(m, u->rows), es = sizeof(T);
    int kind = width <= u->lanes ? TMI_UKR_V1 : TMI_UKR_V2;
    g->c_rs = ld * es;
    for (int64_t p = p0; p < p1; p++) {
        int64_t i = tmi_cut(m, panels, p), rows = tmi_cut(m, panels, p + 1) - i;
        tmi_ukr *kernel = dense && kind == TMI_UKR_V2 ? u->kernels[TMI_UKR_DENSE * u->rows + rows - 1] : NULL;
        if (!kernel) kernel = u->kernels[kind * u->rows + rows - 1];
        g->a = packed_a ? a + i * g->k : a + i * rs;
        g->a_rs = packed_a ? es : rs * es;
        g->a_cs = packed_a ? rows * es : cs * es;
        g->c = c + i * ld;
        if (cols == width)
            kernel(g);
        else
            NAME(narrow_tile)(kernel, g, rows, cols, width);
    }
}

static void NAME(scale_tile)(T *c, int64_t ld, int64_t rows, int64_t cols, T beta)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t x = 0; x < cols; x++) c[r * ld + x] *= beta;
}

/* Where panel q of the B block lies, and how far apart its k steps are. The last, partial panel is always packed. */
static const T *NAME(b_panel)(const tmi_gemm_job *w, int64_t q, int64_t width, int64_t *rs)
{
    int64_t nr = 2 * w->u->lanes;
    bool partial = (q + 1) * nr > w->nb;
    if (w->pack_b || partial) {
        *rs = width;
        return (const T *)w->packed_b + (w->pack_b ? q * nr * w->kb : 0);
    }
    *rs = w->b_rs;
    return (const T *)(const void *)w->b + w->pc * w->b_rs + w->jc + q * nr;
}

static int64_t NAME(panel_width)(const tmi_gemm_job *w, int64_t q)
{
    int64_t left = w->nb - q * 2 * w->u->lanes;
    return left <= w->u->lanes ? w->u->lanes : 2 * w->u->lanes;
}

static void NAME(task)(const tmi_gemm_job *w, int64_t it, int64_t jt)
{
    const tmi_ukr_table *u = w->u;
    int64_t nr = 2 * u->lanes, panels = tmi_ceil_div(w->mb, u->rows), q_end = tmi_ceil_div(w->nb, nr);
    int64_t p0 = it * w->task_rows, p1 = tmi_min(panels, p0 + w->task_rows), q0 = jt * w->task_cols, q1 = tmi_min(q_end, q0 + w->task_cols);
    int64_t i0 = tmi_cut(w->mb, panels, p0), i1 = tmi_cut(w->mb, panels, p1), j0 = q0 * nr, j1 = tmi_min(w->nb, q1 * nr);
    T *c = (T *)w->acc + w->ic * w->ld + w->jc, *tile = c + i0 * w->ld + j0;
    const T *a = w->pack_a ? (const T *)w->packed_a : (const T *)(const void *)w->a + w->ic * w->a_rs + w->pc * w->a_cs;
    bool add = !w->first || (w->direct && w->beta != 0);
    if (w->first && w->direct && w->beta != 0 && w->beta != 1) NAME(scale_tile)(tile, w->ld, i1 - i0, j1 - j0, (T)w->beta);
    for (int64_t q = q0; q < q1; q++) {
        int64_t width = NAME(panel_width)(w, q), rs;
        tmi_ukr_args g = {.k = w->kb, .b = NAME(b_panel)(w, q, width, &rs), .accumulate = add};
        g.b_rs = rs * (int64_t)sizeof(T);
        NAME(set_alpha)(&g, w->direct ? (T)w->alpha : 1);
        NAME(panel)(u, &g, w->pack_a, w->pack_a && w->pack_b, w->mb, p0, p1, a, w->a_rs, w->a_cs, tmi_min(width, w->nb - q * nr), width, c + q * nr,
                    w->ld);
    }
    if (!w->last) return;
    if (w->direct)
        NAME(epilogue)(w, tile, w->ld, w->ic + i0, i1 - i0, w->jc + j0, j1 - j0);
    else
        NAME(finish_tile)(w, tile, w->ld, w->ic + i0, i1 - i0, w->jc + j0, j1 - j0);
}

static void NAME(run_tasks)(void *ctx, int64_t begin, int64_t end)
{
    const tmi_gemm_job *w = ctx;
    int64_t across = tmi_ceil_div(tmi_ceil_div(w->mb, w->u->rows), w->task_rows);
    uint64_t mode = tmi_denormals_flush();
    for (int64_t t = begin; t < end; t++) NAME(task)(w, t % across, t / across);
    tmi_denormals_restore(mode);
}

static void NAME(pack_b_panels)(void *ctx, int64_t begin, int64_t end)
{
    const tmi_gemm_job *w = ctx;
    int64_t nr = 2 * w->u->lanes, first = w->pack_b ? 0 : w->nb / nr;
    for (int64_t q = begin + first; q < end + first; q++) {
        int64_t j = w->jc + q * nr, width = NAME(panel_width)(w, q), cols = tmi_min(width, w->nb - q * nr);
        T *dst = (T *)w->packed_b + (w->pack_b ? q * nr * w->kb : 0);
        if (w->g->load_b && !w->exchanged)
            w->g->load_b(w->g->load_b_ctx, dst, w->matrix, w->pc, w->kb, j, cols, width);
        else
            w->pack(dst, cols, width, w->kb, w->b + (w->pc * w->b_rs + j * w->b_cs) * w->es, w->b_cs, w->b_rs);
    }
}

static void NAME(pack_a_panels)(void *ctx, int64_t begin, int64_t end)
{
    const tmi_gemm_job *w = ctx;
    int64_t panels = tmi_ceil_div(w->mb, w->u->rows);
    for (int64_t p = begin; p < end; p++) {
        int64_t i = tmi_cut(w->mb, panels, p), rows = tmi_cut(w->mb, panels, p + 1) - i;
        if (w->g->load_b && w->exchanged) {
            w->g->load_b(w->g->load_b_ctx, (T *)w->packed_a + i * w->kb, w->matrix, w->pc, w->kb, w->ic + i, rows, rows);
            continue;
        }
        w->pack((T *)w->packed_a + i * w->kb, rows, rows, w->kb, w->a + ((w->ic + i) * w->a_rs + w->pc * w->a_cs) * w->es, w->a_rs, w->a_cs);
    }
}

static void NAME(block_rows)(tmi_gemm_job *w)
{
    int64_t panels = tmi_ceil_div(w->mb, w->u->rows), q = tmi_ceil_div(w->nb, 2 * w->u->lanes);
    if (w->pack_a) tmi_parallel_for(panels, tmi_pack_grain(w->u->rows * w->kb), NAME(pack_a_panels), w);
    tmi_parallel_for(tmi_ceil_div(panels, w->task_rows) * tmi_ceil_div(q, w->task_cols), 1, NAME(run_tasks), w);
}

static void NAME(block)(tmi_gemm_job *w)
{
    int64_t nr = 2 * w->u->lanes;
    for (w->jc = 0; w->jc < w->n; w->jc += w->nc) {
        w->nb = tmi_min(w->nc, w->n - w->jc);
        for (w->pc = 0; w->pc < w->k; w->pc += w->kc) {
            w->kb = tmi_min(w->kc, w->k - w->pc);
            w->first = w->pc == 0;
            w->last = w->pc + w->kb == w->k;
            if (w->pack_b)
                tmi_parallel_for(tmi_ceil_div(w->nb, nr), tmi_pack_grain(nr * w->kb), NAME(pack_b_panels), w);
            else if (w->nb % nr)
                NAME(pack_b_panels)(w, 0, 1);
            for (w->ic = 0; w->ic < w->m; w->ic += w->mc) {
                w->mb = tmi_min(w->mc, w->m - w->ic);
                NAME(block_rows)(w);
            }
        }
    }
}

/* ---- a packed B of one's own, one thread */
static void NAME(own_tile)(int64_t m, int64_t n, int64_t k, const T *a, int64_t rs, int64_t cs, const T *b, int64_t packed_k, T *c, int64_t ld,
                           T alpha, bool add)
{
    const tmi_ukr_table *u = NAME(table)();
    int64_t nr = 2 * u->lanes;
    for (int64_t j = 0; j < n; j += nr) {
        tmi_ukr_args g = {.k = k, .b = b + j * packed_k, .b_rs = nr * (int64_t)sizeof(T), .accumulate = add};
        NAME(set_alpha)(&g, alpha);
        NAME(panel)(u, &g, false, false, m, 0, tmi_ceil_div(m, u->rows), a, rs, cs, tmi_min(nr, n - j), nr, c + j, ld);
    }
}
