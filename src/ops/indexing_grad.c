/* Gradients of indexing operators. */
#include "boxing.h"
#include "compose.h"

tm_tensor *tmi_grad_zeros_of(tm_tensor *grad, const tm_int *sizes, int64_t n) { return tmi_make_zeros_as(grad, sizes, n); }

tm_tensor *tmi_grad_gather(tm_tensor *grad, const tm_int *sizes, int64_t n, tm_int dim, tm_tensor *index)
{
    return tm_scatter_add(tmi_make_zeros_as(grad, sizes, n), dim, index, grad);
}

tm_tensor *tmi_grad_index_copied(tm_tensor *grad, tm_int dim, tm_tensor *index, const tm_int *sizes, int64_t n)
{
    if (!grad || !index) return NULL;
    tm_tensor *g = tm_index_select(grad, dim, index->ndim ? index : tm_unsqueeze(index, 0));
    return n ? tm_expand(g, sizes, n) : tm_reshape(g, NULL, 0);
}

tm_tensor *tmi_grad_index_source(tm_tensor *grad, tm_int dim, tm_tensor *index, const tm_int *sizes, int64_t n, tm_scalar alpha)
{
    tm_tensor *g = tmi_grad_index_copied(grad, dim, index, sizes, n);
    return alpha.tag != TM_SCALAR_C128 && tmi_scalar_f64(alpha) == 1 ? g : tm_mul_scalar(g, alpha);
}

/* Each filled slice counts once, however often its index occurs. */
tm_tensor *tmi_grad_index_filled(tm_tensor *grad, tm_int dim, tm_tensor *index)
{
    tm_tensor *once, *inverse, *counts;
    TMI_TRY_PTR(tmo_unique2_full(index, true, false, false, &once, &inverse, &counts));
    return tm_sum(tm_index_select(grad, dim, once));
}

tm_tensor *tmi_grad_index_backward(tm_tensor *grad, const tm_int *sizes, int64_t n, tm_tensor *const *indices, int64_t n_indices)
{
    tm_tensor *zeros = tmi_make_zeros_as(grad, sizes, n);
    return zeros ? tmo_index_set_inplace(zeros, indices, n_indices, grad, true) : NULL;
}

tm_tensor *tmi_grad_index_clear(tm_tensor *grad, tm_tensor *const *indices, int64_t n)
{
    tm_tensor *copy = tm_clone(grad);
    return copy ? tmo_index_set_inplace(copy, indices, n, tmi_number_as(grad, 0), false) : NULL;
}

tm_tensor *tmi_grad_index_values(tm_tensor *grad, tm_tensor *const *indices, int64_t n) { return tmo_index(grad, indices, n); }

tm_tensor *tmi_grad_masked_select(tm_tensor *grad, const tm_int *sizes, int64_t n, tm_tensor *mask)
{
    if (!grad || !mask) return NULL;
    int ndim;
    tm_int both[TMI_MAX_DIMS];
    TMI_TRY_PTR(tmi_broadcast_sizes((int)n, sizes, mask->ndim, mask->sizes, &ndim, both));
    return tm_masked_scatter(tmi_make_zeros_as(grad, both, ndim), mask, grad);
}

/* The gradient at the set flags, in order, then zeros for elements of source that were not used. */
tm_tensor *tmi_grad_masked_scatter_source(tm_tensor *grad, tm_tensor *mask, const tm_int *sizes, int64_t n)
{
    tm_int total = 1;
    for (int64_t d = 0; d < n; d++) total *= sizes[d];
    tm_tensor *used = tm_masked_select(grad, mask);
    if (!used) return NULL;
    tm_int rest = total - used->numel;
    if (rest > 0) used = tm_cat((tm_tensor *[]){used, tmi_make_zeros_as(grad, &rest, 1)}, 2);
    return tm_reshape(used, sizes, n);
}

