/* Operators over lists: loops over the single operators. */
#include "base/vec.h"
#include "compose.h"

/* ---------------------------------------------------------------- loops */

typedef tm_tensor *unary_fn(tm_tensor *);
typedef tm_tensor *binary_fn(tm_tensor *, tm_tensor *);
typedef tm_tensor *number_fn(tm_tensor *, tm_scalar);

static tm_status same_lengths(int64_t a, int64_t b)
{
    TMI_REQUIRE(a == b, TM_INVALID, "Tensor lists must have the same number of tensors, got %lld and %lld", (long long)a, (long long)b);
    return TM_OK;
}
static tm_status not_empty(int64_t n)
{
    TMI_REQUIRE(n > 0, TM_INVALID, "Tensor list must have at least one tensor.");
    return TM_OK;
}
static tm_status one_number_each(int64_t n, int64_t numbers)
{
    TMI_REQUIRE(n == numbers, TM_INVALID, "Tensor list must have same number of elements as scalar list, got %lld and %lld", (long long)n, (long long)numbers);
    return TM_OK;
}

static tm_tensor_list *new_list(int64_t n) { return tmi_own_list(tmi_list_new(n)); }

/* Puts a result that the scope owns into the list. */
static bool put(tm_tensor_list *out, int64_t i, tm_tensor *t)
{
    if (!t) return false;
    tmi_retain(t);
    out->t[i] = t;
    return true;
}

static tm_tensor_list *map(tm_tensor *const *self, int64_t n, unary_fn *f)
{
    TMI_TRY_PTR(not_empty(n));
    tm_tensor_list *out = new_list(n);
    for (int64_t i = 0; out && i < n; i++)
        if (!put(out, i, f(self[i]))) return NULL;
    return out;
}
static tm_status each(tm_tensor *const *self, int64_t n, unary_fn *f)
{
    TMI_TRY(not_empty(n));
    for (int64_t i = 0; i < n; i++)
        if (!f(self[i])) return tm_error_status();
    return TM_OK;
}

static tm_tensor_list *map2(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other, binary_fn *f)
{
    TMI_TRY_PTR(not_empty(n));
    TMI_TRY_PTR(same_lengths(n, n_other));
    tm_tensor_list *out = new_list(n);
    for (int64_t i = 0; out && i < n; i++)
        if (!put(out, i, f(self[i], other[i]))) return NULL;
    return out;
}
static tm_status each2(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other, binary_fn *f)
{
    TMI_TRY(not_empty(n));
    TMI_TRY(same_lengths(n, n_other));
    for (int64_t i = 0; i < n; i++)
        if (!f(self[i], other[i])) return tm_error_status();
    return TM_OK;
}

/* step 0: one number for all, 1: one each. */
static tm_tensor_list *map_numbers(tm_tensor *const *self, int64_t n, const tm_scalar *numbers, int step, number_fn *f)
{
    TMI_TRY_PTR(not_empty(n));
    tm_tensor_list *out = new_list(n);
    for (int64_t i = 0; out && i < n; i++)
        if (!put(out, i, f(self[i], numbers[i * step]))) return NULL;
    return out;
}
static tm_status each_number(tm_tensor *const *self, int64_t n, const tm_scalar *numbers, int step, number_fn *f)
{
    TMI_TRY(not_empty(n));
    for (int64_t i = 0; i < n; i++)
        if (!f(self[i], numbers[i * step])) return tm_error_status();
    return TM_OK;
}

/* ---------------------------------------------------------------- one operand */

tm_tensor_list *tmi_foreach_abs(tm_tensor *const *self, int64_t n) { return map(self, n, tm_abs); }
tm_status tmi_foreach_abs_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_abs_inplace); }

tm_tensor_list *tmi_foreach_acos(tm_tensor *const *self, int64_t n) { return map(self, n, tm_acos); }
tm_status tmi_foreach_acos_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_acos_inplace); }

tm_tensor_list *tmi_foreach_asin(tm_tensor *const *self, int64_t n) { return map(self, n, tm_asin); }
tm_status tmi_foreach_asin_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_asin_inplace); }

tm_tensor_list *tmi_foreach_atan(tm_tensor *const *self, int64_t n) { return map(self, n, tm_atan); }
tm_status tmi_foreach_atan_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_atan_inplace); }

tm_tensor_list *tmi_foreach_ceil(tm_tensor *const *self, int64_t n) { return map(self, n, tm_ceil); }
tm_status tmi_foreach_ceil_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_ceil_inplace); }

tm_tensor_list *tmi_foreach_cos(tm_tensor *const *self, int64_t n) { return map(self, n, tm_cos); }
tm_status tmi_foreach_cos_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_cos_inplace); }

