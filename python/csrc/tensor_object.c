/* The Tensor class: one wrapper per tm_tensor, found again through tm_tensor.pyobj as long as either side is alive.
 *
 * The wrapper owns one C reference. While C holds others, C as a whole owns one Python reference, taken when the count goes from 1 to 2
 * and given back when it falls to 1 again, so attributes survive while only C holds the tensor. Wrappers of the exact class come from a
 * small free list: making and freeing one is the larger part of what a small operator costs in Python. */
#include "glue.h"

PyTypeObject *tmpy_Tensor, *tmpy_Parameter;

enum { MAX_FREE = 256 };
static PyObject *free_list[MAX_FREE];
static int n_free;

/* Joins a fresh object and a tensor that has no wrapper; takes t's reference. */
static void attach(PyObject *o, tm_tensor *t)
{
    TMPY_DATA(o, tmpy_tensor)->t = t;
    t->pyobj = o;
    uint64_t before = atomic_fetch_or_explicit(&t->refs, TMI_HAS_PYOBJECT, memory_order_relaxed);
    if ((before & ~TMI_HAS_PYOBJECT) > 1) Py_INCREF(o);   /* C holds others */
}

static PyObject *fresh(void)
{
    if (n_free) {
        PyObject *o = free_list[--n_free];
        return PyObject_Init(o, tmpy_Tensor);
    }
    PyObject *o = (PyObject *)PyObject_GC_New(char, tmpy_Tensor);
    if (o) *TMPY_DATA(o, tmpy_tensor) = (tmpy_tensor){0};
    return o;
}

PyObject *tmpy_wrap(tm_tensor *t)
{
    if (TMI_UNLIKELY(!t)) return tmpy_raise();
    if (t->pyobj) {
        PyObject *o = Py_NewRef((PyObject *)t->pyobj);
        tmi_release(t);
        return o;
    }
    PyObject *o = fresh();
    if (TMI_UNLIKELY(!o)) {
        tmi_release(t);
        return NULL;
    }
    attach(o, t);
    PyObject_GC_Track(o);
    return o;
}

PyObject *tmpy_wrap_as(PyTypeObject *type, tm_tensor *t)
{
    if (!t) return tmpy_raise();
    if (type == tmpy_Tensor && !t->pyobj) return tmpy_wrap(t);
    PyObject *o = t->pyobj ? tmpy_error(PyExc_RuntimeError,
                                        "Creating a new Tensor subclass %s but the raw Tensor object is already associated to "
                                        "a python object of type %s",
                                        ((PyTypeObject *)type)->tp_name, tmpy_type_name(t->pyobj))
                           : tmpy_alloc(type);
    if (!o) {
        tmi_release(t);
        return NULL;
    }
    attach(o, t);
    return o;
}

PyObject *tmpy_wrap_borrowed(tm_tensor *t)
{
    if (!t) Py_RETURN_NONE;
    if (t->pyobj) return Py_NewRef((PyObject *)t->pyobj);
    tmi_retain(t);
    return tmpy_wrap(t);
}

/* The core's hook: C's share of the Python object's count. May run on a thread that has given the interpreter lock up. */
static void count_changed(tm_tensor *t, int step)
{
#ifndef Py_LIMITED_API
    if (TMI_LIKELY(PyGILState_Check())) {
        if (step > 0) Py_XINCREF((PyObject *)t->pyobj);
        else Py_XDECREF((PyObject *)t->pyobj);
        return;
    }
#endif
    PyGILState_STATE state = PyGILState_Ensure();
    if (step > 0) Py_XINCREF((PyObject *)t->pyobj);
    else Py_XDECREF((PyObject *)t->pyobj);
    PyGILState_Release(state);
}

static void detach(PyObject *o)
{
    tmpy_tensor *d = TMPY_DATA(o, tmpy_tensor);
    tm_tensor *t = d->t;
    if (!t) return;
    d->t = NULL;
    t->pyobj = NULL;
    atomic_fetch_and_explicit(&t->refs, ~TMI_HAS_PYOBJECT, memory_order_relaxed);
    tmi_release(t);
}

static void tensor_dealloc(PyObject *o)
{
    tmpy_tensor *d = TMPY_DATA(o, tmpy_tensor);
    PyObject_GC_UnTrack(o);
    if (d->weak) PyObject_ClearWeakRefs(o);
    detach(o);
    Py_CLEAR(d->dict);
    PyTypeObject *type = Py_TYPE(o);
    if (type == tmpy_Tensor && n_free < MAX_FREE) {
        d->weak = NULL;
        free_list[n_free++] = o;
        Py_DECREF(type);
        return;
    }
    tmpy_free(o);
}

