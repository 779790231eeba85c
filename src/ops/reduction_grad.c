/* Gradients of reductions and scans, written with operators, so that they can be differentiated again. */
#include <math.h>

#include "base/alloc.h"
#include "boxing.h"
#include "compose.h"

tm_tensor *tmi_grad_restore(tm_tensor *grad, const tm_int *sizes, int64_t n, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    return tm_expand(tmi_unreduce(grad, dim, n_dim, keepdim, n), sizes, n);
}

static int64_t reduced_count(const tm_int *sizes, int64_t n, const tm_int *dim, int64_t n_dim)
{
    int64_t count = 1;
    if (!dim || n_dim == 0)
        for (int64_t d = 0; d < n; d++) count *= sizes[d];
    else if (n > 0)
        for (int64_t i = 0; i < n_dim; i++) count *= sizes[tmi_wrapped(dim[i], n)];
    return count;
}

tm_tensor *tmi_grad_mean_dim(tm_tensor *grad, const tm_int *sizes, int64_t n, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    tm_tensor *whole = tmi_grad_restore(grad, sizes, n, dim, n_dim, keepdim);
    return tm_div_scalar(whole, tm_i64(reduced_count(sizes, n, dim, n_dim)));
}

/* ---- products */

/* The product of all others along dim, by running products from both sides: right where elements are zero. */
static tm_tensor *product_of_others(tm_tensor *x, tm_int dim)
{
    tm_int n = x->sizes[dim];
    if (n <= 1) return tm_ones_like(x);
    tm_tensor *one = tm_ones_like(tm_narrow(x, dim, 0, 1));
    tm_tensor *before = tm_cumprod(tm_cat_full((tm_tensor *[]){one, tm_narrow(x, dim, 0, n - 1)}, 2, dim), dim);
    tm_tensor *reversed = tm_flip(tm_narrow(x, dim, 1, n - 1), &dim, 1);
    tm_tensor *after = tm_flip(tm_cumprod(tm_cat_full((tm_tensor *[]){one, reversed}, 2, dim), dim), &dim, 1);
    return tm_mul(before, after);
}

static bool has_zero(tm_tensor *x, bool *out)
{
    tm_scalar v;
    tm_tensor *any = tm_any(tm_eq_scalar(x, tm_i64(0)));
    if (!any || tm_tensor_item(any, &v) != TM_OK) return false;
    *out = v.v.b;
    return true;
}

tm_tensor *tmi_grad_prod(tm_tensor *grad, tm_tensor *self, tm_tensor *result)
{
    if (!grad || !self || !result) return NULL;
    self = tmi_cast(self, result->dtype);
    if (!self || self->ndim == 0) return tm_clone(grad);
    tm_tensor *flat = tm_reshape(self, (tm_int[]){-1}, 1);
    bool zero;
    if (!flat || !has_zero(self, &zero)) return NULL;
    if (!zero) return tm_mul(grad, tm_conj(tm_div(result, self)));
    return tm_reshape(tm_mul(grad, tm_conj(product_of_others(flat, 0))), self->sizes, self->ndim);
}

tm_tensor *tmi_grad_prod_dim(tm_tensor *grad, tm_tensor *self, tm_tensor *result, tm_int dim, bool keepdim)
{
    if (!grad || !self || !result) return NULL;
    self = tmi_cast(self, result->dtype);
    if (!self || self->ndim == 0) return tm_clone(grad);
    dim = tmi_wrapped(dim, self->ndim);
    grad = tmi_unreduce(grad, &dim, 1, keepdim, self->ndim);
    result = tmi_unreduce(result, &dim, 1, keepdim, self->ndim);
    bool zero;
    if (!has_zero(self, &zero)) return NULL;
    return zero ? tm_mul(grad, tm_conj(product_of_others(self, dim))) : tm_mul(grad, tm_conj(tm_div(result, self)));
}

