/* DLPack in both directions: capsules of the first version and of the versioned one (ABI 1.x), and the C exchange table that other
 * libraries find on the type. Structures after the DLPack specification. */
#include "glue.h"

typedef struct { int32_t type, id; } dl_device;
typedef struct { uint8_t code, bits; uint16_t lanes; } dl_type;
typedef struct { void *data; dl_device device; int32_t ndim; dl_type dtype; int64_t *shape, *strides; uint64_t byte_offset; } dl_tensor;
typedef struct dl_managed { dl_tensor t; void *ctx; void (*deleter)(struct dl_managed *); } dl_managed;
typedef struct { uint32_t major, minor; } dl_version;
typedef struct dl_versioned {
    dl_version version;
    void *ctx;
    void (*deleter)(struct dl_versioned *);
    uint64_t flags;
    dl_tensor t;
} dl_versioned;
enum { DL_CPU = 1, DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_COMPLEX = 5, DL_BOOL = 6, DL_F8_E4M3FN = 10, DL_F8_E5M2 = 12 };
enum { DL_READ_ONLY = 1, DL_IS_COPIED = 2, DL_MAJOR = 1, DL_MINOR = 3 };

static const struct { tm_dtype d; dl_type t;
} types[] = {
    {TM_BOOL, {DL_BOOL, 8, 1}},      {TM_U8, {DL_UINT, 8, 1}},      {TM_I8, {DL_INT, 8, 1}},         {TM_I16, {DL_INT, 16, 1}},
    {TM_I32, {DL_INT, 32, 1}},       {TM_I64, {DL_INT, 64, 1}},     {TM_F16, {DL_FLOAT, 16, 1}},     {TM_F32, {DL_FLOAT, 32, 1}},
    {TM_F64, {DL_FLOAT, 64, 1}},     {TM_C64, {DL_COMPLEX, 64, 1}}, {TM_C128, {DL_COMPLEX, 128, 1}}, {TM_BF16, {DL_BFLOAT, 16, 1}},
    {TM_U16, {DL_UINT, 16, 1}},      {TM_U32, {DL_UINT, 32, 1}},    {TM_U64, {DL_UINT, 64, 1}},      {TM_F8_E4M3FN, {DL_F8_E4M3FN, 8, 1}},
    {TM_F8_E5M2, {DL_F8_E5M2, 8, 1}}};

/* ---- out. One block holds the managed struct, the tensor reference, and its sizes and strides. */
typedef struct { tm_tensor *t; int64_t dims[2 * TMI_MAX_DIMS]; } owner;
typedef struct { dl_managed m; owner own; } out_legacy;
typedef struct { dl_versioned m; owner own; } out_versioned;

static void delete_legacy(dl_managed *m)
{
    out_legacy *o = (out_legacy *)(void *)m;
    tmi_release(o->own.t);
    PyMem_RawFree(o);
}
static void delete_versioned(dl_versioned *m)
{
    out_versioned *o = (out_versioned *)(void *)m;
    tmi_release(o->own.t);
    PyMem_RawFree(o);
}

static void describe(dl_tensor *d, owner *own, tm_tensor *t)
{
    tmi_retain(t);
    own->t = t;
    for (int i = 0; i < t->ndim; i++) {
        own->dims[i] = t->sizes[i];
        own->dims[TMI_MAX_DIMS + i] =
            t->sizes[i] < 2 ? 1 : t->strides[i]; /* strides of such dimensions mean nothing; readers want them tame */
    }
    if (t->ndim && tmi_contiguous(t)) tmi_contiguous_strides(t->ndim, t->sizes, own->dims + TMI_MAX_DIMS);
    *d = (dl_tensor){.data = t->numel ? tmi_data(t) : NULL,
                     .device = {DL_CPU, 0},
                     .ndim = t->ndim,
                     .shape = own->dims,
                     .strides = own->dims + TMI_MAX_DIMS};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].d == t->dtype) d->dtype = types[i].t;
}