/* Tensor._make_subclass(cls, data, require_grad=False): `cls` around data's values, detached, sharing memory and version. */
static PyObject *make_subclass(PyObject *unused, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"cls", "data", "require_grad", NULL};
    PyObject *cls, *data;
    int require_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|p:_make_subclass", names, &cls, &data, &require_grad)) return NULL;
    if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, tmpy_Tensor))
        return tmpy_error(PyExc_TypeError, "cls must be a subclass of Tensor");
    if (!tmpy_is_tensor(data))
        return tmpy_error(PyExc_TypeError, "_make_subclass(): argument 'data' must be Tensor, not %s", tmpy_type_name(data));
    tm_dtype d = (tm_dtype)tmpy_t(data)->dtype;
    if (require_grad && !tmi_is_float(d) && !tmi_is_complex(d))
        return tmpy_error(PyExc_RuntimeError, "Only Tensors of floating point and complex dtype can require gradients");
    tm_tensor *t = tmi_alias(tmpy_t(data));
    if (!t) return tmpy_raise();
    if (require_grad && tmi_set_requires_grad(t, true) != TM_OK) {
        tmi_release(t);
        return tmpy_raise();
    }
    return tmpy_wrap_as((PyTypeObject *)cls, t);
}

/* x.as_subclass(cls): the same tensor as an instance of cls, gradient history kept through an alias. */
static PyObject *as_subclass(PyObject *self, PyObject *cls)
{
    if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, tmpy_Tensor))
        return tmpy_error(PyExc_TypeError, "cls must be a type (got %s)", tmpy_type_name(cls));
    static const tmi_op *alias;
    if (!alias && !(alias = tmpy_need_op("alias", ""))) return NULL;
    tmi_value v[1] = {tmi_v_tensor(tmpy_t(self))};
    tm_tensor *t = tmpy_op1(alias, v);
    return t ? tmpy_wrap_as((PyTypeObject *)cls, t) : NULL;
}

static Py_hash_t tensor_hash(PyObject *o) { return (Py_hash_t)((uintptr_t)o >> 4); }

static PyMethodDef object_methods[] = {
    {"_make_subclass", (PyCFunction)(void (*)(void))make_subclass, METH_VARARGS | METH_KEYWORDS | METH_STATIC, NULL},
    {"as_subclass", as_subclass, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyMemberDef members[] = {{"__dictoffset__", Py_T_PYSSIZET, 0, Py_READONLY, NULL},
                                {"__weaklistoffset__", Py_T_PYSSIZET, 0, Py_READONLY, NULL},
                                {NULL, 0, 0, 0, NULL}};

/* All methods in one table; the first of equal names wins, so hand-written ones go before the generated. */
static PyMethodDef *gather_methods(void)
{
    PyMethodDef *tables[] = {object_methods,      tmpy_hand_methods, tmpy_convert_methods, tmpy_interop_methods,
                             tmpy_dlpack_methods, tmpy_hook_methods, tmpy_engine_methods,  tmpy_tensor_methods};
    size_t n = 1;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (PyMethodDef *m = tables[i]; m->ml_name; m++) n++;
    PyMethodDef *all = PyMem_Calloc(n, sizeof *all), *next = all;
    if (!all) return NULL;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (PyMethodDef *m = tables[i]; m->ml_name; m++) *next++ = *m;
    return all;   /* lives as long as the process, as the type does */
}

int tmpy_tensor_init(PyObject *module)
{
    static PyType_Slot slots[64];
    static PyGetSetDef dict = {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL};
    static PyGetSetDef getset[64];
    int n = 0, g = 0;
    members[0].offset = tmpy_object_size + (Py_ssize_t)offsetof(tmpy_tensor, dict);
    members[1].offset = tmpy_object_size + (Py_ssize_t)offsetof(tmpy_tensor, weak);
    getset[g++] = dict;
    for (PyGetSetDef *d = tmpy_tensor_getset; d->name && g < 63; d++) getset[g++] = *d;
    PyMethodDef *methods = gather_methods();
    if (!methods) return -1;
    const PyType_Slot own[] = {{Py_tp_new, tmpy_tensor_new}, {Py_tp_dealloc, tensor_dealloc}, {Py_tp_traverse, tmpy_tensor_traverse},
                               {Py_tp_clear, tmpy_tensor_clear}, {Py_tp_hash, tensor_hash}, {Py_tp_members, members},
                               {Py_tp_getset, getset}, {Py_tp_methods, methods}, {Py_bf_getbuffer, tmpy_tensor_buffer},
                               {Py_bf_releasebuffer, tmpy_tensor_buffer_release}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) slots[n++] = own[i];
    for (int i = 0; i < tmpy_n_number_slots; i++) slots[n++] = tmpy_number_slots[i];
    for (int i = 0; i < tmpy_n_index_slots; i++) slots[n++] = tmpy_index_slots[i];
    static PyType_Spec spec = {"taimatsu.Tensor", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    tmpy_Tensor = tmpy_type_new(module, &spec, sizeof(tmpy_tensor), NULL);
    if (!tmpy_Tensor) return -1;
    PyObject *name = PyUnicode_InternFromString("Tensor");   /* for the interpreter's own messages: 'Tensor', not 'taimatsu.Tensor' */
    if (!name || PyObject_SetAttrString((PyObject *)tmpy_Tensor, "__name__", name) < 0) return -1;
    Py_DECREF(name);
    tmi_hooks.pyobj_count = count_changed;
    return PyModule_AddObjectRef(module, "TensorBase", (PyObject *)tmpy_Tensor);
}
