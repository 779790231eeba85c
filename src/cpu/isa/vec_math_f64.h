/* exp, log, tanh, erf, sin, cos, pow on vf64, at most 2 ULP (measured in tests/python/test_math.py). Coefficients: tools/fit_math.py. */
#ifndef TMK_VEC_MATH_F64_H
#define TMK_VEC_MATH_F64_H

#include "vectors.h"

#define TMK_LN2A_F64 0x1.62e42fefa39efp-1   /* ln 2 in two parts */
#define TMK_LN2B_F64 0x1.abc9e3b39803fp-56
#define TMK_LOG2E_F64 1.4426950408889634074
#define TMK_ROUND_F64 0x1.8p52              /* x + this - this rounds x to an integer, which then stands in the low bits of the sum */

/* c[0] + c[1] x + ... + c[n-1] x^(n-1), by Horner. */
TMK_INLINE vf64 v_poly_f64(vf64 x, const double *c, int n)
{
    vf64 y = v_set_f64(c[n - 1]);
    for (int i = n - 2; i >= 0; i--) y = v_fma_f64(y, x, v_set_f64(c[i]));
    return y;
}

/* 2^k for -1022 <= k <= 1023. */
TMK_INLINE vf64 v_pow2_f64(vi64 k) { return v_of_bits_f64((k + 1023) << 52); }

/* x = n ln 2 + r, |r| <= ln 2 / 2; returns r, n as a number, and in *k as an integer. */
TMK_INLINE vf64 v_exp_split_f64(vf64 x, vf64 *n, vi64 *k)
{
    vf64 t = v_fma_f64(x, v_set_f64(TMK_LOG2E_F64), v_set_f64(TMK_ROUND_F64));
    *n = t - TMK_ROUND_F64;
    *k = v_bits_f64(t) - v_bits_f64(v_set_f64(TMK_ROUND_F64));
    vf64 r = v_fma_f64(*n, v_set_f64(-TMK_LN2A_F64), x);
    return v_fma_f64(*n, v_set_f64(-TMK_LN2B_F64), r);
}
/* (e^r - 1 - r) / r^2 */
TMK_INLINE vf64 v_exp_poly_f64(vf64 r)
{
    static const double c[10] = {0.50000000000000011, 0.16666666666666669, 0.04166666666662399, 0.0083333333333300511,
                                 0.0013888888917281794, 0.00019841269863105968, 2.4801521190217729e-05, 2.7557268378684192e-06,
                                 2.7620138719733994e-07, 2.5100424157005067e-08};
    return v_poly_f64(r, c, 10);
}
/* y 2^n, through two factors so that denormals and the last binade come out right. */
TMK_INLINE vf64 v_scale_f64(vf64 y, vf64 n, vi64 k)
{
    vi64 half = v_bits_f64(v_fma_f64(n, v_set_f64(0.5), v_set_f64(TMK_ROUND_F64))) - v_bits_f64(v_set_f64(TMK_ROUND_F64));
    return y * v_pow2_f64(half) * v_pow2_f64(k - half);
}
TMK_INLINE vf64 v_clamp_exp_f64(vf64 x) { return v_max_f64(v_set_f64(-746), v_min_f64(v_set_f64(710), x)); }

TMK_INLINE vf64 v_exp_f64(vf64 x)
{
    vf64 n;
    vi64 k;
    vf64 r = v_exp_split_f64(v_clamp_exp_f64(x), &n, &k);
    return v_scale_f64(v_fma_f64(r * r, v_exp_poly_f64(r), r) + 1, n, k);
}

/* e^x - 1 for 0 <= x <= 60. */
TMK_INLINE vf64 v_expm1_core_f64(vf64 x)
{
    vf64 n;
    vi64 k;
    vf64 r = v_exp_split_f64(x, &n, &k), p = v_fma_f64(r * r, v_exp_poly_f64(r), r);
    vf64 s = v_pow2_f64(k);
    return v_fma_f64(s, p, s - 1);
}
/* (e^2x - 1) / (e^2x + 1), the quotient corrected for the rounding of its divisor. */
TMK_INLINE vf64 v_tanh_f64(vf64 x)
{
    vf64 e = v_expm1_core_f64(v_min_f64(v_set_f64(20), v_abs_f64(x)) * 2);
    vf64 d = e + 2, low = e - (d - 2), i = 1 / d, y = e * i;
    y = v_fma_f64(v_fma_f64(v_neg_f64(y), d, e) - y * low, i, y);
    return v_copysign_f64(y, x);
}

