/* Normalisation: shape rules, bodies, and gradients that can be differentiated again. */
#include <math.h>
#include <stdio.h>

#include "boxing.h"
#include "compose.h"
#include "ops/shapes.h"
#include "taimatsu/autograd.h"

/* ---------------------------------------------------------------- shape rules */

static tm_status last_dims(const char *op, const tm_tensor *input, const tm_int *shape, int64_t n, const tm_tensor *weight, const tm_tensor *bias)
{
    char want[128], have[128];
    TMI_REQUIRE(n >= 1, TM_INVALID, "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []");
    bool fits = input->ndim >= n;
    for (int64_t d = 0; fits && d < n; d++) fits = input->sizes[input->ndim - n + d] == shape[d];
    for (int i = 0; i < 2; i++) {
        const tm_tensor *t = i ? bias : weight;
        if (!t) continue;
        bool same = t->ndim == n;
        for (int64_t d = 0; same && d < n; d++) same = t->sizes[d] == shape[d];
        if (same) continue;
        tmi_format_sizes(have, sizeof have, t->ndim, t->sizes);
        tmi_format_sizes(want, sizeof want, (int)n, shape);
        return tmi_fail(TM_INVALID, "Expected %s to be of same shape as normalized_shape, but got %s of shape %s and normalized_shape = %s",
                        i ? "bias" : "weight", i ? "bias" : "weight", have, want);
    }
    if (!fits) {
        char list[128] = "";
        size_t used = 0;
        for (int64_t d = 0; d < n && used < sizeof list - 24; d++) used += (size_t)snprintf(list + used, sizeof list - used, "%s%lld", d ? ", " : "", (long long)shape[d]);
        tmi_format_sizes(have, sizeof have, input->ndim, input->sizes);
        return tmi_fail(TM_INVALID, "Given normalized_shape=[%s], expected input with shape [*, %s], but got input of size%s", list, list, have);
    }
    TMI_REQUIRE(tmi_is_float(input->dtype), TM_NOT_IMPLEMENTED, "\"%sKernelImpl\" not implemented for '%s'", op, tmi_dtypes[input->dtype].type_name);
    return TM_OK;
}

/* Statistics: input's sizes with 1 for the normalised dims; float32 where half inputs meet float32 weights. */
static void stats_meta(tmi_meta *m, const tm_tensor *input, int64_t n, const tm_tensor *weight)
{
    tmi_meta_set(m, input->ndim, input->sizes);
    for (int64_t d = input->ndim - n; d < input->ndim; d++) m->sizes[d] = 1;
    m->dtype = weight && weight->dtype == TM_F32 ? TM_F32 : input->dtype;
}

tm_status tmi_shape_native_layer_norm(tmi_meta *m, tm_tensor *input, const tm_int *shape, int64_t n, tm_tensor *weight, tm_tensor *bias, double eps)
{
    TMI_TRY(last_dims("LayerNorm", input, shape, n, weight, bias));
    tmi_meta_set(&m[0], input->ndim, input->sizes);
    for (int i = 1; i < 3; i++) stats_meta(&m[i], input, n, weight);
    return TM_OK;
}

tm_status tmi_shape_native_layer_norm_backward(tmi_meta *m, tm_tensor *grad, tm_tensor *input, const tm_int *shape, int64_t n, tm_tensor *mean, tm_tensor *rstd,
                                               tm_tensor *weight, tm_tensor *bias, const bool *mask, int64_t n_mask)
{
    tmi_meta_set(&m[0], input->ndim, input->sizes);
    m[0].dtype = input->dtype;
    for (int i = 1; i < 3; i++) {
        tmi_meta_set(&m[i], (int)n, shape);
        m[i].dtype = i == 1 && weight ? weight->dtype : i == 2 && bias ? bias->dtype : input->dtype;
    }
    return TM_OK;
}

tm_status tmi_shape__fused_rms_norm(tmi_meta *m, tm_tensor *input, const tm_int *shape, int64_t n, tm_tensor *weight, const double *eps)
{
    TMI_TRY(last_dims("RMSNorm", input, shape, n, weight, NULL));
    tmi_meta_set(&m[0], input->ndim, input->sizes);
    stats_meta(&m[1], input, n, weight);
    return TM_OK;
}

