/* Convolutions: PyTorch's checks, the shape rule, batch dims, padding by name, the second derivative. */
#include <stdio.h>

#include "op_bodies.h"
#include "ops.h"

#include "boxing.h"
#include "op_ids.h"
#include "shapes.h"

enum { MAX_SPATIAL = 8 };

typedef struct conv_lists {
    tm_int stride[MAX_SPATIAL], padding[MAX_SPATIAL], dilation[MAX_SPATIAL], output_padding[MAX_SPATIAL];
} conv_lists;

/* A list of one number stands for `dims` of them. */
static tm_status spread(tm_int *out, const tm_int *list, int64_t n, int dims, const char *name)
{
    if (n != 1 && n != dims) {
        char text[128];
        tmi_format_sizes(text, sizeof text, (int)n, list);
        return tmi_fail(TM_SHAPE, "expected %s to be a single integer value or a list of %d values to match the convolution dimensions, but got %s=%s", name,
                        dims, name, text);
    }
    for (int i = 0; i < dims; i++) out[i] = n == 1 ? list[0] : list[i];
    return TM_OK;
}

static tm_status check_numbers(const conv_lists *l, int dims, tm_int groups, bool transposed, const tm_int *dilation, int64_t n_dilation)
{
    char text[128];
    tmi_format_sizes(text, sizeof text, dims, l->dilation);
    for (int i = 0; i < dims; i++) {
        TMI_REQUIRE(l->padding[i] >= 0, TM_INVALID, "negative padding is not supported");
        TMI_REQUIRE(!transposed || l->output_padding[i] >= 0, TM_INVALID, "negative output_padding is not supported");
    }
    for (int i = 0; i < dims; i++) TMI_REQUIRE(l->stride[i] > 0, TM_INVALID, "non-positive stride is not supported");
    for (int i = 0; i < dims; i++) TMI_REQUIRE(l->dilation[i] > 0, TM_INVALID, "dilation should be greater than zero, but got %s", text);
    TMI_REQUIRE(groups > 0, TM_INVALID, "non-positive groups is not supported");
    return TM_OK;
}

static tm_status check_channels(const tm_tensor *input, const tm_tensor *weight, const tm_tensor *bias, tm_int groups, bool transposed)
{
    char w[128], x[128], b[64];
    tmi_format_sizes(w, sizeof w, weight->ndim, weight->sizes);
    tmi_format_sizes(x, sizeof x, input->ndim, input->sizes);
    const char *word = transposed ? "transposed" : "groups";
    long number = transposed ? 1 : (long)groups;
    TMI_REQUIRE(weight->sizes[0] >= groups, TM_SHAPE, "Given groups=%ld, expected weight to be at least %ld at dimension 0, but got weight of size %s instead",
                (long)groups, (long)groups, w);
    TMI_REQUIRE(weight->sizes[0] % groups == 0, TM_SHAPE,
                "Given groups=%ld, expected weight to be divisible by %ld at dimension 0, but got weight of size [%s] instead", (long)groups, (long)groups, w);
    tm_int want = transposed ? weight->sizes[0] : weight->sizes[1] * groups, out = transposed ? weight->sizes[1] * groups : weight->sizes[0];
    TMI_REQUIRE(input->sizes[1] == want, TM_SHAPE, "Given %s=%ld, weight of size %s, expected input%s to have %ld channels, but got %ld channels instead", word,
                number, w, x, (long)want, (long)input->sizes[1]);
    if (!bias) return TM_OK;
    tmi_format_sizes(b, sizeof b, bias->ndim, bias->sizes);
    TMI_REQUIRE(bias->ndim == 1 && bias->sizes[0] == out, TM_SHAPE,
                "Given %s=%ld, weight of size %s, expected bias to be 1-dimensional with %ld elements, but got bias of size %s instead", word, number, w,
                (long)out, b);
    return TM_OK;
}

