/* Open addressing with linear probing over `slots`: 0 empty, -1 removed, else entry number + 1. Entries stay in insertion order;
 * removed ones are squeezed out when the entry array is full and the table is built again. */
#include "map.h"

#include <string.h>

#include "alloc.h"
#include "fail.h"

static uint64_t mix(uint64_t x)
{   /* finaliser of splitmix64: every input bit reaches every output bit */
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return x ? x : 1;   /* 0 marks removed entries */
}

static uint64_t hash_str(const char *s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *s; s++) h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
    return mix(h);
}

static bool same(const tmi_map_entry *e, uint64_t hash, uint64_t key, const char *str)
{
    if (e->hash != hash) return false;
    return str ? e->str && strcmp(e->str, str) == 0 : !e->str && e->key == key;
}

/* The slot of an entry, or -1. */
static int64_t find_slot(const tmi_map *m, uint64_t hash, uint64_t key, const char *str)
{
    if (!m->n_slots) return -1;
    for (uint64_t i = hash;; i++) {
        int64_t at = (int64_t)(i & (uint64_t)(m->n_slots - 1));
        int32_t s = m->slots[at];
        if (s == 0) return -1;
        if (s > 0 && same(&m->entries[s - 1], hash, key, str)) return at;
    }
}

static void put_slot(tmi_map *m, uint64_t hash, int64_t entry)
{
    uint64_t i = hash;
    while (m->slots[i & (uint64_t)(m->n_slots - 1)] > 0) i++;
    m->slots[i & (uint64_t)(m->n_slots - 1)] = (int32_t)(entry + 1);
}

static tm_status grow(tmi_map *m)
{
    int64_t cap = m->live * 2 < 8 ? 8 : m->live * 2, n_slots = 16;
    while (n_slots < cap * 2) n_slots *= 2;
    TMI_REQUIRE(cap < INT32_MAX, TM_NOMEM, "map of %lld entries is too large", (long long)cap);
    tmi_map_entry *entries = tmi_alloc((size_t)cap * sizeof *entries);
    int32_t *slots = tmi_calloc((size_t)n_slots * sizeof *slots);
    if (!entries || !slots) {
        if (entries) tmi_free(entries, (size_t)cap * sizeof *entries);
        if (slots) tmi_free(slots, (size_t)n_slots * sizeof *slots);
        return TM_NOMEM;
    }
    tmi_map old = *m;
    m->entries = entries, m->slots = slots, m->cap = cap, m->n_slots = n_slots, m->len = 0;
    for (int64_t i = 0; i < old.len; i++)
        if (old.entries[i].hash) {
            entries[m->len] = old.entries[i];
            put_slot(m, old.entries[i].hash, m->len++);
        }
    tmi_free(old.entries, (size_t)old.cap * sizeof *entries);
    tmi_free(old.slots, (size_t)old.n_slots * sizeof *slots);
    return TM_OK;
}

static void **put(tmi_map *m, uint64_t hash, uint64_t key, const char *str)
{
    int64_t at = find_slot(m, hash, key, str);
    if (at >= 0) return &m->entries[m->slots[at] - 1].value;
    if (m->len == m->cap && grow(m) != TM_OK) return NULL;
    char *copy = NULL;
    if (str && !(copy = tmi_strdup(str))) return NULL;
    m->entries[m->len] = (tmi_map_entry){.key = key, .str = copy, .hash = hash};
    put_slot(m, hash, m->len);
    m->live++;
    return &m->entries[m->len++].value;
}

void **tmi_map_put(tmi_map *m, uint64_t key) { return put(m, mix(key), key, NULL); }
void **tmi_map_put_str(tmi_map *m, const char *key) { return put(m, hash_str(key), 0, key); }

void *tmi_map_get(const tmi_map *m, uint64_t key)
{
    int64_t at = find_slot(m, mix(key), key, NULL);
    return at < 0 ? NULL : m->entries[m->slots[at] - 1].value;
}

void *tmi_map_get_str(const tmi_map *m, const char *key)
{
    int64_t at = find_slot(m, hash_str(key), 0, key);
    return at < 0 ? NULL : m->entries[m->slots[at] - 1].value;
}

bool tmi_map_remove(tmi_map *m, uint64_t key)
{
    int64_t at = find_slot(m, mix(key), key, NULL);
    if (at < 0) return false;
    tmi_map_entry *e = &m->entries[m->slots[at] - 1];
    *e = (tmi_map_entry){0};
    m->slots[at] = -1;
    m->live--;
    return true;
}

void tmi_map_free(tmi_map *m)
{
    for (int64_t i = 0; i < m->len; i++) {
        char *s = (char *)(uintptr_t)m->entries[i].str;
        if (s) tmi_free(s, strlen(s) + 1);
    }
    tmi_free(m->entries, (size_t)m->cap * sizeof *m->entries);
    tmi_free(m->slots, (size_t)m->n_slots * sizeof *m->slots);
    *m = (tmi_map){0};
}
