/* Losses: shape rules, bodies, gradients. */
#include <math.h>

#include "boxing.h"
#include "compose.h"
#include "ops/shapes.h"

/* ---------------------------------------------------------------- nll */

static tm_status nll_checks(const tm_tensor *self, const tm_tensor *target, const tm_tensor *weight)
{
    int64_t classes = self->ndim == 1 ? self->sizes[0] : self->sizes[1];
    TMI_REQUIRE(target->dtype == TM_I64 || target->dtype == TM_U8, TM_INVALID, "expected target dtype to be Long or Byte, but got %s",
                tmi_dtypes[target->dtype].type_name);
    TMI_REQUIRE(tmi_is_float(self->dtype), TM_NOT_IMPLEMENTED, "\"nll_loss_out_frame\" not implemented for '%s'", tmi_dtypes[self->dtype].type_name);
    TMI_REQUIRE(!weight || weight->numel == classes, TM_INVALID, "weight tensor should be defined either for all %lld classes or no classes but got weight "
                "tensor of %lld elements", (long long)classes, (long long)(weight ? weight->numel : 0));
    TMI_REQUIRE(!weight || weight->dtype == self->dtype, TM_INVALID, "expected scalar type %s but found %s", tmi_dtypes[self->dtype].type_name,
                weight ? tmi_dtypes[weight->dtype].type_name : "");
    return TM_OK;
}

static void loss_meta(tmi_meta *m, const tm_tensor *target, tm_int reduction, bool per_target)
{
    if (reduction == 0 && per_target) tmi_meta_set(&m[0], target->ndim, target->sizes);
    else tmi_meta_set(&m[0], 0, NULL);
    tmi_meta_set(&m[1], 0, NULL);
}

static tm_status nll_1d_shape(const tm_tensor *self, const tm_tensor *target)
{
    TMI_REQUIRE(self->ndim == 1 || self->ndim == 2, TM_INVALID, "input tensor should be 1D or 2D");
    TMI_REQUIRE(target->ndim <= 1, TM_INVALID, "0D or 1D target tensor expected, multi-target not supported");
    char a[128], b[128];
    bool fits = self->ndim == 1 ? target->ndim == 0 || target->numel == 1 : target->ndim == 1 && self->sizes[0] == target->sizes[0];
    if (fits) return TM_OK;
    tmi_format_sizes(a, sizeof a, self->ndim, self->sizes);
    tmi_format_sizes(b, sizeof b, target->ndim, target->sizes);
    return tmi_fail(TM_INVALID, "size mismatch (got input: %s, target: %s)", a, b);
}

tm_status tmi_shape_nll_loss_forward(tmi_meta *m, tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction, tm_int ignore_index)
{
    TMI_TRY(nll_1d_shape(self, target));
    TMI_TRY(nll_checks(self, target, weight));
    loss_meta(m, target, reduction, self->ndim == 2);
    return TM_OK;
}
tm_status tmi_shape_nll_loss_backward(tmi_meta *m, tm_tensor *grad, tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction,
                                      tm_int ignore_index, tm_tensor *total)
{
    TMI_TRY(nll_1d_shape(self, target));
    tmi_meta_set(m, self->ndim, self->sizes);
    m->dtype = self->dtype;
    return TM_OK;
}

tm_status tmi_shape_nll_loss2d_forward(tmi_meta *m, tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction, tm_int ignore_index)
{
    TMI_REQUIRE(target->ndim == 3, TM_INVALID, "only batches of spatial targets supported (3D tensors) but got targets of dimension: %d", target->ndim);
    TMI_REQUIRE(self->ndim == 4, TM_INVALID, "only batches of spatial inputs supported (4D tensors), but got input of dimension: %d", self->ndim);
    bool fits = self->sizes[0] == target->sizes[0] && self->sizes[2] == target->sizes[1] && self->sizes[3] == target->sizes[2];
    TMI_REQUIRE(fits, TM_INVALID, "size mismatch (got input and target of different batch or spatial sizes)");
    TMI_TRY(nll_checks(self, target, weight));
    loss_meta(m, target, reduction, true);
    return TM_OK;
}
tm_status tmi_shape_nll_loss2d_backward(tmi_meta *m, tm_tensor *grad, tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction,
                                        tm_int ignore_index, tm_tensor *total)
{
    tmi_meta_set(m, self->ndim, self->sizes);
    m->dtype = self->dtype;
    return TM_OK;
}