static const char *small_name(const tm_tensor *t)
{
    switch (t->dtype) {
    case TM_F32: return "float";
    case TM_F64: return "double";
    case TM_F16: return "c10::Half";
    case TM_BF16: return "c10::BFloat16";
    case TM_I64: return "long int";
    default: return tmi_dtypes[t->dtype].name;
    }
}

static tm_status check_dtypes(const tm_tensor *input, const tm_tensor *weight, const tm_tensor *bias)
{
    TMI_REQUIRE(!bias || input->dtype == bias->dtype, TM_INVALID, "Input type (%s) and bias type (%s) should be the same", small_name(input),
                small_name(bias));
    TMI_REQUIRE(input->dtype == weight->dtype, TM_INVALID, "expected scalar type %s but found %s", tmi_dtypes[input->dtype].type_name,
                tmi_dtypes[weight->dtype].type_name);
    return TM_OK;
}

/* "(2 x 2)": per channel, of the padded input or the dilated kernel. */
static void format_extent(char *buf, size_t n, int dims, const tm_int *v)
{
    size_t at = 0;
    for (int i = 0; i < dims && at < n; i++) at += (size_t)snprintf(buf + at, n - at, "%s%ld", i ? " x " : "", (long)v[i]);
}

static tm_status conv_output(const tm_tensor *input, const tm_tensor *weight, const conv_lists *l, bool transposed, tm_int *out)
{
    int dims = weight->ndim - 2;
    tm_int padded[MAX_SPATIAL], kernel[MAX_SPATIAL];
    bool fits = true;
    for (int i = 0; i < dims; i++) {
        tm_int size = input->sizes[i + 2], k = l->dilation[i] * (weight->sizes[i + 2] - 1) + 1;
        padded[i] = size + 2 * l->padding[i];
        kernel[i] = k;
        if (transposed) {
            out[i] = (size - 1) * l->stride[i] - 2 * l->padding[i] + k + l->output_padding[i];
            fits = fits && out[i] >= 0;
        } else {
            out[i] = (padded[i] - k) / l->stride[i] + 1;
            fits = fits && padded[i] >= k;
        }
    }
    if (fits) return TM_OK;
    char a[64], b[64];
    if (transposed) return tmi_fail(TM_SHAPE, "Given input size per channel: the calculated output size is too small");
    format_extent(a, sizeof a, dims, padded);
    format_extent(b, sizeof b, dims, kernel);
    return tmi_fail(TM_SHAPE, "Calculated padded input size per channel: (%s). Kernel size: (%s). Kernel size can't be greater than actual input size", a, b);
}

static bool channels_last(const tm_tensor *t)
{
    if (t->ndim != 4 && t->ndim != 5) return false;
    return !tmi_contiguous(t) && tmi_is_contiguous_as(t, t->ndim == 4 ? TM_CHANNELS_LAST : TM_CHANNELS_LAST_3D);
}

/* Strides with channels innermost. */
static void set_channels_last(tmi_meta *m)
{
    tm_int step = m->sizes[1] > 0 ? m->sizes[1] : 1;
    m->contiguous = false;
    m->strides[1] = 1;
    for (int i = m->ndim - 1; i >= 2; i--) m->strides[i] = step, step *= m->sizes[i] > 0 ? m->sizes[i] : 1;
    m->strides[0] = step;
}

static tm_status read_lists(conv_lists *l, int dims, const tm_int *stride, int64_t n_stride, const tm_int *padding, int64_t n_padding,
                            const tm_int *dilation, int64_t n_dilation, const tm_int *output_padding, int64_t n_output_padding)
{
    TMI_TRY(spread(l->stride, stride, n_stride, dims, "stride"));
    TMI_TRY(spread(l->padding, padding, n_padding, dims, "padding"));
    TMI_TRY(spread(l->dilation, dilation, n_dilation, dims, "dilation"));
    return spread(l->output_padding, output_padding, n_output_padding, dims, "output_padding");
}

