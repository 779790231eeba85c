/* Pointwise kernels in f32. */
#include "cpu/isa/vec_math_wide.h"
#include "cpu/special.h"
#include "kernel_tables.h"

#define S float
#define V vf32
#define M vi32
#define W TMK_W32
#define F(x) v_##x##_f32

/* A function of f64, element by element. */
TMK_INLINE V m_each(V x, double (*f)(double))
{
    float t[W];
    v_store_f32(t, x);
    for (int i = 0; i < W; i++) t[i] = (float)f(t[i]);
    return v_load_f32(t);
}
TMK_INLINE V m_each2(V x, V y, double (*f)(double, double))
{
    float t[W], u[W];
    v_store_f32(t, x);
    v_store_f32(u, y);
    for (int i = 0; i < W; i++) t[i] = (float)f(t[i], u[i]);
    return v_load_f32(t);
}
TMK_INLINE V m_exp(V x) { return v_exp_f32(x); }
TMK_INLINE V m_exp2(V x) { return v_wide_f32(x, w_exp2_f64); }
TMK_INLINE V m_expm1(V x) { return v_wide_f32(x, w_expm1_f64); }
TMK_INLINE V m_log(V x) { return v_log_f32(x); }
TMK_INLINE V m_log2(V x) { return v_wide_f32(x, w_log2_f64); }
TMK_INLINE V m_log10(V x) { return v_wide_f32(x, w_log10_f64); }
TMK_INLINE V m_log1p(V x) { return v_wide_f32(x, w_log1p_f64); }
TMK_INLINE V m_sin(V x) { return v_sin_f32(x); }
TMK_INLINE V m_cos(V x) { return v_cos_f32(x); }
TMK_INLINE V m_tan(V x) { return v_wide_f32(x, w_tan_f64); }
TMK_INLINE V m_asin(V x) { return v_wide_f32(x, w_asin_f64); }
TMK_INLINE V m_acos(V x) { return v_wide_f32(x, w_acos_f64); }
TMK_INLINE V m_atan(V x) { return v_wide_f32(x, w_atan_f64); }
TMK_INLINE V m_sinh(V x) { return v_wide_f32(x, w_sinh_f64); }
TMK_INLINE V m_cosh(V x) { return v_wide_f32(x, w_cosh_f64); }
TMK_INLINE V m_tanh(V x) { return v_tanh_f32(x); }
TMK_INLINE V m_asinh(V x) { return v_wide_f32(x, w_asinh_f64); }
TMK_INLINE V m_acosh(V x) { return v_wide_f32(x, w_acosh_f64); }
TMK_INLINE V m_atanh(V x) { return v_wide_f32(x, w_atanh_f64); }
TMK_INLINE V m_sigmoid(V x) { return v_sigmoid_f32(x); }
TMK_INLINE V m_erf(V x) { return v_erf_f32(x); }
TMK_INLINE V m_erfc(V x) { return v_wide_f32(x, w_erfc_f64); }
TMK_INLINE V m_pow(V x, V y) { return v_wide2_f32(x, y, w_pow_f64); }
TMK_INLINE V m_atan2(V y, V x) { return v_wide2_f32(y, x, w_atan2_f64); }
TMK_INLINE V m_nextafter(V x, V y)
{
    float t[W], u[W];
    v_store_f32(t, x);
    v_store_f32(u, y);
    for (int i = 0; i < W; i++) t[i] = nextafterf(t[i], u[i]);
    return v_load_f32(t);
}
TMK_INLINE vf64 hypot_wide(vf64 x, vf64 y)
{
    vf64 r = v_sqrt_f64(x * x + y * y), inf = v_set_f64(INFINITY);
    return v_sel_f64(v_eq_f64(v_abs_f64(x), inf) | v_eq_f64(v_abs_f64(y), inf), inf, r);
}
TMK_INLINE V m_hypot(V x, V y) { return v_wide2_f32(x, y, hypot_wide); }
/* x - trunc(x / y) y, exactly: in double the quotient is off by one at most while it is below 2^52; beyond, lane by lane. */
TMK_INLINE vf64 fmod_wide(vf64 x, vf64 y)
{
    vf64 a = v_abs_f64(x), b = v_abs_f64(y), zero = v_set_f64(0), q = a / b;
    vf64 r = v_fma_f64(v_neg_f64(v_trunc_f64(q)), b, a);
    r = v_sel_f64(v_lt_f64(r, zero), r + b, r);
    r = v_sel_f64(v_ge_f64(r, b), r - b, r);
    r = v_copysign_f64(r, x);
    vi64 usual = v_lt_f64(q, v_set_f64(0x1p52)) & v_lt_f64(b, v_set_f64(INFINITY));
    if (v_all_f64(usual)) return r;
    return v_sel_f64(usual, r, v_map2_f64(x, y, fmod));
}
TMK_INLINE V m_fmod(V x, V y) { return v_wide2_f32(x, y, fmod_wide); }

#include "loops_float.tmpl.h"
#include "ops_float.tmpl.h"

#define COLUMN(F, I, U, B, C) F
#define LOOP(form) loop_##form
#define OPERATOR(name) op_##name
#define TMK_KERNEL(name) TMK_NAME(name##_f32)
#define KERNEL_TABLE TMK_NAME(loops_f32)
#include "table.tmpl.h"