/* x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); x positive and finite. */
TMK_INLINE vf64 v_log_split_f64(vf64 x, vf64 *e)
{
    vi64 small = v_lt_f64(x, v_set_f64(0x1p-1022));
    x = v_sel_f64(small, x * 0x1p54, x);
    vi64 bits = v_bits_f64(x);
    /* biased by 1024 so that the shift is unsigned */
    vu64 k = v_unsigned_i64(bits - 0x3fe6a09e667f3bcd + (INT64_C(1024) << 52)) >> 52;
    vf64 m = v_of_bits_f64(bits - (v_signed_i64(k) << 52) + (INT64_C(1024) << 52));
    *e = v_of_bits_f64(v_signed_i64(k) | 0x4330000000000000) - (0x1p52 + 1024);   /* small integer to double by its bits */
    *e = *e - v_sel_f64(small, v_set_f64(54), v_set_f64(0));
    return m - 1;
}
/* The logarithm's value where x is not positive and finite. */
TMK_INLINE vf64 v_log_special_f64(vf64 x, vf64 y)
{
    vi64 usual = v_gt_f64(x, v_set_f64(0)) & v_lt_f64(x, v_set_f64(INFINITY));
    if (v_all_f64(usual)) return y;
    vf64 s = v_sel_f64(v_eq_f64(x, v_set_f64(0)), v_set_f64(-INFINITY), v_sel_f64(v_lt_f64(x, v_set_f64(0)), v_set_f64(NAN), x));
    return v_sel_f64(usual, y, s);
}
TMK_INLINE vf64 v_log_f64(vf64 x)
{
    static const double c[7] = {0.66666666666666696, 0.39999999999899505, 0.28571428625975487, 0.22222211134795081,
                                0.18182889125261723, 0.15331721600556042, 0.14616449685043406};
    vf64 e, f = v_log_split_f64(x, &e);
    vf64 s = f / (f + 2), z = s * s, h = f * f * 0.5;
    vf64 low = v_fma_f64(s, v_fma_f64(z, v_poly_f64(z, c, 7), h), e * TMK_LN2B_F64);
    return v_log_special_f64(x, v_fma_f64(e, v_set_f64(TMK_LN2A_F64), f - (h - low)));
}

/* x = q pi/2 + r; returns r and the quadrant's bits. Accurate for |x| <= 1e6. */
TMK_INLINE vf64 v_quadrant_f64(vf64 x, vi64 *q)
{
    vf64 t = v_fma_f64(x, v_set_f64(0.63661977236758134308), v_set_f64(TMK_ROUND_F64));
    vf64 n = t - TMK_ROUND_F64;
    *q = v_bits_f64(t);
    vf64 r = v_fma_f64(n, v_set_f64(-0x1.921fb54442d18p+0), x);
    r = v_fma_f64(n, v_set_f64(-0x1.1a62633145c07p-54), r);
    return v_fma_f64(n, v_set_f64(0x1.f1976b7ed8fbcp-110), r);
}
TMK_INLINE vf64 v_sin_core_f64(vf64 r, vf64 z)
{
    static const double c[6] = {-0.16666666666666666, 0.0083333333333309254, -0.00019841269836722418, 2.7557316083816358e-06,
                                -2.5051127944014188e-08, 1.5917848524808262e-10};
    return v_fma_f64(r * z, v_poly_f64(z, c, 6), r);
}
TMK_INLINE vf64 v_cos_core_f64(vf64 z)
{
    static const double c[6] = {0.041666666666666664, -0.0013888888888887382, 2.480158729874307e-05, -2.7557317260008837e-07,
                                2.0876143827993133e-09, -1.1382456778061306e-11};
    vf64 h = z * 0.5, w = 1 - h;
    return w + v_fma_f64(z * z, v_poly_f64(z, c, 6), (1 - w) - h);
}
/* Quadrant `shift` turns sine into cosine. Large, infinite and NaN lanes go through the C library, one by one. */
TMK_INLINE vf64 v_sincos_f64(vf64 x, int shift, double (*exact)(double))
{
    vi64 q;
    vf64 r = v_quadrant_f64(x, &q), z = r * r;
    q = q + shift;
    vi64 swap = -(q & 1);
    vf64 y = v_sel_f64(swap, v_cos_core_f64(z), v_sin_core_f64(r, z));
    y = v_of_bits_f64(v_bits_f64(y) ^ ((q & 2) << 62));
    vi64 usual = v_le_f64(v_abs_f64(x), v_set_f64(1e6));
    if (v_all_f64(usual)) return y;
    return v_sel_f64(usual, y, v_map_f64(x, exact));
}
TMK_INLINE vf64 v_sin_f64(vf64 x)
{
    vf64 y = v_sincos_f64(x, 0, sin);
    return v_sel_f64(v_eq_f64(x, v_set_f64(0)), x, y);   /* keeps -0 */
}
TMK_INLINE vf64 v_cos_f64(vf64 x) { return v_sincos_f64(x, 1, cos); }

