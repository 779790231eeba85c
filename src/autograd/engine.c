/* The backward pass.
 *
 * Everything that the roots lead to gets a slot; a node is ready when a gradient (or word that none comes) has arrived over every edge
 * into it; among the ready ones the latest recorded runs first. Nothing recurses, and everything runs on the caller's thread; a hook
 * may start another pass. */
#include "accumulate.h"
#include "api.h"
#include "base/alloc.h"
#include "graph_task.h"
#include "record.h"

static __thread tmi_task *running;
static __thread tmi_node *current_node;

tmi_node *tmi_current_node(void) { return current_node; }

/* ---------------------------------------------------------------- roots */

static bool same_shape(const tm_tensor *a, const tm_tensor *b)
{
    return a->ndim == b->ndim && memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof(int64_t)) == 0;
}

static tm_status check_given(int i, const tm_tensor *root, const tm_tensor *grad)
{
    if (!same_shape(root, grad)) {
        char g[256], r[256];
        tmi_format_sizes(g, sizeof g, grad->ndim, grad->sizes);
        tmi_format_sizes(r, sizeof r, root->ndim, root->sizes);
        return tmi_fail(TM_AUTOGRAD, "Mismatch in shape: grad_output[%d] has a shape of torch.Size(%s) and output[%d] has a shape of torch.Size(%s).", i, g,
                        i, r);
    }
    TMI_REQUIRE(tmi_is_complex((tm_dtype)root->dtype) == tmi_is_complex((tm_dtype)grad->dtype), TM_AUTOGRAD,
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: grad_output[%d] has a "
                "dtype of torch.%s and output[%d] has a dtype of torch.%s.",
                i, tmi_dtypes[grad->dtype].name, i, tmi_dtypes[root->dtype].name);
    return TM_OK;
}

static tm_status check_implicit(const tm_tensor *root)
{
    if (!tmi_requires_grad(root)) return TM_OK;   /* the next check says so */
    TMI_REQUIRE(root->numel == 1, TM_AUTOGRAD, "grad can be implicitly created only for scalar outputs");
    TMI_REQUIRE(tmi_is_float((tm_dtype)root->dtype), TM_AUTOGRAD, "grad can be implicitly created only for real scalar outputs but got torch.%s",
                tmi_dtypes[root->dtype].name);
    return TM_OK;
}

static tm_status check_roots(const tmi_backward_args *a)
{
    for (int i = 0; i < a->n_roots; i++) {
        const tm_tensor *grad = a->grads ? a->grads[i] : NULL;
        TMI_TRY(grad ? check_given(i, a->roots[i], grad) : check_implicit(a->roots[i]));
    }
    for (int i = 0; i < a->n_roots; i++)
        TMI_REQUIRE(tmi_requires_grad(a->roots[i]), TM_AUTOGRAD, "element %d of tensors does not require grad and does not have a grad_fn", i);
    return TM_OK;
}

static tm_status root_grad(const tmi_backward_args *a, int i, const tmi_edge *e, tm_tensor **out)
{
    tm_tensor *grad = a->grads ? a->grads[i] : NULL;
    if (grad) tmi_retain(grad);
    else grad = tmi_do_ones_like(a->roots[i]);
    if (!grad) return tm_error_status();
    tm_status status = tmi_fit_gradient(NULL, i, e->node, e->nr, &grad);
    if (status == TM_OK) *out = grad;
    else tmi_release(grad);
    return status;
}

static tm_status add_root(tmi_task *k, const tmi_backward_args *a, int i, const tmi_edge *e)
{
    tm_tensor *grad = NULL;
    int32_t at = tmi_task_add(k, e->node);
    if (at < 0) return TM_NOMEM;
    TMI_TRY(root_grad(a, i, e, &grad));
    tm_tensor **buffer = tmi_slot_grads(&k->slots[at]);
    if (buffer) return tmi_buffer_add(&buffer[e->nr], grad);
    tmi_release(grad);
    return TM_NOMEM;
}

/* ---------------------------------------------------------------- inputs */

