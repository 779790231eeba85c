/* to(), the casts named after dtypes, cpu(), cuda(), type(), new_tensor(). */
#include "base/strbuf.h"
#include "glue.h"

typedef struct target {
    tm_dtype dtype;      /* TM_DTYPE_DEFAULT: as it is */
    tm_device device;    /* type TM_DEVICE_DEFAULT: as it is */
    int non_blocking, copy, format;   /* format -1: preserve */
} target;
static const target unchanged = {TM_DTYPE_DEFAULT, {TM_DEVICE_DEFAULT, -1}, 0, 0, -1};

static tm_tensor *converted(tm_tensor *t, const target *k)
{
    static const tmi_op *op;
    if (!op && !(op = tmpy_need_op("to", "dtype_layout"))) return NULL;
    tmi_value v[TMI_MAX_ARGS];
    v[0] = tmi_v_tensor(t);
    for (int i = 1; i < op->n_args; i++) {
        const tmi_arg *a = &op->args[i];
        v[i] = a->has_default ? a->def : tmi_v_none();
        if (a->type == TMI_T_DTYPE && k->dtype != TM_DTYPE_DEFAULT) v[i] = (tmi_value){.tag = TMI_V_DTYPE, .u.i = k->dtype};
        if (a->type == TMI_T_DEVICE && k->device.type != TM_DEVICE_DEFAULT) v[i] = (tmi_value){.tag = TMI_V_DEVICE, .u.device = k->device};
        if (a->type == TMI_T_FORMAT && k->format >= 0) v[i] = (tmi_value){.tag = TMI_V_FORMAT, .u.i = k->format};
        if (!strcmp(a->name, "copy")) v[i] = tmi_v_bool(k->copy);
        if (!strcmp(a->name, "non_blocking")) v[i] = tmi_v_bool(k->non_blocking);
    }
    return tmpy_op1(op, v);
}

/* Nothing to do: the same object comes back. */
static bool already(const tm_tensor *t, const target *k)
{
    return !k->copy && (k->dtype == TM_DTYPE_DEFAULT || k->dtype == (tm_dtype)t->dtype) &&
           (k->device.type == TM_DEVICE_DEFAULT || k->device.type == t->device.type) &&
           (k->format < 0 || k->format == TM_PRESERVE || tmi_is_contiguous_as(t, (tm_memory_format)k->format));
}

static PyObject *convert(PyObject *self, const target *k)
{
    if (already(tmpy_t(self), k)) return Py_NewRef(self);
    tm_tensor *t = converted(tmpy_t(self), k);
    return t ? tmpy_wrap(t) : NULL;
}

static PyObject *no_such_to(PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    tmi_strbuf b = {0};
    for (Py_ssize_t i = 0; i < n; i++) tmi_str_addf(&b, "%s, ", tmpy_type_name(args[i]));
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_Size(kwnames); k++)
        tmi_str_addf(&b, "%s=%s, ", PyUnicode_AsUTF8AndSize(PyTuple_GetItem(kwnames, k), NULL), tmpy_type_name(args[n + k]));
    PyErr_Format(PyExc_TypeError,
                 "to() received an invalid combination of arguments - got (%s), but expected one of:\n * (torch.device device = None, "
                 "torch.dtype dtype = None, bool "
                 "non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n * (torch.dtype dtype, bool "
                 "non_blocking = False, bool copy = False, *, "
                 "torch.memory_format memory_format = None)\n * (Tensor tensor, bool non_blocking = False, bool copy = False, *, "
                 "torch.memory_format memory_format = None)\n",
                 b.data ? b.data : "");
    tmi_str_free(&b);
    return NULL;
}

/* The three forms of to(): by the first argument. */
static int parse_to(PyObject *const *args, Py_ssize_t n, PyObject *kwnames, target *k)
{
    PyObject *other = NULL;
    *k = unchanged;
    const tmpy_field by_device[] = {{"device", 'D', false, false, &k->device},
                                    {"dtype", 'd', false, false, &k->dtype},
                                    {"non_blocking", 'b', false, false, &k->non_blocking},
                                    {"copy", 'b', false, false, &k->copy},
                                    {"memory_format", 'm', false, true, &k->format}};
    const tmpy_field by_dtype[] = {{"dtype", 'd', true, false, &k->dtype},
                                   {"non_blocking", 'b', false, false, &k->non_blocking},
                                   {"copy", 'b', false, false, &k->copy},
                                   {"memory_format", 'm', false, true, &k->format}};
    const tmpy_field by_tensor[] = {{"other", 'T', true, false, &other},
                                    {"non_blocking", 'b', false, false, &k->non_blocking},
                                    {"copy", 'b', false, false, &k->copy},
                                    {"memory_format", 'm', false, true, &k->format}};
    bool named_other = false;
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_Size(kwnames); i++)
        named_other |= !PyUnicode_CompareWithASCIIString(PyTuple_GetItem(kwnames, i), "other");
    tm_dtype ignored;
    int r;
    if ((n && tmpy_is_tensor(args[0])) || named_other) r = tmpy_fields("to", by_tensor, 4, args, n, kwnames);
    else if (n && tmpy_as_dtype(args[0], &ignored)) r = tmpy_fields("to", by_dtype, 4, args, n, kwnames);
    else r = tmpy_fields("to", by_device, 5, args, n, kwnames);
    if (r < 0) {
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            no_such_to(args, n, kwnames);
        }
        return -1;
    }
    if (other) {
        k->dtype = (tm_dtype)tmpy_t(other)->dtype;
        k->device = tmpy_t(other)->device;
    }
    return 0;
}

