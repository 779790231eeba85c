/* Running one node: its formula, custom function or accumulation, and fitting what comes out to where it goes. */
#include "accumulate.h"
#include "api.h"
#include "base/alloc.h"

/* ---------------------------------------------------------------- formulas */

enum { FEW = 10 };

/* Everything a formula reads, unpacked; references are given back by free_call. */
typedef struct call {
    tmi_grad_call g;
    tmi_value args[TMI_MAX_ARGS];
    tm_tensor *out[TMI_MAX_ARGS];
    tm_tensor **lists[TMI_MAX_ARGS];
    tm_tensor *few_tensors[FEW], *few_results[FEW];
    tm_tensor **tensors, **results;   /* owned entries */
    tm_tensor **list_outs;            /* as many as tensors; NULL without Tensor[] arguments */
} call;

static tm_tensor **room(tm_tensor **few, int n)
{
    if (n > FEW) return tmi_calloc((size_t)n * sizeof *few);
    memset(few, 0, (size_t)n * sizeof *few);
    return few;
}

static tm_status unpack_all(tmi_saved *s, int n, tmi_node *owner, tm_tensor **to)
{
    for (int i = 0; s && i < n; i++)
        if (s[i].t || s[i].packed) TMI_TRY(tmi_unpack_saved(&s[i], owner, &to[i]));
    return TM_OK;
}

/* Puts tensors back among the arguments and gives lists their places for gradients. */
static tm_status bind_args(call *c, const tmi_node *n)
{
    const tmi_op *op = n->op;
    int at = 0;
    for (uint32_t left = op->tensor_args; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        if (op->args[i].type == TMI_T_TENSOR) {
            if (c->args[i].tag == TMI_V_TENSOR) c->args[i].u.t = c->tensors[at];
            at++;
            continue;
        }
        if (!c->list_outs && !(c->list_outs = tmi_calloc((size_t)n->n_tensor_args * sizeof(tm_tensor *)))) return TM_NOMEM;
        c->args[i].u.tensors = c->tensors + at;
        c->lists[i] = c->list_outs + at;
        at += (int)c->args[i].len;
    }
    return TM_OK;
}

static void free_array(tm_tensor **p, tm_tensor **few, int n)
{
    for (int i = 0; p && i < n; i++) tmi_release(p[i]);
    if (p && p != few) tmi_free(p, (size_t)n * sizeof *p);
}

static void free_call(call *c, const tmi_node *n)
{
    free_array(c->tensors, c->few_tensors, n->n_tensor_args);
    free_array(c->results, c->few_results, n->n_results);
    if (c->list_outs) tmi_free(c->list_outs, (size_t)n->n_tensor_args * sizeof(tm_tensor *));
}

static tm_status prepare_call(call *c, tmi_node *n, uint32_t needs, tm_tensor **grads)
{
    memset(c->out, 0, n->op->n_args * sizeof *c->out);
    memset(c->lists, 0, n->op->n_args * sizeof *c->lists);
    memcpy(c->args, n->args, n->op->n_args * sizeof *c->args);
    c->list_outs = NULL;
    c->tensors = room(c->few_tensors, n->n_tensor_args);
    c->results = room(c->few_results, n->n_results);
    if (!c->tensors || !c->results) return TM_NOMEM;
    TMI_TRY(unpack_all(n->saved_args, n->n_tensor_args, n, c->tensors));
    TMI_TRY(unpack_all(n->saved_results, n->n_results, n, c->results));
    TMI_TRY(bind_args(c, n));
    c->g = (tmi_grad_call){n, c->args, grads, c->results, needs, c->out, c->lists};
    return TM_OK;
}

/* What the formula left becomes the edges' gradients, with references of their own. */
static void collect(const call *c, const tmi_node *n, tm_tensor **outs)
{
    const tmi_op *op = n->op;
    int edge = 0;
    for (uint32_t left = op->grad_args & op->tensor_args; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        int count = op->args[i].type == TMI_T_TENSOR ? 1 : (int)c->args[i].len;
        for (int j = 0; j < count; j++, edge++) {
            tm_tensor *t = op->args[i].type == TMI_T_TENSOR ? c->out[i] : c->lists[i][j];
            outs[edge] = n->edges[edge].node ? t : NULL;
            if (outs[edge]) tmi_retain(outs[edge]);
        }
    }
}

static tm_status fail_released(void)
{
    return tmi_fail(TM_AUTOGRAD, "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
                                 "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
                                 "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
                                 "after calling backward.");
}

/* With no graph to make, everything inside runs below autograd. */
static tm_status run_formula(tmi_node *n, uint32_t needs, tm_tensor **grads, tm_tensor **outs)
{
    if (TMI_UNLIKELY(n->released)) return fail_released();
    call c;
    uint32_t modes = tmi_tls.modes;
    if (!tmi_tls.grad_enabled) tmi_tls.modes |= TMI_MODE_BELOW_AUTOGRAD;
    tm_status status = prepare_call(&c, n, needs, grads);
    tm_scope *scope = status == TM_OK ? tm_scope_open() : NULL;
    if (scope) {
        status = n->op->grad(&c.g);
        if (status == TM_OK) collect(&c, n, outs);
        tm_scope_close(scope);
    } else if (status == TM_OK) {
        status = TM_NOMEM;
    }
    free_call(&c, n);
    tmi_tls.modes = modes;
    return status;
}

/* ---------------------------------------------------------------- other kinds */

static tm_status run_custom(tmi_node *n, tm_tensor **grads, tm_tensor **outs)
{
    tmi_call_out c;
    tmi_call_out_begin(&c);
    tm_status status = n->custom(n, grads, outs);
    tmi_call_out_end(&c);
    return status == TM_OK ? tm_error_status() : status;
}

