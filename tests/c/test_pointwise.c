/* The pointwise kernels below the operators: layouts, element types, tails, threads, ISA levels, errors, copies and fills. */
#include "cpu/pointwise.h"

#include "harness.h"

#include "base/cpuinfo.h"
#include "cpu/kernels/kernel_tables.h"

static tm_tensor *counting(int ndim, const int64_t *sizes, tm_dtype dtype)
{
    tm_tensor *t = tm_tensor_empty(ndim, sizes, dtype);
    assert_made(t);
    for (int64_t i = 0; i < t->numel; i++)
        tmi_store_scalar((char *)tmi_data(t) + i * (int64_t)tmi_dtype_size(dtype), dtype, tm_i64(i % 50 - 20));
    return t;
}
static double value_at(const tm_tensor *t, int64_t i)   /* i in index order */
{
    int64_t at = 0;
    for (int d = t->ndim - 1; d >= 0; d--) {
        at += i % t->sizes[d] * t->strides[d];
        i /= t->sizes[d];
    }
    return tmi_scalar_f64(tmi_load_scalar((char *)tmi_data(t) + at * (int64_t)tmi_dtype_size(t->dtype), t->dtype));
}
static tm_status add(tm_tensor *a, tm_tensor *b, tm_tensor *out, tm_dtype common)
{
    tmi_operand in[2] = {{.t = a}, {.t = b}};
    return tmk_pointwise(TMK_PW_ADD, 2, in, 1, &out, common, NULL, 0);
}

/* a + b with `a` of every layout, against element access. */
static void check_add(tm_tensor *a, tm_tensor *b, tm_tensor *out, tm_dtype common)
{
    assert_ok(add(a, b, out, common));
    for (int64_t i = 0; i < out->numel; i++)
        if (value_at(out, i) != value_at(a, i) + value_at(b, i)) fail_msg("element %lld: %g", (long long)i, value_at(out, i));
}

static void test_layouts(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {1, 7}, {3, 5}, {5, 3}, {40, 70}, {130, 97}, {600, 2}, {2, 600}, {64, 2100}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        int64_t m = shapes[s][0], n = shapes[s][1];
        tm_tensor *plain = counting(SIZES(m, n), TM_F32), *base = counting(SIZES(n, m), TM_F32), *wide = counting(SIZES(m, 2 * n), TM_F32);
        tm_tensor *ints = counting(SIZES(m, n), TM_I64), *halves = counting(SIZES(m, n), TM_BF16);
        tm_tensor *turned = tmi_view_new(base, 2, (const int64_t[]){m, n}, (const int64_t[]){1, m}, 0);
        tm_tensor *stepped = tmi_view_new(wide, 2, (const int64_t[]){m, n}, (const int64_t[]){2 * n, 2}, 1);
        tm_tensor *row = tmi_view_new(plain, 2, (const int64_t[]){m, n}, (const int64_t[]){0, 1}, 0);
        tm_tensor *column = tmi_view_new(plain, 2, (const int64_t[]){m, n}, (const int64_t[]){n, 0}, 0);
        tm_tensor *ins[] = {plain, turned, stepped, row, column, ints, halves};
        tm_tensor *result = tm_tensor_empty(SIZES(m, n), TM_F32), *space = tm_tensor_empty(SIZES(n, m), TM_F64);
        tm_tensor *result_turned = tmi_view_new(space, 2, (const int64_t[]){m, n}, (const int64_t[]){1, m}, 0);
        for (int i = 0; i < 7; i++)
            for (int k = 0; k < 7; k++) {
                check_add(ins[i], ins[k], result, TM_F32);
                check_add(ins[i], ins[k], result_turned, TM_F32);
            }
        tm_tensor *all[] = {plain, base, wide, ints, halves, turned, stepped, row, column, result, space, result_turned};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) tm_release(all[i]);
    }
}

static void test_many_dims(void **state)
{
    (void)state;
    int64_t sizes[20], strides[20];
    for (int d = 0; d < 20; d++) sizes[d] = d % 5 == 0 ? 3 : 1;
    tm_tensor *a = counting(20, sizes, TM_F32), *out = tm_tensor_empty(20, sizes, TM_F32);
    for (int d = 0; d < 20; d++) strides[d] = d == 0 ? 1 : d == 5 ? 3 : d == 10 ? 9 : d == 15 ? 27 : 0;
    tm_tensor *turned = tmi_view_new(a, 20, sizes, strides, 0);
    check_add(a, turned, out, TM_F32);
    tm_release(a), tm_release(turned), tm_release(out);
}

