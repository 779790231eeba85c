/* Three tiers. Blocks up to 32 KiB: per-thread free lists by size class, refilled from and drained to shared lists in batches; the
 * shared lists are fed from slabs that the page heap gives. Larger blocks: the page heap itself (huge-page arenas, best fit). Frees
 * carry their size, so blocks need no header; a block may be freed by any thread.
 *
 * Classes: multiples of 16 bytes up to 1 KiB, then four per doubling up to 32 KiB. Slabs and all classes that are multiples of 64
 * are 64-byte aligned; tensor data only uses those.
 *
 * Under AddressSanitizer everything goes to malloc, so that it sees each block. */
#include "alloc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "page_heap.h"

#if defined(__SANITIZE_ADDRESS__)
#define PLAIN_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PLAIN_MALLOC 1
#endif
#endif
#ifndef PLAIN_MALLOC
#define PLAIN_MALLOC 0
#endif

enum { FINE_MAX = 1024, FINE_CLASSES = 65, SMALL_MAX = 32 * 1024, CLASS_COUNT = FINE_CLASSES + 20 };

typedef struct block { struct block *next; } block;

typedef struct bin {
    block *head;
    uint32_t count, limit;   /* past the limit half goes back to the shared list */
} bin;

typedef _Atomic int64_t counter;   /* written by one thread, read by all */

typedef struct cache {
    bin bins[CLASS_COUNT];
    counter allocations, frees, fresh, in_use;   /* in_use: bytes not yet added to the shared total */
    struct cache *next, **link;
} cache;

static struct {
    pthread_mutex_t lock;
    block *lists[CLASS_COUNT];   /* free blocks */
    struct { char *at, *end; } slabs[CLASS_COUNT];   /* memory not cut up yet */
    cache *caches;
    int64_t allocations, frees, fresh;   /* of threads that ended */
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static counter total_in_use, peak;
static _Atomic int64_t fail_armed, fail_left, fail_sticky;
static __thread cache *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t exit_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- size classes */

static inline int class_of(size_t n)
{
    if (n <= FINE_MAX) return (int)((n + 15) / 16);
    int top = 63 - __builtin_clzll(n - 1);   /* 2^top < n <= 2^(top+1) */
    return FINE_CLASSES + 4 * (top - 10) + (int)((n - 1) >> (top - 2) & 3);
}

static inline size_t class_size(int c)
{
    if (c < FINE_CLASSES) return c ? (size_t)c * 16 : 16;
    int k = c - FINE_CLASSES, top = 10 + k / 4;
    return ((size_t)1 << top) + (((size_t)(k & 3) + 1) << (top - 2));
}

/* ---- counting */

static inline void count(counter *c, int64_t by)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + by, memory_order_relaxed);
}

static void raise_peak(int64_t now)
{
    int64_t p = atomic_load_explicit(&peak, memory_order_relaxed);
    while (now > p && !atomic_compare_exchange_weak_explicit(&peak, &p, now, memory_order_relaxed, memory_order_relaxed)) {}
}

static void flush_in_use(cache *c)
{
    int64_t by = atomic_load_explicit(&c->in_use, memory_order_relaxed);
    atomic_store_explicit(&c->in_use, 0, memory_order_relaxed);
    raise_peak(atomic_fetch_add_explicit(&total_in_use, by, memory_order_relaxed) + by);
}

/* The shared total, and with it the peak, learns of a thread's small blocks when a free list runs empty or over, and with each large block:
 * the peak is exact to what one thread's free lists hold. */
static void count_large(cache *c, int64_t by)
{
    count(&c->in_use, by);
    flush_in_use(c);
}

/* ---- thread caches */

static void move_to_shared(bin *b, int c, uint32_t n)
{   /* under the lock */
    while (n-- && b->head) {
        block *p = b->head;
        b->head = p->next;
        b->count--;
        p->next = shared.lists[c];
        shared.lists[c] = p;
    }
}

static void empty_cache(cache *c)
{   /* under the lock */
    for (int i = 0; i < CLASS_COUNT; i++) move_to_shared(&c->bins[i], i, c->bins[i].count);
}

static void end_thread(void *p)
{
    cache *c = p;
    pthread_mutex_lock(&shared.lock);
    empty_cache(c);
    flush_in_use(c);
    shared.allocations += c->allocations;
    shared.frees += c->frees;
    shared.fresh += c->fresh;
    *c->link = c->next;
    if (c->next) c->next->link = c->link;
    pthread_mutex_unlock(&shared.lock);
    mine = NULL;
    free(c);
}

static void lock_shared(void) { pthread_mutex_lock(&shared.lock); }
static void unlock_shared(void) { pthread_mutex_unlock(&shared.lock); }

