/* Indexing: shape rules and composite bodies. Gradients are in indexing_grad.c. */
#include "compose.h"
#include "index_layout.h"
#include "ops/shapes.h"

/* ---------------------------------------------------------------- shape rules */

static tm_status integer_index(const char *op, const tm_tensor *index)
{
    TMI_REQUIRE(index->dtype == TM_I64 || index->dtype == TM_I32, TM_INVALID, "%s(): Expected dtype int32/int64 for index", op);
    return TM_OK;
}

static int64_t at_least_1(const tm_tensor *t) { return t->ndim ? t->ndim : 1; }
static int64_t size_or_1(const tm_tensor *t, int d) { return t->ndim ? t->sizes[d] : 1; }

/* index fits into t in every dim but `dim` (-1: in every dim). */
static bool fits_in(const tm_tensor *index, const tm_tensor *t, int64_t dim)
{
    for (int d = 0; d < at_least_1(index); d++)
        if (d != dim && size_or_1(index, d) > size_or_1(t, d)) return false;
    return true;
}

tm_status tmi_shape_gather(tmi_meta *m, tm_tensor *self, tm_int dim, tm_tensor *index, bool sparse_grad)
{
    TMI_TRY(tmi_wrap_dim(&dim, self->ndim));
    if (index->numel) {
        TMI_TRY(integer_index("gather", index));
        TMI_REQUIRE(at_least_1(self) == at_least_1(index), TM_INVALID, "Index tensor must have the same number of dimensions as input tensor");
        for (int d = 0; d < at_least_1(self); d++)
            TMI_REQUIRE(d == dim || size_or_1(index, d) <= size_or_1(self, d), TM_INVALID,
                        "Size does not match at dimension %d expected index to be no larger than self apart from dimension %lld", d, (long long)dim);
    }
    tmi_meta_set(m, index->ndim, index->sizes);
    return TM_OK;
}

static tm_status scatter_shape(tmi_meta *m, const char *op, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *src)
{
    TMI_TRY(tmi_wrap_dim(&dim, self->ndim));
    if (index->numel) TMI_TRY(integer_index(op, index));
    TMI_REQUIRE(!src || src->dtype == self->dtype, TM_INVALID, "%s(): Expected self.dtype to be equal to src.dtype", op);
    if (index->numel) {
        TMI_REQUIRE(at_least_1(self) == at_least_1(index), TM_INVALID, "Index tensor must have the same number of dimensions as self tensor");
        TMI_REQUIRE(!src || at_least_1(src) == at_least_1(index), TM_INVALID, "Index tensor must have the same number of dimensions as src tensor");
        char si[128], ss[128], sr[128];
        bool good = fits_in(index, self, dim) && (!src || fits_in(index, src, -1));
        if (!good) {
            tmi_format_sizes(si, sizeof si, index->ndim, index->sizes);
            tmi_format_sizes(ss, sizeof ss, self->ndim, self->sizes);
            if (src) tmi_format_sizes(sr, sizeof sr, src->ndim, src->sizes);
            return tmi_fail(TM_INVALID, "Expected index %s to be no larger than self %s apart from dimension %lld%s%s", si, ss, (long long)dim,
                            src ? " and to be no larger size than src " : "", src ? sr : "");
        }
    }
    return tmi_shape_same(m, self);
}

static tm_status check_named(const char *reduce)
{
    TMI_REQUIRE(!strcmp(reduce, "add") || !strcmp(reduce, "multiply"), TM_INVALID, "reduce argument must be either add or multiply.");
    return TM_OK;
}
static tm_status check_reduce(const char *op, const char *reduce, bool sum)
{
    static const char *const names[] = {"prod", "mean", "amax", "amin"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(reduce, names[i])) return TM_OK;
    if (sum && !strcmp(reduce, "sum")) return TM_OK;
    if (sum) return tmi_fail(TM_INVALID, "reduce argument must be either sum, prod, mean, amax or amin, got %s.", reduce);
    return tmi_fail(TM_INVALID, "%s(): Expected reduce to be one of prod, mean, amax or amin but got %s.", op, reduce);
}

