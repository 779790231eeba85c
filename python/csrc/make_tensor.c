/* tensor, as_tensor, asarray, frombuffer, the legacy constructor. */
#include "glue.h"

static const tm_device no_device = {TM_DEVICE_DEFAULT, -1};

static PyObject *finish(tm_tensor *t, int requires_grad)
{
    if (!t) return NULL;
    if (requires_grad && !tmi_is_float((tm_dtype)t->dtype) && !tmi_is_complex((tm_dtype)t->dtype)) {
        tmi_release(t);
        return tmpy_error(PyExc_RuntimeError, "Only Tensors of floating point and complex dtype can require gradients");
    }
    if (requires_grad && tmi_set_requires_grad(t, true) != TM_OK) {
        tmi_release(t);
        return tmpy_raise();
    }
    return tmpy_wrap(t);
}

static tm_device or_default(tm_device d) { return d.type == TM_DEVICE_DEFAULT ? tmpy_default_device() : d; }

static PyObject *tensor(PyObject *m, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *data = NULL;
    tm_dtype dtype = TM_DTYPE_DEFAULT;
    tm_device device = no_device;
    int requires_grad = 0, pin = 0;
    const tmpy_field fields[] = {{"data", 'O', true, false, &data},
                                 {"dtype", 'd', false, true, &dtype},
                                 {"device", 'D', false, true, &device},
                                 {"pin_memory", 'b', false, true, &pin},
                                 {"requires_grad", 'b', false, true, &requires_grad}};
    if (tmpy_fields("tensor", fields, 5, args, n, kwnames) < 0) return NULL;
    if (tmpy_is_tensor(data) && PyErr_WarnEx(PyExc_UserWarning,
                                             "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                                             "sourceTensor.detach().clone().requires_grad_(True), "
                                             "rather than torch.tensor(sourceTensor).",
                                             1) < 0)
        return NULL;
    if (device.type == TM_DEVICE_DEFAULT && tmpy_is_tensor(data)) device = tmpy_t(data)->device;
    return finish(tmpy_tensor_from_data(data, dtype, or_default(device), "new"), requires_grad);
}

/* `data` itself where it is a tensor or an array that fits, else a copy. */
static PyObject *shared_or_copied(PyObject *data, tm_dtype dtype, tm_device device)
{
    if (tmpy_is_tensor(data)) {
        tm_tensor *t = tmpy_t(data);
        bool same = (dtype == TM_DTYPE_DEFAULT || dtype == (tm_dtype)t->dtype) &&
                    (device.type == TM_DEVICE_DEFAULT || device.type == t->device.type);
        if (same) return Py_NewRef(data);
        PyObject *d = dtype == TM_DTYPE_DEFAULT ? Py_NewRef(Py_None) : tmpy_dtype(dtype),
                 *v = device.type == TM_DEVICE_DEFAULT ? Py_NewRef(Py_None) : tmpy_device_new(device);
        return PyObject_CallMethod(data, "to", "NN", v, d);
    }
    if (tmpy_is_numpy_array(data)) {
        tm_tensor *t = tmpy_tensor_from_array(data, true);
        if (!t) return NULL;
        PyObject *o = tmpy_wrap(t), *r = o ? shared_or_copied(o, dtype, or_default(device)) : NULL;
        Py_XDECREF(o);
        return r;
    }
    tm_tensor *t = tmpy_tensor_from_data(data, dtype, or_default(device), "new");
    return t ? tmpy_wrap(t) : NULL;
}

static PyObject *as_tensor(PyObject *m, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *data = NULL;
    tm_dtype dtype = TM_DTYPE_DEFAULT;
    tm_device device = no_device;
    const tmpy_field fields[] = {
        {"data", 'O', true, false, &data}, {"dtype", 'd', false, false, &dtype}, {"device", 'D', false, false, &device}};
    if (tmpy_fields("as_tensor", fields, 3, args, n, kwnames) < 0) return NULL;
    return shared_or_copied(data, dtype, device);
}

