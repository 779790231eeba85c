/* Shape rules of view operators: sizes, strides and offset of the result, and PyTorch's refusals. */
#include "op_bodies.h"
#include "shapes.h"
#include "view_sizes.h"

/* ---------------------------------------------------------------- view */

static tm_status invalid_view(int64_t n, const tm_int *size, int64_t numel)
{
    char text[512];
    tmi_format_sizes(text, sizeof text, (int)n, size);
    return tmi_fail(TM_SHAPE, "shape '%s' is invalid for input of size %lld", text, (long long)numel);
}

static tm_status negative_size(int64_t n, const tm_int *size, int64_t at)
{
    char text[512];
    tmi_format_sizes(text, sizeof text, (int)n, size);
    return tmi_fail(TM_INVALID, "invalid shape dimension %lld at index %lld of shape %s", (long long)size[at], (long long)at, text);
}

tm_status tmi_infer_size(int64_t n, const tm_int *size, int64_t numel, tm_int *out)
{
    int64_t known = 1, infer = -1;
    TMI_REQUIRE(n <= TMI_MAX_DIMS, TM_INVALID, "a tensor can have at most %d dimensions", TMI_MAX_DIMS);
    for (int64_t i = 0; i < n; i++) {
        out[i] = size[i];
        if (size[i] == -1) {
            TMI_REQUIRE(infer < 0, TM_INVALID, "only one dimension can be inferred");
            infer = i;
        } else {
            if (TMI_UNLIKELY(size[i] < 0)) return negative_size(n, size, i);
            if (__builtin_mul_overflow(known, size[i], &known)) return invalid_view(n, size, numel);
        }
    }
    if (infer < 0) return known == numel ? TM_OK : invalid_view(n, size, numel);
    if (known == 0 && numel == 0) {
        char text[512];
        tmi_format_sizes(text, sizeof text, (int)n, size);
        return tmi_fail(TM_SHAPE, "cannot reshape tensor of 0 elements into shape %s because the unspecified dimension size -1 can be any value and is "
                                  "ambiguous", text);
    }
    if (known == 0 || numel % known) return invalid_view(n, size, numel);
    out[infer] = numel / known;
    return TM_OK;
}

/* Strides of `size` over t's memory, going from the last dimension to the first through chunks of t that lie evenly; false if a copy is
 * needed. */
bool tmi_view_strides(const tm_tensor *t, int64_t n, const tm_int *size, tm_int *strides)
{
    if (t->numel == 0) {
        tmi_contiguous_strides((int)n, size, strides);
        return true;
    }
    int64_t view = n - 1, chunk = 1, viewed = 1;
    if (t->ndim == 0) {
        for (int64_t i = 0; i < n; i++) strides[i] = 1;
        return true;
    }
    int64_t base = t->strides[t->ndim - 1];
    for (int d = t->ndim - 1; d >= 0; d--) {
        chunk *= t->sizes[d];
        bool ends = d == 0 || (t->sizes[d - 1] != 1 && t->strides[d - 1] != chunk * base);
        if (!ends) continue;
        while (view >= 0 && (viewed < chunk || size[view] == 1)) {
            strides[view] = viewed * base;
            viewed *= size[view--];
        }
        if (viewed != chunk) return false;
        if (d > 0) {
            base = t->strides[d - 1];
            chunk = viewed = 1;
        }
    }
    return view < 0;
}

tm_status tmi_shape_view(tmi_meta *m, tm_tensor *self, const tm_int *size, int64_t n_size)
{
    tm_int sizes[TMI_MAX_DIMS], strides[TMI_MAX_DIMS];
    TMI_TRY(tmi_infer_size(n_size, size, self->numel, sizes));
    TMI_REQUIRE(tmi_view_strides(self, n_size, sizes, strides), TM_SHAPE,
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
                "subspaces). Use .reshape(...) instead.");
    tmi_meta_view(m, self, (int)n_size, sizes, strides, self->offset);
    return TM_OK;
}

tm_status tmi_shape__unsafe_view(tmi_meta *m, tm_tensor *self, const tm_int *size, int64_t n_size) { return tmi_shape_view(m, self, size, n_size); }