tm_status tmi_shape_scatter_src(tmi_meta *m, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *src)
{
    return scatter_shape(m, "scatter", self, dim, index, src);
}
tm_status tmi_shape_scatter_value(tmi_meta *m, tm_tensor *self, tm_int dim, tm_tensor *index, tm_scalar value)
{
    return scatter_shape(m, "scatter", self, dim, index, NULL);
}
tm_status tmi_shape_scatter_reduce(tmi_meta *m, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *src, const char *reduce)
{
    TMI_TRY(check_named(reduce));
    return scatter_shape(m, "scatter", self, dim, index, src);
}
tm_status tmi_shape_scatter_value_reduce(tmi_meta *m, tm_tensor *self, tm_int dim, tm_tensor *index, tm_scalar value, const char *reduce)
{
    TMI_TRY(check_named(reduce));
    return scatter_shape(m, "scatter", self, dim, index, NULL);
}
tm_status tmi_shape_scatter_add(tmi_meta *m, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *src)
{
    return scatter_shape(m, "scatter_add", self, dim, index, src);
}
tm_status tmi_shape_scatter_reduce_two(tmi_meta *m, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *src, const char *reduce, bool include_self)
{
    TMI_TRY(check_reduce("scatter_reduce", reduce, true));
    return scatter_shape(m, "scatter_reduce", self, dim, index, src);
}

tm_status tmi_shape_index_select(tmi_meta *m, tm_tensor *self, tm_int dim, tm_tensor *index)
{
    TMI_TRY(tmi_wrap_dim(&dim, self->ndim));
    TMI_REQUIRE(index->ndim <= 1, TM_INDEX, "index_select(): Index is supposed to be a vector, but got dim: %d with type: %s and size: ?", index->ndim,
                tmi_dtypes[index->dtype].type_name);
    TMI_REQUIRE(index->dtype == TM_I64 || index->dtype == TM_I32, TM_INVALID, "index_select(): Expected dtype int32 or int64 for index but got: %s",
                tmi_dtypes[index->dtype].type_name);
    TMI_REQUIRE(self->ndim || index->numel == 1, TM_INVALID, "index_select(): Index to scalar can have only 1 value, got %lld value(s)", (long long)index->numel);
    tmi_meta_set(m, self->ndim, self->sizes);
    if (self->ndim) m->sizes[dim] = index->numel;
    return TM_OK;
}

/* source of index_add, index_copy ...: self's sizes, but the index's length along dim. */
static tm_status flat_source(tmi_meta *m, const char *op, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *source)
{
    TMI_TRY(tmi_wrap_dim(&dim, self->ndim));
    TMI_REQUIRE(index->ndim <= 1, TM_INDEX, "%s: Index is supposed to be 1-dimensional, but got %d", op, index->ndim);
    TMI_REQUIRE(index->dtype == TM_I64 || (index->dtype == TM_I32 && strcmp(op, "index_copy_()")), TM_INVALID, "%s: Expected dtype int32/int64 for index", op);
    TMI_REQUIRE(self->dtype == source->dtype, TM_INVALID, "%s: self and source expected to have the same dtype, but got (self) %s and (source) %s", op,
                tmi_dtypes[self->dtype].type_name, tmi_dtypes[source->dtype].type_name);
    TMI_REQUIRE(dim == 0 || dim < source->ndim, TM_INDEX, "%s: Indexing dim %lld is out of bounds of the source tensor with dim %d", op, (long long)dim,
                source->ndim);
    TMI_REQUIRE(source->ndim || index->numel == 1, TM_INDEX, "%s: When source is scalar, index should have one element (got %lld)", op, (long long)index->numel);
    TMI_REQUIRE(source->ndim == self->ndim || !source->ndim || !self->ndim, strcmp(op, "index_add_()") ? TM_INDEX : TM_INVALID,
                "%s: When source and destination are not scalars, their dimensionality must match. Source dimensionality (%d), destination "
                "dimensionality (%d)", op, source->ndim, self->ndim);
    TMI_REQUIRE(!source->ndim || source->sizes[dim] == index->numel, TM_INDEX, "%s: Number of indices (%lld) should be equal to source.size(dim): (%lld), for dim: %lld",
                op, (long long)index->numel, (long long)size_or_1(source, (int)dim), (long long)dim);
    if (source->ndim && self->ndim)
        for (int d = 0; d < self->ndim; d++)
            TMI_REQUIRE(d == dim || self->sizes[d] == source->sizes[d], TM_INVALID, "%s: source tensor shape must match self tensor shape, excluding the "
                        "specified dimension", op);
    if (self->ndim && !source->ndim)
        for (int d = 0; d < self->ndim; d++)
            TMI_REQUIRE(d == dim || self->sizes[d] == 1, TM_INVALID, "%s: source tensor shape must match self tensor shape, excluding the specified dimension", op);
    return tmi_shape_same(m, self);
}
tm_status tmi_shape_index_add(tmi_meta *m, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *source, tm_scalar alpha)
{
    return flat_source(m, "index_add_()", self, dim, index, source);
}
tm_status tmi_shape_index_copy(tmi_meta *m, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *source)
{
    return flat_source(m, "index_copy_()", self, dim, index, source);
}
tm_status tmi_shape_index_reduce(tmi_meta *m, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *source, const char *reduce, bool include_self)
{
    TMI_TRY(check_reduce("index_reduce", reduce, false));
    return flat_source(m, "index_reduce_()", self, dim, index, source);
}

