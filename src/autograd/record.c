/* The layer that records. It stands between tmi_call and tmi_run: decides whether a call becomes a node, runs it with recording off, makes
 * the node, and gives the results their history. Composites without a formula pass through: their parts record themselves. */
#include "api.h"
#include "args_copy.h"
#include "record.h"

static bool differentiable(const tm_tensor *t)
{
    return tmi_is_float((tm_dtype)t->dtype) || tmi_is_complex((tm_dtype)t->dtype);
}

static tm_status run_below(const tmi_op *op, const tmi_value *args, tmi_out *out, tmi_form form)
{
    uint32_t modes = tmi_tls.modes;
    tmi_tls.modes |= TMI_MODE_BELOW_AUTOGRAD;
    tm_status status = tmi_run(op, args, out, form);
    tmi_tls.modes = modes;
    return status;
}

/* ---------------------------------------------------------------- which arguments want gradients */

static bool any_requires_grad(const tmi_value *v)
{
    if (v->tag == TMI_V_TENSOR) return tmi_requires_grad(v->u.t);
    if (v->tag != TMI_V_TENSORS) return false;
    for (uint32_t i = 0; i < v->len; i++)
        if (v->u.tensors[i] && tmi_requires_grad(v->u.tensors[i])) return true;
    return false;
}

static uint32_t which_require_grad(const tmi_op *op, const tmi_value *args, uint32_t among)
{
    uint32_t mask = 0;
    for (uint32_t left = op->tensor_args & among; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        if (any_requires_grad(&args[i])) mask |= 1u << i;
    }
    return mask;
}

/* The arguments whose gradients a node for this call would compute. */
static uint32_t needs_of(const tmi_op *op, const tmi_value *args)
{
    if (!tmi_tls.grad_enabled) return 0;
    return which_require_grad(op, args, op->grad ? op->grad_args : op->tensor_args);
}

/* ---------------------------------------------------------------- the node */

typedef struct plan {
    const tmi_op *op;
    const tmi_value *args;
    uint32_t needs, edge_args, save_args, save_results;
    int n_tensors, n_edges;
    int64_t dims;          /* of all tensor arguments together */
} plan;

static int places(const tmi_op *op, const tmi_value *args, int i) { return op->args[i].type == TMI_T_TENSOR ? 1 : (int)args[i].len; }

static tm_tensor *place(const tmi_value *v, int j) { return v->tag == TMI_V_TENSOR ? v->u.t : v->tag == TMI_V_TENSORS ? v->u.tensors[j] : NULL; }

static plan make_plan(const tmi_op *op, const tmi_value *args, uint32_t needs)
{
    plan p = {.op = op, .args = args, .needs = needs, .edge_args = op->grad ? op->grad_args & op->tensor_args : op->tensor_args};
    for (uint32_t left = op->grad ? needs : 0; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        p.save_args |= op->save_args[i];
        p.save_results |= op->save_results[i];
    }
    for (uint32_t left = op->tensor_args; left; left &= left - 1) {
        int i = __builtin_ctz(left), n = places(op, args, i);
        p.n_tensors += n;
        if (p.edge_args >> i & 1) p.n_edges += n;
        for (int j = 0; j < n; j++) {
            const tm_tensor *t = place(&args[i], j);
            if (t) p.dims += t->ndim;
        }
    }
    return p;
}

static int64_t *place_info(tmi_result_info *info, const tm_tensor *t, int64_t *dims)
{
    info->ndim = t->ndim;
    info->dtype = t->dtype;
    info->defined = true;
    info->device = t->device;
    info->offset = t->offset;
    info->sizes = dims;
    info->strides = dims + t->ndim;
    for (int i = 0; i < t->ndim; i++) {
        info->sizes[i] = t->sizes[i];
        info->strides[i] = t->strides[i];
    }
    return dims + 2 * t->ndim;
}

/* Lays the arrays of an operator's node out behind its results; returns the place for sizes. */
static int64_t *lay_out(tmi_node *n, const plan *p)
{
    char *at = tmi_node_extra(n);
    n->args = (tmi_value *)(void *)at;
    at += p->op->n_args * sizeof(tmi_value);
    n->arg_info = (tmi_result_info *)(void *)at;
    at += (size_t)p->n_tensors * sizeof(tmi_result_info);
    size_t saved = 0;
    if (p->save_args) {
        n->saved_args = (tmi_saved *)(void *)at;
        saved = (size_t)p->n_tensors * sizeof(tmi_saved);
    }
    if (p->save_results) {
        n->saved_results = (tmi_saved *)(void *)(at + saved);
        saved += (size_t)n->n_results * sizeof(tmi_saved);
    }
    if (saved) memset(at, 0, saved);
    at = tmi_args_copy(p->op, p->args, n->args, at + saved);
    return (int64_t *)(void *)at;
}