static dl_versioned *export_versioned(tm_tensor *t, uint64_t flags)
{
    out_versioned *o = PyMem_RawMalloc(sizeof *o);
    if (!o) return NULL;
    if (t->storage->flags & TMI_STORAGE_READONLY) flags |= DL_READ_ONLY;
    o->m = (dl_versioned){.version = {DL_MAJOR, DL_MINOR}, .deleter = delete_versioned, .flags = flags};
    describe(&o->m.t, &o->own, t);
    return &o->m;
}

static void end_legacy(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor")) return;   /* consumed */
    dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
    if (m && m->deleter) m->deleter(m);
}
static void end_versioned(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return;
    dl_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (m && m->deleter) m->deleter(m);
}

static PyObject *capsule_of(tm_tensor *t, bool versioned, uint64_t flags)
{
    PyObject *c;
    if (versioned) {
        dl_versioned *m = export_versioned(t, flags);
        c = m ? PyCapsule_New(m, "dltensor_versioned", end_versioned) : PyErr_NoMemory();
        if (m && !c) delete_versioned(m);
        return c;
    }
    out_legacy *o = PyMem_RawMalloc(sizeof *o);
    if (!o) return PyErr_NoMemory();
    o->m = (dl_managed){.deleter = delete_legacy};
    describe(&o->m.t, &o->own, t);
    c = PyCapsule_New(&o->m, "dltensor", end_legacy);
    if (!c) delete_legacy(&o->m);
    return c;
}

static int exportable(const tm_tensor *t)
{
    if (tmi_requires_grad(t))
        return PyErr_SetString(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()"), -1;
    if (t->flags & TMI_CONJ) return PyErr_SetString(PyExc_BufferError, "Can't export tensors with the conjugate bit set"), -1;
    if (t->device.type != TM_CPU) return PyErr_SetString(PyExc_BufferError, "Unsupported device type: meta"), -1;
    return 0;
}

static PyObject *dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None;
    int copy = -1;
    const tmpy_field fields[] = {{"stream", 'O', false, true, &stream},
                                 {"max_version", 'O', false, true, &max_version},
                                 {"dl_device", 'O', false, true, &device},
                                 {"copy", 'b', false, true, &copy}};
    if (tmpy_fields("__dlpack__", fields, 4, args, n, kwnames) < 0) return NULL;
    if (exportable(tmpy_t(self)) < 0) return NULL;
    if (stream != Py_None && !(PyLong_Check(stream) && PyLong_AsLong(stream) == -1))
        return tmpy_error(PyExc_AssertionError, "stream should be None on cpu.");
    bool versioned = false;
    if (max_version != Py_None) {
        PyObject *major = PySequence_GetItem(max_version, 0);
        if (!major) return NULL;
        versioned = PyLong_AsLong(major) >= 1;
        Py_DECREF(major);
        if (PyErr_Occurred()) return NULL;
    }
    if (copy != 1) return capsule_of(tmpy_t(self), versioned, 0);
    PyObject *c = PyObject_CallMethod(self, "clone", NULL), *r = c ? capsule_of(tmpy_t(c), versioned, DL_IS_COPIED) : NULL;
    Py_XDECREF(c);
    return r;
}
TMPY_NOARGS(dlpack_device)
{
    if (tmpy_t(self)->device.type != TM_CPU) return tmpy_error(PyExc_ValueError, "Unknown device type meta for Dlpack");
    return Py_BuildValue("(ii)", DL_CPU, 0);
}

/* ---- in */
typedef struct { void *managed; bool versioned; } taken;
static void give_back(void *ctx)
{
    taken *k = ctx;
    PyGILState_STATE state = PyGILState_Ensure();   /* the producer may be Python code */
    dl_managed *m = k->managed;
    dl_versioned *v = k->managed;
    if (k->versioned) { if (v->deleter) v->deleter(v); }
    else if (m->deleter) m->deleter(m);
    PyMem_RawFree(k);
    PyGILState_Release(state);
}

