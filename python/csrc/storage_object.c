/* torch.UntypedStorage: the bytes behind tensors. One wrapper per storage as long as Python holds it. */
#include "glue.h"

PyTypeObject *tmpy_storage_type;

typedef struct { tm_storage *s; PyObject *dict, *weak; } storage;
static tm_storage *s_of(PyObject *o) { return TMPY_DATA(o, storage)->s; }

tm_storage *tmpy_storage_of(PyObject *o) { return PyObject_TypeCheck(o, tmpy_storage_type) ? s_of(o) : NULL; }

PyObject *tmpy_storage_new(tm_storage *s)
{
    if (!s) return tmpy_raise();
    PyObject *o = tmpy_alloc(tmpy_storage_type);
    if (o) TMPY_DATA(o, storage)->s = s;
    else tmi_storage_release(s);
    return o;
}

/* UntypedStorage(), UntypedStorage(nbytes, device='cpu'), UntypedStorage([bytes]). */
static PyObject *fresh_storage(PyObject *type_object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"size", "device", NULL};
    PyObject *size = NULL, *device = NULL;
    PyTypeObject *type = (PyTypeObject *)type_object;
    tm_device d = {TM_CPU, -1};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:UntypedStorage", names, &size, &device)) return NULL;
    if (device && device != Py_None && tmpy_as_device(device, &d) != 1)
        return PyErr_Occurred() ? NULL : tmpy_error(PyExc_TypeError, "device expected");
    Py_ssize_t n = 0;
    bool sequence = size && !PyLong_Check(size);
    if (size) n = sequence ? PySequence_Size(size) : PyLong_AsSsize_t(size);
    if (n < 0) return PyErr_Occurred() ? NULL : tmpy_error(PyExc_RuntimeError, "UntypedStorage size must not be negative, got %zd", n);
    tm_storage *s = tmi_storage_new((size_t)n, d);
    if (!s) return tmpy_raise();
    for (Py_ssize_t i = 0; sequence && i < n; i++) {
        PyObject *x = PySequence_GetItem(size, i);
        long b = x ? PyLong_AsLong(x) : -1;
        Py_XDECREF(x);
        if (PyErr_Occurred()) return tmi_storage_release(s), NULL;
        ((uint8_t *)s->data)[i] = (uint8_t)b;
    }
    PyObject *o = tmpy_alloc(type);
    if (o) TMPY_DATA(o, storage)->s = s;
    else tmi_storage_release(s);
    return o;
}
static PyObject *storage_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) { return fresh_storage((PyObject *)type, args, kwargs); }

static void storage_dealloc(PyObject *o)
{
    storage *d = TMPY_DATA(o, storage);
    PyObject_GC_UnTrack(o);
    if (d->weak) PyObject_ClearWeakRefs(o);
    if (d->s) tmi_storage_release(d->s);
    Py_CLEAR(d->dict);
    tmpy_free(o);
}
static int storage_traverse(PyObject *o, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(o));
    Py_VISIT(TMPY_DATA(o, storage)->dict);
    return 0;
}
static int storage_clear(PyObject *o)
{
    Py_CLEAR(TMPY_DATA(o, storage)->dict);
    return 0;
}

