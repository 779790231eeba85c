/* flip, triangles, padding, index lists: copies with a pattern. */
#include <math.h>

#include "base/pool.h"
#include "op_bodies.h"
#include "pointwise.h"
#include "scratch.h"

/* ---- flip: a copy that walks some dims backwards */

typedef struct reversal {
    const char *in;
    char *out;
    int ndim;
    int64_t sizes[TMI_MAX_DIMS], strides[TMI_MAX_DIMS], size;
} reversal;

#define COPY_AS(T)                                                                                                    \
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = ((const T *)in)[i * step]

static void copy_line(char *out, const char *in, int64_t n, int64_t step, int64_t size)
{
    switch (size) {
    case 1: COPY_AS(uint8_t); break;
    case 2: COPY_AS(uint16_t); break;
    case 4: COPY_AS(uint32_t); break;
    case 8: COPY_AS(uint64_t); break;
    default:
        for (int64_t i = 0; i < n; i++) memcpy(out + i * size, in + i * step * size, (size_t)size);
    }
}

static void copy_lines(void *ctx, int64_t begin, int64_t end)
{
    const reversal *r = ctx;
    int last = r->ndim - 1;
    int64_t n = r->sizes[last];
    for (int64_t line = begin; line < end; line++) {
        int64_t rest = line, at = 0;
        for (int d = last - 1; d >= 0; d--) {
            at += rest % r->sizes[d] * r->strides[d];
            rest /= r->sizes[d];
        }
        copy_line(r->out + line * n * r->size, r->in + at * r->size, n, r->strides[last], r->size);
    }
}

tm_status tmk_flip(tm_tensor *out, tm_tensor *self, const tm_int *dims, int64_t n_dims)
{
    if (self->numel == 0) return TM_OK;
    tm_tensor *to = tmk_plain_out(out, out->dtype);
    if (!to) return tm_error_status();
    reversal r = {.in = tmi_data(self), .out = tmi_data(to), .ndim = self->ndim, .size = (int64_t)tmi_dtype_size(self->dtype)};
    for (int d = 0; d < self->ndim; d++) {
        r.sizes[d] = self->sizes[d];
        r.strides[d] = self->strides[d];
    }
    for (int64_t i = 0; i < n_dims && self->ndim; i++) {
        int64_t d = dims[i] < 0 ? dims[i] + self->ndim : dims[i];
        r.in += (r.sizes[d] - 1) * r.strides[d] * r.size;
        r.strides[d] = -r.strides[d];
    }
    if (r.ndim == 0) {
        r.ndim = 1;
        r.sizes[0] = r.strides[0] = 1;
    }
    int64_t n = r.sizes[r.ndim - 1];
    tmi_parallel_for(self->numel / n, 1 + 16384 / n, copy_lines, &r);
    return tmk_plain_end(out, to, TM_OK);
}

/* ---- triangles */

typedef struct triangle {
    char *data;
    int64_t rows, cols, diagonal, size;
    bool upper;
} triangle;

/* Zeros outside the triangle, row by row of all matrices. */
static void clear_rows(void *ctx, int64_t begin, int64_t end)
{
    const triangle *t = ctx;
    for (int64_t row = begin; row < end; row++) {
        int64_t edge = row % t->rows + t->diagonal + (t->upper ? 0 : 1);
        edge = edge < 0 ? 0 : edge > t->cols ? t->cols : edge;
        char *at = t->data + row * t->cols * t->size;
        if (t->upper) memset(at, 0, (size_t)(edge * t->size));
        else memset(at + edge * t->size, 0, (size_t)((t->cols - edge) * t->size));
    }
}

static tm_status keep_triangle(tm_tensor *out, const tm_tensor *self, int64_t diagonal, bool upper)
{
    if (self->numel == 0) return TM_OK;
    tm_tensor *to = tmk_plain_out(out, out->dtype);
    if (!to) return tm_error_status();
    tm_status status = tmk_same_view(to, self) ? TM_OK : tmk_copy(to, self);
    if (status == TM_OK) {
        triangle t = {tmi_data(to), self->sizes[self->ndim - 2], self->sizes[self->ndim - 1], diagonal, (int64_t)tmi_dtype_size(out->dtype), upper};
        tmi_parallel_for(self->numel / t.cols, 1 + 32768 / t.cols, clear_rows, &t);
    }
    return tmk_plain_end(out, to, status);
}
tm_status tmk_tril(tm_tensor *out, tm_tensor *self, tm_int diagonal) { return keep_triangle(out, self, diagonal, false); }
tm_status tmk_triu(tm_tensor *out, tm_tensor *self, tm_int diagonal) { return keep_triangle(out, self, diagonal, true); }