/* Marks where the gradient of an input is taken, or the leaf into which it is summed. */
static tm_status mark_input(tmi_task *k, const tmi_backward_args *a, int i)
{
    tm_tensor *t = a->inputs[i];
    TMI_REQUIRE(!a->results || tmi_requires_grad(t), TM_AUTOGRAD, "One of the differentiated Tensors does not require grad");
    if (!a->results && tmi_grad_fn_of(t)) TMI_TRY(tmi_retain_grad(t));
    if (!a->results) TMI_REQUIRE(tmi_requires_grad(t), TM_AUTOGRAD, "can't retain_grad on Tensor that has requires_grad=False");
    tmi_edge e;
    TMI_TRY(tmi_grad_edge(t, &e));
    int32_t at = tmi_task_find(k, e.node);
    bool leaf = e.node->kind == TMI_NODE_ACCUMULATE;
    tmi_node_release(e.node);   /* the graph keeps it if it was found */
    if (at < 0) return TM_OK;
    tmi_slot *s = &k->slots[at];
    s->wanted = true;
    if (!a->results) {
        s->runs |= leaf;
        return TM_OK;
    }
    if (!tmi_vec_push(&k->captures, ((tmi_capture){e.nr, i, s->capture}))) return TM_NOMEM;
    s->capture = (int32_t)k->captures.len - 1;
    return TM_OK;
}

static tm_status check_used(const tmi_backward_args *a)
{
    for (int i = 0; a->results && !a->allow_unused && i < a->n_inputs; i++)
        TMI_REQUIRE(a->results[i], TM_AUTOGRAD,
                    "The differentiated Tensor at index %d appears to not have been used in the graph. Set allow_unused=True if this is the desired "
                    "behavior.", i);
    return TM_OK;
}

static void take_captures(tmi_task *k, const tmi_slot *s, tm_tensor **grads)
{
    for (int32_t c = s->capture; c >= 0; c = k->captures.data[c].next) {
        tm_tensor *g = grads[k->captures.data[c].nr], **to = &k->results[k->captures.data[c].input];
        if (!g || *to) continue;
        tmi_retain(g);
        *to = g;
    }
}

/* ---------------------------------------------------------------- one node */

static tm_status run_tensor_hooks(tmi_node *n, tm_tensor **grads)
{
    if (n->kind == TMI_NODE_ACCUMULATE) {
        const tmi_grad_meta *m = n->variable->grad_meta;
        return m->hooks && grads[0] ? tmi_hooks_run(m->hooks, -1, n, grads, 1, NULL, 0) : TM_OK;
    }
    if (!n->hooks) return TM_OK;
    for (int i = 0; i < n->n_results && n->hooks->tensor.len; i++)
        if (grads[i]) TMI_TRY(tmi_hooks_run(&n->hooks->tensor, i, n, &grads[i], 1, NULL, 0));
    return n->hooks->retains.len ? tmi_retain_gradients(n, grads) : TM_OK;
}

/* Of the node's arguments only those whose edge leads to something wanted. */
static uint32_t needs_now(const tmi_task *k, const tmi_slot *s)
{
    const tmi_node *n = s->node;
    if (k->all || n->kind != TMI_NODE_OP) return n->needs;
    uint32_t needs = 0;
    int edge = 0;
    for (uint32_t left = n->op->grad_args & n->op->tensor_args; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        int count = n->op->args[i].type == TMI_T_TENSOR ? 1 : (int)n->args[i].len;
        for (int j = 0; j < count; j++, edge++) {
            int32_t to = k->next[s->first_edge + edge];
            if (to >= 0 && k->slots[to].wanted) needs |= 1u << i;
        }
    }
    return needs & n->needs;
}

static tm_status fit_all(tmi_node *n, tm_tensor **outs)
{
    for (int e = 0; e < n->n_edges; e++)
        if (outs[e] && n->edges[e].node) TMI_TRY(tmi_fit_gradient(n, e, n->edges[e].node, n->edges[e].nr, &outs[e]));
    return TM_OK;
}

static tm_status check_nan(tmi_node *n, tm_tensor **outs)
{
    for (int e = 0; e < n->n_edges; e++) {
        bool nan = false;
        if (outs[e]) TMI_TRY(tmi_do_any_nan(outs[e], &nan));
        TMI_REQUIRE(!nan, TM_AUTOGRAD, "Function '%s' returned nan values in its %dth output.", n->name, e);
    }
    return TM_OK;
}

