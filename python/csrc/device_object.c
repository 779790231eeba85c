/* torch.device: a kind and an index, also for kinds that this build does not serve (programs name them and ask whether they are there). */
#include "glue.h"

#include <ctype.h>

PyTypeObject *tmpy_device_type;

static const char *const kinds[] = {"cpu",  "cuda", "ipu", "xpu",  "mkldnn", "opengl", "opencl", "ideep", "hip",  "ve",
                                    "fpga", "maia", "xla", "lazy", "vulkan", "mps",    "meta",   "hpu",   "mtia", "privateuseone"};
enum { KIND_CPU = 0, KIND_CUDA = 1, KIND_META = 16, N_KINDS = sizeof kinds / sizeof *kinds };

/* Device given to factories that name none: set_default_device, or `with torch.device(...)`. */
enum { MAX_DEFAULTS = 64 };
static __thread tm_device defaults[MAX_DEFAULTS];
static __thread int n_defaults;
static __thread tmpy_device default_objects[MAX_DEFAULTS];

tm_device tmpy_default_device(void) { return n_defaults ? defaults[n_defaults - 1] : (tm_device){TM_CPU, -1}; }

static tmpy_device *data_of(PyObject *o) { return TMPY_DATA(o, tmpy_device); }

static PyObject *make(PyTypeObject *type, tmpy_device d)
{
    PyObject *o = tmpy_alloc(type);
    if (o) *data_of(o) = d;
    return o;
}

PyObject *tmpy_device_new(tm_device d)
{
    static PyObject *cpu;
    if (d.type == TM_CPU && d.index < 0) {
        if (!cpu) cpu = make(tmpy_device_type, (tmpy_device){KIND_CPU, -1});
        return Py_XNewRef(cpu);
    }
    return make(tmpy_device_type, (tmpy_device){d.type == TM_META ? KIND_META : KIND_CPU, d.index});
}

static int parse_index(const char *text, const char *all, int8_t *out)
{
    char *end;
    long i = strtol(text, &end, 10);
    bool padded = text[0] == '0' && text[1];
    if (!isdigit((unsigned char)text[0]) || *end || i > 127 || padded) {
        tmpy_error(PyExc_RuntimeError, "Invalid device string: '%s'", all);
        return -1;
    }
    *out = (int8_t)i;
    return 0;
}

static int parse_text(const char *text, tmpy_device *out)
{
    const char *colon = strchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : strlen(text);
    for (int k = 0; k < (int)N_KINDS; k++)
        if (strlen(kinds[k]) == n && !strncmp(kinds[k], text, n)) {
            *out = (tmpy_device){(uint8_t)k, -1};
            return colon ? parse_index(colon + 1, text, &out->index) : 0;
        }
    char start[32];
    snprintf(start, sizeof start, "%.*s", (int)n, text);
    tmpy_error(PyExc_RuntimeError,
               "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, "
               "hpu, mtia, privateuseone device type at start of device string: %s",
               start);
    return -1;
}

/* The library's device, or the error PyTorch gives for a build without that kind. */
static int to_core(tmpy_device d, tm_device *out)
{
    if (d.kind == KIND_CPU || d.kind == KIND_META) {
        *out = (tm_device){d.kind == KIND_META ? TM_META : TM_CPU, -1};
        return 1;
    }
    if (d.kind == KIND_CUDA) PyErr_SetString(PyExc_AssertionError, "Torch not compiled with CUDA enabled");
    else PyErr_Format(PyExc_RuntimeError, "PyTorch is not linked with support for %s devices", kinds[d.kind]);
    return -1;
}

static int as_any_device(PyObject *o, tmpy_device *out)
{
    if (Py_TYPE(o) == tmpy_device_type) {
        *out = *data_of(o);
        return 1;
    }
    if (PyUnicode_Check(o)) {
        const char *text = PyUnicode_AsUTF8AndSize(o, NULL);
        return text && parse_text(text, out) == 0 ? 1 : -1;
    }
    return 0;
}

int tmpy_as_device(PyObject *o, tm_device *out)
{
    tmpy_device d;
    if (PyLong_Check(o) && !PyBool_Check(o)) {
        PyErr_SetString(PyExc_RuntimeError, "Cannot access accelerator device when none is available.");
        return -1;
    }
    int known = as_any_device(o, &d);
    return known == 1 ? to_core(d, out) : known;
}

static PyObject *device_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const char options[] = " * (torch.device device)\n%s%s%s * (str type, int index = -1)\n";
    PyObject *what = NULL, *number = NULL;
    Py_ssize_t n = PyTuple_Size(args);
    int64_t index = -1;
    tmpy_device d;
    if (n > 0) what = PyTuple_GetItem(args, 0);
    if (n > 1) number = PyTuple_GetItem(args, 1);
    if (kwargs && !what && !(what = PyDict_GetItemString(kwargs, "device"))) what = PyDict_GetItemString(kwargs, "type");
    if (kwargs && !number) number = PyDict_GetItemString(kwargs, "index");
    if (!what)
        return tmpy_error(PyExc_TypeError, "device() received an invalid combination of arguments - got (), but expected one of:\n * "
                                           "(torch.device device)\n * (str type, int index = -1)\n");
    if (PyLong_Check(what)) return tmpy_error(PyExc_RuntimeError, "Cannot access accelerator device when none is available.");
    int known = as_any_device(what, &d);
    if (known < 0) return NULL;
    if (!known) {
        char mark[96], text[512];
        snprintf(mark, sizeof mark, "(!%s!)\n", tmpy_type_name(what));
        snprintf(text, sizeof text, options, n == 1 ? "      didn't match because some of the arguments have invalid types: " : "",
                 n == 1 ? mark : "", "");
        return tmpy_error(PyExc_TypeError, "device() received an invalid combination of arguments - got (%s), but expected one of:\n%s",
                          tmpy_type_name(what), text);
    }
    if (number && number != Py_None && tmpy_as_int(number, &index) != 1)
        return PyErr_Occurred()
                   ? NULL
                   : tmpy_error(PyExc_TypeError, "device(): argument 'index' (position 2) must be int, not %s", tmpy_type_name(number));
    if (index > 127 || index < -1)
        return tmpy_error(PyExc_RuntimeError, "Device index must be between -1 and 127, got %lld", (long long)index);
    if (index >= 0) {
        if (d.index >= 0)
            return tmpy_error(PyExc_RuntimeError, "type (string) must not include an index because index was passed explicitly: %s:%d",
                              kinds[d.kind], d.index);
        d.index = (int8_t)index;
    }
    return make(type, d);
}

