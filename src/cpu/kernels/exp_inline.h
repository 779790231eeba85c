/* exp for loops of this folder: plain multiplications and additions, so that the compiler vectorises it and the bits are the same on
 * every instruction set. About 1 ULP. */
#ifndef TMK_EXP_INLINE_H
#define TMK_EXP_INLINE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* x = n ln 2 + r with |r| <= ln 2 / 2; e^r by a polynomial of degree 7; 2^n in two factors, so that denormal results are right.
 * Arguments are clamped where the result is 0 or infinite anyway; NaN passes through the comparisons. */
static inline float tmk_exp_f32(float x)
{
    x = x < -105.0f ? -105.0f : x;
    x = x > 89.0f ? 89.0f : x;
    float t = x * 1.44269504088896341f + 12582912.0f;   /* 1.5 * 2^23: rounds to an integer in the low bits */
    uint32_t bits;
    memcpy(&bits, &t, 4);
    float n = t - 12582912.0f;
    float r = (x - n * 0.693359375f) + n * 2.12194440054690583e-4f;
    float p = 1.9841269841e-4f;
    p = p * r + 1.3888888889e-3f;
    p = p * r + 8.3333333333e-3f;
    p = p * r + 4.1666666667e-2f;
    p = p * r + 1.6666666667e-1f;
    p = p * r + 0.5f;
    p = (p * (r * r) + r) + 1.0f;
    int32_t k = (int32_t)(bits - 0x4b400000u);
    int32_t half = k >> 1;
    uint32_t s1 = (uint32_t)(half + 127) << 23, s2 = (uint32_t)(k - half + 127) << 23;
    float f1, f2;
    memcpy(&f1, &s1, 4);
    memcpy(&f2, &s2, 4);
    return p * f1 * f2;
}
static inline double tmk_exp_f64(double x) { return exp(x); }

#endif
