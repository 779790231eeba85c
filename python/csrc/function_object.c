/* autograd.Function: the C base of Function classes and of the node objects (`ctx`) that their calls make.
 *
 * The node of the tape owns one reference to the ctx; the ctx knows its node as long as that lives. grad_fn of an output is the ctx. */
#include "glue.h"

static PyTypeObject *function_type;

typedef struct function {
    tmi_node *n;               /* borrowed; NULL before apply and after the node is gone */
    PyObject *to_save, *nondiff, *dirty, *needs, *metadata;
    tmi_saved *saved;
    int n_saved;
    bool materialize, released, has_saved;
} function;
static function *d_of(PyObject *o) { return TMPY_DATA(o, function); }

static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *o = tmpy_alloc(type);
    if (o) d_of(o)->materialize = true;
    return o;
}
static void clear_saved(function *d)
{
    for (int i = 0; i < d->n_saved; i++) tmi_saved_clear(&d->saved[i]);
    PyMem_Free(d->saved);
    d->saved = NULL;
    d->n_saved = 0;
}
static int function_clear(PyObject *o)
{
    function *d = d_of(o);
    clear_saved(d);
    Py_CLEAR(d->to_save);
    Py_CLEAR(d->nondiff);
    Py_CLEAR(d->dirty);
    Py_CLEAR(d->needs);
    Py_CLEAR(d->metadata);
    return 0;
}
static void function_dealloc(PyObject *o)
{
    PyObject_GC_UnTrack(o);
    function_clear(o);
    tmpy_free(o);
}
static int function_traverse(PyObject *o, visitproc visit, void *arg)
{
    function *d = d_of(o);
    Py_VISIT(Py_TYPE(o));
    Py_VISIT(d->to_save);
    Py_VISIT(d->nondiff);
    Py_VISIT(d->dirty);
    Py_VISIT(d->needs);
    Py_VISIT(d->metadata);
    for (int i = 0; i < d->n_saved; i++) {   /* a saved tensor's wrapper belongs to us alone at count 2: itself and this edge */
        tm_tensor *t = d->saved[i].t;
        if (t && t->pyobj && tmi_ref_count(t) == 2) Py_VISIT((PyObject *)t->pyobj);
    }
    return 0;
}

/* ---- the node's callbacks */
/* A gradient that did not come is zeros, unless set_materialize_grads(False) asked for None. */
static PyObject *gradient(const tmi_node *node, tm_tensor *g, int i)
{
    const tmi_result_info *r = &node->results[i];
    if (g || !node->materialize || !r->defined) return tmpy_wrap_borrowed(g);
    tm_tensor *zeros = tmi_do_full(r->ndim, r->sizes, (tm_dtype)r->dtype, r->device, 0);
    return zeros ? tmpy_wrap(zeros) : tmpy_raise();
}

static PyObject *gradients(const tmi_node *node, tm_tensor **g)
{
    int n = node->n_results;
    PyObject *t = PyTuple_New(n);
    for (int i = 0; t && i < n; i++) {
        PyObject *x = gradient(node, g[i], i);
        if (!x || PyTuple_SetItem(t, i, x) < 0) Py_CLEAR(t);
    }
    return t;
}

static tm_status take_gradients(tmi_node *n, PyObject *r, tm_tensor **inputs)
{
    PyObject *tuple = PyTuple_Check(r) ? Py_NewRef(r) : PyList_Check(r) ? PySequence_Tuple(r) : PyTuple_Pack(1, r);
    tm_status s = TM_OK;
    if (!tuple) return tmpy_carry();
    Py_ssize_t got = PyTuple_Size(tuple), extra = got;
    while (extra > n->n_edges && PyTuple_GetItem(tuple, extra - 1) == Py_None) extra--;
    if (extra != n->n_edges) {
        PyErr_Format(PyExc_RuntimeError, "function %s returned an incorrect number of gradients (expected %d, got %zd)", tmi_node_name(n),
                     n->n_edges, got);
        s = tmpy_carry();
    }
    for (int i = 0; i < n->n_edges && s == TM_OK; i++) {
        PyObject *x = PyTuple_GetItem(tuple, i);
        if (x == Py_None) continue;
        if (!tmpy_is_tensor(x)) {
            PyErr_Format(PyExc_TypeError, "expected Variable or None (got %s)", tmpy_type_name(x));
            s = tmpy_carry();
        } else if (n->edges[i].node) {
            inputs[i] = tmpy_t(x);
            tmi_retain(inputs[i]);
        }
    }
    Py_DECREF(tuple);
    return s;
}

