/* Embedding tables: rows by index, and their gradient in the order of the indices. */
#include <math.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "op_bodies.h"
#include "pick.h"
#include "pointwise.h"
#include "scratch.h"

/* indices as contiguous int64, checked against n rows. A reference of one's own; NULL with TM_INDEX recorded. */
static tm_tensor *checked(const tm_tensor *indices, int64_t n)
{
    tm_tensor *at = tmk_plain(indices, TM_I64);
    const int64_t *index = at && at->numel ? tmi_data(at) : NULL;
    for (int64_t i = 0; at && i < at->numel; i++) {
        if (TMI_LIKELY((uint64_t)index[i] < (uint64_t)n)) continue;
        tmi_fail(TM_INDEX, "index out of range in self");
        tmi_release(at);
        return NULL;
    }
    return at;
}

static void row_walk(tmk_walk *w, const tm_tensor *table, const tm_tensor *at, char *rows, int64_t row_stride)
{
    memset(w, 0, sizeof *w);
    w->ndim = 2;
    w->sizes[0] = at->numel;
    w->sizes[1] = table->sizes[1];
    w->wide_strides[0] = table->strides[0];
    w->wide_strides[1] = table->strides[1];
    w->slim_strides[0] = row_stride;
    w->slim_strides[1] = 1;
    w->limit = table->sizes[0];
    w->at.data = tmi_data(at);
    w->at.strides[0] = 1;
    w->dtype = table->dtype;
    w->wide = tmi_data(table);
    w->slim = rows;
}

tm_status tmk_embedding(tm_tensor *out, tm_tensor *weight, tm_tensor *indices, tm_int padding_idx, bool scale_grad_by_freq, bool sparse)
{
    tm_tensor *at = checked(indices, weight->sizes[0]), *to = at ? tmk_plain_out(out, out->dtype) : NULL;
    tm_status status = to ? TM_OK : tm_error_status();
    if (status == TM_OK && out->numel) {
        tmk_walk w;
        row_walk(&w, weight, at, tmi_data(to), weight->sizes[1]);
        tmk_gather_walk(&w);
    }
    if (at) tmi_release(at);
    return tmk_plain_end(out, to, status);
}

/* scale_grad_by_freq: each row is divided by how often its index occurs. */
static tm_status divide_rows(tm_tensor *rows, const int64_t *index, int64_t n, int64_t num_weights, int64_t width)
{
    int64_t *count = tmi_calloc((size_t)num_weights * sizeof *count + 8);
    if (!count) return TM_NOMEM;
    size_t size = tmi_dtype_size(rows->dtype);
    for (int64_t i = 0; i < n; i++) count[index[i]]++;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++) {
            char *p = (char *)tmi_data(rows) + (size_t)(i * width + k) * size;
            tm_scalar v = tmi_load_scalar(p, rows->dtype);
            tmi_store_scalar(p, rows->dtype, tm_f64(tmi_scalar_f64(v) / (double)count[index[i]]));
        }
    tmi_free(count, (size_t)num_weights * sizeof *count + 8);
    return TM_OK;
}

/* Moves the rows that count to the front of copies of their own. */
static tm_status drop_padding(tm_tensor *at, tm_tensor *rows, int64_t width, int64_t padding, int64_t *kept)
{
    int64_t *index = tmi_data(at), n = 0;
    size_t bytes = (size_t)width * tmi_dtype_size(rows->dtype);
    char *data = tmi_data(rows);
    for (int64_t i = 0; i < at->numel; i++) {
        if (index[i] == padding) continue;
        if (n != i) memcpy(data + (size_t)n * bytes, data + (size_t)i * bytes, bytes);
        index[n++] = index[i];
    }
    *kept = n;
    return TM_OK;
}

static tm_tensor *own_copy(tm_tensor *t)
{
    tm_tensor *copy = t ? tmi_tensor_new(t->ndim, t->sizes, NULL, t->dtype, t->device) : NULL;
    if (copy && t->numel) memcpy(tmi_data(copy), tmi_data(t), (size_t)t->numel * tmi_dtype_size(t->dtype));
    return copy;
}

static void replace(tm_tensor **t, tm_tensor *by)
{
    tmi_release(*t);
    *t = by;
}

tm_status tmk_embedding_backward(tm_tensor *out, tm_tensor *grad, tm_tensor *indices, tm_int num_weights, tm_int padding_idx, bool scale_grad_by_freq)
{
    TMI_TRY(tmk_fill(out, tm_i64(0)));
    if (grad->numel == 0) return TM_OK;
    tm_tensor *at = checked(indices, num_weights), *rows = at ? tmk_plain(grad, out->dtype) : NULL;
    tm_status status = rows ? TM_OK : tm_error_status();
    int64_t width = out->sizes[1], n = at ? at->numel : 0;
    if (status == TM_OK && (padding_idx >= 0 || scale_grad_by_freq)) {
        replace(&at, own_copy(at));
        replace(&rows, own_copy(rows));
        status = at && rows ? TM_OK : tm_error_status();
        if (status == TM_OK && padding_idx >= 0) status = drop_padding(at, rows, width, padding_idx, &n);
        if (status == TM_OK && scale_grad_by_freq) status = divide_rows(rows, tmi_data(at), n, num_weights, width);
    }
    if (status == TM_OK && n) {
        tmk_walk w;
        row_walk(&w, out, at, tmi_data(rows), width);
        w.sizes[0] = n;
        status = tmk_scatter_walk(&w, TMK_SCATTER_ADD, "embedding_dense_backward");
    }
    if (at) tmi_release(at);
    if (rows) tmi_release(rows);
    return status;
}

static double row_norm(const tm_tensor *t, int64_t row, double p)
{
    double total = 0;
    for (int64_t k = 0; k < t->sizes[1]; k++) {
        const char *at = (const char *)tmi_data(t) + (row * t->strides[0] + k * t->strides[1]) * (int64_t)tmi_dtype_size(t->dtype);
        double x = fabs(tmi_scalar_f64(tmi_load_scalar(at, t->dtype)));
        total = p == INFINITY ? fmax(total, x) : total + pow(x, p);
    }
    return p == INFINITY ? total : pow(total, 1 / p);
}

tm_status tmk_embedding_renorm(tm_tensor *out, tm_tensor *self, tm_tensor *indices, double max_norm, double norm_type)
{
    TMI_REQUIRE(self->ndim == 2, TM_INVALID, "embedding_renorm_: the weight must be 2-D");
    tm_tensor *at = checked(indices, self->sizes[0]);
    if (!at) return tm_error_status();
    if (out != self) TMI_TRY(tmk_copy(out, self));
    for (int64_t i = 0; i < at->numel; i++) {
        int64_t row = ((const int64_t *)tmi_data(at))[i];
        double norm = row_norm(out, row, norm_type);
        if (norm <= max_norm) continue;
        float scale = (float)(max_norm / (norm + 1e-7));
        for (int64_t k = 0; k < out->sizes[1]; k++) {
            char *p = (char *)tmi_data(out) + (row * out->strides[0] + k * out->strides[1]) * (int64_t)tmi_dtype_size(out->dtype);
            double x = tmi_scalar_f64(tmi_load_scalar(p, out->dtype));
            tmi_store_scalar(p, out->dtype, tm_f64(x * scale));
        }
    }
    tmi_release(at);
    return TM_OK;
}
