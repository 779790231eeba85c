/* Composites around views: reshape, flatten, split and the gradients of views. */
#include "base/alloc.h"
#include "op_bodies.h"
#include "view_sizes.h"

/* ---------------------------------------------------------------- size */

tm_tensor *tmi_reshape(tm_tensor *self, const tm_int *shape, int64_t n_shape)
{
    tm_int sizes[TMI_MAX_DIMS], strides[TMI_MAX_DIMS];
    TMI_TRY_PTR(tmi_infer_size(n_shape, shape, self->numel, sizes));
    if (tmi_view_strides(self, n_shape, sizes, strides)) return tm_view(self, sizes, n_shape);
    return tmo_unsafe_view(tm_clone_full(self, TM_CONTIGUOUS), sizes, n_shape);
}

tm_tensor *tmi_view_as(tm_tensor *self, tm_tensor *other) { return tm_view(self, other->sizes, other->ndim); }
tm_tensor *tmi_view_reshape_as(tm_tensor *self, tm_tensor *other) { return tm_reshape(self, other->sizes, other->ndim); }
tm_tensor *tmi_ravel(tm_tensor *self) { return tm_reshape(tm_contiguous(self), (tm_int[]){-1}, 1); }
tm_tensor *tmi_expand_as(tm_tensor *self, tm_tensor *other) { return tm_expand(self, other->sizes, other->ndim); }
tm_tensor *tmi_broadcast_to(tm_tensor *self, const tm_int *size, int64_t n_size) { return tm_expand(self, size, n_size); }

tm_tensor *tmi_flatten(tm_tensor *self, tm_int start_dim, tm_int end_dim)
{
    tm_int sizes[TMI_MAX_DIMS], joined = 1;
    int n = 0;
    TMI_TRY_PTR(tmi_wrap_dim(&start_dim, self->ndim));
    TMI_TRY_PTR(tmi_wrap_dim(&end_dim, self->ndim));
    TMI_REQUIRE_PTR(start_dim <= end_dim, TM_INVALID, "flatten() has invalid args: start_dim cannot come after end_dim");
    if (self->ndim == 0) return tm_reshape(self, (tm_int[]){1}, 1);
    if (start_dim == end_dim) return self;
    for (int i = 0; i < start_dim; i++) sizes[n++] = self->sizes[i];
    for (int64_t i = start_dim; i <= end_dim; i++) joined *= self->sizes[i];
    sizes[n++] = joined;
    for (int64_t i = end_dim + 1; i < self->ndim; i++) sizes[n++] = self->sizes[i];
    return tm_reshape(self, sizes, n);
}

tm_tensor *tmi_unflatten(tm_tensor *self, tm_int dim, const tm_int *sizes, int64_t n_sizes)
{
    tm_int all[TMI_MAX_DIMS], part[TMI_MAX_DIMS];
    int n = 0;
    TMI_TRY_PTR(tmi_wrap_dim(&dim, self->ndim));
    TMI_REQUIRE_PTR(n_sizes > 0, TM_INVALID, "unflatten: sizes must be non-empty");
    TMI_REQUIRE_PTR(self->ndim > 0 && self->ndim + n_sizes - 1 <= TMI_MAX_DIMS, TM_INVALID, "unflatten: too many dimensions");
    tm_int product = 1;
    bool inferred = false;
    for (int64_t i = 0; i < n_sizes; i++) {
        inferred |= sizes[i] == -1;
        product *= sizes[i] == -1 ? 1 : sizes[i];
    }
    if (inferred ? product == 0 || self->sizes[dim] % product : product != self->sizes[dim]) {
        char text[256];
        tmi_format_sizes(text, sizeof text, (int)n_sizes, sizes);
        return tmi_fail(TM_INVALID, "unflatten: Provided sizes %s don't multiply up to the size of dim %lld (%lld) in the input tensor", text,
                        (long long)dim, (long long)self->sizes[dim]), NULL;
    }
    TMI_TRY_PTR(tmi_infer_size(n_sizes, sizes, self->sizes[dim], part));
    for (int i = 0; i < dim; i++) all[n++] = self->sizes[i];
    for (int64_t i = 0; i < n_sizes; i++) all[n++] = part[i];
    for (int64_t i = dim + 1; i < self->ndim; i++) all[n++] = self->sizes[i];
    return tm_view(self, all, n);
}

