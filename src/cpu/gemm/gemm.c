/* Plans a matrix product and runs it over its batch. */
#include "gemm.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/pool.h"
#include "core/dtype.h"
#include "gemm_job.h"

enum { SMALL_WORK = 32768 };   /* bytes of workspace that the stack provides */

tmi_gemm tmi_gemm_init(tm_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    return (tmi_gemm){.dtype = dtype, .m = m, .n = n, .k = k, .alpha = tm_f64(1), .beta = tm_f64(0), .batch = 1};
}

static void use_dtype(tmi_gemm_job *j, tm_dtype dtype)
{
    const tmk_gemm_aux *x = tmi_gemm_aux();
    j->es = (int64_t)tmi_dtype_size(dtype);
    j->u = dtype == TM_F64 ? tmi_ukr_f64() : tmi_ukr_f32();
    j->pack = x->pack_f32, j->dot_rows = x->dot_rows_f32, j->axpy_rows = x->axpy_rows_f32;
    if (dtype == TM_F64) j->pack = x->pack_f64, j->dot_rows = x->dot_rows_f64, j->axpy_rows = x->axpy_rows_f64;
    if (dtype == TM_F16) j->pack = x->pack_f16, j->dot_rows = x->dot_rows_f16, j->axpy_rows = x->axpy_rows_f16;
    if (dtype == TM_BF16) j->pack = x->pack_bf16, j->dot_rows = x->dot_rows_bf16, j->axpy_rows = x->axpy_rows_bf16;
    if (dtype == TM_F16) j->narrow = x->narrow_f16, j->widen = x->widen_f16;
    if (dtype == TM_BF16) j->narrow = x->narrow_bf16, j->widen = x->widen_bf16;
}

/* C = A B or C^T = B^T A^T: whichever has adjacent columns in C, or few rows. */
static void set_sides(tmi_gemm_job *j, bool exchanged)
{
    const tmi_gemm *g = j->g;
    j->exchanged = exchanged;
    j->m = exchanged ? g->n : g->m;
    j->n = exchanged ? g->m : g->n;
    j->k = g->k;
    j->a_rs = exchanged ? g->b_cs : g->a_rs, j->a_cs = exchanged ? g->b_rs : g->a_cs;
    j->b_rs = exchanged ? g->a_cs : g->b_rs, j->b_cs = exchanged ? g->a_rs : g->b_cs;
    j->c_rs = exchanged ? g->c_cs : g->c_rs, j->c_cs = exchanged ? g->c_rs : g->c_cs;
}

static bool skinny_way(tmi_gemm_job *j)
{
    if (j->g->load_b || j->n < 8) return false;
    if (j->m <= 8 && j->b_rs == 1 && j->k >= 16)
        j->way = TMI_GEMM_DOT;
    else if (j->m <= 4 && j->b_cs == 1 && j->n >= 64)
        j->way = TMI_GEMM_AXPY;
    else
        return false;
    return true;
}

static void choose_sides(tmi_gemm_job *j)
{
    const tmi_gemm *g = j->g;
    set_sides(j, false);
    if (skinny_way(j)) return;
    set_sides(j, true);
    if (skinny_way(j)) return;
    bool columns_adjacent = g->c_cs == 1 || g->n == 1, rows_adjacent = g->c_rs == 1 || g->m == 1;
    set_sides(j, !columns_adjacent && rows_adjacent);
}

/* Even blocks of at most `most`, a multiple of `unit`; a last block less than a quarter larger than `most` is not cut. */
static int64_t even_block(int64_t n, int64_t most, int64_t unit)
{
    if (n <= most + most / 4) return n;
    int64_t blocks = tmi_ceil_div(n, most);
    return tmi_ceil_div(tmi_ceil_div(n, blocks), unit) * unit;
}

static void choose_blocks(tmi_gemm_job *j)
{
    int64_t ts = j->g->dtype == TM_F64 ? 8 : 4, nr = 2 * j->u->lanes, mr = j->u->rows;
    bool converted = j->narrow != NULL;
    j->kc = even_block(j->k, 256, 4);
    j->nc = even_block(j->n, 2097152 / ts / j->kc, nr);
    j->mc = even_block(j->m, 1048576 / ts / j->kc, mr);
    bool gathers_a = j->g->load_b && j->exchanged, gathers_b = j->g->load_b && !j->exchanged;
    j->pack_b = converted || gathers_b || j->b_cs != 1 || (j->m > 2 * mr && j->k * j->b_rs * ts > 16384);
    j->pack_a = converted || gathers_a || (j->n > 4 * nr && j->m > mr) || (j->a_cs != 1 && j->a_rs != 1);
    j->direct = !converted && (j->c_cs == 1 || j->n == 1) && (j->c_rs >= j->n || j->m == 1);
    /* about 2 million multiply-adds per task, a quarter of it where there would be few tasks, all of it where there is little work */
    int64_t side = tmi_ceil_div(j->m, 72) * tmi_ceil_div(j->n, 128) < 8 ? 2 : 1;
    bool little = (double)j->m * (double)j->n * (double)j->k < 4e5;
    j->task_rows = little ? j->m : tmi_ceil_div(72 / side, mr);
    j->task_cols = little ? j->n : tmi_ceil_div(128 / side, nr);
}