tm_tensor *tmi_grad_embedding_second(tm_tensor *gg, tm_tensor *indices, tm_int padding_idx, bool scale_grad_by_freq)
{
    TMI_REQUIRE_PTR(!scale_grad_by_freq, TM_INVALID, "double backward is not supported for scale_grad_by_freq");
    if (!gg || !indices) return NULL;
    tm_tensor *rows = tm_index_select(gg, 0, tm_reshape(indices, (tm_int[]){-1}, 1));
    if (padding_idx >= 0) rows = tm_masked_fill_scalar(rows, tm_unsqueeze(tm_eq_scalar(tm_reshape(indices, (tm_int[]){-1}, 1), tm_i64(padding_idx)), 1), tm_i64(0));
    tm_int sizes[TMI_MAX_DIMS];
    memcpy(sizes, indices->sizes, (size_t)indices->ndim * sizeof *sizes);
    sizes[indices->ndim] = gg->sizes[1];
    return tm_reshape(rows, sizes, indices->ndim + 1);
}

/* ---- scatter_reduce and index_reduce: both as a walk by index along dim */

typedef struct placing {
    bool flat;              /* index_reduce: a 1-D index */
    tm_int dim;
    tm_tensor *index;
} placing;

static tm_tensor *pick(const placing *p, tm_tensor *t) { return p->flat ? tm_index_select(t, p->dim, p->index) : tm_gather(t, p->dim, p->index); }
static tm_tensor *add_at(const placing *p, tm_tensor *to, tm_tensor *what)
{
    return p->flat ? tm_index_add(to, p->dim, p->index, what) : tm_scatter_add(to, p->dim, p->index, what);
}
static tm_tensor *fill_at(const placing *p, tm_tensor *to, double value)
{
    return p->flat ? tm_index_fill_int_scalar(to, p->dim, p->index, tm_f64(value)) : tm_scatter_value(to, p->dim, p->index, tm_f64(value));
}

/* Elements of src that take part: the part of src that the index covers. */
static tm_tensor *covered(const placing *p, tm_tensor *src)
{
    for (int d = 0; src && !p->flat && d < src->ndim; d++)
        if (src->sizes[d] != p->index->sizes[d]) src = tm_narrow(src, d, 0, p->index->sizes[d]);
    return src;
}

/* Back to src's sizes: zeros where the index did not reach. */
static tm_tensor *uncovered(const placing *p, tm_tensor *g, const tm_tensor *src)
{
    bool same = true;
    for (int d = 0; g && d < src->ndim; d++) same &= g->sizes[d] == src->sizes[d];
    if (!g || same) return g;
    tm_int pad[2 * TMI_MAX_DIMS];
    for (int d = 0; d < src->ndim; d++) {
        pad[2 * (src->ndim - 1 - d)] = 0;
        pad[2 * (src->ndim - 1 - d) + 1] = src->sizes[d] - g->sizes[d];
    }
    return tm_constant_pad_nd(g, pad, 2 * src->ndim);
}

