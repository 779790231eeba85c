/* One pool, one run at a time. A caller that finds it busy, or asks from inside a task, does its chunks itself.
 *
 * A run is announced by opening the gate and ringing the bell. Whoever passes the gate counts itself in, takes chunks from an atomic
 * counter until none is left, and counts itself out. The caller does the same, then shuts the gate and waits until all are out: nobody
 * waits for a worker that never came, so a sleeping worker costs a run nothing. Workers spin on the bell, then sleep on it.
 *
 * gate: number of workers inside (low bits) | GATE_OPEN | GATE_WAITED (the caller sleeps until the last one leaves). */
#include "pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cpuinfo.h"
#include "fail.h"
#include "logging.h"
#include "thread_state.h"

enum { MAX_THREADS = 1024, SPIN_NS = 100000, GATE_OPEN = 1 << 15, GATE_WAITED = 1 << 16, GATE_COUNT = GATE_OPEN - 1 };

typedef struct job {
    tmi_range_fn *fn;
    void *ctx;
    int64_t n, grain, chunks;
    tmi_thread_state caller;   /* the part of it that travels: modes and denormals */
} job;

static struct {
    job job;
    _Atomic int64_t next;                      /* chunk to take */
    char apart[64];                            /* keeps the words below off the line of the chunk counter */
    _Atomic uint32_t gate, bell, sleepers;
    _Atomic int busy, size, workers;           /* size: threads to use, caller included; 0: not chosen yet */
} pool;
static __thread int my_index __attribute__((tls_model("initial-exec")));
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- size */

static int default_size(void)
{
    const char *names[] = {"TAIMATSU_NUM_THREADS", "OMP_NUM_THREADS"};
    for (int i = 0; i < 2; i++) {
        const char *s = getenv(names[i]);
        long n = s ? strtol(s, NULL, 10) : 0;
        if (n >= 1) return n > MAX_THREADS ? MAX_THREADS : (int)n;
    }
    int n = tmi_cpu()->cpus;
    return n > MAX_THREADS ? MAX_THREADS : n;
}

int tmi_pool_size(void)
{
    int n = atomic_load_explicit(&pool.size, memory_order_relaxed);
    if (TMI_LIKELY(n != 0)) return n;
    int none = 0;
    atomic_compare_exchange_strong(&pool.size, &none, default_size());
    return atomic_load_explicit(&pool.size, memory_order_relaxed);
}

int tm_num_threads(void) { return tmi_pool_size(); }

tm_status tm_set_num_threads(int n)
{
    TMI_REQUIRE(n >= 1, TM_INVALID, "set_num_threads expects a positive integer");
    atomic_store(&pool.size, n > MAX_THREADS ? MAX_THREADS : n);
    return TM_OK;
}

int tmi_pool_thread(void) { return my_index; }

int64_t tmi_grain(int64_t bytes_per_element)
{   /* 256 KiB of traffic is 10 to 30 us of streaming: ten times a hand-over to a spinning worker */
    if (bytes_per_element > 4096) return 64;
    uint32_t n = 256u * 1024 / (bytes_per_element < 1 ? 1 : (uint32_t)bytes_per_element);   /* 64-bit division is slow on older CPUs */
    return n < 64 ? 64 : n & ~63u;
}

/* ---- doing the work */

static void run_chunk(const job *j, int64_t k)
{
    int64_t begin = k * j->grain, end = j->n - begin > j->grain ? begin + j->grain : j->n;
    j->fn(j->ctx, begin, end);
}

static void take_chunks(const job *j)
{
    for (int64_t k; (k = atomic_fetch_add_explicit(&pool.next, 1, memory_order_relaxed)) < j->chunks;) run_chunk(j, k);
}

static void adopt_caller(const tmi_thread_state *c)
{
    tmi_tls.modes = c->modes;
    tmi_tls.grad_enabled = c->grad_enabled;
    tmi_tls.inference = c->inference;
    tmi_tls.autocast_dtype = c->autocast_dtype;
    if (tmi_tls.flush_denormal != c->flush_denormal) tm_set_flush_denormal(c->flush_denormal);
}

static bool enter_gate(void)
{
    uint32_t g = atomic_load_explicit(&pool.gate, memory_order_relaxed);
    while (g & GATE_OPEN)
        if (atomic_compare_exchange_weak_explicit(&pool.gate, &g, g + 1, memory_order_acquire, memory_order_relaxed)) return true;
    return false;
}

static void leave_gate(void)
{
    uint32_t g = atomic_fetch_sub_explicit(&pool.gate, 1, memory_order_release) - 1;
    if ((g & GATE_COUNT) == 0 && (g & GATE_WAITED)) futex_wake(&pool.gate, 1);
}

