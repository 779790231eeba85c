/* Methods that are about the tensor object rather than an operator: sizes, memory, numbers, autograd flags. */
#include "glue.h"

static int64_t wrapped(int64_t dim, int ndim, bool *ok)
{
    *ok = tmi_wrap_dim(&dim, ndim) == TM_OK;
    if (!*ok) tmpy_raise();
    return dim;
}

/* size(dim=None) and stride(dim=None). */
static PyObject *pick(const char *who, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, const int64_t *values,
                      bool as_size)
{
    tm_tensor *t = tmpy_t(self);
    int64_t dim;
    bool ok;
    Py_ssize_t kw = kwnames ? PyTuple_Size(kwnames) : 0;
    if (n > 1) return tmpy_error(PyExc_TypeError, "%s() takes from 0 to 1 positional arguments but %zd were given", who, n);
    if (kw && (kw > 1 || n || PyUnicode_CompareWithASCIIString(PyTuple_GetItem(kwnames, 0), "dim")))
        return tmpy_error(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", who, PyTuple_GetItem(kwnames, kw - 1));
    if (n + kw == 0 || args[0] == Py_None) return as_size ? tmpy_size(t->ndim, values) : tmpy_ints(t->ndim, values);
    int known = tmpy_as_int(args[0], &dim);
    if (known < 0) return NULL;
    if (!known)
        return tmpy_error(PyExc_TypeError,
                          kw ? "%s(): argument 'dim' must be int, not %s" : "%s(): argument 'dim' (position 1) must be int, not %s", who,
                          tmpy_type_name(args[0]));
    if (t->ndim == 0) return tmpy_error(PyExc_IndexError, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
    dim = wrapped(dim, t->ndim, &ok);
    return ok ? PyLong_FromLongLong(values[dim]) : NULL;
}
static PyObject *size(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *r;
    if (tmpy_override_method(self, "size", args, n, kwnames, &r)) return r;
    return pick("size", self, args, n, kwnames, tmpy_t(self)->sizes, true);
}
static PyObject *stride(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    return pick("stride", self, args, n, kwnames, tmpy_t(self)->strides, false);
}

TMPY_NOARGS(dim) { return PyLong_FromLong(tmpy_t(self)->ndim); }
TMPY_NOARGS(numel) { return PyLong_FromLongLong(tmpy_t(self)->numel); }
TMPY_NOARGS(element_size) { return PyLong_FromLong(tmi_dtypes[tmpy_t(self)->dtype].size); }
TMPY_NOARGS(storage_offset) { return PyLong_FromLongLong(tmpy_t(self)->offset); }
TMPY_NOARGS(data_ptr) { return PyLong_FromVoidPtr(tm_tensor_data(tmpy_t(self))); }
TMPY_NOARGS(get_device) { return PyLong_FromLong(tmpy_t(self)->device.type == TM_CPU ? -1 : tmpy_t(self)->device.index); }
TMPY_NOARGS(is_floating_point) { return PyBool_FromLong(tmi_is_float((tm_dtype)tmpy_t(self)->dtype)); }
TMPY_NOARGS(is_complex) { return PyBool_FromLong(tmi_is_complex((tm_dtype)tmpy_t(self)->dtype)); }
TMPY_NOARGS(is_signed)
{
    char c = tmi_dtypes[tmpy_t(self)->dtype].category;
    return PyBool_FromLong(c != 'U' && c != 'B');
}
TMPY_NOARGS(is_inference) { return PyBool_FromLong(tmpy_t(self)->flags & TMI_INFERENCE); }
TMPY_NOARGS(is_conj) { return PyBool_FromLong(tmpy_t(self)->flags & TMI_CONJ); }
TMPY_NOARGS(is_neg) { return PyBool_FromLong(tmpy_t(self)->flags & TMI_NEG); }
TMPY_NOARGS(always_false) { Py_RETURN_FALSE; }
TMPY_NOARGS(is_shared) { return PyBool_FromLong(tmpy_t(self)->storage->flags & TMI_STORAGE_SHARED); }
TMPY_NOARGS(untyped_storage) { return tmpy_storage_new(tmi_storage_retain(tmpy_t(self)->storage)); }

static PyObject *is_contiguous(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"memory_format", NULL};
    PyObject *f = NULL;
    int format = TM_CONTIGUOUS;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:is_contiguous", names, &f)) return NULL;
    if (f && !tmpy_as_format(f, &format))
        return tmpy_error(PyExc_TypeError, "is_contiguous(): argument 'memory_format' must be torch.memory_format, not %s",
                          tmpy_type_name(f));
    if (format == TM_PRESERVE) return tmpy_error(PyExc_RuntimeError, "preserve memory format is unsupported by the contiguous operator");
    return PyBool_FromLong(tmi_is_contiguous_as(tmpy_t(self), (tm_memory_format)format));
}

TMPY_NOARGS(item)
{
    PyObject *r;
    tm_scalar s;
    if (tmpy_override_method(self, "item", NULL, 0, NULL, &r)) return r;
    if (tm_tensor_item(tmpy_t(self), &s) != TM_OK) return tmpy_raise();
    return tmpy_from_scalar(s);
}

/* Nested lists of Python numbers; `t` may have any strides. */
static PyObject *list_from(const tm_tensor *t, int d, const char *p)
{
    size_t item_bytes = tmi_dtypes[t->dtype].size;
    if (d == t->ndim) return tmpy_from_scalar(tmi_load_scalar(p, (tm_dtype)t->dtype));
    PyObject *list = PyList_New((Py_ssize_t)t->sizes[d]);
    for (int64_t i = 0; list && i < t->sizes[d]; i++) {
        PyObject *x = list_from(t, d + 1, p + i * t->strides[d] * (int64_t)item_bytes);
        if (!x || PyList_SetItem(list, (Py_ssize_t)i, x) < 0) Py_CLEAR(list);
    }
    return list;
}
TMPY_NOARGS(tolist)
{
    PyObject *r;
    tm_tensor *t = tmpy_t(self);
    if (tmpy_override_method(self, "tolist", NULL, 0, NULL, &r)) return r;
    if (tmi_is_meta(t)) return tmpy_error(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
    if (t->flags & (TMI_CONJ | TMI_NEG)) {
        PyObject *plain = PyObject_CallMethod(self, "resolve_conj", NULL),
                 *r2 = plain ? PyObject_CallMethod(plain, "resolve_neg", NULL) : NULL;
        Py_XDECREF(plain);
        r = r2 ? list_from(tmpy_t(r2), 0, tmi_data(tmpy_t(r2))) : NULL;
        Py_XDECREF(r2);
        return r;
    }
    return list_from(t, 0, t->numel || t->ndim == 0 ? tmi_data(t) : NULL);
}

TMPY_NOARGS(is_view) { return PyBool_FromLong(tmi_tensor_base(tmpy_t(self)) != NULL); }

/* ---- autograd flags */
static PyObject *requires_grad_(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"requires_grad", NULL};
    PyObject *value = Py_True;
    tm_tensor *t = tmpy_t(self);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:requires_grad_", names, &value)) return NULL;
    if (!PyBool_Check(value))
        return tmpy_error(PyExc_TypeError, "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not %s",
                          tmpy_type_name(value));
    if (value == Py_True && !tmi_is_float((tm_dtype)t->dtype) && !tmi_is_complex((tm_dtype)t->dtype))
        return tmpy_error(PyExc_RuntimeError, "only Tensors of floating point dtype can require gradients");
    return tmi_set_requires_grad(t, value == Py_True) == TM_OK ? Py_NewRef(self) : tmpy_raise();
}
TMPY_NOARGS(retain_grad)
{
    if (tmi_retain_grad(tmpy_t(self)) != TM_OK) return tmpy_raise();
    Py_RETURN_NONE;
}
TMPY_NOARGS(detach)
{
    PyObject *r;
    if (tmpy_override_method(self, "detach", NULL, 0, NULL, &r)) return r;
    return tmpy_wrap(tmi_detach(tmpy_t(self)));
}
TMPY_NOARGS(detach_inplace) { return tmi_detach_inplace(tmpy_t(self)) == TM_OK ? Py_NewRef(self) : tmpy_raise(); }
TMPY_NOARGS(bump_version)
{
    tmi_bump_version(tmpy_t(self));
    Py_RETURN_NONE;
}

static PyObject *is_same_size(PyObject *self, PyObject *other)
{
    if (!tmpy_is_tensor(other))
        return tmpy_error(PyExc_TypeError, "is_same_size(): argument 'other' (position 1) must be Tensor, not %s", tmpy_type_name(other));
    tm_tensor *a = tmpy_t(self), *b = tmpy_t(other);
    return PyBool_FromLong(a->ndim == b->ndim && !memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof *a->sizes));
}
static PyObject *is_set_to(PyObject *self, PyObject *other)
{
    if (!tmpy_is_tensor(other))
        return tmpy_error(PyExc_TypeError, "is_set_to(): argument 'tensor' (position 1) must be Tensor, not %s", tmpy_type_name(other));
    tm_tensor *a = tmpy_t(self), *b = tmpy_t(other);
    size_t n = (size_t)a->ndim * sizeof *a->sizes;
    return PyBool_FromLong(a->storage == b->storage && a->offset == b->offset && a->ndim == b->ndim && !memcmp(a->sizes, b->sizes, n) &&
                           !memcmp(a->strides, b->strides, n));
}

