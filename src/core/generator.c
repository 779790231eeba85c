/* The engine: seeding, reloading, the state's bytes, and the default generator. */
#include "generator.h"

#include <sys/random.h>
#include <time.h>

#include "base/alloc.h"

static struct tm_generator default_generator;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Knuth's initialisation of the state vector; only the low 32 bits of the seed count. */
static void seed_engine(tm_generator *g, uint64_t seed)
{
    g->seed = seed;
    g->state[0] = (uint32_t)seed;
    for (uint32_t j = 1; j < TMI_MT_WORDS; j++)
        g->state[j] = UINT32_C(1812433253) * (g->state[j - 1] ^ (g->state[j - 1] >> 30)) + j;
    g->left = 1;
    g->next = 0;
    g->has_normal = false;
    g->cached_normal = 0;
}

void tmi_mt_reload(tm_generator *g)
{
    tmi_random_loops_get()->reload(g->state, g->ready);
    g->left = TMI_MT_WORDS;
    g->next = 0;
}

void tmi_mt_words(tm_generator *g, uint32_t *out, int64_t n)
{
    while (n > 0) {
        if (g->left == 1) {
            tmi_mt_reload(g);
            g->left++;   /* as if the reload came between two draws: the next one counts down to 624 again */
        }
        int64_t have = g->left - 1, take = n < have ? n : have;
        memcpy(out, g->ready + g->next, (size_t)take * sizeof *out);
        g->left -= (int32_t)take;
        g->next += (int32_t)take;
        out += take;
        n -= take;
    }
}

static uint64_t entropy(void)
{
    uint64_t s;
    if (getrandom(&s, sizeof s, GRND_NONBLOCK) == (ssize_t)sizeof s) return s;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000007u ^ (uint64_t)t.tv_nsec << 20 ^ (uint64_t)(uintptr_t)&s;
}

static void init(tm_generator *g, uint64_t seed)
{
    atomic_init(&g->refs, 1);
    pthread_mutex_init(&g->lock, NULL);
    seed_engine(g, seed);
}

static void lock_default(void) { pthread_mutex_lock(&default_generator.lock); }
static void unlock_default(void) { pthread_mutex_unlock(&default_generator.lock); }

/* PyTorch's default generator starts from the system's entropy, cut to 53 bits. */
static void init_default(void)
{
    init(&default_generator, entropy() & ((UINT64_C(1) << 53) - 1));
    pthread_atfork(lock_default, unlock_default, unlock_default);
}

tm_generator *tm_default_generator(void)
{
    pthread_once(&once, init_default);
    return &default_generator;
}

tm_generator *tm_generator_new(uint64_t seed)
{
    tm_generator *g = tmi_alloc(sizeof *g);
    if (g) init(g, seed);
    return g;
}

tm_generator *tmi_generator_retain(tm_generator *g)
{
    if (g) atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
    return g;
}

void tm_generator_release(tm_generator *g)
{
    if (!g || g == &default_generator || atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) != 1) return;
    pthread_mutex_destroy(&g->lock);
    tmi_free(g, sizeof *g);
}

tm_generator *tmi_generator_lock(tm_generator *g)
{
    if (!g) g = tm_default_generator();
    pthread_mutex_lock(&g->lock);
    return g;
}

void tmi_generator_unlock(tm_generator *g) { pthread_mutex_unlock(&g->lock); }

tm_generator *tmi_generator_clone(tm_generator *g)
{
    tm_generator *copy = tm_generator_new(0);
    if (!copy) return NULL;
    g = tmi_generator_lock(g);
    copy->seed = g->seed;
    copy->left = g->left;
    copy->next = g->next;
    copy->has_normal = g->has_normal;
    copy->cached_normal = g->cached_normal;
    memcpy(copy->state, g->state, sizeof g->state);
    memcpy(copy->ready, g->ready, sizeof g->ready);
    tmi_generator_unlock(g);
    return copy;
}