static tm_status check_output_padding(const conv_lists *l, int dims)
{
    static const char *const axis[] = {"depth", "height", "width"};
    for (int i = 0; i < dims && dims <= 3; i++) {
        if (l->output_padding[i] < l->stride[i] || l->output_padding[i] < l->dilation[i]) continue;
        char text[512];
        size_t at = 0;
        const char *const *name = axis + 3 - dims;
        for (int part = 0; part < 3; part++)
            for (int d = 0; d < dims; d++)
                at += (size_t)snprintf(text + at, sizeof text - at, " %s_%s: %ld", part == 0 ? "output_padding" : part == 1 ? "stride" : "dilation", name[d],
                                       (long)(part == 0 ? l->output_padding : part == 1 ? l->stride : l->dilation)[d]);
        return tmi_fail(TM_INVALID, "output padding must be smaller than either stride or dilation, but got%s", text);
    }
    return TM_OK;
}

tm_status tmi_shape_convolution(tmi_meta *m, tm_tensor *input, tm_tensor *weight, tm_tensor *bias, const tm_int *stride, int64_t n_stride,
                                const tm_int *padding, int64_t n_padding, const tm_int *dilation, int64_t n_dilation, bool transposed,
                                const tm_int *output_padding, int64_t n_output_padding, tm_int groups)
{
    int dims = weight->ndim - 2;
    conv_lists l;
    TMI_REQUIRE(dims >= 1 && dims <= 3, TM_SHAPE, "weight should have at least three dimensions");
    TMI_TRY(read_lists(&l, dims, stride, n_stride, padding, n_padding, dilation, n_dilation, output_padding, n_output_padding));
    TMI_TRY(check_numbers(&l, dims, groups, transposed, dilation, n_dilation));
    TMI_REQUIRE(input->ndim == weight->ndim, TM_SHAPE, "Expected %d-dimensional input for %d-dimensional weight, but got %d-dimensional input instead",
                weight->ndim, weight->ndim, input->ndim);
    TMI_TRY(check_channels(input, weight, bias, groups, transposed));
    TMI_TRY(check_dtypes(input, weight, bias));
    if (transposed) TMI_TRY(check_output_padding(&l, dims));
    tm_int sizes[MAX_SPATIAL + 2] = {input->sizes[0], transposed ? weight->sizes[1] * groups : weight->sizes[0]};
    TMI_TRY(conv_output(input, weight, &l, transposed, sizes + 2));
    tmi_meta_set(m, dims + 2, sizes);
    if (channels_last(input) || channels_last(weight)) set_channels_last(m);
    return TM_OK;
}

tm_status tmi_shape_convolution_backward(tmi_meta *m, tm_tensor *grad_output, tm_tensor *input, tm_tensor *weight, const tm_int *bias_sizes,
                                         int64_t n_bias_sizes, const tm_int *stride, int64_t n_stride, const tm_int *padding, int64_t n_padding,
                                         const tm_int *dilation, int64_t n_dilation, bool transposed, const tm_int *output_padding,
                                         int64_t n_output_padding, tm_int groups, const bool *output_mask, int64_t n_output_mask)
{
    TMI_REQUIRE(n_output_mask == 3, TM_INVALID, "convolution_backward: output_mask must have three entries");
    tm_int none = 0;
    tmi_meta_set(&m[0], output_mask[0] ? input->ndim : 1, output_mask[0] ? input->sizes : &none);
    tmi_meta_set(&m[1], output_mask[1] ? weight->ndim : 1, output_mask[1] ? weight->sizes : &none);
    tmi_meta_set(&m[2], 1, output_mask[2] ? &grad_output->sizes[1] : &none);
    if (output_mask[0] && (channels_last(input) || channels_last(weight))) set_channels_last(&m[0]);
    if (output_mask[1] && (channels_last(input) || channels_last(weight))) set_channels_last(&m[1]);
    return TM_OK;
}