/* x.apply_(f): every element through a Python function, in place. */
static tm_status apply_rows(const tm_tensor *t, int d, char *p, PyObject *f)
{
    if (d < t->ndim) {
        for (int64_t i = 0; i < t->sizes[d]; i++)
            if (apply_rows(t, d + 1, p + i * t->strides[d] * (int64_t)tmi_dtypes[t->dtype].size, f) != TM_OK) return TM_PYTHON;
        return TM_OK;
    }
    tm_scalar s;
    PyObject *x = tmpy_from_scalar(tmi_load_scalar(p, (tm_dtype)t->dtype)), *y = x ? PyObject_CallFunctionObjArgs(f, x, NULL) : NULL;
    int known = y ? tmpy_as_scalar(y, &s) : -1;
    if (known == 0) PyErr_Format(PyExc_TypeError, "apply_ function must return a number, not %s", tmpy_type_name(y));
    Py_XDECREF(x);
    Py_XDECREF(y);
    if (known != 1) return TM_PYTHON;
    tmi_store_scalar(p, (tm_dtype)t->dtype, s);
    return TM_OK;
}
static PyObject *apply_(PyObject *self, PyObject *f)
{
    tm_tensor *t = tmpy_t(self);
    if (tmi_requires_grad(t))
        return tmpy_error(PyExc_RuntimeError, "Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead.");
    if (t->device.type != TM_CPU) return tmpy_error(PyExc_TypeError, "apply_ is only implemented on CPU tensors");
    if (t->numel && apply_rows(t, 0, tmi_data(t), f) != TM_OK) return NULL;
    tmi_bump_version(t);
    return Py_NewRef(self);
}