static tm_status view_wider(tmi_meta *m, const tm_tensor *t, int64_t from, int64_t to)
{
    int64_t ratio = to / from, last = t->ndim - 1;
    TMI_REQUIRE(t->ndim > 0, TM_INVALID, "self.dim() cannot be 0 to view to a larger dtype");
    TMI_REQUIRE(t->sizes[last] % ratio == 0, TM_INVALID, "self.size(-1) must be divisible by %lld to view %s as %s (different element sizes), but got %lld",
                (long long)ratio, tmi_dtypes[t->dtype].type_name, tmi_dtypes[m->dtype].type_name, (long long)t->sizes[last]);
    TMI_REQUIRE(t->offset % ratio == 0, TM_INVALID, "self.storage_offset() must be divisible by %lld to view as a dtype of another size, but got %lld",
                (long long)ratio, (long long)t->offset);
    TMI_REQUIRE(t->strides[last] == 1, TM_INVALID, "self.stride(-1) must be 1 to view as a dtype of another size, but got %lld",
                (long long)t->strides[last]);
    for (int i = 0; i < last; i++) {
        TMI_REQUIRE(t->strides[i] % ratio == 0, TM_INVALID, "self.stride(%d) must be divisible by %lld to view as a dtype of another size, but got %lld", i,
                    (long long)ratio, (long long)t->strides[i]);
        m->strides[i] = t->strides[i] / ratio;
    }
    m->sizes[last] /= ratio;
    m->offset = t->offset / ratio;
    return TM_OK;
}

static tm_status view_narrower(tmi_meta *m, const tm_tensor *t, int64_t from, int64_t to)
{
    int64_t ratio = from / to, last = t->ndim - 1;
    TMI_REQUIRE(t->ndim > 0, TM_INVALID, "self.dim() cannot be 0 to view to a smaller dtype");
    TMI_REQUIRE(t->strides[last] == 1, TM_INVALID, "self.stride(-1) must be 1 to view as a dtype of another size, but got %lld",
                (long long)t->strides[last]);
    for (int i = 0; i < last; i++) m->strides[i] = t->strides[i] * ratio;
    m->sizes[last] *= ratio;
    m->offset = t->offset * ratio;
    return TM_OK;
}

tm_status tmi_shape_view_dtype(tmi_meta *m, tm_tensor *self, tm_dtype dtype)
{
    int64_t from = (int64_t)tmi_dtype_size(self->dtype), to = (int64_t)tmi_dtype_size(dtype);
    tmi_meta_view(m, self, self->ndim, self->sizes, self->strides, self->offset);
    m->dtype = (uint8_t)dtype;
    if (to > from) TMI_TRY(view_wider(m, self, from, to));
    if (to < from) TMI_TRY(view_narrower(m, self, from, to));
    return TM_OK;
}

/* ---------------------------------------------------------------- order of dimensions */

tm_status tmi_shape_transpose_int(tmi_meta *m, tm_tensor *self, tm_int dim0, tm_int dim1)
{
    TMI_TRY(tmi_wrap_dim(&dim0, self->ndim));
    TMI_TRY(tmi_wrap_dim(&dim1, self->ndim));
    tmi_meta_view(m, self, self->ndim, self->sizes, self->strides, self->offset);
    if (self->ndim == 0) return TM_OK;
    m->sizes[dim0] = self->sizes[dim1];
    m->sizes[dim1] = self->sizes[dim0];
    m->strides[dim0] = self->strides[dim1];
    m->strides[dim1] = self->strides[dim0];
    return TM_OK;
}

tm_status tmi_shape_t(tmi_meta *m, tm_tensor *self)
{
    TMI_REQUIRE(self->ndim <= 2, TM_INVALID, "t() expects a tensor with <= 2 dimensions, but self is %dD", self->ndim);
    return tmi_shape_transpose_int(m, self, 0, self->ndim < 2 ? 0 : 1);
}

tm_status tmi_shape_permute(tmi_meta *m, tm_tensor *self, const tm_int *dims, int64_t n_dims)
{
    bool seen[TMI_MAX_DIMS] = {false};
    TMI_REQUIRE(n_dims == self->ndim, TM_INVALID,
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions "
                "i.e. input.dim() = %d is not equal to len(dims) = %lld", self->ndim, (long long)n_dims);
    tmi_meta_view(m, self, self->ndim, self->sizes, self->strides, self->offset);
    for (int i = 0; i < self->ndim; i++) {
        int64_t d = dims[i];
        TMI_TRY(tmi_wrap_dim(&d, self->ndim));
        TMI_REQUIRE(!seen[d], TM_INVALID, "permute(): duplicate dims are not allowed.");
        seen[d] = true;
        m->sizes[i] = self->sizes[d];
        m->strides[i] = self->strides[d];
    }
    return TM_OK;
}