tm_tensor *tmi_nll_loss(tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction, tm_int ignore_index)
{
    tm_tensor *out, *total;
    TMI_TRY_PTR(tm_nll_loss_forward(self, target, weight, reduction, ignore_index, &out, &total));
    return out;
}
tm_tensor *tmi_nll_loss2d(tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction, tm_int ignore_index)
{
    tm_tensor *out, *total;
    TMI_TRY_PTR(tm_nll_loss2d_forward(self, target, weight, reduction, ignore_index, &out, &total));
    return out;
}

tm_tensor *tmi_nll_loss_nd(tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction, tm_int ignore_index)
{
    TMI_REQUIRE_PTR(self->ndim >= 1, TM_VALUE, "Expected 1 or more dimensions (got %d)", self->ndim);
    TMI_REQUIRE_PTR(self->ndim == 1 || (target->ndim >= 1 && self->sizes[0] == target->sizes[0]), TM_VALUE,
                    "Expected input batch_size (%lld) to match target batch_size (%lld).", (long long)self->sizes[0],
                    (long long)(target->ndim ? target->sizes[0] : 0));
    if (self->ndim <= 2) return tm_nll_loss_full(self, target, weight, reduction, ignore_index);
    if (self->ndim == 4) return tm_nll_loss2d_full(self, target, weight, reduction, ignore_index);
    tm_int n = self->sizes[0], c = self->sizes[1], rest = n * c > 0 ? self->numel / (n * c) : 0;
    bool fits = target->ndim == self->ndim - 1;
    for (int d = 2; fits && d < self->ndim; d++) fits = self->sizes[d] == target->sizes[d - 1];
    char a[128], b[128];
    tmi_format_sizes(a, sizeof a, self->ndim, self->sizes);
    tmi_format_sizes(b, sizeof b, target->ndim, target->sizes);
    TMI_REQUIRE_PTR(fits, TM_INVALID, "Expected target size for input of size %s to have the same trailing sizes, got %s", a, b);
    tm_tensor *x = tm_reshape(tm_contiguous(self), (tm_int[]){n, c, 1, rest}, 4), *t = tm_reshape(tm_contiguous(target), (tm_int[]){n, 1, rest}, 3);
    tm_tensor *out = tm_nll_loss2d_full(x, t, weight, reduction, ignore_index);
    return reduction == 0 ? tm_view(out, target->sizes, target->ndim) : out;
}

/* ---------------------------------------------------------------- cross entropy */

/* [C] as a view that multiplies along dim `at` of ndim. */
static tm_tensor *along(tm_tensor *w, int ndim, int at)
{
    tm_int sizes[TMI_MAX_DIMS];
    for (int d = 0; d < ndim; d++) sizes[d] = d == at ? w->numel : 1;
    return tm_view(w, sizes, ndim);
}

static tm_status check_class_weight(const tm_tensor *weight, int64_t classes)
{
    TMI_REQUIRE(!weight || (weight->ndim == 1 && weight->numel == classes), TM_INVALID,
                "cross_entropy: weight tensor should be defined either for all %lld classes or no classes but got weight tensor of %lld elements",
                (long long)classes, (long long)(weight ? weight->numel : 0));
    return TM_OK;
}

static tm_tensor *probability_loss(tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction, double smoothing)
{
    int class_dim = self->ndim == 1 ? 0 : 1;
    tm_int classes = self->sizes[class_dim], dim = class_dim;
    TMI_TRY_PTR(check_class_weight(weight, classes));
    tm_tensor *logs = tm_log_softmax_int(self, class_dim);
    if (smoothing > 0) target = tm_add_scalar(tm_mul_scalar(target, tm_f64(1 - smoothing)), tm_f64(smoothing / (double)classes));
    tm_tensor *products = tm_mul(logs, target);
    if (weight) products = tm_mul(products, along(weight, self->ndim, class_dim));
    if (reduction == 0) return tm_neg(tm_sum_dim_intlist(products, &dim, 1));
    tm_tensor *sum = tm_neg(tm_sum(products));
    if (reduction == 2) return sum;
    if (self->numel == 0) return tm_mul_scalar(sum, tm_f64(NAN));
    return tm_div_scalar(sum, tm_i64(self->numel / classes));
}

