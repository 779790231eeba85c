/* Composites of the pointwise families, and gradient helpers that are no formula. */
#include <math.h>
#include <string.h>

#include "boxing.h"
#include "op_bodies.h"

static bool is_zero(tm_scalar s) { return s.tag == TM_SCALAR_C128 ? s.v.c.re == 0 && s.v.c.im == 0 : tmi_scalar_f64(s) == 0; }
static tm_scalar conj_of(tm_scalar s) { return s.tag == TM_SCALAR_C128 ? tm_c128(s.v.c.re, -s.v.c.im) : s; }

/* The conjugate of a number as a 0-d tensor that stays weak in promotion. */
tm_tensor *tmi_grad_conj_number(tm_scalar value)
{
    tm_scalar s = conj_of(value);
    return tmi_own(tmi_scalar_tensor(s, tmi_scalar_dtype(s), true));
}

/* ---------------------------------------------------------------- division */

static int rounding(const char *mode)
{
    if (!mode) return 0;
    if (strcmp(mode, "floor") == 0) return 1;
    if (strcmp(mode, "trunc") == 0) return 2;
    tmi_fail(TM_INVALID, "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'", mode);
    return -1;
}

tm_tensor *tmi_div_mode(tm_tensor *self, tm_tensor *other, const char *rounding_mode)
{
    switch (rounding(rounding_mode)) {
    case 0: return tm_div(self, other);
    case 1: return tmo_div_floor(self, other);
    case 2: return tmo_div_trunc(self, other);
    default: return NULL;
    }
}

static tm_tensor *weak(tm_scalar s) { return tmi_own(tmi_scalar_tensor(s, tmi_scalar_dtype(s), true)); }

tm_tensor *tmi_div_mode_scalar(tm_tensor *self, tm_scalar other, const char *rounding_mode) { return tmi_div_mode(self, weak(other), rounding_mode); }
tm_tensor *tmi_grad_div_floor_number(tm_scalar self, tm_tensor *other) { return tmo_div_floor(weak(self), other); }

tm_tensor *tmi_safe_div(tm_tensor *a, tm_tensor *b) { return tm_where_scalarself(tm_eq_scalar(b, tm_i64(0)), tm_f64(0), tm_div(a, b)); }

tm_tensor *tmi_addcdiv(tm_tensor *self, tm_tensor *a, tm_tensor *b, tm_scalar value)
{
    bool whole = (tmi_is_integral(a->dtype) || a->dtype == TM_BOOL) && (tmi_is_integral(b->dtype) || b->dtype == TM_BOOL);
    TMI_REQUIRE_PTR(!whole, TM_INVALID,
                    "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of tensor1 and "
                    "tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for "
                    "integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the latter "
                    "implementation: (input + value * tensor1 / tensor2), for all dtypes.");
    return tmo_addcdiv(self, a, b, value);
}

/* ---------------------------------------------------------------- powers */

tm_tensor *tmi_square(tm_tensor *self) { return tm_pow_tensor_scalar(self, tm_i64(2)); }

static tm_tensor *wide(tm_tensor *t) { return tm_to_dtype(t, tmi_is_complex(t->dtype) ? TM_C128 : TM_F64); }

tm_tensor *tmi_float_power(tm_tensor *self, tm_tensor *exponent) { return tm_pow_tensor_tensor(wide(self), wide(exponent)); }

tm_tensor *tmi_float_power_number(tm_tensor *self, tm_scalar exponent)
{
    tm_tensor *base = exponent.tag == TM_SCALAR_C128 ? tm_to_dtype(self, TM_C128) : wide(self);
    return tm_pow_tensor_scalar(base, exponent.tag == TM_SCALAR_C128 ? exponent : tm_f64(tmi_scalar_f64(exponent)));
}

tm_tensor *tmi_float_power_base(tm_scalar self, tm_tensor *exponent)
{
    return tm_pow_scalar(self.tag == TM_SCALAR_C128 ? self : tm_f64(tmi_scalar_f64(self)), self.tag == TM_SCALAR_C128 ? tm_to_dtype(exponent, TM_C128) : wide(exponent));
}

