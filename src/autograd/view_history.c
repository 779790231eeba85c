/* Views and in-place changes.
 *
 * A view knows its base (never a view itself) and how to be made again from it: by its sizes, strides and offset, or, where the element
 * type or a conjugation differs, by a chain of rules. Changing a view in place rebases the history of the base: the base becomes the
 * result of a CopySlices node, which runs the operator's gradient on the view's part only. The view's own grad_fn is made again from
 * the base's when somebody looks at it and the version counter has moved since. */
#include "api.h"
#include "args_copy.h"
#include "base/alloc.h"
#include "record.h"

typedef struct geometry {
    int32_t ndim;
    int64_t offset;
    int64_t dims[];   /* sizes, then strides */
} geometry;

struct tmi_view_rule {
    tmi_refcount refs;
    size_t nbytes;
    struct tmi_view_rule *prev;   /* owned; NULL: the operator is applied to `start` */
    geometry *start;              /* owned */
    const tmi_op *op;
    int out;
    tmi_value args[];
};

struct tmi_slices {
    tmi_node *fn;                 /* owned: the operator that changed the view */
    int self_edge;                /* which edge of fn is the view; -1: none */
    struct tmi_view_rule *rules;
    geometry *base, *view;        /* view->offset counts from the base's */
};

/* ---------------------------------------------------------------- shapes and rules */

static size_t geometry_bytes(int ndim) { return sizeof(geometry) + (size_t)ndim * 2 * sizeof(int64_t); }

static geometry *geometry_of(const tm_tensor *t, int64_t offset)
{
    geometry *g = tmi_alloc(geometry_bytes(t->ndim));
    if (!g) return NULL;
    g->ndim = t->ndim;
    g->offset = offset;
    memcpy(g->dims, t->sizes, (size_t)t->ndim * sizeof(int64_t));
    memcpy(g->dims + t->ndim, t->strides, (size_t)t->ndim * sizeof(int64_t));
    return g;
}

static void geometry_free(geometry *g)
{
    if (g) tmi_free(g, geometry_bytes(g->ndim));
}

static tm_tensor *as_geometry(tm_tensor *t, const geometry *g, int64_t offset)
{
    return tmi_do_as_strided(t, g->ndim, g->dims, g->dims + g->ndim, g->offset + offset);
}

void tmi_view_rules_release(struct tmi_view_rule *r)
{
    while (r && atomic_fetch_sub(&r->refs, 1) == 1) {
        struct tmi_view_rule *prev = r->prev;
        geometry_free(r->start);
        tmi_free(r, r->nbytes);
        r = prev;
    }
}

static struct tmi_view_rule *rules_retain(struct tmi_view_rule *r)
{
    if (r) atomic_fetch_add(&r->refs, 1);
    return r;
}

static bool same_elements(const tm_tensor *a, const tm_tensor *b)
{
    return a->dtype == b->dtype && !((a->flags ^ b->flags) & (TMI_CONJ | TMI_NEG));
}

/* The rule for a view of `of`, whose own rules come first. */
static struct tmi_view_rule *rule_new(const tm_tensor *of, const tmi_op *op, const tmi_value *args, int out)
{
    size_t head = sizeof(struct tmi_view_rule) + op->n_args * sizeof(tmi_value), bytes = head + tmi_args_payload(op, args);
    struct tmi_view_rule *r = tmi_alloc(bytes);
    if (!r) return NULL;
    atomic_init(&r->refs, 1);
    r->nbytes = bytes;
    r->prev = of->flags & TMI_IS_VIEW ? rules_retain(of->grad_meta->rules) : NULL;
    r->start = NULL;
    r->op = op;
    r->out = out;
    tmi_args_copy(op, args, r->args, (char *)r + head);
    const tm_tensor *base = of->flags & TMI_IS_VIEW ? of->grad_meta->base : of;
    if (!r->prev) r->start = geometry_of(of, of->offset - base->offset);
    if (!r->prev && !r->start) {
        tmi_view_rules_release(r);
        return NULL;
    }
    return r;
}

