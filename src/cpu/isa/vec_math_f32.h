/* exp, log, tanh, erf, sin, cos, sigmoid on vf32, in single precision, at most 2 ULP. Coefficients: tools/fit_math.py.
 * Functions that are used less go through double precision: vec_math_wide.h. */
#ifndef TMK_VEC_MATH_F32_H
#define TMK_VEC_MATH_F32_H

#include "vec_math_f64.h"

#define TMK_LN2A_F32 0x1.62e43p-1f
#define TMK_LN2B_F32 -0x1.05c61p-29f
#define TMK_LOG2E_F32 1.4426950408889634f
#define TMK_ROUND_F32 0x1.8p23f

TMK_INLINE vf32 v_poly_f32(vf32 x, const float *c, int n)
{
    vf32 y = v_set_f32(c[n - 1]);
    for (int i = n - 2; i >= 0; i--) y = v_fma_f32(y, x, v_set_f32(c[i]));
    return y;
}
TMK_INLINE vf32 v_pow2_f32(vi32 k) { return v_of_bits_f32((k + 127) << 23); }

/* x = k ln 2 + r; returns e^r - 1. */
TMK_INLINE vf32 v_exp_reduced_f32(vf32 x, vi32 *k)
{
    static const float c[5] = {0.5f, 0.166665763f, 0.0416665561f, 0.00836320315f, 0.00139262131f};
    vf32 t = v_fma_f32(x, v_set_f32(TMK_LOG2E_F32), v_set_f32(TMK_ROUND_F32));
    vf32 n = t - TMK_ROUND_F32;
    *k = v_bits_f32(t) - v_bits_f32(v_set_f32(TMK_ROUND_F32));
    vf32 r = v_fma_f32(n, v_set_f32(-TMK_LN2A_F32), x);
    r = v_fma_f32(n, v_set_f32(-TMK_LN2B_F32), r);
    return v_fma_f32(r * r, v_poly_f32(r, c, 5), r);
}
TMK_INLINE vf32 v_exp_f32(vf32 x)
{
    vi32 k;
    vf32 p = v_exp_reduced_f32(v_max_f32(v_set_f32(-104.5f), v_min_f32(v_set_f32(89), x)), &k);
    vi32 half = k >> 1;
    return (p + 1) * v_pow2_f32(half) * v_pow2_f32(k - half);
}
/* e^x where the result is a normal number: -87 <= x <= 88 after clamping; for softmax and the like, where less than 1e-38 is nothing. */
TMK_INLINE vf32 v_exp_normal_f32(vf32 x)
{
    vi32 k;
    vf32 p = v_exp_reduced_f32(v_max_f32(v_set_f32(-87), v_min_f32(v_set_f32(88), x)), &k);
    return v_of_bits_f32(v_bits_f32(p + 1) + (k << 23));
}
/* e^x - 1 for 0 <= x <= 60. */
TMK_INLINE vf32 v_expm1_core_f32(vf32 x)
{
    vi32 k;
    vf32 p = v_exp_reduced_f32(x, &k);
    vf32 s = v_pow2_f32(k);
    return v_fma_f32(s, p, s - 1);
}
TMK_INLINE vf32 v_tanh_f32(vf32 x)
{
    vf32 e = v_expm1_core_f32(v_min_f32(v_set_f32(10), v_abs_f32(x)) * 2);
    vf32 d = e + 2, low = e - (d - 2), i = 1 / d, y = e * i;
    y = v_fma_f32(v_fma_f32(v_neg_f32(y), d, e) - y * low, i, y);
    return v_copysign_f32(y, x);
}
/* 1 / (1 + e^-x) with the divisor rounded once: e^-x = (h + l) 2^k. */
TMK_INLINE vf32 v_sigmoid_f32(vf32 x)
{
    vi32 k;
    vf32 p = v_exp_reduced_f32(v_max_f32(v_set_f32(-104.5f), v_min_f32(v_set_f32(89), v_neg_f32(x))), &k);
    vf32 h = p + 1, l = p - (h - 1);
    vi32 half = k >> 1;
    vf32 a = v_pow2_f32(half), b = v_pow2_f32(k - half);
    return 1 / v_fma_f32(h * a, b, v_fma_f32(l * a, b, v_set_f32(1)));
}

