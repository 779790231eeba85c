/* Chooses the micro-kernels and helpers for the instruction set in use. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/logging.h"
#include "gemm_aux.h"
#include "gemm_kernels.h"

#if defined(TMK_HAVE_AVX2)
extern tmi_ukr *const tmk_gemm_f32_avx2[], *const tmk_gemm_f64_avx2[], *const tmk_gemm_f32_avx512[], *const tmk_gemm_f64_avx512[];
static const tmi_ukr_table avx2_f32 = {.rows = 6, .lanes = 8, .kernels = tmk_gemm_f32_avx2};
static const tmi_ukr_table avx2_f64 = {.rows = 6, .lanes = 4, .kernels = tmk_gemm_f64_avx2};
static const tmi_ukr_table avx512_f32 = {.rows = 14, .lanes = 16, .kernels = tmk_gemm_f32_avx512};
static const tmi_ukr_table avx512_f64 = {.rows = 14, .lanes = 8, .kernels = tmk_gemm_f64_avx512};
#endif

const tmi_ukr_table *tmi_ukr_at(tmi_isa isa, bool f64)
{
#if defined(TMK_HAVE_AVX2)
    if (isa == TMI_ISA_AVX2) return f64 ? &avx2_f64 : &avx2_f32;
    if (isa == TMI_ISA_AVX512) return f64 ? &avx512_f64 : &avx512_f32;
#endif
    if (isa == TMI_ISA_SCALAR || isa == TMI_ISA_NEON) return f64 ? &tmi_ukr_generic_f64 : &tmi_ukr_generic_f32;
    return NULL;
}

/* One product of every kernel of a table against plain sums. Catches an assembler, emulator or processor that does not do what we think. */
enum { CHECK_K = 7, CHECK_MAX = 64 };
static double element(const void *p, int64_t i, bool f64) { return f64 ? ((const double *)p)[i] : ((const float *)p)[i]; }
static void set_element(void *p, int64_t i, double x, bool f64)
{
    if (f64)
        ((double *)p)[i] = x;
    else
        ((float *)p)[i] = (float)x;
}

static bool kernel_agrees(tmi_ukr *kernel, int64_t rows, int64_t cols, bool f64)
{
    double a[TMI_UKR_MAX_ROWS * CHECK_K], b[CHECK_K * CHECK_MAX], c[TMI_UKR_MAX_ROWS * CHECK_MAX];
    int64_t es = f64 ? 8 : 4;
    for (int64_t i = 0; i < rows * CHECK_K; i++) set_element(a, i, (double)(i * 5 % 11 - 4), f64);
    for (int64_t i = 0; i < CHECK_K * cols; i++) set_element(b, i, (double)(i * 3 % 7 - 2), f64);
    for (int64_t i = 0; i < rows * cols; i++) set_element(c, i, (double)(i % 5), f64);
    tmi_ukr_args g = {.k = CHECK_K, .a = a, .a_rs = es, .a_cs = rows * es, .b = b, .b_rs = cols * es, .c = c, .c_rs = cols * es, .accumulate = 1};
    if (f64)
        g.alpha.d = 2;
    else
        g.alpha.f = 2;
    kernel(&g);
    for (int64_t i = 0; i < rows * cols; i++) {
        double want = (double)(i % 5);
        for (int64_t k = 0; k < CHECK_K; k++) want += 2 * element(a, k * rows + i / cols, f64) * element(b, k * cols + i % cols, f64);
        if (element(c, i, f64) != want) return false;
    }
    return true;
}

static bool table_agrees(const tmi_ukr_table *u, bool f64)
{
    static const int vectors[TMI_UKR_KINDS] = {1, 2, 4, 2};
    for (int kind = 0; kind < TMI_UKR_KINDS; kind++)
        for (int r = 1; r <= u->rows; r++) {
            tmi_ukr *kernel = u->kernels[kind * u->rows + r - 1];
            if (kernel && !kernel_agrees(kernel, r, (int64_t)vectors[kind] * u->lanes, f64)) return false;
        }
    return true;
}

/* The level in use, or the best one below whose kernels agree. */
static const tmi_ukr_table *choose(bool f64)
{
    tmi_isa isa = tmi_cpu()->isa;
    const tmi_ukr_table *u = tmi_ukr_at(isa, f64);
    if (isa == TMI_ISA_AVX512 && !table_agrees(u, f64)) {
        tmi_log(TMI_LOG_WARN, "AVX-512 matrix kernels disagree with plain sums on this machine; using AVX2");
        u = tmi_ukr_at(TMI_ISA_AVX2, f64);
    }
    return u ? u : tmi_ukr_at(TMI_ISA_SCALAR, f64);
}

static const tmi_ukr_table *chosen(_Atomic(const tmi_ukr_table *) *slot, bool f64)
{
    const tmi_ukr_table *u = atomic_load_explicit(slot, memory_order_acquire);
    if (__builtin_expect(!u, 0)) {
        u = choose(f64);
        atomic_store_explicit(slot, u, memory_order_release);
    }
    return u;
}

const tmi_ukr_table *tmi_ukr_f32(void)
{
    static _Atomic(const tmi_ukr_table *) slot;
    return chosen(&slot, false);
}

const tmi_ukr_table *tmi_ukr_f64(void)
{
    static _Atomic(const tmi_ukr_table *) slot;
    return chosen(&slot, true);
}

const tmk_gemm_aux *tmi_gemm_aux(void)
{
    switch (tmi_cpu()->isa) {
#if defined(TMK_HAVE_AVX2)
    case TMI_ISA_AVX2: return &tmk_gemm_aux_avx2;
    case TMI_ISA_AVX512: return &tmk_gemm_aux_avx512;
#endif
#if defined(TMK_HAVE_NEON)
    case TMI_ISA_NEON: return &tmk_gemm_aux_neon;
#endif
    default: return &tmk_gemm_aux_scalar;
    }
}