static tm_status run_backward(tmi_node *n, tm_tensor **grads, tm_tensor **inputs)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *ctx = n->custom_ctx, *args = gradients(n, grads), *apply = args ? PyObject_GetAttrString(ctx, "apply") : NULL;
    PyObject *r = apply ? PyObject_CallObject(apply, args) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(apply);
    tm_status s = r ? take_gradients(n, r, inputs) : tmpy_carry();
    Py_XDECREF(r);
    PyGILState_Release(state);
    return s;
}
static void release_saved(tmi_node *n)
{
    PyGILState_STATE state = PyGILState_Ensure();
    function *d = d_of(n->custom_ctx);
    d->released = d->has_saved;
    clear_saved(d);
    PyGILState_Release(state);
}
static void node_gone(tmi_node *n)
{
    if (!n->custom_ctx || !Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *ctx = n->custom_ctx;
    n->custom_ctx = NULL;
    d_of(ctx)->n = NULL;
    Py_DECREF(ctx);
    PyGILState_Release(state);
}

PyObject *tmpy_custom_object(tmi_node *n) { return n->custom == run_backward ? Py_XNewRef((PyObject *)n->custom_ctx) : NULL; }
int tmpy_visit_custom(const tmi_node *n, visitproc visit, void *arg)
{
    return n->custom == run_backward && n->custom_ctx ? visit(n->custom_ctx, arg) : 0;
}
tmi_node *tmpy_function_node(PyObject *o) { return PyObject_TypeCheck(o, function_type) ? d_of(o)->n : NULL; }

/* ---- apply */
static PyObject *needs_tuple(PyObject *args, tm_tensor **inputs)
{
    Py_ssize_t n = PyTuple_Size(args);
    PyObject *t = PyTuple_New(n);
    for (Py_ssize_t i = 0; t && i < n; i++) {
        PyObject *x = PyTuple_GetItem(args, i);
        inputs[i] = tmpy_is_tensor(x) ? tmpy_t(x) : NULL;
        PyTuple_SetItem(t, i, PyBool_FromLong(inputs[i] && tmi_requires_grad(inputs[i])));
    }
    return t;
}

/* forward(ctx, *args), or forward(*args) and setup_context(ctx, args, output) where the class defines one. */
static PyObject *run_forward(PyObject *cls, PyObject *ctx, PyObject *args)
{
    static PyObject *plain_setup;
    if (!plain_setup) {
        PyObject *module = PyImport_ImportModule("taimatsu.autograd.function"),
                 *base = module ? PyObject_GetAttrString(module, "Function") : NULL;
        plain_setup = base ? PyObject_GetAttrString(base, "setup_context") : NULL;
        Py_XDECREF(module);
        Py_XDECREF(base);
        if (!plain_setup) return NULL;
    }
    PyObject *forward = PyObject_GetAttrString(cls, "forward"), *setup = forward ? PyObject_GetAttrString(cls, "setup_context") : NULL,
             *out = NULL;
    bool separate = setup && setup != plain_setup;
    bool was = tm_set_grad_enabled(false);
    if (separate) {
        out = PyObject_CallObject(forward, args);
        PyObject *r = out ? PyObject_CallFunctionObjArgs(setup, ctx, args, out, NULL) : NULL;
        if (!r) Py_CLEAR(out);
        Py_XDECREF(r);
    } else if (setup) {
        Py_ssize_t n = PyTuple_Size(args);
        PyObject *all = PyTuple_New(n + 1);
        if (all) PyTuple_SetItem(all, 0, Py_NewRef(ctx));
        for (Py_ssize_t i = 0; all && i < n; i++) PyTuple_SetItem(all, i + 1, Py_NewRef(PyTuple_GetItem(args, i)));
        out = all ? PyObject_CallObject(forward, all) : NULL;
        Py_XDECREF(all);
    }
    tm_set_grad_enabled(was);
    Py_XDECREF(forward);
    Py_XDECREF(setup);
    return out;
}

/* A tuple (or NULL) of tensors as an array; entries borrowed. */
static int list_of(PyObject *o, const char *what, tm_tensor **out, int max)
{
    if (!o || o == Py_None) return 0;
    PyObject *t = PyTuple_Check(o) ? Py_NewRef(o) : PyTuple_Pack(1, o);
    int n = (int)PyTuple_Size(t);
    for (int i = 0; i < n && i < max; i++) {
        PyObject *x = PyTuple_GetItem(t, i);
        if (!tmpy_is_tensor(x)) {
            PyErr_Format(PyExc_TypeError, "%s only accepts variable arguments, but got %s", what, tmpy_type_name(x));
            n = -1;
            break;
        }
        out[i] = tmpy_t(x);
    }
    Py_DECREF(t);
    return n > max ? max : n;
}

static int save_all(function *d, int n_outs, tm_tensor **outs)
{
    PyObject *list = d->to_save;
    if (!list || list == Py_None) return 0;
    if (!PyTuple_Check(list)) return PyErr_Format(PyExc_TypeError, "saved tensors argument should be a tuple"), -1;
    Py_ssize_t n = PyTuple_Size(list);
    d->saved = PyMem_Calloc((size_t)n + 1, sizeof *d->saved);
    if (!d->saved) return PyErr_NoMemory(), -1;
    d->has_saved = true;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = PyTuple_GetItem(list, i);
        d->n_saved = (int)i + 1;
        if (x == Py_None) continue;
        if (!tmpy_is_tensor(x))
            return PyErr_Format(PyExc_TypeError, "save_for_backward can only save variables, but argument %zd is of type %s", i,
                                tmpy_type_name(x)),
                   -1;
        if (tmi_custom_save(&d->saved[i], d->n, tmpy_t(x), n_outs, outs) != TM_OK) return tmpy_raise(), -1;
    }
    Py_CLEAR(d->to_save);
    return 0;
}

