/* Backward pass. With P = exp(S - lse):  dV += P^T dO,  dP = dO V^T,  dS = P (dP - delta),  dK += dS^T Q,  dQ += dS K,
 * delta = row sums of dO * O. Where there are many heads, a task is a head and one pass gives everything; where there are few, tasks are blocks of
 * keys (dK, dV) and then blocks of queries (dQ), which computes S and dP twice. Which one, and each order of additions, follows from the sizes. */

typedef struct NAME(kv_side) { T *kt, *vt, *k, *dk, *dv; } NAME(kv_side);
typedef struct NAME(q_side) { T *q, *dout, *packed_q, *packed_dout, *delta, *lse, *dq; } NAME(q_side);

static NAME(kv_side) NAME(kv_side_of)(const flash_run *r, int64_t kv)
{
    NAME(kv_side) x;
    size_t len = NAME(padded)(r->k_blocks * FLASH_K_BLOCK);
    x.kt = (T *)(void *)(r->shared + (size_t)(kv - r->first) * r->kv_bytes);
    x.vt = x.kt + (size_t)r->d * len;
    x.k = x.vt + (size_t)r->dv * len;
    x.dk = x.k + (size_t)r->k_len * NAME(padded)(r->d);
    x.dv = x.dk + r->k_len * r->d;
    return x;
}

/* `head`: of all query heads of the group. */
static NAME(q_side) NAME(q_side_of)(const flash_run *r, int64_t head)
{
    NAME(q_side) x;
    x.q = (T *)(void *)(r->shared + (size_t)r->group * r->kv_bytes + (size_t)head * r->q_bytes);
    x.dout = x.q + r->q_len * r->d;
    x.packed_q = x.dout + r->q_len * r->dv;
    x.packed_dout = x.packed_q + (size_t)r->q_len * NAME(padded)(r->d);
    x.delta = x.packed_dout + (size_t)r->q_len * NAME(padded)(r->dv);
    x.lse = x.delta + r->q_len;
    x.dq = x.lse + r->q_len;
    return x;
}

static void NAME(prepare_kv)(void *ctx, int64_t begin, int64_t end)
{
    const flash_run *r = ctx;
    for (int64_t i = begin; i < end; i++) {
        int64_t kv = r->first + i, b = kv / r->kv_heads, h = kv % r->kv_heads;
        NAME(kv_side) x = NAME(kv_side_of)(r, kv);
        NAME(pack_head)(&r->k, b, h, r->k_len, r->d, true, FLASH_K_BLOCK, x.kt);
        NAME(pack_head)(&r->v, b, h, r->k_len, r->dv, true, FLASH_K_BLOCK, x.vt);
        NAME(pack_head)(&r->k, b, h, r->k_len, r->d, false, FLASH_K_BLOCK, x.k);
        memset(x.dk, 0, (size_t)(r->k_len * (r->d + r->dv)) * sizeof(T));
    }
}

static void NAME(prepare_q)(void *ctx, int64_t begin, int64_t end)
{
    const flash_run *r = ctx;
    int64_t per_kv = r->heads / r->kv_heads;
    T row[1024];
    for (int64_t i = begin; i < end; i++) {
        int64_t kv = r->first + i / per_kv, b = kv / r->kv_heads, h = kv % r->kv_heads * per_kv + i % per_kv;
        NAME(q_side) x = NAME(q_side_of)(r, i);
        NAME(load_rows)(x.q, &r->q, b, h, 0, r->q_len, r->d);
        NAME(load_rows)(x.dout, &r->dout, b, h, 0, r->q_len, r->dv);
        NAME(pack_head)(&r->q, b, h, r->q_len, r->d, false, FLASH_Q_BLOCK, x.packed_q);
        NAME(pack_head)(&r->dout, b, h, r->q_len, r->dv, false, FLASH_Q_BLOCK, x.packed_dout);
        for (int64_t s = 0; s < r->q_len; s++) {
            T sum = 0;
            for (int64_t j = 0; j < r->dv; j += 1024) {
                int64_t n = flash_min(1024, r->dv - j);
                flash_tensor part = r->out;
                part.data += j * part.ds * (int64_t)tmi_dtypes[part.dtype].size;
                NAME(load_rows)(row, &part, b, h, s, 1, n);
                for (int64_t c = 0; c < n; c++) sum += row[c] * x.dout[s * r->dv + j + c];
            }
            x.delta[s] = sum;
            x.lse[s] = *(const T *)(const void *)flash_at(&r->lse, b, h, s);
        }
        memset(x.dq, 0, (size_t)(r->q_len * r->d) * sizeof(T));
    }
}