TMK_INLINE vf32 v_log_special_f32(vf32 x, vf32 y)
{
    vi32 usual = v_gt_f32(x, v_set_f32(0)) & v_lt_f32(x, v_set_f32(INFINITY));
    if (v_all_f32(usual)) return y;
    vf32 s = v_sel_f32(v_eq_f32(x, v_set_f32(0)), v_set_f32(-INFINITY), v_sel_f32(v_lt_f32(x, v_set_f32(0)), v_set_f32(NAN), x));
    return v_sel_f32(usual, y, s);
}
TMK_INLINE vf32 v_log_f32(vf32 x)
{
    static const float c[9] = {0.333333313f, -0.24999997f, 0.200007156f, -0.166678026f, 0.142490581f,
                               -0.124256872f, 0.116854198f, -0.114797339f, 0.0697161183f};
    vi32 small = v_lt_f32(x, v_set_f32(0x1p-126f));
    vi32 bits = v_bits_f32(v_sel_f32(small, x * 0x1p25f, x));
    vi32 k = (bits - 0x3f3504f3) >> 23;
    vf32 f = v_of_bits_f32(bits - (k << 23)) - 1;
    vf32 e = v_f32_of_i32(k + (small & -25));
    vf32 z = f * f;
    vf32 low = v_fma_f32(z, v_fma_f32(f, v_poly_f32(f, c, 9), v_set_f32(-0.5f)), e * TMK_LN2B_F32);
    return v_log_special_f32(x, v_fma_f32(e, v_set_f32(TMK_LN2A_F32), f + low));
}

TMK_INLINE vf32 v_sin_core_f32(vf32 r, vf32 z)
{
    static const float c[4] = {-0.166666672f, 0.00833333191f, -0.000198400827f, 2.72493139e-06f};
    return v_fma_f32(r * z, v_poly_f32(z, c, 4), r);
}
TMK_INLINE vf32 v_cos_core_f32(vf32 z)
{
    static const float c[3] = {0.0416666642f, -0.00138883002f, 2.45474366e-05f};
    vf32 h = z * 0.5f, w = 1 - h;
    return w + v_fma_f32(z * z, v_poly_f32(z, c, 3), (1 - w) - h);
}
/* Lanes beyond 1e5 go through the double-precision function. */
TMK_INLINE vf32 v_sincos_f32(vf32 x, int shift, vf64 (*wide)(vf64))
{
    vf32 t = v_fma_f32(x, v_set_f32(0.636619772f), v_set_f32(TMK_ROUND_F32));
    vf32 n = t - TMK_ROUND_F32;
    vi32 q = v_bits_f32(t) + shift;
    vf32 r = v_fma_f32(n, v_set_f32(-0x1.921fb6p+0f), x);
    r = v_fma_f32(n, v_set_f32(0x1.777a5cp-25f), r);
    r = v_fma_f32(n, v_set_f32(0x1.ee59dap-50f), r);
    vf32 z = r * r;
    vf32 y = v_sel_f32(-(q & 1), v_cos_core_f32(z), v_sin_core_f32(r, z));
    y = v_of_bits_f32(v_bits_f32(y) ^ ((q & 2) << 30));
    vi32 usual = v_le_f32(v_abs_f32(x), v_set_f32(1e5f));
    if (v_all_f32(usual)) return y;
    return v_sel_f32(usual, y, v_wide_f32(x, wide));
}
TMK_INLINE vf32 v_sin_f32(vf32 x)
{
    vf32 y = v_sincos_f32(x, 0, v_sin_f64);
    return v_sel_f32(v_eq_f32(x, v_set_f32(0)), x, y);   /* keeps -0 */
}
TMK_INLINE vf32 v_cos_f32(vf32 x) { return v_sincos_f32(x, 1, v_cos_f64); }

TMK_INLINE vf32 v_erf_f32(vf32 x)
{
    static const float small[7] = {0.128379166f, -0.376126349f, 0.112836994f, -0.0268595926f,
                                   0.00520146685f, -0.000814720232f, 8.38759079e-05f};
    static const float large[10] = {1.84960556f, 2.63896751f, 0.843104601f, 0.0415800549f, -0.0100895865f,
                                    0.00206868886f, -0.000329687347f, 3.64155676e-05f, -2.30027354e-06f, 5.2118402e-08f};
    vf32 a = v_abs_f32(x), z = x * x;
    vf32 y = v_fma_f32(x, v_poly_f32(z, small, 7), x);
    vi32 tail = v_gt_f32(a, v_set_f32(0.921875f));
    if (!v_any_f32(tail)) return y;
    vf32 g = v_poly_f32(v_min_f32(v_set_f32(4), a) - 1, large, 10);   /* -log(erfc(a)) */
    vf32 u = 1 - v_exp_normal_f32(v_neg_f32(g));
    return v_sel_f32(tail, v_copysign_f32(u, x), y);
}

#endif
