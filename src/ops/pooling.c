/* Pooling, resizing and patches: PyTorch's checks, shape rules, composites. */
#include "op_bodies.h"
#include "ops.h"

#include <math.h>
#include <stdio.h>

#include "boxing.h"
#include "op_ids.h"
#include "shapes.h"

/* ---------------------------------------------------------------- windows */

typedef struct pool_lists { tm_int k[3], s[3], p[3], d[3]; } pool_lists;

static const char *const words[] = {"", "a single int", "two ints", "three ints"};
static const char *const axes[] = {"T", "H", "W"};

static tm_status spread(tm_int *out, const tm_int *list, int64_t n, int dims, bool may_omit, const tm_int *instead, const char *op, const char *name)
{
    TMI_REQUIRE(n == 1 || n == dims || (may_omit && n == 0), TM_INVALID, "%s: %s must either be %sa single int, or a tuple of %s", op, name,
                may_omit ? "omitted, " : "", words[dims]);
    const tm_int *from = n == 0 ? instead : list;
    for (int i = 0; i < dims; i++) out[i] = from[n == 1 ? 0 : i];
    return TM_OK;
}

static tm_int pool_size(tm_int in, tm_int k, tm_int s, tm_int p, tm_int d, bool ceil_mode)
{
    tm_int span = in + 2 * p - d * (k - 1) - 1 + (ceil_mode ? s - 1 : 0), out = (span >= 0 ? span / s : -((-span + s - 1) / s)) + 1;
    if (ceil_mode && (out - 1) * s >= in + p) out--;   /* the last window must begin inside the input or its left padding */
    return out;
}

static bool channels_last(const tm_tensor *t)
{
    return (t->ndim == 4 || t->ndim == 5) && !tmi_contiguous(t) && tmi_is_contiguous_as(t, t->ndim == 4 ? TM_CHANNELS_LAST : TM_CHANNELS_LAST_3D);
}

static void like_input(tmi_meta *m, const tm_tensor *t)
{
    if (!channels_last(t)) return;
    tm_int step = m->sizes[1] > 0 ? m->sizes[1] : 1;
    m->contiguous = false;
    m->strides[1] = 1;
    for (int i = m->ndim - 1; i >= 2; i--) m->strides[i] = step, step *= m->sizes[i] > 0 ? m->sizes[i] : 1;
    m->strides[0] = step;
}

static tm_status check_windows(const pool_lists *l, int dims)
{
    for (int i = 0; i < dims; i++) TMI_REQUIRE(l->s[i] != 0, TM_INVALID, "stride should not be zero");
    for (int i = 0; i < dims; i++) TMI_REQUIRE(l->p[i] >= 0, TM_INVALID, "pad must be non-negative, but got pad: %ld", (long)l->p[i]);
    for (int i = 0; i < dims; i++)
        TMI_REQUIRE(l->k[i] > 0 && l->s[i] > 0, TM_INVALID, "kernel size should be greater than zero, but got k%s: %ld d%s: %ld", axes[3 - dims + i], (long)l->k[i],
                    axes[3 - dims + i], (long)l->s[i]);
    for (int i = 0; i < dims; i++)
        TMI_REQUIRE(l->d[i] > 0, TM_INVALID, "dilation should be greater than zero, but got dilationH: %ld dilationW: %ld", (long)l->d[dims > 1 ? dims - 2 : 0],
                    (long)l->d[dims - 1]);
    for (int i = 0; i < dims; i++)
        TMI_REQUIRE(l->p[i] <= ((l->k[i] - 1) * l->d[i] + 1) / 2, TM_INVALID,
                    "pad should be at most half of effective kernel size, but got pad=%ld, kernel_size=%ld and dilation=%ld", (long)l->p[i], (long)l->k[i],
                    (long)l->d[i]);
    return TM_OK;
}

static tm_status check_pool_input(const tm_tensor *self, int dims)
{
    char size[128];
    TMI_REQUIRE(self->ndim == dims + 1 || self->ndim == dims + 2, TM_SHAPE, "non-empty %dD or %dD (batch mode) tensor expected for input", dims + 1, dims + 2);
    tmi_format_sizes(size, sizeof size, self->ndim, self->sizes);
    for (int i = self->ndim - dims - 1; i < self->ndim; i++)
        TMI_REQUIRE(self->sizes[i] > 0, TM_SHAPE, "Expected %dD or %dD (batch mode) tensor with optional 0 dim batch size for input, but got:%s", dims + 1,
                    dims + 2, size);
    return TM_OK;
}

