#include "scratch.h"

#include "pointwise.h"

tm_tensor *tmk_plain(const tm_tensor *t, tm_dtype dtype)
{
    tm_tensor *u = (tm_tensor *)t;
    if (t->dtype == dtype && tmi_contiguous(t)) {
        tmi_retain(u);
        return u;
    }
    tm_tensor *copy = tmi_tensor_new(t->ndim, t->sizes, NULL, dtype, t->device);
    if (copy && tmk_copy(copy, t) != TM_OK) {
        tmi_release(copy);
        return NULL;
    }
    return copy;
}

tm_tensor *tmk_plain_out(tm_tensor *out, tm_dtype dtype)
{
    if (out->dtype == dtype && tmi_contiguous(out)) {
        tmi_retain(out);
        return out;
    }
    return tmi_tensor_new(out->ndim, out->sizes, NULL, dtype, out->device);
}

tm_status tmk_plain_end(tm_tensor *out, tm_tensor *plain, tm_status status)
{
    if (!plain) return tm_error_status();
    if (plain != out && status == TM_OK) status = tmk_copy(out, plain);
    tmi_release(plain);
    return status;
}

bool tmk_same_view(const tm_tensor *a, const tm_tensor *b)
{
    if (a->storage != b->storage || a->offset != b->offset || a->ndim != b->ndim || a->dtype != b->dtype) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->sizes[d] != b->sizes[d] || (a->strides[d] != b->strides[d] && a->sizes[d] != 1)) return false;
    return true;
}

const tm_tensor *tmk_stack_wrap(tmk_stack_tensor *s, void *data, tm_dtype dtype, int ndim, const int64_t *sizes)
{
    memset(s, 0, sizeof *s);
    s->storage.data = data;
    tm_tensor *t = &s->t;
    t->storage = &s->storage;
    t->sizes = (int64_t *)sizes;
    t->strides = t->inline_dims;
    t->ndim = ndim;
    t->dtype = (uint8_t)dtype;
    t->numel = 1;
    for (int d = 0; d < ndim; d++) t->numel *= sizes[d];
    t->flags = TMI_CONTIGUOUS;
    if (ndim == 1) t->strides[0] = 1;
    return t;
}