tm_tensor_list *tmi_foreach_cosh(tm_tensor *const *self, int64_t n) { return map(self, n, tm_cosh); }
tm_status tmi_foreach_cosh_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_cosh_inplace); }

tm_tensor_list *tmi_foreach_erf(tm_tensor *const *self, int64_t n) { return map(self, n, tm_erf); }
tm_status tmi_foreach_erf_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_erf_inplace); }

tm_tensor_list *tmi_foreach_erfc(tm_tensor *const *self, int64_t n) { return map(self, n, tm_erfc); }
tm_status tmi_foreach_erfc_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_erfc_inplace); }

tm_tensor_list *tmi_foreach_exp(tm_tensor *const *self, int64_t n) { return map(self, n, tm_exp); }
tm_status tmi_foreach_exp_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_exp_inplace); }

tm_tensor_list *tmi_foreach_expm1(tm_tensor *const *self, int64_t n) { return map(self, n, tm_expm1); }
tm_status tmi_foreach_expm1_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_expm1_inplace); }

tm_tensor_list *tmi_foreach_floor(tm_tensor *const *self, int64_t n) { return map(self, n, tm_floor); }
tm_status tmi_foreach_floor_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_floor_inplace); }

tm_tensor_list *tmi_foreach_frac(tm_tensor *const *self, int64_t n) { return map(self, n, tm_frac); }
tm_status tmi_foreach_frac_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_frac_inplace); }

tm_tensor_list *tmi_foreach_lgamma(tm_tensor *const *self, int64_t n) { return map(self, n, tm_lgamma); }
tm_status tmi_foreach_lgamma_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_lgamma_inplace); }

tm_tensor_list *tmi_foreach_log(tm_tensor *const *self, int64_t n) { return map(self, n, tm_log); }
tm_status tmi_foreach_log_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_log_inplace); }

tm_tensor_list *tmi_foreach_log10(tm_tensor *const *self, int64_t n) { return map(self, n, tm_log10); }
tm_status tmi_foreach_log10_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_log10_inplace); }

tm_tensor_list *tmi_foreach_log1p(tm_tensor *const *self, int64_t n) { return map(self, n, tm_log1p); }
tm_status tmi_foreach_log1p_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_log1p_inplace); }

tm_tensor_list *tmi_foreach_log2(tm_tensor *const *self, int64_t n) { return map(self, n, tm_log2); }
tm_status tmi_foreach_log2_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_log2_inplace); }

tm_tensor_list *tmi_foreach_neg(tm_tensor *const *self, int64_t n) { return map(self, n, tm_neg); }
tm_status tmi_foreach_neg_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_neg_inplace); }

tm_tensor_list *tmi_foreach_reciprocal(tm_tensor *const *self, int64_t n) { return map(self, n, tm_reciprocal); }
tm_status tmi_foreach_reciprocal_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_reciprocal_inplace); }

tm_tensor_list *tmi_foreach_round(tm_tensor *const *self, int64_t n) { return map(self, n, tm_round); }
tm_status tmi_foreach_round_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_round_inplace); }

tm_tensor_list *tmi_foreach_rsqrt(tm_tensor *const *self, int64_t n) { return map(self, n, tm_rsqrt); }
tm_status tmi_foreach_rsqrt_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_rsqrt_inplace); }

tm_tensor_list *tmi_foreach_sigmoid(tm_tensor *const *self, int64_t n) { return map(self, n, tm_sigmoid); }
tm_status tmi_foreach_sigmoid_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_sigmoid_inplace); }

tm_tensor_list *tmi_foreach_sign(tm_tensor *const *self, int64_t n) { return map(self, n, tm_sign); }
tm_status tmi_foreach_sign_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_sign_inplace); }

tm_tensor_list *tmi_foreach_sin(tm_tensor *const *self, int64_t n) { return map(self, n, tm_sin); }
tm_status tmi_foreach_sin_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_sin_inplace); }

tm_tensor_list *tmi_foreach_sinh(tm_tensor *const *self, int64_t n) { return map(self, n, tm_sinh); }
tm_status tmi_foreach_sinh_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_sinh_inplace); }

tm_tensor_list *tmi_foreach_sqrt(tm_tensor *const *self, int64_t n) { return map(self, n, tm_sqrt); }
tm_status tmi_foreach_sqrt_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_sqrt_inplace); }

tm_tensor_list *tmi_foreach_tan(tm_tensor *const *self, int64_t n) { return map(self, n, tm_tan); }
tm_status tmi_foreach_tan_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_tan_inplace); }

tm_tensor_list *tmi_foreach_tanh(tm_tensor *const *self, int64_t n) { return map(self, n, tm_tanh); }
tm_status tmi_foreach_tanh_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_tanh_inplace); }