static tm_status check_pool_output(const tm_tensor *self, int dims, const tm_int *out)
{
    bool fits = true;
    char in_text[96], out_text[96];
    tm_int c = self->sizes[self->ndim - dims - 1];
    int a = snprintf(in_text, sizeof in_text, "%ld", (long)c), b = snprintf(out_text, sizeof out_text, "%ld", (long)c);
    for (int i = 0; i < dims; i++) {
        fits = fits && out[i] >= 1;
        a += snprintf(in_text + a, sizeof in_text - (size_t)a, "x%ld", (long)self->sizes[self->ndim - dims + i]);
        b += snprintf(out_text + b, sizeof out_text - (size_t)b, "x%ld", (long)out[i]);
    }
    TMI_REQUIRE(fits, TM_SHAPE, "Given input size: (%s). Calculated output size: (%s). Output size is too small", in_text, out_text);
    return TM_OK;
}

static tm_status pool_meta(tmi_meta *m, const tm_tensor *self, int dims, const pool_lists *l, bool ceil_mode)
{
    tm_int sizes[5];
    TMI_TRY(check_windows(l, dims));
    TMI_TRY(check_pool_input(self, dims));
    int lead = self->ndim - dims;
    for (int i = 0; i < self->ndim; i++)
        sizes[i] = i < lead ? self->sizes[i] : pool_size(self->sizes[i], l->k[i - lead], l->s[i - lead], l->p[i - lead], l->d[i - lead], ceil_mode);
    TMI_TRY(check_pool_output(self, dims, sizes + lead));
    tmi_meta_set(m, self->ndim, sizes);
    like_input(m, self);
    return TM_OK;
}

static tm_status max_meta(tmi_meta *m, const tm_tensor *self, int dims, const char *op, const tm_int *k, int64_t nk, const tm_int *s, int64_t ns, const tm_int *p,
                          int64_t np, const tm_int *d, int64_t nd, bool ceil_mode)
{
    pool_lists l;
    TMI_TRY(spread(l.k, k, nk, dims, false, NULL, op, "kernel_size"));
    TMI_TRY(spread(l.s, s, ns, dims, true, l.k, op, "stride"));
    TMI_TRY(spread(l.p, p, np, dims, false, NULL, op, "padding"));
    TMI_TRY(spread(l.d, d, nd, dims, false, NULL, op, "dilation"));
    TMI_TRY(pool_meta(&m[0], self, dims, &l, ceil_mode));
    m[1] = m[0];
    m[1].dtype = TM_I64;
    return TM_OK;
}

tm_status tmi_shape_max_pool2d_with_indices(tmi_meta *m, tm_tensor *self, const tm_int *k, int64_t nk, const tm_int *s, int64_t ns, const tm_int *p, int64_t np,
                                            const tm_int *d, int64_t nd, bool ceil_mode)
{
    return max_meta(m, self, 2, "max_pool2d", k, nk, s, ns, p, np, d, nd, ceil_mode);
}
tm_status tmi_shape_max_pool3d_with_indices(tmi_meta *m, tm_tensor *self, const tm_int *k, int64_t nk, const tm_int *s, int64_t ns, const tm_int *p, int64_t np,
                                            const tm_int *d, int64_t nd, bool ceil_mode)
{
    return max_meta(m, self, 3, "max_pool3d", k, nk, s, ns, p, np, d, nd, ceil_mode);
}

static tm_status avg_meta(tmi_meta *m, const tm_tensor *self, int dims, const char *op, const tm_int *k, int64_t nk, const tm_int *s, int64_t ns, const tm_int *p,
                          int64_t np, bool ceil_mode, const tm_int *divisor)
{
    pool_lists l = {.d = {1, 1, 1}};
    TMI_TRY(spread(l.k, k, nk, dims, false, NULL, op, "kernel_size"));
    TMI_TRY(spread(l.s, s, ns, dims, true, l.k, op, "stride"));
    TMI_TRY(spread(l.p, p, np, dims, false, NULL, op, "padding"));
    TMI_REQUIRE(!divisor || *divisor != 0, TM_INVALID, "divisor must be not zero");
    return pool_meta(m, self, dims, &l, ceil_mode);
}

tm_status tmi_shape_avg_pool2d(tmi_meta *m, tm_tensor *self, const tm_int *k, int64_t nk, const tm_int *s, int64_t ns, const tm_int *p, int64_t np, bool ceil_mode,
                               bool include_pad, const tm_int *divisor)
{
    return avg_meta(m, self, 2, "avg_pool2d", k, nk, s, ns, p, np, ceil_mode, divisor);
}
tm_status tmi_shape_avg_pool3d(tmi_meta *m, tm_tensor *self, const tm_int *k, int64_t nk, const tm_int *s, int64_t ns, const tm_int *p, int64_t np, bool ceil_mode,
                               bool include_pad, const tm_int *divisor)
{
    return avg_meta(m, self, 3, "avg_pool3d", k, nk, s, ns, p, np, ceil_mode, divisor);
}

