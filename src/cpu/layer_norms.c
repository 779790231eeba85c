/* layer_norm and rms_norm: a thread owns rows. Gradients of weight and bias are summed over fixed blocks of rows, the blocks as a tree. */
#include <math.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "op_bodies.h"
#include "pointwise.h"
#include "rows.h"
#include "scratch.h"

typedef struct job {
    const char *x, *g;
    char *out;
    const void *w, *b;            /* compute type */
    double *mean, *rstd;          /* per row; mean NULL for rms */
    int64_t rows, n, size;
    double eps;
    tm_dtype dtype;
    const tmk_row_table *ops;
    tmk_row_scratch scratch;
    /* backward */
    char *dw, *db;                /* partial sums [block][n] in the compute type */
    int64_t block, compute_size;
} job;

static void forward_rows(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    void *xbuf = tmk_row_scratch_get(&j->scratch, 0), *ybuf = tmk_row_scratch_get(&j->scratch, 1);
    for (int64_t r = begin; r < end; r++) {
        const void *x = tmk_row_load(j->x + r * j->n * j->size, j->dtype, j->n, xbuf);
        char *at = j->out + r * j->n * j->size;
        void *y = tmk_row_target(at, j->dtype, ybuf);
        double mean = j->mean ? j->ops->sum(x, j->n) / (double)j->n : 0;
        if (j->compute_size == 4) mean = (float)mean;
        double rstd = 1 / sqrt(j->ops->square_dev(x, j->n, mean) / (double)j->n + j->eps);
        j->ops->normalize(x, j->n, mean, rstd, j->w, j->b, y);
        if (j->mean) j->mean[r] = mean;
        j->rstd[r] = rstd;
        tmk_row_put(at, j->dtype, j->n, y);
    }
}

/* Rows of one block: the input's gradient (if out) and the block's part of the weights' gradients. */
static void backward_block(const job *j, int64_t k)
{
    void *gbuf = tmk_row_scratch_get(&j->scratch, 0), *xbuf = tmk_row_scratch_get(&j->scratch, 1), *dbuf = tmk_row_scratch_get(&j->scratch, 2);
    int64_t last = (k + 1) * j->block < j->rows ? (k + 1) * j->block : j->rows, bytes = j->n * j->compute_size;
    void *dw = j->dw ? j->dw + k * bytes : NULL, *db = j->db ? j->db + k * bytes : NULL;
    for (int64_t r = k * j->block; r < last; r++) {
        const void *g = tmk_row_load(j->g + r * j->n * j->size, j->dtype, j->n, gbuf);
        const void *x = tmk_row_load(j->x + r * j->n * j->size, j->dtype, j->n, xbuf);
        double mean = j->mean ? j->mean[r] : 0, rstd = j->rstd[r], s[2];
        if (dw || db) j->ops->weight_grads(g, x, j->n, mean, rstd, dw, db);
        if (!j->out) continue;
        char *at = j->out + r * j->n * j->size;
        void *dx = tmk_row_target(at, j->dtype, dbuf);
        j->ops->grad_sums(g, x, j->w, j->n, mean, rstd, s);
        j->ops->norm_grad(g, x, j->w, j->n, mean, rstd, j->mean ? s[0] / (double)j->n : 0, s[1] / (double)j->n, dx);
        tmk_row_put(at, j->dtype, j->n, dx);
    }
}

static void backward_blocks(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t k = begin; k < end; k++) backward_block(ctx, k);
}

/* Per-row numbers of any float dtype as doubles, and back. */
static void to_doubles(const tm_tensor *t, double *out)
{
    tmk_cast(out, TM_F64, tmi_data(t), t->dtype, t->numel);
}

static tm_status from_doubles(tm_tensor *t, const double *values)
{
    tmk_stack_tensor s;
    int64_t n = t->numel;
    if (tmi_contiguous(t)) {
        tmk_cast(tmi_data(t), t->dtype, values, TM_F64, n);
        return TM_OK;
    }
    return tmk_copy(t, tmk_stack_wrap(&s, (void *)values, TM_F64, 1, &n));
}