static void help(void)
{
    if (my_index >= tmi_pool_size() || !enter_gate()) return;
    adopt_caller(&pool.job.caller);
    take_chunks(&pool.job);
    leave_gate();
}

/* Waits until the bell moves from `seen`. Threads beyond the CPUs do not spin: they would take time from those that work. */
static uint32_t wait_for_bell(uint32_t seen)
{
    uint32_t b;
    if (tmi_pool_size() <= tmi_cpu()->cpus && my_index < tmi_pool_size()) {
        int64_t end = now_ns() + SPIN_NS;
        do {
            for (int i = 0; i < 32; i++) {
                if ((b = atomic_load_explicit(&pool.bell, memory_order_acquire)) != seen) return b;
                pause_cpu();
            }
        } while (now_ns() < end);
    }
    atomic_fetch_add(&pool.sleepers, 1);
    while ((b = atomic_load(&pool.bell)) == seen) futex_wait(&pool.bell, seen);
    atomic_fetch_sub(&pool.sleepers, 1);
    return b;
}

static void *work(void *index)
{
    my_index = (int)(intptr_t)index;
    tmi_tls.in_parallel = true;
    for (uint32_t seen = 0;;) {
        seen = wait_for_bell(seen);
        help();
    }
    return NULL;
}

/* ---- workers */

static void after_fork(void)
{   /* the child has only the thread that forked */
    atomic_store(&pool.gate, 0);
    atomic_store(&pool.bell, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.busy, 0);
    atomic_store(&pool.workers, 0);
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, after_fork); }

/* Starts workers up to `want`; the pool is ours. Signals stay with the program's own threads. */
static void start_workers(int want)
{
    pthread_once(&fork_once, watch_forks);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int have = atomic_load_explicit(&pool.workers, memory_order_relaxed);
    for (; have < want; have++) {
        pthread_t t;
        pthread_attr_t attr;
        pthread_attr_init(&attr);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        int rc = pthread_create(&t, &attr, work, (void *)(intptr_t)(have + 1));
        pthread_attr_destroy(&attr);
        if (rc) {
            tmi_log(TMI_LOG_WARN, "could not start pool thread %d of %d", have + 1, want);
            break;
        }
    }
    atomic_store_explicit(&pool.workers, have, memory_order_relaxed);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- the caller's side */

static void wait_until_all_left(void)
{
    uint32_t g = atomic_fetch_and_explicit(&pool.gate, ~(uint32_t)GATE_OPEN, memory_order_acquire) & ~(uint32_t)GATE_OPEN;
    for (int64_t end = 0; g & GATE_COUNT; g = atomic_load_explicit(&pool.gate, memory_order_acquire)) {
        for (int i = 0; i < 32; i++) pause_cpu();
        if (!end) end = now_ns() + SPIN_NS;
        else if (now_ns() > end) {
            g = atomic_fetch_or_explicit(&pool.gate, GATE_WAITED, memory_order_acquire) | GATE_WAITED;
            if (g & GATE_COUNT) futex_wait(&pool.gate, g);
        }
    }
    if (g & GATE_WAITED) atomic_fetch_and_explicit(&pool.gate, ~(uint32_t)GATE_WAITED, memory_order_relaxed);
}

static void run_inline(const job *j)
{
    for (int64_t k = 0; k < j->chunks; k++) run_chunk(j, k);
}

static void run_shared(const job *j, int threads)
{
    if (atomic_load_explicit(&pool.workers, memory_order_relaxed) < threads - 1) start_workers(threads - 1);
    pool.job = *j;
    pool.job.caller = tmi_tls;
    atomic_store_explicit(&pool.next, 0, memory_order_relaxed);
    atomic_fetch_or_explicit(&pool.gate, GATE_OPEN, memory_order_release);
    atomic_fetch_add(&pool.bell, 1);
    if (atomic_load(&pool.sleepers) > 0) futex_wake(&pool.bell, j->chunks < threads ? (int)j->chunks - 1 : INT_MAX);
    tmi_tls.in_parallel = true;
    take_chunks(j);
    tmi_tls.in_parallel = false;
    wait_until_all_left();
}

void tmi_parallel_for(int64_t n, int64_t grain, tmi_range_fn *fn, void *ctx)
{
    if (n <= 0) return;
    if (grain < 1) grain = 1;
    job j = {.fn = fn, .ctx = ctx, .n = n, .grain = grain, .chunks = (n - 1) / grain + 1};
    int threads = tmi_pool_size();
    if (j.chunks == 1 || threads == 1 || tmi_tls.in_parallel || atomic_exchange_explicit(&pool.busy, 1, memory_order_acquire)) {
        run_inline(&j);
        return;
    }
    run_shared(&j, threads);
    atomic_store_explicit(&pool.busy, 0, memory_order_release);
}
