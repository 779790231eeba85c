/* Conversions between element types, contiguous to contiguous. What is not in the table goes through f32, f64 or the real part: pointwise.c. */
#include "cpu/isa/vectors.h"
#include "kernel_tables.h"

#define FROM b8
#define FT uint8_t
#include "cast_from.tmpl.h"
#define FROM u8
#define FT uint8_t
#include "cast_from.tmpl.h"
#define FROM i8
#define FT int8_t
#include "cast_from.tmpl.h"
#define FROM i16
#define FT int16_t
#include "cast_from.tmpl.h"
#define FROM i32
#define FT int32_t
#include "cast_from.tmpl.h"
#define FROM i64
#define FT int64_t
#include "cast_from.tmpl.h"
#define FROM u16
#define FT uint16_t
#include "cast_from.tmpl.h"
#define FROM u32
#define FT uint32_t
#include "cast_from.tmpl.h"
#define FROM u64
#define FT uint64_t
#include "cast_from.tmpl.h"
#define FROM f32
#define FT float
#define FROM_FLOAT
#include "cast_from.tmpl.h"
#define FROM f64
#define FT double
#define FROM_FLOAT
#include "cast_from.tmpl.h"

/* ---- small floats: to and from f32 */
static void bf16_to_f32(void *dst, const void *src, int64_t n)
{
    uint32_t *d = (uint32_t *)dst;
    const uint16_t *s = (const uint16_t *)src;
    TMK_IVDEP
    for (int64_t i = 0; i < n; i++) d[i] = (uint32_t)s[i] << 16;
}
/* To nearest even; NaN becomes PyTorch's. */
static void f32_to_bf16(void *dst, const void *src, int64_t n)
{
    uint16_t *d = (uint16_t *)dst;
    const uint32_t *s = (const uint32_t *)src;
    TMK_IVDEP
    for (int64_t i = 0; i < n; i++) {
        uint32_t u = s[i], rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
        d[i] = (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : rounded);
    }
}
static void f16_to_f32(void *dst, const void *src, int64_t n)
{
    float *d = (float *)dst;
    const tmi_f16 *s = (const tmi_f16 *)src;
    int64_t i = 0;
#if defined(TMK_ISA_AVX2) || defined(TMK_ISA_AVX512)
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(d + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(s + i))));
#endif
    for (; i < n; i++) d[i] = tmi_f16_to_f32(s[i]);
}
static void f32_to_f16(void *dst, const void *src, int64_t n)
{
    tmi_f16 *d = (tmi_f16 *)dst;
    const float *s = (const float *)src;
    int64_t i = 0;
#if defined(TMK_ISA_AVX2) || defined(TMK_ISA_AVX512)
    for (; i + 8 <= n; i += 8) _mm_storeu_si128((__m128i *)(d + i), _mm256_cvtps_ph(_mm256_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++) d[i] = tmi_f32_to_f16(s[i]);
}
static void e4m3_to_f32(void *dst, const void *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((float *)dst)[i] = tmi_f8_to_f32(((const uint8_t *)src)[i], TM_F8_E4M3FN);
}
static void e5m2_to_f32(void *dst, const void *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((float *)dst)[i] = tmi_f8_to_f32(((const uint8_t *)src)[i], TM_F8_E5M2);
}
static void f32_to_e4m3(void *dst, const void *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((uint8_t *)dst)[i] = tmi_f32_to_f8(((const float *)src)[i], TM_F8_E4M3FN);
}
static void f32_to_e5m2(void *dst, const void *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((uint8_t *)dst)[i] = tmi_f32_to_f8(((const float *)src)[i], TM_F8_E5M2);
}

/* ---- complex: as pairs of reals */
static void c64_to_c128(void *dst, const void *src, int64_t n) { f32_to_f64(dst, src, 2 * n); }
static void c128_to_c64(void *dst, const void *src, int64_t n) { f64_to_f32(dst, src, 2 * n); }
static void f32_to_c64(void *dst, const void *src, int64_t n)
{
    float *d = (float *)dst;
    for (int64_t i = 0; i < n; i++) d[2 * i] = ((const float *)src)[i], d[2 * i + 1] = 0;
}
static void f64_to_c128(void *dst, const void *src, int64_t n)
{
    double *d = (double *)dst;
    for (int64_t i = 0; i < n; i++) d[2 * i] = ((const double *)src)[i], d[2 * i + 1] = 0;
}
static void c64_to_f32(void *dst, const void *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((float *)dst)[i] = ((const float *)src)[2 * i];
}
static void c128_to_f64(void *dst, const void *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((double *)dst)[i] = ((const double *)src)[2 * i];
}
static void c64_to_b8(void *dst, const void *src, int64_t n)
{
    const float *s = (const float *)src;
    for (int64_t i = 0; i < n; i++) ((uint8_t *)dst)[i] = s[2 * i] != 0 || s[2 * i + 1] != 0;
}
static void c128_to_b8(void *dst, const void *src, int64_t n)
{
    const double *s = (const double *)src;
    for (int64_t i = 0; i < n; i++) ((uint8_t *)dst)[i] = s[2 * i] != 0 || s[2 * i + 1] != 0;
}

#define PLAIN(f)                                                                                                      \
    [TM_BOOL] = f##_to_b8, [TM_U8] = f##_to_u8, [TM_I8] = f##_to_i8, [TM_I16] = f##_to_i16, [TM_I32] = f##_to_i32,    \
    [TM_I64] = f##_to_i64, [TM_U16] = f##_to_u16, [TM_U32] = f##_to_u32, [TM_U64] = f##_to_u64, [TM_F32] = f##_to_f32, \
    [TM_F64] = f##_to_f64
tmk_cast_fn *const TMK_NAME(casts)[TM_DTYPE_COUNT][TM_DTYPE_COUNT] = {
    [TM_BOOL] = {PLAIN(b8)}, [TM_U8] = {PLAIN(u8)}, [TM_I8] = {PLAIN(i8)}, [TM_I16] = {PLAIN(i16)}, [TM_I32] = {PLAIN(i32)},
    [TM_I64] = {PLAIN(i64)}, [TM_U16] = {PLAIN(u16)}, [TM_U32] = {PLAIN(u32)}, [TM_U64] = {PLAIN(u64)},
    [TM_F32] = {PLAIN(f32), [TM_BF16] = f32_to_bf16, [TM_F16] = f32_to_f16, [TM_F8_E4M3FN] = f32_to_e4m3, [TM_F8_E5M2] = f32_to_e5m2,
                [TM_C64] = f32_to_c64},
    [TM_F64] = {PLAIN(f64), [TM_C128] = f64_to_c128},
    [TM_BF16] = {[TM_F32] = bf16_to_f32},
    [TM_F16] = {[TM_F32] = f16_to_f32},
    [TM_F8_E4M3FN] = {[TM_F32] = e4m3_to_f32},
    [TM_F8_E5M2] = {[TM_F32] = e5m2_to_f32},
    [TM_C64] = {[TM_C128] = c64_to_c128, [TM_F32] = c64_to_f32, [TM_BOOL] = c64_to_b8},
    [TM_C128] = {[TM_C64] = c128_to_c64, [TM_F64] = c128_to_f64, [TM_BOOL] = c128_to_b8},
};

/* Copies past the cache: vector stores to the aligned middle, plain ones at both ends. */
void TMK_NAME(stream)(void *dst, const void *src, size_t nbytes)
{
    char *d = (char *)dst;
    const char *s = (const char *)src;
    size_t unit = 4 * TMK_W32, head = (size_t)(-(uintptr_t)d % 64);
    if (unit < 16 || nbytes < 256 || ((uintptr_t)d & 3)) {
        memcpy(d, s, nbytes);
        return;
    }
    memcpy(d, s, head);
    size_t i = head;
    for (; i + unit <= nbytes; i += unit) v_stream_f32((float *)(d + i), v_load_f32((const float *)(s + i)));
    memcpy(d + i, s + i, nbytes - i);
    v_stream_end();
}