void tmi_gemm_plan(tmi_gemm_job *j, const tmi_gemm *g)
{
    memset(j, 0, sizeof *j);
    j->g = g;
    use_dtype(j, g->dtype);
    j->alpha = tmi_scalar_f64(g->alpha);
    j->beta = tmi_scalar_f64(g->beta);
    choose_sides(j);
    if (j->way == TMI_GEMM_BLOCK && j->k > 0) choose_blocks(j);
}

size_t tmi_gemm_work_bytes(const tmi_gemm_job *j)
{
    int64_t ts = j->g->dtype == TM_F64 ? 8 : 4, nr = 2 * j->u->lanes;
    if (j->k == 0 || j->alpha == 0) return 0;
    if (j->way != TMI_GEMM_BLOCK) return (size_t)(j->m * j->k * ts);
    int64_t a = j->pack_a ? j->mc * j->kc : 0, b = tmi_ceil_div(j->pack_b ? j->nc : 1, nr) * nr * j->kc, c = j->direct ? 0 : j->m * j->n;
    if (!j->pack_b && j->n % nr == 0) b = 0;
    return (size_t)((a + b + c) * ts + 128);
}

static void run_matrix(tmi_gemm_job *j, int64_t matrix)
{
    if (j->g->dtype == TM_F64)
        tmi_gemm_f64_matrix(j, matrix);
    else
        tmi_gemm_f32_matrix(j, matrix);
}

typedef struct batch_run {
    const tmi_gemm_job *job;
    char *work;
    size_t bytes;   /* per thread */
} batch_run;

static void run_batch_part(void *ctx, int64_t begin, int64_t end)
{
    const batch_run *r = ctx;
    tmi_gemm_job job = *r->job;
    job.work = r->work + (size_t)tmi_pool_thread() * r->bytes;
    for (int64_t i = begin; i < end; i++) run_matrix(&job, i);
}

/* Small matrices: each is one thread's, several to a chunk when they are tiny. */
static tm_status run_batch(const tmi_gemm_job *j, int64_t batch)
{
    batch_run r = {.job = j, .bytes = (tmi_gemm_work_bytes(j) + 127) & ~(size_t)127};
    size_t total = r.bytes * (size_t)tmi_pool_size();
    r.work = tmi_data_alloc(total + 64);
    if (!r.work) return TM_NOMEM;
    double cost = (double)j->m * (double)j->n * (double)(j->k + 4) + 500;
    int64_t grain = (int64_t)(200000 / cost) + 1;
    tmi_parallel_for(batch, grain, run_batch_part, &r);
    tmi_data_free(r.work, total + 64);
    return TM_OK;
}

static tm_status run_real(const tmi_gemm *g)
{
    _Alignas(64) char stack[SMALL_WORK];
    tmi_gemm_job j;
    tmi_gemm_plan(&j, g);
    int64_t batch = g->batch ? g->batch : 1;
    double work = (double)j.m * (double)j.n * (double)j.k;
    if (batch > 1 && (work < 1e6 || (batch >= 8 && work < 64e6))) return run_batch(&j, batch);
    size_t bytes = tmi_gemm_work_bytes(&j);
    j.work = bytes <= SMALL_WORK ? stack : tmi_data_alloc(bytes);
    if (!j.work) return TM_NOMEM;
    for (int64_t i = 0; i < batch; i++) run_matrix(&j, i);
    if (j.work != stack) tmi_data_free(j.work, bytes);
    return TM_OK;
}

tm_status tmi_gemm_run(const tmi_gemm *g)
{
    if (g->m <= 0 || g->n <= 0) return TM_OK;
    switch (g->dtype) {
    case TM_F32: case TM_F64: case TM_F16: case TM_BF16: return run_real(g);
    case TM_C64: case TM_C128: return tmi_gemm_complex(g);
    default: return tmi_gemm_integer(g);
    }
}

int64_t tmi_gemm_panel(tm_dtype dtype) { return 2 * (int64_t)(dtype == TM_F64 ? tmi_ukr_f64() : tmi_ukr_f32())->lanes; }

size_t tmi_gemm_packed_bytes(tm_dtype dtype, int64_t k, int64_t n)
{
    int64_t nr = tmi_gemm_panel(dtype);
    return (size_t)(tmi_ceil_div(n, nr) * nr * k * (dtype == TM_F64 ? 8 : 4));
}

void tmi_gemm_pack_b(tm_dtype src, int64_t k, int64_t n, const void *b, int64_t rs, int64_t cs, void *dst)
{
    tmi_gemm_job j = {0};
    use_dtype(&j, src);
    int64_t nr = 2 * j.u->lanes, ts = src == TM_F64 ? 8 : 4;
    for (int64_t q = 0; q < n; q += nr)
        j.pack((char *)dst + q * k * ts, tmi_min(nr, n - q), nr, k, (const char *)b + q * cs * j.es, cs, rs);
}
