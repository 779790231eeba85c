/* Inner loops of the random fills, included once per instruction set with NAME(x) and TARGET defined. Every product-sum that PyTorch's
 * vector code contracts is an explicit fma, so the bits do not depend on the instruction set or the compiler. Loops over whole vectors come
 * first and rests after them, so that they vectorise at any optimisation level. */

static inline uint32_t NAME(twist)(uint32_t u, uint32_t v)
{
    return (((u & 0x80000000u) | (v & 0x7fffffffu)) >> 1) ^ (-(v & 1u) & 0x9908b0dfu);
}

TARGET static void NAME(temper)(const uint32_t *restrict state, uint32_t *restrict ready)
{
    for (int i = 0; i < TMI_MT_WORDS; i++) {
        uint32_t y = state[i];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        ready[i] = y ^ (y >> 18);
    }
}

TARGET static void NAME(reload)(uint32_t *s, uint32_t *ready)
{
    enum { FAR = 397, WRAP = TMI_MT_WORDS - FAR };   /* 227 words before s[i + 397] wraps around */
    for (int i = 0; i < 224; i++) s[i] = s[i + FAR] ^ NAME(twist)(s[i], s[i + 1]);
    for (int i = 224; i < WRAP; i++) s[i] = s[i + FAR] ^ NAME(twist)(s[i], s[i + 1]);
    for (int i = WRAP; i < WRAP + 392; i++) s[i] = s[i - WRAP] ^ NAME(twist)(s[i], s[i + 1]);
    for (int i = WRAP + 392; i < TMI_MT_WORDS - 1; i++) s[i] = s[i - WRAP] ^ NAME(twist)(s[i], s[i + 1]);
    s[TMI_MT_WORDS - 1] = s[FAR - 1] ^ NAME(twist)(s[TMI_MT_WORDS - 1], s[0]);
    NAME(temper)(s, ready);
}

static inline float NAME(one_f32)(uint32_t w, float from, float span, float to)
{
    float x = (float)(int32_t)(w & 0xffffff) * 0x1p-24f, v = __builtin_fmaf(x, span, from);
    return v == to ? from : v;
}

TARGET static void NAME(uniform_f32)(const uint32_t *restrict w, float *restrict out, int64_t n, float from, float span, float to)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++) out[i + k] = NAME(one_f32)(w[i + k], from, span, to);
    for (; i < n; i++) out[i] = NAME(one_f32)(w[i], from, span, to);
}

TARGET static void NAME(uniform_f64)(const uint32_t *restrict w, double *restrict out, int64_t n, double from, double span, double to)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = ((uint64_t)w[2 * i] << 32 | w[2 * i + 1]) & ((UINT64_C(1) << 53) - 1);
        double v = __builtin_fma((double)(int64_t)r * 0x1p-53, span, from);
        out[i] = v == to ? from : v;
    }
}

TARGET static void NAME(below)(const uint32_t *restrict w, uint8_t *restrict out, int64_t n, uint64_t bound)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = ((uint64_t)w[2 * i] << 32 | w[2 * i + 1]) & ((UINT64_C(1) << 53) - 1);
        out[i] = r < bound;
    }
}

/* ln x for x in [2^-24, 1]: the polynomial of Cephes logf on [sqrt(1/2), sqrt(2)). */
static inline float NAME(log)(float x)
{
    uint32_t u = bits_of(x);
    int32_t e = (int32_t)(u >> 23) - 126;
    float m = float_of((u & 0x7fffff) | 0x3f000000);   /* in [0.5, 1) */
    bool low = m < 0.707106781186547524f;
    e -= low;
    x = (m - 1.0f) + (low ? m : 0.0f);
    float z = x * x, y = 7.0376836292e-2f, ef = (float)e;
    y = __builtin_fmaf(y, x, -1.1514610310e-1f);
    y = __builtin_fmaf(y, x, 1.1676998740e-1f);
    y = __builtin_fmaf(y, x, -1.2420140846e-1f);
    y = __builtin_fmaf(y, x, 1.4249322787e-1f);
    y = __builtin_fmaf(y, x, -1.6668057665e-1f);
    y = __builtin_fmaf(y, x, 2.0000714765e-1f);
    y = __builtin_fmaf(y, x, -2.4999993993e-1f);
    y = __builtin_fmaf(y, x, 3.3333331174e-1f);
    y = __builtin_fmaf(y * x, z, ef * -2.12194440e-4f);
    y = __builtin_fmaf(-z, 0.5f, y);
    return __builtin_fmaf(ef, 0.693359375f, x + y);
}

/* Eight pairs at once: radius from words 0-7, angle from words 8-15. Sine and cosine by Cephes sincosf: octant j, three-part reduction. */
TARGET static void NAME(normal16_f32)(const uint32_t *restrict w, float *restrict out, float mean, float std)
{
    for (int k = 0; k < 8; k++) {
        float u = (float)(int32_t)(w[k] & 0xffffff) * 0x1p-24f, v = (float)(int32_t)(w[k + 8] & 0xffffff) * 0x1p-24f;
        float r = __builtin_sqrtf(-2.0f * NAME(log)(1.0f - u)), x = 6.283185307179586f * v;
        int32_t j = ((int32_t)(x * 1.27323954473516f) + 1) & ~1;
        float y = (float)j;
        x = __builtin_fmaf(y, -0.78515625f, x);
        x = __builtin_fmaf(y, -2.4187564849853515625e-4f, x);
        x = __builtin_fmaf(y, -3.77489497744594108e-8f, x);
        float z = x * x, c = 2.443315711809948e-5f, s = -1.9515295891e-4f;
        c = __builtin_fmaf(c, z, -1.388731625493765e-3f);
        c = __builtin_fmaf(c, z, 4.166664568298827e-2f);
        c = __builtin_fmaf(c * z, z, -(z * 0.5f)) + 1.0f;
        s = __builtin_fmaf(s, z, 8.3321608736e-3f);
        s = __builtin_fmaf(s, z, -1.6666654611e-1f);
        s = __builtin_fmaf(s * z, x, x);
        uint32_t cb = bits_of(c), sb = bits_of(s), swap = -((uint32_t)j >> 1 & 1u), both = (cb ^ sb) & swap;
        sb ^= both ^ ((uint32_t)j & 4) << 29;
        cb ^= both ^ (~(uint32_t)(j - 2) & 4) << 29;
        out[k] = __builtin_fmaf(r * float_of(cb), std, mean);
        out[k + 8] = __builtin_fmaf(r * float_of(sb), std, mean);
    }
}

static const tmi_random_loops NAME(loops) = {NAME(reload), NAME(temper), NAME(uniform_f32), NAME(uniform_f64), NAME(normal16_f32), NAME(below)};
