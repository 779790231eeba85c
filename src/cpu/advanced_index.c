/* index and index_put by integer tensors: the indices become one array of element offsets, then it is a walk of pick.c.
 *
 * Result sizes, as NumPy's: where the indexed dims stand together, the broadcast sizes of the indices take their place; else they come first. */
#include "base/alloc.h"
#include "base/pool.h"
#include "op_bodies.h"
#include "ops/index_layout.h"
#include "pick.h"
#include "pointwise.h"
#include "scratch.h"

/* Adds index[...] * stride to every offset; negative indices count from the end. */
static tm_status add_offsets(const tmi_index_layout *l, const tm_tensor *index, int64_t dim, int64_t size, int64_t stride, int64_t *offsets)
{
    int64_t strides[TMI_MAX_DIMS], at[TMI_MAX_DIMS] = {0}, place = 0;
    int lead = l->n_common - index->ndim;
    for (int d = 0; d < l->n_common; d++) strides[d] = d < lead || index->sizes[d - lead] == 1 ? 0 : index->strides[d - lead];
    tm_tensor *plain = index->dtype == TM_I64 || index->dtype == TM_I32 ? NULL : tmk_plain(index, TM_I64);
    if (tm_error_status() != TM_OK) return tm_error_status();
    if (plain)
        for (int d = l->n_common - 1, n = 1; d >= 0; d--) {
            int64_t s = d < lead ? 1 : index->sizes[d - lead];
            strides[d] = s == 1 ? 0 : n;
            n *= (int)s;
        }
    const void *data = tmi_data(plain ? plain : index);
    bool narrow = !plain && index->dtype == TM_I32;
    tm_status status = TM_OK;
    for (int64_t i = 0; i < l->count; i++) {
        int64_t v = narrow ? ((const int32_t *)data)[place] : ((const int64_t *)data)[place];
        if (TMI_UNLIKELY(v < -size || v >= size)) {
            status = tmi_fail(TM_INDEX, "index %lld is out of bounds for dimension %lld with size %lld", (long long)v, (long long)dim, (long long)size);
            break;
        }
        offsets[i] += (v < 0 ? v + size : v) * stride;
        for (int d = l->n_common - 1; d >= 0; d--) {
            place += strides[d];
            if (++at[d] < l->common[d]) break;
            place -= l->common[d] * strides[d];
            at[d] = 0;
        }
    }
    if (plain) tmi_release(plain);
    return status;
}

static tm_status make_offsets(const tmi_index_layout *l, const tm_tensor *self, tm_tensor *const *indices, int64_t n, int64_t *offsets)
{
    memset(offsets, 0, (size_t)l->count * sizeof *offsets);
    if (l->count == 0) return TM_OK;
    for (int64_t d = 0; d < n; d++)
        if (indices[d]) TMI_TRY(add_offsets(l, indices[d], d, self->sizes[d], self->strides[d], offsets));
    return TM_OK;
}

/* The walk over [dims before, indexed, dims after]; `slim` is contiguous in the result's sizes, or a single number (step 0). */
static void make_walk(tmk_walk *w, const tmi_index_layout *l, const tm_tensor *wide, const int64_t *offsets, const tm_tensor *slim)
{
    bool single = slim->numel == 1;
    int n = 0;
    memset(w, 0, sizeof *w);
    for (int d = 0; d < l->n_before; d++, n++) {
        w->sizes[n] = wide->sizes[l->before[d]];
        w->wide_strides[n] = wide->strides[l->before[d]];
    }
    w->dim = n;
    w->sizes[n] = l->count;
    w->wide_strides[n] = 1;
    w->at.strides[n++] = 1;
    for (int d = 0; d < l->n_after; d++, n++) {
        w->sizes[n] = wide->sizes[l->after[d]];
        w->wide_strides[n] = wide->strides[l->after[d]];
    }
    w->ndim = n;
    int64_t step = single ? 0 : 1;
    for (int d = n - 1; d >= 0; d--) {
        w->slim_strides[d] = step;
        step *= w->sizes[d];
    }
    w->at.data = offsets;
    w->limit = INT64_MAX;
    w->dtype = wide->dtype;
    w->wide = wide->numel ? tmi_data(wide) : NULL;
    w->slim = slim->numel ? tmi_data(slim) : NULL;
}

