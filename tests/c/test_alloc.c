/* The allocator: alignment, reuse without page faults, statistics, failure on demand, blocks freed by another thread, giving back. */
#include "harness.h"

#include <pthread.h>
#include <sys/resource.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PLAIN = 1 };   /* no caching then */
#else
enum { PLAIN = 0 };
#endif

static int64_t in_use(void)
{
    tm_memory_stats s;
    tm_get_memory_stats(&s);
    return s.in_use;
}

static const size_t sizes[] = {0, 1, 15, 16, 17, 63, 64, 65, 1000, 1023, 1024, 1025, 1280, 1281, 5000, 32767, 32768, 32769, 100000,
                               (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 20, 40 << 20};
enum { SIZE_COUNT = sizeof sizes / sizeof *sizes };

static void test_blocks_are_apart(void **state)
{
    (void)state;
    unsigned char *data[SIZE_COUNT][3], *small[SIZE_COUNT][3];
    int64_t before = in_use();
    for (int i = 0; i < SIZE_COUNT; i++)
        for (int k = 0; k < 3; k++) {
            data[i][k] = tmi_data_alloc(sizes[i]);
            small[i][k] = tmi_alloc(sizes[i]);
            assert_true(data[i][k] && small[i][k]);
            assert_int_equal((uintptr_t)data[i][k] % 64, 0);
            assert_int_equal((uintptr_t)small[i][k] % 16, 0);
            memset(data[i][k], i * 3 + k, sizes[i]);
            memset(small[i][k], 100 + i * 3 + k, sizes[i]);
        }
    for (int i = 0; i < SIZE_COUNT; i++)
        for (int k = 0; k < 3; k++) {
            for (size_t at = 0; at < sizes[i]; at += sizes[i] / 7 + 1) {
                assert_int_equal(data[i][k][at], i * 3 + k);
                assert_int_equal(small[i][k][at], (100 + i * 3 + k) & 255);
            }
            tmi_data_free(data[i][k], sizes[i]);
            tmi_free(small[i][k], sizes[i]);
        }
    assert_int_equal(in_use(), before);
}

static uint64_t seed = 1;
static uint32_t draw(void) { return (uint32_t)((seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u) >> 33); }

/* Random sizes and lifetimes; every block is filled with a pattern of its own and checked before it goes. */
static void test_random_lifetimes(void **state)
{
    (void)state;
    enum { LIVE = 300 };
    struct { unsigned char *p; size_t n; unsigned char mark; } live[LIVE] = {{0}};
    int64_t before = in_use();
    for (int round = 0; round < 20000; round++) {
        int i = (int)(draw() % LIVE);
        if (live[i].p) {
            for (size_t at = 0; at < live[i].n; at += live[i].n / 5 + 1) assert_int_equal(live[i].p[at], live[i].mark);
            tmi_data_free(live[i].p, live[i].n);
            live[i].p = NULL;
        } else {
            live[i].n = draw() % 3 ? draw() % 4096 : draw() % 300000;
            live[i].p = tmi_data_alloc(live[i].n);
            live[i].mark = (unsigned char)draw();
            memset(live[i].p, live[i].mark, live[i].n);
        }
    }
    for (int i = 0; i < LIVE; i++) tmi_data_free(live[i].p, live[i].n);
    assert_int_equal(in_use(), before);
}

static long page_faults(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_minflt + u.ru_majflt;
}

static void train_like(void)
{
    void *p[20];
    for (int i = 0; i < 20; i++) {
        size_t n = (size_t)(i + 1) * 777777;
        p[i] = tmi_data_alloc(n);
        memset(p[i], i, n);
    }
    for (int i = 0; i < 20; i++) tmi_data_free(p[i], (size_t)(i + 1) * 777777);
}

static void test_no_page_faults(void **state)
{
    (void)state;
    if (PLAIN) return;   /* the sanitizer's own allocator and shadow fault as they like */
    train_like();
    train_like();
    long before = page_faults();
    for (int i = 0; i < 5; i++) train_like();
    assert_true(page_faults() - before < 16);
}

static void test_statistics(void **state)
{
    (void)state;
    tm_memory_stats a, b;
    tm_get_memory_stats(&a);
    void *p = tmi_data_alloc(64 << 20);
    tmi_data_free(p, 64 << 20);
    tm_get_memory_stats(&b);
    assert_int_equal(b.in_use, a.in_use);
    assert_true(b.peak >= a.in_use + (64 << 20));
    assert_int_equal(b.allocations, a.allocations + 1);
    assert_int_equal(b.frees, a.frees + 1);
    assert_int_equal(tmi_alloc_count(), b.allocations);
    if (PLAIN) return;
    assert_true(b.reserved >= 64 << 20);
    tm_empty_cache();
    tm_get_memory_stats(&a);
    assert_true(a.reserved < b.reserved - (60 << 20));
    p = tmi_data_alloc(1 << 20);   /* still works */
    memset(p, 1, 1 << 20);
    tmi_data_free(p, 1 << 20);
}

static void test_fails_on_demand(void **state)
{
    (void)state;
    void *p[4];
    tmi_alloc_fail_at(3, 0);
    for (int i = 0; i < 4; i++) p[i] = tmi_alloc(100);
    assert_true(p[0] && p[1] && !p[2] && p[3]);
    assert_error(TM_NOMEM, "DefaultCPUAllocator: can't allocate memory: you tried to allocate 100 bytes. Error code 12 (Cannot allocate memory)");
    tmi_alloc_fail_at(1, 1);
    assert_true(!tmi_data_alloc(5000000) && !tmi_alloc(1) && !tmi_strdup("x"));
    tmi_alloc_fail_at(0, 0);
    tm_error_clear();
    char *s = tmi_strdup("back");
    assert_string_equal(s, "back");
    tmi_free(s, 5);
    for (int i = 0; i < 4; i++) tmi_free(p[i], 100);
}

static void test_too_much(void **state)
{
    (void)state;
    assert_null(tmi_data_alloc((size_t)1 << 62));
    assert_error(TM_NOMEM, "you tried to allocate 4611686018427387904 bytes");
    assert_null(tmi_data_alloc(SIZE_MAX - 10));
    assert_error(TM_NOMEM, "can't allocate memory");
}

static void test_growing(void **state)
{
    (void)state;
    int *p = NULL;
    size_t old = 0;
    for (size_t n = 10; n < 100000; n = n * 2 + 1) {
        p = tmi_realloc(p, old, n * sizeof *p);
        for (size_t i = old / sizeof *p; i < n; i++) p[i] = (int)i;
        for (size_t i = 0; i < n; i += 97) assert_int_equal(p[i], (int)i);
        old = n * sizeof *p;
    }
    tmi_free(p, old);
    unsigned char *zero = tmi_calloc(5000);
    for (int i = 0; i < 5000; i++) assert_int_equal(zero[i], 0);
    tmi_free(zero, 5000);
}

enum { BATCH = 2000 };

static void *free_them(void *blocks)
{
    void **p = blocks;
    for (int i = 0; i < BATCH; i++) tmi_data_free(p[i], (size_t)(i % 50) * 40);
    for (int i = 0; i < BATCH; i++) p[i] = tmi_alloc((size_t)(i % 50) * 40);   /* freed by the main thread after this one ended */
    return NULL;
}

static void test_freed_elsewhere(void **state)
{
    (void)state;
    static void *p[BATCH];
    int64_t before = in_use();
    for (int round = 0; round < 5; round++) {
        pthread_t t;
        for (int i = 0; i < BATCH; i++) p[i] = tmi_data_alloc((size_t)(i % 50) * 40);
        pthread_create(&t, NULL, free_them, p);
        pthread_join(t, NULL);
        for (int i = 0; i < BATCH; i++) tmi_free(p[i], (size_t)(i % 50) * 40);
        assert_int_equal(in_use(), before);
    }
}

static void *churn(void *unused)
{
    for (int i = 0; i < 20000; i++) {
        size_t n = (size_t)(i * 37 % 60000);
        char *p = tmi_data_alloc(n + 1);
        p[n] = 1;
        tmi_data_free(p, n + 1);
    }
    return unused;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t t[4];
    int64_t before = in_use();
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, churn, NULL);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    assert_int_equal(in_use(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_are_apart), cmocka_unit_test(test_random_lifetimes), cmocka_unit_test(test_no_page_faults),
        cmocka_unit_test(test_statistics), cmocka_unit_test(test_fails_on_demand), cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_growing), cmocka_unit_test(test_freed_elsewhere), cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