tm_status tmi_shape__fused_rms_norm_backward(tmi_meta *m, tm_tensor *grad, tm_tensor *input, const tm_int *shape, int64_t n, tm_tensor *rstd, tm_tensor *weight,
                                             const bool *mask, int64_t n_mask)
{
    tmi_meta_set(&m[0], input->ndim, input->sizes);
    m[0].dtype = input->dtype;
    tmi_meta_set(&m[1], (int)n, shape);
    m[1].dtype = weight ? weight->dtype : input->dtype;
    return TM_OK;
}

static tm_dtype parameter_dtype(const tm_tensor *input, const tm_tensor *weight) { return weight && weight->dtype == TM_F32 ? TM_F32 : (tm_dtype)input->dtype; }

static tm_status check_channels(const char *name, const tm_tensor *t, int64_t channels)
{
    TMI_REQUIRE(!t || t->numel == channels, TM_INVALID, "%s should contain %lld elements not %lld", name, (long long)channels, (long long)(t ? t->numel : 0));
    return TM_OK;
}

tm_status tmi_shape_native_batch_norm(tmi_meta *m, tm_tensor *input, tm_tensor *weight, tm_tensor *bias, tm_tensor *running_mean, tm_tensor *running_var,
                                      bool training, double momentum, double eps)
{
    TMI_REQUIRE(input->ndim >= 2 || input->numel == 0, TM_INVALID, "batch_norm: expected an input of at least 2 dimensions, but got %d", input->ndim);
    TMI_REQUIRE(tmi_is_float(input->dtype), TM_NOT_IMPLEMENTED, "\"batch_norm\" not implemented for '%s'", tmi_dtypes[input->dtype].type_name);
    if (input->ndim < 2) {   /* nothing to normalise: as PyTorch, whatever the other arguments are */
        for (int i = 0; i < 3; i++) tmi_meta_set(&m[i], input->ndim, input->sizes);
        return TM_OK;
    }
    tm_int channels = input->sizes[1], stats = training ? channels : 0;
    TMI_TRY(check_channels("running_mean", running_mean, channels));
    TMI_TRY(check_channels("running_var", running_var, channels));
    TMI_TRY(check_channels("weight", weight, channels));
    TMI_TRY(check_channels("bias", bias, channels));
    TMI_REQUIRE(training || (running_mean && running_var), TM_INVALID, "%s must be defined in evaluation mode", running_mean ? "running_var" : "running_mean");
    TMI_TRY(tmi_shape_same(&m[0], input));
    for (int i = 1; i < 3; i++) {
        tmi_meta_set(&m[i], 1, &stats);
        m[i].dtype = (uint8_t)parameter_dtype(input, weight);
    }
    return TM_OK;
}

tm_status tmi_shape_native_batch_norm_backward(tmi_meta *m, tm_tensor *grad, tm_tensor *input, tm_tensor *weight, tm_tensor *running_mean, tm_tensor *running_var,
                                               tm_tensor *save_mean, tm_tensor *save_invstd, bool train, double eps, const bool *mask, int64_t n_mask)
{
    TMI_TRY(tmi_shape_same(&m[0], input));
    m[0].dtype = input->dtype;
    for (int i = 1; i < 3; i++) {
        tmi_meta_set(&m[i], 1, &input->sizes[input->ndim > 1 ? 1 : 0]);
        m[i].dtype = (uint8_t)parameter_dtype(input, weight);
    }
    return TM_OK;
}