void tm_generator_seed(tm_generator *g, uint64_t seed)
{
    g = tmi_generator_lock(g);
    seed_engine(g, seed);
    tmi_generator_unlock(g);
}

void tm_manual_seed(uint64_t seed) { tm_generator_seed(NULL, seed); }

uint64_t tm_generator_initial_seed(const tm_generator *g)
{
    tm_generator *locked = tmi_generator_lock((tm_generator *)(uintptr_t)g);
    uint64_t seed = locked->seed;
    tmi_generator_unlock(locked);
    return seed;
}

uint64_t tmi_generator_reseed(tm_generator *g)
{
    uint64_t seed = entropy() & ((UINT64_C(1) << 53) - 1);
    tm_generator_seed(g, seed);
    return seed;
}

uint64_t tmi_random_u64(tm_generator *g)
{
    g = tmi_generator_lock(g);
    uint64_t r = tmi_mt_next64(g);
    tmi_generator_unlock(g);
    return r;
}

/* ---- the 5056 bytes: seed u64, left i32, seeded i32, next u64, 624 words as u64, f64 0, cached f64, f64 0, has_cached i32, pad i32, f32 0,
 * i32 0; little-endian */

enum { AT_LEFT = 8, AT_SEEDED = 12, AT_NEXT = 16, AT_STATE = 24, AT_CACHED = AT_STATE + 8 * TMI_MT_WORDS + 8, AT_HAS = AT_CACHED + 16 };

void tmi_generator_get_state(tm_generator *g, uint8_t *out)
{
    memset(out, 0, TMI_GENERATOR_STATE_BYTES);
    g = tmi_generator_lock(g);
    int32_t seeded = 1, has = g->has_normal;
    uint64_t next = (uint64_t)g->next;
    double cached = g->has_normal ? g->cached_normal : 0;
    memcpy(out, &g->seed, 8);
    memcpy(out + AT_LEFT, &g->left, 4);
    memcpy(out + AT_SEEDED, &seeded, 4);
    memcpy(out + AT_NEXT, &next, 8);
    for (int i = 0; i < TMI_MT_WORDS; i++) {
        uint64_t word = g->state[i];
        memcpy(out + AT_STATE + 8 * i, &word, 8);
    }
    memcpy(out + AT_CACHED, &cached, 8);
    memcpy(out + AT_HAS, &has, 4);
    tmi_generator_unlock(g);
}

tm_status tmi_generator_set_state(tm_generator *g, const uint8_t *b, int64_t n)
{
    TMI_REQUIRE(n == TMI_GENERATOR_STATE_BYTES, TM_INVALID,
                "Expected a CPUGeneratorImplState of size %d but found the input RNG state size to be %lld", TMI_GENERATOR_STATE_BYTES,
                (long long)n);
    int32_t left, seeded, has;
    uint64_t next;
    memcpy(&left, b + AT_LEFT, 4);
    memcpy(&seeded, b + AT_SEEDED, 4);
    memcpy(&next, b + AT_NEXT, 8);
    memcpy(&has, b + AT_HAS, 4);
    bool fresh = left == 1 && next == 0, running = left >= 1 && left <= TMI_MT_WORDS && next == (uint64_t)(TMI_MT_WORDS + 1 - left);
    TMI_REQUIRE(seeded == 1 && (fresh || running), TM_INVALID, "Invalid mt19937 state");
    g = tmi_generator_lock(g);
    memcpy(&g->seed, b, 8);
    g->left = left;
    g->next = (int32_t)next;
    for (int i = 0; i < TMI_MT_WORDS; i++) memcpy(&g->state[i], b + AT_STATE + 8 * i, 4);
    g->has_normal = has != 0;
    memcpy(&g->cached_normal, b + AT_CACHED, 8);
    tmi_random_loops_get()->temper(g->state, g->ready);
    tmi_generator_unlock(g);
    return TM_OK;
}