static tm_status fill_shape(tmi_meta *m, tm_tensor *self, tm_int dim, tm_tensor *index, bool complex_value)
{
    TMI_TRY(tmi_wrap_dim(&dim, self->ndim));
    TMI_REQUIRE(index->dtype == TM_I64 || index->dtype == TM_I32, TM_INDEX, "index_fill_(): Expected dtype int64 for index.");
    TMI_REQUIRE(index->ndim <= 1, TM_INVALID, "Index has to be a vector/scalar");
    TMI_REQUIRE(!complex_value || tmi_is_complex(self->dtype), TM_INVALID, "index_fill_(): Converting complex Scalar to non-complex type is not supported");
    return tmi_shape_same(m, self);
}
tm_status tmi_shape_index_fill_int_Scalar(tmi_meta *m, tm_tensor *self, tm_int dim, tm_tensor *index, tm_scalar value)
{
    return fill_shape(m, self, dim, index, value.tag == TM_SCALAR_C128);
}
tm_status tmi_shape_index_fill_int_Tensor(tmi_meta *m, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *value)
{
    TMI_REQUIRE(value->ndim == 0, TM_INVALID, "Only supports 0-dimension value tensor but got tensor with %d dimensions.", value->ndim);
    return fill_shape(m, self, dim, index, tmi_is_complex(value->dtype));
}

tm_status tmi_shape__index(tmi_meta *m, tm_tensor *self, tm_tensor *const *indices, int64_t n)
{
    tmi_index_layout l;
    TMI_TRY(tmi_index_layout_of(&l, self, indices, n));
    m->ndim = tmi_index_sizes(&l, m->sizes);
    TMI_REQUIRE(m->ndim <= TMI_MAX_DIMS, TM_INVALID, "a tensor can have at most %d dimensions", TMI_MAX_DIMS);
    return TM_OK;
}
tm_status tmi_shape__index_set_(tmi_meta *m, tm_tensor *self, tm_tensor *const *indices, int64_t n, tm_tensor *values, bool accumulate)
{
    TMI_REQUIRE(self->dtype == values->dtype, TM_INVALID, "Index put requires the source and destination dtypes match, got %s for the destination and %s "
                "for the source.", tmi_dtypes[self->dtype].type_name, tmi_dtypes[values->dtype].type_name);
    return tmi_shape_same(m, self);
}