tm_status tmi_shape_native_group_norm(tmi_meta *m, tm_tensor *input, tm_tensor *weight, tm_tensor *bias, tm_int N, tm_int C, tm_int HxW, tm_int group, double eps)
{
    TMI_REQUIRE(tmi_is_float(input->dtype), TM_NOT_IMPLEMENTED, "\"GroupNormKernelImpl\" not implemented for '%s'", tmi_dtypes[input->dtype].type_name);
    TMI_REQUIRE(group > 0 && C % group == 0, TM_INVALID, "Expected number of channels in input to be divisible by num_groups, but got input of %lld channels "
                "and num_groups=%lld", (long long)C, (long long)group);
    TMI_REQUIRE(input->numel == N * C * HxW, TM_INVALID, "group_norm: sizes do not fit the input");
    TMI_TRY(check_channels("weight", weight, C));
    TMI_TRY(check_channels("bias", bias, C));
    TMI_TRY(tmi_shape_same(&m[0], input));
    for (int i = 1; i < 3; i++) {
        tmi_meta_set(&m[i], 2, (tm_int[]){N, group});
        m[i].dtype = (uint8_t)parameter_dtype(input, weight);
    }
    return TM_OK;
}

tm_status tmi_shape_native_group_norm_backward(tmi_meta *m, tm_tensor *grad, tm_tensor *input, tm_tensor *mean, tm_tensor *rstd, tm_tensor *weight, tm_int N,
                                               tm_int C, tm_int HxW, tm_int group, const bool *mask, int64_t n_mask)
{
    TMI_TRY(tmi_shape_same(&m[0], input));
    m[0].dtype = input->dtype;
    for (int i = 1; i < 3; i++) {
        tmi_meta_set(&m[i], 1, &C);
        m[i].dtype = (uint8_t)parameter_dtype(input, weight);
    }
    return TM_OK;
}

/* ---------------------------------------------------------------- bodies */

tm_tensor *tmi_layer_norm(tm_tensor *input, const tm_int *shape, int64_t n, tm_tensor *weight, tm_tensor *bias, double eps, bool cudnn)
{
    tm_tensor *out, *mean, *rstd;
    TMI_TRY_PTR(tm_native_layer_norm(input, shape, n, weight, bias, eps, &out, &mean, &rstd));
    return out;
}

tm_tensor *tmi_rms_norm(tm_tensor *input, const tm_int *shape, int64_t n, tm_tensor *weight, const double *eps)
{
    tm_tensor *out, *rstd;
    TMI_TRY_PTR(tmo_fused_rms_norm(input, shape, n, weight, eps, &out, &rstd));
    return out;
}

tm_tensor *tmi_batch_norm(tm_tensor *input, tm_tensor *weight, tm_tensor *bias, tm_tensor *running_mean, tm_tensor *running_var, bool training, double momentum,
                          double eps, bool cudnn)
{
    tm_tensor *out, *mean, *invstd;
    TMI_TRY_PTR(tm_native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, &out, &mean, &invstd));
    return out;
}

tm_tensor *tmi_group_norm(tm_tensor *input, tm_int groups, tm_tensor *weight, tm_tensor *bias, double eps, bool cudnn)
{
    TMI_REQUIRE_PTR(input->ndim >= 2, TM_INVALID, "Expected at least 2 dimensions for input tensor but received %d", input->ndim);
    tm_int N = input->sizes[0], C = input->sizes[1], S = 1;
    for (int d = 2; d < input->ndim; d++) S *= input->sizes[d];
    TMI_REQUIRE_PTR(groups > 0, TM_INVALID, "Expected num groups to be greater than 0, got %lld", (long long)groups);
    char sizes[128];
    tmi_format_sizes(sizes, sizeof sizes, input->ndim, input->sizes);
    TMI_REQUIRE_PTR(C % groups == 0, TM_INVALID, "Expected number of channels in input to be divisible by num_groups, but got input of shape %s and num_groups=%lld",
                    sizes, (long long)groups);
    for (int i = 0; i < 2; i++) {
        tm_tensor *t = i ? bias : weight;
        char have[128];
        if (t) tmi_format_sizes(have, sizeof have, t->ndim, t->sizes);
        TMI_REQUIRE_PTR(!t || (t->ndim == 1 && t->numel == C), TM_INVALID, "Expected %s to be a vector of size equal to the number of channels in input, but got "
                        "%s of shape %s and input of shape %s", i ? "bias" : "weight", i ? "bias" : "weight", have, sizes);
    }
    tm_tensor *out, *mean, *rstd;
    TMI_TRY_PTR(tm_native_group_norm(tm_contiguous(input), weight, bias, N, C, S, groups, eps, &out, &mean, &rstd));
    return out;
}