/* ---------------------------------------------------------------- adaptive */

static tm_status check_adaptive(const tm_tensor *self, const tm_int *size, int64_t n, int dims, const char *op, bool colon)
{
    char text[128];
    tmi_format_sizes(text, sizeof text, self->ndim, self->sizes);
    TMI_REQUIRE(n == dims || n == 1, TM_INVALID, "%s: output_size must be %d", op, dims);
    for (int64_t i = 0; i < n; i++)
        TMI_REQUIRE(size[i] >= 0, TM_INVALID, "%s: elements of output_size must be greater than or equal to 0 but received {%ld, %ld}", op, (long)size[0],
                    (long)size[n - 1]);
    TMI_REQUIRE(self->ndim == dims + 1 || self->ndim == dims + 2, TM_SHAPE, "%s(): Expected %dD or %dD tensor, but got%s %s", op, dims + 1, dims + 2,
                colon ? ":" : "", text);
    for (int i = self->ndim - dims; i < self->ndim; i++)
        TMI_REQUIRE(self->sizes[i] > 0, TM_SHAPE,
                    "%s(): Expected input to have non-zero size for non-batch dimensions, but input has sizes %s with dimension %d being empty", op, text, i);
    return TM_OK;
}

static tm_status adaptive_meta(tmi_meta *m, const tm_tensor *self, const tm_int *size, int64_t n, int dims, const char *op, bool colon)
{
    tm_int sizes[5];
    TMI_TRY(check_adaptive(self, size, n, dims, op, colon));
    int lead = self->ndim - dims;
    for (int i = 0; i < self->ndim; i++) sizes[i] = i < lead ? self->sizes[i] : n == 1 ? size[0] : size[i - lead];
    tmi_meta_set(m, self->ndim, sizes);
    like_input(m, self);
    return TM_OK;
}

tm_status tmi_shape__adaptive_avg_pool2d(tmi_meta *m, tm_tensor *self, const tm_int *size, int64_t n)
{
    return adaptive_meta(m, self, size, n, 2, "adaptive_avg_pool2d", false);
}
tm_status tmi_shape__adaptive_avg_pool3d(tmi_meta *m, tm_tensor *self, const tm_int *size, int64_t n)
{
    return adaptive_meta(m, self, size, n, 3, "adaptive_avg_pool3d", false);
}
tm_status tmi_shape_adaptive_max_pool2d(tmi_meta *m, tm_tensor *self, const tm_int *size, int64_t n)
{
    TMI_TRY(adaptive_meta(&m[0], self, size, n, 2, "adaptive_max_pool2d", true));
    m[1] = m[0];
    m[1].dtype = TM_I64;
    return TM_OK;
}
tm_status tmi_shape_adaptive_max_pool3d(tmi_meta *m, tm_tensor *self, const tm_int *size, int64_t n)
{
    TMI_TRY(adaptive_meta(&m[0], self, size, n, 3, "adaptive_max_pool3d", true));
    m[1] = m[0];
    m[1].dtype = TM_I64;
    return TM_OK;
}

static bool all_ones(const tm_int *size, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (size[i] != 1) return false;
    return n > 0;
}

tm_tensor *tmi_adaptive_avg_pool2d(tm_tensor *self, const tm_int *size, int64_t n)
{
    TMI_TRY_PTR(check_adaptive(self, size, n, 2, "adaptive_avg_pool2d", false));
    if (all_ones(size, n) && tmi_is_float(self->dtype)) return tm_mean_dim_full(self, (tm_int[]){-1, -2}, 2, true, TM_DTYPE_DEFAULT);
    return tmo_adaptive_avg_pool2d(self, size, n);
}

tm_tensor *tmi_adaptive_avg_pool3d(tm_tensor *self, const tm_int *size, int64_t n)
{
    TMI_TRY_PTR(check_adaptive(self, size, n, 3, "adaptive_avg_pool3d", false));
    if (all_ones(size, n) && tmi_is_float(self->dtype)) return tm_mean_dim_full(self, (tm_int[]){-1, -2, -3}, 3, true, TM_DTYPE_DEFAULT);
    return tmo_adaptive_avg_pool3d(self, size, n);
}

/* ---------------------------------------------------------------- one dim: a second one of size 1 is put before it */

static tm_status check_1d(const tm_tensor *self, const char *op)
{
    TMI_REQUIRE(self->ndim == 2 || self->ndim == 3, TM_SHAPE,
                "Expected 2 to 3 dimensions, but got %d-dimensional tensor for argument #1 'self' (while checking arguments for %s)", self->ndim, op);
    return TM_OK;
}