/* (1 - smoothing) nll + smoothing / C times the mean over classes. */
static tm_tensor *smoothed_loss(tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction, tm_int ignore_index, double smoothing)
{
    int class_dim = self->ndim == 1 ? 0 : 1;
    tm_int classes = self->sizes[class_dim], dim = class_dim;
    TMI_TRY_PTR(check_class_weight(weight, classes));
    tm_tensor *logs = tm_log_softmax_int(self, class_dim);
    tm_tensor *nll = tm_nll_loss_nd_full(logs, target, weight, reduction, ignore_index);
    tm_tensor *smooth = tm_neg(tm_sum_dim_intlist(weight ? tm_mul(logs, along(weight, self->ndim, class_dim)) : logs, &dim, 1));
    tm_tensor *ignored = tm_eq_scalar(target, tm_i64(ignore_index));
    smooth = tm_masked_fill_scalar(smooth, ignored, tm_i64(0));
    if (reduction == 1) {
        tm_tensor *total;
        if (weight) {
            tm_tensor *flat = tm_reshape(tm_masked_fill_scalar(target, ignored, tm_i64(0)), (tm_int[]){-1}, 1);
            tm_tensor *each = tm_masked_fill_scalar(tm_index_select(weight, 0, tmi_cast(flat, TM_I64)), tm_reshape(ignored, (tm_int[]){-1}, 1), tm_i64(0));
            total = tm_sum(each);
        } else {
            total = tm_sum(tm_logical_not(ignored));
        }
        smooth = tm_div(tm_sum(smooth), total);
    } else if (reduction == 2) {
        smooth = tm_sum(smooth);
    }
    return tm_add(tm_mul_scalar(nll, tm_f64(1 - smoothing)), tm_mul_scalar(smooth, tm_f64(smoothing / (double)classes)));
}

tm_tensor *tmi_cross_entropy_loss(tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction, tm_int ignore_index, double smoothing)
{
    bool probabilities = self->ndim == target->ndim && memcmp(self->sizes, target->sizes, (size_t)self->ndim * sizeof *self->sizes) == 0;
    TMI_REQUIRE_PTR(smoothing >= 0 && smoothing <= 1, TM_INVALID, "label_smoothing must be between 0.0 and 1.0. Got: %g", smoothing);
    if (probabilities) {
        TMI_REQUIRE_PTR(tmi_is_float(target->dtype), TM_INVALID, "Expected floating point type for target with class probabilities, got %s",
                        tmi_dtypes[target->dtype].type_name);
        TMI_REQUIRE_PTR(ignore_index < 0, TM_INVALID, "ignore_index is not supported for floating point target");
        TMI_REQUIRE_PTR(self->ndim >= 1, TM_INVALID, "cross_entropy: expected an input of at least 1 dimension");
        return probability_loss(self, target, weight, reduction, smoothing);
    }
    TMI_REQUIRE_PTR(self->ndim >= 1, TM_VALUE, "Expected 1 or more dimensions (got %d)", self->ndim);
    if (smoothing > 0) return smoothed_loss(self, target, weight, reduction, ignore_index, smoothing);
    return tm_nll_loss_nd_full(tm_log_softmax_int(self, self->ndim == 1 ? 0 : 1), target, weight, reduction, ignore_index);
}

/* ---------------------------------------------------------------- distances */

/* grad spread over the elements: divided by their number for the mean. */
static tm_tensor *spread(tm_tensor *grad, tm_int reduction, int64_t n) { return reduction == 1 ? tm_mul_scalar(grad, tm_f64(1 / (double)n)) : grad; }

static int64_t broadcast_count(const tm_tensor *a, const tm_tensor *b)
{
    int ndim;
    int64_t sizes[TMI_MAX_DIMS], n = 1;
    if (tmi_broadcast_sizes(a->ndim, a->sizes, b->ndim, b->sizes, &ndim, sizes) != TM_OK) return 0;
    for (int d = 0; d < ndim; d++) n *= sizes[d];
    return n;
}