/* ---- lists of indices */

static tm_status triangle_indices(tm_tensor *out, int64_t rows, int64_t cols, int64_t offset, bool upper)
{
    if (out->numel == 0) return TM_OK;
    tm_tensor *to = tmk_plain_out(out, TM_I64);
    if (!to) return tm_error_status();
    int64_t n = out->sizes[1], k = 0, *at = tmi_data(to);
    for (int64_t i = 0; i < rows; i++) {
        int64_t first = upper ? i + offset : 0, last = upper ? cols : i + offset + 1;
        if (first < 0) first = 0;
        if (last > cols) last = cols;
        for (int64_t j = first; j < last; j++, k++) {
            at[k] = i;
            at[n + k] = j;
        }
    }
    return tmk_plain_end(out, to, TM_OK);
}
tm_status tmk_tril_indices(tm_tensor *out, tm_int row, tm_int col, tm_int offset, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return triangle_indices(out, row, col, offset, false);
}
tm_status tmk_triu_indices(tm_tensor *out, tm_int row, tm_int col, tm_int offset, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return triangle_indices(out, row, col, offset, true);
}

tm_status tmk_repeat_indices(tm_tensor **out, tm_tensor *repeats, const tm_int *output_size)
{
    TMI_REQUIRE(repeats->ndim == 1, TM_INVALID, "repeat_interleave only accept 1D vector as repeat");
    TMI_REQUIRE(repeats->dtype == TM_I64 || repeats->dtype == TM_I32, TM_INVALID, "repeats has to be Long or Int tensor");
    tm_tensor *counts = tmk_plain(repeats, TM_I64);
    if (!counts) return tm_error_status();
    const int64_t *c = counts->numel ? tmi_data(counts) : NULL;
    int64_t total = 0, k = 0;
    tm_status status = TM_OK;
    for (int64_t i = 0; i < counts->numel; i++) {
        if (c[i] < 0) status = tmi_fail(TM_INVALID, "repeats can not be negative");
        total += c[i];
    }
    if (status == TM_OK && output_size && *output_size != total) status = tmi_fail(TM_INVALID, "allocated size does not match required size");
    if (status == TM_OK) {
        *out = tmi_tensor_new(1, &total, NULL, TM_I64, repeats->device);
        status = *out ? TM_OK : tm_error_status();
    }
    if (status == TM_OK && total) {
        int64_t *to = tmi_data(*out);
        for (int64_t i = 0; i < counts->numel; i++)
            for (int64_t j = 0; j < c[i]; j++) to[k++] = i;
    }
    tmi_release(counts);
    return status;
}

/* ---- constant padding: fill, then copy what stays into its place */

tm_status tmk_constant_pad(tm_tensor *out, tm_tensor *self, const tm_int *pad, int64_t n_pad, tm_scalar value)
{
    TMI_TRY(tmk_fill(out, value));
    tm_tensor to = *out, from = *self;
    int64_t to_sizes[TMI_MAX_DIMS];
    to.sizes = from.sizes = to_sizes;
    to.numel = 1;
    for (int d = 0; d < self->ndim; d++) {
        int64_t k = 2 * (self->ndim - 1 - d), before = k < n_pad ? pad[k] : 0, after = k < n_pad ? pad[k + 1] : 0;
        to_sizes[d] = self->sizes[d] + (before < 0 ? before : 0) + (after < 0 ? after : 0);
        to.offset += (before > 0 ? before : 0) * out->strides[d];
        from.offset += (before < 0 ? -before : 0) * self->strides[d];
        if (to_sizes[d] <= 0) return TM_OK;
        to.numel *= to_sizes[d];
    }
    from.numel = to.numel;
    to.flags = from.flags = 0;
    return tmk_copy(&to, &from);
}
