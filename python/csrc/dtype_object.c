/* dtype, layout and memory_format: singletons that print, compare by identity and pickle by name. */
#include "glue.h"

PyTypeObject *tmpy_dtype_type, *tmpy_layout_type, *tmpy_format_type;

typedef struct singleton { int value; const char *name; } singleton;
static PyObject *dtypes[TM_DTYPE_COUNT], *layouts[1], *formats[4];
static const char *const format_names[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};

static singleton *data_of(PyObject *o) { return TMPY_DATA(o, singleton); }


static PyObject *singleton_repr(PyObject *o) { return PyUnicode_FromFormat("torch.%s", data_of(o)->name); }
TMPY_NOARGS(singleton_repr_method) { return singleton_repr(self); }
TMPY_NOARGS(singleton_reduce) { return PyUnicode_FromString(data_of(self)->name); }
TMPY_NOARGS(return_self) { return Py_NewRef(self); }
static PyObject *copy_of(PyObject *self, PyObject *memo) { return Py_NewRef(self); }
static void singleton_dealloc(PyObject *o) { tmpy_free(o); }

static PyObject *is_floating(PyObject *o, void *unused) { return PyBool_FromLong(tmi_is_float((tm_dtype)data_of(o)->value)); }
static PyObject *is_complex(PyObject *o, void *unused) { return PyBool_FromLong(tmi_is_complex((tm_dtype)data_of(o)->value)); }
static PyObject *is_signed(PyObject *o, void *unused)
{
    char c = tmi_dtypes[data_of(o)->value].category;
    return PyBool_FromLong(c != 'U' && c != 'B');
}
static PyObject *itemsize(PyObject *o, void *unused) { return PyLong_FromLong(tmi_dtypes[data_of(o)->value].size); }
TMPY_NOARGS(to_real) { return tmpy_dtype(tmi_real_dtype((tm_dtype)data_of(self)->value)); }
TMPY_NOARGS(to_complex)
{
    tm_dtype d = tmi_complex_dtype((tm_dtype)data_of(self)->value);
    return tmi_is_complex(d)
               ? tmpy_dtype(d)
               : tmpy_error(PyExc_RuntimeError, "Unknown Complex ScalarType for %s", tmi_dtypes[data_of(self)->value].type_name);
}

