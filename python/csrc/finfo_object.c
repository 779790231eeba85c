/* torch.finfo and torch.iinfo. */
#include <float.h>

#include "glue.h"

typedef struct { tm_dtype d; } info;
static tm_dtype d_of(PyObject *o) { return TMPY_DATA(o, info)->d; }
static PyTypeObject *finfo_type, *iinfo_type;

static const struct { tm_dtype d; double max, eps, smallest, resolution; } floats[] = {
    {TM_F16, 65504, 0x1p-10, 0x1p-14, 1e-3}, {TM_BF16, 0x1.fep127, 0x1p-7, 0x1p-126, 1e-2}, {TM_F32, FLT_MAX, FLT_EPSILON, FLT_MIN, 1e-6},
    {TM_F64, DBL_MAX, DBL_EPSILON, DBL_MIN, 1e-15}, {TM_F8_E4M3FN, 448, 0x1p-3, 0x1p-6, 1}, {TM_F8_E5M2, 57344, 0x1p-2, 0x1p-14, 1}};

static int row_of(tm_dtype d)
{
    d = tmi_real_dtype(d);
    for (int i = 0; i < (int)(sizeof floats / sizeof *floats); i++)
        if (floats[i].d == d) return i;
    return 2;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs, const char *who, const char *other, bool want_float)
{
    static char *names[] = {"type", NULL};
    PyObject *o = NULL;
    tm_dtype d = tm_get_default_dtype();
    char format[16];
    snprintf(format, sizeof format, "|O:%s", who);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, names, &o)) return NULL;
    if (o && Py_TYPE(o) != tmpy_dtype_type)
        return tmpy_error(PyExc_TypeError, "%s(): argument 'type' (position 1) must be torch.dtype, not %s", who, tmpy_type_name(o));
    if (!o && !want_float) return tmpy_error(PyExc_TypeError, "iinfo() missing 1 required positional arguments: \"type\"");
    if (o) tmpy_as_dtype(o, &d);
    bool is_float = tmi_is_float(d) || tmi_is_complex(d);
    if (is_float != want_float || (!want_float && d == TM_BOOL))
        return want_float
                   ? tmpy_error(PyExc_TypeError,
                                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'")
                   : tmpy_error(PyExc_TypeError, "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'");
    PyObject *r = tmpy_alloc(type);
    if (r) TMPY_DATA(r, info)->d = d;
    return r;
}
static PyObject *finfo_new(PyTypeObject *t, PyObject *args, PyObject *kwargs) { return make(t, args, kwargs, "finfo", "iinfo", true); }
static PyObject *iinfo_new(PyTypeObject *t, PyObject *args, PyObject *kwargs) { return make(t, args, kwargs, "iinfo", "finfo", false); }

