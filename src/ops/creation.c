/* Factories: empty memory, then filled. A factory's sizes are checked by its shape rule before anything is allocated. */
#include <math.h>

#include "boxing.h"
#include "op_bodies.h"
#include "shapes.h"

/* ---------------------------------------------------------------- options */

static tm_status check_layout(int layout)
{
    TMI_REQUIRE(layout <= TM_STRIDED, TM_NOT_IMPLEMENTED, "only the strided layout is supported here");
    return TM_OK;
}

static tm_status set_options(tmi_meta *m, tm_dtype dtype, int layout, tm_device device)
{
    TMI_TRY(check_layout(layout));
    m->dtype = (uint8_t)(dtype == TM_DTYPE_DEFAULT ? tm_get_default_dtype() : dtype);
    m->device = device.type == TM_DEVICE_DEFAULT ? (tm_device){TM_CPU, -1} : device;
    return TM_OK;
}

/* Dense strides with the channels (dim 1) innermost. */
static void channels_last(tmi_meta *m)
{
    tm_int step = m->sizes[1];
    m->strides[1] = 1;
    for (int i = m->ndim - 1; i >= 2; i--) {
        m->strides[i] = step;
        step *= m->sizes[i];
    }
    m->strides[0] = step;
    m->contiguous = false;
}

static tm_status set_format(tmi_meta *m, int format)
{
    if (format == TM_CHANNELS_LAST || format == TM_CHANNELS_LAST_3D) {
        int want = format == TM_CHANNELS_LAST ? 4 : 5;
        TMI_REQUIRE(m->ndim == want, TM_INVALID, "required rank %d tensor to use %s format", want, want == 4 ? "channels_last" : "channels_last_3d");
        channels_last(m);
    }
    return TM_OK;
}

tm_status tmi_shape_empty_memory_format(tmi_meta *m, const tm_int *size, int64_t n, tm_dtype dtype, int layout, tm_device device, const bool *pin, int format)
{
    (void)pin;
    int64_t numel;
    TMI_TRY(set_options(m, dtype, layout, device));
    TMI_REQUIRE(format != TM_PRESERVE, TM_INVALID, "memory_format torch.preserve_format is not supported for empty");
    TMI_TRY(tmi_check_sizes((int)n, size, m->dtype, &numel));
    TMI_TRY(tmi_shape_sizes(m, size, n));
    return set_format(m, format);
}

tm_status tmi_shape_empty_strided(tmi_meta *m, const tm_int *size, int64_t n, const tm_int *stride, int64_t n_stride, tm_dtype dtype, int layout,
                                  tm_device device, const bool *pin)
{
    (void)pin;
    int64_t numel;
    TMI_TRY(set_options(m, dtype, layout, device));
    TMI_REQUIRE(n == n_stride, TM_INVALID, "dimensionality of sizes (%lld) must match dimensionality of strides (%lld)", (long long)n, (long long)n_stride);
    TMI_TRY(tmi_check_sizes((int)n, size, m->dtype, &numel));
    TMI_TRY(tmi_shape_sizes(m, size, n));
    for (int64_t i = 0; i < n; i++) {
        TMI_REQUIRE(stride[i] >= 0, TM_INVALID, "as_strided: Negative strides are not supported at the moment, got strides: stride %lld", (long long)stride[i]);
        m->strides[i] = stride[i];
    }
    m->contiguous = false;
    return TM_OK;
}

/* ---------------------------------------------------------------- like */

/* Options of a *_like or new_* call: what is absent comes from self. */
static tm_dtype like_dtype(const tm_tensor *self, tm_dtype dtype) { return dtype == TM_DTYPE_DEFAULT ? (tm_dtype)self->dtype : dtype; }
static tm_device like_device(const tm_tensor *self, tm_device device) { return device.type == TM_DEVICE_DEFAULT ? self->device : device; }

tm_tensor *tmi_empty_like(tm_tensor *self, tm_dtype dtype, int layout, tm_device device, const bool *pin, int format)
{
    dtype = like_dtype(self, dtype);
    device = like_device(self, device);
    bool preserve = format < 0 || format == TM_PRESERVE;
    if (!preserve || tmi_contiguous(self))
        return tm_empty_memory_format_full(self->sizes, self->ndim, dtype, layout, device, pin, preserve ? TM_CONTIGUOUS : format);
    tmi_meta m = {.contiguous = true};
    TMI_TRY_PTR(tmi_shape_same(&m, self));
    if (m.contiguous) return tm_empty_memory_format_full(self->sizes, self->ndim, dtype, layout, device, pin, TM_CONTIGUOUS);
    return tm_empty_strided_full(self->sizes, self->ndim, m.strides, m.ndim, dtype, layout, device, pin);
}

tm_tensor *tmi_new_empty(tm_tensor *self, const tm_int *size, int64_t n, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tm_empty_memory_format_full(size, n, like_dtype(self, dtype), layout, like_device(self, device), pin, -1);
}

