/* The vocabulary with one lane: plain numbers. Complete, and the oracle of the others. */
#ifndef TMK_VEC_SCALAR_H
#define TMK_VEC_SCALAR_H

#define TMK_W32 1
#define TMK_W64 1

typedef float vf32;
typedef double vf64;
typedef int32_t vi32;
typedef int64_t vi64;
typedef uint32_t vu32;
typedef uint64_t vu64;

TMK_INLINE vf32 v_load_f32(const float *p) { return *p; }
TMK_INLINE vf64 v_load_f64(const double *p) { return *p; }
TMK_INLINE void v_store_f32(float *p, vf32 v) { *p = v; }
TMK_INLINE void v_store_f64(double *p, vf64 v) { *p = v; }
TMK_INLINE vi32 v_load_i32(const int32_t *p) { return *p; }
TMK_INLINE vi64 v_load_i64(const int64_t *p) { return *p; }
TMK_INLINE void v_store_i32(int32_t *p, vi32 v) { *p = v; }
TMK_INLINE void v_store_i64(int64_t *p, vi64 v) { *p = v; }
TMK_INLINE vf32 v_load_n_f32(const float *p, int n) { return n ? *p : 0; }
TMK_INLINE vf64 v_load_n_f64(const double *p, int n) { return n ? *p : 0; }
TMK_INLINE void v_store_n_f32(float *p, vf32 v, int n) { if (n) *p = v; }
TMK_INLINE void v_store_n_f64(double *p, vf64 v, int n) { if (n) *p = v; }
TMK_INLINE void v_stream_f32(float *p, vf32 v) { *p = v; }
TMK_INLINE void v_stream_f64(double *p, vf64 v) { *p = v; }
TMK_INLINE void v_stream_end(void) {}
TMK_INLINE vf32 v_set_f32(float x) { return x; }
TMK_INLINE vf64 v_set_f64(double x) { return x; }
TMK_INLINE vi32 v_set_i32(int32_t x) { return x; }
TMK_INLINE vi64 v_set_i64(int64_t x) { return x; }

TMK_INLINE vi32 v_bits_f32(vf32 v) { vi32 i; memcpy(&i, &v, 4); return i; }
TMK_INLINE vi64 v_bits_f64(vf64 v) { vi64 i; memcpy(&i, &v, 8); return i; }
TMK_INLINE vf32 v_of_bits_f32(vi32 i) { vf32 v; memcpy(&v, &i, 4); return v; }
TMK_INLINE vf64 v_of_bits_f64(vi64 i) { vf64 v; memcpy(&v, &i, 8); return v; }
TMK_INLINE vu32 v_unsigned_i32(vi32 v) { return (vu32)v; }
TMK_INLINE vu64 v_unsigned_i64(vi64 v) { return (vu64)v; }
TMK_INLINE vi32 v_signed_i32(vu32 v) { return (vi32)v; }
TMK_INLINE vi64 v_signed_i64(vu64 v) { return (vi64)v; }

TMK_INLINE vi32 v_lt_f32(vf32 a, vf32 b) { return -(a < b); }
TMK_INLINE vi32 v_le_f32(vf32 a, vf32 b) { return -(a <= b); }
TMK_INLINE vi32 v_gt_f32(vf32 a, vf32 b) { return -(a > b); }
TMK_INLINE vi32 v_ge_f32(vf32 a, vf32 b) { return -(a >= b); }
TMK_INLINE vi32 v_eq_f32(vf32 a, vf32 b) { return -(a == b); }
TMK_INLINE vi32 v_ne_f32(vf32 a, vf32 b) { return -(a != b); }
TMK_INLINE vi64 v_lt_f64(vf64 a, vf64 b) { return -(a < b); }
TMK_INLINE vi64 v_le_f64(vf64 a, vf64 b) { return -(a <= b); }
TMK_INLINE vi64 v_gt_f64(vf64 a, vf64 b) { return -(a > b); }
TMK_INLINE vi64 v_ge_f64(vf64 a, vf64 b) { return -(a >= b); }
TMK_INLINE vi64 v_eq_f64(vf64 a, vf64 b) { return -(a == b); }
TMK_INLINE vi64 v_ne_f64(vf64 a, vf64 b) { return -(a != b); }
TMK_INLINE vf32 v_sel_f32(vi32 m, vf32 a, vf32 b) { return m ? a : b; }
TMK_INLINE vf64 v_sel_f64(vi64 m, vf64 a, vf64 b) { return m ? a : b; }
TMK_INLINE bool v_any_f32(vi32 m) { return m != 0; }
TMK_INLINE bool v_any_f64(vi64 m) { return m != 0; }
TMK_INLINE bool v_all_f32(vi32 m) { return m != 0; }
TMK_INLINE bool v_all_f64(vi64 m) { return m != 0; }

TMK_INLINE vf32 v_fma_f32(vf32 a, vf32 b, vf32 c) { return fmaf(a, b, c); }
TMK_INLINE vf64 v_fma_f64(vf64 a, vf64 b, vf64 c) { return fma(a, b, c); }
TMK_INLINE vf32 v_sqrt_f32(vf32 a) { return sqrtf(a); }
TMK_INLINE vf64 v_sqrt_f64(vf64 a) { return sqrt(a); }
TMK_INLINE vf32 v_rint_f32(vf32 a) { return rintf(a); }
TMK_INLINE vf64 v_rint_f64(vf64 a) { return rint(a); }
TMK_INLINE vf32 v_floor_f32(vf32 a) { return floorf(a); }
TMK_INLINE vf64 v_floor_f64(vf64 a) { return floor(a); }
TMK_INLINE vf32 v_ceil_f32(vf32 a) { return ceilf(a); }
TMK_INLINE vf64 v_ceil_f64(vf64 a) { return ceil(a); }
TMK_INLINE vf32 v_trunc_f32(vf32 a) { return truncf(a); }
TMK_INLINE vf64 v_trunc_f64(vf64 a) { return trunc(a); }

TMK_INLINE vi32 v_i32_of_f32(vf32 v) { return (vi32)v; }
TMK_INLINE vf32 v_f32_of_i32(vi32 v) { return (vf32)v; }
TMK_INLINE vf64 v_lo_f64(vf32 v) { return v; }
TMK_INLINE vf64 v_hi_f64(vf32 v) { return v; }
TMK_INLINE vf32 v_join_f32(vf64 lo, vf64 hi) { (void)hi; return (vf32)lo; }
TMK_INLINE float v_lane_f32(vf32 v, int i) { (void)i; return v; }
TMK_INLINE double v_lane_f64(vf64 v, int i) { (void)i; return v; }
TMK_INLINE float v_sum_f32(vf32 v) { return v; }
TMK_INLINE double v_sum_f64(vf64 v) { return v; }

TMK_INLINE vi32 v_load_mask_f32(const uint8_t *p) { return -(*p != 0); }
TMK_INLINE vi64 v_load_mask_f64(const uint8_t *p) { return -(*p != 0); }
TMK_INLINE void v_store_mask_f32(uint8_t *p, vi32 m) { *p = (uint8_t)(m & 1); }
TMK_INLINE void v_store_mask_f64(uint8_t *p, vi64 m) { *p = (uint8_t)(m & 1); }

#include "vec_tail.h"

#endif