tm_tensor *tmi_grad_pow_number(tm_tensor *grad, tm_tensor *self, tm_scalar exponent)
{
    if (is_zero(exponent)) return tm_zeros_like(grad);
    if (exponent.tag == TM_SCALAR_I64 && exponent.v.i == 2) return tm_mul(grad, tm_mul_scalar(tmi_conj_for_grad(self), tm_i64(2)));
    tm_tensor *lower = tm_pow_tensor_scalar(self, tmi_scalar_sub(exponent, tm_i64(1)));
    return tm_mul(grad, tmi_conj_for_grad(tm_mul_scalar(lower, exponent)));
}

tm_tensor *tmi_grad_pow_self(tm_tensor *grad, tm_tensor *self, tm_tensor *exponent)
{
    tm_tensor *lower = tm_pow_tensor_tensor(self, tm_sub_scalar(exponent, tm_i64(1)));
    tm_tensor *slope = tm_mul(grad, tmi_conj_for_grad(tm_mul(exponent, lower)));
    return tm_where_scalarself(tm_eq_scalar(exponent, tm_i64(0)), tm_f64(0), slope);
}

tm_tensor *tmi_grad_pow_exponent(tm_tensor *grad, tm_tensor *self, tm_tensor *exponent, tm_tensor *result)
{
    tm_tensor *zero_base = tm_eq_scalar(self, tm_i64(0));
    if (exponent && !tmi_is_complex(exponent->dtype)) zero_base = tm_logical_and(zero_base, tm_ge_scalar(exponent, tm_i64(0)));
    tm_tensor *slope = tm_mul(grad, tmi_conj_for_grad(tm_mul(result, tm_log(self))));
    return tm_where_scalarself(zero_base, tm_f64(0), slope);
}

tm_tensor *tmi_grad_pow_base_number(tm_tensor *grad, tm_scalar base, tm_tensor *exponent, tm_tensor *result)
{
    tm_tensor *log_base = weak(base.tag == TM_SCALAR_C128 ? base : tm_f64(tmi_scalar_f64(base)));
    log_base = tm_log(tm_to_dtype(log_base, base.tag == TM_SCALAR_C128 ? TM_C128 : TM_F64));
    tm_tensor *slope = tm_mul(grad, tmi_conj_for_grad(tm_mul(result, log_base)));
    if (!is_zero(base)) return slope;
    tm_tensor *flat = exponent && tmi_is_complex(exponent->dtype) ? tm_ge_scalar(tm_real(exponent), tm_i64(0)) : tm_ge_scalar(exponent, tm_i64(0));
    return tm_where_scalarself(flat, tm_f64(0), slope);
}

/* ---------------------------------------------------------------- clamp */

static tm_status none_given(const char *name)
{
    return tmi_fail(TM_INVALID, "torch.%s: At least one of 'min' or 'max' must not be None", name);
}

tm_tensor *tmi_clamp(tm_tensor *self, const tm_scalar *min, const tm_scalar *max)
{
    if (!min && !max) return none_given("clamp"), NULL;
    if (!max) return tm_clamp_min(self, *min);
    if (!min) return tm_clamp_max(self, *max);
    return tmo_clamp_both(self, *min, *max);
}

tm_tensor *tmi_clamp_tensor(tm_tensor *self, tm_tensor *min, tm_tensor *max)
{
    if (!min && !max) return none_given("clamp"), NULL;
    if (!max) return tm_clamp_min_tensor(self, min);
    if (!min) return tm_clamp_max_tensor(self, max);
    return tmo_clamp_lists(self, min, max);
}

