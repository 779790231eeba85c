/* softmax and log_softmax, forward and backward, along any dim.
 *
 * Along the last dim a thread owns a row: maximum, exponentials and their sum, one scaling, all from cache. Along another dim a thread
 * owns a block of columns and goes through its rows. */
#include <math.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "lines.h"
#include "op_bodies.h"
#include "rows.h"
#include "scratch.h"

enum { COLUMNS = 256 };

typedef struct job {
    const char *a, *b;            /* input; or gradient and output */
    char *out;
    tm_dtype in_dtype, out_dtype;
    int64_t in_size, out_size, compute_size;
    bool log;
    tmk_lines l;
    int64_t n_blocks;
    const tmk_row_table *ops;
    tmk_row_scratch scratch;
} job;

static void forward_rows(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    int64_t n = j->l.length;
    void *buf = tmk_row_scratch_get(&j->scratch, 0), *work = tmk_row_scratch_get(&j->scratch, 1);
    for (int64_t o = begin; o < end; o++) {
        const void *x = tmk_row_load(j->a + o * n * j->in_size, j->in_dtype, n, buf);
        char *at = j->out + o * n * j->out_size;
        void *y = tmk_row_target(at, j->out_dtype, work);
        double m = j->ops->max(x, n);
        if (j->log) {
            j->ops->shift(x, n, m, log(j->ops->exp_sum(x, n, m, NULL)), y);
        } else {
            double sum = j->ops->exp_sum(x, n, m, y);
            j->ops->scale(y, n, 1 / sum, y);
        }
        tmk_row_put(at, j->out_dtype, n, y);
    }
}

static void backward_rows(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    int64_t n = j->l.length;
    void *gbuf = tmk_row_scratch_get(&j->scratch, 0), *ybuf = tmk_row_scratch_get(&j->scratch, 1);
    for (int64_t o = begin; o < end; o++) {
        const void *g = tmk_row_load(j->a + o * n * j->in_size, j->in_dtype, n, gbuf);
        const void *y = tmk_row_load(j->b + o * n * j->in_size, j->in_dtype, n, ybuf);
        char *at = j->out + o * n * j->out_size;
        void *dx = tmk_row_target(at, j->out_dtype, gbuf);
        if (j->log) j->ops->log_softmax_grad(g, y, n, j->ops->sum(g, n), dx);
        else j->ops->softmax_grad(g, y, n, j->ops->dot(g, y, n), dx);
        tmk_row_put(at, j->out_dtype, n, dx);
    }
}

/* Doubles in place to the compute type. */
static void narrow(const job *j, const double *from, int64_t n, void *to)
{
    if (j->compute_size == 8) memcpy(to, from, (size_t)n * 8);
    else
        for (int64_t i = 0; i < n; i++) ((float *)to)[i] = (float)from[i];
}

typedef struct columns {
    int64_t base, width;      /* first element, in elements of the whole tensor */
} columns;

static columns block_of(const job *j, int64_t t)
{
    int64_t first = t % j->n_blocks * COLUMNS, rest = j->l.inner - first;
    return (columns){t / j->n_blocks * j->l.length * j->l.inner + first, rest < COLUMNS ? rest : COLUMNS};
}

static const void *row_at(const job *j, const char *data, columns c, int64_t r, void *buf)
{
    return tmk_row_load(data + (c.base + r * j->l.inner) * j->in_size, j->in_dtype, c.width, buf);
}

static void column_forward(const job *j, columns c)
{
    _Alignas(64) char x[COLUMNS * 8], e[COLUMNS * 8], m[COLUMNS * 8], by[COLUMNS * 8];
    double sum[COLUMNS] = {0};
    memcpy(m, row_at(j, j->a, c, 0, x), (size_t)(c.width * j->compute_size));
    for (int64_t r = 1; r < j->l.length; r++) j->ops->column_max(row_at(j, j->a, c, r, x), c.width, m);
    for (int64_t r = 0; r < j->l.length; r++) {
        char *at = j->out + (c.base + r * j->l.inner) * j->out_size;
        void *y = j->log || j->out_size != j->compute_size ? NULL : at;
        j->ops->column_exp(row_at(j, j->a, c, r, x), c.width, m, y, sum);
    }
    for (int64_t b = 0; b < c.width; b++) sum[b] = j->log ? log(sum[b]) : 1 / sum[b];
    narrow(j, sum, c.width, by);
    for (int64_t r = 0; r < j->l.length; r++) {
        char *at = j->out + (c.base + r * j->l.inner) * j->out_size;
        void *y = tmk_row_target(at, j->out_dtype, e);
        if (j->log) {
            j->ops->column_shift(row_at(j, j->a, c, r, x), c.width, m, by, y);
        } else if (j->out_size == j->compute_size) {
            j->ops->column_scale(y, c.width, by, y);
        } else {   /* half results: the exponentials are computed again, to round once */
            double unused[COLUMNS] = {0};
            j->ops->column_exp(row_at(j, j->a, c, r, x), c.width, m, y, unused);
            j->ops->column_scale(y, c.width, by, y);
        }
        tmk_row_put(at, j->out_dtype, c.width, y);
    }
}

