/* The mt19937 engine behind random.h: state, and draws in bulk. Callers hold the lock. */
#ifndef TMI_GENERATOR_H
#define TMI_GENERATOR_H

#include <pthread.h>

#include "random.h"

enum { TMI_MT_WORDS = 624 };

struct tm_generator {
    _Atomic uint64_t refs;
    pthread_mutex_t lock;
    uint64_t seed;
    int32_t left, next;              /* as PyTorch keeps them: left + next == 625 once a word was drawn; 1 and 0 when fresh */
    bool has_normal;
    double cached_normal;            /* the second of a pair from the scalar normal */
    uint32_t state[TMI_MT_WORDS];
    uint32_t ready[TMI_MT_WORDS];    /* state after tempering: what draws hand out */
};

tm_generator *tmi_generator_lock(tm_generator *g);   /* NULL: the default one; returns the locked generator */
void tmi_generator_unlock(tm_generator *g);
void tmi_mt_reload(tm_generator *g);                 /* the next 624 words */
void tmi_mt_words(tm_generator *g, uint32_t *out, int64_t n);

static inline uint32_t tmi_mt_next(tm_generator *g)
{
    if (TMI_UNLIKELY(--g->left == 0)) tmi_mt_reload(g);
    return g->ready[g->next++];
}
static inline uint64_t tmi_mt_next64(tm_generator *g)
{
    uint64_t high = tmi_mt_next(g);
    return high << 32 | tmi_mt_next(g);
}
static inline double tmi_mt_unit(tm_generator *g) { return (double)(tmi_mt_next64(g) & ((UINT64_C(1) << 53) - 1)) * 0x1p-53; }
static inline float tmi_mt_unit24(tm_generator *g) { return (float)(tmi_mt_next(g) & 0xffffff) * 0x1p-24f; }

/* `"what" not implemented for 'Int'`, and a dtype's name as PyTorch's messages about ranges say it ("unsigned char"). */
tm_status tmi_random_unsupported(const char *what, tm_dtype dtype);
const char *tmi_random_ctype(tm_dtype d);

/* ---- inner loops, one set per instruction set with the same bits (random_fill.c) */
typedef struct tmi_random_loops {
    void (*reload)(uint32_t *state, uint32_t *ready);
    void (*temper)(const uint32_t *state, uint32_t *ready);
    /* words -> [from, from + span); a result equal to `to` becomes `from` */
    void (*uniform_f32)(const uint32_t *words, float *out, int64_t n, float from, float span, float to);
    void (*uniform_f64)(const uint32_t *words, double *out, int64_t n, double from, double span, double to);
    /* 16 words -> 16 normals */
    void (*normal16_f32)(const uint32_t *words, float *out, float mean, float std);
    void (*below)(const uint32_t *words, uint8_t *out, int64_t n, uint64_t bound);   /* 53-bit numbers below bound */
} tmi_random_loops;
const tmi_random_loops *tmi_random_loops_get(void);    /* the best for this machine, or what TAIMATSU_CPU asks for */
const tmi_random_loops *tmi_random_loops_base(void);   /* plain C */

#endif