static tm_status check_max_1d(const tm_tensor *self, tm_int k, tm_int s, tm_int p, tm_int d, bool ceil_mode)
{
    char size[64];
    tmi_format_sizes(size, sizeof size, self->ndim, self->sizes);
    TMI_REQUIRE(self->ndim == 2 || self->ndim == 3, TM_SHAPE,
                "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:%s", size);
    TMI_REQUIRE(k > 0, TM_INVALID, "max_pool1d() kernel_size must be greater than zero, but got %ld", (long)k);
    TMI_REQUIRE(s > 0, TM_INVALID, "max_pool1d() stride must be greater than zero, but got %ld", (long)s);
    TMI_REQUIRE(p >= 0, TM_INVALID, "max_pool1d() padding must be non-negative, but got %ld", (long)p);
    TMI_REQUIRE(p <= k / 2, TM_INVALID, "max_pool1d() padding should be at most half of kernel size, but got padding=%ld and kernel_size=%ld", (long)p, (long)k);
    TMI_REQUIRE(d > 0, TM_INVALID, "max_pool1d() dilation must be greater than zero, but got %ld", (long)d);
    tm_int out = pool_size(self->sizes[self->ndim - 1], k, s, p, d, ceil_mode);
    TMI_REQUIRE(out > 0, TM_SHAPE, "max_pool1d() Invalid computed output size: %ld", (long)out);
    return TM_OK;
}

tm_status tmi_max_pool1d_with_indices(tm_tensor *self, const tm_int *k, int64_t nk, const tm_int *s, int64_t ns, const tm_int *p, int64_t np, const tm_int *d,
                                      int64_t nd, bool ceil_mode, tm_tensor **out, tm_tensor **indices)
{
    tm_int stride = ns ? s[0] : k[0];
    TMI_TRY(check_max_1d(self, k[0], stride, p[0], d[0], ceil_mode));
    TMI_TRY(tm_max_pool2d_with_indices_full(tm_unsqueeze(self, -2), (tm_int[]){1, k[0]}, 2, (tm_int[]){1, stride}, 2, (tm_int[]){0, p[0]}, 2,
                                            (tm_int[]){1, d[0]}, 2, ceil_mode, out, indices));
    *out = tm_squeeze_dim(*out, -2);
    *indices = tm_squeeze_dim(*indices, -2);
    return tm_error_status();
}

tm_tensor *tmi_max_pool1d(tm_tensor *self, const tm_int *k, int64_t nk, const tm_int *s, int64_t ns, const tm_int *p, int64_t np, const tm_int *d, int64_t nd,
                          bool ceil_mode)
{
    tm_tensor *out, *indices;
    TMI_TRY_PTR(tmi_max_pool1d_with_indices(self, k, nk, s, ns, p, np, d, nd, ceil_mode, &out, &indices));
    return out;
}

tm_tensor *tmi_max_pool2d(tm_tensor *self, const tm_int *k, int64_t nk, const tm_int *s, int64_t ns, const tm_int *p, int64_t np, const tm_int *d, int64_t nd,
                          bool ceil_mode)
{
    tm_tensor *out, *indices;
    TMI_TRY_PTR(tm_max_pool2d_with_indices_full(self, k, nk, s, ns, p, np, d, nd, ceil_mode, &out, &indices));
    return out;
}

tm_tensor *tmi_max_pool3d(tm_tensor *self, const tm_int *k, int64_t nk, const tm_int *s, int64_t ns, const tm_int *p, int64_t np, const tm_int *d, int64_t nd,
                          bool ceil_mode)
{
    tm_tensor *out, *indices;
    TMI_TRY_PTR(tm_max_pool3d_with_indices_full(self, k, nk, s, ns, p, np, d, nd, ceil_mode, &out, &indices));
    return out;
}

tm_tensor *tmi_avg_pool1d(tm_tensor *self, const tm_int *k, int64_t nk, const tm_int *s, int64_t ns, const tm_int *p, int64_t np, bool ceil_mode, bool include_pad)
{
    TMI_TRY_PTR(check_1d(self, "avg_pool1d"));
    tm_int stride = ns ? s[0] : k[0];
    return tm_squeeze_dim(tm_avg_pool2d_full(tm_unsqueeze(self, -2), (tm_int[]){1, k[0]}, 2, (tm_int[]){1, stride}, 2, (tm_int[]){0, p[0]}, 2, ceil_mode,
                                             include_pad, NULL), -2);
}

tm_tensor *tmi_adaptive_avg_pool1d(tm_tensor *self, const tm_int *size, int64_t n)
{
    TMI_TRY_PTR(check_1d(self, "adaptive_avg_pool1d"));
    return tm_squeeze_dim(tm_adaptive_avg_pool2d(tm_unsqueeze(self, -2), (tm_int[]){1, size[0]}, 2), -2);
}

