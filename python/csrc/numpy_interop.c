/* numpy, without its headers: arrays come in through the buffer protocol, and go out through the C functions that numpy publishes in a
 * capsule with fixed slots. Both directions share memory. numpy is imported only when a program asks for an array. */
#include "glue.h"

/* ---- formats of the buffer protocol */
static const char *const formats[TM_DTYPE_COUNT] = {
    [TM_BOOL] = "?", [TM_U8] = "B",  [TM_I8] = "b",   [TM_I16] = "h",   [TM_I32] = "i", [TM_I64] = "q", [TM_F16] = "e",
    [TM_F32] = "f",  [TM_F64] = "d", [TM_C64] = "Zf", [TM_C128] = "Zd", [TM_U16] = "H", [TM_U32] = "I", [TM_U64] = "Q"};

static int dtype_of_format(const char *f, Py_ssize_t item, tm_dtype *out)
{
    if (!f) f = "B";
    if (*f == '=' || *f == '@' || *f == '<') f++;
    bool is_complex = *f == 'Z';
    if (is_complex) f++;
    if (!f[0] || f[1]) return -1;
    if (strchr("fdeg", *f)) *out = is_complex ? (item == 8 ? TM_C64 : TM_C128) : item == 2 ? TM_F16 : item == 4 ? TM_F32 : TM_F64;
    else if (*f == '?') *out = TM_BOOL;
    else if (strchr("bhilqn", *f)) *out = item == 1 ? TM_I8 : item == 2 ? TM_I16 : item == 4 ? TM_I32 : TM_I64;
    else if (strchr("BHILQN", *f)) *out = item == 1 ? TM_U8 : item == 2 ? TM_U16 : item == 4 ? TM_U32 : TM_U64;
    else return -1;
    return (Py_ssize_t)tmi_dtypes[*out].size == item ? 0 : -1;
}

/* ---- in */
typedef struct held { Py_buffer view; } held;
static void release(void *ctx)
{
    held *h = ctx;
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    PyBuffer_Release(&h->view);
    PyMem_Free(h);
    PyGILState_Release(state);
}

static int refuse_type(PyObject *array)
{
    PyErr_Clear();
    PyObject *dtype = PyObject_GetAttrString(array, "dtype"), *type = dtype ? PyObject_GetAttrString(dtype, "type") : NULL,
             *name = type ? PyObject_GetAttrString(type, "__name__") : NULL;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "can't convert np.ndarray of type numpy.%S. The only supported types are: float64, float32, float16, complex64, "
                 "complex128, int64, int32, int16, "
                 "int8, uint64, uint32, uint16, uint8, and bool.",
                 name ? name : Py_None);
    Py_XDECREF(dtype);
    Py_XDECREF(type);
    Py_XDECREF(name);
    return -1;
}

static int layout_of(PyObject *array, const Py_buffer *v, tm_dtype *dtype, int64_t *sizes, int64_t *strides)
{
    const char *f = v->format;
    if (f && (*f == '>' || *f == '!') && v->itemsize > 1)
        return PyErr_SetString(PyExc_ValueError, "given numpy array has byte order different from the native byte order. Conversion "
                                                 "between byte orders is currently not supported."),
               -1;
    if (f && (*f == '>' || *f == '!')) f++;
    if (dtype_of_format(f, v->itemsize, dtype) < 0) return refuse_type(array);
    for (int i = 0; i < v->ndim; i++) {
        sizes[i] = v->shape[i];
        Py_ssize_t step = v->strides ? v->strides[i] : v->itemsize;
        if (step < 0)
            return PyErr_SetString(PyExc_ValueError,
                                   "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
                                   "currently supported. "
                                   "(You can probably work around this by making a copy of your array  with array.copy().) "),
                   -1;
        if (step % v->itemsize)
            return PyErr_SetString(
                       PyExc_ValueError,
                       "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."),
                   -1;
        strides[i] = step / v->itemsize;
    }
    return 0;
}

static int warn_if_readonly(const Py_buffer *v)
{
    return v->readonly ? PyErr_WarnEx(PyExc_UserWarning,
                                      "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This "
                                      "means writing to this tensor "
                                      "will result in undefined behavior. You may want to copy the array to protect its data or make it "
                                      "writable before converting it to a tensor. "
                                      "This type of warning will be suppressed for the rest of this program.",
                                      1)
                       : 0;
}

tm_tensor *tmpy_tensor_from_array(PyObject *array, bool warn_readonly)
{
    int64_t sizes[TMI_MAX_DIMS], strides[TMI_MAX_DIMS];
    tm_dtype dtype = TM_F32;
    held *h = PyMem_Malloc(sizeof *h);
    if (!h) return PyErr_NoMemory(), NULL;
    if (PyObject_GetBuffer(array, &h->view, PyBUF_RECORDS_RO) < 0) {
        PyMem_Free(h);
        refuse_type(array);
        return NULL;
    }
    tm_tensor *t = NULL;
    if (layout_of(array, &h->view, &dtype, sizes, strides) == 0 && (!warn_readonly || warn_if_readonly(&h->view) == 0)) {
        t = tm_tensor_wrap(h->view.ndim, sizes, strides, dtype, h->view.buf, release, h);
        if (!t) tmpy_raise();
    }
    if (t) {
        t->storage->flags |= TMI_STORAGE_FIXED;
        return t;
    }
    PyBuffer_Release(&h->view);
    PyMem_Free(h);
    return NULL;
}

