/* nonzero, masked_select, masked_scatter: flags are counted per block, so that blocks can be written in parallel. */
#include "base/alloc.h"
#include "base/pool.h"
#include "op_bodies.h"
#include "pointwise.h"
#include "reduce.h"
#include "scratch.h"

enum { BLOCK = 8192 };

/* Flags (0 or 1) of t's elements in logical order; a reference of one's own. */
static tm_tensor *flags_of(const tm_tensor *t)
{
    if (t->dtype == TM_BOOL) return tmk_plain(t, TM_BOOL);
    tm_tensor *flags = tmi_tensor_new(t->ndim, t->sizes, NULL, TM_BOOL, t->device);
    tmk_reduction none = {.acc = TMK_ACC_U8, .fold = TMK_FOLD_MAX};
    if (flags && t->numel && tmk_reduce(t, 0, &none, tmi_data(flags)) != TM_OK) {
        tmi_release(flags);
        return NULL;
    }
    return flags;
}

typedef struct blocks {
    const uint8_t *flags;
    int64_t n, n_blocks;
    int64_t *start;              /* [n_blocks + 1]: flags set before each block */
    const tm_tensor *shape;
    int64_t *coordinates;
    const char *in;
    char *out;
    int64_t size;
} blocks;

static void count_blocks(void *ctx, int64_t begin, int64_t end)
{
    blocks *b = ctx;
    for (int64_t k = begin; k < end; k++) {
        int64_t last = (k + 1) * BLOCK < b->n ? (k + 1) * BLOCK : b->n, total = 0;
        for (int64_t i = k * BLOCK; i < last; i++) total += b->flags[i] != 0;
        b->start[k + 1] = total;
    }
}

static tm_status count_flags(blocks *b, const tm_tensor *flags)
{
    b->n = flags->numel;
    b->flags = b->n ? tmi_data(flags) : NULL;
    b->n_blocks = (b->n + BLOCK - 1) / BLOCK;
    b->start = tmi_alloc((size_t)(b->n_blocks + 1) * sizeof *b->start);
    if (!b->start) return TM_NOMEM;
    b->start[0] = 0;
    tmi_parallel_for(b->n_blocks, 4, count_blocks, b);
    for (int64_t k = 0; k < b->n_blocks; k++) b->start[k + 1] += b->start[k];
    return TM_OK;
}
static void free_blocks(blocks *b) { tmi_free(b->start, (size_t)(b->n_blocks + 1) * sizeof *b->start); }

static void write_coordinates(void *ctx, int64_t begin, int64_t end)
{
    const blocks *b = ctx;
    int ndim = b->shape->ndim;
    for (int64_t k = begin; k < end; k++) {
        int64_t last = (k + 1) * BLOCK < b->n ? (k + 1) * BLOCK : b->n, *to = b->coordinates + b->start[k] * ndim;
        for (int64_t i = k * BLOCK; i < last; i++) {
            if (!b->flags[i]) continue;
            int64_t rest = i;
            for (int d = ndim - 1; d > 0; d--) {
                to[d] = rest % b->shape->sizes[d];
                rest /= b->shape->sizes[d];
            }
            if (ndim) to[0] = rest;
            to += ndim;
        }
    }
}

tm_status tmk_nonzero(tm_tensor **out, tm_tensor *self)
{
    tm_tensor *flags = flags_of(self);
    blocks b = {.shape = self};
    tm_status status = flags ? count_flags(&b, flags) : tm_error_status();
    if (status == TM_OK) {
        *out = tmi_tensor_new(2, (int64_t[]){b.start[b.n_blocks], self->ndim}, NULL, TM_I64, self->device);
        status = *out ? TM_OK : tm_error_status();
        if (*out && (*out)->numel) {
            b.coordinates = tmi_data(*out);
            tmi_parallel_for(b.n_blocks, 4, write_coordinates, &b);
        }
        free_blocks(&b);
    }
    if (flags) tmi_release(flags);
    return status;
}

tm_status tmk_nonzero_static(tm_tensor *out, tm_tensor *self, tm_int size, tm_int fill_value)
{
    tm_tensor *all = NULL, *to = tmk_plain_out(out, TM_I64);
    tm_status status = to ? tmk_nonzero(&all, self) : tm_error_status();
    if (status == TM_OK) status = tmk_fill(to, tm_i64(fill_value));
    if (status == TM_OK && to->numel && all->numel) {
        int64_t n = all->numel < to->numel ? all->numel : to->numel;
        memcpy(tmi_data(to), tmi_data(all), (size_t)n * 8);
    }
    if (all) tmi_release(all);
    return tmk_plain_end(out, to, status);
}

