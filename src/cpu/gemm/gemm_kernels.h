/* The micro-kernels of the matrix product, and the table that describes them for one instruction set. Private to src/cpu/gemm. */
#ifndef TMI_GEMM_KERNELS_H
#define TMI_GEMM_KERNELS_H

#include "base/cpuinfo.h"

/* One call computes `rows` x (vectors * lanes) elements of C over k steps; the layout is known to x86/gemm_ukr.inc. Strides in bytes.
 * flags: 1 = add to C (else C is not read). */
typedef struct tmi_ukr_args {
    int64_t k;            /* 0: >= 0 */
    const void *a;        /* 8 */
    int64_t a_rs, a_cs;   /* 16, 24: between rows, between k steps. The dense kernels take both from the panel width */
    const void *b;        /* 32: columns adjacent */
    int64_t b_rs;         /* 40: between k steps. The dense kernels take it from the panel width */
    void *c;              /* 48: columns adjacent */
    int64_t c_rs;         /* 56 */
    union { float f; double d; } alpha;   /* 64 */
    int64_t accumulate;   /* 72 */
} tmi_ukr_args;
typedef void tmi_ukr(const tmi_ukr_args *args);

enum { TMI_UKR_MAX_ROWS = 14 };
enum { TMI_UKR_V1, TMI_UKR_V2, TMI_UKR_V4, TMI_UKR_DENSE, TMI_UKR_KINDS };   /* vectors per row; DENSE: 2 vectors, packed A and B */

typedef struct tmi_ukr_table {
    int32_t rows;         /* of a full tile */
    int32_t lanes;        /* elements per vector */
    tmi_ukr *const *kernels;   /* [kind * rows + (r - 1)]; NULL where that kind has none for r rows */
} tmi_ukr_table;

/* For the level in use; chosen once, after the AVX-512 kernels agreed with the AVX2 ones on a small product. */
const tmi_ukr_table *tmi_ukr_f32(void);
const tmi_ukr_table *tmi_ukr_f64(void);

/* As above for a given level that the machine has; NULL where there are no kernels for it. For tests. */
extern const tmi_ukr_table tmi_ukr_generic_f32, tmi_ukr_generic_f64;
const tmi_ukr_table *tmi_ukr_at(tmi_isa isa, bool f64);

#endif
