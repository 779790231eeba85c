/* AVX-512 F, BW, DQ, VL: 16 lanes of f32, 8 of f64. Masks stay vectors, so that kernels read as on the other sets; the compiler turns
 * compare-and-select pairs into mask registers. */
#ifndef TMK_VEC_AVX512_H
#define TMK_VEC_AVX512_H

#include <immintrin.h>

#define TMK_W32 16
#define TMK_W64 8
#include "vec_ext.h"

TMK_INLINE vf32 v_sel_f32(vi32 m, vf32 a, vf32 b) { return _mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)m), b, a); }
TMK_INLINE vf64 v_sel_f64(vi64 m, vf64 a, vf64 b) { return _mm512_mask_blend_pd(_mm512_movepi64_mask((__m512i)m), b, a); }
TMK_INLINE bool v_any_f32(vi32 m) { return _mm512_movepi32_mask((__m512i)m) != 0; }
TMK_INLINE bool v_any_f64(vi64 m) { return _mm512_movepi64_mask((__m512i)m) != 0; }
TMK_INLINE bool v_all_f32(vi32 m) { return _mm512_movepi32_mask((__m512i)m) == 0xffff; }
TMK_INLINE bool v_all_f64(vi64 m) { return _mm512_movepi64_mask((__m512i)m) == 0xff; }

TMK_INLINE vf32 v_fma_f32(vf32 a, vf32 b, vf32 c) { return _mm512_fmadd_ps(a, b, c); }
TMK_INLINE vf64 v_fma_f64(vf64 a, vf64 b, vf64 c) { return _mm512_fmadd_pd(a, b, c); }
TMK_INLINE vf32 v_sqrt_f32(vf32 a) { return _mm512_sqrt_ps(a); }
TMK_INLINE vf64 v_sqrt_f64(vf64 a) { return _mm512_sqrt_pd(a); }
TMK_INLINE vf32 v_rint_f32(vf32 a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
TMK_INLINE vf64 v_rint_f64(vf64 a) { return _mm512_roundscale_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
TMK_INLINE vf32 v_floor_f32(vf32 a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
TMK_INLINE vf64 v_floor_f64(vf64 a) { return _mm512_roundscale_pd(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
TMK_INLINE vf32 v_ceil_f32(vf32 a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
TMK_INLINE vf64 v_ceil_f64(vf64 a) { return _mm512_roundscale_pd(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
TMK_INLINE vf32 v_trunc_f32(vf32 a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
TMK_INLINE vf64 v_trunc_f64(vf64 a) { return _mm512_roundscale_pd(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }

TMK_INLINE vf64 v_lo_f64(vf32 v) { return _mm512_cvtps_pd(_mm512_castps512_ps256(v)); }
TMK_INLINE vf64 v_hi_f64(vf32 v) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)); }
TMK_INLINE vf32 v_join_f32(vf64 lo, vf64 hi)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(lo)), _mm512_cvtpd_ps(hi), 1);
}

TMK_INLINE vf32 v_load_n_f32(const float *p, int n) { return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p); }
TMK_INLINE vf64 v_load_n_f64(const double *p, int n) { return _mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p); }
TMK_INLINE void v_store_n_f32(float *p, vf32 v, int n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v); }
TMK_INLINE void v_store_n_f64(double *p, vf64 v, int n) { _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), v); }
TMK_INLINE void v_stream_f32(float *p, vf32 v) { _mm512_stream_ps(p, v); }
TMK_INLINE void v_stream_f64(double *p, vf64 v) { _mm512_stream_pd(p, v); }
TMK_INLINE void v_stream_end(void) { _mm_sfence(); }

/* bool bytes to masks and back */
TMK_INLINE vi32 v_load_mask_f32(const uint8_t *p)
{
    __m128i b = _mm_loadu_si128((const __m128i *)p);
    return (vi32)_mm512_movm_epi32(_mm_test_epi8_mask(b, b));
}
TMK_INLINE vi64 v_load_mask_f64(const uint8_t *p)
{
    __m128i b = _mm_loadl_epi64((const __m128i *)p);
    return (vi64)_mm512_movm_epi64((__mmask8)_mm_test_epi8_mask(b, b));
}
TMK_INLINE void v_store_mask_f32(uint8_t *p, vi32 m)
{
    _mm_storeu_si128((__m128i *)p, _mm_maskz_set1_epi8(_mm512_movepi32_mask((__m512i)m), 1));
}
TMK_INLINE void v_store_mask_f64(uint8_t *p, vi64 m)
{
    _mm_storel_epi64((__m128i *)p, _mm_maskz_set1_epi8(_mm512_movepi64_mask((__m512i)m), 1));
}

/* The instructions' own rule: the second operand where either is NaN or both are equal. */
#define TMK_HAVE_MINMAX
TMK_INLINE vf32 v_max_f32(vf32 a, vf32 b) { return _mm512_max_ps(a, b); }
TMK_INLINE vf64 v_max_f64(vf64 a, vf64 b) { return _mm512_max_pd(a, b); }
TMK_INLINE vf32 v_min_f32(vf32 a, vf32 b) { return _mm512_min_ps(a, b); }
TMK_INLINE vf64 v_min_f64(vf64 a, vf64 b) { return _mm512_min_pd(a, b); }

#include "vec_tail.h"

#endif
