/* The convolution primitives for float and double (matrix products and direct sums) and for integers (direct sums only). */
#include <string.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "conv.h"
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/gemm_aux.h"

static void axpy_f32(float *y, int64_t y_step, int64_t n, float scale, const float *x, int64_t x_step)
{
    if (y_step == 1 && x_step == 1)
        tmi_gemm_aux()->axpy_rows_f32(y, n, 1, x, 0, &scale);
    else
        for (int64_t i = 0; i < n; i++) y[i * y_step] += scale * x[i * x_step];
}
static void axpy_f64(double *y, int64_t y_step, int64_t n, double scale, const double *x, int64_t x_step)
{
    if (y_step == 1 && x_step == 1)
        tmi_gemm_aux()->axpy_rows_f64(y, n, 1, x, 0, &scale);
    else
        for (int64_t i = 0; i < n; i++) y[i * y_step] += scale * x[i * x_step];
}
static void axpy_i64(int64_t *y, int64_t y_step, int64_t n, int64_t scale, const int64_t *x, int64_t x_step)
{
    for (int64_t i = 0; i < n; i++) y[i * y_step] = (int64_t)((uint64_t)y[i * y_step] + (uint64_t)scale * (uint64_t)x[i * x_step]);
}
static float dot_f32(int64_t n, const float *x, int64_t x_step, const float *y, int64_t y_step)
{
    float sum = 0;
    if (x_step == 1 && y_step == 1)
        tmi_gemm_aux()->dot_rows_f32(&sum, 1, 1, n, x, n, y);
    else
        for (int64_t i = 0; i < n; i++) sum += x[i * x_step] * y[i * y_step];
    return sum;
}
static double dot_f64(int64_t n, const double *x, int64_t x_step, const double *y, int64_t y_step)
{
    double sum = 0;
    if (x_step == 1 && y_step == 1)
        tmi_gemm_aux()->dot_rows_f64(&sum, 1, 1, n, x, n, y);
    else
        for (int64_t i = 0; i < n; i++) sum += x[i * x_step] * y[i * y_step];
    return sum;
}
static int64_t dot_i64(int64_t n, const int64_t *x, int64_t x_step, const int64_t *y, int64_t y_step)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (uint64_t)x[i * x_step] * (uint64_t)y[i * y_step];
    return (int64_t)sum;
}

#define T float
#define DTYPE TM_F32
#define AXPY axpy_f32
#define DOT dot_f32
#define NAME(x) f32_##x
#include "conv_load.tmpl.h"
#include "conv_direct.tmpl.h"
#include "conv_gemm.tmpl.h"
#undef T
#undef DTYPE
#undef AXPY
#undef DOT
#undef NAME
const conv_kernels tmi_conv_f32 = {f32_apply, f32_input_grad, f32_weight_grad};

#define T double
#define DTYPE TM_F64
#define AXPY axpy_f64
#define DOT dot_f64
#define NAME(x) f64_##x
#include "conv_load.tmpl.h"
#include "conv_direct.tmpl.h"
#include "conv_gemm.tmpl.h"
#undef T
#undef DTYPE
#undef AXPY
#undef DOT
#undef NAME
const conv_kernels tmi_conv_f64 = {f64_apply, f64_input_grad, f64_weight_grad};

#define T int64_t
#define AXPY axpy_i64
#define DOT dot_i64
#define NAME(x) i64_##x
#include "conv_direct.tmpl.h"

static tm_status i64_apply(const conv_geometry *g, const conv_array *in, const void *weight, const void *bias, const conv_array *out)
{
    i64_direct d = {.g = g, .in = in, .out = out, .weight = weight, .bias = bias};
    tmi_parallel_for(g->batch * g->groups * g->cout, 1, i64_direct_apply, &d);
    return TM_OK;
}
static tm_status i64_input_grad(const conv_geometry *g, const conv_array *gout, const void *weight, const conv_array *gin)
{
    i64_direct d = {.g = g, .in = gin, .out = gout, .weight = weight};
    tmi_parallel_for(g->batch * g->groups * g->cin, 1, i64_direct_input, &d);
    return TM_OK;
}
static tm_status i64_weight_grad(const conv_geometry *g, const conv_array *in, const conv_array *gout, void *gweight)
{
    i64_direct d = {.g = g, .in = in, .out = gout, .gweight = gweight};
    tmi_parallel_for(g->groups * g->cout, 1, i64_direct_weight, &d);
    return TM_OK;
}
const conv_kernels tmi_conv_i64 = {i64_apply, i64_input_grad, i64_weight_grad};
