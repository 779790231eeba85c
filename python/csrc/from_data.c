/* Tensors from Python values: numbers, nested sequences, arrays. What dtype they get, how large they are, and storing them. */
#include <math.h>

#include "glue.h"

enum { MAX_DEPTH = 64 };

/* The dtype of a numpy array or scalar. */
static int numpy_dtype(PyObject *o, tm_dtype *out)
{
    PyObject *dtype = PyObject_GetAttrString(o, "dtype"), *name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    int found = 0;
    for (int i = 0; text && i < TM_DTYPE_COUNT && !found; i++)
        if (!strcmp(tmi_dtypes[i].name, text)) *out = (tm_dtype)i, found = 1;
    if (text && !found)
        PyErr_Format(PyExc_TypeError,
                     "can't convert np.ndarray of type numpy.%s. The only supported types are: float64, float32, float16, complex64, "
                     "complex128, int64, int32, "
                     "int16, int8, uint64, uint32, uint16, uint8, and bool.",
                     !strcmp(text, "object")    ? "object_"
                     : !strncmp(text, "str", 3) ? "str_"
                                                : text);
    Py_XDECREF(dtype);
    Py_XDECREF(name);
    return found ? 0 : -1;
}

static tm_dtype default_complex(void) { return tm_get_default_dtype() == TM_F64 ? TM_C128 : TM_C64; }
static bool is_text(PyObject *o) { return PyUnicode_Check(o) || PyBytes_Check(o); }

static int infer(PyObject *o, tm_dtype *out, int depth);

static int infer_sequence(PyObject *o, tm_dtype *out, int depth)
{
    Py_ssize_t n = PySequence_Size(o);
    if (n < 0) return -1;
    *out = tm_get_default_dtype();
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = PySequence_GetItem(o, i);
        tm_dtype d;
        int r = x == o ? (PyErr_SetString(PyExc_TypeError, "new(): self-referential lists are incompatible"), -1)
                : x    ? infer(x, &d, depth + 1)
                       : -1;
        Py_XDECREF(x);
        if (r < 0) return -1;
        *out = i ? tm_dtype_promote(*out, d) : d;
        if (*out == TM_DTYPE_COUNT) return tmpy_raise(), -1;
    }
    return 0;
}

static int infer(PyObject *o, tm_dtype *out, int depth)
{
    if (PyFloat_Check(o) && !tmpy_is_numpy_scalar(o)) return *out = tm_get_default_dtype(), 0;
    if (PyBool_Check(o)) return *out = TM_BOOL, 0;
    if (PyLong_Check(o)) return *out = TM_I64, 0;
    if (PyComplex_Check(o) && !tmpy_is_numpy_scalar(o)) return *out = default_complex(), 0;
    if (tmpy_is_tensor(o)) return *out = (tm_dtype)tmpy_t(o)->dtype, 0;
    if (is_text(o)) return PyErr_Format(PyExc_TypeError, "new(): invalid data type '%s'", tmpy_type_name(o)), -1;
    if (tmpy_is_numpy_array(o) || tmpy_is_numpy_scalar(o)) return numpy_dtype(o, out);
    if (PySequence_Check(o) && depth < MAX_DEPTH) return infer_sequence(o, out, depth);
    if (PySequence_Check(o)) return PyErr_Format(PyExc_ValueError, "too many dimensions '%s'", tmpy_type_name(o)), -1;
    return PyErr_Format(PyExc_RuntimeError, "Could not infer dtype of %s", tmpy_type_name(o)), -1;
}

/* Sizes along the first elements. */
static int measure(PyObject *o, int *ndim, int64_t *sizes)
{
    PyObject *x = Py_NewRef(o);
    *ndim = 0;
    while (PySequence_Check(x) && !is_text(x)) {
        Py_ssize_t n = PySequence_Size(x);
        if (n < 0) return Py_DECREF(x), -1;
        if (*ndim == MAX_DEPTH) {
            PyErr_Format(PyExc_ValueError, "too many dimensions '%s'", tmpy_type_name(x));
            return Py_DECREF(x), -1;
        }
        sizes[(*ndim)++] = n;
        if (!n) break;
        Py_SETREF(x, PySequence_GetItem(x, 0));
        if (!x) return -1;
    }
    Py_DECREF(x);
    return 0;
}

/* ---- storing one value */
static int overflow(const char *type)
{
    return PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type %s without overflow", type), -1;
}

static int store_integer(char *p, tm_dtype d, PyObject *o)
{
    const tmi_dtype_info *info = &tmi_dtypes[d];
    unsigned n = 8u * info->size;
    bool is_unsigned = info->category == 'U';
    int64_t max = is_unsigned ? (n == 64 ? INT64_MAX : ((int64_t)1 << n) - 1) : INT64_MAX >> (64 - n);
    int64_t min = is_unsigned ? -max : INT64_MIN >> (64 - n), x;
    if (PyFloat_Check(o)) {
        double f = PyFloat_AsDouble(o);
        if (!(f >= -9.3e18 && f <= 9.3e18) || f > (double)max || f < (double)min) return overflow(info->name);
        x = (int64_t)f;
    } else {
        int over;
        x = PyLong_AsLongLongAndOverflow(o, &over);
        if (over > 0 && d == TM_U64) {
            uint64_t u = PyLong_AsUnsignedLongLong(o);
            if (u == UINT64_MAX && PyErr_Occurred())
                return PyErr_Clear(), PyErr_SetString(PyExc_ValueError, "Overflow when unpacking unsigned long long"), -1;
            memcpy(p, &u, 8);
            return 0;
        }
        if (over) return PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long"), -1;
        if (x == -1 && PyErr_Occurred()) return -1;
    }
    if (x > max || x < min) return overflow(info->name);
    tmi_store_scalar(p, d, tm_i64(x));
    return 0;
}

