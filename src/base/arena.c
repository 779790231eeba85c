/* Chunks double in size up to 1 MiB; `used` counts bytes of the newest chunk. */
#include "arena.h"

#include <string.h>

#include "alloc.h"

typedef struct tmi_arena_chunk {
    struct tmi_arena_chunk *prev;
    size_t size;   /* of the whole block, header included */
} tmi_arena_chunk;

enum { FIRST_CHUNK = 4096, LAST_CHUNK = 1 << 20, HEADER = 16 };

void tmi_arena_init(tmi_arena *a)
{
    a->chunk = NULL;
    a->used = 0;
}

static tmi_arena_chunk *add_chunk(tmi_arena *a, size_t need)
{
    size_t size = a->chunk ? a->chunk->size * 2 : FIRST_CHUNK;
    if (size > LAST_CHUNK) size = LAST_CHUNK;
    if (size < need + HEADER) size = need + HEADER;
    tmi_arena_chunk *c = tmi_alloc(size);
    if (!c) return NULL;
    c->prev = a->chunk;
    c->size = size;
    a->chunk = c;
    a->used = HEADER;
    return c;
}

void *tmi_arena_alloc(tmi_arena *a, size_t nbytes)
{
    size_t need = (nbytes + 15) & ~(size_t)15;
    if (need < nbytes) need = nbytes;   /* absurd size: let the allocator refuse it */
    if (!a->chunk || a->chunk->size - a->used < need)
        if (!add_chunk(a, need)) return NULL;
    void *p = (char *)a->chunk + a->used;
    a->used += need;
    return p;
}

char *tmi_arena_strdup(tmi_arena *a, const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = tmi_arena_alloc(a, n);
    if (p) memcpy(p, s, n);
    return p;
}

void tmi_arena_free(tmi_arena *a)
{
    for (tmi_arena_chunk *c = a->chunk; c;) {
        tmi_arena_chunk *prev = c->prev;
        tmi_free(c, c->size);
        c = prev;
    }
    tmi_arena_init(a);
}