tm_status tmi_adaptive_max_pool1d(tm_tensor *self, const tm_int *size, int64_t n, tm_tensor **out, tm_tensor **indices)
{
    TMI_TRY(check_1d(self, "adaptive_max_pool1d"));
    TMI_TRY(tm_adaptive_max_pool2d(tm_unsqueeze(self, -2), (tm_int[]){1, size[0]}, 2, out, indices));
    *out = tm_squeeze_dim(*out, -2);
    *indices = tm_squeeze_dim(*indices, -2);
    return tm_error_status();
}

/* Elements of each plane (the last `dims` dims) at the given places: the second derivative of a maximum. */
static tm_tensor *gather_plane(tm_tensor *grad, int dims, const tm_int *sizes, int64_t n, tm_tensor *indices)
{
    tm_tensor *flat = tm_flatten_using_ints_full(grad, -dims, -1), *places = tm_flatten_using_ints_full(indices, -dims, -1);
    return tm_reshape(tm_gather(flat, -1, places), sizes, n);
}
tm_tensor *tmi_grad_gather_plane2(tm_tensor *grad, const tm_int *sizes, int64_t n, tm_tensor *indices) { return gather_plane(grad, 2, sizes, n, indices); }
tm_tensor *tmi_grad_gather_plane3(tm_tensor *grad, const tm_int *sizes, int64_t n, tm_tensor *indices) { return gather_plane(grad, 3, sizes, n, indices); }

/* ---------------------------------------------------------------- patches */

static tm_status check_patches(const tm_int *k, const tm_int *d, const tm_int *p, const tm_int *s)
{
    TMI_REQUIRE(k[0] > 0 && k[1] > 0, TM_INVALID, "kernel size should be greater than zero, but got kernel_height: %ld kernel_width: %ld", (long)k[0], (long)k[1]);
    TMI_REQUIRE(d[0] > 0 && d[1] > 0, TM_INVALID, "dilation should be greater than zero, but got dilation_height: %ld dilation_width: %ld", (long)d[0], (long)d[1]);
    TMI_REQUIRE(p[0] >= 0 && p[1] >= 0, TM_INVALID, "padding should be non-negative, but got pad_height: %ld pad_width: %ld", (long)p[0], (long)p[1]);
    TMI_REQUIRE(s[0] > 0 && s[1] > 0, TM_INVALID, "stride should be greater than zero, but got stride_height: %ld stride_width: %ld", (long)s[0], (long)s[1]);
    return TM_OK;
}

static tm_int blocks(tm_int in, tm_int k, tm_int d, tm_int p, tm_int s)
{
    tm_int span = in + 2 * p - d * (k - 1) - 1;
    return span < 0 ? 0 : span / s + 1;
}

tm_status tmi_shape_im2col(tmi_meta *m, tm_tensor *self, const tm_int *k, int64_t nk, const tm_int *d, int64_t nd, const tm_int *p, int64_t np, const tm_int *s,
                           int64_t ns)
{
    tm_int kk[2] = {0}, dd[2] = {0}, pp[2] = {0}, ss[2] = {0};
    TMI_TRY(spread(kk, k, nk, 2, false, NULL, "im2col", "kernel_size"));
    TMI_TRY(spread(dd, d, nd, 2, false, NULL, "im2col", "dilation"));
    TMI_TRY(spread(pp, p, np, 2, false, NULL, "im2col", "padding"));
    TMI_TRY(spread(ss, s, ns, 2, false, NULL, "im2col", "stride"));
    TMI_TRY(check_patches(kk, dd, pp, ss));
    char text[64];
    tmi_format_sizes(text, sizeof text, self->ndim, self->sizes);
    TMI_REQUIRE(self->ndim == 3 || self->ndim == 4, TM_SHAPE,
                "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: %s", text);
    tm_int h = self->sizes[self->ndim - 2], w = self->sizes[self->ndim - 1], c = self->sizes[self->ndim - 3];
    tm_int bh = blocks(h, kk[0], dd[0], pp[0], ss[0]), bw = blocks(w, kk[1], dd[1], pp[1], ss[1]);
    TMI_REQUIRE(bh >= 1 && bw >= 1, TM_SHAPE,
                "Given input with spatial size (%ld, %ld), kernel_size=(%ld, %ld), dilation=(%ld, %ld), padding=(%ld, %ld), calculated shape of the array of "
                "sliding blocks as (%ld, %ld), but its components must be at least one.", (long)h, (long)w, (long)kk[0], (long)kk[1], (long)dd[0], (long)dd[1],
                (long)pp[0], (long)pp[1], (long)bh, (long)bw);
    tm_int sizes[3] = {self->sizes[0], c * kk[0] * kk[1], bh * bw};
    tmi_meta_set(m, self->ndim - 1, self->ndim == 4 ? sizes : sizes + 1);
    return TM_OK;
}