static PyObject *f_max(PyObject *o, void *u) { return PyFloat_FromDouble(floats[row_of(d_of(o))].max); }
static PyObject *f_min(PyObject *o, void *u) { return PyFloat_FromDouble(-floats[row_of(d_of(o))].max); }
static PyObject *f_eps(PyObject *o, void *u) { return PyFloat_FromDouble(floats[row_of(d_of(o))].eps); }
static PyObject *f_smallest(PyObject *o, void *u) { return PyFloat_FromDouble(floats[row_of(d_of(o))].smallest); }
static PyObject *f_resolution(PyObject *o, void *u) { return PyFloat_FromDouble(floats[row_of(d_of(o))].resolution); }
static PyObject *bits(PyObject *o, void *u) { return PyLong_FromLong(8L * tmi_dtypes[tmi_real_dtype(d_of(o))].size); }
static PyObject *dtype_name(PyObject *o, void *u) { return PyUnicode_FromString(tmi_dtypes[tmi_real_dtype(d_of(o))].name); }
static bool is_unsigned(PyObject *o) { return tmi_dtypes[d_of(o)].category == 'U'; }
static PyObject *i_max(PyObject *o, void *u)
{
    unsigned n = 8u * tmi_dtypes[d_of(o)].size;
    return PyLong_FromUnsignedLongLong(is_unsigned(o) ? UINT64_MAX >> (64 - n) : (uint64_t)INT64_MAX >> (64 - n));
}
static PyObject *i_min(PyObject *o, void *u)
{
    unsigned n = 8u * tmi_dtypes[d_of(o)].size;
    return PyLong_FromLongLong(is_unsigned(o) ? 0 : INT64_MIN >> (64 - n));
}
static PyObject *f_repr(PyObject *o)
{
    char text[256];
    int r = row_of(d_of(o));
    snprintf(text, sizeof text, "finfo(resolution=%g, min=%g, max=%g, eps=%g, smallest_normal=%g, tiny=%g, dtype=%s)", floats[r].resolution,
             -floats[r].max, floats[r].max, floats[r].eps, floats[r].smallest, floats[r].smallest,
             tmi_dtypes[tmi_real_dtype(d_of(o))].name);
    return PyUnicode_FromString(text);
}
static PyObject *i_repr(PyObject *o)
{
    PyObject *lo = i_min(o, NULL), *hi = i_max(o, NULL);
    PyObject *r = lo && hi ? PyUnicode_FromFormat("iinfo(min=%R, max=%R, dtype=%s)", lo, hi, tmi_dtypes[d_of(o)].name) : NULL;
    Py_XDECREF(lo);
    Py_XDECREF(hi);
    return r;
}
static PyObject *compare(PyObject *a, PyObject *b, int op)
{
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(a) != Py_TYPE(b)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((d_of(a) == d_of(b)) == (op == Py_EQ));
}
static Py_hash_t hash(PyObject *o) { return (Py_hash_t)d_of(o) + 1000; }

static PyGetSetDef f_getset[] = {{"max", f_max, NULL, NULL, NULL},       {"min", f_min, NULL, NULL, NULL},
                                 {"eps", f_eps, NULL, NULL, NULL},       {"smallest_normal", f_smallest, NULL, NULL, NULL},
                                 {"tiny", f_smallest, NULL, NULL, NULL}, {"resolution", f_resolution, NULL, NULL, NULL},
                                 {"bits", bits, NULL, NULL, NULL},       {"dtype", dtype_name, NULL, NULL, NULL},
                                 {NULL, NULL, NULL, NULL, NULL}};
static PyGetSetDef i_getset[] = {{"max", i_max, NULL, NULL, NULL},
                                 {"min", i_min, NULL, NULL, NULL},
                                 {"bits", bits, NULL, NULL, NULL},
                                 {"dtype", dtype_name, NULL, NULL, NULL},
                                 {NULL, NULL, NULL, NULL, NULL}};

int tmpy_finfo_init(PyObject *m)
{
    static PyType_Slot f_slots[] = {{Py_tp_new, finfo_new},
                                    {Py_tp_dealloc, tmpy_free},
                                    {Py_tp_getset, f_getset},
                                    {Py_tp_repr, f_repr},
                                    {Py_tp_richcompare, compare},
                                    {Py_tp_hash, hash},
                                    {0, NULL}};
    static PyType_Slot i_slots[] = {{Py_tp_new, iinfo_new},
                                    {Py_tp_dealloc, tmpy_free},
                                    {Py_tp_getset, i_getset},
                                    {Py_tp_repr, i_repr},
                                    {Py_tp_richcompare, compare},
                                    {Py_tp_hash, hash},
                                    {0, NULL}};
    static PyType_Spec f = {"torch.finfo", 0, 0, Py_TPFLAGS_DEFAULT, f_slots}, i = {"torch.iinfo", 0, 0, Py_TPFLAGS_DEFAULT, i_slots};
    return (finfo_type = tmpy_type_new(m, &f, sizeof(info), NULL)) && (iinfo_type = tmpy_type_new(m, &i, sizeof(info), NULL)) ? 0 : -1;
}