static size_t extra_bytes(const plan *p, int n_results, int64_t result_dims)
{
    size_t bytes = p->op->n_args * sizeof(tmi_value) + (size_t)p->n_tensors * sizeof(tmi_result_info);
    if (p->save_args) bytes += (size_t)p->n_tensors * sizeof(tmi_saved);
    if (p->save_results) bytes += (size_t)n_results * sizeof(tmi_saved);
    return bytes + tmi_args_payload(p->op, p->args) + (size_t)(p->dims + result_dims) * 2 * sizeof(int64_t);
}

/* An input that the call is about to overwrite is saved as a copy. */
static tm_status save_input(tmi_saved *s, tm_tensor *t, bool overwritten)
{
    if (!overwritten) return tmi_save(s, t, -1);
    uint32_t modes = tmi_tls.modes;
    tmi_tls.modes |= TMI_MODE_BELOW_AUTOGRAD;
    tm_tensor *copy = tmi_do_clone(t, false);
    tmi_tls.modes = modes;
    if (!copy) return tmi_tls.error_pending;
    tm_status status = TM_OK;
    tmi_node *fn = tmi_requires_grad(t) ? tmi_grad_fn_of(t) : NULL;   /* the copy stands where t stood, for higher derivatives */
    if (fn) status = tmi_set_history(copy, fn, t->grad_meta->output_nr);
    if (status == TM_OK) status = tmi_save(s, copy, -1);
    tmi_release(copy);
    return status;
}

/* Edges, metadata and saved inputs, argument by argument. */
static tm_status fill_inputs(tmi_node *n, const plan *p, int64_t **dims, bool inplace)
{
    int at = 0, edge = 0;
    for (uint32_t left = p->op->tensor_args; left; left &= left - 1) {
        int i = __builtin_ctz(left), count = places(p->op, p->args, i);
        for (int j = 0; j < count; j++, at++) {
            tm_tensor *t = place(&p->args[i], j);
            bool has_edge = p->edge_args >> i & 1;
            if (t) *dims = place_info(&n->arg_info[at], t, *dims);
            else n->arg_info[at] = (tmi_result_info){.defined = false};
            if (has_edge && t && (p->needs >> i & 1)) {
                tmi_edge e;
                TMI_TRY(tmi_grad_edge(t, &e));
                tmi_node_set_edge(n, edge, e);
            }
            edge += has_edge;
            if (t && (p->save_args >> i & 1)) TMI_TRY(save_input(&n->saved_args[at], t, inplace && i == 0));
        }
    }
    return TM_OK;
}

static tmi_node *build_node(const plan *p, int n_results, int64_t result_dims, bool inplace, int64_t **dims)
{
    tmi_node_kind kind = p->op->grad ? TMI_NODE_OP : p->op->flags & TMI_OP_NONDIFF ? TMI_NODE_ZERO : TMI_NODE_ERROR;
    tmi_node *n = tmi_node_new(kind, p->n_edges, n_results, extra_bytes(p, n_results, result_dims));
    if (!n) return NULL;
    n->op = p->op;
    n->name = kind == TMI_NODE_ERROR ? "NotImplemented" : p->op->node_name;
    n->needs = p->needs;
    n->n_tensor_args = p->n_tensors;
    *dims = lay_out(n, p);
    tm_status status = fill_inputs(n, p, dims, inplace);
    if (status == TM_OK && TMI_UNLIKELY(tmi_trace_on)) status = tmi_trace_node(n);
    if (status == TM_OK) return n;
    tmi_node_release(n);
    return NULL;
}

/* ---------------------------------------------------------------- plain calls */

static bool handed_back(const tmi_op *op, const tmi_value *args, const tm_tensor *t)
{
    for (uint32_t left = op->tensor_args; left; left &= left - 1) {
        int i = __builtin_ctz(left), n = places(op, args, i);
        for (int j = 0; j < n; j++)
            if (place(&args[i], j) == t) return true;
    }
    return false;
}

typedef struct outputs {
    tm_tensor **t;
    int n;
} outputs;

static outputs outputs_of(tmi_out *out)
{
    if (out->list) return (outputs){out->list->t, (int)out->list->len};
    return (outputs){out->t, out->n};
}

