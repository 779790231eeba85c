/* Matrix products of integers (plain loops, a row at a time) and of complex numbers (four real products over strided parts). */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/pool.h"
#include "core/dtype.h"
#include "gemm_job.h"

enum { ROW = 256 };

/* Signed types wrap like unsigned ones of their width. */
#define T uint8_t
#define NAME(x) u8_##x
#include "gemm_integer.tmpl.h"
#define T uint16_t
#define NAME(x) u16_##x
#include "gemm_integer.tmpl.h"
#define T uint32_t
#define NAME(x) u32_##x
#include "gemm_integer.tmpl.h"
#define T uint64_t
#define NAME(x) u64_##x
#include "gemm_integer.tmpl.h"

tm_status tmi_gemm_integer(const tmi_gemm *g)
{
    if (!tmi_is_integral(g->dtype)) return tmi_fail(TM_NOT_IMPLEMENTED, "\"addmm_impl_cpu_\" not implemented for '%s'", tmi_dtypes[g->dtype].type_name);
    tmi_range_fn *fn = u64_rows;
    if (tmi_dtype_size(g->dtype) == 1) fn = u8_rows;
    if (tmi_dtype_size(g->dtype) == 2) fn = u16_rows;
    if (tmi_dtype_size(g->dtype) == 4) fn = u32_rows;
    int64_t grain = 100000 / (g->n * (g->k + 1)) + 1;
    tmi_parallel_for(g->m * (g->batch ? g->batch : 1), grain, fn, (void *)(uintptr_t)g);
    return TM_OK;
}

/* out (m x n, real) = sign * part of A times part of B, added when `add`. */
static tm_status real_product(const tmi_gemm *g, const char *a, const char *b, void *out, double sign, bool add)
{
    tmi_gemm r = tmi_gemm_init(g->dtype == TM_C64 ? TM_F32 : TM_F64, g->m, g->n, g->k);
    r.a = a, r.b = b, r.c = out;
    r.a_rs = 2 * g->a_rs, r.a_cs = 2 * g->a_cs, r.b_rs = 2 * g->b_rs, r.b_cs = 2 * g->b_cs, r.c_rs = g->n, r.c_cs = 1;
    r.alpha = tm_f64(sign);
    r.beta = tm_f64(add);
    return tmi_gemm_run(&r);
}

static void complex_parts(tm_scalar s, double *re, double *im)
{
    *re = s.tag == TM_SCALAR_C128 ? s.v.c.re : tmi_scalar_f64(s);
    *im = s.tag == TM_SCALAR_C128 ? s.v.c.im : 0;
}

static double part_of(const void *p, int64_t i, bool wide) { return wide ? ((const double *)p)[i] : ((const float *)p)[i]; }

/* C = alpha (re + i im) + beta C */
static void combine(const tmi_gemm *g, char *c, const void *re, const void *im)
{
    bool wide = g->dtype == TM_C128;
    double ar, ai, br, bi;
    complex_parts(g->alpha, &ar, &ai);
    complex_parts(g->beta, &br, &bi);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double x = part_of(re, i * g->n + j, wide), y = part_of(im, i * g->n + j, wide);
            void *p = c + (i * g->c_rs + j * g->c_cs) * (wide ? 16 : 8);
            double p0 = ar == 1 && ai == 0 ? x : ar * x - ai * y, p1 = ar == 1 && ai == 0 ? y : ar * y + ai * x;
            if (br != 0 || bi != 0) {
                double c0 = part_of(p, 0, wide), c1 = part_of(p, 1, wide);
                p0 += br * c0 - bi * c1, p1 += br * c1 + bi * c0;
            }
            if (wide)
                ((double *)p)[0] = p0, ((double *)p)[1] = p1;
            else
                ((float *)p)[0] = (float)p0, ((float *)p)[1] = (float)p1;
        }
}

static tm_status complex_matrix(const tmi_gemm *g, int64_t batch, char *re, char *im)
{
    int64_t es = (int64_t)tmi_dtype_size(g->dtype);
    const char *a = (const char *)g->a + batch * g->a_bs * es, *b = (const char *)g->b + batch * g->b_bs * es;
    TMI_TRY(real_product(g, a, b, re, 1, false));
    TMI_TRY(real_product(g, a + es / 2, b + es / 2, re, -1, true));
    TMI_TRY(real_product(g, a, b + es / 2, im, 1, false));
    TMI_TRY(real_product(g, a + es / 2, b, im, 1, true));
    combine(g, (char *)g->c + batch * g->c_bs * es, re, im);
    return TM_OK;
}

tm_status tmi_gemm_complex(const tmi_gemm *g)
{
    size_t bytes = (size_t)(g->m * g->n) * tmi_dtype_size(g->dtype);
    char *work = tmi_data_alloc(bytes);
    if (!work) return TM_NOMEM;
    tm_status status = TM_OK;
    for (int64_t i = 0; i < (g->batch ? g->batch : 1) && !status; i++) status = complex_matrix(g, i, work, work + bytes / 2);
    tmi_data_free(work, bytes);
    return status;
}