static Py_ssize_t length(PyObject *o) { return (Py_ssize_t)s_of(o)->nbytes; }
TMPY_NOARGS(nbytes) { return PyLong_FromSize_t(s_of(self)->nbytes); }
TMPY_NOARGS(data_ptr) { return PyLong_FromVoidPtr(s_of(self)->nbytes ? s_of(self)->data : NULL); }
TMPY_NOARGS(element_size) { return PyLong_FromLong(1); }
TMPY_NOARGS(always_false) { Py_RETURN_FALSE; }
TMPY_NOARGS(is_shared) { return PyBool_FromLong(s_of(self)->flags & TMI_STORAGE_SHARED); }
TMPY_NOARGS(resizable) { return PyBool_FromLong(!(s_of(self)->flags & TMI_STORAGE_FIXED)); }
TMPY_NOARGS(identity) { return PyLong_FromVoidPtr(s_of(self)); }
TMPY_NOARGS(to_cpu) { return Py_NewRef(self); }
static PyObject *resize_(PyObject *self, PyObject *size)
{
    Py_ssize_t n = PyLong_AsSsize_t(size);
    if (n == -1 && PyErr_Occurred()) return NULL;
    if (n < 0) return tmpy_error(PyExc_RuntimeError, "UntypedStorage size must not be negative, got %zd", n);
    return tmi_storage_resize(s_of(self), (size_t)n) == TM_OK ? Py_NewRef(self) : tmpy_raise();
}
static PyObject *fill_(PyObject *self, PyObject *value)
{
    long b = PyLong_AsLong(value);
    if (b == -1 && PyErr_Occurred()) return NULL;
    if (s_of(self)->nbytes) memset(s_of(self)->data, (int)b, s_of(self)->nbytes);
    return Py_NewRef(self);
}
static PyObject *copy_(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    tm_storage *from = n ? tmpy_storage_of(args[0]) : NULL, *to = s_of(self);
    if (!from)
        return tmpy_error(PyExc_TypeError, "copy_(): argument 'source' (position 1) must be torch.UntypedStorage, not %s",
                          n ? tmpy_type_name(args[0]) : "nothing");
    if (from->nbytes != to->nbytes)
        return tmpy_error(PyExc_RuntimeError, "size does not match, self was %zu bytes but src was %zu bytes", to->nbytes, from->nbytes);
    if (to->nbytes) memmove(to->data, from->data, to->nbytes);
    return Py_NewRef(self);
}
TMPY_NOARGS(clone_storage)
{
    tm_storage *s = tmi_storage_new(s_of(self)->nbytes, s_of(self)->device);
    if (s && s->nbytes && s->device.type == TM_CPU) memcpy(s->data, s_of(self)->data, s->nbytes);
    return tmpy_storage_new(s);
}
static PyObject *deep_copy(PyObject *self, PyObject *memo) { return clone_storage(self, NULL); }
TMPY_NOARGS(to_list)
{
    Py_ssize_t n = length(self);
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) PyList_SetItem(list, i, PyLong_FromLong(((uint8_t *)s_of(self)->data)[i]));
    return list;
}
static PyObject *new_empty(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return fresh_storage((PyObject *)Py_TYPE(self), args, kwargs);
}

static PyObject *get_item(PyObject *o, PyObject *key)
{
    Py_ssize_t n = length(o), i, stop, step;
    if (PySlice_Check(key)) {
        if (PySlice_Unpack(key, &i, &stop, &step) < 0) return NULL;
        Py_ssize_t count = PySlice_AdjustIndices(n, &i, &stop, step);
        if (step != 1) return tmpy_error(PyExc_RuntimeError, "Trying to slice with a step of %zd, but only a step of 1 is supported", step);
        tm_storage *s = tmi_storage_new((size_t)count, s_of(o)->device);
        if (s && count) memcpy(s->data, (char *)s_of(o)->data + i, (size_t)count);
        return tmpy_storage_new(s);
    }
    i = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return NULL;
    if (i < 0) i += n;
    if (i < 0 || i >= n) return tmpy_error(PyExc_IndexError, "index %zd out of range for storage of size %zd", i, n);
    return PyLong_FromLong(((uint8_t *)s_of(o)->data)[i]);
}
static int set_item(PyObject *o, PyObject *key, PyObject *value)
{
    Py_ssize_t n = length(o), i = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return -1;
    if (i < 0) i += n;
    if (i < 0 || i >= n || !value) return PyErr_Format(PyExc_IndexError, "index %zd out of range for storage of size %zd", i, n), -1;
    long b = PyLong_AsLong(value);
    if (b == -1 && PyErr_Occurred()) return -1;
    ((uint8_t *)s_of(o)->data)[i] = (uint8_t)b;
    return 0;
}