/* nonzero(as_tuple=False): the operator, or its columns as a tuple. */
static PyObject *nonzero_of(PyObject *x, int as_tuple, PyObject *out)
{
    const tmpy_name *name = tmpy_find_name("nonzero");
    if (!name) return tmpy_error(PyExc_NotImplementedError, "the operator nonzero is not part of this build");
    PyObject *key = out ? Py_BuildValue("(s)", "out") : NULL, *args[2] = {x, out};
    PyObject *r = tmpy_call_function(name, args, 1, key);
    Py_XDECREF(key);
    if (!r || !as_tuple) return r;
    PyObject *columns = PyObject_CallMethod(r, "unbind", "i", 1);
    Py_DECREF(r);
    return columns;
}
static PyObject *nonzero_columns(PyObject *x, int as_tuple, PyObject *out)
{
    PyObject *shaped = as_tuple && tmpy_t(x)->ndim == 0 ? PyObject_CallMethod(x, "unsqueeze", "i", 0) : Py_NewRef(x);
    PyObject *r = shaped ? nonzero_of(shaped, as_tuple, out) : NULL;
    Py_XDECREF(shaped);
    return r;
}
static PyObject *nonzero(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    int as_tuple = 0;
    PyObject *r;
    const tmpy_field fields[] = {{"as_tuple", 'b', false, true, &as_tuple}};
    if (tmpy_override_method(self, "nonzero", args, n, kwnames, &r)) return r;
    return tmpy_fields("nonzero", fields, 1, args, n, kwnames) < 0 ? NULL : nonzero_columns(self, as_tuple, NULL);
}
static PyObject *nonzero_function(PyObject *m, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    int as_tuple = 0;
    PyObject *input = NULL, *out = NULL;
    const tmpy_field fields[] = {
        {"input", 'T', true, false, &input}, {"as_tuple", 'b', false, true, &as_tuple}, {"out", 'T', false, true, &out}};
    return tmpy_fields("nonzero", fields, 3, args, n, kwnames) < 0 ? NULL : nonzero_columns(input, as_tuple, out);
}
PyMethodDef tmpy_torch_extra[] = {{"nonzero", TMPY_FN(nonzero_function), TMPY_FLAGS, NULL}, {NULL, NULL, 0, NULL}};

