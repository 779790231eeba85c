/* Joining and rearranging: shape rules, bodies, gradients. Padding is in padding.c. */
#include "base/vec.h"
#include "boxing.h"
#include "compose.h"
#include "ops/shapes.h"
#include "types.h"

/* ---------------------------------------------------------------- cat and stack */

/* Old behaviour that PyTorch keeps: vectors of no elements do not count. */
static bool skipped(const tm_tensor *t) { return t->ndim == 1 && t->sizes[0] == 0; }

static tm_status check_part(const tm_tensor *first, const tm_tensor *t, int64_t dim, int64_t at)
{
    TMI_REQUIRE(t->ndim == first->ndim, TM_INVALID, "Tensors must have same number of dimensions: got %d and %d", first->ndim, t->ndim);
    for (int d = 0; d < t->ndim; d++)
        TMI_REQUIRE(d == dim || t->sizes[d] == first->sizes[d], TM_SHAPE,
                    "Sizes of tensors must match except in dimension %lld. Expected size %lld but got size %lld for tensor number %lld in the list.",
                    (long long)dim, (long long)first->sizes[d], (long long)t->sizes[d], (long long)at);
    return TM_OK;
}

tm_status tmi_shape_cat(tmi_meta *m, tm_tensor *const *tensors, int64_t n, tm_int dim)
{
    TMI_REQUIRE(n > 0, TM_VALUE, "torch.cat(): expected a non-empty list of Tensors");
    const tm_tensor *first = NULL;
    for (int64_t i = 0; i < n; i++) {
        TMI_REQUIRE(tensors[i]->ndim > 0, TM_INVALID, "zero-dimensional tensor (at position %lld) cannot be concatenated", (long long)i);
        if (!first && !skipped(tensors[i])) first = tensors[i];
    }
    TMI_TRY(tmi_type_promote_list(m, tensors, n));
    if (!first) {
        TMI_TRY(tmi_wrap_dim(&dim, 1));
        tmi_meta_set(m, 1, (tm_int[]){0});
        return TM_OK;
    }
    TMI_TRY(tmi_wrap_dim(&dim, first->ndim));
    tm_int total = 0;
    for (int64_t i = 0; i < n; i++) {
        if (skipped(tensors[i])) continue;
        TMI_TRY(check_part(first, tensors[i], dim, i));
        total += tensors[i]->sizes[dim];
    }
    tmi_meta_set(m, first->ndim, first->sizes);
    m->sizes[dim] = total;
    return TM_OK;
}

tm_status tmi_shape_stack(tmi_meta *m, tm_tensor *const *tensors, int64_t n, tm_int dim)
{
    TMI_REQUIRE(n > 0, TM_INVALID, "stack expects a non-empty TensorList");
    const tm_tensor *first = tensors[0];
    TMI_TRY(tmi_wrap_dim(&dim, first->ndim + 1));
    for (int64_t i = 1; i < n; i++) {
        const tm_tensor *t = tensors[i];
        if (t->ndim == first->ndim && memcmp(t->sizes, first->sizes, (size_t)t->ndim * sizeof *t->sizes) == 0) continue;
        char have[256], want[256];
        tmi_format_sizes(want, sizeof want, first->ndim, first->sizes);
        tmi_format_sizes(have, sizeof have, t->ndim, t->sizes);
        return tmi_fail(TM_SHAPE, "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %lld", want, have, (long long)i);
    }
    TMI_REQUIRE(first->ndim < TMI_MAX_DIMS, TM_INVALID, "a tensor can have at most %d dimensions", TMI_MAX_DIMS);
    TMI_TRY(tmi_type_promote_list(m, tensors, n));
    m->ndim = first->ndim + 1;
    for (int d = 0; d < m->ndim; d++) m->sizes[d] = d < dim ? first->sizes[d] : d == dim ? n : first->sizes[d - 1];
    return TM_OK;
}

tm_tensor *tmi_concat(tm_tensor *const *tensors, int64_t n, tm_int dim) { return tm_cat_full(tensors, n, dim); }

static tm_tensor *real_if_needed(tm_tensor *grad, tm_dtype to)
{
    return grad && tmi_is_complex(grad->dtype) && !tmi_is_complex(to) ? tm_real(grad) : grad;
}

