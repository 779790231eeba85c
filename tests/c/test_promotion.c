/* Type promotion against PyTorch's answers for every pair of dtypes and every rank of operand. */
#include "core/tensor_state.h"

#include "harness.h"
#include "promotion_expected.h"

static const tm_device cpu = {TM_CPU, -1};

static tm_tensor *operand(tm_dtype d, bool dims)
{
    const int64_t two = 2;
    tm_tensor *t = tmi_tensor_new(dims ? 1 : 0, &two, NULL, d, cpu);
    assert_made(t);
    return t;
}

static void check(const char *what, int row, int column, int wanted, tm_status s, int got)
{
    if (wanted == -2) wanted = TM_C64;   /* complex32 in PyTorch */
    if (s != TM_OK) got = -1;
    if (got != wanted) fail_msg("%s: %s, %d: wanted %d, got %d", what, tmi_dtypes[row].name, column, wanted, got);
    assert_int_equal(tm_error_status(), s);
    tm_error_clear();
}

static void test_table(void **state)
{
    (void)state;
    for (int a = 0; a < TM_DTYPE_COUNT; a++)
        for (int b = 0; b < TM_DTYPE_COUNT; b++) {
            tm_dtype r = tm_dtype_promote((tm_dtype)a, (tm_dtype)b);
            check("promote", a, b, promote_table[a][b], tm_error_status(), (int)r);
            assert_int_equal(tmi_can_cast((tm_dtype)a, (tm_dtype)b), can_cast_rows[a] >> b & 1);
        }
}

static void test_tensors(void **state)
{
    (void)state;
    for (int ranks = 0; ranks < 4; ranks++)
        for (int a = 0; a < TM_DTYPE_COUNT; a++)
            for (int b = 0; b < TM_DTYPE_COUNT; b++) {
                tmi_promotion p = TMI_PROMOTION_INIT;
                tm_tensor *x = operand((tm_dtype)a, ranks & 1), *y = operand((tm_dtype)b, ranks & 2);
                int wanted = ranks == 1 ? dim_zero_table[a][b] : ranks == 2 ? dim_zero_table[b][a] : promote_table[a][b];
                tm_dtype out = TM_DTYPE_COUNT;
                tm_status s = tmi_promote_tensor(&p, x);
                if (s == TM_OK) s = tmi_promote_tensor(&p, y);
                if (s == TM_OK) s = tmi_promoted(&p, &out);
                check("tensors", a, b, wanted, s, (int)out);
                tmi_release(x);
                tmi_release(y);
            }
}

static void test_numbers(void **state)
{
    (void)state;
    const tm_scalar numbers[] = {tm_bool(true), tm_i64(1), tm_f64(1.5), tm_c128(0, 1)};
    for (int dims = 0; dims < 2; dims++)
        for (int wrapped = 0; wrapped < 2; wrapped++)
            for (int a = 0; a < TM_DTYPE_COUNT; a++)
                for (int k = 0; k < 4; k++) {
                    tmi_promotion p = TMI_PROMOTION_INIT;
                    tm_tensor *x = operand((tm_dtype)a, dims), *n = tmi_scalar_tensor(numbers[k], tmi_scalar_dtype(numbers[k]), true);
                    tm_dtype out = TM_DTYPE_COUNT;
                    assert_ok(tmi_promote_tensor(&p, x));
                    assert_ok(wrapped ? tmi_promote_tensor(&p, n) : tmi_promote_scalar(&p, numbers[k]));
                    tm_status s = tmi_promoted(&p, &out);
                    check("numbers", a, k, dims ? dim_number_table[a][k] : zero_number_table[a][k], s, (int)out);
                    tmi_release(x);
                    tmi_release(n);
                }
}

static void test_default_dtype(void **state)
{
    (void)state;
    tmi_promotion p = TMI_PROMOTION_INIT;
    tm_dtype out;
    assert_ok(tm_set_default_dtype(TM_F64));
    assert_ok(tmi_promote_scalar(&p, tm_f64(1)));
    assert_ok(tmi_promoted(&p, &out));
    assert_int_equal(out, TM_F64);
    assert_int_equal(tmi_scalar_dtype(tm_c128(0, 1)), TM_C128);
    assert_ok(tm_set_default_dtype(TM_F32));
    assert_int_equal(tm_set_default_dtype(TM_I32), TM_TYPE);
    assert_error(TM_TYPE, "only floating-point types are supported as the default type");
}

static void test_messages(void **state)
{
    (void)state;
    tm_dtype_promote(TM_U16, TM_I32);
    assert_error(TM_INVALID, "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote UInt16 and Int");
    tm_dtype_promote(TM_F8_E4M3FN, TM_F32);
    assert_error(TM_INVALID, "Promotion for Float8 Types is not supported, attempted to promote Float8_e4m3fn and Float");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_tensors), cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_default_dtype), cmocka_unit_test(test_messages)};
    return cmocka_run_group_tests_name("promotion", tests, NULL, NULL);
}