static PyObject *asarray(PyObject *m, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *data = NULL;
    tm_dtype dtype = TM_DTYPE_DEFAULT;
    tm_device device = no_device;
    int requires_grad = 0, copy = -1;
    const tmpy_field fields[] = {{"obj", 'O', true, false, &data},
                                 {"dtype", 'd', false, true, &dtype},
                                 {"device", 'D', false, true, &device},
                                 {"copy", 'b', false, true, &copy},
                                 {"requires_grad", 'b', false, true, &requires_grad}};
    if (tmpy_fields("asarray", fields, 5, args, n, kwnames) < 0) return NULL;
    PyObject *r = NULL;
    tm_storage *s = tmpy_storage_of(data);
    if (s) {   /* bytes of a storage, as elements of dtype */
        tm_dtype d = dtype == TM_DTYPE_DEFAULT ? tm_get_default_dtype() : dtype;
        int64_t count = (int64_t)(s->nbytes / tmi_dtypes[d].size);
        r = tmpy_wrap(tmi_tensor_on(s, 1, &count, NULL, 0, d));
    } else if (tmpy_is_tensor(data) || tmpy_is_numpy_array(data)) {
        r = shared_or_copied(data, dtype, device);
    } else if (PyObject_HasAttrString(data, "__dlpack__")) {
        PyObject *module = PyImport_ImportModule("taimatsu._C"), *t = module ? PyObject_CallMethod(module, "from_dlpack", "O", data) : NULL;
        r = t ? shared_or_copied(t, dtype, device) : NULL;
        Py_XDECREF(t);
        Py_XDECREF(module);
    } else if (PyObject_CheckBuffer(data) && !PySequence_Check(data)) {
        tm_tensor *t = tmpy_tensor_from_array(data, true);
        PyObject *o = t ? tmpy_wrap(t) : NULL;
        r = o ? shared_or_copied(o, dtype, device) : NULL;
        Py_XDECREF(o);
    } else {
        if (copy == 0) return tmpy_error(PyExc_ValueError, "can't alias arbitrary sequence into a tensor.");
        r = shared_or_copied(data, dtype, device);
        copy = -1;
    }
    if (r && copy == 1) Py_SETREF(r, PyObject_CallMethod(r, "clone", NULL));
    if (r && requires_grad && !tmi_requires_grad(tmpy_t(r))) Py_SETREF(r, PyObject_CallMethod(r, "requires_grad_", NULL));
    if (r && !requires_grad && tmi_requires_grad(tmpy_t(r))) Py_SETREF(r, PyObject_CallMethod(r, "detach", NULL));
    return r;
}

typedef struct held_buffer { Py_buffer view; } held_buffer;
static void release_buffer(void *ctx)
{
    held_buffer *b = ctx;
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    PyBuffer_Release(&b->view);
    PyMem_Free(b);
    PyGILState_Release(state);
}

static int check_span(Py_ssize_t len, int64_t count, int64_t offset, int64_t item, int64_t *out)
{
    if (len <= 0 || count == 0)
        return PyErr_Format(PyExc_ValueError, "both buffer length (%zd) and count (%lld) must not be 0", len, (long long)count), -1;
    if (offset < 0 || offset >= len)
        return PyErr_Format(PyExc_ValueError,
                            "offset (%lld bytes) must be non-negative and no greater than buffer length (%zd bytes) minus 1",
                            (long long)offset, len),
               -1;
    if (count < 0) {
        if ((len - offset) % item)
            return PyErr_Format(PyExc_ValueError,
                                "buffer length (%lld bytes) after offset (%lld bytes) must be a multiple of element size (%lld)",
                                (long long)(len - offset), (long long)offset, (long long)item),
                   -1;
        *out = (len - offset) / item;
        return 0;
    }
    *out = count;
    if (count > (len - offset) / item)
        return PyErr_Format(PyExc_ValueError,
                            "requested buffer length (%lld * %lld bytes) after offset (%lld bytes) must not be greater than actual buffer "
                            "length (%zd bytes)",
                            (long long)count, (long long)item, (long long)offset, len),
               -1;
    return 0;
}