tm_tensor_list *tmi_foreach_trunc(tm_tensor *const *self, int64_t n) { return map(self, n, tm_trunc); }
tm_status tmi_foreach_trunc_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_trunc_inplace); }

tm_status tmi_foreach_zero_(tm_tensor *const *self, int64_t n) { return each(self, n, tm_zero_inplace); }
tm_tensor_list *tmi_foreach_max(tm_tensor *const *self, int64_t n) { return map(self, n, tm_max); }
tm_tensor_list *tmi_foreach_clone(tm_tensor *const *self, int64_t n, int format)
{
    TMI_TRY_PTR(not_empty(n));
    tm_tensor_list *out = new_list(n);
    for (int64_t i = 0; out && i < n; i++)
        if (!put(out, i, tm_clone_full(self[i], format))) return NULL;
    return out;
}
tm_tensor_list *tmi_foreach_norm(tm_tensor *const *self, int64_t n, tm_scalar ord, tm_dtype dtype)
{
    TMI_TRY_PTR(not_empty(n));
    tm_tensor_list *out = new_list(n);
    for (int64_t i = 0; out && i < n; i++)
        if (!put(out, i, tm_linalg_vector_norm_full(self[i], ord, NULL, 0, false, dtype))) return NULL;
    return out;
}
tm_status tmi_foreach_copy_(tm_tensor *const *self, int64_t n, tm_tensor *const *src, int64_t n_src, bool non_blocking) { return each2(self, n, src, n_src, tm_copy_inplace); }
static tm_tensor *copy_of(tm_tensor *self, tm_tensor *src)
{
    tm_tensor *out = tm_empty_like(self);
    return out ? tm_copy_inplace(out, src) : NULL;
}
tm_tensor_list *tmi_foreach_copy(tm_tensor *const *self, int64_t n, tm_tensor *const *src, int64_t n_src, bool non_blocking) { return map2(self, n, src, n_src, copy_of); }

/* ---------------------------------------------------------------- two operands */

static tm_tensor *larger_into(tm_tensor *self, tm_tensor *other) { return tm_copy_inplace(self, tm_maximum(self, other)); }
static tm_tensor *smaller_into(tm_tensor *self, tm_tensor *other) { return tm_copy_inplace(self, tm_minimum(self, other)); }

tm_tensor_list *tmi_foreach_add_scalar(tm_tensor *const *self, int64_t n, tm_scalar x) { return map_numbers(self, n, &x, 0, tm_add_scalar); }
tm_status tmi_foreach_add_scalar_(tm_tensor *const *self, int64_t n, tm_scalar x) { return each_number(self, n, &x, 0, tm_add_scalar_inplace); }
tm_tensor_list *tmi_foreach_add_numbers(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY_PTR(one_number_each(n, n_x));
    return map_numbers(self, n, x, 1, tm_add_scalar);
}
tm_status tmi_foreach_add_numbers_(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY(one_number_each(n, n_x));
    return each_number(self, n, x, 1, tm_add_scalar_inplace);
}

tm_tensor_list *tmi_foreach_sub_scalar(tm_tensor *const *self, int64_t n, tm_scalar x) { return map_numbers(self, n, &x, 0, tm_sub_scalar); }
tm_status tmi_foreach_sub_scalar_(tm_tensor *const *self, int64_t n, tm_scalar x) { return each_number(self, n, &x, 0, tm_sub_scalar_inplace); }
tm_tensor_list *tmi_foreach_sub_numbers(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY_PTR(one_number_each(n, n_x));
    return map_numbers(self, n, x, 1, tm_sub_scalar);
}
tm_status tmi_foreach_sub_numbers_(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY(one_number_each(n, n_x));
    return each_number(self, n, x, 1, tm_sub_scalar_inplace);
}

tm_tensor_list *tmi_foreach_mul_list(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other) { return map2(self, n, other, n_other, tm_mul); }
tm_status tmi_foreach_mul_list_(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other) { return each2(self, n, other, n_other, tm_mul_inplace); }

tm_tensor_list *tmi_foreach_mul_scalar(tm_tensor *const *self, int64_t n, tm_scalar x) { return map_numbers(self, n, &x, 0, tm_mul_scalar); }
tm_status tmi_foreach_mul_scalar_(tm_tensor *const *self, int64_t n, tm_scalar x) { return each_number(self, n, &x, 0, tm_mul_scalar_inplace); }
tm_tensor_list *tmi_foreach_mul_numbers(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY_PTR(one_number_each(n, n_x));
    return map_numbers(self, n, x, 1, tm_mul_scalar);
}
tm_status tmi_foreach_mul_numbers_(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY(one_number_each(n, n_x));
    return each_number(self, n, x, 1, tm_mul_scalar_inplace);
}

