/* Arguments of hand-written functions, with the sentences that the operator parser uses. */
#include "glue.h"

static const char *type_of(char kind)
{
    switch (kind) {
    case 'T': return "Tensor";
    case 'd': return "torch.dtype";
    case 'D': return "torch.device";
    case 'l': return "torch.layout";
    case 'm': return "torch.memory_format";
    case 'b': return "bool";
    case 'i': return "int";
    case 's': return "str";
    default: return "object";
    }
}

/* 1 taken, 0 wrong type, -1 exception set. */
static int take(const tmpy_field *f, PyObject *o)
{
    if (o == Py_None && strchr("dDlmb", f->kind)) return 1;
    switch (f->kind) {
    case 'O': *(PyObject **)f->place = o; return 1;
    case 'T': *(PyObject **)f->place = o; return tmpy_is_tensor(o);
    case 'd': return tmpy_as_dtype(o, f->place);
    case 'D': return tmpy_as_device(o, f->place);
    case 'l': return tmpy_as_layout(o, f->place);
    case 'm': return tmpy_as_format(o, f->place);
    case 'b':
        if (!PyBool_Check(o)) return 0;
        *(int *)f->place = o == Py_True;
        return 1;
    case 'i': return tmpy_as_int(o, f->place);
    default:
        if (!PyUnicode_Check(o)) return 0;
        *(const char **)f->place = PyUnicode_AsUTF8AndSize(o, NULL);
        return *(const char **)f->place ? 1 : -1;
    }
}

static int wrong_type(const char *who, const tmpy_field *f, PyObject *o, Py_ssize_t position)
{
    if (position < 0)
        PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be %s, not %s", who, f->name, type_of(f->kind), tmpy_type_name(o));
    else
        PyErr_Format(PyExc_TypeError, "%s(): argument '%s' (position %zd) must be %s, not %s", who, f->name, position + 1, type_of(f->kind),
                     tmpy_type_name(o));
    return -1;
}

static PyObject *by_keyword(const char *name, PyObject *const *values, PyObject *kwnames)
{
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_Size(kwnames); k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(kwnames, k), name) == 0) return values[k];
    return NULL;
}

static int unknown_keyword(const char *who, const tmpy_field *fields, int n_fields, Py_ssize_t n, PyObject *kwnames)
{
    for (Py_ssize_t k = 0; k < PyTuple_Size(kwnames); k++) {
        PyObject *name = PyTuple_GetItem(kwnames, k);
        int found = -1;
        for (int i = 0; i < n_fields; i++)
            if (PyUnicode_CompareWithASCIIString(name, fields[i].name) == 0) found = i;
        if (found < 0) return PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", who, name), -1;
        if (found < n) return PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", who, name), -1;
    }
    return 0;
}

static int too_many(const char *who, int least, int most, Py_ssize_t n)
{
    if (least != most)
        PyErr_Format(PyExc_TypeError, "%s() takes from %d to %d positional arguments but %zd were given", who, least, most, n);
    else
        PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %zd %s given", who, most, most == 1 ? "" : "s", n,
                     n == 1 ? "was" : "were");
    return -1;
}

int tmpy_fields(const char *who, const tmpy_field *fields, int n_fields, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    int most = 0, least = 0;
    for (int i = 0; i < n_fields; i++) most += !fields[i].keyword_only, least += fields[i].required;
    if (n > most) return too_many(who, least, most, n);
    for (int i = 0; i < n_fields; i++) {
        PyObject *o = i < n ? args[i] : by_keyword(fields[i].name, args + n, kwnames);
        if (!o && fields[i].required)
            return PyErr_Format(PyExc_TypeError, "%s() missing 1 required positional arguments: \"%s\"", who, fields[i].name), -1;
        if (!o) continue;
        int ok = take(&fields[i], o);
        if (ok < 0) return -1;
        if (!ok) return wrong_type(who, &fields[i], o, i < n ? i : -1);
    }
    return kwnames ? unknown_keyword(who, fields, n_fields, n, kwnames) : 0;
}
