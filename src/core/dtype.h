/* Element types inside the library: C types, conversions of the small floats, facts per dtype. One list: dtypes.def. */
#ifndef TMI_DTYPE_H
#define TMI_DTYPE_H

#include <complex.h>
#include <string.h>

#include "taimatsu/tensor.h"

typedef struct { uint16_t bits; } tmi_f16;
typedef struct { uint16_t bits; } tmi_bf16;
typedef float _Complex tmi_c64;
typedef double _Complex tmi_c128;

typedef struct tmi_dtype_info {
    const char *name;        /* "float32" */
    const char *short_name;  /* "f32" */
    const char *type_name;   /* "Float", as messages say it */
    uint8_t size;            /* bytes */
    char category;           /* 'B' 'U' 'I' 'F' 'C' 'X' */
} tmi_dtype_info;
extern const tmi_dtype_info tmi_dtypes[TM_DTYPE_COUNT];

static inline size_t tmi_dtype_size(tm_dtype d) { return tmi_dtypes[d].size; }
static inline bool tmi_is_float(tm_dtype d) { return tmi_dtypes[d].category == 'F' || tmi_dtypes[d].category == 'X'; }
static inline bool tmi_is_complex(tm_dtype d) { return tmi_dtypes[d].category == 'C'; }
static inline bool tmi_is_integral(tm_dtype d) { char c = tmi_dtypes[d].category; return c == 'U' || c == 'I'; } /* without bool */
/* f32 of c64, f64 of c128, else itself; and the other way. */
tm_dtype tmi_real_dtype(tm_dtype d);
tm_dtype tmi_complex_dtype(tm_dtype d);

static inline float tmi_bf16_to_f32(tmi_bf16 x) { uint32_t u = (uint32_t)x.bits << 16; float f; memcpy(&f, &u, 4); return f; }
static inline tmi_bf16 tmi_f32_to_bf16(float f)
{   /* round to nearest even; NaN stays NaN */
    uint32_t u;
    memcpy(&u, &f, 4);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (tmi_bf16){0x7fc0};   /* PyTorch's NaN */
    return (tmi_bf16){(uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16)};
}
float tmi_f16_to_f32(tmi_f16 x);
tmi_f16 tmi_f32_to_f16(float f);
float tmi_f8_to_f32(uint8_t x, tm_dtype which);
uint8_t tmi_f32_to_f8(float f, tm_dtype which);

/* Float to integer as PyTorch's casts do on x86, defined for every input: truncation; what does not fit (NaN too) gives the minimum. The
 * unsigned ones take what is past the signed range 2^31 (2^63) lower and flip the top bit. Narrower types take the low bits: int8, int16
 * and uint16 of the int32 form, uint8 of the int64 form. */
static inline int64_t tmi_f64_to_i64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }
static inline int32_t tmi_f64_to_i32(double x) { return x > -0x1p31 - 1 && x < 0x1p31 ? (int32_t)x : INT32_MIN; }
static inline uint64_t tmi_f64_to_u64(double x)
{
    return x >= 0x1p63 ? (uint64_t)tmi_f64_to_i64(x - 0x1p63) ^ (UINT64_C(1) << 63) : (uint64_t)tmi_f64_to_i64(x);
}
static inline uint32_t tmi_f64_to_u32(double x)
{
    return x >= 0x1p31 ? (uint32_t)tmi_f64_to_i32(x - 0x1p31) ^ (UINT32_C(1) << 31) : (uint32_t)tmi_f64_to_i32(x);
}

/* Reads and writes one element of any dtype as a scalar; conversions as PyTorch's casts. */
tm_scalar tmi_load_scalar(const void *p, tm_dtype d);
void tmi_store_scalar(void *p, tm_dtype d, tm_scalar s);
double tmi_scalar_f64(tm_scalar s);      /* real part */
int64_t tmi_scalar_i64(tm_scalar s);     /* truncated */
tm_dtype tmi_scalar_dtype(tm_scalar s);  /* TM_BOOL, TM_I64, default float, default complex */

#endif