/* With zeros: dx[k] = before[k] * S[k], S[k] = g[k] + x[k + 1] S[k + 1], a recurrence from the end. */
static tm_tensor *cumprod_with_zeros(tm_tensor *grad, tm_tensor *x, tm_int dim)
{
    tm_int n = x->sizes[dim];
    tm_tensor *one = tm_ones_like(tm_narrow(x, dim, 0, 1));
    tm_tensor *before = n > 1 ? tm_cumprod(tm_cat_full((tm_tensor *[]){one, tm_narrow(x, dim, 0, n - 1)}, 2, dim), dim) : one;
    tm_tensor **s = tmi_alloc((size_t)n * sizeof *s);
    if (!s) return NULL;
    s[n - 1] = tm_select_int(grad, dim, n - 1);
    for (tm_int k = n - 2; k >= 0; k--)
        s[k] = tm_add(tm_select_int(grad, dim, k), tm_mul(tm_conj(tm_select_int(x, dim, k + 1)), s[k + 1]));
    tm_tensor *all = tm_stack_full(s, n, dim);
    tmi_free(s, (size_t)n * sizeof *s);
    return tm_mul(tm_conj(before), all);
}

static tm_tensor *reversed_cumsum(tm_tensor *t, tm_int dim)
{
    if (!t || t->numel <= 1 || t->sizes[dim] == 1) return t;
    return tm_flip(tm_cumsum(tm_flip(t, &dim, 1), dim), &dim, 1);
}

tm_tensor *tmi_grad_cumsum(tm_tensor *grad, tm_int dim)
{
    if (!grad || grad->ndim == 0) return grad;
    return reversed_cumsum(grad, tmi_wrapped(dim, grad->ndim));
}

tm_tensor *tmi_grad_cumprod(tm_tensor *grad, tm_tensor *self, tm_tensor *result, tm_int dim)
{
    if (!grad || !self || !result) return NULL;
    if (self->ndim == 0 || self->numel == 0) return grad;
    dim = tmi_wrapped(dim, self->ndim);
    self = tmi_cast(self, result->dtype);
    bool zero;
    if (!has_zero(self, &zero)) return NULL;
    if (self->sizes[dim] == 1) return grad;
    if (zero) return cumprod_with_zeros(grad, self, dim);
    return tm_div(reversed_cumsum(tm_mul(tm_conj(result), grad), dim), tm_conj(self));
}

tm_tensor *tmi_grad_cumextreme(tm_tensor *grad, const tm_int *sizes, int64_t n, tm_tensor *indices, tm_int dim)
{
    if (!grad || n == 0) return grad;
    return tm_scatter_add(tmi_make_zeros_as(grad, sizes, n), dim, indices, grad);
}

static tm_tensor *reversed_logcumsumexp(tm_tensor *t, tm_int dim) { return tm_flip(tm_logcumsumexp(tm_flip(t, &dim, 1), dim), &dim, 1); }

/* Positive and negative gradients apart, each in logarithms. */
tm_tensor *tmi_grad_logcumsumexp(tm_tensor *grad, tm_tensor *self, tm_tensor *result, tm_int dim)
{
    if (!grad || !self || !result) return NULL;
    if (self->ndim == 0 || self->numel == 0) return grad;
    dim = tmi_wrapped(dim, self->ndim);
    tm_tensor *least = tmi_number_as(grad, -INFINITY), *size = tm_log(tm_abs(grad));
    tm_tensor *positive = tm_where_self(tm_gt_scalar(grad, tm_i64(0)), size, least);
    tm_tensor *negative = tm_where_self(tm_lt_scalar(grad, tm_i64(0)), size, least);
    tm_tensor *up = tm_exp(tm_add(reversed_logcumsumexp(tm_sub(positive, result), dim), self));
    tm_tensor *down = tm_exp(tm_add(reversed_logcumsumexp(tm_sub(negative, result), dim), self));
    return tm_sub(up, down);
}

/* ---- maxima */