tm_status tmi_grad_cat(tm_tensor **out, int64_t n, const tmi_grad_call *g, int arg, tm_tensor *grad, tm_int dim)
{
    if (!grad) return tm_error_status();
    int64_t at = 0;
    dim = tmi_wrapped(dim, grad->ndim);
    for (int64_t i = 0; i < n; i++) {
        const tmi_result_info *info = tmi_grad_arg(g, arg, (int)i);
        if (info->ndim == 1 && info->sizes[0] == 0) {
            out[i] = tmi_make_zeros_as(grad, info->sizes, 1);
            continue;
        }
        out[i] = real_if_needed(tm_narrow(grad, dim, at, info->sizes[dim]), (tm_dtype)info->dtype);
        at += info->sizes[dim];
    }
    return tm_error_status();
}

tm_status tmi_grad_stack(tm_tensor **out, int64_t n, const tmi_grad_call *g, int arg, tm_tensor *grad, tm_int dim)
{
    if (!grad) return tm_error_status();
    for (int64_t i = 0; i < n; i++)
        out[i] = real_if_needed(tm_select_int(grad, dim, i), (tm_dtype)tmi_grad_arg(g, arg, (int)i)->dtype);
    return tm_error_status();
}

/* ---- stacks of at least so many dims */

static tm_tensor *at_least(tm_tensor *t, int ndim)
{
    if (!t || t->ndim >= ndim) return t;
    if (ndim == 1) return tm_reshape(t, (tm_int[]){1}, 1);
    if (ndim == 2) return t->ndim == 0 ? tm_reshape(t, (tm_int[]){1, 1}, 2) : tm_unsqueeze(t, 0);
    if (t->ndim == 0) return tm_reshape(t, (tm_int[]){1, 1, 1}, 3);
    return t->ndim == 1 ? tm_unsqueeze(tm_unsqueeze(t, 0), 2) : tm_unsqueeze(t, 2);
}

static tm_tensor_list *each_at_least(tm_tensor *const *tensors, int64_t n, int ndim)
{
    tm_tensor_list *out = tmi_own_list(tmi_list_new(n));
    for (int64_t i = 0; out && i < n; i++) {
        tm_tensor *t = at_least(tensors[i], ndim);
        if (!t) return NULL;
        tmi_retain(t);
        out->t[i] = t;
    }
    return out;
}
tm_tensor *tmi_atleast_1d(tm_tensor *self) { return at_least(self, 1); }
tm_tensor *tmi_atleast_2d(tm_tensor *self) { return at_least(self, 2); }
tm_tensor *tmi_atleast_3d(tm_tensor *self) { return at_least(self, 3); }
tm_tensor_list *tmi_atleast_1d_list(tm_tensor *const *tensors, int64_t n) { return each_at_least(tensors, n, 1); }
tm_tensor_list *tmi_atleast_2d_list(tm_tensor *const *tensors, int64_t n) { return each_at_least(tensors, n, 2); }
tm_tensor_list *tmi_atleast_3d_list(tm_tensor *const *tensors, int64_t n) { return each_at_least(tensors, n, 3); }

tm_tensor_list *tmi_broadcast_tensors(tm_tensor *const *tensors, int64_t n)
{
    int ndim = 0;
    tm_int sizes[TMI_MAX_DIMS];
    for (int64_t i = 0; i < n; i++) TMI_TRY_PTR(tmi_broadcast_sizes(ndim, sizes, tensors[i]->ndim, tensors[i]->sizes, &ndim, sizes));
    tm_tensor_list *out = tmi_own_list(tmi_list_new(n));
    for (int64_t i = 0; out && i < n; i++) {
        tm_tensor *t = tm_expand(tensors[i], sizes, ndim);
        if (!t) return NULL;
        tmi_retain(t);
        out->t[i] = t;
    }
    return out;
}

