/* h.add_(f(h)): the node of f keeps h, and h now leads to that node: a cycle of counts that nothing would free (in PyTorch it leaks). What f saved can
 * never be read again, since the version has moved, so the node gets an alias in its place, which is enough for the error message. */
#include "graph_task.h"
#include "record.h"

enum { UNKNOWN_BUDGET = 256 };   /* nodes looked at when it is not known whether, and since when, the tensor is saved */

static bool refers_to(const tm_tensor *saved, const tm_tensor *t)
{
    return saved == t || (saved && (saved->flags & TMI_IS_VIEW) && saved->grad_meta->base == t);
}

static void replace_saved(tmi_node *n, const tm_tensor *t)
{
    for (int i = 0; n->saved_args && i < n->n_tensor_args; i++) {
        if (!refers_to(n->saved_args[i].t, t)) continue;
        tm_tensor *alias = tmi_alias(n->saved_args[i].t);
        if (!alias) {
            tm_error_clear();   /* out of memory: the cycle stays */
            return;
        }
        tmi_lock(&n->lock);
        tm_tensor *old = n->saved_args[i].t;
        n->saved_args[i].t = alias;
        tmi_unlock(&n->lock);
        tmi_release(old);
    }
}

static bool may_have_saved(const tmi_node *n, uint64_t since) { return n && n->sequence >= since && n->kind != TMI_NODE_ACCUMULATE; }

void tmi_cut_self_reference(tmi_node *from, tm_tensor *t, bool unknown)
{
    uint64_t since = t->grad_meta->saved_since;
    if (!since && !unknown) return;
    tmi_task k;   /* its table and queue, not its counts */
    tmi_task_init(&k);
    tmi_task_add(&k, from);
    for (int64_t i = 0; i < k.n_slots && (since || i < UNKNOWN_BUDGET); i++) {
        tmi_node *n = k.slots[i].node;
        replace_saved(n, t);
        if (n->slices) replace_saved(tmi_slices_fn(n), t);
        for (int e = 0; e < n->n_edges; e++)
            if (may_have_saved(n->edges[e].node, since)) tmi_task_add(&k, n->edges[e].node);
    }
    tmi_task_free(&k);
}