static int dtype_from(dl_type t, tm_dtype *out)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].t.code == t.code && types[i].t.bits == t.bits && t.lanes == 1) return *out = types[i].d, 0;
    return PyErr_Format(PyExc_RuntimeError, "Unsupported DLPack type: code %d, %d bits, %d lanes", t.code, t.bits, t.lanes), -1;
}

static tm_tensor *import(const dl_tensor *d, void *managed, bool versioned, bool readonly)
{
    tm_dtype dtype;
    if (d->device.type != DL_CPU) return PyErr_Format(PyExc_RuntimeError, "Unsupported device_type: %d", d->device.type), NULL;
    if (d->ndim < 0 || d->ndim > TMI_MAX_DIMS || dtype_from(d->dtype, &dtype) < 0)
        return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_RuntimeError, "too many dimensions"), NULL);
    taken *k = PyMem_RawMalloc(sizeof *k);
    if (!k) return PyErr_NoMemory(), NULL;
    *k = (taken){managed, versioned};
    tm_tensor *t = tm_tensor_wrap(d->ndim, d->shape, d->strides, dtype, (char *)d->data + d->byte_offset, give_back, k);
    if (!t) {
        PyMem_RawFree(k);
        tmpy_raise();
        return NULL;
    }
    t->storage->flags |= TMI_STORAGE_FIXED | (readonly ? TMI_STORAGE_READONLY : 0);
    return t;
}

static PyObject *from_capsule(PyObject *capsule)
{
    bool versioned = PyCapsule_IsValid(capsule, "dltensor_versioned");
    if (!versioned && !PyCapsule_IsValid(capsule, "dltensor"))
        return tmpy_error(PyExc_RuntimeError, "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only "
                                              "once, so you might have already constructed a tensor from it once.");
    void *p = PyCapsule_GetPointer(capsule, versioned ? "dltensor_versioned" : "dltensor");
    dl_versioned *v = p;
    if (versioned && v->version.major > DL_MAJOR)
        return tmpy_error(PyExc_BufferError, "the producer speaks DLPack %u.%u, this library %d.%d", v->version.major, v->version.minor,
                          DL_MAJOR, DL_MINOR);
    tm_tensor *t = versioned ? import(&v->t, v, true, v->flags & DL_READ_ONLY) : import(&((dl_managed *)p)->t, p, false, false);
    if (!t) return NULL;
    PyCapsule_SetName(capsule, versioned ? "used_dltensor_versioned" : "used_dltensor");
    return tmpy_wrap(t);
}

/* The capsule of an object, asking for the versioned form first. */
static PyObject *capsule_from(PyObject *o)
{
    PyObject *f = PyObject_GetAttrString(o, "__dlpack__"), *none = f ? PyTuple_New(0) : NULL,
             *kw = none ? Py_BuildValue("{s:(ii)}", "max_version", DL_MAJOR, 0) : NULL;
    PyObject *c = kw ? PyObject_Call(f, none, kw) : NULL;
    if (!c && f && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        c = PyObject_CallObject(f, NULL);
    }
    Py_XDECREF(f);
    Py_XDECREF(none);
    Py_XDECREF(kw);
    return c;
}

static PyObject *from_dlpack(PyObject *m, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *source = NULL;
    tm_device device = {TM_CPU, -1};
    int copy = -1;
    const tmpy_field fields[] = {
        {"ext_tensor", 'O', true, false, &source}, {"device", 'D', false, true, &device}, {"copy", 'b', false, true, &copy}};
    if (tmpy_fields("from_dlpack", fields, 3, args, n, kwnames) < 0) return NULL;
    PyObject *capsule = PyCapsule_CheckExact(source) ? Py_NewRef(source) : capsule_from(source);
    PyObject *r = capsule ? from_capsule(capsule) : NULL;
    Py_XDECREF(capsule);
    if (r && copy == 1) Py_SETREF(r, PyObject_CallMethod(r, "clone", NULL));
    return r;
}
static PyObject *to_dlpack(PyObject *m, PyObject *o)
{
    if (!tmpy_is_tensor(o))
        return tmpy_error(PyExc_TypeError, "to_dlpack(): argument 'tensor' (position 1) must be Tensor, not %s", tmpy_type_name(o));
    return exportable(tmpy_t(o)) < 0 ? NULL : capsule_of(tmpy_t(o), false, 0);
}