static PyObject *from_numpy(PyObject *m, PyObject *array)
{
    if (!tmpy_is_numpy_array(array)) return tmpy_error(PyExc_TypeError, "expected np.ndarray (got %s)", tmpy_type_name(array));
    tm_tensor *t = tmpy_tensor_from_array(array, true);
    return t ? tmpy_wrap(t) : NULL;
}

/* ---- out: the buffer protocol of Tensor */
int tmpy_tensor_buffer(PyObject *o, Py_buffer *v, int flags)
{
    tm_tensor *t = tmpy_t(o);
    const char *problem = tmi_requires_grad(t)              ? "tensors that require grad do not lend their memory; use tensor.detach()"
                          : t->device.type != TM_CPU        ? "only CPU tensors have memory to lend"
                          : t->flags & (TMI_CONJ | TMI_NEG) ? "tensors with the conjugate or negative bit set do not lend their memory"
                          : !formats[t->dtype]              ? "the buffer protocol has no format for this dtype"
                          : !(flags & PyBUF_STRIDES) && !tmi_contiguous(t) ? "the tensor is not contiguous"
                                                                           : NULL;
    v->obj = NULL;
    if (problem) return PyErr_SetString(PyExc_BufferError, problem), -1;
    Py_ssize_t *dims = PyMem_Malloc(sizeof *dims * (2 * (size_t)t->ndim + 1)), item = tmi_dtypes[t->dtype].size;
    if (!dims) return PyErr_NoMemory(), -1;
    for (int i = 0; i < t->ndim; i++) {
        dims[i] = (Py_ssize_t)t->sizes[i];
        dims[t->ndim + i] = (Py_ssize_t)t->strides[i] * item;
    }
    bool shaped = (flags & PyBUF_ND) == PyBUF_ND;
    *v = (Py_buffer){.buf = tmi_data(t),
                     .obj = Py_NewRef(o),
                     .len = (Py_ssize_t)t->numel * item,
                     .itemsize = item,
                     .ndim = shaped ? t->ndim : 1,
                     .internal = dims,
                     .readonly = (t->storage->flags & TMI_STORAGE_READONLY) != 0};
    if (flags & PyBUF_FORMAT) v->format = (char *)(uintptr_t)formats[t->dtype];
    if (shaped) v->shape = dims;
    if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES) v->strides = dims + t->ndim;
    return 0;
}
void tmpy_tensor_buffer_release(PyObject *o, Py_buffer *v) { PyMem_Free(v->internal); }

/* ---- out: numpy arrays */
typedef PyObject *array_new_fn(PyTypeObject *, int, const Py_ssize_t *, int, const Py_ssize_t *, void *, int, int, PyObject *);
typedef int set_base_fn(PyObject *, PyObject *);
enum { SLOT_TYPE = 2, SLOT_NEW = 93, SLOT_SET_BASE = 282, FLAG_WRITEABLE = 0x400, FLAG_ALIGNED = 0x100 };
static void **numpy_api;

static int load_numpy(void)
{
    if (numpy_api) return 0;
    PyObject *m = PyImport_ImportModule("numpy._core._multiarray_umath");
    if (!m) {
        PyErr_Clear();
        m = PyImport_ImportModule("numpy.core._multiarray_umath");
    }
    PyObject *capsule = m ? PyObject_GetAttrString(m, "_ARRAY_API") : NULL;
    numpy_api = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    Py_XDECREF(capsule);
    Py_XDECREF(m);
    if (numpy_api) return 0;
    PyErr_Clear();
    PyErr_SetString(PyExc_RuntimeError, "Numpy is not available");
    return -1;
}

static int type_number(tm_dtype d)
{
    static const int numbers[TM_DTYPE_COUNT] = {
        [TM_BOOL] = 0, [TM_U8] = 2,   [TM_I8] = 1,   [TM_I16] = 3,        [TM_I32] = 5,     [TM_I64] = 7,
        [TM_F16] = 23, [TM_F32] = 11, [TM_F64] = 12, [TM_C64] = 14,       [TM_C128] = 15,   [TM_BF16] = -1,
        [TM_U16] = 4,  [TM_U32] = 6,  [TM_U64] = 8,  [TM_F8_E4M3FN] = -1, [TM_F8_E5M2] = -1};
    return numbers[d];
}

