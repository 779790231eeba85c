/* Matrix products against plain sums in double: random shapes, strides, dtypes, alpha and beta, every instruction set of the machine,
 * and the same bits for 1, 2, 3 and 7 threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "core/dtype.h"
#include "cpu/gemm/gemm.h"
#include "cpu/gemm/gemm_kernels.h"

static uint64_t state = 88172645463325252u;
static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
static int64_t between(int64_t lo, int64_t hi) { return lo + (int64_t)(draw() % (uint64_t)(hi - lo + 1)); }

typedef struct problem {
    tmi_gemm g;
    void *a, *b, *c, *c0;
    size_t a_bytes, b_bytes, c_bytes;
    int64_t c_count;
} problem;

static void fill(void *p, int64_t n, tm_dtype d)
{
    for (int64_t i = 0; i < n; i++) {
        double x = (double)(draw() % 2001) / 1000.0 - 1.0;
        tm_scalar s = tmi_is_integral(d) ? tm_i64((int64_t)(draw() % 19) - (d == TM_U8 ? 0 : 9)) : tmi_is_complex(d) ? tm_c128(x, 1 - x * x) : tm_f64(x);
        tmi_store_scalar((char *)p + (size_t)i * tmi_dtype_size(d), d, s);
    }
}

/* Row-major, column-major, padded, or every other element. */
static int64_t lay_out(int64_t rows, int64_t cols, int64_t *rs, int64_t *cs)
{
    int64_t pad = between(0, 3), step = between(0, 5) == 0 ? 2 : 1;
    if (draw() & 1)
        *cs = step, *rs = cols * step + pad;
    else
        *rs = step, *cs = rows * step + pad;
    return (rows ? rows : 1) * (cols ? cols : 1) * 2 + 3 * (rows + cols) + 8;
}

static problem make(tm_dtype d, int64_t m, int64_t n, int64_t k, int64_t batch)
{
    static const double alphas[] = {1, 1, 2, 0, -0.5}, betas[] = {0, 0, 1, 2, -0.25};
    problem p = {.g = tmi_gemm_init(d, m, n, k)};
    tmi_gemm *g = &p.g;
    size_t es = tmi_dtype_size(d);
    g->a_bs = lay_out(m, k, &g->a_rs, &g->a_cs), g->b_bs = lay_out(k, n, &g->b_rs, &g->b_cs), g->c_bs = lay_out(m, n, &g->c_rs, &g->c_cs);
    p.a_bytes = (size_t)(g->a_bs * batch) * es, p.b_bytes = (size_t)(g->b_bs * batch) * es, p.c_bytes = (size_t)(g->c_bs * batch) * es;
    p.c_count = g->c_bs * batch;
    p.a = malloc(p.a_bytes), p.b = malloc(p.b_bytes), p.c = malloc(p.c_bytes), p.c0 = malloc(p.c_bytes);
    fill(p.a, g->a_bs * batch, d);
    fill(p.b, g->b_bs * batch, d);
    fill(p.c0, p.c_count, d);
    double alpha = alphas[draw() % 5], beta = betas[draw() % 5];
    g->alpha = tmi_is_integral(d) ? tm_i64((int64_t)(alpha * 4)) : tm_f64(alpha);
    g->beta = tmi_is_integral(d) ? tm_i64((int64_t)(beta * 4)) : tm_f64(beta);
    g->a = p.a, g->b = p.b, g->c = p.c, g->batch = batch;
    if (batch > 1 && between(0, 3) == 0) g->b_bs = 0;
    return p;
}

static void drop(problem *p) { free(p->a), free(p->b), free(p->c), free(p->c0); }

static void run(problem *p)
{
    memcpy(p->c, p->c0, p->c_bytes);
    assert_int_equal(tmi_gemm_run(&p->g), TM_OK);
}

static tm_scalar at(const void *p, int64_t i, tm_dtype d) { return tmi_load_scalar((const char *)p + (size_t)i * tmi_dtype_size(d), d); }

static double tolerance(tm_dtype d, int64_t k)
{
    double eps = d == TM_F64 || d == TM_C128 ? 1e-15 : d == TM_BF16 ? 4e-3 : d == TM_F16 ? 1e-3 : 3e-7;
    return eps * (4 + sqrt((double)k)) * 4;
}

