/* Hooks: shared objects in lists. A hook may remove itself, or be removed by another thread, while it runs. */
#include "api.h"
#include "base/alloc.h"

static _Atomic uint64_t next_id = 1;

void tmi_call_out_begin(tmi_call_out *c)
{
    c->modes = tmi_tls.modes;
    tmi_tls.modes &= ~(uint32_t)TMI_MODE_BELOW_AUTOGRAD;
    tmi_barrier_enter(&c->barrier);
}

void tmi_call_out_end(tmi_call_out *c)
{
    tmi_barrier_leave(&c->barrier);
    tmi_tls.modes = c->modes;
}

tmi_hook *tmi_hook_new(tmi_hook_fn *fn, void (*free)(void *), void *ctx)
{
    tmi_hook *h = tmi_calloc(sizeof *h);
    if (!h) return NULL;
    atomic_init(&h->refs, 1);
    h->id = atomic_fetch_add(&next_id, 1);
    h->fn = fn;
    h->free = free;
    h->ctx = ctx;
    return h;
}

/* Exactly one caller frees the context. */
static void free_context(tmi_hook *h)
{
    if (atomic_exchange(&h->freed, true) || !h->free) return;
    tmi_call_out c;
    tmi_call_out_begin(&c);
    h->free(h->ctx);
    tmi_call_out_end(&c);
}

void tmi_hook_release(tmi_hook *h)
{
    if (!h || atomic_fetch_sub(&h->refs, 1) != 1) return;
    free_context(h);
    tmi_free(h, sizeof *h);
}

void tmi_hook_remove(tmi_hook *h)
{
    atomic_store(&h->removed, true);
    if (atomic_load(&h->running) == 0) free_context(h);
}

void tmi_hooks_free(tmi_hooks_vec *v)
{
    for (int64_t i = 0; i < v->len; i++) {
        atomic_store(&v->data[i]->removed, true);
        if (atomic_load(&v->data[i]->running) == 0) free_context(v->data[i]);
        tmi_hook_release(v->data[i]);
    }
    tmi_vec_free(v);
}

static tm_status run_one(tmi_hook *h, tmi_node *node, tm_tensor **grads, int n, tm_tensor **outs, int n_outs)
{
    tm_status status = TM_OK;
    atomic_fetch_add(&h->refs, 1);
    atomic_fetch_add(&h->running, 1);
    if (!atomic_load(&h->removed)) {
        tmi_call_out c;
        tmi_call_out_begin(&c);
        status = h->fn(h->ctx, node, grads, n, outs, n_outs);
        tmi_call_out_end(&c);
    }
    if (atomic_fetch_sub(&h->running, 1) == 1 && atomic_load(&h->removed)) free_context(h);
    tmi_hook_release(h);
    return status;
}

/* Not while one of them runs: the loop of tmi_hooks_run counts positions. */
static void prune(tmi_hooks_vec *v)
{
    for (int64_t i = 0; i < v->len; i++)
        if (atomic_load(&v->data[i]->running)) return;
    int64_t kept = 0;
    for (int64_t i = 0; i < v->len; i++) {
        if (atomic_load(&v->data[i]->removed)) tmi_hook_release(v->data[i]);
        else v->data[kept++] = v->data[i];
    }
    v->len = kept;
}

tm_status tmi_hooks_run(tmi_hooks_vec *v, int nr, tmi_node *node, tm_tensor **grads, int n, tm_tensor **outs, int n_outs)
{
    tm_status status = TM_OK;
    int64_t len = v->len;   /* hooks added by a hook run next time */
    for (int64_t i = 0; i < len && i < v->len && status == TM_OK; i++) {
        tmi_hook *h = v->data[i];
        if (nr < 0 || h->nr == nr) status = run_one(h, node, grads, n, outs, n_outs);
    }
    return status;
}

/* ---------------------------------------------------------------- adding */

static tm_status add(tmi_hooks_vec *v, int nr, tmi_hook_fn *fn, void (*free)(void *), void *ctx, tmi_hook **handle)
{
    prune(v);
    tmi_hook *h = tmi_hook_new(fn, NULL, ctx);
    if (!h) return TM_NOMEM;
    h->nr = nr;
    if (!tmi_vec_push(v, h)) {
        tmi_hook_release(h);
        return TM_NOMEM;
    }
    h->free = free;   /* only now: a failure leaves the context to the caller */
    if (handle) {
        atomic_fetch_add(&h->refs, 1);
        *handle = h;
    }
    return TM_OK;
}

tmi_node_hooks *tmi_node_hooks_of(tmi_node *n)
{
    if (n->hooks) return n->hooks;
    tmi_node_hooks *h = tmi_calloc(sizeof *h);
    if (!h) return NULL;
    tmi_lock(&n->lock);
    if (!n->hooks) {
        n->hooks = h;
        h = NULL;
    }
    tmi_unlock(&n->lock);
    if (h) tmi_free(h, sizeof *h);
    return n->hooks;
}

static tm_status add_to_leaf(tmi_hooks_vec **at, tmi_hook_fn *fn, void (*free)(void *), void *ctx, tmi_hook **handle)
{
    if (!*at) *at = tmi_calloc(sizeof **at);
    return *at ? add(*at, 0, fn, free, ctx, handle) : TM_NOMEM;
}

tm_status tmi_tensor_add_hook(tm_tensor *t, tmi_hook_fn *fn, void (*free)(void *), void *ctx, tmi_hook **handle)
{
    TMI_REQUIRE(tmi_requires_grad(t), TM_AUTOGRAD, "cannot register a hook on a tensor that doesn't require gradient");
    tmi_node *node = tmi_grad_fn_of(t);
    if (!node && tmi_tls.error_pending) return tmi_tls.error_pending;
    tmi_grad_meta *m = tmi_grad_meta_of(t);
    if (!m) return TM_NOMEM;
    if (!node) return add_to_leaf(&m->hooks, fn, free, ctx, handle);
    tmi_node_hooks *h = tmi_node_hooks_of(node);
    return h ? add(&h->tensor, m->output_nr, fn, free, ctx, handle) : TM_NOMEM;
}

tm_status tmi_tensor_add_post_accumulate_hook(tm_tensor *t, tmi_hook_fn *fn, void (*free)(void *), void *ctx, tmi_hook **handle)
{
    TMI_REQUIRE(tmi_requires_grad(t), TM_AUTOGRAD, "cannot register a hook on a tensor that doesn't require gradient");
    TMI_REQUIRE(!tmi_grad_fn_of(t), TM_AUTOGRAD, "post accumulate grad hooks cannot be registered on non-leaf tensors");
    tmi_grad_meta *m = tmi_grad_meta_of(t);
    return m ? add_to_leaf(&m->post_accumulate, fn, free, ctx, handle) : TM_NOMEM;
}

tm_status tmi_node_add_pre_hook(tmi_node *n, tmi_hook_fn *fn, void (*free)(void *), void *ctx, tmi_hook **handle)
{
    tmi_node_hooks *h = tmi_node_hooks_of(n);
    return h ? add(&h->pre, -1, fn, free, ctx, handle) : TM_NOMEM;
}

tm_status tmi_node_add_post_hook(tmi_node *n, tmi_hook_fn *fn, void (*free)(void *), void *ctx, tmi_hook **handle)
{
    tmi_node_hooks *h = tmi_node_hooks_of(n);
    return h ? add(&h->post, -1, fn, free, ctx, handle) : TM_NOMEM;
}
