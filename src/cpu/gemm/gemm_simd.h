/* The few vector operations that the matrix, attention and convolution kernels of src/cpu/kernels need, at the width of the instruction
 * set being compiled: tmk_vf (float) and tmk_vd (double). Loads and stores are unaligned. */
#ifndef TMI_GEMM_SIMD_H
#define TMI_GEMM_SIMD_H

#include <stdint.h>
#include <string.h>

#if defined(TMK_ISA_AVX512)
#include <immintrin.h>
enum { TMK_VF = 16, TMK_VD = 8 };
#define TMK_VFMA_F(a, b, c) ((tmk_vf)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define TMK_VFMA_D(a, b, c) ((tmk_vd)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#elif defined(TMK_ISA_AVX2)
#include <immintrin.h>
enum { TMK_VF = 8, TMK_VD = 4 };
#define TMK_VFMA_F(a, b, c) ((tmk_vf)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define TMK_VFMA_D(a, b, c) ((tmk_vd)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#elif defined(__aarch64__)
#include <arm_neon.h>
enum { TMK_VF = 4, TMK_VD = 2 };
#define TMK_VFMA_F(a, b, c) ((tmk_vf)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define TMK_VFMA_D(a, b, c) ((tmk_vd)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#else
enum { TMK_VF = 4, TMK_VD = 2 };
#define TMK_VFMA_F(a, b, c) ((a) * (b) + (c))
#define TMK_VFMA_D(a, b, c) ((a) * (b) + (c))
#endif

typedef float tmk_vf __attribute__((vector_size(TMK_VF * 4)));
typedef double tmk_vd __attribute__((vector_size(TMK_VD * 8)));
typedef int32_t tmk_vi __attribute__((vector_size(TMK_VF * 4)));

static inline tmk_vf tmk_load_f(const float *p) { tmk_vf v; memcpy(&v, p, sizeof v); return v; }
static inline tmk_vd tmk_load_d(const double *p) { tmk_vd v; memcpy(&v, p, sizeof v); return v; }
static inline void tmk_store_f(float *p, tmk_vf v) { memcpy(p, &v, sizeof v); }
static inline void tmk_store_d(double *p, tmk_vd v) { memcpy(p, &v, sizeof v); }
static inline tmk_vf tmk_fma_f(tmk_vf a, tmk_vf b, tmk_vf c) { return TMK_VFMA_F(a, b, c); }
static inline tmk_vd tmk_fma_d(tmk_vd a, tmk_vd b, tmk_vd c) { return TMK_VFMA_D(a, b, c); }
static inline tmk_vf tmk_set_f(float x) { tmk_vf z = {0}; return z + x; }
static inline tmk_vd tmk_set_d(double x) { tmk_vd z = {0}; return z + x; }
/* Sum of the lanes in a fixed order: halves, quarters, ... */
static inline float tmk_sum_f(tmk_vf v)
{
    float x[TMK_VF];
    memcpy(x, &v, sizeof v);
    for (int w = TMK_VF / 2; w; w /= 2)
        for (int i = 0; i < w; i++) x[i] += x[i + w];
    return x[0];
}
static inline double tmk_sum_d(tmk_vd v)
{
    double x[TMK_VD];
    memcpy(x, &v, sizeof v);
    for (int w = TMK_VD / 2; w; w /= 2)
        for (int i = 0; i < w; i++) x[i] += x[i + w];
    return x[0];
}

#define TMK_CAT_(a, b) a##_##b
#define TMK_CAT(a, b) TMK_CAT_(a, b)
#define TMK_SYMBOL(name) TMK_CAT(name, TMK_ISA)   /* tmk_thing_avx2 */

#endif
