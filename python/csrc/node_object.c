/* grad_fn: nodes of the tape as Python objects, one class per node name (AddBackward0), one object per node while either side lives. */
#include "glue.h"

PyTypeObject *tmpy_node_type;
static PyObject *classes;   /* name -> class */

typedef struct { tmi_node *n; PyObject *metadata, *dict, *weak; } node;
static node *d_of(PyObject *o) { return TMPY_DATA(o, node); }

tmi_node *tmpy_node_of(PyObject *o) { return PyObject_TypeCheck(o, tmpy_node_type) ? d_of(o)->n : tmpy_function_node(o); }

static PyObject *class_for(tmi_node *n)
{
    const char *name = tmi_node_name(n);
    PyObject *type = PyDict_GetItemString(classes, name);   /* the dict keeps it */
    if (type) return type;
    char full[160];
    snprintf(full, sizeof full, "torch.autograd.function.%s", name);
    PyType_Slot slots[] = {{0, NULL}};
    PyType_Spec spec = {full, 0, 0, Py_TPFLAGS_DEFAULT, slots};   /* collected as the base is */
    type = PyType_FromSpecWithBases(&spec, (PyObject *)tmpy_node_type);
    if (!type || PyDict_SetItemString(classes, name, type) < 0) Py_CLEAR(type);
    Py_XDECREF(type);
    return type;
}

PyObject *tmpy_node(tmi_node *n)
{
    if (!n) Py_RETURN_NONE;
    if (n->kind == TMI_NODE_CUSTOM) {
        PyObject *ctx = tmpy_custom_object(n);
        if (ctx) return ctx;
    }
    if (n->pyobj) return Py_NewRef((PyObject *)n->pyobj);
    PyObject *type = class_for(n), *o = type ? tmpy_alloc((PyTypeObject *)type) : NULL;
    if (!o) return NULL;
    d_of(o)->n = tmi_node_retain(n);
    n->pyobj = o;
    atomic_fetch_or_explicit(&n->refs, TMI_HAS_PYOBJECT, memory_order_relaxed);
    return Py_NewRef(o);   /* a second one for C, which holds at least the reference that we were shown */
}

static void count_changed(tmi_node *n, int step)
{
    PyGILState_STATE state = PyGILState_Ensure();
    if (step > 0) Py_XINCREF((PyObject *)n->pyobj);
    else Py_XDECREF((PyObject *)n->pyobj);
    PyGILState_Release(state);
}

static void node_dealloc(PyObject *o)
{
    node *d = d_of(o);
    PyObject_GC_UnTrack(o);
    if (d->weak) PyObject_ClearWeakRefs(o);
    tmi_node *n = d->n;
    d->n = NULL;
    if (n) {
        n->pyobj = NULL;
        atomic_fetch_and_explicit(&n->refs, ~TMI_HAS_PYOBJECT, memory_order_relaxed);
        tmi_node_release(n);
    }
    Py_CLEAR(d->metadata);
    Py_CLEAR(d->dict);
    tmpy_free(o);
}
static int node_traverse(PyObject *o, visitproc visit, void *arg)
{
    node *d = d_of(o);
    Py_VISIT(Py_TYPE(o));
    Py_VISIT(d->metadata);
    Py_VISIT(d->dict);
    if (d->n && (atomic_load_explicit(&d->n->refs, memory_order_relaxed) & ~TMI_HAS_PYOBJECT) == 1) return tmpy_walk_node(d->n, visit, arg);
    return 0;
}
static int node_clear(PyObject *o)
{
    Py_CLEAR(d_of(o)->metadata);
    Py_CLEAR(d_of(o)->dict);
    return 0;
}

TMPY_NOARGS(name) { return PyUnicode_FromString(tmi_node_name(d_of(self)->n)); }
TMPY_NOARGS(sequence_nr) { return PyLong_FromUnsignedLongLong(d_of(self)->n->sequence); }

PyObject *tmpy_next_functions(tmi_node *n)
{
    PyObject *t = PyTuple_New(n->n_edges);
    for (int i = 0; t && i < n->n_edges; i++) {
        PyObject *pair = Py_BuildValue("(Ni)", tmpy_node(n->edges[i].node), n->edges[i].nr);
        if (!pair || PyTuple_SetItem(t, i, pair) < 0) Py_CLEAR(t);
    }
    return t;
}
static PyObject *next_functions(PyObject *o, void *unused) { return tmpy_next_functions(d_of(o)->n); }
static PyObject *metadata(PyObject *o, void *unused)
{
    node *d = d_of(o);
    if (!d->metadata) d->metadata = PyDict_New();
    return Py_XNewRef(d->metadata);
}
static PyObject *variable(PyObject *o, void *unused)
{
    tmi_node *n = d_of(o)->n;
    if (n->kind != TMI_NODE_ACCUMULATE)
        return tmpy_error(PyExc_AttributeError, "'%s' object has no attribute 'variable'", tmi_node_name(n));
    return tmpy_wrap_borrowed(n->variable);
}

/* _input_metadata: what each result's gradient looks like. */
static PyObject *input_metadata(PyObject *o, void *unused)
{
    tmi_node *n = d_of(o)->n;
    PyObject *simple = PyImport_ImportModule("types"), *list = PyList_New(0);
    PyObject *type = simple ? PyObject_GetAttrString(simple, "SimpleNamespace") : NULL, *none = PyTuple_New(0);
    for (int i = 0; type && list && none && i < n->n_results; i++) {
        const tmi_result_info *r = &n->results[i];
        PyObject *kw = Py_BuildValue("{s:N,s:N,s:N,s:O}", "shape", tmpy_size(r->ndim, r->sizes), "dtype", tmpy_dtype((tm_dtype)r->dtype),
                                     "device", tmpy_device_new(r->device), "is_nested_tensor", Py_False);
        PyObject *one = kw ? PyObject_Call(type, none, kw) : NULL;
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
        Py_XDECREF(kw);
    }
    Py_XDECREF(simple);
    Py_XDECREF(type);
    Py_XDECREF(none);
    return list;
}