tm_tensor *tmi_new_empty_strided(tm_tensor *self, const tm_int *size, int64_t n, const tm_int *stride, int64_t n_stride, tm_dtype dtype, int layout,
                                 tm_device device, const bool *pin)
{
    return tm_empty_strided_full(size, n, stride, n_stride, like_dtype(self, dtype), layout, like_device(self, device), pin);
}

tm_tensor *tmi_zeros_like(tm_tensor *self, tm_dtype dtype, int layout, tm_device device, const bool *pin, int format)
{
    return tm_zero_inplace(tm_empty_like_full(self, dtype, layout, device, pin, format));
}

tm_tensor *tmi_ones_like(tm_tensor *self, tm_dtype dtype, int layout, tm_device device, const bool *pin, int format)
{
    return tm_fill_scalar_inplace(tm_empty_like_full(self, dtype, layout, device, pin, format), tm_i64(1));
}

tm_tensor *tmi_full_like(tm_tensor *self, tm_scalar value, tm_dtype dtype, int layout, tm_device device, const bool *pin, int format)
{
    return tm_fill_scalar_inplace(tm_empty_like_full(self, dtype, layout, device, pin, format), value);
}

tm_tensor *tmi_new_zeros(tm_tensor *self, const tm_int *size, int64_t n, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tm_zero_inplace(tmi_new_empty(self, size, n, dtype, layout, device, pin));
}

tm_tensor *tmi_new_ones(tm_tensor *self, const tm_int *size, int64_t n, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tm_fill_scalar_inplace(tmi_new_empty(self, size, n, dtype, layout, device, pin), tm_i64(1));
}

tm_tensor *tmi_new_full(tm_tensor *self, const tm_int *size, int64_t n, tm_scalar value, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tm_fill_scalar_inplace(tmi_new_empty(self, size, n, dtype, layout, device, pin), value);
}

/* ---------------------------------------------------------------- filled */

tm_tensor *tmi_zeros(const tm_int *size, int64_t n, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tm_zero_inplace(tm_empty_memory_format_full(size, n, dtype, layout, device, pin, -1));
}

tm_tensor *tmi_ones(const tm_int *size, int64_t n, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tm_fill_scalar_inplace(tm_empty_memory_format_full(size, n, dtype, layout, device, pin, -1), tm_i64(1));
}

static tm_dtype number_dtype(tm_scalar s, tm_dtype dtype) { return dtype == TM_DTYPE_DEFAULT ? tmi_scalar_dtype(s) : dtype; }

tm_tensor *tmi_full(const tm_int *size, int64_t n, tm_scalar value, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tm_fill_scalar_inplace(tm_empty_memory_format_full(size, n, number_dtype(value, dtype), layout, device, pin, -1), value);
}

tm_tensor *tmi_scalar_tensor_of(tm_scalar s, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tm_fill_scalar_inplace(tm_empty_memory_format_full(NULL, 0, dtype, layout, device, pin, -1), s);
}

/* ---------------------------------------------------------------- sequences */

static bool is_floating(tm_scalar s) { return s.tag == TM_SCALAR_F64; }

static tm_tensor *sequence(tm_scalar start, tm_scalar step, int64_t n, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tmo_arange_inplace(tm_empty_memory_format_full(&n, 1, dtype, layout, device, pin, -1), start, step);
}

static tm_status check_step(double start, double end, double step)
{
    TMI_REQUIRE(step != 0, TM_INVALID, "step must be nonzero");
    TMI_REQUIRE(isfinite(start) && isfinite(end), TM_INVALID, "unsupported range: %g -> %g", start, end);
    TMI_REQUIRE(step > 0 ? end >= start : end <= start, TM_INVALID, "upper bound and lower bound inconsistent with step sign");
    return TM_OK;
}

static int64_t steps_between(tm_scalar start, tm_scalar end, tm_scalar step)
{
    if (is_floating(start) || is_floating(end) || is_floating(step))
        return (int64_t)ceil((tmi_scalar_f64(end) - tmi_scalar_f64(start)) / tmi_scalar_f64(step));
    int64_t from = tmi_scalar_i64(start), to = tmi_scalar_i64(end), by = tmi_scalar_i64(step);
    uint64_t distance = by > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to, size = by > 0 ? (uint64_t)by : -(uint64_t)by;
    return (int64_t)((distance + size - 1) / size);
}