static tm_tensor *cat_at_least(const char *op, tm_tensor *const *tensors, int64_t n, int ndim, tm_int dim)
{
    TMI_REQUIRE_PTR(n > 0, TM_INVALID, "%s expects a non-empty TensorList", op);
    tm_tensor **parts = tmi_alloc((size_t)n * sizeof *parts), *out = NULL;
    if (!parts) return NULL;
    for (int64_t i = 0; i < n; i++) parts[i] = at_least(tensors[i], ndim);
    if (tm_error_status() == TM_OK) out = tm_cat_full(parts, n, ndim == 1 && parts[0]->ndim == 1 ? 0 : dim);
    tmi_free(parts, (size_t)n * sizeof *parts);
    return out;
}
tm_tensor *tmi_hstack(tm_tensor *const *tensors, int64_t n) { return cat_at_least("hstack", tensors, n, 1, 1); }
tm_tensor *tmi_vstack(tm_tensor *const *tensors, int64_t n) { return cat_at_least("vstack", tensors, n, 2, 0); }
tm_tensor *tmi_dstack(tm_tensor *const *tensors, int64_t n) { return cat_at_least("dstack", tensors, n, 3, 2); }

tm_tensor *tmi_column_stack(tm_tensor *const *tensors, int64_t n)
{
    TMI_REQUIRE_PTR(n > 0, TM_INVALID, "column_stack expects a non-empty TensorList");
    tm_tensor **parts = tmi_alloc((size_t)n * sizeof *parts), *out = NULL;
    if (!parts) return NULL;
    for (int64_t i = 0; i < n; i++) parts[i] = tensors[i]->ndim <= 1 ? tm_reshape(tensors[i], (tm_int[]){tensors[i]->numel, 1}, 2) : tensors[i];
    if (tm_error_status() == TM_OK) out = tm_cat_full(parts, n, 1);
    tmi_free(parts, (size_t)n * sizeof *parts);
    return out;
}

/* ---------------------------------------------------------------- flip, roll, repeat */

tm_status tmi_shape_flip(tmi_meta *m, tm_tensor *self, const tm_int *dims, int64_t n)
{
    uint64_t seen = 0;
    for (int64_t i = 0; i < n; i++) {
        tm_int d = dims[i];
        TMI_TRY(tmi_wrap_dim(&d, self->ndim));
        TMI_REQUIRE(!(seen >> d & 1), TM_INVALID, "dim %lld appears multiple times in the list of dims", (long long)d);
        seen |= UINT64_C(1) << d;
    }
    return tmi_shape_same(m, self);
}

tm_tensor *tmi_fliplr(tm_tensor *self)
{
    TMI_REQUIRE_PTR(self->ndim >= 2, TM_INVALID, "Input must be >= 2-d.");
    return tm_flip(self, (tm_int[]){1}, 1);
}
tm_tensor *tmi_flipud(tm_tensor *self)
{
    TMI_REQUIRE_PTR(self->ndim >= 1, TM_INVALID, "Input must be >= 1-d.");
    return tm_flip(self, (tm_int[]){0}, 1);
}

static tm_tensor *roll_one(tm_tensor *t, tm_int shift, tm_int dim)
{
    if (!t) return NULL;
    TMI_TRY_PTR(tmi_wrap_dim(&dim, t->ndim));
    tm_int n = t->ndim ? t->sizes[dim] : 1, start = n ? ((-shift) % n + n) % n : 0;
    if (start == 0) return tm_clone(t);
    return tm_cat_full((tm_tensor *[]){tm_narrow(t, dim, start, n - start), tm_narrow(t, dim, 0, start)}, 2, dim);
}

tm_tensor *tmi_roll(tm_tensor *self, const tm_int *shifts, int64_t n_shifts, const tm_int *dims, int64_t n_dims)
{
    TMI_REQUIRE_PTR(n_shifts > 0, TM_INVALID, "`shifts` required");
    if (n_dims == 0) {
        TMI_REQUIRE_PTR(n_shifts == 1, TM_INVALID, "shifts and dimensions must align. shifts: %lld, dims:0", (long long)n_shifts);
        tm_tensor *flat = tm_reshape(self, (tm_int[]){-1}, 1);
        if (self->numel == 0) return tm_clone(self);
        return tm_reshape(roll_one(flat, shifts[0], 0), self->sizes, self->ndim);
    }
    TMI_REQUIRE_PTR(self->ndim > 0, TM_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dims[0]);
    TMI_REQUIRE_PTR(n_shifts == n_dims, TM_INVALID, "shifts and dimensions must align. shifts: %lld, dims:%lld", (long long)n_shifts, (long long)n_dims);
    if (self->numel == 0) return tm_clone(self);
    for (int64_t i = 0; i < n_dims; i++) self = roll_one(self, shifts[i], dims[i]);
    return self;
}

