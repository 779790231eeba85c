/* batch_norm and group_norm over [N, C, spatial]. A thread owns a channel (or a group): its sums run over pieces of `spatial` numbers in
 * order, in double between pieces. Where spatial is tiny the tensor is turned to [C, N * spatial] first, so that pieces are long. */
#include <math.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "op_bodies.h"
#include "pointwise.h"
#include "rows.h"
#include "scratch.h"

/* One set of numbers that is normalised together: `pieces` runs of `len` numbers, `step` apart, from `first`. */
typedef struct view {
    int64_t N, C, S;              /* batch, channels, spatial */
    bool turned;                  /* memory is [C, N, S] instead of [N, C, S] */
} view;

typedef struct job {
    const char *x, *g;            /* compute type, contiguous */
    char *out;
    view v;
    int64_t group_channels;       /* channels per group (group_norm), 0: batch_norm */
    double *mean, *rstd;          /* per channel, or per (n, group) */
    const double *w, *b;          /* per channel or NULL */
    double *dw, *db;              /* per channel or per (n, channel) */
    double eps;
    bool frozen;                  /* batch_norm by running statistics */
    const tmk_row_table *ops;
    int64_t size;
} job;

static int64_t offset_of(const view *v, int64_t n, int64_t c) { return v->turned ? (c * v->N + n) * v->S : (n * v->C + c) * v->S; }

/* Runs of one channel: N of S numbers, or one of N * S. */
static int64_t runs(const view *v) { return v->turned ? 1 : v->N; }
static int64_t run_length(const view *v) { return v->turned ? v->N * v->S : v->S; }

/* ---- batch_norm */

static void channel_stats(const job *j, int64_t c)
{
    int64_t len = run_length(&j->v), count = j->v.N * j->v.S;
    double sum = 0, square = 0;
    for (int64_t n = 0; n < runs(&j->v); n++) sum += j->ops->sum(j->x + offset_of(&j->v, n, c) * j->size, len);
    double mean = sum / (double)count;
    for (int64_t n = 0; n < runs(&j->v); n++) square += j->ops->square_dev(j->x + offset_of(&j->v, n, c) * j->size, len, mean);
    j->mean[c] = mean;
    j->rstd[c] = square / (double)count;   /* the variance for now */
}

static void stats_channels(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t c = begin; c < end; c++) channel_stats(ctx, c);
}

static void apply_channels(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    for (int64_t c = begin; c < end; c++) {
        double a = j->rstd[c] * (j->w ? j->w[c] : 1), b = (j->b ? j->b[c] : 0) - j->mean[c] * a;
        for (int64_t n = 0; n < runs(&j->v); n++) {
            int64_t at = offset_of(&j->v, n, c) * j->size;
            j->ops->affine(j->x + at, run_length(&j->v), a, b, j->out + at);
        }
    }
}

static void backward_channels(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    int64_t len = run_length(&j->v);
    double count = (double)(j->v.N * j->v.S);
    for (int64_t c = begin; c < end; c++) {
        double s[2] = {0, 0}, mean = j->mean[c], rstd = j->rstd[c], w = j->w ? j->w[c] : 1;
        for (int64_t n = 0; n < runs(&j->v); n++) {
            double part[2];
            int64_t at = offset_of(&j->v, n, c) * j->size;
            j->ops->grad_sums(j->g + at, j->x + at, NULL, len, mean, rstd, part);
            s[0] += part[0];
            s[1] += part[1];
        }
        j->db[c] = s[0];
        j->dw[c] = s[1];
        double a = rstd * w, b = j->frozen ? 0 : -a * rstd * s[1] / count, k = j->frozen ? 0 : -a * s[0] / count - b * mean;
        for (int64_t n = 0; j->out && n < runs(&j->v); n++) {
            int64_t at = offset_of(&j->v, n, c) * j->size;
            j->ops->affine2(j->g + at, j->x + at, len, a, b, k, j->out + at);
        }
    }
}

/* ---- group_norm: one (n, group) at a time */

static void group_forward(const job *j, int64_t t)
{
    int64_t D = j->group_channels, S = j->v.S, groups = j->v.C / D, n = t / groups, first = t % groups * D;
    const char *x = j->x + (n * j->v.C + first) * S * j->size;
    char *out = j->out + (n * j->v.C + first) * S * j->size;
    double mean = j->ops->sum(x, D * S) / (double)(D * S);
    double rstd = 1 / sqrt(j->ops->square_dev(x, D * S, mean) / (double)(D * S) + j->eps);
    j->mean[t] = mean;
    j->rstd[t] = rstd;
    for (int64_t d = 0; d < D; d++) {
        double a = rstd * (j->w ? j->w[first + d] : 1), b = (j->b ? j->b[first + d] : 0) - mean * a;
        j->ops->affine(x + d * S * j->size, S, a, b, out + d * S * j->size);
    }
}

