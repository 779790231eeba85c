/* The convolution operators' kernels: tensors to geometry and arrays, f16 and bf16 through float, integers through int64. */
#include "op_bodies.h"

#include "base/alloc.h"
#include "base/pool.h"
#include "conv.h"

/* A tensor as the primitives see it: its own memory, or a dense copy in the computing type. */
typedef struct conv_operand {
    conv_array a;
    void *copy;
    size_t bytes;
} conv_operand;

typedef struct conv_call {
    conv_geometry g;
    const conv_kernels *kernels;
    tm_dtype dtype;    /* computing type */
    bool transposed;
} conv_call;

static tm_dtype computing_type(tm_dtype d) { return d == TM_F64 ? TM_F64 : tmi_is_float(d) ? TM_F32 : TM_I64; }

static conv_array array_of(const tm_tensor *t)
{
    conv_array a = {.data = tmi_data(t), .ns = t->strides[0], .cs = t->strides[1]};
    for (int i = 2; i < t->ndim; i++) a.ss[3 - t->ndim + i] = t->strides[i];
    return a;
}

static void spatial_sizes(const tm_tensor *t, int64_t *n)
{
    n[0] = n[1] = n[2] = 1;
    for (int i = 2; i < t->ndim; i++) n[3 - t->ndim + i] = t->sizes[i];
}

static conv_array dense_array(const tm_tensor *t, void *data)
{
    int64_t n[3];
    spatial_sizes(t, n);
    return (conv_array){data, t->sizes[1] * n[0] * n[1] * n[2], n[0] * n[1] * n[2], {n[1] * n[2], n[2], 1}};
}

static void convert_element(void *dst, int64_t i, tm_dtype to, const void *src, int64_t j, tm_dtype from)
{
    tm_scalar s = tmi_load_scalar((const char *)src + j * (int64_t)tmi_dtype_size(from), from);
    tmi_store_scalar((char *)dst + i * (int64_t)tmi_dtype_size(to), to, s);
}

/* Copies between t and a dense array of the computing type. */
static void copy_dense(const tm_tensor *t, tm_dtype dtype, void *dense, bool to_tensor)
{
    int64_t index[TMI_MAX_DIMS] = {0}, at = 0;
    for (int64_t i = 0; i < t->numel; i++) {
        if (to_tensor)
            convert_element(tmi_data(t), at, t->dtype, dense, i, dtype);
        else
            convert_element(dense, i, dtype, tmi_data(t), at, t->dtype);
        for (int d = t->ndim - 1; d >= 0; d--) {
            at += t->strides[d];
            if (++index[d] < t->sizes[d]) break;
            at -= index[d] * t->strides[d];
            index[d] = 0;
        }
    }
}

static tm_status make_operand(conv_operand *o, const tm_tensor *t, tm_dtype dtype, bool read)
{
    int64_t n[3], step;
    *o = (conv_operand){.a = array_of(t)};
    spatial_sizes(t, n);
    if (t->dtype == dtype && conv_even(&o->a, n, &step)) return TM_OK;
    o->bytes = (size_t)t->numel * tmi_dtype_size(dtype);
    o->copy = tmi_data_alloc(o->bytes);
    if (!o->copy) return TM_NOMEM;
    o->a = dense_array(t, o->copy);
    if (read) copy_dense(t, dtype, o->copy, false);
    return TM_OK;
}

static void drop_operand(conv_operand *o)
{
    if (o->copy) tmi_data_free(o->copy, o->bytes);
}

/* Weights and biases: dense, or copied. */
static tm_status make_dense(conv_operand *o, const tm_tensor *t, tm_dtype dtype, bool read)
{
    *o = (conv_operand){.a.data = tmi_data(t)};
    if (t->dtype == dtype && tmi_contiguous(t)) return TM_OK;
    o->bytes = (size_t)t->numel * tmi_dtype_size(dtype);
    o->copy = o->a.data = tmi_data_alloc(o->bytes);
    if (!o->copy) return TM_NOMEM;
    if (read) copy_dense(t, dtype, o->copy, false);
    return TM_OK;
}

static int64_t list_at(const tm_int *list, int64_t n, int i) { return n == 1 ? list[0] : list[i]; }