static int store_value(char *p, tm_dtype d, PyObject *o)
{
    if (d == TM_F32 && PyFloat_CheckExact(o)) {
        float f = (float)PyFloat_AsDouble(o);
        memcpy(p, &f, 4);
        return 0;
    }
    if (d == TM_BOOL) {
        int truth = PyObject_IsTrue(o);
        if (truth >= 0) *(bool *)p = truth;
        return truth < 0 ? -1 : 0;
    }
    if (tmi_is_integral(d)) return store_integer(p, d, o);
    if (tmi_is_complex(d)) {
        double re = PyComplex_RealAsDouble(o), im = PyComplex_ImagAsDouble(o);
        if (PyErr_Occurred()) return -1;
        tmi_store_scalar(p, d, tm_c128(re, im));
        return 0;
    }
    double f = PyFloat_AsDouble(o);
    if (f == -1 && PyErr_Occurred()) return -1;
    tmi_store_scalar(p, d, tm_f64(f));
    return 0;
}

static int store(const tm_tensor *t, int d, char *p, PyObject *o)
{
    if (d == t->ndim) return store_value(p, (tm_dtype)t->dtype, o);
    PyObject *fast = PySequence_Check(o) ? PySequence_Tuple(o) : NULL;
    if (!fast) return PyErr_Occurred() ? -1 : (PyErr_SetString(PyExc_TypeError, "not a sequence"), -1);
    Py_ssize_t n = PyTuple_Size(fast);
    int r = 0;
    if (n != t->sizes[d]) {
        PyErr_Format(PyExc_ValueError, "expected sequence of length %lld at dim %d (got %zd)", (long long)t->sizes[d], d, n);
        r = -1;
    }
    int64_t step = t->strides[d] * (int64_t)tmi_dtypes[t->dtype].size;
    for (Py_ssize_t i = 0; i < n && !r; i++) r = store(t, d + 1, p + i * step, PyTuple_GetItem(fast, i));
    Py_DECREF(fast);
    return r;
}

/* A fresh copy of t with another dtype or device where asked for. */
static tm_tensor *copied(tm_tensor *t, tm_dtype dtype, tm_device device)
{
    const tmi_op *op = tmpy_need_op("_to_copy", "");
    if (!op) return NULL;
    tmi_value v[TMI_MAX_ARGS];
    v[0] = tmi_v_tensor(t);
    for (int i = 1; i < op->n_args; i++) {
        v[i] = op->args[i].def;
        if (op->args[i].type == TMI_T_DTYPE && dtype != TM_DTYPE_DEFAULT) v[i] = (tmi_value){.tag = TMI_V_DTYPE, .u.i = dtype};
        if (op->args[i].type == TMI_T_DEVICE && device.type != TM_DEVICE_DEFAULT)
            v[i] = (tmi_value){.tag = TMI_V_DEVICE, .u.device = device};
    }
    bool was = tm_set_grad_enabled(false);
    tm_tensor *r = tmpy_op1(op, v);
    tm_set_grad_enabled(was);
    return r;
}

static tm_tensor *moved(tm_tensor *t, tm_device device)
{
    if (!t || device.type == TM_DEVICE_DEFAULT || device.type == t->device.type) return t;
    tm_tensor *r = copied(t, TM_DTYPE_DEFAULT, device);
    tmi_release(t);
    return r;
}

tm_tensor *tmpy_tensor_from_data(PyObject *data, tm_dtype dtype, tm_device device, const char *who)
{
    int ndim;
    int64_t sizes[MAX_DEPTH];
    if (is_text(data)) return PyErr_Format(PyExc_TypeError, "%s(): invalid data type '%s'", who, tmpy_type_name(data)), NULL;
    if (tmpy_is_tensor(data)) return copied(tmpy_t(data), dtype, device);
    if (tmpy_is_numpy_array(data)) {
        tm_tensor *shared = tmpy_tensor_from_array(data, false), *r = shared ? copied(shared, dtype, device) : NULL;
        if (shared) tmi_release(shared);
        return r;
    }
    tm_dtype d = dtype;
    if (measure(data, &ndim, sizes) < 0) return NULL;
    if (d == TM_DTYPE_DEFAULT && infer(data, &d, 0) < 0) return NULL;
    tm_tensor *t = tmi_tensor_new(ndim, sizes, NULL, d, (tm_device){TM_CPU, -1});
    if (!t) return tmpy_raise(), NULL;
    if ((t->numel || ndim == 0) && store(t, 0, t->storage->data, data) < 0) {
        tmi_release(t);
        return NULL;
    }
    return moved(t, device);
}