/* Result k takes part in differentiation. A result that is an argument handed back keeps the history it has. */
static bool records(const tmi_op *op, const tmi_value *args, const tm_tensor *t, int k)
{
    bool excluded = k < 32 && (op->nondiff_outs >> k & 1);
    return t && !excluded && differentiable(t) && !handed_back(op, args, t);
}

static tm_status record_outputs(const tmi_op *op, const tmi_value *args, uint32_t needs, outputs o)
{
    int64_t result_dims = 0, *dims;
    uint64_t recorded = 0;   /* of the first 64 results; further ones are asked again */
    for (int k = 0; k < o.n; k++) {
        if (!o.t[k]) continue;
        if (records(op, args, o.t[k], k)) recorded |= UINT64_C(1) << (k < 63 ? k : 63);
        result_dims += o.t[k]->ndim;
    }
    if (!recorded) return TM_OK;
    plan p = make_plan(op, args, needs);
    tmi_node *n = build_node(&p, o.n, result_dims, false, &dims);
    if (TMI_UNLIKELY(!n)) return tm_error_status();
    tm_status status = TM_OK;
    for (int k = 0; k < o.n && status == TM_OK; k++) {
        if (!o.t[k]) continue;
        dims = place_info(&n->results[k], o.t[k], dims);
        if (k < 32 && (p.save_results >> k & 1)) status = tmi_save(&n->saved_results[k], o.t[k], k);
        bool wanted = k < 63 ? recorded >> k & 1 : records(op, args, o.t[k], k);
        if (status == TM_OK && wanted) {
            bool last = o.n == 1;   /* the common case hands over our own reference */
            status = last ? tmi_take_history(o.t[k], n, k) : tmi_set_history(o.t[k], n, k);
            if (last) return status;
        }
    }
    tmi_node_release(n);
    return status;
}

static tmi_creation creation_of(const tmi_op *op)
{
    if (tmi_tls.inference) return TMI_VIEW_INFERENCE;
    if (!tmi_tls.grad_enabled) return TMI_VIEW_NO_GRAD;
    return op->flags & TMI_OP_MULTI_VIEW ? TMI_VIEW_MULTI_OUTPUT : TMI_VIEW_DEFAULT;
}

static tm_status track_views(const tmi_op *op, const tmi_value *args, outputs o)
{
    tm_tensor *of = tmi_as_tensor(&args[0]);
    if (!of || (op->flags & TMI_OP_NONDIFF) || (of->flags & TMI_INFERENCE)) return TM_OK;
    for (int k = 0; k < o.n; k++)
        if (o.t[k] && o.t[k] != of && o.t[k]->storage == of->storage) TMI_TRY(tmi_track_view(o.t[k], of, op, args, k, creation_of(op)));
    return TM_OK;
}

static void drop_outputs(tmi_out *out)
{
    if (out->list) tm_tensor_list_release(out->list);
    for (int i = 0; !out->list && i < out->n; i++) tmi_release(out->t[i]);
    out->list = NULL;
    out->n = 0;
}

static tm_status call_plain(const tmi_op *op, const tmi_value *args, tmi_out *out)
{
    uint32_t needs = op->flags & TMI_OP_NONDIFF ? 0 : needs_of(op, args);
    for (uint32_t left = op->mutates & ~op->untracked; left; left &= left - 1) {
        tm_tensor *t = tmi_as_tensor(&args[__builtin_ctz(left)]);
        if (t) TMI_TRY(tmi_check_inplace(t, needs != 0));
    }
    TMI_TRY(run_below(op, args, out, TMI_FORM_PLAIN));
    tm_status status = TM_OK;
    if (needs) status = record_outputs(op, args, needs, outputs_of(out));
    if ((op->flags & TMI_OP_VIEW) && status == TM_OK) status = track_views(op, args, outputs_of(out));
    if (TMI_UNLIKELY(status != TM_OK)) drop_outputs(out);
    return status;
}

/* ---------------------------------------------------------------- in-place calls */

enum { FEW = 4 };

typedef struct targets {
    tm_tensor *const *t;
    int n;
    tmi_rebase few[FEW], *rebase;
} targets;

static void free_targets(targets *to)
{
    for (int i = 0; to->rebase && i < to->n; i++) tmi_rebase_cancel(&to->rebase[i]);
    if (to->rebase && to->rebase != to->few) tmi_free(to->rebase, (size_t)to->n * sizeof *to->rebase);
}

static tm_status check_targets(targets *to, bool recording)
{
    for (int i = 0; i < to->n; i++) TMI_TRY(tmi_check_inplace(to->t[i], recording));
    return TM_OK;
}