tm_tensor *tmi_mse_loss(tm_tensor *self, tm_tensor *target, tm_int reduction) { return tmi_apply_reduction(tm_square(tm_sub(self, target)), reduction); }
tm_tensor *tmi_grad_mse_loss(tm_tensor *grad, tm_tensor *a, tm_tensor *b, tm_int reduction)
{
    if (!grad || !a || !b) return NULL;
    double scale = reduction == 1 ? 2 / (double)broadcast_count(a, b) : 2;
    return tm_mul(tm_mul_scalar(tm_sub(a, b), tm_f64(scale)), grad);
}

tm_tensor *tmi_l1_loss(tm_tensor *self, tm_tensor *target, tm_int reduction) { return tmi_apply_reduction(tm_abs(tm_sub(self, target)), reduction); }

tm_tensor *tmi_smooth_l1_loss(tm_tensor *self, tm_tensor *target, tm_int reduction, double beta)
{
    TMI_REQUIRE_PTR(beta >= 0, TM_INVALID, "smooth_l1_loss does not support negative values for beta.");
    tm_tensor *z = tm_abs(tm_sub(self, target));
    if (beta == 0) return tmi_apply_reduction(z, reduction);
    tm_tensor *inner = tm_mul_scalar(tm_mul(z, z), tm_f64(0.5 / beta)), *outer = tm_sub_scalar(z, tm_f64(0.5 * beta));
    return tmi_apply_reduction(tm_where_self(tm_lt_scalar(z, tm_f64(beta)), inner, outer), reduction);
}
tm_tensor *tmi_grad_smooth_l1_loss(tm_tensor *grad, tm_tensor *a, tm_tensor *b, tm_int reduction, double beta)
{
    if (!grad || !a || !b) return NULL;
    tm_tensor *d = tm_sub(a, b), *slope = tm_sign(d);
    if (beta > 0) slope = tm_where_self(tm_lt_scalar(tm_abs(d), tm_f64(beta)), tm_mul_scalar(d, tm_f64(1 / beta)), slope);
    return tm_mul(slope, spread(grad, reduction, broadcast_count(a, b)));
}

tm_tensor *tmi_huber_loss(tm_tensor *self, tm_tensor *target, tm_int reduction, double delta)
{
    TMI_REQUIRE_PTR(delta > 0, TM_INVALID, "huber_loss does not support non-positive values for delta.");
    tm_tensor *z = tm_abs(tm_sub(self, target));
    tm_tensor *inner = tm_mul_scalar(tm_mul(z, z), tm_f64(0.5)), *outer = tm_mul_scalar(tm_sub_scalar(z, tm_f64(0.5 * delta)), tm_f64(delta));
    return tmi_apply_reduction(tm_where_self(tm_le_scalar(z, tm_f64(delta)), inner, outer), reduction);
}
tm_tensor *tmi_grad_huber_loss(tm_tensor *grad, tm_tensor *a, tm_tensor *b, tm_int reduction, double delta)
{
    if (!grad || !a || !b) return NULL;
    tm_tensor *d = tm_sub(a, b), *slope = tm_where_self(tm_le_scalar(tm_abs(d), tm_f64(delta)), d, tm_mul_scalar(tm_sign(d), tm_f64(delta)));
    return tm_mul(slope, spread(grad, reduction, broadcast_count(a, b)));
}

/* ---------------------------------------------------------------- binary cross entropy */

tm_tensor *tmi_binary_cross_entropy(tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction)
{
    tm_scalar bad;
    tm_tensor *outside = tm_any(tm_logical_not(tm_logical_and(tm_ge_scalar(self, tm_i64(0)), tm_le_scalar(self, tm_i64(1)))));
    TMI_TRY_PTR(outside ? tm_tensor_item(outside, &bad) : tmi_body_failed());
    TMI_REQUIRE_PTR(!bad.v.b, TM_INVALID, "all elements of input should be between 0 and 1");
    tm_tensor *yes = tm_mul(target, tm_clamp_min(tm_log(self), tm_i64(-100)));
    tm_tensor *no = tm_mul(tm_rsub_scalar(target, tm_i64(1)), tm_clamp_min(tm_log1p(tm_neg(self)), tm_i64(-100)));
    tm_tensor *loss = tm_neg(tm_add(yes, no));
    return tmi_apply_reduction(weight ? tm_mul(loss, weight) : loss, reduction);
}
tm_tensor *tmi_grad_bce(tm_tensor *grad, tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction)
{
    if (!grad || !self || !target) return NULL;
    tm_tensor *g = tm_div(tm_sub(self, target), tm_clamp_min(tm_mul(self, tm_rsub_scalar(self, tm_i64(1))), tm_f64(1e-12)));
    if (weight) g = tm_mul(g, weight);
    return tm_mul(g, spread(grad, reduction, self->numel));
}
tm_tensor *tmi_grad_bce_target(tm_tensor *grad, tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction)
{
    if (!grad || !self || !target) return NULL;
    tm_tensor *g = tm_sub(tm_clamp_min(tm_log1p(tm_neg(self)), tm_i64(-100)), tm_clamp_min(tm_log(self), tm_i64(-100)));
    if (weight) g = tm_mul(g, weight);
    return tm_mul(g, spread(grad, reduction, self->numel));
}