enum { NAME(WANT_KV) = 1, NAME(WANT_Q) = 2 };

/* One tile: queries [q0, ..) of query head `head` of the group against keys [k0, ..). */
static void NAME(pair)(const flash_run *r, int64_t kv, int64_t head, int64_t q0, int64_t k0, int want, T *s)
{
    int64_t per_kv = r->heads / r->kv_heads, b = kv / r->kv_heads, h = kv % r->kv_heads * per_kv + head % per_kv;
    int64_t rows = flash_min(FLASH_Q_BLOCK, r->q_len - q0), seen = flash_keys(r, q0 + rows), packed = flash_min(FLASH_K_BLOCK, r->k_len - k0);
    int64_t cols = flash_min(FLASH_K_BLOCK, seen - k0), dp = (int64_t)NAME(padded)(r->d), dvp = (int64_t)NAME(padded)(r->dv);
    if (cols <= 0) return;
    NAME(kv_side) x = NAME(kv_side_of)(r, kv);
    NAME(q_side) y = NAME(q_side_of)(r, head);
    T *g = s + FLASH_Q_BLOCK * FLASH_K_BLOCK, scale = (T)r->scale;
    TILE(rows, cols, r->d, y.q + q0 * r->d, r->d, 1, x.kt + k0 * r->d, r->d, s, FLASH_K_BLOCK, scale, false);
    if (r->mask.data || (r->causal && k0 + cols > q0)) NAME(mask_scores)(r, s, b, h, q0, rows, k0, cols);
    r->rows->ROW(weights)(s, FLASH_K_BLOCK, rows, cols, y.lse + q0);
    TILE(rows, cols, r->dv, y.dout + q0 * r->dv, r->dv, 1, x.vt + k0 * r->dv, r->dv, g, FLASH_K_BLOCK, 1, false);
    if (want & NAME(WANT_KV)) TILE(cols, r->dv, rows, s, 1, FLASH_K_BLOCK, y.packed_dout + q0 * dvp, rows, x.dv + k0 * r->dv, r->dv, 1, true);
    r->rows->ROW(scores_grad)(s, g, FLASH_K_BLOCK, rows, cols, y.delta + q0);
    if (want & NAME(WANT_KV)) TILE(cols, r->d, rows, g, 1, FLASH_K_BLOCK, y.packed_q + q0 * dp, rows, x.dk + k0 * r->d, r->d, scale, true);
    if (want & NAME(WANT_Q)) TILE(rows, r->d, cols, g, FLASH_K_BLOCK, 1, x.k + k0 * dp, packed, y.dq + q0 * r->d, r->d, scale, true);
}

/* Task: a K head, everything. */
static void NAME(whole_head)(void *ctx, int64_t begin, int64_t end)
{
    const flash_run *r = ctx;
    T *s = (T *)(void *)(r->scratch + (size_t)tmi_pool_thread() * r->scratch_bytes);
    int64_t per_kv = r->heads / r->kv_heads;
    uint64_t mode = tmi_denormals_flush();
    for (int64_t i = begin; i < end; i++)
        for (int64_t head = i * per_kv; head < (i + 1) * per_kv; head++)
            for (int64_t k0 = 0; k0 < r->k_len; k0 += FLASH_K_BLOCK)
                for (int64_t q0 = 0; q0 < r->q_len; q0 += FLASH_Q_BLOCK)
                    NAME(pair)(r, r->first + i, head, q0, k0, NAME(WANT_KV) | NAME(WANT_Q), s);
    tmi_denormals_restore(mode);
}

/* Task: a block of keys of a K head: dK and dV. */
static void NAME(key_blocks)(void *ctx, int64_t begin, int64_t end)
{
    const flash_run *r = ctx;
    T *s = (T *)(void *)(r->scratch + (size_t)tmi_pool_thread() * r->scratch_bytes);
    int64_t per_kv = r->heads / r->kv_heads;
    uint64_t mode = tmi_denormals_flush();
    for (int64_t t = begin; t < end; t++) {
        int64_t i = t / r->k_blocks, k0 = t % r->k_blocks * FLASH_K_BLOCK;
        for (int64_t head = i * per_kv; head < (i + 1) * per_kv; head++)
            for (int64_t q0 = 0; q0 < r->q_len; q0 += FLASH_Q_BLOCK) NAME(pair)(r, r->first + i, head, q0, k0, NAME(WANT_KV), s);
    }
    tmi_denormals_restore(mode);
}

