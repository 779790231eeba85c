/* Arithmetic on shapes: checks, strides, broadcasting, layout questions. */
#include <stdio.h>

#include "tensor_state.h"

void tmi_format_sizes(char *buf, size_t n, int ndim, const int64_t *sizes)
{
    size_t at = 0;
    buf[0] = 0;
    for (int i = 0; i < ndim && at + 1 < n; i++) {
        int wrote = snprintf(buf + at, n - at, i ? ", %lld" : "[%lld", (long long)sizes[i]);
        at = wrote < 0 || at + (size_t)wrote >= n ? n - 1 : at + (size_t)wrote;
    }
    if (at + 1 < n) snprintf(buf + at, n - at, ndim ? "]" : "[]");
}

static tm_status overflow(int ndim, const int64_t *sizes)
{
    char text[512];
    tmi_format_sizes(text, sizeof text, ndim, sizes);
    return tmi_fail(TM_INVALID, "Storage size calculation overflowed with sizes=%s", text);
}

static tm_status negative_dim(int ndim, const int64_t *sizes, int64_t bad)
{
    char text[512];
    tmi_format_sizes(text, sizeof text, ndim, sizes);
    return tmi_fail(TM_INVALID, "Trying to create tensor with negative dimension %lld: %s", (long long)bad, text);
}

/* An overflow counts even where a later size is 0, and sizes are checked for it in PyTorch's order. */
tm_status tmi_check_sizes(int ndim, const int64_t *sizes, tm_dtype dtype, int64_t *numel)
{
    TMI_REQUIRE(ndim >= 0 && ndim <= TMI_MAX_DIMS, TM_INVALID, "a tensor has at most %d dimensions, got %d", TMI_MAX_DIMS, ndim);
    for (int i = 0; i < ndim; i++)
        if (TMI_UNLIKELY(sizes[i] < 0)) return negative_dim(ndim, sizes, sizes[i]);
    uint64_t n = 1, bytes;
    bool over = false;
    for (int i = 0; i < ndim; i++) over |= __builtin_mul_overflow(n, (uint64_t)sizes[i], &n);
    over |= __builtin_mul_overflow(n, (uint64_t)tmi_dtypes[dtype].size, &bytes);
    if (TMI_UNLIKELY(over || bytes > INT64_MAX)) return overflow(ndim, sizes);
    *numel = (int64_t)n;
    return TM_OK;
}

tm_status tmi_wrap_dim(int64_t *dim, int64_t ndim)
{
    int64_t n = ndim > 0 ? ndim : 1;
    if (TMI_UNLIKELY(*dim < -n || *dim >= n))
        return tmi_fail(TM_INDEX, "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)", (long long)-n,
                        (long long)(n - 1), (long long)*dim);
    if (*dim < 0) *dim += n;
    return TM_OK;
}

/* A size of 0 counts as 1, so that strides stay meaningful. Wraps around silently on overflow: sizes were checked. */
void tmi_contiguous_strides(int ndim, const int64_t *sizes, int64_t *strides)
{
    uint64_t n = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = (int64_t)n;
        n *= (uint64_t)(sizes[i] > 1 ? sizes[i] : 1);
    }
}

/* `out` may be `a` or `b`: filled from the last dimension on. */
tm_status tmi_broadcast_sizes(int na, const int64_t *a, int nb, const int64_t *b, int *n, int64_t *out)
{
    int total = na > nb ? na : nb;
    for (int k = 1; k <= total; k++) {
        int64_t x = k <= na ? a[na - k] : 1, y = k <= nb ? b[nb - k] : 1;
        if (TMI_UNLIKELY(x != y && x != 1 && y != 1))
            return tmi_fail(TM_SHAPE, "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d",
                            (long long)x, (long long)y, total - k);
        out[total - k] = x == 1 ? y : x;
    }
    *n = total;
    return TM_OK;
}

/* Whether strides are those of a dense tensor whose dimensions, slowest first, are `order`. */
static bool dense_in_order(const tm_tensor *t, const int *order, int n)
{
    int64_t expected = 1;
    for (int i = n - 1; i >= 0; i--) {
        int64_t size = t->sizes[order[i]];
        if (size == 1) continue;
        if (t->strides[order[i]] != expected) return false;
        expected *= size;
    }
    return true;
}

bool tmi_is_contiguous_as(const tm_tensor *t, tm_memory_format f)
{
    static const int nhwc[] = {0, 2, 3, 1}, ndhwc[] = {0, 2, 3, 4, 1};
    switch (f) {
    case TM_CHANNELS_LAST: return t->ndim == 4 && (t->numel == 0 || dense_in_order(t, nhwc, 4));
    case TM_CHANNELS_LAST_3D: return t->ndim == 5 && (t->numel == 0 || dense_in_order(t, ndhwc, 5));
    default: return tmi_contiguous(t);
    }
}

/* Dimensions of more than one element, sorted by stride (insertion sort: there are few). Returns how many. */
static int sorted_dims(const tm_tensor *t, int *dims)
{
    int n = 0;
    for (int i = 0; i < t->ndim; i++) {
        if (t->sizes[i] == 1) continue;
        int at = n++;
        for (; at > 0 && t->strides[dims[at - 1]] > t->strides[i]; at--) dims[at] = dims[at - 1];
        dims[at] = i;
    }
    return n;
}

bool tmi_is_non_overlapping_and_dense(const tm_tensor *t)
{
    if (tmi_contiguous(t) || t->numel == 0) return true;
    int dims[TMI_MAX_DIMS], n = sorted_dims(t, dims);
    int64_t expected = 1;
    for (int i = 0; i < n; i++) {
        if (t->strides[dims[i]] != expected) return false;
        expected *= t->sizes[dims[i]];
    }
    return true;
}

/* PyTorch's answer: certain overlap only. Overlaps that need number theory to find (as_strided) are the caller's. */
bool tmi_overlaps_itself(const tm_tensor *t)
{
    if (tmi_is_non_overlapping_and_dense(t)) return false;
    for (int i = 0; i < t->ndim; i++)
        if (t->strides[i] == 0 && t->sizes[i] > 1) return true;
    return false;
}