static void check_element(const problem *p, int64_t z, int64_t i, int64_t j)
{
    const tmi_gemm *g = &p->g;
    tm_dtype d = g->dtype;
    int64_t at_c = z * g->c_bs + i * g->c_rs + j * g->c_cs;
    tm_scalar got = at(p->c, at_c, d), old = at(p->c0, at_c, d);
    if (tmi_is_integral(d)) {
        int64_t sum = 0;
        for (int64_t k = 0; k < g->k; k++)
            sum += tmi_scalar_i64(at(p->a, z * g->a_bs + i * g->a_rs + k * g->a_cs, d)) * tmi_scalar_i64(at(p->b, z * g->b_bs + k * g->b_rs + j * g->b_cs, d));
        int64_t want = g->alpha.v.i * sum + g->beta.v.i * tmi_scalar_i64(old), cut = 0;
        tmi_store_scalar(&cut, d, tm_i64(want));
        assert_int_equal(tmi_scalar_i64(got), tmi_scalar_i64(at(&cut, 0, d)));
        return;
    }
    double re = 0, im = 0, alpha = g->alpha.v.f, beta = g->beta.v.f;
    for (int64_t k = 0; k < g->k; k++) {
        tm_scalar x = at(p->a, z * g->a_bs + i * g->a_rs + k * g->a_cs, d), y = at(p->b, z * g->b_bs + k * g->b_rs + j * g->b_cs, d);
        if (tmi_is_complex(d))
            re += x.v.c.re * y.v.c.re - x.v.c.im * y.v.c.im, im += x.v.c.re * y.v.c.im + x.v.c.im * y.v.c.re;
        else
            re += tmi_scalar_f64(x) * tmi_scalar_f64(y);
    }
    double o0 = tmi_is_complex(d) ? old.v.c.re : tmi_scalar_f64(old), o1 = tmi_is_complex(d) ? old.v.c.im : 0;
    double g0 = tmi_is_complex(d) ? got.v.c.re : tmi_scalar_f64(got), g1 = tmi_is_complex(d) ? got.v.c.im : 0;
    double e0 = fabs(g0 - (alpha * re + beta * o0)), e1 = fabs(g1 - (alpha * im + beta * o1)), t = tolerance(d, g->k);
    if (e0 > t || e1 > t)
        fail_msg("%s %ldx%ldx%ld batch %ld (%ld, %ld): error %g %g", tmi_dtypes[d].name, (long)g->m, (long)g->n, (long)g->k, (long)z, (long)i, (long)j, e0, e1);
}

/* Elements of C's memory that are not C must stay. */
static void check_around(const problem *p)
{
    const tmi_gemm *g = &p->g;
    size_t es = tmi_dtype_size(g->dtype);
    char *mark = calloc((size_t)p->c_count, 1);
    for (int64_t z = 0; z < g->batch; z++)
        for (int64_t i = 0; i < g->m; i++)
            for (int64_t j = 0; j < g->n; j++) mark[z * g->c_bs + i * g->c_rs + j * g->c_cs] = 1;
    for (int64_t i = 0; i < p->c_count; i++)
        if (!mark[i]) assert_memory_equal((char *)p->c + (size_t)i * es, (char *)p->c0 + (size_t)i * es, es);
    free(mark);
}

static void check(problem *p)
{
    const tmi_gemm *g = &p->g;
    run(p);
    double total = (double)(g->batch * g->m * g->n) * (double)(g->k + 1);
    for (int64_t z = 0; z < g->batch; z++)
        for (int64_t i = 0; i < g->m; i++)
            for (int64_t j = 0; j < g->n; j++)
                if (total < 3e5 || i % 61 == 0 || j % 67 == 0) check_element(p, z, i, j);
    check_around(p);
}

static const tm_dtype dtypes[] = {TM_F32, TM_F32, TM_F64, TM_BF16, TM_F16, TM_I64, TM_I32, TM_I16, TM_I8, TM_U8, TM_C64, TM_C128};

static void test_random(void **s)
{
    (void)s;
    for (int round = 0; round < 400; round++) {
        tm_dtype d = dtypes[draw() % 12];
        int64_t top = round % 4 == 0 ? 70 : 20, batch = between(0, 4) == 0 ? between(2, 5) : 1;
        problem p = make(d, between(0, top), between(0, top), between(0, top), batch);
        check(&p);
        drop(&p);
    }
}

