/* Forward pass: for a block of query rows, keys go by in blocks; maximum, sum and output are corrected as larger scores appear. */

typedef struct NAME(head_keys) { const T *kt, *v; } NAME(head_keys);

static NAME(head_keys) NAME(keys_of)(const flash_run *r, int64_t kv)
{
    const T *base = (const T *)(const void *)(r->shared + (size_t)(kv - r->first) * r->kv_bytes);
    return (NAME(head_keys)){base, base + (size_t)r->d * NAME(padded)(r->k_blocks * FLASH_K_BLOCK)};
}

static void NAME(pack_keys)(void *ctx, int64_t begin, int64_t end)
{
    const flash_run *r = ctx;
    for (int64_t i = begin; i < end; i++) {
        int64_t kv = r->first + i, b = kv / r->kv_heads, h = kv % r->kv_heads;
        NAME(head_keys) x = NAME(keys_of)(r, kv);
        NAME(pack_head)(&r->k, b, h, r->k_len, r->d, true, FLASH_K_BLOCK, (T *)(uintptr_t)x.kt);
        NAME(pack_head)(&r->v, b, h, r->k_len, r->dv, false, FLASH_K_BLOCK, (T *)(uintptr_t)x.v);
    }
}

static void NAME(shrink_rows)(T *o, const T *by, int64_t rows, int64_t width)
{
    for (int64_t i = 0; i < rows; i++)
        if (by[i] != 1)
            for (int64_t j = 0; j < width; j++) o[i * width + j] *= by[i];
}

static void NAME(finish_rows)(const flash_run *r, int64_t b, int64_t h, int64_t q0, int64_t rows, T *o, const T *max, const T *sum)
{
    for (int64_t i = 0; i < rows; i++) {
        T scale = sum[i] == 0 ? 0 : 1 / sum[i], lse = sum[i] == 0 ? -(T)INFINITY : max[i] + LOG(sum[i]);
        for (int64_t j = 0; j < r->dv; j++) o[i * r->dv + j] *= scale;
        NAME(store_row)(&r->out, b, h, q0 + i, o + i * r->dv, r->dv);
        *(T *)(uintptr_t)flash_at(&r->lse, b, h, q0 + i) = lse;
    }
}

static void NAME(query_block)(const flash_run *r, int64_t kv, int64_t h, int64_t q0, char *scratch)
{
    int64_t b = kv / r->kv_heads, rows = flash_min(FLASH_Q_BLOCK, r->q_len - q0), keys = flash_keys(r, q0 + rows), dp = (int64_t)NAME(padded)(r->dv);
    NAME(head_keys) x = NAME(keys_of)(r, kv);
    T *s = (T *)(void *)scratch, *q = s + FLASH_Q_BLOCK * FLASH_K_BLOCK, *o = q + FLASH_Q_BLOCK * r->d;
    T max[FLASH_Q_BLOCK], sum[FLASH_Q_BLOCK], shrink[FLASH_Q_BLOCK];
    NAME(load_rows)(q, &r->q, b, h, q0, rows, r->d);
    memset(o, 0, (size_t)(rows * r->dv) * sizeof(T));
    for (int64_t i = 0; i < rows; i++) max[i] = -(T)INFINITY, sum[i] = 0;
    for (int64_t k0 = 0; k0 < keys; k0 += FLASH_K_BLOCK) {
        int64_t cols = flash_min(FLASH_K_BLOCK, keys - k0), packed = flash_min(FLASH_K_BLOCK, r->k_len - k0);
        TILE(rows, cols, r->d, q, r->d, 1, x.kt + k0 * r->d, r->d, s, FLASH_K_BLOCK, (T)r->scale, false);
        if (r->mask.data || (r->causal && k0 + cols > q0)) NAME(mask_scores)(r, s, b, h, q0, rows, k0, cols);
        r->rows->ROW(soft)(s, FLASH_K_BLOCK, rows, cols, max, sum, shrink);
        if (k0) NAME(shrink_rows)(o, shrink, rows, r->dv);
        TILE(rows, r->dv, cols, s, FLASH_K_BLOCK, 1, x.v + k0 * dp, packed, o, r->dv, 1, k0 > 0);
    }
    NAME(finish_rows)(r, b, h, q0, rows, o, max, sum);
}

/* Task t: query block t % q_blocks of a query head. Later blocks of a causal head are longer, so they come first. */
static void NAME(forward_tasks)(void *ctx, int64_t begin, int64_t end)
{
    const flash_run *r = ctx;
    char *scratch = r->scratch + (size_t)tmi_pool_thread() * r->scratch_bytes;
    int64_t per_kv = r->heads / r->kv_heads;
    uint64_t mode = tmi_denormals_flush();
    for (int64_t t = begin; t < end; t++) {
        int64_t head = t / r->q_blocks, block = r->q_blocks - 1 - t % r->q_blocks, kv = r->first + head / per_kv;
        NAME(query_block)(r, kv, kv % r->kv_heads * per_kv + head % per_kv, block * FLASH_Q_BLOCK, scratch);
    }
    tmi_denormals_restore(mode);
}

tm_status NAME(forward)(flash_run *r)
{
    size_t es = sizeof(T);
    int64_t total = r->batch * r->kv_heads, per_kv = r->heads / r->kv_heads;
    r->kv_bytes = ((size_t)r->d * NAME(padded)(r->k_blocks * FLASH_K_BLOCK) + (size_t)r->k_len * NAME(padded)(r->dv)) * es;
    r->kv_bytes = (r->kv_bytes + 63) & ~(size_t)63;
    r->scratch_bytes = ((size_t)FLASH_Q_BLOCK * (size_t)(FLASH_K_BLOCK + r->d + r->dv) * es + 127) & ~(size_t)63;
    r->group = flash_min(total, 1 + (int64_t)((size_t)FLASH_WORK_LIMIT / (r->kv_bytes + 1)));
    size_t bytes = r->kv_bytes * (size_t)r->group + r->scratch_bytes * (size_t)tmi_pool_size();
    char *work = tmi_data_alloc(bytes);
    if (!work) return TM_NOMEM;
    r->shared = work;
    r->scratch = work + r->kv_bytes * (size_t)r->group;
    for (r->first = 0; r->first < total; r->first += r->group) {
        r->count = flash_min(r->group, total - r->first);
        tmi_parallel_for(r->count, 1, NAME(pack_keys), r);
        tmi_parallel_for(r->count * per_kv * r->q_blocks, 1, NAME(forward_tasks), r);
    }
    tmi_data_free(work, bytes);
    return TM_OK;
}