static PyObject *to(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *r;
    target k;
    if (tmpy_override_method(self, "to", args, n, kwnames, &r)) return r;
    return parse_to(args, n, kwnames, &k) < 0 ? NULL : convert(self, &k);
}

static PyObject *cast(PyObject *self, const char *name, tm_dtype dtype, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *r;
    target k = unchanged;
    k.dtype = dtype;
    const tmpy_field fields[] = {{"memory_format", 'm', false, true, &k.format}};
    if (tmpy_override_method(self, name, args, n, kwnames, &r)) return r;
    return tmpy_fields(name, fields, 1, args, n, kwnames) < 0 ? NULL : convert(self, &k);
}
static PyObject *to_float(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k) { return cast(s, "float", TM_F32, a, n, k); }
static PyObject *to_double(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k) { return cast(s, "double", TM_F64, a, n, k); }
static PyObject *to_half(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k) { return cast(s, "half", TM_F16, a, n, k); }
static PyObject *to_bfloat16(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k) { return cast(s, "bfloat16", TM_BF16, a, n, k); }
static PyObject *to_long(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k) { return cast(s, "long", TM_I64, a, n, k); }
static PyObject *to_int(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k) { return cast(s, "int", TM_I32, a, n, k); }
static PyObject *to_short(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k) { return cast(s, "short", TM_I16, a, n, k); }
static PyObject *to_char(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k) { return cast(s, "char", TM_I8, a, n, k); }
static PyObject *to_byte(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k) { return cast(s, "byte", TM_U8, a, n, k); }
static PyObject *to_bool(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k) { return cast(s, "bool", TM_BOOL, a, n, k); }
static PyObject *to_cfloat(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k) { return cast(s, "cfloat", TM_C64, a, n, k); }
static PyObject *to_cdouble(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *k) { return cast(s, "cdouble", TM_C128, a, n, k); }

static PyObject *cpu(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *r;
    target k = unchanged;
    k.device = (tm_device){TM_CPU, -1};
    const tmpy_field fields[] = {{"memory_format", 'm', false, true, &k.format}};
    if (tmpy_override_method(self, "cpu", args, n, kwnames, &r)) return r;
    return tmpy_fields("cpu", fields, 1, args, n, kwnames) < 0 ? NULL : convert(self, &k);
}
static PyObject *cuda(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    return tmpy_error(PyExc_AssertionError, "Torch not compiled with CUDA enabled");
}

/* ---- type(): "torch.FloatTensor", or a conversion */
static int dtype_by_type_name(PyObject *o, tm_dtype *out)
{
    const char *text = PyUnicode_Check(o) ? PyUnicode_AsUTF8AndSize(o, NULL) : NULL;
    PyObject *dtype = NULL;
    if (!text && PyObject_HasAttrString(o, "dtype")) {   /* torch.FloatTensor, the class */
        dtype = PyObject_GetAttrString(o, "dtype");
        bool ok = dtype && tmpy_as_dtype(dtype, out);
        Py_XDECREF(dtype);
        return ok ? 1 : 0;
    }
    char name[64];
    for (int i = 0; text && i < TM_DTYPE_COUNT; i++) {
        snprintf(name, sizeof name, "torch.%sTensor", tmi_dtypes[i].type_name);
        if (!strcmp(name, text)) return *out = (tm_dtype)i, 1;
    }
    return 0;
}
static PyObject *type(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *wanted = Py_None, *r;
    target k = unchanged;
    const tmpy_field fields[] = {{"dtype", 'O', false, false, &wanted},
                                 {"non_blocking", 'b', false, false, &k.non_blocking},
                                 {"memory_format", 'm', false, true, &k.format}};
    if (tmpy_override_method(self, "type", args, n, kwnames, &r)) return r;
    if (tmpy_fields("type", fields, 3, args, n, kwnames) < 0) return NULL;
    if (wanted == Py_None) return PyUnicode_FromFormat("torch.%sTensor", tmi_dtypes[tmpy_t(self)->dtype].type_name);
    if (!tmpy_as_dtype(wanted, &k.dtype) && !dtype_by_type_name(wanted, &k.dtype)) {
        if (PyUnicode_Check(wanted)) return tmpy_error(PyExc_ValueError, "invalid type: '%U'", wanted);
        return tmpy_error(PyExc_TypeError, "dtype must be a type, str, or dtype object");
    }
    return convert(self, &k);
}

