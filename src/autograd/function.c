/* tm_function: custom functions for C programs, on top of the same node that the Python glue uses. */
#include "api.h"
#include "base/alloc.h"

struct tm_function_call {
    tm_function f;
    void *user;
    tmi_node *node;            /* borrowed: the node owns the call */
    tmi_saved *saved;
    tm_tensor **unpacked;      /* owned, while backward runs */
    tm_tensor **to_save;       /* owned, between forward and wrapping */
    int n_saved;
};

static void clear_saved(tm_function_call *c)
{
    for (int i = 0; i < c->n_saved; i++) {
        if (c->saved) tmi_saved_clear(&c->saved[i]);
        if (c->to_save) tmi_release(c->to_save[i]);
    }
    if (c->to_save) tmi_free(c->to_save, (size_t)c->n_saved * sizeof *c->to_save);
    c->to_save = NULL;
}

static void free_call(tm_function_call *c)
{
    clear_saved(c);
    if (c->saved) tmi_free(c->saved, (size_t)c->n_saved * sizeof *c->saved);
    if (c->f.free) c->f.free(c->user);
    tmi_free(c, sizeof *c);
}

static void release_node(tmi_node *n) { clear_saved(n->custom_ctx); }
static void free_node(tmi_node *n) { free_call(n->custom_ctx); }

/* ---------------------------------------------------------------- backward */

static tm_status run_backward(tmi_node *n, tm_function_call *c, tm_tensor **grads, tm_tensor **inputs)
{
    tm_tensor *few[8] = {NULL}, **g = n->n_results <= 8 ? few : tmi_calloc((size_t)n->n_results * sizeof *g);
    if (!g) return TM_NOMEM;
    for (int i = 0; i < n->n_results; i++) {
        const tmi_result_info *r = &n->results[i];
        g[i] = grads[i] || !r->defined ? grads[i] : tmi_own(tmi_do_full(r->ndim, r->sizes, (tm_dtype)r->dtype, r->device, 0));
    }
    tm_status status = tm_error_status();
    if (status == TM_OK) status = c->f.backward(c, n->n_results, g, n->n_edges, inputs);
    if (status == TM_OK) status = tm_error_status();
    for (int i = 0; i < n->n_edges; i++) {
        if (status != TM_OK) inputs[i] = NULL;
        if (inputs[i]) tmi_retain(inputs[i]);
    }
    if (g != few) tmi_free(g, (size_t)n->n_results * sizeof *g);
    return status;
}

static tm_status backward(tmi_node *n, tm_tensor **grads, tm_tensor **inputs)
{
    tm_function_call *c = n->custom_ctx;
    if (c->n_saved && !(c->unpacked = tmi_calloc((size_t)c->n_saved * sizeof *c->unpacked))) return TM_NOMEM;
    tm_scope *scope = tm_scope_open();
    tm_status status = scope ? run_backward(n, c, grads, inputs) : TM_NOMEM;
    tm_scope_close(scope);
    for (int i = 0; i < c->n_saved; i++) tmi_release(c->unpacked[i]);
    if (c->unpacked) tmi_free(c->unpacked, (size_t)c->n_saved * sizeof *c->unpacked);
    c->unpacked = NULL;
    return status;
}

/* ---------------------------------------------------------------- forward */

static tm_status run_forward(tm_function_call *c, int n_in, tm_tensor *const *in, int n_out, tm_tensor **out)
{
    bool grad_enabled = tm_set_grad_enabled(false);
    tm_scope *scope = tm_scope_open();
    tm_status status = scope ? c->f.forward(c, n_in, in, n_out, out) : TM_NOMEM;
    if (status == TM_OK) status = tm_error_status();
    for (int i = 0; i < n_out; i++) {
        if (status != TM_OK) out[i] = NULL;
        if (out[i]) tmi_retain(out[i]);
    }
    tm_scope_close(scope);
    tm_set_grad_enabled(grad_enabled);
    return status;
}

static tm_status save_all(tm_function_call *c, int n_out, tm_tensor **out)
{
    if (!c->to_save) return TM_OK;
    if (!(c->saved = tmi_calloc((size_t)c->n_saved * sizeof *c->saved))) return TM_NOMEM;
    for (int i = 0; i < c->n_saved; i++) {
        c->saved[i].result = -1;
        if (c->to_save[i]) TMI_TRY(tmi_custom_save(&c->saved[i], c->node, c->to_save[i], n_out, out));
    }
    for (int i = 0; i < c->n_saved; i++) tmi_release(c->to_save[i]);
    tmi_free(c->to_save, (size_t)c->n_saved * sizeof *c->to_save);
    c->to_save = NULL;
    return TM_OK;
}

static tm_status apply(tm_function_call *c, bool recording, int n_in, tm_tensor *const *in, int n_out, tm_tensor **out)
{
    TMI_TRY(run_forward(c, n_in, in, n_out, out));
    TMI_TRY(tmi_custom_wrap(c->node, recording, n_in, in, n_out, out, NULL));
    return recording ? save_all(c, n_out, out) : TM_OK;
}

tm_status tm_function_apply(const tm_function *f, void *user, int n_in, tm_tensor *const *in, int n_out, tm_tensor **out)
{
    tm_function_call *c = tmi_tls.error_pending ? NULL : tmi_calloc(sizeof *c);
    for (int i = 0; i < n_out; i++) out[i] = NULL;
    bool recording = false;
    tmi_node *n = NULL;
    if (c) {
        *c = (tm_function_call){.f = *f, .user = user};
        n = tmi_custom_node_new(&(tmi_custom_spec){f->name, backward, release_node, free_node, c}, n_in, in, &recording);
        if (!n) tmi_free(c, sizeof *c);
    }
    if (!n) {
        if (f->free) f->free(user);
        return tm_error_status();
    }
    c->node = n;
    tm_status status = apply(c, recording, n_in, in, n_out, out);
    for (int i = 0; i < n_out; i++) {
        if (status == TM_OK) out[i] = tmi_own(out[i]);
        else tmi_release(out[i]), out[i] = NULL;
    }
    tmi_node_release(n);
    return status == TM_OK ? tm_error_status() : status;
}

/* ---------------------------------------------------------------- what forward and backward ask */

void *tm_call_user(const tm_function_call *call) { return call->user; }
bool tm_call_needs_grad(const tm_function_call *call, int i) { return i >= 0 && i < call->node->n_edges && call->node->edges[i].node; }

tm_status tm_call_save(tm_function_call *call, int n, tm_tensor *const *t)
{
    if (tmi_tls.error_pending) return tmi_tls.error_pending;
    TMI_REQUIRE(!call->to_save && n >= 0, TM_INVALID, "tm_call_save: once per forward");
    if (n == 0) return TM_OK;
    if (!(call->to_save = tmi_calloc((size_t)n * sizeof *call->to_save))) return TM_NOMEM;
    call->n_saved = n;
    for (int i = 0; i < n; i++) {
        if (t[i]) tmi_retain(t[i]);
        call->to_save[i] = t[i];
    }
    return TM_OK;
}

tm_tensor *tm_call_saved(tm_function_call *call, int i)
{
    TMI_REQUIRE_PTR(i >= 0 && i < call->n_saved && call->unpacked, TM_INDEX, "tm_call_saved: no saved tensor %d", i);
    if (call->unpacked[i]) return call->unpacked[i];
    if (tmi_unpack_saved(&call->saved[i], call->node, &call->unpacked[i]) != TM_OK) return NULL;
    return call->unpacked[i];
}