static void forward_columns(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t t = begin; t < end; t++) column_forward(ctx, block_of(ctx, t));
}

static void column_backward(const job *j, columns c)
{
    _Alignas(64) char gbuf[COLUMNS * 8], ybuf[COLUMNS * 8], by[COLUMNS * 8];
    double sum[COLUMNS] = {0};
    for (int64_t r = 0; r < j->l.length; r++)
        j->ops->column_dot(row_at(j, j->a, c, r, gbuf), j->log ? NULL : row_at(j, j->b, c, r, ybuf), c.width, sum);
    narrow(j, sum, c.width, by);
    for (int64_t r = 0; r < j->l.length; r++) {
        const void *g = row_at(j, j->a, c, r, gbuf), *y = row_at(j, j->b, c, r, ybuf);
        char *at = j->out + (c.base + r * j->l.inner) * j->out_size;
        void *dx = tmk_row_target(at, j->out_dtype, gbuf);
        if (j->log) j->ops->column_log_softmax_grad(g, y, c.width, by, dx);
        else j->ops->column_softmax_grad(g, y, c.width, by, dx);
        tmk_row_put(at, j->out_dtype, c.width, dx);
    }
}

static void backward_columns(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t t = begin; t < end; t++) column_backward(ctx, block_of(ctx, t));
}

static tm_status run(job *j, tm_tensor *out, int64_t dim, tmi_range_fn *rows, tmi_range_fn *cols)
{
    if (out->numel == 0) return TM_OK;
    j->l = tmk_lines_of(out, dim);
    j->in_size = (int64_t)tmi_dtype_size(j->in_dtype);
    j->out_size = (int64_t)tmi_dtype_size(j->out_dtype);
    j->compute_size = j->in_dtype == TM_F64 || j->out_dtype == TM_F64 ? 8 : 4;
    j->ops = tmk_row_ops(j->compute_size == 8);
    j->n_blocks = (j->l.inner + COLUMNS - 1) / COLUMNS;
    bool along_rows = j->l.inner == 1, half = j->in_size < 4 || j->out_size < 4;
    if (along_rows) TMI_TRY(tmk_row_scratch_new(&j->scratch, half ? j->l.length : 1, 2, j->compute_size == 8));
    if (along_rows) tmi_parallel_for(j->l.outer, 1 + 8192 / j->l.length, rows, j);
    else tmi_parallel_for(j->l.outer * j->n_blocks, 1 + 8192 / (j->l.length * (j->l.inner < COLUMNS ? j->l.inner : COLUMNS)), cols, j);
    tmk_row_scratch_free(&j->scratch);
    return TM_OK;
}

static tm_status forward(tm_tensor *out, const tm_tensor *self, int64_t dim, bool log)
{
    tm_tensor *in = tmk_plain(self, self->dtype), *to = tmk_plain_out(out, out->dtype);
    tm_status status = in && to ? TM_OK : tm_error_status();
    if (status == TM_OK) {
        job j = {.a = tmi_data(in), .out = tmi_data(to), .in_dtype = self->dtype, .out_dtype = out->dtype, .log = log};
        status = run(&j, to, dim, forward_rows, forward_columns);
    }
    if (in) tmi_release(in);
    return tmk_plain_end(out, to, status);
}

static tm_status backward(tm_tensor *out, const tm_tensor *grad, const tm_tensor *result, int64_t dim, bool log)
{
    tm_tensor *g = tmk_plain(grad, grad->dtype), *y = tmk_plain(result, grad->dtype), *to = tmk_plain_out(out, out->dtype);
    tm_status status = g && y && to ? TM_OK : tm_error_status();
    if (status == TM_OK) {
        job j = {.a = tmi_data(g), .b = tmi_data(y), .out = tmi_data(to), .in_dtype = grad->dtype, .out_dtype = out->dtype, .log = log};
        status = run(&j, to, dim, backward_rows, backward_columns);
    }
    if (g) tmi_release(g);
    if (y) tmi_release(y);
    return tmk_plain_end(out, to, status);
}

tm_status tmk_softmax(tm_tensor *out, tm_tensor *self, tm_int dim, bool half_to_float) { return forward(out, self, dim, false); }
tm_status tmk_log_softmax(tm_tensor *out, tm_tensor *self, tm_int dim, bool half_to_float) { return forward(out, self, dim, true); }
tm_status tmk_softmax_backward(tm_tensor *out, tm_tensor *grad, tm_tensor *result, tm_int dim, tm_dtype input_dtype)
{
    return backward(out, grad, result, dim, false);
}
tm_status tmk_log_softmax_backward(tm_tensor *out, tm_tensor *grad, tm_tensor *result, tm_int dim, tm_dtype input_dtype)
{
    return backward(out, grad, result, dim, true);
}