tm_tensor *tmi_bce_with_logits(tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_tensor *pos_weight, tm_int reduction)
{
    tm_tensor *rest = tm_mul(tm_rsub_scalar(target, tm_i64(1)), self), *logs = tm_log_sigmoid(self), *loss;
    if (pos_weight) {
        tm_tensor *factor = tm_add_scalar(tm_mul(tm_sub_scalar(pos_weight, tm_i64(1)), target), tm_i64(1));
        loss = tm_sub(rest, tm_mul(factor, logs));
    } else {
        loss = tm_sub(rest, logs);
    }
    return tmi_apply_reduction(weight ? tm_mul(loss, weight) : loss, reduction);
}
tm_tensor *tmi_grad_bce_with_logits(tm_tensor *grad, tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_tensor *pos_weight, tm_int reduction)
{
    if (!grad || !self || !target) return NULL;
    tm_tensor *g;
    if (pos_weight) {
        tm_tensor *t = tm_mul(pos_weight, target);
        g = tm_sub(tm_mul(tm_sub(tm_add_scalar(t, tm_i64(1)), target), tm_sigmoid(self)), t);
    } else {
        g = tm_sub(tm_sigmoid(self), target);
    }
    if (weight) g = tm_mul(g, weight);
    return tm_mul(g, spread(grad, reduction, self->numel));
}
tm_tensor *tmi_grad_bce_with_logits_target(tm_tensor *grad, tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_tensor *pos_weight, tm_int reduction)
{
    if (!grad || !self || !target) return NULL;
    tm_tensor *g = tm_neg(self);
    if (pos_weight) g = tm_sub(tm_log_sigmoid(tm_neg(self)), tm_mul(pos_weight, tm_log_sigmoid(self)));
    if (weight) g = tm_mul(g, weight);
    return tm_mul(g, spread(grad, reduction, target->numel));
}

/* ---------------------------------------------------------------- composites */

tm_tensor *tmi_kl_div(tm_tensor *self, tm_tensor *target, tm_int reduction, bool log_target)
{
    TMI_REQUIRE_PTR(!tmi_is_complex(self->dtype) && !tmi_is_complex(target->dtype), TM_INVALID, "kl_div: complex inputs are not supported");
    tm_tensor *out = log_target ? tm_mul(tm_exp(target), tm_sub(target, self)) : tm_sub(tm_xlogy(target, target), tm_mul(target, self));
    return tmi_apply_reduction(out, reduction);
}

static tm_tensor *dim_sum(tm_tensor *t, tm_int dim) { return tm_sum_dim_intlist(t, &dim, 1); }
static tm_tensor *dim_norm(tm_tensor *t, tm_int dim, double p, bool keepdim) { return tm_linalg_vector_norm_full(t, tm_f64(p), &dim, 1, keepdim, TM_DTYPE_DEFAULT); }

tm_tensor *tmi_cosine_similarity(tm_tensor *x1, tm_tensor *x2, tm_int dim, double eps)
{
    tmi_promotion p = TMI_PROMOTION_INIT;
    tm_dtype dtype;
    TMI_TRY_PTR(tmi_promote_tensor(&p, x1));
    TMI_TRY_PTR(tmi_promote_tensor(&p, x2));
    TMI_TRY_PTR(tmi_promoted(&p, &dtype));
    TMI_REQUIRE_PTR(tmi_is_float(dtype), TM_INVALID, "expected common dtype to be floating point, yet common dtype is %s", tmi_dtypes[dtype].type_name);
    int ndim;
    tm_int sizes[TMI_MAX_DIMS];
    TMI_TRY_PTR(tmi_broadcast_sizes(x1->ndim, x1->sizes, x2->ndim, x2->sizes, &ndim, sizes));
    x1 = tm_expand(tmi_cast(x1, dtype), sizes, ndim);
    x2 = tm_expand(tmi_cast(x2, dtype), sizes, ndim);
    tm_tensor *n1 = tm_clamp_min(dim_norm(x1, dim, 2, true), tm_f64(eps)), *n2 = tm_clamp_min(dim_norm(x2, dim, 2, true), tm_f64(eps));
    return dim_sum(tm_mul(tm_div(x1, n1), tm_div(x2, n2)), dim);
}