static PyObject *get_device(PyObject *o, void *unused) { return tmpy_device_new(s_of(o)->device); }
static PyObject *get_false(PyObject *o, void *unused) { Py_RETURN_FALSE; }
static PyObject *get_untyped(PyObject *o, void *unused) { return Py_NewRef(o); }
static PyObject *storage_repr(PyObject *o)
{
    tm_storage *s = s_of(o);
    if (s->device.type != TM_CPU) return PyUnicode_FromFormat("...\n[torch.storage.UntypedStorage(device=meta) of size %zu]", s->nbytes);
    PyObject *list = PyList_New(0), *text = NULL;
    size_t shown = s->nbytes < 1000 ? s->nbytes : 1000;
    for (size_t i = 0; list && i < shown; i++) {
        PyObject *one = PyUnicode_FromFormat(" %d\n", ((uint8_t *)s->data)[i]);
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    PyObject *empty = PyUnicode_FromString(""), *lines = list && empty ? PyUnicode_Join(empty, list) : NULL;
    if (lines)
        text = PyUnicode_FromFormat("%U%s[torch.storage.UntypedStorage(device=cpu) of size %zu]", lines, shown < s->nbytes ? " ...\n" : "",
                                    s->nbytes);
    Py_XDECREF(list);
    Py_XDECREF(empty);
    Py_XDECREF(lines);
    return text;
}
static int buffer(PyObject *o, Py_buffer *view, int flags)
{
    if (s_of(o)->device.type != TM_CPU) return PyErr_SetString(PyExc_BufferError, "only CPU storages have memory to look at"), -1;
    return PyBuffer_FillInfo(view, o, s_of(o)->data, length(o), s_of(o)->flags & TMI_STORAGE_READONLY, flags);
}
/* A sequence of sizes or strides; -1 with an exception set. */
static int read_ints(PyObject *o, int64_t *out)
{
    Py_ssize_t n = PySequence_Size(o);
    if (n > TMI_MAX_DIMS) return PyErr_SetString(PyExc_RuntimeError, "too many dimensions"), -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = PySequence_GetItem(o, i);
        int known = x ? tmpy_as_int(x, &out[i]) : -1;
        if (known == 0)
            PyErr_Format(PyExc_TypeError, "expected a tuple of ints, but found element of type %s at pos %zd", tmpy_type_name(x), i);
        Py_XDECREF(x);
        if (known != 1) return -1;
    }
    return (int)n;
}

/* Whether elements of `item` bytes at offset with these sizes and strides lie inside the storage. */
static int check_fits(const tm_storage *s, size_t item, int64_t offset, int n, const int64_t *sizes, const int64_t *strides)
{
    int64_t last = offset;
    for (int i = 0; i < n; i++) {
        int64_t span;
        if (sizes[i] < 0 || strides[i] < 0) return PyErr_SetString(PyExc_RuntimeError, "sizes and strides must not be negative"), -1;
        if (sizes[i] == 0) return 0;
        if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &span) || __builtin_add_overflow(last, span, &last))
            return PyErr_SetString(PyExc_RuntimeError, "sizes and strides overflow"), -1;
    }
    if (offset < 0 || (uint64_t)last >= s->nbytes / item)
        return PyErr_Format(PyExc_RuntimeError,
                            "setStorage: a tensor of these sizes, strides and storage offset %lld does not fit into a storage of size %zu",
                            (long long)offset, s->nbytes),
               -1;
    return 0;
}

/* _C._storage_as_tensor(storage, dtype, offset, size, stride): a tensor over it. */
static PyObject *as_tensor(PyObject *m, PyObject *args)
{
    PyObject *o, *dtype, *size, *strides;
    long long offset;
    tm_dtype d;
    int64_t sizes[TMI_MAX_DIMS], steps[TMI_MAX_DIMS];
    if (!PyArg_ParseTuple(args, "OOLOO:_storage_as_tensor", &o, &dtype, &offset, &size, &strides)) return NULL;
    tm_storage *s = tmpy_storage_of(o);
    if (!s || !tmpy_as_dtype(dtype, &d)) return tmpy_error(PyExc_TypeError, "_storage_as_tensor(): storage, dtype, offset, size, stride");
    int n = read_ints(size, sizes);
    if (n < 0 || read_ints(strides, steps) != n || check_fits(s, tmi_dtypes[d].size, offset, n, sizes, steps) < 0)
        return PyErr_Occurred() ? NULL : tmpy_error(PyExc_RuntimeError, "sizes and strides must be of equal length");
    return tmpy_wrap(tmi_tensor_on(s, n, sizes, steps, offset, d));
}