enum { MAX_OUTS = 64, MAX_MARKS = 64 };

/* Outputs of forward as results of the node. */
static PyObject *wrap_outputs(function *d, bool recording, int n_inputs, tm_tensor **inputs, PyObject *out)
{
    bool single = !PyTuple_Check(out);
    int n = single ? 1 : (int)PyTuple_Size(out);
    tm_tensor *outs[MAX_OUTS] = {NULL}, *nondiff[MAX_MARKS], *dirty[MAX_MARKS], *given[MAX_OUTS] = {NULL};
    if (n > MAX_OUTS) return tmpy_error(PyExc_RuntimeError, "a Function has at most %d outputs", (int)MAX_OUTS);
    tmi_custom_marks marks = {nondiff, dirty, list_of(d->nondiff, "mark_non_differentiable", nondiff, MAX_MARKS),
                              list_of(d->dirty, "mark_dirty", dirty, MAX_MARKS)};
    if (marks.n_nondiff < 0 || marks.n_dirty < 0) return NULL;
    for (int i = 0; i < n; i++) {
        PyObject *x = single ? out : PyTuple_GetItem(out, i);
        if (!tmpy_is_tensor(x)) continue;
        outs[i] = given[i] = tmpy_t(x);
        tmi_retain(outs[i]);
    }
    PyObject *r = NULL;
    tm_status s = tmi_custom_wrap(d->n, recording, n_inputs, inputs, n, outs, &marks);
    d->n->materialize = d->materialize;
    if (s != TM_OK) tmpy_raise();
    else if (!recording || save_all(d, n, outs) == 0)
        r = single && outs[0] ? tmpy_wrap_borrowed(outs[0]) : single ? Py_NewRef(out) : PyTuple_New(n);
    for (int i = 0; r && !single && i < n; i++) {
        PyObject *x = outs[i] ? tmpy_wrap_borrowed(outs[i]) : Py_NewRef(PyTuple_GetItem(out, i));
        if (!x || PyTuple_SetItem(r, i, x) < 0) Py_CLEAR(r);
    }
    for (int i = 0; i < n; i++)
        if (outs[i]) tmi_release(outs[i]);
    return r;
}