tm_tensor_list *tmi_foreach_div_list(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other) { return map2(self, n, other, n_other, tm_div); }
tm_status tmi_foreach_div_list_(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other) { return each2(self, n, other, n_other, tm_div_inplace); }

tm_tensor_list *tmi_foreach_div_scalar(tm_tensor *const *self, int64_t n, tm_scalar x) { return map_numbers(self, n, &x, 0, tm_div_scalar); }
tm_status tmi_foreach_div_scalar_(tm_tensor *const *self, int64_t n, tm_scalar x) { return each_number(self, n, &x, 0, tm_div_scalar_inplace); }
tm_tensor_list *tmi_foreach_div_numbers(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY_PTR(one_number_each(n, n_x));
    return map_numbers(self, n, x, 1, tm_div_scalar);
}
tm_status tmi_foreach_div_numbers_(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY(one_number_each(n, n_x));
    return each_number(self, n, x, 1, tm_div_scalar_inplace);
}

tm_tensor_list *tmi_foreach_clamp_max_list(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other) { return map2(self, n, other, n_other, tm_clamp_max_tensor); }
tm_status tmi_foreach_clamp_max_list_(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other) { return each2(self, n, other, n_other, tm_clamp_max_tensor_inplace); }

tm_tensor_list *tmi_foreach_clamp_max_scalar(tm_tensor *const *self, int64_t n, tm_scalar x) { return map_numbers(self, n, &x, 0, tm_clamp_max); }
tm_status tmi_foreach_clamp_max_scalar_(tm_tensor *const *self, int64_t n, tm_scalar x) { return each_number(self, n, &x, 0, tm_clamp_max_inplace); }
tm_tensor_list *tmi_foreach_clamp_max_numbers(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY_PTR(one_number_each(n, n_x));
    return map_numbers(self, n, x, 1, tm_clamp_max);
}
tm_status tmi_foreach_clamp_max_numbers_(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY(one_number_each(n, n_x));
    return each_number(self, n, x, 1, tm_clamp_max_inplace);
}

tm_tensor_list *tmi_foreach_clamp_min_list(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other) { return map2(self, n, other, n_other, tm_clamp_min_tensor); }
tm_status tmi_foreach_clamp_min_list_(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other) { return each2(self, n, other, n_other, tm_clamp_min_tensor_inplace); }

tm_tensor_list *tmi_foreach_clamp_min_scalar(tm_tensor *const *self, int64_t n, tm_scalar x) { return map_numbers(self, n, &x, 0, tm_clamp_min); }
tm_status tmi_foreach_clamp_min_scalar_(tm_tensor *const *self, int64_t n, tm_scalar x) { return each_number(self, n, &x, 0, tm_clamp_min_inplace); }
tm_tensor_list *tmi_foreach_clamp_min_numbers(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY_PTR(one_number_each(n, n_x));
    return map_numbers(self, n, x, 1, tm_clamp_min);
}
tm_status tmi_foreach_clamp_min_numbers_(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY(one_number_each(n, n_x));
    return each_number(self, n, x, 1, tm_clamp_min_inplace);
}

tm_tensor_list *tmi_foreach_maximum_list(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other) { return map2(self, n, other, n_other, tm_maximum); }
tm_status tmi_foreach_maximum_list_(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other) { return each2(self, n, other, n_other, larger_into); }

tm_tensor_list *tmi_foreach_maximum_scalar(tm_tensor *const *self, int64_t n, tm_scalar x) { return map_numbers(self, n, &x, 0, tm_clamp_min); }
tm_status tmi_foreach_maximum_scalar_(tm_tensor *const *self, int64_t n, tm_scalar x) { return each_number(self, n, &x, 0, tm_clamp_min_inplace); }
tm_tensor_list *tmi_foreach_maximum_numbers(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY_PTR(one_number_each(n, n_x));
    return map_numbers(self, n, x, 1, tm_clamp_min);
}
tm_status tmi_foreach_maximum_numbers_(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY(one_number_each(n, n_x));
    return each_number(self, n, x, 1, tm_clamp_min_inplace);
}

tm_tensor_list *tmi_foreach_minimum_list(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other) { return map2(self, n, other, n_other, tm_minimum); }
tm_status tmi_foreach_minimum_list_(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other) { return each2(self, n, other, n_other, smaller_into); }

