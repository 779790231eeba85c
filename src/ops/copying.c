/* Copies and conversions. copy_ is the one operator that converts; clone keeps the memory order. */
#include "boxing.h"
#include "op_bodies.h"
#include "resize.h"
#include "shapes.h"

/* ---------------------------------------------------------------- shape rules */

static tm_status broadcasts_to(const tm_tensor *self, const tm_tensor *src)
{
    int extra = src->ndim - self->ndim;
    for (int i = 0; i < src->ndim; i++) {
        int64_t have = src->sizes[i], want = i < extra ? 1 : self->sizes[i - extra];
        if (have == want || (have == 1 && i >= extra)) continue;
        char a[256], b[256];
        tmi_format_sizes(a, sizeof a, self->ndim, self->sizes);
        tmi_format_sizes(b, sizeof b, src->ndim, src->sizes);
        if (i < extra)
            return tmi_fail(TM_SHAPE, "output with shape %s doesn't match the broadcast shape %s", a, b);
        return tmi_fail(TM_SHAPE, "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d", (long long)want,
                        (long long)have, i - extra);
    }
    return TM_OK;
}

tm_status tmi_shape_copy_(tmi_meta *m, tm_tensor *self, tm_tensor *src, bool non_blocking)
{
    (void)non_blocking;
    TMI_TRY(broadcasts_to(self, src));
    m->dtype = self->dtype;
    return tmi_shape_same(m, self);
}

tm_status tmi_shape_clone(tmi_meta *m, tm_tensor *self, int format)
{
    if (format < 0 || format == TM_PRESERVE) return tmi_shape_same(m, self);
    tmi_meta_set(m, self->ndim, self->sizes);
    if (format == TM_CONTIGUOUS) return TM_OK;
    int want = format == TM_CHANNELS_LAST ? 4 : 5;
    TMI_REQUIRE(self->ndim == want, TM_INVALID, "required rank %d tensor to use %s format", want, want == 4 ? "channels_last" : "channels_last_3d");
    m->contiguous = false;
    tm_int step = self->sizes[1];
    m->strides[1] = 1;
    for (int i = want - 1; i >= 2; i--) {
        m->strides[i] = step;
        step *= self->sizes[i];
    }
    m->strides[0] = step;
    return TM_OK;
}

tm_status tmi_shape_fill__Tensor(tmi_meta *m, tm_tensor *self, tm_tensor *value)
{
    TMI_REQUIRE(value->ndim == 0, TM_INVALID, "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.", value->ndim);
    return tmi_shape_same(m, self);
}

/* ---------------------------------------------------------------- conversions */

tm_tensor *tmi_contiguous_op(tm_tensor *self, int format)
{
    TMI_REQUIRE_PTR(format != TM_PRESERVE, TM_INVALID, "preserve memory format is unsupported by the contiguous operator");
    return tmi_is_contiguous_as(self, (tm_memory_format)format) ? self : tm_clone_full(self, format);
}

tm_tensor *tmi_to_copy(tm_tensor *self, tm_dtype dtype, int layout, tm_device device, const bool *pin, bool non_blocking, int format)
{
    tm_tensor *made = tm_empty_like_full(self, dtype, layout, device, pin, format);
    return tm_copy_inplace_full(made, self, non_blocking);
}

tm_tensor *tmi_grad_to_copy_backward(tm_tensor *grad, tm_dtype dtype, tm_device device)
{
    return grad ? tm_to_dtype_layout_full(grad, dtype, -1, device, NULL, false, false, -1) : NULL;
}

tm_tensor *tmi_to_options(tm_tensor *self, tm_dtype dtype, int layout, tm_device device, const bool *pin, bool non_blocking, bool copy, int format)
{
    bool same = (dtype == TM_DTYPE_DEFAULT || dtype == (tm_dtype)self->dtype) && (device.type == TM_DEVICE_DEFAULT || device.type == self->device.type) &&
                (format < 0 || format == TM_PRESERVE || tmi_is_contiguous_as(self, (tm_memory_format)format));
    if (same && !copy) return self;
    return tmo_to_copy_full(self, dtype, layout, device, pin, non_blocking, format);
}

tm_tensor *tmi_to_dtype(tm_tensor *self, tm_dtype dtype, bool non_blocking, bool copy, int format)
{
    return tmi_to_options(self, dtype, -1, TM_NO_DEVICE, NULL, non_blocking, copy, format);
}

tm_tensor *tmi_type_as(tm_tensor *self, tm_tensor *other)
{
    return tmi_to_options(self, other->dtype, -1, other->device, NULL, false, false, -1);
}

/* ---------------------------------------------------------------- fills and sizes */

tm_tensor *tmi_filled(tm_tensor *self, tm_scalar value) { return tm_full_like(self, value); }
tm_tensor *tmi_filled_tensor(tm_tensor *self, tm_tensor *value) { return tm_fill_inplace(tm_clone(self), value); }

