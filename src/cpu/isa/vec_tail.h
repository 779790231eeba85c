/* The end of every vocabulary: what follows from the rest by plain formulas, on vectors and on single numbers alike. */
#ifndef TMK_VEC_TAIL_H
#define TMK_VEC_TAIL_H

TMK_INLINE vi32 v_isnan_f32(vf32 a) { return v_ne_f32(a, a); }
TMK_INLINE vi64 v_isnan_f64(vf64 a) { return v_ne_f64(a, a); }
TMK_INLINE vf32 v_abs_f32(vf32 a) { return v_of_bits_f32(v_bits_f32(a) & INT32_MAX); }
TMK_INLINE vf64 v_abs_f64(vf64 a) { return v_of_bits_f64(v_bits_f64(a) & INT64_MAX); }
TMK_INLINE vf32 v_neg_f32(vf32 a) { return v_of_bits_f32(v_bits_f32(a) ^ INT32_MIN); }
TMK_INLINE vf64 v_neg_f64(vf64 a) { return v_of_bits_f64(v_bits_f64(a) ^ INT64_MIN); }
TMK_INLINE vf32 v_copysign_f32(vf32 a, vf32 s)
{
    return v_of_bits_f32((v_bits_f32(a) & INT32_MAX) | (v_bits_f32(s) & INT32_MIN));
}
TMK_INLINE vf64 v_copysign_f64(vf64 a, vf64 s)
{
    return v_of_bits_f64((v_bits_f64(a) & INT64_MAX) | (v_bits_f64(s) & INT64_MIN));
}
#ifndef TMK_HAVE_MINMAX
TMK_INLINE vf32 v_max_f32(vf32 a, vf32 b) { return v_sel_f32(v_gt_f32(a, b), a, b); }
TMK_INLINE vf64 v_max_f64(vf64 a, vf64 b) { return v_sel_f64(v_gt_f64(a, b), a, b); }
TMK_INLINE vf32 v_min_f32(vf32 a, vf32 b) { return v_sel_f32(v_lt_f32(a, b), a, b); }
TMK_INLINE vf64 v_min_f64(vf64 a, vf64 b) { return v_sel_f64(v_lt_f64(a, b), a, b); }
#endif
TMK_INLINE float v_hmax_f32(vf32 v)
{
    float m = v_lane_f32(v, 0);
    for (int i = 1; i < TMK_W32; i++) m = v_lane_f32(v, i) > m ? v_lane_f32(v, i) : m;
    return m;
}
TMK_INLINE float v_hmin_f32(vf32 v)
{
    float m = v_lane_f32(v, 0);
    for (int i = 1; i < TMK_W32; i++) m = v_lane_f32(v, i) < m ? v_lane_f32(v, i) : m;
    return m;
}
TMK_INLINE double v_hmax_f64(vf64 v)
{
    double m = v_lane_f64(v, 0);
    for (int i = 1; i < TMK_W64; i++) m = v_lane_f64(v, i) > m ? v_lane_f64(v, i) : m;
    return m;
}
TMK_INLINE double v_hmin_f64(vf64 v)
{
    double m = v_lane_f64(v, 0);
    for (int i = 1; i < TMK_W64; i++) m = v_lane_f64(v, i) < m ? v_lane_f64(v, i) : m;
    return m;
}
/* A function of one number, lane by lane: for what has no vector form. */
TMK_INLINE vf64 v_map_f64(vf64 x, double (*f)(double))
{
    double t[TMK_W64];
    v_store_f64(t, x);
    for (int i = 0; i < TMK_W64; i++) t[i] = f(t[i]);
    return v_load_f64(t);
}
TMK_INLINE vf64 v_map2_f64(vf64 x, vf64 y, double (*f)(double, double))
{
    double t[TMK_W64], u[TMK_W64];
    v_store_f64(t, x);
    v_store_f64(u, y);
    for (int i = 0; i < TMK_W64; i++) t[i] = f(t[i], u[i]);
    return v_load_f64(t);
}
/* A function on vf64 applied to a vf32, in double precision, rounded at the end. */
TMK_INLINE vf32 v_wide_f32(vf32 x, vf64 (*f)(vf64))
{
#if TMK_W32 == 1
    return v_join_f32(f(v_lo_f64(x)), 0);
#else
    return v_join_f32(f(v_lo_f64(x)), f(v_hi_f64(x)));
#endif
}
TMK_INLINE vf32 v_wide2_f32(vf32 x, vf32 y, vf64 (*f)(vf64, vf64))
{
#if TMK_W32 == 1
    return v_join_f32(f(v_lo_f64(x), v_lo_f64(y)), 0);
#else
    return v_join_f32(f(v_lo_f64(x), v_lo_f64(y)), f(v_hi_f64(x), v_hi_f64(y)));
#endif
}

#endif