tm_tensor_list *tmi_foreach_minimum_scalar(tm_tensor *const *self, int64_t n, tm_scalar x) { return map_numbers(self, n, &x, 0, tm_clamp_max); }
tm_status tmi_foreach_minimum_scalar_(tm_tensor *const *self, int64_t n, tm_scalar x) { return each_number(self, n, &x, 0, tm_clamp_max_inplace); }
tm_tensor_list *tmi_foreach_minimum_numbers(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY_PTR(one_number_each(n, n_x));
    return map_numbers(self, n, x, 1, tm_clamp_max);
}
tm_status tmi_foreach_minimum_numbers_(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY(one_number_each(n, n_x));
    return each_number(self, n, x, 1, tm_clamp_max_inplace);
}

tm_tensor_list *tmi_foreach_pow_list(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other) { return map2(self, n, other, n_other, tm_pow_tensor_tensor); }
tm_status tmi_foreach_pow_list_(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other) { return each2(self, n, other, n_other, tm_pow_tensor_tensor_inplace); }

tm_tensor_list *tmi_foreach_pow_scalar(tm_tensor *const *self, int64_t n, tm_scalar x) { return map_numbers(self, n, &x, 0, tm_pow_tensor_scalar); }
tm_status tmi_foreach_pow_scalar_(tm_tensor *const *self, int64_t n, tm_scalar x) { return each_number(self, n, &x, 0, tm_pow_tensor_scalar_inplace); }
tm_tensor_list *tmi_foreach_pow_numbers(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY_PTR(one_number_each(n, n_x));
    return map_numbers(self, n, x, 1, tm_pow_tensor_scalar);
}
tm_status tmi_foreach_pow_numbers_(tm_tensor *const *self, int64_t n, const tm_scalar *x, int64_t n_x)
{
    TMI_TRY(one_number_each(n, n_x));
    return each_number(self, n, x, 1, tm_pow_tensor_scalar_inplace);
}

tm_tensor_list *tmi_foreach_add_list(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other, tm_scalar alpha)
{
    TMI_TRY_PTR(not_empty(n));
    TMI_TRY_PTR(same_lengths(n, n_other));
    tm_tensor_list *out = new_list(n);
    for (int64_t i = 0; out && i < n; i++)
        if (!put(out, i, tm_add_full(self[i], other[i], alpha))) return NULL;
    return out;
}
tm_status tmi_foreach_add_list_(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other, tm_scalar alpha)
{
    TMI_TRY(not_empty(n));
    TMI_TRY(same_lengths(n, n_other));
    for (int64_t i = 0; i < n; i++)
        if (!tm_add_inplace_full(self[i], other[i], alpha)) return tm_error_status();
    return TM_OK;
}

tm_tensor_list *tmi_foreach_sub_list(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other, tm_scalar alpha)
{
    TMI_TRY_PTR(not_empty(n));
    TMI_TRY_PTR(same_lengths(n, n_other));
    tm_tensor_list *out = new_list(n);
    for (int64_t i = 0; out && i < n; i++)
        if (!put(out, i, tm_sub_full(self[i], other[i], alpha))) return NULL;
    return out;
}
tm_status tmi_foreach_sub_list_(tm_tensor *const *self, int64_t n, tm_tensor *const *other, int64_t n_other, tm_scalar alpha)
{
    TMI_TRY(not_empty(n));
    TMI_TRY(same_lengths(n, n_other));
    for (int64_t i = 0; i < n; i++)
        if (!tm_sub_inplace_full(self[i], other[i], alpha)) return tm_error_status();
    return TM_OK;
}

static tm_tensor_list *map_one(tm_tensor *const *self, int64_t n, tm_tensor *other, binary_fn *f)
{
    TMI_TRY_PTR(not_empty(n));
    tm_tensor_list *out = new_list(n);
    for (int64_t i = 0; out && i < n; i++)
        if (!put(out, i, f(self[i], other))) return NULL;
    return out;
}
static tm_status each_one(tm_tensor *const *self, int64_t n, tm_tensor *other, binary_fn *f)
{
    TMI_TRY(not_empty(n));
    for (int64_t i = 0; i < n; i++)
        if (!f(self[i], other)) return tm_error_status();
    return TM_OK;
}
tm_tensor_list *tmi_foreach_add_tensor(tm_tensor *const *self, int64_t n, tm_tensor *other, tm_scalar alpha)
{
    tm_tensor *scaled = tm_mul_scalar(other, alpha);
    return scaled ? map_one(self, n, scaled, tm_add) : NULL;
}
tm_status tmi_foreach_add_tensor_(tm_tensor *const *self, int64_t n, tm_tensor *other, tm_scalar alpha)
{
    tm_tensor *scaled = tm_mul_scalar(other, alpha);
    return scaled ? each_one(self, n, scaled, tm_add_inplace) : tm_error_status();
}
tm_tensor_list *tmi_foreach_mul_tensor(tm_tensor *const *self, int64_t n, tm_tensor *other) { return map_one(self, n, other, tm_mul); }
tm_status tmi_foreach_mul_tensor_(tm_tensor *const *self, int64_t n, tm_tensor *other) { return each_one(self, n, other, tm_mul_inplace); }
tm_tensor_list *tmi_foreach_div_tensor(tm_tensor *const *self, int64_t n, tm_tensor *other) { return map_one(self, n, other, tm_div); }
tm_status tmi_foreach_div_tensor_(tm_tensor *const *self, int64_t n, tm_tensor *other) { return each_one(self, n, other, tm_div_inplace); }
tm_tensor_list *tmi_foreach_pow_of_number(tm_scalar self, tm_tensor *const *exponent, int64_t n)
{
    TMI_TRY_PTR(not_empty(n));
    tm_tensor_list *out = new_list(n);
    for (int64_t i = 0; out && i < n; i++)
        if (!put(out, i, tm_pow_scalar(self, exponent[i]))) return NULL;
    return out;
}