/* x.new_tensor(data, dtype=None, device=None, requires_grad=False): x's dtype and device unless given. */
static PyObject *new_tensor(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *data = NULL, *r;
    tm_dtype dtype = (tm_dtype)tmpy_t(self)->dtype;
    tm_device device = tmpy_t(self)->device;
    int requires_grad = 0, pin = 0;
    const tmpy_field fields[] = {{"data", 'O', true, false, &data},
                                 {"dtype", 'd', false, false, &dtype},
                                 {"device", 'D', false, false, &device},
                                 {"requires_grad", 'b', false, false, &requires_grad},
                                 {"pin_memory", 'b', false, true, &pin}};
    if (tmpy_override_method(self, "new_tensor", args, n, kwnames, &r)) return r;
    if (tmpy_fields("new_tensor", fields, 5, args, n, kwnames) < 0) return NULL;
    tm_tensor *t = tmpy_tensor_from_data(data, dtype, device, "new");
    PyObject *o = t ? tmpy_wrap(t) : NULL;
    if (o && requires_grad) Py_SETREF(o, PyObject_CallMethod(o, "requires_grad_", NULL));
    return o;
}
static PyObject *new_legacy(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *module = PyImport_ImportModule("taimatsu._C"), *kw = kwargs ? Py_NewRef(kwargs) : PyDict_New();
    PyObject *r =
        module && kw ? PyObject_CallMethod(module, "_legacy_new", "NOO", tmpy_dtype((tm_dtype)tmpy_t(self)->dtype), args, kw) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(kw);
    return r;
}

/* _C._nn._parse_to(*args, **kwargs) -> (device, dtype, non_blocking, memory_format): what Module.to needs. */
static PyObject *parse_to_function(PyObject *m, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    target k;
    if (parse_to(args, n, kwnames, &k) < 0) return NULL;
    return Py_BuildValue("(NNNN)", k.device.type == TM_DEVICE_DEFAULT ? Py_NewRef(Py_None) : tmpy_device_new(k.device),
                         k.dtype == TM_DTYPE_DEFAULT ? Py_NewRef(Py_None) : tmpy_dtype(k.dtype), PyBool_FromLong(k.non_blocking),
                         k.format < 0 ? Py_NewRef(Py_None) : tmpy_format((tm_memory_format)k.format));
}

PyMethodDef tmpy_convert_methods[] = {{"to", TMPY_FN(to), TMPY_FLAGS, NULL},
                                      {"float", TMPY_FN(to_float), TMPY_FLAGS, NULL},
                                      {"double", TMPY_FN(to_double), TMPY_FLAGS, NULL},
                                      {"half", TMPY_FN(to_half), TMPY_FLAGS, NULL},
                                      {"bfloat16", TMPY_FN(to_bfloat16), TMPY_FLAGS, NULL},
                                      {"long", TMPY_FN(to_long), TMPY_FLAGS, NULL},
                                      {"int", TMPY_FN(to_int), TMPY_FLAGS, NULL},
                                      {"short", TMPY_FN(to_short), TMPY_FLAGS, NULL},
                                      {"char", TMPY_FN(to_char), TMPY_FLAGS, NULL},
                                      {"byte", TMPY_FN(to_byte), TMPY_FLAGS, NULL},
                                      {"bool", TMPY_FN(to_bool), TMPY_FLAGS, NULL},
                                      {"cfloat", TMPY_FN(to_cfloat), TMPY_FLAGS, NULL},
                                      {"cdouble", TMPY_FN(to_cdouble), TMPY_FLAGS, NULL},
                                      {"cpu", TMPY_FN(cpu), TMPY_FLAGS, NULL},
                                      {"cuda", TMPY_FN(cuda), TMPY_FLAGS, NULL},
                                      {"type", TMPY_FN(type), TMPY_FLAGS, NULL},
                                      {"new_tensor", TMPY_FN(new_tensor), TMPY_FLAGS, NULL},
                                      {"new", TMPY_FN(new_legacy), METH_VARARGS | METH_KEYWORDS, NULL},
                                      {NULL, NULL, 0, NULL}};
PyMethodDef tmpy_nn_extra[] = {{"_parse_to", TMPY_FN(parse_to_function), TMPY_FLAGS, NULL}, {NULL, NULL, 0, NULL}};