tm_tensor *tmi_arange_step(tm_scalar start, tm_scalar end, tm_scalar step, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    TMI_TRY_PTR(check_step(tmi_scalar_f64(start), tmi_scalar_f64(end), tmi_scalar_f64(step)));
    bool floating = is_floating(start) || is_floating(end) || is_floating(step);
    if (dtype == TM_DTYPE_DEFAULT) dtype = floating ? tm_get_default_dtype() : TM_I64;
    if (floating && tmi_is_integral(dtype)) {   /* PyTorch converts the bounds first */
        start = tm_i64(tmi_scalar_i64(start));
        end = tm_i64(tmi_scalar_i64(end));
        step = tm_i64(tmi_scalar_i64(step));
        TMI_TRY_PTR(check_step(tmi_scalar_f64(start), tmi_scalar_f64(end), tmi_scalar_f64(step)));
    }
    return sequence(start, step, steps_between(start, end, step), dtype, layout, device, pin);
}

tm_tensor *tmi_arange(tm_scalar end, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tmi_arange_step(tm_i64(0), end, tm_i64(1), dtype, layout, device, pin);
}

tm_tensor *tmi_arange_from(tm_scalar start, tm_scalar end, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tmi_arange_step(start, end, tm_i64(1), dtype, layout, device, pin);
}

/* The old closed range: end is included. */
tm_tensor *tmi_range(tm_scalar start, tm_scalar end, tm_scalar step, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    TMI_TRY_PTR(check_step(tmi_scalar_f64(start), tmi_scalar_f64(end), tmi_scalar_f64(step)));
    int64_t n = (int64_t)((tmi_scalar_f64(end) - tmi_scalar_f64(start)) / tmi_scalar_f64(step)) + 1;
    return sequence(start, step, n, dtype == TM_DTYPE_DEFAULT ? tm_get_default_dtype() : dtype, layout, device, pin);
}

tm_tensor *tmi_linspace(tm_scalar start, tm_scalar end, tm_int steps, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    TMI_REQUIRE_PTR(steps >= 0, TM_INVALID, "number of steps must be non-negative");
    if (dtype == TM_DTYPE_DEFAULT && (start.tag == TM_SCALAR_C128 || end.tag == TM_SCALAR_C128)) dtype = tmi_complex_dtype(tm_get_default_dtype());
    return tmo_linspace_inplace(tm_empty_memory_format_full(&steps, 1, dtype, layout, device, pin, -1), start, end);
}

tm_tensor *tmi_logspace(tm_scalar start, tm_scalar end, tm_int steps, double base, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    TMI_REQUIRE_PTR(steps >= 0, TM_INVALID, "number of steps must be non-negative");
    tm_dtype want = dtype == TM_DTYPE_DEFAULT ? tm_get_default_dtype() : dtype;
    tm_tensor *exponents = tmo_linspace_inplace(tm_empty_memory_format_full(&steps, 1, TM_F64, layout, device, pin, -1), start, end);
    return tm_to_dtype(tm_pow_scalar(tm_f64(base), exponents), want);
}

tm_tensor *tmi_eye_m(tm_int n, tm_int m, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    TMI_REQUIRE_PTR(n >= 0, TM_INVALID, "n must be greater or equal to 0, got %lld", (long long)n);
    TMI_REQUIRE_PTR(m >= 0, TM_INVALID, "m must be greater or equal to 0, got %lld", (long long)m);
    tm_tensor *t = tmi_zeros((tm_int[]){n, m}, 2, dtype, layout, device, pin);
    return tm_fill_scalar_inplace(tm_diagonal(t), tm_i64(1)) ? t : NULL;
}

tm_tensor *tmi_eye(tm_int n, tm_dtype dtype, int layout, tm_device device, const bool *pin) { return tmi_eye_m(n, n, dtype, layout, device, pin); }

/* ---------------------------------------------------------------- complex */

tm_tensor *tmi_complex(tm_tensor *real, tm_tensor *imag)
{
    TMI_REQUIRE_PTR((real->dtype == TM_F32 || real->dtype == TM_F64) && (imag->dtype == TM_F32 || imag->dtype == TM_F64), TM_INVALID,
                    "Expected both inputs to be Half, Float or Double tensors but got %s and %s", tmi_dtypes[real->dtype].type_name,
                    tmi_dtypes[imag->dtype].type_name);
    TMI_REQUIRE_PTR(real->dtype == imag->dtype, TM_INVALID, "Expected object of scalar type %s but got scalar type %s for second argument",
                    tmi_dtypes[real->dtype].type_name, tmi_dtypes[imag->dtype].type_name);
    tm_int sizes[TMI_MAX_DIMS];
    int ndim;
    TMI_TRY_PTR(tmi_broadcast_sizes(real->ndim, real->sizes, imag->ndim, imag->sizes, &ndim, sizes));
    tm_tensor *pair[2] = {tm_expand(real, sizes, ndim), tm_expand(imag, sizes, ndim)};
    return tm_view_as_complex(tm_stack_full(pair, 2, -1));
}

tm_tensor *tmi_polar(tm_tensor *length, tm_tensor *angle) { return tm_complex(tm_mul(length, tm_cos(angle)), tm_mul(length, tm_sin(angle))); }
