/* Running sums, products, extremes and log-sum-exps. One thread owns a line and goes through it in order, in double for float32. */
#include <complex.h>
#include <math.h>

#include "base/pool.h"
#include "lines.h"
#include "op_bodies.h"
#include "scratch.h"

enum { SCAN_COLUMNS = 256 };

typedef struct scan {
    const void *in;
    void *out;
    int64_t *index;
    tmk_lines l;
    int64_t n_blocks;
} scan;

#define STEP_SUM(a, x) ((a) + (x))
#define STEP_PROD(a, x) ((a) * (x))
#define T float
#define A double
#define NAME(x) f32_sum_##x
#define START 0
#define STEP STEP_SUM
#include "scan_lines.tmpl.h"
#undef NAME
#undef START
#undef STEP
#define NAME(x) f32_prod_##x
#define START 1
#define STEP STEP_PROD
#include "scan_lines.tmpl.h"
#undef NAME
#undef START
#undef STEP
#undef T
#define T double
#define NAME(x) f64_sum_##x
#define START 0
#define STEP STEP_SUM
#include "scan_lines.tmpl.h"
#undef NAME
#undef START
#undef STEP
#define NAME(x) f64_prod_##x
#define START 1
#define STEP STEP_PROD
#include "scan_lines.tmpl.h"
#undef NAME
#undef START
#undef STEP
#undef T
#undef A
#define T uint64_t
#define A uint64_t
#define NAME(x) i64_sum_##x
#define START 0
#define STEP STEP_SUM
#include "scan_lines.tmpl.h"
#undef NAME
#undef START
#undef STEP
#define NAME(x) i64_prod_##x
#define START 1
#define STEP STEP_PROD
#include "scan_lines.tmpl.h"
#undef NAME
#undef START
#undef STEP
#undef T
#undef A
#define T tmi_c64
#define A tmi_c128
#define NAME(x) c64_sum_##x
#define START 0
#define STEP STEP_SUM
#include "scan_lines.tmpl.h"
#undef NAME
#undef START
#undef STEP
#define NAME(x) c64_prod_##x
#define START 1
#define STEP STEP_PROD
#include "scan_lines.tmpl.h"
#undef NAME
#undef START
#undef STEP
#undef T
#define T tmi_c128
#define NAME(x) c128_sum_##x
#define START 0
#define STEP STEP_SUM
#include "scan_lines.tmpl.h"
#undef NAME
#undef START
#undef STEP
#define NAME(x) c128_prod_##x
#define START 1
#define STEP STEP_PROD
#include "scan_lines.tmpl.h"
#undef NAME
#undef START
#undef STEP
#undef T
#undef A

/* log(e^a + e^x) without overflow; equal infinities stay. */
static inline double log_add(double a, double x)
{
    double lo = a < x || isnan(x) ? a : x, hi = a < x || isnan(x) ? x : a;
    return lo != hi || isfinite(lo) ? hi + log1p(exp(lo - hi)) : hi;
}
static inline tmi_c128 complex_log_add(tmi_c128 a, tmi_c128 x)
{
    if (creal(a) == -INFINITY) return x;
    tmi_c128 hi = creal(a) > creal(x) ? a : x, lo = creal(a) > creal(x) ? x : a;
    return hi + clog(1 + cexp(lo - hi));
}
#define T float
#define A double
#define NAME(x) f32_log_add_##x
#define START (-INFINITY)
#define STEP log_add
#include "scan_lines.tmpl.h"
#undef T
#undef NAME
#define T double
#define NAME(x) f64_log_add_##x
#include "scan_lines.tmpl.h"
#undef T
#undef NAME
#undef STEP
#undef A
#define STEP complex_log_add
#define A tmi_c128
#define T tmi_c64
#define NAME(x) c64_log_add_##x
#include "scan_lines.tmpl.h"
#undef T
#undef NAME
#define T tmi_c128
#define NAME(x) c128_log_add_##x
#include "scan_lines.tmpl.h"
#undef T
#undef NAME
#undef A
#undef STEP
#undef START