static PyObject *frombuffer(PyObject *m, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *source = NULL;
    tm_dtype dtype = TM_DTYPE_DEFAULT;
    int64_t count = -1, offset = 0, numel;
    int requires_grad = 0;
    const tmpy_field fields[] = {{"buffer", 'O', true, false, &source},
                                 {"dtype", 'd', true, true, &dtype},
                                 {"count", 'i', false, true, &count},
                                 {"offset", 'i', false, true, &offset},
                                 {"requires_grad", 'b', false, true, &requires_grad}};
    if (tmpy_fields("frombuffer", fields, 5, args, n, kwnames) < 0) return NULL;
    if (!PyObject_CheckBuffer(source)) return tmpy_error(PyExc_ValueError, "object does not implement Python buffer protocol.");
    held_buffer *b = PyMem_Malloc(sizeof *b);
    if (!b) return PyErr_NoMemory();
    if (PyObject_GetBuffer(source, &b->view, PyBUF_SIMPLE) < 0) {
        PyMem_Free(b);
        return NULL;
    }
    int ok = check_span(b->view.len, count, offset, (int64_t)tmi_dtypes[dtype].size, &numel);
    if (!ok && b->view.readonly)
        ok = PyErr_WarnEx(PyExc_UserWarning,
                          "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can write "
                          "to the underlying "
                          "(supposedly non-writable) buffer using the tensor. You may want to copy the buffer to protect its data or make "
                          "it writable before converting it to a "
                          "tensor. This type of warning will be suppressed for the rest of this program.",
                          1);
    tm_tensor *t = ok < 0 ? NULL : tm_tensor_wrap(1, &numel, NULL, dtype, (char *)b->view.buf + offset, release_buffer, b);
    if (t) return finish(t, requires_grad);
    PyBuffer_Release(&b->view);
    PyMem_Free(b);
    return ok < 0 ? NULL : tmpy_raise();
}

/* ---- the legacy constructor: Tensor(), Tensor(2, 3), Tensor(size), Tensor(tensor), Tensor(storage), Tensor(sequence) */
static PyObject *invalid_new(PyObject *args, PyObject *kwargs)
{
    PyObject *text = PyUnicode_FromString("new() received an invalid combination of arguments - got (");
    for (Py_ssize_t i = 0; text && i < PyTuple_Size(args); i++)
        Py_SETREF(text, PyUnicode_FromFormat("%U%s%s", text, i ? ", " : "", tmpy_type_name(PyTuple_GetItem(args, i))));
    PyObject *key, *value;
    Py_ssize_t pos = 0, n = PyTuple_Size(args);
    bool alone = n + (kwargs ? PyDict_Size(kwargs) : 0) == 2;
    PyObject *keys = PyUnicode_FromString("");
    while (text && keys && kwargs && PyDict_Next(kwargs, &pos, &key, &value)) {
        Py_SETREF(text, PyUnicode_FromFormat("%U%s%U=%s", text, n++ ? ", " : "", key, tmpy_type_name(value)));
        Py_SETREF(keys, PyUnicode_FromFormat("%U%s%U", keys, PyUnicode_GetLength(keys) ? ", " : "", key));
    }
    if (text && keys)
        PyErr_Format(PyExc_TypeError,
                     "%U), but expected one of:\n * (*, torch.device device = None)\n%s%U%s * (torch.Storage storage)\n * (Tensor other)\n "
                     "* (tuple of ints size, *, "
                     "torch.device device = None)\n * (object data, *, torch.device device = None)\n",
                     text, alone ? "      didn't match because some of the keywords were incorrect: " : "", alone ? keys : text,
                     alone ? "\n" : "");
    Py_XDECREF(text);
    Py_XDECREF(keys);
    return NULL;
}

static tm_tensor *of_size(PyObject *sizes_object, tm_dtype dtype, tm_device device)
{
    int64_t sizes[TMI_MAX_DIMS];
    Py_ssize_t n = PyTuple_Size(sizes_object);
    if (n > TMI_MAX_DIMS) return PyErr_SetString(PyExc_ValueError, "too many dimensions"), NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        if (tmpy_as_int(PyTuple_GetItem(sizes_object, i), &sizes[i]) != 1)
            return PyErr_Occurred() ? NULL
                                    : (PyErr_Format(PyExc_TypeError,
                                                    "new(): argument 'size' failed to unpack the object at pos %zd with error \"type must "
                                                    "be tuple of ints,but got %s\"",
                                                    i + 1, tmpy_type_name(PyTuple_GetItem(sizes_object, i))),
                                       NULL);
    tm_tensor *t = tmi_tensor_new((int)n, sizes, NULL, dtype, device);
    if (!t) tmpy_raise();
    return t;
}