tm_status tmi_shape_masked_scatter(tmi_meta *m, tm_tensor *self, tm_tensor *mask, tm_tensor *source)
{
    TMI_REQUIRE(self->dtype == source->dtype, TM_INVALID, "masked_scatter: expected self and source to have same dtypes but got %s and %s",
                tmi_dtypes[self->dtype].type_name, tmi_dtypes[source->dtype].type_name);
    return tmi_shape_broadcast(m, 2, (const tm_tensor *[]){self, mask});
}

tm_status tmi_shape_take(tmi_meta *m, tm_tensor *self, tm_tensor *index)
{
    TMI_REQUIRE(index->dtype == TM_I64, TM_INDEX, "take(): Expected a long tensor for index, but got %s", tmi_dtypes[index->dtype].type_name);
    TMI_REQUIRE(self->numel || !index->numel, TM_INDEX, "take(): tried to take from an empty tensor");
    tmi_meta_set(m, index->ndim, index->sizes);
    return TM_OK;
}

tm_status tmi_shape_nonzero_static(tmi_meta *m, tm_tensor *self, tm_int size, tm_int fill_value)
{
    TMI_REQUIRE(size >= 0, TM_INVALID, "nonzero_static: 'size' must be an non-negative integer");
    tmi_meta_set(m, 2, (tm_int[]){size, self->ndim});
    m->dtype = TM_I64;
    return TM_OK;
}

tm_status tmi_shape_embedding(tmi_meta *m, tm_tensor *weight, tm_tensor *indices, tm_int padding_idx, bool scale_grad_by_freq, bool sparse)
{
    TMI_REQUIRE(weight->ndim == 2, TM_INVALID, "'weight' must be 2-D");
    TMI_REQUIRE(indices->dtype == TM_I64 || indices->dtype == TM_I32, TM_INVALID,
                "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.%sTensor instead "
                "(while checking arguments for embedding)", tmi_dtypes[indices->dtype].type_name);
    tmi_meta_set(m, indices->ndim, indices->sizes);
    TMI_REQUIRE(indices->ndim < TMI_MAX_DIMS, TM_INVALID, "a tensor can have at most %d dimensions", TMI_MAX_DIMS);
    m->sizes[m->ndim++] = weight->sizes[1];
    return TM_OK;
}
tm_status tmi_shape_embedding_dense_backward(tmi_meta *m, tm_tensor *grad, tm_tensor *indices, tm_int num_weights, tm_int padding_idx, bool scale)
{
    TMI_REQUIRE(grad->ndim >= 1, TM_INVALID, "embedding_dense_backward: the gradient has no row dim");
    tmi_meta_set(m, 2, (tm_int[]){num_weights, grad->sizes[grad->ndim - 1]});
    return TM_OK;
}

/* ---------------------------------------------------------------- advanced indexing */

typedef struct expanded {
    tm_tensor *t[TMI_MAX_DIMS];
    int64_t n;
} expanded;

static tm_status mask_mismatch(const tm_tensor *mask, int64_t at, const tm_tensor *self)
{
    char have[128], want[128];
    tmi_format_sizes(have, sizeof have, mask->ndim, mask->sizes);
    tmi_format_sizes(want, sizeof want, self->ndim, self->sizes);
    return tmi_fail(TM_INDEX, "The shape of the mask %s at index %lld does not match the shape of the indexed tensor %s at index %lld", have, (long long)at,
                    want, (long long)at);
}

/* Masks become the coordinates of what they select, one integer tensor per dim of the mask. */
static tm_status add_mask(expanded *e, tm_tensor *mask, const tm_tensor *self)
{
    TMI_REQUIRE(e->n + mask->ndim <= self->ndim, TM_INDEX, "too many indices for tensor of dimension %d", self->ndim);
    for (int d = 0; d < mask->ndim; d++)
        if (mask->sizes[d] != self->sizes[e->n + d]) {
            char have[128], want[128];
            tmi_format_sizes(have, sizeof have, mask->ndim, mask->sizes);
            tmi_format_sizes(want, sizeof want, self->ndim, self->sizes);
            return tmi_fail(TM_INDEX, "The shape of the mask %s at index %d does not match the shape of the indexed tensor %s at index %lld", have, d, want,
                            (long long)(e->n + d));
        }
    tm_tensor *where = tm_nonzero(mask);
    for (int d = 0; where && d < mask->ndim; d++) e->t[e->n++] = tm_select_int(where, 1, d);
    return tm_error_status();
}