static tm_status run_slices(tmi_node *n, tm_tensor **grads, tm_tensor **outs)
{
    if (TMI_UNLIKELY(n->released)) return fail_released();
    uint32_t modes = tmi_tls.modes;
    if (!tmi_tls.grad_enabled) tmi_tls.modes |= TMI_MODE_BELOW_AUTOGRAD;
    tm_status status = tmi_copy_slices_run(n, grads[0], outs);
    tmi_tls.modes = modes;
    return status;
}

static bool none_came(const tmi_node *n, tm_tensor *const *grads)
{
    for (int i = 0; i < n->n_results; i++)
        if (grads[i]) return false;
    return true;
}

tm_status tmi_node_run_for(tmi_node *n, uint32_t needs, tm_tensor **grads, tm_tensor **outs)
{
    if (n->kind == TMI_NODE_CUSTOM) return run_custom(n, grads, outs);
    if (none_came(n, grads)) return TM_OK;
    switch ((tmi_node_kind)n->kind) {
    case TMI_NODE_OP: return run_formula(n, needs, grads, outs);
    case TMI_NODE_ACCUMULATE: return tmi_accumulate_grad(n, grads[0]);
    case TMI_NODE_COPY_SLICES: return run_slices(n, grads, outs);
    case TMI_NODE_ERROR: return tmi_fail(TM_AUTOGRAD, "derivative for aten::%s is not implemented", n->op->name);
    default: return TM_OK;
    }
}

tm_status tmi_node_run(tmi_node *n, tm_tensor **grads, tm_tensor **outs) { return tmi_node_run_for(n, n->needs, grads, outs); }

/* ---------------------------------------------------------------- fitting */

static const char *device_name(tm_device d) { return d.type == TM_META ? "meta" : "cpu"; }

typedef struct shape {
    int ndim;
    const int64_t *sizes;
    tm_dtype dtype;
    tm_device device;
} shape;

static bool shape_of(const tmi_node *n, int nr, shape *out)
{
    if (n->kind == TMI_NODE_ACCUMULATE) {
        const tm_tensor *t = n->variable;
        *out = (shape){t->ndim, t->sizes, (tm_dtype)t->dtype, t->device};
        return true;
    }
    const tmi_result_info *r = &n->results[nr];
    *out = (shape){r->ndim, r->sizes, (tm_dtype)r->dtype, r->device};
    return r->defined;
}

static bool same_sizes(const tm_tensor *t, const shape *s)
{
    return t->ndim == s->ndim && memcmp(t->sizes, s->sizes, (size_t)s->ndim * sizeof(int64_t)) == 0;
}

/* Whether sizes s could be broadcast to those of t. */
static bool expandable(const tm_tensor *t, const shape *s)
{
    if (s->ndim > t->ndim) return false;
    for (int i = 1; i <= s->ndim; i++)
        if (s->sizes[s->ndim - i] != t->sizes[t->ndim - i] && s->sizes[s->ndim - i] != 1) return false;
    return true;
}

static tm_status replace(tm_tensor **at, tm_tensor *made)
{
    if (!made) return tm_error_status();
    tmi_release(*at);
    *at = made;
    return TM_OK;
}

static tm_status fit_sizes(const tmi_node *from, int index, const shape *s, tm_tensor **grad)
{
    if (expandable(*grad, s)) return replace(grad, tmi_do_sum_to(*grad, s->ndim, s->sizes));
    char have[256], want[256];
    tmi_format_sizes(have, sizeof have, (*grad)->ndim, (*grad)->sizes);
    tmi_format_sizes(want, sizeof want, s->ndim, s->sizes);
    return tmi_fail(TM_AUTOGRAD, "Function %s returned an invalid gradient at index %d - got %s but expected shape compatible with %s",
                    from ? from->name : "GraphRoot", index, have, want);
}

static tm_status fit_dtype(const shape *s, tm_tensor **grad)
{
    if (!tmi_is_complex(s->dtype) && tmi_is_complex((tm_dtype)(*grad)->dtype)) TMI_TRY(replace(grad, tmi_do_real(*grad)));
    return (*grad)->dtype == s->dtype ? TM_OK : replace(grad, tmi_do_cast(*grad, s->dtype));
}

static tm_status fit_all(const tmi_node *from, int index, const shape *s, tm_tensor **grad)
{
    if (!same_sizes(*grad, s)) TMI_TRY(fit_sizes(from, index, s, grad));
    if ((*grad)->dtype != s->dtype) TMI_TRY(fit_dtype(s, grad));
    if ((*grad)->device.type == s->device.type) return TM_OK;
    if ((*grad)->ndim == 0) return replace(grad, tmi_do_to_device(*grad, s->device));
    return tmi_fail(TM_AUTOGRAD, "Function %s returned an invalid gradient at index %d - expected device %s but got %s", from ? from->name : "GraphRoot",
                    index, device_name(s->device), device_name((*grad)->device));
}

tm_status tmi_fit_gradient(tmi_node *from, int index, tmi_node *to, int nr, tm_tensor **grad)
{
    shape s;
    tm_tensor *g = *grad;
    if (!shape_of(to, nr, &s)) return TM_OK;
    if (TMI_LIKELY(same_sizes(g, &s) && g->dtype == s.dtype && g->device.type == s.device.type)) return TM_OK;
    uint32_t modes = tmi_tls.modes;
    if (!tmi_tls.grad_enabled) tmi_tls.modes |= TMI_MODE_BELOW_AUTOGRAD;
    tm_status status = fit_all(from, index, &s, grad);
    tmi_tls.modes = modes;
    return status;
}
