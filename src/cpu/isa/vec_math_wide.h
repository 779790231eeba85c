/* Functions of f32 computed in double precision: each returns about 33 good bits on any f32 argument widened to f64, so that the rounded
 * result is nearly always the correctly rounded one. Not accurate enough to be f64 results. */
#ifndef TMK_VEC_MATH_WIDE_H
#define TMK_VEC_MATH_WIDE_H

#include "vec_math_f32.h"

#define TMK_SEL v_sel_f64
#define TMK_K(x) v_set_f64(x)

/* e^x; x of any size. */
TMK_INLINE vf64 w_exp_f64(vf64 x)
{
    static const double c[6] = {0.50000000134981781, 0.16666666681659179, 0.04166646460202654, 0.0083333108895820764,
                                0.0013933685862617174, 0.00019891030654370327};
    x = v_max_f64(TMK_K(-200), v_min_f64(TMK_K(200), x));
    vf64 t = v_fma_f64(x, TMK_K(TMK_LOG2E_F64), TMK_K(TMK_ROUND_F64));
    vi64 k = v_bits_f64(t) - v_bits_f64(TMK_K(TMK_ROUND_F64));
    vf64 r = v_fma_f64(t - TMK_ROUND_F64, TMK_K(-TMK_LN2A_F64), x);
    return v_fma_f64(r * r, v_poly_f64(r, c, 6), r + 1) * v_pow2_f64(k);
}
/* log(x) for positive normal x. */
TMK_INLINE vf64 w_log_core_f64(vf64 x)
{
    static const double c[5] = {0.66666666667375085, 0.39999998797337588, 0.2857175453591449, 0.22191400830308503, 0.19362653714202008};
    vi64 bits = v_bits_f64(x);
    vu64 k = v_unsigned_i64(bits - 0x3fe6a09e667f3bcd + (INT64_C(1024) << 52)) >> 52;
    vf64 f = v_of_bits_f64(bits - (v_signed_i64(k) << 52) + (INT64_C(1024) << 52)) - 1;
    vf64 e = v_of_bits_f64(v_signed_i64(k) | 0x4330000000000000) - (0x1p52 + 1024);
    vf64 s = f / (f + 2), z = s * s;
    return v_fma_f64(e, TMK_K(TMK_LN2A_F64), v_fma_f64(s * z, v_poly_f64(z, c, 5), s * 2));
}
TMK_INLINE vf64 w_log_f64(vf64 x) { return v_log_special_f64(x, w_log_core_f64(x)); }
TMK_INLINE vf64 w_log2_f64(vf64 x) { return v_log_special_f64(x, w_log_core_f64(x) * TMK_LOG2E_F64); }
TMK_INLINE vf64 w_log10_f64(vf64 x) { return v_log_special_f64(x, w_log_core_f64(x) * 0.43429448190325182765); }
TMK_INLINE vf64 w_log1p_f64(vf64 x)
{
    vf64 u = x + 1;
    vf64 y = v_log_special_f64(u, w_log_core_f64(u));
    vi64 tiny = v_lt_f64(v_abs_f64(x), TMK_K(1e-4));
    return TMK_SEL(tiny, x * v_fma_f64(x, v_fma_f64(x, TMK_K(1.0 / 3), TMK_K(-0.5)), TMK_K(1)), y);
}
TMK_INLINE vf64 w_exp2_f64(vf64 x) { return w_exp_f64(x * 0.6931471805599453); }
TMK_INLINE vf64 w_expm1_f64(vf64 x)
{
    vf64 series = x * v_fma_f64(x, v_fma_f64(x, v_fma_f64(x, TMK_K(1.0 / 24), TMK_K(1.0 / 6)), TMK_K(0.5)), TMK_K(1));
    return TMK_SEL(v_lt_f64(v_abs_f64(x), TMK_K(1e-2)), series, w_exp_f64(x) - 1);
}
TMK_INLINE vf64 w_sinh_f64(vf64 x)
{
    vf64 e = w_exp_f64(x), z = x * x;
    vf64 series = x * v_fma_f64(z, v_fma_f64(z, TMK_K(1.0 / 120), TMK_K(1.0 / 6)), TMK_K(1));
    return TMK_SEL(v_lt_f64(v_abs_f64(x), TMK_K(0.03)), series, (e - 1 / e) * 0.5);
}
TMK_INLINE vf64 w_cosh_f64(vf64 x)
{
    vf64 e = w_exp_f64(x);
    return (e + 1 / e) * 0.5;
}
TMK_INLINE vf64 w_tan_f64(vf64 x)
{
    vi64 q;
    vf64 r = v_quadrant_f64(x, &q), z = r * r;
    vf64 s = v_sin_core_f64(r, z), c = v_cos_core_f64(z);
    vi64 swap = -(q & 1);
    vf64 y = TMK_SEL(swap, v_neg_f64(c), s) / TMK_SEL(swap, s, c);
    y = TMK_SEL(v_eq_f64(x, TMK_K(0)), x, y);
    vi64 usual = v_le_f64(v_abs_f64(x), TMK_K(1e6));
    if (v_all_f64(usual)) return y;
    return TMK_SEL(usual, y, v_map_f64(x, tan));
}
/* atan(a) for a >= 0, infinity included. */
TMK_INLINE vf64 w_atan_core_f64(vf64 a)
{
    static const double c[6] = {-0.33333333279254801, 0.19999977258688387, -0.14284151193628614,
                                0.11071365021884794, -0.086246761452494936, 0.050481385120797445};
    vi64 big = v_gt_f64(a, TMK_K(2.41421356237309505)), middle = v_gt_f64(a, TMK_K(0.41421356237309505));
    vf64 numerator = TMK_SEL(big, TMK_K(-1), TMK_SEL(middle, a - 1, a));
    vf64 denominator = TMK_SEL(big, a, TMK_SEL(middle, a + 1, TMK_K(1)));
    vf64 base = TMK_SEL(big, TMK_K(1.57079632679489662), TMK_SEL(middle, TMK_K(0.785398163397448310), TMK_K(0)));
    vf64 t = numerator / denominator, z = t * t;
    return base + v_fma_f64(t * z, v_poly_f64(z, c, 6), t);
}
TMK_INLINE vf64 w_atan_f64(vf64 x) { return v_copysign_f64(w_atan_core_f64(v_abs_f64(x)), x); }
TMK_INLINE vf64 w_atan2_f64(vf64 y, vf64 x)
{
    vf64 ay = v_abs_f64(y), ax = v_abs_f64(x);
    vi64 same = v_eq_f64(ay, ax), zero = v_eq_f64(ay, TMK_K(0));
    vf64 ratio = TMK_SEL(zero, TMK_K(0), TMK_SEL(same, TMK_K(1), ay / ax));   /* 0/0 and inf/inf have their own values */
    vf64 a = w_atan_core_f64(ratio);
    vi64 left = v_bits_f64(v_copysign_f64(TMK_K(1), x)) & INT64_MIN;
    a = TMK_SEL(v_ne_f64(v_of_bits_f64(left | v_bits_f64(TMK_K(1))), TMK_K(1)), 3.14159265358979324 - a, a);
    a = v_copysign_f64(a, y);
    return TMK_SEL(v_isnan_f64(x) | v_isnan_f64(y), x + y, a);
}
/* asin(sqrt(z)) / sqrt(z) - 1 for z <= 1/4. */
TMK_INLINE vf64 w_asin_series_f64(vf64 z)
{
    static const double c[8] = {0.16666666665495086, 0.075000005988290486, 0.044642358484883196, 0.030397634130580702,
                                0.022132443623426794, 0.019306260869368045, 0.0054431851027481075, 0.02930523970533579};
    return z * v_poly_f64(z, c, 8);
}
TMK_INLINE vf64 w_asin_f64(vf64 x)
{
    vf64 a = v_abs_f64(x);
    vi64 large = v_gt_f64(a, TMK_K(0.5));
    vf64 z = TMK_SEL(large, (1 - a) * 0.5, a * a), r = TMK_SEL(large, v_sqrt_f64(z), a);
    vf64 y = v_fma_f64(r, w_asin_series_f64(z), r);
    return v_copysign_f64(TMK_SEL(large, v_fma_f64(y, TMK_K(-2), TMK_K(1.57079632679489662)), y), x);
}
TMK_INLINE vf64 w_acos_f64(vf64 x)
{
    vf64 a = v_abs_f64(x);
    vi64 large = v_gt_f64(a, TMK_K(0.5)), left = v_lt_f64(x, TMK_K(0));
    vf64 z = TMK_SEL(large, (1 - a) * 0.5, a * a), r = TMK_SEL(large, v_sqrt_f64(z), x);
    vf64 y = v_fma_f64(r, w_asin_series_f64(z), r);
    vf64 outer = TMK_SEL(left, v_fma_f64(y, TMK_K(-2), TMK_K(3.14159265358979324)), y * 2);
    return TMK_SEL(large, outer, 1.57079632679489662 - y);
}
TMK_INLINE vf64 w_asinh_f64(vf64 x)
{
    vf64 a = v_abs_f64(x), z = a * a;
    vf64 y = w_log1p_f64(a + z / (v_sqrt_f64(z + 1) + 1));
    y = TMK_SEL(v_eq_f64(a, TMK_K(INFINITY)), a, y);
    return v_copysign_f64(y, x);
}
TMK_INLINE vf64 w_acosh_f64(vf64 x)
{
    vf64 t = x - 1;
    vf64 y = w_log1p_f64(t + v_sqrt_f64(t * (x + 1)));
    return TMK_SEL(v_lt_f64(x, TMK_K(1)), TMK_K(NAN), y);
}
TMK_INLINE vf64 w_atanh_f64(vf64 x)
{
    vf64 a = v_abs_f64(x);
    return v_copysign_f64(w_log1p_f64(2 * a / (1 - a)) * 0.5, x);
}
TMK_INLINE vf64 w_pow_f64(vf64 x, vf64 y)
{
    return v_pow_special_f64(x, y, w_exp_f64(w_log_core_f64(v_abs_f64(x)) * y));
}
/* e^(x^2) erfc(x), and erfc(x). */
TMK_INLINE vf64 w_erfc_f64(vf64 x)
{
    vf64 a = v_min_f64(TMK_K(28), v_abs_f64(x));
    vf64 t = v_erfcx_core_f64(v_max_f64(TMK_K(0.5), a)) * w_exp_f64(-(a * a));
    t = TMK_SEL(v_lt_f64(x, TMK_K(0)), 2 - t, t);
    return TMK_SEL(v_lt_f64(a, TMK_K(0.5)), 1 - v_erf_f64(x), t);
}
TMK_INLINE vf64 w_sigmoid_f64(vf64 x) { return 1 / (w_exp_f64(-x) + 1); }

#undef TMK_SEL
#undef TMK_K

#endif