static tm_status expand_masks(expanded *e, tm_tensor *const *indices, int64_t n, const tm_tensor *self)
{
    e->n = 0;
    for (int64_t i = 0; i < n; i++) {
        tm_tensor *t = indices[i];
        bool mask = t && (t->dtype == TM_BOOL || t->dtype == TM_U8);
        TMI_REQUIRE(!t || mask || t->dtype == TM_I64 || t->dtype == TM_I32, TM_INDEX, "tensors used as indices must be long, int, byte or bool tensors");
        TMI_REQUIRE(e->n < TMI_MAX_DIMS, TM_INDEX, "too many indices");
        if (mask && t->ndim > 0) TMI_TRY(add_mask(e, t, self));
        else if (mask) TMI_TRY(mask_mismatch(t, i, self));
        else e->t[e->n++] = t;
    }
    while (e->n > 0 && !e->t[e->n - 1]) e->n--;
    TMI_REQUIRE(e->n <= self->ndim, TM_INDEX, "too many indices for tensor of dimension %d (got %lld)", self->ndim, (long long)e->n);
    return TM_OK;
}

/* A 0-d mask adds a dim of size 1 or 0 in front: x[True] is x[None], x[False] is empty. */
static bool scalar_mask(tm_tensor *const *indices, int64_t n) { return n == 1 && indices[0] && indices[0]->ndim == 0 && (indices[0]->dtype == TM_BOOL || indices[0]->dtype == TM_U8); }

static tm_tensor *scalar_mask_index(tm_tensor *mask) { return tm_select_int(tm_nonzero(tm_unsqueeze(mask, 0)), 1, 0); }

tm_tensor *tmi_index(tm_tensor *self, tm_tensor *const *indices, int64_t n)
{
    if (scalar_mask(indices, n)) {
        tm_tensor *at = scalar_mask_index(indices[0]);
        return tmo_index(tm_unsqueeze(self, 0), &at, 1);
    }
    expanded e;
    TMI_TRY_PTR(expand_masks(&e, indices, n, self));
    return tmo_index(self, e.t, e.n);
}

static bool one_whole_mask(const tm_tensor *self, tm_tensor *const *indices, int64_t n)
{
    return n == 1 && indices[0] && indices[0]->dtype == TM_BOOL && indices[0]->ndim == self->ndim && self->ndim > 0 &&
           memcmp(indices[0]->sizes, self->sizes, (size_t)self->ndim * sizeof *self->sizes) == 0;
}

tm_tensor *tmi_index_put(tm_tensor *self, tm_tensor *const *indices, int64_t n, tm_tensor *values, bool accumulate)
{
    if (!accumulate && values->numel == 1 && values->ndim == 0 && values->dtype == self->dtype && one_whole_mask(self, indices, n))
        return tm_masked_fill_inplace(self, indices[0], values);
    if (scalar_mask(indices, n)) {
        tm_tensor *at = scalar_mask_index(indices[0]);
        tmo_index_set_inplace(tm_unsqueeze(self, 0), &at, 1, values, accumulate);
        return tm_error_status() == TM_OK ? self : NULL;
    }
    expanded e;
    TMI_TRY_PTR(expand_masks(&e, indices, n, self));
    return tmo_index_set_inplace(self, e.t, e.n, values, accumulate);
}
tm_tensor *tmi_index_put_impl(tm_tensor *self, tm_tensor *const *indices, int64_t n, tm_tensor *values, bool accumulate, bool unsafe)
{
    return tmi_index_put(self, indices, n, values, accumulate);
}
tm_tensor *tmi_index_put_copy(tm_tensor *self, tm_tensor *const *indices, int64_t n, tm_tensor *values, bool accumulate)
{
    tm_tensor *copy = tm_clone(self);
    return copy ? tmi_index_put(copy, indices, n, values, accumulate) : NULL;
}

/* ---------------------------------------------------------------- other bodies */