static tm_tensor *apply_rule(const struct tmi_view_rule *r, tm_tensor *to)
{
    tmi_value args[TMI_MAX_ARGS];
    memcpy(args, r->args, r->op->n_args * sizeof *args);
    args[0] = tmi_v_tensor(to);
    tmi_out out = {0};
    if (tmi_call(r->op, args, &out, TMI_FORM_PLAIN) != TM_OK) return NULL;
    if (!out.list) return out.t[0];
    tm_tensor *t = out.list->t[r->out];
    tmi_retain(t);
    tm_tensor_list_release(out.list);
    return t;
}

/* Applies the chain to base, first rule first. `offset`: of base inside its storage. */
static tm_tensor *replay(const struct tmi_view_rule *last, tm_tensor *base, int64_t offset)
{
    tm_tensor *t = last->prev ? replay(last->prev, base, offset) : as_geometry(base, last->start, offset);
    if (!t) return NULL;
    tm_tensor *r = apply_rule(last, t);
    tmi_release(t);
    return r;
}

tm_status tmi_track_view(tm_tensor *view, tm_tensor *of, const tmi_op *op, const tmi_value *args, int out, tmi_creation creation)
{
    tmi_grad_meta *m = tmi_grad_meta_of(view), *from = of->flags & TMI_IS_VIEW ? of->grad_meta : NULL;
    if (TMI_UNLIKELY(!m)) return TM_NOMEM;
    if (m->base) return TM_OK;   /* a part of a composite has done it */
    if (!op) {   /* the same view again */
        m->rules = from ? rules_retain(from->rules) : NULL;
    } else if (TMI_UNLIKELY((from && from->rules) || !same_elements(view, of))) {
        m->rules = rule_new(of, op, args, out);
        if (!m->rules) return TM_NOMEM;
    }
    m->base = from ? from->base : of;
    tmi_retain(m->base);
    m->creation = from && from->creation != TMI_VIEW_DEFAULT ? from->creation : (uint8_t)creation;
    m->version_seen = atomic_load_explicit(view->version, memory_order_relaxed);
    view->flags |= TMI_IS_VIEW;
    return TM_OK;
}

/* ---------------------------------------------------------------- errors */

static const char *advice(int creation)
{
    switch (creation) {
    case TMI_VIEW_MULTI_OUTPUT:
        return " This view is the output of a function that returns multiple views. Such functions do not allow the output views to be modified "
               "inplace. You should replace the inplace operation by an out-of-place one.";
    case TMI_VIEW_NO_GRAD:
        return " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the "
               "inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want the inplace "
               "to be tracked).";
    case TMI_VIEW_INFERENCE:
        return " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the "
               "inplace either both inside the inference_mode block (if you don't want the inplace to be tracked) or both outside (if you want the "
               "inplace to be tracked).";
    default:
        return " This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle view+inplace "
               "would override the custom backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. "
               "You can fix this by cloning the output of the custom Function.";
    }
}

static int short_name(const char *name)
{
    const char *tail = strstr(name, "Backward");
    return tail ? (int)(tail - name) : (int)strlen(name);
}

/* A view whose creation forbids that it (or, `indirect`, its base) be changed in place under grad mode. */
static tm_status check_creation(const tmi_grad_meta *m, bool indirect)
{
    if (TMI_LIKELY(m->creation == TMI_VIEW_DEFAULT)) return TM_OK;
    const tmi_node *fn = m->grad_fn;
    const char *how = indirect ? "its base or another view of its base has been" : "is being";
    const char *mode = m->creation == TMI_VIEW_INFERENCE ? "inference mode" : "no_grad mode";
    const char *end = m->creation == TMI_VIEW_INFERENCE ? "in normal mode" : "with grad mode enabled";
    bool by_mode = m->creation == TMI_VIEW_INFERENCE || m->creation == TMI_VIEW_NO_GRAD || !fn;
    if (!by_mode)
        return tmi_fail(TM_AUTOGRAD, "Output %d of %.*s is a view and %s modified inplace.%s", m->output_nr, short_name(fn->name), fn->name, how,
                        advice(m->creation));
    if (fn)
        return tmi_fail(TM_AUTOGRAD, "Output %d of %.*s is a view of a view which was created in %s and %s modified inplace %s.%s", m->output_nr,
                        short_name(fn->name), fn->name, mode, how, end, advice(m->creation));
    return tmi_fail(TM_AUTOGRAD, "A view was created in %s and %s modified inplace %s.%s", mode, how, end, advice(m->creation));
}