static void test_types(void **state)
{
    (void)state;
    static const tm_dtype all[] = {TM_U8, TM_I8, TM_I16, TM_I32, TM_I64, TM_F16, TM_F32, TM_F64, TM_C64, TM_C128, TM_BF16, TM_U16, TM_U32, TM_U64};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tm_tensor *a = tm_tensor_empty(SIZES(75), all[i]), *out = tm_tensor_empty(SIZES(75), all[i]);
        assert_ok(tmk_fill(a, tm_i64(7)));
        check_add(a, a, out, all[i]);
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) {   /* 7 survives any conversion */
            tm_tensor *b = tm_tensor_empty(SIZES(75), all[k]);
            assert_ok(tmk_copy(b, a));
            for (int64_t x = 0; x < 75; x++) assert_true(value_at(b, x) == 7);
            tm_release(b);
        }
        tm_release(a), tm_release(out);
    }
}

static void test_float_to_int(void **state)
{
    (void)state;
    float x[] = {-1.5f, 300.7f, NAN, INFINITY, -INFINITY, 3e9f, -3e9f, 1e19f, 2.5f};
    static const double i32[] = {-1, 300, -0x1p31, -0x1p31, -0x1p31, -0x1p31, -0x1p31, -0x1p31, 2};
    static const double u8[] = {255, 44, 0, 0, 0, 0, 0, 0, 2}, boolean[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const double i64[] = {-1, 300, -0x1p63, -0x1p63, -0x1p63, 3e9, -3e9, -0x1p63, 2};
    struct { tm_dtype to; const double *want; } rows[] = {{TM_I32, i32}, {TM_U8, u8}, {TM_BOOL, boolean}, {TM_I64, i64}};
    tm_tensor *a = make_f32(x, SIZES(9));
    for (int r = 0; r < 4; r++) {
        tm_tensor *b = tm_tensor_empty(SIZES(9), rows[r].to);
        assert_ok(tmk_copy(b, a));
        for (int64_t i = 0; i < 9; i++) assert_true(value_at(b, i) == rows[r].want[i]);
        tm_release(b);
    }
    tm_release(a);
}

static void test_numbers_and_parameters(void **state)
{
    (void)state;
    tm_tensor *a = make_f32((float[]){1, 2, 3, 4, 5, 6, 7, 8, 9}, SIZES(9)), *out = tm_tensor_empty(SIZES(9), TM_F32);
    tmi_operand in[3] = {{.t = a}, {.s = tm_f64(0.5)}, {.t = a}};
    tm_scalar p[2] = {tm_i64(4), tm_f64(6)};
    assert_ok(tmk_pointwise(TMK_PW_ADD, 2, in, 1, &out, TM_F32, p, 1));
    assert_f32(out, (float[]){3, 4, 5, 6, 7, 8, 9, 10, 11}, 9, 0);
    assert_ok(tmk_pointwise(TMK_PW_SUB, 2, in, 1, &out, TM_F32, p, 1));
    assert_f32(out, (float[]){-1, 0, 1, 2, 3, 4, 5, 6, 7}, 9, 0);
    assert_ok(tmk_pointwise(TMK_PW_CLAMP, 1, in, 1, &out, TM_F32, p, 2));
    assert_f32(out, (float[]){4, 4, 4, 4, 5, 6, 6, 6, 6}, 9, 0);
    in[1].s = tm_i64(2);
    assert_ok(tmk_pointwise(TMK_PW_POW, 2, in, 1, &out, TM_F32, NULL, 0));
    assert_f32(out, (float[]){1, 4, 9, 16, 25, 36, 49, 64, 81}, 9, 0);
    tm_tensor *mask = tm_tensor_empty(SIZES(9), TM_BOOL);
    assert_ok(tmk_pointwise(TMK_PW_GT, 2, in, 1, &mask, TM_F32, NULL, 0));
    tmi_operand pick[3] = {{.t = mask}, {.t = a}, {.s = tm_f64(-1)}};
    assert_ok(tmk_pointwise(TMK_PW_WHERE, 3, pick, 1, &out, TM_F32, NULL, 0));
    assert_f32(out, (float[]){-1, -1, 3, 4, 5, 6, 7, 8, 9}, 9, 0);
    tm_release(a), tm_release(out), tm_release(mask);
}

static void test_errors(void **state)
{
    (void)state;
    tm_tensor *a = counting(SIZES(4), TM_I32), *zero = tm_tensor_empty(SIZES(4), TM_I32), *out = tm_tensor_empty(SIZES(4), TM_I32);
    assert_ok(tmk_fill(zero, tm_i64(0)));
    tmi_operand in[2] = {{.t = a}, {.t = zero}};
    assert_int_equal(tmk_pointwise(TMK_PW_DIV_FLOOR, 2, in, 1, &out, TM_I32, NULL, 0), TM_INVALID);
    assert_error(TM_INVALID, "ZeroDivisionError");
    assert_int_equal(tmk_pointwise(TMK_PW_EXP, 1, in, 1, &out, TM_I32, NULL, 0), TM_NOT_IMPLEMENTED);
    assert_error(TM_NOT_IMPLEMENTED, "\"exp_cpu\" not implemented for 'Int'");
    in[1] = (tmi_operand){.s = tm_i64(-1)};
    assert_int_equal(tmk_pointwise(TMK_PW_POW, 2, in, 1, &out, TM_I32, NULL, 0), TM_INVALID);
    assert_error(TM_INVALID, "Integers to negative integer powers are not allowed.");
    tm_tensor *same = tmi_view_new(out, 1, (const int64_t[]){4}, (const int64_t[]){0}, 0);
    in[1] = in[0];
    assert_int_equal(tmk_pointwise(TMK_PW_ADD, 2, in, 1, &same, TM_I32, NULL, 0), TM_INVALID);
    assert_error(TM_INVALID, "more than one element of the written-to tensor refers to a single memory location");
    tm_tensor *low = tmi_view_new(a, 1, (const int64_t[]){3}, (const int64_t[]){1}, 0), *high = tmi_view_new(a, 1, (const int64_t[]){3}, (const int64_t[]){1}, 1);
    assert_int_equal(tmk_copy(high, low), TM_INVALID);
    assert_error(TM_INVALID, "some elements of the input tensor and the written-to tensor refer to a single memory location");
    tm_tensor *all[] = {a, zero, out, same, low, high};
    for (int i = 0; i < 6; i++) tm_release(all[i]);
}

/* The same bits whatever the number of threads. */
static void test_threads(void **state)
{
    (void)state;
    static const int kernels[] = {TMK_PW_EXP, TMK_PW_TANH, TMK_PW_SIN, TMK_PW_GELU};
    int64_t n = 700001;
    tm_tensor *a = tm_tensor_empty(SIZES(n), TM_F32), *first = tm_tensor_empty(SIZES(n), TM_F32), *again = tm_tensor_empty(SIZES(n), TM_F32);
    for (int64_t i = 0; i < n; i++) ((float *)tmi_data(a))[i] = (float)(i % 9973) * 0.004f - 20;
    tmi_operand in = {.t = a};
    int before = tm_num_threads();
    for (int k = 0; k < 4; k++) {
        static const int threads[] = {1, 2, 3, 7};
        for (int t = 0; t < 4; t++) {
            tm_tensor *out = t == 0 ? first : again;
            assert_ok(tm_set_num_threads(threads[t]));
            assert_ok(tmk_pointwise(kernels[k], 1, &in, 1, &out, TM_F32, NULL, 0));
            assert_memory_equal(tmi_data(first), tmi_data(out), (size_t)n * 4);
        }
    }
    assert_ok(tm_set_num_threads(before));
    tm_release(a), tm_release(first), tm_release(again);
}

/* Every f32 and f64 kernel gives the same bits at the scalar level and at the best one. */
static void fill_test_values(char *p, tm_dtype type, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        double u = (double)(seed >> 11) * 0x1p-53, x = (u - 0.5) * (i % 3 == 0 ? 200 : i % 3 == 1 ? 2 : 10);
        if (i % 17 == 0) x = i % 34 ? INFINITY : -0.0;
        if (i % 29 == 0) x = NAN;
        tmi_store_scalar(p + i * (int64_t)tmi_dtype_size(type), type, tm_f64(x));
    }
}
static void compare_levels(tmk_loop *const *a, tmk_loop *const *b, tm_dtype type)
{
    enum { N = 1003 };
    static char in[3][N * 8], mine[N * 16], other[N * 16];
    tmk_params p = {.p = {{.f = 0.25}, {.f = 1.5}, {.f = 0.75}}};
    int64_t item = (int64_t)tmi_dtype_size(type);
    for (int k = 0; k < TMK_PW_COUNT; k++) {
        if (k == TMK_PW_POLYGAMMA || !a[k]) continue;
        for (int i = 0; i < 3; i++) fill_test_values(in[i], type, N, (uint64_t)(k * 3 + i));
        if (k == TMK_PW_WHERE)
            for (int i = 0; i < N; i++) in[0][i] = i % 3 == 0;
        int64_t steps[4] = {item, k == TMK_PW_WHERE ? 1 : item, item, item};
        memset(mine, 0, sizeof mine), memset(other, 0, sizeof other);
        a[k]((char *[]){mine, in[0], in[1], in[2]}, steps, N, &p);
        b[k]((char *[]){other, in[0], in[1], in[2]}, steps, N, &p);
        for (int i = 0; i < (int)sizeof mine; i += (int)item) {
            bool nan = type == TM_F32 ? isnan(*(float *)(mine + i)) && isnan(*(float *)(other + i)) : isnan(*(double *)(mine + i)) && isnan(*(double *)(other + i));
            if (!nan && memcmp(mine + i, other + i, (size_t)item) != 0) fail_msg("kernel %d, %s, byte %d", k, tmi_dtypes[type].name, i);
        }
    }
}
static void test_levels(void **state)
{
    (void)state;
#ifdef TMK_HAVE_AVX2
    if (tmi_cpu()->avx2) {
        compare_levels(tmk_loops_f32_scalar, tmk_loops_f32_avx2, TM_F32);
        compare_levels(tmk_loops_f64_scalar, tmk_loops_f64_avx2, TM_F64);
    }
#endif
#ifdef TMK_HAVE_AVX512
    if (tmi_cpu()->avx512) {
        compare_levels(tmk_loops_f32_scalar, tmk_loops_f32_avx512, TM_F32);
        compare_levels(tmk_loops_f64_scalar, tmk_loops_f64_avx512, TM_F64);
    }
#endif
#ifdef TMK_HAVE_NEON
    compare_levels(tmk_loops_f32_scalar, tmk_loops_f32_neon, TM_F32);
    compare_levels(tmk_loops_f64_scalar, tmk_loops_f64_neon, TM_F64);
#endif
}

