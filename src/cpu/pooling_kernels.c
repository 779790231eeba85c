/* CPU kernels of pooling and resizing: windows or blends are listed per dim, planes are tasks. */
#include "op_bodies.h"

#include <math.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "windows.h"

#define SAME(x) (x)
#define NEVER(x) 0
#define T float
#define A float
#define LOAD SAME
#define STORE SAME
#define ISNAN isnan
#define NAME(x) f32_##x
#define WITH_GRADIENTS
#include "pooling.tmpl.h"
#define T double
#define A double
#define LOAD SAME
#define STORE SAME
#define ISNAN isnan
#define NAME(x) f64_##x
#define WITH_GRADIENTS
#include "pooling.tmpl.h"
#define T tmi_bf16
#define A float
#define LOAD tmi_bf16_to_f32
#define STORE tmi_f32_to_bf16
#define ISNAN isnan
#define NAME(x) bf16_##x
#define WITH_GRADIENTS
#include "pooling.tmpl.h"
#define T tmi_f16
#define A float
#define LOAD tmi_f16_to_f32
#define STORE tmi_f32_to_f16
#define ISNAN isnan
#define NAME(x) f16_##x
#define WITH_GRADIENTS
#include "pooling.tmpl.h"
#define T uint8_t
#define A int64_t
#define LOAD SAME
#define STORE (uint8_t)
#define ISNAN NEVER
#define NAME(x) u8_##x
#define WITH_GRADIENTS
#include "pooling.tmpl.h"
#define T int8_t
#define A int64_t
#define LOAD SAME
#define STORE (int8_t)
#define ISNAN NEVER
#define NAME(x) i8_##x
#include "pooling.tmpl.h"
#define T int16_t
#define A int64_t
#define LOAD SAME
#define STORE (int16_t)
#define ISNAN NEVER
#define NAME(x) i16_##x
#include "pooling.tmpl.h"
#define T int32_t
#define A int64_t
#define LOAD SAME
#define STORE (int32_t)
#define ISNAN NEVER
#define NAME(x) i32_##x
#include "pooling.tmpl.h"
#define T int64_t
#define A int64_t
#define LOAD SAME
#define STORE SAME
#define ISNAN NEVER
#define NAME(x) i64_##x
#include "pooling.tmpl.h"

typedef void back_fn(const spatial_run *r, int64_t begin, int64_t end, void *plane);

/* By dtype; NULL where the operator has none. */
typedef struct pool_kernels {
    tmi_range_fn *max, *mean, *blend;
    back_fn *max_back, *mean_back, *blend_back;
} pool_kernels;

static const pool_kernels kernels[TM_DTYPE_COUNT] = {
    [TM_F32] = {f32_max_planes, f32_mean_planes, f32_blend_planes, f32_max_back_planes, f32_mean_back_planes, f32_blend_back_planes},
    [TM_F64] = {f64_max_planes, f64_mean_planes, f64_blend_planes, f64_max_back_planes, f64_mean_back_planes, f64_blend_back_planes},
    [TM_BF16] = {bf16_max_planes, bf16_mean_planes, bf16_blend_planes, bf16_max_back_planes, bf16_mean_back_planes, bf16_blend_back_planes},
    [TM_F16] = {f16_max_planes, f16_mean_planes, f16_blend_planes, f16_max_back_planes, f16_mean_back_planes, f16_blend_back_planes},
    [TM_U8] = {u8_max_planes, u8_mean_planes, u8_blend_planes, u8_max_back_planes, u8_mean_back_planes, u8_blend_back_planes},
    [TM_I8] = {.max = i8_max_planes, .mean = i8_mean_planes},
    [TM_I16] = {.max = i16_max_planes, .mean = i16_mean_planes},
    [TM_I32] = {.max = i32_max_planes, .mean = i32_mean_planes},
    [TM_I64] = {.max = i64_max_planes, .mean = i64_mean_planes},
};

/* ---------------------------------------------------------------- description */

