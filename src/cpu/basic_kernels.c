/* CPU kernels of copies, fills, sequences and random fills. */
#include "base/pool.h"

#include "core/random.h"
#include "op_bodies.h"
#include "pointwise.h"

tm_status tmk_empty(tm_tensor *out, const tm_int *size, int64_t n, tm_dtype dtype, int layout, tm_device device, const bool *pin, int format)
{
    (void)out, (void)size, (void)n, (void)dtype, (void)layout, (void)device, (void)pin, (void)format;
    return TM_OK;
}

tm_status tmk_empty_strided(tm_tensor *out, const tm_int *size, int64_t n, const tm_int *stride, int64_t n_stride, tm_dtype dtype, int layout,
                            tm_device device, const bool *pin)
{
    (void)out, (void)size, (void)n, (void)stride, (void)n_stride, (void)dtype, (void)layout, (void)device, (void)pin;
    return TM_OK;
}

tm_status tmk_copy_op(tm_tensor *out, tm_tensor *self, tm_tensor *src, bool non_blocking)
{
    (void)self, (void)non_blocking;
    TMI_REQUIRE(!tmi_is_meta(src), TM_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
    if (tmi_is_meta(out)) return TM_OK;
    return tmk_copy(out, src);
}

tm_status tmk_clone(tm_tensor *out, tm_tensor *self, int format)
{
    (void)format;
    return tmk_copy(out, self);
}

tm_status tmk_fill_op(tm_tensor *out, tm_tensor *self, tm_scalar value)
{
    (void)self;
    return tmk_fill(out, value);
}

tm_status tmk_fill_tensor(tm_tensor *out, tm_tensor *self, tm_tensor *value)
{
    (void)self;
    return tmk_copy(out, value);
}

tm_status tmk_zero(tm_tensor *out, tm_tensor *self)
{
    (void)self;
    return tmk_fill(out, tm_i64(0));
}

/* ---------------------------------------------------------------- filling in memory order */

/* A block of out's elements that a generator may write in one run: out's own memory where it is dense, else a temporary that is copied. */
typedef struct block {
    tm_tensor *out, *temporary;
    void *data;
} block;

static tm_status block_open(block *b, tm_tensor *out)
{
    *b = (block){out, NULL, NULL};
    if (tmi_is_non_overlapping_and_dense(out)) {
        b->data = tmi_data(out);
        return TM_OK;
    }
    b->temporary = tmi_tensor_new(out->ndim, out->sizes, NULL, out->dtype, out->device);
    if (!b->temporary) return tm_error_status();
    b->data = tmi_data(b->temporary);
    return TM_OK;
}

static tm_status block_close(block *b, tm_status status)
{
    if (!b->temporary) return status;
    if (status == TM_OK) status = tmk_copy(b->out, b->temporary);
    tmi_release(b->temporary);
    return status;
}

/* `call` writes b.data; out is the tensor to fill. */
#define FILL(out, call)                                                                                               \
    do {                                                                                                              \
        block b;                                                                                                      \
        TMI_TRY(block_open(&b, (out)));                                                                               \
        return block_close(&b, (call));                                                                               \
    } while (0)

tm_status tmk_normal(tm_tensor *out, tm_tensor *self, double mean, double std, tm_generator *g)
{
    (void)self;
    TMI_REQUIRE(std >= 0, TM_INVALID, "normal expects std >= 0.0, but found std %g", std);
    FILL(out, tmi_random_normal(g, b.data, out->numel, out->dtype, mean, std, tmi_contiguous(out)));
}

tm_status tmk_uniform(tm_tensor *out, tm_tensor *self, double from, double to, tm_generator *g)
{
    (void)self;
    FILL(out, tmi_random_uniform(g, b.data, out->numel, out->dtype, from, to));
}

tm_status tmk_random(tm_tensor *out, tm_tensor *self, tm_generator *g)
{
    (void)self;
    FILL(out, tmi_random_full(g, b.data, out->numel, out->dtype));
}

tm_status tmk_random_range(tm_tensor *out, tm_tensor *self, tm_int from, const tm_int *to, tm_generator *g)
{
    (void)self;
    FILL(out, tmi_random_range(g, b.data, out->numel, out->dtype, from, to));
}

tm_status tmk_random_below(tm_tensor *out, tm_tensor *self, tm_int to, tm_generator *g) { return tmk_random_range(out, self, 0, &to, g); }

tm_status tmk_bernoulli(tm_tensor *out, tm_tensor *self, double p, tm_generator *g)
{
    (void)self;
    FILL(out, tmi_random_bernoulli(g, b.data, out->numel, out->dtype, p));
}

tm_status tmk_exponential(tm_tensor *out, tm_tensor *self, double lambda, tm_generator *g)
{
    (void)self;
    FILL(out, tmi_random_exponential(g, b.data, out->numel, out->dtype, lambda));
}

tm_status tmk_geometric(tm_tensor *out, tm_tensor *self, double p, tm_generator *g)
{
    (void)self;
    FILL(out, tmi_random_geometric(g, b.data, out->numel, out->dtype, p));
}

tm_status tmk_log_normal(tm_tensor *out, tm_tensor *self, double mean, double std, tm_generator *g)
{
    (void)self;
    FILL(out, tmi_random_log_normal(g, b.data, out->numel, out->dtype, mean, std));
}

tm_status tmk_cauchy(tm_tensor *out, tm_tensor *self, double median, double sigma, tm_generator *g)
{
    (void)self;
    FILL(out, tmi_random_cauchy(g, b.data, out->numel, out->dtype, median, sigma));
}

tm_status tmk_randperm(tm_tensor *out, tm_tensor *self, tm_generator *g)
{
    (void)self;
    FILL(out, tmi_random_permutation(g, b.data, out->numel, out->dtype));
}

/* The probabilities in out's memory order. */
tm_status tmk_bernoulli_each(tm_tensor *out, tm_tensor *self, tm_tensor *p, tm_generator *g)
{
    (void)self;
    TMI_REQUIRE(tmi_is_float(p->dtype), TM_INVALID, "expected probabilities tensor to have floating type, got %s", tmi_dtypes[p->dtype].type_name);
    tm_dtype wide = p->dtype == TM_F64 ? TM_F64 : TM_F32;
    bool dense = tmi_is_non_overlapping_and_dense(out);
    tm_tensor *each = tmi_tensor_new(out->ndim, out->sizes, dense ? out->strides : NULL, wide, out->device);
    if (!each) return tm_error_status();
    block b = {0};
    tm_status status = tmk_copy(each, p);
    if (status == TM_OK) status = block_open(&b, out);
    if (status == TM_OK) status = block_close(&b, tmi_random_bernoulli_each(g, b.data, out->numel, out->dtype, tmi_data(each), wide));
    tmi_release(each);
    return status;
}

tm_status tmk_multinomial(tm_tensor *out, tm_tensor *self, tm_int num_samples, bool replacement, tm_generator *g)
{
    tm_tensor *weights = tmi_tensor_new(self->ndim, self->sizes, NULL, self->dtype, self->device);
    if (!weights) return tm_error_status();
    block b = {0};
    int64_t categories = self->sizes[self->ndim - 1], rows = self->ndim == 2 ? self->sizes[0] : 1;
    tm_status status = tmk_copy(weights, self);
    if (status == TM_OK) status = block_open(&b, out);
    if (status == TM_OK)
        status = block_close(&b, tmi_random_multinomial(g, tmi_data(weights), rows, categories, self->dtype, num_samples, replacement, b.data));
    tmi_release(weights);
    return status;
}

/* ---------------------------------------------------------------- sequences */

typedef struct sequence {
    char *data;
    tm_dtype dtype;
    tm_scalar start, step;
    double from, by;       /* floating */
    int64_t n;
} sequence;

static bool integer_steps(const sequence *s)
{
    return (tmi_is_integral(s->dtype) || s->dtype == TM_BOOL) && s->start.tag != TM_SCALAR_F64 && s->step.tag != TM_SCALAR_F64;
}

static void arange_range(void *ctx, int64_t begin, int64_t end)
{
    const sequence *s = ctx;
    size_t item = tmi_dtype_size(s->dtype);
    uint64_t start = (uint64_t)tmi_scalar_i64(s->start), step = (uint64_t)tmi_scalar_i64(s->step);
    bool integer = integer_steps(s);
    for (int64_t i = begin; i < end; i++) {
        if (s->dtype == TM_I64 && integer)
            ((int64_t *)(void *)s->data)[i] = (int64_t)(start + (uint64_t)i * step);
        else if (s->dtype == TM_F32)
            ((float *)(void *)s->data)[i] = (float)(s->from + (double)i * s->by);
        else
            tmi_store_scalar(s->data + (size_t)i * item, s->dtype, integer ? tm_i64((int64_t)(start + (uint64_t)i * step)) : tm_f64(s->from + (double)i * s->by));
    }
}

tm_status tmk_arange(tm_tensor *out, tm_tensor *self, tm_scalar start, tm_scalar step)
{
    (void)self;
    block b;
    TMI_TRY(block_open(&b, out));
    sequence s = {b.data, out->dtype, start, step, tmi_scalar_f64(start), tmi_scalar_f64(step), out->numel};
    tmi_parallel_for(out->numel, tmi_grain((int64_t)tmi_dtype_size(out->dtype)), arange_range, &s);
    return block_close(&b, TM_OK);
}

/* Counted from the nearer end, so that both ends are exact, as PyTorch does. */
static void linspace_range(void *ctx, int64_t begin, int64_t end)
{
    const sequence *s = ctx;
    size_t item = tmi_dtype_size(s->dtype);
    double to = tmi_scalar_f64(s->step);
    float from32 = (float)s->from, to32 = (float)to, by32 = (to32 - from32) / (float)(s->n - 1);
    for (int64_t i = begin; i < end; i++) {
        bool low = i < s->n / 2;
        double back = (double)(s->n - 1 - i), value = low ? s->from + s->by * (double)i : to - s->by * back;
        if (s->dtype == TM_F32 && s->n > 1) value = low ? __builtin_fmaf(by32, (float)i, from32) : __builtin_fmaf(-by32, (float)back, to32);
        tmi_store_scalar(s->data + (size_t)i * item, s->dtype, tm_f64(s->n == 1 ? s->from : value));
    }
}

tm_status tmk_linspace(tm_tensor *out, tm_tensor *self, tm_scalar start, tm_scalar end)
{
    (void)self;
    block b;
    TMI_TRY(block_open(&b, out));
    if (tmi_is_integral(out->dtype)) {   /* whole ends, fractional steps */
        start = tm_i64(tmi_scalar_i64(start));
        end = tm_i64(tmi_scalar_i64(end));
    }
    double from = tmi_scalar_f64(start), to = tmi_scalar_f64(end), by = out->numel > 1 ? (to - from) / (double)(out->numel - 1) : 0;
    sequence s = {b.data, out->dtype, start, end, from, by, out->numel};
    tmi_parallel_for(out->numel, tmi_grain((int64_t)tmi_dtype_size(out->dtype)), linspace_range, &s);
    return block_close(&b, TM_OK);
}
