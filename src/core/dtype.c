/* Facts per dtype and conversions of single elements. Kernels have vector conversions of their own; these are the reference. */
#include "dtype.h"

#include <stdatomic.h>

#include "base/fail.h"

const tmi_dtype_info tmi_dtypes[TM_DTYPE_COUNT] = {
#define D(NAME, number, ctype, pyname, cname, torchname, bytes, cat) \
    [number] = {.name = #pyname, .short_name = #cname, .type_name = #torchname, .size = bytes, .category = #cat[0]},
#include "dtypes.def"
#undef D
};

static _Atomic uint8_t default_dtype = TM_F32;

size_t tm_dtype_size(tm_dtype dtype) { return (unsigned)dtype < TM_DTYPE_COUNT ? tmi_dtypes[dtype].size : 0; }
const char *tm_dtype_name(tm_dtype dtype) { return (unsigned)dtype < TM_DTYPE_COUNT ? tmi_dtypes[dtype].name : "unknown"; }

tm_dtype tm_get_default_dtype(void) { return (tm_dtype)atomic_load_explicit(&default_dtype, memory_order_relaxed); }

tm_status tm_set_default_dtype(tm_dtype dtype)
{
    bool ok = (unsigned)dtype < TM_DTYPE_COUNT && tmi_dtypes[dtype].category == 'F';
    TMI_REQUIRE(ok, TM_TYPE, "only floating-point types are supported as the default type");
    atomic_store_explicit(&default_dtype, (uint8_t)dtype, memory_order_relaxed);
    return TM_OK;
}

tm_dtype tmi_real_dtype(tm_dtype d) { return d == TM_C64 ? TM_F32 : d == TM_C128 ? TM_F64 : d; }

/* There is no complex type of two halves here, so the halves go to complex64. */
tm_dtype tmi_complex_dtype(tm_dtype d)
{
    if (d == TM_F64) return TM_C128;
    return tmi_is_float(d) ? TM_C64 : d;
}

/* ---- small floats */

static inline uint32_t bits_of(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
static inline float float_of(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }

/* Widens a small float of `e` exponent and `m` mantissa bits (IEEE layout, sign apart) whose exponent field is not all ones. */
static float widen(uint32_t magnitude, int m, int bias)
{
    uint32_t exponent = magnitude >> m, mantissa = magnitude & ((1u << m) - 1);
    if (exponent == 0) {   /* denormal: mantissa * 2^(1 - bias - m), exact in float */
        return (float)mantissa * float_of((uint32_t)(127 + 1 - bias - m) << 23);
    }
    return float_of((exponent + (uint32_t)(127 - bias)) << 23 | mantissa << (23 - m));
}

/* Rounds |f| (bits u, finite) to m mantissa bits, to nearest even, denormals included; the result may be past the largest finite. */
static uint32_t narrow(uint32_t u, int m, int bias)
{
    int exponent = (int)(u >> 23) - 127 + bias;
    if (exponent <= 0) {   /* denormal there: shift the full mantissa right by what the exponent lacks */
        int shift = 24 - m - exponent;
        if (shift > 25) return 0;
        uint32_t full = (u & 0x7fffff) | 0x800000, kept = full >> shift, rest = full & ((1u << shift) - 1), half = 1u << (shift - 1);
        return kept + (rest > half || (rest == half && (kept & 1)));
    }
    uint32_t shift = 23 - (uint32_t)m, lsb = u >> shift & 1;
    u += ((1u << (shift - 1)) - 1) + lsb;
    return (u >> shift) - ((uint32_t)(127 - bias) << m);
}

float tmi_f16_to_f32(tmi_f16 x)
{
    uint32_t sign = (uint32_t)(x.bits & 0x8000) << 16, mag = x.bits & 0x7fff;
    if (mag >= 0x7c00) return float_of(sign | (mag == 0x7c00 ? 0x7f800000 : 0x7fc00000) | (mag & 0x3ff) << 13);
    return float_of(sign | bits_of(widen(mag, 10, 15)));
}

tmi_f16 tmi_f32_to_f16(float f)
{
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, mag = u & 0x7fffffff, r;
    if (mag > 0x7f800000) r = 0x7e00 | (mag >> 13 & 0x3ff);   /* quiet, payload kept as the hardware does */
    else if (mag >= 0x47800000) r = 0x7c00;                   /* 65536 and up */
    else r = narrow(mag, 10, 15);
    return (tmi_f16){(uint16_t)(sign | r)};
}

float tmi_f8_to_f32(uint8_t x, tm_dtype which)
{
    uint32_t sign = (uint32_t)(x & 0x80) << 24, mag = x & 0x7f;
    if (which == TM_F8_E5M2) {
        if (mag >= 0x7c) return float_of(sign | (mag == 0x7c ? 0x7f800000 : 0x7fc00000 | (mag & 3) << 21));
        return float_of(sign | bits_of(widen(mag, 2, 15)));
    }
    if (mag == 0x7f) return float_of(sign | 0x7ff00000);
    return float_of(sign | bits_of(widen(mag, 3, 7)));
}

uint8_t tmi_f32_to_f8(float f, tm_dtype which)
{
    uint32_t u = bits_of(f), sign = u >> 24 & 0x80, mag = u & 0x7fffffff, r;
    if (which == TM_F8_E5M2) {
        if (mag > 0x7f800000) r = 0x7f;
        else r = mag >= 0x47800000 ? 0x7c : narrow(mag, 2, 15);
    } else {   /* no infinity: what would round past 448 stays there, infinities too */
        r = mag > 0x7f800000 ? 0x7f : mag >= 0x43e00000 ? 0x7e : narrow(mag, 3, 7);
    }
    return (uint8_t)(sign | r);
}

/* ---- scalars */

static tm_scalar scalar_u64(uint64_t x)
{
    tm_scalar s = tm_i64(0);
    s.tag = TM_SCALAR_U64;
    s.v.u = x;
    return s;
}

tm_scalar tmi_load_scalar(const void *p, tm_dtype d)
{
    union { int16_t i16; uint16_t u16; int32_t i32; uint32_t u32; int64_t i64; uint64_t u64; float f; double d; float cf[2]; double cd[2]; } x;
    memcpy(&x, p, tmi_dtypes[d].size);
    uint8_t byte = *(const uint8_t *)p;
    switch (d) {
    case TM_BOOL: return tm_bool(byte != 0);
    case TM_U8: return tm_i64(byte);
    case TM_I8: return tm_i64((int8_t)byte);
    case TM_I16: return tm_i64(x.i16);
    case TM_U16: return tm_i64(x.u16);
    case TM_I32: return tm_i64(x.i32);
    case TM_U32: return tm_i64(x.u32);
    case TM_I64: return tm_i64(x.i64);
    case TM_U64: return scalar_u64(x.u64);
    case TM_F16: return tm_f64(tmi_f16_to_f32((tmi_f16){x.u16}));
    case TM_BF16: return tm_f64(tmi_bf16_to_f32((tmi_bf16){x.u16}));
    case TM_F32: return tm_f64(x.f);
    case TM_F64: return tm_f64(x.d);
    case TM_C64: return tm_c128(x.cf[0], x.cf[1]);
    case TM_C128: return tm_c128(x.cd[0], x.cd[1]);
    default: return tm_f64(tmi_f8_to_f32(byte, d));
    }
}

double tmi_scalar_f64(tm_scalar s)
{
    switch (s.tag) {
    case TM_SCALAR_BOOL: return s.v.b;
    case TM_SCALAR_U64: return (double)s.v.u;
    case TM_SCALAR_F64: return s.v.f;
    case TM_SCALAR_C128: return s.v.c.re;
    default: return (double)s.v.i;
    }
}

int64_t tmi_scalar_i64(tm_scalar s)
{
    switch (s.tag) {
    case TM_SCALAR_BOOL: return s.v.b;
    case TM_SCALAR_U64: return (int64_t)s.v.u;
    case TM_SCALAR_F64: return tmi_f64_to_i64(s.v.f);
    case TM_SCALAR_C128: return tmi_f64_to_i64(s.v.c.re);
    default: return s.v.i;
    }
}

tm_dtype tmi_scalar_dtype(tm_scalar s)
{
    switch (s.tag) {
    case TM_SCALAR_BOOL: return TM_BOOL;
    case TM_SCALAR_U64: return TM_U64;
    case TM_SCALAR_F64: return tm_get_default_dtype();
    case TM_SCALAR_C128: return tmi_complex_dtype(tm_get_default_dtype());
    default: return TM_I64;
    }
}

static bool is_real_number(tm_scalar s) { return s.tag == TM_SCALAR_F64 || s.tag == TM_SCALAR_C128; }

static bool scalar_truth(tm_scalar s)
{
    if (s.tag == TM_SCALAR_C128) return s.v.c.re != 0 || s.v.c.im != 0;
    return s.tag == TM_SCALAR_F64 ? s.v.f != 0 : tmi_scalar_i64(s) != 0;
}

static void store_integer(void *p, tm_dtype d, tm_scalar s)
{
    bool real = is_real_number(s);
    double f = real ? tmi_scalar_f64(s) : 0;
    int64_t wide = real ? tmi_f64_to_i64(f) : tmi_scalar_i64(s);
    int32_t narrow_int = real ? tmi_f64_to_i32(f) : (int32_t)wide;
    switch (d) {
    case TM_I8: case TM_I16: case TM_U16: case TM_I32: memcpy(p, &narrow_int, tmi_dtypes[d].size); break;
    case TM_U32: {
        uint32_t u = real ? tmi_f64_to_u32(f) : (uint32_t)wide;
        memcpy(p, &u, sizeof u);
        break;
    }
    case TM_U64: {
        uint64_t u = real ? tmi_f64_to_u64(f) : (uint64_t)wide;
        memcpy(p, &u, sizeof u);
        break;
    }
    default: memcpy(p, &wide, tmi_dtypes[d].size); break;   /* little-endian: the low bytes */
    }
}

void tmi_store_scalar(void *p, tm_dtype d, tm_scalar s)
{
    double re = tmi_scalar_f64(s), im = s.tag == TM_SCALAR_C128 ? s.v.c.im : 0;
    float f = (float)re;
    switch (d) {
    case TM_BOOL: *(uint8_t *)p = scalar_truth(s); break;
    case TM_F16: { tmi_f16 h = tmi_f32_to_f16(f); memcpy(p, &h, sizeof h); break; }
    case TM_BF16: { tmi_bf16 h = tmi_f32_to_bf16(f); memcpy(p, &h, sizeof h); break; }
    case TM_F32: memcpy(p, &f, sizeof f); break;
    case TM_F64: memcpy(p, &re, sizeof re); break;
    case TM_C64: { float c[2] = {f, (float)im}; memcpy(p, c, sizeof c); break; }
    case TM_C128: { double c[2] = {re, im}; memcpy(p, c, sizeof c); break; }
    case TM_F8_E4M3FN: case TM_F8_E5M2: *(uint8_t *)p = tmi_f32_to_f8(f, d); break;
    default: store_integer(p, d, s); break;
    }
}