tm_status tmi_shape_expand(tmi_meta *m, tm_tensor *self, const tm_int *size, int64_t n_size, bool implicit)
{
    (void)implicit;
    char want[512];
    TMI_REQUIRE(n_size >= self->ndim, TM_INVALID,
                "expand(%s{%s}, size=%s): the number of sizes provided (%lld) must be greater or equal to the number of dimensions in the tensor (%d)",
                "torch.FloatTensor", (tmi_format_sizes(want, sizeof want / 2, self->ndim, self->sizes), want),
                (tmi_format_sizes(want + 256, sizeof want / 2, (int)n_size, size), want + 256), (long long)n_size, self->ndim);
    tm_int sizes[TMI_MAX_DIMS], strides[TMI_MAX_DIMS];
    for (int64_t i = n_size - 1; i >= 0; i--) {
        int64_t d = i - (n_size - self->ndim);
        sizes[i] = size[i];
        if (size[i] == -1) {
            TMI_REQUIRE(d >= 0, TM_INVALID, "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension %lld", (long long)i);
            sizes[i] = self->sizes[d];
        }
        TMI_REQUIRE(sizes[i] >= 0, TM_INVALID, "The expanded size of the tensor (%lld) isn't allowed", (long long)sizes[i]);
        strides[i] = d < 0 ? 0 : self->strides[d];
        if (d >= 0 && self->sizes[d] != sizes[i]) {
            char have[256], target[256];
            tmi_format_sizes(have, sizeof have, self->ndim, self->sizes);
            tmi_format_sizes(target, sizeof target, (int)n_size, size);
            TMI_REQUIRE(self->sizes[d] == 1, TM_SHAPE,
                        "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton dimension %lld.  Target sizes: %s.  "
                        "Tensor sizes: %s", (long long)sizes[i], (long long)self->sizes[d], (long long)i, target, have);
            strides[i] = 0;
        } else if (d < 0) {
            strides[i] = 0;
        }
    }
    /* A leading new dimension of PyTorch's expand has stride 0; size-1 kept dims keep their stride. */
    tmi_meta_view(m, self, (int)n_size, sizes, strides, self->offset);
    return TM_OK;
}

/* ---------------------------------------------------------------- parts */

static tm_status slice_rule(tmi_meta *m, tm_tensor *self, tm_int dim, const tm_int *start, const tm_int *end, tm_int step)
{
    TMI_REQUIRE(self->ndim > 0, TM_INVALID, "slice() cannot be applied to a 0-dim tensor.");
    TMI_TRY(tmi_wrap_dim(&dim, self->ndim));
    TMI_REQUIRE(step > 0, TM_INVALID, "slice step must be positive");
    tm_int size = self->sizes[dim], from = start ? *start : 0, to = end ? *end : INT64_MAX;
    if (from < 0) from += size;
    if (to < 0) to += size;
    from = from < 0 ? 0 : from > size ? size : from;
    to = to < from ? from : to > size ? size : to;
    tmi_meta_view(m, self, self->ndim, self->sizes, self->strides, self->offset + from * self->strides[dim]);
    m->sizes[dim] = (to - from + step - 1) / step;
    m->strides[dim] *= step;
    return TM_OK;
}

tm_status tmi_shape_slice_Tensor(tmi_meta *m, tm_tensor *self, tm_int dim, const tm_int *start, const tm_int *end, tm_int step)
{
    return slice_rule(m, self, dim, start, end, step);
}

tm_status tmi_shape_select_int(tmi_meta *m, tm_tensor *self, tm_int dim, tm_int index)
{
    TMI_REQUIRE(self->ndim > 0, TM_INDEX, "select() cannot be applied to a 0-dim tensor.");
    TMI_TRY(tmi_wrap_dim(&dim, self->ndim));
    tm_int size = self->sizes[dim];
    if (TMI_UNLIKELY(index < -size || index >= size)) {
        char text[512];
        tmi_format_sizes(text, sizeof text, self->ndim, self->sizes);
        return tmi_fail(TM_INDEX, "select(): index %lld out of range for tensor of size %s at dimension %lld", (long long)index, text, (long long)dim);
    }
    if (index < 0) index += size;
    tmi_meta_view(m, self, self->ndim - 1, self->sizes, self->strides, self->offset + index * self->strides[dim]);
    for (int64_t i = dim; i < self->ndim - 1; i++) {
        m->sizes[i] = self->sizes[i + 1];
        m->strides[i] = self->strides[i + 1];
    }
    return TM_OK;
}

