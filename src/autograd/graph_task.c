/* The bookkeeping of a backward pass: a table from nodes to slots, dependency counts, a heap of ready nodes. */
#include "graph_task.h"
#include "base/alloc.h"

void tmi_task_init(tmi_task *k)
{
    memset(k, 0, offsetof(tmi_task, few_slots));
    k->slots = k->few_slots;
    k->cap_slots = TMI_TASK_SLOTS;
    k->next = k->few_next;
    k->cap_next = TMI_TASK_EDGES;
    k->heap = k->few_heap;
    k->cap_heap = TMI_TASK_SLOTS;
    k->table = k->few_table;
    k->n_table = TMI_TASK_TABLE;
    memset(k->few_table, 0xff, sizeof k->few_table);
}

static void drop_grads(tmi_slot *s)
{
    tmi_release(s->one);
    if (!s->many) return;
    for (int i = 0; i < s->node->n_results; i++) tmi_release(s->many[i]);
    tmi_free(s->many, (size_t)s->node->n_results * sizeof *s->many);
}

void tmi_task_free(tmi_task *k)
{
    for (int64_t i = 0; i < k->n_slots; i++)
        if (k->slots[i].one || k->slots[i].many) drop_grads(&k->slots[i]);
    for (int64_t i = 0; i < k->callbacks.len; i++)
        if (k->callbacks.data[i].free) k->callbacks.data[i].free(k->callbacks.data[i].ctx);
    if (k->slots != k->few_slots) tmi_free(k->slots, (size_t)k->cap_slots * sizeof *k->slots);
    if (k->next != k->few_next) tmi_free(k->next, (size_t)k->cap_next * sizeof *k->next);
    if (k->heap != k->few_heap) tmi_free(k->heap, (size_t)k->cap_heap * sizeof *k->heap);
    if (k->table != k->few_table) tmi_free(k->table, (size_t)k->n_table * sizeof *k->table);
    tmi_vec_free(&k->captures);
    tmi_vec_free(&k->callbacks);
}

/* Doubles an array that begins in the struct. */
static bool grow(void **data, void *few, int64_t *cap, size_t elem)
{
    size_t bytes = (size_t)*cap * elem;
    void *p = *data == few ? tmi_alloc(2 * bytes) : tmi_realloc(*data, bytes, 2 * bytes);
    if (!p) return false;
    if (*data == few) memcpy(p, few, bytes);
    *data = p;
    *cap *= 2;
    return true;
}

/* ---------------------------------------------------------------- node -> slot */