static tm_tensor *repeated(tm_tensor *t, tm_int n) { return t ? tm_repeat(t, &n, 1) : NULL; }

/* Running statistics take the mean over the examples. */
static void fold_back(tm_tensor *running, tm_tensor *wide, tm_int b, tm_int c)
{
    if (running) tm_copy_inplace(running, tm_mean_dim(tm_view(wide, (tm_int[]){b, c}, 2), (tm_int[]){0}, 1));
}

tm_tensor *tmi_instance_norm(tm_tensor *input, tm_tensor *weight, tm_tensor *bias, tm_tensor *running_mean, tm_tensor *running_var, bool use_input_stats,
                             double momentum, double eps, bool cudnn)
{
    TMI_REQUIRE_PTR(use_input_stats || (running_mean && running_var), TM_INVALID, "Expected running_mean and running_var to be defined when use_input_stats is false");
    TMI_REQUIRE_PTR(input->ndim >= 2, TM_INVALID, "instance_norm: expected an input of at least 2 dimensions");
    tm_int b = input->sizes[0], c = input->sizes[1], sizes[TMI_MAX_DIMS];
    memcpy(sizes, input->sizes, (size_t)input->ndim * sizeof *sizes);
    sizes[0] = 1;
    sizes[1] = b * c;
    tm_tensor *mean = repeated(running_mean, b), *var = repeated(running_var, b);
    tm_tensor *flat = tm_view(tm_contiguous(input), sizes, input->ndim);
    tm_tensor *out = tm_batch_norm(flat, repeated(weight, b), repeated(bias, b), mean, var, use_input_stats, momentum, eps, false);
    if (use_input_stats && tm_error_status() == TM_OK) {
        bool on = tm_set_grad_enabled(false);
        fold_back(running_mean, mean, b, c);
        fold_back(running_var, var, b, c);
        tm_set_grad_enabled(on);
    }
    return tm_view(out, input->sizes, input->ndim);
}

/* ---------------------------------------------------------------- gradients */

/* What all normalisations share, with operators: xhat over dims `dim` of a view, its gradient, and gradients that come in through the
 * statistics. */
typedef struct parts {
    tm_tensor *centred, *rstd, *xhat;
    tm_int count;
} parts;

static parts parts_of(tm_tensor *x, const tm_int *dim, int64_t n_dim, double eps, bool centre)
{
    parts p = {.count = 1};
    for (int64_t i = 0; x && i < n_dim; i++) p.count *= x->sizes[dim[i]];
    p.centred = centre ? tm_sub(x, tm_mean_dim_full(x, dim, n_dim, true, TM_DTYPE_DEFAULT)) : x;
    tm_tensor *var = tm_mean_dim_full(tm_mul(p.centred, p.centred), dim, n_dim, true, TM_DTYPE_DEFAULT);
    p.rstd = tm_rsqrt(tm_add_scalar(var, tm_f64(eps)));
    p.xhat = tm_mul(p.centred, p.rstd);
    return p;
}

/* d input from the gradient of xhat (h), of the mean (gm) and of rstd (gr), each may be NULL. */
static tm_tensor *input_gradient(const parts *p, tm_tensor *h, tm_tensor *gm, tm_tensor *gr, const tm_int *dim, int64_t n_dim, bool centre)
{
    tm_tensor *total = NULL;
    if (h) {
        tm_tensor *along = tm_mul(p->xhat, tm_mean_dim_full(tm_mul(h, p->xhat), dim, n_dim, true, TM_DTYPE_DEFAULT));
        tm_tensor *rest = centre ? tm_sub(tm_sub(h, tm_mean_dim_full(h, dim, n_dim, true, TM_DTYPE_DEFAULT)), along) : tm_sub(h, along);
        total = tm_mul(rest, p->rstd);
    }
    if (gm) {
        tm_tensor *g = tm_mul_scalar(tm_mul(gm, tm_ones_like(p->xhat)), tm_f64(1.0 / (double)p->count));
        total = total ? tm_add(total, g) : g;
    }
    if (gr) {
        tm_tensor *g = tm_mul_scalar(tm_mul(tm_mul(tm_mul(gr, p->rstd), p->rstd), p->xhat), tm_f64(-1.0 / (double)p->count));
        total = total ? tm_add(total, g) : g;
    }
    return total;
}