tm_tensor *tmi_grad_roll(tm_tensor *grad, const tm_int *shifts, int64_t n_shifts, const tm_int *dims, int64_t n_dims)
{
    tm_int back[TMI_MAX_DIMS];
    for (int64_t i = 0; i < n_shifts && i < TMI_MAX_DIMS; i++) back[i] = -shifts[i];
    return tm_roll_full(grad, back, n_shifts, dims, n_dims);
}

tm_tensor *tmi_rot90(tm_tensor *self, tm_int k, const tm_int *dims, int64_t n)
{
    TMI_REQUIRE_PTR(n == 2, TM_INVALID, "expected total rotation dims == 2, but got dims = %lld", (long long)n);
    TMI_REQUIRE_PTR(self->ndim >= 2, TM_INVALID, "expected total dims >= 2, but got total dims = %d", self->ndim);
    tm_int a = dims[0], b = dims[1];
    TMI_REQUIRE_PTR(a != b && (a > b ? a - b : b - a) != self->ndim, TM_INVALID, "expected rotation dims to be different, but got dim0 = %lld and dim1 = %lld",
                    (long long)a, (long long)b);
    TMI_REQUIRE_PTR(a < self->ndim && a >= -self->ndim, TM_INVALID, "Rotation dim0 out of range, dim0 = %lld", (long long)a);
    TMI_REQUIRE_PTR(b < self->ndim && b >= -self->ndim, TM_INVALID, "Rotation dim1 out of range, dim1 = %lld", (long long)b);
    k = (k % 4 + 4) % 4;
    if (k == 1) return tm_transpose_int(tm_flip(self, &b, 1), a, b);
    if (k == 2) return tm_flip(self, dims, 2);
    if (k == 3) return tm_transpose_int(tm_flip(self, &a, 1), a, b);
    return tm_clone(self);
}