/* ---- the C exchange table */
typedef struct exchange_header { dl_version version; struct exchange_header *previous; } exchange_header;
typedef struct {
    exchange_header header;
    int (*allocate)(dl_tensor *prototype, dl_versioned **out, void *error_ctx,
                    void (*set_error)(void *ctx, const char *kind, const char *message));
    int (*from_object)(void *object, dl_versioned **out);
    int (*to_object)(dl_versioned *t, void **out);
    int (*view_object)(void *object, dl_tensor *out);
    int (*current_stream)(int32_t type, int32_t id, void **out);
} exchange_table;

static int table_allocate(dl_tensor *prototype, dl_versioned **out, void *error_ctx, void (*set_error)(void *, const char *, const char *))
{
    PyGILState_STATE state = PyGILState_Ensure();
    tm_dtype d;
    tm_tensor *t = prototype->device.type == DL_CPU && dtype_from(prototype->dtype, &d) == 0
                       ? tmi_tensor_new(prototype->ndim, prototype->shape, NULL, d, (tm_device){TM_CPU, -1})
                       : NULL;
    *out = t ? export_versioned(t, 0) : NULL;
    if (t) tmi_release(t);
    PyErr_Clear();
    tm_error_clear();
    PyGILState_Release(state);
    if (!*out && set_error) set_error(error_ctx, "RuntimeError", "cannot allocate a tensor of this device, dtype and shape");
    return *out ? 0 : -1;
}
static int table_from_object(void *object, dl_versioned **out)
{
    if (!tmpy_is_tensor(object)) return PyErr_SetString(PyExc_TypeError, "not a Tensor"), -1;
    if (exportable(tmpy_t(object)) < 0) return -1;
    *out = export_versioned(tmpy_t(object), 0);
    return *out ? 0 : (PyErr_NoMemory(), -1);
}
static int table_to_object(dl_versioned *m, void **out)
{
    tm_tensor *t = import(&m->t, m, true, m->flags & DL_READ_ONLY);
    *out = t ? tmpy_wrap(t) : NULL;
    return *out ? 0 : -1;
}
static int table_stream(int32_t type, int32_t id, void **out)
{
    *out = NULL;
    return 0;
}
static exchange_table table = {.header = {{DL_MAJOR, DL_MINOR}, NULL},
                               .allocate = table_allocate,
                               .from_object = table_from_object,
                               .to_object = table_to_object,
                               .current_stream = table_stream};

PyMethodDef tmpy_dlpack_methods[] = {
    {"__dlpack__", TMPY_FN(dlpack), TMPY_FLAGS, NULL}, {"__dlpack_device__", dlpack_device, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyMethodDef functions[] = {{"from_dlpack", TMPY_FN(from_dlpack), TMPY_FLAGS, NULL},
                                  {"_from_dlpack", TMPY_FN(from_dlpack), TMPY_FLAGS, NULL},
                                  {"_to_dlpack", to_dlpack, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};
int tmpy_dlpack_init(PyObject *m)
{
    PyObject *capsule = PyCapsule_New(&table, "dlpack_exchange_api", NULL);
    int r = capsule ? PyObject_SetAttrString((PyObject *)tmpy_Tensor, "__dlpack_c_exchange_api__", capsule) : -1;
    Py_XDECREF(capsule);
    return r < 0 ? -1 : PyModule_AddFunctions(m, functions);
}
