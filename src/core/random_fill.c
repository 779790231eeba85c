/* The random fills' inner loops, compiled for the baseline and, on x86, for AVX2 with FMA: without it each fma is a call into libm. */
#include "base/cpuinfo.h"
#include "generator.h"

static inline uint32_t bits_of(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
static inline float float_of(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }

#define TARGET
#define NAME(x) base_##x
#include "random_fill.tmpl.h"
#undef TARGET
#undef NAME

#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) avx2_##x
#include "random_fill.tmpl.h"
#undef TARGET
#undef NAME
#endif

const tmi_random_loops *tmi_random_loops_base(void) { return &base_loops; }

const tmi_random_loops *tmi_random_loops_get(void)
{
#if defined(__x86_64__)
    if (tmi_cpu()->isa != TMI_ISA_SCALAR) return &avx2_loops;
#endif
    return &base_loops;
}
