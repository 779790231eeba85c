/* What this CPU and this operating system can run: CPUID bits and the OS's saved state, never model numbers. */
#ifndef TMI_CPUINFO_H
#define TMI_CPUINFO_H

#include "taimatsu/base.h"

typedef enum tmi_isa { TMI_ISA_SCALAR, TMI_ISA_AVX2, TMI_ISA_AVX512, TMI_ISA_NEON, TMI_ISA_COUNT } tmi_isa;

typedef struct tmi_cpuinfo {
    tmi_isa isa;             /* level in use: the best available one, or what TAIMATSU_CPU=scalar|avx2|avx512|neon asks for */
    tmi_isa best;            /* best available one */
    bool avx2, fma, f16c, avx512, avx512_vnni, avx512_bf16, avx512_fp16, avx_vnni;
    bool amx_tile, amx_bf16, amx_int8;   /* with the OS's permission to use tile state obtained */
    int cpus;                /* usable: affinity mask and cgroup quota, at least 1 */
    int64_t l1d, l2, l3;     /* bytes; best guess where the system does not say */
} tmi_cpuinfo;

/* Detected once; never fails. A level asked for by TAIMATSU_CPU that is missing falls to the best below it, with a warning logged. */
const tmi_cpuinfo *tmi_cpu(void);
const char *tmi_isa_name(tmi_isa isa);

/* Sets the calling thread's floating-point unit to flush denormals (both inputs and results) or not; false where it cannot. */
bool tmi_apply_flush_denormal(bool on);

#endif