/* ---------------------------------------------------------------- second derivative: every part is linear in each operand */

tm_status tmi_grad_convolution_twice(tm_tensor **out, tm_tensor *ggi, tm_tensor *ggw, tm_tensor *ggb, tm_tensor *go, tm_tensor *input, tm_tensor *weight,
                                     const tm_int *stride, int64_t n_stride, const tm_int *padding, int64_t n_padding, const tm_int *dilation,
                                     int64_t n_dilation, bool transposed, const tm_int *output_padding, int64_t n_output_padding, tm_int groups,
                                     const bool *mask, int64_t n_mask, const bool *needs, int64_t n_needs)
{
    tm_tensor *o[3];
    if (!mask[0]) ggi = NULL;
    if (!mask[1]) ggw = NULL;
    if (!mask[2]) ggb = NULL;
    if (needs[0]) {
        tm_tensor *sum = NULL;
        if (ggi) sum = tm_convolution(ggi, weight, NULL, stride, n_stride, padding, n_padding, dilation, n_dilation, transposed, output_padding, n_output_padding, groups);
        if (ggw) {
            tm_tensor *part = tm_convolution(input, ggw, NULL, stride, n_stride, padding, n_padding, dilation, n_dilation, transposed, output_padding, n_output_padding, groups);
            sum = sum ? tm_add(sum, part) : part;
        }
        if (ggb) {
            tm_int sizes[MAX_SPATIAL + 2] = {1, ggb->sizes[0]};
            for (int i = 2; i < go->ndim; i++) sizes[i] = 1;
            tm_tensor *part = tm_expand(tm_view(ggb, sizes, go->ndim), go->sizes, go->ndim);
            sum = sum ? tm_add(sum, part) : part;
        }
        out[0] = sum;
    }
    if (needs[1] && ggw) {
        const bool first[3] = {true, false, false};
        TMI_TRY(tm_convolution_backward(go, input, ggw, NULL, 0, stride, n_stride, padding, n_padding, dilation, n_dilation, transposed, output_padding,
                                        n_output_padding, groups, first, 3, &o[0], &o[1], &o[2]));
        out[1] = o[0];
    }
    if (needs[2] && ggi) {
        const bool second[3] = {false, true, false};
        TMI_TRY(tm_convolution_backward(go, ggi, weight, NULL, 0, stride, n_stride, padding, n_padding, dilation, n_dilation, transposed, output_padding,
                                        n_output_padding, groups, second, 3, &o[0], &o[1], &o[2]));
        out[2] = o[1];
    }
    return tm_error_status();
}

/* ---------------------------------------------------------------- by number of dims */

typedef struct conv_args {
    tm_tensor *weight, *bias;
    const tm_int *stride, *padding, *dilation, *output_padding;
    int64_t n_stride, n_padding, n_dilation, n_output_padding;
    bool transposed;
    tm_int groups;
} conv_args;

static tm_tensor *call(tm_tensor *input, tm_tensor *weight, tm_tensor *bias, const conv_args *c)
{
    return tm_convolution(input, weight, bias, c->stride, c->n_stride, c->padding, c->n_padding, c->dilation, c->n_dilation, c->transposed,
                          c->output_padding, c->n_output_padding, c->groups);
}

/* (a + bi) * (c + di) from real convolutions. */
static tm_tensor *call_complex(tm_tensor *input, const conv_args *c)
{
    TMI_REQUIRE_PTR(tmi_is_complex(input->dtype) && tmi_is_complex(c->weight->dtype), TM_INVALID, "expected scalar type %s but found %s",
                    tmi_dtypes[input->dtype].type_name, tmi_dtypes[c->weight->dtype].type_name);
    tm_tensor *xr = tm_real(input), *xi = tm_imag(input), *wr = tm_real(c->weight), *wi = tm_imag(c->weight);
    tm_tensor *re = tm_sub(call(xr, wr, NULL, c), call(xi, wi, NULL, c)), *im = tm_add(call(xr, wi, NULL, c), call(xi, wr, NULL, c));
    tm_tensor *out = tm_complex(re, im);
    if (!c->bias || !out) return out;
    tm_int sizes[MAX_SPATIAL + 2];
    for (int i = 0; i < out->ndim; i++) sizes[i] = i == 1 ? -1 : 1;
    return tm_add(out, tm_view(c->bias, sizes, out->ndim));
}

