/* AVX2 + FMA + F16C: 8 lanes of f32, 4 of f64. */
#ifndef TMK_VEC_AVX2_H
#define TMK_VEC_AVX2_H

#include <immintrin.h>

#define TMK_W32 8
#define TMK_W64 4
#include "vec_ext.h"

TMK_INLINE vf32 v_sel_f32(vi32 m, vf32 a, vf32 b) { return _mm256_blendv_ps(b, a, (vf32)m); }
TMK_INLINE vf64 v_sel_f64(vi64 m, vf64 a, vf64 b) { return _mm256_blendv_pd(b, a, (vf64)m); }
TMK_INLINE bool v_any_f32(vi32 m) { return _mm256_movemask_ps((vf32)m) != 0; }
TMK_INLINE bool v_any_f64(vi64 m) { return _mm256_movemask_pd((vf64)m) != 0; }
TMK_INLINE bool v_all_f32(vi32 m) { return _mm256_movemask_ps((vf32)m) == 0xff; }
TMK_INLINE bool v_all_f64(vi64 m) { return _mm256_movemask_pd((vf64)m) == 0xf; }

TMK_INLINE vf32 v_fma_f32(vf32 a, vf32 b, vf32 c) { return _mm256_fmadd_ps(a, b, c); }
TMK_INLINE vf64 v_fma_f64(vf64 a, vf64 b, vf64 c) { return _mm256_fmadd_pd(a, b, c); }
TMK_INLINE vf32 v_sqrt_f32(vf32 a) { return _mm256_sqrt_ps(a); }
TMK_INLINE vf64 v_sqrt_f64(vf64 a) { return _mm256_sqrt_pd(a); }
TMK_INLINE vf32 v_rint_f32(vf32 a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
TMK_INLINE vf64 v_rint_f64(vf64 a) { return _mm256_round_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
TMK_INLINE vf32 v_floor_f32(vf32 a) { return _mm256_floor_ps(a); }
TMK_INLINE vf64 v_floor_f64(vf64 a) { return _mm256_floor_pd(a); }
TMK_INLINE vf32 v_ceil_f32(vf32 a) { return _mm256_ceil_ps(a); }
TMK_INLINE vf64 v_ceil_f64(vf64 a) { return _mm256_ceil_pd(a); }
TMK_INLINE vf32 v_trunc_f32(vf32 a) { return _mm256_round_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
TMK_INLINE vf64 v_trunc_f64(vf64 a) { return _mm256_round_pd(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }

TMK_INLINE vf64 v_lo_f64(vf32 v) { return _mm256_cvtps_pd(_mm256_castps256_ps128(v)); }
TMK_INLINE vf64 v_hi_f64(vf32 v) { return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)); }
TMK_INLINE vf32 v_join_f32(vf64 lo, vf64 hi) { return _mm256_set_m128(_mm256_cvtpd_ps(hi), _mm256_cvtpd_ps(lo)); }

static const int32_t v_tail_mask[16] __attribute__((unused, aligned(32))) = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

TMK_INLINE vf32 v_load_n_f32(const float *p, int n)
{
    return _mm256_maskload_ps(p, _mm256_loadu_si256((const __m256i *)(v_tail_mask + 8 - n)));
}
TMK_INLINE vf64 v_load_n_f64(const double *p, int n)
{
    return _mm256_maskload_pd(p, _mm256_loadu_si256((const __m256i *)(v_tail_mask + 8 - 2 * n)));
}
/* Piecewise: masked stores are microcoded on some CPUs. */
TMK_INLINE void v_store_n_f32(float *p, vf32 v, int n)
{
    __m128 h = _mm256_castps256_ps128(v);
    if (n & 4) {
        _mm_storeu_ps(p, h);
        h = _mm256_extractf128_ps(v, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)p, h);
        h = _mm_movehl_ps(h, h);
        p += 2;
    }
    if (n & 1) _mm_store_ss(p, h);
}
TMK_INLINE void v_store_n_f64(double *p, vf64 v, int n)
{
    __m128d h = _mm256_castpd256_pd128(v);
    if (n & 2) {
        _mm_storeu_pd(p, h);
        h = _mm256_extractf128_pd(v, 1);
        p += 2;
    }
    if (n & 1) _mm_store_sd(p, h);
}
TMK_INLINE void v_stream_f32(float *p, vf32 v) { _mm256_stream_ps(p, v); }
TMK_INLINE void v_stream_f64(double *p, vf64 v) { _mm256_stream_pd(p, v); }
TMK_INLINE void v_stream_end(void) { _mm_sfence(); }

/* bool bytes to masks and back */
TMK_INLINE vi32 v_load_mask_f32(const uint8_t *p)
{
    return (vi32)_mm256_cmpgt_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)), _mm256_setzero_si256());
}
TMK_INLINE vi64 v_load_mask_f64(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, 4);
    return (vi64)_mm256_cmpgt_epi64(_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(four)), _mm256_setzero_si256());
}
TMK_INLINE void v_store_mask_f32(uint8_t *p, vi32 m)
{
    __m128i w = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)m), _mm256_extracti128_si256((__m256i)m, 1));
    _mm_storel_epi64((__m128i *)p, _mm_and_si128(_mm_packs_epi16(w, w), _mm_set1_epi8(1)));
}
TMK_INLINE void v_store_mask_f64(uint8_t *p, vi64 m)
{
    __m128i w = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)m), _mm256_extracti128_si256((__m256i)m, 1));
    w = _mm_packs_epi16(_mm_packs_epi32(w, w), w);
    int32_t four = _mm_cvtsi128_si32(_mm_and_si128(w, _mm_set1_epi8(1)));
    memcpy(p, &four, 4);
}

/* The instructions' own rule: the second operand where either is NaN or both are equal. */
#define TMK_HAVE_MINMAX
TMK_INLINE vf32 v_max_f32(vf32 a, vf32 b) { return _mm256_max_ps(a, b); }
TMK_INLINE vf64 v_max_f64(vf64 a, vf64 b) { return _mm256_max_pd(a, b); }
TMK_INLINE vf32 v_min_f32(vf32 a, vf32 b) { return _mm256_min_ps(a, b); }
TMK_INLINE vf64 v_min_f64(vf64 a, vf64 b) { return _mm256_min_pd(a, b); }

#include "vec_tail.h"

#endif