/* e^(x^2) erfc(x) for x >= 1/2. */
TMK_INLINE vf64 v_erfcx_core_f64(vf64 x)
{
    static const double c[23] = {1.0740069070883398, -0.88339445316988363, 0.59022835710410193, -0.31046726190056229,
                                 0.11952776128728534, -0.026827234624690048, -0.00121241662706329, 0.0030340620049984029,
                                 -0.00054830969445825574, -0.00027677788275363708, 0.00010756151837695237, 3.0398366366444851e-05,
                                 -1.747079467491721e-05, -4.7499036800309276e-06, 2.7663973687135483e-06, 1.0002071530355368e-06,
                                 -4.1068637555846652e-07, -2.347279388786773e-07, 5.0483016717042422e-08, 5.0423451635131273e-08,
                                 -5.0275558980546634e-09, -7.0534654496338235e-09, 7.5735381662608552e-10};
    vf64 d = 1 / (x + 3);
    return v_poly_f64((x - 3) * d, c, 23) * d;
}
TMK_INLINE vf64 v_erf_f64(vf64 x)
{
    static const double small[12] = {0.12837916709551256, -0.37612638903183543, 0.11283791670945006, -0.02686617064323777,
                                     0.0052239776071164225, -0.00085483259753896918, 0.00012055294904839707, -1.4924736907419661e-05,
                                     1.6447424703317362e-06, -1.6208483801871705e-07, 1.3720064546777686e-08, -7.7958988270021425e-10};
    static const double large[17] = {1.0740069070883398, -0.88339445316988374, 0.59022835710410182, -0.31046726190054852,
                                     0.11952776128728143, -0.026827234625846776, -0.0012124166271279887, 0.0030340620489113226,
                                     -0.00054830966507626237, -0.00027677874583269653, 0.00010756039947348913, 3.0407317988562425e-05,
                                     -1.7453465026345231e-05, -4.7934354317505974e-06, 2.6434802841491924e-06, 1.043752087006054e-06,
                                     -7.3482393734895544e-08};
    vf64 a = v_abs_f64(x), z = x * x;
    vf64 y = v_fma_f64(x, v_poly_f64(z, small, 12), x);
    vi64 tail = v_ge_f64(a, v_set_f64(1));
    if (!v_any_f64(tail)) return y;
    a = v_min_f64(v_set_f64(6), a);
    vf64 d = 1 / (a + 3);
    vf64 u = v_exp_f64(-(a * a)) * (v_poly_f64((a - 3) * d, large, 17) * d);
    return v_sel_f64(tail, v_copysign_f64(1 - u, x), y);
}