tm_tensor *tmi_cosine_embedding_loss(tm_tensor *x1, tm_tensor *x2, tm_tensor *target, double margin, tm_int reduction)
{
    bool batch = target->ndim == 1, single = target->ndim == 0;
    TMI_REQUIRE_PTR(batch || single, TM_INVALID, "0D or 1D target tensor expected, multi-target not supported");
    TMI_REQUIRE_PTR(!batch || (x1->ndim == 2 && x2->ndim == 2), TM_INVALID, "1D target tensor expects 2D input tensors, but found inputs with other sizes");
    TMI_REQUIRE_PTR(!single || (x1->ndim == 1 && x2->ndim == 1), TM_INVALID, "0D target tensor expects 1D input tensors, but found inputs with other sizes");
    tm_int dim = batch ? 1 : 0;
    double eps = 1e-12;
    tm_tensor *dot = dim_sum(tm_mul(x1, x2), dim), *m1 = tm_add_scalar(dim_sum(tm_mul(x1, x1), dim), tm_f64(eps)),
              *m2 = tm_add_scalar(dim_sum(tm_mul(x2, x2), dim), tm_f64(eps));
    tm_tensor *cosine = tm_div(dot, tm_sqrt(tm_mul(m1, m2))), *zeros = tm_zeros_like(cosine);
    tm_tensor *yes = tm_where_self(tm_eq_scalar(target, tm_i64(1)), tm_rsub_scalar(cosine, tm_i64(1)), zeros);
    tm_tensor *no = tm_where_self(tm_eq_scalar(target, tm_i64(-1)), tm_clamp_min(tm_sub_scalar(cosine, tm_f64(margin)), tm_i64(0)), zeros);
    return tmi_apply_reduction(tm_add(yes, no), reduction);
}

tm_tensor *tmi_margin_ranking_loss(tm_tensor *x1, tm_tensor *x2, tm_tensor *target, double margin, tm_int reduction)
{
    TMI_REQUIRE_PTR(x1->ndim == x2->ndim && x1->ndim == target->ndim, TM_INVALID, "margin_ranking_loss : All input tensors should have same dimension but got "
                    "sizes of %d, %d and %d dimensions", x1->ndim, x2->ndim, target->ndim);
    tm_tensor *z = tm_add_scalar(tm_mul(tm_neg(target), tm_sub(x1, x2)), tm_f64(margin));
    return tmi_apply_reduction(tm_clamp_min(z, tm_i64(0)), reduction);
}

tm_tensor *tmi_hinge_embedding_loss(tm_tensor *self, tm_tensor *target, double margin, tm_int reduction)
{
    tm_tensor *zeros = tm_zeros_like(self), *far = tm_clamp_min(tm_rsub_scalar(self, tm_f64(margin)), tm_i64(0));
    tm_tensor *a = tm_where_self(tm_ne_scalar(target, tm_i64(1)), far, zeros), *b = tm_where_self(tm_ne_scalar(target, tm_i64(-1)), self, zeros);
    return tmi_apply_reduction(tm_add(a, b), reduction);
}

tm_tensor *tmi_pairwise_distance(tm_tensor *x1, tm_tensor *x2, double p, double eps, bool keepdim)
{
    return dim_norm(tm_add_scalar(tm_sub(x1, x2), tm_f64(eps)), -1, p, keepdim);
}