/* ---------------------------------------------------------------- order */

tm_tensor *tmi_swapaxes(tm_tensor *self, tm_int axis0, tm_int axis1) { return tm_transpose_int(self, axis0, axis1); }
tm_tensor *tmi_swapdims(tm_tensor *self, tm_int dim0, tm_int dim1) { return tm_transpose_int(self, dim0, dim1); }

tm_tensor *tmi_numpy_t(tm_tensor *self)
{
    tm_int dims[TMI_MAX_DIMS];
    for (int i = 0; i < self->ndim; i++) dims[i] = self->ndim - 1 - i;
    return tm_permute(self, dims, self->ndim);
}

tm_tensor *tmi_mt(tm_tensor *self)
{
    TMI_REQUIRE_PTR(self->ndim >= 2, TM_INVALID, "tensor.mT is only supported on matrices or batches of matrices. Got %d-D tensor.", self->ndim);
    return tm_transpose_int(self, -2, -1);
}

tm_tensor *tmi_matrix_h(tm_tensor *self)
{
    TMI_REQUIRE_PTR(self->ndim == 2 || self->ndim == 0, TM_INVALID,
                    "tensor.H is only supported on matrices (2-D tensors). Got %d-D tensor.", self->ndim);
    tm_tensor *t = self->ndim ? tm_transpose_int(self, 0, 1) : self;
    return tmi_is_complex(self->dtype) ? tm_conj(t) : t;
}

tm_tensor *tmi_adjoint(tm_tensor *self)
{
    TMI_REQUIRE_PTR(self->ndim != 1, TM_INVALID, "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.");
    tm_tensor *t = self->ndim ? tm_transpose_int(self, -2, -1) : self;
    return tmi_is_complex(self->dtype) ? tm_conj(t) : t;
}

tm_tensor *tmi_movedim(tm_tensor *self, const tm_int *source, int64_t n_source, const tm_int *destination, int64_t n_destination)
{
    tm_int order[TMI_MAX_DIMS];
    bool from[TMI_MAX_DIMS] = {false}, to[TMI_MAX_DIMS] = {false};
    TMI_REQUIRE_PTR(n_source == n_destination, TM_INVALID,
                    "movedim: Invalid source or destination dims: source (%lld dims) should contain the same number of dims as destination (%lld dims)",
                    (long long)n_source, (long long)n_destination);
    for (int64_t i = 0; i < n_source; i++) {
        tm_int s = source[i], d = destination[i];
        TMI_TRY_PTR(tmi_wrap_dim(&s, self->ndim));
        TMI_TRY_PTR(tmi_wrap_dim(&d, self->ndim));
        if (self->ndim == 0) return self;
        TMI_REQUIRE_PTR(!from[s] && !to[d], TM_INVALID, "movedim: repeated dim in `%s`", from[s] ? "source" : "destination");
        from[s] = to[d] = true;
        order[d] = s;
    }
    for (int d = 0, s = 0; d < self->ndim; d++) {
        if (to[d]) continue;
        while (from[s]) s++;
        order[d] = s++;
    }
    return tm_permute(self, order, self->ndim);
}

tm_tensor *tmi_movedim_int(tm_tensor *self, tm_int source, tm_int destination) { return tm_movedim_intlist(self, &source, 1, &destination, 1); }

/* ---------------------------------------------------------------- parts */