tm_tensor *tmi_grad_extreme(tm_tensor *grad, tm_tensor *self, tm_tensor *result, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    if (!grad || !self || !result) return NULL;
    grad = tmi_unreduce(grad, dim, n_dim, keepdim, self->ndim);
    result = tmi_unreduce(result, dim, n_dim, keepdim, self->ndim);
    tm_tensor *mask = tm_eq(result, self);
    return tm_mul(tm_div(grad, tmi_sum_to_keep(mask, dim, n_dim)), mask);
}

/* NaN is the largest element where there is one: NaNs share then. */
tm_tensor *tmi_grad_extreme_all(tm_tensor *grad, tm_tensor *self, tm_tensor *result)
{
    if (!grad || !self || !result) return NULL;
    tm_tensor *mask = tm_logical_or(tm_eq(self, result), tm_logical_and(tm_isnan(result), tm_isnan(self)));
    return tm_mul(tm_div(grad, tm_sum(mask)), mask);
}

tm_tensor *tmi_grad_aminmax(tm_tensor *const *grads, int64_t n, tm_tensor *self, tm_tensor *lo, tm_tensor *hi, const tm_int *dim, bool keepdim)
{
    tm_tensor *total = NULL;
    for (int i = 0; i < 2; i++) {
        if (!grads[i]) continue;
        tm_tensor *g = tmi_grad_extreme(grads[i], self, i ? hi : lo, dim, dim ? 1 : 0, keepdim);
        total = total ? tm_add(total, g) : g;
    }
    return total;
}

tm_tensor *tmi_grad_at_index(tm_tensor *grad, const tm_int *sizes, int64_t n, tm_int dim, tm_tensor *indices, bool keepdim)
{
    if (!grad || !indices) return NULL;
    if (n == 0) return grad;
    if (!keepdim) {
        grad = tm_unsqueeze(grad, tmi_wrapped(dim, n));
        indices = tm_unsqueeze(indices, tmi_wrapped(dim, n));
    }
    return tm_scatter_src(tmi_make_zeros_as(grad, sizes, n), dim, indices, grad);
}

/* ---- moments */

static tm_tensor *centred(tm_tensor *self, const tm_int *dim, int64_t n_dim)
{
    return tm_sub(self, tm_mean_dim_full(self, dim, n_dim, true, TM_DTYPE_DEFAULT));
}

tm_tensor *tmi_grad_var(tm_tensor *grad, tm_tensor *self, const tm_int *dim, int64_t n_dim, const tm_scalar *correction, bool keepdim)
{
    if (!grad || !self) return NULL;
    double n = (double)reduced_count(self->sizes, self->ndim, dim, n_dim), rest = n - (correction ? tmi_scalar_f64(*correction) : 1);
    grad = tmi_unreduce(grad, dim, n_dim, keepdim, self->ndim);
    if (rest <= 0) {
        /* the variance is NaN or infinite, and so is its gradient */
        return tm_mul(tm_mul_scalar(grad, tm_f64(INFINITY)), centred(self, dim, n_dim));
    }
    return tm_mul(tm_mul_scalar(grad, tm_f64(2 / rest)), centred(self, dim, n_dim));
}

tm_tensor *tmi_grad_std(tm_tensor *grad, tm_tensor *self, tm_tensor *result, const tm_int *dim, int64_t n_dim, const tm_scalar *correction, bool keepdim)
{
    tm_tensor *scaled = tm_div(grad, tm_mul_scalar(result, tm_i64(2)));
    scaled = tm_masked_fill_scalar(scaled, tm_eq_scalar(result, tm_i64(0)), tm_i64(0));
    return tmi_grad_var(scaled, self, dim, n_dim, correction, keepdim);
}

static tm_tensor *with_mean(tm_tensor *total, tm_tensor *grad, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    if (!grad) return total;
    tm_tensor *g = tmi_grad_mean_dim(grad, self->sizes, self->ndim, dim, n_dim, keepdim);
    return total ? tm_add(total, g) : g;
}

