/* Nodes: one block each, counted, freed without recursion. */
#include <sched.h>

#include "api.h"
#include "base/alloc.h"

tmi_autograd_glue tmi_glue;
_Atomic uint32_t tmi_python_epoch;

static __thread uint64_t next_sequence __attribute__((tls_model("initial-exec"))) = 1;

void tmi_lock(_Atomic bool *lock)
{
    while (atomic_exchange_explicit(lock, true, memory_order_acquire))
        while (atomic_load_explicit(lock, memory_order_relaxed)) sched_yield();
}

void tmi_unlock(_Atomic bool *lock) { atomic_store_explicit(lock, false, memory_order_release); }

/* ---------------------------------------------------------------- making */

tmi_node *tmi_node_new(tmi_node_kind kind, int n_edges, int n_results, size_t extra)
{
    size_t edges = (size_t)n_edges * sizeof(tmi_edge), results = (size_t)n_results * sizeof(tmi_result_info);
    size_t head = sizeof(tmi_node) + edges + results;
    tmi_node *n = tmi_alloc(head + extra);
    if (TMI_UNLIKELY(!n)) return NULL;
    memset(n, 0, head);
    atomic_init(&n->refs, 1);
    n->kind = (uint8_t)kind;
    n->nbytes = (uint32_t)(head + extra);
    n->n_edges = n_edges;
    n->n_results = n_results;
    n->edges = (tmi_edge *)(void *)(n + 1);
    n->results = (tmi_result_info *)(void *)(n->edges + n_edges);
    n->sequence = next_sequence++;
    n->epoch = atomic_load_explicit(&tmi_python_epoch, memory_order_relaxed);
    return n;
}

uint64_t tmi_latest_sequence(void) { return next_sequence - 1; }

void *tmi_node_extra(tmi_node *n) { return n->results + n->n_results; }

void tmi_node_set_edge(tmi_node *n, int i, tmi_edge e)
{
    n->edges[i] = e;
    if (e.node && !tmi_node_skippable(e.node)) n->has_python = true;
}

void tmi_node_mark_python(tmi_node *n)
{
    n->has_python = true;
    atomic_fetch_add_explicit(&tmi_python_epoch, 1, memory_order_relaxed);
}

tm_status tmi_info_fill(tmi_result_info *info, const tm_tensor *t)
{
    size_t bytes = (size_t)t->ndim * sizeof(int64_t);
    info->ndim = t->ndim;
    info->dtype = t->dtype;
    info->device = t->device;
    info->offset = t->offset;
    info->defined = true;
    info->sizes = info->strides = NULL;
    if (t->ndim == 0) return TM_OK;
    info->sizes = tmi_alloc(2 * bytes);
    if (!info->sizes) return TM_NOMEM;
    info->strides = info->sizes + t->ndim;
    memcpy(info->sizes, t->sizes, bytes);
    memcpy(info->strides, t->strides, bytes);
    return TM_OK;
}

/* ---------------------------------------------------------------- counting */

tmi_node *tmi_node_retain(tmi_node *n)
{
    if (!n) return NULL;
    uint64_t old = atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
    if (TMI_UNLIKELY(old == (TMI_HAS_PYOBJECT | 1)) && tmi_glue.node_count) tmi_glue.node_count(n, 1);
    return n;
}

bool tmi_node_try_retain(tmi_node *n)
{
    uint64_t old = atomic_load_explicit(&n->refs, memory_order_relaxed);
    do {
        if ((old & ~TMI_HAS_PYOBJECT) == 0) return false;
    } while (!atomic_compare_exchange_weak_explicit(&n->refs, &old, old + 1, memory_order_acquire, memory_order_relaxed));
    if (TMI_UNLIKELY(old == (TMI_HAS_PYOBJECT | 1)) && tmi_glue.node_count) tmi_glue.node_count(n, 1);
    return true;
}

/* The leaf forgets its accumulator before the node's memory goes. */
static void unlink_accumulator(tmi_node *n)
{
    tmi_grad_meta *m = n->variable->grad_meta;
    tmi_lock(&m->lock);
    if (m->accumulator == n) m->accumulator = NULL;
    tmi_unlock(&m->lock);
    tmi_release(n->variable);
}

static void free_infos(tmi_node *n)
{
    const char *begin = (const char *)n, *end = begin + n->nbytes;
    for (int i = 0; i < n->n_results; i++) {
        tmi_result_info *r = &n->results[i];
        bool inside = (const char *)r->sizes >= begin && (const char *)r->sizes < end;
        if (r->sizes && !inside) tmi_free(r->sizes, (size_t)r->ndim * 2 * sizeof(int64_t));
    }
    if (n->kind == TMI_NODE_CUSTOM && n->n_results) tmi_free(n->results, (size_t)n->n_results * sizeof *n->results);
}