/* ---------------------------------------------------------------- three operands */

typedef tm_tensor *ternary_fn(tm_tensor *, tm_tensor *, tm_tensor *, tm_scalar);
typedef TMI_VEC(tm_scalar) numbers;

/* n_x -1: one number for all. */
static tm_status check_ternary(int64_t n, int64_t n_a, int64_t n_b, int64_t n_x)
{
    TMI_TRY(not_empty(n));
    TMI_TRY(same_lengths(n, n_a));
    TMI_TRY(same_lengths(n, n_b));
    return n_x < 0 ? TM_OK : one_number_each(n, n_x);
}
static tm_tensor_list *ternary(tm_tensor *const *self, int64_t n, tm_tensor *const *a, int64_t n_a, tm_tensor *const *b, int64_t n_b, const tm_scalar *x,
                               int64_t n_x, ternary_fn *f)
{
    TMI_TRY_PTR(check_ternary(n, n_a, n_b, n_x));
    tm_tensor_list *out = new_list(n);
    for (int64_t i = 0; out && i < n; i++)
        if (!put(out, i, f(self[i], a[i], b[i], x[n_x < 0 ? 0 : i]))) return NULL;
    return out;
}
static tm_status each_ternary(tm_tensor *const *self, int64_t n, tm_tensor *const *a, int64_t n_a, tm_tensor *const *b, int64_t n_b, const tm_scalar *x,
                              int64_t n_x, ternary_fn *f)
{
    TMI_TRY(check_ternary(n, n_a, n_b, n_x));
    for (int64_t i = 0; i < n; i++)
        if (!f(self[i], a[i], b[i], x[n_x < 0 ? 0 : i])) return tm_error_status();
    return TM_OK;
}
/* The elements of a vector as numbers. */
static tm_status numbers_of(numbers *v, tm_tensor *t)
{
    TMI_REQUIRE(t->ndim == 1, TM_INVALID, "Expected packed scalar Tensor to be of dimension 1. Got %d instead.", t->ndim);
    for (int64_t i = 0; i < t->sizes[0]; i++) {
        tm_scalar s;
        TMI_TRY(tm_tensor_item(tm_select_int(t, 0, i), &s));
        if (!tmi_vec_push(v, s)) return TM_NOMEM;
    }
    return TM_OK;
}

tm_tensor_list *tmi_foreach_addcmul_numbers(tm_tensor *const *self, int64_t n, tm_tensor *const *a, int64_t n_a, tm_tensor *const *b, int64_t n_b,
                                        const tm_scalar *x, int64_t n_x)
{
    return ternary(self, n, a, n_a, b, n_b, x, n_x, tm_addcmul_full);
}
tm_status tmi_foreach_addcmul_numbers_(tm_tensor *const *self, int64_t n, tm_tensor *const *a, int64_t n_a, tm_tensor *const *b, int64_t n_b, const tm_scalar *x,
                                   int64_t n_x)
{
    return each_ternary(self, n, a, n_a, b, n_b, x, n_x, tm_addcmul_inplace_full);
}
tm_tensor_list *tmi_foreach_addcmul_scalar(tm_tensor *const *self, int64_t n, tm_tensor *const *a, int64_t n_a, tm_tensor *const *b, int64_t n_b, tm_scalar x)
{
    return ternary(self, n, a, n_a, b, n_b, &x, -1, tm_addcmul_full);
}
tm_status tmi_foreach_addcmul_scalar_(tm_tensor *const *self, int64_t n, tm_tensor *const *a, int64_t n_a, tm_tensor *const *b, int64_t n_b, tm_scalar x)
{
    return each_ternary(self, n, a, n_a, b, n_b, &x, -1, tm_addcmul_inplace_full);
}
tm_tensor_list *tmi_foreach_addcmul_tensor(tm_tensor *const *self, int64_t n, tm_tensor *const *a, int64_t n_a, tm_tensor *const *b, int64_t n_b, tm_tensor *scalars)
{
    numbers v = {0};
    tm_tensor_list *out = numbers_of(&v, scalars) == TM_OK ? ternary(self, n, a, n_a, b, n_b, v.data, v.len, tm_addcmul_full) : NULL;
    tmi_vec_free(&v);
    return out;
}
tm_status tmi_foreach_addcmul_tensor_(tm_tensor *const *self, int64_t n, tm_tensor *const *a, int64_t n_a, tm_tensor *const *b, int64_t n_b, tm_tensor *scalars)
{
    numbers v = {0};
    tm_status status = numbers_of(&v, scalars);
    if (status == TM_OK) status = each_ternary(self, n, a, n_a, b, n_b, v.data, v.len, tm_addcmul_inplace_full);
    tmi_vec_free(&v);
    return status;
}