tm_status tmi_shape_col2im(tmi_meta *m, tm_tensor *self, const tm_int *size, int64_t n, const tm_int *k, int64_t nk, const tm_int *d, int64_t nd, const tm_int *p,
                           int64_t np, const tm_int *s, int64_t ns)
{
    tm_int kk[2] = {0}, dd[2] = {0}, pp[2] = {0}, ss[2] = {0}, out[2] = {0};
    TMI_TRY(spread(out, size, n, 2, false, NULL, "col2im", "output_size"));
    TMI_TRY(spread(kk, k, nk, 2, false, NULL, "col2im", "kernel_size"));
    TMI_TRY(spread(dd, d, nd, 2, false, NULL, "col2im", "dilation"));
    TMI_TRY(spread(pp, p, np, 2, false, NULL, "col2im", "padding"));
    TMI_TRY(spread(ss, s, ns, 2, false, NULL, "col2im", "stride"));
    TMI_TRY(check_patches(kk, dd, pp, ss));
    char text[64];
    tmi_format_sizes(text, sizeof text, self->ndim, self->sizes);
    TMI_REQUIRE(self->ndim == 2 || self->ndim == 3, TM_SHAPE,
                "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: %s", text);
    tm_int rows = self->sizes[self->ndim - 2], cols = self->sizes[self->ndim - 1];
    TMI_REQUIRE(rows % (kk[0] * kk[1]) == 0, TM_SHAPE,
                "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=%ld and kernel_size=(%ld, %ld).",
                (long)rows, (long)kk[0], (long)kk[1]);
    tm_int bh = blocks(out[0], kk[0], dd[0], pp[0], ss[0]), bw = blocks(out[1], kk[1], dd[1], pp[1], ss[1]);
    TMI_REQUIRE(bh * bw == cols, TM_SHAPE,
                "Given output_size=(%ld, %ld), kernel_size=(%ld, %ld), dilation=(%ld, %ld), padding=(%ld, %ld), stride=(%ld, %ld), expected size of input's "
                "dimension 2 to match the calculated number of sliding blocks %ld * %ld = %ld, but got input.size(2)=%ld.", (long)out[0], (long)out[1],
                (long)kk[0], (long)kk[1], (long)dd[0], (long)dd[1], (long)pp[0], (long)pp[1], (long)ss[0], (long)ss[1], (long)bh, (long)bw, (long)(bh * bw), (long)cols);
    tm_int sizes[4] = {self->sizes[0], rows / (kk[0] * kk[1]), out[0], out[1]};
    tmi_meta_set(m, self->ndim + 1, self->ndim == 3 ? sizes : sizes + 1);
    return TM_OK;
}

/* ---------------------------------------------------------------- resizing */

static tm_status upsample_meta(tmi_meta *m, const tm_tensor *self, const tm_int *size, int64_t n, int dims)
{
    static const char *const letters[] = {"D", "H", "W"};
    TMI_REQUIRE(n == dims, TM_SHAPE, "It is expected output_size equals to %d, but got size %ld", dims, (long)n);
    TMI_REQUIRE(self->ndim == dims + 2, TM_SHAPE, "It is expected input_size equals to %d, but got size %d", dims + 2, self->ndim);
    char in[96], out[96];
    int a = 0, b = 0;
    bool fits = true;
    tm_int sizes[5] = {self->sizes[0], self->sizes[1]};
    for (int i = 0; i < dims; i++) {
        sizes[i + 2] = size[i];
        fits = fits && size[i] > 0 && self->sizes[i + 2] > 0;
        a += snprintf(in + a, sizeof in - (size_t)a, "%s%s: %ld", i ? ", " : "", letters[3 - dims + i], (long)self->sizes[i + 2]);
        b += snprintf(out + b, sizeof out - (size_t)b, "%s%s: %ld", i ? ", " : "", letters[3 - dims + i], (long)size[i]);
    }
    TMI_REQUIRE(fits, TM_SHAPE, "Input and output sizes should be greater than 0, but got input (%s) output (%s)", in, out);
    char have[96];
    tmi_format_sizes(have, sizeof have, self->ndim, self->sizes);
    TMI_REQUIRE(self->sizes[1] > 0, TM_SHAPE, "Non-empty %dD data tensor expected but got a tensor with sizes %s", dims + 2, have);
    tmi_meta_set(m, dims + 2, sizes);
    like_input(m, self);
    return TM_OK;
}