static void test_shapes(void **s)
{
    (void)s;
    static const int64_t shapes[][3] = {{1, 1, 1}, {1, 300, 257}, {300, 1, 257}, {2, 700, 40}, {4, 513, 33}, {8, 130, 100}, {5, 64, 1}, {6, 16, 256}, {12, 32, 300},
        {72, 128, 256}, {73, 129, 257}, {150, 70, 600}, {31, 2100, 9}, {1100, 20, 30}, {257, 300, 270}, {64, 64, 64}, {0, 4, 4}, {4, 0, 4}, {4, 4, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int t = 0; t < 8; t++) {
            problem p = make(dtypes[t % 5], shapes[i][0], shapes[i][1], shapes[i][2], 1);
            check(&p);
            drop(&p);
        }
}

static void test_threads(void **s)
{
    (void)s;
    static const int threads[] = {1, 2, 3, 7};
    int before = tm_num_threads();
    for (int round = 0; round < 12; round++) {
        problem p = make(dtypes[round % 5], between(1, 400), between(1, 400), between(1, 700), round % 5 == 4 ? 12 : 1);
        void *first = malloc(p.c_bytes);
        for (int t = 0; t < 4; t++) {
            tm_set_num_threads(threads[t]);
            run(&p);
            if (t == 0) memcpy(first, p.c, p.c_bytes);
            assert_memory_equal(first, p.c, p.c_bytes);
        }
        free(first);
        drop(&p);
    }
    tm_set_num_threads(before);
}

/* beta 0 ignores what C holds; alpha 0 ignores A and B. */
static void test_nan(void **s)
{
    (void)s;
    float a[64], b[64], c[64];
    for (int i = 0; i < 64; i++) a[i] = b[i] = 1, c[i] = NAN;
    tmi_gemm g = tmi_gemm_init(TM_F32, 8, 8, 8);
    g.a = a, g.b = b, g.c = c, g.a_rs = g.b_rs = g.c_rs = 8, g.a_cs = g.b_cs = g.c_cs = 1;
    assert_int_equal(tmi_gemm_run(&g), TM_OK);
    for (int i = 0; i < 64; i++) assert_true(c[i] == 8);
    for (int i = 0; i < 64; i++) a[i] = NAN;
    g.alpha = tm_f64(0), g.beta = tm_f64(1);
    assert_int_equal(tmi_gemm_run(&g), TM_OK);
    for (int i = 0; i < 64; i++) assert_true(c[i] == 8);
}

/* Denormals vanish inside a tile, and the caller's mode comes back. */
static void test_denormals(void **s)
{
    (void)s;
    float a[64], b[64], c[64];
    for (int i = 0; i < 64; i++) a[i] = 1e-40f, b[i] = 1, c[i] = 0;
    tmi_gemm g = tmi_gemm_init(TM_F32, 8, 8, 8);
    g.a = a, g.b = b, g.c = c, g.a_rs = g.b_rs = g.c_rs = 8, g.a_cs = g.b_cs = g.c_cs = 1;
    assert_int_equal(tmi_gemm_run(&g), TM_OK);
#if defined(__x86_64__) || defined(__aarch64__)
    for (int i = 0; i < 64; i++) assert_true(c[i] == 0);
#endif
    volatile float tiny = 1e-40f;
    volatile float half = tiny * 0.5f;
    assert_true(half != 0);
}

typedef struct seen { int64_t count; float bias[512]; } seen;
static void add_bias(void *ctx, void *tile, int64_t rs, int64_t cs, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    (void)row;
    seen *e = ctx;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) ((float *)tile)[i * rs + j * cs] += e->bias[col + j];
    __atomic_fetch_add(&e->count, rows * cols, __ATOMIC_RELAXED);
}

/* Each element passes the epilogue once, with its own column. */
static void test_epilogue(void **s)
{
    (void)s;
    for (int round = 0; round < 40; round++) {
        tm_dtype d = round % 3 == 2 ? TM_BF16 : TM_F32;
        problem p = make(d, between(1, 150), between(1, 300), round % 4 ? between(1, 600) : 300, 1);
        seen e = {0};
        for (int i = 0; i < 512; i++) e.bias[i] = (float)i * 0.25f;
        run(&p);
        void *plain = malloc(p.c_bytes);
        memcpy(plain, p.c, p.c_bytes);
        p.g.epilogue = add_bias, p.g.epilogue_ctx = &e;
        run(&p);
        assert_int_equal(e.count, p.g.m * p.g.n);
        for (int64_t i = 0; i < p.g.m; i++)
            for (int64_t j = 0; j < p.g.n; j++) {
                int64_t x = i * p.g.c_rs + j * p.g.c_cs;
                double want = tmi_scalar_f64(at(plain, x, d)) + e.bias[j], got = tmi_scalar_f64(at(p.c, x, d));
                assert_true(fabs(got - want) <= (d == TM_BF16 ? 1e-2 * (fabs(want) + 8) : 1e-4));
            }
        free(plain);
        drop(&p);
    }
}

