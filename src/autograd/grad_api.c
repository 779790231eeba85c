/* The public C API of differentiation, and what the glue asks of nodes. */
#include "api.h"
#include "base/alloc.h"

/* ---------------------------------------------------------------- backward and grad */

tm_status tm_backward_full(int n, tm_tensor *const *roots, tm_tensor *const *grads, bool retain_graph, bool create_graph)
{
    const tmi_backward_args a = {.roots = roots, .grads = grads, .n_roots = n, .retain_graph = retain_graph, .create_graph = create_graph};
    return tmi_backward(&a);
}

tm_status tm_backward(tm_tensor *root)
{
    if (tmi_tls.error_pending) return tmi_tls.error_pending;   /* root may be NULL then */
    return tm_backward_full(1, &root, NULL, false, false);
}

/* Hands owned results to the scope; entries that it could not take are NULL. */
static tm_status own_all(int n, tm_tensor **t)
{
    for (int i = 0; i < n; i++)
        if (t[i]) t[i] = tmi_own(t[i]);
    return tm_error_status();
}

tm_status tm_grad(int n_roots, tm_tensor *const *roots, tm_tensor *const *grads, int n_inputs, tm_tensor *const *inputs, bool retain_graph,
                  bool create_graph, bool allow_unused, tm_tensor **out)
{
    const tmi_backward_args a = {.roots = roots, .grads = grads, .n_roots = n_roots, .inputs = inputs, .n_inputs = n_inputs, .results = out,
                                 .retain_graph = retain_graph, .create_graph = create_graph, .allow_unused = allow_unused};
    TMI_TRY(tmi_backward(&a));
    return own_all(n_inputs, out);
}

/* ---------------------------------------------------------------- modes */

bool tm_grad_enabled(void) { return tmi_tls.grad_enabled; }

bool tm_set_grad_enabled(bool on)
{
    bool was = tmi_tls.grad_enabled;
    tmi_tls.grad_enabled = on;
    return was;
}

bool tm_inference_enabled(void) { return tmi_tls.inference; }

bool tm_set_inference(bool on)
{
    bool was = tmi_tls.inference;
    tmi_tls.inference = on;
    tmi_tls.grad_enabled = !on;
    return was;
}

/* ---------------------------------------------------------------- single tensors */

bool tm_tensor_is_leaf(tm_tensor *t) { return tmi_is_leaf(t); }

const char *tm_tensor_grad_fn_name(tm_tensor *t)
{
    tmi_node *n = tmi_grad_fn_of(t);
    return n ? tmi_node_name(n) : NULL;
}

tm_status tm_retain_grad(tm_tensor *t) { return tmi_tls.error_pending ? (tm_status)tmi_tls.error_pending : tmi_retain_grad(t); }

tm_tensor *tm_tensor_detach(tm_tensor *t) { return tmi_tls.error_pending ? NULL : tmi_own(tmi_detach(t)); }

/* A C hook inside a tmi_hook. */
typedef struct user_hook {
    tm_tensor *(*hook)(void *ctx, tm_tensor *grad);
    void (*free)(void *ctx);
    void *ctx;
} user_hook;

/* What the hook returns belongs to the scope opened here, or is older and borrowed. */
static tm_status call_user_hook(void *ctx, tmi_node *node, tm_tensor **grads, int n, tm_tensor **outs, int n_outs)
{
    const user_hook *h = ctx;
    tm_scope *scope = tm_scope_open();
    if (!scope) return TM_NOMEM;
    tm_tensor *r = h->hook(h->ctx, grads[0]);
    if (r) tmi_retain(r);
    tm_scope_close(scope);
    if (tm_error_status() != TM_OK) {
        tmi_release(r);
        return tm_error_status();
    }
    if (r) {
        tmi_release(grads[0]);
        grads[0] = r;
    }
    return TM_OK;
}

static void free_user_hook(void *ctx)
{
    user_hook *h = ctx;
    if (h->free) h->free(h->ctx);
    tmi_free(h, sizeof *h);
}

tm_status tm_add_hook(tm_tensor *t, tm_tensor *(*hook)(void *ctx, tm_tensor *grad), void (*free)(void *ctx), void *ctx, tm_hook **handle)
{
    if (tmi_tls.error_pending) return tmi_tls.error_pending;
    user_hook *h = tmi_alloc(sizeof *h);
    if (!h) return TM_NOMEM;
    *h = (user_hook){hook, free, ctx};
    tm_status status = tmi_tensor_add_hook(t, call_user_hook, free_user_hook, h, (tmi_hook **)handle);
    if (status != TM_OK) tmi_free(h, sizeof *h);
    return status;
}

void tm_remove_hook(tm_hook *handle)
{
    if (!handle) return;
    tmi_hook_remove((tmi_hook *)handle);
    tmi_hook_release((tmi_hook *)handle);
}

/* ---------------------------------------------------------------- nodes */

const char *tmi_node_name(const tmi_node *n) { return n->name; }

static tm_status saved_tensor(tmi_node *n, tmi_saved *s, tm_tensor **out)
{
    if (!s->t && !s->packed && !n->released) return TM_NOT_FOUND;
    return tmi_unpack_saved(s, n, out);
}

/* Position of argument i among the flattened tensor arguments. */
static int position(const tmi_node *n, int i)
{
    int at = 0;
    for (uint32_t left = n->op->tensor_args & ((1u << i) - 1); left; left &= left - 1) {
        int k = __builtin_ctz(left);
        at += n->op->args[k].type == TMI_T_TENSOR ? 1 : (int)n->args[k].len;
    }
    return at;
}

static tm_status saved_arg(tmi_node *n, int i, tm_tensor **out, const tmi_value **value)
{
    if (!(n->op->tensor_args >> i & 1)) {
        *value = &n->args[i];
        return TM_OK;
    }
    if (n->op->args[i].type != TMI_T_TENSOR || !n->saved_args) return TM_NOT_FOUND;
    return saved_tensor(n, &n->saved_args[position(n, i)], out);
}

tm_status tmi_node_saved_value(tmi_node *n, const char *name, tm_tensor **out, const tmi_value **value)
{
    *out = NULL;
    *value = NULL;
    if (n->kind != TMI_NODE_OP) return TM_NOT_FOUND;
    for (int i = 0; i < n->op->n_args; i++)
        if (strcmp(n->op->args[i].name, name) == 0) return saved_arg(n, i, out, value);
    for (int k = 0; n->saved_results && k < n->n_results && k < n->op->n_outs; k++) {
        const char *own = n->op->out_names ? n->op->out_names[k] : NULL;
        bool match = strcmp(own ? own : "result", name) == 0 || (n->op->n_outs == 1 && strcmp("result", name) == 0);
        if (match) return saved_tensor(n, &n->saved_results[k], out);
    }
    return TM_NOT_FOUND;
}