/* grad_fn(grads...): runs this one node. */
static PyObject *node_call(PyObject *o, PyObject *args, PyObject *kwargs)
{
    tmi_node *n = d_of(o)->n;
    Py_ssize_t given = PyTuple_Size(args);
    tm_tensor *grads[64] = {NULL}, *outs[64] = {NULL};
    if (given > 64 || n->n_results > 64 || n->n_edges > 64) return tmpy_error(PyExc_RuntimeError, "too many gradients");
    for (Py_ssize_t i = 0; i < given; i++) {
        PyObject *x = PyTuple_GetItem(args, i);
        if (x != Py_None && !tmpy_is_tensor(x))
            return tmpy_error(PyExc_TypeError, "expected a Tensor or None, but got %s", tmpy_type_name(x));
        grads[i] = x == Py_None ? NULL : tmpy_t(x);
    }
    if (tmi_node_run(n, grads, outs) != TM_OK) return tmpy_raise();
    PyObject *t = PyTuple_New(n->n_edges);
    for (int i = 0; i < n->n_edges; i++) {
        PyObject *x = outs[i] ? tmpy_wrap(outs[i]) : Py_NewRef(Py_None);
        if (t) PyTuple_SetItem(t, i, x);
        else Py_XDECREF(x);
    }
    if (t && n->n_edges == 1) {
        PyObject *one = Py_NewRef(PyTuple_GetItem(t, 0));
        Py_DECREF(t);
        return one;
    }
    return t;
}

/* _saved_self and the like: values the node keeps. */
static PyObject *get_attribute(PyObject *o, PyObject *key)
{
    const char *text = PyUnicode_AsUTF8AndSize(key, NULL);
    if (text && !strncmp(text, "_saved_", 7)) {
        tm_tensor *t = NULL;
        const tmi_value *v = NULL;
        tm_status s = tmi_node_saved_value(d_of(o)->n, text + 7, &t, &v);
        if (s == TM_OK) return v ? tmpy_from_value(v) : t ? tmpy_wrap(t) : Py_NewRef(Py_None);
        if (tm_error_status() != TM_OK) return tmpy_raise();
    }
    return PyObject_GenericGetAttr(o, key);
}

PyObject *tmpy_from_value(const tmi_value *v)
{
    switch (v->tag) {
    case TMI_V_INT: return PyLong_FromLongLong(v->u.i);
    case TMI_V_INTS: return tmpy_ints((int)v->len, v->u.ints);
    case TMI_V_BOOL: return PyBool_FromLong(v->u.b);
    case TMI_V_FLOAT: return PyFloat_FromDouble(v->u.f);
    case TMI_V_SCALAR: return tmpy_from_scalar(tmi_as_scalar(v));
    case TMI_V_DTYPE: return v->u.i == TM_DTYPE_DEFAULT ? Py_NewRef(Py_None) : tmpy_dtype((tm_dtype)v->u.i);
    case TMI_V_STR: return PyUnicode_FromString(v->u.str);
    default: Py_RETURN_NONE;
    }
}

static PyObject *node_repr(PyObject *o) { return PyUnicode_FromFormat("<%s object at %p>", tmi_node_name(d_of(o)->n), o); }

static PyMethodDef methods[] = {{"name", name, METH_NOARGS, NULL},
                                {"_sequence_nr", sequence_nr, METH_NOARGS, NULL},
                                {"register_hook", tmpy_node_register_hook, METH_O, NULL},
                                {"register_prehook", tmpy_node_register_prehook, METH_O, NULL},
                                {NULL, NULL, 0, NULL}};
static PyGetSetDef getset[] = {{"next_functions", next_functions, NULL, NULL, NULL},
                               {"metadata", metadata, NULL, NULL, NULL},
                               {"variable", variable, NULL, NULL, NULL},
                               {"_input_metadata", input_metadata, NULL, NULL, NULL},
                               {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
                               {NULL, NULL, NULL, NULL, NULL}};
static PyMemberDef members[] = {{"__dictoffset__", Py_T_PYSSIZET, 0, Py_READONLY, NULL},
                                {"__weaklistoffset__", Py_T_PYSSIZET, 0, Py_READONLY, NULL},
                                {NULL, 0, 0, 0, NULL}};

int tmpy_node_init(PyObject *m)
{
    members[0].offset = tmpy_object_size + (Py_ssize_t)offsetof(node, dict);
    members[1].offset = tmpy_object_size + (Py_ssize_t)offsetof(node, weak);
    static PyType_Slot slots[] = {{Py_tp_dealloc, node_dealloc},   {Py_tp_traverse, node_traverse},
                                  {Py_tp_clear, node_clear},       {Py_tp_methods, methods},
                                  {Py_tp_getset, getset},          {Py_tp_members, members},
                                  {Py_tp_repr, node_repr},         {Py_tp_call, node_call},
                                  {Py_tp_getattro, get_attribute}, {0, NULL}};
    static PyType_Spec spec = {"torch._C._autograd.Node", 0, 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    tmi_glue.node_count = count_changed;
    classes = PyDict_New();
    return classes && (tmpy_node_type = tmpy_type_new(m, &spec, sizeof(node), NULL)) ? 0 : -1;
}
