/* Best fit over runs of pages, with coalescing. The record of a run lives outside its memory (an array beside each arena, used at the
 * first and last page of a run), so free memory is never touched and fresh memory is not faulted in by bookkeeping.
 *
 * Arenas start at multiples of 32 MiB; a two-level table finds the arena of an address. A run remembers how many of its pages the
 * system backs with nothing yet (`virgin`): these are not counted as reserved, and used last. */
#include "page_heap.h"

#include <string.h>
#include <sys/mman.h>

enum { GRANULE_SHIFT = 25, ADDRESS_BITS = 48, LEAF_BITS = 11, ROOT_BITS = ADDRESS_BITS - GRANULE_SHIFT - LEAF_BITS };
#define GRANULE ((size_t)1 << GRANULE_SHIFT)
enum { EXACT_BINS = 64, BIN_COUNT = EXACT_BINS + 4 * 30 };

typedef struct run {
    struct run *next, *prev;   /* in its bin */
    struct arena *arena;
    uint32_t pages, virgin;
    bool is_free;              /* valid at a run's first and last page */
} run;

typedef struct arena {
    char *base;
    size_t pages;
    struct arena *next;
    size_t meta_bytes;
    run runs[];                /* one per page */
} arena;

static struct {
    arena **root[1 << ROOT_BITS];
    arena *arenas;
    run bins[BIN_COUNT];       /* list heads */
    uint64_t used_bins[(BIN_COUNT + 63) / 64];
    int64_t reserved, mapped;
    bool ready;
} heap;

/* ---- which arena holds an address */

static arena **leaf_of(uintptr_t granule, bool make)
{
    arena ***slot = &heap.root[granule >> LEAF_BITS];
    if (!*slot && make) {
        void *p = mmap(NULL, sizeof(arena *) << LEAF_BITS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED) *slot = p;
    }
    return *slot;
}

static bool index_arena(const arena *a, arena *value)
{
    uintptr_t first = (uintptr_t)a->base >> GRANULE_SHIFT, n = a->pages * TMI_PAGE >> GRANULE_SHIFT;
    for (uintptr_t g = first; g < first + n; g++) {
        if (g >> (ROOT_BITS + LEAF_BITS)) return false;
        arena **leaf = leaf_of(g, true);
        if (!leaf) return false;
        leaf[g & ((1u << LEAF_BITS) - 1)] = value;
    }
    return true;
}

static arena *arena_at(const void *p)
{
    uintptr_t g = (uintptr_t)p >> GRANULE_SHIFT;
    return leaf_of(g, false)[g & ((1u << LEAF_BITS) - 1)];
}

/* ---- bins: one per length below 64 pages, then four per doubling */

static int bin_of(size_t pages)
{
    if (pages < EXACT_BINS) return (int)pages;
    int top = 63 - __builtin_clzll(pages);
    int bin = EXACT_BINS + 4 * (top - 6) + (int)(pages >> (top - 2) & 3);
    return bin < BIN_COUNT ? bin : BIN_COUNT - 1;
}

/* r->arena is set. */
static void bin_add(run *r, uint32_t pages, uint32_t virgin)
{
    run *head = &heap.bins[bin_of(pages)], *last = r + pages - 1;
    r->pages = last->pages = pages;
    r->virgin = virgin;
    r->is_free = last->is_free = true;
    r->prev = head;
    r->next = head->next;
    r->next->prev = r;
    head->next = r;
    int b = (int)(head - heap.bins);
    heap.used_bins[b / 64] |= UINT64_C(1) << (b % 64);
}

static void bin_remove(run *r)
{
    r->prev->next = r->next;
    r->next->prev = r->prev;
    int b = bin_of(r->pages);
    if (heap.bins[b].next == &heap.bins[b]) heap.used_bins[b / 64] &= ~(UINT64_C(1) << (b % 64));
    r->is_free = (r + r->pages - 1)->is_free = false;
}

static int next_used_bin(int b)
{
    for (int w = b / 64; w < (int)(sizeof heap.used_bins / 8); w++) {
        uint64_t bits = heap.used_bins[w];
        if (w == b / 64) bits &= ~UINT64_C(0) << (b % 64);
        if (bits) return w * 64 + __builtin_ctzll(bits);
    }
    return -1;
}

/* The shortest run of at least `pages` in the first bin that has one; backed memory is preferred at equal length. Looks at a bounded
 * number of runs per bin. */
static run *best_fit(size_t pages)
{
    for (int b = next_used_bin(bin_of(pages)); b >= 0; b = b + 1 < BIN_COUNT ? next_used_bin(b + 1) : -1) {
        run *best = NULL, *head = &heap.bins[b];
        int looked = 0;
        for (run *r = head->next; r != head && looked < 64; r = r->next, looked++) {
            if (r->pages < pages) continue;
            if (!best || r->pages < best->pages || (r->pages == best->pages && r->virgin < best->virgin)) best = r;
        }
        if (best) return best;
    }
    return NULL;
}

/* ---- arenas */