static PyObject *apply(PyObject *cls, PyObject *args)
{
    PyObject *kind = PyObject_GetAttrString(cls, "_backward_cls"), *ctx = kind ? PyObject_CallNoArgs(kind) : NULL, *out = NULL, *r = NULL,
             *name = NULL;
    Py_ssize_t n = PyTuple_Size(args);
    tm_tensor **inputs = PyMem_Calloc((size_t)n + 1, sizeof *inputs);
    Py_XDECREF(kind);
    if (!ctx || !inputs) goto done;
    function *d = d_of(ctx);
    if (!(d->needs = needs_tuple(args, inputs)) || !(name = PyType_GetName(Py_TYPE(ctx)))) goto done;
    tmi_custom_spec spec = {PyUnicode_AsUTF8AndSize(name, NULL), run_backward, release_saved, node_gone, ctx};
    bool recording;
    tmi_node *node = tmi_custom_node_new(&spec, (int)n, inputs, &recording);
    if (!node) {
        tmpy_raise();
        goto done;
    }
    Py_INCREF(ctx);   /* the node's */
    d->n = node;
    tmi_node_mark_python(node);
    if ((out = run_forward(cls, ctx, args))) r = wrap_outputs(d, recording, (int)n, inputs, out);
    tmi_node_release(node);
done:
    PyMem_Free(inputs);
    Py_XDECREF(out);
    Py_XDECREF(name);
    Py_XDECREF(ctx);
    return r;
}