/* Every micro-kernel that this machine can run. */
static void test_kernels(void **s)
{
    (void)s;
    static const int vectors[TMI_UKR_KINDS] = {1, 2, 4, 2};
    for (int isa = 0; isa < TMI_ISA_COUNT; isa++) {
        if (isa > (int)tmi_cpu()->best) continue;
        const tmi_ukr_table *u = tmi_ukr_at((tmi_isa)isa, false);
        for (int kind = 0; u && kind < TMI_UKR_KINDS; kind++)
            for (int r = 1; r <= u->rows; r++) {
                tmi_ukr *kernel = u->kernels[kind * u->rows + r - 1];
                if (!kernel) continue;
                for (int64_t k = 0; k < 11; k++) {
                    float a[14 * 16], b[16 * 64], c[14 * 64];
                    int64_t cols = (int64_t)vectors[kind] * u->lanes;
                    fill(a, 14 * 16, TM_F32), fill(b, 16 * 64, TM_F32), fill(c, 14 * 64, TM_F32);
                    tmi_ukr_args g = {.k = k, .a = a, .a_rs = 4, .a_cs = 4 * r, .b = b, .b_rs = 4 * cols, .c = c, .c_rs = 4 * cols, .alpha.f = 1};
                    kernel(&g);
                    for (int64_t i = 0; i < r; i++)
                        for (int64_t j = 0; j < cols; j++) {
                            double want = 0;
                            for (int64_t x = 0; x < k; x++) want += (double)a[x * r + i] * b[x * cols + j];
                            assert_true(fabs(want - c[i * cols + j]) < 1e-5);
                        }
                }
            }
    }
}

/* Packed B and tiles, as attention uses them. */
static void test_tile(void **s)
{
    (void)s;
    for (int round = 0; round < 30; round++) {
        int64_t m = between(1, 40), n = between(1, 70), k = between(0, 60);
        float *a = malloc((size_t)(m * k + 1) * 4), *b = malloc((size_t)(k * n + 1) * 4), *c = malloc((size_t)(m * n) * 4);
        float *packed = tmi_data_alloc(tmi_gemm_packed_bytes(TM_F32, k, n));
        fill(a, m * k, TM_F32), fill(b, k * n, TM_F32), fill(c, m * n, TM_F32);
        tmi_gemm_pack_b(TM_F32, k, n, b, 1, k, packed);   /* B given as its transpose */
        tmi_gemm_tile_f32(m, n, k, a, k, 1, packed, k, c, n, 0.5f, false);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double want = 0;
                for (int64_t x = 0; x < k; x++) want += 0.5 * a[i * k + x] * b[j * k + x];
                assert_true(fabs(want - c[i * n + j]) < 1e-4);
            }
        tmi_data_free(packed, tmi_gemm_packed_bytes(TM_F32, k, n));
        free(a), free(b), free(c);
    }
}

/* Each allocation may fail: an error, no crash. */
static void test_no_memory(void **s)
{
    (void)s;
    problem p = make(TM_BF16, 100, 200, 300, 1);
    tmi_alloc_fail_at(1, 1);
    assert_int_equal(tmi_gemm_run(&p.g), TM_NOMEM);
    tmi_alloc_fail_at(0, 0);
    assert_int_equal(tm_error_status(), TM_NOMEM);
    tm_error_clear();
    drop(&p);
}

static void test_bool(void **s)
{
    (void)s;
    bool x[4] = {0};
    tmi_gemm g = tmi_gemm_init(TM_BOOL, 2, 2, 1);
    g.a = g.b = x, g.c = x;
    assert_int_equal(tmi_gemm_run(&g), TM_NOT_IMPLEMENTED);
    assert_string_equal(tm_get_error()->message, "\"addmm_impl_cpu_\" not implemented for 'Bool'");
    tm_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels), cmocka_unit_test(test_random), cmocka_unit_test(test_shapes), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_nan), cmocka_unit_test(test_denormals), cmocka_unit_test(test_epilogue), cmocka_unit_test(test_tile),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_bool)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