static tm_tensor *legacy(PyObject *args, PyObject *kwargs, tm_dtype dtype, tm_device device)
{
    Py_ssize_t n = PyTuple_Size(args);
    PyObject *first = n ? PyTuple_GetItem(args, 0) : NULL, *given = kwargs ? PyDict_GetItemString(kwargs, "data") : NULL,
             *where = kwargs ? PyDict_GetItemString(kwargs, "device") : NULL;
    Py_ssize_t known = (given != NULL) + (where != NULL);
    int64_t ignored;
    if (kwargs && PyDict_Size(kwargs) > known) return invalid_new(args, kwargs), NULL;
    if (where && where != Py_None && tmpy_as_device(where, &device) != 1)
        return PyErr_Occurred() ? NULL : (invalid_new(args, kwargs), NULL);
    if (!first) first = given;
    if (!first) {
        int64_t none = 0;
        tm_tensor *t = tmi_tensor_new(1, &none, NULL, dtype, device);
        if (!t) tmpy_raise();
        return t;
    }
    if (Py_TYPE(first) == tmpy_size_type && n == 1) return of_size(first, dtype, device);
    if (!given && tmpy_as_int(first, &ignored) == 1 && !tmpy_is_tensor(first)) return of_size(args, dtype, device);
    if (PyErr_Occurred()) return NULL;
    if (n > 1) return invalid_new(args, kwargs), NULL;
    if (tmpy_storage_of(first)) {
        tm_storage *s = tmpy_storage_of(first);
        int64_t count = (int64_t)(s->nbytes / tmi_dtypes[dtype].size);
        tm_tensor *t = tmi_tensor_on(s, 1, &count, NULL, 0, dtype);
        if (!t) tmpy_raise();
        return t;
    }
    if (tmpy_is_tensor(first)) {
        tm_tensor *t = tmi_alias(tmpy_t(first));
        if (!t) tmpy_raise();
        if (t && t->dtype != dtype) {
            PyErr_Format(PyExc_TypeError, "expected %s (got %s)", tmi_dtypes[dtype].type_name, tmi_dtypes[t->dtype].type_name);
            tmi_release(t);
            return NULL;
        }
        return t;
    }
    if (!PySequence_Check(first))
        return PyErr_Format(PyExc_TypeError, "new(): data must be a sequence (got %s)", tmpy_type_name(first)), NULL;
    return tmpy_tensor_from_data(first, dtype, device, "new");
}

PyObject *tmpy_tensor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    tm_tensor *t = legacy(args, kwargs, tm_get_default_dtype(), tmpy_default_device());
    if (!t) return NULL;
    if (type != tmpy_Tensor && t->pyobj) {   /* never: legacy gives fresh tensors */
        tmi_release(t);
        return tmpy_error(PyExc_RuntimeError, "tensor already has an object");
    }
    return tmpy_wrap_as(type, t);
}

/* _C._legacy_new(dtype, args, kwargs): LongTensor(...) and friends, and x.new(...). */
static PyObject *legacy_new(PyObject *m, PyObject *args)
{
    PyObject *dtype, *call_args, *kwargs;
    tm_dtype d;
    if (!PyArg_ParseTuple(args, "OO!O!:_legacy_new", &dtype, &PyTuple_Type, &call_args, &PyDict_Type, &kwargs)) return NULL;
    if (!tmpy_as_dtype(dtype, &d)) return tmpy_error(PyExc_TypeError, "_legacy_new() needs a dtype");
    tm_tensor *t = legacy(call_args, kwargs, d, tmpy_default_device());
    return t ? tmpy_wrap(t) : NULL;
}

static PyMethodDef functions[] = {{"tensor", TMPY_FN(tensor), TMPY_FLAGS, NULL},   {"as_tensor", TMPY_FN(as_tensor), TMPY_FLAGS, NULL},
                                  {"asarray", TMPY_FN(asarray), TMPY_FLAGS, NULL}, {"frombuffer", TMPY_FN(frombuffer), TMPY_FLAGS, NULL},
                                  {"_legacy_new", legacy_new, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
int tmpy_creation_init(PyObject *m) { return PyModule_AddFunctions(m, functions); }
