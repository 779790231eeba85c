/* Cycles that run through C: tensor -> grad_fn -> hook -> closure -> tensor, and the like.
 *
 * The collector may look into what C owns only where nothing outside can still reach it: from a wrapper that is its tensor's sole owner,
 * into children that hang on exactly one edge. A child tensor with a wrapper is visited at count 2 (its wrapper and this edge), one without
 * at count 1 it is entered; likewise nodes. Anything shared is left alone: the collector sees its Python reference as held from outside.
 * The walk keeps its own stack, so a long graph cannot exhaust the C stack, and it enters only nodes that may lead to Python objects. */
#include "glue.h"

typedef struct walk {
    TMI_VEC(tmi_node *) nodes;
    visitproc visit;
    void *arg;
    int result;
} walk;

static void visit_object(walk *w, PyObject *o)
{
    if (o && !w->result) w->result = w->visit(o, w->arg);
}

static void push_node(walk *w, tmi_node *n)
{
    if (!n || tmi_node_skippable(n)) return;
    uint64_t refs = atomic_load_explicit(&n->refs, memory_order_relaxed) & ~TMI_HAS_PYOBJECT;
    if (n->pyobj) {
        if (refs == 2) visit_object(w, n->pyobj);
    } else if (refs == 1) {
        (void)!tmi_vec_push(&w->nodes, n);
    }
}

/* A hook whose handle is still in someone's hands belongs to the handle too, and is left alone. */
static void visit_hooks(walk *w, const tmi_hooks_vec *hooks)
{
    for (int64_t i = 0; hooks && i < hooks->len; i++)
        if (atomic_load_explicit(&hooks->data[i]->refs, memory_order_relaxed) == 1 && !w->result)
            w->result = tmpy_visit_hook(hooks->data[i], w->visit, w->arg);
}

static void enter_meta(walk *w, const tmi_grad_meta *m);

static void visit_tensor(walk *w, tm_tensor *t)
{
    if (!t) return;
    uint64_t refs = tmi_ref_count(t);
    if (t->pyobj) {
        if (refs == 2) visit_object(w, t->pyobj);
    } else if (refs == 1 && t->grad_meta) {
        enter_meta(w, t->grad_meta);
    }
}

static void enter_meta(walk *w, const tmi_grad_meta *m)
{
    push_node(w, m->grad_fn);
    visit_hooks(w, m->hooks);
    visit_hooks(w, m->post_accumulate);
    if (m->grad && m->grad->pyobj) visit_tensor(w, m->grad);
    if (m->base && m->base->pyobj) visit_tensor(w, m->base);
}

static void enter_node(walk *w, const tmi_node *n)
{
    if (n->hooks) {
        visit_hooks(w, &n->hooks->tensor);
        visit_hooks(w, &n->hooks->pre);
        visit_hooks(w, &n->hooks->post);
    }
    if (n->kind == TMI_NODE_CUSTOM && !w->result) w->result = tmpy_visit_custom(n, w->visit, w->arg);
    for (int i = 0; n->saved_args && i < n->n_tensor_args; i++)
        if (n->saved_args[i].t && n->saved_args[i].t->pyobj) visit_tensor(w, n->saved_args[i].t);
    if (n->variable && n->variable->pyobj) visit_tensor(w, n->variable);
    for (int i = 0; i < n->n_edges; i++) push_node(w, n->edges[i].node);
}

static int run_walk(walk *w)
{
    while (w->nodes.len && !w->result) enter_node(w, w->nodes.data[--w->nodes.len]);
    tmi_vec_free(&w->nodes);
    return w->result;
}

int tmpy_tensor_traverse(PyObject *o, visitproc visit, void *arg)
{
    tmpy_tensor *d = TMPY_DATA(o, tmpy_tensor);
    Py_VISIT(Py_TYPE(o));
    Py_VISIT(d->dict);
    tm_tensor *t = d->t;
    if (!t || !t->grad_meta) return 0;
    if (tmi_ref_count(t) != 1) return 0;
    walk w = {.visit = visit, .arg = arg};
    enter_meta(&w, t->grad_meta);
    return run_walk(&w);
}

/* For node wrappers: what a node alone owns. */
int tmpy_walk_node(tmi_node *n, visitproc visit, void *arg)
{
    walk w = {.visit = visit, .arg = arg};
    enter_node(&w, n);
    return run_walk(&w);
}

/* Only called on garbage: what the tensor alone owns goes. */
int tmpy_tensor_clear(PyObject *o)
{
    tmpy_tensor *d = TMPY_DATA(o, tmpy_tensor);
    tm_tensor *t = d->t;
    if (t && t->grad_meta && tmi_ref_count(t) == 1 && tmi_hooks.free_grad_meta) {
        t->flags &= ~(uint32_t)TMI_REQUIRES_GRAD;
        tmi_hooks.free_grad_meta(t);
        t->grad_meta = NULL;
    }
    Py_CLEAR(d->dict);
    return 0;
}