tm_tensor *tmi_triplet_margin_loss(tm_tensor *a, tm_tensor *pos, tm_tensor *neg, double margin, double p, double eps, bool swap, tm_int reduction)
{
    TMI_REQUIRE_PTR(a->ndim == pos->ndim && a->ndim == neg->ndim, TM_INVALID, "The anchor, positive, and negative tensors are expected to have the same number of "
                    "dimensions, but got: anchor %dD, positive %dD, and negative %dD inputs", a->ndim, pos->ndim, neg->ndim);
    TMI_REQUIRE_PTR(margin > 0, TM_INVALID, "margin must be greater than 0, got %g", margin);
    tm_tensor *near = tmi_pairwise_distance(a, pos, p, eps, false), *far = tmi_pairwise_distance(a, neg, p, eps, false);
    if (swap) far = tm_minimum(far, tmi_pairwise_distance(pos, neg, p, eps, false));
    return tmi_apply_reduction(tm_clamp_min(tm_sub(tm_add_scalar(near, tm_f64(margin)), far), tm_i64(0)), reduction);
}

tm_tensor *tmi_soft_margin_loss(tm_tensor *self, tm_tensor *target, tm_int reduction)
{
    return tmi_apply_reduction(tm_log1p(tm_exp(tm_mul(tm_neg(target), self))), reduction);
}

tm_tensor *tmi_poisson_nll_loss(tm_tensor *input, tm_tensor *target, bool log_input, bool full, double eps, tm_int reduction)
{
    tm_tensor *loss = log_input ? tm_sub(tm_exp(input), tm_mul(target, input)) : tm_sub(input, tm_mul(target, tm_log(tm_add_scalar(input, tm_f64(eps)))));
    if (full) {   /* Stirling's approximation of log(target!) */
        tm_tensor *half = tm_mul_scalar(tm_log(tm_mul_scalar(target, tm_f64(2 * 3.14159265358979323846))), tm_f64(0.5));
        tm_tensor *stirling = tm_add(tm_sub(tm_mul(target, tm_log(target)), target), half);
        loss = tm_add(loss, tm_masked_fill_scalar(stirling, tm_le_scalar(target, tm_i64(1)), tm_i64(0)));
    }
    return tmi_apply_reduction(loss, reduction);
}

tm_tensor *tmi_multi_margin_loss(tm_tensor *self, tm_tensor *target, tm_scalar p, tm_scalar margin, tm_tensor *weight, tm_int reduction)
{
    TMI_REQUIRE_PTR(tmi_scalar_f64(p) == 1 || tmi_scalar_f64(p) == 2, TM_INVALID, "only p == 1 and p == 2 supported");
    bool batch = self->ndim == 2;
    TMI_REQUIRE_PTR(self->ndim <= 2 && self->numel > 0, TM_INVALID, "Expected non-empty vector or matrix with optional 0-dim batch size, but got: %dD", self->ndim);
    TMI_REQUIRE_PTR(target->ndim <= 1 && target->numel == (batch ? self->sizes[0] : 1), TM_INVALID, "inconsistent target size, expected %lld but got %lld elements",
                    (long long)(batch ? self->sizes[0] : 1), (long long)target->numel);
    tm_tensor *x = batch ? self : tm_reshape(self, (tm_int[]){1, -1}, 2), *t = tm_reshape(target, (tm_int[]){-1, 1}, 2);
    if (!x || !t) return NULL;
    TMI_REQUIRE_PTR(!weight || weight->numel == x->sizes[1], TM_INVALID, "inconsistent weight size, expected %lld but got %lld", (long long)x->sizes[1],
                    (long long)(weight ? weight->numel : 0));
    tm_tensor *z = tm_clamp_min(tm_add_scalar(tm_sub(x, tm_gather(x, 1, t)), margin), tm_i64(0));
    if (tmi_scalar_f64(p) == 2) z = tm_mul(z, z);
    if (weight) z = tm_mul(z, tm_index_select(weight, 0, tm_reshape(t, (tm_int[]){-1}, 1)) ? tm_unsqueeze(tm_index_select(weight, 0, tm_reshape(t, (tm_int[]){-1}, 1)), 1) : NULL);
    z = tm_scatter_value(z, 1, t, tm_i64(0));
    tm_tensor *loss = tm_mean_dim(z, (tm_int[]){1}, 1);
    if (!batch && loss) loss = tm_reshape(loss, target->sizes, target->ndim);
    return tmi_apply_reduction(loss, reduction);
}

