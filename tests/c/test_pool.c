/* The thread pool: every index exactly once, the same chunks for any number of threads, nesting, several callers, fork, travelling state. */
#include "base/cpuinfo.h"
#include "base/pool.h"
#include "base/thread_state.h"
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N = 10007, GRAIN = 64, CHUNKS = (N + GRAIN - 1) / GRAIN };
static const int thread_counts[] = {1, 2, 3, 7};

typedef struct sums {
    float in[N], partial[CHUNKS];
    _Atomic int visits[N];
} sums;

static void sum_chunk(void *ctx, int64_t begin, int64_t end)
{
    sums *s = ctx;
    float total = 0;
    for (int64_t i = begin; i < end; i++) {
        total += s->in[i];
        atomic_fetch_add_explicit(&s->visits[i], 1, memory_order_relaxed);
    }
    s->partial[begin / GRAIN] = total;
}

static void test_same_bits(void **state)
{
    (void)state;
    static sums s, first;
    for (int i = 0; i < N; i++) s.in[i] = 1.0f / (float)(i + 1);
    for (int k = 0; k < 4; k++) {
        assert_ok(tm_set_num_threads(thread_counts[k]));
        assert_int_equal(tm_num_threads(), thread_counts[k]);
        for (int round = 0; round < 200; round++) {
            memset(s.partial, 0xff, sizeof s.partial);
            memset(s.visits, 0, sizeof s.visits);
            tmi_parallel_for(N, GRAIN, sum_chunk, &s);
            for (int i = 0; i < N; i++) assert_int_equal(s.visits[i], 1);
            if (k == 0) memcpy(first.partial, s.partial, sizeof s.partial);
            assert_memory_equal(s.partial, first.partial, sizeof s.partial);
        }
    }
}

static void count(void *ctx, int64_t begin, int64_t end) { atomic_fetch_add((_Atomic int64_t *)ctx, end - begin); }

static void test_odd_sizes(void **state)
{
    (void)state;
    _Atomic int64_t n = 0;
    tm_set_num_threads(3);
    tmi_parallel_for(0, 10, count, &n);
    tmi_parallel_for(-5, 10, count, &n);
    assert_int_equal(n, 0);
    tmi_parallel_for(1, 10, count, &n);
    tmi_parallel_for(5, 0, count, &n);
    tmi_parallel_for(7, INT64_MAX, count, &n);
    assert_int_equal(n, 13);
    assert_int_equal(tm_set_num_threads(0), TM_INVALID);
    assert_error(TM_INVALID, "set_num_threads expects a positive integer");
    assert_true(tmi_grain(4) >= 64 && tmi_grain(1 << 30) == 64 && tmi_grain(0) % 64 == 0);
}

static void nest(void *ctx, int64_t begin, int64_t end)
{
    int me = tmi_pool_thread();
    for (int64_t i = begin; i < end; i++) tmi_parallel_for(100, 10, count, ctx);
    if (tmi_pool_thread() != me || me < 0 || me >= tmi_pool_size()) atomic_store((_Atomic int64_t *)ctx, INT64_MIN);
}

static void test_nested(void **state)
{
    (void)state;
    _Atomic int64_t n = 0;
    tm_set_num_threads(3);
    tmi_parallel_for(50, 1, nest, &n);
    assert_int_equal(n, 5000);
    assert_false(tmi_tls.in_parallel);
}

static void *caller(void *ctx)
{
    for (int i = 0; i < 300; i++) tmi_parallel_for(1000, 10, count, ctx);
    return NULL;
}

static void test_several_callers(void **state)
{
    (void)state;
    pthread_t t[4];
    _Atomic int64_t n = 0;
    tm_set_num_threads(3);
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, caller, &n);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    assert_int_equal(n, 4 * 300 * 1000);
}

typedef struct travel {
    volatile float tiny;
    _Atomic int kept, odd_mode;
} travel;

static void look(void *ctx, int64_t begin, int64_t end)
{
    travel *t = ctx;
    (void)begin, (void)end;
    if (t->tiny * 1.0f != 0) atomic_fetch_add(&t->kept, 1);
    if (tmi_tls.grad_enabled || !tmi_tls.inference) atomic_fetch_add(&t->odd_mode, 1);
    for (volatile int spin = 0; spin < 20000; spin++) {}   /* long enough for workers to join */
}

static void test_state_travels(void **state)
{
    (void)state;
    travel t = {.tiny = 1e-40f};
    if (!tm_set_flush_denormal(true)) return;   /* not on this CPU */
    tm_set_num_threads(3);
    tmi_tls.grad_enabled = false;
    tmi_tls.inference = true;
    tmi_parallel_for(60, 1, look, &t);
    assert_int_equal(t.kept, 0);
    assert_int_equal(t.odd_mode, 0);
    tm_set_flush_denormal(false);
    tmi_parallel_for(60, 1, look, &t);
    assert_int_equal(t.kept, 60);
    tmi_tls.grad_enabled = true;
    tmi_tls.inference = false;
}

static void test_fork(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    return;   /* the sanitizer's run time does not let a forked child start threads */
#endif
    _Atomic int64_t n = 0;
    tm_set_num_threads(3);
    tmi_parallel_for(1000, 10, count, &n);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        for (int i = 0; i < 50; i++) tmi_parallel_for(1000, 10, count, &n);
        _exit(n == 51000 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    tmi_parallel_for(1000, 10, count, &n);
    assert_int_equal(n, 2000);
}

/* A pool that nobody uses takes no processor time. */
static void test_idle(void **state)
{
    (void)state;
    _Atomic int64_t n = 0;
    struct timespec before, after, nap = {0, 150000000};
    tm_set_num_threads(2);
    tmi_parallel_for(1000, 10, count, &n);
    usleep(5000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    nanosleep(&nap, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    double used = (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec);
    assert_true(used < 0.03);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_odd_sizes), cmocka_unit_test(test_nested),
                                       cmocka_unit_test(test_several_callers), cmocka_unit_test(test_state_travels), cmocka_unit_test(test_fork),
                                       cmocka_unit_test(test_idle)};
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