static void report_anomaly(tmi_node *n)
{
    if (!tmi_anomaly_enabled() || !tmi_glue.report) return;
    tmi_call_out c;
    tmi_call_out_begin(&c);
    tmi_glue.report(n, n->anomaly);
    tmi_call_out_end(&c);
}

static tm_status run_with_hooks(tmi_node *n, uint32_t needs, tm_tensor **grads, tm_tensor **outs)
{
    if (TMI_UNLIKELY(n->hooks && n->hooks->pre.len)) TMI_TRY(tmi_hooks_run(&n->hooks->pre, -1, n, grads, n->n_results, NULL, 0));
    TMI_TRY(tmi_node_run_for(n, needs, grads, outs));
    TMI_TRY(fit_all(n, outs));
    if (TMI_UNLIKELY(tmi_anomaly_checks_nan())) TMI_TRY(check_nan(n, outs));
    if (TMI_UNLIKELY(n->hooks && n->hooks->post.len)) {
        TMI_TRY(tmi_hooks_run(&n->hooks->post, -1, n, grads, n->n_results, outs, n->n_edges));
        TMI_TRY(fit_all(n, outs));
    }
    return TM_OK;
}

/* Gives each gradient to its edge's slot and tells the slot that this edge is done. */
static tm_status distribute(tmi_task *k, const tmi_slot *s, tm_tensor **outs)
{
    const tmi_node *n = s->node;
    int32_t first = s->first_edge;
    tm_status status = TM_OK;
    for (int e = 0; e < n->n_edges && status == TM_OK; e++) {
        int32_t to = k->next[first + e];
        if (to < 0) continue;
        tmi_slot *d = &k->slots[to];
        tm_tensor *g = outs[e];
        outs[e] = NULL;
        if (g && d->wanted) {
            tm_tensor **buffer = tmi_slot_grads(d);
            status = buffer ? tmi_buffer_add(&buffer[n->edges[e].nr], g) : TM_NOMEM;
            if (!buffer) tmi_release(g);
        } else {
            tmi_release(g);
        }
        if (--d->deps == 0 && status == TM_OK) status = tmi_task_push(k, to);
    }
    return status;
}

enum { FEW = 8 };

static tm_status run_and_distribute(tmi_task *k, tmi_slot *s, tm_tensor **grads)
{
    tmi_node *n = s->node;
    tm_tensor *few[FEW] = {NULL};
    tm_tensor **outs = n->n_edges <= FEW ? few : tmi_calloc((size_t)n->n_edges * sizeof *outs);
    if (!outs) return TM_NOMEM;
    current_node = n;
    tm_status status = run_with_hooks(n, needs_now(k, s), grads, outs);
    current_node = NULL;
    if (TMI_UNLIKELY(status != TM_OK)) report_anomaly(n);
    if (!k->retain_graph) tmi_node_release_saved(n);
    if (status == TM_OK) status = distribute(k, s, outs);
    for (int e = 0; e < n->n_edges; e++) tmi_release(outs[e]);
    if (outs != few) tmi_free(outs, (size_t)n->n_edges * sizeof *outs);
    return status;
}

static void drop_grads(const tmi_node *n, tm_tensor **grads, tm_tensor *const *one)
{
    for (int i = 0; i < n->n_results; i++) tmi_release(grads[i]);
    if (grads != one) tmi_free(grads, (size_t)n->n_results * sizeof *grads);
}

static tm_status process(tmi_task *k, int32_t at)
{
    tmi_slot *s = &k->slots[at];
    tm_tensor *one = s->one;
    tm_tensor **grads = s->node->n_results <= 1 ? &one : tmi_slot_grads(s);
    if (!grads) return TM_NOMEM;
    s->one = NULL;
    s->many = NULL;
    tm_status status = s->wanted ? run_tensor_hooks(s->node, grads) : TM_OK;
    if (status == TM_OK && s->capture >= 0) take_captures(k, s, grads);
    if (status == TM_OK && s->runs) status = run_and_distribute(k, s, grads);
    drop_grads(s->node, grads, &one);
    return status;
}

/* ---------------------------------------------------------------- the pass */

