/* The base layer: error record, logging, arena, arrays, maps, string buffers, CPU facts. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/cpuinfo.h"
#include "base/fail.h"
#include "base/logging.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "harness.h"

#include <pthread.h>
#include <stdio.h>

static void test_first_error_wins(void **state)
{
    (void)state;
    assert_int_equal(tm_error_status(), TM_OK);
    assert_int_equal(tmi_fail(TM_SHAPE, "first %d", 1), TM_SHAPE);
    assert_int_equal(tm_error_set(TM_INVALID, "second"), TM_INVALID);
    assert_int_equal(tm_error_status(), TM_SHAPE);
    assert_string_equal(tm_get_error()->message, "first 1");
    assert_non_null(tm_get_error()->file);
    tmi_error_name_op("add");
    tmi_error_name_op("mul");
    assert_string_equal(tm_get_error()->op, "add");
    tm_error_clear();
    assert_int_equal(tm_error_status(), TM_OK);
    assert_int_equal(tm_get_error()->status, TM_OK);
    assert_string_equal(tm_get_error()->message, "");
}

static void test_long_message_is_valid_utf8(void **state)
{
    (void)state;
    char text[2100] = "";
    for (int i = 0; i < 1000; i++) strcat(text, i ? "\u00e9" : "x");   /* odd start: the cut falls inside a character */
    tm_error_set(TM_INVALID, "%s", text);
    size_t n = strlen(tm_get_error()->message);
    assert_true(n >= sizeof tm_get_error()->message - 3 && n % 2 == 1);
    tm_error_clear();
}

static void test_put_aside(void **state)
{
    (void)state;
    tm_error saved, empty;
    tm_error_set(TM_VALUE, "outer");
    tmi_error_save(&saved);
    assert_int_equal(tm_error_status(), TM_OK);
    tmi_error_restore(&saved);
    assert_string_equal(tm_get_error()->message, "outer");
    tmi_error_save(&saved);
    tm_error_set(TM_INDEX, "inner");
    tmi_error_restore(&saved);   /* the callback's own error wins */
    assert_error(TM_INDEX, "inner");
    tmi_error_save(&empty);
    tmi_error_restore(&empty);
    assert_int_equal(tm_error_status(), TM_OK);
}

static void *other_thread(void *status)
{
    *(tm_status *)status = tm_error_status();
    tm_error_set(TM_IO, "of the other thread");
    return NULL;
}

static void test_errors_belong_to_threads(void **state)
{
    (void)state;
    tm_status seen = TM_INTERNAL;
    pthread_t t;
    tm_error_set(TM_TYPE, "here");
    pthread_create(&t, NULL, other_thread, &seen);
    pthread_join(t, NULL);
    assert_int_equal(seen, TM_OK);
    assert_error(TM_TYPE, "here");
}

static void test_status_names(void **state)
{
    (void)state;
    assert_string_equal(tm_status_name(TM_SHAPE), "TM_SHAPE");
    assert_string_equal(tm_status_text(TM_OK), "no error");
    assert_string_equal(tm_status_name((tm_status)12345), "TM_UNKNOWN");
}

static void collect(void *ctx, tmi_log_level level, const char *message)
{
    char *out = ctx;
    sprintf(out + strlen(out), "%d%s;", (int)level, message);
}

static void test_logging(void **state)
{
    (void)state;
    char out[200] = "";
    tmi_log_set(collect, out, TMI_LOG_WARN);
    tmi_log(TMI_LOG_ERROR, "e%d", 1);
    tmi_log(TMI_LOG_WARN, "w");
    tmi_log(TMI_LOG_INFO, "i");
    tmi_log_set(NULL, NULL, TMI_LOG_DEBUG);
    tmi_log(TMI_LOG_ERROR, "gone");
    assert_string_equal(out, "0e1;1w;");
}

static void test_arena(void **state)
{
    (void)state;
    tmi_arena a;
    tmi_arena_init(&a);
    char *first = tmi_arena_strdup(&a, "pine");
    for (size_t n = 1; n < 200000; n = n * 3 + 1) {
        char *p = tmi_arena_alloc(&a, n);
        assert_int_equal((uintptr_t)p % 16, 0);
        memset(p, 0x5a, n);
    }
    assert_string_equal(first, "pine");
    tmi_arena_free(&a);
    assert_non_null(tmi_arena_alloc(&a, 8));   /* usable again */
    tmi_arena_free(&a);
}

static void test_vec(void **state)
{
    (void)state;
    TMI_VEC(int) v = {0};
    for (int i = 0; i < 1000; i++) assert_true(tmi_vec_push(&v, i * i));
    for (int i = 0; i < 1000; i++) assert_int_equal(v.data[i], i * i);
    int64_t len = v.len;
    tmi_alloc_fail_at(1, 1);
    while (v.len < v.cap) assert_true(tmi_vec_push(&v, 0));
    assert_false(tmi_vec_push(&v, 0));
    tmi_alloc_fail_at(0, 0);
    assert_error(TM_NOMEM, "can't allocate memory");
    assert_true(v.len >= len && v.data[999] == 999 * 999);
    tmi_vec_free(&v);
    assert_null(v.data);
}