tm_tensor *tmi_multilabel_margin_loss(tm_tensor *self, tm_tensor *target, tm_int reduction)
{
    bool fits = self->ndim == target->ndim && self->ndim <= 2 && memcmp(self->sizes, target->sizes, (size_t)self->ndim * sizeof *self->sizes) == 0;
    TMI_REQUIRE_PTR(fits || (self->ndim <= 1 && target->ndim <= 1 && self->numel == target->numel), TM_INVALID, "inconsistent target size for input");
    TMI_REQUIRE_PTR(target->dtype == TM_I64, TM_INVALID, "expected scalar type Long but found %s", tmi_dtypes[target->dtype].type_name);
    tm_tensor *x = self->ndim == 2 ? self : tm_reshape(self, (tm_int[]){1, -1}, 2), *t = self->ndim == 2 ? target : tm_reshape(target, (tm_int[]){1, -1}, 2);
    if (!x || !t) return NULL;
    tm_int classes = x->sizes[1];
    tm_tensor *valid = tm_cumprod(tmi_cast(tm_ge_scalar(t, tm_i64(0)), TM_I64), 1);
    tm_tensor *at = tm_mul(t, valid), *is_target = tm_scatter_add(tm_zeros_like(t), 1, at, valid);
    tm_tensor *others = tmi_cast(tm_eq_scalar(is_target, tm_i64(0)), (tm_dtype)self->dtype), *kept = tmi_cast(valid, (tm_dtype)self->dtype);
    tm_tensor *gap = tm_rsub_scalar(tm_sub(tm_unsqueeze(tm_gather(x, 1, at), 2), tm_unsqueeze(x, 1)), tm_i64(1));
    tm_tensor *z = tm_mul(tm_mul(tm_clamp_min(gap, tm_i64(0)), tm_unsqueeze(kept, 2)), tm_unsqueeze(others, 1));
    tm_tensor *loss = tm_div_scalar(tm_sum_dim_intlist(z, (tm_int[]){1, 2}, 2), tm_i64(classes));
    if (self->ndim < 2) loss = tm_reshape(loss, NULL, 0);
    return tmi_apply_reduction(loss, reduction);
}

tm_tensor *tmi_cdist(tm_tensor *x1, tm_tensor *x2, double p, const tm_int *mode)
{
    TMI_REQUIRE_PTR(x1->ndim >= 2, TM_INVALID, "cdist only supports at least 2D tensors, X1 got: %dD", x1->ndim);
    TMI_REQUIRE_PTR(x2->ndim >= 2, TM_INVALID, "cdist only supports at least 2D tensors, X2 got: %dD", x2->ndim);
    TMI_REQUIRE_PTR(x1->sizes[x1->ndim - 1] == x2->sizes[x2->ndim - 1], TM_INVALID, "X1 and X2 must have the same number of columns. X1: %lld X2: %lld",
                    (long long)x1->sizes[x1->ndim - 1], (long long)x2->sizes[x2->ndim - 1]);
    TMI_REQUIRE_PTR(p >= 0, TM_INVALID, "cdist only supports non-negative p values");
    TMI_REQUIRE_PTR(tmi_is_float(x1->dtype), TM_INVALID, "cdist only supports floating-point dtypes, X1 got: %s", tmi_dtypes[x1->dtype].type_name);
    TMI_REQUIRE_PTR(tmi_is_float(x2->dtype), TM_INVALID, "cdist only supports floating-point dtypes, X2 got: %s", tmi_dtypes[x2->dtype].type_name);
    return dim_norm(tm_sub(tm_unsqueeze(x1, -2), tm_unsqueeze(x2, -3)), -1, p, false);
}

tm_tensor *tmi_pdist(tm_tensor *self, double p)
{
    TMI_REQUIRE_PTR(self->ndim == 2, TM_INVALID, "pdist only supports 2D tensors, got: %dD", self->ndim);
    TMI_REQUIRE_PTR(tmi_is_float(self->dtype), TM_INVALID, "pdist only supports floating-point dtypes");
    TMI_REQUIRE_PTR(p >= 0, TM_INVALID, "pdist only supports non-negative p values");
    tm_int n = self->sizes[0];
    tm_tensor *at = tm_triu_indices_full(n, n, 1, TM_I64, -1, self->device, NULL);
    tm_tensor *a = tm_index_select(self, 0, tm_select_int(at, 0, 0)), *b = tm_index_select(self, 0, tm_select_int(at, 0, 1));
    return dim_norm(tm_sub(a, b), -1, p, false);
}