static tm_tensor *conv_nd(int dims, const char *name, tm_tensor *input, const conv_args *c)
{
    char size[128];
    tmi_format_sizes(size, sizeof size, input->ndim, input->sizes);
    TMI_REQUIRE_PTR(input->ndim == dims + 1 || input->ndim == dims + 2, TM_SHAPE,
                    "Expected %dD (unbatched) or %dD (batched) input to %s, but got input of size: %s", dims + 1, dims + 2, name, size);
    bool batched = input->ndim == dims + 2;
    tm_tensor *x = batched ? input : tm_unsqueeze(input, 0);
    if (!x) return NULL;
    tm_tensor *out = tmi_is_complex(x->dtype) || tmi_is_complex(c->weight->dtype) ? call_complex(x, c) : call(x, c->weight, c->bias, c);
    return batched ? out : tm_squeeze_dim(out, 0);
}

static const tm_int no_padding[1] = {0};

#define PLAIN_ARGS                                                                                                                        \
    {.weight = weight, .bias = bias, .stride = stride, .n_stride = n_stride, .padding = padding, .n_padding = n_padding,                  \
     .dilation = dilation, .n_dilation = n_dilation, .output_padding = no_padding, .n_output_padding = 1, .groups = groups}
#define TRANSPOSED_ARGS                                                                                                                   \
    {.weight = weight, .bias = bias, .stride = stride, .n_stride = n_stride, .padding = padding, .n_padding = n_padding,                  \
     .dilation = dilation, .n_dilation = n_dilation, .output_padding = output_padding, .n_output_padding = n_output_padding,              \
     .transposed = true, .groups = groups}

tm_tensor *tmi_conv1d(tm_tensor *input, tm_tensor *weight, tm_tensor *bias, const tm_int *stride, int64_t n_stride, const tm_int *padding, int64_t n_padding,
                      const tm_int *dilation, int64_t n_dilation, tm_int groups)
{
    return conv_nd(1, "conv1d", input, &(conv_args)PLAIN_ARGS);
}
tm_tensor *tmi_conv2d(tm_tensor *input, tm_tensor *weight, tm_tensor *bias, const tm_int *stride, int64_t n_stride, const tm_int *padding, int64_t n_padding,
                      const tm_int *dilation, int64_t n_dilation, tm_int groups)
{
    return conv_nd(2, "conv2d", input, &(conv_args)PLAIN_ARGS);
}
tm_tensor *tmi_conv3d(tm_tensor *input, tm_tensor *weight, tm_tensor *bias, const tm_int *stride, int64_t n_stride, const tm_int *padding, int64_t n_padding,
                      const tm_int *dilation, int64_t n_dilation, tm_int groups)
{
    return conv_nd(3, "conv3d", input, &(conv_args)PLAIN_ARGS);
}
tm_tensor *tmi_conv_transpose1d(tm_tensor *input, tm_tensor *weight, tm_tensor *bias, const tm_int *stride, int64_t n_stride, const tm_int *padding,
                                int64_t n_padding, const tm_int *output_padding, int64_t n_output_padding, tm_int groups, const tm_int *dilation,
                                int64_t n_dilation)
{
    return conv_nd(1, "conv_transpose1d", input, &(conv_args)TRANSPOSED_ARGS);
}
tm_tensor *tmi_conv_transpose2d(tm_tensor *input, tm_tensor *weight, tm_tensor *bias, const tm_int *stride, int64_t n_stride, const tm_int *padding,
                                int64_t n_padding, const tm_int *output_padding, int64_t n_output_padding, tm_int groups, const tm_int *dilation,
                                int64_t n_dilation)
{
    return conv_nd(2, "conv_transpose2d", input, &(conv_args)TRANSPOSED_ARGS);
}
tm_tensor *tmi_conv_transpose3d(tm_tensor *input, tm_tensor *weight, tm_tensor *bias, const tm_int *stride, int64_t n_stride, const tm_int *padding,
                                int64_t n_padding, const tm_int *output_padding, int64_t n_output_padding, tm_int groups, const tm_int *dilation,
                                int64_t n_dilation)
{
    return conv_nd(3, "conv_transpose3d", input, &(conv_args)TRANSPOSED_ARGS);
}