static void set_rows(job *j, const tm_tensor *input, int64_t n)
{
    j->n = n;
    j->rows = n ? input->numel / n : 0;
    j->dtype = input->dtype;
    j->size = (int64_t)tmi_dtype_size(input->dtype);
    j->compute_size = input->dtype == TM_F64 ? 8 : 4;
    j->ops = tmk_row_ops(j->compute_size == 8);
}

static int64_t product(const tm_int *sizes, int64_t n)
{
    int64_t p = 1;
    for (int64_t i = 0; i < n; i++) p *= sizes[i];
    return p;
}

static tm_dtype compute_of(const tm_tensor *t) { return t->dtype == TM_F64 ? TM_F64 : TM_F32; }

/* mean NULL: rms_norm. */
static tm_status normalize(tm_tensor *out, tm_tensor *mean, tm_tensor *rstd, tm_tensor *input, int64_t n, tm_tensor *weight, tm_tensor *bias, double eps)
{
    if (input->numel == 0) return TM_OK;
    job j = {.eps = eps};
    set_rows(&j, input, n);
    size_t bytes = (size_t)j.rows * 2 * sizeof(double);
    tm_tensor *x = tmk_plain(input, input->dtype), *y = tmk_plain_out(out, input->dtype);
    tm_tensor *w = weight ? tmk_plain(weight, compute_of(input)) : NULL, *b = bias ? tmk_plain(bias, compute_of(input)) : NULL;
    double *stats = tmi_data_alloc(bytes);
    tm_status status = tm_error_status();
    if (status == TM_OK) status = tmk_row_scratch_new(&j.scratch, j.size < 4 ? n : 1, 2, j.compute_size == 8);
    if (status == TM_OK) {
        j.x = tmi_data(x);
        j.out = tmi_data(y);
        j.w = w ? tmi_data(w) : NULL;
        j.b = b ? tmi_data(b) : NULL;
        j.mean = mean ? stats : NULL;
        j.rstd = stats + j.rows;
        tmi_parallel_for(j.rows, 1 + 16384 / n, forward_rows, &j);
        if (mean) status = from_doubles(mean, j.mean);
        if (status == TM_OK) status = from_doubles(rstd, j.rstd);
    }
    tmk_row_scratch_free(&j.scratch);
    if (stats) tmi_data_free(stats, bytes);
    if (x) tmi_release(x);
    if (w) tmi_release(w);
    if (b) tmi_release(b);
    return tmk_plain_end(out, y, status);
}

tm_status tmk_layer_norm(tm_tensor *out, tm_tensor *mean, tm_tensor *rstd, tm_tensor *input, const tm_int *shape, int64_t n_shape, tm_tensor *weight,
                         tm_tensor *bias, double eps)
{
    return normalize(out, mean, rstd, input, product(shape, n_shape), weight, bias, eps);
}

tm_status tmk_rms_norm(tm_tensor *out, tm_tensor *rstd, tm_tensor *input, const tm_int *shape, int64_t n_shape, tm_tensor *weight, const double *eps)
{
    double least = input->dtype == TM_F64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
    return normalize(out, NULL, rstd, input, product(shape, n_shape), weight, NULL, eps ? *eps : least);
}

/* ---- backward */

/* Blocks as a binary tree, then into the result. */
static tm_status sum_blocks(tm_tensor *out, char *partial, int64_t blocks, int64_t n, tm_dtype compute)
{
    int64_t size = (int64_t)tmi_dtype_size(compute);
    for (int64_t s = 1; s < blocks; s *= 2)
        for (int64_t i = 0; i + s < blocks; i += 2 * s)
            for (int64_t k = 0; k < n; k++) {
                if (size == 8) ((double *)partial)[i * n + k] += ((double *)partial)[(i + s) * n + k];
                else ((float *)partial)[i * n + k] += ((float *)partial)[(i + s) * n + k];
            }
    tmk_stack_tensor t;
    return tmk_copy(out, tmk_stack_wrap(&t, partial, compute, out->ndim, out->sizes));
}

typedef struct grads { tm_tensor *dx, *dw, *db; } grads;

