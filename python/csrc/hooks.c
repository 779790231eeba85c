/* Python functions as hooks of tensors and nodes, and the handle that takes one away again. */
#include "glue.h"

static PyTypeObject *handle_type;

typedef struct handle { tmi_hook *hook; PyObject *id; } handle;

/* ---- calling out */
static tm_status bad_result(PyObject *r)
{
    PyErr_Format(PyExc_TypeError, "expected Variable, but hook returned '%s'", tmpy_type_name(r));
    Py_DECREF(r);
    return tmpy_carry();
}

/* grads[0] through f; None leaves it. */
static tm_status call_tensor_hook(PyObject *f, tm_tensor **grads)
{
    PyObject *g = tmpy_wrap_borrowed(grads[0]), *r = g ? PyObject_CallFunctionObjArgs(f, g, NULL) : NULL;
    Py_XDECREF(g);
    if (!r) return tmpy_carry();
    if (r != Py_None && !tmpy_is_tensor(r)) return bad_result(r);
    if (r != Py_None && tmpy_t(r) != grads[0]) {
        tm_tensor *old = grads[0];
        tmi_retain(tmpy_t(r));
        grads[0] = tmpy_t(r);
        if (old) tmi_release(old);
    }
    Py_DECREF(r);
    return TM_OK;
}

static PyObject *tuple_of(tm_tensor **t, int n)
{
    PyObject *r = PyTuple_New(n);
    for (int i = 0; r && i < n; i++) {
        PyObject *x = tmpy_wrap_borrowed(t[i]);
        if (!x || PyTuple_SetItem(r, i, x) < 0) Py_CLEAR(r);
    }
    return r;
}

/* A hook's answer for several gradients: None, one tensor where there is one, or a tuple of the same length. */
static tm_status take_answer(PyObject *r, tm_tensor **t, int n)
{
    if (r == Py_None) return Py_DECREF(r), TM_OK;
    PyObject *tuple = PyTuple_Check(r) ? Py_NewRef(r) : PyList_Check(r) ? PySequence_Tuple(r) : PyTuple_Pack(1, r);
    Py_DECREF(r);
    if (!tuple) return tmpy_carry();
    if (PyTuple_Size(tuple) != n) {
        PyErr_Format(PyExc_TypeError, "hook returned an incorrect number of values (got %zd, but expected %d)", PyTuple_Size(tuple), n);
        Py_DECREF(tuple);
        return tmpy_carry();
    }
    for (int i = 0; i < n; i++) {
        PyObject *x = PyTuple_GetItem(tuple, i);
        if (x != Py_None && !tmpy_is_tensor(x)) return bad_result((Py_INCREF(x), Py_DECREF(tuple), x));
        tm_tensor *old = t[i], *fresh = x == Py_None ? NULL : tmpy_t(x);
        if (fresh) tmi_retain(fresh);
        t[i] = fresh;
        if (old) tmi_release(old);
    }
    Py_DECREF(tuple);
    return TM_OK;
}

static tm_status tensor_hook(void *ctx, tmi_node *node, tm_tensor **grads, int n, tm_tensor **outs, int n_outs)
{
    PyGILState_STATE state = PyGILState_Ensure();
    tm_status s = call_tensor_hook(ctx, grads);
    PyGILState_Release(state);
    return s;
}
static tm_status post_accumulate_hook(void *ctx, tmi_node *node, tm_tensor **grads, int n, tm_tensor **outs, int n_outs)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *leaf = tmpy_wrap_borrowed(grads[0]), *r = leaf ? PyObject_CallFunctionObjArgs(ctx, leaf, NULL) : NULL;
    tm_status s = TM_OK;
    Py_XDECREF(leaf);
    if (r && r != Py_None) PyErr_SetString(PyExc_RuntimeError, "Tensor post accumulate grad hooks should return None.");
    if (!r || r != Py_None) s = tmpy_carry();
    Py_XDECREF(r);
    PyGILState_Release(state);
    return s;
}
static tm_status node_hook(void *ctx, tmi_node *node, tm_tensor **grads, int n, tm_tensor **outs, int n_outs)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *in = tuple_of(outs, n_outs), *out = tuple_of(grads, n),
             *r = in && out ? PyObject_CallFunctionObjArgs(ctx, in, out, NULL) : NULL;
    Py_XDECREF(in);
    Py_XDECREF(out);
    tm_status s = r ? take_answer(r, outs, n_outs) : tmpy_carry();
    PyGILState_Release(state);
    return s;
}
static tm_status node_prehook(void *ctx, tmi_node *node, tm_tensor **grads, int n, tm_tensor **outs, int n_outs)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *out = tuple_of(grads, n), *r = out ? PyObject_CallFunctionObjArgs(ctx, out, NULL) : NULL;
    Py_XDECREF(out);
    tm_status s = r ? take_answer(r, grads, n) : tmpy_carry();
    PyGILState_Release(state);
    return s;
}