/* The type that self and the bounds share: a float bound makes integers float. */
static tm_tensor *promoted_with(tm_tensor *self, int n, const tm_scalar *s)
{
    tmi_promotion p = TMI_PROMOTION_INIT;
    tm_dtype dtype;
    TMI_TRY_PTR(tmi_promote_tensor(&p, self));
    for (int i = 0; i < n; i++) TMI_TRY_PTR(tmi_promote_scalar(&p, s[i]));
    TMI_TRY_PTR(tmi_promoted(&p, &dtype));
    TMI_REQUIRE_PTR(!tmi_is_complex(dtype), TM_NOT_IMPLEMENTED, "clamp is not supported for complex types");
    TMI_REQUIRE_PTR(dtype != TM_BOOL, TM_NOT_IMPLEMENTED, "\"clamp_scalar_cpu\" not implemented for 'Bool'");
    return tm_to_dtype(self, dtype);
}

static bool is_nan(tm_scalar s) { return s.tag == TM_SCALAR_F64 && isnan(s.v.f); }

tm_tensor *tmi_clamp_both(tm_tensor *self, tm_scalar min, tm_scalar max)
{
    tm_tensor *t = promoted_with(self, 2, (tm_scalar[]){min, max});
    if (t && (is_nan(min) || is_nan(max))) return tm_full_like(t, tm_f64(NAN));
    return tmo_clamp_numbers(t, min, max);
}

tm_tensor *tmi_clamp_min(tm_tensor *self, tm_scalar min) { return tmo_maximum_number(promoted_with(self, 1, &min), min); }
tm_tensor *tmi_clamp_max(tm_tensor *self, tm_scalar max) { return tmo_minimum_number(promoted_with(self, 1, &max), max); }

/* ---------------------------------------------------------------- the rest of arithmetic */

tm_tensor *tmi_positive(tm_tensor *self)
{
    TMI_REQUIRE_PTR(self->dtype != TM_BOOL, TM_INVALID, "The `+` operator, on a bool tensor is not supported.");
    return self;
}

tm_tensor *tmi_ldexp(tm_tensor *self, tm_tensor *other) { return tm_mul(self, tm_pow_scalar(tm_f64(2), other)); }
tm_tensor *tmi_deg2rad(tm_tensor *self) { return tm_mul_scalar(self, tm_f64(0.017453292519943295)); }
tm_tensor *tmi_rad2deg(tm_tensor *self) { return tm_mul_scalar(self, tm_f64(57.29577951308232)); }

tm_tensor *tmi_round_decimals(tm_tensor *self, tm_int decimals)
{
    if (tmi_is_integral(self->dtype)) {
        TMI_REQUIRE_PTR(decimals == 0, TM_NOT_IMPLEMENTED, "\"round_vml_cpu\" not implemented for '%s'", tmi_dtypes[self->dtype].type_name);
        return tm_clone(self);
    }
    return decimals == 0 ? tm_round(self) : tmo_round_decimals(self, decimals);
}

tm_tensor *tmi_nan_to_num(tm_tensor *self, const double *nan, const double *posinf, const double *neginf)
{
    if (tmi_is_integral(self->dtype) || self->dtype == TM_BOOL) return tm_clone(self);
    tm_dtype real = tmi_real_dtype(self->dtype);
    double most = real == TM_F64 ? 1.7976931348623157e308 : real == TM_F16 ? 65504 : real == TM_BF16 ? 3.3895313892515355e38 : 3.4028234663852886e38;
    return tmo_nan_to_num(self, nan ? *nan : 0, posinf ? *posinf : most, neginf ? *neginf : -most);
}

tm_tensor *tmi_isreal(tm_tensor *self)
{
    return tmi_is_complex(self->dtype) ? tm_eq_scalar(tm_imag(self), tm_i64(0)) : tm_ones_like_full(self, TM_BOOL, -1, TM_NO_DEVICE, NULL, TM_PRESERVE);
}

tm_tensor *tmi_grad_copysign_backward(tm_tensor *grad, tm_tensor *self, tm_tensor *result)
{
    tm_tensor *ratio = tm_div(result, self);
    return tm_mul(grad, tm_where_scalarself(tm_eq_scalar(self, tm_i64(0)), tm_f64(0), ratio));
}