tm_tensor_list *tmi_foreach_addcdiv_numbers(tm_tensor *const *self, int64_t n, tm_tensor *const *a, int64_t n_a, tm_tensor *const *b, int64_t n_b,
                                        const tm_scalar *x, int64_t n_x)
{
    return ternary(self, n, a, n_a, b, n_b, x, n_x, tm_addcdiv_full);
}
tm_status tmi_foreach_addcdiv_numbers_(tm_tensor *const *self, int64_t n, tm_tensor *const *a, int64_t n_a, tm_tensor *const *b, int64_t n_b, const tm_scalar *x,
                                   int64_t n_x)
{
    return each_ternary(self, n, a, n_a, b, n_b, x, n_x, tm_addcdiv_inplace_full);
}
tm_tensor_list *tmi_foreach_addcdiv_scalar(tm_tensor *const *self, int64_t n, tm_tensor *const *a, int64_t n_a, tm_tensor *const *b, int64_t n_b, tm_scalar x)
{
    return ternary(self, n, a, n_a, b, n_b, &x, -1, tm_addcdiv_full);
}
tm_status tmi_foreach_addcdiv_scalar_(tm_tensor *const *self, int64_t n, tm_tensor *const *a, int64_t n_a, tm_tensor *const *b, int64_t n_b, tm_scalar x)
{
    return each_ternary(self, n, a, n_a, b, n_b, &x, -1, tm_addcdiv_inplace_full);
}
tm_tensor_list *tmi_foreach_addcdiv_tensor(tm_tensor *const *self, int64_t n, tm_tensor *const *a, int64_t n_a, tm_tensor *const *b, int64_t n_b, tm_tensor *scalars)
{
    numbers v = {0};
    tm_tensor_list *out = numbers_of(&v, scalars) == TM_OK ? ternary(self, n, a, n_a, b, n_b, v.data, v.len, tm_addcdiv_full) : NULL;
    tmi_vec_free(&v);
    return out;
}
tm_status tmi_foreach_addcdiv_tensor_(tm_tensor *const *self, int64_t n, tm_tensor *const *a, int64_t n_a, tm_tensor *const *b, int64_t n_b, tm_tensor *scalars)
{
    numbers v = {0};
    tm_status status = numbers_of(&v, scalars);
    if (status == TM_OK) status = each_ternary(self, n, a, n_a, b, n_b, v.data, v.len, tm_addcdiv_inplace_full);
    tmi_vec_free(&v);
    return status;
}