static void free_hooks(tmi_node_hooks *h)
{
    tmi_hooks_free(&h->tensor);
    tmi_hooks_free(&h->pre);
    for (int64_t i = 0; i < h->retains.len; i++) tmi_cell_release(h->retains.data[i]);
    tmi_hooks_free(&h->post);
    tmi_vec_free(&h->retains);
    tmi_free(h, sizeof *h);
}

static void free_custom(tmi_node *n)
{
    tmi_barrier b;
    tmi_barrier_enter(&b);
    if (n->custom_free) n->custom_free(n);
    if (n->anomaly && tmi_glue.free_captured) tmi_glue.free_captured(n->anomaly);
    tmi_barrier_leave(&b);
}

static void destroy(tmi_node *n)
{
    for (int i = 0; i < n->n_edges; i++) tmi_node_release(n->edges[i].node);
    if (n->saved_args || n->saved_results) tmi_node_release_saved(n);
    if (n->custom_free || n->anomaly) free_custom(n);
    if (n->slices) tmi_slices_free(n);
    if (n->variable) unlink_accumulator(n);
    if (n->hooks) free_hooks(n->hooks);
    if (n->kind != TMI_NODE_OP) free_infos(n);
    if (n->owns_name) tmi_free((char *)(uintptr_t)n->name, strlen(n->name) + 1);
    tmi_free(n, n->nbytes);
}

/* True if that was the last one. The only owner of a node needs no locked instruction: nobody else can take a reference, except to an
 * accumulator, which its leaf can still find. */
static bool drop_reference(tmi_node *n)
{
    if (n->kind != TMI_NODE_ACCUMULATE && atomic_load_explicit(&n->refs, memory_order_acquire) == 1) return true;
    uint64_t old = atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel);
    if (TMI_UNLIKELY(old == (TMI_HAS_PYOBJECT | 2)) && tmi_glue.node_count) tmi_glue.node_count(n, -1);
    return (old & ~TMI_HAS_PYOBJECT) == 1;
}

/* A node whose count is zero joins the list; the outermost release on this thread works the list off. Whatever destroy() releases (edges,
 * saved tensors and through them their grad_fn) only adds to the list, so the stack stays flat. */
void tmi_node_release(tmi_node *n)
{
    static __thread tmi_node *dying __attribute__((tls_model("initial-exec")));
    static __thread bool working __attribute__((tls_model("initial-exec")));
    if (!n || !drop_reference(n)) return;
    n->next_dying = dying;
    dying = n;
    if (working) return;
    working = true;
    while ((n = dying)) {
        dying = n->next_dying;
        destroy(n);
    }
    working = false;
}

/* ---------------------------------------------------------------- saved values of a node */

static void clear_all(tmi_saved *s, int n)
{
    for (int i = 0; i < n; i++)
        if (s[i].t || s[i].packed) tmi_saved_clear(&s[i]);
}

void tmi_node_release_saved(tmi_node *n)
{
    if (n->slices) {
        n->released = true;
        tmi_slices_release_saved(n);
    }
    if (n->kind == TMI_NODE_CUSTOM && n->custom_release && !n->released) {
        n->released = true;
        n->custom_release(n);
    }
    if (!n->saved_args && !n->saved_results) return;
    n->released = true;
    if (n->saved_args) clear_all(n->saved_args, n->n_tensor_args);
    if (n->saved_results) clear_all(n->saved_results, n->n_results);
}

/* ---------------------------------------------------------------- what formulas ask */

const tmi_result_info *tmi_grad_arg(const tmi_grad_call *g, int i, int j)
{
    int at = 0;
    const tmi_op *op = g->node->op;
    for (uint32_t left = op->tensor_args & ((1u << i) - 1); left; left &= left - 1) {
        const tmi_value *v = &g->args[__builtin_ctz(left)];
        bool list = op->args[__builtin_ctz(left)].type != TMI_T_TENSOR;
        at += list ? (int)v->len : 1;
    }
    return &g->node->arg_info[at + j];
}

tm_tensor *tmi_grad_or_zeros(const tmi_grad_call *g, int i)
{
    if (g->grads[i]) return g->grads[i];
    const tmi_result_info *r = &g->node->results[i];
    return tmi_own(tmi_do_full(r->ndim, r->sizes, (tm_dtype)r->dtype, r->device, 0));
}