/* d sgn(z): the part of the gradient at right angles to z, over its modulus; 0 for real numbers and at 0. */
tm_tensor *tmi_grad_sgn_backward(tm_tensor *grad, tm_tensor *self, tm_tensor *result)
{
    if (!self || !tmi_is_complex(self->dtype)) return tm_zeros_like(grad);
    tm_tensor *modulus = tm_abs(self), *along = tm_mul(tm_real(tm_mul(grad, tm_conj(result))), result);
    tm_tensor *across = tm_div(tm_sub(grad, along), modulus);
    return tm_where_scalarself(tm_eq_scalar(modulus, tm_i64(0)), tm_f64(0), across);
}

tm_tensor *tmi_grad_angle_backward(tm_tensor *grad, tm_tensor *self)
{
    if (!self || !tmi_is_complex(self->dtype)) return tm_zeros_like(grad);
    tm_tensor *square = tm_add(tm_square(tm_real(self)), tm_square(tm_imag(self)));
    tm_tensor *re = tm_mul(grad, tm_neg(tm_div(tm_imag(self), square))), *im = tm_mul(grad, tm_div(tm_real(self), square));
    return tm_where_scalarself(tm_eq_scalar(self, tm_i64(0)), tm_f64(0), tm_complex(re, im));
}

/* ---------------------------------------------------------------- special functions */

tm_tensor *tmi_polygamma(tm_int n, tm_tensor *self)
{
    TMI_REQUIRE_PTR(n >= 0, TM_INVALID, "polygamma(n, x) does not support negative n.");
    return n == 0 ? tm_digamma(self) : n == 1 ? tmo_trigamma(self) : tmo_polygamma(self, n);
}

tm_tensor *tmi_grad_sinc_backward(tm_tensor *grad, tm_tensor *self)
{
    tm_tensor *x = tm_mul_scalar(self, tm_f64(M_PI)), *scaled = tm_mul_scalar(x, tm_f64(1));
    tm_tensor *slope = tm_div(tm_mul_scalar(tm_sub(tm_mul(scaled, tm_cos(x)), tm_sin(x)), tm_f64(M_PI)), tm_mul(x, x));
    return tm_mul(grad, tmi_conj_for_grad(tm_where_scalarself(tm_eq_scalar(self, tm_i64(0)), tm_f64(0), slope)));
}

/* i1'(x) = i0(x) - i1(x) / x, and 1/2 at 0. */
tm_tensor *tmi_grad_i1_backward(tm_tensor *grad, tm_tensor *self, tm_tensor *result)
{
    tm_tensor *tiny = tm_le_scalar(tm_abs(self), tm_f64(self && self->dtype == TM_F64 ? 2.220446049250313e-16 : 1.1920929e-07));
    tm_tensor *safe = tm_where_scalarself(tiny, tm_f64(1), self);
    tm_tensor *slope = tm_sub(tm_i0(safe), tm_div(result, safe));
    return tm_mul(grad, tm_where_scalarself(tiny, tm_f64(0.5), slope));
}

tm_tensor *tmi_grad_i1e_backward(tm_tensor *grad, tm_tensor *self, tm_tensor *result)
{
    tm_tensor *tiny = tm_le_scalar(tm_abs(self), tm_f64(self && self->dtype == TM_F64 ? 2.220446049250313e-16 : 1.1920929e-07));
    tm_tensor *safe = tm_where_scalarself(tiny, tm_f64(1), self);
    tm_tensor *slope = tm_sub(tm_special_i0e(safe), tm_mul(result, tm_add(tm_sgn(safe), tm_reciprocal(safe))));
    return tm_mul(grad, tm_where_scalarself(tiny, tm_f64(0.5), slope));
}

tm_tensor *tmi_grad_xlogy_backward_self(tm_tensor *grad, tm_tensor *self, tm_scalar other)
{
    double y = tmi_scalar_f64(other);
    tm_tensor *slope = tm_mul_scalar(grad, tm_f64(log(y)));
    return y > 0 ? slope : tm_where_scalarself(tm_eq_scalar(self, tm_i64(0)), tm_f64(0), slope);
}