tm_tensor *tmi_narrow(tm_tensor *self, tm_int dim, tm_int start, tm_int length)
{
    TMI_REQUIRE_PTR(self->ndim > 0, TM_INVALID, "narrow() cannot be applied to a 0-dim tensor.");
    TMI_REQUIRE_PTR(length >= 0, TM_INVALID, "narrow(): length must be non-negative.");
    TMI_TRY_PTR(tmi_wrap_dim(&dim, self->ndim));
    tm_int size = self->sizes[dim];
    TMI_REQUIRE_PTR(start >= -size && start <= size, TM_INDEX,
                    "start out of range (expected to be in range of [%lld, %lld], but got %lld)", (long long)-size, (long long)size, (long long)start);
    if (start < 0) start += size;
    TMI_REQUIRE_PTR(start <= size - length, TM_INVALID, "start (%lld) + length (%lld) exceeds dimension size (%lld).", (long long)start, (long long)length,
                    (long long)size);
    tm_int end = start + length;
    return tm_slice_full(self, dim, &start, &end, 1);
}

tm_tensor *tmi_narrow_at(tm_tensor *self, tm_int dim, tm_tensor *start, tm_int length)
{
    tm_scalar at;
    TMI_REQUIRE_PTR(start->ndim == 0 && (tmi_is_integral(start->dtype)), TM_INVALID, "start must be an 0-dim integral Tensor.");
    TMI_TRY_PTR(tm_tensor_item(start, &at));
    return tm_narrow(self, dim, tmi_scalar_i64(at), length);
}

tm_tensor *tmi_narrow_copy(tm_tensor *self, tm_int dim, tm_int start, tm_int length)
{
    return tm_clone_full(tm_narrow(self, dim, start, length), TM_CONTIGUOUS);
}

/* The real part of a real tensor is the tensor. */
tm_tensor *tmi_real(tm_tensor *self)
{
    return tmi_is_complex(self->dtype) ? tm_select_int(tm_view_as_real(self), -1, 0) : self;
}

tm_tensor *tmi_imag(tm_tensor *self)
{
    TMI_REQUIRE_PTR(tmi_is_complex(self->dtype), TM_INVALID, "imag is not implemented for tensors with non-complex dtypes.");
    return tm_select_int(tm_view_as_real(self), -1, 1);
}

/* ---------------------------------------------------------------- lists of parts */

/* Views of `sizes[i]` elements along dim, one after another. */
static tm_tensor_list *parts(tm_tensor *self, tm_int dim, int64_t n, const tm_int *sizes)
{
    tm_tensor_list *list = tmi_list_new(n);
    tm_int at = 0;
    for (int64_t i = 0; list && i < n; i++) {
        tm_int end = at + sizes[i];
        list->t[i] = tm_retain(tm_slice_full(self, dim, &at, &end, 1));
        at = end;
        if (!list->t[i]) {
            tm_tensor_list_release(list);
            return NULL;
        }
    }
    return tmi_own_list(list);
}

/* n sizes of `each`, the last one what is left. */
static tm_int *even_sizes(tm_int total, tm_int each, int64_t n)
{
    tm_int *sizes = tmi_alloc((size_t)n * sizeof *sizes);
    for (int64_t i = 0; sizes && i < n; i++) sizes[i] = i + 1 < n ? each : total - each * (n - 1);
    return sizes;
}

tm_tensor_list *tmi_split(tm_tensor *self, tm_int split_size, tm_int dim)
{
    TMI_REQUIRE_PTR(self->ndim > 0, TM_INVALID, "split expects at least a 1-dimensional tensor");
    TMI_REQUIRE_PTR(split_size >= 0, TM_INVALID, "split expects split_size be non-negative, but got split_size=%lld", (long long)split_size);
    TMI_TRY_PTR(tmi_wrap_dim(&dim, self->ndim));
    tm_int total = self->sizes[dim];
    TMI_REQUIRE_PTR(split_size > 0 || total == 0, TM_INVALID,
                    "split_size can only be 0 if dimension size is 0, but got dimension size of %lld", (long long)total);
    int64_t n = split_size == 0 || total == 0 ? 1 : (total + split_size - 1) / split_size;
    tm_int *sizes = even_sizes(total, split_size, n);
    if (!sizes) return NULL;
    tm_tensor_list *list = parts(self, dim, n, sizes);
    tmi_free(sizes, (size_t)n * sizeof *sizes);
    return list;
}