/* `big` is the side that a convolution reads, `small` the one it writes; they change places when transposed. */
static conv_call describe(const tm_tensor *big, const tm_tensor *small, const tm_tensor *weight, const tm_int *stride, int64_t n_stride,
                          const tm_int *padding, int64_t n_padding, const tm_int *dilation, int64_t n_dilation, int64_t groups, bool transposed)
{
    conv_call c = {.dtype = computing_type(weight->dtype), .transposed = transposed};
    conv_geometry *g = &c.g;
    c.kernels = c.dtype == TM_F64 ? &tmi_conv_f64 : c.dtype == TM_F32 ? &tmi_conv_f32 : &tmi_conv_i64;
    g->batch = big->sizes[0], g->groups = groups, g->cin = weight->sizes[1], g->cout = weight->sizes[0] / groups;
    spatial_sizes(big, g->in), spatial_sizes(small, g->out), spatial_sizes(weight, g->k);
    int dims = weight->ndim - 2;
    for (int i = 0; i < 3; i++) {
        int from = i - (3 - dims);
        g->stride[i] = from < 0 ? 1 : list_at(stride, n_stride, from);
        g->pad[i] = from < 0 ? 0 : list_at(padding, n_padding, from);
        g->dilation[i] = from < 0 ? 1 : list_at(dilation, n_dilation, from);
    }
    return c;
}

/* Transposed convolution: a[n, c, ...] += bias[c], in the computing type. */
static void add_bias(const conv_call *c, const conv_array *a, const void *bias)
{
    const int64_t *n = c->g.in, channels = c->g.groups * c->g.cin;
    for (int64_t i = 0; i < c->g.batch * channels; i++)
        for (int64_t row = 0; row < n[0] * n[1]; row++) {
            int64_t ch = i % channels, at = i / channels * a->ns + ch * a->cs + row / n[1] * a->ss[0] + row % n[1] * a->ss[1];
            for (int64_t x = 0; x < n[2]; x++, at += a->ss[2]) {
                if (c->dtype == TM_F32)
                    ((float *)a->data)[at] += ((const float *)bias)[ch];
                else if (c->dtype == TM_F64)
                    ((double *)a->data)[at] += ((const double *)bias)[ch];
                else
                    ((int64_t *)a->data)[at] += ((const int64_t *)bias)[ch];
            }
        }
}

/* One primitive over operands of the computing type. */
typedef enum primitive { APPLY, INPUT_GRAD, WEIGHT_GRAD } primitive;

static tm_status run(const conv_call *c, primitive what, const tm_tensor *read1, const tm_tensor *read2, const tm_tensor *bias, tm_tensor *written)
{
    conv_operand a = {0}, b = {0}, w = {0}, out = {0};
    bool weights_written = what == WEIGHT_GRAD;
    tm_status s = make_operand(&a, read1, c->dtype, true);
    if (!s) s = weights_written ? make_operand(&b, read2, c->dtype, true) : make_dense(&b, read2, c->dtype, true);
    if (!s && bias) s = make_dense(&w, bias, c->dtype, true);
    if (!s) s = weights_written ? make_dense(&out, written, c->dtype, false) : make_operand(&out, written, c->dtype, false);
    if (!s && what == APPLY) s = c->kernels->apply(&c->g, &a.a, b.a.data, w.a.data, &out.a);
    if (!s && what == INPUT_GRAD) s = c->kernels->input_grad(&c->g, &a.a, b.a.data, &out.a);
    if (!s && what == INPUT_GRAD && bias) add_bias(c, &out.a, w.a.data);
    if (!s && what == WEIGHT_GRAD) s = c->kernels->weight_grad(&c->g, &a.a, &b.a, out.a.data);
    if (!s && out.copy) copy_dense(written, c->dtype, out.copy, true);
    drop_operand(&a), drop_operand(&b), drop_operand(&w), drop_operand(&out);
    return s;
}

static void zero(tm_tensor *t)
{
    if (t->numel && tmi_is_non_overlapping_and_dense(t)) memset(tmi_data(t), 0, (size_t)t->numel * tmi_dtype_size(t->dtype));
}

/* No input at all: out[n, c, ...] = bias[c], or zero. */
static void fill_channels(tm_tensor *out, const tm_tensor *bias)
{
    int64_t n[3], es = (int64_t)tmi_dtype_size(out->dtype);
    conv_array a = array_of(out);
    spatial_sizes(out, n);
    for (int64_t i = 0; i < out->sizes[0] * out->sizes[1]; i++) {
        int64_t c = i % out->sizes[1];
        tm_scalar b = bias ? tmi_load_scalar((const char *)tmi_data(bias) + c * bias->strides[0] * es, bias->dtype) : tm_f64(0);
        for (int64_t p = 0; p < n[0] * n[1] * n[2]; p++) {
            int64_t at = i / out->sizes[1] * a.ns + c * a.cs + p / n[2] / n[1] * a.ss[0] + p / n[2] % n[1] * a.ss[1] + p % n[2] * a.ss[2];
            tmi_store_scalar((char *)a.data + at * es, out->dtype, b);
        }
    }
}