static tm_tensor_list *lerps(tm_tensor *const *self, int64_t n, tm_tensor *const *end, int64_t n_end, const tm_scalar *w, int step)
{
    TMI_TRY_PTR(not_empty(n));
    TMI_TRY_PTR(same_lengths(n, n_end));
    tm_tensor_list *out = new_list(n);
    for (int64_t i = 0; out && i < n; i++)
        if (!put(out, i, tm_lerp_scalar(self[i], end[i], w[i * step]))) return NULL;
    return out;
}
static tm_status each_lerp(tm_tensor *const *self, int64_t n, tm_tensor *const *end, int64_t n_end, const tm_scalar *w, int step)
{
    TMI_TRY(not_empty(n));
    TMI_TRY(same_lengths(n, n_end));
    for (int64_t i = 0; i < n; i++)
        if (!tm_lerp_scalar_inplace(self[i], end[i], w[i * step])) return tm_error_status();
    return TM_OK;
}
tm_tensor_list *tmi_foreach_lerp_scalar(tm_tensor *const *self, int64_t n, tm_tensor *const *end, int64_t n_end, tm_scalar w) { return lerps(self, n, end, n_end, &w, 0); }
tm_status tmi_foreach_lerp_scalar_(tm_tensor *const *self, int64_t n, tm_tensor *const *end, int64_t n_end, tm_scalar w) { return each_lerp(self, n, end, n_end, &w, 0); }
tm_tensor_list *tmi_foreach_lerp_numbers(tm_tensor *const *self, int64_t n, tm_tensor *const *end, int64_t n_end, const tm_scalar *w, int64_t n_w)
{
    TMI_TRY_PTR(one_number_each(n, n_w));
    return lerps(self, n, end, n_end, w, 1);
}
tm_status tmi_foreach_lerp_numbers_(tm_tensor *const *self, int64_t n, tm_tensor *const *end, int64_t n_end, const tm_scalar *w, int64_t n_w)
{
    TMI_TRY(one_number_each(n, n_w));
    return each_lerp(self, n, end, n_end, w, 1);
}
tm_tensor_list *tmi_foreach_lerp_list(tm_tensor *const *self, int64_t n, tm_tensor *const *end, int64_t n_end, tm_tensor *const *w, int64_t n_w)
{
    TMI_TRY_PTR(not_empty(n));
    TMI_TRY_PTR(same_lengths(n, n_end));
    TMI_TRY_PTR(same_lengths(n, n_w));
    tm_tensor_list *out = new_list(n);
    for (int64_t i = 0; out && i < n; i++)
        if (!put(out, i, tm_lerp(self[i], end[i], w[i]))) return NULL;
    return out;
}
tm_status tmi_foreach_lerp_list_(tm_tensor *const *self, int64_t n, tm_tensor *const *end, int64_t n_end, tm_tensor *const *w, int64_t n_w)
{
    TMI_TRY(not_empty(n));
    TMI_TRY(same_lengths(n, n_end));
    TMI_TRY(same_lengths(n, n_w));
    for (int64_t i = 0; i < n; i++)
        if (!tm_lerp_inplace(self[i], end[i], w[i])) return tm_error_status();
    return TM_OK;
}

/* ---------------------------------------------------------------- fused steps with the learning rate in a tensor */

static tm_status number_of(tm_tensor *t, double *out)
{
    tm_scalar s;
    TMI_TRY(tm_tensor_item(t, &s));
    *out = tmi_scalar_f64(s);
    return TM_OK;
}

tm_status tmi_fused_adam_tensor_lr(tm_tensor *const *self, int64_t n, tm_tensor *const *grads, int64_t n_grads, tm_tensor *const *m, int64_t n_m,
                                   tm_tensor *const *v, int64_t n_v, tm_tensor *const *top, int64_t n_top, tm_tensor *const *steps, int64_t n_steps, tm_tensor *lr,
                                   double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize, tm_tensor *grad_scale,
                                   tm_tensor *found_inf)
{
    double rate;
    TMI_TRY(number_of(lr, &rate));
    return tmo_fused_adam_inplace_full(self, n, grads, n_grads, m, n_m, v, n_v, top, n_top, steps, n_steps, rate, beta1, beta2, weight_decay, eps, amsgrad,
                                   maximize, grad_scale, found_inf);
}

tm_status tmi_fused_adamw_tensor_lr(tm_tensor *const *self, int64_t n, tm_tensor *const *grads, int64_t n_grads, tm_tensor *const *m, int64_t n_m,
                                   tm_tensor *const *v, int64_t n_v, tm_tensor *const *top, int64_t n_top, tm_tensor *const *steps, int64_t n_steps, tm_tensor *lr,
                                   double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize, tm_tensor *grad_scale,
                                   tm_tensor *found_inf)
{
    double rate;
    TMI_TRY(number_of(lr, &rate));
    return tmo_fused_adamw_inplace_full(self, n, grads, n_grads, m, n_m, v, n_v, top, n_top, steps, n_steps, rate, beta1, beta2, weight_decay, eps, amsgrad,
                                   maximize, grad_scale, found_inf);
}

tm_status tmi_fused_sgd_tensor_lr(tm_tensor *const *self, int64_t n, tm_tensor *const *grads, int64_t n_grads, tm_tensor *const *bufs, int64_t n_bufs,
                                  double weight_decay, double momentum, tm_tensor *lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
                                  tm_tensor *grad_scale, tm_tensor *found_inf)
{
    double rate;
    TMI_TRY(number_of(lr, &rate));
    return tmo_fused_sgd_inplace_full(self, n, grads, n_grads, bufs, n_bufs, weight_decay, momentum, rate, dampening, nesterov, maximize, is_first_step,
                                      grad_scale, found_inf);
}
