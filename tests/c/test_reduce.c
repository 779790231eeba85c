/* The reduction engine: values against a double-precision loop, and the same bits for any number of threads, any layout and every
 * instruction set that this machine has. */
#include "harness.h"

#include <stdlib.h>

#include "cpu/kernels/row_ops.h"
#include "cpu/reduce.h"
#include "base/cpuinfo.h"

static uint32_t seed = 1;
static float draw(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)(int32_t)seed / 2147483648.0f;
}

static tm_tensor *random_f32(int ndim, const int64_t *sizes)
{
    tm_tensor *t = tm_tensor_empty(ndim, sizes, TM_F32);
    assert_made(t);
    for (int64_t i = 0; i < tm_tensor_numel(t); i++) ((float *)tm_tensor_data(t))[i] = draw();
    return t;
}

static void reduce_f32(const tm_tensor *t, uint64_t mask, tmk_fold fold, float *out)
{
    tmk_reduction r = {.acc = TMK_ACC_F32, .fold = fold, .map = TMK_MAP_ID};
    assert_ok(tmk_reduce(t, mask, &r, out));
}

/* Sum over the masked dims by plain loops in double. */
static void expected_sums(const tm_tensor *t, uint64_t mask, double *out)
{
    int64_t n_out = tmk_output_count(t, mask), index[8] = {0};
    for (int64_t o = 0; o < n_out; o++) out[o] = 0;
    for (int64_t i = 0; i < t->numel; i++) {
        int64_t at = 0, o = 0;
        for (int d = 0; d < t->ndim; d++) {
            at += index[d] * t->strides[d];
            if (!(mask >> d & 1)) o = o * t->sizes[d] + index[d];
        }
        out[o] += (double)((const float *)tmi_data(t))[at];
        for (int d = t->ndim - 1; d >= 0; d--) {
            if (++index[d] < t->sizes[d]) break;
            index[d] = 0;
        }
    }
}

static void check_sums(const tm_tensor *t, uint64_t mask)
{
    int64_t n = tmk_output_count(t, mask);
    float *got = malloc((size_t)(n + 1) * sizeof *got), *again = malloc((size_t)(n + 1) * sizeof *again);
    double *want = malloc((size_t)(n + 1) * sizeof *want);
    expected_sums(t, mask, want);
    static const int threads[] = {1, 2, 3, 7};
    for (int k = 0; k < 4; k++) {
        assert_ok(tm_set_num_threads(threads[k]));
        reduce_f32(t, mask, TMK_FOLD_SUM, k == 0 ? got : again);
        if (k) assert_memory_equal(got, again, (size_t)n * sizeof *got);
    }
    double terms = (double)tmk_reduced_count(t, mask);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 4e-6 * sqrt(terms) + 1e-6 * fabs(want[i]))) fail_msg("sum %lld of %lld terms: wanted %.9g, got %.9g", (long long)i, (long long)terms, want[i], (double)got[i]);
    free(got);
    free(again);
    free(want);
}

static void test_sums_of_many_shapes(void **state)
{
    static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {1, 1, 31}, {2, 3, 33}, {1, 1, 4095}, {1, 1, 4097}, {1, 2, 12289}, {200, 3, 2}, {4100, 1, 3},
                                        {9000, 1, 70}, {17, 129, 5}, {1, 5000, 100}, {3, 1, 40000}, {2, 1100, 1}, {64, 64, 64}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        tm_tensor *t = random_f32(3, shapes[s]);
        for (uint64_t mask = 0; mask < 8; mask++) check_sums(t, mask);
        tm_release(t);
    }
}

/* The order is the logical one, so a permuted or widened layout of the same numbers gives the same bits. */
static void test_layout_does_not_matter(void **state)
{
    const int64_t sizes[3] = {40, 130, 9};
    tm_tensor *t = random_f32(3, sizes);
    const int64_t orders[][3] = {{2, 0, 1}, {1, 2, 0}, {0, 2, 1}, {2, 1, 0}};
    float want[40 * 130 * 9], got[40 * 130 * 9];
    for (int k = 0; k < 4; k++) {
        int64_t strides[3], step = 2;   /* every second element of memory */
        for (int j = 2; j >= 0; j--) {
            strides[orders[k][j]] = step;
            step *= sizes[orders[k][j]];
        }
        float *memory = malloc((size_t)step * sizeof *memory);
        for (int64_t i = 0; i < t->numel; i++) {
            int64_t a = i / (130 * 9), b = i / 9 % 130, c = i % 9;
            memory[a * strides[0] + b * strides[1] + c * strides[2]] = ((const float *)tmi_data(t))[i];
        }
        tm_tensor *view = tm_tensor_wrap(3, sizes, strides, TM_F32, memory, NULL, NULL);
        assert_made(view);
        for (uint64_t mask = 0; mask < 8; mask++) {
            int64_t n = tmk_output_count(t, mask);
            reduce_f32(t, mask, TMK_FOLD_SUM, want);
            reduce_f32(view, mask, TMK_FOLD_SUM, got);
            assert_memory_equal(want, got, (size_t)n * sizeof *want);
        }
        tm_release(view);
        free(memory);
    }
    tm_release(t);
}

