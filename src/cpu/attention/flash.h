/* Tiled attention: one call described for all heads. Private to src/cpu/attention.
 *
 * Query rows are taken in blocks of Q_BLOCK, keys in blocks of K_BLOCK; both cuts depend on the sizes alone. Keys and values are packed once per
 * head for the matrix kernels. Memory beyond the results is linear in the sequence length; heads are taken in groups so that it stays
 * below about WORK_LIMIT bytes. */
#ifndef TMI_FLASH_H
#define TMI_FLASH_H

#include "attention_rows.h"
#include "core/tensor_state.h"

enum { FLASH_Q_BLOCK = 96, FLASH_K_BLOCK = 256, FLASH_WORK_LIMIT = 64 << 20 };

typedef struct flash_tensor {
    const char *data;      /* read; written through a cast for results */
    int64_t bs, hs, ss, ds;   /* strides of batch, head, row, column, in elements */
    tm_dtype dtype;
} flash_tensor;

typedef struct flash_run {
    int64_t batch, heads, kv_heads, q_len, k_len, d, dv;
    flash_tensor q, k, v, mask, out, lse;      /* mask.data NULL: none. lse: columns do not count */
    flash_tensor dout, dq, dk, dv_;            /* backward */
    bool causal;
    double scale;
    const tmk_attention_rows *rows;
    /* derived */
    int64_t q_blocks, k_blocks, group;         /* heads of K per group of work */
    int64_t first;                             /* first K head of the current group (batch * kv_heads + head) */
    int64_t count;                             /* K heads in the current group */
    char *shared, *scratch;                    /* of the group; of each thread */
    size_t kv_bytes, q_bytes, scratch_bytes;   /* per K head; per query head; per thread */
    bool one_pass;                             /* backward: a task is a head */
} flash_run;

tm_status tmi_flash_forward_f32(flash_run *r);
tm_status tmi_flash_forward_f64(flash_run *r);
tm_status tmi_flash_backward_f32(flash_run *r);
tm_status tmi_flash_backward_f64(flash_run *r);

static inline const char *flash_at(const flash_tensor *t, int64_t b, int64_t h, int64_t s)
{
    return t->data + (b * t->bs + h * t->hs + s * t->ss) * (int64_t)tmi_dtypes[t->dtype].size;
}
static inline int64_t flash_min(int64_t a, int64_t b) { return a < b ? a : b; }
/* Keys that query rows below `end` see. */
static inline int64_t flash_keys(const flash_run *r, int64_t end) { return r->causal ? flash_min(r->k_len, end) : r->k_len; }

#endif