static tm_int row_dims(int ndim, int64_t n, tm_int *rows, tm_int *last)
{
    for (int d = 0; d < ndim - n; d++) rows[d] = d;
    for (int64_t d = 0; d < n; d++) last[d] = ndim - n + d;
    return ndim - n;
}

static tm_tensor *sum_rows(tm_tensor *t, const tm_int *rows, tm_int n) { return n == 0 ? t : tm_sum_dim_intlist(t, rows, n); }

static bool by_operators(tm_tensor *const *grads, int from, int to)
{
    for (int i = from; i < to; i++)
        if (grads[i]) return true;
    return tm_grad_enabled();
}

static void rows_by_operators(tm_tensor **out, tm_tensor *const *grads, int n_stats, tm_tensor *input, int64_t n, tm_tensor *weight, double eps, const bool *needs)
{
    tm_int rows[TMI_MAX_DIMS], last[TMI_MAX_DIMS], n_rows = row_dims(input->ndim, n, rows, last);
    bool centre = n_stats == 2;
    tm_dtype dtype = (tm_dtype)input->dtype;
    parts p = parts_of(tmi_dtype_size(dtype) < 4 ? tmi_cast(input, TM_F32) : input, last, n, eps, centre);
    tm_tensor *g = grads[0], *h = g && weight ? tm_mul(g, weight) : g;
    if (needs[0]) out[0] = input_gradient(&p, h, centre ? grads[1] : NULL, centre ? grads[2] : grads[1], last, n, centre);
    if (g && needs[1] && weight) out[1] = sum_rows(tm_mul(g, p.xhat), rows, n_rows);
    if (g && centre && needs[2]) out[2] = sum_rows(g, rows, n_rows);
}

tm_status tmi_grad_layer_norm(tm_tensor **out, tm_tensor *const *grads, int64_t n_grads, tm_tensor *input, const tm_int *shape, int64_t n, tm_tensor *mean,
                              tm_tensor *rstd, tm_tensor *weight, tm_tensor *bias, double eps, const bool *needs, int64_t n_needs)
{
    if (!input) return tm_error_status();
    if (by_operators(grads, 1, 3)) {
        rows_by_operators(out, grads, 2, input, n, weight, eps, needs);
        return tm_error_status();
    }
    if (!grads[0]) return tm_error_status();
    bool mask[3] = {needs[0], needs[1] && weight, needs[2] && bias};
    return tm_native_layer_norm_backward(grads[0], input, shape, n, mean, rstd, weight, bias, mask, 3, &out[0], &out[1], &out[2]);
}

tm_status tmi_grad_rms_norm(tm_tensor **out, tm_tensor *const *grads, int64_t n_grads, tm_tensor *input, const tm_int *shape, int64_t n, tm_tensor *rstd,
                            tm_tensor *weight, const double *eps, const bool *needs, int64_t n_needs)
{
    if (!input) return tm_error_status();
    if (by_operators(grads, 1, 2)) {
        double least = input->dtype == TM_F64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
        rows_by_operators(out, grads, 1, input, n, weight, eps ? *eps : least, needs);
        return tm_error_status();
    }
    if (!grads[0]) return tm_error_status();
    bool mask[2] = {needs[0], needs[1] && weight};
    return tmo_fused_rms_norm_backward(grads[0], input, shape, n, rstd, weight, mask, 2, &out[0], &out[1]);
}

