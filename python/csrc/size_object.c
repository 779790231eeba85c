/* torch.Size: a tuple of ints that stays a Size when it is sliced, added or repeated. */
#include "glue.h"

PyTypeObject *tmpy_size_type;

static PyObject *ints_into(PyTypeObject *type, int n, const int64_t *v)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *o = alloc(type, n);
    for (int i = 0; o && i < n; i++) {
        PyObject *x = PyLong_FromLongLong(v[i]);
        if (!x || PyTuple_SetItem(o, i, x) < 0) Py_CLEAR(o);
    }
    return o;
}

PyObject *tmpy_size(int ndim, const int64_t *sizes) { return ints_into(tmpy_size_type, ndim, sizes); }
PyObject *tmpy_ints(int n, const int64_t *v) { return ints_into(&PyTuple_Type, n, v); }

/* Elements must be integers; objects with __index__ become them. */
static PyObject *checked(PyTypeObject *type, PyObject *tuple)
{
    Py_ssize_t n = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = PyTuple_GetItem(tuple, i);
        if (PyLong_CheckExact(x)) continue;
        PyObject *number = PyNumber_Index(x);
        if (!number) {
            PyErr_Clear();
            return tmpy_error(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i, tmpy_type_name(x));
        }
        Py_DECREF(number);
    }
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *o = alloc(type, n);
    for (Py_ssize_t i = 0; o && i < n; i++) {
        PyObject *x = PyNumber_Index(PyTuple_GetItem(tuple, i));
        if (!x || PyTuple_SetItem(o, i, x) < 0) Py_CLEAR(o);
    }
    return o;
}

static PyObject *size_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *tuple = PyObject_Call((PyObject *)&PyTuple_Type, args, kwargs);
    if (!tuple) return NULL;
    PyObject *o = checked(type, tuple);
    Py_DECREF(tuple);
    return o;
}

/* A plain tuple result of a tuple operation, as a Size. Takes `tuple`. */
static PyObject *as_size(PyObject *tuple)
{
    if (!tuple || !PyTuple_Check(tuple) || Py_TYPE(tuple) == tmpy_size_type) return tuple;
    PyObject *o = checked(tmpy_size_type, tuple);
    if (!o) {
        PyErr_Clear();
        return tuple;
    }
    Py_DECREF(tuple);
    return o;
}

static PyObject *size_item(PyObject *o, PyObject *key)
{
    binaryfunc f = (binaryfunc)PyType_GetSlot(&PyTuple_Type, Py_mp_subscript);
    PyObject *r = f(o, key);
    return PySlice_Check(key) ? as_size(r) : r;
}
static PyObject *size_concat(PyObject *a, PyObject *b)
{
    binaryfunc f = (binaryfunc)PyType_GetSlot(&PyTuple_Type, Py_sq_concat);
    return as_size(f(a, b));
}
/* Also (1,) + size: the number slot is asked before the tuple's own. */
static PyObject *size_add(PyObject *a, PyObject *b)
{
    if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
    return size_concat(a, b);
}
static PyObject *size_repeat(PyObject *a, Py_ssize_t n)
{
    ssizeargfunc f = (ssizeargfunc)PyType_GetSlot(&PyTuple_Type, Py_sq_repeat);
    return as_size(f(a, n));
}
static PyObject *size_repr(PyObject *o)
{
    PyObject *list = PySequence_List(o);
    PyObject *r = list ? PyUnicode_FromFormat("torch.Size(%R)", list) : NULL;
    Py_XDECREF(list);
    return r;
}
TMPY_NOARGS(size_numel)
{
    int64_t n = 1;
    for (Py_ssize_t i = 0; i < PyTuple_Size(self); i++) n *= PyLong_AsLongLong(PyTuple_GetItem(self, i));
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(n);
}
TMPY_NOARGS(size_reduce)
{
    PyObject *tuple = PyTuple_GetSlice(self, 0, PyTuple_Size(self));
    return tuple ? Py_BuildValue("(O(N))", (PyObject *)tmpy_size_type, tuple) : NULL;
}

static PyMethodDef methods[] = {
    {"numel", size_numel, METH_NOARGS, NULL}, {"__reduce__", size_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

int tmpy_size_init(PyObject *m)
{
    static PyType_Slot slots[] = {
        {Py_tp_new, size_new}, {Py_tp_repr, size_repr},     {Py_mp_subscript, size_item}, {Py_sq_concat, size_concat},
        {Py_nb_add, size_add}, {Py_sq_repeat, size_repeat}, {Py_tp_methods, methods},     {0, NULL}};
    static PyType_Spec spec = {"torch.Size", 0, 0, Py_TPFLAGS_DEFAULT, slots};
    return (tmpy_size_type = tmpy_type_new(m, &spec, 0, (PyObject *)&PyTuple_Type)) ? 0 : -1;
}