tm_tensor *tmi_xlog1py_other(tm_tensor *self, tm_scalar other) { return tm_special_xlog1py(self, weak(other)); }
tm_tensor *tmi_xlog1py_self(tm_scalar self, tm_tensor *other) { return tm_special_xlog1py(weak(self), other); }

/* The normal distribution's cumulative function, from the side where erfc does not cancel. */
tm_tensor *tmi_ndtr(tm_tensor *self) { return tm_mul_scalar(tm_erfc(tm_mul_scalar(self, tm_f64(-0.7071067811865475))), tm_f64(0.5)); }

tm_tensor *tmi_mvlgamma(tm_tensor *self, tm_int p)
{
    TMI_REQUIRE_PTR(p >= 1, TM_INVALID, "p has to be greater than or equal to 1");
    tm_tensor *sum = NULL;
    for (tm_int j = 0; j < p; j++) {
        tm_tensor *term = tm_lgamma(tm_sub_scalar(self, tm_f64((double)j / 2)));
        sum = sum ? tm_add(sum, term) : term;
    }
    return tm_add_scalar(sum, tm_f64((double)(p * (p - 1)) * log(M_PI) / 4));
}

/* ---------------------------------------------------------------- selection */

/* PyTorch names the C++ type here. */
static const char *c_name(uint8_t dtype)
{
    static const char *const names[TM_DTYPE_COUNT] = {
        [TM_BOOL] = "bool", [TM_U8] = "unsigned char", [TM_I8] = "signed char", [TM_I16] = "short int", [TM_I32] = "int", [TM_I64] = "long int",
        [TM_F32] = "float", [TM_F64] = "double", [TM_F16] = "c10::Half", [TM_BF16] = "c10::BFloat16", [TM_C64] = "c10::complex<float>",
        [TM_C128] = "c10::complex<double>"};
    return names[dtype] ? names[dtype] : tmi_dtypes[dtype].name;
}

static tm_status check_mask(const tm_tensor *mask)
{
    TMI_REQUIRE(mask->dtype == TM_BOOL, TM_INVALID, "masked_fill_ only supports boolean masks, but got mask with dtype %s", c_name(mask->dtype));
    return TM_OK;
}

tm_tensor *tmi_masked_fill(tm_tensor *self, tm_tensor *mask, tm_scalar value)
{
    TMI_TRY_PTR(check_mask(mask));
    TMI_REQUIRE_PTR(value.tag != TM_SCALAR_C128 || tmi_is_complex(self->dtype), TM_INVALID,
                    "value cannot be converted to type %s without overflow", tmi_dtypes[self->dtype].type_name);
    tm_tensor *number = tmi_own(tmi_scalar_tensor(value, self->dtype, false));
    return tm_where_self(mask, number, self);
}

tm_tensor *tmi_masked_fill_tensor(tm_tensor *self, tm_tensor *mask, tm_tensor *value)
{
    TMI_TRY_PTR(check_mask(mask));
    TMI_REQUIRE_PTR(value->ndim == 0, TM_INVALID, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).", value->ndim);
    return tm_where_self(mask, tm_to_dtype(value, self->dtype), self);
}

/* ---------------------------------------------------------------- activations */

tm_tensor *tmi_relu6(tm_tensor *self) { return tm_hardtanh_full(self, tm_i64(0), tm_i64(6)); }
tm_tensor *tmi_selu(tm_tensor *self) { return tm_elu_full(self, tm_f64(1.6732632423543772848170429916717), tm_f64(1.0507009873554804934193349852946), tm_i64(1)); }

tm_tensor *tmi_celu(tm_tensor *self, tm_scalar alpha)
{
    TMI_REQUIRE_PTR(!is_zero(alpha), TM_INVALID, "ZeroDivisionError: alpha cannot be 0 for CELU");
    return tm_elu_full(self, alpha, tm_f64(1), tm_f64(1 / tmi_scalar_f64(alpha)));
}