static void forward_groups(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t t = begin; t < end; t++) group_forward(ctx, t);
}

static void group_backward(const job *j, int64_t t)
{
    int64_t D = j->group_channels, S = j->v.S, groups = j->v.C / D, n = t / groups, first = t % groups * D, at = n * j->v.C + first;
    const char *x = j->x + at * S * j->size, *g = j->g + at * S * j->size;
    double s0 = 0, s1 = 0, mean = j->mean[t], rstd = j->rstd[t], count = (double)(D * S);
    for (int64_t d = 0; d < D; d++) {
        double part[2], w = j->w ? j->w[first + d] : 1;
        j->ops->grad_sums(g + d * S * j->size, x + d * S * j->size, NULL, S, mean, rstd, part);
        j->db[at + d] = part[0];
        j->dw[at + d] = part[1];
        s0 += w * part[0];
        s1 += w * part[1];
    }
    double b = -rstd * rstd * s1 / count, k = -rstd * s0 / count - b * mean;
    for (int64_t d = 0; j->out && d < D; d++) {
        double a = rstd * (j->w ? j->w[first + d] : 1);
        j->ops->affine2(g + d * S * j->size, x + d * S * j->size, S, a, b, k, j->out + (at + d) * S * j->size);
    }
}

static void backward_groups(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t t = begin; t < end; t++) group_backward(ctx, t);
}

/* ---- operands */

static double *doubles(const tm_tensor *t, int64_t n)
{
    double *d = tmi_data_alloc((size_t)n * sizeof *d);
    tm_tensor *plain = d && t ? tmk_plain(t, t->dtype) : NULL;
    if (plain && t->numel) tmk_cast(d, TM_F64, tmi_data(plain), t->dtype, n);
    if (plain) tmi_release(plain);
    return d;
}
static void free_doubles(double *d, int64_t n)
{
    if (d) tmi_data_free(d, (size_t)n * sizeof *d);
}

static tm_status put_doubles(tm_tensor *t, const double *values)
{
    tmk_stack_tensor s;
    return tmk_copy(t, tmk_stack_wrap(&s, (void *)values, TM_F64, t->ndim, t->sizes));
}

/* t as [C, N, S] (or the other way back), contiguous; a reference of one's own. */
static tm_tensor *turned(tm_tensor *t, int64_t a, int64_t b, int64_t s)
{
    tm_tensor *out = tmi_tensor_new(3, (int64_t[]){b, a, s}, NULL, t->dtype, t->device);
    if (!out) return NULL;
    tm_tensor seen = *t;
    int64_t sizes[3] = {b, a, s}, strides[3] = {s, b * s, 1};
    seen.ndim = 3;
    seen.sizes = sizes;
    seen.strides = strides;
    seen.flags = 0;
    if (tmk_copy(out, &seen) != TM_OK) {
        tmi_release(out);
        return NULL;
    }
    return out;
}

/* Contiguous in the compute type, turned if the view says so. */
static tm_tensor *operand(const tm_tensor *t, const view *v, tm_dtype compute)
{
    tm_tensor *plain = tmk_plain(t, compute), *out;
    if (!plain || !v->turned) return plain;
    out = turned(plain, v->N, v->C, v->S);
    tmi_release(plain);
    return out;
}

static tm_status put_result(tm_tensor *out, tm_tensor *made, const view *v)
{
    if (!v->turned) return tmk_plain_end(out, made, TM_OK);
    tm_tensor *back = turned(made, v->C, v->N, v->S);
    tmi_release(made);
    if (!back) return tm_error_status();
    tm_tensor shaped = *back;
    int64_t strides[TMI_MAX_DIMS];
    tmi_contiguous_strides(out->ndim, out->sizes, strides);
    shaped.ndim = out->ndim;
    shaped.sizes = out->sizes;
    shaped.strides = strides;
    tm_status status = tmk_copy(out, &shaped);
    tmi_release(back);
    return status;
}

static tm_tensor *result(tm_tensor *out, const view *v, tm_dtype compute)
{
    if (!v->turned) return tmk_plain_out(out, compute);
    return tmi_tensor_new(3, (int64_t[]){v->C, v->N, v->S}, NULL, compute, out->device);
}

static view view_of(const tm_tensor *x)
{
    view v = {.N = x->ndim ? x->sizes[0] : 1, .C = x->ndim > 1 ? x->sizes[1] : 1, .S = 1};
    for (int d = 2; d < x->ndim; d++) v.S *= x->sizes[d];
    v.turned = v.S < 16 && v.N > 1;
    return v;
}

static int64_t channel_grain(const view *v) { return 1 + 16384 / (v->N * v->S + 1); }

