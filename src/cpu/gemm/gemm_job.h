/* A matrix product made ready: operands by storage type, the cut into blocks, workspace. Private to src/cpu/gemm.
 *
 * Three ways: `block` (packed panels and micro-kernels), `dot` (few rows, B^T with adjacent k) and `axpy` (few rows, B with adjacent columns).
 * Which one, and every cut, follows from shapes and strides alone. */
#ifndef TMI_GEMM_JOB_H
#define TMI_GEMM_JOB_H

#include "gemm.h"
#include "gemm_aux.h"
#include "gemm_kernels.h"

enum tmi_gemm_way { TMI_GEMM_BLOCK, TMI_GEMM_DOT, TMI_GEMM_AXPY };

typedef struct tmi_gemm_job {
    const tmi_gemm *g;
    const tmi_ukr_table *u;
    /* helpers for the storage type */
    tmk_pack_fn *pack;
    tmk_dot_rows_fn *dot_rows;
    tmk_axpy_rows_fn *axpy_rows;
    tmk_narrow_fn *narrow;      /* NULL: stored as computed */
    tmk_widen_fn *widen;
    int64_t es;                 /* bytes per stored element */
    enum tmi_gemm_way way;
    bool exchanged;             /* computes the transpose: C^T = B^T A^T */
    int64_t m, n, k;
    const char *a, *b;
    char *c;
    int64_t a_rs, a_cs, b_rs, b_cs, c_rs, c_cs;
    double alpha, beta;
    int64_t matrix;             /* number within the batch */
    /* where tiles accumulate: C itself, or a matrix of the workspace that is scaled, rounded and stored at the end */
    void *acc;
    int64_t ld;
    bool direct, pack_a, pack_b;
    int64_t kc, nc, mc;         /* block sizes */
    int64_t task_rows, task_cols;   /* panels per task */
    /* workspace */
    char *work;
    void *packed_a, *packed_b;
    /* the current block */
    int64_t jc, nb, pc, kb, ic, mb;
    bool first, last;
} tmi_gemm_job;

/* Fills in everything that does not depend on addresses. */
void tmi_gemm_plan(tmi_gemm_job *j, const tmi_gemm *g);
/* Bytes of workspace for one matrix. */
size_t tmi_gemm_work_bytes(const tmi_gemm_job *j);
/* One matrix of the batch, with j->work set. */
void tmi_gemm_f32_matrix(tmi_gemm_job *j, int64_t matrix);
void tmi_gemm_f64_matrix(tmi_gemm_job *j, int64_t matrix);

/* The other dtypes (gemm_other.c). */
tm_status tmi_gemm_integer(const tmi_gemm *g);
tm_status tmi_gemm_complex(const tmi_gemm *g);

static inline int64_t tmi_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t tmi_min(int64_t a, int64_t b) { return a < b ? a : b; }
/* Part i of n elements cut evenly into parts. */
static inline int64_t tmi_cut(int64_t n, int64_t parts, int64_t i) { return n / parts * i + tmi_min(n % parts, i); }
/* Panels per chunk of packing work, given the elements of one: enough to pay for a hand-over. */
static inline int64_t tmi_pack_grain(int64_t elements) { return 32768 / elements + 1; }

#endif