static tm_status prepare_targets(targets *to, tmi_node *n, bool self_has_edges)
{
    to->rebase = to->n <= FEW ? to->few : tmi_calloc((size_t)to->n * sizeof *to->rebase);
    if (!to->rebase) return TM_NOMEM;
    memset(to->rebase, 0, (size_t)to->n * sizeof *to->rebase);
    for (int i = 0; i < to->n; i++)
        if (differentiable(to->t[i])) TMI_TRY(tmi_rebase_prepare(&to->rebase[i], to->t[i], n, self_has_edges ? i : -1));
    return TM_OK;
}

/* After the data was written: result metadata, saved results, history. */
static tm_status commit_targets(targets *to, tmi_node *n, const plan *p, int64_t *dims)
{
    bool geometry_only = p->op->flags & TMI_OP_VIEW;   /* t_, squeeze_: a view stays a view of its base and is made again when looked at */
    for (int i = 0; i < to->n; i++) {
        tm_tensor *t = to->t[i];
        dims = place_info(&n->results[i], t, dims);
        if (i < 32 && (p->save_results >> i & 1)) TMI_TRY(tmi_save(&n->saved_results[i], t, i));
        bool skip = !differentiable(t) || (geometry_only && (t->flags & TMI_IS_VIEW));
        if (!skip) TMI_TRY(tmi_rebase_commit(&to->rebase[i], i));
    }
    return TM_OK;
}

static int64_t target_dims(const targets *to)
{
    int64_t dims = 0;
    for (int i = 0; i < to->n; i++) dims += to->t[i]->ndim + 1;   /* unsqueeze_ adds one */
    return dims;
}

static bool any_differentiable(const targets *to)
{
    for (int i = 0; i < to->n; i++)
        if (differentiable(to->t[i])) return true;
    return false;
}

static tm_status record_inplace(const tmi_op *op, const tmi_value *args, tmi_out *out, uint32_t needs, targets *to)
{
    int64_t *dims;
    plan p = make_plan(op, args, needs);
    tmi_node *n = build_node(&p, to->n, target_dims(to), true, &dims);
    if (!n) return tm_error_status();
    tm_status status = prepare_targets(to, n, p.edge_args & 1);
    if (status == TM_OK) status = run_below(op, args, out, TMI_FORM_INPLACE);
    if (status == TM_OK) status = commit_targets(to, n, &p, dims);
    free_targets(to);
    tmi_node_release(n);
    return status;
}

static tm_status call_inplace(const tmi_op *op, const tmi_value *args, tmi_out *out)
{
    tm_tensor *one = tmi_as_tensor(&args[0]);
    targets to = {.t = one ? &one : args[0].u.tensors, .n = one ? 1 : (int)args[0].len};
    uint32_t needs = needs_of(op, args);
    TMI_TRY(check_targets(&to, needs != 0));
    tm_status status = needs && any_differentiable(&to) ? record_inplace(op, args, out, needs, &to) : run_below(op, args, out, TMI_FORM_INPLACE);
    if (TMI_UNLIKELY(tmi_trace_on) && status == TM_OK)
        for (int i = 0; i < to.n; i++) tmi_trace_change(to.t[i]);
    return status;
}

/* ---------------------------------------------------------------- out= calls */

static tm_status call_out(const tmi_op *op, const tmi_value *args, tmi_out *out)
{
    for (int i = 0; i < out->n; i++) TMI_TRY(tmi_check_inplace(out->t[i], false));
    if (tmi_tls.grad_enabled) {
        bool any = which_require_grad(op, args, op->tensor_args) != 0;
        for (int i = 0; i < out->n; i++) any |= tmi_requires_grad(out->t[i]);
        TMI_REQUIRE(!any, TM_AUTOGRAD, "%s(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
                                       "requires grad.", op->name);
    }
    return run_below(op, args, out, TMI_FORM_OUT);
}

/* ---------------------------------------------------------------- the layer */

tm_status tmi_autograd_call(const tmi_op *op, const tmi_value *args, tmi_out *out, tmi_form form)
{
    if (tmi_tls.modes & TMI_MODE_BELOW_AUTOGRAD) return tmi_run(op, args, out, form);
    if ((op->flags & TMI_OP_TRANSPARENT) && form != TMI_FORM_OUT) return tmi_run(op, args, out, form);
    switch (form) {
    case TMI_FORM_PLAIN: return call_plain(op, args, out);
    case TMI_FORM_INPLACE: return call_inplace(op, args, out);
    default: return call_out(op, args, out);
    }
}

void tmi_autograd_init(void)
{
    tmi_layers.autograd = tmi_autograd_call;
    tmi_hooks.free_grad_meta = tmi_grad_meta_free;
}