tm_status tmi_shape_squeeze_dims(tmi_meta *m, tm_tensor *self, const tm_int *dim, int64_t n_dim)
{
    bool drop[TMI_MAX_DIMS] = {false};
    int ndim = 0;
    for (int64_t i = 0; i < n_dim; i++) {
        int64_t d = dim[i];
        TMI_TRY(tmi_wrap_dim(&d, self->ndim));
        if (self->ndim == 0) continue;
        TMI_REQUIRE(!drop[d], TM_INVALID, "dim %lld appears multiple times in the list of dims", (long long)d);
        drop[d] = true;
    }
    tmi_meta_view(m, self, self->ndim, self->sizes, self->strides, self->offset);
    for (int i = 0; i < self->ndim; i++) {
        if (drop[i] && self->sizes[i] == 1) continue;
        m->sizes[ndim] = self->sizes[i];
        m->strides[ndim++] = self->strides[i];
    }
    m->ndim = ndim;
    return TM_OK;
}

tm_status tmi_shape_squeeze_dim(tmi_meta *m, tm_tensor *self, tm_int dim) { return tmi_shape_squeeze_dims(m, self, &dim, 1); }

tm_status tmi_shape_squeeze(tmi_meta *m, tm_tensor *self)
{
    tm_int dims[TMI_MAX_DIMS];
    for (int i = 0; i < self->ndim; i++) dims[i] = i;
    return tmi_shape_squeeze_dims(m, self, dims, self->ndim);
}

tm_status tmi_shape_unsqueeze(tmi_meta *m, tm_tensor *self, tm_int dim)
{
    TMI_TRY(tmi_wrap_dim(&dim, self->ndim + 1));
    TMI_REQUIRE(self->ndim < TMI_MAX_DIMS, TM_INVALID, "a tensor can have at most %d dimensions", TMI_MAX_DIMS);
    tmi_meta_view(m, self, self->ndim, self->sizes, self->strides, self->offset);
    for (int64_t i = self->ndim; i > dim; i--) {
        m->sizes[i] = self->sizes[i - 1];
        m->strides[i] = self->strides[i - 1];
    }
    m->sizes[dim] = 1;
    m->strides[dim] = dim < self->ndim ? self->sizes[dim] * self->strides[dim] : 1;
    m->ndim = self->ndim + 1;
    return TM_OK;
}

tm_status tmi_shape_unfold(tmi_meta *m, tm_tensor *self, tm_int dimension, tm_int size, tm_int step)
{
    int64_t d = dimension, have;
    TMI_TRY(tmi_wrap_dim(&d, self->ndim));
    have = self->ndim ? self->sizes[d] : 1;
    TMI_REQUIRE(size >= 0, TM_INVALID, "size is %lld but must be >= 0", (long long)size);
    TMI_REQUIRE(size <= have, TM_INVALID, "maximum size for tensor at dimension %lld is %lld but size is %lld", (long long)d, (long long)have, (long long)size);
    TMI_REQUIRE(step > 0, TM_INVALID, "step is %lld but must be > 0", (long long)step);
    tmi_meta_view(m, self, self->ndim, self->sizes, self->strides, self->offset);
    m->sizes[self->ndim] = size;
    m->strides[self->ndim] = self->ndim ? self->strides[d] : 1;
    m->ndim = self->ndim + 1;
    if (self->ndim) {
        m->sizes[d] = (have - size) / step + 1;
        m->strides[d] *= step;
    }
    return TM_OK;
}

/* ---------------------------------------------------------------- the rest */

tm_status tmi_shape_as_strided(tmi_meta *m, tm_tensor *self, const tm_int *size, int64_t n_size, const tm_int *stride, int64_t n_stride,
                               const tm_int *storage_offset)
{
    TMI_REQUIRE(n_size == n_stride, TM_INVALID, "mismatch in length of strides and shape");
    tm_int offset = storage_offset ? *storage_offset : self->offset, last = 0, numel;
    TMI_TRY(tmi_check_sizes((int)n_size, size, self->dtype, &numel));
    for (int64_t i = 0; i < n_size; i++) {
        TMI_REQUIRE(stride[i] >= 0, TM_INVALID, "as_strided: Negative strides are not supported at the moment, got strides: stride %lld", (long long)stride[i]);
        tm_int reach;
        bool wide = size[i] > 0 && (__builtin_mul_overflow(size[i] - 1, stride[i], &reach) || __builtin_add_overflow(last, reach, &last));
        TMI_REQUIRE(!wide, TM_INVALID, "setStorage: sizes and strides overflow");
    }
    TMI_REQUIRE(offset >= 0, TM_INVALID, "Tensor: invalid storage offset %lld", (long long)offset);
    int64_t item = (int64_t)tmi_dtype_size(self->dtype);
    if (numel > 0 && !tmi_is_meta(self)) {
        int64_t need = (offset + last + 1) * item;
        char sizes[256], strides[256];
        tmi_format_sizes(sizes, sizeof sizes, (int)n_size, size);
        tmi_format_sizes(strides, sizeof strides, (int)n_size, stride);
        TMI_REQUIRE(need <= (int64_t)self->storage->nbytes, TM_INVALID,
                    "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %lld requiring a storage size of %lld are out of bounds for storage "
                    "of size %lld", sizes, strides, (long long)offset, (long long)item, (long long)need, (long long)self->storage->nbytes);
    }
    tmi_meta_view(m, self, (int)n_size, size, stride, offset);
    return TM_OK;
}