tm_tensor *tmi_repeat(tm_tensor *self, const tm_int *repeats, int64_t n)
{
    TMI_REQUIRE_PTR(n >= self->ndim, TM_INVALID, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
    TMI_REQUIRE_PTR(n * 2 <= TMI_MAX_DIMS, TM_INVALID, "repeat: too many dimensions");
    tm_int apart[TMI_MAX_DIMS], wide[TMI_MAX_DIMS], out[TMI_MAX_DIMS];
    int64_t lead = n - self->ndim;
    for (int64_t d = 0; d < n; d++) {
        tm_int size = d < lead ? 1 : self->sizes[d - lead];
        TMI_REQUIRE_PTR(repeats[d] >= 0, TM_INVALID, "Trying to create tensor with negative dimension %lld", (long long)(repeats[d] * size));
        apart[2 * d] = 1;
        apart[2 * d + 1] = wide[2 * d + 1] = size;
        wide[2 * d] = repeats[d];
        out[d] = repeats[d] * size;
    }
    tm_tensor *t = tm_expand(tm_reshape(self, apart, 2 * n), wide, 2 * n);
    return tm_reshape(tm_clone_full(t, TM_CONTIGUOUS), out, n);
}

tm_tensor *tmi_grad_repeat(tm_tensor *grad, const tm_int *repeats, int64_t n, const tm_int *sizes, int64_t ndim)
{
    tm_int apart[TMI_MAX_DIMS], sum[TMI_MAX_DIMS];
    int64_t lead = n - ndim;
    for (int64_t d = 0; d < n; d++)
        if (repeats[d] == 0) return tmi_make_zeros_as(grad, sizes, ndim);
    for (int64_t d = 0; d < n; d++) {
        apart[2 * d] = repeats[d];
        apart[2 * d + 1] = d < lead ? 1 : sizes[d - lead];
        sum[d] = 2 * d;
    }
    if (n == 0) return grad;
    return tm_reshape(tm_sum_dim_intlist(tm_reshape(grad, apart, 2 * n), sum, n), sizes, ndim);
}

tm_tensor *tmi_tile(tm_tensor *self, const tm_int *dims, int64_t n)
{
    tm_int counts[TMI_MAX_DIMS];
    int64_t lead = self->ndim > n ? self->ndim - n : 0;
    for (int64_t d = 0; d < lead + n; d++) counts[d] = d < lead ? 1 : dims[d - lead];
    return tm_repeat(self, counts, lead + n);
}

tm_tensor *tmi_repeat_interleave_tensor(tm_tensor *self, tm_tensor *repeats, const tm_int *dim, const tm_int *output_size)
{
    tm_tensor *t = dim ? self : tm_reshape(self, (tm_int[]){-1}, 1);
    if (!t) return NULL;
    tm_int d = dim ? *dim : 0;
    TMI_TRY_PTR(tmi_wrap_dim(&d, t->ndim));
    if (t->ndim == 0) t = tm_unsqueeze(t, 0);
    TMI_REQUIRE_PTR(repeats->ndim <= 1, TM_INVALID, "repeats must be 0-dim or 1-dim tensor");
    tm_int n = t->sizes[d];
    if (repeats->numel == 1) repeats = tm_expand(tm_reshape(repeats, (tm_int[]){1}, 1), &n, 1);
    TMI_REQUIRE_PTR(!repeats || repeats->numel == n, TM_INVALID, "repeats must have the same size as input along dim, but got repeats.size(0) = %lld and "
                    "input.size(%lld) = %lld", (long long)(repeats ? repeats->numel : 0), (long long)d, (long long)n);
    return tm_index_select(t, d, tm_repeat_interleave_full(repeats, output_size));
}

tm_tensor *tmi_repeat_interleave(tm_tensor *self, tm_int repeats, const tm_int *dim, const tm_int *output_size)
{
    TMI_REQUIRE_PTR(repeats >= 0, TM_INVALID, "Repeats must be non-negative");
    tm_tensor *t = dim ? self : tm_reshape(self, (tm_int[]){-1}, 1);
    if (!t) return NULL;
    tm_int d = dim ? *dim : 0, wide[TMI_MAX_DIMS], out[TMI_MAX_DIMS];
    TMI_TRY_PTR(tmi_wrap_dim(&d, t->ndim));
    if (t->ndim == 0) t = tm_unsqueeze(t, 0);
    TMI_REQUIRE_PTR(!output_size || *output_size == repeats * t->sizes[d], TM_INVALID, "repeat_interleave: Invalid output_size, expected %lld but got %lld",
                    (long long)(repeats * t->sizes[d]), (long long)*output_size);
    for (int i = 0; i < t->ndim; i++) {
        wide[i < d + 1 ? i : i + 1] = t->sizes[i];
        out[i] = i == d ? repeats * t->sizes[i] : t->sizes[i];
    }
    wide[d + 1] = repeats;
    return tm_reshape(tm_clone_full(tm_expand(tm_unsqueeze(t, d + 1), wide, t->ndim + 1), TM_CONTIGUOUS), out, t->ndim);
}

/* ---------------------------------------------------------------- triangles and diagonals */

static tm_status triangle(tmi_meta *m, const char *op, const tm_tensor *self)
{
    TMI_REQUIRE(self->ndim >= 2, TM_INVALID, "%s: input tensor must have at least 2 dimensions", op);
    return tmi_shape_same(m, self);
}
tm_status tmi_shape_tril(tmi_meta *m, tm_tensor *self, tm_int diagonal) { return triangle(m, "tril", self); }
tm_status tmi_shape_triu(tmi_meta *m, tm_tensor *self, tm_int diagonal) { return triangle(m, "triu", self); }

/* Elements on and below (above) the diagonal `offset`. */
static tm_status triangle_count(tmi_meta *m, tm_int rows, tm_int cols, tm_int offset, bool upper, tm_dtype dtype, tm_device device)
{
    TMI_REQUIRE(rows >= 0, TM_INVALID, "row must be non-negative, got%lld", (long long)rows);
    TMI_REQUIRE(cols >= 0, TM_INVALID, "col must be non-negative, got%lld", (long long)cols);
    tm_int n = 0;
    for (tm_int i = 0; i < rows; i++) {
        tm_int below = i + offset + (upper ? 0 : 1);
        below = below < 0 ? 0 : below > cols ? cols : below;
        n += upper ? cols - below : below;
    }
    tmi_meta_set(m, 2, (tm_int[]){2, n});
    m->dtype = TM_I64;
    tmi_meta_options(m, dtype, device);
    return TM_OK;
}
tm_status tmi_shape_tril_indices(tmi_meta *m, tm_int row, tm_int col, tm_int offset, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return triangle_count(m, row, col, offset, false, dtype, device);
}
tm_status tmi_shape_triu_indices(tmi_meta *m, tm_int row, tm_int col, tm_int offset, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return triangle_count(m, row, col, offset, true, dtype, device);
}

tm_tensor *tmi_diag(tm_tensor *self, tm_int diagonal)
{
    TMI_REQUIRE_PTR(self->ndim == 1 || self->ndim == 2, TM_INVALID, "diag(): Supports 1D or 2D tensors. Got %dD", self->ndim);
    if (self->ndim == 1) return tm_diag_embed_full(self, diagonal, 0, 1);
    return tm_clone(tm_diagonal_full(self, diagonal, 0, 1));
}

tm_tensor *tmi_diag_embed(tm_tensor *self, tm_int offset, tm_int dim1, tm_int dim2)
{
    int ndim = self->ndim + 1;
    TMI_TRY_PTR(tmi_wrap_dim(&dim1, ndim));
    TMI_TRY_PTR(tmi_wrap_dim(&dim2, ndim));
    TMI_REQUIRE_PTR(dim1 != dim2, TM_INVALID, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1, (long long)dim2);
    TMI_REQUIRE_PTR(self->ndim >= 1, TM_INVALID, "diag_embed: input must have at least one dimension");
    tm_int sizes[TMI_MAX_DIMS], side = self->sizes[self->ndim - 1] + (offset < 0 ? -offset : offset);
    for (int d = 0, k = 0; d < ndim; d++) sizes[d] = d == dim1 || d == dim2 ? side : self->sizes[k++];
    tm_tensor *out = tmi_make_zeros_as(self, sizes, ndim);
    if (!out) return NULL;
    tm_copy_inplace(tm_diagonal_full(out, offset, dim1, dim2), self);
    return tm_error_status() == TM_OK ? out : NULL;
}

tm_tensor *tmi_diagflat(tm_tensor *self, tm_int offset) { return tm_diag_full(tm_reshape(self, (tm_int[]){-1}, 1), offset); }

/* ---------------------------------------------------------------- grids */

static tm_tensor_list *grid(tm_tensor *const *tensors, int64_t n, bool swap)
{
    TMI_REQUIRE_PTR(n > 0, TM_INVALID, "meshgrid expects a non-empty TensorList");
    TMI_REQUIRE_PTR(n <= TMI_MAX_DIMS, TM_INVALID, "meshgrid: too many tensors");
    tm_int sizes[TMI_MAX_DIMS];
    for (int64_t i = 0; i < n; i++) {
        TMI_REQUIRE_PTR(tensors[i]->ndim <= 1, TM_INVALID, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: %dD", tensors[i]->ndim);
        TMI_REQUIRE_PTR(tensors[i]->dtype == tensors[0]->dtype, TM_INVALID, "torch.meshgrid expects all tensors to have the same dtype");
        sizes[swap && i < 2 && n > 1 ? 1 - i : i] = tensors[i]->numel;
    }
    tm_tensor_list *out = tmi_own_list(tmi_list_new(n));
    for (int64_t i = 0; out && i < n; i++) {
        tm_int view[TMI_MAX_DIMS];
        for (int64_t d = 0; d < n; d++) view[d] = 1;
        view[swap && i < 2 && n > 1 ? 1 - i : i] = tensors[i]->numel;
        tm_tensor *t = tm_expand(tm_view(tensors[i], view, n), sizes, n);
        if (t) tmi_retain(t);
        out->t[i] = t;
    }
    return tm_error_status() == TM_OK ? out : NULL;
}
tm_tensor_list *tmi_meshgrid(tm_tensor *const *tensors, int64_t n) { return grid(tensors, n, false); }
tm_tensor_list *tmi_meshgrid_indexing(tm_tensor *const *tensors, int64_t n, const char *indexing)
{
    bool xy = strcmp(indexing, "xy") == 0;
    TMI_REQUIRE_PTR(xy || strcmp(indexing, "ij") == 0, TM_INVALID, "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: %s", indexing);
    return grid(tensors, n, xy);
}

tm_tensor *tmi_cartesian_prod(tm_tensor *const *tensors, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        TMI_REQUIRE_PTR(tensors[i]->ndim == 1, TM_INVALID, "Expect a 1D vector, but got shape with %d dimensions", tensors[i]->ndim);
    if (n == 1) return tensors[0];
    tm_tensor_list *grids = grid(tensors, n, false);
    if (!grids) return NULL;
    tm_tensor *out = tm_stack_full(grids->t, n, -1);
    return out ? tm_reshape(out, (tm_int[]){-1, n}, 2) : NULL;
}

/* Rows of positions i0 < i1 < ... (or <=), in lexicographic order. */
tm_tensor *tmi_combinations(tm_tensor *self, tm_int r, bool with_replacement)
{
    TMI_REQUIRE_PTR(self->ndim == 1, TM_INVALID, "Expect a 1D vector, but got shape with %d dimensions", self->ndim);
    TMI_REQUIRE_PTR(r >= 0, TM_INVALID, "Expect a non-negative number, but got %lld", (long long)r);
    if (r == 0) return tm_zeros_full((tm_int[]){0}, 1, (tm_dtype)self->dtype, -1, self->device, NULL);
    TMI_REQUIRE_PTR(r <= TMI_MAX_DIMS, TM_INVALID, "combinations: too many elements per combination");
    int64_t n = self->numel, pick[TMI_MAX_DIMS], count = 0;
    TMI_VEC(int64_t) all = {0};
    bool more = n > 0 && (with_replacement || r <= n), good = true;
    for (int64_t k = 0; k < r; k++) pick[k] = with_replacement ? 0 : k;
    while (more && good) {
        for (int64_t k = 0; k < r && good; k++) good = tmi_vec_push(&all, pick[k]);
        count++;
        int64_t k = r - 1;
        while (k >= 0 && pick[k] == (with_replacement ? n - 1 : n - r + k)) k--;
        more = k >= 0;
        if (!more) break;
        pick[k]++;
        for (int64_t j = k + 1; j < r; j++) pick[j] = pick[j - 1] + (with_replacement ? 0 : 1);
    }
    tm_tensor *at = good ? tmi_own(tmi_tensor_new(1, &all.len, NULL, TM_I64, self->device)) : NULL;
    if (at && all.len) memcpy(tmi_data(at), all.data, (size_t)all.len * sizeof(int64_t));
    tmi_vec_free(&all);
    return at ? tm_reshape(tm_index_select(self, 0, at), (tm_int[]){count, r}, 2) : NULL;
}

tm_tensor *tmi_vander(tm_tensor *x, const tm_int *N, bool increasing)
{
    TMI_REQUIRE_PTR(x->ndim == 1, TM_INVALID, "x must be a one-dimensional tensor.");
    tm_int n = N ? *N : x->sizes[0];
    TMI_REQUIRE_PTR(n >= 0, TM_INVALID, "N must be non-negative.");
    tm_dtype dtype = tmi_is_integral(x->dtype) || x->dtype == TM_BOOL ? TM_I64 : (tm_dtype)x->dtype;
    tm_tensor *one = tm_ones_full((tm_int[]){x->sizes[0], 1}, 2, dtype, -1, x->device, NULL);
    if (n == 0) return tmi_make_zeros((tm_int[]){x->sizes[0], 0}, 2, dtype, x->device);
    tm_tensor *out = one;
    if (n > 1) {
        tm_tensor *powers = tm_cumprod(tm_expand(tm_unsqueeze(tmi_cast(x, dtype), 1), (tm_int[]){x->sizes[0], n - 1}, 2), 1);
        out = tm_cat_full((tm_tensor *[]){one, powers}, 2, 1);
    }
    return increasing ? out : tm_flip(out, (tm_int[]){1}, 1);
}
