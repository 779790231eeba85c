/* Python numbers, numpy scalars and objects that convert to numbers. numpy is never imported here: its classes are recognised by where
 * they come from, so a program without numpy pays nothing. */
#include "glue.h"

/* The class `name` of numpy if numpy is loaded, else NULL; looked up once. */
static PyObject *numpy_class(const char *name, PyObject **cache)
{
    if (*cache) return *cache;
    PyObject *modules = PyImport_GetModuleDict();   /* borrowed, as the interpreter documents */
    PyObject *numpy = PyDict_GetItemString(modules, "numpy");
    if (!numpy || !PyObject_HasAttrString(numpy, name)) return NULL;
    return *cache = PyObject_GetAttrString(numpy, name);
}

bool tmpy_is_numpy_scalar(PyObject *o)
{
    static PyObject *generic;
    PyObject *c = numpy_class("generic", &generic);
    return c && PyObject_IsInstance(o, c) == 1;
}

bool tmpy_is_numpy_array(PyObject *o)
{
    static PyObject *ndarray;
    PyObject *c = numpy_class("ndarray", &ndarray);
    return c && PyObject_IsInstance(o, c) == 1;
}

static int long_scalar(PyObject *o, tm_scalar *out)
{
    int overflow;
    long long x = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (x == -1 && PyErr_Occurred()) return -1;
    if (overflow > 0) {
        unsigned long long u = PyLong_AsUnsignedLongLong(o);
        if (!PyErr_Occurred()) {
            *out = tm_i64(0);
            out->tag = TM_SCALAR_U64;
            out->v.u = u;
            return 1;
        }
        PyErr_Clear();
    }
    if (overflow) {
        PyErr_SetString(PyExc_RuntimeError, "Overflow when unpacking long long");
        return -1;
    }
    *out = tm_i64(x);
    return 1;
}

/* A one-element tensor as a number. */
static int tensor_scalar(PyObject *o, tm_scalar *out)
{
    tm_tensor *t = tmpy_t(o);
    if (t->ndim != 0 || (t->flags & TMI_REQUIRES_GRAD)) return 0;
    if (tm_tensor_item(t, out) == TM_OK) return 1;
    tmpy_raise();
    return -1;
}

/* numpy.bool_, numpy.integer, numpy.floating, numpy.complexfloating, by what .item() gives. */
static int numpy_scalar(PyObject *o, tm_scalar *out)
{
    PyObject *value = PyObject_CallMethod(o, "item", NULL);
    if (!value) return -1;
    int known = tmpy_is_numpy_scalar(value) ? 0 : tmpy_as_scalar(value, out);
    Py_DECREF(value);
    return known;
}

int tmpy_as_scalar(PyObject *o, tm_scalar *out)
{
    if (PyFloat_Check(o)) return *out = tm_f64(PyFloat_AsDouble(o)), 1;
    if (PyBool_Check(o)) return *out = tm_bool(o == Py_True), 1;
    if (PyLong_Check(o)) return long_scalar(o, out);
    if (PyComplex_Check(o)) return *out = tm_c128(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)), 1;
    if (tmpy_is_tensor(o)) return tensor_scalar(o, out);
    if (tmpy_is_numpy_scalar(o)) return numpy_scalar(o, out);
    return 0;
}

int tmpy_as_int(PyObject *o, int64_t *out)
{
    if (PyBool_Check(o)) return 0;
    if (!PyLong_Check(o)) {
        if (!PyIndex_Check(o)) return 0;
        if (tmpy_is_tensor(o)) {
            tm_tensor *t = tmpy_t(o);
            if (!tmi_is_integral((tm_dtype)t->dtype) || t->numel != 1) return 0;
        }
        PyObject *i = PyNumber_Index(o);
        if (!i) {
            PyErr_Clear();
            return 0;
        }
        int known = tmpy_as_int(i, out);
        Py_DECREF(i);
        return known;
    }
    int overflow;
    long long x = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) {
        PyErr_SetString(PyExc_RuntimeError, "Overflow when unpacking long long");
        return -1;
    }
    *out = x;
    return 1;
}

int tmpy_as_double(PyObject *o, double *out)
{
    if (PyFloat_Check(o)) return *out = PyFloat_AsDouble(o), 1;
    tm_scalar s;
    if (PyLong_Check(o)) {
        *out = PyLong_AsDouble(o);
        return *out == -1 && PyErr_Occurred() ? -1 : 1;
    }
    if (PyComplex_Check(o)) return 0;
    int known = tmpy_as_scalar(o, &s);
    if (known == 1 && s.tag == TM_SCALAR_C128) return 0;
    if (known == 1) *out = tmi_scalar_f64(s);
    return known;
}

PyObject *tmpy_from_scalar(tm_scalar s)
{
    switch (s.tag) {
    case TM_SCALAR_BOOL: return PyBool_FromLong(s.v.b);
    case TM_SCALAR_U64: return PyLong_FromUnsignedLongLong(s.v.u);
    case TM_SCALAR_F64: return PyFloat_FromDouble(s.v.f);
    case TM_SCALAR_C128: return PyComplex_FromDoubles(s.v.c.re, s.v.c.im);
    default: return PyLong_FromLongLong(s.v.i);
    }
}