tm_status tmi_check_inplace(tm_tensor *t, bool recording)
{
    TMI_REQUIRE(!(t->flags & TMI_INFERENCE) || tmi_tls.inference, TM_AUTOGRAD,
                "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before doing "
                "inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.");
    if (!recording) return TM_OK;
    bool requires = tmi_requires_grad(t);
    if (t->flags & TMI_IS_VIEW) {
        TMI_TRY(check_creation(t->grad_meta, false));
        TMI_REQUIRE(!requires || tmi_grad_fn_of(t->grad_meta->base), TM_AUTOGRAD,
                    "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    }
    if (!requires || tmi_grad_fn_of(t)) return TM_OK;
    TMI_REQUIRE(tmi_tls.error_pending, TM_AUTOGRAD, "a leaf Variable that requires grad is being used in an in-place operation.");
    return tmi_tls.error_pending;
}

/* ---------------------------------------------------------------- grad_fn of a view */

/* Makes the view's grad_fn again from its base, as of now. */
static tm_status remake(tm_tensor *t, tmi_grad_meta *m, uint64_t version)
{
    TMI_TRY(check_creation(m, true));
    bool grad_enabled = tmi_tls.grad_enabled;
    uint32_t modes = tmi_tls.modes;
    tmi_tls.grad_enabled = true;
    tmi_tls.modes &= ~(uint32_t)TMI_MODE_BELOW_AUTOGRAD;
    tm_tensor *again = m->rules ? replay(m->rules, m->base, m->base->offset) : tmi_do_as_strided(m->base, t->ndim, t->sizes, t->strides, t->offset);
    tmi_tls.modes = modes;
    tmi_tls.grad_enabled = grad_enabled;
    if (!again) return tmi_tls.error_pending;
    tm_status status = TM_OK;
    if (again->grad_meta && again->grad_meta->grad_fn) status = tmi_set_history(t, again->grad_meta->grad_fn, again->grad_meta->output_nr);
    m->version_seen = version;
    tmi_release(again);
    return status;
}

tmi_node *tmi_grad_fn_of(tm_tensor *t)
{
    tmi_grad_meta *m = t->grad_meta;
    if (!m) return NULL;
    if (TMI_LIKELY(!(t->flags & TMI_IS_VIEW))) return m->grad_fn;
    if (!m->grad_fn && !(m->base->flags & TMI_REQUIRES_GRAD)) return NULL;
    uint64_t version = atomic_load_explicit(t->version, memory_order_relaxed);
    if (TMI_UNLIKELY(version != m->version_seen) && remake(t, m, version) != TM_OK) return NULL;
    return m->grad_fn;
}

/* ---------------------------------------------------------------- rebasing */

void tmi_slices_free(tmi_node *n)
{
    struct tmi_slices *s = n->slices;
    tmi_node_release(s->fn);
    tmi_view_rules_release(s->rules);
    geometry_free(s->base);
    geometry_free(s->view);
    tmi_free(s, sizeof *s);
    n->slices = NULL;
}

tmi_node *tmi_slices_fn(const tmi_node *n) { return n->slices->fn; }
void tmi_slices_release_saved(tmi_node *n) { tmi_node_release_saved(n->slices->fn); }

static struct tmi_slices *slices_new(tm_tensor *t, tmi_node *fn, int self_edge)
{
    struct tmi_slices *s = tmi_calloc(sizeof *s);
    if (!s) return NULL;
    tm_tensor *base = t->grad_meta->base;
    s->base = geometry_of(base, 0);
    s->view = geometry_of(t, t->offset - base->offset);
    s->fn = tmi_node_retain(fn);
    s->self_edge = self_edge;
    s->rules = rules_retain(t->grad_meta->rules);
    return s;
}

/* Edge 0 leads to the base as it was; then come fn's other edges. */
static tm_status slices_edges(tmi_node *n, tm_tensor *base, const tmi_node *fn, int self_edge)
{
    tmi_edge e;
    TMI_TRY(tmi_grad_edge(base, &e));
    tmi_node_set_edge(n, 0, e);
    for (int i = 0, at = 1; i < fn->n_edges; i++) {
        if (i == self_edge) continue;
        tmi_node_retain(fn->edges[i].node);
        tmi_node_set_edge(n, at++, fn->edges[i]);
    }
    return TM_OK;
}

tm_status tmi_rebase_prepare(tmi_rebase *r, tm_tensor *t, tmi_node *node, int self_edge)
{
    r->t = t;
    r->node = node;
    r->slices = NULL;
    const tm_tensor *owner = t->flags & TMI_IS_VIEW ? t->grad_meta->base : t;
    r->unknown = !owner->grad_meta;
    if (!tmi_grad_meta_of(t)) return TM_NOMEM;
    if (!(t->flags & TMI_IS_VIEW)) return TM_OK;
    tm_tensor *base = t->grad_meta->base;
    tmi_node *n = tmi_node_new(TMI_NODE_COPY_SLICES, 1 + node->n_edges - (self_edge >= 0), 1, 0);
    if (!n || !tmi_grad_meta_of(base)) return tmi_node_release(n), TM_NOMEM;
    n->name = "CopySlices";
    n->where = node->where;
    n->slices = slices_new(t, node, self_edge);
    tm_status status = n->slices && n->slices->base && n->slices->view ? slices_edges(n, base, node, self_edge) : TM_NOMEM;
    if (status == TM_OK) status = tmi_info_fill(&n->results[0], base);
    if (status != TM_OK) return tmi_node_release(n), status;
    r->slices = n;
    return TM_OK;
}

tm_status tmi_rebase_commit(tmi_rebase *r, int nr)
{
    tm_tensor *owner = r->slices ? r->t->grad_meta->base : r->t;
    tmi_node *fn = r->slices ? r->slices : r->node;
    tm_status status = tmi_set_history(owner, fn, r->slices ? 0 : nr);
    if (status == TM_OK) tmi_cut_self_reference(fn, owner, r->unknown);
    tmi_rebase_cancel(r);
    return status;
}

void tmi_rebase_cancel(tmi_rebase *r)
{
    tmi_node_release(r->slices);
    r->slices = NULL;
}

/* ---------------------------------------------------------------- running CopySlices */

/* Gives fn's gradients their places: the view's goes back into the base's gradient, the others come after it. */
static tm_status place_gradients(const tmi_node *n, tm_tensor *result, tm_tensor *part, tm_tensor **from, tm_tensor **outs)
{
    const struct tmi_slices *s = n->slices;
    tm_status status = TM_OK;
    tm_tensor *own = s->self_edge >= 0 ? from[s->self_edge] : NULL;
    if (n->edges[0].node) {
        status = own ? tmi_do_copy_inplace(part, own) : tmi_do_zero_inplace(part);
        if (status == TM_OK) {
            tmi_retain(result);
            outs[0] = result;
        }
    }
    for (int i = 0, at = 1; i < s->fn->n_edges; i++) {
        if (i != s->self_edge) outs[at++] = from[i];
        else tmi_release(from[i]);
    }
    return status;
}

static tm_status run_part(tmi_node *n, tm_tensor *result, tm_tensor *part, tm_tensor **outs)
{
    tm_tensor *few[8] = {NULL}, *copy = tmi_do_clone(part, false);
    int k = n->slices->fn->n_edges;
    tm_tensor **from = k <= 8 ? few : tmi_calloc((size_t)k * sizeof *from);
    tm_status status = copy && from ? tmi_node_run(n->slices->fn, &copy, from) : tm_error_status();
    if (status == TM_OK) status = place_gradients(n, result, part, from, outs);
    if (from && from != few) tmi_free(from, (size_t)k * sizeof *from);
    tmi_release(copy);
    return status;
}

tm_status tmi_copy_slices_run(tmi_node *n, tm_tensor *grad, tm_tensor **outs)
{
    const struct tmi_slices *s = n->slices;
    const geometry *b = s->base;
    tm_tensor *result = tmi_tensor_new(b->ndim, b->dims, b->dims + b->ndim, (tm_dtype)grad->dtype, grad->device);
    if (!result) return tm_error_status();
    tm_status status = tmi_do_copy_inplace(result, grad);
    tm_tensor *part = NULL;
    if (status == TM_OK) {
        part = s->rules ? replay(s->rules, result, 0) : as_geometry(result, s->view, 0);
        status = part ? run_part(n, result, part, outs) : tm_error_status();
    }
    tmi_release(part);
    tmi_release(result);
    return status;
}