tm_status tmi_shape_diagonal(tmi_meta *m, tm_tensor *self, tm_int offset, tm_int dim1, tm_int dim2)
{
    TMI_TRY(tmi_wrap_dim(&dim1, self->ndim));
    TMI_TRY(tmi_wrap_dim(&dim2, self->ndim));
    TMI_REQUIRE(dim1 != dim2, TM_INVALID, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1, (long long)dim2);
    tm_int rows = self->sizes[dim1], cols = self->sizes[dim2], at = self->offset;
    tm_int length = offset >= 0 ? (rows < cols - offset ? rows : cols - offset) : (rows + offset < cols ? rows + offset : cols);
    if (length < 0) length = 0;
    if (length > 0) at += offset >= 0 ? offset * self->strides[dim2] : -offset * self->strides[dim1];
    tmi_meta_view(m, self, self->ndim, self->sizes, self->strides, at);
    int ndim = 0;
    for (int i = 0; i < self->ndim; i++) {
        if (i == dim1 || i == dim2) continue;
        m->sizes[ndim] = self->sizes[i];
        m->strides[ndim++] = self->strides[i];
    }
    m->sizes[ndim] = length;
    m->strides[ndim++] = self->strides[dim1] + self->strides[dim2];
    m->ndim = ndim;
    return TM_OK;
}

tm_status tmi_shape_alias(tmi_meta *m, tm_tensor *self)
{
    tmi_meta_view(m, self, self->ndim, self->sizes, self->strides, self->offset);
    return TM_OK;
}

tm_status tmi_shape_detach(tmi_meta *m, tm_tensor *self) { return tmi_shape_alias(m, self); }

tm_status tmi_shape_view_as_real(tmi_meta *m, tm_tensor *self)
{
    TMI_REQUIRE(tmi_is_complex(self->dtype), TM_INVALID, "view_as_real is only supported for complex tensors");
    TMI_TRY(tmi_shape_alias(m, self));
    for (int i = 0; i < self->ndim; i++) m->strides[i] *= 2;
    m->sizes[self->ndim] = 2;
    m->strides[self->ndim] = 1;
    m->ndim = self->ndim + 1;
    m->offset = self->offset * 2;
    m->dtype = (uint8_t)tmi_real_dtype(self->dtype);
    return TM_OK;
}

tm_status tmi_shape_view_as_complex(tmi_meta *m, tm_tensor *self)
{
    TMI_REQUIRE(self->dtype == TM_F32 || self->dtype == TM_F64, TM_INVALID,
                "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: %s", tmi_dtypes[self->dtype].type_name);
    TMI_REQUIRE(self->ndim > 0, TM_INVALID, "Input tensor must have one or more dimensions");
    int last = self->ndim - 1;
    TMI_REQUIRE(self->sizes[last] == 2, TM_INVALID, "Tensor must have a last dimension of size 2");
    TMI_REQUIRE(self->strides[last] == 1, TM_INVALID, "Tensor must have a last dimension with stride 1");
    TMI_TRY(tmi_shape_alias(m, self));
    for (int i = 0; i < last; i++) {
        TMI_REQUIRE(self->strides[i] % 2 == 0, TM_INVALID, "Tensor must have a stride divisible by 2 for all but last dimension");
        m->strides[i] /= 2;
    }
    TMI_REQUIRE(self->offset % 2 == 0, TM_INVALID, "Tensor must have a storage_offset divisible by 2");
    m->ndim = last;
    m->offset = self->offset / 2;
    m->dtype = (uint8_t)tmi_complex_dtype(self->dtype);
    return TM_OK;
}