static tm_dtype compute_of(const tm_tensor *t) { return t->dtype == TM_F64 ? TM_F64 : TM_F32; }

/* ---- kernels */

static tm_status update_running(tm_tensor *running, const double *values, int64_t n, double momentum, double scale)
{
    if (!running) return TM_OK;
    double *now = doubles(running, n);
    if (!now) return TM_NOMEM;
    for (int64_t c = 0; c < n; c++) now[c] = momentum * (values[c] * scale) + (1 - momentum) * now[c];
    tm_status status = put_doubles(running, now);
    free_doubles(now, n);
    return status;
}

/* Mean and reciprocal deviation per channel, by the batch (updating the running ones) or by the running ones. */
static tm_status batch_statistics(job *j, tm_tensor *mean, tm_tensor *invstd, tm_tensor *running_mean, tm_tensor *running_var, bool training, double momentum)
{
    int64_t C = j->v.C;
    double count = (double)(j->v.N * j->v.S);
    if (training) {
        tmi_parallel_for(C, channel_grain(&j->v), stats_channels, j);
        TMI_TRY(update_running(running_mean, j->mean, C, momentum, 1));
        TMI_TRY(update_running(running_var, j->rstd, C, momentum, count / (count - 1)));
    }
    for (int64_t c = 0; c < C; c++) j->rstd[c] = 1 / sqrt(j->rstd[c] + j->eps);
    if (training) {
        TMI_TRY(put_doubles(mean, j->mean));
        TMI_TRY(put_doubles(invstd, j->rstd));
    }
    return TM_OK;
}

tm_status tmk_batch_norm(tm_tensor *out, tm_tensor *mean, tm_tensor *invstd, tm_tensor *input, tm_tensor *weight, tm_tensor *bias, tm_tensor *running_mean,
                         tm_tensor *running_var, bool training, double momentum, double eps)
{
    if (input->numel == 0) return TM_OK;
    job j = {.v = view_of(input), .eps = eps};
    tm_dtype compute = compute_of(input);
    int64_t C = j.v.C;
    tm_tensor *x = operand(input, &j.v, compute), *y = result(out, &j.v, compute);
    j.mean = doubles(training ? NULL : running_mean, C);
    j.rstd = doubles(training ? NULL : running_var, C);
    double *w = weight ? doubles(weight, C) : NULL, *b = bias ? doubles(bias, C) : NULL;
    tm_status status = tm_error_status();
    if (status == TM_OK) {
        j.x = tmi_data(x);
        j.out = tmi_data(y);
        j.w = w;
        j.b = b;
        j.size = (int64_t)tmi_dtype_size(compute);
        j.ops = tmk_row_ops(compute == TM_F64);
        status = batch_statistics(&j, mean, invstd, running_mean, running_var, training, momentum);
    }
    if (status == TM_OK) {
        tmi_parallel_for(C, channel_grain(&j.v), apply_channels, &j);
        status = put_result(out, y, &j.v);
    }
    if (x) tmi_release(x);
    double *done[] = {j.mean, j.rstd, w, b};
    for (int i = 0; i < 4; i++) free_doubles(done[i], C);
    return status;
}

tm_status tmk_batch_norm_backward(tm_tensor *dx, tm_tensor *dw, tm_tensor *db, tm_tensor *grad, tm_tensor *input, tm_tensor *weight, tm_tensor *running_mean,
                                  tm_tensor *running_var, tm_tensor *save_mean, tm_tensor *save_invstd, bool train, double eps, const bool *mask, int64_t n_mask)
{
    job j = {.v = view_of(input), .eps = eps, .frozen = !train};
    int64_t C = j.v.C;
    if (input->numel == 0) {
        if (mask[1]) TMI_TRY(tmk_fill(dw, tm_i64(0)));
        return mask[2] ? tmk_fill(db, tm_i64(0)) : TM_OK;
    }
    tm_dtype compute = compute_of(input);
    tm_tensor *x = operand(input, &j.v, compute), *g = operand(grad, &j.v, compute), *to = mask[0] ? result(dx, &j.v, compute) : NULL;
    j.mean = doubles(train ? save_mean : running_mean, C);
    j.rstd = doubles(train ? save_invstd : running_var, C);
    double *w = weight ? doubles(weight, C) : NULL;
    j.dw = doubles(NULL, C);
    j.db = doubles(NULL, C);
    tm_status status = tm_error_status();
    if (status == TM_OK) {
        for (int64_t c = 0; !train && c < C; c++) j.rstd[c] = 1 / sqrt(j.rstd[c] + eps);
        j.x = tmi_data(x);
        j.g = tmi_data(g);
        j.out = to ? tmi_data(to) : NULL;
        j.w = w;
        j.size = (int64_t)tmi_dtype_size(compute);
        j.ops = tmk_row_ops(compute == TM_F64);
        tmi_parallel_for(C, channel_grain(&j.v), backward_channels, &j);
        if (mask[1]) status = put_doubles(dw, j.dw);
        if (mask[2] && status == TM_OK) status = put_doubles(db, j.db);
        if (to && status == TM_OK) status = put_result(dx, to, &j.v);
    }
    if (x) tmi_release(x);
    if (g) tmi_release(g);
    double *done[] = {j.mean, j.rstd, w, j.dw, j.db};
    for (int i = 0; i < 5; i++) free_doubles(done[i], C);
    return status;
}