tm_tensor *tmi_grad_var_mean(tm_tensor *const *grads, int64_t n, tm_tensor *self, const tm_int *dim, int64_t n_dim, const tm_scalar *correction, bool keepdim)
{
    if (!self) return NULL;
    tm_tensor *total = grads[0] ? tmi_grad_var(grads[0], self, dim, n_dim, correction, keepdim) : NULL;
    return with_mean(total, grads[1], self, dim, n_dim, keepdim);
}

tm_tensor *tmi_grad_std_mean(tm_tensor *const *grads, int64_t n, tm_tensor *self, tm_tensor *std, const tm_int *dim, int64_t n_dim,
                             const tm_scalar *correction, bool keepdim)
{
    if (!self) return NULL;
    tm_tensor *total = grads[0] ? tmi_grad_std(grads[0], self, std, dim, n_dim, correction, keepdim) : NULL;
    return with_mean(total, grads[1], self, dim, n_dim, keepdim);
}

/* ---- norms */

/* x / norm where the norm is not 0, else 0. */
static tm_tensor *over_norm(tm_tensor *x, tm_tensor *norm)
{
    return tm_masked_fill_scalar(tm_div(x, norm), tm_eq_scalar(norm, tm_i64(0)), tm_i64(0));
}

/* Where |x| is the norm itself (order +-inf): the gradient is shared by equals. */
static tm_tensor *at_extreme(tm_tensor *grad, tm_tensor *self, tm_tensor *norm, const tm_int *dim, int64_t n_dim)
{
    tm_tensor *size = tm_abs(self), *mask = tm_logical_or(tm_eq(size, norm), tm_isnan(size));
    return tm_mul(tm_mul(tm_sgn(self), tm_div(grad, tmi_sum_to_keep(mask, dim, n_dim))), mask);
}

tm_tensor *tmi_grad_vector_norm(tm_tensor *grad, tm_tensor *self, tm_scalar ord, tm_tensor *norm, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    if (!grad || !self || !norm) return NULL;
    double p = tmi_scalar_f64(ord);
    grad = tmi_unreduce(grad, dim, n_dim, keepdim, self->ndim);
    norm = tmi_unreduce(norm, dim, n_dim, keepdim, self->ndim);
    if (p == 0) return tm_zeros_like(self);
    if (p == 1) return tm_mul(tm_sgn(self), grad);
    if (p == 2) return tm_mul(self, over_norm(grad, norm));
    if (isinf(p)) return at_extreme(grad, self, norm, dim, n_dim);
    tm_tensor *size = tm_abs(self), *zero = tm_eq_scalar(self, tm_i64(0));
    if (p < 1) {
        tm_tensor *direction = tm_masked_fill_scalar(tm_mul(tm_sgn(self), tm_pow_tensor_scalar(size, tm_f64(p - 1))), zero, tm_i64(0));
        return tm_mul(tm_mul(direction, grad), tm_pow_tensor_scalar(norm, tm_f64(1 - p)));
    }
    if (p < 2) {
        tm_tensor *direction = tm_mul(tm_sgn(self), tm_pow_tensor_scalar(size, tm_f64(p - 1)));
        return tm_mul(direction, over_norm(grad, tm_pow_tensor_scalar(norm, tm_f64(p - 1))));
    }
    return tm_mul(tm_mul(self, tm_pow_tensor_scalar(size, tm_f64(p - 2))), over_norm(grad, tm_pow_tensor_scalar(norm, tm_f64(p - 1))));
}

tm_tensor *tmi_grad_logsumexp(tm_tensor *grad, tm_tensor *self, tm_tensor *result, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    if (!grad || !self || !result) return NULL;
    grad = tmi_unreduce(grad, dim, n_dim, keepdim, self->ndim);
    result = tmi_unreduce(result, dim, n_dim, keepdim, self->ndim);
    return tm_mul(grad, tm_exp(tm_sub(self, result)));
}