static void prod_grads(const placing *p, tm_tensor *grad, tm_tensor *self, tm_tensor *src, tm_tensor *result, bool include_self, tm_tensor **out)
{
    tm_tensor *self_zero = tm_eq_scalar(self, tm_i64(0)), *masked_self = tm_masked_fill_scalar(self, self_zero, tm_i64(1));
    tm_tensor *whole = include_self ? masked_self : fill_at(p, masked_self, 1);
    tm_tensor *src_zero = tm_eq_scalar(src, tm_i64(0));
    tm_tensor *zeros_at = add_at(p, include_self ? tmi_cast(self_zero, TM_I64) : fill_at(p, tmi_cast(self_zero, TM_I64), 0), tmi_cast(src_zero, TM_I64));
    tm_tensor *safe = tm_masked_fill_scalar(src, src_zero, tm_i64(1));
    /* the product of all that are not zero */
    tm_tensor *nonzero = p->flat ? tm_index_reduce_full(whole, p->dim, p->index, safe, "prod", true)
                                 : tm_scatter_reduce_two_full(whole, p->dim, p->index, safe, "prod", true);
    tm_tensor *count = pick(p, zeros_at), *g = pick(p, grad);
    tm_tensor *only = tm_logical_and(src_zero, tm_eq_scalar(count, tm_i64(1)));
    tm_tensor *others = tm_where_self(only, pick(p, nonzero), tm_div(pick(p, result), safe));
    out[1] = tm_mul(g, tm_where_self(tm_logical_and(src_zero, tm_logical_not(only)), tm_zeros_like(src), others));
    tm_tensor *self_only = tm_logical_and(self_zero, tm_eq_scalar(zeros_at, tm_i64(1)));
    tm_tensor *self_others = tm_where_self(self_only, nonzero, tm_div(result, masked_self));
    out[0] = tm_mul(grad, tm_where_self(tm_logical_and(self_zero, tm_logical_not(self_only)), tm_zeros_like(self), self_others));
}

static void mean_grads(const placing *p, tm_tensor *grad, tm_tensor *src, bool include_self, tm_tensor **out)
{
    tm_tensor *ones = tm_ones_like(src), *start = include_self ? tm_ones_like(grad) : tm_zeros_like(grad);
    tm_tensor *count = tm_clamp_min(add_at(p, start, ones), tm_i64(1));
    out[0] = tm_div(grad, count);
    out[1] = tm_div(pick(p, grad), pick(p, count));
}

static void extreme_grads(const placing *p, tm_tensor *grad, tm_tensor *self, tm_tensor *src, tm_tensor *result, bool include_self, tm_tensor **out)
{
    tm_tensor *self_is = tmi_cast(tm_eq(self, result), (tm_dtype)grad->dtype);
    tm_tensor *src_is = tmi_cast(tm_eq(src, pick(p, result)), (tm_dtype)grad->dtype);
    tm_tensor *start = include_self ? self_is : fill_at(p, self_is, 0);
    tm_tensor *share = tm_div(grad, tm_clamp_min(add_at(p, start, src_is), tm_i64(1)));
    out[0] = tm_mul(self_is, share);
    out[1] = tm_mul(src_is, pick(p, share));
}

static tm_status reduce_grads(const placing *p, tm_tensor **out, tm_tensor *grad, tm_tensor *self, tm_tensor *src, const char *reduce, bool include_self,
                              tm_tensor *result)
{
    if (!grad || !self || !src || !p->index) return tm_error_status();
    if (p->index->numel == 0) {
        out[0] = grad;
        out[1] = tm_zeros_like(src);
        return tm_error_status();
    }
    tm_tensor *part = covered(p, src);
    if (!strcmp(reduce, "sum")) {
        out[0] = grad;
        out[1] = pick(p, grad);
    } else if (!strcmp(reduce, "prod")) {
        prod_grads(p, grad, self, part, result, include_self, out);
    } else if (!strcmp(reduce, "mean")) {
        mean_grads(p, grad, part, include_self, out);
    } else {
        extreme_grads(p, grad, self, part, result, include_self, out);
    }
    if (!include_self) out[0] = fill_at(p, out[0], 0);
    out[1] = uncovered(p, out[1], src);
    return tm_error_status();
}

tm_status tmi_grad_scatter_reduce(tm_tensor **out, tm_tensor *grad, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *src, const char *reduce,
                                  bool include_self, tm_tensor *result)
{
    placing p = {false, dim, index};
    return reduce_grads(&p, out, grad, self, src, reduce, include_self, result);
}
tm_status tmi_grad_index_reduce(tm_tensor **out, tm_tensor *grad, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *source, const char *reduce,
                                bool include_self, tm_tensor *result)
{
    placing p = {true, dim, index};
    return reduce_grads(&p, out, grad, self, source, reduce, include_self, result);
}