/* ---------------------------------------------------------------- padding by name */

/* "same" pads dilation * (k - 1) in all; an odd rest goes after the input. */
static tm_tensor *conv_same(int dims, const char *name, tm_tensor *input, conv_args *c)
{
    tm_int before[3], extra[6] = {0};
    bool uneven = false;
    for (int64_t i = 0; i < c->n_stride; i++)
        TMI_REQUIRE_PTR(c->stride[i] == 1, TM_INVALID, "padding='same' is not supported for strided convolutions");
    TMI_REQUIRE_PTR(c->weight->ndim == dims + 2, TM_SHAPE, "weight should have %d dimensions", dims + 2);
    for (int i = 0; i < dims; i++) {
        tm_int total = (c->n_dilation == 1 ? c->dilation[0] : c->dilation[i]) * (c->weight->sizes[i + 2] - 1);
        before[i] = total / 2;
        extra[2 * (dims - 1 - i) + 1] = total % 2;
        uneven = uneven || total % 2;
    }
    c->padding = before;
    c->n_padding = dims;
    if (uneven) input = tm_constant_pad_nd(input, extra, 2 * dims);
    return input ? conv_nd(dims, name, input, c) : NULL;
}

static tm_tensor *conv_named(int dims, const char *name, tm_tensor *input, const char *padding, conv_args *c)
{
    if (strcmp(padding, "same") == 0) return conv_same(dims, name, input, c);
    TMI_REQUIRE_PTR(strcmp(padding, "valid") == 0, TM_INVALID, "Invalid padding string: '%s'", padding);
    c->padding = no_padding;
    c->n_padding = 1;
    return conv_nd(dims, name, input, c);
}

#define NAMED_ARGS                                                                                                                        \
    {.weight = weight, .bias = bias, .stride = stride, .n_stride = n_stride, .dilation = dilation, .n_dilation = n_dilation,              \
     .output_padding = no_padding, .n_output_padding = 1, .groups = groups}

tm_tensor *tmi_conv1d_padding(tm_tensor *input, tm_tensor *weight, tm_tensor *bias, const tm_int *stride, int64_t n_stride, const char *padding,
                              const tm_int *dilation, int64_t n_dilation, tm_int groups)
{
    return conv_named(1, "conv1d", input, padding, &(conv_args)NAMED_ARGS);
}
tm_tensor *tmi_conv2d_padding(tm_tensor *input, tm_tensor *weight, tm_tensor *bias, const tm_int *stride, int64_t n_stride, const char *padding,
                              const tm_int *dilation, int64_t n_dilation, tm_int groups)
{
    return conv_named(2, "conv2d", input, padding, &(conv_args)NAMED_ARGS);
}
tm_tensor *tmi_conv3d_padding(tm_tensor *input, tm_tensor *weight, tm_tensor *bias, const tm_int *stride, int64_t n_stride, const char *padding,
                              const tm_int *dilation, int64_t n_dilation, tm_int groups)
{
    return conv_named(3, "conv3d", input, padding, &(conv_args)NAMED_ARGS);
}