static void test_broadcast_and_empty(void **state)
{
    float one = 2;
    const int64_t sizes[2] = {5, 3}, strides[2] = {0, 0}, none[2] = {0, 3};
    tm_tensor *t = tm_tensor_wrap(2, sizes, strides, TM_F32, &one, NULL, NULL);
    float out[5];
    reduce_f32(t, 2, TMK_FOLD_SUM, out);
    for (int i = 0; i < 5; i++) assert_true(out[i] == 6);
    reduce_f32(t, 3, TMK_FOLD_PROD, out);
    assert_true(out[0] == 32768);
    tm_release(t);
    t = tm_tensor_empty(2, none, TM_F32);
    reduce_f32(t, 1, TMK_FOLD_SUM, out);
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == 0);
    reduce_f32(t, 1, TMK_FOLD_PROD, out);
    assert_true(out[0] == 1);
    tm_release(t);
}

static void test_nan_wins(void **state)
{
    float x[100], out;
    for (int at = 0; at < 100; at += 7) {
        for (int i = 0; i < 100; i++) x[i] = (float)i;
        x[at] = NAN;
        tm_tensor *t = make_f32(x, SIZES(100));
        reduce_f32(t, 1, TMK_FOLD_MAX, &out);
        assert_true(isnan(out));
        reduce_f32(t, 1, TMK_FOLD_MIN, &out);
        assert_true(isnan(out));
        tm_release(t);
    }
}

/* Every table that this machine can run against the scalar one. */
static void compare_tables(const tmk_fold_table *a, const tmk_fold_table *b, const tmk_row_table *ra, const tmk_row_table *rb)
{
    enum { N = 5000 };
    static float x[N], y[N], out_a[N], out_b[N];
    for (int i = 0; i < N; i++) {
        x[i] = draw() * 20;
        y[i] = draw();
    }
    for (int f = 0; f < TMK_FOLD_COUNT; f++) {
        float la[TMK_LANES], lb[TMK_LANES], ta, tb;
        for (int i = 0; i < TMK_LANES; i++) la[i] = lb[i] = 1;
        a->row[TMK_ACC_F32][f](y, 4001, la);
        b->row[TMK_ACC_F32][f](y, 4001, lb);
        a->tree[TMK_ACC_F32][f](la, &ta);
        b->tree[TMK_ACC_F32][f](lb, &tb);
        assert_memory_equal(&ta, &tb, sizeof ta);
    }
    assert_true(ra->exp_sum(x, N, 3, out_a) == rb->exp_sum(x, N, 3, out_b));
    assert_memory_equal(out_a, out_b, sizeof out_a);
    assert_true(ra->dot(x, y, N) == rb->dot(x, y, N));
    assert_true(ra->square_dev(x, N, 0.25) == rb->square_dev(x, N, 0.25));
    ra->normalize(x, N, 0.5, 1.5, y, x, out_a);
    rb->normalize(x, N, 0.5, 1.5, y, x, out_b);
    assert_memory_equal(out_a, out_b, sizeof out_a);
}

static void test_instruction_sets_agree(void **state)
{
    compare_tables(&tmk_fold_table_scalar, &tmk_fold_table_scalar, &tmk_row_table_f32_scalar, &tmk_row_table_f32_scalar);
#if defined(__x86_64__)
    if (tmi_cpu()->avx2) compare_tables(&tmk_fold_table_scalar, &tmk_fold_table_avx2, &tmk_row_table_f32_scalar, &tmk_row_table_f32_avx2);
    if (tmi_cpu()->avx512) compare_tables(&tmk_fold_table_scalar, &tmk_fold_table_avx512, &tmk_row_table_f32_scalar, &tmk_row_table_f32_avx512);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_of_many_shapes), cmocka_unit_test(test_layout_does_not_matter), cmocka_unit_test(test_broadcast_and_empty),
        cmocka_unit_test(test_nan_wins), cmocka_unit_test(test_instruction_sets_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