static PyMethodDef dtype_methods[] = {{"__reduce__", singleton_reduce, METH_NOARGS, NULL}, {"to_real", to_real, METH_NOARGS, NULL},
                                      {"to_complex", to_complex, METH_NOARGS, NULL}, {"__copy__", return_self, METH_NOARGS, NULL},
                                      {"__deepcopy__", copy_of, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyGetSetDef dtype_getset[] = {{"is_floating_point", is_floating, NULL, NULL, NULL},
                                     {"is_complex", is_complex, NULL, NULL, NULL},
                                     {"is_signed", is_signed, NULL, NULL, NULL},
                                     {"itemsize", itemsize, NULL, NULL, NULL},
                                     {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef plain_methods[] = {{"__reduce__", singleton_reduce, METH_NOARGS, NULL},
                                      {"__copy__", return_self, METH_NOARGS, NULL},
                                      {"__deepcopy__", copy_of, METH_O, NULL},
                                      {"__str__", singleton_repr_method, METH_NOARGS | METH_COEXIST, NULL},
                                      {NULL, NULL, 0, NULL}};

static PyObject *make(PyObject *module, PyTypeObject *type, int value, const char *name)
{
    PyObject *o = tmpy_alloc(type);
    if (!o) return NULL;
    *data_of(o) = (singleton){value, name};
    return PyModule_AddObjectRef(module, name, o) < 0 ? NULL : o;
}

PyObject *tmpy_dtype(tm_dtype d) { return Py_NewRef(dtypes[d]); }
PyObject *tmpy_layout(tm_layout l) { return Py_NewRef(layouts[l]); }
PyObject *tmpy_format(tm_memory_format f) { return Py_NewRef(formats[f]); }

bool tmpy_as_dtype(PyObject *o, tm_dtype *out)
{
    if (Py_TYPE(o) == tmpy_dtype_type) *out = (tm_dtype)data_of(o)->value;
    else if (o == (PyObject *)&PyFloat_Type) *out = tm_get_default_dtype();
    else if (o == (PyObject *)&PyBool_Type) *out = TM_BOOL;
    else if (o == (PyObject *)&PyLong_Type) *out = TM_I64;
    else if (o == (PyObject *)&PyComplex_Type) *out = tm_get_default_dtype() == TM_F64 ? TM_C128 : TM_C64;
    else return false;
    return true;
}
bool tmpy_as_layout(PyObject *o, int *out) { return Py_TYPE(o) == tmpy_layout_type ? (*out = data_of(o)->value, true) : false; }
bool tmpy_as_format(PyObject *o, int *out) { return Py_TYPE(o) == tmpy_format_type ? (*out = data_of(o)->value, true) : false; }

static const struct { const char *alias; tm_dtype dtype;
} aliases[] = {{"half", TM_F16}, {"float", TM_F32}, {"double", TM_F64}, {"short", TM_I16},
               {"int", TM_I32},  {"long", TM_I64},  {"cfloat", TM_C64}, {"cdouble", TM_C128}};

static PyObject *get_default_dtype(PyObject *m, PyObject *unused) { return tmpy_dtype(tm_get_default_dtype()); }
static PyObject *set_default_dtype(PyObject *m, PyObject *o)
{
    if (Py_TYPE(o) != tmpy_dtype_type) return tmpy_error(PyExc_TypeError, "invalid dtype object");
    if (tm_set_default_dtype((tm_dtype)data_of(o)->value) != TM_OK) return tmpy_raise();
    Py_RETURN_NONE;
}
static PyObject *promote_types(PyObject *m, PyObject *const *a, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < 2; i++)
        if (n != 2 || Py_TYPE(a[i]) != tmpy_dtype_type)
            return tmpy_error(PyExc_TypeError, "promote_types(): argument 'type%d' (position %d) must be torch.dtype, not %s", (int)i + 1,
                              (int)i + 1, n == 2 ? tmpy_type_name(a[i]) : "nothing");
    tm_dtype d = tm_dtype_promote((tm_dtype)data_of(a[0])->value, (tm_dtype)data_of(a[1])->value);
    return d == TM_DTYPE_COUNT ? tmpy_raise() : tmpy_dtype(d);
}
static PyObject *can_cast(PyObject *m, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"from_", "to", NULL};
    PyObject *from, *to;
    tm_dtype a, b;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:can_cast", names, &from, &to)) return NULL;
    if (!tmpy_as_dtype(from, &a) || !tmpy_as_dtype(to, &b)) return tmpy_error(PyExc_TypeError, "can_cast(): arguments must be torch.dtype");
    return PyBool_FromLong(tmi_can_cast(a, b));
}
static PyMethodDef functions[] = {{"get_default_dtype", get_default_dtype, METH_NOARGS, NULL},
                                  {"_set_default_dtype", set_default_dtype, METH_O, NULL},
                                  {"set_default_dtype", set_default_dtype, METH_O, NULL},
                                  {"promote_types", TMPY_FN(promote_types), METH_FASTCALL, NULL},
                                  {"can_cast", TMPY_FN(can_cast), METH_VARARGS | METH_KEYWORDS, NULL},
                                  {NULL, NULL, 0, NULL}};

int tmpy_dtype_init(PyObject *m)
{
    static PyType_Slot dtype_slots[] = {{Py_tp_repr, singleton_repr},
                                        {Py_tp_dealloc, singleton_dealloc},
                                        {Py_tp_methods, dtype_methods},
                                        {Py_tp_getset, dtype_getset},
                                        {0, NULL}};
    static PyType_Slot plain_slots[] = {
        {Py_tp_repr, singleton_repr}, {Py_tp_dealloc, singleton_dealloc}, {Py_tp_methods, plain_methods}, {0, NULL}};
    enum { FLAGS = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION };
    static PyType_Spec dtype_spec = {"torch.dtype", 0, 0, FLAGS, dtype_slots};
    static PyType_Spec layout_spec = {"torch.layout", 0, 0, FLAGS, plain_slots};
    static PyType_Spec format_spec = {"torch.memory_format", 0, 0, FLAGS, plain_slots};
    if (!(tmpy_dtype_type = tmpy_type_new(m, &dtype_spec, sizeof(singleton), NULL)) ||
        !(tmpy_layout_type = tmpy_type_new(m, &layout_spec, sizeof(singleton), NULL)) ||
        !(tmpy_format_type = tmpy_type_new(m, &format_spec, sizeof(singleton), NULL)))
        return -1;
    for (int i = 0; i < TM_DTYPE_COUNT; i++)
        if (!(dtypes[i] = make(m, tmpy_dtype_type, i, tmi_dtypes[i].name))) return -1;
    for (int i = 0; i < 4; i++)
        if (!(formats[i] = make(m, tmpy_format_type, i, format_names[i]))) return -1;
    if (!(layouts[0] = make(m, tmpy_layout_type, 0, "strided"))) return -1;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (PyModule_AddObjectRef(m, aliases[i].alias, dtypes[aliases[i].dtype]) < 0) return -1;
    return PyModule_AddFunctions(m, functions);
}