/* x.set_(storage, storage_offset=0, size=None, stride=None): other sources go to the operator. */
PyObject *tmpy_set_(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *source = NULL, *size = NULL, *strides = NULL;
    int64_t offset = 0, sizes[TMI_MAX_DIMS], steps[TMI_MAX_DIMS];
    const tmpy_field fields[] = {{"source", 'O', false, false, &source},
                                 {"storage_offset", 'i', false, false, &offset},
                                 {"size", 'O', false, false, &size},
                                 {"stride", 'O', false, false, &strides}};
    bool ours = n && (tmpy_storage_of(args[0]) || PyObject_HasAttrString(args[0], "_untyped_storage"));
    if (!ours && (n || kwnames)) {
        const tmpy_name *name = tmpy_find_name("set_");
        return name ? tmpy_call_method(name, self, args, n, kwnames)
                    : tmpy_error(PyExc_NotImplementedError, "the operator set_ is not part of this build");
    }
    if (tmpy_fields("set_", fields, 4, args, n, kwnames) < 0) return NULL;
    tm_tensor *t = tmpy_t(self);
    PyObject *untyped = source ? PyObject_GetAttrString(source, "_untyped_storage") : tmpy_storage_new(tmi_storage_new(0, t->device));
    tm_storage *s = untyped ? tmpy_storage_of(untyped) : NULL;
    int ndim = 1;
    if (!s) return Py_XDECREF(untyped), NULL;
    sizes[0] = (int64_t)(s->nbytes / tmi_dtypes[t->dtype].size) - offset;
    if (size && size != Py_None) ndim = read_ints(size, sizes);
    tmi_contiguous_strides(ndim < 0 ? 0 : ndim, sizes, steps);
    if (ndim >= 0 && strides && strides != Py_None && read_ints(strides, steps) != ndim) ndim = -1;
    bool ok = ndim >= 0 && check_fits(s, tmi_dtypes[t->dtype].size, offset, ndim, sizes, steps) == 0;
    if (ok && (tmi_tensor_set_storage(t, s) != TM_OK || tmi_tensor_restride(t, ndim, sizes, steps, offset) != TM_OK))
        ok = false, tmpy_raise();
    Py_DECREF(untyped);
    if (!ok) return PyErr_Occurred() ? NULL : tmpy_error(PyExc_RuntimeError, "mismatch in length of strides and shape");
    return Py_NewRef(self);
}

static PyMethodDef methods[] = {{"nbytes", nbytes, METH_NOARGS, NULL},
                                {"size", nbytes, METH_NOARGS, NULL},
                                {"data_ptr", data_ptr, METH_NOARGS, NULL},
                                {"element_size", element_size, METH_NOARGS, NULL},
                                {"is_pinned", TMPY_FN(always_false), METH_NOARGS, NULL},
                                {"is_shared", is_shared, METH_NOARGS, NULL},
                                {"resizable", resizable, METH_NOARGS, NULL},
                                {"_cdata", identity, METH_NOARGS, NULL},
                                {"resize_", resize_, METH_O, NULL},
                                {"fill_", fill_, METH_O, NULL},
                                {"copy_", TMPY_FN(copy_), METH_FASTCALL, NULL},
                                {"clone", clone_storage, METH_NOARGS, NULL},
                                {"__deepcopy__", deep_copy, METH_O, NULL},
                                {"tolist", to_list, METH_NOARGS, NULL},
                                {"cpu", to_cpu, METH_NOARGS, NULL},
                                {"untyped", to_cpu, METH_NOARGS, NULL},
                                {"new", TMPY_FN(new_empty), METH_VARARGS | METH_KEYWORDS, NULL},
                                {NULL, NULL, 0, NULL}};
static PyGetSetDef getset[] = {{"device", get_device, NULL, NULL, NULL},
                               {"is_cuda", get_false, NULL, NULL, NULL},
                               {"is_sparse", get_false, NULL, NULL, NULL},
                               {"_untyped_storage", get_untyped, NULL, NULL, NULL},
                               {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
                               {NULL, NULL, NULL, NULL, NULL}};
static PyMemberDef members[] = {{"__dictoffset__", Py_T_PYSSIZET, 0, Py_READONLY, NULL},
                                {"__weaklistoffset__", Py_T_PYSSIZET, 0, Py_READONLY, NULL},
                                {NULL, 0, 0, 0, NULL}};
static PyMethodDef functions[] = {{"_storage_as_tensor", as_tensor, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

int tmpy_storage_init(PyObject *m)
{
    members[0].offset = tmpy_object_size + (Py_ssize_t)offsetof(storage, dict);
    members[1].offset = tmpy_object_size + (Py_ssize_t)offsetof(storage, weak);
    static PyType_Slot slots[] = {{Py_tp_new, storage_new},
                                  {Py_tp_dealloc, storage_dealloc},
                                  {Py_tp_traverse, storage_traverse},
                                  {Py_tp_clear, storage_clear},
                                  {Py_tp_methods, methods},
                                  {Py_tp_getset, getset},
                                  {Py_tp_members, members},
                                  {Py_tp_repr, storage_repr},
                                  {Py_mp_length, length},
                                  {Py_sq_length, length},
                                  {Py_mp_subscript, get_item},
                                  {Py_mp_ass_subscript, set_item},
                                  {Py_bf_getbuffer, buffer},
                                  {0, NULL}};
    static PyType_Spec spec = {"torch.UntypedStorage", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    if (!(tmpy_storage_type = tmpy_type_new(m, &spec, sizeof(storage), NULL))) return -1;
    return PyModule_AddFunctions(m, functions);
}