/* The main diagonal as one strided view; with `wrap` a tall matrix goes round below its last row. */
static tm_tensor *main_diagonal(tm_tensor *self, bool wrap)
{
    tm_int size = INT64_MAX, stride = 0;
    TMI_REQUIRE_PTR(self->ndim >= 2, TM_INVALID, "dimensions must larger than 1");
    for (int i = 0; i < self->ndim; i++) {
        if (self->ndim > 2) TMI_REQUIRE_PTR(self->sizes[i] == self->sizes[0], TM_INVALID, "all dimensions of input must be of equal length");
        size = self->sizes[i] < size ? self->sizes[i] : size;
        stride += self->strides[i];
    }
    tm_int at = self->offset;
    if (self->ndim == 2 && wrap && self->sizes[0] > self->sizes[1] + 1 && tmi_contiguous(self))
        size = (self->numel + stride - 1) / stride;
    return tm_as_strided_full(self, &size, 1, &stride, 1, &at);
}

tm_tensor *tmi_fill_diagonal(tm_tensor *self, tm_scalar value, bool wrap)
{
    return tm_fill_scalar_inplace(main_diagonal(self, wrap), value) ? self : NULL;
}

tm_tensor *tmi_grad_fill_diagonal_backward(tm_tensor *grad, bool wrap)
{
    return grad ? tmi_fill_diagonal(tm_clone_full(grad, TM_CONTIGUOUS), tm_i64(0), wrap) : NULL;
}

tm_tensor *tmi_resize_op(tm_tensor *self, const tm_int *size, int64_t n, int format)
{
    TMI_REQUIRE_PTR(!(self->flags & TMI_REQUIRES_GRAD), TM_AUTOGRAD, "cannot resize variables that require grad");
    TMI_REQUIRE_PTR(format <= TM_CONTIGUOUS, TM_NOT_IMPLEMENTED, "resize_ supports the contiguous memory format only");
    return tmi_resize(self, (int)n, size, NULL) == TM_OK ? self : NULL;
}

tm_tensor *tmi_resize_as(tm_tensor *self, tm_tensor *other, int format) { return tmi_resize_op(self, other->sizes, other->ndim, format < 0 ? TM_CONTIGUOUS : format); }

static tm_tensor *set_to(tm_tensor *self, const tm_tensor *source)
{
    TMI_REQUIRE_PTR(self->dtype == source->dtype, TM_INVALID, "Could not set tensor of type %s to a tensor of type %s", tmi_dtypes[self->dtype].type_name,
                    tmi_dtypes[source->dtype].type_name);
    if (self == source) return self;
    TMI_TRY_PTR(tmi_tensor_set_storage(self, source->storage));
    return tmi_tensor_restride(self, source->ndim, source->sizes, source->strides, source->offset) == TM_OK ? self : NULL;
}

tm_tensor *tmi_set_tensor(tm_tensor *self, tm_tensor *source) { return set_to(self, source); }
tm_tensor *tmi_set_empty(tm_tensor *self) { return set_to(self, tm_empty_memory_format_full((tm_int[]){0}, 1, self->dtype, -1, self->device, NULL, -1)); }

/* ---------------------------------------------------------------- questions */

static bool same_sizes(const tm_tensor *a, const tm_tensor *b)
{
    return a->ndim == b->ndim && memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof(int64_t)) == 0;
}

static tm_status truth_of_all(tm_tensor *condition, tm_scalar *value)
{
    tm_tensor *all = tm_all(condition);
    return all ? tm_tensor_item(all, value) : tm_error_status();
}

tm_status tmi_equal(tm_tensor *self, tm_tensor *other, tm_scalar *value)
{
    TMI_REQUIRE(self->dtype == other->dtype, TM_INVALID, "Expected object of data type %d but got data type %d for argument #2 'other' in call to equal",
                self->dtype, other->dtype);
    *value = tm_bool(false);
    return same_sizes(self, other) ? truth_of_all(tm_eq(self, other), value) : TM_OK;
}

tm_status tmi_allclose(tm_tensor *self, tm_tensor *other, double rtol, double atol, bool equal_nan, tm_scalar *value)
{
    return truth_of_all(tm_isclose_full(self, other, rtol, atol, equal_nan), value);
}

tm_status tmi_is_nonzero(tm_tensor *self, tm_scalar *value)
{
    TMI_REQUIRE(self->numel != 0, TM_INVALID, "Boolean value of Tensor with no values is ambiguous");
    TMI_REQUIRE(self->numel == 1, TM_INVALID, "Boolean value of Tensor with more than one value is ambiguous");
    tm_scalar s;
    TMI_TRY(tm_tensor_item(self, &s));
    *value = tm_bool(s.tag == TM_SCALAR_C128 ? s.v.c.re != 0 || s.v.c.im != 0 : s.tag == TM_SCALAR_F64 ? s.v.f != 0 : tmi_scalar_i64(s) != 0);
    return TM_OK;
}

tm_status tmi_is_same_size(tm_tensor *self, tm_tensor *other, tm_scalar *value)
{
    *value = tm_bool(same_sizes(self, other));
    return TM_OK;
}