static void test_map_of_numbers(void **state)
{
    (void)state;
    tmi_map m = {0};
    assert_null(tmi_map_get(&m, 7));
    assert_false(tmi_map_remove(&m, 7));
    for (uint64_t round = 0; round < 3; round++) {   /* with removals in between: tombstones must not fill the table */
        for (uint64_t k = 0; k < 2000; k++) *tmi_map_put(&m, k * 4096) = (void *)(uintptr_t)(k + 1 + round);
        assert_int_equal(m.live, 2000);
        for (uint64_t k = 0; k < 2000; k++) assert_int_equal((uintptr_t)tmi_map_get(&m, k * 4096), k + 1 + round);
        for (uint64_t k = 0; k < 2000; k += 2) assert_true(tmi_map_remove(&m, k * 4096));
        for (uint64_t k = 0; k < 2000; k++) assert_int_equal(!tmi_map_get(&m, k * 4096), k % 2 == 0);
    }
    tmi_map_free(&m);
}

static void test_map_of_strings(void **state)
{
    (void)state;
    tmi_map m = {0};
    char key[32];
    for (intptr_t k = 0; k < 500; k++) {
        snprintf(key, sizeof key, "layer.%d.weight", (int)k);
        *tmi_map_put_str(&m, key) = (void *)(k + 1);
    }
    assert_int_equal((intptr_t)tmi_map_get_str(&m, "layer.77.weight"), 78);
    assert_null(tmi_map_get_str(&m, "layer.500.weight"));
    for (int64_t i = 0; i < m.len; i++) assert_int_equal((intptr_t)m.entries[i].value, i + 1);   /* insertion order */
    assert_string_equal(m.entries[3].str, "layer.3.weight");
    tmi_map_free(&m);
}

static tm_status fill_map(void *ctx)
{
    (void)ctx;
    tmi_map m = {0};
    tm_status s = TM_OK;
    char key[32];
    for (int k = 0; k < 40 && s == TM_OK; k++) {
        snprintf(key, sizeof key, "k%d", k);
        if (!tmi_map_put_str(&m, key) || !tmi_map_put(&m, (uint64_t)k)) s = tm_error_status();
    }
    tmi_map_free(&m);
    return s;
}

static void test_map_out_of_memory(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(fill_map, NULL) > 40);
}

static void test_strbuf(void **state)
{
    (void)state;
    tmi_strbuf b = {0};
    for (int i = 0; i < 300; i++) {
        tmi_str_addf(&b, "%d,", i);
        tmi_str_add(&b, "");
    }
    tmi_str_addn(&b, "end!", 3);
    assert_false(b.failed);
    assert_int_equal(strlen(b.data), b.len);
    assert_memory_equal(b.data, "0,1,2,", 6);
    assert_string_equal(b.data + b.len - 8, ",299,end");
    tmi_alloc_fail_at(1, 1);
    for (int i = 0; i < 2000; i++) tmi_str_add(&b, "x");
    tmi_alloc_fail_at(0, 0);
    assert_true(b.failed);
    assert_int_equal(strlen(b.data), b.len);
    assert_error(TM_NOMEM, "");
    tmi_str_free(&b);
}

static void test_cpu(void **state)
{
    (void)state;
    const tmi_cpuinfo *c = tmi_cpu();
    assert_true(c->cpus >= 1 && c->l1d >= 4096 && c->l2 >= c->l1d && c->isa < TMI_ISA_COUNT);
    assert_true(c->best != TMI_ISA_AVX512 || (c->avx512 && c->avx2));
    assert_true(!c->amx_bf16 || c->amx_tile);
    assert_string_equal(tmi_isa_name(TMI_ISA_SCALAR), "scalar");
}

static void test_flush_denormal(void **state)
{
    (void)state;
    volatile float tiny = 1e-40f, one = 1;
    if (!tm_set_flush_denormal(true)) return;   /* not on this CPU */
    float flushed = tiny * one;
    tm_set_flush_denormal(false);
    float kept = tiny * one;
    assert_true(flushed == 0 && kept != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_error_wins), cmocka_unit_test(test_long_message_is_valid_utf8), cmocka_unit_test(test_put_aside),
        cmocka_unit_test(test_errors_belong_to_threads), cmocka_unit_test(test_status_names), cmocka_unit_test(test_logging),
        cmocka_unit_test(test_arena), cmocka_unit_test(test_vec), cmocka_unit_test(test_map_of_numbers), cmocka_unit_test(test_map_of_strings),
        cmocka_unit_test(test_map_out_of_memory), cmocka_unit_test(test_strbuf), cmocka_unit_test(test_cpu), cmocka_unit_test(test_flush_denormal)};
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