static inline uint64_t hash(const tmi_node *n) { return ((uint64_t)(uintptr_t)n >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 20; }

static inline int64_t probe(const tmi_task *k, const tmi_node *n)
{
    int64_t mask = k->n_table - 1, at = (int64_t)(hash(n) & (uint64_t)mask);
    while (k->table[at] >= 0 && k->slots[k->table[at]].node != n) at = (at + 1) & mask;
    return at;
}

static tm_status grow_table(tmi_task *k)
{
    int64_t size = k->n_table * 4;
    int32_t *t = tmi_alloc((size_t)size * sizeof *t);
    if (!t) return TM_NOMEM;
    memset(t, 0xff, (size_t)size * sizeof *t);
    if (k->table != k->few_table) tmi_free(k->table, (size_t)k->n_table * sizeof *k->table);
    k->table = t;
    k->n_table = size;
    for (int64_t i = 0; i < k->n_slots; i++) t[probe(k, k->slots[i].node)] = (int32_t)i;
    return TM_OK;
}

int32_t tmi_task_find(const tmi_task *k, const tmi_node *n) { return k->table[probe(k, n)]; }

int32_t tmi_task_add(tmi_task *k, tmi_node *n)
{
    int64_t at = probe(k, n);
    if (k->table[at] >= 0) return k->table[at];
    if (TMI_UNLIKELY(k->n_slots * 2 >= k->n_table)) {
        if (grow_table(k) != TM_OK) return -1;
        at = probe(k, n);
    }
    if (TMI_UNLIKELY(k->n_slots == k->cap_slots) && !grow((void **)&k->slots, k->few_slots, &k->cap_slots, sizeof *k->slots)) return -1;
    k->slots[k->n_slots] = (tmi_slot){.node = n, .capture = -1};
    return k->table[at] = (int32_t)k->n_slots++;
}

/* ---------------------------------------------------------------- the graph below the roots */

tm_status tmi_task_discover(tmi_task *k)
{
    for (int64_t i = 0; i < k->n_slots; i++) {   /* the slots are the queue */
        tmi_node *n = k->slots[i].node;
        k->slots[i].first_edge = (int32_t)k->n_next;
        for (int e = 0; e < n->n_edges; e++) {
            int32_t to = n->edges[e].node ? tmi_task_add(k, n->edges[e].node) : -1;
            if (n->edges[e].node && to < 0) return TM_NOMEM;
            if (to >= 0) k->slots[to].deps++;
            if (TMI_UNLIKELY(k->n_next == k->cap_next) && !grow((void **)&k->next, k->few_next, &k->cap_next, sizeof *k->next)) return TM_NOMEM;
            k->next[k->n_next++] = to;
        }
    }
    return TM_OK;
}

/* Slots in an order where every node comes before those its edges lead to. */
static tm_status topological_order(const tmi_task *k, int32_t *order)
{
    int32_t *deps = tmi_alloc((size_t)k->n_slots * sizeof *deps);
    if (!deps) return TM_NOMEM;
    int64_t n = 0;
    for (int64_t i = 0; i < k->n_slots; i++) {
        deps[i] = k->slots[i].deps;
        if (deps[i] == 0) order[n++] = (int32_t)i;
    }
    for (int64_t i = 0; i < n; i++) {
        const tmi_slot *s = &k->slots[order[i]];
        for (int e = 0; e < s->node->n_edges; e++) {
            int32_t to = k->next[s->first_edge + e];
            if (to >= 0 && --deps[to] == 0) order[n++] = to;
        }
    }
    tmi_free(deps, (size_t)k->n_slots * sizeof *deps);
    return TM_OK;
}

tm_status tmi_task_select(tmi_task *k)
{
    if (k->all) {
        for (int64_t i = 0; i < k->n_slots; i++) k->slots[i].wanted = k->slots[i].runs = true;
        return TM_OK;
    }
    int32_t *order = tmi_alloc((size_t)k->n_slots * sizeof *order);
    if (!order) return TM_NOMEM;
    tm_status status = topological_order(k, order);
    for (int64_t i = k->n_slots; i-- > 0 && status == TM_OK;) {
        tmi_slot *s = &k->slots[order[i]];
        for (int e = 0; e < s->node->n_edges; e++) {
            int32_t to = k->next[s->first_edge + e];
            if (to >= 0 && k->slots[to].wanted) s->runs = true;
        }
        s->wanted |= s->runs;
    }
    tmi_free(order, (size_t)k->n_slots * sizeof *order);
    return status;
}

/* ---------------------------------------------------------------- ready nodes: a binary heap, largest sequence number first */

static inline bool before(const tmi_task *k, int32_t a, int32_t b) { return k->slots[a].node->sequence > k->slots[b].node->sequence; }

tm_status tmi_task_push(tmi_task *k, int32_t slot)
{
    if (TMI_UNLIKELY(k->n_heap == k->cap_heap) && !grow((void **)&k->heap, k->few_heap, &k->cap_heap, sizeof *k->heap)) return TM_NOMEM;
    int64_t at = k->n_heap++;
    for (; at > 0 && before(k, slot, k->heap[(at - 1) / 2]); at = (at - 1) / 2) k->heap[at] = k->heap[(at - 1) / 2];
    k->heap[at] = slot;
    return TM_OK;
}

int32_t tmi_task_pop(tmi_task *k)
{
    if (k->n_heap == 0) return -1;
    int32_t top = k->heap[0], last = k->heap[--k->n_heap];
    int64_t at = 0;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= k->n_heap) break;
        if (child + 1 < k->n_heap && before(k, k->heap[child + 1], k->heap[child])) child++;
        if (!before(k, k->heap[child], last)) break;
        k->heap[at] = k->heap[child];
        at = child;
    }
    k->heap[at] = last;
    return top;
}

tm_tensor **tmi_slot_grads(tmi_slot *s)
{
    if (s->node->n_results <= 1) return &s->one;
    if (!s->many) s->many = tmi_calloc((size_t)s->node->n_results * sizeof *s->many);
    return s->many;
}
