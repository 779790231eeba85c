/* What the real vector sets share, written with the compilers' vector extensions. The including vec_<isa>.h has defined TMK_W32, TMK_W64
 * and then adds what needs instructions of its own: fma, sqrt, rounding, sel, tails, width changes. */
#ifndef TMK_VEC_EXT_H
#define TMK_VEC_EXT_H

typedef float vf32 __attribute__((vector_size(4 * TMK_W32)));
typedef int32_t vi32 __attribute__((vector_size(4 * TMK_W32)));
typedef uint32_t vu32 __attribute__((vector_size(4 * TMK_W32)));
typedef double vf64 __attribute__((vector_size(8 * TMK_W64)));
typedef int64_t vi64 __attribute__((vector_size(8 * TMK_W64)));
typedef uint64_t vu64 __attribute__((vector_size(8 * TMK_W64)));
typedef float vf32_any __attribute__((vector_size(4 * TMK_W32), aligned(4), may_alias));
typedef double vf64_any __attribute__((vector_size(8 * TMK_W64), aligned(8), may_alias));
typedef int32_t vi32_any __attribute__((vector_size(4 * TMK_W32), aligned(4), may_alias));
typedef int64_t vi64_any __attribute__((vector_size(8 * TMK_W64), aligned(8), may_alias));

TMK_INLINE vf32 v_load_f32(const float *p) { return *(const vf32_any *)p; }
TMK_INLINE vf64 v_load_f64(const double *p) { return *(const vf64_any *)p; }
TMK_INLINE void v_store_f32(float *p, vf32 v) { *(vf32_any *)p = v; }
TMK_INLINE void v_store_f64(double *p, vf64 v) { *(vf64_any *)p = v; }
TMK_INLINE vi32 v_load_i32(const int32_t *p) { return *(const vi32_any *)p; }
TMK_INLINE vi64 v_load_i64(const int64_t *p) { return *(const vi64_any *)p; }
TMK_INLINE void v_store_i32(int32_t *p, vi32 v) { *(vi32_any *)p = v; }
TMK_INLINE void v_store_i64(int64_t *p, vi64 v) { *(vi64_any *)p = v; }
TMK_INLINE vf32 v_set_f32(float x) { return x - (vf32){0}; }
TMK_INLINE vf64 v_set_f64(double x) { return x - (vf64){0}; }
TMK_INLINE vi32 v_set_i32(int32_t x) { return x + (vi32){0}; }
TMK_INLINE vi64 v_set_i64(int64_t x) { return x + (vi64){0}; }

TMK_INLINE vi32 v_bits_f32(vf32 v) { return (vi32)v; }
TMK_INLINE vi64 v_bits_f64(vf64 v) { return (vi64)v; }
TMK_INLINE vf32 v_of_bits_f32(vi32 v) { return (vf32)v; }
TMK_INLINE vf64 v_of_bits_f64(vi64 v) { return (vf64)v; }
TMK_INLINE vu32 v_unsigned_i32(vi32 v) { return (vu32)v; }
TMK_INLINE vu64 v_unsigned_i64(vi64 v) { return (vu64)v; }
TMK_INLINE vi32 v_signed_i32(vu32 v) { return (vi32)v; }
TMK_INLINE vi64 v_signed_i64(vu64 v) { return (vi64)v; }

TMK_INLINE vi32 v_lt_f32(vf32 a, vf32 b) { return a < b; }
TMK_INLINE vi32 v_le_f32(vf32 a, vf32 b) { return a <= b; }
TMK_INLINE vi32 v_gt_f32(vf32 a, vf32 b) { return a > b; }
TMK_INLINE vi32 v_ge_f32(vf32 a, vf32 b) { return a >= b; }
TMK_INLINE vi32 v_eq_f32(vf32 a, vf32 b) { return a == b; }
TMK_INLINE vi32 v_ne_f32(vf32 a, vf32 b) { return a != b; }
TMK_INLINE vi64 v_lt_f64(vf64 a, vf64 b) { return a < b; }
TMK_INLINE vi64 v_le_f64(vf64 a, vf64 b) { return a <= b; }
TMK_INLINE vi64 v_gt_f64(vf64 a, vf64 b) { return a > b; }
TMK_INLINE vi64 v_ge_f64(vf64 a, vf64 b) { return a >= b; }
TMK_INLINE vi64 v_eq_f64(vf64 a, vf64 b) { return a == b; }
TMK_INLINE vi64 v_ne_f64(vf64 a, vf64 b) { return a != b; }

TMK_INLINE vi32 v_i32_of_f32(vf32 v) { return __builtin_convertvector(v, vi32); }
TMK_INLINE vf32 v_f32_of_i32(vi32 v) { return __builtin_convertvector(v, vf32); }

TMK_INLINE float v_lane_f32(vf32 v, int i) { return v[i]; }
TMK_INLINE double v_lane_f64(vf64 v, int i) { return v[i]; }

/* Over the lanes, by halves. */
TMK_INLINE float v_sum_f32(vf32 v)
{
    float t[TMK_W32];
    v_store_f32(t, v);
    for (int w = TMK_W32 / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++) t[i] += t[i + w];
    return t[0];
}
TMK_INLINE double v_sum_f64(vf64 v)
{
    double t[TMK_W64];
    v_store_f64(t, v);
    for (int w = TMK_W64 / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++) t[i] += t[i + w];
    return t[0];
}

#endif