static void init(void)
{
    for (int i = 0; i < BIN_COUNT; i++) heap.bins[i].next = heap.bins[i].prev = &heap.bins[i];
    heap.ready = true;
}

/* `nbytes` (a multiple of the granule) at a multiple of the granule. */
static char *map_aligned(size_t nbytes)
{
    char *p = mmap(NULL, nbytes + GRANULE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    size_t skip = -(uintptr_t)p & (GRANULE - 1);
    if (skip) munmap(p, skip);
    munmap(p + skip + nbytes, GRANULE - skip);
    madvise(p + skip, nbytes, MADV_HUGEPAGE);
    return p + skip;
}

static arena *add_arena(size_t nbytes)
{
    size_t pages = nbytes / TMI_PAGE, meta = sizeof(arena) + pages * sizeof(run);
    if (pages >= UINT32_MAX) return NULL;
    arena *a = mmap(NULL, meta, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a == MAP_FAILED) return NULL;
    char *base = map_aligned(nbytes);
    a->base = base;
    a->pages = pages;
    a->meta_bytes = meta;
    if (!base || !index_arena(a, a)) {
        if (base) munmap(base, nbytes);
        munmap(a, meta);
        return NULL;
    }
    a->next = heap.arenas;
    heap.arenas = a;
    heap.mapped += (int64_t)nbytes;
    a->runs[0].arena = a;
    bin_add(a->runs, (uint32_t)pages, (uint32_t)pages);
    return a;
}

/* Arenas grow with what is already mapped, so that their number stays small; when that much is refused, just what is needed. */
static bool grow(size_t nbytes)
{
    size_t need = (nbytes + GRANULE - 1) & ~(GRANULE - 1), want = (size_t)heap.mapped / 8 & ~(GRANULE - 1);
    if (need < nbytes) return false;
    if (want > ((size_t)1 << 30)) want = (size_t)1 << 30;
    return (want > need && add_arena(want)) || add_arena(need);
}

void *tmi_pages_take(size_t nbytes, bool *fresh)
{
    if (!heap.ready) init();
    if (nbytes > SIZE_MAX / 4) return NULL;
    size_t pages = (nbytes + TMI_PAGE - 1) / TMI_PAGE;
    run *r = best_fit(pages);
    if (!r) {
        if (!grow(pages * TMI_PAGE)) return NULL;
        r = best_fit(pages);
    }
    bin_remove(r);
    uint32_t backed = r->pages - r->virgin, used_virgin = pages > backed ? (uint32_t)pages - backed : 0;
    if (r->pages > pages) {
        r[pages].arena = r->arena;
        bin_add(r + pages, r->pages - (uint32_t)pages, r->virgin - used_virgin);
    }
    heap.reserved += (int64_t)used_virgin * TMI_PAGE;
    *fresh = used_virgin > 0;
    arena *a = r->arena;
    return a->base + (size_t)(r - a->runs) * TMI_PAGE;
}

void tmi_pages_give(void *p, size_t nbytes)
{
    arena *a = arena_at(p);
    uint32_t pages = (uint32_t)((nbytes + TMI_PAGE - 1) / TMI_PAGE), virgin = 0;
    size_t at = (size_t)((char *)p - a->base) / TMI_PAGE;
    run *r = a->runs + at;
    if (at + pages < a->pages && r[pages].is_free) {
        run *after = r + pages;
        bin_remove(after);
        pages += after->pages;
        virgin += after->virgin;
    }
    if (at > 0 && r[-1].is_free) {
        run *before = r - r[-1].pages;
        bin_remove(before);
        pages += before->pages;
        virgin += before->virgin;
        r = before;
    }
    r->arena = a;
    bin_add(r, pages, virgin);
}

/* ---- giving memory back */

static void unmap_arena(arena **link)
{
    arena *a = *link;
    *link = a->next;
    heap.reserved -= (int64_t)(a->runs[0].pages - a->runs[0].virgin) * TMI_PAGE;
    heap.mapped -= (int64_t)a->pages * TMI_PAGE;
    bin_remove(a->runs);
    index_arena(a, NULL);
    munmap(a->base, a->pages * TMI_PAGE);
    munmap(a, a->meta_bytes);
}

static void drop_free_pages(void)
{
    for (int b = 0; b < BIN_COUNT; b++)
        for (run *r = heap.bins[b].next; r != &heap.bins[b]; r = r->next) {
            if (r->virgin == r->pages) continue;
            arena *a = r->arena;
            if (madvise(a->base + (size_t)(r - a->runs) * TMI_PAGE, (size_t)r->pages * TMI_PAGE, MADV_DONTNEED)) continue;
            heap.reserved -= (int64_t)(r->pages - r->virgin) * TMI_PAGE;
            r->virgin = r->pages;
        }
}

void tmi_pages_trim(void)
{
    if (!heap.ready) return;
    for (arena **link = &heap.arenas; *link;) {
        run *r = (*link)->runs;
        if (r->is_free && r->pages == (*link)->pages) unmap_arena(link);
        else link = &(*link)->next;
    }
    drop_free_pages();
}

int64_t tmi_pages_reserved(void) { return heap.reserved; }