/* One weight, or one per channel (dim 1). */
tm_tensor *tmi_prelu(tm_tensor *self, tm_tensor *weight)
{
    TMI_REQUIRE_PTR(self->dtype == weight->dtype, TM_INVALID, "prelu: Type promoting not supported. Got %s and %s", tmi_dtypes[self->dtype].type_name,
                    tmi_dtypes[weight->dtype].type_name);
    if (weight->numel == 1) return tmo_prelu_kernel(self, tm_reshape(weight, NULL, 0));
    TMI_REQUIRE_PTR(self->ndim > 0, TM_INVALID, "Not allow zero-dim input tensor.");
    TMI_REQUIRE_PTR(weight->ndim <= 1, TM_INVALID, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = %d", weight->ndim);
    int64_t channels = self->ndim > 1 ? self->sizes[1] : 1;
    TMI_REQUIRE_PTR(weight->numel == channels, TM_INVALID, "Mismatch of parameter numbers and input channel size. Found parameter numbers = %lld and channel size = %lld.",
                    (long long)weight->numel, (long long)channels);
    tm_int sizes[TMI_MAX_DIMS];
    for (int i = 0; i < self->ndim; i++) sizes[i] = i == 1 ? channels : 1;
    return tmo_prelu_kernel(self, tm_reshape(weight, sizes, self->ndim));
}

static int gelu_kind(const char *approximate)
{
    if (strcmp(approximate, "none") == 0) return 0;
    if (strcmp(approximate, "tanh") == 0) return 1;
    tmi_fail(TM_INVALID, "approximate argument must be either none or tanh.");
    return -1;
}

tm_tensor *tmi_gelu(tm_tensor *self, const char *approximate)
{
    int kind = gelu_kind(approximate);
    return kind < 0 ? NULL : kind ? tmo_gelu_tanh(self) : tmo_gelu_erf(self);
}

tm_tensor *tmi_gelu_backward(tm_tensor *grad, tm_tensor *self, const char *approximate)
{
    int kind = gelu_kind(approximate);
    return kind < 0 ? NULL : kind ? tmo_gelu_tanh_backward(grad, self) : tmo_gelu_erf_backward(grad, self);
}

static tm_tensor *times(tm_tensor *t, double s) { return tm_mul_scalar(t, tm_f64(s)); }
static tm_tensor *plus(tm_tensor *t, double s) { return tm_add_scalar(t, tm_f64(s)); }

/* y = x/2 (1 + tanh u), u = k (x + c x^3): y'' = (1 - t^2) (u' + x/2 u'' - x t u'^2). */
tm_tensor *tmi_grad_gelu_tanh_double_backward(tm_tensor *grad, tm_tensor *grad_output, tm_tensor *self)
{
    const double k = 0.7978845608028654, c = 0.044715;
    tm_tensor *square = tm_mul(self, self);
    tm_tensor *t = tm_tanh(tm_mul(times(self, k), plus(times(square, c), 1)));
    tm_tensor *du = times(plus(times(square, 3 * c), 1), k), *half_x_ddu = times(square, 3 * k * c);
    tm_tensor *bend = tm_sub(tm_add(du, half_x_ddu), tm_mul(tm_mul(self, t), tm_mul(du, du)));
    return tm_mul(tm_mul(grad, grad_output), tm_mul(tm_rsub_scalar(tm_mul(t, t), tm_i64(1)), bend));
}

/* y' = s + x s (1 - s): y'' = s (1 - s) (2 + x (1 - 2 s)). */
tm_tensor *tmi_grad_silu_double_backward(tm_tensor *grad, tm_tensor *grad_output, tm_tensor *self)
{
    tm_tensor *s = tm_sigmoid(self), *slope = tm_mul(s, tm_rsub_scalar(s, tm_i64(1)));
    tm_tensor *bend = tm_mul(slope, plus(tm_mul(self, plus(times(s, -2), 1)), 2));
    return tm_mul(tm_mul(grad, grad_output), bend);
}

/* y = x T, T = tanh(softplus x), T' = (1 - T^2) s: y'' = 2 T' + x T'', T'' = (1 - T^2) s (1 - s) - 2 T T' s. */
tm_tensor *tmi_grad_mish_double_backward(tm_tensor *grad, tm_tensor *grad_output, tm_tensor *self)
{
    tm_tensor *s = tm_sigmoid(self), *t = tm_tanh(tm_softplus(self));
    tm_tensor *rest = tm_rsub_scalar(tm_mul(t, t), tm_i64(1)), *dt = tm_mul(rest, s);
    tm_tensor *ddt = tm_sub(tm_mul(dt, tm_rsub_scalar(s, tm_i64(1))), times(tm_mul(tm_mul(t, dt), s), 2));
    return tm_mul(tm_mul(grad, grad_output), tm_add(times(dt, 2), tm_mul(self, ddt)));
}

/* softplus'' = beta s (1 - s) below the threshold, 0 above. */
tm_tensor *tmi_grad_softplus_double_backward(tm_tensor *grad, tm_tensor *self, tm_scalar beta, tm_scalar threshold)
{
    tm_tensor *z = tm_mul_scalar(self, beta), *s = tm_sigmoid(z);
    tm_tensor *bend = tm_mul_scalar(tm_mul(s, tm_rsub_scalar(s, tm_i64(1))), beta);
    return tm_mul(grad, tm_where_scalarself(tm_gt_scalar(z, threshold), tm_f64(0), bend));
}

/* elu' for x < 0 is alpha scale input_scale e^(input_scale x), or from the result r: input_scale (r + alpha scale). */
tm_tensor *tmi_grad_elu_double_backward(tm_tensor *grad, tm_tensor *grad_output, tm_scalar alpha, tm_scalar scale, tm_scalar input_scale, bool is_result,
                                        tm_tensor *self)
{
    double a = tmi_scalar_f64(alpha), s = tmi_scalar_f64(scale), k = tmi_scalar_f64(input_scale);
    tm_tensor *both = tm_mul(grad, grad_output);
    tm_tensor *bend = is_result ? times(both, k) : tm_mul(both, times(tm_exp(times(self, k)), a * s * k * k));
    return tm_where_scalarself(tm_gt_scalar(self, tm_i64(0)), tm_f64(0), bend);
}

tm_tensor *tmi_hardtanh(tm_tensor *self, tm_scalar min_val, tm_scalar max_val)
{
    TMI_REQUIRE_PTR(self->dtype != TM_BOOL, TM_INVALID, "Bool inputs not supported for hardtanh");
    if (tmi_is_integral(self->dtype)) {
        min_val = tm_i64(tmi_scalar_i64(min_val));
        max_val = tm_i64(tmi_scalar_i64(max_val));
    }
    return tm_clamp_full(self, &min_val, &max_val);
}

tm_tensor *tmi_glu(tm_tensor *self, tm_int dim)
{
    TMI_REQUIRE_PTR(self->ndim > 0, TM_INVALID, "glu does not support 0-dimensional tensors");
    TMI_TRY_PTR(tmi_wrap_dim(&dim, self->ndim));
    tm_int size = self->sizes[dim];
    TMI_REQUIRE_PTR(size % 2 == 0, TM_INVALID, "Halving dimension must be even, but dimension %lld is size %lld", (long long)dim, (long long)size);
    return tm_mul(tm_narrow(self, dim, 0, size / 2), tm_sigmoid(tm_narrow(self, dim, size / 2, size / 2)));
}

tm_tensor *tmi_rrelu(tm_tensor *self, tm_scalar lower, tm_scalar upper, bool training, tm_generator *generator)
{
    double low = tmi_scalar_f64(lower), high = tmi_scalar_f64(upper);
    TMI_REQUIRE_PTR(low <= high, TM_INVALID, "Lower bound should be less than or equal to the upper bound");
    if (!training) return tm_leaky_relu_full(self, tm_f64((low + high) / 2));
    tm_tensor *slope = tm_uniform_inplace_full(tm_empty_like(self), low, high, generator);
    return tm_where_self(tm_le_scalar(self, tm_i64(0)), tm_mul(self, slope), self);
}