/* ---- attributes of ctx */
static PyObject *saved_tensors(PyObject *o, void *unused)
{
    function *d = d_of(o);
    if (d->released)
        return tmpy_error(PyExc_RuntimeError, "Trying to backward through the graph a second time (or directly access saved tensors after "
                                              "they have already been freed). Saved intermediate "
                                              "values of the graph are freed when you call .backward() or autograd.grad(). Specify "
                                              "retain_graph=True if you need to backward through the graph a second time "
                                              "or if you need to access saved tensors after calling backward.");
    PyObject *t = PyTuple_New(d->n_saved);
    for (int i = 0; t && i < d->n_saved; i++) {
        tm_tensor *x = NULL;
        bool empty = !d->saved[i].t && !d->saved[i].packed;
        if (!empty && tmi_unpack_saved(&d->saved[i], d->n, &x) != TM_OK) {
            Py_DECREF(t);
            return tmpy_raise();
        }
        PyObject *item = x ? tmpy_wrap(x) : Py_NewRef(Py_None);
        if (!item || PyTuple_SetItem(t, i, item) < 0) Py_CLEAR(t);
    }
    return t;
}
static PyObject *get_slot(PyObject *o, void *offset)
{
    PyObject *v = *(PyObject **)(void *)((char *)d_of(o) + (size_t)(uintptr_t)offset);
    return Py_NewRef(v ? v : Py_None);
}
static int set_slot(PyObject *o, PyObject *value, void *offset)
{
    PyObject **place = (PyObject **)(void *)((char *)d_of(o) + (size_t)(uintptr_t)offset);
    Py_XSETREF(*place, Py_XNewRef(value));
    return 0;
}
static PyObject *get_materialize(PyObject *o, void *unused) { return PyBool_FromLong(d_of(o)->materialize); }
static int set_materialize(PyObject *o, PyObject *value, void *unused)
{
    if (!value || !PyBool_Check(value)) return PyErr_Format(PyExc_RuntimeError, "set_materialize_grads expects a bool"), -1;
    d_of(o)->materialize = value == Py_True;
    if (d_of(o)->n) d_of(o)->n->materialize = value == Py_True;
    return 0;
}
static PyObject *next_functions(PyObject *o, void *unused)
{
    return d_of(o)->n ? tmpy_next_functions(d_of(o)->n)
                      : tmpy_error(PyExc_RuntimeError, "Attribute 'next_functions' is invalid for this instance of _C._FunctionBase. "
                                                       "Accessing this attribute directly on an instance of "
                                                       "autograd.Function is a legacy access pattern that is no longer supported.");
}
static PyObject *metadata(PyObject *o, void *unused)
{
    function *d = d_of(o);
    if (!d->metadata) d->metadata = PyDict_New();
    return Py_XNewRef(d->metadata);
}
TMPY_NOARGS(name)
{
    if (d_of(self)->n) return PyUnicode_FromString(tmi_node_name(d_of(self)->n));
    return PyType_GetName(Py_TYPE(self));
}
static PyObject *on_node(PyObject *self, PyObject *f, bool before)
{
    PyObject *node = Py_NewRef(self), *r = before ? tmpy_node_register_prehook(node, f) : tmpy_node_register_hook(node, f);
    Py_DECREF(node);
    return r;
}
static PyObject *register_hook(PyObject *self, PyObject *f) { return on_node(self, f, false); }
static PyObject *register_prehook(PyObject *self, PyObject *f) { return on_node(self, f, true); }
TMPY_NOARGS(sequence_nr) { return PyLong_FromUnsignedLongLong(d_of(self)->n ? d_of(self)->n->sequence : 0); }

#define AT(field) ((void *)(uintptr_t)offsetof(function, field))
int tmpy_function_init(PyObject *m)
{
    static PyMethodDef methods[] = {{"apply", apply, METH_VARARGS | METH_CLASS, NULL}, {"name", name, METH_NOARGS, NULL},
                                    {"register_hook", register_hook, METH_O, NULL},    {"register_prehook", register_prehook, METH_O, NULL},
                                    {"_sequence_nr", sequence_nr, METH_NOARGS, NULL},  {NULL, NULL, 0, NULL}};
    static PyGetSetDef getset[] = {{"saved_tensors", saved_tensors, NULL, NULL, NULL},
                                   {"saved_variables", saved_tensors, NULL, NULL, NULL},
                                   {"to_save", get_slot, set_slot, NULL, AT(to_save)},
                                   {"non_differentiable", get_slot, set_slot, NULL, AT(nondiff)},
                                   {"dirty_tensors", get_slot, set_slot, NULL, AT(dirty)},
                                   {"needs_input_grad", get_slot, set_slot, NULL, AT(needs)},
                                   {"materialize_grads", get_materialize, set_materialize, NULL, NULL},
                                   {"next_functions", next_functions, NULL, NULL, NULL},
                                   {"metadata", metadata, NULL, NULL, NULL},
                                   {NULL, NULL, NULL, NULL, NULL}};
    static PyType_Slot slots[] = {{Py_tp_new, function_new},
                                  {Py_tp_dealloc, function_dealloc},
                                  {Py_tp_traverse, function_traverse},
                                  {Py_tp_clear, function_clear},
                                  {Py_tp_methods, methods},
                                  {Py_tp_getset, getset},
                                  {0, NULL}};
    static PyType_Spec spec = {"torch._C._FunctionBase", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    return (function_type = tmpy_type_new(m, &spec, sizeof(function), NULL)) ? 0 : -1;
}
