/* Bump allocation for everything that dies together: graphs, plans, parse trees. */
#ifndef TMI_ARENA_H
#define TMI_ARENA_H

#include <stddef.h>

typedef struct tmi_arena {
    struct tmi_arena_chunk *chunk;
    size_t used;
} tmi_arena;

void tmi_arena_init(tmi_arena *a);
void *tmi_arena_alloc(tmi_arena *a, size_t nbytes);   /* 16-byte aligned, not cleared; NULL with TM_NOMEM recorded */
char *tmi_arena_strdup(tmi_arena *a, const char *s);
void tmi_arena_free(tmi_arena *a);                    /* everything at once; the arena can be used again */

#endif