static void set_up(void)
{
    pthread_key_create(&exit_key, end_thread);
    pthread_atfork(lock_shared, unlock_shared, unlock_shared);
}

static cache *new_cache(void)
{
    pthread_once(&once, set_up);
    cache *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    for (int i = 0; i < CLASS_COUNT; i++) {
        size_t limit = 128 * 1024 / class_size(i);
        c->bins[i].limit = limit > 512 ? 512 : limit < 8 ? 8 : (uint32_t)limit;
    }
    pthread_mutex_lock(&shared.lock);
    c->next = shared.caches;
    c->link = &shared.caches;
    if (c->next) c->next->link = &c->next;
    shared.caches = c;
    pthread_mutex_unlock(&shared.lock);
    pthread_setspecific(exit_key, c);
    return mine = c;
}

static inline cache *my_cache(void) { return TMI_LIKELY(mine != NULL) ? mine : new_cache(); }

/* Cuts up to `want` blocks from the class's slab; a new slab when it is used up. */
static void cut_slab(cache *c, int k, uint32_t want)
{   /* under the lock */
    size_t size = class_size(k);
    if ((size_t)(shared.slabs[k].end - shared.slabs[k].at) < size) {
        size_t slab = size > 8192 ? 8 * size : 64 * 1024;
        bool fresh;
        char *p = tmi_pages_take(slab, &fresh);
        if (!p) return;
        shared.slabs[k].at = p;
        shared.slabs[k].end = p + slab;
    }
    bin *b = &c->bins[k];
    for (; want && (size_t)(shared.slabs[k].end - shared.slabs[k].at) >= size; want--) {
        block *p = (block *)(void *)shared.slabs[k].at;
        shared.slabs[k].at += size;
        p->next = b->head;
        b->head = p;
        b->count++;
        count(&c->fresh, 1);
    }
}

static void refill(cache *c, int k)
{
    bin *b = &c->bins[k];
    uint32_t want = b->limit / 2;
    pthread_mutex_lock(&shared.lock);
    while (b->count < want && shared.lists[k]) {
        block *p = shared.lists[k];
        shared.lists[k] = p->next;
        p->next = b->head;
        b->head = p;
        b->count++;
    }
    if (!b->head) cut_slab(c, k, want < 32 ? want : 32);
    pthread_mutex_unlock(&shared.lock);
    flush_in_use(c);
}

static __attribute__((noinline)) void drain(cache *c, int k)
{
    pthread_mutex_lock(&shared.lock);
    move_to_shared(&c->bins[k], k, c->bins[k].count / 2);
    pthread_mutex_unlock(&shared.lock);
    flush_in_use(c);
}

/* ---- failures */

static void *out_of_memory(size_t n)
{
    tmi_fail(TM_NOMEM, "DefaultCPUAllocator: can't allocate memory: you tried to allocate %zu bytes. Error code 12 (Cannot allocate memory)", n);
    return NULL;
}

/* Whether a test wants this allocation to fail. */
static bool told_to_fail(void)
{
    int64_t left = atomic_fetch_sub(&fail_left, 1) - 1;
    return left == 0 || (left < 0 && atomic_load(&fail_sticky));
}

void tmi_alloc_fail_at(int64_t n, int sticky)
{
    atomic_store(&fail_left, n);
    atomic_store(&fail_sticky, sticky);
    atomic_store(&fail_armed, n > 0);
}

/* ---- the ways in and out: n is never 0 */

static void *large_alloc(cache *c, size_t n)
{
    bool fresh = false;
    pthread_mutex_lock(&shared.lock);
    void *p = tmi_pages_take(n, &fresh);
    pthread_mutex_unlock(&shared.lock);
    if (!p) return out_of_memory(n);
    count(&c->allocations, 1);
    if (fresh) count(&c->fresh, 1);
    count_large(c, (int64_t)n);
    return p;
}

static void *plain_alloc(cache *c, size_t n)
{   /* AddressSanitizer ends the program where more than 1 TiB is asked for */
    void *p = n > (size_t)1 << 39 ? NULL : aligned_alloc(64, (n + 63) & ~(size_t)63);
    if (!p) return out_of_memory(n);
    count(&c->allocations, 1);
    count(&c->fresh, 1);
    count_large(c, (int64_t)n);
    return p;
}

static inline void *take(cache *c, int k, size_t size)
{
    bin *b = &c->bins[k];
    block *p = b->head;
    b->head = p->next;
    b->count--;
    count(&c->allocations, 1);
    count(&c->in_use, (int64_t)size);
    return p;
}