static void drop(void *ctx)
{
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)ctx);
    PyGILState_Release(state);
}

int tmpy_visit_hook(const tmi_hook *h, visitproc visit, void *arg)
{
    if (h->free != drop || !h->ctx || atomic_load(&h->removed)) return 0;
    return visit(h->ctx, arg);
}

/* ---- handles */
static PyObject *make_handle(tmi_hook *hook)
{
    PyObject *o = tmpy_alloc(handle_type);
    if (!o) return tmi_hook_release(hook), NULL;
    TMPY_DATA(o, handle)->hook = hook;
    return o;
}
static void handle_dealloc(PyObject *o)
{
    handle *d = TMPY_DATA(o, handle);
    if (d->hook) tmi_hook_release(d->hook);
    tmpy_free(o);
}
TMPY_NOARGS(remove_hook)
{
    tmi_hook_remove(TMPY_DATA(self, handle)->hook);
    Py_RETURN_NONE;
}
TMPY_NOARGS(enter) { return Py_NewRef(self); }
static PyObject *leave(PyObject *self, PyObject *const *args, Py_ssize_t n) { return remove_hook(self, NULL); }
static PyObject *get_id(PyObject *o, void *unused) { return PyLong_FromUnsignedLongLong(TMPY_DATA(o, handle)->hook->id); }

/* ---- registration */
static PyObject *finish(tm_status s, PyObject *f, tmi_hook **hook)
{
    if (s == TM_OK) return make_handle(*hook);
    Py_DECREF(f);
    return tmpy_raise();
}
static PyObject *register_hook(PyObject *self, PyObject *f)
{
    PyObject *r;
    tmi_hook *hook = NULL;
    if (tmpy_override_method(self, "register_hook", &f, 1, NULL, &r)) return r;
    if (!tmi_requires_grad(tmpy_t(self)))
        return tmpy_error(PyExc_RuntimeError, "cannot register a hook on a tensor that doesn't require gradient");
    return finish(tmi_tensor_add_hook(tmpy_t(self), tensor_hook, drop, Py_NewRef(f), &hook), f, &hook);
}
static PyObject *register_post_accumulate(PyObject *self, PyObject *f)
{
    tmi_hook *hook = NULL;
    tm_tensor *t = tmpy_t(self);
    if (!tmi_requires_grad(t)) return tmpy_error(PyExc_RuntimeError, "cannot register a hook on a tensor that doesn't require gradient");
    if (!tmi_is_leaf(t)) return tmpy_error(PyExc_RuntimeError, "post accumulate grad hooks cannot be registered on non-leaf tensors");
    return finish(tmi_tensor_add_post_accumulate_hook(t, post_accumulate_hook, drop, Py_NewRef(f), &hook), f, &hook);
}
PyObject *tmpy_node_register_hook(PyObject *node, PyObject *f)
{
    tmi_hook *hook = NULL;
    tmi_node *n = tmpy_node_of(node);
    return n ? finish(tmi_node_add_post_hook(n, node_hook, drop, Py_NewRef(f), &hook), f, &hook)
             : tmpy_error(PyExc_RuntimeError, "the node of this object is gone");
}
PyObject *tmpy_node_register_prehook(PyObject *node, PyObject *f)
{
    tmi_hook *hook = NULL;
    tmi_node *n = tmpy_node_of(node);
    return n ? finish(tmi_node_add_pre_hook(n, node_prehook, drop, Py_NewRef(f), &hook), f, &hook)
             : tmpy_error(PyExc_RuntimeError, "the node of this object is gone");
}

PyMethodDef tmpy_hook_methods[] = {{"register_hook", register_hook, METH_O, NULL},
                                   {"register_post_accumulate_grad_hook", register_post_accumulate, METH_O, NULL},
                                   {NULL, NULL, 0, NULL}};

int tmpy_hooks_init(PyObject *m)
{
    static PyMethodDef methods[] = {{"remove", remove_hook, METH_NOARGS, NULL},
                                    {"__enter__", enter, METH_NOARGS, NULL},
                                    {"__exit__", TMPY_FN(leave), METH_FASTCALL, NULL},
                                    {NULL, NULL, 0, NULL}};
    static PyGetSetDef getset[] = {{"id", get_id, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
    static PyType_Slot slots[] = {{Py_tp_dealloc, handle_dealloc}, {Py_tp_methods, methods}, {Py_tp_getset, getset}, {0, NULL}};
    static PyType_Spec spec = {"torch.utils.hooks.RemovableHandle", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return (handle_type = tmpy_type_new(m, &spec, sizeof(handle), NULL)) ? 0 : -1;
}