tm_tensor_list *tmi_split_with_sizes(tm_tensor *self, const tm_int *split_sizes, int64_t n, tm_int dim)
{
    TMI_REQUIRE_PTR(self->ndim > 0, TM_INVALID, "split_with_sizes expects at least a 1-dimensional tensor");
    TMI_TRY_PTR(tmi_wrap_dim(&dim, self->ndim));
    tm_int sum = 0;
    for (int64_t i = 0; i < n; i++) {
        TMI_REQUIRE_PTR(split_sizes[i] >= 0, TM_INVALID, "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes[%lld] = %lld",
                        (long long)i, (long long)split_sizes[i]);
        sum += split_sizes[i];
    }
    char text[512];
    tmi_format_sizes(text, sizeof text, (int)(n < TMI_MAX_DIMS ? n : TMI_MAX_DIMS), split_sizes);
    TMI_REQUIRE_PTR(sum == self->sizes[dim], TM_INVALID,
                    "split_with_sizes expects split_sizes to sum exactly to %lld (input tensor's size at dimension %lld), but got split_sizes=%s",
                    (long long)self->sizes[dim], (long long)dim, text);
    return parts(self, dim, n, split_sizes);
}

tm_tensor_list *tmi_split_sizes(tm_tensor *self, const tm_int *split_size, int64_t n, tm_int dim)
{
    return tm_split_with_sizes_full(self, split_size, n, dim);
}

tm_tensor_list *tmi_chunk(tm_tensor *self, tm_int chunks, tm_int dim)
{
    TMI_REQUIRE_PTR(self->ndim > 0, TM_INVALID, "chunk expects at least a 1-dimensional tensor");
    TMI_REQUIRE_PTR(chunks > 0, TM_INVALID, "chunk expects `chunks` to be greater than 0, got: %lld", (long long)chunks);
    TMI_TRY_PTR(tmi_wrap_dim(&dim, self->ndim));
    tm_int total = self->sizes[dim], each = (total + chunks - 1) / chunks;
    if (each > 0) return tm_split_full(self, each, dim);
    tm_int *sizes = tmi_calloc((size_t)chunks * sizeof *sizes);
    if (!sizes) return NULL;
    tm_tensor_list *list = tm_split_with_sizes_full(self, sizes, chunks, dim);
    tmi_free(sizes, (size_t)chunks * sizeof *sizes);
    return list;
}