/* [C] as [1, C, 1 ...] */
static tm_tensor *channels(tm_tensor *t, int ndim)
{
    if (!t) return NULL;
    tm_int sizes[TMI_MAX_DIMS];
    for (int d = 0; d < ndim; d++) sizes[d] = d == 1 ? t->numel : 1;
    return tm_reshape(t, sizes, ndim);
}

tm_status tmi_grad_batch_norm(tm_tensor **out, tm_tensor *const *grads, int64_t n_grads, tm_tensor *input, tm_tensor *weight, tm_tensor *running_mean,
                              tm_tensor *running_var, tm_tensor *save_mean, tm_tensor *save_invstd, bool training, double eps, const bool *needs, int64_t n_needs)
{
    if (!input || !grads[0]) return tm_error_status();
    if (!by_operators(grads, 1, 1))
        return tm_native_batch_norm_backward(grads[0], input, weight, running_mean, running_var, save_mean, save_invstd, training, eps,
                                             (bool[]){needs[0], needs[1] && weight, needs[2]}, 3, &out[0], &out[1], &out[2]);
    tm_int dims[TMI_MAX_DIMS], n = 0;
    for (int d = 0; d < input->ndim; d++)
        if (d != 1) dims[n++] = d;
    tm_tensor *g = grads[0], *w = channels(weight, input->ndim);
    parts p;
    if (training) {
        p = parts_of(input, dims, n, eps, true);
    } else {
        p.centred = tm_sub(input, channels(running_mean, input->ndim));
        p.rstd = channels(tm_rsqrt(tm_add_scalar(running_var, tm_f64(eps))), input->ndim);
        p.xhat = tm_mul(p.centred, p.rstd);
    }
    tm_tensor *h = w ? tm_mul(g, w) : g;
    if (needs[0]) out[0] = training ? input_gradient(&p, h, NULL, NULL, dims, n, true) : tm_mul(h, p.rstd);
    if (needs[1] && weight) out[1] = tm_sum_dim_intlist(tm_mul(g, p.xhat), dims, n);
    if (needs[2]) out[2] = tm_sum_dim_intlist(g, dims, n);
    return tm_error_status();
}

tm_status tmi_grad_group_norm(tm_tensor **out, tm_tensor *const *grads, int64_t n_grads, tm_tensor *input, tm_tensor *mean, tm_tensor *rstd, tm_tensor *weight,
                              tm_int N, tm_int C, tm_int HxW, tm_int group, double eps, const bool *needs, int64_t n_needs)
{
    if (!input) return tm_error_status();
    if (!by_operators(grads, 1, 3)) {
        if (!grads[0]) return tm_error_status();
        return tm_native_group_norm_backward(grads[0], input, mean, rstd, weight, N, C, HxW, group, (bool[]){needs[0], needs[1] && weight, needs[2]}, 3,
                                             &out[0], &out[1], &out[2]);
    }
    tm_int D = C / group, view[4] = {N, group, D, HxW}, dims[2] = {2, 3}, outer[2] = {0, 3};
    parts p = parts_of(tm_reshape(input, view, 4), dims, 2, eps, true);
    tm_tensor *g = grads[0] ? tm_reshape(grads[0], view, 4) : NULL, *w = weight ? tm_reshape(weight, (tm_int[]){1, group, D, 1}, 4) : NULL;
    tm_tensor *h = g && w ? tm_mul(g, w) : g;
    tm_tensor *gm = grads[1] ? tm_reshape(grads[1], (tm_int[]){N, group, 1, 1}, 4) : NULL;
    tm_tensor *gr = grads[2] ? tm_reshape(grads[2], (tm_int[]){N, group, 1, 1}, 4) : NULL;
    if (needs[0]) out[0] = tm_reshape(input_gradient(&p, h, gm, gr, dims, 2, true), input->sizes, input->ndim);
    if (g && needs[1] && weight) out[1] = tm_reshape(tm_sum_dim_intlist(tm_mul(g, p.xhat), outer, 2), &C, 1);
    if (g && needs[2]) out[2] = tm_reshape(tm_sum_dim_intlist(g, outer, 2), &C, 1);
    return tm_error_status();
}