tm_status tmi_shape_upsample1d(tmi_meta *m, tm_tensor *self, const tm_int *size, int64_t n) { return upsample_meta(m, self, size, n, 1); }
tm_status tmi_shape_upsample2d(tmi_meta *m, tm_tensor *self, const tm_int *size, int64_t n) { return upsample_meta(m, self, size, n, 2); }
tm_status tmi_shape_upsample3d(tmi_meta *m, tm_tensor *self, const tm_int *size, int64_t n) { return upsample_meta(m, self, size, n, 3); }
tm_status tmi_shape_upsample_back(tmi_meta *m, tm_tensor *grad_output, const tm_int *size, int64_t n)
{
    tmi_meta_set(m, (int)n, size);
    like_input(m, grad_output);
    return TM_OK;
}

/* Size and factors of a .vec overload. */
typedef struct resize_to { tm_int size[3]; double scale[3]; const double *s[3]; } resize_to;

static tm_status read_resize(resize_to *r, const tm_tensor *input, const tm_int *size, int64_t n, const double *factors, int64_t n_factors, int dims)
{
    TMI_REQUIRE((size != NULL) != (factors != NULL), TM_INVALID, "Must specify exactly one of output_size and scale_factors");
    TMI_REQUIRE(input->ndim == dims + 2, TM_SHAPE, "It is expected input_size equals to %d, but got size %d", dims + 2, input->ndim);
    TMI_REQUIRE(size ? n == dims : n_factors == dims, TM_SHAPE, "It is expected output_size equals to %d, but got size %ld", dims, (long)(size ? n : n_factors));
    for (int i = 0; i < dims; i++) {
        r->size[i] = size ? size[i] : (tm_int)floor((double)input->sizes[i + 2] * factors[i]);
        r->scale[i] = factors ? factors[i] : 0;
        r->s[i] = factors ? &r->scale[i] : NULL;
    }
    return TM_OK;
}

tm_tensor *tmi_upsample_nearest1d_vec(tm_tensor *input, const tm_int *size, int64_t n, const double *f, int64_t nf)
{
    resize_to r;
    TMI_TRY_PTR(read_resize(&r, input, size, n, f, nf, 1));
    return tm_upsample_nearest1d_full(input, r.size, 1, r.s[0]);
}
tm_tensor *tmi_upsample_nearest2d_vec(tm_tensor *input, const tm_int *size, int64_t n, const double *f, int64_t nf)
{
    resize_to r;
    TMI_TRY_PTR(read_resize(&r, input, size, n, f, nf, 2));
    return tm_upsample_nearest2d_full(input, r.size, 2, r.s[0], r.s[1]);
}
tm_tensor *tmi_upsample_nearest3d_vec(tm_tensor *input, const tm_int *size, int64_t n, const double *f, int64_t nf)
{
    resize_to r;
    TMI_TRY_PTR(read_resize(&r, input, size, n, f, nf, 3));
    return tm_upsample_nearest3d_full(input, r.size, 3, r.s[0], r.s[1], r.s[2]);
}
tm_tensor *tmi_upsample_nearest_exact1d_vec(tm_tensor *input, const tm_int *size, int64_t n, const double *f, int64_t nf)
{
    resize_to r;
    TMI_TRY_PTR(read_resize(&r, input, size, n, f, nf, 1));
    return tmo_upsample_nearest_exact1d_full(input, r.size, 1, r.s[0]);
}
tm_tensor *tmi_upsample_nearest_exact2d_vec(tm_tensor *input, const tm_int *size, int64_t n, const double *f, int64_t nf)
{
    resize_to r;
    TMI_TRY_PTR(read_resize(&r, input, size, n, f, nf, 2));
    return tmo_upsample_nearest_exact2d_full(input, r.size, 2, r.s[0], r.s[1]);
}
tm_tensor *tmi_upsample_nearest_exact3d_vec(tm_tensor *input, const tm_int *size, int64_t n, const double *f, int64_t nf)
{
    resize_to r;
    TMI_TRY_PTR(read_resize(&r, input, size, n, f, nf, 3));
    return tmo_upsample_nearest_exact3d_full(input, r.size, 3, r.s[0], r.s[1], r.s[2]);
}
tm_tensor *tmi_upsample_linear1d_vec(tm_tensor *input, const tm_int *size, int64_t n, bool corners, const double *f, int64_t nf)
{
    resize_to r;
    TMI_TRY_PTR(read_resize(&r, input, size, n, f, nf, 1));
    return tm_upsample_linear1d_full(input, r.size, 1, corners, r.s[0]);
}
tm_tensor *tmi_upsample_bilinear2d_vec(tm_tensor *input, const tm_int *size, int64_t n, bool corners, const double *f, int64_t nf)
{
    resize_to r;
    TMI_TRY_PTR(read_resize(&r, input, size, n, f, nf, 2));
    return tm_upsample_bilinear2d_full(input, r.size, 2, corners, r.s[0], r.s[1]);
}
tm_tensor *tmi_upsample_trilinear3d_vec(tm_tensor *input, const tm_int *size, int64_t n, bool corners, const double *f, int64_t nf)
{
    resize_to r;
    TMI_TRY_PTR(read_resize(&r, input, size, n, f, nf, 3));
    return tm_upsample_trilinear3d_full(input, r.size, 3, corners, r.s[0], r.s[1], r.s[2]);
}
tm_tensor *tmi_upsample_bicubic2d_vec(tm_tensor *input, const tm_int *size, int64_t n, bool corners, const double *f, int64_t nf)
{
    resize_to r;
    TMI_TRY_PTR(read_resize(&r, input, size, n, f, nf, 2));
    return tm_upsample_bicubic2d_full(input, r.size, 2, corners, r.s[0], r.s[1]);
}

