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
    if (device && device != Py_None && tmpy_as_device(device, &d) != 1) return PyErr_Occurred() ? NULL : tmpy_error(PyExc_TypeError, "device expected");
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
    if (!from) return tmpy_error(PyExc_TypeError, "copy_(): argument 'source' (position 1) must be torch.UntypedStorage, not %s", n ? tmpy_type_name(args[0]) : "nothing");
    if (from->nbytes != to->nbytes) return tmpy_error(PyExc_RuntimeError, "size does not match, self was %zu bytes but src was %zu bytes", to->nbytes, from->nbytes);
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
static PyObject *new_empty(PyObject *self, PyObject *args, PyObject *kwargs) { return fresh_storage((PyObject *)Py_TYPE(self), args, kwargs); }

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
static int buffer(PyObject *o, Py_buffer *view, int flags)
{
    if (s_of(o)->device.type != TM_CPU) return PyErr_SetString(PyExc_BufferError, "only CPU storages have memory to look at"), -1;
    return PyBuffer_FillInfo(view, o, s_of(o)->data, length(o), s_of(o)->flags & TMI_STORAGE_READONLY, flags);
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
    Py_ssize_t n = PySequence_Size(size);
    if (!s || !tmpy_as_dtype(dtype, &d) || n < 0 || n > TMI_MAX_DIMS || PySequence_Size(strides) != n) return tmpy_error(PyExc_TypeError, "_storage_as_tensor(): storage, dtype, offset, size, stride");
    int64_t last = offset, numel = 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *a = PySequence_GetItem(size, i), *b = PySequence_GetItem(strides, i);
        sizes[i] = a ? PyLong_AsLongLong(a) : -1;
        steps[i] = b ? PyLong_AsLongLong(b) : -1;
        Py_XDECREF(a);
        Py_XDECREF(b);
        if (PyErr_Occurred()) return NULL;
        if (sizes[i] < 0 || steps[i] < 0) return tmpy_error(PyExc_RuntimeError, "sizes and strides must not be negative");
        int64_t span;
        numel = sizes[i] ? numel : 0;
        if (sizes[i] && (__builtin_mul_overflow(sizes[i] - 1, steps[i], &span) || __builtin_add_overflow(last, span, &last))) return tmpy_error(PyExc_RuntimeError, "sizes and strides overflow");
    }
    if (offset < 0 || (numel && s->device.type == TM_CPU && (uint64_t)last >= s->nbytes / tmi_dtypes[d].size))
        return tmpy_error(PyExc_RuntimeError, "a tensor of these sizes, strides and offset does not fit into a storage of %zu bytes", s->nbytes);
    return tmpy_wrap(tmi_tensor_on(s, (int)n, sizes, steps, offset, d));
}

static PyMethodDef methods[] = {
    {"nbytes", nbytes, METH_NOARGS, NULL}, {"size", nbytes, METH_NOARGS, NULL}, {"data_ptr", data_ptr, METH_NOARGS, NULL}, {"element_size", element_size, METH_NOARGS, NULL},
    {"is_pinned", TMPY_FN(always_false), METH_NOARGS, NULL}, {"is_shared", is_shared, METH_NOARGS, NULL}, {"resizable", resizable, METH_NOARGS, NULL}, {"_cdata", identity, METH_NOARGS, NULL},
    {"resize_", resize_, METH_O, NULL}, {"fill_", fill_, METH_O, NULL}, {"copy_", TMPY_FN(copy_), METH_FASTCALL, NULL}, {"clone", clone_storage, METH_NOARGS, NULL},
    {"__deepcopy__", deep_copy, METH_O, NULL}, {"tolist", to_list, METH_NOARGS, NULL}, {"cpu", to_cpu, METH_NOARGS, NULL}, {"untyped", to_cpu, METH_NOARGS, NULL},
    {"new", TMPY_FN(new_empty), METH_VARARGS | METH_KEYWORDS, NULL}, {NULL, NULL, 0, NULL}};
static PyGetSetDef getset[] = {{"device", get_device, NULL, NULL, NULL}, {"is_cuda", get_false, NULL, NULL, NULL}, {"is_sparse", get_false, NULL, NULL, NULL},
                               {"_untyped_storage", get_untyped, NULL, NULL, NULL}, {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyMemberDef members[] = {{"__dictoffset__", Py_T_PYSSIZET, 0, Py_READONLY, NULL}, {"__weaklistoffset__", Py_T_PYSSIZET, 0, Py_READONLY, NULL}, {NULL, 0, 0, 0, NULL}};
static PyMethodDef functions[] = {{"_storage_as_tensor", as_tensor, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

int tmpy_storage_init(PyObject *m)
{
    members[0].offset = tmpy_object_size + (Py_ssize_t)offsetof(storage, dict);
    members[1].offset = tmpy_object_size + (Py_ssize_t)offsetof(storage, weak);
    static PyType_Slot slots[] = {{Py_tp_new, storage_new}, {Py_tp_dealloc, storage_dealloc}, {Py_tp_traverse, storage_traverse}, {Py_tp_clear, storage_clear},
                                  {Py_tp_methods, methods}, {Py_tp_getset, getset}, {Py_tp_members, members}, {Py_mp_length, length}, {Py_sq_length, length},
                                  {Py_mp_subscript, get_item}, {Py_mp_ass_subscript, set_item}, {Py_bf_getbuffer, buffer}, {0, NULL}};
    static PyType_Spec spec = {"taimatsu.UntypedStorage", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    if (!(tmpy_storage_type = tmpy_type_new(m, &spec, sizeof(storage), NULL))) return -1;
    return PyModule_AddFunctions(m, functions);
}