tm_tensor_list *tmi_unbind(tm_tensor *self, tm_int dim)
{
    TMI_REQUIRE_PTR(self->ndim > 0, TM_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
    TMI_TRY_PTR(tmi_wrap_dim(&dim, self->ndim));
    tm_tensor_list *list = tmi_list_new(self->sizes[dim]);
    for (int64_t i = 0; list && i < list->len; i++) {
        list->t[i] = tm_retain(tm_select_int(self, dim, i));
        if (!list->t[i]) {
            tm_tensor_list_release(list);
            return NULL;
        }
    }
    return tmi_own_list(list);
}

tm_tensor_list *tmi_tensor_split_sections(tm_tensor *self, tm_int sections, tm_int dim)
{
    TMI_REQUIRE_PTR(self->ndim > 0, TM_INVALID, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
    TMI_REQUIRE_PTR(sections > 0, TM_INVALID, "number of sections must be larger than 0, got %lld", (long long)sections);
    TMI_TRY_PTR(tmi_wrap_dim(&dim, self->ndim));
    tm_int total = self->sizes[dim], *sizes = tmi_alloc((size_t)sections * sizeof *sizes);
    if (!sizes) return NULL;
    for (int64_t i = 0; i < sections; i++) sizes[i] = total / sections + (i < total % sections);
    tm_tensor_list *list = parts(self, dim, sections, sizes);
    tmi_free(sizes, (size_t)sections * sizeof *sizes);
    return list;
}

/* Cuts at the given positions, each taken as a Python slice bound. */
tm_tensor_list *tmi_tensor_split_indices(tm_tensor *self, const tm_int *indices, int64_t n, tm_int dim)
{
    TMI_REQUIRE_PTR(self->ndim > 0, TM_INVALID, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
    TMI_TRY_PTR(tmi_wrap_dim(&dim, self->ndim));
    tm_tensor_list *list = tmi_list_new(n + 1);
    tm_int start = 0;
    for (int64_t i = 0; list && i <= n; i++) {
        list->t[i] = tm_retain(tm_slice_full(self, dim, &start, i < n ? &indices[i] : NULL, 1));
        if (!list->t[i]) {
            tm_tensor_list_release(list);
            return NULL;
        }
        if (i < n) start = indices[i];
    }
    return tmi_own_list(list);
}

/* Sections (0-d) or indices (1-d) given as an int64 tensor on the CPU. */
tm_tensor_list *tmi_tensor_split_at(tm_tensor *self, tm_tensor *where, tm_int dim)
{
    TMI_REQUIRE_PTR(self->ndim > 0, TM_INVALID, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
    TMI_REQUIRE_PTR(where->device.type == TM_CPU, TM_INVALID, "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on meta");
    TMI_REQUIRE_PTR(where->dtype == TM_I64, TM_INVALID, "tensor_split expected tensor_indices_or_sections to have dtype of long, but got %s",
                    tmi_dtypes[where->dtype].type_name);
    TMI_REQUIRE_PTR(where->ndim <= 1, TM_INVALID,
                    "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a tensor with %d dims", where->ndim);
    tm_tensor *flat = tm_contiguous(where);
    if (!flat) return NULL;
    const int64_t *at = tmi_data(flat);
    return where->ndim == 0 ? tm_tensor_split_sections_full(self, at[0], dim) : tm_tensor_split_indices_full(self, at, flat->numel, dim);
}

static tm_tensor_list *split_sections(tm_tensor *self, const char *name, int least, tm_int sections, tm_int dim)
{
    TMI_REQUIRE_PTR(self->ndim >= least, TM_INVALID, "torch.%s requires a tensor with at least %d dimension%s, but got a tensor with %d dimensions!", name,
                    least, least > 1 ? "s" : "", self->ndim);
    TMI_REQUIRE_PTR(sections > 0 && self->sizes[dim] % sections == 0, TM_INVALID,
                    "torch.%s attempted to split along dimension %lld, but the size of the dimension %lld is not divisible by the split_size %lld!", name,
                    (long long)dim, (long long)self->sizes[dim], (long long)sections);
    return tm_tensor_split_sections_full(self, sections, dim);
}

static tm_tensor_list *split_at(tm_tensor *self, const char *name, int least, const tm_int *indices, int64_t n, tm_int dim)
{
    TMI_REQUIRE_PTR(self->ndim >= least, TM_INVALID, "torch.%s requires a tensor with at least %d dimension%s, but got a tensor with %d dimensions!", name,
                    least, least > 1 ? "s" : "", self->ndim);
    return tm_tensor_split_indices_full(self, indices, n, dim);
}

tm_tensor_list *tmi_hsplit(tm_tensor *self, tm_int sections) { return split_sections(self, "hsplit", 1, sections, self->ndim == 1 ? 0 : 1); }
tm_tensor_list *tmi_hsplit_at(tm_tensor *self, const tm_int *indices, int64_t n) { return split_at(self, "hsplit", 1, indices, n, self->ndim == 1 ? 0 : 1); }
tm_tensor_list *tmi_vsplit(tm_tensor *self, tm_int sections) { return split_sections(self, "vsplit", 2, sections, 0); }
tm_tensor_list *tmi_vsplit_at(tm_tensor *self, const tm_int *indices, int64_t n) { return split_at(self, "vsplit", 2, indices, n, 0); }
tm_tensor_list *tmi_dsplit(tm_tensor *self, tm_int sections) { return split_sections(self, "dsplit", 3, sections, 2); }
tm_tensor_list *tmi_dsplit_at(tm_tensor *self, const tm_int *indices, int64_t n) { return split_at(self, "dsplit", 3, indices, n, 2); }

/* ---------------------------------------------------------------- gradients */

/* Zeros of these sizes with grad's type and device. */
static tm_tensor *zeros_for(tm_tensor *grad, const tm_int *sizes, int64_t n)
{
    return tm_zeros_full(sizes, n, grad->dtype, -1, grad->device, NULL);
}

tm_tensor *tmi_slice_backward(tm_tensor *grad, const tm_int *sizes, int64_t n, tm_int dim, const tm_int *start, const tm_int *end, tm_int step)
{
    tm_tensor *whole = zeros_for(grad, sizes, n);
    tm_copy_inplace(tm_slice_full(whole, dim, start, end, step), grad);
    return whole;
}

tm_tensor *tmi_select_backward(tm_tensor *grad, const tm_int *sizes, int64_t n, tm_int dim, tm_int index)
{
    tm_tensor *whole = zeros_for(grad, sizes, n);
    tm_copy_inplace(tm_select_int(whole, dim, index), grad);
    return whole;
}

tm_tensor *tmi_diagonal_backward(tm_tensor *grad, const tm_int *sizes, int64_t n, tm_int offset, tm_int dim1, tm_int dim2)
{
    tm_tensor *whole = zeros_for(grad, sizes, n);
    tm_copy_inplace(tm_diagonal_full(whole, offset, dim1, dim2), grad);
    return whole;
}

tm_tensor *tmi_grad_permute_backward(tm_tensor *grad, const tm_int *dims, int64_t n)
{
    tm_int back[TMI_MAX_DIMS];
    for (int64_t i = 0; i < n; i++) back[dims[i] < 0 ? dims[i] + n : dims[i]] = i;
    return grad ? tm_permute(grad, back, n) : NULL;
}

/* Windows overlap when step < size: each window position k contributes to elements k, k + step, ... of the dimension, one slice each. */
tm_tensor *tmi_unfold_backward(tm_tensor *grad, const tm_int *sizes, int64_t n, tm_int dim, tm_int size, tm_int step)
{
    tm_tensor *whole = zeros_for(grad, sizes, n);
    if (n == 0) return tm_add_inplace(whole, tm_reshape(grad, NULL, 0));
    TMI_TRY_PTR(tmi_wrap_dim(&dim, n));
    tm_int windows = grad->sizes[dim];
    for (tm_int k = 0; k < size && windows > 0; k++) {
        tm_int end = k + (windows - 1) * step + 1;
        tm_add_inplace(tm_slice_full(whole, dim, &k, &end, step), tm_select_int(grad, -1, k));
    }
    return whole;
}

typedef struct layout {
    const tm_int *sizes, *strides;
    int64_t n;
    tm_int offset;
} layout;

static tm_int last_element(const layout *l)
{
    tm_int last = l->offset;
    for (int64_t i = 0; i < l->n; i++) last += l->sizes[i] > 0 ? (l->sizes[i] - 1) * l->strides[i] : 0;
    return last;
}

/* Two indices may name one element, unless each stride steps over all that the smaller ones reach. */
static bool may_overlap(const layout *l)
{
    tm_int reach = 0;
    uint64_t done = 0;
    for (int64_t k = 0; k < l->n; k++) {
        int64_t least = -1;
        for (int64_t i = 0; i < l->n; i++)
            if (!(done >> i & 1) && (least < 0 || l->strides[i] < l->strides[least])) least = i;
        done |= UINT64_C(1) << least;
        if (l->sizes[least] <= 1) continue;
        if (l->strides[least] <= reach) return true;
        reach += (l->sizes[least] - 1) * l->strides[least];
    }
    return false;
}

static tm_tensor *laid_out(tm_tensor *t, const layout *l, tm_int base)
{
    return tm_as_strided_full(t, l->sizes, l->n, l->strides, l->n, &(tm_int){l->offset - base});
}

/* How often a view names each place of a buffer is summed with index_add over the places' numbers. */
static tm_tensor *add_by_place(tm_tensor *buffer, const layout *l, tm_int base, tm_tensor *values)
{
    tm_tensor *places = tm_arange_full(tm_i64(buffer ? buffer->numel : 0), TM_I64, -1, values ? values->device : (tm_device){TM_CPU, -1}, NULL);
    return tm_index_add_full(buffer, 0, tm_reshape(laid_out(places, l, base), (tm_int[]){-1}, 1), tm_reshape(values, (tm_int[]){-1}, 1), tm_i64(1));
}

/* A buffer of the storage's span collects what each viewed element receives; the input's own geometry then reads it, divided by how often the
 * input itself names each element. Where no element is named twice, that is a copy into a view of the buffer. */
tm_tensor *tmi_grad_as_strided_backward(tm_tensor *grad, const tm_int *size, int64_t n, const tm_int *stride, int64_t n_stride, const tm_int *offset,
                                        const tm_int *in_size, int64_t n_in, const tm_int *in_stride, int64_t n_in_stride, tm_int in_offset)
{
    (void)n_stride, (void)n_in_stride;
    if (!grad) return NULL;
    layout to = {size, stride, n, offset ? *offset : in_offset}, in = {in_size, in_stride, n_in, in_offset};
    tm_int base = to.offset < in.offset ? to.offset : in.offset, end = last_element(&to), end_in = last_element(&in);
    tm_int span = (end > end_in ? end : end_in) - base + 1;
    tm_tensor *buffer = zeros_for(grad, &span, 1);
    if (may_overlap(&to)) buffer = add_by_place(buffer, &to, base, grad);
    else tm_copy_inplace(laid_out(buffer, &to, base), grad);
    if (may_overlap(&in)) {
        tm_tensor *count = add_by_place(zeros_for(grad, &span, 1), &in, base, tm_ones_full(in_size, n_in, grad->dtype, -1, grad->device, NULL));
        buffer = tm_div(buffer, tm_maximum(count, tm_ones_like(count)));
    }
    return laid_out(buffer, &in, base);
}

/* Joins the gradients of consecutive parts; parts without one count as zeros. */
static tm_tensor *join_parts(tm_tensor *const *grads, int64_t n_grads, const tm_int *part_sizes, tm_int dim, const tm_int *sizes, int64_t n)
{
    tm_tensor *any = NULL;
    for (int64_t i = 0; i < n_grads && !any; i++) any = grads[i];
    if (!any) return NULL;
    TMI_TRY_PTR(tmi_wrap_dim(&dim, n));
    tm_tensor **all = tmi_alloc((size_t)n_grads * sizeof *all), *joined = NULL;
    for (int64_t i = 0; all && i < n_grads; i++) {
        tm_int part[TMI_MAX_DIMS];
        memcpy(part, sizes, (size_t)n * sizeof *part);
        part[dim] = part_sizes[i];
        all[i] = grads[i] ? grads[i] : zeros_for(any, part, n);
    }
    if (all) joined = tm_cat_full(all, n_grads, dim);
    tmi_free(all, (size_t)n_grads * sizeof *all);
    return joined;
}

tm_tensor *tmi_grad_split_with_sizes_backward(tm_tensor *const *grads, int64_t n_grads, const tm_int *part_sizes, int64_t n_parts, tm_int dim,
                                              const tm_int *sizes, int64_t n)
{
    (void)n_parts;
    return join_parts(grads, n_grads, part_sizes, dim, sizes, n);
}

tm_tensor *tmi_grad_split_backward(tm_tensor *const *grads, int64_t n_grads, tm_int split_size, tm_int dim, const tm_int *sizes, int64_t n)
{
    TMI_TRY_PTR(tmi_wrap_dim(&dim, n));
    tm_int *parts_of = even_sizes(sizes[dim], split_size, n_grads);
    if (!parts_of) return NULL;
    tm_tensor *joined = join_parts(grads, n_grads, parts_of, dim, sizes, n);
    tmi_free(parts_of, (size_t)n_grads * sizeof *parts_of);
    return joined;
}

tm_tensor *tmi_grad_unbind_backward(tm_tensor *const *grads, int64_t n_grads, tm_int dim, const tm_int *sizes, int64_t n)
{
    tm_tensor *any = NULL, *joined = NULL;
    tm_int part[TMI_MAX_DIMS];
    for (int64_t i = 0; i < n_grads && !any; i++) any = grads[i];
    if (!any) return NULL;
    TMI_TRY_PTR(tmi_wrap_dim(&dim, n));
    for (int64_t i = 0, j = 0; i < n; i++)
        if (i != dim) part[j++] = sizes[i];
    tm_tensor **all = tmi_alloc((size_t)n_grads * sizeof *all);
    for (int64_t i = 0; all && i < n_grads; i++) all[i] = grads[i] ? grads[i] : zeros_for(any, part, n - 1);
    if (all) joined = tm_stack_full(all, n_grads, dim);
    tmi_free(all, (size_t)n_grads * sizeof *all);
    return joined;
}

/* ---------------------------------------------------------------- writing a part of a copy */

static tm_tensor *check_part(tm_tensor *part, tm_tensor *src)
{
    char want[256], have[256];
    if (!part) return NULL;
    tmi_format_sizes(want, sizeof want, part->ndim, part->sizes);
    tmi_format_sizes(have, sizeof have, src->ndim, src->sizes);
    bool same = part->ndim == src->ndim && memcmp(part->sizes, src->sizes, (size_t)part->ndim * sizeof(tm_int)) == 0;
    TMI_REQUIRE_PTR(same, TM_SHAPE, "expected src to have a size equal to the slice of self. src size = %s, slice size = %s", have, want);
    return part;
}

tm_tensor *tmi_slice_scatter(tm_tensor *self, tm_tensor *src, tm_int dim, const tm_int *start, const tm_int *end, tm_int step)
{
    tm_tensor *whole = tm_clone(self), *part = check_part(tm_slice_full(whole, dim, start, end, step), src);
    return part && tm_copy_inplace(part, src) ? whole : NULL;
}

tm_tensor *tmi_select_scatter(tm_tensor *self, tm_tensor *src, tm_int dim, tm_int index)
{
    tm_tensor *whole = tm_clone(self), *part = check_part(tm_select_int(whole, dim, index), src);
    return part && tm_copy_inplace(part, src) ? whole : NULL;
}

tm_tensor *tmi_diagonal_scatter(tm_tensor *self, tm_tensor *src, tm_int offset, tm_int dim1, tm_int dim2)
{
    tm_tensor *whole = tm_clone(self), *part = check_part(tm_diagonal_full(whole, offset, dim1, dim2), src);
    return part && tm_copy_inplace(part, src) ? whole : NULL;
}

tm_tensor *tmi_as_strided_scatter(tm_tensor *self, tm_tensor *src, const tm_int *size, int64_t n, const tm_int *stride, int64_t n_stride,
                                  const tm_int *offset)
{
    tm_tensor *whole = tm_clone(self), *part = check_part(tm_as_strided_full(whole, size, n, stride, n_stride, offset), src);
    return part && tm_copy_inplace(part, src) ? whole : NULL;
}