#define IS_NAN(x) isnan(x)
#define KEEPS_MAX(v, best) ((v) >= (best))
#define KEEPS_MIN(v, best) ((v) <= (best))
#define T float
#define KEEPS KEEPS_MAX
#define NAME(x) f32_max_##x
#include "scan_extremes.tmpl.h"
#undef KEEPS
#undef NAME
#define KEEPS KEEPS_MIN
#define NAME(x) f32_min_##x
#include "scan_extremes.tmpl.h"
#undef KEEPS
#undef NAME
#undef T
#define T double
#define KEEPS KEEPS_MAX
#define NAME(x) f64_max_##x
#include "scan_extremes.tmpl.h"
#undef KEEPS
#undef NAME
#define KEEPS KEEPS_MIN
#define NAME(x) f64_min_##x
#include "scan_extremes.tmpl.h"
#undef KEEPS
#undef NAME
#undef T
#undef IS_NAN
#define IS_NAN(x) false
#define T int64_t
#define KEEPS KEEPS_MAX
#define NAME(x) i64_max_##x
#include "scan_extremes.tmpl.h"
#undef KEEPS
#undef NAME
#define KEEPS KEEPS_MIN
#define NAME(x) i64_min_##x
#include "scan_extremes.tmpl.h"
#undef KEEPS
#undef NAME
#undef T

/* The type that lines of this dtype are held in, as an index into the tables below. */
static int kind_of(tm_dtype d, tm_dtype *held)
{
    static const tm_dtype kinds[] = {TM_F32, TM_F64, TM_I64, TM_C64, TM_C128};
    int k = d == TM_F64 ? 1 : d == TM_C64 ? 3 : d == TM_C128 ? 4 : tmi_is_float(d) ? 0 : 2;
    *held = kinds[k];
    return k;
}

static tm_status run_scan(tm_tensor *out, tm_tensor *indices, const tm_tensor *self, int64_t dim, tmi_range_fn *const *table)
{
    tm_dtype held;
    tmi_range_fn *fn = table[kind_of(out->dtype, &held)];
    tm_tensor *in = tmk_plain(self, held), *to = tmk_plain_out(out, held), *at = indices ? tmk_plain_out(indices, TM_I64) : NULL;
    tm_status status = in && to && (at || !indices) ? TM_OK : tm_error_status();
    if (status == TM_OK && out->numel > 0) {
        scan s = {.in = tmi_data(in), .out = tmi_data(to), .index = at ? tmi_data(at) : NULL, .l = tmk_lines_of(in, dim)};
        s.n_blocks = (s.l.inner + SCAN_COLUMNS - 1) / SCAN_COLUMNS;
        int64_t tasks = s.l.outer * (at ? s.l.inner : s.n_blocks);
        tmi_parallel_for(tasks, 1 + 16384 / (in->numel / tasks + 1), fn, &s);
    }
    if (in) tmi_release(in);
    if (at) status = tmk_plain_end(indices, at, status);
    return tmk_plain_end(out, to, status);
}

tm_status tmk_cumsum(tm_tensor *out, tm_tensor *self, tm_int dim, tm_dtype dtype)
{
    static tmi_range_fn *const table[] = {f32_sum_run, f64_sum_run, i64_sum_run, c64_sum_run, c128_sum_run};
    return run_scan(out, NULL, self, dim, table);
}
tm_status tmk_cumprod(tm_tensor *out, tm_tensor *self, tm_int dim, tm_dtype dtype)
{
    static tmi_range_fn *const table[] = {f32_prod_run, f64_prod_run, i64_prod_run, c64_prod_run, c128_prod_run};
    return run_scan(out, NULL, self, dim, table);
}
tm_status tmk_logcumsumexp(tm_tensor *out, tm_tensor *self, tm_int dim)
{
    static tmi_range_fn *const table[] = {f32_log_add_run, f64_log_add_run, NULL, c64_log_add_run, c128_log_add_run};
    return run_scan(out, NULL, self, dim, table);
}
tm_status tmk_cummax(tm_tensor *values, tm_tensor *indices, tm_tensor *self, tm_int dim)
{
    static tmi_range_fn *const table[] = {f32_max_run, f64_max_run, i64_max_run, NULL, NULL};
    return run_scan(values, indices, self, dim, table);
}
tm_status tmk_cummin(tm_tensor *values, tm_tensor *indices, tm_tensor *self, tm_int dim)
{
    static tmi_range_fn *const table[] = {f32_min_run, f64_min_run, i64_min_run, NULL, NULL};
    return run_scan(values, indices, self, dim, table);
}