tm_status tmk_group_norm(tm_tensor *out, tm_tensor *mean, tm_tensor *rstd, tm_tensor *input, tm_tensor *weight, tm_tensor *bias, tm_int N, tm_int C, tm_int HxW,
                         tm_int group, double eps)
{
    if (input->numel == 0) {
        TMI_TRY(tmk_fill(mean, tm_i64(0)));
        return tmk_fill(rstd, tm_f64(NAN));
    }
    job j = {.v = {N, C, HxW, false}, .eps = eps, .group_channels = C / group};
    tm_dtype compute = compute_of(input);
    tm_tensor *x = operand(input, &j.v, compute), *y = result(out, &j.v, compute);
    j.mean = doubles(NULL, N * group);
    j.rstd = doubles(NULL, N * group);
    double *w = weight ? doubles(weight, C) : NULL, *b = bias ? doubles(bias, C) : NULL;
    tm_status status = tm_error_status();
    if (status == TM_OK) {
        j.x = tmi_data(x);
        j.out = tmi_data(y);
        j.w = w;
        j.b = b;
        j.size = (int64_t)tmi_dtype_size(compute);
        j.ops = tmk_row_ops(compute == TM_F64);
        tmi_parallel_for(N * group, 1 + 16384 / (j.group_channels * HxW), forward_groups, &j);
        status = put_doubles(mean, j.mean);
        if (status == TM_OK) status = put_doubles(rstd, j.rstd);
        if (status == TM_OK) status = put_result(out, y, &j.v);
    }
    if (x) tmi_release(x);
    free_doubles(j.mean, N * group);
    free_doubles(j.rstd, N * group);
    free_doubles(w, C);
    free_doubles(b, C);
    return status;
}

/* [N, C] sums become [C] ones, in order of n. */
static tm_status put_channels(tm_tensor *out, double *sums, int64_t N, int64_t C)
{
    for (int64_t n = 1; n < N; n++)
        for (int64_t c = 0; c < C; c++) sums[c] += sums[n * C + c];
    return put_doubles(out, sums);
}

tm_status tmk_group_norm_backward(tm_tensor *dx, tm_tensor *dw, tm_tensor *db, tm_tensor *grad, tm_tensor *input, tm_tensor *mean, tm_tensor *rstd,
                                  tm_tensor *weight, tm_int N, tm_int C, tm_int HxW, tm_int group, const bool *mask, int64_t n_mask)
{
    if (input->numel == 0) {
        if (mask[1]) TMI_TRY(tmk_fill(dw, tm_i64(0)));
        return mask[2] ? tmk_fill(db, tm_i64(0)) : TM_OK;
    }
    job j = {.v = {N, C, HxW, false}, .group_channels = C / group};
    tm_dtype compute = compute_of(input);
    tm_tensor *x = operand(input, &j.v, compute), *g = operand(grad, &j.v, compute), *to = mask[0] ? result(dx, &j.v, compute) : NULL;
    j.mean = doubles(mean, N * group);
    j.rstd = doubles(rstd, N * group);
    double *w = weight ? doubles(weight, C) : NULL;
    j.dw = doubles(NULL, N * C);
    j.db = doubles(NULL, N * C);
    tm_status status = tm_error_status();
    if (status == TM_OK) {
        j.x = tmi_data(x);
        j.g = tmi_data(g);
        j.out = to ? tmi_data(to) : NULL;
        j.w = w;
        j.size = (int64_t)tmi_dtype_size(compute);
        j.ops = tmk_row_ops(compute == TM_F64);
        tmi_parallel_for(N * group, 1 + 16384 / (j.group_channels * HxW), backward_groups, &j);
        if (mask[1] && weight) status = put_channels(dw, j.dw, N, C);
        if (mask[2] && status == TM_OK) status = put_channels(db, j.db, N, C);
        if (to && status == TM_OK) status = put_result(dx, to, &j.v);
    }
    if (x) tmi_release(x);
    if (g) tmi_release(g);
    free_doubles(j.mean, N * group);
    free_doubles(j.rstd, N * group);
    free_doubles(w, C);
    free_doubles(j.dw, N * C);
    free_doubles(j.db, N * C);
    return status;
}
