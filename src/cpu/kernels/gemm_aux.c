/* Packing, dot products and narrowing for the matrix product: see cpu/gemm/gemm_aux.h. */
#include "cpu/gemm/gemm_aux.h"

#include "core/dtype.h"
#include "cpu/gemm/gemm_simd.h"

#define JOIN(p, x) p##_##x

#if defined(TMK_ISA_AVX2) || defined(TMK_ISA_AVX512)
static inline float widen_f16(tmi_f16 x) { return _cvtsh_ss(x.bits); }
static inline tmi_f16 shorten_f16(float x) { return (tmi_f16){_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT)}; }
#else
static inline float widen_f16(tmi_f16 x) { return tmi_f16_to_f32(x); }
static inline tmi_f16 shorten_f16(float x) { return tmi_f32_to_f16(x); }
#endif

/* A vector of f16 or bf16 as floats. */
static inline tmk_vf load_bf16(const tmi_bf16 *p)
{
    typedef uint16_t half __attribute__((vector_size(TMK_VF * 2)));
    typedef uint32_t full __attribute__((vector_size(TMK_VF * 4)));
    half h;
    memcpy(&h, p, sizeof h);
    return (tmk_vf)(__builtin_convertvector(h, full) << 16);
}
static inline tmk_vf load_f16(const tmi_f16 *p)
{
#if defined(TMK_ISA_AVX512)
    return (tmk_vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
#elif defined(TMK_ISA_AVX2)
    return (tmk_vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
#else
    tmk_vf v;
    for (int i = 0; i < TMK_VF; i++) v[i] = widen_f16(p[i]);
    return v;
#endif
}

#define SAME(x) (x)
#define COPY4(p) (*(const near4 *)(p))
#define CONVERT4(p) ((v4){CONVERT((p)[0]), CONVERT((p)[1]), CONVERT((p)[2]), CONVERT((p)[3])})

#define S float
#define D float
#define CONVERT SAME
#define LOAD4 COPY4
#define NAME(x) JOIN(f32, x)
#include "gemm_pack.tmpl.h"
#define S double
#define D double
#define CONVERT SAME
#define LOAD4 COPY4
#define NAME(x) JOIN(f64, x)
#include "gemm_pack.tmpl.h"
#define S tmi_f16
#define D float
#define CONVERT widen_f16
#define LOAD4 CONVERT4
#define NAME(x) JOIN(f16, x)
#include "gemm_pack.tmpl.h"
#define S tmi_bf16
#define D float
#define CONVERT tmi_bf16_to_f32
#define LOAD4 CONVERT4
#define NAME(x) JOIN(bf16, x)
#include "gemm_pack.tmpl.h"

#define S float
#define D float
#define V tmk_vf
#define LANES TMK_VF
#define LOADW tmk_load_f
#define LOADX tmk_load_f
#define SET tmk_set_f
#define STORE tmk_store_f
#define FMA tmk_fma_f
#define SUM tmk_sum_f
#define CONVERT SAME
#define NAME(x) JOIN(f32, x)
#include "gemm_dot.tmpl.h"
#define S double
#define D double
#define V tmk_vd
#define LANES TMK_VD
#define LOADW tmk_load_d
#define LOADX tmk_load_d
#define SET tmk_set_d
#define STORE tmk_store_d
#define FMA tmk_fma_d
#define SUM tmk_sum_d
#define CONVERT SAME
#define NAME(x) JOIN(f64, x)
#include "gemm_dot.tmpl.h"
#define S tmi_f16
#define D float
#define V tmk_vf
#define LANES TMK_VF
#define LOADW load_f16
#define LOADX tmk_load_f
#define SET tmk_set_f
#define STORE tmk_store_f
#define FMA tmk_fma_f
#define SUM tmk_sum_f
#define CONVERT widen_f16
#define NAME(x) JOIN(f16, x)
#include "gemm_dot.tmpl.h"
#define S tmi_bf16
#define D float
#define V tmk_vf
#define LANES TMK_VF
#define LOADW load_bf16
#define LOADX tmk_load_f
#define SET tmk_set_f
#define STORE tmk_store_f
#define FMA tmk_fma_f
#define SUM tmk_sum_f
#define CONVERT tmi_bf16_to_f32
#define NAME(x) JOIN(bf16, x)
#include "gemm_dot.tmpl.h"

static void narrow_row_f16(void *dst, const float *src, int64_t n)
{
    tmi_f16 *d = dst;
    for (int64_t i = 0; i < n; i++) d[i] = shorten_f16(src[i]);
}
static void narrow_row_bf16(void *dst, const float *src, int64_t n)
{
    tmi_bf16 *d = dst;
    for (int64_t i = 0; i < n; i++) d[i] = tmi_f32_to_bf16(src[i]);
}
static void widen_row_f16(float *dst, const void *src, int64_t n)
{
    const tmi_f16 *s = src;
    for (int64_t i = 0; i < n; i++) dst[i] = widen_f16(s[i]);
}
static void widen_row_bf16(float *dst, const void *src, int64_t n)
{
    const tmi_bf16 *s = src;
    for (int64_t i = 0; i < n; i++) dst[i] = tmi_bf16_to_f32(s[i]);
}

const tmk_gemm_aux TMK_SYMBOL(tmk_gemm_aux) = {
    .pack_f32 = f32_pack, .pack_f64 = f64_pack, .pack_f16 = f16_pack, .pack_bf16 = bf16_pack,
    .dot_rows_f32 = f32_dot_rows, .dot_rows_f64 = f64_dot_rows, .dot_rows_f16 = f16_dot_rows, .dot_rows_bf16 = bf16_dot_rows,
    .axpy_rows_f32 = f32_axpy_rows, .axpy_rows_f64 = f64_axpy_rows, .axpy_rows_f16 = f16_axpy_rows, .axpy_rows_bf16 = bf16_axpy_rows,
    .narrow_f16 = narrow_row_f16, .narrow_bf16 = narrow_row_bf16, .widen_f16 = widen_row_f16, .widen_bf16 = widen_row_bf16,
};