/* Large enough to be written past the cache, and to an address that is not aligned. */
static void test_large(void **state)
{
    (void)state;
    int64_t n = (9 << 20) + 13;
    tm_tensor *a = tm_tensor_empty(SIZES(n), TM_F32), *space = tm_tensor_empty(SIZES(n + 1), TM_F32);
    tm_tensor *out = tmi_view_new(space, 1, &n, (const int64_t[]){1}, 1);
    for (int64_t i = 0; i < n; i++) ((float *)tmi_data(a))[i] = (float)(i & 0xffff);
    assert_ok(add(a, a, out, TM_F32));
    for (int64_t i = 0; i < n; i++)
        if (((float *)tmi_data(out))[i] != 2 * (float)(i & 0xffff)) fail_msg("element %lld", (long long)i);
    assert_ok(tmk_copy(out, a));
    assert_memory_equal(tmi_data(out), tmi_data(a), (size_t)n * 4);
    tm_release(a), tm_release(space), tm_release(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts), cmocka_unit_test(test_many_dims), cmocka_unit_test(test_types), cmocka_unit_test(test_float_to_int),
        cmocka_unit_test(test_numbers_and_parameters), cmocka_unit_test(test_errors), cmocka_unit_test(test_threads), cmocka_unit_test(test_levels),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests_name("pointwise", tests, NULL, NULL);
}