/* Task: a block of queries of a query head: dQ. */
static void NAME(query_blocks)(void *ctx, int64_t begin, int64_t end)
{
    const flash_run *r = ctx;
    T *s = (T *)(void *)(r->scratch + (size_t)tmi_pool_thread() * r->scratch_bytes);
    int64_t per_kv = r->heads / r->kv_heads;
    uint64_t mode = tmi_denormals_flush();
    for (int64_t t = begin; t < end; t++) {
        int64_t head = t / r->q_blocks, q0 = (r->q_blocks - 1 - t % r->q_blocks) * FLASH_Q_BLOCK;
        for (int64_t k0 = 0; k0 < r->k_len; k0 += FLASH_K_BLOCK) NAME(pair)(r, r->first + head / per_kv, head, q0, k0, NAME(WANT_Q), s);
    }
    tmi_denormals_restore(mode);
}

/* Task: a K head: results to their places. */
static void NAME(store_head)(void *ctx, int64_t begin, int64_t end)
{
    const flash_run *r = ctx;
    int64_t per_kv = r->heads / r->kv_heads;
    for (int64_t i = begin; i < end; i++) {
        int64_t kv = r->first + i, b = kv / r->kv_heads, h = kv % r->kv_heads;
        NAME(kv_side) x = NAME(kv_side_of)(r, kv);
        for (int64_t s = 0; s < r->k_len; s++) {
            NAME(store_row)(&r->dk, b, h, s, x.dk + s * r->d, r->d);
            NAME(store_row)(&r->dv_, b, h, s, x.dv + s * r->dv, r->dv);
        }
        for (int64_t j = 0; j < per_kv; j++) {
            NAME(q_side) y = NAME(q_side_of)(r, i * per_kv + j);
            for (int64_t s = 0; s < r->q_len; s++) NAME(store_row)(&r->dq, b, h * per_kv + j, s, y.dq + s * r->d, r->d);
        }
    }
}

static void NAME(backward_group)(flash_run *r)
{
    int64_t per_kv = r->heads / r->kv_heads;
    tmi_parallel_for(r->count, 1, NAME(prepare_kv), r);
    tmi_parallel_for(r->count * per_kv, 1, NAME(prepare_q), r);
    if (r->one_pass) {
        tmi_parallel_for(r->count, 1, NAME(whole_head), r);
    } else {
        tmi_parallel_for(r->count * r->k_blocks, 1, NAME(key_blocks), r);
        tmi_parallel_for(r->count * per_kv * r->q_blocks, 1, NAME(query_blocks), r);
    }
    tmi_parallel_for(r->count, 1, NAME(store_head), r);
}

tm_status NAME(backward)(flash_run *r)
{
    size_t es = sizeof(T), len = NAME(padded)(r->k_blocks * FLASH_K_BLOCK), wide = NAME(padded)(r->d), wide_v = NAME(padded)(r->dv);
    int64_t total = r->batch * r->kv_heads, per_kv = r->heads / r->kv_heads;
    r->kv_bytes = ((size_t)(r->d + r->dv) * len + (size_t)r->k_len * (wide + (size_t)(r->d + r->dv))) * es;
    r->q_bytes = (size_t)r->q_len * ((size_t)(2 * r->d + r->dv + 2) + wide + wide_v) * es;
    r->kv_bytes = (r->kv_bytes + 63) & ~(size_t)63, r->q_bytes = (r->q_bytes + 63) & ~(size_t)63;
    r->scratch_bytes = 2 * FLASH_Q_BLOCK * FLASH_K_BLOCK * es;
    size_t head = r->kv_bytes + (size_t)per_kv * r->q_bytes;
    r->group = flash_min(total, 4 + (int64_t)((size_t)FLASH_WORK_LIMIT / (head + 1)));
    /* few heads and long rows: blocks instead of heads */
    r->one_pass = total >= 4 || r->q_blocks * r->k_blocks < 4;
    size_t bytes = head * (size_t)r->group + r->scratch_bytes * (size_t)tmi_pool_size();
    char *work = tmi_data_alloc(bytes);
    if (!work) return TM_NOMEM;
    r->shared = work;
    r->scratch = work + head * (size_t)r->group;
    for (r->first = 0; r->first < total; r->first += r->group) {
        r->count = flash_min(r->group, total - r->first);
        NAME(backward_group)(r);
    }
    tmi_data_free(work, bytes);
    return TM_OK;
}