static PyObject *device_str(PyObject *o)
{
    tmpy_device d = *data_of(o);
    return d.index >= 0 ? PyUnicode_FromFormat("%s:%d", kinds[d.kind], d.index) : PyUnicode_FromString(kinds[d.kind]);
}
static PyObject *device_repr(PyObject *o)
{
    tmpy_device d = *data_of(o);
    return d.index >= 0 ? PyUnicode_FromFormat("device(type='%s', index=%d)", kinds[d.kind], d.index)
                        : PyUnicode_FromFormat("device(type='%s')", kinds[d.kind]);
}
static Py_hash_t device_hash(PyObject *o) { return ((Py_hash_t)data_of(o)->kind << 8) + data_of(o)->index + 2; }
static PyObject *device_compare(PyObject *a, PyObject *b, int op)
{
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(b) != tmpy_device_type || Py_TYPE(a) != tmpy_device_type) Py_RETURN_NOTIMPLEMENTED;
    tmpy_device x = *data_of(a), y = *data_of(b);
    bool same = x.kind == y.kind && x.index == y.index;
    return PyBool_FromLong(same == (op == Py_EQ));
}
static PyObject *get_type(PyObject *o, void *unused) { return PyUnicode_FromString(kinds[data_of(o)->kind]); }
static PyObject *get_index(PyObject *o, void *unused)
{
    if (data_of(o)->index < 0) Py_RETURN_NONE;
    return PyLong_FromLong(data_of(o)->index);
}
TMPY_NOARGS(device_reduce)
{
    tmpy_device d = *data_of(self);
    return d.index >= 0 ? Py_BuildValue("(O(si))", (PyObject *)tmpy_device_type, kinds[d.kind], d.index)
                        : Py_BuildValue("(O(s))", (PyObject *)tmpy_device_type, kinds[d.kind]);
}
static int push_default(tmpy_device d)
{
    tm_device core;
    if (to_core(d, &core) < 0) return -1;
    if (n_defaults == MAX_DEFAULTS) return PyErr_SetString(PyExc_RuntimeError, "default devices are nested too deeply"), -1;
    default_objects[n_defaults] = d;
    defaults[n_defaults++] = core;
    return 0;
}
TMPY_NOARGS(device_enter) { return push_default(*data_of(self)) < 0 ? NULL : Py_NewRef(self); }
static PyObject *device_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    if (n_defaults > 0) n_defaults--;
    Py_RETURN_NONE;
}
static PyObject *device_copy(PyObject *self, PyObject *memo) { return Py_NewRef(self); }

/* set_default_device(None) ends what an earlier call set; open `with` blocks are unaffected by design of nesting. */
static PyObject *set_default_device(PyObject *m, PyObject *o)
{
    tmpy_device d;
    n_defaults = 0;
    if (o == Py_None) Py_RETURN_NONE;
    int known = as_any_device(o, &d);
    if (known < 0) return NULL;
    if (!known)
        return tmpy_error(PyExc_TypeError, "set_default_device(): argument 'device' must be torch.device, not %s", tmpy_type_name(o));
    if (push_default(d) < 0) return NULL;
    Py_RETURN_NONE;
}
static PyObject *get_default_device(PyObject *m, PyObject *unused)
{
    return n_defaults ? make(tmpy_device_type, default_objects[n_defaults - 1]) : tmpy_device_new((tm_device){TM_CPU, -1});
}

static PyMethodDef methods[] = {{"__reduce__", device_reduce, METH_NOARGS, NULL},
                                {"__enter__", device_enter, METH_NOARGS, NULL},
                                {"__exit__", TMPY_FN(device_exit), METH_FASTCALL, NULL},
                                {"__deepcopy__", device_copy, METH_O, NULL},
                                {NULL, NULL, 0, NULL}};
static PyGetSetDef getset[] = {
    {"type", get_type, NULL, NULL, NULL}, {"index", get_index, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef functions[] = {{"set_default_device", set_default_device, METH_O, NULL},
                                  {"get_default_device", get_default_device, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

int tmpy_device_init(PyObject *m)
{
    static PyType_Slot slots[] = {{Py_tp_new, device_new},  {Py_tp_dealloc, tmpy_free}, {Py_tp_repr, device_repr},
                                  {Py_tp_str, device_str},  {Py_tp_hash, device_hash},  {Py_tp_richcompare, device_compare},
                                  {Py_tp_methods, methods}, {Py_tp_getset, getset},     {0, NULL}};
    static PyType_Spec spec = {"torch.device", 0, 0, Py_TPFLAGS_DEFAULT, slots};
    if (!(tmpy_device_type = tmpy_type_new(m, &spec, sizeof(tmpy_device), NULL))) return -1;
    return PyModule_AddFunctions(m, functions);
}
