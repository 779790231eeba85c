/* Hash map from 64-bit keys (pointers, ids) or strings to pointers. Open addressing; iteration order is insertion order. */
#ifndef TMI_MAP_H
#define TMI_MAP_H

#include "taimatsu/base.h"

typedef struct tmi_map_entry {
    uint64_t key;
    const char *str;   /* string maps: owned copy of the key; else NULL */
    void *value;
    uint64_t hash;
} tmi_map_entry;
typedef struct tmi_map {
    tmi_map_entry *entries;   /* in insertion order; a removed one has hash 0 and value NULL */
    int32_t *slots;
    int64_t len, cap, n_slots, live;
} tmi_map;

void tmi_map_free(tmi_map *m);                                          /* keys, not values */
void **tmi_map_put(tmi_map *m, uint64_t key);                           /* the value's place, NULL-filled if new; NULL on TM_NOMEM */
void *tmi_map_get(const tmi_map *m, uint64_t key);                      /* NULL if absent */
bool tmi_map_remove(tmi_map *m, uint64_t key);
void **tmi_map_put_str(tmi_map *m, const char *key);
void *tmi_map_get_str(const tmi_map *m, const char *key);
#define tmi_key(p) ((uint64_t)(uintptr_t)(p))

#endif