static tm_status run_backward(job *j, grads out, const tm_tensor *mean, const tm_tensor *rstd)
{
    j->block = (j->rows + 255) / 256;
    if (j->block < 16) j->block = 16;
    int64_t blocks = (j->rows + j->block - 1) / j->block;
    size_t stat_bytes = (size_t)j->rows * 2 * sizeof(double), part = (size_t)(blocks * j->n * j->compute_size), bytes = part * 2;
    double *stats = tmi_data_alloc(stat_bytes);
    char *partial = tmi_data_alloc(bytes);
    tm_dtype compute = j->compute_size == 8 ? TM_F64 : TM_F32;
    tm_status status = stats && partial ? TM_OK : TM_NOMEM;
    if (status == TM_OK) {
        memset(partial, 0, bytes);
        j->mean = mean ? stats : NULL;
        j->rstd = stats + j->rows;
        if (mean) to_doubles(mean, j->mean);
        to_doubles(rstd, j->rstd);
        j->dw = out.dw ? partial : NULL;
        j->db = out.db ? partial + part : NULL;
        tmi_parallel_for(blocks, 1, backward_blocks, j);
        if (out.dw) status = sum_blocks(out.dw, j->dw, blocks, j->n, compute);
        if (out.db && status == TM_OK) status = sum_blocks(out.db, j->db, blocks, j->n, compute);
    }
    if (stats) tmi_data_free(stats, stat_bytes);
    if (partial) tmi_data_free(partial, bytes);
    return status;
}

static tm_status backward(grads out, tm_tensor *grad, tm_tensor *input, int64_t n, tm_tensor *mean, tm_tensor *rstd, tm_tensor *weight)
{
    if (input->numel == 0) {
        if (out.dw) TMI_TRY(tmk_fill(out.dw, tm_i64(0)));
        return out.db ? tmk_fill(out.db, tm_i64(0)) : TM_OK;
    }
    job j = {0};
    set_rows(&j, input, n);
    tm_tensor *x = tmk_plain(input, input->dtype), *g = tmk_plain(grad, input->dtype), *dx = out.dx ? tmk_plain_out(out.dx, input->dtype) : NULL;
    tm_tensor *w = weight ? tmk_plain(weight, compute_of(input)) : NULL;
    tm_tensor *m = mean ? tmk_plain(mean, mean->dtype) : NULL, *s = tmk_plain(rstd, rstd->dtype);
    tm_status status = tm_error_status();
    if (status == TM_OK) status = tmk_row_scratch_new(&j.scratch, j.size < 4 ? n : 1, 3, j.compute_size == 8);
    if (status == TM_OK) {
        j.x = tmi_data(x);
        j.g = tmi_data(g);
        j.out = dx ? tmi_data(dx) : NULL;
        j.w = w ? tmi_data(w) : NULL;
        status = run_backward(&j, out, m, s);
    }
    tmk_row_scratch_free(&j.scratch);
    tm_tensor *done[] = {x, g, w, m, s};
    for (int i = 0; i < 5; i++)
        if (done[i]) tmi_release(done[i]);
    return dx ? tmk_plain_end(out.dx, dx, status) : status;
}

tm_status tmk_layer_norm_backward(tm_tensor *dx, tm_tensor *dw, tm_tensor *db, tm_tensor *grad, tm_tensor *input, const tm_int *shape, int64_t n_shape,
                                  tm_tensor *mean, tm_tensor *rstd, tm_tensor *weight, tm_tensor *bias, const bool *mask, int64_t n_mask)
{
    grads out = {mask[0] ? dx : NULL, mask[1] && weight ? dw : NULL, mask[2] ? db : NULL};
    return backward(out, grad, input, product(shape, n_shape), mean, rstd, weight);
}

tm_status tmk_rms_norm_backward(tm_tensor *dx, tm_tensor *dw, tm_tensor *grad, tm_tensor *input, const tm_int *shape, int64_t n_shape, tm_tensor *rstd,
                                tm_tensor *weight, const bool *mask, int64_t n_mask)
{
    grads out = {mask[0] ? dx : NULL, mask[1] && weight ? dw : NULL, NULL};
    return backward(out, grad, input, product(shape, n_shape), NULL, rstd, weight);
}
