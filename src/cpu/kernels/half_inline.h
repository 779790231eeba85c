/* f16 to f32 and back as integer arithmetic that vectorises, for loops of this folder. */
#ifndef TMK_HALF_INLINE_H
#define TMK_HALF_INLINE_H

#include "core/dtype.h"

/* The mantissa and exponent bits, shifted into place, are the value divided by 2^112; a product restores it (denormals too, exactly). */
static inline float half_to_float(tmi_f16 h)
{
    uint32_t u = (uint32_t)(h.bits & 0x7fff) << 13, sign = (uint32_t)(h.bits & 0x8000) << 16, special = 0x7f800000u, out;
    float f, scaled;
    memcpy(&f, &u, 4);
    scaled = f * 0x1p112f;
    memcpy(&out, &scaled, 4);
    out = (h.bits & 0x7c00) == 0x7c00 ? (u | special) : out;
    out |= sign;
    memcpy(&f, &out, 4);
    return f;
}

/* Round to nearest even. Small results are rounded by an addition that puts the last bit of the result at the end of the mantissa. */
static inline tmi_f16 float_to_half(float f)
{
    uint32_t u, sign, small;
    memcpy(&u, &f, 4);
    sign = (u >> 16) & 0x8000;
    u &= 0x7fffffffu;
    float a, t;
    memcpy(&a, &u, 4);
    t = a + 0.5f;
    memcpy(&small, &t, 4);
    small -= 0x3f000000u;
    uint32_t normal = (u - 0x38000000u + 0xfff + ((u >> 13) & 1)) >> 13;
    uint32_t big = u > 0x7f800000u ? 0x7e00u : 0x7c00u;
    uint32_t out = u < 0x38800000u ? small : normal;
    out = u >= 0x477ff000u ? big : out;
    return (tmi_f16){(uint16_t)(out | sign)};
}

#endif