/* Whatever the short way does not do: the first call of a thread, failures on demand, empty free lists, large blocks. */
static __attribute__((noinline)) void *alloc_slow(size_t n)
{
    cache *c = my_cache();
    if (!c) return out_of_memory(n);
    if (atomic_load_explicit(&fail_armed, memory_order_relaxed) && told_to_fail()) return out_of_memory(n);
    if (PLAIN_MALLOC) return plain_alloc(c, n);
    if (n > SMALL_MAX) return large_alloc(c, n);
    int k = class_of(n);
    if (!c->bins[k].head) refill(c, k);
    return c->bins[k].head ? take(c, k, class_size(k)) : out_of_memory(n);
}

static inline void *block_alloc(size_t n)
{
    cache *c = mine;
    int k = (int)((n + 15) / 16);
    if (TMI_UNLIKELY(PLAIN_MALLOC || n > FINE_MAX || !c || atomic_load_explicit(&fail_armed, memory_order_relaxed) || !c->bins[k].head))
        return alloc_slow(n);
    return take(c, k, (size_t)k * 16);
}

static void large_free(cache *c, void *p, size_t n)
{
    if (PLAIN_MALLOC) {
        free(p);
    } else {
        pthread_mutex_lock(&shared.lock);
        tmi_pages_give(p, n);
        pthread_mutex_unlock(&shared.lock);
    }
    count(&c->frees, 1);
    count_large(c, -(int64_t)n);
}

static inline void give(cache *c, void *p, int k, size_t size)
{
    bin *b = &c->bins[k];
    ((block *)p)->next = b->head;
    b->head = p;
    count(&c->frees, 1);
    count(&c->in_use, -(int64_t)size);
    if (TMI_UNLIKELY(++b->count > b->limit)) drain(c, k);
}

static __attribute__((noinline)) void free_slow(void *p, size_t n)
{
    cache *c = my_cache();
    if (!c) return;   /* no memory to note that memory is free: the block is lost */
    if (PLAIN_MALLOC || n > SMALL_MAX) large_free(c, p, n);
    else give(c, p, class_of(n), class_size(class_of(n)));
}

static inline void block_free(void *p, size_t n)
{
    cache *c = mine;
    int k = (int)((n + 15) / 16);
    if (TMI_UNLIKELY(PLAIN_MALLOC || n > FINE_MAX || !c)) free_slow(p, n);
    else give(c, p, k, (size_t)k * 16);
}

void *tmi_alloc(size_t nbytes) { return block_alloc(nbytes ? nbytes : 1); }

void tmi_free(void *p, size_t nbytes)
{
    if (p) block_free(p, nbytes ? nbytes : 1);
}

/* Data sizes are rounded up to 64, which lands in the classes whose blocks are 64-byte aligned. */
static inline size_t data_size(size_t n) { return n > SMALL_MAX ? n : n ? (n + 63) & ~(size_t)63 : 64; }

void *tmi_data_alloc(size_t nbytes) { return block_alloc(PLAIN_MALLOC ? nbytes + !nbytes : data_size(nbytes)); }

void tmi_data_free(void *p, size_t nbytes)
{
    if (p) block_free(p, PLAIN_MALLOC ? nbytes + !nbytes : data_size(nbytes));
}

void *tmi_calloc(size_t nbytes)
{
    void *p = tmi_alloc(nbytes);
    if (p) memset(p, 0, nbytes);
    return p;
}

void *tmi_realloc(void *p, size_t old_nbytes, size_t new_nbytes)
{
    void *q = tmi_alloc(new_nbytes);
    if (!q) return NULL;
    if (p) memcpy(q, p, old_nbytes < new_nbytes ? old_nbytes : new_nbytes);
    tmi_free(p, old_nbytes);
    return q;
}

char *tmi_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = tmi_alloc(n);
    if (p) memcpy(p, s, n);
    return p;
}

/* ---- statistics */

void tm_get_memory_stats(tm_memory_stats *out)
{
    pthread_mutex_lock(&shared.lock);
    int64_t in_use = total_in_use, allocations = shared.allocations, frees = shared.frees, fresh = shared.fresh;
    for (cache *c = shared.caches; c; c = c->next) {
        in_use += c->in_use;
        allocations += c->allocations;
        frees += c->frees;
        fresh += c->fresh;
    }
    int64_t reserved = PLAIN_MALLOC ? in_use : tmi_pages_reserved();
    pthread_mutex_unlock(&shared.lock);
    raise_peak(in_use);
    *out = (tm_memory_stats){.in_use = in_use, .peak = peak, .reserved = reserved, .allocations = allocations, .frees = frees,
                             .reused = allocations > fresh ? allocations - fresh : 0};
}

int64_t tmi_alloc_count(void)
{
    tm_memory_stats s;
    tm_get_memory_stats(&s);
    return s.allocations;
}

void tm_empty_cache(void)
{
    pthread_mutex_lock(&shared.lock);
    if (mine) empty_cache(mine);
    tmi_pages_trim();
    pthread_mutex_unlock(&shared.lock);
}