PyMethodDef tmpy_hand_methods[] = {{"nonzero", TMPY_FN(nonzero), TMPY_FLAGS, NULL},
                                   {"set_", TMPY_FN(tmpy_set_), TMPY_FLAGS, NULL},
                                   {"size", TMPY_FN(size), TMPY_FLAGS, NULL},
                                   {"stride", TMPY_FN(stride), TMPY_FLAGS, NULL},
                                   {"dim", dim, METH_NOARGS, NULL},
                                   {"ndimension", dim, METH_NOARGS, NULL},
                                   {"numel", numel, METH_NOARGS, NULL},
                                   {"nelement", numel, METH_NOARGS, NULL},
                                   {"element_size", element_size, METH_NOARGS, NULL},
                                   {"storage_offset", storage_offset, METH_NOARGS, NULL},
                                   {"data_ptr", data_ptr, METH_NOARGS, NULL},
                                   {"get_device", get_device, METH_NOARGS, NULL},
                                   {"is_floating_point", is_floating_point, METH_NOARGS, NULL},
                                   {"is_complex", is_complex, METH_NOARGS, NULL},
                                   {"is_signed", is_signed, METH_NOARGS, NULL},
                                   {"is_inference", is_inference, METH_NOARGS, NULL},
                                   {"is_conj", is_conj, METH_NOARGS, NULL},
                                   {"is_neg", is_neg, METH_NOARGS, NULL},
                                   {"is_pinned", TMPY_FN(always_false), METH_NOARGS, NULL},
                                   {"is_shared", is_shared, METH_NOARGS, NULL},
                                   {"is_distributed", always_false, METH_NOARGS, NULL},
                                   {"_is_view", is_view, METH_NOARGS, NULL},
                                   {"untyped_storage", untyped_storage, METH_NOARGS, NULL},
                                   {"is_contiguous", TMPY_FN(is_contiguous), METH_VARARGS | METH_KEYWORDS, NULL},
                                   {"item", item, METH_NOARGS, NULL},
                                   {"tolist", tolist, METH_NOARGS, NULL},
                                   {"requires_grad_", TMPY_FN(requires_grad_), METH_VARARGS | METH_KEYWORDS, NULL},
                                   {"retain_grad", retain_grad, METH_NOARGS, NULL},
                                   {"detach", detach, METH_NOARGS, NULL},
                                   {"detach_", detach_inplace, METH_NOARGS, NULL},
                                   {"_bump_version", bump_version, METH_NOARGS, NULL},
                                   {"is_same_size", is_same_size, METH_O, NULL},
                                   {"is_set_to", is_set_to, METH_O, NULL},
                                   {"apply_", apply_, METH_O, NULL},
                                   {NULL, NULL, 0, NULL}};
