/* The generator against PyTorch's streams: hashes of what the Python model of them gives (random_expected.py), state bytes, errors. */
#include "core/random.h"

#include "core/generator.h"
#include "harness.h"

typedef enum what { UNIFORM, NORMAL, STRIDED_NORMAL, BERNOULLI, RANGE, FULL, PERMUTATION, EXPONENTIAL, GEOMETRIC, LOG_NORMAL, CAUCHY } what;
typedef struct exact_row {
    what what;
    tm_dtype dtype;
    int64_t n;
    double a, b;
    uint64_t seed, hash, state_hash;
} exact_row;
typedef struct close_row {
    what what;
    tm_dtype dtype;
    int64_t n;
    double a, b;
    uint64_t seed;
    double last[3];   /* the last three numbers */
    int left;
} close_row;
#include "random_expected.h"

static uint64_t fnv(const void *data, size_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++) h = (h ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t state_hash(tm_generator *g)
{
    uint8_t bytes[TMI_GENERATOR_STATE_BYTES];
    tmi_generator_get_state(g, bytes);
    return fnv(bytes, sizeof bytes);
}

static tm_status draw(tm_generator *g, what w, void *out, int64_t n, tm_dtype d, double a, double b)
{
    int64_t to = (int64_t)b;
    switch (w) {
    case UNIFORM: return tmi_random_uniform(g, out, n, d, a, b);
    case NORMAL: return tmi_random_normal(g, out, n, d, a, b, true);
    case STRIDED_NORMAL: return tmi_random_normal(g, out, n, d, a, b, false);
    case BERNOULLI: return tmi_random_bernoulli(g, out, n, d, a);
    case RANGE: return tmi_random_range(g, out, n, d, (int64_t)a, &to);
    case FULL: return tmi_random_full(g, out, n, d);
    case PERMUTATION: return tmi_random_permutation(g, out, n, d);
    case EXPONENTIAL: return tmi_random_exponential(g, out, n, d, a);
    case GEOMETRIC: return tmi_random_geometric(g, out, n, d, a);
    case LOG_NORMAL: return tmi_random_log_normal(g, out, n, d, a, b);
    default: return tmi_random_cauchy(g, out, n, d, a, b);
    }
}

static void test_exact(void **state)
{
    (void)state;
    static char out[8 * 4096];
    for (size_t i = 0; i < sizeof exact_rows / sizeof *exact_rows; i++) {
        const exact_row *r = &exact_rows[i];
        tm_generator *g = tm_generator_new(r->seed);
        assert_ok(draw(g, r->what, out, r->n, r->dtype, r->a, r->b));
        if (fnv(out, (size_t)r->n * tm_dtype_size(r->dtype)) != r->hash) fail_msg("row %zu: other numbers", i);
        if (state_hash(g) != r->state_hash) fail_msg("row %zu: other state", i);
        tm_generator_release(g);
    }
}

/* Numbers that go through libm: within an ulp or two. */
static void test_close(void **state)
{
    (void)state;
    static char out[8 * 4096];
    for (size_t i = 0; i < sizeof close_rows / sizeof *close_rows; i++) {
        const close_row *r = &close_rows[i];
        tm_generator *g = tm_generator_new(r->seed);
        assert_ok(draw(g, r->what, out, r->n, r->dtype, r->a, r->b));
        for (int k = 0; k < 3; k++) {
            size_t at = (size_t)(r->n - 3 + k) * tm_dtype_size(r->dtype);
            double got = tmi_scalar_f64(tmi_load_scalar(out + at, r->dtype)), tol = r->dtype == TM_F32 ? 3e-7 : 1e-15;
            if (!(fabs(got - r->last[k]) <= tol * fabs(r->last[k]))) fail_msg("row %zu: wanted %.17g, got %.17g", i, r->last[k], got);
        }
        assert_int_equal(g->left, r->left);
        tm_generator_release(g);
    }
}

/* The published first numbers of seed 0. */
static void test_known_numbers(void **state)
{
    (void)state;
    float f[16];
    int64_t i[10];
    tm_manual_seed(0);
    assert_ok(tmi_random_uniform(NULL, f, 3, TM_F32, 0, 1));
    assert_true(f[0] == 0.49625658988952637f && f[1] == 0.7682217955589294f && f[2] == 0.08847743272781372f);
    tm_manual_seed(0);
    assert_ok(tmi_random_normal(NULL, f, 16, TM_F32, 0, 1, true));
    assert_true(f[0] == -1.1258398294448853f && f[1] == -1.152360200881958f && f[2] == -0.2505785822868347f);
    tm_manual_seed(0);
    assert_ok(tmi_random_permutation(NULL, i, 10, TM_I64));
    const int64_t order[] = {4, 1, 7, 5, 3, 9, 0, 8, 6, 2};
    assert_memory_equal(i, order, sizeof order);
    assert_int_equal(tm_generator_initial_seed(tm_default_generator()), 0);
}

/* Baseline loops and vector loops give the same bits. */
static void test_loops_agree(void **state)
{
    (void)state;
    tm_generator *g = tm_generator_new(3);
    const tmi_random_loops *fast = tmi_random_loops_get(), *base = tmi_random_loops_base();
    uint32_t w[TMI_MT_WORDS];
    float a[TMI_MT_WORDS], b[TMI_MT_WORDS];
    for (int round = 0; round < 200; round++) {
        tmi_mt_words(g, w, TMI_MT_WORDS);
        if (round == 0) memset(w, 0, 64), w[3] = 0xffffff, w[12] = 0xffffff;   /* the ends of the unit interval */
        fast->uniform_f32(w, a, 619, -0.3f, 1.0f, 0.7f);
        base->uniform_f32(w, b, 619, -0.3f, 1.0f, 0.7f);
        assert_memory_equal(a, b, 619 * sizeof *a);
        for (int k = 0; k < TMI_MT_WORDS; k += 16) {
            fast->normal16_f32(w + k, a + k, 0.5f, 2);
            base->normal16_f32(w + k, b + k, 0.5f, 2);
        }
        assert_memory_equal(a, b, sizeof a);
    }
    tm_generator_release(g);
}

static void test_state(void **state)
{
    (void)state;
    uint8_t saved[TMI_GENERATOR_STATE_BYTES];
    double a[40], b[40];
    tm_generator *g = tm_generator_new(99);
    assert_ok(tmi_random_normal(g, a, 7, TM_F64, 0, 1, true));   /* leaves a cached normal behind */
    tmi_generator_get_state(g, saved);
    tm_generator *copy = tmi_generator_clone(g);
    assert_ok(tmi_random_normal(g, a, 9, TM_F64, 0, 1, true));
    assert_ok(tmi_random_normal(copy, b, 9, TM_F64, 0, 1, true));
    assert_memory_equal(a, b, 9 * sizeof *a);
    assert_ok(tmi_generator_set_state(g, saved, sizeof saved));
    assert_ok(tmi_random_normal(g, b, 9, TM_F64, 0, 1, true));
    assert_memory_equal(a, b, 9 * sizeof *a);
    assert_int_equal(tmi_generator_set_state(g, saved, 10), TM_INVALID);
    assert_error(TM_INVALID, "Expected a CPUGeneratorImplState of size 5056 but found the input RNG state size to be 10");
    memset(saved, 0, sizeof saved);
    assert_int_equal(tmi_generator_set_state(g, saved, sizeof saved), TM_INVALID);
    assert_error(TM_INVALID, "Invalid mt19937 state");
    tm_generator_release(copy);
    tm_generator_release(g);
}

/* Bulk and single draws hand out the same words, wherever a block begins. */
static void test_bulk(void **state)
{
    (void)state;
    uint32_t w[2000];
    tm_generator *a = tm_generator_new(5), *b = tm_generator_new(5);
    for (int64_t n = 0; n < 2000; n = n * 2 + 1) {
        tmi_mt_words(a, w, n);
        for (int64_t i = 0; i < n; i++) assert_int_equal(w[i], tmi_mt_next(b));
        assert_int_equal(state_hash(a), state_hash(b));
        assert_int_equal(tmi_mt_next(a), tmi_mt_next(b));
    }
    tm_generator_release(a);
    tm_generator_release(b);
}

static void test_multinomial(void **state)
{
    (void)state;
    const float w[] = {0.1f, 0.2f, 0.3f, 0.05f, 0.35f, 0.7f};
    int64_t a[6], counts[6] = {0}, many[3000];
    tm_generator *g = tm_generator_new(1);
    assert_ok(tmi_random_multinomial(g, w, 1, 6, TM_F32, 6, false, a));
    for (int i = 0; i < 6; i++) counts[a[i]]++;
    for (int i = 0; i < 6; i++) assert_int_equal(counts[i], 1);
    assert_ok(tmi_random_multinomial(g, w, 1, 6, TM_F32, 3000, true, many));
    memset(counts, 0, sizeof counts);
    for (int i = 0; i < 3000; i++) counts[many[i]]++;
    for (int i = 0; i < 6; i++) assert_true(fabs((double)counts[i] / 3000 - w[i] / 1.7) < 0.04);
    const float bad[] = {1, -1};
    assert_int_equal(tmi_random_multinomial(g, bad, 1, 2, TM_F32, 1, false, a), TM_INVALID);
    assert_error(TM_INVALID, "probability tensor contains either `inf`, `nan` or element < 0");
    tm_generator_release(g);
}

static void test_errors(void **state)
{
    (void)state;
    float f[4];
    int64_t five = 5;
    uint64_t before = state_hash(tm_default_generator());
    assert_int_equal(tmi_random_uniform(NULL, f, 3, TM_F32, 1, 0), TM_INVALID);
    assert_error(TM_INVALID, "uniform_ expects to return a [from, to) range, but found from=1 > to=0");
    assert_int_equal(tmi_random_uniform(NULL, f, 3, TM_I32, 0, 1), TM_NOT_IMPLEMENTED);
    assert_error(TM_NOT_IMPLEMENTED, "\"check_uniform_bounds\" not implemented for 'Int'");
    assert_int_equal(tmi_random_normal(NULL, f, 3, TM_F32, 0, -1, true), TM_INVALID);
    assert_error(TM_INVALID, "normal expects std >= 0.0, but found std -1");
    assert_int_equal(tmi_random_bernoulli(NULL, f, 3, TM_F32, 1.5), TM_INVALID);
    assert_error(TM_INVALID, "bernoulli_ expects p to be in [0, 1], but got p=1.5");
    assert_int_equal(tmi_random_range(NULL, f, 1, TM_I32, 5, &five), TM_INVALID);
    assert_error(TM_INVALID, "random_ expects 'from' to be less than 'to', but got from=5 >= to=5");
    assert_int_equal(tmi_random_range(NULL, f, 1, TM_U8, -1, &five), TM_INVALID);
    assert_error(TM_INVALID, "from is out of bounds for unsigned char");
    assert_int_equal(state_hash(tm_default_generator()), before);   /* a refused call draws nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exact), cmocka_unit_test(test_close), cmocka_unit_test(test_known_numbers),
                                       cmocka_unit_test(test_loops_agree), cmocka_unit_test(test_state), cmocka_unit_test(test_bulk),
                                       cmocka_unit_test(test_multinomial), cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
