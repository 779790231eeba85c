/* What forward and backward share. Included with T, DTYPE (of T), PANEL_COLS, TILE, ROW(name), WIDEN and NAME defined. */

static size_t NAME(padded)(int64_t n) { return (size_t)((n + PANEL_COLS - 1) / PANEL_COLS * PANEL_COLS); }

/* Rows [s, s + n) of a head as adjacent Ts. */
static void NAME(load_rows)(T *dst, const flash_tensor *t, int64_t b, int64_t h, int64_t s, int64_t n, int64_t width)
{
    for (int64_t i = 0; i < n; i++) {
        const char *p = flash_at(t, b, h, s + i);
        T *row = dst + i * width;
        if (t->dtype == DTYPE && t->ds == 1) {
            memcpy(row, p, (size_t)width * sizeof(T));
        } else if (t->dtype == DTYPE) {
            for (int64_t j = 0; j < width; j++) row[j] = ((const T *)(const void *)p)[j * t->ds];
        } else if (t->dtype == TM_BF16) {
            for (int64_t j = 0; j < width; j++) row[j] = (T)tmi_bf16_to_f32(((const tmi_bf16 *)(const void *)p)[j * t->ds]);
        } else {
            for (int64_t j = 0; j < width; j++) row[j] = (T)tmi_f16_to_f32(((const tmi_f16 *)(const void *)p)[j * t->ds]);
        }
    }
}

static void NAME(store_row)(const flash_tensor *t, int64_t b, int64_t h, int64_t s, const T *row, int64_t width)
{
    char *p = (char *)(uintptr_t)flash_at(t, b, h, s);
    if (t->dtype == DTYPE) {
        for (int64_t j = 0; j < width; j++) ((T *)(void *)p)[j * t->ds] = row[j];
    } else if (t->dtype == TM_BF16) {
        for (int64_t j = 0; j < width; j++) ((tmi_bf16 *)(void *)p)[j * t->ds] = tmi_f32_to_bf16((float)row[j]);
    } else {
        for (int64_t j = 0; j < width; j++) ((tmi_f16 *)(void *)p)[j * t->ds] = tmi_f32_to_f16((float)row[j]);
    }
}

static T NAME(mask_value)(const flash_tensor *m, const char *p, int64_t j)
{
    switch (m->dtype) {
    case TM_BOOL: return ((const bool *)p)[j * m->ds] ? 0 : -(T)INFINITY;
    case TM_F64: return (T)((const double *)(const void *)p)[j * m->ds];
    case TM_BF16: return (T)tmi_bf16_to_f32(((const tmi_bf16 *)(const void *)p)[j * m->ds]);
    case TM_F16: return (T)tmi_f16_to_f32(((const tmi_f16 *)(const void *)p)[j * m->ds]);
    default: return (T)((const float *)(const void *)p)[j * m->ds];
    }
}

/* Scores of query rows [q0, q0 + rows) against keys [k0, k0 + cols): what may not be seen becomes -inf. */
static void NAME(mask_scores)(const flash_run *r, T *s, int64_t b, int64_t h, int64_t q0, int64_t rows, int64_t k0, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        T *row = s + i * FLASH_K_BLOCK;
        if (r->mask.data) {
            const char *p = flash_at(&r->mask, b, h, q0 + i) + k0 * r->mask.ds * (int64_t)tmi_dtypes[r->mask.dtype].size;
            if (r->mask.dtype == DTYPE && r->mask.ds == 1)
                for (int64_t j = 0; j < cols; j++) row[j] += ((const T *)(const void *)p)[j];
            else
                for (int64_t j = 0; j < cols; j++) row[j] += NAME(mask_value)(&r->mask, p, j);
        }
        if (r->causal) {
            int64_t from = q0 + i + 1 - k0;
            for (int64_t j = from < 0 ? 0 : from; j < cols; j++) row[j] = -(T)INFINITY;
        }
    }
}

/* Keys (or values) of one head packed as B: transposed (width x keys) or not (keys x width), block by block. */
static void NAME(pack_head)(const flash_tensor *t, int64_t b, int64_t h, int64_t len, int64_t width, bool transposed, int64_t block, T *dst)
{
    for (int64_t s = 0; s < len; s += block) {
        int64_t n = flash_min(block, len - s);
        if (transposed)
            tmi_gemm_pack_b(t->dtype, width, n, flash_at(t, b, h, s), t->ds, t->ss, dst + s * width);
        else
            tmi_gemm_pack_b(t->dtype, n, width, flash_at(t, b, h, s), t->ss, t->ds, dst + s * (int64_t)NAME(padded)(width));
    }
}
