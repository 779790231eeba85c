#include "resize.h"

/* Bytes that a view of these sizes and strides needs, from the storage's start. */
static int64_t bytes_needed(const tm_tensor *t, int ndim, const int64_t *sizes, const int64_t *strides)
{
    int64_t last = 0;
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] == 0) return 0;
        last += (sizes[i] - 1) * strides[i];
    }
    return (t->offset + last + 1) * (int64_t)tmi_dtype_size(t->dtype);
}

tm_status tmi_resize(tm_tensor *t, int ndim, const int64_t *sizes, const int64_t *strides)
{
    int64_t numel, made[TMI_MAX_DIMS];
    TMI_TRY(tmi_check_sizes(ndim, sizes, t->dtype, &numel));
    if (!strides) {
        tmi_contiguous_strides(ndim, sizes, made);
        strides = made;
    }
    int64_t need = bytes_needed(t, ndim, sizes, strides);
    if (need > (int64_t)t->storage->nbytes) TMI_TRY(tmi_storage_resize(t->storage, (size_t)need));
    return tmi_tensor_restride(t, ndim, sizes, strides, t->offset);
}

tm_status tmi_resize_output(tm_tensor *t, int ndim, const int64_t *sizes, const int64_t *strides)
{
    if (t->ndim == ndim && memcmp(t->sizes, sizes, (size_t)ndim * sizeof *sizes) == 0) return TM_OK;
    return tmi_resize(t, ndim, sizes, strides);
}