/* The last `dims` dims are spatial; before them a channel dim and perhaps a batch dim. */
static spatial_array array_of(const tm_tensor *t, int dims)
{
    spatial_array a = {.data = tmi_data(t)};
    for (int i = 0; i < dims; i++) a.ss[3 - dims + i] = t->strides[t->ndim - dims + i];
    a.cs = t->strides[t->ndim - dims - 1];
    a.ns = t->ndim > dims + 1 ? t->strides[0] : 0;
    return a;
}

static void sizes_of(const tm_tensor *t, int dims, int64_t *n)
{
    n[0] = n[1] = n[2] = 1;
    for (int i = 0; i < dims; i++) n[3 - dims + i] = t->sizes[t->ndim - dims + i];
}

static spatial_run describe(const tm_tensor *x, const tm_tensor *y, int dims)
{
    spatial_run r = {.channels = x->sizes[x->ndim - dims - 1], .step = {1, 1, 1}};
    r.planes = r.channels * (x->ndim > dims + 1 ? x->sizes[0] : 1);
    sizes_of(x, dims, r.in);
    sizes_of(y, dims, r.out);
    r.x = array_of(x, dims);
    r.y = array_of(y, dims);
    return r;
}

static int64_t list_at(const tm_int *list, int64_t n, int i) { return n == 1 ? list[0] : list[i]; }

typedef struct window_lists {
    window *w;
    size_t bytes;
} window_lists;

static tm_status alloc_windows(spatial_run *r, window_lists *l)
{
    l->bytes = (size_t)(r->out[0] + r->out[1] + r->out[2]) * sizeof(window);
    l->w = tmi_alloc(l->bytes);
    if (!l->w) return TM_NOMEM;
    r->windows[0] = l->w, r->windows[1] = l->w + r->out[0], r->windows[2] = l->w + r->out[0] + r->out[1];
    return TM_OK;
}

static void fixed_windows(window *w, int64_t out, int64_t in, int64_t k, int64_t stride, int64_t pad, int64_t dilation)
{
    for (int64_t o = 0; o < out; o++) {
        int64_t start = o * stride - pad, end = start + (k - 1) * dilation + 1;
        w[o].full = (end < in + pad ? end : in + pad) - start;
        w[o].end = end < in ? end : in;
        while (start < 0) start += dilation;
        w[o].start = start;
    }
}

static void adaptive_windows(window *w, int64_t out, int64_t in)
{
    for (int64_t o = 0; o < out; o++) {
        w[o].start = o * in / out;
        w[o].end = ((o + 1) * in + out - 1) / out;
        w[o].full = w[o].end - w[o].start;
    }
}

typedef struct pool_args {
    const tm_int *kernel, *stride, *padding, *dilation;
    int64_t n_kernel, n_stride, n_padding, n_dilation;
} pool_args;

static tm_status list_windows(spatial_run *r, window_lists *l, int dims, const pool_args *p)
{
    TMI_TRY(alloc_windows(r, l));
    window *w = l->w;
    for (int i = 0; i < 3; w += r->out[i++]) {
        int from = i - (3 - dims);
        if (!p) {
            adaptive_windows(w, r->out[i], r->in[i]);
            continue;
        }
        int64_t k = from < 0 ? 1 : list_at(p->kernel, p->n_kernel, from), d = from < 0 || !p->dilation ? 1 : list_at(p->dilation, p->n_dilation, from);
        int64_t s = from < 0 ? 1 : p->n_stride ? list_at(p->stride, p->n_stride, from) : k, pad = from < 0 ? 0 : list_at(p->padding, p->n_padding, from);
        fixed_windows(w, r->out[i], r->in[i], k, s, pad, d);
        r->step[i] = d;
    }
    return TM_OK;
}

/* ---------------------------------------------------------------- running */

static int64_t plane_grain(const spatial_run *r)
{
    int64_t work = r->in[0] * r->in[1] * r->in[2] + r->out[0] * r->out[1] * r->out[2];
    return 1 + 16384 / (work + 1);
}