static tm_status check_dtype(const tm_tensor *t)
{
    bool fits = (tmi_is_float(t->dtype) && t->dtype < TM_F8_E4M3FN) || (tmi_is_integral(t->dtype) && t->dtype < TM_U16);
    TMI_REQUIRE(fits, TM_NOT_IMPLEMENTED, "\"slow_conv2d_cpu\" not implemented for '%s'", tmi_dtypes[t->dtype].type_name);
    return TM_OK;
}

tm_status tmk_convolution(tm_tensor *out, tm_tensor *input, tm_tensor *weight, tm_tensor *bias, const tm_int *stride, int64_t n_stride,
                          const tm_int *padding, int64_t n_padding, const tm_int *dilation, int64_t n_dilation, bool transposed,
                          const tm_int *output_padding, int64_t n_output_padding, tm_int groups)
{
    TMI_TRY(check_dtype(input));
    if (out->numel == 0) return TM_OK;
    if (weight->numel == 0 || input->numel == 0) return fill_channels(out, bias), TM_OK;
    conv_call c = describe(transposed ? out : input, transposed ? input : out, weight, stride, n_stride, padding, n_padding, dilation, n_dilation, groups,
                           transposed);
    if (!transposed) return run(&c, APPLY, input, weight, bias, out);
    return run(&c, INPUT_GRAD, input, weight, bias, out);
}

/* Sums over images and positions, a channel at a time. */
typedef struct bias_sum { const tm_tensor *grad; tm_tensor *out; } bias_sum;
static void sum_channels(void *ctx, int64_t begin, int64_t end)
{
    const bias_sum *s = ctx;
    int64_t n[3], es = (int64_t)tmi_dtype_size(s->grad->dtype);
    conv_array a = array_of(s->grad);
    spatial_sizes(s->grad, n);
    for (int64_t c = begin; c < end; c++) {
        double sum = 0;
        for (int64_t i = 0; i < s->grad->sizes[0]; i++)
            for (int64_t p = 0; p < n[0] * n[1] * n[2]; p++) {
                int64_t at = i * a.ns + c * a.cs + p / n[2] / n[1] * a.ss[0] + p / n[2] % n[1] * a.ss[1] + p % n[2] * a.ss[2];
                const char *x = (const char *)a.data + at * es;
                sum += s->grad->dtype == TM_F32 ? *(const float *)(const void *)x : tmi_scalar_f64(tmi_load_scalar(x, s->grad->dtype));
            }
        tmi_store_scalar((char *)tmi_data(s->out) + c * es, s->out->dtype, tm_f64(sum));
    }
}

tm_status tmk_convolution_backward(tm_tensor *grad_input, tm_tensor *grad_weight, tm_tensor *grad_bias, tm_tensor *grad_output, tm_tensor *input,
                                   tm_tensor *weight, const tm_int *bias_sizes, int64_t n_bias_sizes, const tm_int *stride, int64_t n_stride,
                                   const tm_int *padding, int64_t n_padding, const tm_int *dilation, int64_t n_dilation, bool transposed,
                                   const tm_int *output_padding, int64_t n_output_padding, tm_int groups, const bool *output_mask, int64_t n_output_mask)
{
    TMI_TRY(check_dtype(grad_output));
    conv_call c = describe(transposed ? grad_output : input, transposed ? input : grad_output, weight, stride, n_stride, padding, n_padding, dilation,
                           n_dilation, groups, transposed);
    bool empty = input->numel == 0 || weight->numel == 0 || grad_output->numel == 0;
    if (empty) zero(grad_input), zero(grad_weight);
    if (output_mask[0] && !empty) TMI_TRY(run(&c, transposed ? APPLY : INPUT_GRAD, grad_output, weight, NULL, grad_input));
    if (output_mask[1] && !empty) TMI_TRY(run(&c, WEIGHT_GRAD, transposed ? grad_output : input, transposed ? input : grad_output, NULL, grad_weight));
    if (output_mask[2]) {
        bias_sum s = {grad_output, grad_bias};
        tmi_parallel_for(grad_output->sizes[1], 1 + 16384 / (grad_output->numel / (grad_output->sizes[1] + 1) + 1), sum_channels, &s);
    }
    return TM_OK;
}