/* log(x) to about 68 bits, as *low + the result, for positive finite x. */
TMK_INLINE vf64 v_log_double_f64(vf64 x, vf64 *low)
{
    static const double c[8] = {0.40000000000000002, 0.28571428571429364, 0.22222222221656232, 0.18181818335314404,
                                0.15384594970895457, 0.13334804238225345, 0.11706248540922386, 0.11723051028097753};
    const double third2 = 0x1.5555555555555p-1, third2_low = 0x1.5555555555555p-55;
    vf64 e, f = v_log_split_f64(x, &e);
    /* s = f / (2 + f) */
    vf64 d = f + 2, dl = f - (d - 2), s = f / d;
    vf64 sl = (v_fma_f64(-s, d, f) - s * dl) / d;
    /* z = s^2, c = 2/3 + z R(z), w = z c */
    vf64 z = s * s, zl = v_fma_f64(s, s, -z) + 2 * s * sl;
    vf64 t = v_fma_f64(z, v_poly_f64(z, c, 8), v_set_f64(third2_low));
    vf64 ch = t + third2, cl = (third2 - ch) + t;
    vf64 w = z * ch, wl = v_fma_f64(z, ch, -w) + v_fma_f64(z, cl, zl * ch);
    /* log(1 + f) = 2 s + s w */
    vf64 q = s * w, ql = v_fma_f64(s, w, -q) + v_fma_f64(s, wl, sl * w);
    vf64 a = 2 * s + q, al = ((2 * s - a) + q) + (2 * sl + ql);
    vf64 b = e * TMK_LN2A_F64, bl = v_fma_f64(e, v_set_f64(TMK_LN2A_F64), -b) + e * TMK_LN2B_F64;
    vf64 h = b + a;
    *low = ((b - h) + a) + (al + bl);
    return h;
}
/* What x^y is where the formula for |x|^y does not say it: signs, zeros, infinities, 1 and NaN (C17 F.10.4.4). */
TMK_INLINE vf64 v_pow_special_f64(vf64 x, vf64 y, vf64 r)
{
    vf64 zero = v_set_f64(0), one = v_set_f64(1), inf = v_set_f64(INFINITY), a = v_abs_f64(x);
    vi64 negative = v_lt_f64(x, zero), edge = v_eq_f64(a, zero) | v_eq_f64(a, inf) | v_eq_f64(v_abs_f64(y), inf);
    vi64 plain = ~(v_isnan_f64(x) | v_isnan_f64(y) | edge | negative | v_eq_f64(y, zero));
    if (v_all_f64(plain)) return r;
    vi64 whole = v_eq_f64(v_rint_f64(y), y);
    vf64 half = y * 0.5;
    vi64 odd = whole & v_ne_f64(v_rint_f64(half), half);
    /* a in {0, inf} or y infinite: 0 or inf by whether a > 1 and y > 0 agree */
    vi64 grows = ~(v_gt_f64(a, one) ^ v_gt_f64(y, zero));
    r = v_sel_f64(edge, v_sel_f64(grows, inf, zero), r);
    r = v_sel_f64(v_eq_f64(a, one) & v_eq_f64(v_abs_f64(y), inf), one, r);
    vi64 sign = v_bits_f64(x) & odd & INT64_MIN;
    r = v_of_bits_f64(v_bits_f64(r) ^ sign);
    r = v_sel_f64(negative & ~whole & ~edge, v_set_f64(NAN), r);
    r = v_sel_f64(v_isnan_f64(x) | v_isnan_f64(y), x + y, r);
    return v_sel_f64(v_eq_f64(x, one) | v_eq_f64(y, zero), one, r);
}
TMK_INLINE vf64 v_pow_f64(vf64 x, vf64 y)
{
    vf64 low, a = v_abs_f64(x);
    vf64 l = v_log_double_f64(a, &low);
    vf64 p = l * y, pl = v_fma_f64(l, y, -p) + low * y;
    vi64 huge = ~v_lt_f64(v_abs_f64(p), v_set_f64(1000));
    p = v_clamp_exp_f64(p);
    pl = v_sel_f64(huge, v_set_f64(0), pl);
    vf64 n;
    vi64 k;
    vf64 r0 = v_exp_split_f64(p, &n, &k), r = r0 + pl, rl = (r0 - r) + pl;
    vf64 h = r + 1, hl = (1 - h) + r;
    vf64 e = h + (hl + v_fma_f64(r * r, v_exp_poly_f64(r), rl));
    return v_pow_special_f64(x, y, v_scale_f64(e, n, k));
}

#endif