static PyObject *array_over(PyObject *tensor)
{
    tm_tensor *t = tmpy_t(tensor);
    Py_ssize_t sizes[TMI_MAX_DIMS], strides[TMI_MAX_DIMS], item = tmi_dtypes[t->dtype].size;
    if (load_numpy() < 0) return NULL;
    for (int i = 0; i < t->ndim; i++) sizes[i] = (Py_ssize_t)t->sizes[i], strides[i] = (Py_ssize_t)t->strides[i] * item;
    array_new_fn *make = (array_new_fn *)(uintptr_t)numpy_api[SLOT_NEW];
    set_base_fn *set_base = (set_base_fn *)(uintptr_t)numpy_api[SLOT_SET_BASE];
    int flags = FLAG_ALIGNED | (t->storage->flags & TMI_STORAGE_READONLY ? 0 : FLAG_WRITEABLE);
    PyObject *a = make(numpy_api[SLOT_TYPE], t->ndim, sizes, type_number((tm_dtype)t->dtype), strides, tmi_data(t), 0, flags, NULL);
    if (a && set_base(a, Py_NewRef(tensor)) < 0) Py_CLEAR(a);
    return a;
}

static const char *why_not_numpy(const tm_tensor *t, PyObject **error)
{
    *error = PyExc_RuntimeError;
    if (tmi_requires_grad(t)) return "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.";
    if (t->flags & TMI_CONJ) return "Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead.";
    if (t->flags & TMI_NEG) return "Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() instead.";
    *error = PyExc_TypeError;
    if (t->device.type != TM_CPU)
        return "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.";
    return NULL;
}

static PyObject *numpy_of(PyObject *self, bool force)
{
    PyObject *error, *x = Py_NewRef(self);
    if (force) {
        Py_SETREF(x, PyObject_CallMethod(x, "detach", NULL));
        if (x && tmpy_t(x)->flags & TMI_CONJ) Py_SETREF(x, PyObject_CallMethod(x, "resolve_conj", NULL));
        if (x && tmpy_t(x)->flags & TMI_NEG) Py_SETREF(x, PyObject_CallMethod(x, "resolve_neg", NULL));
        if (!x) return NULL;
    }
    const char *problem = why_not_numpy(tmpy_t(x), &error);
    PyObject *r = NULL;
    if (problem) PyErr_SetString(error, problem);
    else if (type_number((tm_dtype)tmpy_t(x)->dtype) < 0)
        PyErr_Format(PyExc_TypeError, "Got unsupported ScalarType %s", tmi_dtypes[tmpy_t(x)->dtype].type_name);
    else r = array_over(x);
    Py_DECREF(x);
    return r;
}

static PyObject *numpy(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    int force = 0;
    PyObject *r;
    const tmpy_field fields[] = {{"force", 'b', false, true, &force}};
    if (tmpy_override_method(self, "numpy", args, n, kwnames, &r)) return r;
    if (n) return tmpy_error(PyExc_TypeError, "numpy() takes 0 positional arguments but %zd %s given", n, n == 1 ? "was" : "were");
    return tmpy_fields("numpy", fields, 1, args, n, kwnames) < 0 ? NULL : numpy_of(self, force);
}

/* numpy calls this with dtype and copy, in either spelling. */
static PyObject *array(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *dtype = Py_None, *copy = Py_None;
    const tmpy_field fields[] = {{"dtype", 'O', false, false, &dtype}, {"copy", 'O', false, true, &copy}};
    if (tmpy_fields("__array__", fields, 2, args, n, kwnames) < 0) return NULL;
    PyObject *a = numpy_of(self, false);
    if (a && dtype != Py_None) {
        PyObject *kw = Py_BuildValue("{s:O}", "copy", Py_False), *as = PyObject_GetAttrString(a, "astype"), *one = PyTuple_Pack(1, dtype);
        Py_SETREF(a, kw && as && one ? PyObject_Call(as, one, kw) : NULL);
        Py_XDECREF(kw);
        Py_XDECREF(as);
        Py_XDECREF(one);
    }
    if (a && copy == Py_True) Py_SETREF(a, PyObject_CallMethod(a, "copy", NULL));
    return a;
}

static PyObject *array_wrap(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    PyObject *a = n ? args[0] : NULL;
    if (!a) return tmpy_error(PyExc_TypeError, "__array_wrap__() missing 1 required positional argument: 'array'");
    if (tmpy_is_numpy_array(a)) return from_numpy(NULL, a);
    tm_tensor *t = tmpy_tensor_from_data(a, TM_DTYPE_DEFAULT, (tm_device){TM_CPU, -1}, "new");
    return t ? tmpy_wrap(t) : NULL;
}

PyMethodDef tmpy_interop_methods[] = {{"numpy", TMPY_FN(numpy), TMPY_FLAGS, NULL}, {"__array__", TMPY_FN(array), TMPY_FLAGS, NULL},
                                      {"__array_wrap__", TMPY_FN(array_wrap), METH_FASTCALL, NULL}, {NULL, NULL, 0, NULL}};
static PyMethodDef functions[] = {{"from_numpy", from_numpy, METH_O, NULL}, {NULL, NULL, 0, NULL}};
int tmpy_interop_init(PyObject *m) { return PyModule_AddFunctions(m, functions); }
