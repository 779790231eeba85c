/* AArch64 Advanced SIMD: 4 lanes of f32, 2 of f64. */
#ifndef TMK_VEC_NEON_H
#define TMK_VEC_NEON_H

#include <arm_neon.h>

#define TMK_W32 4
#define TMK_W64 2
#include "vec_ext.h"

TMK_INLINE vf32 v_sel_f32(vi32 m, vf32 a, vf32 b) { return (vf32)vbslq_f32((uint32x4_t)m, (float32x4_t)a, (float32x4_t)b); }
TMK_INLINE vf64 v_sel_f64(vi64 m, vf64 a, vf64 b) { return (vf64)vbslq_f64((uint64x2_t)m, (float64x2_t)a, (float64x2_t)b); }
TMK_INLINE bool v_any_f32(vi32 m) { return vmaxvq_u32((uint32x4_t)m) != 0; }
TMK_INLINE bool v_any_f64(vi64 m) { return vmaxvq_u32((uint32x4_t)m) != 0; }
TMK_INLINE bool v_all_f32(vi32 m) { return vminvq_u32((uint32x4_t)m) != 0; }
TMK_INLINE bool v_all_f64(vi64 m) { return vminvq_u32((uint32x4_t)m) != 0; }

TMK_INLINE vf32 v_fma_f32(vf32 a, vf32 b, vf32 c) { return (vf32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
TMK_INLINE vf64 v_fma_f64(vf64 a, vf64 b, vf64 c) { return (vf64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b); }
TMK_INLINE vf32 v_sqrt_f32(vf32 a) { return (vf32)vsqrtq_f32((float32x4_t)a); }
TMK_INLINE vf64 v_sqrt_f64(vf64 a) { return (vf64)vsqrtq_f64((float64x2_t)a); }
TMK_INLINE vf32 v_rint_f32(vf32 a) { return (vf32)vrndnq_f32((float32x4_t)a); }
TMK_INLINE vf64 v_rint_f64(vf64 a) { return (vf64)vrndnq_f64((float64x2_t)a); }
TMK_INLINE vf32 v_floor_f32(vf32 a) { return (vf32)vrndmq_f32((float32x4_t)a); }
TMK_INLINE vf64 v_floor_f64(vf64 a) { return (vf64)vrndmq_f64((float64x2_t)a); }
TMK_INLINE vf32 v_ceil_f32(vf32 a) { return (vf32)vrndpq_f32((float32x4_t)a); }
TMK_INLINE vf64 v_ceil_f64(vf64 a) { return (vf64)vrndpq_f64((float64x2_t)a); }
TMK_INLINE vf32 v_trunc_f32(vf32 a) { return (vf32)vrndq_f32((float32x4_t)a); }
TMK_INLINE vf64 v_trunc_f64(vf64 a) { return (vf64)vrndq_f64((float64x2_t)a); }

TMK_INLINE vf64 v_lo_f64(vf32 v) { return (vf64)vcvt_f64_f32(vget_low_f32((float32x4_t)v)); }
TMK_INLINE vf64 v_hi_f64(vf32 v) { return (vf64)vcvt_high_f64_f32((float32x4_t)v); }
TMK_INLINE vf32 v_join_f32(vf64 lo, vf64 hi) { return (vf32)vcvt_high_f32_f64(vcvt_f32_f64((float64x2_t)lo), (float64x2_t)hi); }

TMK_INLINE vf32 v_load_n_f32(const float *p, int n)
{
    float t[4] = {0};
    for (int i = 0; i < n; i++) t[i] = p[i];
    return v_load_f32(t);
}
TMK_INLINE vf64 v_load_n_f64(const double *p, int n)
{
    double t[2] = {0};
    for (int i = 0; i < n; i++) t[i] = p[i];
    return v_load_f64(t);
}
TMK_INLINE void v_store_n_f32(float *p, vf32 v, int n)
{
    for (int i = 0; i < n; i++) p[i] = v[i];
}
TMK_INLINE void v_store_n_f64(double *p, vf64 v, int n)
{
    for (int i = 0; i < n; i++) p[i] = v[i];
}
TMK_INLINE void v_stream_f32(float *p, vf32 v) { v_store_f32(p, v); }
TMK_INLINE void v_stream_f64(double *p, vf64 v) { v_store_f64(p, v); }
TMK_INLINE void v_stream_end(void) {}

/* bool bytes to masks and back */
TMK_INLINE vi32 v_load_mask_f32(const uint8_t *p) { return (vi32){-(p[0] != 0), -(p[1] != 0), -(p[2] != 0), -(p[3] != 0)}; }
TMK_INLINE vi64 v_load_mask_f64(const uint8_t *p) { return (vi64){-(p[0] != 0), -(p[1] != 0)}; }
TMK_INLINE void v_store_mask_f32(uint8_t *p, vi32 m)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(m[i] & 1);
}
TMK_INLINE void v_store_mask_f64(uint8_t *p, vi64 m)
{
    for (int i = 0; i < 2; i++) p[i] = (uint8_t)(m[i] & 1);
}

#include "vec_tail.h"

#endif