/* Negative indices count from the end. */
static tm_tensor *from_the_start(tm_tensor *indices, tm_int size)
{
    return tm_where_self(tm_lt_scalar(indices, tm_i64(0)), tm_add_scalar(indices, tm_i64(size)), indices);
}

tm_tensor *tmi_take_along_dim(tm_tensor *self, tm_tensor *indices, const tm_int *dim)
{
    TMI_REQUIRE_PTR(indices->dtype == TM_I64, TM_INVALID, "torch.take_along_dim(): dtype of indices should be Long but got %s. Are you passing a boolean or float mask?",
                    tmi_dtypes[indices->dtype].type_name);
    if (!dim) {
        tm_tensor *flat = tm_reshape(indices, (tm_int[]){-1}, 1);
        return tm_gather(tm_reshape(self, (tm_int[]){-1}, 1), 0, from_the_start(flat, self->numel));
    }
    TMI_REQUIRE_PTR(self->ndim == indices->ndim, TM_INVALID, "torch.take_along_dim(): input and indices should have the same number of dimensions, but got %d "
                    "dimensions for input, and %d dimensions for indices", self->ndim, indices->ndim);
    tm_int d = *dim, of_self[TMI_MAX_DIMS], of_index[TMI_MAX_DIMS], both[TMI_MAX_DIMS];
    TMI_TRY_PTR(tmi_wrap_dim(&d, self->ndim));
    int n;
    for (int i = 0; i < self->ndim; i++) {
        of_self[i] = i == d ? 1 : self->sizes[i];
        of_index[i] = i == d ? 1 : indices->sizes[i];
    }
    TMI_TRY_PTR(tmi_broadcast_sizes(self->ndim, of_self, self->ndim, of_index, &n, both));
    memcpy(of_self, both, sizeof of_self);
    memcpy(of_index, both, sizeof of_index);
    if (self->ndim) {
        of_self[d] = self->sizes[d];
        of_index[d] = indices->sizes[d];
    }
    tm_tensor *at = from_the_start(tm_expand(indices, of_index, self->ndim), self->ndim ? self->sizes[d] : 1);
    return tm_gather(tm_expand(self, of_self, self->ndim), d, at);
}

tm_tensor_list *tmi_nonzero_numpy(tm_tensor *self)
{
    tm_tensor *t = self->ndim ? self : tm_unsqueeze(self, 0);
    return t ? tm_unbind_int_full(tm_nonzero(t), 1) : NULL;
}
tm_tensor *tmi_argwhere(tm_tensor *self) { return tm_nonzero(self); }

tm_tensor *tmi_one_hot(tm_tensor *self, tm_int num_classes)
{
    TMI_REQUIRE_PTR(self->dtype == TM_I64, TM_INVALID, "one_hot is only applicable to index tensor of type LongTensor.");
    tm_int sizes[TMI_MAX_DIMS];
    memcpy(sizes, self->sizes, (size_t)self->ndim * sizeof *sizes);
    if (self->numel == 0) {
        TMI_REQUIRE_PTR(num_classes > 0, TM_INVALID, "Can not infer total number of classes from empty tensor.");
    } else {
        tm_scalar lo, hi;
        TMI_TRY_PTR(tm_tensor_item(tm_min(self), &lo));
        TMI_TRY_PTR(tm_tensor_item(tm_max(self), &hi));
        TMI_REQUIRE_PTR(lo.v.i >= 0, TM_INVALID, "Class values must be non-negative.");
        if (num_classes == -1) num_classes = hi.v.i + 1;
        TMI_REQUIRE_PTR(hi.v.i < num_classes, TM_INVALID, "Class values must be smaller than num_classes.");
    }
    TMI_REQUIRE_PTR(num_classes > 0, TM_INVALID, "num_classes should be positive");
    sizes[self->ndim] = num_classes;
    tm_tensor *zeros = tmi_make_zeros(sizes, self->ndim + 1, TM_I64, self->device);
    return tm_scatter_value(zeros, -1, tm_unsqueeze(self, -1), tm_i64(1));
}
