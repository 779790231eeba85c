/* Matrix products in float and double (f16 and bf16 are packed as float). */
#include <string.h>

#include "base/pool.h"
#include "gemm_job.h"

#define T float
#define NAME(x) tmi_gemm_f32_##x
static void tmi_gemm_f32_set_alpha(tmi_ukr_args *g, float x) { g->alpha.f = x; }
static const tmi_ukr_table *tmi_gemm_f32_table(void) { return tmi_ukr_f32(); }
#include "gemm_real.tmpl.h"
#define T double
#define NAME(x) tmi_gemm_f64_##x
static void tmi_gemm_f64_set_alpha(tmi_ukr_args *g, double x) { g->alpha.d = x; }
static const tmi_ukr_table *tmi_gemm_f64_table(void) { return tmi_ukr_f64(); }
#include "gemm_real.tmpl.h"

void tmi_gemm_tile_f32(int64_t m, int64_t n, int64_t k, const float *a, int64_t rs, int64_t cs, const float *packed_b, int64_t packed_k, float *c,
                       int64_t ldc, float alpha, bool accumulate)
{
    tmi_gemm_f32_own_tile(m, n, k, a, rs, cs, packed_b, packed_k, c, ldc, alpha, accumulate);
}

void tmi_gemm_tile_f64(int64_t m, int64_t n, int64_t k, const double *a, int64_t rs, int64_t cs, const double *packed_b, int64_t packed_k, double *c,
                       int64_t ldc, double alpha, bool accumulate)
{
    tmi_gemm_f64_own_tile(m, n, k, a, rs, cs, packed_b, packed_k, c, ldc, alpha, accumulate);
}