/* ---------------------------------------------------------------- shuffles */

tm_tensor *tmi_pixel_shuffle(tm_tensor *self, tm_int r)
{
    int lead = self->ndim - 3;
    TMI_REQUIRE_PTR(lead >= 0, TM_SHAPE, "pixel_shuffle expects input to have at least 3 dimensions, but got input with %d dimension(s)", self->ndim);
    TMI_REQUIRE_PTR(r > 0, TM_INVALID, "pixel_shuffle expects a positive upscale_factor, but got %ld", (long)r);
    tm_int c = self->sizes[lead], h = self->sizes[lead + 1], w = self->sizes[lead + 2];
    TMI_REQUIRE_PTR(c % (r * r) == 0, TM_SHAPE,
                    "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)=%ld is not "
                    "divisible by %ld", (long)c, (long)(r * r));
    tm_int sizes[TMI_MAX_DIMS], order[TMI_MAX_DIMS];
    for (int i = 0; i < lead; i++) sizes[i] = self->sizes[i], order[i] = i;
    const tm_int inner[5] = {c / (r * r), r, r, h, w}, turn[5] = {0, 3, 1, 4, 2};
    for (int i = 0; i < 5; i++) sizes[lead + i] = inner[i], order[lead + i] = lead + turn[i];
    tm_tensor *t = tm_permute(tm_reshape(self, sizes, lead + 5), order, lead + 5);
    sizes[lead + 1] = h * r, sizes[lead + 2] = w * r;
    return tm_reshape(t, sizes, lead + 3);
}

tm_tensor *tmi_pixel_unshuffle(tm_tensor *self, tm_int r)
{
    int lead = self->ndim - 3;
    TMI_REQUIRE_PTR(lead >= 0, TM_SHAPE, "pixel_unshuffle expects input to have at least 3 dimensions, but got input with %d dimension(s)", self->ndim);
    TMI_REQUIRE_PTR(r > 0, TM_INVALID, "pixel_unshuffle expects a positive downscale_factor, but got %ld", (long)r);
    tm_int c = self->sizes[lead], h = self->sizes[lead + 1], w = self->sizes[lead + 2];
    TMI_REQUIRE_PTR(h % r == 0, TM_SHAPE, "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=%ld is not divisible by %ld",
                    (long)h, (long)r);
    TMI_REQUIRE_PTR(w % r == 0, TM_SHAPE, "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=%ld is not divisible by %ld",
                    (long)w, (long)r);
    tm_int sizes[TMI_MAX_DIMS], order[TMI_MAX_DIMS];
    for (int i = 0; i < lead; i++) sizes[i] = self->sizes[i], order[i] = i;
    const tm_int inner[5] = {c, h / r, r, w / r, r}, turn[5] = {0, 2, 4, 1, 3};
    for (int i = 0; i < 5; i++) sizes[lead + i] = inner[i], order[lead + i] = lead + turn[i];
    tm_tensor *t = tm_permute(tm_reshape(self, sizes, lead + 5), order, lead + 5);
    sizes[lead] = c * r * r, sizes[lead + 1] = h / r, sizes[lead + 2] = w / r;
    return tm_reshape(t, sizes, lead + 3);
}

tm_tensor *tmi_channel_shuffle(tm_tensor *self, tm_int groups)
{
    TMI_REQUIRE_PTR(self->ndim > 2, TM_SHAPE, "channel_shuffle expects input with > 2 dims, but got input with sizes of %d dims", self->ndim);
    TMI_REQUIRE_PTR(groups > 0, TM_INVALID, "Number of groups to divide channels in must be positive. Value of groups:%ld", (long)groups);
    TMI_REQUIRE_PTR(self->sizes[1] % groups == 0, TM_SHAPE, "Number of channels must be divisible by groups. Got %ld channels and %ld groups.",
                    (long)self->sizes[1], (long)groups);
    tm_tensor *t = tm_reshape(self, (tm_int[]){self->sizes[0], groups, self->sizes[1] / groups, -1}, 4);
    return tm_reshape(tm_permute(t, (tm_int[]){0, 2, 1, 3}, 4), self->sizes, self->ndim);
}