/* ---- masked_select and masked_scatter */

/* t broadcast to these sizes, contiguous, of dtype; a reference of one's own. */
static tm_tensor *spread_to(const tm_tensor *t, int ndim, const int64_t *sizes, tm_dtype dtype)
{
    if (t->ndim == ndim && memcmp(t->sizes, sizes, (size_t)ndim * sizeof *sizes) == 0) return tmk_plain(t, dtype);
    tm_tensor *wide = tmi_tensor_new(ndim, sizes, NULL, dtype, t->device);
    if (wide && tmk_copy(wide, t) != TM_OK) {
        tmi_release(wide);
        return NULL;
    }
    return wide;
}

static tm_status mask_of(const tm_tensor *mask, const char *op)
{
    TMI_REQUIRE(mask->dtype == TM_BOOL, TM_INVALID, "%s", op);
    return TM_OK;
}

static void compress(void *ctx, int64_t begin, int64_t end)
{
    const blocks *b = ctx;
    for (int64_t k = begin; k < end; k++) {
        int64_t last = (k + 1) * BLOCK < b->n ? (k + 1) * BLOCK : b->n, to = b->start[k];
        if (b->start[k + 1] == to) continue;
        if (b->size == 4) {   /* every element is written, and only a set flag moves on */
            const uint32_t *in = (const uint32_t *)b->in;
            uint32_t *out = (uint32_t *)b->out;
            int64_t stop = b->start[k + 1];
            for (int64_t i = k * BLOCK; i < last && to < stop; i++) {
                out[to] = in[i];
                to += b->flags[i] != 0;
            }
        } else {
            for (int64_t i = k * BLOCK; i < last; i++)
                if (b->flags[i]) memcpy(b->out + to++ * b->size, b->in + i * b->size, (size_t)b->size);
        }
    }
}

tm_status tmk_masked_select(tm_tensor **out, tm_tensor *self, tm_tensor *mask)
{
    TMI_TRY(mask_of(mask, "masked_select: expected BoolTensor for mask"));
    int ndim;
    int64_t sizes[TMI_MAX_DIMS];
    TMI_TRY(tmi_broadcast_sizes(self->ndim, self->sizes, mask->ndim, mask->sizes, &ndim, sizes));
    tm_tensor *in = spread_to(self, ndim, sizes, self->dtype), *flags = spread_to(mask, ndim, sizes, TM_BOOL);
    blocks b = {.size = (int64_t)tmi_dtype_size(self->dtype)};
    tm_status status = in && flags ? count_flags(&b, flags) : tm_error_status();
    if (status == TM_OK) {
        *out = tmi_tensor_new(1, &b.start[b.n_blocks], NULL, self->dtype, self->device);
        status = *out ? TM_OK : tm_error_status();
        if (*out && (*out)->numel) {
            b.in = tmi_data(in);
            b.out = tmi_data(*out);
            tmi_parallel_for(b.n_blocks, 4, compress, &b);
        }
        free_blocks(&b);
    }
    if (in) tmi_release(in);
    if (flags) tmi_release(flags);
    return status;
}

tm_status tmk_masked_scatter(tm_tensor *out, tm_tensor *self, tm_tensor *mask, tm_tensor *source)
{
    TMI_TRY(mask_of(mask, "masked_scatter_ only supports boolean masks, but got mask with another dtype"));
    tm_tensor *flags = spread_to(mask, out->ndim, out->sizes, TM_BOOL), *from = tmk_plain(source, source->dtype), *to = tmk_plain_out(out, out->dtype);
    blocks b = {0};
    tm_status status = flags && from && to ? count_flags(&b, flags) : tm_error_status();
    if (status == TM_OK) {
        int64_t need = b.start[b.n_blocks], size = (int64_t)tmi_dtype_size(out->dtype), k = 0;
        if (need > from->numel) status = tmi_fail(TM_INVALID, "Number of elements of source < number of ones in mask");
        if (status == TM_OK) {
            tm_tensor view = *self;   /* self may be smaller: it broadcasts to out */
            status = tmk_copy(to, &view);
        }
        for (int64_t i = 0; status == TM_OK && i < b.n; i++)
            if (b.flags[i]) memcpy((char *)tmi_data(to) + i * size, (const char *)tmi_data(from) + k++ * size, (size_t)size);
        free_blocks(&b);
    }
    if (flags) tmi_release(flags);
    if (from) tmi_release(from);
    return tmk_plain_end(out, to, status);
}
