/* Several results: a plain tuple, or a torch.return_types class when the operator names them. */
#include "glue.h"

#include "base/strbuf.h"

static PyObject **classes;      /* by operator id; made at first use */
static PyObject *by_name;       /* "max" -> class, shared by max.dim and others of equal names */

static PyObject *result_repr(PyObject *unused, PyObject *self)
{
    PyObject *name = PyType_GetName(Py_TYPE(self)), *fields = PyObject_GetAttrString((PyObject *)Py_TYPE(self), "_fields");
    PyObject *text = name && fields ? PyUnicode_FromFormat("torch.return_types.%U(\n", name) : NULL;
    for (Py_ssize_t i = 0; text && i < PyTuple_Size(fields); i++)
        Py_SETREF(text, PyUnicode_FromFormat("%U%U=%R%s", text, PyTuple_GetItem(fields, i), PyTuple_GetItem(self, i),
                                             i + 1 < PyTuple_Size(fields) ? ",\n" : ")"));
    Py_XDECREF(name);
    Py_XDECREF(fields);
    return text;
}

static PyObject *result_reduce(PyObject *unused, PyObject *self)
{
    PyObject *items = PyTuple_GetSlice(self, 0, PyTuple_Size(self));
    return items ? Py_BuildValue("(O(N))", (PyObject *)Py_TYPE(self), items) : NULL;
}

/* A C function as a method of a class that PyStructSequence made: functions of C do not bind, so it goes through instancemethod. */
static int add_method(PyObject *type, PyMethodDef *def)
{
    PyObject *f = PyCFunction_NewEx(def, NULL, NULL),
             *method = f ? PyObject_CallFunctionObjArgs((PyObject *)&PyInstanceMethod_Type, f, NULL) : NULL;
    int r = method ? PyObject_SetAttrString(type, def->ml_name, method) : -1;
    Py_XDECREF(f);
    Py_XDECREF(method);
    return r;
}

static PyObject *make_class(const tmi_op *op)
{
    static PyMethodDef repr = {"__repr__", result_repr, METH_O, NULL}, reduce = {"__reduce__", result_reduce, METH_O, NULL};
    PyStructSequence_Field fields[TMI_MAX_OUTS + 1] = {{NULL, NULL}};
    char name[96];
    snprintf(name, sizeof name, "torch.return_types.%s", op->name);
    for (int i = 0; i < op->n_outs; i++) fields[i] = (PyStructSequence_Field){op->out_names[i], NULL};
    PyStructSequence_Desc desc = {name, NULL, fields, op->n_outs};
    PyObject *type = (PyObject *)PyStructSequence_NewType(&desc), *names = PyTuple_New(op->n_outs);
    for (int i = 0; names && i < op->n_outs; i++) PyTuple_SetItem(names, i, PyUnicode_FromString(op->out_names[i]));
    if (type && names &&
        (PyObject_SetAttrString(type, "_fields", names) < 0 || add_method(type, &repr) < 0 || add_method(type, &reduce) < 0))
        Py_CLEAR(type);
    Py_XDECREF(names);
    return type;
}

static PyObject *class_for(const tmi_op *op)
{
    if (!classes && !(classes = PyMem_Calloc((size_t)tmi_n_ops, sizeof *classes))) return PyErr_NoMemory();
    if (classes[op->id]) return classes[op->id];
    PyObject *type = PyDict_GetItemString(by_name, op->name);   /* by_name keeps it */
    if (!type) {
        type = make_class(op);
        if (!type || PyDict_SetItemString(by_name, op->name, type) < 0) return NULL;
        Py_DECREF(type);
    }
    return classes[op->id] = type;
}

static bool named(const tmi_op *op)
{
    for (int i = 0; i < op->n_outs; i++)
        if (!op->out_names || !op->out_names[i]) return false;
    return op->n_outs > 1;
}

PyObject *tmpy_named_result(const tmi_op *op, PyObject **items, int n)
{
    PyObject *type = named(op) ? class_for(op) : NULL;
    PyObject *r = type ? PyStructSequence_New((PyTypeObject *)type) : PyErr_Occurred() ? NULL : PyTuple_New(n);
    for (int i = 0; i < n; i++) {
        if (!r) Py_DECREF(items[i]);
        else if (type) PyStructSequence_SetItem(r, i, items[i]);
        else PyTuple_SetItem(r, i, items[i]);
    }
    return r;
}

PyObject *tmpy_list_result(tm_tensor_list *l)
{
    PyObject *r = PyTuple_New((Py_ssize_t)l->len);
    for (int64_t i = 0; r && i < l->len; i++) {
        PyObject *o = tmpy_wrap_borrowed(l->t[i]);
        if (!o || PyTuple_SetItem(r, (Py_ssize_t)i, o) < 0) Py_CLEAR(r);
    }
    tm_tensor_list_release(l);
    return r;
}

/* _C._return_types(): {name: class} of every operator with named results, for the module torch.return_types. */
static PyObject *return_types(PyObject *m, PyObject *unused)
{
    for (int i = 0; i < tmi_n_ops; i++)
        if (named(&tmi_ops[i]) && tmi_ops[i].name[0] != '_' && !class_for(&tmi_ops[i])) return NULL;
    return PyDict_Copy(by_name);
}

static PyMethodDef functions[] = {{"_return_types", return_types, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

int tmpy_results_init(PyObject *m)
{
    by_name = PyDict_New();
    return by_name ? PyModule_AddFunctions(m, functions) : -1;
}