static tm_status run_callbacks(tmi_task *k)
{
    tm_status status = TM_OK;
    for (int64_t i = 0; i < k->callbacks.len && status == TM_OK; i++) {
        tmi_call_out c;
        tmi_call_out_begin(&c);
        status = k->callbacks.data[i].fn(k->callbacks.data[i].ctx);
        tmi_call_out_end(&c);
    }
    return status;
}

static tm_status run_task(tmi_task *k, const tmi_backward_args *a, const tmi_edge *edges)
{
    for (int i = 0; i < a->n_roots; i++) TMI_TRY(add_root(k, a, i, &edges[i]));
    TMI_TRY(tmi_task_discover(k));
    for (int i = 0; i < a->n_inputs; i++) TMI_TRY(mark_input(k, a, i));
    TMI_TRY(tmi_task_select(k));
    for (int i = 0; i < a->n_roots; i++) {
        int32_t at = tmi_task_find(k, edges[i].node);
        if (k->slots[at].deps == 0) TMI_TRY(tmi_task_push(k, at));
        if (k->slots[at].deps == 0) k->slots[at].deps = -1;   /* a root named twice is pushed once */
    }
    for (int32_t at; (at = tmi_task_pop(k)) >= 0;) TMI_TRY(process(k, at));
    return run_callbacks(k);
}

static tm_status start(tmi_task *k, const tmi_backward_args *a)
{
    tmi_edge few[FEW], *edges = a->n_roots <= FEW ? few : tmi_calloc((size_t)a->n_roots * sizeof *edges);
    if (!edges) return TM_NOMEM;
    int n = 0;
    tm_status status = TM_OK;
    for (; n < a->n_roots && status == TM_OK; n++) status = tmi_grad_edge(a->roots[n], &edges[n]);
    if (status != TM_OK) n--;
    if (status == TM_OK) status = run_task(k, a, edges);
    while (n-- > 0) tmi_node_release(edges[n].node);
    if (edges != few) tmi_free(edges, (size_t)a->n_roots * sizeof *edges);
    return status;
}

static tm_status run_pass(const tmi_backward_args *a)
{
    tmi_task k;
    tmi_task_init(&k);
    k.results = a->results;
    k.create_graph = a->create_graph;
    k.retain_graph = a->retain_graph || a->create_graph;
    k.all = a->inputs == NULL;
    k.outer = running;
    bool grad_enabled = tmi_tls.grad_enabled;
    uint32_t modes = tmi_tls.modes;
    tmi_tls.grad_enabled = a->create_graph;
    tmi_tls.modes &= ~(uint32_t)TMI_MODE_BELOW_AUTOGRAD;
    running = &k;
    tm_status status = start(&k, a);
    running = k.outer;
    tmi_tls.modes = modes;
    tmi_tls.grad_enabled = grad_enabled;
    tmi_task_free(&k);
    return status;
}

tm_status tmi_backward(const tmi_backward_args *a)
{
    if (tmi_tls.error_pending) return tmi_tls.error_pending;
    for (int i = 0; a->results && i < a->n_inputs; i++) a->results[i] = NULL;
    tmi_node *outer_node = current_node;
    tm_status status = check_roots(a);
    if (status == TM_OK) status = run_pass(a);
    if (status == TM_OK) status = check_used(a);
    current_node = outer_node;
    for (int i = 0; status != TM_OK && a->results && i < a->n_inputs; i++) {
        tmi_release(a->results[i]);
        a->results[i] = NULL;
    }
    return status;
}

bool tmi_will_run(const tmi_node *n)
{
    int32_t slot = running ? tmi_task_find(running, n) : -1;
    return slot >= 0 && (running->all || running->slots[slot].runs || running->slots[slot].capture >= 0);
}

tm_status tmi_queue_callback(tm_status (*fn)(void *ctx), void (*free)(void *ctx), void *ctx)
{
    TMI_REQUIRE(running, TM_AUTOGRAD, "Final callbacks can only be installed during backward pass.");
    tmi_task *k = running;
    while (k->outer) k = k->outer;
    return tmi_vec_push(&k->callbacks, ((tmi_callback){fn, free, ctx})) ? TM_OK : TM_NOMEM;
}
