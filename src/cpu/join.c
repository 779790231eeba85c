/* cat and stack: each input is a run of chunks in the output. */
#include "base/alloc.h"
#include "base/pool.h"
#include "op_bodies.h"
#include "pointwise.h"
#include "scratch.h"

typedef struct join {
    char *out;
    const char **in;             /* contiguous inputs of the output's dtype */
    const int64_t *chunk;        /* bytes of one outer position, per input */
    const int64_t *start;        /* where in the output's row they go */
    int64_t n, row, outer;
} join;

/* Single small elements: stack along the last dim. */
static void interleave4(const join *j, int64_t begin, int64_t end)
{
    for (int64_t k = 0; k < j->n; k++) {
        const uint32_t *in = (const uint32_t *)j->in[k];
        uint32_t *out = (uint32_t *)j->out + k;
        for (int64_t o = begin; o < end; o++) out[o * j->n] = in[o];
    }
}

static void copy_rows(void *ctx, int64_t begin, int64_t end)
{
    const join *j = ctx;
    bool words = j->row == 4 * j->n;
    for (int64_t k = 0; k < j->n && words; k++) words = j->chunk[k] == 4;
    if (words) {
        interleave4(j, begin, end);
        return;
    }
    for (int64_t o = begin; o < end; o++)
        for (int64_t k = 0; k < j->n; k++)
            if (j->chunk[k]) memcpy(j->out + o * j->row + j->start[k], j->in[k] + o * j->chunk[k], (size_t)j->chunk[k]);
}

/* One input that is one long run: cut into blocks. */
typedef struct block_copy { char *out; const char *in; int64_t bytes; } block_copy;
enum { BLOCK = 1 << 18 };
static void copy_block(void *ctx, int64_t begin, int64_t end)
{
    const block_copy *b = ctx;
    int64_t from = begin * BLOCK, to = end * BLOCK < b->bytes ? end * BLOCK : b->bytes;
    memcpy(b->out + from, b->in + from, (size_t)(to - from));
}

static void run_join(const join *j)
{
    if (j->outer > 1) {
        tmi_parallel_for(j->outer, 1 + 131072 / (j->row + 1), copy_rows, (void *)j);
        return;
    }
    for (int64_t k = 0; k < j->n; k++) {
        block_copy b = {j->out + j->start[k], j->in[k], j->chunk[k]};
        tmi_parallel_for((b.bytes + BLOCK - 1) / BLOCK, 1, copy_block, &b);
    }
}

/* Inputs that are of another dtype or layout are copied into a view of the output; the rest goes as chunks. */
static tm_status copy_view(tm_tensor *to, const tm_tensor *from, int64_t dim, int64_t at, bool new_dim)
{
    tm_tensor view = *to;
    int64_t sizes[TMI_MAX_DIMS], strides[TMI_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < to->ndim; d++) {
        if (new_dim && d == dim) continue;
        sizes[n] = d == dim ? from->sizes[d] : to->sizes[d];
        strides[n++] = to->strides[d];
    }
    view.ndim = n;
    view.sizes = sizes;
    view.strides = strides;
    view.offset = to->offset + at * to->strides[dim];
    view.numel = from->numel;
    view.flags = 0;
    return tmk_copy(&view, from);
}

static bool skipped(const tm_tensor *t, bool new_dim) { return !new_dim && t->ndim == 1 && t->sizes[0] == 0; }

static tm_status join_into(tm_tensor *out, tm_tensor *const *tensors, int64_t n, int64_t dim, bool new_dim)
{
    const char **in = tmi_alloc((size_t)n * sizeof *in);
    int64_t *chunk = tmi_alloc((size_t)n * 2 * sizeof *chunk), *start = chunk + n, inner = (int64_t)tmi_dtype_size(out->dtype), at = 0;
    tm_status status = in && chunk ? TM_OK : TM_NOMEM;
    join j = {.out = tmi_data(out), .in = in, .chunk = chunk, .start = start, .outer = 1};
    for (int d = 0; d < out->ndim; d++) {
        if (d < dim) j.outer *= out->sizes[d];
        if (d > dim) inner *= out->sizes[d];
    }
    j.row = inner * out->sizes[dim];
    bool plain = tmi_contiguous(out);
    for (int64_t i = 0; i < n && status == TM_OK; i++) {
        tm_tensor *t = tensors[i];
        int64_t len = new_dim ? 1 : skipped(t, new_dim) ? 0 : t->sizes[dim];
        if (len && t->numel) {
            if (plain && t->dtype == out->dtype && tmi_contiguous(t)) {
                in[j.n] = tmi_data(t);
                chunk[j.n] = len * inner;
                start[j.n++] = at * inner;
            } else {
                status = copy_view(out, t, dim, at, new_dim);
            }
        }
        at += len;
    }
    if (status == TM_OK && j.n) run_join(&j);
    tmi_free(in, (size_t)n * sizeof *in);
    tmi_free(chunk, (size_t)n * 2 * sizeof *chunk);
    return status;
}

static int64_t wrapped(int64_t dim, int ndim) { return dim < 0 ? dim + ndim : dim; }

tm_status tmk_cat(tm_tensor *out, tm_tensor *const *tensors, int64_t n, tm_int dim)
{
    if (out->numel == 0) return TM_OK;
    return join_into(out, tensors, n, wrapped(dim, out->ndim), false);
}
tm_status tmk_stack(tm_tensor *out, tm_tensor *const *tensors, int64_t n, tm_int dim)
{
    if (out->numel == 0) return TM_OK;
    return join_into(out, tensors, n, wrapped(dim, out->ndim), true);
}