tm_status tmk_index(tm_tensor *out, tm_tensor *self, tm_tensor *const *indices, int64_t n)
{
    tmi_index_layout l;
    TMI_TRY(tmi_index_layout_of(&l, self, indices, n));
    if (out->numel == 0 && self->numel == 0 && l.count == 0) return TM_OK;
    tmk_walk w;
    size_t bytes = (size_t)l.count * sizeof(int64_t);
    int64_t *offsets = tmi_data_alloc(bytes);
    tm_tensor *to = offsets ? tmk_plain_out(out, out->dtype) : NULL;
    tm_status status = to ? make_offsets(&l, self, indices, n, offsets) : tm_error_status();
    if (status == TM_OK && out->numel) {
        make_walk(&w, &l, self, offsets, to);
        tmk_gather_walk(&w);
    }
    if (offsets) tmi_data_free(offsets, bytes);
    return tmk_plain_end(out, to, status);
}

/* values in the result's sizes, contiguous (or a single number); a reference of one's own. */
static tm_tensor *expanded_values(const tmi_index_layout *l, const tm_tensor *values, tm_dtype dtype)
{
    int ndim;
    int64_t sizes[TMI_MAX_DIMS], both[TMI_MAX_DIMS];
    ndim = tmi_index_sizes(l, sizes);
    int n;
    bool fits = values->ndim <= ndim && tmi_broadcast_sizes(ndim, sizes, values->ndim, values->sizes, &n, both) == TM_OK &&
                memcmp(both, sizes, (size_t)ndim * sizeof *sizes) == 0;
    if (!fits && values->ndim > ndim) {   /* leading ones may go */
        int extra = values->ndim - ndim;
        fits = true;
        for (int d = 0; d < extra; d++) fits &= values->sizes[d] == 1;
        for (int d = 0; d < ndim && fits; d++) fits = values->sizes[extra + d] == 1 || values->sizes[extra + d] == sizes[d];
    }
    if (!fits) {
        char have[256], want[256];
        tm_error_clear();
        tmi_format_sizes(have, sizeof have, values->ndim, values->sizes);
        tmi_format_sizes(want, sizeof want, ndim, sizes);
        tmi_fail(TM_INVALID, "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of shape %s", have, want);
        return NULL;
    }
    if (values->numel == 1) return tmk_plain(values, dtype);
    int64_t total = 1;
    for (int d = 0; d < ndim; d++) total *= sizes[d];
    if (total == values->numel && values->ndim <= ndim) return tmk_plain(values, dtype);
    tm_tensor *t = tmi_tensor_new(ndim, sizes, NULL, dtype, values->device);
    tm_tensor view = *values;
    if (values->ndim > ndim) {
        view.ndim = ndim;
        view.sizes = values->sizes + (values->ndim - ndim);
        view.strides = values->strides + (values->ndim - ndim);
    }
    if (t && tmk_copy(t, &view) != TM_OK) {
        tmi_release(t);
        return NULL;
    }
    return t;
}

tm_status tmk_index_put(tm_tensor *out, tm_tensor *self, tm_tensor *const *indices, int64_t n, tm_tensor *values, bool accumulate)
{
    tmi_index_layout l;
    TMI_TRY(tmi_index_layout_of(&l, self, indices, n));
    tm_tensor *from = expanded_values(&l, values, self->dtype);
    if (!from) return tm_error_status();
    size_t bytes = (size_t)l.count * sizeof(int64_t);
    int64_t *offsets = tmi_data_alloc(bytes);
    tm_status status = offsets ? make_offsets(&l, out, indices, n, offsets) : TM_NOMEM;
    if (status == TM_OK && l.count && out->numel) {
        tmk_walk w;
        make_walk(&w, &l, out, offsets, from);
        status = tmk_scatter_walk(&w, accumulate ? TMK_SCATTER_ADD : TMK_SCATTER_SET, "index_put");
    }
    if (offsets) tmi_data_free(offsets, bytes);
    tmi_release(from);
    return status;
}