static tm_status not_implemented(const char *name, const tm_tensor *t)
{
    return tmi_fail(TM_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", name, tmi_dtypes[t->dtype].type_name);
}

typedef struct back_task {
    const spatial_run *r;
    back_fn *fn;
    char *planes;
    size_t bytes;
} back_task;

static void run_back(void *ctx, int64_t begin, int64_t end)
{
    const back_task *t = ctx;
    t->fn(t->r, begin, end, t->planes + (size_t)tmi_pool_thread() * t->bytes);
}

/* Gradients gather in a plane of the computing type, one per thread. */
static tm_status run_backward(const spatial_run *r, back_fn *fn)
{
    back_task t = {.r = r, .fn = fn, .bytes = (size_t)(r->in[0] * r->in[1] * r->in[2]) * sizeof(double) + 64};
    if (r->planes == 0) return TM_OK;
    size_t total = t.bytes * (size_t)tmi_pool_size();
    t.planes = tmi_data_alloc(total);
    if (!t.planes) return TM_NOMEM;
    tmi_parallel_for(r->planes, plane_grain(r), run_back, &t);
    tmi_data_free(t.planes, total);
    return TM_OK;
}

static tm_status run_max(int dims, tm_tensor *out, tm_tensor *indices, const tm_tensor *self, const pool_args *p, const char *name)
{
    tmi_range_fn *fn = kernels[self->dtype].max;
    if (!fn || (!p && !tmi_is_float(self->dtype))) return not_implemented(name, self);
    if (out->numel == 0) return TM_OK;
    spatial_run r = describe(self, out, dims);
    window_lists l;
    r.index = array_of(indices, dims);
    TMI_TRY(list_windows(&r, &l, dims, p));
    tmi_parallel_for(r.planes, plane_grain(&r), fn, &r);
    tmi_free(l.w, l.bytes);
    return TM_OK;
}

static tm_status run_max_backward(int dims, tm_tensor *grad_input, const tm_tensor *grad_output, const tm_tensor *indices, const char *name)
{
    if (!kernels[grad_output->dtype].max_back) return not_implemented(name, grad_output);
    spatial_run r = describe(grad_input, grad_output, dims);
    r.index = array_of(indices, dims);
    return run_backward(&r, kernels[grad_output->dtype].max_back);
}

static tm_status run_mean(int dims, tm_tensor *x, tm_tensor *y, const pool_args *p, bool include_pad, int64_t divisor, bool backward, const char *name)
{
    const pool_kernels *k = &kernels[x->dtype];
    bool integral = !tmi_is_float(x->dtype);
    if ((integral && (!p || backward || x->dtype != TM_I64)) || !k->mean) return not_implemented(name, x);
    if (!backward && y->numel == 0) return TM_OK;
    spatial_run r = describe(x, y, dims);
    window_lists l;
    r.include_pad = include_pad, r.divisor = divisor;
    TMI_TRY(list_windows(&r, &l, dims, p));
    tm_status status = TM_OK;
    if (backward)
        status = run_backward(&r, k->mean_back);
    else
        tmi_parallel_for(r.planes, plane_grain(&r), k->mean, &r);
    tmi_free(l.w, l.bytes);
    return status;
}

/* ---------------------------------------------------------------- operators */

tm_status tmk_max_pool2d(tm_tensor *out, tm_tensor *indices, tm_tensor *self, const tm_int *kernel_size, int64_t n_kernel, const tm_int *stride,
                         int64_t n_stride, const tm_int *padding, int64_t n_padding, const tm_int *dilation, int64_t n_dilation, bool ceil_mode)
{
    pool_args p = {kernel_size, stride, padding, dilation, n_kernel, n_stride, n_padding, n_dilation};
    return run_max(2, out, indices, self, &p, "max_pool2d");
}

tm_status tmk_max_pool3d(tm_tensor *out, tm_tensor *indices, tm_tensor *self, const tm_int *kernel_size, int64_t n_kernel, const tm_int *stride,
                         int64_t n_stride, const tm_int *padding, int64_t n_padding, const tm_int *dilation, int64_t n_dilation, bool ceil_mode)
{
    pool_args p = {kernel_size, stride, padding, dilation, n_kernel, n_stride, n_padding, n_dilation};
    return run_max(3, out, indices, self, &p, "max_pool3d_with_indices_out_frame");
}

tm_status tmk_max_pool2d_backward(tm_tensor *grad_input, tm_tensor *grad_output, tm_tensor *self, const tm_int *kernel_size, int64_t n_kernel,
                                  const tm_int *stride, int64_t n_stride, const tm_int *padding, int64_t n_padding, const tm_int *dilation,
                                  int64_t n_dilation, bool ceil_mode, tm_tensor *indices)
{
    return run_max_backward(2, grad_input, grad_output, indices, "max_pool2d");
}

tm_status tmk_max_pool3d_backward(tm_tensor *grad_input, tm_tensor *grad_output, tm_tensor *self, const tm_int *kernel_size, int64_t n_kernel,
                                  const tm_int *stride, int64_t n_stride, const tm_int *padding, int64_t n_padding, const tm_int *dilation,
                                  int64_t n_dilation, bool ceil_mode, tm_tensor *indices)
{
    return run_max_backward(3, grad_input, grad_output, indices, "max_pool3d_with_indices_backward");
}

tm_status tmk_avg_pool2d(tm_tensor *out, tm_tensor *self, const tm_int *kernel_size, int64_t n_kernel, const tm_int *stride, int64_t n_stride,
                         const tm_int *padding, int64_t n_padding, bool ceil_mode, bool count_include_pad, const tm_int *divisor_override)
{
    pool_args p = {kernel_size, stride, padding, NULL, n_kernel, n_stride, n_padding, 0};
    return run_mean(2, self, out, &p, count_include_pad, divisor_override ? *divisor_override : 0, false, "avg_pool2d");
}

tm_status tmk_avg_pool3d(tm_tensor *out, tm_tensor *self, const tm_int *kernel_size, int64_t n_kernel, const tm_int *stride, int64_t n_stride,
                         const tm_int *padding, int64_t n_padding, bool ceil_mode, bool count_include_pad, const tm_int *divisor_override)
{
    pool_args p = {kernel_size, stride, padding, NULL, n_kernel, n_stride, n_padding, 0};
    return run_mean(3, self, out, &p, count_include_pad, divisor_override ? *divisor_override : 0, false, "avg_pool3d_out_frame");
}

tm_status tmk_avg_pool2d_backward(tm_tensor *grad_input, tm_tensor *grad_output, tm_tensor *self, const tm_int *kernel_size, int64_t n_kernel,
                                  const tm_int *stride, int64_t n_stride, const tm_int *padding, int64_t n_padding, bool ceil_mode,
                                  bool count_include_pad, const tm_int *divisor_override)
{
    pool_args p = {kernel_size, stride, padding, NULL, n_kernel, n_stride, n_padding, 0};
    return run_mean(2, grad_input, grad_output, &p, count_include_pad, divisor_override ? *divisor_override : 0, true, "avg_pool2d_backward");
}

tm_status tmk_avg_pool3d_backward(tm_tensor *grad_input, tm_tensor *grad_output, tm_tensor *self, const tm_int *kernel_size, int64_t n_kernel,
                                  const tm_int *stride, int64_t n_stride, const tm_int *padding, int64_t n_padding, bool ceil_mode,
                                  bool count_include_pad, const tm_int *divisor_override)
{
    pool_args p = {kernel_size, stride, padding, NULL, n_kernel, n_stride, n_padding, 0};
    return run_mean(3, grad_input, grad_output, &p, count_include_pad, divisor_override ? *divisor_override : 0, true, "avg_pool3d_backward_out_frame");
}

tm_status tmk_adaptive_avg_pool2d(tm_tensor *out, tm_tensor *self, const tm_int *output_size, int64_t n)
{
    return run_mean(2, self, out, NULL, false, 0, false, "adaptive_avg_pool2d");
}
tm_status tmk_adaptive_avg_pool3d(tm_tensor *out, tm_tensor *self, const tm_int *output_size, int64_t n)
{
    return run_mean(3, self, out, NULL, false, 0, false, "adaptive_avg_pool3d_cpu");
}
tm_status tmk_adaptive_avg_pool2d_backward(tm_tensor *grad_input, tm_tensor *grad_output, tm_tensor *self)
{
    return run_mean(2, grad_input, grad_output, NULL, false, 0, true, "adaptive_avg_pool2d_backward");
}
tm_status tmk_adaptive_avg_pool3d_backward(tm_tensor *grad_input, tm_tensor *grad_output, tm_tensor *self)
{
    return run_mean(3, grad_input, grad_output, NULL, false, 0, true, "adaptive_avg_pool3d_backward_cpu");
}
tm_status tmk_adaptive_max_pool2d(tm_tensor *out, tm_tensor *indices, tm_tensor *self, const tm_int *output_size, int64_t n)
{
    return run_max(2, out, indices, self, NULL, "adaptive_max_pool2d");
}
tm_status tmk_adaptive_max_pool3d(tm_tensor *out, tm_tensor *indices, tm_tensor *self, const tm_int *output_size, int64_t n)
{
    return run_max(3, out, indices, self, NULL, "adaptive_max_pool3d_cpu");
}
tm_status tmk_adaptive_max_pool2d_backward(tm_tensor *grad_input, tm_tensor *grad_output, tm_tensor *self, tm_tensor *indices)
{
    return run_max_backward(2, grad_input, grad_output, indices, "adaptive_max_pool2d_backward");
}
tm_status tmk_adaptive_max_pool3d_backward(tm_tensor *grad_input, tm_tensor *grad_output, tm_tensor *self, tm_tensor *indices)
{
    return run_max_backward(3, grad_input, grad_output, indices, "adaptive_max_pool3d_backward");
}

/* ---------------------------------------------------------------- resizing */

/* In the input's precision, so that positions are PyTorch's. */
static double as_type(double x, bool wide) { return wide ? x : (double)(float)x; }

static double step_of(int64_t in, int64_t out, bool corners, const double *scale, bool wide)
{
    if (corners) return out > 1 ? as_type((double)(in - 1) / (double)(out - 1), wide) : 0;
    if (scale && *scale > 0) return as_type(1.0 / *scale, wide);
    return as_type((wide ? (double)in / (double)out : (double)((float)in / (float)out)), wide);
}

static int64_t clamp(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

static void cubic_weights(double t, double *w)
{
    const double a = -0.75;
    double x0 = t + 1, x3 = 2 - t, x2 = 1 - t;
    w[0] = ((a * x0 - 5 * a) * x0 + 8 * a) * x0 - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * x2 - (a + 3)) * x2 * x2 + 1;
    w[3] = ((a * x3 - 5 * a) * x3 + 8 * a) * x3 - 4 * a;
}

enum resize_mode { RESIZE_NEAREST, RESIZE_NEAREST_EXACT, RESIZE_LINEAR, RESIZE_CUBIC };

static void list_blends(blend *b, int64_t in, int64_t out, enum resize_mode mode, bool corners, const double *scale, bool wide)
{
    double step = step_of(in, out, corners, scale, wide);
    for (int64_t o = 0; o < out; o++, b++) {
        if (mode <= RESIZE_NEAREST_EXACT) {
            double at = as_type(step * ((double)o + (mode == RESIZE_NEAREST_EXACT ? 0.5 : 0)), wide);
            b->at[0] = clamp((int64_t)floor(at), in);
            b->weight[0] = 1;
            continue;
        }
        double at = corners ? as_type(step * (double)o, wide) : as_type(as_type(step * ((double)o + 0.5), wide) - 0.5, wide);
        if (mode == RESIZE_LINEAR && at < 0) at = 0;
        int64_t i = (int64_t)floor(at);
        if (mode == RESIZE_LINEAR) {
            i = clamp(i, in);
            double t = as_type(at - (double)i, wide);
            t = t < 0 ? 0 : t > 1 ? 1 : t;
            b->at[0] = i, b->at[1] = clamp(i + 1, in), b->weight[0] = as_type(1 - t, wide), b->weight[1] = t;
        } else {
            cubic_weights(as_type(at - (double)i, wide), b->weight);
            for (int k = 0; k < 4; k++) b->at[k] = clamp(i - 1 + k, in);
        }
    }
}

/* x: the input (or its gradient); y: the output. scales: one per dim, NULL where not given. */
static tm_status resize(int dims, tm_tensor *x, tm_tensor *y, enum resize_mode mode, bool corners, const double *const *scales, bool backward, const char *name)
{
    const pool_kernels *k = &kernels[x->dtype];
    if (!(backward ? (void *)k->blend_back : (void *)k->blend)) return not_implemented(name, x);
    spatial_run r = describe(x, y, dims);
    if (r.planes == 0) return TM_OK;
    size_t bytes = (size_t)(r.out[0] + r.out[1] + r.out[2]) * sizeof(blend);
    blend *b = tmi_alloc(bytes), *at = b;
    if (!b) return TM_NOMEM;
    for (int i = 0; i < 3; at += r.out[i++]) {
        int from = i - (3 - dims);
        enum resize_mode m = from < 0 ? RESIZE_NEAREST : mode;
        list_blends(at, r.in[i], r.out[i], m, from >= 0 && corners, from < 0 ? NULL : scales[from], x->dtype == TM_F64);
        r.blends[i] = at;
        r.taps[i] = m <= RESIZE_NEAREST_EXACT ? 1 : m == RESIZE_LINEAR ? 2 : 4;
    }
    tm_status status = TM_OK;
    if (backward)
        status = run_backward(&r, k->blend_back);
    else
        tmi_parallel_for(r.planes, plane_grain(&r), k->blend, &r);
    tmi_free(b, bytes);
    return status;
}

tm_status tmk_upsample_nearest1d(tm_tensor *out, tm_tensor *self, const tm_int *size, int64_t n, const double *scales)
{
    return resize(1, self, out, RESIZE_NEAREST, false, &scales, false, "upsample_nearest1d_channels_last");
}
tm_status tmk_upsample_nearest2d(tm_tensor *out, tm_tensor *self, const tm_int *size, int64_t n, const double *h, const double *w)
{
    return resize(2, self, out, RESIZE_NEAREST, false, (const double *const[]){h, w}, false, "upsample_nearest2d_channels_last");
}
tm_status tmk_upsample_nearest3d(tm_tensor *out, tm_tensor *self, const tm_int *size, int64_t n, const double *d, const double *h, const double *w)
{
    return resize(3, self, out, RESIZE_NEAREST, false, (const double *const[]){d, h, w}, false, "upsample_nearest3d_channels_last");
}
tm_status tmk_upsample_nearest_exact1d(tm_tensor *out, tm_tensor *self, const tm_int *size, int64_t n, const double *scales)
{
    return resize(1, self, out, RESIZE_NEAREST_EXACT, false, &scales, false, "upsample_nearest1d_channels_last");
}
tm_status tmk_upsample_nearest_exact2d(tm_tensor *out, tm_tensor *self, const tm_int *size, int64_t n, const double *h, const double *w)
{
    return resize(2, self, out, RESIZE_NEAREST_EXACT, false, (const double *const[]){h, w}, false, "upsample_nearest2d_channels_last");
}
tm_status tmk_upsample_nearest_exact3d(tm_tensor *out, tm_tensor *self, const tm_int *size, int64_t n, const double *d, const double *h, const double *w)
{
    return resize(3, self, out, RESIZE_NEAREST_EXACT, false, (const double *const[]){d, h, w}, false, "upsample_nearest3d_channels_last");
}
tm_status tmk_upsample_linear1d(tm_tensor *out, tm_tensor *self, const tm_int *size, int64_t n, bool corners, const double *scales)
{
    return resize(1, self, out, RESIZE_LINEAR, corners, &scales, false, "compute_indices_weights_linear");
}
tm_status tmk_upsample_bilinear2d(tm_tensor *out, tm_tensor *self, const tm_int *size, int64_t n, bool corners, const double *h, const double *w)
{
    return resize(2, self, out, RESIZE_LINEAR, corners, (const double *const[]){h, w}, false, "compute_indices_weights_linear");
}
tm_status tmk_upsample_trilinear3d(tm_tensor *out, tm_tensor *self, const tm_int *size, int64_t n, bool corners, const double *d, const double *h,
                                   const double *w)
{
    return resize(3, self, out, RESIZE_LINEAR, corners, (const double *const[]){d, h, w}, false, "compute_indices_weights_linear");
}
tm_status tmk_upsample_bicubic2d(tm_tensor *out, tm_tensor *self, const tm_int *size, int64_t n, bool corners, const double *h, const double *w)
{
    return resize(2, self, out, RESIZE_CUBIC, corners, (const double *const[]){h, w}, false, "compute_indices_weights_cubic");
}

tm_status tmk_upsample_nearest1d_backward(tm_tensor *gi, tm_tensor *go, const tm_int *size, int64_t n, const tm_int *in, int64_t n_in, const double *scales)
{
    return resize(1, gi, go, RESIZE_NEAREST, false, &scales, true, "upsample_nearest_backward");
}
tm_status tmk_upsample_nearest2d_backward(tm_tensor *gi, tm_tensor *go, const tm_int *size, int64_t n, const tm_int *in, int64_t n_in, const double *h,
                                          const double *w)
{
    return resize(2, gi, go, RESIZE_NEAREST, false, (const double *const[]){h, w}, true, "upsample_nearest_backward");
}
tm_status tmk_upsample_nearest3d_backward(tm_tensor *gi, tm_tensor *go, const tm_int *size, int64_t n, const tm_int *in, int64_t n_in, const double *d,
                                          const double *h, const double *w)
{
    return resize(3, gi, go, RESIZE_NEAREST, false, (const double *const[]){d, h, w}, true, "upsample_nearest_backward");
}
tm_status tmk_upsample_nearest_exact1d_backward(tm_tensor *gi, tm_tensor *go, const tm_int *size, int64_t n, const tm_int *in, int64_t n_in,
                                                const double *scales)
{
    return resize(1, gi, go, RESIZE_NEAREST_EXACT, false, &scales, true, "upsample_nearest_backward");
}
tm_status tmk_upsample_nearest_exact2d_backward(tm_tensor *gi, tm_tensor *go, const tm_int *size, int64_t n, const tm_int *in, int64_t n_in,
                                                const double *h, const double *w)
{
    return resize(2, gi, go, RESIZE_NEAREST_EXACT, false, (const double *const[]){h, w}, true, "upsample_nearest_backward");
}
tm_status tmk_upsample_nearest_exact3d_backward(tm_tensor *gi, tm_tensor *go, const tm_int *size, int64_t n, const tm_int *in, int64_t n_in,
                                                const double *d, const double *h, const double *w)
{
    return resize(3, gi, go, RESIZE_NEAREST_EXACT, false, (const double *const[]){d, h, w}, true, "upsample_nearest_backward");
}
tm_status tmk_upsample_linear1d_backward(tm_tensor *gi, tm_tensor *go, const tm_int *size, int64_t n, const tm_int *in, int64_t n_in, bool corners,
                                         const double *scales)
{
    return resize(1, gi, go, RESIZE_LINEAR, corners, &scales, true, "upsample_linear_backward");
}
tm_status tmk_upsample_bilinear2d_backward(tm_tensor *gi, tm_tensor *go, const tm_int *size, int64_t n, const tm_int *in, int64_t n_in, bool corners,
                                           const double *h, const double *w)
{
    return resize(2, gi, go, RESIZE_LINEAR, corners, (const double *const[]){h, w}, true, "upsample_linear_backward");
}
tm_status tmk_upsample_trilinear3d_backward(tm_tensor *gi, tm_tensor *go, const tm_int *size, int64_t n, const tm_int *in, int64_t n_in, bool corners,
                                            const double *d, const double *h, const double *w)
{
    return resize(3, gi, go, RESIZE_LINEAR, corners, (const double *const[]){d, h, w}, true, "upsample_linear_backward");
}
tm_status tmk_upsample_bicubic2d_backward(tm_tensor *gi, tm_tensor *go, const tm_int *size, int64_t n, const tm_int *in, int64_t n_in, bool corners,
                                          const double *h, const double *w)
{
    return resize(2, gi, go, RESIZE_CUBIC, corners, (const double *const[]){h, w}, true, "upsample_bicubic2d_backward_frame");
}
