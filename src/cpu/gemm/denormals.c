/* The floating-point mode of the tiles: denormals count as zero, going in and coming out. */
#include "gemm.h"

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
uint64_t tmi_denormals_flush(void)
{
    unsigned int saved = _mm_getcsr();
    if ((saved & 0x8040u) != 0x8040u) _mm_setcsr(saved | 0x8040u);   /* FTZ, DAZ */
    return saved;
}
void tmi_denormals_restore(uint64_t saved)
{
    if ((saved & 0x8040u) != 0x8040u) _mm_setcsr((unsigned int)saved);
}
#elif defined(__aarch64__)
uint64_t tmi_denormals_flush(void)
{
    uint64_t saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    __asm__ volatile("msr fpcr, %0" : : "r"(saved | (UINT64_C(1) << 24)));
    return saved;
}
void tmi_denormals_restore(uint64_t saved) { __asm__ volatile("msr fpcr, %0" : : "r"(saved)); }
#else
uint64_t tmi_denormals_flush(void) { return 0; }
void tmi_denormals_restore(uint64_t saved) { (void)saved; }
#endif
